// Blocks of a few lengths between two powers of two, so that one that comes back fits what is asked for next.
#include "lib/backend/cuda/host_blocks.h"

#include <algorithm>
#include <bit>

namespace ng::cuda {
namespace {

constexpr uint64_t PAGE = 4096, STEPS = 8;       // from a power of two to the next: an eighth is lost at most

uint64_t length_of(uint64_t bytes)
{
    const uint64_t step = std::max(std::bit_ceil(bytes) / (2 * STEPS), PAGE);
    return (std::max<uint64_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

void* HostBlocks::take(uint64_t bytes) noexcept
{
    const uint64_t length = length_of(bytes);
    void* memory = find(length);
    if (!memory) memory = lock(length);
    if (!memory) return nullptr;
    const std::lock_guard hold(lock_);
    used_bytes_ += length;
    most_used_bytes_ = std::max(most_used_bytes_, used_bytes_);
    return memory;
}

void* HostBlocks::find(uint64_t length) noexcept
{
    const std::lock_guard hold(lock_);
    const auto at = kept_.find(length);
    if (at == kept_.end()) return nullptr;
    void* const memory = at->second;
    kept_.erase(at), kept_bytes_ -= length;
    return memory;
}

// It waits for the driver, so what is kept too much goes as well.
void* HostBlocks::lock(uint64_t length) noexcept
{
    trim(most_used_bytes());
    void* memory = nullptr;
    if (home_.driver().cuMemHostAlloc.quiet(&memory, length, 0) == CUDA_SUCCESS) return memory;
    trim(0);
    return home_.driver().cuMemHostAlloc.quiet(&memory, length, 0) == CUDA_SUCCESS ? memory : nullptr;
}

uint64_t HostBlocks::most_used_bytes() noexcept
{
    const std::lock_guard hold(lock_);
    return most_used_bytes_;
}

bool HostBlocks::keep(void* memory, uint64_t length) noexcept
{
    const std::lock_guard hold(lock_);
    used_bytes_ -= length;
    if (is_ended_) return false;
    try {
        kept_.emplace(length, memory);
    } catch (const std::bad_alloc&) {
        return false;
    }
    kept_bytes_ += length;
    return true;
}

void HostBlocks::give(void* memory, uint64_t bytes) noexcept
{
    if (!keep(memory, length_of(bytes))) unlock(memory);
}

void HostBlocks::trim(uint64_t keep_bytes) noexcept
{
    for (;;) {
        Kept::node_type longest;
        {
            const std::lock_guard hold(lock_);
            if (kept_bytes_ <= keep_bytes) return;
            longest = kept_.extract(std::prev(kept_.end()));
            kept_bytes_ -= longest.key();
        }
        unlock(longest.mapped());
    }
}

void HostBlocks::end() noexcept
{
    {
        const std::lock_guard hold(lock_);
        is_ended_ = true;
    }
    trim(0);
}

}  // namespace ng::cuda
