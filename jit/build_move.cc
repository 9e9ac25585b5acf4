// Building movement: the same elements elsewhere, converted types, shapes with lengths checked as polynomials.
#include "jit/build.h"
#include "jit/number.h"

#include <algorithm>
#include <numeric>

namespace ng::build {
namespace {

// Every value of a survives in b.
bool widens(Dtype a, Dtype b)
{
    if (a == b || is_bool(a)) return true;
    if (is_float(a)) return is_float(b) && info(a).exponent <= info(b).exponent && info(a).mantissa <= info(b).mantissa;
    if (is_float(b)) return 8 * bytes_of(a) <= info(b).mantissa;
    if (is_bool(b)) return false;
    if (info(a).kind == info(b).kind) return bytes_of(a) <= bytes_of(b);
    return info(a).kind == Kind::Uint && bytes_of(a) < bytes_of(b);
}

[[noreturn]] void cannot_reshape(const Node& x, const Extents& dims, bool unknown)
{
    throw Error(NG_E_SHAPE, text("ng_reshape: ", describe(x), " has ", product(x.dims()).text(), " elements, ", text_of(dims), " has ", product(dims).text(),
                                 unknown ? "; an extent that no length of the program says is NG_REST" : ""));
}

}  // namespace

NodeRef cast(Graph& g, NodeRef x, Dtype t)
{
    if (x->dtype == t && !x->weak) return x;
    if (x->op == Op::constant) return make(g, Op::constant, t, shape_ref({}), {}, Number::of_bits(x->dtype, x->value).as(t).bits(t));
    if (x->op == Op::broadcast) return broadcast(g, cast(g, x->arg(0), t), x->dims());
    if (x->op == Op::cast) {
        const Dtype from = x->arg(0)->dtype;
        // To narrower integers, integers wrap and floats saturate (N2).
        const bool by_float = is_integer(from) && is_float(x->dtype) && is_integer(t);
        const bool to_finite = from == t && t == Dtype::e5m2;    // its infinities would stay, and saturate on the way back
        if (widens(from, x->dtype) && !to_finite && (!by_float || widens(from, t))) return cast(g, x->arg(0), t);
    }
    return make(g, Op::cast, t, x->shape, {x});
}

NodeRef cast_stochastic(Graph& g, NodeRef x, Dtype t, uint32_t bits, NodeRef key, NodeRef step)
{
    x = strong(g, x);
    if (!is_float(t)) throw Error(NG_E_DTYPE, text("ng_cast_stochastic: rounds to floats, not to ", name_of(t)));
    if (bits > info(t).mantissa) throw Error(NG_E_INVALID, text("ng_cast_stochastic: ", name_of(t), " has ", int(info(t).mantissa), " bits of mantissa, not ", bits));
    x = cast(g, x, real_of(x->dtype));
    if (!step) step = constant_int(g, Dtype::u64, 0);
    key = counter_word(g, key, "key", "ng_cast_stochastic"), step = counter_word(g, step, "step", "ng_cast_stochastic");
    return make(g, Op::cast_stochastic, t, x->shape, {x, key, step}, bits);
}

NodeRef bitcast(Graph& g, NodeRef x, Dtype t)
{
    x = strong(g, x);
    if (bytes_of(x->dtype) != bytes_of(t))
        throw Error(NG_E_DTYPE, text("ng_bitcast: ", describe(*x), " has elements of ", bytes_of(x->dtype), " bytes, ", name_of(t), " of ", bytes_of(t)));
    if (x->dtype == t) return x;
    if (x->op == Op::bitcast) return bitcast(g, x->arg(0), t);
    return make(g, Op::bitcast, t, x->shape, {x});
}

NodeRef reshape(Graph& g, NodeRef x, const Extents& dims)
{
    x = strong(g, x);
    if (x->dims() == dims) return x;
    if (dims.size() > NG_MAX_NDIM) throw Error(NG_E_LIMIT, text("ng_reshape: rank ", dims.size(), " exceeds ", int(NG_MAX_NDIM)));
    const Extent have = product(x->dims()), want = product(dims);
    if (!(have == want)) cannot_reshape(*x, dims, !have.is_constant() || !want.is_constant());
    if (x->op == Op::reshape) return reshape(g, x->arg(0), dims);
    return make(g, Op::reshape, x->dtype, shape_ref(dims), {x});
}

NodeRef reshape_rest(Graph& g, NodeRef x, std::span<const int64_t> given)
{
    x = strong(g, x);
    std::vector<int64_t> known(given.begin(), given.end());
    const auto rest = std::ranges::find(known, NG_REST);
    if (rest == known.end()) return reshape(g, x, extents_of(known.data(), uint32_t(known.size()), "ng_reshape"));
    *rest = 1;
    if (std::ranges::find(known, NG_REST) != known.end()) throw Error(NG_E_INVALID, "ng_reshape: NG_REST stands for one extent, not for two");
    Extents dims = extents_of(known.data(), uint32_t(known.size()), "ng_reshape");
    const Extent all = product(x->dims()), others = product(dims);
    if (others.is(0) && all.is(0)) throw Error(NG_E_SHAPE, text("ng_reshape: any extent would do for NG_REST in ", text_of(dims), ": there are no elements"));
    const std::optional<Extent> quotient = all.divided_by(others);
    if (!quotient) throw Error(NG_E_SHAPE, text("ng_reshape: ", describe(*x), " has ", all.text(), " elements, no multiple of ", others.text()));
    dims[size_t(rest - known.begin())] = *quotient;
    return reshape(g, x, dims);
}

NodeRef broadcast(Graph& g, NodeRef x, const Extents& dims)
{
    return x->dims() == dims ? x : broadcast(g, x, shape_ref(dims));
}

bool broadcasts(const Extents& from, const Extents& to)
{
    if (from.size() > to.size()) return false;
    for (size_t i = 0, more = to.size() - from.size(); i < from.size(); i++)
        if (!from[i].is(1) && !(from[i] == to[more + i])) return false;
    return true;
}

NodeRef broadcast(Graph& g, NodeRef x, const ShapeRef& shape)
{
    if (same(x->shape, shape)) return x;
    x = strong(g, x);
    const Extents& dims = shape->dims;
    if (!broadcasts(x->dims(), dims)) throw Error(NG_E_SHAPE, text("ng_broadcast: ", describe(*x), " does not broadcast to ", text_of(dims)));
    if (dims.size() > NG_MAX_NDIM) throw Error(NG_E_LIMIT, text("ng_broadcast: rank ", dims.size(), " exceeds ", int(NG_MAX_NDIM)));
    if (x->op == Op::broadcast) return broadcast(g, x->arg(0), shape);
    return make(g, Op::broadcast, x->dtype, shape, {x});
}

NodeRef permute(Graph& g, NodeRef x, std::span<const int32_t> axes)
{
    x = strong(g, x);
    const int rank = x->rank();
    if (axes.size() > NG_MAX_NDIM) throw Error(NG_E_LIMIT, text("ng_permute: rank ", axes.size(), " exceeds ", int(NG_MAX_NDIM)));
    std::vector<int64_t> order;
    std::vector<bool> seen(size_t(rank), false);
    Extents dims;
    bool identity = int(axes.size()) == rank;
    for (size_t i = 0; i < axes.size(); i++) {
        const int32_t a = axes[i];
        if (a < -1 || a >= rank || (a >= 0 && seen[size_t(a)]))
            throw Error(NG_E_INVALID, text("ng_permute: axes[", i, "] is ", a, a >= 0 && a < rank ? ", for the second time" : "", "; x is ", describe(*x), " (-1: a new axis)"));
        if (a >= 0) seen[size_t(a)] = true;
        identity = identity && a == int32_t(i);
        order.push_back(a);
        dims.push_back(a < 0 ? Extent(1) : x->dims()[size_t(a)]);
    }
    for (int a = 0; a < rank; a++)
        if (!seen[size_t(a)]) throw Error(NG_E_INVALID, text("ng_permute: axis ", a, " of ", describe(*x), " is missing"));
    if (identity) return x;
    Ref<Node> n = raw(Op::permute, x->dtype, shape_ref(std::move(dims)), {&x, 1});
    n->more().ints = std::move(order);
    return g.intern(n);
}

bool slice_fits(const Extent& have, const Extent& start, const Extent& count, int64_t step)
{
    if (step == 0 || step == INT64_MIN) return false;
    if (!have.is_constant() || !start.is_constant() || !count.is_constant()) return true;
    const int64_t first = start.constant(), d = have.constant(), n = count.constant();
    if (n == 0) return first >= -1 && first <= d;
    int64_t reach = 0, last = first;
    const bool overflows = __builtin_mul_overflow(n - 1, step, &reach) || __builtin_add_overflow(first, reach, &last);
    return first >= 0 && first < d && !overflows && last >= 0 && last < d;
}

NodeRef slice_at(Graph& g, NodeRef x, int32_t axis, const Extent& start, const Extent& count, int64_t step)
{
    const Extent& have = x->dims()[size_t(axis)];
    const bool nothing = have.is_constant() && count.is(0);      // wherever it would begin: one node, and a text that brackets can say
    const Extent first = nothing ? Extent(0) : start;
    const int64_t by = nothing ? 1 : step;
    if (first.is(0) && count == have && by == 1) return x;
    Extents dims = x->dims();
    dims[size_t(axis)] = count;
    Ref<Node> n = raw(Op::slice, x->dtype, shape_ref(std::move(dims)), {&x, 1}, axis);
    n->more().extents = {first};
    n->more().ints = {by};
    return g.intern(n);
}

namespace {

NodeRef slice_known(Graph& g, const NodeRef& x, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    const int64_t d = x->dims()[size_t(axis)].constant();
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? d : d - 1;
    const auto clamp = [&](int64_t i, int64_t omitted) {
        if (i == NG_END) return omitted;
        if (i < 0) i = i < -d ? INT64_MIN / 2 : i + d;
        return std::clamp(i, low, high);
    };
    start = clamp(start, high), stop = clamp(stop, step > 0 ? d : -1);
    const int64_t span = step > 0 ? stop - start : start - stop, size = step > 0 ? step : -step;
    const int64_t count = span > 0 ? 1 + (span - 1) / size : 0;
    return slice_at(g, x, axis, count ? start : 0, count, step);
}

// Positions of an unknown length are polynomials; that they lie inside is checked when run.
NodeRef slice_unknown(Graph& g, const NodeRef& x, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    const Extent& d = x->dims()[size_t(axis)];
    const auto at = [&](int64_t i, const Extent& omitted) { return i == NG_END ? omitted : i < 0 ? d + Extent(i) : Extent(i); };
    const Extent first = at(start, step > 0 ? d : d - Extent(1)), end = at(stop, step > 0 ? d : Extent(-1));
    const Extent span = step > 0 ? end - first : first - end;
    const int64_t size = step > 0 ? step : -step;
    const std::optional<Extent> count = size == 1 ? span : (span + Extent(size - 1)).floor_by(size);
    if (!count) throw Error(NG_E_UNSUPPORTED, text("ng_slice: a step of ", step, " over ", span.text(), " elements leaves no polynomial of lengths; step through a reshape instead"));
    const bool none = count->is_constant() && count->constant() < 0;
    return slice_at(g, x, axis, first, none ? Extent(0) : *count, step);
}

}  // namespace

NodeRef slice(Graph& g, NodeRef x, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    x = strong(g, x);
    axis = axis_of(axis, *x, "ng_slice");
    if (step == 0 || step == INT64_MIN) throw Error(NG_E_INVALID, "ng_slice: the step is 0, should be positive or negative");
    const bool known = x->dims()[size_t(axis)].is_constant();
    return known ? slice_known(g, x, axis, start, stop, step) : slice_unknown(g, x, axis, start, stop, step);
}

// A window is a take of consecutive positions from a clamped start.
NodeRef window(Graph& g, NodeRef x, int32_t axis, NodeRef start, int64_t count)
{
    x = strong(g, x), start = strong(g, start);
    axis = axis_of(axis, *x, "ng_window");
    if (start->rank() || !is_integer(start->dtype))
        throw Error(start->rank() ? NG_E_SHAPE : NG_E_DTYPE, text("ng_window: start is ", describe(*start), ", should be an integer scalar"));
    const Extent size = extents_of(&count, 1, "ng_window")[0], room = x->dims()[size_t(axis)] - size;
    if (room.is_constant() && room.constant() < 0)
        throw Error(NG_E_SHAPE, text("ng_window: a window of ", count, " is longer than axis ", axis, " of ", describe(*x)));
    Layout positions;
    positions.dtype = Dtype::i64, positions.dims = {room.is_constant() ? size : x->dims()[size_t(axis)]};
    const NodeRef within = slice_at(g, iota(g, positions, 0), 0, 0, size, 1);       // of an unknown length: looked at when run
    const NodeRef most = length(g, room), zero = constant_int(g, Dtype::i64, 0);
    const bool    is_wide = start->dtype == Dtype::u64;
    const NodeRef up_to = is_wide ? cast(g, map(g, Op::minimum, {start, cast(g, most, Dtype::u64)}), Dtype::i64) : map(g, Op::minimum, {cast(g, start, Dtype::i64), most});
    return take(g, x, map(g, Op::add, {within, map(g, Op::maximum, {up_to, zero})}), axis);
}

NodeRef concat(Graph& g, std::span<const NodeRef> given, int32_t axis)
{
    if (given.empty()) throw Error(NG_E_INVALID, "ng_concat: of nothing");
    std::vector<NodeRef> x;
    for (const NodeRef& n : given) x.push_back(strong(g, n));
    axis = axis_of(axis, *x[0], "ng_concat");
    Dtype t = x[0]->dtype;
    Extents dims = x[0]->dims();
    std::vector<Term> along = dims[size_t(axis)].terms();        // added up together: one by one, thousands of lengths took quadratic time
    for (size_t i = 1; i < x.size(); i++) {
        if (x[i]->dtype != t) t = promote(t, x[i]->dtype, "ng_concat");
        bool fits = x[i]->rank() == int(dims.size());
        for (size_t a = 0; fits && a < dims.size(); a++) fits = int(a) == axis || x[i]->dims()[a] == dims[a];
        if (!fits) throw Error(NG_E_SHAPE, text("ng_concat: ", describe(*x[i]), " does not go behind ", describe(*x[0]), " along axis ", axis), int32_t(i));
        std::ranges::move(x[i]->dims()[size_t(axis)].terms(), std::back_inserter(along));
        if (along.size() > 2 * Extent::MAX_TERMS) along = Extent::of_terms(std::move(along)).terms();
    }
    if (x.size() == 1) return x[0];
    dims[size_t(axis)] = Extent::of_terms(std::move(along));
    for (NodeRef& n : x) n = cast(g, n, t);
    return g.intern(raw(Op::concat, t, shape_ref(std::move(dims)), x, axis));
}

NodeRef view(Graph& g, NodeRef x, const Layout& seen, int64_t offset)
{
    x = strong(g, x);
    if (seen.dtype != x->dtype) throw Error(NG_E_DTYPE, text("ng_view: x is ", describe(*x), ", the shape says ", name_of(seen.dtype)));
    const Extent count = product(x->dims());
    int64_t low = offset, high = offset;
    bool known = count.is_constant(), empty = false;
    for (size_t a = 0; a < seen.dims.size(); a++) {
        known = known && seen.dims[a].is_constant() && seen.strides[a].is_constant();
        if (!known) break;
        empty = empty || seen.dims[a].is(0);
        int64_t reach;
        if (__builtin_mul_overflow(seen.dims[a].constant() - 1, seen.strides[a].constant(), &reach) || __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            throw Error(NG_E_LIMIT, "ng_view: the strides leave 63 bits");
    }
    if (!known && offset < 0) throw Error(NG_E_SHAPE, text("ng_view: element ", offset, " is seen, before the first of ", describe(*x)));
    if (known && !empty && (low < 0 || high >= count.constant()))
        throw Error(NG_E_SHAPE, text("ng_view: elements ", low, " .. ", high, " are seen, ", describe(*x), " has ", count.constant()));
    const NodeRef flat = reshape(g, x, {count});                  // its numbering, as something that can be stored
    Ref<Node> n = raw(Op::view, x->dtype, shape_ref(seen.dims), {&flat, 1});
    n->more().extents = seen.strides;
    n->more().extents.push_back(offset);
    return g.intern(n);
}

}  // namespace ng::build
