// The one engine under matrix products and convolutions: c[m, n] = a[m, k] b[k, n] where every index is a nest of axes.
#pragma once
#include "lib/backend/cpu/finished.h"
#include "lib/backend/cpu/gemm_table.h"
#include "lib/backend/cpu/products.h"

namespace ng::cpu {

// One axis of an index. Along it the offset grows by stride; coordinate `bound` of the tensor (-1: none) by advance. In the
// result, `axis` is which of its own axes this is.
struct Axis {
    int64_t extent, stride, advance;
    int     bound, axis;
};
// An index as nested axes, the last the fastest; no axis is the index 0 alone.
struct Side {
    static constexpr int MAX_AXES = 4;
    int  rank;
    Axis axis[MAX_AXES];

    int64_t count() const
    {
        int64_t n = 1;
        for (int i = 0; i < rank; i++) n *= axis[i].extent;
        return n;
    }
    void add(const Axis& next) { axis[rank++] = next; }
};
// An operand: element (line, depth) is at data + both offsets if each coordinate, start + both advances, is in [0, limit);
// else it is `fill`, as bits of its type.
struct Matrix {
    const char* data;
    Dtype       type;
    Side        lines, depth;
    int         bounds;
    int64_t     start[WINDOW_AXES], limit[WINDOW_AXES];
    uint64_t    fill;
    int64_t     beyond;          // elements behind those of all lines that may be read
    bool        is_near;         // caches have it, for all of it is read again and again: tiles read columns in place where they can
};
struct Target {
    char* data;
    Dtype type;
    int   rank;                  // of the tensor, for boxes
    Side  rows, columns;
    int64_t kept;                // of the fastest axis of columns: those beyond are computed and dropped; 0: all are kept
};
// Products of one shape at many places: strides of a, b and c. In c it is axis `axis`, of which one step is `unit` elements.
struct BatchAxis {
    int64_t extent, a, b, c;
    int     axis;
    int64_t unit;
};
struct Product {
    static constexpr int MAX_BATCH = 32;
    Matrix          a, b;        // a's lines are c's rows, b's lines its columns
    Target          c;
    int             batch_rank;
    BatchAxis       batch[MAX_BATCH];
    const Epilogue* epilogue;

    int64_t batches() const
    {
        int64_t n = 1;
        for (int i = 0; i < batch_rank; i++) n *= batch[i].extent;
        return n;
    }
};

// What lines of operands are computed in, and what panels of them hold.
Packed packed_for(Dtype a, Dtype b, Dtype c);
Packed panels_for(const ProductTable& table, Dtype a, Dtype b, Dtype c);
// Memory, [m, n, k] of one product and all batches; the larger of both orientations.
uint64_t product_workspace(const ProductTable& table, Packed packed, int64_t m, int64_t n, int64_t k, uint32_t workers);
void     run_product(const Product& product, const Workplace& place);

// Small products, and those with few rows or few columns, without packing. False: not one of them, nothing was done.
bool run_direct(const Product& product, const Workplace& place);

// The parts that the files of the engine share.
// Drops axes of extent 1 and bounds that always hold, merges axes that are consecutive.
Matrix simplified(const Matrix& matrix);
// True if the index moves by one step throughout.
bool is_affine(const Side& side, int64_t& step);
void fill_points(const Side& side, const int64_t* start, int64_t first, int64_t count, Point* points);
void fill_offsets(const Side& side, int64_t first, int64_t count, int64_t* offsets);
// Rows x columns of the result are finished.
struct Part {
    int64_t first_row, rows, first_column, columns;
};
void finish(const Product& product, int64_t batch, const Part& part, Finished& finished);
// Where the operands of one of the batches begin, in elements.
struct BatchOffsets {
    int64_t a, b, c;
};
BatchOffsets batch_offsets(const Product& product, int64_t batch);
// How many tasks of at least about 50 us: 1 where a second worker would not pay.
int64_t tasks_for(double multiply_adds, uint32_t workers);
// `count` elements of a type, `step` apart, as what `packed` computes with: in place where they are that already.
const void* line_of(const ProductTable& table, Packed packed, Dtype type, const char* data, int64_t step, int64_t count, void* buffer);

}  // namespace ng::cpu
