// The shipped interpreter, its device code run on the CPU, against the CPU backend; and the limits of its tapes.
#include "lib/backend/cuda/interpreter.h"

#include "jit/error.h"
#include "tests/backend/interpreter_cases.h"
#include "tests/backend/interpreter_emulation.h"

#include <doctest/doctest.h>

#include <cstring>

using namespace ng;
using namespace ng::test;

REGISTER_EXCEPTION_TRANSLATOR(const Error& error) { return error.text.c_str(); }

namespace {

// A grid of as many blocks as three multiprocessors would get, so that blocks stride.
struct Emulated : TapeMachine {
    bool was_split = false, was_far = false;
    int  spilling = 0;

    void run(const cuda::Tape& tape, const TapeCase& c, std::vector<Buffer>& buffers) override
    {
        const cuda::TapeGeometry g = cuda::geometry_of(tape, c.variables);
        CHECK(g.scratch_bytes <= cuda::most_scratch(tape, 1));
        CHECK(g.is_possible);
        CHECK(g.shared_bytes <= c.shared_bytes);
        std::vector<Buffer> homes;
        std::vector<void*> pointers;
        for (Buffer& b : buffers) {
            homes.emplace_back(b.type, b.count + c.shift);
            char* at = homes.back().data() + c.shift * bytes_of(b.type);
            std::memcpy(at, b.data(), size_t(b.count * bytes_of(b.type)));
            pointers.push_back(at);
        }
        std::vector<Buffer::Line> scratch(size_t(cuda::most_scratch(tape, 1) / 64 + 1));
        for (uint32_t k = 0; k < g.launches; k++) {
            interpreter::Numbers numbers;
            std::memset(static_cast<void*>(&numbers), 0xa5, sizeof numbers);
            cuda::fill_numbers(tape, g, {tape.code.data(), scratch.data(), pointers, c.variables, &CASE_SCALARS}, k, numbers);
            emulate_interpreter(g.blocks(k, 1), g.threads, numbers);
        }
        was_split |= g.pieces > 1;
        spilling += tape.spilled > 0;
        was_far |= tape.near_at == 0;
        for (size_t b = 0; b < buffers.size(); b++)
            std::memcpy(buffers[b].data(), static_cast<char*>(pointers[b]), size_t(buffers[b].count * bytes_of(buffers[b].type)));
    }
};

bool check(const TapeCases& all)
{
    Emulated machine;
    for (const TapeCase& c : all) {
        INFO(c.name);
        const std::string found = difference(c, machine);
        CHECK_MESSAGE(found.empty(), found);
    }
    return machine.was_split;
}

}  // namespace

TEST_CASE("interpreter: any strides, lengths, aliases and alignments") { check(stride_cases()); }
TEST_CASE("interpreter: every type in memory, every conversion and bitcast") { check(type_cases()); }
TEST_CASE("interpreter: every row of ops.def in every type") { check(map_cases()); }
TEST_CASE("interpreter: every fold in every type, along rows, down columns, over several blocks") { CHECK(check(fold_cases())); }
TEST_CASE("interpreter: random numbers and roundings by chance are the same bits") { check(chance_cases()); }

TEST_CASE("interpreter: live values that shared memory has no room for are kept elsewhere, and the same")
{
    Emulated machine;
    for (const TapeCase& c : spilling_cases()) {
        INFO(c.name);
        const std::string found = difference(c, machine);
        CHECK_MESSAGE(found.empty(), found);
    }
    CHECK(machine.was_far);                          // lists for which shared memory has no room, either
    CHECK(machine.spilling == 13);                   // all but 60 of f32 in 227 KiB, and the least of rows
    TapeCase few = spilling_cases().front();
    few.shared_bytes = interpreter::MOST_SHARED_BYTES;
    CHECK(cuda::make_tape(few.kernel, few.shared_bytes).spilled == 0);
}

// All codes of a narrow float, which a kernel loads, gathers and is seen as, and computes with beside that.
std::vector<Buffer> moved_codes(Dtype type)
{
    const int64_t n = 65536;
    const Dtype   bits = bytes_of(type) == 1 ? Dtype::u8 : Dtype::u16;
    Builder       b;
    b.axis(n);
    Value as_bits{ValueKind::Bitcast}, as_float{ValueKind::Bitcast};
    const int x = b.load(type, 0, {1}), y = b.gather(type, 0, {0}, b.index({-1}, n - 1), n, 1), z = b.load(bits, 0, {1});
    as_bits.type = bits, as_bits.args[0] = y;
    as_float.type = type, as_float.args[0] = z;
    const int codes = b.add(as_bits), floats = b.add(as_float);
    b.store(x, 1, {1}), b.store(y, 2, {-1}, false, n - 1), b.store(codes, 3, {-1}, false, n - 1), b.store(floats, 4, {1});
    b.store(b.map(Op::add, b.map(Op::add, x, y), floats), 5, {1});
    TapeCase c{text(name_of(type)), b.kernel, {}, {}, 0, 0};
    for (const Dtype t : {type, type, type, bits, type, Dtype::f32}) c.buffers.emplace_back(t, n);
    for (int64_t i = 0; i < n; i++) std::memcpy(c.buffers[0].data() + i * bytes_of(type), &i, size_t(bytes_of(type)));
    Emulated machine;
    machine.run(cuda::make_tape(c.kernel), c, c.buffers);
    return c.buffers;
}

TEST_CASE("interpreter: narrow floats that only move keep every bit of NaN, whoever else reads them")
{
    for (const Dtype type : {Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2}) {
        std::vector<Buffer> buffers = moved_codes(type);
        for (size_t k = 1; k < 5; k++) {
            INFO(name_of(type), " buffer ", k);
            CHECK(std::memcmp(buffers[0].data(), buffers[k].data(), size_t(65536 * bytes_of(type))) == 0);
        }
    }
}

// Rows of `points` f32 as their products.
std::vector<float> products_of(const std::vector<float>& x, int64_t points)
{
    const auto rows = int64_t(x.size()) / points;
    Builder    b;
    b.axis(rows);
    b.axis(points, true);
    b.store(b.fold(Op::prod, b.load(Dtype::f32, 0, {points, 1})), 1, {1, 0});
    TapeCase c{"products", b.kernel, filled({rows * points, rows}), {}, 0, 0};
    std::memcpy(c.buffers[0].data(), x.data(), x.size() * sizeof(float));
    Emulated machine;
    machine.run(cuda::make_tape(c.kernel), c, c.buffers);
    std::vector<float> y(static_cast<size_t>(rows));
    std::memcpy(y.data(), c.buffers[1].data(), y.size() * sizeof(float));
    return y;
}

TEST_CASE("interpreter: products of many f32 near 1 keep an f32's digits")
{
    std::vector<float> x(size_t(1) << 21);
    double             exact = 1;
    uint64_t           seed = 3;
    for (float& v : x) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        v = float(1 + (double(seed >> 33) / double(1u << 31) - 0.5) * 4e-6), exact *= v;
    }
    CHECK(std::fabs(products_of(x, int64_t(x.size()))[0] / exact - 1) < 2e-7);
}

TEST_CASE("interpreter: products with infinities, zeros and NaN, and those that leave the type and come back, are as plain ones")
{
    const float inf = INFINITY, most = 3e38f, least = 1e-38f;
    const std::vector<float> x = {inf, 2, 3, -1, inf, 0, 1, 1, 0, 5, -inf, 2, -inf, -inf, -2, 1, NAN, 0, 1, 1, 0, 5, -3, 1, most, 1, 1, 1, most, 8, -1, 1, least, 0.5f, 0.5f, 1};
    const std::vector<float> y = products_of(x, 4);
    for (size_t r = 0; r < y.size(); r++) {
        float plain = 1;
        for (size_t k = 0; k < 4; k++) plain *= x[4 * r + k];
        INFO("row ", r, ": ", y[r], " and ", plain);
        CHECK((y[r] == plain || (std::isnan(y[r]) && std::isnan(plain))));
    }
}

TEST_CASE("interpreter: what one tape cannot hold is a limit")
{
    Builder large;
    large.axis(100);
    int x = large.constant(0);
    for (int k = 0; k < 500; k++) x = large.map(Op::add, x, large.constant(k + 1));
    large.store(large.map(Op::add, x, large.load(Dtype::f32, 0, {1})), 1, {1});
    CHECK_THROWS_WITH_AS(cuda::make_tape(large.kernel), doctest::Contains("numbers, offsets and strides"), Error);
}
