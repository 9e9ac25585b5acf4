// A kernel that folds what it makes of a product, taken apart: what is done at every point, and what is made of the folds' parts.
#pragma once
#include "jit/emit_finish.h"

#include <optional>
#include <vector>

namespace ng {

// Values of every point go before the first fold's result; a sum of squared distances from what folds gave, as in a variance, is taken
// from a pivot of each part first. What comes behind has one element for each of what folds leave; or, where
// it asks for points again, it has these by what was stored of them, and folds as the kernel does.
struct FoldParts {
    Kernel points;                       // no axis is reduced; terms of fold i are stored to buffer `buffers + i`
    std::vector<FinishFold> folds;       // empty: all that folds is behind
    Kernel after;                        // with folds in parts: its first axis is the parts'
    std::vector<int32_t> after_buffers;  // by its numbers: of the kernel; -1 - i: parts of fold i
    size_t axis = 0;                     // that is folded in parts: the kernel's last, or the one before that
    Extent count = 1;                    // elements of one part
};

// parts: how many there will be, not a constant. product: the buffer that only points may read. Nothing where more than what is stored
// of them is wanted behind a fold, or of one of another kind than products' kernels have.
std::optional<FoldParts> fold_parts(const Kernel& kernel, int32_t buffers, int32_t product, const Extent& parts);

}  // namespace ng
