// What Hopper's kernels make of products with few rows or columns: what is turned, and what is stored where it lies, without a device.
#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "tests/backend/gemm_launches.h"

#include <set>
#include <string_view>

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = cuda::gemm::sm90;

gemm::Problem placed(const Extents& e, const Lying& lying, Dtype type)
{
    return gemm_check::placed(problem_of(e, lying, type, type, bytes_of(type) > 1 ? type : is_float(type) ? Dtype::f16 : Dtype::i32));
}
// How many blocks a product is, by splits; look(numbers) before. Nothing is copied.
template <class Look>
int64_t blocks_of(const gemm::Problem& p, const Look& look)
{
    int64_t blocks = 0;
    auto body = [&](const gemm::Launch& l) { look(*static_cast<const kernels::GemmSplitNumbers*>(l.numbers)), blocks = l.grid[0]; };
    auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
    const gemm::Launcher  launcher(body);
    const basic::Launcher basic_launcher(none);
    sm90::run(p, whole_device(), {nullptr, 0, launcher, basic_launcher, &fresh_driver()});
    return blocks;
}

}  // namespace

TEST_CASE("few columns: of little else several blocks have one tile, and b is taken at an odd distance where rows are few, but copied where they would all ask for it")
{
    const auto choice_of = [](const Extents& e, bool b_turned) {
        const sm90::Form form = form_of(placed(e, {false, b_turned, false, 0}, Dtype::f16));
        return sm90::choose(form, whole_device(), 0);
    };
    // As they took the least time (H200): at least so many blocks, and by which kernels.
    struct Case {
        Extents extents;
        bool    b_turned;
        int32_t least;
        bool    is_odd;
    };
    for (const Case& c : {Case{{256, 4, 256, 1}, false, 3, true}, Case{{512, 2, 512, 1}, false, 3, true}, Case{{560, 10, 200, 1}, false, 3, true}, Case{{224, 3, 480, 1}, true, 3, false},
                          Case{{72, 16, 472, 1}, true, 3, false}, Case{{4096, 2, 256, 1}, false, 1, false}, Case{{8232, 3, 360, 1}, false, 1, false}}) {
        const sm90::Choice    choice = choice_of(c.extents, c.b_turned);
        const sm90::Instance& i = sm90::instances()[choice.instance];
        INFO(c.extents.m, " x ", c.extents.n, " x ", c.extents.k, ": ", std::string(i.tile), " by ", choice.cluster);
        CHECK(i.is_split);
        CHECK(i.is_odd == c.is_odd);
        CHECK(choice.cluster >= c.least);
    }
}

TEST_CASE("few rows: few rows of halves and bytes become columns, which splits of narrow tiles store where they are")
{
    const struct { Dtype type; bool b_turned; } operands[] = {{Dtype::f16, false}, {Dtype::f16, true}, {Dtype::i8, true}, {Dtype::u8, true}, {Dtype::e4m3, true}, {Dtype::e5m2, true}};
    for (const auto& o : operands)
        for (const int64_t rows : {2, 8, 16, 32}) {
            const gemm::Problem p = placed({rows, 4096, 1024, 1}, {false, o.b_turned, false, 0}, o.type);
            const sm90::Form    form = form_of(p);
            CHECK(form.problem.m == 4096);
            CHECK(form.problem.c_row == 1);
            CHECK(form.problem.c_column == 4096);
            CHECK(sm90::is_apart(form));
            CHECK(sm90::instances()[sm90::choose(form, whole_device(), 0).instance].n <= 32);
            for (uint32_t i = 0; i < sm90::instances().size(); i++)
                if (!sm90::instances()[i].is_split) CHECK(!sm90::is_possible(form, {i, sm90::instances()[i].cluster, 1, 8}));
            int  launches = 0;
            auto body = [&](const gemm::Launch& l) {
                const kernels::GemmOutput& output = static_cast<const kernels::GemmSplitNumbers*>(l.numbers)->output;
                CHECK(output.is_turned == 1);
                CHECK(output.store == kernels::STORE_FOURS);
                CHECK(output.m == rows);
                CHECK(output.c_row == 4096);
                launches++;
            };
            auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
            const gemm::Launcher  launcher(body);
            const basic::Launcher basic_launcher(none);
            sm90::run(p, whole_device(), {nullptr, 0, launcher, basic_launcher, &fresh_driver()});
            CHECK(launches == 1);
        }
}

TEST_CASE("few rows: rows stay rows where they are many, or of other types, where something folds, or the other operand would be copied")
{
    CHECK(!sm90::is_apart(form_of(placed({33, 4096, 1024, 1}, {}, Dtype::f16))));
    CHECK(!sm90::is_apart(form_of(placed({8, 8, 1024, 1}, {}, Dtype::f16))));
    CHECK(!sm90::is_apart(form_of(placed({8, 4096, 1024, 1}, {}, Dtype::f32))));
    CHECK(!sm90::is_apart(form_of(placed({8, 4097, 1024, 1}, {}, Dtype::f16))));
    CHECK(!sm90::is_apart(form_of(placed({8, 4096, 1024, 1}, {}, Dtype::i8))));
    CHECK(!sm90::is_apart(form_of(placed({8, 4096, 1024, 1}, {}, Dtype::e4m3))));
    gemm::Problem folded = placed({8, 4096, 1024, 1}, {}, Dtype::f16);
    folded.epilogue.tensor[folded.epilogue.count++].kind = kernels::OVER_ROWS;
    CHECK(!sm90::is_apart(form_of(folded)));
}

TEST_CASE("few rows: tiles of the other operand are as many as a card has room for, each of fewer rows than it could have")
{
    for (const Dtype type : {Dtype::f16, Dtype::e4m3, Dtype::i8})
        for (const int64_t n : {11008, 14336, 28672}) {
            const int64_t blocks = blocks_of(placed({8, n, 4096, 1}, {false, true, false, 0}, type), [&](const kernels::GemmSplitNumbers& g) {
                CHECK(g.tile_rows % 8 == 0);
                CHECK(g.row_tiles == (n + g.tile_rows - 1) / g.tile_rows);
            });
            INFO(int(type), " ", n, ": ", blocks);
            const int64_t units = whole_device().units, rounds = (blocks + units - 1) / units;
            CHECK((blocks >= 126 && blocks <= 4 * units && blocks * 20 >= rounds * units * 19));      // hardly a place is empty
        }
    // More rows than become columns are one tile's, which then has fewer columns.
    sm90::Form form = form_of(placed({64, 11008, 4096, 1}, {false, true, false, 0}, Dtype::f16));
    bool is_any = false;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (instance.group != form.group || !instance.is_split || instance.is_odd || instance.turns || instance.m != 64 || instance.n < 64) continue;
        is_any = true;
        const sm90::SplitTile tile = sm90::split_tile(form, whole_device(), instance, {i, 1, 1, 8});
        CHECK(tile.columns == (instance.n == 192 ? 192 : instance.n == 128 ? 88 : 64));      // not fewer than rows, which every tile reads, nor than half
        CHECK(tile.rows == 64);
    }
    CHECK(is_any);
    // Where a's rows lie side by side tiles keep theirs; few tiles are given more parts instead.
    form = form_of(placed({8, 14336, 4096, 1}, {}, Dtype::f16));
    for (uint32_t i = 0; i < sm90::instances().size(); i++)
        if (sm90::takes_group(form, sm90::instances()[i])) CHECK(sm90::split_tile(form, whole_device(), sm90::instances()[i], {i, 1, 1, 8}).rows == sm90::instances()[i].m);
    form = form_of(placed({8, 2048, 4096, 1}, {false, true, false, 0}, Dtype::f16));
    for (uint32_t i = 0; i < sm90::instances().size(); i++)
        if (sm90::takes_group(form, sm90::instances()[i])) CHECK(sm90::split_tile(form, whole_device(), sm90::instances()[i], {i, 1, 1, 8}).rows == sm90::instances()[i].m);
}

TEST_CASE("few rows: where w's tiles are as many as they are, they go to one round that reads evenly, or to more blocks than find room")
{
    const auto blocks = [](int64_t n, int64_t k) { return blocks_of(placed({8, n, k, 1}, {}, Dtype::f16), [](const kernels::GemmSplitNumbers&) {}); };
    const int64_t units = whole_device().units;
    for (const int64_t n : {5120, 6144, 7168, 8192}) CHECK(blocks(n, n) <= units);         // by twos on 40 to 64 multiprocessors
    for (const int64_t n : {10240, 11008, 18944}) CHECK(blocks(n, 4096) > 2 * units);      // else 80, 86 or 148 multiprocessors' worth
}

TEST_CASE("few rows: one row or column is one column, whatever its strides are said to be")
{
    for (const int64_t stride : {0, 1, 7})
        for (const bool is_row : {false, true}) {
            gemm::Problem p = placed(is_row ? Extents{1, 4096, 1024, 1} : Extents{4096, 1, 1024, 1}, {}, Dtype::f16);
            if (is_row) p.c_row = p.a_row = stride;
            else p.c_column = p.b_column = stride;
            const sm90::Form form = form_of(p);
            CHECK(form.problem.m == 4096);
            CHECK(form.problem.n == 1);
            CHECK(!sm90::is_apart(form));
        }
}

TEST_CASE("few rows: a text for one row, or few, runs for such alone, and one for many rows for any number, as it was made")
{
    const auto with_bias = [](int64_t rows, bool b_turned) {
        gemm::Problem p = placed({rows, 4096, 1024, 1}, {false, b_turned, false, 0}, Dtype::f16);
        p.epilogue_weight = 4, p.epilogue.count = p.epilogue.loads = 1;
        p.epilogue.tensor[0].data = address(uint64_t(1) << 35), p.epilogue.tensor[0].column = 1, p.epilogue.tensor[0].bytes = 2;
        return p;
    };
    int64_t m = 0;                       // rows that tiles are of, in what was launched
    auto body = [&](const gemm::Launch& l) {
        CHECK(l.image == gemm::Image::Text);
        const bool is_tiles = l.numbers_bytes == sizeof(kernels::GemmTilesNumbers);
        const kernels::GemmOutput& o = is_tiles ? static_cast<const kernels::GemmTilesNumbers*>(l.numbers)->output : static_cast<const kernels::GemmSplitNumbers*>(l.numbers)->output;
        if (l.shared_bytes > 0) m = o.is_turned ? o.n : o.m;
    };
    auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
    const gemm::Launcher  launcher(body);
    const basic::Launcher basic_launcher(none);
    for (const bool b_turned : {false, true})
        for (const int64_t made_for : {1, 8, 512}) {
            const auto finisher = sm90::finisher_for(with_bias(made_for, b_turned), whole_device(), nullptr);
            REQUIRE(finisher);
            const bool is_for_few = made_for <= 32;
            CHECK(finisher->has_few_rows == is_for_few);
            for (const int64_t rows : {1, 8, 512}) {
                INFO(b_turned, " ", made_for, " ", rows);
                m = 0;
                const bool runs = sm90::run_finished(with_bias(rows, b_turned), whole_device(), *finisher, {nullptr, 0, launcher, basic_launcher, &fresh_driver()});
                if (rows == made_for) CHECK(runs);
                if (is_for_few && rows > 32) CHECK(!runs);
                if (runs) CHECK(m == (is_for_few ? 4096 : rows));
            }
        }
}

TEST_CASE("few rows: one row or column of words or doubles is the portable family's, whatever follows it; of halves, and two rows, Hopper's")
{
    std::set<gemm::Image> seen;
    auto body = [&](const gemm::Launch& l) { seen.insert(l.image); };
    auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
    const gemm::Launcher  launcher(body);
    const basic::Launcher basic_launcher(none);
    const auto images = [&](const gemm::Problem& p) {
        seen.clear();
        gemm::run(p, whole_device(), {address(uint64_t(1) << 40), uint64_t(1) << 30, launcher, basic_launcher, &fresh_driver()});
        return seen;
    };
    for (const bool b_turned : {false, true}) {
        const Lying lying = {false, b_turned, false, 0};
        for (const Extents& e : {Extents{1, 4096, 4096, 1}, Extents{4096, 1, 4096, 1}, Extents{1, 1024, 1024, 1}}) {
            for (const Dtype type : {Dtype::f32, Dtype::f64}) CHECK(images(placed(e, lying, type)) == std::set{gemm::Image::Mma});
            CHECK(images(placed(e, lying, Dtype::f16)) == std::set{gemm::Image::Sm90Half});
        }
        CHECK(images(placed({2, 4096, 4096, 1}, lying, Dtype::f32)) == std::set{gemm::Image::Sm90Wide});
    }
    gemm::Problem p = placed({1, 4096, 4096, 1}, {}, Dtype::f32);
    p.epilogue_weight = 4;
    const auto own = gemm::finisher_for(p, whole_device(), nullptr);
    REQUIRE(own);
    CHECK(own->is_portable);
    CHECK(gemm::mma::product_of(*own).call == std::string_view("mma_row<RowShape<float, NEAR_LINE, 16, 32, 8>>"));
    // A text for more rows, of which there is one now, and one that folds what there is no kernel for one row to.
    const auto finisher = sm90::finisher_for(p, whole_device(), nullptr);
    REQUIRE(finisher);
    gemm::Problem folded = p;
    folded.epilogue.tensor[folded.epilogue.count++].kind = kernels::OVER_COLUMNS;
    const auto of_folded = gemm::finisher_for(folded, whole_device(), nullptr);
    CHECK((!of_folded || !of_folded->is_portable));
    const auto portable = gemm::mma::finisher_for(folded, whole_device(), nullptr);
    REQUIRE(portable);
    CHECK(std::string_view(gemm::mma::product_of(*portable).call).find("RowShape") == std::string_view::npos);
    gemm::Memory memory;
    for (int again = 0; again < 2; again++) CHECK(!gemm::run_finished(p, whole_device(), *finisher, {address(uint64_t(1) << 40), uint64_t(1) << 30, launcher, basic_launcher, &fresh_driver(), &memory}));
    CHECK(memory.is_known);
    CHECK(!memory.is_better);
}

}  // namespace ng::gemm_check
