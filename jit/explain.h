// A plan as JSON that people and tools read: nodes, buffers, steps with their costs.
#pragma once
#include "jit/plan.h"

#include <string>

namespace ng {

// variables: the lengths at their greatest, and hidden strides.
std::string explain(const Plan& plan, std::span<const NodeRef> roots, std::span<const int64_t> variables);

}  // namespace ng
