// Hopper's products as this build's images have them, on the device of this machine: every instance against sums of doubles.
//
//   gemm_gpu_test                                    all cases; without a driver, such a device or images they are skipped, and counted so
//   NG_TEST_SMALL=1 compute-sanitizer gemm_gpu_test  a few small problems
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/nvrtc.h"
#include "lib/backend/cuda/rounding.h"
#include "tests/backend/gemm_machine.h"
#include "tests/backend/gemm_setting.h"

#include <set>
#include <string_view>
#include <tuple>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = gemm::sm90;
constexpr gemm::Image IMAGES[] = {gemm::Image::Sm90Half, gemm::Image::Sm90Byte, gemm::Image::Sm90Wide};

// text: what the instance was compiled to with an epilogue; units: multiprocessors that the launch is for, 0: all.
struct Attempt {
    const sm90::Form&         form;
    sm90::Choice              choice;
    const test::FinisherCode* text;
    uint32_t                  units = 0;
};

struct Device : GemmMachine {
    explicit Device(const Driver& driver) : GemmMachine(driver, IMAGES) {}
    gemm::Device facts_for(const Attempt& a) const
    {
        gemm::Device given = facts;
        if (a.units > 0) given.units = a.units;
        return given;
    }
    void run(const Attempt& a, void* workspace, uint64_t bytes) const
    {
        with_place(workspace, bytes, [&](const gemm::Place& place) { sm90::run_as(a.form, facts_for(a), a.choice, a.text ? &a.text->finisher : nullptr, place); }, a.text);
    }
};

Device* device = nullptr;
int     small_tiles = 0;                   // products by such, so far
constexpr uint32_t FEW_UNITS[] = {5, 40};    // of a card that gives clusters of one, and of many, such tiles

struct Outcome {
    std::vector<char> c, parts;
    bool operator==(const Outcome&) const = default;
};
// In a workspace of just what it needs.
Outcome outcome_of(const Setting& s, const Attempt& a)
{
    const uint64_t bytes = sm90::copies_workspace(a.form) + sm90::partial_bytes(a.form, device->facts_for(a), a.choice);
    const Bytes    workspace(bytes);
    s.c_there->poison();
    if (s.parts_there) s.parts_there->poison();
    device->run(a, workspace.data(), bytes);
    CHECK(workspace.is_intact());
    return {s.result(), s.parts_there ? s.parts_there->get() : std::vector<char>()};
}

// As on a card that holds one cluster at once, or a few: blocks go from tile to tile, by pingpong both warpgroups; the same bits, twice. By stream-K, whose sums are
// added up otherwise then, the right ones.
void check_turns(const Setting& s, Attempt a, const Outcome& whole)
{
    const sm90::Instance& i = sm90::instances()[a.choice.instance];
    if (i.is_split || is_too_large(s.problem.m, s.problem.n)) return;
    const sm90::Form     form = sm90::form_of(a.form, i);
    const gemm::Problem& p = form.problem;
    const int64_t        tiles = divided_up(p.m, i.m * i.down) * divided_up(p.n, i.n * i.across) * p.batches;
    CHECK((p.k < DEEP[0].k || tiles >= 3));
    for (const int32_t clusters : i.is_stream_k ? std::vector{2, 3, 5} : std::vector{1, 3}) {
        if (tiles <= clusters || (clusters > 2 && device->gpu.is_small())) break;
        INFO(tiles, " tiles by ", clusters, " at once");
        a.units = uint32_t(clusters * i.cluster);
        const Outcome first = outcome_of(s, a);
        if (i.is_stream_k) check_result(s, first.c);
        else CHECK((first == whole));
        if (!device->gpu.is_small()) CHECK((outcome_of(s, a) == first));
    }
}

bool has_small_tiles(const Attempt& a)
{
    const sm90::Instance& i = sm90::instances()[a.choice.instance];
    const sm90::SplitTile tile = sm90::split_tile(sm90::form_of(a.form, i), device->facts_for(a), i, a.choice);
    return tile.rows < i.m || tile.columns < i.n;
}

// By every instance that can; twice, to the same bits. text: an instance's, and then by it alone. units: as on a card of so many multiprocessors, by splits
// whose tiles have fewer rows or columns there than they have room for.
void check_instances(const Setting& s, const std::vector<sm90::Choice>& shapes, const test::FinisherCode* with = nullptr, uint32_t units = 0)
{
    sm90::Form form;
    const bool is_taken = sm90::make_form(s.problem, true, form);
    CHECK((is_taken || s.problem.a_type == Dtype::f64));
    for (uint32_t i = 0; is_taken && i < sm90::instances().size(); i++) {
        if (with && i != with->finisher.instance) continue;
        const sm90::Instance& instance = sm90::instances()[i];
        for (const sm90::Choice& shape : shapes) {
            const Attempt attempt = {form, {i, instance.is_split ? shape.cluster : instance.cluster, instance.is_split ? shape.splits : 1, shape.group}, with, units};
            if (!sm90::is_possible(form, attempt.choice) || (units > 0 && !has_small_tiles(attempt))) continue;
            small_tiles += units > 0;
            const gemm::Problem& p = s.problem;
            INFO(std::string(instance.tile), " cluster ", attempt.choice.cluster, " splits ", attempt.choice.splits, ", ", p.batches, " x ", p.m, " x ", p.n, " x ", p.k, " types ", int(p.a_type), " ",
                 int(p.b_type), " ", int(p.c_type), " strides ", p.a_row, " ", p.b_column, " ", p.c_row);
            const Outcome first = outcome_of(s, attempt);
            check_result(s, first.c);
            if (s.parts_there) check_parts(s);
            CHECK((outcome_of(s, attempt) == first));
            check_turns(s, attempt, first);
            if (!instance.is_split) break;
        }
    }
}

// Bytes of a thread's stack that texts of tiles spill into, beside max(c / 2 + bias, 0) + residual and what it folds: most of the results' types and
// ways to lie, by NVRTC 13.0 for sm_90a. Others spill nothing. Each row stands for time that could be had.
struct Spills {
    Folds       folds;
    sm90::Group group;
    const char* tile;
    int32_t     bytes;
};
constexpr Spills SPILLS[] = {
    {Folds::None,               sm90::Group::Half,  "p128x128x2", 56},
    {Folds::None,               sm90::Group::Round, "p128x128x2", 56},
    {Folds::None,               sm90::Group::Whole, "p128x128x2", 96},
    {Folds::None,               sm90::Group::Byte,  "128x128x2",  64},
    {Folds::None,               sm90::Group::Wide,  "128x128x2",  88},
    {Folds::OverRows,           sm90::Group::Half,  "p128x128x2", 104},
    {Folds::OverRows,           sm90::Group::Half,  "128x256x2",  104},
    {Folds::OverRows,           sm90::Group::Round, "p128x128x2", 80},
    {Folds::OverRows,           sm90::Group::Round, "128x256x2",  104},
    {Folds::OverRows,           sm90::Group::Whole, "p128x128x2", 96},
    {Folds::OverRows,           sm90::Group::Whole, "128x256x2",  104},
    {Folds::OverRows,           sm90::Group::Byte,  "128x128x2",  168},
    {Folds::OverRows,           sm90::Group::Wide,  "128x128x2",  160},
    {Folds::SquaresOverColumns, sm90::Group::Half,  "p128x128x2", 272},
    {Folds::SquaresOverColumns, sm90::Group::Half,  "128x256x2",  256},
    {Folds::SquaresOverColumns, sm90::Group::Round, "p128x128x2", 272},
    {Folds::SquaresOverColumns, sm90::Group::Round, "128x256x2",  232},
    {Folds::SquaresOverColumns, sm90::Group::Whole, "p128x128x2", 280},
    {Folds::SquaresOverColumns, sm90::Group::Whole, "128x256x2",  232},
    {Folds::SquaresOverColumns, sm90::Group::Byte,  "128x128x2",  216},
    {Folds::SquaresOverColumns, sm90::Group::Wide,  "128x128x2",  216},
};

// No text spills more than it did.
const test::FinisherCode& checked(const test::FinisherCode& code, Folds folds)
{
    constexpr int KNOWN_COMPILER = 13000;
    if (Compiler::find()->version() != KNOWN_COMPILER) return code;
    const sm90::Instance& i = sm90::instances()[code.finisher.instance];
    const auto* const known = std::ranges::find_if(SPILLS, [&](const Spills& s) { return s.folds == folds && s.group == i.group && std::string_view(s.tile) == i.tile; });
    INFO(std::string(i.tile), " of group ", int(i.group), ", folds ", int(folds), ": ", code.functions[0].registers, " registers");
    CHECK(code.functions[0].local_bytes <= (known == std::end(SPILLS) ? 0 : known->bytes));
    return code;
}

bool has_no_epilogue(const sm90::Instance& i) { return (takes_turned(i) && !i.is_split) || i.group == sm90::Group::Double; }
bool is_round(const sm90::Instance& i) { return i.group == sm90::Group::Round || i.group == sm90::Group::Turned || i.group == sm90::Group::Moved; }
Types types_of(sm90::Group g)
{
    using enum sm90::Group;
    return TYPES[g == Half ? 0 : g == Byte || g == MovedByte ? 2 : g == Whole || g == MovedWhole ? 6 : 10];
}
// How operands lie for an instance, and c, each gap beside: for one that turns them, what it would swap, too.
std::vector<Lying> lyings_of(const sm90::Instance& i, bool with_turned)
{
    std::vector<Lying> r;
    for (const bool is_turned : {false, true}) {
        if (is_turned && !with_turned && !takes_turned(i)) continue;
        if (i.group == sm90::Group::Moved) r.push_back({true, false, is_turned, 0});
        else if (takes_turned(i)) r.push_back({false, false, is_turned, 0}), r.push_back({true, true, is_turned, 0});
        else r.push_back({false, !i.is_odd, is_turned, 0});
    }
    return r;
}

// All three have the same rest by 16, so that a gap makes lines multiples of it.
constexpr Extents ALIGNED[] = {{1, 1, 1, 1}, {129, 65, 81, 1}, {5, 293, 37, 3}, {20, 132, 1012, 1}, {32, 528, 256, 2}};
int64_t aligning_gap(const Extents& e) { return 16 - e.m % 16; }

// What an instance's texts are tried with, each problem by all gaps.
struct Trial {
    Extents extents;
    std::vector<int64_t> gaps;
};
std::vector<Trial> trials_of(const sm90::Instance& i, std::vector<int64_t> gaps)
{
    std::vector<Trial> r;
    for (const Extents& e : all_extents()) r.push_back({e, gaps});
    if (takes_turned(i))
        for (const Extents& e : ALIGNED) r.push_back({e, {aligning_gap(e)}});
    return r;
}

const std::vector<sm90::Choice> SHAPES = {{0, 1, 1, 8}, {0, 2, 1, 8}, {0, 8, 1, 3}, {0, 3, 2, 6}};

}  // namespace

const test::Gpu& gpu() { return device->gpu; }

TEST_CASE("images: no kernel spills")
{
    for (const gemm::Image image : IMAGES)
        for (size_t k = 0; k < gemm::kernels_of(image).size(); k++) {
            INFO(std::string(gemm::kernels_of(image)[k].name));
            CHECK(device->function(image, k).registers > 0);
            CHECK(device->function(image, k).local_bytes == 0);
        }
}

TEST_CASE("products: every instance, type and way that operands lie")
{
    for (const Types& t : TYPES)
        for (const Extents& e : EXTENTS) {
            if (is_too_large(e.m, e.n) || !device->gpu.takes_next()) continue;
            for (int bits = 0; bits < 8; bits++) check_instances(Setting(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 0}, t, t.sum), SHAPES);
        }
}

TEST_CASE("products: tiles of fewer rows or columns than they have room for, as a card's multiprocessors want them")
{
    for (const Types& t : TYPES) {
        if (!device->gpu.takes_next()) continue;
        small_tiles = 0;
        for (const Extents& e : EXTENTS) {
            if (std::max(e.m, e.n) <= 128 || is_too_large(e.m, e.n)) continue;
            for (int bits = 0; bits < 8; bits++)
                for (const uint32_t units : FEW_UNITS) {
                    Setting s(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 0}, t, t.sum);
                    s.problem.allows_tf32 = true;
                    check_instances(s, SHAPES, nullptr, units);
                }
        }
        CHECK(small_tiles > 0);
    }
}

TEST_CASE("products: every instance of doubles, where rows begin at multiples of 16 bytes")
{
    const Types t = {Dtype::f64, Dtype::f64, Dtype::f64};
    for (const Extents& e : EXTENTS)
        for (int bits = 0; bits < 16; bits++)
            if (device->gpu.takes_next()) check_instances(Setting(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, bits >> 3}, t, t.sum), SHAPES);
}

TEST_CASE("products: every instance, deep, by blocks that go from tile to tile while their rings of stages go round")
{
    std::vector<Types> types(std::begin(TYPES), std::end(TYPES));
    types.push_back({Dtype::f64, Dtype::f64, Dtype::f64});
    for (const Types& t : types)
        for (const bool allows_tf32 : {false, true})
            for (const bool is_few : {false, true})              // bits of the result: tiles of c's transpose want that
                for (const Extents& e : DEEP)
                    for (int bits = 0; bits < 8; bits++) {
                        const bool is_extra = device->gpu.is_small() && bits != (is_few ? 3 : 0);      // each operand either way
                        if (is_extra || (allows_tf32 && t.a != Dtype::f32) || (is_few && t.sum != Dtype::f32) || !device->gpu.takes_next()) continue;
                        Setting s(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 0}, t, !is_few ? t.sum : t.a == Dtype::bf16 ? Dtype::bf16 : Dtype::f16);
                        s.problem.allows_tf32 = allows_tf32;
                        sm90::Form form;
                        REQUIRE(sm90::make_form(s.problem, true, form));
                        check_instances(s, {{0, 1, 1, 8}});
                    }
}

TEST_CASE("products: rows at odd distances, of 16 bits and results of 16 bits at odd addresses")
{
    for (const Types& t : TYPES)
        for (const Extents& e : EXTENTS) {
            if (is_too_large(e.m, e.n) || !device->gpu.takes_next()) continue;
            const Dtype few = t.a == Dtype::bf16 ? Dtype::bf16 : Dtype::f16;
            for (int bits = 0; bits < 4; bits++) {
                const Lying lying = {(bits & 1) != 0, (bits & 2) != 0, (bits & 1) != 0, 1 + bits};
                if (is_float(t.a)) check_instances(Setting(e, lying, t, few), {{0, 2, 1, 8}});
                check_instances(Setting(e, lying, t, t.sum), {{0, 4, 2, 8}});
            }
        }
}

TEST_CASE("products: f32 whose rows begin at multiples of 16 bytes, which blocks cut themselves or take by way of registers, all ways that it lies")
{
    const Types t = {Dtype::f32, Dtype::f32, Dtype::f32};
    for (const Extents& e : {Extents{1, 1, 1, 1}, Extents{129, 65, 93, 1}, Extents{5, 297, 33, 4}, Extents{258, 130, 1002, 1}, Extents{64, 192, 256, 1}, Extents{300, 532, 264, 2}}) {
        if (is_too_large(e.m, e.n)) continue;
        const int64_t gap = 4 - e.m % 4;     // all three have the same rest
        for (int bits = 0; bits < 16; bits++) {
            if (!device->gpu.takes_next()) continue;
            Setting s(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, gap}, t, t.sum);
            s.problem.allows_tf32 = bits >> 3;
            check_instances(s, {{0, 1, 1, 8}, {0, 2, 1, 8}, {0, 3, 1, 8}, {0, 8, 1, 8}, {0, 2, 2, 8}});
        }
    }
}

TEST_CASE("products: bytes whose lines begin at multiples of 16 bytes, which blocks turn where lines are of depth, all ways that they lie")
{
    for (const Types& t : TYPES)
        for (const Extents& e : ALIGNED) {
            if (bytes_of(t.a) > 1 || is_too_large(e.m, e.n)) continue;
            for (int bits = 0; bits < 8; bits++)
                if (device->gpu.takes_next()) check_instances(Setting(e, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, aligning_gap(e)}, t, t.sum), {{0, 1, 1, 6}, {0, 3, 1, 6}, {0, 8, 1, 8}});
        }
}

TEST_CASE("products with an epilogue compiled into them: an instance of each kind and group, of halves each width, of what cuts f32 each tile, all ways that c lies")
{
    if (!Compiler::find()) {
        MESSAGE("there is no compiler");
        return;
    }
    std::set<std::tuple<sm90::Group, int, int32_t, int32_t>> seen;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        const int kind = instance.is_odd ? 4 : instance.is_cut ? 3 : instance.is_split ? 2 : instance.is_stream_k ? 5 : instance.schedule < 0;
        // How many buffers a tile is stored through goes by its width.
        if (has_no_epilogue(instance) || (!instance.is_split && instance.n % 64 != 0)) continue;    // none
        const bool is_each = instance.is_cut || takes_turned(instance) || (kind < 2 && instance.group == sm90::Group::Half);
        if (!seen.insert({instance.group, kind, is_each ? instance.m : 0, is_each ? instance.n : 0}).second) continue;
        for (const Dtype c : {Dtype::f16, Dtype::f32})
            for (const bool is_batched : {false, true}) {
                if (!device->gpu.takes_next()) continue;
                test::FinisherTexts texts;
                int runs = 0;
                for (const auto& [e, gaps] : trials_of(instance, {0, 1, 8})) {
                    if (is_too_large(e.m, e.n) || (e.batches > 1) != is_batched) continue;
                    for (Lying lying : lyings_of(instance, false))
                        for (const int64_t gap : gaps) {
                            lying.gap = gap;
                            Setting s(e, lying, types_of(instance.group), c, true);
                            s.problem.allows_tf32 = is_round(instance);
                            sm90::Form form;
                            REQUIRE(sm90::make_form(s.problem, true, form));
                            if (!sm90::is_possible(form, {i, instance.is_split ? 1 : instance.cluster, 1, 8})) continue;     // few rows are for splits, and some lie ill
                            const test::FinisherCode& text = checked(texts.of(device->gpu, sm90::finisher_of(form, i), s.epilogue->text()), Folds::None);
                            check_instances(s, {{0, 1, 1, 8}, {0, 2, 1, 8}, {0, 3, 2, 1}}, &text);
                            check_instances(s, {{0, 1, 1, 8}}, &text, FEW_UNITS[0]);
                            runs++;
                        }
                }
                CHECK((runs > 0 || device->gpu.is_small()));
            }
    }
}

TEST_CASE("products with folds compiled into them: an instance of each kind and group, over columns and rows, also where c is turned")
{
    if (!Compiler::find()) {
        MESSAGE("there is no compiler");
        return;
    }
    std::set<std::pair<sm90::Group, int>> seen;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (has_no_epilogue(instance)) continue;
        if (!seen.insert({instance.group, instance.is_odd ? 4 : instance.is_cut ? 3 : instance.is_split ? 2 : instance.schedule < 0}).second) continue;
        for (const Folds folds : {instance.is_split ? Folds::OverColumns : Folds::SquaresOverColumns, Folds::OverRows})
            for (Lying lying : lyings_of(instance, instance.group == sm90::Group::Half)) {
                if (!device->gpu.takes_next()) continue;
                test::FinisherTexts texts;
                for (const auto& [e, gaps] : trials_of(instance, {0, 1})) {
                    if (is_too_large(e.m, e.n) || e.m == 1) continue;
                    for (const int64_t gap : gaps) {
                        lying.gap = gap;
                        Setting s(e, lying, types_of(instance.group), Dtype::f16, true, folds);
                        s.problem.allows_tf32 = is_round(instance);
                        sm90::Form form;
                        REQUIRE(sm90::make_form(s.problem, true, form));
                        if (!sm90::is_possible(form, {i, instance.is_split ? 1 : instance.cluster, 1, 8})) continue;
                        const gemm::Finisher finisher = sm90::finisher_of(form, i);
                        s.place_parts(finisher);
                        const test::FinisherCode& text = checked(texts.of(device->gpu, finisher, s.epilogue->text()), folds);
                        check_instances(s, {{0, 1, 1, 8}, {0, 3, 1, 1}}, &text);
                        check_instances(s, {{0, 1, 1, 8}}, &text, FEW_UNITS[0]);
                    }
                }
            }
    }
}

TEST_CASE("f32 stays f32: infinities, NaN, the largest and the smallest come out as plain sums have them")
{
    for (const float special : {INFINITY, -INFINITY, NAN, 3.4e38f, 1e34f, 1e30f, 1e-38f, 1e-42f})
        for (int bits = 0; bits < 4; bits++) {
            const int64_t gap = bits & 2;    // of 2: rows begin at multiples of 16 bytes
            Setting s({70, 90, 34, 1}, {(bits & 1) != 0, false, false, gap}, {Dtype::f32, Dtype::f32, Dtype::f32}, Dtype::f32);
            const gemm::Problem& p = s.problem;
            for (int64_t at : {5 * p.a_depth, 40 * p.a_row + 7 * p.a_depth}) product_check::write(s.a.bytes.data() + at * 4, special), s.a.values[size_t(at)] = double(special);
            s.settle();
            for (size_t i = 0; i < s.sums.size(); i++)
                if (std::isfinite(s.sums[i]) && std::abs(s.sums[i]) > 3.4028235e38) s.sums[i] = std::copysign(double(INFINITY), s.sums[i]);
            check_instances(s, SHAPES);
        }
}

TEST_CASE("f32 of very small numbers is as exact as of others")
{
    Setting s({64, 64, 128, 1}, {}, {Dtype::f32, Dtype::f32, Dtype::f32}, Dtype::f32);
    for (size_t i = 0; i < s.a.values.size(); i++) {
        const float small = float(s.a.values[i]) * 0x1p-115f;
        product_check::write(s.a.bytes.data() + i * 4, small), s.a.values[i] = double(small);
    }
    s.settle();
    for (size_t i = 0; i < s.sums.size(); i++) s.sums[i] *= 0x1p115, s.sizes[i] *= 0x1p115;
    sm90::Form form;
    REQUIRE(sm90::make_form(s.problem, true, form));
    for (uint32_t instance = 0; instance < sm90::instances().size(); instance++) {
        const sm90::Choice choice = {instance, sm90::instances()[instance].cluster, 1, 8};
        if (!sm90::is_possible(form, choice)) continue;
        INFO(std::string(sm90::instances()[instance].tile));
        const std::vector<char> c = outcome_of(s, {form, choice, nullptr}).c;
        for (size_t i = 0; i < s.sums.size(); i++) {
            const double got = get(Dtype::f32, c.data() + i * 4) * 0x1p115;
            CHECK(std::abs(got - s.sums[i]) <= 0x1p-21 * s.sizes[i]);
        }
    }
}

TEST_CASE("products: tf32 where it is allowed")
{
    for (const Extents& e : EXTENTS) {
        if (is_too_large(e.m, e.n)) continue;
        for (int bits = 0; bits < 4; bits++) {
            if (!device->gpu.takes_next()) continue;
            Setting s(e, {(bits & 1) != 0, (bits & 2) != 0, false, bits}, {Dtype::f32, Dtype::f32, Dtype::f32}, Dtype::f32);
            s.problem.allows_tf32 = true;
            check_instances(s, SHAPES);
        }
    }
}

}  // namespace ng::gemm_check

int main(int argc, char** argv)
{
    using namespace ng::cuda;
    using ng::gemm_check::Device;
    return ng::test::run_cases(argc, argv, ng::gemm_check::device, [](const Driver& driver) {
        const int compute = compute_of(driver, device_at(driver, 0));
        if (has_gemm_code(gemm::Image::Sm90Half, compute)) return std::make_unique<Device>(driver);
        std::printf("skipped: this build has no products for a device of compute capability %d\n", compute);
        return std::unique_ptr<Device>();
    });
}
