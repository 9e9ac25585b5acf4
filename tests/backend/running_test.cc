// Running folds and folds of stretches on the CPU: long lines in parts, rows side by side, whoever runs them.
#include "lib/backend/cpu/indexed.h"

#include <ng.h>

#include <doctest/doctest.h>

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
