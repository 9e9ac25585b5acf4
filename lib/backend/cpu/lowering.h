// Lowering a kernel for the CPU: what is found out about its values, and who writes their instructions.
#pragma once
#include "lib/backend/cpu/tape.h"

#include <cstdint>
#include <vector>

namespace ng::cpu {

// How often a value changes: once a run, once a row, with every point.
enum Level : uint8_t { UNIFORM, ROW, FULL };
// Of full values, those that lie in memory where that is rows: leaves, and what chains store and keep nowhere else;
// and those that a map writes there itself, unless past the caches.
inline constexpr uint8_t LIGHT = FULL + 1, SENT = FULL + 2;

// Pass p reads the whole space and folds what needs only folds of passes before it.
struct Analysis {
    std::vector<uint8_t>  level;       // by value
    std::vector<int32_t>  need;        // by value: the first pass that may compute it; of a row value, the list before it
    std::vector<uint32_t> wanted;      // by value: bits of the passes that read it; of row and uniform values, not 0
    struct Placed { int32_t pass; bool row; };
    std::vector<Placed>   stores;      // by store
    int32_t passes = 0;
    bool    has_reduced = false;
};
Analysis analyse(const Kernel& kernel);

// The parts of a program that both of its tapes share, and single instructions.
class Maker {
  public:
    Maker(const Kernel& kernel, const IsaTable& isa);

    Instruction of_value(int32_t v);                   // slots are values' numbers still
    Instruction of_store(int32_t s) const;
    Instruction of_fold(int32_t f) const;
    Instruction of_start(int32_t f) const;
    const Value& value(int32_t v) const { return kernel.values[size_t(v)]; }
    int32_t access(int32_t old) const { return accesses_[size_t(old)]; }

    const Kernel&   kernel;
    const IsaTable& isa;
    Analysis        analysis;
    Program         program;
    SlotPlan        plan;
    std::vector<int32_t> fold;                         // by value: its place among the folds, or -1
    std::vector<int32_t> folded;                       // by fold: the value that it reads

  private:
    void add_access(int32_t old, bool is_full, bool decides);
    void add_axes();
    void add_folds();
    void add_positions();
    void add_fixed_slots();
    void mark_copies();
    void fill(Instruction& i, const Value& from);

    std::vector<int32_t> accesses_;                    // by the kernel's number
    std::vector<bool>    copied_;                      // by value: loads that may not lie in place
};

}  // namespace ng::cpu
