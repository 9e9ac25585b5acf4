// The stand-in's kernels: the shipped ones' text, compiled for the processor, under the names that images give them.
#include "tests/backend/emulated_kernels.h"

#include "tests/backend/interpreter_emulation.h"
#include "tests/backend/mma_emulation.h"
#include "tests/jit/cuda_emulation.h"

#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __grid_constant__
#define __grid_constant__
template <class T> static T atomicAdd(T* to, T v) { return std::exchange(*to, T(*to + v)); }
template <class T> static T atomicMax(T* to, T v) { return std::exchange(*to, *to < v ? v : *to); }

#include "kernels/basic_indexing.cu"
#include "kernels/basic_pool.cu"
#include "kernels/basic_products.cu"
#include "kernels/basic_scan.cu"
#include "kernels/basic_sort.cu"

namespace ng::fake {
namespace {

void interpret_launch(const KernelLaunch& l)
{
    interpreter::Numbers numbers;
    std::memcpy(&numbers, l.arguments[0], sizeof numbers);
    test::emulate_interpreter(l.grid[0], l.block[0], numbers);
}

// One row of basic.def as the stand-in calls it.
#define ROW(name, function, Numbers)                                                            \
    void launch_##name(const KernelLaunch& l) { emulated::launch(basic_##name, l.grid[0], l.block[0], 1, nullptr, l.arguments[0]); }
#include "kernels/basic.def"

// The portable products, by number.
enum MmaKernel : uint32_t {
#define PRODUCT_TILES(name, ...) MMA_##name,
#define SIMT PRODUCT_TILES
#define ROW PRODUCT_TILES
#define SMALL PRODUCT_TILES
#define SMALL_SIMT PRODUCT_TILES
#define LAY PRODUCT_TILES
#define PARTS PRODUCT_TILES
#include "kernels/gemm_mma.def"
};
template <uint32_t KERNEL>
void launch_mma(const KernelLaunch& l)
{
    test::emulate_mma(KERNEL, l.grid[0], l.block[0], l.shared_bytes, l.arguments[0]);
}
enum ListedKernel : uint32_t {
#define PRODUCT_TILES(name, ...) LISTED_##name,
#define LISTED_SIMT PRODUCT_TILES
#define LISTED_PARTS PRODUCT_TILES
#include "kernels/gemm_mma_listed.def"
};
template <uint32_t KERNEL>
void launch_listed(const KernelLaunch& l)
{
    test::emulate_mma_listed(KERNEL, l.grid[0], l.block[0], l.shared_bytes, l.arguments[0]);
}

}  // namespace

void set_emulated_kernels(const Control& driver)
{
    driver.set_compute(80);                          // what is of one architecture alone has no emulation
    static constexpr size_t interpreter_size = sizeof(interpreter::Numbers);
    driver.set_kernel("interpret", interpret_launch, &interpreter_size, 1);
#define ROW(name, function, Numbers)                                                            \
    static constexpr size_t size_of_##name = sizeof(kernels::Numbers);                          \
    driver.set_kernel("basic_" #name, launch_##name, &size_of_##name, 1);
#include "kernels/basic.def"
#define PRODUCT_TILES(name, ...)                                                                \
    static const size_t size_of_##name = test::mma_numbers_bytes(MMA_##name);                   \
    driver.set_kernel("mma_" #name, launch_mma<MMA_##name>, &size_of_##name, 1);
#define SIMT PRODUCT_TILES
#define ROW PRODUCT_TILES
#define SMALL PRODUCT_TILES
#define SMALL_SIMT PRODUCT_TILES
#define LAY PRODUCT_TILES
#define PARTS PRODUCT_TILES
#include "kernels/gemm_mma.def"
    static const size_t listed_size = sizeof(kernels::MmaNumbers);
#define PRODUCT_TILES(name, ...) driver.set_kernel("mma_listed_" #name, launch_listed<LISTED_##name>, &listed_size, 1);
#define LISTED_SIMT PRODUCT_TILES
#define LISTED_PARTS PRODUCT_TILES
#include "kernels/gemm_mma_listed.def"
}

}  // namespace ng::fake
