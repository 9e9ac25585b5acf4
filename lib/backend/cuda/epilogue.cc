// Reads a fused step as what a product's kernel can do with its sums.
#include "lib/backend/cuda/epilogue.h"

#include <algorithm>

namespace ng::cuda {
namespace {

// The sums as a float of at most 32 bits: rounded once, so i32 becomes f32 only.
bool is_plain_cast(const Kernel& k)
{
    if (k.stores.size() != 1) return false;
    const Value* v = &k.values[size_t(k.stores[0].value)];
    if (v->kind != ValueKind::Convert || compute_of(v->type) != Dtype::f32) return false;
    const Value* from = &k.values[size_t(v->args[0])];
    return from->kind == ValueKind::Load && (from->type == Dtype::f32 || v->type == Dtype::f32);
}

// With its axes in this order.
Kernel turned(const Kernel& from, std::span<const int32_t> axes)
{
    Kernel k = from;
    for (size_t i = 0; i < axes.size(); i++) {
        k.axes[i] = from.axes[size_t(axes[i])];
        for (size_t a = 0; a < k.accesses.size(); a++) k.accesses[a].strides[i] = from.accesses[a].strides[size_t(axes[i])];
    }
    return k;
}

// Kernels for products write along rows or columns.
bool lies_along(const EpilogueTensor& result)
{
    const Extents& strides = result.access.strides;
    return strides.back().is(1) || (strides.size() > 1 && strides[strides.size() - 2].is(1));
}

}  // namespace

std::optional<EpilogueForm> EpilogueForm::of(const Step& product, const Step& fused, int32_t parts)
{
    const auto buffers = int32_t(fused.buffers.size()), place = int32_t(std::ranges::find(fused.buffers, product.out.buffer) - fused.buffers.begin());
    std::optional<FoldParts> folds;
    if (fused.folds) {
        const size_t rank = product.out.dims.size();
        if (product.out.dims[rank - 1].is(1) || product.out.dims[rank - 2].is(1)) return std::nullopt;
        folds = fold_parts(*fused.kernel, buffers, place, Extent::variable(parts));
        if (!folds) return std::nullopt;
    }
    const Kernel k = folds ? folds->points : turned(*fused.kernel, fused.turned);
    const std::span<const FinishFold> folded = folds ? std::span<const FinishFold>(folds->folds) : std::span<const FinishFold>();
    std::optional<FinishSource> finish = emit_finish(k, place, cuda_dialect(), folded);
    if (!finish || finish->tensors.size() > kernels::EPILOGUE_TENSORS || finish->source.number_bytes > sizeof kernels::Epilogue::numbers) return std::nullopt;
    const auto of_plan = [&](int32_t buffer) { return buffer < buffers ? fused.buffers[size_t(buffer)] : buffers - 1 - buffer; };
    const auto tensor = [&](int32_t buffer, Dtype type, int32_t access) { return EpilogueTensor{of_plan(buffer), type, k.accesses[size_t(access)]}; };
    EpilogueForm form;
    if (finish->result >= 0) {
        const StoreTo& result = k.stores[size_t(finish->result)];
        form.result_ = tensor(result.buffer, k.values[size_t(result.value)].type, result.access);
    } else {
        form.result_.type = product.out.dtype;
    }
    if (!fused.turned.empty() && (finish->result < 0 || !lies_along(form.result_))) return std::nullopt;
    for (const FinishTensor& t : finish->tensors) form.tensors_.push_back(tensor(t.buffer, t.type, t.access));
    form.is_cast_ = !folds && is_plain_cast(k);
    if (!form.is_cast_) form.list_ = EpilogueList::of(k, place, folded);
    if (form.list_ && form.list_->tensors() != finish->loads) form.list_.reset();
    if (folds) {
        const bool is_pivoted = std::ranges::any_of(folded, [](const FinishFold& f) { return f.term == FoldTerm::Pivot; });
        for (int32_t& b : folds->after_buffers) b = b < 0 ? b : fused.buffers[size_t(b)];
        form.folds_ = {std::move(folds->after), std::move(folds->after_buffers), finish->folds, folds->axis + 1 == k.axes.size(), is_pivoted, std::move(folds->count)};
    }
    form.finish_ = std::move(*finish);
    return form;
}

bool EpilogueFolds::can_run(char* const* addresses) const
{
    return std::ranges::none_of(after.values, [&](const Value& v) { return v.buffer >= 0 && buffers[size_t(v.buffer)] >= 0 && !addresses[buffers[size_t(v.buffer)]]; });
}

bool EpilogueForm::is_wanted(char* const* buffers) const
{
    if (folds_ || buffers[result_.buffer]) return true;
    return std::any_of(tensors_.begin() + finish_.loads, tensors_.end(), [&](const EpilogueTensor& t) { return buffers[t.buffer] != nullptr; });
}

kernels::Epilogue EpilogueForm::in_numbers() const
{
    kernels::Epilogue e = {};
    e.is_cast = is_float(result_.type);
    if (is_cast_) return e;
    e.count = int32_t(tensors_.size()), e.loads = finish_.loads;
    for (size_t i = 0; i < tensors_.size(); i++) {
        e.tensor[i].bytes = bytes_of(tensors_[i].type);
        if (tensors_[i].buffer < 0) e.tensor[i].kind = folds_->is_over_columns ? kernels::OVER_COLUMNS : kernels::OVER_ROWS;
    }
    return e;
}

kernels::Epilogue EpilogueForm::in_numbers(std::span<const int64_t> variables, const void* scalars) const
{
    kernels::Epilogue e = in_numbers();
    if (!is_cast_) fill_numbers(finish_.source, variables, scalars, 0, e.numbers);
    return e;
}

kernels::Epilogue EpilogueForm::in_list(const void* scalars) const
{
    kernels::Epilogue e = in_numbers();
    list_->fill(scalars, e.numbers);
    return e;
}

}  // namespace ng::cuda
