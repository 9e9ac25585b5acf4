// Element-wise loops of f64, which serve f32 as well where a function is written for doubles only.
#include "lib/backend/cpu/row_loops.h"

namespace ng::cpu {

constexpr MapTable ISA_NAME(maps_f64) = map_table<Dtype::f64>();

}  // namespace ng::cpu
