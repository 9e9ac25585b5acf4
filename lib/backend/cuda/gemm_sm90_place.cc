// Sizes of launches' clusters that put blocks where they read memory fastest, and what that gives them, as measured on H200s.
#include "lib/backend/cuda/gemm_sm90_place.h"

#include <algorithm>
#include <cmath>

namespace ng::cuda::gemm::sm90 {
namespace {

// So many blocks, first to last, of which a multiprocessor holds `held`. share: of the first, and what each further one adds, as boxes alone are
// read (H200, 2026-11-30: experiments.md); products of few rows gain less, 3 to 12 % in the mean; of more blocks than are at work at once 1 to 8 %. As many clusters as these are find room at once (resident_blocks), of four
// and eight as the device says: products of 120 blocks take 3 to 6 % less so in the mean where 30 of four do, or 15 of eight.
struct Range {
    int32_t held, first, last, together;
    double  share, more;
};
constexpr Range RANGES[] = {{1, 69, 96, 6, 0.764, 0.0079}, {1, 117, 120, 8, 1, 0}, {1, 97, 120, 4, 0.88, 0.006}, {1, 133, 180, 6, 1, 0}, {1, 185, 204, 8, 1, 0}, {1, 205, 232, 4, 1, 0}, {1, 233, 240, 8, 1, 0},
                            {1, 313, 344, 8, 1, 0}, {1, 441, 480, 8, 1, 0}, {2, 153, 208, 8, 0.74, 0.0043}, {2, 209, 232, 4, 0.9, 0.0034}};
constexpr uint32_t MULTIPROCESSORS = 132;

}  // namespace

// 48 of different pairs of multiprocessors read 4.2 TB/s, and a pair that has twice as much to read as others takes twice as long: 72 3.1 TB/s, 80 3.4,
// 96 3.6 (H200, 2026-11-29).
double share_alone(const Device& device, int32_t held, double blocks)
{
    constexpr double FEW = 0.3, PAIRS = 0.79;        // of all multiprocessors, that read as fast as all: of different pairs; of which pairs have both
    const double at_work = std::ceil(blocks / held);
    return std::min(1.0, at_work / (device.units * (at_work <= device.units / 2.0 ? FEW : PAIRS)));
}

Placement placement_of(const Device& device, int32_t held, int32_t cluster, double blocks)
{
    // Of blocks that have a multiprocessor each: no more rounds than alone.
    const auto has_room = [&](const Range& r) {
        const int32_t at_once = r.together * (r.together == 8 ? device.clusters.of_eight : device.clusters.of_four);
        return r.together == 6 || held > 1 || std::ceil(blocks / at_once) <= std::ceil(blocks / MULTIPROCESSORS);
    };
    const auto is_it = [&](const Range& r) { return r.held == held && blocks >= r.first && blocks <= r.last && r.together % cluster == 0 && has_room(r); };
    const Range* const r = std::ranges::find_if(RANGES, is_it);
    if (device.units != MULTIPROCESSORS || !has_fast_memory(device) || r == std::end(RANGES)) return {cluster, share_alone(device, held, blocks)};
    return {r->together, std::min(1.0, r->share + r->more * (blocks - r->first))};
}

int32_t held_blocks(const Instance& i)
{
    constexpr uint32_t OF_A_BLOCK = 1024;    // that it cannot use
    return std::min(i.units, int32_t((kernels::SHARED_MOST + OF_A_BLOCK) / (shared_of(i) + OF_A_BLOCK)));
}

}  // namespace ng::cuda::gemm::sm90
