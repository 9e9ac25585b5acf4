// Operands in memory to what panels hold; part of gemm_isa.cc, which is built once for each instruction set.
#pragma once
#include "lib/backend/cpu/gemm_table.h"
#include "lib/backend/cpu/number_codes.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace ng::cpu {
namespace {

// How the C++ type of each dtype's memory becomes a number; narrow floats have types of their own here.
struct Half { uint16_t bits; };
struct Brain { uint16_t bits; };
struct E4m3 { uint8_t bits; };
struct E5m2 { uint8_t bits; };
struct Flag { uint8_t bits; };

inline float number(Half h) { return decode<F16>(h.bits); }
inline float number(Brain b) { return decode<BF16>(b.bits); }
inline float number(E4m3 e) { return decode<E4M3>(e.bits); }
inline float number(E5m2 e) { return decode<E5M2>(e.bits); }
template <class T>
inline T number(T v) { return v; }
inline uint32_t number(Flag f) { return f.bits != 0; }

template <class To, class From>
void widen(void* out, const void* in, int64_t count)
{
    To* __restrict to = static_cast<To*>(out);
    const From* __restrict from = static_cast<const From*>(in);
    int64_t i = 0;
#if defined(__F16C__)
    if constexpr (__is_same(From, Half) && __is_same(To, float))
        for (; i + 8 <= count; i += 8)
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
    for (; i < count; i++) to[i] = To(number(from[i]));
}

template <Dtype T, class C> struct Memory { using Type = C; };
template <class C> struct Memory<Dtype::bool_, C> { using Type = Flag; };
template <class C> struct Memory<Dtype::f16, C> { using Type = Half; };
template <class C> struct Memory<Dtype::bf16, C> { using Type = Brain; };
template <class C> struct Memory<Dtype::e4m3, C> { using Type = E4m3; };
template <class C> struct Memory<Dtype::e5m2, C> { using Type = E5m2; };

template <class To, Dtype T, class C, Kind KIND>
constexpr PanelWiden widen_of()
{
    constexpr bool TO_FLOAT = __is_same(To, float) || __is_same(To, double);
    constexpr bool TO_PAIRS = __is_same(To, int16_t);
    if constexpr (!TO_FLOAT && KIND == Kind::Float) return nullptr;
    else if constexpr (TO_PAIRS && sizeof(C) != 1) return nullptr;
    else if constexpr (T != Dtype::bool_ && sizeof(C) == sizeof(To) && (KIND == Kind::Float) == TO_FLOAT) return nullptr;
    else return widen<To, typename Memory<T, C>::Type>;
}

template <class To>
constexpr void widen_row(PanelWiden (&row)[DTYPES])
{
#define DTYPE(name, code, type, kind, ...) row[int(Dtype::name)] = widen_of<To, Dtype::name, type, Kind::kind>();
#include "jit/dtypes.def"
#undef DTYPE
}

}  // namespace
}  // namespace ng::cpu
