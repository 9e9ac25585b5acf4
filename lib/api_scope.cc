// ng.h: scopes, and the references to expressions.
#include "lib/scope.h"

using namespace ng;

ng_scope* ng_scope_create(ng_ctx* c, size_t max_nodes)
{
    ng_scope* made = nullptr;
    const ng_status status = guard(nullptr, [&] {
        Pin<Context> context;
        if (c) context = need_context(c, "ng_scope_create");
        if (context && context->is_lost()) return NG_E_LOST;
        made = to_handle<ng_scope>(Scope::create(context.ref(), max_nodes));
        return NG_OK;
    });
    return status == NG_E_NOMEM ? to_handle<ng_scope>(UNMADE<Scope>) : made;   // without a scope, expressions would be the caller's
}

void ng_scope_release(ng_scope* s)
{
    const Pin<Scope> scope(s);
    if (!scope) return;
    scope->end();
    free_released_expressions();
    release_handle<Scope>(scope.handle());
}

void ng_expr_retain(ng_expr* e) { retain_handle<const Node>(handle_of(e)); }
void ng_expr_release(ng_expr* e) { release_expression(handle_of(e)); }
