// The least work of which each call makes more than one task, from above: shapes alone decide, strides may only make it less.
#include "lib/backend/cpu/sharing.h"

#include "jit/forms.h"
#include "lib/backend/cpu/gemm.h"
#include "lib/placed.h"
#include "lib/strided.h"

#include <algorithm>

namespace ng::cpu {
namespace {

double length(const Extent& extent, std::span<const int64_t> most) { return double(std::max<int64_t>(extent.most(most), 0)); }
// Elements from an axis on.
double elements(const View& v, std::span<const int64_t> most, size_t axis = 0)
{
    double n = 1;
    for (; axis < v.dims.size(); axis++) n *= length(v.dims[axis], most);
    return n;
}
bool is_work(double multiply_adds) { return tasks_for(multiply_adds, MAX_TASKS) > 1; }

}  // namespace

double most_points(const Kernel& kernel, std::span<const int64_t> most)
{
    double n = 1;
    for (const KernelAxis& axis : kernel.axes) n *= length(axis.extent, most);
    return n;
}

bool may_be_cut(const Step& s, std::span<const int64_t> most)
{
    const double out = elements(s.out, most);
    double largest = out;                                  // operand or result
    for (const View& v : s.in) largest = std::max(largest, elements(v, most));
    const bool is_large_copy = out * double(bytes_of(s.out.dtype)) >= 2 * double(BYTES_OF_A_TASK);
    if (!s.node) return is_large_copy;
    switch (s.node->op) {
    case Op::put: return !s.in_place && is_large_copy;
    case Op::argsort: return largest >= 2 * 4096;          // as argsort.cc counts
    case Op::scan: case Op::segment: return largest >= 1 << 15;   // scan.cc: a long line, or two tasks
    case Op::matmul: return is_work(out * length(s.in[0].dims.back(), most));
    // Channels by themselves count four times, and a copy with channels last 16 for an element.
    case Op::conv: return is_work(4 * out * elements(s.in[1], most, 1) + 16 * largest);
    case Op::conv_dx: return is_work(4 * elements(s.in[1], most) * elements(s.in[0], most, 1) + 16 * largest);
    case Op::conv_dw: return is_work(4 * elements(s.in[1], most) * elements(s.out, most, 1) + 16 * largest);
    default: break;
    }
    const PoolWindow window = pool_window<PoolWindow>(*s.node, int(s.out.dims.size()) - 2);
    double taps = std::max<double>(double(window.channel_window), 1);
    for (int i = 0; i < window.spatial; i++) taps *= double(std::max<int64_t>(window.window[i], 1));
    // At most six for a tap, lines being up to twice as long as what is left of them; pieces of zeros: 2^16 elements.
    return is_work(32 * taps * largest);
}

}  // namespace ng::cpu
