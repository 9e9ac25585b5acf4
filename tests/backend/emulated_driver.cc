// A libcuda.so.1 whose device is the processor: with it in front, any program that uses libng tries the CUDA backend.
#include "tests/backend/emulated_kernels.h"

// Kernels are there when the library is loaded.
[[gnu::constructor]] static void set_kernels() { ng::fake::set_emulated_kernels(*ng_fake_control()); }
