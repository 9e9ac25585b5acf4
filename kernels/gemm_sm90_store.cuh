// How sums go from a warpgroup's registers to c: by the copy engine through shared memory, or by threads after an epilogue.
//
//   sums     warp w of a group has rows 16 w + (lane / 4) + 0 or 8 of 64, pairs of columns 8 j + 2 (lane % 4)
//   staging  2 x [64][128 bytes], 16-byte pieces of a row swizzled by row % 8, as the copy engine reads them
//   threads  each warp stages 16 rows x 32 sums of its own and reads them back in fours, so that an epilogue runs on four
//            neighbours, and what it reads comes by few accesses
#pragma once
#include "kernels/gemm_folds.cuh"
#include "kernels/gemm_sm90_rows.cuh"
#include "kernels/gemm_sm90_wgmma.cuh"

namespace ng::kernels {
namespace {

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
        } else if (is_of_halves(o)) {
            __syncwarp();                // these rows have been read
            write_pair(staged + u32(row * 128 + (((lane & 7) >> 1 ^ (row & 7)) << 4) + (lane & 1) * 8), two_halves(result_type(o), __uint_as_float(v[0]), __uint_as_float(v[1])),
                       two_halves(result_type(o), __uint_as_float(v[2]), __uint_as_float(v[3])));
        } else if (is_loose || HAS_EPILOGUE || !is_whole) {
            write_words(from, v[0], v[1], v[2], v[3]);
        }
    }
    if constexpr (FOLDS > 0) folds.add(o.epilogue, {first.batch, first.row, first.column, o.m, o.n, begins, true}, terms);
    if (!by_singles || !HAS_RESULT) return;
    __syncwarp();
    if (is_of_halves(o)) return store_some_rows<16>({o, first, false}, 0, staged);
    if (is_whole || result_type(o) == F32) return store_some_rows<32>({o, first, true}, 0, staged);
    const i32 column = first.column + lane;
    _Pragma("unroll 4") for (i32 row = 0; row < 16; row++) {
        const u32 bits = read_word(staged + u32(row * 128 + (((lane >> 2) ^ (row & 7)) << 4) + (lane & 3) * 4));
        if (first.row + row < o.m && column < o.n) store_one(o, {first.batch, first.row + row, column}, bits);
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

// The same of any type, by any way, of a TilesShape; where it IS_BARE, c is of halves or f32, unless sums are integers. is_loose: some sum is to be fixed.
template <class S, int BLOCKS, int WORDS, class Fix>
DEVICE void store_tile(const StoreMaps& maps, const GemmOutput& o, const TileSpot& first, const typename S::Word (&d)[BLOCKS][WORDS], Staging& s, bool is_loose, Fix fix)
{
    using Word = typename S::Word;
    constexpr u32 BUFFERS = S::BUFFERS;
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
    if constexpr (!HAS_EPILOGUE) {
        const bool are_words = IS_REAL<Word> ? result_type(o) == F32 : stays_whole<Word>(o), are_halves = IS_REAL<Word> && is_of_halves(o);
        if (!is_loose && (are_words || are_halves)) {
            // Boxes of 64 halves, or 32 words, of each warp's 16 rows. In one text, or the compiler finds too few registers.
            constexpr i32 REST = WORDS % 32, AT_ONCE = WORDS / 32 % 2 == 0 && BUFFERS >= 2 ? 2 : 1;
            static_assert(BLOCKS == 1 || REST == 0, "boxes go on in the next 64 rows");
            const i32  boxes = are_words ? CHUNKS : WORDS / 32, columns = are_words ? 32 : 64;
            const u32  staged = s.buffers + u32(warp) * 2048;
            const auto stage = [&](i32 box, u32 buffer) {
                if (are_words) {
                    UNROLLED for (i32 i = 0; i < BLOCKS * CHUNKS; i++)
                        if (i == box) stage_words(buffer, d[i / CHUNKS] + i % CHUNKS * 16, rows_of_thread(), WORDS - i % CHUNKS * 16);
                } else if constexpr (IS_REAL<Word>) {
                    UNROLLED for (i32 i = 0; i < BLOCKS * HALVES; i++)
                        if (i == box)
                            UNROLLED for (i32 j = 0; j < 4; j++)
                                if (i % HALVES * 4 + j < WORDS / 8) stage_halves<1>(buffer, result_type(o), d[i / HALVES] + i % HALVES * 32 + j * 8, j);
                }
                __syncwarp();
            };
            ROLLED for (i32 box = 0; box < BLOCKS * boxes; box += AT_ONCE) {
                const i32 block = BLOCKS > 1 ? box / boxes : 0;
                __syncwarp();
                UNROLLED for (i32 i = 0; i < AT_ONCE; i++) stage(box + i, s.buffers + u32(i) * STAGING_BYTES);
                store_rows<AT_ONCE, STAGING_BYTES>(o, {first.batch, first.row + block * 64 + warp * 16, first.column + (box - block * boxes) * columns}, staged, are_words);
            }
            if constexpr (REST > 0)
                if (!are_words) {
                    __syncwarp();
                    stage(WORDS / 32, s.buffers);
                    store_some_rows<REST>({o, {first.batch, first.row + warp * 16, first.column + WORDS / 32 * 64}, false}, 0, staged);
                }
            return;
        }
    }
    if constexpr (S::IS_BARE && IS_REAL<Word>) return;         // said here, or what follows takes registers while sums are made
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
// The first 8 of these columns, to 8 rows.
DEVICE void stage_turned_half(u32 block, i32 type, const float* q)
{
    const i32 lane = i32(threadIdx.x) & 31, row = lane & 7, piece = i32(threadIdx.x >> 5 & 3) * 2 + (lane >> 3 & 1);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(block + u32(row * 128 + ((piece ^ row) << 4))), "r"(two_halves(type, q[0], q[1])), "r"(two_halves(type, q[2], q[3]))
                 : "memory");
}
template <u32 BUFFERS, int WORDS>
DEVICE void store_turned(const TensorMap& map, const GemmOutput& o, const TileSpot& first, const float (&d)[WORDS], Staging& s)
{
    constexpr i32 STRIPS = (WORDS + 7) / 8, AT_ONCE = i32(BUFFERS) * 4, STRIP_BYTES = 2048;    // strips of 16 rows of c, of which the last may have 8
    constexpr i32 BOX = turned_box(2 * WORDS), BOXES = 16 / BOX;                               // rows that the copy engine stores at once
    const bool is_elected = (threadIdx.x & 127) == 0, by_engine = o.store == STORE_HALVES;
    UNROLLED for (i32 begin = 0; begin < STRIPS; begin += AT_ONCE) {
        if (is_elected && by_engine) wait_stores_read<0>();
        named_barrier(s.barrier, 128);
        UNROLLED for (i32 i = begin; i < STRIPS && i < begin + AT_ONCE; i++) {
            if (i * 8 + 8 <= WORDS) stage_turned(s.buffers + u32((i - begin) * STRIP_BYTES), result_type(o), d + i * 8);
            else stage_turned_half(s.buffers + u32((i - begin) * STRIP_BYTES), result_type(o), d + i * 8);
        }
        async_fence();
        named_barrier(s.barrier, 128);
        if (by_engine) {
            if (is_elected) {
                ROLLED for (i32 i = begin * BOXES; i < 2 * WORDS / BOX && i < (begin + AT_ONCE) * BOXES; i++)
                    store_box(map, s.buffers + u32((i - begin * BOXES) * BOX * 128), first.row, first.column + i * BOX, first.batch);
                end_stores();
            }
        } else {
            const auto store = [&](const GemmOutput& c) {
                ROLLED for (i32 i = begin + i32(threadIdx.x >> 5 & 3); i < STRIPS && i < begin + AT_ONCE; i += 4)
                    store_rows<1, 0>(c, {first.batch, first.column + i * 16, first.row}, s.buffers + u32((i - begin) * STRIP_BYTES), false);
            };
            if constexpr (BOX == 16) {
                store(o);
            } else {
                GemmOutput c = o;
                c.m = min(o.m, first.column + 2 * WORDS);        // the rest of the last strip is the next tile's
                store(c);
            }
        }
    }
}

}  // namespace
}  // namespace ng::kernels
