// Extents: integer polynomials of the lengths that are known only when a program runs.
#pragma once
#include "jit/ref.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ng {

// A product of variables with a coefficient: 3 a b is {3, {a, b}}. Variables ascend.
struct Term {
    int64_t              coefficient;
    std::vector<int32_t> variables;
    bool operator==(const Term&) const = default;
};

// Immutable. Variable v >= 0 is the length that ng.h writes as -1 - v; from HIDDEN on, variables are ours: strides that
// are known when run. Arithmetic that leaves 64 bits is NG_E_LIMIT.
class Extent {
  public:
    static constexpr int32_t HIDDEN = 1 << 20;
    static constexpr size_t  MAX_TERMS = 4096, MAX_DEGREE = 64;      // beyond: NG_E_LIMIT. So all that is made is read back

    Extent(int64_t constant = 0) : constant_(constant) {}
    static Extent variable(int32_t v);
    static Extent of_terms(std::vector<Term> terms);     // any order, repeats and zeros allowed

    bool    is_constant() const { return !terms_; }
    int64_t constant() const { return constant_; }         // of a constant
    bool    is(int64_t value) const { return !terms_ && constant_ == value; }
    // -1 - v where this is exactly the variable v; NG_REST where no single dim of ng.h can say it.
    int64_t as_dim() const;
    std::vector<Term> terms() const;                       // constants have one without variables, 0 has none
    int32_t highest_variable() const;                      // -1: none; hidden ones do not count
    void    mark_variables(std::vector<bool>& mentioned) const;      // grows with them; hidden ones do not count

    int64_t value(std::span<const int64_t> variables) const;
    int64_t wrapped(std::span<const int64_t> variables) const noexcept;    // modulo 2^64: strides that nobody goes along may be any numbers
    // No value is more where each variable is 0 or above, and these at most: 12 - n is largest where n is least.
    int64_t most(std::span<const int64_t> largest) const;
    std::optional<Extent> divided_by(const Extent& divisor) const;  // the exact quotient
    std::optional<Extent> floor_by(int64_t divisor) const;          // the quotient of a positive number rounded down, where that is one polynomial
    bool    may_be_negative() const;                       // of variables that are not
    uint64_t    hash() const;
    std::string text() const;                              // "128", "-1", "2*(-1)+1"

    friend bool operator==(const Extent& a, const Extent& b);
    friend Extent operator+(const Extent& a, const Extent& b);
    friend Extent operator-(const Extent& a, const Extent& b);
    friend Extent operator*(const Extent& a, const Extent& b);

  private:
    struct Terms : RefCounted {
        std::vector<Term> list;
    };
    int64_t          constant_ = 0;
    Ref<const Terms> terms_;
};

using Extents = std::vector<Extent>;

Extent      product(std::span<const Extent> extents);
std::string text_of(std::span<const Extent> extents);      // "[64, -1]"
// Row-major strides, in elements.
Extents     dense_strides(std::span<const Extent> dims);

// A shape that many nodes share.
struct Shape : RefCounted {
    Extents dims;
    uint64_t hash = 0;
    explicit Shape(Extents dims_);
};
using ShapeRef = Ref<const Shape>;
inline bool same(const ShapeRef& a, const ShapeRef& b) { return a == b || (a->hash == b->hash && a->dims == b->dims); }

}  // namespace ng
