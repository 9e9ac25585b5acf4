// Conversions of single numbers, and the few operations that folding may do because every device agrees on them.
#include "jit/number.h"

#include <bit>
#include <cmath>
#include <compare>
#include <limits>
#include <span>

namespace ng {
namespace {

int64_t wrapped(Dtype t, uint64_t v)
{
    const int unused = 64 - 8 * bytes_of(t);
    if (info(t).kind == Kind::Int) return int64_t(v << unused) >> unused;
    return int64_t(v << unused >> unused);
}

int64_t saturated(Dtype t, double v)
{
    if (v != v) return 0;
    const int bits = 8 * bytes_of(t);
    const bool is_int = info(t).kind == Kind::Int;
    const double low = is_int ? -std::ldexp(1.0, bits - 1) : 0, beyond = std::ldexp(1.0, is_int ? bits - 1 : bits);
    v = std::nearbyint(v);
    if (v < low) v = low;
    if (v >= beyond) return is_int ? int64_t((uint64_t(1) << (bits - 1)) - 1) : int64_t(bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1);
    return is_int ? int64_t(v) : int64_t(uint64_t(v));
}

// An integer on its way to a float of 24 bits at most: what a double has no room for stays as one bit, so that the only
// rounding is that to the float.
double unrounded(Dtype from, int64_t v)
{
    const bool negative = info(from).kind == Kind::Int && v < 0;
    uint64_t magnitude = negative ? 0 - uint64_t(v) : uint64_t(v);
    if (magnitude >> 53) magnitude = (magnitude >> 11 | uint64_t((magnitude & 0x7FF) != 0)) << 11;
    return negative ? -double(magnitude) : double(magnitude);
}

std::optional<Number> fold_float(Op op, Dtype t, double x, double y)
{
    switch (op) {
    case Op::add: return Number(round_to(t, x + y));
    case Op::sub: return Number(round_to(t, x - y));
    case Op::mul: return Number(round_to(t, x * y));
    case Op::div: return Number(round_to(t, x / y));
    case Op::neg: return Number(-x);
    case Op::abs: return Number(std::fabs(x));
    case Op::sqrt: return Number(round_to(t, std::sqrt(x)));
    default: return std::nullopt;
    }
}

std::optional<Number> fold_integer(Op op, Dtype t, int64_t a, int64_t b)
{
    const auto x = uint64_t(a), y = uint64_t(b);
    switch (op) {
    case Op::add: return Number(wrapped(t, x + y));
    case Op::sub: return Number(wrapped(t, x - y));
    case Op::mul: return Number(wrapped(t, x * y));
    case Op::neg: return Number(wrapped(t, 0 - x));
    default: return std::nullopt;
    }
}

}  // namespace

Number Number::of_bits(Dtype t, int64_t bits)
{
    Number n;
    n.type_ = t;
    if (is_float(t)) n.real_ = std::bit_cast<double>(bits);
    else n.integer_ = bits;
    return n;
}

bool Number::fits(Dtype t) const
{
    return as(t).integer() == integer_ && !((is_bool(t) || info(t).kind == Kind::Uint) && integer_ < 0);
}

double Number::real() const
{
    if (is_float(type_)) return real_;
    return info(type_).kind == Kind::Int ? double(integer_) : double(uint64_t(integer_));
}

int64_t Number::bits(Dtype t) const { return is_float(t) ? std::bit_cast<int64_t>(real_) : integer_; }

Number Number::as(Dtype t) const
{
    Number n;
    n.type_ = t;
    if (is_float(t)) n.real_ = round_to(t, is_float(type_) || t == Dtype::f64 ? real() : unrounded(type_, integer_));
    else if (is_bool(t)) n.integer_ = is_float(type_) ? real_ != 0 : integer_ != 0;
    else n.integer_ = is_float(type_) ? saturated(t, real_) : wrapped(t, uint64_t(integer_));
    return n;
}

double round_to(Dtype t, double v)
{
    if (t == Dtype::f64 || v == 0 || std::isnan(v)) return v;
    if (t == Dtype::f32) return double(float(v));
    const DtypeInfo& d = info(t);
    const bool saturates = d.bytes == 1;
    if (std::isinf(v)) return saturates ? std::copysign(largest_of(t), v) : v;
    const int bias = (1 << (d.exponent - 1)) - 1;
    int exponent;
    std::frexp(v, &exponent);                                  // v = m 2^exponent, 1/2 <= |m| < 1
    const int unit = std::max(exponent - 1, 1 - bias) - d.mantissa;
    const double r = std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
    if (std::fabs(r) <= largest_of(t)) return r;
    return std::copysign(saturates ? largest_of(t) : std::numeric_limits<double>::infinity(), v);
}

double largest_of(Dtype t)
{
    const DtypeInfo& d = info(t);
    // Others keep the last exponent for infinity and NaN; e4m3 has all of it but one code.
    return t == Dtype::e4m3 ? 448.0 : std::ldexp(2.0 - std::ldexp(1.0, -d.mantissa), (1 << (d.exponent - 1)) - 1);
}

std::optional<Number> fold_map(Op op, Dtype t, std::span<const Number> operands)
{
    if (operands.size() > 2) return std::nullopt;
    const Number &x = operands[0], &y = operands[operands.size() - 1];
    const auto compared = is_float(t) ? x.real() <=> y.real() : info(t).kind == Kind::Int ? std::partial_ordering(x.integer() <=> y.integer())
                                                              : std::partial_ordering(uint64_t(x.integer()) <=> uint64_t(y.integer()));
    switch (op) {
    case Op::less: return Number(int64_t(compared < 0));
    case Op::greater: return Number(int64_t(compared > 0));
    case Op::equal: return Number(int64_t(compared == 0));
    case Op::not_equal: return Number(int64_t(compared != 0));
    default: break;
    }
    if (is_float(t)) return fold_float(op, t, x.real(), y.real());
    if (is_bool(t)) return std::nullopt;
    return fold_integer(op, t, x.integer(), y.integer());
}

std::optional<int64_t> always(Op op, Dtype t, bool is_same)
{
    constexpr std::optional<int64_t> DEPENDS;
    const bool is_whole = !is_float(t), is_one = is_whole && is_same;          // a float may be NaN
    switch (op) {
    case Op::isfinite: return is_whole ? 1 : DEPENDS;
    case Op::isnan: case Op::isinf: return is_whole ? 0 : DEPENDS;
    case Op::signbit: return is_whole && !is_signed(t) ? 0 : DEPENDS;
    case Op::less: case Op::greater: return is_same ? 0 : DEPENDS;
    case Op::equal: case Op::less_equal: case Op::greater_equal: return is_one ? 1 : DEPENDS;
    case Op::not_equal: case Op::logical_xor: case Op::bitwise_xor: case Op::sub: case Op::rem: case Op::fmod: return is_one ? 0 : DEPENDS;
    default: return DEPENDS;
    }
}

}  // namespace ng
