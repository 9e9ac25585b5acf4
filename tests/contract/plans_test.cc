// What a context's and a program's description change about how things are computed, and that nothing else changes.
#include "tests/contract/face.h"

namespace {

Values waves(size_t n, double pace)
{
    Values v(n);
    for (size_t i = 0; i < n; i++) v[i] = float(1.5 + std::sin(pace * double(i)));
    return v;
}
const char* const TEXTS[] = {
    "exp(x) * y + sqrt(x)", "softmax(x * 3, 1)", "sum(x * y, 1) / mean(y)", "x @ permute(y, [1, 0])", "logsumexp(x, 0) - tanh(x)",
    "var(x) + std(y, 0)", "max(x, 1) - argmax(y, 1)", "x + y * x - y / x", "erf(x) * gelu(y)",
};
std::vector<Values> all_of(uint32_t flags)
{
    Face f(flags);
    ng_expr* const x = f.leaf(shape(NG_F32, {40, 33}), waves(1320, 0.37));
    ng_expr* const y = f.leaf(shape(NG_F32, {40, 33}), waves(1320, 0.73));
    std::vector<Values> results;
    for (const char* text : TEXTS) {
        ng_expr* const e = f.text(text, "x,y", {x, y});
        INFO(text);
        f.shape_of(e);
        results.push_back(f.eval(e));
    }
    return results;
}

// A value that costs something, read before a product and after it: kept, it needs memory meanwhile.
Exprs shared(Face& f, int64_t rows)
{
    ng_expr *const x = f.param(0, shape(NG_F32, {rows, 64})), *const w = f.param(1, shape(NG_F32, {64, 64}));
    ng_expr* const a = ng_tag(ng_keep(ng_exp(ng_tanh(x))), "kept");
    return {ng_sub(ng_matmul(ng_add(a, x), w, nullptr), a), ng_sum(a, NG_AXIS_0, 0)};
}

}  // namespace

TEST_CASE("reference: everything unfused and in f64 is close to the usual, exact operations to the bit")
{
    const std::vector<Values> usual = all_of(0), reference = all_of(NG_CTX_REFERENCE);
    for (size_t i = 0; i < usual.size(); i++) {
        INFO(TEXTS[i]);
        CHECK(differs(usual[i], reference[i], 2e-6, 2e-5) == "");
    }
    CHECK(differs(usual[7], reference[7]) == "");
    // Where exp is the C library's, as on the emulated device, it is right to the last bit in f32 as well.
    if (std::string_view(backend()) == "cpu") CHECK(differs(usual[1], reference[1]) != "");
}

TEST_CASE("N10: in reference too each element that put folds in is rounded by itself")
{
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_REFERENCE)}) {
        Face f(flags);
        ng_expr* const x = f.leaf(shape(NG_F16, {1}), {2048});
        ng_expr* const put = ng_put(x, f.leaf(shape(NG_I32, {10}), Values(10, 0)), f.leaf(shape(NG_F16, {10}), Values(10, 1)), 0, NG_FOLD_SUM);
        CHECK(differs(f.eval(put), {2048}) == "");
    }
}

TEST_CASE("reference: each operation is a kernel of its own")
{
    Face usual, reference(NG_CTX_REFERENCE);
    const auto kernels = [](Face& f) {
        ng_expr* const x = f.param(0, shape(NG_F32, {100}));
        return f.info(f.compile({ng_mul(ng_add(ng_exp(x), x), x)})).kernels;
    };
    CHECK(kernels(usual) == 1);
    CHECK(kernels(reference) >= 3);
}

// d by dy of pool_dx: elements of d where x is greatest in a window, and nothing of x itself.
TEST_CASE("D4: the derivative of pool_dx by its cotangent stays what it is, with other operands, as text and in reference")
{
    const ng_shape line = shape(NG_F64, {1, 1, 6}), windows = shape(NG_F64, {1, 1, 3});
    ng_pool_desc d{};
    d.size = sizeof d, d.kind = NG_POOL_MAX, d.window[0] = 2;
    const Values rising = {1, 2, 3, 4, 5, 6}, falling = {6, 5, 4, 3, 2, 1}, weights = {10, 20, 30, 40, 50, 60};
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_REFERENCE)}) {
        CAPTURE(flags);
        Face f(flags);
        ng_expr* const x = f.leaf(line, rising);
        ng_expr* const dy = f.leaf(windows, {0, 0, 0});
        ng_expr* const w = f.leaf(line, weights);
        ng_expr* y = ng_pool_dx(x, dy, &d);
        ng_expr* picked = nullptr;
        REQUIRE(ng_grad(&y, &w, 1, &dy, &picked, 1, &f.error) == NG_OK);
        CHECK(differs(f.eval(picked), {20, 40, 60}) == "");
        ng_expr* const other = f.leaf(line, falling);
        CHECK(differs(f.eval(ng_subst(picked, &x, &other, 1)), {10, 30, 50}) == "");
        char text[200];
        size_t bytes = sizeof text;
        REQUIRE(ng_expr_text(picked, text, &bytes, &f.error) == NG_OK);
        CHECK(differs(f.eval(f.text(text, "t0,t1", {x, w})), {20, 40, 60}) == "");
    }
}

TEST_CASE("D8: with less workspace more is computed again, and the bits are the same")
{
    Face f;
    const int64_t rows = 300;
    ng_prog* const roomy = f.compile(shared(f, rows));
    const uint64_t usual = f.info(roomy).workspace_bytes;
    uint64_t least = usual;
    ng_prog* lean = nullptr;
    for (uint64_t room = usual - 64; room > 64; room -= std::min<uint64_t>(room - 1, 16384)) {
        ng_prog* p = nullptr;
        if (f.try_compile(shared(f, rows), {.workspace_max = room}, &p) != NG_OK) break;
        f.programs.push_back(p);
        CHECK(f.info(p).workspace_bytes <= room);
        least = f.info(p).workspace_bytes, lean = p;
    }
    CHECK(f.error.status == NG_E_DEVMEM);
    REQUIRE(lean);
    CHECK(least < usual);
    ng_tensor* const x = f.tensor(shape(NG_F32, {rows, 64}), waves(size_t(rows) * 64, 0.11));
    ng_tensor* const w = f.tensor(shape(NG_F32, {64, 64}), waves(64 * 64, 0.7));
    std::vector<Values> sums, products;
    for (ng_prog* p : {roomy, lean}) {
        ng_tensor *product = f.make(shape(NG_F32, {rows, 64})), *sum = f.make(shape(NG_F32, {64}));
        REQUIRE(ng_prog_wait(p, UINT64_MAX, &f.error) == NG_OK);         // sums may differ between tiers
        REQUIRE(f.run(p, {.args = {x, w}, .out = {product, sum}}) == NG_OK);
        sums.push_back(f.get(sum)), products.push_back(f.get(product));
    }
    CHECK(differs(sums[0], sums[1]) == "");
    CHECK(differs(products[0], products[1]) == "");
}

TEST_CASE("NG_PROG_TUNE: a product of any length is measured where memory has its operands, and runs where it has not")
{
    constexpr int64_t NO_LIMIT = INT64_MAX;
    Face f;
    const ng_shape w = shape(NG_F16, {-2, 64});
    ng_tensor *const x = f.tensor(shape(NG_F16, {3, 2}), counted(6)), *const ones = f.tensor(shape(NG_F16, {2, 64}), Values(128, 1)), *const y = f.make(shape(NG_F16, {3, 64}));
    Values want;
    for (const double sum : {1, 5, 9}) want.insert(want.end(), 64, sum);
    for (const auto& [rows, depth] : {std::pair{NO_LIMIT, int64_t(1024)}, {NO_LIMIT, NO_LIMIT}, {64, int64_t(1) << 56}, {16, int64_t(1) << 62}, {64, (int64_t(1) << 62) - 1}}) {
        INFO(rows, " x ", depth);
        ng_prog* p = nullptr;
        const ng_status status = f.try_compile({ng_cast(ng_matmul(f.param(0, shape(NG_F16, {-1, -2})), f.param(1, w), nullptr), NG_F16)}, {.length_max = {rows, depth}, .flags = NG_PROG_TUNE}, &p);
        CHECK((status == NG_OK || status == NG_E_DEVMEM || status == NG_E_LIMIT));
        if (status != NG_OK) continue;
        f.programs.push_back(p);
        REQUIRE(ng_prog_wait(p, UINT64_MAX, nullptr) == NG_OK);
        REQUIRE_MESSAGE(f.run(p, {.args = {x, ones}, .out = {y}}) == NG_OK, f.said());
        CHECK(differs(f.get(y), want) == "");
    }
}
