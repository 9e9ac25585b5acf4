// Element-wise loops of bool and of integers of 8 and 16 bits.
#include "lib/backend/cpu/row_loops.h"

namespace ng::cpu {

constexpr MapTable ISA_NAME(maps_bool) = map_table<Dtype::bool_>();
constexpr MapTable ISA_NAME(maps_i8) = map_table<Dtype::i8>();
constexpr MapTable ISA_NAME(maps_i16) = map_table<Dtype::i16>();
constexpr MapTable ISA_NAME(maps_u8) = map_table<Dtype::u8>();
constexpr MapTable ISA_NAME(maps_u16) = map_table<Dtype::u16>();

}  // namespace ng::cpu
