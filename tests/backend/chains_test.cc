// Chains of instructions in vector registers against the same kernels by the instruction set that has none, number by number.
#include "lib/backend/cpu/fused.h"

#include "tests/backend/isa_tables.h"
#include "tests/backend/kernel_builder.h"

#include <doctest/doctest.h>

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

void check_all(const Kernel& kernel, std::vector<Buffer>& buffers, std::vector<bool> wanted = {})
{
    wanted.resize(buffers.size(), true);
    std::vector<Buffer> plain = ran(kernel, *cpu::tables().front(), buffers, wanted);
    for (const cpu::IsaTable* isa : cpu::tables()) {
        std::vector<Buffer> found = ran(kernel, *isa, buffers, wanted);
        for (size_t b = 0; b < buffers.size(); b++) {
            int64_t wrong = 0, first = -1;
            for (int64_t i = 0; i < buffers[b].count; i++) {
                const double x = found[b].get(i), y = plain[b].get(i);
                const bool same = x == y ? std::signbit(x) == std::signbit(y) : x != x && y != y;
                if (!same && wrong++ == 0) first = i;
            }
            INFO(isa->name, ", buffer ", b, " first at ", first, ": ", first < 0 ? 0 : found[b].get(first), " not ", first < 0 ? 0 : plain[b].get(first));
            CHECK(wrong == 0);
        }
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
