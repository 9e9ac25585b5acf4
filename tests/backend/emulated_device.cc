// The stand-in loaded as this process's driver, with kernels that compute.
#include "tests/backend/emulated_device.h"

#include "tests/backend/emulated_kernels.h"

namespace ng {

const fake::Control& emulated_device()
{
    (void)fresh_driver();
    fake::set_emulated_kernels(stand_in());
    return stand_in();
}

}  // namespace ng
