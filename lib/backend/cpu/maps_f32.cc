// Element-wise loops of f32; powers go through doubles in chunks, as one loop of both widths is not vectorised.
#include "lib/backend/cpu/curves_wide.h"
#include "lib/backend/cpu/divide_wide.h"
#include "lib/backend/cpu/row_loops.h"

namespace ng::cpu {
namespace {

template <int MODE>
struct PowLoop {
    static void run(void* out_, const void* x_, const void* y_, const void*, int64_t count)
    {
        float* out = static_cast<float*>(out_);
        const Operand<float, float, (MODE & MODE_X) != 0> all_x(x_);
        const Operand<float, float, (MODE & MODE_Y) != 0> all_y(y_);
        for (int64_t done = 0; done < count; done += CHUNK) {
            const int64_t n = count - done < CHUNK ? count - done : CHUNK;
            const auto    x = all_x.from(done);
            const auto    y = all_y.from(done);
            alignas(64) double base[CHUNK], exponent[CHUNK];
            alignas(64) float  power[CHUNK];
            for (int64_t i = 0; i < n; i++) base[i] = double(m_abs(x[i]));
            for (int64_t i = 0; i < n; i++) exponent[i] = double(y[i]);
            for (int64_t i = 0; i < n; i++) base[i] = pow_of_float(base[i], exponent[i]);
            for (int64_t i = 0; i < n; i++) power[i] = float(base[i]);
            ELEMENTWISE
            for (int64_t i = 0; i < n; i++) out[done + i] = pow_ends(power[i], x[i], y[i]);
        }
    }
};
template <> constexpr MapLoop loop_of<Row_pow, Dtype::f32, MODE_ALL>() { return PowLoop<MODE_ALL>::run; }
template <> constexpr MapLoop loop_of<Row_pow, Dtype::f32, MODE_X>() { return PowLoop<MODE_X>::run; }
template <> constexpr MapLoop loop_of<Row_pow, Dtype::f32, MODE_Y>() { return PowLoop<MODE_Y>::run; }

#if defined(__AVX512F__)
// exp(x), or exp(x - y): MODE_Z, and MODE_Y where y is one number.
template <int MODE>
struct ExpOf {
    const float *x, *y;
    Floats       number{};
    INLINE Floats argument(int64_t i, __mmask16 lanes = 0xffff) const
    {
        const Floats v = _mm512_maskz_loadu_ps(lanes, x + i);
        if constexpr (!(MODE & MODE_Z)) return v;
        else return v - (MODE & MODE_Y ? number : Floats(_mm512_maskz_loadu_ps(lanes, y + i)));
    }
};
template <int MODE>
void exp_wide(void* out_, const void* x, const void* y, const void*, int64_t count)
{
    constexpr int64_t WIDTH = 16;
    constexpr int     COUNT = 4;
    auto*       out = static_cast<float*>(out_);
    ExpOf<MODE> of{static_cast<const float*>(x), static_cast<const float*>(y)};
    if constexpr (MODE & MODE_Y) of.number = all_of(*of.y);
    int64_t i = 0;
    for (; i + COUNT * WIDTH <= count; i += COUNT * WIDTH) {
        Floats v[COUNT];
        SIDE_BY_SIDE v[k] = of.argument(i + k * WIDTH);
        put_exp(v);
        SIDE_BY_SIDE _mm512_storeu_ps(out + i + k * WIDTH, v[k]);
    }
    for (; i < count; i += WIDTH) {
        const __mmask16 rest = __mmask16(count - i < WIDTH ? (1u << (count - i)) - 1 : 0xffff);
        Floats v[] = {of.argument(i, rest)};
        put_exp(v);
        _mm512_mask_storeu_ps(out + i, rest, v[0]);
    }
}
template <> constexpr MapLoop loop_of<Row_exp, Dtype::f32, MODE_ALL>() { return exp_wide<MODE_ALL>; }

// f: vectors in place, as many as it is given.
template <class F>
INLINE void in_place_wide(void* out_, const void* x_, int64_t count, F f)
{
    constexpr int64_t WIDTH = 16;
    constexpr int     COUNT = 4;
    auto*       out = static_cast<float*>(out_);
    const auto* x = static_cast<const float*>(x_);
    int64_t i = 0;
    for (; i + COUNT * WIDTH <= count; i += COUNT * WIDTH) {
        Floats v[COUNT];
        SIDE_BY_SIDE v[k] = _mm512_loadu_ps(x + i + k * WIDTH);
        f(v);
        SIDE_BY_SIDE _mm512_storeu_ps(out + i + k * WIDTH, v[k]);
    }
    for (; i < count; i += WIDTH) {
        const __mmask16 rest = __mmask16(count - i < WIDTH ? (1u << (count - i)) - 1 : 0xffff);
        Floats v[1] = {_mm512_maskz_loadu_ps(rest, x + i)};
        f(v);
        _mm512_mask_storeu_ps(out + i, rest, v[0]);
    }
}
void divide_wide(void* out, const void* x, const void* y, const void*, int64_t count)
{
    const Divisor by(*static_cast<const float*>(y));
    in_place_wide(out, x, count, [&by](auto& v) __attribute__((always_inline)) { by.divide(v); });
}
template <> constexpr MapLoop loop_of<Row_div, Dtype::f32, MODE_Y>() { return divide_wide; }

template <Op OP>
void curve_wide(void* out, const void* x, const void*, const void*, int64_t count)
{
    in_place_wide(out, x, count, [](auto& v) __attribute__((always_inline)) { put_curve<OP>(v); });
}
#define CURVE(name) template <> constexpr MapLoop loop_of<Row_##name, Dtype::f32, MODE_ALL>() { return curve_wide<Op::name>; }
WIDE_CURVES(CURVE)
#undef CURVE
#endif

#if defined(__AVX512F__)
constexpr AllMaps with_differences(AllMaps all)
{
    MapLoop* const exp = all.loop[int(Op::exp)];
    exp[OF_DIFFERENCE + MODE_ALL] = exp_wide<MODE_Z>;
    exp[OF_DIFFERENCE + MODE_Y] = exp_wide<MODE_Z | MODE_Y>;
    all.modes[int(Op::exp)] = OF_DIFFERENCE + MODE_Y + 1;
    return all;
}
template <> constexpr AllMaps ALL_MAPS<Dtype::f32> = with_differences(all_maps<Dtype::f32>());
#endif

}  // namespace

constexpr MapTable ISA_NAME(maps_f32) = map_table<Dtype::f32>();

}  // namespace ng::cpu
