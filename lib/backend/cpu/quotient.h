// Division of numbers that seldom need 64 bits: Intel's processors before Ice Lake take 90 cycles for those, and 26 for 32.
#pragma once
#include <cstdint>

namespace ng::cpu {
namespace {

// a / b as C++ has it.
__attribute__((always_inline, unused)) inline int64_t quotient(int64_t a, int64_t b)
{
    return uint64_t(a | b) >> 32 ? a / b : int64_t(uint32_t(a) / uint32_t(b));
}
__attribute__((always_inline, unused)) inline int64_t remainder(int64_t a, int64_t b) { return a - quotient(a, b) * b; }

}  // namespace
}  // namespace ng::cpu
