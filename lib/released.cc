// The list of expressions that nobody has any more, linked through their value, which nobody asks for either.
#include "lib/released.h"

namespace ng {
namespace {

constinit std::atomic<Node*> waiting{nullptr};

void let_go(Node* node) noexcept
{
    if (!node || !node->release()) return;
    Node* next = waiting.load(std::memory_order_relaxed);
    do node->value = int64_t(reinterpret_cast<uintptr_t>(next));
    while (!waiting.compare_exchange_weak(next, node, std::memory_order_release, std::memory_order_relaxed));
}

}  // namespace

void release_expression(uint64_t handle) noexcept { let_go(static_cast<Node*>(table::release(handle, HandleKind::Expression))); }
void release_later(NodeRef& node) noexcept { let_go(const_cast<Node*>(node.detach())); }

void free_released_expressions() noexcept
{
    if (!waiting.load(std::memory_order_relaxed)) return;
    for (Node* node = waiting.exchange(nullptr, std::memory_order_acquire); node;) {
        const Node* const dead = node;
        node = reinterpret_cast<Node*>(uintptr_t(dead->value));
        destroy(dead);
    }
}

}  // namespace ng
