// tanh, sigmoid, silu and gelu of several vectors of sixteen f32 side by side, so that while one is divided, which takes 10 cycles, others are computed.
#pragma once
#include "lib/backend/cpu/exp_wide.h"
#include "lib/backend/cpu/isa.h"
#include "lib/backend/cpu/math_normal.h"

#if defined(__AVX512F__)
namespace ng::cpu {
namespace {

using Words = int32_t __attribute__((vector_size(64)));

INLINE Floats with_sign_of(Floats x, Floats size) { return Floats((Words(x) & INT32_MIN) | (Words(size) & INT32_MAX)); }

// Sixteenths of two, less one.
constexpr Floats STEPS = {0x0p0f, 0x1.6ab0dap-5f, 0x1.72b83cp-4f, 0x1.1c3d38p-3f, 0x1.837f06p-3f, 0x1.ef5326p-3f, 0x1.2ff6b6p-2f, 0x1.6ac1f8p-2f,
                          0x1.a8279ap-2f, 0x1.e8451cp-2f, 0x1.159ca8p-1f, 0x1.389230p-1f, 0x1.5d13f4p-1f, 0x1.83337cp-1f, 0x1.ab031cp-1f, 0x1.d495f4p-1f};

// e^(2 |x|) - 1, of |x| up to 10, beyond which tanh is 1. 2 |x| = n ln 2 + y, n in whole sixteenths: the low 4 bits of `raised` choose 2^(n - floor n) - 1,
// and those above are the exponent. |y| <= ln 2 / 32, so e^y - 1 by its first four terms is off by 2^-29 of itself. NaN goes through.
template <int COUNT>
INLINE void put_twice_expm1(Floats (&power)[COUNT], const Floats (&x)[COUNT])
{
    constexpr float magic = ROUNDER<float> / 16 + 127;
    Floats y[COUNT], raised[COUNT], step[COUNT], slope[COUNT], bend[COUNT];
    SIDE_BY_SIDE y[k] = with_sign_of(Floats{}, x[k]);
    SIDE_BY_SIDE y[k] = _mm512_maskz_min_ps(0xffff, all_of(20.0f), y[k] + y[k]);
    SIDE_BY_SIDE raised[k] = mad(y[k], all_of(1.4426950408889634f), all_of(magic));
    SIDE_BY_SIDE y[k] = mad(raised[k] - magic, all_of(-0.69314718055994531f), y[k]);            // ln 2 is a float but for 2^-29
    SIDE_BY_SIDE step[k] = _mm512_maskz_permutexvar_ps(0xffff, _mm512_castps_si512(raised[k]), STEPS);
    SIDE_BY_SIDE power[k] = Floats((Words(raised[k]) >> 4) << 23);
    SIDE_BY_SIDE bend[k] = mad(y[k], all_of(1.0f / 24), all_of(1.0f / 6));
    SIDE_BY_SIDE slope[k] = mad(step[k], y[k], y[k]);
    SIDE_BY_SIDE bend[k] = mad(y[k], bend[k], all_of(0.5f));
    SIDE_BY_SIDE y[k] = slope[k] * y[k];
    SIDE_BY_SIDE slope[k] = mad(y[k], bend[k], slope[k]) + step[k];
    SIDE_BY_SIDE power[k] = mad(power[k], slope[k], power[k] - 1.0f);
}
INLINE Floats gelu_size(Floats x) { return _mm512_maskz_min_ps(0xffff, all_of(15.0f), with_sign_of(Floats{}, x)); }
// What a curve (WIDE_CURVES) is made of before the division, and behind it. Off by 2.98 (tanh) and 3.15 units (sigmoid) in the last place at most, of all f32; the others
// are those of math_exp.h, math_normal.h and jit/ops.def.
template <Op OP>
INLINE Floats exponent_of(Floats x)
{
    if constexpr (OP == Op::sigmoid) return with_sign_of(all_of(-1.0f), x);
    if constexpr (OP == Op::silu) return with_sign_of(all_of(-1.0f), x) * 0.5f;
    return with_sign_of(all_of(-1.0f), 1.5957691f * (x + 0.044715f * x * x * x));
}
template <Op OP, int COUNT>
INLINE void put_powers(Floats (&power)[COUNT], const Floats (&x)[COUNT])
{
    if constexpr (OP == Op::tanh) {
        put_twice_expm1(power, x);
    } else if constexpr (OP == Op::gelu) {
        Floats rest[COUNT];
        SIDE_BY_SIDE {
            const Floats a = gelu_size(x[k]), square = a * a;
            rest[k] = _mm512_fmsub_ps(a, a, square) * -0.5f;
            power[k] = square * -0.5f;
        }
        put_exp(power, rest);
    } else {
        SIDE_BY_SIDE power[k] = exponent_of<OP>(x[k]);
        put_exp(power);
    }
}
template <Op OP>
INLINE Floats curve_of(Floats x, Floats power)
{
    if constexpr (OP == Op::tanh) return with_sign_of(x, power / (power + 2.0f));
    if constexpr (OP == Op::sigmoid) return (x < 0 ? power : all_of(1.0f)) / (power + 1.0f);
    if constexpr (OP == Op::gelu_tanh) return x * ((x < 0 ? power : all_of(1.0f)) / (power + 1.0f));
    if constexpr (OP == Op::silu) return (x < 0 ? x * power * power : x) / mad(power, power, all_of(1.0f));
    const Floats a = gelu_size(x), q = a / (a + GELU_OFFSET), half = 0.5f * x;
    Floats g = all_of(GELU[7]);
#pragma GCC unroll 7
    for (int i = 6; i >= 0; i--) g = mad(g, q, all_of(GELU[i]));
    return mad(q * g, power, with_sign_of(x, half + with_sign_of(Floats{}, half)));
}
// Vectors in place.
template <Op OP, int COUNT>
INLINE void put_curve(Floats (&x)[COUNT])
{
    Floats power[COUNT];
    put_powers<OP>(power, x);
    SIDE_BY_SIDE x[k] = curve_of<OP>(x[k], power[k]);
}

}  // namespace
}  // namespace ng::cpu
#endif
