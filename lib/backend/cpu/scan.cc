// Running folds along an axis, and folds of consecutive rows.
#include "lib/backend/cpu/walk.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ng::cpu {
namespace {

constexpr int64_t LINES_BESIDE = 64;     // lines that run together where they lie next to each other
constexpr int64_t WORK_A_TASK = 1 << 15; // elements
constexpr int64_t MOST_TASKS = 64;
// A long line is scanned as PARTS lines, each from the fold of those before it: as many whoever runs them, so the sums are the same.
constexpr int64_t PARTS = 64, PARTS_BESIDE = 8, LONG = 1 << 15, FEW_LINES = 16;
constexpr int64_t ROW_PIECE = 256;       // accumulators of a segment's rows at once
constexpr int64_t FEW_COLUMNS = 8;       // a row of fewer takes longer to begin than to fold

uint32_t tasks_for(int64_t units, int64_t elements_a_unit)
{
    const int64_t wanted = units * std::max<int64_t>(elements_a_unit, 1) / WORK_A_TASK;
    return uint32_t(std::clamp<int64_t>(std::min(wanted, units), 1, MOST_TASKS));
}

struct Line { const void* x; void* y; int64_t x_at, y_at, x_step, y_step, count; };
// Lines in step; starts: what each begins with (null: the identity).
struct Beside { int64_t count, x, y; const void* starts; };

constexpr bool is_running(Folding how) { return how == Folding::Sum || how == Folding::Prod; }

template <class T, Folding HOW>
void scan_lines(const Elements<T>& e, Dtype t, const Line& l, uint32_t flags, const Beside& lines)
{
    using A = std::conditional_t<is_running(HOW), Running<T>, T>;
    const int64_t beside = lines.count, x_beside = lines.x, y_beside = lines.y;
    A sum[LINES_BESIDE];
    if (lines.starts) std::copy_n(static_cast<const A*>(lines.starts), beside, sum);
    else std::fill_n(sum, beside, identity_of<A>(HOW, t));
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

// Out of line: the callers of each type share it.
template <class T>
[[gnu::noinline]] void scan_lines(Folding how, const Elements<T>& e, Dtype t, const Line& l, uint32_t flags, const Beside& lines)
{
    with_folding(how, [&](auto constant) { scan_lines<T, constant.value>(e, t, l, flags, lines); });
}

Op fold_op(Folding how) { return how == Folding::Sum ? Op::sum : Op::prod; }

// One line of consecutive elements. Parts lie beside each other, what is left of the line is its own. False: nothing was done, for a part's
// sum is infinite, which the sums up to its elements may not be.
template <class T>
bool sum_in_parts(const Elements<T>& e, Dtype t, const Line& l, uint32_t flags, const IndexPlace& place)
{
    using A = Running<T>;
    constexpr auto  how = Folding::Sum;
    const int64_t   length = l.count / PARTS;
    const bool      reverse = flags & NG_REVERSE;
    const FoldAlong along = place.isa.fold[int(fold_op(how))][int(t)].exact;
    const T* const  x = static_cast<const T*>(l.x) + l.x_at;
    A               start[PARTS + 1];
    std::fill_n(start, PARTS + 1, identity_of<A>(how, t));
    place.parallel.for_each(PARTS, [&](uint32_t part, uint32_t) { along(&start[part], x + part * length, length); });
    along(&start[PARTS], x + PARTS * length, l.count - PARTS * length);
    A before = identity_of<A>(how, t);
    for (int64_t i = 0; i <= PARTS; i++) {
        A& part = start[reverse ? PARTS - i : i];
        const A all = folded(how, before, part);
        part = before, before = all;
        if (!std::isfinite(before)) return false;
    }
    const auto from = [&](int64_t part, int64_t count) {
        return Line{l.x, l.y, l.x_at + part * length, l.y_at + part * length * l.y_step, 1, l.y_step, count};
    };
    place.parallel.for_each(PARTS / PARTS_BESIDE, [&](uint32_t task, uint32_t) {
        const int64_t part = task * PARTS_BESIDE;
        scan_lines<T>(how, e, t, from(part, length), flags, {PARTS_BESIDE, length, length * l.y_step, &start[part]});
    });
    scan_lines<T>(how, e, t, from(PARTS, l.count - PARTS * length), flags, {1, 0, 0, &start[PARTS]});
    return true;
}

// Consecutive rows of x, of which some columns fold into those of y; columns are at most ROW_PIECE.
struct Stretch {
    const void* x;
    void*       y;
    int64_t     x_at, y_at, row_step, rows, x_step, y_step, columns;
    FoldAcross  across;                  // null: fold_row does it
    FoldAlong   along;                   // of one column of neighbours; null: one after the other
};

// Out of line, for what is around them is the same of all folds. Blocks of known length become vectors.
template <class A, class T>
[[gnu::noinline]] void fold_row(Folding how, A* __restrict sum, const T* __restrict x, int64_t count)
{
    constexpr int64_t BLOCK = 16;
    with_folding(how, [&](auto constant) {
        for (; count >= BLOCK; count -= BLOCK, sum += BLOCK, x += BLOCK)
            for (int64_t i = 0; i < BLOCK; i++) sum[i] = folded(constant.value, sum[i], A(x[i]));
        for (int64_t i = 0; i < count; i++) sum[i] = folded(constant.value, sum[i], A(x[i]));
    });
}
template <class A, class T>
[[gnu::noinline]] A fold_column(Folding how, A sum, const T* x, int64_t count)
{
    with_folding(how, [&](auto constant) {
        for (int64_t i = 0; i < count; i++) sum = folded(constant.value, sum, A(x[i]));
    });
    return sum;
}

// Row by row into a row of accumulators; columns that are few, or farther apart than rows, one after the other. Either way a column's order is
// that of the rows.
template <class A, class T>
void fold_stretch(Folding how, const Elements<T>& e, Dtype t, const Stretch& s)
{
    A             sum[ROW_PIECE];
    T             row[ROW_PIECE];
    const int64_t first = how == Folding::Last ? std::max<int64_t>(s.rows - 1, 0) : 0;
    std::fill_n(sum, s.columns, identity_of<A>(how, t));
    if (s.along) {
        s.along(sum, e.get(s.x, s.x_at, 1, s.rows, row), s.rows);
    } else if (s.columns >= FEW_COLUMNS && std::abs(s.row_step) >= std::abs(s.x_step)) {
        for (int64_t r = first; r < s.rows; r++) {
            const T* const x = e.get(s.x, s.x_at + r * s.row_step, s.x_step, s.columns, row);
            if (s.across) s.across(sum, x, s.columns);
            else fold_row(how, sum, x, s.columns);
        }
    } else {
        for (int64_t j = 0; j < s.columns; j++)
            for (int64_t r = first, n; r < s.rows; r += n) {
                n = std::min(ROW_PIECE, s.rows - r);
                sum[j] = fold_column(how, sum[j], e.get(s.x, s.x_at + j * s.x_step + r * s.row_step, s.row_step, n, row), n);
            }
    }
    for (int64_t j = 0; j < s.columns; j++) row[j] = T(sum[j]);
    e.set(s.y, s.y_at, s.y_step, row, s.columns);
}

// The axes of a row: one run of columns, the nearest to each other in x, and those around it, cut into pieces. Of no rows x's strides may be any.
struct Columns {
    Walk    around;
    int64_t count = 1, x_step = 0, y_step = 0, pieces = 1;
};
Columns columns_of(const Operand& x, const Operand& y, int rank)
{
    Columns    c;
    const auto step = [&](int a) { return x.dims[0] ? x.strides[a] : 0; };
    int        near = 0;
    for (int a = 1; a < rank; a++)
        if (x.dims[a] > 1 && (!near || std::abs(step(a)) <= std::abs(step(near)))) near = a;
    int from = near;
    if (near) c.count = x.dims[near], c.x_step = step(near), c.y_step = y.strides[near];
    for (; from > 1 && step(from - 1) == c.count * c.x_step && y.strides[from - 1] == c.count * c.y_step; from--) c.count *= x.dims[from - 1];
    for (int a = 1; a < rank; a++)
        if (a < from || a > near) c.around.add(x.dims[a], step(a), y.strides[a]);
    c.pieces = (c.count + ROW_PIECE - 1) / ROW_PIECE;
    c.around.add(c.pieces, ROW_PIECE * c.x_step, ROW_PIECE * c.y_step);
    return c;
}

}  // namespace

void scan(const Operand& x, const Operand& y, int rank, int axis, Folding how, uint32_t flags, const IndexPlace& place)
{
    if (std::count(x.dims, x.dims + rank, 0)) return;      // what has no element may have any strides, and no sum of them
    const Dtype type = folded_as(x.type, how);
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
    with_compute_type(type, [&]<class T>(T) {
        const Elements<T> e(place.isa, type);
        if constexpr (std::is_floating_point_v<T>) {       // whose additions take several cycles each
            if (!together && how == Folding::Sum && e.is_native() && x.strides[axis] == 1 && x.dims[axis] >= LONG && units <= FEW_LINES) {
                outer.seek(0);
                for (int64_t u = 0; u < units; u++, outer.next()) {
                    const Line line = {x.data, y.data, outer.a, outer.b, 1, y.strides[axis], x.dims[axis]};
                    if (!sum_in_parts<T>(e, type, line, flags, place)) scan_lines<T>(how, e, type, line, flags, {1, 0, 0, nullptr});
                }
                return;
            }
        }
        place.parallel.for_each(tasks, [&](uint32_t task, uint32_t) {
            Walk w = outer;
            const int64_t first = units * task / tasks, end = units * (task + 1) / tasks;
            w.seek(first);
            for (int64_t u = first; u < end; u++, w.next()) {
                const int64_t lines = std::min(LINES_BESIDE, beside - u % groups * LINES_BESIDE);
                const Line    line = {x.data, y.data, w.a, w.b, x.strides[axis], y.strides[axis], x.dims[axis]};
                scan_lines<T>(how, e, type, line, flags, {lines, x_beside, y_beside, nullptr});
            }
        });
    });
}

void segment(const Operand& x, const Operand& offsets, const Operand& y, int rank, Folding how, const IndexPlace& place)
{
    if (std::count(y.dims, y.dims + rank, 0)) return;
    const auto* const bound = static_cast<const int64_t*>(offsets.data);
    const Dtype   type = folded_as(x.type, how);
    const int64_t rows = x.dims[0], segments = y.dims[0];
    const Columns columns = columns_of(x, y, rank);
    const int64_t parts = columns.around.count, units = segments * parts;     // of a row, of all
    const uint32_t tasks = tasks_for(units, std::min(columns.count, ROW_PIECE) * (rows / segments + 1));
    with_compute_type(type, [&]<class T>(T) {
        const Elements<T> e(place.isa, type);
        const bool        loops = std::is_floating_point_v<T> && is_running(how);
        const FoldLoops*  fold = loops ? &place.isa.fold[int(fold_op(how))][int(compute_of(type))] : nullptr;
        const bool        is_along = fold && rank == 1 && e.is_native() && x.strides[0] == 1;
        place.parallel.for_each(tasks, [&](uint32_t task, uint32_t) {
            Walk w = columns.around;
            const int64_t first = units * task / tasks, end = units * (task + 1) / tasks;
            w.seek(first % parts);
            for (int64_t u = first; u < end; u++, w.next()) {
                const int64_t s = u / parts, column = u % parts % columns.pieces * ROW_PIECE;
                const int64_t from = std::clamp<int64_t>(bound[s * offsets.strides[0]], 0, rows);
                const int64_t to = std::clamp<int64_t>(bound[(s + 1) * offsets.strides[0]], 0, rows);
                const Stretch stretch = {x.data, y.data, w.a + (from < to ? from * x.strides[0] : 0), w.b + s * y.strides[0], x.strides[0],
                                         std::max<int64_t>(to - from, 0), columns.x_step, columns.y_step, std::min(ROW_PIECE, columns.count - column),
                                         fold ? fold->across : nullptr, is_along ? fold->exact : nullptr};
                if (is_running(how)) fold_stretch<Running<T>>(how, e, type, stretch);
                else fold_stretch<T>(how, e, type, stretch);
            }
        });
    });
}

}  // namespace ng::cpu
