// Elements of every storage type as numbers of the class that is computed in, and back with one rounding (contract N2).
#pragma once
#include "kernels/basic.h"

#define DEVICE __device__ __forceinline__
// Loops whose arrays must be registers; loops that the compiler would only make long.
#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
#define ROLLED   _Pragma("unroll 1")
#else
#define UNROLLED
#define ROLLED
#endif

namespace ng::kernels {
namespace {

using u8 = unsigned char;
using u16 = unsigned short;

// Classes: float and double for floats, i64, u64 and u32 for integers modulo their bits.
template <class T> constexpr bool IS_REAL = false;
template <> constexpr bool IS_REAL<float> = true;
template <> constexpr bool IS_REAL<double> = true;

// One path for all types, chosen by numbers that all threads share: a switch over every type at every load would be most of
// the code.
DEVICE i32 bytes_of(i32 type) { return 1 << (0x001132321032100ULL >> 4 * type & 15); }
DEVICE bool is_signed_integer(i32 type) { return type >= I8 && type <= I64; }
static_assert(BOOL == 0 && I64 == 4 && U64 == 8 && F32 == 9 && E5M2 == 14, "the order of what bytes_of reads");

// A float of fewer bits, by its fields. largest: as the bits of a float. is_finite: the largest code of all is the only NaN.
struct Format {
    i32  exponent, mantissa;
    u32  largest;
    bool is_finite, saturates;

    DEVICE i32 drop() const { return 23 - mantissa; }
    DEVICE i32 bias() const { return (1 << (exponent - 1)) - 1; }
    DEVICE u32 infinity() const { return ((1u << exponent) - 1) << mantissa; }
    DEVICE u32 codes() const { return (1u << (exponent + mantissa)) - 1; }
};
DEVICE Format format_of(i32 type)
{
    if (type == F16) return {5, 10, 0x477fe000, false, false};
    if (type == BF16) return {8, 7, 0x7f7f0000, false, false};
    if (type == E4M3) return {4, 3, 0x43e00000, true, true};
    return {5, 2, 0x47600000, false, true};
}

DEVICE float number_of(const Format& f, u32 code)
{
    const u32 a = code & f.codes(), sign = (code & (f.codes() + 1)) << (31 - f.exponent - f.mantissa);
    if (f.exponent == 8) return __uint_as_float(a << f.drop() | sign);
    // As a float of another bias; the product is exact and makes denormals normal.
    u32 r = __float_as_uint(__uint_as_float(a << f.drop()) * __uint_as_float(u32(254 - f.bias()) << 23));
    if (f.is_finite) r = a == f.codes() ? 0x7fc00000 : r;
    else r = a > f.infinity() ? 0x7fc00000 : a == f.infinity() ? 0x7f800000 : r;
    return __uint_as_float(r | sign);
}

// x rounded to nearest even among the format's numbers, as its code.
DEVICE u32 code_of(const Format& f, float x)
{
    const i32 drop = f.drop();
    const u32 normal = u32(128 - f.bias()) << 23, below = u32(127 - f.bias()) << 23;
    const u32 u = __float_as_uint(x), a = u & 0x7fffffff, sign = u >> 31 << (f.exponent + f.mantissa);
    if (a > 0x7f800000) return (f.is_finite ? f.codes() : f.infinity() | 1u << (f.mantissa - 1)) | sign;
    // Half a unit is added, less one bit where the last kept is even; a carry goes into the exponent.
    const u32 r = (a + ((1u << (drop - 1)) - 1) + ((a >> drop) & 1)) >> drop << drop;
    if (f.exponent == 8) return (r > f.largest ? f.infinity() : r >> drop) | sign;
    if (r > f.largest) return (f.saturates ? (f.largest - below) >> drop : f.infinity()) | sign;
    if (a < normal) {
        // Adding the power of two whose last place is the format's smallest number rounds.
        const float anchor = __uint_as_float(u32(128 - f.bias() + drop) << 23);
        return (__float_as_uint(__uint_as_float(a) + anchor) - __float_as_uint(anchor)) | sign;
    }
    return (r - below) >> drop | sign;
}

// The device converts f16 itself.
DEVICE float narrow_number(i32 type, u32 code)
{
#ifdef __CUDA_ARCH__
    if (type == F16) {
        float x;
        asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(u16(code)));
        return x;
    }
#endif
    return number_of(format_of(type), code);
}
DEVICE u32 narrow_code(i32 type, float x)
{
#ifdef __CUDA_ARCH__
    if (type == F16) {
        u16 code;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
        return code;
    }
#endif
    return code_of(format_of(type), x);
}

// Two halves, the first in the lower half of the word.
DEVICE u32 pair_f16(float low, float high)
{
#ifdef __CUDA_ARCH__
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
#else
    return narrow_code(F16, low) | narrow_code(F16, high) << 16;
#endif
}
DEVICE u32 pair_bf16(float low, float high)
{
#ifdef __CUDA_ARCH__
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
#else
    return narrow_code(BF16, low) | narrow_code(BF16, high) << 16;
#endif
}

// A struct of 64-bit words' bytes, from the first of them.
template <class T, int COUNT>
DEVICE T struct_in(const u64 (&words)[COUNT])
{
    constexpr int WORDS = (sizeof(T) + 7) / 8;
    static_assert(WORDS <= COUNT, "as many as there are");
    union {
        u64 words[WORDS];
        T   as_it_is;
    } r;
    UNROLLED for (int i = 0; i < WORDS; i++) r.words[i] = words[i];
    return r.as_it_is;
}

// One element's bits, and back.
DEVICE u64 load_bits(i32 bytes, const void* p, i64 i)
{
    switch (bytes) {
    case 1: return static_cast<const u8*>(p)[i];
    case 2: return static_cast<const u16*>(p)[i];
    case 4: return static_cast<const u32*>(p)[i];
    default: return static_cast<const u64*>(p)[i];
    }
}
DEVICE void store_bits(i32 bytes, void* p, i64 i, u64 bits)
{
    switch (bytes) {
    case 1: static_cast<u8*>(p)[i] = u8(bits); return;
    case 2: static_cast<u16*>(p)[i] = u16(bits); return;
    case 4: static_cast<u32*>(p)[i] = u32(bits); return;
    default: static_cast<u64*>(p)[i] = bits; return;
    }
}

// The number that an element's bits are. Integers have no float sources.
template <class T>
DEVICE T number_from(i32 type, u64 bits)
{
    if constexpr (IS_REAL<T>) {
        if (type == F32) return T(__uint_as_float(u32(bits)));
        if (type == F64) return T(__longlong_as_double(i64(bits)));
        if (type >= F16) return T(narrow_number(type, u32(bits)));
        if (type == U64) return T(bits);
    }
    if (type == BOOL) return T(bits != 0);
    const i32 shift = is_signed_integer(type) ? 64 - 8 * bytes_of(type) : 0;
    return T(i64(bits << shift) >> shift);
}
template <class T>
DEVICE T load(i32 type, const void* p, i64 i)
{
    return number_from<T>(type, load_bits(bytes_of(type), p, i));
}

// Reals to floats, by way of f32 where the type is narrower; integers to integers, which wrap, and to truth.
template <class T>
DEVICE void store(i32 type, void* p, i64 i, T v)
{
    u64 bits;
    if constexpr (IS_REAL<T>) bits = type == F64 ? u64(__double_as_longlong(double(v))) : type == F32 ? __float_as_uint(float(v)) : narrow_code(type, float(v));
    else bits = type == BOOL ? v != 0 : u64(v);
    store_bits(bytes_of(type), p, i, bits);
}

// What an element of the type would hold of v.
template <class T>
DEVICE T as_stored(i32 type, T v)
{
    if constexpr (IS_REAL<T>)
        if (type >= F16) return T(narrow_number(type, narrow_code(type, float(v))));
    return v;
}

// ---- folds -------------------------------------------------------------------------------------------------------------

// What turns the order of a type's bits into that of i64: u64 alone needs it.
DEVICE i64 order_flip(i32 type) { return type == U64 ? i64(u64(1) << 63) : 0; }

// a before b. Integers wrap; MIN and MAX keep NaN and the first of equals.
template <class T>
DEVICE T folded(i32 how, T a, T b, i64 flip)
{
    if constexpr (IS_REAL<T>) {
        switch (how) {
        case LAST: return b;
        case SUM: return a + b;
        case PROD: return a * b;
        case MIN: return b < a || b != b ? b : a;
        default: return b > a || b != b ? b : a;
        }
    } else {
        switch (how) {
        case LAST: return b;
        case SUM: return T(u64(a) + u64(b));
        case PROD: return T(u64(a) * u64(b));
        case MIN: return (b ^ flip) < (a ^ flip) ? b : a;
        default: return (b ^ flip) > (a ^ flip) ? b : a;
        }
    }
}

// What a fold begins from; on its right it is neutral for all but LAST.
template <class T>
DEVICE T identity_of(i32 how, i32 type)
{
    if (how == PROD) return T(1);
    if (how != MIN && how != MAX) return T(0);
    if constexpr (IS_REAL<T>) {
        const T infinite = T(__uint_as_float(0x7f800000));
        return how == MIN ? infinite : -infinite;
    } else {
        // All bits of the type, less its sign's.
        if (type == BOOL) return how == MIN;
        const bool is_signed = is_signed_integer(type);
        const u64  all = ~u64(0) >> (64 - 8 * bytes_of(type)), most = is_signed ? all >> 1 : all;
        return how == MIN ? T(most) : is_signed ? T(~most) : T(0);
    }
}

// ---- where threads and elements are ------------------------------------------------------------------------------------

DEVICE u64 first_thread() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
DEVICE u64 all_threads() { return u64(gridDim.x) * blockDim.x; }

// By 32 bits where they are enough: divisions of 64 are calls.
DEVICE void divide(u64 index, u64 extent, u64& quotient, u64& digit)
{
    if ((index | extent) >> 32) quotient = index / extent;
    else quotient = u32(index) / u32(extent);
    digit = index - quotient * extent;
}

struct Spot {
    i64 a, b;
};
template <class U>
DEVICE Spot spot_among(const Axes& axes, U index)
{
    Spot s = {0, 0};
    ROLLED for (int k = axes.rank - 1; k > 0; k--) {
        const U size = U(axes.size[k]), next = index / size;
        const i64 digit = i64(index - next * size);
        s.a += digit * axes.a[k], s.b += digit * axes.b[k];
        index = next;
    }
    if (axes.rank > 0) s.a += i64(index) * axes.a[0], s.b += i64(index) * axes.b[0];
    return s;
}
// Of the index-th point.
DEVICE Spot spot_of(const Axes& axes, u64 index)
{
    return axes.is_small ? spot_among<u32>(axes, u32(index)) : spot_among<u64>(axes, index);
}

}  // namespace
}  // namespace ng::kernels
