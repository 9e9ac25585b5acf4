// Source text of a fused kernel for a device, and the numbers that each launch of it passes.
#pragma once
#include "jit/dialect.h"
#include "jit/kernel.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ng {

// The most threads of a block; a launch may use fewer, a power of two of them.
inline constexpr int32_t BLOCK_THREADS = 256;

enum class NumberKind : uint8_t {
    Length,      // extent, an i64
    Constant,    // bits: what the field holds
    Scalar,      // at byte `bits` of the run's scalars
    PerBlock,    // an i32: rows that a block works on at once, a power of two, at most as many as its threads
};

// One field of the struct that is a kernel's last parameter.
struct NumberField {
    NumberKind kind;
    Dtype      type = Dtype::i64;
    uint32_t   offset = 0;           // in bytes, from the struct's first
    Extent     extent = 0;
    int64_t    bits = 0;
};

// Extents, strides, constants and scalars are numbers, so kernels that differ in them alone have one text: it is the key
// of a cache. Whether a stride is 0 is structure (what a row or all points share is loaded once).
//
// The function is called `fused`. Its parameters are a pointer for each of the kernel's buffers, to the buffer's first
// element, then the struct by value. Without rows a grid of any size walks all points. With rows, each block takes
// per_block rows at once and thread t works on row t mod per_block: 1 where folds run along the fastest axis, a warp's
// width where they run across it, as many as threads where rows are short. Nothing is launched where `rows` is 0.
struct KernelSource {
    std::string text;                // to be compiled after the dialect's prelude
    std::vector<NumberField> numbers;
    uint32_t number_bytes = 0;       // of the struct
    int32_t  buffers = 0;
    bool     has_rows = false;
    Extent   rows = 1, points = 1;   // points: of a row; without rows: of all

    uint32_t parameter_bytes() const { return uint32_t(buffers) * 8 + number_bytes; }
};

// NG_E_LIMIT where the kernel reads its space more than 32 times.
KernelSource emit(const Kernel& kernel, const Dialect& dialect);

// The struct of one launch; out has number_bytes. variables: as Extent::value takes them.
void fill_numbers(const KernelSource& source, std::span<const int64_t> variables, const void* scalars, int32_t per_block, void* out);

}  // namespace ng
