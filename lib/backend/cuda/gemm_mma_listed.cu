// The image of portable products that carry out epilogues' lists.
#define LISTED_VECTORS 0
#include "lib/backend/cuda/gemm_list_rows.cuh"
#include "lib/backend/cuda/gemm_mma.cu"
