// The functions of ops.def as CUDA has them, and what divisions, roots and waves are without their rare cases.
//
// The compiler is told --fmad=false: what is written as two roundings stays two (contract N1). CUDA's own functions keep the bounds of
// ops.def (its C++ Programming Guide, mathematical functions). This stands behind prelude.cuh.
// The greater and the lesser as ops.def has them for folds, which do not tell one zero from the other.
#if __CUDA_ARCH__ >= 800
DEVICE f32 greatest_f32(f32 x, f32 y)
{
    f32 r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}
DEVICE f32 least_f32(f32 x, f32 y)
{
    f32 r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}
#else
DEVICE f32 greatest_f32(f32 x, f32 y) { return x > y || x != x ? x : y; }
DEVICE f32 least_f32(f32 x, f32 y) { return x < y || x != x ? x : y; }
#endif

// 2^x and 1 / x by one instruction each: within 2 and 1 units in the last place where x and the result are normal; what is
// denormal is zero. And 1 / sqrt(x), within 2.
#ifdef __CUDA_ARCH__
DEVICE f32 near_exp2(f32 x)
{
    f32 r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DEVICE f32 near_reciprocal(f32 x)
{
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DEVICE f32 near_rsqrt(f32 x)
{
    f32 r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
#else
DEVICE f32 near_exp2(f32 x) { return exp2f(x); }
DEVICE f32 near_reciprocal(f32 x) { return 1 / x; }
DEVICE f32 near_rsqrt(f32 x) { return 1 / sqrtf(x); }
#endif

// Quotients and roots rounded once without a rare case, which compilers make a call of that nothing overlaps: a number next
// to the result, and by what is then left of x the result itself (Markstein 1990). Where something on the way may leave f32
// it is not tame, and all that came of it is to be computed again in the language's words. Zero by a tame number is tame.
DEVICE bool is_zero_or_from(f32 x, u32 least) { return bits_f32(x) * 2 - 1 >= least * 2 - 1; }      // |x|; least: a code
DEVICE f32 with_sign(f32 x, u32 of) { return f32_bits(bits_f32(x) | (of & 0x80000000)); }
DEVICE f32 quotient_of(f32 x, f32 y, bool& is_tame)
{
    const f32 first = near_reciprocal(y), near = fmaf(fmaf(-first, y, 1.0f), first, first);
    const f32 q = x * near, r = fmaf(fmaf(-q, y, x), near, q);
    is_tame &= is_zero_or_from(x, 0x21800000);                              // 2^-60, so that rests are no denormals
    is_tame &= fabsf(y) <= 0x1p60f;
    is_tame &= fabsf(r) <= 0x1.fffffep127f;
    return with_sign(r, bits_f32(q));
}
DEVICE f32 root_of(f32 x, bool& is_tame)
{
    const f32 near = near_rsqrt(fmaxf(x, 0x1p-100f)), r = x * near;
    is_tame &= is_zero_or_from(x, 0x0d800000);                              // 2^-100
    is_tame &= bits_f32(x) < 0x7f800000;
    return fmaf(fmaf(-r, r, x), 0.5f * near, r);
}
// x / y of 0 <= x <= y, 1 <= y <= 2, not always rounded to the nearest.
DEVICE f32 share_of(f32 x, f32 y)
{
    const f32 near = near_reciprocal(y), q = x * near;
    return fmaf(fmaf(-q, y, x), near, q);
}

// What many numbers are divided by: 1 / y in two parts, so that x times it is next to x / y at worst.
struct Inverse {
    f32 y, near, rest;
    f32 most;                            // |x| is tame from 2^-100 to this; 0: only zero is
};
DEVICE Inverse inverse_of(f32 y)
{
    const u32 code = bits_f32(y) & 0x7fffffff;
    const bool is_tame = code > 0x35800000 && code < 0x49800000;            // |y| within 2^-20 and 2^20
    Inverse r;
    r.y = y;
    bool is_rounded = true;                                                 // of such y it is 1 / y
    r.near = quotient_of(1.0f, y, is_rounded);
    r.rest = fmaf(-r.near, y, 1.0f) * r.near;
    r.most = is_tame ? 0x1p100f : -1;
    return r;
}
DEVICE f32 quotient_of(f32 x, Inverse d, bool& is_tame)
{
    const f32 q = fmaf(x, d.near, x * d.rest);
    is_tame &= is_zero_or_from(x, 0x0d800000);
    is_tame &= fabsf(x) <= d.most;
    return with_sign(fmaf(fmaf(-q, d.y, x), d.near, q), bits_f32(x) ^ bits_f32(d.y));
}
// The same of x >= 0 for f16, in which all that is too small to be tame is zero.
DEVICE f32 half_quotient_of(f32 x, Inverse d, bool& is_tame)
{
    const f32 q = fmaf(x, d.near, x * d.rest);
    is_tame &= x < d.most;
    return fmaf(fmaf(-q, d.y, x), d.near, q);
}

// sin(x + quarters * pi / 2) of |x| < FAR_ANGLE or NaN: the nearest quarter of a turn is taken off x by three parts of pi / 2 (Cody & Waite 1980), its number in the
// last bits of a sum; within 1.6 units in the last place. Beyond, the
// language's words, by a call, as a copy of them for each lane takes compilers most of their time.
#define FAR_ANGLE 105615.0f
DEVICE f32 wave_of(f32 x, u32 quarters)
{
    const f32 turned = fmaf(x, 0.636619747f, 12582912.0f), whole = turned - 12582912.0f;
    const f32 rest = fmaf(whole, -5.390303e-15f, fmaf(whole, -7.54978942e-08f, fmaf(whole, -1.57079625f, x)));
    const f32 square = rest * rest, cube = fmaf(rest, square, 0.0f);        // a zero that is added keeps a zero's sign below
    f32 s = -0x1.9a82a6p-13f, c = 0x1.9758p-16f;
    s = fmaf(s, square, 0x1.110bc8p-7f), c = fmaf(c, square, -0x1.6c0fdap-10f);
    s = fmaf(s, square, -0x1.55555p-3f), c = fmaf(c, square, 0x1.555576p-5f);
    s = fmaf(s, cube, rest), c = fmaf(fmaf(c, square, -0x1.fffffep-2f), square, 1.0f);
    const u32 number = bits_f32(turned) + quarters;
    return f32_bits(bits_f32(number & 1 ? c : s) ^ (number & 2) << 30);
}
DEVICE f32 wave_of(f32 x, u32 quarters, bool& is_tame)
{
    is_tame &= !(fabsf(x) >= FAR_ANGLE);
    return wave_of(x, quarters);
}
static __device__ __noinline__ f32 far_sin(f32 x) { return sinf(x); }
static __device__ __noinline__ f32 far_cos(f32 x) { return cosf(x); }
DEVICE f32 sin_f32(f32 x) { return fabsf(x) >= FAR_ANGLE ? far_sin(x) : wave_of(x, 0); }
DEVICE f32 cos_f32(f32 x) { return fabsf(x) >= FAR_ANGLE ? far_cos(x) : wave_of(x, 1); }
DEVICE f64 sin_f64(f64 x) { return sin(x); }
DEVICE f64 cos_f64(f64 x) { return cos(x); }

#define ONE(name, narrow, wide)                         \
    DEVICE f32 name##_f32(f32 x) { return narrow(x); } \
    DEVICE f64 name##_f64(f64 x) { return wide(x); }
#define TWO(name, narrow, wide)                                   \
    DEVICE f32 name##_f32(f32 x, f32 y) { return narrow(x, y); } \
    DEVICE f64 name##_f64(f64 x, f64 y) { return wide(x, y); }
ONE(abs,       fabsf,      fabs)
ONE(acos,      acosf,      acos)
ONE(acosh,     acoshf,     acosh)
ONE(asin,      asinf,      asin)
ONE(asinh,     asinhf,     asinh)
ONE(atan,      atanf,      atan)
ONE(atanh,     atanhf,     atanh)
ONE(cbrt,      cbrtf,      cbrt)
ONE(ceil,      ceilf,      ceil)
ONE(cosh,      coshf,      cosh)
ONE(cospi,     cospif,     cospi)
ONE(erf,       erff,       erf)
ONE(erfc,      erfcf,      erfc)
ONE(exp,       expf,       exp)
ONE(exp2,      exp2f,      exp2)
ONE(expm1,     expm1f,     expm1)
ONE(floor,     floorf,     floor)
ONE(log,       logf,       log)
ONE(log10,     log10f,     log10)
ONE(log1p,     log1pf,     log1p)
ONE(log2,      log2f,      log2)
ONE(normcdf,   normcdff,   normcdf)
ONE(rint,      rintf,      rint)
ONE(sinh,      sinhf,      sinh)
ONE(sinpi,     sinpif,     sinpi)
ONE(sqrt,      sqrtf,      sqrt)
ONE(tan,       tanf,       tan)
ONE(trunc,     truncf,     trunc)
TWO(atan2,     atan2f,     atan2)
TWO(copysign,  copysignf,  copysign)
TWO(fmod,      fmodf,      fmod)
TWO(hypot,     hypotf,     hypot)
TWO(nextafter, nextafterf, nextafter)
TWO(pow,       powf,       pow)
#undef ONE
#undef TWO
// Near zero x (1 + x^2 p(x^2)), p a polynomial of degree 3 that leaves 1.5 units of 2^-24 of the result at most up to 0.6;
// beyond, 1 - 2 / (exp(2 x) + 1). Both are computed: neighbours seldom go one way.
DEVICE f32 tanh_f32(f32 x)
{
    const f32 a = fabsf(x), square = x * x;
    const f32 far = fmaf(-2.0f, near_reciprocal(near_exp2(a * 2.88539008f) + 1.0f), 1.0f);
    f32 p = 0x1.ff983ep-7f;
    p = fmaf(p, square, -0x1.abb818p-5f);
    p = fmaf(p, square, 0x1.10a712p-3f);
    p = fmaf(p, square, -0x1.555368p-2f);
    return a < 0.6f ? x * fmaf(p, square, 1.0f) : copysignf(far, x);
}
DEVICE f64 tanh_f64(f64 x) { return tanh(x); }

// max(x, 0) - a times what of the standard normal distribution lies beyond a = |x|. That is exp(-a^2 / 2) q g(q) for
// q = a / (a + 3.25), g a polynomial of degree 7 that is 2^-22.6 off at most up to 14.3; beyond that all is 0. It also makes up for
// the exponent's factor being an f32. The square's rest goes into the exponent, whose whole part comes in two halves, so that
// denormal numbers are rounded once. Within 12 units in the last place.
DEVICE f32 gelu_f32(f32 x)
{
    const f32 a = least_f32(fabsf(x), 15.0f), r = near_reciprocal(a + 3.25f), q = a * r;
    f32 g = 0x1.dfc068p-4f;
    g = fmaf(g, q, -0x1.618f32p-2f);
    g = fmaf(g, q, 0x1.4162d8p-3f);
    g = fmaf(g, q, 0x1.7e4662p-2f);
    g = fmaf(g, q, 0x1.d87118p-4f);
    g = fmaf(g, q, -0x1.c7b81ap+0f);
    g = fmaf(g, q, 0x1.4b5f7ep+1f);
    g = fmaf(g, q, -1.625f);
    const f32 square = a * a, rest = fmaf(a, a, -square);
    const f32 big = fmaf(square, -0.721347511f, 25165824.0f + 254.0f), whole = big - (25165824.0f + 254.0f);
    const f32 part = fmaf(rest, -0.721347511f, fmaf(square, -0.721347511f, -whole)), scale = f32_bits(bits_f32(big) << 23);
    const f32 half = 0.5f * x;
    return fmaf((q * g) * near_exp2(part) * scale, scale, half + fabsf(half));
}
DEVICE f64 gelu_f64(f64 x) { return x * normcdf(x); }

#define HAS_LOGISTIC
DEVICE f32 sigmoid_f32(f32 x)
{
    const f32 e = expf(-fabsf(x));
    return share_of(x < 0 ? e : 1.0f, 1.0f + e);
}
// By a root of the exponential, which is no denormal where its product with x is none.
DEVICE f32 silu_f32(f32 x)
{
    const f32 root = expf(fabsf(x) * -0.5f);
    return (x < 0 ? x * root * root : x) * near_reciprocal(1.0f + root * root);
}
DEVICE f32 fma_f32(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
DEVICE f64 fma_f64(f64 x, f64 y, f64 z) { return fma(x, y, z); }
DEVICE f32 ldexp_f32(f32 x, i32 n) { return ldexpf(x, n); }
DEVICE f64 ldexp_f64(f64 x, i32 n) { return ldexp(x, n); }
