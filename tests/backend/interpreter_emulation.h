// The interpreter's kernel on a CPU: a launch of its device code compiled as C++.
#pragma once
#include "kernels/interpreter.h"

#include <cstdint>

namespace ng::test {

void emulate_interpreter(uint32_t blocks, uint32_t threads, const interpreter::Numbers& numbers);

}  // namespace ng::test
