// Counts and lengths rounded up to whole units, pieces of workspaces and scratch to where the next may begin.
#pragma once
#include <cstdint>

namespace ng::cuda {

constexpr int64_t  divided_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }
constexpr int64_t  rounded_up(int64_t n, int64_t unit) { return divided_up(n, unit) * unit; }
constexpr uint64_t aligned(uint64_t bytes) { return (bytes + 255) / 256 * 256; }    // as workspaces are

}  // namespace ng::cuda
