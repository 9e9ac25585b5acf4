// Contexts through ng.h: what is refused, what is told, limits, marks, whose threads work.
#include "tests/lib/world.h"

#include <cstring>
#include <string>
#include <thread>

namespace {

ng_status refused(const ng_ctx_desc& d)
{
    auto* const untouched = reinterpret_cast<ng_ctx*>(&error);
    ng_ctx* c = untouched;
    error = {};
    const ng_status status = ng_ctx_create(&d, &c, &error);
    CHECK(c == untouched);
    CHECK(error.status == status);
    CHECK(std::strlen(error.text) > 10);
    return status;
}

}  // namespace

TEST_CASE("status: every name, and never NULL")
{
    CHECK(ng_status_name(NG_E_SHAPE) == std::string("NG_E_SHAPE"));
    CHECK(ng_status_name(NG_SLOW) == std::string("NG_SLOW"));
    for (int s = -100; s < 100; s++) CHECK(ng_status_name(s));
    CHECK(ng_version() == NG_VERSION);
    CHECK(ng_api_json());
}

TEST_CASE("devices: counted, described, as much as the caller's struct has room for")
{
    REQUIRE(ng_device_count() >= 1);
    ng_device_info info{};
    info.size = sizeof info;
    REQUIRE(ng_device_get(0, &info) == NG_OK);
    CHECK(info.backend == std::string("cpu"));
    CHECK(std::strlen(info.name) > 0);
    CHECK(info.units >= 1);
    CHECK(info.memory_bytes > 1 << 20);
    CHECK(ng_device_get(ng_device_count(), &info) == NG_E_INVALID);
    CHECK(ng_device_get(0, nullptr) == NG_E_INVALID);
    ng_device_info few{};
    few.size = 16;
    CHECK(ng_device_get(0, &few) == NG_OK);
    CHECK(few.size == 16);
    CHECK(few.name[0] == 0);
    few.size = 0;
    CHECK(ng_device_get(0, &few) == NG_E_INVALID);
}

TEST_CASE("create: what is wrong is refused with a sentence, and nothing is written")
{
    ng_ctx_desc d = description();
    d.backend = "abacus";
    CHECK(refused(d) == NG_E_UNSUPPORTED);
    CHECK(std::string(error.text).find("there is \"cpu\"") != std::string::npos);
    if (ng_device_count() == 1) {                    // no driver, or a build without CUDA
        d = description(), d.backend = "cuda";
        CHECK(refused(d) == NG_E_UNSUPPORTED);
    }
    d = description(), d.size = 0;
    CHECK(refused(d) == NG_E_INVALID);
    d = description(), d.version = 0x020000;
    CHECK(refused(d) == NG_E_UNSUPPORTED);
    d = description(1u << 20);
    CHECK(refused(d) == NG_E_INVALID);
    d = description(), d.device = 1;
    CHECK(refused(d) == NG_E_INVALID);
    d = description(), d.target = "sm_90";
    CHECK(refused(d) == NG_E_UNSUPPORTED);
    ng_allocator half = allocator();
    half.free = nullptr;
    d = description(), d.dev = &half;
    CHECK(refused(d) == NG_E_INVALID);
    d = description();
    CHECK(ng_ctx_create(&d, nullptr, &error) == NG_E_INVALID);
    CHECK(ng_ctx_create(&d, nullptr, nullptr) == NG_E_INVALID);
}

TEST_CASE("create: defaults, older structs, targets")
{
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(nullptr, &c, &error) == NG_OK);
    shut(c);
    ng_ctx_desc old{};
    old.size = 16, old.version = NG_VERSION, old.backend = "cpu";
    old.device = 99;      // lies behind what an older caller has: not read
    REQUIRE(ng_ctx_create(&old, &c, &error) == NG_OK);
    shut(c);
    ng_ctx_desc d = description();
    d.target = "x86-64-v2";
    if (ng_ctx_create(&d, &c, &error) != NG_OK) return;   // another architecture
    ng_device_info info{};
    info.size = sizeof info;
    REQUIRE(ng_ctx_info(c, &info) == NG_OK);
    CHECK(info.arch == std::string("x86-64-v2"));
    shut(c);
}

TEST_CASE("calls: no context, no call")
{
    ng_ctx* c = open_ctx();
    ng_tensor* t = tensor(c, 4);
    int local = 0;
    for (void* h : {static_cast<void*>(nullptr), static_cast<void*>(t), static_cast<void*>(&local), reinterpret_cast<void*>(1)}) {
        auto* bad = static_cast<ng_ctx*>(h);
        ng_stats s{};
        s.size = sizeof s;
        ng_device_info info{};
        info.size = sizeof info;
        uint64_t mark = 0;
        const ng_shape d = vec(1);
        auto* o = reinterpret_cast<ng_tensor*>(&local);
        CHECK(ng_ctx_close(bad, 0, &error) == NG_E_INVALID);
        CHECK(ng_ctx_poll(bad, 0, &error) == NG_E_INVALID);
        CHECK(ng_ctx_sync(bad, nullptr, 0, &error) == NG_E_INVALID);
        CHECK(ng_ctx_info(bad, &info) == NG_E_INVALID);
        CHECK(ng_ctx_stats(bad, &s) == NG_E_INVALID);
        CHECK(ng_ctx_limit(bad, 0) == NG_E_INVALID);
        CHECK(ng_ctx_trim(bad, 0) == NG_E_INVALID);
        CHECK(ng_ctx_stream(bad, 0) == nullptr);
        CHECK(ng_mark(bad, nullptr, &mark, &error) == NG_E_INVALID);
        CHECK(ng_mark_wait(bad, 1, 0, &error) == NG_E_INVALID);
        CHECK(ng_mark_after(bad, nullptr, 1, &error) == NG_E_INVALID);
        CHECK(ng_tensor_create(bad, &d, &o, &error) == NG_E_INVALID);
        CHECK(o == reinterpret_cast<ng_tensor*>(&local));
        if (bad) CHECK(ng_scope_create(bad, 0) == nullptr);
        ng_ctx_retain(bad);
        ng_ctx_release(bad);
    }
    CHECK(ng_ctx_stats(c, nullptr) == NG_E_INVALID);
    CHECK(ng_ctx_info(c, nullptr) == NG_E_INVALID);
    ng_tensor_release(t);
    shut(c);
}

TEST_CASE("streams and marks: NULL alone, and only marks that were given")
{
    ng_ctx* c = open_ctx();
    int local = 0;
    uint64_t a = 0, b = 0;
    CHECK(ng_ctx_stream(c, 3) == nullptr);
    CHECK(ng_ctx_sync(c, &local, 0, &error) == NG_E_INVALID);
    CHECK(ng_mark(c, &local, &a, &error) == NG_E_INVALID);
    CHECK(ng_mark(c, nullptr, nullptr, &error) == NG_E_INVALID);
    CHECK(ng_mark_wait(c, 1, 0, &error) == NG_E_INVALID);
    REQUIRE(ng_mark(c, nullptr, &a, &error) == NG_OK);
    REQUIRE(ng_mark(c, nullptr, &b, &error) == NG_OK);
    CHECK(b > a);
    CHECK(ng_mark_wait(c, a, 0, &error) == NG_OK);
    CHECK(ng_mark_after(c, nullptr, b, &error) == NG_OK);
    CHECK(ng_mark_after(c, &local, b, &error) == NG_E_INVALID);
    CHECK(ng_mark_wait(c, b + 1, 0, &error) == NG_E_INVALID);
    CHECK(ng_mark_wait(c, 0, 0, &error) == NG_E_INVALID);
    shut(c);
}

TEST_CASE("limit: the pressure hook is asked, what it frees counts, else NG_E_DEVMEM with the sizes")
{
    static ng_tensor* spare;
    static int asked;
    spare = nullptr, asked = 0;
    ng_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.pressure = [](void*, uint64_t) -> int32_t {
        asked++;
        if (!spare) return 0;
        ng_tensor_release(spare);
        spare = nullptr;
        return 1;
    };
    ng_ctx_desc d = description();
    d.hooks = &hooks, d.dev_limit = 10000;
    ng_ctx* c = open_ctx(d);
    spare = tensor(c, 2000);
    ng_tensor* t = tensor(c, 2000);
    CHECK(asked == 1);
    CHECK(stats(c).live_bytes == 8000);
    CHECK(stats(c).dev_peak == 8000);
    ng_tensor* none = nullptr;
    const ng_shape big = vec(2000);
    CHECK(ng_tensor_create(c, &big, &none, &error) == NG_E_DEVMEM);
    CHECK(!none);
    CHECK(std::string(error.text).find("8000") != std::string::npos);
    CHECK(std::string(error.text).find("10000") != std::string::npos);
    CHECK(asked == 2);
    CHECK(ng_ctx_limit(c, 0) == NG_OK);
    ng_tensor* more = tensor(c, 2000);
    CHECK(stats(c).dev_bytes == 16000);
    ng_tensor_release(more);
    ng_tensor_release(t);
    CHECK(stats(c).dev_bytes == 0);
    CHECK(stats(c).dev_peak == 16000);
    CHECK(ng_ctx_trim(c, 0) == NG_OK);
    CHECK(stats(c).dev_peak == 0);
    shut(c);
}

TEST_CASE("hooks: no release calls one, the next call that may does")
{
    const ng_allocator heap = allocator();
    ng_ctx_desc d = description();
    d.host = &heap;
    allocator_calls = 0, outstanding = 0;
    ng_ctx* c = open_ctx(d);
    ng_tensor *t = tensor(c, 1000), *u = tensor(c, 10);
    CHECK(outstanding == 4040);
    const int before = allocator_calls;
    ng_tensor_release(t);
    ng_tensor_release(u);
    CHECK(allocator_calls == before);
    CHECK(outstanding == 4040);
    CHECK(stats(c).tensors == 0);
    CHECK(outstanding == 0);
    t = tensor(c, 5);
    CHECK(ng_ctx_close(c, 0, &error) == NG_OK);
    CHECK(outstanding == 0);
    const int closed = allocator_calls;
    ng_tensor_release(t);
    ng_ctx_release(c);
    CHECK(allocator_calls == closed);
}

TEST_CASE("contexts: threads make, fill and release tensors while another polls")
{
    ng_ctx* c = open_ctx();
    std::atomic<int> bad{0}, running{4};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 300; i++) {
                const ng_shape d = vec(1 + (i * 37 + t) % 500);
                ng_tensor* x = nullptr;
                float out[500] = {};
                if (ng_tensor_create(c, &d, &x, nullptr) != NG_OK || ng_tensor_fill(x, nullptr, i, nullptr) != NG_OK ||
                    ng_tensor_get(x, out, 4 * uint64_t(d.dims[0]), nullptr) != NG_OK || out[d.dims[0] - 1] != float(i))
                    bad++;
                ng_tensor_release(x);
            }
            running--;
        });
    while (running) CHECK(ng_ctx_poll(c, 0, nullptr) == NG_OK);
    for (std::thread& t : threads) t.join();
    CHECK(bad == 0);
    CHECK(stats(c).tensors == 0);
    CHECK(stats(c).dev_bytes == 0);
    shut(c);
}

TEST_CASE("hooks: the host's parallel is used, and each of its tasks once")
{
    static std::atomic<int> jobs;
    jobs = 0;
    ng_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.parallel = [](void*, uint32_t count, ng_task_fn task, void* arg) {
        jobs++;
        std::thread other([&] { for (uint32_t i = 0; i < count; i += 2) task(arg, i); });
        for (uint32_t i = 1; i < count; i += 2) task(arg, i);
        other.join();
    };
    ng_ctx_desc d = description(NG_CTX_NO_THREADS);
    d.hooks = &hooks;
    ng_ctx* c = open_ctx(d);
    ng_tensor* t = tensor(c, 3 << 20);
    REQUIRE(ng_tensor_fill(t, nullptr, 2.5, &error) == NG_OK);
    CHECK(jobs == 1);
    std::vector<float> out(3 << 20);
    REQUIRE(ng_tensor_get(t, out.data(), 12 << 20, &error) == NG_OK);
    int wrong = 0;
    for (const float v : out) wrong += v != 2.5f;
    CHECK(wrong == 0);
    ng_tensor_release(t);
    shut(c);
}

TEST_CASE("scopes: any handle is safe, released twice is released once")
{
    ng_scope* s = ng_scope_create(nullptr, 0);
    REQUIRE(s);
    ng_scope_release(s);
    ng_scope_release(s);
    ng_scope_release(nullptr);
    ng_expr_retain(reinterpret_cast<ng_expr*>(s));
    ng_expr_release(reinterpret_cast<ng_expr*>(s));
    ng_expr_release(nullptr);
}
