// Rebuilds the nodes of saved programs: what the builders take for granted of their own callers is checked here.
#include "jit/serial_node.h"

#include "jit/number.h"

#include <algorithm>

namespace ng::serial {
namespace {

class Rebuilder {
  public:
    Rebuilder(Graph& g, const SavedNode& saved) : g_(g), n_(saved) {}
    NodeRef run();

  private:
    [[noreturn]] void fault(const std::string& what) const { throw Error(NG_E_INVALID, text("ng_prog_load: ng_", name_of(n_.op), ": ", what)); }
    void expect(bool holds, const char* what) const { if (!holds) fault(what); }
    void expect_parts(size_t args, size_t ints, size_t extents) const;
    int32_t  small(int64_t v) const;
    uint32_t natural(int64_t v) const;
    int32_t  axis() const;
    const NodeRef& arg(size_t i) const { return n_.args[i]; }
    const Extents& dims() const { return n_.shape->dims; }
    Layout  layout() const;

    NodeRef without_operands();
    NodeRef movement();
    NodeRef by_index();
    NodeRef product();
    NodeRef mark();
    NodeRef constant();
    NodeRef param();
    NodeRef slice();
    NodeRef view();
    NodeRef permute();
    NodeRef conv();
    NodeRef pool();

    Graph&           g_;
    const SavedNode& n_;
};

void Rebuilder::expect_parts(size_t args, size_t ints, size_t extents) const
{
    if (n_.args.size() != args || n_.ints.size() != ints || n_.extents.size() != extents)
        fault(text("has ", n_.args.size(), " operands, ", n_.ints.size(), " integers and ", n_.extents.size(), " extents, should have ", args, ", ", ints, " and ", extents));
}

int32_t Rebuilder::small(int64_t v) const
{
    if (v != int32_t(v)) fault(text(v, " exceeds 32 bits"));
    return int32_t(v);
}

uint32_t Rebuilder::natural(int64_t v) const
{
    if (v != int64_t(uint32_t(v))) fault(text(v, " is outside 32 bits"));
    return uint32_t(v);
}

// The axis of x that value is; never one counted from the end.
int32_t Rebuilder::axis() const
{
    if (n_.value < 0 || n_.value >= arg(0)->rank()) fault(text("axis ", n_.value, " is outside ", describe(*arg(0))));
    return int32_t(n_.value);
}

Layout Rebuilder::layout() const
{
    Layout l;
    l.dtype = n_.dtype, l.dims = dims();
    return l;
}

// ---- leaves of the graph -----------------------------------------------------------------------------

// The very bits, where a cast to the type leaves them as they are.
NodeRef Rebuilder::constant()
{
    const Number number = Number::of_bits(n_.dtype, n_.value);
    if (number.as(n_.dtype).bits(n_.dtype) != n_.value) fault(text(n_.value, " are the bits of no ", name_of(n_.dtype)));
    expect(dims().empty(), "has axes");
    return build::make(g_, Op::constant, n_.dtype, n_.shape, {}, n_.value);
}

NodeRef Rebuilder::param()
{
    Layout l = layout();
    l.strides = dense_strides(l.dims);
    expect_parts(0, 1, l.dims.size());
    for (const Extent& e : l.dims) expect(e.as_dim() != NG_REST, "an extent is neither a number nor a length");
    expect(n_.ints[0] == 0 || n_.ints[0] == 1, "its mark of any strides is neither 0 nor 1");
    l.any = n_.ints[0], l.strided = n_.extents != l.strides;
    expect(!(l.any && l.strided), "has strides, and any");
    for (const Extent& e : n_.extents) expect(!l.strided || e.is_constant(), "a stride is no number");
    l.strides = n_.extents;
    return build::param(g_, natural(n_.value), l);
}

NodeRef Rebuilder::without_operands()
{
    if (n_.op == Op::param) return param();
    if (n_.op == Op::random) {
        expect_parts(2, 0, 0);
        return build::random(g_, natural(n_.value), arg(0), arg(1), layout());
    }
    expect_parts(0, 0, 0);
    switch (n_.op) {
    case Op::constant: return constant();
    case Op::scalar: return build::scalar(g_, n_.dtype, natural(n_.value));
    case Op::length:
        expect(n_.value >= 0 && n_.value < Extent::HIDDEN, "there is no such length");
        return build::length(g_, Extent::variable(int32_t(n_.value)));
    default: return build::iota(g_, layout(), small(n_.value));
    }
}

// ---- movement ------------------------------------------------------------------------------------------

NodeRef Rebuilder::slice()
{
    expect_parts(1, 1, 1);
    const int32_t a = axis();
    expect(a < int(dims().size()), "its axis is outside its own rank");
    const Extent &have = arg(0)->dims()[size_t(a)], &start = n_.extents[0], &count = dims()[size_t(a)];
    const int64_t step = n_.ints[0];
    expect(step != 0 && step != INT64_MIN, "its step is 0");
    expect(build::slice_fits(have, start, count, step), "it begins or ends outside");
    return build::slice_at(g_, arg(0), a, start, count, step);
}

NodeRef Rebuilder::view()
{
    expect_parts(1, 0, dims().size() + 1);
    Layout l = layout();
    l.strides = dense_strides(l.dims);
    const Extent& offset = n_.extents.back();
    const Extents strides(n_.extents.begin(), n_.extents.end() - 1);
    bool known = ng::product(arg(0)->dims()).is_constant(), down = offset.is_constant() && offset.constant() < 0;
    expect(offset.is_constant(), "its offset is no number");
    l.strided = strides != l.strides;
    for (size_t a = 0; a < strides.size(); a++) {
        expect(!l.strided || strides[a].is_constant(), "a stride is no number");
        known = known && strides[a].is_constant() && l.dims[a].is_constant();
        down = down || (strides[a].is_constant() && strides[a].constant() < 0);
    }
    expect(known || !down, "elements before the first are seen");
    l.strides = strides;
    return build::view(g_, arg(0), l, offset.constant());
}

NodeRef Rebuilder::permute()
{
    expect_parts(1, n_.ints.size(), 0);
    std::vector<int32_t> axes;
    for (const int64_t i : n_.ints) axes.push_back(small(i));
    return build::permute(g_, arg(0), axes);
}

NodeRef Rebuilder::movement()
{
    switch (n_.op) {
    case Op::slice: return slice();
    case Op::view: return view();
    case Op::permute: return permute();
    case Op::concat:
        expect_parts(n_.args.size(), 0, 0);
        return build::concat(g_, n_.args, small(n_.value));
    case Op::cast_stochastic:
        expect_parts(3, 0, 0);
        return build::cast_stochastic(g_, arg(0), n_.dtype, natural(n_.value), arg(1), arg(2));
    default: break;
    }
    expect_parts(1, 0, 0);
    switch (n_.op) {
    case Op::cast: return build::cast(g_, arg(0), n_.dtype);
    case Op::bitcast: return build::bitcast(g_, arg(0), n_.dtype);
    case Op::reshape: return build::reshape(g_, arg(0), dims());
    default: return build::broadcast(g_, arg(0), dims());
    }
}

// ---- calls ---------------------------------------------------------------------------------------------

NodeRef Rebuilder::by_index()
{
    const size_t ints = n_.op == Op::take ? 0 : n_.op == Op::scan ? 2 : 1;
    expect_parts(n_.op == Op::put ? 3 : n_.op == Op::take || n_.op == Op::segment ? 2 : 1, ints, 0);
    switch (n_.op) {
    case Op::take: return build::take(g_, arg(0), arg(1), axis());
    case Op::put: return build::put(g_, arg(0), arg(1), arg(2), axis(), natural(n_.ints[0]));
    case Op::scan: return build::scan(g_, arg(0), axis(), natural(n_.ints[0]), natural(n_.ints[1]));
    case Op::segment: return build::segment(g_, arg(0), arg(1), natural(n_.ints[0]));
    default: return build::argsort(g_, arg(0), axis(), natural(n_.ints[0]));
    }
}

NodeRef Rebuilder::conv()
{
    constexpr size_t INTS = 15;                              // of a ConvShape; the last is the padding value's bits
    expect_parts(2, INTS, 0);
    for (size_t i = 0; i + 1 < INTS; i++) small(n_.ints[i]);
    Node like;
    like.more().ints = n_.ints;
    const ng_conv_desc d = build::conv_desc(like);
    const Extents& filter = n_.op == Op::conv ? arg(1)->dims() : n_.op == Op::conv_dx ? arg(0)->dims() : dims();
    for (size_t a = 2; a < filter.size(); a++)               // times a dilation it stays within 64 bits
        expect(filter[a].is_constant() && filter[a].constant() <= INT32_MAX, "a filter is too large");
    switch (n_.op) {
    case Op::conv: return build::conv(g_, arg(0), arg(1), &d);
    case Op::conv_dx: return build::conv_dx(g_, arg(0), arg(1), layout(), &d);
    default: return build::conv_dw(g_, arg(0), arg(1), layout(), &d);
    }
}

NodeRef Rebuilder::pool()
{
    constexpr size_t INTS = 20;                              // of a PoolShape
    expect(n_.ints.size() == INTS, "has not the integers of a window");
    for (const int64_t i : n_.ints) small(i);
    Node like;
    like.more().ints = n_.ints;
    const ng_pool_desc d = build::pool_desc(like);
    const bool picks = n_.op == Op::pool && n_.value == 1;
    expect_parts(n_.op == Op::pool && !picks ? 1 : 2, INTS, 0);
    if (picks) return build::pool_picked(g_, arg(0), arg(1), &d);
    expect(n_.value == 0, "there is no such pooling");
    return n_.op == Op::pool ? build::pool(g_, arg(0), &d) : build::pool_dx(g_, arg(0), arg(1), &d);
}

NodeRef Rebuilder::product()
{
    if (n_.op == Op::pool || n_.op == Op::pool_dx) return pool();
    if (n_.op != Op::matmul) return conv();
    expect_parts(2, 0, 0);
    return build::matmul(g_, arg(0), arg(1), natural(n_.value));
}

// ---- the rest ------------------------------------------------------------------------------------------

NodeRef Rebuilder::mark()
{
    expect_parts(1, 0, 0);
    switch (n_.op) {
    case Op::tag: return build::tag(g_, arg(0), n_.name.c_str());
    case Op::keep: return build::keep(g_, arg(0));
    default: return build::surrogate(g_, arg(0), {});
    }
}

NodeRef Rebuilder::run()
{
    if (is_map(n_.op)) return expect_parts(info(n_.op).arity, 0, 0), build::map(g_, n_.op, n_.args);
    if (is_fold(n_.op)) {
        if (n_.op == Op::max && n_.ints == std::vector<int64_t>{1}) return expect_parts(1, 1, 0), build::greatest(g_, arg(0), ng_axes(n_.value));
        expect_parts(1, 0, 0);
        return build::reduce(g_, n_.op, arg(0), ng_axes(n_.value), NG_KEEP);
    }
    switch (n_.op) {
    case Op::param: case Op::scalar: case Op::length: case Op::constant: case Op::iota: case Op::random: return without_operands();
    case Op::cast: case Op::cast_stochastic: case Op::bitcast: case Op::reshape: case Op::broadcast: case Op::permute:
    case Op::slice: case Op::concat: case Op::view: return movement();
    case Op::take: case Op::put: case Op::scan: case Op::segment: case Op::argsort: return by_index();
    case Op::matmul: case Op::conv: case Op::conv_dx: case Op::conv_dw: case Op::pool: case Op::pool_dx: return product();
    case Op::tag: case Op::keep: case Op::surrogate: return mark();
    default: fault("is no part of a saved program");
    }
}

}  // namespace

NodeRef rebuilt(Graph& g, const SavedNode& saved)
{
    NodeRef n = Rebuilder(g, saved).run();
    if (n->dtype != saved.dtype || n->dims() != saved.shape->dims || n->weak)
        throw Error(NG_E_INVALID, text("ng_prog_load: ng_", name_of(saved.op), " is said to be ", name_of(saved.dtype), " ", text_of(saved.shape->dims), ", it would be ", describe(*n)));
    return n;
}

}  // namespace ng::serial
