// Operations: what each is called, takes and gives. Filled from ops.def.
#pragma once
#include "jit/dtype.h"

#include <cstdint>
#include <string_view>

namespace ng {

enum class Op : uint8_t {
#define NODE(name, ...) name,
#define MAP(name, ...) name,
#define FOLD(name, ...) name,
#define STAT(name, ...) name,
#define NORM(name, ...) name,
#include "jit/ops.def"
    count_
};
inline constexpr int OPS = int(Op::count_);

// Node: structure (leaves, movement, calls). Map: element-wise. Fold: a reduction that kernels know.
// Stat: a reduction composed of others when built. Norm: keeps its operand's shape; composed too.
enum class Class : uint8_t { Node, Map, Fold, Stat, Norm };

// In which type a map computes, given its operands' types.
enum class Domain : uint8_t {
    Any,    // the common type; bool becomes i32
    Keep,   // the common type, bool included
    Real,   // the common type; integers become f32 (8 and 16 bits) or f64
    Bits,   // the common type of bools and integers; floats are an error
    Logic,  // bool: each operand is taken as != 0
};
enum class Result : uint8_t { Same, Bool };  // of the type that was computed in, or bool

struct OpInfo {
    const char* name;        // "add": as in ng_add and in texts
    Class       kind;
    uint8_t     arity;       // operands of a map; 1 for reductions
    Domain      domain;
    Result      result;
    const char* expression;  // of a map over x, y, z; of a fold, how x and y combine
    const char* start;       // of a fold: its neutral element
    const char* derivative;  // of a map: a text an operand, over x y z, r the result, d the cotangent; "" none, "0" zero
    float       ulp;         // every backend stays within it; 0: exact
    const char* numpy;
    const char* summary;
};
const OpInfo& info(Op op);
inline const char* name_of(Op op) { return info(op).name; }
inline bool is_map(Op op) { return info(op).kind == Class::Map; }
inline bool is_fold(Op op) { return info(op).kind == Class::Fold; }
// The operation that texts call by this name, or Op::count_.
Op find_op(std::string_view name);

}  // namespace ng
