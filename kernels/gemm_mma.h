// What the portable matrix products are told: two operands of any strides, how their depth is cut, and where sums go.
#pragma once
#include "kernels/gemm_epilogue.h"
#include "kernels/gemm_operand.h"

namespace ng::kernels {

// Lines of an operand are rows of a or columns of b.
struct MmaOperand {
    const void* data;
    i64         line, depth, batch;      // strides in elements
    i32         type;
    i32         is_wide;                 // 16 bytes along the near axis are one access wherever they begin in a tile
    i32         is_padded;               // rows go on to a multiple of 16 bytes, with zeros
    i32         is_turned;               // lines are nearer to each other than steps of depth; kernels that say so take either
    i32         reads;                   // SmallReads, of kernels that read an operand where it lies
};
// What a lane of those reads at once: an element, four bytes along depth, all of its piece of these, or an element of each of its lines, which are neighbours.
enum SmallReads { READ_ELEMENTS, READ_WORDS, READ_DEPTH, READ_LINES };

// c[batch, m, n] = epilogue(sum over k of a[batch, m, k] b[batch, k, n]).
struct MmaNumbers {
    MmaOperand a, b;
    void *     c, *partial;              // partial [splits, batches, m, pitch]: sums over parts of k; null: there is one part
    i64        m, n, k, batches, c_row, c_column, c_batch;
    i64        split_depth, pitch;       // pitch: n rounded up to MMA_FOUR
    i32        c_type, splits;
    u32        row_tiles, column_tiles;
    i32        has_fours;                // c is of f32, halves or what sums are; its rows of MMA_FOUR neighbours that lie in one piece each, of 8 bytes an element in two
    Epilogue   epilogue;
};
// b is what the text makes something of; its type says how it lies. Several splits and no room for partial sums: these are a
// cluster, whose blocks share a tile.
struct MmaOperandNumbers {
    MmaNumbers  product;
    OperandText text;
};
// An operand of any strides, and of fp8, to [batches, rows, pitch]: rows are its lines where is_deep, else its steps of depth.
struct MmaLayNumbers {
    MmaOperand from;
    void*      to;
    i64        rows, length, batches, pitch;     // pitch: elements of a row, a multiple of 16 bytes
    i32        is_deep;
};

// Which axis of an operand's tile is near in shared memory; how tiles come there: by the hardware's copies of 16 bytes (single
// elements of 4 and 8), or through registers, from any strides and formats.
enum Near { NEAR_DEPTH, NEAR_LINE };
enum Loads { IN_FLIGHT, IN_REGISTERS };
// Depth of a tile of tensor cores' products, for elements of so many bytes.
ANYWHERE constexpr int mma_depth_bytes(int bytes) { return bytes == 8 ? 128 : 64; }
constexpr int MMA_DEPTH = 64;            // steps of depth, of which every tile has a part
constexpr int MMA_FOUR = 4;              // neighbours of a row that a thread stores at once
constexpr int SMALL_WARPS = 4;           // of a block whose warps have a tile each
// Threads, all or none of a warp's, that add the parts of each of so many fours.
ANYWHERE constexpr int lanes_of_sum(i64 fours, i32 splits) { return splits > 8 && fours <= 4096 ? 32 : 1; }

}  // namespace ng::kernels
