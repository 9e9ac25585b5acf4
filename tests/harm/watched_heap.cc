// malloc and its kin, operator new, and pages from mmap, in front of the real ones: libraries of the process find these first.
#include "tests/harm/watched_heap.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using harm::heap::Refusal;

constinit std::atomic<bool>     is_armed{false}, refused{false};
constinit std::atomic<uint64_t> asked{0}, refused_at{0};
constinit std::atomic<int64_t>  live{0}, mapped{0};
constinit std::atomic<Refusal>  refusal{Refusal::None};

// What is asked for while the real functions are looked up.
alignas(16) constinit char early[1 << 14];
constinit std::atomic<size_t> early_used{0};
bool is_early(const void* at) { return at >= early && at < early + sizeof early; }

template <class F>
F real(const char* name) { return reinterpret_cast<F>(dlsym(RTLD_NEXT, name)); }

struct Real {
    void* (*malloc)(size_t) = real<void* (*)(size_t)>("malloc");
    void* (*realloc)(void*, size_t) = real<void* (*)(void*, size_t)>("realloc");
    void  (*free)(void*) = real<void (*)(void*)>("free");
    int   (*posix_memalign)(void**, size_t, size_t) = real<int (*)(void**, size_t, size_t)>("posix_memalign");
};
constinit std::atomic<int> state{0};           // 0 none, 1 being looked up, 2 there
alignas(Real) constinit char room[sizeof(Real)];

const Real* functions()
{
    if (state.load(std::memory_order_acquire) == 2) return reinterpret_cast<Real*>(room);
    int none = 0;
    if (!state.compare_exchange_strong(none, 1)) return nullptr;
    new (room) Real();
    state.store(2, std::memory_order_release);
    return reinterpret_cast<Real*>(room);
}

// Whether this allocation may happen.
bool admit()
{
    if (!is_armed.load(std::memory_order_relaxed)) return true;
    const uint64_t number = asked.fetch_add(1, std::memory_order_relaxed) + 1, at = refused_at.load(std::memory_order_relaxed);
    const Refusal how = refusal.load(std::memory_order_relaxed);
    if (how == Refusal::None || number < at || (how == Refusal::One && number > at)) return true;
    refused.store(true, std::memory_order_relaxed);
    return false;
}
void* counted(void* block)
{
    if (block) live.fetch_add(1, std::memory_order_relaxed);
    else errno = ENOMEM;
    return block;
}
void* aligned(size_t align, size_t bytes)
{
    const Real* f = functions();
    void* block = nullptr;
    if (!f || !admit() || f->posix_memalign(&block, align < sizeof(void*) ? sizeof(void*) : align, bytes)) return nullptr;
    return counted(block);
}

}  // namespace

namespace harm::heap {

void arm(Refusal how, uint64_t n)
{
    asked = 0, refused = false, refused_at = n, refusal = how;
    is_armed = true;
}
uint64_t disarm()
{
    is_armed = false;
    return asked;
}
bool    has_refused() { return refused; }
int64_t live_blocks() { return live; }
int64_t mapped_bytes() { return mapped; }

Uncounted::Uncounted() : was_armed_(is_armed.exchange(false)) {}
Uncounted::~Uncounted() { is_armed = was_armed_; }

}  // namespace harm::heap

extern "C" {
void* malloc(size_t bytes)
{
    if (const Real* f = functions()) return admit() ? counted(f->malloc(bytes ? bytes : 1)) : counted(nullptr);
    const size_t at = early_used.fetch_add((bytes + 15) / 16 * 16);
    return at + bytes <= sizeof early ? early + at : nullptr;
}
void free(void* block)
{
    if (!block || is_early(block)) return;
    live.fetch_sub(1, std::memory_order_relaxed);
    functions()->free(block);
}
void* calloc(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
    void* block = malloc(all);
    return block ? std::memset(block, 0, all) : nullptr;
}
void* realloc(void* block, size_t bytes)
{
    if (!block) return malloc(bytes);
    if (!is_early(block)) return admit() ? functions()->realloc(block, bytes ? bytes : 1) : nullptr;
    void* moved = malloc(bytes);
    return moved ? std::memcpy(moved, block, bytes) : nullptr;
}
int posix_memalign(void** out, size_t align, size_t bytes)
{
    void* block = aligned(align, bytes);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}
// By either name: which of them a library asks for depends on how wide it has off_t.
__attribute__((visibility("default"))) void* pages(void*, size_t, int, int, int, int64_t) __asm__("mmap");
void* pages(void* at, size_t bytes, int protection, int flags, int file, int64_t offset)
{
    void* const made = admit() ? reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset)) : MAP_FAILED;
    if (made == MAP_FAILED) errno = ENOMEM;
    else mapped.fetch_add(int64_t(bytes), std::memory_order_relaxed);
    return made;
}
__attribute__((visibility("default"))) void* pages64(void*, size_t, int, int, int, int64_t) __asm__("mmap64");
void* pages64(void* at, size_t bytes, int protection, int flags, int file, int64_t offset) { return pages(at, bytes, protection, flags, file, offset); }
int munmap(void* at, size_t bytes)
{
    mapped.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
    return int(syscall(SYS_munmap, at, bytes));
}
void* aligned_alloc(size_t align, size_t bytes) { return aligned(align, bytes); }
void* memalign(size_t align, size_t bytes) { return aligned(align, bytes); }
}

void* operator new(size_t bytes)
{
    if (void* block = malloc(bytes)) return block;
    throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t align)
{
    if (void* block = aligned(size_t(align), bytes)) return block;
    throw std::bad_alloc();
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, std::align_val_t align) { return operator new(bytes, align); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes); }
void* operator new(size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept { return aligned(size_t(align), bytes); }
void* operator new[](size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept { return aligned(size_t(align), bytes); }
void operator delete(void* block) noexcept { free(block); }
void operator delete[](void* block) noexcept { free(block); }
void operator delete(void* block, size_t) noexcept { free(block); }
void operator delete[](void* block, size_t) noexcept { free(block); }
void operator delete(void* block, std::align_val_t) noexcept { free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { free(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { free(block); }
