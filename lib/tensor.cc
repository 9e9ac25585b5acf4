// Tensors' shapes checked, their memory laid out, their views.
#include "lib/tensor.h"

#include "jit/build.h"

#include <algorithm>

namespace ng {
namespace {

void remove_tensor(Belonging* thing, Context&) noexcept { delete static_cast<Tensor*>(thing); }

const Fate TENSOR_FATE = {nullptr, remove_tensor};   // its memory is what ends

// a * b + c in 63 bits, or NG_E_LIMIT.
int64_t checked(int64_t a, int64_t b, int64_t c, const TensorForm& form, const char* who)
{
    int64_t product, sum;
    if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum))
        throw Error(NG_E_LIMIT, text(who, ": ", text_of(form), " reaches over more than 2^63 bytes"));
    return sum;
}

}  // namespace

int64_t TensorForm::count() const noexcept
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dims[size_t(i)];
    return n;
}

void TensorForm::make_row_major() noexcept
{
    int64_t stride = 1;
    for (int i = rank; i-- > 0;) {
        strides[size_t(i)] = stride;
        stride *= std::max<int64_t>(dims[size_t(i)], 1);
    }
}

void TensorForm::set_strides(std::span<const int64_t> given) noexcept
{
    make_row_major();
    for (size_t i = 0; i < given.size(); i++)
        if (dims[i] > 1) strides[i] = given[i];
}

std::string text_of(const TensorForm& form)
{
    std::string all = text(name_of(form.dtype), " [");
    for (int i = 0; i < form.rank; i++) all += text(i ? ", " : "", form.dims[size_t(i)]);
    return all + "]";
}

TensorForm form_of(const ng_shape* given, const char* who)
{
    const ng_shape d = read_struct(given, who, "ng_shape");
    need_size(d, who);
    TensorForm form;
    form.dtype = dtype_of(d.dtype, who);
    need_rank(d.ndim, who);
    if (d.flags & ~uint32_t(NG_STRIDED | NG_READONLY | NG_HOST))
        throw Error(NG_E_INVALID, text(who, ": flags ", d.flags, " are not a tensor's: NG_STRIDED, NG_READONLY and NG_HOST are"));
    form.flags = d.flags & uint32_t(NG_READONLY | NG_HOST);
    form.rank = d.ndim;
    std::copy_n(d.dims, d.ndim, form.dims.begin());
    const auto negative = std::find_if(d.dims, d.dims + d.ndim, [](int64_t n) { return n < 0; });
    if (negative != d.dims + d.ndim)
        throw Error(NG_E_SHAPE, text(who, ": ", text_of(form), ": axis ", negative - d.dims, " has a length that is known when run; a tensor's are known now"));
    need_countable(form, who);
    if (d.flags & NG_STRIDED) form.set_strides({d.strides, size_t(d.ndim)});
    else form.make_row_major();
    reach_of(form, who);
    return form;
}

// Row-major strides are such products too, where a length of 0 counts as 1.
void need_countable(const TensorForm& form, const char* who)
{
    int64_t whole = bytes_of(form.dtype);
    for (int i = 0; i < form.rank; i++) whole = checked(whole, std::max<int64_t>(form.dims[size_t(i)], 1), 0, form, who);
}

Reach reach_of(const TensorForm& form, const char* who)
{
    Reach reach{0, 0};
    const int64_t size = bytes_of(form.dtype);
    for (int i = 0; i < form.rank; i++) {
        const int64_t length = form.dims[size_t(i)], stride = form.strides[size_t(i)];
        if (length == 0) return {0, 0};
        if (length == 1) continue;
        int64_t& side = stride < 0 ? reach.low : reach.high;
        side = checked(length - 1, checked(stride, size, 0, form, who), side, form, who);
    }
    reach.high = checked(1, size, reach.high, form, who);
    checked(-1, std::max<int64_t>(reach.low, -INT64_MAX), reach.high, form, who);
    return reach;
}

Tensor::Tensor(Ref<Memory> memory_, char* data_, const TensorForm& form, Reach reach)
    : Belonging(memory_->context(), TENSOR_FATE), TensorForm(form), memory(std::move(memory_)), data(data_), begin(data_ + reach.low), end(data_ + reach.high),
      is_injective(ng::is_injective(form))
{
    context().counters.tensors.fetch_add(1, std::memory_order_relaxed);
}

void destroy(const Tensor* dead) noexcept
{
    Tensor* tensor = const_cast<Tensor*>(dead);
    const Ref<Memory> memory = std::move(tensor->memory);   // expires now, not when the tensor is removed
    tensor->context().counters.tensors.fetch_sub(1, std::memory_order_relaxed);
    tensor->expire();
}

Ref<Tensor> Tensor::create(Context& context, TensorForm form, const char* who, Context::Hooks hooks)
{
    const Reach reach = reach_of(form, who);
    const ng_purpose purpose = form.flags & NG_HOST && !context.backend().is_host() ? NG_MEM_STAGING : NG_MEM_TENSOR;
    Ref<Memory> memory = Memory::allocate(context, uint64_t(reach.high - reach.low), purpose, who, hooks);
    char* data = memory->data() - reach.low;
    return new Tensor(std::move(memory), data, form, reach);
}

Ref<Tensor> Tensor::wrap(Context& context, const TensorForm& form, void* data, uint64_t bytes, const char* who)
{
    const Reach reach = reach_of(form, who);
    const uint64_t needed = uint64_t(reach.high - reach.low);
    if (needed > bytes)
        throw Error(NG_E_SHAPE, text(who, ": ", text_of(form), " needs ", needed, " bytes with its strides, there are ", bytes));
    if (!data && needed) throw Error(NG_E_INVALID, text(who, ": data is NULL, should be ", needed, " bytes of memory"));
    if (needed) context.backend().need_reachable(data, bytes, form.flags, who);
    // Processors read elements anywhere; of a device that is a fault that ends its context.
    if (needed && !context.backend().is_host() && reinterpret_cast<uintptr_t>(data) % uintptr_t(bytes_of(form.dtype)))
        throw Error(NG_E_INVALID, text(who, ": data of ", name_of(form.dtype), " should lie at a multiple of ", bytes_of(form.dtype), " bytes, this device reads it nowhere else"));
    Ref<Memory> memory = Memory::wrap(context, data, bytes);
    return new Tensor(std::move(memory), static_cast<char*>(data) - reach.low, form, reach);
}

Ref<Tensor> Tensor::view(int64_t byte_offset, TensorForm form) const
{
    const char* who = "ng_tensor_view";
    const Reach reach = reach_of(form, who);
    form.flags = flags;
    const bool is_empty = reach.high == 0;
    const int64_t start = is_empty ? 0 : data - memory->data() + byte_offset;
    // A host that does not know how many bytes it lends may say UINT64_MAX.
    if (start + reach.low < 0 || uint64_t(start) + uint64_t(reach.high) > memory->bytes())
        throw Error(NG_E_BUG, text(who, ": ", text_of(form), " at byte ", start, " is outside its memory of ", memory->bytes(), " bytes"));
    return new Tensor(memory, memory->data() + start, form, reach);
}

void touch(Ordered& order, const Tensor& t, bool writes)
{
    order.touch(t.memory->track(), t.begin, t.end, writes);
}

Use use_of(const Tensor& tensor, const char* who, const char* argument)
{
    Use use(*tensor.memory);
    if (!use) throw Error(NG_E_INVALID, text(who, ": the memory of ", argument, " was ended by ng_tensor_close"));
    return use;
}

}  // namespace ng
