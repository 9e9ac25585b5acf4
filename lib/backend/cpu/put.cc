// Stores and folds by index, and copies.
#include "lib/backend/cpu/walk.h"
#include "lib/strided.h"

#include <cstring>

namespace ng::cpu {

void copy(const Operand& from, const Operand& to, int rank, const Parallel& parallel)
{
    StridedCopy c{static_cast<char*>(to.data), static_cast<const char*>(from.data), bytes_of(to.type), rank, {}, {}, {}};
    for (int a = 0; a < rank; a++) {
        const auto i = size_t(a);
        c.dims[i] = to.dims[a], c.out_strides[i] = to.strides[a], c.in_strides[i] = from.strides[a];
    }
    copy_strided(c, parallel);
}

namespace {

// A run of consecutive elements behind one index.
template <class T>
void put_row(const Elements<T>& e, Folding how, void* x, int64_t x_at, int64_t x_step, const void* y, int64_t y_at, int64_t y_step, int64_t count)
{
    for (int64_t i = 0; i < count; i++, x_at += x_step, y_at += y_step) {
        const T v = e.get(y, y_at);
        e.set(x, x_at, how == Folding::Last ? v : folded(how, e.get(x, x_at), v));
    }
}

}  // namespace

void put(const Operand& x, const Operand& indices, const Operand& y, const PutExtents& n, Folding how, const IndexPlace& place)
{
    Walk before, at, after;                                        // axes before the indexed one, the indices', those behind
    for (int a = 0; a < n.axis; a++) before.add(x.dims[a], x.strides[a], y.strides[a]);
    for (int a = 0; a < n.index_rank; a++) at.add(indices.dims[a], indices.strides[a], y.strides[n.axis + a]);
    const int last = n.rank - 1, shift = n.index_rank - 1;
    int64_t row = 1, x_step = 0, y_step = 0;
    for (int a = n.axis + 1; a < last; a++) after.add(x.dims[a], x.strides[a], y.strides[a + shift]);
    if (last > n.axis) row = x.dims[last], x_step = x.strides[last], y_step = y.strides[last + shift];
    const int64_t size = x.dims[n.axis], stride = x.strides[n.axis];
    const auto* const index = static_cast<const int64_t*>(indices.data);
    with_compute_type(x.type, [&]<class T>(T) {
        const Elements<T> e(place.isa, x.type);
        for (int64_t o = 0; o < before.count; o++, before.next()) {
            at.seek(0);
            for (int64_t i = 0; i < at.count; i++, at.next()) {
                const int64_t to = index[at.a];
                if (to < 0 || to >= size) continue;
                const int64_t x_at = before.a + to * stride, y_at = before.b + at.b;
                after.seek(0);
                for (int64_t k = 0; k < after.count; k++, after.next())
                    put_row(e, how, x.data, x_at + after.a, x_step, y.data, y_at + after.b, y_step, row);
            }
        }
    });
}

}  // namespace ng::cpu
