// Matrix products of tensors: their axes as a product's indices, with batches of one shared operand made one larger matrix.
#include "lib/backend/cpu/gemm.h"
#include "lib/backend/cpu/saturated.h"

#include <algorithm>
#include <cstring>

namespace ng::cpu {
namespace {

Matrix matrix(const Operand& x, int line_axis, int depth_axis)
{
    Matrix m = {};
    m.data = static_cast<const char*>(x.data), m.type = x.type;
    m.lines.add({x.dims[line_axis], x.strides[line_axis], 0, -1, line_axis});
    m.depth.add({x.dims[depth_axis], x.strides[depth_axis], 0, -1, depth_axis});
    return m;
}

int64_t batch_stride(const Operand& x, int axis) { return x.dims[axis] == 1 ? 0 : x.strides[axis]; }

void add_outer(Side& side, const Axis& axis)
{
    std::copy_backward(side.axis, side.axis + side.rank, side.axis + side.rank + 1);
    side.axis[0] = axis, side.rank++;
}

// Axis i of the batch becomes part of the rows if b is the same all along it: one product instead of many. The axis must be
// the innermost that is left.
bool fold_batch(Product& p, const Operand& a, const Operand& b, const Operand& c, int i)
{
    const int64_t extent = c.dims[i];
    if (p.c.rows.rank < Side::MAX_AXES && batch_stride(b, i) == 0 && p.c.columns.rank == 1) {
        add_outer(p.a.lines, {extent, batch_stride(a, i), 0, -1, i});
        add_outer(p.c.rows, {extent, c.strides[i], 0, -1, i});
        return true;
    }
    if (p.c.columns.rank < Side::MAX_AXES && batch_stride(a, i) == 0 && p.c.rows.rank == 1) {
        add_outer(p.b.lines, {extent, batch_stride(b, i), 0, -1, i});
        add_outer(p.c.columns, {extent, c.strides[i], 0, -1, i});
        return true;
    }
    return false;
}

}  // namespace

uint64_t matmul_workspace(const ProductTable& table, const MatmulExtents& largest, uint32_t workers)
{
    const MatmulExtents& e = largest;
    const Packed         packed = panels_for(table, e.a, e.b, e.c);
    const int64_t        batch = std::max<int64_t>(e.batch, 1);
    // Batches may be folded into either side.
    return std::max(product_workspace(table, packed, times(e.m, batch), e.n, e.k, workers),
                    product_workspace(table, packed, e.m, times(e.n, batch), e.k, workers));
}

void matmul(const Operand& a, const Operand& b, const Operand& c, int rank, const Epilogue* epilogue, const Workplace& place)
{
    Product p = {};
    p.a = matrix(a, rank - 2, rank - 1), p.b = matrix(b, rank - 1, rank - 2);
    p.c = {static_cast<char*>(c.data), c.type, rank, {}, {}, 0};
    p.c.rows.add({c.dims[rank - 2], c.strides[rank - 2], 0, -1, rank - 2});
    p.c.columns.add({c.dims[rank - 1], c.strides[rank - 1], 0, -1, rank - 1});
    p.epilogue = epilogue, p.batch_rank = 0;
    int i = rank - 3;
    while (i >= 0 && fold_batch(p, a, b, c, i)) i--;
    for (int j = 0; j <= i; j++) p.batch[p.batch_rank++] = {c.dims[j], batch_stride(a, j), batch_stride(b, j), c.strides[j], j, 1};
    run_product(p, place);
}

}  // namespace ng::cpu
