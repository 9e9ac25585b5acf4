// Reverse-mode derivation: one iterative sweep from the outputs down, a rule an operation.
#include "jit/grad.h"
#include "jit/grad_sweep.h"
#include "jit/parse.h"

#include <algorithm>
#include <map>

namespace ng {
namespace {

// The text of a map's derivative by one operand; "" where it is zero.
std::string_view derivative_of(Op op, size_t operand)
{
    std::string_view all = info(op).derivative;
    for (size_t i = 0; i < operand; i++) {
        const size_t end = all.find(';');
        all.remove_prefix(end == all.npos ? all.size() : end + 1);
    }
    all = all.substr(0, all.find(';'));
    while (!all.empty() && all.front() == ' ') all.remove_prefix(1);
    while (!all.empty() && all.back() == ' ') all.remove_suffix(1);
    return all == "0" ? std::string_view() : all;
}

// Whether a cotangent of n reaches this operand (D5).
bool passes(const Node& n, size_t operand)
{
    if (!is_float(n.dtype) || !is_float(n.arg(operand)->dtype)) return false;
    if (is_map(n.op)) return !derivative_of(n.op, operand).empty();
    switch (n.op) {
    case Op::cast: case Op::cast_stochastic: case Op::bitcast: case Op::reshape: case Op::broadcast: case Op::permute: case Op::slice:
    case Op::view: case Op::tag: case Op::keep: case Op::take: case Op::scan: case Op::segment:
        return operand == 0;
    case Op::sum: case Op::prod: case Op::min: case Op::max: case Op::concat: case Op::matmul: case Op::conv: case Op::conv_dx:
    case Op::conv_dw: case Op::put:
        return true;
    case Op::pool: return operand + 1 == n.args().size();
    case Op::pool_dx: return operand == 1 || pool_shape(n).kind == NG_POOL_L2;
    case Op::surrogate: return operand == 1;
    case Op::custom_grad: return operand >= 2 && operand < 2 + size_t(n.int_at(0));
    default: return false;
    }
}

// What a custom rule says about cotangents is no part of the value.
bool is_value(const Node& n, size_t operand) { return n.op != Op::custom_grad || (operand != 1 && operand < 2 + size_t(n.int_at(0))); }

using Variable = std::pair<Op, uintptr_t>;

// Leaves of one tensor are one variable, params of one index, a tag is itself (D2).
Variable variable_of(const Node& n)
{
    if (n.op == Op::param) return {n.op, uintptr_t(n.value)};
    const void* tensor = n.op == Op::leaf ? leaf_tensor(n).get() : nullptr;
    return {n.op, reinterpret_cast<uintptr_t>(tensor ? tensor : &n)};
}

// An invalid expression says itself what is wrong with it.
void check(const NodeRef& n)
{
    if (n && n->is_poison()) throw *n->extra->error;
}

bool can_vary(const Node& n) { return n.op == Op::leaf || n.op == Op::param || n.op == Op::tag; }

}  // namespace

NodeRef sum_to(Graph& g, NodeRef d, const Extents& dims)
{
    const size_t more = d->dims().size() - dims.size();
    ng_axes axes = 0;
    for (size_t a = 0; a < d->dims().size(); a++)
        if (a < more || (dims[a - more].is(1) && !d->dims()[a].is(1))) axes |= ng_axes(1) << a;
    if (axes) d = build::reduce(g, Op::sum, d, axes, NG_KEEP);
    return build::reshape(g, d, dims);
}

NodeRef numbering(Graph& g, const Extents& dims)
{
    Layout flat;
    flat.dtype = Dtype::i64, flat.dims = {product(dims)};
    return build::reshape(g, build::iota(g, flat, 0), dims);
}

Sweep::Sweep(Graph& graph, std::span<const NodeRef> y, std::span<const NodeRef> wrt) : g(graph)
{
    order_below(y);
    places_.resize(order_.size());
    find_variables(wrt);
    for (size_t i = 0; i < order_.size(); i++) {
        const Node& n = *order_[i];
        Place& p = places_[i];
        p.active = p.variable >= 0;
        for (size_t a = 0; a < n.args().size() && !p.active; a++) p.active = wants(n, a);
    }
}

// As topological, but for what only custom rules use.
void Sweep::order_below(std::span<const NodeRef> y)
{
    std::unordered_map<const Node*, bool> seen;
    std::vector<std::pair<const Node*, size_t>> stack;
    for (const NodeRef& root : y) {
        if (seen.emplace(root.get(), true).second) stack.emplace_back(root.get(), 0);
        while (!stack.empty()) {
            auto& [n, next] = stack.back();
            if (next == n->args().size()) {
                at_.emplace(n, uint32_t(order_.size()));
                order_.push_back(n);
                stack.pop_back();
                continue;
            }
            const size_t operand = next++;
            const Node* a = n->arg(operand).get();
            if (is_value(*n, operand) && seen.emplace(a, true).second) stack.emplace_back(a, 0);
        }
    }
}

void Sweep::find_variables(std::span<const NodeRef> wrt)
{
    std::map<Variable, size_t> known;
    std::vector<const Node*> first;
    for (const NodeRef& n : wrt) {
        const auto [at, fresh] = known.emplace(variable_of(*n), known.size());
        if (fresh) first.push_back(n.get());
        variable_of_.push_back(at->second);
    }
    totals_.resize(known.size());
    for (size_t i = 0; i < order_.size(); i++) {
        const Node& n = *order_[i];
        if (!can_vary(n)) continue;
        const auto at = known.find(variable_of(n));
        if (at == known.end()) continue;
        const Node& v = *first[at->second];
        if (!same(v.shape, n.shape) || v.dtype != n.dtype)
            throw Error(NG_E_SHAPE, text("ng_grad: one variable occurs as ", describe(v), " and as ", describe(n)));
        places_[i].variable = int32_t(at->second);
    }
}

bool Sweep::wants(const Node& n, size_t operand) const
{
    if (!is_value(n, operand)) return false;
    return places_[at_.at(n.arg(operand).get())].active && passes(n, operand);
}

Sweep::Place& Sweep::place_of(const Node& n, size_t operand)
{
    Place& p = places_[at_.at(n.arg(operand).get())];
    if (!p.label) p.label = n.op == Op::tag ? &n : places_[at_.at(&n)].label;
    return p;
}

void Sweep::give(const Node& n, size_t operand, NodeRef d)
{
    const Node& x = *n.arg(operand);
    Place& p = place_of(n, operand);
    d = build::broadcast(g, build::cast(g, d, cotangent_type(x.dtype)), x.dims());
    p.sum = p.sum ? build::map(g, Op::add, {p.sum, d}) : d;
}

void Sweep::give_at(const Node& take, NodeRef indices, NodeRef d, int32_t axis)
{
    Deposit deposit;
    deposit.indices = indices, deposit.axis = axis;
    deposit.d = build::cast(g, d, cotangent_type(take.arg(0)->dtype));
    place_of(take, 0).deposits.push_back(deposit);
}

void Sweep::give_slice(const Node& slice, NodeRef d)
{
    const auto axis = int32_t(slice.value);
    const Extent &count = slice.dims()[size_t(axis)], &all = slice.arg(0)->dims()[size_t(axis)];
    Deposit deposit;
    deposit.d = build::cast(g, d, cotangent_type(slice.arg(0)->dtype));
    deposit.axis = axis, deposit.start = slice.extra->extents[0], deposit.count = count, deposit.step = slice.int_at(0);
    if (deposit.step == -1 && count == all) give(slice, 0, build::slice_at(g, d, axis, count - Extent(1), count, -1));
    else place_of(slice, 0).deposits.push_back(deposit);
}

// Slices that lie apart are one concatenation, with zeros between them; nothing where they overlap or may.
NodeRef Sweep::side_by_side(const Node& n, std::vector<Deposit>& deposits)
{
    const int32_t axis = deposits[0].axis;
    for (const Deposit& d : deposits)
        if (d.indices || d.axis != axis || d.step != 1 || !d.start.is_constant()) return {};
    std::ranges::stable_sort(deposits, {}, [](const Deposit& d) { return d.start.constant(); });
    Extent at = 0;
    std::vector<NodeRef> pieces;
    const auto fill = [&](const Extent& end) {
        const Extent gap = end - at;
        if (!gap.is_constant() || gap.constant() < 0) return false;
        Extents dims = n.dims();
        dims[size_t(axis)] = gap;
        if (!gap.is(0)) pieces.push_back(filled(g, cotangent_type(n.dtype), 0, dims));
        return true;
    };
    for (const Deposit& d : deposits) {
        if (!fill(d.start)) return {};
        pieces.push_back(d.d);
        at = d.start + d.count;
    }
    if (!fill(n.dims()[size_t(axis)])) return {};
    return build::concat(g, pieces, axis);
}

// All that was given to n.
NodeRef Sweep::gathered(const Node& n, Place& p)
{
    std::vector<Deposit> deposits = std::move(p.deposits);
    NodeRef sum = std::move(p.sum);
    p.deposits.clear(), p.sum = {};
    if (deposits.empty()) return sum;
    if (const NodeRef whole = side_by_side(n, deposits)) return sum ? build::map(g, Op::add, {sum, whole}) : whole;
    if (!sum) sum = filled(g, cotangent_type(n.dtype), 0, n.dims());
    for (Deposit& d : deposits) {
        if (!d.indices) {
            const NodeRef steps = build::map(g, Op::mul, {numbering(g, {d.count}), build::constant_int(g, Dtype::i64, d.step)});
            d.indices = build::map(g, Op::add, {steps, build::length(g, d.start)});
        }
        sum = build::put(g, sum, d.indices, d.d, d.axis, NG_FOLD_SUM);
    }
    return sum;
}

void Sweep::seed(const NodeRef& y, NodeRef dy)
{
    const Dtype t = cotangent_type(y->dtype);
    dy = dy ? build::broadcast(g, build::cast(g, dy, t), y->dims()) : filled(g, t, 1, y->dims());
    Place& p = places_[at_.at(y.get())];
    p.sum = p.sum ? build::map(g, Op::add, {p.sum, dy}) : dy;
}

void Sweep::run()
{
    for (size_t i = order_.size(); i-- > 0;) {
        Place& p = places_[i];
        if (!p.active || (!p.sum && p.deposits.empty())) continue;
        const NodeRef d = gathered(*order_[i], p);
        if (p.variable >= 0) {
            NodeRef& total = totals_[size_t(p.variable)];
            total = total ? build::map(g, Op::add, {total, d}) : d;
        }
        spread(*order_[i], d);
    }
}

void Sweep::spread(const Node& n, const NodeRef& d)
{
    if (is_map(n.op)) {
        static constexpr std::string_view NAMES[] = {"r", "d", "x", "y", "z"};
        std::array<NodeRef, 5> values = {NodeRef(&n), d};
        std::ranges::copy(n.args(), values.begin() + 2);
        const size_t count = 2 + n.args().size();
        for (size_t i = 0; i < n.args().size(); i++)
            if (wants(n, i)) give(n, i, parse(g, derivative_of(n.op, i), std::span(NAMES, count), std::span(values.data(), count)));
        return;
    }
    if (n.op == Op::custom_grad) return spread_custom(n, d);
    if (spread_movement(*this, n, d) || spread_fold(*this, n, d) || spread_product(*this, n, d) || spread_index(*this, n, d)) return;
    if (!n.args().empty() && wants(n, n.args().size() - 1)) give(n, n.args().size() - 1, d);   // tags, keep, surrogates
}

void Sweep::spread_custom(const Node& n, const NodeRef& d)
{
    const auto count = size_t(n.int_at(0));
    const NodeRef &dy = n.arg(1), stands_for = build::cast(g, d, dy->dtype);
    for (size_t i = 0; i < count; i++)
        if (wants(n, 2 + i)) give(n, 2 + i, instantiated(n.arg(2 + count + i), dy, stands_for));
}

// dx with d in the place of dy. What belongs to the value cannot contain dy, and is not walked again: a thousand layers
// with rules of their own cost what is theirs alone, where ng_subst would walk the whole network for each.
NodeRef Sweep::instantiated(const NodeRef& dx, const NodeRef& dy, const NodeRef& d)
{
    const bool stops = !at_.contains(dy.get());
    std::unordered_map<const Node*, NodeRef> now = {{dy.get(), d}};
    std::vector<std::pair<const Node*, size_t>> stack = {{dx.get(), 0}};
    // An inner rule with the same dy means its own.
    const auto is_free = [&](const Node& n, size_t operand) { return n.op != Op::custom_grad || n.arg(1) != dy || is_value(n, operand); };
    while (!stack.empty()) {
        auto& [n, next] = stack.back();
        const bool settled = now.contains(n) || n->args().empty() || (stops && at_.contains(n));
        if (settled) {
            now.emplace(n, NodeRef(n));
            stack.pop_back();
            continue;
        }
        if (next < n->args().size()) {
            const size_t operand = next++;
            const Node* a = n->arg(operand).get();
            if (is_free(*n, operand) && !now.contains(a)) stack.emplace_back(a, 0);
            continue;
        }
        std::vector<NodeRef> args(n->args().begin(), n->args().end());
        bool changed = false;
        for (size_t i = 0; i < args.size(); i++) {
            if (!is_free(*n, i)) continue;
            args[i] = now.at(args[i].get());
            changed = changed || args[i] != n->arg(i);
        }
        now.emplace(n, changed ? build::rebuild(g, *n, args) : NodeRef(n));
        stack.pop_back();
    }
    return now.at(dx.get());
}

void Sweep::refuse(const Node& n, const char* why) const
{
    const auto at = at_.find(&n);
    const Node* label = at == at_.end() ? nullptr : places_[at->second].label;
    throw Error(NG_E_UNSUPPORTED, text("ng_grad: ng_", name_of(n.op), " of ", describe(*n.arg(0)), label ? ", which \"" + label->extra->text + "\" uses" : "", ": ", why));
}

bool grad(Graph& g, std::span<const NodeRef> y, std::span<const NodeRef> dy, std::span<const NodeRef> wrt, std::vector<NodeRef>& dx)
{
    if (!dy.empty() && dy.size() != y.size()) throw Error(NG_E_INVALID, text("ng_grad: ", y.size(), " outputs and ", dy.size(), " seeds"));
    for (const auto& given : {y, dy, wrt})
        for (const NodeRef& n : given) check(n);
    std::vector<NodeRef> out, seeds;
    for (size_t i = 0; i < y.size(); i++) {
        out.push_back(build::strong(g, y[i]));
        if (!is_float(out[i]->dtype)) throw Error(NG_E_DTYPE, text("ng_grad: y[", i, "] is ", describe(*out[i]), ", should be floats"), int32_t(i));
        seeds.push_back(dy.empty() || !dy[i] ? NodeRef() : build::strong(g, dy[i]));
        if (seeds[i] && !same(seeds[i]->shape, out[i]->shape))
            throw Error(NG_E_SHAPE, text("ng_grad: dy[", i, "] is ", describe(*seeds[i]), ", y[", i, "] ", describe(*out[i]), ": they should have one shape"), int32_t(i));
    }
    for (size_t i = 0; i < wrt.size(); i++) {
        const Node& x = *wrt[i];
        if (!can_vary(x)) throw Error(NG_E_INVALID, text("ng_grad: wrt[", i, "] is ng_", name_of(x.op), ", ", describe(x), "; should be a leaf, a param or a tag"), int32_t(i));
        if (!is_float(x.dtype)) throw Error(NG_E_DTYPE, text("ng_grad: wrt[", i, "] is ", describe(x), ", should be floats"), int32_t(i));
    }
    Sweep sweep(g, out, wrt);
    for (size_t i = 0; i < out.size(); i++) sweep.seed(out[i], seeds[i]);
    sweep.run();
    bool missing = false;
    std::vector<NodeRef> result;
    for (size_t i = 0; i < wrt.size(); i++) {
        const NodeRef total = sweep.total(i);
        missing = missing || !total;
        result.push_back(total ? build::cast(g, total, wrt[i]->dtype) : filled(g, wrt[i]->dtype, 0, wrt[i]->dims()));
    }
    dx = std::move(result);
    return missing;
}

}  // namespace ng
