// Rows of ops.def as the interpreter computes them in one type, item by item: included once for each type.
//
// T is the type, MAPS the function's name, F(f) and K(v) as ops.def says, and CASE_<domain> whether such rows have this type.
// No pragma once: this is text, and its includer undefines what it defined.
SLOW_CALL void MAPS(u32 op, Operand out, Operand xs, Operand ys, Operand zs)
{
    switch (op) {
#define MAP(name, arity, domain, result, expression, derivative, ...) MAP_##domain(name, arity, result, expression)
#define ROW(name, arity, result, expression)                                                 \
    case OP_##name:                                                                                     \
        if constexpr (!IS_FAST_TYPE || !IS_FAST_##name) {                                          \
            UNROLLED_MAPS for (u32 e = 0; e < ITEMS; e++) {                                             \
                const T x = read<T>(xs, e), y = arity > 1 ? read<T>(ys, e) : x, z = arity > 2 ? read<T>(zs, e) : x; \
                (void)y, (void)z;                                                                       \
                write(out, e, (RESULT_##result)(expression));                                           \
            }                                                                                           \
        }                                                                                               \
        break;
#define RESULT_Same T
#define RESULT_Bool u32
#include "jit/ops.def"
#undef ROW
#undef RESULT_Same
#undef RESULT_Bool
    default: break;
    }
}
