// Building marks on nodes, and whole expressions anew with other parts.
#include "jit/build.h"

#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace ng::build {
namespace {

// Of rules the value alone: what ng_grad gives is not computed.
bool is_value(const Node& n, size_t operand) { return n.op != Op::custom_grad || (operand != 1 && operand < 2 + size_t(n.int_at(0))); }

// Looks for dy below what rules compute, the newest nodes first. What is older than dy cannot use it, and what belongs to
// the value of a rule of the same dy does not: it was refused, or searched. So rules upon rules of one dy, or each of one
// made for it, are searched once.
class Search {
  public:
    explicit Search(const Node& dy) : dy_(dy) {}
    bool finds_below(const NodeRef& root);

  private:
    struct Entry {
        int32_t     age;
        const Node* node;
        bool operator<(const Entry& o) const { return age < o.age; }
    };
    // Behind dy in the order of birth; of nodes of other graphs any number.
    int32_t age_of(const Node& n) const { return int32_t(n.place() - dy_.place()); }
    bool is_older(const Node& n) const { return dy_.graph() && n.graph() == dy_.graph() && age_of(n) < 0; }

    const Node& dy_;
    std::unordered_set<const Node*> settled_;
};

bool Search::finds_below(const NodeRef& root)
{
    std::priority_queue<Entry> waiting;
    waiting.push({age_of(*root), root.get()});
    while (!waiting.empty()) {
        const Node& n = *waiting.top().node;
        waiting.pop();
        if (&n == &dy_) return true;
        if (is_older(n) || !settled_.insert(&n).second) continue;
        const bool was_searched = n.op == Op::custom_grad && n.arg(1).get() == &dy_;
        for (size_t i = 0; i < n.args().size(); i++) {
            const Node& a = *n.arg(i);
            if (!is_value(n, i)) continue;
            if (was_searched) settled_.insert(&a);
            else waiting.push({age_of(a), &a});
        }
    }
    return false;
}

// The indices of params that the values of these use.
std::unordered_set<int64_t> params_below(std::span<const NodeRef> roots)
{
    std::unordered_set<int64_t>     params;
    std::unordered_set<const Node*> seen;
    std::vector<const Node*>        waiting;
    for (const NodeRef& root : roots) waiting.push_back(root.get());
    while (!waiting.empty()) {
        const Node& n = *waiting.back();
        waiting.pop_back();
        if (!seen.insert(&n).second) continue;
        if (n.op == Op::param) params.insert(n.value);
        for (size_t i = 0; i < n.args().size(); i++)
            if (is_value(n, i)) waiting.push_back(n.arg(i).get());
    }
    return params;
}

// What stands for what, by which nodes are the same variable; of several the first counts.
class Replacements {
  public:
    explicit Replacements(std::span<const NodeRef> from)
    {
        for (size_t i = 0; i < from.size(); i++) {
            const Node& n = *from[i];
            if (n.op == Op::param) params_.emplace(n.value, i);
            else if (n.op == Op::leaf) leaves_.emplace(leaf_tensor(n).get(), i);
            else nodes_.emplace(&n, i);
        }
    }
    // The place in from; nothing: it stays.
    std::optional<size_t> find(const Node& n) const
    {
        if (n.op == Op::param) return in(params_, n.value);
        return n.op == Op::leaf ? in(leaves_, static_cast<const void*>(leaf_tensor(n).get())) : in(nodes_, &n);
    }

  private:
    template <class Key>
    static std::optional<size_t> in(const std::unordered_map<Key, size_t>& map, Key key)
    {
        const auto at = map.find(key);
        return at == map.end() ? std::nullopt : std::optional(at->second);
    }
    std::unordered_map<int64_t, size_t>     params_;         // by index
    std::unordered_map<const void*, size_t> leaves_;         // by tensor
    std::unordered_map<const Node*, size_t> nodes_;
};

}  // namespace

NodeRef tag(Graph& g, NodeRef x, const char* name)
{
    if (!name) throw Error(NG_E_INVALID, "ng_tag: name is NULL, should be a string");
    x = strong(g, x);
    Ref<Node> n = raw(Op::tag, x->dtype, x->shape, {&x, 1});
    n->more().text.assign(front_of(name, 255));
    return g.intern(n);
}

NodeRef keep(Graph& g, NodeRef x)
{
    x = strong(g, x);
    return x->op == Op::keep ? x : make(g, Op::keep, x->dtype, x->shape, {x});
}

NodeRef surrogate(Graph& g, NodeRef value, NodeRef path)
{
    value = strong(g, value);
    if (!path) return make(g, Op::surrogate, value->dtype, value->shape, {value});
    path = strong(g, path);
    if (!same(path->shape, value->shape))
        throw Error(NG_E_SHAPE, text("ng_surrogate: the value is ", describe(*value), ", its path ", describe(*path), ": they should have one shape"));
    if (!is_float(path->dtype)) throw Error(NG_E_DTYPE, text("ng_surrogate: the path is ", describe(*path), ", should be floats"));
    return make(g, Op::surrogate, value->dtype, value->shape, {value, path});
}

NodeRef custom_grad(Graph& g, NodeRef y, NodeRef dy, std::span<const NodeRef> x, std::span<const NodeRef> dx)
{
    y = strong(g, y);
    if (dy->op != Op::param) throw Error(NG_E_INVALID, text("ng_custom_grad: dy is ", describe(*dy), ", should be an ng_param that stands for the cotangent"));
    if (!same(dy->shape, y->shape)) throw Error(NG_E_SHAPE, text("ng_custom_grad: dy is ", describe(*dy), ", y ", describe(*y), ": they should have one shape"));
    std::vector<NodeRef> args = {y, dy};
    for (const NodeRef& n : x) args.push_back(strong(g, n));
    for (size_t i = 0; i < dx.size(); i++) {
        const NodeRef d = strong(g, dx[i]);
        if (!same(d->shape, args[2 + i]->shape))
            throw Error(NG_E_SHAPE, text("ng_custom_grad: dx[", i, "] is ", describe(*d), ", x[", i, "] ", describe(*args[2 + i]), ": they should have one shape"), int32_t(i));
        args.push_back(d);
    }
    Search search(*dy);
    const bool is_own = dy->value == OWN_PARAM;
    for (size_t i = 0; i < 2 + x.size() && !is_own; i++) {
        if (i == 1 || !search.finds_below(args[i])) continue;
        const std::string user = i == 0 ? "y" : text("x[", i - 2, "]");
        throw Error(NG_E_INVALID, text("ng_custom_grad: ", user, " uses dy, ", describe(*dy), "; dy should be a param that neither y nor an x uses, as one of an index that is nothing else's"));
    }
    Ref<Node> n = raw(Op::custom_grad, y->dtype, y->shape, args);
    n->more().ints = {int64_t(x.size())};
    return g.intern(n);
}

// By the checked builders where types and shapes may change, else by copying.
NodeRef rebuild(Graph& g, const Node& n, std::span<const NodeRef> a)
{
    const auto as_x = [&](const Node& like) { Layout l; l.dtype = like.dtype, l.dims = like.dims(); return l; };
    if (is_map(n.op)) return map(g, n.op, a);
    switch (n.op) {
    case Op::cast: return cast(g, a[0], n.dtype);
    case Op::bitcast: return bitcast(g, a[0], n.dtype);
    case Op::reshape: return reshape(g, a[0], n.dims());
    case Op::broadcast: return broadcast(g, a[0], n.dims());
    case Op::concat: return concat(g, a, int32_t(n.value));
    case Op::take: return take(g, a[0], a[1], int32_t(n.value));
    case Op::put: return put(g, a[0], a[1], a[2], int32_t(n.value), uint32_t(n.int_at(0)));
    case Op::scan: return scan(g, a[0], int32_t(n.value), uint32_t(n.int_at(0)), uint32_t(n.int_at(1)));
    case Op::segment: return segment(g, a[0], a[1], uint32_t(n.int_at(0)));
    case Op::argsort: return argsort(g, a[0], int32_t(n.value), uint32_t(n.int_at(0)));
    case Op::matmul: return reshape(g, matmul(g, a[0], a[1], uint32_t(n.value)), n.dims());
    case Op::conv: { const ng_conv_desc d = conv_desc(n); return conv(g, a[0], a[1], &d); }
    case Op::conv_dx: { const ng_conv_desc d = conv_desc(n); return conv_dx(g, a[0], a[1], as_x(n), &d); }
    case Op::conv_dw: { const ng_conv_desc d = conv_desc(n); return conv_dw(g, a[0], a[1], as_x(n), &d); }
    case Op::pool: { const ng_pool_desc d = pool_desc(n); return n.value == 1 ? pool_picked(g, a[0], a[1], &d) : pool(g, a[0], &d); }
    case Op::pool_dx: { const ng_pool_desc d = pool_desc(n); return pool_dx(g, a[0], a[1], &d); }
    case Op::tag: return tag(g, a[0], n.extra->text.c_str());
    case Op::keep: return keep(g, a[0]);
    case Op::surrogate: return surrogate(g, a[0], a.size() > 1 ? a[1] : NodeRef());
    default: break;
    }
    const auto old = n.args();
    for (size_t i = 0; i < a.size(); i++)
        if (a[i]->dtype != old[i]->dtype || !same(a[i]->shape, old[i]->shape))
            throw Error(NG_E_SHAPE, text("ng_subst: below ng_", name_of(n.op), " stands ", describe(*a[i]), " for ", describe(*old[i]), ": types and shapes should be equal there"));
    Ref<Node> copy = raw(n.op, n.dtype, n.shape, a, n.value);
    if (n.extra) {
        NodeExtra& e = copy->more();
        e.ints = n.extra->ints, e.extents = n.extra->extents, e.text = n.extra->text;
    }
    return g.intern(copy);
}

NodeRef subst(Graph& g, NodeRef e, std::span<const NodeRef> from, std::span<const NodeRef> to)
{
    const Replacements replacements(from);
    std::optional<std::unordered_set<int64_t>> brought;
    // A rule's dy may not be among what its value uses now, or be something else.
    const auto is_as_before = [&](const Node& rule, const NodeRef& dy) {
        if (!brought) brought = params_below(to);
        return dy == rule.arg(1) && !brought->contains(dy->value);
    };
    const auto again = [&](const Node& n, std::span<const NodeRef> args) {
        if (n.op != Op::custom_grad || is_as_before(n, args[1])) return rebuild(g, n, args);
        const auto count = size_t(n.int_at(0));
        return custom_grad(g, args[0], args[1], args.subspan(2, count), args.subspan(2 + count));
    };
    std::unordered_map<const Node*, NodeRef> now;
    for (const Node* n : topological({&e, 1})) {
        if (const auto i = replacements.find(*n)) {
            now.emplace(n, strong(g, to[*i]));
            continue;
        }
        bool changed = false;
        std::vector<NodeRef> args;
        for (const NodeRef& a : n->args()) {
            args.push_back(now.at(a.get()));
            changed = changed || args.back() != a;
        }
        now.emplace(n, changed ? again(*n, args) : NodeRef(n));
    }
    return now.at(e.get());
}

}  // namespace ng::build
