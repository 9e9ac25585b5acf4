// exp of sixteen f32 at once, where a register holds the table of sixteenths of two: half the instructions of what compilers vectorise.
#pragma once
#include "lib/backend/cpu/math_exp.h"

#if defined(__AVX512F__)
#include <immintrin.h>

namespace ng::cpu {
namespace {

using Floats = float __attribute__((vector_size(64)));

INLINE Floats all_of(float x) { return Floats{} + x; }
INLINE Floats mad(Floats x, Floats y, Floats z) { return _mm512_fmadd_ps(x, y, z); }

constexpr Floats SIXTEENTHS = {0x1p0f, 0x1.0b5586p0f, 0x1.172b84p0f, 0x1.2387a6p0f, 0x1.306fe0p0f, 0x1.3dea64p0f, 0x1.4bfdaep0f, 0x1.5ab07ep0f,
                               0x1.6a09e6p0f, 0x1.7a1148p0f, 0x1.8ace54p0f, 0x1.9c4918p0f, 0x1.ae89fap0f, 0x1.c199bep0f, 0x1.d5818ep0f, 0x1.ea4afap0f};

// x = n ln 2 + r, n in whole sixteenths: the low 4 bits of `raised` choose 2^(n - floor n), and scalef makes of its 2^(floor n),
// rounding once. |r| <= ln 2 / 32, so a cubic is e^r to 2^-27. Off by 1.06 units in the last place at most. NaN goes through.
// rest: what x lacks of the exact argument.
INLINE Floats exp_of(Floats x, const Floats* rest = nullptr)
{
    using L = ExpLimits<float>;
    constexpr float magic = ROUNDER<float> / 16;
    const Floats near = _mm512_maskz_max_ps(0xffff, all_of(L::low), _mm512_maskz_min_ps(0xffff, all_of(L::high), x));
    const Floats raised = mad(near, all_of(1.4426950408889634f), all_of(magic)), n = raised - magic;
    Floats r = mad(n, all_of(-L::ln2_lo), mad(n, all_of(-L::ln2_hi), near));
    if (rest) r += *rest;
    const Floats slope = mad(r * r, mad(all_of(0.16666667f), r, all_of(0.5f)), r);
    const Floats power = _mm512_maskz_permutexvar_ps(0xffff, _mm512_castps_si512(raised), SIXTEENTHS);
    return _mm512_maskz_scalef_ps(0xffff, mad(power, slope, power), n);
}

}  // namespace
}  // namespace ng::cpu
#endif
