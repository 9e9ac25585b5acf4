// Where a context's memory comes from, and the account of it.
#pragma once
#include "lib/backend.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace ng {

class Heap {
  public:
    // Descriptions of size 0 stand for none. Memory of the device: dev, else host where that is the same, else its backend's.
    Heap(const ng_allocator& host, const ng_allocator& dev, uint64_t limit, Backend& device) : host_(host), dev_(dev), device_(device), limit_(limit) {}

    // Null when the limit or the allocator says no. Calls the host's allocator, so never under a lock. align: a power of 2.
    void* allocate(uint64_t bytes, size_t align, ng_purpose purpose) noexcept;
    // bytes and purpose as they were allocated; idle on every stream but this one.
    void  free(void* memory, uint64_t bytes, ng_purpose purpose, ng_stream last) noexcept;
    // The same of memory that others may work on, whose device could not be told to wait for them: it goes when they are done.
    void  free_later(void* memory, uint64_t bytes, ng_purpose purpose, Track& work) noexcept;
    // What of that is idle goes.
    void  free_kept() noexcept;
    // Memory of this purpose goes through an allocator of the host's.
    bool  is_hosted(ng_purpose purpose) const noexcept { return allocator(purpose) != nullptr; }

    uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
    void     set_limit(uint64_t bytes) noexcept { limit_.store(bytes, std::memory_order_relaxed); }
    uint64_t held() const noexcept { return held_.load(std::memory_order_relaxed); }
    uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
    void     forget_peak() noexcept { peak_.store(held(), std::memory_order_relaxed); }
    uint64_t in(ng_purpose purpose) const noexcept { return by_purpose_[purpose].load(std::memory_order_relaxed); }

  private:
    struct Kept {
        void*      memory;
        uint64_t   bytes;
        ng_purpose purpose;
        std::unique_ptr<Track> work;
    };
    const ng_allocator* allocator(ng_purpose purpose) const noexcept;
    bool reserve(uint64_t bytes) noexcept;

    const ng_allocator    host_, dev_;
    Backend&              device_;
    std::atomic<uint64_t> limit_, held_{0}, peak_{0};    // of device memory: tensors, workspaces, interpreted code
    std::atomic<uint64_t> by_purpose_[NG_MEM_STAGING + 1] = {};
    std::mutex            lock_;                         // of what is kept
    std::vector<Kept>     kept_;
    std::atomic<bool>     has_kept_{false};
};

}  // namespace ng
