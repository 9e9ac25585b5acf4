// What the CUDA backend costs the host: runs in turn with the driver's own launch, first results, compilations, on one GPU.
//
//     host_gpu [CACHE_DIR]
//
// Bursts of 64 calls, so that no queue is full; the least and the median of 400. Without CACHE_DIR no file of ours is read; NVRTC 13
// keeps what it has made in the driver's cache, but with CUDA_CACHE_DISABLE=1.
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/runtime.h"

#include <ng.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
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

}  // namespace

int main(int argc, char** argv)
{
    try {
        Plain plain;
        ng_ctx_desc d{};
        d.size = sizeof d, d.version = NG_VERSION, d.backend = "cuda", d.cache_dir = argc > 1 ? argv[1] : "";
        ng_ctx* c = nullptr;
        need(ng_ctx_create(&d, &c, &error), "ng_ctx_create");
        for (const Words& w : ALL) measure(c, w, plain);
        ng_stats stats{};
        stats.size = sizeof stats;
        need(ng_ctx_stats(c, &stats), "ng_ctx_stats");
        std::printf("%llu kernels compiled in %.1f ms of threads, %llu texts from disk\n", static_cast<unsigned long long>(stats.jit_compiles), double(stats.jit_usec) / 1e3,
                    static_cast<unsigned long long>(stats.cache_hits));
        need(ng_ctx_close(c, UINT64_MAX, &error), "ng_ctx_close");
        ng_ctx_release(c);
    } catch (const Error& e) {
        std::printf("%s\n", e.text.c_str());
        return 1;
    }
    return 0;
}
