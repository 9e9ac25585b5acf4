// Blocks that share nothing but are launched as one cluster, so that they are where they read fastest: every tile still has its own, without a device.
#include "lib/backend/cuda/gemm_sm90_place.h"
#include "tests/backend/gemm_launches.h"

#include <algorithm>
#include <set>

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = cuda::gemm::sm90;

sm90::Form halves(const Extents& e, const Lying& lying) { return form_of(placed(problem_of(e, lying, Dtype::f16, Dtype::f16, Dtype::f16))); }
uint32_t instance_of(std::string_view tile)
{
    for (uint32_t i = 0; i < sm90::instances().size(); i++)
        if (sm90::instances()[i].tile == tile && sm90::instances()[i].group == sm90::Group::Half) return i;
    FAIL("no tile ", std::string(tile));
    return 0;
}

}  // namespace

TEST_CASE("place: clusters of launches are whole numbers of clusters that share a tile, on devices that were measured alone")
{
    gemm::Device slower = whole_device(), smaller = whole_device();
    slower.memory_bytes_per_us = 3.35e6, smaller.units = 114;
    int placed_ones = 0;
    for (const int32_t held : {1, 2, 3})
        for (int32_t cluster = 1; cluster <= sm90::MOST_CLUSTER; cluster++)
            for (int32_t blocks = cluster; blocks <= 600; blocks += cluster) {
                const sm90::Placement place = sm90::placement_of(whole_device(), held, cluster, blocks);
                CHECK(place.together % cluster == 0);
                CHECK(place.together <= sm90::MOST_CLUSTER);
                CHECK((place.share > 0 && place.share <= 1));
                placed_ones += place.together != cluster;
                // As many as a device may hold at once: else some would wait for others to end.
                const int32_t units = held == 1 ? 1 : 2;
                if (place.together != cluster && blocks <= 132 * units) CHECK((blocks + place.together - 1) / place.together * place.together <= sm90::resident_blocks(whole_device(), units, place.together));
                for (const gemm::Device& other : {slower, smaller}) CHECK(sm90::placement_of(other, held, cluster, blocks).together == cluster);
            }
    CHECK(placed_ones > 100);
    CHECK(sm90::placement_of(whole_device(), 1, 1, 96).together == 6);
    for (const int32_t fours : {27, 29, 30, 33})
        for (const int32_t eights : {0, 13, 14, 15, 16}) {
            gemm::Device device = whole_device();
            device.clusters = {fours, eights};
            for (int32_t blocks = 97; blocks <= 132; blocks++) {
                INFO(blocks, " blocks where ", fours, " clusters of four find room, or ", eights, " of eight");
                CHECK(sm90::placement_of(device, 1, 1, blocks).together == (blocks > 116 && blocks <= std::min(8 * eights, 120) ? 8 : blocks <= std::min(4 * fours, 120) ? 4 : 1));
            }
            // Behind the first round clusters are as many as need no more rounds than blocks alone.
            CHECK(sm90::placement_of(device, 1, 1, 240).together == (eights >= 15 ? 8 : 1));
            CHECK(sm90::placement_of(device, 1, 1, 224).together == (fours >= 28 ? 4 : 1));
            CHECK(sm90::placement_of(device, 1, 2, 480).together == (eights >= 15 ? 8 : 2));
        }
    CHECK(sm90::placement_of(whole_device(), 1, 1, 96).share > sm90::share_alone(whole_device(), 1, 96));
}

TEST_CASE("place: pairs of tiles of 192 rows are launched with a fourth warpgroup that loads, and stand where others do")
{
    const auto launched = [](const char* tile, const Extents& e) {
        const uint32_t instance = instance_of(tile);
        const Seen     seen = run_as(halves(e, {false, true, false, 0}), {instance, sm90::instances()[instance].cluster, 1, 8}, [](const gemm::Launch&) {});
        REQUIRE(seen.launches.size() == 1);
        return seen.launches.front();
    };
    const gemm::Launch pairs = launched("t192x112x1x2", {200, 11008, 4096, 1});      // 58 by 2 tiles
    CHECK(pairs.block == 512);
    CHECK(pairs.grid[0] == 116);
    CHECK(pairs.cluster == 4);
    const gemm::Launch others = launched("t128x200x2", {200, 11008, 4096, 1});       // 86
    CHECK(others.block == 384);
    CHECK(others.grid[0] == 90);
    CHECK(others.cluster == 6);
}

TEST_CASE("place: blocks that make halves of bytes stand where others do")
{
    gemm::Problem p = placed(problem_of({16, 6144, 4096, 1}, {}, Dtype::f16, Dtype::i8, Dtype::f16));
    p.prologue.side = gemm::Prologue::B, p.prologue.type = Dtype::f16;
    const auto finisher = sm90::made_finisher_of(p, whole_device(), 16);
    REQUIRE(finisher);
    sm90::Form form;
    REQUIRE(sm90::make_made_form(p, *finisher, form));
    for (const int32_t cluster : {1, 2, 4}) {
        int launches = 0;
        auto body = [&](const gemm::Launch& l) {
            const kernels::GemmSplitNumbers& n = static_cast<const kernels::GemmMadeNumbers*>(l.numbers)->split;
            CHECK(n.blocks == uint32_t(cluster));
            CHECK(n.tiles == 48);
            CHECK(l.cluster == (cluster == 1 ? 1u : cluster == 2 ? 6u : 8u));    // 48 blocks, 96 and 192
            CHECK(n.together == int32_t(l.cluster) / cluster);
            CHECK(l.grid[0] == 48u * uint32_t(cluster));
            launches++;
        };
        auto basic_body = [](const cuda::basic::Launch&) { FAIL("nothing is copied"); };
        const gemm::Launcher launcher(body);
        const cuda::basic::Launcher basic_launcher(basic_body);
        sm90::run_made(form, whole_device(), cluster, *finisher, {nullptr, 0, launcher, basic_launcher, &fresh_driver()});
        CHECK(launches == 1);
    }
}

TEST_CASE("place: of a launch's blocks, as kernels count them, each part of each tile has one")
{
    const uint32_t instance = instance_of("s64x64");
    for (const int64_t n : {200, 4096, 5120, 11008})
        for (int32_t cluster = 1; cluster <= sm90::MOST_CLUSTER; cluster++)
            for (int32_t together = cluster; together <= sm90::MOST_CLUSTER; together += cluster)
                for (const int32_t splits : {1, 2}) {
                    INFO(n, " columns, clusters of ", cluster, " in ", together, ", ", splits, " splits");
                    bool is_run = false;
                    const Seen seen = run_as(halves({64, n, 8192, 1}, {}), {instance, cluster, splits, together}, [&](const gemm::Launch& l) {
                        if (is_run) return;          // sums of parts
                        is_run = true;
                        const auto& g = *static_cast<const kernels::GemmSplitNumbers*>(l.numbers);
                        CHECK(l.cluster == uint32_t(together));
                        CHECK(l.grid[0] % l.cluster == 0);
                        CHECK(g.tiles == g.row_tiles * g.column_tiles * splits);
                        std::set<std::pair<int32_t, uint32_t>> parts;
                        for (uint32_t block = 0; block < l.grid[0]; block++) {
                            const uint32_t rank = block % l.cluster, in_cluster = rank * g.unit_share / kernels::UNIT_SHARES;
                            CHECK(in_cluster == rank / g.blocks);
                            const int32_t tile = int32_t(block / l.cluster) * g.together + int32_t(in_cluster);
                            if (tile < g.tiles) CHECK(parts.emplace(tile, rank - in_cluster * g.blocks).second);
                        }
                        CHECK(parts.size() == size_t(g.tiles) * size_t(cluster));
                    });
                    CHECK(is_run);
                    CHECK(seen.copies == 0);
                }
}

TEST_CASE("place: tiles that are less than a device runs at once are launched so, too, unless loops are too full to say which pair a block is of")
{
    const struct { std::string_view tile; int64_t n; uint32_t cluster, least; } cases[] = {
        {"128x64x1", 5120, 6, 80}, {"t128x144x2", 11008, 6, 86}, {"t128x112x2", 14336, 4, 112}, {"p128x128x1", 11008, 6, 86}, {"128x192x2", 11008, 2, 116}, {"128x64x1", 8192, 1, 128}};
    for (const auto& c : cases) {
        const uint32_t instance = instance_of(c.tile);
        INFO(std::string(c.tile), ", ", c.n, " columns");
        const Seen seen = run_as(halves({64, c.n, 4096, 1}, {false, true, false, 0}), {instance, sm90::instances()[instance].cluster, 1, 8}, [&](const gemm::Launch& l) {
            CHECK(l.cluster == c.cluster);
            CHECK(l.grid[0] % l.cluster == 0);
            CHECK(l.grid[0] >= c.least);
            CHECK(l.grid[0] < c.least + l.cluster);
        });
        CHECK(seen.launches.size() == 1);
        CHECK(seen.copies == 0);
    }
}

}  // namespace ng::gemm_check
