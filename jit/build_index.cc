// Building what works by index: take, put, scan, segment, argsort.
#include "jit/build.h"

#include "jit/number.h"

namespace ng::build {
namespace {

NodeRef integer_indices(Graph& g, NodeRef n, const char* who, const char* what)
{
    n = strong(g, n);
    if (!is_integer(n->dtype)) throw Error(NG_E_DTYPE, text(who, ": ", what, " are ", describe(*n), ", should be integers"));
    return cast(g, n, Dtype::i64);
}

// x's shape with the axis replaced by the indices' axes.
Extents taken(const Node& x, const Node& indices, int32_t axis, const char* who)
{
    Extents dims(x.dims().begin(), x.dims().begin() + axis);
    dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
    dims.insert(dims.end(), x.dims().begin() + axis + 1, x.dims().end());
    if (dims.size() > NG_MAX_NDIM) throw Error(NG_E_LIMIT, text(who, ": the result would have rank ", dims.size(), ", the limit is ", int(NG_MAX_NDIM)));
    return dims;
}

void check_fold(uint32_t how, const char* who)
{
    if (how > NG_FOLD_MAX) throw Error(NG_E_INVALID, text(who, ": ", how, " is none of NG_FOLD_LAST, _SUM, _PROD, _MIN, _MAX"));
}
void check_flags(uint32_t flags, uint32_t known, const char* who)
{
    if (flags & ~known) throw Error(NG_E_INVALID, text(who, ": unknown flags ", flags & ~known));
}

}  // namespace

NodeRef take(Graph& g, NodeRef x, NodeRef indices, int32_t axis)
{
    x = strong(g, x);
    axis = axis_of(axis, *x, "ng_take");
    indices = integer_indices(g, indices, "ng_take", "indices");
    return make(g, Op::take, x->dtype, shape_ref(taken(*x, *indices, axis, "ng_take")), {x, indices}, axis);
}

NodeRef put(Graph& g, NodeRef x, NodeRef indices, NodeRef y, int32_t axis, uint32_t how)
{
    x = strong(g, x);
    check_fold(how, "ng_put");
    axis = axis_of(axis, *x, "ng_put");
    indices = integer_indices(g, indices, "ng_put", "indices");
    const bool literal = y->op == Op::constant && y->weak;
    if (literal && !is_float(x->dtype) && (is_float(y->dtype) || !Number::of_bits(y->dtype, y->value).fits(x->dtype)))
        throw Error(NG_E_DTYPE, text("ng_put: y is ", Number::of_bits(y->dtype, y->value).real(), ", which is no ", name_of(x->dtype), " as x is; only ng_cast narrows"));
    if (y->dtype != x->dtype && !literal && (is_float(x->dtype) != is_float(y->dtype) || promote(x->dtype, y->dtype, "ng_put") != x->dtype))
        throw Error(NG_E_DTYPE, text("ng_put: y is ", describe(*y), " and x ", describe(*x), "; only ng_cast narrows: cast y to ", name_of(x->dtype)));
    const Extents places = taken(*x, *indices, axis, "ng_put");
    try {
        y = broadcast(g, cast(g, y, x->dtype), places);
    } catch (const Error& fault) {
        if (fault.status != NG_E_SHAPE) throw;
        throw Error(NG_E_SHAPE, text("ng_put: y is ", describe(*y), ", should broadcast to the places ", text_of(places), " in ", describe(*x)));
    }
    Ref<Node> n = raw(Op::put, x->dtype, x->shape, std::initializer_list<NodeRef>{x, indices, y}, axis);
    n->more().ints = {int64_t(how)};
    return g.intern(n);
}

NodeRef scan(Graph& g, NodeRef x, int32_t axis, uint32_t how, uint32_t flags)
{
    x = strong(g, x);
    check_fold(how, "ng_scan");
    check_flags(flags, NG_EXCLUSIVE | NG_REVERSE, "ng_scan");
    axis = axis_of(axis, *x, "ng_scan");
    Ref<Node> n = raw(Op::scan, x->dtype, x->shape, {&x, 1}, axis);
    n->more().ints = {int64_t(how), int64_t(flags)};
    return g.intern(n);
}

NodeRef segment(Graph& g, NodeRef x, NodeRef offsets, uint32_t how)
{
    x = strong(g, x);
    check_fold(how, "ng_segment");
    const NodeRef given = strong(g, offsets);
    offsets = integer_indices(g, given, "ng_segment", "offsets");
    if (x->rank() < 1 || offsets->rank() != 1 || offsets->dims()[0].is(0))
        throw Error(NG_E_SHAPE, text("ng_segment: x is ", describe(*x), " and offsets ", describe(*given), ", should be [n, ..] and [segments + 1]"));
    Extents dims = x->dims();
    dims[0] = offsets->dims()[0] - Extent(1);
    Ref<Node> n = raw(Op::segment, x->dtype, shape_ref(std::move(dims)), std::initializer_list<NodeRef>{x, offsets});
    n->more().ints = {int64_t(how)};
    return g.intern(n);
}

NodeRef argsort(Graph& g, NodeRef x, int32_t axis, uint32_t flags)
{
    x = strong(g, x);
    check_flags(flags, NG_REVERSE, "ng_argsort");
    axis = axis_of(axis, *x, "ng_argsort");
    Ref<Node> n = raw(Op::argsort, Dtype::i64, x->shape, {&x, 1}, axis);
    n->more().ints = {int64_t(flags)};
    return g.intern(n);
}

}  // namespace ng::build
