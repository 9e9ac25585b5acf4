// What is an instruction set's own: its registers' size, and names of its objects, for which NG_ISA is v2, v3, v4, or generic where there is but one build.
#pragma once
#include "lib/backend/cpu/isa.h"

#ifndef NG_ISA
#define NG_ISA generic
#endif
#define NG_JOIN_(a, b) a##_##b
#define NG_JOIN(a, b) NG_JOIN_(a, b)
#define ISA_NAME(name) NG_JOIN(name, NG_ISA)

namespace ng::cpu {

#if defined __AVX512F__
constexpr int VECTOR_BYTES = 64;
#elif defined __AVX2__
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

extern const MapTable ISA_NAME(maps_bool), ISA_NAME(maps_i8), ISA_NAME(maps_i16), ISA_NAME(maps_i32), ISA_NAME(maps_i64),
    ISA_NAME(maps_u8), ISA_NAME(maps_u16), ISA_NAME(maps_u32), ISA_NAME(maps_u64), ISA_NAME(maps_f32), ISA_NAME(maps_f64);
void ISA_NAME(chain)(const Link* links, int links_count, int64_t count, Aheads aheads);   // where AVX2 is
extern const IsaTable ISA_NAME(isa);

}  // namespace ng::cpu
