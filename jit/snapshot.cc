// Walks a graph once and numbers it, iteratively.
#include "jit/snapshot.h"

namespace ng {
namespace {

// Node pointers to numbers: open addressing, since a million look-ups are most of a big graph's cost.
class Numbers {
  public:
    Numbers() : slots_(64) {}
    // The number of n, or `fresh` which it gets now.
    uint32_t find_or_add(const Node* n, uint32_t fresh)
    {
        if (2 * (count_ + 1) > slots_.size()) grow();
        size_t at = n->hash * 0x9E3779B97F4A7C15u >> 7 & (slots_.size() - 1);
        for (; slots_[at].first; at = (at + 1) & (slots_.size() - 1))
            if (slots_[at].first == n) return slots_[at].second;
        slots_[at] = {n, fresh};
        count_++;
        return fresh;
    }
    void renumber(const Node* n, uint32_t number)
    {
        size_t at = n->hash * 0x9E3779B97F4A7C15u >> 7 & (slots_.size() - 1);
        while (slots_[at].first != n) at = (at + 1) & (slots_.size() - 1);
        slots_[at].second = number;
    }

  private:
    void grow()
    {
        std::vector<std::pair<const Node*, uint32_t>> old(slots_.size() * 2);
        old.swap(slots_);
        count_ = 0;
        for (const auto& [n, number] : old)
            if (n) find_or_add(n, number);
    }
    std::vector<std::pair<const Node*, uint32_t>> slots_;
    size_t count_ = 0;
};
constexpr uint32_t OPEN = ~0u;       // on the way: its operands are being numbered

}  // namespace

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

Snapshot::Snapshot(std::span<const NodeRef> tops)
{
    Numbers numbers;
    struct Frame { const Node* node; size_t next; };
    std::vector<Frame> stack;
    first.push_back(0);
    const auto close = [&](const Node* n) {
        for (size_t k = 0; k < computed_args(*n); k++) {
            const uint32_t a = numbers.find_or_add(n->arg(k).get(), OPEN);
            operands.push_back(a);
            uses[a]++;
        }
        numbers.renumber(n, size());
        nodes.push_back(n);
        uses.push_back(0);
        first.push_back(uint32_t(operands.size()));
    };
    constexpr uint32_t NEW = OPEN - 1;
    for (const NodeRef& top : tops) {
        if (numbers.find_or_add(top.get(), NEW) == NEW) numbers.renumber(top.get(), OPEN), stack.push_back({top.get(), 0});
        while (!stack.empty()) {
            Frame& f = stack.back();
            if (f.next == computed_args(*f.node)) {
                const Node* done = f.node;
                stack.pop_back();
                close(done);
                continue;
            }
            const Node* a = f.node->arg(f.next++).get();
            if (numbers.find_or_add(a, NEW) == NEW) numbers.renumber(a, OPEN), stack.push_back({a, 0});
        }
        const uint32_t r = numbers.find_or_add(top.get(), OPEN);
        roots.push_back(r);
        uses[r]++;
    }
}

}  // namespace ng
