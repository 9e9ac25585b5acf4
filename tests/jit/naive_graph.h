// The value of a node by definition, one operation at a time, and slopes by differences.
#pragma once
#include "jit/number.h"
#include "tests/jit/naive_value.h"

#include <bit>
#include <map>
#include <memory>
#include <unordered_map>

namespace naive {

using ng::Fold, ng::Node, ng::NodeRef;

struct Inputs {
    std::map<int64_t, Value>     params;
    std::map<const void*, Value> leaves;
    std::vector<int64_t>         lengths;
};

class Evaluation {
  public:
    explicit Evaluation(const Inputs& inputs) : in_(inputs) {}
    // Recursive: for graphs of a test's size.
    const Value& of(const NodeRef& n) { return of(*n); }
    const Value& of(const Node& n)
    {
        const auto at = done_.find(&n);
        if (at != done_.end()) return at->second;
        Value v = compute(n);
        if (v.dims != dims_of(n) || v.v.size() != size_t(count_of(v.dims))) throw ng::Error(NG_E_BUG, ng::text("naive: ", ng::name_of(n.op), " ", ng::describe(n)));
        return done_.emplace(&n, std::move(v)).first->second;
    }

  private:
    int64_t at(const ng::Extent& e) const { return e.value(in_.lengths); }
    std::vector<int64_t> dims_of(const Node& n) const
    {
        std::vector<int64_t> dims;
        for (const ng::Extent& e : n.dims()) dims.push_back(at(e));
        return dims;
    }
    const Value& arg(const Node& n, size_t i) { return of(*n.arg(i)); }

    Value compute(const Node& n)
    {
        const auto dims = dims_of(n);
        if (ng::is_map(n.op)) return mapped(n);
        if (ng::is_fold(n.op)) return folded(n);
        switch (n.op) {
        case Op::param: return in_.params.at(n.value);
        case Op::leaf: return in_.leaves.at(ng::leaf_tensor(n).get());
        case Op::length: return {{}, {double(in_.lengths.at(size_t(n.value)))}};
        case Op::constant: return {{}, {ng::is_float(n.dtype) ? std::bit_cast<double>(n.value) : double(n.value)}};
        case Op::iota: { Value r = zeros(dims); each(dims, [&](const Index& i, int64_t k) { r.v[size_t(k)] = double(i[size_t(n.value)]); }); return r; }
        case Op::cast: return converted(n);
        case Op::reshape: return {dims, arg(n, 0).v};
        case Op::cast_stochastic: case Op::tag: case Op::keep: case Op::surrogate: case Op::custom_grad: return arg(n, 0);
        case Op::broadcast: case Op::permute: case Op::slice: case Op::view: return moved(n);
        case Op::concat: return joined(n);
        case Op::take: return taken(n);
        case Op::put: return stored(n);
        case Op::scan: return scanned(n);
        case Op::segment: return segmented(n);
        case Op::argsort: return sorted(n);
        case Op::matmul: return multiplied(n);
        case Op::conv: case Op::conv_dx: case Op::conv_dw: return convolved(n);
        case Op::pool: case Op::pool_dx: return windowed(n);
        default: throw ng::Error(NG_E_BUG, ng::text("naive: no value of ", ng::name_of(n.op)));
        }
    }

    Value mapped(const Node& n)
    {
        Value r = zeros(dims_of(n));
        const size_t count = n.args().size();
        const Value *x = &arg(n, 0), *y = count > 1 ? &arg(n, 1) : x, *z = count > 2 ? &arg(n, 2) : x;
        for (size_t i = 0; i < r.v.size(); i++) r.v[i] = map_of(n.op, x->v[i], y->v[i], z->v[i]);
        return r;
    }
    // Floats stay what they are, but those of a byte saturate: slopes are of the unrounded.
    Value converted(const Node& n)
    {
        Value r = arg(n, 0);
        const bool is_from_float = ng::is_float(n.arg(0)->dtype), saturates = ng::is_float(n.dtype) && ng::bytes_of(n.dtype) == 1;
        for (double& v : r.v) {
            if (ng::is_bool(n.dtype)) v = v != 0;
            else if (ng::is_integer(n.dtype)) v = (is_from_float ? ng::Number(v) : ng::Number(int64_t(v))).as(n.dtype).real();
            else if (saturates) v = std::clamp(v, -ng::largest_of(n.dtype), ng::largest_of(n.dtype));
        }
        return r;
    }
    Value folded(const Node& n)
    {
        const Value& x = arg(n, 0);
        Value r = zeros(dims_of(n)), best = r, seen = r;
        each(x.dims, [&](const Index& i, int64_t k) {
            Index to = i;
            for (size_t a = 0; a < to.size(); a++)
                if (n.value >> a & 1) to[a] = 0;
            const auto at = size_t(flat(to, r.dims));
            const double v = x.v[size_t(k)], position = seen.v[at]++;
            const bool first = position == 0 || (std::isnan(v) && !std::isnan(best.v[at])), less = first || v < best.v[at], greater = first || v > best.v[at];
            switch (n.op) {
            case Op::sum: r.v[at] += v; break;
            case Op::prod: r.v[at] = position == 0 ? v : r.v[at] * v; break;
            case Op::any: r.v[at] = r.v[at] != 0 || v != 0; break;
            case Op::all: r.v[at] = position == 0 ? v != 0 : r.v[at] != 0 && v != 0; break;
            case Op::min: case Op::argmin: if (less) best.v[at] = v, r.v[at] = n.op == Op::min ? v : position; break;
            default: if (greater) best.v[at] = v, r.v[at] = n.op == Op::max ? v : position;
            }
        });
        if ((n.op == Op::prod || n.op == Op::all) && x.v.empty()) std::ranges::fill(r.v, 1);
        return r;
    }
    Value moved(const Node& n)
    {
        const Value& x = arg(n, 0);
        Value r = zeros(dims_of(n));
        each(r.dims, [&](const Index& i, int64_t k) {
            Index from(x.dims.size(), 0);
            int64_t number = n.op == Op::view ? at(n.extra->extents.back()) : 0;
            for (size_t a = 0; a < i.size(); a++) {
                const size_t lead = i.size() - x.dims.size();
                if (n.op == Op::broadcast && a >= lead) from[a - lead] = x.dims[a - lead] == 1 ? 0 : i[a];
                if (n.op == Op::permute && n.int_at(a) >= 0) from[size_t(n.int_at(a))] = i[a];
                if (n.op == Op::slice) from[a] = int64_t(a) == n.value ? at(n.extra->extents[0]) + i[a] * n.int_at(0) : i[a];
                if (n.op == Op::view) number += i[a] * at(n.extra->extents[a]);
            }
            r.v[size_t(k)] = x.v.at(size_t(n.op == Op::view ? number : flat(from, x.dims)));
        });
        return r;
    }
    Value joined(const Node& n)
    {
        Value r = zeros(dims_of(n));
        int64_t start = 0;
        for (size_t a = 0; a < n.args().size(); a++) {
            const Value& x = arg(n, a);
            each(x.dims, [&](Index i, int64_t k) { i[size_t(n.value)] += start; r.v[size_t(flat(i, r.dims))] = x.v[size_t(k)]; });
            start += x.dims[size_t(n.value)];
        }
        return r;
    }
    // f(place in x or -1, number in y) for the elements of a take or put, y of taken shape.
    template <class F> void each_taken(const Value& x, const Value& at, size_t axis, F f)
    {
        std::vector<int64_t> y(x.dims.begin(), x.dims.begin() + long(axis));
        y.insert(y.end(), at.dims.begin(), at.dims.end());
        y.insert(y.end(), x.dims.begin() + long(axis) + 1, x.dims.end());
        each(y, [&](const Index& i, int64_t k) {
            const Index in(i.begin() + long(axis), i.begin() + long(axis + at.dims.size()));
            const auto place = int64_t(at.v[size_t(flat(in, at.dims))]);
            Index from(i.begin(), i.begin() + long(axis));
            from.push_back(place);
            from.insert(from.end(), i.begin() + long(axis + at.dims.size()), i.end());
            f(place >= 0 && place < x.dims[axis] ? flat(from, x.dims) : -1, k);
        });
    }
    Value taken(const Node& n)
    {
        const Value& x = arg(n, 0);
        Value r = zeros(dims_of(n));
        each_taken(x, arg(n, 1), size_t(n.value), [&](int64_t from, int64_t k) { r.v[size_t(k)] = from < 0 ? 0 : x.v[size_t(from)]; });
        return r;
    }
    Value stored(const Node& n)
    {
        Value r = arg(n, 0);
        const Value& y = arg(n, 2);
        each_taken(arg(n, 0), arg(n, 1), size_t(n.value), [&](int64_t to, int64_t k) {
            if (to >= 0) r.v[size_t(to)] = fold_of(Fold(n.int_at(0)), r.v[size_t(to)], y.v[size_t(k)]);
        });
        return r;
    }
    Value scanned(const Node& n)
    {
        const Value& x = arg(n, 0);
        Value r = zeros(x.dims);
        const auto axis = size_t(n.value);
        const auto how = Fold(n.int_at(0));
        const bool back = n.int_at(1) & NG_REVERSE, exclusive = n.int_at(1) & NG_EXCLUSIVE;
        each(x.dims, [&](const Index& i, int64_t k) {
            double sum = fold_start(how);
            for (int64_t j = back ? x.dims[axis] - 1 : 0; j != i[axis] + (exclusive ? 0 : back ? -1 : 1); j += back ? -1 : 1) {
                Index from = i;
                from[axis] = j;
                sum = fold_of(how, sum, x.v[size_t(flat(from, x.dims))]);
            }
            r.v[size_t(k)] = sum;
        });
        return r;
    }
    Value segmented(const Node& n)
    {
        const Value &x = arg(n, 0), &offsets = arg(n, 1);
        const auto how = Fold(n.int_at(0));
        Value r = zeros(dims_of(n), fold_start(how));
        each(r.dims, [&](const Index& i, int64_t k) {
            Index from = i;
            for (from[0] = int64_t(offsets.v[size_t(i[0])]); from[0] < int64_t(offsets.v[size_t(i[0]) + 1]); from[0]++)
                r.v[size_t(k)] = fold_of(how, r.v[size_t(k)], x.v[size_t(flat(from, x.dims))]);
        });
        return r;
    }
    Value sorted(const Node& n)
    {
        const Value& x = arg(n, 0);
        Value r = zeros(x.dims);
        const auto axis = size_t(n.value);
        each(x.dims, [&](const Index& i, int64_t k) {
            Index to = i, other = i;
            to[axis] = 0;
            for (other[axis] = 0; other[axis] < x.dims[axis]; other[axis]++) {
                const double mine = x.v[size_t(k)], its = x.v[size_t(flat(other, x.dims))];
                const bool ahead = n.int_at(0) & NG_REVERSE ? its > mine : its < mine;
                to[axis] += ahead || (its == mine && other[axis] < i[axis]);
            }
            r.v[size_t(flat(to, r.dims))] = double(i[axis]);
        });
        return r;
    }
    Value multiplied(const Node& n)
    {
        const Value &a = arg(n, 0), &b = arg(n, 1);
        Value r = zeros(dims_of(n));
        const size_t row = r.dims.size() - 2, column = row + 1;
        each(r.dims, [&](const Index& i, int64_t k) {
            Index in_a = i, in_b = i;
            for (size_t d = 0; d < row; d++) in_a[d] = a.dims[d] == 1 ? 0 : i[d], in_b[d] = b.dims[d] == 1 ? 0 : i[d];
            for (int64_t m = 0; m < a.dims[column]; m++) {
                in_a[column] = in_b[row] = m;
                r.v[size_t(k)] += a.v[size_t(flat(in_a, a.dims))] * b.v[size_t(flat(in_b, b.dims))];
            }
        });
        return r;
    }
    Value convolved(const Node& n)
    {
        const Value &a = arg(n, 0), &b = arg(n, 1);
        const ng::ConvShape s = ng::conv_shape(n);
        Value r = zeros(dims_of(n));
        const auto &x = n.op == Op::conv_dx ? r : a, &w = n.op == Op::conv ? b : n.op == Op::conv_dx ? a : r, &y = n.op == Op::conv ? r : b;
        each_tap(x.dims, w.dims, y.dims, s, [&](int64_t ix, int64_t iw, int64_t iy) {
            const double in = n.op == Op::conv_dx ? 0 : ix < 0 ? s.pad_value : x.v[size_t(ix)];
            if (n.op == Op::conv) r.v[size_t(iy)] += in * w.v[size_t(iw)];
            else if (n.op == Op::conv_dw) r.v[size_t(iw)] += in * y.v[size_t(iy)];
            else if (ix >= 0) r.v[size_t(ix)] += w.v[size_t(iw)] * y.v[size_t(iy)];
        });
        return r;
    }
    // pool, pool_dx, and pool of value 1, which picks from d where x is greatest.
    Value windowed(const Node& n)
    {
        const Value& x = arg(n, 0);
        const ng::PoolShape s = ng::pool_shape(n);
        Value r = zeros(dims_of(n));
        each_window(x.dims, n.op == Op::pool ? r.dims : arg(n, 1).dims, s, [&](const std::vector<int64_t>& in, int64_t size, int64_t iy) {
            if (n.op == Op::pool && !n.value) { r.v[size_t(iy)] = pooled(s, x, in, size); return; }
            for (size_t i = 0; i < in.size(); i++) {
                const double slope = pool_slope(s, x, in, size, i);
                if (n.op == Op::pool) r.v[size_t(iy)] += slope * arg(n, 1).v[size_t(in[i])];
                else r.v[size_t(in[i])] += slope * arg(n, 1).v[size_t(iy)];
            }
        });
        return r;
    }

    const Inputs& in_;
    std::unordered_map<const Node*, Value> done_;
};

inline Value value(const NodeRef& e, const Inputs& in) { return Evaluation(in).of(e); }

// d sum(seed . y) / d element k of a param: central differences of steps 1 and 1/2, the first error's term removed.
// rough: their disagreement, large at kinks.
struct Slope { double slope, rough; };
inline Slope slope(const NodeRef& y, const Value& seed, Inputs in, int64_t param, size_t k)
{
    const auto total = [&](double off) {
        const double keep = in.params.at(param).v[k];
        in.params.at(param).v[k] = keep + off;
        const Value v = value(y, in);
        in.params.at(param).v[k] = keep;
        double sum = 0;
        for (size_t i = 0; i < v.v.size(); i++) sum += v.v[i] * seed.v[i];
        return sum;
    };
    const double h = 1e-3, whole = (total(h) - total(-h)) / (2 * h), half = (total(h / 2) - total(-h / 2)) / h;
    return {(4 * half - whole) / 3, std::abs(whole - half)};
}

}  // namespace naive
