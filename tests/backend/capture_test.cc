// Runs of programs captured by the host in the strictest mode and replayed: on a GPU, or on the stand-in, which spoils a capture at a forbidden call.
#include "lib/backend/cuda/nvrtc.h"
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

#include <cmath>
#include <thread>

using namespace ng;
using namespace ng::cuda;

namespace {

const Driver& driver_of_test()
{
    if (std::getenv("NG_FAKE_DRIVER")) (void)emulated_device();
    return Driver::need("a test", std::getenv("NG_FAKE_DRIVER") ? stand_in_path() : DRIVER_LIBRARY);
}

// The host's own context and stream, and what it captures there.
struct Host {
    const Driver& driver = driver_of_test();
    CUcontext     context = nullptr;
    CUstream      stream = nullptr;

    Host()
    {
        driver.cuDevicePrimaryCtxRetain(&context, 0);
        driver.cuCtxPushCurrent(context);
        driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    }
    ~Host()
    {
        driver.cuStreamDestroy(stream);
        driver.cuCtxPopCurrent(&context);
        driver.cuDevicePrimaryCtxRelease(0);
    }
    // What body queues, as a graph that can be launched; null: the capture was spoilt.
    template <class Body>
    CUgraphExec captured(Body&& body)
    {
        CUgraph graph = nullptr;
        CUgraphExec exec = nullptr;
        driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
        body();
        if (driver.cuStreamEndCapture.quiet(stream, &graph) != CUDA_SUCCESS) return nullptr;
        driver.cuGraphInstantiateWithFlags(&exec, graph, 0);
        driver.cuGraphDestroy(graph);
        return exec;
    }
    void replay(CUgraphExec exec)
    {
        driver.cuGraphLaunch(exec, stream);
        driver.cuStreamSynchronize(stream);
    }
};

void put(ng_tensor* t, float value, int64_t n)
{
    const std::vector<float> all(size_t(n), value);
    CHECK(ng_tensor_put(t, all.data(), all.size() * 4, nullptr) == NG_OK);
}
float first_of(ng_tensor* t, int64_t n)
{
    std::vector<float> all(static_cast<size_t>(n));
    CHECK(ng_tensor_get(t, all.data(), all.size() * 4, nullptr) == NG_OK);
    return all[0];
}
ng_ctx* adopted(const Host& host, uint32_t flags)
{
    ng_ctx_desc d = description(flags);
    d.native = host.context;
    ng_ctx* c = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_ctx_create(&d, &c, &error) == NG_OK, error.text);
    return c;
}

}  // namespace

TEST_CASE("captures: runs in the strictest mode spoil nothing, and their graph computes what the tensors hold when it runs")
{
    Host host;
    constexpr int64_t N = 3000;
    // Compiled where there is a GPU; the stand-in runs the interpreter alone.
    ng_ctx* c = adopted(host, std::getenv("NG_FAKE_DRIVER") ? NG_CTX_NO_JIT : 0);
    ng_tensor* const t[] = {make(c, N), make(c, N), make(c, N)};
    const std::string words[] = {"x * 2 + y", "x - sum(x) * 0 + y * 3", "scan(x + y, 0, sum) - x", "argsort(x * y, 0) * 0.5 + x * y", "softmax(reshape(x, [30, 100]), 1)[0, 0] * 100 + y"};
    for (const std::string& w : words) {
        INFO(w);
        ng_scope* s = ng_scope_create(c, 0);
        const ng_shape d = vector_of(N);
        ng_expr* const params[] = {ng_param(s, 0, &d), ng_param(s, 1, &d)};
        ng_expr* e = ng_parse(s, w.c_str(), "x,y", params, 2);
        ng_prog* p = nullptr;
        ng_error error{};
        const ng_status compiled = ng_compile(c, nullptr, &e, 1, &p, &error);
        ng_scope_release(s);
        REQUIRE_MESSAGE(compiled == NG_OK, error.text);
        CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
        put(t[0], 1, N), put(t[1], 5, N);
        CHECK(run(p, host.stream, t, t[2], &error) >= 0);
        const float plain = first_of(t[2], N);
        const CUgraphExec exec = host.captured([&] {
            CHECK(run(p, host.stream, t, t[2], &error) >= 0);
            CHECK(run(p, host.stream, t, t[2], &error) >= 0);
        });
        REQUIRE(exec != nullptr);
        put(t[2], 0, N);
        host.replay(exec);
        CHECK(first_of(t[2], N) == plain);
        put(t[0], 3, N), put(t[1], 7, N);
        host.replay(exec);
        const float again = first_of(t[2], N);
        CHECK(again != plain);
        CHECK(run(p, host.stream, t, t[2], &error) >= 0);
        CHECK(first_of(t[2], N) == again);
        host.driver.cuGraphExecDestroy(exec);
        ng_prog_release(p);
    }
    for (ng_tensor* x : t) ng_tensor_release(x);
    CHECK(ng_ctx_sync(c, host.stream, FOREVER, nullptr) == NG_OK);
    shut(c);
}

TEST_CASE("captures: other threads may do everything with the context meanwhile")
{
    Host host;
    ng_ctx* c = adopted(host, NG_CTX_NO_JIT);
    ng_tensor* const t[] = {make(c, 64), make(c, 64), make(c, 64)};
    ng_prog* p = program_of(c, "x * 2 + y", 64);
    put(t[0], 1, 64), put(t[1], 5, 64);
    const CUgraphExec exec = host.captured([&] {
        CHECK(run(p, host.stream, t, t[2]) >= 0);
        std::thread([&] {
            ng_tensor* other = make(c, 1000);
            CHECK(ng_tensor_fill(other, nullptr, 3, nullptr) == NG_OK);
            CHECK(first_of(other, 1000) == 3);
            ng_tensor_release(other);
            ng_prog* q = program_of(c, "x - y", 64);
            ng_prog_release(q);
            CHECK(ng_ctx_poll(c, 0, nullptr) >= 0);
            CHECK(ng_ctx_trim(c, 0) == NG_OK);
        }).join();
        CHECK(run(p, host.stream, t, t[2]) >= 0);
    });
    REQUIRE(exec != nullptr);
    host.replay(exec);
    CHECK(first_of(t[2], 64) == 7);
    host.driver.cuGraphExecDestroy(exec);
    ng_prog_release(p);
    for (ng_tensor* x : t) ng_tensor_release(x);
    shut(c);
}

// What the graph holds between the runs: copies, memory set and another stream's work, which kernels that begin early must wait for.
TEST_CASE("captures: runs that begin before what is ahead has ended compute what runs one by one do")
{
    Host host;
    constexpr int64_t N = 1 << 16;
    ng_ctx* c = adopted(host, std::getenv("NG_FAKE_DRIVER") ? NG_CTX_NO_JIT : 0);
    CUstream aside = nullptr;
    CUevent  forked = nullptr, joined = nullptr;
    host.driver.cuStreamCreateWithPriority(&aside, CU_STREAM_NON_BLOCKING, 0);
    host.driver.cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING), host.driver.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING);
    ng_tensor* const t[] = {make(c, N), make(c, N), make(c, N), make(c, N)};
    ng_prog* const line = program_of(c, "x * 0.75 + y", N, false);
    ng_prog* const product = program_of(c, "reshape(f32(f16(reshape(x, [256, 256])) @ f16(reshape(y, [256, 256]))) * 0.004 + 0.1, [65536])", N, false);
    ng_prog* const fold = program_of(c, "y - x * mean(x)", N, false);
    for (ng_prog* p : {line, product, fold}) CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
    CUdeviceptr memory[4];
    for (size_t i = 0; i < 4; i++) {
        void* data = nullptr;
        REQUIRE(ng_tensor_use(t[i], host.stream, 0, &data, nullptr) == NG_OK);
        memory[i] = reinterpret_cast<CUdeviceptr>(data);
    }
    const auto step = [&](ng_prog* p, CUstream s, size_t x, size_t y, size_t out) {
        ng_tensor* const args[] = {t[x], t[y]};
        CHECK(run(p, s, args, t[out]) == NG_OK);
    };
    // Both ways end in t[0].
    const auto body = [&] {
        for (int turn = 0; turn < 3; turn++) {
            step(line, host.stream, 0, 1, 2), step(product, host.stream, 2, 1, 3), step(fold, host.stream, 3, 2, 0);
            host.driver.cuMemcpyDtoDAsync(memory[1], memory[3], N * 4, host.stream);
            step(line, host.stream, 1, 0, 2);
            host.driver.cuMemsetD32Async(memory[3], 0x3f000000, N / 2, host.stream);
            step(product, host.stream, 3, 2, 1);
            host.driver.cuEventRecord(forked, host.stream), host.driver.cuStreamWaitEvent(aside, forked, 0);
            step(fold, aside, 1, 0, 3), step(line, host.stream, 1, 1, 2);
            host.driver.cuEventRecord(joined, aside), host.driver.cuStreamWaitEvent(host.stream, joined, 0);
            step(line, host.stream, 2, 3, 0), step(product, host.stream, 0, 2, 1), step(fold, host.stream, 1, 3, 0);
        }
    };
    const auto begin = [&] {
        for (size_t i = 0; i < 4; i++) put(t[i], 0.25f + 0.125f * float(i), N);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    };
    const auto end = [&] {
        std::vector<float> all(N);
        host.driver.cuStreamSynchronize(host.stream);
        CHECK(ng_tensor_get(t[0], all.data(), all.size() * 4, nullptr) == NG_OK);
        return all;
    };
    begin();
    body();
    const std::vector<float> plain = end();
    const CUgraphExec exec = host.captured(body);
    REQUIRE(exec != nullptr);
    for (int i = 0; i < (std::getenv("NG_FAKE_DRIVER") ? 2 : 50); i++) {
        begin();
        host.replay(exec);
        REQUIRE(end() == plain);
    }
    CHECK(std::isfinite(plain[0]));
    host.driver.cuGraphExecDestroy(exec);
    for (ng_prog* p : {line, product, fold}) ng_prog_release(p);
    for (ng_tensor* x : t) ng_tensor_release(x);
    for (CUstream s : {host.stream, aside}) CHECK(ng_ctx_sync(c, s, FOREVER, nullptr) == NG_OK);
    host.driver.cuEventDestroy(forked), host.driver.cuEventDestroy(joined);
    host.driver.cuStreamDestroy(aside);
    shut(c);
}

TEST_CASE("captures: a program that is not ready says so and puts nothing into the graph")
{
    Host host;
    ng_ctx* c = adopted(host, NG_CTX_NO_THREADS);       // nothing is compiled until somebody waits
    ng_tensor* const t[] = {make(c, 64), make(c, 64), make(c, 64)};
    ng_prog* p = program_of(c, "x * 2 + y * 11", 64);
    put(t[2], 1, 64);
    const bool compiles = cuda::Compiler::find() != nullptr;
    ng_status status = NG_OK;
    CUgraphExec exec = host.captured([&] { status = run(p, host.stream, t, t[2]); });
    REQUIRE(exec != nullptr);
    CHECK(status == (compiles ? NG_NOT_READY : NG_OK));
    host.driver.cuGraphExecDestroy(exec);
    CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
    exec = host.captured([&] { status = run(p, host.stream, t, t[2]); });
    REQUIRE(exec != nullptr);
    CHECK(status == NG_OK);
    host.driver.cuGraphExecDestroy(exec);
    ng_prog_release(p);
    for (ng_tensor* x : t) ng_tensor_release(x);
    shut(c);
}

TEST_CASE("captures: a product whose rows are folded is ready when its program is, where no text of both is worth it")
{
    Host host;
    ng_ctx* c = adopted(host, 0);
    constexpr int64_t N = 1024;
    ng_shape square = vector_of(N);
    square.ndim = 2, square.dims[1] = N, square.dtype = NG_F16;
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* const params[] = {ng_param(s, 0, &square), ng_param(s, 1, &square)};
    ng_expr* const outs[] = {ng_parse(s, "f16(x @ y)", "x,y", params, 2), ng_parse(s, "var(f16(x @ y), 1)", "x,y", params, 2)};
    ng_compile_desc desc{};
    desc.size = sizeof desc;
    ng_prog* p = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_compile(c, &desc, outs, 2, &p, &error) == NG_OK, error.text);
    ng_scope_release(s);
    ng_shape column = square;
    column.dims[1] = 1, column.dtype = NG_F32;
    ng_tensor* t[4] = {};                                    // x, y, both results
    for (int i = 0; i < 4; i++) REQUIRE(ng_tensor_create(c, i < 3 ? &square : &column, &t[i], nullptr) == NG_OK);
    ng_run r{};
    r.size = sizeof r, r.nargs = r.nout = 2, r.args = t, r.out = t + 2;
    CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
    ng_status status = NG_NOT_READY;
    const CUgraphExec exec = host.captured([&] { status = ng_prog_run(p, host.stream, &r, &error); });
    REQUIRE(exec != nullptr);
    CHECK_MESSAGE(status == NG_OK, error.text);
    host.driver.cuGraphExecDestroy(exec);
    ng_prog_release(p);
    for (ng_tensor* x : t) ng_tensor_release(x);
    shut(c);
}

TEST_CASE("captures: a workspace that another program makes grow stays where a graph works in it")
{
    Host host;
    ng_ctx* c = adopted(host, NG_CTX_NO_JIT);
    constexpr int64_t N = 1000, MORE = 100000;
    ng_tensor* const t[] = {make(c, N), make(c, N), make(c, N)};
    put(t[0], 3, N), put(t[1], 5, N);
    const char* const words = "x - mean(x) + scan(y, 0, sum)";
    ng_prog *p = program_of(c, words, N, false), *larger = nullptr;
    CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
    CHECK(run(p, host.stream, t, t[2]) >= 0);
    CHECK(first_of(t[2], N) == 5);
    const CUgraphExec exec = host.captured([&] { CHECK(run(p, host.stream, t, t[2]) >= 0); });
    REQUIRE(exec != nullptr);
    ng_scope* s = ng_scope_create(c, 0);
    ng_compile_desc desc{};
    desc.size = sizeof desc, desc.workspace_of = p;
    for (int64_t n = MORE; n <= 4 * MORE; n *= 2) {      // what took the graph's place goes, that stays
        const ng_shape d = vector_of(n);
        ng_expr* const params[] = {ng_param(s, 0, &d), ng_param(s, 1, &d)};
        ng_expr* const e = ng_parse(s, words, "x,y", params, 2);
        ng_error error{};
        REQUIRE_MESSAGE(ng_compile(c, &desc, &e, 1, &larger, &error) == NG_OK, error.text);
        ng_prog_release(larger);
    }
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(stats(c).workspace_bytes < 24 * MORE);
    put(t[1], 7, N);
    host.replay(exec);
    CHECK(first_of(t[2], N) == 7);
    if (std::getenv("NG_FAKE_DRIVER")) CHECK(stand_in().counts().misuses == 0);
    host.driver.cuGraphExecDestroy(exec);
    ng_scope_release(s), ng_prog_release(p);
    for (ng_tensor* x : t) ng_tensor_release(x);
    CHECK(ng_ctx_sync(c, host.stream, FOREVER, nullptr) == NG_OK);
    CHECK(stats(c).workspace_bytes == 0);
    shut(c);
}

// A graph would write there whenever it runs, and whoever has that memory then would see it.
TEST_CASE("captures: what takes memory of its own is refused, and nothing of it is in the graph")
{
    Host host;
    ng_ctx* c = adopted(host, NG_CTX_NO_JIT);
    constexpr int64_t N = 64;
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape d = vector_of(N);
    ng_expr* const x = ng_param(s, 0, &d), *const e = ng_add(x, x);
    const int32_t over[] = {0};
    ng_compile_desc desc{};
    desc.size = sizeof desc, desc.alias = over;
    ng_prog* p = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_compile(c, &desc, &e, 1, &p, &error) == NG_OK, error.text);
    ng_tensor *whole = make(c, N + 1), *head = nullptr, *tail = nullptr;
    ng_expr* const leaf = ng_leaf(s, whole);
    REQUIRE(ng_tensor_view(ng_slice(leaf, 0, 0, N, 1), &head, &error) == NG_OK);
    REQUIRE(ng_tensor_view(ng_slice(leaf, 0, 1, N + 1, 1), &tail, &error) == NG_OK);
    put(whole, 3, N + 1);
    ng_run r{};
    r.size = sizeof r, r.nargs = r.nout = 1, r.args = &head, r.out = &tail;
    CHECK(ng_prog_run(p, host.stream, &r, &error) == NG_OK);
    CHECK(first_of(tail, N) == 6);
    ng_status ran = NG_OK, copied = NG_OK, evaluated = NG_OK;
    ng_expr* const sum = ng_sum(leaf, NG_ALL, 0);
    ng_tensor* none = nullptr;
    const CUgraphExec exec = host.captured([&] {
        ran = ng_prog_run(p, host.stream, &r, &error);
        copied = ng_tensor_copy(tail, head, host.stream, nullptr);
        evaluated = ng_eval(c, host.stream, &sum, &none, 1, &error);
    });
    REQUIRE(exec != nullptr);
    CHECK_MESSAGE(evaluated == NG_E_INVALID, error.text);
    CHECK(ran == NG_E_INVALID);
    CHECK(copied == NG_E_INVALID);
    put(whole, 5, N + 1);
    host.replay(exec);
    CHECK(first_of(tail, N) == 5);
    host.driver.cuGraphExecDestroy(exec);
    ng_prog_release(p);
    for (ng_tensor* t : {tail, head, whole}) ng_tensor_release(t);
    ng_scope_release(s);
    shut(c);
}
