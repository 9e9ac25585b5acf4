// What the CUDA backend costs the host: runs in turn with the driver's own launch, first results, compilations, on one GPU.
//
//     host_gpu [CACHE_DIR] | epilogues | pages
//
// Bursts of 64 calls, so that no queue is full; the least and the median of 400. Without CACHE_DIR no file of ours is read; NVRTC 13
// keeps what it has made in the driver's cache, but with CUDA_CACHE_DISABLE=1. At last, or alone: the first call of products whose
// epilogue nobody has seen before, beside that of bare ones, without any file; and what they take when all is compiled. And what
// page-locked tensors cost a loop that makes one after the other, while the device is busy and while it is not.
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/runtime.h"

#include <ng.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace ng;
using namespace ng::cuda;

namespace {

constexpr int BURST = 64, ROUNDS = 400;

double now_us() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
ng_error error{};
void need(ng_status status, const char* call)
{
    if (status >= 0) return;
    std::printf("%s: %s\n", call, error.text);
    std::exit(1);
}

// A kernel of three buffers and a small struct, launched by the driver alone.
class Plain {
  public:
    Plain() : driver_(Driver::need("host_gpu")), home_(DeviceContext::primary(driver_, 0))
    {
        const CurrentContext now(home_);
        stream_ = make_stream(home_, StreamKind::Ordered);
        const Compiler* const compiler = Compiler::find();
        if (!compiler) return;
        const char* const source = "struct Numbers { long long a[4]; int n; };\n"
                                   "extern \"C\" __global__ void plain(const float* x, const float* y, float* z, const Numbers n) { if (threadIdx.x < n.n) z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }\n";
        module_.emplace(home_, compiler->compile({.prelude = "", .text = source, .options = "-w", .arch = text("sm_", compute_of(driver_, home_.device()))}), Module::Accepts::Binary);
        function_ = module_->function("plain");
    }
    double burst()
    {
        if (!module_) return 0;
        const CurrentContext now(home_);
        struct { long long a[4]; int n; } numbers{};         // n 0: nothing is read
        CUdeviceptr none = 0;
        void* arguments[] = {&none, &none, &none, &numbers};
        Launch l;
        l.block[0] = 256;
        const double start = now_us();
        for (int i = 0; i < BURST; i++) launch(home_, function_, l, stream_.get(), arguments);
        const double each = (now_us() - start) / BURST;
        driver_.cuStreamSynchronize(stream_.get());
        return each;
    }

  private:
    const Driver& driver_;
    DeviceContext home_;
    Stream        stream_;
    std::optional<Module> module_;
    Function      function_;
};

struct Words { const char* text; int rank; bool is_open; };
const Words ALL[] = {
    {"x + y", 1, false},
    {"x * y", 1, true},
    {"exp(tanh((((x + y) * x - y) * x + y) * x - y)) + x", 1, true},
    {"(x - mean(x, 1)) * y", 2, false},
    {"softmax(x * y, 1)", 2, true},
};

void measure(ng_ctx* c, const Words& w, Plain& plain)
{
    ng_scope* s = ng_scope_create(c, 0);
    ng_shape d{}, open{};
    d.size = sizeof d, d.dtype = NG_F32, d.ndim = w.rank, d.dims[0] = d.dims[1] = 8;
    open = d;
    if (w.is_open) open.dims[0] = -1, open.dims[1] = -2;
    ng_expr* const params[] = {ng_param(s, 0, &open), ng_param(s, 1, &open)};
    ng_expr* e = ng_parse(s, w.text, "x,y", params, 2);
    ng_tensor* t[3];
    for (ng_tensor*& x : t) need(ng_tensor_create(c, &d, &x, &error), "ng_tensor_create"), need(ng_tensor_fill(x, nullptr, 0.5, &error), "ng_tensor_fill");
    need(ng_ctx_sync(c, nullptr, UINT64_MAX, &error), "ng_ctx_sync");
    const int64_t most[] = {4096, 4096};
    ng_compile_desc desc{};
    desc.size = sizeof desc, desc.length_max = most, desc.nlength = w.is_open ? uint32_t(w.rank) : 0;
    ng_run r{};
    r.size = sizeof r, r.nargs = 2, r.nout = 1, r.args = t, r.out = t + 2;
    float values[64];
    ng_prog* p = nullptr;
    const double start = now_us();
    need(ng_compile(c, &desc, &e, 1, &p, &error), "ng_compile");
    const double made = now_us();
    need(ng_prog_run(p, nullptr, &r, &error), "ng_prog_run");
    need(ng_tensor_get(t[2], values, w.rank == 1 ? 32 : 256, &error), "ng_tensor_get");
    const double first = now_us();
    need(ng_prog_wait(p, UINT64_MAX, &error), "ng_prog_wait");
    const double ready = now_us();
    std::vector<double> ours, theirs;
    for (int round = 0; round < ROUNDS; round++) {
        theirs.push_back(plain.burst());
        const double begin = now_us();
        for (int i = 0; i < BURST; i++) need(ng_prog_run(p, nullptr, &r, &error), "ng_prog_run");
        ours.push_back((now_us() - begin) / BURST);
        need(ng_ctx_sync(c, nullptr, UINT64_MAX, &error), "ng_ctx_sync");
    }
    std::sort(ours.begin(), ours.end()), std::sort(theirs.begin(), theirs.end());
    std::printf("%-52s ng_compile %.0f us, first result %.0f us and ready %.1f ms after it began; a run %.2f us, median %.2f; a launch %.2f, median %.2f\n", w.text,
                made - start, first - start, (ready - start) / 1e3, ours[0], ours[ROUNDS / 2], theirs[0], theirs[ROUNDS / 2]);
    ng_prog_release(p);
    ng_scope_release(s);
    for (ng_tensor* x : t) ng_tensor_release(x);
}

// ---- epilogues --------------------------------------------------------------------------------------------------------

double median_of(std::vector<double> all)
{
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
}

ng_ctx* make_context(const char* cache_dir, uint32_t flags)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.backend = "cuda", d.cache_dir = cache_dir, d.flags = flags;
    ng_ctx* c = nullptr;
    need(ng_ctx_create(&d, &c, &error), "ng_ctx_create");
    return c;
}
void close_context(ng_ctx* c)
{
    need(ng_ctx_close(c, UINT64_MAX, &error), "ng_ctx_close");
    ng_ctx_release(c);
}

ng_shape shape_of_floats(std::initializer_list<int64_t> dims)
{
    ng_shape s{};
    s.size = sizeof s, s.dtype = NG_F16;
    for (const int64_t length : dims) s.dims[s.ndim++] = length;
    return s;
}

// A text over a [m, k], b [k, n], v [n] and r [m, n] of f16, with tensors for it; those it has no word of are not among its arguments.
class Product {
  public:
    Product(ng_ctx* c, std::string words, int64_t m, int64_t n, int64_t k) : context_(c), words_(std::move(words)), count_(words_.find('v') == std::string::npos ? 2 : 4)
    {
        shapes_ = {shape_of_floats({m, k}), shape_of_floats({k, n}), shape_of_floats({n}), shape_of_floats({m, n})};
        std::mt19937 random(1);
        for (uint32_t i = 0; i <= count_; i++) {
            const ng_shape& shape = i < count_ ? shapes_[i] : shapes_[3];
            std::vector<uint16_t> bits(size_t(shape.dims[0] * (shape.ndim > 1 ? shape.dims[1] : 1)));
            for (uint16_t& x : bits) x = uint16_t(0x2800 | (random() & 0x87ff));        // 1/32 to 1/8, of both signs
            need(ng_tensor_create(c, &shape, &tensors_[i], &error), "ng_tensor_create");
            need(ng_tensor_put(tensors_[i], bits.data(), bits.size() * 2, &error), "ng_tensor_put");
        }
        run_.size = sizeof run_, run_.nargs = count_, run_.nout = 1, run_.args = tensors_, run_.out = tensors_ + count_;
        sync();
    }
    ~Product()
    {
        ng_prog_release(program_);
        for (ng_tensor* x : tensors_) ng_tensor_release(x);
    }
    Product(const Product&) = delete;

    struct First { double compile_us, run_us, all_us; };         // of ng_compile, ng_prog_run; until the device is done
    First first()
    {
        ng_scope* s = ng_scope_create(context_, 0);
        ng_expr*  params[4] = {};
        for (uint32_t i = 0; i < count_; i++) params[i] = ng_param(s, i, &shapes_[i]);
        ng_expr* e = ng_parse(s, words_.c_str(), count_ == 2 ? "a,b" : "a,b,v,r", params, count_);
        ng_compile_desc desc{};
        desc.size = sizeof desc;
        began_us_ = now_us();
        need(ng_compile(context_, &desc, &e, 1, &program_, &error), "ng_compile");
        const double compiled = now_us();
        call();
        const double ran = now_us();
        sync();
        const double done = now_us();
        ng_scope_release(s);
        return {compiled - began_us_, ran - compiled, done - began_us_};
    }
    // Waits until all is compiled; milliseconds since ng_compile began.
    double ready_ms()
    {
        need(ng_prog_wait(program_, UINT64_MAX, &error), "ng_prog_wait");
        return (now_us() - began_us_) / 1e3;
    }
    void queue(int calls)
    {
        for (int i = 0; i < calls; i++) call();
    }
    // Of a run among so many.
    double steady_us(int calls)
    {
        sync();
        const double begin = now_us();
        queue(calls);
        sync();
        return (now_us() - begin) / calls;
    }

  private:
    void call() { need(ng_prog_run(program_, nullptr, &run_, &error), "ng_prog_run"); }
    void sync() { need(ng_ctx_sync(context_, nullptr, UINT64_MAX, &error), "ng_ctx_sync"); }

    ng_ctx* const         context_;
    const std::string     words_;
    const uint32_t        count_;
    std::vector<ng_shape> shapes_;
    ng_tensor*            tensors_[5] = {};
    ng_run                run_{};
    ng_prog*              program_ = nullptr;
    double                began_us_ = 0;
};

// Texts that differ in more than numbers, which a compiled text has among its arguments.
const char* const EPILOGUES[] = {"f16(F(a @ b + v) + r)", "f16(F(a @ b - v) + r)", "f16(F(a @ b + v) - r)", "f16(F((a @ b) * v) + r)", "f16(F(a @ b + v) * r)", "f16(F(v - a @ b) + r)",
                                 "f16(F(a @ b + v) + r * r)", "f16(F(a @ b + v) + abs(r))", "f16(F(a @ b + v) * v + r)", "f16(F(a @ b + v) * 2 - r)", "f16(r - F(a @ b + v))"};

std::string with_function(std::string words, const char* function) { return words.replace(words.find('F'), 1, function); }

// Each program is of a shape that none had before, too.
void time_first_calls(ng_ctx* c, int64_t size, const char* function)
{
    struct Times { std::vector<double> compile, run, all, ready; } times[2];
    int64_t m = size;
    for (const char* const words : EPILOGUES)
        for (const bool has_epilogue : {false, true}) {
            Product product(c, has_epilogue ? with_function(words, function) : "f16(a @ b)", m += 8, size, size);
            const Product::First first = product.first();
            Times& t = times[has_epilogue];
            t.compile.push_back(first.compile_us), t.run.push_back(first.run_us), t.all.push_back(first.all_us), t.ready.push_back(product.ready_ms());
        }
    for (const bool has_epilogue : {false, true}) {
        const Times& t = times[has_epilogue];
        std::printf("first call, %ld^3, %-30s ng_compile %.0f us, ng_prog_run %.0f, done %.0f us after ng_compile began (least %.0f, most %.0f), ready after %.1f ms; medians of %zu\n", long(size),
                    has_epilogue ? with_function(EPILOGUES[0], function).c_str() : "f16(a @ b)", median_of(t.compile), median_of(t.run), median_of(t.all), *std::min_element(t.all.begin(), t.all.end()),
                    *std::max_element(t.all.begin(), t.all.end()), median_of(t.ready), t.all.size());
    }
    std::printf("first call, %ld^3: a never-seen epilogue takes %.0f us more than the bare product (wanted: 1000 at most)\n", long(size), median_of(times[1].all) - median_of(times[0].all));
}

// In turns: the product; with the epilogue behind it by the interpreter, which a deterministic context without a compiler does; with it as the list that shipped
// kernels carry out until it is compiled; and compiled.
void time_steady(ng_ctx* c, ng_ctx* without_compiler, ng_ctx* deterministic, int64_t size)
{
    constexpr int TURNS = 9;
    const std::string words = with_function(EPILOGUES[0], "gelu");
    Product bare(c, "f16(a @ b)", size, size, size), behind(deterministic, words, size, size, size), listed(without_compiler, words, size, size, size), fused(c, words, size, size, size);
    Product* const all[] = {&bare, &behind, &listed, &fused};
    for (Product* p : all) (void)p->first(), (void)p->ready_ms(), (void)p->steady_us(10);
    std::vector<double> times[4];
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < 4; i++) times[i].push_back(all[i]->steady_us(size > 1000 ? 40 : 400));
    const double us[] = {median_of(times[0]), median_of(times[1]), median_of(times[2]), median_of(times[3])};
    std::printf("steady, %ld^3: f16(a @ b) %.2f us; %s by the interpreter behind it %.2f us, %.2f of that; as a list until compiled %.2f us, %.2f of it; compiled %.2f us, %.2f of it\n", long(size), us[0],
                words.c_str(), us[1], us[1] / us[0], us[2], us[2] / us[0], us[3], us[3] / us[0]);
}

void measure_epilogues()
{
    ng_ctx* const c = make_context("", 0);
    ng_ctx* const without_compiler = make_context("", NG_CTX_NO_JIT);
    ng_ctx* const deterministic = make_context("", NG_CTX_NO_JIT | NG_CTX_DETERMINISTIC);
    for (ng_ctx* context : {c, without_compiler, deterministic})                 // images are loaded
        for (const char* words : {"f16(a @ b)", "f16(relu(a @ b + v) + r)"}) {
            Product p(context, words, 256, 256, 256);
            (void)p.first(), (void)p.ready_ms();
        }
    time_first_calls(c, 512, "gelu"), time_first_calls(c, 4096, "silu");
    time_steady(c, without_compiler, deterministic, 512), time_steady(c, without_compiler, deterministic, 4096);
    close_context(deterministic), close_context(without_compiler), close_context(c);
}

// ---- page-locked tensors ----------------------------------------------------------------------------------------------

// The least, median and longest of steps that each make such a tensor and let the one before go; with a trim, which gives the driver
// back what is kept. is_busy: behind each, 4 ms of products are still to be done.
void time_pages(ng_ctx* c, bool trims, bool is_busy)
{
    constexpr int STEPS = 24;
    constexpr int64_t BYTES = 16 << 20;
    ng_shape d{};
    d.size = sizeof d, d.dtype = NG_U8, d.ndim = 1, d.dims[0] = BYTES, d.flags = NG_HOST;
    Product work(c, "f16(a @ b)", 4096, 4096, 4096);
    (void)work.first(), (void)work.ready_ms();
    ng_tensor* before = nullptr;
    std::vector<double> ms;
    for (int i = 0; i < STEPS; i++) {
        if (is_busy) work.queue(20);
        const double begin = now_us();
        ng_tensor* next = nullptr;
        need(ng_tensor_create(c, &d, &next, &error), "ng_tensor_create");
        ng_tensor_release(std::exchange(before, next));
        need(ng_ctx_poll(c, 0, &error), "ng_ctx_poll");
        if (trims) need(ng_ctx_trim(c, 0), "ng_ctx_trim");
        ms.push_back((now_us() - begin) / 1e3);
    }
    need(ng_ctx_sync(c, nullptr, UINT64_MAX, &error), "ng_ctx_sync");
    ng_tensor_release(before);
    std::sort(ms.begin(), ms.end());
    std::printf("a page-locked tensor of 16 MB made and one released, %s, the device %s: least %.3f ms, median %.3f, longest %.3f\n", trims ? "with a trim" : "kept",
                is_busy ? "busy" : "idle", ms.front(), ms[STEPS / 2], ms.back());
}

void measure_pages()
{
    ng_ctx* const c = make_context("", 0);
    for (const bool is_busy : {false, true})
        for (const bool trims : {true, false}) time_pages(c, trims, is_busy);
    close_context(c);
}

}  // namespace

int main(int argc, char** argv)
{
    const auto is_asked = [&](const char* name) { return argc > 1 && std::strcmp(argv[1], name) == 0; };
    try {
        if (is_asked("pages")) {
            measure_pages();
            return 0;
        }
        if (!is_asked("epilogues")) {
            Plain         plain;
            ng_ctx* const c = make_context(argc > 1 ? argv[1] : "", 0);
            for (const Words& w : ALL) measure(c, w, plain);
            ng_stats stats{};
            stats.size = sizeof stats;
            need(ng_ctx_stats(c, &stats), "ng_ctx_stats");
            std::printf("%llu kernels compiled in %.1f ms of threads, %llu texts from disk\n", static_cast<unsigned long long>(stats.jit_compiles), double(stats.jit_usec) / 1e3,
                        static_cast<unsigned long long>(stats.cache_hits));
            if (!ng_ctx_stream(c, 0)) std::printf("ng_ctx_stream gives nothing\n");
            std::printf("the same once more, with the context's stream lent, which then records an event for each run:\n");
            measure(c, ALL[0], plain);
            close_context(c);
        }
        measure_epilogues();
        if (!is_asked("epilogues")) measure_pages();
    } catch (const Error& e) {
        std::printf("%s\n", e.text.c_str());
        return 1;
    }
    return 0;
}
