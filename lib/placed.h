// What a call's step needs when it runs: views in numbers, and windows as a backend's functions take them.
#pragma once
#include "jit/plan.h"
#include "lib/executor.h"

#include <ng.h>

#include <algorithm>

namespace ng {

// Dims, strides and offset of a view, known when run.
class Placed {
  public:
    explicit Placed(View view) : view_(std::move(view)) {}
    int   rank() const { return int(view_.dims.size()); }
    Dtype type() const { return view_.dtype; }
    bool  is_unit(int axis) const { return view_.dims[size_t(axis)].is(1); }
    bool  is_known(int axis) const { return view_.dims[size_t(axis)].is_constant(); }

    struct Numbers {
        int64_t dims[NG_MAX_NDIM], strides[NG_MAX_NDIM];
        char*   data;                // of element 0; null: an output that is not wanted
    };
    void at(const ExecutorRun& run, int32_t variables, Numbers& n) const
    {
        char* const base = run.buffers[view_.buffer];
        evaluate({run.variables, size_t(variables)}, n);
        const auto offset = uint64_t(view_.offset.wrapped({run.variables, size_t(variables)})) * uint64_t(bytes_of(view_.dtype));
        n.data = base ? reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(base) + offset) : nullptr;
    }
    // Dims have been checked; of what has no element, or one along an axis, strides and offset may be any number.
    void evaluate(std::span<const int64_t> variables, Numbers& n) const noexcept
    {
        for (size_t i = 0; i < view_.dims.size(); i++) n.dims[i] = view_.dims[i].wrapped(variables), n.strides[i] = view_.strides[i].wrapped(variables);
    }
    // The greatest dims of any lengths up to these; none is below 0, though a window may fit none of the lengths.
    void evaluate_most(std::span<const int64_t> largest, Numbers& n) const
    {
        for (size_t i = 0; i < view_.dims.size(); i++) n.dims[i] = std::max<int64_t>(0, view_.dims[i].most(largest)), n.strides[i] = view_.strides[i].value(largest);
    }

  private:
    View view_;
};

template <class Window>
Window conv_window(const Node& node, int spatial)
{
    const ConvShape s = conv_shape(node);
    Window w{};
    w.spatial = spatial, w.groups = s.groups, w.pad_value = s.pad_value;
    for (size_t i = 0; i < 3; i++) w.stride[i] = s.stride[i], w.dilate[i] = s.dilate[i], w.pad_lo[i] = s.pad_lo[i];
    return w;
}

template <class Window>
Window pool_window(const Node& node, int spatial)
{
    const PoolShape s = pool_shape(node);
    Window w{};
    w.kind = ng_pool_kind(s.kind), w.flags = uint32_t(s.flags), w.spatial = spatial;
    for (size_t i = 0; i < 3; i++)
        w.window[i] = s.window[i], w.stride[i] = s.stride[i], w.dilate[i] = s.dilate[i], w.pad_lo[i] = s.pad_lo[i], w.pad_hi[i] = s.pad_hi[i];
    w.channel_window = s.channel_window, w.channel_stride = s.channel_stride, w.channel_pad = s.channel_pad;
    return w;
}

}  // namespace ng
