// A host with a context of its own on the stand-in of the driver, where work is as late as it may be.
#pragma once
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

namespace ng {

// What was queued on it, and nothing else, is done.
inline void wait_for(ng_ctx* c, ng_stream s)
{
    uint64_t mark = 0;
    CHECK(ng_mark(c, s, &mark, nullptr) == NG_OK);
    CHECK(ng_mark_wait(c, mark, FOREVER, nullptr) == NG_OK);
}
inline float first_of(ng_tensor* t, size_t count = 4)
{
    std::vector<float> all(count);
    CHECK(ng_tensor_get(t, all.data(), count * sizeof(float), nullptr) == NG_OK);
    return all[0];
}

// A context of the library's over one of the host's, whose streams are captured and hold functions; work is late.
struct Host {
    const fake::Control& control = emulated_device();
    const cuda::Driver&  driver = cuda::Driver::need("a test", stand_in_path());
    cuda::CUcontext      native = nullptr;
    cuda::CUstream       one = nullptr, two = nullptr;
    ng_ctx*              c = nullptr;

    Host()
    {
        control.defer(true);
        driver.cuDevicePrimaryCtxRetain(&native, 0);
        driver.cuCtxPushCurrent(native);
        for (cuda::CUstream* s : {&one, &two}) driver.cuStreamCreateWithPriority(s, cuda::CU_STREAM_NON_BLOCKING, 0);
        ng_ctx_desc d = description(NG_CTX_NO_JIT);
        d.native = native;
        REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
    }
    ~Host()
    {
        if (c) shut(c);
        for (cuda::CUstream s : {one, two})
            if (s) driver.cuStreamDestroy(s);
        driver.cuCtxPopCurrent(&native);
        driver.cuDevicePrimaryCtxRelease(0);
        CHECK(control.counts().misuses == 0);
        CHECK(left(control) == "");
    }
    ng_tensor* filled(double value, ng_stream s) const
    {
        ng_tensor* t = make(c, 4);
        CHECK(ng_tensor_fill(t, s, value, nullptr) == NG_OK);
        return t;
    }
    // Whether what body does leaves a capture of s whole.
    template <class Body>
    bool captures(cuda::CUstream s, Body&& body) const
    {
        cuda::CUgraph graph = nullptr;
        driver.cuStreamBeginCapture(s, cuda::CU_STREAM_CAPTURE_MODE_GLOBAL);
        body();
        if (driver.cuStreamEndCapture.quiet(s, &graph) != cuda::CUDA_SUCCESS) return false;
        driver.cuGraphDestroy(graph);
        return true;
    }
};

}  // namespace ng
