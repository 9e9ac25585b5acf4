// The shipped kernels on the processor, for the stand-in of the driver.
#pragma once
#include "tests/backend/fake_driver/fake_control.h"

namespace ng::fake {

void set_emulated_kernels(const Control& driver);

}  // namespace ng::fake
