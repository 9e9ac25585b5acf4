// Sweeps rows of one operand over all numbers of f32, or one in so many, and says how far each strays beside its bound.
//   math_sweep [--stride N] [--level x86-64-v3] ROW..     N is 1 unless said: minutes a row and core
#include "lib/backend/cpu/isa.h"
#include "tests/backend/row_values.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

using namespace ng;
using namespace ng::cpu;

namespace {

constexpr uint64_t NUMBERS = uint64_t(1) << 32;
constexpr size_t   BLOCK = 4096;
constexpr uint64_t BLOCKS_A_PIECE = 64;

struct Worst {
    double   distance = 0;
    float    x = 0, got = 0;
    uint64_t count = 0;

    void take(const Worst& o)
    {
        count += o.count;
        if (o.distance > distance) distance = o.distance, x = o.x, got = o.got;
    }
};

// The numbers of one piece: bits first, first + stride ..
Worst swept(const IsaTable& isa, Op op, uint64_t first, uint64_t end, uint64_t stride)
{
    Worst                    worst;
    std::array<float, BLOCK> x, y;
    for (uint64_t u = first; u < end;) {
        size_t n = 0;
        for (; n < BLOCK && u < end; n++, u += stride) x[n] = std::bit_cast<float>(uint32_t(u));
        isa.map[int(op)][int(Dtype::f32)][MODE_ALL](y.data(), x.data(), nullptr, nullptr, int64_t(n));
        for (size_t i = 0; i < n; i++) {
            const long double exact = reference::Values<long double>::of(op, (long double)(x[i]), 0.0L, 0.0L);
            const double      d = exact == 0 && std::signbit(exact) != std::signbit(y[i]) ? 1e9 : reference::distance(y[i], exact, 0);
            if (d > worst.distance) worst.distance = d, worst.x = x[i], worst.got = y[i];
        }
        worst.count += n;
    }
    return worst;
}

Worst sweep(const IsaTable& isa, Op op, uint64_t stride)
{
    const uint64_t           piece = stride * BLOCK * BLOCKS_A_PIECE;
    std::atomic<uint64_t>    next{0};
    std::vector<Worst>       worst(std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::thread> threads;
    for (Worst& mine : worst)
        threads.emplace_back([&] {
            for (uint64_t first; (first = next.fetch_add(piece)) < NUMBERS;) mine.take(swept(isa, op, first, std::min(first + piece, NUMBERS), stride));
        });
    for (std::thread& t : threads) t.join();
    Worst all;
    for (const Worst& mine : worst) all.take(mine);
    return all;
}

int say_usage(const char* what)
{
    std::fprintf(stderr, "math_sweep: %s\nmath_sweep [--stride N] [--level NAME] ROW..: rows of ops.def of one operand of floats with a bound\n", what);
    return 2;
}

}  // namespace

int main(int count, char** given)
{
    uint64_t        stride = 1;
    const IsaTable* isa = isa_table(nullptr);
    std::vector<Op> rows;
    for (int i = 1; i < count; i++) {
        const std::string_view word = given[i];
        if (word == "--stride" && i + 1 < count) stride = std::strtoull(given[++i], nullptr, 10);
        else if (word == "--level" && i + 1 < count) isa = isa_table(given[++i]);
        else rows.push_back(find_op(word));
    }
    if (!stride || !isa || rows.empty()) return say_usage(!stride ? "a stride is at least 1" : !isa ? "this processor has no such level" : "which rows?");
    bool is_within = true;
    for (const Op op : rows) {
        if (op == Op::count_ || !is_map(op) || info(op).arity != 1 || info(op).ulp == 0) return say_usage("a row is none of one operand that has a bound");
        const Worst w = sweep(*isa, op, stride);
        is_within = is_within && w.distance <= double(info(op).ulp);
        std::printf("%s %s: %llu numbers, %.4f ulp at %a, which gives %a; the bound is %d\n", isa->name, name_of(op), (unsigned long long)w.count,
                    w.distance, double(w.x), double(w.got), int(info(op).ulp));
        std::fflush(stdout);
    }
    return is_within ? 0 : 1;
}
