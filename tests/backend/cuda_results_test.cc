// Expressions of every kind on a CUDA device, real or made of the driver's stand-in, against the processor's results to the bit.
#include "tests/backend/emulated_device.h"

#include <ng.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace ng;

namespace {

struct Operand {
    ng_dtype dtype;
    std::vector<int64_t> dims;
};

int64_t count_of(const std::vector<int64_t>& dims)
{
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
}

ng_shape shape_of(const Operand& o)
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = o.dtype, d.ndim = int32_t(o.dims.size());
    std::copy(o.dims.begin(), o.dims.end(), d.dims);
    return d;
}

// Values that differ from place to place, some of them special, the same on every run.
std::vector<char> values_of(const Operand& o, uint64_t seed)
{
    const size_t bytes = (o.dtype >> 8 & 0xff) / 8;
    std::vector<char> all(size_t(count_of(o.dims)) * bytes);
    uint64_t state = seed * 0x9e3779b97f4a7c15 + 1;
    for (size_t i = 0; i < all.size(); i += bytes) {
        state = state * 6364136223846793005 + 1442695040888963407;
        const double v = double(int64_t(state >> 33) - (int64_t(1) << 30)) / double(1 << 28);
        uint64_t bits = state >> 40;
        if (o.dtype == NG_F32) { const float f = float(v); std::memcpy(&bits, &f, 4); }
        if (o.dtype == NG_F64) std::memcpy(&bits, &v, 8);
        if (o.dtype == NG_F16) bits &= 0xbfff;
        if (o.dtype == NG_BF16) { const float f = float(v); uint32_t b; std::memcpy(&b, &f, 4); bits = b >> 16; }
        if (o.dtype == NG_BOOL) bits &= 1;
        std::memcpy(all.data() + i, &bits, bytes);
    }
    return all;
}

// The bytes of a text's value on a backend; an error's sentence instead.
std::string result_of(const char* backend, const char* expression, const std::vector<Operand>& operands)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.backend = backend, d.cache_dir = "", d.flags = NG_CTX_NO_JIT | NG_CTX_DETERMINISTIC;
    ng_ctx* c = nullptr;
    ng_error error{};
    if (ng_ctx_create(&d, &c, &error) < 0) return error.text;
    ng_scope* s = ng_scope_create(c, 0);
    std::vector<ng_tensor*> tensors;
    std::vector<ng_expr*> leaves;
    std::string names;
    for (size_t i = 0; i < operands.size(); i++) {
        const ng_shape shape = shape_of(operands[i]);
        const std::vector<char> values = values_of(operands[i], i + 1);
        ng_tensor* t = nullptr;
        REQUIRE_MESSAGE(ng_tensor_create(c, &shape, &t, &error) == NG_OK, error.text);
        REQUIRE_MESSAGE(ng_tensor_put(t, values.data(), values.size(), &error) == NG_OK, error.text);
        tensors.push_back(t), leaves.push_back(ng_leaf(s, t));
        names += std::string(i ? "," : "") + char('x' + i);
    }
    ng_expr* e = ng_parse(s, expression, names.c_str(), leaves.data(), uint32_t(leaves.size()));
    ng_tensor* out = nullptr;
    std::string bytes;
    if (ng_eval(c, nullptr, &e, &out, 1, &error) < 0) {
        bytes = error.text;
    } else {
        ng_shape shape{};
        shape.size = sizeof shape;
        CHECK(ng_tensor_shape(out, &shape) == NG_OK);
        int64_t n = 1;
        for (int i = 0; i < shape.ndim; i++) n *= shape.dims[i];
        bytes.resize(size_t(n) * ((shape.dtype >> 8 & 0xff) / 8));
        CHECK(ng_tensor_get(out, bytes.data(), bytes.size(), nullptr) == NG_OK);
    }
    ng_tensor_release(out);
    ng_scope_release(s);
    for (ng_tensor* t : tensors) ng_tensor_release(t);
    CHECK(ng_ctx_close(c, UINT64_MAX, nullptr) == NG_OK);
    ng_ctx_release(c);
    return bytes;
}

struct Case {
    const char* text;
    std::vector<Operand> operands;
};
const Operand F{NG_F32, {7, 33}}, G{NG_F32, {33}}, H{NG_F16, {7, 33}}, B{NG_BF16, {7, 33}}, D{NG_F64, {7, 33}}, I{NG_I32, {7, 33}}, U{NG_U8, {7, 33}}, L{NG_I64, {5}};

const Case EXACT[] = {
    {"x + y * 2 - 1", {F, G}},
    {"sqrt(abs(x)) / (1 + x * x)", {F}},
    {"f16(x * 3)", {F}},
    {"bf16(x) + f16(y)", {F, F}},
    {"e4m3(x)", {F}},
    {"e5m2(x * 1000)", {F}},
    {"i8(x * 100)", {F}},
    {"x // y + x % y", {I, I}},
    {"x * y", {U, U}},
    {"where(x > y, x, f64(y))", {D, F}},
    {"x[1:, ::2] + x[:-1, ::2]", {F}},
    {"permute(x, [1, 0]) * 2", {H}},
    {"max(x, 1)", {F}},
    {"argmax(x, 0)", {F}},
    {"sum(x, 1)", {I}},
    {"any(x > 3, 0)", {F}},
    {"floor(x) + ceil(x) + rint(x) + trunc(x)", {F}},
    {"fma(x, y, x)", {F, F}},
    {"take(x, y % 7, 0)", {F, L}},
    {"reshape(x, [33, 7]) + 1", {B}},
};
const Case NEAR[] = {
    {"exp(x) + log(abs(x)) + tanh(x)", {F}},
    {"softmax(x, 1)", {F}},
    {"(x - mean(x, 1, keep=1)) / std(x, 1, keep=1)", {F}},
    {"sum(x, 0)", {F}},
    {"mean(x)", {F}},
    {"logsumexp(x, 1)", {D}},
    {"gelu(x) * sigmoid(y)", {H, H}},
    {"x @ permute(y, [1, 0])", {F, F}},
};

}  // namespace

TEST_CASE("N1: arithmetic, comparisons, casts and moves are the processor's to the bit")
{
    (void)emulated_device();
    for (const Case& c : EXACT) {
        INFO(c.text);
        const std::string want = result_of("cpu", c.text, c.operands), got = result_of("cuda", c.text, c.operands);
        REQUIRE_MESSAGE(got.size() == want.size(), got);
        CHECK(std::memcmp(got.data(), want.data(), got.size()) == 0);
    }
}

TEST_CASE("functions, sums and products are the processor's within a few units of the last place")
{
    (void)emulated_device();
    for (const Case& c : NEAR) {
        INFO(c.text);
        const std::string want = result_of("cpu", c.text, c.operands), got = result_of("cuda", c.text, c.operands);
        REQUIRE_MESSAGE(got.size() == want.size(), got);
        const bool is_double = c.operands[0].dtype == NG_F64;
        for (size_t i = 0; i < want.size(); i += is_double ? 8 : 4) {
            double a, b;
            float fa, fb;
            std::memcpy(&fa, got.data() + i, 4), std::memcpy(&fb, want.data() + i, 4);
            a = fa, b = fb;
            if (is_double) std::memcpy(&a, got.data() + i, 8), std::memcpy(&b, want.data() + i, 8);
            const bool is_near = std::abs(a - b) <= (is_double ? 1e-13 : 4e-6) * (1 + std::abs(b)) || (a != a && b != b);
            if (!is_near) INFO("element ", i, ": ", a, ", should be ", b);
            CHECK(is_near);
        }
    }
}
