// Neighbours of a row of sums as an epilogue meets them: where they are, and how what it reads comes to them.
//
// A text with an epilogue defines HAS_EPILOGUE as true before this, HAS_BOX where a tensor comes by the copy engine, and HAS_OUTER
// where batches of tensors are two axes; behind it EpilogueOperands and its two functions. These take operands from a source: fetch<TENSOR, KIND, VECTOR>(neighbours), VECTOR
// numbering those that wait in shared memory. It says how many FOLDS it has and which is the first one's tensor, what of the
// neighbours they fold (EpilogueTerms), and how (gemm_folds.cuh); how many bytes an element of c has, 0 where that is not
// written, and of which type it is, -1: as numbers say; and about how many instructions it is for a sum.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/gemm_list.h"

#ifndef HAS_EPILOGUE
#define HAS_EPILOGUE false
#endif
#ifndef HAS_BOX
#define HAS_BOX false
#endif
#ifndef HAS_OUTER
#define HAS_OUTER false
#endif
#ifndef HAS_LIST
#define HAS_LIST false
#endif

namespace ng::kernels {
namespace {

// `valid` of COUNT columns are there; the first is a multiple of COUNT, 2 or 4.
struct EpilogueSpot {
    i64 batch, row, column;
    i32 valid;
};

// Elements as they lie in memory.
template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Neighbours {
    T e[COUNT];
};

// Elements on their way, as the words that they come in: each is taken out of these where it is used. Were it taken out where it is fetched, its thread would
// wait there for every access in turn.
template <class T, int COUNT>
struct Arriving {
    static constexpr int BYTES = sizeof(T), WORDS = (BYTES * COUNT + 3) / 4, IN_WORD = BYTES < 4 ? 4 / BYTES : 1, IN_EACH = BYTES > 4 ? BYTES / 4 : 1;
    u32  word[WORDS];
    bool is_same;                        // the first one is all of them

    DEVICE T operator[](int j) const
    {
        const int first = j / IN_WORD * IN_EACH;
        u64 bits[1] = {(is_same ? word[0] : word[first]) >> (is_same ? 0 : j % IN_WORD * (8 * BYTES % 32))};
        if constexpr (IN_EACH == 2) bits[0] |= u64(is_same ? word[1] : word[first + 1]) << 32;
        return struct_in<T>(bits);
    }
    // NEAR of them, by accesses as wide as they can be.
    template <int NEAR>
    DEVICE void read(const T* from)
    {
        if constexpr (NEAR * BYTES == 1) word[0] = *reinterpret_cast<const u8*>(from);
        else if constexpr (NEAR * BYTES == 2) word[0] = *reinterpret_cast<const u16*>(from);
        else {
            const auto all = *reinterpret_cast<const Neighbours<u32, NEAR * BYTES / 4>*>(from);
            UNROLLED for (int i = 0; i < NEAR * BYTES / 4; i++) word[i] = all.e[i];
        }
    }
    DEVICE void pack(const T (&each)[COUNT])
    {
        UNROLLED for (int i = 0; i < WORDS; i++) word[i] = 0;
        UNROLLED for (int j = 0; j < COUNT; j++) {
            const u64 bits = load_bits(BYTES, each, j);
            word[j / IN_WORD * IN_EACH] |= u32(bits) << (j % IN_WORD * (8 * BYTES % 32));
            if constexpr (IN_EACH == 2) word[j * 2 + 1] = u32(bits >> 32);
        }
    }
};

DEVICE u32 bits_of(float x) { return __float_as_uint(x); }
DEVICE u32 bits_of(i32 x) { return u32(x); }

// How a text's tensors come.
#if HAS_EPILOGUE
DEVICE constexpr int kind_of(int tensor)
{
    return tensor == 0 ? KIND_0 : tensor == 1 ? KIND_1 : tensor == 2 ? KIND_2 : tensor == 3 ? KIND_3 : tensor == 4 ? KIND_4 : tensor == 5 ? KIND_5 : tensor == 6 ? KIND_6 : KIND_7;
}
#else
DEVICE constexpr int kind_of(int) { return ANYHOW; }
#endif
DEVICE constexpr bool is_vector(int tensor) { return kind_of(tensor) == OF_COLUMNS || kind_of(tensor) == OF_ROWS; }
DEVICE constexpr int  vector_count(int from = 0) { return from == EPILOGUE_TENSORS ? 0 : is_vector(from) + vector_count(from + 1); }
static_assert(EPILOGUE_TENSORS == 8, "as many as kind_of knows");
// Which tensor is the vector of this number, -1: none, and whether columns have an element each: a list says so when it is run.
DEVICE i32 vector_tensor(const Epilogue& e, int vector, int tensor) { return HAS_LIST ? list_vector(e.numbers[0], vector) : tensor; }
DEVICE bool is_of_columns(const Epilogue& e, i32 tensor) { return HAS_LIST ? (e.tensor[tensor].kind & 255) == OF_COLUMNS : kind_of(tensor) == OF_COLUMNS; }

// The struct of a text's numbers, from the words that hold it.
template <class N>
DEVICE N numbers_of(const Epilogue& e)
{
    return struct_in<N>(e.numbers);
}

// Elements from a tensor's first to a batch's.
DEVICE i64 to_batch(const Epilogue& e, int tensor, i64 batch)
{
    if constexpr (HAS_OUTER) {
        const i32 inner = i32(e.inner), outer = i32(batch) / inner;
        return (i32(batch) - outer * inner) * e.tensor[tensor].batch + outer * e.outer[tensor];
    }
    return batch * e.tensor[tensor].batch;
}

// Where a row of a tensor begins.
template <int TENSOR, class T>
DEVICE const T* row_of(const Epilogue& e, const EpilogueSpot& at)
{
    return static_cast<const T*>(e.tensor[TENSOR].data) + (to_batch(e, TENSOR, at.batch) + at.row * e.tensor[TENSOR].row);
}

template <int TENSOR, class T, int COUNT>
DEVICE void fetch_neighbours(const Epilogue& e, const EpilogueSpot& at, Arriving<T, COUNT>& to)
{
    const EpilogueTensor& t = e.tensor[TENSOR];
    to.is_same = t.together == 0;
    if (at.valid <= 0) return;
    const T* const row = row_of<TENSOR, T>(e, at);
    if (__builtin_expect(t.together >= COUNT && at.valid == COUNT, true)) {
        to.template read<COUNT>(row + at.column);
    } else if (__builtin_expect(to.is_same, true)) {
        to.template read<1>(row);
    } else {
        T each[COUNT];
        UNROLLED for (int j = 0; j < COUNT; j++) each[j] = row[(at.column + (j < at.valid ? j : 0)) * t.column];
        to.pack(each);
    }
}
template <int TENSOR, class T, int COUNT>
DEVICE void put_neighbours(const Epilogue& e, const EpilogueSpot& at, const Neighbours<T, COUNT>& v)
{
    const EpilogueTensor& t = e.tensor[TENSOR];
    if (!t.data) return;                                     // an output that is not wanted
    T* const row = const_cast<T*>(row_of<TENSOR, T>(e, at));
    if (t.together >= COUNT && at.valid == COUNT) *reinterpret_cast<Neighbours<T, COUNT>*>(row + at.column) = v;
    else
        UNROLLED for (int j = 0; j < COUNT; j++)
            if (j < at.valid) row[(at.column + j) * t.column] = v.e[j];
}

// Operands from where they lie.
struct FromMemory {
    const Epilogue&     epilogue;
    const EpilogueSpot& at;

    template <int TENSOR, int KIND, int VECTOR, class T, int COUNT>
    DEVICE void fetch(Arriving<T, COUNT>& to) const
    {
        fetch_neighbours<TENSOR>(epilogue, at, to);
    }
};

// What a fold is of: what the text gives as terms; a number near them for each part (PIVOT); a one for each (COUNT); how far they are
// off the pivot, or the squares of this: sums of squares from anywhere else lose what is left of a variance.
constexpr int TERM_ITSELF = 0, TERM_PIVOT = 1, TERM_COUNT = 2, TERM_OFF = 3, TERM_OFF_SQUARED = 4;

// A fold of many values on its way: a number, and of sums what its roundings lost.
struct FoldTotal {
    u32 bits, rest;
};

// What stands for a text where there is none; a list's own functions are in gemm_list.cuh.
#if !HAS_EPILOGUE || HAS_LIST
constexpr int EPILOGUE_WEIGHT = HAS_LIST, RESULT_BYTES = HAS_LIST ? 2 : 4, RESULT_TYPE = -1, FOLDS = 0, FIRST_FOLD = 0, FOLDED = ANYHOW, PIVOT = -1, FOLD_TERMS[] = {TERM_ITSELF};
template <int COUNT>
struct EpilogueTerms {
    u32 of[1][COUNT];
};
template <int FOLD>
DEVICE u32 fold_start() { return 0; }
template <int FOLD>
DEVICE u32 fold_two(u32 x, u32) { return x; }
template <int FOLD>
DEVICE FoldTotal fold_more(FoldTotal total, u32) { return total; }
template <int FOLD>
DEVICE u32 fold_total(FoldTotal total) { return total.bits; }
#endif
#if !HAS_EPILOGUE
template <int COUNT>
struct EpilogueOperands {};
template <int COUNT, class Source>
DEVICE void fetch_operands(const Source&, EpilogueOperands<COUNT>&)
{
}
template <int COUNT>
DEVICE void finish_sums(const Epilogue&, const EpilogueSpot&, const EpilogueOperands<COUNT>&, u32 (&)[COUNT], EpilogueTerms<COUNT>&)
{
}
#endif

}  // namespace
}  // namespace ng::kernels
