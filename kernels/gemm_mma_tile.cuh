// Matrix products on the tensor cores of sm_80 and later: c[m, n] = a[m, k] b[k, n] and an epilogue, one tile of c a block.
//
//   warp      WARP_M x WARP_N of the tile, as blocks of 16 x 8
//   shared    STAGES of a's and b's tiles, 64 bytes of depth each, of doubles 128; then, in the same place, the sums
//   loads     IN_FLIGHT: STAGES - 1 tiles ahead by the hardware; IN_REGISTERS: one tile ahead, of any strides and formats
// Sums are f32 of floats (the hardware's order within 32 bytes of depth), i32 of bytes, f64 of f64; the same bits each time.
#pragma once
#include "kernels/gemm_mma_load.cuh"
#include "kernels/gemm_mma_store.cuh"

namespace ng::kernels {
namespace {

// Of codes of 8 bits, two by two as halves: depth is multiplied in another order, alike in both.
template <i32 A_TYPE, i32 B_TYPE>
DEVICE void product_of_codes(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2])
{
    const auto low = [](i32 type, u32 x) { return halves_of_codes(type, x & 0xff, x >> 8 & 0xff); };
    const auto high = [](i32 type, u32 x) { return halves_of_codes(type, x >> 16 & 0xff, x >> 24); };
    UNROLLED for (int part = 0; part < 2; part++) {
        const u32 *const rows = a + 2 * part, of_a[4] = {low(A_TYPE, rows[0]), low(A_TYPE, rows[1]), high(A_TYPE, rows[0]), high(A_TYPE, rows[1])};
        const u32  of_b[2] = {low(B_TYPE, b[part]), high(B_TYPE, b[part])};
        product_f16(c, of_a, of_b);
    }
}

// What elements are in shared memory, and one step of 32 bytes of depth.
// A block of 16 lines is BLOCK words, of which b's halves are two blocks of 8 columns.
#define KIND(Name, SUM, WORD, BYTES_, product)                                                                          \
    struct Name {                                                                                                       \
        using Sum = SUM;                                                                                                \
        using Word = WORD;                                                                                              \
        static constexpr int BYTES = BYTES_, BLOCK = 16 / int(sizeof(WORD));                                            \
        DEVICE static void add(Sum (&c)[4], const Word (&a)[4], const Word (&b)[2]) { product(c, a, b); }               \
    };
KIND(HalvesF16, float, u32, 2, product_f16)
KIND(HalvesBf16, float, u32, 2, product_bf16)
KIND(WordsTf32, float, u32, 4, product_tf32)
KIND(BytesSS, i32, u32, 1, product_s8_s8)
KIND(BytesSU, i32, u32, 1, product_s8_u8)
KIND(BytesUS, i32, u32, 1, product_u8_s8)
KIND(BytesUU, i32, u32, 1, product_u8_u8)
KIND(CodesE4E4, float, u32, 1, (product_of_codes<E4M3, E4M3>))
KIND(CodesE4E5, float, u32, 1, (product_of_codes<E4M3, E5M2>))
KIND(CodesE5E4, float, u32, 1, (product_of_codes<E5M2, E4M3>))
KIND(CodesE5E5, float, u32, 1, (product_of_codes<E5M2, E5M2>))
KIND(Doubles, double, double, 8, product_f64)
#undef KIND

// Words of a block of 16 lines by 32 bytes of depth: a's two halves of lines one after the other, then the next 16 bytes of
// depth; b's the other way round, so that what is multiplied at once lies in neighbouring registers.
enum Side { SIDE_A, SIDE_B };

// A lane's place in a block, of the tile's first 32 bytes of depth.
template <class TILE, Side SIDE>
DEVICE u32 block_place(u32 first_line)
{
    const u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    static_assert(TILE::BYTES > 1 || TILE::NEAR == NEAR_DEPTH || SIDE == SIDE_B, "a's rows would come in another order");
    const u32 half = SIDE == SIDE_A ? lane / 8 % 2 : lane / 16, part = SIDE == SIDE_A ? lane / 16 : lane / 8 % 2;
    if constexpr (TILE::NEAR == NEAR_DEPTH && TILE::BYTES == 8) return TILE::place(first_line + g, t / 2) + t % 2 * 8;
    else if constexpr (TILE::NEAR == NEAR_DEPTH) return TILE::place(first_line + lane % 8 + half * 8, part);
    else if constexpr (TILE::BYTES == 1) return TILE::place(lane / 16 * 16 + lane % 8 / 2 * 4 + lane / 8 % 2 * 2 + lane % 2, first_line / 16);
    else if constexpr (TILE::BYTES == 2) return TILE::place(lane % 8 + part * 8, first_line / 8 + half);
    else if constexpr (TILE::BYTES == 4) return TILE::place(t, (first_line + g) / 4) + g % 4 * 4;
    else return TILE::place(t, (first_line + g) / 2) + g % 2 * 8;
}
// The block's words for that step of depth.
template <class TILE, Side SIDE, class WORD, int BLOCK>
DEVICE void read_block(WORD (&x)[BLOCK], u32 at, int step)
{
    // Chunks are turned around by exclusive or: others of a row are found in the same way.
    constexpr u32 STEP_ROWS = 32 / TILE::BYTES, DEEP = TILE::NEAR == NEAR_DEPTH;
    const u32     here = DEEP ? at ^ u32(step) * 32 : at + u32(step) * STEP_ROWS * TILE::ROW_BYTES;
    if constexpr (TILE::BYTES == 8) {
        x[0] = load_double(here), x[1] = load_double(DEEP ? here + 8 * TILE::ROW_BYTES : here ^ 64);
    } else if constexpr (DEEP) {
        load_blocks(x, here);
    } else if constexpr (TILE::BYTES == 1) {
        // Two lines and two steps of depth in a word: of 16 lines the even ones first.
        WORD w[4];
        load_turned_blocks(w, here);
        UNROLLED for (int part = 0; part < 2; part++)
            UNROLLED for (int odd = 0; odd < 2; odd++) x[2 * odd + part] = second_bytes(w[2 * part], w[2 * part + 1], odd);
    } else if constexpr (TILE::BYTES == 2) {
        load_turned_blocks(x, here);
    } else {
        constexpr u32 NEXT = 4 * TILE::ROW_BYTES;
        constexpr int OTHER_HALF = SIDE == SIDE_A ? 1 : 2;
        x[0] = load_word(here), x[OTHER_HALF] = load_word(here ^ 32);
        x[3 - OTHER_HALF] = load_word(here + NEXT), x[3] = load_word((here + NEXT) ^ 32);
    }
    if constexpr (TILE::BYTES == 4) {
        UNROLLED for (int i = 0; i < 4; i++) x[i] = near_tf32(x[i]);
    }
}

template <class KIND, int TILE_M_, int TILE_N_, int WARPS_M, int WARPS_N, int STAGES_, Near A_NEAR, Near B_NEAR>
struct MmaShape {
    using Kind = KIND;
    using Sum = typename KIND::Sum;
    static constexpr int TILE_M = TILE_M_, TILE_N = TILE_N_, THREADS = 32 * WARPS_M * WARPS_N, STAGES = STAGES_;
    using A = OperandTile<KIND::BYTES, TILE_M, A_NEAR, THREADS>;
    using B = OperandTile<KIND::BYTES, TILE_N, B_NEAR, THREADS>;
    static constexpr int WARP_M = TILE_M / WARPS_M, WARP_N = TILE_N / WARPS_N, ROW_BLOCKS = WARP_M / 16, COLUMN_BLOCKS = WARP_N / 8;
    static constexpr int STAGE_BYTES = A::SIZE + B::SIZE, STEPS = A::DEPTH_BYTES / 32;
    static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "warps read 16 lines at once");
};

// The block's sums, a warp's part in its lanes' registers.
template <class SHAPE>
struct MmaSums {
    using Kind = typename SHAPE::Kind;
    using Sum = typename SHAPE::Sum;
    // Of 16 columns the even ones are the first block's.
    static constexpr bool IS_EVEN_FIRST = SHAPE::B::BYTES == 1 && SHAPE::B::NEAR == NEAR_LINE;
    Sum sum[SHAPE::ROW_BLOCKS][SHAPE::COLUMN_BLOCKS][4];
    u32 warp_row, warp_column, a_place[SHAPE::ROW_BLOCKS], b_place[SHAPE::COLUMN_BLOCKS / 2];

    DEVICE MmaSums()
    {
        const u32 warp = threadIdx.x / 32, down = SHAPE::TILE_M / SHAPE::WARP_M;
        warp_row = warp % down * SHAPE::WARP_M, warp_column = warp / down * SHAPE::WARP_N;
        UNROLLED for (int i = 0; i < SHAPE::ROW_BLOCKS; i++) a_place[i] = block_place<typename SHAPE::A, SIDE_A>(warp_row + 16 * u32(i));
        UNROLLED for (int j = 0; j < SHAPE::COLUMN_BLOCKS / 2; j++) b_place[j] = block_place<typename SHAPE::B, SIDE_B>(warp_column + 16 * u32(j)) + SHAPE::A::SIZE;
        UNROLLED for (int i = 0; i < SHAPE::ROW_BLOCKS; i++)
            UNROLLED for (int j = 0; j < SHAPE::COLUMN_BLOCKS; j++)
                UNROLLED for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    }
    // Steps of 32 bytes of depth; doubles' two by two.
    DEVICE void add_stage(u32 base)
    {
        constexpr int BLOCK = Kind::BLOCK, AT_ONCE = Kind::BYTES == 8 ? 2 : 1;
        UNROLLED for (int step = 0; step < SHAPE::STEPS; step += AT_ONCE) {
            typename Kind::Word a[SHAPE::ROW_BLOCKS][AT_ONCE * BLOCK], b[SHAPE::COLUMN_BLOCKS][AT_ONCE * BLOCK / 2];
            UNROLLED for (int s = 0; s < AT_ONCE; s++) {
                typename Kind::Word x[BLOCK];
                UNROLLED for (int j = 0; j < SHAPE::COLUMN_BLOCKS / 2; j++) {
                    read_block<typename SHAPE::B, SIDE_B>(x, base + b_place[j], step + s);
                    UNROLLED for (int e = 0; e < BLOCK; e++) b[2 * j + e / (BLOCK / 2)][s * (BLOCK / 2) + e % (BLOCK / 2)] = x[e];
                }
                UNROLLED for (int i = 0; i < SHAPE::ROW_BLOCKS; i++) {
                    read_block<typename SHAPE::A, SIDE_A>(x, base + a_place[i], step + s);
                    UNROLLED for (int e = 0; e < BLOCK; e++) a[i][s * BLOCK + e] = x[e];
                }
            }
            UNROLLED for (int i = 0; i < SHAPE::ROW_BLOCKS; i++)
                UNROLLED for (int j = 0; j < SHAPE::COLUMN_BLOCKS; j++) Kind::add(sum[i][j], a[i], b[j]);
        }
    }
    DEVICE void stage(u32 base) const
    {
        const u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        UNROLLED for (int i = 0; i < SHAPE::ROW_BLOCKS; i++)
            UNROLLED for (int j = 0; j < SHAPE::COLUMN_BLOCKS; j++) {
                const u32 row = warp_row + 16 * u32(i) + g;
                UNROLLED for (int half = 0; half < 2; half++) {
                    if constexpr (IS_EVEN_FIRST) stage_pair<SHAPE::TILE_N>(base, row + 8 * u32(half), warp_column + 16 * u32(j / 2) + 4 * t + 2 * u32(j % 2), sum[i][j / 2 * 2][2 * half + j % 2], sum[i][j / 2 * 2 + 1][2 * half + j % 2]);
                    else stage_pair<SHAPE::TILE_N>(base, row + 8 * u32(half), warp_column + 8 * u32(j) + 2 * t, sum[i][j][2 * half], sum[i][j][2 * half + 1]);
                }
            }
    }
};

// Tiles of which copies of the hardware leave chunks out: those from which fewer steps of depth are left, at least 1. And these
// chunks of a tile that is about to be read.
template <class A, class B>
DEVICE i64 rests_below(const A& a, const B& b, i64 depth)
{
    const i64 of_a = a.rest_below(depth), of_b = b.rest_below(depth), of_both = of_a < of_b ? of_b : of_a;
    return of_both < 1 ? 1 : of_both;
}
template <int STAGES, int A_SIZE, class A, class B>
DEVICE void copy_rests(const A& a, const B& b, u32 to, i64 left, i64 ahead, int tile_depth)
{
    const i64 tiles = ahead > 0 ? STAGES - 1 : (left + tile_depth - 1) / tile_depth;
    a.copy_rest(to, left, tiles), b.copy_rest(to + A_SIZE, left, tiles);
}

// The depth of one tile, STAGES - 1 tiles in flight.
template <int STAGES, int STAGE_BYTES, int A_SIZE, class A, class B, class SUMS>
DEVICE void sum_in_flight(A& a, B& b, SUMS& sums, i64 depth, int tile_depth)
{
    const u32 base = shared_begin(), end = base + STAGES * STAGE_BYTES;
    const i64 rest_below = rests_below(a, b, depth);
    i64       ahead = depth;                        // not asked for yet
    UNROLLED for (int s = 0; s < STAGES - 1; s++) {
        const u32 at = base + u32(s) * STAGE_BYTES;
        if (ahead > 0) a.copy(at, ahead), b.copy(at + A_SIZE, ahead);
        ahead -= tile_depth;
        close_group();
    }
    u32 read = base, write = base + (STAGES - 1) * STAGE_BYTES;
    // The inner loop is of tiles that have no rest but the first: what copies that costs the others neither a branch nor a register.
    ROLLED for (i64 left = depth; left > 0;) {
        wait_groups<STAGES - 2>();
        if (left < rest_below) copy_rests<STAGES, A_SIZE>(a, b, read, left, ahead, tile_depth);
        ROLLED do {
            wait_groups<STAGES - 2>();
            __syncthreads();
            if (ahead > 0) a.copy(write, ahead), b.copy(write + A_SIZE, ahead);
            ahead -= tile_depth, left -= tile_depth;
            close_group();
            sums.add_stage(read);
            read = read + STAGE_BYTES == end ? base : read + STAGE_BYTES;
            write = write + STAGE_BYTES == end ? base : write + STAGE_BYTES;
        } while (left >= rest_below);
    }
    wait_groups<0>();
    __syncthreads();
}

// The next tile waits in registers while this one is multiplied.
template <class SHAPE>
DEVICE void sum_in_registers(HeldReader<typename SHAPE::A>& a, HeldReader<typename SHAPE::B>& b, MmaSums<SHAPE>& sums, i64 depth)
{
    const u32 base = shared_begin();
    if (depth > 0) a.read(depth), b.read(depth), a.put(base), b.put(base + SHAPE::A::SIZE);
    u32 stage = base;
    ROLLED for (i64 left = depth; left > 0;) {
        __syncthreads();
        left -= SHAPE::A::DEPTH;
        if (left > 0) a.read(left), b.read(left);
        sums.add_stage(stage);
        stage = stage == base ? base + SHAPE::STAGE_BYTES : base;
        if (left > 0) a.put(stage), b.put(stage + SHAPE::A::SIZE);
    }
    __syncthreads();
}

template <class SHAPE, Loads LOADS>
DEVICE void mma_tile(const MmaNumbers& n)
{
    const MmaWork  w = mma_work<SHAPE::TILE_M, SHAPE::TILE_N>(n);
    MmaSums<SHAPE> sums;
    const i64      depth = w.end - w.first;
    if constexpr (LOADS == IN_FLIGHT) {
        AsyncReader<typename SHAPE::A> a(n.a, {w.batch, w.row, w.first, n.m - w.row});
        AsyncReader<typename SHAPE::B> b(n.b, {w.batch, w.column, w.first, n.n - w.column});
        sum_in_flight<SHAPE::STAGES, SHAPE::STAGE_BYTES, SHAPE::A::SIZE>(a, b, sums, depth, SHAPE::A::DEPTH);
    } else {
        static_assert(SHAPE::STAGES == 2, "one tile is read, one written");
        HeldReader<typename SHAPE::A> a(n.a, {w.batch, w.row, w.first, n.m - w.row});
        HeldReader<typename SHAPE::B> b(n.b, {w.batch, w.column, w.first, n.n - w.column});
        sum_in_registers<SHAPE>(a, b, sums, depth);
    }
    sums.stage(shared_begin());
    __syncthreads();
    store_tile<typename SHAPE::Sum, SHAPE::TILE_M, SHAPE::TILE_N, SHAPE::THREADS>(n, w, shared_begin());
}

}  // namespace
}  // namespace ng::kernels
