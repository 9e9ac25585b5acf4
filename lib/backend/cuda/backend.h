// One CUDA device for one context: its memory, streams, code, and the moves of elements.
#pragma once
#include "jit/emit.h"
#include "lib/backend.h"
#include "lib/backend/cuda/basic_launch.h"
#include "lib/backend/cuda/code.h"
#include "lib/backend/cuda/evaluated.h"
#include "lib/backend/cuda/gemm_tuned.h"
#include "lib/backend/cuda/host_blocks.h"
#include "lib/backend/cuda/order.h"
#include "lib/backend/cuda/stock.h"

#include <atomic>
#include <mutex>
#include <type_traits>
#include <vector>

namespace ng::cuda {

// The shipped kernels on a device, ready to launch. They are loaded when the first is wanted.
class Shipped {
  public:
    Shipped(const DeviceContext& home, bool may_compile) : home_(home), may_compile_(may_compile), memory_bytes_per_us_(rates_of(home.driver(), home.device()).bytes_per_us) {}
    // NG_E_UNSUPPORTED where none were built for this device.
    void need();
    // Throws what the driver says.
    void launch(const basic::Launch& launch, CUstream stream) const;
    // The images that products of these types need, where this build and device have them; once they are there, nothing.
    void need_products(Dtype a, Dtype b, bool has_list);
    // has: what need_products() brought.
    gemm::Device product_device(int32_t compute, uint32_t units) const;
    void launch(const gemm::Launch& launch, CUstream stream) const;
    const Function& function_of(const basic::Launch& l) const { return functions_[size_t(l.kernel)]; }
    const Function& function_of(const gemm::Launch& l) const { return products_[size_t(l.image)].functions[l.kernel]; }
    const Function& interpreter() const { return interpreter_; }
    uint32_t shared_bytes() const { return shared_bytes_; }      // of a block, for the interpreter
    void unload() noexcept;

  private:
    // Of an image for products.
    struct Products {
        std::optional<Module> module;
        std::vector<Function> functions;                         // as gemm::kernels_of has them
        gemm::Clusters        clusters = {0, 0};                 // 0: of an image that says nothing of it
        std::atomic<bool>     is_loaded{false};
    };
    void load();
    void load_products(gemm::Image image);
    const DeviceContext&    home_;
    const bool              may_compile_;
    const double            memory_bytes_per_us_;
    std::mutex              lock_;           // of loading
    std::atomic<bool>       is_loaded_{false};
    std::optional<Module>   basic_, interpreter_module_;
    std::vector<Function>   functions_;      // by BasicKernel
    Function                interpreter_;
    uint32_t                shared_bytes_ = 0;
    Products                products_[size_t(gemm::Image::count_)];
};

class CudaBackend;

// Memory of the context's that no tensor is in, idle when it is made: it comes on a stream of its own, where nothing of the
// host's is ahead of it. It goes after the work that touched it.
class Aside {
  public:
    Aside(const Aside&) = delete;
    ~Aside();
    char*    data() const noexcept { return data_; }
    uint64_t bytes() const noexcept { return bytes_; }
    void touch() const;                          // what is queued until the order is closed reads it

  private:
    friend class CudaBackend;
    Aside(CudaBackend& backend, char* data, uint64_t bytes) : backend_(backend), data_(data), bytes_(bytes) {}
    CudaBackend&      backend_;
    char* const       data_;
    const uint64_t    bytes_;
    mutable CudaTrack track_;
};

class CudaBackend final : public Backend {
  public:
    CudaBackend(Context& context, DeviceContext home, ng_device_info info);
    ~CudaBackend() override { stop(); }

    const char*        name() const noexcept override { return "cuda"; }
    const std::string& arch() const noexcept override { return arch_; }
    ng_device_info     info() const override { return info_; }
    bool               is_host() const noexcept override { return false; }
    int32_t            dlpack_type() const noexcept override { return 2; }       // kDLCUDA
    int32_t            ordinal() const noexcept override { return home_.device(); }

    ng_stream first_stream(ng_purpose purpose) noexcept override
    {
        if (purpose == NG_MEM_CODE) return uploads_.get();
        return purpose == NG_MEM_NODE || purpose == NG_MEM_STAGING ? own_.get() : last_stream();     // memory of the host is of no stream
    }
    ng_stream last_stream() noexcept override { return order_.is_own_captured() ? uploads_.get() : own_.get(); }
    void* allocate(uint64_t bytes, size_t align, ng_purpose purpose, ng_stream first) noexcept override;
    void  settle(ng_stream first) noexcept override;
    void  free(void* memory, uint64_t bytes, ng_purpose purpose, ng_stream last) noexcept override;
    void  trim(uint64_t keep_bytes) override;
    void  need_alive() override;
    void  need_reachable(const void* data, uint64_t bytes, uint32_t flags, const char* who) override;

    ng_stream stream(uint32_t i) override;
    void      need_stream(ng_stream s, const char* who) override { order_.need(static_cast<CUstream>(s), who); }
    ng_status sync(ng_stream s, uint64_t timeout_ns) override
    {
        return blaming(false, [&] { return order_.sync(static_cast<CUstream>(s), !s, timeout_ns); });
    }
    uint64_t  mark(ng_stream s) override
    {
        return blaming(false, [&] { return order_.mark(static_cast<CUstream>(s)); });
    }
    ng_status wait_for(uint64_t mark, uint64_t timeout_ns, const char* who) override
    {
        return blaming(false, [&] { return order_.wait_for(mark, timeout_ns, who); });
    }
    void hold(ng_stream s, uint64_t mark, const char* who) override
    {
        blaming(false, [&] { order_.hold(static_cast<CUstream>(s), mark, who); });
    }

    bool is_capturing() const noexcept override { return order_.is_capturing(); }
    std::unique_ptr<Track> make_track() override { return std::make_unique<CudaTrack>(); }
    std::unique_ptr<Track> copy_of(const Track& track) override
    {
        keeps_memory_ = true;
        return std::make_unique<CudaTrack>(static_cast<const CudaTrack&>(track));
    }
    void open(ng_stream s) override
    {
        blaming(false, [&] { order_.open(static_cast<CUstream>(s)); });
    }
    void touch(Track& track, const char* begin, const char* end, bool writes, bool is_ours) override
    {
        blaming(true, [&] { order_.touch(static_cast<CudaTrack&>(track), begin, end, writes, is_ours); });
    }
    void done(Track& track, const char* begin, const char* end) override { order_.done(static_cast<CudaTrack&>(track), begin, end); }
    void close() noexcept override { order_.close(); }
    bool is_idle(Track& track) noexcept override { return order_.is_idle(static_cast<CudaTrack&>(track)); }
    void wait_until_idle(Track& track) noexcept override { order_.wait_until_idle(static_cast<CudaTrack&>(track)); }

    bool is_beside(const Backend& other) const noexcept override;
    ng_stream meeting_stream() override;
    void follow(Backend& other) override;
    void move(const StridedCopy& copy, ng_stream s) override;
    void fill(const StridedCopy& to, uint64_t bits, ng_stream s) override;
    int64_t turned_bytes() const noexcept override { return int64_t(4) << 20; }
    std::unique_ptr<Executor> make_executor(const Plan& plan, Use use, bool is_measured) override;
    bool poll(uint64_t budget_ns) override { return code_.poll(budget_ns); }
    void stop() noexcept override;

    // For executors.
    const DeviceContext& home() const noexcept { return home_; }
    CodeStore&   code() noexcept { return code_; }
    Evaluated&   evaluated() noexcept { return evaluated_; }
    Shipped&     shipped() noexcept { return shipped_; }
    Stock&       stock() noexcept { return stock_; }
    StreamOrder& order() noexcept { return order_; }
    int32_t      compute() const noexcept { return compute_; }
    uint32_t     units() const noexcept { return info_.units; }
    DeviceTraits traits() const noexcept { return {compute_, int32_t(info_.units), most_shared_}; }
    Context&     context() const noexcept { return context_; }
    bool         is_ordered() const noexcept;                // sums in one order: NG_CTX_DETERMINISTIC
    // Bytes to new memory of the device, there when this returns: NG_E_DEVMEM. Calls hooks.
    std::unique_ptr<Aside> upload(const void* bytes, uint64_t count, const char* who);
    // Memory for a job of ours: NG_E_DEVMEM. Nobody is asked to free anything for it.
    std::unique_ptr<Aside> aside(uint64_t bytes, const char* who);
    // What was measured of products, by this context and all that had the same folder for files.
    gemm::Tuned& tuned();
    void save_tuned();

    // What went wrong, and where the context is lost for it the tags of what was under way: a kernel's fault is reported by
    // whichever call comes next. is_open: by who has opened the order.
    Error blamed(const Error& error, bool is_open) const;
    template <class Call>
    std::invoke_result_t<Call> blaming(bool is_open, Call&& call) const
    {
        try {
            return call();
        } catch (const Error& error) {
            throw blamed(error, is_open);
        }
    }

  private:
    CodeOptions code_options() const;
    DiskCache files() const;
    Digest tuned_key() const;
    Stream new_stream(StreamKind kind);
    void copy_strides(const StridedCopy& copy, CUstream stream);
    void end_home() noexcept;

    Context&             context_;
    DeviceContext        home_;
    const ng_device_info info_;
    const std::string    arch_;
    const int32_t        compute_;
    const int32_t        most_shared_;   // bytes of a block
    std::optional<MemoryPool> pool_;
    HostBlocks host_blocks_{home_};
    std::mutex blocks_lock_;
    uint64_t   blocks_ = 0;              // that were allocated and did not come back
    bool       is_stopped_ = false;
    std::atomic<bool> keeps_memory_{false};      // the heap may, of which the order could not be told
    Stream               own_, uploads_;
    StreamOrder          order_;
    Shipped              shipped_;
    Stock                stock_;
    CodeStore            code_;
    Evaluated            evaluated_;
    gemm::Tuned          tuned_;
    std::mutex           tuned_lock_;        // of reading it from its file
    std::atomic<bool>    tuned_is_read_{false};
    std::mutex           streams_lock_;
    std::vector<Stream>  streams_;
    Stream               meeting_;
};

}  // namespace ng::cuda
