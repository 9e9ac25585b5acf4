// A CUDA device made of the driver's stand-in and the shipped kernels run as C++: the whole backend without a GPU.
#pragma once
#include "tests/backend/stand_in.h"

namespace ng {

// The process's driver, as new, with kernels that compute.
const fake::Control& emulated_device();

}  // namespace ng
