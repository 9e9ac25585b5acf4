// Every row of ops.def that has a derivative: the slope of its own expression, and the ties of contract D5 and D6.
#include "tests/jit/grad_slopes.h"

namespace {

const std::vector<double> POINTS = {0.31, 0.74, 1.6, 2.3, 5.2, -0.43, -0.82, -1.7, -3.6};

// Points where steps stay inside the domain and cross no edge: there both differences agree.
bool smooth(const naive::Slope& s) { return std::isfinite(s.slope) && s.rough <= 1e-4 * (1 + std::abs(s.slope)); }

struct Tally { int compared = 0, nonzero = 0; };

void compare(Op op, size_t by, const std::vector<double>& at, Tally& tally)
{
    Slopes s;
    std::vector<NodeRef> operands;
    for (size_t i = 0; i < at.size(); i++) operands.push_back(s.param({{}, {at[i]}}, {}, op == Op::where && i == 0 ? Dtype::bool_ : Dtype::f64));
    const NodeRef y = build::map(s.g, op, operands);
    const naive::Slope want = naive::slope(y, {{}, {1}}, s.in, int64_t(by), 0);
    if (!smooth(want) || !std::isfinite(s.numbers(y)[0])) return;
    const double got = s.numbers(s.derived(y, {}, operands[by]))[0];
    INFO(name_of(op) << " by operand " << by << " at " << at[0] << ", " << (at.size() > 1 ? at[1] : 0) << ", " << (at.size() > 2 ? at[2] : 0) << ": " << got
                     << ", by differences " << want.slope);
    // Where they agree to 1e-4, the h^2 term, the h^4 term that is left is its square.
    CHECK(std::abs(got - want.slope) <= 1e-7 * (1 + std::abs(want.slope)));
    tally.compared++, tally.nonzero += std::abs(want.slope) > 1e-6;
}

}  // namespace

TEST_CASE("rows: each derivative is the slope of the row's expression")
{
    for (int o = 0; o < OPS; o++) {
        const Op op = Op(o);
        if (!is_map(op) || info(op).result == Result::Bool || info(op).domain == Domain::Bits) continue;
        const size_t arity = info(op).arity;
        for (size_t by = op == Op::where ? 1 : 0; by < arity; by++) {
            Tally tally;
            for (size_t i = 0; i < POINTS.size(); i++)
                for (size_t j = 0; j < (arity > 1 ? POINTS.size() : 1); j++) {
                    std::vector<double> at = {POINTS[i]};
                    if (arity > 1) at.push_back(POINTS[j] * 1.13);
                    if (arity > 2) at.push_back(POINTS[(i + 2 * j) % POINTS.size()] * 0.89);
                    if (op == Op::where) at[0] = double(j % 2);
                    compare(op, by, at, tally);
                }
            INFO(name_of(op) << " by operand " << by);
            CHECK(tally.compared >= 3);
            if (tally.nonzero) continue;
            // Constant wherever it is smooth: the row says so, or speaks of an edge alone.
            const bool flat = op == Op::floor || op == Op::ceil || op == Op::trunc || op == Op::rint || op == Op::sign || op == Op::heaviside ||
                              op == Op::floor_div || op == Op::copysign || op == Op::nextafter;
            CHECK(flat);
        }
    }
}

TEST_CASE("rows: no derivative where nothing is real")
{
    for (int o = 0; o < OPS; o++) {
        const OpInfo& row = info(Op(o));
        if (!is_map(Op(o))) continue;
        const std::string text = row.derivative;
        CHECK(std::count(text.begin(), text.end(), ';') == row.arity - 1);
        if (row.result == Result::Bool || row.domain == Domain::Bits) CHECK(text.find_first_not_of("0; ") == text.npos);
    }
}

TEST_CASE("rows: second derivatives of smooth ones are slopes of the first")
{
    Slopes s;
    const NodeRef x = s.param({5}, 0.3, 0.9), y = s.param({5}, 1.2, 2.4);
    for (int o = 0; o < OPS; o++) {
        const Op op = Op(o);
        if (!is_map(op) || info(op).result == Result::Bool || info(op).domain == Domain::Bits || op == Op::acosh) continue;
        INFO(name_of(op));
        const NodeRef c = build::map(s.g, Op::less, {x, build::constant(s.g, Dtype::f64, 0.6)});
        if (info(op).arity == 1) s.variables = {x}, s.check(build::map(s.g, op, {x}), 2);
        if (info(op).arity == 2) s.variables = {x, y}, s.check(build::map(s.g, op, {x, y}), 2);
        if (info(op).arity == 3) s.variables = {x, y}, s.check(build::map(s.g, op, {op == Op::where ? c : x, x, y}), 2);
    }
}

TEST_CASE("rows: ties, edges, and where selects (D5, D6)")
{
    Slopes s;
    const auto vector = [&](std::vector<double> v) { return s.param({{int64_t(v.size())}, v}, {int64_t(v.size())}); };
    const NodeRef a = vector({-1, 0, 2, 2}), b = vector({-1, 1, 2, 0}), two = vector({2, 2, 2, 2});
    const auto by = [&](std::string_view text, const NodeRef& x) { return s.numbers(s.derived(s.text(text, {"a", "b", "two"}, {a, b, two}), {}, x)); };
    using Numbers = std::vector<double>;
    CHECK(by("maximum(a, 0)", a) == Numbers{0, 0, 1, 1});
    CHECK(by("relu(a)", a) == Numbers{0, 0, 1, 1});
    CHECK(by("maximum(a, b)", a) == Numbers{0, 0, 0, 1});
    CHECK(by("maximum(a, b)", b) == Numbers{1, 1, 1, 0});
    CHECK(by("minimum(a, b)", a) == Numbers{0, 1, 0, 0});
    CHECK(by("abs(a)", a) == Numbers{-1, 0, 1, 1});
    CHECK(by("clip(a, -1, 2)", a) == Numbers{1, 1, 1, 1});
    CHECK(by("a ** two", a) == Numbers{-2, 0, 4, 4});
    CHECK(by("floor(a) + ceil(a) + rint(a) + sign(a) + a", a) == Numbers{1, 1, 1, 1});

    // Where one of them is NaN the other is the result, and has the slope.
    const NodeRef p = vector({NAN, 2, 1, 2}), q = vector({1, NAN, 1, 1});
    const auto past = [&](std::string_view text, const NodeRef& x) { return s.numbers(s.derived(s.text(text, {"p", "q"}, {p, q}), {}, x)); };
    CHECK(past("fmax(p, q)", p) == Numbers{0, 1, 0, 1});
    CHECK(past("fmax(p, q)", q) == Numbers{1, 0, 1, 0});
    CHECK(past("fmin(p, q)", p) == Numbers{0, 1, 0, 0});
    CHECK(past("fmin(p, q)", q) == Numbers{1, 0, 1, 1});

    const NodeRef z = vector({0, 4}), o = vector({9, 0}), first = vector({1, -1});
    const auto root = [&](const NodeRef& x) { return s.numbers(s.derived(s.text("sqrt(where(f > 0, z, o))", {"f", "z", "o"}, {first, z, o}), {}, x)); };
    CHECK(root(z) == Numbers{INFINITY, 0});
    CHECK(root(o) == Numbers{0, INFINITY});
    CHECK(s.numbers(s.derived(s.text("where(z > 0, log(where(z > 0, z, 1)), 0)", {"z"}, {z}), {}, z)) == Numbers{0, 0.25});
}
