// Arrays of doubles and, on them, every operation of a graph as plain loops: what derivatives are compared with.
#pragma once
#include "jit/build.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace naive {

using ng::Op;

struct Value {
    std::vector<int64_t> dims;
    std::vector<double>  v;      // row-major
};
using Index = std::vector<int64_t>;

inline int64_t count_of(const std::vector<int64_t>& dims)
{
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
}
inline Value zeros(std::vector<int64_t> dims, double fill = 0)
{
    const auto n = size_t(count_of(dims));
    return {std::move(dims), std::vector<double>(n, fill)};
}
inline int64_t flat(const Index& i, const std::vector<int64_t>& dims)
{
    int64_t at = 0;
    for (size_t a = 0; a < dims.size(); a++) at = at * dims[a] + i[a];
    return at;
}
// f(index, row-major number) of all of them, in order.
template <class F> void each(const std::vector<int64_t>& dims, F f)
{
    const int64_t n = count_of(dims);
    Index i(dims.size(), 0);
    for (int64_t k = 0; k < n; k++) {
        f(i, k);
        for (size_t a = dims.size(); a-- > 0 && ++i[a] == dims[a];) i[a] = 0;
    }
}

// The prelude's functions that the rows of ops.def call.
namespace prelude {
using std::abs, std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atan2, std::atanh, std::cbrt, std::ceil, std::copysign, std::cos, std::cosh,
    std::erf, std::erfc, std::exp, std::exp2, std::expm1, std::floor, std::fma, std::fmod, std::hypot, std::log, std::log10, std::log1p, std::log2,
    std::nextafter, std::pow, std::rint, std::signbit, std::sin, std::sinh, std::sqrt, std::tan, std::tanh, std::trunc;
inline double floor_div(double x, double y) { return std::floor(x / y); }
inline double rem(double x, double y) { return x - y * std::floor(x / y); }
inline double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
inline double gelu(double x) { return x * normcdf(x); }
inline double silu(double x) { return x / (1 + std::exp(-x)); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double sinpi(double x) { return std::sin(M_PI * x); }
inline double cospi(double x) { return std::cos(M_PI * x); }
inline int64_t popcount(int64_t x) { return __builtin_popcountll(uint64_t(x)); }
}  // namespace prelude

template <ng::Domain D> using Computed = std::conditional_t<D == ng::Domain::Bits || D == ng::Domain::Logic, int64_t, double>;

inline double map_of(Op op, double a, double b, double c)
{
    switch (op) {
#define K(v) T(v)
#define F(f) prelude::f
#define MAP(name, arity, domain, result, expression, ...)                    \
    case Op::name: {                                                         \
        using T = Computed<ng::Domain::domain>;                              \
        [[maybe_unused]] const T x = T(a), y = T(b), z = T(c);               \
        return double(expression);                                           \
    }
#include "jit/ops.def"
#undef K
#undef F
    default: return NAN;
    }
}

inline double fold_start(ng::Fold how)
{
    switch (how) {
    case ng::Fold::Prod: return 1;
    case ng::Fold::Min: return INFINITY;
    case ng::Fold::Max: return -INFINITY;
    default: return 0;
    }
}
inline double fold_of(ng::Fold how, double x, double y)
{
    switch (how) {
    case ng::Fold::Sum: return x + y;
    case ng::Fold::Prod: return x * y;
    case ng::Fold::Min: return std::min(x, y);
    case ng::Fold::Max: return std::max(x, y);
    default: return y;
    }
}

// f(x's number or -1 for padding, w's, y's) for every product of a convolution.
template <class F>
void each_tap(const std::vector<int64_t>& x, const std::vector<int64_t>& w, const std::vector<int64_t>& y, const ng::ConvShape& s, F f)
{
    each(y, [&](const Index& at_y, int64_t ny) {
        std::vector<int64_t> filter(w.begin() + 1, w.end());
        each(filter, [&](const Index& at_w, int64_t) {
            Index in_w = {at_y[1]}, in_x = {at_y[0], at_y[1] / (w[0] / s.groups) * w[1] + at_w[0]};
            in_w.insert(in_w.end(), at_w.begin(), at_w.end());
            bool inside = true;
            for (size_t a = 2; a < x.size(); a++) {
                const int64_t p = at_y[a] * s.stride[a - 2] + at_w[a - 1] * s.dilate[a - 2] - s.pad_lo[a - 2];
                inside = inside && p >= 0 && p < x[a];
                in_x.push_back(p);
            }
            f(inside ? flat(in_x, x) : -1, flat(in_w, w), ny);
        });
    });
}

// f(numbers of x's elements in the window, its size with padding, y's number) for every window.
template <class F>
void each_window(const std::vector<int64_t>& x, const std::vector<int64_t>& y, const ng::PoolShape& s, F f)
{
    std::vector<int64_t> window = {s.channel_window};
    for (size_t a = 2; a < x.size(); a++) window.push_back(s.window[a - 2]);
    each(y, [&](const Index& at_y, int64_t ny) {
        std::vector<int64_t> inside;
        each(window, [&](const Index& at, int64_t) {
            Index i = {at_y[0], at_y[1] * s.channel_stride + at[0] - s.channel_pad};
            for (size_t a = 2; a < x.size(); a++) i.push_back(at_y[a] * s.stride[a - 2] + at[a - 1] * s.dilate[a - 2] - s.pad_lo[a - 2]);
            for (size_t a = 1; a < x.size(); a++)
                if (i[a] < 0 || i[a] >= x[a]) return;
            inside.push_back(flat(i, x));
        });
        f(inside, count_of(window), ny);
    });
}

inline double pooled(const ng::PoolShape& s, const Value& x, const std::vector<int64_t>& at, int64_t size)
{
    double top = -INFINITY, sum = 0, squares = 0;
    for (const int64_t i : at) {
        const double v = x.v[size_t(i)];
        top = std::max(top, v), sum += v, squares += v * v;
    }
    if (s.kind == NG_POOL_MAX) return top;
    return s.kind == NG_POOL_L2 ? std::sqrt(squares) : sum / double(s.flags & NG_POOL_COUNT_PAD ? size : int64_t(at.size()));
}
// d pooled / d element i of the window.
inline double pool_slope(const ng::PoolShape& s, const Value& x, const std::vector<int64_t>& at, int64_t size, size_t i)
{
    const double y = pooled(s, x, at, size), v = x.v[size_t(at[i])];
    if (s.kind == NG_POOL_MEAN) return 1 / double(s.flags & NG_POOL_COUNT_PAD ? size : int64_t(at.size()));
    if (s.kind == NG_POOL_L2) return y > 0 ? v / y : 0;
    for (size_t k = 0; k < i; k++)
        if (x.v[size_t(at[k])] == y) return 0;
    return v == y;
}

}  // namespace naive
