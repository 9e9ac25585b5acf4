// Rows of ops.def on f32 as cases of the interpreter's switch: the one operand in a, others in slots; the result in a.
//
// No pragma once: this is text.
#define T f32
#define K(v) (f32)(v)
#define F(f) f##_f32
#define MAP(name, arity, domain, result, expression, derivative, ...) MAP_##domain(name, arity, result, expression)
#define MAP_Any ROW
#define MAP_Keep ROW
#define MAP_Real ROW
#define MAP_Bits(...)
#define MAP_Logic(...)
#define RESULT_Same f32
#define RESULT_Bool bool
#define EACH(x_is, y_is, z_is, name, arity, result, expression)                           \
    UNROLLED for (int e = 0; e < ITEMS; e++) {                                          \
        const f32 x = f32_bits(x_is), y = f32_bits(y_is), z = f32_bits(z_is);           \
        (void)y, (void)z;                                                               \
        a[e] = held((RESULT_##result)(expression));                                     \
    }
#define CODE(kind, name) FAST + kind * FAST_ROWS + (OP_##name - OP_add)
#define ROW(name, arity, result, expression)                                            \
    case CODE(OF_SLOT, name):                                                           \
        if constexpr (IS_FAST_##name && arity == 1) {                                   \
            EACH(a[e], a[e], a[e], name, arity, result, expression)                     \
        } else if constexpr (IS_FAST_##name && arity == 2) {                            \
            u32 b[ITEMS];                                                               \
            read_items(slot_at(n, p, i.more), b);                                       \
            EACH(a[e], b[e], a[e], name, arity, result, expression)                     \
        } else if constexpr (IS_FAST_##name) {                                          \
            u32 b[ITEMS], c[ITEMS];                                                     \
            read_items(operand_of(n, p, i.y), b);                                     \
            read_items(operand_of(n, p, i.z), c);                                     \
            EACH(a[e], b[e], c[e], name, arity, result, expression)                     \
        }                                                                               \
        continue;                                                                       \
    case CODE(OF_NUMBER, name):                                                         \
        if constexpr (IS_FAST_##name && arity == 2) {                                   \
            const u32 b = number_at(p, i.more);                                         \
            EACH(a[e], b, a[e], name, arity, result, expression)                        \
        }                                                                               \
        continue;                                                                       \
    case CODE(TURNED_SLOT, name):                                                       \
        if constexpr (IS_FAST_##name && arity == 2) {                                   \
            u32 b[ITEMS];                                                               \
            read_items(slot_at(n, p, i.more), b);                                       \
            EACH(b[e], a[e], a[e], name, arity, result, expression)                     \
        }                                                                               \
        continue;                                                                       \
    case CODE(TURNED_NUMBER, name):                                                     \
        if constexpr (IS_FAST_##name && arity == 2) {                                   \
            const u32 b = number_at(p, i.more);                                         \
            EACH(b, a[e], a[e], name, arity, result, expression)                        \
        }                                                                               \
        continue;
#include "jit/ops.def"
#undef T
#undef K
#undef F
#undef MAP_Any
#undef MAP_Keep
#undef MAP_Real
#undef MAP_Bits
#undef MAP_Logic
#undef RESULT_Same
#undef RESULT_Bool
#undef ROW
#undef EACH
#undef CODE
