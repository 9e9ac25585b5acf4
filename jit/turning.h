// Operands that lie across the rows of folds, turned by steps before where that is worth their memory.
#pragma once
#include "jit/plan.h"

namespace ng {

// In a plan whose steps are in order and have not met products yet. least_bytes: of an operand that is worth a step.
void turn_operands(Plan& plan, int64_t least_bytes);

}  // namespace ng
