// Products of fp8 and of 8-bit integers on Hopper's tensor cores, compiled: depth is side by side in both operands.
#define OF_Byte(...) __VA_ARGS__
#define OF_Whole(...) __VA_ARGS__
#define OF_MovedByte(...)  __VA_ARGS__
#define OF_MovedWhole(...) __VA_ARGS__
#include "kernels/gemm_sm90_instances.cuh"
