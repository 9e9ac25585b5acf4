// Programs whose kernels a library for GPUs has compiled with itself: there without any compiler, for all lengths, and right.
#include "tests/contract/face.h"

namespace {

const char* const TEXTS[] = {
    "x + y", "x * 3 + 5", "x * v + w", "gelu(x + v)", "silu(x) * y", "f16(x)", "sum(x, 1)", "mean(x, 0)", "max(x, 1)", "min(x, 0)", "var(x, 1)", "sum(x)",
    "softmax(x, 1)", "softmax(x, 0)", "log_softmax(x, 1)", "(x - mean(x, 1)) * rsqrt(var(x, 1) + 0.01)", "(x - mean(x, 0)) * rsqrt(var(x, 0) + 0.01)",
    "(x - mean(x, 1)) / sqrt(var(x, 1) + 0.5) * v + w", "x * rsqrt(mean(x * x, 1) + 0.01) * v",
};
const std::pair<int64_t, int64_t> SHAPES[] = {{1, 1}, {5, 7}, {40, 64}, {3, 1000}, {1000, 3}, {257, 129}, {2, 9000}, {500, 40}, {1, 30000}};

Values waves(size_t n, double pace)
{
    Values v(n);
    for (size_t i = 0; i < n; i++) v[i] = double(int(64 * (1.5 + std::sin(pace * double(i))))) / 64;      // of every type
    return v;
}

std::string explained(ng_prog* p)
{
    size_t bytes = 0;
    REQUIRE(ng_prog_explain(p, nullptr, &bytes, nullptr) == NG_OK);
    std::string all(bytes, ' ');
    REQUIRE(ng_prog_explain(p, all.data(), &bytes, nullptr) == NG_OK);
    return all;
}

struct Inputs {
    std::vector<ng_shape> shapes;
    std::vector<Values>   values;
};
Inputs inputs(ng_dtype t, int64_t rows, int64_t columns)
{
    Inputs in;
    for (const Dims& dims : {Dims{rows, columns}, Dims{rows, columns}, Dims{columns}, Dims{columns}}) {
        in.shapes.push_back(shape(t, dims));
        in.values.push_back(waves(count_of(in.shapes.back()), 0.31 + 0.17 * double(in.values.size())));
    }
    return in;
}

Exprs leaves_of(Face& f, const Inputs& in)
{
    Exprs leaves;
    for (size_t i = 0; i < in.shapes.size(); i++) {
        ng_shape single = in.shapes[i];
        single.dtype = NG_F32;
        leaves.push_back(ng_cast(f.leaf(single, in.values[i]), in.shapes[i].dtype));
    }
    return leaves;
}
Values meant(Face& f, const char* words, const Exprs& leaves)
{
    return f.eval(f.text(words, leaves.size() == 1 ? "x" : "x,y,v,w", leaves));
}

// Where vectors are not aligned.
ng_tensor* an_element_farther(Face& f, const ng_shape& d)
{
    const int64_t n = int64_t(count_of(d));
    return f.view(ng_reshape(ng_slice(ng_leaf(f.s, f.make(shape(d.dtype, {n + 1}))), 0, 1, n + 1, 1), d.dims, d.ndim));
}

// What a library for this device has kernels of: a processor's has none, nor has a device that is none.
bool has_stock(Face& f)
{
    ng_device_info info{};
    info.size = sizeof info;
    REQUIRE(ng_ctx_info(f.c, &info) == NG_OK);
    return std::string_view(info.backend) == "cuda" && !std::string_view(info.name).starts_with("Stand-in");
}

}  // namespace

TEST_CASE("common programs without a compiler: what the library has is right for all lengths, types and offsets")
{
    Face f(NG_CTX_NO_JIT), reference(NG_CTX_REFERENCE);
    for (const ng_dtype t : {NG_F32, NG_F16, NG_BF16}) {
        const double tolerance = t == NG_F32 ? 1e-5 : t == NG_F16 ? 0x1p-9 : 0x1p-6;
        for (const auto& [rows, columns] : SHAPES) {
            const Inputs in = inputs(t, rows, columns);
            const Exprs leaves = leaves_of(reference, in);
            Tensors whole, farther;
            for (ng_expr* const e : leaves_of(f, in)) {
                whole.push_back(f.made(e)), farther.push_back(an_element_farther(f, f.shape_of(e)));
                REQUIRE(f.eval_into({e}, {farther.back()}) == NG_OK);
            }
            for (const char* words : TEXTS) {
                Exprs params;
                for (uint32_t i = 0; i < in.shapes.size(); i++) params.push_back(f.param(i, in.shapes[i]));
                ng_expr* const e = ng_cast(f.text(words, "x,y,v,w", params), t);
                INFO(std::string(words), " of ", int(t), ", ", rows, " x ", columns);
                ng_prog* const p = f.compile({e});
                const Values want = meant(reference, words, leaves);
                const ng_shape d = f.shape_of(e);
                for (const bool is_farther : {false, true}) {
                    ng_tensor* const out = is_farther ? an_element_farther(f, d) : f.make(d);
                    CHECK(f.run(p, {is_farther ? farther : whole, {out}}) == NG_OK);
                    CHECK(differs(f.get(out), want, tolerance, tolerance) == "");
                }
            }
        }
    }
}

TEST_CASE("common programs without a compiler: where a library has their kernels they say so, and other programs do not")
{
    Face f(NG_CTX_NO_JIT);
    for (const char* words : TEXTS) {
        const Inputs in = inputs(NG_BF16, 257, 129);
        Exprs params;
        for (uint32_t i = 0; i < in.shapes.size(); i++) params.push_back(f.param(i, in.shapes[i]));
        INFO(std::string(words));
        const bool is_shipped = explained(f.compile({ng_cast(f.text(words, "x,y,v,w", params), NG_BF16)})).find("shipped for any lengths") != std::string::npos;
        CHECK(is_shipped == has_stock(f));
    }
    ng_expr* const x = f.param(0, shape(NG_F32, {64, 64}));
    CHECK(explained(f.compile({f.text("sin(x) * cos(x) + tanh(x) / 3", "x", {x})})).find("shipped for any lengths") == std::string::npos);
}

TEST_CASE("common programs of lengths that are known when run, without a compiler")
{
    Face f(NG_CTX_NO_JIT), reference(NG_CTX_REFERENCE);
    ng_expr* const x = f.param(0, shape(NG_F16, {-1, -2}));
    for (const char* words : {"softmax(x, 1)", "x * 3 + 5", "sum(x, 0)", "(x - mean(x, 1)) * rsqrt(var(x, 1) + 0.01)"}) {
        ng_expr* const e = ng_cast(f.text(words, "x", {x}), NG_F16);
        ng_prog* const p = f.compile({e}, {.length_max = {6000, 9000}});
        for (const auto& [rows, columns] : SHAPES) {
            if (rows > 6000 || columns > 9000) continue;
            INFO(std::string(words), ", ", rows, " x ", columns);
            const ng_shape d = shape(NG_F16, {rows, columns});
            const Values values = waves(size_t(rows * columns), 0.31);
            const Values want = meant(reference, words, leaves_of(reference, {{d}, {values}}));
            ng_tensor* const out = f.make(std::string_view(words) == "sum(x, 0)" ? shape(f.type_of(e), {1, columns}) : shape(f.type_of(e), {rows, columns}));
            CHECK_MESSAGE(f.run(p, {{f.made(leaves_of(f, {{d}, {values}})[0])}, {out}}) == NG_OK, f.said());
            CHECK(differs(f.get(out), want, 0x1p-9, 0x1p-9) == "");
        }
    }
}
