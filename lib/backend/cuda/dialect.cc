// CUDA C for generated kernels, as NVRTC and nvcc compile it.
#include "jit/dialect.h"

namespace ng {

extern const char cuda_prelude[];        // prelude.cuh and what dialects share, embedded by the build

const Dialect& cuda_dialect()
{
    static constexpr Dialect dialect = {
        .name = "cuda",
        .suffix = ".cu",
        .prelude = cuda_prelude,
        .options = "--fmad=false -std=c++17 -w",
        .kernel = "extern \"C\" __global__ void __launch_bounds__(256)",
        .helper = "static __device__ __forceinline__",
        .global = "",
        .shared = "__shared__ ",
        .shared_pointer = "",
        .restrict_ = "__restrict__ ",
        .thread = "(i32)threadIdx.x",
        .threads = "(i32)blockDim.x",
        .block = "blockIdx.x",
        .any_block = "((u64)blockIdx.y * gridDim.x + blockIdx.x)",
        .blocks = "gridDim.x",
        .barrier = "__syncthreads()",
    };
    return dialect;
}

}  // namespace ng
