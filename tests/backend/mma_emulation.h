// The portable products' kernels run on the processor, by their number in kernels/gemm_mma.def.
#pragma once
#include "kernels/gemm_mma.h"

#include <cstdint>

namespace ng::test {

// numbers: the kernel's one parameter, whose size this is.
size_t mma_numbers_bytes(uint32_t kernel);
void   emulate_mma(uint32_t kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, const void* numbers);
// Those that carry out lists, by their number in kernels/gemm_mma_listed.def.
void   emulate_mma_listed(uint32_t kernel, uint32_t blocks, uint32_t threads, uint32_t shared_bytes, const void* numbers);

}  // namespace ng::test
