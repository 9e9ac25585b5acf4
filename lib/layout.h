// Where a plan's temporaries lie in one piece of workspace: lifetimes packed for the largest lengths.
#pragma once
#include "lib/executor.h"

#include <span>

namespace ng {

struct WorkLayout {
    std::vector<uint64_t> offsets;   // by buffer; of Work ones
    uint64_t bytes = 0;
};
// Buffers whose lives do not meet may share bytes. Each begins at a multiple of 64. What the executor does not need has none.
WorkLayout layout_work(const Plan& plan, std::span<const int64_t> variables, const Executor& executor);

}  // namespace ng
