// Runs a plan on a CUDA device: fused kernels compiled or interpreted, calls by the shipped kernels.
#pragma once
#include "jit/emit.h"
#include "lib/backend/cuda/backend.h"
#include "lib/backend/cuda/interpreter.h"
#include "lib/backend/cuda/matmul.h"
#include "lib/backend/cuda/rounding.h"
#include "lib/backend/cuda/tuning.h"
#include "lib/deadline.h"
#include "lib/executor.h"
#include "lib/placed.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace ng::cuda {

// One text of a fused kernel: asked for, then there, or refused for good.
struct Variant {
    enum State : int { Idle, Asked, Ready, Refused };
    std::atomic<int>            state{Idle};
    KernelSource                source;      // good once Ready
    std::shared_ptr<const Code> code;
    std::unique_ptr<Error>      error;       // once Refused
    bool ask() noexcept;                     // false: somebody has
    // Gives code and source.
    template <class Body>
    void make(Body&& body) noexcept;
    void unload() noexcept;
    uint64_t code_bytes() const noexcept { return state.load(std::memory_order_acquire) == Ready ? code->bytes : 0; }
};

// A kernel and its texts; a job that compiles keeps it alive. Executors of one kernel may share it.
class Fused {
  public:
    Fused(const Kernel& kernel, DeviceTraits device, std::span<const int64_t> most);
    // Ready at once, where the same text was compiled before.
    bool find(CodeStore& store, size_t which);
    // Makes this text's code ready; for any thread, once a variant.
    void make(CodeStore& store, size_t which) noexcept;
    // The same by what was compiled with the library; refused where it was not.
    void make(Stock& stock, size_t which) noexcept;
    bool is_ready() const noexcept;              // every text is
    void unload() noexcept;

    KernelFamily                kernel;
    int32_t                     buffers = 0;     // that it has
    std::vector<int32_t>        stored;          // of them, that it writes
    bool                        folds_floats = false;   // in an order of its own in each way to run it
    std::unique_ptr<Variant[]>  variants;        // by class
    std::atomic<int>            waiting{0};      // variants that are asked for
    std::atomic<bool>           is_counted{false};      // as a compilation
};

// A product's kernel with its epilogue in it, or what makes an operand, or both; a job that compiles keeps it alive.
struct Finished {
    gemm::Finisher    finisher;
    std::string       epilogue, operand;     // texts; empty: none
    int64_t           rows = INT64_MAX;      // up to as many it comes before texts for more
    Variant           variant;
    std::atomic<int>  waiting{0};            // 1: it is asked for
    std::atomic<bool> is_counted{false};     // as a compilation
    void make(CodeStore& store, const DeviceContext& home) noexcept;
};

inline constexpr size_t MOST_BUFFERS = 128, MOST_NUMBER_BYTES = 4096;

class CudaExecutor final : public Executor {
  public:
    CudaExecutor(CudaBackend& backend, const Plan& plan, Backend::Use use, bool is_measured);
    ~CudaExecutor() override;
    uint64_t  scratch_bytes(std::span<const int64_t> variables, uint32_t workers) const override;
    bool      needs(int32_t buffer) const override { return std::ranges::find(fused_away_, buffer) == fused_away_.end(); }
    ng_status run(const ExecutorRun& run, const Parallel& parallel) const override;
    ng_status wait(uint64_t timeout_ns) override;
    uint64_t  code_bytes() const override;
    StepCode  code_of(size_t step) const override;
    void      end() noexcept override;

  private:
    // The interpreter's list of a fused step, on the device.
    struct Interim {
        Tape                   tape;
        std::unique_ptr<Aside> code;
    };
    // Of a buffer, what choices look at: its address modulo 256, or that there is none.
    static uint16_t alignment_of(const char* buffer) { return buffer ? uint16_t(reinterpret_cast<uintptr_t>(buffer) % 256) : 256; }
    // A fused step as its last run launched it: the next one's lengths, alignment and scratch are mostly the same. The order
    // of the device guards it.
    struct Fitted {
        std::vector<int64_t> variables;
        std::vector<uint16_t> alignment;
        const void* scratch = nullptr;
        Geometry    geometry;
        bool        is_fitted = false, is_filled = false;
        alignas(16) std::array<char, MOST_NUMBER_BYTES> numbers;
    };
    // What products chose by in the last run; null: runs are not many, or nothing is declined. The order of the device guards it.
    struct Chosen {
        std::vector<int64_t>  variables;
        std::vector<uint16_t> alignment;
        uint64_t              tuned = 0;         // Tuned::count()
    };
    struct Folding;
    struct Starting;
    struct Stocked;
    struct Call {
        NodeRef             node;            // null: a copy
        std::vector<Placed> in;
        Placed              out;
        // Of a product: its shape with the largest lengths, where what was measured of it counts; sizes that depend on lengths; the step behind it, what is compiled for both (for the largest lengths, and for fewer rows where it is not known how many
        // there are), bytes of its workspace and of all that it may scratch in, at most, and what the last runs chose, which the order of the device guards.
        std::optional<gemm::Shape>  shape = {};
        Extents                     open = {};
        std::optional<EpilogueForm> epilogue = {};
        std::vector<std::shared_ptr<Finished>> finished = {};
        std::unique_ptr<Starting>   starting = {};       // the step before it that is compiled with it as well
        std::unique_ptr<Folding>    folding = {};        // with folds in the epilogue: what is behind it
        uint64_t                    scratch = 0, room = 0;
        std::unique_ptr<gemm::Memory[]> memories = {};   // without an epilogue, with its list, and with each that is compiled
        bool                        is_listed = false;       // shipped kernels may carry out the epilogue
        bool is_matmul() const { return node && node->op == Op::matmul; }
    };
    struct Work {
        std::shared_ptr<Fused>   fused;
        std::vector<int32_t>     buffers;        // fused: of the plan, in the kernel's order
        std::unique_ptr<Fitted>  fitted;         // where runs may be many
        std::unique_ptr<Interim> interim;
        std::unique_ptr<Stocked> stocked;        // as long as its own texts are not compiled
        std::unique_ptr<Call>    call;
        std::string              name;
        int32_t                  variables = 0;  // that it is run with
        uint64_t                 scratch = 0;    // fused: the most that was planned for it
        bool                     waits = false;  // it is run by the product whose operand it makes, where that cannot do without
    };
    // The same kernel for any lengths, whose texts may have been compiled with the library. A run fills its numbers, which the order of the device guards.
    struct Stocked {
        Work                     work;
        Extents                  variables;      // that it has, of the plan's
        std::vector<int64_t>     values;         // of these
    };
    // What makes a product's operand, and operands as they are before.
    struct Starting {
        OperandForm              form;
        std::vector<Placed>      in;
        size_t                   step;
    };
    // Folds of a product's parts. A run fills its numbers, which the order of the device guards.
    struct Folding {
        Work                     work;           // its buffers are numbered as these:
        std::vector<int32_t>     buffers;        // of the plan; -1 - i: parts of fold i
        std::vector<char*>       addresses;
        std::vector<int64_t>     variables;      // the plan's, and how many parts there are
    };
    void prepare(Work& w, const Step& step, int32_t variables, std::span<const int64_t> most);
    void prepare(Work& w, const Plan& plan, size_t at);
    void prepare_product(Call& c, const Plan& plan, size_t at);
    void prepare_tuning();
    bool may_compile(const Fused& fused) const noexcept;
    bool is_final() const noexcept;              // as fast as it gets
    std::shared_ptr<Fused> evaluated(const Kernel& kernel) const;
    void ask(const std::shared_ptr<Fused>& fused, size_t which) const;
    void make_interim(Work& w, const Kernel& kernel);
    void prepare_stocked(Work& w, const Kernel& kernel);
    void ask_stock(const std::shared_ptr<Fused>& fused, size_t which);
    bool run_stocked(const Work& w, const ExecutorRun& run, char* const* buffers) const;        // false: there is nothing
    void end(Work& w) noexcept;
    static uint64_t code_bytes(const Work& w);
    std::vector<CodeText> shipped_of(const Call& c, const Work* behind) const;
    bool stocked_of(const Stocked& stocked, std::vector<CodeText>& all) const;
    bool run_fused(const Work& w, const ExecutorRun& run) const;
    const Geometry& fit(const Work& w, const ExecutorRun& run, char* const* buffers, Geometry& fresh) const;
    const char* fill(const Work& w, const KernelSource& source, const Geometry& g, const ExecutorRun& run, char* fresh) const;
    void run_variant(const Work& w, const Geometry& g, const ExecutorRun& run, char* const* buffers) const;
    void run_interim(const Work& w, const ExecutorRun& run, char* const* buffers) const;
    MatmulStep matmul_step(const Call& c, bool has_epilogue, MatmulParts* parts = nullptr) const { return {*c.node, c.in, c.out, has_epilogue ? &*c.epilogue : nullptr, parts}; }
    // With all that was compiled with it.
    MatmulStep finished_step(const Call& c, MatmulParts* parts = nullptr) const;
    MatmulStep listed_step(const Call& c, MatmulParts* parts) const { return {*c.node, c.in, c.out, &*c.epilogue, parts, nullptr, true}; }
    bool launch_product(const Call& c, const MatmulStep& step, int finished, const ExecutorRun& run, bool is_compiled = false) const;      // finished: -1: without; is_compiled: gemm::Place's
    bool run_finished(const Call& c, int which, const ExecutorRun& run, bool& is_slow) const;
    bool prepare_starting(Call& c, const Plan& plan, size_t at);
    void prepare_finished(Call& c, const gemm::Finisher& finisher, int64_t rows = INT64_MAX);
    void prepare_fewer(Call& c, const Plan& plan);
    static int64_t largest(const Call& c, std::span<const int64_t> variables);
    void prepare_folding(Call& c, const Plan& plan);
    int64_t  most_parts_of(const Call& c, std::span<const int64_t> variables) const;
    uint64_t folded_bytes(const Call& c, std::span<const int64_t> variables) const;
    bool run_folding(const Call& c, const MatmulParts& parts, const ExecutorRun& run) const;     // true: by interim
    void forget_declined(const ExecutorRun& run) const;
    static bool depends(const Call& c, std::span<const int64_t> before, std::span<const int64_t> now);
    int  run_product(const Call& c, const Work* behind, const ExecutorRun& run, bool& is_slow) const;
    void run_call(const Call& c, const ExecutorRun& run) const;
    uint64_t call_scratch(const Call& c, std::span<const int64_t> variables) const;
    uint64_t product_scratch(const Call& c, std::span<const int64_t> variables) const;
    bool wait_for(const std::atomic<int>& waiting, const Deadline& deadline);    // false: the deadline came first

    CudaBackend&           backend_;
    const Backend::Use     use_;
    const int32_t          lengths_, variables_;     // variables: these and strides that are known when run
    const size_t           buffers_;         // of the plan
    const std::vector<int64_t> most_;        // of the lengths, and the strides that dense tensors have then
    std::vector<Work>      works_;
    std::string            tag_;             // of an output, or a step
    gemm::Device           products_{};      // what may be launched for products
    const gemm::Tuned*      tuned_ = nullptr;    // null: there is no product, or what was measured may not count
    std::shared_ptr<Tuning> tuning_;             // null: nothing is measured
    std::unique_ptr<Chosen> chosen_;
    std::vector<int32_t>   fused_away_;      // products whose epilogues always take them
};

template <class Body>
void Variant::make(Body&& body) noexcept
{
    try {
        body();
        int before = state.load(std::memory_order_relaxed);
        while (before != Refused && !state.compare_exchange_weak(before, Ready, std::memory_order_acq_rel, std::memory_order_relaxed)) continue;
        if (before == Refused) code = nullptr;           // unloaded meanwhile
    } catch (const Error& fault) {
        try {
            error = std::make_unique<Error>(fault);
        } catch (...) {
            // No memory is left to say why.
        }
        state.store(Refused, std::memory_order_release);
    } catch (...) {
        state.store(Refused, std::memory_order_release);
    }
}

// Where this run's scratch memory begins, as everything wants it.
inline char* aligned_scratch(const ExecutorRun& run) { return reinterpret_cast<char*>(aligned(reinterpret_cast<uintptr_t>(run.scratch))); }

}  // namespace ng::cuda
