// Running folds and folds of stretches on the CPU: long lines in parts, rows side by side, whoever runs them.
#include "lib/backend/cpu/indexed.h"
#include "tests/backend/product_check.h"

#include <ng.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace ng;
using namespace ng::cpu;

namespace {

// Tasks backwards, each by another of three workers.
void run_backwards(void*, uint32_t count, Parallel::Task task, void* arg)
{
    for (uint32_t i = count; i-- > 0;) task(arg, i, i % 3);
}

// Within half of 0, so that sums stay small and every element matters; or factors near 1.
template <class T>
std::vector<T> numbers(int64_t count, bool factors)
{
    std::vector<T> x(static_cast<size_t>(count));
    uint32_t       state = 1;
    for (T& v : x) {
        state = state * 1664525u + 1013904223u;
        const double unit = double(state >> 8) / double(1 << 24) - 0.5;
        v = T(factors ? 1 + unit / 64 : unit);
    }
    return x;
}

// |error| of a sum of n numbers in f64, and its rounding to T.
template <class T>
double bound(int64_t n, double magnitude, double value)
{
    const double wide = std::numeric_limits<double>::epsilon(), own = std::numeric_limits<T>::epsilon();
    return double(2 * n) * wide * magnitude + own * std::fabs(value);
}

template <class T>
void check_scan(Dtype type, int64_t n, Folding how, uint32_t flags)
{
    CAPTURE(n);
    CAPTURE(int(how));
    CAPTURE(flags);
    const std::vector<T> x = numbers<T>(n, how == Folding::Prod);
    std::vector<T>       alone(x.size(), T(77)), many(x.size(), T(77));
    const int64_t        dims[] = {n}, strides[] = {1};
    const Operand        in = {const_cast<T*>(x.data()), type, dims, strides};
    const Parallel       caller, three(run_backwards, nullptr, 3);
    scan(in, {alone.data(), type, dims, strides}, 1, 0, how, flags, {*isa_table(nullptr), nullptr, caller});
    scan(in, {many.data(), type, dims, strides}, 1, 0, how, flags, {*isa_table(nullptr), nullptr, three});
    CHECK(std::memcmp(alone.data(), many.data(), x.size() * sizeof(T)) == 0);
    long double running = how == Folding::Sum ? 0 : 1, magnitude = running;
    int64_t     wrong = 0;
    for (int64_t k = 0; k < n; k++) {
        const auto        i = size_t(flags & NG_REVERSE ? n - 1 - k : k);
        const long double before = running;
        running = how == Folding::Sum ? running + x[i] : running * x[i];
        magnitude = how == Folding::Sum ? magnitude + std::fabs(x[i]) : std::max(magnitude, std::fabs(running));
        const double wanted = double(flags & NG_EXCLUSIVE ? before : running);
        wrong += !(std::fabs(double(alone[i]) - wanted) <= bound<T>(n, double(magnitude), wanted));
    }
    CHECK(wrong == 0);
}

template <class T>
void check_segment(Dtype type, const std::vector<int64_t>& row, Folding how)
{
    CAPTURE(row.size());
    CAPTURE(int(how));
    const int64_t              rows = 900, width = row.empty() ? 1 : row[0], offsets[] = {-5, 0, 0, 3, 100, 90, 101, 899, 900, 950, 2};
    const int64_t              segments = 10, dims[] = {rows, width}, out_dims[] = {segments, width}, strides[] = {width, 1};
    const int64_t              bound_dims[] = {segments + 1}, one[] = {1};
    const std::vector<T>       x = numbers<T>(rows * width, how == Folding::Prod);
    std::vector<T>             y(size_t(segments * width), T(77));
    const Parallel             three(run_backwards, nullptr, 3);
    segment({const_cast<T*>(x.data()), type, dims, row.empty() ? one : strides}, {const_cast<int64_t*>(offsets), Dtype::i64, bound_dims, one},
            {y.data(), type, out_dims, row.empty() ? one : strides}, int(1 + row.size()), how, {*isa_table(nullptr), nullptr, three});
    for (int64_t s = 0; s < segments; s++)
        for (int64_t j = 0; j < width; j++) {
            long double   sum = how == Folding::Sum ? 0 : 1, magnitude = 1;
            const int64_t from = std::clamp<int64_t>(offsets[s], 0, rows), to = std::clamp<int64_t>(offsets[s + 1], 0, rows);
            for (int64_t r = from; r < to; r++) {
                const T v = x[size_t(r * width + j)];
                sum = how == Folding::Sum ? sum + v : sum * v;
                magnitude += std::fabs(v);
            }
            CAPTURE(s);
            CAPTURE(j);
            CHECK(std::fabs(double(y[size_t(s * width + j)]) - double(sum)) <= bound<T>(rows, double(magnitude), double(sum)));
        }
}

using product_check::Index;
using product_check::Lie;
using product_check::Tensor;

// What a fold of numbers that it holds exactly is: `before` and one more.
double next_of(Folding how, double before, double v)
{
    switch (how) {
    case Folding::Last: return v;
    case Folding::Sum: return before + v;
    case Folding::Prod: return before * v;
    case Folding::Min: return std::min(before, v);
    default: return std::max(before, v);
    }
}

// Of rows of any rank, x's and y's as their lies say; whoever runs it the bits are the same, and nothing beside y is written.
void check_rows(Dtype type, const Index& row, const Lie& lie, const Lie& y_lie, Folding how)
{
    INFO(name_of(type), " fold ", int(how), " rank ", row.size() + 1, " row ", row.back(), " step ", lie.step, " reversed ", lie.reversed);
    const int64_t rows = 20, segments = 5, bounds[] = {0, 1, 1, 9, 7, 50}, bound_dims[] = {segments + 1}, one[] = {1};
    Index         dims = {rows}, out_dims = {segments};
    dims.insert(dims.end(), row.begin(), row.end()), out_dims.insert(out_dims.end(), row.begin(), row.end());
    Tensor         x(type, dims, lie), alone(type, out_dims, y_lie), many(type, out_dims, y_lie);
    const Parallel caller, three(run_backwards, nullptr, 3);
    x.fill(5);
    for (Tensor* y : {&alone, &many})
        segment(x.operand(), {const_cast<int64_t*>(bounds), Dtype::i64, bound_dims, one}, y->operand(), int(dims.size()), how,
                {*isa_table(nullptr), nullptr, y == &alone ? caller : three});
    CHECK(alone.memory == many.memory);
    int64_t wrong = 0, written = 0;
    alone.each([&](Index i) {
        const int64_t s = i[0], from = std::min(bounds[s], rows), to = std::min(bounds[s + 1], rows);
        written++;
        if (from >= to && how > Folding::Prod) return;            // the extreme of the type
        double want = how == Folding::Prod;
        for (int64_t r = from; r < to; r++) {
            i[0] = r;
            want = r == from && how > Folding::Prod ? x.get(i) : next_of(how, want, x.get(i));
        }
        i[0] = s;
        wrong += alone.get(i) != want;
    });
    CHECK(wrong == 0);
    int64_t untouched = 0;
    for (size_t at = 0, bytes = size_t(bytes_of(type)); at < alone.memory.size(); at += bytes)
        untouched += std::count(&alone.memory[at], &alone.memory[at] + bytes, char(0xff)) == int64_t(bytes);
    if (is_float(type) && how <= Folding::Prod) CHECK(untouched == int64_t(alone.memory.size()) / bytes_of(type) - written);
}

}  // namespace

TEST_CASE("scan: long lines, which run in parts, are the running folds, the same for any number of workers")
{
    for (const int64_t n : {1, 63, 32767, 32768, 32769, 32831, 100003})
        for (const Folding how : {Folding::Sum, Folding::Prod})
            for (const uint32_t flags : {0, int(NG_EXCLUSIVE), int(NG_REVERSE), NG_EXCLUSIVE | NG_REVERSE}) {
                check_scan<float>(Dtype::f32, n, how, flags);
                check_scan<double>(Dtype::f64, n, how, flags);
            }
}

TEST_CASE("segment: stretches of numbers and of rows fold, with offsets that are cut, empty or backwards")
{
    for (const Folding how : {Folding::Sum, Folding::Prod})
        for (const std::vector<int64_t>& row : {std::vector<int64_t>{}, {1}, {7}, {256}, {300}}) {
            check_segment<float>(Dtype::f32, row, how);
            check_segment<double>(Dtype::f64, row, how);
        }
}

TEST_CASE("segment: rows of every type, rank and layout, few columns and many, fold column by column or row by row")
{
    for (const Dtype type : {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16, Dtype::i8, Dtype::i32, Dtype::i64, Dtype::u16})
        for (const Folding how : {Folding::Last, Folding::Sum, Folding::Prod, Folding::Min, Folding::Max})
            for (const Index& row : {Index{}, {1}, {7}, {8}, {19}, {300}, {5, 60}, {3, 1, 9}, {2, 300}}) {
                if (how == Folding::Prod && type != Dtype::f64 && type != Dtype::i64) continue;      // others round, or wrap
                const size_t rank = row.size() + 1;
                Index        turned, between;                     // all axes; the rows between the first two of a row
                for (size_t a = rank; a-- > 0;) turned.push_back(int64_t(a)), between.insert(between.begin(), int64_t(a));
                if (rank > 2) std::swap(between[0], between[1]);
                for (const Lie& lie : {Lie{}, {turned}, {between}, {{}, (1u << rank) - 1, 1}, {{}, 1, 3}}) check_rows(type, row, lie, lie, how), check_rows(type, row, lie, {}, how);
            }
}

TEST_CASE("the last of several is moved bit by bit, infinities and every NaN, by scan, segment and put")
{
    const Parallel three(run_backwards, nullptr, 3);
    for (const Dtype type : {Dtype::e5m2, Dtype::e4m3, Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
        const auto           bytes = size_t(bytes_of(type));
        const int64_t        n = bytes == 1 ? 256 : 65536, dims[] = {n}, strides[] = {1}, bounds[] = {n + 1};
        std::vector<char>    x(size_t(n) * bytes);
        std::vector<int64_t> places(size_t(n) + 1);
        for (int64_t i = 0; i <= n; i++) places[size_t(i)] = i;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t code = bytes < 4 ? uint64_t(i) : uint64_t(i) * 0x10001 << (8 * bytes - 32);
            std::memcpy(&x[size_t(i) * bytes], &code, bytes);
        }
        const Operand    in = {x.data(), type, dims, strides};
        const IndexPlace place = {*isa_table(nullptr), nullptr, three};
        INFO(name_of(type));
        for (const int step : {0, 1, 2}) {
            CAPTURE(step);
            std::vector<char> y(x.size(), char(0x55));
            const Operand     out = {y.data(), type, dims, strides};
            if (step == 0) scan(in, out, 1, 0, Folding::Last, 0, place);
            else if (step == 1) segment(in, {places.data(), Dtype::i64, bounds, strides}, out, 1, Folding::Last, place);
            else put(out, {places.data(), Dtype::i64, dims, strides}, in, {1, 0, 1}, Folding::Last, place);
            CHECK(x == y);
        }
    }
}
