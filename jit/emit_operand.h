// Text of a fused kernel that gives a product's operand, as what is done to each element while the product loads it.
#pragma once
#include "jit/emit_finish.h"

#include <optional>

namespace ng {

// A function of an element, as kernels/gemm_operand.cuh wants it.
struct OperandSource {
    KernelSource source;                 // numbers: of the struct in the operand's words
    int32_t      buffer = -1, access = -1;   // the kernel's: what is loaded element by element,
    Dtype        type = Dtype::f32;      // and how it lies
    Dtype        multiplied = Dtype::f16;
    std::vector<FinishTensor> tensors;   // read once for each line
    int32_t      weight = 0;             // of an element: about its instructions; 0: a cast
};

// line: the axis along which a product's rows (columns) are counted, -1: there is one. Nothing where more than one tensor is read
// element for element, what else is read changes along other axes than that, or the result is no half.
std::optional<OperandSource> emit_operand(const Kernel& kernel, int32_t line, const Dialect& dialect);

}  // namespace ng
