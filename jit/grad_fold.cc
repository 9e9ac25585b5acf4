// Derivatives of folds: of sums everywhere, of extremes at their first place, of products without dividing.
#include "jit/grad_sweep.h"

#include <limits>

namespace ng {
namespace {

using build::map;

// Of numbers that fall from place to place the one where the fold's result stands first. It may be that of nothing, which argmax would refuse.
NodeRef first_of_any(Graph& g, const Node& n, const NodeRef& order)
{
    const NodeRef& x = n.arg(0);
    const NodeRef is_top = map(g, Op::logical_or, {map(g, Op::equal, {x, &n}), map(g, Op::isnan, {x})});
    return build::greatest(g, map(g, Op::where, {is_top, order, build::constant(g, Dtype::f64, -std::numeric_limits<double>::infinity())}), ng_axes(n.value));
}

NodeRef at_first(Graph& g, const Node& n, const NodeRef& d)
{
    const NodeRef& x = n.arg(0);
    Extents over(x->dims().size(), Extent(1));
    for (size_t a = 0; a < over.size(); a++)
        if (n.value >> a & 1) over[a] = x->dims()[a];
    NodeRef places = numbering(g, over);
    if (n.extra) places = map(g, Op::neg, {build::cast(g, places, Dtype::f64)});
    const NodeRef first = n.extra ? first_of_any(g, n, places) : build::reduce(g, n.op == Op::max ? Op::argmax : Op::argmin, x, ng_axes(n.value), NG_KEEP);
    return map(g, Op::where, {map(g, Op::equal, {places, first}), d, build::constant(g, d->dtype, 0)});
}

// Of each element of the last axis the product of all the others. Dividing by the element would fail at zeros; so the
// axis is multiplied half by half up to one product, and from there each half is handed the other: 3 n products in
// log2(n) levels of plain arithmetic, which can be derived again.
NodeRef others_by_halves(Graph& g, NodeRef x, int64_t count)
{
    const auto axis = int32_t(x->rank() - 1);
    struct Level { NodeRef low, high; int64_t count; };
    std::vector<Level> levels;
    while (count > 1) {
        const int64_t half = (count + 1) / 2;
        const NodeRef low = build::slice_at(g, x, axis, 0, half, 1);
        NodeRef high = build::slice_at(g, x, axis, half, count - half, 1);
        if (count % 2) {
            Extents dims = x->dims();
            dims[size_t(axis)] = 1;
            const NodeRef one[] = {high, filled(g, x->dtype, 1, dims)};
            high = build::concat(g, one, axis);
        }
        levels.push_back({low, high, count});
        x = map(g, Op::mul, {low, high});
        count = half;
    }
    NodeRef others = filled(g, x->dtype, 1, x->dims());
    for (size_t i = levels.size(); i-- > 0;) {
        const NodeRef halves[] = {map(g, Op::mul, {others, levels[i].high}), map(g, Op::mul, {others, levels[i].low})};
        others = build::slice_at(g, build::concat(g, halves, axis), axis, 0, levels[i].count, 1);
    }
    return others;
}

NodeRef others(Graph& g, const NodeRef& x)
{
    const Extent& count = x->dims().back();
    const auto axis = int32_t(x->rank() - 1);
    if (count.is(0)) return x;
    if (count.is_constant()) return others_by_halves(g, x, count.constant());
    // An unknown number of halvings: what is before times what is behind. Derived once, not twice.
    return map(g, Op::mul, {build::scan(g, x, axis, NG_FOLD_PROD, NG_EXCLUSIVE), build::scan(g, x, axis, NG_FOLD_PROD, NG_EXCLUSIVE | NG_REVERSE)});
}

NodeRef by_product(Graph& g, const Node& n, const NodeRef& d)
{
    const NodeRef& x = n.arg(0);
    std::vector<int32_t> order, inverse(size_t(x->rank()));
    Extents dims, permuted;
    Extent count = 1;
    for (const bool reduced : {false, true})
        for (int32_t a = 0; a < x->rank(); a++) {
            if (bool(n.value >> a & 1) != reduced) continue;
            const Extent& e = x->dims()[size_t(a)];
            inverse[size_t(a)] = int32_t(order.size());
            order.push_back(a), permuted.push_back(e);
            if (reduced) count = count * e;
            else dims.push_back(e);
        }
    dims.push_back(count);
    const NodeRef rest = others(g, build::reshape(g, build::permute(g, x, order), dims));
    return map(g, Op::mul, {d, build::permute(g, build::reshape(g, rest, permuted), inverse)});
}

}  // namespace

bool spread_fold(Sweep& s, const Node& n, const NodeRef& d)
{
    if (n.op != Op::sum && n.op != Op::prod && n.op != Op::min && n.op != Op::max) return false;
    if (!s.wants(n, 0)) return true;
    if (n.op == Op::sum) s.give(n, 0, d);
    else s.give(n, 0, n.op == Op::prod ? by_product(s.g, n, d) : at_first(s.g, n, d));
    return true;
}

}  // namespace ng
