// The portable products' device text compiled as C++, its warps' instructions by lanes that meet.
#include "tests/jit/cuda_emulation.h"

#define __grid_constant__
#define __noinline__
#undef __launch_bounds__
#define __launch_bounds__(...)

#define MMA_INSTRUCTIONS "tests/backend/mma_instructions.h"
#include "lib/backend/cuda/gemm_mma.cu"
#include "tests/backend/mma_emulation.h"

namespace ng::test {

void emulate_mma(uint32_t kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, const kernels::MmaNumbers& numbers)
{
    using Kernel = void (*)(kernels::MmaNumbers);
    static constexpr Kernel all[] = {
#define PRODUCT_TILES(name, ...) mma_##name,
#define SIMT(name, ...) mma_##name,
#define PARTS(name, ...) mma_##name,
#include "kernels/gemm_mma.def"
    };
    kernels::mma_room_bytes = shared_bytes;
    emulated::launch(all[kernel], blocks, threads, 1, nullptr, &numbers);
}

}  // namespace ng::test
