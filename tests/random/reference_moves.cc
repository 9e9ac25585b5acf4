// Leaves, casts, movement and work by index: elements found again by their indices alone.
#include "tests/random/meaning.h"

#include <algorithm>
#include <numeric>

namespace programs {

Value Meaning::empty() const
{
    Value v{node.type, values_of(node.dims, lengths()), {}};
    v.cells.assign(size_t(count_of(v.dims)), {0, 0});
    return v;
}

Value Meaning::value() const
{
    switch (node.form) {
    case Form::Input: case Form::Constant: case Form::Length: case Form::Iota: case Form::Random: case Form::Stochastic: return drawn();
    case Form::Map: return map();
    case Form::Reduce: return reduced();
    case Form::Norm: return normalised();
    case Form::Take: case Form::Put: case Form::Scan: case Form::Segment: case Form::Argsort: return indexed();
    case Form::Matmul: return multiplied();
    case Form::Conv: case Form::ConvDx: case Form::ConvDw: return windowed();
    case Form::Pool: case Form::PoolDx: return pooled();
    default: return moved();
    }
}

namespace {

// Python's first element of a slice whose count is known already.
int64_t slice_start(const Node& n, int64_t size)
{
    const int64_t start = n.ints[1], step = n.ints[3];
    if (start == NG_END) return step > 0 ? size : size - 1;
    const int64_t at = start < 0 ? start + size : start;
    return std::clamp<int64_t>(at, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
}

// The row-major number in x that element i of a movement shows.
int64_t source_of(const Meaning& m, const Index& i, size_t k, const Dims& broadcast, int64_t start)
{
    const Node& n = m.node;
    const Dims& from = m.arg(0).dims;
    switch (n.form) {
    case Form::Broadcast: return dot(i, broadcast);
    case Form::Permute: {
        Index at(from.size(), 0);
        for (size_t a = 0; a < i.size(); a++)
            if (n.ints[a] >= 0) at[size_t(n.ints[a])] = i[a];
        return flat(at, from);
    }
    case Form::Slice: case Form::Window: {
        Index at = i;
        at[size_t(n.ints[0])] = start + i[size_t(n.ints[0])] * (n.form == Form::Slice ? n.ints[3] : 1);
        return flat(at, from);
    }
    case Form::View: {
        int64_t at = n.ints[0];
        for (size_t a = 0; a < i.size(); a++) at += i[a] * n.ints[1 + i.size() + a];
        return at;
    }
    default: return int64_t(k);       // Reshape, Cast, Bitcast, Mark
    }
}

Cell bits_of(ng_dtype to, const Cell& c, ng_dtype from)
{
    if (to == from) return c;
    const bool unknown = c.off > 0 || (is_float(from) && (c.v == 0 || c.v != c.v));      // which zero, which NaN
    if (unknown) return {0, is_bool(to) ? 1 : NOT_JUDGED};
    unsigned char bytes[8] = {};
    store(from, c.v, bytes);
    if (is_bool(to) && bytes[0] > 1) return {1, 1};
    return {load(to, bytes), 0};
}

}  // namespace

Value Meaning::moved() const
{
    Value out = empty();
    const Value& x = arg(0);
    if (node.form == Form::Concat) {
        const auto along = size_t(node.ints[0]);
        int64_t start = 0;
        for (const Value* part : args) {
            each(part->dims, [&](const Index& i, size_t k) {
                Index to = i;
                to[along] += start;
                out.cells[size_t(flat(to, out.dims))] = cast_cell(node.type, part->cells[k], part->type);
            });
            start += part->dims[along];
        }
        return out;
    }
    const Dims broadcast = node.form == Form::Broadcast ? broadcast_strides(x.dims, out.dims) : Dims{};
    int64_t start = 0;
    bool lost = false;
    if (node.form == Form::Slice) start = slice_start(node, x.dims[size_t(node.ints[0])]);
    if (node.form == Form::Window) {
        const auto a = size_t(node.ints[0]);
        lost = arg(1).cells[0].off > 0;
        start = int64_t(std::clamp<Real>(arg(1).cells[0].v, 0, Real(x.dims[a] - out.dims[a])));
    }
    each(out.dims, [&](const Index& i, size_t k) {
        const Cell& c = x.cells[size_t(source_of(*this, i, k, broadcast, start))];
        out.cells[k] = lost ? Cell{0, NOT_JUDGED} : node.form == Form::Cast ? cast_cell(node.type, c, x.type) : node.form == Form::Bitcast ? bits_of(node.type, c, x.type) : c;
    });
    return out;
}

namespace {

Cell identity(ng_dtype t, int64_t fold)
{
    const Element& e = element(t);
    const Real high = is_float(t) ? converted(t, INFINITY, NG_F32) : is_bool(t) ? Real(1) : std::ldexp(Real(1), 8 * e.bytes - (e.kind == Kind::Int)) - 1;
    const Real low = is_float(t) ? -high : e.kind == Kind::Int ? -high - 1 : Real(0);
    return {fold == NG_FOLD_PROD ? 1 : fold == NG_FOLD_MIN ? high : fold == NG_FOLD_MAX ? low : Real(0), 0};
}

// One step of a fold; magnitude: the greatest so far, of which each step of a sum may lose a unit.
Cell folded_by(int64_t fold, ng_dtype t, const Cell& a, const Cell& b, double& magnitude)
{
    if (fold == NG_FOLD_LAST) return b;
    if (fold == NG_FOLD_MIN || fold == NG_FOLD_MAX) {
        if (a.v != a.v || b.v != b.v) return {NAN, std::max(a.off, b.off)};
        const bool first = fold == NG_FOLD_MIN ? a.v < b.v : a.v > b.v;
        if (a.off == 0 && b.off == 0) return first ? a : b;
        const double off = std::abs(a.v - b.v) > Real(a.off + b.off) ? (first ? a.off : b.off) : std::max(a.off, b.off);
        return {first ? a.v : b.v, is_float(t) ? off : is_bool(t) ? 1 : NOT_JUDGED};
    }
    const bool sum = fold == NG_FOLD_SUM;
    if (!is_float(t)) {
        if (is_bool(t)) return {Real(sum ? a.v != 0 || b.v != 0 : a.v != 0 && b.v != 0), a.off + b.off > 0 ? 1. : 0.};
        const Wide v = sum ? Wide(a.v) + Wide(b.v) : low_product(Wide(a.v), Wide(b.v));
        return {wrapped(t, v), a.off + b.off > 0 ? NOT_JUDGED : 0};
    }
    const Real v = sum ? a.v + b.v : a.v * b.v;
    double off = sum ? a.off + b.off : a.off * double(std::abs(b.v)) + b.off * double(std::abs(a.v)) + a.off * b.off;
    if (!std::isfinite(v) || !(off < INFINITY)) return {0, NOT_JUDGED};
    magnitude = std::max(magnitude, double(std::abs(v)));
    off += double(unit_of(t, sum ? Real(magnitude) : v));
    // In another order a product may have passed the ends of its type.
    if (!sum && v != 0 && std::abs(v) < std::sqrt(unit_of(t, 0))) return {v, NOT_JUDGED};
    return settled(t, v, off);
}

struct Taken { int64_t place; bool lost; };    // -1: out of range

// f(number in the result or y, where in x) for every element that indices name; what is unknown is lost.
template <class F>
void each_taken(const Value& x, const Value& at, size_t axis, F f)
{
    Dims y(x.dims.begin(), x.dims.begin() + long(axis));
    y.insert(y.end(), at.dims.begin(), at.dims.end());
    y.insert(y.end(), x.dims.begin() + long(axis) + 1, x.dims.end());
    each(y, [&](const Index& i, size_t k) {
        const Index in(i.begin() + long(axis), i.begin() + long(axis + at.dims.size()));
        const Cell& c = at.cells[size_t(flat(in, at.dims))];
        Index from(i.begin(), i.begin() + long(axis));
        from.push_back(int64_t(std::clamp<Real>(c.v, -1, Real(x.dims[axis]))));
        from.insert(from.end(), i.begin() + long(axis + at.dims.size()), i.end());
        const bool inside = from[axis] >= 0 && from[axis] < x.dims[axis];
        f(k, Taken{inside ? flat(from, x.dims) : -1, c.off > 0});
    });
}

Value taken(const Meaning& m)
{
    Value out = m.empty();
    each_taken(m.arg(0), m.arg(1), size_t(m.node.ints[0]), [&](size_t k, Taken t) {
        out.cells[k] = t.lost ? Cell{0, NOT_JUDGED} : t.place < 0 ? Cell{0, 0} : m.arg(0).cells[size_t(t.place)];
    });
    return out;
}

Value stored(const Meaning& m)
{
    Value out = m.arg(0);
    const Value& y = m.arg(2);
    const Node& literal = m.program.nodes[size_t(m.node.args[2])];
    const ng_dtype from = literal.weak ? (literal.ints[0] ? ng_dtype(NG_I64) : ng_dtype(NG_F64)) : y.type;
    std::vector<double> magnitude;
    for (const Cell& c : out.cells) magnitude.push_back(double(std::abs(c.v)));
    bool lost = false;
    const auto axis = size_t(m.node.ints[0]);
    Dims all(out.dims.begin(), out.dims.begin() + long(axis));
    all.insert(all.end(), m.arg(1).dims.begin(), m.arg(1).dims.end());
    all.insert(all.end(), out.dims.begin() + long(axis) + 1, out.dims.end());
    const Dims strides = broadcast_strides(y.dims, all);
    std::vector<size_t> from_y(size_t(count_of(all)));
    each(all, [&](const Index& i, size_t k) { from_y[k] = size_t(dot(i, strides)); });
    each_taken(m.arg(0), m.arg(1), axis, [&](size_t k, Taken t) {
        lost = lost || t.lost;
        if (t.place < 0) return;
        Cell& c = out.cells[size_t(t.place)];
        const Cell v = cast_cell(out.type, y.cells[from_y[k]], from);
        // A place that is stored to but once is exact but for its rounding.
        c = folded_by(m.node.ints[1], out.type, c, v, magnitude[size_t(t.place)]);
    });
    if (lost)
        for (Cell& c : out.cells) c = {0, is_bool(out.type) ? 1 : NOT_JUDGED};
    return out;
}

Value scanned(const Meaning& m)
{
    const Value& x = m.arg(0);
    Value out = m.empty();
    const auto axis = size_t(m.node.ints[0]);
    const bool back = m.node.ints[2] & NG_REVERSE, exclusive = m.node.ints[2] & NG_EXCLUSIVE;
    const int64_t size = x.dims[axis];
    each(x.dims, [&](const Index& i, size_t) {
        if (i[axis] != 0) return;
        Cell sum = identity(x.type, m.node.ints[1]);
        double magnitude = 0;
        Index at = i;
        for (int64_t k = 0; k < size; k++) {
            at[axis] = back ? size - 1 - k : k;
            const auto place = size_t(flat(at, x.dims));
            if (exclusive) out.cells[place] = sum;
            sum = k == 0 ? x.cells[place] : folded_by(m.node.ints[1], x.type, sum, x.cells[place], magnitude);
            if (!exclusive) out.cells[place] = sum;
        }
    });
    return out;
}

Value segmented(const Meaning& m)
{
    const Value &x = m.arg(0), &offsets = m.arg(1);
    Value out = m.empty();
    each(out.dims, [&](const Index& i, size_t k) {
        const Cell &first = offsets.cells[size_t(i[0])], &end = offsets.cells[size_t(i[0]) + 1];
        if (first.off > 0 || end.off > 0) { out.cells[k] = {0, NOT_JUDGED}; return; }
        Cell sum = identity(x.type, m.node.ints[0]);
        double magnitude = 0;
        bool begun = false;
        Index at = i;
        const auto last = int64_t(std::clamp<Real>(end.v, 0, Real(x.dims[0])));
        for (at[0] = int64_t(std::clamp<Real>(first.v, 0, Real(x.dims[0]))); at[0] < last; at[0]++) {
            const Cell& c = x.cells[size_t(flat(at, x.dims))];
            sum = begun ? folded_by(m.node.ints[0], x.type, sum, c, magnitude) : c;
            begun = true;
        }
        out.cells[k] = sum;
    });
    return out;
}

Value sorted(const Meaning& m)
{
    const Value& x = m.arg(0);
    Value out = m.empty();
    const auto axis = size_t(m.node.ints[0]);
    const bool down = m.node.ints[1] & NG_REVERSE;
    each(x.dims, [&](const Index& i, size_t) {
        if (i[axis] != 0) return;
        std::vector<size_t> order(size_t(x.dims[axis]));
        std::iota(order.begin(), order.end(), 0);
        const auto cell = [&](size_t k) -> const Cell& {
            Index at = i;
            at[axis] = int64_t(k);
            return x.cells[size_t(flat(at, x.dims))];
        };
        std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
            const Real v = cell(a).v, w = cell(b).v;
            if (v != v || w != w) return v == v;
            return down ? v > w : v < w;
        });
        bool clear = true;
        for (size_t k = 0; k < order.size(); k++) {
            const Cell& c = cell(order[k]);
            clear = clear && c.off < INFINITY;
            if (k && (c.off > 0 || cell(order[k - 1]).off > 0))
                clear = clear && std::abs(c.v - cell(order[k - 1]).v) > Real(c.off + cell(order[k - 1]).off) * 2;
        }
        Index to = i;
        for (size_t k = 0; k < order.size(); k++) {
            to[axis] = int64_t(k);
            out.cells[size_t(flat(to, out.dims))] = {Real(order[k]), clear ? 0 : NOT_JUDGED};
        }
    });
    return out;
}

}  // namespace

Value Meaning::indexed() const
{
    switch (node.form) {
    case Form::Take: return taken(*this);
    case Form::Put: return stored(*this);
    case Form::Scan: return scanned(*this);
    case Form::Segment: return segmented(*this);
    default: return sorted(*this);
    }
}

}  // namespace programs
