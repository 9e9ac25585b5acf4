// The shipped kernels as the build embedded them; empty where it found no nvcc.
#pragma once
#include "lib/backend/cuda/gemm.h"

#include <string_view>

namespace ng::cuda {

std::string_view basic_image();          // what basic_launch.h launches
bool has_basic_code(int compute);        // for a device, 90 for sm_90; else the driver compiles the image's PTX (contract P7)
std::string_view interpreter_image();    // INTERPRETER_KERNEL
bool has_interpreter_code(int compute);
std::string_view stock_image();          // stock.h's
bool has_stock_code(int compute);
std::string_view gemm_image(gemm::Image image);
bool has_gemm_code(gemm::Image image, int compute);

}  // namespace ng::cuda
