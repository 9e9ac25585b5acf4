// The graph that NG_CTX_REFERENCE evaluates: every operation that rounds as it likes is done in f64 and rounded once.
#pragma once
#include "jit/graph.h"

#include <span>
#include <vector>

namespace ng {

// The same values, shapes and types. Exact rows, comparisons, casts, random numbers and movement stay what they are; maps
// with a bound, folds, running sums and products are computed in f64. Derivatives' rules are left out.
std::vector<NodeRef> in_double(Graph& g, std::span<const NodeRef> roots);

}  // namespace ng
