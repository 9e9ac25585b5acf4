// What the files of convolution share: a window's axes as numbers, depthwise convolution, which is no matrix product, and that of large pictures.
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
// Whether a worker's part of it is a few MB at most: many taps and wide steps are better read through a window.
bool     is_modest(const Depthwise& d);
void     run_depthwise(const Depthwise& d, const Workplace& place);
// The same with w as the result: the sum over n and positions of in and out; depth is 1.
void     run_depthwise_dw(const Depthwise& d, const Workplace& place);

// Two spatial axes, by steps of one: out[n, k, q..] = sum over channels and taps of w[k, c, taps..] in[n, c, start + q + step * tap ..].
struct FlatConv {
    Operand         in, w, out;
    int64_t         groups, start[2], step[2];
    bool            is_turned;               // k and c change places in w
    uint64_t        fill;                    // bits of in's type, outside of in
    const Epilogue* epilogue;
};
uint64_t flat_workspace(const FlatConv& largest, const ProductTable& table, uint32_t workers);
// False: nothing was done, for the products of before take no longer. The same bits.
bool     run_flat(const FlatConv& f, const Workplace& place);

}  // namespace ng::cpu
