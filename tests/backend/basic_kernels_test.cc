// The shipped kernels' text run as C++, block by block: what they compute and that their launches are sound, without a device.
#include "tests/jit/cuda_emulation.h"

#undef __launch_bounds__
#define __launch_bounds__(...)
#define __grid_constant__
template <class T> static T atomicAdd(T* to, T v) { return std::exchange(*to, T(*to + v)); }
template <class T> static T atomicMax(T* to, T v) { return std::exchange(*to, *to < v ? v : *to); }

#include "kernels/basic_indexing.cu"
#include "kernels/basic_scan.cu"
#include "kernels/basic_sort.cu"
#include "kernels/basic_pool.cu"
#include "kernels/basic_products.cu"

#include "tests/backend/basic_index_cases.h"
#include "tests/backend/basic_pool_cases.h"
#include "tests/backend/basic_product_cases.h"

namespace basic_check {
namespace {

class Emulated final : public HostMachine {
  public:
    void launch(const basic::Launch& l) override
    {
        switch (l.kernel) {
#define ROW(name, function, Numbers)                                      \
    case basic::BasicKernel::name:                                        \
        REQUIRE(l.numbers_bytes == sizeof(ng::kernels::Numbers));         \
        return emulated::launch(basic_##name, l.grid, l.block, 1, nullptr, l.numbers);
#include "kernels/basic.def"
        default: FAIL("no such kernel");
        }
    }
};

}  // namespace

Machine& machine()
{
    static Emulated emulated;
    return emulated;
}

}  // namespace basic_check
