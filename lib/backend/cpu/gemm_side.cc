// Arithmetic on the nested indices of a product: merging axes, offsets of ranges, and ranges as boxes of the result.
#include "lib/backend/cpu/gemm.h"

#include <algorithm>

namespace ng::cpu {
namespace {

// Lowest and highest that coordinate d gets.
void reach(const Matrix& m, int d, int64_t& low, int64_t& high)
{
    low = high = m.start[d];
    for (const Side* side : {&m.lines, &m.depth})
        for (int i = 0; i < side->rank; i++) {
            const Axis& axis = side->axis[i];
            if (axis.bound != d) continue;
            const int64_t most = axis.advance * (axis.extent - 1);
            (most < 0 ? low : high) += most;
        }
}

void rename_bound(Side& side, int from, int to)
{
    for (int i = 0; i < side.rank; i++)
        if (side.axis[i].bound == from) side.axis[i].bound = to;
}

Side merged(const Side& side)
{
    Side out = {};
    for (int i = 0; i < side.rank; i++) {
        const Axis& axis = side.axis[i];
        if (axis.extent == 1) continue;
        Axis* last = out.rank ? &out.axis[out.rank - 1] : nullptr;
        if (last && last->bound < 0 && axis.bound < 0 && last->stride == axis.stride * axis.extent)
            last->extent *= axis.extent, last->stride = axis.stride;
        else out.add(axis);
    }
    return out;
}

// Digits of a flat index in the axes' extents.
void digits_of(const Side& side, int64_t index, int64_t* digits)
{
    for (int i = side.rank - 1; i >= 0; i--) {
        digits[i] = index % side.axis[i].extent;
        index /= side.axis[i].extent;
    }
}

// The next box of the range [first, last) of an index: whole inner axes, a range of one axis, one place of those outside.
struct Boxes {
    const Side& side;
    int64_t     first, last;

    bool next(int64_t* box_first, int64_t* box_count)
    {
        if (first >= last) return false;
        int64_t digits[Side::MAX_AXES], inner = 1;
        digits_of(side, first, digits);
        int split = side.rank - 1;             // the outermost axis whose inner axes are whole in what is left
        while (split > 0) {
            const int64_t wider = inner * side.axis[split].extent;
            if (first % wider || first + wider > last) break;
            inner = wider, split--;
        }
        for (int i = 0; i < side.rank; i++) {
            box_first[side.axis[i].axis] += digits[i];
            box_count[side.axis[i].axis] = i > split ? side.axis[i].extent : 1;
        }
        if (side.rank == 0) return first = last, true;
        const int64_t n = std::min((last - first) / inner, side.axis[split].extent - digits[split]);
        box_count[side.axis[split].axis] = n;
        first += n * inner;
        return true;
    }
};

}  // namespace

Matrix simplified(const Matrix& matrix)
{
    Matrix m = matrix;
    m.bounds = 0;
    for (int d = 0; d < matrix.bounds; d++) {
        int64_t low, high;
        reach(matrix, d, low, high);
        const bool holds = low >= 0 && high < matrix.limit[d];
        const int  name = holds ? -1 : m.bounds++;
        rename_bound(m.lines, d, name), rename_bound(m.depth, d, name);
        if (!holds) m.start[name] = matrix.start[d], m.limit[name] = matrix.limit[d];
    }
    m.lines = merged(m.lines), m.depth = merged(m.depth);
    return m;
}

bool is_affine(const Side& side, int64_t& step)
{
    const Side s = merged(side);
    step = s.rank ? s.axis[0].stride : 0;
    return s.rank == 0 || (s.rank == 1 && s.axis[0].bound < 0);
}

void fill_points(const Side& side, const int64_t* start, int64_t first, int64_t count, Point* points)
{
    if (count == 0) return;
    int64_t digits[Side::MAX_AXES];
    digits_of(side, first, digits);
    Point at = {0, {start[0], start[1], start[2]}};
    const auto move = [&at](const Axis& axis, int64_t steps) {
        at.offset += steps * axis.stride;
        if (axis.bound >= 0) at.at[axis.bound] += steps * axis.advance;
    };
    for (int i = 0; i < side.rank; i++) move(side.axis[i], digits[i]);
    if (side.rank == 0) return void(std::fill_n(points, count, at));
    const Axis& fast = side.axis[side.rank - 1];
    Point       by = {fast.stride, {}};
    if (fast.bound >= 0) by.at[fast.bound] = fast.advance;
    for (int64_t n = 0, run; n < count; n += run) {
        run = std::min(count - n, fast.extent - digits[side.rank - 1]);
        int64_t offset = at.offset, x = at.at[0], y = at.at[1], z = at.at[2];
        for (int64_t e = 0; e < run; e++, offset += by.offset, x += by.at[0], y += by.at[1], z += by.at[2]) points[n + e] = {offset, {x, y, z}};
        move(fast, run);
        digits[side.rank - 1] += run;
        for (int i = side.rank - 1; i >= 0 && digits[i] == side.axis[i].extent; i--) {
            move(side.axis[i], -digits[i]), digits[i] = 0;
            if (i > 0) move(side.axis[i - 1], 1), digits[i - 1]++;
        }
    }
}

void fill_offsets(const Side& side, int64_t first, int64_t count, int64_t* offsets)
{
    int64_t digits[Side::MAX_AXES], offset = 0;
    digits_of(side, first, digits);
    for (int i = 0; i < side.rank; i++) offset += digits[i] * side.axis[i].stride;
    for (int64_t n = 0; n < count; n++) {
        offsets[n] = offset;
        for (int i = side.rank - 1; i >= 0; i--) {
            offset += side.axis[i].stride;
            if (++digits[i] < side.axis[i].extent) break;
            offset -= side.axis[i].extent * side.axis[i].stride;
            digits[i] = 0;
        }
    }
}

BatchOffsets batch_offsets(const Product& product, int64_t batch)
{
    BatchOffsets at = {};
    for (int i = product.batch_rank - 1; i >= 0; i--) {
        const BatchAxis& axis = product.batch[i];
        const int64_t    digit = batch % axis.extent;
        batch /= axis.extent;
        at.a += digit * axis.a, at.b += digit * axis.b, at.c += digit * axis.c;
    }
    return at;
}

void finish(const Product& product, int64_t batch, const Part& part, Finished& finished)
{
    int64_t base[Product::MAX_BATCH] = {}, first[Product::MAX_BATCH], count[Product::MAX_BATCH];
    for (int i = product.batch_rank - 1; i >= 0; i--) {
        const BatchAxis& axis = product.batch[i];
        base[axis.axis] += batch % axis.extent * axis.unit;
        batch /= axis.extent;
    }
    for (int i = 0; i < product.c.rank; i++) count[i] = 1;
    int64_t row_first[Product::MAX_BATCH];
    for (Boxes rows{product.c.rows, part.first_row, part.first_row + part.rows};;) {
        std::copy_n(base, product.c.rank, row_first);
        if (!rows.next(row_first, count)) return;
        for (Boxes columns{product.c.columns, part.first_column, part.first_column + part.columns};;) {
            std::copy_n(row_first, product.c.rank, first);
            if (!columns.next(first, count)) break;
            if (product.c.kept) {
                const int axis = product.c.columns.axis[product.c.columns.rank - 1].axis;
                count[axis] = std::min(count[axis], product.c.kept - first[axis]);
                if (count[axis] <= 0) continue;
            }
            finished.add(first, count);
        }
    }
}

}  // namespace ng::cpu
