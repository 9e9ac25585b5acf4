// Chains of instructions in vector registers against the same kernels by the instruction set that has none, number by number.
#include "lib/backend/cpu/fused.h"
#include "lib/backend/cpu/plan.h"

#include "tests/backend/isa_tables.h"
#include "tests/backend/kernel_builder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace ng;
using namespace ng::test;

namespace {

constexpr float SCALARS[4] = {0.5f, -1.25f, 3, 0.125f};
constexpr int   GUARD = 8;                             // elements behind each buffer's last

std::vector<Buffer> ran(const Kernel& kernel, const cpu::IsaTable& isa, std::vector<Buffer> buffers, const std::vector<bool>& wanted)
{
    const cpu::FusedKernel fused(kernel, isa);
    const std::vector<int64_t> variables(16, 1);
    std::vector<Buffer::Line> workspace(fused.workspace_bytes(variables, 1) / 64 + 1);
    std::vector<char*> pointers;
    for (size_t b = 0; b < buffers.size(); b++) pointers.push_back(wanted[b] ? buffers[b].data() : nullptr);
    fused.run({variables.data(), pointers.data(), SCALARS, workspace.data()}, Parallel());
    return buffers;
}

// From this buffer on; a NaN's sign is nobody's business.
void check_same(const char* isa, std::vector<Buffer>& found, std::vector<Buffer>& expected, size_t from = 0)
{
    for (size_t b = from; b < found.size(); b++) {
        int64_t wrong = 0, first = -1;
        for (int64_t i = 0; i < found[b].count; i++) {
            const double x = found[b].get(i), y = expected[b].get(i);
            const bool same = x == y ? std::signbit(x) == std::signbit(y) : x != x && y != y;
            if (!same && wrong++ == 0) first = i;
        }
        INFO(isa, ", buffer ", b, " first at ", first, ": ", first < 0 ? 0 : found[b].get(first), " not ", first < 0 ? 0 : expected[b].get(first));
        CHECK(wrong == 0);
    }
}

void check_all(const Kernel& kernel, std::vector<Buffer>& buffers, std::vector<bool> wanted = {})
{
    wanted.resize(buffers.size(), true);
    std::vector<Buffer> plain = ran(kernel, *cpu::tables().front(), buffers, wanted);
    for (const cpu::IsaTable* isa : cpu::tables()) {
        std::vector<Buffer> found = ran(kernel, *isa, buffers, wanted);
        check_same(isa->name, found, plain);
    }
}

Buffer numbers(Dtype type, int64_t count, uint64_t seed)
{
    Buffer buffer(type, count + GUARD);
    fill(buffer, seed);
    const double edges[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-7, 65519, 65520, 1e-42, 0.5, 1.5, 2.5};
    for (int64_t i = 0; i < count; i += 5) buffer.set(i, edges[(i / 5 + int64_t(seed)) % 12]);
    return buffer;
}

// Dice that fall the same each time.
struct Dice {
    uint64_t state;
    int roll(int sides)
    {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return int((state >> 33) % uint64_t(sides));
    }
};

const Op ONES[] = {Op::neg, Op::abs, Op::floor, Op::ceil, Op::trunc, Op::rint, Op::square, Op::reciprocal, Op::sqrt, Op::rsqrt, Op::relu, Op::relu6};
const Op TWOS[] = {Op::add, Op::sub, Op::mul, Op::div, Op::maximum, Op::minimum, Op::fmax, Op::fmin};   // not copysign: a NaN's sign is nobody's business

// So many operations on whatever is there already, the last ones most often; stores of some of it, as rows and otherwise.
void grow(Builder& b, Dice& dice, std::vector<int> values, int operations, int64_t n, std::vector<Buffer>& buffers)
{
    const auto any = [&] { return values[values.size() - 1 - size_t(std::min(dice.roll(int(values.size())), dice.roll(int(values.size()))))]; };
    for (int i = 0; i < operations; i++) {
        const int kind = dice.roll(16);
        if (kind < 4) values.push_back(b.map(ONES[dice.roll(12)], any()));
        else if (kind < 14) values.push_back(b.map(TWOS[dice.roll(8)], any(), any()));
        else values.push_back(b.convert(any(), kind == 14 ? Dtype::f16 : Dtype::bf16));
    }
    for (int s = 0; s < 4; s++) {
        const int from = s == 0 ? values.back() : any();
        if (b.kernel.values[size_t(from)].kind != ValueKind::Map && b.kernel.values[size_t(from)].kind != ValueKind::Convert) continue;
        const int64_t step = s == 0 ? 1 : dice.roll(4) - 1;
        const int64_t stride = step == 0 ? 3 : step;
        b.store(from, int(buffers.size()), {stride}, false, stride < 0 ? n - 1 : 0);
        buffers.push_back(numbers(b.kernel.values[size_t(from)].type, n * 3, uint64_t(s) + 9));
    }
}

TEST_CASE("chains: random expressions of every form of operand, around a bundle's length, stored as rows and otherwise")
{
    for (const int64_t n : {1, 7, 31, 63, 64, 65, 127, 128, 129, 1000, 3001, 9000})
        for (uint64_t seed = 0; seed < 40; seed++) {
            CAPTURE(n);
            CAPTURE(seed);
            Dice dice{seed * 7919 + uint64_t(n)};
            Builder b;
            b.axis(n);
            std::vector<Buffer> buffers = {numbers(Dtype::f32, n, seed), numbers(Dtype::f16, n, seed + 1), numbers(Dtype::bf16, n, seed + 2),
                                           numbers(Dtype::f32, 2 * n, seed + 3), numbers(Dtype::f16, 2 * n, seed + 4)};
            std::vector<int> values = {b.scalar(Dtype::f32, 4), b.constant(1.5), b.load(Dtype::f16, 4, {0}), b.load(Dtype::f16, 4, {2}),
                                       b.load(Dtype::f32, 3, {-2}, 2 * n - 1), b.load(Dtype::bf16, 2, {1}), b.load(Dtype::f16, 1, {1}), b.load(Dtype::f32, 0, {1})};
            grow(b, dice, values, 3 + dice.roll(60), n, buffers);
            std::vector<bool> wanted(buffers.size(), true);
            if (dice.roll(3) == 0) wanted.back() = buffers.size() == 6;
            check_all(b.kernel, buffers, wanted);
        }
}

// x, a row for all rows, numbers for each row, and one for all, of every form and size; as rows of n, or as one row where each is as long as x.
struct Rows {
    int64_t rows, n;
    std::vector<Buffer> buffers = {};
    Builder b = {};

    int operand(Dtype type, int64_t outer, int64_t inner, int64_t offset, bool is_long)
    {
        Buffer few = numbers(type, offset + std::max<int64_t>(outer, 0) * rows + std::max<int64_t>(inner, 0) * n + 1, buffers.size());
        Buffer all = numbers(type, rows * n, 0);
        for (int64_t i = 0; i < rows * n; i++) all.set(i, few.get(offset + i / n * outer + i % n * inner));
        buffers.push_back(is_long ? all : few);
        return b.load(type, int(buffers.size()) - 1, is_long ? Extents{1} : Extents{outer, inner}, is_long ? 0 : offset);
    }
    void build(bool is_long)
    {
        if (is_long) b.axis(rows * n);
        else b.axis(rows), b.axis(n);
        const Extents at = is_long ? Extents{1} : Extents{n, 1}, twice = is_long ? Extents{2} : Extents{2 * n, 2};
        int sum = operand(Dtype::f32, n, 1, 0, is_long);
        const auto add = [&](Op op, Dtype type, int64_t outer, int64_t inner, int64_t offset) { sum = b.map(op, sum, operand(type, outer, inner, offset, is_long)); };
        add(Op::add, Dtype::f32, 0, 1, 0), add(Op::mul, Dtype::f32, 1, 0, 0), add(Op::sub, Dtype::f16, 0, 1, 0), add(Op::fmax, Dtype::bf16, 1, 0, 0);
        add(Op::add, Dtype::f32, 0, -1, n - 1), add(Op::sub, Dtype::bf16, 0, 2, 0), add(Op::add, Dtype::f16, 3, 0, 0), add(Op::mul, Dtype::f16, n, 1, 0);
        const int first = sum;
        add(Op::maximum, Dtype::e4m3, 0, 1, 0), add(Op::add, Dtype::f32, 0, 0, 0), add(Op::sub, Dtype::f32, -1, 0, rows - 1);
        const auto convert = [&](Dtype type, int64_t outer, int64_t inner) { return b.convert(operand(type, outer, inner, 0, is_long), Dtype::f32); };
        for (const Dtype type : {Dtype::f64, Dtype::i8, Dtype::u16}) sum = b.map(Op::add, b.map(Op::exp, sum), b.map(Op::mul, convert(type, 1, 0), convert(type, 0, 1)));
        const int stored = int(buffers.size());
        for (const Dtype type : {Dtype::f32, Dtype::bf16, Dtype::f32}) buffers.push_back(numbers(type, 2 * rows * n, 77));
        b.store(sum, stored, at), b.store(b.convert(first, Dtype::bf16), stored + 1, at), b.store(b.map(Op::neg, first), stored + 2, twice);
    }
};

TEST_CASE("chains: short rows give the bits that one long row gives, where operands are a row for all rows, or a number for each")
{
    for (const int64_t n : {2, 7, 16, 28, 49, 64, 128, 300, 600})
        for (const int64_t rows : {2, 3, 38, 700}) {
            Rows few{rows, n}, all{rows, n};
            few.build(false), all.build(true);
            const std::vector<bool> wanted(few.buffers.size(), true);
            for (const cpu::IsaTable* isa : cpu::tables()) {
                std::vector<Buffer> found = ran(few.b.kernel, *isa, few.buffers, wanted), expected = ran(all.b.kernel, *isa, all.buffers, wanted);
                INFO(rows, " rows of ", n);
                check_same(isa->name, found, expected, found.size() - 3);
            }
        }
}

TEST_CASE("chains: codes of short rows for all rows, where results are laid in their registers before they are stored apart")
{
    for (const Dtype type : {Dtype::f16, Dtype::bf16})
        for (const int64_t n : {2, 31, 94, 200})
            for (const int64_t rows : {5, 15, 1001}) {
                Builder b;
                b.axis(rows), b.axis(n);
                b.store(b.map(Op::abs, b.load(type, 0, {0, 1})), 1, {3 * n, 3});
                b.store(b.map(Op::neg, b.load(type, 2, {1, 0})), 3, {3 * n, 3});
                std::vector<Buffer> buffers = {numbers(type, n, 1), numbers(Dtype::f32, 3 * rows * n, 2), numbers(type, rows, 3), numbers(Dtype::f32, 3 * rows * n, 4)};
                std::vector<Buffer> expected = buffers;
                for (int64_t i = 0; i < rows * n; i++) expected[1].set(3 * i, std::fabs(buffers[0].get(i % n))), expected[3].set(3 * i, -buffers[2].get(i / n));
                for (const cpu::IsaTable* isa : cpu::tables()) {
                    INFO(rows, " rows of ", n);
                    std::vector<Buffer> found = ran(b.kernel, *isa, buffers, {true, true, true, true});
                    check_same(isa->name, found, expected);
                }
            }
}

TEST_CASE("chains: codes that belong to short columns, several rows of which are a block")
{
    for (const int64_t n : {3, 16, 60}) {
        Builder b;
        b.axis(n), b.axis(4000, true);
        const int sum = b.fold(Op::max, b.load(Dtype::f32, 0, {1, n}));
        const auto codes = [&](Dtype type, int buffer) {
            const int x = b.load(type, buffer, {1, 0});
            b.kernel.values[size_t(x)].row = true;
            return x;
        };
        const int scaled = b.map(Op::add, b.map(Op::mul, sum, codes(Dtype::f16, 1)), codes(Dtype::bf16, 2));
        b.store(scaled, 3, {1, 0});
        b.store(b.map(Op::sub, b.load(Dtype::f32, 0, {1, n}), scaled), 4, {1, n});
        std::vector<Buffer> buffers = {numbers(Dtype::f32, 4000 * n, 1), numbers(Dtype::f16, n, 2), numbers(Dtype::bf16, n, 3), numbers(Dtype::f32, n, 4),
                                       numbers(Dtype::f32, 4000 * n, 5)};
        for (int b16 = 0; b16 < 3; b16++) fill(buffers[size_t(b16)], uint64_t(b16) + 11);
        check_all(b.kernel, buffers);
    }
}

cpu::Plan planned(const cpu::Program& program, std::vector<int64_t>& memory)
{
    memory.resize(size_t(cpu::plan_numbers(program)));
    return cpu::make_plan(program, program.lengths.constants(), nullptr, memory.data());
}

TEST_CASE("chains: a block has several short rows, but where results lie apart or places are computed")
{
    std::vector<int64_t> memory;
    for (const int64_t n : {7, 16, 32, 64, 100})
        for (const bool is_row : {true, false}) {
            Builder b;
            b.axis(4000), b.axis(n);
            const int sum = b.map(Op::add, b.load(Dtype::f32, 0, {n, 1}), b.load(Dtype::f32, 1, is_row ? Extents{0, 1} : Extents{1, 0}));
            b.store(b.map(Op::relu, sum), 2, {n, 1});
            CAPTURE(n);
            if (is_row || n > 16) CHECK(planned(cpu::lower(b.kernel, *cpu::isa_table(nullptr)), memory).block > 2 * n);
            b.store(sum, 3, {0, 1});
            CHECK(planned(cpu::lower(b.kernel, *cpu::isa_table(nullptr)), memory).row == 0);
        }
    Builder b;
    b.axis(4000), b.axis(32);
    const int place = b.load(Dtype::i64, 1, {0, 1});
    b.store(b.map(Op::add, b.load(Dtype::f32, 0, {32, 1}), b.gather(Dtype::f32, 2, {0, 1}, place, 9, 32)), 3, {32, 1});
    CHECK(planned(cpu::lower(b.kernel, *cpu::isa_table(nullptr)), memory).row == 0);
}

TEST_CASE("chains: in place and crosswise, as late stores")
{
    for (const int64_t n : {5, 128, 1025}) {
        Builder b;
        b.axis(n);
        const int x = b.load(Dtype::f32, 0, {1}), y = b.load(Dtype::f32, 1, {1}), half = b.load(Dtype::f16, 2, {1});
        const int sum = b.map(Op::add, b.map(Op::mul, x, b.constant(3)), y);
        b.store(b.map(Op::copysign, b.map(Op::sub, sum, half), x), 1, {1}, true);
        b.store(b.map(Op::div, b.map(Op::sub, y, x), sum), 0, {1}, true);
        b.store(b.convert(b.map(Op::mul, b.map(Op::add, half, half), y), Dtype::f16), 2, {1}, true);
        std::vector<Buffer> buffers = {numbers(Dtype::f32, n, 1), numbers(Dtype::f32, n, 2), numbers(Dtype::f16, n, 3)};
        check_all(b.kernel, buffers);
    }
}

TEST_CASE("chains: more operands and more results than a chain takes")
{
    const int64_t n = 700;
    Builder b;
    b.axis(n);
    std::vector<Buffer> buffers;
    std::vector<int>    sums;
    for (int k = 0; k < 60; k++) {
        buffers.push_back(numbers(k % 3 ? Dtype::f32 : Dtype::f16, n, uint64_t(k)));
        const int x = b.load(buffers.back().type, k, {1});
        sums.push_back(k ? b.map(k % 2 ? Op::sub : Op::add, x, sums.back()) : b.map(Op::neg, x));
    }
    for (int k = 60; k < 100; k++) {
        buffers.push_back(numbers(Dtype::f32, n, uint64_t(k)));
        b.store(b.map(Op::mul, sums[size_t(k - 60)], sums.back()), k, {1});
    }
    check_all(b.kernel, buffers);
}

TEST_CASE("chains: beside folds over rows and columns, whose passes keep what they share")
{
    for (const bool by_rows : {true, false})
        for (const int64_t length : {3, 130, 1500}) {
            const int64_t kept = 37;
            Builder b;
            b.axis(kept, false);
            b.axis(length, true);
            const Extents at = by_rows ? Extents{length, 1} : Extents{1, kept}, once = {1, 0};
            const int x = b.load(Dtype::f32, 0, at), half = b.load(Dtype::f16, 1, at);
            const int mixed = b.map(Op::add, b.map(Op::mul, x, b.constant(0.5)), half);
            const int most = b.fold(Op::max, b.map(Op::sub, mixed, b.constant(1)));
            b.store(b.convert(b.map(Op::maximum, b.map(Op::sub, mixed, most), half), Dtype::bf16), 2, at);
            b.store(most, 3, once);
            std::vector<Buffer> buffers = {numbers(Dtype::f32, kept * length, 1), numbers(Dtype::f16, kept * length, 2),
                                           numbers(Dtype::bf16, kept * length, 3), numbers(Dtype::f32, kept, 4)};
            check_all(b.kernel, buffers);
        }
}

TEST_CASE("chains: exp is what its own loop gives, whole bundles and the rest")
{
    for (const cpu::IsaTable* isa : cpu::tables())
        for (const int64_t n : {1, 100, 128, 129, 1000, 5003}) {
            Builder one, many;
            one.axis(n), many.axis(n);
            one.store(one.map(Op::exp, one.load(Dtype::f32, 0, {1})), 1, {1});
            many.store(many.map(Op::exp, many.map(Op::neg, many.map(Op::neg, many.load(Dtype::f32, 0, {1})))), 1, {1});
            std::vector<Buffer> buffers = {numbers(Dtype::f32, n, 1), numbers(Dtype::f32, n, 2)};
            for (int64_t i = 1; i < n; i += 3) buffers[0].set(i, double(i - 500) * 0.21);
            Buffer loop = ran(one.kernel, *isa, buffers, {true, true})[1], chain = ran(many.kernel, *isa, buffers, {true, true})[1];
            INFO(isa->name, ", ", n);
            CHECK(std::memcmp(loop.data(), chain.data(), size_t(n) * 4) == 0);
        }
}

TEST_CASE("chains: exp of a difference is what a difference and exp give, for blocks and where an operand is one number")
{
    struct Steps { int64_t x, y; };
    for (const cpu::IsaTable* isa : cpu::tables())
        for (const Steps step : {Steps{1, 1}, Steps{1, 0}, Steps{0, 1}, Steps{0, 0}})
            for (const int64_t n : {1, 15, 16, 33, 100, 1000, 5003}) {
                const auto kernel = [&](bool stores_difference) {
                    Builder b;
                    b.axis(n);
                    const int x = b.load(Dtype::f32, 0, {step.x}), difference = b.map(Op::sub, x, b.load(Dtype::f32, 1, {step.y}));
                    b.store(b.map(Op::where, b.map(Op::isfinite, x), b.map(Op::exp, difference), x), 2, {1});
                    if (stores_difference) b.store(difference, 3, {1});
                    return b.kernel;
                };
                std::vector<Buffer> buffers = {numbers(Dtype::f32, n, 1), numbers(Dtype::f32, n, 4), numbers(Dtype::f32, n, 2), numbers(Dtype::f32, n, 3)};
                for (int64_t i = 1; i < n; i += 3) buffers[0].set(i, double(i - 500) * 0.21);
                buffers[0].set(0, 0.75);
                buffers[1].set(0, 0.3);
                const std::vector<bool> all(4, true);
                Buffer one = ran(kernel(false), *isa, buffers, all)[2], two = ran(kernel(true), *isa, buffers, all)[2];
                INFO(isa->name, ", ", n, ", steps ", step.x, " ", step.y);
                CHECK(std::memcmp(one.data(), two.data(), size_t(n + GUARD) * 4) == 0);
            }
}

TEST_CASE("chains: outputs larger than the caches are written past them, whole bundles and the rest")
{
    const int64_t n = 9'000'001;
    Builder b;
    b.axis(n);
    const int x = b.load(Dtype::f32, 0, {1});
    const int y = b.map(Op::add, b.map(Op::mul, x, b.constant(3)), b.constant(0.25));
    b.store(y, 1, {1});
    b.store(b.convert(y, Dtype::f16), 2, {1});
    std::vector<Buffer> buffers = {numbers(Dtype::f32, n, 1), numbers(Dtype::f32, n, 2), numbers(Dtype::f16, n, 3)};
    check_all(b.kernel, buffers);
}

}  // namespace
