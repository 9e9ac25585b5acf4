// The tape interpreter against point by point evaluation: every way of walking, every type, any number of workers.
#include "lib/backend/cpu/fused.h"

#include "tests/backend/kernel_builder.h"
#include "jit/error.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

using namespace ng;
using namespace ng::test;

namespace {

constexpr float SCALARS[4] = {0.5f, -1.25f, 3, 0.125f};

// Workers that run in turn, last task first: what depends on the order of tasks shows.
void backwards(void* self, uint32_t count, Parallel::Task task, void* arg)
{
    const uint32_t workers = *static_cast<uint32_t*>(self);
    for (uint32_t i = count; i-- > 0;) task(arg, i, i % workers);
}

void run(const Kernel& kernel, std::vector<Buffer>& buffers, const int64_t* variables, uint32_t workers)
{
    const cpu::FusedKernel fused(kernel, *cpu::isa_table(nullptr));
    std::vector<Buffer::Line> workspace(fused.workspace_bytes({variables, 16}, workers) / 64 + 1);
    std::vector<char*> pointers;
    for (Buffer& b : buffers) pointers.push_back(b.data());
    fused.run({variables, pointers.data(), SCALARS, workspace.data()}, workers == 1 ? Parallel() : Parallel(backwards, &workers, workers));
}

// Runs with 1, 2 and 5 workers, which must agree to the bit, and compares with the reference.
void check(const Kernel& kernel, std::vector<Buffer>& buffers, double tolerance = 2e-6, std::vector<int64_t> variables = {})
{
    variables.resize(16, 1);
    std::vector<Buffer> expected = buffers, in = buffers, one = buffers;
    Reference(kernel, in, expected, variables.data(), SCALARS).run();
    run(kernel, one, variables.data(), 1);
    for (size_t b = 0; b < buffers.size(); b++) {
        int64_t wrong = 0, first = -1;
        for (int64_t i = 0; i < buffers[b].count; i++) {
            const double x = one[b].get(i), y = expected[b].get(i);
            const bool same = x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
            if (!same && wrong++ == 0) first = i;
        }
        INFO("buffer ", b, " first at ", first, ": ", first < 0 ? 0 : one[b].get(first), " not ", first < 0 ? 0 : expected[b].get(first));
        CHECK(wrong == 0);
    }
    for (const uint32_t workers : {2u, 5u}) {
        std::vector<Buffer> many = buffers;
        run(kernel, many, variables.data(), workers);
        for (size_t b = 0; b < many.size(); b++) CHECK(std::memcmp(many[b].data(), one[b].data(), size_t(one[b].count * bytes_of(one[b].type))) == 0);
    }
}

std::vector<Buffer> buffers_of(std::initializer_list<int64_t> counts, Dtype type = Dtype::f32)
{
    std::vector<Buffer> buffers;
    for (const int64_t count : counts) {
        buffers.emplace_back(type, count);
        fill(buffers.back(), buffers.size());
    }
    return buffers;
}

TEST_CASE("element-wise: contiguous operands of sizes around a block, a broadcast row and column, a scalar")
{
    for (const int64_t n : {1, 2, 15, 16, 17, 1023, 1024, 1025, 4099, 200003}) {
        Builder b;
        b.axis(n);
        const int x = b.load(Dtype::f32, 0, {1}), y = b.load(Dtype::f32, 1, {1});
        b.store(b.map(Op::exp, b.map(Op::add, x, b.map(Op::mul, y, b.scalar(Dtype::f32, 4)))), 2, {1});
        std::vector<Buffer> buffers = buffers_of({n, n, n});
        check(b.kernel, buffers, 1e-6);
    }
    for (const int64_t rows : {3, 700}) {
        const int64_t columns = 2100 / rows;
        Builder b;
        b.axis(rows);
        b.axis(columns);
        const int x = b.load(Dtype::f32, 0, {columns, 1}), row = b.load(Dtype::f32, 1, {0, 1}), column = b.load(Dtype::f32, 2, {1, 0});
        b.store(b.map(Op::fma, x, b.map(Op::exp, row), b.map(Op::square, column)), 3, {columns, 1});
        b.store(b.map(Op::where, b.map(Op::less, x, column), b.constant(7), b.map(Op::mul, row, column)), 4, {columns, 1});
        std::vector<Buffer> buffers = buffers_of({2100, columns, rows, 2100, 2100});
        check(b.kernel, buffers);
    }
}

TEST_CASE("element-wise: transposed, reversed, stepped, repeated, a constant, a copy, a number alone")
{
    const int64_t m = 67, n = 301;
    Builder b;
    b.axis(m);
    b.axis(n);
    const int t = b.load(Dtype::f32, 0, {1, m}), reversed = b.load(Dtype::f32, 0, {-n, -1}, m * n - 1);
    const int stepped = b.load(Dtype::f32, 1, {2 * n, 2});
    b.store(b.map(Op::add, b.map(Op::mul, t, reversed), stepped), 2, {n, 1});
    b.store(t, 3, {n, 1});
    b.store(b.constant(2.5), 4, {n, 1});
    b.store(b.map(Op::add, b.index({n, 1}), b.length(Extent(40))), 5, {-n, 1}, false, (m - 1) * n);
    std::vector<Buffer> buffers = buffers_of({m * n, 2 * m * n, m * n, m * n, m * n});
    buffers.emplace_back(Dtype::i64, m * n);
    check(b.kernel, buffers);

    Builder one;
    one.store(one.map(Op::exp, one.load(Dtype::f32, 0, {})), 1, {});
    std::vector<Buffer> numbers = buffers_of({1, 1});
    check(one.kernel, numbers);
}

TEST_CASE("late stores: rotation and swap in place, a leaf beside a sum")
{
    const int64_t n = 3001;
    Builder b;
    b.axis(n);
    const int x = b.load(Dtype::f32, 0, {1}), y = b.load(Dtype::f32, 1, {1});
    b.store(b.map(Op::add, x, y), 0, {1}, true);
    b.store(b.map(Op::sub, x, y), 1, {1}, true);
    std::vector<Buffer> buffers = buffers_of({n, n});
    check(b.kernel, buffers);

    Builder swap;
    swap.axis(n);
    const int p = swap.load(Dtype::f32, 0, {1}), q = swap.load(Dtype::f32, 1, {1});
    swap.store(p, 1, {1}, true);
    swap.store(q, 0, {1}, true);
    check(swap.kernel, buffers);

    std::vector<Buffer> rows = buffers_of({40 * 70});
    for (const bool over_last : {false, true}) {
        check(normalised(40, 70, over_last, 0), rows, 1e-5);
        check(normalised(over_last ? 1 : 2800, over_last ? 2800 : 1, over_last, 0), rows, 1e-5);
    }
}

TEST_CASE("types: loads and stores of each dtype, contiguous and stepped, and casts")
{
    for (int t = 0; t < DTYPES; t++)
        for (const int64_t step : {1, 3, -1}) {
            const Dtype type = Dtype(t);
            const int64_t n = 1111;
            Builder b;
            b.axis(n);
            const int x = b.load(type, 0, {step}, step < 0 ? n - 1 : 0);
            b.store(x, 1, {step}, false, step < 0 ? n - 1 : 0);
            b.store(b.convert(x, Dtype::f64), 2, {1});
            b.store(b.convert(b.map(Op::mul, b.load(Dtype::f32, 3, {1}), b.constant(2)), Dtype::f16), 4, {step}, false, step < 0 ? n - 1 : 0);
            std::vector<Buffer> buffers;
            for (const Dtype each : {type, type, Dtype::f64, Dtype::f32, Dtype::f16}) buffers.emplace_back(each, 3 * n);
            fill(buffers[0], 1, is_float(type) ? -2 : 0, is_bool(type) ? 1 : 100);
            fill(buffers[3], 2);
            check(b.kernel, buffers, 0);
        }
}

TEST_CASE("sums: over the first, last, middle and all axes, beside a maximum and a product")
{
    const int64_t shapes[][3] = {{5, 7, 9}, {1, 300, 2}, {2, 3, 4000}, {4000, 2, 3}, {3, 4000, 5}, {40, 50, 60}, {700, 1, 20}};
    for (const auto& shape : shapes)
        for (int mask = 1; mask < 8; mask++) {
            Builder b;
            Extents dense(3), kept(3);
            int64_t all = 1, rows = 1;
            for (size_t a = 3; a-- > 0;) {
                dense[a] = all;
                if (!(mask >> a & 1)) kept[a] = rows, rows *= shape[a];
                all *= shape[a];
            }
            for (size_t a = 0; a < 3; a++) b.axis(shape[a], mask >> a & 1);
            const int x = b.load(Dtype::f32, 0, dense);
            b.store(b.fold(Op::sum, x), 1, kept);
            b.store(b.map(Op::mul, b.fold(Op::max, b.map(Op::mul, x, b.scalar(Dtype::f32, 0))), b.load(Dtype::f32, 2, kept)), 2, kept, true);
            b.store(b.fold(Op::sum, b.constant(1)), 3, kept);
            std::vector<Buffer> buffers = buffers_of({all, rows, rows, rows});
            check(b.kernel, buffers, 3e-6);
        }
}

TEST_CASE("sums: a long row, long columns and few rows are cut into pieces")
{
    for (const auto& [rows, columns, over_last] : {std::tuple{1, 3000001, true}, {5, 700001, true}, {200000, 16, false}, {3000, 1100, false}, {3000001, 1, false}}) {
        Builder b;
        b.axis(rows, !over_last);
        b.axis(columns, over_last);
        const int x = b.load(Dtype::f32, 0, {columns, 1});
        const Extents kept = over_last ? Extents{1, 0} : Extents{0, 1};
        b.store(b.fold(Op::sum, x), 1, kept);
        b.store(b.fold(Op::argmax, x), 2, kept);
        std::vector<Buffer> buffers = buffers_of({int64_t(rows) * columns, over_last ? rows : columns});
        buffers.emplace_back(Dtype::i64, over_last ? rows : columns);
        check(b.kernel, buffers, 1e-5);
    }
    for (const auto& [rows, columns, over_last] : {std::tuple{1, 1000003, true}, {3, 400000, true}, {100000, 16, false}, {1000000, 1, false}}) {
        std::vector<Buffer> buffers = buffers_of({int64_t(rows) * columns, int64_t(rows) * columns});
        check(normalised(rows, columns, over_last), buffers, 1e-5);
    }
}

TEST_CASE("several passes: normalised rows and columns, softmax, of all lengths")
{
    for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 5}, {7, 1}, {33, 10}, {1000, 10}, {50, 64}, {9, 1000}, {9, 1024}, {5, 1025}, {3, 5000}, {3, 20000}}) {
        std::vector<Buffer> buffers = buffers_of({int64_t(rows) * columns, int64_t(rows) * columns});
        check(softmax(rows, columns), buffers, 1e-6);
        check(normalised(rows, columns, true), buffers, 1e-4);
        check(normalised(rows, columns, false), buffers, 1e-4);
    }
}

TEST_CASE("folds of other types, and stores in each of several passes")
{
    for (const bool over_last : {false, true})
        for (const auto& [rows, columns] : {std::pair{6, 9}, {40, 3000}, {30000, 12}}) {
            Builder b;
            b.axis(rows, !over_last);
            b.axis(columns, over_last);
            const Extents dense{columns, 1}, kept = over_last ? Extents{1, 0} : Extents{0, 1};
            const int x = b.load(Dtype::i64, 0, dense), y = b.load(Dtype::f64, 1, dense);
            const int most = b.fold(Op::max, x), sum = b.fold(Op::sum, y);
            b.store(b.fold(Op::sum, x), 2, kept);
            b.store(most, 3, kept);
            b.store(b.fold(Op::any, b.map(Op::less, x, b.constant(-95, Dtype::i64))), 4, kept);
            b.store(b.fold(Op::all, b.map(Op::less, y, b.constant(1.9, Dtype::f64))), 5, kept);
            b.store(b.map(Op::mul, y, y), 6, dense);
            b.store(b.map(Op::sub, most, x), 7, dense);
            b.store(b.map(Op::mul, b.fold(Op::prod, b.map(Op::exp, b.map(Op::div, y, b.map(Op::add, b.map(Op::square, sum), b.constant(1e3, Dtype::f64))))), y), 1, dense, true);
            std::vector<Buffer> buffers;
            const int64_t all = int64_t(rows) * columns, few = over_last ? rows : columns;
            for (const Dtype t : {Dtype::i64, Dtype::f64}) buffers.emplace_back(t, all);
            for (const Dtype t : {Dtype::i64, Dtype::i64, Dtype::bool_, Dtype::bool_}) buffers.emplace_back(t, few);
            for (const Dtype t : {Dtype::f64, Dtype::i64}) buffers.emplace_back(t, all);
            fill(buffers[0], 1, -100, 100);
            fill(buffers[1], 2);
            check(b.kernel, buffers, 1e-12);
        }
}

TEST_CASE("random numbers, stochastic rounding and bit patterns: blocks give what one loop over all gives")
{
    const int64_t n = 5000;
    const cpu::IsaTable& isa = *cpu::isa_table(nullptr);
    Builder b;
    b.axis(n);
    const int index = b.index({1}, 17);
    Value random{ValueKind::Random};
    random.args = {index, b.constant(0x123456789ab, Dtype::u64), b.constant(7, Dtype::u64)};
    random.bits = int64_t(RandomWord::Normal);
    const int normal = b.add(random);
    random.bits = int64_t(RandomWord::Word3);
    random.type = Dtype::u32;
    const int word = b.add(random);
    Value rounded{ValueKind::Stochastic};
    rounded.args = {normal, word, -1};
    rounded.type = Dtype::f16;
    Value bits{ValueKind::Bitcast};
    bits.args[0] = b.add(rounded);
    bits.type = Dtype::u16;
    b.store(normal, 0, {1});
    b.store(bits.args[0], 1, {1});
    b.store(b.add(bits), 2, {1});
    std::vector<Buffer> buffers{Buffer(Dtype::f32, n), Buffer(Dtype::f16, n), Buffer(Dtype::u16, n)};
    run(b.kernel, buffers, nullptr, 1);
    std::vector<int64_t>  at(static_cast<size_t>(n));
    std::vector<float>    x(static_cast<size_t>(n)), y(static_cast<size_t>(n));
    std::vector<uint32_t> words(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; i++) at[size_t(i)] = i + 17;
    isa.random[cpu::RANDOM_NORMAL32](x.data(), at.data(), 0x123456789ab, 7, n);
    isa.random[cpu::RANDOM_WORD3](words.data(), at.data(), 0x123456789ab, 7, n);
    isa.stochastic[0][int(Dtype::f16)](y.data(), x.data(), words.data(), 0, n);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) wrong += buffers[0].get(i) != x[size_t(i)] || buffers[1].get(i) != y[size_t(i)];
    CHECK(wrong == 0);
    CHECK(std::memcmp(buffers[1].data(), buffers[2].data(), size_t(2 * n)) == 0);
}

TEST_CASE("argmax, argmin: the first of equals, the first NaN, over two axes with one between")
{
    const int64_t a = 20, k = 30, c = 25;
    for (const bool nan : {false, true})
        for (const Op op : {Op::argmax, Op::argmin}) {
            Builder b;
            b.axis(a, true);
            b.axis(k);
            b.axis(c, true);
            const int x = b.load(Dtype::f32, 0, {k * c, c, 1});
            b.store(b.fold(op, x), 1, {0, 1, 0});
            b.store(b.fold(op, b.load(Dtype::f32, 0, {1, a, a * k})), 2, {0, 1, 0});
            std::vector<Buffer> buffers = buffers_of({a * k * c});
            for (int64_t i = 0; i < a * k * c; i++) buffers[0].set(i, std::floor(buffers[0].get(i) * 3));
            if (nan) for (int64_t i = 777; i < a * k * c; i += 1234) buffers[0].set(i, NAN);
            buffers.emplace_back(Dtype::i64, k);
            buffers.emplace_back(Dtype::i64, k);
            check(b.kernel, buffers, 0);
        }
    Builder b;
    b.axis(100, true);
    b.store(b.fold(Op::argmax, b.load(Dtype::f32, 0, {1})), 1, {0});
    std::vector<Buffer> buffers{Buffer(Dtype::f32, 100), Buffer(Dtype::i64, 1)};
    for (int64_t i = 0; i < 100; i++) buffers[0].set(i, -INFINITY);
    check(b.kernel, buffers, 0);
}

TEST_CASE("gather: rows, elements and diagonals; what is out of range reads 0")
{
    const int64_t words = 50, width = 37, n = 90;
    for (const bool transposed : {false, true}) {
        Builder b;
        b.axis(n);
        b.axis(width);
        const int index = b.load(Dtype::i64, 1, {1, 0});
        b.store(b.gather(Dtype::f32, 0, {0, transposed ? -words : 1}, index, words, transposed ? 1 : width), 2, {width, 1});
        const int both = b.map(Op::sub, b.load(Dtype::i64, 1, {1, 0}), b.index({0, 1}));
        b.store(b.gather(Dtype::f32, 0, {0, 1}, both, words, width), 3, {width, 1});
        std::vector<Buffer> buffers{Buffer(Dtype::f32, words * width), Buffer(Dtype::i64, n), Buffer(Dtype::f32, n * width), Buffer(Dtype::f32, n * width)};
        fill(buffers[0], 1);
        fill(buffers[1], 2, -10, 60);
        if (transposed)
            for (Access& a : b.kernel.accesses)
                if (a.strides[1].is(-words)) a.offset = words * (width - 1);
        check(b.kernel, buffers, 0);
    }
}

TEST_CASE("empty spaces: nothing is written, folds of nothing give their start")
{
    for (const auto& [rows, columns] : {std::pair{0, 5}, {5, 0}, {0, 0}}) {
        Builder b;
        b.axis(rows);
        b.axis(columns, true);
        const int x = b.load(Dtype::f32, 0, {columns, 1});
        b.store(b.fold(Op::sum, x), 1, {1, 0});
        b.store(b.map(Op::add, b.fold(Op::prod, x), b.constant(3)), 2, {1, 0});
        std::vector<Buffer> buffers = buffers_of({1, 5, 5});
        check(b.kernel, buffers, 0);
        std::vector<Buffer> out = buffers;
        run(b.kernel, out, nullptr, 1);
        CHECK(out[2].get(0) == (rows ? 4 : buffers[2].get(0)));
    }
}

TEST_CASE("lengths: extents and strides that are known when run")
{
    const Extent rows = Extent::variable(0), columns = Extent::variable(1) + Extent(1);
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 0}, {7, 11}, {2000, 9}, {3, 3000}, {1, 900000}, {0, 3}, {60000, 15}}) {
        std::vector<Buffer> buffers = buffers_of({m * (n + 1) + 1, m * (n + 1) + 1});
        check(softmax(rows, columns), buffers, 1e-6, {m, n});
        check(normalised(rows, columns, true), buffers, 1e-4, {m, n});
        check(normalised(rows, columns, false), buffers, 1e-4, {m, n});
    }
    std::vector<Buffer> buffers = buffers_of({70001 * 15, 70001 * 15});
    check(normalised(rows, 15, false), buffers, 1e-4, {70001, 1});
}

TEST_CASE("boxes: parts of a space, one after the other, are the whole")
{
    const int64_t m = 45, n = 70;
    Builder b;
    b.axis(m);
    b.axis(n);
    const int x = b.load(Dtype::f32, 0, {n, 1}), row = b.load(Dtype::f32, 1, {0, 1});
    b.store(b.map(Op::maximum, b.map(Op::add, x, row), b.constant(0)), 2, {n, 1});
    std::vector<Buffer> buffers = buffers_of({m * n, n, m * n}), whole = buffers;
    run(b.kernel, whole, nullptr, 1);
    const cpu::FusedKernel fused(b.kernel, *cpu::isa_table(nullptr));
    char* pointers[] = {buffers[0].data(), buffers[1].data(), buffers[2].data()};
    for (int64_t i = 0; i < m; i += 14)
        for (int64_t j = 0; j < n; j += 32) {
            const int64_t first[] = {i, j}, count[] = {std::min<int64_t>(14, m - i), std::min<int64_t>(32, n - j)};
            fused.run_box({nullptr, pointers, nullptr, nullptr}, first, count);
        }
    CHECK(std::memcmp(buffers[2].data(), whole[2].data(), size_t(m * n * 4)) == 0);
}

TEST_CASE("maps that write their results themselves: in blocks longer than registers, of one number, of outputs that are not wanted")
{
    const int64_t n = 30000;
    Builder b;
    b.axis(n);
    const int y = b.load(Dtype::f32, 1, {1}), one = b.load(Dtype::f32, 1, {0});
    b.store(b.map(Op::add, b.load(Dtype::f32, 0, {1}), y), 2, {1});
    b.store(b.map(Op::exp, y), 3, {1});
    b.store(b.map(Op::mul, one, one), 4, {1});
    b.store(b.convert(b.load(Dtype::i32, 5, {1}), Dtype::f32), 6, {1});
    std::vector<Buffer> buffers = buffers_of({n, n, n, n, n, n, n}), others;
    buffers[5] = buffers_of({n}, Dtype::i32)[0];
    check(b.kernel, buffers);
    const cpu::FusedKernel fused(b.kernel, *cpu::isa_table(nullptr));
    std::vector<Buffer> all = buffers;
    run(b.kernel, all, nullptr, 1);
    for (const size_t missing : {2, 3, 4, 6}) {
        std::vector<char*> pointers;
        others = buffers;
        for (Buffer& buffer : others) pointers.push_back(buffer.data());
        pointers[missing] = nullptr;
        fused.run({nullptr, pointers.data(), SCALARS, nullptr}, Parallel());
        for (size_t k = 0; k < others.size(); k++)
            CHECK(std::memcmp(others[k].data(), (k == missing ? buffers : all)[k].data(), size_t(n * bytes_of(others[k].type))) == 0);
    }
}

TEST_CASE("memory beyond the caches: results are the same past them, whatever the alignment")
{
    const int64_t n = 9000000;
    for (const int64_t offset : {0, 3}) {
        Builder b;
        b.axis(n);
        b.store(b.map(Op::add, b.load(Dtype::f32, 0, {1}), b.load(Dtype::f32, 1, {1})), 2, {1}, false, offset);
        std::vector<Buffer> buffers{Buffer(Dtype::f32, n), Buffer(Dtype::f32, n), Buffer(Dtype::f32, n + 3)};
        auto *x = reinterpret_cast<float*>(buffers[0].data()), *y = reinterpret_cast<float*>(buffers[1].data());
        for (int64_t i = 0; i < n; i++) x[i] = float(i % 1000), y[i] = float(i % 77);
        run(b.kernel, buffers, nullptr, 2);
        const auto* z = reinterpret_cast<const float*>(buffers[2].data()) + offset;
        int64_t wrong = 0;
        for (int64_t i = 0; i < n; i++) wrong += z[i] != x[i] + y[i];
        CHECK(wrong == 0);
    }
}

TEST_CASE("registers: a chain of a million instructions lowers quickly into few; too many live values are an error")
{
    Builder b;
    b.axis(100);
    int x = b.load(Dtype::f32, 0, {1});
    for (int i = 0; i < 500000; i++) x = b.map(Op::add, b.map(Op::mul, x, b.constant(0.5)), b.constant(1));
    b.store(x, 1, {1});
    CHECK(cpu::FusedKernel::live_registers(b.kernel, *cpu::isa_table(nullptr)) <= 2);
    const auto begin = std::chrono::steady_clock::now();
    { const cpu::FusedKernel fused(b.kernel, *cpu::isa_table(nullptr)); }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(3));
    std::vector<Buffer> buffers = buffers_of({100, 100});
    run(b.kernel, buffers, nullptr, 1);
    CHECK(buffers[1].get(50) == doctest::Approx(2));

    for (const int live : {200, 250}) {
        Builder many;
        many.axis(500);
        std::vector<int> values;
        for (int i = 0; i < live; i++) values.push_back(many.map(Op::mul, many.load(Dtype::f32, 0, {1}), many.constant(i)));
        int sum = values[0];
        for (int i = live - 1; i > 0; i--) sum = many.map(Op::add, sum, values[size_t(i)]);
        many.store(sum, 1, {1});
        std::vector<Buffer> numbers = buffers_of({500, 500});
        if (live < cpu::FusedKernel::live_limit()) check(many.kernel, numbers, 1e-5);
        else CHECK_THROWS_AS(cpu::FusedKernel(many.kernel, *cpu::isa_table(nullptr)), Error);
    }
}

}  // namespace
