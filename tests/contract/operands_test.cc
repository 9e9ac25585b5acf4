// The rule of products where an operand is made of codes, small integers or wider floats first: the same numbers, before and after a program is ready.
#include "tests/contract/face.h"

namespace {

constexpr int64_t M = 9, N = 208, K = 528;

// Small and whole, so that sums are exact whatever their order.
double element(size_t of, int64_t at) { return double((at * 7 + at / 11 * 5 + int64_t(of) * 3) % 7) - (of == 2 ? 0 : 3); }

struct Operands : Face {
    ng_shape  shapes[7] = {shape(NG_F16, {M, K}), shape(NG_I8, {K, N}), shape(NG_U8, {N, K}), shape(NG_E4M3, {N, K}), shape(NG_F32, {K, N}), shape(NG_F32, {N}), shape(NG_I8, {K, N})};
    Values    values[7];
    Tensors   args;
    Exprs     params;

    explicit Operands(uint32_t flags = 0) : Face(flags)
    {
        for (uint32_t i = 0; i < 7; i++) {
            for (int64_t at = 0; at < int64_t(count_of(shapes[i])); at++) values[i].push_back(element(i, at));
            params.push_back(param(i, shapes[i]));
            if (i > 0) args.push_back(tensor(shapes[i], values[i]));
            else args.push_back(made(ng_cast(leaf(shape(NG_F32, {M, K}), values[0]), NG_F16)));
        }
    }
    double b(size_t i, int64_t k, int64_t n) const { return values[i][size_t(i == 2 || i == 3 ? n * K + k : k * N + n)]; }
    Values product(const std::function<double(int64_t k, int64_t n)>& operand) const
    {
        Values c;
        for (int64_t m = 0; m < M; m++)
            for (int64_t n = 0; n < N; n++) {
                double sum = 0;
                for (int64_t k = 0; k < K; k++) sum += values[0][size_t(m * K + k)] * operand(k, n);
                c.push_back(sum);
            }
        return c;
    }
    // Before it is ready, and when it is.
    void check(const char* words, const Values& want)
    {
        INFO(words);
        ng_expr* e = text(words, "a,w,u,v,f,row,x", params);
        const ng_shape d = shape_of(e);
        ng_prog*   p = compile({e});
        ng_tensor* out = make(shape(d.dtype, Dims(d.dims, d.dims + d.ndim)));
        for (int turn = 0; turn < 3; turn++) {
            const ng_status status = run(p, {.args = args, .out = {out}});
            CHECK((status == NG_OK || status == NG_SLOW));
            CHECK(differs(get(out), want) == "");
            put(out, Values(count_of(d), -1));
            CHECK(ng_prog_wait(p, UINT64_MAX, nullptr) == NG_OK);
        }
    }
};

}  // namespace

TEST_CASE("N7: operands of products that are cast are what they are elsewhere, of every type")
{
    for (const uint32_t flags : {uint32_t(0), uint32_t(NG_CTX_DETERMINISTIC)}) {
        Operands f(flags);
        f.check("a @ f16(w)", f.product([&](int64_t k, int64_t n) { return f.b(1, k, n); }));
        f.check("a @ permute(f16(u), [1, 0])", f.product([&](int64_t k, int64_t n) { return f.b(2, k, n); }));
        f.check("a @ permute(f16(v), [1, 0])", f.product([&](int64_t k, int64_t n) { return f.b(3, k, n); }));
        f.check("bf16(a) @ bf16(f)", f.product([&](int64_t k, int64_t n) { return f.b(4, k, n); }));
    }
}

// Behind tiles that fold, on GPUs: by parts of a row, of which the last may have no columns, and about a pivot.
TEST_CASE("N7: folds over rows of a product are those of all its columns, however many there are")
{
    Face f;
    constexpr int64_t ROWS = 512, DEPTH = 256;
    const auto low = [](int64_t i) { return double(1 + i % 3); };
    for (const auto& [t, columns] : {std::pair{NG_E4M3, int64_t(1088)}, {NG_I8, int64_t(576)}}) {
        Values a, b;
        for (int64_t i = 0; i < ROWS * DEPTH; i++) a.push_back(low(i / DEPTH));
        for (int64_t i = 0; i < columns * DEPTH; i++) b.push_back(-low(i / DEPTH));
        const ng_shape x = shape(t, {ROWS, DEPTH}), y = shape(t, {columns, DEPTH});
        const Exprs    outs = {f.text("f32(sum(x @ permute(y, [1, 0]), -1))", "x,y", {f.param(0, x), f.param(1, y)}), f.text("f32(max(x @ permute(y, [1, 0]), -1))", "x,y", {f.param(0, x), f.param(1, y)})};
        ng_prog* const p = f.compile(outs);
        REQUIRE(ng_prog_wait(p, UINT64_MAX, nullptr) == NG_OK);
        ng_tensor *const tx = f.tensor(x, a), *const ty = f.tensor(y, b), *const sum = f.make(shape(NG_F32, {ROWS, 1})), *const most = f.make(shape(NG_F32, {ROWS, 1}));
        double all = 0;
        for (int64_t j = 0; j < columns; j++) all -= low(j);
        Values sums, greatest;
        for (int64_t i = 0; i < ROWS; i++) sums.push_back(low(i) * DEPTH * all), greatest.push_back(-low(i) * DEPTH);
        for (int turn = 0; turn < 2; turn++) {
            REQUIRE_MESSAGE(f.run(p, {.args = {tx, ty}, .out = {sum, most}}) == NG_OK, f.said());
            INFO(columns, " columns of ", int(t));
            CHECK(differs(f.get(sum), sums) == "");
            CHECK(differs(f.get(most), greatest) == "");
        }
    }
}

TEST_CASE("N7: folds over rows of a product whose operand lies as a run says")
{
    Face f;
    constexpr int64_t ROWS = 64, DEPTH = 16, COLUMNS = 32;
    ng_shape anyhow = shape(NG_F32, {ROWS, DEPTH});
    anyhow.flags |= NG_ANY;
    Values turned, sums;
    for (int64_t i = 0; i < ROWS * DEPTH; i++) turned.push_back(double(1 + i % ROWS % 3));
    for (int64_t i = 0; i < ROWS; i++) sums.push_back(double((1 + i % 3) * DEPTH * COLUMNS));
    const int32_t turn[2] = {1, 0};
    ng_tensor *const across = f.view(ng_permute(f.leaf(shape(NG_F32, {DEPTH, ROWS}), turned), turn, 2)), *const along = f.made(ng_leaf(f.s, across));
    ng_tensor *const w = f.tensor(shape(NG_F32, {DEPTH, COLUMNS}), Values(size_t(DEPTH * COLUMNS), 1)), *const out = f.make(shape(NG_F32, {ROWS, 1}));
    const auto check = [&](const ng_shape& x, const ng_shape& y, const Plan& plan, const Tensors& operands) {
        ng_prog* const p = f.compile({f.text("sum(relu(x @ w), 1)", "x,w", {f.param(0, x), f.param(1, y)})}, plan);
        REQUIRE(ng_prog_wait(p, UINT64_MAX, nullptr) == NG_OK);
        for (ng_tensor* const operand : operands) {
            REQUIRE_MESSAGE(f.run(p, {.args = {operand, w}, .out = {out}}) == NG_OK, f.said());
            CHECK(differs(f.get(out), sums) == "");
        }
    };
    check(anyhow, shape(NG_F32, {DEPTH, COLUMNS}), {}, {along, across});
    check(shape(NG_F32, {-1, -2}), shape(NG_F32, {-2, COLUMNS}), {.length_max = {100, 50}}, {along});
}

TEST_CASE("N7: a variance behind a product that makes its operand")
{
    Face f;
    constexpr int64_t ROWS = 64, DEPTH = 512, COLUMNS = 1024;
    Values a, b, want;
    for (int64_t i = 0; i < ROWS * DEPTH; i++) a.push_back(1 + double(i / DEPTH % 3));
    for (int64_t i = 0; i < DEPTH * COLUMNS; i++) b.push_back(double(i % COLUMNS % 4));
    for (int64_t i = 0; i < ROWS; i++) want.push_back(1.25 * std::pow((1 + double(i % 3)) * DEPTH, 2));          // of 0, 1, 2 and 3
    const ng_shape x = shape(NG_F16, {ROWS, DEPTH}), w = shape(NG_I8, {DEPTH, COLUMNS});
    ng_prog* const p = f.compile({f.text("f32(var(x @ f16(w), -1))", "x,w", {f.param(0, x), f.param(1, w)})});
    REQUIRE(ng_prog_wait(p, UINT64_MAX, nullptr) == NG_OK);
    ng_tensor *const tx = f.tensor(x, a), *const tw = f.tensor(w, b), *const out = f.make(shape(NG_F32, {ROWS, 1}));
    REQUIRE_MESSAGE(f.run(p, {.args = {tx, tw}, .out = {out}}) == NG_OK, f.said());
    CHECK(differs(f.get(out), want, 0, 1e-5) == "");
}

TEST_CASE("N7: what is made of an operand, and of the product behind it, is as if each were stored")
{
    Operands f;
    const auto scaled = [&](int64_t k, int64_t n) { return (f.b(1, k, n) - 1) * f.values[5][size_t(n)]; };
    Values plain = f.product([&](int64_t k, int64_t n) { return f.b(1, k, n); }), moved = plain, gated = plain, greatest;
    const Values other = f.product([&](int64_t k, int64_t n) { return f.b(6, k, n); });
    for (size_t i = 0; i < plain.size(); i++) moved[i] = std::max(plain[i] + f.values[5][i % size_t(N)], 0.0), gated[i] = std::max(plain[i], 0.0) - other[i];
    for (int64_t m = 0; m < M; m++) greatest.push_back(*std::max_element(plain.begin() + m * N, plain.begin() + (m + 1) * N));
    f.check("a @ f16((f32(w) - 1) * row)", f.product(scaled));
    f.check("relu(a @ f16(w) + row)", moved);
    f.check("relu(a @ f16(w)) - a @ f16(x)", gated);
    f.check("max(a @ f16(w), 1)", greatest);
    // Another product's result, turned and cast: that one's epilogue, and nothing that this one makes.
    const auto turned = [&](int64_t k, int64_t n) {
        double sum = 0;
        for (int64_t r = 0; r < M; r++) sum += f.values[0][size_t(r * K + n)] * f.values[0][size_t(r * K + k)];
        return sum;
    };
    f.check("a @ f16(permute(permute(a[:, :208], [1, 0]) @ a, [1, 0]))", f.product(turned));
    f.check("permute(permute(f16(w), [1, 0]) @ permute(a, [1, 0]), [1, 0])", plain);
}
