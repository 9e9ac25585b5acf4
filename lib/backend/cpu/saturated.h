// Products and sums that stop at the largest number: sizes of what no memory holds stay too large for it.
#pragma once
#include <cstdint>

namespace ng::cpu {

inline int64_t times(int64_t x, int64_t y)
{
    int64_t r = 0;
    return __builtin_mul_overflow(x, y, &r) ? INT64_MAX : r;
}
inline int64_t plus(int64_t x, int64_t y)
{
    int64_t r = 0;
    return __builtin_add_overflow(x, y, &r) ? INT64_MAX : r;
}

// Bytes beyond these are of no address space; sums of many such sizes are no overflow.
constexpr int64_t MOST_ROOM = int64_t(1) << 56;
inline int64_t bounded(int64_t bytes) { return bytes < MOST_ROOM ? bytes : MOST_ROOM; }
inline uint64_t room_of_workers(uint64_t bytes, uint64_t workers) { return bytes >= uint64_t(MOST_ROOM) / (workers ? workers : 1) ? uint64_t(MOST_ROOM) : bytes * workers; }

}  // namespace ng::cpu
