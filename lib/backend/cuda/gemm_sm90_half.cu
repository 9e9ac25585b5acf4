// Products of f16 and bf16 on Hopper's tensor cores, compiled: an instance a row, type and way that operands lie.
#define OF_Half(...) __VA_ARGS__
#include "kernels/gemm_sm90_odd.cuh"
#include "kernels/gemm_sm90_instances.cuh"
