// The processor as a backend: memory of the host in large pages, one stream, and calls that are done on return.
#include "lib/backend.h"

#include "lib/context.h"
#include "lib/device.h"
#include "lib/executor.h"
#include "lib/strided.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace ng::cpu {
namespace {

// Memory of our own. Much of it comes from the system itself, untouched, in large pages where it has them: translating
// addresses costs as much as moving the data otherwise.
constexpr uint64_t LARGE = 4 << 20, LARGE_PAGE = 2 << 20;

uint64_t in_pages(uint64_t bytes) { return (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE; }

void* map_pages(uint64_t bytes)
{
    const uint64_t room = in_pages(bytes) + LARGE_PAGE;
    void* const all = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    auto* const first = static_cast<char*>(all);
    char* const memory = first + (LARGE_PAGE - reinterpret_cast<uintptr_t>(first) % LARGE_PAGE) % LARGE_PAGE;
    char* const end = memory + in_pages(bytes);
    if (memory > first) munmap(first, size_t(memory - first));
    if (first + room > end) munmap(end, size_t(first + room - end));
    madvise(memory, in_pages(bytes), MADV_HUGEPAGE);
    return memory;
}

void* own_allocate(uint64_t bytes, size_t align)
{
    if (bytes >= LARGE) return align <= LARGE_PAGE ? map_pages(bytes) : nullptr;
    void* memory = nullptr;
    return posix_memalign(&memory, std::max(align, sizeof(void*)), std::max<size_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void own_free(void* memory, uint64_t bytes)
{
    if (bytes >= LARGE) munmap(memory, in_pages(bytes));
    else std::free(memory);
}

class CpuBackend final : public Backend {
  public:
    CpuBackend(const Context& context, std::string arch) : context_(context), arch_(std::move(arch)) {}

    const char*        name() const noexcept override { return "cpu"; }
    const std::string& arch() const noexcept override { return arch_; }
    bool               is_host() const noexcept override { return true; }
    int32_t            dlpack_type() const noexcept override { return 1; }       // kDLCPU
    ng_device_info     info() const override
    {
        ng_device_info info = device_info(0);
        std::fill(std::begin(info.arch), std::end(info.arch), 0);
        std::copy_n(arch_.data(), std::min(arch_.size(), sizeof info.arch - 1), info.arch);
        return info;
    }

    void* allocate(uint64_t bytes, size_t align, ng_purpose, ng_stream) noexcept override { return own_allocate(bytes, align); }
    void  free(void* memory, uint64_t bytes, ng_purpose, ng_stream) noexcept override { own_free(memory, bytes); }

    ng_stream stream(uint32_t) override { return nullptr; }
    void      need_stream(ng_stream s, const char* who) override
    {
        if (s) throw Error(NG_E_INVALID, text(who, ": s is ", s, "; the backend \"cpu\" has the stream NULL alone"));
    }
    ng_status sync(ng_stream, uint64_t) override { return NG_OK; }
    // Every mark that was given out has passed.
    uint64_t  mark(ng_stream) override { return marks_.fetch_add(1, std::memory_order_relaxed) + 1; }
    ng_status wait_for(uint64_t mark, uint64_t, const char* who) override
    {
        need_mark(mark, who);
        return NG_OK;
    }
    void hold(ng_stream, uint64_t mark, const char* who) override { need_mark(mark, who); }

    void move(const StridedCopy& copy, ng_stream) override { copy_strided(copy, context_.parallel()); }
    void fill(const StridedCopy& to, uint64_t bits, ng_stream) override
    {
        StridedCopy copy = to;
        copy.in = reinterpret_cast<const char*>(&bits);
        static_assert(std::endian::native == std::endian::little, "an element lies in the first bytes");
        copy.in_strides.fill(0);
        copy_strided(copy, context_.parallel());
    }
    std::unique_ptr<Executor> make_executor(const Plan& plan, Use, bool) override { return make_cpu_executor(plan, arch_.c_str()); }

  private:
    void need_mark(uint64_t mark, const char* who) const
    {
        if (!mark || mark > marks_.load(std::memory_order_relaxed))
            throw Error(NG_E_INVALID, text(who, ": ", mark, " is no mark that ng_mark gave for this context"));
    }

    const Context&        context_;
    const std::string     arch_;
    std::atomic<uint64_t> marks_{0};
};

}  // namespace

std::unique_ptr<Backend> open_backend(Context& context)
{
    const ContextPlan& plan = context.plan();
    if (plan.native) throw Error(NG_E_INVALID, "ng_ctx_create: native is a CUcontext; the backend \"cpu\" has none");
    const char* target = plan.has_target ? plan.target.c_str() : nullptr;
    std::string arch = arch_for(target);
    if (arch.empty())
        throw Error(NG_E_UNSUPPORTED, text("ng_ctx_create: target \"", plan.target, "\" is no level of this processor; its best is \"", arch_for(nullptr), "\""));
    return std::make_unique<CpuBackend>(context, std::move(arch));
}

}  // namespace ng::cpu
