// From handles to nodes and back: what every function that builds an expression does around the build itself.
#pragma once
#include "jit/build.h"
#include "lib/plain_floats.h"
#include "lib/scope.h"

#include <functional>
#include <span>
#include <vector>

namespace ng {

// The operands of one building call, pinned; their youngest scope; the first fault among them.
class Building {
  public:
    explicit Building(const char* who) : who_(who) {}

    // The scope that the caller named; null: none.
    void scope(const ng_scope* s);
    // An operand; optional ones may be null and give a null node.
    NodeRef operand(const ng_expr* e, const char* name, int32_t at = -1);
    NodeRef optional(const ng_expr* e, const char* name) { return e ? operand(e, name) : NodeRef(); }
    std::vector<NodeRef> operands(ng_expr* const* e, uint32_t count, const char* name);

    // What body(graph) builds, with a handle that belongs to the youngest scope, or to the caller; a poison where an
    // operand is one or the body throws. Never throws; null when there is no memory even for that.
    template <class Body>
    ng_expr* build(Body&& body) noexcept
    {
        return finish([&](Graph& g) { return body(g); });
    }
    // The same for several results at once: all or none, and faults are thrown.
    std::vector<ng_expr*> build_all(const std::function<std::vector<NodeRef>(Graph&)>& body);

    // A fault from before the build, such as a bad handle; the first one counts.
    void fault(const Error& e) { if (!fault_) fault_ = poison(e); }
    const char* who() const { return who_; }

  private:
    ng_expr* finish(const std::function<NodeRef(Graph&)>& body) noexcept;
    NodeRef  built(const std::function<NodeRef(Graph&)>& body);

    const PlainFloats plain_;                // constants are folded on the caller's thread
    const char* who_;
    std::vector<Pin<const Node>> pins_;
    Pin<Scope>  scope_;
    NodeRef     fault_;
};

// build_expr("ng_add", [&](Building& b) { pins operands; return a function of the graph }): operands' faults become poison.
template <class Body>
ng_expr* build_expr(const char* who, Body&& body) noexcept
{
    Building b(who);
    try {
        try {
            return body(b);
        } catch (const Error& e) {
            b.fault(e);                                      // which may find no memory
        }
    } catch (...) {
        return nullptr;
    }
    return b.build([](Graph&) { return NodeRef(); });
}

}  // namespace ng
