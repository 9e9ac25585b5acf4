// The CUDA backend through ng.h on the stand-in of the driver: memory, streams, marks, waiting, ends, and every call failing in turn.
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

#include <algorithm>
#include <cstring>
#include <vector>

using namespace ng;

TEST_CASE("cuda: devices are counted behind the processor, and the best backend is the default")
{
    fresh().set_devices(2);
    CHECK(ng_device_count() == 3);
    ng_device_info info{};
    info.size = sizeof info;
    CHECK(ng_device_get(0, &info) == NG_OK);
    CHECK(std::string(info.backend) == "cpu");
    CHECK(ng_device_get(2, &info) == NG_OK);
    CHECK(std::string(info.backend) == "cuda");
    CHECK(info.ordinal == 1);
    CHECK(ng_device_get(3, &info) == NG_E_INVALID);
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(nullptr, &c, nullptr) == NG_OK);
    CHECK(ng_ctx_info(c, &info) == NG_OK);
    CHECK(std::string(info.backend) == "cuda");
    shut(c);
    ng_ctx_desc d = description();
    d.device = 2;
    ng_error error{};
    CHECK(ng_ctx_create(&d, &c, &error) == NG_E_INVALID);
    CHECK(holds(error.text, "no device 2 of \"cuda\"; there are 2"));
}

TEST_CASE("cuda: elements go in and out, dense and column-major, and are filled")
{
    const fake::Control& driver = fresh();
    ng_ctx* c = open_ctx();
    ng_tensor* t = make(c, 100);
    std::vector<float> in(100), out(100);
    for (size_t i = 0; i < in.size(); i++) in[i] = float(i);
    CHECK(ng_tensor_put(t, in.data(), 400, nullptr) == NG_OK);
    CHECK(ng_tensor_get(t, out.data(), 400, nullptr) == NG_OK);
    CHECK(in == out);
    CHECK(ng_tensor_fill(t, nullptr, 2.5, nullptr) == NG_OK);
    CHECK(ng_tensor_get(t, out.data(), 400, nullptr) == NG_OK);
    CHECK(out == std::vector<float>(100, 2.5f));
    ng_tensor* u = make(c, 100);
    CHECK(ng_tensor_copy(u, t, nullptr, nullptr) == NG_OK);
    CHECK(ng_tensor_get(u, in.data(), 400, nullptr) == NG_OK);
    CHECK(in == out);
    CHECK(stats(c).live_bytes == 800);
    ng_tensor_release(t), ng_tensor_release(u);
    CHECK(stats(c).live_bytes == 0);
    shut(c);
    CHECK(left(driver) == "");
    CHECK(driver.counts().misuses == 0);
}

TEST_CASE("cuda: ordinary memory goes in and out in stretches of 4 MiB, and by way of dense memory where there are gaps")
{
    const fake::Control& driver = emulated_device();
    ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
    constexpr int64_t N = 3 << 20, STRETCH = 1 << 20;
    ng_tensor* t = make(c, N);
    std::vector<float> in(static_cast<size_t>(N)), out(static_cast<size_t>(N));
    for (size_t i = 0; i < in.size(); i++) in[i] = float(i % 1000 + 1);
    CHECK(ng_tensor_fill(t, nullptr, 0, nullptr) == NG_OK);
    driver.fail_function("cuMemcpyAsync", 3, 1);
    CHECK(ng_tensor_put(t, in.data(), uint64_t(N) * 4, nullptr) == NG_E_DEVICE);
    CHECK(ng_tensor_get(t, out.data(), uint64_t(N) * 4, nullptr) == NG_OK);
    CHECK(std::equal(out.begin(), out.begin() + 2 * STRETCH, in.begin()));
    CHECK(out[2 * STRETCH] == 0);
    CHECK(ng_tensor_put(t, in.data(), uint64_t(N) * 4, nullptr) == NG_OK);
    CHECK(ng_tensor_get(t, out.data(), uint64_t(N) * 4, nullptr) == NG_OK);
    CHECK(out == in);
    ng_scope* s = ng_scope_create(c, 0);
    ng_tensor* every_second = nullptr;
    CHECK(ng_tensor_view(ng_slice(ng_leaf(s, t), 0, 1, 11, 2), &every_second, nullptr) == NG_OK);
    const float five[5] = {-1, -2, -3, -4, -5};
    float back[5] = {};
    CHECK(ng_tensor_put(every_second, five, sizeof five, nullptr) == NG_OK);
    CHECK(ng_tensor_get(every_second, back, sizeof back, nullptr) == NG_OK);
    CHECK(std::equal(back, back + 5, five));
    CHECK(ng_tensor_get(t, out.data(), uint64_t(N) * 4, nullptr) == NG_OK);
    CHECK(out[0] == 1);
    CHECK(out[9] == -5);
    CHECK(out[10] == 11);
    ng_tensor_release(every_second), ng_tensor_release(t);
    ng_scope_release(s);
    shut(c);
    CHECK(left(driver) == "");
}

TEST_CASE("cuda: copies go between contexts of a device, and to the processor's by way of the host")
{
    const fake::Control& driver = fresh();
    ng_ctx *a = open_ctx(), *b = open_ctx(), *host = nullptr;
    ng_ctx_desc d = description();
    d.backend = "cpu";
    REQUIRE(ng_ctx_create(&d, &host, nullptr) == NG_OK);
    ng_tensor *x = make(a, 8), *y = make(b, 8), *z = make(host, 8);
    CHECK(ng_tensor_fill(x, nullptr, 3, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(y, x, nullptr, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(z, y, nullptr, nullptr) == NG_OK);
    float out[8] = {};
    CHECK(ng_tensor_get(z, out, sizeof out, nullptr) == NG_OK);
    for (const float v : out) CHECK(v == 3);
    for (ng_tensor* t : {x, y, z}) ng_tensor_release(t);
    shut(a), shut(b), shut(host);
    CHECK(left(driver) == "");
}

TEST_CASE("cuda: work on a second stream waits for the first one's, and for nothing that it does not touch")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx* c = open_ctx();
    ng_stream s = ng_ctx_stream(c, 1);
    REQUIRE(s);
    CHECK(ng_ctx_stream(c, 1) == s);
    CHECK(ng_ctx_stream(c, 0) != s);
    ng_tensor *x = make(c, 4), *y = make(c, 4);
    CHECK(ng_tensor_fill(x, nullptr, 1, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(y, x, s, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(x, nullptr, 2, nullptr) == NG_OK);      // after the copy has read it
    float out[4] = {};
    uint64_t mark = 0;
    CHECK(ng_mark(c, s, &mark, nullptr) == NG_OK);
    CHECK(ng_mark_wait(c, mark, FOREVER, nullptr) == NG_OK);
    CHECK(ng_tensor_get(y, out, sizeof out, nullptr) == NG_OK);
    CHECK(out[0] == 1);
    CHECK(ng_tensor_get(x, out, sizeof out, nullptr) == NG_OK);
    CHECK(out[0] == 2);
    ng_error error{};
    for (const uint64_t bad : {uint64_t(0), uint64_t(7), mark + 100, mark << 4}) CHECK(ng_mark_wait(c, bad, 0, &error) == NG_E_INVALID);
    CHECK(ng_mark_after(c, s, mark, nullptr) == NG_OK);
    CHECK(ng_ctx_sync(c, s, FOREVER, nullptr) == NG_OK);
    CHECK(ng_mark_wait(c, mark, 0, nullptr) == NG_OK);           // of a stream that was forgotten
    ng_tensor_release(x), ng_tensor_release(y);
    shut(c);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}

TEST_CASE("S5 on a device: done comes when the work on the memory is over, not when the tensor is released")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx* c = open_ctx();
    ng_tensor* memory = make(c, 4);
    void* data = nullptr;
    CHECK(ng_tensor_use(memory, nullptr, 0, &data, nullptr) == NG_OK);
    int done = 0;
    ng_tensor* t = nullptr;
    const ng_shape d = vector_of(4);
    REQUIRE(ng_tensor_wrap(c, &d, data, 16, [](void* user) { ++*static_cast<int*>(user); }, &done, &t, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(t, nullptr, 1, nullptr) == NG_OK);
    ng_tensor_release(t);
    CHECK(ng_ctx_poll(c, 0, nullptr) == NG_NOT_READY);
    CHECK(done == 0);
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(done == 1);
    ng_tensor_release(memory);
    shut(c);
    CHECK(left(driver) == "");
}

namespace {

// Four floats that c's host lent, from place i of that memory, whose end is counted.
ng_tensor* loan(ng_ctx* c, ng_tensor* memory, int i, int& done)
{
    void* data = nullptr;
    CHECK(ng_tensor_use(memory, nullptr, 0, &data, nullptr) == NG_OK);
    ng_tensor* t = nullptr;
    const ng_shape d = vector_of(4);
    REQUIRE(ng_tensor_wrap(c, &d, static_cast<char*>(data) + 16 * i, 16, [](void* user) { ++*static_cast<int*>(user); }, &done, &t, nullptr) == NG_OK);
    return t;
}

}  // namespace

TEST_CASE("S5 on a device: what waits for one stream keeps back no done of what another was waited for")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx*    c = open_ctx();
    ng_stream  other = ng_ctx_stream(c, 1);
    ng_tensor* memory = make(c, 8);
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    int done[2] = {};
    ng_tensor* const t[] = {loan(c, memory, 0, done[0]), loan(c, memory, 1, done[1])};
    for (int i = 0; i < 100; i++) CHECK(ng_tensor_fill(t[0], nullptr, i, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(t[1], other, 1, nullptr) == NG_OK);
    for (ng_tensor* x : t) ng_tensor_release(x);
    CHECK(ng_ctx_sync(c, other, FOREVER, nullptr) == NG_OK);
    CHECK(done[1] == 1);
    CHECK(done[0] == 0);
    CHECK(ng_ctx_poll(c, 0, nullptr) == NG_NOT_READY);
    CHECK(done[0] == 0);
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(done[0] == 1);
    ng_tensor_release(memory);
    shut(c);
    CHECK(left(driver) == "");
}

TEST_CASE("S5 on a device: a context that nobody closed ends when its work is over, and who does not wait is not kept by it")
{
    for (const bool is_under_way : {false, true}) {
        const fake::Control& driver = fresh();
        driver.defer(true);
        ng_ctx *   other = open_ctx(), *c = open_ctx();
        ng_tensor* memory = make(other, 4);
        CHECK(ng_ctx_sync(other, nullptr, FOREVER, nullptr) == NG_OK);
        const uint64_t host_blocks = driver.counts().host_blocks;
        int done = 0, others_done = 0;
        std::vector<ng_tensor*> all = {loan(c, memory, 0, done), make(c, 1000, NG_HOST)};
        for (int i = 0; i < 40; i++) all.push_back(make(c, 100));
        CHECK(ng_tensor_fill(all[0], ng_ctx_stream(c, 1), 1, nullptr) == NG_OK);
        for (int i = 0; i < 100; i++)                                    // each question to the stand-in does some of it
            for (ng_tensor* t : all) CHECK(ng_tensor_fill(t, nullptr, 1, nullptr) == NG_OK);
        if (!is_under_way) CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        for (ng_tensor* t : all) ng_tensor_release(t);
        ng_ctx_release(c);
        const auto waits = [&] { return driver.calls_of("cuStreamSynchronize") + driver.calls_of("cuEventSynchronize"); };
        const uint64_t before = waits();
        (void)stats(other);
        ng_tensor_release(loan(other, memory, 0, others_done));
        CHECK(ng_ctx_poll(other, 0, nullptr) == NG_OK);
        CHECK(ng_ctx_sync(other, nullptr, 0, nullptr) >= NG_OK);
        if (is_under_way) {
            CHECK(waits() == before);
            CHECK(done == 0);
        }
        CHECK(others_done == 1);
        CHECK(ng_ctx_poll(other, FOREVER, nullptr) == NG_OK);
        CHECK(done == 1);
        CHECK(driver.counts().host_blocks == host_blocks);
        ng_tensor_release(memory);
        shut(other);
        CHECK(driver.counts().misuses == 0);
        CHECK(left(driver) == "");
    }
}

TEST_CASE("S5 on a device: a close that cannot ask the device says so and calls no done, and may be tried again")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx *   other = open_ctx(), *c = open_ctx();
    ng_tensor* memory = make(other, 4);
    int        done = 0;
    ng_tensor* const t = loan(c, memory, 0, done);
    CHECK(ng_tensor_fill(t, nullptr, 1, nullptr) == NG_OK);
    driver.fail_function("cuEventSynchronize", 1, 999);
    ng_error error{};
    CHECK(ng_ctx_close(c, FOREVER, &error) == NG_E_DEVICE);
    CHECK(error.native == 999);
    CHECK(done == 0);
    CHECK(ng_ctx_poll(c, 0, nullptr) == NG_E_LOST);
    CHECK(ng_ctx_close(c, FOREVER, nullptr) == NG_OK);
    CHECK(done == 1);
    ng_tensor_release(t), ng_ctx_release(c);
    ng_tensor_release(memory);
    shut(other);
    CHECK(left(driver) == "");
}

TEST_CASE("cuda: memory of the host is refused where the device's is wanted; page-locked memory is seen by both")
{
    fresh();
    ng_ctx* c = open_ctx();
    float plain[4] = {};
    ng_tensor* t = nullptr;
    ng_error error{};
    const ng_shape d = vector_of(4);
    CHECK(ng_tensor_wrap(c, &d, plain, sizeof plain, nullptr, nullptr, &t, &error) == NG_E_INVALID);
    CHECK(holds(error.text, "ordinary memory of the host"));
    ng_tensor* pinned = make(c, 4, NG_HOST);
    void* data = nullptr;
    CHECK(ng_tensor_use(pinned, nullptr, NG_USE_READ | NG_USE_WRITE, &data, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(pinned, nullptr, 5, nullptr) == NG_OK);
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(static_cast<float*>(data)[3] == 5);
    ng_tensor_release(pinned);
    shut(c);
}

TEST_CASE("cuda: elements that lie between multiples of their size are refused, since the device's end would be to read them")
{
    fresh();
    ng_ctx* c = open_ctx();
    ng_tensor* whole = make(c, 8);
    void* data = nullptr;
    REQUIRE(ng_tensor_use(whole, nullptr, NG_USE_READ | NG_USE_WRITE, &data, nullptr) == NG_OK);
    for (const ng_dtype type : {NG_U8, NG_F16, NG_F32, NG_F64})
        for (int64_t skipped = 0; skipped <= 8; skipped++) {
            ng_shape d = vector_of(1);
            d.dtype = type;
            const int64_t size = int64_t(type >> 8 & 0xff) / 8;
            ng_tensor*    t = nullptr;
            ng_error      error{};
            const ng_status status = ng_tensor_wrap(c, &d, static_cast<char*>(data) + skipped, 8, nullptr, nullptr, &t, &error);
            CHECK(status == (skipped % size ? NG_E_INVALID : NG_OK));
            if (status != NG_OK) CHECK(holds(error.text, "multiple of"));
            ng_tensor_release(t);
        }
    ng_tensor_release(whole);
    shut(c);
}

TEST_CASE("cuda: the limit, an allocator of the host's, and trim")
{
    const fake::Control& driver = fresh();
    ng_ctx* c = open_ctx();
    CHECK(ng_ctx_limit(c, 1000) == NG_OK);
    const ng_shape d = vector_of(1000);
    ng_tensor* t = nullptr;
    ng_error error{};
    CHECK(ng_tensor_create(c, &d, &t, &error) == NG_E_DEVMEM);
    CHECK(holds(error.text, "dev_limit is 1000"));
    CHECK(ng_ctx_limit(c, 0) == NG_OK);
    t = make(c, 1000);
    ng_tensor_release(t);
    CHECK(ng_ctx_trim(c, 0) == NG_OK);
    CHECK(stats(c).dev_peak == 0);
    shut(c);
    CHECK(left(driver) == "");
}

namespace {

// What a host does in a frame, every status looked at; the first that is bad.
ng_status scenario()
{
    const ng_ctx_desc d = description();
    ng_ctx* c = nullptr;
    ng_tensor *x = nullptr, *y = nullptr;
    ng_error error{};
    const ng_shape shape = vector_of(16);
    float values[16] = {1, 2, 3};
    uint64_t mark = 0;
    ng_status status = ng_ctx_create(&d, &c, &error);
    const auto then = [&](auto&& call) { if (status >= 0) status = call(); };
    then([&] { return ng_tensor_create(c, &shape, &x, &error); });
    then([&] { return ng_tensor_create(c, &shape, &y, &error); });
    then([&] { return ng_tensor_put(x, values, sizeof values, &error); });
    ng_stream s = status >= 0 ? ng_ctx_stream(c, 1) : nullptr;
    then([&] { return ng_tensor_copy(y, x, s, &error); });
    then([&] { return ng_tensor_fill(x, nullptr, 7, &error); });
    then([&] { return ng_mark(c, s, &mark, &error); });
    then([&] { return ng_mark_after(c, nullptr, mark, &error); });
    then([&] { return ng_mark_wait(c, mark, FOREVER, &error); });
    then([&] { return ng_tensor_get(y, values, sizeof values, &error); });
    if (status >= 0) CHECK(values[1] == 2);
    if (status < 0) CHECK(error.text[0] != 0);
    ng_tensor_release(x), ng_tensor_release(y);
    if (c) (void)ng_ctx_close(c, FOREVER, nullptr);
    ng_ctx_release(c);
    return status;
}

}  // namespace

TEST_CASE("cuda: whichever call of the driver fails, the host gets a status and nothing is left behind")
{
    const fake::Control& driver = fresh();
    REQUIRE(scenario() == NG_OK);
    const uint64_t calls = driver.counts().calls;
    int failures = 0;
    for (uint64_t number = 1; number <= calls; number++) {
        driver.reset();
        driver.fail_call(number, 700);               // an illegal address: the context is lost
        const ng_status status = scenario();
        failures += status < 0;
        const std::string failed = driver.failed();
        INFO("call ", number, ", ", failed);
        CHECK(driver.counts().misuses == 0);
        driver.fail_call(0, 0);
        CHECK(scenario() == NG_OK);
        // A context that cannot be made current is lost, and with it what lived there.
        if (failed != "cuCtxPushCurrent") CHECK(left(driver) == "");
    }
    CHECK(failures * 4 > int(calls));
}

TEST_CASE("cuda: a kernel's fault that comes late is told with the tags of what was under way, and of nothing that was waited for")
{
    const fake::Control& driver = emulated_device();
    ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
    ng_stream other = ng_ctx_stream(c, 1);
    ng_tensor* const t[] = {make(c, 8), make(c, 8), make(c, 8), make(c, 8)};
    for (ng_tensor* x : t) CHECK(ng_tensor_fill(x, nullptr, 1, nullptr) == NG_OK);
    ng_prog* over = program_of(c, "x + y", 8, true, "what is over");
    ng_prog* faulty = program_of(c, "x * y", 8, true, "the faulty one");
    ng_prog* beside = program_of(c, "x - y", 8, true, "what finds it");
    CHECK(run(over, nullptr, t, t[2]) == NG_OK);
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(run(faulty, other, t, t[3]) == NG_OK);
    driver.break_all(700);
    ng_error error{};
    SUBCASE("in a wait") { CHECK(ng_ctx_sync(c, other, FOREVER, &error) == NG_E_LOST); }
    SUBCASE("in a read") { float out[8]; CHECK(ng_tensor_get(t[3], out, sizeof out, &error) == NG_E_LOST); }
    SUBCASE("in the next run") { CHECK(run(beside, nullptr, t, t[2], &error) == NG_E_LOST); }
    SUBCASE("where memory is wanted")
    {
        ng_tensor* more = nullptr;
        const ng_shape d = vector_of(8);
        CHECK(ng_tensor_create(c, &d, &more, &error) == NG_E_LOST);
    }
    SUBCASE("in a mark") { uint64_t mark; CHECK(ng_mark(c, nullptr, &mark, &error) == NG_E_LOST); }
    INFO(error.text);
    CHECK(error.native == 700);
    CHECK(holds(error.text, "; under way were \""));
    CHECK(holds(error.text, "\"the faulty one\""));
    CHECK(!holds(error.text, "what is over"));
    driver.break_all(0);
    for (ng_tensor* x : t) ng_tensor_release(x);
    for (ng_prog* p : {over, faulty, beside}) ng_prog_release(p);
    shut(c);
}
