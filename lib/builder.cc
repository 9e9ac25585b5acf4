// Looks up operands, finds the scope that a result belongs to, and turns faults into poisoned expressions.
#include "lib/builder.h"

#include <new>

namespace ng {

void Building::scope(const ng_scope* s)
{
    if (!s) return;
    if (handle_of(s) == UNMADE<Scope>) throw std::bad_alloc();
    Pin<Scope> given = need<Scope>(s, who_, "s");
    if (!scope_ || given->age() > scope_->age()) scope_ = std::move(given);
}

NodeRef Building::operand(const ng_expr* e, const char* name, int32_t at)
{
    if (handle_of(e) == UNMADE<const Node>) throw std::bad_alloc();       // it spreads as it is: it belongs to no scope
    const Pin<const Node> pin = need<const Node>(e, who_, name, at);
    if (const uint64_t owner = pin.owner(); owner && !(scope_ && scope_.handle() == owner)) {
        Pin<Scope> s(owner);
        if (s && (!scope_ || s->age() > scope_->age())) scope_ = std::move(s);
    }
    NodeRef node = pin.ref();
    if (node->is_poison() && !fault_) fault_ = node;
    return node;
}

std::vector<NodeRef> Building::operands(ng_expr* const* e, uint32_t count, const char* name)
{
    if (!e && count) throw Error(NG_E_INVALID, text(who_, ": ", name, " is NULL, and there are ", count, " of them"));
    std::vector<NodeRef> nodes;
    for (uint32_t i = 0; i < count; i++) nodes.push_back(operand(e[i], name, int32_t(i)));
    return nodes;
}

// With the scope's lock held, where there is one.
NodeRef Building::built(const Call<NodeRef>& body)
{
    if (fault_) return fault_;
    try {
        if (scope_) return body(scope_->graph());
        Graph g;
        return body(g);
    } catch (Error& e) {
        if (!e.text.starts_with("ng_")) e.text = text(who_, ": ", e.text);   // arithmetic on extents knows no operation
        return poison(e);
    }
}

ng_expr* Building::finish(const Call<NodeRef>& body) noexcept
{
    try {
        if (!scope_) return to_handle<ng_expr>(make_handle<const Node>(built(body)));
        const std::lock_guard hold(scope_->lock());
        return to_handle<ng_expr>(scope_->hand_out(built(body)));
    } catch (...) {
        return to_handle<ng_expr>(UNMADE<const Node>);
    }
}

std::vector<ng_expr*> Building::finish_all(const Call<std::vector<NodeRef>>& body)
{
    if (fault_) throw *fault_->extra->error;
    Graph own;
    const std::unique_lock hold = scope_ ? std::unique_lock(scope_->lock()) : std::unique_lock<std::mutex>();
    const std::vector<NodeRef> nodes = body(scope_ ? scope_->graph() : own);
    std::vector<ng_expr*> handles;
    handles.reserve(nodes.size());
    try {
        for (const NodeRef& n : nodes) handles.push_back(to_handle<ng_expr>(scope_ ? scope_->hand_out(n) : make_handle<const Node>(n)));
    } catch (...) {
        for (const ng_expr* made : handles)
            if (!scope_) release_handle<const Node>(handle_of(made));
        throw;
    }
    return handles;
}

}  // namespace ng
