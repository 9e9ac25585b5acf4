// What every generated kernel in OpenCL C 1.2 stands on: its types, and the functions of ops.def as OpenCL has them.
//
// Doubles only where the device has them. Quotients and square roots of floats are rounded to nearest by an option of the
// build. How exact the other functions are is the platform's matter: OpenCL allows more than ops.def does.
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define HAS_F64
#endif

typedef char   i8;
typedef short  i16;
typedef int    i32;
typedef long   i64;
typedef uchar  u8;
typedef ushort u16;
typedef uint   u32;
typedef ulong  u64;
typedef float  f32;
#ifdef HAS_F64
typedef double f64;
#endif

#define DEVICE static inline

DEVICE u32 bits_f32(f32 x) { return as_uint(x); }
DEVICE f32 f32_bits(u32 u) { return as_float(u); }
DEVICE u32 count_bits_u32(u32 x) { return popcount(x); }
DEVICE u64 count_bits_u64(u64 x) { return popcount(x); }

#define ONE(T, name) \
    DEVICE T name##_##T(T x) { return name(x); }
#define TWO(T, name) \
    DEVICE T name##_##T(T x, T y) { return name(x, y); }
// normcdf: the half of erfc at a rounded argument, mended by the slope there; sqrt(1/2) comes in two parts.
#define FUNCTIONS(T, ROOT, REST, SLOPE)                                            \
    DEVICE T abs_##T(T x) { return fabs(x); }                                      \
    DEVICE T fma_##T(T x, T y, T z) { return fma(x, y, z); }                       \
    DEVICE T ldexp_##T(T x, i32 n) { return ldexp(x, n); }                         \
    ONE(T, acos) ONE(T, acosh) ONE(T, asin) ONE(T, asinh) ONE(T, atan) ONE(T, atanh) ONE(T, cbrt) ONE(T, ceil) ONE(T, cos) \
    ONE(T, cosh) ONE(T, cospi) ONE(T, erf) ONE(T, erfc) ONE(T, exp) ONE(T, exp2) ONE(T, expm1) ONE(T, floor) ONE(T, log)   \
    ONE(T, log10) ONE(T, log1p) ONE(T, log2) ONE(T, rint) ONE(T, sin) ONE(T, sinh) ONE(T, sinpi) ONE(T, sqrt) ONE(T, tan)  \
    ONE(T, tanh) ONE(T, trunc) TWO(T, atan2) TWO(T, copysign) TWO(T, fmod) TWO(T, hypot) TWO(T, nextafter) TWO(T, pow)     \
    DEVICE T normcdf_##T(T x)                                                      \
    {                                                                              \
        const T a = x < -40 ? -40 : x > 40 ? 40 : x, z = a * -(T)ROOT;             \
        const T rest = fma(a, -(T)ROOT, -z) - a * (T)REST;                         \
        return (erfc(z) - rest * ((T)SLOPE * exp(-z * z))) / 2;                    \
    }                                                                              \
    DEVICE T gelu_##T(T x) { return x * normcdf_##T(x); }
FUNCTIONS(f32, 0.70710677f, 1.2101617e-8f, 1.1283792f)
#ifdef HAS_F64
DEVICE u64 bits_f64(f64 x) { return as_ulong(x); }
DEVICE f64 f64_bits(u64 u) { return as_double(u); }
FUNCTIONS(f64, 0.70710678118654757, -4.833646656726457e-17, 1.1283791670955126)
#endif
#undef ONE
#undef TWO
#undef FUNCTIONS
