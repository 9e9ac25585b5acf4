// The CPU's loops, compiled once for each instruction set: what one entry of the table does to a block of elements.
#pragma once
#include "jit/dtype.h"
#include "jit/ops.h"

#include <cstdint>

namespace ng::cpu {

// A block is an array of elements of a compute type (bool_ .. f64), 64-byte aligned where it is a register of the
// interpreter, at any alignment where it is a tensor's own memory. out may equal an operand, never overlap it otherwise.

// out[i] = op(x[i], y[i], z[i]). Which operands are one number for the whole block is the loop's mode.
using MapLoop = void (*)(void* out, const void* x, const void* y, const void* z, int64_t count);
enum Mode { MODE_ALL = 0, MODE_X = 1, MODE_Y = 2, MODE_Z = 4, MODES = 7 };  // bits: this operand is one number
// where has every mode; maps of two operands ALL, X and Y; others ALL alone. Blocks of 1 do what has no mode.
// The type of a map of result Bool, and of where, is that of the numbers it looks at; the bools are bool_ blocks.
// Of exp of f32, where it is a link: from here on modes of exp(x - y), ALL and Y.
inline constexpr int OF_DIFFERENCE = MODE_Z;
// A row's loops by mode, as many as it has; none: the type has no such row.
struct MapRow {
    const MapLoop* loops;
    int            modes;
    constexpr MapLoop operator[](int mode) const { return mode < modes ? loops[mode] : nullptr; }
};
// One type's rows, one after the other: most are not of most types, and have one mode or three.
struct MapTable {
    const MapLoop* loops;
    uint16_t       first[OPS + 1];                      // row op: from first[op] on, until first[op + 1]
    constexpr MapRow operator[](int op) const
    {
        const int modes = first[op + 1] - first[op];
        return {modes ? loops + first[op] : nullptr, modes};
    }
};
// map[op][type][mode]; null where the row has no such type or mode. Each type's loops are an object of their own.
struct MapTables {
    struct Row {
        const MapTables* tables;
        int              op;
        constexpr MapRow operator[](int type) const { return (*tables->of_type[type])[op]; }
    };
    const MapTable* of_type[COMPUTE_TYPES];
    constexpr Row operator[](int op) const { return {this, op}; }
};

// Memory of any dtype to registers of its compute type, and back (rounding is convert's: a store only changes the
// encoding of a value that the dtype holds exactly). stride in elements of memory, any sign, 0 for loads.
using LoadLoop = void (*)(void* out, const void* in, int64_t stride, int64_t count);
using StoreLoop = void (*)(void* out, int64_t stride, const void* in, int64_t count);
// As a store with stride 1, past the caches; out is aligned to 64 bytes and count is a multiple of 64.
using StreamLoop = void (*)(void* out, const void* in, int64_t count);
// From one compute type to a dtype's value, held in its compute type: f32 -> f16 rounds and stays in f32 registers (N2).
using ConvertLoop = void (*)(void* out, const void* in, int64_t count);
// out[i] = base[index[i] * stride] of a dtype's memory where 0 <= index[i] < extent, else 0. index: i64 register.
using GatherLoop = void (*)(void* out, const void* base, const int64_t* index, int64_t extent, int64_t stride, int64_t count);
// out[i] = start + i * step, as i64
using RampLoop = void (*)(int64_t* out, int64_t start, int64_t step, int64_t count);
// Contract N8: numbers of the counter (index[i], step) under key. index: i64 register.
using RandomLoop = void (*)(void* out, const int64_t* index, uint64_t key, uint64_t step, int64_t count);
// out[i] = x[i] rounded to `bits` of mantissa of dtype (0: all it has), away from zero when word[i] says so.
using StochasticLoop = void (*)(void* out, const void* x, const uint32_t* word, uint32_t bits, int64_t count);

// One accumulator for a whole block (along), or one for each element of it (across).
using FoldAlong = void (*)(void* accumulator, const void* x, int64_t count);
using FoldAcross = void (*)(void* accumulators, const void* x, int64_t count);
// argmin, argmax: the best so far and where; the first of equals, NaN wins. Element i of the block is at first + i * step.
// at < 0: nothing so far. Among equals the lesser position wins, so partial results merge as blocks of 1 in any order.
using ArgAlong = void (*)(void* best, int64_t* at, const void* x, int64_t first, int64_t step, int64_t count);
// every element of the block is at position `position` of its own column
using ArgAcross = void (*)(void* best, int64_t* at, const void* x, int64_t position, int64_t count);
// Sums down several rows of a dtype's memory.
struct RowSums {
    const void* x;
    int64_t     stride, rows, count;                    // elements from one row to the next; rows; elements of a row
    double*     sums;                                   // [count]
    bool        is_far = false;                         // rows may not be in the caches
    bool        is_first = false;                       // sums begin here, whatever is there
    float*      rounded = nullptr;                      // [count]; null, or where sums go instead, for these rows are the last
};
using SumRows = void (*)(const RowSums& r);

struct FoldLoops {
    FoldAlong  along;       // x: the compute type; accumulator: of accumulator_of(fold, type)
    FoldAlong  exact;       // each number in the accumulator's type: for what goes on from a partial result
    FoldAcross across;
    FoldAlong  merge;       // one accumulator into another of its type: merge(into, from, 1)
    ArgAlong   arg_along;   // of argmin and argmax, which have these instead
    ArgAcross  arg_across;
};

// fold[op][type]: rows of FOLD only, which lie together in ops.def.
inline constexpr int FIRST_FOLD = int(Op::sum), FOLDS = int(Op::all) - FIRST_FOLD + 1;
struct FoldTables {
    FoldLoops loops[FOLDS][COMPUTE_TYPES];
    constexpr const FoldLoops* operator[](int op) const { return loops[op - FIRST_FOLD]; }
};

// How an operand lies in memory: a block of f32, one number, a block of codes of f16 or bf16, or one bundle that the chain
// itself keeps.
enum class Form : uint8_t { Block, One, F16, Bf16, Near };
inline constexpr int FORMS = 5;

// A chain is a list of links that a bundle of f32 goes through in vector registers: each takes the bundle as its first
// operand, and its result is the bundle. Only what a bundle meets lies in memory.
enum LinkCode : uint16_t {
    LINK_GET = 0,                                       // + form: the bundle is the operand
    LINK_KEEP = FORMS,                                  // the bundle is written to a block of f32 as well
    LINK_KEEP_NEAR,
    LINK_ROUND_F16, LINK_ROUND_BF16,
    LINK_PUT_F32, LINK_PUT_F16, LINK_PUT_BF16,          // written as a dtype's memory, which holds it exactly
    LINK_ROUNDED_F16, LINK_ROUNDED_BF16,                // written rounded, the bundle is lost
    LINK_MAP,                                           // + link_of_map
};
inline constexpr int LINK_PUTS = LINK_MAP - LINK_PUT_F32;
constexpr int link_of_map(Op op, Form form, bool is_swapped) { return LINK_MAP + (int(op) * 2 + is_swapped) * FORMS + int(form); }
inline constexpr int LINK_CODES = LINK_MAP + OPS * 2 * FORMS;
struct Link {
    uint16_t code;
    bool     is_streaming;                              // of LINK_PUT .. LINK_ROUNDED: past the caches; aligned to 64 bytes
    uint8_t  bytes;                                     // of an element in memory
    union {
        char*    memory;
        float    number;                                // of Form::One
        uint64_t near;                                  // of Form::Near: which
    };
};
inline constexpr int MAX_NEAR = 16;
inline constexpr int MAX_LINKS = 96, MAX_MET = 24;       // of a chain, and how many of them meet memory

// What will be read soon, and is asked for meanwhile: so much with each element of what is computed now.
struct Ahead {
    const char* from;
    int64_t     bytes, element_bytes;
};
struct Aheads { const Ahead* first; int count; };
using ChainLoop = void (*)(const Link* links, int links_count, int64_t count, Aheads aheads);

// Functions of f32 that AVX-512 computes by curves_wide.h.
#define WIDE_CURVES(DO) DO(tanh) DO(sigmoid) DO(silu) DO(gelu) DO(gelu_tanh)

// Rows that have links: those that a few instructions compute, for a longer one gains nothing by staying in registers. vector_bytes:
// of the instruction set.
constexpr bool is_link(Op op, int vector_bytes)
{
    switch (op) {
#define CURVE(name) case Op::name:
    case Op::exp: WIDE_CURVES(CURVE) return vector_bytes == 64;        // 14 to 35 instructions
#undef CURVE
    case Op::add: case Op::sub: case Op::mul: case Op::div: case Op::maximum: case Op::minimum: case Op::fmax: case Op::fmin:
    case Op::copysign: case Op::neg: case Op::abs: case Op::floor: case Op::ceil: case Op::trunc: case Op::rint: case Op::square:
    case Op::reciprocal: case Op::sqrt: case Op::rsqrt: case Op::relu: case Op::relu6: return true;
    default: return false;
    }
}

enum RandomKind { RANDOM_BITS, RANDOM_WORD3, RANDOM_UNIFORM32, RANDOM_UNIFORM64, RANDOM_NORMAL32, RANDOM_NORMAL64, RANDOM_KINDS };

struct IsaTable {
    const char*    name;                                // "x86-64-v4"
    MapTables      map;                                 // map[op][type][mode]
    LoadLoop       load[DTYPES];
    StoreLoop      store[DTYPES];
    StreamLoop     stream[DTYPES];
    ConvertLoop    convert[COMPUTE_TYPES][DTYPES];
    GatherLoop     gather[DTYPES];
    RampLoop       ramp;
    RandomLoop     random[RANDOM_KINDS];
    StochasticLoop stochastic[2][DTYPES];               // from f32, from f64, to a float dtype
    FoldTables     fold;                                // fold[op][type]
    SumRows        sum_rows[DTYPES];                    // by memory's type; null where a row a turn does as well
    int            vector_bytes;
    ChainLoop      chain;                               // null where an instruction set has too few registers for it
};

// Sums and products of f32 accumulate in f64 and are rounded once; all else in its own type. Up to four numbers of a sum meet
// as f32: no worse than pairwise (N5).
inline Dtype accumulator_of(Op fold, Dtype t)
{
    return t == Dtype::f32 && (fold == Op::sum || fold == Op::prod) ? Dtype::f64 : t;
}

// The best table that this CPU runs; the name of a level ("x86-64-v2") or null for the best. Null when it has no such level.
const IsaTable* isa_table(const char* level);

}  // namespace ng::cpu
