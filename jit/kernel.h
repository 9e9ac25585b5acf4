// A fused kernel: scalars in one loop nest, with loads, element-wise values, folds over some of its axes, and stores.
#pragma once
#include "jit/extent.h"
#include "jit/ops.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ng {

// The iteration space is the product of the axes, outermost first; no axis is of constant extent 1. Folds run over all
// reduced axes at once. The kept axes together number the rows.
struct KernelAxis {
    Extent extent;
    bool   reduced = false;
    bool operator==(const KernelAxis&) const = default;
};

// Which element belongs to a point of the space: offset + sum over axes of index * stride, in elements from a buffer's
// first. Strides of a row's access are 0 on reduced axes.
struct Access {
    Extent  offset;
    Extents strides;             // one an axis
    bool operator==(const Access&) const = default;
};
// Whether all strides are known before a run. An output's may not be, and one that is not wanted has none, so that nothing which
// other outputs could tell may depend on them: how sums are paired.
inline bool has_known_strides(const Access& a)
{
    for (const Extent& stride : a.strides)
        if (!stride.is_constant()) return false;
    return true;
}

enum class ValueKind : uint8_t {
    Load,        // buffer[access]
    Gather,      // buffer[access + index * stride], index = args[0] (i64), 0 unless 0 <= index < extent
    Index,       // access itself as an i64: no memory is read
    Constant,    // bits, of the value's type: f64's bits for floats, else the integer
    Scalar,      // at byte `bits` of the run's scalars
    Length,      // extent, as an i64
    Map,         // op of args, all of one compute type (where's condition is a bool)
    Convert,     // args[0] to type, rounded as ng_cast does
    Bitcast,     // args[0]'s encoding in its dtype, read as type
    Random,      // args: index (i64), key, step (u64, uniform); bits: a RandomWord
    Stochastic,  // args: value (f32 or f64), word (u32); to type, with `bits` of mantissa, 0: all
    Fold,        // op over all reduced axes of args[0]; a row value
};
enum class RandomWord : int64_t { Bits, Word3, Uniform, Normal };   // of contract N8; type says f32 or f64

struct Value {
    ValueKind kind;
    Op        op = Op::poison;
    Dtype     type = Dtype::f32;           // as in memory; registers hold its compute type
    bool      row = false;                 // varies over kept axes at most (only where the kernel has reduced axes)
    std::array<int32_t, 3> args{-1, -1, -1};
    int32_t   buffer = -1, access = -1;
    int64_t   bits = 0;
    Extent    extent = 0, stride = 0;
    bool operator==(const Value&) const = default;
};

// Stores of row values happen once a row, after all passes. A full value's store happens after all loads of the same
// point in all passes where `late` says so (it writes what the kernel reads), else whenever the value is there.
struct StoreTo {
    int32_t value, buffer, access;
    bool    late = false;
    bool operator==(const StoreTo&) const = default;
};

struct Kernel {
    std::vector<KernelAxis> axes;
    std::vector<Access>     accesses;
    std::vector<Value>      values;        // operands before their users
    std::vector<StoreTo>    stores;
    std::string             name;          // of tags, for explain and errors
};

}  // namespace ng
