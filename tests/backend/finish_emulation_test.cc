// Portable products with epilogues in them, folds too: their texts compiled as C++, and their lists by the shipped kernels, on whole numbers, so that results are exact.
#include "lib/backend/cuda/gemm_mma.h"
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

const std::vector<tests::NamedParam> PARAMS = {
    {"a", {70, 40}}, {"b", {40, 90}}, {"row", {90}}, {"full", {70, 90}, Dtype::f32}, {"x", {3, 20, 40}}, {"c", {70, 40}, Dtype::f32},
    {"d", {40, 90}, Dtype::f32}, {"thin", {40, 9}}, {"p", {70, 40}, Dtype::i8}, {"q", {40, 90}, Dtype::i8},
    {"query", {2, 3, 20, 40}}, {"key", {2, 3, 40, 90}}, {"turned", {2, 20, 3, 40}}, {"mask", {2, 1, 20, 90}}, {"head", {3, 1, 1}}, {"each", {2, 3, 1, 1}}, {"scale", {1, 1}},
    {"single", {1, 40}, Dtype::f32}, {"e", {90, 40}, Dtype::f32}, {"tiny", {90}, Dtype::i8}, {"bytes", {70, 90}, Dtype::i8}, {"long", {90}, Dtype::i64}, {"wide", {70, 90}, Dtype::f64},
    {"many", {40, 10, 12}}, {"much", {40, 12, 20}}, {"little", {20}}, {"those", {40, 9, 12}, Dtype::f32}, {"others", {40, 12, 7}, Dtype::f32}, {"single_each", {40, 1, 1}, Dtype::f32},
};
constexpr gemm::Device OLDER = {80, 2, {false, false, false, true, false, false, true}};

// Small and whole.
double element(int32_t param, int64_t at) { return double((at * 7 + at / 11 * 5 + param * 3) % 7 - 3); }

// What follows a sum at a row and column, and what is folded of that. The last outputs are the folds; without any, a second output is
// how much less a value is than the greatest of its row.
struct Fold {
    bool                          is_sum;
    std::function<double(double)> term;
    bool                          is_variance = false;
};
const Fold VARIANCE = {true, [](double x) { return x; }, true};
struct Behind {
    std::vector<std::string_view>                          outputs;
    std::function<double(double, int64_t row, int64_t column)> value;
    std::vector<Fold>                                      folds;
    bool                                                   over_columns = true;
};

double same(double x, int64_t, int64_t) { return x; }
double plus_row(double x, int64_t, int64_t column) { return x + element(2, column); }
double one(double x) { return x; }
double far_off(double x, int64_t, int64_t) { return x * 0.125 + 4096; }
// Of queries and keys: rows are [2, 3, 20]. A mask for each of two, a number for each of three.
double masked(double x, int64_t row, int64_t column) { return x * 0.5 + element(13, (row / 60 * 20 + row % 20) * 90 + column) + element(14, row / 20 % 3); }

const Behind CASES[] = {
    {{"f16(relu(a @ b + row) * full)"}, [](double x, int64_t row, int64_t column) { return std::max(plus_row(x, row, column), 0.0) * element(3, row * 90 + column); }, {}},
    {{"f16((a @ b + f32(tiny)) * f32(bytes))"}, [](double x, int64_t row, int64_t column) { return (x + element(19, column)) * element(20, row * 90 + column); }, {}},
    {{"f16(a @ b + f32(long) + f32(wide))"}, [](double x, int64_t row, int64_t column) { return x + element(21, column) + element(22, row * 90 + column); }, {}},
    {{"f16((a @ b) * scale + row)"}, [](double x, int64_t, int64_t column) { return x * element(16, 0) + element(2, column); }, {}},
    {{"f16((a @ b + row) * (scale * 2))"}, [](double x, int64_t, int64_t column) { return (x + element(2, column)) * element(16, 0) * 2; }, {}},
    {{"f16(a @ b + row)", "sum(a @ b + row, 1)", "max(-(a @ b + row), 1)"}, plus_row, {{true, one}, {false, [](double x) { return -x; }}}},
    {{"sum(a @ b, 0)", "max(abs(a @ b), 0)"}, same, {{true, one}, {false, [](double x) { return std::abs(x); }}}, false},
    {{"c @ d", "sum(c @ d, 0)"}, same, {{true, one}}, false},
    {{"c @ d", "max(c @ d, 1)"}, same, {{false, one}}},
    {{"a @ thin", "sum(a @ thin, 1)"}, same, {{true, one}}},
    {{"a @ thin", "sum(a @ thin, 0)"}, same, {{true, one}}, false},
    {{"f16(x @ b)", "sum(x @ b, [0, 1])"}, same, {{true, one}}, false},
    {{"f16(x @ b)", "sum(x @ b, 2)"}, same, {{true, one}}},
    {{"max(p @ q, 1)"}, same, {{false, one}}},
    {{"sum(a @ b)"}, same, {{true, one}}},
    {{"f16(a @ b + row)", "max(f16(a @ b + row), 1) - f16(a @ b + row)"}, plus_row, {}},
    {{"f16(a @ b + row)", "var(a @ b + row, 1)"}, plus_row, {VARIANCE}},
    {{"var((a @ b) * 0.125 + 4096, 1)"}, far_off, {VARIANCE}},
    {{"sum((c @ d) * 0.125 + 4096, 1)", "var((c @ d) * 0.125 + 4096, 1)"}, far_off, {{true, one}, VARIANCE}},
    {{"var(a @ thin, 1)"}, same, {VARIANCE}},
    {{"var(x @ b, 2)"}, same, {VARIANCE}},
    {{"var(a @ b)"}, same, {VARIANCE}},
    {{"f16(single @ d + row)"}, plus_row, {}},
    {{"f16(single @ permute(e, [1, 0]) + row)"}, plus_row, {}},
    {{"f16((query @ key) * 0.5 + mask + head)"}, masked, {}},
    {{"f16((permute(turned, [0, 2, 1, 3]) @ key) * 0.5 + mask + head)"}, masked, {}},
    {{"permute(f16((query @ key) * 0.5 + mask + head), [0, 2, 1, 3])"}, masked, {}},
    {{"permute(f16((query @ key) * each), [0, 2, 1, 3])"}, [](double x, int64_t row, int64_t) { return x * element(15, row / 20); }, {}},
    {{"permute(f16(a @ b + row), [1, 0])"}, plus_row, {}},
    {{"f16((query @ key) * 0.5 + mask + head)", "max((query @ key) * 0.5 + mask + head, 3)"}, masked, {{false, one}}},
    {{"sum((permute(turned, [0, 2, 1, 3]) @ key) * 0.5 + mask + head, 3)"}, masked, {{true, one}}},
    {{"f16(relu(many @ much + little))"}, [](double x, int64_t, int64_t column) { return std::max(x + element(25, column), 0.0); }, {}},
    {{"(those @ others) * single_each"}, [](double x, int64_t row, int64_t) { return x * element(28, row / 9); }, {}},
};

// A case's product with what follows it, on memory here.
class Product {
  public:
    explicit Product(const Behind& c) : case_(c), plan_(tests::plan_of_texts(c.outputs, PARAMS)), memory_(plan_.buffers.size())
    {
        REQUIRE(plan_.steps.size() == 2);
        const Step& product = plan_.steps[0];
        for (const View& v : product.in) in_.emplace_back(v);
        out_.emplace(product.out);
        form_ = EpilogueForm::of(product, plan_.steps[1]);
        REQUIRE(form_);
        const std::optional<gemm::Finisher> finisher = matmul_finisher(step(), {}, OLDER, gemm::Tuned());
        REQUIRE(finisher);
        finisher_ = *finisher;
        for (size_t b = 0; b < memory_.size(); b++) {
            const Buffer& buffer = plan_.buffers[b];
            int64_t count = buffer.place == Place::Work ? buffer.count.constant() : 0;
            if (buffer.place == Place::Arg) count = product_of(dims_of(buffer.index));
            if (buffer.place == Place::Out) count = product_of(plan_.outs[size_t(buffer.index)].dims);
            memory_[b].type = buffer.place == Place::Arg ? PARAMS[size_t(buffer.index)].type : buffer.dtype;
            memory_[b].bytes.assign(size_t(count * bytes_of(memory_[b].type)), char(0xff));
            for (int64_t i = 0; buffer.place == Place::Arg && i < count; i++) memory_[b].set(i, element(buffer.index, i));
        }
    }
    // The instance in the words of its headers, with the emulation's instructions.
    std::string source() const
    {
        const std::string text_of_gpu = gemm::finisher_text(finisher_, form_->text());
        const gemm::FunctionWords words = gemm::mma::product_of(finisher_);
        const std::string head = text_of_gpu.substr(0, text_of_gpu.find("// "));
        return text(head, "#include \"kernels/gemm_epilogue.cuh\"\n", form_->text(), "#include \"tests/backend/mma_instructions.h\"\n",
                    "#include \"kernels/gemm_mma_row.cuh\"\n#include \"kernels/gemm_mma_simt.cuh\"\n#include \"kernels/gemm_mma_small.cuh\"\nextern \"C\" void fused(ng::kernels::MmaNumbers numbers)\n{\n    using namespace ng::kernels;\n    ", words.call, "(numbers);\n}\n",
                    "extern \"C\" void launch(unsigned blocks, unsigned threads, unsigned room, const void* numbers)\n{\n    ng::kernels::mma_room_bytes = room;\n",
                    "    emulated::launch(fused, blocks, threads, 1, nullptr, numbers);\n}\n");
    }
    // Its number in the code.
    std::optional<size_t> add_behind(emitted::Emulation& code)
    {
        if (!form_->behind()) return std::nullopt;
        behind_ = emit(form_->behind()->after, cuda_dialect());
        return code.add(behind_.text);
    }
    bool has_list() const { return form_->list(); }
    bool is_of_small_tiles() const { return std::string_view(gemm::mma::kernels()[finisher_.instance].name).find("_small_") != std::string_view::npos; }
    // By its text, or as a list on a device of so many multiprocessors. False: a kernel behind it is faster there.
    bool run(const emitted::Emulation& code, std::optional<size_t> behind, uint32_t listed_units = 0)
    {
        const auto launch = reinterpret_cast<void (*)(unsigned, unsigned, unsigned, const void*)>(code.find("launch"));
        auto body = [&](const gemm::Launch& l) {
            if (l.image == gemm::Image::Mma) return test::emulate_mma(l.kernel, l.grid[0], l.block, l.shared_bytes, l.numbers);       // copies of operands
            REQUIRE(l.image == (listed_units ? gemm::Image::MmaListed : gemm::Image::Text));
            if (listed_units) return test::emulate_mma_listed(l.kernel, l.grid[0], l.block, l.shared_bytes, l.numbers);
            REQUIRE(l.kernel == 0);
            launch(l.grid[0], l.block, l.shared_bytes, l.numbers);
        };
        for (size_t b = 0; b < memory_.size(); b++)
            if (plan_.buffers[b].place != Place::Arg) std::ranges::fill(memory_[b].bytes, char(0xff));
        gemm::Device device = OLDER;
        if (listed_units) device.units = listed_units;
        const gemm::Finisher& parts_by = listed_units ? gemm::MOST_LISTED_PARTS : finisher_;
        auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
        std::vector<char*> buffers;
        for (emitted::Memory& m : memory_) buffers.push_back(m.data());
        const int64_t nothing = 0;
        const float scalars[2] = {};
        MatmulParts parts = {nullptr, 0};
        const MatmulStep with_parts = {*plan_.steps[0].node, in_, *out_, &*form_, &parts, nullptr, listed_units > 0};
        std::vector<char> there(form_->folds() ? parts_bytes(with_parts, {}, parts_by) : 0, char(0xff)), workspace(matmul_scratch(with_parts, {}, device));
        parts.data = there.data();
        const bool is_run = run_matmul(with_parts, {&nothing, buffers.data(), scalars, nullptr}, 0, device, listed_units ? nullptr : &finisher_, {workspace.data(), workspace.size(), gemm::Launcher(body), basic::Launcher(none), nullptr});
        if (!behind || !is_run) return is_run;
        const int64_t each = (parts.count * form_->behind()->count.constant() * 4 + 255) / 256 * 256;
        std::vector<char*> pointers;
        for (const int32_t b : form_->behind()->buffers) pointers.push_back(b >= 0 ? buffers[size_t(b)] : parts.data + (-1 - b) * each);
        std::vector<char> numbers(behind_.number_bytes);
        fill_numbers(behind_, {&parts.count, 1}, scalars, 1, numbers.data());
        if (form_->folds()) CHECK(parts.count <= most_parts(with_parts, {}, parts_by));
        code.kernel(*behind)(4, 32, 1, pointers.data(), numbers.data());
        return true;
    }
    void check();

  private:
    static const Extents& dims_of(int32_t param) { return PARAMS[size_t(param)].dims; }
    static int64_t product_of(const Extents& dims) { return product(dims).constant(); }
    MatmulStep step() { return {*plan_.steps[0].node, in_, *out_, &*form_}; }
    const emitted::Memory& output(size_t j) const { return memory_[size_t(std::ranges::find_if(plan_.buffers, [&](const Buffer& b) { return b.place == Place::Out && b.index == int32_t(j); }) - plan_.buffers.begin())]; }
    void check_folds(const std::vector<double>& values, int64_t rows, int64_t columns) const;

    const Behind&               case_;
    Plan                        plan_;
    std::vector<emitted::Memory> memory_;
    std::vector<Placed>         in_;
    std::optional<Placed>       out_;
    std::optional<EpilogueForm> form_;
    gemm::Finisher              finisher_ = {};
    KernelSource                behind_;
};

void Product::check_folds(const std::vector<double>& values, int64_t rows, int64_t columns) const
{
    const size_t first = case_.outputs.size() - case_.folds.size();
    int64_t wrong = 0;
    for (size_t f = 0; f < case_.folds.size(); f++) {
        const Fold& fold = case_.folds[f];
        std::vector<double> want(size_t(rows * columns), fold.is_sum ? 0 : -INFINITY);
        const int64_t kept = product_of(plan_.outs[first + f].dims);
        for (int64_t at = 0; at < rows * columns; at++) {
            double& all = want[size_t(kept == 1 ? 0 : case_.over_columns ? at / columns : at % columns)];
            const double x = fold.term(values[size_t(at)]);
            all = fold.is_sum ? all + x : std::max(all, x);
        }
        const double count = double(rows * columns) / double(kept), precise = count * 0x1p-22;
        std::vector<double> squares(size_t(rows * columns));
        for (int64_t at = 0; at < rows * columns && fold.is_variance; at++) {
            const size_t place = size_t(kept == 1 ? 0 : case_.over_columns ? at / columns : at % columns);
            const double off = values[size_t(at)] - want[place] / count;
            squares[place] += off * off / count;
        }
        for (int64_t i = 0; i < kept; i++) {
            const double got = output(first + f).get(i);
            if (fold.is_variance) wrong += !(std::abs(got - squares[size_t(i)]) <= precise * squares[size_t(i)]);
            else wrong += got != want[size_t(i)];
        }
    }
    for (int64_t row = 0; case_.folds.empty() && case_.outputs.size() == 2 && row < rows; row++) {
        const auto begin = values.begin() + row * columns;
        const double most = *std::max_element(begin, begin + columns);
        for (int64_t i = 0; i < columns; i++) wrong += output(1).get(row * columns + i) != most - begin[i];
    }
    CHECK(wrong == 0);
}

void Product::check()
{
    const emitted::Memory &a = memory_[size_t(plan_.steps[0].in[0].buffer)], &b = memory_[size_t(plan_.steps[0].in[1].buffer)];
    const View &from_a = plan_.steps[0].in[0], &from_b = plan_.steps[0].in[1];
    const Extents& dims = plan_.steps[0].out.dims;
    const int64_t  columns = dims.back().constant(), rows = product_of(dims) / columns, depth = from_a.dims.back().constant();
    const int64_t  a_depth = from_a.strides.back().constant(), b_depth = from_b.strides[from_b.strides.size() - 2].constant();
    std::vector<double> values;
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++) {
            int64_t a_at = 0, b_at = column * from_b.strides.back().constant(), c_at = column, rest = row;
            if (form_->has_result()) c_at *= form_->result().access.strides.back().constant();
            for (size_t i = dims.size() - 1; i-- > 0; rest /= dims[i].constant()) {
                const int64_t at = rest % dims[i].constant();
                a_at += at * (from_a.dims[i].is(1) ? 0 : from_a.strides[i].constant());
                if (i + 2 < dims.size()) b_at += at * (from_b.dims[i].is(1) ? 0 : from_b.strides[i].constant());
                if (form_->has_result()) c_at += at * form_->result().access.strides[i].constant();
            }
            double sum = 0;
            for (int64_t k = 0; k < depth; k++) sum += a.get(a_at + k * a_depth) * b.get(b_at + k * b_depth);
            values.push_back(case_.value(sum, row, column));
            if (form_->has_result()) wrong += memory_[size_t(form_->result().buffer)].get(c_at) != values.back();
        }
    CHECK(wrong == 0);
    check_folds(values, rows, columns);
}

}  // namespace

TEST_CASE("epilogues: texts and lists of portable products compute what follows, and with the kernel behind them what is folded")
{
    int listed = 0, folded = 0, small = 0;
    for (const Behind& c : CASES) {
        INFO(std::string(c.outputs.back()));
        Product product(c);
        emitted::Emulation code;
        const std::optional<size_t> behind = product.add_behind(code);
        code.add_code(product.source());
        if (!code.load()) return;
        REQUIRE(product.run(code, behind));
        product.check();
        small += product.is_of_small_tiles();
        for (const uint32_t units : {1, 132}) {
            if (!product.has_list() || !product.run(code, behind, units)) continue;
            listed++, folded += !c.folds.empty();
            product.check();
        }
    }
    CHECK(listed >= 40);
    CHECK(folded >= 24);
    CHECK(small >= 2);
}
