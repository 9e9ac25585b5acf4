// Which problems a product's step becomes: batches that are rows or columns, neighbours that merge, what is left to a loop.
#include "lib/backend/cuda/gemm_tuned.h"
#include "lib/backend/cuda/matmul.h"
#include "tests/backend/plan_of_text.h"

#include <bit>
#include <doctest/doctest.h>

using namespace ng;
using namespace ng::cuda;

namespace {

struct Seen {
    std::vector<gemm::Problem> problems;
    int  listed = 0;
    bool may_run = true, wants_units = false;    // wants_units: operands at multiples of 16 bytes
} seen;

}  // namespace

// The kernels are not what is tested here: they only say what they were asked.
namespace ng::cuda::gemm {

uint64_t workspace(const Problem& p, const Device&, bool) { return uint64_t(p.m + p.n + p.k + p.batches); }
bool     can_run(const Problem& p, const Device&, uint64_t)
{
    const auto lies = [](const void* data) { return !seen.wants_units || reinterpret_cast<uintptr_t>(data) % 16 == 0; };
    return seen.may_run && lies(p.a) && lies(p.b);
}
void     run(const Problem& p, const Device&, const Place&) { seen.problems.push_back(p); }
std::optional<Finisher> finisher_for(const Problem&, const Device&, const Way*) { return Finisher{}; }
Shape    shape_of(const Problem&) { return {}; }
std::optional<Measured> Tuned::find(const Shape&) const { return std::nullopt; }
bool     run_finished(const Problem& p, const Device&, const Finisher&, const Place&) { return seen.problems.push_back(p), seen.may_run; }
bool     run_listed(const Problem& p, const Device&, const Place&) { return seen.problems.push_back(p), seen.listed++, seen.may_run; }
Finisher listed_parts(const Problem&, const Device&, uint64_t) { return {false, 0, 0, 0, {}, 48, 1}; }

}  // namespace ng::cuda::gemm

namespace {

// Runs the text's product, and what follows it, with buffer i at address (i + 1) << 20.
struct Product {
    Plan                        plan;
    std::vector<Placed>         in;
    std::optional<Placed>       out;
    std::optional<EpilogueForm> epilogue;
    bool                        is_listed = false;       // else as if its text were compiled

    Product(std::string_view words, const std::vector<tests::NamedParam>& params) : plan(tests::plan_of_text(words, params))
    {
        const Step& product = plan.steps.at(0);
        for (const View& v : product.in) in.emplace_back(v);
        out.emplace(product.out);
        if (plan.steps.size() > 1) {
            REQUIRE(plan.steps[1].runs_with_product());
            epilogue = EpilogueForm::of(product, plan.steps[1]);
            REQUIRE(epilogue);
        }
    }
    MatmulParts                 parts = {address(100), 0};
    MatmulStep step() { return {*plan.steps[0].node, in, *out, epilogue ? &*epilogue : nullptr, &parts, nullptr, is_listed}; }
    static char* address(size_t buffer) { return reinterpret_cast<char*>((buffer + 1) << 20); }
    bool run(std::vector<char*> buffers = {})
    {
        for (size_t i = buffers.size(); i < plan.buffers.size(); i++) buffers.push_back(address(i));
        const int64_t none = 0;
        const float scalars[] = {0, 2.5f};
        auto launch = [](const gemm::Launch&) {};
        auto launch_basic = [](const basic::Launch&) {};
        const gemm::Launcher launcher(launch);
        const basic::Launcher basic_launcher(launch_basic);
        const gemm::Finisher finisher = {};
        seen.problems.clear(), seen.listed = 0;
        return run_matmul(step(), {&none, buffers.data(), scalars, nullptr}, 0, gemm::Device{}, epilogue && !epilogue->is_cast() && !is_listed ? &finisher : nullptr, {nullptr, 0, launcher, basic_launcher, nullptr});
    }
};

std::string sizes(const gemm::Problem& p) { return text(p.m, " x ", p.n, " x ", p.k, " of ", p.batches); }
std::string sizes_of(std::string_view words, const std::vector<tests::NamedParam>& params)
{
    Product step(words, params);
    CHECK(step.run());
    REQUIRE(seen.problems.size() >= 1);
    return sizes(seen.problems[0]) + (seen.problems.size() > 1 ? text(", ", seen.problems.size(), " times") : "");
}

}  // namespace

TEST_CASE("matmul: strides of rows, columns and depth are the tensors'")
{
    Product step("a @ permute(b, [1, 0])", {{"a", {64, 32}}, {"b", {48, 32}}});
    REQUIRE(step.run());
    const gemm::Problem& p = seen.problems.at(0);
    CHECK(sizes(p) == "64 x 48 x 32 of 1");
    CHECK(std::vector{p.a_row, p.a_depth, p.b_depth, p.b_column, p.c_row, p.c_column} == std::vector<int64_t>{32, 1, 1, 32, 48, 1});
    CHECK(p.c_type == Dtype::f32);
    CHECK(p.epilogue.count == 0);
}

TEST_CASE("matmul: batches along which the right operand stays are rows")
{
    CHECK(sizes_of("x @ w", {{"x", {5, 64, 32}}, {"w", {32, 48}}}) == "320 x 48 x 32 of 1");
    CHECK(sizes_of("x @ w", {{"x", {7, 5, 64, 32}}, {"w", {32, 48}}}) == "2240 x 48 x 32 of 1");
    // A bias of columns is the same for all of them, a residual goes on as the rows do.
    CHECK(sizes_of("f16(x @ w + v)", {{"x", {5, 64, 32}}, {"w", {32, 48}}, {"v", {48}}}) == "320 x 48 x 32 of 1");
    CHECK(sizes_of("f16(x @ w + r)", {{"x", {5, 64, 32}}, {"w", {32, 48}}, {"r", {5, 64, 48}}}) == "320 x 48 x 32 of 1");
    // Scales of rows begin again with each batch.
    CHECK(sizes_of("f16((x @ w) * u)", {{"x", {5, 64, 32}}, {"w", {32, 48}}, {"u", {64, 1}}}) == "64 x 48 x 32 of 5");
}

TEST_CASE("matmul: batches of both merge, where the left operand stays they are batches with a stride of 0")
{
    CHECK(sizes_of("x @ y", {{"x", {3, 4, 64, 32}}, {"y", {3, 4, 32, 48}}}) == "64 x 48 x 32 of 12");
    CHECK(sizes_of("x @ y", {{"x", {64, 32}}, {"y", {4, 32, 48}}}) == "64 x 48 x 32 of 4");
    CHECK(seen.problems[0].a_batch == 0);
    CHECK(seen.problems[0].b_batch == 32 * 48);
    CHECK(sizes_of("x @ y", {{"x", {1, 32}}, {"y", {4, 32, 48}}}) == "1 x 48 x 32 of 4");
}

TEST_CASE("matmul: batches that do not merge are a loop, with all tensors moved on")
{
    Product step("f16(x @ y)", {{"x", {3, 1, 64, 32}}, {"y", {1, 4, 32, 48}}});
    REQUIRE(step.run());
    REQUIRE(seen.problems.size() == 3);
    for (int64_t i = 0; i < 3; i++) {
        const gemm::Problem &p = seen.problems[size_t(i)], &first = seen.problems[0];
        CHECK(sizes(p) == "64 x 48 x 32 of 4");
        CHECK(static_cast<const char*>(p.a) - static_cast<const char*>(first.a) == i * 64 * 32 * 2);
        CHECK(p.b == first.b);
        CHECK(static_cast<const char*>(p.c) - static_cast<const char*>(first.c) == i * 4 * 64 * 48 * 2);
        CHECK(p.a_batch == 0);
    }
    Product with_epilogue("f16(x @ y + r)", {{"x", {3, 1, 64, 32}}, {"y", {1, 4, 32, 48}}, {"r", {3, 4, 64, 48}, Dtype::f32}});
    REQUIRE(with_epilogue.run());
    REQUIRE(seen.problems.size() == 3);
    const auto tensor = [](const gemm::Problem& p) { return static_cast<const char*>(p.epilogue.tensor[0].data); };
    for (int64_t i = 0; i < 3; i++) CHECK(tensor(seen.problems[size_t(i)]) - tensor(seen.problems[0]) == i * 4 * 64 * 48 * 4);
    CHECK(seen.listed == 0);
    with_epilogue.is_listed = true;
    REQUIRE(with_epilogue.run());
    REQUIRE(seen.listed == 3);
    for (int64_t i = 0; i < 3; i++) CHECK(tensor(seen.problems[size_t(i)]) - tensor(seen.problems[0]) == i * 4 * 64 * 48 * 4);
    CHECK(kernels::list_length(seen.problems[0].epilogue.numbers[0]) == 1);
    seen.may_run = false;
    CHECK_FALSE(with_epilogue.run());                    // another way has to be found
    CHECK(seen.listed == 1);
    seen.may_run = true;
}

TEST_CASE("matmul: a list's folds are cut as its kernels say, and where nothing else is wanted no c is moved on")
{
    Product p("sum(permute(a, [0, 2, 1, 3]) @ b, 3)", {{"a", {2, 20, 3, 40}}, {"b", {2, 3, 40, 90}}});
    p.is_listed = true;
    REQUIRE(p.epilogue->folds());
    REQUIRE(p.run());
    CHECK(p.parts.count == 2);                               // 90 columns
    REQUIRE(seen.listed > 0);
    for (const gemm::Problem& problem : seen.problems) {
        CHECK(problem.is_unstored);
        CHECK(problem.c == nullptr);
        REQUIRE(problem.epilogue.count == 1);
        CHECK(problem.epilogue.tensor[0].kind == kernels::OVER_COLUMNS);
        CHECK(problem.epilogue.tensor[0].column == 2 * 3 * 20);
        CHECK(problem.epilogue.tensor[0].row == 1);
    }
    CHECK(seen.problems[0].epilogue.tensor[0].data == Product::address(100));
}

TEST_CASE("matmul: what an epilogue reads has the product's rows, columns and batches")
{
    Product step("f16((x @ y + r) * v)", {{"x", {4, 64, 32}}, {"y", {4, 32, 48}}, {"r", {4, 64, 48}, Dtype::f32}, {"v", {48}}});
    REQUIRE(step.run());
    const gemm::Problem& p = seen.problems.at(0);
    REQUIRE(p.epilogue.count == 2);
    CHECK(p.epilogue_weight > 0);
    const kernels::EpilogueTensor &v = p.epilogue.tensor[0], &r = p.epilogue.tensor[1];
    CHECK(std::vector{r.batch, r.row, r.column, (long long)r.bytes} == std::vector<long long>{64 * 48, 48, 1, 4});
    CHECK(std::vector{v.batch, v.row, v.column, (long long)v.bytes} == std::vector<long long>{0, 0, 1, 2});
    CHECK(r.data == Product::address(size_t(step.epilogue->tensors()[1].buffer)));
}

TEST_CASE("matmul: scalars are read when run, results that nobody wants and empty ones launch nothing")
{
    Product scaled("f16((a @ b) * s)", {{"a", {64, 32}}, {"b", {32, 48}}});
    REQUIRE(scaled.run());
    CHECK(std::bit_cast<float>(uint32_t(seen.problems.at(0).epilogue.numbers[0] >> 32)) + std::bit_cast<float>(uint32_t(seen.problems.at(0).epilogue.numbers[0])) == 2.5f);
    CHECK(seen.problems[0].c_type == Dtype::f16);
    std::vector<char*> buffers;
    for (size_t i = 0; i < scaled.plan.buffers.size(); i++) buffers.push_back(scaled.plan.buffers[i].place == ng::Place::Out ? nullptr : Product::address(i));
    CHECK(scaled.run(buffers));
    CHECK(seen.problems.empty());
    Product empty("a @ b", {{"a", {0, 32}}, {"b", {32, 48}}});
    CHECK(empty.run());
    CHECK(seen.problems.empty());
    Product deep("a @ b", {{"a", {64, 0}}, {"b", {0, 48}}});
    CHECK(deep.run());
    CHECK(seen.problems.size() == 1);                                // zeros are written
}

TEST_CASE("matmul: what no kernel is made for is left to others")
{
    Product step("a @ b", {{"a", {64, 32}}, {"b", {32, 48}}});
    CHECK(is_matmul_certain(step.step(), gemm::Device{}));
    seen.may_run = false;
    CHECK_FALSE(step.run());
    CHECK_FALSE(is_matmul_certain(step.step(), gemm::Device{}));
    seen.may_run = true;
}

TEST_CASE("matmul: what kernels take at some addresses alone is not certain before they are known")
{
    Product step("f16(a @ b)", {{"a", {64, 32}}, {"b", {32, 48}}});
    REQUIRE(step.epilogue->is_cast());
    CHECK(is_matmul_certain(step.step(), gemm::Device{}));
    seen.wants_units = true;
    CHECK(step.run());
    CHECK_FALSE(is_matmul_certain(step.step(), gemm::Device{}));
    seen.wants_units = false;
}
