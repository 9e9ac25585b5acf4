// ng.h: tensors, from memory to memory.
#include "lib/dlpack.h"
#include "lib/strided.h"

#include <bit>
#include <memory>

using namespace ng;

namespace {

void need_writable(const Tensor& t, const char* who)
{
    if (t.is_readonly()) throw Error(NG_E_INVALID, text(who, ": ", text_of(t), " is NG_READONLY"));
}

// A tensor made inside a context, which is given its handle: publish(tensor) may no longer fail.
template <class Make, class Publish>
ng_status make_tensor(const char* who, ng_ctx* c, ng_tensor** out, Make&& make, Publish&& publish)
{
    const Pin<Context> context = need<Context>(c, who, "c");
    ng_tensor*& result = need_out(out, who);
    const Entry entry(*context, who);
    context->settle(Context::Where::Call);
    const Ref<Tensor> tensor = make(*context);
    const uint64_t handle = make_handle(tensor);
    publish(*tensor);
    result = to_handle<ng_tensor>(handle);
    return NG_OK;
}

// A tensor that a call works on: alive, its context open, its memory there until the end of the call.
struct Worked {
    Worked(const ng_tensor* t, const char* who, const char* argument)
        : pin(need<Tensor>(t, who, argument)), entry(pin->context(), who), use(use_of(*pin, who, argument)) {}
    Tensor* operator->() const { return pin.get(); }
    Tensor& operator*() const { return *pin; }

    Pin<Tensor> pin;
    Entry       entry;
    Use         use;
};

StridedCopy copy_between(const Tensor& shape, char* out, const TensorForm& out_form, const char* in, const TensorForm& in_form)
{
    return {out, in, bytes_of(shape.dtype), shape.rank, shape.dims, out_form.strides, in_form.strides};
}

void need_bytes(const Tensor& t, const void* host, uint64_t bytes, const char* who)
{
    if (bytes != t.bytes()) throw Error(NG_E_INVALID, text(who, ": bytes is ", bytes, ", should be ", t.bytes(), " for ", text_of(t)));
    if (bytes && !host) throw Error(NG_E_INVALID, text(who, ": host memory is NULL, should be ", bytes, " bytes"));
}

void copy_tensor(const Tensor& dst, const Tensor& src, const char* who)
{
    need_writable(dst, who);
    if (dst.dtype != src.dtype) throw Error(NG_E_DTYPE, text(who, ": src is ", text_of(src), ", dst ", text_of(dst), "; nothing is converted here"));
    if (dst.rank != src.rank || dst.dims != src.dims) throw Error(NG_E_SHAPE, text(who, ": src is ", text_of(src), ", dst ", text_of(dst), "; the shapes should be equal"));
    if (same_elements(dst, src)) return;
    const Parallel& parallel = dst.context().parallel();
    if (!overlaps(dst, src)) return copy_strided(copy_between(dst, dst.data, dst, src.data, src), parallel);
    // As if read first: by way of a dense array.
    const TensorForm dense = nested(dst);
    const std::unique_ptr<char[]> all(new char[dst.bytes()]);
    copy_strided(copy_between(dst, all.get(), dense, src.data, src), parallel);
    copy_strided(copy_between(dst, dst.data, dst, all.get(), dense), parallel);
}

void fill_tensor(const Tensor& t, double value)
{
    const uint64_t element = encode(t.dtype, value);
    StridedCopy copy = copy_between(t, t.data, t, reinterpret_cast<const char*>(&element), t);
    static_assert(std::endian::native == std::endian::little, "an element lies in the first bytes");
    copy.in_strides.fill(0);
    copy_strided(copy, t.context().parallel());
}

// What is wrong with a tensor for a function that may not throw; null: nothing. (ng_tensor_shape has no use for the text.)
const char* fault_of(const Pin<Tensor>& t, ng_status& status)
{
    status = NG_E_INVALID;
    if (!t) return "ng_tensor_use: t is no tensor that lives: NULL, released, of another kind, or never ours";
    status = NG_E_LOST;
    if (t.is_forked()) return "ng_tensor_use: t was made before this process was forked";
    if (t->context().is_lost()) return "ng_tensor_use: the tensor's context is closed";
    status = NG_E_INVALID;
    if (t->memory->is_closed()) return "ng_tensor_use: the tensor's memory was ended by ng_tensor_close";
    status = NG_OK;
    return nullptr;
}

}  // namespace

ng_status ng_tensor_create(ng_ctx* c, const ng_shape* d, ng_tensor** out, ng_error* err)
{
    const char* who = "ng_tensor_create";
    return guard(err, [&] {
        return make_tensor(who, c, out, [&](Context& context) { return Tensor::create(context, form_of(d, who), who); }, [](Tensor&) {});
    });
}

ng_status ng_tensor_wrap(ng_ctx* c, const ng_shape* d, void* data, uint64_t bytes, ng_done_fn done, void* user, ng_tensor** out, ng_error* err)
{
    const char* who = "ng_tensor_wrap";
    return guard(err, [&] {
        return make_tensor(who, c, out, [&](Context& context) { return Tensor::wrap(context, form_of(d, who), data, bytes, who); },
                           [&](Tensor& t) { t.memory->set_done(done, user); });
    });
}

void ng_tensor_retain(ng_tensor* t) { retain_handle<Tensor>(handle_of(t)); }
void ng_tensor_release(ng_tensor* t) { release_handle<Tensor>(handle_of(t)); }

ng_status ng_tensor_close(ng_tensor* t, ng_error* err)
{
    const char* who = "ng_tensor_close";
    return guard(err, [&] {
        const Pin<Tensor> tensor = need<Tensor>(t, who, "t");
        const Entry entry(tensor->context(), who);
        tensor->memory->close(who);
        return NG_OK;
    });
}

ng_status ng_tensor_shape(const ng_tensor* t, ng_shape* out)
{
    const Pin<Tensor> tensor(t);
    ng_status status;
    if (fault_of(tensor, status)) return status;
    if (!out || out->size < 8) return NG_E_INVALID;
    ng_shape shape{};
    shape.dtype = info(tensor->dtype).code;
    shape.ndim = tensor->rank;
    shape.flags = NG_STRIDED | tensor->flags;
    std::copy(tensor->dims.begin(), tensor->dims.end(), shape.dims);
    std::copy(tensor->strides.begin(), tensor->strides.end(), shape.strides);
    shape.size = out->size;
    std::memcpy(out, &shape, std::min<size_t>(out->size, sizeof shape));
    return NG_OK;
}

ng_ctx* ng_tensor_ctx(const ng_tensor* t)
{
    const Pin<Tensor> tensor(t);
    return tensor ? to_handle<ng_ctx>(tensor->context().handle()) : nullptr;
}

ng_status ng_tensor_use(ng_tensor* t, ng_stream s, uint32_t how, void** data, ng_error* err)
{
    const Pin<Tensor> tensor(t);
    ng_status status;
    if (const char* fault = fault_of(tensor, status)) return refuse(err, status, fault);
    if (s) return refuse(err, NG_E_INVALID, "ng_tensor_use: the backend \"cpu\" has the stream NULL alone");
    if (how & ~uint32_t(NG_USE_READ | NG_USE_WRITE | NG_USE_DONE)) return refuse(err, NG_E_INVALID, "ng_tensor_use: how has bits that are no NG_USE_ flag");
    if ((how & NG_USE_WRITE) && tensor->is_readonly()) return refuse(err, NG_E_INVALID, "ng_tensor_use: NG_USE_WRITE of a tensor that is NG_READONLY");
    if (data) *data = tensor->data;
    return NG_OK;
}

ng_status ng_tensor_put(ng_tensor* t, const void* src, uint64_t bytes, ng_error* err)
{
    return guard(err, [&] {
        const Worked tensor(t, "ng_tensor_put", "t");
        need_writable(*tensor, "ng_tensor_put");
        need_bytes(*tensor, src, bytes, "ng_tensor_put");
        copy_strided(copy_between(*tensor, tensor->data, *tensor, static_cast<const char*>(src), nested(*tensor)), tensor->context().parallel());
        return NG_OK;
    });
}

ng_status ng_tensor_get(ng_tensor* t, void* dst, uint64_t bytes, ng_error* err)
{
    return guard(err, [&] {
        const Worked tensor(t, "ng_tensor_get", "t");
        need_bytes(*tensor, dst, bytes, "ng_tensor_get");
        copy_strided(copy_between(*tensor, static_cast<char*>(dst), nested(*tensor), tensor->data, *tensor), tensor->context().parallel());
        return NG_OK;
    });
}

ng_status ng_tensor_copy(ng_tensor* dst, ng_tensor* src, ng_stream s, ng_error* err)
{
    return guard(err, [&] {
        const Worked to(dst, "ng_tensor_copy", "dst"), from(src, "ng_tensor_copy", "src");
        need_own_stream(s, "ng_tensor_copy");
        copy_tensor(*to, *from, "ng_tensor_copy");
        return NG_OK;
    });
}

ng_status ng_tensor_fill(ng_tensor* t, ng_stream s, double value, ng_error* err)
{
    return guard(err, [&] {
        const Worked tensor(t, "ng_tensor_fill", "t");
        need_own_stream(s, "ng_tensor_fill");
        need_writable(*tensor, "ng_tensor_fill");
        fill_tensor(*tensor, value);
        return NG_OK;
    });
}

ng_status ng_tensor_from_dlpack(ng_ctx* c, DLManagedTensorVersioned* m, ng_stream s, ng_tensor** out, ng_error* err)
{
    const char* who = "ng_tensor_from_dlpack";
    return guard(err, [&] {
        need_own_stream(s, who);
        return make_tensor(who, c, out, [&](Context& context) { return from_dlpack(context, m, who); }, [&](Tensor& t) { take_over(t, m); });
    });
}

ng_status ng_tensor_to_dlpack(ng_tensor* t, ng_stream s, DLManagedTensorVersioned** out, ng_error* err)
{
    const char* who = "ng_tensor_to_dlpack";
    return guard(err, [&] {
        const Worked tensor(t, who, "t");
        need_own_stream(s, who);
        DLManagedTensorVersioned*& lent = need_out(out, who);
        lent = to_dlpack(tensor.pin.ref());
        return NG_OK;
    });
}
