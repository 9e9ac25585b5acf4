// What emitting consists of: passes over the space, helper functions of rows, the text of single values.
#pragma once
#include "jit/emit.h"
#include "jit/error.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace ng::emitting {

// How often a value changes: once a launch, once a row, with every point.
enum class Level : uint8_t { Uniform, Row, Full };

// Pass p reads the whole space and folds what needs only folds of passes before it.
struct Passes {
    std::vector<Level>    level;     // by value
    std::vector<int32_t>  need;      // by value: the first pass that may compute it; a row's value is there before it
    std::vector<uint32_t> wanted;    // by value: bits of the passes that read it; of row and uniform values, not 0
    struct Placed { int32_t pass; bool row; };
    std::vector<Placed>   stores;    // by store
    // Folds of what another fold gives may run beside it: sum((x - m)^2) or sum(exp(x - m)), of a row's m that comes later.
    // A sum of the x whose moments are taken (m is that fold) is its mean times its count.
    enum class Kind : uint8_t { Own, Moments, Scaled, Total };
    struct Running { Kind kind = Kind::Own; int32_t x = -1, m = -1; };
    std::vector<Running>  running;   // by value
    std::vector<int32_t>  folded;    // by value: the pass that folds it, -1: no fold
    int32_t count = 0;
    bool    has_rows = false;
    // The last pass that folds something, -1: none does.
    int32_t last_fold() const { return folded.empty() ? -1 : *std::ranges::max_element(folded); }
    bool is_running(size_t v) const { return running[v].kind != Kind::Own; }
};
Passes passes_of(const Kernel& kernel, bool may_run = false);
// What a value is computed from.
std::array<int32_t, 3> operands_of(const Kernel& kernel, const Passes& p, size_t v);

inline std::string held_name(Dtype t) { return name_of(compute_of(t)); }             // of registers: "f32" for f16
inline std::string memory_name(Dtype t) { return is_bool(t) ? "u8" : name_of(t); }
inline std::string number(int64_t n) { return std::to_string(n); }
// A float as a literal of the type, by the fewest digits that give it again.
std::string literal(double value, Dtype t);

// An expression of ops.def with T, K(v), F(f), LOWEST and HIGHEST said in the compute type.
std::string resolved(std::string_view expression, Dtype t);

// How one fold accumulates.
struct FoldWords {
    std::string accumulator;         // its type
    std::string start;
    std::string combine;             // the function of two accumulators
    std::string block;               // the function that folds a block's accumulators
    std::string lift(const std::string& value, const std::string& position) const;
    std::string finish(const std::string& accumulated) const;
    enum class Kind : uint8_t { Plain, Pair, Best, Tree, Running } kind;
    Dtype type;
    bool  is_sum = false;
    std::string thread, thread_start;        // of a thread before it meets others: its accumulator where that is another
};
FoldWords fold_words(Op op, Dtype operand);

// The helper functions that a kernel calls, each printed once, in the order in which they were asked for.
class Helpers {
  public:
    // has_parts: of columns whose parts are blocks' own, where what each block ends with counts.
    // is_whole: all blocks have all threads that they may have.
    explicit Helpers(const Dialect& dialect, bool has_parts = false, bool is_whole = false) : dialect_(dialect), has_parts_(has_parts), is_whole_(is_whole) {}
    std::string map(Op op, Dtype t);                 // gives the function's name
    FoldWords   fold(Op op, Dtype operand);
    // The same for threads of a team: lanes side by side, or across a block where a thread has a vector of rows. Where a
    // thread has all of its points at once, sums are trees from the first to the last.
    FoldWords   team(Op op, Dtype operand, bool is_across, bool is_held, Passes::Kind running = Passes::Kind::Own);
    const std::string& printed() const { return text_; }

  private:
    void print(const std::string& signature, const std::string& result);
    void combine(const FoldWords& w, Op op);
    void best(const FoldWords& w, Op op);
    void next(const FoldWords& w, Op op);
    void block(const FoldWords& w);
    void shuffle(const FoldWords& w);
    void meet_along(const FoldWords& w);
    void meet_across(const FoldWords& w);
    std::string met_in_warps(const FoldWords& w) const;
    std::string met_by_halves(const FoldWords& w) const;

    const Dialect& dialect_;
    bool           has_parts_, is_whole_;
    std::string    text_;
    std::set<std::string> names_;
};

// The struct of numbers in the making: names and what fills them.
class Numbers {
  public:
    std::string add(const std::string& name, NumberField field);       // gives "n.name"; a name that is there stays what it is
    std::string length(const std::string& name, const Extent& extent) { return add(name, {NumberKind::Length, Dtype::i64, 0, extent, 0}); }
    void end_line() { if (!lines_.empty()) lines_.back().is_open = false; }
    // Orders the fields, widest first, and gives them their offsets.
    std::string finish(KernelSource& source);

  private:
    struct Line { Dtype type; std::vector<std::string> names; std::vector<NumberField> fields; bool is_open = true; };
    std::vector<Line> lines_;
    std::set<std::string> names_;
};

// Texts of values and stores, and what they ask of helpers and numbers.
class Words {
  public:
    Words(const Kernel& kernel, const Dialect& dialect, Helpers& helpers, Numbers& numbers);
    virtual ~Words() = default;
    bool is_inline(int32_t v) const;                 // has no variable: a number of the launch
    virtual std::string name(int32_t v);             // by which users call it
    virtual std::string expression(int32_t v);
    std::string store(size_t s);                     // a statement
    std::string parameters(bool may_restrict) const; // the pointers
    // Whether CUDA's prelude has it without rare cases, in words that tell of operands which those are for in `is_tame`.
    bool has_tame_form(int32_t v) const;
    void take_tame_forms(bool does) { takes_tame_forms_ = does; }

  protected:
    const Value& value(int32_t v) const { return kernel_.values[size_t(v)]; }
    virtual std::string index(size_t axis) const { return "i" + number(int64_t(axis)); }
    std::string place(const std::string& of, const Access& access);
    // The buffer as a pointer to this type.
    std::string pointer(int32_t buffer, Dtype t, bool is_written) const;
    // Before a store: a buffer that is only written may be none, where nobody wants it this time.
    std::string guard(int32_t buffer) const;

    const Kernel&  kernel_;
    const Dialect& dialect_;
    Helpers&       helpers_;
    Numbers&       numbers_;
    bool           takes_tame_forms_ = false;

  private:
    std::string tame_form(const Value& v);
    std::string inline_number(int32_t v);
    std::string element(int32_t buffer, Dtype t, const std::string& at, bool is_written) const;
    std::string gathered(int32_t v);
    std::string random(const Value& v);
    std::string stochastic(int32_t v);

    std::map<int32_t, std::string> inlined_;
    struct Buffer { Dtype type = Dtype::u8; bool is_used = false, is_read = false, is_written = false; };
    std::vector<Buffer> buffers_;
};

// x, which lies in registers for `from`, as `to`: rounded, saturated or wrapped (contract N2).
std::string converted(const std::string& x, Dtype from, Dtype to);
// The number that lies in memory as `code`, and the other way.
std::string decoded(const std::string& code, Dtype t);
std::string encoded(const std::string& x, Dtype t);

}  // namespace ng::emitting
