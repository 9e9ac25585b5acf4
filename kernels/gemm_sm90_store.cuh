// How sums go from a warpgroup's registers to c: by the copy engine through shared memory, or by threads after an epilogue.
//
//   sums     warp w of a group has rows 16 w + (lane / 4) + 0 or 8 of 64, pairs of columns 8 j + 2 (lane % 4)
//   staging  2 x [64][128 bytes], 16-byte pieces of a row swizzled by row % 8, as the copy engine reads them
//   threads  each warp stages 16 rows x 32 sums of its own and reads them back in fours, so that an epilogue runs on four
//            neighbours, and what it reads comes by few accesses
#pragma once
#include "kernels/gemm_folds.cuh"
#include "kernels/gemm_sm90_wgmma.cuh"

namespace ng::kernels {
namespace {

struct TileSpot {
    i32 batch, row, column;
};

DEVICE void write_words(u32 to, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEVICE void read_words(u32 from, u32 (&v)[4])
{
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(from) : "memory");
}
DEVICE u32 read_word(u32 from)
{
    u32 r;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r) : "r"(from) : "memory");
    return r;
}
DEVICE void write_pair(u32 to, u32 a, u32 b) { asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(a), "r"(b) : "memory"); }
DEVICE void read_pair(u32 from, u32& a, u32& b) { asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(from) : "memory"); }
// w: a word of each of four columns, whose bytes are rows; then of each row, whose bytes are columns.
DEVICE void turn_four(u32 (&w)[4])
{
    const u32 low01 = __byte_perm(w[0], w[1], 0x5140), low23 = __byte_perm(w[2], w[3], 0x5140), high01 = __byte_perm(w[0], w[1], 0x7362), high23 = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(low01, low23, 0x5410), w[1] = __byte_perm(low01, low23, 0x7632), w[2] = __byte_perm(high01, high23, 0x5410), w[3] = __byte_perm(high01, high23, 0x7632);
}
DEVICE u32 two_halves(i32 type, float a, float b)
{
    return type == F16 ? pair_f16(a, b) : pair_bf16(a, b);
}

// ---- by threads -----------------------------------------------------------------------------------------------------------

DEVICE char* place_of(const GemmOutput& o, const TileSpot& at)
{
    return static_cast<char*>(o.c) + (i64(at.batch) * o.c_batch + i64(at.row) * o.c_row + at.column) * bytes_of(result_type(o));
}

DEVICE void store_one(const GemmOutput& o, const TileSpot& at, u32 bits, bool is_whole)
{
    char* const to = place_of(o, at);
    if (is_whole || result_type(o) == F32) *reinterpret_cast<u32*>(to) = bits;
    else store<float>(result_type(o), to, 0, __uint_as_float(bits));
}

// `valid` of four, as the bits of f32, or i32 where is_whole.
DEVICE void store_four(const GemmOutput& o, const TileSpot& at, i32 valid, const u32 (&v)[4], bool is_whole)
{
    char* const to = place_of(o, at);
    const bool  is_wide = is_whole || result_type(o) == F32, is_half = is_of_halves(o);
    if (o.store <= STORE_FOURS && valid == 4 && (is_wide || is_half)) {
        if (is_wide) {
            *reinterpret_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
            return;
        }
        const u32 low = two_halves(result_type(o), __uint_as_float(v[0]), __uint_as_float(v[1]));
        *reinterpret_cast<uint2*>(to) = make_uint2(low, two_halves(result_type(o), __uint_as_float(v[2]), __uint_as_float(v[3])));
        return;
    }
    ROLLED for (i32 j = 0; j < valid; j++) store_one(o, {at.batch, at.row, at.column + j}, j == 0 ? v[0] : j == 1 ? v[1] : j == 2 ? v[2] : v[3], is_whole);
}

// The same one by one, wherever columns are.
DEVICE void store_apart(const GemmOutput& o, const TileSpot& at, i32 valid, const u32 (&v)[4], bool is_whole)
{
    const i64   step = o.c_column * bytes_of(result_type(o));
    const bool  is_wide = is_whole || result_type(o) == F32, is_half = is_of_halves(o);
    char* const to = place_of(o, {at.batch, at.row, 0}) + at.column * step;
    UNROLLED for (i32 j = 0; j < 4; j++) {
        const float x = __uint_as_float(v[j]);
        if (j >= valid) continue;
        if (is_wide) *reinterpret_cast<u32*>(to + j * step) = v[j];
        else if (is_half) *reinterpret_cast<u16*>(to + j * step) = u16(two_halves(result_type(o), x, x));
        else store<float>(result_type(o), to + j * step, 0, x);
    }
}

template <class Word>
DEVICE bool stays_whole(const GemmOutput& o)
{
    return !IS_REAL<Word> && stays_integer(o);
}

DEVICE EpilogueSpot spot_of(const TileSpot& at, i32 valid) { return {at.batch, at.row, at.column, valid}; }

// Four sums as what c is to get, before it is rounded to c's type.
template <class Word>
DEVICE void finish_four(const GemmOutput& o, const TileSpot& at, i32 valid, const EpilogueOperands<4>& operands, u32 (&v)[4], EpilogueTerms<4>& terms)
{
    if constexpr (HAS_EPILOGUE) {
        if constexpr (HAS_LIST && !IS_REAL<Word>)
            UNROLLED for (i32 j = 0; j < 4; j++) v[j] = __float_as_uint(float(i32(v[j])));
        finish_sums(o.epilogue, spot_of(at, valid), operands, v, terms);
    } else if constexpr (!IS_REAL<Word>) {
        if (o.epilogue.is_cast)
            UNROLLED for (i32 j = 0; j < 4; j++) v[j] = __float_as_uint(float(i32(v[j])));
    }
}

DEVICE i32 valid_of(const GemmOutput& o, const TileSpot& at) { return at.row < o.m ? min(4, o.n - at.column) : 0; }

// A warp's 16 rows x 32 sums, staged: to c of halves, two rows at a time, pairs of neighbours where they are one word of c.
DEVICE void store_pairs(const GemmOutput& o, const TileSpot& first, u32 staged)
{
    const i32 lane = i32(threadIdx.x) & 31, pair = lane & 15;
    ROLLED for (i32 step = 0; step < 16; step += 2) {
        const i32 row = step + (lane >> 4), rest = o.n - first.column;
        float     x, y;
        asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(staged + u32(row * 128 + (((pair >> 1) ^ (row & 7)) << 4) + (pair & 1) * 8)) : "memory");
        const float next = __shfl_down_sync(~0u, x, 1);
        u16* const  to = reinterpret_cast<u16*>(place_of(o, {first.batch, first.row + row, first.column}));
        const bool  is_odd = reinterpret_cast<u64>(to) & 2;
        const i32   at = 2 * pair + is_odd;
        const u32   word = is_odd ? two_halves(result_type(o), y, next) : two_halves(result_type(o), x, y);
        if (first.row + row >= o.m) continue;
        if (at + 1 < rest && at + 1 < 32) *reinterpret_cast<u32*>(to + at) = word;
        else if (at < rest) to[at] = u16(word);
        if (is_odd && pair == 0 && rest > 0) to[0] = u16(two_halves(result_type(o), x, x));
    }
}

// Of a warp's 16 rows x 32 sums a thread has these fours.
constexpr i32 WARP_FOURS = 4;
DEVICE TileSpot four_of_warp(const TileSpot& first, i32 unit)
{
    const i32 lane = i32(threadIdx.x) & 31;
    return {first.batch, first.row + unit * 4 + (lane >> 3), first.column + (lane & 7) * 4};
}
DEVICE void fetch_staged(const GemmOutput& o, const TileSpot& first, EpilogueOperands<4> (&operands)[WARP_FOURS])
{
    UNROLLED for (i32 unit = 0; unit < WARP_FOURS; unit++) {
        const TileSpot at = four_of_warp(first, unit);
        fetch_operands(FromMemory{o.epilogue, spot_of(at, valid_of(o, at))}, operands[unit]);
    }
}

// A warp's 16 rows x 32 sums, staged: to c. fix(spot, sum) gives what replaces a sum.
template <class Word, class Fix>
DEVICE void store_staged(const GemmOutput& o, const TileSpot& first, u32 staged, const EpilogueOperands<4> (&operands)[WARP_FOURS], bool is_loose, Fix fix, ChunkFolds<OfFours>& folds, bool begins)
{
    EpilogueTerms<4> terms[WARP_FOURS];
    const i32  lane = i32(threadIdx.x) & 31;
    const bool is_whole = stays_whole<Word>(o), by_singles = o.store == STORE_SINGLES;
    // With an epilogue a text of each, so that what they read is in registers.
    constexpr i32 TEXTS = HAS_EPILOGUE ? WARP_FOURS : 1;
    _Pragma("unroll TEXTS") for (i32 unit = 0; unit < WARP_FOURS; unit++) {
        const TileSpot at = four_of_warp(first, unit);
        const i32      row = at.row - first.row, valid = valid_of(o, at);
        const u32      from = staged + u32(row * 128 + (((lane & 7) ^ (row & 7)) << 4));
        u32            v[4];
        read_words(from, v);
        if (is_loose)
            for (i32 j = 0; j < valid; j++) {
                u32 sum = j == 0 ? v[0] : j == 1 ? v[1] : j == 2 ? v[2] : v[3];
                sum = fix(TileSpot{at.batch, at.row, at.column + j}, sum);
                UNROLLED for (i32 i = 0; i < 4; i++) v[i] = i == j ? sum : v[i];
            }
        if (valid > 0) finish_four<Word>(o, at, valid, operands[HAS_EPILOGUE ? unit : 0], v, terms[HAS_EPILOGUE ? unit : 0]);
        if constexpr (FOLDS > 0) leave_out(terms[unit], valid);
        if (!HAS_RESULT) continue;
        if (!by_singles) {
            if (valid > 0) store_four(o, at, valid, v, is_whole);
        } else if (is_loose || HAS_EPILOGUE || !is_whole) {
            write_words(from, v[0], v[1], v[2], v[3]);
        }
    }
    if constexpr (FOLDS > 0) folds.add(o.epilogue, {first.batch, first.row, first.column, o.m, o.n, begins, true}, terms);
    if (!by_singles || !HAS_RESULT) return;
    __syncwarp();
    if (is_of_halves(o)) return store_pairs(o, first, staged);
    const i32 column = first.column + lane;
    _Pragma("unroll 4") for (i32 row = 0; row < 16; row++) {
        const u32 bits = read_word(staged + u32(row * 128 + (((lane >> 2) ^ (row & 7)) << 4) + (lane & 3) * 4));
        if (first.row + row < o.m && column < o.n) store_one(o, {first.batch, first.row + row, column}, bits, is_whole);
    }
}

// One sum from the operands, in the plain way; until it is NaN, which it then stays.
DEVICE u32 sum_again(const PlainOperands& g, const TileSpot& at)
{
    const float* a = g.a + at.batch * g.a_batch + at.row * g.a_row;
    const float* b = g.b + at.batch * g.b_batch + at.column * g.b_column;
    float        sum = 0;
    ROLLED for (i64 i = 0; i < g.k && sum == sum; i++) sum = fmaf(a[i * g.a_depth], b[i * g.b_depth], sum);
    return __float_as_uint(sum);
}
DEVICE bool is_no_number(u32 bits) { return (bits & 0x7f800000) == 0x7f800000; }

// Of six products of planes, the smallest first: which plane of a and of b.
DEVICE i32 plane_of_a(i32 product) { return 0x001120 >> 4 * product & 15; }
DEVICE i32 plane_of_b(i32 product) { return 0x010102 >> 4 * product & 15; }

// ---- from registers to staging --------------------------------------------------------------------------------------------

// 16 rows and columns of a warp, 8 sums a thread, as 32 bytes of each row; `to` is where the lane's 16 bytes go.
DEVICE void store_matrices(u32 to, i32 type, const float* q)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(two_halves(type, q[0], q[1])), "r"(two_halves(type, q[2], q[3])),
                 "r"(two_halves(type, q[4], q[5])), "r"(two_halves(type, q[6], q[7]))
                 : "memory");
}
// 16 UNITS columns of 16 rows a warp, 8 sums a thread for each 16 columns; first: of the 4 units of a row.
template <int UNITS>
DEVICE void stage_halves(u32 buffer, i32 type, const float* sums, i32 first)
{
    const i32 lane = i32(threadIdx.x) & 31, row = i32(threadIdx.x >> 5 & 3) * 16 + (lane & 15);
    UNROLLED for (i32 j = 0; j < UNITS; j++) {
        const float* const q = sums + j * 8;
        store_matrices(buffer + u32(row * 128 + ((((first + j) * 2 + (lane >> 4)) ^ (row & 7)) << 4)), type, q);
    }
}

// What is left of a tile's columns, 16 UNITS of them, to boxes of 32 or 16 columns one after the other, swizzled by their width.
ANYWHERE constexpr i32 rest_width(i32 columns) { return columns % 32 == 0 ? 32 : 16; }
template <int UNITS>
DEVICE void stage_rest(u32 buffer, i32 type, const float* sums)
{
    constexpr i32 ROW = rest_width(UNITS * 16) * 2, PIECES = ROW / 16;
    const i32 lane = i32(threadIdx.x) & 31, row = i32(threadIdx.x >> 5 & 3) * 16 + (lane & 15);
    UNROLLED for (i32 j = 0; j < UNITS; j++) {
        const float* const q = sums + j * 8;
        const i32 piece = j * 2 % PIECES + (lane >> 4);
        store_matrices(buffer + u32(j * 2 / PIECES * 64 * ROW + row * ROW + ((piece ^ (row / (128 / ROW) % PIECES)) << 4)), type, q);
    }
}

// Rows of a thread's sums among a warpgroup's 64, as wgmma leaves them: of four sums two are of `row`, two of the one `next` behind it.
struct RowsOfThread {
    i32 row, next;
};
DEVICE RowsOfThread rows_of_thread()
{
    const i32 lane = i32(threadIdx.x) & 31;
    return {i32(threadIdx.x >> 5 & 3) * 16 + (lane >> 2), 8};
}

// 32 columns, of which `words` sums a thread are the tile's.
template <class Word>
DEVICE void stage_words(u32 buffer, const Word* sums, const RowsOfThread& rows, i32 words = 16)
{
    const i32 lane = i32(threadIdx.x) & 31;
    UNROLLED for (i32 j = 0; j < 4; j++)
        if (j * 4 < words)
        UNROLLED for (i32 h = 0; h < 2; h++) {
            const i32 row = rows.row + h * rows.next;
            const u32 to = buffer + u32(row * 128 + (((j * 2 + ((lane & 3) >> 1)) ^ (row & 7)) << 4) + (lane & 1) * 8);
            write_pair(to, bits_of(sums[j * 4 + h * 2]), bits_of(sums[j * 4 + h * 2 + 1]));
        }
}

// What stage_halves left of a warp: 16 rows of 64 halves to c at any address, a warp a row, pairs where they are one word of c.
DEVICE void store_halves(const GemmOutput& o, const TileSpot& first, u32 staged)
{
    const i32 lane = i32(threadIdx.x) & 31, rest = min(64, o.n - first.column), rows = min(16, o.m - first.row);
    u16*      to = reinterpret_cast<u16*>(place_of(o, first));
    _Pragma("unroll 4") for (i32 row = 0; row < 16; row++) {
        const u32  word = read_word(staged + u32(row * 128 + (((lane >> 2) ^ (row & 7)) << 4) + (lane & 3) * 4));
        const u32  next = __shfl_down_sync(~0u, word, 1);
        const bool is_odd = reinterpret_cast<u64>(to) & 2;
        const i32  at = 2 * lane + is_odd;
        if (row < rows) {
            if (is_odd && lane == 0 && rest > 0) to[0] = u16(word);
            const u32 pair = is_odd ? word >> 16 | next << 16 : word;
            if (at + 1 < rest) *reinterpret_cast<u32*>(to + at) = pair;
            else if (at < rest) to[at] = u16(pair);
        }
        to += o.c_row;
    }
}

// ---- a warpgroup's tile ---------------------------------------------------------------------------------------------------

// buffers: of staging; turn: which of two is next; barrier: a named one of its own. With an epilogue: vectors that it reads, the
// barrier of what the copy engine brings, and its phase.
struct Staging {
    u32 buffers, turn;
    i32 barrier;
    u32 vectors, full, phase;
};

template <u32 COUNT>
struct Buffers {};

// c's map by boxes of 64 columns of halves or 32 of words, and of a tile's rest beyond multiples of 64.
struct StoreMaps {
    const TensorMap &c, &rest;
};

// A warpgroup's 64 columns of halves, or as many as are left, to a buffer.
template <int WORDS>
DEVICE void stage_box(u32 buffer, i32 type, const float (&d)[WORDS], i32 half)
{
    if (half < WORDS / 32) stage_halves<4>(buffer, type, d + half * 32, 0);
    else if constexpr (WORDS % 32 != 0) stage_rest<WORDS % 32 / 8>(buffer, type, d + WORDS / 32 * 32);
}
template <int WORDS>
DEVICE void store_staged_box(const StoreMaps& maps, u32 buffer, const TileSpot& first, i32 half, i32 row)
{
    if (half < WORDS / 32) return store_box(maps.c, buffer, first.column + half * 64, row, first.batch);
    if constexpr (WORDS % 32 != 0) {
        constexpr i32 REST = WORDS % 32 * 2, WIDTH = rest_width(REST);
        UNROLLED for (i32 i = 0; i < REST / WIDTH; i++) store_box(maps.rest, buffer + u32(i * WIDTH * 128), first.column + half * 64 + i * WIDTH, row, first.batch);
    }
}

// BLOCKS x 64 rows, 2 WORDS columns, by boxes of 32.
template <u32 BUFFERS, class Word, int BLOCKS, int WORDS>
DEVICE void store_words(const TensorMap& map, const TileSpot& first, const Word (&d)[BLOCKS][WORDS], Staging& s, const RowsOfThread& rows)
{
    const bool is_elected = (threadIdx.x & 127) == 0;
    constexpr i32 CHUNKS = (WORDS + 15) / 16;
    UNROLLED for (i32 chunk = 0; chunk < BLOCKS * CHUNKS; chunk++) {
        const u32 buffer = s.buffers + s.turn * STAGING_BYTES;
        if (++s.turn == BUFFERS) s.turn = 0;
        if (is_elected) wait_stores_read<BUFFERS - 1>();
        named_barrier(s.barrier, 128);
        stage_words(buffer, d[chunk / CHUNKS] + chunk % CHUNKS * 16, rows, WORDS - chunk % CHUNKS * 16);
        async_fence();
        named_barrier(s.barrier, 128);
        if (is_elected) store_box(map, buffer, first.column + chunk % CHUNKS * 32, first.row + chunk / CHUNKS * 64, first.batch), end_stores();
    }
}

// The same of any type, by any way. is_loose: some sum is to be fixed.
template <u32 BUFFERS, class Word, int BLOCKS, int WORDS, class Fix>
DEVICE void store_tile(const StoreMaps& maps, const GemmOutput& o, const TileSpot& first, const Word (&d)[BLOCKS][WORDS], Staging& s, bool is_loose, Fix fix)
{
    const bool is_elected = (threadIdx.x & 127) == 0;
    constexpr i32 HALVES = (WORDS + 31) / 32, CHUNKS = (WORDS + 15) / 16;
    if constexpr (IS_REAL<Word> && !HAS_EPILOGUE)
        if (o.store == STORE_HALVES && !is_loose) {
            if constexpr (BUFFERS >= BLOCKS * HALVES) {
                if (is_elected) wait_stores_read<0>();
                named_barrier(s.barrier, 128);
                UNROLLED for (i32 chunk = 0; chunk < BLOCKS * HALVES; chunk++) stage_box(s.buffers + u32(chunk) * STAGING_BYTES, result_type(o), d[chunk / HALVES], chunk % HALVES);
                async_fence();
                named_barrier(s.barrier, 128);
                if (is_elected) {
                    ROLLED for (i32 chunk = 0; chunk < BLOCKS * HALVES; chunk++)
                        store_staged_box<WORDS>(maps, s.buffers + u32(chunk) * STAGING_BYTES, first, chunk % HALVES, first.row + chunk / HALVES * 64);
                    end_stores();
                }
                return;
            }
            UNROLLED for (i32 chunk = 0; chunk < BLOCKS * HALVES; chunk++) {
                const u32 buffer = s.buffers + s.turn * STAGING_BYTES;
                if (++s.turn == BUFFERS) s.turn = 0;
                if (is_elected) wait_stores_read<BUFFERS - 1>();
                named_barrier(s.barrier, 128);
                stage_box(buffer, result_type(o), d[chunk / HALVES], chunk % HALVES);
                async_fence();
                named_barrier(s.barrier, 128);
                if (is_elected) store_staged_box<WORDS>(maps, buffer, first, chunk % HALVES, first.row + chunk / HALVES * 64), end_stores();
            }
            return;
        }
    if (WORDS % 16 == 0 && !HAS_EPILOGUE && o.store == STORE_WORDS && !is_loose) return store_words<BUFFERS>(maps.c, first, d, s, rows_of_thread());
    if (o.store <= STORE_WORDS) {                            // the copy engine may still read what is staged
        if (is_elected) wait_stores_read<0>();
        named_barrier(s.barrier, 128);
    }
    const i32 warp = i32(threadIdx.x >> 5 & 3);
    if constexpr (IS_REAL<Word>)
        if (!HAS_EPILOGUE && !is_loose && is_of_halves(o)) {
            ROLLED for (i32 chunk = 0; chunk < BLOCKS * HALVES; chunk++) {
                __syncwarp();
                UNROLLED for (i32 i = 0; i < BLOCKS * HALVES; i++)
                    if (i == chunk)
                        UNROLLED for (i32 j = 0; j < 4; j++)
                            if (i % HALVES * 4 + j < WORDS / 8) stage_halves<1>(s.buffers, result_type(o), d[i / HALVES] + i % HALVES * 32 + j * 8, j);
                __syncwarp();
                store_halves(o, {first.batch, first.row + chunk / HALVES * 64 + warp * 16, first.column + chunk % HALVES * 64}, s.buffers + u32(warp) * 2048);
            }
            return;
        }
    ChunkFolds<OfFours> folds;
    folds.begin();
    ROLLED for (i32 chunk = 0; chunk < BLOCKS * CHUNKS; chunk++) {
        const TileSpot   at = {first.batch, first.row + chunk / CHUNKS * 64 + warp * 16, first.column + chunk % CHUNKS * 32};
        EpilogueOperands<4> operands[WARP_FOURS];
        fetch_staged(o, at, operands);
        __syncwarp();
        UNROLLED for (i32 i = 0; i < BLOCKS * CHUNKS; i++)
            if (i == chunk) stage_words(s.buffers, d[i / CHUNKS] + i % CHUNKS * 16, rows_of_thread(), WORDS - i % CHUNKS * 16);
        __syncwarp();
        store_staged<Word>(o, at, s.buffers + u32(warp) * 2048, operands, is_loose, fix, folds, chunk % CHUNKS == 0);
        if (OVER_A_ROW && chunk % CHUNKS == CHUNKS - 1 && first.column < o.n) folds.end(o.epilogue, {at.batch, at.row, at.column, o.m, o.n, false, true}, first.column / (2 * WORDS));
    }
}

// ---- a warpgroup's tile of c's transpose, halves ----------------------------------------------------------------------------

// 16 columns of 64 rows, which become 16 rows of 128 bytes, swizzled.
DEVICE void stage_turned(u32 block, i32 type, const float* q)
{
    const i32 lane = i32(threadIdx.x) & 31, row = (lane >> 4) * 8 + (lane & 7), piece = i32(threadIdx.x >> 5 & 3) * 2 + (lane >> 3 & 1);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(block + u32(row * 128 + ((piece ^ (row & 7)) << 4))), "r"(two_halves(type, q[0], q[1])),
                 "r"(two_halves(type, q[2], q[3])), "r"(two_halves(type, q[4], q[5])), "r"(two_halves(type, q[6], q[7]))
                 : "memory");
}
template <u32 BUFFERS, int WORDS>
DEVICE void store_turned(const TensorMap& map, const GemmOutput& o, const TileSpot& first, const float (&d)[WORDS], Staging& s)
{
    constexpr i32 STRIPS = WORDS / 8, AT_ONCE = i32(BUFFERS) * 4, STRIP_BYTES = 2048;    // strips of 16 rows of c
    const bool is_elected = (threadIdx.x & 127) == 0, by_engine = o.store == STORE_HALVES;
    UNROLLED for (i32 begin = 0; begin < STRIPS; begin += AT_ONCE) {
        if (is_elected && by_engine) wait_stores_read<0>();
        named_barrier(s.barrier, 128);
        UNROLLED for (i32 i = begin; i < STRIPS && i < begin + AT_ONCE; i++) stage_turned(s.buffers + u32((i - begin) * STRIP_BYTES), result_type(o), d + i * 8);
        async_fence();
        named_barrier(s.barrier, 128);
        if (by_engine) {
            if (is_elected) {
                ROLLED for (i32 i = begin; i < STRIPS && i < begin + AT_ONCE; i++) store_box(map, s.buffers + u32((i - begin) * STRIP_BYTES), first.row, first.column + i * 16, first.batch);
                end_stores();
            }
        } else {
            ROLLED for (i32 i = begin + i32(threadIdx.x >> 5 & 3); i < STRIPS && i < begin + AT_ONCE; i += 4)
                store_halves(o, {first.batch, first.column + i * 16, first.row}, s.buffers + u32((i - begin) * STRIP_BYTES));
        }
    }
}

}  // namespace
}  // namespace ng::kernels
