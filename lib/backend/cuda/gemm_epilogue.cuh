// Carries out the steps of an epilogue on a few neighbours of one row of a matrix product.
//
// Its includer has the preludes before it: the functions of f32 are those of every other fused kernel, so that a result does
// not depend on what was fused (contract N1).
#pragma once
#include "kernels/elements.cuh"
#include "kernels/gemm_epilogue.h"

namespace ng::kernels {
namespace {

enum : i32 {
#define NODE(name, ...) OP_##name,
#define MAP(name, ...) OP_##name,
#define FOLD(name, ...) OP_##name,
#define STAT(name, ...) OP_##name,
#define NORM(name, ...) OP_##name,
#include "jit/ops.def"
#undef NODE
#undef MAP
#undef FOLD
#undef STAT
#undef NORM
    OPS
};
enum : i32 {
#define NODE(...)
#define MAP(name, ...) IS_EPILOGUE_##name = is_epilogue_map(#name),
#define FOLD(...)
#define STAT(...)
#define NORM(...)
#include "jit/ops.def"
#undef NODE
#undef MAP
#undef FOLD
#undef STAT
#undef NORM
};

// One map of each of v, with o and `high` as its other operands. One branch for all of them: a branch for each took 50 us
// longer a step over 4096 x 4096 sums on an H200.
template <int COUNT>
DEVICE void map_neighbours(i32 op, float (&v)[COUNT], const float (&o)[COUNT], float high)
{
    switch (op) {
    case OP_gelu:                                            // as jit/emit_vectors.cc prints it
        UNROLLED for (int j = 0; j < COUNT; j++) v[j] *= near_normcdf(v[j]);
        return;
#define T float
#define K(v) float(v)
#define F(f) f##_f32
#define NODE(...)
#define FOLD(...)
#define STAT(...)
#define NORM(...)
#define MAP(name, arity, domain, result, expression, ...) MAP_##domain(name, expression)
#define MAP_Any ROW
#define MAP_Keep ROW
#define MAP_Real ROW
#define MAP_Bits(...)
#define MAP_Logic(...)
#define ROW(name, expression)                                                                                           \
    case OP_##name + (OP_##name == OP_gelu ? OPS : 0):                                                                  \
        if constexpr (IS_EPILOGUE_##name && OP_##name != OP_gelu)                                                       \
            UNROLLED for (int j = 0; j < COUNT; j++) {                                                                  \
                const float x = v[j], y = o[j], z = high;                                                               \
                (void)y, (void)z;                                                                                       \
                v[j] = float(expression);                                                                               \
            }                                                                                                           \
        return;
#include "jit/ops.def"
#undef T
#undef K
#undef F
#undef NODE
#undef FOLD
#undef STAT
#undef NORM
#undef MAP
#undef MAP_Any
#undef MAP_Keep
#undef MAP_Real
#undef MAP_Bits
#undef MAP_Logic
#undef ROW
    default: return;
    }
}

// Where a step's operand for this row begins, and for how many of COUNT columns it is there.
struct EpilogueSpot {
    i64 batch, row, column;
    int valid;
};

// COUNT elements side by side: one access where they lie so.
template <int COUNT>
DEVICE void load_neighbours(const EpilogueStep& s, const EpilogueSpot& at, float (&o)[COUNT])
{
    const i64 first = at.batch * s.batch + at.row * s.row + at.column * s.column;
    if (s.column == 0) {
        const float same = at.valid > 0 ? load<float>(s.type, s.tensor, first) : 0;
        UNROLLED for (int j = 0; j < COUNT; j++) o[j] = same;
        return;
    }
    const u64 address = reinterpret_cast<u64>(s.tensor) + u64(first) * u64(bytes_of(s.type));
    if constexpr (COUNT % 2 == 0)
        if ((s.type == F16 || s.type == BF16) && s.column == 1 && at.valid == COUNT && address % 4 == 0) {
            UNROLLED for (int j = 0; j < COUNT; j += 2) {
                const u32 pair = reinterpret_cast<const u32*>(address)[j / 2];
                o[j] = narrow_number(s.type, pair & 0xffff), o[j + 1] = narrow_number(s.type, pair >> 16);
            }
            return;
        }
    UNROLLED for (int j = 0; j < COUNT; j++) o[j] = j < at.valid ? load<float>(s.type, s.tensor, first + j * s.column) : 0;
}

// v: the sums at `at` and the columns behind it.
template <int COUNT>
DEVICE void run_epilogue(const Epilogue& e, const EpilogueSpot& at, float (&v)[COUNT])
{
    float kept[COUNT] = {};
    ROLLED for (i32 i = 0; i < e.count; i++) {
        const EpilogueStep& s = e.step[i];
        float o[COUNT];
        if (s.source == FROM_TENSOR) load_neighbours(s, at, o);
        else UNROLLED for (int j = 0; j < COUNT; j++) o[j] = s.source == FROM_KEPT ? kept[j] : s.number;
        if (s.is_turned) {
            UNROLLED for (int j = 0; j < COUNT; j++) {
                const float x = v[j];
                v[j] = o[j], o[j] = x;
            }
        }
        if (s.op == EPILOGUE_KEEP) {
            UNROLLED for (int j = 0; j < COUNT; j++) kept[j] = v[j];
        } else if (s.op == EPILOGUE_ROUND) {
            UNROLLED for (int j = 0; j < COUNT; j++) v[j] = as_stored(s.type, v[j]);
        } else {
            map_neighbours(s.op, v, o, s.high);
        }
    }
}

}  // namespace
}  // namespace ng::kernels
