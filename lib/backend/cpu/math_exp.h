// exp and its kin: the argument is cut into n ln 2 + r, e^r is a polynomial, 2^n goes into the exponent.
#pragma once
#include "lib/backend/cpu/math_core.h"

namespace ng::cpu {
namespace {

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2, to 2^-28 and 2^-58: interpolated at Chebyshev's points.
INLINE float exp_tail(float r)
{
    return polynomial(r, 0.500000001354, 0.166666666817, 0.0416664641974, 0.00833331084465, 0.00139337307158, 0.00019891080464);
}
INLINE double exp_tail(double r)
{
    return polynomial(r, 0.5, 0.1666666666666667103, 0.041666666666666669783, 0.0083333333333260831202, 0.0013888888888883711167,
                      0.00019841269875002278793, 0.0000248015873256774619, 2.7557255170000887438e-6,
                      2.7557273478718580474e-7, 2.5105312729622101775e-8, 2.0914755325893202191e-9);
}
template <class T> struct ExpLimits;
template <> struct ExpLimits<float> {
    static constexpr float low = -104, high = 89.5f;     // below and above: 0 and infinity, for half of e^x as well
    static constexpr float ln2_hi = 0x1.62e4p-1f, ln2_lo = 0x1.7f7d1cp-20f;  // hi has 15 bits: n hi is exact
    static constexpr float tiny = 0x1p-14f;              // its square is below the last place
    static constexpr float quarter_low = -30, quarter_high = 89.5f;  // where e^x - 1 is -1, and infinite even halved
};
template <> struct ExpLimits<double> {
    static constexpr double low = -746, high = 710.5;
    static constexpr double ln2_hi = 0x1.62e42fefa2000p-1, ln2_lo = 0x1.9ef35793c7673p-41;
    static constexpr double tiny = 0x1p-28;
    static constexpr double quarter_low = -60, quarter_high = 710.5;
};
template <class T> struct Reduced { T n, r; };  // n whole

// x + low = n ln 2 + r
template <class T>
INLINE Reduced<T> reduce_exp(T x, T low)
{
    using L = ExpLimits<T>;
    const T n = mad(x, T(1.4426950408889634074), ROUNDER<T>) - ROUNDER<T>;
    return {n, mad(n, -L::ln2_hi, x) + (low - n * L::ln2_lo)};
}
// p 2^n in two steps, so that only a result that is denormal is rounded, once.
template <class T>
INLINE T scale(T p, T n)
{
    const T half = n * T(0.5) + ROUNDER<T>;
    return p * power_of_two(half) * power_of_two(n - (half - ROUNDER<T>) + ROUNDER<T>);
}
// e^(x + low) 2^shift: low is what x lacks of the exact argument, shift -1 or 0.
template <class T>
INLINE T exp_times(T x, T low, T shift)
{
    x = at_least(at_most(x, ExpLimits<T>::high), ExpLimits<T>::low);
    const auto [n, r] = reduce_exp(x, low);
    return scale(mad(r * r, exp_tail(r), r) + T(1), n + shift);
}
template <class T> INLINE T m_exp(T x) { return exp_times(x, T(0), T(0)); }

// (e^x - 1) / 4: finite wherever sinh is.
template <class T>
INLINE T quarter_expm1(T x)
{
    x = at_least(at_most(x, ExpLimits<T>::quarter_high), ExpLimits<T>::quarter_low);
    const auto [n, r] = reduce_exp(x, T(0));
    const T power = power_of_two(n - T(2) + ROUNDER<T>);
    return mad(power, mad(r * r, exp_tail(r), r), power - T(0.25));
}
template <class T>
INLINE T m_expm1(T x)
{
    return m_abs(x) < ExpLimits<T>::tiny * ExpLimits<T>::tiny ? x : T(4) * quarter_expm1(x);
}

// (2^r - 1) / r for |r| <= 1/2, to 2^-26 and 2^-61.
INLINE float exp2_slope(float r)
{
    return polynomial(r, 0.693147188026, 0.240226507606, 0.0555035711422, 0.00961808255728, 0.00133908633647, 0.000154531629451);
}
INLINE double exp2_slope(double r)
{
    return polynomial(r, 0.69314718055994530925, 0.24022650695910071233, 0.055504108664821627039, 0.0096181291076284794928,
                      0.0013333558146406470697, 0.00015403530393370733411, 0.000015252733841556772589,
                      1.321548680870556279e-6, 1.0178057087733941105e-7, 7.0548973041554992774e-9,
                      4.455817908336064493e-10, 2.5729324177362304214e-11);
}
template <class T>
INLINE T m_exp2(T x)
{
    x = at_least(at_most(x, T(sizeof(T) == 4 ? 130 : 1026)), T(sizeof(T) == 4 ? -152 : -1078));
    const T n = x + ROUNDER<T> - ROUNDER<T>, r = x - n;
    return scale(mad(r, exp2_slope(r), T(1)), n);
}

template <class T>
INLINE T m_sigmoid(T x)
{
    const T e = m_exp(-m_abs(x));
    return (x < T(0) ? e : T(1)) / (T(1) + e);
}
template <class T>
INLINE T m_tanh(T x)
{
    const T quarter = quarter_expm1(T(2) * at_most(m_abs(x), T(22)));
    const T r = m_copysign(quarter / (quarter + T(0.5)), x);
    return m_abs(x) < ExpLimits<T>::tiny ? x : r;
}
INLINE double m_sinh(double x)
{
    const double quarter = quarter_expm1(m_abs(x)), half = 2 * quarter;  // half may be infinite, quarter is not
    const double r = m_copysign(half + quarter / (half + 0.5), x);
    return m_abs(x) < 0x1p-28 ? x : r;
}
INLINE double m_cosh(double x)
{
    const double half = exp_times(m_abs(x), 0.0, -1.0);
    return half + 0.25 / half;
}

}  // namespace
}  // namespace ng::cpu
