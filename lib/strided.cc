// The loops of strided copies: axes sorted and merged, the innermost plain, the outermost shared among threads.
#include "lib/strided.h"

#include "jit/number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace ng {
namespace {


// Axes by falling |stride|, ties in their order: how they nest.
std::array<int, NG_MAX_NDIM> nesting(const std::array<int64_t, NG_MAX_NDIM>& strides, int rank)
{
    std::array<int, NG_MAX_NDIM> axes;
    std::iota(axes.begin(), axes.end(), 0);
    std::sort(axes.begin(), axes.begin() + rank, [&](int a, int b) {
        const int64_t x = std::llabs(strides[size_t(a)]), y = std::llabs(strides[size_t(b)]);
        return x != y ? x > y : a < b;
    });
    return axes;
}

// The same elements with out's strides positive and falling, no axis of 1, neighbours merged where both layouts allow.
StridedCopy simplified(const StridedCopy& c)
{
    StridedCopy s = c;
    s.rank = 0;
    const auto axes = nesting(c.out_strides, c.rank);
    for (int i = 0; i < c.rank; i++) {
        const size_t axis = size_t(axes[size_t(i)]);
        const int64_t length = c.dims[axis];
        int64_t out = c.out_strides[axis], in = c.in_strides[axis];
        if (length == 1) continue;
        if (out < 0) {
            s.out += (length - 1) * out * c.size, s.in += (length - 1) * in * c.size;
            out = -out, in = -in;
        }
        const size_t before = size_t(s.rank) - 1;
        if (s.rank && s.out_strides[before] == out * length && s.in_strides[before] == in * length) {
            s.dims[before] *= length, s.out_strides[before] = out, s.in_strides[before] = in;
            continue;
        }
        const size_t at = size_t(s.rank++);
        s.dims[at] = length, s.out_strides[at] = out, s.in_strides[at] = in;
    }
    if (s.rank == 0) s.rank = 1, s.dims[0] = 1, s.out_strides[0] = s.in_strides[0] = 1;
    return s;
}

template <class T>
void copy_line(char* out_bytes, int64_t out_stride, const char* in_bytes, int64_t in_stride, int64_t count)
{
    // Lent memory need not be aligned to its elements.
    const auto load = [&](int64_t i) { T v; std::memcpy(&v, in_bytes + i * in_stride * int64_t(sizeof(T)), sizeof(T)); return v; };
    const auto store = [&](int64_t i, T v) { std::memcpy(out_bytes + i * out_stride * int64_t(sizeof(T)), &v, sizeof(T)); };
    if (out_stride == 1 && in_stride == 1) {
        std::memcpy(out_bytes, in_bytes, size_t(count) * sizeof(T));
    } else if (in_stride == 0) {
        const T v = load(0);
        if (out_stride == 1)
            for (int64_t i = 0; i < count; i++) std::memcpy(out_bytes + i * int64_t(sizeof(T)), &v, sizeof(T));
        else
            for (int64_t i = 0; i < count; i++) store(i, v);
    } else {
        for (int64_t i = 0; i < count; i++) store(i, load(i));
    }
}

// All but the innermost axis by an odometer.
template <class T>
void copy_block(const StridedCopy& c)
{
    const int inner = c.rank - 1;
    std::array<int64_t, NG_MAX_NDIM> at{};
    char* out = c.out;
    const char* in = c.in;
    for (;;) {
        copy_line<T>(out, c.out_strides[size_t(inner)], in, c.in_strides[size_t(inner)], c.dims[size_t(inner)]);
        int i = inner - 1;
        for (; i >= 0; i--) {
            const size_t axis = size_t(i);
            out += c.out_strides[axis] * c.size, in += c.in_strides[axis] * c.size;
            if (++at[axis] < c.dims[axis]) break;
            out -= c.dims[axis] * c.out_strides[axis] * c.size, in -= c.dims[axis] * c.in_strides[axis] * c.size;
            at[axis] = 0;
        }
        if (i < 0) return;
    }
}

void copy_part(StridedCopy c, int64_t first, int64_t count)
{
    c.out += first * c.out_strides[0] * c.size, c.in += first * c.in_strides[0] * c.size;
    c.dims[0] = count;
    switch (c.size) {
    case 1: return copy_block<uint8_t>(c);
    case 2: return copy_block<uint16_t>(c);
    case 4: return copy_block<uint32_t>(c);
    default: return copy_block<uint64_t>(c);
    }
}

}  // namespace

void copy_strided(const StridedCopy& given, const Parallel& parallel)
{
    int64_t bytes = given.size;
    for (int i = 0; i < given.rank; i++) bytes *= given.dims[size_t(i)];
    if (bytes == 0) return;
    const StridedCopy copy = simplified(given);
    const int64_t length = copy.dims[0];
    const int64_t tasks = std::min({int64_t(MAX_TASKS), bytes / BYTES_OF_A_TASK, length});
    if (tasks < 2) return copy_part(copy, 0, length);
    const int64_t share = (length + tasks - 1) / tasks;
    parallel.for_each(uint32_t((length + share - 1) / share), [&](uint32_t task, uint32_t) {
        copy_part(copy, task * share, std::min(share, length - task * share));
    });
}

TensorForm nested(const TensorForm& form)
{
    TensorForm dense = form;
    const auto axes = nesting(form.strides, form.rank);
    int64_t stride = 1;
    for (int i = form.rank; i-- > 0;) {
        const size_t axis = size_t(axes[size_t(i)]);
        dense.strides[axis] = stride;
        stride *= std::max<int64_t>(form.dims[axis], 1);
    }
    return dense;
}

namespace {

// A value that the narrow type holds exactly, as its bits.
uint64_t narrow_bits(const DtypeInfo& type, double v)
{
    const uint64_t sign = uint64_t(std::signbit(v)) << (type.exponent + type.mantissa);
    const uint64_t top = ((uint64_t(1) << type.exponent) - 1) << type.mantissa;      // exponent all ones
    const uint64_t unit = uint64_t(1) << type.mantissa;
    if (std::isnan(v)) return sign | top | (type.code == NG_E4M3 ? unit - 1 : unit / 2);
    if (std::isinf(v)) return sign | top;
    if (v == 0) return sign;
    const int bias = (1 << (type.exponent - 1)) - 1;
    const int exponent = std::max(std::ilogb(v), 1 - bias);
    const uint64_t mantissa = uint64_t(std::ldexp(std::fabs(v), type.mantissa - exponent));   // with its leading 1, but denormals
    return sign | (uint64_t(exponent + bias - 1) * unit + mantissa);
}

}  // namespace

uint64_t encode(Dtype t, double value)
{
    const PlainFloats plain;
    if (!is_float(t)) return uint64_t(Number(value).as(t).bits(t));
    const double rounded = round_to(t, value);
    if (t == Dtype::f64) return std::bit_cast<uint64_t>(rounded);
    if (t == Dtype::f32) return std::bit_cast<uint32_t>(float(rounded));
    return narrow_bits(info(t), rounded);
}

}  // namespace ng
