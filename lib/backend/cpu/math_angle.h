// Sines, tangents and their inverses: arguments are cut to an eighth of a turn, then fdlibm's and Cephes' polynomials.
#pragma once
#include "lib/backend/cpu/math_core.h"

namespace ng::cpu {
namespace {

// Beyond it a multiple of pi / 2 has too many bits: such elements are done by the C library.
constexpr double ANGLE_LIMIT = 0x1p20;

struct Angle { double hi, lo; uint64_t quadrant; };

// Cody & Waite 1980 with pi / 2 in four parts: multiples of the first three, of 33 bits each, are exact.
INLINE Angle reduce_angle(double x)
{
    const double       rounded = x * 0.63661977236758134308 + ROUNDER<double>, n = rounded - ROUNDER<double>;
    const double       a = x - n * 0x1.921fb54400000p+0;
    const Pair<double> b = exact_sum(a, -(n * 0x1.0b4611a600000p-34));
    const Pair<double> c = exact_sum(b.hi, -(n * 0x1.3198a2e000000p-69));
    const double       rest = (b.lo + c.lo) - n * 0x1.b839a252049c1p-104;
    const Pair<double> r = ordered_sum(c.hi, rest);
    return {r.hi, r.lo, bits_of(rounded)};
}
// sin(x + low) for |x| <= pi / 4
INLINE double sin_near(double x, double low)
{
    const double z = x * x, v = z * x;
    const double r = polynomial(z, 8.33333333332248946124e-03, -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                -2.50507602534068634195e-08, 1.58969099521155010221e-10);
    return x - ((z * (0.5 * low - v * r) - low) - v * -1.66666666666666324348e-01);
}
INLINE double cos_near(double x, double low)
{
    const double z = x * x, half = 0.5 * z, w = 1 - half;
    const double r = z * polynomial(z, 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                                    -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11);
    return w + (((1 - w) - half) + (z * r - x * low));
}
INLINE double with_sign(double x, uint64_t negative) { return from_bits(bits_of(x) ^ (negative << 63)); }
INLINE double sin_of(Angle a)
{
    const double r = (a.quadrant & 1) ? cos_near(a.hi, a.lo) : sin_near(a.hi, a.lo);
    return with_sign(r, (a.quadrant >> 1) & 1);
}
INLINE double cos_of(Angle a)
{
    a.quadrant++;
    return sin_of(a);
}

INLINE double m_sin(double x) { return x == 0 ? x : sin_of(reduce_angle(x)); }
INLINE double m_cos(double x) { return cos_of(reduce_angle(x)); }
INLINE double m_tan(double x)
{
    const Angle  a = reduce_angle(x);
    const double s = sin_near(a.hi, a.lo), c = cos_near(a.hi, a.lo);
    const bool   odd = a.quadrant & 1;
    const double r = (odd ? -c : s) / (odd ? s : c);
    return x == 0 ? x : r;
}
// pi x, x brought to within a turn first: exact for whole and half x
INLINE Angle reduce_turns(double x)
{
    x = x - 2 * m_rint(0.5 * x);
    const double       rounded = 2 * x + ROUNDER<double>, r = x - 0.5 * (rounded - ROUNDER<double>);
    const Pair<double> p = exact_product(r, 3.14159265358979311600);
    const Pair<double> s = ordered_sum(p.hi, p.lo + r * 1.22464679914735317636e-16);
    return {s.hi, s.lo, bits_of(rounded)};
}
INLINE double m_sinpi(double x)
{
    const double r = sin_of(reduce_turns(x));
    // Whole numbers: a zero with the sign of x.
    return r == 0 ? m_copysign(0.0, x) : r;
}
INLINE double m_cospi(double x)
{
    const double r = cos_of(reduce_turns(x));
    return r == 0 ? 0.0 : r;
}

// atan(|x|): Cephes (Moshier 1989), around 0, 1 and infinity
INLINE double atan_positive(double x)
{
    const bool   far = x > 2.41421356237309504880, middle = x > 0.66;
    const double top = far ? -1.0 : middle ? x - 1 : x, bottom = far ? x : middle ? x + 1 : 1.0;
    const double t = top / bottom, z = t * t;
    const double p = polynomial(z, -6.485021904942025371773e1, -1.228866684490136173410e2, -7.500855792314704667340e1,
                                -1.615753718733365076637e1, -8.750608600031904122785e-1);
    const double q = polynomial(z, 1.945506571482613964425e2, 4.853903996359136964868e2, 4.328810604912902668951e2,
                                1.650270098316988542046e2, 2.485846490142306297962e1, 1.0);
    const double base = far ? 1.57079632679489655800 : middle ? 7.85398163397448278999e-01 : 0;
    const double rest = far ? 6.12323399573676603587e-17 : middle ? 3.06161699786838301793e-17 : 0;
    return base + (mad(t * z, p / q, t) + rest);
}
INLINE double m_atan(double x) { return m_copysign(atan_positive(m_abs(x)), x); }

// The angle of the point (y, x): x is the ordinate, as in C.
INLINE double m_atan2(double x, double y)
{
    const double ax = m_abs(x), ay = m_abs(y), lesser = ax < ay ? ax : ay, greater = ax < ay ? ay : ax;
    double       t = lesser / greater;
    t = lesser == greater ? 1.0 : t;   // both infinite
    t = greater == 0 ? 0.0 : t;
    double r = atan_positive(t);
    r = ax > ay ? 1.57079632679489655800 - (r - 6.12323399573676603587e-17) : r;
    r = m_signbit(y) ? 3.14159265358979311600 - (r - 1.22464679914735317636e-16) : r;
    r = m_copysign(r, x);
    return x != x || y != y ? x + y : r;
}

// (asin(x) - x) / x of z = x^2 <= 1/4
INLINE double asin_tail(double z)
{
    const double p = z * polynomial(z, 1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01,
                                    -4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05);
    const double q = polynomial(z, 1.0, -2.40339491173441421878, 2.02094576023350569471, -6.88283971605453293030e-01,
                                7.70381505559019352791e-02);
    return p / q;
}
// asin and acos of |x| > 1/2 are those of s = sqrt((1 - |x|) / 2), which has a head of 32 bits and a tail.
struct HalfAngle { double z, s, head, tail; };
INLINE HalfAngle half_angle(double a)
{
    const double z = (1 - a) * 0.5, s = m_sqrt(z), head = from_bits(bits_of(s) & 0xffffffff00000000);
    return {z, s, head, z == 0 ? 0.0 : (z - head * head) / (s + head)};
}
INLINE double m_asin(double x)
{
    const double    a = m_abs(x);
    const bool      near = a < 0.5;
    const HalfAngle h = half_angle(a);
    const double    t = asin_tail(near ? a * a : h.z);
    const double    low = mad(a, t, a);
    // pi / 2 - 2 (s + s t), around pi / 4
    const double p = 2 * h.s * t - (6.12323399573676603587e-17 - 2 * h.tail), q = 7.85398163397448278999e-01 - 2 * h.head;
    return m_copysign(near ? low : 7.85398163397448278999e-01 - (p - q), x);
}
INLINE double m_acos(double x)
{
    const double    a = m_abs(x);
    const bool      near = a < 0.5;
    const HalfAngle h = half_angle(a);
    const double    t = asin_tail(near ? a * a : h.z);
    const double    low = 1.57079632679489655800 - (x - (6.12323399573676603587e-17 - x * t));
    const double    high = 2 * (h.head + (t * h.s + h.tail));
    const double    back = 3.14159265358979311600 - 2 * (h.s + (t * h.s - 6.12323399573676603587e-17));
    return near ? low : x < 0 ? back : high;
}

}  // namespace
}  // namespace ng::cpu
