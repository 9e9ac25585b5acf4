// Which of Hopper's tiles a product is given: by its extents, how its operands lie, what follows it, and the card's memory.
#include "lib/backend/cuda/gemm_tuned.h"
#include "tests/backend/gemm_problems.h"

#include <algorithm>
#include <limits>
#include <string>

namespace ng::gemm_check {
namespace {

namespace sm90 = gemm::sm90;

// Without room for parts.
const sm90::Instance& chosen(const gemm::Problem& p, const gemm::Device& device = whole_device())
{
    sm90::Form form;
    REQUIRE(sm90::make_form(p, false, form));
    return sm90::instances()[sm90::choose(form, device, 0).instance];
}
// Of halves.
const sm90::Instance& chosen(const Extents& e, const Lying& lying, int weight)
{
    gemm::Problem p = problem_of(e, lying, Dtype::f16, Dtype::f16, Dtype::f16);
    p.epilogue_weight = weight;
    return chosen(p);
}

gemm::Problem rounded(const Extents& e, bool b_turned)
{
    gemm::Problem p = problem_of(e, {false, b_turned, false, 0}, Dtype::f32, Dtype::f32, Dtype::f32);
    p.allows_tf32 = true;
    return p;
}

}  // namespace

TEST_CASE("splits: a tile's units go to the blocks of a cluster as a division would have it")
{
    for (uint32_t blocks = 1; blocks <= kernels::MOST_BLOCKS; blocks++)
        for (uint32_t units = 1; units <= kernels::MOST_UNITS; units++)
            for (uint32_t block = 0; block <= blocks; block++) CHECK(units * block * (kernels::UNIT_SHARES / blocks + 1) / kernels::UNIT_SHARES == units * block / blocks);
}

TEST_CASE("tiles: not of up to 32 columns, which many small blocks bring sooner")
{
    for (const Extents& e : {Extents{6144, 32, 2048, 1}, Extents{7680, 32, 2560, 1}, Extents{8448, 32, 2816, 1}, Extents{28672, 20, 8192, 1}, Extents{4096, 8, 4096, 1}})
        for (const bool b_turned : {false, true}) CHECK(chosen(e, {false, b_turned, false, 0}, 0).is_split);
    CHECK(!chosen({28672, 64, 2048, 1}, {}, 0).is_split);
}

TEST_CASE("tiles: by stream-K where one more round would leave most of the card idle, and there is room for sums that meet")
{
    const auto instance = [](const Extents& e, uint64_t room) {
        sm90::Form form;
        REQUIRE(sm90::make_form(problem_of(e, {false, true, false, 0}, Dtype::f16, Dtype::f16, Dtype::f16), false, form));
        return sm90::instances()[sm90::choose(form, whole_device(), room).instance];
    };
    CHECK(instance({144, 18944, 3584, 1}, sm90::MOST_PARTIAL_BYTES).is_stream_k);       // 74 pairs of tiles for 66 places
    CHECK(!instance({144, 18944, 3584, 1}, 0).is_stream_k);
    CHECK(!instance({144, 16896, 3584, 1}, sm90::MOST_PARTIAL_BYTES).is_stream_k);      // as many
    CHECK(!instance({144, 4096, 4096, 1}, sm90::MOST_PARTIAL_BYTES).is_stream_k);       // not half of that
    CHECK(!instance({4096, 4096, 4096, 1}, sm90::MOST_PARTIAL_BYTES).is_stream_k);
}

TEST_CASE("tiles: of c's transpose where those of c leave more of the card idle, and of no epilogue")
{
    const auto turns = [](const Extents& e, const Lying& lying, int weight) { return chosen(e, lying, weight).turns; };
    CHECK(turns({6144, 512, 1536, 1}, {false, true, false, 0}, 0));      // 128 tiles of 192 x 128, where 96 of 128 x 256 would be
    CHECK(turns({2560, 7000, 2560, 1}, {}, 0));
    CHECK(!turns({2560, 7000, 2560, 1}, {}, 1));
    CHECK(!turns({4096, 4096, 4096, 1}, {}, 0));
}

TEST_CASE("tiles: as wide as rows want it that are as many as they happen to be, but beside an epilogue")
{
    const auto problem = [](const Extents& e, Dtype type, int weight) {
        gemm::Problem p = problem_of(e, {false, true, false, 0}, type, type, Dtype::f16);
        p.epilogue_weight = weight;
        return p;
    };
    const auto tile = [&](const Extents& e, Dtype type) { return std::string(chosen(problem(e, type, 0)).tile); };
    CHECK(tile({137, 11008, 4096, 1}, Dtype::f16) == "t192x72x1x2");      // 29.4 us by 116 tiles for 132 multiprocessors, with 80 rows 29.7, 31 by 86 of 128 x 144, other ways 44 (H200)
    CHECK(tile({170, 12288, 4096, 1}, Dtype::f16) == "t192x88x1x2");      // 34, with 104 rows 38
    CHECK(tile({280, 11008, 4096, 1}, Dtype::f16) == "t256x96x2");        // 44, with 104 rows 46
    CHECK(tile({400, 11008, 4096, 1}, Dtype::f16) == "t128x136x2");       // 62, with 144 rows 65
    CHECK(tile({200, 11008, 4096, 1}, Dtype::f16) == "t192x104x1x2");     // 34, with 112 rows 35, of 128 columns 38
    CHECK(tile({300, 12288, 4096, 1}, Dtype::f16) == "t192x152x1x2");     // 51, with 160 rows 53, of 128 columns 61
    CHECK(tile({137, 4096, 4096, 1}, Dtype::f16) == "t64x72x1x2");        // 12.5 by 128 tiles of one warpgroup, as the fastest split 13.7
    CHECK(tile({170, 4096, 4096, 1}, Dtype::f16) == "t64x88x1x2");        // 15.9, 17.5
    CHECK(tile({300, 4096, 4096, 1}, Dtype::f16) == "t64x152x1x2");       // 20.5, 23
    CHECK(tile({250, 5120, 5120, 1}, Dtype::f16) == "128x96x1");          // 27, by pairs of 128 x 128, which fill less of a round, 33
    CHECK(tile({777, 4096, 11008, 1}, Dtype::f16) == "t128x200x2");       // 117, with 208 rows 121
    CHECK(tile({1400, 4096, 4096, 1}, Dtype::f16) == "t128x176x2");       // 80, other ways 84
    CHECK(tile({300, 8192, 8192, 1}, Dtype::e4m3) == "t128x152x2");       // 36, with 160 rows 37
    CHECK(tile({600, 4096, 11008, 1}, Dtype::e4m3) == "t128x152x2");      // 47, 49
    CHECK(tile({450, 8192, 8192, 1}, Dtype::f16) == "t128x232x2");        // 100, other ways 103
    CHECK(tile({700, 14336, 4096, 1}, Dtype::f16) == "t256x104x2");       // 138, 146
    CHECK(tile({64, 28672, 8192, 1}, Dtype::f16) == "s64x128");           // few rows, of which those of 256 columns were not timed
    CHECK(tile({400, 4096, 11008, 1}, Dtype::e4m3) == "t128x104x1x2");    // 30, the fastest of the others 33
    CHECK(tile({280, 6144, 4096, 1}, Dtype::e4m3) == "t192x72x1x2");      // 16, 21
    CHECK(tile({350, 6144, 4096, 1}, Dtype::e4m3) == "t192x88x1x2");      // 19, 25
    CHECK(tile({200, 11008, 4096, 1}, Dtype::e4m3) == "t192x104x1x2");    // 19, 22
    CHECK(tile({150, 4096, 4096, 1}, Dtype::e4m3) == "t64x88x1x2");       // 9.1, 10.6
    CHECK(tile({250, 5120, 5120, 1}, Dtype::e4m3) == "t128x88x2");        // 16, 18
    CHECK(tile({400, 5120, 5120, 1}, Dtype::e4m3) == "t128x136x2");       // 23, 24
    CHECK(tile({3001, 8192, 8192, 1}, Dtype::e4m3) == "128x128x1");       // 305, where 128 x 192 takes 329
    CHECK(!chosen(problem({777, 4096, 11008, 1}, Dtype::f16, 1)).turns);
    // A single warpgroup's are not for rows side by side, of which 5120 x 128 x 2560 takes 15.9 us where others take 11.0, nor for few columns.
    const auto lying = [&](const Extents& e, const Lying& l) { return std::string(chosen(problem_of(e, l, Dtype::f16, Dtype::f16, Dtype::f16)).tile); };
    for (const bool b_turned : {false, true}) CHECK(!lying({137, 4096, 4096, 1}, {true, b_turned, false, 0}).starts_with("t64x"));
    CHECK(lying({137, 4096, 4096, 1}, {}) == "t64x72x1x2");
    CHECK(!lying({7680, 64, 2560, 1}, {}).starts_with("t64x"));
}

TEST_CASE("splits: of c's transpose where a few rows more than a tile's are by as many tiles of b as the card has room for")
{
    const auto problem = [](const Extents& e, int weight) {
        gemm::Problem p = problem_of(e, {false, true, false, 0}, Dtype::f16, Dtype::f16, Dtype::f16);
        p.epilogue_weight = weight;
        return p;
    };
    const auto tile = [&](const Extents& e) { return std::string(chosen(problem(e, 0)).tile); };
    CHECK(tile({112, 4096, 11008, 1}) == "s128x64");     // 28 us, of c's transpose 29 (H200)
    CHECK(tile({137, 4096, 11008, 1}) == "st64x160");    // 30, the fastest of the others 40
    CHECK(tile({152, 4096, 14336, 1}) == "st64x160");    // 38, 53
    CHECK(tile({200, 4096, 14336, 1}) == "st64x208");    // 47, 51
    CHECK(tile({137, 8192, 8192, 1}) == "t128x72x1x2");  // 40, so 42: 128 tiles of 72 rows
    CHECK(tile({304, 4096, 11008, 1}) == "t64x152x1x2"); // 47, as a split of 160 rows 51
    CHECK(tile({137, 11008, 4096, 1}) == "t192x72x1x2"); // 172 of 64 rows would be two rounds
    // Fewer have tiles that were fitted to them: of 2048 x 64 x 2048 7.1 us as these, 5.2 as those.
    for (const Extents& e : {Extents{32, 4096, 14336, 1}, Extents{32, 28672, 8192, 1}, Extents{1, 18944, 3584, 1}, Extents{2048, 64, 2048, 1}, Extents{2048, 128, 2048, 1}, Extents{1024, 16, 500000, 1}}) {
        const sm90::Instance& few = chosen(problem(e, 0));
        INFO(e.m, " ", e.n, " ", e.k, ": ", few.tile);
        CHECK(!(few.is_split && few.turns));
    }
    const gemm::Problem with = problem({137, 4096, 11008, 1}, 1);
    CHECK(std::string(chosen(with).tile) == "st64x160");
    gemm::Problem folded = with;
    folded.epilogue.tensor[folded.epilogue.count++].kind = kernels::OVER_ROWS;
    CHECK(!chosen(folded).turns);
    // As each way wants its operands: the other one is the tile's rows, and what lies side by side comes by boxes that a tile has whole ones of.
    sm90::Form form;
    REQUIRE(sm90::make_form(problem({137, 4096, 11008, 1}, 0), false, form));
    const auto& all = sm90::instances();
    const auto  i = uint32_t(std::ranges::find_if(all, [](const sm90::Instance& one) { return one.is_split && one.turns; }) - all.begin());
    const sm90::Form own = sm90::form_of(form, all[i]);
    CHECK((own.problem.m == 4096 && own.problem.n == 137));
    for (const sm90::Instance& one : all)
        if (one.is_split && one.turns) CHECK(one.n % kernels::split_width(one.n, form.step) == 0);
    CHECK((kernels::split_width(16, 64) == 16 && kernels::split_width(64, 64) == 64 && kernels::split_width(128, 32) == 32 && kernels::split_width(144, 64) == 16));
}

TEST_CASE("tiles: of each instance there are three clusters' in the products that are to go from tile to tile on a device")
{
    size_t seen = 0;
    for (const Extents& e : DEEP)
        for (int bits = 0; bits < 8; bits++)
            for (const Dtype type : {Dtype::f16, Dtype::e4m3, Dtype::i8, Dtype::f32, Dtype::f64}) {
                gemm::Problem p = problem_of(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 0}, type, type, type == Dtype::f64 || type == Dtype::f32 ? type : type == Dtype::i8 ? Dtype::i32 : Dtype::f16);
                p.allows_tf32 = true;
                sm90::Form form;
                REQUIRE(sm90::make_form(placed(p), true, form));
                for (uint32_t i = 0; i < sm90::instances().size(); i++) {
                    const sm90::Instance& instance = sm90::instances()[i];
                    if (instance.is_split || !sm90::is_possible(form, {i, instance.cluster, 1, 8})) continue;
                    INFO(std::string(instance.tile), " of ", e.m, " x ", e.n, ", ", bits);
                    CHECK(sm90::tiling_of(sm90::form_of(form, instance), whole_device(), instance).tiles >= 3);
                    seen++;
                }
            }
    CHECK(seen > 500);
}

TEST_CASE("tiles: wide where they are a round less by far, others where lasting power would make up for it")
{
    const auto tile = [](const Extents& e) { return std::string(chosen(e, {}, 0).tile); };
    CHECK(tile({4096, 7000, 4096, 1}) == "128x192x2");     // nine full rounds, where 128 x 256 has seven that are nearly so: 364 and 376 us
    CHECK(tile({5120, 5120, 4096, 1}) == "tp128x160x1x2");     // 128 x 208, which there was once, took 10 to 13 % more
    CHECK(tile({8192, 1024, 8192, 1}) == "128x256x2");
    CHECK(tile({4096, 4096, 4096, 1}).starts_with("p128x128"));      // 210 us, where 128 x 256 takes 216
    CHECK(chosen({4096, 4096, 4096, 1}, {}, 10).schedule < 0);        // an epilogue under the other group's products
    CHECK(std::string(chosen(rounded({1024, 14336, 4096, 1}, true)).tile) == "p128x128x1");
    CHECK(std::string(chosen(rounded({1024, 14335, 4096, 1}, false)).tile) == "p128x128x2");      // b is turned before: 504 us, alone 523
}

TEST_CASE("tiles: words of a row-major b, or of a turned a, by way of registers where their rows begin at multiples of 16 bytes, nothing being copied")
{
    const auto tile = [](bool a_turned, bool b_turned, int64_t gap) {
        gemm::Problem p = problem_of({4096, 7000, 4096, 1}, {a_turned, b_turned, false, gap}, Dtype::f32, Dtype::f32, Dtype::f32);
        p.allows_tf32 = true;
        sm90::Form form;
        REQUIRE(sm90::make_form(p, false, form));
        const sm90::Instance& i = chosen(p);
        int copies = 0;
        const sm90::Form tiles = sm90::form_of(form, i);
        for (const sm90::Source* s : {&tiles.a, &tiles.b}) copies += sm90::is_copied(i, *s);
        return std::string(i.tile) + " " + std::to_string(copies);
    };
    CHECK(tile(false, false, 0) == "r128x256x2 0");        // 633 us, turned before 717 (H100)
    CHECK(tile(true, true, 0) == "r128x192x2 0");
    CHECK(tile(true, false, 0) == "r128x256x2 1");         // of two that lie so one is turned before
    CHECK(!tile(false, false, 1).starts_with("r"));
    CHECK(!tile(false, true, 0).starts_with("r"));
}

TEST_CASE("tiles: in pairs where threads store c, and its rows and the depth are many")
{
    const auto tile = [](const Extents& e) { return std::string(chosen(e, {}, 0).tile); };
    CHECK(tile({7680, 5481, 2560, 1}) == "p128x128x2");    // 332 us, alone 365
    CHECK(tile({5124, 9124, 1760, 1}) == "p128x128x2");
    CHECK(tile({8192, 4095, 1024, 1}) == "p128x128x1");    // little depth
    CHECK(tile({1024, 7242, 4096, 1}) == "p128x128x1");    // few rows
}

TEST_CASE("tiles: pingpong for a card whose memory leaves less power, wide ones for one whose memory is slower")
{
    gemm::Device h100 = whole_device();
    h100.memory_bytes_per_us = 3.35e6;
    const gemm::Problem words = rounded({7680, 7680, 2048, 1}, true);
    const gemm::Problem bytes = problem_of({4096, 4096, 4096, 1}, {false, true, false, 0}, Dtype::i8, Dtype::i8, Dtype::i32);
    for (const gemm::Problem& p : {words, bytes}) {
        CHECK(chosen(p).schedule < 0);
        CHECK(std::string(chosen(p, h100).tile) == "128x256x2");
    }
    CHECK(std::string(chosen(problem_of({8674, 8192, 4096, 1}, {false, true, false, 0}, Dtype::f16, Dtype::f16, Dtype::f16), h100).tile) == "128x256x2");     // 864 us, where pingpong takes 998
    CHECK(std::string(chosen(problem_of({8192, 4096, 512, 1}, {}, Dtype::f16, Dtype::f16, Dtype::f16), h100).tile).starts_with("p128x128"));
}

TEST_CASE("tiles: a line of measured ways whose numbers no way has is nothing to run by, nor to compile")
{
    const gemm::Problem bare = problem_of({64, 512, 512, 1}, {}, Dtype::f16, Dtype::f16, Dtype::f16);
    gemm::Problem p = bare;
    p.epilogue.is_cast = 1, p.epilogue_weight = 10;
    const auto usual = gemm::finisher_for(p, whole_device(), nullptr);
    REQUIRE(usual);
    constexpr int32_t LEAST = std::numeric_limits<int32_t>::min(), MOST = std::numeric_limits<int32_t>::max();
    const gemm::Way bad[] = {{false, false, 0, 0, 1, 1}, {false, false, 0, 1, 0, 1}, {false, false, 0, 1, 1, 0}, {false, false, 0, -100000, 1, 1}, {false, false, 0, 1, -100000, 1},
                             {false, false, 0, LEAST, LEAST, 1}, {false, false, 0, 1, 1, LEAST}, {false, false, 0, MOST, MOST, 1}, {false, false, 0, 9, 1, 1}, {false, false, 0, 1, 17, 1}};
    for (uint32_t i = 0; i < sm90::instances().size(); i++)
        for (gemm::Way way : bad) {
            way.instance = i;
            INFO(gemm::words_of(way));
            gemm::Tuned written, read;
            written.keep(gemm::shape_of(p), {way, 1, 2});
            read.add(written.text());
            const auto measured = read.find(gemm::shape_of(p));
            REQUIRE(measured);
            CHECK(!gemm::can_run_so(bare, whole_device(), uint64_t(64) << 20, measured->way));
            const auto finisher = gemm::finisher_for(p, whole_device(), &measured->way);
            REQUIRE(finisher);
            CHECK(finisher->instance == usual->instance);
        }
}

}  // namespace ng::gemm_check
