// Residues of dx's positions, parts of them, and whether weights are such that those are needed.
#include "lib/backend/cpu/conv_residues.h"

#include "lib/backend/cpu/walk.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
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
    int axes[NG_MAX_NDIM];
    std::iota(axes, axes + rank, 0);
    std::sort(axes, axes + rank, [&](int a, int b) { return std::abs(x.strides[a]) > std::abs(x.strides[b]); });
    // The axes that lie as one row, and those around.
    int           last = rank - 1;
    const int64_t step = x.strides[axes[last]];
    int64_t       row = 1;
    for (; last >= 0 && (x.dims[axes[last]] == 1 || x.strides[axes[last]] == row * step); last--) row *= x.dims[axes[last]];
    Walk rows;
    for (int a = 0; a <= last; a++) rows.add(x.dims[axes[a]], x.strides[axes[a]], 0);
    if (rows.count == 0 || row == 0) return true;
    const uint64_t    bits = endless_bits(x.type);
    const int64_t     tasks = std::min(row, tasks_for(double(rows.count) * double(row), parallel.workers()));
    std::atomic<bool> has = false;
    parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t) {
        Walk          w = rows;
        const int64_t first = row * task / tasks, end = row * (task + 1) / tasks;
        w.seek(0);
        for (int64_t i = 0; i < w.count; i++, w.next())
            if (has_all(x.data, bytes_of(x.type), w.a + first * step, step, end - first, bits)) has = true;
    });
    return !has;
}

}  // namespace ng::cpu
