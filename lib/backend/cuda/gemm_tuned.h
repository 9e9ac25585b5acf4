// What was measured on a device of its products: the fastest way of each shape, as a table and as text for later processes.
#pragma once
#include "lib/backend/cuda/gemm.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string_view>

namespace ng::cuda::gemm {

// "gemm_f16_nn_128x256x2 2 1 8 0": instance, cluster, splits, group, copies.
std::string words_of(const Way& way);

// The fastest of all ways, what it took, and what the model's choice took in the same minute.
struct Measured {
    Way    way;
    double us, usual_us;
    bool operator==(const Measured&) const = default;
};

// For any threads.
class Tuned {
  public:
    // Nothing where that shape was not measured. It locks, but never before something is kept.
    std::optional<Measured> find(const Shape& shape) const;
    void     keep(const Shape& shape, const Measured& measured);         // its times in whole nanoseconds, as lines have them
    uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }   // of keep() and add(): what find() said may be otherwise since

    // A line for each shape: its numbers, both times, the way's words.
    std::string text() const;
    // Of shapes that are not there yet; what cannot be read, or names no kernel of today, is passed over.
    void add(std::string_view text);

  private:
    mutable std::mutex        lock_;
    std::map<Shape, Measured> measured_;
    std::atomic<uint64_t>     count_{0};
};

}  // namespace ng::cuda::gemm
