// Times whatever could run a product on Hopper, beside what the model of its choice says of it: what that model is fitted to.
//
//     choice_gpu SHAPES.txt TIMES.csv [--seconds N] [--within F] [--chosen [--most N]] [--ms N] [--memory TB] [--behind TEXT] [--dry]
//
// SHAPES: lines "fp16 1760 16 1760 nn" (also bf16 tf32 e4m3 e5m2 int8 fp32 fp64; n: as in m x k and k x n, t: transposed; "fp16 49 49 32 nt 2048": so many
// of them), or with cases as ngtool bench --csv and gemm_peers.py name them, each taken once. TIMES: a line for each way to run it, blocks last. --chosen: only how good the choice
// is, by the instances that the model thinks the N fastest (10), each in its best way by the model: of each type the mean and the worst of
// the chosen one's time by the fastest one's, and what is above 1.05. Launches are in graphs, as captured runs are, and begin before the one ahead has ended; operands are normal numbers that
// take turns until they are twice the second cache. All ways of a shape take turns too, and those that are clearly behind leave. --within:
// ways whose model is so many times the least, 2.5. --ms: how long a graph takes, 0.2; those of gemm_peers.py take 20, behind which the clock is what
// the card's power leaves. --memory: what the model takes the card's for, in TB
// a second. --behind: products with what follows them compiled in, "f16(gelu(a @ b + row) + r)" (choice_behind.h; not of batches). --dry: what the model says alone, on any
// machine, of an H200 or of --memory.
#include "lib/backend/cuda/gemm_sm90_cost.h"
#include "lib/backend/cuda/images.h"
#include "lib/backend/cuda/rounding.h"
#include "lib/backend/cuda/shipped_launch.h"
#include "lib/strided.h"
#include "tests/bench/choice_behind.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <regex>
#include <set>
#include <sstream>

using namespace ng;
using namespace ng::cuda;
namespace sm90 = gemm::sm90;

namespace {

constexpr uint64_t OPERAND_BYTES = uint64_t(5) << 29, RESULT_BYTES = uint64_t(1) << 30, BESIDE_BYTES = uint64_t(1) << 29, WORKSPACE_BYTES = uint64_t(1) << 30, ROTATED_BYTES = uint64_t(120) << 20;
constexpr uint64_t PATTERN_BYTES = uint64_t(8) << 20;
gemm::Device card = {90, 132, {true, true, true, true}, 4.8e6, {30, 15}};      // an H200 as most that were seen, with the memory of what is measured, or of --memory

// As gemm_peers.py has them.
struct Kind { const char* name; Dtype a, b, out; bool allows_tf32; };
constexpr Kind KINDS[] = {
    {"fp16", Dtype::f16,  Dtype::f16,  Dtype::f16,  false}, {"bf16", Dtype::bf16, Dtype::bf16, Dtype::bf16, false},
    {"tf32", Dtype::f32,  Dtype::f32,  Dtype::f32,  true},  {"fp32", Dtype::f32,  Dtype::f32,  Dtype::f32,  false},
    {"e4m3", Dtype::e4m3, Dtype::e4m3, Dtype::f16,  false}, {"e5m2", Dtype::e5m2, Dtype::e4m3, Dtype::f16,  false},
    {"int8", Dtype::i8,   Dtype::i8,   Dtype::i32,  false}, {"fp64", Dtype::f64,  Dtype::f64,  Dtype::f64,  false},
};

struct Case {
    Kind    kind;
    int64_t m, n, k;
    char    a, b;
    int64_t batches = 1;
    std::shared_ptr<const bench::Behind> behind = {};
    uint64_t a_bytes() const { return aligned(uint64_t(batches * m * k * bytes_of(kind.a))); }
    uint64_t b_bytes() const { return aligned(uint64_t(batches * k * n * bytes_of(kind.b))); }
    uint64_t result_bytes() const { return aligned(uint64_t(batches * m * n * bytes_of(kind.out))); }
};

std::string name_of(const Case& s) { return text(s.kind.name, " ", s.m, " ", s.n, " ", s.k, " ", std::string{s.a, s.b}, s.batches > 1 ? text(" ", s.batches) : ""); }

std::vector<Case> read_shapes(const char* path)
{
    const std::regex      named("(\\w+) (?:b(\\d+) )?m(\\d+) n(\\d+) k(\\d+) ([nt][nt])\\b.*");
    std::vector<Case>    all;
    std::set<std::string> seen;
    std::ifstream         file(path);
    for (std::string line; std::getline(file, line);) {
        std::smatch case_of;
        if (std::regex_search(line, case_of, named)) line = text(case_of.str(1), " ", case_of.str(3), " ", case_of.str(4), " ", case_of.str(5), " ", case_of.str(6), " ", case_of.str(2));
        std::istringstream words(line);
        std::string        kind;
        Case              s = {};
        if (!(words >> kind >> s.m >> s.n >> s.k >> s.a >> s.b)) continue;
        if (!(words >> s.batches)) s.batches = 1;
        const auto* const k = std::ranges::find(KINDS, kind, [](const Kind& x) { return std::string(x.name); });
        if (k == std::end(KINDS)) continue;
        s.kind = *k;
        if (seen.insert(name_of(s)).second) all.push_back(s);
    }
    return all;
}

gemm::Problem problem_of(const Case& s)
{
    gemm::Problem p;
    std::memset(static_cast<void*>(&p), 0, sizeof p);
    p.a_type = s.kind.a, p.b_type = s.kind.b, p.c_type = s.kind.out, p.allows_tf32 = s.kind.allows_tf32;
    p.m = s.m, p.n = s.n, p.k = s.k, p.batches = s.batches;
    p.a_batch = s.m * s.k, p.b_batch = s.k * s.n, p.c_batch = s.m * s.n;
    p.a_row = s.a == 'n' ? s.k : 1, p.a_depth = s.a == 'n' ? 1 : s.m, p.b_depth = s.b == 'n' ? s.n : 1, p.b_column = s.b == 'n' ? 1 : s.k;
    p.c_row = s.n, p.c_column = 1;
    p.epilogue.is_cast = bytes_of(s.kind.out) == 2;
    if (s.behind) s.behind->add_to(p);
    return p;
}

// Nothing here asks for more than there is room for; what follows batches is not laid out.
bool has_room(const Case& s, const sm90::Form& form)
{
    return s.a_bytes() + s.b_bytes() <= OPERAND_BYTES && s.result_bytes() <= RESULT_BYTES && (!s.behind || (s.batches == 1 && s.behind->bytes_of(true) <= BESIDE_BYTES)) &&
           sm90::copies_workspace(form) + sm90::MOST_PARTIAL_BYTES <= WORKSPACE_BYTES;
}

struct Timed {
    sm90::Choice        choice;
    double              model_us;
    std::vector<double> us = {};
    CUgraphExec         graph = nullptr;
    int                 count = 0;
    double median() const
    {
        if (us.empty()) return HUGE_VAL;
        std::vector<double> sorted = us;
        std::ranges::sort(sorted);
        return sorted[sorted.size() / 2];
    }
};

// More than the library would look at: every cluster and cut, and wherever blocks may be.
std::vector<Timed> ways_of(const sm90::Form& form, double within)
{
    std::vector<Timed> all, kept;
    const auto offer = [&](const sm90::Choice& c) {
        if (sm90::is_possible(form, c) && sm90::partial_bytes(form, card, c) <= sm90::MOST_PARTIAL_BYTES) all.push_back({c, sm90::cost_us(form, card, c)});
    };
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& x = sm90::instances()[i];
        if (!sm90::takes_group(form, x)) continue;
        if (!x.is_split) offer({i, x.cluster, 1, 8});
        if (!x.is_split) continue;
        for (const int32_t cluster : {1, 2, 3, 4, 5, 6, 8})
            for (int32_t splits = 1; splits <= (sm90::steps_of(form) < sm90::DEEP ? 1 : sm90::MOST_SPLITS); splits *= 2)
                for (const int32_t together : std::set<int32_t>{cluster, 4, 6, 8})
                    if (together % cluster == 0) offer({i, cluster, splits, together});
    }
    double least = HUGE_VAL;
    for (const Timed& t : all) least = std::min(least, t.model_us);
    for (const Timed& t : all)
        if (t.model_us <= least * within) kept.push_back(t);
    return kept;
}

bool is_same(const sm90::Choice& x, const sm90::Choice& y) { return x.instance == y.instance && x.cluster == y.cluster && x.splits == y.splits; }

// The choice, then of other instances, those that the model thinks the fastest, each in its best way by the model.
std::vector<Timed> best_ways_of(const sm90::Form& form, size_t most)
{
    const auto timed = [&](const sm90::Choice& c) { return Timed{c, sm90::cost_us(form, card, c)}; };
    const sm90::Choice chosen = sm90::choose(form, card, sm90::MOST_PARTIAL_BYTES);
    std::vector<Timed> all;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const auto best = sm90::choose_among(form, card, sm90::MOST_PARTIAL_BYTES, i);
        if (best && !is_same(*best, chosen)) all.push_back(timed(*best));
    }
    std::ranges::stable_sort(all, {}, &Timed::model_us);
    all.insert(all.begin(), timed(chosen));
    if (all.size() > most) all.erase(all.begin() + std::ptrdiff_t(most), all.end());
    return all;
}

// How many times the fastest way's time the choice took, by type.
class Verdicts {
  public:
    // The choice stands first.
    void add(const Case& s, const std::vector<Timed>& all)
    {
        const Timed& fastest = *std::ranges::min_element(all, {}, &Timed::median);
        const double ratio = all.front().median() / fastest.median();
        of_kind_[s.kind.name].push_back({ratio, text(name_of(s), ": ", words_of(all.front()), ", fastest of ", all.size(), ": ", words_of(fastest))});
    }
    void print(size_t most) const
    {
        constexpr double WORTH = 1.05;
        for (const auto& [kind, verdicts] : of_kind_) {
            double sum = 0;
            for (const Verdict& v : verdicts) sum += v.ratio;
            const Verdict& worst = *std::ranges::max_element(verdicts, {}, &Verdict::ratio);
            std::printf("%s: %zu shapes, the choice by the fastest of at most %zu instances: mean %.3f, worst %.3f (%s)\n", kind.c_str(), verdicts.size(), most, sum / double(verdicts.size()), worst.ratio,
                        worst.words.c_str());
            for (const Verdict& v : verdicts)
                if (v.ratio > WORTH) std::printf("    %.3f  %s\n", v.ratio, v.words.c_str());
        }
    }

  private:
    struct Verdict { double ratio; std::string words; };
    static std::string words_of(const Timed& t)
    {
        char us[32];
        std::snprintf(us, sizeof us, "%.2f us (%.2f by the model)", t.median(), t.model_us);
        return text(sm90::instances()[t.choice.instance].tile, " cluster ", t.choice.cluster, " splits ", t.choice.splits, " ", us);
    }
    std::map<std::string, std::vector<Verdict>> of_kind_;
};

class Bench {
  public:
    Bench(const Driver& driver, double graph_us)
        : graph_us_(graph_us), home_(DeviceContext::primary(driver, 0)), now_(home_), pool_(home_), stream_(make_stream(home_, StreamKind::Independent)),
          begin_(home_, Event::Timing::On), end_(home_, Event::Timing::On), basic_(home_, std::string(basic_image()), Module::Accepts::Ptx),
          operands_(pool_, OPERAND_BYTES, stream_.get()), results_(pool_, RESULT_BYTES, stream_.get()), matrices_(pool_, BESIDE_BYTES, stream_.get()),
          vectors_(pool_, BESIDE_BYTES, stream_.get()), workspace_(pool_, WORKSPACE_BYTES, stream_.get())
    {
        card.memory_bytes_per_us = rates_of(driver, home_.device()).bytes_per_us;
        for (uint32_t k = 0; k < uint32_t(basic::BasicKernel::count_); k++) basic_functions_.push_back(basic_.function(basic::name_of(basic::BasicKernel(k))));
        for (const gemm::Image image : {gemm::Image::Sm90Half, gemm::Image::Sm90Byte, gemm::Image::Sm90Wide}) {
            modules_.emplace_back(home_, std::string(gemm_image(image)), Module::Accepts::Ptx);
            for (const gemm::KernelFacts& k : gemm::kernels_of(image)) {
                functions_[image].push_back(modules_.back().function(k.name));
                if (k.shared_bytes) allow_shared(home_, functions_[image].back(), k.shared_bytes);
            }
        }
        card.clusters = clusters_of(home_, gemm::Image::Sm90Half, functions_[gemm::Image::Sm90Half]);
    }
    void measure(const Case& s, const sm90::Form& form, double within, std::FILE* out);
    void judge(const Case& s, const sm90::Form& form, size_t most, std::FILE* out, Verdicts& verdicts);

  private:
    void   fill(const Kind& kind);
    void   fill(const DeviceMemory& memory, uint64_t bytes, Dtype type);
    void   run(const Case& s, const sm90::Choice& c, int turn);
    void   capture(const Case& s, Timed& t);
    void   prepare(const Case& s, const sm90::Form& form, std::vector<Timed>& all);
    double replay(const Timed& t);
    void   warm(const std::vector<Timed>& all);
    void   rounds(std::vector<Timed>& all, double within, int count);
    void   release(std::vector<Timed>& all);

    double         graph_us_;            // that a graph is to take
    DeviceContext  home_;
    CurrentContext now_;
    MemoryPool     pool_;
    Stream         stream_;
    Event          begin_, end_;
    Module         basic_;
    std::vector<Function> basic_functions_;
    std::vector<Module>   modules_;
    std::map<gemm::Image, std::vector<Function>> functions_;
    DeviceMemory   operands_, results_, matrices_, vectors_, workspace_;
    bench::BehindTexts texts_;
    Dtype          filled_ = Dtype::bool_;
};

// Whole numbers of -127 to 127, or normal ones.
void Bench::fill(const DeviceMemory& memory, uint64_t bytes, Dtype type)
{
    std::vector<char> pattern(PATTERN_BYTES);
    std::mt19937      random(7);
    std::normal_distribution<double> normal;
    std::vector<uint64_t>            codes(1 << 16);
    for (uint64_t& c : codes) c = encode(type, is_float(type) ? normal(random) : double(int64_t(random() % 255) - 127));
    for (uint64_t i = 0; i < PATTERN_BYTES; i += uint64_t(bytes_of(type))) std::memcpy(&pattern[i], &codes[random() % codes.size()], size_t(bytes_of(type)));
    const Driver& driver = home_.driver();
    driver.cuMemcpyHtoDAsync(memory.get(), pattern.data(), PATTERN_BYTES, stream_.get());
    for (uint64_t done = PATTERN_BYTES; done < bytes; done += std::min(done, bytes - done)) driver.cuMemcpyDtoDAsync(memory.get() + done, memory.get(), std::min(done, bytes - done), stream_.get());
    driver.cuStreamSynchronize(stream_.get());
}
void Bench::fill(const Kind& kind)
{
    if (kind.a == filled_) return;
    filled_ = kind.a;
    fill(operands_, OPERAND_BYTES, kind.a), fill(matrices_, BESIDE_BYTES, bench::beside(kind.out)), fill(vectors_, BESIDE_BYTES, Dtype::f32);
}

void Bench::run(const Case& s, const sm90::Choice& c, int turn)
{
    const bench::BehindTexts::Code* const code = s.behind ? &texts_.of(c.instance) : nullptr;
    auto body = [&](const gemm::Launch& l) { launch_with(home_, l.image == gemm::Image::Text ? code->functions[l.kernel] : functions_.at(l.image)[l.kernel], shape_of(l), stream_.get(), l.numbers); };
    auto basic_body = [&](const basic::Launch& l) { launch_with(home_, basic_functions_[size_t(l.kernel)], shape_of(l), stream_.get(), l.numbers); };
    const gemm::Launcher  launcher(body);
    const basic::Launcher basic_launcher(basic_body);
    gemm::Problem  p = problem_of(s);
    const uint64_t a = s.a_bytes(), b = s.b_bytes(), r = s.result_bytes();
    const uint64_t sets = std::clamp<uint64_t>((ROTATED_BYTES + a + b + r - 1) / (a + b + r), 1, 64), at = uint64_t(turn) % sets;
    p.a = reinterpret_cast<void*>(operands_.get() + at * (a + b)), p.b = reinterpret_cast<void*>(operands_.get() + at * (a + b) + a), p.c = reinterpret_cast<void*>(results_.get() + at * r);
    if (s.behind) s.behind->add_to(p, matrices_.get(), vectors_.get(), uint64_t(turn) % std::clamp<uint64_t>(BESIDE_BYTES / std::max<uint64_t>(s.behind->bytes_of(true), 1), 1, sets));
    sm90::Form form;
    sm90::make_form(p, true, form);
    sm90::run_as(form, card, c, code ? &code->finisher : nullptr, {reinterpret_cast<void*>(workspace_.get()), WORKSPACE_BYTES, launcher, basic_launcher, &home_.driver()});
}

void Bench::capture(const Case& s, Timed& t)
{
    constexpr double MOST = 400;         // launches of a graph
    const Driver& driver = home_.driver();
    t.count = int(std::clamp(graph_us_ / t.model_us, 2.0, MOST));
    CUgraph graph = nullptr;
    driver.cuStreamBeginCapture(stream_.get(), CU_STREAM_CAPTURE_MODE_RELAXED);
    for (int i = 0; i < t.count; i++) run(s, t.choice, i);
    driver.cuStreamEndCapture(stream_.get(), &graph);
    driver.cuGraphInstantiateWithFlags(&t.graph, graph, 0);
    driver.cuGraphDestroy(graph);
    driver.cuGraphLaunch(t.graph, stream_.get());
}

double Bench::replay(const Timed& t)
{
    begin_.record(stream_.get());
    home_.driver().cuGraphLaunch(t.graph, stream_.get());
    end_.record(stream_.get());
    end_.wait();
    return double(end_.milliseconds_since(begin_)) * 1000 / t.count;
}

void Bench::rounds(std::vector<Timed>& all, double within, int count)
{
    double least = HUGE_VAL;
    for (const Timed& t : all) least = std::min(least, t.median());
    for (int i = 0; i < count; i++)
        for (Timed& t : all)
            if (t.us.empty() || t.median() <= least * within) t.us.push_back(replay(t));
}

void Bench::warm(const std::vector<Timed>& all)
{
    constexpr double WARM_US = 10000;
    const auto least = std::ranges::min_element(all, {}, &Timed::model_us);
    for (double warm = 0; warm < WARM_US; warm += replay(*least) * least->count) {}
}

void Bench::release(std::vector<Timed>& all)
{
    home_.driver().cuStreamSynchronize(stream_.get());
    for (Timed& t : all) home_.driver().cuGraphExecDestroy(t.graph), t.graph = nullptr;
}

void print(std::FILE* out, const Case& s, const sm90::Form& form, const Timed& t)
{
    const sm90::Instance& i = sm90::instances()[t.choice.instance];
    const sm90::Form      own = sm90::form_of(form, i);
    const double          blocks = i.is_split ? sm90::blocks_of(own, card, i, t.choice).blocks : double(sm90::tiling_of(own, card, i).tiles * i.cluster);
    std::fprintf(out, "%s,%lld,%lld,%lld,%c%c%s,%s,%d,%d,%d,%.4g,%.5g,%zu,%g\n", s.kind.name, (long long)s.m, (long long)s.n, (long long)s.k, s.a, s.b, s.batches > 1 ? text(" ", s.batches).c_str() : "", i.tile, t.choice.cluster, t.choice.splits, t.choice.group,
                 t.model_us, t.us.empty() ? 0 : t.median(), t.us.size(), blocks);
}

// Ways are ready to be replayed.
void Bench::prepare(const Case& s, const sm90::Form& form, std::vector<Timed>& all)
{
    fill(s.kind);
    std::vector<uint32_t> instances;
    for (const Timed& t : all) instances.push_back(t.choice.instance);
    if (s.behind) texts_.need(home_, form, instances, s.behind->text());
    for (Timed& t : all) capture(s, t);
}

void Bench::measure(const Case& s, const sm90::Form& form, double within, std::FILE* out)
{
    constexpr int GROUPED = 2;               // tiles whose order is tried, too
    std::vector<Timed> all = ways_of(form, within);
    prepare(s, form, all);
    warm(all);
    rounds(all, 1, 1), rounds(all, 1.5, 1), rounds(all, 1.2, 3), rounds(all, 1.06, 5);
    release(all);
    for (const Timed& t : all) print(out, s, form, t);
    std::vector<Timed> grouped;
    std::ranges::stable_sort(all, {}, &Timed::median);
    for (const Timed& t : all) {
        const sm90::Instance& i = sm90::instances()[t.choice.instance];
        if (i.is_split || divided_up(s.m, i.m) * divided_up(s.n, i.n) <= 2 * card.units || grouped.size() >= GROUPED * 4) continue;
        for (const int32_t g : {1, 4, 16, 8}) grouped.push_back({t.choice, t.median()}), grouped.back().choice.group = g;
    }
    for (Timed& t : grouped) capture(s, t);
    rounds(grouped, HUGE_VAL, 5);
    release(grouped);
    for (const Timed& t : grouped) std::fputs("group,", out), print(out, s, form, t);
    std::fflush(out);
}

// In random orders: the card's clock follows its power, and who always came behind light work would seem faster.
void Bench::judge(const Case& s, const sm90::Form& form, size_t most, std::FILE* out, Verdicts& verdicts)
{
    constexpr int TURNS = 11;
    std::vector<Timed> all = best_ways_of(form, most);
    prepare(s, form, all);
    warm(all);
    std::vector<size_t> order(all.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::mt19937 random(1);
    for (int i = 0; i < TURNS; i++) {
        std::ranges::shuffle(order, random);
        for (const size_t j : order) all[j].us.push_back(replay(all[j]));
    }
    release(all);
    for (const Timed& t : all) print(out, s, form, t);
    std::fflush(out);
    verdicts.add(s, all);
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc < 3) return std::puts("choice_gpu SHAPES.txt TIMES.csv [--seconds N] [--within F] [--chosen [--most N]] [--ms N] [--memory TB] [--behind TEXT] [--dry]"), 2;
    double seconds = 1e9, within = 2.5, memory = 0, graph_ms = 0.2;
    size_t most = 10;
    bool   is_dry = false, is_of_choice = false;
    std::string behind;
    for (int i = 3; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--dry") is_dry = true;
        else if (word == "--chosen") is_of_choice = true;
        else if (word == "--behind" && i + 1 < argc) behind = argv[++i];
        else if (word == "--seconds" && i + 1 < argc) seconds = std::atof(argv[++i]);
        else if (word == "--ms" && i + 1 < argc) graph_ms = std::atof(argv[++i]);
        else if (word == "--memory" && i + 1 < argc) memory = std::atof(argv[++i]) * 1e6;
        else if (word == "--within" && i + 1 < argc) within = std::atof(argv[++i]);
        else if (word == "--most" && i + 1 < argc) most = size_t(std::max(1, std::atoi(argv[++i])));
        else return std::printf("choice_gpu knows no \"%s\"\n", word.c_str()), 2;
    }
    std::vector<Case> shapes = read_shapes(argv[1]);
    std::FILE* const out = std::fopen(argv[2], "w");
    if (!out) return std::puts("TIMES cannot be written"), 2;
    const auto begin = std::chrono::steady_clock::now();
    size_t   done = 0;
    Verdicts verdicts;
    try {
        std::unique_ptr<Bench> bench;
        if (!is_dry) bench = std::make_unique<Bench>(Driver::need("times of products"), graph_ms * 1000);
        if (memory > 0) card.memory_bytes_per_us = memory;
        for (Case& s : shapes) {
            if (!behind.empty()) s.behind = std::make_shared<bench::Behind>(behind, problem_of(s));
            if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > seconds) break;
            sm90::Form form;
            if (!sm90::make_form(problem_of(s), false, form) || !has_room(s, form)) std::printf("left out: %s\n", name_of(s).c_str());
            else if (bench && is_of_choice) bench->judge(s, form, most, out, verdicts);
            else if (bench) bench->measure(s, form, within, out);
            else
                for (const Timed& t : is_of_choice ? best_ways_of(form, most) : ways_of(form, within)) print(out, s, form, t);
            done++;
        }
    } catch (const Error& error) {
        std::printf("%s\n", error.text.c_str());
        return 1;
    }
    verdicts.print(most);
    std::printf("%zu of %zu shapes in %.1f s\n", done, shapes.size(), std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    std::fclose(out);
    return 0;
}
