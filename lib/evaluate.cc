// ng_eval: one plan for the tensors at hand, run once.
#include "jit/reference.h"
#include "jit/snapshot.h"
#include "lib/leaves.h"
#include "lib/program.h"
#include "lib/spans.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace ng {
namespace {

struct Taken {
    const Node* leaf;
    uint32_t    binds;           // before its tensor was read
    Ref<Tensor> tensor;
};

// With the name that a tag upon it gives.
std::string described(const Node& n, const Snapshot& computed)
{
    for (uint32_t i = 0; i < computed.size(); i++)
        if (computed.ops[i] == Op::tag && computed[i].arg(0).get() == &n) return describe(computed[i]);
    return describe(n);
}

// The leaves' tensors, each read once and checked; another thread may bind a leaf anew meanwhile. What only derivatives use
// is not looked at: the rules of softmax and its like have a param of their own.
std::vector<Taken> leaves_of(Context& context, const Snapshot& computed)
{
    std::vector<Taken> all;
    for (uint32_t i = 0; i < computed.size(); i++) {
        if (is_map(computed.ops[i])) continue;                // of its operands' lengths
        const Node* const n = computed.nodes[i];
        if (n->op == Op::param) throw Error(NG_E_INVALID, text("ng_eval: ", described(*n, computed), " is ng_param ", n->value, "; only a program has arguments"));
        if (n->op == Op::scalar) throw Error(NG_E_INVALID, text("ng_eval: ", described(*n, computed), " is an ng_scalar, which has no value outside a program's run"));
        const bool is_open = std::ranges::any_of(n->dims(), [](const Extent& e) { return !e.is_constant(); });
        if (is_open || n->op == Op::length) throw Error(NG_E_INVALID, text("ng_eval: ", described(*n, computed), " has a length that is known when run; that needs a program: ng_compile"));
        if (n->op != Op::leaf) continue;
        const uint32_t binds = leaf_binds(*n);
        Ref<Tensor> t = tensor_of(*n);
        if (t->context().is_lost()) throw Error(NG_E_LOST, text("ng_eval: the context of ", described(*n, computed), " is closed"));
        if (&t->context() != &context) throw Error(NG_E_INVALID, text("ng_eval: ", described(*n, computed), " is a leaf of another context"));
        all.push_back({n, binds, std::move(t)});
    }
    return all;
}

// Whether the snapshot took some nodes for one that are not the same: leaves that had one tensor then.
bool has_twins(const Snapshot& graph, std::span<const NodeRef> roots)
{
    for (size_t j = 0; j < roots.size(); j++)
        if (roots[j].get() != graph.nodes[graph.roots[j]]) return true;
    for (uint32_t i = 0; i < graph.size(); i++)
        for (size_t k = 0; k < graph.args(i).size(); k++)
            if (graph[i].arg(k).get() != graph.nodes[graph.arg(i, k)]) return true;
    return false;
}

bool was_bound(const Taken& taken) { return leaf_binds(*taken.leaf) != taken.binds; }

// The same expressions over leaves of their own, which nobody binds.
std::vector<NodeRef> frozen(std::span<const NodeRef> roots)
{
    std::unordered_map<const Node*, NodeRef> copies;
    for (const Node* n : topological(roots)) {
        std::vector<NodeRef> args;
        for (const NodeRef& a : n->args()) args.push_back(copies.at(a.get()));
        if (n->op != Op::leaf && std::ranges::equal(args, n->args())) {
            copies.emplace(n, n);
            continue;
        }
        Ref<Node> copy = build::raw(n->op, n->dtype, n->shape, args, n->value);
        copy->weak = n->weak;
        if (n->extra) copy->more().ints = n->extra->ints, copy->more().extents = n->extra->extents, copy->more().text = n->extra->text;
        if (n->op == Op::leaf) copy->more().tensor = leaf_tensor(*n);
        copies.emplace(n, NodeRef(copy.get()));
    }
    std::vector<NodeRef> out;
    for (const NodeRef& root : roots) out.push_back(copies.at(root.get()));
    return out;
}

Target target_of(const Node& root, size_t j, const Tensor* out)
{
    Target t;
    t.layout.dtype = root.dtype, t.layout.dims = root.dims(), t.layout.strides = dense_strides(root.dims());
    if (!out) return t;
    if (out->dtype != root.dtype)
        throw Error(NG_E_DTYPE, text("ng_eval: output ", j, " is ", text_of(*out), ", the expression ", describe(root), "; nothing is converted in silence: ng_cast"), int32_t(j));
    t.layout = layout_of(*out);
    if (!build::broadcasts(root.dims(), t.layout.dims))
        throw Error(NG_E_SHAPE, text("ng_eval: output ", j, " is ", text_of(*out), ", the expression ", describe(root), ", which does not broadcast to it"), int32_t(j));
    return t;
}

// What outputs share with each other, which is refused, and with leaves.
void find_overlaps(std::span<Target> targets, std::span<const Ref<Tensor>> outs, std::span<const Taken> leaves)
{
    std::vector<Span> spans;
    for (size_t j = 0; j < outs.size(); j++)
        if (outs[j]) spans.push_back({outs[j]->begin, outs[j]->end, j, true});
    for (size_t i = 0; i < leaves.size(); i++) spans.push_back({leaves[i].tensor->begin, leaves[i].tensor->end, outs.size() + i});
    find_meetings(spans, [&](size_t one, size_t other) {
        const size_t j = std::min(one, other), b = std::max(one, other);
        const Tensor& out = *outs[j];
        if (b >= outs.size()) {
            const Tensor& leaf = *leaves[b - outs.size()].tensor;
            if (same_elements(out, leaf)) targets[j].alias_leaves.push_back(&leaf);
            else if (overlaps(out, leaf)) targets[j].overlaps = true;
        } else if (overlaps(out, *outs[b])) {
            throw Error(NG_E_INVALID, text("ng_eval: outputs ", j, " and ", b, " overlap"), int32_t(b));
        }
    });
}

void check_outputs(std::span<const Ref<Tensor>> outs, const Context& context)
{
    for (size_t j = 0; j < outs.size(); j++) {
        if (!outs[j]) continue;
        if (&outs[j]->context() != &context) throw Error(NG_E_INVALID, text("ng_eval: out[", j, "] is of another context"), int32_t(j));
        if (outs[j]->is_readonly()) throw Error(NG_E_INVALID, text("ng_eval: out[", j, "] is NG_READONLY"), int32_t(j));
        if (!outs[j]->is_injective) throw Error(NG_E_INVALID, text("ng_eval: out[", j, "], ", text_of(*outs[j]), ", has strides by which some of its elements share a place"), int32_t(j));
    }
}

struct Evaluation {
    Plan plan;
    std::vector<Ref<Tensor>>  results, read;     // by output, by Plan::leaves
    std::vector<Use>          uses;
    std::unique_ptr<Executor> executor;
};

// The tensors that the plan's leaves had when they were taken. False: one was bound anew since, and of which tensors the
// plan was made is not known.
bool find_read(Evaluation& e, std::span<const Taken> leaves)
{
    if (std::ranges::any_of(leaves, was_bound)) return false;
    std::unordered_map<const Node*, const Ref<Tensor>*> taken;
    for (const Taken& t : leaves) taken.emplace(t.leaf, &t.tensor);
    for (const NodeRef& leaf : e.plan.leaves) {
        const auto at = taken.find(leaf.get());
        if (at == taken.end()) return false;
        e.read.push_back(*at->second);
        e.uses.push_back(use_of(*e.read.back(), "ng_eval", "a leaf"));
    }
    return true;
}

void find_results(Evaluation& e, Context& context, std::span<const NodeRef> roots, std::span<const Ref<Tensor>> outs)
{
    for (size_t j = 0; j < roots.size(); j++) {
        if (outs[j]) {
            e.results.push_back(outs[j]);
        } else {
            TensorForm form;
            form.dtype = roots[j]->dtype, form.rank = roots[j]->rank();
            for (int a = 0; a < form.rank; a++) form.dims[size_t(a)] = roots[j]->dims()[size_t(a)].constant();
            form.make_row_major();
            reach_of(form, "ng_eval");
            e.results.push_back(Tensor::create(context, form, "ng_eval"));
        }
        e.uses.push_back(use_of(*e.results.back(), "ng_eval", "out"));
    }
}

// False: a leaf was bound anew meanwhile, and nothing has happened.
bool prepare(Evaluation& e, Context& context, std::span<const NodeRef> roots, std::span<const Ref<Tensor>> outs)
{
    const Snapshot graph(roots);
    const std::vector<Taken> leaves = leaves_of(context, graph);
    // One that was bound ever may have had another tensor when the snapshot was taken.
    if (std::ranges::any_of(leaves, [](const Taken& t) { return t.binds > 0; }) && has_twins(graph, roots)) return false;
    check_outputs(outs, context);
    std::vector<Target> targets;
    for (size_t j = 0; j < roots.size(); j++) targets.push_back(target_of(*roots[j], j, outs[j].get()));
    find_overlaps(targets, outs, leaves);
    const bool is_reference = context.flags() & NG_CTX_REFERENCE;
    Graph oracle(std::numeric_limits<uint32_t>::max());
    std::vector<NodeRef> doubled;
    if (is_reference) doubled = in_double(oracle, roots);
    e.plan = is_reference ? schedule(doubled, targets, 0, Fusion::None) : schedule(roots, targets, 0, Fusion::Usual, &graph, context.backend().turned_bytes());
    if (!find_read(e, leaves)) return false;
    find_results(e, context, roots, outs);
    try {
        e.executor = context.backend().make_executor(e.plan, Backend::Use::Once, false);
        return true;
    } catch (const Error& error) {
        if (error.status != NG_E_LIMIT) throw;
    }
    e.plan = schedule(is_reference ? doubled : roots, targets, 0, Fusion::None);     // some kernel was too large for the device
    e.read.clear();
    if (!find_read(e, leaves)) return false;
    e.executor = context.backend().make_executor(e.plan, Backend::Use::Once, false);
    return true;
}

}  // namespace

std::vector<Ref<Tensor>> evaluate(Context& context, ng_stream s, std::span<const NodeRef> roots, std::span<const Ref<Tensor>> outs)
{
    Evaluation e;
    if (!prepare(e, context, roots, outs)) {
        e = {};
        (void)prepare(e, context, frozen(roots), outs);
    }
    const WorkLayout layout = layout_work(e.plan, {}, *e.executor);
    const WorkPiece piece(context, layout.bytes + 64 + e.executor->scratch_bytes({}, context.parallel().workers()), "ng_eval");
    std::vector<char*> buffers;
    for (size_t b = 0; b < e.plan.buffers.size(); b++) {
        const Buffer& buffer = e.plan.buffers[b];
        const auto index = size_t(buffer.index);
        buffers.push_back(buffer.place == Place::Work ? piece.memory() + layout.offsets[b] : buffer.place == Place::Out ? e.results[index]->data : e.read[index]->data);
    }
    const int64_t none = 0;
    Ordered order(context.backend(), s);
    if (context.backend().is_capturing()) throw Error(NG_E_INVALID, "ng_eval: s is capturing: what is evaluated takes memory, which a capture cannot keep; ng_prog_run is for that");
    piece.touch(order);
    for (const Ref<Tensor>& t : e.results) touch(order, *t, true);
    for (const Ref<Tensor>& t : e.read) touch(order, *t, false);
    e.executor->run({&none, buffers.data(), nullptr, piece.memory() + layout.bytes, s}, context.parallel());
    order.close();
    context.counters.launches.fetch_add(e.plan.steps.size(), std::memory_order_relaxed);
    return std::move(e.results);
}

}  // namespace ng
