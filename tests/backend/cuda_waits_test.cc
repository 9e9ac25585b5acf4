// What is waited for, and what is not, on the stand-in of the driver: where a capture was spoilt, a call of the driver fails, or the host is far ahead.
#include "tests/backend/late_host.h"

#include <array>
#include <utility>

using namespace ng;
using namespace ng::cuda;

namespace {

// Memory of another context, which this one is lent; done says so.
struct Lent {
    ng_ctx*    owner = open_ctx(NG_CTX_NO_JIT);
    ng_tensor *whole = make(owner, 4), *t = nullptr;
    bool       is_done = false;

    explicit Lent(ng_ctx* c)
    {
        void* data = nullptr;
        CHECK(ng_tensor_use(whole, nullptr, 0, &data, nullptr) == NG_OK);
        CHECK(ng_ctx_sync(owner, nullptr, FOREVER, nullptr) == NG_OK);
        const ng_shape d = vector_of(4);
        CHECK(ng_tensor_wrap(c, &d, data, 16, [](void* self) { static_cast<Lent*>(self)->is_done = true; }, this, &t, nullptr) == NG_OK);
    }
    ~Lent()
    {
        ng_tensor_release(whole);
        shut(owner);
    }
};

void set(CUstream s, const Driver& driver, bool& flag)
{
    driver.cuLaunchHostFunc(s, [](void* user) { *static_cast<bool*>(user) = true; }, &flag);
}

// x, of 1000 floats, was read on a second stream, which has not come to it; then x goes as it may.
template <class Spoil>
void release_under_way(const Host& host, double value, Spoil&& spoil)
{
    ng_tensor *x = make(host.c, 1000), *y = make(host.c, 1000);
    CHECK(ng_tensor_fill(x, nullptr, value, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(y, nullptr, 0, nullptr) == NG_OK);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(y, x, host.two, nullptr) == NG_OK);
    spoil();
    ng_tensor_release(x);
    CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
    ng_tensor* z = make(host.c, 1000);                           // in its place, were that free
    CHECK(ng_tensor_fill(z, nullptr, 9, nullptr) == NG_OK);
    wait_for(host.c, nullptr);
    CHECK(first_of(y, 1000) == value);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    for (ng_tensor* t : {y, z}) ng_tensor_release(t);
    ng_tensor_release(make(host.c, 4));
    CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
    CHECK(stats(host.c).live_bytes == 0);
}

// The host's own work on what is lent, which takes a while; is_over: it does not any more.
void work_on(Host& host, Lent& lent, bool& is_over)
{
    CHECK(ng_tensor_use(lent.t, host.one, NG_USE_WRITE, nullptr, nullptr) == NG_OK);
    for (int i = 0; i < 3; i++) set(host.one, host.driver, is_over);
    CHECK(ng_tensor_use(lent.t, host.one, NG_USE_DONE, nullptr, nullptr) == NG_OK);
}

}  // namespace

TEST_CASE("captures: what is tried in one that was spoilt runs never, so nobody waits for it")
{
    Host host;
    ng_tensor* x = host.filled(1, host.one);
    ng_error   error{};
    uint64_t   mark = 0;
    CHECK(!host.captures(host.one, [&] {
        (void)host.driver.cuStreamSynchronize.quiet(host.one);
        CHECK(ng_tensor_fill(x, host.one, 5, &error) == NG_E_DEVICE);
        CHECK(error.native == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        CHECK(ng_mark(host.c, host.one, &mark, &error) == NG_E_INVALID);
        CHECK(holds(error.text, "ng_mark: the capture was spoilt"));
        REQUIRE(ng_tensor_fill(x, host.two, 6, nullptr) == NG_OK);
        CHECK(first_of(x) == 6);
        CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
        CHECK(ng_tensor_close(x, nullptr) == NG_OK);
    }));
    ng_tensor_release(x);
}

TEST_CASE("captures: beside what was tried in one that was spoilt, memory stays while another stream works on it")
{
    Host host;
    ng_tensor *x = make(host.c, 2000), *y = make(host.c, 1000), *halves[2] = {};
    ng_scope* s = ng_scope_create(host.c, 0);
    for (int64_t i = 0; i < 2; i++) CHECK(ng_tensor_view(ng_slice(ng_leaf(s, x), 0, 1000 * i, 1000 * i + 1000, 1), &halves[i], nullptr) == NG_OK);
    ng_scope_release(s);
    CHECK(ng_tensor_fill(x, nullptr, 3, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(y, nullptr, 0, nullptr) == NG_OK);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(ng_tensor_use(halves[1], host.one, NG_USE_READ, nullptr, nullptr) == NG_OK);
    ng_tensor* z = nullptr;
    CHECK(!host.captures(host.one, [&] {
        (void)host.driver.cuStreamSynchronize.quiet(host.one);
        CHECK(ng_tensor_fill(halves[1], host.one, 5, nullptr) == NG_E_DEVICE);
        CHECK(ng_tensor_copy(y, halves[0], host.two, nullptr) == NG_OK);
        for (ng_tensor* t : {halves[0], halves[1], x}) ng_tensor_release(t);
        CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
        z = make(host.c, 2000);
        CHECK(ng_tensor_fill(z, nullptr, 9, nullptr) == NG_OK);
        wait_for(host.c, nullptr);
    }));
    host.driver.cuStreamSynchronize(host.two);
    CHECK(first_of(y, 1000) == 3);
    for (ng_tensor* t : {y, z}) ng_tensor_release(t);
}

TEST_CASE("captures: the mark of one that was spoilt meanwhile takes nobody into it, and lets nothing run that was meant for its graph")
{
    Host host;
    ng_tensor* x = host.filled(1, host.two);
    ng_error   error{};
    CHECK(!host.captures(host.one, [&] {
        uint64_t mark = 0;
        CHECK(ng_mark(host.c, host.one, &mark, nullptr) == NG_OK);
        (void)host.driver.cuStreamSynchronize.quiet(host.one);
        for (const bool is_waited_for : {false, true}) {
            if (is_waited_for) CHECK(ng_ctx_sync(host.c, host.one, FOREVER, nullptr) == NG_OK);
            CHECK(ng_mark_after(host.c, host.two, mark, &error) == NG_E_INVALID);
            CHECK(holds(error.text, "ng_mark_after: the capture was spoilt"));
        }
    }));
    CHECK(first_of(x) == 1);
    ng_tensor_release(x);
}

TEST_CASE("captures: what the legacy stream could not take beside one is refused before it spoils that")
{
    Host host;
    CUstream  blocking = nullptr;
    const auto legacy = reinterpret_cast<ng_stream>(uintptr_t(1));
    host.driver.cuStreamCreateWithPriority(&blocking, CU_STREAM_DEFAULT, 0);
    ng_tensor* x = host.filled(1, legacy);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(host.captures(blocking, [&] {
        ng_error error{};
        uint64_t mark = 0;
        CHECK(ng_tensor_fill(x, legacy, 5, &error) == NG_E_DEVICE);
        CHECK(error.native == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        CHECK(ng_mark(host.c, legacy, &mark, &error) == NG_E_DEVICE);
        CHECK(ng_tensor_fill(x, host.two, 6, nullptr) == NG_OK);
        CHECK(ng_tensor_close(x, nullptr) == NG_OK);
    }));
    ng_tensor_release(x);
    host.driver.cuStreamDestroy(blocking);
}

TEST_CASE("memory stays while others work on it, also where its stream cannot be told to wait for them")
{
    for (const bool closes : {false, true}) {
        Host host;
        release_under_way(host, 3, [&] { host.control.fail_function("cuStreamWaitEvent", 1, 2); });
        CHECK(std::string(host.control.failed()) == "cuStreamWaitEvent");
        if (!closes) continue;
        // Nothing else comes or goes until the end.
        ng_tensor* x = make(host.c, 4);
        CHECK(ng_tensor_fill(x, host.two, 1, nullptr) == NG_OK);
        host.control.fail_function("cuStreamWaitEvent", 1, 2);
        ng_tensor_release(x);
        CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
        CHECK(stats(host.c).live_bytes == 16);
        CHECK(ng_ctx_close(host.c, FOREVER, nullptr) == NG_OK);
        CHECK(host.control.counts().device_blocks == 0);
        ng_ctx_release(std::exchange(host.c, nullptr));
        CHECK(ng_ctx_poll(nullptr, 0, nullptr) == NG_E_INVALID);
    }
}

TEST_CASE("memory stays while others work on it, also where the stream that it goes on is one too many")
{
    Host host;
    std::vector<CUstream> more(61);                              // with the own one and the two of the host's all that are remembered
    ng_tensor* x = host.filled(1, host.one);
    for (CUstream& s : more) {
        host.driver.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, 0);
        CHECK(ng_tensor_fill(x, s, 1, nullptr) == NG_OK);
    }
    const auto own = static_cast<CUstream>(ng_ctx_stream(host.c, 0));
    ng_tensor *y = make(host.c, 1000), *z = make(host.c, 1000);
    for (ng_tensor* t : {y, z}) CHECK(ng_tensor_fill(t, host.two, 7, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(y, z, host.two, nullptr) == NG_OK);
    CHECK(host.captures(own, [&] {
        ng_tensor_release(z);
        CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
        ng_tensor_release(make(host.c, 4));
    }));
    CHECK(first_of(y, 1000) == 7);
    for (ng_tensor* t : {x, y}) ng_tensor_release(t);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    for (CUstream s : more) {
        CHECK(ng_ctx_sync(host.c, s, FOREVER, nullptr) == NG_OK);
        host.driver.cuStreamDestroy(s);
    }
}

TEST_CASE("S5: done does not come while the device works, also where an event cannot be asked")
{
    Host host;
    Lent lent(host.c);
    bool is_over = false;
    work_on(host, lent, is_over);
    host.control.fail_function("cuEventQuery", 1, 999);
    ng_tensor_release(lent.t);
    CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
    CHECK(std::string(host.control.failed()) == "cuEventQuery");
    CHECK(!lent.is_done);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(lent.is_done);
}

TEST_CASE("streams: one is waited for, before the context is closed too, also where no event can be recorded there")
{
    for (const bool closes : {false, true}) {
        Host host;
        Lent lent(host.c);
        bool is_over = false;
        work_on(host, lent, is_over);
        is_over = false;
        set(host.one, host.driver, is_over);
        host.control.fail_function("cuEventRecord", 2, 2);       // the first is the own stream's
        CHECK(!lent.is_done);
        CHECK((closes ? ng_ctx_close(host.c, FOREVER, nullptr) : ng_ctx_sync(host.c, nullptr, FOREVER, nullptr)) == NG_OK);
        CHECK(is_over);
        CHECK(lent.is_done == closes);
        ng_tensor_release(lent.t);
        if (closes) ng_ctx_release(std::exchange(host.c, nullptr));
        else CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
        CHECK(lent.is_done);
        CHECK(ng_ctx_poll(nullptr, 0, nullptr) == NG_E_INVALID);
    }
}

TEST_CASE("two contexts of one device: what a copy reads stays until it is done, whichever call of the driver fails behind it")
{
    int faults = 0;
    for (const char* name : {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"})
        for (uint64_t number = 1; number < 12; number++) {
            Host host;
            ng_ctx_desc d = description(NG_CTX_NO_JIT);
            d.native = host.native;
            ng_ctx* other = nullptr;
            REQUIRE(ng_ctx_create(&d, &other, nullptr) == NG_OK);
            ng_tensor *x = make(host.c, 1000), *y = make(other, 1000);
            CHECK(ng_tensor_fill(x, nullptr, 3, nullptr) == NG_OK);
            CHECK(ng_tensor_fill(y, nullptr, 0, nullptr) == NG_OK);
            for (ng_ctx* c : {host.c, other}) CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
            host.control.fail_function(name, number, 2);
            const bool is_copied = ng_tensor_copy(y, x, host.two, nullptr) == NG_OK;
            faults += *host.control.failed() != 0;
            host.control.fail_function(name, 0, 0);
            ng_tensor_release(x);
            CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
            ng_tensor* z = make(host.c, 1000);
            CHECK(ng_tensor_fill(z, nullptr, 9, nullptr) == NG_OK);
            wait_for(host.c, nullptr);
            host.driver.cuStreamSynchronize(host.two);
            const float seen = first_of(y, 1000);
            CHECK_MESSAGE(seen == (is_copied ? 3 : 0), name, " ", number);
            ng_tensor_release(y), ng_tensor_release(z);
            shut(other);
        }
    CHECK(faults >= 6);
}

TEST_CASE("two contexts of one device: a copy of which the half was queued has read what it reads before that goes")
{
    Host host;
    ng_ctx_desc d = description(NG_CTX_NO_JIT);
    d.native = host.native;
    ng_ctx* other = nullptr;
    REQUIRE(ng_ctx_create(&d, &other, nullptr) == NG_OK);
    bool       is_done = false;
    ng_tensor *x = make(host.c, 1001), *from = nullptr, *to = nullptr;
    char*      data = nullptr;
    CHECK(ng_tensor_use(x, nullptr, 0, reinterpret_cast<void**>(&data), nullptr) == NG_OK);
    const ng_shape form = vector_of(1000);
    const auto done = [](void* user) { *static_cast<bool*>(user) = true; };
    CHECK(ng_tensor_wrap(host.c, &form, data, 4000, done, &is_done, &from, nullptr) == NG_OK);
    CHECK(ng_tensor_wrap(other, &form, data + 4, 4000, nullptr, nullptr, &to, nullptr) == NG_OK);
    for (ng_ctx* c : {host.c, other}) CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    bool is_over = false;
    set(host.two, host.driver, is_over);
    host.control.fail_function("cuMemcpyAsync", 2, 2);
    CHECK(ng_tensor_copy(to, from, host.two, nullptr) == NG_E_DEVMEM);
    ng_tensor_release(from);
    CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
    CHECK((is_over || !is_done));
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(is_done);
    CHECK(is_over);
    ng_tensor_release(x), ng_tensor_release(to);
    shut(other);
}

TEST_CASE("marks: that one is over is told when it is, however far ahead the host stays, and who waits for it waits for nothing behind it")
{
    constexpr size_t FRAMES = 30, FILLS = 10;
    Host host;
    ng_tensor* x = host.filled(0, host.one);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    std::array<uint64_t, FRAMES> marks{};
    bool is_first_over = false;
    for (size_t i = 0; i < FRAMES; i++) {
        for (size_t k = 0; k < FILLS; k++) CHECK(ng_tensor_fill(x, host.one, 1, nullptr) == NG_OK);
        if (i == 0) set(host.one, host.driver, is_first_over);
        CHECK(ng_mark(host.c, host.one, &marks[i], nullptr) == NG_OK);
    }
    while (!is_first_over) host.driver.cuStreamQuery.quiet(host.one);
    host.driver.cuStreamQuery.quiet(host.one);                   // the mark's own event
    CHECK(ng_mark_wait(host.c, marks[0], 0, nullptr) == NG_OK);
    for (size_t i = 1; i < FRAMES; i++) {
        CHECK(ng_mark_wait(host.c, marks[i], i % 2 ? FOREVER : 1000000000, nullptr) == NG_OK);
        CHECK(host.control.counts().queued == (FRAMES - 1 - i) * (2 * FILLS + 1));
    }
    ng_tensor_release(x);
}

TEST_CASE("a host that stays far ahead of the device is told what is over nearly when it is: marks, memory and the streams that wait")
{
    constexpr int AHEAD = 500;
    Host host;
    Lent lent(host.c);
    ng_tensor *x = host.filled(0, host.one), *y = host.filled(0, host.two);
    CHECK(ng_ctx_sync(host.c, nullptr, FOREVER, nullptr) == NG_OK);
    const auto submit = [&] { CHECK(ng_tensor_fill(x, host.one, 1, nullptr) == NG_OK); };
    bool is_over = false;
    int  is_told = 0, is_done = 0;
    for (int i = 0; i < AHEAD / 2; i++) submit();
    CHECK(ng_tensor_fill(lent.t, host.one, 2, nullptr) == NG_OK);
    ng_tensor_release(lent.t);
    uint64_t mark = 0;
    CHECK(ng_mark(host.c, host.one, &mark, nullptr) == NG_OK);
    set(host.one, host.driver, is_over);
    for (int i = 0; i < AHEAD / 2; i++) submit();
    const uint64_t queued = host.control.counts().queued;
    for (int behind = 0; !is_told || !is_done; behind += is_over) {
        REQUIRE(behind < AHEAD / 8);
        submit();
        if (!is_told && ng_mark_wait(host.c, mark, 0, nullptr) == NG_OK) is_told = 1;
        CHECK(ng_ctx_poll(host.c, 0, nullptr) >= 0);
        is_done = lent.is_done;
        while (host.control.counts().queued > queued) host.driver.cuStreamQuery.quiet(host.one);
    }
    // The stream that waits for one submission of those waits for few behind it.
    CHECK(ng_tensor_fill(y, host.one, 5, nullptr) == NG_OK);
    const uint64_t needed = host.control.counts().queued;
    for (int i = 0; i < AHEAD; i++) submit();
    CHECK(ng_tensor_fill(y, host.two, 6, nullptr) == NG_OK);
    const uint64_t all = host.control.counts().queued;
    host.driver.cuStreamSynchronize(host.two);
    CHECK(all - host.control.counts().queued < needed + AHEAD / 4);
    for (ng_tensor* t : {x, y}) ng_tensor_release(t);
}
