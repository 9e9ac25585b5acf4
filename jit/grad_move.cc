// Derivatives of movement: what went somewhere comes back, what was repeated is summed.
#include "jit/grad_sweep.h"

namespace ng {
namespace {

NodeRef permuted_back(Graph& g, const Node& n, const NodeRef& d)
{
    std::vector<int32_t> inverse(size_t(n.arg(0)->rank()));
    Extents dims;
    for (size_t i = 0; i < n.extra->ints.size(); i++) {
        const int64_t axis = n.int_at(i);
        if (axis < 0) continue;
        inverse[size_t(axis)] = int32_t(dims.size());
        dims.push_back(d->dims()[i]);
    }
    return build::permute(g, build::reshape(g, d, dims), inverse);
}

// Every element of d goes to where the view read its own.
NodeRef view_back(Graph& g, const Node& n, const NodeRef& d)
{
    NodeRef at = build::length(g, n.extra->extents.back());
    for (int a = 0; a < n.rank(); a++) {
        Layout along;
        along.dtype = Dtype::i64, along.dims = Extents(size_t(n.rank()), Extent(1));
        along.dims[size_t(a)] = n.dims()[size_t(a)];
        const NodeRef stride = build::length(g, n.extra->extents[size_t(a)]);
        at = build::map(g, Op::add, {at, build::map(g, Op::mul, {build::iota(g, along, a), stride})});
    }
    const NodeRef zeros = filled(g, d->dtype, 0, {product(n.arg(0)->dims())});
    return build::reshape(g, build::put(g, zeros, build::broadcast(g, at, n.dims()), d, 0, NG_FOLD_SUM), n.arg(0)->dims());
}

void spread_concat(Sweep& s, const Node& n, const NodeRef& d)
{
    const auto axis = int32_t(n.value);
    Extent at = 0;
    for (size_t i = 0; i < n.args().size(); i++) {
        const Extent& count = n.arg(i)->dims()[size_t(axis)];
        if (s.wants(n, i)) s.give(n, i, build::slice_at(s.g, d, axis, at, count, 1));
        at = at + count;
    }
}

}  // namespace

bool spread_movement(Sweep& s, const Node& n, const NodeRef& d)
{
    switch (n.op) {
    case Op::concat: spread_concat(s, n, d); return true;
    case Op::cast: case Op::cast_stochastic: case Op::reshape: case Op::broadcast: case Op::permute: case Op::slice: case Op::view: case Op::bitcast: break;
    default: return false;
    }
    if (!s.wants(n, 0)) return true;
    const Extents& dims = n.arg(0)->dims();
    switch (n.op) {
    case Op::reshape: s.give(n, 0, build::reshape(s.g, d, dims)); break;
    case Op::broadcast: s.give(n, 0, sum_to(s.g, d, dims)); break;
    case Op::permute: s.give(n, 0, permuted_back(s.g, n, d)); break;
    case Op::slice: s.give_slice(n, d); break;
    case Op::view: s.give(n, 0, view_back(s.g, n, d)); break;
    case Op::bitcast: s.refuse(n, "bits have no derivative; ng_surrogate gives them one, or none");
    default: s.give(n, 0, d);
    }
    return true;
}

}  // namespace ng
