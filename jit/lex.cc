// Cuts a text into tokens; numbers are read in no locale.
#include "jit/lex.h"

#include <charconv>

namespace ng {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

Tok keyword(std::string_view s)
{
    switch (s.size()) {
    case 2: return s == "or" ? Tok::Or : Tok::Name;
    case 3: return s == "and" ? Tok::And : s == "not" ? Tok::Not : Tok::Name;
    case 4: return s == "None" ? Tok::None : Tok::Name;
    default: return Tok::Name;
    }
}

[[noreturn]] void unexpected(uint32_t at, char c, char next)
{
    const auto byte = static_cast<unsigned char>(c);
    if (c == '!') text_fault(at, "\"!\" is no operator; logical negation is \"not\", and inequality \"!=\"");
    if (c == '.' && next == '.') text_fault(at, "\"..\" is unfinished; an ellipsis is \"...\"");
    if (c == '.') text_fault(at, "\".\" begins no number, and values have no members");
    if (byte > ' ' && byte < 127) fault(at, "\"", c, "\" has no meaning in a text");
    fault(at, "byte ", int(byte), " has no meaning in a text, which is printable ASCII");
}

}  // namespace

void text_fault(uint32_t at, const std::string& sentence, ng_status status)
{
    throw Error(status, "ng_parse: " + sentence, int32_t(at));
}

std::string found(const Token& t)
{
    if (t.kind == Tok::End) return "the end of the text";
    return text('"', t.text.substr(0, 32), t.text.size() > 32 ? "..\"" : "\"");
}

bool is_identifier(std::string_view s)
{
    if (s.empty() || !is_letter(s[0])) return false;
    for (const char c : s)
        if (!is_word(c)) return false;
    return true;
}

bool is_reserved(std::string_view s) { return s == "_" || keyword(s) != Tok::Name; }

void Lexer::skip_blank()
{
    for (; place_ < text_.size(); place_++) {
        const char c = text_[place_];
        if (c == '#') {
            while (place_ + 1 < text_.size() && text_[place_ + 1] != '\n') place_++;
            continue;
        }
        if (c != ' ' && (c < '\t' || c > '\r')) return;
    }
}

Token Lexer::of(Tok kind, size_t bytes)
{
    Token t;
    t.kind = kind, t.at = uint32_t(place_), t.text = text_.substr(place_, bytes);
    place_ += bytes;
    return t;
}

Token Lexer::next()
{
    skip_blank();
    if (place_ >= text_.size()) return of(Tok::End, 0);
    const char c = text_[place_];
    if (is_letter(c)) {
        size_t bytes = 1;
        while (is_word(peek(bytes))) bytes++;
        return of(keyword(text_.substr(place_, bytes)), bytes);
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    return symbol();
}

Token Lexer::number()
{
    const bool hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    size_t bytes = hex ? 2 : 0;
    bool real = false;
    if (hex) {
        while (is_word(peek(bytes))) bytes++;
    } else {
        while (is_digit(peek(bytes))) bytes++;
        const bool ellipsis = peek(bytes) == '.' && peek(bytes + 1) == '.';
        if (peek(bytes) == '.' && !ellipsis)
            for (real = true, bytes++; is_digit(peek(bytes));) bytes++;
        if (peek(bytes) == 'e' || peek(bytes) == 'E') {
            real = true, bytes++;
            if (peek(bytes) == '+' || peek(bytes) == '-') bytes++;
        }
        while (is_word(peek(bytes))) bytes++;
    }
    Token t = of(real ? Tok::Real : Tok::Integer, bytes);
    const char *first = t.text.data() + (hex ? 2 : 0), *last = t.text.data() + t.text.size();
    const auto read = real ? std::from_chars(first, last, t.real) : std::from_chars(first, last, t.integer, hex ? 16 : 10);
    if (read.ec == std::errc::result_out_of_range) fault(t.at, "the number ", found(t), " is beyond ", real ? "f64" : "64 bits");
    if (read.ec != std::errc() || read.ptr != last)
        fault(t.at, found(t), " is no number; numbers are as 12, 0x1f, 0.5, 1e-5");
    if (!real && !hex && t.text.size() > 1 && t.text[0] == '0') fault(t.at, "the integer ", found(t), " begins with 0; octal is not read");
    return t;
}

Token Lexer::symbol()
{
    const char c = peek(), d = peek(1);
    switch (c) {
    case '+': return of(Tok::Plus, 1);
    case '-': return of(Tok::Minus, 1);
    case '*': return d == '*' ? of(Tok::Power, 2) : of(Tok::Star, 1);
    case '/': return d == '/' ? of(Tok::DoubleSlash, 2) : of(Tok::Slash, 1);
    case '%': return of(Tok::Percent, 1);
    case '@': return of(Tok::At, 1);
    case '~': return of(Tok::Tilde, 1);
    case '^': return of(Tok::Caret, 1);
    case '(': return of(Tok::Open, 1);
    case ')': return of(Tok::Close, 1);
    case '[': return of(Tok::OpenList, 1);
    case ']': return of(Tok::CloseList, 1);
    case ',': return of(Tok::Comma, 1);
    case ';': return of(Tok::Semicolon, 1);
    case ':': return of(Tok::Colon, 1);
    case '<': return d == '<' ? of(Tok::ShiftLeft, 2) : d == '=' ? of(Tok::LessEqual, 2) : of(Tok::Less, 1);
    case '>': return d == '>' ? of(Tok::ShiftRight, 2) : d == '=' ? of(Tok::GreaterEqual, 2) : of(Tok::Greater, 1);
    case '=': return d == '=' ? of(Tok::Equal, 2) : of(Tok::Assign, 1);
    case '|':
        if (d == '|') text_fault(uint32_t(place_), "\"||\" is no operator; write \"or\"");
        return of(Tok::Bar, 1);
    case '&':
        if (d == '&') text_fault(uint32_t(place_), "\"&&\" is no operator; write \"and\"");
        return of(Tok::Ampersand, 1);
    case '!':
        if (d == '=') return of(Tok::NotEqual, 2);
        break;
    case '.':
        if (d == '.' && peek(2) == '.') return of(Tok::Ellipsis, 3);
        break;
    default: break;
    }
    unexpected(uint32_t(place_), c, d);
}

}  // namespace ng
