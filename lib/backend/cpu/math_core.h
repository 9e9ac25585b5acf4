// What every vectorised function is made of: bits of numbers, one multiply-add, roundings, sums and products of pairs.
#pragma once
#include <cstdint>
#include <type_traits>

// All of it is compiled once for each instruction set, so nothing here may become a symbol that the linker could merge.
#define INLINE __attribute__((always_inline, unused)) inline
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"   // a loop that stays scalar is right as well
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety) interleave_count(1)")
#else
#define ELEMENTWISE _Pragma("GCC ivdep")
#endif

namespace ng::cpu {
namespace {

INLINE uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
INLINE uint64_t bits_of(double x) { return __builtin_bit_cast(uint64_t, x); }
INLINE float    from_bits(uint32_t u) { return __builtin_bit_cast(float, u); }
INLINE double   from_bits(uint64_t u) { return __builtin_bit_cast(double, u); }

template <class T> constexpr bool IS_FLOAT = std::is_floating_point_v<T>;
template <class T> constexpr bool IS_INTEGER = std::is_integral_v<T>;
template <class T> constexpr T    INFINITE = T(__builtin_inf());
template <class T> constexpr T    NOT_A_NUMBER = T(__builtin_nan(""));

// Adding and taking away 1.5 * 2^mantissa rounds to a whole number, whose low bits are then those of the sum.
template <class T> constexpr T ROUNDER = sizeof(T) == 4 ? T(12582912.0) : T(6755399441055744.0);
// 2^n, where n is the whole number that was added to ROUNDER; n within the exponents of normal numbers.
INLINE float  power_of_two(float rounded) { return from_bits((bits_of(rounded) + 127) << 23); }
INLINE double power_of_two(double rounded) { return from_bits((bits_of(rounded) + 1023) << 52); }

// x * y + z, rounded once where the instruction set can: for polynomials, whose bounds hold either way.
#ifdef __FMA__
INLINE float  mad(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
INLINE double mad(double x, double y, double z) { return __builtin_fma(x, y, z); }
#else
INLINE float  mad(float x, float y, float z) { return x * y + z; }
INLINE double mad(double x, double y, double z) { return x * y + z; }
#endif
// a + x b + x^2 c ..
template <class T, class A>
INLINE T polynomial(T, A a) { return T(a); }
template <class T, class A, class... Rest>
INLINE T polynomial(T x, A a, Rest... rest) { return mad(polynomial(x, rest...), x, T(a)); }

INLINE float  m_abs(float x) { return __builtin_fabsf(x); }
INLINE double m_abs(double x) { return __builtin_fabs(x); }
INLINE float  m_sqrt(float x) { return __builtin_sqrtf(x); }
INLINE double m_sqrt(double x) { return __builtin_sqrt(x); }
INLINE float  m_floor(float x) { return __builtin_floorf(x); }
INLINE double m_floor(double x) { return __builtin_floor(x); }
INLINE float  m_ceil(float x) { return __builtin_ceilf(x); }
INLINE double m_ceil(double x) { return __builtin_ceil(x); }
INLINE float  m_trunc(float x) { return __builtin_truncf(x); }
INLINE double m_trunc(double x) { return __builtin_trunc(x); }
INLINE float  m_rint(float x) { return __builtin_rintf(x); }
INLINE double m_rint(double x) { return __builtin_rint(x); }
INLINE float  m_copysign(float x, float y) { return __builtin_copysignf(x, y); }
INLINE double m_copysign(double x, double y) { return __builtin_copysign(x, y); }
INLINE bool   m_signbit(float x) { return int32_t(bits_of(x)) < 0; }
INLINE bool   m_signbit(double x) { return int64_t(bits_of(x)) < 0; }
// Rounded once on every instruction set: a call of the C library where there is no instruction.
INLINE float  m_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
INLINE double m_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

// NaN stays: it is neither greater nor less.
template <class T> INLINE T at_most(T x, T limit) { return x > limit ? limit : x; }
template <class T> INLINE T at_least(T x, T limit) { return x < limit ? limit : x; }

template <class T>
INLINE T m_nextafter(T x, T y)
{
    using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const U u = bits_of(x);
    T       r = from_bits((x < y) == (x > T(0)) ? U(u + 1) : U(u - 1));
    r = x == T(0) ? m_copysign(from_bits(U(1)), y) : r;
    r = x == y ? y : r;
    return x != x || y != y ? x + y : r;
}

// A number as the sum of two: lo is below half the last place of hi.
template <class T> struct Pair { T hi, lo; };

// Knuth 1969: exact for any two.
template <class T>
INLINE Pair<T> exact_sum(T a, T b)
{
    const T s = a + b, t = s - a;
    return {s, (a - (s - t)) + (b - t)};
}
// Dekker 1971: exact where |a| >= |b|.
template <class T>
INLINE Pair<T> ordered_sum(T a, T b)
{
    const T s = a + b;
    return {s, b - (s - a)};
}
template <class T>
INLINE Pair<T> exact_product(T a, T b)
{
    const T p = a * b;
#ifdef __FMA__
    return {p, mad(a, b, -p)};
#else
    constexpr T split = sizeof(T) == 4 ? T(4097) : T(134217729);  // 2^12 + 1, 2^27 + 1
    const T     a0 = a * split, a1 = a0 - (a0 - a), a2 = a - a1;
    const T     b0 = b * split, b1 = b0 - (b0 - b), b2 = b - b1;
    return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
#endif
}
template <class T>
INLINE Pair<T> product(Pair<T> a, Pair<T> b)
{
    const Pair<T> p = exact_product(a.hi, b.hi);
    return {p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi)};
}

}  // namespace
}  // namespace ng::cpu
