// Compiled kernels of one context: each text is found in memory, on disk, or compiled, once for all who ask at the same time.
#pragma once
#include "jit/needed.h"
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/runtime.h"
#include "lib/disk_cache.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace ng {
struct Counters;
}

namespace ng::cuda {

// The functions `fused`, `fused_1` .. of one text, on the device.
struct Code {
    Code(const DeviceContext& home, const std::string& image, Module::Accepts accepts, int functions);
    explicit Code(std::vector<Function> of_another) : functions(std::move(of_another)) {}       // of a module that stays longer
    std::optional<Module> module;
    std::vector<Function> functions;
    uint64_t bytes = 0;
};

struct CodeOptions {
    int32_t     compute = 80;            // 90: sm_90
    uint32_t    threads = 1;             // that compile
    bool        may_compile = true;      // not under NG_CTX_NO_JIT: no compiler, no file
    bool        has_threads = true;      // else jobs wait for poll()
    const char* cache_dir = nullptr;     // as ng_ctx_desc has it
};

class CodeStore {
  public:
    CodeStore(const DeviceContext& home, const CodeOptions& options, Counters& counters);
    ~CodeStore() { stop(); }

    bool can_compile() const noexcept { return compiler_; }
    // The code of a text, from whatever holds it; waits for a compiler's work on it. NG_E_COMPILE, the same again for the
    // same text. NG_E_UNSUPPORTED where nothing compiles. is_counted: whether the kernel that the text is one of counts as a
    // compilation already; its first text that costs one makes it true.
    std::shared_ptr<const Code> need(const std::string& text, int functions, std::atomic<bool>& is_counted);
    // What memory holds; null: nothing yet.
    std::shared_ptr<const Code> find(const std::string& text);

    // By which memory and disk know a text.
    Digest key_of(const std::string& text) const noexcept;

    // A job for our threads, or for poll(). Jobs do not throw. is_short: before all that are not.
    void later(std::function<void()> job, bool is_short = false);
    bool poll(uint64_t budget_ns);       // false: the budget ended first
    // Ends the threads; jobs that wait are dropped, and code is unloaded.
    void stop() noexcept;
    bool is_stopped() noexcept;          // or about to be: jobs that last end soon

  private:
    struct Entry {
        std::shared_ptr<const Code> code;
        std::exception_ptr          fault;
        bool                        is_done = false;
    };
    std::string prelude_of(const std::string& text);     // as much of it as the text needs
    std::shared_ptr<const Code> make(const Digest& key, const std::string& text, int functions, std::atomic<bool>& is_counted);
    void start();
    void work();
    bool work_once();

    const DeviceContext& home_;
    const CodeOptions    options_;
    Counters&            counters_;
    const Compiler*      compiler_ = nullptr;
    std::string          arch_;          // what NVRTC is asked for: "sm_90", or "compute_90" where it knows no newer
    bool                 is_ptx_ = false;
    Digest               identity_{};    // of compiler, options and prelude, part of each key
    DiskCache            disk_;
    std::mutex           pieces_lock_;   // of the next line, and of nothing else
    std::unique_ptr<const Pieces> pieces_;       // of the prelude, from the first compilation on
    std::mutex           lock_;
    std::condition_variable       changed_;
    std::map<Digest, std::shared_ptr<Entry>> entries_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread>      threads_;
    size_t                        idle_ = 0;     // of the threads: those that wait for a job
    bool                          is_stopped_ = false;
};

}  // namespace ng::cuda
