// Walks a graph once and numbers it, iteratively.
#include "jit/snapshot.h"

#include "jit/node_numbers.h"

#include <algorithm>
#include <bit>
#include <stack>

namespace ng {

size_t computed_args(const Node& n) { return n.op == Op::custom_grad || n.op == Op::surrogate ? 1 : n.args().size(); }

bool is_mark(Op op) { return op == Op::tag || op == Op::keep || op == Op::surrogate || op == Op::custom_grad; }

bool is_movement(Op op)
{
    return is_mark(op) || op == Op::reshape || op == Op::broadcast || op == Op::permute || op == Op::slice || op == Op::view || op == Op::bitcast;
}

bool is_call(Op op)
{
    switch (op) {
    case Op::put: case Op::scan: case Op::segment: case Op::argsort: case Op::matmul: case Op::conv: case Op::conv_dx: case Op::conv_dw:
    case Op::pool: case Op::pool_dx: return true;
    default: return false;
    }
}

namespace {

// Nodes of one graph are unlike each other; those of several may be equal, and are one node here.
class Twins {
  public:
    explicit Twins(const Snapshot& graph) : graph_(graph) {}

    // Whether a node may have a twin: not while all of them are from one numbered graph.
    bool may_be(const Node& n)
    {
        if (graph_.size() == 0) only_ = n.graph();
        if (n.graph() != only_) only_ = 0;
        return only_ == 0;
    }
    // The number of the node that is equal to n and has these operands; `fresh`, where there is none.
    uint32_t number_of(const Node& n, std::span<const uint32_t> operands, uint32_t fresh)
    {
        if (2 * (size_t(fresh) + 1) > slots_.size()) index_all();
        Probe p = probe(n, operands);
        for (; slots_[p.at]; p.next()) {
            const uint32_t other = slots_[p.at] - 1;
            if (std::ranges::equal(graph_.args(other), operands) && equal(graph_[other], n)) return other;
        }
        slots_[p.at] = fresh + 1;
        return fresh;
    }

  private:
    static bool equal(const Node& a, const Node& b)
    {
        if (a.op != b.op || a.dtype != b.dtype || a.weak != b.weak || a.value != b.value || !same(a.shape, b.shape)) return false;
        if (!a.extra || !b.extra) return !a.extra == !b.extra;
        if (a.op == Op::leaf && leaf_tensor(a) != leaf_tensor(b)) return false;
        return a.extra->ints == b.extra->ints && a.extra->extents == b.extra->extents && a.extra->text == b.extra->text;
    }
    // First beside those of its newest operand, as in a graph's own index.
    Probe probe(const Node& n, std::span<const uint32_t> operands) const
    {
        uint64_t h = n.shape->hash;
        uint32_t newest = 0;
        const auto mix = [&](uint64_t v) { h = (h ^ v) * 0xff51afd7ed558ccdu, h ^= h >> 32; };
        mix(uint64_t(n.op) << 8 | uint64_t(n.dtype)), mix(uint64_t(n.value));
        for (const uint32_t a : operands) mix(a), newest = std::max(newest, a);
        if (n.extra) {
            for (const int64_t i : n.extra->ints) mix(uint64_t(i));
            for (const Extent& e : n.extra->extents) mix(e.hash());
        }
        if (n.op == Op::leaf) mix(reinterpret_cast<uintptr_t>(leaf_tensor(n).get()));
        return operands.empty() ? Probe(h, 1, h, slots_.size() - 1) : Probe(newest, 4, h, slots_.size() - 1);
    }
    void index_all()
    {
        slots_ = Zeroed<uint32_t>(std::bit_ceil(size_t(graph_.size()) + 16) * 4);
        for (uint32_t i = 0; i < graph_.size(); i++) {
            Probe p = probe(graph_[i], graph_.args(i));
            while (slots_[p.at]) p.next();
            slots_[p.at] = i + 1;
        }
    }

    const Snapshot&  graph_;
    uint32_t         only_ = 0;
    Zeroed<uint32_t> slots_;                 // open addressing: 1 + number, 0 empty
};

}  // namespace

Snapshot::Snapshot(std::span<const NodeRef> tops)
{
    constexpr int32_t OPEN = -1;             // on the way: its operands are being numbered
    NodeNumbers numbers;
    struct Frame { const Node* node; uint32_t next, count; };
    std::stack<Frame> stack;                 // as deep as the graph, so in pieces that go as it shrinks
    first.push_back(0);
    Twins twins(*this);
    const auto open = [&](const Node* n) {
        if (numbers.add(n, OPEN)) stack.push({n, 0, uint32_t(computed_args(*n))});
    };
    const auto close = [&](const Frame& f) {
        for (uint32_t k = 0; k < f.count; k++) operands.push_back(uint32_t(numbers.of(f.node->arg(k).get())));
        const auto mine = std::span(operands).subspan(first.back());
        const uint32_t number = twins.may_be(*f.node) ? twins.number_of(*f.node, mine, size()) : size();
        numbers.of(f.node) = int32_t(number);
        if (number < size()) return operands.resize(first.back());
        for (const uint32_t a : mine) uses[a]++;
        nodes.push_back(f.node);
        ops.push_back(f.node->op);
        uses.push_back(0);
        first.push_back(uint32_t(operands.size()));
    };
    for (const NodeRef& top : tops) {
        open(top.get());
        while (!stack.empty()) {
            Frame& f = stack.top();
            if (f.next < f.count) {
                open(f.node->arg(f.next++).get());
                continue;
            }
            close(f);
            stack.pop();
        }
        roots.push_back(uint32_t(numbers.of(top.get())));
        uses[roots.back()]++;
    }
}

}  // namespace ng
