// From handles to nodes and back: what every function that builds an expression does around the build itself.
#pragma once
#include "jit/build.h"
#include "lib/plain_floats.h"
#include "lib/scope.h"

#include <span>
#include <vector>

namespace ng {

// One building call: its operands' youngest scope, and the first fault among them.
class Building {
  public:
    explicit Building(const char* who) : who_(who) { free_released_expressions(); }

    // The scope that the caller named; null: none.
    void scope(const ng_scope* s);
    // An operand; optional ones may be null and give a null node.
    NodeRef operand(const ng_expr* e, const char* name, int32_t at = -1);
    NodeRef optional(const ng_expr* e, const char* name) { return e ? operand(e, name) : NodeRef(); }
    std::vector<NodeRef> operands(ng_expr* const* e, uint32_t count, const char* name);

    // What body(graph) builds, with a handle that belongs to the youngest scope, or to the caller; a poison where an
    // operand is one or the body throws. Never throws; UNMADE when there is no memory even for that.
    template <class Body>
    ng_expr* build(Body body) noexcept
    {
        return finish({&body, [](void* b, Graph& g) -> NodeRef { return (*static_cast<Body*>(b))(g); }});
    }
    // The same for several results at once: all or none, and faults are thrown.
    template <class Body>
    std::vector<ng_expr*> build_all(Body body)
    {
        return finish_all({&body, [](void* b, Graph& g) -> std::vector<NodeRef> { return (*static_cast<Body*>(b))(g); }});
    }

    // A fault from before the build, such as a bad handle; the first one counts.
    void fault(const Error& e) { if (!fault_) fault_ = poison(e); }
    const char* who() const { return who_; }

  private:
    template <class Result>
    struct Call {                            // of a body, whatever its type
        void*  body;
        Result (*with)(void*, Graph&);
        Result operator()(Graph& g) const { return with(body, g); }
    };
    ng_expr* finish(const Call<NodeRef>& body) noexcept;
    NodeRef  built(const Call<NodeRef>& body);
    std::vector<ng_expr*> finish_all(const Call<std::vector<NodeRef>>& body);

    const PlainFloats plain_;                // constants are folded on the caller's thread
    const char* who_;
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
        return to_handle<ng_expr>(UNMADE<const Node>);
    }
    return b.build([](Graph&) { return NodeRef(); });
}

}  // namespace ng
