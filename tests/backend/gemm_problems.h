// Products as the tests of their kernels ask for them: extents, how operands lie, types, and what an epilogue does.
#pragma once
#include "jit/ops.h"
#include "lib/backend/cuda/gemm_sm90.h"

#include <cstring>

namespace ng::gemm_check {
namespace gemm = cuda::gemm;

struct Lying {
    bool    a_turned, b_turned, c_turned;    // a [k, m], b [n, k], c [n, m] in memory
    int64_t gap;                             // elements between rows
};

struct Extents {
    int64_t m, n, k, batches;
};

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

}  // namespace ng::gemm_check
