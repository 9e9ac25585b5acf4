// Reads a fused step as the making of a product's operand: finds the operand's axes among the step's by where they store.
#include "lib/backend/cuda/operand_form.h"

#include "lib/backend/cuda/gemm.h"

#include <algorithm>

namespace ng::cuda {
namespace {

// Of each of the view's axes the kernel's that stores along it; -1: none. False where some axis of the kernel is not among them.
bool find_axes(const View& view, const Kernel& kernel, const Access& stored, std::vector<int32_t>& axes)
{
    size_t found = 0;
    for (size_t d = 0; d < view.dims.size(); d++) {
        axes.push_back(-1);
        if (view.dims[d].is(1) || view.strides[d].is(0)) continue;
        for (size_t a = 0; a < kernel.axes.size(); a++)
            if (kernel.axes[a].extent == view.dims[d] && stored.strides[a] == view.strides[d]) axes[d] = int32_t(a);
        if (axes[d] < 0 || std::count(axes.begin(), axes.end(), axes[d]) > 1) return false;
        found++;
    }
    return found == kernel.axes.size() && view.offset == stored.offset;
}

}  // namespace

std::optional<OperandForm> OperandForm::of(const Step& fused, const Step& product, size_t operand)
{
    const Kernel& k = *fused.kernel;
    const View&   view = product.in[operand];
    const size_t  rank = view.dims.size();
    if (k.stores.size() != 1 || rank < 2) return std::nullopt;
    std::vector<int32_t> axes;
    if (!find_axes(view, k, k.accesses[size_t(k.stores[0].access)], axes)) return std::nullopt;
    const int32_t line = axes[operand == 0 ? rank - 2 : rank - 1];
    std::optional<OperandSource> source = emit_operand(k, line, cuda_dialect());
    if (!source || source->tensors.size() > kernels::OPERAND_TENSORS || source->source.number_bytes > sizeof kernels::OperandText::numbers) return std::nullopt;
    OperandForm form;
    form.operand_ = operand, form.raw_ = view;
    const Access& access = k.accesses[size_t(source->access)];
    form.raw_.buffer = fused.buffers[size_t(source->buffer)], form.raw_.dtype = source->type, form.raw_.offset = access.offset;
    for (size_t d = 0; d < rank; d++) form.raw_.strides[d] = axes[d] < 0 ? Extent(0) : access.strides[size_t(axes[d])];
    for (const FinishTensor& t : source->tensors) {
        const Access& a = k.accesses[size_t(t.access)];
        form.tensors_.push_back({fused.buffers[size_t(t.buffer)], t.type, a.offset, line < 0 ? Extent(0) : a.strides[size_t(line)]});
    }
    // Batches may become lines, of which nobody would have told these tensors.
    for (size_t d = 0; !form.tensors_.empty() && d + 2 < rank; d++)
        if (axes[d] >= 0) return std::nullopt;
    form.source_ = std::move(*source);
    return form;
}

kernels::OperandText OperandForm::in_numbers(std::span<const int64_t> variables, const void* scalars, char* const* buffers) const
{
    kernels::OperandText t = {};
    for (size_t i = 0; i < tensors_.size(); i++) {
        const Tensor& x = tensors_[i];
        char* const base = buffers[x.buffer];
        t.tensor[i] = {base ? base + x.offset.value(variables) * bytes_of(x.type) : nullptr, x.line.value(variables)};
    }
    fill_numbers(source_.source, variables, scalars, 0, t.numbers);
    return t;
}

}  // namespace ng::cuda
