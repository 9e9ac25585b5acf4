// The threads of a context: a job's tasks are claimed one by one, and nobody waits for a worker that did not come.
#pragma once
#include "lib/parallel.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#if defined __SSE2__
#include <immintrin.h>
#endif

namespace ng {

// The arithmetic that the contract speaks of, whatever the host's thread was set to: to nearest, denormals kept, nothing
// trapped. The host's setting is back at the end (S8). Around everything that computes on a thread that is not ours.
class PlainFloats {
  public:
#if defined __SSE2__
    PlainFloats() noexcept : before_(_mm_getcsr())
    {
        if ((before_ & ~FLAGS) != PLAIN) _mm_setcsr(PLAIN);
    }
    ~PlainFloats() { _mm_setcsr(before_); }

  private:
    static constexpr unsigned PLAIN = 0x1F80, FLAGS = 0x3F;
    unsigned before_;
#elif defined __aarch64__
    PlainFloats() noexcept
    {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(uint64_t(0)));
    }
    ~PlainFloats() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

  private:
    uint64_t before_;
#else
    PlainFloats() noexcept {}
#endif

  public:
    PlainFloats(const PlainFloats&) = delete;
    PlainFloats& operator=(const PlainFloats&) = delete;
};

class Workers {
  public:
    // count: the caller included, at most MAX_TASKS. Threads are made by the first job that has more than one task.
    explicit Workers(uint32_t count);
    ~Workers() { stop(); }

    // Worker 0 is the caller. Where the threads are busy with another caller's job, and in a forked child, the caller
    // does everything as worker 0.
    Parallel parallel() { return Parallel(run, this, count_); }
    // Ends the threads; later jobs are the caller's alone. No job may be running.
    void stop() noexcept;

  private:
    static void run(void* self, uint32_t count, Parallel::Task task, void* arg);
    void start() noexcept;
    void serve(uint32_t worker) noexcept;
    void work(uint32_t worker) noexcept;
    void open(uint32_t count, Parallel::Task task, void* arg) noexcept;
    void close() noexcept;

    static constexpr uint32_t CLOSED = 0x80000000u;
    const uint32_t           count_, epoch_;
    std::vector<std::thread> threads_;
    bool                     started_ = false;        // under taken_
    std::atomic<bool>        taken_{false};           // by the caller whose job this is
    Parallel::Task           task_ = nullptr;         // written while the job is closed, read while it is open
    void*                    arg_ = nullptr;
    uint32_t                 tasks_ = 0;
    std::atomic<bool>        quit_{false};
    alignas(64) std::atomic<uint32_t> generation_{0}; // of jobs; workers sleep on it
    alignas(64) std::atomic<uint32_t> active_{CLOSED};  // workers inside, and the bit that says: too late
    alignas(64) std::atomic<uint32_t> next_{0};       // task to claim
};

}  // namespace ng
