// What the products of Hopper's tensor cores are told: tensor maps, extents, how sums are stored, and their epilogue.
#pragma once
#include "kernels/gemm_epilogue.h"
#include "kernels/gemm_operand.h"

namespace ng::kernels {

// As the driver encodes it: what the copy engine knows of a tensor.
struct alignas(128) TensorMap {
    u64 opaque[16];
};

// How sums leave a block.
enum GemmStore : i32 {
    STORE_HALVES,                        // f16 or bf16 by the copy engine: c aligned to 16 bytes, no epilogue
    STORE_WORDS,                         // the same of 32 bits
    STORE_FOURS,                         // by threads, four neighbours at once: c aligned to four elements
    STORE_SINGLES,                       // by threads, a warp a row
    STORE_APART,                         // one by one, columns c_column elements apart: of splits that may turn what they give, and what adds their parts
};

// c [batches, m, n], rows of c_row elements, columns side by side but where c_column says how far apart they are. is_turned: a split's tiles are of c's
// transpose, and are finished as c, whose rows are their columns.
struct GemmOutput {
    void*    c;
    i64      c_row, c_column, c_batch;
    i32      m, n, c_type, store, is_turned;
    Epilogue epilogue;
};

// f32 as it comes: sums of planes that are no numbers are computed again from it.
struct PlainOperands {
    const float *a, *b;
    i64          a_row, a_depth, a_batch, b_depth, b_column, b_batch, k;
};

// Which of a box's batches goes with one of c: the same with all, as many as c has, or those of one axis where c's are two.
enum BoxMoves : i32 { BOX_STAYS, BOX_MOVES, BOX_OF_INNER, BOX_OF_OUTER };

// Stream-K (gemm_sm90_stream_k.cuh): the steps of depth of the first `tiles` tiles, one tile after the other, are dealt to the clusters, to each as many.
struct StreamK {
    float* partial;                      // [blocks][2 warpgroups][a thread's sums / 4][128 threads][4]: of the tile that a cluster begins and another goes on with
    u64*   arrived;                      // [blocks][2]: the ticket, when these are there. No other launch has the same, so these may hold anything before
    u64    ticket;
    i32    tiles, steps, longer;         // steps: a cluster's; so many have one more
};

// A block a tile of c after the other, a cluster as many side by side. a [batches, m, k] and b [batches, k, n] by their maps, of which each has its depth or
// its rows (columns) side by side; batch i is at i * a_moves. f32 comes as three planes of bf16 for each batch.
struct GemmTilesNumbers {
    TensorMap    a, b, c;
    TensorMap    a_edge, b_edge;         // the same by shorter boxes, of the last tile: as its lines are there (tile_lines)
    i32          k_steps, row_clusters, column_clusters, batches, group;
    i32          a_moves, b_moves;
    i32          a_lines, b_lines;       // of all tiles: rows, columns; or more, where none is to be left out
    i32          planes, promote;        // planes: of f32, 3, else 1; promote: steps between moves of the sums to f32
    PlainOperands plain;
    GemmOutput   output;
    TensorMap    box;                    // of the epilogue's tensor that comes by the copy engine; or, of c, for a tile's columns beyond a multiple of 64
    i32          box_moves;
    StreamK      stream_k;
};

// Tiles whose depth is cut among the blocks of a cluster, and among `splits` clusters.
struct GemmSplitNumbers {
    TensorMap  a, b;
    float*     partial;                  // [splits, batches, m, n] dense; null: splits is 1
    i32        k_steps, row_tiles, column_tiles, splits, batches, a_moves, b_moves, planes;
    i32        tile_rows, tile_columns;  // that count: where the depth lies side by side fewer may come than a tile has, so that tiles are as many as find room
    i32        part_steps, longer_parts; // steps of a part, of all products of planes; so many parts have one more
    i32        tiles, together;          // times splits and batches; of which a launch's cluster has so many, but for the last, whose other blocks have nothing to do
    u32        blocks, unit_share;       // that share a tile; of UNIT_SHARES, a block's, and one more: so that units times blocks times it gives what a division would
    PlainOperands plain;
    GemmOutput output;
};
constexpr u32 UNIT_SHARES = 4096, MOST_UNITS = 64;
// Of so many planes of each operand, those products of planes that count.
ANYWHERE constexpr i32 products_of(i32 planes) { return planes == 3 ? 6 : 1; }

// Lines at distances that are no multiple of 16 bytes, for the copy engine: eight of them are a line of its map, at a distance that is one. Line i
// of eight begins at element `first + i * distance`. Of the last, incomplete eight the map `rest` has `more`.
struct OddLines {
    TensorMap rest;
    i32       first, distance, more;
};
// A split whose b, turned, comes so; its map in `split` is of whole eights.
struct GemmOddNumbers {
    GemmSplitNumbers split;
    OddLines         b;
};

// A split whose a is bytes that a text makes halves of; lines, depth: how many there are.
struct GemmMadeNumbers {
    GemmSplitNumbers split;
    i32              lines, depth;
    OperandText      text;
};

// c = epilogue(the sum of the parts, in their order).
struct GemmSumNumbers {
    const float* partial;                // [splits, batches, m, n]
    i32          splits, batches;
    GemmOutput   output;
};

// Rows of `columns` elements of 16 bits at any address to rows of `pitch`, a multiple of 8.
struct GemmPitchNumbers {
    const void* from;
    void*       to;
    const void* end;                     // of what may be read
    i64         rows, columns, from_row, from_batch, pitch, batches;
};

// Words or bytes [batches, columns, rows], rows side by side, to [batches, rows, pitch]; pitch: of bytes a multiple of 16.
struct GemmTurnNumbers {
    const void* from;
    void*       to;
    i64         rows, columns, from_column, from_batch, pitch, batches;
};

// f32 to three planes of bf16, whose values times 1, 2^-8 and 2^-16 are its own: to [batches, 3, rows, pitch].
struct GemmPlanesNumbers {
    const float* from;
    void*        to;
    i64          rows, columns, from_row, from_column, from_batch, pitch, batches;
};

// ---- instances ------------------------------------------------------------------------------------------------------------

// Each group of rows of gemm_sm90.def is for these: X(types, way, kind of operands, a turned, b turned, promote, row..). Way: how
// a and b lie, n: rows side by side, t: columns; turned: not depth is side by side, but rows of a or columns of b.
#define GEMM_SM90_Half(X, ...)                                                                                                     \
    X(f16, nn, OfF16, 0, 1, false, __VA_ARGS__)                                                                                    \
    X(f16, nt, OfF16, 0, 0, false, __VA_ARGS__)                                                                                    \
    X(f16, tn, OfF16, 1, 1, false, __VA_ARGS__)                                                                                    \
    X(f16, tt, OfF16, 1, 0, false, __VA_ARGS__)                                                                                    \
    X(bf16, nn, OfBf16, 0, 1, false, __VA_ARGS__)                                                                                  \
    X(bf16, nt, OfBf16, 0, 0, false, __VA_ARGS__)                                                                                  \
    X(bf16, tn, OfBf16, 1, 1, false, __VA_ARGS__)                                                                                  \
    X(bf16, tt, OfBf16, 1, 0, false, __VA_ARGS__)
// Of 8 bits: all pairs of fp8, and of integers.
#define GEMM_SM90_OF_FLOATS(X, way, a_turned, ...)                                                                                 \
    X(e4m3_e4m3, way, OfE4m3E4m3, a_turned, 0, true, __VA_ARGS__)                                                                  \
    X(e4m3_e5m2, way, OfE4m3E5m2, a_turned, 0, true, __VA_ARGS__)                                                                  \
    X(e5m2_e4m3, way, OfE5m2E4m3, a_turned, 0, true, __VA_ARGS__)                                                                  \
    X(e5m2_e5m2, way, OfE5m2E5m2, a_turned, 0, true, __VA_ARGS__)
#define GEMM_SM90_OF_INTEGERS(X, way, a_turned, ...)                                                                               \
    X(i8_i8, way, OfI8I8, a_turned, 0, false, __VA_ARGS__)                                                                         \
    X(i8_u8, way, OfI8U8, a_turned, 0, false, __VA_ARGS__)                                                                         \
    X(u8_i8, way, OfU8I8, a_turned, 0, false, __VA_ARGS__)                                                                         \
    X(u8_u8, way, OfU8U8, a_turned, 0, false, __VA_ARGS__)
#define GEMM_SM90_Byte(X, ...)  GEMM_SM90_OF_FLOATS(X, nt, 0, __VA_ARGS__)
#define GEMM_SM90_Whole(X, ...) GEMM_SM90_OF_INTEGERS(X, nt, 0, __VA_ARGS__)
// The same where a's rows lie side by side; they are turned in shared memory. Or, of c's transpose, b's columns.
#define GEMM_SM90_MovedByte(X, ...)  GEMM_SM90_OF_FLOATS(X, tt, 1, __VA_ARGS__)
#define GEMM_SM90_MovedWhole(X, ...) GEMM_SM90_OF_INTEGERS(X, tt, 1, __VA_ARGS__)
#define GEMM_SM90_Wide(X, ...)                                                                                                     \
    X(f32, nn, OfBf16, 0, 1, true, __VA_ARGS__)                                                                                    \
    X(f32, nt, OfBf16, 0, 0, true, __VA_ARGS__)                                                                                    \
    X(f32, tn, OfBf16, 1, 1, true, __VA_ARGS__)                                                                                    \
    X(f32, tt, OfBf16, 1, 0, true, __VA_ARGS__)
#define GEMM_SM90_Round(X, ...)                                                                                                    \
    X(tf32, nt, OfTf32, 0, 0, false, __VA_ARGS__)
// Of Round, a by way of registers, where its rows may lie side by side; or, of c's transpose, b's columns.
#define GEMM_SM90_Turned(X, ...)                                                                                                   \
    X(tf32, tt, OfTf32, 1, 0, false, __VA_ARGS__)
// The same of Round where both lie so: b's columns are turned in shared memory.
#define GEMM_SM90_Moved(X, ...)                                                                                                    \
    X(tf32, tn, OfTf32, 1, 1, false, __VA_ARGS__)

// Of Half, where b alone is turned, at any distance.
#define GEMM_SM90_Odd(X, ...)                                                                                                      \
    X(f16, nn, OfF16, 0, 1, false, __VA_ARGS__)                                                                                    \
    X(bf16, nn, OfBf16, 0, 1, false, __VA_ARGS__)
#define GEMM_SM90_Double(X, ...)                                                                                                   \
    X(f64, nn, OfF64, 0, 1, false, __VA_ARGS__)                                                                                    \
    X(f64, nt, OfF64, 0, 0, false, __VA_ARGS__)                                                                                    \
    X(f64, tn, OfF64, 1, 1, false, __VA_ARGS__)                                                                                    \
    X(f64, tt, OfF64, 1, 0, false, __VA_ARGS__)

constexpr u32 STAGING_BYTES = 8192;      // of one buffer: 64 rows of 128 bytes
constexpr u32 SHARED_MOST = 232448;      // bytes of a block
// Warpgroups that multiply: three of a tile of 192 rows, one of 64 rows of c's transpose, else two. Beside them one loads, whole, since it gives up
// its registers for several.
ANYWHERE constexpr u32 tiles_groups(u32 m, bool turns) { return m == 192 ? 3 : m == 64 && turns ? 1 : 2; }
ANYWHERE constexpr i32 tiles_threads(u32 m, bool turns) { return i32(tiles_groups(m, turns) + 1) * 128; }
// What an epilogue that is compiled with a tile's kernel brings there: vectors, of elements of up to 32 bits, for each of these groups, and a
// tensor by boxes to where results are staged.
struct TilesFinish {
    bool is_there, has_box;
    u32  vectors;
};
constexpr u32 FINISH_VECTORS = 4;
// Of a warpgroup's rows and columns a vector has as many elements as are the more, 128 or 256.
ANYWHERE constexpr u32 vector_bytes(u32 rows, u32 columns) { return rows > 128 || columns > 128 ? 1024 : 512; }
// Tiles of c's transpose, b' a', so what is TilesShape's b may lie otherwise.
ANYWHERE constexpr bool tiles_are_swapped(u32 n, bool a_turned, bool b_turned, bool turns) { return turns || (n % 64 != 0 && !a_turned && b_turned); }
ANYWHERE constexpr bool tiles_turn_b(u32 n, bool a_turned, bool b_turned, bool turns) { return tiles_are_swapped(n, a_turned, b_turned, turns) ? a_turned : b_turned; }
// Whether several clusters, of so many blocks, of such tiles may be launched as one (lib/backend/cuda/gemm_sm90_place.h). Not of pairs that large products are made of: their loops hold nothing more.
ANYWHERE constexpr bool tiles_may_stand_together(i32 cluster, u32 n, bool is_pingpong, bool turns) { return cluster == 1 || (!is_pingpong && (turns || n < 128)); }
// Rows of c that tiles of its transpose, of n of these, store at once.
ANYWHERE constexpr i32 turned_box(i32 n) { return n % 16 == 0 ? 16 : 8; }
// Columns leave by boxes of 64, and come so where they lie side by side: of a tile that is no multiple of that there is room for all.
ANYWHERE constexpr u32 tiles_boxes(u32 n) { return (n + 63) / 64; }
// What of a row of gemm_sm90.def a block's shared memory goes by.
struct TilesRow {
    u32  m, n, stages;
    bool is_pingpong, turns;
};
// Shared memory of a block of gemm_sm90_tiles.cuh. Pingpong, whose stores the other group's products hide, has as many stages as there is room
// for beside two buffers, up to what was asked for (f16(gelu(a @ b + v)) of 8192^3 with five on an H200, 2026-11-22: 1709 us, with four 1822); others
// have a stage less beside an epilogue, and all buffers that they want. Where columns that do not come by boxes leave it there is a stage more;
// of a single warpgroup, whose stages are many and small, as many as leave room for its buffers.
struct TilesLayout {
    u32 lines;                           // of 128 bytes, of b in a stage
    u32 stages, buffers, bytes;          // buffers: a warpgroup's, one for each 64 x 64 of its tile where there is room
};
ANYWHERE constexpr TilesLayout tiles_layout(const TilesRow& row, bool b_turned, const TilesFinish& finish)
{
    const auto [m, n, stages, is_pingpong, turns] = row;
    const u32 lines = b_turned ? tiles_boxes(n) * 64 : n, all = tiles_groups(m, turns), groups = is_pingpong ? 1 : all, wanted = m / 64 * tiles_boxes(n) / groups;
    const u32 stage = (m + lines) * 128 + 16, other = 1024 + 8 * all + all * finish.vectors * vector_bytes(m / groups, n);
    const u32 least = is_pingpong && wanted > 2 && !finish.has_box ? 2 : wanted, asked = finish.is_there && !is_pingpong ? stages - 1 : stages;
    u32 kept = lines % 64 != 0 ? asked + 1 : asked;
    while (kept > (is_pingpong || all == 1 ? 2 : asked) && other + kept * stage + all * STAGING_BYTES * least > SHARED_MOST) kept--;
    const u32 room = (SHARED_MOST - other - kept * stage) / (all * STAGING_BYTES), buffers = wanted < room ? wanted : room;
    return {lines, kept, buffers, other + kept * stage + all * STAGING_BYTES * buffers};
}
// Lines of 128 bytes that come for a step of an operand whose depth lies side by side, of which `valid` of a tile's are there: the copy engine takes eight or nine
// cycles for a line that is not (H200, 2026-11-29). Each of `parts` has as many, whole eights, by which they are swizzled.
constexpr i32 EIGHT_LINES = 8;
ANYWHERE constexpr i32 tile_lines(i32 tile, i32 parts, i32 valid)
{
    if (valid >= tile) return tile;
    return valid <= 0 ? 0 : (valid + parts * EIGHT_LINES - 1) / (parts * EIGHT_LINES) * EIGHT_LINES * parts;
}
// Such parts: one for each block that shares the operand, or, of a tile that is cut into no such eights, all by one, another for each step.
ANYWHERE constexpr i32 tile_parts(i32 tile, i32 sharers) { return tile % (sharers * EIGHT_LINES) == 0 ? sharers : 1; }
// Sums of a split tile go from block to block by units of 16 rows and up to four patches of 8 columns. A patch is 32 lanes' four
// sums and room that keeps rows of neighbouring patches in other banks.
constexpr u32 PATCH_BYTES = 528, MOST_BLOCKS = 8;
ANYWHERE constexpr u32 split_unit(u32 n) { return n % 32 == 0 ? 4 : n % 16 == 0 ? 2 : 1; }
ANYWHERE constexpr u32 split_units(u32 m, u32 n) { return m / 16 * (n / 8 / split_unit(n)); }
// What a block receives from all others, of whatever cluster.
ANYWHERE constexpr u32 split_received(u32 m, u32 n)
{
    u32 most = 0;
    for (u32 blocks = 2; blocks <= MOST_BLOCKS; blocks++) {
        const u32 units = (split_units(m, n) + blocks - 1) / blocks * (blocks - 1);
        if (units > most) most = units;
    }
    return most * split_unit(n) * PATCH_BYTES;
}
// Of a ring whose stages have so many bytes, beside so many others.
ANYWHERE constexpr u32 ring_kept(u32 stages, u32 stage, u32 received, u32 other)
{
    const u32 kept = (SHARED_MOST - 1024 - 16 * stages - 8 - other - received) / stage;
    return kept < stages ? kept : stages;
}
ANYWHERE constexpr u32 ring_buffer(u32 stages, u32 kept, u32 stage, u32 received)
{
    const u32 ring = stages * stage, shared = kept * stage + received;
    return ((ring > shared ? ring : shared) + 127) / 128 * 128;
}
// Columns side by side of a turned b that a box brings, of `step` of depth.
ANYWHERE constexpr i32 split_width(i32 n, i32 step) { return n % step == 0 ? step : n < step ? n : 16; }
// Stages that are left where blocks receive sums: these take the place of the last ones.
ANYWHERE constexpr u32 split_kept(u32 m, u32 n, u32 stages) { return stages - split_received(m, n) / ((m + n) * 128); }
ANYWHERE constexpr u32 split_buffer(u32 m, u32 n, u32 stages) { return ring_buffer(stages, split_kept(m, n, stages), (m + n) * 128, split_received(m, n)); }
ANYWHERE constexpr u32 split_shared(u32 m, u32 n, u32 stages) { return 1024 + split_buffer(m, n, stages) + 16 * stages + 8; }
// Where operands are cut (gemm_sm90_cut.cuh) there are slots of b's planes, too.
ANYWHERE constexpr u32 cut_kept(u32 m, u32 n, u32 stages, u32 slots) { return ring_kept(stages, (m + n) * 128, split_received(m, n), slots * (n * 192 + 16)); }
ANYWHERE constexpr u32 cut_buffer(u32 m, u32 n, u32 stages, u32 slots)
{
    return slots * n * 192 + ring_buffer(stages, cut_kept(m, n, stages, slots), (m + n) * 128, split_received(m, n));
}
ANYWHERE constexpr u32 cut_shared(u32 m, u32 n, u32 stages, u32 slots) { return 1024 + cut_buffer(m, n, stages, slots) + 16 * (stages + slots) + 8; }
// Where bytes of a become halves (gemm_sm90_made.cuh) there are as many stages as there is room for.
constexpr u32 MADE_ROWS = 128, MADE_STEP = 64;
ANYWHERE constexpr u32 made_stage(u32 n) { return MADE_ROWS * MADE_STEP + n * 128; }
ANYWHERE constexpr u32 made_stages(u32 n) { return (SHARED_MOST - 1024 - 8) / (made_stage(n) + 16); }
ANYWHERE constexpr u32 made_kept(u32 n) { return ring_kept(made_stages(n), made_stage(n), split_received(MADE_ROWS, n), 0); }
ANYWHERE constexpr u32 made_buffer(u32 n) { return ring_buffer(made_stages(n), made_kept(n), made_stage(n), split_received(MADE_ROWS, n)); }
ANYWHERE constexpr u32 made_shared(u32 n) { return 1024 + made_buffer(n) + 16 * made_stages(n) + 8; }
// A tile where b's lines begin at any element: of so many columns that come, those count that none is moved in behind.
constexpr i32 ODD_WIDTH = 64, ODD_COLUMNS = ODD_WIDTH - 8;
constexpr i32 CUT_THREADS = 512, CUT_STEP = 32;    // step: elements of depth
ANYWHERE constexpr i32 split_threads(i32 m) { return m * 2 + 32; }

}  // namespace ng::kernels
