// ng_eval: one plan for the tensors at hand, run once.
#include "jit/reference.h"
#include "jit/snapshot.h"
#include "lib/leaves.h"
#include "lib/program.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace ng {
namespace {

// The leaves' tensors, checked once; a leaf may be bound anew by another thread meanwhile. What only derivatives use is
// not looked at: the rules of softmax and its like have a param of their own.
std::vector<Ref<Tensor>> leaves_of(Context& context, const Snapshot& computed)
{
    std::vector<Ref<Tensor>> all;
    for (uint32_t i = 0; i < computed.size(); i++) {
        if (is_map(computed.ops[i])) continue;                // of its operands' lengths
        const Node* const n = computed.nodes[i];
        if (n->op == Op::param) throw Error(NG_E_INVALID, text("ng_eval: ", describe(*n), " is ng_param ", n->value, "; only a program has arguments"));
        if (n->op == Op::scalar) throw Error(NG_E_INVALID, "ng_eval: an ng_scalar has no value outside a program's run");
        const bool is_open = std::ranges::any_of(n->dims(), [](const Extent& e) { return !e.is_constant(); });
        if (is_open || n->op == Op::length) throw Error(NG_E_INVALID, text("ng_eval: ", describe(*n), " has a length that is known when run; that needs a program: ng_compile"));
        if (n->op != Op::leaf) continue;
        Ref<Tensor> t = tensor_of(*n);
        if (t->context().is_lost()) throw Error(NG_E_LOST, text("ng_eval: the context of ", describe(*n), " is closed"));
        if (&t->context() != &context) throw Error(NG_E_INVALID, text("ng_eval: ", describe(*n), " is a leaf of another context"));
        all.push_back(std::move(t));
    }
    return all;
}

Target target_of(const Node& root, size_t j, const Tensor* out, std::span<const Ref<Tensor>> leaves)
{
    Target t;
    t.layout.dtype = root.dtype, t.layout.dims = root.dims(), t.layout.strides = dense_strides(root.dims());
    if (!out) return t;
    if (out->dtype != root.dtype)
        throw Error(NG_E_DTYPE, text("ng_eval: output ", j, " is ", text_of(*out), ", the expression ", describe(root), "; nothing is converted in silence: ng_cast"), int32_t(j));
    t.layout = layout_of(*out);
    for (const Ref<Tensor>& leaf : leaves) {
        if (same_elements(*out, *leaf)) t.alias_leaves.push_back(leaf.get());
        else if (overlaps(*out, *leaf)) t.overlaps = true;
    }
    return t;
}

void check_outputs(std::span<const Ref<Tensor>> outs, const Context& context)
{
    for (size_t j = 0; j < outs.size(); j++) {
        if (!outs[j]) continue;
        if (&outs[j]->context() != &context) throw Error(NG_E_INVALID, text("ng_eval: out[", j, "] is of another context"), int32_t(j));
        if (outs[j]->is_readonly()) throw Error(NG_E_INVALID, text("ng_eval: out[", j, "] is NG_READONLY"), int32_t(j));
        if (!outs[j]->is_injective) throw Error(NG_E_INVALID, text("ng_eval: out[", j, "], ", text_of(*outs[j]), ", has strides by which some of its elements share a place"), int32_t(j));
        for (size_t k = 0; k < j; k++)
            if (outs[k] && overlaps(*outs[j], *outs[k])) throw Error(NG_E_INVALID, text("ng_eval: outputs ", k, " and ", j, " overlap"), int32_t(j));
    }
}

}  // namespace

std::vector<Ref<Tensor>> evaluate(Context& context, ng_stream s, std::span<const NodeRef> roots, std::span<const Ref<Tensor>> outs)
{
    const Snapshot graph(roots);
    const std::vector<Ref<Tensor>> leaves = leaves_of(context, graph);
    check_outputs(outs, context);
    std::vector<Target> targets;
    for (size_t j = 0; j < roots.size(); j++) targets.push_back(target_of(*roots[j], j, outs[j].get(), leaves));
    const bool is_reference = context.flags() & NG_CTX_REFERENCE;
    Graph oracle(std::numeric_limits<uint32_t>::max());
    std::vector<NodeRef> doubled;
    if (is_reference) doubled = in_double(oracle, roots);
    Plan plan = is_reference ? schedule(doubled, targets, 0, Fusion::None) : schedule(roots, targets, 0, Fusion::Usual, &graph, context.backend().turned_bytes());
    std::vector<Ref<Tensor>> results;
    std::vector<Use> uses;
    for (size_t j = 0; j < roots.size(); j++) {
        if (outs[j]) {
            results.push_back(outs[j]);
        } else {
            TensorForm form;
            form.dtype = roots[j]->dtype, form.rank = roots[j]->rank();
            for (int a = 0; a < form.rank; a++) form.dims[size_t(a)] = roots[j]->dims()[size_t(a)].constant();
            form.make_row_major();
            reach_of(form, "ng_eval");
            results.push_back(Tensor::create(context, form, "ng_eval"));
        }
        uses.push_back(use_of(*results.back(), "ng_eval", "out"));
    }
    std::vector<Ref<Tensor>> read;
    for (const NodeRef& leaf : plan.leaves) {
        read.push_back(tensor_of(*leaf));
        uses.push_back(use_of(*read.back(), "ng_eval", "a leaf"));
    }
    std::unique_ptr<Executor> executor;
    try {
        executor = context.backend().make_executor(plan, Backend::Use::Once, false);
    } catch (const Error& error) {
        if (error.status != NG_E_LIMIT) throw;
        plan = schedule(is_reference ? doubled : roots, targets, 0, Fusion::None);     // some kernel was too large for the device
        executor = context.backend().make_executor(plan, Backend::Use::Once, false);
    }
    const WorkLayout layout = layout_work(plan, {}, *executor);
    const WorkPiece piece(context, layout.bytes + 64 + executor->scratch_bytes({}, context.parallel().workers()), "ng_eval");
    std::vector<char*> buffers;
    for (size_t b = 0; b < plan.buffers.size(); b++) {
        const Buffer& buffer = plan.buffers[b];
        const auto index = size_t(buffer.index);
        buffers.push_back(buffer.place == Place::Work ? piece.memory() + layout.offsets[b] : buffer.place == Place::Out ? results[index]->data : read[index]->data);
    }
    const int64_t none = 0;
    Ordered order(context.backend(), s);
    piece.touch(order);
    for (const Ref<Tensor>& t : results) touch(order, *t, true);
    for (const Ref<Tensor>& t : read) touch(order, *t, false);
    executor->run({&none, buffers.data(), nullptr, piece.memory() + layout.bytes, s}, context.parallel());
    order.close();
    context.counters.launches.fetch_add(plan.steps.size(), std::memory_order_relaxed);
    return results;
}

}  // namespace ng
