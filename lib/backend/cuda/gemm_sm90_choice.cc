// Which of Hopper's instances runs a product: what each would take by a model of the multiprocessor, and the least of that.
#include "lib/backend/cuda/gemm_sm90.h"

#include <algorithm>
#include <array>

namespace ng::cuda::gemm::sm90 {
namespace {

using namespace kernels;

#define ONE(...) +1
constexpr uint32_t VARIANTS[] = {GEMM_SM90_Half(ONE), GEMM_SM90_Byte(ONE), GEMM_SM90_Wide(ONE)};
#undef ONE

struct Row {
    const char* tile;
    Image       image;
    bool        is_split;
    int32_t     m, n, cluster, schedule, stages, units;
};
constexpr Row ROWS[] = {
#define TILES(image, tile, m, n, cluster, stages, schedule) {#tile, Image::Sm90##image, false, m, n, cluster, schedule, stages, 1},
#define SPLIT(image, tile, m, n, stages, units) {"s" #tile, Image::Sm90##image, true, m, n, 1, 0, stages, units},
#define ASIDE(...)
#include "kernels/gemm_sm90.def"
#undef TILES
#undef SPLIT
#undef ASIDE
};
constexpr size_t COUNT = std::size(ROWS);

constexpr std::array<Instance, COUNT> numbered()
{
    std::array<Instance, COUNT> r = {};
    uint32_t next[size_t(Image::count_)] = {};
    for (size_t i = 0; i < COUNT; i++) {
        const Row& row = ROWS[i];
        uint32_t&  first = next[size_t(row.image)];
        r[i] = {row.tile, row.image, row.is_split, row.m, row.n, row.cluster, row.schedule, row.stages, row.units, first};
        first += VARIANTS[size_t(row.image)];
    }
    return r;
}
constexpr std::array<Instance, COUNT> INSTANCES = numbered();

#define TILES_FACTS(types, way, Kind, a, b, promote, tile, m, n, cluster, stages, schedule) {"gemm_" #types "_" #way "_" #tile, tiles_shared(m, n, stages)},
#define SPLIT_FACTS(types, way, Kind, a, b, promote, tile, m, n, stages, units) {"gemm_" #types "_" #way "_s" #tile, split_shared(m, n, stages)},
#define ASIDE_FACTS(name, threads) {"gemm_" #name, 0},
#define TILES(image, ...) GEMM_SM90_##image(TILES_FACTS, __VA_ARGS__)
#define SPLIT(image, ...) GEMM_SM90_##image(SPLIT_FACTS, __VA_ARGS__)
#define ASIDE(image, ...) ASIDE_FACTS(__VA_ARGS__)
constexpr KernelFacts FACTS[] = {
#include "kernels/gemm_sm90.def"
};
#undef TILES
#undef SPLIT
#undef ASIDE
// Kernels of each image, one image after the other.
constexpr uint32_t COUNTS[] = {
#define TILES(image, ...) +(Image::Sm90##image == IMAGE ? VARIANTS[size_t(IMAGE)] : 0)
#define SPLIT(image, ...) TILES(image)
#define ASIDE(image, ...) +(Image::Sm90##image == IMAGE)
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
#undef ASIDE
};
static_assert(COUNTS[0] + COUNTS[1] + COUNTS[2] == std::size(FACTS), "every kernel is of one image");

int64_t divided_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// ---- the model: cycles of a multiprocessor --------------------------------------------------------------------------------

constexpr double CYCLES_A_US = 1650;             // what the clock comes to under load
constexpr double CACHE_BYTES = 40;               // from the second cache to a multiprocessor, a cycle, when all ask
constexpr double MEMORY_BYTES = 2500;            // from memory, a cycle, for all
constexpr double LAUNCH = 3500;                  // until the first product

double memory_cycles(const Form& form)
{
    const Problem& p = form.problem;
    const double   element = form.planes == 3 ? 6 : double(bytes_of(p.a_type));
    return double(p.batches) * (double(p.m) * double(p.k) * element + double(p.k) * double(p.n) * element + double(p.m) * double(p.n) * double(bytes_of(p.c_type))) / MEMORY_BYTES;
}

double tiles_cycles(const Form& form, const Device& device, const Instance& i)
{
    const Problem& p = form.problem;
    const double   tiles = double(divided_up(p.m, i.m * i.cluster) * divided_up(p.n, i.n) * p.batches), slots = double(device.units / uint32_t(i.cluster));
    const double   steps = double(steps_of(form)) * (form.planes == 3 ? 6 : 1), multiply = i.m * i.n / 32.0;
    const double   load = (i.m + i.n / double(i.cluster)) * 128 / CACHE_BYTES;
    const double   tile = steps * std::max(multiply, load), store = i.m * i.n * double(bytes_of(p.c_type)) / CACHE_BYTES + 600;
    const double   rounds = double(divided_up(int64_t(tiles), int64_t(slots)));
    return LAUNCH + rounds * (tile + 200) + store;
}

double split_cycles(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    const Problem& p = form.problem;
    const double   blocks = double(divided_up(p.m, i.m) * divided_up(p.n, i.n) * p.batches) * c.cluster * c.splits;
    const double   together = std::clamp(blocks / device.units, 1.0, double(i.units)), rounds = std::max(1.0, double(divided_up(int64_t(blocks), int64_t(device.units) * i.units)));
    const double   steps = double(divided_up(steps_of(form), int64_t(c.cluster) * c.splits)) * (form.planes == 3 ? 6 : 1);
    const double   step = std::max(i.m * i.n / 32.0, (i.m + i.n) * 128 / CACHE_BYTES) * together;
    const double   store = i.m * i.n * 4.0 / c.cluster / 32 * together + 300;
    double cycles = LAUNCH + rounds * (steps * step + store);
    if (c.cluster > 1) cycles += 1200 + 60.0 * c.cluster;
    if (c.splits > 1) cycles += 4000 + double(partial_bytes(form, c.splits)) * 2 / MEMORY_BYTES;
    return cycles;
}

}  // namespace

std::span<const Instance> instances() { return INSTANCES; }

std::span<const KernelFacts> kernels_of(Image image)
{
    static_assert(int(Image::Sm90Half) == 0 && int(Image::Sm90Byte) == 1 && int(Image::Sm90Wide) == 2, "the order of COUNTS and VARIANTS");
    size_t first = 0;
    for (size_t i = 0; i < size_t(image); i++) first += COUNTS[i];
    return std::span(FACTS).subspan(first, COUNTS[size_t(image)]);
}

bool is_possible(const Form& form, const Choice& c)
{
    const Instance& i = INSTANCES[c.instance];
    if (i.image != form.image) return false;
    const Problem& p = form.problem;
    const int64_t  blocks = divided_up(p.m, i.m) * divided_up(p.n, i.n) * p.batches * c.cluster * c.splits;
    if (blocks > int64_t(1) << 30) return false;
    if (!i.is_split) return c.cluster == i.cluster && c.splits == 1;
    if (form.planes == 3) return false;
    return int64_t(c.cluster) * c.splits <= steps_of(form) && (c.splits == 1 || form.image == Image::Sm90Half);
}

double cost_us(const Form& form, const Device& device, const Choice& c)
{
    const Instance& i = INSTANCES[c.instance];
    const double    cycles = i.is_split ? split_cycles(form, device, i, c) : tiles_cycles(form, device, i);
    return std::max(cycles, memory_cycles(form) + LAUNCH) / CYCLES_A_US;
}

Choice choose(const Form& form, const Device& device, uint64_t most_partial_bytes)
{
    Choice best = {};
    double least = -1;
    const auto look = [&](const Choice& c) {
        if (!is_possible(form, c) || partial_bytes(form, c.splits) > most_partial_bytes) return;
        const double cost = cost_us(form, device, c);
        if (least < 0 || cost < least) least = cost, best = c;
    };
    for (uint32_t i = 0; i < COUNT; i++) {
        if (!INSTANCES[i].is_split) look({i, INSTANCES[i].cluster, 1, 8});
        else
            for (int32_t splits = 1; splits <= MOST_SPLITS; splits++)
                for (int32_t cluster = 1; cluster <= MOST_CLUSTER; cluster++) look({i, cluster, splits, 1});
    }
    return best;
}

}  // namespace ng::cuda::gemm::sm90
