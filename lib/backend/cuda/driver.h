// The CUDA driver, found when the process runs: a table of its functions that throw what the driver says.
#pragma once
#include "jit/error.h"
#include "lib/backend/cuda/driver_types.h"

#include <memory>
#include <string>

namespace ng::cuda {

class Driver;

inline constexpr int DRIVER_MIN = 12000;                        // as the driver writes CUDA 12.0
inline constexpr const char* DRIVER_LIBRARY = "libcuda.so.1";

// What a code of the driver means to our callers: NG_E_DEVMEM, NG_E_LOST, NG_E_UNSUPPORTED, else NG_E_DEVICE.
ng_status status_of(CUresult result) noexcept;

// One function of the driver. In the child of a fork none is called: there all say CUDA_ERROR_NOT_INITIALIZED.
template <class> class DriverCall;
template <class... A>
class DriverCall<CUresult(A...)> {
  public:
    using Function = CUresult (*)(A...);

    // Throws what fails: status_of(), a sentence with the function's name and the driver's words, the code as native.
    void operator()(A... arguments) const
    {
        if (const CUresult result = quiet(arguments...)) fail(result);
    }
    // The driver's code; for what may not throw, and where a code is an answer.
    CUresult quiet(A... arguments) const noexcept;
    [[noreturn]] void fail(CUresult result) const;
    const char* name() const noexcept { return name_; }

  private:
    friend class Driver;
    const Driver* driver_ = nullptr;
    Function      function_ = nullptr;
    const char*   name_ = nullptr;
};

class Driver {
  public:
    // The driver of this process, from the first call that asks on; that call's library is what counts. Null where there
    // is none, where it is too old or finds no device, and in the child of a fork whose parent had it.
    static const Driver* find(const char* library = DRIVER_LIBRARY) noexcept;
    // The same, but says why there is none: NG_E_UNSUPPORTED; in a child NG_E_LOST.
    static const Driver& need(const char* who, const char* library = DRIVER_LIBRARY);
    // Loads a table of its own, initialised. Null, and one sentence in `reason`, where that cannot be.
    static std::unique_ptr<const Driver> load(const char* library, std::string& reason);

    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    // False in the child of a fork: the driver is the parent's.
    bool is_ours() const noexcept;
    int  version() const noexcept { return version_; }          // 13000: CUDA 13.0
    // "out of memory (CUDA_ERROR_OUT_OF_MEMORY)"
    std::string describe(CUresult result) const;
    [[noreturn]] void fail(const char* function, CUresult result) const;

#define DRIVER(name, version, parameters) DriverCall<CUresult parameters> name;
#include "lib/backend/cuda/driver.def"
#undef DRIVER

  private:
    Driver() = default;
    uint32_t epoch_ = 0;                                        // fork_epoch() when it was initialised
    int      version_ = 0;
};

template <class... A>
CUresult DriverCall<CUresult(A...)>::quiet(A... arguments) const noexcept
{
    return driver_->is_ours() ? function_(arguments...) : CUDA_ERROR_NOT_INITIALIZED;
}

template <class... A>
void DriverCall<CUresult(A...)>::fail(CUresult result) const
{
    driver_->fail(name_, result);
}

}  // namespace ng::cuda
