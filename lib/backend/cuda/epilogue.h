// The fused step behind a matrix product as its epilogue: a cast that shipped kernels do, or a text for one of its own.
#pragma once
#include "jit/fold_parts.h"
#include "jit/plan.h"
#include "lib/backend/cuda/epilogue_list.h"
#include "lib/backend/cuda/gemm.h"

#include <algorithm>
#include <optional>

namespace ng::cuda {

// A tensor that the step reads or writes: where its elements lie along the kernel's axes, in numbers known when run.
struct EpilogueTensor {
    int32_t buffer = -1;                 // of the plan; -1 - i: parts of fold i
    Dtype   type = Dtype::f32;
    Access  access;
};

// Of a step with folds: the kernel that folds their parts, or all that was stored, when the product's kernel is done with the rest.
struct EpilogueFolds {
    Kernel after;
    std::vector<int32_t> buffers;        // by its numbers: of the plan; -1 - i: parts of fold i
    int32_t folds;                       // in parts; 0: what folds comes behind
    bool    is_over_columns, is_pivoted; // of the product, else over rows; some are of distances from a number of each part
    Extent  count;                       // elements of a part; of 4 bytes
    // Whether a run with these has what it reads: outputs that nobody wants are nowhere.
    bool can_run(char* const* addresses) const;
};

class EpilogueForm {
  public:
    // Nothing where no kernel for products can do what the step does. parts: the variable that says how many parts a fold has.
    static std::optional<EpilogueForm> of(const Step& product, const Step& fused, int32_t parts = 0);

    bool is_cast() const { return is_cast_; }            // no more than that: shipped kernels do it
    const std::string& text() const { return finish_.source.text; }
    const EpilogueList* list() const { return list_ ? &*list_ : nullptr; }       // that shipped kernels can carry out
    int32_t list_weight() const { return weight() + list_->weight(); }
    int32_t weight() const { return is_cast_ ? 0 : std::max(finish_.weight, 1); }
    // Addresses and strides of tensors() are still missing, and in the first the numbers.
    kernels::Epilogue in_numbers() const;
    kernels::Epilogue in_numbers(std::span<const int64_t> variables, const void* scalars) const;
    kernels::Epilogue in_list(const void* scalars) const;        // the same where it is a list
    const std::vector<EpilogueTensor>& tensors() const { return tensors_; }
    bool has_result() const { return finish_.result >= 0; }
    const EpilogueTensor& result() const { return result_; }     // where there is one
    const EpilogueFolds* behind() const { return folds_ ? &*folds_ : nullptr; }
    const EpilogueFolds* folds() const { return folds_ && folds_->folds ? &*folds_ : nullptr; }     // in parts
    bool is_wanted(char* const* buffers) const;          // by the run that has these; some result is

  private:
    FinishSource                finish_;
    bool                        is_cast_ = false;
    std::optional<EpilogueList> list_;
    std::vector<EpilogueTensor> tensors_;
    EpilogueTensor              result_;
    std::optional<EpilogueFolds> folds_;
};

}  // namespace ng::cuda
