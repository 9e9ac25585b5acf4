// Which kernel a value joins, and how what a step reads gets into memory.
#include "jit/scheduler.h"

#include <algorithm>

namespace ng {
namespace {
constexpr int CANDIDATES = 8;        // kernels that a value may try to join, youngest first
constexpr size_t OPEN = 64;          // of the youngest drafts: the others are joined no more
constexpr size_t MAX_STEPS_DEEP = 4096;
}  // namespace

void Scheduler::depend(int32_t draft, int32_t on)
{
    Draft& d = drafts_[size_t(draft)];
    if (on == draft || !d.after.insert(on).second) return;
    drafts_[size_t(on)].dependents++;
    d.level = std::max(d.level, drafts_[size_t(on)].level + 1);
}

// What the draft reads newly becomes a dependency; values owned by other kernels are stored there now.
void Scheduler::commit(int32_t draft)
{
    Draft& d = drafts_[size_t(draft)];
    const std::vector<uint32_t>& loaded = d.kernel->loaded();
    for (; d.committed < loaded.size(); d.committed++) {
        const uint32_t node = loaded[d.committed];
        if (stores_.claim_store(node)) {
            Draft& owner = drafts_[size_t(stores_.owner(node))];
            owner.kernel->store(owner.kernel->task_of(node), *stores_.stored(node));
        }
        for (const int32_t s : stores_.producers(node)) depend(draft, s);
    }
}

// Levels rise along every edge. A kernel that others wait for keeps its level; so it may read only from below it.
bool Scheduler::may_read(int32_t draft, std::span<const uint32_t> nodes)
{
    const Draft& d = drafts_[size_t(draft)];
    for (const uint32_t node : nodes)
        for (const int32_t s : stores_.producers(node))
            if (s == draft || (d.dependents > 0 && drafts_[size_t(s)].level >= d.level)) return false;
    return true;
}

bool Scheduler::may_join(const Draft& d, uint32_t node, bool copy) const
{
    if (!d.kernel || fusion_ == Fusion::None) return false;
    Extent all = 1, kept = 1;
    for (const KernelAxis& a : d.kernel->axes()) {
        all = all * a.extent;
        if (!a.reduced) kept = kept * a.extent;
    }
    const bool fold = is_fold(graph_[node].op) && !copy;
    const Extent mine = product(fold ? graph_[node].arg(0)->dims() : graph_[node].dims());
    return mine == all || (!fold && d.kernel->has_folds() && mine == kept);
}

bool Scheduler::join(int32_t draft, uint32_t node, bool copy, Placed& placed)
{
    Draft& d = drafts_[size_t(draft)];
    Refusal why;
    const auto allowed = [&](std::span<const uint32_t> loaded) { return may_read(draft, loaded); };
    const int32_t task = d.kernel->add(node, copy, why, allowed);
    if (task < 0) return false;
    placed = {draft, task};
    return true;
}

// One attempt; where something must be stored first, says what.
bool Scheduler::try_place(uint32_t node, bool copy, Placed& placed, uint32_t& missing)
{
    int tried = 0;
    for (auto d = int32_t(drafts_.size()); d-- > 0 && tried < CANDIDATES && drafts_.size() - size_t(d) < OPEN;) {
        if (!may_join(drafts_[size_t(d)], node, copy)) continue;
        tried++;
        if (join(d, node, copy, placed)) return commit(d), true;
    }
    auto kernel = std::make_unique<KernelBuilder>(graph_, stores_);
    Refusal why;
    const int32_t task = kernel->add(node, copy, why, [](std::span<const uint32_t>) { return true; });
    if (task < 0) {
        const bool again = uint32_t(why.store) == node && (copy || graph_[node].op != Op::reshape);
        if (why.store < 0 || again)
            throw Error(NG_E_BUG, text("ng_", name_of(graph_[node].op), ": no kernel computes ", describe(graph_[node])));
        missing = uint32_t(why.store);
        return false;
    }
    drafts_.emplace_back();
    drafts_.back().kernel = std::move(kernel);
    if (drafts_.size() >= OPEN && drafts_[drafts_.size() - OPEN].kernel) drafts_[drafts_.size() - OPEN].kernel->close();
    placed = {int32_t(drafts_.size()) - 1, task};
    commit(placed.draft);
    return true;
}

Scheduler::Placed Scheduler::place(uint32_t node, bool copy)
{
    if (!copy && stores_.owner(node) >= 0) {
        const int32_t d = stores_.owner(node);
        return {d, drafts_[size_t(d)].kernel->task_of(node)};
    }
    // What only shows memory has no kernel of its own: who reads it waits for who writes there.
    const auto shows_memory = [&] {
        const uint32_t bottom = stores_.bottom(node);
        const bool there = stores_.is_assigned(bottom) || graph_[bottom].op == Op::param || graph_[bottom].op == Op::leaf;
        return is_movement(graph_[node].op) && there && stores_.viewed(node);
    };
    copy = copy || shows_memory();
    Placed placed;
    for (uint32_t missing = 0; !try_place(node, copy, placed, missing);) {
        require(missing);
        copy = copy || shows_memory();
    }
    if (!copy) stores_.own(node, placed.draft);
    return placed;
}

// What only repeats or turns its operand is a view once that is stored. A reshape is computed in its operand's shape:
// row-major order is the same.
bool Scheduler::try_materialise(uint32_t node, uint32_t& missing)
{
    Placed placed;
    while (graph_[node].op == Op::broadcast || graph_[node].op == Op::permute || is_mark(graph_[node].op)) {
        node = graph_.arg(node, 0);
        if (stores_.viewed(node)) return true;
    }
    if (graph_[node].op == Op::reshape) {
        const uint32_t x = graph_.arg(node, 0);
        const bool there = stores_.owner(x) < 0 && stores_.stored(x);
        if (!there && stores_.owner(x) >= 0) placed = place(x, false);
        else if (!try_place(x, there, placed, missing)) return false;
        if (!there) stores_.own(x, placed.draft);
        View to = stores_.dense(node);
        const View whole = to;
        to.dims = graph_[x].dims(), to.strides = dense_strides(to.dims);
        drafts_[size_t(placed.draft)].kernel->store(placed.task, to);
        stores_.assign(node, whole, placed.draft);
        return true;
    }
    if (!try_place(node, false, placed, missing)) return false;
    stores_.own(node, placed.draft);
    return true;
}

void Scheduler::require(uint32_t node)
{
    std::vector<uint32_t> todo = {node};
    while (!todo.empty()) {
        uint32_t missing = 0;
        if (stores_.viewed(todo.back()) || try_materialise(todo.back(), missing)) {
            todo.pop_back();
            continue;
        }
        if (todo.size() > MAX_STEPS_DEEP) throw Error(NG_E_LIMIT, "more than 4096 reshapes wait for each other");
        todo.push_back(missing);
    }
}

void Scheduler::write(uint32_t node, const View& to)
{
    const uint32_t bottom = stores_.bottom(node);
    const bool there = stores_.owner(node) < 0 && (stores_.is_assigned(bottom) || graph_[bottom].op == Op::param || graph_[bottom].op == Op::leaf) &&
                       (node == bottom || stores_.viewed(node));
    const Placed p = place(node, there);
    drafts_[size_t(p.draft)].kernel->store(p.task, to);
}

// The node as a step reads it: a view of memory, and whoever writes that comes before.
View Scheduler::operand(int32_t draft, uint32_t node)
{
    require(node);
    const View v = *stores_.viewed(node);
    const uint32_t bottom = stores_.bottom(node);
    if (stores_.claim_store(bottom)) {
        Draft& owner = drafts_[size_t(stores_.owner(bottom))];
        owner.kernel->store(owner.kernel->task_of(bottom), *stores_.stored(bottom));
    }
    for (const int32_t s : stores_.producers(bottom)) depend(draft, s);
    return v;
}

}  // namespace ng
