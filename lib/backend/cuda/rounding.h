// Counts and lengths rounded up to whole units, pieces of workspaces and scratch to where the next may begin.
#pragma once
#include "jit/saturated.h"

#include <cstdint>

namespace ng::cuda {

// Of what is not negative; what would be more than the greatest number is that, as greatest lengths may be.
constexpr int64_t  rounded_up(int64_t n, int64_t unit) { return times(divided_up(n, unit), unit); }
constexpr uint64_t aligned(uint64_t bytes) { return plus(bytes, uint64_t(255)) / 256 * 256; }    // as workspaces are

}  // namespace ng::cuda
