// Composition of index forms, and the digits of a flat index.
#include "jit/forms.h"

#include <algorithm>

namespace ng {
namespace {

bool is_unit(const Extent& e) { return e.is(1); }

// Reshaped dims in groups that hold equally many elements on both sides.
struct Group {
    std::vector<size_t> to, from;
};

// Whether a is the greater product; unknown lengths count by divisibility.
bool exceeds(const Extent& a, const Extent& b)
{
    if (a.is_constant() && b.is_constant()) return a.constant() > b.constant();
    return a.divided_by(b).has_value();
}

std::vector<Group> groups_of(const Extents& to, const Extents& from)
{
    std::vector<Group> groups;
    size_t i = 0, j = 0;
    const auto next = [](const Extents& dims, size_t& at, std::vector<size_t>& list, Extent& p) {
        while (at < dims.size() && is_unit(dims[at])) at++;
        if (at == dims.size()) return false;
        p = p * dims[at];
        list.push_back(at++);
        return true;
    };
    for (;;) {
        Group g;
        Extent a = 1, b = 1;
        const bool more_a = next(to, i, g.to, a), more_b = next(from, j, g.from, b);
        if (!more_a && !more_b) return groups;
        while (!(a == b)) {
            const bool grew = exceeds(a, b) ? next(from, j, g.from, b) || next(to, i, g.to, a) : next(to, i, g.to, a) || next(from, j, g.from, b);
            if (!grew) break;
        }
        groups.push_back(std::move(g));
    }
}

// The low digit of a flat index in base `base`, and what is above it. Terms that straddle ask for a split.
bool digit(const IndexForm& flat, const Extent& base, const std::vector<KernelAxis>& axes, IndexForm& low, IndexForm& high, AxisSplit& split)
{
    if (!flat.offset.is_constant() || (!flat.offset.is(0) && !base.is_constant())) return false;
    const int64_t offset = flat.offset.constant();
    if (offset < 0) return false;
    if (offset) low.offset = offset % base.constant(), high.offset = offset / base.constant();
    Extent reach = low.offset;
    bool known = base.is_constant();
    int lows = 0;
    for (const auto& [axis, c] : flat.terms) {
        const Extent& size = axes[size_t(axis)].extent;
        if (c.is_constant() && c.constant() < 0) return false;
        if (const auto q = c.divided_by(base)) {
            high.terms.emplace_back(axis, *q);
            continue;
        }
        const bool fits = base.divided_by(c * size).has_value() ||
                          (base.is_constant() && c.is_constant() && size.is_constant() && c.constant() * (size.constant() - 1) < base.constant());
        if (!fits) {
            const auto inner = base.divided_by(c);
            if (inner && !inner->is(1) && !size.is(0) && size.divided_by(*inner)) split = {axis, *inner};
            return false;
        }
        low.terms.emplace_back(axis, c);
        reach = reach + c * (size - Extent(1));
        known = known && reach.is_constant();
        lows++;
    }
    if (known) return reach.constant() < base.constant();
    if (lows <= 1) return low.offset.is(0);
    // Several low digits of unknown size: they must nest, c' a multiple of c size.
    std::vector<std::pair<int32_t, Extent>> order = low.terms;
    for (size_t step = 0; step + 1 < order.size(); step++)
        for (size_t k = 0; k + 1 < order.size(); k++)
            if (order[k].second.divided_by(order[k + 1].second)) std::swap(order[k], order[k + 1]);
    for (size_t k = 0; k + 1 < order.size(); k++)
        if (!order[k + 1].second.divided_by(order[k].second * axes[size_t(order[k].first)].extent)) return false;
    return true;
}

}  // namespace

IndexForm scaled(const IndexForm& f, const Extent& by)
{
    IndexForm r;
    if (by.is(0)) return r;
    r.offset = f.offset * by;
    for (const auto& [axis, c] : f.terms) r.terms.emplace_back(axis, c * by);
    return r;
}

IndexForm sum(const IndexForm& a, const IndexForm& b)
{
    IndexForm r;
    r.offset = a.offset + b.offset;
    auto x = a.terms.begin(), y = b.terms.begin();
    while (x != a.terms.end() || y != b.terms.end()) {
        if (y == b.terms.end() || (x != a.terms.end() && x->first < y->first)) r.terms.push_back(*x++);
        else if (x == a.terms.end() || y->first < x->first) r.terms.push_back(*y++);
        else {
            const Extent c = x->second + y->second;
            if (!c.is(0)) r.terms.emplace_back(x->first, c);
            ++x, ++y;
        }
    }
    return r;
}

void apply(const AxisSplit& split, IndexForms& forms)
{
    for (IndexForm& f : forms) {
        std::vector<std::pair<int32_t, Extent>> terms;
        for (const auto& [axis, c] : f.terms) {
            if (axis == split.axis) terms.emplace_back(axis, c * split.inner);
            terms.emplace_back(axis + (axis >= split.axis), c);
        }
        f.terms = std::move(terms);
    }
}

void apply(const AxisSplit& split, std::vector<KernelAxis>& axes)
{
    KernelAxis inner = axes[size_t(split.axis)];
    axes[size_t(split.axis)].extent = *inner.extent.divided_by(split.inner);
    inner.extent = split.inner;
    axes.insert(axes.begin() + split.axis + 1, inner);
}

IndexForms through(const Node& n, const IndexForms& forms)
{
    const Extents& from = n.arg(0)->dims();
    IndexForms out(from.size());
    switch (n.op) {
    case Op::broadcast:
        for (size_t i = 0; i < from.size(); i++)
            if (!is_unit(from[i])) out[i] = forms[forms.size() - from.size() + i];
        return out;
    case Op::permute:
        for (size_t i = 0; i < forms.size(); i++)
            if (const int64_t a = n.int_at(i); a >= 0) out[size_t(a)] = forms[i];
        return out;
    case Op::slice: {
        out = forms;
        IndexForm& f = out[size_t(n.value)];
        f = scaled(f, n.int_at(0));
        f.offset = f.offset + n.extra->extents[0];
        if (is_unit(from[size_t(n.value)])) f = IndexForm();
        return out;
    }
    default: return forms;
    }
}

std::optional<IndexForms> through_reshape(const Extents& to, const Extents& from, const IndexForms& forms, const std::vector<KernelAxis>& axes, AxisSplit& split)
{
    IndexForms out(from.size());
    for (const Group& g : groups_of(to, from)) {
        if (g.to.size() == 1 && g.from.size() == 1) {
            out[g.from[0]] = forms[g.to[0]];
            continue;
        }
        IndexForm flat;
        Extent stride = 1;
        for (size_t i = g.to.size(); i-- > 0;) {
            flat = sum(flat, scaled(forms[g.to[i]], stride));
            stride = stride * to[g.to[i]];
        }
        for (size_t j = g.from.size(); j-- > 1;) {
            IndexForm low, high;
            if (!digit(flat, from[g.from[j]], axes, low, high, split)) return std::nullopt;
            out[g.from[j]] = std::move(low);
            flat = std::move(high);
        }
        if (!g.from.empty()) out[g.from[0]] = std::move(flat);
    }
    return out;
}

std::optional<IndexForms> laid_over(const Extents& dims, const std::vector<KernelAxis>& axes, std::span<const int32_t> which, AxisSplit& split)
{
    IndexForms forms(dims.size());
    size_t at = 0;
    for (size_t d = 0; d < dims.size(); d++) {
        if (is_unit(dims[d])) continue;
        Extent covered = 1;
        std::vector<int32_t> mine;
        while (!(covered == dims[d])) {
            if (at == which.size()) return std::nullopt;
            const Extent& size = axes[size_t(which[at])].extent;
            if (covered.is(1) && size == dims[d]) {                // also of no elements
                mine.push_back(which[at++]);
                break;
            }
            const auto rest = dims[d].divided_by(covered);
            if (!rest) return std::nullopt;
            if (!(*rest == size) && !rest->divided_by(size)) { // equal: 0 divides nothing; else the axis is longer than what is missing: its outer part would do
                if (const auto inner = size.divided_by(*rest); inner && !inner->is(0) && !inner->is(1)) split = {which[at], *inner};
                return std::nullopt;
            }
            covered = covered * size;
            mine.push_back(which[at++]);
        }
        Extent stride = 1;
        std::vector<std::pair<int32_t, Extent>> terms;
        for (size_t k = mine.size(); k-- > 0;) {
            terms.emplace_back(mine[k], stride);
            stride = stride * axes[size_t(mine[k])].extent;
        }
        std::ranges::reverse(terms);
        forms[d].terms = std::move(terms);
    }
    if (at != which.size()) return std::nullopt;
    return forms;
}

Access access_of(const View& view, const IndexForms& forms, size_t axes)
{
    Access a{view.offset, Extents(axes, Extent(0))};
    for (size_t d = 0; d < forms.size(); d++) {
        if (!forms[d].offset.is(0)) a.offset = a.offset + view.strides[d] * forms[d].offset;
        for (const auto& [axis, c] : forms[d].terms) {
            Extent& s = a.strides[size_t(axis)];
            s = s + view.strides[d] * c;
        }
    }
    return a;
}

std::optional<View> reshaped(const Extents& dims, const View& view)
{
    View out{view.buffer, view.dtype, view.offset, dims, Extents(dims.size(), Extent(0))};
    for (const Group& g : groups_of(dims, view.dims)) {
        for (size_t j = 0; j + 1 < g.from.size(); j++)         // what is merged must follow each other in memory
            if (!(view.strides[g.from[j]] == view.strides[g.from[j + 1]] * view.dims[g.from[j + 1]])) return std::nullopt;
        Extent stride = g.from.empty() ? Extent(0) : view.strides[g.from.back()];
        for (size_t i = g.to.size(); i-- > 0;) {
            out.strides[g.to[i]] = stride;
            stride = stride * dims[g.to[i]];
        }
    }
    return out;
}

std::optional<View> through_view(const Node& n, const View& v)
{
    View out{v.buffer, v.dtype, v.offset, n.dims(), Extents(n.dims().size(), Extent(0))};
    switch (n.op) {
    case Op::broadcast:
        for (size_t i = 0; i < v.dims.size(); i++)
            if (!is_unit(v.dims[i])) out.strides[out.strides.size() - v.dims.size() + i] = v.strides[i];
        return out;
    case Op::permute:
        for (size_t i = 0; i < out.dims.size(); i++)
            if (const int64_t a = n.int_at(i); a >= 0) out.strides[i] = v.strides[size_t(a)];
        return out;
    case Op::slice: {
        const auto a = size_t(n.value);
        out.strides = v.strides;
        out.strides[a] = v.strides[a] * Extent(n.int_at(0));
        out.offset = v.offset + v.strides[a] * n.extra->extents[0];
        return out;
    }
    case Op::reshape: return reshaped(n.dims(), v);
    case Op::view:
        // Its operand has one axis, whatever the distance of its elements.
        for (size_t i = 0; i < out.strides.size(); i++) out.strides[i] = n.extra->extents[i] * v.strides[0];
        out.offset = v.offset + n.extra->extents.back() * v.strides[0];
        return out;
    case Op::bitcast: {
        View same = v;
        same.dtype = n.dtype;
        return same;
    }
    default: return v;           // tag, keep, surrogate, custom_grad
    }
}

}  // namespace ng
