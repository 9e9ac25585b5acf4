// A matrix product's step on the device: tensors' axes made rows, columns, depth and one batch, with what follows fused into it.
#pragma once
#include "lib/backend/cuda/epilogue.h"
#include "lib/placed.h"

namespace ng::cuda {

struct MatmulStep {
    const Node&                node;
    const std::vector<Placed>& in;
    const Placed&              out;
    const EpilogueForm*        epilogue; // null: the product alone
};

// Bytes of a workspace for variables up to these, which are all there are where none is given.
uint64_t matmul_scratch(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Device& device);

// Of a step without variables: whether run_matmul never says false.
bool is_matmul_certain(const MatmulStep& step, const gemm::Device& device);

// What to compile with the step's epilogue, for lengths up to these; nothing where that is no gain.
std::optional<gemm::Finisher> matmul_finisher(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Device& device, const gemm::Tuned& tuned);

// For lengths up to these; addresses and scalars are missing, and batches but the innermost.
gemm::Problem matmul_problem(const MatmulStep& step, std::span<const int64_t> largest);

// False: no kernel is made for this one, or the finisher is none for it; nothing was launched. finisher: what was compiled with
// the epilogue; null: shipped kernels.
bool run_matmul(const MatmulStep& step, const ExecutorRun& run, int32_t variables, const gemm::Device& device, const gemm::Finisher* finisher, const gemm::Place& place);

}  // namespace ng::cuda
