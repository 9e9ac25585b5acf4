// How often the CUDA backend compiles, and for whom: beside a compiler that only counts, on the stand-in of the driver.
#include "lib/backend/cuda/gemm.h"
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

#include <unistd.h>

#include <chrono>
#include <thread>

using namespace ng;

namespace {

uint64_t compiler_says(const char* function)
{
    void* library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const auto count = reinterpret_cast<uint64_t (*)()>(dlsym(library, function));
    const bool is_ours = count != nullptr;
    REQUIRE_MESSAGE(is_ours, "LD_LIBRARY_PATH should lead to the compiler that counts");
    return count();
}
uint64_t compiler_calls() { return compiler_says("ng_fake_compilations"); }

// Its value from an evaluation over x of n elements.
std::vector<float> evaluated(ng_ctx* c, const std::string& words, ng_tensor* x, int64_t n)
{
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* leaf = ng_leaf(s, x);
    ng_expr* e = ng_parse(s, words.c_str(), "x", &leaf, 1);
    ng_tensor* out = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_eval(c, nullptr, &e, &out, 1, &error) == NG_OK, error.text);
    std::vector<float> values(static_cast<size_t>(n));
    CHECK(ng_tensor_get(out, values.data(), values.size() * 4, nullptr) == NG_OK);
    ng_tensor_release(out);
    ng_scope_release(s);
    return values;
}

// The device is as one of Hopper's, whose products nobody runs.
void take_for_hopper()
{
    const fake::Control& driver = emulated_device();
    driver.set_compute(90);
    constexpr size_t ANY = 1;
    for (int image = 0; image < int(cuda::gemm::Image::count_); image++)
        for (const cuda::gemm::KernelFacts& k : cuda::gemm::kernels_of(cuda::gemm::Image(image))) driver.set_kernel(k.name, [](const fake::KernelLaunch&) {}, &ANY, 1);
}

void wait_for(ng_prog* p) { CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK); }

}  // namespace

TEST_CASE("P3: programs that differ in constants are one compilation, and ready at once after the first")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx();
    const uint64_t before = compiler_calls();
    ng_prog* first = program_of(c, "(x * 3.5 + y) * x - 7", 1200);
    wait_for(first);
    CHECK(stats(c).jit_compiles == 1);
    CHECK(compiler_calls() - before == 2);           // vectors and elements; more than 2^31 are not to be had
    ng_tensor* const t[] = {make(c, 100), make(c, 100), make(c, 100)};
    for (int i = 0; i < 8; i++) {
        ng_prog* p = program_of(c, text("(x * ", i + 2, ".25 + y) * x - ", i + 3), 1200);
        CHECK(run(p, nullptr, t, t[2]) == NG_OK);
        ng_prog_release(p);
    }
    CHECK(stats(c).jit_compiles == 1);
    CHECK(compiler_calls() - before == 2);
    ng_prog* other = program_of(c, "(x * 3.5 - y) * x", 1200);
    wait_for(other);
    CHECK(stats(c).jit_compiles == 2);
    CHECK(stats(c).interim_runs == 0);
    for (ng_tensor* x : t) ng_tensor_release(x);
    ng_prog_release(first), ng_prog_release(other);
    shut(c);
}

TEST_CASE("P1: a program that is ready is slow for no length, alignment or distance, and compiles for none")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx();
    ng_prog* p = program_of(c, "x - reshape(softmax(reshape(x * y, [1024, 1024]), 1), [1048576])", 1 << 20, false);
    ng_prog* q = program_of(c, "sum(x * y) + x * 0", 1 << 20);
    wait_for(p), wait_for(q);
    const uint64_t compiled = stats(c).jit_compiles, calls = compiler_calls();
    ng_tensor* const all[] = {make(c, (1 << 20) + 1), make(c, (1 << 20) + 1), make(c, (1 << 20) + 1)};
    ng_scope* s = ng_scope_create(c, 0);
    for (const int64_t n : {0, 1, 2, 7, 1023, 4096, 8191, 16384, 65537, 1 << 20})
        for (const int64_t start : {0, 1}) {
            ng_tensor* t[3];
            for (int i = 0; i < 3; i++) {
                ng_expr* part = ng_slice(ng_leaf(s, all[i]), 0, start, start + n, 1);
                ng_error error{};
                REQUIRE_MESSAGE(ng_tensor_view(part, &t[i], &error) == NG_OK, error.text);
            }
            INFO(n, " from ", start);
            CHECK(run(q, nullptr, t, t[2]) == NG_OK);
            if (n == 1 << 20) CHECK(run(p, nullptr, t, t[2]) == NG_OK);
            for (ng_tensor* x : t) ng_tensor_release(x);
        }
    ng_scope_release(s);
    CHECK(stats(c).jit_compiles == compiled);
    CHECK(compiler_calls() == calls);
    for (ng_tensor* x : all) ng_tensor_release(x);
    ng_prog_release(p), ng_prog_release(q);
    shut(c);
}

TEST_CASE("P3: threads that ask for one kernel at the same time are one compilation")
{
    (void)emulated_device();
    for (int turn = 0; turn < 20; turn++) {
        ng_ctx* c = open_ctx();
        const uint64_t before = compiler_calls();
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; i++)
            threads.emplace_back([c, i] {
                ng_prog* p = program_of(c, text("exp(x * ", i + 2, ".5) + y"), 1200);
                wait_for(p);
                ng_prog_release(p);
            });
        for (std::thread& thread : threads) thread.join();
        CHECK(compiler_calls() - before == 2);
        CHECK(stats(c).jit_compiles <= 2);           // one, but where each text was another program's turn
        shut(c);
    }
}

TEST_CASE("a program of lengths without bounds has all its texts, one with bounds those that it can meet")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx();
    const uint64_t before = compiler_calls();
    ng_prog* p = program_of(c, "x + y", int64_t(1) << 33);
    wait_for(p);
    CHECK(compiler_calls() - before == 4);
    CHECK(stats(c).jit_compiles == 1);
    ng_prog_release(p);
    shut(c);
}

TEST_CASE("the texts of a kernel are compiled at once, as many as there are threads for")
{
    (void)emulated_device();
    ng_ctx_desc d = description();
    d.jit_threads = 4;
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
    setenv("NG_FAKE_COMPILE_MS", "300", 1);
    ng_prog* p = program_of(c, "x * y + y", int64_t(1) << 33);
    wait_for(p);
    unsetenv("NG_FAKE_COMPILE_MS");
    CHECK(compiler_says("ng_fake_most_at_once") == 4);
    ng_prog_release(p);
    shut(c);
}

TEST_CASE("closing while a text is compiled leaves no code on the device, though its program lives on")
{
    const fake::Control& driver = emulated_device();
    setenv("NG_FAKE_COMPILE_MS", "200", 1);
    ng_ctx* c = open_ctx();
    ng_prog* p = program_of(c, "x * 2 + y", 64);
    const uint64_t before = driver.counts().modules;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK(ng_ctx_close(c, FOREVER, nullptr) == NG_OK);
    unsetenv("NG_FAKE_COMPILE_MS");
    CHECK(driver.counts().modules < before);             // what is shipped went with it
    const uint64_t after = driver.counts().modules;
    ng_prog_release(p), ng_ctx_release(c);
    shut(open_ctx(NG_CTX_NO_JIT));
    CHECK(driver.counts().modules == after);
    CHECK(after == 0);
}

namespace {

std::string explained(ng_prog* p)
{
    size_t bytes = 0;
    CHECK(ng_prog_explain(p, nullptr, &bytes, nullptr) == NG_OK);
    std::string all(bytes, ' ');
    CHECK(ng_prog_explain(p, all.data(), &bytes, nullptr) == NG_OK);
    return all;
}

}  // namespace

TEST_CASE("explain: which way a step runs, and of each text its class, key, size and registers")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx(NG_CTX_NO_THREADS);
    ng_prog* p = program_of(c, "x * 3 + sum(y)", 1200);
    const std::string early = explained(p);
    CHECK(holds(early, "\"tier\": \"interpreted\""));
    CHECK(holds(early, "\"state\": \"being compiled\""));
    wait_for(p);
    const std::string all = explained(p);
    CHECK(holds(all, "\"tier\": \"compiled\", \"bound\": \"memory\""));
    CHECK(holds(all, "{\"for\": \"rows held by"));
    CHECK(holds(all, "\"registers\": 32"));
    CHECK(holds(all, "extern \\\"C\\\" __global__"));
    ng_prog* q = program_of(c, "scan(x, 0, sum) + y", 1200);
    CHECK(holds(explained(q), "\"split\": \"b"));
    CHECK(holds(explained(q), "scan is a call of its own"));
    CHECK(holds(explained(q), "\"tier\": \"shipped\""));
    ng_prog_release(p), ng_prog_release(q);
    shut(c);
}

TEST_CASE("products of which no text has the folds in it compile what stands behind them, and no kernel for parts of folds")
{
    take_for_hopper();
    ng_ctx* c = open_ctx(NG_CTX_NO_THREADS);
    for (const int64_t n : {64, 128, 256, 512}) {
        ng_scope* s = ng_scope_create(c, 0);
        ng_shape d = vector_of(n);
        d.ndim = 2, d.dims[1] = n, d.dtype = NG_F16;
        ng_expr* const x[] = {ng_param(s, 0, &d), ng_param(s, 1, &d)};
        ng_expr* const outs[] = {ng_parse(s, "f16(x @ y)", "x,y", x, 2), ng_parse(s, "var(f16(x @ y), 1)", "x,y", x, 2)};
        const uint64_t before = compiler_calls();
        ng_prog* p = nullptr;
        REQUIRE(ng_compile(c, nullptr, outs, 2, &p, nullptr) == NG_OK);
        wait_for(p);
        const std::string all = explained(p);
        uint64_t texts = 0;
        for (size_t at = 0; (at = all.find("\"state\": \"compiled\"", at)) != all.npos; at++) texts++;
        CHECK(!holds(all, "which folds"));
        CHECK(texts > 0);
        CHECK(compiler_calls() - before == texts);
        ng_scope_release(s), ng_prog_release(p);
    }
    shut(c);
}

TEST_CASE("products of an unknown number of rows with what follows them have texts for many and for few, and are one compilation")
{
    take_for_hopper();
    ng_ctx* c = open_ctx(NG_CTX_NO_THREADS);
    constexpr int64_t MOST[] = {4096, 4}, DEPTH = 4096, COLUMNS = 1024;
    // Two lengths, too: their product is as many rows, in tensors whose strides are known when run.
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{4096}, {-1}, {-1, -2}, {-1, 8}})
        for (const char* words : {"f16(relu(x @ y + z))", "f16(x @ y)"}) {
            ng_scope* s = ng_scope_create(c, 0);
            ng_expr* x[3];
            for (int i = 0; i < 3; i++) {
                std::vector<int64_t> dims = {i == 2 ? 1 : DEPTH, COLUMNS};
                if (i == 0) dims = rows, dims.push_back(DEPTH);
                ng_shape d = vector_of(1);
                d.ndim = uint32_t(dims.size()), d.dtype = NG_F16;
                std::ranges::copy(dims, d.dims);
                x[i] = ng_param(s, uint32_t(i), &d);
            }
            ng_expr* out = ng_parse(s, words, "x,y,z", x, 3);
            ng_compile_desc desc{};
            desc.size = sizeof desc, desc.length_max = MOST, desc.nlength = rows[0] < 0 ? 2 : 0;
            const uint64_t compiled = stats(c).jit_compiles;
            ng_prog* p = nullptr;
            REQUIRE(ng_compile(c, &desc, &out, 1, &p, nullptr) == NG_OK);
            wait_for(p);
            const bool has_epilogue = words[4] == 'r', has_two = has_epilogue && rows[0] < 0;
            INFO(words << ", rows " << rows[0] << ' ' << rows.back());
            const std::string all = explained(p);
            CHECK(holds(all, "\"product and epilogue\"") == has_epilogue);
            CHECK(holds(all, "\"product and epilogue, for ") == has_two);
            CHECK(stats(c).jit_compiles - compiled <= 2);            // the step behind the product is one as well
            ng_scope_release(s), ng_prog_release(p);
        }
    shut(c);
}

TEST_CASE("explain: what bounds a step is the longer of its bytes and its instructions, at what this device's clocks allow")
{
    const fake::Control& driver = emulated_device();
    const char* const gelu = "0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x * x * x))) * 1.1 + 0.3";
    const auto bound_of = [&](const char* words, ng_dtype type) {
        ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
        ng_scope* s = ng_scope_create(c, 0);
        ng_shape d = vector_of(1 << 20);
        d.dtype = type;
        ng_expr* const x = ng_param(s, 0, &d);
        ng_expr* e = ng_cast(ng_parse(s, words, "x", &x, 1), type);
        ng_prog* p = nullptr;
        REQUIRE(ng_compile(c, nullptr, &e, 1, &p, nullptr) == NG_OK);
        const std::string all = explained(p);
        ng_scope_release(s), ng_prog_release(p);
        shut(c);
        const size_t at = all.find("\"bound\": ");
        REQUIRE(at != all.npos);
        return all.substr(at + 9, all.find('}', at) - at - 9);
    };
    // An H200's, where the driver does not tell: 7 instructions a byte.
    CHECK(bound_of(gelu, NG_F16).starts_with("\"arithmetic\""));
    CHECK(bound_of(gelu, NG_F32).starts_with("\"memory\""));
    CHECK(bound_of("x / 3 + sin(x) + cos(x) + exp(x)", NG_F32).starts_with("\"arithmetic\""));
    CHECK(bound_of("x * 3 + 1", NG_F16).starts_with("\"memory\""));
    driver.set_clocks(1000000, 1000000, 64);         // 4 multiprocessors: 512 000 instructions by 16 000 bytes a microsecond
    CHECK(bound_of(gelu, NG_F16).starts_with("\"memory\", \"memory_us\": 262.144,"));       // 4 MiB
    driver.set_clocks(100000, 1000000, 0);           // one is missing
    CHECK(bound_of(gelu, NG_F16).starts_with("\"arithmetic\""));
}

TEST_CASE("explain: shipped kernels are there by their names, with their registers, and said to be shipped")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx(NG_CTX_NO_JIT);
    for (const auto& [words, name] : {std::pair{"scan(x, 0, sum) + y", "basic_scan"}, {"reshape(reshape(x, [16, 64]) @ reshape(y, [64, 16]), [256]) + 1", "mma_"}, {"x * y", "interpret"}}) {
        INFO(words);
        ng_prog* p = program_of(c, words, 1024, false);
        const std::string all = explained(p);
        const size_t at = all.find(text("{\"for\": \"", name));
        REQUIRE(at != all.npos);
        const std::string row = all.substr(at, all.find('}', at) - at);
        CHECK(holds(row, "\"state\": \"shipped\""));
        CHECK(holds(row, "\"registers\": 32"));
        ng_prog_release(p);
    }
    shut(c);
}

TEST_CASE("evaluations: a new expression compiles nothing, one that comes often is compiled beside, once for all constants")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx();
    ng_tensor* x = make(c, 64);
    CHECK(ng_tensor_fill(x, nullptr, 2, nullptr) == NG_OK);
    for (int i = 0; i < 10; i++) CHECK(evaluated(c, text("x * ", i + 2, ".5 + ", i + 1), x, 64) == std::vector<float>(64, float(2 * (i + 2.5) + i + 1)));
    CHECK(stats(c).jit_compiles == 0);
    for (int i = 0; i < 600; i++) (void)evaluated(c, text("x * ", i + 12, ".5 + ", i + 11), x, 64);
    CHECK(stats(c).jit_compiles == 0);               // small, and new each time
    for (int i = 0; i < 500; i++) (void)evaluated(c, text("x * ", i % 5 + 2, ".25 + ", i % 7), x, 64);
    for (int i = 0; i < 500 && !stats(c).jit_compiles; i++) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    for (int i = 0; i < 500; i++) (void)evaluated(c, text("x * ", i % 5 + 12, ".25 + ", i % 7), x, 64);
    CHECK(stats(c).jit_compiles == 1);
    ng_tensor_release(x);
    shut(c);
}

TEST_CASE("evaluations: ten thousand of changing constants and sizes are three compilations at most")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx();
    for (int i = 0; i < 10000; i++) {
        const int64_t n = 1 + i * 37 % 50;
        ng_tensor* x = make(c, n);
        (void)evaluated(c, text("x * ", i % 97 + 2, ".5 - sqrt(abs(x) + ", i % 2 + 1, ")"), x, n);
        ng_tensor_release(x);
    }
    CHECK(stats(c).jit_compiles <= 3);
    shut(c);
}

TEST_CASE("evaluations: nothing is compiled under NG_CTX_NO_JIT, and no sum of floats under NG_CTX_DETERMINISTIC")
{
    (void)emulated_device();
    const uint64_t before = compiler_calls();
    for (const uint32_t flags : {uint32_t(NG_CTX_NO_JIT), uint32_t(NG_CTX_DETERMINISTIC)}) {
        ng_ctx* c = open_ctx(flags);
        ng_tensor* x = make(c, 64);
        CHECK(ng_tensor_fill(x, nullptr, 2, nullptr) == NG_OK);
        for (int i = 0; i < 600; i++) CHECK(evaluated(c, "x + sum(x)", x, 64)[0] == 130);
        CHECK(stats(c).jit_compiles == 0);
        ng_tensor_release(x);
        shut(c);
    }
    CHECK(compiler_calls() == before);
}

TEST_CASE("evaluations: under NG_CTX_NO_THREADS what comes often is compiled in ng_ctx_poll alone")
{
    (void)emulated_device();
    ng_ctx* c = open_ctx(NG_CTX_NO_THREADS);
    ng_tensor* x = make(c, 64);
    CHECK(ng_tensor_fill(x, nullptr, 2, nullptr) == NG_OK);
    for (int i = 0; i < 600; i++) CHECK(evaluated(c, "x * 1.5 + 1", x, 64)[7] == 4);
    CHECK(stats(c).jit_compiles == 0);
    CHECK(ng_ctx_poll(c, FOREVER, nullptr) == NG_OK);
    CHECK(stats(c).jit_compiles == 1);
    ng_tensor_release(x);
    shut(c);
}

TEST_CASE("a process that ends while a thread compiles waits for it, and the compiler's data stays until then")
{
    if (std::getenv("NG_FAKE_COMPILE_MS")) {         // as that process
        (void)emulated_device();
        (void)program_of(open_ctx(), "x * 3 - y * 5", 64);
        return std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    char path[4096] = {};
    REQUIRE(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    const std::string child = text("NG_FAKE_COMPILE_MS=400 '", path, "' --test-case='a process that ends*' > /dev/null");
    const auto start = std::chrono::steady_clock::now();
    CHECK(std::system(child.c_str()) == 0);
    CHECK(std::chrono::steady_clock::now() - start > std::chrono::milliseconds(350));
}
