// The rules of derivatives: of what by what, where they are zero, ties, what is closed, what is stored, what they cost.
#include "tests/contract/face.h"

#include <pthread.h>

#include <functional>

namespace {

std::string text_of(ng_expr* e)
{
    size_t bytes = 0;
    if (ng_expr_text(e, nullptr, &bytes, nullptr) != NG_OK) return "no text";
    std::string text(bytes + 1, 0);
    return ng_expr_text(e, text.data(), &bytes, nullptr) == NG_OK ? text.c_str() : "no text";
}
ng_expr* total(ng_expr* e) { return ng_sum(e, NG_ALL, 0); }

// A variable of twelve numbers that have no ties, and slopes by differences.
struct Slopes : Face {
    const Values at = {0.31, 1.27, 0.83, 0.55, 1.71, 0.47, 1.03, 0.67, 1.49, 0.93, 0.39, 1.13};
    ng_tensor* tensor12 = tensor(shape(NG_F64, {12}), at);
    ng_expr* x = ng_leaf(s, tensor12);

    // d(sum of y)/dx: off by h^2/6 of the third derivative, and by the rounding of y over h
    Values differences(ng_expr* y)
    {
        constexpr double H = 1e-4;
        ng_expr* sum = total(y);
        Values slopes;
        for (size_t i = 0; i < at.size(); i++) {
            double side[2];
            for (const int k : {0, 1}) {
                Values moved = at;
                moved[i] += k ? H : -H;
                put(tensor12, moved);
                side[k] = eval(sum)[0];
            }
            slopes.push_back((side[1] - side[0]) / (2 * H));
        }
        put(tensor12, at);
        return slopes;
    }
    // The first derivative, and that of a sum of its elements with unlike weights.
    void check(const std::string& name, ng_expr* y)
    {
        CAPTURE(name);
        CHECK(differs(slope(y, x), differences(y), 2e-6, 2e-6) == "");
        ng_expr* first = total(ng_mul(grad({y}, {x})[0], leaf64(counted(12, 0.7, 0.21))));
        Exprs second(1);
        const ng_status got = ng_grad(&first, nullptr, 1, &x, second.data(), 1, &error);
        REQUIRE_MESSAGE((got == NG_OK || got == NG_NO_PATH), said());
        CHECK(differs(eval(second[0]), differences(first), 2e-5, 2e-5) == "");
    }
};

ng_conv_desc conv_of(int32_t pad, int32_t stride)
{
    ng_conv_desc d{};
    d.size = sizeof d, d.flags = 0, d.groups = 1;
    for (int i = 0; i < 2; i++) d.stride[i] = stride, d.pad_lo[i] = d.pad_hi[i] = pad;
    return d;
}
ng_pool_desc pool_of(ng_pool_kind kind, int32_t window, int32_t stride)
{
    ng_pool_desc d{};
    d.size = sizeof d, d.kind = kind;
    for (int i = 0; i < 2; i++) d.window[i] = window, d.stride[i] = stride;
    return d;
}
ng_expr* reshaped(ng_expr* x, const Dims& dims) { return ng_reshape(x, dims.data(), uint32_t(dims.size())); }

// On a stack on which recursion over a long chain would not end well.
void on_small_stack(const std::function<void()>& body)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t(256) << 10);
    pthread_t thread;
    const auto run = [](void* arg) -> void* { return (*static_cast<const std::function<void()>*>(arg))(), nullptr; };
    REQUIRE(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&body)) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

}  // namespace

TEST_CASE("D1: the sum over all outputs of seeds times slopes; a seed that is NULL is ones, one of another shape refused")
{
    Face f;
    ng_expr *x = f.leaf({1, 2, 3}), *square = ng_mul(x, x), *twice = ng_mul(x, ng_const(f.s, 0, 2)), *seed = f.leaf({10, 100, 1000});
    CHECK(f.eval(f.grad({square}, {x})[0]) == Values{2, 4, 6});
    CHECK(f.eval(f.grad({square}, {x}, NG_OK, {seed})[0]) == Values{20, 400, 6000});
    CHECK(f.eval(f.grad({square, twice}, {x})[0]) == Values{4, 6, 8});
    CHECK(f.eval(f.grad({square, twice}, {x}, NG_OK, {seed, nullptr})[0]) == Values{22, 402, 6002});
    CHECK(f.eval(f.grad({square, twice}, {x}, NG_OK, {nullptr, seed})[0]) == Values{22, 204, 2006});
    CHECK(f.eval(f.grad({square, square}, {x})[0]) == Values{4, 8, 12});
    for (ng_expr* wrong : {f.leaf({1}), f.leaf({1, 2}), f.leaf(shape(NG_F32, {1, 3}), {1, 2, 3}), ng_const(f.s, NG_F32, 1)})
        f.grad({square}, {x}, NG_E_SHAPE, {wrong});
    CHECK(f.said() != "");
}

TEST_CASE("D1: a derivative has its variable's shape and dtype; inside, cotangents are f32 and cast once at the end")
{
    Face f;
    ng_expr* half = f.leaf(shape(NG_F16, {2, 1}), {1, 2});
    ng_expr* wide = ng_mul(half, f.leaf(shape(NG_F32, {2, 3}), counted(6)));
    const Exprs dx = f.grad({wide}, {half});
    CHECK(f.dims_of(dx[0]) == Dims{2, 1});
    CHECK(f.type_of(dx[0]) == NG_F16);
    CHECK(f.eval(dx[0]) == Values{3, 12});
    // 1 + 2^-11 is no f16: rounded in between, both small ones would be lost
    ng_expr *a = ng_const(f.s, NG_F32, 0x1p-11), *b = f.leaf(shape(NG_F32, {2, 1}), {0x1p-11, 0x1p-11});
    ng_expr* sum = ng_add(ng_add(ng_cast(half, NG_F32), ng_mul(half, a)), ng_mul(half, b));
    CHECK(f.slope(sum, half) == Values{1 + 0x1p-10, 1 + 0x1p-10});
    // and f64 stays f64 throughout
    ng_expr* d = f.leaf64({1, 3});
    CHECK(f.type_of(f.grad({ng_div(d, ng_const(f.s, 0, 3))}, {d})[0]) == NG_F64);
    CHECK(f.slope(ng_div(d, ng_const(f.s, 0, 3)), d) == Values{1 / 3., 1 / 3.});
}

TEST_CASE("D2: by a leaf, a param, a tag; leaves of one tensor are one variable; paths through other wrt count; twice is allowed")
{
    Face f;
    ng_tensor* t = f.tensor({2, 3});
    ng_scope* other = ng_scope_create(f.c, 0);
    ng_expr *x = ng_leaf(f.s, t), *again = ng_leaf(other, t);
    CHECK(f.eval(f.grad({ng_mul(x, again)}, {x})[0]) == Values{4, 6});
    CHECK(f.eval(f.grad({ng_mul(x, again)}, {again})[0]) == Values{4, 6});
    ng_expr *u = ng_tag(ng_mul(x, x), "square"), *y = ng_mul(u, x);
    const Exprs dx = f.grad({y}, {u, x, x, u});
    CHECK(f.eval(dx[0]) == Values{2, 3});
    CHECK(f.eval(dx[1]) == Values{12, 27});
    CHECK(f.eval(dx[2]) == Values{12, 27});
    CHECK(f.eval(dx[3]) == Values{2, 3});
    const ng_shape two = shape(NG_F32, {2});
    ng_expr *p = f.param(0, two), *q = f.param(1, two), *same = ng_param(other, 0, &two);
    const Exprs dp = f.grad({ng_mul(ng_mul(p, same), q)}, {p, q});
    ng_prog* program = f.compile(dp);
    ng_tensor *by_p = f.make(two), *by_q = f.make(two);
    CHECK(f.run(program, {.args = {t, f.tensor({5, 7})}, .out = {by_p, by_q}}) == NG_OK);
    CHECK(f.get(by_p) == Values{20, 42});
    CHECK(f.get(by_q) == Values{4, 9});
    f.grad({y}, {y}, NG_E_INVALID);
    f.grad({y}, {ng_const(f.s, NG_F32, 1)}, NG_E_INVALID);
    ng_scope_release(other);
}

TEST_CASE("D3: no path gives zeros and NG_NO_PATH; integers are NG_E_DTYPE; on failure dx is untouched")
{
    Face f;
    ng_expr *x = f.leaf({1.5, 2.5}), *z = f.leaf(shape(NG_F16, {3, 1}), {1, 2, 3}), *i = f.leaf(shape(NG_I32, {2}), {1, 2});
    ng_expr* flag = ng_greater(x, ng_const(f.s, 0, 2));
    const Exprs dx = f.grad({ng_mul(x, x)}, {x, z}, NG_NO_PATH);
    CHECK(f.eval(dx[0]) == Values{3, 5});
    CHECK(f.eval(dx[1]) == Values{0, 0, 0});
    CHECK(f.dims_of(dx[1]) == Dims{3, 1});
    CHECK(f.type_of(dx[1]) == NG_F16);
    CHECK(f.eval(f.grad({ng_floor(x)}, {x}, NG_NO_PATH)[0]) == Values{0, 0});
    CHECK(f.eval(f.grad({ng_add(ng_floor(x), x)}, {x}, NG_OK)[0]) == Values{1, 1});
    const auto refused = [&](ng_expr* y, ng_expr* by) {
        ng_expr* kept[] = {z, z};
        ng_expr* wrt[] = {x, by};
        f.error = {};
        const ng_status got = ng_grad(&y, nullptr, 1, wrt, kept, 2, &f.error);
        CHECK((kept[0] == z && kept[1] == z));
        CHECK(f.error.status == got);
        CHECK(f.error.text[0]);
        return got;
    };
    CHECK(refused(i, x) == NG_E_DTYPE);
    CHECK(refused(flag, x) == NG_E_DTYPE);
    CHECK(refused(ng_mul(x, i), i) == NG_E_DTYPE);
    CHECK(refused(ng_cast(x, NG_I64), x) == NG_E_DTYPE);
    CHECK(refused(ng_add(x, f.leaf({1, 2, 3})), x) == NG_E_SHAPE);      // an invalid expression says itself what is wrong
    CHECK(refused(x, ng_neg(x)) == NG_E_INVALID);
}

TEST_CASE("D4: closed: derivatives of element-wise work, reductions and normalisations can be derived again")
{
    Slopes s;
    const char* texts[] = {"x * x * sin(x)", "exp(x) / (1 + x)", "x ** 3.5 + x ** x", "log(x) * sqrt(x)", "atan2(x, 1 + x)", "hypot(x, x * x)", "tanh(x) * sigmoid(x)",
                           "fma(x, x, sin(x))", "lerp(x, x * x, 0.3)", "where(x > 0.7, x * x, sin(x))", "maximum(x * x, 1) + minimum(x, 0.9 * x * x)", "clip(x, 0.5, 1.2) * x",
                           "erf(x) * gelu(x)", "softplus(x) + logaddexp(x, x * x)", "sum(x ** 3) * x", "prod(x)", "max(x) * x + min(x) * x * x", "mean(x) * std(x) * x",
                           "var(x) * norm(x)", "softmax(x) * x", "log_softmax(x) * x", "logsumexp(x * x) * x", "x[::-1] * x * x[2]", "x[1:] * x[:-1] + square(x[1:])"};
    for (const char* text : texts) s.check(text, s.text(text, "x", {s.x}));
}

TEST_CASE("D4: closed: so can those of products, pools, movement and indices")
{
    Slopes f;
    ng_expr *x = f.x, *cube = ng_mul(x, ng_mul(x, x)), *m = reshaped(x, {3, 4}), *image = reshaped(x, {1, 1, 3, 4}), *filter = reshaped(ng_slice(ng_sin(x), 0, 2, 6, 1), {1, 1, 2, 2});
    const int32_t swap[] = {1, 0};
    const ng_conv_desc conv = conv_of(1, 1);
    const ng_shape d = shape(NG_F64, {1, 1, 3, 4}), w = shape(NG_F64, {1, 1, 2, 2}), seen = shape(NG_F64, {4, 3}, {2, 1});
    ng_expr *y = ng_conv(image, filter, &conv), *pieces[] = {x, cube, x};
    f.check("matmul", ng_matmul(ng_matmul(m, ng_permute(m, swap, 2), nullptr), ng_sin(m), nullptr));
    f.check("conv", y);
    f.check("conv_dx", ng_conv_dx(filter, y, &d, &conv));
    f.check("conv_dw", ng_conv_dw(image, y, &w, &conv));
    for (const ng_pool_kind kind : {NG_POOL_MAX, NG_POOL_MEAN, NG_POOL_L2}) {
        const ng_pool_desc pool = pool_of(kind, 2, 1);
        ng_expr* pooled = ng_pool(ng_mul(image, image), &pool);
        f.check("pool", pooled);
        f.check("pool_dx", ng_pool_dx(image, ng_mul(pooled, pooled), &pool));
    }
    ng_expr* at = f.leaf(shape(NG_I64, {2, 3}), {0, 5, 5, 11, 2, 40});
    f.check("take", ng_square(ng_take(cube, at, 0)));
    f.check("put sum", ng_square(ng_put(x, at, reshaped(ng_slice(cube, 0, 0, 6, 1), {2, 3}), 0, NG_FOLD_SUM)));
    f.check("put last", ng_square(ng_put(x, at, reshaped(ng_slice(cube, 0, 0, 6, 1), {2, 3}), 0, NG_FOLD_LAST)));
    f.check("put max", ng_square(ng_put(x, at, reshaped(ng_slice(cube, 0, 0, 6, 1), {2, 3}), 0, NG_FOLD_MAX)));
    f.check("scan", ng_square(ng_scan(cube, 0, NG_FOLD_SUM, NG_REVERSE)));
    f.check("scan max", ng_square(ng_scan(cube, 0, NG_FOLD_MAX, 0)));
    f.check("segment", ng_square(ng_segment(cube, f.leaf(shape(NG_I64, {4}), {0, 3, 3, 12}), NG_FOLD_SUM)));
    for (const ng_fold how : {NG_FOLD_SUM, NG_FOLD_LAST, NG_FOLD_MIN, NG_FOLD_MAX})
        for (const Values& offsets : {Values{-1, 2, 4}, {5, 3, 1}, {2, 100}, {-5, -2}, {20, 30}, {6, 9, 4, 4, 5}, {7, 12, 0, 3}, {0}}) {
            ng_expr* folded = ng_segment(cube, f.leaf(shape(NG_I64, {int64_t(offsets.size())}), offsets), how);
            f.check("segment cut", f.text("where(abs(y) < 1e9, y * y, 0)", "y", {folded}));   // nothing has an infinite extreme
        }
    f.check("concat", ng_square(ng_concat(pieces, 3, 0)));
    f.check("view", ng_mul(ng_view(cube, &seen, 3), reshaped(x, {4, 3})));
    f.check("window", ng_square(ng_window(cube, 0, f.whole(2), 5)));
    f.check("broadcast", ng_mul(reshaped(cube, {12, 1}), reshaped(x, {1, 12})));
}

TEST_CASE("D4: what has no derivative is NG_E_UNSUPPORTED from ng_grad itself, by its tag")
{
    Face f;
    ng_expr* x = f.leaf({1, 2, 3});
    ng_expr* y = ng_tag(ng_scan(x, 0, NG_FOLD_PROD, 0), "growth");
    CHECK(f.eval(y) == Values{1, 2, 6});
    f.grad({y}, {x}, NG_E_UNSUPPORTED);
    CHECK(f.says("growth"));
}

TEST_CASE("D5: zero through comparisons, argmax, rounding, sign and casts to integers; iota and random numbers are no variables")
{
    Face f;
    ng_expr* x = f.leaf({-1.5, 0.5, 2.25});
    for (const char* text : {"floor(x)", "ceil(x)", "rint(x)", "sign(x)", "f32(i32(x))", "f32(x > 0.2)", "f32(argmax(x)) + 0 * floor(x)", "where(x > 0, 1.0, 2.0) + sign(x)"}) {
        CAPTURE(text);
        CHECK(f.eval(f.grad({f.text(text, "x", {x})}, {x}, NG_NO_PATH)[0]) == Values{0, 0, 0});
    }
    const ng_shape three = shape(NG_F32, {3});
    for (const ng_random_kind kind : {NG_UNIFORM, NG_NORMAL}) {
        ng_expr* r = ng_random(f.s, kind, f.whole(9, NG_U64), nullptr, &three);
        CHECK(f.slope(ng_mul(x, r), x) == f.eval(r));
        f.grad({r}, {x}, NG_NO_PATH);
    }
    ng_expr* steps = ng_iota(f.s, &three, 0);
    CHECK(f.slope(ng_mul(x, steps), x) == Values{0, 1, 2});
    CHECK(f.slope(f.text("x * (x > 0) + x * floor(x)", "x", {x}), x) == Values{-2, 1, 3});
}

TEST_CASE("D5: casts between floats are the identity, stochastic ones too")
{
    Face f;
    ng_expr *x = f.leaf({-1.5, 0.3, 2.25}), *three = ng_const(f.s, 0, 3);
    for (const ng_dtype t : {NG_F16, NG_BF16, NG_E4M3, NG_E5M2, NG_F64}) {
        CHECK(f.slope(ng_mul(ng_cast(x, t), three), x) == Values{3, 3, 3});
        if (t != NG_F64) CHECK(f.slope(ng_mul(ng_cast_stochastic(x, t, 0, f.whole(4, NG_U64), nullptr), three), x) == Values{3, 3, 3});
    }
}

TEST_CASE("D6: ties: maximum gives to x where x > y, else to y; the first of the greatest; abs'(0) = 0; clip passes on its bounds")
{
    Face f;
    ng_expr *x = f.leaf({1, 2, 3}), *y = f.leaf({2, 2, 2}), *z = f.leaf({-1, 0, 1});
    const auto both = [&](ng_expr* e) {
        const Exprs dx = f.grad({e}, {x, y});
        Values v = f.eval(dx[0]);
        for (double d : f.eval(dx[1])) v.push_back(d);
        return v;
    };
    CHECK(both(ng_maximum(x, y)) == Values{0, 0, 1, 1, 1, 0});
    CHECK(both(ng_minimum(x, y)) == Values{1, 0, 0, 0, 1, 1});
    CHECK(f.slope(ng_relu(z), z) == Values{0, 0, 1});
    CHECK(f.slope(ng_abs(z), z) == Values{-1, 0, 1});
    CHECK(f.slope(ng_clip(x, ng_const(f.s, 0, 1), ng_const(f.s, 0, 2)), x) == Values{1, 1, 0});
    ng_expr* ties = f.leaf(shape(NG_F32, {2, 3}), {5, 5, 1, 1, 7, 7});
    CHECK(f.slope(ng_max(ties, NG_AXIS_1, 0), ties) == Values{1, 0, 0, 0, 1, 0});
    CHECK(f.slope(ng_max(ties, NG_ALL, 0), ties) == Values{0, 0, 0, 0, 1, 0});
    CHECK(f.slope(ng_min(ties, NG_ALL, 0), ties) == Values{0, 0, 1, 0, 0, 0});
    const ng_pool_desc pool = pool_of(NG_POOL_MAX, 2, 2);
    ng_expr* image = f.leaf(shape(NG_F32, {1, 1, 2, 4}), {3, 3, 1, 2, 3, 3, 2, 2});
    CHECK(f.slope(ng_pool(image, &pool), image) == Values{1, 0, 0, 1, 0, 0, 0, 0});
}

TEST_CASE("D6: where selects the cotangent and never multiplies it by 0")
{
    Face f;
    ng_expr *x = f.leaf({1, 2, 0}), *y = f.leaf({3, 4, 5}), *seed = f.leaf({INF, 7, NOT_A_NUMBER});
    const Exprs dx = f.grad({f.text("where(x > 1.5, x, y)", "x,y", {x, y})}, {x, y}, NG_OK, {seed});
    CHECK(differs(f.eval(dx[0]), {0, 7, 0}) == "");
    CHECK(differs(f.eval(dx[1]), {INF, 0, NOT_A_NUMBER}) == "");
    // the double where: what lies below meets no infinity
    CHECK(f.slope(f.text("where(x > 0, log(where(x > 0, x, 1.0)), 0.0)", "x", {x}), x) == Values{1, 0.5, 0});
}

TEST_CASE("D7: softmax, log_softmax and logsumexp have slopes where exp of the operand would overflow")
{
    Face f;
    ng_expr *x = f.leaf({1000, 999, -1000}), *k = f.leaf({1, 2, 3});
    const double top = 1 / (1 + std::exp(-1)), next = 1 - top, mean = top + 2 * next;
    // slopes come from a logarithm near 1000, which f32 holds to half a unit in its last place
    const double off = 1001 * 0x1p-24;
    CHECK(differs(f.slope(ng_logsumexp(x, NG_ALL, 0), x), {top, next, 0}, off) == "");
    CHECK(differs(f.slope(ng_mul(ng_softmax(x, NG_ALL), k), x), {top * (1 - mean), next * (2 - mean), 0}, 2 * off) == "");
    CHECK(differs(f.slope(ng_mul(ng_log_softmax(x, NG_ALL), k), x), {1 - 6 * top, 2 - 6 * next, 3}, 6 * off) == "");
}

TEST_CASE("D7: products keep their flags when they are derived, and none gets any")
{
    Face f;
    const ng_shape square = shape(NG_F32, {8, 8}), image = shape(NG_F32, {1, 1, 8, 8}), small = shape(NG_F32, {1, 1, 3, 3});
    ng_expr *a = f.param(0, square), *b = f.param(1, square), *x = f.param(2, image), *w = f.param(3, small);
    const auto flagged = [](const std::string& text) {
        size_t n = 0;
        for (size_t at = 0; (at = text.find("tf32", at)) != text.npos; at++) n++;
        return n;
    };
    for (const uint32_t flags : {0u, uint32_t(NG_TF32)}) {
        ng_matmul_desc m{};
        m.size = sizeof m, m.flags = flags;
        ng_conv_desc conv = conv_of(1, 1);
        conv.flags = flags;
        const size_t each = flags ? 1 : 0;
        for (ng_expr* d : f.grad({ng_matmul(a, b, &m)}, {a, b})) CHECK(flagged(text_of(d)) == each);
        for (ng_expr* d : f.grad({ng_conv(x, w, &conv)}, {x, w})) CHECK(flagged(text_of(d)) == each);
    }
}

TEST_CASE("D8: products and ng_keep are stored for the way back, element-wise values are computed again")
{
    Face f;
    constexpr int64_t N = 1 << 18, SIDE = 512;
    const ng_shape line = shape(NG_F32, {N}), square = shape(NG_F32, {SIDE, SIDE});
    ng_expr *x = f.param(0, line), *chain = x, *w = f.param(1, square);
    for (int i = 0; i < 20; i++) chain = ng_sin(ng_add(chain, x));
    const ng_prog_info again = f.info(f.compile(f.grad({chain}, {x})));
    CHECK(again.workspace_bytes < N * 4 / 16);
    CHECK(again.moved_bytes <= 3 * N * 4);
    ng_expr* deep = w;
    for (int i = 0; i < 4; i++) deep = ng_tanh(ng_matmul(deep, w, nullptr));
    const ng_prog_info stored = f.info(f.compile(f.grad({deep}, {w})));
    CHECK(stored.workspace_bytes >= 3 * SIDE * SIDE * 4);
    CHECK(stored.flops < 14ull * 2 * SIDE * SIDE * SIDE);   // 4 products there, 8 back, none twice; the rest is small
}

TEST_CASE("D8: workspace_max is kept or NG_E_DEVMEM, and the bits do not change")
{
    Face f(NG_CTX_DETERMINISTIC);
    const ng_shape d = shape(NG_F32, {96, 96});
    Values numbers(96 * 96);
    for (size_t i = 0; i < numbers.size(); i++) numbers[i] = float(std::sin(0.37 * double(i)) * 0.2);
    ng_expr *w = f.param(0, d), *y = w;
    for (int i = 0; i < 6; i++) y = ng_tag(ng_tanh(ng_keep(ng_matmul(y, w, nullptr))), "layer");
    const Exprs dw = f.grad({y}, {w});
    ng_prog* p = f.compile(dw);
    ng_tensor *x = f.tensor(d, numbers), *out = f.make(d);
    CHECK(f.run(p, {.args = {x}, .out = {out}}) == NG_OK);
    const Values want = f.get(out);
    const uint64_t whole = f.info(p).workspace_bytes;
    int kept = 0;
    for (const uint64_t bound : {2 * whole, whole, whole - whole / 8, whole / 2, whole / 4, uint64_t(1000), uint64_t(1)}) {
        ng_prog* q = nullptr;
        const ng_status got = f.try_compile(dw, {.workspace_max = bound}, &q);
        if (bound >= whole) CHECK(got == NG_OK);
        if (got == NG_OK) {
            kept++;
            f.programs.push_back(q);
            CHECK(f.info(q).workspace_bytes <= bound);
            CHECK(ng_tensor_fill(out, nullptr, -1, &f.error) == NG_OK);
            CHECK(f.run(q, {.args = {x}, .out = {out}}) >= NG_OK);
            CHECK(differs(f.get(out), want) == "");
        } else {
            CHECK(got == NG_E_DEVMEM);
            CHECK(f.says("layer"));
            CHECK(q == nullptr);
        }
    }
    CHECK(kept >= 2);
}

TEST_CASE("D9: the derivative of a chain of 20000 nodes is a few nodes for each, made and run without recursion")
{
    constexpr int N = 20000;
    Face f;
    on_small_stack([&] {
        ng_tensor* t = f.tensor(shape(NG_F64, {2}), {0.3, 1.1});
        for (const size_t room : {size_t(10) * N, size_t(N) * 5 / 2}) {
            ng_scope* s = ng_scope_create(f.c, room);
            ng_expr *x = ng_leaf(s, t), *y = x, *dx = nullptr;
            for (int i = 0; i < N / 2; i++) y = ng_add(ng_sin(y), x);
            const ng_status got = ng_grad(&y, nullptr, 1, &x, &dx, 1, &f.error);
            if (room < 5 * N) {
                CHECK(got == NG_E_LIMIT);               // the room that it has is the room that it takes
                ng_scope_release(s);
                continue;
            }
            CHECK_MESSAGE(got == NG_OK, f.said());
            ng_tensor* out = nullptr;
            CHECK(ng_eval(f.c, nullptr, &dx, &out, 1, &f.error) == NG_OK);
            double have[2] = {};
            CHECK(ng_tensor_get(out, have, sizeof have, &f.error) == NG_OK);
            for (int k = 0; k < 2; k++) {
                const double x0 = k ? 1.1 : 0.3;
                double v = x0, slope = 1;
                for (int i = 0; i < N / 2; i++) slope = std::cos(v) * slope + 1, v = std::sin(v) + x0;
                CHECK(std::abs(have[k] - slope) <= 1e-9 * std::abs(slope));
            }
            ng_tensor_release(out);
            ng_scope_release(s);
        }
    });
}

TEST_CASE("D9: many slices or takes of one x give one buffer with as many small additions")
{
    Face f;
    constexpr int64_t N = 1 << 18;
    const ng_shape d = shape(NG_F32, {N});
    ng_expr* x = f.param(0, d);
    ng_tensor *t = f.tensor(Values(N, 0.5)), *out = f.make(d);
    for (const bool takes : {false, true}) {
        uint64_t moved_by_one = 0;
        for (const int k : {1, 64}) {
            Exprs y;
            Values want(N, 0);
            for (int i = 0; i < k; i++) {
                const int64_t from = i * 3;             // ten elements, of which seven are the next one's too
                ng_expr* ten = takes ? ng_take(x, f.leaf(shape(NG_I64, {10}), counted(10, double(from))), 0) : ng_slice(x, 0, from, from + 10, 1);
                y.push_back(ng_square(ten));
                for (int64_t j = from; j < from + 10; j++) want[size_t(j)] += 1;
            }
            ng_prog* p = f.compile(f.grad(y, {x}));
            const ng_prog_info info = f.info(p);
            if (k == 1) moved_by_one = info.moved_bytes;
            CHECK(info.moved_bytes < moved_by_one + uint64_t(k) * 1000);
            CHECK(info.workspace_bytes < N * 4 / 2);    // the buffer is the output itself
            CHECK(f.run(p, {.args = {t}, .out = {out}}) == NG_OK);
            CHECK(differs(f.get(out), want) == "");
        }
    }
}
