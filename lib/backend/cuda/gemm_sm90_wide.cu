// Products of f32 on Hopper's tensor cores, compiled: as planes of bf16, or rounded to tf32 where that is allowed; and of f64.
#define OF_Wide(...) __VA_ARGS__
#define OF_Round(...) __VA_ARGS__
#define OF_Turned(...) __VA_ARGS__
#define OF_Moved(...)  __VA_ARGS__
#define OF_Double(...) __VA_ARGS__
#include "kernels/gemm_sm90_cut.cuh"
#include "kernels/gemm_sm90_instances.cuh"
