// Folds, argument folds and random numbers of blocks: right, and the same bits on every instruction set.
#include "tests/backend/isa_tables.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

using namespace ng;
using namespace ng::cpu;

namespace {

constexpr int COUNTS[] = {1, 2, 31, 32, 33, 64, 257, 1000};

template <class T>
std::vector<T> numbers(int count, int seed)
{
    std::mt19937_64 dice{uint64_t(seed)};
    std::vector<T>  v;
    for (int i = 0; i < count; i++) v.push_back(std::is_floating_point_v<T> ? T(double(dice() >> 11) * 0x1p-53 * 3 - 1.5) : T(dice()));
    return v;
}
template <class T> bool same(T a, T b) { return a == b || (a != a && b != b); }

// The fold one by one, in A.
template <class T, class A>
A naive(Op op, A start, const T* x, int count)
{
    using Wraps = std::conditional_t<std::is_integral_v<A>, uint64_t, A>;
    A r = start;
    for (int i = 0; i < count; i++) {
        const A v = A(x[i]);
        if (op == Op::sum) r = A(Wraps(r) + Wraps(v));
        else if (op == Op::prod) r = A(Wraps(r) * Wraps(v));
        else if (op == Op::min) r = r < v || r != r ? r : v;
        else r = r > v || r != r ? r : v;
    }
    return r;
}

template <class T, class A>
void check_fold(Op op)
{
    constexpr int d = int(DTYPE_OF<T>);
    for (const int count : COUNTS) {
        std::vector<T> x = numbers<T>(count, count);
        std::vector<A> results;
        for (const IsaTable* isa : tables()) {
            const FoldLoops& f = isa->fold[int(op)][d];
            A                a = A(x[0]);
            f.along(&a, x.data(), count);
            results.push_back(a);
            A exact = A(x[0]);
            f.exact(&exact, x.data(), count);
            const A want = naive(op, A(x[0]), x.data(), count);
            if (std::is_floating_point_v<T> && (op == Op::sum || op == Op::prod)) {
                // Each of count roundings is at most half a place of the sum of magnitudes; two of a sum of f32 may be f32's.
                double magnitude = std::abs(double(x[0]));
                for (const T v : x) magnitude += std::abs(double(v));
                const double bound = op == Op::sum ? count * 0x1p-52 * magnitude : count * 0x1p-51 * std::abs(double(want));
                const double narrow = std::is_same_v<T, A> || op != Op::sum ? 0 : 2 * 0x1p-24 * magnitude;
                CHECK(std::abs(double(exact) - double(want)) <= bound);
                CHECK_MESSAGE(std::abs(double(a) - double(want)) <= bound + narrow, std::string(isa->name), " ", std::string(name_of(op)), " of ", count);
            } else {
                CHECK(same(exact, want));
                CHECK_MESSAGE(same(a, want), std::string(isa->name), " ", std::string(name_of(op)), " ", d, " of ", count);
            }
            std::vector<A> lanes(size_t(count), A(3)), merged = lanes;
            const auto     y = numbers<T>(count, count + 1);
            f.across(lanes.data(), y.data(), count);
            f.merge(merged.data(), lanes.data(), count);
            bool is_right = true;
            for (int i = 0; i < count; i++) {
                const A one = naive(op, A(3), &y[size_t(i)], 1);
                is_right &= same(lanes[size_t(i)], one) && same(merged[size_t(i)], naive(op, A(3), &one, 1));
            }
            CHECK_MESSAGE(is_right, std::string(isa->name), " ", std::string(name_of(op)), " ", d, " across ", count);
        }
        for (const A& r : results) CHECK(!memcmp(&r, results.data(), sizeof r));
    }
}
template <class T, class A>
void check_folds()
{
    check_fold<T, A>(Op::sum), check_fold<T, A>(Op::prod), check_fold<T, T>(Op::min), check_fold<T, T>(Op::max);
}

// Rows of memory, `stride` apart, summed in f64; codes are of numbers that f32 adds up to four of without rounding.
void check_rows(Dtype type, int rows, int columns, bool is_far)
{
    const int64_t stride = columns + 3;
    std::mt19937_64 dice{uint64_t(rows * 8 + columns)};
    std::vector<uint64_t> memory(size_t(rows * stride + 1));
    std::vector<double>   want(size_t(columns), 1.0);
    std::vector<float>    numbers(size_t(rows * stride));
    for (float& v : numbers) v = float(int(dice() % 200) - 100) / 8;
    tables().front()->store[int(type)](memory.data(), 1, numbers.data(), int64_t(numbers.size()));
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) want[size_t(c)] += double(numbers[size_t(r * stride + c)]);
    for (const IsaTable* isa : tables()) {
        if (!isa->sum_rows[int(type)]) continue;
        std::vector<double> sums(size_t(columns + 1), 1.0);
        isa->sum_rows[int(type)]({memory.data(), stride, rows, columns, sums.data(), is_far});
        CHECK_MESSAGE(std::equal(want.begin(), want.end(), sums.begin()), std::string(isa->name), " ", std::string(name_of(type)), " ", rows, " x ", columns);
        CHECK(sums.back() == 1.0);
        // Sums that begin here instead, one less, and what is rounded of them.
        std::vector<float> rounded(size_t(columns + 1), 1.0f);
        std::fill(sums.begin(), sums.end() - 1, std::nan(""));
        isa->sum_rows[int(type)]({memory.data(), stride, rows, columns, sums.data(), is_far, true});
        isa->sum_rows[int(type)]({memory.data(), stride, rows, columns, std::vector<double>(size_t(columns)).data(), is_far, true, rounded.data()});
        bool is_right = sums.back() == 1.0 && rounded.back() == 1.0f;
        for (size_t c = 0; c < want.size(); c++) is_right &= sums[c] == want[c] - 1 && rounded[c] == float(want[c] - 1);
        CHECK_MESSAGE(is_right, std::string(isa->name), " ", std::string(name_of(type)), " ", rows, " x ", columns, " from nothing");
        isa->sum_rows[int(type)]({memory.data(), stride, rows, columns, sums.data(), is_far, false, rounded.data()});
        for (size_t c = 0; c < want.size(); c++) is_right &= rounded[c] == float(2 * (want[c] - 1));
        CHECK_MESSAGE(is_right, std::string(isa->name), " ", std::string(name_of(type)), " ", rows, " x ", columns, " rounded");
    }
}

template <class T>
void check_arg(Op op)
{
    constexpr int d = int(DTYPE_OF<T>);
    for (const IsaTable* isa : tables()) {
        const FoldLoops& f = isa->fold[int(op)][d];
        for (const int count : COUNTS)
            for (int round = 0; round < 4; round++) {
                std::vector<T> x = numbers<T>(count, count + round);
                if (round > 0)
                    for (T& v : x) v = T(int(v) % 4);                  // many equal ones
                if (round == 2)
                    for (T& v : x) v = std::is_floating_point_v<T> ? (op == Op::argmax ? -1 : 1) * std::numeric_limits<T>::infinity() : T(1);
                if (round == 3 && std::is_floating_point_v<T>) x[size_t(count / 2)] = x.back() = std::numeric_limits<T>::quiet_NaN();
                int want = 0;
                for (int i = 1; i < count; i++) {
                    const T a = x[size_t(i)], b = x[size_t(want)];
                    if (b == b && (a != a || (op == Op::argmax ? a > b : a < b))) want = i;
                }
                // In two blocks, the later one first: among equals the earlier position wins whatever the order.
                for (const int cut : {0, 1, count / 2}) {
                    T       best = 0;
                    int64_t at = -1;
                    f.arg_along(&best, &at, x.data() + cut, 100 + 3 * cut, 3, count - cut);
                    f.arg_along(&best, &at, x.data(), 100, 3, cut);
                    CHECK(at == 100 + 3 * want);
                    CHECK(same(best, x[size_t(want)]));
                }
                std::vector<T>       best(5, T(0));
                std::vector<int64_t> at(5, -1);
                for (int i = 0; i < count; i++) {
                    const std::vector<T> row(5, x[size_t(i)]);
                    f.arg_across(best.data(), at.data(), row.data(), i, 5);
                }
                for (const int64_t p : at) CHECK(p == want);
            }
    }
}

// Salmon and others 2011, word by word.
void philox(uint64_t key, uint64_t index, uint64_t step, uint32_t* c)
{
    c[0] = uint32_t(index), c[1] = uint32_t(index >> 32), c[2] = uint32_t(step), c[3] = uint32_t(step >> 32);
    uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        const uint32_t next[4] = {uint32_t(b >> 32) ^ c[1] ^ k0, uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ k1, uint32_t(a)};
        memcpy(c, next, sizeof next);
    }
}

}  // namespace

TEST_CASE("folds: sums, products, least and greatest of every type, along and across, are the same bits on every instruction set")
{
    check_folds<float, double>(), check_folds<double, double>();
    check_folds<int8_t, int8_t>(), check_folds<int16_t, int16_t>(), check_folds<int32_t, int32_t>(), check_folds<int64_t, int64_t>();
    check_folds<uint8_t, uint8_t>(), check_folds<uint16_t, uint16_t>(), check_folds<uint32_t, uint32_t>(), check_folds<uint64_t, uint64_t>();
}
TEST_CASE("folds: sums down rows of memory, few and many, near and far, narrow and wide, touch nothing beside them")
{
    for (const Dtype type : {Dtype::f32, Dtype::f16, Dtype::bf16})
        for (const int rows : {0, 1, 2, 3, 4, 5, 7, 12, 31})
            for (const int columns : {1, 7, 16, 33, 100, 1024, 2100})
                for (const bool is_far : {false, true}) check_rows(type, rows, columns, is_far);
}
TEST_CASE("folds: rows of f32 meet no deeper than pairwise before they are widened")
{
    for (const int rows : {2, 3, 4, 6, 8, 100})
        for (const bool is_far : {false, true}) {
            const auto x = numbers<float>(rows * 40, rows);
            for (const IsaTable* isa : tables()) {
                if (!isa->sum_rows[int(Dtype::f32)]) continue;
                std::vector<double> sums(40, 0.0);
                isa->sum_rows[int(Dtype::f32)]({x.data(), 40, rows, 40, sums.data(), is_far});
                for (int c = 0; c < 40; c++) {
                    double want = 0, magnitude = 0;
                    for (int r = 0; r < rows; r++) want += double(x[size_t(r * 40 + c)]), magnitude += std::abs(double(x[size_t(r * 40 + c)]));
                    CHECK(std::abs(sums[size_t(c)] - want) <= (rows > 2 ? 2 : 1) * 0x1p-24 * magnitude + rows * 0x1p-52 * magnitude);
                }
            }
        }
}
template <class T>
void check_nan_stays()
{
    constexpr int COUNT = 150;                         // more than one turn, and some
    for (const IsaTable* isa : tables())
        for (int at = 0; at < COUNT; at++) {
            std::vector<T> x(COUNT, T(1));
            x[size_t(at)] = std::numeric_limits<T>::quiet_NaN();
            for (const Op op : {Op::min, Op::max}) {
                const FoldLoops& f = isa->fold[int(op)][int(DTYPE_OF<T>)];
                T                a = 2;
                f.along(&a, x.data(), COUNT);
                CHECK(a != a);
                f.along(&a, x.data() + at + 1, COUNT - 1 - at);
                CHECK(a != a);
            }
        }
}
TEST_CASE("folds: min and max keep NaN wherever it stands")
{
    check_nan_stays<float>();
    check_nan_stays<double>();
}
TEST_CASE("folds: which of the zeros is least or greatest is the same on every instruction set")
{
    std::mt19937_64 dice{5};
    for (const int count : COUNTS) {
        std::vector<float> x;
        for (int i = 0; i < count; i++) x.push_back(dice() & 1 ? 0.0f : -0.0f);
        for (const Op op : {Op::min, Op::max}) {
            std::vector<float> results;
            for (const IsaTable* isa : tables()) {
                float a = x[0];
                isa->fold[int(op)][int(Dtype::f32)].along(&a, x.data(), count);
                results.push_back(a);
            }
            for (const float r : results) CHECK(std::signbit(r) == std::signbit(results[0]));
        }
    }
}
TEST_CASE("folds: any and all of bools")
{
    for (const IsaTable* isa : tables())
        for (const int count : COUNTS)
            for (int at = 0; at < count; at += 7) {
                std::vector<uint8_t> none(size_t(count), 0), one = none, every(size_t(count), 1), most = every;
                one[size_t(at)] = 1, most[size_t(at)] = 0;
                auto run = [&](Op op, uint8_t start, const std::vector<uint8_t>& x) {
                    isa->fold[int(op)][int(Dtype::bool_)].along(&start, x.data(), count);
                    return start;
                };
                CHECK(run(Op::any, 0, none) == 0);
                CHECK(run(Op::any, 0, one) == 1);
                CHECK(run(Op::any, 1, none) == 1);
                CHECK(run(Op::all, 1, every) == 1);
                CHECK(run(Op::all, 1, most) == 0);
                CHECK(run(Op::all, 0, every) == 0);
            }
}
TEST_CASE("folds: argmin and argmax give the first of equals, NaN wins, in any order of blocks")
{
    for (const Op op : {Op::argmin, Op::argmax}) {
        check_arg<float>(op), check_arg<double>(op);
        check_arg<int8_t>(op), check_arg<int32_t>(op), check_arg<int64_t>(op), check_arg<uint8_t>(op), check_arg<uint64_t>(op);
    }
}
TEST_CASE("random: the words are Philox4x32-10's, the known answers of its authors included")
{
    uint32_t known[4];
    philox(0, 0, 0, known);
    CHECK(known[0] == 0x6627e8d5u);
    CHECK(known[1] == 0xe169c58du);
    CHECK(known[2] == 0xbc57ac4cu);
    CHECK(known[3] == 0x9b00dbd8u);
    philox(~0ull, ~0ull, ~0ull, known);
    CHECK(known[0] == 0x408f276du);
    for (const IsaTable* isa : tables())
        for (const uint64_t key : {0ull, ~0ull, 0x0123456789abcdefull}) {
            std::vector<int64_t> index;
            for (int i = 0; i < 131; i++) index.push_back(i < 100 ? i : int64_t(uint64_t(i) << 40));
            std::vector<uint32_t> bits(131), word3(131);
            std::vector<float>    uniform(131);
            std::vector<double>   wide(131);
            const uint64_t        step = key ? 1ull << 40 | 7 : 0;
            isa->random[RANDOM_BITS](bits.data(), index.data(), key, step, 131);
            isa->random[RANDOM_WORD3](word3.data(), index.data(), key, step, 131);
            isa->random[RANDOM_UNIFORM32](uniform.data(), index.data(), key, step, 131);
            isa->random[RANDOM_UNIFORM64](wide.data(), index.data(), key, step, 131);
            for (size_t i = 0; i < 131; i++) {
                uint32_t w[4];
                philox(key, uint64_t(index[i]), step, w);
                CHECK(bits[i] == w[0]);
                CHECK(word3[i] == w[3]);
                CHECK(uniform[i] == std::ldexp(float(w[0] >> 8), -24));
                CHECK(wide[i] == std::ldexp(double((uint64_t(w[1]) << 32 | w[0]) >> 11), -53));
            }
        }
}
TEST_CASE("random: normals are Box and Muller's of words 0 and 1, and the same bits on every instruction set")
{
    constexpr int        count = 20000;
    std::vector<int64_t> index;
    for (int i = 0; i < count; i++) index.push_back(i);
    std::vector<float>  first;
    std::vector<double> first_wide;
    for (const IsaTable* isa : tables()) {
        std::vector<float>  z(count);
        std::vector<double> wide(count);
        isa->random[RANDOM_NORMAL32](z.data(), index.data(), 42, 7, count);
        isa->random[RANDOM_NORMAL64](wide.data(), index.data(), 42, 7, count);
        if (first.empty()) first = z, first_wide = wide;
        CHECK(!memcmp(z.data(), first.data(), count * sizeof z[0]));
        CHECK(!memcmp(wide.data(), first_wide.data(), count * sizeof wide[0]));
        for (int i = 0; i < count; i++) {
            uint32_t w[4];
            philox(42, uint64_t(i), 7, w);
            const long double pi = 3.14159265358979323846264338327950288L;
            const long double radius = std::sqrt(-2 * std::log((w[0] + 0.5L) / 4294967296.0L));
            const long double want = radius * std::cos(2 * pi * w[1] / 4294967296.0L);
            // Numbers below 8, a few roundings each; in f32 word 0 is rounded to 24 bits, which moves the radius by that over itself.
            const bool is_near = std::abs(z[size_t(i)] - want) < 8 * 0x1p-23L + 0x1p-24L / radius;
            const bool is_near_wide = std::abs(wide[size_t(i)] - want) < 8 * 0x1p-52L;
            if (is_near && is_near_wide) continue;
            CHECK_MESSAGE(false, z[size_t(i)], " and ", wide[size_t(i)], " should be ", double(want));
        }
    }
    // Golden: key 42, step 7, indices 0 to 3, as numpy gives them by the algorithm written in random_loops.h.
    const uint32_t golden[4] = {0x3f8856de, 0xbea841a1, 0x3fe8b873, 0xbf8594bd};
    const uint64_t golden_wide[4] = {0x3ff10adba6557ac2, 0xbfd50833f628b6b7, 0x3ffd170e68b3df37, 0xbff0b297abbb7ade};
    CHECK(!memcmp(first.data(), golden, sizeof golden));
    CHECK(!memcmp(first_wide.data(), golden_wide, sizeof golden_wide));
}
