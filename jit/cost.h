// What a plan costs: bytes that its steps read and write, and floating-point operations.
#pragma once
#include "jit/plan.h"

namespace ng {

struct Cost {
    uint64_t moved_bytes = 0, flops = 0;
};
Cost cost_of(const Step& step, std::span<const int64_t> variables);
Cost cost_of(const Plan& plan, std::span<const int64_t> variables);

}  // namespace ng
