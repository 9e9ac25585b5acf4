// Which operands of folds get a step that turns them: across the rows, of their size, with lines that are worth it.
#include "tests/jit/planned.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace ng;

namespace {

Plan planned(const std::vector<Operand>& operands, std::string_view words, int64_t turned_bytes, int32_t lengths = 0) { return ng::planned(operands, words, {}, turned_bytes, lengths); }

// The letters of the steps: t turns something, f is another kernel, c a call.
std::string steps(const Plan& p)
{
    std::string out;
    for (const Step& s : p.steps) out += !s.kernel ? 'c' : s.kernel->values.size() == 1 && s.kernel->stores.size() == 1 ? 't' : 'f';
    return out;
}
std::string steps(const std::vector<Operand>& operands, std::string_view words, int64_t turned_bytes = 1) { return steps(planned(operands, words, turned_bytes)); }

// The strides, ascending, on the axis of so many points, of what the last step reads.
std::vector<int64_t> last_strides(const Plan& p, int64_t extent)
{
    const Kernel& k = *p.steps.back().kernel;
    std::vector<int64_t> out;
    for (const Value& v : k.values)
        for (size_t x = 0; v.kind == ValueKind::Load && x < k.axes.size(); x++)
            if (k.axes[x].extent.is(extent)) out.push_back(k.accesses[size_t(v.access)].strides[x].constant());
    std::ranges::sort(out);
    return out;
}

const std::vector<Operand> OBLONG = {{"a", {128, 100}}, {"b", {100, 128}}};
const char* const SOFTMAX = "softmax(a + permute(b, [1, 0]), 1)";

}  // namespace

TEST_CASE("turning: what lies across the rows of a fold, where it is as large as is asked")
{
    CHECK(steps(OBLONG, SOFTMAX, NEVER_TURNED) == "f");
    CHECK(steps(OBLONG, SOFTMAX, 51200) == "tf");
    CHECK(steps(OBLONG, SOFTMAX, 51201) == "f");
    CHECK(last_strides(planned(OBLONG, SOFTMAX, 1), 100) == std::vector<int64_t>{1, 1});
    CHECK(last_strides(planned(OBLONG, SOFTMAX, NEVER_TURNED), 100) == std::vector<int64_t>{1, 128});
    CHECK(steps(OBLONG, "sum(a * permute(b, [1, 0]), 1) | a + permute(b, [1, 0])") == "tf");
    CHECK(steps({{"a", {64, 80, 100}}, {"b", {100, 80, 64}}}, "sum(a * permute(b, [2, 1, 0]), [1, 2])") == "tf");
}

TEST_CASE("turning: not what all points share, nor short lines, nor where nothing is folded or lies otherwise, nor of unknown lengths")
{
    CHECK(steps(OBLONG, "max(2 * permute(b, [1, 0]), 1)") == "f");
    CHECK(steps(OBLONG, "a + permute(b, [1, 0])") == "f");
    CHECK(steps({{"a", {128, 100}}, {"b", {128, 1}}}, "softmax(a + b, 1)") == "f");
    CHECK(steps({{"a", {128, 40}}, {"b", {40, 128}}}, SOFTMAX) == "f");
    const Extent m = Extent::variable(0), n = Extent::variable(1);
    CHECK(steps(planned({{"a", {m, n}}, {"b", {n, m}}}, SOFTMAX, 1, 2)) == "f");
}

TEST_CASE("turning: the greater part decides which way rows lie, and between a product and what runs with it nothing comes")
{
    const Plan p = planned({{"a", {128, 100}, Dtype::f16}, {"b", {100, 128}}}, "sum(a * permute(b, [1, 0]), 1)", 1);
    REQUIRE(steps(p) == "tf");
    CHECK(p.buffers[size_t(p.steps[0].buffers[1])].dtype == Dtype::f16);
    CHECK(last_strides(p, 128) == std::vector<int64_t>{1, 1});
    const Plan product = planned({{"a", {128, 32}}, {"b", {32, 100}}, {"c", {100, 128}}}, "softmax(a @ b + permute(c, [1, 0]), 1)", 1);
    CHECK(steps(product) == "cf");
    CHECK(product.steps[1].folds);
}
