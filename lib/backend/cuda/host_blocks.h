// Page-locked memory of the host, of which what comes back is kept: to lock it takes a driver milliseconds, and to unlock it until the device is idle.
#pragma once
#include "lib/backend/cuda/runtime.h"

#include <map>
#include <mutex>

namespace ng::cuda {

// Of what is kept, no more stays when another is locked than was ever in use at once. `home` is current in all calls.
class HostBlocks {
  public:
    explicit HostBlocks(const DeviceContext& home) : home_(home) {}
    // Null: there is none left.
    void* take(uint64_t bytes) noexcept;
    // What was taken, of so many bytes; nothing works on it any more.
    void give(void* memory, uint64_t bytes) noexcept;
    // Unlocks what is kept, but for so many bytes.
    void trim(uint64_t keep_bytes) noexcept;
    // Likewise, and nothing is kept from here on.
    void end() noexcept;

  private:
    using Kept = std::multimap<uint64_t, void*>;     // by length
    void* find(uint64_t length) noexcept;
    void* lock(uint64_t length) noexcept;
    bool  keep(void* memory, uint64_t length) noexcept;
    uint64_t most_used_bytes() noexcept;
    void  unlock(void* memory) const noexcept { (void)home_.driver().cuMemFreeHost.quiet(memory); }

    const DeviceContext& home_;
    std::mutex lock_;
    Kept       kept_;
    uint64_t   kept_bytes_ = 0, used_bytes_ = 0, most_used_bytes_ = 0;
    bool       is_ended_ = false;
};

}  // namespace ng::cuda
