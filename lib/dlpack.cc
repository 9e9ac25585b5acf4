// DLPack's binary interface, declared as its specification has it, and the two ways across it.
#include "lib/dlpack.h"

#include "jit/build.h"

#include <algorithm>

// dmlc/dlpack, include/dlpack/dlpack.h, version 1.0 (2024); later 1.x only add.
extern "C" {
struct DLPackVersion { uint32_t major, minor; };
struct DLDevice { int32_t device_type, device_id; };
struct DLDataType { uint8_t code, bits; uint16_t lanes; };
struct DLTensor {
    void*      data;
    DLDevice   device;
    int32_t    ndim;
    DLDataType dtype;
    int64_t*   shape;
    int64_t*   strides;        // in elements; NULL: row-major
    uint64_t   byte_offset;
};
struct DLManagedTensorVersioned {
    DLPackVersion version;
    void*         manager_ctx;
    void        (*deleter)(DLManagedTensorVersioned* self);
    uint64_t      flags;
    DLTensor      dl_tensor;
};
}

namespace ng {
namespace {

constexpr int32_t  DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_ROCM_HOST = 11, DL_CUDA_MANAGED = 13;
constexpr uint64_t DL_READ_ONLY = 1;
static_assert(sizeof(DLTensor) == 48 && sizeof(DLManagedTensorVersioned) == 80, "the layout is DLPack's");

void call_deleter(void* managed)
{
    auto* m = static_cast<DLManagedTensorVersioned*>(managed);
    if (m->deleter) m->deleter(m);
}

bool is_of_host(int32_t type) { return type == DL_CPU || type == DL_CUDA_HOST || type == DL_ROCM_HOST; }

// Whether a context's backend works on memory of such a device.
bool takes(const Backend& backend, const DLDevice& device)
{
    if (backend.is_host()) return is_of_host(device.device_type);
    if (device.device_type == DL_CUDA_HOST) return true;
    return (device.device_type == DL_CUDA || device.device_type == DL_CUDA_MANAGED) && device.device_id == backend.ordinal();
}

TensorForm form_of(const Backend& backend, const DLManagedTensorVersioned& managed, const char* who)
{
    const DLTensor& t = managed.dl_tensor;
    if (managed.version.major != 1)
        throw Error(NG_E_UNSUPPORTED, text(who, ": DLPack ", managed.version.major, ".", managed.version.minor, ", should be 1.x"));
    if (!takes(backend, t.device))
        throw Error(NG_E_UNSUPPORTED, text(who, ": memory of DLPack's device type ", t.device.device_type, ", number ", t.device.device_id, ", is not this context's, which is type ",
                                           backend.dlpack_type(), ", number ", backend.ordinal()));
    need_rank(t.ndim, who);
    if (t.ndim && !t.shape) throw Error(NG_E_INVALID, text(who, ": shape is NULL"));
    ng_shape shape{};
    shape.size = sizeof shape;
    shape.dtype = uint32_t(t.dtype.code) | uint32_t(t.dtype.bits) << 8 | uint32_t(t.dtype.lanes) << 16;
    shape.ndim = t.ndim;
    const uint32_t pinned = !backend.is_host() && t.device.device_type == DL_CUDA_HOST ? uint32_t(NG_HOST) : 0;
    shape.flags = pinned | (t.strides ? uint32_t(NG_STRIDED) : 0) | (managed.flags & DL_READ_ONLY ? uint32_t(NG_READONLY) : 0);
    std::copy_n(t.shape, t.ndim, shape.dims);
    if (t.strides) std::copy_n(t.strides, t.ndim, shape.strides);
    return ng::form_of(&shape, who);
}

// What we give away: the struct, what it points to, and what keeps the memory.
struct Lent {
    DLManagedTensorVersioned managed{};
    Ref<Tensor> tensor;
    Ref<Memory> memory;        // taken back after the tensor is gone
    std::array<int64_t, NG_MAX_NDIM> dims, strides;
};

void end_lent(DLManagedTensorVersioned* managed)
{
    Lent* lent = static_cast<Lent*>(managed->manager_ctx);
    lent->memory->take_back();
    delete lent;
}

}  // namespace

Ref<Tensor> from_dlpack(Context& context, DLManagedTensorVersioned* managed, const char* who)
{
    if (!managed) throw Error(NG_E_INVALID, text(who, ": m is NULL, should be a DLManagedTensorVersioned"));
    const TensorForm form = form_of(context.backend(), *managed, who);
    const Reach reach = reach_of(form, who);
    const DLTensor& t = managed->dl_tensor;
    const bool is_empty = reach.high == reach.low;
    if (!t.data && !is_empty) throw Error(NG_E_INVALID, text(who, ": data is NULL"));
    char* data = t.data ? static_cast<char*>(t.data) + t.byte_offset : nullptr;
    return Tensor::wrap(context, form, is_empty ? data : data + reach.low, uint64_t(reach.high - reach.low), who);
}

void take_over(Tensor& tensor, DLManagedTensorVersioned* managed) noexcept { tensor.memory->set_done(call_deleter, managed, Memory::Lives::WhileLent); }

DLManagedTensorVersioned* to_dlpack(const Ref<Tensor>& tensor)
{
    auto lent = std::make_unique<Lent>();
    lent->tensor = tensor, lent->memory = tensor->memory;
    lent->dims = tensor->dims, lent->strides = tensor->strides;
    DLManagedTensorVersioned& m = lent->managed;
    const uint32_t code = info(tensor->dtype).code;
    m.version = {1, 0};
    m.manager_ctx = lent.get();
    m.deleter = end_lent;
    m.flags = tensor->is_readonly() ? DL_READ_ONLY : 0;
    const Backend& backend = tensor->context().backend();
    const DLDevice device{tensor->flags & NG_HOST && !backend.is_host() ? DL_CUDA_HOST : backend.dlpack_type(), backend.ordinal()};
    m.dl_tensor = {tensor->data, device, tensor->rank, {uint8_t(code), uint8_t(code >> 8), uint16_t(code >> 16)},
                   lent->dims.data(), lent->strides.data(), 0};
    tensor->memory->lend();
    return &lent.release()->managed;
}

}  // namespace ng
