// What a backend makes of a plan: something that runs it.
#pragma once
#include "jit/explain.h"
#include "jit/plan.h"
#include "lib/parallel.h"

#include <memory>

namespace ng {

// One run's numbers. buffers: by Plan::buffers, the first element of each; null: an output that is not wanted.
struct ExecutorRun {
    const int64_t*  variables;       // lengths, then hidden ones
    char* const*    buffers;
    const void*     scalars;
    void*           scratch;         // scratch_bytes of the device, 64-byte aligned
    ng_stream       stream = nullptr;
};

// (Whoever makes one may throw NG_E_LIMIT for a fused kernel that is too much for its device; the plan without fusion is
// never.)
class Executor {
  public:
    virtual ~Executor() = default;
    // What steps need besides the plan's own buffers when lengths are these or smaller.
    virtual uint64_t scratch_bytes(std::span<const int64_t> variables, uint32_t workers) const = 0;
    // Whether a run of lengths up to Plan::most may have a job of several tasks. A run makes no threads, so they are made before.
    virtual bool wants_threads() const { return false; }
    // Whether runs touch a buffer of the plan: temporaries that are fused away take no memory.
    virtual bool needs(int32_t) const { return true; }
    // NG_OK; NG_SLOW: it ran by interim kernels; NG_NOT_READY: a capture wants more than these, and nothing was queued.
    // Allocates nothing, nor locks; throws what a device says alone.
    virtual ng_status run(const ExecutorRun& run, const Parallel& parallel) const = 0;
    // NG_OK: as fast as it gets, for all lengths. NG_NOT_READY: the time is over. Throws what compiling came to.
    virtual ng_status wait(uint64_t) { return NG_OK; }
    virtual uint64_t code_bytes() const { return 0; }
    // Of a step of the plan, as it is now.
    virtual StepCode code_of(size_t) const { return {}; }
    // The context ends: what lives on the device is given back; no run comes any more.
    virtual void end() noexcept {}
};

// level: "x86-64-v4" ..; keeps what it needs of the plan.
std::unique_ptr<Executor> make_cpu_executor(const Plan& plan, const char* level);

}  // namespace ng
