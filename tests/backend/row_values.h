// What each row of ops.def should give, from the same expressions over the C library's functions, in any type up to long double.
#pragma once
#include "jit/ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ng::reference {

template <class T> concept Float = std::is_floating_point_v<T>;
template <class T> concept Whole = std::is_integral_v<T>;

#define NG_SAME(name) \
    template <Float T> T f_##name(T x) { return std::name(x); }
NG_SAME(sqrt) NG_SAME(cbrt) NG_SAME(exp) NG_SAME(exp2) NG_SAME(expm1) NG_SAME(log) NG_SAME(log2) NG_SAME(log10) NG_SAME(log1p)
NG_SAME(sin) NG_SAME(cos) NG_SAME(tan) NG_SAME(asin) NG_SAME(acos) NG_SAME(atan) NG_SAME(sinh) NG_SAME(cosh) NG_SAME(tanh)
NG_SAME(asinh) NG_SAME(acosh) NG_SAME(atanh) NG_SAME(erf) NG_SAME(erfc) NG_SAME(floor) NG_SAME(ceil) NG_SAME(trunc) NG_SAME(rint)
NG_SAME(abs)
#undef NG_SAME
template <Float T> T    f_pow(T x, T y) { return std::pow(x, y); }
template <Float T> T    f_atan2(T x, T y) { return std::atan2(x, y); }
template <Float T> T    f_hypot(T x, T y) { return std::hypot(x, y); }
template <Float T> T    f_copysign(T x, T y) { return std::copysign(x, y); }
template <Float T> T    f_nextafter(T x, T y) { return std::nextafter(x, y); }
template <Float T> T    f_fmod(T x, T y) { return std::fmod(x, y); }
template <Float T> T    f_fma(T x, T y, T z) { return std::fma(x, y, z); }
template <Float T> bool f_signbit(T x) { return std::signbit(x); }
// Python's: the sign of y, from C's remainder.
template <Float T>
T f_rem(T x, T y)
{
    const T r = std::fmod(x, y);
    if (r == 0) return std::copysign(r, y);
    return std::signbit(r) == std::signbit(y) || r != r ? r : r + y;
}
template <Float T>
T f_floor_div(T x, T y)
{
    const T r = f_rem(x, y), q = (x - r) / y;
    if (y == 0) return x / y;
    if (std::isinf(y) && std::isfinite(x)) return x == 0 ? x / y : (x < 0) != (y < 0) ? T(-1) : T(0);
    return q == 0 ? std::copysign(T(0), x / y) : std::rint(q);
}
template <Float T>
T f_sigmoid(T x)
{
    return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <Float T> T f_normcdf(T x) { return std::erfc(-x * T(0.70710678118654752440084436210484904L)) / 2; }
template <Float T> T f_gelu(T x) { return x * f_normcdf(x); }
template <Float T> T f_silu(T x) { return x < 0 ? x * std::exp(x / 2) * std::exp(x / 2) / (1 + std::exp(x)) : x / (1 + std::exp(-x)); }
template <Float T>
T f_sinpi(T x)
{
    const T r = std::remainder(x, T(2)), a = std::abs(r), pi = T(3.14159265358979323846264338327950288L);
    if (a == 1 || a == 0) return std::copysign(T(0), x);
    return std::copysign(a <= T(0.25) ? std::sin(pi * a) : a < T(0.75) ? std::cos(pi * (T(0.5) - a)) : std::sin(pi * (1 - a)), r);
}
template <Float T>
T f_cospi(T x)
{
    const T a = std::abs(std::remainder(x, T(2))), pi = T(3.14159265358979323846264338327950288L);
    if (a == T(0.5)) return 0;
    return a <= T(0.25) ? std::cos(pi * a) : a < T(0.75) ? std::sin(pi * (T(0.5) - a)) : -std::cos(pi * (1 - a));
}

template <Whole T> T    f_abs(T x) { return x < T(0) ? T(-x) : x; }
template <Whole T> T    f_floor(T x) { return x; }
template <Whole T> T    f_ceil(T x) { return x; }
template <Whole T> T    f_trunc(T x) { return x; }
template <Whole T> T    f_rint(T x) { return x; }
template <Whole T> bool f_signbit(T x) { return x < T(0); }
template <Whole T>
T f_popcount(T x)
{
    int n = 0;
    for (int i = 0; i < int(8 * sizeof(T)); i++) n += int(uint64_t(x) >> i & 1);
    return T(n);
}
// Wider than any T: what wraps around in T is exact here.
__extension__ using Wide = __int128;
template <Whole T> T f_fmod(T x, T y) { return y == 0 ? T(0) : T(Wide(x) % Wide(y)); }
template <Whole T>
T f_floor_div(T x, T y)
{
    if (y == 0) return 0;
    const Wide a = x, b = y, q = a / b;
    return T(a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q);
}
template <Whole T>
T f_rem(T x, T y)
{
    return y == 0 ? T(0) : T(Wide(x) - Wide(f_floor_div(x, y)) * Wide(y));
}
// By multiplying on and on; the powers of a number wrap around with a period that divides 2^64 times a small odd one,
// so large exponents are left to squarings of the period: x^(2^k).
template <Whole T>
T f_pow(T x, T y)
{
    if (y < T(0)) return x == T(1) ? T(1) : x == T(-1) ? T(y % 2 == 0 ? 1 : -1) : T(0);
    uint64_t r = 1, e = uint64_t(y), square = uint64_t(x);
    for (; e >= 64; e /= 2, square *= square)
        if (e & 1) r *= square;
    for (; e > 0; e--) r *= square;
    return T(r);
}

// The value of a row: in bool for comparisons, else in T. x is a bool for where.
template <class T>
struct Values {
    template <class X>
    static T of(Op op, X x, T y, T z)
    {
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wbool-compare"
#pragma GCC diagnostic ignored "-Wbool-operation"
#endif
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wparentheses"
#define K(v) (T(v))
#define F(name) reference::f_##name
#define MAP(name, arity, domain_, result, expression, ...) \
    case Op::name:                                         \
        if constexpr (takes(Domain::domain_)) return T(expression); \
        else break;
        switch (op) {
#include "jit/ops.def"
        default: break;
        }
#undef F
#undef K
#pragma GCC diagnostic pop
        (void)x, (void)y, (void)z;
        return T(0);
    }
    static constexpr bool takes(Domain domain)
    {
        switch (domain) {
        case Domain::Any: return !std::is_same_v<T, bool>;
        case Domain::Keep: return true;
        case Domain::Real: return Float<T>;
        case Domain::Bits: return Whole<T>;
        case Domain::Logic: return std::is_same_v<T, bool>;
        }
        return false;
    }
};

// How far got is from the exact value, in units of the last place that T has at `place`; NaN and infinity agree or are 1e9 apart.
template <Float T>
double distance(T got, long double exact, long double place)
{
    const T rounded = T(exact);
    if (exact != exact || got != got) return (exact != exact) == (got != got) ? 0 : 1e9;
    constexpr int digits = std::numeric_limits<T>::digits, least = std::numeric_limits<T>::min_exponent - digits;
    if (std::isinf(rounded) || std::isinf(got)) {
        if (got == rounded) return 0;
        // Over the edge on one side only: as far as the largest number from the next that there would be.
        const long double edge = std::ldexp(1.0L, std::numeric_limits<T>::max_exponent);
        if (std::isinf(exact)) return 1e9;
        return double(std::abs((std::isinf(got) ? std::copysign(edge, (long double)got) : (long double)got) - exact) /
                      std::ldexp(1.0L, std::numeric_limits<T>::max_exponent - digits));
    }
    int exponent = 0;
    std::frexp(std::max(std::abs(exact), std::abs(place)), &exponent);
    const int unit = std::max(exponent - digits, least);
    if (exact == 0 && place == 0) return got == 0 ? 0 : 1e9;
    return double(std::abs((long double)got - exact) / std::ldexp(1.0L, unit));
}

}  // namespace ng::reference
