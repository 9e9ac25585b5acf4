// What one number becomes in another type: the rounding, saturation and encoding of every dtype (contract N2).
#pragma once
#include "lib/backend/cpu/math_core.h"

namespace ng::cpu {
namespace {

// A float of fewer bits, by its fields. finite: no infinity, the largest code of all is NaN (e4m3).
struct Format {
    int  exponent, mantissa;
    bool is_finite, saturates;
    constexpr int    bias() const { return (1 << (exponent - 1)) - 1; }
    constexpr double largest() const
    {
        const double fraction = is_finite ? 2.0 - 2.0 / (1 << mantissa) : 2.0 - 1.0 / (1 << mantissa);
        double       power = 1;
        for (int i = 0; i < bias() + (is_finite ? 1 : 0); i++) power *= 2;
        return power * fraction;
    }
};
constexpr Format F16 = {5, 10, false, false}, BF16 = {8, 7, false, false}, E4M3 = {4, 3, true, true}, E5M2 = {5, 2, false, true};
static_assert(F16.largest() == 65504 && E4M3.largest() == 448 && E5M2.largest() == 57344);

// x rounded to nearest even among the format's numbers, still a float.
template <Format F>
INLINE float round_to(float x)
{
    constexpr int drop = 23 - F.mantissa;
    const uint32_t u = bits_of(x), a = u & 0x7fffffff, sign = u & 0x80000000;
    // Normal numbers: half a unit is added, less one bit where the last kept is even. A carry goes into the exponent.
    uint32_t r = (a + ((1u << (drop - 1)) - 1) + ((a >> drop) & 1)) & ~((1u << drop) - 1);
    if constexpr (F.exponent < 8) {
        // Denormal ones: adding the power of two whose last place is the format's smallest number rounds.
        constexpr uint32_t normal = uint32_t(127 + 1 - F.bias()) << 23;          // 2^(1 - bias)
        constexpr float    anchor = __builtin_bit_cast(float, uint32_t(127 + 1 - F.bias() + drop) << 23);
        const uint32_t     small = bits_of((from_bits(a) + anchor) - anchor);
        r = a < normal ? small : r;
    }
    constexpr uint32_t largest = __builtin_bit_cast(uint32_t, float(F.largest()));
    r = r > largest ? (F.saturates ? largest : 0x7f800000) : r;
    r = a > 0x7f800000 ? 0x7fc00000 : r;
    return from_bits(r | sign);
}
// The code of a number that the format has.
template <Format F>
INLINE uint32_t encode(float x)
{
    constexpr int drop = 23 - F.mantissa;
    const uint32_t u = bits_of(x), a = u & 0x7fffffff;
    uint32_t       r = 0;
    if constexpr (F.exponent == 8) {
        r = a >> drop;
    } else {
        constexpr uint32_t normal = uint32_t(127 + 1 - F.bias()) << 23;
        constexpr float    anchor = __builtin_bit_cast(float, uint32_t(127 + 1 - F.bias() + drop) << 23);
        r = a < normal ? bits_of(from_bits(a) + anchor) - bits_of(anchor) : (a - (uint32_t(127 - F.bias()) << 23)) >> drop;
        constexpr uint32_t infinity = ((1u << F.exponent) - 1) << F.mantissa;
        if constexpr (!F.is_finite) r = a == 0x7f800000 ? infinity : r;
    }
    constexpr uint32_t nan = ((1u << F.exponent) - 1) << F.mantissa | (F.is_finite ? (1u << F.mantissa) - 1 : 1u << (F.mantissa - 1));
    const uint32_t payload = F.is_finite ? 0 : (a >> drop) & ((1u << F.mantissa) - 1);
    r = a > 0x7f800000 ? nan | payload : r;
    return r | (u >> 31) << (F.exponent + F.mantissa);
}
template <Format F>
INLINE float decode(uint32_t code)
{
    constexpr int      drop = 23 - F.mantissa;
    constexpr uint32_t codes = (1u << (F.exponent + F.mantissa)) - 1;
    const uint32_t     a = code & codes, sign = (code & (codes + 1)) << (31 - F.exponent - F.mantissa);
    if constexpr (F.exponent == 8) {
        return from_bits(a << drop | sign);
    } else {
        // As an f32 of another bias; the product is exact and makes denormals normal.
        constexpr float  up = __builtin_bit_cast(float, uint32_t(127 + 127 - F.bias()) << 23);
        constexpr uint32_t special = F.is_finite ? codes : ((1u << F.exponent) - 1) << F.mantissa;
        uint32_t         r = bits_of(from_bits(a << drop) * up);
        if constexpr (F.is_finite) r = a == special ? 0x7fc00000 : r;
        else r = a >= special ? a << drop | (a > special ? 0x7fc00000 : 0x7f800000) : r;   // as F16C: quiet, with its payload
        return from_bits(r | sign);
    }
}

// x cut to a float whose last bit is set where anything was cut off: rounding that to fewer bits is rounding x (Boldo & Melquiond 2008).
INLINE float to_odd(double x)
{
    const float  f = float(x);
    const double back = double(f);
    // Steps back to the side of zero where the conversion went past x; infinite ones to the largest float.
    const uint32_t u = bits_of(f), a = u & 0x7fffffff;
    const uint32_t cut = m_abs(back) > m_abs(x) ? a - 1 : a;
    const uint32_t odd = back != x && a <= 0x7f800000 ? cut | 1 : a;
    return from_bits((x != x ? a : odd) | (u & 0x80000000));
}
// An integer as a double with the same property, for roundings to 24 bits and fewer.
template <class T>
INLINE double to_sticky(T x)
{
    if constexpr (sizeof(T) < 8) {
        return double(x);
    } else {
        // Bits below 2^12 matter only as one bit where there are 54 and more of them.
        const uint64_t u = uint64_t(x);
        const bool     big = std::is_signed_v<T> ? u + (uint64_t(1) << 53) >= uint64_t(1) << 54 : u >= uint64_t(1) << 53;
        const uint64_t cut = (u & ~uint64_t(0xfff)) | ((u & 0xfff) != 0 ? uint64_t(1) << 12 : 0);
        return double(T(big ? cut : u));
    }
}

template <class T> struct Limits;
template <> struct Limits<int8_t> { static constexpr double low = -128, high = 127; };
template <> struct Limits<int16_t> { static constexpr double low = -32768, high = 32767; };
template <> struct Limits<int32_t> { static constexpr double low = -0x1p31, high = 0x1p31 - 1; };
template <> struct Limits<int64_t> { static constexpr double low = -0x1p63, high = 0x1p63; };
template <> struct Limits<uint8_t> { static constexpr double low = 0, high = 255; };
template <> struct Limits<uint16_t> { static constexpr double low = 0, high = 65535; };
template <> struct Limits<uint32_t> { static constexpr double low = 0, high = 0x1p32 - 1; };
template <> struct Limits<uint64_t> { static constexpr double low = 0, high = 0x1p64; };

// Rounds half to even, saturates, NaN is 0.
template <class To, class From>
INLINE To to_integer(From x)
{
    using L = Limits<To>;
    constexpr bool is_exact = double(From(L::high)) == L::high && L::high < 0x1p63;  // the largest To is a From
    constexpr From low = From(L::low), high = From(L::high);
    const From     r = m_rint(x);
    const From     floor = r > low ? r : low;   // NaN: low
    const bool     above = is_exact ? floor > high : floor >= high;
    constexpr To   most = To(~To(0)) < To(0) ? To(std::make_unsigned_t<To>(~std::make_unsigned_t<To>(0)) >> 1) : To(~To(0));
    using Step = std::conditional_t<sizeof(To) < 4, int32_t, To>;
    const To v = above ? most : To(Step(above ? From(0) : floor));
    return x != x ? To(0) : v;
}

}  // namespace
}  // namespace ng::cpu
