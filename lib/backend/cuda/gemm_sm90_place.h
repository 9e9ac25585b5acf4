// Where the blocks of a launch come to be on an H200, and how fast they read memory from there.
//
// A multiprocessor is given all blocks that it holds before the next one is given any. Which multiprocessors have some while others have none is decided by the size of
// the launch's clusters, whatever these are for: of boxes alone 112 blocks, each for itself or by pairs, read 4.2 TB/s, by fours 4.6; 96 read 3.7, by sixes 4.5. So
// blocks that share nothing are launched as clusters, too.
#pragma once
#include "lib/backend/cuda/gemm_sm90.h"

namespace ng::cuda::gemm::sm90 {

// Whether memory is as fast as an H200's, which takes power from the multiprocessors, and of which not all of these together reach all. Times of 629 shapes on H100s (3.35 TB/s, 700 W,
// 2026-11-26) show no such limit of power, nor do turns with cuBLASLt's there.
inline bool has_fast_memory(const Device& device)
{
    constexpr double FAST_BYTES_PER_US = 4e6;
    return device.memory_bytes_per_us > FAST_BYTES_PER_US;
}

// Blocks of a launch's cluster, a multiple of `cluster`; and what such blocks read of what they would if all multiprocessors had as many.
struct Placement {
    int32_t together;
    double  share;
};
// held: blocks that a multiprocessor holds. Where nothing is gained, and on other devices, together is `cluster`.
Placement placement_of(const Device& device, int32_t held, int32_t cluster, double blocks);
// The share of blocks that are launched each for itself.
double share_alone(const Device& device, int32_t held, double blocks);
// Whether several clusters of an instance that is not split may be launched as one.
inline bool may_stand_together(const Instance& i) { return !i.is_stream_k && kernels::tiles_may_stand_together(i.cluster, uint32_t(i.n), i.schedule < 0, i.turns); }
// Blocks of a split that a multiprocessor holds: what its kernel was compiled for, or fewer, for which there is shared memory.
int32_t held_blocks(const Instance& instance);

}  // namespace ng::cuda::gemm::sm90
