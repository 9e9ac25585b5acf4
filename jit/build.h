// Building: types and shapes inferred, the obvious folded, then the node interned. Every wrong call throws its Error.
#pragma once
#include "jit/graph.h"

#include <initializer_list>

namespace ng {

// As ng_shape, checked: dims of NG_REST are refused, negative ones are variables.
struct Layout {
    Dtype    dtype = Dtype::f32;
    Extents  dims;
    Extents  strides;        // row-major where the caller gave none
    bool     strided = false, any = false, readonly = false, host = false;
};
Layout layout_of(const ng_shape* d, const char* who, const char* parameter = "d");
// Throws where its size ends before what its rank and flags say that it has.
void need_size(const ng_shape& d, const char* who);
// Throws NG_E_LIMIT unless a shape may have so many axes.
void need_rank(int64_t ndim, const char* who);
// A shape's dims as ng.h has them; NG_REST for a polynomial.
Extents extents_of(const int64_t* dims, uint32_t count, const char* who);

struct ConvShape {           // what ng_conv_desc says, defaults filled in; spatial axes
    std::array<int32_t, 3> stride, dilate, pad_lo, pad_hi;
    int32_t groups, flags;
    double  pad_value;
};
struct PoolShape {
    int32_t kind, flags;
    std::array<int32_t, 3> window, stride, dilate, pad_lo, pad_hi;
    int32_t channel_window, channel_stride, channel_pad;
};
ConvShape conv_shape(const Node& conv);
PoolShape pool_shape(const Node& pool);
enum class Fold : int64_t { Last, Sum, Prod, Min, Max };   // ng_fold

namespace build {

// A cotangent inside a rule of our own: no user's param has this index.
inline constexpr int64_t OWN_PARAM = 1 << 16;

// Leaves. who: the C function, for sentences.
NodeRef constant(Graph& g, Dtype t, double value);           // rounded to t as a cast would
NodeRef constant_int(Graph& g, Dtype t, int64_t value);
NodeRef weak(Graph& g, double value);                        // 1.5 in a text
NodeRef weak_int(Graph& g, int64_t value);                   // 2 in a text
NodeRef leaf(Graph& g, std::shared_ptr<void> tensor, const Layout& layout);
NodeRef param(Graph& g, uint32_t index, const Layout& layout);
NodeRef scalar(Graph& g, Dtype t, uint32_t offset);
NodeRef length(Graph& g, const Extent& e);                   // any polynomial of lengths, as an i64
NodeRef iota(Graph& g, const Layout& shape, int32_t axis);
NodeRef counter_word(Graph& g, const NodeRef& x, const char* name, const char* who);       // a scalar integer, as u64
NodeRef random(Graph& g, uint32_t kind, NodeRef key, NodeRef step, const Layout& shape);   // step null: 0

// Element-wise. Operands of any types and shapes: cast and broadcast here. A weak constant on its own becomes f32 or i32.
NodeRef map(Graph& g, Op op, std::initializer_list<NodeRef> operands);
NodeRef map(Graph& g, Op op, std::span<const NodeRef> operands);
NodeRef zeros_like(Graph& g, const NodeRef& x, Dtype t);     // where x has unknown lengths, of an expression that has x
NodeRef cast(Graph& g, NodeRef x, Dtype t);
NodeRef cast_stochastic(Graph& g, NodeRef x, Dtype t, uint32_t bits, NodeRef key, NodeRef step);
NodeRef bitcast(Graph& g, NodeRef x, Dtype t);
NodeRef strong(Graph& g, NodeRef x);                         // a weak constant as f32 or i32; anything else as it is

// Movement.
NodeRef reshape(Graph& g, NodeRef x, const Extents& dims);   // as many elements, or an error
NodeRef reshape_rest(Graph& g, NodeRef x, std::span<const int64_t> dims);   // ng_reshape's: one may be NG_REST
bool    broadcasts(const Extents& from, const Extents& to);          // whether it may be done
NodeRef broadcast(Graph& g, NodeRef x, const Extents& dims);
NodeRef broadcast(Graph& g, NodeRef x, const ShapeRef& shape);     // of a shape that is there already
NodeRef permute(Graph& g, NodeRef x, std::span<const int32_t> axes);
// Python's rules; NG_END is what leaving it out means there: x[::-1] is slice(x, axis, NG_END, NG_END, -1).
NodeRef slice(Graph& g, NodeRef x, int32_t axis, int64_t start, int64_t stop, int64_t step);
NodeRef window(Graph& g, NodeRef x, int32_t axis, NodeRef start, int64_t count);
NodeRef concat(Graph& g, std::span<const NodeRef> x, int32_t axis);
NodeRef view(Graph& g, NodeRef x, const Layout& seen, int64_t offset);
// Whether count elements from start on lie inside an axis, as far as that is known before lengths are.
bool slice_fits(const Extent& have, const Extent& start, const Extent& count, int64_t step);
// count elements of an axis from start on; start and count are in range, whoever calls this made sure.
NodeRef slice_at(Graph& g, NodeRef x, int32_t axis, const Extent& start, const Extent& count, int64_t step);

// By index.
NodeRef take(Graph& g, NodeRef x, NodeRef indices, int32_t axis);
NodeRef put(Graph& g, NodeRef x, NodeRef indices, NodeRef y, int32_t axis, uint32_t how);
NodeRef scan(Graph& g, NodeRef x, int32_t axis, uint32_t how, uint32_t flags);
NodeRef segment(Graph& g, NodeRef x, NodeRef offsets, uint32_t how);
NodeRef argsort(Graph& g, NodeRef x, int32_t axis, uint32_t flags);

// Reductions over the axes whose bits are set; NG_KEEP leaves them as 1. Folds and composed ones.
NodeRef reduce(Graph& g, Op op, NodeRef x, ng_axes axes, uint32_t flags);
NodeRef norm(Graph& g, Op op, NodeRef x, ng_axes axes);
// The maximum with NG_KEEP of floats, where nothing has one too: -inf.
NodeRef greatest(Graph& g, const NodeRef& x, ng_axes axes);

// Products, with windows as the descriptions of ng.h say; null: the defaults.
NodeRef matmul(Graph& g, NodeRef a, NodeRef b, uint32_t flags);
NodeRef conv(Graph& g, NodeRef x, NodeRef w, const ng_conv_desc* d);
NodeRef conv_dx(Graph& g, NodeRef w, NodeRef dy, const Layout& x, const ng_conv_desc* d);
NodeRef conv_dw(Graph& g, NodeRef x, NodeRef dy, const Layout& w, const ng_conv_desc* d);
NodeRef pool(Graph& g, NodeRef x, const ng_pool_desc* d);
NodeRef pool_dx(Graph& g, NodeRef x, NodeRef dy, const ng_pool_desc* d);
// The transpose of pool_dx of maxima: from, of x's shape, at the first greatest element of x in every window. A pool of value 1.
NodeRef pool_picked(Graph& g, NodeRef x, NodeRef from, const ng_pool_desc* d);
// The same, for what is derived from a node that exists.
ng_conv_desc conv_desc(const Node& conv);
ng_pool_desc pool_desc(const Node& pool);

// Marks.
NodeRef tag(Graph& g, NodeRef x, const char* name);
NodeRef keep(Graph& g, NodeRef x);
NodeRef surrogate(Graph& g, NodeRef value, NodeRef path);    // path null: none
NodeRef custom_grad(Graph& g, NodeRef y, NodeRef dy, std::span<const NodeRef> x, std::span<const NodeRef> dx);
// The node with other operands: types and shapes inferred anew.
NodeRef rebuild(Graph& g, const Node& n, std::span<const NodeRef> args);
NodeRef subst(Graph& g, NodeRef e, std::span<const NodeRef> from, std::span<const NodeRef> to);

// For the parts of the builder themselves.
NodeRef make(Graph& g, Op op, Dtype t, ShapeRef shape, std::initializer_list<NodeRef> args, int64_t value = 0);
Ref<Node> raw(Op op, Dtype t, ShapeRef shape, std::span<const NodeRef> args, int64_t value = 0);
inline ShapeRef shape_ref(Extents dims) { return ShapeRef(new Shape(std::move(dims))); }
// Python's negative ones counted; NG_E_INVALID outside of what is described.
int32_t axis_of(int32_t axis, const Node& x, const char* who);
int32_t axis_of(int32_t axis, Dtype t, const Extents& dims, const char* who);

}  // namespace build
}  // namespace ng
