// What a backend makes of a plan: something that runs it.
#pragma once
#include "jit/plan.h"
#include "lib/parallel.h"

#include <memory>

namespace ng {

// One run's numbers. buffers: by Plan::buffers, the first element of each; null: an output that is not wanted.
struct ExecutorRun {
    const int64_t*  variables;       // lengths, then hidden ones
    char* const*    buffers;
    const void*     scalars;
    void*           scratch;         // scratch_bytes, 64-byte aligned
};

class Executor {
  public:
    virtual ~Executor() = default;
    // What steps need besides the plan's own buffers when lengths are these or smaller.
    virtual uint64_t scratch_bytes(std::span<const int64_t> variables, uint32_t workers) const = 0;
    // Allocates, locks and throws nothing.
    virtual void run(const ExecutorRun& run, const Parallel& parallel) const noexcept = 0;
};

// level: "x86-64-v4" ..; keeps what it needs of the plan.
std::unique_ptr<Executor> make_cpu_executor(const Plan& plan, const char* level);

}  // namespace ng
