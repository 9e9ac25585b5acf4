// The portable family of products: tensor cores' of sm_80 and plain multiply-adds, for every device since.
#pragma once
#include "kernels/gemm_mma.h"
#include "lib/backend/cuda/gemm.h"

namespace ng::cuda::gemm::mma {

std::span<const KernelFacts> kernels();
std::span<const KernelFacts> listed_kernels();
bool takes(Dtype a, Dtype b);
// Products of 8-bit integers and of floats, any strides; mixes of floats only in so much workspace.
bool can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// What lets run() cut k freely, and copy operands that lie badly; less, and it does less of that.
uint64_t workspace(const Problem& largest, bool is_fixed);
// By a model of the multiprocessor.
double cost_us(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// The same of batches whose tiles are many, which the model knows best; HUGE_VAL of others.
double cost_of_many_us(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// As gemm.h has them, of this family.
void   add_ways(const Problem& problem, const Device& device, uint64_t workspace_bytes, std::vector<CostedWay>& ways);
bool   can_run_so(const Problem& problem, const Device& device, uint64_t workspace_bytes, const Way& way);
void   run(const Problem& problem, const Device& device, const Place& place);

// As gemm.h has them, and a finisher's functions.
std::optional<Finisher> finisher_for(const Problem& problem, const Device& device, const Way* way);
FunctionWords product_of(const Finisher& finisher);
FunctionWords sum_of(const Finisher& finisher);
// Of the kernel that adds the parts of k.
int64_t sum_blocks(const kernels::MmaNumbers& numbers);
int32_t listed_part(const Problem& problem);     // of its folds, as Finisher's part_length
bool run_listed(const Problem& problem, const Device& device, const Place& place);
bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place);

}  // namespace ng::cuda::gemm::mma
