// All basic kernels as one text, which is compiled into one image for every architecture.
#include "kernels/basic_indexing.cu"
#include "kernels/basic_pool.cu"
#include "kernels/basic_products.cu"
#include "kernels/basic_scan.cu"
#include "kernels/basic_sort.cu"
