// The interpreter's device code compiled as C++: its kernel on a CPU.
#include "tests/jit/cuda_emulation.h"

#define __grid_constant__
#define __noinline__
#undef __launch_bounds__
#define __launch_bounds__(...)

#include "lib/backend/cuda/interpreter.cu"
#include "tests/backend/interpreter_emulation.h"

namespace ng::test {

void emulate_interpreter(uint32_t blocks, uint32_t threads, const interpreter::Numbers& numbers)
{
    emulated::launch(interpret, blocks, threads, 1, nullptr, &numbers);
}

}  // namespace ng::test
