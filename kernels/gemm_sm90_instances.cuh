// The rows of gemm_sm90.def as kernels: its includer says of which groups, by OF_<group>(...) that gives what it is given,
// and brings gemm_sm90_odd.cuh where it has ODD rows, gemm_sm90_cut.cuh where CUT.
#pragma once
#include "kernels/gemm_sm90_aside.cuh"
#include "kernels/gemm_sm90_double.cuh"
#include "kernels/gemm_sm90_split.cuh"

// Behind gemm_list.cuh: of rows that have such kernels, what carries out lists; where a tensor comes by boxes, of tiles alone.
#ifndef GEMM_NAME
#define GEMM_NAME(name) gemm_##name
#endif

namespace ng::kernels {

template <class S>
DEVICE void run_any_tiles(const GemmTilesNumbers& g)
{
    if constexpr (S::Kind::BYTES == 8) run_doubles<S>(g);
    else run_tiles<S>(g);
}
#define TILES_KERNEL(types, way, Kind, a, b, promote, tile, m, n, down, across, stages, schedule, turns, stream_k)                 \
    extern "C" __global__ void __launch_bounds__(tiles_threads(m, turns), 1) GEMM_NAME(types##_##way##_##tile)(const __grid_constant__ GemmTilesNumbers numbers) \
    {                                                                                                                              \
        run_any_tiles<TilesShape<Kind, m, n, down, across, stages, a, b, schedule, promote, turns, stream_k>>(numbers);            \
    }
#define SPLIT_KERNEL(types, way, Kind, a, b, promote, tile, m, n, stages, units, turns)                                            \
    extern "C" __global__ void __launch_bounds__(split_threads(m), units) GEMM_NAME(types##_##way##_s##tile)(const __grid_constant__ GemmSplitNumbers numbers) \
    {                                                                                                                              \
        run_split<SplitShape<Kind, m, n, stages, a, b, promote, turns>>(numbers);                                                  \
    }
#define ODD_KERNEL(types, way, Kind, a, b, promote, tile, m, n, stages, units)                                                     \
    extern "C" __global__ void __launch_bounds__(split_threads(m), units) gemm_##types##_##way##_o##tile(const __grid_constant__ GemmOddNumbers numbers) \
    {                                                                                                                              \
        static_assert(n == ODD_COLUMNS, "columns that count");                                                                     \
        run_odd<OddShape<Kind, m, stages>>(numbers);                                                                               \
    }
#define CUT_KERNEL(types, way, Kind, a, b, promote, tile, m, n, stages, slots)                                                     \
    extern "C" __global__ void __launch_bounds__(CUT_THREADS, 1) GEMM_NAME(types##_##way##_c##tile)(const __grid_constant__ GemmSplitNumbers numbers) \
    {                                                                                                                              \
        run_cut<CutShape<m, n, stages, slots, a, b>>(numbers);                                                                     \
    }
#define ASIDE_sum    GemmSumNumbers
#define ASIDE_pitch  GemmPitchNumbers
#define ASIDE_planes GemmPlanesNumbers
#define ASIDE_turn   GemmTurnNumbers
#define ASIDE_turn_bytes GemmTurnNumbers
#define ASIDE_KERNEL(name, threads)                                                                                                \
    extern "C" __global__ void __launch_bounds__(threads) gemm_##name(const __grid_constant__ ASIDE_##name numbers) { run_##name(numbers); }
#ifndef OF_Half
#define OF_Half(...)
#endif
#ifndef OF_Byte
#define OF_Byte(...)
#endif
#ifndef OF_Whole
#define OF_Whole(...)
#endif
#ifndef OF_Wide
#define OF_Wide(...)
#endif
#ifndef OF_Round
#define OF_Round(...)
#endif
#ifndef OF_Turned
#define OF_Turned(...)
#endif
#ifndef OF_MovedByte
#define OF_MovedByte(...)
#endif
#ifndef OF_MovedWhole
#define OF_MovedWhole(...)
#endif
#ifndef OF_Moved
#define OF_Moved(...)
#endif
#ifndef OF_Double
#define OF_Double(...)
#endif
#if HAS_LIST
#define LISTED_TILES(group, ...) OF_##group(GEMM_SM90_##group(TILES_KERNEL, __VA_ARGS__))
#if HAS_BOX
#define LISTED_SPLIT(...)
#define LISTED_CUT(...)
#else
#define LISTED_SPLIT(group, ...) OF_##group(GEMM_SM90_##group(SPLIT_KERNEL, __VA_ARGS__))
#define LISTED_CUT(group, ...) OF_##group(GEMM_SM90_##group(CUT_KERNEL, __VA_ARGS__))
#endif
#include "kernels/gemm_sm90_listed.def"
#else
#define TILES(group, ...) OF_##group(GEMM_SM90_##group(TILES_KERNEL, __VA_ARGS__))
#define SPLIT(group, ...) OF_##group(GEMM_SM90_##group(SPLIT_KERNEL, __VA_ARGS__))
#define ODD(group, ...) OF_##group(GEMM_SM90_Odd(ODD_KERNEL, __VA_ARGS__))
#define CUT(group, ...) OF_##group(GEMM_SM90_##group(CUT_KERNEL, __VA_ARGS__))
#define ASIDE(group, ...) OF_##group(ASIDE_KERNEL(__VA_ARGS__))
#include "kernels/gemm_sm90.def"
#undef TILES
#undef SPLIT
#undef ODD
#undef CUT
#undef ASIDE
#endif
#undef TILES_KERNEL
#undef SPLIT_KERNEL
#undef ODD_KERNEL
#undef CUT_KERNEL
#undef ASIDE_KERNEL
#undef ASIDE_sum
#undef ASIDE_pitch
#undef ASIDE_planes
#undef ASIDE_turn
#undef ASIDE_turn_bytes
#undef OF_Half
#undef OF_Byte
#undef OF_Whole
#undef OF_Wide
#undef OF_Round
#undef OF_Turned
#undef OF_MovedByte
#undef OF_MovedWhole
#undef OF_Moved
#undef OF_Double

}  // namespace ng::kernels
