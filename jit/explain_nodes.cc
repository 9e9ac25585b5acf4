// Finds which nodes of the graph each step computes, by walking kernels and graph side by side from the outputs down.
#include "jit/explain_parts.h"

#include <algorithm>
#include <unordered_map>

namespace ng {
namespace {

class Follower {
  public:
    Follower(const Plan& plan, const Snapshot& graph);
    std::vector<std::vector<uint32_t>> run();

  private:
    struct Pair { size_t step; int32_t value; uint32_t node; };
    struct Write { size_t step; int32_t value; };

    void meet(int32_t buffer, uint32_t node);
    void meet_step(size_t step, uint32_t node);
    void follow(const Pair& p);
    uint32_t below(uint32_t node, bool marks_only) const;
    void found(size_t step, uint32_t node) { nodes_[step].push_back(node); }

    const Plan&     plan_;
    const Snapshot& graph_;
    std::unordered_map<const Node*, uint32_t> numbers_;
    std::vector<std::vector<Write>>  writes_;       // by buffer
    std::vector<std::vector<size_t>> calls_;        // that write it, by buffer
    std::vector<bool>                met_;          // buffers
    std::vector<std::vector<bool>>   walked_;       // by step, by value
    std::vector<Pair>                open_;
    std::vector<std::vector<uint32_t>> nodes_;
};

Follower::Follower(const Plan& plan, const Snapshot& graph)
    : plan_(plan), graph_(graph), writes_(plan.buffers.size()), calls_(plan.buffers.size()), met_(plan.buffers.size(), false),
      walked_(plan.steps.size()), nodes_(plan.steps.size())
{
    for (uint32_t i = 0; i < graph.size(); i++) numbers_.emplace(&graph[i], i);
    for (size_t s = 0; s < plan.steps.size(); s++) {
        const Step& step = plan.steps[s];
        if (!step.kernel) {
            calls_[size_t(step.out.buffer)].push_back(s);
            continue;
        }
        walked_[s].resize(step.kernel->values.size(), false);
        for (const StoreTo& to : step.kernel->stores) writes_[size_t(step.buffers[size_t(to.buffer)])].push_back({s, to.value});
    }
}

// Down to what computes; marks only where the buffer that is written holds the shape itself.
uint32_t Follower::below(uint32_t node, bool marks_only) const
{
    const auto passes = [&](Op op) { return is_mark(op) || (!marks_only && is_movement(op) && op != Op::bitcast); };
    while (passes(graph_[node].op)) node = graph_.arg(node, 0);
    return node;
}

// A call says which node it is; what fused steps store there is the node, a part of a concat, or what a put begins with.
void Follower::meet(int32_t buffer, uint32_t node)
{
    const auto b = size_t(buffer);
    if (met_[b]) return;
    met_[b] = true;
    for (const size_t s : calls_[b]) meet_step(s, node);
    node = below(node, false);
    while (graph_[node].op == Op::put) node = below(graph_.arg(node, 0), false);
    const bool parts = graph_[node].op == Op::concat;
    for (size_t i = 0; i < writes_[b].size(); i++) {
        if (parts && i >= graph_.args(node).size()) break;
        open_.push_back({writes_[b][i].step, writes_[b][i].value, parts ? graph_.arg(node, i) : node});
    }
}

void Follower::meet_step(size_t s, uint32_t node)
{
    const Step& step = plan_.steps[s];
    if (!step.node) {                                              // a last copy
        if (!step.in.empty()) meet(step.in[0].buffer, node);
        return;
    }
    const auto at = numbers_.find(step.node.get());
    if (at == numbers_.end()) return;
    found(s, at->second);
    const auto args = graph_.args(at->second);
    for (size_t k = 0; k < step.in.size() && k < args.size(); k++)
        if (step.in[k].buffer != step.out.buffer) meet(step.in[k].buffer, args[k]);
}

// The value is the node, perhaps below movement; what does not agree ends the walk.
void Follower::follow(const Pair& p)
{
    if (walked_[p.step][size_t(p.value)]) return;
    walked_[p.step][size_t(p.value)] = true;
    const Step& step = plan_.steps[p.step];
    const Value& v = step.kernel->values[size_t(p.value)];
    uint32_t node = below(p.node, false);
    const auto go = [&](size_t value_arg, size_t node_arg) { open_.push_back({p.step, v.args[value_arg], graph_.arg(node, node_arg)}); };
    if (v.kind != ValueKind::Convert)                              // casts that need no work have no value
        while (graph_[node].op == Op::cast && graph_[node].dtype != v.type) node = below(graph_.arg(node, 0), false);
    const Op op = graph_[node].op;
    switch (v.kind) {
    case ValueKind::Load: return meet(step.buffers[size_t(v.buffer)], node);
    case ValueKind::Gather:
        if (op != Op::take) return;
        meet(step.buffers[size_t(v.buffer)], graph_.arg(node, 0)), go(0, 1);
        break;
    case ValueKind::Map: case ValueKind::Fold: {
        while (graph_[node].op == Op::cast) node = below(graph_.arg(node, 0), false);
        if (graph_[node].op != v.op) return;
        const size_t count = std::min<size_t>(graph_.args(node).size(), v.args.size());
        for (size_t k = 0; k < count; k++)
            if (v.args[k] >= 0) go(k, k);
        break;
    }
    case ValueKind::Convert: case ValueKind::Bitcast:
        if (op != Op::cast && op != Op::iota && op != Op::bitcast) return;
        if (op != Op::iota) go(0, 0);
        break;
    case ValueKind::Random:
        if (op != Op::random) return;
        go(1, 0), go(2, 1);
        break;
    case ValueKind::Stochastic:
        if (op != Op::cast_stochastic) return;
        go(0, 0);
        break;
    case ValueKind::Index: if (op != Op::iota) return; break;
    case ValueKind::Constant: if (op != Op::constant) return; break;
    case ValueKind::Scalar: if (op != Op::scalar) return; break;
    case ValueKind::Length: if (op != Op::length) return; break;
    }
    found(p.step, node);
}

std::vector<std::vector<uint32_t>> Follower::run()
{
    for (size_t b = 0; b < plan_.buffers.size(); b++)
        if (plan_.buffers[b].place == Place::Out) meet(int32_t(b), graph_.roots[size_t(plan_.buffers[b].index)]);
    while (!open_.empty()) {
        const Pair p = open_.back();
        open_.pop_back();
        follow(p);
    }
    for (std::vector<uint32_t>& list : nodes_) {
        std::ranges::sort(list);
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    return std::move(nodes_);
}

}  // namespace

std::vector<std::vector<uint32_t>> nodes_of_steps(const Plan& plan, const Snapshot& graph) { return Follower(plan, graph).run(); }

}  // namespace ng
