// The portable products' text run as C++: what every instance computes and that it stays in its memory, without a device.
#include "tests/backend/mma_cases.h"
#include "tests/backend/mma_emulation.h"

namespace basic_check {
namespace {

class Emulated final : public HostMachine {
  public:
    void launch(const basic::Launch&) override { FAIL("no basic kernel is needed"); }
};

}  // namespace

Machine& machine()
{
    static Emulated emulated;
    return emulated;
}

void launch_product(const gemm::Launch& l)
{
    REQUIRE(l.numbers_bytes == ng::test::mma_numbers_bytes(l.kernel));
    REQUIRE(l.shared_bytes <= mma::kernels()[l.kernel].shared_bytes);
    ng::test::emulate_mma(l.kernel, l.grid[0], l.block, l.shared_bytes, l.numbers);
}

}  // namespace basic_check
