// Building element-wise nodes: the type that they compute in, the shape that they share, and rules that hold to the bit.
#include "jit/build.h"
#include "jit/number.h"

#include <algorithm>
#include <cmath>

namespace ng::build {
namespace {

std::string who_of(Op op) { return std::string("ng_") + name_of(op); }
bool is_weak(const NodeRef& n) { return n->op == Op::constant && n->weak; }

// A broadcast or a plain constant's number; nothing for any other node.
std::optional<Number> number_of(const NodeRef& n)
{
    const Node* c = n.get();
    while (c->op == Op::broadcast || c->op == Op::reshape) c = c->arg(0).get();
    if (c->op != Op::constant) return std::nullopt;
    return Number::of_bits(c->dtype, c->value);
}

// Floor division and its remainder, for quotients that 64 bits hold.
bool rounds_down(int64_t x, int64_t y) { return x % y != 0 && (x < 0) != (y < 0); }
int64_t floor_divided(int64_t x, int64_t y) { return x / y - rounds_down(x, y); }
int64_t floor_rem(int64_t x, int64_t y) { return x % y + (rounds_down(x, y) ? y : 0); }

NodeRef weak_integers(Graph& g, Op op, int64_t x, int64_t y)
{
    int64_t r = 1;
    switch (op) {
    case Op::add: if (!__builtin_add_overflow(x, y, &r)) return weak_int(g, r); break;
    case Op::sub: if (!__builtin_sub_overflow(x, y, &r)) return weak_int(g, r); break;
    case Op::mul: if (!__builtin_mul_overflow(x, y, &r)) return weak_int(g, r); break;
    case Op::neg: if (!__builtin_sub_overflow(int64_t(0), x, &r)) return weak_int(g, r); break;
    case Op::floor_div: if (y != 0 && (y != -1 || x != INT64_MIN)) return weak_int(g, floor_divided(x, y)); break;
    case Op::rem: if (y != 0 && (y != -1 || x != INT64_MIN)) return weak_int(g, floor_rem(x, y)); break;
    case Op::div: return weak(g, double(x) / double(y));
    case Op::pow:
        if (y < 0) return weak(g, std::pow(double(x), double(y)));
        if (x >= -1 && x <= 1) return weak_int(g, y == 0 || x == 1 || (x == -1 && y % 2 == 0) ? 1 : x);
        for (int64_t i = 0; i < y; i++)
            if (__builtin_mul_overflow(r, x, &r)) throw Error(NG_E_DTYPE, text(who_of(op), ": ", x, " to the power ", y, " exceeds 64 bits; write it as a float"));
        return weak_int(g, r);
    default: break;
    }
    return {};
}

// Literals among themselves, as Python computes them; null where that is not arithmetic.
NodeRef fold_weak(Graph& g, Op op, std::span<const NodeRef> operands)
{
    const Number a = Number::of_bits(operands[0]->dtype, operands[0]->value);
    const Number b = operands.size() > 1 ? Number::of_bits(operands[1]->dtype, operands[1]->value) : a;
    if (operands.size() > 2) return {};
    if (operands[0]->dtype == Dtype::i64 && operands.back()->dtype == Dtype::i64)
        return weak_integers(g, op, a.integer(), b.integer());
    const double x = a.real(), y = b.real();
    switch (op) {
    case Op::add: return weak(g, x + y);
    case Op::sub: return weak(g, x - y);
    case Op::mul: return weak(g, x * y);
    case Op::div: return weak(g, x / y);
    case Op::neg: return weak(g, -x);
    case Op::pow: return weak(g, std::pow(x, y));
    default: return {};
    }
}

// A literal in the type that the arithmetic is done in.
NodeRef typed(Graph& g, const NodeRef& literal, Dtype t, Op op)
{
    const Number n = Number::of_bits(literal->dtype, literal->value);
    if (is_integer(t) && literal->dtype == Dtype::i64 && !n.fits(t))
        throw Error(NG_E_DTYPE, text(who_of(op), ": ", n.integer(), " does not fit ", name_of(t), "; cast the other operand to a wider type"));
    return make(g, Op::constant, t, shape_ref({}), {}, n.as(t).bits(t));
}

Dtype common_type(Op op, std::span<const NodeRef> operands)
{
    bool any = false, literal_float = false, literal_int = false;
    Dtype t = Dtype::bool_;
    for (const NodeRef& x : operands) {
        if (is_weak(x)) {
            (x->dtype == Dtype::f64 ? literal_float : literal_int) = true;
            continue;
        }
        if (!any) t = compute_of(x->dtype);
        else if (x->dtype != t) t = promote(t, x->dtype, who_of(op).c_str());
        any = true;
    }
    if (literal_float && !is_float(t)) t = Dtype::f32;
    if (literal_int && is_bool(t)) t = Dtype::i32;
    return t;
}

Dtype compute_type(Op op, std::span<const NodeRef> operands)
{
    const Domain domain = info(op).domain;
    if (domain == Domain::Logic) return Dtype::bool_;
    const Dtype t = common_type(op, operands);
    switch (domain) {
    case Domain::Any: return is_bool(t) ? Dtype::i32 : t;
    case Domain::Real: return real_of(t);
    case Domain::Bits:
        for (const NodeRef& x : operands)
            if (is_float(x->dtype)) throw Error(NG_E_DTYPE, text(who_of(op), ": works on integers and bool, not on ", describe(*x)));
        return t;
    default: return t;
    }
}

// Of x and the operand before it that has another extent i axes from the last, of as many axes as both have together.
[[noreturn]] void cannot_broadcast(Op op, std::span<const NodeRef> operands, const NodeRef& x, size_t rank, size_t i)
{
    const auto extent = [&](const NodeRef& n) { return i < n->dims().size() ? n->dims()[n->dims().size() - 1 - i] : Extent(1); };
    const NodeRef& other = *std::ranges::find_if(operands, [&](const NodeRef& n) { return !extent(n).is(1); });
    throw Error(NG_E_SHAPE, text(who_of(op), ": ", describe(*other), " and ", describe(*x), " do not broadcast: axis ", rank - 1 - i, " is ", extent(other).text(), " and ", extent(x).text()));
}

ShapeRef common_shape(Op op, std::span<const NodeRef> operands)
{
    ShapeRef shape = operands[0]->shape;
    for (const NodeRef& x : operands.subspan(1)) {
        if (same(shape, x->shape)) continue;
        const Extents &a = shape->dims, &b = x->dims();
        Extents out(std::max(a.size(), b.size()), Extent(1));
        for (size_t i = 0; i < out.size(); i++) {
            const Extent da = i < a.size() ? a[a.size() - 1 - i] : Extent(1), db = i < b.size() ? b[b.size() - 1 - i] : Extent(1);
            if (!(da == db) && !da.is(1) && !db.is(1))
                cannot_broadcast(op, operands, x, out.size(), i);
            out[out.size() - 1 - i] = da.is(1) ? db : da;
        }
        shape = out == a ? shape : out == b ? x->shape : shape_ref(std::move(out));
    }
    return shape;
}

// Whether an operation may do without x, `kept` being what is left: not where x alone says a length that a program would show.
bool may_drop(const Node& x, const Node& kept)
{
    const auto shown = [](const Node* n) {
        while (n->op == Op::broadcast) n = n->arg(0).get();
        std::vector<bool> variables;
        for (const Extent& e : n->dims()) e.mark_variables(variables);
        return variables;
    };
    const std::vector<bool> dropped = shown(&x);
    std::vector<bool> mentioned = shown(&kept);
    mentioned.resize(std::max(mentioned.size(), dropped.size()));
    for (size_t v = 0; v < dropped.size(); v++)
        if (dropped[v] && !mentioned[v]) return false;
    return true;
}

// What an operation with a constant is without it; null: itself. Only what holds for every value, NaN and -0 included.
NodeRef simplified(Graph& g, Op op, std::span<const NodeRef> x)
{
    const bool real = is_float(x[0]->dtype);
    if (x.size() == 1) {
        if ((op == Op::neg || op == Op::logical_not || op == Op::bitwise_not) && x[0]->op == op) return x[0]->arg(0);
        return {};
    }
    if (x.size() == 3) {
        if (op != Op::where) return {};
        const std::optional<Number> c = number_of(x[0]);
        const size_t kept = c && c->is(0) ? 2 : 1;
        return (c || x[1] == x[2]) && may_drop(*x[c ? 3 - kept : 0], *x[kept]) ? x[kept] : NodeRef();
    }
    if (x[0] == x[1] && (op == Op::maximum || op == Op::minimum)) return x[0];
    const std::optional<Number> a = number_of(x[0]), b = number_of(x[1]);
    if (!a && !b) return {};
    const bool left_one = a && a->is(1), right_one = b && b->is(1), right_zero = b && b->is(0), left_zero = a && a->is(0);
    switch (op) {
    case Op::mul:
        if (right_one) return x[0];
        if (left_one) return x[1];
        if (!real && (left_zero || right_zero)) {
            const NodeRef &zero = x[left_zero ? 0 : 1], &other = x[left_zero ? 1 : 0];
            return may_drop(*other, *zero) ? zero : zeros_like(g, other, other->dtype);
        }
        return {};
    case Op::div: return right_one ? x[0] : NodeRef();
    case Op::sub: return right_zero && !(real && std::signbit(b->real())) ? x[0] : NodeRef();
    case Op::add: return real ? NodeRef() : right_zero ? x[0] : left_zero ? x[1] : NodeRef();
    case Op::pow:
        if (right_one) return x[0];
        return b && b->is(2) ? map(g, Op::mul, {x[0], x[0]}) : NodeRef();
    default: return {};
    }
}

NodeRef folded(Graph& g, Op op, Dtype t, std::span<const NodeRef> x, const ShapeRef& shape)
{
    std::vector<Number> numbers;
    for (const NodeRef& n : x) {
        const auto v = number_of(n);
        if (!v) return {};
        numbers.push_back(*v);
    }
    const std::optional<Number> r = fold_map(op, t, numbers);
    if (!r) return {};
    const Dtype out = info(op).result == Result::Bool ? Dtype::bool_ : t;
    return broadcast(g, make(g, Op::constant, out, shape_ref({}), {}, r->bits(out)), shape);
}

}  // namespace

NodeRef strong(Graph& g, NodeRef x)
{
    if (!is_weak(x)) return x;
    const Number n = Number::of_bits(x->dtype, x->value);
    if (x->dtype == Dtype::f64) return constant(g, Dtype::f32, n.real());
    if (n.as(Dtype::i32).integer() != n.integer())
        throw Error(NG_E_DTYPE, text("ng_const_int: ", n.integer(), " does not fit i32, the type of a literal on its own; give it NG_I64"));
    return constant_int(g, Dtype::i32, n.integer());
}

NodeRef zeros_like(Graph& g, const NodeRef& x, Dtype t)
{
    if (std::ranges::all_of(x->dims(), &Extent::is_constant)) return broadcast(g, cast(g, constant_int(g, Dtype::i32, 0), t), x->dims());
    const NodeRef whole = is_float(x->dtype) ? map(g, Op::isnan, {x}) : x;
    return cast(g, map(g, Op::bitwise_xor, {whole, whole}), t);
}

NodeRef map(Graph& g, Op op, std::initializer_list<NodeRef> operands) { return map(g, op, std::span(operands.begin(), operands.size())); }

NodeRef map(Graph& g, Op op, std::span<const NodeRef> operands)
{
    if (std::ranges::all_of(operands, is_weak))
        if (NodeRef n = fold_weak(g, op, operands)) return n;
    std::array<NodeRef, 3> x;
    const size_t count = operands.size(), skip = op == Op::where ? 1 : 0;   // where's condition is no part of the arithmetic
    if (count > x.size() || int(count) != info(op).arity) throw Error(NG_E_INVALID, text(who_of(op), ": takes ", int(info(op).arity), " operands, not ", count));
    const bool literals = std::ranges::all_of(operands.subspan(skip), is_weak);
    for (size_t i = 0; i < count; i++) x[i] = literals || i < skip ? strong(g, operands[i]) : operands[i];
    const std::span<const NodeRef> all(x.data(), count);
    const Dtype t = compute_type(op, all.subspan(skip));
    for (size_t i = 0; i < count; i++) {
        if (i < skip) x[i] = cast(g, std::move(x[i]), Dtype::bool_);
        else if (is_weak(x[i])) x[i] = typed(g, x[i], t, op);
        else x[i] = cast(g, std::move(x[i]), t);
    }
    ShapeRef shape = common_shape(op, operands);             // as they were given, for its sentence
    for (size_t i = 0; i < count; i++)
        if (!same(x[i]->shape, shape)) x[i] = broadcast(g, x[i], shape);
    if (NodeRef n = simplified(g, op, all)) return n;
    if (NodeRef n = folded(g, op, t, all, shape)) return n;
    return g.intern(raw(op, info(op).result == Result::Bool ? Dtype::bool_ : t, std::move(shape), all));
}

}  // namespace ng::build
