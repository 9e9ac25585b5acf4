// What lives in a CUDA context, each closed by its destructor: streams, events, memory, code.
#pragma once
#include "lib/backend/cuda/driver.h"

#include <array>
#include <atomic>
#include <new>
#include <utility>

namespace ng::cuda {

// Functions here throw what the driver says (Driver::fail); destructors and what is noexcept ignore it or return it. Nothing
// that throws is half done. Except where said, calls need the context to be current: hold a CurrentContext.

// 0 where the driver sees none.
uint32_t count_devices(const Driver& driver);
CUdevice device_at(const Driver& driver, int32_t ordinal);      // NG_E_INVALID beyond the last
int attribute_of(const Driver& driver, CUdevice device, int attribute);
// 90 for sm_90.
int compute_of(const Driver& driver, CUdevice device);
ng_device_info info_of(const Driver& driver, int32_t ordinal);
// What its clocks allow at most; an H200's where the driver does not tell them all.
struct Rates { double bytes_per_us, instructions_per_us; };      // instructions: of threads, not of warps
Rates rates_of(const Driver& driver, CUdevice device) noexcept;

// A context of the driver: the device's primary one, held as long as this lives, or one that the host lends.
class DeviceContext {
  public:
    static DeviceContext primary(const Driver& driver, int32_t ordinal);
    static DeviceContext adopt(const Driver& driver, void* native);   // a CUcontext, the host's, which outlives this
    DeviceContext(DeviceContext&& other) noexcept
        : driver_(other.driver_), context_(std::exchange(other.context_, nullptr)), device_(other.device_), is_primary_(other.is_primary_) {}
    DeviceContext& operator=(DeviceContext&&) = delete;
    ~DeviceContext() { end(); }
    // Holds no context any more; nothing that lives in it may be used from here on.
    void end() noexcept;

    const Driver& driver() const noexcept { return *driver_; }
    CUcontext native() const noexcept { return context_; }
    CUdevice  device() const noexcept { return device_; }       // the driver numbers them as their ordinals

  private:
    DeviceContext(const Driver& driver, CUcontext context, CUdevice device, bool is_primary)
        : driver_(&driver), context_(context), device_(device), is_primary_(is_primary) {}
    const Driver* driver_;
    CUcontext     context_;
    CUdevice      device_;
    bool          is_primary_;
};

// Makes a context this thread's current one, and the caller's again at its end (S8).
class CurrentContext {
  public:
    explicit CurrentContext(const DeviceContext& home) : driver_(&home.driver()) { driver_->cuCtxPushCurrent(home.native()); }
    // For what may not throw: false when the driver refused.
    CurrentContext(const DeviceContext& home, std::nothrow_t) noexcept
        : driver_(home.native() && home.driver().cuCtxPushCurrent.quiet(home.native()) == CUDA_SUCCESS ? &home.driver() : nullptr) {}
    ~CurrentContext()
    {
        CUcontext ours;
        if (driver_) (void)driver_->cuCtxPopCurrent.quiet(&ours);
    }
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    explicit operator bool() const noexcept { return driver_; }

  private:
    const Driver* driver_;
};

// While it lives, no call of this thread can spoil a stream capture that goes on in another: whoever loads modules or
// allocates beside a host that captures holds one.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Driver& driver) noexcept : driver_(driver) { is_changed_ = exchange(); }
    ~RelaxedCapture() { if (is_changed_) (void)exchange(); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  private:
    bool exchange() noexcept { return driver_.cuThreadExchangeStreamCaptureMode.quiet(&mode_) == CUDA_SUCCESS; }
    const Driver& driver_;
    int  mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool is_changed_ = false;
};

// A handle that `Close` ends, with its context current while it does; no context need be current for it. The context
// outlives it. Where the context is lost, so is what lived in it: nothing is called.
template <class T, auto Close>
class Held {
  public:
    Held() = default;
    Held(const DeviceContext& home, T handle) noexcept : home_(&home), handle_(handle) {}
    Held(Held&& other) noexcept : home_(other.home_), handle_(std::exchange(other.handle_, T{})) {}
    Held& operator=(Held&& other) noexcept
    {
        std::swap(home_, other.home_);
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Held()
    {
        if (handle_ == T{}) return;
        if (const CurrentContext now{*home_, std::nothrow}) (void)(home_->driver().*Close).quiet(handle_);
    }
    const DeviceContext& home() const noexcept { return *home_; }
    T get() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_ != T{}; }

  private:
    const DeviceContext* home_ = nullptr;
    T handle_{};
};

// ---- streams and events; CUstream may be ours, the host's, or null: the legacy stream -------------------------------

enum class StreamKind : uint8_t {
    Ordered,                                                    // orders with the legacy stream 0
    Independent,
};
using Stream = Held<CUstream, &Driver::cuStreamDestroy>;
Stream make_stream(const DeviceContext& home, StreamKind kind, int priority = 0);   // lower numbers go first
bool is_idle(const DeviceContext& home, CUstream stream);
bool is_capturing(const DeviceContext& home, CUstream stream);  // false where its capture was spoilt

class Event {
  public:
    enum class Timing : uint8_t { Off, On };
    explicit Event(const DeviceContext& home, Timing timing = Timing::Off);
    CUevent native() const noexcept { return event_.get(); }
    void record(CUstream stream) const { driver().cuEventRecord(native(), stream); }
    bool is_done() const;                                       // true also where it was never recorded
    void wait() const { driver().cuEventSynchronize(native()); }
    // What is queued on `stream` from now on waits for what was recorded.
    void hold(CUstream stream) const { driver().cuStreamWaitEvent(stream, native(), 0); }
    float milliseconds_since(const Event& begin) const;         // both with Timing::On and done

  private:
    const Driver& driver() const noexcept { return event_.home().driver(); }
    Held<CUevent, &Driver::cuEventDestroy> event_;
};

// ---- memory -----------------------------------------------------------------------------------------------------------

// Memory of the device in the order of streams, from a pool of our own, which keeps what is freed until trim(): the
// host's pools stay as they are. Devices without pools: the driver's plain allocations, which wait for the device.
class MemoryPool {
  public:
    explicit MemoryPool(const DeviceContext& home);
    // At least 256-byte aligned, good for what is queued on `stream` from now on. 0: there is no memory left; other
    // faults throw. bytes 0 is 1.
    CUdeviceptr try_allocate(uint64_t bytes, CUstream stream);
    CUdeviceptr allocate(uint64_t bytes, CUstream stream);      // NG_E_DEVMEM
    // After what is queued on `stream`; it makes the context current by itself.
    void free(CUdeviceptr memory, CUstream stream) noexcept;
    // Gives back to the driver what is unused, but for keep_bytes.
    void trim(uint64_t keep_bytes);
    // Had from the driver; of it, allocated. 0 without pools: the driver counts these alone.
    uint64_t reserved_bytes() const { return count(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }
    uint64_t used_bytes() const { return count(CU_MEMPOOL_ATTR_USED_MEM_CURRENT); }
    bool has_pool() const noexcept { return bool(pool_); }
    const DeviceContext& home() const noexcept { return home_; }

  private:
    uint64_t count(int attribute) const;
    CUresult take(CUdeviceptr* memory, uint64_t bytes, CUstream stream) const noexcept;
    const DeviceContext& home_;
    Held<CUmemoryPool, &Driver::cuMemPoolDestroy> pool_;
};

// One allocation of a pool, freed on the stream it was made on.
class DeviceMemory {
  public:
    DeviceMemory() = default;
    DeviceMemory(MemoryPool& pool, uint64_t bytes, CUstream stream) : pool_(&pool), stream_(stream), bytes_(bytes)
    {
        memory_ = pool.allocate(bytes, stream);
    }
    DeviceMemory(DeviceMemory&& other) noexcept
        : pool_(other.pool_), stream_(other.stream_), bytes_(other.bytes_), memory_(std::exchange(other.memory_, 0)) {}
    DeviceMemory& operator=(DeviceMemory&& other) noexcept
    {
        std::swap(pool_, other.pool_), std::swap(stream_, other.stream_);
        std::swap(bytes_, other.bytes_), std::swap(memory_, other.memory_);
        return *this;
    }
    ~DeviceMemory() { if (memory_) pool_->free(memory_, stream_); }
    CUdeviceptr get() const noexcept { return memory_; }
    uint64_t bytes() const noexcept { return bytes_; }

  private:
    MemoryPool* pool_ = nullptr;
    CUstream    stream_ = nullptr;
    uint64_t    bytes_ = 0;
    CUdeviceptr memory_ = 0;
};

// Page-locked memory of the host, which copies run beside the device's work: ours, and the host's made so.
using HostMemory = Held<void*, &Driver::cuMemFreeHost>;
HostMemory make_host_memory(const DeviceContext& home, uint64_t bytes);
using HostRegistration = Held<void*, &Driver::cuMemHostUnregister>;
HostRegistration register_host_memory(const DeviceContext& home, void* memory, uint64_t bytes);

// What the driver knows of an address. type 0: nothing, so it is ordinary memory of the host.
struct PointerInfo {
    int         type = 0;                                       // CU_MEMORYTYPE_HOST, _DEVICE
    int         ordinal = -1;
    bool        is_managed = false;
    CUcontext   context = nullptr;                              // null also for memory of pools
    CUdeviceptr begin = 0;
    uint64_t    bytes = 0;
};
PointerInfo pointer_info(const DeviceContext& home, const void* address);

// ---- code -------------------------------------------------------------------------------------------------------------

struct Function {
    CUfunction native = nullptr;
    int registers = 0, local_bytes = 0;                         // of a thread; local_bytes: spills, and arrays that are indexed
    int shared_bytes = 0, max_threads = 0;                      // of a block; shared: what it declares itself
};

class Module {
  public:
    enum class Accepts : uint8_t { Binary, Ptx };               // Ptx: the driver may compile (P7: not under NG_CTX_NO_JIT)
    // NG_E_COMPILE with the driver's log for PTX that it refuses.
    Module(const DeviceContext& home, const std::string& image, Accepts accepts);
    // Its code is on the device when this returns, so that its first launch takes no longer than others.
    Function function(const char* name) const;

  private:
    Held<CUmodule, &Driver::cuModuleUnload> module_;
};

// Launches of f may take this much dynamic shared memory, also beyond 48 KiB.
void allow_shared(const DeviceContext& home, const Function& f, uint32_t bytes);
inline constexpr uint32_t MOST_PORTABLE_CLUSTER = 8;
void allow_large_clusters(const DeviceContext& home, const Function& f);       // of more than eight blocks
// Blocks of a size that share one multiprocessor.
int blocks_per_unit(const DeviceContext& home, const Function& f, uint32_t threads, uint32_t shared_bytes);
// Clusters of so many blocks of a size that a device holds at once.
int clusters_at_once(const DeviceContext& home, const Function& f, uint32_t cluster, uint32_t threads, uint32_t shared_bytes);

struct Launch {
    std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
    uint32_t shared_bytes = 0;                                  // dynamic
    bool     is_early = false;                                  // starts before the launch ahead of it ends, waits in the kernel
};
// arguments: the address of each.
CUresult try_launch(const DeviceContext& home, const Function& f, const Launch& launch, CUstream stream, void** arguments) noexcept;
void     launch(const DeviceContext& home, const Function& f, const Launch& launch, CUstream stream, void** arguments);

}  // namespace ng::cuda
