// What every generated kernel in CUDA C stands on: its types, and the functions of ops.def as CUDA has them.
//
// No header is included. The compiler is told --fmad=false: what is written as two roundings stays two (contract N1).
// CUDA's own functions keep the bounds of ops.def (its C++ Programming Guide, mathematical functions).
typedef signed char        i8;
typedef short              i16;
typedef int                i32;
typedef long long          i64;
typedef unsigned char      u8;
typedef unsigned short     u16;
typedef unsigned int       u32;
typedef unsigned long long u64;
typedef float              f32;
typedef double             f64;

#define DEVICE static __device__ __forceinline__
#define HAS_F64

DEVICE u32 bits_f32(f32 x) { return __float_as_uint(x); }
DEVICE u64 bits_f64(f64 x) { return (u64)__double_as_longlong(x); }
DEVICE f32 f32_bits(u32 u) { return __uint_as_float(u); }
DEVICE f64 f64_bits(u64 u) { return __longlong_as_double((i64)u); }
DEVICE u32 count_bits_u32(u32 x) { return (u32)__popc(x); }
DEVICE u64 count_bits_u64(u64 x) { return (u64)__popcll(x); }

// The processor's conversions where this is compiled for one.
#ifdef __CUDA_ARCH__
#define HAS_F16
DEVICE f32 f32_of_f16(u16 code)
{
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
    return x;
}
DEVICE u16 f16_of_f32(f32 x)
{
    u16 code;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
    return code;
}
DEVICE f32 round_f16(f32 x) { return f32_of_f16(f16_of_f32(x)); }
#endif

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
ONE(cos,       cosf,       cos)
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
ONE(sin,       sinf,       sin)
ONE(sinh,      sinhf,      sinh)
ONE(sinpi,     sinpif,     sinpi)
ONE(sqrt,      sqrtf,      sqrt)
ONE(tan,       tanf,       tan)
ONE(tanh,      tanhf,      tanh)
ONE(trunc,     truncf,     trunc)
TWO(atan2,     atan2f,     atan2)
TWO(copysign,  copysignf,  copysign)
TWO(fmod,      fmodf,      fmod)
TWO(hypot,     hypotf,     hypot)
TWO(nextafter, nextafterf, nextafter)
TWO(pow,       powf,       pow)
#undef ONE
#undef TWO
DEVICE f32 fma_f32(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
DEVICE f64 fma_f64(f64 x, f64 y, f64 z) { return fma(x, y, z); }
DEVICE f32 ldexp_f32(f32 x, i32 n) { return ldexpf(x, n); }
DEVICE f64 ldexp_f64(f64 x, i32 n) { return ldexp(x, n); }
