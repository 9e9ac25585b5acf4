// When a call stops waiting: its timeout as a moment, and sleeps until then.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace ng {

class Deadline {
  public:
    using Clock = std::chrono::steady_clock;
    // From now on; what no clock reaches is never.
    explicit Deadline(uint64_t timeout_ns) noexcept
    {
        const auto now = Clock::now();
        const auto room = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::time_point::max() - now);
        end_ = timeout_ns >= uint64_t(room.count()) ? Clock::time_point::max() : now + std::chrono::nanoseconds(timeout_ns);
    }
    bool is_never() const noexcept { return end_ == Clock::time_point::max(); }
    uint64_t left_ns() const noexcept
    {
        if (is_never()) return UINT64_MAX;
        return uint64_t(std::max<int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(end_ - Clock::now()).count(), 0));
    }
    // Sleeps a little longer in later turns, not beyond the end; false when it has come.
    bool wait(int turn) const
    {
        const auto now = Clock::now();
        if (now >= end_) return false;
        if (turn < 64) std::this_thread::yield();
        else std::this_thread::sleep_for(std::min<Clock::duration>(std::chrono::microseconds(50), end_ - now));
        return true;
    }

  private:
    Clock::time_point end_;
};

}  // namespace ng
