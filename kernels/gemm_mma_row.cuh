// Matrix products of one row by plain fused multiply-adds: c[1, n] = a[1, k] b[k, n] and an epilogue, TILE_N columns of c a block.
//
//   depth near    LANES threads have a column, of whose depth they read 16 bytes each, side by side
//   lines near    ACROSS lanes read 128 bytes of a step of depth, side by side, the warp DOWN steps at once; warps have steps in turn
//   shared        [warps of a column][TILE_N] sums
// Single elements are read where memory has no 16 bytes in a row. Each sum is of chains of multiply-adds, added in one order.
#pragma once
#include "kernels/gemm_mma_store.cuh"

namespace ng::kernels {
namespace {

// AT_ONCE: pieces of 16 bytes on their way to a thread.
template <class SUM, Near NEAR_, int WARPS_, int TILE_N_, int AT_ONCE_>
struct RowShape {
    using Sum = SUM;
    static constexpr bool IS_DEEP = NEAR_ == NEAR_DEPTH;
    static constexpr int  WARPS = WARPS_, TILE_N = TILE_N_, AT_ONCE = AT_ONCE_, PIECE = 16 / int(sizeof(SUM));
    static constexpr int  LANES = 32 * WARPS / TILE_N, ACROSS = 8, DOWN = 32 / ACROSS;
    static constexpr int  ROWS = !IS_DEEP ? WARPS : LANES > 32 ? LANES / 32 : 1;
    static_assert(TILE_N % MMA_FOUR == 0 && LANES * TILE_N == 32 * WARPS, "threads store four neighbours, columns have as many threads each");
    static_assert(IS_DEEP || TILE_N == ACROSS * PIECE, "lanes have 16 bytes of columns");
};

DEVICE float  plus_product(float x, float y, float sum) { return __fmaf_rn(x, y, sum); }
DEVICE double plus_product(double x, double y, double sum) { return fma(x, y, sum); }

// `left` of neighbours, all of them at once if IS_WIDE.
template <bool IS_WIDE, class SUM, int COUNT>
DEVICE void read_along(const SUM* from, i64 step, Neighbours<SUM, COUNT>& to, i32 left = COUNT)
{
    if constexpr (IS_WIDE) to = *reinterpret_cast<const Neighbours<SUM, COUNT>*>(from);
    else
        UNROLLED for (int j = 0; j < COUNT; j++)
            if (j < left) to.e[j] = from[j * step];
}
template <class SUM>
DEVICE const SUM* first_of(const MmaOperand& o, const TileBegin& begin) { return reinterpret_cast<const SUM*>(address_of(o, begin, 0, 0)); }

// A thread's share of `depth` steps of a column: every LANES-th piece of 16 bytes, and an element of what is before and behind those.
template <class S, bool IS_WIDE, bool IS_A_WIDE>
DEVICE typename S::Sum sum_of_depth(const typename S::Sum* a, i64 a_step, const typename S::Sum* b, i64 b_step, i64 depth)
{
    using Sum = typename S::Sum;
    constexpr int PIECE = IS_WIDE ? S::PIECE : 1, BATCH = IS_WIDE ? S::AT_ONCE : 2 * S::AT_ONCE;
    constexpr i64 APART = S::LANES * PIECE;
    const i64 lane = threadIdx.x % S::LANES, before = -i64(reinterpret_cast<unsigned long long>(b) / sizeof(Sum)) & (PIECE - 1);
    const i64 head = before < depth ? before : depth, behind = (depth - head) % PIECE;
    Sum       sum[PIECE] = {};
    if (lane < head) sum[0] = plus_product(a[lane * a_step], b[lane * b_step], sum[0]);
    if (lane < behind) sum[0] = plus_product(a[(depth - behind + lane) * a_step], b[(depth - behind + lane) * b_step], sum[0]);
    i64 left = (depth - head - behind - lane * PIECE + APART - 1) / APART;
    ROLLED for (a += (head + lane * PIECE) * a_step, b += (head + lane * PIECE) * b_step; left > 0; left -= BATCH) {
        Neighbours<Sum, PIECE> x[BATCH], y;
        const i32 here = clamped(left, BATCH);
        UNROLLED for (int i = 0; i < BATCH; i++)
            if (i < here) read_along<IS_WIDE>(b + i * APART * b_step, b_step, x[i]);
        UNROLLED for (int i = 0; i < BATCH; i++) {
            if (i >= here) continue;
            read_along<IS_A_WIDE>(a + i * APART * a_step, a_step, y);
            UNROLLED for (int j = 0; j < PIECE; j++) sum[j] = plus_product(y.e[j], x[i].e[j], sum[j]);
        }
        a += BATCH * APART * a_step, b += BATCH * APART * b_step;
    }
    UNROLLED for (int half = PIECE / 2; half > 0; half /= 2)
        UNROLLED for (int j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}
template <class S>
DEVICE typename S::Sum sum_of_column(const MmaNumbers& n, const TileBegin& at, i64 depth)
{
    using Sum = typename S::Sum;
    const Sum *const a = first_of<Sum>(n.a, {at.batch, 0, at.depth, 0}), *const b = first_of<Sum>(n.b, at);
    if (n.b.depth != 1) return sum_of_depth<S, false, false>(a, n.a.depth, b, n.b.depth, depth);
    const bool is_alike = n.a.depth == 1 && (reinterpret_cast<unsigned long long>(a) - reinterpret_cast<unsigned long long>(b)) % 16 == 0;
    return is_alike ? sum_of_depth<S, true, true>(a, 1, b, 1, depth) : sum_of_depth<S, true, false>(a, n.a.depth, b, 1, depth);
}

// A lane's columns, neighbours or each ACROSS from the last, as many as are left: over every WARPS * DOWN-th step of depth.
template <class S, bool IS_WIDE>
DEVICE void sum_of_lines(const MmaNumbers& n, const TileBegin& at, i64 depth, typename S::Sum (&sum)[S::PIECE])
{
    using Sum = typename S::Sum;
    constexpr int BATCH = IS_WIDE ? S::AT_ONCE : S::AT_ONCE / 2;
    constexpr i64 APART = S::WARPS * S::DOWN;
    constexpr i64 BESIDE = IS_WIDE ? 1 : S::ACROSS;
    const i64  first = threadIdx.x / S::ACROSS, a_apart = APART * n.a.depth, b_apart = APART * n.b.depth;
    const i32  room = clamped((at.lines_left + BESIDE - 1) / BESIDE, S::PIECE);
    const Sum *from_a = first_of<Sum>(n.a, {at.batch, 0, at.depth, 0}) + first * n.a.depth, *from_b = first_of<Sum>(n.b, at) + first * n.b.depth;
    ROLLED for (i64 left = (depth - first + APART - 1) / APART; left > 0; left -= BATCH) {
        Neighbours<Sum, S::PIECE> x[BATCH];
        Sum                       y[BATCH];
        const i32 here = clamped(left, BATCH);
        UNROLLED for (int i = 0; i < BATCH; i++)
            if (i < here) read_along<IS_WIDE>(from_b + i * b_apart, BESIDE * n.b.line, x[i], room), y[i] = from_a[i * a_apart];
        UNROLLED for (int i = 0; i < BATCH; i++)
            if (i < here)
                UNROLLED for (int j = 0; j < S::PIECE; j++) sum[j] = IS_WIDE || j < room ? plus_product(y[i], x[i].e[j], sum[j]) : sum[j];
        from_a += BATCH * a_apart, from_b += BATCH * b_apart;
    }
}

template <class S>
DEVICE void mma_row(const MmaNumbers& n)
{
    using Sum = typename S::Sum;
    __shared__ Sum parts[S::ROWS][S::TILE_N];
    const MmaWork w = mma_work<1, S::TILE_N>(n);
    const int     warp = int(threadIdx.x / 32), lane = int(threadIdx.x % 32);
    const i64     depth = w.end - w.first;
    if constexpr (S::IS_DEEP) {
        const int       column = int(threadIdx.x) / S::LANES;
        const TileBegin at = {w.batch, w.column + column, w.first, n.n - w.column - column};
        Sum             sum = at.lines_left > 0 ? sum_of_column<S>(n, at, depth) : Sum(0);
        UNROLLED for (int reach = (S::LANES < 32 ? S::LANES : 32) / 2; reach > 0; reach /= 2) sum += __shfl_xor_sync(~0u, sum, reach);
        if (lane % S::LANES == 0) parts[warp % S::ROWS][column] = sum;
    } else {
        const i64       left = n.n - w.column;
        const bool      is_wide = n.b.is_wide && (left >= S::TILE_N || left % S::PIECE == 0);
        const int       beside = is_wide ? 1 : S::ACROSS, first = lane % S::ACROSS * (is_wide ? S::PIECE : 1);
        const TileBegin at = {w.batch, w.column + first, w.first, left - first};
        Sum             sum[S::PIECE] = {};
        if (at.lines_left > 0) {
            if (is_wide) sum_of_lines<S, true>(n, at, depth, sum);
            else sum_of_lines<S, false>(n, at, depth, sum);
        }
        UNROLLED for (int reach = S::ACROSS; reach < 32; reach *= 2)
            UNROLLED for (int j = 0; j < S::PIECE; j++) sum[j] += __shfl_xor_sync(~0u, sum[j], reach);
        if (lane < S::ACROSS)
            UNROLLED for (int j = 0; j < S::PIECE; j++) parts[warp][first + j * beside] = sum[j];
    }
    __syncthreads();
    const i32 first = i32(threadIdx.x) * MMA_FOUR;
    const i64 column = w.column + first;
    if (first >= S::TILE_N || column >= n.n) return;
    FourSums<Sum> all = {};
    UNROLLED for (int r = 0; r < S::ROWS; r++)
        UNROLLED for (int j = 0; j < MMA_FOUR; j++) all.sum[j] += parts[r][first + j];
    if (n.partial) *reinterpret_cast<FourSums<Sum>*>(partial_at<Sum>(n, w.split, w.batch, 0, column)) = all;
    else finish_alone(n, w.batch, 0, column, all.sum);             // folds want more rows
}

}  // namespace
}  // namespace ng::kernels
