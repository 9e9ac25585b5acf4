// Which fused steps before a product become what is done while it loads an operand, what they read, and which stay kernels of their own.
#include "kernels/gemm_mma.h"
#include "kernels/gemm_sm90.h"
#include "lib/backend/cuda/gemm_prologue.h"
#include "lib/backend/cuda/matmul.h"
#include "tests/backend/plan_of_text.h"

#include <cstring>
#include <doctest/doctest.h>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

using namespace ng;
using namespace ng::cuda;

namespace {

const std::vector<tests::NamedParam> PARAMS = {
    {"a", {16, 4096}}, {"w", {4096, 2048}, Dtype::i8}, {"v", {2048, 4096}, Dtype::e4m3}, {"f", {4096, 2048}, Dtype::f32}, {"column", {2048}, Dtype::f32}, {"row", {2048, 1}},
    {"deep", {4096, 1}}, {"groups", {32, 1, 2048}}, {"long", {4096, 2048}, Dtype::i32}, {"batch", {5, 16, 4096}}, {"ws", {5, 4096, 2048}, Dtype::i8}, {"x", {16, 4096}, Dtype::f32},
    {"odd", {4096, 2047}, Dtype::i8}, {"tall", {4096, 4096}}, {"many", {256, 4096}}, {"deep_a", {4096, 16}}, {"b", {4096, 2048}},
};
constexpr gemm::Device HOPPER = {90, 132, {true, true, true, true}};

struct Formed {
    Plan plan;
    const Step* product = nullptr;
    std::optional<OperandForm> form;
};
Formed formed(std::string_view words)
{
    Formed f{tests::plan_of_text(words, PARAMS), nullptr, std::nullopt};
    REQUIRE(f.plan.steps.size() >= 2);
    const Step& fused = f.plan.steps[0];
    if (fused.feeds < 0) return f;
    f.product = &f.plan.steps[size_t(fused.feeds)];
    f.form = OperandForm::of(fused, *f.product, f.product->in[0].buffer == fused.buffers[size_t(fused.kernel->stores[0].buffer)] ? 0 : 1);
    return f;
}
// "none", or the side, what is loaded and how it lies, and about how many instructions follow.
std::string form_of(std::string_view words)
{
    const Formed f = formed(words);
    if (!f.form) return "none";
    std::string out = text(f.form->operand() == 0 ? "a " : "b ", name_of(f.form->raw().dtype));
    for (const Extent& s : f.form->raw().strides) out += text(" ", s.constant());
    return out + (f.form->weight() ? "" : " cast") + " to " + name_of(f.form->multiplied());
}
std::optional<gemm::Finisher> finisher_of(std::string_view words)
{
    const Formed f = formed(words);
    REQUIRE(f.form);
    std::vector<Placed> in;
    for (size_t i = 0; i < 2; i++) in.emplace_back(i == f.form->operand() ? f.form->raw() : f.product->in[i]);
    const Placed out(f.product->out);
    const auto   problem = matmul_problem({*f.product->node, in, out, nullptr, nullptr, &*f.form}, {});
    REQUIRE(problem);
    return gemm::made::finisher_for(*problem, HOPPER);
}
// Tiles of how many rows it is made in on a Hopper; 0: before the product.
int made_in(std::string_view words)
{
    const std::optional<gemm::Finisher> finisher = finisher_of(words);
    return finisher ? finisher->part_length : 0;
}
// Whether by Hopper's own tensor cores, what they are told of how it lies, and columns of their tiles.
std::string hoppers(std::string_view words)
{
    const std::optional<gemm::Finisher> finisher = finisher_of(words);
    REQUIRE(finisher);
    if (finisher->is_portable) return "portable";
    const std::string call = gemm::made::product_of(*finisher).call;
    CHECK(finisher->shared_bytes == kernels::made_shared(finisher->instance));
    CHECK(gemm::finisher_text(*finisher, {}, "// the operand\n").find("gemm_sm90_made") != std::string::npos);
    return call;
}

}  // namespace

TEST_CASE("operands: casts, and what a column shares, wherever the operand is and however it lies")
{
    CHECK(form_of("a @ f16(w)") == "b i8 2048 1 cast to f16");
    CHECK(form_of("a @ permute(f16(v), [1, 0])") == "b e4m3 1 4096 cast to f16");
    CHECK(form_of("f16(v) @ permute(a, [1, 0])") == "a e4m3 4096 1 cast to f16");
    CHECK(form_of("f16(x) @ b") == "a f32 4096 1 cast to f16");
    CHECK(form_of("a @ f16(f32(w) * column)") == "b i8 2048 1 to f16");
    CHECK(form_of("a @ permute(f16(f32(v) * row + 0.5), [1, 0])") == "b e4m3 1 4096 to f16");
    CHECK(form_of("a @ f16((f32(w) - 3) * s)") == "b i8 2048 1 to f16");
    CHECK(form_of("batch @ f16(w)") == "b i8 0 2048 1 cast to f16");
    CHECK(form_of("batch @ f16(ws)") == "b i8 8388608 2048 1 cast to f16");
}

TEST_CASE("operands: what changes along the depth, two tensors, other types and kernels that know where they are stay kernels of their own")
{
    CHECK(form_of("a @ f16(f32(w) * deep)") == "none");
    CHECK(form_of("a @ f16(f32(w) * f)") == "none");
    CHECK(form_of("a @ f16(f32(w) * reshape(broadcast(groups, [32, 128, 2048]), [4096, 2048]))") == "none");
    CHECK(form_of("batch @ f16(f32(ws) * column)") == "none");          // batches might become columns
    CHECK(form_of("a @ f16(long)") == "none");
    CHECK(form_of("a @ e4m3(f)") == "none");
    CHECK(form_of("a @ (f32(w) * column)") == "none");                  // f32 is multiplied
    CHECK(form_of("a @ f16(f * random(uniform, f32, [4096, 2048], 1, 0))") == "none");
}

TEST_CASE("operands: numbers are scalars of the run, and tensors of a line are where the run has them")
{
    const Formed f = formed("a @ f16(f32(w) * column * s)");
    REQUIRE(f.form);
    std::vector<char*> buffers(f.plan.buffers.size());
    for (size_t b = 0; b < buffers.size(); b++)
        if (f.plan.buffers[b].place == Place::Arg && f.plan.buffers[b].index == 4) buffers[b] = reinterpret_cast<char*>(4096);
    const float scalars[] = {0, 2.5f};
    const kernels::OperandText t = f.form->in_numbers({}, scalars, buffers.data());
    CHECK(t.tensor[0].data == reinterpret_cast<const void*>(4096));
    CHECK(t.tensor[0].line == 1);
    float number;
    std::memcpy(&number, t.numbers, 4);
    CHECK(number == 2.5f);
}

TEST_CASE("operands: thin products make theirs, others have it made where that is as fast, or where nothing could be read at once")
{
    CHECK(made_in("a @ f16(w)") == 16);
    CHECK(made_in("a @ permute(f16(v), [1, 0])") == 16);
    CHECK(made_in("f16(v) @ permute(a, [1, 0])") == 16);
    CHECK(made_in("tall @ f16(w)") == 0);
    CHECK(made_in("a @ f16(odd)") == 0);
}

TEST_CASE("operands: bytes of either side, whose lines or depth are near, are Hopper's own tensor cores' beside halves whose depth is near")
{
    CHECK(hoppers("a @ f16(w)") == "run_made<MadeShape<OfF16, 16, false>>");
    CHECK(hoppers("a @ permute(f16(v), [1, 0])") == "run_made<MadeShape<OfF16, 16, true>>");
    CHECK(hoppers("f16(v) @ permute(a, [1, 0])") == "run_made<MadeShape<OfF16, 16, true>>");
    CHECK(hoppers("many @ f16(w)") == "run_made<MadeShape<OfF16, 64, false>>");
    CHECK(hoppers("a @ f16(f)") == "portable");
    CHECK(hoppers("permute(deep_a, [1, 0]) @ f16(w)") == "portable");
}

TEST_CASE("operands: how far the second of an axis of one element would be moves no address off multiples of 16 bytes")
{
    for (const bool is_of_depth : {true, false}) {
        INFO(is_of_depth);
        gemm::Problem p = {};
        p.a_type = Dtype::f16, p.b_type = Dtype::i8, p.c_type = Dtype::f16, p.prologue.side = gemm::Prologue::B, p.prologue.type = Dtype::f16;
        p.m = is_of_depth ? 33 : 1, p.n = is_of_depth ? 208 : 1, p.k = is_of_depth ? 1 : 64, p.batches = 1;
        // Lines of one step of depth are side by side, or there is one line.
        p.a_row = is_of_depth ? 1 : 67, p.a_depth = is_of_depth ? 33 : 1, p.b_depth = is_of_depth ? 209 : 1, p.b_column = is_of_depth ? 1 : 67, p.c_row = p.n, p.c_column = 1;
        const std::optional<gemm::Finisher> finisher = gemm::made::finisher_of(p, 16, 4);
        REQUIRE(finisher);
        int launches = 0;
        auto body = [&](const gemm::Launch& l) {
            const kernels::MmaNumbers& n = static_cast<const kernels::MmaOperandNumbers*>(l.numbers)->product;
            for (const kernels::MmaOperand* o : {&n.a, &n.b}) {
                const int64_t far = is_of_depth ? o->depth : o->line;
                CHECK(far * bytes_of(Dtype(o->type)) % 16 == 0);
                CHECK((is_of_depth ? o->line : o->depth) == 1);
            }
            launches++;
        };
        auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
        const gemm::Launcher  launcher(body);
        const basic::Launcher nobody(none);
        CHECK(gemm::made::run_in_parts(p, {80, 132, {false, false, false, true}}, *finisher, 1, {nullptr, 0, launcher, nobody, nullptr}));
        CHECK(launches == 1);
    }
}
