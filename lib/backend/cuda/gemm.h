// Matrix products by kernels made for them: one problem in numbers, who can do it, and its launches.
#pragma once
#include "kernels/gemm_epilogue.h"
#include "lib/backend/cuda/basic_launch.h"

namespace ng::cuda::gemm {

// c[i, row, column] = epilogue(sum over depth of a[i, row, depth] b[i, depth, column]). Strides in elements, of any sign;
// sums are f32 of floats, f64 of f64, i32 of 8-bit integers, and c's own type otherwise (contract N7).
struct Problem {
    const void *a, *b;
    void*       c;
    Dtype       a_type, b_type, c_type;  // c_type: as stored
    bool        allows_tf32;             // NG_TF32
    int64_t     m, n, k, batches;
    int64_t     a_row, a_depth, b_depth, b_column, c_row, c_column;
    int64_t     a_batch, b_batch, c_batch;
    kernels::Epilogue epilogue;
};

}  // namespace ng::cuda::gemm
