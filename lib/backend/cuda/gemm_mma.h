// The portable family of products: tensor cores' of sm_80 and plain multiply-adds, for every device since.
#pragma once
#include "lib/backend/cuda/gemm.h"

namespace ng::cuda::gemm::mma {

std::span<const KernelFacts> kernels();
// Products of 8-bit integers, of f16 with fp8, of bf16, f32 and f64, any strides; not mixes of those, nor other integers.
bool can_run(const Problem& problem, const Device& device);
bool takes(Dtype a, Dtype b);
// What lets run() cut k freely; less, and it cuts less. Grows with each extent; strides and addresses do not matter.
uint64_t workspace(const Problem& largest);
void     run(const Problem& problem, const Device& device, const Place& place);

}  // namespace ng::cuda::gemm::mma
