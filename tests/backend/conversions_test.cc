// Loads, stores, streams, gathers and roundings of every dtype, on every instruction set: narrow types code by code.
#include "tests/backend/isa_tables.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace ng;
using namespace ng::cpu;

namespace {

constexpr Dtype NARROW[] = {Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2};

// The value of a code, by the fields of its format; e4m3 has no infinity and one NaN a sign.
double value_of(Dtype d, uint32_t code)
{
    const DtypeInfo& t = info(d);
    const int      bias = (1 << (t.exponent - 1)) - 1;
    const uint32_t m = code & ((1u << t.mantissa) - 1), e = (code >> t.mantissa) & ((1u << t.exponent) - 1);
    const double   sign = code >> (t.exponent + t.mantissa) ? -1 : 1, fraction = std::ldexp(double(m), -t.mantissa);
    const bool     is_top = e == (1u << t.exponent) - 1;
    if (d == Dtype::e4m3 ? is_top && m == 7 : is_top && m != 0) return std::nan("");
    if (d != Dtype::e4m3 && is_top) return sign * std::numeric_limits<double>::infinity();
    return sign * (e ? std::ldexp(1 + fraction, int(e) - bias) : std::ldexp(fraction, 1 - bias));
}
uint32_t codes_of(Dtype d) { return 1u << (8 * bytes_of(d)); }

// Every finite value from 0 up, and the rounding of any number by looking for its neighbours among them.
struct Ladder {
    Dtype               dtype;
    std::vector<double> steps;
    explicit Ladder(Dtype d) : dtype(d)
    {
        for (uint32_t code = 0; code < codes_of(d) / 2; code++)
            if (std::isfinite(value_of(d, code))) steps.push_back(value_of(d, code));
    }
    double nearest(long double x) const
    {
        if (x != x) return std::nan("");
        const bool        saturates = dtype == Dtype::e4m3 || dtype == Dtype::e5m2;
        const long double a = std::abs(x);
        const auto        up = size_t(std::lower_bound(steps.begin(), steps.end(), a) - steps.begin());
        double            r = 0;
        if (up == steps.size()) {
            const double top = steps.back(), next = top + (top - steps[steps.size() - 2]);
            const bool   is_over = a >= (top + (long double)next) / 2;
            r = !is_over || saturates ? top : std::numeric_limits<double>::infinity();
        } else if (up == 0 || steps[up] == a) {
            r = steps[up];
        } else {
            const long double low = a - steps[up - 1], high = steps[up] - a;
            r = low < high || (low == high && up % 2 == 1) ? steps[up - 1] : steps[up];
        }
        return std::copysign(r, double(x));
    }
};
bool same(double a, double b) { return (a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b)); }

// Numbers on, beside and halfway between a format's, and any bits at all.
std::vector<double> around(const Ladder& ladder)
{
    std::vector<double> v;
    const size_t stride = ladder.steps.size() > 4000 ? 7 : 1;
    auto put = [&](double x) {
        for (const double y : {x, std::nextafter(x, 0.0), std::nextafter(x, 1e300), double(std::nextafter(float(x), 0.0f)), double(std::nextafter(float(x), 1e38f))})
            v.push_back(y), v.push_back(-y);
    };
    for (size_t i = 0; i + 1 < ladder.steps.size(); i += stride) put(ladder.steps[i]), put((ladder.steps[i] + ladder.steps[i + 1]) / 2);
    const double top = ladder.steps.back(), step = top - ladder.steps[ladder.steps.size() - 2];
    put(top), put(top + step / 2), put(top + step), put(1e300);
    v.push_back(std::numeric_limits<double>::infinity()), v.push_back(-v.back()), v.push_back(std::nan(""));
    return v;
}

template <class From>
std::vector<From> integers()
{
    std::mt19937_64   dice(3);
    std::vector<From> v = {std::numeric_limits<From>::min(), std::numeric_limits<From>::max(), 0, 1, From(-1)};
    for (int i = 0; i < 20000; i++) {
        const uint64_t u = dice();
        const int      shift = int(dice() % (8 * sizeof(From)));
        v.push_back(From(From(u) >> shift));
        v.push_back(From((uint64_t(1) << shift) + (uint64_t(1) << (u % 64) >> 20) - u / 2 % 2));
        v.push_back(From(0 - uint64_t(v.back())));
    }
    // Halfway between neighbours of a narrow float, and by a last bit beyond.
    for (int i = 0; i < int(8 * sizeof(From)); i++)
        for (const int bit : {3, 4, 8, 11}) {
            const uint64_t power = uint64_t(1) << i, half = power | power >> bit;
            for (const uint64_t u : {half, half | 1, 0 - half, 0 - (half | 1)}) v.push_back(From(u));
        }
    return v;
}

// Rounds half to even, saturates, NaN is 0.
template <class To>
To integer_of(double x)
{
    if (x != x) return 0;
    const double r = std::nearbyint(x);
    if (r <= double(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return r >= std::ldexp(1.0, std::numeric_limits<To>::digits) ? std::numeric_limits<To>::max() : To(r);
}

template <class From, class To>
void check_numbers(const std::vector<From>& from)
{
    std::vector<To> out(from.size());
    for (const IsaTable* isa : tables()) {
        isa->convert[int(DTYPE_OF<From>)][int(DTYPE_OF<To>)](out.data(), from.data(), int64_t(from.size()));
        for (size_t i = 0; i < from.size(); i++) {
            bool is_right = false;
            if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) is_right = out[i] == integer_of<To>(from[i]);
            else if constexpr (std::is_floating_point_v<To> && std::is_floating_point_v<From>) is_right = same(out[i], To(from[i]));
            else is_right = out[i] == To(from[i]);
            if (is_right) continue;
            CHECK_MESSAGE(false, std::string(isa->name), " ", int(DTYPE_OF<From>), " to ", int(DTYPE_OF<To>), ": ", from[i], " became ", +out[i]);
            return;
        }
        CHECK(true);
    }
}
template <class From>
void check_to_all(const std::vector<From>& from)
{
    check_numbers<From, int8_t>(from), check_numbers<From, int16_t>(from), check_numbers<From, int32_t>(from), check_numbers<From, int64_t>(from);
    check_numbers<From, uint8_t>(from), check_numbers<From, uint16_t>(from), check_numbers<From, uint32_t>(from), check_numbers<From, uint64_t>(from);
    check_numbers<From, float>(from), check_numbers<From, double>(from);
    std::vector<uint8_t> truth(from.size());
    for (const IsaTable* isa : tables()) {
        isa->convert[int(DTYPE_OF<From>)][int(Dtype::bool_)](truth.data(), from.data(), int64_t(from.size()));
        bool is_right = true;
        for (size_t i = 0; i < from.size(); i++) is_right &= truth[i] == (from[i] != From(0));
        CHECK(is_right);
    }
}
template <class From>
void check_to_narrow(const Ladder& ladder, const std::vector<From>& from)
{
    std::vector<float> out(from.size());
    for (const IsaTable* isa : tables()) {
        isa->convert[int(DTYPE_OF<From>)][int(ladder.dtype)](out.data(), from.data(), int64_t(from.size()));
        for (size_t i = 0; i < from.size(); i++) {
            const double want = ladder.nearest((long double)from[i]);
            if (same(out[i], want)) continue;
            CHECK_MESSAGE(false, std::string(isa->name), " ", int(ladder.dtype), " of ", from[i], " became ", out[i], ", should be ", want);
            return;
        }
        CHECK(true);
    }
}
template <class To>
std::vector<To> as(const std::vector<double>& v)
{
    std::vector<To> r;
    for (const double x : v) r.push_back(To(x));
    return r;
}

}  // namespace

TEST_CASE("conversions: every code of the narrow floats is loaded, and stored again as it was")
{
    for (const Dtype d : NARROW) {
        const uint32_t        n = codes_of(d);
        std::vector<uint16_t> codes(n), back(n);
        std::vector<uint8_t>  bytes(n), bytes_back(n);
        for (uint32_t i = 0; i < n; i++) codes[i] = uint16_t(i), bytes[i] = uint8_t(i);
        const bool  is_byte = bytes_of(d) == 1;
        const void* in = is_byte ? static_cast<const void*>(bytes.data()) : codes.data();
        void*       out = is_byte ? static_cast<void*>(bytes_back.data()) : back.data();
        for (const IsaTable* isa : tables()) {
            std::vector<float> held(n);
            isa->load[int(d)](held.data(), in, 1, n);
            isa->store[int(d)](out, 1, held.data(), n);
            uint32_t wrong = 0;
            for (uint32_t i = 0; i < n; i++) {
                wrong += !same(held[i], value_of(d, i));
                const uint32_t code = is_byte ? bytes_back[i] : back[i];
                wrong += held[i] == held[i] ? code != i : !std::isnan(value_of(d, code));
            }
            CHECK_MESSAGE(wrong == 0, std::string(isa->name), " ", std::string(name_of(d)));
        }
    }
}
TEST_CASE("conversions: floats and doubles round once to the nearest narrow float, of two to the even one")
{
    for (const Dtype d : NARROW) {
        const Ladder              ladder(d);
        const std::vector<double> v = around(ladder);
        check_to_narrow(ladder, as<float>(v));
        check_to_narrow(ladder, v);
        std::vector<float> any;
        for (uint64_t u = 0; u < uint64_t(1) << 32; u += 20011) any.push_back(std::bit_cast<float>(uint32_t(u)));
        check_to_narrow(ladder, any);
        std::mt19937_64     dice(1);
        std::vector<double> doubles;
        for (int i = 0; i < 20000; i++) doubles.push_back(i % 2 ? std::bit_cast<double>(dice()) : std::ldexp(double(dice() >> 11), -int(dice() % 90)));
        check_to_narrow(ladder, doubles);
    }
}
TEST_CASE("conversions: integers round once to the nearest narrow float")
{
    for (const Dtype d : NARROW) {
        const Ladder ladder(d);
        check_to_narrow(ladder, integers<int8_t>()), check_to_narrow(ladder, integers<int16_t>());
        check_to_narrow(ladder, integers<int32_t>()), check_to_narrow(ladder, integers<int64_t>());
        check_to_narrow(ladder, integers<uint8_t>()), check_to_narrow(ladder, integers<uint16_t>());
        check_to_narrow(ladder, integers<uint32_t>()), check_to_narrow(ladder, integers<uint64_t>());
    }
}
TEST_CASE("conversions: floats to integers round to even and saturate, NaN is 0; integers wrap")
{
    std::vector<double> v = {0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 1e300, -1e300, std::nan("")};
    v.push_back(std::numeric_limits<double>::infinity()), v.push_back(-v.back());
    for (int i = 5; i <= 64; i++)
        for (const double x : {std::ldexp(1.0, i), std::ldexp(1.0, i) - 0.5, std::ldexp(1.0, i) - 1, std::nextafter(std::ldexp(1.0, i), 0.0),
                               double(std::nextafter(float(std::ldexp(1.0, i)), 0.0f)), std::ldexp(1.0, i) + 0.5})
            v.push_back(x), v.push_back(-x);
    std::mt19937_64 dice(2);
    for (int i = 0; i < 20000; i++) v.push_back(std::ldexp(double(int64_t(dice())), -int(dice() % 70)));
    check_to_all(v);
    check_to_all(as<float>(v));
    check_to_all(integers<int8_t>()), check_to_all(integers<int16_t>()), check_to_all(integers<int32_t>()), check_to_all(integers<int64_t>());
    check_to_all(integers<uint8_t>()), check_to_all(integers<uint16_t>()), check_to_all(integers<uint32_t>()), check_to_all(integers<uint64_t>());
}
TEST_CASE("conversions: loads and stores of any stride, gathers and streams move the elements they should")
{
    std::vector<unsigned char> memory(8 * 1000);
    std::mt19937               dice(4);
    for (auto& byte : memory) byte = (unsigned char)(dice());
    for (const IsaTable* isa : tables())
        for (int d = 0; d < DTYPES; d++) {
            const int bytes = bytes_of(Dtype(d)), held = bytes_of(compute_of(Dtype(d)));
            std::vector<char> whole(8 * 1000), part(8 * 1000);
            isa->load[d](whole.data(), memory.data(), 1, 1000);
            for (const int stride : {0, 1, 2, 3, -1, -4}) {
                const int64_t count = 133, first = stride < 0 ? 900 : 5;
                isa->load[d](part.data(), memory.data() + first * bytes, stride, count);
                for (int64_t i = 0; i < count; i++) REQUIRE(!memcmp(part.data() + i * held, whole.data() + (first + i * stride) * held, size_t(held)));
                std::vector<unsigned char> to(8 * 1000, 77), want(8 * 1000, 77);
                if (stride == 0) continue;
                isa->store[d](to.data() + first * bytes, stride, whole.data(), count);
                std::vector<unsigned char> dense(8 * 1000);
                isa->store[d](dense.data(), 1, whole.data(), count);
                for (int64_t i = 0; i < count; i++) memcpy(&want[size_t((first + i * stride) * bytes)], &dense[size_t(i * bytes)], size_t(bytes));
                CHECK(to == want);
            }
            alignas(64) static unsigned char line[8 * 1000];
            std::vector<unsigned char> dense(8 * 192);
            isa->store[d](dense.data(), 1, whole.data(), 192);
            isa->stream[d](line, whole.data(), 192);
            CHECK(!memcmp(line, dense.data(), size_t(192 * bytes)));
            const int64_t index[] = {0, 5, -1, 99, 100, 1, INT64_MIN, INT64_MAX, 42};
            isa->gather[d](part.data(), memory.data(), index, 100, 3, 9);
            for (int i = 0; i < 9; i++) {
                const char nothing[8] = {};
                const bool is_inside = index[i] >= 0 && index[i] < 100;
                CHECK(!memcmp(part.data() + i * held, is_inside ? whole.data() + index[i] * 3 * held : nothing, size_t(held)));
            }
            isa->gather[d](part.data(), nullptr, index, 0, 1, 2);
        }
}
TEST_CASE("conversions: a truth is loaded from any byte that is not zero")
{
    uint8_t in[256], out[256];
    for (int i = 0; i < 256; i++) in[i] = uint8_t(i);
    for (const IsaTable* isa : tables()) {
        isa->load[int(Dtype::bool_)](out, in, 1, 256);
        for (int i = 0; i < 256; i++) CHECK(out[i] == (i != 0));
    }
}
TEST_CASE("conversions: stochastic rounding picks one of two neighbours by the word, and never moves a number of the type")
{
    for (const Dtype d : NARROW) {
        const Ladder          ladder(d);
        const size_t          n = ladder.steps.size();
        std::mt19937_64       dice(6);
        std::vector<float>    x, want;
        std::vector<uint32_t> word;
        auto put = [&](double v, uint32_t w, double r) { x.push_back(float(v)), word.push_back(w), want.push_back(float(r)); };
        for (size_t i = 0; i + 1 < n; i += n > 1000 ? 13 : 1)
            for (const double sign : {1.0, -1.0}) {
                const double low = ladder.steps[i] * sign, high = ladder.steps[i + 1] * sign;
                put(low, 0, low), put(low, uint32_t(dice()), low);
                // Half, a quarter and an eighth of the way: exact in f32 but for the smallest of bf16.
                for (const double part : {0.5, 0.25, 0.625}) {
                    const double between = low + (high - low) * part;
                    if (double(float(between)) != between) continue;
                    const double edge = part * 4294967296.0;
                    put(between, uint32_t(edge - 1), high), put(between, uint32_t(edge), low), put(between, 0, high), put(between, 0xffffffff, low);
                }
            }
        const bool   saturates = d == Dtype::e4m3 || d == Dtype::e5m2;
        const double top = ladder.steps.back(), infinite = std::numeric_limits<double>::infinity();
        put(top * 1.001, 0, saturates ? top : infinite), put(-infinite, 5, saturates ? -top : -infinite), put(std::nan(""), 5, std::nan(""));
        std::vector<double> wide(x.begin(), x.end());
        for (const IsaTable* isa : tables()) {
            std::vector<float> out(x.size()), out64(x.size());
            isa->stochastic[0][int(d)](out.data(), x.data(), word.data(), 0, int64_t(x.size()));
            isa->stochastic[1][int(d)](out64.data(), wide.data(), word.data(), info(d).mantissa, int64_t(x.size()));
            for (size_t i = 0; i < x.size(); i++) {
                if (same(out[i], want[i]) && same(out64[i], want[i])) continue;
                CHECK_MESSAGE(false, std::string(isa->name), " ", int(d), ": ", x[i], " by ", word[i], " became ", out[i], " and ", out64[i], ", should be ", want[i]);
                break;
            }
        }
    }
}
TEST_CASE("conversions: stochastic rounding keeps as many bits as it is told, of f32 and f64 as well")
{
    for (const IsaTable* isa : tables()) {
        const float    x[] = {1 + 0x1p-5f * 0.75f, 1 + 0x1p-5f * 0.75f, 1 + 0x1p-5f, 0x1.8p-149f, -3.0f, 0};
        const uint32_t word[] = {0xbfffffff, 0xc0000000, 0xffffffff, 1, 0, 0};
        float          out[6];
        double         wide[6], in[6];
        for (int i = 0; i < 6; i++) in[i] = x[i];
        isa->stochastic[0][int(Dtype::f32)](out, x, word, 5, 6);
        CHECK(out[0] == 1 + 0x1p-5f);
        CHECK(out[1] == 1);
        CHECK(out[2] == 1 + 0x1p-5f);
        CHECK(out[3] == 0x1p-131f);   // one place of 5 bits among the denormal ones
        CHECK(out[4] == -3);
        CHECK(out[5] == 0);
        isa->stochastic[1][int(Dtype::f64)](wide, in, word, 5, 6);
        CHECK(wide[0] == 1 + 0x1p-5);
        CHECK(wide[1] == 1);
        CHECK(wide[2] == 1 + 0x1p-5);
        CHECK(wide[4] == -3);
        CHECK(wide[5] == 0);
        isa->stochastic[0][int(Dtype::f64)](wide, x, word, 5, 6);
        CHECK(wide[0] == 1 + 0x1p-5);
        CHECK(wide[1] == 1);
        CHECK(wide[3] == in[3]);
        CHECK(wide[5] == 0);
        isa->stochastic[1][int(Dtype::f32)](out, in, word, 0, 6);
        for (int i = 0; i < 6; i++) CHECK(out[i] == x[i]);
    }
}
