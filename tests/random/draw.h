// Draws programs: a node at a time, kept when the contract allows it and its values stay tame.
#pragma once
#include "tests/random/dice.h"
#include "tests/random/meaning.h"

namespace programs {

// What an input is filled with.
enum class Fill : uint8_t { Any, Positive, AboveOne, WithinOne, Whole, Index, Offsets, Key };

class Drawing {
  public:
    Drawing(const Table& table, uint64_t seed);
    Program program();

  private:
    // draw.cc: the program as a whole
    void choose_size();
    void choose_runs();
    bool grow();
    bool accept(Node node);                  // infers, evaluates, keeps; false: as if never drawn
    bool fits(const Extents& dims) const;    // lengths are as small as they are to be
    bool tame(const Value& value) const;
    void choose_outputs();
    void lay(Output& output);
    static bool has_dims(const Node& n);    // that ng.h can say
    // draw_inputs.cc
    ng_dtype type();
    ng_dtype real_type() { return dice_.of({ng_dtype(NG_F32), ng_dtype(NG_F32), ng_dtype(NG_F32), ng_dtype(NG_F16), ng_dtype(NG_BF16), ng_dtype(NG_F64)}); }
    ng_dtype whole_type() { return dice_.of({ng_dtype(NG_I32), ng_dtype(NG_I64), ng_dtype(NG_I32), ng_dtype(NG_U8), ng_dtype(NG_I16), ng_dtype(NG_U32), ng_dtype(NG_U64), ng_dtype(NG_I8)}); }
    int64_t extent() { return dice_.of(extents_); }
    Extents some_dims(int least, int most);
    Extents beside(const Extents& dims);     // that broadcast with these
    int input(ng_dtype type, const Extents& dims, Fill fill, int64_t range = 0);
    int literal();
    Bytes values(ng_dtype type, int64_t count, Fill fill, int64_t range);
    Real value(ng_dtype type, Fill fill, int64_t range, int style);
    Real wild_value(ng_dtype type);
    // draw_nodes.cc, draw_products.cc: one form each
    int any();                               // a node to go on from
    int with_rank(int least);
    int any_real();
    const Node& at(int i) const { return p_.nodes[size_t(i)]; }
    static Node nothing() { return Node{.form = Form::Input}; }      // there is nothing to draw it from
    Node drawn(Form form);
    Node map();
    Node reduction();
    Node reshaped();
    Node sliced();
    Node moved(Form form);
    Node indexed(Form form);
    Node made(Form form);
    Node product();
    Node convolved(Form form);
    Node pooled(Form form);
    int64_t least_extent(const Polynomial& d) const;

    static Fill random_fill(Dice& d) { return d.of({Fill::Any, Fill::Any, Fill::Any, Fill::Positive, Fill::AboveOne, Fill::WithinOne, Fill::Whole}); }

    const Table& table_;
    Dice         dice_;
    Program      p_;
    std::vector<std::vector<Value>> values_;   // [run][node], of tame programs
    Dims         extents_;                     // as ng.h writes them: negative ones are lengths
    int64_t      most_ = 0;                    // elements of a node
    int          next_slot_ = 0, next_byte_ = 0;
};

inline Program drawn_program(const Table& table, uint64_t seed) { return Drawing(table, seed).program(); }

}  // namespace programs
