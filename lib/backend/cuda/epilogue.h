// The fused step behind a matrix product as its epilogue: a cast that shipped kernels do, or a text for one of its own.
#pragma once
#include "jit/emit_finish.h"
#include "jit/plan.h"
#include "lib/backend/cuda/gemm.h"

#include <optional>

namespace ng::cuda {

// A tensor that the step reads or writes: where its elements lie along the kernel's axes, in numbers known when run.
struct EpilogueTensor {
    int32_t buffer = -1;                 // of the plan
    Dtype   type = Dtype::f32;
    Access  access;
};

class EpilogueForm {
  public:
    // Nothing where no kernel for products can do what the step does.
    static std::optional<EpilogueForm> of(const Step& product, const Step& fused);

    bool is_cast() const { return is_cast_; }            // no more than that: shipped kernels do it
    const std::string& text() const { return finish_.source.text; }
    int32_t weight() const { return is_cast_ ? 0 : finish_.weight; }
    // Addresses and strides of tensors() are still missing, and in the first the numbers.
    kernels::Epilogue in_numbers() const;
    kernels::Epilogue in_numbers(std::span<const int64_t> variables, const void* scalars) const;
    const std::vector<EpilogueTensor>& tensors() const { return tensors_; }
    const EpilogueTensor& result() const { return result_; }
    bool is_wanted(char* const* buffers) const;          // by the run that has these; some result is

  private:
    FinishSource                finish_;
    bool                        is_cast_ = false;
    std::vector<EpilogueTensor> tensors_;
    EpilogueTensor              result_;
};

}  // namespace ng::cuda
