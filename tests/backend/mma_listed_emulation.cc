// The portable products that carry out lists, as mma_emulation.cc has the others.
#include "tests/jit/cuda_emulation.h"

#define __grid_constant__
#define __noinline__
#undef __launch_bounds__
#define __launch_bounds__(...)

#define MMA_INSTRUCTIONS "tests/backend/mma_instructions.h"
#include "lib/backend/cuda/gemm_mma_listed.cu"
#include "tests/backend/mma_emulation.h"

namespace ng::test {
namespace {

struct Kernel {
    void (*run)(uint32_t blocks, uint32_t threads, const void* numbers);
};
constexpr Kernel KERNELS[] = {
#define PRODUCT_TILES(name, ...) {[](uint32_t blocks, uint32_t threads, const void* numbers) { emulated::launch(mma_listed_##name, blocks, threads, 1, nullptr, numbers); }},
#define LISTED_SIMT PRODUCT_TILES
#define LISTED_PARTS PRODUCT_TILES
#include "kernels/gemm_mma_listed.def"
};

}  // namespace

void emulate_mma_listed(uint32_t kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, const void* numbers)
{
    kernels::mma_room_bytes = shared_bytes;
    KERNELS[kernel].run(blocks, threads, numbers);
}

}  // namespace ng::test
