// Element-wise, row and column kernels on an NVIDIA GPU: right against their plain texts, and how near they come to a copy.
//
//     ew_gpu [--only TEXT].. [--part K/N] [--megabytes N] [--registers] [--check] [--dry [--texts FOLDER]] [--sweep]
//
// Every case is scheduled, printed, compiled and run as programs do it. Random data; buffers rotate over more than the
// last cache holds; the median of 9 rounds counts. GB/s are of each tensor once: what must move, not what did.
// --check measures no time: for compute-sanitizer. --part 0/8 is the first of each eight cases, 1/8 the second: for processes side by side.
// --dry says what would run, on any machine, and writes the texts into a folder; --sweep how far functions are off over all of f32.
#include "jit/emit.h"
#include "jit/parse.h"
#include "jit/plan.h"
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/runtime.h"
#include "tests/bench/ew_numbers.h"
#include "tests/bench/ew_sweep.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

using namespace ng;
using namespace ng::cuda;

namespace {

constexpr int64_t ROTATED_BYTES = int64_t(200) << 20;
constexpr int ROUNDS = 9;

struct Input { Dtype type; Extents dims, strides; };
struct Trial {
    std::string name;
    std::vector<Input> inputs;                           // called x, y, z
    std::vector<std::string> words;
    double tolerance = 1e-5;
};

struct Compiled { Module module; std::vector<Function> functions; KernelSource source; double milliseconds; };

int64_t span_of(const Extents& dims, const Extents& strides)
{
    int64_t last = 0;
    for (size_t a = 0; a < dims.size(); a++) last += (dims[a].constant() - 1) * strides[a].constant();
    return last + 1;
}
int64_t bytes_of_layout(const Layout& l) { return span_of(l.dims, l.strides) * bytes_of(l.dtype); }
Layout layout_of(Dtype t, const Extents& dims, const Extents& strides)
{
    Layout l;
    l.dtype = t, l.dims = dims, l.strides = strides.empty() ? dense_strides(dims) : strides;
    return l;
}

// A trial as a program has it.
struct Scheduled {
    Graph graph;
    std::vector<Layout> layouts;
    std::vector<Target> targets;
    Plan    plan;
    int64_t bytes = 0;

    explicit Scheduled(const Trial& t)
    {
        std::vector<NodeRef> params, roots;
        for (size_t k = 0; k < t.inputs.size(); k++) {
            layouts.push_back(layout_of(t.inputs[k].type, t.inputs[k].dims, t.inputs[k].strides));
            params.push_back(build::param(graph, uint32_t(k), layouts.back()));
            bytes += product(layouts.back().dims).constant() * bytes_of(layouts.back().dtype);
        }
        const std::vector<std::string_view> names = {"x", "y", "z"};
        for (const std::string& words : t.words) {
            roots.push_back(parse(graph, words, std::span(names.data(), params.size()), params));
            Target to;
            to.layout = layout_of(roots.back()->dtype, roots.back()->dims(), {});
            targets.push_back(to);
            bytes += bytes_of_layout(to.layout);
        }
        plan = schedule(roots, targets, 0);
    }
};

// What would run on an H200, its buffers well aligned.
void tell(const Trial& t, const std::string& folder)
{
    const Scheduled made(t);
    std::string all;
    for (const Step& s : made.plan.steps) {
        const KernelFamily family(*s.kernel, cuda_dialect(), {90, 132, 227 << 10});
        const Geometry g = family.choose({}, {});
        if (!folder.empty()) {
            std::string name = t.name;
            std::ranges::replace_if(name, [](unsigned char c) { return !std::isalnum(c); }, '_');
            std::ofstream(folder + "/" + name + text("_", &s - made.plan.steps.data()) + ".cu") << cuda_dialect().prelude << family.source(size_t(g.which)).text;
        }
        all += text(all.empty() ? "" : " + ", text_of(family.classes()[size_t(g.which)]), " of ", family.classes().size());
        for (int32_t f = 0; f < g.launches; f++) all += text(f ? ", " : ": ", g.launch[size_t(f)].blocks, " x ", g.launch[size_t(f)].threads);
    }
    std::printf("%-44s %s\n", t.name.c_str(), all.c_str());
}

// One step ready to be launched: as its family says, or as its plain text.
struct ReadyStep { Compiled code; Geometry geometry; std::vector<char> numbers; std::vector<int32_t> buffers; DeviceMemory scratch; std::string which; };
struct Prepared { std::vector<ReadyStep> steps; };

class Bench {
  public:
    Bench(const Driver& driver, const Compiler& compiler)
        : home_(DeviceContext::primary(driver, 0)), current_(home_), compiler_(compiler), pool_(home_), stream_(make_stream(home_, StreamKind::Independent))
    {
        compute_ = compute_of(driver, home_.device());
        driver.cuDeviceGetAttribute(&units_, 16, home_.device());      // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        driver.cuDeviceGetAttribute(&shared_, 97, home_.device());     // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    }
    void measure_copy();
    void sweep(const RowSweep& s);
    void run(const Trial& t);
    bool shows_registers = false, only_checks = false;
    int  failures = 0;

  private:
    Compiled compiled(KernelSource source);
    void fill(const DeviceMemory& memory, Dtype t);
    ReadyStep fast_step(const Step& s, std::span<const uint64_t> addresses);
    ReadyStep plain_step(const Step& s);
    void start(const Compiled& c, const Geometry& g, std::vector<CUdeviceptr> buffers, std::vector<char>& numbers, bool is_early);
    std::vector<std::vector<char>> outputs(const Plan& plan, const std::vector<Target>& targets, const std::vector<CUdeviceptr>& set);
    template <class F> double timed_us(int launches, const F& each);

    DeviceContext  home_;
    CurrentContext current_;
    const Compiler& compiler_;
    MemoryPool     pool_;
    Stream         stream_;
    int            compute_ = 0, units_ = 0, shared_ = 0;
    double         copy_ = 1;                            // GB/s
};

template <class F>
double Bench::timed_us(int launches, const F& each)
{
    const Event begin(home_, Event::Timing::On), end(home_, Event::Timing::On);
    std::vector<double> all;
    for (int round = -1; round < ROUNDS; round++) {
        begin.record(stream_.get());
        for (int i = 0; i < launches; i++) each(i);
        end.record(stream_.get());
        end.wait();
        if (round >= 0) all.push_back(double(end.milliseconds_since(begin)) * 1e3 / launches);
    }
    std::ranges::sort(all);
    return all[all.size() / 2];
}

void Bench::measure_copy()
{
    const uint64_t bytes = uint64_t(1) << 30;
    DeviceMemory from(pool_, bytes, stream_.get()), to(pool_, bytes, stream_.get());
    fill(from, Dtype::f32);
    const double us = timed_us(4, [&](int) { home_.driver().cuMemcpyDtoDAsync(to.get(), from.get(), bytes, stream_.get()); });
    copy_ = 2.0 * double(bytes) / us / 1e3;
    std::printf("sm_%d, %d multiprocessors; copy of 1 GiB: %.0f us, %.0f GB/s\n", compute_, units_, us, copy_);
    std::printf("%-44s %10s %8s %7s  %s\n", "case", "us", "GB/s", "% copy", "texts (compile ms), error against plain");
}

void Bench::sweep(const RowSweep& s)
{
    const DeviceMemory worst(pool_, 8, stream_.get());
    uint64_t found = 0;
    std::vector<char> numbers(8);
    Geometry g;
    g.launches = 1, g.launch[0] = {4096, 256, 1, 0};
    KernelSource source;
    source.text = text_of(s);
    home_.driver().cuMemsetD8Async(worst.get(), 0, 8, stream_.get());
    start(compiled(source), g, {worst.get()}, numbers, false);
    home_.driver().cuMemcpyDtoHAsync(&found, worst.get(), 8, stream_.get());
    home_.driver().cuStreamSynchronize(stream_.get());
    std::printf("%-44s %.3f units off at code %08x\n", s.name, double(found >> 32) / 1000, unsigned(found));
}

void Bench::fill(const DeviceMemory& memory, Dtype t)
{
    const size_t part = std::min<size_t>(memory.bytes(), size_t(64) << 20);
    const std::vector<char> bytes = random_bytes(t, part);
    home_.driver().cuMemcpyHtoDAsync(memory.get(), bytes.data(), part, stream_.get());
    for (size_t at = part; at < memory.bytes(); at += part)
        home_.driver().cuMemcpyDtoDAsync(memory.get() + at, memory.get(), std::min(part, memory.bytes() - at), stream_.get());
    home_.driver().cuStreamSynchronize(stream_.get());
}

Compiled Bench::compiled(KernelSource source)
{
    const std::string arch = text("sm_", compute_);
    const auto begin = std::chrono::steady_clock::now();
    const std::string code = compiler_.compile({.prelude = cuda_dialect().prelude, .text = source.text, .options = cuda_dialect().options, .arch = arch});
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    Compiled c{Module(home_, code, Module::Accepts::Binary), {}, std::move(source), ms};
    for (int32_t f = 0; f < c.source.functions; f++) c.functions.push_back(c.module.function(f ? text("fused_", f).c_str() : "fused"));
    return c;
}

std::vector<std::vector<char>> Bench::outputs(const Plan& plan, const std::vector<Target>& targets, const std::vector<CUdeviceptr>& set)
{
    std::vector<std::vector<char>> out(targets.size());
    for (size_t b = 0; b < plan.buffers.size(); b++) {
        if (plan.buffers[b].place != Place::Out) continue;
        std::vector<char>& bytes = out[size_t(plan.buffers[b].index)];
        bytes.resize(size_t(bytes_of_layout(targets[size_t(plan.buffers[b].index)].layout)));
        home_.driver().cuMemcpyDtoHAsync(bytes.data(), set[b], bytes.size(), stream_.get());
    }
    home_.driver().cuStreamSynchronize(stream_.get());
    return out;
}

void Bench::start(const Compiled& c, const Geometry& g, std::vector<CUdeviceptr> buffers, std::vector<char>& numbers, bool is_early)
{
    std::vector<void*> arguments;
    for (CUdeviceptr& b : buffers) arguments.push_back(&b);
    arguments.push_back(numbers.data());
    for (int32_t f = 0; f < g.launches; f++) {
        const Geometry::Launch& l = g.launch[size_t(f)];
        Launch how;
        how.grid = {l.blocks, 1, 1}, how.block = {l.threads, 1, 1}, how.cluster = {l.cluster, 1, 1}, how.shared_bytes = l.shared_bytes, how.is_early = is_early;
        if (l.shared_bytes) allow_shared(home_, c.functions[size_t(f)], l.shared_bytes);
        if (l.cluster > MOST_PORTABLE_CLUSTER) allow_large_clusters(home_, c.functions[size_t(f)]);
        launch(home_, c.functions[size_t(f)], how, stream_.get(), arguments.data());
    }
}

// The largest difference, of 1 + the number that is right.
double difference(const std::vector<std::vector<char>>& got, const std::vector<std::vector<char>>& want, const std::vector<Target>& targets)
{
    double most = 0;
    for (size_t j = 0; j < got.size(); j++) {
        const Dtype t = targets[j].layout.dtype;
        for (int64_t i = 0; i < int64_t(got[j].size()) / bytes_of(t); i++) {
            const double a = number_at(got[j], t, i), b = number_at(want[j], t, i);
            if (std::isnan(a) != std::isnan(b)) return INFINITY;
            if (a != b && !std::isnan(a)) most = std::max(most, std::abs(a - b) / (1 + std::abs(b)));
        }
    }
    return most;
}

ReadyStep Bench::fast_step(const Step& s, std::span<const uint64_t> addresses)
{
    const KernelFamily family(*s.kernel, cuda_dialect(), {compute_, units_, shared_});
    const Geometry g = family.choose({}, addresses);
    ReadyStep ready{compiled(family.source(size_t(g.which))), g, {}, s.buffers, DeviceMemory(pool_, g.scratch_bytes, stream_.get()), text_of(family.classes()[size_t(g.which)])};
    ready.numbers.resize(ready.code.source.number_bytes);
    fill_numbers(ready.code.source, {}, nullptr, g, ready.scratch.get(), ready.numbers.data());
    return ready;
}

// Short or few rows: 32 a block.
ReadyStep Bench::plain_step(const Step& s)
{
    KernelSource source = emit(*s.kernel, cuda_dialect());
    const int64_t rows = source.rows.constant();
    const int32_t per_block = source.has_rows && source.points.constant() < rows ? 32 : 1;
    Geometry g;
    g.launches = 1, g.launch[0] = {uint32_t(std::clamp<int64_t>(rows / per_block + 1, 1, 1 << 20)), 256, 1, 0};
    ReadyStep ready{compiled(std::move(source)), g, {}, s.buffers, {}, ""};
    ready.numbers.resize(ready.code.source.number_bytes);
    fill_numbers(ready.code.source, {}, nullptr, per_block, ready.numbers.data());
    return ready;
}

void Bench::run(const Trial& t)
{
    const Scheduled made(t);
    const std::vector<Layout>& layouts = made.layouts;
    const std::vector<Target>& targets = made.targets;
    const Plan& plan = made.plan;
    const int64_t bytes = made.bytes;
    // A set of every buffer, twice or more often; the second half of `memory` is never read back.
    const auto sets_wanted = only_checks ? size_t(1) : size_t(std::clamp<int64_t>(ROTATED_BYTES / std::max<int64_t>(bytes, 1) + 1, 2, 24));
    std::vector<DeviceMemory> memory;
    std::vector<std::vector<CUdeviceptr>> sets(sets_wanted);
    for (auto& set : sets)
        for (const Buffer& b : plan.buffers) {
            const int64_t size = b.place == Place::Arg ? bytes_of_layout(layouts[size_t(b.index)]) : b.place == Place::Out ? bytes_of_layout(targets[size_t(b.index)].layout) : b.count.constant() * bytes_of(b.dtype);
            memory.emplace_back(pool_, uint64_t(size), stream_.get());
            fill(memory.back(), b.dtype);
            set.push_back(memory.back().get());
        }
    Prepared fast, plain;
    for (const Step& step : plan.steps) {
        if (!step.kernel) return (void)std::printf("%-44s is no fused kernel\n", t.name.c_str());
        std::vector<uint64_t> addresses;
        for (const int32_t b : step.buffers) addresses.push_back(sets[0][size_t(b)]);
        fast.steps.push_back(fast_step(step, addresses)), plain.steps.push_back(plain_step(step));
    }
    const auto play = [&](Prepared& p, size_t set) {
        for (ReadyStep& s : p.steps) {
            std::vector<CUdeviceptr> buffers;
            for (const int32_t b : s.buffers) buffers.push_back(sets[set][size_t(b)]);
            start(s.code, s.geometry, buffers, s.numbers, !s.which.empty() && compute_ >= 90);
        }
    };
    play(plain, 0);
    const auto want = outputs(plan, targets, sets[0]);
    for (size_t b = 0; b < plan.buffers.size(); b++)
        if (plan.buffers[b].place == Place::Out) home_.driver().cuMemsetD8Async(sets[0][b], 0xff, size_t(bytes_of_layout(targets[size_t(plan.buffers[b].index)].layout)), stream_.get());
    play(fast, 0);
    const auto got = outputs(plan, targets, sets[0]);
    play(fast, 0);
    const bool is_stable = got == outputs(plan, targets, sets[0]);
    const double error = difference(got, want, targets);
    const bool is_right = error <= t.tolerance && is_stable;
    failures += !is_right;
    const int launches = int(std::clamp<int64_t>(int64_t(4e9) / std::max<int64_t>(bytes, 1), int64_t(sets.size()), 200));
    const double us = only_checks ? INFINITY : timed_us(launches, [&](int i) { play(fast, size_t(i) % sets.size()); });
    std::string texts;
    for (const ReadyStep& s : fast.steps) {
        texts += text(texts.empty() ? "" : " + ", s.which, " (", int(s.code.milliseconds), ")");
        if (shows_registers)
            for (const Function& f : s.code.functions) texts += text(" r", f.registers, f.local_bytes ? text(" LOCAL ", f.local_bytes) : "");
    }
    const double rate = double(bytes) / us / 1e3;
    std::printf("%-44s %10.1f %8.0f %7.1f  %s, %.1e%s%s\n", t.name.c_str(), us, rate, 100 * rate / copy_, texts.c_str(), error, is_stable ? "" : " UNSTABLE", is_right ? "" : " WRONG");
    std::fflush(stdout);
}

// A tensor of so many bytes in rows of this length.
Extents rows_of(int64_t bytes, Dtype t, int64_t length) { return {std::max<int64_t>(1, bytes / bytes_of(t) / length), length}; }

void add_points(std::vector<Trial>& all, int64_t bytes)
{
    for (const Dtype t : {Dtype::f32, Dtype::f16}) {
        const std::string n = name_of(t), open = t == Dtype::f16 ? "f16(" : "(";
        const double tolerance = 1e-6;
        const Extents dense = rows_of(bytes, t, 4096), odd = rows_of(bytes, t, 4097), tall = rows_of(bytes, t, 96);
        const auto add = [&](const std::string& name, std::vector<Input> in, const std::string& words) { all.push_back({n + " " + name, std::move(in), {open + words + ")"}, tolerance}); };
        add("x * 2", {{t, dense, {}}}, "x * 2");
        add("x + y", {{t, dense, {}}, {t, dense, {}}}, "x + y");
        add("x / y", {{t, dense, {}}, {t, dense, {}}}, "x / y");
        add("x * y + z", {{t, dense, {}}, {t, dense, {}}, {t, dense, {}}}, "x * y + z");
        add("gelu(x)", {{t, dense, {}}}, "gelu(x)");
        add("gelu chain", {{t, dense, {}}}, "0.5 * x * (1 + tanh(0.79788456 * (x + 0.044715 * x * x * x))) * 1.1 + 0.3");
        add("tanh(x) * sigmoid(y)", {{t, dense, {}}, {t, dense, {}}}, "tanh(x) * sigmoid(y)");
        add("row: relu(x * y + z), 4096", {{t, dense, {}}, {t, {4096}, {}}, {t, {4096}, {}}}, "relu(x * y + z)");
        add("row: x + y, 4097", {{t, odd, {}}, {t, {4097}, {}}}, "x + y");
        add("row: x + y, 96", {{t, tall, {}}, {t, {96}, {}}}, "x + y");
        add("column: x + y", {{t, dense, {}}, {t, {dense[0], 1}, {}}}, "x + y");
        add("x[1:] + y[:-1]", {{t, dense, {}}, {t, dense, {}}}, "x[1:, 1:] + y[:-1, :-1]");
        add("pitched rows: x * 2", {{t, dense, {4096 + 64, 1}}}, "x * 2");
        add("every second: x[:, ::2] * 2", {{t, rows_of(bytes, t, 8192), {}}}, "x[:, ::2] * 2");
        add("transposed: x.T * 2", {{t, {4096, dense[0]}, {1, 4096}}}, "x * 2");
        add("x + y.T", {{t, {8192, dense[0].constant() * 4096 / 8192}, {}}, {t, {8192, dense[0].constant() * 4096 / 8192}, {1, 8192}}}, "x + y");
        add("permute 4 axes", {{t, {64, 128, std::max<int64_t>(1, dense[0].constant() * 4096 / (64 * 128 * 64)), 64}, {}}}, "permute(x, [0, 2, 1, 3]) * 2");
    }
    all.push_back({"bf16 x * y + 1", {{Dtype::bf16, rows_of(bytes, Dtype::bf16, 4096), {}}, {Dtype::bf16, rows_of(bytes, Dtype::bf16, 4096), {}}}, {"f32(x * y + 1)"}, 1e-6});
    all.push_back({"f64 x + y", {{Dtype::f64, rows_of(bytes, Dtype::f64, 4096), {}}, {Dtype::f64, rows_of(bytes, Dtype::f64, 4096), {}}}, {"x + y"}, 0});
}

void add_rows(std::vector<Trial>& all, int64_t bytes)
{
    for (const Dtype t : {Dtype::f32, Dtype::f16})
        for (const int64_t length : {32, 49, 64, 100, 256, 257, 1000, 1001, 1024, 4096, 8192, 10007, 16384, 50257, 65536, 100003, 128256, 262144, 1048576}) {
            const std::string n = name_of(t), open = t == Dtype::f16 ? "f16(" : "(", of = text(", ", length);
            const Extents dims = rows_of(bytes, t, length);
            all.push_back({n + " norm rows" + of, {{t, dims, {}}}, {open + "(x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5))"}, t == Dtype::f16 ? 2e-3 : 1e-5});
            all.push_back({n + " softmax rows" + of, {{t, dims, {}}}, {open + "softmax(x, 1))"}, t == Dtype::f16 ? 2e-3 : 1e-5});
            all.push_back({n + " sum rows" + of, {{t, dims, {}}}, {"sum(x, 1)"}, 1e-4});
            all.push_back({n + " variance rows" + of, {{t, dims, {}}}, {"var(x, 1)"}, 1e-3});
        }
    for (const int64_t length : {1024, 8191, 8192}) {
        const Extents dims = rows_of(bytes, Dtype::f16, length);
        all.push_back({text("f16 layer norm, ", length), {{Dtype::f16, dims, {}}, {Dtype::f16, {length}, {}}, {Dtype::f16, {length}, {}}}, {"f16((x - mean(x, 1)) * rsqrt(var(x, 1) + 1e-5) * y + z)"}, 4e-3});
        all.push_back({text("f16 rms norm of x + y, ", length), {{Dtype::f16, dims, {}}, {Dtype::f16, dims, {}}}, {"f16((x + y) * rsqrt(mean(square(x + y), 1) + 1e-5))"}, 4e-3});
    }
    for (const Dtype t : {Dtype::f16, Dtype::f32}) all.push_back({std::string(name_of(t)) + " sum all", {{t, rows_of(bytes, t, 65536), {}}}, {"sum(x)"}, 1e-3});
    all.push_back({"f32 sum of 16 Mi", {{Dtype::f32, {int64_t(16) << 20}, {}}}, {"sum(x)"}, 1e-4});
    all.push_back({"f32 max, sum of 256 MiB", {{Dtype::f32, {int64_t(64) << 20}, {}}}, {"sum(x)", "max(x)"}, 1e-4});
    all.push_back({"f32 softmax of 16 Mi", {{Dtype::f32, {1, int64_t(16) << 20}, {}}}, {"softmax(x, 1)"}, 1e-5});
}

void add_columns(std::vector<Trial>& all, int64_t bytes)
{
    for (const Dtype t : {Dtype::f32, Dtype::f16})
        for (const int64_t width : {8, 32, 100, 256, 1024, 8192, 13352, 16384, 65536, 262144}) {
            const std::string n = name_of(t), open = t == Dtype::f16 ? "f16(" : "(", of = text(", ", width);
            const Extents dims = rows_of(bytes, t, width);
            all.push_back({n + " sum columns" + of, {{t, dims, {}}}, {"sum(x, 0)"}, 1e-3});
            all.push_back({n + " variance columns" + of, {{t, dims, {}}}, {"var(x, 0)"}, 1e-3});
            if (width == 13352 || width == 16384 || width == 65536) all.push_back({n + " softmax columns" + of, {{t, dims, {}}}, {open + "softmax(x, 0))"}, t == Dtype::f16 ? 2e-3 : 1e-5});
            all.push_back({n + " norm columns" + of, {{t, dims, {}}}, {open + "(x - mean(x, 0)) * rsqrt(var(x, 0) + 1e-5))"}, t == Dtype::f16 ? 4e-3 : 1e-4});
        }
}

}  // namespace

int main(int count, char** words)
{
    try {
        std::vector<std::string> only;
        std::string folder;
        int64_t megabytes = 256, part = 0, parts = 1;
        bool is_dry = false, is_sweep = false, shows_registers = false, only_checks = false;
        for (int i = 1; i < count; i++) {
            const std::string word = words[i];
            if (word == "--only" && i + 1 < count) only.emplace_back(words[++i]);
            if (word == "--part" && i + 1 < count && (std::sscanf(words[++i], "%" SCNd64 "/%" SCNd64, &part, &parts) != 2 || parts < 1)) return std::puts("--part K/N"), 1;
            if (word == "--megabytes" && i + 1 < count) megabytes = std::atoll(words[++i]);
            if (word == "--texts" && i + 1 < count) folder = words[++i];
            if (word == "--registers") shows_registers = true;
            if (word == "--check") only_checks = true;
            is_dry |= word == "--dry", is_sweep |= word == "--sweep";
        }
        std::vector<Trial> all, wanted;
        add_points(all, megabytes << 20), add_rows(all, megabytes << 20), add_columns(all, megabytes << 20);
        std::erase_if(all, [&](const Trial& t) { return !only.empty() && std::ranges::none_of(only, [&](const std::string& text) { return t.name.find(text) != std::string::npos; }); });
        for (size_t i = 0; i < all.size(); i++)
            if (int64_t(i) % parts == part) wanted.push_back(all[i]);
        if (is_dry) {
            for (const Trial& t : wanted) tell(t, folder);
            return 0;
        }
        const Driver& driver = Driver::need("ew_gpu");
        const Compiler* compiler = Compiler::find();
        if (!compiler) return std::puts("no NVRTC here"), 1;
        Bench bench(driver, *compiler);
        bench.shows_registers = shows_registers, bench.only_checks = only_checks;
        for (const RowSweep& s : sweeps())
            if (is_sweep) bench.sweep(s);
        if (!bench.only_checks) bench.measure_copy();
        for (const Trial& t : wanted) bench.run(t);
        std::printf("%d wrong\n", bench.failures);
        return bench.failures != 0;
    } catch (const Error& error) {
        return std::printf("%s\n", error.text.c_str()), 1;
    }
}
