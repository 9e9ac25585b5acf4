// Which fused steps behind a product become its epilogue, step by step, and which do not.
#include "lib/backend/cuda/epilogue.h"
#include "tests/backend/plan_of_text.h"

#include <doctest/doctest.h>

using namespace ng;
using namespace ng::cuda;

namespace {

// a [64, 32] and b [32, 48] of f16, and what else a text names.
const std::vector<tests::NamedParam> PARAMS = {
    {"a", {64, 32}}, {"b", {32, 48}}, {"row", {48}}, {"column", {64, 1}, Dtype::f32}, {"full", {64, 48}, Dtype::bf16}, {"count", {48}, Dtype::i32},
    {"p", {64, 32}, Dtype::i8}, {"q", {32, 48}, Dtype::u8}, {"d", {64, 32}, Dtype::f64}, {"e", {32, 48}, Dtype::f64}, {"batch", {5, 64, 32}}, {"one", {1, 32}},
};

std::string step_text(const kernels::EpilogueStep& s, const std::vector<EpilogueTensor>& tensors, size_t& tensor)
{
    if (s.op == kernels::EPILOGUE_KEEP) return "keep";
    if (s.op == kernels::EPILOGUE_ROUND) return text("to ", name_of(Dtype(s.type)));
    std::string out = name_of(Op(s.op));
    if (info(Op(s.op)).arity == 1) return out;
    out += s.is_turned ? " turned " : " ";
    if (s.source == kernels::FROM_KEPT) return out + "kept";
    if (s.source == kernels::FROM_NUMBER) return out + text(s.number) + (info(Op(s.op)).arity == 3 ? " " + text(s.high) : "");
    const EpilogueTensor& t = tensors[tensor++];
    CHECK(Dtype(s.type) == t.type);
    return out + name_of(t.type) + text_of(t.access.strides);
}

// "none", or the steps and the type that is stored.
std::string form_of(std::string_view words)
{
    const Plan plan = tests::plan_of_text(words, PARAMS);
    REQUIRE(plan.steps.size() == 2);
    REQUIRE(plan.steps[1].epilogue);
    const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps[0], plan.steps[1]);
    if (!form) return "none";
    const float scalars[] = {0, 2.5f};
    const kernels::Epilogue e = form->steps(scalars);
    std::string out = e.is_cast ? "cast, " : "";
    size_t tensor = 0;
    for (int i = 0; i < e.count; i++) out += step_text(e.step[i], form->tensors(), tensor) + ", ";
    CHECK(tensor == form->tensors().size());
    return out + name_of(form->result().type) + text_of(form->result().access.strides);
}

}  // namespace

TEST_CASE("epilogues: a cast is the store")
{
    CHECK(form_of("f16(a @ b)") == "f16[48, 1]");
    CHECK(form_of("bf16(a @ b)") == "bf16[48, 1]");
    CHECK(form_of("e4m3(a @ b)") == "e4m3[48, 1]");
    CHECK(form_of("f32(p @ q)") == "cast, f32[48, 1]");
}

TEST_CASE("epilogues: scales, biases, residuals and activations are steps")
{
    CHECK(form_of("f16((a @ b) * 0.5)") == "mul 0.5, f16[48, 1]");
    CHECK(form_of("relu((a @ b) * s)") == "mul 2.5, relu, f32[48, 1]");
    CHECK(form_of("f16(gelu(a @ b + row) + full)") == "add f16[0, 1], gelu, add bf16[48, 1], f16[48, 1]");
    CHECK(form_of("(a @ b) * column") == "mul f32[1, 0], f32[48, 1]");
    CHECK(form_of("clip(a @ b, -1, 1)") == "clip -1 1, f32[48, 1]");
    CHECK(form_of("row - a @ b") == "sub turned f16[0, 1], f32[48, 1]");
    CHECK(form_of("a @ b + f32(count)") == "add i32[0, 1], f32[48, 1]");
    CHECK(form_of("f16(f32(p @ q) * 0.25 + row)") == "cast, mul 0.25, add f16[0, 1], f16[48, 1]");
}

TEST_CASE("epilogues: one value is put aside, and rounding in between stays")
{
    CHECK(form_of("(a @ b) * sigmoid(a @ b)") == "keep, sigmoid, mul turned kept, f32[48, 1]");
    CHECK(form_of("square(a @ b) + tanh(a @ b)") == "none");        // square is no step
    CHECK(form_of("(a @ b) * (a @ b)") == "keep, mul kept, f32[48, 1]");
    CHECK(form_of("f16(a @ b) * 3 + row") == "to f16, mul 3, add f16[0, 1], f32[48, 1]");
}

TEST_CASE("epilogues: batches, and axes of one element")
{
    CHECK(form_of("f16(batch @ b + row)") == "add f16[0, 0, 1], f16[3072, 48, 1]");
    CHECK(form_of("f16(one @ b + row)") == "add f16[1], f16[1]");
}

TEST_CASE("epilogues: what no step can say stays a kernel of its own")
{
    CHECK(form_of("sin(a @ b)") == "none");                          // an operation that steps lack
    CHECK(form_of("d @ e + 1") == "none");                           // f64
    CHECK(form_of("p @ q + 1") == "none");                           // integers
    CHECK(form_of("bf16(p @ q)") == "none");                         // one rounding, not two by way of f32
    CHECK(form_of("where(a @ b > 0, a @ b, 1)") == "none");          // truth
    CHECK(form_of("(a @ b) + full * 2") == "none");                  // an operand that is computed
    CHECK(form_of("tanh(a @ b) * sigmoid(a @ b) - (a @ b)") == "none");   // two values put aside
}

TEST_CASE("epilogues: there is no room for more steps than there are")
{
    std::string words = "a @ b";
    for (int i = 0; i < kernels::EPILOGUE_STEPS; i++) words = "(" + words + " + s) * 2", i++;
    CHECK(form_of(words) != "none");
    CHECK(form_of("relu(" + words + ")") == "none");
}
