// Conversions written from the rules of the contract, number by number: nothing here is shared with the library.
#include "tests/random/element.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace programs {
namespace {

#define DTYPE(name, code, ...) constexpr ng_dtype CODE_##name = code;
#include "jit/dtypes.def"
#undef DTYPE

constexpr Element TABLE[] = {
#define DTYPE(name, code, type, kind, bytes, compute, exponent, mantissa) \
    {code, #name, Kind::kind, bytes, CODE_##compute, exponent, mantissa},
#include "jit/dtypes.def"
#undef DTYPE
};
constexpr int COUNT = int(sizeof TABLE / sizeof *TABLE);

template <class T>
Real loaded(const void* at)
{
    T v;
    std::memcpy(&v, at, sizeof v);
    return Real(v);
}
template <class T>
void stored(Real v, void* at)
{
    const T x = T(v);
    std::memcpy(at, &x, sizeof x);
}

int bias_of(const Element& e) { return (1 << (e.exponent - 1)) - 1; }
bool saturates(const Element& e) { return e.bytes == 1; }                 // floats of 8 bits
bool has_infinity(const Element& e) { return e.code != NG_E4M3; }

Real decode_narrow(const Element& e, uint32_t code)
{
    const int bits = 8 * e.bytes, exponent = int(code >> e.mantissa) & ((1 << e.exponent) - 1), fraction = int(code) & ((1 << e.mantissa) - 1);
    const Real sign = code >> (bits - 1) & 1 ? -1 : 1;
    const bool is_top = exponent == (1 << e.exponent) - 1;
    if (is_top && (has_infinity(e) ? fraction != 0 : fraction == (1 << e.mantissa) - 1)) return std::numeric_limits<Real>::quiet_NaN();
    if (is_top && has_infinity(e)) return sign * INFINITY;
    if (!exponent) return sign * std::ldexp(Real(fraction), 1 - bias_of(e) - e.mantissa);
    return sign * std::ldexp(Real(fraction + (1 << e.mantissa)), exponent - bias_of(e) - e.mantissa);
}

uint32_t encode_narrow(const Element& e, Real v)
{
    const uint32_t sign = std::signbit(v) ? 1u << (8 * e.bytes - 1) : 0, top = ((1u << e.exponent) - 1) << e.mantissa;
    if (v != v) return sign | top | (has_infinity(e) ? 1u << (e.mantissa - 1) : (1u << e.mantissa) - 1);
    if (std::isinf(v)) return sign | top;
    if (v == 0) return sign;
    const int own = std::ilogb(v), least = 1 - bias_of(e);
    if (own < least) return sign | uint32_t(std::ldexp(std::abs(v), e.mantissa - least));
    const auto fraction = uint32_t(std::ldexp(std::abs(v), e.mantissa - own)) - (1u << e.mantissa);
    return sign | uint32_t(own + bias_of(e)) << e.mantissa | fraction;
}

Real rounded(const Element& e, Real v)
{
    if (e.code == NG_F64) return Real(double(v));
    if (e.code == NG_F32) return Real(float(v));
    if (v != v || v == 0) return v;
    const Real largest = largest_of(e.code), over = std::copysign(saturates(e) ? largest : Real(INFINITY), v);
    if (std::isinf(v)) return over;
    const Real unit = unit_of(e.code, v), r = std::rint(v / unit) * unit;
    return std::abs(r) > largest ? over : r;
}

Real saturated(const Element& e, Real v)
{
    if (v != v) return 0;
    const int bits = 8 * e.bytes - (e.kind == Kind::Int);
    const Real high = std::ldexp(Real(1), bits) - 1, low = e.kind == Kind::Int ? -std::ldexp(Real(1), bits) : 0;
    const Real r = std::rint(v);
    return r < low ? low : r > high ? high : r + 0;
}

}  // namespace

int element_count() { return COUNT; }
const Element& element_at(int i) { return TABLE[i]; }
const Element& element(ng_dtype t)
{
    for (const Element& e : TABLE)
        if (e.code == t) return e;
    return TABLE[0];
}

ng_dtype promoted(ng_dtype a, ng_dtype b)
{
    a = element(a).compute, b = element(b).compute;
    if (a == b) return a;
    if (is_float(a) || is_float(b)) return is_float(a) && is_float(b) ? ng_dtype(NG_F64) : is_float(a) ? a : b;
    if (is_bool(a) || is_bool(b)) return is_bool(a) ? b : a;
    const Element &x = element(a), &y = element(b);
    if (x.kind == y.kind) return x.bytes > y.bytes ? a : b;
    const Element &with_sign = x.kind == Kind::Int ? x : y, &without = x.kind == Kind::Int ? y : x;
    if (without.bytes < with_sign.bytes) return with_sign.code;
    return without.bytes == 1 ? ng_dtype(NG_I16) : without.bytes == 2 ? ng_dtype(NG_I32) : without.bytes == 4 ? ng_dtype(NG_I64) : 0;
}

ng_dtype real_of(ng_dtype t)
{
    if (is_float(t)) return element(t).compute;
    return element(t).bytes >= 4 ? NG_F64 : NG_F32;
}

Real load(ng_dtype t, const void* at)
{
    switch (t) {
    case NG_BOOL: case NG_U8: return loaded<uint8_t>(at);
    case NG_I8: return loaded<int8_t>(at);
    case NG_I16: return loaded<int16_t>(at);
    case NG_I32: return loaded<int32_t>(at);
    case NG_I64: return loaded<int64_t>(at);
    case NG_U16: return loaded<uint16_t>(at);
    case NG_U32: return loaded<uint32_t>(at);
    case NG_U64: return loaded<uint64_t>(at);
    case NG_F32: return loaded<float>(at);
    case NG_F64: return loaded<double>(at);
    default: return decode_narrow(element(t), element(t).bytes == 2 ? uint32_t(loaded<uint16_t>(at)) : uint32_t(loaded<uint8_t>(at)));
    }
}

void store(ng_dtype t, Real v, void* at)
{
    switch (t) {
    case NG_BOOL: case NG_U8: return stored<uint8_t>(v, at);
    case NG_I8: return stored<int8_t>(v, at);
    case NG_I16: return stored<int16_t>(v, at);
    case NG_I32: return stored<int32_t>(v, at);
    case NG_I64: return stored<int64_t>(v, at);
    case NG_U16: return stored<uint16_t>(v, at);
    case NG_U32: return stored<uint32_t>(v, at);
    case NG_U64: return stored<uint64_t>(v, at);
    case NG_F32: return stored<float>(v, at);
    case NG_F64: return stored<double>(v, at);
    default:
        if (element(t).bytes == 2) return stored<uint16_t>(Real(encode_narrow(element(t), v)), at);
        return stored<uint8_t>(Real(encode_narrow(element(t), v)), at);
    }
}

Real wrapped(ng_dtype t, Wide v)
{
    const Element& e = element(t);
    const int bits = is_bool(t) ? 1 : 8 * e.bytes;
    const auto low = uint64_t(v) & (bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1);
    if (e.kind != Kind::Int || !(low >> (bits - 1) & 1)) return Real(low);
    return Real(Wide(low) - (Wide(1) << bits));
}

Real converted(ng_dtype t, Real v, ng_dtype from)
{
    const Element& e = element(t);
    if (e.kind == Kind::Bool) return v != 0;
    if (e.kind == Kind::Float) return rounded(e, v);
    return is_float(from) ? saturated(e, v) : wrapped(t, Wide(v));
}

Real unit_of(ng_dtype t, Real v, int bits)
{
    const Element& e = element(t);
    const int least = 1 - bias_of(e), own = v == 0 || !std::isfinite(v) ? least : std::ilogb(v);
    return std::ldexp(Real(1), (own < least ? least : own) - (bits < 0 ? e.mantissa : bits));
}

Real largest_of(ng_dtype t)
{
    const Element& e = element(t);
    if (e.kind != Kind::Float) return std::ldexp(Real(1), 64);
    if (!has_infinity(e)) return std::ldexp(Real(2) - std::ldexp(Real(2), -e.mantissa), bias_of(e) + 1);
    return std::ldexp(Real(2) - std::ldexp(Real(1), -e.mantissa), bias_of(e));
}

}  // namespace programs
