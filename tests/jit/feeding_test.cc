// Which steps a product could do while it loads an operand, what is cut for that, and how long they may still read.
#include "tests/jit/planned.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace ng;

namespace {

// a and x [8, 16], w and v [16, 4] of i8, y [8, 4]; outputs are between bars, alias: the params that they are written in place of.
Plan planned(std::string_view words, const std::vector<int32_t>& alias = {})
{
    static const std::vector<Operand> named = {{"a", {8, 16}, Dtype::f16}, {"x", {8, 16}, Dtype::f32}, {"w", {16, 4}, Dtype::i8}, {"v", {16, 4}, Dtype::i8}, {"y", {8, 4}, Dtype::f32}, {"u", {16, 4}, Dtype::f32}};
    return ng::planned(named, words, alias);
}

// "fused > 2, matmul": the steps, and of each the product whose operand it is.
std::string steps(const Plan& p)
{
    std::string out;
    for (const Step& s : p.steps) out += text(out.empty() ? "" : ", ", s.kernel ? "fused" : s.node ? name_of(s.node->op) : "copy", s.feeds >= 0 ? text(" > ", s.feeds) : "");
    return out;
}
std::string steps(std::string_view words, const std::vector<int32_t>& alias = {}) { return steps(planned(words, alias)); }

int32_t argument(const Plan& p, int32_t index)
{
    return int32_t(std::ranges::find_if(p.buffers, [&](const Buffer& b) { return b.place == Place::Arg && b.index == index; }) - p.buffers.begin());
}

}  // namespace

TEST_CASE("operands: what one product alone reads, and point by point makes of other things, is the product's to do")
{
    CHECK(steps("a @ f16(w)") == "fused > 1, matmul");
    CHECK(steps("f16(x) @ f16(w)") == "fused > 2, fused > 2, matmul");
    CHECK(steps("f16(relu(a @ f16(w)))") == "fused > 1, matmul, fused");
    CHECK(steps("permute(a @ f16(f32(w) * 0.5), [1, 0])") == "fused > 1, matmul");
    CHECK(steps("a @ f16(w) | f16(w)") == "fused, matmul");                      // it is wanted elsewhere
    CHECK(steps("a @ f16(w) | f16(x) @ f16(w)") == "fused, matmul, fused > 3, matmul");
    CHECK(steps("permute(f16(w), [1, 0]) @ f16(w)") == "fused, matmul");         // by both sides
    CHECK(steps("f16(softmax(x, 1)) @ f16(w)") == "fused, fused > 2, matmul");   // it folds
    CHECK(steps("f16(relu(x @ u)) @ a[0:4]") == "matmul, fused, matmul");          // a product's own kernel may compute it
    CHECK(steps("f16(permute(x @ u, [1, 0])) @ a") == "matmul, fused, matmul");  // and so of one whose axes are turned
    CHECK(steps("x @ u") == "matmul");
}

TEST_CASE("operands: two of one size, which would share a kernel, have one each; what reads the same stays together")
{
    CHECK(steps("a @ f16(w) | a @ f16(v)") == "fused > 2, fused > 3, matmul, matmul");
    CHECK(steps("a @ f16(w) + a @ f16(v)") == "fused > 2, fused > 3, matmul, matmul, fused");
    CHECK(steps("a @ f16(w) | f32(v) * 2") == "fused > 2, fused, matmul");
    CHECK(steps("a @ f16(w) | f32(w) * 2") == "fused, matmul");
    CHECK(steps("a @ f16(w) | a @ bf16(w)") == "fused, matmul, matmul");
}

TEST_CASE("operands: what is read for one is there, and as it was, until the product is done")
{
    for (const char* words : {"f16(relu(a @ f16(f32(w) * sum(y, 0)) + y))", "permute(f16(relu(a @ f16(f32(w) * sum(y, 0)) + y)), [1, 0])"}) {
        INFO(words);
        const Plan p = planned(words);
        REQUIRE(steps(p) == "fused, fused > 2, matmul, fused");
        const int32_t sums = p.steps[0].buffers[size_t(p.steps[0].kernel->stores[0].buffer)];
        CHECK(p.buffers[size_t(sums)].last == 3);                                // its epilogue runs with it
        CHECK(p.buffers[size_t(argument(p, 2))].last == 3);
    }
    CHECK(steps("u * 0.5 | a @ f16(u)", {5}) == "fused, matmul");                // one pass over what is written in place
    CHECK(steps("a @ f16(u * sum(y, 0)) | u * 0.5", {-1, 5}) == "fused, fused, matmul");
    for (const char* words : {"f32(u) * 0.5 | a @ f16(u)", "f32(u) * 0.5 | a @ f16(u) | f32(u) + 1"}) {
        const Plan q = planned(words, {5});
        INFO(words);
        CHECK(q.direct[0]);
        const int32_t out = int32_t(std::ranges::find_if(q.buffers, [](const Buffer& b) { return b.place == Place::Out && b.index == 0; }) - q.buffers.begin());
        for (size_t i = 0; i < q.steps.size(); i++)
            for (int32_t at = int32_t(i) + 1; at <= q.steps[i].feeds; at++)
                for (const StoreTo& t : q.steps[size_t(at)].kernel ? q.steps[size_t(at)].kernel->stores : std::vector<StoreTo>()) CHECK(q.steps[size_t(at)].buffers[size_t(t.buffer)] != out);
    }
}
