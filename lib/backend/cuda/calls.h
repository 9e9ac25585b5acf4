// Steps that are not fused, as launches of the shipped kernels.
#pragma once
#include "lib/backend/cuda/basic_launch.h"
#include "lib/placed.h"

namespace ng::cuda::calls {

// node: null for a copy. Workspace for all lengths up to these.
uint64_t scratch_bytes(const NodeRef& node, const std::vector<Placed>& in, const Placed& out, std::span<const int64_t> variables);
// is_ordered: sums at equal indices come in one order (N10).
void run(const NodeRef& node, const std::vector<Placed>& in, const Placed& out, const ExecutorRun& run, int32_t variables, bool is_ordered,
         const basic::Place& place);

}  // namespace ng::cuda::calls
