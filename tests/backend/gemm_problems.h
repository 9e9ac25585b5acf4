// Products as the tests of their kernels ask for them: extents, how operands lie, types, and what an epilogue does.
#pragma once
#include "jit/ops.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "tests/backend/product_check.h"

#include <cstring>
#include <random>

namespace ng::gemm_check {
namespace gemm = cuda::gemm;

struct Lying {
    bool    a_turned, b_turned, c_turned;    // a [k, m], b [n, k], c [n, m] in memory
    int64_t gap;                             // elements between rows
};

struct Extents {
    int64_t m, n, k, batches;
};
// Of each instance three clusters' tiles or more, in each of which its ring of stages goes round.
inline constexpr Extents DEEP[] = {{14, 1030, 1720, 1}, {34, 130, 1720, 3}};

// Dense but for the gaps, batch after batch; addresses are null, there is no epilogue.
inline gemm::Problem problem_of(const Extents& e, const Lying& lying, Dtype a, Dtype b, Dtype c)
{
    gemm::Problem p;
    std::memset(static_cast<void*>(&p), 0, sizeof p);
    p.a_type = a, p.b_type = b, p.c_type = c, p.m = e.m, p.n = e.n, p.k = e.k, p.batches = e.batches;
    const int64_t a_line = (lying.a_turned ? e.m : e.k) + lying.gap, b_line = (lying.b_turned ? e.k : e.n) + lying.gap, c_line = (lying.c_turned ? e.m : e.n) + lying.gap;
    p.a_row = lying.a_turned ? 1 : a_line, p.a_depth = lying.a_turned ? a_line : 1, p.a_batch = a_line * (lying.a_turned ? e.k : e.m);
    p.b_depth = lying.b_turned ? 1 : b_line, p.b_column = lying.b_turned ? b_line : 1, p.b_batch = b_line * (lying.b_turned ? e.n : e.k);
    p.c_row = lying.c_turned ? 1 : c_line, p.c_column = lying.c_turned ? c_line : 1, p.c_batch = c_line * (lying.c_turned ? e.n : e.m);
    return p;
}

inline char* address(uint64_t a) { return reinterpret_cast<char*>(a); }
// Where nothing is, for what only looks at addresses.
inline gemm::Problem placed(gemm::Problem p)
{
    p.a = address(uint64_t(1) << 32), p.b = address(uint64_t(1) << 33), p.c = address(uint64_t(1) << 34);
    return p;
}

inline gemm::Device whole_device() { return {90, 132, {true, true, true, true}}; }

// All pairs of types that Hopper's kernels take, and what their sums are.
struct Types {
    Dtype a, b, sum;
};
inline constexpr Types TYPES[] = {
    {Dtype::f16, Dtype::f16, Dtype::f32},   {Dtype::bf16, Dtype::bf16, Dtype::f32}, {Dtype::e4m3, Dtype::e4m3, Dtype::f32}, {Dtype::e4m3, Dtype::e5m2, Dtype::f32},
    {Dtype::e5m2, Dtype::e4m3, Dtype::f32}, {Dtype::e5m2, Dtype::e5m2, Dtype::f32}, {Dtype::i8, Dtype::i8, Dtype::i32},     {Dtype::i8, Dtype::u8, Dtype::i32},
    {Dtype::u8, Dtype::i8, Dtype::i32},     {Dtype::u8, Dtype::u8, Dtype::i32},     {Dtype::f32, Dtype::f32, Dtype::f32},
};

inline double rounding_of(Dtype t) { return t == Dtype::f64 ? 0 : t == Dtype::f16 ? 0x1p-11 : t == Dtype::bf16 ? 0x1p-8 : t == Dtype::i32 ? 0 : 0x1p-24; }
// Of sums on tensor cores, beside |a| |b|: each addition of 16 products cuts off what is below f32's last place. Of fp8 they keep
// 13 bits, and there are 16 additions before the sums move to f32. An epilogue rounds four times.
inline double error_of(const gemm::Problem& p, bool has_epilogue)
{
    const double after = has_epilogue ? 4 * 0x1p-24 : 0;
    if (bytes_of(p.a_type) == 1) return after + (is_float(p.a_type) ? 16 * 0x1p-13 : 0);
    if (p.a_type == Dtype::f64) return double(p.k + 2) * 0x1p-52;
    if (p.a_type == Dtype::f32) return after + (p.allows_tf32 ? 0x1p-9 : 0x1p-21);
    return after + double(p.k / 16 + 2) * 0x1p-23;
}

// Numbers that the type has, as bytes and as doubles.
struct Matrix {
    std::vector<char>   bytes;
    std::vector<double> values;
};
inline Matrix random_matrix(Dtype t, int64_t count, uint32_t seed)
{
    std::mt19937 random(seed);
    Matrix       r;
    const int    size = bytes_of(t);
    r.bytes.resize(size_t(count * size)), r.values.resize(size_t(count));
    for (int64_t i = 0; i < count; i++) {
        char* const at = r.bytes.data() + i * size;
        if (t == Dtype::f64) product_check::write(at, double(random()) * 0x1p-31 - 1 + double(random()) * 0x1p-60);
        else if (t == Dtype::f32) product_check::write(at, float(double(random()) * 0x1p-31 - 1));
        else if (t == Dtype::f16) product_check::write(at, uint16_t(random() % 0x3c00 | (random() & 1) << 15));      // below 1
        else if (t == Dtype::bf16) product_check::write(at, uint16_t((0x3d00 + random() % 0x280) | (random() & 1) << 15));
        else if (is_float(t)) product_check::write(at, uint8_t(random() % (t == Dtype::e4m3 ? 0x48 : 0x40) | (random() & 1) << 7));
        else product_check::write(at, uint8_t(random()));
        r.values[size_t(i)] = product_check::get(t, at);
    }
    return r;
}

}  // namespace ng::gemm_check
