// The fused step behind a matrix product as an epilogue's steps, where it is a chain that these can say.
#pragma once
#include "jit/plan.h"
#include "lib/backend/cuda/gemm.h"
#include "lib/executor.h"

#include <optional>

namespace ng::cuda {

// A tensor that the chain reads or writes: where its elements lie along the kernel's axes, in numbers known when run.
struct EpilogueTensor {
    int32_t buffer = -1;                 // of the plan
    Dtype   type = Dtype::f32;
    Access  access;
};

class EpilogueForm {
  public:
    // Nothing where the step is no epilogue of f32, or of i32 that it casts to f32 first, has more than one result, or
    // operations or operands that no step can say.
    static std::optional<EpilogueForm> of(const Step& product, const Step& fused);

    // Steps with their numbers; tensors and strides are still missing: step[tensor_step(i)] has tensor i of tensors().
    kernels::Epilogue steps(const void* scalars) const;
    int count() const { return steps_.count; }
    const std::vector<EpilogueTensor>& tensors() const { return tensors_; }
    int tensor_step(size_t i) const { return tensor_steps_[i]; }
    const EpilogueTensor& result() const { return result_; }

  private:
    class Maker;
    struct Scalar {
        int     step;
        bool    is_high;
        int64_t at;                      // byte of the run's scalars, an f32
    };
    kernels::Epilogue           steps_ = {};
    std::vector<Scalar>         scalars_;
    std::vector<EpilogueTensor> tensors_;
    std::vector<int>            tensor_steps_;
    EpilogueTensor              result_;
};

}  // namespace ng::cuda
