// Between tensors and the nodes that read them.
#include "lib/leaves.h"

#include "jit/forms.h"

namespace ng {

std::shared_ptr<void> as_leaf(Ref<Tensor> tensor, const char* who)
{
    if (tensor->context().is_lost()) throw Error(NG_E_LOST, text(who, ": t's context is closed"));
    if (tensor->memory->is_closed()) throw Error(NG_E_INVALID, text(who, ": t was closed"));
    Tensor* raw = tensor.get();
    return std::shared_ptr<void>(raw, [keep = std::move(tensor)](void*) {});
}

Ref<Tensor> tensor_of(const Node& leaf) { return Ref<Tensor>(static_cast<Tensor*>(leaf_tensor(leaf).get())); }

Layout layout_of(const TensorForm& form)
{
    Layout l;
    l.dtype = form.dtype, l.strided = true;
    l.dims.assign(form.dims.begin(), form.dims.begin() + form.rank);
    l.strides.assign(form.strides.begin(), form.strides.begin() + form.rank);
    return l;
}

Ref<Tensor> view_of_leaf(const Node& e)
{
    std::vector<const Node*> path;
    const Node* n = &e;
    for (; n->op != Op::leaf; n = n->arg(0).get()) {
        const bool shows = n->op == Op::tag || n->op == Op::keep || n->op == Op::slice || n->op == Op::permute || n->op == Op::reshape ||
                           n->op == Op::bitcast || n->op == Op::view;
        if (!shows) throw Error(NG_E_INVALID, text("ng_tensor_view: e contains ng_", name_of(n->op), "; only slices, permutes, reshapes and bitcasts of one leaf show memory"));
        path.push_back(n);
    }
    const Ref<Tensor> base = tensor_of(*n);
    if (base->context().is_lost()) throw Error(NG_E_LOST, "ng_tensor_view: the leaf's context is closed");
    if (base->memory->is_closed()) throw Error(NG_E_INVALID, "ng_tensor_view: the leaf's tensor was closed");
    View view{0, n->dtype, 0, n->dims(), n->extra->extents};
    for (size_t i = path.size(); i-- > 0;) {
        const std::optional<View> next = through_view(*path[i], view);
        if (!next) throw Error(NG_E_SHAPE, text("ng_tensor_view: ", describe(*path[i]), " is no view of the leaf's memory: its strides do not allow this ng_", name_of(path[i]->op)));
        view = *next;
    }
    TensorForm form;
    form.dtype = view.dtype, form.flags = base->flags, form.rank = int(view.dims.size());
    std::vector<int64_t> strides;
    for (size_t i = 0; i < view.dims.size(); i++) form.dims[i] = view.dims[i].constant(), strides.push_back(view.strides[i].constant());
    need_countable(form, "ng_tensor_view");
    form.set_strides(strides);
    const int64_t offset = form.count() ? view.offset.constant() * bytes_of(view.dtype) : 0;
    return base->view(offset, form);
}

}  // namespace ng
