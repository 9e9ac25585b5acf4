// Running folds along an axis, and folds of consecutive rows.
#include "lib/backend/cpu/walk.h"

#include <algorithm>

namespace ng::cpu {
namespace {

constexpr int64_t LINES_BESIDE = 64;     // lines that run together where they lie next to each other
constexpr int64_t WORK_A_TASK = 1 << 15; // elements
constexpr int64_t MOST_TASKS = 64;

uint32_t tasks_for(int64_t units, int64_t elements_a_unit)
{
    const int64_t wanted = units * std::max<int64_t>(elements_a_unit, 1) / WORK_A_TASK;
    return uint32_t(std::clamp<int64_t>(std::min(wanted, units), 1, MOST_TASKS));
}

struct Line { const void* x; void* y; int64_t x_at, y_at, x_step, y_step, count; };

// `beside` lines that are x_beside and y_beside apart, in step.
template <class T, Folding HOW>
void scan_lines(const Elements<T>& e, Dtype t, const Line& l, uint32_t flags, int64_t beside, int64_t x_beside, int64_t y_beside)
{
    using A = std::conditional_t<HOW == Folding::Sum || HOW == Folding::Prod, Running<T>, T>;
    A sum[LINES_BESIDE];
    std::fill_n(sum, beside, identity_of<A>(HOW, t));
    const bool reverse = flags & NG_REVERSE, exclusive = flags & NG_EXCLUSIVE;
    for (int64_t k = 0; k < l.count; k++) {
        const int64_t i = reverse ? l.count - 1 - k : k;
        const int64_t x_at = l.x_at + i * l.x_step, y_at = l.y_at + i * l.y_step;
        for (int64_t b = 0; b < beside; b++) {
            const A before = sum[b], now = folded(HOW, before, A(e.get(l.x, x_at + b * x_beside)));
            e.set(l.y, y_at + b * y_beside, T(exclusive ? before : now));
            sum[b] = now;
        }
    }
}

template <class T>
void scan_lines(Folding how, const Elements<T>& e, Dtype t, const Line& l, uint32_t flags, int64_t beside, int64_t x_beside, int64_t y_beside)
{
    switch (how) {
    case Folding::Last: return scan_lines<T, Folding::Last>(e, t, l, flags, beside, x_beside, y_beside);
    case Folding::Sum: return scan_lines<T, Folding::Sum>(e, t, l, flags, beside, x_beside, y_beside);
    case Folding::Prod: return scan_lines<T, Folding::Prod>(e, t, l, flags, beside, x_beside, y_beside);
    case Folding::Min: return scan_lines<T, Folding::Min>(e, t, l, flags, beside, x_beside, y_beside);
    default: return scan_lines<T, Folding::Max>(e, t, l, flags, beside, x_beside, y_beside);
    }
}

}  // namespace

void scan(const Operand& x, const Operand& y, int rank, int axis, Folding how, uint32_t flags, const IndexPlace& place)
{
    // Lines beside each other go together: along the last axis, where that is not the one that is scanned.
    const int last = rank - 1;
    const bool together = axis != last;
    const int64_t beside = together ? x.dims[last] : 1, x_beside = together ? x.strides[last] : 0, y_beside = together ? y.strides[last] : 0;
    const int64_t groups = together ? (beside + LINES_BESIDE - 1) / LINES_BESIDE : 1;
    Walk outer;
    for (int a = 0; a < rank; a++)
        if (a != axis && !(together && a == last)) outer.add(x.dims[a], x.strides[a], y.strides[a]);
    outer.add(groups, LINES_BESIDE * x_beside, LINES_BESIDE * y_beside);
    const int64_t units = outer.count;
    const uint32_t tasks = tasks_for(units, x.dims[axis] * std::min(beside, LINES_BESIDE));
    with_compute_type(x.type, [&]<class T>(T) {
        const Elements<T> e(place.isa, x.type);
        place.parallel.for_each(tasks, [&](uint32_t task, uint32_t) {
            Walk w = outer;
            const int64_t first = units * task / tasks, end = units * (task + 1) / tasks;
            w.seek(first);
            for (int64_t u = first; u < end; u++, w.next()) {
                const int64_t lines = std::min(LINES_BESIDE, beside - u % groups * LINES_BESIDE);
                scan_lines<T>(how, e, x.type, {x.data, y.data, w.a, w.b, x.strides[axis], y.strides[axis], x.dims[axis]}, flags, lines, x_beside, y_beside);
            }
        });
    });
}

void segment(const Operand& x, const Operand& offsets, const Operand& y, int rank, Folding how, const IndexPlace& place)
{
    const auto* const bound = static_cast<const int64_t*>(offsets.data);
    const int64_t rows = x.dims[0], segments = y.dims[0];
    Walk inner;
    for (int a = 1; a < rank; a++) inner.add(x.dims[a], x.strides[a], y.strides[a]);
    const uint32_t tasks = tasks_for(segments, segments ? inner.count * (rows / segments + 1) : 0);
    with_compute_type(x.type, [&]<class T>(T) {
        using A = Running<T>;
        const Elements<T> e(place.isa, x.type);
        place.parallel.for_each(tasks, [&](uint32_t task, uint32_t) {
            Walk w = inner;
            for (int64_t s = segments * task / tasks; s < segments * (task + 1) / tasks; s++) {
                const int64_t from = std::clamp<int64_t>(bound[s * offsets.strides[0]], 0, rows);
                const int64_t to = std::clamp<int64_t>(bound[(s + 1) * offsets.strides[0]], 0, rows);
                w.seek(0);
                for (int64_t i = 0; i < w.count; i++, w.next()) {
                    A sum = identity_of<A>(how, x.type);
                    if (from >= to && how != Folding::Sum && how != Folding::Prod && how != Folding::Last) sum = A(identity_of<T>(how, x.type));
                    for (int64_t r = from; r < to; r++) sum = folded(how, sum, A(e.get(x.data, w.a + r * x.strides[0])));
                    e.set(y.data, w.b + s * y.strides[0], T(sum));
                }
            }
        });
    });
}

}  // namespace ng::cpu
