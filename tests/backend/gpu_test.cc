// The pieces of the CUDA backend on the driver and device of this machine, where it has one.
#include "jit/dialect.h"
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/runtime.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <vector>

using namespace ng;
using namespace ng::cuda;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

constexpr int COUNT = 1 << 20;

constexpr const char* SOURCE = R"(
extern "C" __global__ void twice(float* y, const float* x, int n)
{
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = 2 * x[i];
}
extern "C" __global__ void shared(float* y)
{
    extern __shared__ float tile[];
    tile[threadIdx.x + 20000] = float(threadIdx.x);
    __syncthreads();
    y[threadIdx.x] = tile[20000 + 255 - threadIdx.x];
}
)";

const Driver* driver_here()
{
    const Driver* driver = Driver::find();
    if (!driver) {
        try {
            (void)Driver::need("skipped");
        } catch (const Error& error) {
            std::printf("%s\n", error.text.c_str());
        }
    }
    return driver;
}

// Code for the device: a cubin, or null and a line where there is no compiler.
std::unique_ptr<Module> compiled(const DeviceContext& home)
{
    const Compiler* nvrtc = Compiler::find();
    if (!nvrtc) return std::printf("skipped: no libnvrtc.so.13 or .12 here\n"), nullptr;
    const std::string arch = text("sm_", compute_of(home.driver(), home.device()));
    const std::string code = nvrtc->compile({.text = SOURCE, .options = cuda_dialect().options, .arch = arch});
    const std::string ptx = nvrtc->compile({.text = SOURCE, .options = cuda_dialect().options, .arch = "compute_80"});
    CHECK(Module(home, ptx, Module::Accepts::Ptx).function("twice").registers > 0);
    return std::make_unique<Module>(home, code, Module::Accepts::Binary);
}

void launch_twice(const DeviceContext& home, const Function& f, CUstream stream, CUdeviceptr y, CUdeviceptr x, bool is_early = false)
{
    int n = COUNT;
    void* arguments[] = {&y, &x, &n};
    Launch l;
    l.grid[0] = COUNT / 256, l.block[0] = 256, l.is_early = is_early;
    launch(home, f, l, stream, arguments);
}

}  // namespace

TEST_CASE("gpu: devices have names, and the caller's context stays his")
{
    const Driver* driver = driver_here();
    if (!driver) return;
    for (uint32_t i = 0; i < count_devices(*driver); i++) {
        const ng_device_info info = info_of(*driver, int32_t(i));
        std::printf("%s, %s, %s: CUDA %d, %u units, %llu MiB, %llu KiB of L2\n", info.name, info.arch, info.pci, driver->version(), info.units,
                    (unsigned long long)(info.memory_bytes >> 20), (unsigned long long)(info.l2_bytes >> 10));
        CHECK(info.units > 0);
        CHECK(info.memory_bytes > uint64_t(1) << 30);
    }
    CUcontext before = nullptr, after = nullptr;
    driver->cuCtxGetCurrent(&before);
    {
        const DeviceContext home = DeviceContext::primary(*driver, 0);
        const CurrentContext now(home);
        const Stream stream = make_stream(home, StreamKind::Ordered);
        const DeviceContext adopted = DeviceContext::adopt(*driver, home.native());
        CHECK(adopted.device() == home.device());
    }
    driver->cuCtxGetCurrent(&after);
    CHECK(before == after);
}

TEST_CASE("gpu: copies, launches, events of two streams and memory of a pool")
{
    const Driver* driver = driver_here();
    if (!driver) return;
    const DeviceContext home = DeviceContext::primary(*driver, 0);
    const CurrentContext now(home);
    const std::unique_ptr<Module> module = compiled(home);
    if (!module) return;
    const Function f = module->function("twice");
    CHECK(f.registers > 0);
    CHECK(f.local_bytes == 0);
    CHECK(blocks_per_unit(home, f, 256, 0) > 0);
    if (compute_of(*driver, home.device()) >= 90) {
        CHECK(clusters_at_once(home, f, 2, 256, 0) > 0);
        CHECK(clusters_at_once(home, f, 8, 256, 0) <= clusters_at_once(home, f, 2, 256, 0) / 4);
    }
    const Stream first = make_stream(home, StreamKind::Ordered), second = make_stream(home, StreamKind::Independent);
    MemoryPool pool(home);
    const HostMemory staging = make_host_memory(home, COUNT * 4);
    float* host = static_cast<float*>(staging.get());
    for (int i = 0; i < COUNT; i++) host[i] = float(i);
    {
        const DeviceMemory x(pool, COUNT * 4, first.get()), y(pool, COUNT * 4, first.get());
        const Event begin(home, Event::Timing::On), end(home, Event::Timing::On), done(home);
        begin.record(first.get());
        driver->cuMemcpyHtoDAsync(x.get(), host, COUNT * 4, first.get());
        launch_twice(home, f, first.get(), y.get(), x.get());
        launch_twice(home, f, first.get(), y.get(), y.get(), true);
        end.record(first.get());
        end.hold(second.get());
        driver->cuMemcpyDtoHAsync(host, y.get(), COUNT * 4, second.get());
        done.record(second.get());
        done.wait();
        CHECK(end.is_done());
        CHECK(end.milliseconds_since(begin) > 0);
        CHECK(is_idle(home, second.get()));
        int wrong = 0;
        for (int i = 0; i < COUNT; i++) wrong += host[i] != 4 * float(i);
        CHECK(wrong == 0);
        const PointerInfo inside = pointer_info(home, reinterpret_cast<char*>(x.get()) + 5);
        CHECK(inside.type == CU_MEMORYTYPE_DEVICE);
        CHECK(inside.ordinal == home.device());
        CHECK(inside.begin == x.get());
        CHECK(inside.bytes >= COUNT * 4);
        CHECK(pointer_info(home, &inside).type == 0);
        CHECK(pool.used_bytes() >= 2 * COUNT * 4);
    }
    driver->cuStreamSynchronize(first.get());
    CHECK(pool.used_bytes() == 0);
    CHECK(pool.reserved_bytes() > 0);
    pool.trim(0);
    CHECK(pool.reserved_bytes() == 0);
    CHECK(pool.try_allocate(uint64_t(1) << 46, first.get()) == 0);
}

TEST_CASE("gpu: captures beside loading, graphs, and shared memory beyond 48 KiB")
{
    const Driver* driver = driver_here();
    if (!driver) return;
    const DeviceContext home = DeviceContext::primary(*driver, 0);
    const CurrentContext now(home);
    const std::unique_ptr<Module> module = compiled(home);
    if (!module) return;
    const Function f = module->function("twice"), tiled = module->function("shared");
    const Stream stream = make_stream(home, StreamKind::Ordered);
    MemoryPool pool(home);
    const DeviceMemory x(pool, COUNT * 4, stream.get());
    driver->cuMemsetD32Async(x.get(), 0x3f800000, COUNT, stream.get());
    driver->cuStreamSynchronize(stream.get());

    CHECK(!is_capturing(home, nullptr));
    driver->cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(is_capturing(home, stream.get()));
    CHECK(!is_capturing(home, nullptr));
    launch_twice(home, f, stream.get(), x.get(), x.get());
    {
        const RelaxedCapture relaxed(*driver);
        (void)compiled(home);                                   // loads modules
    }
    CHECK(is_capturing(home, stream.get()));
    CUgraph graph = nullptr;
    driver->cuStreamEndCapture(stream.get(), &graph);
    const Held<CUgraph, &Driver::cuGraphDestroy> own_graph(home, graph);
    CUgraphExec made = nullptr;
    driver->cuGraphInstantiateWithFlags(&made, graph, 0);
    const Held<CUgraphExec, &Driver::cuGraphExecDestroy> exec(home, made);
    for (int i = 0; i < 3; i++) driver->cuGraphLaunch(made, stream.get());
    float last = 0;
    driver->cuMemcpyDtoHAsync(&last, x.get() + (COUNT - 1) * 4, 4, stream.get());
    driver->cuStreamSynchronize(stream.get());
    CHECK(last == 8);

    constexpr uint32_t bytes = 20256 * 4;
    CUdeviceptr y = x.get();
    void* arguments[] = {&y};
    Launch l;
    l.block[0] = 256, l.shared_bytes = bytes;
    CHECK(try_launch(home, tiled, l, stream.get(), arguments) == CUDA_ERROR_INVALID_VALUE);
    allow_shared(home, tiled, bytes);
    launch(home, tiled, l, stream.get(), arguments);
    driver->cuMemcpyDtoHAsync(&last, y, 4, stream.get());
    driver->cuStreamSynchronize(stream.get());
    CHECK(last == 255);
}

// The last: no call of this process reaches the device any more.
TEST_CASE("gpu: a kernel's fault is NG_E_LOST, and all that was made still ends")
{
    const Driver* driver = driver_here();
    if (!driver) return;
    const DeviceContext home = DeviceContext::primary(*driver, 0);
    const CurrentContext now(home);
    const std::unique_ptr<Module> module = compiled(home);
    if (!module) return;
    const Stream stream = make_stream(home, StreamKind::Ordered);
    const Event event(home);
    MemoryPool pool(home);
    const DeviceMemory memory(pool, 64, stream.get());
    launch_twice(home, module->function("twice"), stream.get(), 0, 0);
    try {
        driver->cuStreamSynchronize(stream.get());
        FAIL("nothing was said of writes to address 0");
    } catch (const Error& error) {
        std::printf("%s\n", error.text.c_str());
        CHECK(error.status == NG_E_LOST);
        CHECK(error.native == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}
