// Elements moved between two layouts of one shape, and one number written to all of a layout.
#pragma once
#include "lib/parallel.h"
#include "lib/tensor.h"

namespace ng {

struct StridedCopy {
    char*       out;                                 // of element 0, both
    const char* in;
    int         size;                                // bytes of an element
    int         rank;
    std::array<int64_t, NG_MAX_NDIM> dims, out_strides, in_strides;   // strides in elements; an in_stride may be 0
};
inline constexpr int64_t BYTES_OF_A_TASK = 256 << 10;   // below some hundred KB a copy is over before a thread is awake
// The layouts may not overlap. Allocates nothing.
void copy_strided(const StridedCopy& copy, const Parallel& parallel);

// The form as a dense array whose axes nest as its own strides do: what put and get speak of.
TensorForm nested(const TensorForm& form);

// `value` as an element of t's memory, rounded and saturated as ng_cast does (N2), in its first bytes.
uint64_t encode(Dtype t, double value);

}  // namespace ng
