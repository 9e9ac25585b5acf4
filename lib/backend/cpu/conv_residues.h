// The derivative of a convolution by x, cut: by residues of the stride, and those by what lies inside of dy.
#pragma once
#include "lib/backend/cpu/conv.h"

namespace ng::cpu {

// Of dx's positions along an axis, those of one residue modulo the stride: there the derivative is itself a convolution of dy with some
// of the taps,
//   tap = tap_first + tap_step * i, position = residue + stride * q, read from dy at start + q - advance * i
struct Residue {
    int64_t residue, positions, start, taps, tap_first, tap_step, advance;
};
Residue residue_of(int64_t residue, int64_t extent, int64_t taps, const ConvWindow& window, int axis);

// Positions from the q-th on that find the same taps inside of [0, limit), with these alone; they follow `stride` apart.
Residue inside_from(const Residue& r, int64_t q, int64_t stride, int64_t limit);

// Whether no element is an infinity or none of numbers.
bool is_finite(const Operand& x, int rank, const Parallel& parallel);

// Zeros to all elements.
void clear(const Operand& x, int rank, const Parallel& parallel);

}  // namespace ng::cpu
