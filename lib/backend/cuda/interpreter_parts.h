// A tape in the making: instructions over registers without number, what each value became, and who gives them slots.
#pragma once
#include "jit/emit_parts.h"
#include "lib/backend/cuda/interpreter.h"

#include <vector>

namespace ng::cuda {

using interpreter::Code;
using interpreter::Instruction;

constexpr uint16_t slow(interpreter::SlowCode code) { return uint16_t(uint32_t(interpreter::SLOW) + uint32_t(code) * uint32_t(interpreter::CODES)); }

// Operands of drafts: registers are counted from 0; a number of the launch is ~number.
inline constexpr int32_t NOTHING = INT32_MIN;
struct Draft {
    uint16_t code;
    int32_t  out = NOTHING;
    int32_t  args[3] = {NOTHING, NOTHING, NOTHING};
    uint16_t y = 0, z = 0, place = 0;    // where the code wants a number there, and no operand
    uint32_t more = 0;                   // of jumps: a label
    int32_t  kept = NOTHING;             // of loads: a register, which y is then
};
struct Register {
    bool    is_wide = false;             // 64 bits
    bool    is_kept = false;             // for all that follows: it may be read again
    bool    has_slot = false;
    int64_t first = -1, last = -1;       // drafts that write and read it
    int32_t slot = -1;
};
// A loop: what it reads from outside stays until it ends.
struct Loop { size_t begin, end; };

class TapeWriter {
  public:
    TapeWriter(const Kernel& kernel, uint32_t shared_bytes);
    Tape write();

  private:
    // interpreter.cc
    void find_axes();
    void points();
    void rows();
    void uniform();
    void row_list(int32_t pass);
    void starts(int32_t pass);
    void full_list(int32_t pass);
    void with_leaves(size_t v, int32_t pass);
    void leaves_of(size_t v);
    void compute(size_t v);
    void folds_of(size_t v, int32_t pass);
    void stores_of(size_t v, int32_t pass);
    bool finishes(int32_t pass, uint32_t left);
    void store(size_t s);
    bool is_full(size_t v) const { return passes_.level[v] == emitting::Level::Full; }
    bool is_leaf(size_t v) const { return value(v).kind == ValueKind::Load || value(v).kind == ValueKind::Index; }
    bool has_pass(size_t v, int32_t pass) const { return passes_.wanted[v] >> pass & 1; }
    uint32_t label() { return labels_++; }
    void mark(uint32_t l) { marks_.push_back({l, drafts_.size()}); }
    void jump(uint16_t code, uint32_t to, uint16_t pass = 0, uint16_t place = 0);
    void check_size() const;

    // interpreter_values.cc
    const Value& value(size_t v) const { return kernel_.values[v]; }
    int32_t operand(int32_t v);          // of drafts: a register, or a number
    int32_t fresh(bool is_wide);
    int32_t add(uint16_t code, bool is_wide, std::initializer_list<int32_t> args, uint32_t more = 0, uint16_t place = 0);
    int32_t number(TapeNumber n);
    int32_t numbers(std::initializer_list<TapeNumber> together);
    uint16_t access(int32_t a, int32_t buffer, int32_t bytes, bool is_plain, bool decides = true);
    int32_t wrapped(int32_t x, Dtype t);
    int32_t loaded(size_t v);
    int32_t gathered(size_t v);
    int32_t mapped(const Value& v);
    int32_t converted(int32_t x, Dtype from, Dtype to);
    int32_t encoded(int32_t x, Dtype t);
    int32_t coded(size_t v, int32_t x);
    int32_t recoded(size_t v);
    int32_t drawn(const Value& v);
    int32_t by_chance(const Value& v);
    int32_t scalar(size_t v);
    int32_t instruct(size_t v);          // gives where the value is
    bool    is_rounded_by_stores(size_t v) const;
    uint32_t fold_kind(const Value& v) const;
    int32_t start_numbers(const Value& v);
    int32_t folded(const Value& v, int32_t x);      // what is left to do with a finished fold

    // interpreter_spill.cc
    void spill();
    void spill(const std::vector<bool>& chosen);
    std::vector<bool> beyond(size_t pairs) const;

    // interpreter_alloc.cc
    void forward();
    void take(Draft& d, int32_t held, std::vector<Draft>& out);
    void keep();
    void pair_up();
    void keep_loads();
    void try_slots();
    void replace(std::vector<Draft> drafts, const std::vector<size_t>& now_at);
    void find_lives();
    void give_slots();
    void lay_out();
    uint64_t bytes_with(uint32_t threads, uint64_t units) const;     // of shared memory
    bool fits() const;                   // in the smallest block
    uint32_t byte_of(int32_t arg) const;
    void finish_code();

    const Kernel&            kernel_;
    uint32_t                 shared_bytes_;
    emitting::Passes         passes_;
    Tape                     tape_;
    std::vector<Draft>       drafts_;
    std::vector<Register>    registers_;
    std::vector<int32_t>     now_;       // by value: where it is; NOTHING: not yet
    std::vector<int32_t>     fold_;      // by value
    std::vector<int32_t>     kept_;      // by value: of a load in several passes, where it is kept
    std::vector<int32_t>     users_;     // by value: those that are no stores of its own type
    std::vector<bool>        stored_;    // by store
    std::vector<bool>        moves_, computes_;      // by value: whether its bits are stored or seen as another type's; whether others read the number
    std::vector<int32_t>     code_;      // by value: what memory holds of it, in the low bits; NOTHING: only the number is there
    std::vector<Loop>        loops_;
    struct Mark { uint32_t label; size_t at; };
    std::vector<Mark>        marks_;
    uint32_t                 labels_ = 0;
    bool                     keeps_ = false;         // registers that are made now are read in later runs of a list, too
};

}  // namespace ng::cuda
