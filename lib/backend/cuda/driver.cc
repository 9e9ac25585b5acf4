// How the CUDA driver is found, asked for its functions, and quoted when one fails.
#include "lib/backend/cuda/driver.h"

#include "lib/handle.h"

#include <dlfcn.h>

#include <atomic>
#include <new>

namespace ng::cuda {
namespace {

// What the one search of this process came to; never freed, so that it outlives whatever else ends.
struct Found {
    std::unique_ptr<const Driver> driver;
    std::string                   reason;
};
constinit std::atomic<const Found*> found{nullptr};

using GetProcAddress = CUresult (*)(const char* name, void** function, int version, uint64_t flags, int* why);

// Two threads that search at once both load: the library counts its users and cuInit may be called twice. The first to
// end is heard. (A lock here could be held by another thread when the process forks.)
const Found& search(const char* library)
{
    if (const Found* known = found.load(std::memory_order_acquire)) return *known;
    auto made = std::make_unique<Found>();
    made->driver = Driver::load(library, made->reason);
    const Found* known = nullptr;
    if (!found.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) return *known;
    return *made.release();
}

std::string number_of(int version) { return text(version / 1000, ".", version % 1000 / 10); }

}  // namespace

ng_status status_of(CUresult result) noexcept
{
    switch (result) {
    case CUDA_SUCCESS: return NG_OK;
    case CUDA_ERROR_NOT_READY: return NG_NOT_READY;
    case CUDA_ERROR_OUT_OF_MEMORY: return NG_E_DEVMEM;
    case CUDA_ERROR_NOT_SUPPORTED: return NG_E_UNSUPPORTED;
    // After these the context answers every call with the same code, or it is no longer there.
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED: return NG_E_LOST;
    default: return NG_E_DEVICE;
    }
}

std::unique_ptr<const Driver> Driver::load(const char* library, std::string& reason)
{
    watch_forks();
    // Never closed: the driver has threads and exit handlers of its own.
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char* why = dlerror();
        reason = text("there is no CUDA driver: ", why ? why : library);
        return nullptr;
    }
    const auto address_of = reinterpret_cast<GetProcAddress>(dlsym(handle, "cuGetProcAddress_v2"));
    if (!address_of) {
        reason = text("the CUDA driver is older than CUDA ", number_of(DRIVER_MIN), ": ", library, " has no cuGetProcAddress_v2");
        return nullptr;
    }
    std::unique_ptr<Driver> made(new Driver);
    made->epoch_ = fork_epoch();
    const char* missing = nullptr;
    const auto look_up = [&](auto& call, const char* name, int version) {
        void* address = nullptr;
        int why = 0;
        if (address_of(name, &address, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &why) != CUDA_SUCCESS) address = nullptr;
        if (!address && !missing) missing = name;
        call.driver_ = made.get();
        call.function_ = reinterpret_cast<decltype(call.function_)>(address);
        call.name_ = name;
    };
#define DRIVER(name, version, parameters)                                       \
    static_assert(version <= DRIVER_MIN, "all functions are in the oldest driver we take"); \
    look_up(made->name, #name, version);
#include "lib/backend/cuda/driver.def"
#undef DRIVER
    if (missing) {
        reason = text("the CUDA driver is older than CUDA ", number_of(DRIVER_MIN), ": it has no ", missing);
        return nullptr;
    }
    CUresult result = made->cuInit.quiet(0);
    const char* who = made->cuInit.name_;
    if (result == CUDA_SUCCESS) {
        result = made->cuDriverGetVersion.quiet(&made->version_);
        who = made->cuDriverGetVersion.name_;
    }
    if (result == CUDA_SUCCESS) return made;
    reason = text("the CUDA driver does not start: ", who, ": ", made->describe(result));
    return nullptr;
}

const Driver* Driver::find(const char* library) noexcept
{
    try {
        const Driver* driver = search(library).driver.get();
        return driver && driver->is_ours() ? driver : nullptr;
    } catch (const std::bad_alloc&) {
        return nullptr;                                         // nothing was settled; the next call searches again
    } catch (const Error&) {
        return nullptr;
    }
}

const Driver& Driver::need(const char* who, const char* library)
{
    const Found& all = search(library);
    if (!all.driver) throw Error(NG_E_UNSUPPORTED, text(who, ": ", all.reason));
    if (!all.driver->is_ours())
        throw Error(NG_E_LOST, text(who, ": CUDA was in use before this process was forked; a child process cannot use it"));
    return *all.driver;
}

bool Driver::is_ours() const noexcept { return epoch_ == fork_epoch(); }

std::string Driver::describe(CUresult result) const
{
    if (!is_ours()) return "the driver belongs to the process that this one was forked from";
    const char *name = nullptr, *sentence = nullptr;
    if (cuGetErrorName.quiet(result, &name) != CUDA_SUCCESS || !name) return text("CUDA error ", result);
    if (cuGetErrorString.quiet(result, &sentence) != CUDA_SUCCESS || !sentence) return name;
    return text(sentence, " (", name, ")");
}

void Driver::fail(const char* function, CUresult result) const
{
    throw Error(status_of(result), text(function, ": ", describe(result)), -1, result);
}

}  // namespace ng::cuda
