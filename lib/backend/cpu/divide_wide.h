// Quotients of many f32 by one number, to the last bit, by products and sums with its inverse: dividing sixteen takes 10 cycles, this 3.
#pragma once
#include "lib/backend/cpu/exp_wide.h"

#if defined(__AVX512F__)
namespace ng::cpu {
namespace {

// 1 / number is inverse + rest to 48 bits. So q = x inverse + x rest is one of the two floats beside the quotient, x - q number is
// a float, and q plus its part of the inverse rounds as the quotient does (Markstein 1990): as long as nothing comes near the
// ends of the exponents. Numbers that might, zeros, infinities and NaNs are divided.
class Divisor {
  public:
    explicit INLINE Divisor(float number) : number_(_mm512_set1_ps(number))
    {
        const float inverse = 1 / number;
        inverse_ = all_of(inverse);
        rest_ = all_of(__builtin_fmaf(-inverse, number, 1.0f) * inverse);
        is_tame_ = m_abs(number) > 0x1p-40f && m_abs(number) < 0x1p40f;
    }
    // Vectors in place.
    template <int COUNT>
    INLINE void divide(Floats (&x)[COUNT]) const
    {
        Floats least = x[0], most = x[0];
#pragma GCC unroll 8
        for (int k = 0; k < COUNT; k++) {
            least = _mm512_maskz_range_ps(0xffff, least, x[k], 10);                 // of absolute values
            most = _mm512_maskz_range_ps(0xffff, most, x[k], 11);
        }
        const bool are_tame = !(_mm512_cmp_ps_mask(least, all_of(0x1p-60f), _CMP_NGT_UQ) | _mm512_cmp_ps_mask(most, all_of(0x1p80f), _CMP_NLT_UQ));
        const bool by_parts = are_tame && is_tame_;
#pragma GCC unroll 8
        for (int k = 0; k < COUNT; k++) x[k] = by_parts ? quotient(x[k]) : x[k] / number_;
    }

  private:
    INLINE Floats quotient(Floats x) const
    {
        const Floats near = mad(x, inverse_, x * rest_);
        return mad(_mm512_fnmadd_ps(near, number_, x), inverse_, near);
    }
    Floats number_, inverse_, rest_;
    bool   is_tame_;
};

}  // namespace
}  // namespace ng::cpu
#endif
