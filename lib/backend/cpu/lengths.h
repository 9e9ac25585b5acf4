// The extents of a kernel as one flat table of numbers, so that a run evaluates them without allocating.
#pragma once
#include "jit/extent.h"

#include <cstdint>
#include <vector>

namespace ng::cpu {

class Lengths {
  public:
    int32_t add(const Extent& extent);                 // its place among the values
    int32_t count() const { return int32_t(values_.size()); }
    bool    is_constant() const { return variable_.empty(); }
    const int64_t* constants() const { return values_.data(); }
    void evaluate(const int64_t* variables, int64_t* values) const noexcept;

  private:
    struct Product { int64_t coefficient; int32_t begin, end; };         // of factors_
    struct Sum { int32_t at, begin, end; };                              // of products_
    std::vector<int64_t> values_;                      // 0 where a variable decides
    std::vector<Sum>     variable_;
    std::vector<Product> products_;
    std::vector<int32_t> factors_;
};

}  // namespace ng::cpu
