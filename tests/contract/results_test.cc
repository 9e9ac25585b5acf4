// The rules of numbers beyond single elements: reductions, NaN, products, random numbers, error bounds, indices.
#include "tests/contract/face.h"

#include <cstdlib>

namespace {
struct Results : Face {
    using Face::Face;
    ng_expr* typed(ng_dtype t, const Values& v) { return leaf(shape(t, {int64_t(v.size())}), v); }
    ng_expr* random(ng_random_kind kind, ng_dtype t, int64_t key, int64_t step, const Dims& dims)
    {
        const ng_shape d = shape(t, dims);
        return ng_random(s, kind, whole(key, NG_U64), whole(step, NG_U64), &d);
    }
};

// Philox4x32-10: Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
struct Words { uint32_t w[4]; };
Words philox(uint64_t key, uint64_t index, uint64_t step)
{
    Words c{{uint32_t(index), uint32_t(index >> 32), uint32_t(step), uint32_t(step >> 32)}};
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const uint64_t p = uint64_t(0xD2511F53u) * c.w[0], q = uint64_t(0xCD9E8D57u) * c.w[2];
        c = {{uint32_t(q >> 32) ^ c.w[1] ^ k0, uint32_t(q), uint32_t(p >> 32) ^ c.w[3] ^ k1, uint32_t(p)}};
    }
    return c;
}
// The bound of a word's row, as the library itself tells it.
double bound_of(const std::string& word)
{
    const std::string all = ng_api_json(), row = "{\"name\":\"" + word + "\",\"class\":\"map\"";
    const size_t at = all.find(row);
    REQUIRE_MESSAGE(at != std::string::npos, word);
    return std::strtod(all.c_str() + all.find("\"ulp\":", at) + 6, nullptr);
}
}

TEST_CASE("N5: sums of integers and bool are i64, of unsigned ones u64, of floats f32 and f64")
{
    Results f;
    for (ng_dtype t : {NG_BOOL, NG_I8, NG_I16, NG_I32, NG_I64}) {
        CHECK(f.type_of(ng_sum(f.typed(t, {1}), NG_ALL, 0)) == NG_I64);
        CHECK(f.type_of(ng_prod(f.typed(t, {1}), NG_ALL, 0)) == NG_I64);
    }
    for (ng_dtype t : {NG_U8, NG_U16, NG_U32, NG_U64}) CHECK(f.type_of(ng_sum(f.typed(t, {1}), NG_ALL, 0)) == NG_U64);
    for (ng_dtype t : {NG_F16, NG_BF16, NG_E4M3, NG_E5M2, NG_F32})
        for (ng_expr* e : {ng_sum(f.typed(t, {1}), NG_ALL, 0), ng_mean(f.typed(t, {1}), NG_ALL, 0), ng_var(f.typed(t, {1}), NG_ALL, 0), ng_std(f.typed(t, {1}), NG_ALL, 0)})
            CHECK(f.type_of(e) == NG_F32);
    CHECK(f.type_of(ng_mean(f.typed(NG_F64, {1}), NG_ALL, 0)) == NG_F64);
    CHECK(f.type_of(ng_mean(f.typed(NG_I8, {1}), NG_ALL, 0)) == NG_F32);
    CHECK(f.type_of(ng_argmax(f.typed(NG_I8, {1}), NG_ALL, 0)) == NG_I64);
    CHECK(f.type_of(ng_argmin(f.typed(NG_F16, {1}), NG_ALL, 0)) == NG_I64);
    CHECK(f.type_of(ng_any(f.typed(NG_F16, {1}), NG_ALL, 0)) == NG_BOOL);
    CHECK(differs(f.eval(ng_sum(f.typed(NG_U8, Values(1000, 255)), NG_ALL, 0)), {255000}) == "");
    CHECK(differs(f.eval(ng_sum(f.typed(NG_BOOL, Values(1000, 1)), NG_ALL, 0)), {1000}) == "");
}

TEST_CASE("N5: float sums are pairwise or better, whatever the axis")
{
    Results f;
    constexpr size_t N = 1 << 20;
    // each addition of a plain loop loses up to half a unit of the running sum: 2^20 times 0.1 would be off by hundreds
    const double eps = 0x1p-24, exact = double(float(0.1)) * N, limit = 2 * 20 * eps * exact;
    CHECK(std::abs(f.eval(ng_sum(f.leaf(Values(N, float(0.1))), NG_ALL, 0))[0] - exact) <= limit);
    ng_expr* columns = ng_sum(f.leaf(shape(NG_F32, {N / 4, 4}), Values(N, float(0.1))), NG_AXIS_0, 0);
    CHECK(differs(f.eval(columns), Values(4, exact / 4), limit / 4) == "");
    ng_expr* mean = ng_mean(f.leaf(Values(N, float(0.1))), NG_ALL, 0);
    CHECK(std::abs(f.eval(mean)[0] - double(float(0.1))) <= 2 * 20 * eps);
    // integers of 64 bits do not wrap on the way
    ng_expr* wide = ng_cast(f.leaf(shape(NG_F64, {2}), {0x1p63, 0x1p63}), NG_U64);
    CHECK(differs(f.eval(ng_mean(wide, NG_ALL, 0)), {0x1p63}) == "");
    CHECK(differs(f.eval(ng_var(wide, NG_ALL, 0)), {0}) == "");
    // a mean far above the deviations: var has two passes, or as good
    Values far(4096);
    for (size_t i = 0; i < far.size(); i++) far[i] = 4096 + double(i % 2);
    CHECK(differs(f.eval(ng_var(f.leaf(far), NG_ALL, 0)), {0.25}, 1e-6) == "");
}

TEST_CASE("N5: the first of equals, NaN wins, nothing is the identity or NG_E_SHAPE")
{
    Results f;
    ng_expr *x = f.leaf({2, 5, 1, 5, 1}), *n = f.leaf({2, NOT_A_NUMBER, 7, NOT_A_NUMBER}), *none = f.leaf(Values{});
    CHECK(differs(f.eval(ng_argmax(x, NG_AXIS_0, 0)), {1}) == "");
    CHECK(differs(f.eval(ng_argmin(x, NG_AXIS_0, 0)), {2}) == "");
    CHECK(differs(f.eval(ng_argmax(n, NG_AXIS_0, 0)), {1}) == "");
    CHECK(differs(f.eval(ng_argmin(n, NG_AXIS_0, 0)), {1}) == "");
    CHECK(differs(f.eval(ng_max(n, NG_ALL, 0)), {NOT_A_NUMBER}) == "");
    CHECK(differs(f.eval(ng_sum(none, NG_ALL, 0)), {0}) == "");
    CHECK(differs(f.eval(ng_prod(none, NG_ALL, 0)), {1}) == "");
    CHECK(differs(f.eval(ng_all(none, NG_ALL, 0)), {1}) == "");
    CHECK(differs(f.eval(ng_any(none, NG_ALL, 0)), {0}) == "");
    CHECK(differs(f.eval(ng_count_nonzero(none, NG_ALL, 0)), {0}) == "");
    for (ng_expr* e : {ng_min(none, NG_ALL, 0), ng_max(none, NG_ALL, 0), ng_argmin(none, NG_AXIS_0, 0), ng_argmax(none, NG_AXIS_0, 0)}) {
        CHECK(f.fault(e) == NG_E_SHAPE);
        CHECK(f.error.text[0]);
    }
    const ng_shape d = shape(NG_F32, {-1});
    ng_prog* p = f.compile({ng_max(f.param(0, d), NG_ALL, 0)}, {.length_max = {4}});
    ng_tensor* out = f.make(shape(NG_F32, {}));
    CHECK(f.run(p, {.args = {f.tensor(Values{})}, .out = {out}}) == NG_E_SHAPE);
    CHECK(f.run(p, {.args = {f.tensor({3})}, .out = {out}}) == NG_OK);
}

TEST_CASE("N6: maximum, minimum, max, min and relu keep NaN, fmax and fmin skip it, sign(0) is 0")
{
    Results f;
    ng_expr *x = f.leaf({NOT_A_NUMBER, 1, NOT_A_NUMBER, -3}), *y = f.leaf({2, NOT_A_NUMBER, NOT_A_NUMBER, -4});
    CHECK(differs(f.eval(ng_maximum(x, y)), {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, -3}) == "");
    CHECK(differs(f.eval(ng_minimum(x, y)), {NOT_A_NUMBER, NOT_A_NUMBER, NOT_A_NUMBER, -4}) == "");
    CHECK(differs(f.eval(ng_fmax(x, y)), {2, 1, NOT_A_NUMBER, -3}) == "");
    CHECK(differs(f.eval(ng_fmin(x, y)), {2, 1, NOT_A_NUMBER, -4}) == "");
    CHECK(differs(f.eval(ng_relu(x)), {NOT_A_NUMBER, 1, NOT_A_NUMBER, 0}) == "");
    CHECK(differs(f.eval(ng_min(x, NG_ALL, 0)), {NOT_A_NUMBER}) == "");
    CHECK(differs(f.eval(ng_sign(f.leaf({0, -0., 5, -INF}))), {0, 0, 1, -1}) == "");
    CHECK(differs(f.eval(ng_clip(f.leaf({NOT_A_NUMBER, 5, -5}), ng_const(f.s, 0, -1.), ng_const(f.s, 0, 1.))), {NOT_A_NUMBER, 1, -1}) == "");
}

TEST_CASE("N6: mean pooling leaves padding out unless NG_POOL_COUNT_PAD; max pooling keeps NaN")
{
    Results f;
    ng_expr* x = f.leaf(shape(NG_F32, {1, 1, 4}), {1, 2, 3, 4});
    ng_pool_desc d{};
    d.size = sizeof d, d.kind = NG_POOL_MEAN, d.window[0] = 2, d.stride[0] = 2, d.pad_lo[0] = 1, d.pad_hi[0] = 1;
    CHECK(differs(f.eval(ng_pool(x, &d)), {1, 2.5, 4}) == "");
    d.flags = NG_POOL_COUNT_PAD;
    CHECK(differs(f.eval(ng_pool(x, &d)), {0.5, 2.5, 2}) == "");
    d.flags = 0, d.kind = NG_POOL_MAX;
    CHECK(differs(f.eval(ng_pool(f.leaf(shape(NG_F32, {1, 1, 4}), {-1, NOT_A_NUMBER, 3, -4}), &d)), {-1, NOT_A_NUMBER, -4}) == "");
}

TEST_CASE("N6: a window of padding alone has the least number, or the mean of none, 0")
{
    Results f;
    ng_expr* x = f.leaf(shape(NG_F32, {1, 1, 2}), {1, 2});
    ng_pool_desc d{};
    d.size = sizeof d, d.window[0] = 2, d.stride[0] = 1, d.dilate[0] = 5, d.pad_lo[0] = d.pad_hi[0] = 4;
    CHECK(differs(f.eval(ng_pool(x, &d)), {2, -INF, -INF, -INF, 1}) == "");
    CHECK(differs(f.eval(ng_pool(ng_cast(x, NG_I8), &d)), {2, -128, -128, -128, 1}) == "");
    for (const ng_pool_kind kind : {NG_POOL_MEAN, NG_POOL_L2}) {
        d.kind = kind;
        CHECK(differs(f.eval(ng_pool(x, &d)), {2, 0, 0, 0, 1}) == "");
    }
}

TEST_CASE("N7: a deep product of one value is as exact as its sum, wherever its elements lie")
{
    Face f;
    // One after the other they would be 1 % off.
    const int64_t depth = 1 << 20, row[] = {1, depth}, column[] = {depth, 3};
    const double  exact = double(float(0.1)) * double(depth);
    ng_expr *tenth = ng_const(f.s, NG_F32, 0.1), *one = ng_const(f.s, NG_F32, 1);
    CHECK(differs(f.eval(ng_matmul(ng_broadcast(tenth, row, 2), ng_broadcast(one, column, 2), nullptr)), {exact, exact, exact}, 2e-3 * exact) == "");
    const int64_t deep[] = {1, 10000};
    for (const ng_dtype t : {NG_F32, NG_F64, NG_I32, NG_I64}) {            // whole sums of pieces, of each arithmetic
        ng_expr* x = ng_cast(f.leaf(shape(NG_F32, {10000, 2}), counted(20000, -9999)), t);
        CHECK(f.eval(ng_matmul(ng_broadcast(ng_cast(one, t), deep, 2), x, nullptr)) == Values{0, 10000});
    }
}

TEST_CASE("N7: products accumulate and give f32, i32 of 8-bit integers, f64 of f64; mixed signs of 8 bits are allowed")
{
    Results f;
    const auto product = [&](ng_dtype a, ng_dtype b, double x, double y, int64_t k = 3) {
        return ng_matmul(f.leaf(shape(a, {1, k}), Values(size_t(k), x)), f.leaf(shape(b, {k, 1}), Values(size_t(k), y)), nullptr);
    };
    for (ng_dtype t : {NG_F16, NG_BF16, NG_E4M3, NG_E5M2, NG_F32}) CHECK(f.type_of(product(t, t, 1, 1)) == NG_F32);
    CHECK(f.type_of(product(NG_F64, NG_F64, 1, 1)) == NG_F64);
    for (ng_dtype a : {NG_I8, NG_U8})
        for (ng_dtype b : {NG_I8, NG_U8}) {
            CHECK(f.type_of(product(a, b, 1, 1)) == NG_I32);
            const double x = a == NG_I8 ? -128 : 255, y = b == NG_I8 ? 127 : 255;
            CHECK(differs(f.eval(product(a, b, x, y, 1000)), {1000 * x * y}) == "");
        }
    // 1 + 4096 times 2^-12: every partial sum above 2 is lost in f16, and none in f32
    CHECK(differs(f.eval(product(NG_F16, NG_F16, 1, 1. / 4096, 4096)), {1}) == "");
    // as accurate as f32 sums are: k times half a unit of the sum of magnitudes
    const double got = f.eval(product(NG_F32, NG_F32, float(0.1), float(0.3), 1000))[0], want = 1000 * double(float(0.1)) * double(float(0.3));
    CHECK(std::abs(got - want) <= 1000 * 0x1p-24 * want);
    ng_matmul_desc fast{};
    fast.size = sizeof fast, fast.flags = NG_TF32;
    CHECK(f.fault(ng_matmul(f.leaf(shape(NG_F32, {1, 2}), {1, 2}), f.leaf(shape(NG_F32, {2, 1}), {3, 4}), &fast)) == NG_OK);
}

TEST_CASE("N8: bits are word 0 of Philox4x32-10, low words first, at the row-major index and the step")
{
    Results f;
    // Random123's own known answer: all zeros
    CHECK(philox(0, 0, 0).w[0] == 0x6627e8d5u);
    const uint64_t key = 0x123456789abcdef0u, step = 0xfedcba9876543210u;
    const Values bits = f.eval(f.random(NG_BITS, NG_U32, int64_t(key), int64_t(step), {7, 300}));
    Values want(2100);
    for (size_t i = 0; i < want.size(); i++) want[i] = philox(key, i, step).w[0];
    CHECK(differs(bits, want) == "");
    CHECK(differs(f.eval(f.random(NG_BITS, NG_U32, 0, 0, {1})), {0x6627e8d5u}) == "");
    const ng_shape d = shape(NG_U32, {1});
    CHECK(differs(f.eval(ng_random(f.s, NG_BITS, f.whole(0, NG_U64), nullptr, &d)), {0x6627e8d5u}) == "");
}

TEST_CASE("N8: uniform numbers are 24 bits of word 0, in f64 53 bits of words 1 and 0, below 1")
{
    Results f;
    const Values u = f.eval(f.random(NG_UNIFORM, NG_F32, 42, 9, {1000})), v = f.eval(f.random(NG_UNIFORM, NG_F64, 42, 9, {1000}));
    Values single(1000), twice(1000);
    for (size_t i = 0; i < 1000; i++) {
        const Words w = philox(42, i, 9);
        single[i] = double(w.w[0] >> 8) * 0x1p-24;
        twice[i] = double((uint64_t(w.w[1]) << 32 | w.w[0]) >> 11) * 0x1p-53;
    }
    CHECK(differs(u, single) == "");
    CHECK(differs(v, twice) == "");
}

TEST_CASE("N8: normal numbers are Box-Muller of words 0 and 1, the same on every run, shape and number of threads")
{
    Results f, alone(NG_CTX_NO_THREADS, 1);
    const Values normal = f.eval(f.random(NG_NORMAL, NG_F32, 7, 1, {4096}));
    CHECK(differs(alone.eval(alone.random(NG_NORMAL, NG_F32, 7, 1, {4096})), normal) == "");
    CHECK(differs(f.eval(f.random(NG_NORMAL, NG_F32, 7, 1, {64, 64})), normal) == "");
    double sum = 0, square = 0, fourth = 0;
    for (double x : normal) sum += x, square += x * x, fourth += x * x * x * x;
    CHECK(std::abs(sum / 4096) < 5. / 64);
    CHECK(std::abs(square / 4096 - 1) < 5 * std::sqrt(2.) / 64);
    CHECK(std::abs(fourth / 4096 - 3) < 5 * std::sqrt(96.) / 64);
    // a radius by word 0, an angle by word 1: whatever the ends of the interval, the magnitude is within its radius
    for (size_t i = 0; i < 4096; i++) {
        const Words w = philox(7, i, 1);
        const double u = (w.w[0] >> 8) * 0x1p-24, low = std::max(std::min(u, 1 - u) - 0x1p-23, 0x1p-25);
        CHECK(std::abs(normal[i]) <= std::sqrt(-2 * std::log(low)) * (1 + 1e-5));
    }
}

TEST_CASE("N8: a mask and a rounding of one step are independent: the rounding draws word 3")
{
    Results f;
    constexpr size_t N = 8192;
    ng_expr *key = f.whole(3, NG_U64), *step = f.whole(5, NG_U64);
    const Values up = f.eval(ng_cast_stochastic(f.leaf(Values(N, 1 + 0x1p-11)), NG_F16, 0, key, step));
    const Values mask = f.eval(f.random(NG_UNIFORM, NG_F32, 3, 5, {int64_t(N)}));
    double cross = 0, by_word = 0;
    for (size_t i = 0; i < N; i++) {
        const double side = up[i] > 1 ? 0.5 : -0.5;
        cross += side * (mask[i] - 0.5), by_word += side * (philox(3, i, 5).w[3] * 0x1p-32 - 0.5);
    }
    const double sigma = std::sqrt(N / 48.);
    CHECK(std::abs(cross) < 5 * sigma);
    CHECK(std::abs(by_word) > N / 8. * 0.95);     // word 3 alone decides: a quarter of the covariance of equal halves
}

TEST_CASE("N9: words keep their bounds, denormals included")
{
    Results f;
    struct Row { const char* word; ng_expr* (*build)(ng_expr*); long double (*exact)(long double); Values at; };
    const double tiny = std::ldexp(1, -140), least = std::ldexp(1, -149);
    const Row rows[] = {
        {"exp", ng_exp, std::exp, {-103.5, -90, -1, -tiny, 0, tiny, 1e-3f, 0.5, 1, 20, 88.7f, 88.9f}},
        {"exp2", ng_exp2, std::exp2, {-149, -130.5, -0.25, 0, least, 3.7f, 127.9f}},
        {"expm1", ng_expm1, std::expm1, {-100, -1, -1e-5f, least, tiny, 1e-7f, 1, 80}},
        {"log", ng_log, std::log, {least, tiny, 1e-20f, 0.5, 0.999f, 1, 1.0001f, 3, 3e38f}},
        {"log2", ng_log2, std::log2, {least, tiny, 0.7f, 1, 1.5, 8, 3e38f}},
        {"log1p", ng_log1p, std::log1p, {-0.999f, -0.5, -1e-7f, least, tiny, 1e-3f, 1, 1e30f}},
        {"sin", ng_sin, std::sin, {least, tiny, 1e-3f, 0.5, 1, 3.1415927f, 100, 1e6f, -1e6f}},
        {"cos", ng_cos, std::cos, {least, 1, 1.5707964f, 100, 1e6f}},
        {"tan", ng_tan, std::tan, {least, 0.5, 1.5707964f, 100}},
        {"tanh", ng_tanh, std::tanh, {least, tiny, 1e-4f, 0.3f, 2, 9, 20, -20}},
        {"sqrt", ng_sqrt, std::sqrt, {0, least, tiny, 2, 3e38f}},
        {"cbrt", ng_cbrt, std::cbrt, {least, tiny, -8, 2, 3e38f}},
        {"erf", ng_erf, std::erf, {least, tiny, 1e-3f, 0.5, 1, 3, 6, -2}},
        {"erfc", ng_erfc, std::erfc, {-3, 0, 0.5, 2, 5, 9, 10}},
        {"asin", ng_asin, std::asin, {least, 0.5, 0.999f, 1}},
        {"atan", ng_atan, std::atan, {least, 0.5, 1, 1e10f}},
        {"sinh", ng_sinh, std::sinh, {least, tiny, 1e-3f, 1, 80, 89, -5}},
        {"cosh", ng_cosh, std::cosh, {least, 1, 80, 89}},
        {"asinh", ng_asinh, std::asinh, {least, 1e-3f, 1, 1e30f}},
    };
    for (const Row& r : rows) {
        const double bound = bound_of(r.word);
        Values at = r.at;
        for (double& x : at) x = float(x);
        const Values got = f.eval(r.build(f.leaf(at)));
        for (size_t i = 0; i < at.size(); i++) {
            const long double want = r.exact(at[i]);
            const double near = double(want), unit = std::ldexp(1, std::max(std::ilogb(near), -126) - 23);
            INFO(r.word, "(", at[i], ") is ", got[i], ", should be ", near, " within ", bound, " ulp");
            if (std::abs(near) > 3.4028235677973366e38) CHECK(got[i] == std::copysign(INF, near));
            else if (near == 0) CHECK(got[i] == 0);
            else CHECK(double(std::abs((long double)(got[i]) - want)) / unit <= std::max(bound, 0.5));
        }
    }
    // no flush to zero, in or out
    const float half = std::ldexp(1.f, -127);
    CHECK(differs(f.eval(ng_mul(f.leaf({half, least}), ng_const(f.s, 0, 1.))), {half, least}) == "");
    CHECK(differs(f.eval(ng_mul(f.leaf({std::ldexp(1, -100), 1e-30f}), f.leaf({std::ldexp(1, -30), 0}))), {std::ldexp(1, -130), 0}) == "");
    CHECK(differs(f.eval(ng_sum(f.leaf({least, least, half}), NG_ALL, 0)), {half + 2 * least}) == "");
}

TEST_CASE("N10: scan, segment and put keep x's dtype and argsort gives i64")
{
    Results f;
    ng_expr* at = f.typed(NG_I32, {0, 2});
    for (ng_dtype t : {NG_I8, NG_U16, NG_F16, NG_BF16, NG_F64}) {
        ng_expr* x = f.typed(t, {3, 1, 2});
        CHECK(f.type_of(ng_scan(x, 0, NG_FOLD_SUM, 0)) == t);
        CHECK(f.type_of(ng_segment(x, at, NG_FOLD_SUM)) == t);
        CHECK(f.type_of(ng_put(x, at, ng_const_int(f.s, 0, 1), 0, NG_FOLD_SUM)) == t);
        CHECK(f.type_of(ng_argsort(x, 0, 0)) == NG_I64);
        CHECK(differs(f.eval(ng_scan(x, 0, NG_FOLD_SUM, 0)), {3, 4, 6}) == "");
    }
    CHECK(differs(f.eval(ng_scan(f.typed(NG_I8, {100, 100}), 0, NG_FOLD_SUM, 0)), {100, -56}) == "");
    CHECK(f.fault(ng_put(f.typed(NG_F16, {1, 2, 3}), at, f.leaf({1}), 0, NG_FOLD_SUM)) == NG_E_DTYPE);
    // Literals are converted where nothing is lost.
    CHECK(f.fault(ng_put(f.typed(NG_I8, {1, 2, 3}), at, ng_const_int(f.s, 0, 300), 0, NG_FOLD_SUM)) == NG_E_DTYPE);
    CHECK(f.fault(ng_put(f.typed(NG_I8, {1, 2, 3}), at, ng_const(f.s, 0, 2), 0, NG_FOLD_SUM)) == NG_E_DTYPE);
    CHECK(differs(f.eval(ng_put(f.typed(NG_U8, {1, 2, 3}), at, ng_const_int(f.s, 0, 255), 0, NG_FOLD_LAST)), {255, 2, 255}) == "");
    CHECK(differs(f.eval(ng_put(f.typed(NG_F16, {1, 2, 3}), at, ng_const(f.s, 0, 0.5), 0, NG_FOLD_LAST)), {0.5, 2, 0.5}) == "");
}

TEST_CASE("N10: an index out of range reads 0 and writes nothing, negative ones too; the last of equals wins")
{
    Results f;
    for (ng_dtype t : {NG_I8, NG_I32, NG_I64}) {
        ng_expr *x = f.leaf({10, 20, 30}), *at = f.typed(t, {2, -1, 3, 0, 100, -128});
        CHECK(differs(f.eval(ng_take(x, at, 0)), {30, 0, 0, 10, 0, 0}) == "");
        CHECK(differs(f.eval(ng_put(x, at, f.leaf(counted(6, 1)), 0, NG_FOLD_LAST)), {4, 20, 1}) == "");
        CHECK(differs(f.eval(ng_put(x, at, f.leaf(counted(6, 1)), 0, NG_FOLD_SUM)), {14, 20, 31}) == "");
    }
    ng_expr *many = f.typed(NG_I32, Values(5000, 1)), *y = f.leaf(counted(5000));
    CHECK(differs(f.eval(ng_put(f.leaf({0, 0}), many, y, 0, NG_FOLD_LAST)), {0, 4999}) == "");
    CHECK(differs(f.eval(ng_put(f.leaf({0, 0}), many, y, 0, NG_FOLD_MAX)), {0, 4999}) == "");
    CHECK(differs(f.eval(ng_put(f.leaf({7, 1}), many, ng_const(f.s, NG_F32, 1), 0, NG_FOLD_PROD)), {7, 1}) == "");
    ng_expr* far = f.leaf(shape(NG_U64, {1}), {18446744073709549568.});
    CHECK(differs(f.eval(ng_take(f.leaf({1, 2}), far, 0)), {0}) == "");
}

TEST_CASE("N10: sums of equal indices are in row-major order under NG_CTX_DETERMINISTIC")
{
    Results f(NG_CTX_DETERMINISTIC);
    const size_t n = 60000;
    Values v(n), where(n), bins(7);
    float sums[7] = {};
    for (size_t i = 0; i < n; i++) {
        v[i] = float(std::sin(double(i)) * 1e3), where[i] = double(i * 5 % 9);
        if (where[i] < 7) sums[size_t(where[i])] += float(v[i]);
    }
    CHECK(differs(f.eval(ng_put(f.leaf(bins), f.typed(NG_I32, where), f.leaf(v), 0, NG_FOLD_SUM)), Values(sums, sums + 7)) == "");
}

TEST_CASE("N10: in place means that only those places are written, and moved_bytes says so")
{
    Results f;
    const ng_shape table = shape(NG_F32, {10000, 16}), rows = shape(NG_F32, {3, 16}), at = shape(NG_I32, {3});
    ng_expr* e = ng_put(f.param(0, table), f.param(1, at), f.param(2, rows), 0, NG_FOLD_SUM);
    ng_prog *copied = f.compile({e}), *in_place = f.compile({e}, {.alias = {0}});
    CHECK(f.info(in_place).moved_bytes < 10000);
    CHECK(f.info(copied).moved_bytes >= 2 * 640000);
    ng_tensor *t = f.tensor(table, Values(160000, 1)), *i = f.tensor(at, {5, 9999, 5}), *y = f.tensor(rows, Values(48, 2));
    CHECK(f.run(in_place, {.args = {t, i, y}, .out = {t}}) == NG_OK);
    Values want(160000, 1);
    for (size_t k = 0; k < 16; k++) want[5 * 16 + k] = 5, want[9999 * 16 + k] = 3;
    CHECK(differs(f.get(t), want) == "");
}
