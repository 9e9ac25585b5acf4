// A matrix product's step on the device: tensors' axes made rows, columns, depth and one batch, with what follows fused into it.
#pragma once
#include "lib/backend/cuda/epilogue.h"
#include "lib/backend/cuda/operand_form.h"
#include "lib/placed.h"

namespace ng::cuda {

// Parts of an epilogue's folds, one fold after the other: where they go, and how many a run found each to have.
struct MatmulParts {
    char*   data;
    int64_t count;
};

struct MatmulStep {
    const Node&                node;
    const std::vector<Placed>& in;       // with a prologue, that operand as it lies before
    const Placed&              out;
    const EpilogueForm*        epilogue; // null: the product alone
    MatmulParts*               parts = nullptr;      // where it folds
    const OperandForm*         prologue = nullptr;
    bool                       is_listed = false;        // the epilogue is carried out as a list, by shipped kernels
};

// Bytes of a workspace for variables up to these, which are all there are where none is given.
uint64_t matmul_scratch(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Device& device);

// Of a step without variables: whether run_matmul never says false, wherever operands lie.
bool is_matmul_certain(const MatmulStep& step, const gemm::Device& device);

// What to compile with the step's epilogue, for lengths up to these; nothing where that is no gain.
std::optional<gemm::Finisher> matmul_finisher(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Device& device, const gemm::Tuned& tuned);

// For lengths up to these; addresses and scalars are missing, and batches but the innermost. Nothing where its folds are for no
// product's kernel.
std::optional<gemm::Problem> matmul_problem(const MatmulStep& step, std::span<const int64_t> largest);

// Parts of each of its folds, and bytes of all of them, by a finisher or as lists have the most; for lengths up to these.
int64_t  most_parts(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Finisher& finisher);
uint64_t parts_bytes(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Finisher& finisher);

// False: no kernel is made for this one, or the finisher is none for it; nothing was launched. finisher: what was compiled with
// the epilogue; null: shipped kernels.
bool run_matmul(const MatmulStep& step, const ExecutorRun& run, int32_t variables, const gemm::Device& device, const gemm::Finisher* finisher, const gemm::Place& place);

}  // namespace ng::cuda
