// The cases of ngtool bench about the host: what small programs, new expressions and long chains cost, and the CPU's kernels.
#include "ngtool_bench.h"

#include <algorithm>

namespace ngtool {
namespace {

// Parse, build, schedule, run, bring home: a new result from a text over the tensors x and y.
void evaluate_text(ng_ctx* context, const std::string& source, ng_tensor* x, ng_tensor* y, std::vector<float>& home)
{
    const Scope scope(ng_scope_create(context, 0));
    ng_expr* const leaves[] = { ng_leaf(scope.get(), x), ng_leaf(scope.get(), y) };
    ng_expr* root = ng_parse(scope.get(), source.c_str(), "x,y", leaves, 2);
    ng_tensor* result = nullptr;
    ng_error fault{};
    check(ng_eval(context, nullptr, &root, &result, 1, &fault), fault);
    const Tensor owner(result);
    check(ng_tensor_get(result, home.data(), home.size() * sizeof(float), &fault), fault);
}

// The number-th of many texts, no two of them alike: which words stand in it, not which constants.
std::string new_text(unsigned number)
{
    static const char* const words[] = { "tanh", "sin", "cos", "exp", "sigmoid", "square", "abs", "atan" };
    std::string result = "x";
    for (int i = 0; i < 6; i++, number /= 8) result = std::string(words[number % 8]) + "(" + result + " + y)";
    return result;
}

void bench_first_results(Bench& bench)
{
    struct First { const char* name; int64_t rows, columns; const char *before, *after; };
    static const First firsts[] = {
        { "first result of a new expression, 1000 elements", 1, 1000, "", "" },
        { "first call of a new fused expression", 128, 32, "a = ", "; mean((a - mean(a, 1)) ** 2, 1)" },
    };
    for (const First& first : firsts) {
        if (!bench.wants(first.name)) continue;
        const ng_shape shape = make_shape(NG_F32, { first.rows, first.columns });
        const Tensor x = random_tensor(bench.context(), shape, 1), y = random_tensor(bench.context(), shape, 2);
        std::vector<float> home(size_t(*first.before ? first.rows : first.columns));
        std::vector<double> times;
        std::string source;
        for (unsigned i = 0; i < 40; i++) {
            source = first.before + new_text(12345 + i * 7919) + first.after;
            const double start = now_us();
            evaluate_text(bench.context(), source, x.get(), y.get(), home);
            times.push_back(now_us() - start);
        }
        std::sort(times.begin(), times.end());
        bench.emit("small", first.name, times[times.size() / 2], 0, "");
        if (*first.before) continue;
        const double us = bench.median_us([&](size_t) { evaluate_text(bench.context(), source, x.get(), y.get(), home); });
        bench.emit("small", "the same expression again, 1000 elements", us, 0, "");
    }
}

// Two nodes a round; floats: nothing of it may be folded.
void bench_chain(Bench& bench, size_t nodes)
{
    const std::string name = text("chain of %zu nodes", nodes);
    if (!bench.wants(name)) return;
    const ng_shape shape = make_shape(NG_F32, { 1000 });
    const Tensor x = random_tensor(bench.context(), shape, 1);
    const double start = now_us();
    const Scope scope(ng_scope_create(bench.context(), nodes + 1000));
    ng_expr *const step = ng_const(scope.get(), NG_F32, 0.25), *const factor = ng_const(scope.get(), NG_F32, 0.75);
    ng_expr* chain = ng_leaf(scope.get(), x.get());
    for (size_t i = 0; i < nodes / 2; i++) chain = ng_mul(ng_add(chain, step), factor);
    const double built = now_us();
    ng_tensor* result = nullptr;
    ng_error fault{};
    check(ng_eval(bench.context(), nullptr, &chain, &result, 1, &fault), fault);
    const Tensor owner(result);
    std::vector<float> home(1000);
    check(ng_tensor_get(result, home.data(), home.size() * sizeof(float), &fault), fault);
    const double done = now_us();
    for (const float value : home)                            // the fixed point of y = (y + 1/4) 3/4 is 3/4
        if (!(value > 0.7499f && value < 0.7501f)) throw Failure(text("%s: %g instead of 0.75", name.c_str(), double(value)));
    bench.emit("small", name + ": build", built - start, 0, "");
    bench.emit("small", name + ": schedule and run, 1000 elements", done - built, 0, "");
}

struct Tiny { const char *name, *text; };
const Tiny TINY[] = {
    { "a+b", "x + y" },
    { "chain of 10", "exp(tanh((((x + y) * x - y) * x + y) * x - y)) + x" },
    { "var axis1", "var(x, 1)" },
};

Case text_case(const std::string& name, const std::string& source, const std::vector<ng_shape>& args)
{
    Case what;
    what.name = name;
    what.args = args;
    what.build = [source, count = args.size()](ng_scope* scope, const Exprs& values) {
        return Exprs{ ng_parse(scope, source.c_str(), count == 2 ? "x,y" : "x", values.data(), uint32_t(count)) };
    };
    return what;
}

struct Kernel { const char *name, *text; int inputs; double arrays; };
const Kernel KERNELS[] = {      // arrays: how many of the input's size are read and written at least
    { "x+y", "x + y", 2, 3 },
    { "a*x+b", "2.5 * x + 0.5", 1, 2 },
    { "gelu_chain", "0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x * x * x))) * 1.1 + 0.3", 1, 2 },
    { "20 operations",
      "a = ((x + y) * x - y) * 0.5 + x; b = ((a * y - 0.25) * x + y) * 0.125 - a; c = (b * y + 0.75) * a - x;"
      "d = (c * 0.5 + b) * y - a; d + c", 2, 3 },
    { "batchnorm rows", "rsqrt(var(x, 1) + 0.001) * (x - mean(x, 1))", 1, 2 },
    { "softmax rows", "softmax(x, 1)", 1, 2 },
    { "column sums", "sum(x, 0)", 1, 1 },
};

void bench_products(Bench& bench)
{
    for (const bool wide : { false, true })
        for (const int64_t n : { 512, 1024 }) {
            const ng_shape square = make_shape(wide ? NG_F64 : NG_F32, { n, n });
            Case what = text_case(text("%s %lld^3", wide ? "dgemm" : "sgemm", (long long)n), "x @ y", { square, square });
            what.work = what.flops = 2.0 * double(n * n * n);
            what.unit = "GFLOP/s";
            what.normal = true;
            bench.run("cpu", what);
        }
}

void bench_convolution(Bench& bench)
{
    const ng_shape x = make_shape(NG_F32, { 8, 64, 56, 56 }), w = make_shape(NG_F32, { 64, 64, 3, 3 });
    ng_conv_desc desc = sized<ng_conv_desc>();
    for (int axis = 0; axis < 2; axis++) desc.pad_lo[axis] = desc.pad_hi[axis] = 1;
    const char* const passes[] = { "fwd", "dx", "dw" };
    for (int pass = 0; pass < 3; pass++) {
        Case what;
        what.name = text("conv 3x3 N8 C64 56x56 %s", passes[pass]);
        what.work = what.flops = 2 * double(element_count(x)) * 64 * 9;
        what.unit = "GFLOP/s";
        what.normal = true;
        what.args = { pass == 1 ? w : x, pass == 0 ? w : x };                       // y has x's shape
        what.build = [=](ng_scope*, const Exprs& args) {
            return Exprs{ pass == 0 ? ng_conv(args[0], args[1], &desc)
                        : pass == 1 ? ng_conv_dx(args[0], args[1], &x, &desc)
                                    : ng_conv_dw(args[0], args[1], &w, &desc) };
        };
        bench.run("cpu", what);
    }
}

}

void bench_small(Bench& bench)
{
    const ng_shape shape = make_shape(NG_F32, { 128, 32 }), eight = make_shape(NG_F32, { 8 });
    for (const Tiny& tiny : TINY) {
        const bool has_y = std::string(tiny.text).find('y') != std::string::npos;
        Case what = text_case(std::string(tiny.name) + " 128x32 host time", tiny.text,
                              std::vector<ng_shape>(has_y ? 2 : 1, shape));
        what.unit = "k/s";
        what.is_cached = what.is_of_host = true;
        bench.run("small", what);
    }
    Case least = text_case("ng_prog_run of x + y on 8 elements", "x + y", { eight, eight });
    least.unit = "k/s";
    least.is_cached = least.is_of_host = true;
    bench.run("small", least);
    try {
        bench_first_results(bench);
        bench_chain(bench, bench.is_quick() ? 100000 : 1000000);
    }
    catch (const Failure& failure) {
        bench.fail("small", failure.what());
    }
}

void bench_cpu(Bench& bench)
{
    for (const Kernel& kernel : KERNELS)
        for (const bool is_cached : { false, true }) {
            const ng_shape shape = make_shape(NG_F32, { is_cached ? 32 : 65536, 1024 });
            Case what = text_case(std::string(kernel.name) + (is_cached ? " f32 L2" : " f32 256MB"), kernel.text,
                                  std::vector<ng_shape>(size_t(kernel.inputs), shape));
            what.work = double(dense_bytes(shape)) * kernel.arrays;
            what.is_cached = is_cached;
            bench.run("cpu", what);
        }
    bench_products(bench);
    bench_convolution(bench);
}

}
