// What a plan costs: bytes that its steps read and write, floating-point operations, and about how many instructions these are.
#pragma once
#include "jit/plan.h"

namespace ng {

struct Cost {
    uint64_t moved_bytes = 0, flops = 0;
    uint64_t instructions = 0;       // of a device that reads no more at once than an element: by these weights
};
// Of a value at a point: about its instructions.
int32_t weight_of(const Kernel& kernel, size_t value);
// At these lengths, which may be greater than any memory: what exceeds its bits is the greatest number.
uint64_t extent_at(const Extent& e, std::span<const int64_t> variables);
Cost cost_of(const Step& step, std::span<const int64_t> variables);
Cost cost_of(const Plan& plan, std::span<const int64_t> variables);

}  // namespace ng
