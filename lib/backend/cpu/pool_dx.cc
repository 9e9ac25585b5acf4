// The derivative of pooling: every window's share of dy goes back to the elements it came from.
#include "lib/backend/cpu/pool.h"

#include <cmath>

namespace ng::cpu {
namespace {

constexpr int64_t ZERO_PIECE = 1 << 16;

// Any strides: elements in row-major order, by pieces.
template <class T>
void fill_zeros(const Operand& x, int rank, const Parallel& parallel)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= x.dims[i];
    parallel.for_each(uint32_t((count + ZERO_PIECE - 1) / ZERO_PIECE), [&](uint32_t piece, uint32_t) {
        int64_t digits[POOL_AXES], rest = piece * ZERO_PIECE, at = 0;
        for (int i = rank - 1; i >= 0; i--) {
            digits[i] = rest % x.dims[i], rest /= x.dims[i];
            at += digits[i] * x.strides[i];
        }
        const int     fast = rank - 1;
        const int64_t last = std::min(count, (int64_t(piece) + 1) * ZERO_PIECE);
        for (int64_t n = piece * ZERO_PIECE, run; n < last; n += run) {
            run = std::min(last - n, x.dims[fast] - digits[fast]);
            for (int64_t j = 0; j < run; j++) static_cast<T*>(x.data)[at + j * x.strides[fast]] = T(0);
            digits[fast] += run, at += run * x.strides[fast];
            for (int i = fast; i > 0 && digits[i] == x.dims[i]; i--) {
                at += x.strides[i - 1] - digits[i] * x.strides[i];
                digits[i] = 0, digits[i - 1]++;
            }
        }
    });
}

template <class T>
class Spread {
  public:
    Spread(const PoolReading& x, const int64_t* offsets, const Operand& dy, const Operand& dx, const PoolWindow& window)
        : x_(x), offsets_(offsets), dy_(dy), dx_(dx), window_(window), step_(x.walk.x_step(dx.strides))
    {
    }
    void line(const PoolLine& line) const
    {
        T             share[POOL_LINE];
        const T*      from = static_cast<const T*>(dy_.data) + x_.walk.y_base(line, dy_.strides);
        const int64_t step = x_.walk.y_step(dy_.strides);
        for (int64_t j = 0; j < line.count; j++) share[j] = from[j * step];
        T* to = static_cast<T*>(dx_.data) + x_.walk.x_base(line, dx_.strides);
        if (window_.kind == NG_POOL_MAX) maxima(line, to, share);
        else if (window_.kind == NG_POOL_MEAN) means(line, to, share);
        else roots(line, to, share);
    }

  private:
    void maxima(const PoolLine& line, T* to, const T* share) const
    {
        int64_t taps[POOL_LINE];
        x_.find_maxima(line, taps);
        for (int64_t j = 0; j < line.count; j++)
            if (taps[j] >= 0) to[offsets_[taps[j]] + j * step_] += share[j];
    }
    void means(const PoolLine& line, T* to, T* share) const
    {
        double counts[POOL_LINE];
        x_.walk.count_elements(line, window_.flags & NG_POOL_COUNT_PAD, counts);
        for (int64_t j = 0; j < line.count; j++) share[j] /= T(counts[j]);   // a count of 0 has no tap to go to
        x_.walk.each_tap(line, [&](int64_t tap, int64_t first, int64_t last) {
            T* at = to + offsets_[tap];
            for (int64_t j = first; j < last; j++) at[j * step_] += share[j];
        });
    }
    // d sqrt(sum x^2) / dx = x / r, and 0 where r is 0.
    void roots(const PoolLine& line, T* to, T* share) const
    {
        T           root[POOL_LINE], buffer[POOL_LINE];
        PoolSums<T> squares(x_.table, line.count);
        x_.walk.each_tap(line, [&](int64_t tap, int64_t first, int64_t last) {
            const void* x = x_.line(line, tap, first, last, buffer);
            x_.table.direct[x_.packed].multiply(squares.next() + first, &x, &x, 1, last - first);
        });
        squares.each([&](const auto* sum) {
            for (int64_t j = 0; j < line.count; j++) root[j] = T(std::sqrt(sum[j]));
        });
        x_.walk.each_tap(line, [&](int64_t tap, int64_t first, int64_t last) {
            const T* x = static_cast<const T*>(x_.line(line, tap, first, last, buffer)) - first;
            T*       at = to + offsets_[tap];
            for (int64_t j = first; j < last; j++)
                if (root[j] != 0) at[j * step_] += x[j] / root[j] * share[j];
        });
    }

    const PoolReading& x_;
    const int64_t*     offsets_;
    const Operand &    dy_, &dx_;
    const PoolWindow&  window_;
    int64_t            step_;
};

template <class T>
void spread(const PoolReading& x, const int64_t* offsets, const Operand& dy, const Operand& dx, const PoolWindow& window, const Parallel& parallel)
{
    fill_zeros<T>(dx, window.spatial + 2, parallel);
    const Spread<T> s(x, offsets, dy, dx, window);
    x.walk.each_line(25.0 * double(x.walk.taps()), parallel, [&](const PoolLine& line) { s.line(line); });
}

}  // namespace

void pool_dx(const Operand& x, const Operand& dy, const Operand& dx, const PoolWindow& window, const Workplace& place)
{
    const PoolWalk walk(x, dy.dims, window);
    int64_t *const offsets = static_cast<int64_t*>(place.workspace), *const dx_offsets = offsets + walk.taps();
    walk.fill_offsets(x.strides, offsets), walk.fill_offsets(dx.strides, dx_offsets);
    const bool        is_double = dx.type == Dtype::f64;
    const Packed      packed = window.kind == NG_POOL_MAX ? pool_packed(x.type) : is_double ? PACKED_F64 : PACKED_F32;
    const PoolReading r = {place.table, walk, x, offsets, packed};
    if (is_double) spread<double>(r, dx_offsets, dy, dx, window, place.parallel);
    else spread<float>(r, dx_offsets, dy, dx, window, place.parallel);
}

}  // namespace ng::cpu
