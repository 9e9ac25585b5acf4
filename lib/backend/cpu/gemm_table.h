// What products ask of an instruction set: tiles of the packed GEMM, packing and widening of panels, direct loops.
#pragma once
#include "jit/dtype.h"

#include <cstdint>

namespace ng::cpu {

// What panels hold, and with it the arithmetic of a tile. Integers wrap, so signs do not matter past widening.
//   PACKED_I16: 8-bit integers in pairs, two steps of depth side by side; accumulates in 32 bits
//   PACKED_BYTES, PACKED_BRAINS: the same by fours, and bfloat16 by twos, where the processor multiplies such
enum Packed { PACKED_F32, PACKED_F64, PACKED_U32, PACKED_U64, PACKED_I16, PACKED_BYTES, PACKED_BRAINS, PACKED_KINDS };

constexpr int WINDOW_AXES = 3;
constexpr int STEPS_AHEAD = 16;                  // of depth, that tiles ask for

// Where one index of a matrix is: its offset in elements, and its share of the coordinates that must lie in the tensor.
struct Point {
    int64_t offset;
    int64_t at[WINDOW_AXES];
};

// A range of one index of a matrix. It falls into runs of at most `extent` along its fastest axis, `position` of the first
// already gone; along a run the offset grows by `step`, coordinate `bound` (-1: none) by `advance`.
struct Strand {
    const Point* points;
    int64_t      count, position, extent, step, advance;
    int          bound;
};

// A matrix of bytes or 16-bit elements with steps of its own, both in elements. Of lines and depth one is consecutive, or it is
// turned element by element. It becomes panels of `width` lines in units of four bytes, [depth / unit][width][unit], panel_bytes
// apart, each unit with the bits of `flip` turned; past its lines and its depth are zeros, turned as well.
struct WeaveSource {
    const char* data;
    int64_t     lines, depth, line_step, depth_step, panel_bytes;
    int         width;
    uint32_t    flip;
};

// A panel of a matrix: element (line, depth) is at data + lines' offset + depth's offset when every coordinate, the sum of
// both points', is inside [0, limit); `fill` otherwise. In memory [depth][width], zeros past its lines.
// panel_step: 0, or there are as many panels as lines fill, so many elements apart; lines are one run of consecutive elements
// then, of 4 or 8 bytes, and nothing is bounded.
struct PanelSource {
    const char* data;
    Strand      lines, depth;
    int64_t     limit[WINDOW_AXES];
    int         bounds, width;
    uint64_t    fill;
    int64_t     panel_step;
};

// The part of a tile that is stored: element (i, j) at data + (rows[i] + columns[j]) elements.
struct TileTarget {
    char*          data;
    const int64_t *rows, *columns;
    int64_t        row_count, column_count;
    bool           accumulate;
};

// c[rows][columns] (+)= a panel of rows times a panel of columns; depth counts units.
// Where x[j] is greater than best[j], or the first NaN, or the first of all (at[j] < 0), both become this one. Elements are of the
// widened type of the operand, `at` integers of its size.
using PoolMost = void (*)(void* best, void* at, const void* x, int64_t position, int64_t count);
using TileLoop = void (*)(int64_t depth, const void* a, const void* b, void* c, int64_t row_stride, bool accumulate);
// The same where columns lie side by side in memory at each step of depth: b + steps[p], in elements. Of STEPS_AHEAD steps beyond the last
// one some place is told as well.
using TileInPlace = void (*)(int64_t depth, const void* a, const void* b, const int64_t* steps, void* c, int64_t row_stride, bool accumulate);
using TileStore = void (*)(const void* tile, int64_t tile_columns, const TileTarget& target);
using PanelPack = void (*)(void* panel, const PanelSource& source);
using PanelWeave = void (*)(void* panels, const WeaveSource& source);
// Writes what follows the units of a panel, a number of 32 bits a line; see gemm_narrow.h.
using PanelFinish = void (*)(void* panel, int64_t units, int width, bool is_rows, bool flipped, bool other);
using PanelWiden = void (*)(void* out, const void* in, int64_t count);

struct TileKind {
    TileLoop tile;
    int      rows, columns, unit;
    int      packed_bytes, accumulator_bytes;
    int64_t  depth, block_rows, block_columns;   // of what is packed at once; multiples of unit, rows, columns
    TileLoop last;                               // of the same panels, the first last_rows rows alone
    int      last_rows;                          // 0: there is none
    PanelFinish finish;                          // null: panels are their units alone
    TileInPlace in_place, last_in_place;         // null: there are none
};

struct DirectLoops {
    // sum[j] += factors[l] * lines[l][j] for all l
    void (*combine)(void* sum, const void* const* lines, const void* factors, int64_t line_count, int64_t count);
    // sum[j] += x[l][j] * y[l][j] for all l
    void (*multiply)(void* sum, const void* const* x, const void* const* y, int64_t line_count, int64_t count);
    void (*dot)(void* sum, const void* x, const void* y, int64_t count);   // *sum += x . y
};

struct ProductTable {
    const char* name;                             // "x86-64-v4"
    TileKind    tile[PACKED_KINDS];
    PanelPack   pack[4];                          // [log2 of an element's bytes]
    PanelWeave  weave[2];                         // the same, for units of four bytes; null: no panels are made of such
    PanelWiden  widen[PACKED_KINDS][DTYPES];      // null: such panels hold the type as it is
    TileStore   store[PACKED_KINDS][DTYPES];      // null: no such result
    DirectLoops direct[PACKED_I16];
    PoolMost    most[DTYPES];                     // of x as widen[pool_packed(type)] gives it
};

// Of an element's bytes, as tables count.
constexpr int log2_of(int bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

// What pooling computes maxima of a type in; signs show in the loop.
constexpr Packed pool_packed(Dtype t)
{
    if (t == Dtype::f64) return PACKED_F64;
    if (t == Dtype::i64 || t == Dtype::u64) return PACKED_U64;
    return t == Dtype::f32 || t >= Dtype::f16 ? PACKED_F32 : PACKED_U32;
}

#if defined(__x86_64__)
extern const ProductTable products_v2, products_v3, products_v4;
#else
extern const ProductTable products_generic;
#endif

}  // namespace ng::cpu
