// Tells of a step, before it runs, whether it may be cut into tasks: then its context needs threads.
#pragma once
#include "jit/plan.h"

#include <span>

namespace ng::cpu {

// Points of a fused kernel's space when lengths are these or smaller.
double most_points(const Kernel& kernel, std::span<const int64_t> most);
// Of a call, or a copy: whether lengths up to these may make several tasks of it. Rather yes than no.
bool may_be_cut(const Step& step, std::span<const int64_t> most);

}  // namespace ng::cpu
