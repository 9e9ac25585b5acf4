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
// x = n ln 2 + r, |r| <= ln 2 / 2. raised: n + offset, in the low bits of its mantissa.
template <class T> struct Reduced { T raised, n, r; };
template <class T>
INLINE Reduced<T> reduce_exp(T x, T offset)
{
    using L = ExpLimits<T>;
    const T magic = ROUNDER<T> + offset, raised = mad(x, T(1.4426950408889634074), magic), n = raised - magic;
    return {raised, n, mad(n, -L::ln2_lo, mad(n, -L::ln2_hi, x))};
}
// 2^n; raised: n + HALF_SCALED
template <class T> constexpr T HALF_SCALED = sizeof(T) == 4 ? T(127) : T(1023);
INLINE float  power_of_raised(float raised) { return from_bits(bits_of(raised) << 23); }
INLINE double power_of_raised(double raised) { return from_bits(bits_of(raised) << 52); }
// p 2^n in two steps, so that only a result that is denormal is rounded, once. raised: n + SCALED in its low bits.
template <class T> constexpr T SCALED = 2 * HALF_SCALED<T>;
INLINE float scale(float p, float raised)
{
    const uint32_t u = bits_of(raised), half = u >> 1;
    return p * from_bits(half << 23) * from_bits((u - half) << 23);
}
INLINE double scale(double p, double raised)
{
    const uint64_t u = bits_of(raised), half = u >> 1;
    return p * from_bits(half << 52) * from_bits((u - half) << 52);
}
// x within low < 0 < high, NaN at one end: f32 by its bits, which are in order for numbers of one sign, and cost an instruction
// a side where comparisons that let NaN through take seven together.
INLINE float up_to(float x, float limit)             // x >= 0 or NaN, which becomes the limit
{
    const int32_t u = int32_t(bits_of(x)), most = int32_t(bits_of(limit));
    return from_bits(uint32_t(u < most ? u : most));
}
INLINE double up_to(double x, double limit) { return x < limit ? x : limit; }
INLINE float  within(float x, float low, float high)
{
    const uint32_t u = bits_of(x), least = bits_of(low);
    return up_to(from_bits(u < least ? u : least), high);
}
INLINE double within(double x, double low, double high) { return at_least(at_most(x, high), low); }
// e^x for x within the limits
template <class T>
INLINE T exp_near(T x)
{
    const auto [raised, n, r] = reduce_exp(x, SCALED<T>);
    return scale(mad(r * r, exp_tail(r), r) + T(1), raised);
}
template <class T>
INLINE T m_exp(T x)
{
    const T r = exp_near(within(x, ExpLimits<T>::low, ExpLimits<T>::high));
    return x == x ? r : x;
}
// e^(x + low) 2^shift: low is what x lacks of the exact argument, shift -1 or 0.
template <class T>
INLINE T exp_times(T x, T low, T shift)
{
    x = within(x, ExpLimits<T>::low, ExpLimits<T>::high);
    const auto [raised, n, reduced] = reduce_exp(x, SCALED<T> + shift);
    const T r = reduced + low;
    return scale(mad(r * r, exp_tail(r), r) + T(1), raised);
}
// (e^x - 1) / 4 for x within the limits: finite wherever sinh is.
template <class T>
INLINE T quarter_near(T x)
{
    const auto [raised, n, r] = reduce_exp(x, HALF_SCALED<T> - T(2));
    const T power = power_of_raised(raised);
    return mad(power, mad(r * r, exp_tail(r), r), power - T(0.25));
}
template <class T>
INLINE T quarter_expm1(T x)
{
    return quarter_near(at_least(at_most(x, ExpLimits<T>::quarter_high), ExpLimits<T>::quarter_low));
}
template <class T>
INLINE T m_expm1(T x)
{
    const T r = T(4) * quarter_near(within(x, ExpLimits<T>::quarter_low, ExpLimits<T>::quarter_high));
    return m_abs(x) >= ExpLimits<T>::tiny * ExpLimits<T>::tiny ? r : x;
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
    constexpr T offset = ROUNDER<T> + SCALED<T>;
    const T near = within(x, T(sizeof(T) == 4 ? -152 : -1078), T(sizeof(T) == 4 ? 130 : 1026));
    const T raised = near + offset, r = near - (raised - offset), power = scale(mad(r, exp2_slope(r), T(1)), raised);
    return x == x ? power : x;
}

template <class T>
INLINE T m_sigmoid(T x)
{
    const T e = exp_near(-up_to(m_abs(x), -ExpLimits<T>::low)), r = (x < T(0) ? e : T(1)) / (T(1) + e);
    return x == x ? r : x;
}
// By a root of the exponential, which is no denormal where its product with x is none.
template <class T>
INLINE T m_silu(T x)
{
    const T root = m_exp(m_abs(x) * T(-0.5));
    return (x < T(0) ? x * root * root : x) / (T(1) + m_exp(-m_abs(x)));
}
template <class T>
INLINE T m_tanh(T x)
{
    const T quarter = quarter_near(T(2) * up_to(m_abs(x), T(22)));
    const T r = m_copysign(quarter / (quarter + T(0.5)), x);
    return m_abs(x) >= ExpLimits<T>::tiny ? r : x;
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
