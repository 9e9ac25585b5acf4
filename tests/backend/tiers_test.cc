// What programs run by until their texts are compiled, the change to these under way, and what another context finds of them on disk.
#include "tests/backend/cuda_host.h"
#include "tests/backend/emulated_device.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <thread>

using namespace ng;

namespace {

uint64_t compiler_calls()
{
    void* library = dlopen("libnvrtc.so.13", RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const auto count = reinterpret_cast<uint64_t (*)()>(dlsym(library, "ng_fake_compilations"));
    const bool is_ours = count != nullptr;
    REQUIRE_MESSAGE(is_ours, "LD_LIBRARY_PATH should lead to the compiler that counts");
    return count();
}

// The compiler takes so long from here on.
struct SlowCompiler {
    explicit SlowCompiler(int ms) { setenv("NG_FAKE_COMPILE_MS", std::to_string(ms).c_str(), 1); }
    ~SlowCompiler() { unsetenv("NG_FAKE_COMPILE_MS"); }
};

ng_prog* compiled(ng_ctx* c, ng_expr* e)
{
    ng_compile_desc desc{};
    desc.size = sizeof desc;
    ng_prog* p = nullptr;
    ng_error error{};
    REQUIRE_MESSAGE(ng_compile(c, &desc, &e, 1, &p, &error) == NG_OK, error.text);
    return p;
}
ng_shape doubles(int64_t n)
{
    ng_shape d = vector_of(n);
    d.dtype = NG_F64;
    return d;
}

constexpr int     LIVE = 70;                         // doubles: more than slots of any device's shared memory
constexpr int64_t N = 1000;

// Of x [N + LIVE], each of whose windows is read twice, the first one last.
ng_expr* many_live(ng_scope* s, ng_expr* x)
{
    std::vector<ng_expr*> window;
    for (int k = 0; k < LIVE; k++) window.push_back(ng_slice(x, 0, k, N + k, 1));
    ng_expr* all = ng_const(s, NG_F64, 0.5);
    for (size_t k = 0; k < LIVE; k++) all = ng_add(ng_mul(all, window[k]), ng_abs(window[LIVE - 1 - k]));
    return all;
}
std::vector<double> many_live(const std::vector<double>& x)
{
    std::vector<double> out;
    for (size_t i = 0; i < N; i++) {
        double all = 0.5;
        for (size_t k = 0; k < LIVE; k++) {
            const double product = all * x[i + k];
            all = product + std::abs(x[i + LIVE - 1 - k]);
        }
        out.push_back(all);
    }
    return out;
}

ng_tensor* tensor_of(ng_ctx* c, const std::vector<double>& values)
{
    const ng_shape d = doubles(int64_t(values.size()));
    ng_tensor* t = nullptr;
    REQUIRE(ng_tensor_create(c, &d, &t, nullptr) == NG_OK);
    CHECK(ng_tensor_put(t, values.data(), values.size() * 8, nullptr) == NG_OK);
    return t;
}
std::vector<double> values_of(ng_tensor* t, size_t count)
{
    std::vector<double> values(count);
    CHECK(ng_tensor_get(t, values.data(), count * 8, nullptr) == NG_OK);
    return values;
}
std::vector<double> some_numbers(size_t count)
{
    std::vector<double> x;
    for (size_t i = 0; i < count; i++) x.push_back(std::sin(double(i)) * 0.9);
    return x;
}
ng_status run_of_one(ng_prog* p, ng_tensor* x, ng_tensor* out, ng_error* error = nullptr)
{
    ng_run r{};
    r.size = sizeof r, r.nargs = 1, r.nout = 1, r.args = &x, r.out = &out;
    return ng_prog_run(p, nullptr, &r, error);
}

}  // namespace

TEST_CASE("P1, P2: a kernel of more live values than the interpreter has slots runs at once, and no run waits for the compiler")
{
    (void)emulated_device();
    const SlowCompiler slow(3000);
    const std::vector<double> x = some_numbers(N + LIVE);
    for (const uint32_t flags : {uint32_t(NG_CTX_NO_THREADS), uint32_t(0)}) {
        ng_ctx*   c = open_ctx(flags);
        ng_scope* s = ng_scope_create(c, 0);
        const ng_shape d = doubles(N + LIVE);
        const uint64_t before = compiler_calls();
        ng_prog* p = compiled(c, many_live(s, ng_param(s, 0, &d)));
        ng_prog_info info{};
        info.size = sizeof info;
        CHECK(ng_prog_get_info(p, &info, nullptr) == NG_OK);
        CHECK(info.kernels == 1);                    // nothing was cut for it
        ng_tensor *in = tensor_of(c, x), *out = tensor_of(c, std::vector<double>(N));
        ng_error error{};
        CHECK_MESSAGE(run_of_one(p, in, out, &error) == NG_SLOW, error.text);
        CHECK(compiler_calls() == before);
        CHECK(values_of(out, N) == many_live(x));
        CHECK(stats(c).interim_runs == 1);
        CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
        CHECK(compiler_calls() > before);
        CHECK(run_of_one(p, in, out) == NG_OK);
        ng_tensor_release(in), ng_tensor_release(out);
        ng_prog_release(p);
        ng_scope_release(s);
        shut(c);
    }
}

TEST_CASE("P6: a sum of as many live values is the same bits before and after the compiler, and where there is none")
{
    (void)emulated_device();
    std::vector<std::vector<double>> sums;
    const std::vector<double> x = some_numbers(N + LIVE);
    for (const uint32_t flags : {uint32_t(NG_CTX_DETERMINISTIC), uint32_t(NG_CTX_DETERMINISTIC | NG_CTX_NO_JIT)}) {
        ng_ctx*   c = open_ctx(flags);
        ng_scope* s = ng_scope_create(c, 0);
        const ng_shape d = doubles(N + LIVE);
        ng_prog* p = compiled(c, ng_sum(many_live(s, ng_param(s, 0, &d)), NG_ALL, NG_KEEP));
        ng_tensor *in = tensor_of(c, x), *out = tensor_of(c, {0});
        for (const bool is_early : {true, false}) {
            if (!is_early) CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
            CHECK(run_of_one(p, in, out) >= 0);
            sums.push_back(values_of(out, 1));
        }
        ng_expr* leaf = ng_sum(many_live(s, ng_leaf(s, in)), NG_ALL, NG_KEEP);
        ng_tensor* evaluated = nullptr;
        CHECK(ng_eval(c, nullptr, &leaf, &evaluated, 1, nullptr) == NG_OK);
        sums.push_back(values_of(evaluated, 1));
        for (ng_tensor* t : {in, out, evaluated}) ng_tensor_release(t);
        ng_prog_release(p);
        ng_scope_release(s);
        shut(c);
    }
    double sum = 0;
    for (const double v : many_live(x)) sum += v;
    CHECK(sums[0][0] == doctest::Approx(sum).epsilon(1e-12));
    for (const std::vector<double>& other : sums) CHECK(other == sums[0]);
}

namespace {

// The compiled kernel of x * 3.5 + y as this device has it: the text is nobody's here, so what its arguments are is looked up.
struct Compiled {
    static constexpr int64_t COUNT = 64;
    struct Arrays { char *x, *y, *out; };
    static inline std::vector<Arrays> known;
    static inline std::atomic<int>    runs;

    static void launch(const fake::KernelLaunch& l)
    {
        runs++;
        for (const Arrays& a : known)
            for (int i = 0; i < 3; i++) {
                if (*static_cast<char**>(l.arguments[i]) != a.out) continue;
                const float *x = reinterpret_cast<float*>(a.x), *y = reinterpret_cast<float*>(a.y);
                for (int64_t k = 0; k < COUNT; k++) {
                    const float product = x[k] * 3.5f;
                    reinterpret_cast<float*>(a.out)[k] = product + y[k];
                }
            }
    }
};

}  // namespace

TEST_CASE("P1: runs of many threads are slow first and fast later, never the other way, with the same bits all the time")
{
    const fake::Control& driver = emulated_device();
    constexpr size_t THREADS = 4, sizes[] = {8, 8, 8};
    driver.set_kernel("fused", Compiled::launch, sizes, 3);
    Compiled::known.clear(), Compiled::runs = 0;
    const SlowCompiler slow(400);
    ng_ctx*  c = open_ctx();
    ng_prog* p = program_of(c, "x * 3.5 + y", Compiled::COUNT, false);
    std::vector<ng_tensor*> all;
    std::vector<float> in(Compiled::COUNT), want(Compiled::COUNT);
    for (size_t i = 0; i < in.size(); i++) in[i] = 1.0f / float(i + 3), want[i] = in[i] * 3.5f, want[i] = want[i] + in[i];
    for (size_t i = 0; i < 2 * THREADS; i++) all.push_back(make(c, Compiled::COUNT));
    const auto data = [](ng_tensor* t) {
        void* at = nullptr;
        CHECK(ng_tensor_use(t, nullptr, 0, &at, nullptr) == NG_OK);
        return static_cast<char*>(at);
    };
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(ng_tensor_put(all[2 * i], in.data(), in.size() * 4, nullptr) == NG_OK);
        Compiled::known.push_back({data(all[2 * i]), data(all[2 * i]), data(all[2 * i + 1])});
    }
    struct Seen { int slow = 0, fast = 0, turned = 0, wrong = 0, failed = 0; };
    std::vector<Seen>        seen(THREADS);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < THREADS; i++)
        threads.emplace_back([&, i] {
            ng_tensor* const args[] = {all[2 * i], all[2 * i]};
            std::vector<float> got(Compiled::COUNT);
            while (seen[i].fast < 50 && seen[i].failed == 0) {
                const ng_status status = run(p, nullptr, args, all[2 * i + 1]);
                seen[i].turned += status == NG_SLOW && seen[i].fast;
                ++(status == NG_SLOW ? seen[i].slow : status == NG_OK ? seen[i].fast : seen[i].failed);
                seen[i].failed += ng_tensor_get(all[2 * i + 1], got.data(), got.size() * 4, nullptr) != NG_OK;
                seen[i].wrong += got != want;
                (void)ng_tensor_fill(all[2 * i + 1], nullptr, -1, nullptr);
            }
        });
    for (std::thread& thread : threads) thread.join();
    int slow_runs = 0, fast_runs = 0;
    for (const Seen& one : seen) {
        CHECK(one.slow > 0);
        CHECK(one.turned + one.wrong + one.failed == 0);
        slow_runs += one.slow, fast_runs += one.fast;
    }
    CHECK(stats(c).interim_runs == uint64_t(slow_runs));
    CHECK(Compiled::runs == fast_runs);
    CHECK(ng_prog_wait(p, FOREVER, nullptr) == NG_OK);
    for (ng_tensor* t : all) ng_tensor_release(t);
    ng_prog_release(p);
    shut(c);
    driver.set_kernel("fused", [](const fake::KernelLaunch&) {}, nullptr, 0);
    CHECK(driver.counts().misuses == 0);
}

namespace {

// A folder of its own for files of a context.
struct Folder {
    std::string path = (std::filesystem::temp_directory_path() / "ng_tiers_XXXXXX").string();
    Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
    ~Folder() { std::filesystem::remove_all(path); }
    // Which files there are, by the numbers that the system gave them.
    std::vector<uint64_t> files() const
    {
        std::vector<uint64_t> all;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
            struct stat found{};
            if (entry.is_regular_file() && stat(entry.path().c_str(), &found) == 0) all.push_back(found.st_ino);
        }
        std::ranges::sort(all);
        return all;
    }
};

// A context with that folder makes a program ready; its counters then.
ng_stats stats_after(const Folder& folder)
{
    ng_ctx_desc d = description();
    d.cache_dir = folder.path.c_str();
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
    ng_prog* p = program_of(c, "(x - 2.5) * y", 64, false);
    ng_error error{};
    CHECK_MESSAGE(ng_prog_wait(p, FOREVER, &error) == NG_OK, error.text);
    ng_tensor* const t[] = {make(c, 64), make(c, 64), make(c, 64)};
    CHECK(run(p, nullptr, t, t[2]) == NG_OK);
    const ng_stats found = stats(c);
    for (ng_tensor* x : t) ng_tensor_release(x);
    ng_prog_release(p);
    shut(c);
    return found;
}

}  // namespace

TEST_CASE("files: what one context compiled another one finds; what the driver refuses of it is compiled again and replaced")
{
    const fake::Control& driver = emulated_device();
    const Folder   folder;
    const uint64_t before = compiler_calls();
    const ng_stats first = stats_after(folder);
    const uint64_t texts = compiler_calls() - before;
    CHECK(texts > 0);
    CHECK(first.jit_compiles == 1);
    CHECK(first.cache_hits == 0);
    const std::vector<uint64_t> files = folder.files();
    CHECK(files.size() == texts);

    const ng_stats second = stats_after(folder);
    CHECK(second.jit_compiles == 0);
    CHECK(second.cache_hits == texts);
    CHECK(compiler_calls() - before == texts);
    CHECK(folder.files() == files);

    driver.fail_function("cuModuleLoadData", 1, 209);            // CUDA_ERROR_NO_BINARY_FOR_GPU
    const ng_stats third = stats_after(folder);
    CHECK(std::string(driver.failed()) == "cuModuleLoadData");
    CHECK(third.jit_compiles == 1);
    CHECK(third.cache_hits == texts - 1);
    CHECK(compiler_calls() - before == texts + 1);
    CHECK(folder.files().size() == texts);
    CHECK(folder.files() != files);                  // one of them is another

    CHECK(stats_after(folder).cache_hits == texts);
    CHECK(compiler_calls() - before == texts + 1);
    CHECK(driver.counts().misuses == 0);
    CHECK(left(driver) == "");
}
