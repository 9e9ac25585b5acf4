// Fused kernels as the shipped interpreter runs them: lists of instructions, and what each launch is told.
#pragma once
#include "jit/kernel.h"
#include "kernels/interpreter.h"

#include <cstdint>
#include <span>
#include <vector>

namespace ng::cuda {

// The interpreter's kernel; its one parameter is an interpreter::Numbers. It wants as much dynamic shared memory allowed as
// tapes are made for.
inline constexpr const char* INTERPRETER_KERNEL = "interpret";

// One access of a kernel to one buffer; -1: none, it gives indices.
struct TapeAccess {
    Access  access;
    int32_t buffer = -1;
    int32_t bytes = 0;               // of an element
    bool    is_plain = true;         // a load or store, which may move four elements at once
    bool    decides = true;          // whether its strides decide how rows are walked
};
struct TapeNumber {
    enum class Kind : uint8_t { Bits, Scalar, Length } kind;
    Dtype   type = Dtype::i64;       // of a scalar, in memory
    int64_t bits = 0;                // as a slot holds them; of a scalar, its byte
    Extent  length = 0;
};

struct Tape {
    std::vector<interpreter::Instruction> code;      // goes to the device once, 16-byte aligned
    std::vector<TapeAccess> accesses;
    std::vector<TapeNumber> numbers;
    std::vector<KernelAxis> axes;
    std::vector<int32_t>    row_axes, walked;        // places among the axes
    Extents  extents;                // number of rows, number of a row's points
    int32_t  buffers = 0;
    uint32_t units = 0, folds = 0, passes = 0;       // units: of slots
    uint32_t threads = 0;            // of the largest block
    uint32_t slots_at = 0, shared_bytes = 0;         // of that block's shared memory
    uint32_t kept_tiles = 0;         // of a row, that loads of a later pass find in slots
    uint32_t near_at = 0;            // where accesses and the list lie there; 0: they do not
    uint32_t spilled = 0;            // units of scratch that each block has for live values beyond its slots
    bool     has_rows = false, may_split = false;    // may_split: passes may be launches of their own
    bool     ends_with_stores = false;               // of rows
    uint64_t code_bytes() const { return code.size() * sizeof(interpreter::Instruction); }
};

// NG_E_LIMIT: more than 32 passes; offsets, strides and numbers that leave 4 KiB (493 words: a number 1, an access 4 and,
// where there are several axes, its strides, an axis 2). Live values that leave the shared memory of a block of 32 threads (in 96 KiB about 45
// of 32 bits, or half as many of 64; in 227 KiB 110) are spilled. Blocks of more threads never take more than 96 KiB, nor do those that spill.
Tape make_tape(const Kernel& kernel, uint32_t shared_bytes = interpreter::MAX_SHARED_BYTES);

// How a run with these variables is cut. Depends on them and the tape only, but for `blocks`.
struct TapeGeometry {
    uint32_t launches = 0;           // one after the other on one stream; 0: there is nothing to compute
    uint32_t threads = 0, shared_bytes = 0;
    uint32_t per_block = 1;          // rows that a block works on at once: what emitted kernels take, too
    uint32_t pieces = 1;             // of each row, a block each; 1: as emitted kernels do it
    uint64_t groups = 0;             // of per_block rows, or tiles of points
    uint32_t blocks_a_unit = 0;      // of a grid, then they stride
    uint64_t scratch_bytes = 0;      // for folds, 256-byte aligned; contents before do not matter
    uint32_t blocks(uint32_t launch, uint32_t units) const noexcept;     // units: multiprocessors
    bool     is_possible = true;     // false: an axis among several is 2^31 long or longer
};
TapeGeometry geometry_of(const Tape& tape, std::span<const int64_t> variables) noexcept;
// No run of this tape needs more scratch on a device of so many multiprocessors.
uint64_t most_scratch(const Tape& tape, uint32_t units) noexcept;

// What a run brings along. Pointers to the device's memory; buffers in the kernel's order, to their first elements.
struct TapeRun {
    const void* code;
    void*       scratch;
    std::span<void* const>   buffers;
    std::span<const int64_t> variables;
    const void* scalars;             // the host's
};
void fill_numbers(const Tape& tape, const TapeGeometry& geometry, const TapeRun& run, uint32_t launch, interpreter::Numbers& out) noexcept;

}  // namespace ng::cuda
