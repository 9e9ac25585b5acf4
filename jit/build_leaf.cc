// Building what needs no operand: constants, leaves, arguments, numbers known when run.
#include "jit/build.h"
#include "jit/number.h"

#include <bit>

namespace ng {

Extents extents_of(const int64_t* dims, uint32_t count, const char* who)
{
    if (count > NG_MAX_NDIM) throw Error(NG_E_LIMIT, text(who, ": rank ", count, " exceeds ", int(NG_MAX_NDIM)));
    if (!dims && count) throw Error(NG_E_INVALID, text(who, ": dims is NULL, and there are ", count, " of them"));
    Extents out;
    for (uint32_t i = 0; i < count; i++) {
        if (dims[i] < -int64_t(Extent::HIDDEN))
            throw Error(NG_E_SHAPE, text(who, ": dims[", i, "] is ", dims[i], "; lengths are -1 .. -", int(Extent::HIDDEN)));
        out.push_back(dims[i] >= 0 ? Extent(dims[i]) : Extent::variable(int32_t(-1 - dims[i])));
    }
    return out;
}

void need_size(const ng_shape& d, const char* who)
{
    size_t least = offsetof(ng_shape, dims);
    if (d.size >= least && d.ndim) least = d.flags & NG_STRIDED && !(d.flags & NG_ANY) ? sizeof d : offsetof(ng_shape, strides);
    if (d.size < least) throw Error(NG_E_INVALID, text(who, ": ng_shape.size is ", d.size, ", should be sizeof(ng_shape) = ", sizeof d));
}

void need_rank(int64_t ndim, const char* who)
{
    if (ndim < 0 || ndim > NG_MAX_NDIM) throw Error(NG_E_LIMIT, text(who, ": rank ", ndim, " is outside 0 .. ", int(NG_MAX_NDIM)));
}

Layout layout_of(const ng_shape* d, const char* who, const char* parameter)
{
    if (!d) throw Error(NG_E_INVALID, text(who, ": ", parameter, " is NULL, should be an ng_shape"));
    need_size(*d, who);
    need_rank(d->ndim, who);
    const uint64_t known = NG_STRIDED | NG_READONLY | NG_HOST | NG_ANY;
    if (d->flags & ~known) throw Error(NG_E_INVALID, text(who, ": ng_shape.flags has unknown bits ", d->flags & ~known));
    Layout l;
    l.dtype = dtype_of(d->dtype, who);
    l.dims = extents_of(d->dims, uint32_t(d->ndim), who);
    l.any = d->flags & NG_ANY, l.readonly = d->flags & NG_READONLY, l.host = d->flags & NG_HOST;
    l.strided = (d->flags & NG_STRIDED) && !l.any;
    l.strides = l.strided ? Extents(d->strides, d->strides + d->ndim) : dense_strides(l.dims);
    return l;
}

namespace build {

Ref<Node> raw(Op op, Dtype t, ShapeRef shape, std::span<const NodeRef> args, int64_t value)
{
    Ref<Node> n = new Node;
    n->op = op, n->dtype = t, n->shape = std::move(shape), n->value = value;
    n->set_args(args);
    return n;
}

NodeRef make(Graph& g, Op op, Dtype t, ShapeRef shape, std::initializer_list<NodeRef> args, int64_t value)
{
    return g.intern(raw(op, t, std::move(shape), args, value));
}

static bool is_axis(int32_t axis, int rank) { return axis >= -rank && axis < rank; }
int32_t axis_of(int32_t axis, const Node& x, const char* who)
{
    if (!is_axis(axis, x.rank())) throw Error(NG_E_INVALID, text(who, ": axis ", axis, " is outside ", describe(x)));
    return axis < 0 ? axis + x.rank() : axis;
}
int32_t axis_of(int32_t axis, Dtype t, const Extents& dims, const char* who)
{
    if (!is_axis(axis, int(dims.size()))) throw Error(NG_E_INVALID, text(who, ": axis ", axis, " is outside ", name_of(t), " ", text_of(dims)));
    return axis < 0 ? axis + int(dims.size()) : axis;
}

namespace {
NodeRef bits(Graph& g, Dtype t, int64_t value, bool weak)
{
    Ref<Node> n = raw(Op::constant, t, shape_ref({}), {}, value);
    n->weak = weak;
    return g.intern(n);
}
}  // namespace

NodeRef constant(Graph& g, Dtype t, double value) { return bits(g, t, Number(value).as(t).bits(t), false); }
NodeRef constant_int(Graph& g, Dtype t, int64_t value) { return bits(g, t, Number(value).as(t).bits(t), false); }
NodeRef weak(Graph& g, double value) { return bits(g, Dtype::f64, std::bit_cast<int64_t>(value), true); }
NodeRef weak_int(Graph& g, int64_t value) { return bits(g, Dtype::i64, value, true); }

NodeRef leaf(Graph& g, std::shared_ptr<void> tensor, const Layout& layout)
{
    Ref<Node> n = raw(Op::leaf, layout.dtype, shape_ref(layout.dims), {});
    n->more().extents = layout.strides;
    n->more().tensor = std::move(tensor);
    return g.intern(n);
}

NodeRef param(Graph& g, uint32_t index, const Layout& layout)
{
    if (index >= 1u << 16) throw Error(NG_E_LIMIT, text("ng_param: index ", index, " exceeds 65535"));
    Ref<Node> n = raw(Op::param, layout.dtype, shape_ref(layout.dims), {}, index);
    n->more().extents = layout.strides;
    n->more().ints = {layout.any};
    return g.intern(n);
}

NodeRef scalar(Graph& g, Dtype t, uint32_t offset)
{
    if (offset > (1u << 20)) throw Error(NG_E_LIMIT, text("ng_scalar: byte ", offset, " exceeds 1 MiB"));
    return make(g, Op::scalar, t, shape_ref({}), {}, offset);
}

NodeRef length(Graph& g, const Extent& e)
{
    if (e.is_constant()) return constant_int(g, Dtype::i64, e.constant());
    NodeRef sum;
    for (const Term& t : e.terms()) {
        NodeRef p;
        for (const int32_t v : t.variables) {
            const NodeRef one = make(g, Op::length, Dtype::i64, shape_ref({}), {}, v);
            p = p ? map(g, Op::mul, {p, one}) : one;
        }
        const NodeRef c = constant_int(g, Dtype::i64, t.coefficient);
        if (!p) p = c;
        else if (t.coefficient != 1) p = map(g, Op::mul, {p, c});
        sum = sum ? map(g, Op::add, {sum, p}) : p;
    }
    return sum;
}

NodeRef iota(Graph& g, const Layout& shape, int32_t axis)
{
    const int32_t a = axis_of(axis, shape.dtype, shape.dims, "ng_iota");
    return make(g, Op::iota, shape.dtype, shape_ref(shape.dims), {}, a);
}

NodeRef counter_word(Graph& g, const NodeRef& x, const char* name, const char* who)
{
    if (x->rank() || !is_integer(x->dtype)) throw Error(x->rank() ? NG_E_SHAPE : NG_E_DTYPE, text(who, ": ", name, " is ", describe(*x), ", should be a scalar u64"));
    return cast(g, x, Dtype::u64);
}

NodeRef random(Graph& g, uint32_t kind, NodeRef key, NodeRef step, const Layout& shape)
{
    if (kind > NG_BITS) throw Error(NG_E_INVALID, text("ng_random: kind ", kind, " is none of NG_UNIFORM, NG_NORMAL, NG_BITS"));
    const bool fits = kind == NG_BITS ? shape.dtype == Dtype::u32 : shape.dtype == Dtype::f32 || shape.dtype == Dtype::f64;
    if (!fits) throw Error(NG_E_DTYPE, text("ng_random: numbers of this kind are ", kind == NG_BITS ? "u32" : "f32 or f64", ", not ", name_of(shape.dtype)));
    if (!step) step = constant_int(g, Dtype::u64, 0);
    key = counter_word(g, key, "key", "ng_random"), step = counter_word(g, step, "step", "ng_random");
    return make(g, Op::random, shape.dtype, shape_ref(shape.dims), {key, step}, kind);
}

}  // namespace build
}  // namespace ng
