// Building products: matrix product, convolution and its derivatives, pooling.
#include "jit/build.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ng {
namespace {
template <class T> void pack(std::vector<int64_t>& out, const T& three) { out.insert(out.end(), three.begin(), three.end()); }
template <class T> void unpack(const Node& n, size_t at, T& three) { for (size_t i = 0; i < 3; i++) three[i] = int32_t(n.int_at(at + i)); }
}  // namespace

ConvShape conv_shape(const Node& n)
{
    ConvShape s;
    unpack(n, 0, s.stride), unpack(n, 3, s.dilate), unpack(n, 6, s.pad_lo), unpack(n, 9, s.pad_hi);
    s.groups = int32_t(n.int_at(12)), s.flags = int32_t(n.int_at(13)), s.pad_value = std::bit_cast<double>(n.int_at(14));
    return s;
}

PoolShape pool_shape(const Node& n)
{
    PoolShape s;
    s.kind = int32_t(n.int_at(0)), s.flags = int32_t(n.int_at(1));
    unpack(n, 2, s.window), unpack(n, 5, s.stride), unpack(n, 8, s.dilate), unpack(n, 11, s.pad_lo), unpack(n, 14, s.pad_hi);
    s.channel_window = int32_t(n.int_at(17)), s.channel_stride = int32_t(n.int_at(18)), s.channel_pad = int32_t(n.int_at(19));
    return s;
}

namespace build {
namespace {

// f64 where one operand is, f32 for other floats, i32 for 8-bit integers, else the common integer type.
Dtype accumulator(const Node& a, const Node& b, const char* who)
{
    const auto byte = [](Dtype t) { return t == Dtype::i8 || t == Dtype::u8; };
    if (byte(a.dtype) && byte(b.dtype)) return Dtype::i32;
    const Dtype t = promote(a.dtype, b.dtype, who);
    return is_bool(t) ? Dtype::i32 : t;
}

// Operands of one kind: floats as they are, anything else cast to the accumulator's type, bytes with bytes excepted.
void match(Graph& g, NodeRef& a, NodeRef& b, const char* who)
{
    a = strong(g, a), b = strong(g, b);
    const Dtype t = accumulator(*a, *b, who);
    const auto byte = [](Dtype d) { return d == Dtype::i8 || d == Dtype::u8; };
    if (byte(a->dtype) && byte(b->dtype)) return;
    for (NodeRef* x : {&a, &b})
        if (!is_float((*x)->dtype)) *x = cast(g, *x, t);
}

void check_size(uint32_t size, uint32_t want, const char* who, const char* type)
{
    if (size < 8) throw Error(NG_E_INVALID, text(who, ": ", type, ".size is ", size, ", should be ", want));
}

// Output positions of a window along an axis of d elements.
Extent positions(const Extent& d, int64_t window, int64_t stride, int64_t pad, bool ceil, const char* who, int axis)
{
    const Extent room = d + Extent(pad - window);
    if (room.is_constant()) {
        const int64_t r = room.constant();
        if (r < 0) throw Error(NG_E_SHAPE, text(who, ": a window over ", window, " elements does not fit ", axis < 0 ? text("the ", d.text(), " channels") : text("spatial axis ", axis, " of ", d.text()), " with padding ", pad));
        return Extent(r / stride) + Extent(ceil && r % stride ? 2 : 1);
    }
    const std::optional<Extent> q = ceil ? room.divided_by(stride) : room.floor_by(stride);
    if (!q) throw Error(NG_E_UNSUPPORTED, text(who, ": a stride of ", stride, " over an unknown length leaves no polynomial of lengths"));
    return *q + Extent(1);
}

ConvShape checked(const ng_conv_desc* d, int spatial, const char* who)
{
    static constexpr ng_conv_desc NONE = {.size = sizeof(ng_conv_desc), .flags = 0, .stride = {}, .dilate = {}, .pad_lo = {}, .pad_hi = {}, .groups = 0, .reserved = 0, .pad_value = 0};
    if (!d) d = &NONE;
    check_size(d->size, sizeof *d, who, "ng_conv_desc");
    ng_conv_desc full = NONE;
    std::memcpy(&full, d, std::min<size_t>(d->size, sizeof full));
    ConvShape s;
    s.flags = int32_t(full.flags), s.groups = full.groups ? full.groups : 1, s.pad_value = full.pad_value;
    if (full.flags & ~uint32_t(NG_TF32)) throw Error(NG_E_INVALID, text(who, ": unknown flags ", full.flags & ~uint32_t(NG_TF32)));
    for (int i = 0; i < 3; i++) {
        const auto a = size_t(i);
        s.stride[a] = full.stride[i] ? full.stride[i] : 1, s.dilate[a] = full.dilate[i] ? full.dilate[i] : 1;
        s.pad_lo[a] = full.pad_lo[i], s.pad_hi[a] = full.pad_hi[i];
        if (s.stride[a] < 0 || s.dilate[a] < 0 || s.pad_lo[a] < 0 || s.pad_hi[a] < 0)
            throw Error(NG_E_INVALID, text(who, ": stride, dilate or padding of spatial axis ", i, " is negative"));
        if (i >= spatial && (s.stride[a] != 1 || s.dilate[a] != 1 || s.pad_lo[a] || s.pad_hi[a]))
            throw Error(NG_E_INVALID, text(who, ": spatial axis ", i, " is described, x has ", spatial));
    }
    if (s.groups < 1) throw Error(NG_E_INVALID, text(who, ": groups is ", s.groups));
    return s;
}

std::vector<int64_t> ints_of(const ConvShape& s)
{
    std::vector<int64_t> v;
    pack(v, s.stride), pack(v, s.dilate), pack(v, s.pad_lo), pack(v, s.pad_hi);
    v.insert(v.end(), {s.groups, s.flags, std::bit_cast<int64_t>(s.pad_value)});
    return v;
}

int spatial_rank(const Extents& dims, const char* who, const char* what)
{
    if (dims.size() < 3 || dims.size() > 5) throw Error(NG_E_SHAPE, text(who, ": ", what, " is ", text_of(dims), ", should have 1 to 3 spatial axes: [n, c, (d, h,) w]"));
    return int(dims.size()) - 2;
}

// y's dims from x's and w's.
Extents conv_dims(const Extents& x, const Extents& w, const ConvShape& s, const char* who)
{
    if (w.size() != x.size()) throw Error(NG_E_SHAPE, text(who, ": x is ", text_of(x), " and w ", text_of(w), ", should have one rank"));
    if (!(w[1] * Extent(s.groups) == x[1]))
        throw Error(NG_E_SHAPE, text(who, ": x is ", text_of(x), " and w ", text_of(w), ": w should have ", x[1].text(), " / ", s.groups, " channels, has ", w[1].text()));
    if (!w[0].divided_by(s.groups)) throw Error(NG_E_SHAPE, text(who, ": ", w[0].text(), " filters do not divide into ", s.groups, " groups"));
    Extents y = {x[0], w[0]};
    for (size_t a = 2; a < x.size(); a++) {
        if (!w[a].is_constant() || w[a].is(0)) throw Error(NG_E_SHAPE, text(who, ": w is ", text_of(w), ": filters have known, positive extents"));
        int64_t window;
        if (__builtin_mul_overflow(w[a].constant() - 1, int64_t(s.dilate[a - 2]), &window) || __builtin_add_overflow(window, 1, &window))
            throw Error(NG_E_LIMIT, text(who, ": w is ", text_of(w), ": dilated by ", s.dilate[a - 2], " it exceeds 63 bits"));
        y.push_back(positions(x[a], window, s.stride[a - 2], int64_t(s.pad_lo[a - 2]) + s.pad_hi[a - 2], false, who, int(a) - 2));
    }
    return y;
}

NodeRef conv_node(Graph& g, Op op, const NodeRef& a, const NodeRef& b, Extents dims, const ConvShape& s, const char* who)
{
    Ref<Node> n = raw(op, accumulator(*a, *b, who), shape_ref(std::move(dims)), std::initializer_list<NodeRef>{a, b});
    n->more().ints = ints_of(s);
    return g.intern(n);
}

void expect(const Extents& got, const Extents& want, const char* who)
{
    if (got != want) throw Error(NG_E_SHAPE, text(who, ": dy is ", text_of(got), ", should be ", text_of(want)));
}

}  // namespace

NodeRef matmul(Graph& g, NodeRef a, NodeRef b, uint32_t flags)
{
    const char* who = "ng_matmul";
    if (flags & ~uint32_t(NG_TF32)) throw Error(NG_E_INVALID, text(who, ": unknown flags ", flags & ~uint32_t(NG_TF32)));
    const NodeRef given[] = {strong(g, a), strong(g, b)};    // for sentences
    match(g, a, b, who);
    if (a->rank() < 1 || b->rank() < 1) throw Error(NG_E_SHAPE, text(who, ": ", describe(*given[0]), " and ", describe(*given[1]), ": scalars are multiplied by ng_mul"));
    const bool row = a->rank() == 1, column = b->rank() == 1;
    if (row) a = reshape(g, a, {1, a->dims()[0]});
    if (column) b = reshape(g, b, {b->dims()[0], 1});
    const int rank = std::max(a->rank(), b->rank());
    for (NodeRef* x : {&a, &b}) {
        Extents dims(size_t(rank - (*x)->rank()), Extent(1));
        dims.insert(dims.end(), (*x)->dims().begin(), (*x)->dims().end());
        *x = reshape(g, *x, dims);
    }
    const Extents &da = a->dims(), &db = b->dims();
    const size_t m = size_t(rank) - 2, k = size_t(rank) - 1;
    if (!(da[k] == db[m])) throw Error(NG_E_SHAPE, text(who, ": ", describe(*given[0]), " @ ", describe(*given[1]), ": the inner extents are ", da[k].text(), " and ", db[m].text()));
    Extents dims;
    for (size_t i = 0; i < m; i++) {
        if (!(da[i] == db[i]) && !da[i].is(1) && !db[i].is(1))
            throw Error(NG_E_SHAPE, text(who, ": ", describe(*given[0]), " @ ", describe(*given[1]), ": batch axis ", i, " is ", da[i].text(), " and ", db[i].text()));
        dims.push_back(da[i].is(1) ? db[i] : da[i]);
    }
    Extents out = dims;
    if (!row) out.push_back(da[m]);
    if (!column) out.push_back(db[k]);
    dims.push_back(da[m]), dims.push_back(db[k]);
    return reshape(g, make(g, Op::matmul, accumulator(*a, *b, who), shape_ref(dims), {a, b}, flags), out);
}

NodeRef conv(Graph& g, NodeRef x, NodeRef w, const ng_conv_desc* d)
{
    match(g, x, w, "ng_conv");
    const ConvShape s = checked(d, spatial_rank(x->dims(), "ng_conv", "x"), "ng_conv");
    return conv_node(g, Op::conv, x, w, conv_dims(x->dims(), w->dims(), s, "ng_conv"), s, "ng_conv");
}

NodeRef conv_dx(Graph& g, NodeRef w, NodeRef dy, const Layout& x, const ng_conv_desc* d)
{
    match(g, w, dy, "ng_conv_dx");
    const ConvShape s = checked(d, spatial_rank(x.dims, "ng_conv_dx", "x"), "ng_conv_dx");
    expect(dy->dims(), conv_dims(x.dims, w->dims(), s, "ng_conv_dx"), "ng_conv_dx");
    return conv_node(g, Op::conv_dx, w, dy, x.dims, s, "ng_conv_dx");
}

NodeRef conv_dw(Graph& g, NodeRef x, NodeRef dy, const Layout& w, const ng_conv_desc* d)
{
    match(g, x, dy, "ng_conv_dw");
    const ConvShape s = checked(d, spatial_rank(x->dims(), "ng_conv_dw", "x"), "ng_conv_dw");
    expect(dy->dims(), conv_dims(x->dims(), w.dims, s, "ng_conv_dw"), "ng_conv_dw");
    return conv_node(g, Op::conv_dw, x, dy, w.dims, s, "ng_conv_dw");
}

namespace {

PoolShape checked(const ng_pool_desc* d, int spatial, const char* who)
{
    if (!d) throw Error(NG_E_INVALID, text(who, ": d is NULL, should be an ng_pool_desc"));
    check_size(d->size, sizeof *d, who, "ng_pool_desc");
    ng_pool_desc full = {};
    std::memcpy(&full, d, std::min<size_t>(d->size, sizeof full));
    if (full.kind > NG_POOL_L2) throw Error(NG_E_INVALID, text(who, ": kind ", full.kind, " is none of NG_POOL_MAX, _MEAN, _L2"));
    if (full.flags & ~uint32_t(NG_POOL_CEIL | NG_POOL_COUNT_PAD)) throw Error(NG_E_INVALID, text(who, ": unknown flags ", full.flags));
    PoolShape s;
    s.kind = int32_t(full.kind), s.flags = int32_t(full.flags);
    for (int i = 0; i < 3; i++) {
        const auto a = size_t(i);
        s.window[a] = full.window[i] ? full.window[i] : 1, s.stride[a] = full.stride[i] ? full.stride[i] : s.window[a];
        s.dilate[a] = full.dilate[i] ? full.dilate[i] : 1, s.pad_lo[a] = full.pad_lo[i], s.pad_hi[a] = full.pad_hi[i];
        if (s.window[a] < 1 || s.stride[a] < 1 || s.dilate[a] < 1 || s.pad_lo[a] < 0 || s.pad_hi[a] < 0)
            throw Error(NG_E_INVALID, text(who, ": window, stride, dilate or padding of spatial axis ", i, " is negative"));
        const int64_t reach = 1 + int64_t(s.window[a] - 1) * s.dilate[a];
        if (s.pad_lo[a] >= reach || s.pad_hi[a] >= reach)
            if (s.pad_lo[a] || s.pad_hi[a]) throw Error(NG_E_INVALID, text(who, ": padding ", s.pad_lo[a], ", ", s.pad_hi[a], " of spatial axis ", i, " is no smaller than the window's ", reach));
        if (i >= spatial && (s.window[a] != 1 || s.pad_lo[a] || s.pad_hi[a])) throw Error(NG_E_INVALID, text(who, ": spatial axis ", i, " is described, x has ", spatial));
    }
    s.channel_window = full.channel_window ? full.channel_window : 1;
    s.channel_stride = full.channel_stride ? full.channel_stride : s.channel_window, s.channel_pad = full.channel_pad;
    if (s.channel_window < 1 || s.channel_stride < 1 || s.channel_pad < 0 || (s.channel_pad && s.channel_pad >= s.channel_window))
        throw Error(NG_E_INVALID, text(who, ": the window over channels is ", s.channel_window, ", its stride ", s.channel_stride, ", its padding ", s.channel_pad));
    constexpr double MOST_TAPS = int64_t(1) << 40;
    if (double(s.channel_window) * s.window[0] * s.window[1] * s.window[2] > MOST_TAPS)
        throw Error(NG_E_LIMIT, text(who, ": a window over ", s.channel_window, " channels and [", s.window[0], ", ", s.window[1], ", ", s.window[2], "] has more than 2^40 elements"));
    return s;
}

Extents pool_dims(const Extents& x, const PoolShape& s, const char* who)
{
    const bool ceil = s.flags & NG_POOL_CEIL;
    Extents y = {x[0], positions(x[1], s.channel_window, s.channel_stride, 2 * int64_t(s.channel_pad), false, who, -1)};
    for (size_t a = 2; a < x.size(); a++) {
        const size_t i = a - 2;
        Extent n = positions(x[a], 1 + int64_t(s.window[i] - 1) * s.dilate[i], s.stride[i], int64_t(s.pad_lo[i]) + s.pad_hi[i], ceil, who, int(i));
        if (ceil && n.is_constant() && (n.constant() - 1) * s.stride[i] >= x[a].constant() + s.pad_lo[i]) n = n - Extent(1);   // no window lies in padding alone
        y.push_back(n);
    }
    return y;
}

std::vector<int64_t> ints_of(const PoolShape& s)
{
    std::vector<int64_t> v = {s.kind, s.flags};
    pack(v, s.window), pack(v, s.stride), pack(v, s.dilate), pack(v, s.pad_lo), pack(v, s.pad_hi);
    v.insert(v.end(), {s.channel_window, s.channel_stride, s.channel_pad});
    return v;
}

}  // namespace

NodeRef pool(Graph& g, NodeRef x, const ng_pool_desc* d)
{
    x = strong(g, x);
    const PoolShape s = checked(d, spatial_rank(x->dims(), "ng_pool", "x"), "ng_pool");
    Ref<Node> n = raw(Op::pool, s.kind == NG_POOL_MAX ? x->dtype : real_of(x->dtype), shape_ref(pool_dims(x->dims(), s, "ng_pool")), {&x, 1});
    n->more().ints = ints_of(s);
    return g.intern(n);
}

NodeRef pool_dx(Graph& g, NodeRef x, NodeRef dy, const ng_pool_desc* d)
{
    x = strong(g, x), dy = strong(g, dy);
    const PoolShape s = checked(d, spatial_rank(x->dims(), "ng_pool_dx", "x"), "ng_pool_dx");
    expect(dy->dims(), pool_dims(x->dims(), s, "ng_pool_dx"), "ng_pool_dx");
    if (!is_float(x->dtype)) throw Error(NG_E_DTYPE, text("ng_pool_dx: x is ", describe(*x), ", should be floats"));
    const Dtype t = promote(x->dtype, dy->dtype, "ng_pool_dx");
    dy = cast(g, dy, t);
    Ref<Node> n = raw(Op::pool_dx, t, x->shape, std::initializer_list<NodeRef>{x, dy});
    n->more().ints = ints_of(s);
    return g.intern(n);
}

NodeRef pool_picked(Graph& g, NodeRef x, NodeRef from, const ng_pool_desc* d)
{
    x = strong(g, x), from = strong(g, from);
    const PoolShape s = checked(d, spatial_rank(x->dims(), "ng_pool", "x"), "ng_pool");
    if (s.kind != NG_POOL_MAX) throw Error(NG_E_INVALID, "ng_pool: of two operands, elements are picked from the second where the first is greatest: the kind should be max");
    if (!same(from->shape, x->shape))
        throw Error(NG_E_SHAPE, text("ng_pool: x is ", describe(*x), ", what is picked from is ", describe(*from), ": they should have one shape"));
    if (!is_float(x->dtype) || !is_float(from->dtype))
        throw Error(NG_E_DTYPE, text("ng_pool: x is ", describe(*x), ", what is picked from is ", describe(*from), ": they should be floats"));
    from = cast(g, from, promote(x->dtype, from->dtype, "ng_pool"));
    Ref<Node> n = raw(Op::pool, from->dtype, shape_ref(pool_dims(x->dims(), s, "ng_pool")), std::initializer_list<NodeRef>{x, from}, 1);
    n->more().ints = ints_of(s);
    return g.intern(n);
}

ng_conv_desc conv_desc(const Node& conv)
{
    const ConvShape s = conv_shape(conv);
    ng_conv_desc d = {};
    d.size = sizeof d, d.flags = uint32_t(s.flags), d.groups = s.groups, d.pad_value = s.pad_value;
    for (size_t i = 0; i < 3; i++) d.stride[i] = s.stride[i], d.dilate[i] = s.dilate[i], d.pad_lo[i] = s.pad_lo[i], d.pad_hi[i] = s.pad_hi[i];
    return d;
}

ng_pool_desc pool_desc(const Node& pool)
{
    const PoolShape s = pool_shape(pool);
    ng_pool_desc d = {};
    d.size = sizeof d, d.flags = uint32_t(s.flags), d.kind = ng_pool_kind(s.kind);
    for (size_t i = 0; i < 3; i++)
        d.window[i] = s.window[i], d.stride[i] = s.stride[i], d.dilate[i] = s.dilate[i], d.pad_lo[i] = s.pad_lo[i], d.pad_hi[i] = s.pad_hi[i];
    d.channel_window = s.channel_window, d.channel_stride = s.channel_stride, d.channel_pad = s.channel_pad;
    return d;
}

}  // namespace build
}  // namespace ng
