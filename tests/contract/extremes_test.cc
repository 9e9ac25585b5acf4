// Slopes where a formula meets 0 * inf although the function has a slope: of lengths, powers, angles and curves that settle.
#include "tests/contract/face.h"

namespace {

// 1 + x (1 - s) k (1 + 3 c x^2) times s, without overflow: where s is 0 or 1 the rest is nothing.
double gelu_tanh(double x) { return x / (1 + std::exp(-1.5957691216057308 * x * (1 + 0.044715 * x * x))); }
double gelu_tanh_slope(double x)
{
    if (std::abs(x) > 40) return x > 0;
    const double s = 1 / (1 + std::exp(-1.5957691216057308 * x * (1 + 0.044715 * x * x)));
    return s * (1 + x * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * x * x));
}
double greatest(ng_dtype t) { return t == NG_F16 ? 65504 : t == NG_F32 ? double(std::numeric_limits<float>::max()) : std::numeric_limits<double>::max(); }
double least(ng_dtype t) { return t == NG_F16 ? 0x1p-24 : t == NG_F32 ? 0x1p-149 : 0x1p-1074; }
// What the type's numbers are off by, of values near 1, for a sum of some terms.
double off(ng_dtype t) { return t == NG_F16 ? 0x1p-10 : t == NG_F32 ? 0x1p-19 : 0x1p-48; }
const ng_dtype TYPES[] = {NG_F16, NG_F32, NG_F64};

struct Extremes : Face {
    ng_expr* leaf_of(ng_dtype t, const Values& at) { return ng_leaf(s, tensor(shape(t, {int64_t(at.size())}), at)); }
    Values   wide(ng_expr* e) { return eval(ng_cast(e, NG_F64)); }
    // The derivative of the sum of y; again: of the sum of that.
    ng_expr* derived(ng_expr* y, ng_expr* x)
    {
        ng_expr* dx = nullptr;
        const ng_status got = ng_grad(&y, nullptr, 1, &x, &dx, 1, &error);
        REQUIRE_MESSAGE(got >= NG_OK, said());
        return dx;
    }
};

}  // namespace

TEST_CASE("D6: the length of zeros has the slope 0, and so have its slopes; other lengths are as they were")
{
    Extremes f;
    for (const ng_dtype t : TYPES) {
        CAPTURE(t);
        ng_expr *x = ng_leaf(f.s, f.tensor(shape(t, {4, 2}), {0, 0, 3, 4, -5, 12, 0, -2})), *y = ng_norm(x, NG_AXIS_1, 0);
        CHECK(differs(f.wide(y), {0, 5, 13, 2}) == "");
        ng_expr* dx = f.derived(y, x);
        CHECK(differs(f.wide(dx), {0, 0, 0.6, 0.8, -5 / 13., 12 / 13., 0, -1}, off(t), off(t)) == "");
        // d2(5)/dx dx summed: (1 - 0.6 (0.6 + 0.8)) / 5
        const Values second = f.wide(f.derived(dx, x));
        CHECK(second[0] == 0);
        CHECK(second[1] == 0);
        CHECK(std::abs(second[2] - (1 - 0.6 * 1.4) / 5) <= off(t));
        CHECK(std::abs(second[3] - (1 - 0.8 * 1.4) / 5) <= off(t));
        ng_expr* lost = f.leaf_of(t, {1, NOT_A_NUMBER});
        CHECK(std::isnan(f.wide(ng_norm(lost, NG_ALL, 0))[0]));
        CHECK(std::isnan(f.wide(f.derived(ng_norm(lost, NG_ALL, 0), lost))[0]));
    }
}

TEST_CASE("D5: to the power 0 everything is 1, and its slope 0, at 0, at infinities and NaN as well")
{
    Extremes f;
    for (const ng_dtype t : TYPES) {
        CAPTURE(t);
        const Values at = {0, -0.0, 1, -2, least(t), greatest(t), INF, -INF, NOT_A_NUMBER};
        ng_expr *x = f.leaf_of(t, at), *none = f.leaf_of(t, Values(at.size(), 0)), *y = ng_pow(x, none);
        CHECK(differs(f.wide(y), Values(at.size(), 1)) == "");
        CHECK(differs(f.wide(f.derived(y, x)), Values(at.size(), 0)) == "");
        CHECK(differs(f.wide(f.derived(ng_pow(x, ng_const(f.s, 0, 0)), x)), Values(at.size(), 0)) == "");
        // Elsewhere it is y x^(y - 1), with y a constant or not; by y it is log(x) x^y.
        const Values base = {0.5, 1, 2, 4}, power = {2, -1, 0.5, 3};
        ng_expr *b = f.leaf_of(t, base), *p = f.leaf_of(t, power);
        Values want, by_power;
        for (size_t i = 0; i < base.size(); i++) want.push_back(power[i] * std::pow(base[i], power[i] - 1)), by_power.push_back(std::log(base[i]) * std::pow(base[i], power[i]));
        CHECK(differs(f.wide(f.derived(ng_pow(b, p), b)), want, off(t), off(t)) == "");
        CHECK(differs(f.wide(f.derived(ng_pow(b, p), p)), by_power, off(t), off(t)) == "");
        CHECK(differs(f.wide(f.derived(ng_pow(b, ng_const(f.s, 0, 3)), b)), {0.75, 3, 12, 48}, off(t), off(t)) == "");
        // Of the slope by x the slope by y, at y = 0: 1 / x.
        ng_expr* zeros = f.leaf_of(t, {0, 0, 0, 0});
        CHECK(differs(f.wide(f.derived(f.derived(ng_pow(b, zeros), b), zeros)), {2, 1, 0.5, 0.25}, off(t), off(t)) == "");
    }
}

TEST_CASE("D5: gelu_tanh far from 0 has the slopes 1 and 0, where its cube is infinite as well")
{
    Extremes f;
    for (const ng_dtype t : TYPES) {
        CAPTURE(t);
        Values at = {0, 0.5, -0.5, 1, -1, 2, -3, 5, -5, 12, -12, 31.5, -31.5, 32, -32, 100, -100, 60000, -60000, greatest(t), -greatest(t)};
        if (t != NG_F16) at.insert(at.end(), {0x1p83, -0x1p83});     // about 1e25, whose cube no f32 holds
        ng_expr *x = f.leaf_of(t, at), *y = ng_gelu_tanh(x), *dx = f.derived(y, x);
        Values value, slope;
        for (const double v : at) value.push_back(v < -40 ? 0 : gelu_tanh(v)), slope.push_back(gelu_tanh_slope(v));
        CHECK(differs(f.wide(y), value, off(t) * 16, off(t) * 16) == "");
        CHECK(differs(f.wide(dx), slope, off(t) * 16, off(t) * 16) == "");
        const Values second = f.wide(f.derived(dx, x));
        for (size_t i = 0; i < at.size(); i++) {
            CAPTURE(at[i]);
            CHECK(std::isfinite(second[i]));
            if (std::abs(at[i]) > 32) CHECK(second[i] == 0);
        }
    }
}

TEST_CASE("D6: at infinity the slope of a row of one operand is its limit, where there is one, and so is the slope's slope of activations")
{
    Extremes f;
    for (const ng_dtype t : {NG_F32, NG_F64}) {
        ng_expr* x = f.leaf(shape(t, {2}), {-INF, INF});
        const auto at_ends = [&](const std::string& word, const Values& want) {
            CAPTURE(word);
            CHECK(differs(f.slope(f.text((word + "(x)").c_str(), "x", {x}), x), want, 0, 1e-6) == "");
        };
        for (const char* word : {"silu", "gelu", "gelu_tanh", "mish", "relu", "hard_swish", "softplus", "elu"}) at_ends(word, {0, 1});
        for (const char* word : {"sinc", "sigmoid", "sigmoid2", "tanh", "tanh2", "erf", "erfc", "normal_cdf", "atan", "asinh", "softsign", "relu6", "hard_sigmoid", "reciprocal", "cbrt"})
            at_ends(word, {0, 0});
        at_ends("selu", {0, 1.0507009873554805}), at_ends("log_sigmoid", {1, 0}), at_ends("abs", {-1, 1}), at_ends("square", {-INF, INF});
        at_ends("exp", {0, INF}), at_ends("exp2", {0, INF}), at_ends("expm1", {0, INF}), at_ends("sinh", {INF, INF}), at_ends("cosh", {-INF, INF});
        for (const char* word : {"silu", "gelu", "mish"}) {
            CAPTURE(word);
            CHECK(f.slope(f.grad({f.text((std::string(word) + "(x)").c_str(), "x", {x})}, {x})[0], x) == Values{0, 0});
        }
    }
}

TEST_CASE("D6: of two operands, one of them infinite: limits where there are any; equal infinities share logaddexp")
{
    Extremes f;
    for (const ng_dtype t : {NG_F32, NG_F64}) {
        const auto by = [&](const char* text, const Values& at, const Values& beside, const Values& by_x, const Values& by_y) {
            CAPTURE(text);
            ng_expr *x = f.leaf(shape(t, {int64_t(at.size())}), at), *y = f.leaf(shape(t, {int64_t(at.size())}), beside), *e = f.text(text, "x,y", {x, y});
            CHECK(differs(f.slope(e, x), by_x) == "");
            CHECK(differs(f.slope(e, y), by_y) == "");
        };
        by("atan2(x, y)", {1, -1, INF, -INF, INF, 0}, {INF, -INF, 2, 2, -INF, INF}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0});
        by("hypot(x, y)", {INF, -INF, 3, 3, 0}, {2, 0, INF, -INF, 0}, {1, -1, 0, 0, 0}, {0, 0, 1, -1, 0});
        by("logaddexp(x, y)", {INF, -INF, INF, -INF, 1}, {INF, -INF, -INF, 2, INF}, {0.5, 0.5, 1, 0, 0}, {0.5, 0.5, 0, 1, 1});
        by("x ** y", {0.5, -0.5, 3, INF, INF, 1}, {INF, INF, -INF, -2, -INF, -INF}, {0, 0, 0, 0, 0, -INF}, {0, 0, 0, 0, 0, 0});
        by("xlogy(x, y)", {0, 0, 2}, {0, 1, INF}, {-INF, 0, INF}, {0, 0, 0});
        ng_expr *x = f.leaf(shape(t, {3}), {0, 3, 0}), *y = f.leaf(shape(t, {3}), {0, 4, 2});
        CHECK(differs(f.slope(f.grad({f.text("hypot(x, y)", "x,y", {x, y})}, {x})[0], x), {0, 0.128, 0.5}, 1e-6, 1e-6) == "");
    }
    ng_expr* x = f.leaf({1, INF, 2});
    CHECK(f.slope(ng_logsumexp(x, NG_ALL, 0), x) == Values{0, 1, 0});
}

TEST_CASE("D6: std of equal numbers has the slope 0, and so has its slope")
{
    Extremes f;
    ng_expr* x = f.leaf(shape(NG_F32, {3, 2}), {2, 2, 1, 4, 0, 0});
    CHECK(f.eval(ng_std(x, NG_AXIS_1, 0)) == Values{0, 1.5, 0});
    CHECK(f.slope(ng_std(x, NG_AXIS_1, 0), x) == Values{0, 0, -0.5, 0.5, 0, 0});
    CHECK(f.slope(f.grad({ng_std(x, NG_AXIS_1, 0)}, {x})[0], x) == Values{0, 0, 0, 0, 0, 0});
}

TEST_CASE("D1: slopes are as good where a difference or a square inside them is not: sinc near 0, atan2 of great and small numbers")
{
    Extremes f;
    Values at;
    for (double x = 1e-12; x < 0.3; x *= 1.37) at.push_back(float(x)), at.push_back(-float(x));
    ng_expr* x = f.leaf(shape(NG_F32, {int64_t(at.size())}), at);
    Values want;
    const double pi2 = 9.869604401089358;
    for (const double v : at) {
        double sum = 0, term = v * pi2;                             // the series of (cos(pi x) - sinc(x)) / x: by 2 k / (2 k + 1)!
        for (int k = 1; k < 12; k++) {
            double factorial = 1;
            for (int i = 2; i <= 2 * k + 1; i++) factorial *= i;
            sum += (k % 2 ? -term : term) * 2 * k / factorial, term *= v * v * pi2;
        }
        want.push_back(sum);
    }
    CHECK(differs(f.slope(ng_sinc(x), x), want, 1e-44, 4e-6) == "");

    const Values ordinate = {1e20, 3e25, 1e-30, 2e-25, 1e30, 1e-3}, abscissa = {2e20, 1e25, 1e-30, -1e-25, 1, 1e30};
    ng_expr *u = f.leaf(shape(NG_F32, {6}), ordinate), *w = f.leaf(shape(NG_F32, {6}), abscissa), *angle = ng_atan2(u, w);
    Values by_u, by_w;
    for (size_t i = 0; i < ordinate.size(); i++) {
        const double a = float(ordinate[i]), b = float(abscissa[i]), all = a * a + b * b;
        by_u.push_back(b / all), by_w.push_back(-a / all);
    }
    CHECK(differs(f.slope(angle, u), by_u, 1e-44, 2e-6) == "");
    CHECK(differs(f.slope(angle, w), by_w, 1e-44, 2e-6) == "");
}
