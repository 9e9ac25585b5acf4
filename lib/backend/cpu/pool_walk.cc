// Windows of a pooling: which line is where, which taps are inside, and under which tap a window has its maximum.
#include "lib/backend/cpu/pool.h"
#include "lib/backend/cpu/quotient.h"

#include <cstdlib>

namespace ng::cpu {

int64_t PoolAxis::covered(int64_t position, int64_t low, int64_t high) const
{
    const int64_t at = start(position);
    const int64_t before = at < low ? (low - at + dilate - 1) / dilate : 0;
    const int64_t until = at < high ? (high - at + dilate - 1) / dilate : 0;
    return std::max<int64_t>(0, std::min(until, window) - before);
}

PoolWalk::PoolWalk(const Operand& x, const int64_t* y_dims, const PoolWindow& w) : rank_(w.spatial + 2), lane_(0)
{
    axis_[0] = {x.dims[0], y_dims[0], 1, 1, 1, 0, 0};
    axis_[1] = {x.dims[1], y_dims[1], w.channel_window, w.channel_stride, 1, w.channel_pad, w.channel_pad};
    for (int d = 0; d < w.spatial; d++)
        axis_[d + 2] = {x.dims[d + 2], y_dims[d + 2], w.window[d], w.stride[d], w.dilate[d], w.pad_lo[d], w.pad_hi[d]};
    // Lanes lie where a window takes the least, in cycles for each tap: a line's part of what a line takes, and its elements, side by side, near, or far
    // from each other. So rows of a few windows leave the lanes to the channels. (Zen 5, 2026-11-25: LINE measured, the others guessed.)
    const auto effort = [&](int i) {
        constexpr double LINE = 95, BESIDE = 0.2, NEAR = 1.5, FAR = 3;
        const int64_t    step = std::abs(x.strides[i] * axis_[i].stride);
        return LINE / double(std::clamp<int64_t>(axis_[i].out, 1, POOL_LINE)) + (step <= 1 ? BESIDE : step <= 16 ? NEAR : FAR);
    };
    for (int i = 1; i < rank_; i++)
        if (effort(i) < effort(lane_)) lane_ = i;
    for (int i = 0; i < rank_; i++) {
        taps_ *= axis_[i].window;
        (axis_[i].is_free() ? units_ : lines_) *= pieces(i);
    }
}

PoolLine PoolWalk::line(int64_t unit, int64_t index) const
{
    PoolLine l;
    for (int i = rank_ - 1; i >= 0; i--) {
        int64_t&      rest = axis_[i].is_free() ? unit : index;
        const int64_t count = pieces(i), next = count == 1 ? rest : quotient(rest, count);
        l.position[i] = rest - next * count;
        rest = next;
    }
    l.position[lane_] *= POOL_LINE;
    l.count = std::min<int64_t>(POOL_LINE, axis_[lane_].out - l.position[lane_]);
    return l;
}

int64_t PoolWalk::y_base(const PoolLine& line, const int64_t* y_strides) const
{
    int64_t at = 0;
    for (int i = 0; i < rank_; i++) at += line.position[i] * y_strides[i];
    return at;
}

int64_t PoolWalk::x_base(const PoolLine& line, const int64_t* x_strides) const
{
    int64_t at = 0;
    for (int i = 0; i < rank_; i++) at += axis_[i].start(line.position[i]) * x_strides[i];
    return at;
}

void PoolWalk::fill_offsets(const int64_t* x_strides, int64_t* offsets) const
{
    for (int64_t tap = 0; tap < taps_; tap++) {
        int64_t rest = tap;
        offsets[tap] = 0;
        for (int i = rank_ - 1; i > 0; i--) {
            offsets[tap] += rest % axis_[i].window * axis_[i].dilate * x_strides[i];
            rest /= axis_[i].window;
        }
    }
}

void PoolWalk::count_elements(const PoolLine& line, bool counts_padding, double* counts) const
{
    const auto covered = [&](const PoolAxis& a, int64_t position) {
        return double(a.covered(position, counts_padding ? -a.pad_lo : 0, a.in + (counts_padding ? a.pad_hi : 0)));
    };
    double others = 1;
    for (int i = 0; i < rank_; i++)
        if (i != lane_) others *= covered(axis_[i], line.position[i]);
    for (int64_t j = 0; j < line.count; j++) counts[j] = others * covered(axis_[lane_], line.position[lane_] + j);
}

// `at` is the coordinate of lane 0.
void PoolWalk::lanes_inside(int64_t at, int64_t& first, int64_t& last) const
{
    const PoolAxis& a = axis_[lane_];
    if (at < 0) first = std::max(first, quotient(a.stride - 1 - at, a.stride));
    if (at + (last - 1) * a.stride >= a.in) last = at < a.in ? quotient(a.in - 1 - at, a.stride) + 1 : 0;
}

const void* PoolReading::line(const PoolLine& line, int64_t tap, int64_t first, int64_t last, void* buffer) const
{
    const int64_t step = walk.x_step(x.strides);
    const char*   at = static_cast<const char*>(x.data) + (walk.x_base(line, x.strides) + offsets[tap] + first * step) * bytes_of(x.type);
    return line_of(table, packed, x.type, at, step, last - first, buffer);
}

namespace {

template <class At>
void find(const PoolReading& r, const PoolLine& line, int64_t* taps)
{
    double      best[POOL_LINE], buffer[POOL_LINE];
    At          at[POOL_LINE];
    const auto  most = r.table.most[int(r.x.type)];
    const auto  bytes = int64_t(sizeof(At));
    std::fill_n(at, line.count, At(-1));
    std::fill_n(best, line.count, 0.0);
    r.walk.each_tap(line, [&](int64_t tap, int64_t first, int64_t last) {
        most(reinterpret_cast<char*>(best) + first * bytes, at + first, r.line(line, tap, first, last, buffer), tap, last - first);
    });
    std::copy_n(at, line.count, taps);
}

}  // namespace

void PoolReading::find_maxima(const PoolLine& line, int64_t* taps) const
{
    if (table.tile[packed].accumulator_bytes == 4) find<int32_t>(*this, line, taps);
    else find<int64_t>(*this, line, taps);
}

}  // namespace ng::cpu
