// Who runs the tasks of one job: the caller alone, the context's threads, or the host's parallel hook.
#pragma once
#include <cstdint>
#include <type_traits>

namespace ng {

inline constexpr uint32_t MAX_TASKS = 64;   // of one job, and workers() at most

class Parallel {
  public:
    using Task = void (*)(void* arg, uint32_t index, uint32_t worker);
    using Run = void (*)(void* self, uint32_t count, Task task, void* arg);

    Parallel() = default;  // the caller alone
    Parallel(Run run, void* self, uint32_t workers) : run_(run), self_(self), workers_(workers) {}

    // Tasks get a worker number below this; no two that run at once get the same.
    uint32_t workers() const { return workers_; }

    // Runs task(arg, 0 .. count - 1, worker), in any order, on any threads; returns when all are done.
    void run(uint32_t count, Task task, void* arg) const
    {
        if (run_ && count > 1) return run_(self_, count, task, arg);
        for (uint32_t i = 0; i < count; i++) task(arg, i, 0);
    }

    // for_each(count, [&](uint32_t index, uint32_t worker) { .. }); allocates nothing.
    template <class Body>
    void for_each(uint32_t count, Body&& body) const
    {
        using Plain = std::remove_reference_t<Body>;
        run(count, [](void* arg, uint32_t i, uint32_t worker) { (*static_cast<Plain*>(arg))(i, worker); },
            const_cast<std::remove_const_t<Plain>*>(&body));
    }

  private:
    Run      run_ = nullptr;
    void*    self_ = nullptr;
    uint32_t workers_ = 1;
};

}  // namespace ng
