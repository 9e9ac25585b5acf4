// Epilogues' lists by the shipped kernels of this build, on the device of this machine: the bits of the same instance with the text in it, and
// of its sums with a kernel behind it.
//
//   list_gpu_test                                    all cases; without a driver, such a device or images they are skipped, and counted so
//   NG_TEST_SMALL=1 compute-sanitizer list_gpu_test  a few small problems
#define DOCTEST_CONFIG_IMPLEMENT
#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/nvrtc.h"
#include "tests/backend/gemm_machine.h"
#include "tests/backend/gemm_setting.h"

#include <string_view>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace ng::gemm_check {
namespace {

using namespace cuda;
namespace sm90 = gemm::sm90;
using gemm::Image;
constexpr Image IMAGES[] = {Image::Sm90Half, Image::Sm90Byte, Image::Sm90Wide, Image::Mma, Image::Sm90Listed, Image::Sm90Boxed, Image::MmaListed};

GemmMachine* device = nullptr;

// The same with its epilogue as a list.
gemm::Problem listed_of(const Setting& s)
{
    const float none[2] = {};
    const kernels::Epilogue e = s.epilogue->in_list(none);
    gemm::Problem p = s.problem;
    std::ranges::copy(e.numbers, p.epilogue.numbers), p.epilogue_weight = s.epilogue->list_weight();
    return p;
}
// Another epilogue of the same two tensors, whose sums are not known here.
void take_epilogue(Setting& s, const Types& t, Dtype c, std::string_view words)
{
    const gemm::Problem& p = s.problem;
    const auto batched = [&](ng::Extents dims) { return p.batches > 1 ? (dims.insert(dims.begin(), 7), dims) : dims; };
    const std::string all = text(name_of(c), "(", words, ")");
    const Plan plan = tests::plan_of_text(all, {{"a", batched({24, 16}), t.a}, {"b", batched({16, 32}), t.b}, {"bias", {32}, Dtype::f32}, {"residual", batched({24, 32}), Dtype::f16}});
    s.epilogue = EpilogueForm::of(plan.steps.at(0), plan.steps.at(1));
    REQUIRE(s.epilogue);
    REQUIRE(s.epilogue->list());
    add_epilogue(s.problem, *s.epilogue, s.bias->data(), s.residual->data());
}

std::vector<char> result_of(const Setting& s, const sm90::Form& form, const sm90::Choice& choice, const gemm::Finisher* finisher, const test::FinisherCode* text = nullptr)
{
    const uint64_t bytes = sm90::copies_workspace(form);
    const Bytes    workspace(bytes);
    s.c_there->poison();
    device->with_place(workspace.data(), bytes, [&](const gemm::Place& place) { sm90::run_as(form, device->facts, choice, finisher, place); }, text);
    CHECK(workspace.is_intact());
    return s.result();
}

Types types_of(sm90::Group g) { return TYPES[g == sm90::Group::Half ? 0 : g == sm90::Group::Byte ? 2 : g == sm90::Group::Whole ? 6 : 10]; }

// By every listed instance of the group: the same bits twice, those of its text, and those of its sums with each operation behind them.
int check_listed(Setting& s, uint32_t i, test::FinisherTexts* texts, bool has_reference)
{
    int done = 0;
    const gemm::Problem listed = listed_of(s);
    sm90::Form form, bare;
    REQUIRE(sm90::make_form(listed, true, form));
    REQUIRE(sm90::make_form(s.problem, true, bare));
    const sm90::Instance& instance = sm90::instances()[i];
    if (!sm90::takes_list(form, i)) return 0;
    for (const int32_t cluster : {1, 2, 3}) {
        const sm90::Choice choice = {i, instance.is_split ? cluster : instance.cluster, 1, 8};
        if (!sm90::is_possible(form, choice)) continue;
        const gemm::Problem& p = s.problem;
        INFO(std::string(instance.tile), " cluster ", choice.cluster, ", ", p.batches, " x ", p.m, " x ", p.n, " x ", p.k, " types ", int(p.a_type), " ", int(p.c_type), " strides ", p.a_row, " ", p.c_row, ": ",
             s.epilogue->list()->text());
        const gemm::Finisher    finisher = sm90::listed_finisher(form, i);
        const std::vector<char> first = result_of(s, form, choice, &finisher);
        if (has_reference) check_result(s, first);
        CHECK((result_of(s, form, choice, &finisher) == first));
        if (texts) {
            const test::FinisherCode& text = texts->of(device->gpu, sm90::finisher_of(bare, i), s.epilogue->text());
            CHECK((result_of(s, bare, choice, &text.finisher, &text) == first));
        }
        done++;
        if (!instance.is_split) break;
    }
    return done;
}

}  // namespace

const test::Gpu& gpu() { return device->gpu; }

TEST_CASE("images: no kernel of lists spills, and each is there")
{
    for (const Image image : {Image::Sm90Listed, Image::Sm90Boxed, Image::MmaListed}) {
        if (!device->facts.has[size_t(image)]) continue;
        for (size_t k = 0; k < gemm::kernels_of(image).size(); k++) {
            INFO(std::string(gemm::kernels_of(image)[k].name));
            CHECK(device->function(image, k).registers > 0);
            CHECK(device->function(image, k).local_bytes == 0);
        }
    }
}

TEST_CASE("lists: every instance that has one, all extents, results of 16 and 32 bits, c turned too, against sums of doubles")
{
    if (!device->facts.has[size_t(Image::Sm90Listed)]) return;
    std::vector<int> done(sm90::instances().size());
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (instance.first_listed == sm90::NO_KERNEL) continue;
        const Types t = types_of(instance.group);
        for (const Dtype c : {Dtype::f16, Dtype::f32})
            for (Extents e : {Extents{1, 1, 1, 1}, Extents{129, 67, 93, 1}, Extents{64, 200, 1000, 1}, Extents{7, 304, 31, 4}, Extents{257, 136, 72, 2}, Extents{300, 536, 264, 1}, Extents{14, 656, 1720, 1}, Extents{34, 128, 1720, 3}}) {
                if (is_too_large(e.m, e.n)) continue;
                for (const int64_t gap : {0, 8})
                    for (const bool is_turned : {false, true}) {
                        if ((gap > 0 && is_turned) || !device->gpu.takes_next()) continue;
                        Setting s(e, {false, true, is_turned, gap}, t, c, true);
                        s.problem.allows_tf32 = instance.group == sm90::Group::Round;
                        done[i] += check_listed(s, i, nullptr, true);
                    }
            }
        INFO(std::string(instance.tile), " of group ", int(instance.group));
        CHECK((done[i] > 0 || !device->gpu.is_all()));
    }
}

// What a product leaves, and its parts, which stand in s.
struct Left {
    std::vector<char> c, parts;
    bool operator==(const Left&) const = default;
};
template <class Run>
Left left_by(const Setting& s, const Run& run)
{
    s.c_there->poison(), s.parts_there->poison();
    run();
    return {s.result(), s.parts_there->get()};
}

TEST_CASE("lists: folds over columns and rows by every tile that has lists, the same bits twice, and the same parts where there is no result")
{
    if (!device->facts.has[size_t(Image::Sm90Listed)]) return;
    int done = 0;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (instance.first_listed == sm90::NO_KERNEL || instance.is_split) continue;
        const Types t = types_of(instance.group);
        for (const Folds folds : {Folds::SquaresOverColumns, Folds::OverRows})
            for (const Dtype c : {Dtype::f16, Dtype::f32})
                for (const bool is_turned : {false, true})
                    for (const Extents& e : {Extents{64, 200, 1000, 1}, Extents{7, 304, 31, 4}, Extents{257, 136, 72, 2}, Extents{296, 536, 264, 1}, Extents{34, 656, 1720, 3}}) {
                        if (is_too_large(e.m, e.n) || !device->gpu.takes_next()) continue;
                        Setting s(e, {false, true, is_turned, 0}, t, c, true, folds);
                        s.problem.allows_tf32 = instance.group == sm90::Group::Round;
                        sm90::Form form;
                        REQUIRE(sm90::make_form(listed_of(s), true, form));
                        const gemm::Finisher finisher = sm90::listed_finisher(form, i);
                        s.place_parts(finisher);
                        gemm::Problem listed = listed_of(s);
                        REQUIRE(sm90::make_form(listed, true, form));
                        if (!sm90::takes_list(form, i)) continue;
                        INFO(std::string(instance.tile), " ", e.batches, " x ", e.m, " x ", e.n, " x ", e.k, " types ", int(t.a), " ", int(c), " turned ", is_turned, ": ", s.epilogue->list()->text());
                        const uint64_t bytes = sm90::copies_workspace(form);
                        const Bytes    workspace(bytes);
                        const auto run = [&] {
                            device->with_place(workspace.data(), bytes, [&](const gemm::Place& place) { sm90::run_as(form, device->facts, {i, instance.cluster, 1, 8}, &finisher, place); });
                        };
                        const Left first = left_by(s, run);
                        check_result(s, first.c);
                        check_parts(s);
                        CHECK((left_by(s, run) == first));
                        listed.is_unstored = true, listed.c = nullptr;
                        REQUIRE(sm90::make_form(listed, true, form));
                        const Left bare = left_by(s, run);
                        CHECK((bare.parts == first.parts));
                        CHECK(std::ranges::all_of(bare.c, [](char x) { return x == char(0xff); }));
                        CHECK(workspace.is_intact());
                        done++;
                    }
    }
    CHECK((done >= 100 || !device->gpu.is_all()));
}

TEST_CASE("lists: operands in all ways that they lie")
{
    if (!device->facts.has[size_t(Image::Sm90Listed)]) return;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (instance.first_listed == sm90::NO_KERNEL || (instance.group != sm90::Group::Half && instance.group != sm90::Group::Wide)) continue;
        for (const Types& t : {types_of(instance.group), instance.group == sm90::Group::Half ? TYPES[1] : TYPES[10]})
            for (int bits = 0; bits < 4; bits++) {
                if (!device->gpu.takes_next() || is_too_large(264, 136)) continue;
                Setting s({264, 136, 200, 2}, {(bits & 1) != 0, (bits & 2) != 0, false, 0}, t, t.a, true);
                (void)check_listed(s, i, nullptr, true);
            }
    }
}

TEST_CASE("lists: the bits of the text in the same instance, of any epilogue")
{
    if (!device->facts.has[size_t(Image::Sm90Listed)] || !Compiler::find() || device->gpu.is_small()) return;
    constexpr std::string_view EPILOGUES[] = {
        "gelu(f32(a @ b) * 0.125 + bias) + residual",
        "silu(f32(a @ b)) * residual - bias",
        "where(f32(a @ b) > bias, f32(a @ b), 0.1 * f32(a @ b)) / residual",
        "tanh(f32(a @ b) * 0.01) * exp(-abs(bias)) + sqrt(abs(residual))",
        "clip(erf(f32(a @ b) * residual), bias, 1) / (1 + exp(-f32(a @ b) * 0.01))",
    };
    // A tile and a split of halves, and a tile of integers, whose sums are converted.
    for (const auto& [group, tile] : {std::pair{sm90::Group::Half, std::string_view("p128x128x1")}, std::pair{sm90::Group::Half, std::string_view("s64x64")}, std::pair{sm90::Group::Whole, std::string_view("p128x128x1")}})
        for (uint32_t i = 0; i < sm90::instances().size(); i++) {
            if (sm90::instances()[i].group != group || sm90::instances()[i].tile != tile) continue;
            test::FinisherTexts texts;
            for (size_t w = 0; w < std::size(EPILOGUES); w++) {
                if (!device->gpu.takes_next() || (group == sm90::Group::Whole && w > 0)) continue;
                const Dtype c = w % 2 ? Dtype::f32 : Dtype::f16;
                Setting s({300, 536, 264, 1}, {false, true, false, 0}, types_of(group), c, true);
                take_epilogue(s, types_of(group), c, EPILOGUES[w]);
                CHECK(check_listed(s, i, &texts, false) > 0);
            }
        }
}

TEST_CASE("lists: the bits of the same instance's sums and each operation behind them")
{
    if (!device->facts.has[size_t(Image::Sm90Listed)]) return;
    for (uint32_t i = 0; i < sm90::instances().size(); i++) {
        const sm90::Instance& instance = sm90::instances()[i];
        if (instance.first_listed == sm90::NO_KERNEL || is_too_large(300, 536) || !device->gpu.takes_next()) continue;
        const Types t = types_of(instance.group);
        Setting s({300, 536, 264, 1}, {false, true, false, 0}, t, Dtype::f32, true), sums({300, 536, 264, 1}, {false, true, false, 0}, t, t.sum);
        s.problem.allows_tf32 = sums.problem.allows_tf32 = instance.group == sm90::Group::Round;
        const gemm::Problem listed = listed_of(s);
        sm90::Form form, bare;
        REQUIRE(sm90::make_form(listed, true, form));
        REQUIRE(sm90::make_form(sums.problem, true, bare));
        const sm90::Choice choice = {i, instance.cluster, 1, 8};
        REQUIRE(sm90::takes_list(form, i));
        const gemm::Finisher    finisher = sm90::listed_finisher(form, i);
        const std::vector<char> got = result_of(s, form, choice, &finisher), plain = result_of(sums, bare, choice, nullptr);
        const Matrix bias = random_matrix(Dtype::f32, s.problem.n, 3), residual = random_matrix(Dtype::f16, s.problem.m * s.problem.n, 4);
        int64_t wrong = 0;
        for (int64_t at = 0; at < s.problem.m * s.problem.n; at++) {
            const float sum = float(get(t.sum, plain.data() + at * 4)), half = sum * 0.5f, moved = half + float(bias.values[size_t(at % s.problem.n)]), cut = moved > 0 ? moved : 0;
            wrong += float(get(Dtype::f32, got.data() + at * 4)) != cut + float(residual.values[size_t(at)]);
        }
        INFO(std::string(instance.tile), " of group ", int(instance.group));
        CHECK(wrong == 0);
    }
}

// This device as one that has portable kernels alone, of so many multiprocessors.
gemm::Device older(uint32_t units)
{
    gemm::Device d = device->facts;
    d.compute = 80, d.units = units;
    return d;
}
// False: tiles without a list are faster, with a kernel behind them.
bool run_portable(const gemm::Problem& listed, uint32_t units)
{
    const uint64_t bytes = gemm::mma::workspace(listed, true);
    const Bytes    workspace(bytes);
    bool is_run = false;
    device->with_place(workspace.data(), bytes, [&](const gemm::Place& place) { is_run = gemm::mma::run_listed(listed, older(units), place); });
    CHECK(workspace.is_intact());
    return is_run;
}

TEST_CASE("lists of portable products: each pair of types, odd extents, cut depths, against sums of doubles; the same bits twice")
{
    REQUIRE(device->facts.has[size_t(Image::MmaListed)]);
    int done = 0;
    for (const Types& t : TYPES)
        for (const uint32_t units : {uint32_t(1), device->facts.units})
            for (const Dtype c : {Dtype::f16, Dtype::f32})
                for (const Extents& e : {Extents{1, 1, 1, 1}, Extents{129, 67, 93, 1}, Extents{7, 300, 31, 4}, Extents{257, 136, 72, 2}, Extents{14, 130, 5720, 1}}) {
                    if (is_too_large(e.m, e.n) || !device->gpu.takes_next()) continue;
                    for (const int64_t gap : {0, 1}) {
                        Setting s(e, {false, gap == 0, false, gap}, t, c, true);
                        const gemm::Problem listed = listed_of(s);
                        const auto run = [&](std::vector<char>& to) {
                            s.c_there->poison();
                            const bool is_run = run_portable(listed, units);
                            to = s.result();
                            return is_run;
                        };
                        std::vector<char> first, second;
                        INFO(e.batches, " x ", e.m, " x ", e.n, " x ", e.k, " types ", int(t.a), " ", int(t.b), " ", int(c), " gap ", gap, " units ", units);
                        if (!run(first)) continue;
                        done++;
                        check_result(s, first);
                        CHECK(run(second));
                        CHECK((second == first));
                    }
                }
    CHECK((done >= 50 || !device->gpu.is_all()));
}

TEST_CASE("lists of portable products: folds over columns and rows, large tiles and small, the same bits twice")
{
    REQUIRE(device->facts.has[size_t(Image::MmaListed)]);
    int done = 0;
    for (const Types& t : TYPES)
        for (const uint32_t units : {uint32_t(1), device->facts.units})
            for (const Folds folds : {Folds::SquaresOverColumns, Folds::OverRows})
                for (const bool is_turned : {false, true})
                    for (const Extents& e : {Extents{129, 67, 93, 1}, Extents{7, 300, 31, 4}, Extents{257, 136, 72, 2}, Extents{300, 530, 264, 1}}) {
                        if (is_too_large(e.m, e.n) || !device->gpu.takes_next()) continue;
                        Setting s(e, {false, true, is_turned, 0}, t, Dtype::f16, true, folds);
                        s.place_parts(gemm::listed_parts(s.problem, older(units), gemm::mma::workspace(s.problem, true)));
                        const gemm::Problem listed = listed_of(s);
                        bool is_run = false;
                        const auto run = [&] { is_run = run_portable(listed, units); };
                        INFO(e.batches, " x ", e.m, " x ", e.n, " x ", e.k, " types ", int(t.a), " ", int(t.b), " turned ", is_turned, " units ", units, ": ", s.epilogue->list()->text());
                        const Left first = left_by(s, run);
                        if (!is_run) continue;
                        check_result(s, first.c);
                        check_parts(s);
                        CHECK((left_by(s, run) == first));
                        done++;
                    }
    CHECK((done >= 50 || !device->gpu.is_all()));
}

}  // namespace ng::gemm_check

int main(int argc, char** argv)
{
    using namespace ng::cuda;
    return ng::test::run_cases(argc, argv, ng::gemm_check::device, [](const Driver& driver) {
        const int compute = compute_of(driver, device_at(driver, 0));
        if (has_gemm_code(gemm::Image::MmaListed, compute)) return std::make_unique<ng::gemm_check::GemmMachine>(driver, ng::gemm_check::IMAGES);
        std::printf("skipped: this build has no lists for a device of compute capability %d\n", compute);
        return std::unique_ptr<ng::gemm_check::GemmMachine>();
    });
}
