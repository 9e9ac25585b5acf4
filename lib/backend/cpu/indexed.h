// The CPU's steps that work by index: copies, put, scan, segment, argsort.
#pragma once
#include "lib/backend/cpu/isa.h"
#include "lib/backend/cpu/products.h"

namespace ng::cpu {

// As in products.h: nothing here allocates, locks or throws, and results do not depend on the number of workers.

enum class Folding : uint8_t { Last, Sum, Prod, Min, Max };   // ng_fold's order
// Sums of bools say whether one is true, products whether all are: no byte but 0 and 1 is stored.
inline Folding folding_of(Folding how, Dtype t)
{
    if (!is_bool(t)) return how;
    return how == Folding::Sum ? Folding::Max : how == Folding::Prod ? Folding::Min : how;
}

struct IndexPlace {
    const IsaTable& isa;
    void*           workspace;   // 64-byte aligned; as many bytes as the step's _workspace says; null where that is 0
    const Parallel& parallel;
};

// to = from, of one type and shape; the memories do not overlap.
void copy(const Operand& from, const Operand& to, int rank, const Parallel& parallel);

// x [.., n, ..], indices i64 of any rank, y of x's shape with `axis` replaced by the indices' axes: y is stored or folded
// into x at the indices, in row-major order of the indices; those outside 0 .. n - 1 write nothing (contract N10).
// Narrow floats fold in f32 and are rounded at each store; integers wrap.
struct PutExtents { int rank, axis, index_rank; };
void     put(const Operand& x, const Operand& indices, const Operand& y, const PutExtents& extents, Folding how, const IndexPlace& place);

// y = running folds of x along an axis. flags: NG_EXCLUSIVE (from the identity; of Last and Min, Max: 0 and the extreme),
// NG_REVERSE. Sums and products of floats accumulate in f64.
void     scan(const Operand& x, const Operand& y, int rank, int axis, Folding how, uint32_t flags, const IndexPlace& place);

// y[i] folds x[offsets[i] .. offsets[i + 1]) on axis 0; offsets are cut to 0 .. n; an empty segment gives the identity, Last 0.
void segment(const Operand& x, const Operand& offsets, const Operand& y, int rank, Folding how, const IndexPlace& place);

// y (i64) = the stable order of x along an axis; NaN last; NG_REVERSE: descending, equal keys in their order, NaN still last.
// -0 and 0 are equal keys.
uint64_t argsort_workspace(const int64_t* dims, int axis, uint32_t workers);
void     argsort(const Operand& x, const Operand& y, int rank, int axis, uint32_t flags, const IndexPlace& place);

}  // namespace ng::cpu
