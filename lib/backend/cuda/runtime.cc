// Devices, contexts, memory and code of CUDA by the table of the driver's functions.
#include "lib/backend/cuda/runtime.h"

#include <algorithm>
#include <cstring>

namespace ng::cuda {

uint32_t count_devices(const Driver& driver)
{
    int count = 0;
    driver.cuDeviceGetCount(&count);
    return uint32_t(std::max(count, 0));
}

CUdevice device_at(const Driver& driver, int32_t ordinal)
{
    const uint32_t count = count_devices(driver);
    if (ordinal < 0 || uint32_t(ordinal) >= count)
        throw Error(NG_E_INVALID, text("cuda: there is no device ", ordinal, "; the driver sees ", count));
    CUdevice device = 0;
    driver.cuDeviceGet(&device, ordinal);
    return device;
}

int attribute_of(const Driver& driver, CUdevice device, int attribute)
{
    int value = 0;
    driver.cuDeviceGetAttribute(&value, attribute, device);
    return value;
}

int compute_of(const Driver& driver, CUdevice device)
{
    return 10 * attribute_of(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
         + attribute_of(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

ng_device_info info_of(const Driver& driver, int32_t ordinal)
{
    const CUdevice device = device_at(driver, ordinal);
    ng_device_info info{};
    info.size = sizeof info;
    info.ordinal = ordinal;
    std::strcpy(info.backend, "cuda");
    driver.cuDeviceGetName(info.name, sizeof info.name, device);
    driver.cuDeviceGetPCIBusId(info.pci, sizeof info.pci, device);
    info.name[sizeof info.name - 1] = info.pci[sizeof info.pci - 1] = 0;
    const std::string arch = text("sm_", compute_of(driver, device));
    arch.copy(info.arch, sizeof info.arch - 1);
    CUuuid uuid{};
    driver.cuDeviceGetUuid(&uuid, device);
    static_assert(sizeof info.uuid == sizeof uuid);
    std::memcpy(info.uuid, uuid.bytes, sizeof info.uuid);
    size_t bytes = 0;
    driver.cuDeviceTotalMem(&bytes, device);
    info.memory_bytes = bytes;
    info.l2_bytes = uint64_t(attribute_of(driver, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
    info.units = uint32_t(attribute_of(driver, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    return info;
}

Rates rates_of(const Driver& driver, CUdevice device) noexcept
{
    // Of each multiprocessor since sm_70, four schedulers begin an instruction of a warp each clock.
    constexpr double LANES = 4 * 32, TRANSFERS = 2;      // data goes at both edges of the memory's clock
    constexpr Rates H200 = {4.8e6, 132 * LANES * 1980};
    const auto ask = [&](int attribute) {
        int value = 0;
        return driver.cuDeviceGetAttribute.quiet(&value, attribute, device) == CUDA_SUCCESS ? double(value) : 0;
    };
    const double units = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), clock_khz = ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    const double memory_khz = ask(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE), bits = ask(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    if (units <= 0 || clock_khz <= 0 || memory_khz <= 0 || bits <= 0) return H200;
    return {TRANSFERS * memory_khz / 1000 * bits / 8, units * LANES * clock_khz / 1000};
}

DeviceContext DeviceContext::primary(const Driver& driver, int32_t ordinal)
{
    const CUdevice device = device_at(driver, ordinal);
    CUcontext context = nullptr;
    driver.cuDevicePrimaryCtxRetain(&context, device);
    return {driver, context, device, true};
}

DeviceContext DeviceContext::adopt(const Driver& driver, void* native)
{
    DeviceContext made(driver, static_cast<CUcontext>(native), 0, false);
    const CurrentContext now(made);
    driver.cuCtxGetDevice(&made.device_);
    return made;
}

void DeviceContext::end() noexcept
{
    if (std::exchange(context_, nullptr) && is_primary_) (void)driver_->cuDevicePrimaryCtxRelease.quiet(device_);
}

// ---- streams and events -----------------------------------------------------------------------------------------------

Stream make_stream(const DeviceContext& home, StreamKind kind, int priority)
{
    CUstream stream = nullptr;
    home.driver().cuStreamCreateWithPriority(&stream, kind == StreamKind::Ordered ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING, priority);
    return {home, stream};
}

bool is_idle(const DeviceContext& home, CUstream stream)
{
    const CUresult result = home.driver().cuStreamQuery.quiet(stream);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) home.driver().cuStreamQuery.fail(result);
    return result == CUDA_SUCCESS;
}

bool is_capturing(const DeviceContext& home, CUstream stream)
{
    int state = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = home.driver().cuStreamIsCapturing.quiet(stream, &state);
    // Asked of the legacy stream while another one captures, the driver refuses; the legacy stream itself never does.
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) home.driver().cuStreamIsCapturing.fail(result);
    return result == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

Event::Event(const DeviceContext& home, Timing timing)
{
    CUevent event = nullptr;
    home.driver().cuEventCreate(&event, timing == Timing::On ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
    event_ = {home, event};
}

bool Event::is_done() const
{
    const CUresult result = driver().cuEventQuery.quiet(native());
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) driver().cuEventQuery.fail(result);
    return result == CUDA_SUCCESS;
}

float Event::milliseconds_since(const Event& begin) const
{
    float milliseconds = 0;
    driver().cuEventElapsedTime(&milliseconds, begin.native(), native());
    return milliseconds;
}

// ---- memory -----------------------------------------------------------------------------------------------------------

MemoryPool::MemoryPool(const DeviceContext& home) : home_(home)
{
    const Driver& driver = home.driver();
    if (!attribute_of(driver, home.device(), CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)) return;
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location_type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location_id = home.device();
    CUmemoryPool pool = nullptr;
    driver.cuMemPoolCreate(&pool, &properties);
    pool_ = {home, pool};
    // By default a pool gives all that is free back whenever the host waits, and takes it again at some cost.
    uint64_t threshold = UINT64_MAX;
    driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
}

CUresult MemoryPool::take(CUdeviceptr* memory, uint64_t bytes, CUstream stream) const noexcept
{
    bytes = std::max<uint64_t>(bytes, 1);
    const Driver& driver = home_.driver();
    return pool_ ? driver.cuMemAllocFromPoolAsync.quiet(memory, bytes, pool_.get(), stream) : driver.cuMemAlloc.quiet(memory, bytes);
}

CUdeviceptr MemoryPool::try_allocate(uint64_t bytes, CUstream stream)
{
    CUdeviceptr memory = 0;
    const CUresult result = take(&memory, bytes, stream);
    if (result == CUDA_SUCCESS) return memory;
    if (result == CUDA_ERROR_OUT_OF_MEMORY) return 0;
    const Driver& driver = home_.driver();
    driver.fail(pool_ ? driver.cuMemAllocFromPoolAsync.name() : driver.cuMemAlloc.name(), result);
}

CUdeviceptr MemoryPool::allocate(uint64_t bytes, CUstream stream)
{
    if (const CUdeviceptr memory = try_allocate(bytes, stream)) return memory;
    const Driver& driver = home_.driver();
    const char* function = pool_ ? driver.cuMemAllocFromPoolAsync.name() : driver.cuMemAlloc.name();
    throw Error(NG_E_DEVMEM, text(function, ": no memory for ", bytes, " bytes: ", driver.describe(CUDA_ERROR_OUT_OF_MEMORY)), -1,
                CUDA_ERROR_OUT_OF_MEMORY);
}

void MemoryPool::free(CUdeviceptr memory, CUstream stream) noexcept
{
    const Driver& driver = home_.driver();
    const CurrentContext now(home_, std::nothrow);
    if (!now) return;
    if (pool_) {
        (void)driver.cuMemFreeAsync.quiet(memory, stream);
        return;
    }
    (void)driver.cuStreamSynchronize.quiet(stream);
    (void)driver.cuMemFree.quiet(memory);
}

void MemoryPool::trim(uint64_t keep_bytes)
{
    if (pool_) home_.driver().cuMemPoolTrimTo(pool_.get(), keep_bytes);
}

uint64_t MemoryPool::count(int attribute) const
{
    uint64_t bytes = 0;
    if (pool_) home_.driver().cuMemPoolGetAttribute(pool_.get(), attribute, &bytes);
    return bytes;
}

HostMemory make_host_memory(const DeviceContext& home, uint64_t bytes)
{
    void* memory = nullptr;
    const CUresult result = home.driver().cuMemHostAlloc.quiet(&memory, std::max<uint64_t>(bytes, 1), CU_MEMHOSTALLOC_PORTABLE);
    // It is the host's memory that is out.
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        throw Error(NG_E_NOMEM, text("cuMemHostAlloc: no page-locked memory for ", bytes, " bytes: ", home.driver().describe(result)), -1, result);
    if (result != CUDA_SUCCESS) home.driver().cuMemHostAlloc.fail(result);
    return {home, memory};
}

HostRegistration register_host_memory(const DeviceContext& home, void* memory, uint64_t bytes)
{
    home.driver().cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    return {home, memory};
}

PointerInfo pointer_info(const DeviceContext& home, const void* address)
{
    PointerInfo info;
    unsigned is_managed = 0;
    int attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                        CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* values[] = {&info.type, &info.ordinal, &is_managed, &info.context, &info.begin, &info.bytes};
    static_assert(std::size(attributes) == std::size(values));
    // It does not fail where the driver knows nothing: every value is then 0, the ordinal negative.
    home.driver().cuPointerGetAttributes(unsigned(std::size(attributes)), attributes, values, CUdeviceptr(reinterpret_cast<uintptr_t>(address)));
    info.is_managed = is_managed & 1;
    return info;
}

// ---- code -------------------------------------------------------------------------------------------------------------

Module::Module(const DeviceContext& home, const std::string& image, Accepts accepts)
{
    const Driver& driver = home.driver();
    CUmodule module = nullptr;
    if (image.starts_with("\x7f" "ELF")) {
        driver.cuModuleLoadData(&module, image.data());
        module_ = {home, module};
        return;
    }
    if (accepts != Accepts::Ptx)
        throw Error(NG_E_UNSUPPORTED, "cuModuleLoadData: the code is not for this device, and the driver may not compile it here");
    std::string log(8192, '\0');
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log.data(), reinterpret_cast<void*>(log.size())};
    const CUresult result = driver.cuModuleLoadDataEx.quiet(&module, image.c_str(), unsigned(std::size(options)), options, values);
    log.resize(std::strlen(log.c_str()));
    if (result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        throw Error(NG_E_COMPILE, text("cuModuleLoadDataEx: ", driver.describe(result), log.empty() ? "" : ": ", log), -1, result);
    if (result != CUDA_SUCCESS) driver.cuModuleLoadDataEx.fail(result);
    module_ = {home, module};
}

Function Module::function(const char* name) const
{
    const Driver& driver = module_.home().driver();
    Function f;
    driver.cuModuleGetFunction(&f.native, module_.get(), name);
    // Where modules are loaded lazily, asking for these numbers loads the function.
    driver.cuFuncGetAttribute(&f.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, f.native);
    driver.cuFuncGetAttribute(&f.local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f.native);
    driver.cuFuncGetAttribute(&f.shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f.native);
    driver.cuFuncGetAttribute(&f.max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f.native);
    return f;
}

void allow_shared(const DeviceContext& home, const Function& f, uint32_t bytes)
{
    home.driver().cuFuncSetAttribute(f.native, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(bytes));
}

void allow_large_clusters(const DeviceContext& home, const Function& f)
{
    home.driver().cuFuncSetAttribute(f.native, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
}

int blocks_per_unit(const DeviceContext& home, const Function& f, uint32_t threads, uint32_t shared_bytes)
{
    int blocks = 0;
    home.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f.native, int(threads), shared_bytes);
    return blocks;
}

int clusters_at_once(const DeviceContext& home, const Function& f, uint32_t cluster, uint32_t threads, uint32_t shared_bytes)
{
    CUlaunchAttribute blocks = {};
    blocks.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, blocks.value.clusterDim = {cluster, 1, 1};
    const CUlaunchConfig config = {cluster, 1, 1, threads, 1, 1, shared_bytes, nullptr, &blocks, 1};
    int clusters = 0;
    home.driver().cuOccupancyMaxActiveClusters(&clusters, f.native, &config);
    return clusters;
}

namespace {

// Whether it needs what only cuLaunchKernelEx has.
bool is_extended(const Launch& l) { return l.is_early || l.cluster != std::array<uint32_t, 3>{1, 1, 1}; }

}  // namespace

CUresult try_launch(const DeviceContext& home, const Function& f, const Launch& l, CUstream stream, void** arguments) noexcept
{
    const Driver& driver = home.driver();
    const auto& [x, y, z] = l.grid;
    const auto& [threads_x, threads_y, threads_z] = l.block;
    if (!is_extended(l))
        return driver.cuLaunchKernel.quiet(f.native, x, y, z, threads_x, threads_y, threads_z, l.shared_bytes, stream, arguments, nullptr);
    CUlaunchAttribute attributes[2] = {};
    attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attributes[0].value.clusterDim = {l.cluster[0], l.cluster[1], l.cluster[2]};
    attributes[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[1].value.programmaticStreamSerializationAllowed = 1;
    const bool has_cluster = l.cluster != std::array<uint32_t, 3>{1, 1, 1};
    const CUlaunchConfig config = {x, y, z, threads_x, threads_y, threads_z, l.shared_bytes, stream, attributes + !has_cluster,
                                   unsigned(has_cluster) + unsigned(l.is_early)};
    return driver.cuLaunchKernelEx.quiet(&config, f.native, arguments, nullptr);
}

void launch(const DeviceContext& home, const Function& f, const Launch& l, CUstream stream, void** arguments)
{
    const CUresult result = try_launch(home, f, l, stream, arguments);
    if (result == CUDA_SUCCESS) return;
    try {
        home.driver().fail(is_extended(l) ? home.driver().cuLaunchKernelEx.name() : home.driver().cuLaunchKernel.name(), result);
    } catch (const Error& error) {
        throw Error(error.status, text(error.text, ": ", l.grid[0], " blocks in clusters of ", l.cluster[0], ", ", l.block[0], " threads of ", f.registers, " registers (", f.max_threads,
                                       " at most), ", f.shared_bytes, " + ", l.shared_bytes, " bytes shared"), error.at, error.native);
    }
}

}  // namespace ng::cuda
