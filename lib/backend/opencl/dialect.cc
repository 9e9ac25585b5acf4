// OpenCL C 1.2 for generated kernels, with doubles where a kernel needs them.
#include "jit/dialect.h"

namespace ng {

extern const char opencl_prelude[];      // prelude.cl and what dialects share, embedded by the build

const Dialect& opencl_dialect()
{
    static constexpr Dialect dialect = {
        .name = "opencl",
        .suffix = ".cl",
        .prelude = opencl_prelude,
        .options = "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt",
        .kernel = "__kernel void",
        .helper = "static inline",
        .global = "__global ",
        .shared = "__local ",
        .shared_pointer = "__local ",
        .restrict_ = "restrict ",
        .thread = "(i32)get_local_id(0)",
        .threads = "(i32)get_local_size(0)",
        .block = "get_group_id(0)",
        .any_block = "get_group_id(0)",
        .blocks = "get_num_groups(0)",
        .barrier = "barrier(CLK_LOCAL_MEM_FENCE)",
    };
    return dialect;
}

}  // namespace ng
