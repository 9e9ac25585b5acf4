// The numpy column of ops.def, read and computed: what makes a new row's reference without a line written for it.
#pragma once
#include "tests/random/element.h"

#include <string>
#include <vector>

namespace programs {

// A formula over x, y, z in postfix.
struct Step {
    int  word;      // of the list in column.cc
    Real number;
};
using Column = std::vector<Step>;

// Throws std::runtime_error with a sentence where the text holds what is not known here.
Column column_of(const std::string& text);

template <class T> struct Operands { T x, y, z; };
// T: float, double, Real. largest: the greatest magnitude met on the way; may be null.
template <class T> T computed(const Column& column, const Operands<T>& in, Real* largest = nullptr);
// Integers and bool of type t, wrapped after each step; the contract's N3 where NumPy has no answer.
Real computed_whole(const Column& column, ng_dtype t, const Operands<Real>& in);

}  // namespace programs
