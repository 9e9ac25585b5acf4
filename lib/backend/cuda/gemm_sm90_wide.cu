// Products of f32 on Hopper's tensor cores, compiled: as planes of bf16, or rounded to tf32 where that is allowed.
#include "lib/backend/cuda/prelude.cuh"
#include "jit/prelude_common.h"
#undef DEVICE
#include "lib/backend/cuda/gemm_epilogue.cuh"

#define TILES_OF_Half(...)
#define SPLIT_OF_Half(...)
#define ASIDE_OF_Half(...)
#define TILES_OF_Byte(...)
#define SPLIT_OF_Byte(...)
#define ASIDE_OF_Byte(...)
#define TILES_OF_Whole(...)
#define SPLIT_OF_Whole(...)
#define ASIDE_OF_Whole(...)
#define TILES_OF_Wide(...) GEMM_SM90_Wide(TILES_KERNEL, __VA_ARGS__)
#define SPLIT_OF_Wide(...) GEMM_SM90_Wide(SPLIT_KERNEL, __VA_ARGS__)
#define ASIDE_OF_Wide(...) ASIDE_KERNEL(__VA_ARGS__)
#define TILES_OF_Round(...) GEMM_SM90_Round(TILES_KERNEL, __VA_ARGS__)
#define SPLIT_OF_Round(...) GEMM_SM90_Round(SPLIT_KERNEL, __VA_ARGS__)
#define ASIDE_OF_Round(...) ASIDE_KERNEL(__VA_ARGS__)
#include "kernels/gemm_sm90_instances.cuh"
