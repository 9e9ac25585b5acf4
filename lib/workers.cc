// The pool: a job is opened, claimed task by task, closed; its caller waits only for the workers that are inside.
#include "lib/workers.h"

#include "lib/handle.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>

namespace ng {
namespace {

// How long a worker waits before it sleeps: steps that follow each other find it awake, and a loop with gaps of 2 ms burns 2 % of a core (a wake-up
// costs 65 us on two cores at 2 GHz). In pauses, of which a processor takes 10 to 140 cycles each: counted when a worker starts.
constexpr auto AWAKE = std::chrono::microseconds(40);
constexpr int  LEAST_SPINS = 200, MOST_SPINS = 20000;
constexpr int SPINS_BEFORE_YIELD = 20000;

void pause_briefly() noexcept
{
#if defined __SSE2__
    _mm_pause();
#elif defined __aarch64__
    asm volatile("yield");
#endif
}

int spins_before_sleep() noexcept
{
    using Clock = std::chrono::steady_clock;
    constexpr int COUNTED = 200;
    const auto begin = Clock::now();
    for (int i = 0; i < COUNTED; i++) pause_briefly();
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    return int(std::clamp(std::chrono::duration<double>(AWAKE).count() / std::max(taken, 1e-9) * COUNTED, double(LEAST_SPINS), double(MOST_SPINS)));
}

// New threads start with all the host's signals blocked: its handlers run on its own threads.
class SignalsBlocked {
  public:
    SignalsBlocked() noexcept
    {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
        is_set_ = pthread_sigmask(SIG_SETMASK, &all, &before_) == 0;
    }
    ~SignalsBlocked()
    {
        if (is_set_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    sigset_t before_;
    bool     is_set_;
};

}  // namespace

Workers::Workers(uint32_t count) : count_(std::clamp(count, 1u, MAX_TASKS)), epoch_(fork_epoch()) { watch_forks(); }

void Workers::start() noexcept
{
    if (helpers_.load(std::memory_order_acquire) == count_ - 1 || epoch_ != fork_epoch()) return;
    const std::lock_guard hold(starting_);
    if (quit_.load(std::memory_order_acquire)) return;
    const SignalsBlocked blocked;
    try {
        threads_.reserve(count_ - 1);
        while (threads_.size() < count_ - 1) {
            const auto worker = uint32_t(threads_.size() + 1);
            threads_.emplace_back([this, worker] { serve(worker); });
            helpers_.store(worker, std::memory_order_release);
        }
    } catch (const std::exception&) {
        // The machine gives no more threads: those that there are, and the caller, do the work.
    }
}

void Workers::serve(uint32_t worker) noexcept
{
    const PlainFloats plain;
    const int         most = spins_before_sleep();
    for (uint32_t seen = 0;;) {
        int spins = 0;
        while (generation_.load(std::memory_order_acquire) == seen) {
            if (++spins < most) pause_briefly();
            else generation_.wait(seen, std::memory_order_acquire);
        }
        if (quit_.load(std::memory_order_acquire)) return;
        seen = generation_.load(std::memory_order_acquire);
        if (!(active_.fetch_add(1, std::memory_order_acq_rel) & CLOSED)) work(worker);
        active_.fetch_sub(1, std::memory_order_acq_rel);
    }
}

void Workers::work(uint32_t worker) noexcept
{
    for (uint32_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) task_(arg_, i, worker);
}

void Workers::open(uint32_t count, Parallel::Task task, void* arg) noexcept
{
    task_ = task, arg_ = arg, tasks_ = count;
    next_.store(0, std::memory_order_relaxed);
    active_.fetch_and(~CLOSED, std::memory_order_acq_rel);
    generation_.fetch_add(1, std::memory_order_acq_rel);
    generation_.notify_all();
}

void Workers::close() noexcept
{
    active_.fetch_or(CLOSED, std::memory_order_acq_rel);
    for (int spins = 0; active_.load(std::memory_order_acquire) & ~CLOSED; spins++) {
        if (spins < SPINS_BEFORE_YIELD) pause_briefly();
        else sched_yield();
    }
}

void Workers::run(void* self, uint32_t count, Parallel::Task task, void* arg)
{
    Workers& pool = *static_cast<Workers*>(self);
    const bool is_alone = pool.epoch_ != fork_epoch() || !pool.helpers_.load(std::memory_order_acquire);
    if (is_alone || pool.taken_.exchange(true, std::memory_order_acquire)) {
        for (uint32_t i = 0; i < count; i++) task(arg, i, 0);
        return;
    }
    pool.open(count, task, arg);
    pool.work(0);
    pool.close();
    pool.taken_.store(false, std::memory_order_release);
}

void Workers::start_and_run(void* self, uint32_t count, Parallel::Task task, void* arg)
{
    Workers& pool = *static_cast<Workers*>(self);
    if (!pool.helpers_.load(std::memory_order_acquire)) pool.start();
    run(self, count, task, arg);
}

void Workers::stop() noexcept
{
    if (epoch_ != fork_epoch()) {
        // The threads stayed in the parent, and what is left of them here can be neither joined nor detached.
        (void)new (std::nothrow) std::vector<std::thread>(std::move(threads_));
        return;
    }
    const std::lock_guard hold(starting_);
    helpers_.store(0, std::memory_order_release);
    quit_.store(true, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_acq_rel);
    generation_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

}  // namespace ng
