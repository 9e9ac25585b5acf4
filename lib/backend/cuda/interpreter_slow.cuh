// What the interpreter computes item by item: maps of every type, conversions, encodings, random numbers.
#pragma once
#include "lib/backend/cuda/interpreter_slots.cuh"

namespace ng::interpreter {

enum : u32 {
#define NODE(name, ...) OP_##name,
#define MAP(name, ...) OP_##name,
#define FOLD(name, ...) OP_##name,
#define STAT(name, ...) OP_##name,
#define NORM(name, ...) OP_##name,
#include "jit/ops.def"
};
// Which rows on f32 the kernel keeps in registers.
enum : u32 {
#define MAP(name, arity, domain, result, expression, derivative, ulp, ...) IS_FAST_##name = is_fast(#name, ulp),
#include "jit/ops.def"
};
enum : u32 {
#define DTYPE(name, ...) TYPE_##name,
#include "jit/dtypes.def"
#undef DTYPE
};

// ---- maps --------------------------------------------------------------------------------------------------------------

#define K(v) (T)(v)
#define UNROLLED_MAPS ROLLED
#define MAP_Any ROW
#define MAP_Keep ROW

#define MAP_Real ROW
#define MAP_Bits(...)
#define MAP_Logic(...)
#define IS_FAST_TYPE true
#define T f32
#define F(f) f##_f32
#define MAPS map_f32
#include "lib/backend/cuda/interpreter_maps.cuh"
#undef IS_FAST_TYPE
#define IS_FAST_TYPE false
#undef T
#undef F
#undef MAPS
#define T f64
#define F(f) f##_f64
#define MAPS map_f64
#include "lib/backend/cuda/interpreter_maps.cuh"
#undef T
#undef F
#undef MAPS

#undef MAP_Real
#undef MAP_Bits
#define MAP_Real(...)
#define MAP_Bits ROW
#define T i32
#define F(f) f##_i32
#define MAPS map_i32
#include "lib/backend/cuda/interpreter_maps.cuh"
#undef T
#undef F
#undef MAPS
#define T i64
#define F(f) f##_i64
#define MAPS map_i64
#include "lib/backend/cuda/interpreter_maps.cuh"
#undef T
#undef F
#undef MAPS
#define T u64
#define F(f) f##_u64
#define MAPS map_u64
#include "lib/backend/cuda/interpreter_maps.cuh"
#undef T
#undef F
#undef MAPS

// Bools are numbers of 32 bits, too.
#undef MAP_Logic
#define MAP_Logic ROW
#define T u32
#define F(f) f##_u32
#define MAPS map_u32
#include "lib/backend/cuda/interpreter_maps.cuh"
#undef T
#undef F
#undef MAPS
#undef K
#undef UNROLLED_MAPS
#undef IS_FAST_TYPE
#undef MAP_Any
#undef MAP_Keep
#undef MAP_Real
#undef MAP_Bits
#undef MAP_Logic

// ---- conversions (contract N2) -----------------------------------------------------------------------------------------

// A number of a format of fewer bits is rounded once: wider ones come as f32 whose last bit says that something was cut off.
DEVICE f32 odd_of(f32 x) { return x; }
DEVICE f32 odd_of(f64 x) { return odd_of_f64(x); }
DEVICE f32 odd_of(i32 x) { return odd_of_i64(x); }
DEVICE f32 odd_of(u32 x) { return odd_of_u64(x); }
DEVICE f32 odd_of(i64 x) { return odd_of_i64(x); }
DEVICE f32 odd_of(u64 x) { return odd_of_u64(x); }

template <class From> constexpr bool IS_FLOAT = false;
template <> constexpr bool IS_FLOAT<f32> = true;
template <> constexpr bool IS_FLOAT<f64> = true;

#define TO_INTEGER(I, Held)                                                     \
    case TYPE_##I:                                                              \
        ROLLED for (u32 e = 0; e < ITEMS; e++) {                                \
            const From x = read<From>(from, e);                                 \
            if constexpr (sizeof(From) == 8 && IS_FLOAT<From>) write(out, e, (Held)I##_of_f64((f64)x)); \
            else if constexpr (IS_FLOAT<From>) write(out, e, (Held)I##_of_f32((f32)x)); \
            else write(out, e, (Held)(I)x);                                     \
        }                                                                       \
        break;
#define TO_NARROW(F)                                                            \
    case TYPE_##F:                                                              \
        ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, round_##F(odd_of(read<From>(from, e)))); \
        break;
#define TO_FLOAT(F)                                                             \
    case TYPE_##F:                                                              \
        ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, (F)read<From>(from, e)); \
        break;
template <class From>
SLOW_CALL void convert_from(u32 to, Operand out, Operand from)
{
    switch (to) {
        TO_INTEGER(i8, i32) TO_INTEGER(i16, i32) TO_INTEGER(i32, i32) TO_INTEGER(i64, i64)
        TO_INTEGER(u8, u32) TO_INTEGER(u16, u32) TO_INTEGER(u32, u32) TO_INTEGER(u64, u64)
        TO_NARROW(f16) TO_NARROW(bf16) TO_NARROW(e4m3) TO_NARROW(e5m2)
        TO_FLOAT(f32) TO_FLOAT(f64)
    case TYPE_bool_:
        ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, (u32)(read<From>(from, e) != 0));
        break;
    default: break;
    }
}
#undef TO_INTEGER
#undef TO_NARROW
#undef TO_FLOAT

SLOW_CALL void convert(u32 lane, u32 to, Operand out, Operand from)
{
    switch (lane) {
    case LANE_F32: convert_from<f32>(to, out, from); break;
    case LANE_F64: convert_from<f64>(to, out, from); break;
    case LANE_I32: convert_from<i32>(to, out, from); break;
    case LANE_U32: convert_from<u32>(to, out, from); break;
    case LANE_I64: convert_from<i64>(to, out, from); break;
    case LANE_U64: convert_from<u64>(to, out, from); break;
    default: break;
    }
}

// What memory holds, in the low bits, and the number that is held for it.
DEVICE u32 decoded(u32 type, u32 code)
{
    switch (type) {
    case TYPE_bool_: return (code & 0xff) != 0;
    case TYPE_i8: return (u32)(i32)(i8)code;
    case TYPE_i16: return (u32)(i32)(i16)code;
    case TYPE_u8: return (u8)code;
    case TYPE_u16: return (u16)code;
    case TYPE_f16: return bits_f32(f32_of_f16((f16)code));
    case TYPE_bf16: return bits_f32(f32_of_bf16((bf16)code));
    case TYPE_e4m3: return bits_f32(f32_of_e4m3((e4m3)code));
    case TYPE_e5m2: return bits_f32(f32_of_e5m2((e5m2)code));
    default: return code;
    }
}
DEVICE u32 encoded(u32 type, u32 x)
{
    switch (type) {
    case TYPE_f16: return f16_of_f32(f32_bits(x));
    case TYPE_bf16: return bf16_of_f32(f32_bits(x));
    case TYPE_e4m3: return e4m3_of_f32(f32_bits(x));
    case TYPE_e5m2: return e5m2_of_f32(f32_bits(x));
    default: return x;
    }
}
SLOW_CALL void decode(u32 type, Operand out, Operand from)
{
    ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, decoded(type, read<u32>(from, e)));
}
SLOW_CALL void encode(u32 type, Operand out, Operand from)
{
    ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, encoded(type, read<u32>(from, e)));
}

// ---- chance ------------------------------------------------------------------------------------------------------------

SLOW_CALL void draw(u32 kind, Operand out, Operand index, Operand key, Operand step)
{
    ROLLED for (u32 e = 0; e < ITEMS; e++) {
        const i64 i = read<i64>(index, e);
        const u64 k = read<u64>(key, e), s = read<u64>(step, e);
        switch (kind) {
        case DRAW_BITS: write(out, e, random_bits(i, k, s)); break;
        case DRAW_WORD3: write(out, e, random_word3(i, k, s)); break;
        case DRAW_UNIFORM_F32: write(out, e, uniform_f32(i, k, s)); break;
        case DRAW_UNIFORM_F64: write(out, e, uniform_f64(i, k, s)); break;
        case DRAW_NORMAL_F32: write(out, e, normal_f32(i, k, s)); break;
        default: write(out, e, normal_f64(i, k, s)); break;
        }
    }
}
// Numbers from `how` on: bits, least, saturates, largest.
SLOW_CALL void round_by_chance(u32 code, Operand out, Operand from, Operand word, u32 how)
{
    const auto number = [how](u32 k) { return Operand{how + k * UNIT_BYTES, 0}; };
    const i32 bits = read<i32>(number(0), 0);
    if (code == CHANCE_BITS) {
        ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, stochastic_bits_f64(read<f64>(from, e), read<u32>(word, e), bits));
        return;
    }
    const i32 least = read<i32>(number(1), 0);
    const bool saturates = read<u32>(number(2), 0) != 0;
    if (code == CHANCE_F32) {
        const f32 largest = read<f32>(number(3), 0);
        ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, stochastic_f32(read<f32>(from, e), read<u32>(word, e), bits, least, largest, saturates));
    } else {
        const f64 largest = read<f64>(number(3), 0);
        ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, stochastic_f64(read<f64>(from, e), read<u32>(word, e), bits, least, largest, saturates));
    }
}

}  // namespace ng::interpreter
