// Hosts that do what hosts do: they fork in the middle of work, run hooks on fibres, set the processor's flags, end their threads.
#include "tests/contract/face.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include <cfenv>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#if defined __SSE2__
#include <xmmintrin.h>
#endif

namespace {

// Work that uses a lock here and there: a scope, a text, memory, a pool.
double some_work(ng_ctx* c, ng_scope* s, int salt)
{
    const ng_shape d = shape(NG_F32, {300, 1000});
    ng_expr* x = ng_iota(s, &d, 1);
    ng_expr* const values[] = {x, ng_const_int(s, NG_I32, salt)};
    ng_expr* e = ng_parse(s, "sum(where(x % 7 == n % 7, x, 0) * 0.5)", "x,n", values, 2);
    ng_tensor* out = nullptr;
    ng_error error{};
    float v = -1;
    if (ng_eval(c, nullptr, &e, &out, 1, &error) == NG_OK) ng_tensor_get(out, &v, sizeof v, &error);
    ng_tensor_release(out);
    if (!s) ng_expr_release(e), ng_expr_release(x), ng_expr_release(values[1]);
    return v;
}
double wanted(int salt)
{
    double sum = 0;
    for (int i = 0; i < 1000; i++) sum += i % 7 == salt % 7 ? i * 0.5 * 300 : 0;
    return sum;
}
bool is_near(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b) + 1e-6; }

// What a child does with its parent's things and its own; 0: all as it should be.
int child_of_fork(ng_ctx* c, ng_scope* s, ng_expr* e, ng_tensor* t, ng_prog* p)
{
    alarm(60);
    ng_error error{};
    ng_expr* again = ng_add(e, e);
    ng_tensor* out = nullptr;
    ng_stats stats{};
    stats.size = sizeof stats;
    if (ng_eval(c, nullptr, &again, &out, 1, &error) != NG_E_LOST || out) return 2;
    if (ng_ctx_stats(c, &stats) != NG_E_LOST || ng_ctx_close(c, UINT64_MAX, &error) != NG_E_LOST || ng_tensor_close(t, &error) != NG_E_LOST) return 3;
    if (ng_prog_wait(p, UINT64_MAX, &error) != NG_E_LOST || ng_expr_bind(e, t, &error) != NG_E_LOST) return 4;
    ng_expr_release(e), ng_tensor_release(t), ng_prog_release(p), ng_scope_release(s), ng_ctx_release(c);
    ng_ctx_desc d = description(0, 3);
    ng_ctx* own = nullptr;
    if (ng_ctx_create(&d, &own, &error) != NG_OK) return 5;
    ng_scope* scope = ng_scope_create(own, 0);
    for (int i = 0; i < 3; i++)
        if (!is_near(some_work(own, scope, i), wanted(i))) return 6;
    ng_scope_release(scope);
    if (ng_ctx_close(own, UINT64_MAX, &error) != NG_OK) return 7;
    ng_ctx_release(own);
    return 0;
}

// ---- fibres: one thread, a turn for each

class Fibres {
  public:
    void spawn(std::function<void()> body)
    {
        auto fibre = std::make_unique<Fibre>();
        fibre->body = std::move(body), fibre->stack.resize(256 << 10);
        getcontext(&fibre->context);
        fibre->context.uc_stack.ss_sp = fibre->stack.data(), fibre->context.uc_stack.ss_size = fibre->stack.size(), fibre->context.uc_link = &main_;
        const auto self = reinterpret_cast<uintptr_t>(this);
        makecontext(&fibre->context, reinterpret_cast<void (*)()>(start), 2, int(self >> 32), int(self));
        ready_.push_back(std::move(fibre));
    }
    void run()
    {
        while (!ready_.empty()) {
            now_ = std::move(ready_.front());
            ready_.pop_front();
            turns++;
            swapcontext(&main_, &now_->context);
            if (!now_->is_done) ready_.push_back(std::move(now_));
            now_.reset();
        }
    }
    void yield() { swapcontext(&now_->context, &main_); }

    // the hook: every task a fibre, the caller waits while others have their turns
    static void parallel(void* user, uint32_t count, ng_task_fn task, void* arg)
    {
        Fibres& self = *static_cast<Fibres*>(user);
        uint32_t left = count;
        self.jobs++;
        for (uint32_t i = 0; i < count; i++)
            self.spawn([&self, &left, task, arg, i] {
                self.yield();
                task(arg, i);
                left--;
            });
        while (left) self.yield();
    }
    int turns = 0, jobs = 0;

  private:
    struct Fibre {
        ucontext_t            context{};
        std::vector<char>     stack;
        std::function<void()> body;
        bool                  is_done = false;
    };
    static void start(int high, int low)
    {
        auto* self = reinterpret_cast<Fibres*>(uintptr_t(uint32_t(high)) << 32 | uint32_t(low));
        self->now_->body();
        self->now_->is_done = true;
    }
    ucontext_t main_{};
    std::unique_ptr<Fibre> now_;
    std::deque<std::unique_ptr<Fibre>> ready_;
};

// ---- the processor's flags

struct Flags {
    const char* name;
    unsigned    mxcsr;
};
// Bits of MXCSR: 15 flush to zero, 13 and 14 rounding, 7 .. 12 masks of exceptions, 6 denormals are zero.
constexpr unsigned MASKED = 0x1f80;
const Flags FLAGS[] = {{"as usual", MASKED}, {"flush to zero, denormals are zero", MASKED | 0x8040}, {"upwards", MASKED | 0x4000}, {"towards zero", MASKED | 0x6000}, {"all exceptions trap", 0}};

struct FlaggedThreads {
    unsigned mxcsr = MASKED;
    std::atomic<int> changed{0};
    static void parallel(void* user, uint32_t count, ng_task_fn task, void* arg)
    {
        auto& self = *static_cast<FlaggedThreads*>(user);
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < count; i++)
            threads.emplace_back([&self, task, arg, i] {
#if defined __SSE2__
                _mm_setcsr(self.mxcsr);
                task(arg, i);
                self.changed += (_mm_getcsr() & ~0x3fu) != self.mxcsr;
                _mm_setcsr(MASKED);
#else
                task(arg, i);
#endif
            });
        for (std::thread& thread : threads) thread.join();
    }
};

}  // namespace

TEST_CASE("fork: in the middle of others' work, twenty times; the child's own context works and the parent's goes on")
{
    ng_ctx* c = opened(3);
    ng_scope* shared = ng_scope_create(c, 0);
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, rounds{0};
    std::vector<std::thread> workers;
    for (int id = 0; id < 3; id++)
        workers.emplace_back([&, id] {
            for (int i = id; !stop; i++) wrong += !is_near(some_work(c, id ? shared : nullptr, i % 40), wanted(i % 40)), rounds++;
        });
    ng_error error{};
    const ng_shape d = shape(NG_F32, {8});
    for (int turn = 0; turn < 20; turn++) {
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_create(c, &d, &t, &error) == NG_OK);
        ng_expr *e = ng_leaf(shared, t), *sum = ng_sum(e, NG_ALL, 0);
        ng_prog* p = nullptr;
        REQUIRE(ng_compile(c, nullptr, &sum, 1, &p, &error) == NG_OK);
        const pid_t child = fork();
        if (child == 0) _exit(child_of_fork(c, shared, e, t, p));
        int status = -1;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK_MESSAGE(status == 0, "turn ", turn, ": the child ended with ", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
        ng_prog_release(p), ng_tensor_release(t);
    }
    stop = true;
    for (std::thread& worker : workers) worker.join();
    CHECK(wrong == 0);
    CHECK(rounds > 3);
    ng_scope_release(shared);
    CHECK(ng_ctx_close(c, 60000000000u, &error) == NG_OK);
    ng_ctx_release(c);
}

TEST_CASE("fibres: the hook runs each task on a fibre and others' calls in between, on one thread")
{
    Fibres fibres;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &fibres, hooks.parallel = Fibres::parallel;
    ng_ctx* c = opened(0, 0, &hooks);
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape d = shape(NG_F32, {1 << 20});
    ng_expr* e = ng_sum(ng_sqrt(ng_param(s, 0, &d)), NG_ALL, 0);
    ng_compile_desc description{};
    description.size = sizeof description, description.runs = 6;
    ng_prog* p = nullptr;
    ng_error error{};
    REQUIRE(ng_compile(c, &description, &e, 1, &p, &error) == NG_OK);
    std::vector<float> roots(6, -1);
    std::vector<double> sums(6, -1);
    for (size_t k = 0; k < 6; k++)
        fibres.spawn([&, k] {
            ng_tensor *in = nullptr, *out = nullptr;
            const ng_shape one = shape(NG_F32, {});
            ng_error mine{};
            if (ng_tensor_create(c, &d, &in, &mine) || ng_tensor_create(c, &one, &out, &mine) || ng_tensor_fill(in, nullptr, double(k * k), &mine)) return;
            ng_run r{};
            r.size = sizeof r, r.nargs = r.nout = 1, r.args = &in, r.out = &out;
            if (ng_prog_run(p, nullptr, &r, &mine) == NG_OK) ng_tensor_get(out, &roots[k], sizeof roots[k], &mine);
            fibres.yield();
            sums[k] = some_work(c, k % 2 ? s : nullptr, int(k));
            ng_tensor_release(in), ng_tensor_release(out);
        });
    fibres.run();
    for (size_t k = 0; k < 6; k++) {
        CHECK(roots[k] == float(k << 20));
        CHECK(is_near(sums[k], wanted(int(k))));
    }
    CHECK(fibres.jobs >= 6);
    CHECK(fibres.turns > fibres.jobs);
    ng_prog_release(p), ng_scope_release(s);
    CHECK(ng_ctx_close(c, 1000000000, &error) == NG_OK);
    ng_ctx_release(c);
}

#if defined __SSE2__ && !defined __SANITIZE_THREAD__
TEST_CASE("flags: a host that flushes, rounds otherwise or traps, in its calls and in its hook's threads, gets the same bits")
{
    FlaggedThreads host;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &host, hooks.parallel = FlaggedThreads::parallel;
    Values first;
    for (const Flags& flags : FLAGS)
        for (const bool hooked : {false, true}) {
            host.mxcsr = flags.mxcsr;
            ng_ctx* c = opened(2, NG_CTX_DETERMINISTIC, hooked ? &hooks : nullptr);
            const ng_shape d = shape(NG_F32, {1 << 17});
            ng_error error{};
            ng_tensor* out[2] = {};
            _mm_setcsr(flags.mxcsr);
            ng_expr *x = ng_iota(nullptr, &d, 0), *tiny = ng_const(nullptr, NG_F32, 1e-44);
            ng_expr* const values[] = {x, tiny};
            ng_expr* e[2] = {ng_parse(nullptr, "x * k + exp(-x / 999) / 3 + 1 / (x - 7) + sqrt(x - 100)", "x,k", values, 2),
                             ng_parse(nullptr, "sum(sin(x) * 0.1 + x * k) + 0.1 / 3", "x,k", values, 2)};
            const ng_status status = ng_eval(c, nullptr, e, out, 2, &error);
            const unsigned after = _mm_getcsr();
            _mm_setcsr(MASKED);
            REQUIRE_MESSAGE(status == NG_OK, error.text);
            CHECK((after & ~0x3fu) == flags.mxcsr);
            CHECK(host.changed == 0);
            std::vector<float> got((1 << 17) + 1);
            REQUIRE(ng_tensor_get(out[0], got.data(), 4 << 17, &error) == NG_OK);
            REQUIRE(ng_tensor_get(out[1], &got[1 << 17], 4, &error) == NG_OK);
            const Values v(got.begin(), got.end());
            if (first.empty()) first = v;
            CHECK_MESSAGE(differs(v, first) == "", flags.name, hooked ? ", by a hook" : "");
            for (ng_expr* expression : {x, tiny, e[0], e[1]}) ng_expr_release(expression);
            ng_tensor_release(out[0]), ng_tensor_release(out[1]);
            CHECK(ng_ctx_close(c, 1000000000, &error) == NG_OK);
            ng_ctx_release(c);
        }
}
#endif

TEST_CASE("threads end: what three hundred of them made works on, and the context loses nothing")
{
    ng_ctx* c = opened(2);
    ng_scope* s = ng_scope_create(c, 0);
    ng_error error{};
    double sum = 0, want = 0;
    for (int i = 0; i < 300; i++) {
        ng_expr* e = nullptr;
        ng_tensor* t = nullptr;
        double v = -1;
        std::thread([&] {
            const ng_shape d = shape(NG_F32, {64});
            ng_error mine{};
            if (ng_tensor_create(c, &d, &t, &mine) == NG_OK) ng_tensor_fill(t, nullptr, i, &mine);
            e = ng_sum(ng_leaf(s, t), NG_ALL, 0);
            if (i % 100 == 0) v = some_work(c, nullptr, i);
        }).join();
        if (i % 100 == 0) CHECK(is_near(v, wanted(i)));
        ng_tensor* out = nullptr;
        REQUIRE(ng_eval(c, nullptr, &e, &out, 1, &error) == NG_OK);
        float got = -1;
        REQUIRE(ng_tensor_get(out, &got, sizeof got, &error) == NG_OK);
        sum += got, want += 64. * i;
        ng_tensor_release(out);
        std::thread([&] { ng_tensor_release(t); }).join();
    }
    CHECK(sum == want);
    ng_scope_release(s);
    ng_stats left{};
    left.size = sizeof left;
    REQUIRE(ng_ctx_stats(c, &left) == NG_OK);
    CHECK(left.tensors == 0);
    CHECK(left.live_bytes == 0);
    CHECK(ng_ctx_close(c, 1000000000, &error) == NG_OK);
    ng_ctx_release(c);
}
