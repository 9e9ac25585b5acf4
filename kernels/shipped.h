// The images that the build makes of these kernels: bytes for the driver to load, with code for some architectures, and PTX.
#pragma once

#define SHIPPED(name)                                                                                                   \
    [[gnu::visibility("hidden")]] extern const unsigned char      ng_##name##_image[];                                  \
    [[gnu::visibility("hidden")]] extern const unsigned long long ng_##name##_image_bytes;   /* 0 without nvcc */       \
    [[gnu::visibility("hidden")]] extern const int                ng_##name##_image_archs[]; /* 80 for sm_80; 0 ends */
extern "C" {
SHIPPED(basic)                           // basic.def's
SHIPPED(gemm_mma)                        // gemm_mma.def's, of lib/backend/cuda/gemm_mma.cu
SHIPPED(gemm_mma_listed)                 // those that carry out epilogues' lists
SHIPPED(interpreter)                     // of lib/backend/cuda/interpreter.cu
SHIPPED(stock)                           // of what lib/backend/cuda/stock_texts.cc writes; no PTX
SHIPPED(gemm_sm90_half)                  // of lib/backend/cuda/gemm_sm90_half.cu and its neighbours: code for sm_90a alone
SHIPPED(gemm_sm90_byte)
SHIPPED(gemm_sm90_wide)
SHIPPED(gemm_sm90_listed)
SHIPPED(gemm_sm90_boxed)
}
#undef SHIPPED
