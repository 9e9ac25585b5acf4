// Matrix products of f32 by plain fused multiply-adds: c[m, n] = a[m, k] b[k, n] and an epilogue, one tile of c a block.
//
//   warp      4 x 8 lanes; a lane has PER_M x PER_N sums: its columns in fours that lie 32 apart, its rows in fours 16 apart or,
//             where a's depth is near, single ones 4 apart
//   shared    STAGES of a's and b's tiles as [DEPTH][lines + 4] floats, of such an a as kernels/gemm_mma_load.cuh says; then, in
//             the same place, the sums
// Each sum is one chain of multiply-adds in the order of k.
#pragma once
#include "kernels/gemm_mma_tile.cuh"

namespace ng::kernels {
namespace {

// A thread's part of tiles of f32 of any strides: chunks of four lines where those are neighbours, else single words. Single
// words that a warp copies at once are of one step of depth, or of 4 lines and 8 steps.
template <int LINES, int DEPTH, int THREADS>
struct WordReader {
    static constexpr int ROW_BYTES = (LINES + 4) * 4, SIZE = DEPTH * ROW_BYTES;
    static constexpr int FOURS = LINES / 4, WIDE_EACH = FOURS * DEPTH / THREADS, EACH = LINES * DEPTH / THREADS, RUN = 8, ACROSS = LINES * RUN / THREADS;
    static_assert(FOURS * DEPTH % THREADS == 0 && THREADS % LINES == 0 && DEPTH % RUN == 0 && LINES * RUN % THREADS == 0, "threads copy as much each");

    const char* from;
    i64         step, line_bytes, depth_bytes;
    i32         line, depth, lines_left; // of the thread's first word; lines_left: from it on
    i32         least;                   // as AsyncReader's
    bool        is_turned, is_cut;       // is_cut: as AsyncReader's

    DEVICE WordReader(const MmaOperand& o, const TileBegin& begin) : least(!o.is_wide ? 0 : o.is_padded ? 1 : 4), is_turned(o.is_turned)
    {
        const i32 t = i32(threadIdx.x);
        if (least > 0) line = t % FOURS * 4, depth = t / FOURS;
        else if (is_turned) line = t % LINES, depth = t / LINES;
        else line = t / RUN, depth = t % RUN;
        from = address_of(o, begin, line, depth);
        line_bytes = o.line * 4, depth_bytes = o.depth * 4, step = depth_bytes * DEPTH;
        lines_left = clamped(begin.lines_left - line, LINES);
        is_cut = begin.lines_left < LINES && begin.lines_left % 4 != 0;
    }
    DEVICE void copy(u32 to, i64 depth_left)
    {
        const i32 left = clamped(depth_left, DEPTH) - depth;
        const u32 at = to + u32(depth) * ROW_BYTES + u32(line) * 4;
        if (least > 0) {
            constexpr int APART = THREADS / FOURS;
            UNROLLED for (int c = 0; c < WIDE_EACH; c++)
                copy_async<16>(at + u32(c) * APART * ROW_BYTES, from + c * APART * depth_bytes, c * APART < left && lines_left >= least);
        } else if (is_turned) {
            constexpr int APART = THREADS / LINES;
            UNROLLED for (int c = 0; c < EACH; c++)
                copy_async<4>(at + u32(c) * APART * ROW_BYTES, from + c * APART * depth_bytes, c * APART < left && lines_left > 0);
        } else {
            constexpr int APART = THREADS / RUN;
            UNROLLED for (int r = 0; r < DEPTH / RUN; r++)
                UNROLLED for (int c = 0; c < ACROSS; c++)
                    copy_async<4>(at + u32(r) * RUN * ROW_BYTES + u32(c) * APART * 4, from + r * RUN * depth_bytes + c * APART * line_bytes, r * RUN < left && c * APART < lines_left);
        }
        from += step;
    }
    DEVICE i64 rest_below(i64) const { return least > 1 && is_cut ? EVERY_TILE : 0; }
    DEVICE void copy_rest(u32 to, i64 depth_left, i64 tiles) const
    {
        constexpr int APART = THREADS / FOURS;
        if (lines_left == 0 || lines_left >= least) return;
        const i32   left = clamped(depth_left, DEPTH) - depth;
        const char* there = from - tiles * step;
        ROLLED for (int c = 0; c < WIDE_EACH && c * APART < left; c++) copy_cut<4>(to + u32(depth + c * APART) * ROW_BYTES + u32(line) * 4, there + c * APART * depth_bytes, lines_left);
    }
};

// How a's tile comes, by what is near in it.
template <Near NEAR, int LINES, int DEPTH, int THREADS>
struct SideA {
    using Tile = WordReader<LINES, DEPTH, THREADS>;
    using Reader = Tile;
};
template <int LINES, int DEPTH_, int THREADS>
struct SideA<NEAR_DEPTH, LINES, DEPTH_, THREADS> {
    using Tile = OperandTile<4, LINES, NEAR_DEPTH, THREADS>;
    using Reader = AsyncReader<Tile>;
    static_assert(Tile::DEPTH == DEPTH_, "both sides have tiles of one depth");
};

template <int TILE_M_, int TILE_N_, int WARPS_M, int WARPS_N, int DEPTH_, int STAGES_, Near A_NEAR_>
struct SimtShape {
    static constexpr int  TILE_M = TILE_M_, TILE_N = TILE_N_, DEPTH = DEPTH_, STAGES = STAGES_, THREADS = 32 * WARPS_M * WARPS_N;
    static constexpr int  WARP_M = TILE_M / WARPS_M, WARP_N = TILE_N / WARPS_N, PER_M = WARP_M / 4, PER_N = WARP_N / 8;
    static constexpr Near A_NEAR = A_NEAR_;
    using A = SideA<A_NEAR, TILE_M, DEPTH, THREADS>;
    using B = WordReader<TILE_N, DEPTH, THREADS>;
    static constexpr int A_SIZE = A::Tile::SIZE, STAGE_BYTES = A_SIZE + B::SIZE;
    static_assert(PER_M % 4 == 0 && PER_N % 4 == 0, "lanes read four neighbours at once");
};

template <class SHAPE>
struct SimtSums {
    static constexpr int  PER_M = SHAPE::PER_M, PER_N = SHAPE::PER_N;
    static constexpr bool IS_DEEP = SHAPE::A_NEAR == NEAR_DEPTH;
    float sum[PER_M][PER_N];
    u32   row, column, a_place[2];       // row, column: of the lane's first; a_place: of its first row's even and odd chunks

    DEVICE SimtSums()
    {
        // Neighbouring pairs of lanes share columns, every sixteen share rows: reads of a quarter warp meet few banks.
        const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, down = SHAPE::TILE_M / SHAPE::WARP_M, lane_row = lane / 16 * 2 + lane % 2;
        row = warp % down * SHAPE::WARP_M + lane_row * (IS_DEEP ? 1 : 4), column = warp / down * SHAPE::WARP_N + lane / 2 % 8 * 4;
        if constexpr (IS_DEEP) a_place[0] = SHAPE::A::Tile::place(row, 0), a_place[1] = SHAPE::A::Tile::place(row, 1);
        UNROLLED for (int i = 0; i < PER_M; i++)
            UNROLLED for (int j = 0; j < PER_N; j++) sum[i][j] = 0;
    }
    // Four steps of depth of one row.
    DEVICE void read_row(u32 base, int i, int chunk, u32 (&a)[4]) const
    {
        // Rows that lie 4 apart are turned by 2 more: tiles are read where place() puts them.
        const int turned = chunk ^ (i % 2) * 2;
        load_four(base + a_place[turned % 2] + u32(i * 4 * SHAPE::A::Tile::ROW_BYTES + turned / 2 * 32), a);
    }
    DEVICE void read_a(u32 base, int depth, u32 (&a)[PER_M / 4][4]) const
    {
        UNROLLED for (int i = 0; i < PER_M / 4; i++) load_four(base + row * 4 + u32(depth * WordReader<SHAPE::TILE_M, SHAPE::DEPTH, SHAPE::THREADS>::ROW_BYTES + i * 64), a[i]);
    }
    DEVICE void read_b(u32 base, int depth, u32 (&b)[PER_N / 4][4]) const
    {
        UNROLLED for (int j = 0; j < PER_N / 4; j++) load_four(base + column * 4 + u32(SHAPE::A_SIZE + depth * SHAPE::B::ROW_BYTES + j * 128), b[j]);
    }
    DEVICE void add_row(int i, u32 a, const u32 (&b)[PER_N / 4][4])
    {
        UNROLLED for (int j = 0; j < PER_N; j++) sum[i][j] = __fmaf_rn(__uint_as_float(a), __uint_as_float(b[j / 4][j % 4]), sum[i][j]);
    }
    DEVICE void add_stage(u32 base)
    {
        u32 b[2][PER_N / 4][4];
        read_b(base, 0, b[0]);
        if constexpr (IS_DEEP) {
            UNROLLED for (int chunk = 0; chunk < SHAPE::DEPTH / 4; chunk++) {
                u32 a[PER_M][4];
                UNROLLED for (int i = 0; i < PER_M; i++) read_row(base, i, chunk, a[i]);
                UNROLLED for (int k = 0; k < 4; k++) {
                    const int depth = chunk * 4 + k;
                    if (depth + 1 < SHAPE::DEPTH) read_b(base, depth + 1, b[(depth + 1) % 2]);
                    UNROLLED for (int i = 0; i < PER_M; i++) add_row(i, a[i][k], b[depth % 2]);
                }
            }
        } else {
            u32 a[2][PER_M / 4][4];
            read_a(base, 0, a[0]);
            UNROLLED for (int k = 0; k < SHAPE::DEPTH; k++) {
                if (k + 1 < SHAPE::DEPTH) read_a(base, k + 1, a[(k + 1) % 2]), read_b(base, k + 1, b[(k + 1) % 2]);
                UNROLLED for (int i = 0; i < PER_M; i++) add_row(i, a[k % 2][i / 4][i % 4], b[k % 2]);
            }
        }
    }
    DEVICE void stage(u32 base) const
    {
        UNROLLED for (int i = 0; i < PER_M; i++)
            UNROLLED for (int j = 0; j < PER_N; j += 2)
                stage_pair<SHAPE::TILE_N>(base, row + u32(IS_DEEP ? i * 4 : i / 4 * 16 + i % 4), column + u32(j / 4 * 32 + j % 4), sum[i][j], sum[i][j + 1]);
    }
};

template <class SHAPE>
DEVICE void simt_tile(const MmaNumbers& n)
{
    const MmaWork     w = mma_work<SHAPE::TILE_M, SHAPE::TILE_N>(n);
    SimtSums<SHAPE>   sums;
    typename SHAPE::A::Reader a(n.a, {w.batch, w.row, w.first, n.m - w.row});
    typename SHAPE::B b(n.b, {w.batch, w.column, w.first, n.n - w.column});
    sum_in_flight<SHAPE::STAGES, SHAPE::STAGE_BYTES, SHAPE::A_SIZE>(a, b, sums, w.end - w.first, SHAPE::DEPTH);
    sums.stage(shared_begin());
    __syncthreads();
    store_tile<float, SHAPE::TILE_M, SHAPE::TILE_N, SHAPE::THREADS>(n, w, shared_begin());
}

}  // namespace
}  // namespace ng::kernels
