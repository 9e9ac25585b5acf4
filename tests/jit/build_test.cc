// Types and shapes that building infers for every row of ops.def and every pair of types, and what it folds on the way.
#include "jit/build.h"
#include "jit/number.h"
#include "tests/jit/naive_value.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace ng;

namespace {

const Extent n = Extent::variable(0), m = Extent::variable(1);

struct Bench {
    Graph   g;
    uint32_t next = 0;
    NodeRef param(Dtype t, Extents dims = {})
    {
        Layout l;
        l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
        return build::param(g, next++, l);
    }
    NodeRef param(Extents dims) { return param(Dtype::f32, std::move(dims)); }
    NodeRef number(Dtype t, double v) { return build::constant(g, t, v); }
};

bool is_narrow(Dtype t) { return t == Dtype::f16 || t == Dtype::bf16 || t == Dtype::e4m3 || t == Dtype::e5m2; }

// Contract N1 and N4, once more: Dtype::count_ where there is no common type.
Dtype common(Dtype a, Dtype b)
{
    if (is_narrow(a)) a = Dtype::f32;
    if (is_narrow(b)) b = Dtype::f32;
    if (a == b) return a;
    if (a == Dtype::f64 || b == Dtype::f64) return Dtype::f64;
    if (a == Dtype::f32 || b == Dtype::f32) return Dtype::f32;
    if (is_bool(a) || is_bool(b)) return is_bool(a) ? b : a;
    const bool a_int = info(a).kind == Kind::Int, b_int = info(b).kind == Kind::Int;
    if (a_int == b_int) return bytes_of(a) > bytes_of(b) ? a : b;
    const Dtype i = a_int ? a : b, u = a_int ? b : a;
    for (const Dtype t : {Dtype::i8, Dtype::i16, Dtype::i32, Dtype::i64})
        if (bytes_of(t) >= bytes_of(i) && bytes_of(t) > bytes_of(u)) return t;
    return Dtype::count_;
}
Dtype result_of(Op op, Dtype t)
{
    if (t == Dtype::count_ && info(op).domain != Domain::Logic) return t;
    if (info(op).domain == Domain::Bits && is_float(t)) return Dtype::count_;
    if (info(op).result == Result::Bool) return Dtype::bool_;
    if (info(op).domain == Domain::Any && is_bool(t)) return Dtype::i32;
    if (info(op).domain == Domain::Real && !is_float(t)) return bytes_of(t) >= 4 ? Dtype::f64 : Dtype::f32;
    return t;
}

// The type of a map, or Dtype::count_ where it is NG_E_DTYPE with the operation's name in the sentence.
Dtype type_of(Graph& g, Op op, std::initializer_list<NodeRef> operands)
{
    try {
        return build::map(g, op, operands)->dtype;
    } catch (const Error& e) {
        CHECK(e.status == NG_E_DTYPE);
        CHECK(e.text.find(std::string("ng_") + name_of(op) + ":") == 0);
        return Dtype::count_;
    }
}
std::string dims_of(const NodeRef& x) { return text_of(x->dims()); }

std::vector<Op> words(Class kind)
{
    std::vector<Op> out;
    for (int i = 0; i < OPS; i++)
        if (info(Op(i)).kind == kind) out.push_back(Op(i));
    return out;
}
bool is_number(const NodeRef& x, double v)
{
    const Node* c = x.get();
    while (c->op == Op::broadcast || c->op == Op::reshape) c = c->arg(0).get();
    return c->op == Op::constant && Number::of_bits(c->dtype, c->value).real() == v;
}

}  // namespace

TEST_CASE("maps: the type of every row, for every operand and every pair of them")
{
    Bench b;
    std::vector<NodeRef> x, y;
    for (int d = 0; d < DTYPES; d++) x.push_back(b.param(Dtype(d))), y.push_back(b.param(Dtype(d)));
    for (const Op op : words(Class::Map))
        for (int i = 0; i < DTYPES; i++) {
            const Dtype a = Dtype(i);
            if (info(op).arity == 1) {
                INFO(text(name_of(op), " of ", name_of(a)));
                CHECK(type_of(b.g, op, {x[size_t(i)]}) == result_of(op, common(a, a)));
                continue;
            }
            for (int j = 0; j < DTYPES; j++) {
                const Dtype c = Dtype(j), both = common(a, c);
                INFO(text(name_of(op), " of ", name_of(a), " and ", name_of(c)));
                if (info(op).arity == 2) CHECK(type_of(b.g, op, {x[size_t(i)], y[size_t(j)]}) == result_of(op, both));
                else if (op == Op::where) CHECK(type_of(b.g, op, {x[size_t((i + j) % DTYPES)], x[size_t(i)], y[size_t(j)]}) == both);
                else CHECK(type_of(b.g, op, {x[size_t(i)], y[size_t(j)], x[size_t(i)]}) == result_of(op, both));
            }
        }
}

TEST_CASE("maps: operands have the type that is computed in and the shape of the result")
{
    Bench b;
    for (const Op op : words(Class::Map)) {
        const NodeRef x = b.param(Dtype::u8, {3, 1}), y = b.param(Dtype::i16, {4}), z = b.param(Dtype::bool_, {2, 1, 1});
        const NodeRef all[] = {x, y, z};
        const NodeRef r = build::map(b.g, op, std::span(all, info(op).arity));
        INFO(text(name_of(op)));
        CHECK(dims_of(r) == (info(op).arity == 1 ? "[3, 1]" : info(op).arity == 2 ? "[3, 4]" : "[2, 3, 4]"));
        if (r->op != op) continue;
        for (size_t i = 0; i < r->args().size(); i++) {
            CHECK(same(r->arg(i)->shape, r->shape));
            CHECK(r->arg(i)->dtype == (op == Op::where && i == 0 ? Dtype::bool_ : r->arg(r->args().size() - 1)->dtype));
        }
    }
}

TEST_CASE("maps: shapes broadcast as NumPy's, lengths only with themselves and 1")
{
    Bench b;
    const struct { Extents a, b; std::string want; } rows[] = {
        {{}, {}, "[]"}, {{}, {3}, "[3]"}, {{1}, {0}, "[0]"}, {{0}, {0}, "[0]"}, {{3, 1}, {1, 4}, "[3, 4]"}, {{2, 3, 4}, {3, 1}, "[2, 3, 4]"}, {{1, 1}, {5}, "[1, 5]"},
        {{n}, {n}, "[-1]"}, {{n}, {1}, "[-1]"}, {{n, 1}, {m}, "[-1, -2]"}, {{n + m}, {m + n}, "[-1+-2]"}, {{3}, {4}, ""}, {{2, 3}, {2, 1, 4}, ""}, {{0}, {2}, ""},
        {{n}, {m}, ""}, {{n}, {4}, ""}, {{n}, {0}, ""}, {{n * Extent(2)}, {n}, ""}};
    for (const auto& row : rows)
        for (const bool turned : {false, true}) {
            const NodeRef x = b.param(turned ? row.b : row.a), y = b.param(turned ? row.a : row.b);
            INFO(dims_of(x) << " and " << dims_of(y));
            try {
                const NodeRef r = build::map(b.g, Op::add, {x, y});
                CHECK((!row.want.empty() && r->dims() == build::map(b.g, Op::mul, {y, x})->dims()));
                if (row.want != "[-1+-2]") CHECK(dims_of(r) == row.want);
            } catch (const Error& e) {
                CHECK(row.want.empty());
                CHECK(e.status == NG_E_SHAPE);
                CHECK(e.text.find("ng_add: ") == 0);
                CHECK(e.text.find("do not broadcast") != std::string::npos);
            }
        }
}

TEST_CASE("reductions: types and shapes of every row, kept and dropped, over all sets of axes")
{
    Bench b;
    for (const Class kind : {Class::Fold, Class::Stat, Class::Norm})
        for (const Op op : words(kind))
            for (int d = 0; d < DTYPES; d++)
                for (ng_axes axes = 0; axes < 8; axes++) {
                    const Dtype t = Dtype(d), real = is_float(t) ? common(t, t) : bytes_of(t) >= 4 ? Dtype::f64 : Dtype::f32;
                    const NodeRef x = b.param(t, {2, 1, 5});
                    const Dtype whole = is_float(t) ? real : info(t).kind == Kind::Uint ? Dtype::u64 : Dtype::i64;
                    Dtype want = real;
                    if (op == Op::sum || op == Op::prod) want = whole;
                    if (op == Op::min || op == Op::max) want = common(t, t);
                    if (op == Op::argmin || op == Op::argmax || op == Op::count_nonzero) want = Dtype::i64;
                    if (op == Op::any || op == Op::all) want = Dtype::bool_;
                    std::string kept = "[", dropped = "[";
                    for (int a = 0; a < 3; a++) {
                        const std::string extent = std::to_string(a == 0 ? 2 : a == 1 ? 1 : 5);
                        const bool is_out = axes >> a & 1;
                        kept += (kept.size() > 1 ? ", " : "") + (is_out ? "1" : extent);
                        if (!is_out) dropped += (dropped.size() > 1 ? ", " : "") + extent;
                    }
                    INFO(text(name_of(op), " of ", name_of(t), " over ", axes));
                    if (kind == Class::Norm) {
                        const NodeRef y = build::norm(b.g, op, x, axes);
                        CHECK(y->dtype == real);
                        CHECK(dims_of(y) == "[2, 1, 5]");
                        continue;
                    }
                    const NodeRef keep = build::reduce(b.g, op, x, axes, NG_KEEP), drop = build::reduce(b.g, op, x, axes, 0);
                    CHECK(keep->dtype == want);
                    CHECK(drop->dtype == want);
                    CHECK(dims_of(keep) == kept + "]");
                    CHECK(dims_of(drop) == dropped + "]");
                }
    CHECK(dims_of(build::reduce(b.g, Op::sum, b.param({n, m}), NG_ALL, 0)) == "[]");
    CHECK(dims_of(build::reduce(b.g, Op::max, b.param({n, m}), NG_AXIS_0, 0)) == "[-2]");
    CHECK(is_number(build::reduce(b.g, Op::argmax, b.param({3, 1}), NG_AXIS_1, 0), 0));
}

TEST_CASE("folding: what holds for every value is gone, what does not stays")
{
    Bench b;
    const auto map = [&](Op op, std::initializer_list<NodeRef> x) { return build::map(b.g, op, x); };
    for (const Dtype t : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::u8}) {
        const NodeRef x = b.param(t, {4}), zero = b.number(t, 0), one = b.number(t, 1), two = b.number(t, 2);
        const bool real = is_float(t);
        INFO(text(name_of(t)));
        CHECK(map(Op::mul, {x, one}) == x);
        CHECK(map(Op::mul, {one, x}) == x);
        CHECK(map(Op::sub, {x, zero}) == x);
        CHECK(map(Op::pow, {x, one}) == x);
        CHECK(map(Op::pow, {x, two}) == map(Op::mul, {x, x}));
        CHECK(map(Op::neg, {map(Op::neg, {x})}) == x);
        CHECK(map(Op::maximum, {x, x}) == x);
        CHECK(map(Op::minimum, {x, x}) == x);
        CHECK(map(Op::where, {b.param(Dtype::bool_, {4}), x, x}) == x);
        CHECK((map(Op::add, {x, zero}) == x) == !real);           // -0 + 0 is 0
        CHECK((map(Op::add, {zero, x}) == x) == !real);
        CHECK(is_number(map(Op::mul, {x, zero}), 0) == !real);    // inf * 0 is NaN
        CHECK(is_number(map(Op::mul, {zero, x}), 0) == !real);
        CHECK_FALSE(is_number(map(Op::sub, {x, x}), 0));
        CHECK_FALSE(map(Op::div, {x, x})->op == Op::constant);
        if (real) CHECK(map(Op::div, {x, one}) == x);
        if (real) CHECK_FALSE(map(Op::sub, {x, b.number(t, -0.0)}) == x);
        CHECK_FALSE(map(Op::fmax, {x, b.number(t, 0)}) == x);
    }
    const NodeRef c = b.param(Dtype::bool_, {4}), i = b.param(Dtype::i32, {4});
    CHECK(map(Op::logical_not, {map(Op::logical_not, {c})}) == c);
    CHECK(map(Op::bitwise_not, {map(Op::bitwise_not, {i})}) == i);
    CHECK(map(Op::logical_not, {map(Op::logical_not, {i})})->op == Op::cast);       // != 0, not the number
    CHECK(dims_of(map(Op::mul, {b.param({4, 1}), build::broadcast(b.g, b.number(Dtype::f32, 1), Extents{3})})) == "[4, 3]");
    CHECK(is_number(map(Op::add, {b.number(Dtype::u8, 200), b.number(Dtype::u8, 100)}), 44));
    CHECK(is_number(map(Op::less, {b.number(Dtype::f32, 1), b.number(Dtype::f64, 2)}), 1));
}

TEST_CASE("maps: what is the same whatever goes in is, and of most operations nothing is")
{
    const std::vector<double> bools = {0, 1}, naturals = {0, 1, 7, 255}, wholes = {-128, -1, 0, 1, 127}, reals = {-INFINITY, -1.5, -0.0, 0, 2, INFINITY, NAN};
    int found = 0;
    for (int o = 0; o < OPS; o++)
        for (const Dtype t : {Dtype::bool_, Dtype::u8, Dtype::i8, Dtype::f32})
            for (const bool is_same : {false, true}) {
                const Op op = Op(o);
                const std::optional<int64_t> all = is_map(op) ? always(op, t, is_same) : std::nullopt;
                if (!all || (info(op).domain == Domain::Logic && !is_bool(t))) continue;
                found++;
                INFO(name_of(op), " of ", name_of(t), is_same ? " and itself" : "");
                for (const double x : is_bool(t) ? bools : is_float(t) ? reals : is_signed(t) ? wholes : naturals)
                    if ((op != Op::rem && op != Op::fmod) || x != 0) CHECK(naive::map_of(op, x, x, 0) == double(*all));
                if (!is_same) CHECK(info(op).arity == 1);
            }
    CHECK(found > 30);
    for (const Op op : {Op::add, Op::div, Op::maximum, Op::equal, Op::sub, Op::less_equal}) CHECK_FALSE(always(op, Dtype::f32, true));
    for (const Op op : {Op::equal, Op::sub, Op::less, Op::isnan}) CHECK_FALSE(always(op, Dtype::f32, false));
    CHECK_FALSE(always(Op::signbit, Dtype::i8, true));
}

TEST_CASE("folding: literals among themselves are Python's numbers, and take their neighbour's type")
{
    Bench b;
    const auto whole = [&](int64_t v) { return build::weak_int(b.g, v); };
    const auto map = [&](Op op, NodeRef x, NodeRef y) { return build::map(b.g, op, {x, y}); };
    CHECK(map(Op::add, whole(2), whole(3)) == whole(5));
    CHECK(map(Op::div, whole(1), whole(2)) == build::weak(b.g, 0.5));
    CHECK(map(Op::pow, whole(2), whole(10)) == whole(1024));
    CHECK(map(Op::pow, whole(-3), whole(3)) == whole(-27));
    for (const int64_t x : {-7, 7, 6, -6, 0}) {
        CHECK(map(Op::floor_div, whole(x), whole(3)) == whole(int64_t(std::floor(double(x) / 3))));
        CHECK(map(Op::rem, whole(x), whole(3)) == whole(x - 3 * int64_t(std::floor(double(x) / 3))));
    }
    CHECK(map(Op::mul, build::weak(b.g, 1.5), whole(2)) == build::weak(b.g, 3));
    for (const int64_t x : {-7, -6, 0, 6, 7}) CHECK(map(Op::floor_div, whole(x), whole(-2)) == whole(int64_t(std::floor(double(x) / -2))));
    CHECK(map(Op::rem, whole(7), whole(-2)) == whole(-1));
    CHECK(map(Op::rem, whole(2), whole(INT64_MIN)) == whole(2 + INT64_MIN));
    CHECK(map(Op::rem, whole(INT64_MIN), whole(INT64_MAX)) == whole(INT64_MAX - 1));
    CHECK(map(Op::floor_div, whole(INT64_MAX), whole(INT64_MIN)) == whole(-1));
    CHECK(map(Op::pow, whole(2), whole(62)) == whole(int64_t(1) << 62));
    CHECK(map(Op::pow, whole(-2), whole(63)) == whole(INT64_MIN));
    CHECK(map(Op::pow, whole(-1), whole(1000001)) == whole(-1));
    CHECK(map(Op::pow, whole(2), whole(-1)) == build::weak(b.g, 0.5));
    for (const int64_t y : {63, 64, 1000}) {
        std::string said;
        try {
            map(Op::pow, whole(2), whole(y));
        } catch (const Error& e) {
            said = e.text;
        }
        CHECK(said == text("ng_pow: 2 to the power ", y, " exceeds 64 bits; write it as a float"));
    }
    const struct { Dtype t; Dtype with_float, with_int; } rows[] = {
        {Dtype::f16, Dtype::f32, Dtype::f32}, {Dtype::f32, Dtype::f32, Dtype::f32}, {Dtype::f64, Dtype::f64, Dtype::f64}, {Dtype::u8, Dtype::f32, Dtype::u8},
        {Dtype::i64, Dtype::f32, Dtype::i64}, {Dtype::bool_, Dtype::f32, Dtype::i32}, {Dtype::e4m3, Dtype::f32, Dtype::f32}, {Dtype::u64, Dtype::f32, Dtype::u64}};
    for (const auto& row : rows) {
        const NodeRef x = b.param(row.t, {3});
        INFO(text(name_of(row.t)));
        CHECK(map(Op::add, x, build::weak(b.g, 1.5))->dtype == row.with_float);
        CHECK(map(Op::add, whole(2), x)->dtype == row.with_int);
    }
    CHECK(build::strong(b.g, whole(3))->dtype == Dtype::i32);
    CHECK(build::strong(b.g, build::weak(b.g, 3))->dtype == Dtype::f32);
    CHECK(build::map(b.g, Op::exp, {whole(1)})->dtype == Dtype::f64);               // i32's real type
}

TEST_CASE("casts: a cast of a cast, folded or not, is the two one after the other")
{
    Bench b;
    const double reals[] = {0, -0.0, 1, -1, 0.5, -1.5, 2.5, 127.5, 200, 255.5, 300, -129, 448, 1000, 65504, 65520, 70000, 1e10, -1e10, 1e20, INFINITY, -INFINITY, NAN};
    const int64_t wholes[] = {0, 1, -1, 2, 44, 127, 128, -128, -129, 200, 255, 256, 300, -300, 2049, 65535, 65537, 100000, -100000, 16777217, 4294967297, 9007199254740993, INT64_MAX, INT64_MIN};
    for (int from = 0; from < DTYPES; from++)
        for (int by = 0; by < DTYPES; by++)
            for (int to = 0; to < DTYPES; to++) {
                const Dtype a = Dtype(from), mid = Dtype(by), t = Dtype(to);
                const NodeRef x = b.param(a), y = build::cast(b.g, build::cast(b.g, x, mid), t);
                CHECK(y->dtype == t);
                std::vector<Dtype> chain;
                for (const Node* at = y.get(); at != x.get(); at = at->arg(0).get()) chain.push_back(at->dtype);
                std::vector<Number> some;
                for (const double v : reals) some.push_back(Number(v).as(a));
                for (const int64_t v : wholes) some.push_back(Number(v).as(a));
                for (const Number& v : some) {
                    Number got = v;
                    for (size_t i = chain.size(); i-- > 0;) got = got.as(chain[i]);
                    const Number want = v.as(mid).as(t);
                    if (got.bits(t) == want.bits(t) || (got.real() != got.real() && want.real() != want.real())) continue;
                    FAIL_CHECK(text(name_of(a), " ", v.real(), " to ", name_of(mid), " to ", name_of(t), " is ", want.real(), ", what was built gives ", got.real()));
                    break;
                }
            }
}

TEST_CASE("movement: what moves nothing is not there, and moves of moves are one")
{
    Bench b;
    const NodeRef x = b.param({2, 3, 4});
    const int32_t same_order[] = {0, 1, 2}, turned[] = {2, 0, 1};
    CHECK(build::reshape(b.g, x, {2, 3, 4}) == x);
    CHECK(build::reshape(b.g, build::reshape(b.g, x, {24}), {2, 3, 4}) == x);
    CHECK(build::reshape(b.g, build::reshape(b.g, x, {24}), {4, 6})->arg(0) == x);
    CHECK(build::broadcast(b.g, x, Extents{2, 3, 4}) == x);
    CHECK(build::broadcast(b.g, build::broadcast(b.g, x, Extents{5, 2, 3, 4}), Extents{6, 5, 2, 3, 4})->arg(0) == x);
    CHECK(build::permute(b.g, x, same_order) == x);
    CHECK(dims_of(build::permute(b.g, x, turned)) == "[4, 2, 3]");
    CHECK(build::slice(b.g, x, 1, 0, NG_END, 1) == x);
    CHECK(build::cast(b.g, x, Dtype::f32) == x);
    CHECK(build::bitcast(b.g, build::bitcast(b.g, x, Dtype::u32), Dtype::f32) == x);
    CHECK(build::keep(b.g, build::keep(b.g, x)) == build::keep(b.g, x));
    CHECK(build::concat(b.g, {&x, 1}, 1) == x);
    const int64_t rest[] = {6, NG_REST}, lengths[] = {-1, NG_REST};
    CHECK(dims_of(build::reshape_rest(b.g, x, rest)) == "[6, 4]");
    CHECK(dims_of(build::reshape_rest(b.g, b.param({n, m, 2}), lengths)) == "[-1, 2*(-2)]");
}

TEST_CASE("slices: as many elements as Python's, from the same place, for starts, stops and steps of all kinds")
{
    Bench b;
    for (const int64_t d : {0, 1, 2, 5})
        for (int64_t start = -7; start <= 8; start++)
            for (int64_t stop = -7; stop <= 8; stop++)
                for (const int64_t step : {1, 2, 3, 7, -1, -2, -5}) {
                    const int64_t from = start == 8 ? NG_END : start, to = stop == 8 ? NG_END : stop;
                    // By walking: Python's i counts from the clamped start while it is before the clamped stop.
                    const auto clamped = [&](int64_t i, int64_t omitted) {
                        if (i == NG_END) return omitted;
                        if (i < 0) i += d;
                        return step > 0 ? std::clamp<int64_t>(i, 0, d) : std::clamp<int64_t>(i, -1, d - 1);
                    };
                    const int64_t first = clamped(from, step > 0 ? d : d - 1), end = clamped(to, step > 0 ? d : -1);
                    int64_t count = 0;
                    for (int64_t i = first; step > 0 ? i < end : i > end; i += step) count++;
                    const NodeRef x = b.param({d}), y = build::slice(b.g, x, 0, from, to, step);
                    const bool whole = y == x;
                    const int64_t at = whole ? 0 : y->extra->extents[0].constant();
                    if (y->dims()[0].is(count) && (!count || at == first)) continue;
                    FAIL_CHECK(text(d, " elements [", from, ":", to, ":", step, "] are ", dims_of(y), " from ", at, ", should be ", count, " from ", first));
                }
}
