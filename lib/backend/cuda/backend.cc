// CUDA devices opened for contexts: the driver's context adopted or held, memory from a pool, copies and fills on streams.
#include "lib/backend/cuda/backend.h"

#include "lib/backend/cuda/executor.h"
#include "lib/backend/cuda/images.h"
#include "lib/backend/cuda/interpreter.h"
#include "lib/backend/cuda/ranges.h"
#include "lib/backend/cuda/shipped_launch.h"
#include "lib/context.h"
#include "lib/strided.h"

#include <algorithm>

namespace ng::cuda {
namespace {

CUstream native(ng_stream s, const Stream& own) { return s ? static_cast<CUstream>(s) : own.get(); }

// Whether elements lie one after another in both, in the same order: then they are one stretch of bytes.
bool is_one_stretch(const StridedCopy& c, int64_t& bytes)
{
    struct Axis { int64_t size, stride; };
    std::array<Axis, NG_MAX_NDIM> axes;
    int rank = 0;
    int64_t count = 1;
    for (size_t i = 0; i < size_t(c.rank); i++) {
        count *= c.dims[i];
        if (c.dims[i] == 1) continue;
        if (c.out_strides[i] != c.in_strides[i]) return false;
        axes[size_t(rank++)] = {c.dims[i], c.out_strides[i]};
    }
    bytes = count * c.size;
    std::sort(axes.begin(), axes.begin() + rank, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
    int64_t next = 1;
    for (int i = 0; i < rank; i++) {
        if (axes[size_t(i)].stride != next) return false;
        next *= axes[size_t(i)].size;
    }
    return true;
}

basic::Operand operand(const char* data, const StridedCopy& c, const std::array<int64_t, NG_MAX_NDIM>& strides)
{
    return {const_cast<char*>(data), bits_of_size(size_t(c.size)), c.dims.data(), strides.data()};
}

int64_t bytes_of(const StridedCopy& c)
{
    int64_t bytes = c.size;
    for (int i = 0; i < c.rank; i++) bytes *= c.dims[size_t(i)];
    return bytes;
}

constexpr size_t ASIDE_ALIGNMENT = 256;      // what kernels want of operands, and pools give

CUdeviceptr address(const char* data) { return reinterpret_cast<CUdeviceptr>(data); }

}  // namespace

// ---- shipped kernels --------------------------------------------------------------------------------------------------

void Shipped::need()
{
    if (is_loaded_.load(std::memory_order_acquire)) return;
    const std::lock_guard hold(lock_);
    if (is_loaded_.load(std::memory_order_relaxed)) return;
    load();
    is_loaded_.store(true, std::memory_order_release);
}

void Shipped::load()
{
    const RelaxedCapture relaxed(home_.driver());
    const CurrentContext now(home_);
    const int compute = compute_of(home_.driver(), home_.device());
    if (basic_image().empty()) throw Error(NG_E_UNSUPPORTED, "this build has no CUDA kernels: it was made without nvcc");
    if (!may_compile_ && !(has_basic_code(compute) && has_interpreter_code(compute)))
        throw Error(NG_E_UNSUPPORTED, "this build has no kernels for this device but PTX, and NG_CTX_NO_JIT forbids the driver's compiler");
    basic_.emplace(home_, std::string(basic_image()), Module::Accepts::Ptx);
    functions_.clear();
    for (uint32_t k = 0; k < uint32_t(basic::BasicKernel::count_); k++) functions_.push_back(basic_->function(basic::name_of(basic::BasicKernel(k))));
    interpreter_module_.emplace(home_, std::string(interpreter_image()), Module::Accepts::Ptx);
    interpreter_ = interpreter_module_->function(INTERPRETER_KERNEL);
    shared_bytes_ = std::min<uint32_t>(interpreter::MOST_SHARED_BYTES, uint32_t(attribute_of(home_.driver(), home_.device(), CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)));
    allow_shared(home_, interpreter_, shared_bytes_);
}

void Shipped::launch(const basic::Launch& l, CUstream stream) const
{
    launch_with(home_, function_of(l), shape_of(l), stream, l.numbers);
}

void Shipped::need_products(Dtype a, Dtype b, bool has_list)
{
    for (size_t i = 0; i < std::size(products_); i++) {
        const auto image = gemm::Image(i);
        if (!gemm::needs(image, a, b, has_list) || products_[i].is_loaded.load(std::memory_order_acquire)) continue;
        const bool is_portable = (image == gemm::Image::Mma || image == gemm::Image::MmaListed) && may_compile_ && !gemm_image(image).empty();
        if (!is_portable && !has_gemm_code(image, compute_of(home_.driver(), home_.device()))) continue;
        const std::lock_guard hold(lock_);
        if (products_[i].is_loaded.load(std::memory_order_relaxed)) continue;
        load_products(image);
        products_[i].is_loaded.store(true, std::memory_order_release);
    }
}

void Shipped::load_products(gemm::Image image)
{
    const RelaxedCapture relaxed(home_.driver());
    const CurrentContext now(home_);
    Products& p = products_[size_t(image)];
    p.module.emplace(home_, std::string(gemm_image(image)), Module::Accepts::Ptx);   // a fat binary; of Hopper's there is none to compile
    p.functions.clear();
    for (const gemm::KernelFacts& facts : gemm::kernels_of(image)) {
        p.functions.push_back(p.module->function(facts.name));
        if (facts.shared_bytes) allow_shared(home_, p.functions.back(), facts.shared_bytes);
    }
    if (image == gemm::Image::Sm90Half || image == gemm::Image::Sm90Byte || image == gemm::Image::Sm90Wide) p.clusters = clusters_of(home_, image, p.functions);
}

gemm::Device Shipped::product_device(int32_t compute, uint32_t units) const
{
    gemm::Device d = {compute, units, {}, memory_bytes_per_us_};
    for (size_t i = 0; i < std::size(products_); i++) {
        d.has[i] = products_[i].is_loaded.load(std::memory_order_acquire);
        if (d.has[i] && products_[i].clusters.of_four > 0) d.clusters = products_[i].clusters;
    }
    return d;
}

void Shipped::launch(const gemm::Launch& l, CUstream stream) const
{
    launch_with(home_, function_of(l), shape_of(l), stream, l.numbers);
}

void Shipped::unload() noexcept
{
    basic_.reset(), interpreter_module_.reset();
    for (Products& p : products_) p.module.reset();
}

// ---- opening ----------------------------------------------------------------------------------------------------------

uint32_t count_devices()
{
    const Driver* driver = Driver::find();
    return driver && driver->is_ours() ? count_devices(*driver) : 0;
}

ng_device_info device_info(uint32_t index) { return info_of(Driver::need("ng_device_get"), int32_t(index)); }

std::unique_ptr<Backend> open_backend(Context& context)
{
    const char* who = "ng_ctx_create";
    const ContextPlan& plan = context.plan();
    if (plan.has_target) throw Error(NG_E_UNSUPPORTED, text(who, ": target \"", plan.target, "\": this version compiles for the device that it runs on"));
    const Driver& driver = Driver::need(who);
    DeviceContext home = plan.native ? DeviceContext::adopt(driver, plan.native) : DeviceContext::primary(driver, plan.device);
    const ng_device_info info = info_of(driver, home.device());
    find_tool();
    return std::make_unique<CudaBackend>(context, std::move(home), info);
}

CudaBackend::CudaBackend(Context& context, DeviceContext home, ng_device_info info)
    : context_(context), home_(std::move(home)), info_(info), arch_(info.arch), compute_(compute_of(home_.driver(), home_.device())),
      most_shared_(attribute_of(home_.driver(), home_.device(), CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)),
      own_(new_stream(StreamKind::Ordered)), uploads_(new_stream(StreamKind::Independent)),
      order_(home_, own_.get(), !(context.flags() & NG_CTX_CALLER_ORDERS)), shipped_(home_, !(context.flags() & NG_CTX_NO_JIT)), stock_(home_, compute_), code_(home_, code_options(), context.counters)
{
    const CurrentContext now(home_);
    pool_.emplace(home_);
    try {
        shipped_.need(), stock_.need();      // for some forty milliseconds: better here than in the first ng_compile
    } catch (const Error& error) {
        if (error.status == NG_E_LOST) throw;            // what else there is, whoever needs them will be told
    }
}

Stream CudaBackend::new_stream(StreamKind kind)
{
    const CurrentContext now(home_);
    const RelaxedCapture relaxed(home_.driver());
    return make_stream(home_, kind);
}

CodeOptions CudaBackend::code_options() const
{
    const ContextPlan& plan = context_.plan();
    CodeOptions o;
    o.compute = compute_;
    o.threads = plan.jit_threads ? plan.jit_threads : std::max(1u, cpu::usable_cores() / 2);
    o.may_compile = !(plan.flags & NG_CTX_NO_JIT);
    o.has_threads = !(plan.flags & NG_CTX_NO_THREADS);
    o.cache_dir = plan.has_cache_dir ? plan.cache_dir.c_str() : nullptr;
    return o;
}

bool CudaBackend::is_ordered() const noexcept { return context_.flags() & NG_CTX_DETERMINISTIC; }

Error CudaBackend::blamed(const Error& error, bool is_open) const
{
    if (error.status != NG_E_LOST || !error.native) return error;
    return Error(error.status, error.text + order_.under_way(is_open), error.at, error.native);
}

void CudaBackend::stop() noexcept
{
    code_.stop();
    evaluated_.clear();
    order_.forget_all();
    if (keeps_memory_.exchange(false)) context_.heap().free_kept();
    shipped_.unload();
    stock_.unload();
    streams_.clear();
    meeting_ = {};
    own_ = {}, uploads_ = {};
    {
        const CurrentContext now(home_, std::nothrow);
        const RelaxedCapture relaxed(home_.driver());
        host_blocks_.end();
    }
    const std::lock_guard hold(blocks_lock_);
    is_stopped_ = true;
    if (blocks_ == 0) end_home();
}

// What is lent beyond the context's end comes back to its pool first.
void CudaBackend::end_home() noexcept
{
    pool_.reset();
    home_.end();
}

// ---- memory -----------------------------------------------------------------------------------------------------------

void* CudaBackend::allocate(uint64_t bytes, size_t, ng_purpose purpose, ng_stream first) noexcept
{
    try {
        const CurrentContext now(home_);
        const RelaxedCapture relaxed(home_.driver());
        void* memory = nullptr;
        if (purpose != NG_MEM_STAGING) memory = reinterpret_cast<void*>(pool_->try_allocate(bytes, static_cast<CUstream>(first)));
        else memory = host_blocks_.take(bytes);
        const std::lock_guard hold(blocks_lock_);
        blocks_ += memory != nullptr;
        return memory;
    } catch (...) {
        return nullptr;
    }
}

// Whoever allocated on the stream of uploads waits for it here; what came on the own one is ordered by its track.
void CudaBackend::settle(ng_stream first) noexcept
{
    if (first != uploads_.get()) return;
    const CurrentContext now(home_, std::nothrow);
    const RelaxedCapture relaxed(home_.driver());
    if (now) (void)home_.driver().cuStreamSynchronize.quiet(uploads_.get());
}

void CudaBackend::free(void* memory, uint64_t bytes, ng_purpose purpose, ng_stream last) noexcept
{
    {
        const CurrentContext now(home_, std::nothrow);
        const RelaxedCapture relaxed(home_.driver());
        if (purpose == NG_MEM_STAGING) host_blocks_.give(memory, bytes);
        else pool_->free(reinterpret_cast<CUdeviceptr>(memory), static_cast<CUstream>(last));
    }
    const std::lock_guard hold(blocks_lock_);
    if (--blocks_ == 0 && is_stopped_) end_home();
}

void CudaBackend::trim(uint64_t keep_bytes)
{
    const CurrentContext now(home_);
    const RelaxedCapture relaxed(home_.driver());
    pool_->trim(keep_bytes);
    host_blocks_.trim(0);
}

void CudaBackend::need_alive()
{
    blaming(false, [&] {
        const CurrentContext now(home_);
        const RelaxedCapture relaxed(home_.driver());
        if (!order_.is_own_captured()) (void)cuda::is_idle(home_, own_.get());
    });
}

void CudaBackend::need_reachable(const void* data, uint64_t, uint32_t flags, const char* who)
{
    const CurrentContext now(home_);
    const PointerInfo info = pointer_info(home_, data);
    if (!info.type)
        throw Error(NG_E_INVALID, text(who, ": data is ordinary memory of the host, which the device does not see; wrap it in a context of \"cpu\" and copy",
                                       flags & NG_HOST ? ", or page-lock it first" : ""));
    if (info.type == CU_MEMORYTYPE_DEVICE && !info.is_managed && info.ordinal >= 0 && info.ordinal != home_.device())
        throw Error(NG_E_INVALID, text(who, ": data is memory of device ", info.ordinal, ", the context is of device ", home_.device()));
}

Aside::~Aside() { backend_.context().free(data_, bytes_, NG_MEM_CODE, &track_); }

void Aside::touch() const { backend_.touch(track_, data_, data_ + bytes_, false, true); }

std::unique_ptr<Aside> CudaBackend::upload(const void* bytes, uint64_t count, const char* who)
{
    std::unique_ptr<Aside> memory(new Aside(*this, static_cast<char*>(context_.allocate(count, ASIDE_ALIGNMENT, NG_MEM_CODE, who)), count));
    const CurrentContext now(home_);
    const RelaxedCapture relaxed(home_.driver());
    home_.driver().cuMemcpyHtoDAsync(address(memory->data()), bytes, count, uploads_.get());
    home_.driver().cuStreamSynchronize(uploads_.get());
    return memory;
}

std::unique_ptr<Aside> CudaBackend::aside(uint64_t bytes, const char* who)
{
    return std::unique_ptr<Aside>(new Aside(*this, static_cast<char*>(context_.allocate_or_leave(bytes, ASIDE_ALIGNMENT, NG_MEM_CODE, who)), bytes));
}

// ---- what was measured --------------------------------------------------------------------------------------------------

DiskCache CudaBackend::files() const
{
    const CodeOptions o = code_options();
    return o.may_compile ? DiskCache::open(o.cache_dir) : DiskCache();
}

// Of this library's kernels on such a device.
Digest CudaBackend::tuned_key() const { return cache_key({"products by shape and place", info_.name, arch_, text(NG_VERSION)}); }

gemm::Tuned& CudaBackend::tuned()
{
    if (tuned_is_read_.load(std::memory_order_acquire)) return tuned_;
    const std::lock_guard hold(tuned_lock_);
    if (tuned_is_read_.load(std::memory_order_relaxed)) return tuned_;
    if (const auto file = files().load(tuned_key())) tuned_.add({file->data(), file->size()});
    tuned_is_read_.store(true, std::memory_order_release);
    return tuned_;
}

// With what other processes stored meanwhile.
void CudaBackend::save_tuned()
{
    const DiskCache folder = files();
    if (const auto file = folder.load(tuned_key())) tuned().add({file->data(), file->size()});
    const std::string all = tuned().text();
    if (!all.empty()) folder.store(tuned_key(), all);
}

ng_stream CudaBackend::stream(uint32_t i)
{
    if (i == 0) return order_.lend(), own_.get();
    if (i >= StreamOrder::MOST / 2) throw Error(NG_E_LIMIT, text("ng_ctx_stream: ", i, " is too many; a context has ", StreamOrder::MOST / 2));
    const std::lock_guard hold(streams_lock_);
    while (streams_.size() < i) streams_.push_back(new_stream(StreamKind::Ordered));
    return streams_[i - 1].get();
}

// ---- two contexts -----------------------------------------------------------------------------------------------------

bool CudaBackend::is_beside(const Backend& other) const noexcept
{
    return std::string_view(other.name()) == name() && static_cast<const CudaBackend&>(other).home_.native() == home_.native();
}

ng_stream CudaBackend::meeting_stream()
{
    const std::lock_guard hold(streams_lock_);
    if (!meeting_) meeting_ = new_stream(StreamKind::Independent);
    return meeting_.get();
}

void CudaBackend::follow(Backend& other)
{
    blaming(true, [&] { order_.follow(static_cast<CudaBackend&>(other).order_); });
}

// ---- elements ---------------------------------------------------------------------------------------------------------

void CudaBackend::copy_strides(const StridedCopy& c, CUstream stream)
{
    shipped_.need();
    auto body = [&](const basic::Launch& launch) { shipped_.launch(launch, stream); };
    const basic::Launcher launcher(body);
    basic::copy(operand(c.in, c, c.in_strides), operand(c.out, c, c.out_strides), c.rank, {nullptr, launcher});
}

void CudaBackend::move(const StridedCopy& c, ng_stream s)
{
    const CUstream stream = native(s, own_);
    int64_t bytes = bytes_of(c);
    if (bytes == 0) return;
    blaming(true, [&] {
        if (is_one_stretch(c, bytes)) home_.driver().cuMemcpyAsync(address(c.out), address(c.in), size_t(bytes), stream);
        else copy_strides(c, stream);
    });
}

void CudaBackend::fill(const StridedCopy& to, uint64_t bits, ng_stream s)
{
    const CUstream stream = native(s, own_);
    const Driver& driver = home_.driver();
    StridedCopy self = to;
    self.in_strides = to.out_strides;
    int64_t bytes = bytes_of(to);
    if (bytes == 0) return;
    blaming(true, [&] {
        if (is_one_stretch(self, bytes) && to.size <= 4) {
            if (to.size == 1) return driver.cuMemsetD8Async(address(to.out), uint8_t(bits), size_t(bytes), stream);
            if (to.size == 2) return driver.cuMemsetD16Async(address(to.out), uint16_t(bits), size_t(bytes / 2), stream);
            return driver.cuMemsetD32Async(address(to.out), uint32_t(bits), size_t(bytes / 4), stream);
        }
        shipped_.need();
        auto body = [&](const basic::Launch& launch) { shipped_.launch(launch, stream); };
        const basic::Launcher launcher(body);
        basic::fill(operand(to.out, to, to.out_strides), to.rank, bits, {nullptr, launcher});
    });
}

std::unique_ptr<Executor> CudaBackend::make_executor(const Plan& plan, Use use, bool is_measured) { return std::make_unique<CudaExecutor>(*this, plan, use, is_measured); }

}  // namespace ng::cuda
