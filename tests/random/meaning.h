// What a node's value must be, number by number, and how far a right answer may be from it.
#pragma once
#include "tests/random/graph_of_program.h"

#include <cmath>
#include <span>

namespace programs {

constexpr double NOT_JUDGED = INFINITY;

// A right answer lies within v - off .. v + off; NOT_JUDGED: anything may be right. 0: it is v, but for the sign of 0.
struct Cell {
    Real   v;
    double off;
};
struct Value {
    ng_dtype type;
    Dims     dims;
    std::vector<Cell> cells;      // row-major
};
using Values = std::span<const Value* const>;

// The one place of the program that says what each form means.
struct Meaning {
    const Table&   table;
    const Program& program;
    const Node&    node;
    size_t         run;
    Values         args;

    Value value() const;
    const Value& arg(size_t i) const { return *args[i]; }
    const Dims&  lengths() const { return program.runs[run]; }
    Value empty() const;          // of the node's type and dims

    // A file each.
    Value map() const;
    Value reduced() const;
    Value normalised() const;
    Value moved() const;
    Value indexed() const;
    Value multiplied() const;
    Value windowed() const;
    Value pooled() const;
    Value drawn() const;
};

// ---- what they share
Cell cast_cell(ng_dtype to, const Cell& x, ng_dtype from);
// A float result of v with so much error before its own rounding: beyond the largest number, or worse than a tenth of
// what is computed with, it is not judged.
Cell settled(ng_dtype t, Real v, double off);
// Sum of what is known to be off by rounding in any order: every level of a tree of `count` adds half a unit.
double sum_off(ng_dtype t, Real magnitudes, int64_t count, double carried);
inline double epsilon_of(ng_dtype t) { return double(unit_of(t, 1)); }

using Index = Dims;
inline int64_t flat(const Index& i, const Dims& dims)
{
    int64_t at = 0;
    for (size_t a = 0; a < dims.size(); a++) at = at * dims[a] + i[a];
    return at;
}
// f(index, row-major number) of all of them, in order.
template <class F>
void each(const Dims& dims, F f)
{
    const int64_t n = count_of(dims);
    Index i(dims.size(), 0);
    for (int64_t k = 0; k < n; k++) {
        f(i, size_t(k));
        for (size_t a = dims.size(); a-- > 0 && ++i[a] == dims[a];) i[a] = 0;
    }
}
// Strides of a value of `from` dims seen as one that it broadcasts to.
inline Dims broadcast_strides(const Dims& from, const Dims& to)
{
    Dims strides(to.size(), 0);
    int64_t stride = 1;
    for (size_t i = 0; i < from.size(); i++) {
        const size_t a = from.size() - 1 - i;
        strides[to.size() - 1 - i] = from[a] == 1 ? 0 : stride;
        stride *= from[a];
    }
    return strides;
}
inline int64_t dot(const Index& i, const Dims& strides)
{
    int64_t at = 0;
    for (size_t a = 0; a < i.size(); a++) at += i[a] * strides[a];
    return at;
}

}  // namespace programs
