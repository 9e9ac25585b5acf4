// What a program was compiled with: it travels with the program when that is saved.
#pragma once
#include "jit/build.h"

#include <vector>

namespace ng {

// What ng_compile_desc says, in our terms.
struct CompileOptions {
    std::vector<int32_t> alias;          // by output, -1: none; empty: none at all
    std::vector<Layout>  outs;           // by output; empty: row-major
    std::vector<bool>    declared;       // by output, where outs is not empty
    std::vector<int64_t> length_max;
    uint32_t runs = 1, flags = 0;
    uint64_t workspace_max = 0;
};

}  // namespace ng
