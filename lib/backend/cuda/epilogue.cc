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

}  // namespace

std::optional<EpilogueForm> EpilogueForm::of(const Step& product, const Step& fused)
{
    const Kernel& k = *fused.kernel;
    const auto place = std::ranges::find(fused.buffers, product.out.buffer);
    std::optional<FinishSource> finish = emit_finish(k, int32_t(place - fused.buffers.begin()), cuda_dialect());
    if (!finish || finish->tensors.size() > kernels::EPILOGUE_TENSORS || finish->source.number_bytes > sizeof kernels::Epilogue::numbers) return std::nullopt;
    const auto tensor = [&](int32_t buffer, Dtype type, int32_t access) { return EpilogueTensor{fused.buffers[size_t(buffer)], type, k.accesses[size_t(access)]}; };
    EpilogueForm form;
    const StoreTo& result = k.stores[size_t(finish->result)];
    form.result_ = tensor(result.buffer, k.values[size_t(result.value)].type, result.access);
    for (const FinishTensor& t : finish->tensors) form.tensors_.push_back(tensor(t.buffer, t.type, t.access));
    form.is_cast_ = is_plain_cast(k);
    form.finish_ = std::move(*finish);
    return form;
}

bool EpilogueForm::is_wanted(char* const* buffers) const
{
    return buffers[result_.buffer] || std::any_of(tensors_.begin() + finish_.loads, tensors_.end(), [&](const EpilogueTensor& t) { return buffers[t.buffer] != nullptr; });
}

kernels::Epilogue EpilogueForm::in_numbers() const
{
    kernels::Epilogue e = {};
    e.is_cast = is_float(result_.type);
    if (is_cast_) return e;
    e.count = int32_t(tensors_.size()), e.loads = finish_.loads;
    for (size_t i = 0; i < tensors_.size(); i++) e.tensor[i].bytes = bytes_of(tensors_[i].type);
    return e;
}

kernels::Epilogue EpilogueForm::in_numbers(std::span<const int64_t> variables, const void* scalars) const
{
    kernels::Epilogue e = in_numbers();
    if (!is_cast_) fill_numbers(finish_.source, variables, scalars, 0, e.numbers);
    return e;
}

}  // namespace ng::cuda
