// Memory through the host's allocators or our own, counted by purpose and held to the limit.
#include "lib/heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace ng {
namespace {

bool is_device(ng_purpose purpose) { return purpose == NG_MEM_TENSOR || purpose == NG_MEM_WORK; }

// Memory of our own. Much of it comes from the system itself, untouched, in large pages where it has them: translating
// addresses costs as much as moving the data otherwise.
constexpr uint64_t LARGE = 4 << 20, LARGE_PAGE = 2 << 20;

uint64_t in_pages(uint64_t bytes) { return (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE; }

void* map_pages(uint64_t bytes)
{
    const uint64_t room = in_pages(bytes) + LARGE_PAGE;
    void* const all = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    auto* const first = static_cast<char*>(all);
    char* const memory = first + (LARGE_PAGE - reinterpret_cast<uintptr_t>(first) % LARGE_PAGE) % LARGE_PAGE;
    char* const end = memory + in_pages(bytes);
    if (memory > first) munmap(first, size_t(memory - first));
    if (first + room > end) munmap(end, size_t(first + room - end));
    madvise(memory, in_pages(bytes), MADV_HUGEPAGE);
    return memory;
}

void* own_allocate(uint64_t bytes, size_t align)
{
    if (bytes >= LARGE) return align <= LARGE_PAGE ? map_pages(bytes) : nullptr;
    void* memory = nullptr;
    return posix_memalign(&memory, std::max(align, sizeof(void*)), std::max<size_t>(bytes, 1)) == 0 ? memory : nullptr;
}

void own_free(void* memory, uint64_t bytes)
{
    if (bytes >= LARGE) munmap(memory, in_pages(bytes));
    else std::free(memory);
}

}  // namespace

const ng_allocator* Heap::allocator(ng_purpose purpose) const noexcept
{
    if (is_device(purpose) && dev_.alloc) return &dev_;
    return host_.alloc ? &host_ : nullptr;
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
    if (is_device(purpose) && !reserve(bytes)) return nullptr;
    const ng_allocator* hook = allocator(purpose);
    void* const memory = hook ? hook->alloc(hook->user, size_t(bytes), align, purpose, nullptr) : own_allocate(bytes, align);
    if (memory) by_purpose_[purpose].fetch_add(bytes, std::memory_order_relaxed);
    else if (is_device(purpose)) held_.fetch_sub(bytes, std::memory_order_relaxed);
    return memory;
}

void Heap::free(void* memory, uint64_t bytes, ng_purpose purpose) noexcept
{
    if (const ng_allocator* hook = allocator(purpose)) hook->free(hook->user, memory, size_t(bytes), purpose, nullptr);
    else own_free(memory, bytes);
    by_purpose_[purpose].fetch_sub(bytes, std::memory_order_relaxed);
    if (is_device(purpose)) held_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace ng
