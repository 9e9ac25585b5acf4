// The launches of poolings and their derivatives: windows' axes as kernels know them.
#include "lib/backend/cuda/basic_parts.h"

#include <cstdlib>

namespace ng::cuda::basic {
namespace {

using kernels::POOL_AXES;
using kernels::PoolAxis;
using kernels::PoolNumbers;

constexpr int64_t LARGE_WINDOW = 1024, FEW_WINDOWS = 1 << 16;   // then a block takes one

static_assert(int(kernels::POOL_MAX) == NG_POOL_MAX && int(kernels::POOL_L2) == NG_POOL_L2, "kernels know poolings by number");

// The tensor's axis that is a pooling's: those that it has not come between the channel and its own spatial ones.
int tensor_axis(int axis, int spatial)
{
    if (axis < 2) return axis;
    const int missing = 3 - spatial;
    return axis < 2 + missing ? -1 : axis - missing;
}

PoolNumbers numbers_of(const Operand& x, const int64_t* pooled, const PoolWindow& w)
{
    PoolNumbers n = {};
    n.x = x.data, n.x_type = code_of(x.type), n.kind = int32_t(w.kind), n.counts_padding = (w.flags & NG_POOL_COUNT_PAD) != 0;
    n.lanes = 1;
    for (int i = 0; i < POOL_AXES; i++) {
        PoolAxis& a = n.axis[i];
        const int t = tensor_axis(i, w.spatial), d = t - 2;
        a = {1, 1, 1, 1, 1, 0, 0, 0, 0, 0};
        if (t < 0) continue;
        a.in = x.dims[t], a.out = pooled[t], a.x = x.strides[t];
        if (i == 1) a.window = w.channel_window, a.stride = w.channel_stride, a.pad_lo = a.pad_hi = w.channel_pad;
        if (i > 1) a.window = w.window[d], a.stride = w.stride[d], a.dilate = w.dilate[d], a.pad_lo = w.pad_lo[d], a.pad_hi = w.pad_hi[d];
    }
    return n;
}

// The result's strides, the order of its axes that neighbouring threads take, and how many elements it has.
void set_result(PoolNumbers& n, const Operand& y, int spatial)
{
    n.y = y.data, n.y_type = code_of(y.type), n.count = 1;
    for (int i = 0; i < POOL_AXES; i++) {
        const int t = tensor_axis(i, spatial);
        if (t >= 0) n.axis[i].y = y.strides[t], n.count *= y.dims[t];
        int k = i;
        // Axes that are not there stand first.
        const int64_t stride = t < 0 ? INT64_MAX : std::abs(y.strides[t]);
        const auto    nearer = [&](int axis) {
            const int other = tensor_axis(axis, spatial);
            return other >= 0 && std::abs(y.strides[other]) < stride;
        };
        for (; k > 0 && nearer(n.order[k - 1]); k--) n.order[k] = n.order[k - 1];
        n.order[k] = i;
    }
}
void set_values(PoolNumbers& n, const Operand& values, int spatial)
{
    n.values = values.data, n.values_type = code_of(values.type);
    for (int i = 0; i < POOL_AXES; i++) {
        const int t = tensor_axis(i, spatial);
        if (t >= 0) n.axis[i].values = values.strides[t];
    }
}

void launch_windows(PoolNumbers& n, BasicKernel kernel, const Place& place)
{
    int64_t taps = 1;
    for (int i = 1; i < POOL_AXES; i++) taps *= std::min(n.axis[i].window, n.axis[i].in);
    if (n.count == 0) return;
    if (taps < LARGE_WINDOW || n.count >= FEW_WINDOWS) return launch_threads(place, kernel, n.count, n);
    n.lanes = kernels::THREADS;
    launch(place, kernel, n.count, kernels::THREADS, n);
}

BasicKernel most_kernel(Dtype t)
{
    if (!is_float(t)) return BasicKernel::pool_most_i64;
    return t == Dtype::f64 ? BasicKernel::pool_most_f64 : BasicKernel::pool_most_f32;
}

void pick(const Operand& x, const Operand& values, const Operand& y, const PoolWindow& window, uint64_t least, const Place& place)
{
    PoolNumbers n = numbers_of(x, y.dims, window);
    set_result(n, y, window.spatial), set_values(n, values, window.spatial);
    n.picks = true, n.least = least;
    launch_windows(n, most_kernel(x.type), place);
}

void sum(const Operand& x, const Operand& y, const PoolWindow& window, const Place& place)
{
    PoolNumbers n = numbers_of(x, y.dims, window);
    set_result(n, y, window.spatial);
    launch_windows(n, y.type == Dtype::f64 ? BasicKernel::pool_sum_f64 : BasicKernel::pool_sum_f32, place);
}

}  // namespace

void pool(const Operand& x, const Operand& y, const PoolWindow& window, const Place& place)
{
    if (window.kind == NG_POOL_MAX) pick(x, x, y, window, least_bits(x.type), place);
    else sum(x, y, window, place);
}

void pool_pick(const Operand& x, const Operand& v, const Operand& y, const PoolWindow& window, const Place& place)
{
    pick(x, v, y, window, 0, place);
}

uint64_t pool_dx_workspace(const int64_t* dy_dims, const PoolWindow& window)
{
    uint64_t windows = 1;
    for (int i = 0; i < window.spatial + 2; i++) windows *= uint64_t(dy_dims[i]);
    return window.kind == NG_POOL_MEAN ? 0 : aligned(8 * windows);
}

void pool_dx(const Operand& x, const Operand& dy, const Operand& dx, const PoolWindow& window, const Place& place)
{
    const int rank = window.spatial + 2;
    int64_t   strides[POOL_AXES], dense = 1;
    for (int i = rank; i-- > 0;) strides[i] = dense, dense *= dy.dims[i];
    if (dense > 0 && window.kind == NG_POOL_MAX) {
        PoolNumbers   n = numbers_of(x, dy.dims, window);
        const Operand taps = {place.workspace, Dtype::i64, dy.dims, strides};
        set_result(n, taps, window.spatial);
        launch_windows(n, most_kernel(x.type), place);
    } else if (dense > 0 && window.kind == NG_POOL_L2) {
        sum(x, {place.workspace, dx.type, dy.dims, strides}, window, place);
    }
    PoolNumbers n = numbers_of(x, dy.dims, window);
    set_result(n, dx, window.spatial), set_values(n, dy, window.spatial);
    n.slots = place.workspace;
    launch_threads(place, dx.type == Dtype::f64 ? BasicKernel::pool_dx_f64 : BasicKernel::pool_dx_f32, n.count, n);
}

}  // namespace ng::cuda::basic
