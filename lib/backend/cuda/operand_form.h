// The fused step before a matrix product as something that is done to one operand's elements while the product loads them.
#pragma once
#include "jit/emit_operand.h"
#include "jit/plan.h"
#include "kernels/gemm_operand.h"

#include <optional>
#include <span>

namespace ng::cuda {

class OperandForm {
  public:
    // operand: of the product, which the step gives. Nothing where the step is more than a text of one element can say.
    static std::optional<OperandForm> of(const Step& fused, const Step& product, size_t operand);

    size_t operand() const { return operand_; }          // 0 or 1
    const View& raw() const { return raw_; }             // what is loaded in its place
    Dtype  multiplied() const { return source_.multiplied; }
    int32_t weight() const { return source_.weight; }
    const std::string& text() const { return source_.source.text; }
    kernels::OperandText in_numbers(std::span<const int64_t> variables, const void* scalars, char* const* buffers) const;

  private:
    struct Tensor {
        int32_t buffer;                  // of the plan
        Dtype   type;
        Extent  offset, line;
    };
    size_t              operand_ = 0;
    View                raw_;
    OperandSource       source_;
    std::vector<Tensor> tensors_;
};

}  // namespace ng::cuda
