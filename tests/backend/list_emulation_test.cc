// Epilogues as lists, carried out by portable products' kernels compiled as C++: the same bits as by the product and the kernel behind it.
#include "kernels/listed_maps.h"
#include "lib/backend/cuda/matmul.h"
#include "tests/backend/mma_emulation.h"
#include "tests/backend/plan_of_text.h"
#include "tests/jit/emit_run.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

using namespace ng;
using namespace ng::cuda;

namespace {

const std::vector<tests::NamedParam> PARAMS = {
    {"a", {70, 40}}, {"b", {40, 90}}, {"row", {90}}, {"full", {70, 90}, Dtype::f32}, {"half", {70, 90}}, {"short_", {70, 90}, Dtype::bf16}, {"column", {70, 1}, Dtype::f32}, {"one", {1, 1}, Dtype::bf16},
    {"x", {3, 20, 40}}, {"each", {3, 1, 1}, Dtype::f32}, {"c", {70, 40}, Dtype::f32}, {"d", {40, 90}, Dtype::f32}, {"e", {70, 40}, Dtype::bf16}, {"f", {40, 90}, Dtype::bf16}, {"thin", {40, 9}}, {"nine", {9}, Dtype::f32},
    {"p", {70, 40}, Dtype::i8}, {"q", {40, 90}, Dtype::u8}, {"query", {2, 3, 20, 40}}, {"key", {2, 3, 40, 90}}, {"turned", {2, 20, 3, 40}}, {"mask", {2, 1, 20, 90}}, {"head", {3, 1, 1}}, {"v", {1, 40}},
    {"u", {131, 65}}, {"w", {65, 133}}, {"odd", {131, 133}}, {"deep", {5, 3000}}, {"steep", {3000, 7}}, {"little", {5, 7}, Dtype::f32}, {"g", {70, 40}, Dtype::e4m3},
};

// Sums are exact whatever their order, and neither whole nor of one sign; rest: what is not a product's.
double element(const tests::NamedParam& p, int64_t at)
{
    const int64_t n = (at * 7 + at / 11 * 5 + int64_t(p.name[0]) * 3) % 13 - 6;
    return is_float(p.type) ? double(n) * 0.125 : p.type == Dtype::u8 ? double(n + 6) : double(n);
}

// Each map by itself, of sums that are small enough for it; then what networks have.
std::vector<std::string> texts()
{
    std::vector<std::string> all;
    for (const char* words : {"neg(a @ b)", "abs(a @ b)", "square(a @ b)", "sqrt(abs(a @ b))", "sqrt(a @ b)", "reciprocal(a @ b)", "exp(a @ b)", "tanh(a @ b)", "erf(a @ b)", "relu(a @ b)", "relu6(a @ b)", "sigmoid(a @ b)",
                              "hard_sigmoid(a @ b)", "hard_swish(a @ b)", "silu(a @ b)", "gelu(a @ b)", "gelu_tanh(a @ b)", "elu(a @ b)", "a @ b + full", "a @ b - full", "full - a @ b", "(a @ b) * full", "(a @ b) / full", "full / (a @ b)",
                              "maximum(a @ b, full)", "minimum(full, a @ b)", "where(a @ b < full, a @ b, full)", "where(a @ b <= 0, full, a @ b)", "where(a @ b > 0, a @ b, 0.1 * (a @ b))", "where(a @ b >= full, 1, a @ b)",
                              "where(a @ b == full, 2, a @ b)", "where(a @ b != full, 2, full)", "clip(a @ b, -0.5, 0.75)", "clip(a @ b, full, half)", "fma(a @ b, full, half)", "fma(full, a @ b, half)", "fma(full, half, a @ b)",
                              "clip(full, a @ b, 1)", "exp(a @ b * 40)", "(a @ b) / (full * 0)", "(a @ b) * 1e30 * 1e30"})
        all.push_back(words);
    for (const char* words : {"f16(a @ b + row)", "f16((a @ b) * s)", "f16(relu(a @ b + row))", "bf16(a @ b + half)", "f16(gelu(a @ b + row) + half)", "f16(silu(a @ b) * half)", "f16(gelu(a @ b + row) * column + short_)",
                              "e4m3((a @ b) * s)", "e5m2(clip((a @ b) * column, -1, 1))", "(a @ b) / (1 + exp(-(a @ b)))", "(a @ b) * 0.5 * (1 + tanh(0.7978845608 * ((a @ b) + 0.044715 * (a @ b) * (a @ b) * (a @ b))))",
                              "(a @ b) * 0.5 * (1 + erf((a @ b) * 0.7071067811865476))", "f16(f16(a @ b) + half)", "f32(bf16(a @ b)) * 3 - 1", "where(a @ b > 0, a @ b, 0.5 * (exp(a @ b) - 1))", "(a @ b) * one + row",
                              "f16((a @ b) * column * row)", "square(half) + a @ b", "f16(x @ b * each)", "f16(relu(x @ b + row) * 2)", "c @ d + row", "f16(c @ d * column)", "bf16(silu(e @ f + row))", "thin_", "f16(v @ b + row)",
                              "f16(f32(p @ q) * 0.01)", "gelu(f32(p @ q) * 0.01 + row)", "relu(f32(p @ q))", "f16(f32(p @ q) * column * row)", "f16((query @ key) * 0.5 + mask + head)", "permute(f16((query @ key) * 0.5 + mask), [0, 2, 1, 3])",
                              "f16((permute(turned, [0, 2, 1, 3]) @ key) * 0.5 + mask + head)", "permute(f16(a @ b + row), [1, 0])", "permute(gelu(a @ b) + full, [1, 0])", "f16(u @ w + odd)", "f16(relu(u @ w) * 0.5)",
                              "gelu(deep @ steep + little)", "f16(deep @ steep) * 2", "f16(g @ b + row)", "f16(a @ b + a @ b * 2)", "a @ b + exp(a @ b) * 2 * tanh(exp(a @ b))"})
        all.push_back(words == std::string_view("thin_") ? "gelu(a @ thin + nine)" : words);
    return all;
}

// Any expression of the product and three tensors, so many levels deep.
std::string random_text(std::mt19937& random, int levels)
{
    const auto any = [&](std::initializer_list<const char*> words) { return std::string(words.begin()[random() % words.size()]); };
    if (levels == 0) return any({"a @ b", "a @ b", "a @ b", "half", "full", "row", "0.75", "s"});
    const auto deeper = [&] { return "(" + random_text(random, levels - 1) + ")"; };
    switch (random() % 8) {
    case 0: return any({"relu", "tanh", "square", "neg", "abs", "sigmoid"}) + deeper();
    case 1: return "where(" + deeper() + any({" < ", " >= "}) + deeper() + ", " + deeper() + ", " + deeper() + ")";
    case 2: return "fma(" + deeper() + ", " + deeper() + ", " + deeper() + ")";
    case 3: return any({"maximum(", "minimum("}) + deeper() + ", " + deeper() + ")";
    default: return deeper() + any({" + ", " - ", " * ", " / "}) + deeper();
    }
}
// Those of such that are lists.
std::vector<std::string> random_texts(size_t count)
{
    std::mt19937 random(5);
    std::vector<std::string> all;
    for (size_t tries = 0; all.size() < count && tries < 40 * count; tries++) {
        const std::string words = "f32(" + random_text(random, 2 + int(random() % 2)) + ") + (a @ b)";
        const Plan plan = tests::plan_of_text(words, PARAMS);
        if (plan.steps.size() != 2 || !plan.steps[1].epilogue) continue;
        const std::optional<EpilogueForm> form = EpilogueForm::of(plan.steps[0], plan.steps[1]);
        if (form && form->list()) all.push_back(words);
    }
    REQUIRE(all.size() == count);
    return all;
}

class Product {
  public:
    explicit Product(std::string words) : words_(std::move(words)), plan_(tests::plan_of_text(words_, PARAMS)), memory_(plan_.buffers.size())
    {
        INFO(words_);
        REQUIRE(plan_.steps.size() == 2);
        const Step& product = plan_.steps[0];
        for (const View& v : product.in) in_.emplace_back(v);
        out_.emplace(product.out);
        form_ = EpilogueForm::of(product, plan_.steps[1]);
        REQUIRE(form_);
        REQUIRE(form_->list());
        for (size_t b = 0; b < memory_.size(); b++) {
            const Buffer& buffer = plan_.buffers[b];
            const tests::NamedParam* const param = buffer.place == Place::Arg ? &PARAMS[size_t(buffer.index)] : nullptr;
            int64_t count = buffer.place == Place::Work ? buffer.count.constant() : 0;
            if (param) count = product_of(param->dims);
            if (buffer.place == Place::Out) count = product_of(plan_.outs[size_t(buffer.index)].dims);
            memory_[b].type = param ? param->type : buffer.dtype;
            memory_[b].bytes.assign(size_t(count * bytes_of(memory_[b].type)), char(0xff));
            for (int64_t i = 0; param && i < count; i++) memory_[b].set(i, element(*param, i));
        }
        behind_ = emit(*plan_.steps[1].kernel, cuda_dialect());
    }
    size_t add_to(emitted::Emulation& code) { return at_ = code.add(behind_.text); }
    // As on a device of so many multiprocessors, which decides how large tiles are.
    void check(const emitted::Emulation& code, uint32_t units)
    {
        device_.units = units;
        INFO(words_, ": ", form_->list()->text());
        const MatmulStep alone = {*plan_.steps[0].node, in_, *out_, nullptr};
        REQUIRE(run(alone, gemm::Image::Mma));
        std::vector<char*> pointers;
        for (const int32_t b : plan_.steps[1].buffers) pointers.push_back(memory_[size_t(b)].data());
        std::vector<char> numbers(behind_.number_bytes);
        fill_numbers(behind_, {}, SCALARS, 1, numbers.data());
        code.kernel(at_)(4, 32, 1, pointers.data(), numbers.data());
        const std::vector<char> want = output().bytes;
        std::ranges::fill(output().bytes, char(0xff));
        for (size_t b = 0; b < memory_.size(); b++)
            if (plan_.buffers[b].place == Place::Work) std::ranges::fill(memory_[b].bytes, char(0xff));
        const MatmulStep listed = {*plan_.steps[0].node, in_, *out_, &*form_, nullptr, nullptr, true};
        REQUIRE(run(listed, gemm::Image::MmaListed));
        CHECK((output().bytes == want));
    }

    static constexpr float SCALARS[] = {0, 2.5f};
    static std::set<uint32_t> seen;      // kernels

  private:
    static int64_t product_of(const Extents& dims) { return product(dims).constant(); }
    emitted::Memory& output() { return memory_[size_t(std::ranges::find_if(plan_.buffers, [](const Buffer& b) { return b.place == Place::Out; }) - plan_.buffers.begin())]; }
    bool run(const MatmulStep& step, gemm::Image image)
    {
        auto body = [&](const gemm::Launch& l) {
            if (l.image == gemm::Image::Mma && image != l.image) {       // what is copied before
                REQUIRE(std::string(gemm::kernels_of(l.image)[l.kernel].name).starts_with("mma_lay"));
                return test::emulate_mma(l.kernel, l.grid[0], l.block, l.shared_bytes, l.numbers);
            }
            REQUIRE(l.image == image);
            if (image == gemm::Image::Mma) return test::emulate_mma(l.kernel, l.grid[0], l.block, l.shared_bytes, l.numbers);
            seen.insert(l.kernel);
            test::emulate_mma_listed(l.kernel, l.grid[0], l.block, l.shared_bytes, l.numbers);
        };
        auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
        std::vector<char*> buffers;
        for (emitted::Memory& m : memory_) buffers.push_back(m.data());
        std::vector<char> workspace(matmul_scratch(step, {}, device_));
        const int64_t nothing = 0;
        return run_matmul(step, {&nothing, buffers.data(), SCALARS, nullptr}, 0, device_, nullptr, {workspace.data(), workspace.size(), gemm::Launcher(body), basic::Launcher(none), nullptr});
    }

    const std::string           words_;
    const Plan                  plan_;
    std::vector<emitted::Memory> memory_;
    std::vector<Placed>         in_;
    std::optional<Placed>       out_;
    std::optional<EpilogueForm> form_;
    KernelSource                behind_;
    size_t                      at_ = 0;
    gemm::Device                device_ = {80, 2, {false, false, false, true, false, false, true}};
};
std::set<uint32_t> Product::seen;

}  // namespace

TEST_CASE("lists: every map, type and way to lie gives the bits of the product and the kernel behind it")
{
    std::vector<std::unique_ptr<Product>> all;
    emitted::Emulation code;
    for (const std::string& words : texts()) all.push_back(std::make_unique<Product>(words)), all.back()->add_to(code);
    if (!code.load()) return;
    for (const auto& p : all)
        for (const uint32_t units : {1, 132}) p->check(code, units);
    CHECK(Product::seen.size() >= 12);
}

TEST_CASE("lists: any expression that is one gives the same bits as well")
{
    std::vector<std::unique_ptr<Product>> all;
    emitted::Emulation code;
    for (const std::string& words : random_texts(80)) all.push_back(std::make_unique<Product>(words)), all.back()->add_to(code);
    if (!code.load()) return;
    for (const auto& p : all) p->check(code, 2);
}

TEST_CASE("lists: every map that may be in one is in one of these")
{
    std::string all;
    std::vector<std::string> words_of_all = texts(), others = random_texts(80);
    words_of_all.insert(words_of_all.end(), others.begin(), others.end());
    for (const std::string& words : words_of_all) {
        const Plan plan = tests::plan_of_text(words, PARAMS);
        all += EpilogueForm::of(plan.steps[0], plan.steps[1])->list()->text() + ", ";
    }
    for (const char* map : kernels::LISTED_MAPS) {
        INFO(std::string(map));
        CHECK(find_op(map) != Op::count_);
        CHECK((all.find(std::string(map) + ",") != all.npos || all.find(std::string(map) + " ") != all.npos));
    }
    for (const char* other : {"keep k0", "keep k1", "swap k0", "swap k1", "k1 = ", "take ", "f16,", "bf16,"}) {
        INFO(std::string(other));
        CHECK(all.find(other) != all.npos);
    }
}
