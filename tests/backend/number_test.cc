// Constants folded when an expression is built are the numbers that the loops would have given, for every row and type.
#include "jit/error.h"
#include "jit/number.h"
#include "tests/backend/isa_tables.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace ng;
using namespace ng::cpu;

namespace {

// A register of a compute type, with room for the widest.
struct alignas(64) Register {
    unsigned char bytes[64] = {};
};
Register written(const Number& v, Dtype compute)
{
    Register r;
    const int64_t bits = v.bits(compute);
    const double  real = std::bit_cast<double>(bits);
    const float   single = float(real);
    if (compute == Dtype::f64) std::memcpy(r.bytes, &real, 8);
    else if (compute == Dtype::f32) std::memcpy(r.bytes, &single, 4);
    else std::memcpy(r.bytes, &bits, size_t(bytes_of(compute)));
    return r;
}
Number read(const Register& r, Dtype compute)
{
    if (compute == Dtype::f64) {
        double v;
        std::memcpy(&v, r.bytes, 8);
        return Number(v);
    }
    if (compute == Dtype::f32) {
        float v;
        std::memcpy(&v, r.bytes, 4);
        return Number(double(v)).as(Dtype::f32);
    }
    uint64_t v = 0;
    std::memcpy(&v, r.bytes, size_t(bytes_of(compute)));
    const int unused = 64 - 8 * bytes_of(compute);
    const bool is_int = info(compute).kind == Kind::Int;
    return Number::of_bits(compute, is_int ? int64_t(v << unused) >> unused : int64_t(v));
}
bool same(const Number& a, const Number& b, Dtype t)
{
    if (is_float(t) && a.real() != a.real()) return b.real() != b.real();
    return a.bits(t) == b.bits(t);
}

// Numbers that hurt, of a dtype, as it holds them.
std::vector<Number> edges(Dtype t)
{
    std::vector<Number> v;
    if (is_bool(t)) return {Number::of_bits(t, 0), Number::of_bits(t, 1)};
    if (is_float(t)) {
        using D = std::numeric_limits<double>;
        using F = std::numeric_limits<float>;
        std::vector<double> some = {0, 0.1, 0.5, 0.75, 1, 1.5, 2, 2.5, 3.5, 7, 127.5, 128, 255.5, 256, 65504, 65519.9, 65520, 1e10, 1e-10, 448, 464, 57344, 61440, 2147483647.5,
                                    2147483648, 4294967295.5, 4294967296, 9007199254740994.0, 9223372036854774784.0, 9223372036854775808.0, 18446744073709549568.0,
                                    18446744073709551616.0, 1e39, 1e300, D::max(), F::max(), D::min(), F::min(), D::denorm_min(), F::denorm_min(), D::epsilon(), F::epsilon(),
                                    0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-17, 0x1p-10, 0x1p-133, 0x1p-134, 1 + D::epsilon(), 1 + double(F::epsilon()) / 2, D::infinity(), D::quiet_NaN()};
        for (const double x : some)
            for (const double y : {x, -x}) v.push_back(Number(y).as(t));
        return v;
    }
    const int bits = 8 * bytes_of(t);
    const auto put = [&](uint64_t x) { v.push_back(Number(int64_t(x)).as(t)); };
    for (int i = 0; i < 6; i++) put(uint64_t(i)), put(uint64_t(-i));
    for (int i = 3; i <= bits; i += i < 24 ? 3 : 1) {
        const uint64_t power = i == 64 ? 0 : uint64_t(1) << i;
        put(power), put(power - 1), put(power + 1), put(uint64_t(0) - power), put(power | power >> 24 | 1), put(power | power >> 25), put(power | power >> 8 | 1);
    }
    return v;
}

std::string said(const Number& n) { return is_float(n.type()) ? std::to_string(n.real()) : std::to_string(n.integer()); }

// The loop's result for one element.
Number looped(MapLoop loop, Op op, Dtype t, const Number& x, const Number& y)
{
    const Register a = written(x, t), b = written(y, t);
    Register out;
    loop(out.bytes, a.bytes, b.bytes, b.bytes, 1);
    return read(out, info(op).result == Result::Bool ? Dtype::bool_ : t);
}

}  // namespace

TEST_CASE("folding: a map of constants is what every instruction set's loop gives, for every row, type and edge")
{
    int folded = 0;
    for (const IsaTable* isa : tables())
        for (int i = 0; i < OPS; i++) {
            const Op op = Op(i);
            if (!is_map(op) || info(op).arity > 2) continue;
            for (int d = 0; d < COMPUTE_TYPES; d++) {
                const Dtype t = Dtype(d);
                const MapLoop loop = isa->map[i][d][MODE_ALL];
                const std::vector<Number> some = edges(t);
                for (const Number& x : some)
                    for (const Number& y : some) {
                        const Number both[] = {x, y};
                        const auto r = fold_map(op, t, std::span(both, info(op).arity));
                        if (!r) continue;
                        REQUIRE(bool(loop));
                        folded++;
                        const Number want = looped(loop, op, t, x, y);
                        if (same(*r, want, want.type())) continue;
                        FAIL_CHECK(text(isa->name, ": ", name_of(op), " of ", name_of(t), " ", said(x), ", ", said(y), " folds to ", said(*r), ", the loop gives ", said(want)));
                    }
            }
        }
    CHECK(folded > 100000);
}

TEST_CASE("folding: operations that devices may round apart are left alone, and so are three operands")
{
    const Number two(2.0), half(0.5);
    for (int i = 0; i < OPS; i++) {
        const Op op = Op(i);
        if (!is_map(op) || info(op).ulp == 0) continue;
        const Number some[] = {two, half};
        INFO(text(name_of(op)));
        CHECK_FALSE(fold_map(op, Dtype::f32, std::span(some, std::min<int>(info(op).arity, 2))));
    }
    const Number three[] = {two, half, two};
    CHECK_FALSE(fold_map(Op::fma, Dtype::f32, three));
}

TEST_CASE("conversions: a constant cast is what every instruction set's loop stores, between all pairs of types")
{
    int converted = 0;
    for (const IsaTable* isa : tables())
        for (int from = 0; from < DTYPES; from++)
            for (int to = 0; to < DTYPES; to++) {
                const Dtype a = Dtype(from), b = Dtype(to), held = compute_of(b);
                const ConvertLoop loop = isa->convert[int(compute_of(a))][to];
                if (a == b || !loop) continue;
                for (const Number& x : edges(a)) {
                    const Register in = written(x, compute_of(a));
                    Register out;
                    loop(out.bytes, in.bytes, 1);
                    const Number want = read(out, held), got = x.as(b);
                    converted++;
                    if (same(got, want, held)) continue;
                    FAIL_CHECK(text(isa->name, ": ", name_of(a), " ", said(x), " to ", name_of(b), " is ", said(got), ", the loop gives ", said(want)));
                }
            }
    CHECK(converted > 10000);
}

TEST_CASE("numbers: bits are what a constant node holds, there and back, and a cast is its own last word")
{
    for (int d = 0; d < DTYPES; d++) {
        const Dtype t = Dtype(d);
        for (const Number& x : edges(t)) {
            INFO(text(name_of(t), " ", said(x)));
            CHECK(x.type() == t);
            CHECK(same(Number::of_bits(t, x.bits(t)), x, t));
            CHECK(same(x.as(t), x, t));
        }
    }
    CHECK(Number::of_bits(Dtype::u64, -1).real() == 18446744073709551616.0);
    CHECK(Number(int64_t(-1)).as(Dtype::u8).integer() == 255);
    CHECK(Number(int64_t(255)).as(Dtype::i8).integer() == -1);
    CHECK(Number(int64_t(256)).as(Dtype::bool_).integer() == 1);
    CHECK(Number(std::nan("")).as(Dtype::bool_).integer() == 1);
}
