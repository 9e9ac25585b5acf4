// The rules of numbers in element-wise work: what each dtype computes in, how casts round, what two operands become.
#include "tests/contract/face.h"

#include <random>

namespace {
constexpr ng_dtype FLOATS[] = {NG_F16, NG_BF16, NG_E4M3, NG_E5M2}, WHOLE[] = {NG_I8, NG_I16, NG_I32, NG_I64, NG_U8, NG_U16, NG_U32, NG_U64};

struct Numbers : Face {
    using Face::Face;
    ng_expr* typed(ng_dtype t, const Values& v) { return leaf(shape(t, {int64_t(v.size())}), v); }
    template <class T>
    ng_expr* exact(ng_dtype t, const std::vector<T>& v)
    {
        ng_tensor* made = make(shape(t, {int64_t(v.size())}));
        REQUIRE(ng_tensor_put(made, v.data(), v.size() * sizeof(T), &error) == NG_OK);
        return ng_leaf(s, made);
    }
    template <class T>
    std::vector<T> bits(ng_expr* e)
    {
        ng_tensor* t = made(e);
        std::vector<T> v(count_of(shape_of(t)));
        REQUIRE(ng_tensor_get(t, v.data(), v.size() * sizeof(T), &error) == NG_OK);
        return v;
    }
};
Values some(size_t n, double scale, uint32_t seed)
{
    std::mt19937 random(seed);
    Values v(n);
    for (double& x : v) x = float(scale * (double(random()) / 2147483648. - 1));
    return v;
}
}

TEST_CASE("N1: arithmetic on narrow floats is f32 and gives f32; f32 and f64 give their own")
{
    Numbers f;
    for (ng_dtype t : FLOATS) {
        ng_expr* x = f.typed(t, {1, 1.5, -0.25});
        for (ng_expr* e : {ng_add(x, x), ng_mul(x, x), ng_exp(x), ng_neg(x), ng_maximum(x, x), ng_sum(x, NG_ALL, 0), ng_matmul(f.leaf(shape(t, {1, 1}), {1}), f.leaf(shape(t, {1, 1}), {1}), nullptr)})
            CHECK(f.type_of(e) == NG_F32);
        // 1 + 1/4096 fits f32 and none of these
        CHECK(differs(f.eval(ng_add(f.typed(t, {1}), ng_mul(f.typed(t, {1. / 64}), f.typed(t, {1. / 64})))), {1 + 1. / 4096}) == "");
    }
    CHECK(f.type_of(ng_exp(f.typed(NG_F64, {1}))) == NG_F64);
    CHECK(f.type_of(ng_mul(f.typed(NG_F32, {1}), f.typed(NG_F32, {1}))) == NG_F32);
}

TEST_CASE("N1: x * y + z rounds twice, fma once; plain arithmetic is the processor's to the bit")
{
    Numbers f;
    const size_t n = 4099;
    const Values a = some(n, 3, 1), b = some(n, 3, 2), z = some(n, 3, 3);
    ng_expr *x = f.leaf(a), *y = f.leaf(b), *w = f.leaf(z);
    Values twice(n), once(n), quotient(n), root(n), difference(n);
    for (size_t i = 0; i < n; i++) {
        twice[i] = float(float(a[i] * b[i]) + z[i]);
        once[i] = std::fma(float(a[i]), float(b[i]), float(z[i]));
        quotient[i] = float(a[i]) / float(b[i]), root[i] = std::sqrt(float(std::abs(a[i]))), difference[i] = float(a[i]) - float(b[i]);
    }
    CHECK(differs(f.eval(ng_add(ng_mul(x, y), w)), twice) == "");
    CHECK(differs(f.eval(ng_fma(x, y, w)), once) == "");
    CHECK(differs(twice, once) != "");
    CHECK(differs(f.eval(ng_div(x, y)), quotient) == "");
    CHECK(differs(f.eval(ng_sqrt(ng_abs(x))), root) == "");
    CHECK(differs(f.eval(ng_sub(x, y)), difference) == "");
}

TEST_CASE("N1: an element-wise result does not depend on what was fused with it or asked for beside it")
{
    Numbers f;
    ng_expr *x = f.leaf(some(1001, 4, 5)), *y = f.leaf(some(1001, 4, 6));
    ng_expr *inner = ng_mul(ng_tanh(x), ng_exp(y)), *plain = ng_log1p(ng_square(ng_add(inner, x)));
    ng_expr* walled = ng_log1p(ng_square(ng_add(ng_keep(ng_mul(ng_keep(ng_tanh(x)), ng_keep(ng_exp(y)))), x)));
    const Values want = f.eval(plain);
    CHECK(differs(f.eval(walled), want) == "");
    ng_tensor* both[3] = {};
    ng_expr* e[] = {inner, plain, ng_sum(plain, NG_ALL, 0)};
    REQUIRE(ng_eval(f.c, nullptr, e, both, 3, &f.error) == NG_OK);
    for (ng_tensor* t : both) f.keep(t);
    CHECK(differs(f.get(both[1]), want) == "");
    Values alone;
    for (int64_t i = 0; i < 1001; i += 77) alone.push_back(f.eval(ng_slice(plain, 0, i, i + 1, 1))[0] - want[size_t(i)]);
    CHECK(differs(alone, Values(alone.size(), 0)) == "");
}

TEST_CASE("N1: nor on what a compiler finds out: functions of numbers that are the same whatever goes in are the device's")
{
    Numbers f;
    ng_expr *i = f.param(0, shape(NG_I32, {3})), *u = f.param(1, shape(NG_U8, {3})), *x = f.param(2, shape(NG_F32, {3}));
    ng_expr* const one = ng_const_int(f.s, NG_I32, 1);
    ng_expr* const same[] = {ng_isfinite(i), ng_equal(i, i), ng_less_equal(u, u), ng_logical_not(ng_isnan(u)), ng_add(ng_sub(i, i), one), ng_logical_not(ng_signbit(u)), ng_logical_not(ng_greater(x, x))};
    using Word = ng_expr* (*)(ng_expr*);
    constexpr Word WORDS[] = {ng_tanh, ng_exp, ng_log1p, ng_sigmoid, ng_gelu};
    Exprs all;
    for (Word word : WORDS) {
        all.push_back(word(x));
        for (ng_expr* e : same) all.push_back(word(ng_cast(e, NG_F32)));
    }
    Tensors out;
    for (size_t n = 0; n < all.size(); n++) out.push_back(f.make(shape(NG_F32, {3})));
    REQUIRE(f.run(f.compile(all), {.args = {f.tensor(shape(NG_I32, {3}), {3, -7, 0}), f.tensor(shape(NG_U8, {3}), {3, 7, 0}), f.tensor({1, 1, 1})}, .out = out}) == NG_OK);
    const size_t each = std::size(same) + 1;
    for (size_t n = 0; n < all.size(); n++) CHECK(f.get(out[n]) == f.get(out[n / each * each]));
}

TEST_CASE("N2: casts to narrow floats round to nearest even; 8-bit floats saturate; NaN stays NaN")
{
    Numbers f;
    for (ng_dtype t : FLOATS) {
        const int bits = int(bytes_of(t)) * 8, m = mantissa_bits(t);
        Values values, want;
        const uint32_t top = bits == 16 ? 0x7fff : 0x7f;
        for (uint32_t code = 0; code < top; code += bits == 16 ? 37 : 1) {
            const double a = decode_narrow(code, bits, m), b = decode_narrow(code + 1, bits, m);
            if (!std::isfinite(a) || !std::isfinite(b)) continue;
            const double even = code & 1 ? b : a, middle = (a + b) / 2;
            for (double sign : {1., -1.}) {
                values.insert(values.end(), {sign * a, sign * middle, sign * float(middle + (b - a) / 8), sign * float(middle - (b - a) / 8)});
                want.insert(want.end(), {sign * a, sign * even, sign * b, sign * a});
            }
        }
        const double largest = t == NG_F16 ? 65504 : t == NG_BF16 ? std::ldexp(255, 120) : t == NG_E4M3 ? 448 : 57344;
        const bool saturates = bits == 8;
        values.insert(values.end(), {NOT_A_NUMBER, INF, -INF, 3e38, -3e38});
        const double over = saturates ? largest : INF, far = t == NG_BF16 ? decode_narrow(0x7f62, 16, 7) : over;
        want.insert(want.end(), {NOT_A_NUMBER, over, -over, far, -far});
        CHECK(differs(f.eval(ng_cast(f.leaf64(values), t)), want) == "");
        if (t != NG_F16) CHECK(differs(f.eval(ng_cast(f.leaf(values), t)), want) == "");   // f16's small middles are exact in f32 too
    }
}

TEST_CASE("N2: an infinite e5m2 saturates on its way back from a wider type, whatever stands between")
{
    Numbers f;
    ng_expr* const x = f.typed(NG_E5M2, {INF, -INF, 1.25, -0.0, NOT_A_NUMBER});
    const Values want = {57344, -57344, 1.25, -0.0, NOT_A_NUMBER};
    for (const ng_dtype wide : {NG_F16, NG_F32, NG_F64}) {
        ng_expr* const y = ng_cast(x, wide);
        CHECK(differs(f.eval(ng_cast(y, NG_E5M2)), want) == "");
        CHECK(differs(f.eval(ng_cast(ng_keep(y), NG_E5M2)), want) == "");
        CHECK(differs(f.eval(ng_cast(ng_mul(y, ng_const(f.s, wide, 1)), NG_E5M2)), want) == "");
    }
    CHECK(differs(f.eval(ng_cast(x, NG_E5M2)), {INF, -INF, 1.25, -0.0, NOT_A_NUMBER}) == "");
}

TEST_CASE("N2: floats to integers round half to even and saturate, NaN is 0; integers to narrower ones wrap")
{
    Numbers f;
    const Values v = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 127.5, 1e30, -1e30, INF, -INF, NOT_A_NUMBER, 254.5, 255.5, -0.};
    CHECK(differs(f.eval(ng_cast(f.leaf(v), NG_I8)), {0, 2, 2, 0, -2, -2, 126, 127, 127, -128, 127, -128, 0, 127, 127, 0}) == "");
    CHECK(differs(f.eval(ng_cast(f.leaf(v), NG_U8)), {0, 2, 2, 0, 0, 0, 126, 128, 255, 0, 255, 0, 0, 254, 255, 0}) == "");
    const auto wide = f.bits<int64_t>(ng_cast(f.leaf64({1e30, -1e30, 0.5, NOT_A_NUMBER, 9007199254740993.}), NG_I64));
    CHECK(wide == std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, 0, 9007199254740992});
    const auto unsigned_wide = f.bits<uint64_t>(ng_cast(f.leaf({3e38, -5, 2.5}), NG_U64));
    CHECK(unsigned_wide == std::vector<uint64_t>{UINT64_MAX, 0, 2});
    CHECK(differs(f.eval(ng_cast(f.typed(NG_I32, {300, -129, 65536, -1}), NG_I8)), {44, 127, 0, -1}) == "");
    CHECK(differs(f.eval(ng_cast(f.typed(NG_I32, {300, -1}), NG_U16)), {300, 65535}) == "");
    CHECK(differs(f.eval(ng_cast(f.leaf({0, -0., 0.1, NOT_A_NUMBER}), NG_BOOL)), {0, 0, 1, 1}) == "");
}

TEST_CASE("N2: a stochastic cast gives one of the two neighbours, on the mean what it rounded")
{
    Numbers f;
    constexpr size_t N = 20000;
    const double x = 1 + 0.3 / 1024;
    ng_expr* key = f.whole(11, NG_U64);
    const Values v = f.eval(ng_cast_stochastic(f.leaf(Values(N, float(x))), NG_F16, 0, key, nullptr));
    double sum = 0;
    for (double y : v) {
        CHECK((y == 1 || y == 1 + 1. / 1024));
        sum += y;
    }
    CHECK(std::abs((sum / N - 1) * 1024 - 0.3) < 5 * std::sqrt(0.3 * 0.7 / N) + 1e-3);
    CHECK(differs(f.eval(ng_cast_stochastic(f.leaf({2, -3, 0.5}), NG_F16, 0, key, nullptr)), {2, -3, 0.5}) == "");
}

TEST_CASE("N3: integers of all widths compute in their own type and wrap")
{
    Numbers f;
    for (ng_dtype t : WHOLE) {
        const int bits = int(bytes_of(t)) * 8;
        const bool is_signed = (t & 0xff) == 0;
        ng_expr* three = f.typed(t, {3});
        ng_expr* top = ng_const_int(f.s, t, is_signed ? int64_t((uint64_t(1) << (bits - 1)) - 1) : int64_t(bits == 64 ? UINT64_MAX : (uint64_t(1) << bits) - 1));
        for (ng_expr* e : {ng_add(three, three), ng_mul(three, three), ng_neg(three), ng_pow(three, three), ng_floor_div(three, three)}) CHECK(f.type_of(e) == t);
        const Values wrapped = f.eval(ng_add(three, top));
        CHECK(differs(wrapped, {is_signed ? 2 - std::ldexp(1, bits - 1) : 2.}, 0, 1e-15) == "");
        CHECK(f.type_of(ng_div(three, three)) == (bits >= 32 ? NG_F64 : NG_F32));
        CHECK(differs(f.eval(ng_div(three, f.typed(t, {2}))), {1.5}) == "");
        CHECK(differs(f.eval(ng_floor_div(three, f.typed(t, {0}))), {0}) == "");
        CHECK(differs(f.eval(ng_rem(three, f.typed(t, {0}))), {0}) == "");
    }
    ng_expr *x = f.typed(NG_I32, {7, -7, 7, -7}), *y = f.typed(NG_I32, {2, 2, -2, -2});
    CHECK(differs(f.eval(ng_floor_div(x, y)), {3, -4, -4, 3}) == "");
    CHECK(differs(f.eval(ng_rem(x, y)), {1, 1, -1, -1}) == "");
    CHECK(differs(f.eval(ng_fmod(x, y)), {1, -1, 1, -1}) == "");
    const auto least = f.bits<int32_t>(ng_floor_div(f.exact<int32_t>(NG_I32, {INT32_MIN}), f.typed(NG_I32, {-1})));
    CHECK(least[0] == INT32_MIN);
    CHECK(differs(f.eval(ng_rem(f.exact<int32_t>(NG_I32, {INT32_MIN}), f.typed(NG_I32, {-1}))), {0}) == "");
    CHECK(differs(f.eval(ng_shift_left(x, f.typed(NG_I32, {32}))), {0, 0, 0, 0}) == "");
    CHECK(differs(f.eval(ng_shift_right(x, f.typed(NG_I32, {40}))), {0, -1, 0, -1}) == "");
}

TEST_CASE("N4: the slope of a remainder is the whole quotient, also where the quotient rounds up to the next")
{
    Numbers f;
    for (const ng_dtype t : {NG_F32, NG_F64}) {
        ng_expr *x = f.typed(t, {1, -1, 7, -7, 0.25, 3}), *y = f.typed(t, {0.1, 0.1, 2, 2, 4, INFINITY});
        CHECK(f.slope(ng_fmod(x, y), y) == Values{-9, 9, -3, 3, 0, 0});
        CHECK(f.slope(ng_fmod(x, y), x) == Values{1, 1, 1, 1, 1, 1});
    }
}

TEST_CASE("N4: two operands: bool below integers below floats, the wider of a kind, the next signed type for mixed signs")
{
    Numbers f;
    const auto of = [&](ng_dtype a, ng_dtype b) { return f.type_of(ng_add(f.typed(a, {1}), f.typed(b, {1}))); };
    const auto is = [&](ng_dtype a, ng_dtype b, ng_dtype want) {
        INFO(a, " and ", b);
        CHECK(of(a, b) == want);
        CHECK(of(b, a) == want);
    };
    for (ng_dtype t : WHOLE) is(NG_BOOL, t, t);
    for (ng_dtype t : FLOATS) is(NG_BOOL, t, NG_F32), is(t, NG_F32, NG_F32), is(t, NG_F64, NG_F64), is(t, NG_F16, NG_F32);
    is(NG_I8, NG_I32, NG_I32), is(NG_I16, NG_I64, NG_I64), is(NG_U8, NG_U32, NG_U32), is(NG_U16, NG_U64, NG_U64);
    is(NG_U8, NG_I8, NG_I16), is(NG_U16, NG_I8, NG_I32), is(NG_U32, NG_I16, NG_I64), is(NG_U8, NG_I64, NG_I64), is(NG_U32, NG_I32, NG_I64);
    for (ng_dtype t : {NG_I8, NG_I16, NG_I32, NG_I64}) {
        CHECK(f.fault(ng_add(f.typed(NG_U64, {1}), f.typed(t, {1}))) == NG_E_DTYPE);
        CHECK(f.says("u64"));
    }
    for (ng_dtype t : WHOLE) {
        for (ng_dtype narrow : FLOATS) is(t, narrow, NG_F32);
        is(t, NG_F32, NG_F32), is(t, NG_F64, NG_F64);
    }
}

TEST_CASE("N4: a weak constant takes the type the arithmetic is done in; alone it is f32 or i32")
{
    Numbers f;
    ng_expr *point = ng_const(f.s, 0, 1.5), *whole = ng_const_int(f.s, 0, 2);
    for (ng_dtype t : FLOATS) CHECK(f.type_of(ng_mul(f.typed(t, {1}), point)) == NG_F32);
    CHECK(f.type_of(ng_mul(f.typed(NG_F64, {1}), point)) == NG_F64);
    CHECK(f.type_of(ng_mul(point, f.typed(NG_F64, {1}))) == NG_F64);
    for (ng_dtype t : WHOLE) {
        CHECK(f.type_of(ng_mul(f.typed(t, {1}), whole)) == t);
        CHECK(f.type_of(ng_mul(f.typed(t, {1}), point)) == NG_F32);
    }
    CHECK(f.type_of(point) == NG_F32);
    CHECK(f.type_of(whole) == NG_I32);
    CHECK(f.type_of(ng_add(whole, whole)) == NG_I32);
    CHECK(f.type_of(ng_pow(whole, ng_const_int(f.s, 0, -1))) == NG_F32);
    CHECK(differs(f.eval(f.text("2 ** -1")), {0.5}) == "");
    CHECK(differs(f.eval(f.text("i32(2) ** -1")), {0}) == "");
    CHECK(f.type_of(f.text("i8(2) * (7 - 2 ** 2)")) == NG_I8);
    CHECK(f.type_of(f.text("x + 1", "x", {f.typed(NG_U8, {1})})) == NG_U8);
    CHECK(f.type_of(f.text("x + 1.0", "x", {f.typed(NG_U8, {1})})) == NG_F32);
    CHECK(f.type_of(f.text("x * 0.1", "x", {f.typed(NG_F64, {1})})) == NG_F64);
    CHECK(differs(f.eval(f.text("x * 0.1", "x", {f.leaf64({1})})), {0.1}) == "");   // not f32's 0.1
    CHECK(f.type_of(ng_add(f.typed(NG_BOOL, {1}), whole)) == NG_I32);
}
