// Defects that random programs met, each by the smallest program that shows it.
#include "tests/contract/face.h"

TEST_CASE("found: an output that is not wanted changes no sum, also where its strides are known when run only")
{
    Face f(0, 1);
    const ng_shape x = shape(NG_U64, {2, -1});
    ng_expr* const p = f.param(0, x);
    ng_prog* const both = f.compile({ng_softmax(p, NG_AXIS_0 | NG_AXIS_1), p}, {.length_max = {2}});
    ng_tensor *const argument = f.tensor(shape(NG_U64, {2, 2}), {10, 2, 6, 5}), *const copy = f.make(shape(NG_U64, {2, 2}));
    ng_tensor *const with = f.make(shape(NG_F64, {2, 2})), *const without = f.make(shape(NG_F64, {2, 2}));
    REQUIRE_MESSAGE(f.run(both, {.args = {argument}, .out = {with, copy}}) == NG_OK, f.said());
    REQUIRE_MESSAGE(f.run(both, {.args = {argument}, .out = {without, nullptr}}) == NG_OK, f.said());
    CHECK(differs(f.get(without), f.get(with)) == "");
}

TEST_CASE("found: a temporary that is longest where the length is least has its room")
{
    Face f(0, 1);
    const int64_t rows = 64, most = 12, least = 6;
    ng_expr* const p = f.param(0, shape(NG_F32, {rows, -1}));
    ng_prog* const sums = f.compile({ng_scan(ng_exp(ng_slice(p, 1, -6, 6, 1)), 1, NG_FOLD_SUM, 0)}, {.length_max = {most}});
    CHECK(f.info(sums).workspace_bytes >= uint64_t(rows * (most - least)) * sizeof(float));
    for (int64_t n = least; n <= most; n++) {
        ng_tensor *const x = f.tensor(shape(NG_F32, {rows, n}), Values(size_t(rows * n), 0)), *const y = f.make(shape(NG_F32, {rows, most - n}));
        REQUIRE_MESSAGE(f.run(sums, {.args = {x}, .out = {y}}) == NG_OK, f.said());
        Values want;
        for (int64_t i = 0; i < rows * (most - n); i++) want.push_back(double(i % (most - n) + 1));
        CHECK(differs(f.get(y), want) == "");
    }
}

TEST_CASE("found: no kernel reads what it stores itself through another arrangement")
{
    Face f(0, 1);
    const int32_t axes[] = {0, 2, 3, 1, -1};
    ng_expr* const x = f.param(0, shape(NG_F32, {1, 2, 2, 1}));
    ng_expr *const y = ng_elu(x), *const turned = ng_permute(y, axes, 5), *const flipped = ng_slice(turned, 3, NG_END, NG_END, -1);
    ng_prog* const p = f.compile({y, turned, flipped});
    ng_tensor* const to = f.make(shape(NG_F32, {1, 2, 1, 2, 1}));
    ng_tensor *const other = f.make(shape(NG_F32, {1, 2, 1, 2, 1})), *const plain = f.make(shape(NG_F32, {1, 2, 2, 1}));
    REQUIRE_MESSAGE(f.run(p, {.args = {f.tensor(shape(NG_F32, {1, 2, 2, 1}), {1, 2, 3, 4})}, .out = {plain, other, to}}) == NG_OK, f.said());
    CHECK(differs(f.get(plain), {1, 2, 3, 4}) == "");
    CHECK(differs(f.get(other), {1, 3, 2, 4}) == "");
    CHECK(differs(f.get(to), {3, 1, 4, 2}) == "");
}

TEST_CASE("found: what reads one element of a product is no part of it")
{
    Face f(0, 1);
    ng_expr *const row = f.leaf(shape(NG_F64, {1, 2}), {1, 2}), *const table = f.leaf(shape(NG_F32, {2, 3}), {1, 2, 3, 4, 5, 6});
    CHECK(differs(f.eval(f.text("reshape(row @ table, [3])[1] + 1", "row,table", {row, table})), {13}) == "");
}

TEST_CASE("found: NG_CTX_REFERENCE computes pools in f64, and leaves infinities that a put only moves")
{
    Face f(NG_CTX_REFERENCE, 1);
    const ng_shape three = shape(NG_F32, {1, 1, 3});
    ng_expr* const x = f.leaf(three, {3, 4, 12});
    CHECK(differs(f.eval(f.text("pool(x, mean, window = 3)", "x", {x})), {19.0 / 3}, 1e-6) == "");
    CHECK(differs(f.eval(f.text("pool(x, l2, window = 3)", "x", {x})), {13}) == "");
    CHECK(differs(f.eval(f.text("pool_dx(x, dy, mean, window = 3)", "x,dy", {x, f.leaf(shape(NG_F32, {1, 1, 1}), {3})})), {1, 1, 1}) == "");
    ng_expr *const narrow = f.leaf(shape(NG_E5M2, {2}), {-INF, 1}), *const at = f.leaf(shape(NG_I32, {1}), {1}), *const y = f.leaf(shape(NG_E5M2, {1}), {INF});
    CHECK(differs(f.eval(ng_put(narrow, at, y, 0, NG_FOLD_MIN)), {-INF, 1}) == "");
}
