// Products of halves one of whose operands a text makes on its way in: thin ones, which take as long as their wide operand is large.
#pragma once
#include "lib/backend/cuda/gemm.h"

namespace ng::cuda::gemm::made {

// As gemm.h has them. A finisher is for one height of tiles, or for tiles of Hopper's of one width, and one way in which the operands lie; rows of 16 bytes
// begin at multiples of them.
uint64_t workspace(const Problem& largest);
std::optional<Finisher> finisher_for(const Problem& problem, const Device& device);
bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place);
FunctionWords product_of(const Finisher& finisher);
FunctionWords sum_of(const Finisher& finisher);

// For those who measure: a finisher of so many rows, so many blocks of which share a multiprocessor, whether that is fast or not, and a
// run in so many parts, which are blocks of a cluster in Hopper's tiles (sm90::made_finisher_of).
std::optional<Finisher> finisher_of(const Problem& problem, int32_t tile_rows, int32_t blocks);
bool run_in_parts(const Problem& problem, const Device& device, const Finisher& finisher, int64_t splits, const Place& place);

}  // namespace ng::cuda::gemm::made
