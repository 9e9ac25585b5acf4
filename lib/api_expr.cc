// ng.h: leaves, movement, indexing and products as expressions, and what can be asked of an expression.
#include "jit/grad.h"
#include "jit/forms.h"
#include "jit/parse.h"
#include "lib/builder.h"
#include "lib/leaves.h"
#include "lib/text_out.h"

using namespace ng;

namespace {

// The commonest form: one operand and a build.
template <class Body>
ng_expr* of_one(const char* who, ng_expr* x, Body&& body)
{
    return build_expr(who, [&](Building& b) {
        const NodeRef n = b.operand(x, "x");
        return b.build([&](Graph& g) { return body(g, n); });
    });
}

template <class Body>
ng_expr* of_two(const char* who, ng_expr* x, const char* x_name, ng_expr* y, const char* y_name, Body&& body)
{
    return build_expr(who, [&](Building& b) {
        const NodeRef n = b.operand(x, x_name), m = b.operand(y, y_name);
        return b.build([&](Graph& g) { return body(g, n, m); });
    });
}

template <class Body>
ng_expr* of_none(const char* who, ng_scope* s, Body&& body)
{
    return build_expr(who, [&](Building& b) {
        b.scope(s);
        return b.build([&](Graph& g) { return body(g); });
    });
}

NodeRef negative_length(Graph& g, int64_t k)
{
    if (k >= 0) throw Error(NG_E_INVALID, text("ng_length: k is ", k, ", lengths are -1, -2, .."));
    return build::length(g, extents_of(&k, 1, "ng_length")[0]);
}

}  // namespace

// ---- leaves ------------------------------------------------------------------------------------

ng_expr* ng_leaf(ng_scope* s, ng_tensor* t)
{
    return build_expr("ng_leaf", [&](Building& b) {
        b.scope(s);
        const Pin<Tensor> tensor = need<Tensor>(t, "ng_leaf", "t");
        return b.build([&](Graph& g) { return build::leaf(g, as_leaf(tensor.ref(), "ng_leaf"), layout_of(*tensor)); });
    });
}

ng_expr* ng_param(ng_scope* s, uint32_t index, const ng_shape* d)
{
    return of_none("ng_param", s, [&](Graph& g) { return build::param(g, index, layout_of(d, "ng_param")); });
}

ng_expr* ng_scalar(ng_scope* s, ng_dtype t, uint32_t offset)
{
    return of_none("ng_scalar", s, [&](Graph& g) { return build::scalar(g, dtype_of(t, "ng_scalar"), offset); });
}

ng_expr* ng_length(ng_scope* s, int64_t k)
{
    return of_none("ng_length", s, [&](Graph& g) { return negative_length(g, k); });
}

ng_expr* ng_const(ng_scope* s, ng_dtype t, double value)
{
    return of_none("ng_const", s, [&](Graph& g) { return t ? build::constant(g, dtype_of(t, "ng_const"), value) : build::weak(g, value); });
}

ng_expr* ng_const_int(ng_scope* s, ng_dtype t, int64_t value)
{
    return of_none("ng_const_int", s, [&](Graph& g) { return t ? build::constant_int(g, dtype_of(t, "ng_const_int"), value) : build::weak_int(g, value); });
}

ng_expr* ng_iota(ng_scope* s, const ng_shape* d, int32_t axis)
{
    return of_none("ng_iota", s, [&](Graph& g) { return build::iota(g, layout_of(d, "ng_iota"), axis); });
}

ng_expr* ng_random(ng_scope* s, ng_random_kind k, ng_expr* key, ng_expr* step, const ng_shape* d)
{
    return build_expr("ng_random", [&](Building& b) {
        b.scope(s);
        const NodeRef a = b.operand(key, "key"), c = b.optional(step, "step");
        return b.build([&](Graph& g) { return build::random(g, k, a, c, layout_of(d, "ng_random")); });
    });
}

ng_expr* ng_parse(ng_scope* s, const char* source, const char* names, ng_expr* const* values, uint32_t n)
{
    return build_expr("ng_parse", [&](Building& b) {
        b.scope(s);
        if (!source) throw Error(NG_E_INVALID, "ng_parse: text is NULL, should be a string");
        std::vector<NodeRef> nodes;
        if (!values && n) throw Error(NG_E_INVALID, text("ng_parse: values is NULL, and there are ", n, " of them"));
        for (uint32_t i = 0; i < n; i++) nodes.push_back(b.operand(values[i], "values", int32_t(i)));
        return b.build([&](Graph& g) {
            const std::vector<std::string_view> list = split_names(names ? names : "", n);
            return parse(g, source, list, nodes);
        });
    });
}

// ---- types and movement ----------------------------------------------------------------------------

ng_expr* ng_cast(ng_expr* x, ng_dtype t)
{
    return of_one("ng_cast", x, [&](Graph& g, const NodeRef& n) { return build::cast(g, n, dtype_of(t, "ng_cast")); });
}

ng_expr* ng_cast_stochastic(ng_expr* x, ng_dtype t, uint32_t bits, ng_expr* key, ng_expr* step)
{
    return build_expr("ng_cast_stochastic", [&](Building& b) {
        const NodeRef n = b.operand(x, "x"), k = b.operand(key, "key"), c = b.optional(step, "step");
        return b.build([&](Graph& g) { return build::cast_stochastic(g, n, dtype_of(t, "ng_cast_stochastic"), bits, k, c); });
    });
}

ng_expr* ng_bitcast(ng_expr* x, ng_dtype t)
{
    return of_one("ng_bitcast", x, [&](Graph& g, const NodeRef& n) { return build::bitcast(g, n, dtype_of(t, "ng_bitcast")); });
}

ng_expr* ng_reshape(ng_expr* x, const int64_t* dims, uint32_t n)
{
    return of_one("ng_reshape", x, [&](Graph& g, const NodeRef& e) {
        if ((!dims && n) || n > NG_MAX_NDIM) (void)extents_of(dims, n, "ng_reshape");
        return build::reshape_rest(g, e, std::span(dims, n));
    });
}

ng_expr* ng_broadcast(ng_expr* x, const int64_t* dims, uint32_t n)
{
    return of_one("ng_broadcast", x, [&](Graph& g, const NodeRef& e) { return build::broadcast(g, build::strong(g, e), extents_of(dims, n, "ng_broadcast")); });
}

ng_expr* ng_permute(ng_expr* x, const int32_t* axes, uint32_t n)
{
    return of_one("ng_permute", x, [&](Graph& g, const NodeRef& e) {
        if (!axes && n) throw Error(NG_E_INVALID, text("ng_permute: axes is NULL, and there are ", n, " of them"));
        return build::permute(g, e, std::span(axes, n));
    });
}

ng_expr* ng_slice(ng_expr* x, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    return of_one("ng_slice", x, [&](Graph& g, const NodeRef& n) { return build::slice(g, n, axis, start, stop, step); });
}

ng_expr* ng_window(ng_expr* x, int32_t axis, ng_expr* start, int64_t count)
{
    return of_two("ng_window", x, "x", start, "start", [&](Graph& g, const NodeRef& n, const NodeRef& at) { return build::window(g, n, axis, at, count); });
}

ng_expr* ng_concat(ng_expr* const* x, uint32_t n, int32_t axis)
{
    return build_expr("ng_concat", [&](Building& b) {
        const std::vector<NodeRef> parts = b.operands(x, n, "x");
        return b.build([&](Graph& g) { return build::concat(g, parts, axis); });
    });
}

ng_expr* ng_view(ng_expr* x, const ng_shape* d, int64_t offset)
{
    return of_one("ng_view", x, [&](Graph& g, const NodeRef& n) { return build::view(g, n, layout_of(d, "ng_view"), offset); });
}

// ---- by index ----------------------------------------------------------------------------------------

ng_expr* ng_take(ng_expr* x, ng_expr* indices, int32_t axis)
{
    return of_two("ng_take", x, "x", indices, "indices", [&](Graph& g, const NodeRef& n, const NodeRef& i) { return build::take(g, n, i, axis); });
}

ng_expr* ng_put(ng_expr* x, ng_expr* indices, ng_expr* y, int32_t axis, ng_fold how)
{
    return build_expr("ng_put", [&](Building& b) {
        const NodeRef n = b.operand(x, "x"), i = b.operand(indices, "indices"), v = b.operand(y, "y");
        return b.build([&](Graph& g) { return build::put(g, n, i, v, axis, how); });
    });
}

ng_expr* ng_scan(ng_expr* x, int32_t axis, ng_fold how, uint32_t flags)
{
    return of_one("ng_scan", x, [&](Graph& g, const NodeRef& n) { return build::scan(g, n, axis, how, flags); });
}

ng_expr* ng_segment(ng_expr* x, ng_expr* offsets, ng_fold how)
{
    return of_two("ng_segment", x, "x", offsets, "offsets", [&](Graph& g, const NodeRef& n, const NodeRef& o) { return build::segment(g, n, o, how); });
}

ng_expr* ng_argsort(ng_expr* x, int32_t axis, uint32_t flags)
{
    return of_one("ng_argsort", x, [&](Graph& g, const NodeRef& n) { return build::argsort(g, n, axis, flags); });
}

// ---- marks, derivatives ------------------------------------------------------------------------------

ng_expr* ng_tag(ng_expr* x, const char* name)
{
    return of_one("ng_tag", x, [&](Graph& g, const NodeRef& n) { return build::tag(g, n, name); });
}

ng_expr* ng_keep(ng_expr* x)
{
    return of_one("ng_keep", x, [&](Graph& g, const NodeRef& n) { return build::keep(g, n); });
}

ng_expr* ng_surrogate(ng_expr* value, ng_expr* path)
{
    return build_expr("ng_surrogate", [&](Building& b) {
        const NodeRef v = b.operand(value, "value"), p = b.optional(path, "path");
        return b.build([&](Graph& g) { return build::surrogate(g, v, p); });
    });
}

ng_expr* ng_custom_grad(ng_expr* y, ng_expr* dy, ng_expr* const* x, ng_expr* const* dx, uint32_t n)
{
    return build_expr("ng_custom_grad", [&](Building& b) {
        const NodeRef value = b.operand(y, "y"), seed = b.operand(dy, "dy");
        const std::vector<NodeRef> at = b.operands(x, n, "x"), by = b.operands(dx, n, "dx");
        return b.build([&](Graph& g) { return build::custom_grad(g, value, seed, at, by); });
    });
}

ng_expr* ng_subst(ng_expr* e, ng_expr* const* from, ng_expr* const* to, uint32_t n)
{
    return build_expr("ng_subst", [&](Building& b) {
        const NodeRef x = b.operand(e, "e");
        const std::vector<NodeRef> old = b.operands(from, n, "from"), now = b.operands(to, n, "to");
        return b.build([&](Graph& g) { return build::subst(g, x, old, now); });
    });
}

ng_status ng_grad(ng_expr* const* y, ng_expr* const* dy, uint32_t ny, ng_expr* const* wrt, ng_expr** dx, uint32_t n, ng_error* err)
{
    return guard(err, [&] {
        Building b("ng_grad");
        const std::vector<NodeRef> of = b.operands(y, ny, "y"), by = b.operands(wrt, n, "wrt");
        std::vector<NodeRef> seeds(dy ? ny : 0);
        for (size_t j = 0; j < seeds.size(); j++) seeds[j] = dy[j] ? b.operand(dy[j], "dy", int32_t(j)) : NodeRef();
        if (!dx && n) throw Error(NG_E_INVALID, "ng_grad: dx is NULL, and there is nowhere to put the derivatives");
        bool no_path = false;
        const std::vector<ng_expr*> made = b.build_all([&](Graph& g) {
            std::vector<NodeRef> out;
            no_path = grad(g, of, seeds, by, out);
            return out;
        });
        std::copy(made.begin(), made.end(), dx);
        return no_path ? NG_NO_PATH : NG_OK;
    });
}

// ---- products ------------------------------------------------------------------------------------------

ng_expr* ng_matmul(ng_expr* a, ng_expr* b, const ng_matmul_desc* d)
{
    return of_two("ng_matmul", a, "a", b, "b", [&](Graph& g, const NodeRef& x, const NodeRef& y) {
        return build::matmul(g, x, y, d ? read_struct(d, "ng_matmul", "ng_matmul_desc").flags : 0);
    });
}

ng_expr* ng_conv(ng_expr* x, ng_expr* w, const ng_conv_desc* d)
{
    return of_two("ng_conv", x, "x", w, "w", [&](Graph& g, const NodeRef& n, const NodeRef& m) { return build::conv(g, n, m, d); });
}

ng_expr* ng_conv_dx(ng_expr* w, ng_expr* dy, const ng_shape* x, const ng_conv_desc* d)
{
    return of_two("ng_conv_dx", w, "w", dy, "dy", [&](Graph& g, const NodeRef& n, const NodeRef& m) { return build::conv_dx(g, n, m, layout_of(x, "ng_conv_dx", "x"), d); });
}

ng_expr* ng_conv_dw(ng_expr* x, ng_expr* dy, const ng_shape* w, const ng_conv_desc* d)
{
    return of_two("ng_conv_dw", x, "x", dy, "dy", [&](Graph& g, const NodeRef& n, const NodeRef& m) { return build::conv_dw(g, n, m, layout_of(w, "ng_conv_dw", "w"), d); });
}

ng_expr* ng_pool(ng_expr* x, const ng_pool_desc* d)
{
    return of_one("ng_pool", x, [&](Graph& g, const NodeRef& n) { return build::pool(g, n, d); });
}

ng_expr* ng_pool_dx(ng_expr* x, ng_expr* dy, const ng_pool_desc* d)
{
    return of_two("ng_pool_dx", x, "x", dy, "dy", [&](Graph& g, const NodeRef& n, const NodeRef& m) { return build::pool_dx(g, n, m, d); });
}

// ---- questions -----------------------------------------------------------------------------------------

namespace {

Pin<const Node> sound(const ng_expr* e, const char* who)
{
    Pin<const Node> pin = need<const Node>(e, who, "e");
    if (pin->is_poison()) throw *pin->extra->error;
    return pin;
}

}  // namespace

ng_status ng_expr_shape(const ng_expr* e, ng_shape* out, ng_error* err)
{
    return guard(err, [&] {
        const Pin<const Node> n = sound(e, "ng_expr_shape");
        ng_shape d = {};
        const bool literal = n->op == Op::constant && n->weak;
        d.dtype = info(literal ? (n->dtype == Dtype::f64 ? Dtype::f32 : Dtype::i32) : n->dtype).code;
        d.ndim = n->rank(), d.flags = NG_STRIDED;
        const bool has_strides = n->op == Op::leaf || n->op == Op::param;
        const Extents strides = has_strides ? n->extra->extents : dense_strides(n->dims());
        if (n->op == Op::param && n->int_at(0)) d.flags = NG_ANY;
        for (size_t i = 0; i < n->dims().size(); i++) d.dims[i] = n->dims()[i].as_dim(), d.strides[i] = strides[i].as_dim();
        write_struct(out, d, "ng_expr_shape", "ng_shape");
        return NG_OK;
    });
}

ng_status ng_expr_text(const ng_expr* e, char* buf, size_t* bytes, ng_error* err)
{
    return guard(err, [&] {
        const Pin<const Node> n = sound(e, "ng_expr_text");
        return copy_out(to_text(n.ref()) + '\0', buf, bytes, "ng_expr_text");
    });
}

ng_status ng_expr_bind(ng_expr* e, ng_tensor* t, ng_error* err)
{
    return guard(err, [&] {
        const Pin<const Node> n = sound(e, "ng_expr_bind");
        const Pin<Tensor> tensor = need<Tensor>(t, "ng_expr_bind", "t");
        if (n->op != Op::leaf) throw Error(NG_E_INVALID, text("ng_expr_bind: e is ", describe(*n), ", made by ng_", name_of(n->op), "; only a leaf can be bound"));
        const Layout l = layout_of(*tensor);
        if (l.dtype != n->dtype) throw Error(NG_E_DTYPE, text("ng_expr_bind: e is ", describe(*n), ", t ", text_of(*tensor)));
        if (l.dims != n->dims()) throw Error(NG_E_SHAPE, text("ng_expr_bind: e is ", describe(*n), ", t ", text_of(*tensor), ": their shapes should be equal"));
        if (l.strides != n->extra->extents)
            throw Error(NG_E_SHAPE, text("ng_expr_bind: e is ", describe(*n), " of strides ", text_of(n->extra->extents), ", t of strides ", text_of(l.strides), ": they should be equal"));
        const Pin<Scope> scope(n.owner());
        std::unique_lock<std::mutex> hold;
        if (scope) hold = std::unique_lock(scope->lock());
        bind_leaf(*n, as_leaf(tensor.ref(), "ng_expr_bind"));
        return NG_OK;
    });
}

ng_status ng_tensor_view(ng_expr* e, ng_tensor** out, ng_error* err)
{
    return guard(err, [&] {
        const Pin<const Node> n = sound(e, "ng_tensor_view");
        need_out(out, "ng_tensor_view");
        const Ref<Tensor> view = view_of_leaf(*n);
        const Entry entry(view->context(), "ng_tensor_view");
        view->context().remove_quiet();
        *out = to_handle<ng_tensor>(make_handle(view));
        return NG_OK;
    });
}
