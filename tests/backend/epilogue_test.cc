// Which fused steps behind a product become its epilogue, what they read, and which stay kernels of their own.
#include "lib/backend/cuda/epilogue.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "lib/backend/cuda/matmul.h"
#include "tests/backend/finisher_image.h"
#include "tests/backend/plan_of_text.h"

#include <algorithm>
#include <cstring>
#include <doctest/doctest.h>
#include <set>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

using namespace ng;
using namespace ng::cuda;

namespace {

// a [64, 32] and b [32, 48] of f16, and what else a text names.
const std::vector<tests::NamedParam> PARAMS = {
    {"a", {64, 32}}, {"b", {32, 48}}, {"row", {48}}, {"column", {64, 1}, Dtype::f32}, {"full", {64, 48}, Dtype::bf16}, {"count", {48}, Dtype::i32},
    {"p", {64, 32}, Dtype::i8}, {"q", {32, 48}, Dtype::u8}, {"d", {64, 32}, Dtype::f64}, {"e", {32, 48}, Dtype::f64}, {"batch", {5, 64, 32}}, {"one", {1, 32}},
    {"query", {2, 3, 64, 32}}, {"key", {2, 3, 32, 48}}, {"beside", {2, 64, 3, 32}}, {"mask", {2, 1, 64, 48}}, {"head", {3, 1, 1}},
};

std::optional<EpilogueForm> form_of(std::string_view words)
{
    const Plan plan = tests::plan_of_text(words, PARAMS);
    REQUIRE(plan.steps.size() == 2);
    REQUIRE(plan.steps[1].epilogue);
    return EpilogueForm::of(plan.steps[0], plan.steps[1]);
}

// "none", or the tensors that it reads and the one that it writes.
std::string tensors_of(std::string_view words)
{
    const std::optional<EpilogueForm> form = form_of(words);
    if (!form) return "none";
    std::string out = form->is_cast() ? "cast to " : "";
    for (const EpilogueTensor& t : form->tensors()) out += text(name_of(t.type), text_of(t.access.strides), ", ");
    return out + name_of(form->result().type) + text_of(form->result().access.strides);
}

}  // namespace

TEST_CASE("epilogues: a cast is the store")
{
    CHECK(tensors_of("f16(a @ b)") == "cast to f16[48, 1]");
    CHECK(tensors_of("bf16(a @ b)") == "cast to bf16[48, 1]");
    CHECK(tensors_of("e4m3(a @ b)") == "cast to e4m3[48, 1]");
    CHECK(tensors_of("f32(p @ q)") == "cast to f32[48, 1]");
    CHECK(tensors_of("bf16(p @ q)") == "bf16[48, 1]");               // one rounding, not two by way of f32
    CHECK(form_of("f16(a @ b)")->weight() == 0);
    CHECK(form_of("f16(a @ b) * 3")->weight() > 0);
}

TEST_CASE("epilogues: whatever is computed point by point, with every tensor that it reads")
{
    CHECK(tensors_of("f16((a @ b) * 0.5)") == "f16[48, 1]");
    CHECK(tensors_of("f16(gelu(a @ b + row) + full)") == "bf16[48, 1], f16[0, 1], f16[48, 1]");
    CHECK(tensors_of("(a @ b) * column") == "f32[1, 0], f32[48, 1]");
    CHECK(tensors_of("f16(f32(p @ q) * 0.25 + row)") == "f16[0, 1], f16[48, 1]");
    CHECK(tensors_of("where(a @ b > f32(count), sin(a @ b), square(full))") == "bf16[48, 1], i32[0, 1], f32[48, 1]");
    CHECK(tensors_of("p @ q + 1") == "i32[48, 1]");
    CHECK(tensors_of("f16(batch @ b + row)") == "f16[0, 0, 1], f16[3072, 48, 1]");
    CHECK(tensors_of("f16(one @ b + row)") == "f16[1], f16[1]");
}

TEST_CASE("epilogues: batches of several axes are one where operands allow, tensors have a stride for each")
{
    const auto problem_of = [](std::string_view words) {
        const Plan plan = tests::plan_of_text(words, PARAMS);
        REQUIRE(plan.steps.size() == 2);
        REQUIRE(plan.steps[1].epilogue != !plan.steps[1].turned.empty());
        const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps[0], plan.steps[1]);
        std::vector<Placed> in;
        for (const View& v : plan.steps[0].in) in.emplace_back(v);
        const Placed out(plan.steps[0].out);
        return matmul_problem({*plan.steps[0].node, in, out, &*form}, {}).value();
    };
    gemm::Problem p = problem_of("f16((query @ key) * 0.5 + head + mask)");
    CHECK(p.batches == 6);
    CHECK(p.repeats == 1);
    CHECK(p.epilogue.inner == 3);
    const auto strides = [&](int i) { return text(p.epilogue.tensor[i].batch, " ", p.epilogue.outer[i]); };
    const bool is_mask_first = p.epilogue.tensor[0].column == 1;
    CHECK(strides(is_mask_first ? 0 : 1) == "0 3072");
    CHECK(strides(is_mask_first ? 1 : 0) == "1 0");
    p = problem_of("f16((query @ key) * 0.5)");
    CHECK(p.batches == 6);
    CHECK(p.epilogue.inner == 0);
    p = problem_of("f16((permute(beside, [0, 2, 1, 3]) @ key) * 0.5 + mask)");      // rows of three are beside each other
    CHECK(p.batches == 3);
    CHECK(p.repeats == 2);
    CHECK(p.epilogue.inner == 0);
    p = problem_of("permute(f16((query @ key) * 0.5), [0, 2, 1, 3])");
    CHECK(p.repeats == 2);
    CHECK(p.c_row == 3 * 48);
    p = problem_of("permute(f16((a @ b) * 0.5 + full), [1, 0])");
    CHECK(p.c_row == 1);
    CHECK(p.c_column == 64);
    CHECK(p.epilogue.tensor[0].row == 48);
}

TEST_CASE("epilogues: what products cannot store, or no thread knows, stays a kernel of its own")
{
    CHECK(tensors_of("d @ e + 1") == "none");                        // f64
    CHECK(tensors_of("i32(a @ b)") == "none");                       // integers of floats
    CHECK(tensors_of("a @ b > 0") == "none");
    CHECK(tensors_of("(a @ b) * random(uniform, f32, [64, 48], 1, 0)") == "none"); // where it is
    std::string many = "a @ b";
    for (size_t i = 0; i <= kernels::EPILOGUE_TENSORS; i++) many += text(" + t", i);
    std::vector<std::string> names;
    for (size_t i = 0; i <= kernels::EPILOGUE_TENSORS; i++) names.push_back(text("t", i));
    std::vector<tests::NamedParam> params = PARAMS;
    for (const std::string& name : names) params.push_back({name, {48}});
    const Plan plan = tests::plan_of_text(many, params);
    CHECK(!EpilogueForm::of(plan.steps[0], plan.steps[1]));          // more tensors than it has room for
}

TEST_CASE("epilogues: numbers are constants, and scalars of the run, as the text's struct has them")
{
    const std::optional<EpilogueForm> form = form_of("f16(relu((a @ b) * s) + 3)");
    const float scalars[] = {0, 2.5f};
    const kernels::Epilogue e = form->in_numbers({}, scalars);
    CHECK(e.is_cast);
    CHECK(e.count == 0);
    std::multiset<float> numbers;
    float all[2 * kernels::EPILOGUE_NUMBERS];
    std::memcpy(all, e.numbers, sizeof all);
    for (const float x : all)
        if (x != 0) numbers.insert(x);
    CHECK(numbers == std::multiset<float>{2.5f, 3});
}

TEST_CASE("epilogues: a second result is written beside the first")
{
    const Plan plan = tests::plan_of_texts({"f16(a @ b + row)", "gelu(a @ b + row)"}, PARAMS);
    REQUIRE(plan.steps.size() == 2);
    const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps[0], plan.steps[1]);
    REQUIRE(form);
    REQUIRE(form->tensors().size() == 2);
    std::vector<char*> buffers(plan.buffers.size());
    CHECK(!form->is_wanted(buffers.data()));
    buffers[size_t(form->tensors()[1].buffer)] = reinterpret_cast<char*>(256);
    CHECK(form->is_wanted(buffers.data()));
}

namespace {

// "none", or how it folds: along what, the tensors beside and the result, how many elements a part has.
std::string folds_of(const std::vector<std::string_view>& outputs)
{
    const Plan plan = tests::plan_of_texts(outputs, PARAMS);
    REQUIRE(plan.steps.size() == 2);
    REQUIRE(plan.steps[1].folds);
    const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps[0], plan.steps[1]);
    if (!form) return "none";
    REQUIRE(form->folds());
    CHECK(!form->is_cast());
    CHECK(form->weight() > 0);
    CHECK(form->is_wanted(nullptr));
    const EpilogueFolds& f = *form->folds();
    return text(f.folds, f.is_over_columns ? " over columns" : " over rows", ", ", f.count.text(), form->has_result() ? text(" beside ", name_of(form->result().type)) : "");
}

}  // namespace

TEST_CASE("epilogues: folds along rows or columns begin in the product")
{
    CHECK(folds_of({"sum(a @ b, 1)"}) == "1 over columns, 64");
    CHECK(folds_of({"max(a @ b, 0)"}) == "1 over rows, 48");
    CHECK(folds_of({"f16(a @ b + row)", "mean(f16(a @ b + row), 1)"}) == "1 over columns, 64 beside f16");
    CHECK(folds_of({"bf16(gelu(a @ b))", "sum(square(gelu(a @ b)), 0)", "min(gelu(a @ b), 0)"}) == "2 over rows, 48 beside bf16");
    CHECK(folds_of({"sum(a @ b)"}) == "1 over columns, 64");                  // then over what is left of rows
    CHECK(folds_of({"prod(batch @ b, [0, 1])"}) == "1 over rows, 48");
    CHECK(folds_of({"max(batch @ b, 2)"}) == "1 over columns, 320");
    CHECK(folds_of({"max(batch @ b, 1)"}) == "1 over rows, 240");
    CHECK(folds_of({"max(p @ q, 1)"}) == "1 over columns, 64");
    CHECK(folds_of({"var(a @ b, 1)"}) == "5 over columns, 64");               // a sum, and of each part a pivot, what is off it, its squares, how many
    CHECK(folds_of({"f16(a @ b)", "mean(a @ b, 1)", "std(a @ b, 1)"}) == "5 over columns, 64 beside f16");
    CHECK(folds_of({"f16(a @ b + full + row)", "sum(f16(a @ b + full + row), 1)", "max(f16(a @ b + full + row), 1)", "var(f16(a @ b + full + row), 1)"}) == "6 over columns, 64 beside f16");
    CHECK(folds_of({"sum(square(a @ b - 0.5), 1)"}) == "1 over columns, 64");
}

TEST_CASE("epilogues: folds that products do not begin")
{
    CHECK(folds_of({"argmax(a @ b, 1)"}) == "none");                          // positions
    CHECK(folds_of({"sum(p @ q, 1)"}) == "none");                             // i64
    CHECK(folds_of({"sum(d @ e, 1)"}) == "none");                             // f64
    CHECK(folds_of({"any(a @ b > 0, 1)"}) == "none");
    CHECK(folds_of({"logsumexp(a @ b, 1)"}) == "none");                       // powers of what a first fold says
    CHECK(folds_of({"softmax(a @ b, 1)"}) == "none");
    CHECK(folds_of({"var(a @ b, 0)"}) == "none");                             // its parts would be many
    CHECK(folds_of({"max(batch @ b, 0)"}) == "none");                         // of batches alone
}

TEST_CASE("epilogues: texts are code to the run-time compiler")
{
    if (!Compiler::find()) return;
    for (const std::vector<std::string_view>& outputs : {std::vector<std::string_view>{"f16(gelu(a @ b + row))"}, {"f16(a @ b)", "sum(a @ b, 1)", "max(a @ b, 1)"}, {"min(a @ b, 0)"}, {"var(a @ b, 1)"}, {"f16(a @ b + row)", "std(a @ b + row, 1)"}}) {
        const Plan plan = tests::plan_of_texts(outputs, PARAMS);
        const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps[0], plan.steps[1]);
        REQUIRE(form);
        const kernels::Epilogue e = form->in_numbers();
        const auto instances = gemm::sm90::instances();
        const auto split = uint32_t(std::ranges::find_if(instances, [](const gemm::sm90::Instance& i) { return i.is_split; }) - instances.begin());
        for (gemm::Finisher f : {gemm::Finisher{false, 0, 0, 0, {}, 1, 1}, gemm::Finisher{false, split, 0, 0, {}, 1, 1}, gemm::Finisher{true, 0, 0, 0, {}, 1, 1}}) {
            for (int i = e.loads; i < e.count; i++) f.kinds[i] = kernels::EpilogueKind(e.tensor[i].kind);
            CHECK(finisher_image(f, form->text(), {}, "sm_90a").size() > 1000);
        }
    }
}
