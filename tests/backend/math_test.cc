// The CPU's own functions where they are hardest: near zeros and ones, at their ends, at angles of any size, densely.
#include "tests/backend/isa_tables.h"
#include "tests/backend/row_values.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <random>
#include <string>
#include <vector>

using namespace ng;
using namespace ng::cpu;

namespace {

template <class T> constexpr Dtype DTYPE_OF = std::is_same_v<T, float> ? Dtype::f32 : Dtype::f64;

// These functions are better than every backend must be: in units of the last place, of f32 and of f64.
struct Goal { Op op; double f32, f64; double low, high; double f32_wide = 0; };     // f32_wide: by curves_wide.h, where that is not f32
constexpr Goal GOALS[] = {
    {Op::exp,        1.07, 1.0,  -110,  95},  {Op::exp,        1.07, 1.0, -1, 1},        {Op::exp,        1.07, 1.0, -746, 710},
    {Op::exp2,       1.3,  1.3,  -152, 130},  {Op::exp2,       1.3, 1.3, -1, 1},         {Op::exp2,       1.3, 1.3, -1076, 1024},
    {Op::expm1,      1.6,  2.0,  -2,     2},  {Op::expm1,      1.6, 2.0, -40, 90},       {Op::expm1,      1.6, 2.0, -1e-3, 1e-3},
    {Op::log,        1.0,  1.0,  0.5,    2},  {Op::log,        1.0, 1.0, 0.99, 1.01},    {Op::log,        1.0, 1.0, 0, 1e-37},
    {Op::log2,       0.51, 1.0,  0.5,    2},  {Op::log2,       0.51, 1.0, 0.99, 1.01},   {Op::log10,      0.51, 1.0, 0.9, 1.1},
    {Op::log1p,      1.0,  1.0,  -0.99,  1},  {Op::log1p,      1.0, 1.0, -0.01, 0.01},   {Op::log1p,      1.0, 1.0, 0, 1e6},
    {Op::sin,        0.51, 0.8,  -10,   10},  {Op::sin,        0.51, 0.8, -1e6, 1e6},    {Op::sin,        0.51, 0.8, -1e30, 1e30},
    {Op::cos,        0.51, 0.8,  -10,   10},  {Op::cos,        0.51, 0.8, -1e6, 1e6},    {Op::cos,        0.51, 0.8, -1e30, 1e30},
    {Op::tan,        0.51, 2.5,  -10,   10},  {Op::tan,        0.51, 2.5, -1e6, 1e6},    {Op::tan,        0.51, 2.5, 1.5, 1.6},
    {Op::sinpi,      0.51, 1.3,  -4,     4},  {Op::cospi,      0.51, 1.0, -4, 4},        {Op::sinpi,      0.51, 1.3, -1e6, 1e6},
    {Op::asin,       0.51, 1.0,  -1,     1},  {Op::acos,       0.51, 1.0, -1, 1},        {Op::atan,       0.51, 1.0, -5, 5},
    {Op::sinh,       0.51, 2.5,  -2,     2},  {Op::cosh,       0.51, 1.6, -90, 90},      {Op::sinh,       0.51, 2.5, -711, 711},
    {Op::tanh,       2.5,  2.6,  -1, 1, 2.98}, {Op::tanh,      2.5, 2.6, -25, 25, 2.98}, {Op::tanh,       2.5, 2.6, -1e-3, 1e-3},
    {Op::asinh,      0.51, 2.0,  -5,     5},  {Op::acosh,      0.51, 2.3, 1, 5},         {Op::atanh,      0.51, 2.0, -1, 1},
    {Op::erf,        1.3,  1.6,  -1.2, 1.2},  {Op::erf,        1.3, 1.6, -6, 6},         {Op::erfc,       0.51, 5.0, -6, 27},
    {Op::normal_cdf, 5.0,  5.0,  -14.5,  9},  {Op::normal_cdf, 5.0, 5.0, -1, 1},         {Op::cbrt,       0.51, 0.7, -10, 10},
    {Op::sigmoid,    2.3,  2.4,  -110, 110, 3.15}, {Op::sigmoid, 2.3, 2.4, -2, 2, 3.15},  {Op::softplus,   2.0, 2.0, -20, 20},
    {Op::gelu,       9.0,  6.0,  -15,   15},  {Op::gelu,       9.0, 6.0, -1, 1},         {Op::silu,       6.0, 6.0, -105, 20},
};

template <class T>
void check_goal(const Goal& goal, double bound)
{
    std::mt19937_64 dice(uint64_t(goal.op));
    std::vector<T>  x;
    for (int i = 0; i < 20000; i++) x.push_back(T(goal.low + (goal.high - goal.low) * double(dice() >> 11) * 0x1p-53));
    // Multiples of pi / 2 as near as the type has them, where nothing is left of an angle but its last digits.
    if (goal.op == Op::sin || goal.op == Op::cos || goal.op == Op::tan)
        for (int i = 1; i < 20000; i++) x.push_back(T(i * 37 * 1.57079632679489661923132169163975144L));
    std::vector<long double> want;
    for (const T v : x) want.push_back(reference::Values<long double>::of(goal.op, (long double)v, 0.0L, 0.0L));
    for (const IsaTable* isa : tables()) {
        std::vector<T> out(x.size());
        isa->map[int(goal.op)][int(DTYPE_OF<T>)][MODE_ALL](out.data(), x.data(), nullptr, nullptr, int64_t(x.size()));
        double worst = 0;
        size_t at = 0;
        for (size_t i = 0; i < x.size(); i++) {
            const double d = reference::distance(out[i], want[i], 0);
            if (d > worst) worst = d, at = i;
        }
        const bool is_wide = std::is_same_v<T, float> && isa->vector_bytes == 64 && goal.f32_wide > 0;
        CHECK_MESSAGE(worst <= (is_wide ? goal.f32_wide : bound), worst, " ulp: ", std::string(isa->name), " ", std::string(name_of(goal.op)), " of ", x[at], " is ", out[at]);
    }
}

template <class T>
T run(const IsaTable* isa, Op op, T x, T y = 0)
{
    T out = 0;
    isa->map[int(op)][int(DTYPE_OF<T>)][MODE_ALL](&out, &x, &y, nullptr, 1);
    return out;
}
template <class T>
void check_ends()
{
    const T inf = std::numeric_limits<T>::infinity(), tiny = std::numeric_limits<T>::denorm_min();
    auto    is = [](T got, T want) { return (got != got && want != want) || (got == want && std::signbit(got) == std::signbit(want)); };
    const T nan = std::numeric_limits<T>::quiet_NaN();
    for (const IsaTable* isa : tables()) {
        for (const Op op : {Op::sin, Op::tan, Op::asin, Op::atan, Op::sinh, Op::tanh, Op::asinh, Op::atanh, Op::erf, Op::expm1, Op::log1p, Op::cbrt, Op::sinpi, Op::sqrt}) {
            CHECK_MESSAGE(is(run(isa, op, T(-0.0)), T(-0.0)), std::string(name_of(op)));
            CHECK_MESSAGE(is(run(isa, op, T(0)), T(0)), std::string(name_of(op)));
            CHECK_MESSAGE(run(isa, op, nan) != run(isa, op, nan), std::string(name_of(op)));
        }
        for (const Op op : {Op::sin, Op::tan, Op::asin, Op::atan, Op::sinh, Op::tanh, Op::asinh, Op::atanh, Op::expm1, Op::log1p})
            CHECK_MESSAGE(run(isa, op, -tiny) == -tiny, std::string(name_of(op)));   // no flush to zero
        CHECK(run(isa, Op::exp, -inf) == 0);
        CHECK(run(isa, Op::exp, inf) == inf);
        CHECK(run(isa, Op::exp, std::log(tiny)) == tiny);
        CHECK(run(isa, Op::exp2, std::log2(tiny)) == tiny);
        CHECK(run(isa, Op::log2, tiny) == std::log2(tiny));
        CHECK(run(isa, Op::log, T(0)) == -inf);
        CHECK(run(isa, Op::log, T(1)) == 0);
        CHECK(is(run(isa, Op::log, T(-1)), nan));
        CHECK(run(isa, Op::log1p, T(-1)) == -inf);
        CHECK(run(isa, Op::tanh, inf) == 1);
        CHECK(run(isa, Op::sigmoid, -inf) == 0);
        CHECK(run(isa, Op::erfc, inf) == 0);
        CHECK(run(isa, Op::erfc, -inf) == 2);
        CHECK(is(run(isa, Op::sin, inf), nan));
        CHECK(run(isa, Op::hypot, nan, -inf) == inf);
        CHECK(run(isa, Op::logaddexp, -inf, -inf) == -inf);
        CHECK(run(isa, Op::tanh2, T(1000)) == 1);
        CHECK(run(isa, Op::sigmoid2, T(-10000)) == 0);
        CHECK(run(isa, Op::pow, T(0), T(2)) == 0);
        CHECK(run(isa, Op::pow, nan, T(0)) == 1);
        CHECK(run(isa, Op::pow, T(1), nan) == 1);
        CHECK(is(run(isa, Op::pow, T(-2), T(0.5)), nan));
        CHECK(run(isa, Op::pow, T(-2), T(3)) == -8);
        CHECK(is(run(isa, Op::pow, T(-0.0), T(3)), T(-0.0)));
    }
}

// Numerators and a number whose quotients are as near as may be to halfway between two floats, and whatever else bits can be.
struct Quotients { float number; std::vector<float> x; };
Quotients quotients(std::mt19937_64& dice)
{
    const uint64_t b = 0x800000 | (dice() & 0x7fffff) | 1;
    const int      shift = dice() % 3 ? int(dice() % 60) - 53 : int(dice() % 200) - 140;
    Quotients q = {std::ldexp(float(b), shift) * (dice() % 2 ? 1.0f : -1.0f), {}};
    uint64_t inverse = b;                              // of b, modulo 2^25
    for (int i = 0; i < 5; i++) inverse *= 2 - b * inverse;
    for (uint64_t i = 0; i < 165; i++) {               // of the first sixteen two in 100,000 are wrong without the last correction
        const uint64_t half = inverse * (2 * i + 1) & 0x1ffffff;
        q.x.push_back(float((half * b) >> 25));
        if (i >= 64) q.x.back() = i % 2 ? std::ldexp(q.x.back(), int(dice() % 250) - 140) : std::bit_cast<float>(uint32_t(dice()));
    }
    for (const float v : {0.0f, -0.0f, INFINITY, -INFINITY, 0x1p-149f, 0x1.fffffep127f}) q.x[64 + dice() % 101] = v;
    return q;
}

}  // namespace

TEST_CASE("functions: quotients by one number are those of the processor, to the bit")
{
    std::mt19937_64 dice(13);
    for (int turn = 0; turn < 30000; turn++) {
        Quotients q = quotients(dice);
        if (turn < 8) q.number = std::array{0.0f, -0.0f, INFINITY, NAN, 0x1p-149f, 0x1.fffffep127f, 1.0f, -0x1p40f}[size_t(turn)];
        for (const IsaTable* isa : tables()) {
            std::vector<float> out(q.x.size());
            isa->map[int(Op::div)][int(Dtype::f32)][MODE_Y](out.data(), q.x.data(), &q.number, nullptr, int64_t(q.x.size()));
            size_t wrong = 0, at = 0;
            for (size_t i = 0; i < q.x.size(); i++) {
                const float want = q.x[i] / q.number;
                if (std::bit_cast<uint32_t>(out[i]) != std::bit_cast<uint32_t>(want) && (out[i] == out[i] || want == want)) wrong++, at = i;
            }
            REQUIRE_MESSAGE(wrong == 0, std::string(isa->name), ": ", q.x[at], " / ", q.number, " is ", out[at]);
        }
    }
}

TEST_CASE("functions: dense sweeps where they are hardest stay within what they reach today")
{
    for (const Goal& goal : GOALS) check_goal<float>(goal, goal.f32), check_goal<double>(goal, goal.f64);
}
TEST_CASE("functions: ends, signs of zero, NaN and denormals") { check_ends<float>(), check_ends<double>(); }
TEST_CASE("functions: powers of f64 are right to a place however large the exponent")
{
    std::mt19937_64 dice(9);
    for (const IsaTable* isa : tables()) {
        double worst = 0;
        for (int i = 0; i < 30000; i++) {
            const double u = double(dice() >> 11) * 0x1p-53, v = double(dice() >> 11) * 0x1p-53;
            const double x = i % 2 ? std::ldexp(1 + u, int(dice() % 2000) - 1000) : 1 + (u - 0.5) * std::ldexp(1.0, -int(dice() % 40));
            const double y = (v * 2 - 1) * 740 / std::abs(std::log(x) + 1e-300);
            worst = std::max(worst, reference::distance(run(isa, Op::pow, x, y), std::pow((long double)x, (long double)y), 0));
        }
        CHECK_MESSAGE(worst < 1.2, std::string(isa->name), " ", worst);
    }
}
TEST_CASE("functions: bits do not depend on where in a block an element stands")
{
    std::mt19937_64     dice(11);
    std::vector<double> x;
    for (int i = 0; i < 600; i++) x.push_back(i % 5 ? double(int64_t(dice())) * 0x1p-58 : std::ldexp(double(int64_t(dice())), -int(dice() % 64)));
    for (const IsaTable* isa : tables())
        for (const Op op : {Op::sin, Op::exp, Op::log, Op::tanh, Op::erf, Op::fmod, Op::pow}) {
            std::vector<double> out(x.size());
            isa->map[int(op)][int(Dtype::f64)][MODE_ALL](out.data(), x.data(), x.data() + 0, nullptr, int64_t(x.size()));
            size_t wrong = 0;
            for (size_t i = 0; i < x.size(); i++) {
                const double alone = run(isa, op, x[i], x[i]);
                wrong += alone != out[i] && !(alone != alone && out[i] != out[i]);
            }
            CHECK_MESSAGE(wrong == 0, std::string(isa->name), " ", std::string(name_of(op)));
        }
}
