// Element types: their sizes, kinds, and what two of them become together.
#pragma once
#include <ng.h>

#include <cstdint>
#include <string>

namespace ng {

enum class Dtype : uint8_t {
#define DTYPE(name, ...) name,
#include "jit/dtypes.def"
#undef DTYPE
    count_
};
// The types that registers hold come first: bool_ .. f64.
inline constexpr int COMPUTE_TYPES = int(Dtype::f64) + 1;
inline constexpr int DTYPES = int(Dtype::count_);

enum class Kind : uint8_t { Bool, Int, Uint, Float };

struct DtypeInfo {
    const char* name;    // "f32", "bool"
    ng_dtype    code;
    Kind        kind;
    uint8_t     bytes;
    Dtype       compute;
    uint8_t     exponent, mantissa;
};
const DtypeInfo& info(Dtype t);

inline int   bytes_of(Dtype t) { return info(t).bytes; }
// What is moved bit by bit is of this type: unsigned, of 1, 2, 4 or 8 bytes.
constexpr Dtype bits_of_size(size_t bytes) { return bytes == 1 ? Dtype::u8 : bytes == 2 ? Dtype::u16 : bytes == 4 ? Dtype::u32 : Dtype::u64; }
inline Dtype compute_of(Dtype t) { return info(t).compute; }
inline bool  is_float(Dtype t) { return info(t).kind == Kind::Float; }
inline bool  is_bool(Dtype t) { return t == Dtype::bool_; }
inline bool  is_integer(Dtype t) { return info(t).kind == Kind::Int || info(t).kind == Kind::Uint; }
inline bool  is_signed(Dtype t) { return info(t).kind == Kind::Int || info(t).kind == Kind::Float; }
inline const char* name_of(Dtype t) { return info(t).name; }

// NG_E_DTYPE when it is none of ours; who names the caller in the sentence.
Dtype dtype_of(ng_dtype code, const char* who);
bool  find_dtype(const std::string& name, Dtype& out);

// The type that arithmetic on a and b is done in (N1, N4): narrow floats are f32. NG_E_DTYPE for u64 with a signed integer.
Dtype promote(Dtype a, Dtype b, const char* who);
// N3: the float type of an integer where only floats will do: f32, or f64 for 32 and 64 bits.
Dtype real_of(Dtype t);
// The bits of what the maximum of no element is: the least value of the type.
uint64_t least_bits(Dtype t);

}  // namespace ng
