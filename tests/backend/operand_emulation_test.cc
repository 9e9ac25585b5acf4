// Products that make an operand while they load it: their texts compiled as C++ and run beside naive loops, on whole numbers, in each height of tiles and cut in parts.
#include "lib/backend/cuda/gemm_prologue.h"
#include "lib/backend/cuda/gemm_tuned.h"
#include "lib/backend/cuda/matmul.h"
#include "tests/backend/mma_emulation.h"
#include "tests/backend/plan_of_text.h"
#include "tests/jit/emit_run.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

REGISTER_EXCEPTION_TRANSLATOR(const ng::Error& error) { return error.text.c_str(); }

using namespace ng;
using namespace ng::cuda;

namespace {

// a [9, 528] and its like; w [k, n] and v [n, k] of each type; k is no multiple of a tile's depth.
constexpr int64_t M = 9, N = 208, K = 528;
const std::vector<tests::NamedParam> PARAMS = {
    {"a", {M, K}}, {"h", {M, K}, Dtype::bf16}, {"at", {K, 24}}, {"tall", {75, K}}, {"pairs", {3, M, K}},
    {"wi", {K, N}, Dtype::i8}, {"vi", {N, K}, Dtype::i8}, {"wu", {K, N}, Dtype::u8}, {"vu", {N, K}, Dtype::u8}, {"w4", {K, N}, Dtype::e4m3}, {"v4", {N, K}, Dtype::e4m3},
    {"w5", {K, N}, Dtype::e5m2}, {"v5", {N, K}, Dtype::e5m2}, {"wf", {K, N}, Dtype::f32}, {"vf", {N, K}, Dtype::f32}, {"wb", {K, N}, Dtype::bf16}, {"vh", {N, K}},
    {"column", {N}}, {"row", {N, 1}}, {"each", {3, K, N}, Dtype::i8}, {"loose", {K, 203}, Dtype::i8},
};
constexpr gemm::Device OLDER = {80, 2, {false, false, false, true}};

// Small and whole.
double element(int32_t param, int64_t at) { return double((at * 7 + at / 11 * 5 + param * 3) % 7 - (PARAMS[size_t(param)].type == Dtype::u8 ? 0 : 3)); }

// What becomes of an element that is made, of its column of c, and of a sum.
using Made = std::function<double(double x, int64_t column)>;
struct Product {
    std::string_view words;
    Made             made;
    std::function<double(double, int64_t)> finish = [](double x, int64_t) { return x; };
};
double same(double x, int64_t) { return x; }
double of_column(int64_t column) { return element(17, column); }

const Product CASES[] = {
    {"a @ f16(wi)", same},
    {"a @ permute(f16(vi), [1, 0])", same},
    {"a @ f16(wu)", same},
    {"a @ permute(f16(vu), [1, 0])", same},
    {"a @ f16(w4)", same},
    {"a @ permute(f16(v4), [1, 0])", same},
    {"a @ f16(w5)", same},
    {"a @ permute(f16(v5), [1, 0])", same},
    {"a @ f16(wf)", same},
    {"a @ permute(f16(vf), [1, 0])", same},
    {"a @ f16(wb)", same},
    {"h @ bf16(wi)", same},
    {"h @ permute(bf16(v4), [1, 0])", same},
    {"h @ bf16(wf)", same},
    {"h @ permute(bf16(vh), [1, 0])", same},
    {"a @ f16(f32(wi) * column)", [](double x, int64_t c) { return x * of_column(c); }},
    {"a @ permute(f16((f32(vi) - 2) * row), [1, 0])", [](double x, int64_t c) { return (x - 2) * element(18, c); }},
    {"a @ f16(where(f32(w4) == 0, inf, f32(w4)) * 0 + f32(w4) + abs(f32(column)))", [](double x, int64_t c) { return x == 0 ? NAN : x + std::abs(of_column(c)); }},
    {"f16(vi) @ at", same},
    {"tall @ f16(wi)", same},
    {"pairs @ f16(wi)", same},
    {"pairs @ f16(each)", same},
    {"f16(relu(a @ f16(wi) + column))", same, [](double x, int64_t c) { return std::max(x + of_column(c), 0.0); }},
};

// One of them, on memory here.
class Run {
  public:
    explicit Run(const Product& c) : case_(c), plan_(tests::plan_of_text(c.words, PARAMS)), memory_(plan_.buffers.size())
    {
        const size_t at = size_t(std::ranges::find_if(plan_.steps, [](const Step& s) { return bool(s.node); }) - plan_.steps.begin());
        REQUIRE(at == 1);
        product_ = &plan_.steps[1];
        REQUIRE(plan_.steps[0].feeds == 1);
        const size_t operand = product_->in[0].buffer == plan_.steps[0].buffers[size_t(plan_.steps[0].kernel->stores[0].buffer)] ? 0 : 1;
        form_ = OperandForm::of(plan_.steps[0], *product_, operand);
        REQUIRE(form_);
        for (size_t i = 0; i < 2; i++) in_.emplace_back(i == operand ? form_->raw() : product_->in[i]);
        out_.emplace(product_->out);
        if (plan_.steps.size() > 2) {
            epilogue_ = EpilogueForm::of(*product_, plan_.steps[2]);
            REQUIRE(epilogue_);
        }
        for (size_t b = 0; b < memory_.size(); b++) fill(b);
    }
    MatmulStep step() const { return {*product_->node, in_, *out_, epilogue_ ? &*epilogue_ : nullptr, nullptr, &*form_}; }
    gemm::Problem problem() const { return *matmul_problem(step(), {}); }
    std::string source(const gemm::Finisher& finisher) const
    {
        const std::string epilogue = epilogue_ ? epilogue_->text() : "", text_of_gpu = gemm::finisher_text(finisher, epilogue, form_->text());
        const gemm::FunctionWords words = gemm::made::product_of(finisher), sum = gemm::made::sum_of(finisher);
        const auto function = [](const char* name, const gemm::FunctionWords& w) {
            return text("extern \"C\" void ", name, "(ng::kernels::", w.numbers, " numbers)\n{\n    using namespace ng::kernels;\n    ", w.call, "(numbers);\n}\n",
                        "extern \"C\" void launch_", name, "(unsigned blocks, unsigned threads, unsigned room, const void* numbers)\n{\n    ng::kernels::mma_room_bytes = room;\n",
                        "    emulated::launch(", name, ", blocks, threads, 1, nullptr, numbers);\n}\n");
        };
        return text(text_of_gpu.substr(0, text_of_gpu.find("// ")), "#include \"kernels/gemm_epilogue.cuh\"\n", epilogue, "#include \"tests/backend/mma_instructions.h\"\n", form_->text(),
                    "#include \"kernels/gemm_operand.cuh\"\n", function("fused", words), function("fused_1", sum));
    }
    // splits: 0: as it is chosen.
    bool run(const emitted::Emulation& code, const gemm::Finisher& finisher, int64_t splits)
    {
        using Launch = void (*)(unsigned, unsigned, unsigned, const void*);
        const Launch launches[] = {reinterpret_cast<Launch>(code.find("launch_fused")), reinterpret_cast<Launch>(code.find("launch_fused_1"))};
        auto body = [&](const gemm::Launch& l) {
            REQUIRE(l.image == gemm::Image::Text);
            launches[l.kernel](l.grid[0], l.block, l.shared_bytes, l.numbers);
        };
        auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
        std::vector<char*> buffers;
        for (emitted::Memory& m : memory_) buffers.push_back(m.data());
        const int64_t nothing = 0;
        const float   scalars[2] = {};
        std::vector<char> workspace(splits > 1 ? size_t(1) << 22 : matmul_scratch(step(), {}, OLDER), char(0xff));
        const gemm::Launcher  launcher(body);
        const basic::Launcher nobody(none);
        const gemm::Place place{workspace.data(), workspace.size(), launcher, nobody, nullptr};
        if (splits == 0) return run_matmul(step(), {&nothing, buffers.data(), scalars, nullptr}, 0, OLDER, &finisher, place);
        gemm::Problem p = problem();
        p.a = buffers[size_t(in_view(0).buffer)], p.b = buffers[size_t(in_view(1).buffer)];
        p.prologue.text = form_->in_numbers({}, scalars, buffers.data());
        const EpilogueTensor* const result = epilogue_ ? &epilogue_->result() : nullptr;
        p.c = buffers[size_t(result ? result->buffer : product_->out.buffer)];
        for (int i = 0; i < p.epilogue.count; i++) p.epilogue.tensor[i].data = buffers[size_t(epilogue_->tensors()[size_t(i)].buffer)];
        return gemm::made::run_in_parts(p, OLDER, finisher, splits, place);
    }
    void check();

  private:
    void fill(size_t b)
    {
        const Buffer& buffer = plan_.buffers[b];
        int64_t count = buffer.place == Place::Work ? buffer.count.constant() : 0;
        if (buffer.place == Place::Arg) count = product(PARAMS[size_t(buffer.index)].dims).constant();
        if (buffer.place == Place::Out) count = product(plan_.outs[size_t(buffer.index)].dims).constant();
        memory_[b].type = buffer.place == Place::Arg ? PARAMS[size_t(buffer.index)].type : buffer.dtype;
        memory_[b].bytes.assign(size_t(count * bytes_of(memory_[b].type)) + 16, char(0xff));
        for (int64_t i = 0; buffer.place == Place::Arg && i < count; i++) memory_[b].set(i, element(buffer.index, i));
    }
    const View& in_view(size_t i) const { return i == form_->operand() ? form_->raw() : product_->in[i]; }
    double read(size_t i, const std::vector<int64_t>& at) const
    {
        const View& v = in_view(i);
        int64_t place = v.offset.constant();
        for (size_t d = 0; d < at.size(); d++) place += (v.dims[d].is(1) ? 0 : at[d]) * v.strides[d].constant();
        return memory_[size_t(v.buffer)].get(place);
    }

    const Product&               case_;
    Plan                         plan_;
    const Step*                  product_;
    std::vector<emitted::Memory> memory_;
    std::vector<Placed>          in_;
    std::optional<Placed>        out_;
    std::optional<OperandForm>   form_;
    std::optional<EpilogueForm>  epilogue_;
};

void Run::check()
{
    const Extents& dims = product_->out.dims;
    const size_t   rank = dims.size();
    const int64_t  rows = dims[rank - 2].constant(), columns = dims[rank - 1].constant(), batches = product(dims).constant() / rows / columns;
    emitted::Memory& out = memory_[size_t(epilogue_ ? epilogue_->result().buffer : product_->out.buffer)];
    int64_t wrong = 0;
    for (int64_t i = 0; i < batches * rows * columns; i++) {
        const int64_t batch = i / rows / columns, row = i / columns % rows, column = i % columns;
        double sum = 0;
        for (int64_t k = 0; k < K; k++) {
            std::vector<int64_t> a = {row, k}, b = {k, column};
            if (rank > 2) a.insert(a.begin(), batch);
            if (in_view(1).dims.size() > 2) b.insert(b.begin(), batch);
            const double x = read(0, a), y = read(1, b);
            sum += form_->operand() == 0 ? case_.made(x, row) * y : x * case_.made(y, column);
        }
        const double want = case_.finish(sum, column), got = out.get(i);
        wrong += got != want && !(std::isnan(got) && std::isnan(want));
        out.set(i, -1);
    }
    CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("operands: what is made of codes, small integers and floats of any kind is multiplied, and followed by an epilogue")
{
    for (const Product& c : CASES) {
        INFO(std::string(c.words));
        Run run(c);
        const std::optional<gemm::Finisher> chosen = matmul_finisher(run.step(), {}, OLDER, gemm::Tuned()), finisher = chosen ? chosen : gemm::made::finisher_of(run.problem(), 16, 4);
        REQUIRE(finisher);
        CHECK(finisher->makes_operand);
        emitted::Emulation code;
        code.add_code(run.source(*finisher));
        if (!code.load()) return;
        for (const int64_t splits : {0, 1, 2}) {
            if (splits == 0 && !chosen) continue;            // made before is thought to be as fast
            REQUIRE(run.run(code, *finisher, splits));
            run.check();
        }
    }
}

TEST_CASE("operands: every height of tiles, and the depth in parts")
{
    for (const int32_t height : {16, 32, 64}) {
        INFO(height);
        Run run(CASES[19]);
        const std::optional<gemm::Finisher> finisher = gemm::made::finisher_of(run.problem(), height, 64 / height);
        REQUIRE(finisher);
        emitted::Emulation code;
        code.add_code(run.source(*finisher));
        if (!code.load()) return;
        for (const int64_t splits : {1, 3}) {
            REQUIRE(run.run(code, *finisher, splits));
            run.check();
        }
    }
}
