// ngtool bench: times programs on random data in rotating buffers; medians, printed and as CSV beside those of peers.
#include "ngtool_bench.h"

#include "json_reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace ngtool {
namespace {

constexpr double CPU_FLOPS_MAX = 2e10;                  // a case of more is skipped on a CPU without --all
constexpr double QUICK_BYTES_MAX = 1 << 22, QUICK_FLOPS_MAX = 3e8;
constexpr uint64_t MEMORY_MAX = uint64_t(3) << 30;      // of all copies of one case

// One set of arguments and outputs.
struct Buffers {
    std::vector<Tensor> owners;
    std::vector<ng_tensor*> args, out;
};

ng_tensor* add_tensor(Buffers& buffers, ng_ctx* context, const ng_shape& shape)
{
    ng_tensor* tensor = nullptr;
    ng_error fault{};
    check(ng_tensor_create(context, &shape, &tensor, &fault), fault);
    buffers.owners.emplace_back(tensor);
    return tensor;
}

std::vector<ng_shape> out_shapes(const ng_prog* program)
{
    ng_prog_info info = sized<ng_prog_info>();
    ng_error fault{};
    check(ng_prog_get_info(program, &info, &fault), fault);
    std::vector<ng_shape> shapes;
    for (uint32_t i = 0; i < info.nout; i++) {
        shapes.push_back(sized<ng_shape>());
        const char* name = nullptr;
        check(ng_prog_port(program, info.nargs + i, &shapes.back(), &name, &fault), fault);
        shapes.back().flags &= NG_STRIDED;
    }
    return shapes;
}

uint64_t bytes_of(const std::vector<ng_shape>& shapes)
{
    uint64_t bytes = 0;
    for (const ng_shape& shape : shapes) bytes += dense_bytes(shape);
    return bytes;
}

// How near to its limit a program is that takes so long; "" where the library does not know its device's.
std::string nearness(const ng_prog* program, double us)
{
    double memory_us = 0, arithmetic_us = 0, limit_us = 0;
    for (const Json& step : read_json(explained(program)).list("steps")) {
        const Json *memory = step.find("memory_us"), *arithmetic = step.find("arithmetic_us");
        if (!memory || !arithmetic) return "";
        memory_us += memory->number, arithmetic_us += arithmetic->number, limit_us += std::max(memory->number, arithmetic->number);
    }
    return text("  %3.0f %% of %s (bytes %.1f us, instructions about %.1f us)", 100 * limit_us / us,
                arithmetic_us > memory_us ? "its instructions" : "its bytes", memory_us, arithmetic_us);
}

}

Program compile_case(ng_ctx* context, const Case& what)
{
    const Scope scope(ng_scope_create(context, 0));
    Exprs params;
    for (const ng_shape& shape : what.args) params.push_back(ng_param(scope.get(), uint32_t(params.size()), &shape));
    const Exprs roots = what.build(scope.get(), params);
    std::vector<const ng_shape*> layouts;
    for (const ng_shape& shape : what.out) layouts.push_back(&shape);
    ng_compile_desc desc = sized<ng_compile_desc>();
    desc.flags = what.flags;
    desc.out = layouts.empty() ? nullptr : layouts.data();
    ng_prog* program = nullptr;
    ng_error fault{};
    check(ng_compile(context, &desc, roots.data(), uint32_t(roots.size()), &program, &fault), fault);
    Program owner(program);
    check(ng_prog_wait(program, UINT64_MAX, &fault), fault);
    return owner;
}

double now_us()
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Bench::Bench(const Arguments& arguments)
    : context_(open_context(arguments)), is_quick_(arguments.has("--quick")), is_all_(arguments.has("--all")),
      only_(arguments.get("--only", ""))
{
    ng_device_info info = sized<ng_device_info>();
    check(ng_ctx_info(context_.get(), &info), ng_error{});
    is_cpu_ = strcmp(info.backend, "cpu") == 0;
    cache_bytes_ = std::max<uint64_t>(info.l2_bytes, 1 << 20);
    if (!is_cpu_) recorder_ = Recorder::of_device(info.ordinal);
    const uint32_t version = ng_version();
    if (arguments.has("--interim")) peer_ = "interim";
    printf("# %s, %s, libng %u.%u.%u%s\n", info.name, info.arch, version >> 16, version >> 8 & 0xff, version & 0xff, arguments.has("--interim") ? ", nothing compiled" : "");
}

double Bench::median_us(const std::function<void(size_t)>& call) const
{
    const double target_us = is_quick_ ? 2e3 : 2e4;
    const auto sync = [&] {
        ng_error fault{};
        check(ng_ctx_sync(context_.get(), nullptr, UINT64_MAX, &fault), fault);
    };
    size_t next = 0;
    const auto batch = [&](size_t count) {
        sync();
        const double start = now_us();
        for (size_t i = 0; i < count; i++) call(next++);
        sync();
        return (now_us() - start) / double(count);
    };
    double once = batch(1);
    if (once < target_us) once = std::min(batch(1), batch(2));
    const size_t count = size_t(std::clamp(target_us / std::max(once, 1e-3), 1.0, 1e6));
    const int repetitions = is_quick_ || once > 5e5 ? 3 : 7;
    std::vector<double> times;
    for (int i = 0; i < repetitions; i++) times.push_back(batch(count));
    return median(times);
}

double Bench::recorded_us(const std::function<void(void*, size_t)>& run_on, double launched_us) const
{
    constexpr double MOST = 500;
    const size_t count = size_t(std::clamp((is_quick_ ? 2e3 : 2e4) / launched_us, 1.0, MOST));
    for (size_t i = 0; i < count; i++) run_on(recorder_->stream(), i);      // what first runs on a stream make is not to be recorded
    ng_error fault{};
    check(ng_ctx_sync(context_.get(), nullptr, UINT64_MAX, &fault), fault);
    return recorder_->median_us([&](size_t i) { run_on(recorder_->stream(), i); }, count, is_quick_ ? 3 : 7);
}

void Bench::run(const std::string& section, const Case& what)
{
    if (!wants(what.name)) return;
    const double bytes = double(bytes_of(what.args));
    const bool is_slow = is_cpu_ && !is_all_ && (what.flops > CPU_FLOPS_MAX || bytes > double(MEMORY_MAX) / 2);
    const bool is_large = is_quick_ && (bytes > QUICK_BYTES_MAX || what.flops > QUICK_FLOPS_MAX);
    if (is_slow || is_large) return void(skipped_++);
    try {
        run_checked(section, what);
    }
    catch (const Failure& failure) {
        fail(what.name, failure.what());
    }
}

void Bench::run_checked(const std::string& section, const Case& what)
{
    const Program program = compile_case(context_.get(), what);
    const std::vector<ng_shape> results = what.out.empty() ? out_shapes(program.get()) : what.out;
    const uint64_t bytes = std::max<uint64_t>(1, bytes_of(what.args) + bytes_of(results));
    uint64_t copies = what.is_cached ? 1 : std::clamp<uint64_t>(2 * cache_bytes_ / bytes + 1, 1, 64);
    copies = std::max<uint64_t>(1, std::min(copies, MEMORY_MAX / bytes));

    std::vector<Buffers> sets(copies);
    uint64_t seed = 1;
    for (Buffers& set : sets) {
        for (const ng_shape& shape : what.args) {
            set.args.push_back(add_tensor(set, context_.get(), shape));
            fill_random(context_.get(), set.args.back(), seed++, what.normal);
        }
        for (const ng_shape& shape : results) set.out.push_back(add_tensor(set, context_.get(), shape));
    }
    const auto run_on = [&](void* stream, size_t i) {
        const Buffers& set = sets[i % sets.size()];
        ng_run run = sized<ng_run>();
        run.args = set.args.data();
        run.nargs = uint32_t(set.args.size());
        run.out = set.out.data();
        run.nout = uint32_t(set.out.size());
        ng_error fault{};
        if (check(ng_prog_run(program.get(), stream, &run, &fault), fault) == NG_NOT_READY) throw Failure("a program that was waited for is not ready");
    };
    const double launched = median_us([&](size_t i) { run_on(nullptr, i); });
    const double recorded = recorder_ && !what.is_of_host ? recorded_us(run_on, launched) : 0;
    const double us = recorded > 0 ? recorded : launched;
    emit(section, what.name, us, what.work, what.unit, what.has_limit ? nearness(program.get(), us) : "");
}

void Bench::emit(const std::string& section, const std::string& name, double us, double work, const char* unit, const std::string& note)
{
    double rate = work / us / 1e3;                              // GB/s, GFLOP/s
    if (strcmp(unit, "TFLOP/s") == 0) rate = work / us / 1e6;
    if (strcmp(unit, "k/s") == 0) rate = 1e3 / us;
    if (work == 0 && strcmp(unit, "k/s") != 0) rate = 0;
    rows_.push_back({ section, name, us, rate, unit });
    printf("%-6s %-52s %-6s %12.2f us", section.c_str(), name.c_str(), peer_, us);
    if (rate > 0) printf(" %10.*f %s", rate < 10 ? 3 : 1, rate, unit);
    puts(note.c_str());
    fflush(stdout);
}

void Bench::fail(const std::string& name, const std::string& why)
{
    failed_++;
    printf("# failed: %s: %s\n", name.c_str(), why.c_str());
    fflush(stdout);
}

int Bench::finish(const std::string& csv_path) const
{
    if (skipped_) printf("# %d cases were skipped: they take long on a CPU (--all runs them) or --quick leaves them out\n", skipped_);
    if (failed_) printf("# %d cases failed\n", failed_);
    if (rows_.empty() && !skipped_ && !failed_) throw Failure("no case of these suites has \"" + only_ + "\" in its name");
    if (csv_path.empty()) return failed_ ? 1 : 0;
    FILE* file = fopen(csv_path.c_str(), "w");
    if (!file) throw Failure(csv_path + " cannot be written");
    fputs("section,case,peer,us,rate,unit\n", file);
    for (const Row& row : rows_)
        fprintf(file, "%s,%s,%s,%.4f,%.6g,%s\n", row.section.c_str(), row.name.c_str(), peer_, row.us, row.rate, row.unit.c_str());
    if (fclose(file) != 0) throw Failure(csv_path + " cannot be written: is the disk full?");
    return failed_ ? 1 : 0;
}

int run_bench(const Arguments& arguments)
{
    struct Suite { const char* name; void (*run)(Bench&); };
    static const Suite suites[] = {
        { "ew", bench_ew },     { "chains", bench_chains }, { "gemm", bench_gemm }, { "epilogue", bench_epilogue },
        { "prologue", bench_prologue }, { "conv", bench_conv }, { "dw", bench_dw },     { "pool", bench_pool },
        { "small", bench_small },       { "cpu", bench_cpu },
    };
    const auto find = [](const std::string& name) {
        return std::find_if(std::begin(suites), std::end(suites), [&](const Suite& suite) { return name == suite.name; });
    };
    if (arguments.words.empty()) throw Failure("bench wants a suite: ew chains gemm epilogue prologue conv dw pool small cpu", 2);
    for (const std::string& name : arguments.words)
        if (find(name) == std::end(suites)) throw Failure("there is no suite " + name + ": ew chains gemm epilogue prologue conv dw pool small cpu", 2);
    Bench bench(arguments);
    for (const std::string& name : arguments.words) find(name)->run(bench);
    return bench.finish(arguments.get("--csv", ""));
}

}
