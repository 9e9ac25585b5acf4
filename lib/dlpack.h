// Tensors exchanged with other libraries by DLPack 1.x, its versioned struct.
#pragma once
#include "lib/tensor.h"

struct DLManagedTensorVersioned;

namespace ng {

// A tensor over its memory, which is still the caller's ..
Ref<Tensor> from_dlpack(Context& context, DLManagedTensorVersioned* managed, const char* who);
// .. until this: from now on its deleter is called as a wrap's done would be.
void take_over(Tensor& tensor, DLManagedTensorVersioned* managed) noexcept;
// The caller owes a call of its deleter, from any thread, whatever was closed or released meanwhile.
DLManagedTensorVersioned* to_dlpack(const Ref<Tensor>& tensor);

}  // namespace ng
