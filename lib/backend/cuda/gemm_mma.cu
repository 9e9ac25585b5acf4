// The image of portable matrix products: every instance, by the instructions of NVIDIA's devices.
// Tests bring plain C++ in its place. Behind gemm_list.cuh: the instances that carry out lists.
#ifndef MMA_INSTRUCTIONS
#define MMA_INSTRUCTIONS "kernels/gemm_mma_ptx.cuh"
#endif
#include MMA_INSTRUCTIONS
#include "kernels/gemm_mma_row.cuh"
#include "kernels/gemm_mma_simt.cuh"
#include "kernels/gemm_mma_small.cuh"

#if HAS_LIST
#define MMA_NAME(name) mma_listed_##name
#define MMA_ROWS "kernels/gemm_mma_listed.def"
#define LISTED_SIMT SIMT_KERNEL
#define LISTED_PARTS PARTS_KERNEL
// Those of few rows, and of four blocks, which fold, would spill on sm_100 and sm_120.
#define BLOCKS_OF(m, blocks) (m == 16 || blocks == 4 ? blocks - 1 : blocks)
#else
#define MMA_NAME(name) mma_##name
#define MMA_ROWS "kernels/gemm_mma.def"
#define SIMT SIMT_KERNEL
#define ROW ROW_KERNEL
#define SMALL SMALL_KERNEL
#define SMALL_SIMT SMALL_SIMT_KERNEL
#define LAY LAY_KERNEL
#define PARTS PARTS_KERNEL
#define BLOCKS_OF(m, blocks) blocks
#endif

#define PRODUCT_TILES(name, kind, m, n, warps_m, warps_n, stages, a_near, b_near, loads, blocks)                                     \
    extern "C" __global__ void __launch_bounds__(32 * warps_m * warps_n, BLOCKS_OF(m, blocks)) MMA_NAME(name)(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_tile<MmaShape<kind, m, n, warps_m, warps_n, stages, a_near, b_near>, loads>(numbers);                                    \
    }
#define SIMT_KERNEL(name, m, n, warps_m, warps_n, depth, stages, a_near, blocks)                                                                    \
    extern "C" __global__ void __launch_bounds__(32 * warps_m * warps_n, BLOCKS_OF(m, blocks)) MMA_NAME(name)(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        simt_tile<SimtShape<m, n, warps_m, warps_n, depth, stages, a_near>>(numbers);                                                \
    }
#define ROW_KERNEL(name, sum, near, warps, columns, pieces, blocks)                                                                                \
    extern "C" __global__ void __launch_bounds__(32 * warps, blocks) MMA_NAME(name)(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_row<RowShape<sum, near, warps, columns, pieces>>(numbers);                                                                       \
    }
#define SMALL_KERNEL(name, kind, row_blocks, column_blocks, blocks)                                                                                  \
    extern "C" __global__ void __launch_bounds__(32 * ng::kernels::SMALL_WARPS, blocks) MMA_NAME(name)(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_small<SmallShape<kind, row_blocks, column_blocks>>(numbers);                                                             \
    }
#define SMALL_SIMT_KERNEL(name, rows, columns, words, blocks)                                                                                              \
    extern "C" __global__ void __launch_bounds__(32 * ng::kernels::SMALL_WARPS, blocks) MMA_NAME(name)(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        simt_small<SmallSimtShape<rows, columns, words>>(numbers);                                                                          \
    }
#define LAY_KERNEL(name, bytes)                                                                                                             \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS, 4)                                                            \
        MMA_NAME(name)(const __grid_constant__ ng::kernels::MmaLayNumbers numbers)                                                       \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_lay<bytes>(numbers);                                                                                                     \
    }
#define PARTS_KERNEL(name, sum)                                                                                                             \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS) MMA_NAME(name)(const __grid_constant__ ng::kernels::MmaNumbers numbers) \
    {                                                                                                                                \
        using namespace ng::kernels;                                                                                                 \
        mma_sum<sum>(numbers);                                                                                                       \
    }
#include MMA_ROWS
#undef SIMT_KERNEL
#undef ROW_KERNEL
#undef SMALL_KERNEL
#undef SMALL_SIMT_KERNEL
#undef LAY_KERNEL
#undef PARTS_KERNEL
