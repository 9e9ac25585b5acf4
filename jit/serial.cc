// Writes programs as bytes: what is computed, each node once, operations by their names.
#include "jit/serial.h"

#include "jit/serial_format.h"
#include "jit/snapshot.h"

#include <array>
#include <unordered_map>

namespace ng {
namespace {

using namespace serial;

class Bytes {
  public:
    void number(uint64_t v)
    {
        for (; v >= 128; v >>= 7) out_.push_back(char(v | 128));
        out_.push_back(char(v));
    }
    void signed_number(int64_t v) { number(uint64_t(v) << 1 ^ uint64_t(v >> 63)); }
    void fixed(uint64_t v)
    {
        for (int i = 0; i < 8; i++) out_.push_back(char(v >> 8 * i));
    }
    void text(std::string_view s) { number(s.size()), out_.append(s); }
    void raw(std::string_view s) { out_.append(s); }
    void extent(const Extent& e)
    {
        if (e.is_constant()) return number(0), signed_number(e.constant());
        const std::vector<Term> terms = e.terms();
        number(terms.size());
        for (const Term& t : terms) {
            signed_number(t.coefficient), number(t.variables.size());
            for (const int32_t v : t.variables) number(uint64_t(v));
        }
    }
    void extents(const Extents& list)
    {
        number(list.size());
        for (const Extent& e : list) extent(e);
    }
    const std::string& str() const { return out_; }

  private:
    std::string out_;
};

struct SameShape {
    size_t operator()(const ShapeRef& s) const { return s->hash; }
    bool   operator()(const ShapeRef& a, const ShapeRef& b) const { return same(a, b); }
};

// A custom derivative counts in no program: its node stays as a mark, so that names and steps are what they were.
Op saved_op(const Node& n) { return n.op == Op::custom_grad ? Op::surrogate : n.op; }

class Saver {
  public:
    Saver(std::span<const NodeRef> roots, const CompileOptions& options) : graph_(roots), options_(options)
    {
        op_places_.fill(-1), dtype_places_.fill(-1);
    }
    std::string run();

  private:
    void check(uint32_t at) const;
    [[noreturn]] void refuse_leaf(uint32_t leaf) const;
    void node(uint32_t at);
    void layouts(Bytes& out);
    uint64_t place(Op op);
    uint64_t place(Dtype t);
    uint64_t place(const ShapeRef& shape);

    Snapshot              graph_;
    const CompileOptions& options_;
    Bytes                 nodes_;
    std::array<int, OPS>    op_places_;
    std::array<int, DTYPES> dtype_places_;
    std::vector<Op>       ops_;
    std::vector<Dtype>    dtypes_;
    std::vector<ShapeRef> shapes_;
    std::unordered_map<ShapeRef, uint64_t, SameShape, SameShape> shape_places_;
};

uint64_t Saver::place(Op op)
{
    int& at = op_places_[size_t(op)];
    if (at < 0) at = int(ops_.size()), ops_.push_back(op);
    return uint64_t(at);
}

uint64_t Saver::place(Dtype t)
{
    int& at = dtype_places_[size_t(t)];
    if (at < 0) at = int(dtypes_.size()), dtypes_.push_back(t);
    return uint64_t(at);
}

uint64_t Saver::place(const ShapeRef& shape)
{
    const auto [at, fresh] = shape_places_.try_emplace(shape, shapes_.size());
    if (fresh) shapes_.push_back(shape);
    return at->second;
}

// The tag is above the leaf, perhaps with movement in between.
void Saver::refuse_leaf(uint32_t leaf) const
{
    std::string name;
    for (uint32_t i = leaf; i < graph_.size() && name.empty(); i++) {
        if (graph_[i].op != Op::tag) continue;
        uint32_t below = i;
        for (int steps = 0; steps < 16 && below != leaf && !graph_.args(below).empty(); steps++) below = graph_.arg(below, 0);
        if (below == leaf) name = graph_[i].extra->text;
    }
    throw Error(NG_E_INVALID, text("ng_prog_save: ", name.empty() ? "" : quoted(name) + ", ", describe(graph_[leaf]),
                                   ", is a leaf: a saved program has no tensors of its own; make it an ng_param"));
}

void Saver::check(uint32_t at) const
{
    const Node& n = graph_[at];
    if (n.op == Op::leaf) refuse_leaf(at);
    if (n.is_poison()) throw *n.extra->error;
    if (n.op == Op::param && uint64_t(n.value) > MAX_PARAM)
        throw Error(NG_E_INVALID, text("ng_prog_save: ", describe(n), " stands for a cotangent and is no argument"));
    if (n.weak) throw Error(NG_E_BUG, text("ng_prog_save: a literal without a type is below ", describe(n)));
}

void Saver::node(uint32_t at)
{
    check(at);
    const Node& n = graph_[at];
    const Op op = saved_op(n);
    const NodeExtra* extra = op == n.op ? n.extra.get() : nullptr;
    nodes_.number(place(op)), nodes_.number(place(n.dtype)), nodes_.number(place(n.shape));
    uint64_t parts = n.value ? HAS_VALUE : 0;
    if (extra) parts |= (extra->ints.empty() ? 0 : HAS_INTS) | (extra->extents.empty() ? 0 : HAS_EXTENTS) | (n.op == Op::tag ? HAS_NAME : 0);
    nodes_.number(parts);
    nodes_.number(graph_.args(at).size());
    for (const uint32_t a : graph_.args(at)) nodes_.number(at - a);
    if (parts & HAS_VALUE) nodes_.signed_number(n.value);
    if (parts & HAS_INTS) {
        nodes_.number(extra->ints.size());
        for (const int64_t i : extra->ints) nodes_.signed_number(i);
    }
    if (parts & HAS_EXTENTS) nodes_.extents(extra->extents);
    if (parts & HAS_NAME) nodes_.text(extra->text);
}

void Saver::layouts(Bytes& out)
{
    out.number(options_.outs.empty() ? 0 : 1);
    for (size_t j = 0; j < options_.outs.size(); j++) {
        const Layout& l = options_.outs[j];
        if (!options_.declared[j]) {
            out.number(0);                               // the expression's own: known again when loaded
            continue;
        }
        out.number(uint64_t(DECLARED | (l.strided ? STRIDED : 0) | (l.any ? ANY : 0) | (l.readonly ? READONLY : 0) | (l.host ? HOST : 0)));
        out.number(info(l.dtype).code);
        out.extents(l.dims);
        if (!l.strided) continue;
        for (const Extent& e : l.strides) out.extent(e);
    }
}

std::string Saver::run()
{
    if (graph_.size() > MAX_NODES) throw Error(NG_E_LIMIT, text("ng_prog_save: the program has ", graph_.size(), " nodes, the limit is ", MAX_NODES));
    for (uint32_t i = 0; i < graph_.size(); i++) node(i);
    Bytes body;
    body.number(options_.runs), body.number(options_.flags), body.number(options_.workspace_max);
    body.number(options_.length_max.size());
    for (const int64_t most : options_.length_max) body.number(uint64_t(most));
    body.number(ops_.size());
    for (const Op op : ops_) body.text(name_of(op));
    body.number(dtypes_.size());
    for (const Dtype t : dtypes_) body.number(info(t).code);
    body.number(shapes_.size());
    for (const ShapeRef& s : shapes_) body.extents(s->dims);
    body.number(graph_.size());
    body.raw(nodes_.str());
    body.number(graph_.roots.size());
    for (const uint32_t r : graph_.roots) body.number(r);
    body.number(options_.alias.size());
    for (const int32_t a : options_.alias) body.number(uint64_t(a + 1));
    layouts(body);

    Bytes out;
    out.raw(MAGIC), out.raw({reinterpret_cast<const char*>(&VERSION), 1});
    out.fixed(checksum(body.str()));
    out.raw(body.str());
    return out.str();
}

}  // namespace

std::string save(std::span<const NodeRef> roots, const CompileOptions& options)
{
    Graph g(roots.size() + 1);
    std::vector<NodeRef> typed;
    for (const NodeRef& r : roots) typed.push_back(build::strong(g, r));
    return Saver(typed, options).run();
}

}  // namespace ng
