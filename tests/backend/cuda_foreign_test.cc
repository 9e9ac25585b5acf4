// Work of others on a device's memory, and contexts that share a device: who waits for whom, on the stand-in, which works as late as it may.
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"
#include "tests/harm/dlpack_binary.h"

#include <bit>
#include <thread>

using namespace ng;
using namespace ng::cuda;

namespace {

// Another library in this process: its stream in the device's context, and what it queues there, of which libng hears nothing.
struct Other {
    const Driver& driver = Driver::need("a test", stand_in_path());
    CUcontext     context = nullptr;
    CUstream      stream = nullptr;

    Other()
    {
        driver.cuDevicePrimaryCtxRetain(&context, 0);
        driver.cuCtxPushCurrent(context);
        driver.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    }
    ~Other()
    {
        driver.cuStreamDestroy(stream);
        driver.cuCtxPopCurrent(&context);
        driver.cuDevicePrimaryCtxRelease(0);
    }
    void fill(void* data, float value) { driver.cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(data), std::bit_cast<uint32_t>(value), 4, stream); }
    void copy(void* to, void* from) { driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), 16, stream); }
    void finish() { driver.cuStreamSynchronize(stream); }
};

// Four floats of c that all are this number, done.
ng_tensor* four(ng_ctx* c, double value)
{
    ng_tensor* t = make(c, 4);
    CHECK(ng_tensor_fill(t, nullptr, value, nullptr) == NG_OK);
    CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
    return t;
}
void* data_of(ng_tensor* t)
{
    void* data = nullptr;
    CHECK(ng_tensor_use(t, nullptr, 0, &data, nullptr) == NG_OK);
    return data;
}
float first_of(ng_tensor* t)
{
    float all[4] = {};
    CHECK(ng_tensor_get(t, all, sizeof all, nullptr) == NG_OK);
    return all[0];
}
void use(ng_tensor* t, ng_stream s, uint32_t how)
{
    ng_error error{};
    CHECK_MESSAGE(ng_tensor_use(t, s, how, nullptr, &error) == NG_OK, error.text);
}

struct Managed : DLManagedTensorVersioned {
    int64_t count = 4;
    int     deleted = 0;
    explicit Managed(void* memory) : DLManagedTensorVersioned{}
    {
        major = 1, data = memory, device_type = 2, ndim = 1, code = 2, bits = 32, lanes = 1, shape = &count;
        deleter = [](DLManagedTensorVersioned* self) { static_cast<Managed*>(self)->deleted++; };
    }
};

}  // namespace

TEST_CASE("dlpack: whoever touches a tensor waits for what its producer has under way on s; the deleter comes after all of them")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx*    c = open_ctx();
    ng_stream  second = ng_ctx_stream(c, 1);
    ng_tensor *memory = four(c, 0), *x = four(c, 0), *y = four(c, 0);
    {
        Other   producer;
        Managed m(data_of(memory)), unread(data_of(memory));
        producer.fill(m.data, 7);
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_from_dlpack(c, &m, producer.stream, &t, nullptr) == NG_OK);
        CHECK(ng_tensor_copy(x, t, nullptr, nullptr) == NG_OK);
        CHECK(first_of(x) == 7);
        CHECK(ng_tensor_copy(y, t, second, nullptr) == NG_OK);
        ng_tensor_release(t);
        CHECK(ng_ctx_poll(c, 0, nullptr) == NG_NOT_READY);
        CHECK(m.deleted == 0);                       // the second stream reads it
        CHECK(ng_ctx_sync(c, second, FOREVER, nullptr) == NG_OK);
        CHECK(m.deleted == 1);
        CHECK(first_of(y) == 7);
        // One that nobody reads is its producer's until that is done.
        producer.fill(unread.data, 8);
        REQUIRE(ng_tensor_from_dlpack(c, &unread, producer.stream, &t, nullptr) == NG_OK);
        ng_tensor_release(t);
        CHECK(ng_ctx_poll(c, 0, nullptr) == NG_NOT_READY);
        CHECK(unread.deleted == 0);
        producer.finish();
        CHECK(ng_ctx_poll(c, 0, nullptr) == NG_OK);
        CHECK(unread.deleted == 1);
        CHECK(ng_ctx_sync(c, producer.stream, FOREVER, nullptr) == NG_OK);
    }
    for (ng_tensor* t : {memory, x, y}) ng_tensor_release(t);
    shut(c);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}

TEST_CASE("ng_tensor_use: foreign work waits for ours before it and ours behind it for the foreign, reads for no reads")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx*    c = open_ctx();
    ng_tensor *x = four(c, 1), *y = four(c, 0), *z = four(c, 0);
    {
        Other others, more;
        // A read between two of our writes sees the first alone.
        CHECK(ng_tensor_fill(x, nullptr, 2, nullptr) == NG_OK);
        use(x, others.stream, NG_USE_READ);
        others.copy(data_of(z), data_of(x));
        use(x, others.stream, NG_USE_DONE);
        CHECK(ng_tensor_fill(x, nullptr, 3, nullptr) == NG_OK);
        CHECK(first_of(x) == 3);
        CHECK(first_of(z) == 2);
        // A write between our write and our read.
        CHECK(ng_tensor_fill(x, nullptr, 4, nullptr) == NG_OK);
        use(x, others.stream, NG_USE_READ | NG_USE_WRITE);
        others.fill(data_of(x), 5);
        use(x, others.stream, NG_USE_DONE);
        CHECK(ng_tensor_copy(y, x, nullptr, nullptr) == NG_OK);
        CHECK(first_of(y) == 5);
        // What was only said when it was queued.
        others.fill(data_of(x), 6);
        use(x, others.stream, NG_USE_DONE);
        CHECK(ng_tensor_copy(y, x, nullptr, nullptr) == NG_OK);
        CHECK(first_of(y) == 6);
        // Readers on three streams wait for the writer, once each, and not for each other.
        CHECK(ng_ctx_sync(c, nullptr, FOREVER, nullptr) == NG_OK);
        CHECK(ng_tensor_fill(x, nullptr, 7, nullptr) == NG_OK);
        const uint64_t waits = driver.calls_of("cuStreamWaitEvent");
        for (const CUstream s : {others.stream, more.stream, others.stream, more.stream}) use(x, s, NG_USE_READ);
        CHECK(driver.calls_of("cuStreamWaitEvent") == waits + 2);
        others.copy(data_of(y), data_of(x)), more.copy(data_of(z), data_of(x));
        others.finish(), more.finish();
        for (const CUstream s : {others.stream, more.stream}) use(x, s, NG_USE_DONE);
        CHECK(first_of(y) == 7);
        CHECK(first_of(z) == 7);
        for (const CUstream s : {others.stream, more.stream}) CHECK(ng_ctx_sync(c, s, FOREVER, nullptr) == NG_OK);
    }
    for (ng_tensor* t : {x, y, z}) ng_tensor_release(t);
    shut(c);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}

TEST_CASE("S5 on a device: done comes when foreign work on the memory is over, as far as it was said")
{
    const fake::Control& driver = fresh();
    driver.defer(true);
    ng_ctx*    c = open_ctx();
    ng_tensor* memory = four(c, 0);
    {
        Other others;
        int   done = 0;
        for (const bool is_read : {true, false}) {
            ng_tensor*     t = nullptr;
            const ng_shape d = vector_of(4);
            done = 0;
            REQUIRE(ng_tensor_wrap(c, &d, data_of(memory), 16, [](void* user) { ++*static_cast<int*>(user); }, &done, &t, nullptr) == NG_OK);
            use(t, others.stream, is_read ? NG_USE_READ : NG_USE_WRITE);
            others.fill(data_of(memory), 5);
            use(t, others.stream, NG_USE_DONE);
            ng_tensor_release(t);
            CHECK(ng_ctx_poll(c, 0, nullptr) == NG_NOT_READY);
            CHECK(done == 0);
            others.finish();
            CHECK(ng_ctx_poll(c, 0, nullptr) == NG_OK);
            CHECK(done == 1);
        }
        CHECK(ng_ctx_sync(c, others.stream, FOREVER, nullptr) == NG_OK);
    }
    ng_tensor_release(memory);
    shut(c);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}

TEST_CASE("two contexts of one device: a copy is queued, behind who wrote and before who writes what it reads, and that stays until then")
{
    const fake::Control& driver = emulated_device();
    driver.defer(true);
    ng_ctx *  a = open_ctx(), *b = open_ctx();
    ng_stream other = ng_ctx_stream(a, 1), s = ng_ctx_stream(b, 1);
    ng_tensor *memory = four(a, 0), *x = nullptr, *y = four(b, 0), *z = four(b, 0);
    const ng_shape d = vector_of(4);
    int done = 0;
    REQUIRE(ng_tensor_wrap(a, &d, data_of(memory), 16, [](void* user) { ++*static_cast<int*>(user); }, &done, &x, nullptr) == NG_OK);
    const auto waits = [&] { return driver.calls_of("cuStreamSynchronize") + driver.calls_of("cuEventSynchronize") + driver.calls_of("cuStreamQuery") + driver.calls_of("cuEventQuery"); };
    const uint64_t before = waits();
    CHECK(ng_tensor_fill(x, other, 3, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(y, x, s, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(x, nullptr, 8, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(z, y, nullptr, nullptr) == NG_OK);
    CHECK(waits() == before);
    CHECK(driver.counts().queued > 0);
    CHECK(first_of(x) == 8);
    CHECK(first_of(z) == 3);
    CHECK(first_of(y) == 3);
    CHECK(ng_ctx_sync(a, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(y, x, s, nullptr) == NG_OK);
    ng_tensor_release(x);
    CHECK(ng_ctx_poll(a, 0, nullptr) == NG_NOT_READY);
    CHECK(done == 0);                                // b's stream reads it
    CHECK(ng_ctx_sync(b, s, FOREVER, nullptr) == NG_OK);
    CHECK(ng_ctx_sync(a, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(done == 1);
    CHECK(first_of(y) == 8);
    for (ng_tensor* t : {memory, y, z}) ng_tensor_release(t);
    shut(a), shut(b);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}

TEST_CASE("two contexts of one device: of memory that both know a copy is as if it were read first")
{
    const fake::Control& driver = emulated_device();
    ng_ctx *  a = open_ctx(NG_CTX_NO_JIT), *b = open_ctx(NG_CTX_NO_JIT);
    ng_tensor *memory = make(a, 5), *head = nullptr, *tail = nullptr;
    const float in[5] = {1, 2, 3, 4, 5};
    float       out[5] = {};
    CHECK(ng_tensor_put(memory, in, sizeof in, nullptr) == NG_OK);
    ng_shape d = vector_of(4, NG_STRIDED);
    char* const data = static_cast<char*>(data_of(memory));
    d.strides[0] = 1;
    REQUIRE(ng_tensor_wrap(a, &d, data, 16, nullptr, nullptr, &head, nullptr) == NG_OK);
    d.strides[0] = -1;
    REQUIRE(ng_tensor_wrap(b, &d, data + 4, 16, nullptr, nullptr, &tail, nullptr) == NG_OK);
    CHECK(ng_tensor_copy(tail, head, nullptr, nullptr) == NG_OK);
    CHECK(ng_ctx_sync(b, nullptr, FOREVER, nullptr) == NG_OK);
    CHECK(ng_tensor_get(memory, out, sizeof out, nullptr) == NG_OK);
    CHECK(std::vector<float>(out, out + 5) == std::vector<float>{1, 4, 3, 2, 1});
    for (ng_tensor* t : {head, tail, memory}) ng_tensor_release(t);
    shut(a), shut(b);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}

TEST_CASE("two contexts of one device: threads that copy to and fro at once all come to an end")
{
    const fake::Control& driver = fresh();
    ng_ctx *   a = open_ctx(), *b = open_ctx();
    ng_tensor *x = four(a, 1), *y = four(b, 1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([=] {
            for (int turn = 0; turn < 300; turn++) CHECK(ng_tensor_copy(i % 2 ? x : y, i % 2 ? y : x, nullptr, nullptr) == NG_OK);
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(first_of(x) == 1);
    CHECK(first_of(y) == 1);
    ng_tensor_release(x), ng_tensor_release(y);
    shut(a), shut(b);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}

TEST_CASE("T3: memory that is lent beyond the end of its context comes back to the device")
{
    const fake::Control& device = emulated_device();
    const Other holder;                                  // as PyTorch does: the device's context lives on
    const uint64_t before = device.counts().device_blocks;
    ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
    ng_tensor* t = make(c, 1000);
    DLManagedTensorVersioned* lent = nullptr;
    REQUIRE(ng_tensor_to_dlpack(t, nullptr, &lent, nullptr) == NG_OK);
    ng_tensor_release(t);
    CHECK(ng_ctx_close(c, FOREVER, nullptr) == NG_OK);
    ng_ctx_release(c);
    CHECK(device.counts().device_blocks == before + 1);
    lent->deleter(lent);
    shut(open_ctx(NG_CTX_NO_JIT));
    CHECK(device.counts().device_blocks == before);
}
