// The threads of a context: a job's tasks are claimed one by one, and nobody waits for a worker that did not come.
#pragma once
#include "lib/parallel.h"
#include "lib/plain_floats.h"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace ng {

class Workers {
  public:
    // count: the caller included, at most MAX_TASKS.
    explicit Workers(uint32_t count);
    ~Workers() { stop(); }

    // Makes the threads that are not there yet, as far as the machine gives them; the next call asks for the rest again.
    void start() noexcept;
    // For calls that may allocate: the first job with more than one task makes the threads. Worker 0 is the caller. Where
    // the threads are busy with another caller's job, and in a forked child, the caller does everything as worker 0.
    Parallel parallel() { return Parallel(start_and_run, this, count_); }
    // For calls that may not: without threads, too, the caller does everything.
    Parallel parallel_as_is() { return Parallel(run, this, count_); }
    // Ends the threads; later jobs are the caller's alone. No job may be running.
    void stop() noexcept;

  private:
    static void run(void* self, uint32_t count, Parallel::Task task, void* arg);
    static void start_and_run(void* self, uint32_t count, Parallel::Task task, void* arg);
    void serve(uint32_t worker) noexcept;
    void work(uint32_t worker) noexcept;
    void open(uint32_t count, Parallel::Task task, void* arg) noexcept;
    void close() noexcept;

    static constexpr uint32_t CLOSED = 0x80000000u;
    const uint32_t           count_, epoch_;
    std::mutex               starting_;               // of threads_
    std::vector<std::thread> threads_;
    std::atomic<uint32_t>    helpers_{0};             // threads that jobs may wake
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
