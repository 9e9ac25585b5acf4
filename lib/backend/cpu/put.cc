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

// Indices along one axis, and the row of elements behind each.
struct IndexRun {
    void*          x;
    const int64_t* index;
    const void*    y;
    int64_t        size, count, row;                     // of the indexed axis; indices; elements
    int64_t        x_stride, index_stride, y_stride;     // from one index to the next, of x from one value of it to the next
    int64_t        x_step, y_step;                       // along the row
};

// Rows of one element. All of the loop is in registers: one that kept parts on the stack took 45 to 70 ns an element instead of 8 on a
// Xeon (10^7 into 10^6 f32, 2026-11-22), for loads from there wait for stores to other pages at the same place of the page.
template <Folding HOW, class T>
void put_elements(const Elements<T>& e, const IndexRun& r, T* x, const int64_t* index, const T* y)
{
    const int64_t size = r.size, x_stride = r.x_stride, index_stride = r.index_stride, y_stride = r.y_stride;
    for (int64_t left = r.count; left > 0; left--, index += index_stride, y += y_stride) {
        const int64_t to = *index;
        if (to < 0 || to >= size) continue;
        T& element = x[to * x_stride];
        element = HOW == Folding::Last ? e.of(*y) : folded(HOW, e.of(element), e.of(*y));
    }
}

template <class T>
[[gnu::noinline]] void put_run(const Elements<T>& e, Folding how, const IndexRun& r, int64_t x_first, int64_t index_first, int64_t y_first)
{
    if (e.is_native() && r.row == 1) {
        T* const       x = static_cast<T*>(r.x) + x_first;
        const T* const y = static_cast<const T*>(r.y) + y_first;
        return with_folding(how, [&](auto constant) { put_elements<constant.value>(e, r, x, r.index + index_first, y); });
    }
    for (int64_t i = 0; i < r.count; i++, index_first += r.index_stride, y_first += r.y_stride) {
        const int64_t to = r.index[index_first];
        if (to < 0 || to >= r.size) continue;
        int64_t x_at = x_first + to * r.x_stride, y_at = y_first;
        for (int64_t j = 0; j < r.row; j++, x_at += r.x_step, y_at += r.y_step) {
            const T v = e.get(r.y, y_at);
            e.set(r.x, x_at, how == Folding::Last ? v : folded(how, e.get(r.x, x_at), v));
        }
    }
}

}  // namespace

void put(const Operand& x, const Operand& indices, const Operand& y, const PutExtents& n, Folding how, const IndexPlace& place)
{
    const int   shift = n.index_rank - 1;
    const Dtype type = folded_as(x.type, how);
    IndexRun  run{x.data, static_cast<const int64_t*>(indices.data), y.data, x.dims[n.axis], 1, 1, x.strides[n.axis], 0, 0, 1, 1};
    // Axes before the indexed one, the indices' but their last, and those behind but their last ones that lie as one row. Whoever
    // comes last to an element stays so in any order of the axes around.
    Walk before, at, after;
    for (int a = 0; a < n.axis; a++) before.add(x.dims[a], x.strides[a], y.strides[a]);
    for (int a = 0; a < shift; a++) at.add(indices.dims[a], indices.strides[a], y.strides[n.axis + a]);
    if (shift >= 0) run.count = indices.dims[shift], run.index_stride = indices.strides[shift], run.y_stride = y.strides[n.axis + shift];
    if (run.count == 0 || run.size == 0) return;         // there may be no memory to point into
    int last = n.rank - 1;
    if (last > n.axis) run.x_step = x.strides[last], run.y_step = y.strides[last + shift];
    const auto goes_on = [&](int a) { return x.strides[a] == run.row * run.x_step && y.strides[a + shift] == run.row * run.y_step; };
    for (; last > n.axis && goes_on(last); last--) run.row *= x.dims[last];
    for (int a = n.axis + 1; a <= last; a++) after.add(x.dims[a], x.strides[a], y.strides[a + shift]);
    for (int64_t o = 0; o < before.count; o++, before.next()) {
        at.seek(0);
        for (int64_t i = 0; i < at.count; i++, at.next()) {
            after.seek(0);
            for (int64_t k = 0; k < after.count; k++, after.next())
                with_compute_type(type, [&]<class T>(T) { put_run(Elements<T>(place.isa, type), how, run, before.a + after.a, at.a, before.b + at.b + after.b); });
        }
    }
}

}  // namespace ng::cpu
