// Every call of CUDA's driver that fails in turn, on its stand-in: an Error each time, and nothing left behind; and forks.
#include "lib/backend/cuda/runtime.h"
#include "tests/backend/stand_in.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

using namespace ng;
using namespace ng::cuda;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

// y[i] = 2 x[i] for n floats; y, x, n are its arguments.
void twice(const fake::KernelLaunch& launch)
{
    float *y, *x;
    int n;
    std::memcpy(&y, launch.arguments[0], 8), std::memcpy(&x, launch.arguments[1], 8), std::memcpy(&n, launch.arguments[2], 4);
    for (int i = 0; i < n; i++) y[i] = 2 * x[i];
}

const Driver& fresh()
{
    const Driver& driver = fresh_driver();
    static constexpr size_t sizes[] = {8, 8, 4};
    stand_in().set_kernel("twice", twice, sizes, 3);
    return driver;
}

void launch_twice(const DeviceContext& home, const Function& f, CUstream stream, CUdeviceptr y, CUdeviceptr x, int n)
{
    void* arguments[] = {&y, &x, &n};
    Launch l;
    l.grid[0] = 2, l.block[0] = 128;
    launch(home, f, l, stream, arguments);
}

struct WaitAtEnd {
    const Driver& driver;
    ~WaitAtEnd() { (void)driver.cuCtxSynchronize.quiet(); }
};

// Each piece once, two streams, a capture; throws where a call that it hears of fails.
void everything(const Driver& driver)
{
    (void)info_of(driver, 1);
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    const Stream first = make_stream(home, StreamKind::Ordered), second = make_stream(home, StreamKind::Independent, -1);
    const Event begin(home, Event::Timing::On), between(home), end(home, Event::Timing::On);
    MemoryPool pool(home);
    const HostMemory staging = make_host_memory(home, 400);
    std::vector<float> result(100);
    const HostRegistration registration = register_host_memory(home, result.data(), 400);
    float* x = static_cast<float*>(staging.get());
    for (int i = 0; i < 100; i++) x[i] = float(i);

    const Module module(home, STAND_IN_CODE, Module::Accepts::Ptx);
    const Function f = module.function("twice");
    allow_shared(home, f, 100 * 1024);
    if (blocks_per_unit(home, f, 256, 100 * 1024) != 2) throw Error(NG_E_BUG, "occupancy");
    if (clusters_at_once(home, f, 4, 256, 100 * 1024) != 2) throw Error(NG_E_BUG, "clusters of four by two blocks on each of four multiprocessors");

    const DeviceMemory a(pool, 400, first.get()), b(pool, 400, first.get());
    const WaitAtEnd wait{driver};                               // both streams use what is freed on the first
    begin.record(first.get());
    driver.cuMemcpyHtoDAsync(a.get(), x, 400, first.get());
    launch_twice(home, f, first.get(), b.get(), a.get(), 100);
    between.record(first.get());
    between.hold(second.get());
    driver.cuStreamBeginCapture(first.get(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    CUgraph graph = nullptr;
    try {
        launch_twice(home, f, first.get(), b.get(), b.get(), 100);
    } catch (const Error&) {
        if (driver.cuStreamEndCapture.quiet(first.get(), &graph) == CUDA_SUCCESS) (void)driver.cuGraphDestroy.quiet(graph);
        throw;
    }
    driver.cuStreamEndCapture(first.get(), &graph);
    const Held<CUgraph, &Driver::cuGraphDestroy> own_graph(home, graph);
    CUgraphExec made = nullptr;
    driver.cuGraphInstantiateWithFlags(&made, graph, 0);
    const Held<CUgraphExec, &Driver::cuGraphExecDestroy> exec(home, made);
    driver.cuGraphLaunch(made, second.get());
    driver.cuMemcpyDtoHAsync(result.data(), b.get(), 400, second.get());
    end.record(second.get());
    end.wait();
    if (!end.is_done() || end.milliseconds_since(begin) < 0) throw Error(NG_E_BUG, "time");
    driver.cuStreamSynchronize(first.get());
    if (!is_idle(home, first.get())) throw Error(NG_E_BUG, "idle");
    for (int i = 0; i < 100; i++)
        if (result[size_t(i)] != 4 * float(i)) throw Error(NG_E_BUG, text("result ", i, " is ", double(result[size_t(i)])));
    const PointerInfo info = pointer_info(home, reinterpret_cast<void*>(a.get()));
    if (info.type != CU_MEMORYTYPE_DEVICE) throw Error(NG_E_BUG, "pointer");
    pool.trim(0);
    (void)pool.reserved_bytes();
}

}  // namespace

TEST_CASE("faults: every call in turn is refused, which ends in its Error, with nothing left behind")
{
    const Driver& driver = fresh();
    for (const bool is_deferred : {false, true}) {
        stand_in().reset();
        stand_in().defer(is_deferred);
        everything(driver);
        const uint64_t calls = stand_in().counts().calls;
        CHECK(calls > 80);
        CHECK(stand_in().counts().alive() == 0);
        for (const CUresult code : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED, 999}) {
            for (uint64_t call = 1; call <= calls; call++) {
                stand_in().reset();
                stand_in().defer(is_deferred);
                stand_in().fail_call(call, code);
                const Error error = thrown_by([&] { everything(driver); });
                const std::string failed = stand_in().failed();
                INFO("call " << call << ", " << failed << ", " << code << ": " << error.text);
                REQUIRE(!failed.empty());
                if (error.status == NG_OK) {
                    CHECK((ends_something(failed) || failed == "cuCtxPushCurrent" || failed == "cuCtxSynchronize"));   // in destructors
                } else {
                    CHECK(error.native == code);
                    CHECK(error.text.starts_with(failed + ": "));
                    CHECK(error.status != NG_E_BUG);
                }
                CHECK(stand_in().counts().pushed == 0);
                CHECK(stand_in().counts().misuses == 0);
                // A context that cannot be entered any more takes what lives in it along.
                if (failed != "cuCtxPushCurrent") CHECK(stand_in().counts().alive() == 0);
            }
        }
    }
    stand_in().reset();
}

TEST_CASE("faults: after a kernel's fault every call is lost, and what was made is still ended")
{
    const Driver& driver = fresh();
    {
        const DeviceContext home = DeviceContext::primary(driver, 0);
        const CurrentContext now(home);
        const Stream stream = make_stream(home, StreamKind::Ordered);
        const Event event(home);
        MemoryPool pool(home);
        const DeviceMemory memory(pool, 64, stream.get());
        stand_in().break_all(CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(thrown_by([&] { event.record(stream.get()); }).status == NG_E_LOST);
        CHECK(thrown_by([&] { (void)event.is_done(); }).status == NG_E_LOST);
        CHECK(thrown_by([&] { (void)is_idle(home, stream.get()); }).status == NG_E_LOST);
        CHECK(thrown_by([&] { (void)pool.try_allocate(1, stream.get()); }).status == NG_E_LOST);
    }
    CHECK(stand_in().counts().alive() == 0);
    stand_in().reset();
}

TEST_CASE("stand-in: the device that touches memory which is not there is lost")
{
    const Driver& driver = fresh();
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    const Stream stream = make_stream(home, StreamKind::Independent);
    MemoryPool pool(home);
    const DeviceMemory memory(pool, 64, stream.get());
    CHECK(driver.cuMemsetD8Async.quiet(memory.get(), 0, 65, stream.get()) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(stand_in().counts().misuses == 1);
    CHECK(thrown_by([&] { driver.cuStreamSynchronize(stream.get()); }).status == NG_E_LOST);
}

TEST_CASE("fork: what the parent made ends in the child without a call to the driver")
{
    const Driver& driver = fresh();
    auto home = std::make_unique<DeviceContext>(DeviceContext::primary(driver, 0));
    auto now = std::make_unique<CurrentContext>(*home);
    auto stream = std::make_unique<Stream>(make_stream(*home, StreamKind::Ordered));
    auto event = std::make_unique<Event>(*home);
    auto pool = std::make_unique<MemoryPool>(*home);
    auto memory = std::make_unique<DeviceMemory>(*pool, 64, stream->get());
    const uint64_t calls = stand_in().counts().calls;
    const auto end_all = [&] { memory.reset(), pool.reset(), event.reset(), stream.reset(), now.reset(), home.reset(); };
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        const bool is_lost = thrown_by([&] { event->record(stream->get()); }).status == NG_E_LOST;
        end_all();
        _exit(!is_lost || stand_in().counts().calls != calls);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    end_all();
    CHECK(stand_in().counts().alive() == 0);
}
