// Derivatives of matrix products, convolutions and poolings: closed among themselves, with the flags they had.
#include "jit/grad_sweep.h"

namespace ng {
namespace {

using build::map;

NodeRef transposed(Graph& g, const NodeRef& x)
{
    std::vector<int32_t> axes(size_t(x->rank()));
    for (size_t i = 0; i < axes.size(); i++) axes[i] = int32_t(i);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return build::permute(g, x, axes);
}

// One matrix b for the whole batch of a: the rows of all are one matrix, and their sum over the batch one product.
bool is_shared(const Node& a, const Node& b, const Node& y)
{
    const auto batch = size_t(y.rank()) - 2;
    for (size_t i = 0; i < batch; i++)
        if (!b.dims()[i].is(1) || !(a.dims()[i] == y.dims()[i])) return false;
    return batch > 0;
}

void spread_matmul(Sweep& s, const Node& n, const NodeRef& d)
{
    Graph& g = s.g;
    const NodeRef &a = n.arg(0), &b = n.arg(1);
    const auto flags = uint32_t(n.value);
    if (s.wants(n, 0)) s.give(n, 0, sum_to(g, build::matmul(g, d, transposed(g, b), flags), a->dims()));
    if (!s.wants(n, 1)) return;
    if (!is_shared(*a, *b, n)) return s.give(n, 1, sum_to(g, build::matmul(g, transposed(g, a), d, flags), b->dims()));
    const auto rows = [&](const NodeRef& x) { return build::reshape(g, x, {product(std::span(x->dims()).first(x->dims().size() - 1)), x->dims().back()}); };
    s.give(n, 1, build::reshape(g, build::matmul(g, transposed(g, rows(a)), rows(d), flags), b->dims()));
}

Layout shape_of(const NodeRef& x)
{
    Layout l;
    l.dtype = x->dtype, l.dims = x->dims();
    return l;
}

// conv, conv_dx and conv_dw are one trilinear form of x, w and dy: what is missing is derived by the other two. A
// padding value is part of x, so that it is no part of what is linear in x.
void spread_conv(Sweep& s, const Node& n, const NodeRef& d)
{
    Graph& g = s.g;
    const NodeRef &a = n.arg(0), &b = n.arg(1);
    const ng_conv_desc padded = build::conv_desc(n);
    ng_conv_desc desc = padded;
    desc.pad_value = 0;
    const bool by_a = s.wants(n, 0), by_b = s.wants(n, 1);
    switch (n.op) {
    case Op::conv:
        if (by_a) s.give(n, 0, build::conv_dx(g, b, d, shape_of(a), &desc));
        if (by_b) s.give(n, 1, build::conv_dw(g, a, d, shape_of(b), &padded));
        break;
    case Op::conv_dx:
        if (by_a) s.give(n, 0, build::conv_dw(g, d, b, shape_of(a), &desc));
        if (by_b) s.give(n, 1, build::conv(g, d, a, &desc));
        break;
    default:
        if (by_a) s.give(n, 0, build::conv_dx(g, d, b, shape_of(a), &desc));
        if (by_b) s.give(n, 1, build::conv(g, a, d, &padded));
    }
}

// Sums over the windows of an L2 pooling, and what divides by its result.
struct Windows {
    Graph&       g;
    NodeRef      x, norm, count;
    ng_pool_desc l2, mean;

    Windows(Graph& graph, const Node& pool_dx) : g(graph), x(pool_dx.arg(0)), l2(build::pool_desc(pool_dx)), mean(l2)
    {
        const Dtype t = cotangent_type(x->dtype);
        mean.kind = NG_POOL_MEAN, mean.flags &= ~uint32_t(NG_POOL_COUNT_PAD);
        norm = build::pool(g, x, &l2);
        count = map(g, Op::rint, {map(g, Op::square, {build::pool(g, filled(g, t, 1, x->dims()), &l2)})});
    }
    NodeRef sum(const NodeRef& z) const { return map(g, Op::mul, {build::pool(g, z, &mean), count}); }
    NodeRef spread(const NodeRef& z) const { return build::pool_dx(g, x, map(g, Op::mul, {z, count}), &mean); }
    // Of a window of zeros 0, as its derivative is.
    NodeRef by_norm(const NodeRef& z) const
    {
        const NodeRef zero = build::constant(g, norm->dtype, 0), some = map(g, Op::greater, {norm, zero});
        return map(g, Op::where, {some, map(g, Op::div, {z, map(g, Op::where, {some, norm, build::constant(g, norm->dtype, 1)})}), zero});
    }
};

// Of dx = x sum(dy / norm) over an element's windows.
void spread_l2_dx(Sweep& s, const Node& n, const NodeRef& d)
{
    Graph& g = s.g;
    const Windows w(g, n);
    const NodeRef &dy = n.arg(1), slope = w.by_norm(w.sum(map(g, Op::mul, {d, w.x})));
    if (s.wants(n, 1)) s.give(n, 1, slope);
    if (!s.wants(n, 0)) return;
    const NodeRef direct = map(g, Op::mul, {d, w.spread(w.by_norm(dy))});
    s.give(n, 0, map(g, Op::sub, {direct, build::pool_dx(g, w.x, w.by_norm(map(g, Op::mul, {dy, slope})), &w.l2)}));
}

void spread_pool(Sweep& s, const Node& n, const NodeRef& d)
{
    Graph& g = s.g;
    const ng_pool_desc desc = build::pool_desc(n);
    const size_t last = n.args().size() - 1;
    if (n.op == Op::pool) {
        if (s.wants(n, last)) s.give(n, last, build::pool_dx(g, n.arg(0), d, &desc));
        return;
    }
    if (desc.kind == NG_POOL_L2) return spread_l2_dx(s, n, d);
    if (s.wants(n, 1)) s.give(n, 1, desc.kind == NG_POOL_MEAN ? build::pool(g, d, &desc) : build::pool_picked(g, n.arg(0), d, &desc));
}

}  // namespace

bool spread_product(Sweep& s, const Node& n, const NodeRef& d)
{
    switch (n.op) {
    case Op::matmul: spread_matmul(s, n, d); return true;
    case Op::conv: case Op::conv_dx: case Op::conv_dw: spread_conv(s, n, d); return true;
    case Op::pool: case Op::pool_dx: spread_pool(s, n, d); return true;
    default: return false;
    }
}

}  // namespace ng
