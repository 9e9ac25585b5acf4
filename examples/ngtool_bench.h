// What ngtool's measuring and its lists of cases share: a case, how it is timed, where its row goes.
#pragma once
#include "ngtool_graph.h"

namespace ngtool {

using Exprs = std::vector<ng_expr*>;

// A compiled program on random data.
struct Case {
    std::string name;
    double      work = 0;                   // bytes or operations of one run; 0: a rate of runs
    const char* unit = "GB/s";              // GB/s, GFLOP/s, TFLOP/s, k/s
    std::vector<ng_shape> args, out;        // out empty: row-major
    std::function<Exprs(ng_scope* scope, const Exprs& args)> build;
    bool        normal = false;             // data: normal, else uniform in [0, 1)
    bool        is_cached = false;          // stay in the cache: the same buffers every time
    bool        is_of_host = false;         // what a run costs the host counts, too
    double      flops = 0;                  // to judge whether a CPU takes too long
    uint32_t    flags = 0;                  // NG_PROG_*
    bool        has_limit = false;          // its row says how near it is to what its bytes or instructions allow
};
Program compile_case(ng_ctx* context, const Case& what);        // and waits until it is as fast as it gets

class Bench {
public:
    explicit Bench(const Arguments& arguments);
    ng_ctx* context() const { return context_.get(); }
    bool is_cpu() const { return is_cpu_; }
    bool is_quick() const { return is_quick_; }
    bool wants(const std::string& name) const { return name.find(only_) != std::string::npos; }

    // Compiles, fills, warms up, times, prints. On a GPU runs are recorded as a graph, but for what is of the host or cannot be. A case that
    // fails is printed as such and counted.
    void run(const std::string& section, const Case& what);
    // The median microseconds of one call(i), i = 0, 1 ..; as many calls as it takes to be measured well.
    double median_us(const std::function<void(size_t)>& call) const;
    void emit(const std::string& section, const std::string& name, double us, double work, const char* unit, const std::string& note = "");
    void fail(const std::string& name, const std::string& why);
    int  finish(const std::string& csv_path) const;

private:
    struct Row { std::string section, name; double us, rate; std::string unit; };
    std::unique_ptr<Recorder> recorder_;    // of a GPU; its stream outlives the context
    Context          context_;
    uint64_t         cache_bytes_ = 0;
    bool             is_cpu_ = false, is_quick_ = false, is_all_ = false;
    const char*      peer_ = "ng";         // as whom it is written down
    std::string      only_;
    std::vector<Row> rows_;
    int              failed_ = 0, skipped_ = 0;

    void run_checked(const std::string& section, const Case& what);
    double recorded_us(const std::function<void(void* stream, size_t)>& run_on, double launched_us) const;     // 0: cannot be recorded
};

double now_us();                            // of a steady clock

void bench_chains(Bench& bench);
void bench_ew(Bench& bench);
void bench_gemm(Bench& bench);
void bench_epilogue(Bench& bench);
void bench_prologue(Bench& bench);
void bench_conv(Bench& bench);
void bench_dw(Bench& bench);
void bench_pool(Bench& bench);
void bench_small(Bench& bench);
void bench_cpu(Bench& bench);

}
