// Epilogues as lists: which steps are one, how they are packed, and which of Hopper's shipped kernels carry them out, without a device.
#include "lib/backend/cuda/epilogue.h"
#include "lib/backend/cuda/matmul.h"
#include "tests/backend/gemm_problems.h"
#include "tests/backend/plan_of_text.h"
#include "tests/backend/stand_in.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

namespace ng::gemm_check {
namespace {

using namespace cuda;
using namespace kernels;
namespace sm90 = gemm::sm90;

const std::vector<tests::NamedParam> PARAMS = {
    {"a", {512, 256}}, {"b", {256, 384}}, {"row", {384}}, {"column", {512, 1}, Dtype::f32}, {"half", {512, 384}}, {"full", {512, 384}, Dtype::f32}, {"count", {384}, Dtype::i32}, {"byte", {384}, Dtype::e4m3},
    {"wide", {384}, Dtype::f64}, {"p", {512, 256}, Dtype::i8}, {"q", {256, 384}, Dtype::i8}, {"one", {1, 1}}, {"many", {3, 512, 256}},
};

std::optional<EpilogueForm> form_of(const std::vector<std::string_view>& words)
{
    const Plan plan = tests::plan_of_texts(words, PARAMS);
    if (plan.steps.size() != 2 || !plan.steps[1].runs_with_product()) return std::nullopt;
    return EpilogueForm::of(plan.steps[0], plan.steps[1]);
}
// "none": no epilogue; "cast"; "text": no list.
std::string list_of_all(const std::vector<std::string_view>& words)
{
    const std::optional<EpilogueForm> form = form_of(words);
    if (!form) return "none";
    return form->is_cast() ? "cast" : form->list() ? form->list()->text() : "text";
}
std::string list_of(std::string_view words) { return list_of_all({words}); }

}  // namespace

TEST_CASE("lists: short chains of common maps are one, with numbers, kept values and tensors")
{
    CHECK(list_of("f16((a @ b) * 0.5)") == "mul 0.5");
    CHECK(list_of("f16(a @ b + row)") == "add t0");
    CHECK(list_of("f16(relu(a @ b + row))") == "add t0, relu");
    CHECK(list_of("f16((a @ b) * s)") == "mul s");
    CHECK(list_of("f16(1 - a @ b)") == "sub of 1");
    CHECK(list_of("f16(full / (a @ b))") == "div of t0");
    CHECK(list_of("f16(gelu(a @ b + row) + half)") == "add t1, gelu, add t0");
    CHECK(list_of("(a @ b) / (1 + exp(-(a @ b)))") == "keep k0, neg, exp, add of 1, div of k0");
    CHECK(list_of("clip(a @ b, -1, 1)") == "k1 = 1, clip -1 k1");
    CHECK(list_of("fma(a @ b, full, half)").ends_with("k1"));
    CHECK(list_of("where(a @ b > 0, a @ b, 0.25 * (a @ b))").find("where k0 k1") != std::string::npos);
    CHECK(list_of("f16(f32(p @ q) * 0.5 + row)") == "mul 0.5, add t0");
    CHECK(list_of("relu(f32(p @ q))") == "relu");
    CHECK(list_of("f16((a @ b) * one)") == "mul t0");
    CHECK(list_of("e4m3((a @ b) * s)") == "mul s");
    CHECK(list_of("bf16(many @ b + row)") == "add t0");
    CHECK(list_of("permute(f16(a @ b + row), [1, 0])") == "add t0");
}

TEST_CASE("lists: a rounding of the value is an instruction, that of the result is the store's, and of what memory has there is none")
{
    CHECK(list_of("f16(f16(a @ b) + half)") == "f16, add t0");
    CHECK(list_of("f32(bf16(a @ b)) * 2") == "bf16, mul 2");
    CHECK(list_of("f16(a @ b + f32(half))") == "add t0");
    CHECK(list_of("bf16(f16(a @ b))") == "f16");
}

TEST_CASE("lists: what does not fit stays a text, or a kernel behind the product")
{
    CHECK(list_of("f16(a @ b)") == "cast");
    CHECK(list_of("f32(p @ q)") == "cast");
    CHECK(list_of("sin(a @ b)") == "text");                      // no map of lists
    CHECK(list_of("p @ q + 1") == "text");                       // integers
    CHECK(list_of("bf16(p @ q)") == "text");                     // rounded once, not twice
    CHECK(list_of("a @ b + f32(count)") == "text");
    CHECK(list_of("a @ b + f32(byte)") == "text");
    CHECK(list_of("a @ b + f32(wide)") == "text");
    CHECK(list_of("e4m3(e5m2(a @ b) * 2)") == "text");
    CHECK(list_of("where((a @ b > 0) & (half > 0), 1, a @ b)") == "text");       // logic
    CHECK(list_of("a @ b + f32(half > 0)") == "text");           // a truth as a number
    CHECK(list_of("a @ b + row + half + column + full") == "text");  // four tensors
    CHECK(list_of("a @ b > 0") == "none");
    std::string most = "a @ b", more;
    for (int i = 0; i < LIST_MOST; i++) most = "(" + most + (i % 2 ? ") * 1.5" : ") + 0.5");
    more = "(" + most + ") + 0.25";
    CHECK(list_of(most).ends_with("mul 1.5"));
    CHECK(list_of(more) == "text");
    // Four values that are all still wanted.
    CHECK(list_of("(exp(a @ b) + tanh(a @ b) * sigmoid(exp(a @ b) * tanh(a @ b))) / (exp(a @ b) - tanh(a @ b) + a @ b) * silu(a @ b)") == "text");
    CHECK(list_of_all({"f16(a @ b + row)", "gelu(a @ b + row)"}) == "text");          // several results
}

TEST_CASE("lists: values are folded when they are there, over columns and rows, with a result or without")
{
    CHECK(list_of_all({"f16(a @ b + row)", "sum(a @ b + row, 1)"}) == "add t0, fold sum");
    CHECK(list_of_all({"f16(a @ b + row)", "max(relu(a @ b + row), 0)"}) == "add t0, keep k0, relu, fold max, take k0");
    CHECK(list_of_all({"f16(a @ b)", "min(f16(a @ b), 1)", "max(a @ b, 1)"}) == "fold max, f16, fold min");
    CHECK(list_of_all({"sum(square(a @ b), 0)"}) == "square, fold sum");
    CHECK(list_of_all({"prod(a @ b, 1)"}) == "fold prod");
    CHECK(list_of_all({"f16(gelu(a @ b + row))", "max(a @ b, 1)"}) == "fold max, add t0, gelu");
    CHECK(list_of_all({"f16((a @ b) * 2)", "mean((a @ b) * 2, 1)", "var((a @ b) * 2, 1)"}) ==
          "mul 2, fold sum, fold squares");
    CHECK(list_of_all({"f16(a @ b + row)", "max(f16(a @ b + row), 1) - f16(a @ b + row)"}) == "add t0");     // what folds comes behind
    CHECK(list_of_all({"max(p @ q, 1)"}) == "text");                 // integers
    CHECK(list_of_all({"sum(a @ b, 1)", "max(a @ b, 1)", "min(a @ b, 1)"}) == "text");       // three
    CHECK(list_of_all({"max(a @ b, 1)", "sum(a @ b, 1)", "var(a @ b, 1)"}) == "fold max, fold sum, fold squares");
}

TEST_CASE("lists: words say types of tensors, sources, numbers and scalars of the run")
{
    const std::optional<EpilogueForm> form = form_of({"f16((s - (a @ b) * full) * 0.5 + row)"});
    REQUIRE(form->list());
    const float scalars[] = {0, 2.5f};
    const Epilogue e = form->in_list(scalars);
    CHECK(e.is_cast);
    CHECK(e.loads == 2);
    CHECK(e.count == 2);
    const u64 head = e.numbers[0];
    CHECK(list_length(head) == 4);
    for (int t = 0; t < 2; t++) {
        CHECK(list_type(head, t) == i32(form->tensors()[size_t(t)].type));
        CHECK(e.tensor[t].bytes == bytes_of(form->tensors()[size_t(t)].type));
    }
    for (int v = 0; v < 3; v++) CHECK(list_vector(head, v) == -1);
    CHECK(list_code(e.numbers[1]) == u32(Op::mul));
    CHECK(list_source(e.numbers[1]) == FROM_TENSOR + u32(form->tensors()[0].type == Dtype::f32 ? 0 : 1));
    CHECK(list_code(e.numbers[2]) == u32(Op::sub));
    CHECK(list_is_turned(e.numbers[2]));
    CHECK(list_source(e.numbers[2]) == FROM_NUMBER);
    CHECK(std::bit_cast<float>(list_number(e.numbers[2])) == 2.5f);
    CHECK(!list_is_turned(e.numbers[3]));
    CHECK(std::bit_cast<float>(list_number(e.numbers[3])) == 0.5f);
    for (int i = 5; i < EPILOGUE_NUMBERS; i++) CHECK(e.numbers[i] == 0);
    for (int v = 0; v < 3; v++)
        for (int t = 0; t < LIST_TENSORS; t++) CHECK(list_vector(list_vector_bits(v, t) | head, v) == t);
    for (const u32 code : {LIST_KEEP_0, LIST_ROUND_BF16}) CHECK(list_code(list_word(code, FROM_TENSOR + 2, true, ~0u)) == code);
}

// ---- Hopper's kernels ------------------------------------------------------------------------------------------------------------

namespace {

// f16(relu(a @ b + v0 + ..) + m0 + ..): so many vectors along columns or rows, matrices of 16 bits and of 32.
struct Reads {
    int of_columns, of_rows, halves, words;
};
gemm::Problem problem_with(const Extents& e, const Types& t, Dtype c, const Reads& reads)
{
    gemm::Problem p = problem_of(e, {}, t.a, t.b, c);
    p.a = address(uint64_t(1) << 36), p.b = address(uint64_t(1) << 37), p.c = address(uint64_t(1) << 38);
    p.epilogue.is_cast = 1, p.epilogue_weight = 12;
    const auto add = [&](Dtype type, int64_t row, int64_t column, int64_t batch) {
        const int i = p.epilogue.count++;
        p.epilogue.loads = p.epilogue.count;
        p.epilogue.tensor[i].data = address(uint64_t(i + 1) << 40), p.epilogue.tensor[i].bytes = bytes_of(type);
        p.epilogue.tensor[i].row = row, p.epilogue.tensor[i].column = column, p.epilogue.tensor[i].batch = batch;
        p.epilogue.numbers[0] |= list_type_bits(i, i32(type));
        p.epilogue.numbers[0]++, p.epilogue.numbers[i + 1] = list_word(u32(Op::add), FROM_TENSOR + u32(i), false, 0);
    };
    for (int i = 0; i < reads.halves; i++) add(Dtype::f16, e.n, 1, e.m * e.n);
    for (int i = 0; i < reads.words; i++) add(Dtype::f32, e.n, 1, e.m * e.n);
    for (int i = 0; i < reads.of_columns; i++) add(Dtype::f16, 0, 1, 0);
    for (int i = 0; i < reads.of_rows; i++) add(Dtype::f32, 1, 0, 0);
    return p;
}
gemm::Device with_lists() { return {90, 132, {true, true, true, true, true, true, true}}; }
constexpr Types HALVES = {Dtype::f16, Dtype::f16, Dtype::f32};

// What one launch says; none: the product and a kernel behind it.
struct Launched {
    std::string name;
    GemmOutput  output = {};
    bool        has_box = false;
};
std::optional<Launched> launched(const gemm::Problem& p, gemm::Memory* memory = nullptr, const gemm::Device& device = with_lists())
{
    std::optional<Launched> r;
    auto body = [&](const gemm::Launch& l) {
        const gemm::KernelFacts& facts = gemm::kernels_of(l.image)[l.kernel];
        const std::string name = facts.name;
        if (l.image < gemm::Image::Mma) return;                  // copies of operands
        REQUIRE(!r);
        CHECK((l.image == gemm::Image::Sm90Listed || l.image == gemm::Image::Sm90Boxed));
        CHECK(name.starts_with(l.image == gemm::Image::Sm90Boxed ? "gemm_boxed_" : "gemm_listed_"));
        CHECK(l.shared_bytes == facts.shared_bytes);
        CHECK(l.numbers_bytes <= 4096);
        r.emplace(), r->name = name;
        const bool is_split = l.numbers_bytes == sizeof(GemmSplitNumbers);
        REQUIRE((is_split || l.numbers_bytes == sizeof(GemmTilesNumbers)));
        r->output = is_split ? static_cast<const GemmSplitNumbers*>(l.numbers)->output : static_cast<const GemmTilesNumbers*>(l.numbers)->output;
        r->has_box = l.image == gemm::Image::Sm90Boxed;
        if (!is_split) CHECK((static_cast<const GemmTilesNumbers*>(l.numbers)->box.opaque[1] != 0) == r->has_box);
    };
    auto basic_body = [](const basic::Launch&) {};
    const gemm::Launcher  launcher(body);
    const basic::Launcher nobody(basic_body);
    const bool is_run = gemm::run_listed(p, device, {address(uint64_t(1) << 45), uint64_t(1) << 36, launcher, nobody, &fresh_driver(), memory});
    CHECK(is_run == r.has_value());
    return r;
}
// The ways that tensors come, in turn: c and r with the number of their vector, b by boxes, m from memory.
std::string ways_of(const Launched& l)
{
    std::string all;
    for (int i = 0; i < l.output.epilogue.loads; i++) {
        const i32 kind = l.output.epilogue.tensor[i].kind & 255, vector = l.output.epilogue.tensor[i].kind >> 8;
        all += text(i > 0 ? " " : "", kind == OF_COLUMNS ? "c" : kind == OF_ROWS ? "r" : kind == BY_ENGINE ? "b" : "m");
        const bool is_vector = kind == OF_COLUMNS || kind == OF_ROWS;
        if (is_vector) all += text(vector);
        CHECK((is_vector ? list_vector(l.output.epilogue.numbers[0], vector) == i : vector == 0));
    }
    return all;
}

}  // namespace

TEST_CASE("lists on Hopper: vectors wait in shared memory, one matrix of 16 bits comes by the copy engine")
{
    const Extents large = {4096, 4096, 4096, 1};
    const auto ways = [&](Dtype c, const Reads& reads) {
        const std::optional<Launched> l = launched(problem_with(large, HALVES, c, reads));
        REQUIRE(l);
        CHECK(l->name.find("_p128x128") != std::string::npos);
        CHECK(l->output.store == (c == Dtype::f32 ? STORE_WORDS : STORE_HALVES));
        return ways_of(*l);
    };
    CHECK(ways(Dtype::f16, {0, 0, 0, 0}) == "");
    CHECK(ways(Dtype::f16, {1, 0, 0, 0}) == "c0");
    CHECK(ways(Dtype::f16, {2, 1, 0, 0}) == "c0 c1 r2");
    CHECK(ways(Dtype::f16, {1, 0, 1, 0}) == "b c0");
    CHECK(ways(Dtype::bf16, {0, 1, 1, 0}) == "b r0");
    CHECK(ways(Dtype::f16, {1, 1, 1, 0}) == "b c0 m");           // with boxes there is room for one vector
    CHECK(ways(Dtype::f16, {0, 0, 2, 0}) == "b m");
    CHECK(ways(Dtype::f16, {1, 0, 0, 1}) == "m c0");
    CHECK(ways(Dtype::f32, {1, 0, 1, 0}) == "m c0");             // results of 32 bits have no room for boxes of 16
}

TEST_CASE("lists on Hopper: every group has kernels; few rows go by splits")
{
    for (const Types& t : TYPES)
        for (const Dtype c : {Dtype::f16, Dtype::f32}) {
            INFO(name_of(t.a), " ", name_of(t.b), " ", name_of(c));
            std::set<std::string> names;
            for (const Extents& e : {Extents{4096, 4096, 4096, 1}, {512, 512, 512, 1}, {16, 4096, 1024, 1}, {300, 520, 264, 3}}) {
                const std::optional<Launched> l = launched(problem_with(e, t, c, {1, 0, 0, 0}));
                if (l) names.insert(l->name);
            }
            CHECK(!names.empty());
        }
    gemm::Problem p = problem_with({4096, 4096, 4096, 1}, TYPES[10], Dtype::f32, {1, 0, 0, 0});
    p.allows_tf32 = true;
    const std::optional<Launched> l = launched(p);
    REQUIRE(l);
    CHECK(l->name.starts_with("gemm_listed_tf32_nt_p128"));
    const std::optional<Launched> few = launched(problem_with({48, 4096, 1024, 1}, HALVES, Dtype::f16, {0, 0, 1, 0}));
    REQUIRE(few);
    CHECK(few->name.find("_s64") != std::string::npos);
    CHECK(ways_of(*few) == "m");
}

TEST_CASE("lists on Hopper: results that the copy engine cannot store are no tile's, and none where images are missing or the second kernel is faster")
{
    for (const int64_t n : {int64_t(4090), int64_t(4095)})
        for (const Dtype c : {Dtype::f16, Dtype::f32}) {
            const std::optional<Launched> l = launched(problem_with({4096, n, 4096, 1}, HALVES, c, {1, 0, 0, 0}));
            if (l) CHECK(l->name.find("_s") != std::string::npos);
        }
    gemm::Problem p = problem_with({4096, 4096, 4096, 1}, HALVES, Dtype::f16, {1, 0, 0, 0});
    p.c = address((uint64_t(1) << 38) + 2);
    const std::optional<Launched> odd = launched(p);
    if (odd) CHECK(odd->name.find("_s") != std::string::npos);
    p = problem_with({4096, 4096, 4096, 1}, HALVES, Dtype::f16, {1, 0, 0, 0});
    gemm::Device device = with_lists();
    device.has[size_t(gemm::Image::Sm90Listed)] = false;
    CHECK(!launched(p, nullptr, device));
    CHECK(launched(p));
    CHECK(!launched(problem_with({1024, 1024, 1024, 1}, HALVES, Dtype::f16, {1, 0, 0, 0})));     // one round of tiles: nothing to do meanwhile
    p = problem_with({300, 520, 264, 1}, {Dtype::f64, Dtype::f64, Dtype::f64}, Dtype::f64, {});
    CHECK(!launched(p));
}

TEST_CASE("lists on Hopper: a step's memory keeps the choice, and an address that no tile takes is seen all the same")
{
    gemm::Memory  memory;
    gemm::Problem p = problem_with({4096, 4096, 4096, 1}, HALVES, Dtype::f16, {1, 0, 1, 0});
    const std::optional<Launched> first = launched(p, &memory);
    REQUIRE(first);
    REQUIRE(memory.is_known);
    CHECK(memory.is_better);
    const std::optional<Launched> again = launched(p, &memory);
    REQUIRE(again);
    CHECK(again->name == first->name);
    p.epilogue.tensor[0].data = address((uint64_t(1) << 40) + 2);     // no boxes from there
    const std::optional<Launched> from_memory = launched(p, &memory);
    REQUIRE(from_memory);
    CHECK(ways_of(*from_memory) == "m c0");
    p.c = address((uint64_t(1) << 38) + 2);
    CHECK(!launched(p, &memory));
}

TEST_CASE("lists on Hopper: kernels of all rows that have one, named as images have them")
{
    std::set<std::string> names;
    size_t listed = 0, boxed = 0;
    for (const sm90::Instance& i : sm90::instances()) listed += i.first_listed != sm90::NO_KERNEL, boxed += i.first_boxed != sm90::NO_KERNEL;
    CHECK(listed >= 16);
    CHECK(boxed >= 7);
    for (const gemm::Image image : {gemm::Image::Sm90Listed, gemm::Image::Sm90Boxed, gemm::Image::MmaListed})
        for (const gemm::KernelFacts& k : gemm::kernels_of(image)) CHECK(names.insert(k.name).second);
    for (const sm90::Instance& i : sm90::instances()) {
        if (i.first_listed == sm90::NO_KERNEL) continue;
        for (const auto& [first, image] : {std::pair{i.first_listed, gemm::Image::Sm90Listed}, std::pair{i.first_boxed, gemm::Image::Sm90Boxed}}) {
            if (first == sm90::NO_KERNEL) continue;
            CHECK(std::string(gemm::kernels_of(image)[first].name).ends_with(text("_", i.tile)));
            CHECK(gemm::kernels_of(image)[first].shared_bytes <= SHARED_MOST);
        }
    }
}

}  // namespace ng::gemm_check
