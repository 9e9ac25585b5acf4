// Texts of common programs: whatever their lengths, types and constants, the build's table has what a run would choose.
#include "jit/opened.h"
#include "lib/backend/cuda/stock_key.h"
#include "tests/jit/planned.h"

#include "jit/dialect.h"
#include "jit/emit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>

using namespace ng;
using namespace ng::cuda;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

bool has(const std::string& text)
{
    const std::span entries(STOCK_ENTRIES, STOCK_COUNT);
    return std::ranges::binary_search(entries, stock_key(text), {}, &StockEntry::key);
}

// The text that a launch over memory of such alignment takes; empty: nothing is launched.
std::string text_of(const std::string& words, Dtype type, int64_t rows, int64_t columns, uint64_t address)
{
    const Extents whole = {Extent(rows), Extent(columns)}, row = {Extent(columns)};
    const Plan plan = planned({{"x", whole, type}, {"y", whole, type}, {"v", row, type}, {"w", row, type}}, words);
    REQUIRE(plan.steps.size() == 1);
    const std::optional<Opened> opened = open(*plan.steps[0].kernel);
    REQUIRE(opened);
    const KernelFamily family(opened->kernel, cuda_dialect(), {90, 132, 227 << 10});
    std::vector<int64_t> values;
    for (const Extent& e : opened->variables) values.push_back(e.constant());
    const std::vector<uint64_t> addresses(8, address);
    const Geometry g = family.choose(values, addresses);
    return g.which < 0 ? "" : family.source(size_t(g.which)).text;
}

}  // namespace

TEST_CASE("the library's own texts: keys rise, so that they are found")
{
    const std::span entries(STOCK_ENTRIES, STOCK_COUNT);
    CHECK(STOCK_COUNT > 100);
    CHECK(std::ranges::is_sorted(entries, {}, &StockEntry::key));
    CHECK(std::ranges::adjacent_find(entries, {}, &StockEntry::key) == entries.end());
}

TEST_CASE("the library's own texts: common programs have them at all lengths, at addresses of vectors and at others")
{
    const std::pair<int64_t, int64_t> shapes[] = {{5, 7}, {64, 64}, {257, 129}, {65536, 1024}};
    for (const char* words : {"x + y", "x * 7 + 2", "x * v + w", "gelu(x + v)", "sum(x, 1)", "mean(x, 0)", "max(x, 1)", "var(x, 1)", "sum(x)", "softmax(x, 1)", "softmax(x, 0)", "log_softmax(x, 1)",
                              "(x - mean(x, 1)) * rsqrt(var(x, 1) + 0.01)", "rsqrt(var(x, 0) + 0.01) * (x - mean(x, 0))", "x * rsqrt(mean(x * x, 1) + 0.01) * v"})
        for (const auto& [type, name] : {std::pair{Dtype::f32, "f32("}, std::pair{Dtype::f16, "f16("}, std::pair{Dtype::bf16, "bf16("}})
            for (const auto& [rows, columns] : shapes)
                for (const uint64_t address : {0, 4}) {
                    const std::string taken = text_of(name + std::string(words) + ")", type, rows, columns, address);
                    INFO(std::string(words), ", ", std::string(name), " ", rows, " x ", columns, " at ", address, ": ", taken.substr(0, taken.find('\n')));
                    CHECK(has(taken));
                }
}

TEST_CASE("the library's own texts: a program that is nobody's has none")
{
    CHECK(!has(text_of("sin(x) * cos(x) + tanh(x) / 3", Dtype::f32, 64, 64, 0)));
    CHECK(!has(""));
}
