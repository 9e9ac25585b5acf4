// Runs a fused kernel on the CPU: the tape interpreter.
#pragma once
#include "jit/kernel.h"
#include "lib/backend/cpu/isa.h"
#include "lib/parallel.h"

#include <memory>
#include <span>

namespace ng::cpu {

// What one run brings. variables: values of the extents' variables, as dense as the kernel was told (Extent::value's
// argument). buffers: the first element of each, by the kernel's numbers; null: stores there are left out.
struct FusedRun {
    const int64_t* variables;
    char* const*   buffers;
    const void*    scalars;
    void*          workspace;              // workspace_bytes, 64-byte aligned; null where that is 0
};

class FusedKernel {
  public:
    // NG_E_LIMIT: it needs more than live_limit registers, 32 passes, 64 axes, or 2048 offsets and strides.
    FusedKernel(const Kernel& kernel, const IsaTable& isa);
    ~FusedKernel();
    FusedKernel(FusedKernel&&) noexcept;

    // Registers that a kernel needs, and those there are.
    static int live_registers(const Kernel& kernel, const IsaTable& isa);
    static int live_limit();

    // Bytes for partial folds when lengths are these or smaller and at most this many workers help.
    uint64_t workspace_bytes(std::span<const int64_t> variables, uint32_t workers) const;
    // Whether it runs in several tasks; of lengths that are known when run, whether it may, its space having this many points at most.
    bool may_be_cut(double most_points) const;
    // Allocates, locks and throws nothing. Results depend on extents and strides, never on who helps.
    void run(const FusedRun& run, const Parallel& parallel) const noexcept;
    // The part of the space that begins at first[axis] and has count[axis] points an axis, by the caller alone; only of
    // kernels without folds.
    void run_box(const FusedRun& run, const int64_t* first, const int64_t* count) const noexcept;

  private:
    struct Kept;
    std::unique_ptr<Kept> kept_;
};

}  // namespace ng::cpu
