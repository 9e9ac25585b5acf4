// One reading of one text: a recursive descent that builds as it goes.
#pragma once
#include "jit/lex.h"
#include "jit/parse.h"

#include <vector>

namespace ng {

// What identifiers stand for: the caller's names, then the text's definitions, of which the last counts. Borrows all.
class Names {
  public:
    Names(std::span<const std::string_view> names, std::span<const NodeRef> values) : names_(names), values_(values) {}
    const NodeRef* find(std::string_view name) const;
    bool is_given(std::string_view name) const;
    void define(std::string_view name, NodeRef value);
    // The nearest of the names, the definitions and the words, if one is near: for sentences.
    std::string nearest(std::string_view name) const;

  private:
    struct Definition {
        std::string_view name;
        NodeRef value;
    };
    size_t place(std::string_view name) const;
    std::string_view name_at(size_t i) const { return i < names_.size() ? names_[i] : definitions_[i - names_.size()].name; }
    size_t count() const { return names_.size() + definitions_.size(); }
    void   index() const;

    std::span<const std::string_view> names_;
    std::span<const NodeRef> values_;
    std::vector<Definition> definitions_;
    mutable std::vector<uint32_t> index_;   // open addressing: 1 + place, 0 empty; made when there are many
    mutable size_t indexed_ = 0;
};

class Parser {
  public:
    Parser(Graph& g, std::string_view text, const Names& names) : graph_(g), lexer_(text), names_(names) {}
    NodeRef run();
    uint32_t column() const { return now_.at; }

  private:
    using Reader = NodeRef (Parser::*)(const Token& word);
    struct Cut {                    // one entry of a slice
        enum Kind : uint8_t { Index, Range, New, Rest } kind;
        uint32_t at;
        int64_t  start, stop, step;
    };
    class Nested {                  // counts how deep we are: what must not overflow is the stack
      public:
        explicit Nested(Parser& p);
        ~Nested() { parser_.depth_--; }
        Nested(const Nested&) = delete;
        Nested& operator=(const Nested&) = delete;

      private:
        Parser& parser_;
    };

    // parse.cc: tokens, expressions, slices.
    Token   take();
    void    expect(Tok kind, const char* what);
    bool    skip(Tok kind);
    void    define();
    NodeRef expression(Level lowest);
    NodeRef comparisons(NodeRef left);
    NodeRef prefix(Level lowest);
    NodeRef atom();
    NodeRef named(const Token& name);
    [[gnu::noinline]] NodeRef map(uint32_t at, Op op, std::span<const NodeRef> operands);
    NodeRef sliced(NodeRef x);
    Cut     cut();
    NodeRef cut_along(NodeRef x, std::span<const Cut> cuts);
    int64_t integer(const char* what);
    template <class Build> NodeRef built(uint32_t at, Build&& build);

    // parse_words.cc: word(..).
    NodeRef  called(const Token& word);
    NodeRef  map_word(const Token& word, Op op);
    NodeRef  reduction(const Token& word, Op op);
    NodeRef  cast_word(const Token& word, Dtype t);
    NodeRef  operand(const Token& word, const char* what);         // behind a comma
    std::vector<NodeRef> operand_list(const char* what);
    void     comma(const Token& word, const char* what);
    void     close(const Token& word);
    int32_t  axis(const char* what = "an axis");
    ng_axes  axes(const Node& x, const Token& word);
    Extents  extents(bool& has_rest, size_t& rest);
    Extents  shape();
    Extent   extent();
    Extent   factor();
    Extent   length_of(int64_t dim, uint32_t at);
    std::vector<int64_t> integers(const char* what);
    uint32_t choice(std::span<const char* const> choices, const char* what);
    uint32_t flags(std::span<const char* const> names);
    Dtype    dtype();
    static Reader special(std::string_view name);                  // null: none

    NodeRef read_take(const Token&);
    NodeRef read_put(const Token&);
    NodeRef read_scan(const Token&);
    NodeRef read_segment(const Token&);
    NodeRef read_argsort(const Token&);
    NodeRef read_concat(const Token&);
    NodeRef read_reshape(const Token&);
    NodeRef read_broadcast(const Token&);
    NodeRef read_permute(const Token&);
    NodeRef read_view(const Token&);
    NodeRef read_window(const Token&);
    NodeRef read_slice_at(const Token&);
    NodeRef read_iota(const Token&);
    NodeRef read_random(const Token&);
    NodeRef read_length(const Token&);
    NodeRef read_stochastic(const Token&);
    NodeRef read_bitcast(const Token&);
    NodeRef read_stop(const Token&);
    NodeRef read_surrogate(const Token&);
    NodeRef read_custom_grad(const Token&);
    NodeRef read_keep(const Token&);
    NodeRef read_matmul(const Token&);

    // parse_windows.cc: products with windows, their descriptions as keywords.
    struct Keyword {
        const char* name;
        int32_t*    values;         // of each spatial axis
        int         count;
    };
    void    keywords(std::span<const Keyword> known, double* pad_value, uint32_t* flags, std::span<const char* const> flag_names);
    ng_conv_desc conv_keywords(const Token& word, int axes);
    ng_pool_desc pool_keywords(const Token& word, int axes);
    NodeRef read_conv(const Token&);
    NodeRef read_conv_dx(const Token&);
    NodeRef read_conv_dw(const Token&);
    NodeRef read_pool(const Token&);
    NodeRef read_pool_dx(const Token&);

    Graph& graph_;
    Lexer  lexer_;
    Token  now_;
    Names  names_;
    int    depth_ = 0, frames_ = 0;
};

// Runs a builder; what it throws gets the column of the word or operator that called it.
template <class Build>
NodeRef Parser::built(uint32_t at, Build&& build)
{
    try {
        return build();
    } catch (Error& e) {
        e.at = int32_t(at);         // a builder's own is the index of an argument
        throw;
    }
}

// The types and the words that texts call besides those of ops.def.
std::span<const std::string_view> special_words();
Dtype find_type(std::string_view name);       // Dtype::count_: none
inline constexpr const char* FOLDS[] = {"last", "sum", "prod", "min", "max"};                          // ng_fold
inline constexpr const char* KINDS[] = {"uniform", "normal", "bits"};                                  // ng_random_kind
inline constexpr const char* POOLS[] = {"max", "mean", "l2"};                                          // ng_pool_kind
inline constexpr const char* MAX_FLAGS[] = {"lowest"};
inline constexpr const char* SCAN_FLAGS[] = {"exclusive", "reverse"};                                  // ng_scan_flag_, by bit
inline constexpr const char* PRODUCT_FLAGS[] = {"tf32"};
inline constexpr const char* POOL_FLAGS[] = {"ceil", "count_pad"};

}  // namespace ng
