// One number of any element type, and its conversions: what folding computes with.
#pragma once
#include "jit/dtype.h"
#include "jit/ops.h"

#include <cstdint>
#include <optional>
#include <span>

namespace ng {

// Integers and bools as 64 bits (u64 by its bits), floats as doubles that their type holds exactly.
class Number {
  public:
    explicit Number(double v) : real_(v), type_(Dtype::f64) {}
    explicit Number(int64_t v) : integer_(v), type_(Dtype::i64) {}
    static Number of_bits(Dtype t, int64_t bits);   // as a constant node holds it

    Number  as(Dtype t) const;                      // rounded, saturated, wrapped as ng_cast does (N2)
    int64_t bits(Dtype t) const;                    // of a number that is of type t
    Dtype   type() const { return type_; }
    double  real() const;
    int64_t integer() const { return integer_; }
    bool    is(double v) const { return real() == v; }
    bool    fits(Dtype t) const;                    // of an integer: whether an integer type or bool has it

  private:
    Number() = default;
    double  real_ = 0;
    int64_t integer_ = 0;
    Dtype   type_ = Dtype::f64;
};

// To the nearest value of a float type, ties to even; those of one byte saturate, others overflow to infinity.
double round_to(Dtype t, double v);
// The greatest finite one.
double largest_of(Dtype t);

// What a map gives for constants of its compute type, where that is exact on every device; nothing otherwise.
std::optional<Number> fold_map(Op op, Dtype t, std::span<const Number> operands);
// What a map of operands of this type gives whatever these are; nothing where it depends on them. is_same: both are one.
std::optional<int64_t> always(Op op, Dtype t, bool is_same);

}  // namespace ng
