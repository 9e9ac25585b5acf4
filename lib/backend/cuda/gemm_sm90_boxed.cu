// Hopper's products that carry out epilogues' lists, of which one tensor comes by the copy engine, where results of 16 bits are staged.
#define LISTED_VECTORS 1
#define HAS_BOX true
#define GEMM_NAME(name) gemm_boxed_##name
#include "lib/backend/cuda/gemm_list_tiles.cuh"

#define OF_Half(...) __VA_ARGS__
#define OF_Byte(...) __VA_ARGS__
#define OF_Whole(...) __VA_ARGS__
#define OF_Wide(...) __VA_ARGS__
#define OF_Round(...) __VA_ARGS__
#include "kernels/gemm_sm90_cut.cuh"
#include "kernels/gemm_sm90_instances.cuh"
