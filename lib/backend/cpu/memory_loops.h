// Loops between memory of every dtype and registers of its compute type: loads, stores, streaming stores, gathers.
#pragma once
#include "lib/backend/cpu/isa.h"
#include "lib/backend/cpu/number_codes.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ng::cpu {
namespace {

// How a dtype lies in memory (Stored) and in a register (Held).
template <class T> struct Same {
    using Stored = T;
    using Held = T;
    static INLINE T load(T v) { return v; }
    static INLINE T store(T v) { return v; }
};
struct Truth {
    using Stored = uint8_t;
    using Held = uint8_t;
    static INLINE uint8_t load(uint8_t v) { return v != 0; }
    static INLINE uint8_t store(uint8_t v) { return v; }
};
template <Format F> struct Coded {
    using Stored = std::conditional_t<F.exponent + F.mantissa == 15, uint16_t, uint8_t>;
    using Held = float;
    static INLINE float  load(Stored v) { return decode<F>(v); }
    static INLINE Stored store(float v) { return Stored(encode<F>(v)); }
};
// Loops ask the size alone where nothing is converted.
template <Dtype D> struct CodecOf;
template <> struct CodecOf<Dtype::bool_> { using Type = Truth; };
template <> struct CodecOf<Dtype::i8> { using Type = Same<uint8_t>; };
template <> struct CodecOf<Dtype::u8> { using Type = Same<uint8_t>; };
template <> struct CodecOf<Dtype::i16> { using Type = Same<uint16_t>; };
template <> struct CodecOf<Dtype::u16> { using Type = Same<uint16_t>; };
template <> struct CodecOf<Dtype::i32> { using Type = Same<uint32_t>; };
template <> struct CodecOf<Dtype::u32> { using Type = Same<uint32_t>; };
template <> struct CodecOf<Dtype::f32> { using Type = Same<uint32_t>; };
template <> struct CodecOf<Dtype::i64> { using Type = Same<uint64_t>; };
template <> struct CodecOf<Dtype::u64> { using Type = Same<uint64_t>; };
template <> struct CodecOf<Dtype::f64> { using Type = Same<uint64_t>; };
template <> struct CodecOf<Dtype::f16> { using Type = Coded<F16>; };
template <> struct CodecOf<Dtype::bf16> { using Type = Coded<BF16>; };
template <> struct CodecOf<Dtype::e4m3> { using Type = Coded<E4M3>; };
template <> struct CodecOf<Dtype::e5m2> { using Type = Coded<E5M2>; };
template <Dtype D> using Codec = typename CodecOf<D>::Type;

template <class C> constexpr bool IS_F16 = std::is_same_v<C, Coded<F16>>;

// Dense codes to registers. f16 has instructions where F16C is.
template <class C>
INLINE void decode_dense(typename C::Held* out, const typename C::Stored* in, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    if constexpr (IS_F16<C>)
        for (; i + 16 <= count; i += 16) _mm512_storeu_ps(out + i, _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256((const __m256i*)(in + i))));
#elif defined(__F16C__)
    if constexpr (IS_F16<C>)
        for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(in + i))));
#endif
    ELEMENTWISE
    for (; i < count; i++) out[i] = C::load(in[i]);
}
template <class C>
INLINE void encode_dense(typename C::Stored* out, const typename C::Held* in, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    if constexpr (IS_F16<C>)
        for (; i + 16 <= count; i += 16) _mm256_storeu_si256((__m256i*)(out + i), _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(in + i), 0));
#elif defined(__F16C__)
    if constexpr (IS_F16<C>)
        for (; i + 8 <= count; i += 8) _mm_storeu_si128((__m128i*)(out + i), _mm256_cvtps_ph(_mm256_loadu_ps(in + i), 0));
#endif
    ELEMENTWISE
    for (; i < count; i++) out[i] = C::store(in[i]);
}

template <class C>
void load(void* out_, const void* in_, int64_t stride, int64_t count)
{
    auto* out = static_cast<typename C::Held*>(out_);
    auto* in = static_cast<const typename C::Stored*>(in_);
    if (stride == 1) return decode_dense<C>(out, in, count);
    if (stride == 0) {
        typename C::Stored one;                // a scalar of the host's lies at any address
        __builtin_memcpy(&one, in, sizeof one);
        const auto v = C::load(one);
        for (int64_t i = 0; i < count; i++) out[i] = v;
        return;
    }
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) out[i] = C::load(in[i * stride]);
}
template <class C>
void store(void* out_, int64_t stride, const void* in_, int64_t count)
{
    auto* out = static_cast<typename C::Stored*>(out_);
    auto* in = static_cast<const typename C::Held*>(in_);
    if (stride == 1) return encode_dense<C>(out, in, count);
    for (int64_t i = 0; i < count; i++) out[i * stride] = C::store(in[i]);
}

// 64 bytes past the caches
INLINE void stream_line(void* out, const void* in)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((__m512i*)out, _mm512_loadu_si512(in));
#elif defined(__AVX__)
    for (int k = 0; k < 2; k++) _mm256_stream_si256((__m256i*)out + k, _mm256_loadu_si256((const __m256i*)in + k));
#elif defined(__SSE2__)
    for (int k = 0; k < 4; k++) _mm_stream_si128((__m128i*)out + k, _mm_loadu_si128((const __m128i*)in + k));
#else
    __builtin_memcpy(out, in, 64);
#endif
}
// Other cores see the block after fence_streams alone.
template <class C>
void stream(void* out_, const void* in_, int64_t count)
{
    using Stored = typename C::Stored;
    auto* out = static_cast<char*>(out_);
    auto* in = static_cast<const typename C::Held*>(in_);
    constexpr int64_t step = 64;
    for (int64_t i = 0; i < count; i += step, out += step * int64_t(sizeof(Stored))) {
        alignas(64) Stored line[step];
        const void*        source = in + i;
        if constexpr (!std::is_same_v<C, Same<Stored>>) {
            encode_dense<C>(line, in + i, step);
            source = line;
        }
        for (size_t k = 0; k < sizeof line; k += 64) stream_line(out + k, static_cast<const char*>(source) + k);
    }
}

template <class C>
void gather(void* out_, const void* base_, const int64_t* index, int64_t extent, int64_t stride, int64_t count)
{
    auto* out = static_cast<typename C::Held*>(out_);
    auto* base = static_cast<const typename C::Stored*>(base_);
    for (int64_t i = 0; i < count; i++) {
        const bool is_inside = uint64_t(index[i]) < uint64_t(extent);  // a negative one is far above
        out[i] = is_inside ? C::load(base[index[i] * stride]) : typename C::Held(0);
    }
}

}  // namespace
}  // namespace ng::cpu
