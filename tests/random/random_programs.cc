// Random programs through the C header, fused against unfused against references: random_programs --count N --seed S.
#include "tests/random/draw.h"
#include "tests/random/drawn.h"
#include "tests/random/report.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include <unistd.h>

namespace programs {
namespace {

constexpr double MOST_NOT_JUDGED = 0.08;   // a reference that says less than this leaves out is no reference
constexpr double ENOUGH = 1e5;             // elements, for that share to mean something
constexpr int    MOST_SHOWN = 10;          // faults that are shrunk and printed
constexpr size_t MOST_THREADS = 64;
constexpr uint64_t MANY = 5000;            // programs, among which everything that is drawn should be met

struct Options {
    uint64_t    count = 10000, seed = 1, first = 0;
    unsigned    threads = 2;
    std::string backend = "cpu", pretended;
    bool        is_verbose = false;
};

// What a signal finds: the programs that run now, and their seed.
constexpr uint64_t NONE = ~uint64_t(0);
std::atomic<uint64_t> running_seed, running[MOST_THREADS];

// A crash, or the end of patience with a program that hangs: says which programs to run again.
void on_signal(int signal)
{
    for (const auto& number : running) {
        char line[200];
        if (number == NONE) continue;
        const int length = std::snprintf(line, sizeof line, "signal %d while this ran: --seed %llu --first %llu --count 1 --verbose\n", signal,
                                         static_cast<unsigned long long>(running_seed), static_cast<unsigned long long>(number));
        (void)!::write(STDOUT_FILENO, line, size_t(length));
    }
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}
void watch(uint64_t seed)
{
    running_seed = seed;
    for (auto& number : running) number = NONE;
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) std::signal(signal, on_signal);
}

class Campaign {
  public:
    explicit Campaign(const Options& options) : o_(options), drawn_(table_) {}
    int run()
    {
        watch(o_.seed);
        std::vector<std::thread> workers;
        for (unsigned i = 0; i < o_.threads; i++) workers.emplace_back([this, i] { work(running[i]); });
        for (std::thread& w : workers) w.join();
        const double all = double(judged_ + not_judged_), share = all > 0 ? double(not_judged_) / all : 0;
        std::printf("%llu elements judged, %.2f %% not judged, %llu compared bit by bit\n", static_cast<unsigned long long>(judged_), 100 * share,
                    static_cast<unsigned long long>(bit_equal_));
        if (all > ENOUGH && share > MOST_NOT_JUDGED) failed_++, std::printf("more than %.0f %% are not judged: the bounds say too little\n", 100 * MOST_NOT_JUDGED);
        for (const std::string& what : o_.count >= MANY ? drawn_.missing() : std::vector<std::string>()) failed_++, std::printf("%s was in no program\n", what.c_str());
        std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed_), static_cast<unsigned long long>(failed_));
        return failed_ ? 1 : 0;
    }

  private:
    void work(std::atomic<uint64_t>& now)
    {
        try {
            Session session(o_.backend.c_str());
            session.shows = o_.is_verbose, session.pretended = o_.pretended;
            for (uint64_t i = next_++; i < o_.count; i = next_++) {
                now = o_.first + i;
                if (o_.is_verbose) std::fprintf(stderr, "%llu\n", static_cast<unsigned long long>(now));
                one(session, now);
            }
        } catch (const std::exception& e) {
            const std::lock_guard lock(print_);
            failed_++, std::printf("%s\n", e.what());
        }
        now = NONE;
    }
    void one(const Session& session, uint64_t number)
    {
        const Program p = drawn_program(table_, Dice(o_.seed + number * 0x9e3779b97f4a7c15u).word());
        Verdict v = tried(session, table_, p);
        judged_ += v.judged, not_judged_ += v.not_judged, bit_equal_ += v.bit_equal;
        drawn_.add(p);
        if (v.fault.empty()) { passed_++; return; }
        if (failed_++ >= MOST_SHOWN) return;
        const std::string first = v.fault;
        show(number, first, shrunk(session, table_, p, std::move(v)));
    }
    void show(uint64_t number, const std::string& first, const Shrunk& s)
    {
        const std::string text = report(o_.seed, number, first, s);
        const std::lock_guard lock(print_);
        std::printf("%s\n", text.c_str());
        std::fflush(stdout);
    }

    Options o_;
    Table   table_;
    std::mutex print_;
    Drawn   drawn_;
    std::atomic<uint64_t> next_{0}, passed_{0}, failed_{0}, judged_{0}, not_judged_{0}, bit_equal_{0};
};

bool read_options(int count, char** words, Options& o)
{
    for (int i = 1; i < count; i++) {
        const std::string word = words[i];
        if (word == "--verbose") { o.is_verbose = true; continue; }
        if (++i == count) return false;
        if (word == "--count") o.count = std::strtoull(words[i], nullptr, 0);
        else if (word == "--seed") o.seed = std::strtoull(words[i], nullptr, 0);
        else if (word == "--first") o.first = std::strtoull(words[i], nullptr, 0);
        else if (word == "--threads") o.threads = unsigned(std::clamp(std::atoi(words[i]), 1, int(MOST_THREADS)));
        else if (word == "--backend") o.backend = words[i];
        else if (word == "--pretend") o.pretended = words[i];
        else return false;
    }
    return true;
}

}  // namespace
}  // namespace programs

int main(int count, char** words)
{
    programs::Options options;
    if (!programs::read_options(count, words, options)) {
        std::fprintf(stderr, "random_programs [--count N] [--seed S] [--first N] [--threads T] [--backend NAME] [--pretend WORD] [--verbose]\n"
                             "--pretend: as if this row or form were wrong, to see what is told of a fault\n");
        return 2;
    }
    try {
        return programs::Campaign(options).run();
    } catch (const std::exception& e) {
        std::printf("%s\n0 passed, 1 failed\n", e.what());
        return 1;
    }
}
