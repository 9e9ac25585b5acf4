// Bytes of scratch memory for lengths without a limit: bounded where sizes saturate.
#pragma once
#include "jit/saturated.h"

#include <cstdint>

namespace ng::cpu {

// Bytes beyond these are of no address space; sums of many such sizes are no overflow.
constexpr int64_t MOST_ROOM = int64_t(1) << 56;
inline int64_t bounded(int64_t bytes) { return bytes < MOST_ROOM ? bytes : MOST_ROOM; }
inline uint64_t room_of_workers(uint64_t bytes, uint64_t workers) { return bytes >= uint64_t(MOST_ROOM) / (workers ? workers : 1) ? uint64_t(MOST_ROOM) : bytes * workers; }

}  // namespace ng::cpu
