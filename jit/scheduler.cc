// From a graph to drafts of steps: ports and checks first, then every node that needs a step, operands before users.
#include "jit/scheduler.h"

#include <algorithm>
#include <map>

namespace ng {

Scheduler::Scheduler(const Snapshot& graph, std::span<const Target> targets, int32_t lengths, Fusion fusion, int64_t turned_bytes, const std::vector<bool>& denied)
    : graph_(graph), targets_(targets), fusion_(fusion), turned_bytes_(turned_bytes), direct_(targets.size(), false), stores_(graph_, plan_), is_task_(graph_.size(), false)
{
    plan_.lengths = lengths;
    for (size_t j = 0; j < targets.size(); j++)
        direct_[j] = !denied[j] && !targets[j].overlaps && (targets[j].alias_param >= 0 || !targets[j].alias_leaves.empty());
}

bool Scheduler::run(Plan& plan, std::vector<bool>& denied)
{
    collect_ports();
    collect_checks();
    mark_tasks();
    aim_outputs();
    for (uint32_t i = 0; i < graph_.size(); i++) visit(i);
    for (size_t j = 0; j < targets_.size(); j++) emit_output(j);
    finish_steps(plan_);
    if (!guard_aliases(plan_, denied)) return false;
    arrange(plan_);
    plan = std::move(plan_);
    return true;
}

// ---- what the plan says of its surroundings ------------------------------------------------------

void Scheduler::collect_ports()
{
    const auto described = [](const Node& param) { return text(describe(param), param.int_at(0) ? " of any strides" : " of strides " + text_of(param.extra->extents)); };
    std::map<int64_t, const Node*> params;
    for (uint32_t i = 0; i < graph_.size(); i++) {
        if (graph_.ops[i] != Op::scalar && graph_.ops[i] != Op::tag && graph_.ops[i] != Op::param) continue;
        const Node& n = graph_[i];
        if (n.op == Op::scalar) plan_.scalar_bytes = std::max(plan_.scalar_bytes, uint32_t(n.value) + uint32_t(bytes_of(n.dtype)));
        if (n.op == Op::tag && n.arg(0)->op == Op::param) params.try_emplace(n.arg(0)->value, n.arg(0).get());
        if (n.op != Op::param) continue;
        const auto [at, fresh] = params.try_emplace(n.value, &n);
        if (!fresh && (at->second->dtype != n.dtype || !same(at->second->shape, n.shape) || at->second->extra->extents != n.extra->extents))
            throw Error(NG_E_INVALID, text("ng_compile: ng_param ", n.value, " is both ", described(*at->second), " and ", described(n)), int32_t(n.value));
    }
    const auto port = [&](int32_t index, Dtype t, const Extents& dims, const Extents& strides, bool any) {
        Port p{index, t, dims, strides, any, !any && strides == dense_strides(dims), any, ""};
        for (const Extent& s : strides) p.hidden = p.hidden || (p.row_major && !s.is_constant());
        // In their order elements lie as the lengths behind an axis say, where those are known: whole tensors are longer along others alone.
        for (Extent& s : p.strides)
            if (const Extent when_run = p.hidden ? Extent::variable(plan_.lengths + plan_.hidden++) : s; any || !s.is_constant()) s = when_run;
        return p;
    };
    for (const auto& [index, n] : params)
        plan_.args.push_back(port(int32_t(index), n->dtype, n->dims(), n->extra->extents, n->int_at(0)));
    for (uint32_t i = 0; i < graph_.size(); i++)
        if (graph_.ops[i] == Op::tag && graph_[i].arg(0)->op == Op::param)
            for (Port& p : plan_.args)
                if (p.index == graph_[i].arg(0)->value) p.name = graph_[i].extra->text;
    for (size_t j = 0; j < targets_.size(); j++) {
        const Node& root = graph_[graph_.roots[j]];
        const Layout& l = targets_[j].layout;
        plan_.outs.push_back(port(int32_t(j), root.dtype, root.dims(), l.strides, l.any));
        const Node& named = root.op == Op::keep ? *root.arg(0) : root;       // a part of what is tagged is not it
        if (named.op == Op::tag) plan_.outs.back().name = named.extra->text;
        Buffer b{Place::Out};
        b.index = int32_t(j), b.dtype = root.dtype;
        outs_.push_back({stores_.add_buffer(b), root.dtype, 0, root.dims(), plan_.outs.back().strides});
    }
}

std::vector<int64_t> dense_variables(const Plan& plan, std::span<const int64_t> lengths)
{
    std::vector<int64_t> all(lengths.begin(), lengths.end());
    for (const auto* ports : {&plan.args, &plan.outs})
        for (const Port& p : *ports)
            if (p.hidden)
                for (const Extent& stride : dense_strides(p.dims)) all.push_back(stride.value(lengths));
    return all;
}

// Along each axis there is a place for a window, as build::conv and build::pool want of lengths that they know.
void Scheduler::check_windows(const Node& n)
{
    const bool  is_pool = n.op == Op::pool || n.op == Op::pool_dx, is_forward = n.op == Op::conv || n.op == Op::pool;
    const Node& places = is_forward ? n : *n.arg(1);
    for (size_t a = is_pool ? 1 : 2; a < places.dims().size(); a++)
        if (!places.dims()[a].is_constant())
            plan_.checks.push_back({1, places.dims()[a], INT64_MAX, text("ng_", name_of(n.op), " of ", describe(*n.arg(0)), ": no window fits axis ", a, ", which would have ", places.dims()[a].text(), " places")});
}

void Scheduler::collect_checks()
{
    std::vector<Check> of_axes;                          // last: others say more
    for (uint32_t i = 0; i < graph_.size(); i++) {
        if (is_map(graph_.ops[i])) continue;
        const Node& n = graph_[i];
        for (const Extent& extent : n.dims())
            if (extent.may_be_negative() && std::ranges::find(of_axes, extent, &Check::value) == of_axes.end())
                of_axes.push_back({0, extent, INT64_MAX, text(describe(n), ": an axis would have ", extent.text(), " elements, and that is negative")});
        if (n.op == Op::slice) {
            const auto a = size_t(n.value);
            const Extent &have = n.arg(0)->dims()[a], &start = n.extra->extents[0], &count = n.dims()[a];
            if (have.is_constant() && start.is_constant() && count.is_constant()) continue;
            const bool  is_window = n.arg(0)->op == Op::iota && start.is(0);   // where ng_window looks
            const std::string sentence = text(is_window ? "ng_window or ng_slice" : "ng_slice", " of axis ", a, " of ", describe(*n.arg(0)), ": the slice ", start.text(), " .. ",
                                              (start + (count - Extent(1)) * Extent(n.int_at(0))).text(), " is not inside");
            plan_.checks.push_back({0, count, INT64_MAX, sentence});
            const Extent last = start + (count - Extent(1)) * Extent(n.int_at(0));
            const bool forward = n.int_at(0) > 0;                  // an empty slice's last lies one step before its first, which may be outside
            plan_.checks.push_back({0, forward ? start : last, INT64_MAX, sentence});
            plan_.checks.push_back({forward ? INT64_MIN : -1, forward ? last : start, have - Extent(1), sentence});
        } else if (n.op == Op::view) {
            const Extents& e = n.extra->extents;
            Extent reach = e.back();
            bool known = product(n.arg(0)->dims()).is_constant(), down = false;
            for (size_t a = 0; a + 1 < e.size(); a++) {
                known = known && e[a].is_constant() && n.dims()[a].is_constant();
                down = down || (e[a].is_constant() && e[a].constant() < 0);
                reach = reach + (n.dims()[a] - Extent(1)) * e[a];
            }
            if (known) continue;
            if (down) throw Error(NG_E_UNSUPPORTED, text("ng_view: negative strides over ", describe(*n.arg(0)), ", whose length is known when run only"));
            plan_.checks.push_back({INT64_MIN, reach, product(n.arg(0)->dims()) - Extent(1), text("ng_view of ", describe(*n.arg(0)), ": elements outside are seen")});
        } else if (n.op == Op::conv || n.op == Op::conv_dx || n.op == Op::conv_dw || n.op == Op::pool || n.op == Op::pool_dx) {
            check_windows(n);
        } else if (n.op == Op::min || n.op == Op::max || n.op == Op::argmin || n.op == Op::argmax) {
            for (int a = 0; a < n.rank(); a++)
                if (n.value >> a & 1 && !n.extra && !n.arg(0)->dims()[size_t(a)].is_constant())
                    plan_.checks.push_back({1, n.arg(0)->dims()[size_t(a)], INT64_MAX, text("ng_", name_of(n.op), ": ", describe(*n.arg(0)), " has no element to choose from")});
        }
    }
    plan_.checks.insert(plan_.checks.end(), of_axes.begin(), of_axes.end());
}

// A node used more than once that costs something to compute again is a task: computed in one kernel, stored if another
// asks. So is what ends a thousand operations without one: kernels stay small. Costs are in cheap operations.
void Scheduler::mark_tasks()
{
    constexpr uint32_t AGAIN = 4, MATH = 4, DRAW = 20, TAKE = 3, LONG = 1024;
    std::vector<uint32_t> cost(graph_.size(), 0), length(graph_.size(), 0);
    for (uint32_t i = 0; i < graph_.size(); i++) {
        const Op op = graph_.ops[i];
        if (is_fold(op)) {
            is_task_[i] = true;
            continue;
        }
        if (is_call(op) || op == Op::concat) continue;
        uint64_t c = is_map(op) ? (info(op).ulp > 0 ? MATH : 1) : op == Op::random || op == Op::cast_stochastic ? DRAW : op == Op::take ? TAKE : 0;
        uint64_t operations = is_map(op);
        for (const uint32_t a : graph_.args(i)) c += cost[a], operations += length[a];
        length[i] = uint32_t(std::min<uint64_t>(operations, 1 << 20));
        cost[i] = uint32_t(std::min<uint64_t>(c, 1 << 20));
        const bool computes = is_map(op) || op == Op::cast || op == Op::cast_stochastic || op == Op::random || op == Op::take;
        const bool shared = (computes && graph_.uses[i] > 1 && c >= AGAIN) || (op == Op::keep && c > 0);
        const bool worth_it = fusion_ == Fusion::None ? computes : fusion_ == Fusion::Usual && shared;
        if (worth_it || (is_map(op) && operations >= LONG)) is_task_[i] = true, cost[i] = length[i] = 0;
    }
    stores_.count_operations(std::move(length));
}

// ---- where results go ------------------------------------------------------------------------------

uint32_t Scheduler::under_marks(uint32_t node) const
{
    while (is_mark(graph_[node].op) && !stores_.is_assigned(node)) node = graph_.arg(node, 0);
    return node;
}

// Follows a place down through what only rearranges, to the call that can write there itself.
void Scheduler::aim(uint32_t node, View view)
{
    for (;;) {
        const Node& n = graph_[node];
        if (graph_.uses[node] != 1) return;
        if (is_call(n.op) || n.op == Op::concat) {
            aimed_.emplace(node, std::move(view));
            return;
        }
        const bool rearranges = is_mark(n.op) || n.op == Op::permute || n.op == Op::reshape;
        if (!rearranges) return;
        if (n.op == Op::permute) {
            View down{view.buffer, view.dtype, view.offset, n.arg(0)->dims(), Extents(n.arg(0)->dims().size(), Extent(0))};
            for (size_t i = 0; i < view.dims.size(); i++)
                if (const int64_t a = n.int_at(i); a >= 0) down.strides[size_t(a)] = view.strides[i];
            view = std::move(down);
        } else if (n.op == Op::reshape) {
            std::optional<View> down = reshaped(n.arg(0)->dims(), view);
            if (!down) return;
            view = std::move(*down);
        }
        node = graph_.arg(node, 0);
    }
}

void Scheduler::aim_outputs()
{
    for (size_t j = 0; j < targets_.size(); j++) {
        const bool aliases = targets_[j].overlaps || targets_[j].alias_param >= 0 || !targets_[j].alias_leaves.empty();
        if (!aliases || direct_[j]) aim(graph_.roots[j], outs_[j]);
    }
    // A chain of puts is one buffer: each gives its place to the one below it. From the last to the first.
    for (uint32_t i = graph_.size(); i-- > 0;) {
        if (graph_.ops[i] != Op::put) continue;
        if (!aimed_.contains(i)) aimed_.emplace(i, stores_.dense(i));
        aim(graph_.arg(i, 0), aimed_.at(i));
    }
}

// ---- nodes that are steps --------------------------------------------------------------------------

void Scheduler::visit(uint32_t node)
{
    const Op op = graph_.ops[node];
    if (op == Op::concat) return emit_concat(node);
    if (op == Op::put) return emit_put(node);
    if (is_call(op)) return emit_call(node);
    if (is_task_[node] && stores_.owner(node) < 0 && !stores_.is_assigned(node)) place(node, false);
}

void Scheduler::emit_concat(uint32_t node)
{
    const Node& n = graph_[node];
    const auto axis = size_t(n.value);
    const auto aimed = aimed_.find(node);
    const View whole = aimed != aimed_.end() ? aimed->second : stores_.dense(node);
    std::vector<int32_t> writers;
    Extent start = 0;
    for (const uint32_t part : graph_.args(node)) {
        View to = whole;
        to.dims = graph_[part].dims();
        to.offset = whole.offset + whole.strides[axis] * start;
        start = start + to.dims[axis];
        const bool there = stores_.owner(part) < 0 && (stores_.is_assigned(part) || graph_[part].op == Op::param || graph_[part].op == Op::leaf);
        const Placed p = place(part, there);
        drafts_[size_t(p.draft)].kernel->store(p.task, to);
        writers.push_back(p.draft);
    }
    stores_.assign(node, whole, -1);
    for (const int32_t w : writers) stores_.add_producer(node, w);
}

void Scheduler::emit_put(uint32_t node)
{
    const View to = aimed_.at(node);
    const uint32_t x = under_marks(graph_.arg(node, 0));
    std::vector<int32_t> before;
    bool in_place = false;
    const uint32_t bottom = stores_.bottom(x);
    const auto below = aimed_.find(bottom);
    if (below != aimed_.end() && below->second.buffer == to.buffer) {
        before = stores_.producers(bottom);
        in_place = true;                                           // x was written where this goes
    } else {
        const Buffer b = plan_.buffers[size_t(to.buffer)];         // a copy: what follows may add buffers
        if (b.place == Place::Out && direct_[size_t(b.index)] && (graph_[x].op == Op::param || graph_[x].op == Op::leaf)) {
            const View from = stores_.source(x);
            const Target& t = targets_[size_t(b.index)];
            const bool same_thing = graph_[x].op == Op::param ? t.alias_param == graph_[x].value
                                                              : std::ranges::find(t.alias_leaves, leaf_tensor(graph_[x]).get()) != t.alias_leaves.end();
            in_place = same_thing && from.strides == to.strides && from.dims == to.dims && from.offset == to.offset;
        }
        if (!in_place) {
            const bool there = stores_.owner(x) < 0 && stores_.stored(x);
            const Placed p = place(x, there);
            drafts_[size_t(p.draft)].kernel->store(p.task, to);
            before.push_back(p.draft);
        }
    }
    drafts_.emplace_back();
    const auto d = int32_t(drafts_.size()) - 1;
    drafts_.back().node = node;
    const View indices = operand(d, graph_.arg(node, 1)), y = operand(d, graph_.arg(node, 2));
    Draft& draft = drafts_[size_t(d)];
    draft.in = {in_place && before.empty() ? stores_.source(x) : to, indices, y};
    draft.out = to, draft.in_place = true;
    for (const int32_t b : before) depend(d, b);
    stores_.assign(node, to, d);
}

void Scheduler::emit_call(uint32_t node)
{
    std::vector<uint32_t> args(graph_.args(node).begin(), graph_.args(node).end());
    for (const uint32_t a : args) require(a);
    drafts_.emplace_back();
    const auto d = int32_t(drafts_.size()) - 1;
    drafts_.back().node = node;
    std::vector<View> in;
    for (const uint32_t a : args) in.push_back(operand(d, a));
    const auto aimed = aimed_.find(node);
    drafts_[size_t(d)].in = std::move(in);
    drafts_[size_t(d)].out = aimed != aimed_.end() ? aimed->second : stores_.dense(node);
    stores_.assign(node, drafts_[size_t(d)].out, d);
}

// The root's elements go to the output, unless a call wrote them there already; where it may not be written before all
// else is read, through a temporary and a last copy.
void Scheduler::emit_output(size_t j)
{
    const uint32_t root = graph_.roots[j];
    const View& out = outs_[j];
    const Target& t = targets_[j];
    const bool aliases = t.overlaps || t.alias_param >= 0 || !t.alias_leaves.empty();
    const uint32_t bottom = stores_.bottom(root);
    if (const auto aimed = aimed_.find(bottom); aimed != aimed_.end() && aimed->second.buffer == out.buffer) return;
    if (!aliases || direct_[j]) return write(root, out);
    Draft last;
    last.finishes = true, last.out = out;
    const Op op = graph_[bottom].op;
    if (op != Op::param && op != Op::leaf && stores_.viewed(root)) {
        drafts_.push_back(std::move(last));
        const auto d = int32_t(drafts_.size()) - 1;
        const View from = operand(d, root);
        drafts_[size_t(d)].in = {from};
        return;
    }
    Buffer b{Place::Work};
    b.dtype = out.dtype, b.count = product(out.dims);
    const View temporary{stores_.add_buffer(b), out.dtype, 0, out.dims, dense_strides(out.dims)};
    write(root, temporary);
    last.in = {temporary};
    drafts_.push_back(std::move(last));
}

}  // namespace ng
