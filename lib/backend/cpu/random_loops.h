// Random numbers that are the same bits on every device (contract N8), and the algorithm by which to check them.
//
// words of a counter    Philox4x32-10 (Salmon and others 2011) of the counter (index, step) and the key, low words first
// uniform f32           (word 0 >> 8) / 2^24
// uniform f64           ((word 1 << 32 | word 0) >> 11) / 2^53
// normal                radius(word 0) * cosine(word 1), by Box & Muller 1958, in T = f32 or f64. Every + - * / and sqrt
//                       below is one rounding to nearest even in T; nothing is contracted. Conversions to T round once.
//
//   radius(w)   u = (T(w) + 0.5) * 2^-32, which is in (0, 1].                        sqrt(-2 * log(u))
//   log(u)      u = 2^k m with sqrt(1/2) <= m < sqrt(2) as bits compare: with I(v) v's bits as an integer, S those of
//               sqrt(1/2) (0x3f3504f3, 0x3fe6a09e667f3bcd), E those of 1: i = I(u) + (E - S), k = (i >> mantissa bits) - bias,
//               m has the bits (i & mantissa mask) + S.
//               f = m - 1; s = f / (2 + f); z = s * s; h = (0.5 * f) * f;
//               r = z * (L1 + z * (L2 + z * (L3 ..)));   (4 numbers for f32, 7 for f64: LOG_SERIES)
//               log = k * LN2_HI - ((h - (s * (h + r) + k * LN2_LO)) - f)
//   cosine(w)   w / 2^32 of a turn: q = (w + 2^29) >> 30 (mod 4), a = w - (q << 30) as a signed number of 32 bits;
//               t = T(a) * (2 pi / 2^32 as a T); z = t * t;
//               sin = t + (t * z) * (S1 + z * (S2 + ..));   cos = (1 - 0.5 * z) + (z * z) * (C1 + z * (C2 + ..))
//               q 0: cos, 1: -sin, 2: -cos, 3: sin
#pragma once
#include "lib/backend/cpu/isa.h"
#include "lib/backend/cpu/math_core.h"

namespace ng::cpu {
namespace {

template <class T> struct NormalTables;
template <> struct NormalTables<float> {
    static constexpr float LOG_SERIES[] = {0.66666662693f, 0.40000972152f, 0.28498786688f, 0.24279078841f};
    static constexpr float SIN_SERIES[] = {-0.16666654611f, 8.3321608736e-3f, -1.9515295891e-4f};
    static constexpr float COS_SERIES[] = {4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f};
    static constexpr float LN2_HI = 6.9313812256e-01f, LN2_LO = 9.0580006145e-06f, TURN = 0x1.921fb6p-30f;
    static constexpr uint32_t ROOT = 0x3f3504f3, ONE = 0x3f800000;
    static constexpr int MANTISSA = 23, BIAS = 127;
};
template <> struct NormalTables<double> {
    static constexpr double LOG_SERIES[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                                            2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                                            1.479819860511658591e-01};
    static constexpr double SIN_SERIES[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
                                            2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10};
    static constexpr double COS_SERIES[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                                            -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11};
    static constexpr double LN2_HI = 6.93147180369123816490e-01, LN2_LO = 1.90821492927058770002e-10, TURN = 0x1.921fb54442d18p-30;
    static constexpr uint64_t ROOT = 0x3fe6a09e667f3bcd, ONE = 0x3ff0000000000000;
    static constexpr int MANTISSA = 52, BIAS = 1023;
};
template <class T, int N>
INLINE T plain_series(T z, const T (&c)[N])
{
    T r = c[N - 1];
#pragma GCC unroll 8
    for (int i = N - 2; i >= 0; i--) r = c[i] + z * r;
    return r;
}
template <class T>
INLINE T plain_log(T u)
{
    using N = NormalTables<T>;
    const auto i = bits_of(u) + (N::ONE - N::ROOT);
    const T    k = T(int32_t(uint32_t(i >> N::MANTISSA)) - N::BIAS);
    const T    f = from_bits((i & ((decltype(i)(1) << N::MANTISSA) - 1)) + N::ROOT) - T(1);
    const T    s = f / (T(2) + f), z = s * s, h = (T(0.5) * f) * f;
    const T    r = z * plain_series(z, N::LOG_SERIES);
    return k * N::LN2_HI - ((h - (s * (h + r) + k * N::LN2_LO)) - f);
}
template <class T>
INLINE T plain_cosine(uint32_t w)
{
    using N = NormalTables<T>;
    const uint32_t q = (w + 0x20000000u) >> 30;
    const T        t = T(int32_t(w - (q << 30))) * N::TURN, z = t * t;
    const T        s = t + (t * z) * plain_series(z, N::SIN_SERIES);
    const T        c = (T(1) - T(0.5) * z) + (z * z) * plain_series(z, N::COS_SERIES);
    const T        r = (q & 1) ? s : c;
    return ((q + 1) & 2) ? -r : r;
}
template <class T>
INLINE T normal(uint32_t a, uint32_t b)
{
    const T u = (T(a) + T(0.5)) * T(0x1p-32);
    return m_sqrt(T(-2) * plain_log(u)) * plain_cosine<T>(b);
}

constexpr int64_t RANDOM_CHUNK = 64;
struct RandomWords { alignas(64) uint32_t word[4][RANDOM_CHUNK]; };

INLINE void philox(RandomWords& out, const int64_t* index, uint64_t key, uint64_t step, int64_t count)
{
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) {
        uint32_t c0 = uint32_t(uint64_t(index[i])), c1 = uint32_t(uint64_t(index[i]) >> 32), c2 = uint32_t(step), c3 = uint32_t(step >> 32);
        uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
#pragma GCC unroll 10
        for (int round = 0; round < 10; round++) {
            const uint64_t a = uint64_t(0xD2511F53u) * c0, b = uint64_t(0xCD9E8D57u) * c2;
            c0 = uint32_t(b >> 32) ^ c1 ^ k0;
            c1 = uint32_t(b);
            c2 = uint32_t(a >> 32) ^ c3 ^ k1;
            c3 = uint32_t(a);
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        out.word[0][i] = c0, out.word[1][i] = c1, out.word[2][i] = c2, out.word[3][i] = c3;
    }
}
template <RandomKind KIND> struct RandomResult { using Type = uint32_t; };
template <> struct RandomResult<RANDOM_UNIFORM32> { using Type = float; };
template <> struct RandomResult<RANDOM_NORMAL32> { using Type = float; };
template <> struct RandomResult<RANDOM_UNIFORM64> { using Type = double; };
template <> struct RandomResult<RANDOM_NORMAL64> { using Type = double; };

template <RandomKind KIND>
INLINE typename RandomResult<KIND>::Type random_number(uint32_t w0, uint32_t w1, uint32_t w3)
{
    if constexpr (KIND == RANDOM_BITS) return w0;
    else if constexpr (KIND == RANDOM_WORD3) return w3;
    else if constexpr (KIND == RANDOM_UNIFORM32) return float(int32_t(w0 >> 8)) * 0x1p-24f;
    else if constexpr (KIND == RANDOM_UNIFORM64) return double(int64_t((uint64_t(w1) << 32 | w0) >> 11)) * 0x1p-53;
    else return normal<typename RandomResult<KIND>::Type>(w0, w1);
}
template <RandomKind KIND>
void random_loop(void* out_, const int64_t* index, uint64_t key, uint64_t step, int64_t count)
{
    auto* out = static_cast<typename RandomResult<KIND>::Type*>(out_);
    for (int64_t done = 0; done < count; done += RANDOM_CHUNK) {
        const int64_t n = count - done < RANDOM_CHUNK ? count - done : RANDOM_CHUNK;
        RandomWords   w;
        philox(w, index + done, key, step, n);
        ELEMENTWISE
        for (int64_t i = 0; i < n; i++) out[done + i] = random_number<KIND>(w.word[0][i], w.word[1][i], w.word[3][i]);
    }
}

[[maybe_unused]] void ramp(int64_t* out, int64_t start, int64_t step, int64_t count)
{
    for (int64_t i = 0; i < count; i++) out[i] = start + i * step;
}

}  // namespace
}  // namespace ng::cpu
