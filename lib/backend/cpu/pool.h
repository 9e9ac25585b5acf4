// How poolings walk: lines of windows that lie side by side along one axis of the result, tap by tap.
#pragma once
#include "lib/backend/cpu/gemm.h"

#include <algorithm>

namespace ng::cpu {

// The axes of x and y: the image, the channel, then the spatial ones. The image has a window of 1.
constexpr int POOL_AXES = 5, POOL_LINE = 256;

struct PoolAxis {
    int64_t in, out, window, stride, dilate, pad_lo, pad_hi;

    int64_t start(int64_t position) const { return position * stride - pad_lo; }
    // Taps of the window at `position` that are in [low, high).
    int64_t covered(int64_t position, int64_t low, int64_t high) const;
    // Whether no two windows share an element.
    bool is_free() const { return (window - 1) * dilate < stride; }
};

// A line of windows: `count` of them along the lane axis from position[lane] on.
struct PoolLine {
    int64_t position[POOL_AXES];
    int64_t count;
};

class PoolWalk {
  public:
    PoolWalk(const Operand& x, const int64_t* y_dims, const PoolWindow& window);

    int64_t taps() const { return taps_; }
    // Lines fall into units, of which no two touch the same element of x.
    int64_t  units() const { return units_; }
    int64_t  lines_of_unit() const { return lines_; }
    PoolLine line(int64_t unit, int64_t index) const;
    // Where a line begins in y; the first tap of its first window in x; steps to the next window there.
    int64_t y_base(const PoolLine& line, const int64_t* y_strides) const;
    int64_t x_base(const PoolLine& line, const int64_t* x_strides) const;
    int64_t y_step(const int64_t* y_strides) const { return y_strides[lane_]; }
    int64_t x_step(const int64_t* x_strides) const { return x_strides[lane_] * axis_[lane_].stride; }
    // Each tap's offset from the window's first.
    void fill_offsets(const int64_t* x_strides, int64_t* offsets) const;
    // Elements of each window that are inside x or, if padding counts, inside x with its padding.
    void count_elements(const PoolLine& line, bool counts_padding, double* counts) const;

    // body(tap, first, last) for each tap that some windows of the line, first .. last of its lanes, have inside x.
    template <class Body>
    void each_tap(const PoolLine& line, Body&& body) const
    {
        int64_t digits[POOL_AXES] = {};
        for (int64_t tap = 0; tap < taps_; tap++) {
            int64_t first = 0, last = line.count;
            for (int i = 1; i < rank_; i++) {
                const PoolAxis& a = axis_[i];
                const int64_t   at = a.start(line.position[i]) + digits[i] * a.dilate;
                if (i == lane_) lanes_inside(at, first, last);
                else if (uint64_t(at) >= uint64_t(a.in)) last = 0;
            }
            if (first < last) body(tap, first, last);
            for (int i = rank_ - 1; i > 0; i--) {
                if (++digits[i] < axis_[i].window) break;
                digits[i] = 0;
            }
        }
    }
    // body(line) for all lines, units by several workers; `effort`: of a window, in multiply-adds of a product.
    template <class Body>
    void each_line(double effort, const Parallel& parallel, Body&& body) const
    {
        if (lines_ == 0) return;
        const int64_t tasks = units_ ? std::min(units_, tasks_for(double(units_) * double(lines_) * line_count() * effort, parallel.workers())) : 0;
        parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t) {
            const int64_t end = units_ * (task + 1) / tasks;
            for (int64_t unit = units_ * task / tasks; unit < end; unit++)
                for (int64_t i = 0; i < lines_; i++) body(line(unit, i));
        });
    }

  private:
    void   lanes_inside(int64_t at, int64_t& first, int64_t& last) const;
    double line_count() const { return double(std::min<int64_t>(axis_[lane_].out, POOL_LINE)); }
    // Lines along an axis: its positions, or pieces of it if it is the lane axis.
    int64_t pieces(int i) const { return i == lane_ ? (axis_[i].out + POOL_LINE - 1) / POOL_LINE : axis_[i].out; }

    PoolAxis axis_[POOL_AXES];
    int      rank_, lane_;
    int64_t  taps_ = 1, units_ = 1, lines_ = 1;
};

// Sums of a line's windows, tap by tap: those of a piece of the taps are added to others in f64, and of f64 so many of those to others again.
template <class T>
class PoolSums {
  public:
    PoolSums(const ProductTable& table, int64_t count) : table_(table), count_(count) { std::fill_n(sum_, count, T(0)); }
    // Where the next tap's values are added.
    T* next()
    {
        if (parts_[0] == PIECE) raise(0);
        parts_[0]++;
        return sum_;
    }
    // body(the sums), as T or as f64.
    template <class Body>
    void each(Body&& body)
    {
        if (levels_ == 0) return body(static_cast<const T*>(sum_));
        for (int level = 0; level < levels_; level++) raise(level);
        body(static_cast<const double*>(upper_[levels_ - 1]));
    }

  private:
    static constexpr int  PIECE = 64;
    static constexpr bool IS_DOUBLE = sizeof(T) == sizeof(double);
    static constexpr int  LEVELS = IS_DOUBLE ? 5 : 1;

    // A level's sums go to the one above.
    void raise(int level)
    {
        double* const to = upper_[level];
        if (level == levels_) std::fill_n(to, count_, 0.0), levels_++;
        else if (parts_[level + 1] == PIECE && level + 1 < LEVELS) raise(level + 1);
        if (level) add(to, upper_[level - 1]), std::fill_n(upper_[level - 1], count_, 0.0);
        else add(to, sum_), std::fill_n(sum_, count_, T(0));
        parts_[level] = 0, parts_[level + 1]++;
    }
    template <class From>
    void add(double* to, const From* from) const
    {
        const double one = 1;
        double       wide[POOL_LINE];
        const void*  line = line_of(table_, PACKED_F64, sizeof(From) == sizeof(double) ? Dtype::f64 : Dtype::f32, reinterpret_cast<const char*>(from), 1, count_, wide);
        table_.direct[PACKED_F64].combine(to, &line, &one, 1, count_);
    }

    const ProductTable& table_;
    const int64_t       count_;
    T                   sum_[POOL_LINE];
    double              upper_[LEVELS][POOL_LINE];
    int                 levels_ = 0, parts_[LEVELS + 1] = {};
};

// One of the tensors that windows lie on, and its offsets of taps.
struct PoolReading {
    const ProductTable& table;
    const PoolWalk&     walk;
    const Operand&      x;
    const int64_t*      offsets;
    Packed              packed;     // what it is widened to

    // Elements of lanes first .. last under one tap, widened; in buffer unless they are so in memory.
    const void* line(const PoolLine& line, int64_t tap, int64_t first, int64_t last, void* buffer) const;
    // Which tap each window's maximum is under; -1: the window lies in padding alone.
    void find_maxima(const PoolLine& line, int64_t* taps) const;
};

}  // namespace ng::cpu
