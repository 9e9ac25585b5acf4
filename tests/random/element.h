// Element types as the contract describes them: stored bytes to numbers and back, roundings, distances between neighbours.
#pragma once
#include <ng.h>

#include <cstdint>

namespace programs {

// Holds every 64-bit integer of either kind.
__extension__ using Wide = __int128;
// Right in the 64 bits that any type keeps at most; the whole product of two may not fit.
inline Wide low_product(Wide x, Wide y) { return Wide(uint64_t(x) * uint64_t(y)); }
// Wide enough for every 64-bit integer and, on x86, for 11 bits more than a double has.
using Real = long double;

enum class Kind : uint8_t { Bool, Int, Uint, Float };

struct Element {
    ng_dtype    code;
    const char* name;
    Kind        kind;
    int         bytes;
    ng_dtype    compute;             // what arithmetic on it is done in
    int         exponent, mantissa;  // bits of a float
};
const Element& element(ng_dtype t);
int            element_count();
const Element& element_at(int i);

inline bool is_float(ng_dtype t) { return element(t).kind == Kind::Float; }
inline bool is_bool(ng_dtype t) { return t == NG_BOOL; }
inline bool is_integer(ng_dtype t) { return !is_float(t) && !is_bool(t); }
inline bool is_byte(ng_dtype t) { return t == NG_I8 || t == NG_U8; }

// N4: what arithmetic on both is done in; 0 where there is no such type.
ng_dtype promoted(ng_dtype a, ng_dtype b);
// f32 or f64: what true division, means and exponentials of this type are.
ng_dtype real_of(ng_dtype t);

Real load(ng_dtype t, const void* at);
void store(ng_dtype t, Real v, void* at);          // of what the type holds exactly

// N2: a number, of type `from`, as a cast to t makes it.
Real converted(ng_dtype t, Real v, ng_dtype from);
Real wrapped(ng_dtype t, Wide v);              // an integer in two's complement; bool: its last bit
// Between v and its neighbour in t with so many bits of mantissa (below 0: all); the least one at 0.
Real unit_of(ng_dtype t, Real v, int bits = -1);
Real largest_of(ng_dtype t);                       // the largest finite number

}  // namespace programs
