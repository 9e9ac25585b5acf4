// Rows that are written past the caches while the next ones are computed, against the same rows a few at a time.
#include "lib/backend/cpu/fused.h"

#include "tests/backend/isa_tables.h"
#include "tests/backend/kernel_builder.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace ng;
using namespace ng::test;

namespace {

// Workers that run in turn, last task first.
void backwards(void* self, uint32_t count, Parallel::Task task, void* arg)
{
    const uint32_t workers = *static_cast<uint32_t*>(self);
    for (uint32_t i = count; i-- > 0;) task(arg, i, i % workers);
}

void run(const Kernel& kernel, const cpu::IsaTable& isa, std::vector<char*> buffers, uint32_t workers)
{
    const int64_t          variables[16] = {};
    const float            scalars[4] = {};
    const cpu::FusedKernel fused(kernel, isa);
    std::vector<Buffer::Line> workspace(fused.workspace_bytes({variables, 16}, workers) / 64 + 1);
    fused.run({variables, buffers.data(), scalars, workspace.data()}, workers == 1 ? Parallel() : Parallel(backwards, &workers, workers));
}

// Rows of buffer 0 into buffer 1: their softmax, and its logarithm into buffer 2 where `results` is 2.
Kernel rows_of(int64_t rows, int64_t columns, Dtype type, int results)
{
    Builder b;
    b.axis(rows);
    b.axis(columns, true);
    const Extents dense{columns, 1};
    const int x = b.load(type, 0, dense);
    const int below = b.map(Op::sub, x, b.fold(Op::max, x)), power = b.map(Op::exp, below), sum = b.fold(Op::sum, power);
    const int quotient = b.map(Op::div, power, sum);
    b.store(type == Dtype::f16 ? b.convert(quotient, type) : quotient, 1, dense, true);
    if (results == 2) b.store(b.map(Op::sub, below, b.map(Op::log, sum)), 2, dense, true);
    return b.kernel;
}

struct Rows { int64_t columns; Dtype type; int results; int64_t offset; bool in_place; };

void check(const Rows& r, const cpu::IsaTable& isa)
{
    constexpr int64_t FEW = 7;
    const int64_t bytes = bytes_of(r.type), rows = 70'000'000 / (r.columns * bytes), count = rows * r.columns;
    std::vector<Buffer> in = {Buffer(r.type, count + r.offset), Buffer(r.type, count + r.offset), Buffer(r.type, r.results == 2 ? count : 1)};
    uint32_t dice = 1;
    for (int64_t i = 0; i < count; i++) {
        dice = dice * 1664525 + 1013904223;
        in[0].set(i + r.offset, double(int32_t(dice)) * 0x1p-28);
    }
    const auto ran = [&](const Kernel& kernel, std::vector<Buffer>& b, int64_t first, uint32_t workers) {
        const int64_t at = (first * r.columns + r.offset) * bytes;
        run(kernel, isa, {b[0].data() + at, b[r.in_place ? 0 : 1].data() + at, b[2].data() + (r.results == 2 ? first * r.columns * bytes : 0)}, workers);
    };
    std::vector<Buffer> few = in, many = in;
    for (int64_t first = 0; first < rows; first += FEW) ran(rows_of(std::min(FEW, rows - first), r.columns, r.type, r.results), few, first, 1);
    for (const uint32_t workers : {1u, 3u}) {
        many = in;
        ran(rows_of(rows, r.columns, r.type, r.results), many, 0, workers);
        for (size_t b = 0; b < in.size(); b++)
            CHECK_MESSAGE(std::memcmp(many[b].data(), few[b].data(), size_t(in[b].count * bytes)) == 0, "rows of ", r.columns, ", buffer ", b, ", workers ", workers);
    }
}

}  // namespace

TEST_CASE("traffic: rows of functions beyond the caches are what they are a few at a time")
{
    for (const Rows& r : {Rows{1024, Dtype::f32, 1, 0, false}, {1024, Dtype::f32, 1, 0, true}, {1024, Dtype::f32, 2, 0, false}, {192, Dtype::f32, 1, 0, true},
                          {1088, Dtype::f32, 1, 16, false}, {1024, Dtype::f32, 1, 3, false}, {1001, Dtype::f32, 1, 0, false}, {3008, Dtype::f32, 1, 0, true},
                          {512, Dtype::f64, 1, 0, true}, {1024, Dtype::f64, 2, 0, false}, {1024, Dtype::f16, 1, 0, false}})
        check(r, *cpu::isa_table(nullptr));
    for (const cpu::IsaTable* isa : cpu::tables()) check({1024, Dtype::f32, 1, 0, true}, *isa);
}

TEST_CASE("traffic: one number for all of an output beyond the caches, alone and beside a sum")
{
    constexpr int64_t COUNT = 18'000'000;
    for (const bool is_alone : {false, true}) {
        Builder b;
        b.axis(COUNT);
        if (!is_alone) b.store(b.map(Op::add, b.load(Dtype::f32, 0, {1}), b.load(Dtype::f32, 0, {0})), 1, {1});
        b.store(b.constant(2.5), 2, {1});
        std::vector<Buffer> buffers = {Buffer(Dtype::f32, COUNT), Buffer(Dtype::f32, COUNT), Buffer(Dtype::f32, COUNT)};
        for (int64_t i = 0; i < COUNT; i++) buffers[0].set(i, double(i % 1000 + 1)), buffers[2].set(i, 0);
        run(b.kernel, *cpu::isa_table(nullptr), {buffers[0].data(), buffers[1].data(), buffers[2].data()}, 2);
        int64_t wrong = 0;
        for (int64_t i = 0; i < COUNT; i++) wrong += buffers[2].get(i) != 2.5 || (!is_alone && buffers[1].get(i) != double(i % 1000 + 2));
        CHECK(wrong == 0);
    }
}
