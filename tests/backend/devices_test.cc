// Two devices at once: contexts, programs and copies of each, from one thread and from two, on GPUs or on the stand-in's pair.
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

#include <atomic>
#include <cmath>
#include <cstdio>
#include <thread>

using namespace ng;
using namespace ng::cuda;

namespace {

constexpr int64_t N = 1 << 14;
const bool IS_STAND_IN = std::getenv("NG_FAKE_DRIVER") != nullptr;

const Driver& driver_of_test()
{
    if (IS_STAND_IN) (void)emulated_device();
    return Driver::need("a test", IS_STAND_IN ? stand_in_path() : DRIVER_LIBRARY);
}

ng_ctx* opened(int32_t device)
{
    ng_ctx_desc d = description(IS_STAND_IN ? NG_CTX_NO_JIT : 0);
    d.device = device;
    ng_ctx* c = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_ctx_create(&d, &c, &error) == NG_OK, error.text);
    ng_device_info info{};
    info.size = sizeof info;
    REQUIRE(ng_ctx_info(c, &info) == NG_OK);
    CHECK(info.ordinal == device);
    return c;
}

// A device with two vectors, and programs of every kind of kernel over them.
struct Side {
    ng_ctx*    c;
    ng_tensor* t[3];
    std::vector<ng_prog*> programs;

    explicit Side(int32_t device) : c(opened(device)), t{make(c, N), make(c, N), make(c, N)}
    {
        for (const char* words : {"x * 0.75 + y", "softmax(reshape(x + y, [32, 512]), 1)[3, 5] + x", "scan(x * y, 0, sum)", "argsort(x, 0) * 0.5 + y",
                                  "reshape(f32(f16(relu(f16(reshape(x, [128, 128])) @ f16(reshape(y, [128, 128])) + 0.25))), [16384])"})
            programs.push_back(program_of(c, words, N, false));
        for (ng_prog* p : programs) CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
        std::vector<float> x(N), y(N);
        for (size_t i = 0; i < N; i++) x[i] = float((i * 37) % 101) / 64 - 0.75f, y[i] = float((i * 53) % 97) / 128 - 0.375f;
        CHECK(ng_tensor_put(t[0], x.data(), N * 4, nullptr) == NG_OK);
        CHECK(ng_tensor_put(t[1], y.data(), N * 4, nullptr) == NG_OK);
    }
    ~Side()
    {
        for (ng_prog* p : programs) ng_prog_release(p);
        for (ng_tensor* x : t) ng_tensor_release(x);
        shut(c);
    }
    Side(const Side&) = delete;
    Side& operator=(const Side&) = delete;

    std::vector<float> values(size_t program, ng_stream stream = nullptr) const
    {
        std::vector<float> all(N);
        ng_error error{};
        const ng_status status = run(programs[program], stream, t, t[2], &error);
        CHECK_MESSAGE(status >= 0, error.text);
        CHECK(ng_tensor_get(t[2], all.data(), N * 4, nullptr) == NG_OK);
        return all;
    }
};

bool has_two()
{
    (void)driver_of_test();
    int devices = 0;
    driver_of_test().cuDeviceGetCount(&devices);
    if (devices < 2) std::printf("1 skipped: this machine has %d of two devices\n", devices);
    return devices >= 2;
}

}  // namespace

TEST_CASE("devices: two contexts compute the same, and what one computed goes to the other")
{
    if (!has_two()) return;
    const Side a(0), b(1);
    for (size_t p = 0; p < a.programs.size(); p++) {
        INFO("program ", p);
        const std::vector<float> first = a.values(p), second = b.values(p);
        double most = 0;
        for (size_t i = 0; i < N; i++) most = std::max(most, std::fabs(double(first[i]) - double(second[i])) / std::max(1.0, std::fabs(double(first[i]))));
        // Sums of devices that differ may be in another order.
        CHECK(most < 1e-3);
        if (p == 0) CHECK(first == second);
        // There and back.
        ng_error error{};
        CHECK_MESSAGE(ng_tensor_copy(b.t[2], a.t[2], nullptr, &error) == NG_OK, error.text);
        CHECK(ng_tensor_fill(a.t[2], nullptr, 7, nullptr) == NG_OK);
        CHECK_MESSAGE(ng_tensor_copy(a.t[2], b.t[2], nullptr, &error) == NG_OK, error.text);
        std::vector<float> back(N);
        CHECK(ng_tensor_get(a.t[2], back.data(), N * 4, nullptr) == NG_OK);
        CHECK(back == first);
    }
}

TEST_CASE("devices: a tensor of one is no argument on the other")
{
    if (!has_two()) return;
    const Side a(0), b(1);
    ng_tensor* const args[] = {a.t[0], b.t[1]};
    ng_error error{};
    CHECK(run(a.programs[0], nullptr, args, a.t[2], &error) == NG_E_INVALID);
    CHECK(std::string(error.text).size() > 20);
}

TEST_CASE("devices: two threads with one each, and a third that uses both, get what one gets alone")
{
    if (!has_two()) return;
    const Driver& driver = driver_of_test();
    const Side a(0), b(1), both[] = {Side(0), Side(1)};
    std::vector<std::vector<float>> of_a, of_b;
    for (size_t p = 0; p < a.programs.size(); p++) of_a.push_back(a.values(p)), of_b.push_back(b.values(p));
    std::atomic<int> wrong{0};
    const int turns = IS_STAND_IN ? 2 : 40;
    const auto body = [&](const Side& one, const Side& other) {
        CUcontext before = nullptr, behind = nullptr;
        driver.cuCtxGetCurrent(&before);
        for (int i = 0; i < turns; i++)
            for (size_t p = 0; p < a.programs.size(); p++)
                for (const Side* side : {&one, &other}) {
                    const bool is_first = side == &a || side == &both[0];
                    wrong += side->values(p) != (is_first ? of_a : of_b)[p];
                }
        driver.cuCtxGetCurrent(&behind);
        wrong += before != behind;
    };
    std::thread threads[] = {std::thread(body, std::cref(a), std::cref(a)), std::thread(body, std::cref(b), std::cref(b)), std::thread(body, std::cref(both[0]), std::cref(both[1]))};
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
}
