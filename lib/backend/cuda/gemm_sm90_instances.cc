// The instances of Hopper's products by their rows in gemm_sm90.def: what each is, and its kernels in the images.
#include "lib/backend/cuda/gemm_sm90.h"

#include <array>

namespace ng::cuda::gemm::sm90 {
namespace {

using namespace kernels;

#define ONE(...) +1
constexpr uint32_t VARIANTS[] = {GEMM_SM90_Half(ONE), GEMM_SM90_Byte(ONE), GEMM_SM90_Whole(ONE), GEMM_SM90_MovedByte(ONE), GEMM_SM90_MovedWhole(ONE),
                                GEMM_SM90_Wide(ONE), GEMM_SM90_Round(ONE), GEMM_SM90_Turned(ONE), GEMM_SM90_Moved(ONE), GEMM_SM90_Double(ONE)};      // by Group
constexpr uint32_t ODD_VARIANTS = GEMM_SM90_Odd(ONE);
#undef ONE

struct Row {
    const char* tile;
    Group       group;
    bool        is_split, is_cut, is_odd, turns, is_stream_k;
    int32_t     m, n, down, across, schedule, stages, units, slots;
    bool        is_listed = false;
};
constexpr Row ROWS[] = {
#define TILES(group, tile, m, n, down, across, stages, schedule, turns, stream_k) {#tile, Group::group, false, false, false, turns != 0, stream_k != 0, m, n, down, across, schedule, stages, 1, 0},
#define SPLIT(group, tile, m, n, stages, units, turns) {"s" #tile, Group::group, true, false, false, turns != 0, false, m, n, 1, 1, 0, stages, units, 0},
#define ODD(group, tile, m, n, stages, units) {"o" #tile, Group::group, true, false, true, false, false, m, n, 1, 1, 0, stages, units, 0},
#define CUT(group, tile, m, n, stages, slots) {"c" #tile, Group::group, true, true, false, false, false, m, n, 1, 1, 0, stages, 1, slots},
#define ASIDE(...)
#define LISTED_ROW(...) {__VA_ARGS__, true},
#define LISTED_TILES(group, tile, m, n, down, across, stages, schedule, turns, stream_k) LISTED_ROW(#tile, Group::group, false, false, false, turns != 0, stream_k != 0, m, n, down, across, schedule, stages, 1, 0)
#define LISTED_SPLIT(group, tile, m, n, stages, units, turns) LISTED_ROW("s" #tile, Group::group, true, false, false, turns != 0, false, m, n, 1, 1, 0, stages, units, 0)
#define LISTED_CUT(group, tile, m, n, stages, slots) LISTED_ROW("c" #tile, Group::group, true, true, false, false, false, m, n, 1, 1, 0, stages, 1, slots)
#include "kernels/gemm_sm90.def"
#undef TILES
#undef SPLIT
#undef ODD
#undef CUT
#undef ASIDE
#undef LISTED_ROW
};
constexpr size_t COUNT = std::size(ROWS);

constexpr std::array<Instance, COUNT> numbered()
{
    std::array<Instance, COUNT> r = {};
    uint32_t next[size_t(Image::count_)] = {}, listed = 0, boxed = 0;
    for (size_t i = 0; i < COUNT; i++) {
        const Row& row = ROWS[i];
        uint32_t&  first = next[size_t(image_of(row.group))];
        const uint32_t m = uint32_t(row.m), n = uint32_t(row.n), stages = uint32_t(row.stages);
        const int32_t kept = row.is_cut ? int32_t(cut_kept(m, n, stages, uint32_t(row.slots))) : row.is_split ? int32_t(split_kept(m, row.is_odd ? ODD_WIDTH : n, stages)) : row.stages;
        r[i] = {row.tile, row.group, image_of(row.group), row.is_split, row.is_cut, row.is_odd, row.turns, row.is_stream_k, row.m, row.n,
                row.down * row.across, row.down, row.across, row.schedule, row.stages, kept, row.units, row.slots, first, NO_KERNEL, NO_KERNEL};
        const uint32_t variants = row.is_odd ? ODD_VARIANTS : VARIANTS[size_t(row.group)];
        first += variants;
        if (!row.is_listed) continue;
        r[i].first_listed = listed, listed += variants;
        if (!row.is_split) r[i].first_boxed = boxed, boxed += variants;
    }
    return r;
}
constexpr std::array<Instance, COUNT> INSTANCES = numbered();

#define TILES_FACTS(types, way, Kind, a, b, promote, tile, m, n, down, across, stages, schedule, turns, stream_k) {"gemm_" #types "_" #way "_" #tile, tiles_layout({m, n, stages, schedule < 0, turns}, tiles_turn_b(n, a, b, turns), {}).bytes},
#define SPLIT_FACTS(types, way, Kind, a, b, promote, tile, m, n, stages, units, turns) {"gemm_" #types "_" #way "_s" #tile, split_shared(m, n, stages)},
#define ODD_FACTS(types, way, Kind, a, b, promote, tile, m, n, stages, units) {"gemm_" #types "_" #way "_o" #tile, split_shared(m, ODD_WIDTH, stages)},
#define CUT_FACTS(types, way, Kind, a, b, promote, tile, m, n, stages, slots) {"gemm_" #types "_" #way "_c" #tile, cut_shared(m, n, stages, slots)},
#define ASIDE_FACTS(name, threads) {"gemm_" #name, 0},
#define TILES(group, ...) GEMM_SM90_##group(TILES_FACTS, __VA_ARGS__)
#define SPLIT(group, ...) GEMM_SM90_##group(SPLIT_FACTS, __VA_ARGS__)
#define ODD(group, ...) GEMM_SM90_Odd(ODD_FACTS, __VA_ARGS__)
#define CUT(group, ...) GEMM_SM90_##group(CUT_FACTS, __VA_ARGS__)
#define ASIDE(group, ...) ASIDE_FACTS(__VA_ARGS__)
constexpr KernelFacts FACTS[] = {
#include "kernels/gemm_sm90.def"
};
#undef TILES
#undef SPLIT
#undef ODD
#undef CUT
#undef ASIDE
#define TILES_SHAPE(types, way, Kind, a, b, promote, tile, m, n, down, across, stages, schedule, turns, stream_k)                            \
    "TilesShape<" #Kind ", " #m ", " #n ", " #down ", " #across ", " #stages ", " #a ", " #b ", " #schedule ", " #promote ", " #turns ", " #stream_k ">",
#define SPLIT_SHAPE(types, way, Kind, a, b, promote, tile, m, n, stages, units, turns) "SplitShape<" #Kind ", " #m ", " #n ", " #stages ", " #a ", " #b ", " #promote ", " #turns ">",
#define ODD_SHAPE(types, way, Kind, a, b, promote, tile, m, n, stages, units) "OddShape<" #Kind ", " #m ", " #stages ">",
#define CUT_SHAPE(types, way, Kind, a, b, promote, tile, m, n, stages, slots) "CutShape<" #m ", " #n ", " #stages ", " #slots ", " #a ", " #b ">",
#define TILES(group, ...) GEMM_SM90_##group(TILES_SHAPE, __VA_ARGS__)
#define SPLIT(group, ...) GEMM_SM90_##group(SPLIT_SHAPE, __VA_ARGS__)
#define ODD(group, ...) GEMM_SM90_Odd(ODD_SHAPE, __VA_ARGS__)
#define CUT(group, ...) GEMM_SM90_##group(CUT_SHAPE, __VA_ARGS__)
#define ASIDE(group, name, threads) #name,
constexpr const char* SHAPES[] = {       // as FACTS
#include "kernels/gemm_sm90.def"
};
#undef TILES
#undef SPLIT
#undef ODD
#undef CUT
#undef ASIDE
// Kernels of each image, one image after the other.
constexpr uint32_t COUNTS[] = {
#define TILES(group, ...) +(image_of(Group::group) == IMAGE ? VARIANTS[size_t(Group::group)] : 0)
#define SPLIT(group, ...) TILES(group)
#define ODD(group, ...) +(image_of(Group::group) == IMAGE ? ODD_VARIANTS : 0)
#define CUT(group, ...) TILES(group)
#define ASIDE(group, ...) +(image_of(Group::group) == IMAGE)
#define IMAGE Image::Sm90Half
    0
#include "kernels/gemm_sm90.def"
    ,
#undef IMAGE
#define IMAGE Image::Sm90Byte
    0
#include "kernels/gemm_sm90.def"
    ,
#undef IMAGE
#define IMAGE Image::Sm90Wide
    0
#include "kernels/gemm_sm90.def"
#undef IMAGE
#undef TILES
#undef SPLIT
#undef ODD
#undef CUT
#undef ASIDE
};
static_assert(COUNTS[0] + COUNTS[1] + COUNTS[2] == std::size(FACTS), "every kernel is of one image");
// Kernels that carry out lists, those without a box and those with one.
#define NAMED(prefix, name, bytes) {"gemm_" prefix "_" name, bytes},
#define LISTED_TILES_FACTS(types, way, Kind, a, b, promote, tile, m, n, down, across, stages, schedule, turns, stream_k) NAMED("listed", #types "_" #way "_" #tile, tiles_layout({m, n, stages, schedule < 0, turns}, tiles_turn_b(n, a, b, turns), LISTED_FINISH).bytes)
#define LISTED_SPLIT_FACTS(types, way, Kind, a, b, promote, tile, m, n, stages, units, turns) NAMED("listed", #types "_" #way "_s" #tile, split_shared(m, n, stages))
#define LISTED_CUT_FACTS(types, way, Kind, a, b, promote, tile, m, n, stages, slots) NAMED("listed", #types "_" #way "_c" #tile, cut_shared(m, n, stages, slots))
#define BOXED_TILES_FACTS(types, way, Kind, a, b, promote, tile, m, n, down, across, stages, schedule, turns, stream_k) NAMED("boxed", #types "_" #way "_" #tile, tiles_layout({m, n, stages, schedule < 0, turns}, tiles_turn_b(n, a, b, turns), BOXED_FINISH).bytes)
#define LISTED_TILES(group, ...) GEMM_SM90_##group(LISTED_TILES_FACTS, __VA_ARGS__)
#define LISTED_SPLIT(group, ...) GEMM_SM90_##group(LISTED_SPLIT_FACTS, __VA_ARGS__)
#define LISTED_CUT(group, ...) GEMM_SM90_##group(LISTED_CUT_FACTS, __VA_ARGS__)
constexpr KernelFacts LISTED[] = {
#include "kernels/gemm_sm90_listed.def"
};
#define LISTED_TILES(group, ...) GEMM_SM90_##group(BOXED_TILES_FACTS, __VA_ARGS__)
#define LISTED_SPLIT(...)
#define LISTED_CUT(...)
constexpr KernelFacts BOXED[] = {
#include "kernels/gemm_sm90_listed.def"
};
#undef NAMED

}  // namespace

std::span<const Instance> instances() { return INSTANCES; }

std::span<const KernelFacts> kernels_of(Image image)
{
    static_assert(int(Image::Sm90Half) == 0 && int(Image::Sm90Byte) == 1 && int(Image::Sm90Wide) == 2, "the order of COUNTS");
    size_t first = 0;
    for (size_t i = 0; i < size_t(image); i++) first += COUNTS[i];
    return std::span(FACTS).subspan(first, COUNTS[size_t(image)]);
}

std::span<const KernelFacts> listed_kernels_of(Image image)
{
    if (image == Image::Sm90Boxed) return BOXED;
    return LISTED;
}

const char* shape_of(const Instance& instance, uint32_t variant) { return SHAPES[&sm90::kernels_of(instance.image)[kernel_of(instance, variant)] - FACTS]; }

}  // namespace ng::cuda::gemm::sm90
