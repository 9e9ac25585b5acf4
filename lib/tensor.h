// A tensor: typed, strided, over memory that it may share with its views.
#pragma once
#include "jit/dtype.h"
#include "lib/memory.h"

#include <array>
#include <span>

namespace ng {

// What a tensor looks like, without its memory. Strides in elements, of any sign.
struct TensorForm {
    Dtype    dtype = Dtype::f32;
    uint32_t flags = 0;                              // NG_READONLY, NG_HOST
    int      rank = 0;
    std::array<int64_t, NG_MAX_NDIM> dims{}, strides{};

    int64_t count() const noexcept;                  // elements; of a form that reach_of accepted
    uint64_t bytes() const noexcept { return uint64_t(count()) * uint64_t(bytes_of(dtype)); }
    void make_row_major() noexcept;
    // Those of axes of one element at most stay row-major: they lead nowhere, and may be any number.
    void set_strides(std::span<const int64_t> given) noexcept;
};
// Checked: NG_E_SHAPE for lengths that are not known, NG_E_DTYPE, NG_E_INVALID for flags that no tensor has.
TensorForm form_of(const ng_shape* d, const char* who);
std::string text_of(const TensorForm& form);               // "f32 [4, 5]"
// Of its lengths, before anything multiplies them: NG_E_LIMIT when the elements' bytes do not fit 63 bits.
void need_countable(const TensorForm& form, const char* who);

// Bytes from element 0 to the first byte that is touched and past the last: low <= 0 <= high, both 0 when empty.
// NG_E_LIMIT when they do not fit 63 bits.
struct Reach { int64_t low, high; };
Reach reach_of(const TensorForm& form, const char* who);

struct Tensor final : Belonging, TensorForm {
    Ref<Memory> memory;
    char*       data;                                // of element 0; never changes
    const char *begin, *end;                         // the bytes that it touches lie between
    bool        is_injective;                        // no two elements share a place: it may be an output
    std::atomic<bool> is_worked_in{false};           // it is the workspace of a run on the CPU, whose tables lie in it

    Tensor(Ref<Memory> memory, char* data, const TensorForm& form, Reach reach);
    static Ref<Tensor> create(Context& context, TensorForm form, const char* who, Context::Hooks hooks = Context::Hooks::All);
    // data: the lowest address of `bytes` of memory; negative strides count from its end. NG_E_SHAPE when they are too few.
    // memory->set_done is the caller's, when nothing can fail any more.
    static Ref<Tensor> wrap(Context& context, const TensorForm& form, void* data, uint64_t bytes, const char* who);
    // Over the same memory, byte_offset after this one's element 0; READONLY and HOST as this. NG_E_BUG outside the memory.
    Ref<Tensor> view(int64_t byte_offset, TensorForm form) const;

    bool is_readonly() const noexcept { return flags & NG_READONLY; }
};
void destroy(const Tensor* tensor) noexcept;

// By the elements really touched where strides are equal, else by address range (E2). No lock, no allocation.
bool overlaps(const Tensor& a, const Tensor& b) noexcept;
// Whether each element has a place of its own.
bool is_injective(const TensorForm& form) noexcept;
// What is queued until the order is closed waits for what others queued on these elements.
void touch(Ordered& order, const Tensor& t, bool writes);
// Element for element the same addresses and type.
bool same_elements(const Tensor& a, const Tensor& b) noexcept;

// A tensor's memory for as long as a call works on it: NG_E_INVALID when it was closed. who: the C function.
Use use_of(const Tensor& tensor, const char* who, const char* argument);

template <> inline constexpr HandleKind  KIND_OF<Tensor> = HandleKind::Tensor;
template <> inline constexpr const char* NOUN_OF<Tensor> = "tensor";

}  // namespace ng
