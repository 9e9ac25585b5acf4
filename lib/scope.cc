// Scopes made and ended, and the expressions that they own set free.
#include "lib/scope.h"

namespace ng {
namespace {

constinit std::atomic<uint64_t> scopes_made{0};

}  // namespace

Scope::Scope(Ref<Context> context, size_t max_nodes)
    : context_(std::move(context)), serial_(scopes_made.fetch_add(1, std::memory_order_relaxed) + 1), epoch_(fork_epoch()),
      graph_(max_nodes ? max_nodes : DEFAULT_NODES) {}

uint64_t Scope::create(Ref<Context> context, size_t max_nodes)
{
    const Ref<Scope> scope = new Scope(std::move(context), max_nodes);
    return scope->handle_ = make_handle(scope);
}

uint64_t Scope::hand_out(NodeRef node)
{
    const std::lock_guard hold(lock_);
    if (is_ended_) return make_handle(std::move(node));
    owned_.reserve(owned_.size() + 1 > owned_.capacity() ? 2 * owned_.capacity() + 16 : 0);
    owned_.push_back(make_handle(std::move(node), handle_));
    return owned_.back();
}

void Scope::end() noexcept
{
    if (epoch_ != fork_epoch()) return;      // the parent's: its lock may be held by a thread that is not here
    std::vector<uint64_t> owned;
    Graph graph(DEFAULT_NODES);
    {
        const std::lock_guard hold(lock_);
        is_ended_ = true;
        owned.swap(owned_);
        std::swap(graph, graph_);
    }
    for (const uint64_t handle : owned) {
        const Pin<const Node> expression(handle);
        if (!expression) continue;           // released by the caller, who was not its owner
        expression.set_owner(0);
        release_handle<const Node>(handle);
    }
}

}  // namespace ng
