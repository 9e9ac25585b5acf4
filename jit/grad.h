// Reverse-mode derivatives of expressions, as expressions.
#pragma once
#include "jit/build.h"

namespace ng {

// ng_grad: dx[i] = sum over j of dy[j] . dy_j/dwrt_i, of wrt's shape and dtype (contract D1-D9). dy empty, or an empty
// dy[j]: ones. Returns whether some derivative has no path and is zero (NG_NO_PATH).
bool grad(Graph& g, std::span<const NodeRef> y, std::span<const NodeRef> dy, std::span<const NodeRef> wrt, std::vector<NodeRef>& dx);

}  // namespace ng
