// Element-wise words through their numpy column, with bounds that follow each operand to the result.
#include "tests/random/meaning.h"

#include <algorithm>

namespace programs {
namespace {

constexpr double SLACK = 1.25;            // for the second order, which corners leave out
constexpr double GENTLE = 4;              // a slope below it is no edge
constexpr double USEFUL = 0.1;            // of the result or the greatest operand

struct Element3 { Cell x, y, z; };

bool known(const Cell& c) { return c.off == 0; }

Operands<Real> corner(const Element3& in, unsigned signs)
{
    const auto moved = [&](const Cell& c, unsigned bit) { return c.off == 0 ? c.v : signs >> bit & 1 ? c.v + Real(c.off) : c.v - Real(c.off); };
    return {moved(in.x, 0), moved(in.y, 1), moved(in.z, 2)};
}

// How far results lie apart between the corners of what the operands may be; NOT_JUDGED where an edge runs through.
double spread(const Column& column, const Element3& in, Real v, double units)
{
    double far = 0;
    Real greatest = std::abs(v);
    const auto sample = [&](const Operands<Real>& at) {
        const Real w = computed<Real>(column, at);
        if ((w != w) != (v != v) || std::isinf(w) != std::isinf(v)) far = NOT_JUDGED;
        else if (w == w && !std::isinf(w)) far = std::max(far, double(std::abs(w - v)));
    };
    for (unsigned signs = 0; signs < 8; signs++)
        if (!(known(in.x) && signs & 1) && !(known(in.y) && signs & 2) && !(known(in.z) && signs & 4)) sample(corner(in, signs));
    // Single points where values jump: zeros, and equal operands.
    if (in.x.off > 0 && std::abs(in.x.v) <= Real(in.x.off)) sample({0, in.y.v, in.z.v});
    if (in.y.off > 0 && std::abs(in.y.v) <= Real(in.y.off)) sample({in.x.v, 0, in.z.v});
    if (in.x.off + in.y.off > 0 && std::abs(in.x.v - in.y.v) <= Real(in.x.off + in.y.off)) sample({in.x.v, in.x.v, in.z.v}), sample({in.y.v, in.y.v, in.z.v});
    if (!(far < INFINITY)) return NOT_JUDGED;
    for (const Cell& c : {in.x, in.y, in.z}) greatest = std::max(greatest, std::abs(c.v));
    const double moved = in.x.off + in.y.off + in.z.off;
    if (far > GENTLE * moved + units && far > USEFUL * double(greatest)) return NOT_JUDGED;
    return SLACK * far;
}

template <class T>
Cell exact(const Row& row, const Element3& in)
{
    return {Real(computed<T>(row.column, Operands<T>{T(in.x.v), T(in.y.v), T(in.z.v)})), 0};
}

// The reference knows neither which zero nor which NaN an operand is: whether a row tells them apart.
bool asks_for_signs(const Column& column, const Element3& in)
{
    const auto unsigned_one = [](const Cell& c) { return known(c) && (c.v == 0 || c.v != c.v); };
    const Real v = computed<Real>(column, {in.x.v, in.y.v, in.z.v});
    for (unsigned flips = 1; flips < 8; flips++) {
        if ((flips & 1 && !unsigned_one(in.x)) || (flips & 2 && !unsigned_one(in.y)) || (flips & 4 && !unsigned_one(in.z))) continue;
        const Real w = computed<Real>(column, {flips & 1 ? -in.x.v : in.x.v, flips & 2 ? -in.y.v : in.y.v, flips & 4 ? -in.z.v : in.z.v});
        if (!(w == v || (w != w && v != v))) return true;
    }
    return false;
}

Cell real_cell(const Row& row, ng_dtype t, const Element3& in)
{
    if (asks_for_signs(row.column, in)) return {0, row.gives_bool ? 1 : NOT_JUDGED};
    const bool all_known = known(in.x) && known(in.y) && known(in.z);
    if (row.ulp == 0 && all_known) return t == NG_F64 ? exact<double>(row, in) : exact<float>(row, in);
    if (in.x.off == NOT_JUDGED || in.y.off == NOT_JUDGED || in.z.off == NOT_JUDGED) return {0, NOT_JUDGED};
    Real largest = 0;
    const Real v = computed<Real>(row.column, {in.x.v, in.y.v, in.z.v}, &largest);
    if (row.name == "logaddexp") largest = std::max({std::abs(v), std::abs(in.x.v), std::abs(in.y.v)});
    // Rows that are exact in their own arithmetic round at each step, none of which is greater than the largest.
    double units = row.ulp * double(unit_of(t, row.name == "logaddexp" ? largest : v));
    if (row.ulp == 0) units = double(row.column.size()) * double(unit_of(t, std::isfinite(largest) ? largest : v));
    const double far = all_known ? 0 : spread(row.column, in, v, units);
    if (row.gives_bool) return {v, far > 0 ? 1. : 0.};
    if (v != v || std::isinf(v)) return {v, far};
    return settled(t, v, units + far);
}

// The choice is known or both sides count.
Cell chosen(const Element3& in)
{
    if (known(in.x)) return in.x.v != 0 ? in.y : in.z;
    const double apart = double(std::abs(in.y.v - in.z.v));
    if (!(apart < INFINITY)) return {0, NOT_JUDGED};
    return {in.x.v != 0 ? in.y.v : in.z.v, apart + std::max(in.y.off, in.z.off)};
}

Cell mapped(const Row& row, ng_dtype t, const Element3& in)
{
    if (row.name == "where") {
        const Cell c = chosen(in);
        return is_float(t) || known(c) ? c : Cell{c.v, is_bool(t) ? 1 : NOT_JUDGED};
    }
    if (is_float(t)) return real_cell(row, t, in);
    const bool all_known = known(in.x) && known(in.y) && known(in.z);
    const Real v = computed_whole(row.column, t, {in.x.v, in.y.v, in.z.v});
    if (all_known) return {v, 0};
    if (is_bool(t)) {
        const auto other = [](const Cell& c) { return known(c) ? c.v : 1 - c.v; };
        bool same = true;
        for (unsigned flips = 1; flips < 4; flips++)
            same = same && computed_whole(row.column, t, {flips & 1 ? other(in.x) : in.x.v, flips & 2 ? other(in.y) : in.y.v, in.z.v}) == v;
        return {v, same ? 0. : 1.};
    }
    return {v, row.gives_bool ? 1 : NOT_JUDGED};
}

}  // namespace

Cell settled(ng_dtype t, Real v, double off)
{
    if (v != v || std::isinf(v) || !(off < INFINITY)) return {v, off > 0 ? NOT_JUDGED : 0};
    if (std::abs(v) + Real(off) >= largest_of(t)) return {v, NOT_JUDGED};
    return {v, off};
}

double sum_off(ng_dtype t, Real magnitudes, int64_t count, double carried)
{
    const double levels = std::log2(double(std::max<int64_t>(count, 1))) + 2;
    return carried + levels * epsilon_of(t) * double(magnitudes);
}

Cell cast_cell(ng_dtype to, const Cell& x, ng_dtype from)
{
    if (to == from) return x;
    if (x.off == NOT_JUDGED) return is_bool(to) ? Cell{1, 1} : Cell{0, NOT_JUDGED};
    const Real v = converted(to, x.v, from);
    if (x.off == 0) return {v, 0};
    if (is_bool(from)) return {v, is_float(to) ? 1 : is_bool(to) ? 1 : NOT_JUDGED};
    const Real low = converted(to, x.v - Real(x.off), from), high = converted(to, x.v + Real(x.off), from);
    if (is_bool(to)) return {v, std::abs(x.v) <= Real(x.off) ? 1. : 0.};
    if (low == high) return {v, 0};
    if (!is_float(to) || !(std::abs(high - low) < INFINITY)) return {v, NOT_JUDGED};
    return {v, double(std::max(high - v, v - low))};
}

Value Meaning::map() const
{
    const Row& row = table.rows[size_t(node.row)];
    const auto t = ng_dtype(node.number);
    Value out = empty();
    Dims strides[3];
    for (size_t i = 0; i < args.size(); i++) strides[i] = broadcast_strides(arg(i).dims, out.dims);
    const bool condition = row.name == "where";
    each(out.dims, [&](const Index& i, size_t k) {
        Element3 in{{0, 0}, {0, 0}, {0, 0}};
        Cell* const cells[] = {&in.x, &in.y, &in.z};
        for (size_t a = 0; a < args.size(); a++)
            *cells[a] = cast_cell(condition && a == 0 ? ng_dtype(NG_BOOL) : t, arg(a).cells[size_t(dot(i, strides[a]))],
                                  program.nodes[size_t(node.args[a])].weak ? (program.nodes[size_t(node.args[a])].ints[0] ? ng_dtype(NG_I64) : ng_dtype(NG_F64)) : arg(a).type);
        out.cells[k] = mapped(row, t, in);
    });
    return out;
}

}  // namespace programs
