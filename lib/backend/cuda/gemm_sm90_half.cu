// Products of f16 and bf16 on Hopper's tensor cores, compiled: an instance a row, type and way that operands lie.
#include "lib/backend/cuda/prelude.cuh"
#include "jit/prelude_common.h"
#undef DEVICE
#include "lib/backend/cuda/gemm_epilogue.cuh"

#define TILES_OF_Half(...) GEMM_SM90_Half(TILES_KERNEL, __VA_ARGS__)
#define SPLIT_OF_Half(...) GEMM_SM90_Half(SPLIT_KERNEL, __VA_ARGS__)
#define ASIDE_OF_Half(...) ASIDE_KERNEL(__VA_ARGS__)
#define TILES_OF_Byte(...)
#define SPLIT_OF_Byte(...)
#define ASIDE_OF_Byte(...)
#define TILES_OF_Whole(...)
#define SPLIT_OF_Whole(...)
#define ASIDE_OF_Whole(...)
#define TILES_OF_Wide(...)
#define SPLIT_OF_Wide(...)
#define ASIDE_OF_Wide(...)
#define TILES_OF_Round(...)
#define SPLIT_OF_Round(...)
#define ASIDE_OF_Round(...)
#include "kernels/gemm_sm90_instances.cuh"
