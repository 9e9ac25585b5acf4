// What is waited for, and what is not, on the stand-in of the driver: where a capture was spoilt, a call of the driver fails, or the host is far ahead.
#include "tests/backend/late_host.h"

#include <utility>

using namespace ng;
using namespace ng::cuda;

namespace {

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

}  // namespace

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
