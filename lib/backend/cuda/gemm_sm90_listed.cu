// Hopper's products that carry out epilogues' lists.
#define LISTED_VECTORS 3
#define GEMM_NAME(name) gemm_listed_##name
#include "lib/backend/cuda/gemm_list_tiles.cuh"

#define OF_Half(...) __VA_ARGS__
#define OF_Byte(...) __VA_ARGS__
#define OF_Whole(...) __VA_ARGS__
#define OF_Wide(...) __VA_ARGS__
#define OF_Round(...) __VA_ARGS__
#include "kernels/gemm_sm90_cut.cuh"
#include "kernels/gemm_sm90_instances.cuh"
