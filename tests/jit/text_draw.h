// What a seed draws to try kernels' texts on: outputs in words, the lengths of each run, the device.
#pragma once
#include "tests/jit/emit_cases.h"
#include "tests/random/dice.h"

#include <map>

namespace ng::emitted {

using programs::Dice;
using Lengths = std::vector<int64_t>;

struct DrawnInput {
    std::string name;
    Dtype       type;
    Extents     dims;
    double      low, high;             // whole numbers are below `high`
};
struct DrawnOutput {
    std::string words;
    bool        is_over_first;         // in the first input's memory, where that can be
};
struct DrawnProgram {
    uint64_t             seed = 0;
    DeviceTraits         device;
    std::vector<bool>    is_open;      // by axis of the space: its length is said when run
    std::vector<Lengths> runs;         // of the space, by axis
    Lengths              most;         // that open ones are told to have, where is_bounded
    bool                 is_bounded = false;
    int64_t              turned_bytes = NEVER_TURNED;
    Fusion               fusion = Fusion::Usual;
    bool                 is_dense = false, is_wild = false;      // tensors; with NaN and infinities in them
    std::vector<DrawnInput>  inputs;
    std::vector<DrawnOutput> outputs;
};

// A row of words that others are filled in: an upper-case letter each, the same wherever it stands again.
//   X Y expressions   L K J leaves   T U leaves that lie across   C a condition
//   P Q the first and last of the inputs that have all axes   Z what the program is about   R one that lacks axes
//   M the program's axes   N the first of them   A B those or others   I one axis
struct Words {
    int         weight;
    const char* words;
    bool        is_real = true;        // may be narrowed
};

class TextDrawing {
  public:
    explicit TextDrawing(uint64_t seed) : dice_(seed) { p_.seed = seed; }
    DrawnProgram program();

  private:
    // text_draw.cc: the space, its lengths, its device
    void usual();
    void long_rows();
    void shifted_points();
    int64_t usual_length(int64_t most);
    void choose_open(int of_ten_known, int of_ten_all);
    void choose_runs(int count, int64_t most, int64_t (TextDrawing::*length)(size_t axis, int64_t most));
    int64_t drawn_length(size_t axis, int64_t most);
    int64_t shifted_length(size_t axis, int64_t most);
    int64_t column_length(size_t axis, int64_t most);
    void choose_most(std::initializer_list<int64_t> more, int percent_bounded);
    void choose_axes();
    void begin(Dtype main);
    void add(std::string words, int percent_over) { p_.outputs.push_back({std::move(words), dice_.chance(percent_over)}); }
    // text_words.cc
    std::string filled(const char* words, int depth);
    std::string letter(char c, int depth);
    std::string one_of(std::span<const Words> rows, int depth, int percent_narrow = 0);
    std::string expression(int depth);
    std::string output(int depth);
    std::string long_output();
    std::string beside_long();
    std::string points();
    std::string leaf();
    std::string view(Dtype t);
    std::string window(Dtype t, size_t axis);
    std::string gathered(Dtype t, size_t axis);
    std::string permuted(Dtype t, bool is_cut);
    std::string across();
    std::string about();
    std::string row();
    std::string axes();
    static std::string text_of_axes(const std::vector<size_t>& axes);
    std::string input(Dtype t, const Extents& dims);
    std::string operand(const std::string& words, Dtype t) const { return is_whole_ || is_float(t) ? words : "f32(" + words + ")"; }
    std::string slice(size_t axis, const std::string& range) const;
    Extents space() const;
    size_t  rank() const { return p_.is_open.size(); }
    size_t  axis() { return size_t(dice_.below(rank())); }
    Dtype   leaf_type();
    std::string narrow(const std::string& words) { return text(name_of(dice_.of({Dtype::f16, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2, Dtype::f64})), "(", words, ")"); }

    Dice         dice_;
    DrawnProgram p_;
    Dtype        main_ = Dtype::f32;
    bool         is_whole_ = false;              // all of it in whole numbers
    std::vector<size_t> main_axes_;
    std::vector<std::string> whole_;             // operands that have all axes
    std::string  about_;
};

}  // namespace ng::emitted
