// A kernel as the CPU's interpreter walks it: instructions over slots, in lists for once, for each row and each block.
#pragma once
#include "jit/kernel.h"
#include "lib/backend/cpu/isa.h"
#include "lib/backend/cpu/lengths.h"

#include <cstdint>
#include <vector>

namespace ng::cpu {

// Registers of a task, on its stack. With MAX_LIVE of them a block still has MIN_BLOCK elements of 8 bytes.
inline constexpr int64_t SCRATCH_BYTES = 48 << 10;
inline constexpr int64_t SLOT_PAD = 64;                // registers of 1024 f32 would else lie 4 KiB apart
inline constexpr int64_t MIN_BLOCK = 16, MAX_BLOCK = 1024;
inline constexpr int     TEMPS = 2;                    // registers for operands that a loop does not take as they are
inline constexpr int     MAX_LIVE = 240, MAX_UNIFORM = 96, MAX_SLOTS = MAX_UNIFORM + MAX_LIVE;
inline constexpr int     MAX_PASSES = 32;
inline constexpr int     MAX_STRIDES = 2048, MAX_AXES = 64;           // numbers that say where the accesses of one kernel go
static_assert((MAX_LIVE + TEMPS) * (MIN_BLOCK * 8 + SLOT_PAD) <= SCRATCH_BYTES);

enum class Code : uint8_t {
    Load, Index, Scalar, Length, Gather, Map, Convert, Bitcast, Random, Stochastic, Start, Fold, Finish, Store, Chain
};
enum Flag : uint8_t {
    DIRECT = 1,   // the next instruction stores this one's result and nobody else reads it: it may be computed in place
    IN_PLACE = 2, // of a load: its memory is as good as a register
    // Of chains and what they read:
    CODES = 4,    // of a load: chains alone read it, and take codes of f16 and bf16 as they are
    FROM_X = 8,   // the bundle is the first operand
    FROM_Y = 16,  // the bundle is the second operand
    KEPT = 32,    // the result is read from its register, too, or from the chain's own (near)
    ROUNDS = 64,  // of a conversion: the next instruction stores it and nobody else reads it
    SLOW = 128,   // of a map: memory has time for much while it computes
};

struct Instruction {
    Code    code;
    Dtype   type;                     // of the result, or of what is stored, as in memory
    Dtype   operand = Dtype::f32;     // of the last operand: its compute type
    uint8_t bytes = 0;                // of an element of the result's register
    uint8_t memory_bytes = 0;         // of an element in memory, of loads and stores
    uint8_t arity = 0, flags = 0;
    bool    is_row = false;           // works on row values: in a list of rows or starts
    uint16_t link = 0;                // in a chain: its code for operands that are blocks; 0: it has none
    int8_t  near[3] = {-1, -1, -1};   // of two operands and the result: the chain's own register, of one bundle; -1: a slot
    int32_t out = -1;                 // slot
    int32_t args[3] = {-1, -1, -1};   // slots; ~i is constant i
    int32_t extra = -1;               // access, fold, scalar's byte, gather, bits of mantissa, a chain's length: what the code needs
    int32_t buffer = -1;
    union {
        const MapLoop* map = nullptr; // by mode
        LoadLoop       load;
        StoreLoop      store;
        ConvertLoop    convert;
        GatherLoop     gather;
        RandomLoop     random;
        StochasticLoop stochastic;
    };
};

// Outside chains: whether the next instruction stores the result, and it takes no more than its operands to compute.
inline bool is_sent(const Instruction& i)
{
    return i.flags & DIRECT && ((i.code == Code::Map && i.arity < 3) || i.code == Code::Convert);
}

struct List { uint32_t begin = 0, end = 0; };

// One way of walking: streamed computes full values again in each pass that needs them, resident keeps them.
struct Tape {
    std::vector<Instruction> code;
    std::vector<List> rows;           // before each pass, and after the last: row values and their stores
    std::vector<List> starts, full;   // of each pass
    std::vector<bool> sums_memory;    // by pass: full values are loads, each folded as it lies in memory
    List    uniform;                  // once a task
    int32_t row_slots = 0, full_slots = 0;             // those of rows come first
    bool    is_passing = false;       // stores take what chains make, or maps, or memory has, as it is
    bool    has_outbox = false;       // of maps outside chains one is SLOW, and one's result is stored as it is
    int32_t light_slots = 0;          // the last full ones: they hold what lies in tensors' memory where that is rows
    int32_t sent_slots = 0;           // before these: what maps write to memory where that is rows, unless past the caches
    double  element_ns = 0, row_ns = 0;                // work beyond calls, an element and a row
    double  full_calls = 0, row_calls = 0;
    struct Touch { int32_t access, bytes, times; bool is_stored; };   // memory that full values are, an element
    std::vector<Touch> touches;
    int live() const { return row_slots + full_slots; }
};

struct FoldSlot {
    Op         op;
    Dtype      type, accumulator;
    FoldLoops  loops;
    FoldAcross merge;                 // accumulators into accumulators, one by one
    int64_t    bytes = 0;             // of an accumulator
    int32_t    pass = 0;
    int32_t    slot = -1, at = -1;    // accumulators; positions of argmin and argmax
    uint64_t   start = 0;             // the accumulator's first bits
    bool is_arg() const { return at >= 0; }
};

struct GatherInfo { int32_t access, extent, stride; LoadLoop load; };   // extent and stride: of the lengths

struct Program {
    const IsaTable* isa = nullptr;
    std::vector<bool> reduced;        // by axis
    std::vector<bool> is_full;        // by access: full values or their stores use it
    std::vector<bool> is_in_memory;   // by access: else it is a number that is counted, as large as numbers are
    // By access: whether its strides decide how the space is walked. Not those of outputs that are known when run, where that says
    // how sums are paired: an output that is not wanted has none, and changes no bit of the others (contract E6).
    std::vector<bool> decides;
    bool    has_reduced = false, has_resident = false;
    int32_t passes = 1, uniform_slots = 0, fold_slots = 0;
    int64_t full_bytes = 4, row_bytes = 4;             // the widest element in registers of full and of row values
    Tape    streamed, resident;
    std::vector<int64_t>    constants;                 // by bits, each of its compute type
    std::vector<FoldSlot>   folds;
    std::vector<GatherInfo> gathers;
    Lengths lengths;                  // extents of axes, then of each access offset and strides, then others
    int32_t axes = 0, accesses = 0, position = -1;     // position: the access that argmin and argmax count with

    int32_t offset_at(int32_t access) const { return axes + access * (axes + 1); }
    int32_t stride_at(int32_t access, int32_t axis) const { return offset_at(access) + 1 + axis; }
};

// NG_E_LIMIT where the kernel has more live registers, passes or strides than fit.
Program lower(const Kernel& kernel, const IsaTable& isa);
int live_registers(const Kernel& kernel, const IsaTable& isa);

// What register allocation starts from, by value: slots of constants and uniform values, levels, bytes of an element.
struct SlotPlan {
    std::vector<int32_t> slots;
    std::vector<uint8_t> level;
    std::vector<uint8_t> bytes;
};
// Brings together what a chain can do in code from `begin` on, whose operands are values' numbers. is_read_later: by value,
// outside of this code.
void form_chains(std::vector<Instruction>& code, size_t begin, const std::vector<bool>& is_read_later);
// Instructions come in with values' numbers and leave with slots.
void assign_slots(Tape& tape, const SlotPlan& plan, const Program& program, bool is_resident);

}  // namespace ng::cpu
