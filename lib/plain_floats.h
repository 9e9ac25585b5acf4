// The floating-point state of a thread, set aside while we compute on it.
#pragma once
#include <cstdint>

#if defined __SSE2__
#include <immintrin.h>
#endif

namespace ng {

// The arithmetic that the contract speaks of, whatever the host's thread was set to: to nearest, denormals kept, nothing
// trapped. The host's setting is back at the end (S8). Around whatever computes on a thread that is not ours; folding a
// constant counts.
class PlainFloats {
  public:
#if defined __SSE2__
    PlainFloats() noexcept : before_(_mm_getcsr())
    {
        if ((before_ & ~FLAGS) != PLAIN) _mm_setcsr(PLAIN);
    }
    ~PlainFloats() { _mm_setcsr(before_); }

  private:
    static constexpr unsigned PLAIN = 0x1F80, FLAGS = 0x3F;
    unsigned before_;
#elif defined __aarch64__
    PlainFloats() noexcept
    {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        asm volatile("msr fpcr, %0" : : "r"(uint64_t(0)));
    }
    ~PlainFloats() { asm volatile("msr fpcr, %0" : : "r"(before_)); }

  private:
    uint64_t before_;
#else
    PlainFloats() noexcept {}
#endif

  public:
    PlainFloats(const PlainFloats&) = delete;
    PlainFloats& operator=(const PlainFloats&) = delete;
};

}  // namespace ng
