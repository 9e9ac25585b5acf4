// What orders work and memory on several streams, on the stand-in of the driver: the library, or its caller; and room made under pressure.
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

#include <utility>

using namespace ng;

namespace {

// What was queued on it, and nothing else, is done.
void wait_for(ng_ctx* c, ng_stream s)
{
    uint64_t mark = 0;
    CHECK(ng_mark(c, s, &mark, nullptr) == NG_OK);
    CHECK(ng_mark_wait(c, mark, FOREVER, nullptr) == NG_OK);
}
float first_of(ng_tensor* t, size_t count = 4)
{
    std::vector<float> all(count);
    CHECK(ng_tensor_get(t, all.data(), count * sizeof(float), nullptr) == NG_OK);
    return all[0];
}

}  // namespace

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
