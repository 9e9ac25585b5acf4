// Index forms: each index of a node as an affine function of a kernel's axes, carried down through movement.
#pragma once
#include "jit/graph.h"
#include "jit/kernel.h"
#include "jit/plan.h"

#include <optional>

namespace ng {

// offset + sum of coefficient * index of the axis; axes ascend.
struct IndexForm {
    Extent offset = 0;
    std::vector<std::pair<int32_t, Extent>> terms;
    bool operator==(const IndexForm&) const = default;
};
using IndexForms = std::vector<IndexForm>;   // one a dim of the node; of extent 1: zero

// An axis of a kernel that must become two for a reshape to be affine: its inner part has this extent.
struct AxisSplit {
    int32_t axis = -1;
    Extent  inner;
};

IndexForm scaled(const IndexForm& f, const Extent& by);
IndexForm sum(const IndexForm& a, const IndexForm& b);
// Replaces the split axis by its two parts, and counts later axes one up.
void apply(const AxisSplit& split, IndexForms& forms);
void apply(const AxisSplit& split, std::vector<KernelAxis>& axes);

// Forms of the operand from those of a broadcast, permute or slice.
IndexForms through(const Node& movement, const IndexForms& forms);
// Those of a reshape's operand; nothing, and perhaps a split that would help, where no affine function is one.
std::optional<IndexForms> through_reshape(const Extents& to, const Extents& from, const IndexForms& forms, const std::vector<KernelAxis>& axes, AxisSplit& split);

// The dims of a node laid over some axes of a kernel, one or several neighbours a dim; nothing, and perhaps a split
// that would help, where they do not fit.
std::optional<IndexForms> laid_over(const Extents& dims, const std::vector<KernelAxis>& axes, std::span<const int32_t> which, AxisSplit& split);

// The access by which forms of a view's dims reach its elements.
Access access_of(const View& view, const IndexForms& forms, size_t axes);

// The view under other dims of as many elements; nothing where its strides cannot say that.
std::optional<View> reshaped(const Extents& dims, const View& view);
// A view through one movement node; nothing where strides cannot say it.
std::optional<View> through_view(const Node& movement, const View& view);

}  // namespace ng
