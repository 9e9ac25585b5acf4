// Tensors as leaves of expressions: the graph knows them as something opaque, the library as what they are.
#pragma once
#include "jit/build.h"
#include "lib/tensor.h"

namespace ng {

// For build::leaf and bind_leaf. NG_E_INVALID when it was closed, NG_E_LOST when its context was.
std::shared_ptr<void> as_leaf(Ref<Tensor> tensor, const char* who);
// The tensor of a leaf node as it is now.
Ref<Tensor> tensor_of(const Node& leaf);
Layout layout_of(const TensorForm& form);
// The tensor over the memory that slices, permutes, reshapes and bitcasts of one leaf show.
Ref<Tensor> view_of_leaf(const Node& e);

}  // namespace ng
