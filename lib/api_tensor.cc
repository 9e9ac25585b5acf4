// ng.h: tensors, from memory to memory.
#include "lib/dlpack.h"
#include "lib/strided.h"
#include "lib/workspace.h"

#include <functional>
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
    const Pin<Context> context = need_context(c, who);
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

void need_bytes(const Tensor& t, const void* host, uint64_t bytes, const char* who, const char* parameter)
{
    if (bytes != t.bytes()) throw Error(NG_E_INVALID, text(who, ": bytes is ", bytes, ", should be ", t.bytes(), " for ", text_of(t)));
    if (bytes && !host) throw Error(NG_E_INVALID, text(who, ": ", parameter, " is NULL, should be ", bytes, " bytes of host memory"));
}

// Work of others that is about to be queued on s, or was.
void use_foreign(const Tensor& t, ng_stream s, uint32_t how)
{
    Backend& backend = t.context().backend();
    backend.need_stream(s, "ng_tensor_use");
    Ordered order(backend, s);
    if (Track* const track = t.memory->track(); track && (how & NG_USE_DONE) && t.begin != t.end) backend.done(*track, t.begin, t.end);
    if (how & (NG_USE_READ | NG_USE_WRITE)) touch(order, t, how & NG_USE_WRITE);
}

enum class Way { In, Out };                          // of the device
const char* who_of(Way way) { return way == Way::In ? "ng_tensor_put" : "ng_tensor_get"; }

// What a driver copies at once from memory that is not page-locked: others wait for the order of the device meanwhile, for
// less than a millisecond.
constexpr uint64_t STRETCH = uint64_t(4) << 20;

// The context's own stream, for copies that are done on return: in a capture they would not even begin.
struct OrderedNow : Ordered {
    OrderedNow(Backend& backend, const char* who) : Ordered(backend, nullptr)
    {
        if (backend.is_capturing()) throw Error(NG_E_INVALID, text(who, ": the context's own stream captures, and copies to and from the host are done on return; end the capture first"));
    }
};

// Between equal layouts, done on return. The order is held for a stretch at a time, and not while earlier work is waited for.
void move_dense(Backend& backend, Track* track, char* there, char* host, uint64_t bytes, Way way)
{
    const bool is_in = way == Way::In;
    const char* const who = who_of(way);
    const auto wait = [&] { backend.wait_for(backend.mark(nullptr), UINT64_MAX, who); };
    if (!is_in || bytes > STRETCH) {
        OrderedNow(backend, who).touch(track, there, there + bytes, is_in);
        wait();
    }
    for (uint64_t at = 0; at < bytes; at += STRETCH) {
        StridedCopy part{};
        part.size = 1, part.rank = 1, part.dims[0] = int64_t(std::min(STRETCH, bytes - at)), part.in_strides[0] = part.out_strides[0] = 1;
        part.out = (is_in ? there : host) + at, part.in = (is_in ? host : there) + at;
        OrderedNow order(backend, who);
        order.touch(track, there + at, there + at + part.dims[0], is_in);
        backend.move(part, nullptr);
    }
    wait();
}

bool are_alike(const StridedCopy& c)
{
    for (size_t i = 0; i < size_t(c.rank); i++)
        if (c.dims[i] > 1 && c.in_strides[i] != c.out_strides[i]) return false;
    return true;
}

// Between a tensor and dense memory of the host, done on return; gaps and turned axes by way of dense memory of the device.
void move_to_host(const Tensor& t, const StridedCopy& copy, Way way)
{
    Context& context = t.context();
    Backend& backend = context.backend();
    if (backend.is_host()) return backend.move(copy, nullptr);
    const bool is_in = way == Way::In;
    char* const host = is_in ? const_cast<char*>(copy.in) : copy.out;
    if (t.bytes() == 0) return;
    if (are_alike(copy)) return move_dense(backend, t.memory->track(), t.data, host, t.bytes(), way);
    const WorkPiece dense(context, t.bytes(), who_of(way));
    const auto reorder = [&] {
        StridedCopy inside = copy;
        if (is_in) inside.in = dense.memory();
        else inside.out = dense.memory();
        OrderedNow order(backend, who_of(way));
        dense.touch(order);
        touch(order, t, is_in);
        backend.move(inside, nullptr);
    };
    if (!is_in) reorder();
    move_dense(backend, dense.track(), dense.memory(), host, t.bytes(), way);
    if (!is_in) return;
    reorder();
    backend.wait_for(backend.mark(nullptr), UINT64_MAX, who_of(way));
}
void put_tensor(const Tensor& t, const char* host) { move_to_host(t, copy_between(t, t.data, t, host, nested(t)), Way::In); }
void get_tensor(const Tensor& t, char* host) { move_to_host(t, copy_between(t, host, nested(t), t.data, t), Way::Out); }

// Of two devices, or the processor and one: by way of dense memory of the host, done on return.
void copy_across(const Tensor& dst, const Tensor& src)
{
    const std::unique_ptr<char[]> from(new char[src.bytes()]);
    get_tensor(src, from.get());
    const TensorForm as_read = nested(src), as_written = nested(dst);
    if (as_read.strides == as_written.strides) return put_tensor(dst, from.get());
    const std::unique_ptr<char[]> to(new char[dst.bytes()]);
    copy_strided(copy_between(dst, to.get(), as_written, from.get(), as_read), dst.context().parallel());
    put_tensor(dst, to.get());
}

// Where they overlap it is as if src were read first: by way of dense memory.
std::unique_ptr<WorkPiece> between(const Tensor& dst, const Tensor& src, const char* who)
{
    return overlaps(dst, src) ? std::make_unique<WorkPiece>(dst.context(), dst.bytes(), who) : nullptr;
}
void move_between(const Tensor& dst, const Tensor& src, const WorkPiece* dense, Ordered& order, ng_stream s)
{
    Backend& backend = dst.context().backend();
    if (!dense) return backend.move(copy_between(dst, dst.data, dst, src.data, src), s);
    if (backend.is_capturing()) throw Error(NG_E_INVALID, "ng_tensor_copy: dst and src overlap: that takes memory, which a capture cannot keep");
    dense->touch(order);
    const TensorForm form = nested(dst);
    backend.move(copy_between(dst, dense->memory(), form, src.data, src), s);
    backend.move(copy_between(dst, dst.data, dst, dense->memory(), form), s);
}

// Of one context.
void copy_inside(const Tensor& dst, const Tensor& src, ng_stream s, const char* who)
{
    const std::unique_ptr<WorkPiece> dense = between(dst, src, who);
    Ordered order(dst.context().backend(), s);
    touch(order, dst, true);
    touch(order, src, false);
    move_between(dst, src, dense.get(), order, s);
}

// Of two contexts of one device: s waits for who wrote src in its context, who writes it there later waits for s, also where
// only a part could be queued. Both orders are held, the same one first whichever way a copy goes.
void copy_beside(const Tensor& dst, const Tensor& src, ng_stream s, const char* who)
{
    Backend &to = dst.context().backend(), &from = src.context().backend();
    const std::unique_ptr<WorkPiece> dense = between(dst, src, who);
    const ng_stream meeting = from.meeting_stream();
    const bool is_to_first = std::less<const Backend*>{}(&to, &from);
    Ordered first(is_to_first ? to : from, is_to_first ? s : meeting), second(is_to_first ? from : to, is_to_first ? meeting : s);
    Ordered& writing = is_to_first ? first : second;
    touch(is_to_first ? second : first, src, false);
    touch(writing, dst, true);
    to.follow(from);
    try {
        move_between(dst, src, dense.get(), writing, s);
    } catch (...) {
        from.follow(to);
        throw;
    }
    from.follow(to);
}

void copy_tensor(const Tensor& dst, const Tensor& src, ng_stream s, const char* who)
{
    need_writable(dst, who);
    if (dst.dtype != src.dtype) throw Error(NG_E_DTYPE, text(who, ": src is ", text_of(src), ", dst ", text_of(dst), "; nothing is converted here"));
    if (dst.rank != src.rank || dst.dims != src.dims) throw Error(NG_E_SHAPE, text(who, ": src is ", text_of(src), ", dst ", text_of(dst), "; the shapes should be equal"));
    if (same_elements(dst, src) || dst.count() == 0) return;
    const Backend &to = dst.context().backend(), &from = src.context().backend();
    if (&to == &from || (to.is_host() && from.is_host())) copy_inside(dst, src, s, who);
    else if (to.is_beside(from)) copy_beside(dst, src, s, who);
    else copy_across(dst, src);
}

void fill_tensor(const Tensor& t, double value, ng_stream s)
{
    if (t.count() == 0) return;
    Backend& backend = t.context().backend();
    Ordered order(backend, s);
    touch(order, t, true);
    backend.fill(copy_between(t, t.data, t, nullptr, t), encode(t.dtype, value), s);
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
                           [&](Tensor& t) { t.memory->set_done(done, user, Memory::Lives::UntilClose); });
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
    Backend& backend = tensor->context().backend();
    if (s && backend.is_host()) return refuse(err, NG_E_INVALID, "ng_tensor_use: the backend \"cpu\" has the stream NULL alone");
    if (how & ~uint32_t(NG_USE_READ | NG_USE_WRITE | NG_USE_DONE)) return refuse(err, NG_E_INVALID, "ng_tensor_use: how has bits that are no NG_USE_ flag");
    if ((how & NG_USE_WRITE) && tensor->is_readonly()) return refuse(err, NG_E_INVALID, "ng_tensor_use: NG_USE_WRITE of a tensor that is NG_READONLY");
    if (data) *data = tensor->data;
    if (backend.is_host() || !how) return NG_OK;
    return guard(err, [&] {
        const Worked worked(t, "ng_tensor_use", "t");
        use_foreign(*worked, s, how);
        return NG_OK;
    });
}

ng_status ng_tensor_put(ng_tensor* t, const void* src, uint64_t bytes, ng_error* err)
{
    return guard(err, [&] {
        const Worked tensor(t, "ng_tensor_put", "t");
        need_writable(*tensor, "ng_tensor_put");
        need_bytes(*tensor, src, bytes, "ng_tensor_put", "src");
        if (bytes) put_tensor(*tensor, static_cast<const char*>(src));
        return NG_OK;
    });
}

ng_status ng_tensor_get(ng_tensor* t, void* dst, uint64_t bytes, ng_error* err)
{
    return guard(err, [&] {
        const Worked tensor(t, "ng_tensor_get", "t");
        need_bytes(*tensor, dst, bytes, "ng_tensor_get", "dst");
        if (bytes) get_tensor(*tensor, static_cast<char*>(dst));
        return NG_OK;
    });
}

ng_status ng_tensor_copy(ng_tensor* dst, ng_tensor* src, ng_stream s, ng_error* err)
{
    return guard(err, [&] {
        const Worked to(dst, "ng_tensor_copy", "dst"), from(src, "ng_tensor_copy", "src");
        to->context().backend().need_stream(s, "ng_tensor_copy");
        copy_tensor(*to, *from, s, "ng_tensor_copy");
        return NG_OK;
    });
}

ng_status ng_tensor_fill(ng_tensor* t, ng_stream s, double value, ng_error* err)
{
    return guard(err, [&] {
        const Worked tensor(t, "ng_tensor_fill", "t");
        tensor->context().backend().need_stream(s, "ng_tensor_fill");
        need_writable(*tensor, "ng_tensor_fill");
        fill_tensor(*tensor, value, s);
        return NG_OK;
    });
}

ng_status ng_tensor_from_dlpack(ng_ctx* c, DLManagedTensorVersioned* m, ng_stream s, ng_tensor** out, ng_error* err)
{
    const char* who = "ng_tensor_from_dlpack";
    return guard(err, [&] {
        return make_tensor(who, c, out, [&](Context& context) {
            Backend& backend = context.backend();
            backend.need_stream(s, who);
            Ref<Tensor> tensor = from_dlpack(context, m, who);
            Ordered order(backend, s);               // whoever touches it waits for what its producer has under way on s
            touch(order, *tensor, true);
            return tensor;
        }, [&](Tensor& t) { take_over(t, m); });
    });
}

ng_status ng_tensor_to_dlpack(ng_tensor* t, ng_stream s, DLManagedTensorVersioned** out, ng_error* err)
{
    const char* who = "ng_tensor_to_dlpack";
    return guard(err, [&] {
        const Worked tensor(t, who, "t");
        Backend& backend = tensor->context().backend();
        backend.need_stream(s, who);
        DLManagedTensorVersioned*& lent = need_out(out, who);
        {
            Ordered order(backend, s);               // s waits for what is queued on it elsewhere
            touch(order, *tensor, !tensor->is_readonly());
        }
        lent = to_dlpack(tensor.pin.ref());
        return NG_OK;
    });
}
