// What stands beside products on Hopper: sums of parts, rows moved to an even pitch or turned, f32 cut into planes of bf16.
#pragma once
#include "kernels/gemm_sm90_store.cuh"

namespace ng::kernels {
namespace {

// ---- sums of parts: a thread four neighbours ------------------------------------------------------------------------------

DEVICE void run_sum(const GemmSumNumbers& g)
{
    let_next_launch();
    wait_for_launch_before();
    const GemmOutput& o = g.output;
    const i64 row_fours = (o.n + 3) / 4, size = i64(o.m) * o.n, all = i64(g.batches) * o.m * row_fours;
    for (u64 i = first_thread(); i < u64(all); i += all_threads()) {
        u64 lines, four;
        divide(i, u64(row_fours), lines, four);
        u64 batch, row;
        divide(lines, u64(o.m), batch, row);
        const TileSpot at = {i32(batch), i32(row), i32(four) * 4};
        const i32      valid = valid_of(o, at);
        const float*   from = g.partial + i64(batch) * size + i64(row) * o.n + at.column;
        float          sum[4] = {};
        u32            v[4];
        EpilogueOperands<4> operands;
        fetch_operands(FromMemory{o.epilogue, spot_of(at, valid)}, operands);
        for (i32 split = 0; split < g.splits; split++, from += g.batches * size)
            UNROLLED for (i32 j = 0; j < 4; j++)
                if (j < valid) sum[j] += from[j];
        UNROLLED for (i32 j = 0; j < 4; j++) v[j] = __float_as_uint(sum[j]);
        EpilogueTerms<4> terms;          // folds want one part of depth
        finish_four<float>(o, at, valid, operands, v, terms);
        if (o.store == STORE_APART) store_apart(o, at, valid, v, false);
        else store_four(o, at, valid, v, false);
    }
}

// ---- rows to an even pitch: a thread eight elements, by two aligned loads ----------------------------------------------------

// The 16 bytes that begin at byte `shift` of low and high.
DEVICE uint4 window_of(const uint4& low, const uint4& high, u32 shift)
{
    u32 w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    if (shift & 8) {
        UNROLLED for (i32 i = 0; i < 6; i++) w[i] = w[i + 2];
    }
    if (shift & 4) {
        UNROLLED for (i32 i = 0; i < 5; i++) w[i] = w[i + 1];
    }
    const u32 bits = (shift & 3) * 8;
    return make_uint4(__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits), __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits));
}

DEVICE void run_pitch(const GemmPitchNumbers& g)
{
    constexpr i32 MANY = 4;
    let_next_launch();
    wait_for_launch_before();
    const i64 row_units = g.pitch / 8, all = g.batches * g.rows * row_units;
    for (u64 first = first_thread(); first < u64(all); first += all_threads() * MANY) {
        uint4 low[MANY], high[MANY];
        u32   shift[MANY];
        UNROLLED for (i32 j = 0; j < MANY; j++) {
            const u64 i = first + u64(j) * all_threads();
            low[j] = high[j] = make_uint4(0, 0, 0, 0), shift[j] = 0;
            if (i >= u64(all)) continue;
            u64 lines, unit, batch, row;
            divide(i, u64(row_units), lines, unit), divide(lines, u64(g.rows), batch, row);
            if (i64(unit) * 8 >= g.columns) continue;
            const u64 address = reinterpret_cast<u64>(g.from) + u64(i64(batch) * g.from_batch + i64(row) * g.from_row + i64(unit) * 8) * 2;
            shift[j] = u32(address & 15);
            low[j] = *reinterpret_cast<const uint4*>(address - shift[j]);
            if (shift[j] && address - shift[j] + 16 < reinterpret_cast<u64>(g.end)) high[j] = *reinterpret_cast<const uint4*>(address - shift[j] + 16);
        }
        UNROLLED for (i32 j = 0; j < MANY; j++) {
            const u64 i = first + u64(j) * all_threads();
            if (i < u64(all)) static_cast<uint4*>(g.to)[i] = window_of(low[j], high[j], shift[j]);
        }
    }
}

// ---- words turned: a block 64 rows and 32 columns, through shared memory ------------------------------------------------------

DEVICE void run_turn(const GemmTurnNumbers& g)
{
    constexpr i32 ROWS = 64, COLUMNS = 32, EACH = ROWS * COLUMNS / THREADS;
    __shared__ u32 tile[COLUMNS][ROWS + 1];
    let_next_launch();
    wait_for_launch_before();
    const i32 thread = i32(threadIdx.x);
    const i64 row_tiles = (g.rows + ROWS - 1) / ROWS, column_tiles = (g.columns + COLUMNS - 1) / COLUMNS;
    ROLLED for (u64 i = blockIdx.x; i < u64(g.batches * row_tiles * column_tiles); i += gridDim.x) {
        u64 lines, row_tile, batch, column_tile;
        divide(i, u64(row_tiles), lines, row_tile), divide(lines, u64(column_tiles), batch, column_tile);
        const i64  first_row = i64(row_tile) * ROWS, first_column = i64(column_tile) * COLUMNS, row = first_row + thread % ROWS;
        const u32* from = static_cast<const u32*>(g.from) + i64(batch) * g.from_batch + row;
        u32        v[EACH];
        UNROLLED for (i32 j = 0; j < EACH; j++) {
            const i64 column = first_column + thread / ROWS + j * (THREADS / ROWS);
            v[j] = row < g.rows && column < g.columns ? from[column * g.from_column] : 0;
        }
        __syncthreads();                 // the tile before has been read
        UNROLLED for (i32 j = 0; j < EACH; j++) tile[thread / ROWS + j * (THREADS / ROWS)][thread % ROWS] = v[j];
        __syncthreads();
        const i64 column = first_column + thread % COLUMNS;
        UNROLLED for (i32 j = 0; j < EACH; j++) {
            const i32 down = thread / COLUMNS + j * (THREADS / COLUMNS);
            if (first_row + down < g.rows && column < g.columns) static_cast<u32*>(g.to)[(i64(batch) * g.rows + first_row + down) * g.pitch + column] = tile[thread % COLUMNS][down];
        }
    }
}

// ---- bytes turned: a block 128 rows and columns, a thread 16 rows of four columns ---------------------------------------------

// The bytes of 16 rows of a column, of which `valid` are there.
DEVICE uint4 rows_of(const char* from, i32 valid)
{
    if (valid >= 16 && reinterpret_cast<u64>(from) % 16 == 0) return *reinterpret_cast<const uint4*>(from);
    u32 w[4] = {};
    UNROLLED for (i32 j = 0; j < 16; j++)
        if (j < valid) w[j / 4] |= u32(u8(from[j])) << 8 * (j % 4);
    return make_uint4(w[0], w[1], w[2], w[3]);
}

DEVICE void run_turn_bytes(const GemmTurnNumbers& g)
{
    constexpr i32 SIDE = 128, WORDS = SIDE / 4, GROUPS = SIDE / 16;
    static_assert(GROUPS * WORDS == THREADS, "a thread has 16 rows of four columns");
    __shared__ u32 tile[SIDE][WORDS + 1];        // a row's words are moved on by 4 a group, so that threads meet in no bank
    let_next_launch();
    wait_for_launch_before();
    const i32 thread = i32(threadIdx.x), group = thread % GROUPS, word = thread / GROUPS;
    const i64 row_tiles = (g.rows + SIDE - 1) / SIDE, column_tiles = (g.columns + SIDE - 1) / SIDE;
    ROLLED for (u64 i = blockIdx.x; i < u64(g.batches * row_tiles * column_tiles); i += gridDim.x) {
        u64 lines, row_tile, batch, column_tile;
        divide(i, u64(row_tiles), lines, row_tile), divide(lines, u64(column_tiles), batch, column_tile);
        const i64   first_row = i64(row_tile) * SIDE, first_column = i64(column_tile) * SIDE, row = first_row + group * 16, column = first_column + word * 4;
        const char* from = static_cast<const char*>(g.from) + i64(batch) * g.from_batch + column * g.from_column + row;
        const i32   valid = g.rows - row < 16 ? i32(g.rows - row) : 16;
        uint4       v[4];
        UNROLLED for (i32 j = 0; j < 4; j++) v[j] = column + j < g.columns ? rows_of(from + j * g.from_column, valid) : make_uint4(0, 0, 0, 0);
        __syncthreads();                 // the tile before has been read
        UNROLLED for (i32 four = 0; four < 4; four++) {
            u32 w[4];
            UNROLLED for (i32 j = 0; j < 4; j++) w[j] = four == 0 ? v[j].x : four == 1 ? v[j].y : four == 2 ? v[j].z : v[j].w;
            turn_four(w);
            UNROLLED for (i32 j = 0; j < 4; j++) tile[group * 16 + four * 4 + j][(word + group * 4) % WORDS] = w[j];
        }
        __syncthreads();
        UNROLLED for (i32 j = 0; j < 4; j++) {
            const i32 down = thread / GROUPS + j * WORDS, across = thread % GROUPS;
            u32       w[4];
            UNROLLED for (i32 k = 0; k < 4; k++) w[k] = tile[down][(across * 4 + k + down / 16 * 4) % WORDS];
            if (first_row + down < g.rows && first_column + across * 16 < g.pitch)
                *reinterpret_cast<uint4*>(static_cast<char*>(g.to) + (i64(batch) * g.rows + first_row + down) * g.pitch + first_column + across * 16) = make_uint4(w[0], w[1], w[2], w[3]);
        }
    }
}

// ---- f32 to planes: a thread four neighbours --------------------------------------------------------------------------------

// x as three numbers of bf16; where x is none, the first alone. Nearest ones, but a finite x stays finite.
DEVICE void cut(float x, u32 (&plane)[3])
{
    const bool is_finite = (__float_as_uint(x) & 0x7f800000) != 0x7f800000;
    UNROLLED for (i32 i = 0; i < 3; i++) {
        u32 bits = narrow_code(BF16, x);
        if (is_finite && (bits & 0x7fff) == 0x7f80) bits -= 1;
        plane[i] = bits;
        // The rest counts 2^8 times as much, so that it does not get lost among the smallest numbers.
        x = is_finite ? (x - __uint_as_float(bits << 16)) * 256 : 0;
    }
}

// Four at once: [plane][pair]. Where all of them are finite and stay so, two of a plane are one instruction.
DEVICE void cut_four(float (&x)[4], u32 (&plane)[3][2])
{
    constexpr u32 LEAST_TO_INFINITY = 0x7f7f8000;
    u32 most = 0;
    UNROLLED for (i32 j = 0; j < 4; j++) most = max(most, __float_as_uint(x[j]) & 0x7fffffff);
    if (most >= LEAST_TO_INFINITY) {
        u32 cuts[4][3];
        UNROLLED for (i32 j = 0; j < 4; j++) cut(x[j], cuts[j]);
        UNROLLED for (i32 p = 0; p < 3; p++) plane[p][0] = cuts[0][p] | cuts[1][p] << 16, plane[p][1] = cuts[2][p] | cuts[3][p] << 16;
        return;
    }
    UNROLLED for (i32 p = 0; p < 3; p++)
        UNROLLED for (i32 j = 0; j < 2; j++) {
            const u32 pair = two_halves(BF16, x[2 * j], x[2 * j + 1]);
            plane[p][j] = pair;
            x[2 * j] = (x[2 * j] - __uint_as_float(pair << 16)) * 256, x[2 * j + 1] = (x[2 * j + 1] - __uint_as_float(pair & 0xffff0000)) * 256;
        }
}

DEVICE void run_planes(const GemmPlanesNumbers& g)
{
    let_next_launch();
    wait_for_launch_before();
    const i64 row_units = g.pitch / 4, plane = g.rows * row_units, all = g.batches * plane;
    for (u64 i = first_thread(); i < u64(all); i += all_threads()) {
        u64 lines, unit, batch, row;
        divide(i, u64(row_units), lines, unit), divide(lines, u64(g.rows), batch, row);
        const float* const from = g.from + i64(batch) * g.from_batch + i64(row) * g.from_row + i64(unit) * 4 * g.from_column;
        const i64          valid = g.columns - i64(unit) * 4;
        float              x[4] = {};
        if (valid >= 4 && g.from_column == 1 && reinterpret_cast<u64>(from) % 16 == 0) {
            const float4 v = *reinterpret_cast<const float4*>(from);
            x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        } else {
            UNROLLED for (i32 j = 0; j < 4; j++)
                if (j < valid) x[j] = from[j * g.from_column];
        }
        u32 planes[3][2];
        cut_four(x, planes);
        uint2* const to = static_cast<uint2*>(g.to) + i64(batch) * 3 * plane + i64(row) * row_units + i64(unit);
        UNROLLED for (i32 p = 0; p < 3; p++) to[p * plane] = make_uint2(planes[p][0], planes[p][1]);
    }
}

}  // namespace
}  // namespace ng::kernels
