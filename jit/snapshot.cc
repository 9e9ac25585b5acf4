// Walks a graph once and numbers it, iteratively.
#include "jit/snapshot.h"

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

Snapshot::Snapshot(std::span<const NodeRef> tops)
{
    constexpr int32_t OPEN = -1;             // on the way: its operands are being numbered
    NodeMap numbers;
    struct Frame { const Node* node; size_t next; };
    std::vector<Frame> stack;
    first.push_back(0);
    const auto close = [&](const Node* n) {
        for (size_t k = 0; k < computed_args(*n); k++) {
            const auto a = uint32_t(*numbers.find(n->arg(k).get()));
            operands.push_back(a);
            uses[a]++;
        }
        *numbers.find(n) = int32_t(size());
        nodes.push_back(n);
        uses.push_back(0);
        first.push_back(uint32_t(operands.size()));
    };
    for (const NodeRef& top : tops) {
        if (numbers.try_emplace(top.get(), OPEN).second) stack.push_back({top.get(), 0});
        while (!stack.empty()) {
            Frame& f = stack.back();
            if (f.next == computed_args(*f.node)) {
                const Node* done = f.node;
                stack.pop_back();
                close(done);
                continue;
            }
            const Node* a = f.node->arg(f.next++).get();
            if (numbers.try_emplace(a, OPEN).second) stack.push_back({a, 0});
        }
        roots.push_back(uint32_t(*numbers.find(top.get())));
        uses[roots.back()]++;
    }
}

}  // namespace ng
