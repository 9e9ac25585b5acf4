// Drafts become steps: their order, and who may write over an argument that others still read.
#include "jit/scheduler.h"
#include "jit/step_uses.h"
#include "jit/turning.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>

namespace ng {
namespace {

bool contains(std::span<const int32_t> all, int32_t one) { return std::ranges::find(all, one) != all.end(); }

// A kernel that reads only the very elements that it writes, each before it is written.
bool reads_what_it_writes(Step& s, int32_t out, std::span<const int32_t> sources)
{
    Kernel& k = *s.kernel;
    StoreTo* store = nullptr;
    for (StoreTo& t : k.stores) {
        if (s.buffers[size_t(t.buffer)] != out) continue;
        if (store) return false;
        store = &t;
    }
    for (const Value& v : k.values) {
        if (v.buffer < 0 || !contains(sources, s.buffers[size_t(v.buffer)])) continue;
        if (v.kind != ValueKind::Load || !(k.accesses[size_t(v.access)] == k.accesses[size_t(store->access)])) return false;
    }
    store->late = true;
    return true;
}

// The axes of a kernel in the order of those of a product that it reads; none where they are others. Of kernels that fold nothing
// they may have changed places.
std::optional<std::vector<int32_t>> axes_as(const View& product, const Step& s)
{
    const Kernel& k = *s.kernel;
    std::vector<int32_t> axes;
    const auto load = std::ranges::find_if(k.values, [&](const Value& v) { return v.kind == ValueKind::Load && s.buffers[size_t(v.buffer)] == product.buffer; });
    if (load == k.values.end()) return std::nullopt;
    const Extents& strides = k.accesses[size_t(load->access)].strides;
    for (size_t a = 0; a < product.dims.size(); a++) {
        if (product.dims[a].is(1)) continue;
        size_t at = 0;
        while (at < k.axes.size() && !(k.axes[at].extent == product.dims[a] && strides[at] == product.strides[a] && std::ranges::find(axes, int32_t(at)) == axes.end())) at++;
        if (at == k.axes.size()) return std::nullopt;
        axes.push_back(int32_t(at));
    }
    if (axes.size() != k.axes.size() || (!std::ranges::is_sorted(axes) && std::ranges::any_of(k.axes, &KernelAxis::reduced))) return std::nullopt;
    return axes;
}

}  // namespace

void Scheduler::finish_steps(Plan& plan)
{
    for (Draft& d : drafts_) {
        Step s;
        s.after.assign(d.after.begin(), d.after.end());
        s.finishes = d.finishes, s.in_place = d.in_place;
        if (d.kernel) {
            s.kernel = std::make_shared<Kernel>(d.kernel->finish(s.buffers));
            s.name = s.kernel->name;
        } else {
            s.in = std::move(d.in), s.out = std::move(d.out);
            if (d.node != ~0u) s.node = NodeRef(&graph_[d.node]), s.name = name_of(s.node->op);
        }
        plan.steps.push_back(std::move(s));
    }
}

// Of what steps read, all that the output may share memory with.
std::vector<int32_t> Scheduler::alias_buffers(size_t j) const
{
    std::vector<int32_t> out = {stores_.param_buffer(targets_[j].alias_param)};
    for (const void* tensor : targets_[j].alias_leaves) out.push_back(stores_.leaf_buffer(tensor));
    std::erase(out, -1);
    return out;
}

// Whoever reads the aliased memory comes before whoever writes the output, or reads and writes point by point.
bool Scheduler::guard_one(Plan& plan, const BufferUses& uses, size_t j, std::vector<Edge>& edges)
{
    const std::vector<int32_t> sources = alias_buffers(j);
    const int32_t out = outs_[j].buffer;
    const std::vector<int32_t>& writers = uses.writers[size_t(out)];
    for (const int32_t source : sources) {
        for (const int32_t i : uses.readers[size_t(source)]) {
            Step& s = plan.steps[size_t(i)];
            if (!contains(writers, i)) {
                for (const int32_t w : writers) edges.push_back({w, i});
            } else if (s.kernel) {
                if (!reads_what_it_writes(s, out, sources)) return false;
            } else if (!s.node || s.node->op != Op::put || contains(sources, s.in[1].buffer) || contains(sources, s.in[2].buffer)) {
                return false;
            }
        }
    }
    return true;
}

bool Scheduler::guard_aliases(Plan& plan, std::vector<bool>& denied)
{
    plan.direct = direct_;
    if (std::ranges::none_of(direct_, std::identity())) return true;
    struct Guarded { size_t output, end; };                        // of its own edges
    const BufferUses uses(plan);
    std::vector<Edge> edges;
    std::vector<Guarded> guarded;
    std::vector<size_t> refused;
    for (size_t j = 0; j < targets_.size(); j++) {
        if (!direct_[j]) continue;
        const Port& out = plan.outs[j];
        const auto a = std::ranges::lower_bound(plan.args, targets_[j].alias_param, {}, &Port::index);
        const bool is_arg = a != plan.args.end() && a->index == targets_[j].alias_param;
        const bool fits = !is_arg || (a->dtype == out.dtype && a->dims == out.dims && a->strides == out.strides && !a->any);   // the argument's very layout
        const size_t begin = edges.size();
        if (fits && guard_one(plan, uses, j, edges)) guarded.push_back({j, edges.size()});
        else edges.resize(begin), refused.push_back(j);
    }
    std::vector<int32_t> sequence;
    // Without those that are refused already the plan may be another, and circles fewer.
    if (refused.empty() && !order(plan, edges, sequence)) {
        Precedence kept = precedence(plan, std::move(sequence));
        size_t begin = 0;
        for (const Guarded& g : guarded) {
            if (!kept.add(std::span(edges).subspan(begin, g.end - begin))) refused.push_back(g.output);    // whose edges close a circle
            begin = g.end;
        }
    }
    for (const size_t j : refused) denied[j] = true;
    if (!refused.empty()) return false;
    for (const auto& [step, after] : edges) plan.steps[size_t(step)].after.push_back(after);
    return true;
}

// The plan's own edges, and nothing else yet. One step more stands between those that finish and all others.
Precedence Scheduler::precedence(const Plan& plan, std::vector<int32_t> sequence) const
{
    const auto count = int32_t(plan.steps.size());
    std::vector<Edge> edges;
    for (int32_t i = 0; i < count; i++) {
        const Step& s = plan.steps[size_t(i)];
        for (const int32_t a : s.after) edges.push_back({i, a});
        edges.push_back(s.finishes ? Edge{i, count} : Edge{count, i});
    }
    sequence.insert(std::ranges::find_if(sequence, [&](int32_t i) { return plan.steps[size_t(i)].finishes; }), count);
    Precedence p(sequence);
    if (!p.add(edges)) throw Error(NG_E_BUG, "the steps of a schedule wait for each other");
    return p;
}

// Steps in an order that keeps every edge, the first made first, those that finish behind all others; false where the edges form a circle,
// whose first step goes before what it waits for.
bool Scheduler::order(const Plan& plan, std::span<const Edge> more, std::vector<int32_t>& sequence) const
{
    const size_t count = plan.steps.size();
    sequence.clear();
    std::vector<std::vector<int32_t>> next(count);
    std::vector<int32_t> waits(count, 0), last;
    const auto add = [&](int32_t step, int32_t after) { next[size_t(after)].push_back(step), waits[size_t(step)]++; };
    for (size_t i = 0; i < count; i++) {
        for (const int32_t a : plan.steps[i].after) add(int32_t(i), a);
        if (plan.steps[i].finishes) last.push_back(int32_t(i)), waits[i]++;
    }
    for (const auto& [step, after] : more) add(step, after);
    size_t open = count - last.size();
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    const auto release = [&](std::span<const int32_t> steps) {
        for (const int32_t n : steps)
            if (--waits[size_t(n)] == 0) ready.push(n);
    };
    for (size_t i = 0; i < count; i++)
        if (!waits[i]) ready.push(int32_t(i));
    if (open == 0) release(last);
    bool is_order = true;
    constexpr int32_t PLACED = INT32_MIN / 2;
    for (int32_t least = 0; sequence.size() < count;) {
        if (ready.empty()) {
            while (waits[size_t(least)] <= 0) least++;
            waits[size_t(least)] = 0, is_order = false, ready.push(least);
        }
        const int32_t i = ready.top();
        ready.pop();
        waits[size_t(i)] = PLACED;
        sequence.push_back(i);
        release(next[size_t(i)]);
        if (!plan.steps[size_t(i)].finishes && --open == 0) release(last);
    }
    return is_order;
}

// The product's axes in step i, where that may run on parts of the product before it while that goes on, all of it or up to its folds:
// it alone reads the product, element for element, and writes nothing that the product reads.
std::optional<std::vector<int32_t>> Scheduler::epilogue_axes(const Plan& plan, size_t i) const
{
    if (i == 0) return std::nullopt;
    const Step &s = plan.steps[i], &product = plan.steps[i - 1];
    if (!s.kernel || !product.node || (product.node->op != Op::matmul && product.node->op != Op::conv)) return std::nullopt;
    const int32_t b = product.out.buffer;
    if (plan.buffers[size_t(b)].place != Place::Work || plan.buffers[size_t(b)].last != int32_t(i)) return std::nullopt;
    const Kernel& k = *s.kernel;
    auto axes = axes_as(product.out, s);
    if (!axes) return std::nullopt;
    Access whole{product.out.offset, Extents(axes->size(), Extent(0))};
    for (size_t a = 0, at = 0; a < product.out.dims.size(); a++)
        if (!product.out.dims[a].is(1)) whole.strides[size_t((*axes)[at++])] = product.out.strides[a];
    for (const Value& v : k.values) {
        if (v.buffer < 0 || s.buffers[size_t(v.buffer)] != b) continue;
        if (v.kind != ValueKind::Load || !(k.accesses[size_t(v.access)] == whole)) return std::nullopt;
    }
    std::set<int32_t> read;
    for (const View& v : product.in) read.insert(v.buffer);
    for (const StoreTo& t : k.stores) {
        const Buffer& out = plan.buffers[size_t(s.buffers[size_t(t.buffer)])];
        if (out.place == Place::Out)
            for (const int32_t alias : alias_buffers(size_t(out.index)))
                if (read.contains(alias)) return std::nullopt;
    }
    return axes;
}

void Scheduler::arrange(Plan& plan)
{
    std::vector<int32_t> sequence;
    if (!order(plan, {}, sequence)) throw Error(NG_E_BUG, "the steps of a schedule wait for each other");
    std::vector<Step> steps;
    for (const int32_t i : sequence) {
        Step& s = plan.steps[size_t(i)];
        if (s.kernel && s.kernel->stores.empty()) continue;
        s.after.clear();
        steps.push_back(std::move(s));
    }
    plan.steps = std::move(steps);
    cut_operands(plan);
    if (turned_bytes_ != NEVER_TURNED) turn_operands(plan, turned_bytes_);
    const auto count_lives = [&] {
        for (Buffer& b : plan.buffers) b.first = b.last = -1;
        for (size_t i = 0; i < plan.steps.size(); i++) {
            const auto use = [&](int32_t b) {
                Buffer& buffer = plan.buffers[size_t(b)];
                // An epilogue runs with its product: what one reads and the other writes must not share memory.
                const auto at = int32_t(plan.steps[i].runs_with_product() ? i - 1 : i);
                if (buffer.first < 0) buffer.first = at;
                buffer.last = std::max(buffer.last, int32_t(i));
            };
            each_read(plan.steps[i], use);
            each_write(plan.steps[i], use);
            // What gives an operand may read when the product does.
            const int32_t product = plan.steps[i].feeds;
            if (product >= 0) each_read(plan.steps[i], [&](int32_t b) { plan.buffers[size_t(b)].last = std::max(plan.buffers[size_t(b)].last, end_of_product(plan, product)); });
        }
    };
    count_lives();
    for (size_t i = 0; i < plan.steps.size(); i++) {
        Step& s = plan.steps[i];
        auto axes = epilogue_axes(plan, i);
        if (!axes) continue;
        if (!std::ranges::is_sorted(*axes)) s.turned = std::move(*axes);
        else (std::ranges::any_of(s.kernel->axes, &KernelAxis::reduced) ? s.folds : s.epilogue) = true;
    }
    mark_feeding(plan);
    count_lives();
}

Plan schedule(std::span<const NodeRef> roots, std::span<const Target> targets, int32_t lengths, Fusion fusion, const Snapshot* known, int64_t turned_bytes)
{
    Graph g(roots.size() * 4 + 64);
    std::vector<NodeRef> tops;
    for (size_t j = 0; j < roots.size(); j++) tops.push_back(build::broadcast(g, roots[j], targets[j].layout.dims));
    std::optional<Snapshot> made;
    if (!known || !std::ranges::equal(tops, roots)) known = &made.emplace(tops);
    std::vector<bool> denied(roots.size(), false);
    Plan plan;
    while (!Scheduler(*known, targets, lengths, fusion, turned_bytes, denied).run(plan, denied)) {}
    return plan;
}

}  // namespace ng
