// What errors say: the operation, the shapes, the tags and the place. What texts say, and what a program's ports are called, of however many.
#include "tests/contract/face.h"

#include <chrono>

namespace {

// A program of two arguments with a hole before them, one tagged, of a length of 10 at most.
struct Ported : Face {
    ng_shape   rows = shape(NG_F32, {-1, 3});
    ng_expr*   x = ng_tag(param(1, rows), "xx");
    ng_expr*   y = param(3, shape(NG_F32, {3}));
    ng_prog*   p = compile({ng_add(x, y)}, {.length_max = {10}});
    ng_tensor* row = make(shape(NG_F32, {3}));

    ng_tensor* of(const Dims& dims) { return make(shape(NG_F32, dims)); }
    // What a run says of this argument 1.
    std::string refusal(ng_tensor* t, ng_status want, const Dims& lengths = {})
    {
        CHECK(run(p, {.args = {nullptr, t, nullptr, row}, .out = {of({4, 3})}, .lengths = lengths}) == want);
        CHECK(error.at == 1);
        return said();
    }
};

}  // namespace

TEST_CASE("sentences: ng_eval names the output whose shape is another, with the expression's tag")
{
    Face f;
    ng_expr *x = f.leaf(shape(NG_F32, {2, 3}), counted(6)), *named = ng_tag(ng_neg(x), "turned");
    CHECK(f.eval_into({x, named}, {nullptr, f.make(shape(NG_F32, {3, 2}))}) == NG_E_SHAPE);
    CHECK(f.said() == "ng_eval: output 1 is f32 [3, 2], the expression \"turned\" f32 [2, 3], which does not broadcast to it");
    CHECK(f.error.at == 1);
    CHECK(f.eval_into({x}, {f.make(shape(NG_F32, {3}))}) == NG_E_SHAPE);
    CHECK(f.said() == "ng_eval: output 0 is f32 [3], the expression f32 [2, 3], which does not broadcast to it");
    CHECK(f.eval_into({x}, {f.make(shape(NG_F32, {4, 2, 3}))}) == NG_OK);
}

TEST_CASE("sentences: ng_compile names the output whose layout has another shape")
{
    Face f;
    const ng_shape   turned = shape(NG_F32, {3, 2}), more = shape(NG_F32, {4, 2, 3});
    const ng_shape*  layouts[2] = {nullptr, &turned};
    ng_expr*         x[2] = {f.param(0, shape(NG_F32, {2, 3})), ng_tag(ng_neg(f.param(0, shape(NG_F32, {2, 3}))), "turned")};
    ng_compile_desc  d{};
    ng_prog*         p = nullptr;
    d.size = sizeof d, d.out = layouts;
    CHECK(ng_compile(f.c, &d, x, 2, &p, &f.error) == NG_E_SHAPE);
    CHECK(f.said() == "ng_compile: output 1 is \"turned\" f32 [2, 3], which does not broadcast to its layout's [3, 2]");
    CHECK(f.error.at == 1);
    layouts[1] = &more;
    CHECK(ng_compile(f.c, &d, x, 2, &p, &f.error) == NG_OK);
    ng_prog_release(p);
}

TEST_CASE("sentences: ng_eval names by its tag what only a program has")
{
    Face other, f;
    const auto says = [&](ng_expr* e) {
        CHECK(f.fault(e) == NG_E_INVALID);
        return f.said();
    };
    CHECK(says(ng_neg(ng_tag(f.param(2, shape(NG_F32, {3})), "weights"))) == "ng_eval: \"weights\" f32 [3] is ng_param 2; only a program has arguments");
    CHECK(says(f.param(2, shape(NG_F32, {3}))) == "ng_eval: f32 [3] is ng_param 2; only a program has arguments");
    CHECK(says(ng_neg(ng_tag(ng_scalar(f.s, NG_F32, 0), "rate"))) == "ng_eval: \"rate\" f32 [] is an ng_scalar, which has no value outside a program's run");
    CHECK(says(ng_tag(ng_leaf(f.s, other.tensor({1, 2})), "theirs")) == "ng_eval: \"theirs\" f32 [2] is a leaf of another context");
}

TEST_CASE("sentences: ng_expr_bind shows the strides that are others")
{
    Face f;
    ng_expr* x = f.leaf(shape(NG_F32, {2, 3}), counted(6));
    CHECK(ng_expr_bind(x, f.make(shape(NG_F32, {2, 3}, {1, 2})), &f.error) == NG_E_SHAPE);
    CHECK(f.said() == "ng_expr_bind: e is f32 [2, 3] of strides [3, 1], t of strides [1, 2]: they should be equal");
    CHECK(ng_expr_bind(x, f.make(shape(NG_F32, {3, 2})), &f.error) == NG_E_SHAPE);
    CHECK(f.said() == "ng_expr_bind: e is f32 [2, 3], t f32 [3, 2]: their shapes should be equal");
}

TEST_CASE("sentences: ng_prog_run names the argument, its tag, and what it is in this run")
{
    Ported f;
    CHECK(f.refusal(f.of({12}), NG_E_SHAPE) == "ng_prog_run: argument 1 \"xx\" is f32 [-1, 3], and was given f32 [12]");
    CHECK(f.refusal(f.of({4, 2}), NG_E_SHAPE) == "ng_prog_run: argument 1 \"xx\" is f32 [-1, 3], [4, 3] in this run, and was given f32 [4, 2]");
    CHECK(f.refusal(f.of({4, 3}), NG_E_SHAPE, {5}) == "ng_prog_run: argument 1 \"xx\" is f32 [-1, 3], [5, 3] in this run, and was given f32 [4, 3]");
    CHECK(f.refusal(nullptr, NG_E_INVALID) == "ng_prog_run: args[1] is NULL; the program's argument 1 \"xx\" is f32 [-1, 3]");
    CHECK(f.refusal(reinterpret_cast<ng_tensor*>(0x3039), NG_E_INVALID) == "ng_prog_run: args[1] = 0x3039 is no tensor that lives; the program's argument 1 \"xx\" is f32 [-1, 3]");
    Face other;
    CHECK(f.refusal(other.make(shape(NG_F32, {4, 3})), NG_E_INVALID) == "ng_prog_run: args[1] is of another context; the program's argument 1 \"xx\" is f32 [-1, 3]");
    CHECK(f.run(f.p, {.args = {nullptr, f.of({4, 3}), nullptr, f.row}, .out = {reinterpret_cast<ng_tensor*>(0x3039)}}) == NG_E_INVALID);
    CHECK(f.said() == "ng_prog_run: out[0] = 0x3039 is no tensor that lives; the program's output 0 is f32 [-1, 3]");
}

TEST_CASE("sentences: an operation shows operands as they were given, not as it computes with them")
{
    Face f;
    ng_expr *a = ng_tag(f.param(0, shape(NG_F32, {2, 3})), "alpha"), *b = ng_tag(f.param(1, shape(NG_I8, {4})), "beta");
    const auto says = [&](ng_expr* e) {
        CHECK(f.fault(e) < 0);
        return f.said();
    };
    CHECK(says(ng_where(a, b, a)) == "ng_where: \"alpha\" f32 [2, 3] and \"beta\" i8 [4] do not broadcast: axis 1 is 3 and 4");
    CHECK(says(ng_clip(f.param(2, shape(NG_F16, {})), a, b)) == "ng_clip: \"alpha\" f32 [2, 3] and \"beta\" i8 [4] do not broadcast: axis 1 is 3 and 4");
    CHECK(says(ng_matmul(a, b, nullptr)) == "ng_matmul: \"alpha\" f32 [2, 3] @ \"beta\" i8 [4]: the inner extents are 3 and 4");
}

TEST_CASE("sentences: an axis that is not there is told with the shape and the tag that it is not in")
{
    Face f;
    ng_expr *x = ng_tag(f.param(0, shape(NG_F32, {2, 3})), "alpha"), *i = f.param(1, shape(NG_I32, {2}));
    const ng_shape two = shape(NG_I32, {2});
    const Exprs parts = {x, x};
    const std::vector<std::pair<const char*, ng_expr*>> calls = {
        {"ng_slice", ng_slice(x, 2, 0, 1, 1)}, {"ng_concat", ng_concat(parts.data(), 2, 2)}, {"ng_take", ng_take(x, i, 2)}, {"ng_put", ng_put(x, i, x, 2, NG_FOLD_SUM)},
        {"ng_scan", ng_scan(x, 2, NG_FOLD_SUM, 0)}, {"ng_argsort", ng_argsort(x, 2, 0)}, {"ng_window", ng_window(x, 2, f.whole(0), 1)},
    };
    for (const auto& [name, e] : calls) {
        CHECK(f.fault(e) == NG_E_INVALID);
        CHECK(f.said() == std::string(name) + ": axis 2 is outside \"alpha\" f32 [2, 3]");
    }
    CHECK(f.fault(ng_iota(f.s, &two, 1)) == NG_E_INVALID);
    CHECK(f.said() == "ng_iota: axis 1 is outside i32 [2]");
}

TEST_CASE("text: each word that the header names is one, in the form that it shows")
{
    Face f;
    const Exprs values = {f.param(0, shape(NG_F32, {2, 6})), f.param(1, shape(NG_F32, {2, 6})), f.param(2, shape(NG_F32, {1, 1, 6, 6})),
                          f.param(3, shape(NG_F32, {1, 1, 3, 3})), f.param(4, shape(NG_F32, {-1}))};
    for (const char* text : {
             "reshape(x, [3, _])", "broadcast(x, [4, 2, 6])", "permute(x, [1, 0])", "concat(x, y, 0)", "view(x, [2, 2], [1, 6], 0)", "window(x, 1, 2, 3)",
             "slice_at(x, 1, [1, 2], 1)", "take(x, iota(2))", "take(x, iota(i32, [2]), 1)", "put(x, iota(2), y, 0, sum)", "scan(x, 1, prod, exclusive, reverse)",
             "scan(x, 1, last)", "segment(x, iota(3), max)", "argsort(x, 1, reverse)", "argsort(x, 1)", "iota([2, 3], 1)", "iota(f32, [2*(-1)+1], 0) + sum(n)", "length(-1) + sum(n)",
             "bitcast(x, i32)", "random(uniform, f32, [3], u64(1), u64(2))", "random(normal, f64, [3], u64(1))", "random(bits, u32, [3], u64(1))",
             "cast_stochastic(x, f16, 0, u64(1), u64(2))", "keep(x)", "surrogate(x, y)", "stop(x)", "custom_grad(sin(x), y, [x], [y])", "matmul(x, permute(y, [1, 0]), tf32)",
             "conv(i, w, stride = 2, dilate = 1, pad = [1, 1], groups = 1, pad_value = 0, tf32)", "conv(i, w, pad_lo = 1, pad_hi = [1, 0])", "conv_dx(w, w, [1, 1, 5, 5])",
             "conv_dw(i, w, [1, 1, 4, 4])", "pool(i, max, window = 2, stride = 2, dilate = 1, pad = 1, ceil)", "pool(i, mean, window = 2, pad_lo = 1, pad_hi = 1, count_pad)",
             "pool(i, l2, channel_window = 1, channel_stride = 1, channel_pad = 0)", "pool_dx(i, w, max, window = 2)", "max(x, [0, 1], lowest)", "where(true, 1, 0) + false"}) {
        ng_shape d = shape(NG_F32, {});
        CHECK_MESSAGE(ng_expr_shape(f.text(text, "x,y,i,w,n", values), &d, &f.error) == NG_OK, text << ": " << f.said());
    }
}

TEST_CASE("ports: each is found at once, of however many; a hole is none")
{
    Face f;
    const auto seconds = [&](uint32_t n) {
        Exprs outs;
        for (uint32_t i = 0; i < n; i++) outs.push_back(ng_neg(f.param(2 * i, shape(NG_F32, {1}))));
        ng_prog* p = f.compile(outs);
        const auto start = std::chrono::steady_clock::now();
        uint32_t   wrong = 0;
        for (uint32_t i = 0; i < 3 * n - 1; i++) wrong += (ng_prog_port(p, i, nullptr, nullptr, nullptr) == NG_OK) != (i % 2 == 0 || i >= 2 * n - 1);
        CHECK(wrong == 0);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const double few = seconds(4000), many = seconds(32000);
    CHECK_MESSAGE(many < 40 * few + 0.25, few << " s, " << many << " s");
    CHECK(ng_prog_port(f.programs.back(), 3 * 32000 - 1, nullptr, nullptr, &f.error) == NG_E_INVALID);
    CHECK(f.said() == "ng_prog_port: 95999 is past the last port 95998");
}
