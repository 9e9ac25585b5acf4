// The CPU's products: matrix products, convolutions with their two derivatives, and pooling with its one.
#pragma once
#include "jit/dtype.h"
#include "lib/parallel.h"

#include <cstdint>

namespace ng::cpu {

// Nothing here allocates, locks or throws; every function may be called from any thread, several at once when each has
// its own workspace. What they give depends on shapes, strides and types, never on the number of workers.

// A tensor. Strides in elements, of any sign; 0 is fine for what is only read.
struct Operand {
    void*          data;
    Dtype          type;
    const int64_t* dims;
    const int64_t* strides;
};

// Called when part of the result is finished and still in cache, by the worker that finished it: the elements of the
// result from first[axis], count[axis] of them, in the result's own axes. All calls together cover it exactly once.
struct Epilogue {
    void (*box)(void* self, const int64_t* first, const int64_t* count, uint32_t worker);
    void* self;
};

// Loops and tiles of one instruction set. level: "x86-64-v2", -v3, -v4 or null for the best that this CPU runs; null when
// it does not run that one.
struct ProductTable;
const ProductTable* product_table(const char* level);

struct Workplace {
    const ProductTable& table;
    void*               workspace;   // 64-byte aligned; as many bytes as the product's _workspace says; null where that is 0
    const Parallel&     parallel;
};

// Matrix products: c[batch.., m, n] = a[batch.., m, k] b[batch.., k, n], all of one rank >= 2; a batch axis of 1 broadcasts.
// c.type is the accumulator (contract N7) and any mix of operands it may hold is allowed: f32 and f64 of anything, integers
// of integers, exact modulo 2^bits. k = 0 gives zeros.
struct MatmulExtents {
    int64_t batch, m, n, k;
    Dtype   a, b, c;
};
// Grows with each extent, so that what the largest need is enough for all smaller ones, whatever the strides.
uint64_t matmul_workspace(const ProductTable& table, const MatmulExtents& largest, uint32_t workers);
void     matmul(const Operand& a, const Operand& b, const Operand& c, int rank, const Epilogue* epilogue, const Workplace& place);

// Convolutions: x [n, c, spatial..], w [k, c / groups, spatial..], y [n, k, spatial..] with 1 to 3 spatial axes. y's extents
// say how many positions there are; positions outside x read pad_value, rounded to x's type.
struct ConvWindow {
    int     spatial;
    int64_t stride[3], dilate[3], pad_lo[3];
    int64_t groups;
    double  pad_value;
};
uint64_t conv_workspace(const ProductTable& table, const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window, uint32_t workers);
// What any filters of these taps may need besides where there are fewer, or of fewer channels, than that was asked for.
uint64_t conv_few_workspace(const Operand& w, const ConvWindow& window, uint32_t workers);
void     conv(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window, const Epilogue* epilogue, const Workplace& place);
// The derivatives; what they give has an accumulator's type, as y above. conv_dx needs what conv does.
uint64_t conv_dw_workspace(const ProductTable& table, const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, uint32_t workers);
void     conv_dx(const Operand& w, const Operand& dy, const Operand& dx, const ConvWindow& window, const Workplace& place);
void     conv_dw(const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, const Workplace& place);

// Pooling over x [n, c, spatial..] by windows in row-major order of (c, spatial..). max gives x's own type, mean and l2 (the
// root of the sum of squares) f32 or f64, which is y.type.
struct PoolWindow {
    ng_pool_kind kind;
    uint32_t     flags;              // NG_POOL_COUNT_PAD; NG_POOL_CEIL is in y's extents already
    int          spatial;
    int64_t      window[3], stride[3], dilate[3], pad_lo[3], pad_hi[3];
    int64_t      channel_window, channel_stride, channel_pad;
};
uint64_t pool_workspace(const ProductTable& table, const PoolWindow& window, uint32_t workers);
void     pool(const Operand& x, const Operand& y, const PoolWindow& window, const Workplace& place);
// dx and dy are f32 or f64, alike. A maximum's derivative goes to the first of equals, to the first NaN where there is one.
// y [of the pooled shape] = d at the first greatest element of x in every window of a maximum: pool_dx transposed.
void     pool_pick(const Operand& x, const Operand& d, const Operand& y, const PoolWindow& window, const Workplace& place);
void     pool_dx(const Operand& x, const Operand& dy, const Operand& dx, const PoolWindow& window, const Workplace& place);

// The transpose of a maximum's pool_dx: y[i] is v, of x's shape, at the place that x's window i has its maximum; 0 where the
// window lies in padding alone. v and y are f32 or f64, alike.
void     pool_pick(const Operand& x, const Operand& v, const Operand& y, const PoolWindow& window, const Workplace& place);

}  // namespace ng::cpu
