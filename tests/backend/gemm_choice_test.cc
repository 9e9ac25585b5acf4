// How Hopper's products are chosen and launched, without a device: workspaces, choices, and what a launch says.
#include "tests/backend/gemm_launches.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = gemm::sm90;

bool is_encoded(const kernels::TensorMap& map) { return map.opaque[1] != 0; }

}  // namespace

TEST_CASE("instances: kernels have names of their own, and each image's follow its rows")
{
    for (const gemm::Image image : {gemm::Image::Sm90Half, gemm::Image::Sm90Byte, gemm::Image::Sm90Wide}) {
        std::set<std::string> names;
        for (const gemm::KernelFacts& k : gemm::kernels_of(image)) {
            CHECK(names.insert(k.name).second);
            CHECK(k.shared_bytes <= 232448);
        }
        for (const sm90::Instance& i : sm90::instances()) {
            if (i.image != image) continue;
            const std::string name = gemm::kernels_of(image)[i.first_kernel].name, tile = i.tile;
            CHECK(name.size() > tile.size());
            CHECK(name.substr(name.size() - tile.size()) == tile);
        }
    }
}

TEST_CASE("workspaces: what the largest need is enough for whatever is smaller, however it lies")
{
    std::mt19937 random(1);
    const auto   below = [&](int64_t most) { return int64_t(random() % uint64_t(most)) + 1; };
    for (const Types& t : TYPES)
        for (int turn = 0; turn < 200; turn++) {
            const Extents most = {below(3000), below(3000), below(3000), below(4)};
            const uint64_t bytes = sm90::workspace(problem_of(most, {}, t.a, t.b, t.sum), whole_device(), false);
            const Extents less = {below(most.m), below(most.n), below(most.k), below(most.batches)};
            const Lying   lying = {random() % 2 == 0, random() % 2 == 0, random() % 2 == 0, int64_t(random() % 4)};
            CHECK(sm90::workspace(problem_of(less, {}, t.a, t.b, t.sum), whole_device(), false) <= bytes);
            gemm::Problem p = problem_of(less, lying, t.a, t.b, t.sum);
            p.a = address(4096 + random() % 16 * uint64_t(bytes_of(t.a))), p.b = address(8192), p.c = address(65536);
            CHECK(sm90::can_run(p, whole_device(), bytes));
        }
}

TEST_CASE("workspaces: a product that always lies well asks for none")
{
    const gemm::Problem p = problem_of({4096, 4096, 4096, 1}, {}, Dtype::bf16, Dtype::bf16, Dtype::bf16);
    CHECK(sm90::workspace(p, whole_device(), true) == 0);
    const gemm::Problem odd = problem_of({35, 8457, 1760, 1}, {}, Dtype::f16, Dtype::f16, Dtype::f32);
    CHECK(sm90::workspace(odd, whole_device(), true) >= 1760 * 8457 * 2);
}

TEST_CASE("products that no kernel of these takes are refused")
{
    const auto can_run = [](gemm::Problem p) {
        p.a = address(4096), p.b = address(8192), p.c = address(65536);
        return sm90::can_run(p, whole_device(), uint64_t(1) << 30);
    };
    for (const Extents& e : {Extents{0, 8, 8, 1}, Extents{8, 0, 8, 1}, Extents{8, 8, 0, 1}, Extents{8, 8, 8, 0}})
        CHECK(!can_run(problem_of(e, {}, Dtype::f16, Dtype::f16, Dtype::f32)));
    CHECK(!can_run(problem_of({8, 8, 8, 1}, {}, Dtype::i64, Dtype::i64, Dtype::i64)));
    CHECK(!can_run(problem_of({8, 8, 8, 1}, {}, Dtype::f16, Dtype::f16, Dtype::f64)));
    CHECK(!can_run(problem_of({8, 8, 8, 1}, {}, Dtype::i8, Dtype::i8, Dtype::f32)));
    gemm::Device without = whole_device();
    without.has[size_t(gemm::Image::Sm90Half)] = false;
    gemm::Problem p = problem_of({8, 8, 8, 1}, {}, Dtype::f16, Dtype::f16, Dtype::f32);
    CHECK(!sm90::can_run(p, without, uint64_t(1) << 30));
}

TEST_CASE("choices: one for each problem, possible, the least of the model, and the same each time")
{
    std::mt19937 random(2);
    for (const Types& t : TYPES)
        for (const Extents& e : {Extents{1, 1, 1, 1}, Extents{4096, 4096, 4096, 1}, Extents{2560, 16, 2560, 1}, Extents{512, 8, 500000, 1}, Extents{35, 8457, 1760, 1}, Extents{64, 64, 64, 100}}) {
            gemm::Problem p = problem_of(e, {}, t.a, t.b, t.sum);
            sm90::Form    form;
            REQUIRE(sm90::make_form(p, false, form));
            const sm90::Choice c = sm90::choose(form, whole_device(), sm90::MOST_PARTIAL_BYTES), again = sm90::choose(form, whole_device(), sm90::MOST_PARTIAL_BYTES);
            CHECK(sm90::is_possible(form, c));
            CHECK(std::tie(c.instance, c.cluster, c.splits, c.group) == std::tie(again.instance, again.cluster, again.splits, again.group));
            const double cost = sm90::cost_us(form, whole_device(), c);
            for (uint32_t i = 0; i < sm90::instances().size(); i++) {
                const sm90::Choice other = {i, sm90::instances()[i].is_split ? 2 : sm90::instances()[i].cluster, 1, 8};
                if (sm90::is_possible(form, other)) CHECK(cost <= sm90::cost_us(form, whole_device(), other));
            }
            CHECK(sm90::partial_bytes(form, whole_device(), sm90::choose(form, whole_device(), 0)) == 0);
        }
}

TEST_CASE("choices: f32 is cut by the blocks that multiply it where rows begin at multiples of 16 bytes; nothing is launched before")
{
    const auto is_cut = [](const Lying& lying, uint64_t at, int& launches) {
        gemm::Problem p = problem_of({1024, 1024, 1024, 1}, lying, Dtype::f32, Dtype::f32, Dtype::f32);
        p.a = address(at), p.b = address(uint64_t(1) << 33), p.c = address(uint64_t(1) << 34);
        sm90::Form form;
        REQUIRE(sm90::make_form(p, true, form));
        const sm90::Choice choice = sm90::choose(form, whole_device(), 0);
        launches = int(run_as(form, choice, [](const gemm::Launch&) {}).launches.size());
        return sm90::instances()[choice.instance].is_cut;
    };
    int launches = 0;
    for (const bool a_turned : {false, true})
        for (const bool b_turned : {false, true}) {
            CHECK(is_cut({a_turned, b_turned, false, 0}, 4096, launches));
            CHECK(launches == 1);
            CHECK(is_cut({a_turned, b_turned, true, 4}, 4096, launches));
            CHECK(launches == 1);
            CHECK(!is_cut({a_turned, b_turned, false, 1}, 4096, launches));
            CHECK(launches == 3);
            CHECK(!is_cut({a_turned, b_turned, false, 0}, 4100, launches));
        }
}

TEST_CASE("launches: a row-major b of halves at an odd distance or address is taken there")
{
    const auto launches = [](const Lying& lying, uint64_t at, int64_t rows = 35) {
        gemm::Problem p = problem_of({rows, 8457, 1760, 1}, lying, Dtype::f16, Dtype::f16, Dtype::f16);
        p.a = address(4096), p.b = address(at), p.c = address(uint64_t(1) << 34);
        sm90::Form form;
        REQUIRE(sm90::make_form(p, true, form));
        CHECK(sm90::copies_workspace(form) >= uint64_t(rows) * 1760 * 2 * lying.a_turned);
        const sm90::Choice choice = sm90::choose(form, whole_device(), 0);
        if (!sm90::instances()[choice.instance].is_odd) return 0;
        const Seen seen = run_as(form, choice, [&](const gemm::Launch& l) { CHECK(is_encoded(static_cast<const kernels::GemmOddNumbers*>(l.numbers)->split.b)); });
        return int(seen.launches.size()) + seen.copies;
    };
    const uint64_t b = uint64_t(1) << 33;
    CHECK(launches({}, b) == 1);
    CHECK(launches({}, b + 2) == 1);
    CHECK(launches({true, false, false, 0}, b) == 2);            // a is turned as well, so it is copied, at whatever distance
    CHECK(launches({true, false, false, 8}, b, 40) == 2);
    CHECK(launches({true, false, false, 0}, b, 300) == 0);       // which is dear for many rows
    CHECK(launches({false, false, false, 7}, b) == 0);           // n lines of 8464 lie as they should
    CHECK(launches({false, true, false, 1}, b) == 0);            // b's depth lies side by side
}

TEST_CASE("choices: no epilogue and no result of eight bits where sums of fp8 take the registers for them")
{
    gemm::Problem p = problem_of({512, 512, 512, 1}, {false, true, false, 0}, Dtype::e4m3, Dtype::e4m3, Dtype::f16);
    sm90::Form    form;
    const auto    count = [&] {
        REQUIRE(sm90::make_form(p, false, form));
        int possible = 0;
        for (uint32_t i = 0; i < sm90::instances().size(); i++) possible += sm90::is_possible(form, {i, sm90::instances()[i].cluster, 1, 8});
        return possible;
    };
    const int all = count();
    p.epilogue_weight = 1;
    int without = all;
    for (const sm90::Instance& i : sm90::instances()) without -= i.group == sm90::Group::Byte && !i.is_split && (i.n > 128 || i.n % 64 != 0);
    CHECK(without < all);
    CHECK(count() == without);
    p.epilogue_weight = 0, p.c_type = Dtype::e5m2;
    CHECK(count() == without);
}

TEST_CASE("images: types that Hopper's kernels take ask for the image that has them")
{
    constexpr Dtype OPERANDS[] = {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::e4m3, Dtype::e5m2, Dtype::i8, Dtype::u8};
    std::set<gemm::Image> seen;
    for (const Dtype a : OPERANDS)
        for (const Dtype b : OPERANDS)
            for (const Dtype c : {Dtype::f32, Dtype::f64, Dtype::i32}) {
                const gemm::Problem p = problem_of({64, 64, 64, 1}, {}, a, b, c);
                sm90::Form form;
                if (!sm90::make_form(p, false, form)) continue;
                CHECK(gemm::needs(form.image, a, b));
                seen.insert(form.image);
            }
    CHECK(seen.size() == size_t(gemm::Image::Mma));
}

TEST_CASE("launches: tiles whose width is no multiple of 64 are of c's transpose where both operands are row-major, those that turn always")
{
    int seen = 0;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (instance.group != sm90::Group::Half || instance.is_split || (instance.n % 64 == 0 && !instance.turns)) continue;
        for (const bool a_turned : {false, true})
            for (const bool b_turned : {false, true}) {
                gemm::Problem p = problem_of({304, 504, 256, 1}, {a_turned, b_turned, false, 8}, Dtype::f16, Dtype::f16, Dtype::f16);
                p = placed(p), p.epilogue.is_cast = 1;
                sm90::Form form;
                REQUIRE(sm90::make_form(p, true, form));
                const bool is_swapped = instance.turns || (!a_turned && !b_turned);
                run_as(form, {i, instance.cluster, 1, 8}, [&](const gemm::Launch& l) {
                    const auto&   n = *static_cast<const kernels::GemmTilesNumbers*>(l.numbers);
                    const int64_t down = is_swapped ? 504 : 304, along = is_swapped ? 304 : 504;
                    if (l.shared_bytes == 0) return;
                    seen++;
                    CHECK(n.row_clusters == (down + instance.m * instance.down - 1) / (instance.m * instance.down));
                    CHECK(n.column_clusters == (along + instance.n * instance.across - 1) / (instance.n * instance.across));
                    CHECK(n.output.store == kernels::STORE_HALVES);
                    CHECK(is_encoded(n.box) == !is_swapped);
                });
                p.c_type = Dtype::f32;
                REQUIRE(sm90::make_form(p, true, form));
                CHECK(sm90::is_possible(form, {i, instance.cluster, 1, 8}) != is_swapped);
            }
    }
    CHECK(seen > 0);
}

namespace {

// Names of the kernels that a problem is run by.
std::set<std::string> kernels_of_run(const gemm::Problem& p)
{
    std::set<std::string> seen;
    auto body = [&](const gemm::Launch& l) { seen.insert(gemm::kernels_of(l.image)[l.kernel].name); };
    auto basic_body = [](const basic::Launch&) {};
    const gemm::Launcher  launcher(body);
    const basic::Launcher basic_launcher(basic_body);
    gemm::run(placed(p), whole_device(), {address(uint64_t(1) << 40), uint64_t(1) << 30, launcher, basic_launcher, &fresh_driver()});
    return seen;
}
bool are_all(const std::set<std::string>& names, const char* words)
{
    return !names.empty() && std::ranges::all_of(names, [&](const std::string& n) { return n.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("families: operands that lie badly for Hopper's kernels go to the portable ones where that is faster")
{
    const auto names = [](const Extents& e, const Lying& lying) { return kernels_of_run(problem_of(e, lying, Dtype::f32, Dtype::f32, Dtype::f32)); };
    CHECK(are_all(names({2048, 16, 2048, 1}, {false, false, false, 1}), "mma_"));
    CHECK(are_all(names({4096, 4096, 4096, 1}, {}), "gemm_"));
}

TEST_CASE("families: batches of small products go to the portable kernels, tiny ones to those whose warps have a tile each; large ones, and one alone, stay Hopper's")
{
    const auto names = [](const Extents& e, Dtype t, bool b_turned = false, bool allows_tf32 = false) {
        gemm::Problem p = problem_of(e, {false, b_turned, false, 0}, t, t, t == Dtype::i8 ? Dtype::i32 : t == Dtype::e4m3 ? Dtype::f16 : t);
        p.allows_tf32 = allows_tf32;
        return kernels_of_run(p);
    };
    for (const Dtype t : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::i8})
        for (const int64_t size : {4, 8, 16, 32}) {
            INFO(std::string(name_of(t)), " ", size);
            // Doubles of 32 leave Hopper's kernels by 16 bytes of whole rows; f32 of 32 has small tiles of blocks.
            if (t != Dtype::f64 || size < 32) CHECK(are_all(names({size, size, size, 10000}, t), t == Dtype::f32 && size == 32 ? "mma_f32_deep_32" : "_small_"));
        }
    CHECK(are_all(names({16, 16, 16, 10000}, Dtype::f32, false, true), "mma_tf32_small_"));
    CHECK(are_all(names({49, 49, 32, 2048}, Dtype::f16, true), "mma_f16_"));
    CHECK(are_all(names({49, 32, 49, 2048}, Dtype::f32), "mma_f32_deep_"));
    CHECK(are_all(names({197, 197, 64, 768}, Dtype::f32, true), "mma_f32_"));
    CHECK(are_all(names({64, 64, 64, 4096}, Dtype::f16), "gemm_"));
    CHECK(are_all(names({1, 2048, 128, 512}, Dtype::f16, true), "mma_f16_16_nt"));
    CHECK(are_all(names({1, 2048, 128, 512}, Dtype::e4m3, true), "mma_e4e4_16_nt"));
    CHECK(are_all(names({2, 256, 256, 2000}, Dtype::i8), "mma_s8s8_16_nn"));
    // Rows of 200 bytes, which nobody copies before; and a row-major b of words, which nobody turns before.
    CHECK(are_all(names({100, 100, 100, 1024}, Dtype::f16), "mma_f16_"));
    CHECK(are_all(names({1024, 64, 1024, 128}, Dtype::f32, false, true), "_sr64x128"));
    CHECK(are_all(names({16, 16, 16, 1}, Dtype::f16), "gemm_"));
    CHECK(are_all(names({512, 512, 512, 64}, Dtype::f16), "gemm_"));
    CHECK(are_all(names({1024, 64, 1024, 128}, Dtype::f16), "gemm_"));
}

TEST_CASE("launches: every instance, types and ways say what a device can take, and stay in their workspace")
{
    for (const Types& t : TYPES)
        for (int bits = 0; bits < 16; bits++)
            for (const Extents& e : {Extents{1, 1, 1, 1}, Extents{300, 130, 700, 3}, Extents{64, 2048, 256, 1}}) {
                gemm::Problem p = problem_of(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, bits & 8 ? 1 : 0}, t.a, t.b, t.sum);
                p = placed(p);
                sm90::Form form;
                REQUIRE(sm90::make_form(p, true, form));
                for (uint32_t i = 0; i < sm90::instances().size(); i++) {
                    const sm90::Instance& instance = sm90::instances()[i];
                    const sm90::Choice    choice = {i, instance.is_split ? 2 : instance.cluster, instance.is_split && t.a == Dtype::f16 ? 2 : 1, 8};
                    if (!sm90::is_possible(form, choice)) continue;
                    const Seen seen = run_as(form, choice, [&](const gemm::Launch& l) {
                        const bool is_main = l.kernel >= instance.first_kernel && l.kernel < instance.first_kernel + 8 && l.shared_bytes > 0;
                        if (!is_main) return;
                        const auto& maps = *static_cast<const kernels::GemmTilesNumbers*>(l.numbers);    // both kinds begin with a's and b's
                        CHECK(is_encoded(maps.a));
                        CHECK(is_encoded(maps.b));
                        if (!instance.is_split) CHECK(is_encoded(maps.c) == (maps.output.store <= kernels::STORE_WORDS));
                        if (!instance.is_split) return;
                        const auto&   n = *static_cast<const kernels::GemmSplitNumbers*>(l.numbers);
                        const int64_t parts = choice.cluster * choice.splits, steps = instance.is_cut ? sm90::steps_of(form, instance) : sm90::steps_of(form) * kernels::products_of(form.planes);
                        CHECK((n.part_steps * parts + n.longer_parts == steps && n.longer_parts < parts));
                    });
                    const sm90::Form own = sm90::form_of(form, instance);
                    const bool copies_a = sm90::is_copied(instance, own.a), copies_b = sm90::is_copied(instance, own.b);
                    CHECK(seen.launches.size() + size_t(seen.copies) >= 1 + size_t(copies_a) + size_t(copies_b) + size_t(choice.splits > 1));
                }
            }
}

TEST_CASE("launches: sums that are only rounded leave by the copy engine; integers that become floats by threads")
{
    for (const Types& t : TYPES) {
        const bool    is_whole = t.sum == Dtype::i32;
        gemm::Problem p = problem_of({256, 256, 256, 1}, {false, true, false, 0}, t.a, t.b, Dtype::f16);
        p = placed(p), p.epilogue.is_cast = 1;
        sm90::Form form;
        REQUIRE(sm90::make_form(p, true, form));
        for (uint32_t i = 0; i < sm90::instances().size(); i++) {
            const sm90::Instance& instance = sm90::instances()[i];
            const sm90::Choice    choice = {i, instance.cluster, 1, 8};
            if (instance.is_split || !sm90::is_possible(form, choice)) continue;
            run_as(form, choice, [&](const gemm::Launch& l) {
                if (l.kernel < instance.first_kernel || l.kernel >= instance.first_kernel + 8 || l.shared_bytes == 0) return;
                CHECK(static_cast<const kernels::GemmTilesNumbers*>(l.numbers)->output.store == (is_whole ? kernels::STORE_FOURS : kernels::STORE_HALVES));
            });
        }
    }
}

// ---- with an epilogue -------------------------------------------------------------------------------------------------------

namespace {

// A row of f32, a column of f16 and a whole tensor of f16, which lies as c does.
gemm::Problem with_epilogue(gemm::Problem p)
{
    kernels::Epilogue& e = p.epilogue;
    p.epilogue_weight = 20, e.count = e.loads = 3;
    e.tensor[0].bytes = 4, e.tensor[0].column = 1, e.tensor[0].data = address(4096);
    e.tensor[1].bytes = 2, e.tensor[1].row = 1, e.tensor[1].data = address(8192);
    e.tensor[2].bytes = 2, e.tensor[2].row = p.c_row, e.tensor[2].column = p.c_column, e.tensor[2].batch = p.c_batch, e.tensor[2].data = address(1 << 20);
    return p;
}

}  // namespace

TEST_CASE("finishers: what is the same in all rows or columns waits in shared memory, one tensor comes by the copy engine")
{
    using namespace kernels;
    const auto kinds = [](const gemm::Problem& p, uint32_t instance) {
        sm90::Form form;
        REQUIRE(sm90::make_form(with_epilogue(p), false, form));
        const gemm::Finisher f = sm90::finisher_of(form, instance);
        return std::vector<int>(f.kinds, f.kinds + 3);
    };
    const auto product = [](bool c_turned, Dtype c) { return problem_of({256, 512, 128, 2}, {false, false, c_turned, 0}, Dtype::f16, Dtype::f16, c); };
    CHECK(kinds(product(false, Dtype::f16), 0) == std::vector<int>{OF_COLUMNS, OF_ROWS, BY_ENGINE});
    CHECK(kinds(product(true, Dtype::f16), 0) == std::vector<int>{OF_ROWS, OF_COLUMNS, BY_ENGINE});
    CHECK(kinds(product(false, Dtype::f32), 0) == std::vector<int>{OF_COLUMNS, OF_ROWS, ANYHOW});    // results leave otherwise
    uint32_t split = 0;
    while (!sm90::instances()[split].is_split) split++;
    CHECK(kinds(product(false, Dtype::f16), split) == std::vector<int>{ANYHOW, ANYHOW, ANYHOW});
}

TEST_CASE("finishers: every instance is launched by its text's kernels")
{
    for (const Types& t : TYPES)
        for (uint32_t i = 0; i < sm90::instances().size(); i++) {
            gemm::Problem p = with_epilogue(problem_of({300, 128, 700, 2}, {}, t.a, t.b, Dtype::f16));
            p = placed(p), p.epilogue.is_cast = 1;
            sm90::Form form;
            REQUIRE(sm90::make_form(p, true, form));
            const sm90::Instance& instance = sm90::instances()[i];
            const sm90::Choice    choice = {i, instance.is_split ? 2 : instance.cluster, instance.is_split && t.a == Dtype::f16 ? 2 : 1, 8};
            if (!sm90::is_possible(form, choice)) continue;
            const gemm::Finisher finisher = sm90::finisher_of(form, i);
            std::vector<uint32_t> kernels;
            run_as(form, choice, [&](const gemm::Launch& l) {
                if (l.image != gemm::Image::Text) return;
                kernels.push_back(l.kernel);
                if (l.kernel == 0 && !instance.is_split) CHECK(is_encoded(static_cast<const kernels::GemmTilesNumbers*>(l.numbers)->box));
            }, &finisher);
            CHECK(kernels == (choice.splits > 1 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0}));
            const std::string text = gemm::finisher_text(finisher, "// the epilogue\n");
            CHECK(text.find("// the epilogue") < text.find(instance.is_cut ? "run_cut<CutShape<" : instance.is_odd ? "run_odd<OddShape<" : instance.is_split ? "run_split<SplitShape<" : "run_tiles<TilesShape<"));
        }
}

TEST_CASE("finishers: where blocks turn an operand and compute c's transpose, what an epilogue reads has rows for columns as well")
{
    const auto with_folds = [](gemm::Problem p) {
        kernels::EpilogueTensor& t = p.epilogue.tensor[p.epilogue.count++];
        t.kind = kernels::OVER_COLUMNS, t.bytes = 4, t.row = 1, t.column = p.m;
        return p;
    };
    for (const Dtype type : {Dtype::i8, Dtype::f32})
        for (const bool is_swapped : {false, true}) {
            gemm::Problem p = with_epilogue(problem_of({is_swapped ? 8 : 4096, is_swapped ? 4096 : 8, 4096, 1}, {!is_swapped, !is_swapped, false, 0}, type, type, Dtype::f16));
            p = placed(p), p.allows_tf32 = true, p.epilogue.is_cast = 1;
            const std::optional<gemm::Finisher> finisher = sm90::finisher_for(p, whole_device(), nullptr);
            REQUIRE(finisher);
            CHECK(takes_turned(sm90::instances()[finisher->instance]));
            sm90::Form form;
            REQUIRE(sm90::make_form(p, true, form));
            int launches = 0;
            run_as(form, *sm90::choose_among(form, whole_device(), 0, finisher->instance), [&](const gemm::Launch& l) {
                const kernels::GemmOutput& o = static_cast<const kernels::GemmSplitNumbers*>(l.numbers)->output;
                CHECK(l.image == gemm::Image::Text);
                CHECK(o.is_turned == is_swapped);
                CHECK(o.m == p.m);
                CHECK(o.epilogue.tensor[0].row == 0);
                CHECK(o.epilogue.tensor[1].column == 0);
                CHECK(o.epilogue.tensor[2].column == o.c_column);
                launches++;
            }, &*finisher);
            CHECK(launches == 1);
            const auto folds_of = [&](const gemm::Problem& problem) {
                sm90::Form folded;
                REQUIRE(sm90::make_form(with_folds(problem), true, folded));
                return sm90::finisher_of(folded, finisher->instance).kinds[3];
            };
            CHECK(folds_of(p) == (is_swapped ? kernels::OVER_ROWS : kernels::OVER_COLUMNS));
        }
}

TEST_CASE("finishers: a problem that lies otherwise is not theirs, and launches nothing")
{
    gemm::Problem p = with_epilogue(problem_of({4096, 4096, 4096, 1}, {}, Dtype::f16, Dtype::f16, Dtype::f16));
    p = placed(p), p.epilogue.is_cast = 1;
    const std::optional<gemm::Finisher> finisher = sm90::finisher_for(p, whole_device(), nullptr);
    REQUIRE(finisher);
    int launches = 0;
    auto body = [&](const gemm::Launch&) { launches++; };
    auto basic_body = [&](const basic::Launch&) { launches++; };
    const gemm::Launcher  launcher(body);
    const basic::Launcher basic_launcher(basic_body);
    const auto runs = [&](const gemm::Problem& other) {
        gemm::Memory memory;
        launches = 0;
        const bool first = sm90::run_finished(other, whole_device(), *finisher, {address(uint64_t(1) << 40), 0, launcher, basic_launcher, &fresh_driver(), &memory});
        const int  once = launches;
        CHECK(sm90::run_finished(other, whole_device(), *finisher, {address(uint64_t(1) << 40), 0, launcher, basic_launcher, &fresh_driver(), &memory}) == first);
        CHECK(launches == 2 * once);
        CHECK((once > 0) == first);
        return first;
    };
    CHECK(runs(p));
    gemm::Problem other = p;
    other.epilogue.tensor[2].data = address((1 << 20) + 2);
    CHECK(!runs(other));
    other = p, other.epilogue.tensor[0].row = 1;                     // no row for all any more
    CHECK(!runs(other));
    other = p, other.b_depth = 1, other.b_column = 4096;             // another variant
    CHECK(!runs(other));
    other = p, other.a = address((uint64_t(1) << 32) + 2);           // to be copied, and there is no workspace
    CHECK(!runs(other));
}

}  // namespace ng::gemm_check
