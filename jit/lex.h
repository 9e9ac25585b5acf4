// The alphabet of texts: tokens with their columns, and the operators with how tightly each binds.
#pragma once
#include "jit/error.h"
#include "jit/ops.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ng {

enum class Tok : uint8_t {
    End, Name, Integer, Real, Or, And, Not, None, Less, LessEqual, Equal, NotEqual, GreaterEqual, Greater, Bar, Caret, Ampersand,
    ShiftLeft, ShiftRight, Plus, Minus, Star, Slash, DoubleSlash, Percent, At, Tilde, Power, Assign, Semicolon, Comma, Open, Close,
    OpenList, CloseList, Colon, Ellipsis, count_
};

struct Token {
    Tok              kind = Tok::End;
    uint32_t         at = 0;        // its first byte in the text
    std::string_view text;
    uint64_t         integer = 0;   // of an Integer
    double           real = 0;      // of a Real
};

// Python's order, loosest first.
enum class Level : uint8_t { Any, Or, And, Not, Compare, Bar, Caret, Ampersand, Shift, Sum, Product, Sign, Power, Atom };
inline constexpr Level above(Level l) { return Level(int(l) + 1); }

struct Operator {
    Tok         token;
    const char* symbol;
    Level       level;
    Op          op;
};
inline constexpr Operator BINARY[] = {
    {Tok::Or,           "or",  Level::Or,        Op::logical_or},
    {Tok::And,          "and", Level::And,       Op::logical_and},
    {Tok::Less,         "<",   Level::Compare,   Op::less},
    {Tok::LessEqual,    "<=",  Level::Compare,   Op::less_equal},
    {Tok::Equal,        "==",  Level::Compare,   Op::equal},
    {Tok::NotEqual,     "!=",  Level::Compare,   Op::not_equal},
    {Tok::GreaterEqual, ">=",  Level::Compare,   Op::greater_equal},
    {Tok::Greater,      ">",   Level::Compare,   Op::greater},
    {Tok::Bar,          "|",   Level::Bar,       Op::bitwise_or},
    {Tok::Caret,        "^",   Level::Caret,     Op::bitwise_xor},
    {Tok::Ampersand,    "&",   Level::Ampersand, Op::bitwise_and},
    {Tok::ShiftLeft,    "<<",  Level::Shift,     Op::shift_left},
    {Tok::ShiftRight,   ">>",  Level::Shift,     Op::shift_right},
    {Tok::Plus,         "+",   Level::Sum,       Op::add},
    {Tok::Minus,        "-",   Level::Sum,       Op::sub},
    {Tok::Star,         "*",   Level::Product,   Op::mul},
    {Tok::Slash,        "/",   Level::Product,   Op::div},
    {Tok::DoubleSlash,  "//",  Level::Product,   Op::floor_div},
    {Tok::Percent,      "%",   Level::Product,   Op::rem},
    {Tok::At,           "@",   Level::Product,   Op::matmul},
    {Tok::Power,        "**",  Level::Power,     Op::pow},
};
inline constexpr Operator PREFIX[] = {                       // unary + is read, and changes nothing
    {Tok::Not,          "not ", Level::Not,      Op::logical_not},
    {Tok::Minus,        "-",    Level::Sign,     Op::neg},
    {Tok::Tilde,        "~",    Level::Sign,     Op::bitwise_not},
};

// Throws Error with the column: one sentence.
[[noreturn]] void text_fault(uint32_t at, const std::string& sentence, ng_status status = NG_E_INVALID);
// The same of parts. Never inlined: strings in each frame of a recursion are what would overflow a stack.
template <class... T>
[[noreturn, gnu::noinline, gnu::cold]] void fault(uint32_t at, const T&... parts) { text_fault(at, text(parts...)); }

// "\"sum\"", or "the end of the text": for sentences.
std::string found(const Token& t);

// A letter or _ first, then digits too.
bool is_identifier(std::string_view s);
// and, or, not, None, and the _ that stands for the rest of a shape: no value may have such a name.
bool is_reserved(std::string_view s);

// Copies are cheap: looking ahead is reading with a copy.
class Lexer {
  public:
    explicit Lexer(std::string_view text) : text_(text) {}
    Token next();                   // for ever End behind the last

  private:
    char  peek(size_t ahead = 0) const { return place_ + ahead < text_.size() ? text_[place_ + ahead] : '\0'; }
    void  skip_blank();
    Token number();
    Token symbol();
    Token of(Tok kind, size_t bytes);

    std::string_view text_;
    size_t place_ = 0;
};

}  // namespace ng
