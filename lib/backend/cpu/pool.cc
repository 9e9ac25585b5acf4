// Pooling forward: maxima, means and roots of sums of squares over windows.
#include "lib/backend/cpu/pool.h"
#include "lib/backend/cpu/saturated.h"

#include <cmath>
#include <cstring>

namespace ng::cpu {
namespace {

template <class T>
void sums_of_line(const PoolReading& r, const PoolLine& line, const PoolWindow& window, const Operand& y)
{
    const DirectLoops& loops = r.table.direct[r.packed];
    PoolSums<T>        sums(r.table, line.count);
    T                  buffer[POOL_LINE];
    double             counts[POOL_LINE];
    const T            one = 1;
    const bool         is_root = window.kind == NG_POOL_L2;
    r.walk.each_tap(line, [&](int64_t tap, int64_t first, int64_t last) {
        const void* x = r.line(line, tap, first, last, buffer);
        T* const    to = sums.next() + first;
        if (is_root) loops.multiply(to, &x, &x, 1, last - first);
        else loops.combine(to, &x, &one, 1, last - first);
    });
    if (!is_root) r.walk.count_elements(line, window.flags & NG_POOL_COUNT_PAD, counts);
    T*            out = static_cast<T*>(y.data) + r.walk.y_base(line, y.strides);
    const int64_t step = r.walk.y_step(y.strides);
    sums.each([&]<class S>(const S* sum) {
        for (int64_t j = 0; j < line.count; j++) out[j * step] = T(is_root ? std::sqrt(sum[j]) : counts[j] > 0 ? sum[j] / S(counts[j]) : S(0));
    });
}

// values: of x's shape; none: `least`.
template <class Raw>
void pick_line(const PoolReading& r, const PoolLine& line, const PoolReading& values, const Operand& y, uint64_t least)
{
    int64_t taps[POOL_LINE];
    r.find_maxima(line, taps);
    const int64_t* strides = values.x.strides;
    const Raw*     from = static_cast<const Raw*>(values.x.data);
    Raw*           out = static_cast<Raw*>(y.data) + r.walk.y_base(line, y.strides);
    const int64_t  base = r.walk.x_base(line, strides), x_step = r.walk.x_step(strides), y_step = r.walk.y_step(y.strides);
    for (int64_t j = 0; j < line.count; j++) out[j * y_step] = taps[j] < 0 ? Raw(least) : from[base + values.offsets[taps[j]] + j * x_step];
}

void pick(const PoolReading& r, const PoolReading& values, const Operand& y, uint64_t least, const Workplace& place)
{
    r.walk.each_line(20.0 * double(r.walk.taps()), place.parallel, [&](const PoolLine& line) {
        switch (bytes_of(y.type)) {
        case 1: return pick_line<uint8_t>(r, line, values, y, least);
        case 2: return pick_line<uint16_t>(r, line, values, y, least);
        case 4: return pick_line<uint32_t>(r, line, values, y, least);
        default: return pick_line<uint64_t>(r, line, values, y, least);
        }
    });
}

}  // namespace

uint64_t pool_workspace(const ProductTable&, const PoolWindow& window, uint32_t)
{
    // Offsets of taps in two tensors, shared by all workers.
    int64_t taps = window.channel_window;
    for (int d = 0; d < window.spatial; d++) taps = times(taps, window.window[d]);
    return uint64_t(bounded(times(int64_t(2 * sizeof(int64_t)), taps)));
}

void pool(const Operand& x, const Operand& y, const PoolWindow& window, const Workplace& place)
{
    const PoolWalk walk(x, y.dims, window);
    int64_t* const offsets = static_cast<int64_t*>(place.workspace);
    walk.fill_offsets(x.strides, offsets);
    const bool        is_most = window.kind == NG_POOL_MAX;
    const PoolReading r = {place.table, walk, x, offsets, is_most ? pool_packed(x.type) : y.type == Dtype::f64 ? PACKED_F64 : PACKED_F32};
    if (is_most) return pick(r, r, y, least_bits(x.type), place);
    walk.each_line(10.0 * double(walk.taps()), place.parallel, [&](const PoolLine& line) {
        if (y.type == Dtype::f64) sums_of_line<double>(r, line, window, y);
        else sums_of_line<float>(r, line, window, y);
    });
}

void pool_pick(const Operand& x, const Operand& v, const Operand& y, const PoolWindow& window, const Workplace& place)
{
    const PoolWalk walk(x, y.dims, window);
    int64_t *const offsets = static_cast<int64_t*>(place.workspace), *const v_offsets = offsets + walk.taps();
    walk.fill_offsets(x.strides, offsets), walk.fill_offsets(v.strides, v_offsets);
    const Packed packed = pool_packed(x.type);
    pick({place.table, walk, x, offsets, packed}, {place.table, walk, v, v_offsets, packed}, y, 0, place);
}

}  // namespace ng::cpu
