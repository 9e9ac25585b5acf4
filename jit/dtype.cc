// The table of element types and the rules by which two of them meet.
#include "jit/dtype.h"

#include "jit/error.h"

#include <algorithm>

namespace ng {
namespace {

constexpr DtypeInfo TABLE[] = {
#define DTYPE(name, code, type, kind, bytes, compute, exponent, mantissa) \
    {#name, code, Kind::kind, bytes, Dtype::compute, exponent, mantissa},
#include "jit/dtypes.def"
#undef DTYPE
};
constexpr Dtype SIGNED[] = {Dtype::i8, Dtype::i16, Dtype::i32, Dtype::i64};

Dtype promote_integers(Dtype a, Dtype b, const char* who)
{
    if (info(a).kind == info(b).kind) return info(a).bytes >= info(b).bytes ? a : b;
    const Dtype s = info(a).kind == Kind::Int ? a : b, u = info(a).kind == Kind::Int ? b : a;
    const int need = std::max<int>(info(s).bytes, 2 * info(u).bytes);
    for (const Dtype t : SIGNED)
        if (info(t).bytes >= need) return t;
    throw Error(NG_E_DTYPE, text(who, ": no integer type holds both u64 and ", name_of(s), "; cast one of them"));
}

}  // namespace

const DtypeInfo& info(Dtype t)
{
    static constexpr DtypeInfo BOOL = {"bool", NG_BOOL, Kind::Bool, 1, Dtype::bool_, 0, 0};
    return t == Dtype::bool_ ? BOOL : TABLE[int(t)];
}

Dtype dtype_of(ng_dtype code, const char* who)
{
    for (int i = 0; i < DTYPES; i++)
        if (TABLE[i].code == code) return Dtype(i);
    const void* const hexadecimal = reinterpret_cast<const void*>(uintptr_t(code));
    throw Error(NG_E_DTYPE, text(who, ": ", hexadecimal, " is no element type; NG_F32 is 0x12002"));
}

bool find_dtype(const std::string& name, Dtype& out)
{
    for (int i = 0; i < DTYPES; i++)
        if (name == info(Dtype(i)).name) return out = Dtype(i), true;
    return false;
}

Dtype promote(Dtype a, Dtype b, const char* who)
{
    a = compute_of(a), b = compute_of(b);
    if (a == b) return a;
    if (is_float(a) && is_float(b)) return Dtype::f64;
    if (is_float(a)) return a;
    if (is_float(b)) return b;
    if (is_bool(a)) return b;
    if (is_bool(b)) return a;
    return promote_integers(a, b, who);
}

Dtype real_of(Dtype t)
{
    if (is_float(t)) return compute_of(t);
    return bytes_of(t) >= 4 ? Dtype::f64 : Dtype::f32;
}

uint64_t least_bits(Dtype t)
{
    switch (t) {
    case Dtype::f64: return 0xfff0000000000000;
    case Dtype::f32: return 0xff800000;
    case Dtype::f16: return 0xfc00;
    case Dtype::bf16: return 0xff80;
    case Dtype::e5m2: return 0xfc;
    case Dtype::e4m3: return 0xfe;
    default: return info(t).kind == Kind::Int ? uint64_t(1) << (8 * bytes_of(t) - 1) : 0;
    }
}

}  // namespace ng
