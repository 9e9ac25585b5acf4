// What a call's step needs when it runs: views in numbers, and windows as a backend's functions take them.
#pragma once
#include "jit/plan.h"
#include "lib/executor.h"

#include <ng.h>

namespace ng {

// Dims, strides and offset of a view, known when run.
class Placed {
  public:
    explicit Placed(View view) : view_(std::move(view)) {}
    int   rank() const { return int(view_.dims.size()); }
    Dtype type() const { return view_.dtype; }
    bool  is_unit(int axis) const { return view_.dims[size_t(axis)].is(1); }

    struct Numbers {
        int64_t dims[NG_MAX_NDIM], strides[NG_MAX_NDIM];
        char*   data;                // of element 0; null: an output that is not wanted
    };
    void at(const ExecutorRun& run, int32_t variables, Numbers& n) const
    {
        char* const base = run.buffers[view_.buffer];
        evaluate({run.variables, size_t(variables)}, n);
        n.data = base ? base + view_.offset.value({run.variables, size_t(variables)}) * bytes_of(view_.dtype) : nullptr;
    }
    void evaluate(std::span<const int64_t> variables, Numbers& n) const
    {
        for (size_t i = 0; i < view_.dims.size(); i++) n.dims[i] = view_.dims[i].value(variables), n.strides[i] = view_.strides[i].value(variables);
    }
    // The greatest dims of any lengths up to these.
    void evaluate_most(std::span<const int64_t> largest, Numbers& n) const
    {
        for (size_t i = 0; i < view_.dims.size(); i++) n.dims[i] = view_.dims[i].most(largest), n.strides[i] = view_.strides[i].value(largest);
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
