// Calls from stacks that are no thread's own: fibres that go on on another thread, and frames no unwinder sees through.
#include "tests/contract/face.h"

#include <dlfcn.h>
#include <ucontext.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace {

// Of frames that an exception passed by on a stack it does not know, AddressSanitizer keeps the marks around their variables. It may be
// loaded before a test that was compiled without it.
void forget_frames(const void* stack, size_t bytes)
{
    using Unpoison = void (*)(const volatile void*, size_t);
    if (const auto unpoison = reinterpret_cast<Unpoison>(dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region"))) unpoison(stack, bytes);
}

// The sum of the first thousand numbers, so many times each, in doubles.
double sum_of_columns(ng_ctx* c, ng_scope* s, int times)
{
    const ng_shape d = shape(NG_F64, {times, 1000});
    ng_expr* e = ng_sum(ng_iota(s, &d, 1), NG_ALL, 0);
    ng_tensor* out = nullptr;
    double v = -1;
    if (ng_eval(c, nullptr, &e, &out, 1, nullptr) == NG_OK) ng_tensor_get(out, &v, sizeof v, nullptr);
    ng_tensor_release(out);
    return v;
}

// Who yields goes on wherever there is room.

class RovingFibres {
  public:
    void spawn(std::function<void()> body)
    {
        auto fibre = std::make_unique<Fibre>();
        fibre->body = std::move(body), fibre->stack.resize(256 << 10);
        getcontext(&fibre->context);
        fibre->context.uc_stack.ss_sp = fibre->stack.data(), fibre->context.uc_stack.ss_size = fibre->stack.size();
        const auto self = reinterpret_cast<uintptr_t>(fibre.get());
        makecontext(&fibre->context, reinterpret_cast<void (*)()>(start), 2, int(self >> 32), int(self));
        alive++;
        push(std::move(fibre));
    }
    void run(int threads)
    {
        std::vector<std::thread> all;
        for (int id = 0; id < threads; id++) all.emplace_back([this, id] { schedule(id); });
        for (std::thread& thread : all) thread.join();
    }
    static void yield()
    {
        Thread& here = *this_thread();
        swapcontext(&here.now->context, &here.main);
    }
    // Behind a call that threw inside.
    static void forget()
    {
        const Thread& here = *this_thread();
        forget_frames(here.now->stack.data(), here.now->stack.size());
    }
    static void parallel(void* user, uint32_t count, ng_task_fn task, void* arg)
    {
        auto& self = *static_cast<RovingFibres*>(user);
        std::atomic<uint32_t> left{count};
        self.jobs++;
        for (uint32_t i = 0; i < count; i++)
            self.spawn([&left, task, arg, i] {
                yield();
                task(arg, i);
                left--;
            });
        while (left) yield();
    }
    std::atomic<int> alive{0}, jobs{0}, moves{0};

  private:
    struct Fibre {
        ucontext_t            context{};
        std::vector<char>     stack;
        std::function<void()> body;
        bool                  is_done = false;
        int                   last = -1;         // thread
    };
    struct Thread {
        ucontext_t             main{};
        std::unique_ptr<Fibre> now;
    };
    // Out of line, since a fibre may be elsewhere after each switch, and a compiler keeps a thread's addresses.
    [[gnu::noinline]] static Thread*& this_thread()
    {
        static thread_local Thread* mine = nullptr;
        asm volatile("");
        return mine;
    }
    static void start(int high, int low)
    {
        auto* self = reinterpret_cast<Fibre*>(uintptr_t(uint32_t(high)) << 32 | uint32_t(low));
        self->body();
        self->is_done = true;
        yield();
    }
    void push(std::unique_ptr<Fibre> fibre)
    {
        const std::lock_guard hold(lock_);
        ready_.push_back(std::move(fibre));
    }
    std::unique_ptr<Fibre> pop()
    {
        const std::lock_guard hold(lock_);
        if (ready_.empty()) return nullptr;
        std::unique_ptr<Fibre> first = std::move(ready_.front());
        ready_.pop_front();
        return first;
    }
    void schedule(int id)
    {
        Thread here;
        this_thread() = &here;
        while (alive) {
            if (!(here.now = pop())) {
                std::this_thread::yield();
                continue;
            }
            moves += here.now->last >= 0 && here.now->last != id;
            here.now->last = id;
            swapcontext(&here.main, &here.now->context);
            // Only now is all of it in its context, and another thread may go on with it.
            if (here.now->is_done) alive--, here.now.reset();
            else push(std::move(here.now));
        }
    }
    std::mutex lock_;
    std::deque<std::unique_ptr<Fibre>> ready_;
};

#if defined __x86_64__
// call(a, b, c, d) from a frame of which no table says anything, on a stack that ends above it in nothing: what unwound further would get lost.
extern "C" int32_t call_from_nowhere(void* call, const void* a, const void* b, const void* c, const void* d, const void* e);
asm(".pushsection .text\n.type call_from_nowhere, @function\ncall_from_nowhere:\n"
    "push %rbp\n push %rbx\n mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov %rcx, %rdx\n mov %r8, %rcx\n mov %r9, %r8\n"
    "mov %rsp, %rbx\n lea foreign_stack_end(%rip), %rsp\n xor %ebp, %ebp\n push $0\n push $0\n call *%rax\n mov %rbx, %rsp\n pop %rbx\n pop %rbp\n ret\n"
    ".size call_from_nowhere, . - call_from_nowhere\n.popsection\n"
    ".pushsection .bss\n.balign 64\nforeign_stack:\n.zero 1 << 20\nforeign_stack_end:\n.zero 64\n.popsection\n");
extern "C" [[gnu::visibility("hidden")]] char foreign_stack[1 << 20];
template <class F>
ng_status from_nowhere(F* call, const void* a, const void* b, const void* c, const void* d, const void* e = nullptr)
{
    forget_frames(foreign_stack, sizeof foreign_stack);
    return call_from_nowhere(reinterpret_cast<void*>(call), a, b, c, d, e);
}
ng_status evaluated(ng_ctx* c, ng_expr* e, ng_tensor** out, ng_error* error) { return ng_eval(c, nullptr, &e, out, 1, error); }
#endif

}  // namespace

#if !defined __SANITIZE_THREAD__
TEST_CASE("fibres: two threads take them from one queue, so that calls end on other threads than they began on")
{
    RovingFibres fibres;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &fibres, hooks.parallel = RovingFibres::parallel;
    ng_ctx* c = opened(0, 0, &hooks);
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape d = shape(NG_F32, {1 << 20}), one = shape(NG_F32, {}), wrong = shape(NG_F32, {7});
    ng_expr* e = ng_sum(ng_sqrt(ng_param(s, 0, &d)), NG_ALL, 0);
    ng_compile_desc description{};
    description.size = sizeof description, description.runs = 8;
    ng_prog* p = nullptr;
    ng_error error{};
    REQUIRE(ng_compile(c, &description, &e, 1, &p, &error) == NG_OK);
    std::vector<float> roots(8, -1);
    std::vector<double> sums(8, -1);
    std::atomic<int> refused{0};
    for (size_t k = 0; k < 8; k++)
        fibres.spawn([&, k] {
            for (int turn = 0; turn < 4; turn++) {
                ng_tensor *in = nullptr, *out = nullptr, *small = nullptr;
                ng_error mine{};
                if (ng_tensor_create(c, &d, &in, &mine) || ng_tensor_create(c, &one, &out, &mine) || ng_tensor_create(c, &wrong, &small, &mine)) return;
                ng_tensor_fill(in, nullptr, double(k * k), &mine);
                ng_run r{};
                r.size = sizeof r, r.nargs = r.nout = 1, r.args = &in, r.out = &out;
                if (ng_prog_run(p, nullptr, &r, &mine) == NG_OK) ng_tensor_get(out, &roots[k], sizeof roots[k], &mine);
                r.args = &small;
                RovingFibres::yield();
                refused += ng_prog_run(p, nullptr, &r, &mine) == NG_E_SHAPE;
                RovingFibres::forget();
                sums[k] = sum_of_columns(c, s, int(k));
                ng_tensor_release(in), ng_tensor_release(out), ng_tensor_release(small);
            }
        });
    fibres.run(2);
    for (size_t k = 0; k < 8; k++) {
        CHECK(roots[k] == float(k << 20));
        CHECK(sums[k] == double(k) * 1000 * 999 / 2);
    }
    CHECK(refused == 32);
    CHECK(fibres.jobs >= 32);
    CHECK(fibres.moves > 0);
    ng_prog_release(p), ng_scope_release(s);
    CHECK(ng_ctx_close(c, 1000000000, &error) == NG_OK);
    ng_ctx_release(c);
}
#endif

#if defined __x86_64__
TEST_CASE("unwinding: a host whose frames say nothing of themselves gets a status from calls that fail inside")
{
    ng_ctx* c = opened(1);
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape d = shape(NG_F32, {4}), other = shape(NG_F32, {5});
    ng_error error{};
    ng_tensor *t = nullptr, *small = nullptr;
    REQUIRE(from_nowhere(ng_tensor_create, c, &d, &t, &error) == NG_OK);
    REQUIRE(from_nowhere(ng_tensor_create, c, &other, &small, &error) == NG_OK);
    const float values[4] = {1, 2, 3, 4};
    CHECK(from_nowhere(ng_tensor_put, t, values, reinterpret_cast<void*>(uintptr_t(15)), &error) == NG_E_INVALID);
    CHECK(std::string(error.text).find("15") != std::string::npos);
    REQUIRE(from_nowhere(ng_tensor_put, t, values, reinterpret_cast<void*>(uintptr_t(16)), &error) == NG_OK);
    ng_expr *x = ng_param(s, 0, &d), *e = ng_add(x, x), *poison = ng_add(e, ng_param(s, 1, &other));
    ng_prog* p = nullptr;
    ng_shape asked{};
    asked.size = sizeof asked;
    CHECK(from_nowhere(ng_expr_shape, poison, &asked, &error, nullptr) == NG_E_SHAPE);
    REQUIRE(ng_compile(c, nullptr, &e, 1, &p, &error) == NG_OK);
    ng_run r{};
    r.size = sizeof r, r.nargs = r.nout = 1, r.args = &small, r.out = &t;
    CHECK(from_nowhere(ng_prog_run, p, nullptr, &r, &error) == NG_E_SHAPE);
    r.args = &t;
    CHECK(from_nowhere(ng_prog_run, p, nullptr, &r, &error) == NG_E_INVALID);        // over its own argument
    ng_tensor* none = nullptr;
    CHECK(from_nowhere(evaluated, c, poison, &none, &error) == NG_E_SHAPE);
    CHECK(!none);
    ng_prog_release(p), ng_scope_release(s), ng_tensor_release(t), ng_tensor_release(small);
    CHECK(ng_ctx_close(c, 1000000000, &error) == NG_OK);
    ng_ctx_release(c);
}
#endif
