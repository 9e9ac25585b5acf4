// Products of fp8 and of 8-bit integers on Hopper's tensor cores, compiled: depth is side by side in both operands.
#include "lib/backend/cuda/prelude.cuh"
#include "jit/prelude_common.h"
#undef DEVICE
#include "lib/backend/cuda/gemm_epilogue.cuh"

#define TILES_OF_Half(...)
#define SPLIT_OF_Half(...)
#define ASIDE_OF_Half(...)
#define TILES_OF_Byte(...) GEMM_SM90_Byte(TILES_KERNEL, __VA_ARGS__)
#define SPLIT_OF_Byte(...) GEMM_SM90_Byte(SPLIT_KERNEL, __VA_ARGS__)
#define ASIDE_OF_Byte(...) ASIDE_KERNEL(__VA_ARGS__)
#define TILES_OF_Whole(...) GEMM_SM90_Whole(TILES_KERNEL, __VA_ARGS__)
#define SPLIT_OF_Whole(...) GEMM_SM90_Whole(SPLIT_KERNEL, __VA_ARGS__)
#define ASIDE_OF_Whole(...) ASIDE_KERNEL(__VA_ARGS__)
#define TILES_OF_Wide(...)
#define SPLIT_OF_Wide(...)
#define ASIDE_OF_Wide(...)
#define TILES_OF_Round(...)
#define SPLIT_OF_Round(...)
#define ASIDE_OF_Round(...)
#include "kernels/gemm_sm90_instances.cuh"
