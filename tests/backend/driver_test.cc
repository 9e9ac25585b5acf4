// The table of the CUDA driver's functions: found once, complete or refused in a sentence, and every fault an Error.
#include "tests/backend/stand_in.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

using namespace ng;
using namespace ng::cuda;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

template <class... A>
void call_with_zeros(const DriverCall<CUresult(A...)>& call) { call(A{}...); }

template <class Call>
std::string name_of(const Call& call) { return call.name(); }

}  // namespace

// Before anything else asks for the process's driver, many ask at once.
TEST_CASE("driver: it is found once, also by threads that ask at the same time")
{
    std::vector<const Driver*> seen(16);
    std::vector<std::thread> threads;
    const char* path = stand_in_path();
    for (size_t i = 0; i < seen.size(); i++) threads.emplace_back([&, i] { seen[i] = Driver::find(path); });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(seen[0] != nullptr);
    CHECK(std::count(seen.begin(), seen.end(), seen[0]) == 16);
    CHECK(Driver::find("/there/is/no/such/driver.so") == seen[0]);
    CHECK(&Driver::need("test") == seen[0]);
    CHECK(seen[0]->version() == 13000);
}

TEST_CASE("driver: a machine without one has a reason in one sentence, and nothing else happens")
{
    std::string reason;
    CHECK(Driver::load("libng_no_such_driver.so.1", reason) == nullptr);
    CHECK(holds(reason, "there is no CUDA driver"));
    CHECK(holds(reason, "libng_no_such_driver.so.1"));
}

TEST_CASE("driver: one that lacks a function is too old, and the sentence names the first")
{
    (void)fresh_driver();
    std::string reason;
    CHECK(Driver::load("libm.so.6", reason) == nullptr);
    CHECK(reason == "the CUDA driver is older than CUDA 12.0: libm.so.6 has no cuGetProcAddress_v2");
#define DRIVER(name, version, parameters)                                           \
    stand_in().hide(#name);                                                         \
    CHECK(Driver::load(stand_in_path(), reason) == nullptr);                        \
    CHECK(reason == "the CUDA driver is older than CUDA 12.0: it has no " #name);
#include "lib/backend/cuda/driver.def"
#undef DRIVER
    stand_in().hide(nullptr);
    CHECK(Driver::load(stand_in_path(), reason) != nullptr);
}

TEST_CASE("driver: one that does not start says so")
{
    (void)fresh_driver();
    std::string reason;
    for (const char* name : {"cuInit", "cuDriverGetVersion"}) {
        stand_in().fail_function(name, 1, CUDA_ERROR_NO_DEVICE);
        CHECK(Driver::load(stand_in_path(), reason) == nullptr);
        CHECK(reason == text("the CUDA driver does not start: ", name, ": the stand-in was told to say no (CUDA_ERROR_NO_DEVICE)"));
    }
    stand_in().set_devices(0);
    CHECK(Driver::load(stand_in_path(), reason) == nullptr);
    CHECK(holds(reason, "CUDA_ERROR_NO_DEVICE"));
    stand_in().reset();
}

TEST_CASE("driver: any function that fails is an Error with its name, the driver's words and code")
{
    const Driver& driver = fresh_driver();
    int count = 0;
#define DRIVER(name, version, parameters)                                                                                     \
    {                                                                                                                         \
        stand_in().fail_function(#name, 1, CUDA_ERROR_LAUNCH_FAILED);                                                         \
        const Error error = thrown_by([&] { call_with_zeros(driver.name); });                                                 \
        CHECK(error.status == NG_E_LOST);                                                                                     \
        CHECK(error.text == #name ": the stand-in was told to say no (CUDA_ERROR_LAUNCH_FAILED)");                            \
        CHECK(error.native == CUDA_ERROR_LAUNCH_FAILED);                                                                      \
        CHECK(name_of(driver.name) == #name);                                                                                 \
        CHECK(std::string(stand_in().failed()) == #name);                                                                     \
        count++;                                                                                                              \
    }
#include "lib/backend/cuda/driver.def"
#undef DRIVER
    CHECK(count > 70);
    stand_in().reset();
}

TEST_CASE("driver: a fault has a sentence even where the driver cannot describe it")
{
    const Driver& driver = fresh_driver();
    CHECK(driver.describe(CUDA_ERROR_OUT_OF_MEMORY) == "the stand-in was told to say no (CUDA_ERROR_OUT_OF_MEMORY)");
    CHECK(driver.describe(12345) == "CUDA error 12345");
    stand_in().fail_function("cuGetErrorName", 1, CUDA_ERROR_LAUNCH_FAILED);
    CHECK(driver.describe(CUDA_ERROR_OUT_OF_MEMORY) == "CUDA error 2");
    stand_in().fail_function("cuGetErrorString", 1, CUDA_ERROR_LAUNCH_FAILED);
    CHECK(driver.describe(CUDA_ERROR_OUT_OF_MEMORY) == "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_CASE("driver: what a code means to a caller")
{
    const struct { CUresult code; ng_status status; } rows[] = {
        {CUDA_SUCCESS, NG_OK},
        {CUDA_ERROR_NOT_READY, NG_NOT_READY},
        {CUDA_ERROR_OUT_OF_MEMORY, NG_E_DEVMEM},
        {CUDA_ERROR_NOT_SUPPORTED, NG_E_UNSUPPORTED},
        {CUDA_ERROR_ILLEGAL_ADDRESS, NG_E_LOST},
        {CUDA_ERROR_CONTEXT_IS_DESTROYED, NG_E_LOST},
        {CUDA_ERROR_INVALID_CONTEXT, NG_E_LOST},
        {CUDA_ERROR_DEINITIALIZED, NG_E_LOST},
        {CUDA_ERROR_INVALID_VALUE, NG_E_DEVICE},
        {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, NG_E_DEVICE},    // of one launch; the context goes on
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, NG_E_DEVICE},
        {999, NG_E_DEVICE},
    };
    for (const auto& row : rows) {
        INFO(row.code);
        CHECK(status_of(row.code) == row.status);
    }
}

TEST_CASE("driver: in the child of a fork it is lost, and not one of its functions is called")
{
    const Driver& driver = fresh_driver();
    const uint64_t calls = stand_in().counts().calls;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        // Bits of what was wrong: doctest's own report is the parent's.
        int wrong = 0;
        wrong |= driver.is_ours() ? 1 : 0;
        wrong |= Driver::find() ? 2 : 0;
        const Error error = thrown_by([] { (void)Driver::need("ng_ctx_create"); });
        wrong |= error.status != NG_E_LOST || !holds(error.text, "ng_ctx_create: CUDA was in use before this process was forked") ? 4 : 0;
        int count = -1;
        wrong |= driver.cuDeviceGetCount.quiet(&count) != CUDA_ERROR_NOT_INITIALIZED || count != -1 ? 8 : 0;
        wrong |= thrown_by([&] { driver.cuCtxSynchronize(); }).status != NG_E_LOST ? 16 : 0;
        wrong |= stand_in().counts().calls != calls ? 32 : 0;
        _exit(wrong);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(driver.is_ours());
    CHECK(Driver::find() == &driver);
}

TEST_CASE("driver: a table of the child's own is refused where the host itself had started CUDA before the fork, else it works")
{
    (void)fresh_driver();
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        std::string reason;
        int wrong = Driver::load(stand_in_path(), reason) ? 1 : 0;
        wrong |= !holds(reason, "cuInit: ") ? 2 : 0;
        stand_in().forget_init();
        wrong |= !Driver::load(stand_in_path(), reason) ? 4 : 0;
        _exit(wrong);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("stand-in: faults can be ordered by its environment, for programs that know nothing of it")
{
    const Driver& driver = fresh_driver();
    const auto start_with = [&](const char* faults) {
        stand_in().forget_init();
        setenv("NG_FAKE_FAIL", faults, 1);
        driver.cuInit(0);
        unsetenv("NG_FAKE_FAIL");
    };
    int count = 0;
    start_with("cuDeviceGetCount:2:2");
    CHECK(driver.cuDeviceGetCount.quiet(&count) == CUDA_SUCCESS);
    CHECK(driver.cuDeviceGetCount.quiet(&count) == CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(driver.cuDeviceGetCount.quiet(&count) == CUDA_SUCCESS);
    start_with("3:999");
    for (const CUresult wanted : {0, 0, 999, 0}) CHECK(driver.cuDeviceGetCount.quiet(&count) == wanted);
    stand_in().reset();
}
