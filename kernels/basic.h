// What the shipped kernels are told: plain structs of numbers, read by the host and by the device alike.
#pragma once

// Functions of numbers that the host and the device compute alike.
#ifdef __CUDACC__
#define ANYWHERE __host__ __device__
#else
#define ANYWHERE
#endif

namespace ng::kernels {

using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

// Every kernel has blocks of at most so many threads, a grid of one dimension, and strides over what the grid does not cover.
constexpr int THREADS = 256;
constexpr int MAX_AXES = 32;

// Storage types, in the order of jit/dtypes.def; folds, in that of ng_fold; poolings, in that of ng_pool_kind.
enum Type : i32 { BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F32, F64, F16, BF16, E4M3, E5M2, TYPES };
enum Fold : i32 { LAST, SUM, PROD, MIN, MAX };
enum Pooling : i32 { POOL_MAX, POOL_MEAN, POOL_L2 };

// Axes in row-major order with their strides in two arrays. Strides here and below count elements.
struct Axes {
    i32 rank, is_small;                  // is_small: an index fits 32 bits
    i64 size[MAX_AXES], a[MAX_AXES], b[MAX_AXES];
};

struct FillNumbers {
    void* to;
    u64   bits;                          // of one element
    i64   count;
    i32   bytes;
    Axes  axes;                          // a: to
};
struct CopyNumbers {
    const void* from;
    void*       to;
    i64         count;
    i32         bytes;                   // 1, 2, 4, 8 or 16
    Axes        axes;                    // a: from, b: to
};
// A copy that transposes: tiles of two axes, of which `row` is the one along which `from` is nearly consecutive, `column` `to`.
struct TransposeNumbers {
    const void* from;
    void*       to;
    i32         bytes;                   // 1, 2, 4 or 8
    i64         rows, columns, from_row, from_column, to_row, to_column, outer_count;
    Axes        outer;
};

constexpr int PUT_CHUNK = 256;           // sorted positions that a thread folds at most, where folds may be of parts
struct PutNumbers {
    void*       x;
    const i64*  indices;
    const void* y;
    u64*        winners;                 // [size], 1 + the last position whose index is this; zeros before. Null: none
    const void *keys, *positions;        // [count], sorted by key, equal ones by position
    void*       totals;                  // [count / PUT_CHUNK, inner_count] folds of chunks of one key, of the class; null: there are none
    i32         type, how, bytes, keys_are_wide, positions_are_wide;
    i64         size, stride;            // of x's indexed axis
    i64         count, inner_count;      // indices; elements behind each
    Axes        at;                      // a: indices, b: y
    Axes        inner;                   // a: x, b: y
};

// Lines of `count` elements in chunks; totals [lines, chunks], of the type that sums are of.
struct ScanNumbers {
    const void* x;
    void *      y, *totals;              // totals null: one chunk a line
    i32         type, how, is_exclusive;
    i64         count, chunk, chunks, lines, x_step, y_step;
    Axes        line;                    // a: x, b: y
};

// Threads of a block: [segments_a_block, down, across]; `across` inner elements side by side, `down` rows at a time.
struct SegmentNumbers {
    const void*    x;
    const i64*     offsets;
    void *         y, *totals;           // totals [chunks, inner_count]: folds of chunks of rows that some segment holds whole
    unsigned char* wanted;               // [chunks]; null: there are no totals
    i32            type, how, across, down;
    i64            rows, segments, offset_step, x_step, y_step, inner_count, chunk, chunks;
    Axes           inner;                // a: x, b: y
};

enum SortSource : i32 { SORT_VALUES, SORT_INDICES, SORT_BUFFERS };
// Lines of `count` entries (key, index), sorted by key and then by index; by one digit of 8 bits in each pass, or at once.
//   SORT_VALUES   keys are elements of x [lines, count], indices their places
//   SORT_INDICES  keys are x [count] itself, i64; those outside 0 .. size - 1 become size
struct SortNumbers {
    const void *x, *keys_in, *index_in;
    void *      keys_out, *index_out;    // [lines, count]
    i64*        y;                       // null: entries go to keys_out, index_out
    void*       counts;                  // [lines, 256, tiles]; where that digit of that tile goes
    i32         source, type, descending, shift, segment, keys_are_wide, positions_are_wide;
    i64         size, count, lines, tiles, x_step, y_step, first_line;
    Axes        axes;                    // of lines, a: x, b: y; of SORT_INDICES a: x over all entries
};

constexpr int NEST_AXES = 4, WINDOW_AXES = 3;
// An index of a product as nested axes, the last the fastest, those that are not there 1 long, with strides in the two
// tensors that have it. Along an axis coordinates of b grow by `advance`.
struct Nest {
    i64 extent[NEST_AXES], first[NEST_AXES], second[NEST_AXES], advance[NEST_AXES][WINDOW_AXES];
};
enum Fastest : i32 { COLUMNS_FASTEST, ROWS_FASTEST, BATCHES_FASTEST };
// c[batch, m, n] = sum over k of a[batch, m, k] b[batch, k, n]. b's element is `fill` unless each of its coordinates, start +
// the advances of its column and depth, is inside [0, limit).
struct ProductNumbers {
    const void *a, *b;
    void *      c, *partial;             // partial [splits, batches, m, n]: sums over parts of k; null: there is one part
    u64         fill;                    // bits of b's type
    i32         a_type, b_type, c_type, is_bounded, leaves_out;   // leaves_out: outside b is nothing, not even 0 for an infinity of a
    i32         a_depth_fastest, b_depth_fastest, c_fastest, batch_rank;
    i64         m, n, k, batches, splits, split_depth, row_tiles, column_tiles;
    i64         start[WINDOW_AXES], limit[WINDOW_AXES];
    Nest        rows, columns, depth;    // first, second: a, c; b, c; a, b
    i64         batch_extent[MAX_AXES], batch_a[MAX_AXES], batch_b[MAX_AXES], batch_c[MAX_AXES];
};

constexpr int POOL_AXES = 5;             // image, channel, three spatial ones
struct PoolAxis {
    i64 in, out, window, stride, dilate, pad_lo, pad_hi;
    i64 x, values, y;                    // strides in x; in what is picked from, or dy; in the result, of y's or x's shape
};
struct PoolNumbers {
    const void *x, *values, *slots;      // slots, of y's shape and dense: i64 taps of maxima, or roots, for derivatives
    void*       y;
    u64         least;                   // bits: what the maximum of nothing is
    i32         x_type, values_type, y_type, kind, counts_padding, picks;   // picks: y's elements are from `values`, else taps
    i32         lanes;                   // threads for one window: 1 or the block
    i32         order[POOL_AXES];        // of the result's axes, the last the fastest
    i64         count;                   // of the result
    PoolAxis    axis[POOL_AXES];
};

}  // namespace ng::kernels
