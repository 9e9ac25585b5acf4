// Polynomials of lengths, flattened once and evaluated by two loops.
#include "lib/backend/cpu/lengths.h"

#include <algorithm>

namespace ng::cpu {

int32_t Lengths::add(const Extent& extent)
{
    const int32_t at = count();
    if (extent.is_constant()) {
        values_.push_back(extent.constant());
        return at;
    }
    values_.push_back(0);
    Sum sum{at, int32_t(products_.size()), 0};
    for (const Term& term : extent.terms()) {
        const int32_t begin = int32_t(factors_.size());
        factors_.insert(factors_.end(), term.variables.begin(), term.variables.end());
        products_.push_back({term.coefficient, begin, int32_t(factors_.size())});
    }
    sum.end = int32_t(products_.size());
    variable_.push_back(sum);
    return at;
}

// Wraps where it overflows: who runs a kernel has checked the lengths.
void Lengths::evaluate(const int64_t* variables, int64_t* values) const noexcept
{
    std::copy(values_.begin(), values_.end(), values);
    for (const Sum& sum : variable_) {
        uint64_t total = 0;
        for (int32_t p = sum.begin; p < sum.end; p++) {
            const Product& product = products_[size_t(p)];
            uint64_t value = uint64_t(product.coefficient);
            for (int32_t f = product.begin; f < product.end; f++) value *= uint64_t(variables[factors_[size_t(f)]]);
            total += value;
        }
        values[sum.at] = int64_t(total);
    }
}

}  // namespace ng::cpu
