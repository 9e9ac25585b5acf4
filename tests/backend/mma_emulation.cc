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
namespace {

struct Kernel {
    size_t numbers_bytes;
    void (*run)(uint32_t blocks, uint32_t threads, const void* numbers);
};
#define OF(name, Numbers) {sizeof(kernels::Numbers), [](uint32_t blocks, uint32_t threads, const void* numbers) { emulated::launch(mma_##name, blocks, threads, 1, nullptr, numbers); }},
constexpr Kernel KERNELS[] = {
#define PRODUCT_TILES(name, ...) OF(name, MmaNumbers)
#define SIMT(name, ...) OF(name, MmaNumbers)
#define ROW(name, ...) OF(name, MmaNumbers)
#define SMALL(name, ...) OF(name, MmaNumbers)
#define SMALL_SIMT(name, ...) OF(name, MmaNumbers)
#define LAY(name, ...) OF(name, MmaLayNumbers)
#define PARTS(name, ...) OF(name, MmaNumbers)
#include "kernels/gemm_mma.def"
};
#undef OF

}  // namespace

size_t mma_numbers_bytes(uint32_t kernel) { return KERNELS[kernel].numbers_bytes; }
void   emulate_mma(uint32_t kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, const void* numbers)
{
    kernels::mma_room_bytes = shared_bytes;
    KERNELS[kernel].run(blocks, threads, numbers);
}

}  // namespace ng::test
