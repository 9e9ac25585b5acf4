// A drawn program as a case of one of its runs, its tensors as the program's seed lays them.
#pragma once
#include "tests/jit/text_draw.h"

namespace ng::emitted {

// The same plan for each run. NG_E_SHAPE and the like: the words make no program.
std::unique_ptr<Case> case_of(const DrawnProgram& p, size_t run);

}  // namespace ng::emitted
