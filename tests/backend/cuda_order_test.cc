// What orders work and memory on several streams, on the stand-in of the driver: the library, or its caller; and room made under pressure.
#include "lib/backend/cuda/order.h"
#include "tests/backend/late_host.h"

#include <thread>
#include <utility>

using namespace ng;
using namespace ng::cuda;

TEST_CASE("S2: where the caller orders, no stream waits for another by itself; its own marks order")
{
    for (const bool caller_orders : {false, true}) {
        const fake::Control& driver = fresh();
        driver.defer(true);
        ng_ctx*   c = open_ctx(caller_orders ? NG_CTX_CALLER_ORDERS : 0);
        ng_stream s = ng_ctx_stream(c, 1);
        ng_tensor *x = make(c, 4), *y = make(c, 4);
        CHECK(ng_tensor_fill(x, nullptr, 1, nullptr) == NG_OK);
        CHECK(ng_tensor_fill(y, s, 0, nullptr) == NG_OK);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        wait_for(c, s);
        // Memory is there from now on. What follows is between the two streams alone.
        CHECK(ng_tensor_copy(y, x, s, nullptr) == NG_OK);
        wait_for(c, s);
        const uint64_t waits = driver.calls_of("cuStreamWaitEvent");
        for (int i = 0; i < 20; i++) {
            CHECK(ng_tensor_fill(x, nullptr, 2 + i, nullptr) == NG_OK);
            CHECK(ng_tensor_copy(y, x, s, nullptr) == NG_OK);
        }
        wait_for(c, s);
        CHECK((driver.calls_of("cuStreamWaitEvent") > waits) == !caller_orders);
        const float seen = first_of(y);              // by the first stream, which fills before
        CHECK(seen == (caller_orders ? 1 : 21));
        uint64_t mark = 0;
        CHECK(ng_tensor_fill(x, nullptr, 50, nullptr) == NG_OK);
        CHECK(ng_mark(c, nullptr, &mark, nullptr) == NG_OK);
        const uint64_t before = driver.calls_of("cuStreamWaitEvent");
        CHECK(ng_mark_after(c, s, mark, nullptr) == NG_OK);
        CHECK(driver.calls_of("cuStreamWaitEvent") == before + 1);
        CHECK(ng_tensor_copy(y, x, s, nullptr) == NG_OK);
        wait_for(c, s);
        CHECK(first_of(y) == 50);
        ng_tensor_release(x), ng_tensor_release(y);
        shut(c);
        CHECK(driver.counts().misuses == 0);
        CHECK(left(driver) == "");
    }
}

TEST_CASE("S2: memory is kept alive where the caller orders, too: of tensors that were released, and what programs work in")
{
    for (const int others : {0, 1, 20}) {                // work that a tensor remembers meanwhile
        const fake::Control& driver = emulated_device();
        driver.defer(true);
        ng_ctx*    c = open_ctx(NG_CTX_CALLER_ORDERS | NG_CTX_NO_JIT);
        ng_stream  s = ng_ctx_stream(c, 1), third = ng_ctx_stream(c, 2);
        ng_tensor *x = make(c, 1000), *y = make(c, 1000), *z = make(c, 1000);
        for (ng_tensor* t : {x, y, z}) CHECK(ng_tensor_fill(t, nullptr, 3, nullptr) == NG_OK);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        CHECK(ng_tensor_copy(y, x, s, nullptr) == NG_OK);            // under way
        for (int i = 0; i < others; i++) CHECK(ng_tensor_copy(z, x, third, nullptr) == NG_OK);
        ng_tensor_release(x);
        CHECK(ng_ctx_poll(c, 0, nullptr) >= 0);
        ng_tensor* next = make(c, 1000);                             // in its place, once that is free
        CHECK(ng_tensor_fill(next, nullptr, 9, nullptr) == NG_OK);
        wait_for(c, nullptr), wait_for(c, s);
        CHECK(first_of(y, 1000) == 3);
        // A program's own memory is no tensor that its caller could order by.
        ng_prog* p = program_of(c, "x - mean(x) + y", 1000);
        ng_tensor* const args[] = {y, z};
        ng_tensor* const other_args[] = {next, z};
        ng_tensor *out = make(c, 1000), *other = make(c, 1000);
        for (ng_tensor* t : {out, other}) CHECK(ng_tensor_fill(t, nullptr, 0, nullptr) == NG_OK);
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        CHECK(stats(c).workspace_bytes > 0);
        for (const bool is_first : {true, false}) {                  // the first runs wait for their outputs' memory as well
            const uint64_t waits = driver.calls_of("cuStreamWaitEvent");
            CHECK(run(p, s, args, out) >= 0);
            CHECK(run(p, third, other_args, other) >= 0);
            CHECK((is_first || driver.calls_of("cuStreamWaitEvent") > waits));
            wait_for(c, s), wait_for(c, third);
        }
        ng_prog_release(p);
        for (ng_tensor* t : {y, z, next, out, other}) ng_tensor_release(t);
        shut(c);
        CHECK(driver.counts().misuses == 0);
        CHECK(left(driver) == "");
    }
}

TEST_CASE("cuda: the pressure hook makes room at the limit and where the driver has none; what it releases stays until work on it is done")
{
    static ng_tensor* spare;
    static int        asked;
    for (const bool is_limit : {true, false}) {
        const fake::Control& driver = fresh();
        driver.defer(is_limit);                      // a driver that has no memory has it after what is queued
        if (!is_limit) driver.set_memory(20000);
        spare = nullptr, asked = 0;
        ng_hooks hooks{};
        hooks.size = sizeof hooks;
        hooks.pressure = [](void*, uint64_t) -> int32_t {
            asked++;
            ng_tensor_release(spare);
            return std::exchange(spare, nullptr) != nullptr;
        };
        ng_ctx_desc d = description();
        d.hooks = &hooks, d.dev_limit = is_limit ? 20000 : 0;
        ng_ctx*  c = nullptr;
        ng_error error{};
        REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
        ng_stream  s = ng_ctx_stream(c, 1);
        ng_tensor* kept = make(c, 2000);
        spare = make(c, 2000);
        CHECK(ng_tensor_fill(spare, nullptr, 3, nullptr) == NG_OK);
        CHECK(ng_tensor_copy(kept, spare, s, nullptr) == NG_OK);
        CHECK(asked == 0);
        ng_tensor* t = make(c, 2000);                // in the place of the spare one
        CHECK(asked == 1);
        CHECK(ng_tensor_fill(t, nullptr, 5, nullptr) == NG_OK);
        const ng_shape much = vector_of(2000);
        ng_tensor*     none = nullptr;
        for (int i = 0; i < 2; i++) CHECK(ng_tensor_create(c, &much, &none, &error) == NG_E_DEVMEM);
        CHECK(!none);
        CHECK(asked == 3);
        CHECK(holds(error.text, is_limit ? "dev_limit is 20000" : "no memory for 8000 bytes"));
        CHECK(stats(c).live_bytes == 16000);
        CHECK(stats(c).tensors == 2);
        CHECK(first_of(kept, 2000) == 3);
        CHECK(first_of(t, 2000) == 5);
        ng_tensor_release(t);
        t = make(c, 2000);
        for (ng_tensor* x : {kept, t}) ng_tensor_release(x);
        shut(c);
        CHECK(driver.counts().misuses == 0);
        CHECK(left(driver) == "");
    }
}

TEST_CASE("S4: a stream is not forgotten where something was queued on it while it was waited for")
{
    Host host;
    struct Late {
        ng_tensor* t;
        ng_stream  s;
    } late = {host.filled(5, host.one), host.one};
    ng_tensor* y = make(host.c, 4);
    const auto records = [&] {                       // as all do while there are several streams
        const uint64_t before = host.control.calls_of("cuEventRecord");
        CHECK(ng_tensor_fill(y, nullptr, 0, nullptr) == NG_OK);
        return host.control.calls_of("cuEventRecord") > before;
    };
    host.driver.cuLaunchHostFunc(host.one, [](void* user) {
        const Late& late = *static_cast<const Late*>(user);
        CHECK(ng_tensor_fill(late.t, late.s, 9, nullptr) == NG_OK);
    }, &late);
    CHECK(ng_ctx_sync(host.c, host.one, FOREVER, nullptr) == NG_OK);
    CHECK(records());
    CHECK(ng_tensor_copy(y, late.t, nullptr, nullptr) == NG_OK);
    CHECK(first_of(y) == 9);
    CHECK(ng_ctx_sync(host.c, host.one, 0, nullptr) == NG_OK);
    CHECK(!records());
    for (ng_tensor* t : {late.t, y}) ng_tensor_release(t);
}

TEST_CASE("captures: a mark takes another stream into a capture, and what came before that is waited for afterwards")
{
    Host host;
    ng_tensor *x = host.filled(7, host.one), *y = host.filled(1, host.two), *z = make(host.c, 4), *w = make(host.c, 4);
    CUevent joined = nullptr;
    host.driver.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING);
    uint64_t outside = 0, first = 0, second = 0;
    ng_error error{};
    CHECK(ng_mark(host.c, nullptr, &outside, nullptr) == NG_OK);
    const auto join = [&] { host.driver.cuEventRecord(joined, host.two), host.driver.cuStreamWaitEvent(host.one, joined, 0); };
    CHECK(host.captures(host.one, [&] {
        CHECK(ng_tensor_fill(z, host.one, 2, nullptr) == NG_OK);
        CHECK(ng_mark_after(host.c, host.one, outside, &error) == NG_E_INVALID);
        CHECK(holds(error.text, "outside its capture"));
        for (uint64_t* mark : {&first, &second}) CHECK(ng_mark(host.c, host.one, mark, nullptr) == NG_OK);
        CHECK(ng_mark_after(host.c, host.two, first, nullptr) == NG_OK);
        CHECK(ng_tensor_fill(w, host.two, 3, nullptr) == NG_OK);
        std::thread([&] { CHECK(ng_mark_wait(host.c, second, FOREVER, nullptr) == NG_OK); }).join();
        join();
    }));
    CHECK(ng_tensor_fill(x, host.one, 8, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(y, x, host.two, nullptr) == NG_OK);
    host.driver.cuStreamSynchronize(host.two);
    CHECK(first_of(y) == 8);
    // The marks of a capture that has ended take nobody into it, nor into the next.
    CHECK(ng_mark_after(host.c, host.two, second, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(w, host.two, 5, nullptr) == NG_OK);
    CHECK(first_of(w) == 5);
    CHECK(host.captures(host.one, [&] {
        uint64_t third = 0;
        CHECK(ng_mark(host.c, host.one, &third, nullptr) == NG_OK);
        for (const uint64_t mark : {first, second}) CHECK(ng_mark_after(host.c, host.two, mark, nullptr) == NG_OK);
        CHECK(ng_mark_wait(host.c, first, FOREVER, nullptr) == NG_OK);
        CHECK(ng_tensor_fill(w, host.two, 4, nullptr) == NG_OK);
    }));
    CHECK(first_of(w) == 4);
    for (ng_tensor* t : {x, y, z, w}) ng_tensor_release(t);
    host.driver.cuEventDestroy(joined);
}

TEST_CASE("captures: what two streams had before they came into one is waited for in it and after it")
{
    Host host;
    ng_tensor *x = host.filled(0, nullptr), *y = host.filled(0, host.two);
    CUevent joined = nullptr;
    host.driver.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING);
    for (int turn = 0; turn < 192; turn++) {         // thrice the events that are kept
        CHECK(ng_tensor_fill(x, host.one, turn, nullptr) == NG_OK);              // under way, and in no capture
        CHECK(host.captures(host.one, [&] {
            uint64_t mark = 0;
            CHECK(ng_mark(host.c, host.one, &mark, nullptr) == NG_OK);
            CHECK(ng_mark_after(host.c, host.two, mark, nullptr) == NG_OK);
            if (turn % 3) std::thread([&] { CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK); }).join();
            host.driver.cuEventRecord(joined, host.two), host.driver.cuStreamWaitEvent(host.one, joined, 0);
        }));
        CHECK(ng_tensor_copy(y, x, host.two, nullptr) == NG_OK);
        host.driver.cuStreamSynchronize(host.two);
        CHECK(first_of(y) == turn);
    }
    for (ng_tensor* t : {x, y}) ng_tensor_release(t);
    host.driver.cuEventDestroy(joined);
}

TEST_CASE("captures: foreign work that ends in one is nobody's to wait for, and what came before it is")
{
    Host host;
    ng_tensor *x = host.filled(5, nullptr), *y = make(host.c, 4);
    CHECK(ng_tensor_copy(y, x, host.one, nullptr) == NG_OK);
    CHECK(host.captures(host.one, [&] {
        CHECK(ng_tensor_use(y, host.one, NG_USE_WRITE, nullptr, nullptr) == NG_OK);
        CHECK(ng_tensor_use(y, host.one, NG_USE_DONE, nullptr, nullptr) == NG_OK);
        std::thread([&] { CHECK(first_of(y) == 5); }).join();
        std::thread([&] { CHECK(ng_tensor_close(y, nullptr) == NG_OK); }).join();
    }));
    for (ng_tensor* t : {x, y}) ng_tensor_release(t);
}

TEST_CASE("captures: what the context's own stream got before it was lent and captured is waited for")
{
    for (const bool is_lent_before : {true, false}) {
        Host host;
        const auto own = [&] { return static_cast<CUstream>(ng_ctx_stream(host.c, 0)); };
        if (is_lent_before) (void)own();
        ng_tensor *x = host.filled(5, nullptr), *y = make(host.c, 4);
        CHECK(host.captures(own(), [&] {
            CHECK(ng_tensor_copy(y, x, host.one, nullptr) == NG_OK);
            CHECK(ng_ctx_sync(host.c, host.one, FOREVER, nullptr) == NG_OK);
            // Memory comes and goes elsewhere than in the graph, and nothing goes to the host or comes from it.
            ng_tensor* const z = make(host.c, 4);
            CHECK(ng_tensor_fill(z, host.one, 7, nullptr) == NG_OK);
            ng_tensor_release(z);
            ng_error error{};
            float    numbers[4];
            CHECK(ng_tensor_get(y, numbers, sizeof numbers, &error) == NG_E_INVALID);
            CHECK(holds(error.text, "ng_tensor_get: the context's own stream captures"));
            CHECK(ng_tensor_put(y, numbers, sizeof numbers, &error) == NG_E_INVALID);
            CHECK(holds(error.text, "ng_tensor_put: the context's own stream captures"));
            CHECK(ng_tensor_close(x, nullptr) == NG_OK);
            CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
        }));
        CHECK(first_of(y) == 5);
        for (ng_tensor* t : {x, y}) ng_tensor_release(t);
    }
}

TEST_CASE("captures: memory comes and goes beside one of the context's own stream that was spoilt")
{
    Host host;
    const auto own = static_cast<CUstream>(ng_ctx_stream(host.c, 0));
    ng_tensor* x = host.filled(5, nullptr);
    CHECK(!host.captures(own, [&] {
        (void)host.driver.cuStreamSynchronize.quiet(own);
        ng_tensor_release(make(host.c, 4));
        ng_tensor_release(x);
        CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
    }));
}

TEST_CASE("captures: what no event tells of, as none could be recorded, is under way until the capture ends")
{
    Host host;
    ng_tensor *x = host.filled(5, nullptr), *y = make(host.c, 4);
    host.control.fail_function("cuEventRecord", 1, 999);
    ng_error error{};
    CHECK(host.captures(static_cast<CUstream>(ng_ctx_stream(host.c, 0)), [&] {
        CHECK(ng_tensor_copy(y, x, host.one, &error) == NG_E_UNSUPPORTED);
        CHECK(holds(error.text, "call ng_mark before"));
        CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_NOT_READY);
        CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
    }));
    CHECK(ng_tensor_copy(y, x, host.one, nullptr) == NG_OK);
    CHECK(first_of(y) == 5);
    for (ng_tensor* t : {x, y}) ng_tensor_release(t);
}

TEST_CASE("marks: they stay apart however many came before, and end in a status")
{
    const fake::Control& control = emulated_device();
    control.defer(true);
    const Driver& driver = Driver::need("a test", stand_in_path());
    const DeviceContext home = DeviceContext::primary(driver, 0);
    const CurrentContext now(home);
    const Stream own = make_stream(home, StreamKind::Ordered), s = make_stream(home, StreamKind::Independent);
    constexpr uint64_t MOST_NUMBER = UINT64_MAX / StreamOrder::MOST;
    for (const uint64_t before : {uint64_t(0), (uint64_t(1) << 24) + 5, uint64_t(1) << 40, MOST_NUMBER - 20}) {
        StreamOrder order(home, own.get(), true, before);
        bool is_done = false;
        const auto queue = [&] {
            is_done = false;
            order.open(s.get());
            driver.cuLaunchHostFunc(s.get(), [](void* done) { *static_cast<bool*>(done) = true; }, &is_done);
            order.close();
        };
        queue();
        const uint64_t mark = order.mark(s.get());
        CHECK(order.wait_for(mark, FOREVER, "ng_mark_wait") == NG_OK);
        CHECK(is_done);
        CHECK(order.sync(s.get(), false, FOREVER) == NG_OK);
        queue();
        CHECK(order.wait_for(mark, 0, "ng_mark_wait") == NG_OK);         // of before it was forgotten
        CHECK(!is_done);
        const uint64_t other = order.mark(s.get());
        for (const uint64_t bad : {other + StreamOrder::MOST, other + 1, uint64_t(1), uint64_t(0)})
            CHECK(thrown_by([&] { (void)order.wait_for(bad, 0, "ng_mark_wait"); }).status == NG_E_INVALID);
        CHECK(order.wait_for(other, FOREVER, "ng_mark_wait") == NG_OK);
        CHECK(is_done);
        if (before < MOST_NUMBER - 20) continue;
        const Error full = thrown_by([&] { for (int i = 0; i < 20; i++) (void)order.mark(own.get()); });
        CHECK_MESSAGE(full.status == NG_E_LIMIT, full.text);
        queue();
        CHECK(order.sync(nullptr, true, FOREVER) == NG_OK);
        CHECK(is_done);
    }
}

TEST_CASE("captures: all streams are waited for, and the context is closed, beside one that another thread captures")
{
    for (const bool closes : {false, true}) {
        Host host;
        ng_tensor *x = host.filled(3, host.one), *y = host.filled(4, host.two);
        bool is_done = false;
        host.driver.cuLaunchHostFunc(host.two, [](void* done) { *static_cast<bool*>(done) = true; }, &is_done);
        CHECK(host.captures(host.one, [&] {
            CHECK(ng_tensor_fill(x, host.one, 5, nullptr) == NG_OK);
            std::thread([&] {
                CHECK(ng_ctx_sync(host.c, nullptr, 0, nullptr) == NG_NOT_READY);
                CHECK(ng_ctx_sync(host.c, nullptr, 1000000000, nullptr) == NG_OK);
                CHECK(is_done);
                CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
                CHECK(ng_ctx_sync(host.c, host.one, FOREVER, nullptr) == NG_OK);
                if (closes) shut(std::exchange(host.c, nullptr));
            }).join();
        }));
        for (ng_tensor* t : {x, y}) ng_tensor_release(t);
    }
}

TEST_CASE("streams: the fault of one keeps nobody from waiting for the others, nor does one that was destroyed meanwhile")
{
    for (const bool is_faulty : {true, false}) {
        Host host;
        ng_tensor *x = host.filled(3, nullptr), *y = host.filled(4, host.one), *z = host.filled(5, host.two);
        if (is_faulty) host.control.fail_function("cuEventSynchronize", 1, 999);
        else
            host.driver.cuLaunchHostFunc(static_cast<CUstream>(ng_ctx_stream(host.c, 0)), [](void* user) {
                Host& host = *static_cast<Host*>(user);
                CHECK(ng_ctx_sync(host.c, host.two, FOREVER, nullptr) == NG_OK);
                host.driver.cuStreamDestroy(std::exchange(host.two, nullptr));
            }, &host);
        bool is_done = false;
        host.driver.cuLaunchHostFunc(host.one, [](void* done) { *static_cast<bool*>(done) = true; }, &is_done);
        ng_error error{};
        CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, &error) == (is_faulty ? NG_E_DEVICE : NG_OK));
        CHECK(error.native == (is_faulty ? 999 : 0));
        CHECK(is_done);
        for (ng_tensor* t : {x, y, z}) ng_tensor_release(t);
    }
}
