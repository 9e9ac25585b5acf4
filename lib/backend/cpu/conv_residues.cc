// Residues of dx's positions, parts of them, whether weights are such that those are needed, and zeros where there are no taps.
#include "lib/backend/cpu/conv_residues.h"

#include "lib/backend/cpu/walk.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

namespace ng::cpu {
namespace {

// Taps that a position reads inside: first .. end - 1.
using Taps = std::pair<int64_t, int64_t>;
Taps taps_inside(const Residue& r, int64_t q, int64_t limit)
{
    const int64_t at = r.start + q;
    const Taps    t = {at < limit ? 0 : (at - limit) / r.advance + 1, at < 0 ? 0 : std::min(r.taps, at / r.advance + 1)};
    return t.first < t.second ? t : Taps{0, 0};
}

// The bits that are all ones in what is not finite, and in nothing else.
uint64_t endless_bits(Dtype t)
{
    const DtypeInfo& i = info(t);
    const uint64_t   exponent = ((uint64_t(1) << i.exponent) - 1) << i.mantissa;
    return t == Dtype::e4m3 ? exponent | ((uint64_t(1) << i.mantissa) - 1) : exponent;   // whose last code alone is none of numbers
}

// Neighbours by blocks of known length, which become vectors.
template <class U>
bool has_all(const void* array, int64_t first, int64_t step, int64_t count, uint64_t bits)
{
    constexpr int64_t BLOCK = 64;
    const U*          x = static_cast<const U*>(array) + first;
    const U           wanted = U(bits);
    U                 has = 0;
    for (; step == 1 && count >= BLOCK; count -= BLOCK, x += BLOCK)
        for (int64_t i = 0; i < BLOCK; i++) has |= U((x[i] & wanted) == wanted);
    for (int64_t i = 0; i < count; i++) has |= U((x[i * step] & wanted) == wanted);
    return has;
}
bool has_all(const void* array, int bytes, int64_t first, int64_t step, int64_t count, uint64_t bits)
{
    if (bytes == 1) return has_all<uint8_t>(array, first, step, count, bits);
    if (bytes == 2) return has_all<uint16_t>(array, first, step, count, bits);
    return bytes == 4 ? has_all<uint32_t>(array, first, step, count, bits) : has_all<uint64_t>(array, first, step, count, bits);
}

// Elements as rows, `step` apart: the axes that lie as one row, and those around it.
struct Rows {
    Walk    around;
    int64_t step, count;
};
Rows rows_of(const Operand& x, int rank)
{
    int axes[NG_MAX_NDIM], left = 0;
    for (int a = 0; a < rank; a++)
        if (x.dims[a] != 1) axes[left++] = a;
    std::sort(axes, axes + left, [&](int a, int b) { return std::abs(x.strides[a]) > std::abs(x.strides[b]); });
    Rows r = {{}, left ? x.strides[axes[left - 1]] : 1, 1};
    for (; left && x.strides[axes[left - 1]] == r.count * r.step; left--) r.count *= x.dims[axes[left - 1]];
    for (int a = 0; a < left; a++) r.around.add(x.dims[axes[a]], x.strides[axes[a]], 0);
    return r;
}

template <class U>
void put_zeros(void* array, int64_t first, int64_t step, int64_t count)
{
    U* const to = static_cast<U*>(array) + first;
    if (step == 1) return void(std::memset(to, 0, size_t(count) * sizeof(U)));
    for (int64_t i = 0; i < count; i++) to[i * step] = 0;
}
void put_zeros(void* array, int bytes, int64_t first, int64_t step, int64_t count)
{
    if (bytes == 1) return put_zeros<uint8_t>(array, first, step, count);
    if (bytes == 2) return put_zeros<uint16_t>(array, first, step, count);
    return bytes == 4 ? put_zeros<uint32_t>(array, first, step, count) : put_zeros<uint64_t>(array, first, step, count);
}

}  // namespace

Residue residue_of(int64_t residue, int64_t extent, int64_t taps, const ConvWindow& window, int d)
{
    const int64_t stride = window.stride[d], dilate = window.dilate[d], shared = std::gcd(stride, dilate);
    Residue       r = {residue, residue < extent ? (extent - residue + stride - 1) / stride : 0, 0, 0, 0, stride / shared, dilate / shared};
    const int64_t at = residue + window.pad_lo[d];
    for (int64_t tap = 0; tap < std::min(taps, r.tap_step); tap++)
        if ((at - tap * dilate) % stride == 0) {
            r.tap_first = tap, r.taps = (taps - tap + r.tap_step - 1) / r.tap_step, r.start = (at - tap * dilate) / stride;
            break;
        }
    return r;
}

Residue inside_from(const Residue& r, int64_t q, int64_t stride, int64_t limit)
{
    const Taps t = taps_inside(r, q, limit);
    Residue    part = {r.residue + q * stride, 1, r.start + q - r.advance * t.first, t.second - t.first, r.tap_first + r.tap_step * t.first, r.tap_step, r.advance};
    while (q + part.positions < r.positions && taps_inside(r, q + part.positions, limit) == t) part.positions++;
    return part;
}

bool is_finite(const Operand& x, int rank, const Parallel& parallel)
{
    if (!is_float(x.type)) return true;
    if (std::count(x.dims, x.dims + rank, 0)) return true;       // what has no element may have any strides
    const Rows        rows = rows_of(x, rank);
    const uint64_t    bits = endless_bits(x.type);
    const int64_t     tasks = std::min(rows.count, tasks_for(double(rows.around.count) * double(rows.count), parallel.workers()));
    std::atomic<bool> has = false;
    parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t) {
        Walk          w = rows.around;
        const int64_t first = rows.count * task / tasks, end = rows.count * (task + 1) / tasks;
        w.seek(0);
        for (int64_t i = 0; i < w.count; i++, w.next())
            if (has_all(x.data, bytes_of(x.type), w.a + first * rows.step, rows.step, end - first, bits)) has = true;
    });
    return !has;
}

void clear(const Operand& x, int rank, const Parallel& parallel)
{
    if (std::count(x.dims, x.dims + rank, 0)) return;
    const Rows    rows = rows_of(x, rank);
    const int64_t elements = rows.around.count * rows.count;
    const int64_t tasks = std::min(elements, tasks_for(double(elements), parallel.workers()));
    parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t) {
        Walk    w = rows.around;
        int64_t at = elements * task / tasks;
        w.seek(at / rows.count);
        for (int64_t left = elements * (task + 1) / tasks - at, in_row = at % rows.count, n; left > 0; left -= n, in_row = 0, w.next()) {
            n = std::min(left, rows.count - in_row);
            put_zeros(x.data, bytes_of(x.type), w.a + in_row * rows.step, rows.step, n);
        }
    });
}

}  // namespace ng::cpu
