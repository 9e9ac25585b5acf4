// This machine's GPU as tests of shipped kernels see it: memory and launches there, and a main that skips its cases where there is none.
#pragma once
#include "lib/backend/cuda/shipped_launch.h"
#include "tests/backend/basic_machine.h"
#include "tests/backend/finisher_image.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

namespace ng::test {

// The first device, with one stream on which everything is in order. NG_TEST_SMALL is for compute-sanitizer; NG_TEST_PART=K/N is the K-th of N processes
// that share the work.
class Gpu {
  public:
    explicit Gpu(const cuda::Driver& driver)
        : home_(cuda::DeviceContext::primary(driver, 0)), now_(home_), stream_(cuda::make_stream(home_, cuda::StreamKind::Ordered)), is_small_(std::getenv("NG_TEST_SMALL") != nullptr)
    {
        const char* const part = std::getenv("NG_TEST_PART");
        if (part && (std::sscanf(part, "%u/%u", &part_, &parts_) != 2 || part_ >= parts_)) throw Error(NG_E_INVALID, text("NG_TEST_PART is ", part, ", not K/N"));
    }
    const cuda::Driver&        driver() const { return home_.driver(); }
    const cuda::DeviceContext& home() const { return home_; }
    cuda::CUstream             stream() const { return stream_.get(); }
    ng_device_info             info() const { return cuda::info_of(driver(), 0); }
    bool                       is_small() const { return is_small_; }
    bool                       is_all() const { return !is_small_ && parts_ == 1; }
    bool                       takes_next() const { return asked_++ % parts_ == part_; }      // of pieces of work, of which each call stands before one

    void* take(size_t bytes) const
    {
        cuda::CUdeviceptr memory = 0;
        driver().cuMemAlloc(&memory, std::max<size_t>(bytes, 1));
        return reinterpret_cast<void*>(memory);
    }
    void give(void* memory) const noexcept { (void)driver().cuMemFree.quiet(reinterpret_cast<cuda::CUdeviceptr>(memory)); }
    void put(void* to, const void* from, size_t bytes) const
    {
        if (bytes) driver().cuMemcpyHtoDAsync(reinterpret_cast<cuda::CUdeviceptr>(to), from, bytes, stream());
        wait();
    }
    void get(void* to, const void* from, size_t bytes) const
    {
        if (bytes) driver().cuMemcpyDtoHAsync(to, reinterpret_cast<cuda::CUdeviceptr>(from), bytes, stream());
        wait();
    }
    void fill(void* to, unsigned char value, size_t bytes) const { driver().cuMemsetD8Async(reinterpret_cast<cuda::CUdeviceptr>(to), value, bytes, stream()); }
    void wait() const { driver().cuStreamSynchronize(stream()); }

    // numbers: the kernel's one parameter.
    void launch(const cuda::Function& f, const cuda::Launch& shape, const void* numbers) const { cuda::launch_with(home_, f, shape, stream(), numbers); }
    template <class Launch>
    void launch(const cuda::Function& f, const Launch& l) const { launch(f, cuda::shape_of(l), l.numbers); }

  private:
    cuda::DeviceContext  home_;
    cuda::CurrentContext now_;
    cuda::Stream         stream_;
    bool                 is_small_;
    unsigned             part_ = 0, parts_ = 1;
    mutable unsigned     asked_ = 0;
};

// Whether the driver is told to take no code but PTX, which it compiles itself: texts come to it so, too.
inline bool wants_ptx()
{
    const char* const forced = std::getenv("CUDA_FORCE_PTX_JIT");
    return forced && forced[0] == '1';
}

// An instance of a product's kernels that was compiled with an epilogue.
struct FinisherCode {
    cuda::gemm::Finisher        finisher;
    cuda::Module                module;
    std::vector<cuda::Function> functions;

    FinisherCode(const Gpu& gpu, const cuda::gemm::Finisher& f, const std::string& epilogue, const std::string& operand = {}) : finisher(f), module(gpu.home(), image_of(gpu, f, epilogue, operand), wants_ptx() ? cuda::Module::Accepts::Ptx : cuda::Module::Accepts::Binary)
    {
        functions = {module.function("fused"), module.function("fused_1")};
        allow_shared(gpu.home(), functions[0], f.shared_bytes);
    }

  private:
    static std::string image_of(const Gpu& gpu, const cuda::gemm::Finisher& f, const std::string& epilogue, const std::string& operand)
    {
        const int compute = cuda::compute_of(gpu.driver(), gpu.home().device());
        return cuda::finisher_image(f, epilogue, operand, text(wants_ptx() ? "compute_" : "sm_", compute, compute == 90 ? "a" : ""));
    }
};

// Instances with epilogues, each compiled when it is first asked for.
class FinisherTexts {
  public:
    const FinisherCode& of(const Gpu& gpu, const cuda::gemm::Finisher& f, const std::string& epilogue)
    {
        return codes_.try_emplace(cuda::gemm::finisher_text(f, epilogue, {}), gpu, f, epilogue).first->second;
    }

  private:
    std::map<std::string, FinisherCode> codes_;
};

// The main of a program whose cases use *device. make(driver): one that it owns, or null and a line that says why.
template <class Device, class Make>
int run_cases(int argc, char** argv, Device*& device, const Make& make)
{
    doctest::Context        context(argc, argv);
    std::unique_ptr<Device> here;
    try {
        here = make(cuda::Driver::need("skipped"));
    } catch (const Error& error) {
        std::printf("%s\n", error.text.c_str());
        // A device that does not take the image is a fault, not a reason to skip.
        if (cuda::Driver::find()) return 1;
    }
    device = here.get();
    if (!here) context.addFilter("test-case-exclude", "*");
    return context.run();
}

}  // namespace ng::test

namespace basic_check {

// A machine whose memory is a GPU's.
class GpuMachine : public Machine {
  public:
    explicit GpuMachine(const ng::cuda::Driver& driver) : gpu_(driver) {}
    void*          take(size_t bytes) override { return gpu_.take(bytes); }
    void           give(void* memory) override { gpu_.give(memory); }
    void           put(void* to, const void* from, size_t bytes) override { gpu_.put(to, from, bytes); }
    void           get(void* to, const void* from, size_t bytes) override { gpu_.get(to, from, bytes); }
    bool           is_fast() const override { return !gpu_.is_small(); }
    bool           has_guards() const override { return !gpu_.is_small(); }
    const ng::test::Gpu& gpu() const { return gpu_; }

  private:
    ng::test::Gpu gpu_;
};

}  // namespace basic_check
