// Powers: of doubles by a logarithm of twice the digits, of floats through doubles, of integers by squaring.
#pragma once
#include "lib/backend/cpu/math_log.h"

namespace ng::cpu {
namespace {

// C99 annex F.9.4.4: v is |x|^y for finite x that is not 0. Every choice is a selection, or the loop has branches.
template <class T>
INLINE T pow_ends(T v, T x, T y)
{
    constexpr T whole = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
    const T     a = m_abs(x), b = m_abs(y), half = b * T(0.5), b_rounded = m_rint(b), half_rounded = m_rint(half);
    const bool  is_whole = (b >= whole) | (b_rounded == b);
    const bool  is_odd = (b < T(2) * whole) & (b_rounded == b) & (half_rounded != half);
    const bool  is_end = (a == T(0)) | (a == INFINITE<T>), is_far = (a < T(1)) == (y < T(0));
    const bool  is_endless = b == INFINITE<T>, is_one = (y == T(0)) | (x == T(1));
    const T     far = is_far ? INFINITE<T> : T(0);   // where a 0 or an infinity is below or above
    v = (is_end | is_endless) ? far : v;
    v = (is_endless & (a == T(1))) ? T(1) : v;
    const T turned = is_odd ? -v : v, kept = (is_whole | is_end) ? turned : NOT_A_NUMBER<T>;
    v = m_signbit(x) ? kept : v;
    v = ((x != x) | (y != y)) ? x + y : v;
    return is_one ? T(1) : v;
}

// log of positive finite x to about 2^-66: 2 atanh(s) with s = (m - 1) / (m + 1) in pairs.
INLINE Pair<double> log_pair(double x)
{
    const Split<double> v = split_any(x);
    const double        f = v.m - 1, sum = v.m + 1, sum_low = v.m - (sum - 1), q = f / sum;
    const Pair<double>  back = exact_product(q, sum);
    const Pair<double>  s = {q, (((f - back.hi) - back.lo) - q * sum_low) / sum};
    const Pair<double>  z = product(s, s);
    // (2 atanh(s) / s - 2 - 2z / 3) / z^2 for z <= 0.0295, to 2^-57, interpolated at Chebyshev's points
    const double t = z.hi * polynomial(z.hi, 0.39999999999999999817, 0.28571428571429368119, 0.22222222221654732568,
                                       0.18181818335654159468, 0.15384594934597916688, 0.13334806212100603652,
                                       0.11706195689881364837, 0.11723603622905411626);
    Pair<double> c = ordered_sum(0.66666666666666662966, t);
    c.lo += 3.7007434154171882626e-17;
    const Pair<double> tail = product(s, product(z, c));
    const Pair<double> a = exact_sum(v.k * ExpLimits<double>::ln2_hi, 2 * s.hi), b = exact_sum(a.hi, tail.hi);
    return ordered_sum(b.hi, b.lo + (a.lo + (2 * s.lo + (tail.lo + v.k * ExpLimits<double>::ln2_lo))));
}
INLINE double m_pow(double x, double y)
{
    // A larger y has over- or underflown as well, even next to 1, and its product has no exact halves.
    const Pair<double> l = log_pair(m_abs(x)), p = exact_product(at_most(at_least(y, -0x1p900), 0x1p900), l.hi);
    return pow_ends(exp_times(p.hi, m_abs(p.hi) < 1000 ? p.lo + y * l.lo : 0.0, 0.0), x, y);
}

// |x|^y to about 2^-35, for floats in doubles
INLINE double pow_of_float(double a, double y)
{
    const Split<double> v = split(a);
    const double        s = (v.m - 1) / (v.m + 1);
    const double l = s * polynomial(s * s, 2.00000000000000034, 0.666666666665526175, 0.400000000618778691, 0.285714159988707428,
                                    0.222234361673050828, 0.181218806018789231, 0.168383251755095612);
    const double e = y * (v.k + l * 1.4426950408889634074), x = at_least(at_most(e, 300.0), -300.0);
    const double rounded = x + ROUNDER<double>, r = x - (rounded - ROUNDER<double>);
    return mad(r, exp2_slope(r), 1.0) * power_of_two(rounded);
}

// Wraps; 0 to a negative power is 0.
template <class T>
INLINE T pow_of_integer(T x, T y)
{
    using U = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
    U r = 1, base = U(x);
    if (y < T(0)) {
        const bool odd = y & 1;
        return x == T(1) ? T(1) : x == T(-1) ? (odd ? T(-1) : T(1)) : T(0);
    }
    for (auto n = std::make_unsigned_t<T>(y); n; n >>= 1, base *= base) r = n & 1 ? r * base : r;
    return T(r);
}

}  // namespace
}  // namespace ng::cpu
