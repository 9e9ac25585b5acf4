// What the files of convolution share: a window's axes as numbers, and depthwise convolution, which is no matrix product.
#pragma once
#include "lib/backend/cpu/gemm.h"

namespace ng::cpu {

// One spatial axis: position q under tap r reads coordinate start + q * step + r * advance, if that is in [0, limit).
struct SpatialAxis {
    int64_t positions, taps, start, step, advance, limit;
    int64_t in_stride, out_stride, w_stride;   // of a coordinate, a position, a tap
};

// Depthwise: out[n, g * fan_out + j, q..] = sum over d and taps of in[n, g * depth + d, ..] w[(g * fan_out + j) * depth + d, taps..];
// fan_out or depth is 1.
struct Depthwise {
    Operand         in, w, out;              // data: of coordinate 0, tap 0, position 0
    SpatialAxis     axis[WINDOW_AXES];       // the last is the last spatial one; those before the first are 1 long
    int64_t         images, groups, fan_out, depth;
    uint64_t        fill;                    // bits of in's type
    Dtype           sum_type;                // of out, or of w where that is the result
    int             spatial;                 // of the three axes, the last so many are the tensors'
    const Epilogue* epilogue;
};

// Grows with taps, steps and advances; extents do not matter.
uint64_t depthwise_workspace(const Depthwise& largest, uint32_t workers);
void     run_depthwise(const Depthwise& d, const Workplace& place);
// The same with w as the result: the sum over n and positions of in and out; depth is 1.
void     run_depthwise_dw(const Depthwise& d, const Workplace& place);

}  // namespace ng::cpu
