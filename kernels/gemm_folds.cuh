// Folds of a product's sums over columns or rows, while these are in registers: every tile gives a part, a kernel behind it the rest.
//
//   over columns   a thread folds its neighbours of a row, then from chunk to chunk; lanes that share a row meet by shuffles
//   over rows      a thread folds its rows of a chunk, lanes that share columns meet, and a warp gives a part of 16 rows
//   from a pivot   a part's terms are taken as differences from one number: the mean of a row's first columns, or the first row
// Each meets in one order, so results do not vary.
#pragma once
#include "kernels/gemm_epilogue.cuh"

namespace ng::kernels {
namespace {

// c's type: constant where a text says it, so that it has no code for others.
template <class Output>
DEVICE i32 result_type(const Output& o)
{
    return RESULT_TYPE >= 0 ? RESULT_TYPE : o.c_type;
}
template <class Output>
DEVICE bool is_of_halves(const Output& o)
{
    return result_type(o) == F16 || result_type(o) == BF16;
}
// Of sums that are integers.
template <class Output>
DEVICE bool stays_integer(const Output& o)
{
    return RESULT_TYPE >= 0 ? RESULT_TYPE < F32 : !o.epilogue.is_cast;
}

constexpr bool HAS_RESULT = RESULT_BYTES > 0;
constexpr bool OVER_A_ROW = FOLDS > 0 && FOLDED == OVER_COLUMNS, OVER_A_COLUMN = FOLDS > 0 && FOLDED == OVER_ROWS;
constexpr int  MOST_FOLDS = FOLDS > 0 ? FOLDS : 1;

template <int FOLD>
DEVICE FoldTotal fold_begin()
{
    return {fold_start<FOLD>(), 0};
}
constexpr u32 ABSENT = 0x7fa51d00;       // in place of what is no term: bits of a NaN that no instruction gives
template <int FOLD>
DEVICE u32 present(u32 x, u32 pivot)
{
    return FOLD_TERMS[FOLD] >= TERM_OFF && x == ABSENT ? pivot : x;
}
template <int FOLD>
DEVICE u32 term_of(u32 x, u32 pivot)
{
    if constexpr (FOLD_TERMS[FOLD] < TERM_OFF) return x;
    const float off = __uint_as_float(x) - __uint_as_float(pivot);
    return __float_as_uint(FOLD_TERMS[FOLD] == TERM_OFF ? off : off * off);
}

// What goes through folds begins with this one. Neighbours that are not there take no part.
template <int FOLD = 0, int COUNT>
DEVICE void leave_out(EpilogueTerms<COUNT>& terms, i32 valid)
{
    if constexpr (FOLD < FOLDS) {
        UNROLLED for (int j = 0; j < COUNT; j++)
            if (j >= valid) terms.of[FOLD][j] = FOLD_TERMS[FOLD] >= TERM_OFF ? ABSENT : fold_start<FOLD>();
        leave_out<FOLD + 1>(terms, valid);
    }
}
// A text's fold of this number, where a list has SumTwo and OtherTwo.
template <int FOLD>
struct TextTwo {
    DEVICE u32 operator()(u32 x, u32 y) const { return fold_two<FOLD>(x, y); }
};
template <class Two, int COUNT>
DEVICE u32 fold_tree(const Two& two, const u32 (&x)[COUNT])
{
    static_assert((COUNT & (COUNT - 1)) == 0, "halves of halves");
    u32 v[COUNT];
    UNROLLED for (int j = 0; j < COUNT; j++) v[j] = x[j];
    UNROLLED for (int reach = COUNT / 2; reach > 0; reach /= 2)
        UNROLLED for (int j = 0; j < reach; j++) v[j] = two(v[j], v[j + reach]);
    return v[0];
}
// Lanes that differ in bits FIRST .. LAST / 2 of their number.
template <int FIRST, int LAST, class Two>
DEVICE u32 fold_lanes(const Two& two, u32 x)
{
    UNROLLED for (int reach = FIRST; reach < LAST; reach *= 2) x = two(x, __shfl_xor_sync(~0u, x, reach));
    return x;
}
// COUNT values of each of the COUNT lanes that differ in the upper bits of their number: each lane gets one of them for all.
template <class Two, int COUNT>
DEVICE u32 fold_spread(const Two& two, u32 (&x)[COUNT], i32& slot)
{
    const i32 lane = i32(threadIdx.x) & 31;
    slot = 0;
    UNROLLED for (int half = COUNT / 2; half > 0; half /= 2) {
        const int  reach = 32 * half / COUNT;
        const bool is_upper = lane & reach;
        slot += is_upper ? half : 0;
        UNROLLED for (int j = 0; j < half; j++) {
            const u32 mine = is_upper ? x[j + half] : x[j], given = is_upper ? x[j] : x[j + half];
            x[j] = two(mine, __shfl_xor_sync(~0u, given, reach));
        }
    }
    return x[0];
}
// Of the `count` first of so many terms, or of all.
DEVICE u32 mean_of(u32 sum, i64 terms, i32 count) { return __float_as_uint(__uint_as_float(sum) / float(terms < count ? i32(terms) : count)); }
// row or column: the part.
DEVICE void put_part(const Epilogue& e, i32 tensor, i64 batch, i64 row, i64 column, u32 x)
{
    const EpilogueTensor& t = e.tensor[tensor];
    static_cast<u32*>(const_cast<void*>(t.data))[to_batch(e, tensor, batch) + row * t.row + column * t.column] = x;
}

// ---- chunks of a warp's 16 rows, one beside the other ------------------------------------------------------------------------

constexpr i32 PART_ROWS = 16;            // of a fold over rows

// Where a thread's terms of a chunk of 16 rows and 32 columns are: MINE rows, and of each 2^LOG lanes have eight or four columns.
// Pairs: as wgmma leaves sums, eight pairs, number i in group i / 2 of eight columns, in one of two rows eight apart. Fours: four
// of them, in rows four apart.
struct OfPairs {
    static constexpr int COUNT = 2, EACH = 8, ROWS = 2, COLUMNS = 8, SHARING = 4;
    DEVICE static constexpr int term(int row, int column) { return column / 2 * 2 + row; }
    DEVICE static i32 row_of(i32 lane, int row) { return (lane >> 2) + row * 8; }
    DEVICE static i32 column_of(i32 lane, i32 slot) { return (slot >> 1) * 8 + (lane & 3) * 2 + (slot & 1); }
};
struct OfFours {
    static constexpr int COUNT = 4, EACH = 4, ROWS = 4, COLUMNS = 4, SHARING = 8;
    DEVICE static constexpr int term(int row, int) { return row; }
    DEVICE static i32 row_of(i32 lane, int row) { return row * 4 + (lane >> 3); }
    DEVICE static i32 column_of(i32 lane, i32 slot) { return (lane & 7) * 4 + slot; }
};

// A chunk's first row and column, how many c has, whether a part's rows begin with it, and whether some of it is absent.
struct FoldSpot {
    i64  batch, row, column, rows, columns;
    bool begins, is_edge;
};

// What a warp folds of its chunks from the left to the right.
template <class Of>
struct ChunkFolds {
    FoldTotal total[MOST_FOLDS][Of::ROWS];
    u32       pivot[OVER_A_ROW ? Of::ROWS : Of::COLUMNS];

    template <int FOLD = 0>
    DEVICE void begin()
    {
        if constexpr (FOLD < FOLDS) {
            UNROLLED for (int r = 0; r < Of::ROWS; r++) total[FOLD][r] = fold_begin<FOLD>();
            begin<FOLD + 1>();
        }
    }
    template <int FOLD = 0>
    DEVICE void add(const Epilogue& e, const FoldSpot& first, const EpilogueTerms<Of::COUNT> (&terms)[Of::EACH])
    {
        if constexpr (FOLD < FOLDS) {
            if constexpr (OVER_A_ROW) add_rows<FOLD>(first, terms);
            else put_columns<FOLD>(e, first, terms);
            add<FOLD + 1>(e, first, terms);
        }
    }
    // Behind the last chunk; of a tile that has columns, for there are as many parts as such tiles side by side.
    template <int FOLD = 0>
    DEVICE void end(const Epilogue& e, const FoldSpot& first, i64 part)
    {
        if constexpr (OVER_A_ROW && FOLD < FOLDS) {
            const i32 lane = i32(threadIdx.x) & 31;
            UNROLLED for (int r = 0; r < Of::ROWS; r++) {
                const u32 all = FOLD == PIVOT ? pivot[r] : fold_lanes<1, Of::SHARING>(TextTwo<FOLD>(), fold_total<FOLD>(total[FOLD][r]));
                const i64 at = first.row + Of::row_of(lane, r);
                if (lane % Of::SHARING == 0 && at < first.rows) put_part(e, FIRST_FOLD + FOLD, first.batch, at, part, all);
                total[FOLD][r] = fold_begin<FOLD>();
            }
            end<FOLD + 1>(e, first, part);
        }
    }

  private:
    template <int FOLD>
    DEVICE void add_rows(const FoldSpot& first, const EpilogueTerms<Of::COUNT> (&terms)[Of::EACH])
    {
        if (FOLD == PIVOT && !first.begins) return;
        UNROLLED for (int r = 0; r < Of::ROWS; r++) {
            u32 x[Of::COLUMNS];
            UNROLLED for (int c = 0; c < Of::COLUMNS; c++) x[c] = terms[Of::term(r, c)].of[FOLD][c % Of::COUNT];
            if constexpr (FOLD_TERMS[FOLD] >= TERM_OFF) {
                if (first.is_edge) UNROLLED for (int c = 0; c < Of::COLUMNS; c++) x[c] = present<FOLD>(x[c], pivot[r]);
                UNROLLED for (int c = 0; c < Of::COLUMNS; c++) x[c] = term_of<FOLD>(x[c], pivot[r]);
            }
            if constexpr (FOLD == PIVOT) pivot[r] = mean_of(fold_lanes<1, Of::SHARING>(TextTwo<FOLD>(), fold_tree(TextTwo<FOLD>(), x)), first.columns - first.column, 32);
            else total[FOLD][r] = fold_more<FOLD>(total[FOLD][r], fold_tree(TextTwo<FOLD>(), x));
        }
    }
    template <int FOLD>
    DEVICE void put_columns(const Epilogue& e, const FoldSpot& first, const EpilogueTerms<Of::COUNT> (&terms)[Of::EACH])
    {
        const i32 lane = i32(threadIdx.x) & 31;
        u32 x[Of::COLUMNS];
        UNROLLED for (int c = 0; c < Of::COLUMNS; c++) {
            u32 down[Of::ROWS];
            UNROLLED for (int r = 0; r < Of::ROWS; r++) down[r] = term_of<FOLD>(present<FOLD>(terms[Of::term(r, c)].of[FOLD][c % Of::COUNT], pivot[c]), pivot[c]);
            // A pivot is the first row's, to which others add nothing.
            if constexpr (FOLD == PIVOT) pivot[c] = __shfl_sync(~0u, down[0], lane % Of::SHARING, 32), x[c] = lane < Of::SHARING ? pivot[c] : 0;
            else x[c] = fold_tree(TextTwo<FOLD>(), down);
        }
        i32       slot;
        const u32 all = fold_spread(TextTwo<FOLD>(), x, slot);
        const i64 at = first.column + Of::column_of(lane, slot);
        if (first.row < first.rows && at < first.columns) put_part(e, FIRST_FOLD + FOLD, first.batch, first.row / PART_ROWS, at, all);
    }
};

}  // namespace
}  // namespace ng::kernels
