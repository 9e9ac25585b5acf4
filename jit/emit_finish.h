// Text of a fused kernel as what a product does with its sums before it stores them.
#pragma once
#include "jit/emit.h"

#include <optional>

namespace ng {

// What the text reads or writes beside the product's result.
struct FinishTensor {
    int32_t buffer;              // the kernel's
    Dtype   type;
    int32_t access;              // of the kernel
};

// A store that takes what is folded, instead of elements. term: of the stored value itself, of a number near those of a part, how many
// there are, or how far they are off the pivot, squared or not; at most one fold is of a pivot, and comes before those that are off it.
enum class FoldTerm : int32_t { Itself, Pivot, Count, Off, OffSquared };
struct FinishFold {
    int32_t  store;
    Op       op;
    FoldTerm term = FoldTerm::Itself;
};

// Functions on neighbours, as kernels/gemm_epilogue.cuh wants them. KIND_0, VECTOR_0 .. are to be defined before the text.
struct FinishSource {
    KernelSource source;                 // numbers: of the struct in the epilogue's words
    std::vector<FinishTensor> tensors;   // in its order: those that are read, then those that are written, then folds' parts
    int32_t loads = 0;                   // how many are read
    int32_t folds = 0;                   // and how many of them are parts
    int32_t result = 0;                  // the store that the product's own result is; -1: none, where there are folds
    int32_t weight = 0;                  // of a sum: about its instructions
};

// buffer: the product, sums as they are in it. Nothing where the kernel asks where it is (random numbers, indices, gathers),
// reads the product otherwise than point by point, or where none of its results is of a type that products store. folds: of
// f32, or of i32 where they choose; the kernel's last stores.
std::optional<FinishSource> emit_finish(const Kernel& kernel, int32_t buffer, const Dialect& dialect, std::span<const FinishFold> folds = {});

}  // namespace ng
