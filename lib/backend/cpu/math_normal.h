// erf, erfc and the normal distribution: polynomials near 0, elsewhere exp(-x^2) by the scaled erfc.
#pragma once
#include "lib/backend/cpu/math_exp.h"

namespace ng::cpu {
namespace {

// exp(x^2) erfc(x) for 0 <= x <= 28 (f32: 10.2), as (1 + 2x) times it in q = (x - K) / (x + K): Shepherd & Laframboise 1981,
// coefficients interpolated at Chebyshev's points, to 2^-56 and 2^-26.
INLINE double scaled_erfc(double x)
{
    const double up = x + 4, line = 1 + 2 * x, t = 1 / (up * line), q = (x - 4) * line * t;
    const double p = polynomial(q, 1.2329951186255525067, -0.13962111684056289354, 0.015379652102620741303, 0.068097054254737323901,
                                -0.10103906603635213169, 0.093732834996794115895, -0.066330365811529384089, 0.037167515562492865974,
                                -0.016197734059115007082, 0.0050319697558954261144, -0.0007577733414133300446,
                                -0.00019925550755614952137, 0.0001506222439483029924, -0.000024403169244974074952,
                                -0.000011224789135154700706, 5.7178872846321852018e-6, 3.0135049944875394771e-7,
                                -8.351619688696847075e-7, 6.2707271571983108779e-8, 1.1534943745754157287e-7,
                                -7.7154186144178301303e-9, -1.3670989863347382443e-8, -1.8206098680308683344e-9);
    return p * up * t;
}
INLINE float scaled_erfc(float x)
{
    const float up = x + 2, line = 1 + 2 * x, t = 1 / (up * line), q = (x - 2) * line * t;
    const float p = polynomial(q, 1.27697839149, -0.0927639156966, -0.166031324308, 0.16405359361, -0.0542054161116, -0.00804737348071,
                               0.00863850708975, 0.00128016805952, -0.00125095371169, -0.000370280980977, 2.29956845443e-5);
    return p * up * t;
}
// exp(-x^2 f), f a power of two: the square's lost half goes into the exponent's low part.
template <class T>
INLINE T exp_of_square(T x, T f)
{
    const Pair<T> s = exact_product(x, x);
    return exp_times(-f * s.hi, -f * s.lo, T(0));
}
INLINE double erfc_positive(double x)
{
    x = at_most(x, 28.0);
    return exp_of_square(x, 1.0) * scaled_erfc(x);
}

// erf(x) for |x| < 1 (f32: 0.93), by z = x^2
INLINE double erf_near(double x)
{
    const double z = x * x;
    const double p = polynomial(z, 0.12837916709551256654, -0.37612638903183540438, 0.11283791670945006266, -0.02686617064323777036,
                                0.0052239776071164227321, -0.00085483259753896920806, 0.00012055294904839707917,
                                -0.000014924736907419660338, 1.644742470331736241e-6, -1.6208483801871705902e-7,
                                1.3720064546777685604e-8, -7.7958988270021422416e-10);
    return mad(x, p, x);
}
INLINE float erf_near(float x)
{
    const float z = x * x;
    return mad(polynomial(z, 1.28379166e-1, -3.76125336e-1, 1.12819925e-1, -2.67681349e-2, 4.99119423e-3, -5.96761703e-4), x, x);
}
INLINE double m_erf(double x)
{
    const double a = m_abs(x);
    return a < 1 ? erf_near(x) : m_copysign(1 - erfc_positive(a), x);
}
INLINE double m_erfc(double x)
{
    const double a = m_abs(x), r = erfc_positive(a), far = x < 0 ? 2 - r : r;
    return a < 0.5 ? 1 - erf_near(x) : far;
}
// After Juffa 2017: a polynomial near 0, 1 - exp(polynomial) beyond.
INLINE float m_erf(float x)
{
    const float a = m_abs(x), t = up_to(a, 4.0f);
    const float far = mad(t, polynomial(t, -1.28717512e-1, -6.34846687e-1, -1.06777877e-1, 2.42546219e-2, -3.88396438e-3,
                                        3.83197126e-4, -1.72853470e-5), -t);
    return a > 0.927734375f ? m_copysign(1 - exp_near(far), x) : erf_near(x);
}

template <class T>
INLINE T m_normcdf(T x)
{
    constexpr T root = T(0.70710678118654752440);
    // Half of exp(-x^2 / 2) underflows before the limits do.
    const T a = m_abs(x), b = at_most(a, T(sizeof(T) == 4 ? 14.4 : 39));
    const T r = T(0.5) * exp_of_square(b, T(0.5)) * scaled_erfc(b * root);
    return a < T(0.7) ? mad(T(0.5), erf_near(x * root), T(0.5)) : x < T(0) ? r : T(1) - r;
}
INLINE double m_gelu(double x) { return x * m_normcdf(x); }
// max(x, 0) less a times what of the normal distribution lies beyond a = |x|: exp(-a^2 / 2) q g(q) for q = a / (a + 3.25), with g to 2^-22.8 up to 14.4.
constexpr float GELU_OFFSET = 3.25f, GELU[] = {-0x1.a00004p+0f, 0x1.4b5fccp+1f, -0x1.c7bff4p+0f, 0x1.db34c6p-4f, 0x1.7c4554p-2f, 0x1.479bbcp-3f, -0x1.640360p-2f, 0x1.e2d416p-4f};
INLINE float m_gelu(float x)
{
    const float a = up_to(m_abs(x), 15.0f), q = a * (1 / (a + GELU_OFFSET)), half = 0.5f * x;
    const float g = polynomial(q, GELU[0], GELU[1], GELU[2], GELU[3], GELU[4], GELU[5], GELU[6], GELU[7]);
    return mad(q * g, exp_of_square(a, 0.5f), m_copysign(half + m_abs(half), x));
}

}  // namespace
}  // namespace ng::cpu
