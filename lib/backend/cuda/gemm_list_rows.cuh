// What a list folds of a portable product's tile, whose threads have eight neighbours of a row at a time.
#pragma once
#include "lib/backend/cuda/gemm_list.cuh"

namespace ng::kernels {
namespace {

// A warp goes through rows of its own from the top to the bottom, as store_tile has it: over columns eight threads give a part at once, over rows a
// warp does behind each LIST_PART_ROWS.
template <int TILE_M, int TILE_N, int THREADS>
struct MmaFolds {
    static constexpr int COUNT = 8, IN_ROW = TILE_N / COUNT, AT_ONCE = 32 / IN_ROW, SHARING = LIST_PART_COLUMNS / COUNT, OF_WARP = TILE_M * 32 / THREADS;
    // Others have no registers for it.
    static constexpr bool HAS_FOLDS = THREADS <= LIST_FOLD_THREADS, HAS_ROWS = HAS_FOLDS && TILE_M == LIST_FOLD_ROWS;
    static_assert(!HAS_ROWS || OF_WARP % LIST_PART_ROWS == 0, "a warp has whole parts");
    static_assert(32 % IN_ROW == 0 && IN_ROW % SHARING == 0, "a row's threads are of one warp, and so are a part's");
    i64 m, n;
    const Epilogue* e;
    i64 batch, row, column;              // of the neighbours that are folded next
    u32 total[HAS_ROWS ? LIST_FOLDS : 1][COUNT];

    template <class Numbers>
    DEVICE void begin(const Numbers& numbers)
    {
        m = numbers.m, n = numbers.n, e = &numbers.epilogue;
    }
    DEVICE bool is_any() const { return HAS_FOLDS && has_list_folds(*e); }
    template <class Two>
    DEVICE void fold(u32 number, const Two& two, const float (&v)[COUNT])
    {
        if constexpr (HAS_FOLDS)
            if (is_over_columns(*e)) return put_row(number, two, v);
        if constexpr (HAS_ROWS) {
            // By copies: a pointer to one of them would have all of them in memory.
            static_assert(LIST_FOLDS == 2, "one or the other");
            const bool is_other = list_fold_index(number) > 0;
            u32        mine[COUNT];
            UNROLLED for (int c = 0; c < COUNT; c++) mine[c] = is_other ? total[1][c] : total[0][c];
            add_columns(number, two, v, mine);
            UNROLLED for (int c = 0; c < COUNT; c++) total[0][c] = is_other ? total[0][c] : mine[c], total[1][c] = is_other ? mine[c] : total[1][c];
        }
    }
    // From a part's mean.
    DEVICE void fold_squares(u32 number, const float (&v)[COUNT]) const
    {
        if constexpr (!HAS_FOLDS) return;
        const SumTwo two;
        u32 x[COUNT], far[COUNT];
        const i64 left = n - part() * LIST_PART_COLUMNS;
        take(v, 0, x);
        const u32 pivot = mean_of(fold_lanes<1, SHARING>(two, fold_tree(two, x)), left, LIST_PART_COLUMNS);
        take(v, pivot, x);
        take_off(pivot, x, far);
        const RowSquares all = {pivot, fold_lanes<1, SHARING>(two, fold_tree(two, x)), fold_lanes<1, SHARING>(two, fold_tree(two, far))};
        if (puts()) put_squares(*e, number, batch, row, part(), all, left < LIST_PART_COLUMNS ? i32(left) : LIST_PART_COLUMNS);
    }

  private:
    DEVICE i64  part() const { return column / LIST_PART_COLUMNS; }
    DEVICE bool puts() const { return column == part() * LIST_PART_COLUMNS && row < m && column < n; }
    DEVICE void take(const float (&v)[COUNT], u32 other, u32 (&x)[COUNT]) const
    {
        UNROLLED for (int c = 0; c < COUNT; c++) x[c] = column + c < n ? __float_as_uint(v[c]) : other;
    }
    template <class Two>
    DEVICE void put_row(u32 number, const Two& two, const float (&v)[COUNT]) const
    {
        u32 x[COUNT];
        take(v, two.start(), x);
        const u32 all = fold_lanes<1, SHARING>(two, fold_tree(two, x));
        if (puts()) put_listed(*e, number, 0, batch, row, part(), all);
    }
    template <class Two>
    DEVICE void add_columns(u32 number, const Two& two, const float (&v)[COUNT], u32 (&sums)[COUNT])
    {
        const i32 lane = i32(threadIdx.x) & 31, in_part = i32(row & (LIST_PART_ROWS - 1)) - lane / IN_ROW;
        UNROLLED for (int c = 0; c < COUNT; c++) {
            const u32 x = row < m ? __float_as_uint(v[c]) : two.start();
            sums[c] = in_part == 0 ? x : two(sums[c], x);
            if (in_part + AT_ONCE != LIST_PART_ROWS) continue;
            const u32 all = fold_lanes<IN_ROW, 32>(two, sums[c]);
            const i64 first = row - lane / IN_ROW - in_part;
            if (lane < IN_ROW && first < m && column + c < n) put_listed(*e, number, 0, batch, first / LIST_PART_ROWS, column + c, all);
        }
    }
};

}  // namespace
}  // namespace ng::kernels
