// A fused step behind a product as a list that shipped kernels carry out, where it is short and of what they know.
#pragma once
#include "jit/emit_finish.h"
#include "kernels/gemm_list.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ng::cuda {

class EpilogueList {
  public:
    // The kernel's one store and its folds, as emit_finish has them, as a list; `product`: its buffer of sums. Nothing where it is none: more
    // instructions, tensors, folds or kept values than there is room for, several results, other types than f32 and narrow floats, other maps than
    // kernels/listed_maps.h.
    static std::optional<EpilogueList> of(const Kernel& kernel, int32_t product, std::span<const FinishFold> folds = {});

    int32_t weight() const { return weight_; }           // of a sum: about the instructions that a text would not have
    int32_t tensors() const { return int32_t(types_.size()); }
    // Word 0, and the instructions with what scalars are.
    void fill(const void* scalars, std::span<kernels::u64, kernels::EPILOGUE_NUMBERS> to) const;
    // The instructions in words: "add t0, relu".
    std::string text() const;

  private:
    class Maker;
    struct Scalar { int32_t word; int64_t at; };         // an f32 at that byte of the scalars

    std::vector<kernels::u64> words_;
    std::vector<Dtype>        types_;                    // of tensors, in the order of their loads
    std::vector<Scalar>       scalars_;
    int32_t                   weight_ = 0;
};

}  // namespace ng::cuda
