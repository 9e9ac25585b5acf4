// A kernel that folds what it makes of a product, taken apart: what is done at every point, and what is made of the folds' parts.
#pragma once
#include "jit/emit_finish.h"

#include <optional>

namespace ng {

// Values of every point go before the first fold's result; what comes behind has one element for each of what folds leave.
struct FoldParts {
    Kernel points;                       // no axis is reduced; terms of fold i are stored to buffer `buffers + i`
    std::vector<FinishFold> folds;
    Kernel after;                        // its first axis is the parts'
    std::vector<int32_t> after_buffers;  // by its numbers: of the kernel; -1 - i: parts of fold i
    size_t axis = 0;                     // that is folded in parts: the kernel's last, or the one before that
    Extent count = 1;                    // elements of one part
};

// parts: how many there will be, not a constant. Nothing where a point wants to know a fold's result, or a fold is of another kind than
// products' kernels have.
std::optional<FoldParts> fold_parts(const Kernel& kernel, int32_t buffers, const Extent& parts);

}  // namespace ng
