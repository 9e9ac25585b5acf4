// Random kernels' texts, compiled as C++ and run beside naive loops: random_texts --count N --seed S.
#include "tests/jit/text_trial.h"

#include <cstring>

#include <sys/wait.h>

namespace ng::emitted {
namespace {

constexpr size_t   BATCH = 24;             // programs whose texts are compiled together
constexpr unsigned PATIENCE = 120;         // seconds for the runs of one
constexpr uint64_t MANY = 300;             // programs, among which every kind of text should be met
// What the language leaves open ends a run, whose signal is told; so does an element beside an array that a block shares.
constexpr const char* OPTIONS = "-fsanitize=alignment,bounds,null,object-size,shift-exponent,signed-integer-overflow -fsanitize-undefined-trap-on-error";

struct Options {
    uint64_t count = 300, seed = 1, only = ~uint64_t(0);
    bool     is_verbose = false;
};

class Texts {
  public:
    explicit Texts(const Options& o) : o_(o), now_(shared_word()) {}
    int run()
    {
        const bool is_one = o_.only != ~uint64_t(0);
        const uint64_t end = is_one ? o_.only + 1 : o_.count;
        for (uint64_t number = is_one ? o_.only : 0; number < end;) {
            std::vector<std::unique_ptr<TextTrial>> some;
            for (; number < end && some.size() < BATCH; number++) draw(number, some);
            if (!run(some)) break;
        }
        for (const std::string& what : !is_one && o_.count >= MANY && passed_ + failed_ ? missing_texts(met_) : std::vector<std::string>()) failed_++, std::printf("no launch had %s\n", what.c_str());
        std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(passed_), static_cast<unsigned long long>(failed_));
        return failed_ ? 1 : 0;
    }

  private:
    // Of the processes that run programs and this one.
    static std::atomic<size_t>& shared_word()
    {
        void* const at = mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) throw Error(NG_E_NOMEM, "no memory that processes share");
        return *new (at) std::atomic<size_t>(0);
    }
    void draw(uint64_t number, std::vector<std::unique_ptr<TextTrial>>& into)
    {
        try {
            into.push_back(std::make_unique<TextTrial>(o_.seed, number));
            into.back()->count(met_);
        } catch (const Error& e) {
            fail(number, e.text);
        }
    }
    // False: there is no compiler. Texts that do not compile are found one by one.
    bool run(std::span<const std::unique_ptr<TextTrial>> some)
    {
        Emulation code;
        for (const auto& t : some) t->add_to(code);
        try {
            if (!some.empty() && !code.load(OPTIONS)) return false;
        } catch (const Error& e) {
            if (some.size() == 1) return fail(some[0]->number(), e.text + "\n" + some[0]->words()), true;
            for (size_t k = 0; k < some.size(); k++) run(some.subspan(k, 1));
            return true;
        }
        for (const auto& t : some) run(*t, code);
        return true;
    }
    // In a process of its own, which what it spoils or waits for ends with.
    void run(TextTrial& t, const Emulation& code)
    {
        if (o_.is_verbose) std::printf("%llu: %s", static_cast<unsigned long long>(t.number()), t.words().c_str());
        std::fflush(stdout);
        const pid_t child = fork();
        if (child == 0) {
            alarm(PATIENCE);
            const std::string wrong = t.fault(code, now_);
            if (!wrong.empty()) std::printf("%s\n", wrong.c_str());
            std::fflush(stdout);
            _exit(wrong.empty() ? 0 : 1);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (status == 0) { passed_++; return; }
        fail(t.number(), (WIFSIGNALED(status) ? text("signal ", WTERMSIG(status), "\n") : "") + t.words() + t.words_of_run(now_));
    }
    void fail(uint64_t number, const std::string& words)
    {
        failed_++;
        std::printf("%s\nrun again: random_texts --seed %llu --only %llu\n\n", words.c_str(), static_cast<unsigned long long>(o_.seed), static_cast<unsigned long long>(number));
    }

    Options              o_;
    std::atomic<size_t>& now_;             // the run that goes on
    std::set<std::string> met_;
    uint64_t             passed_ = 0, failed_ = 0;
};

bool read_options(int count, char** words, Options& o)
{
    for (int i = 1; i < count; i++) {
        const std::string word = words[i];
        if (word == "--verbose") { o.is_verbose = true; continue; }
        if (++i == count) return false;
        if (word == "--count") o.count = std::strtoull(words[i], nullptr, 0);
        else if (word == "--seed") o.seed = std::strtoull(words[i], nullptr, 0);
        else if (word == "--only") o.only = std::strtoull(words[i], nullptr, 0);
        else return false;
    }
    return true;
}

}  // namespace
}  // namespace ng::emitted

int main(int count, char** words)
{
    ng::emitted::Options options;
    if (!ng::emitted::read_options(count, words, options)) {
        std::fprintf(stderr, "random_texts [--count N] [--seed S] [--only I] [--verbose]\n");
        return 2;
    }
    try {
        return ng::emitted::Texts(options).run();
    } catch (const ng::Error& e) {
        std::printf("%s\n0 passed, 1 failed\n", e.text.c_str());
        return 1;
    }
}
