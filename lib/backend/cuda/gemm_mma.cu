// The image of portable matrix products: every instance, by the instructions of NVIDIA's devices.
// Tests bring plain C++ in its place.
#ifndef MMA_INSTRUCTIONS
#define MMA_INSTRUCTIONS "kernels/gemm_mma_ptx.cuh"
#endif
#include MMA_INSTRUCTIONS
#include "kernels/gemm_mma_simt.cuh"

#define PRODUCT_TILES(name, kind, m, n, warps_m, warps_n, stages, a_near, b_near, loads, blocks)                                     \
    extern "C" __global__ void __launch_bounds__(32 * warps_m * warps_n, blocks) mma_##name(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_tile<MmaShape<kind, m, n, warps_m, warps_n, stages, a_near, b_near>, loads>(numbers);                                    \
    }
#define SIMT(name, m, n, warps_m, warps_n, depth, stages, a_near, blocks)                                                                    \
    extern "C" __global__ void __launch_bounds__(32 * warps_m * warps_n, blocks) mma_##name(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        simt_tile<SimtShape<m, n, warps_m, warps_n, depth, stages, a_near>>(numbers);                                                \
    }
#define LAY(name, bytes)                                                                                                             \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS, 4)                                                            \
        mma_##name(const __grid_constant__ ng::kernels::MmaLayNumbers numbers)                                                       \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_lay<bytes>(numbers);                                                                                                     \
    }
#define PARTS(name, sum)                                                                                                             \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS) mma_##name(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_sum<sum>(numbers);                                                                                                       \
    }
#include "kernels/gemm_mma.def"
