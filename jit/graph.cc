// Nodes' birth, identity and end.
#include "jit/graph.h"

#include "jit/node_numbers.h"

#include <sched.h>

#include <algorithm>
#include <stack>
#include <utility>

namespace ng {
namespace {

uint64_t mixed(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0xff51afd7ed558ccdu;
    return h ^ (h >> 32);
}

uint64_t hash_parts(const Node& n)
{
    uint64_t h = mixed(uint64_t(n.op) << 16 | uint64_t(n.dtype) << 8 | uint64_t(n.weak), uint64_t(n.value));
    h = mixed(h, n.shape ? n.shape->hash : 0);
    for (const NodeRef& a : n.args()) h = mixed(h, reinterpret_cast<uintptr_t>(a.get()));
    if (!n.extra) return h;
    for (const int64_t i : n.extra->ints) h = mixed(h, uint64_t(i));
    for (const Extent& e : n.extra->extents) h = mixed(h, e.hash());
    h = mixed(h, std::hash<std::string>()(n.extra->text));
    return mixed(h, reinterpret_cast<uintptr_t>(n.extra->tensor.address()));
}
uint32_t hash_of(const Node& n) { return uint32_t(hash_parts(n) >> 32); }

bool equal(const Node& a, const Node& b)
{
    if (a.op != b.op || a.dtype != b.dtype || a.weak != b.weak || a.value != b.value) return false;
    if (!same(a.shape, b.shape) || !std::ranges::equal(a.args(), b.args())) return false;
    if (!a.extra || !b.extra) return !a.extra == !b.extra;
    return a.extra->equals(*b.extra);
}

}  // namespace

uint32_t LeafTensor::lock() const noexcept
{
    constexpr int SPINS = 100;               // what is done under it takes less
    uint32_t state = state_.load(std::memory_order_relaxed);
    for (int spins = 0; state % 2 || !state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed); spins++) {
        if (spins >= SPINS) sched_yield();
        state = state_.load(std::memory_order_relaxed);
    }
    return state;
}

std::shared_ptr<void> LeafTensor::get() const noexcept
{
    const uint32_t state = lock();
    std::shared_ptr<void> tensor = tensor_;
    unlock(state);
    return tensor;
}

const void* LeafTensor::address() const noexcept
{
    const uint32_t state = lock();
    const void* address = tensor_.get();
    unlock(state);
    return address;
}

// The old tensor ends after the lock: its end is the library's, and may be long.
void LeafTensor::bind(std::shared_ptr<void> tensor) noexcept
{
    const uint32_t state = lock();
    tensor_.swap(tensor);
    unlock(state + 2);
}

bool NodeExtra::equals(const NodeExtra& o) const
{
    return ints == o.ints && extents == o.extents && text == o.text && tensor.address() == o.tensor.address();
}

void Node::set_args(std::span<const NodeRef> args)
{
    count_ = uint8_t(std::min<size_t>(args.size(), FEW + 1));
    if (args.size() <= FEW)
        std::ranges::copy(args, few_.begin());
    else
        more().args.assign(args.begin(), args.end());
}

void destroy(const Node* node) noexcept
{
    // The dead wait in a list, linked through their value, which nobody asks for any more: a release may not allocate.
    Node* waiting = nullptr;
    const auto bury = [&](const Node* dead) {
        auto* n = const_cast<Node*>(dead);
        n->value = int64_t(reinterpret_cast<uintptr_t>(std::exchange(waiting, n)));
    };
    const auto drop = [&](NodeRef& r) {
        if (const Node* a = r.detach(); a && a->release()) bury(a);
    };
    bury(node);
    while (Node* n = waiting) {
        waiting = reinterpret_cast<Node*>(uintptr_t(n->value));
        for (NodeRef& r : n->few_) drop(r);
        if (n->extra)
            for (NodeRef& r : n->extra->args) drop(r);
        delete n;
    }
}

Graph& Graph::operator=(Graph&& other) noexcept
{
    std::swap(max_nodes_, other.max_nodes_), std::swap(number_, other.number_);
    std::swap(nodes_, other.nodes_), std::swap(index_, other.index_);
    return *this;
}

Graph::~Graph()
{
    for (const Node* n : nodes_) NodeRef::adopt(n);
}

// First beside those of its newest operand, so that what is built one after the other lies close in the index.
Probe Graph::probe(const Node& n, uint32_t hash) const
{
    const std::span<const NodeRef> args = n.args();
    uint32_t newest = 0;
    for (const NodeRef& a : args) newest = std::max(newest, a->place());
    return args.empty() ? Probe(hash, 1, hash, index_.size() - 1) : Probe(newest, 4, hash, index_.size() - 1);
}

NodeRef Graph::intern(Ref<Node> node)
{
    if (2 * (nodes_.size() + 1) > index_.size()) grow();
    const uint32_t hash = hash_of(*node);
    Probe p = probe(*node, hash);
    for (; index_[p.at].at; p.next())
        if (index_[p.at].hash == hash && equal(*nodes_[index_[p.at].at - 1], *node)) return NodeRef(nodes_[index_[p.at].at - 1]);
    nodes_.make_room();
    if (nodes_.size() >= max_nodes_)
        throw Error(NG_E_LIMIT, text("the scope is full: it was made for ", max_nodes_, " nodes (ng_scope_create's max_nodes)"));
    node->place_ = uint32_t(mixed(reinterpret_cast<uintptr_t>(this), 0) + nodes_.size());
    node->graph_ = number_;
    nodes_.push_back(NodeRef(node.get()).detach());
    index_[p.at] = {uint32_t(nodes_.size()), hash};
    return NodeRef::adopt(node.detach());
}

// Fourfold: what is not written costs nothing, and a node's slot beside its operand's is found by reading both.
void Graph::grow()
{
    Zeroed<Slot> old(std::max<size_t>(16, index_.size() * 4));
    std::swap(old, index_);
    for (const Slot& slot : old) {
        if (!slot.at) continue;
        Probe p = probe(*nodes_[slot.at - 1], slot.hash);
        while (index_[p.at].at) p.next();
        index_[p.at] = slot;
    }
}

NodeRef poison(const Error& error)
{
    Ref<Node> n = new Node;
    n->shape = ShapeRef(new Shape({}));
    n->more().error = std::make_unique<Error>(error);
    return NodeRef(n.get());
}

std::shared_ptr<void> leaf_tensor(const Node& leaf) { return leaf.extra->tensor.get(); }
void bind_leaf(const Node& leaf, std::shared_ptr<void> tensor) { leaf.extra->tensor.bind(std::move(tensor)); }
uint32_t leaf_binds(const Node& leaf) { return leaf.extra->tensor.binds(); }

std::string name_near(const Node& start)
{
    const Node* n = &start;
    for (int steps = 0; steps < 16; steps++) {
        if (n->op == Op::tag) return n->extra->text;
        const bool passes = n->op == Op::reshape || n->op == Op::broadcast || n->op == Op::permute || n->op == Op::cast ||
                            n->op == Op::slice || n->op == Op::keep || n->op == Op::view;
        if (!passes) break;
        n = n->arg(0).get();
    }
    return "";
}

std::string describe(const Node& n)
{
    const std::string name = name_near(n);
    return text(name.empty() ? "" : quoted(name) + " ", name_of(n.dtype), " ", text_of(n.dims()));
}

std::vector<const Node*> topological(std::span<const NodeRef> roots)
{
    std::vector<const Node*> order;
    NodeNumbers seen;
    std::stack<std::pair<const Node*, size_t>> stack;        // as deep as the graph, so in pieces that go as it shrinks
    for (const NodeRef& root : roots) {
        if (seen.add(root.get(), 0)) stack.emplace(root.get(), 0);
        while (!stack.empty()) {
            auto& [n, next] = stack.top();
            if (next == n->args().size()) {
                order.push_back(n);
                stack.pop();
                continue;
            }
            const Node* a = n->arg(next++).get();
            if (seen.add(a, 0)) stack.emplace(a, 0);
        }
    }
    return order;
}

}  // namespace ng
