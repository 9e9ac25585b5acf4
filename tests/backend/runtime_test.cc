// Devices, contexts, streams, memory and code of CUDA on the stand-in of its driver.
#include "lib/backend/cuda/runtime.h"
#include "tests/backend/stand_in.h"

#include <optional>
#include <thread>
#include <vector>

using namespace ng;
using namespace ng::cuda;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

void* current_context(const Driver& driver)
{
    CUcontext context = nullptr;
    driver.cuCtxGetCurrent(&context);
    return context;
}

}  // namespace

TEST_CASE("devices: what the driver says of each, and no others")
{
    const Driver& driver = fresh_driver();
    CHECK(count_devices(driver) == 2);
    const ng_device_info info = info_of(driver, 1);
    CHECK(info.size == sizeof info);
    CHECK(info.ordinal == 1);
    CHECK(std::string(info.backend) == "cuda");
    CHECK(std::string(info.name) == "Stand-in 1");
    CHECK(std::string(info.arch) == "sm_86");
    CHECK(std::string(info_of(driver, 0).arch) == "sm_90");
    CHECK(std::string(info.pci) == "0000:02:00.0");
    CHECK(info.uuid[15] == 31);
    CHECK(info.memory_bytes == uint64_t(1) << 30);
    CHECK(info.l2_bytes == 1 << 20);
    CHECK(info.units == 4);
    for (const int32_t ordinal : {-1, 2}) {
        const Error error = thrown_by([&] { (void)info_of(driver, ordinal); });
        CHECK(error.status == NG_E_INVALID);
        CHECK(error.text == text("cuda: there is no device ", ordinal, "; the driver sees 2"));
    }
}

TEST_CASE("contexts: the caller's current one is as before, also when something throws")
{
    const Driver& driver = fresh_driver();
    CUcontext host = static_cast<CUcontext>(stand_in().create_context(1));
    driver.cuCtxPushCurrent(host);
    {
        const DeviceContext home = DeviceContext::primary(driver, 0);
        CHECK(stand_in().counts().primary_holds == 1);
        CHECK(current_context(driver) == host);                 // to retain is not to make current
        (void)thrown_by([&] {
            const CurrentContext now(home);
            CHECK(current_context(driver) == home.native());
            const CurrentContext again(home);
            throw Error(NG_E_BUG, "");
        });
        CHECK(current_context(driver) == host);
        { const Stream stream = [&] { const CurrentContext now(home); return make_stream(home, StreamKind::Ordered); }(); }
        CHECK(current_context(driver) == host);
        CHECK(stand_in().counts().streams == 0);
        stand_in().fail_function("cuCtxPushCurrent", 1, CUDA_ERROR_INVALID_CONTEXT);
        CHECK(thrown_by([&] { const CurrentContext now(home); }).status == NG_E_LOST);
        stand_in().fail_function("cuCtxPushCurrent", 1, CUDA_ERROR_INVALID_CONTEXT);
        { const CurrentContext now(home, std::nothrow); CHECK(!now); }
        CHECK(current_context(driver) == host);
    }
    CHECK(stand_in().counts().primary_holds == 0);
    CUcontext popped = nullptr;
    driver.cuCtxPopCurrent(&popped);
    CHECK(popped == host);
    CHECK(stand_in().counts().alive() == 0);
}

TEST_CASE("contexts: one of the host's is used, not kept; when the host destroyed it, all is lost and nothing is touched")
{
    const Driver& driver = fresh_driver();
    void* host = stand_in().create_context(1);
    {
        const DeviceContext home = DeviceContext::adopt(driver, host);
        CHECK(home.device() == 1);
        CHECK(home.native() == host);
        std::optional<CurrentContext> now(std::in_place, home);
        const Stream stream = make_stream(home, StreamKind::Ordered);
        const Event event(home);
        MemoryPool pool(home);
        const DeviceMemory memory(pool, 64, stream.get());
        now.reset();
        stand_in().destroy_context(host);
        const Error error = thrown_by([&] { const CurrentContext again(home); });
        CHECK(error.status == NG_E_LOST);
        CHECK(holds(error.text, "cuCtxPushCurrent: "));
    }
    CHECK(stand_in().counts().misuses == 0);
    CHECK(stand_in().counts().streams == 1);                    // it went with its context
    CHECK(thrown_by([&] { (void)DeviceContext::adopt(driver, host); }).status == NG_E_LOST);
    CHECK(stand_in().counts().pushed == 0);
    stand_in().reset();
}

TEST_CASE("streams: work in two of them is ordered by an event, and by nothing else")
{
    const Driver& driver = fresh_driver();
    for (const bool is_ordered : {false, true}) {
        stand_in().reset();
        stand_in().defer(true);
        const DeviceContext home = DeviceContext::primary(driver, 0);
        const CurrentContext now(home);
        const Stream writer = make_stream(home, StreamKind::Ordered), reader = make_stream(home, StreamKind::Ordered);
        MemoryPool pool(home);
        const DeviceMemory memory(pool, 64, writer.get());
        const HostMemory read = make_host_memory(home, 64);
        const Event written(home);
        CHECK(written.is_done());                               // nothing was recorded
        driver.cuMemsetD8Async(memory.get(), 7, 64, writer.get());
        written.record(writer.get());
        if (is_ordered) written.hold(reader.get());
        driver.cuMemcpyDtoHAsync(read.get(), memory.get(), 64, reader.get());
        driver.cuStreamSynchronize(reader.get());
        CHECK(static_cast<const uint8_t*>(read.get())[63] == (is_ordered ? 7 : 0xCD));
        CHECK(is_idle(home, writer.get()) == is_ordered);
        written.wait();
        CHECK(written.is_done());
        CHECK(is_idle(home, reader.get()));
    }
    CHECK(stand_in().counts().alive() == 0);
    stand_in().reset();
}

TEST_CASE("memory: a pool says no with NG_E_DEVMEM, keeps what is freed until it is trimmed, and frees in the stream's order")
{
    const Driver& driver = fresh_driver();
    stand_in().set_memory(1000);
    stand_in().defer(true);
    {
        const DeviceContext home = DeviceContext::primary(driver, 0);
        const CurrentContext now(home);
        const Stream stream = make_stream(home, StreamKind::Independent);
        MemoryPool pool(home);
        REQUIRE(pool.has_pool());
        DeviceMemory first(pool, 600, stream.get());
        CHECK(first.get() % 256 == 0);
        CHECK(pool.try_allocate(600, stream.get()) == 0);
        const Error error = thrown_by([&] { (void)pool.allocate(600, stream.get()); });
        CHECK(error.status == NG_E_DEVMEM);
        CHECK(error.native == CUDA_ERROR_OUT_OF_MEMORY);
        CHECK(holds(error.text, "cuMemAllocFromPoolAsync: no memory for 600 bytes"));
        CHECK(pool.used_bytes() == 600);
        first = DeviceMemory();
        CHECK(stand_in().counts().queued == 1);                 // not before what is queued
        driver.cuStreamSynchronize(stream.get());
        CHECK(pool.used_bytes() == 0);
        CHECK(pool.reserved_bytes() == 600);
        pool.trim(0);
        CHECK(pool.reserved_bytes() == 0);
        pool.free(pool.allocate(0, stream.get()), stream.get());
        stand_in().fail_function("cuMemAllocFromPoolAsync", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(thrown_by([&] { (void)pool.try_allocate(1, stream.get()); }).text == "cuMemAllocFromPoolAsync: the stand-in was told to say no (CUDA_ERROR_ILLEGAL_ADDRESS)");
    }
    CHECK(stand_in().counts().alive() == 0);
    stand_in().reset();
}

TEST_CASE("memory: devices without pools have plain allocations")
{
    const Driver& driver = fresh_driver();
    stand_in().set_pools(false);
    stand_in().set_memory(1000);
    {
        const DeviceContext home = DeviceContext::primary(driver, 0);
        const CurrentContext now(home);
        MemoryPool pool(home);
        CHECK(!pool.has_pool());
        const DeviceMemory memory(pool, 600, nullptr);
        CHECK(holds(thrown_by([&] { (void)pool.allocate(600, nullptr); }).text, "cuMemAlloc: no memory for 600 bytes"));
        CHECK(pool.reserved_bytes() == 0);
        pool.trim(0);
        stand_in().fail_function("cuMemAlloc", 1, 999);
        CHECK(thrown_by([&] { (void)pool.try_allocate(1, nullptr); }).text == "cuMemAlloc: the stand-in was told to say no (CUDA_ERROR_UNKNOWN)");
    }
    CHECK(stand_in().counts().alive() == 0);
    stand_in().reset();
}

TEST_CASE("memory: addresses are what the driver knows of them")
{
    const Driver& driver = fresh_driver();
    const DeviceContext home = DeviceContext::primary(driver, 1);
    const CurrentContext now(home);
    MemoryPool pool(home);
    const DeviceMemory device(pool, 100, nullptr);
    const HostMemory host = make_host_memory(home, 100);
    std::vector<char> registered(100), plain(100);
    {
        const HostRegistration registration = register_host_memory(home, registered.data(), 100);
        CHECK(pointer_info(home, registered.data() + 99).type == CU_MEMORYTYPE_HOST);
        CHECK(thrown_by([&] { (void)register_host_memory(home, registered.data(), 100); }).native == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    CHECK(pointer_info(home, registered.data()).type == 0);
    CHECK(pointer_info(home, plain.data()).type == 0);
    CHECK(pointer_info(home, plain.data()).ordinal < 0);
    const PointerInfo inside = pointer_info(home, reinterpret_cast<char*>(device.get()) + 7);
    CHECK(inside.type == CU_MEMORYTYPE_DEVICE);
    CHECK(inside.ordinal == 1);
    CHECK(inside.begin == device.get());
    CHECK(inside.bytes == 100);
    CHECK(inside.context == nullptr);
    CHECK(pointer_info(home, host.get()).context == home.native());
    stand_in().fail_function("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(thrown_by([&] { (void)make_host_memory(home, 100); }).status == NG_E_NOMEM);
}

TEST_CASE("code: texts are for those who let the driver compile, and its log comes with its refusal")
{
    const Driver& driver = fresh_driver();
    {
        const DeviceContext home = DeviceContext::primary(driver, 0);
        const CurrentContext now(home);
        const Error refused = thrown_by([&] { const Module module(home, STAND_IN_CODE, Module::Accepts::Binary); });
        CHECK(refused.status == NG_E_UNSUPPORTED);
        const Error wrong = thrown_by([&] { const Module module(home, "no code", Module::Accepts::Ptx); });
        CHECK(wrong.status == NG_E_COMPILE);
        CHECK(wrong.native == CUDA_ERROR_INVALID_PTX);
        CHECK(holds(wrong.text, "ptxas stand-in, line 1"));
        const Module module(home, STAND_IN_CODE, Module::Accepts::Ptx);
        const Error missing = thrown_by([&] { (void)module.function("thrice"); });
        CHECK(missing.native == CUDA_ERROR_NOT_FOUND);
        CHECK(holds(missing.text, "cuModuleGetFunction: "));
        const Function f = module.function("nothing");
        CHECK(f.registers == 32);
        CHECK(f.local_bytes == 0);
        CHECK(f.max_threads == 1024);
    }
    CHECK(stand_in().counts().alive() == 0);
}

TEST_CASE("code: launches, those of clusters and those that start early")
{
    const Driver& driver = fresh_driver();
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    const Module module(home, STAND_IN_CODE, Module::Accepts::Ptx);
    const Function f = module.function("nothing");
    static unsigned seen[4];
    stand_in().set_kernel("nothing", [](const fake::KernelLaunch& l) {
        seen[0] = l.grid[0], seen[1] = l.block[1], seen[2] = l.cluster[0], seen[3] = l.shared_bytes;
    }, nullptr, 0);
    Launch l;
    l.grid[0] = 8, l.block[1] = 32, l.shared_bytes = 100000;
    Error error = thrown_by([&] { launch(home, f, l, nullptr, nullptr); });
    CHECK(error.status == NG_E_DEVICE);
    CHECK(holds(error.text, "cuLaunchKernel: "));
    allow_shared(home, f, 100000);
    launch(home, f, l, nullptr, nullptr);
    CHECK((seen[0] == 8 && seen[1] == 32 && seen[2] == 1 && seen[3] == 100000));
    l.cluster[0] = 3;
    CHECK(holds(thrown_by([&] { launch(home, f, l, nullptr, nullptr); }).text, "cuLaunchKernelEx: "));
    for (const bool is_early : {false, true}) {
        l.cluster[0] = 4, l.is_early = is_early;
        CHECK(try_launch(home, f, l, nullptr, nullptr) == CUDA_SUCCESS);
        CHECK(seen[2] == 4);
    }
    l.cluster[0] = 1;
    CHECK(try_launch(home, f, l, nullptr, nullptr) == CUDA_SUCCESS);
    CHECK(seen[2] == 1);
    CHECK(stand_in().counts().launches == 4);
    l.grid[0] = 0;
    CHECK(try_launch(home, f, l, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("captures: what we do beside a host that captures spoils nothing when it is relaxed")
{
    const Driver& driver = fresh_driver();
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    const Stream stream = make_stream(home, StreamKind::Independent);
    CHECK(!is_capturing(home, stream.get()));
    CUgraph graph = nullptr;
    for (const bool is_relaxed : {true, false}) {
        driver.cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
        CHECK(is_capturing(home, stream.get()));
        std::thread([&] {
            const CurrentContext ours(home);
            std::optional<RelaxedCapture> relaxed;
            if (is_relaxed) relaxed.emplace(driver);
            const Error error = thrown_by([&] { const Module module(home, STAND_IN_CODE, Module::Accepts::Ptx); });
            CHECK(error.native == (is_relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
        }).join();
        CHECK(is_capturing(home, stream.get()) == is_relaxed);
        CHECK((driver.cuStreamEndCapture.quiet(stream.get(), &graph) == CUDA_SUCCESS) == is_relaxed);
        if (graph) driver.cuGraphDestroy(graph);
    }
    int mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    { const RelaxedCapture relaxed(driver); }
    driver.cuThreadExchangeStreamCaptureMode(&mode);
    CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);               // as the thread had it
}

TEST_CASE("captures: the legacy stream never captures, also when asked while another does")
{
    const Driver& driver = fresh_driver();
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    const Stream stream = make_stream(home, StreamKind::Ordered);
    CHECK(!is_capturing(home, nullptr));
    driver.cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    CHECK(!is_capturing(home, nullptr));
    CHECK(is_capturing(home, stream.get()));
    CHECK(driver.cuMemsetD8Async.quiet(0, 0, 0, nullptr) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(!is_capturing(home, stream.get()));                   // spoilt
}

TEST_CASE("captures: what a graph needs lives as long as it")
{
    const Driver& driver = fresh_driver();
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    const Stream stream = make_stream(home, StreamKind::Ordered);
    bool is_gone = false;
    driver.cuStreamBeginCapture(stream.get(), CU_STREAM_CAPTURE_MODE_RELAXED);
    CUgraph graph = nullptr;
    driver.cuStreamEndCapture(stream.get(), &graph);
    CUuserObject object = nullptr;
    driver.cuUserObjectCreate(&object, &is_gone, [](void* gone) { *static_cast<bool*>(gone) = true; }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    driver.cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    CUgraphExec exec = nullptr;
    driver.cuGraphInstantiateWithFlags(&exec, graph, 0);
    driver.cuGraphDestroy(graph);
    CHECK(!is_gone);
    driver.cuGraphExecDestroy(exec);
    CHECK(is_gone);
}
