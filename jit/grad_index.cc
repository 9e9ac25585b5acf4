// Derivatives of what works by index: a take is undone by a put, a running sum by one that runs back.
#include "jit/grad_sweep.h"

namespace ng {
namespace {

using build::map;

NodeRef zero_like(Graph& g, const NodeRef& d) { return build::constant(g, d->dtype, 0); }
NodeRef whole(Graph& g, int64_t value) { return build::constant_int(g, Dtype::i64, value); }

// With axes of 1 behind its own.
NodeRef with_trailing(Graph& g, const NodeRef& x, int count)
{
    Extents dims = x->dims();
    dims.resize(dims.size() + size_t(count), Extent(1));
    return build::reshape(g, x, dims);
}

struct Put {
    Graph&         g;
    const Node&    n;
    const NodeRef &x, &at, &y, &d;
    int32_t        axis;

    NodeRef taken(const NodeRef& from) const { return build::take(g, from, at, axis); }
    // Row-major numbers of the indices, as they lie in y.
    NodeRef own() const { return with_trailing(g, numbering(g, at->dims()), x->rank() - axis - 1); }

    // Of equal indices the last was stored.
    NodeRef last_by_y() const
    {
        const NodeRef here = numbering(g, at->dims()), none = build::broadcast(g, whole(g, -1), {x->dims()[size_t(axis)]});
        const NodeRef winner = build::take(g, build::put(g, none, at, here, 0, NG_FOLD_LAST), at, 0);
        return map(g, Op::where, {with_trailing(g, map(g, Op::equal, {winner, here}), x->rank() - axis - 1), taken(d), zero_like(g, d)});
    }
    // Of equal values x is the first, then the y of the least index (D6).
    NodeRef extreme_by_x() const { return map(g, Op::where, {map(g, Op::equal, {x, NodeRef(&n)}), d, zero_like(g, d)}); }
    NodeRef extreme_by_y() const
    {
        const NodeRef beats = map(g, Op::not_equal, {taken(x), y}), wins = map(g, Op::logical_and, {map(g, Op::equal, {taken(NodeRef(&n)), y}), beats});
        const NodeRef none = build::broadcast(g, whole(g, INT64_MAX), x->dims());
        const NodeRef first = build::put(g, none, at, map(g, Op::where, {wins, own(), whole(g, INT64_MAX)}), axis, NG_FOLD_MIN);
        const NodeRef is_first = map(g, Op::logical_and, {wins, map(g, Op::equal, {taken(first), own()})});
        return map(g, Op::where, {is_first, taken(d), zero_like(g, d)});
    }
};

void spread_put(Sweep& s, const Node& n, const NodeRef& d)
{
    Graph& g = s.g;
    const Put put{g, n, n.arg(0), n.arg(1), n.arg(2), d, int32_t(n.value)};
    const bool by_x = s.wants(n, 0), by_y = s.wants(n, 2);
    switch (Fold(n.int_at(0))) {
    case Fold::Sum:
        if (by_x) s.give(n, 0, d);
        if (by_y) s.give(n, 2, put.taken(d));
        break;
    case Fold::Last:
        if (by_x) s.give(n, 0, build::put(g, d, put.at, zero_like(g, d), put.axis, NG_FOLD_LAST));
        if (by_y) s.give(n, 2, put.last_by_y());
        break;
    case Fold::Min: case Fold::Max:
        if (by_x) s.give(n, 0, put.extreme_by_x());
        if (by_y) s.give(n, 2, put.extreme_by_y());
        break;
    case Fold::Prod:
        if (by_y) s.refuse(n, "products by index have no derivative by what is put; by what is there they have");
        const Dtype   t = cotangent_type(n.dtype);           // as other products: what f16 has no room for may meet a small cotangent
        const NodeRef ones = filled(g, t, 1, n.dims());
        s.give(n, 0, map(g, Op::mul, {d, build::put(g, ones, put.at, build::cast(g, put.y, t), put.axis, NG_FOLD_PROD)}));
    }
}

NodeRef flipped(Graph& g, const NodeRef& x, int32_t axis)
{
    const Extent& count = x->dims()[size_t(axis)];
    return build::slice_at(g, x, axis, count - Extent(1), count, -1);
}

// Each element of d goes to the place of the first of the greatest so far: where the last record was set.
NodeRef extreme_scan(Graph& g, const Node& n, NodeRef d)
{
    const auto axis = int32_t(n.value);
    const auto how = uint32_t(n.int_at(0)), flags = uint32_t(n.int_at(1));
    const bool back = flags & NG_REVERSE;
    const NodeRef x = back ? flipped(g, n.arg(0), axis) : n.arg(0);
    if (back) d = flipped(g, d, axis);
    Layout along;
    along.dtype = Dtype::i64, along.dims = Extents(size_t(n.rank()), Extent(1));
    along.dims[size_t(axis)] = n.dims()[size_t(axis)];
    const NodeRef here = build::iota(g, along, axis), before = build::scan(g, x, axis, how, NG_EXCLUSIVE);
    const NodeRef record = map(g, Op::logical_or, {map(g, Op::equal, {here, whole(g, 0)}), map(g, how == NG_FOLD_MAX ? Op::greater : Op::less, {x, before})});
    const NodeRef records = map(g, Op::where, {record, here, whole(g, -1)});
    const NodeRef from = map(g, Op::maximum, {build::scan(g, records, axis, NG_FOLD_MAX, flags & NG_EXCLUSIVE), whole(g, -1)});
    const NodeRef inner = build::length(g, product(std::span(n.dims()).subspan(size_t(axis) + 1)));
    const NodeRef moved = map(g, Op::add, {numbering(g, n.dims()), map(g, Op::mul, {map(g, Op::sub, {from, here}), inner})});
    const NodeRef to = map(g, Op::where, {map(g, Op::less, {from, whole(g, 0)}), whole(g, -1), moved});
    const Extents flat = {product(n.dims())};
    NodeRef dx = build::put(g, filled(g, d->dtype, 0, flat), build::reshape(g, to, flat), build::reshape(g, d, flat), 0, NG_FOLD_SUM);
    dx = build::reshape(g, dx, n.dims());
    return back ? flipped(g, dx, axis) : dx;
}

void spread_scan(Sweep& s, const Node& n, const NodeRef& d)
{
    switch (Fold(n.int_at(0))) {
    // The last element so far is, without NG_EXCLUSIVE, the element itself; with it the one before.
    case Fold::Sum: case Fold::Last:
        return s.give(n, 0, build::scan(s.g, d, int32_t(n.value), uint32_t(n.int_at(0)), uint32_t(n.int_at(1)) ^ NG_REVERSE));
    case Fold::Min: case Fold::Max: return s.give(n, 0, extreme_scan(s.g, n, d));
    case Fold::Prod: s.refuse(n, "running products have no derivative; exp of a running sum of log has");
    }
}

// Which segment a row lies in, as ng_segment cuts them: offsets end at the axis, those that descend bound nothing.
struct Segments {
    Graph&  g;
    Extent  rows;
    NodeRef row = numbering(g, {rows});
    NodeRef ends, of;   // of each segment; of each row, -1 outside all

    Segments(Graph& graph, const NodeRef& offsets, const Extent& length) : g(graph), rows(length)
    {
        const NodeRef none = whole(g, -1);
        const Extent count = offsets->dims()[0] - Extent(1);
        const NodeRef cut = map(g, Op::minimum, {map(g, Op::maximum, {offsets, whole(g, 0)}), build::length(g, rows)});
        const NodeRef begins = build::slice_at(g, cut, 0, Extent(0), count, 1);
        ends = build::slice_at(g, cut, 0, Extent(1), count, 1);
        // At each row the segment that begins there; where several do, the last.
        const NodeRef at = map(g, Op::where, {map(g, Op::less, {begins, ends}), begins, none});
        const NodeRef begun = build::put(g, build::broadcast(g, none, {rows}), at, numbering(g, {count}), 0, NG_FOLD_MAX);
        const NodeRef marks = map(g, Op::where, {map(g, Op::less, {begun, whole(g, 0)}), none, row});
        const NodeRef since = build::scan(g, marks, 0, NG_FOLD_MAX, 0), latest = build::take(g, begun, since, 0);
        const NodeRef before_end = map(g, Op::less, {row, build::take(g, ends, latest, 0)});
        of = map(g, Op::where, {map(g, Op::logical_and, {map(g, Op::greater_equal, {since, whole(g, 0)}), before_end}), latest, none});
    }
    // What a row's segment has in x; 0 outside all.
    NodeRef taken(const NodeRef& x) const { return build::take(g, x, of, 0); }
};

void spread_segment(Sweep& s, const Node& n, const NodeRef& d)
{
    Graph& g = s.g;
    const NodeRef &x = n.arg(0), &offsets = n.arg(1);
    if (Fold(n.int_at(0)) == Fold::Prod) s.refuse(n, "products of segments have no derivative; exp of a sum of log has");
    const Segments segments(g, offsets, x->dims()[0]);
    const NodeRef mine = segments.taken(d);
    switch (Fold(n.int_at(0))) {
    case Fold::Sum: case Fold::Prod: return s.give(n, 0, mine);
    case Fold::Last: {
        const NodeRef is_last = map(g, Op::equal, {map(g, Op::add, {segments.row, whole(g, 1)}), segments.taken(segments.ends)});
        return s.give(n, 0, map(g, Op::where, {with_trailing(g, is_last, x->rank() - 1), mine, zero_like(g, d)}));
    }
    case Fold::Min: case Fold::Max: {
        const NodeRef row = with_trailing(g, segments.row, x->rank() - 1);
        const NodeRef wins = map(g, Op::equal, {x, segments.taken(NodeRef(&n))});
        const NodeRef first = build::segment(g, map(g, Op::where, {wins, row, whole(g, INT64_MAX)}), offsets, NG_FOLD_MIN);
        const NodeRef is_first = map(g, Op::logical_and, {wins, map(g, Op::equal, {segments.taken(first), row})});
        return s.give(n, 0, map(g, Op::where, {is_first, mine, zero_like(g, d)}));
    }
    }
}

}  // namespace

bool spread_index(Sweep& s, const Node& n, const NodeRef& d)
{
    if (n.op == Op::put) return spread_put(s, n, d), true;
    if (n.op != Op::take && n.op != Op::scan && n.op != Op::segment) return false;
    if (!s.wants(n, 0)) return true;
    if (n.op == Op::take) s.give_at(n, n.arg(1), d, int32_t(n.value));
    else if (n.op == Op::scan) spread_scan(s, n, d);
    else spread_segment(s, n, d);
    return true;
}

}  // namespace ng
