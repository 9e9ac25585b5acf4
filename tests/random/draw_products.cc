// Matrix products, convolutions of every direction and pooling, over operands that fit or are made to.
#include "tests/random/draw.h"

#include <algorithm>

namespace programs {

Node Drawing::product()
{
    Node n{Form::Matmul};
    int a = dice_.chance(50) ? with_rank(1) : input(dice_.chance(75) ? real_type() : dice_.of({ng_dtype(NG_I8), ng_dtype(NG_U8), ng_dtype(NG_I32)}), some_dims(1, 4), Fill::Any);
    if (a < 0) a = any();
    const Node x = at(a);
    n.args = {a, a};
    if (x.dims.empty()) return nothing();
    Extents dims = {x.dims.back()};
    if (dice_.chance(80)) dims.push_back(Polynomial::of_dim(extent()));
    if (dims.size() == 2 && x.dims.size() > 2 && dice_.chance(50))
        for (size_t k = x.dims.size() - 2; k-- > 0 && dice_.chance(70);) dims.insert(dims.begin(), dice_.chance(70) ? x.dims[k] : Polynomial(1));
    const ng_dtype t = is_float(x.type) ? real_type() : is_byte(x.type) && dice_.chance(50) ? dice_.of({ng_dtype(NG_I8), ng_dtype(NG_U8)}) : x.type;
    const int b = input(t, dims, Fill::Any);
    n.args[1] = b < 0 ? any() : b;
    // Left from right: the transposed fresh one first.
    if (dice_.chance(20)) std::swap(n.args[0], n.args[1]);
    return n;
}

Node Drawing::convolved(Form form)
{
    Node n{form};
    const int spatial = int(dice_.within(1, 3));
    const auto groups = dice_.of<int64_t>({1, 1, 1, 2, 3}), per_group = dice_.within(1, 3);
    const bool depthwise = dice_.chance(20);
    Extents x = {Polynomial::of_dim(dice_.chance(40) ? extent() : dice_.within(1, 2)), Polynomial(groups * (depthwise ? 1 : per_group))};
    Extents w = {Polynomial(groups * dice_.within(1, 3)), Polynomial(depthwise ? 1 : per_group)}, y = {x[0], w[0]};
    n.conv.size = sizeof n.conv, n.conv.groups = int32_t(groups);
    if (dice_.chance(15) && form != Form::ConvDx) n.conv.pad_value = 0.5;
    for (int i = 0; i < spatial; i++) {
        const int64_t window = dice_.within(1, 3), dilate = dice_.chance(25) ? 2 : 1, stride = dice_.chance(35) ? dice_.within(1, 3) : 1;
        const int64_t reach = 1 + (window - 1) * dilate, low = dice_.within(0, 2), high = dice_.within(0, 2);
        const int64_t size = std::max<int64_t>(1, reach - low - high) + dice_.within(0, spatial == 1 ? 20 : 4);
        n.conv.stride[i] = int32_t(stride), n.conv.dilate[i] = int32_t(dilate), n.conv.pad_lo[i] = int32_t(low), n.conv.pad_hi[i] = int32_t(high);
        x.push_back(size), w.push_back(window), y.push_back(1 + (size + low + high - reach) / stride);
    }
    const bool bytes = dice_.chance(15);
    const auto operand = [&](const Extents& dims) {
        return input(bytes ? dice_.of({ng_dtype(NG_I8), ng_dtype(NG_U8)}) : real_type(), dims, dice_.chance(50) ? Fill::Any : Fill::WithinOne);
    };
    // Another node of the right rank stands in for x now and then; infer() says whether it fits.
    int first = operand(form == Form::ConvDx ? w : x);
    const int second = operand(form == Form::Conv ? w : y);
    if (form == Form::Conv && dice_.chance(30))
        for (int i = 0; i < 10; i++) {
            const int candidate = any();
            if (at(candidate).dims == x && is_float(at(candidate).type)) first = candidate;
        }
    if (bytes) n.conv.pad_value = 0;
    if (first < 0 || second < 0) return nothing();
    n.args = {first, second};
    if (form == Form::ConvDx) n.dims = x;
    if (form == Form::ConvDw) n.dims = w;
    return n;
}

Node Drawing::pooled(Form form)
{
    Node n{form};
    int x = -1;
    for (int i = 0; i < 6 && x < 0; i++) {
        const int candidate = any();
        const size_t rank = at(candidate).dims.size();
        if (rank >= 3 && rank <= 5) x = candidate;
    }
    if (x < 0) {
        Extents dims = {Polynomial::of_dim(extent()), Polynomial(dice_.within(1, 4))};
        for (int64_t i = dice_.within(1, 3); i > 0; i--) dims.push_back(dice_.within(1, 7));
        x = input(dice_.chance(80) ? real_type() : type(), dims, dice_.chance(50) ? Fill::Any : Fill::Whole);
    }
    if (x < 0) return nothing();
    n.args = {x};
    n.pool.size = sizeof n.pool, n.pool.kind = ng_pool_kind(dice_.below(3));
    n.pool.flags = uint32_t(dice_.chance(30) ? dice_.within(0, 3) : 0);
    for (size_t a = 2; a < at(x).dims.size() && a < 5; a++) {
        const auto i = a - 2;
        n.pool.window[i] = int32_t(dice_.within(1, 3)), n.pool.stride[i] = int32_t(dice_.within(0, 3)), n.pool.dilate[i] = dice_.chance(20) ? 2 : 0;
        const int reach = 1 + (n.pool.window[i] - 1) * std::max(1, n.pool.dilate[i]);
        if (dice_.chance(40)) n.pool.pad_lo[i] = int32_t(dice_.within(0, reach - 1)), n.pool.pad_hi[i] = int32_t(dice_.within(0, reach - 1));
    }
    if (dice_.chance(15)) n.pool.channel_window = int32_t(dice_.within(1, 3)), n.pool.channel_stride = int32_t(dice_.within(0, 2));
    if (n.pool.channel_window > 1 && dice_.chance(50)) n.pool.channel_pad = 1;
    if (form == Form::Pool) return n;
    Node forward = n;
    forward.form = Form::Pool;
    if (!infer(table_, p_, forward)) return nothing();
    const int dy = input(real_type(), forward.dims, Fill::Any);
    n.args.push_back(dy < 0 ? x : dy);
    return n;
}

}  // namespace programs
