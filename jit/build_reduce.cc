// Building reductions: the folds that kernels know, and statistics and normalisations composed of them.
#include "jit/build.h"

#include <limits>

namespace ng::build {
namespace {

struct Reduced {
    uint64_t axes;       // as bits, below the rank, without those of extent 1
    Extents  dims;       // with 1 where reduced
    Extents  dropped;    // without them
    Extent   count;      // elements folded into one
};

Reduced reduced(const Node& x, ng_axes axes, const char* who)
{
    const int rank = x.rank();
    if (axes != NG_ALL && rank < 64 && (axes >> rank))
        throw Error(NG_E_INVALID, text(who, ": axis ", 63 - __builtin_clzll(axes), " is outside ", describe(x)));
    Reduced r{0, {}, {}, 1};
    for (int a = 0; a < rank; a++) {
        const Extent& d = x.dims()[size_t(a)];
        const bool out = axes >> a & 1;
        if (out && !d.is(1)) r.axes |= uint64_t(1) << a;
        if (out) r.count = r.count * d;
        else r.dropped.push_back(d);
        r.dims.push_back(out ? Extent(1) : d);
    }
    return r;
}

NodeRef operand_of(Graph& g, Op op, const NodeRef& x)
{
    if (op == Op::any || op == Op::all) return cast(g, x, Dtype::bool_);
    if ((op == Op::sum || op == Op::prod) && !is_float(x->dtype))
        return cast(g, x, info(x->dtype).kind == Kind::Uint ? Dtype::u64 : Dtype::i64);
    return cast(g, x, compute_of(x->dtype));
}

// With the reduced axes kept as 1.
NodeRef folded(Graph& g, Op op, const NodeRef& x, const Reduced& r)
{
    const bool position = op == Op::argmin || op == Op::argmax, needs_one = position || op == Op::min || op == Op::max;
    const NodeRef operand = operand_of(g, op, x);
    if (needs_one && r.count.is(0))
        throw Error(NG_E_SHAPE, text("ng_", name_of(op), ": ", describe(*x), " has no element to choose from"));
    if (!r.axes) return position ? zeros_like(g, reshape(g, x, r.dims), Dtype::i64) : reshape(g, operand, r.dims);
    return make(g, op, position ? Dtype::i64 : operand->dtype, shape_ref(r.dims), {operand}, int64_t(r.axes));
}

NodeRef greatest_of(Graph& g, const NodeRef& x, const Reduced& r)
{
    if (r.count.is(0)) return broadcast(g, constant(g, x->dtype, -std::numeric_limits<double>::infinity()), r.dims);
    const NodeRef top = folded(g, Op::max, x, r);
    if (r.count.is_constant()) return top;
    Ref<Node> n = raw(Op::max, top->dtype, top->shape, {&top->arg(0), 1}, top->value);
    n->more().ints = {1};
    return g.intern(n);
}

NodeRef mean(Graph& g, const NodeRef& x, const Reduced& r)
{
    const Dtype t = real_of(x->dtype);
    const bool  is_exact = !is_float(x->dtype) && bytes_of(x->dtype) < 8;          // as sums of integers; those of 64 bits would wrap
    const NodeRef sum = cast(g, folded(g, Op::sum, is_exact ? x : cast(g, x, t), r), t);
    return map(g, Op::div, {sum, cast(g, length(g, r.count), t)});
}

NodeRef variance(Graph& g, const NodeRef& x, const Reduced& r)
{
    const NodeRef real = cast(g, x, real_of(x->dtype)), off = map(g, Op::sub, {real, mean(g, x, r)});
    return mean(g, map(g, Op::mul, {off, off}), r);
}

// The greatest element as a number without derivative, for shifting exponents; 0 where it is no number to shift by.
NodeRef shift(Graph& g, const NodeRef& x, const Reduced& r)
{
    const NodeRef top = surrogate(g, greatest_of(g, x, r), {});
    return map(g, Op::where, {map(g, Op::isfinite, {top}), top, constant(g, x->dtype, 0)});
}

NodeRef own_cotangent(Graph& g, const NodeRef& y)
{
    Ref<Node> n = raw(Op::param, y->dtype, y->shape, {}, OWN_PARAM);
    n->more().extents = dense_strides(y->dims());
    n->more().ints = {0};
    return g.intern(n);
}

NodeRef logsumexp(Graph& g, const NodeRef& given, const Reduced& r)
{
    const NodeRef x = cast(g, given, real_of(given->dtype)), m = shift(g, x, r);
    const NodeRef y = map(g, Op::add, {map(g, Op::log, {folded(g, Op::sum, map(g, Op::exp, {map(g, Op::sub, {x, m})}), r)}), m});
    // Beside an infinite element all others have slope 0, and it has 1, not exp(inf - inf).
    const NodeRef is_top = map(g, Op::equal, {x, constant(g, x->dtype, std::numeric_limits<double>::infinity())});
    const NodeRef off = map(g, Op::where, {is_top, constant(g, x->dtype, 0), map(g, Op::sub, {x, y})});
    const NodeRef dy = own_cotangent(g, y), dx = map(g, Op::mul, {dy, map(g, Op::exp, {off})});
    return custom_grad(g, y, dy, {&x, 1}, {&dx, 1});
}

// The root of squares that were added; at 0, where its slope is not one number, it has slope 0 and not 0 * inf.
NodeRef length_of(Graph& g, const NodeRef& squares)
{
    const NodeRef zero = constant(g, squares->dtype, 0), is_zero = map(g, Op::equal, {squares, zero});
    return map(g, Op::where, {is_zero, zero, map(g, Op::sqrt, {map(g, Op::where, {is_zero, constant(g, squares->dtype, 1), squares})})});
}

NodeRef statistic(Graph& g, Op op, const NodeRef& x, const Reduced& r)
{
    const NodeRef real = cast(g, x, real_of(x->dtype));
    switch (op) {
    case Op::mean: return mean(g, x, r);
    case Op::var: return variance(g, x, r);
    case Op::std: return length_of(g, variance(g, x, r));
    case Op::norm: return length_of(g, folded(g, Op::sum, map(g, Op::mul, {real, real}), r));
    case Op::logsumexp: return logsumexp(g, x, r);
    case Op::count_nonzero: return folded(g, Op::sum, cast(g, x, Dtype::bool_), r);
    default: throw Error(NG_E_BUG, text("ng_", name_of(op), ": no rule composes it"));
    }
}

}  // namespace

NodeRef reduce(Graph& g, Op op, NodeRef x, ng_axes axes, uint32_t flags)
{
    const std::string who = std::string("ng_") + name_of(op);
    if (flags & ~uint32_t(NG_KEEP)) throw Error(NG_E_INVALID, text(who, ": unknown flags ", flags & ~uint32_t(NG_KEEP)));
    x = strong(g, x);
    const Reduced r = reduced(*x, axes, who.c_str());
    const NodeRef y = is_fold(op) ? folded(g, op, x, r) : statistic(g, op, x, r);
    return flags & NG_KEEP ? y : reshape(g, y, r.dropped);
}

NodeRef greatest(Graph& g, const NodeRef& x, ng_axes axes) { return greatest_of(g, x, reduced(*x, axes, "ng_max")); }

NodeRef norm(Graph& g, Op op, NodeRef given, ng_axes axes)
{
    const std::string who = std::string("ng_") + name_of(op);
    const NodeRef x = cast(g, strong(g, given), real_of(strong(g, given)->dtype));
    const Reduced r = reduced(*x, axes, who.c_str());
    if (r.count.is(0)) return x;
    const NodeRef off = map(g, Op::sub, {x, shift(g, x, r)}), e = map(g, Op::exp, {off}), total = folded(g, Op::sum, e, r);
    const bool logarithm = op == Op::log_softmax;
    const NodeRef y = logarithm ? map(g, Op::sub, {off, map(g, Op::log, {total})}) : map(g, Op::div, {e, total});
    const NodeRef dy = own_cotangent(g, y);
    const NodeRef dx = logarithm ? map(g, Op::sub, {dy, map(g, Op::mul, {map(g, Op::exp, {y}), folded(g, Op::sum, dy, r)})})
                                 : map(g, Op::mul, {y, map(g, Op::sub, {dy, folded(g, Op::sum, map(g, Op::mul, {dy, y}), r)})});
    return custom_grad(g, y, dy, {&x, 1}, {&dx, 1});
}

}  // namespace ng::build
