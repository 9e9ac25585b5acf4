// Kernels that evaluations met before: how often, and those that came often enough to be worth a compiler's work.
#pragma once
#include "jit/kernel.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace ng::cuda {

class Fused;

// A kernel counts by its structure: numbers in it, be they constants, extents or strides, do not matter, as they hardly
// do for its texts. One that comes OFTEN is compiled for the numbers it came with, and kept, when it comes a second time
// with these; printing a text takes as long as half an evaluation, so a small one with new numbers is better interpreted.
// One of LARGE tensors is not, and counts for WEIGHT small ones. Memory is bounded: what was not met for longest goes first. At most MOST_SIZES of a structure's
// kernels are compiled, for a loop in which each evaluation has another size.
class Evaluated {
  public:
    static constexpr uint32_t OFTEN = 256, WEIGHT = 16, MOST_SIZES = 3;
    static constexpr size_t   ROOM = 256;        // of structures, and of kernels
    static constexpr double   LARGE = 1 << 20;   // points

    struct Met {
        std::shared_ptr<Fused> fused;            // what was kept for this very kernel, constants included
        bool     is_often = false;
        uint64_t exact = 0, structure = 0;
    };
    Met  meet(const Kernel& kernel);
    // Whether one more of its structure may be compiled; that counts.
    bool may_compile(const Met& met);
    void keep(const Met& met, const Kernel& kernel, const std::shared_ptr<Fused>& fused);
    void clear() noexcept;

  private:
    struct Structure { uint32_t count = 0, sizes = 0; uint64_t last = 0; };
    struct Kept { Kernel kernel; std::shared_ptr<Fused> fused; uint64_t last = 0; };
    template <class Map> static void make_room(Map& map);
    Kept* find(const Met& met, const Kernel& kernel);

    std::mutex lock_;                            // of what follows, for moments
    uint64_t   now_ = 0;
    std::unordered_map<uint64_t, Structure> structures_;     // by hash: two that meet share a count, no more
    std::unordered_multimap<uint64_t, Kept> kept_;
};

}  // namespace ng::cuda
