// Convolutions and poolings as tests describe them, their layouts, and what lies under each window: one for all backends.
#pragma once
#include "tests/backend/product_check.h"

namespace product_check {

enum Layout { CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST, BACKWARDS };
inline const Layout LAYOUTS[] = {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST, BACKWARDS};

inline Lie lie_of(Layout layout, size_t rank)
{
    Lie lie;
    if (layout == BACKWARDS) lie.reversed = (1u << rank) - 1, lie.step = 2;
    if (layout == CHANNELS_FIRST || layout == BACKWARDS) return lie;
    for (size_t i = 2; i < rank; i++) lie.order.push_back(int64_t(i));
    lie.order.insert(lie.order.begin(), layout == CHANNELS_LAST ? 0 : 1), lie.order.push_back(layout == CHANNELS_LAST ? 1 : 0);
    return lie;
}

// A convolution; Window: how its backend is told of it.
template <class Window>
struct ConvProblem {
    int64_t n, c, k, groups;
    Index   x, w, stride, dilate, pad_lo, pad_hi;
    double  pad_value = 0;

    Window window() const
    {
        Window v = {int(x.size()), {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, groups, pad_value};
        for (size_t d = 0; d < x.size(); d++) v.stride[d] = stride[d], v.dilate[d] = dilate[d], v.pad_lo[d] = pad_lo[d];
        return v;
    }
    Index dims_x() const { return joined({n, c}, x); }
    Index dims_w() const { return joined({k, c / groups}, w); }
    Index dims_y() const
    {
        Index y = {n, k};
        for (size_t d = 0; d < x.size(); d++) y.push_back(std::max<int64_t>(0, (x[d] + pad_lo[d] + pad_hi[d] - 1 - (w[d] - 1) * dilate[d] + stride[d]) / stride[d]));
        return y;
    }
    static Index joined(Index a, const Index& b) { return a.insert(a.end(), b.begin(), b.end()), a; }
};
struct ConvTypes {
    Dtype x, w, y;
};

// Calls body(x's index or nothing, w's index, y's index) for each tap of each position.
template <class Window, class Body>
void each_tap(const ConvProblem<Window>& p, const Tensor& w, const Tensor& y, Body&& body)
{
    Index        ix(p.x.size() + 2);
    const Tensor taps(Dtype::i8, ConvProblem<Window>::joined({w.dims[1]}, p.w));
    y.each([&](const Index& iy) {
        taps.each([&](const Index& tap) {
            bool inside = true;
            ix[0] = iy[0], ix[1] = iy[1] / (p.k / p.groups) * w.dims[1] + tap[0];
            for (size_t d = 0; d < p.x.size(); d++) {
                ix[d + 2] = iy[d + 2] * p.stride[d] + tap[d + 1] * p.dilate[d] - p.pad_lo[d];
                inside &= ix[d + 2] >= 0 && ix[d + 2] < p.x[d];
            }
            body(inside ? &ix : nullptr, ConvProblem<Window>::joined({iy[1]}, tap), iy);
        });
    });
}

// A pooling.
template <class Window>
struct PoolProblem {
    ng_pool_kind kind;
    Index        x, window, stride, dilate, pad_lo, pad_hi;   // of x's axes from the channel on
    uint32_t     flags = 0;

    Window described() const
    {
        Window w = {};
        w.kind = kind, w.flags = flags, w.spatial = int(window.size()) - 1;
        w.channel_window = window[0], w.channel_stride = stride[0], w.channel_pad = pad_lo[0];
        for (size_t d = 1; d < window.size(); d++) {
            w.window[d - 1] = window[d], w.stride[d - 1] = stride[d], w.dilate[d - 1] = dilate[d];
            w.pad_lo[d - 1] = pad_lo[d], w.pad_hi[d - 1] = pad_hi[d];
        }
        return w;
    }
    Index dims_y() const
    {
        Index y = {x[0]};
        for (size_t d = 0; d < window.size(); d++) {
            const int64_t room = x[d + 1] + pad_lo[d] + pad_hi[d] - (window[d] - 1) * dilate[d] - 1;
            int64_t       n = room < 0 ? 0 : (d && flags & NG_POOL_CEIL ? (room + stride[d] - 1) / stride[d] : room / stride[d]) + 1;
            if (flags & NG_POOL_CEIL && (n - 1) * stride[d] >= x[d + 1] + pad_lo[d]) n--;
            y.push_back(n);
        }
        return y;
    }
};

// What is under one window: places in x in the window's row-major order, and how many there are with the padding.
struct Under {
    std::vector<Index> places;
    int64_t            padded = 0;
};
template <class Window>
Under under(const PoolProblem<Window>& p, const Index& y)
{
    Under        u;
    const Tensor taps(Dtype::i8, p.window);
    taps.each([&](const Index& tap) {
        Index at = {y[0]};
        bool  inside = true, padded = true;
        for (size_t d = 0; d < tap.size(); d++) {
            at.push_back(y[d + 1] * p.stride[d] + tap[d] * p.dilate[d] - p.pad_lo[d]);
            inside &= at.back() >= 0 && at.back() < p.x[d + 1];
            padded &= at.back() < p.x[d + 1] + p.pad_hi[d];
        }
        u.padded += padded;
        if (inside) u.places.push_back(at);
    });
    return u;
}

}  // namespace product_check
