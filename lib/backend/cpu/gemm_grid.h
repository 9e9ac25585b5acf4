// How a product is cut among workers: into runs of batches, or each batch into a grid of rectangles.
#pragma once
#include "lib/backend/cpu/gemm_table.h"

namespace ng::cpu {

struct Shape {
    int64_t m, n, k, depth;   // depth: of one block, from k alone, so that sums do not depend on anything else
};

struct Grid {
    int64_t row_pieces, column_pieces, rows, columns, batches;
    int64_t tasks(int64_t all) const { return row_pieces * column_pieces * ((all + batches - 1) / batches); }
};

inline int64_t rounded(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

Grid grid_of(const TileKind& t, const Shape& s, int64_t batches, uint32_t workers);

}  // namespace ng::cpu
