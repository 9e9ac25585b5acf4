// Memory through the host's allocators or our own, counted by purpose and held to the limit.
#include "lib/heap.h"

#include <algorithm>
#include <cstdlib>

namespace ng {
namespace {

// Of the device, counted against its limit.
bool is_device(ng_purpose purpose) { return purpose == NG_MEM_TENSOR || purpose == NG_MEM_WORK || purpose == NG_MEM_CODE; }

void* tables(uint64_t bytes, size_t align)
{
    void* memory = nullptr;
    return posix_memalign(&memory, align, std::max<size_t>(bytes, 1)) == 0 ? memory : nullptr;
}

}  // namespace

const ng_allocator* Heap::allocator(ng_purpose purpose) const noexcept
{
    if (is_device(purpose) && dev_.alloc) return &dev_;
    return host_.alloc && (device_.is_host() || purpose == NG_MEM_NODE) ? &host_ : nullptr;
}

bool Heap::reserve(uint64_t bytes) noexcept
{
    uint64_t held = held_.load(std::memory_order_relaxed), after;
    do {
        after = held + bytes;
        if (limit() && after > limit()) return false;
    } while (!held_.compare_exchange_weak(held, after, std::memory_order_relaxed));
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (after > peak && !peak_.compare_exchange_weak(peak, after, std::memory_order_relaxed)) {}
    return true;
}

void* Heap::allocate(uint64_t bytes, size_t align, ng_purpose purpose) noexcept
{
    if (bytes > uint64_t(PTRDIFF_MAX) - align) return nullptr;
    free_kept();
    if (is_device(purpose) && !reserve(bytes)) return nullptr;
    const ng_allocator* hook = allocator(purpose);
    const ng_stream first = device_.first_stream(purpose);
    void* const memory = hook ? hook->alloc(hook->user, size_t(bytes), align, purpose, first) : purpose == NG_MEM_NODE ? tables(bytes, align) : device_.allocate(bytes, align, purpose, first);
    if (memory) device_.settle(first), by_purpose_[purpose].fetch_add(bytes, std::memory_order_relaxed);
    else if (is_device(purpose)) held_.fetch_sub(bytes, std::memory_order_relaxed);
    return memory;
}

void Heap::free(void* memory, uint64_t bytes, ng_purpose purpose, ng_stream last) noexcept
{
    if (const ng_allocator* hook = allocator(purpose)) hook->free(hook->user, memory, size_t(bytes), purpose, last);
    else if (purpose == NG_MEM_NODE) std::free(memory);
    else device_.free(memory, bytes, purpose, last);
    by_purpose_[purpose].fetch_sub(bytes, std::memory_order_relaxed);
    if (is_device(purpose)) held_.fetch_sub(bytes, std::memory_order_relaxed);
}

void Heap::free_later(void* memory, uint64_t bytes, ng_purpose purpose, Track& work) noexcept
{
    try {
        Kept kept = {memory, bytes, purpose, device_.copy_of(work)};
        const std::lock_guard hold(lock_);
        kept_.push_back(std::move(kept));
        has_kept_.store(true, std::memory_order_release);
    } catch (const std::bad_alloc&) {
        device_.wait_until_idle(work);
        free(memory, bytes, purpose, device_.last_stream());
    }
}

void Heap::free_kept() noexcept
{
    while (has_kept_.load(std::memory_order_acquire)) {
        Kept idle;
        {
            const std::lock_guard hold(lock_);
            const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return device_.is_idle(*k.work); });
            if (at == kept_.end()) return;
            idle = std::move(*at);
            kept_.erase(at);
            has_kept_.store(!kept_.empty(), std::memory_order_release);
        }
        free(idle.memory, idle.bytes, idle.purpose, device_.last_stream());
    }
}

}  // namespace ng
