// Element-wise loops of integers of 32 and 64 bits.
#include "lib/backend/cpu/row_loops.h"

namespace ng::cpu {

constexpr MapTable ISA_NAME(maps_i32) = map_table<Dtype::i32>();
constexpr MapTable ISA_NAME(maps_i64) = map_table<Dtype::i64>();
constexpr MapTable ISA_NAME(maps_u32) = map_table<Dtype::u32>();
constexpr MapTable ISA_NAME(maps_u64) = map_table<Dtype::u64>();

}  // namespace ng::cpu
