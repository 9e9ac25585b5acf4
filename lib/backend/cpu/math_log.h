// log and its kin, roots and inverse hyperbolics, after the FreeBSD library's (Sun Microsystems 1993) without its branches.
#pragma once
#include "lib/backend/cpu/math_exp.h"

namespace ng::cpu {
namespace {

template <class T> struct Split { T k, m; };  // x = 2^k m, m from sqrt(1/2) to sqrt(2)

// x positive, finite and normal
INLINE Split<double> split(double x)
{
    const uint64_t u = bits_of(x) + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
    const double   k = from_bits((u >> 52) | 0x4330000000000000) - (4503599627370496.0 + 1023);
    return {k, from_bits((u & 0xfffffffffffff) + 0x3fe6a09e667f3bcd)};
}
INLINE Split<float> split(float x)
{
    const uint32_t u = bits_of(x) + (0x3f800000 - 0x3f3504f3);
    return {float(int32_t(u >> 23) - 127), from_bits((u & 0x7fffff) + 0x3f3504f3)};
}
template <class T>
INLINE Split<T> split_any(T x)
{
    constexpr T least = sizeof(T) == 4 ? T(0x1p-126) : T(0x1p-1022);
    const bool  small = x < least;
    Split<T>    s = split(small ? x * T(0x1p64) : x);
    s.k = small ? s.k - T(64) : s.k;
    return s;
}
// What log(1 + f) has beyond f - f^2 / 2, with s = f / (2 + f): s (f^2 / 2 + series(s^2))
INLINE float log_series(float z)
{
    return z * polynomial(z, 0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841);
}
INLINE double log_series(double z)
{
    return z * polynomial(z, 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
                          1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01);
}
template <class T> constexpr T LN2_HI = sizeof(T) == 4 ? T(6.9313812256e-01) : T(6.93147180369123816490e-01);
template <class T> constexpr T LN2_LO = sizeof(T) == 4 ? T(9.0580006145e-06) : T(1.90821492927058770002e-10);

// k ln 2 + log(1 + f) + c
template <class T>
INLINE T log_sum(T k, T f, T c)
{
    const T s = f / (T(2) + f), half = T(0.5) * f * f;
    return k * LN2_HI<T> - ((half - (s * (half + log_series(s * s)) + (k * LN2_LO<T> + c))) - f);
}
// The ends of a logarithm: r is right for positive finite x.
template <class T>
INLINE T log_ends(T x, T r)
{
    r = x < INFINITE<T> ? r : x;
    r = x == T(0) ? -INFINITE<T> : r;
    return x < T(0) ? NOT_A_NUMBER<T> : r;
}
template <class T>
INLINE T m_log(T x)
{
    const Split<T> s = split_any(x);
    return log_ends(x, log_sum(s.k, s.m - T(1), T(0)));
}
template <class T>
INLINE T m_log1p(T x)
{
    const T        u = T(1) + x;
    const Split<T> s = split(u);
    // What 1 + x lost; where u needs no scaling, x itself is the better f.
    const T lost = (s.k >= T(2) ? T(1) - (u - x) : x - (u - T(1))) / u;
    const T r = log_sum(s.k, s.k == T(0) ? x : s.m - T(1), s.k == T(0) ? T(0) : lost);
    return x == T(0) ? x : log_ends(u, r);
}

// log(m) as a head of 32 bits and a tail, for other bases
struct LogParts { double k, hi, lo; };
INLINE LogParts log_parts(double x)
{
    const Split<double> v = split_any(x);
    const double        f = v.m - 1, s = f / (2 + f), half = 0.5 * f * f;
    const double        hi = from_bits(bits_of(f - half) & 0xffffffff00000000);
    return {v.k, hi, ((f - hi) - half) + s * (half + log_series(s * s))};
}
INLINE double m_log2(double x)
{
    constexpr double scale_hi = 1.44269504072144627571, scale_lo = 1.67517131648865118353e-10;
    const LogParts   p = log_parts(x);
    const double     head = p.hi * scale_hi, tail = (p.lo + p.hi) * scale_lo + p.lo * scale_hi;
    const double     sum = p.k + head;
    return log_ends(x, tail + ((p.k - sum) + head) + sum);
}
INLINE double m_log10(double x)
{
    constexpr double scale_hi = 4.34294481878168880939e-01, scale_lo = 2.50829467116452752298e-11;
    constexpr double two_hi = 3.01029995663611771306e-01, two_lo = 3.69423907715893078616e-13;
    const LogParts   p = log_parts(x);
    const double     head = p.hi * scale_hi, base = p.k * two_hi;
    const double     tail = p.k * two_lo + (p.lo + p.hi) * scale_lo + p.lo * scale_hi;
    const double     sum = base + head;
    return log_ends(x, tail + ((base - sum) + head) + sum);
}

INLINE double m_asinh(double x)
{
    const double a = m_abs(x);
    const bool   big = a > 0x1p500;
    const double r = m_log1p(big ? a : a + a * a / (1 + m_sqrt(a * a + 1))) + (big ? 6.93147180559945286227e-01 : 0);
    return m_copysign(a < 0x1p-28 ? a : r, x);
}
INLINE double m_acosh(double x)
{
    const bool   big = x > 0x1p500;
    const double t = x - 1;
    const double r = m_log1p(big ? x : t + m_sqrt(2 * t + t * t)) + (big ? 6.93147180559945286227e-01 : 0);
    return x < 1 ? NOT_A_NUMBER<double> : r;
}
INLINE double m_atanh(double x)
{
    const double a = m_abs(x);
    const double r = m_copysign(0.5 * m_log1p(2 * a / (1 - a)), x);
    return a < 0x1p-28 ? x : r;
}
// A guess from a third of the exponent, a polynomial to 23 bits, one step of Newton's (FreeBSD's, to 0.67 ulp).
INLINE double m_cbrt(double x)
{
    const double   a = m_abs(x);
    const bool     small = a < 0x1p-1022;
    const uint32_t high = uint32_t(bits_of(small ? a * 0x1p54 : a) >> 32);
    double         t = from_bits(uint64_t(high / 3 + (small ? 696219795u : 715094163u)) << 32);
    double         r = (t * t) * (t / a);
    t = t * polynomial(r, 1.87595182427177009643, -1.88497979543377169875, 1.621429720105354466140, -0.758397934778766047437,
                       0.145996192886612446982);
    t = from_bits((bits_of(t) + 0x80000000) & 0xffffffffc0000000);
    r = a / (t * t);
    t = t + t * ((r - t) / (t + t + r));
    return a > 0 && a < INFINITE<double> ? m_copysign(t, x) : x;
}
INLINE double m_hypot(double x, double y)
{
    const double   ax = m_abs(x), ay = m_abs(y), a = ax > ay ? ax : ay, b = ax > ay ? ay : ax;
    uint64_t       e = bits_of(a) & 0x7ff0000000000000;
    e = e < 0x0010000000000000 ? 0x0010000000000000 : e > 0x7fd0000000000000 ? 0x7fd0000000000000 : e;
    const double down = from_bits(0x7fe0000000000000 - e);  // 1 / 2^e
    const double s = a * down, t = b * down;
    const double r = m_sqrt(mad(s, s, t * t)) * from_bits(e);
    return ax == INFINITE<double> || ay == INFINITE<double> ? INFINITE<double> : r;
}

}  // namespace
}  // namespace ng::cpu
