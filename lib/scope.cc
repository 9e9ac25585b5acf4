// Scopes made and ended, and the expressions that they own set free.
#include "lib/scope.h"

namespace ng {
namespace {

constinit std::atomic<uint64_t> scopes_made{0};

}  // namespace

Scope::Scope(Ref<Context> context, size_t max_nodes)
    : context_(std::move(context)), serial_(scopes_made.fetch_add(1, std::memory_order_relaxed) + 1), epoch_(fork_epoch()),
      graph_(max_nodes ? max_nodes : DEFAULT_NODES, uint32_t(serial_)) {}

uint64_t Scope::create(Ref<Context> context, size_t max_nodes)
{
    const Ref<Scope> scope = new Scope(std::move(context), max_nodes);
    return scope->handle_ = make_handle(scope);
}

uint64_t Scope::hand_out(NodeRef node)
{
    if (is_ended_) return make_handle(std::move(node));
    owned_.make_room();                      // first: a handle that nobody keeps would never end
    const uint64_t handle = make_handle(std::move(node), handle_);
    owned_.push_back(handle);
    return handle;
}

void Scope::end() noexcept
{
    if (epoch_ != fork_epoch()) return;      // the parent's: its lock may be held by a thread that is not here
    Growing<uint64_t> owned;
    Graph graph(DEFAULT_NODES);
    {
        const std::lock_guard hold(lock_);
        is_ended_ = true;
        std::swap(owned, owned_);
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
