// Loops that round numbers to another dtype: to nearest even, and up or down by chance.
#pragma once
#include "lib/backend/cpu/memory_loops.h"

namespace ng::cpu {
namespace {

// Registers, by type: bool as the byte that it is.
template <Dtype D> struct HeldBy;
#define DTYPE(name, code, type, kind, bytes, compute, exponent, mantissa) \
    template <> struct HeldBy<Dtype::name> { using Type = type; };
#include "jit/dtypes.def"
#undef DTYPE
template <Dtype D> using Held = typename HeldBy<D>::Type;

constexpr bool is_narrow(Dtype d) { return d == Dtype::f16 || d == Dtype::bf16 || d == Dtype::e4m3 || d == Dtype::e5m2; }
constexpr Format format_of(Dtype d) { return d == Dtype::f16 ? F16 : d == Dtype::bf16 ? BF16 : d == Dtype::e4m3 ? E4M3 : E5M2; }

// One number of a compute type as a dtype's.
template <Dtype TO, class From>
INLINE auto converted(From x)
{
    if constexpr (TO == Dtype::bool_) {
        return uint8_t(x != From(0));
    } else if constexpr (is_narrow(TO)) {
        if constexpr (std::is_same_v<From, float>) return round_to<format_of(TO)>(x);
        else if constexpr (IS_FLOAT<From>) return round_to<format_of(TO)>(to_odd(x));
        else if constexpr (sizeof(From) <= 2) return round_to<format_of(TO)>(float(x));
        else return round_to<format_of(TO)>(to_odd(to_sticky(x)));
    } else if constexpr (IS_FLOAT<From> && !IS_FLOAT<Held<TO>>) {
        return to_integer<Held<TO>>(x);
    } else {
        return Held<TO>(x);
    }
}
template <Dtype TO, class From>
void convert(void* out_, const void* in_, int64_t count)
{
    using To = decltype(converted<TO>(From(0)));
    To*         out = static_cast<To*>(out_);
    const From* in = static_cast<const From*>(in_);
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) out[i] = converted<TO>(in[i]);
}
// Doubles and wide integers to narrow floats by floats rounded to odd, in steps as loops of 8 and 4 bytes are not vectorised.
constexpr int64_t STEP = 128;
template <class From>
[[gnu::noinline]] void to_odd_floats(float* out, const From* in, int64_t count)
{
    double wide[STEP];
    for (int64_t i = 0; i < count; i++) {
        if constexpr (IS_FLOAT<From>) wide[i] = in[i];
        else wide[i] = to_sticky(in[i]);
    }
    for (int64_t i = 0; i < count; i++) out[i] = to_odd(wide[i]);
}
template <Dtype TO, class From>
void convert_by_float(void* out, const void* in, int64_t count)
{
    for (int64_t done = 0; done < count; done += STEP) {
        const int64_t n = count - done < STEP ? count - done : STEP;
        float         odd[STEP];
        to_odd_floats(odd, static_cast<const From*>(in) + done, n);
        convert<TO, float>(static_cast<float*>(out) + done, odd, n);
    }
}

// Signed and unsigned integers of one size are the same bits where only bits are kept.
template <Dtype FROM, Dtype TO>
constexpr ConvertLoop convert_loop()
{
    using From = Held<FROM>;
    using To = std::conditional_t<is_narrow(TO), float, Held<TO>>;
    if constexpr (is_narrow(TO) && sizeof(From) >= 4 && FROM != Dtype::f32) {
        return convert_by_float<TO, From>;
    } else if constexpr (IS_INTEGER<From> && IS_INTEGER<To> && TO != Dtype::bool_ && sizeof(To) <= sizeof(From)) {
        using Bits = std::make_unsigned_t<From>;
        return convert<bits_of_size(sizeof(To)), Bits>;
    } else if constexpr (IS_INTEGER<From> && TO == Dtype::bool_) {
        return convert<TO, std::make_unsigned_t<From>>;
    } else {
        return convert<TO, From>;
    }
}

struct StochasticFormat { int mantissa, least_exponent; bool saturates; double largest; };
constexpr StochasticFormat stochastic_format(Dtype d)
{
    if (d == Dtype::f32) return {23, -126, false, 0x1.fffffep127};
    if (d == Dtype::f64) return {52, -200, false, 0x1.fffffffffffffp1023};  // of f32: they end at 2^-149
    const Format f = format_of(d);
    return {f.mantissa, 1 - f.bias(), f.saturates, f.largest()};
}
// x between its neighbours of `bits` of mantissa: away from zero where word / 2^32 is below the part of the way that x
// has gone from the neighbour towards zero. All of it is exact. x is an f32, or an f64 on its way to a smaller type.
template <Dtype TO>
INLINE double stochastic(double x, uint32_t word, int bits)
{
    constexpr StochasticFormat f = stochastic_format(TO);
    const double  a = m_abs(x);
    const int64_t own = int64_t(bits_of(a) >> 52) - 1023, exponent = own < f.least_exponent ? f.least_exponent : own;
    const double  unit = from_bits(uint64_t(exponent - bits + 1023) << 52), per_unit = from_bits(uint64_t(1023 - exponent + bits) << 52);
    const double  t = a * per_unit, low = m_floor(t);
    double        r = (low + (double(word) < (t - low) * 4294967296.0 ? 1.0 : 0.0)) * unit;
    r = r > f.largest ? (f.saturates ? f.largest : INFINITE<double>) : r;
    r = a == INFINITE<double> ? (f.saturates ? f.largest : a) : r;
    return x != x ? x : m_copysign(r, x);
}
// f64 to f64, where a unit may be too small for a double: on its bits. Denormals need no care, the unit is the same.
INLINE double stochastic_f64(double x, uint32_t word, int bits)
{
    const uint64_t u = bits_of(x), drop = uint64_t(52 - bits), mask = (uint64_t(1) << drop) - 1, part = u & mask;
    // word < part 2^(32 - drop), both sides shifted so that nothing is lost
    const bool is_up = drop <= 32 ? uint64_t(word) < part << (32 - drop) : uint64_t(word) << (drop - 32) < part;
    const uint64_t r = (u & ~mask) + (is_up ? mask + 1 : 0);
    return m_abs(x) < INFINITE<double> ? from_bits(r) : x;
}
template <Dtype TO, class From>
void stochastic_loop(void* out_, const void* x_, const uint32_t* word, uint32_t bits, int64_t count)
{
    using To = std::conditional_t<TO == Dtype::f64, double, float>;
    constexpr int most = stochastic_format(TO).mantissa;
    const int     kept = bits == 0 || bits > uint32_t(most) ? most : int(bits);
    To*           out = static_cast<To*>(out_);
    const From*   x = static_cast<const From*>(x_);
    for (int64_t i = 0; i < count; i++) {
        if constexpr (TO == Dtype::f64 && std::is_same_v<From, double>) out[i] = stochastic_f64(x[i], word[i], kept);
        else out[i] = To(stochastic<TO>(double(x[i]), word[i], kept));
    }
}

}  // namespace
}  // namespace ng::cpu
