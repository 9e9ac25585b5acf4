// Integers' and bools' share of the functions that rows call, and the remainders of floats.
#pragma once
#include "lib/backend/cpu/math_pow.h"

namespace ng::cpu {
namespace {

template <class T> concept Integer = IS_INTEGER<T>;

// x where T may be unsigned, compared without a warning
template <Integer T> INLINE bool is_negative(T x) { return std::is_signed_v<T> && x < T(0); }

template <Integer T> INLINE T    m_abs(T x) { return is_negative(x) ? T(-x) : x; }
template <Integer T> INLINE T    m_floor(T x) { return x; }
template <Integer T> INLINE T    m_ceil(T x) { return x; }
template <Integer T> INLINE T    m_trunc(T x) { return x; }
template <Integer T> INLINE T    m_rint(T x) { return x; }
template <Integer T> INLINE bool m_signbit(T x) { return is_negative(x); }
template <Integer T> INLINE T    m_pow(T x, T y) { return pow_of_integer(x, y); }

template <Integer T>
INLINE T m_popcount(T x)
{
    if constexpr (std::is_same_v<T, bool>) {
        return x;
    } else {
        using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
        U n = U(std::make_unsigned_t<T>(x));
        n = n - ((n >> 1) & U(0x5555555555555555));
        n = (n & U(0x3333333333333333)) + ((n >> 2) & U(0x3333333333333333));
        n = (n + (n >> 4)) & U(0x0f0f0f0f0f0f0f0f);
        return T((n * U(0x0101010101010101)) >> (8 * sizeof(U) - 8));
    }
}

// The float type in which a quotient of Ts is on the right side of every whole number.
template <class T> using Quotient = std::conditional_t<sizeof(T) <= 2, float, double>;

// Quotients towards zero; by zero they are 0, and the least number by -1 is itself (it wraps).
template <Integer T>
INLINE T quotient(T x, T y)
{
    const bool turns = std::is_signed_v<T> && y == T(-1);
    if constexpr (sizeof(T) == 8) {
        if (y == T(0) || turns) return y == T(0) ? T(0) : T(0 - uint64_t(x));
        return x / y;
    } else {
        using R = Quotient<T>;
        const T q = T(R(x) / R(y == T(0) || turns ? T(1) : y));
        return y == T(0) ? T(0) : turns ? T(-q) : q;
    }
}
template <Integer T> INLINE T m_fmod(T x, T y) { return y == T(0) ? T(0) : T(x - quotient(x, y) * y); }
template <Integer T>
INLINE T m_rem(T x, T y)
{
    const T r = m_fmod(x, y);
    return r != T(0) && is_negative(r) != is_negative(y) ? T(r + y) : r;
}
template <Integer T>
INLINE T m_floor_div(T x, T y)
{
    const T q = quotient(x, y), r = T(x - q * y);
    return y != T(0) && r != T(0) && is_negative(r) != is_negative(y) ? T(q - 1) : q;
}

// Exact where is_plain_quotient says so: the quotient is one off at most, and so the remainder fits.
INLINE double m_fmod(double x, double y)
{
    const double ax = m_abs(x), ay = m_abs(y), r = mad(-m_trunc(ax / ay), ay, ax);
    return m_copysign(r < 0 ? r + ay : r, x);
}
INLINE bool is_plain_quotient(double x, double y)
{
#ifdef __FMA__
    return m_abs(x / y) < 0x1p52 && m_abs(y) < INFINITE<double>;
#else
    return (void)x, (void)y, false;
#endif
}
// numpy's, from r = fmod(x, y)
INLINE double rem_of(double r, double y)
{
    const double moved = (r < 0) != (y < 0) ? r + y : r;
    return r == 0 ? m_copysign(0.0, y) : moved;
}
INLINE double floor_div_of(double r, double x, double y)
{
    const double q = (x - r) / y - (r != 0 && (r < 0) != (y < 0) ? 1.0 : 0.0), f = m_floor(q);
    const double whole = q - f > 0.5 ? f + 1 : f;
    return y == 0 ? x / y : q == 0 ? m_copysign(0.0, x / y) : whole;
}
INLINE double m_rem(double x, double y) { return rem_of(m_fmod(x, y), y); }
INLINE double m_floor_div(double x, double y) { return floor_div_of(m_fmod(x, y), x, y); }

}  // namespace
}  // namespace ng::cpu
