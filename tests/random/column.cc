// A reader of Python's expressions as far as the numpy column of ops.def uses them, and three kinds of arithmetic for it.
#include "tests/random/column.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>

namespace programs {
namespace {

// name, operands; those without a name in NumPy come from operators.
#define COLUMN_WORDS(W) \
    W(X, "x", 0) W(Y, "y", 0) W(Z, "z", 0) W(Number, "", 0) W(Pi, "np.pi", 0) \
    W(Add, "", 2) W(Sub, "", 2) W(Mul, "", 2) W(Div, "", 2) W(Neg, "", 1) \
    W(Less, "", 2) W(LessEqual, "", 2) W(Greater, "", 2) W(GreaterEqual, "", 2) W(Equal, "", 2) W(NotEqual, "", 2) \
    W(And, "np.logical_and", 2) W(Or, "np.logical_or", 2) W(Xor, "np.logical_xor", 2) W(Not, "np.logical_not", 1) \
    W(BitAnd, "np.bitwise_and", 2) W(BitOr, "np.bitwise_or", 2) W(BitXor, "np.bitwise_xor", 2) W(Invert, "np.invert", 1) W(Left, "np.left_shift", 2) W(Right, "np.right_shift", 2) \
    W(Popcount, "np.popcount", 1) W(FloorDivide, "np.floor_divide", 2) W(Remainder, "np.remainder", 2) W(Fmod, "np.fmod", 2) \
    W(Power, "np.power", 2) W(Maximum, "np.maximum", 2) W(Minimum, "np.minimum", 2) W(Fmax, "np.fmax", 2) W(Fmin, "np.fmin", 2) \
    W(Arctan2, "np.arctan2", 2) W(Hypot, "np.hypot", 2) W(Copysign, "np.copysign", 2) W(Nextafter, "np.nextafter", 2) \
    W(Logaddexp, "np.logaddexp", 2) W(Heaviside, "np.heaviside", 2) W(Where, "np.where", 3) W(Clip, "np.clip", 3) W(Fma, "np.fma", 3) \
    W(IsFinite, "np.isfinite", 1) W(IsNan, "np.isnan", 1) W(IsInf, "np.isinf", 1) W(Signbit, "np.signbit", 1) W(Abs, "np.abs", 1) \
    W(Sign, "np.sign", 1) W(Floor, "np.floor", 1) W(Ceil, "np.ceil", 1) W(Trunc, "np.trunc", 1) W(Rint, "np.rint", 1) \
    W(Square, "np.square", 1) W(Degrees, "np.degrees", 1) W(Radians, "np.radians", 1) W(Sqrt, "np.sqrt", 1) W(Cbrt, "np.cbrt", 1) \
    W(Exp, "np.exp", 1) W(Exp2, "np.exp2", 1) W(Expm1, "np.expm1", 1) W(Log, "np.log", 1) W(Log2, "np.log2", 1) W(Log10, "np.log10", 1) \
    W(Log1p, "np.log1p", 1) W(Sin, "np.sin", 1) W(Cos, "np.cos", 1) W(Tan, "np.tan", 1) W(Arcsin, "np.arcsin", 1) W(Arccos, "np.arccos", 1) \
    W(Arctan, "np.arctan", 1) W(Sinh, "np.sinh", 1) W(Cosh, "np.cosh", 1) W(Tanh, "np.tanh", 1) W(Arcsinh, "np.arcsinh", 1) \
    W(Arccosh, "np.arccosh", 1) W(Arctanh, "np.arctanh", 1) W(Erf, "erf", 1) W(Erfc, "erfc", 1)
enum class Word : int {
#define W(name, text, count) name,
    COLUMN_WORDS(W)
#undef W
};
struct Known { const char* text; int count; };
constexpr Known WORDS[] = {
#define W(name, text, count) {text, count},
    COLUMN_WORDS(W)
#undef W
};
#undef COLUMN_WORDS

// Binary operators by level, the weakest first; longer ones before their beginnings.
struct Infix { const char* text; int level; Word word; };
constexpr Infix INFIX[] = {
    {"<=", 0, Word::LessEqual}, {">=", 0, Word::GreaterEqual}, {"==", 0, Word::Equal}, {"!=", 0, Word::NotEqual}, {"<", 0, Word::Less},
    {">", 0, Word::Greater}, {"|", 1, Word::BitOr}, {"^", 2, Word::BitXor}, {"&", 3, Word::BitAnd}, {"+", 4, Word::Add}, {"-", 4, Word::Sub},
    {"**", 7, Word::Power}, {"*", 5, Word::Mul}, {"/", 5, Word::Div},
};

class Reader {
  public:
    explicit Reader(const std::string& text) : text_(text) {}
    Column all()
    {
        expression(0);
        if (at_ != text_.size()) fail("does not end");
        return std::move(out_);
    }

  private:
    [[noreturn]] void fail(const char* what) { throw std::runtime_error("column \"" + text_ + "\" " + what + " at " + std::to_string(at_)); }
    void spaces() { while (at_ < text_.size() && text_[at_] == ' ') at_++; }
    bool skip(const std::string& token)
    {
        spaces();
        if (text_.compare(at_, token.size(), token) != 0) return false;
        at_ += token.size();
        spaces();
        return true;
    }
    void put(Word w, Real number = 0) { out_.push_back({int(w), number}); }
    const Infix* infix(int lowest)
    {
        spaces();
        for (const Infix& i : INFIX)
            if (text_.compare(at_, std::string(i.text).size(), i.text) == 0) return i.level >= lowest ? &i : nullptr;
        return nullptr;
    }
    void expression(int lowest)
    {
        if (skip("-")) expression(6), put(Word::Neg);
        else atom();
        while (const Infix* i = infix(lowest)) {
            skip(i->text);
            expression(i->level + (i->level < 7));
            put(i->word);
        }
    }
    void atom()
    {
        spaces();
        if (skip("(")) {
            expression(0);
            if (!skip(")")) fail("lacks a )");
            return;
        }
        if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
            size_t used = 0;
            put(Word::Number, std::stold(text_.substr(at_), &used));
            at_ += used;
            return spaces();
        }
        size_t end = at_;
        while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' || text_[end] == '.')) end++;
        const std::string name = text_.substr(at_, end - at_);
        const auto* known = std::find_if(std::begin(WORDS), std::end(WORDS), [&](const Known& k) { return !name.empty() && name == k.text; });
        if (known == std::end(WORDS)) fail("has an unknown word");
        at_ = end;
        for (int i = 0; i < known->count; i++) {
            if (!skip(i ? "," : "(")) fail("lacks an operand");
            expression(0);
        }
        if (known->count && !skip(")")) fail("lacks a )");
        put(Word(known - WORDS));
    }
    std::string text_;
    size_t at_ = 0;
    Column out_;
};

template <class T>
T logaddexp(T x, T y)
{
    if (x == y) return x + T(M_LN2);
    return std::max(x, y) + std::log1p(std::exp(-std::abs(x - y))) + (x != x || y != y ? x + y : T(0));
}
template <class T>
T remainder_of(T x, T y)
{
    T r = std::fmod(x, y);
    if (r != 0 && (r < 0) != (y < 0)) r += y;
    return r;
}
// As NumPy: from the remainder, so that the quotient's rounding never tips it over.
template <class T>
T floor_divided(T x, T y)
{
    if (y == 0) return x / y;
    const T r = std::fmod(x, y), q = (x - r) / y - (r != 0 && (r < 0) != (y < 0));
    const T whole = std::floor(q);
    return q == 0 ? q : q - whole > T(0.5) ? whole + 1 : whole;
}

// Functions of one number that are not arithmetic.
template <class T>
T curve(Word w, T x)
{
    switch (w) {
    case Word::Sqrt: return std::sqrt(x);
    case Word::Cbrt: return std::cbrt(x);
    case Word::Exp: return std::exp(x);
    case Word::Exp2: return std::exp2(x);
    case Word::Expm1: return std::expm1(x);
    case Word::Log: return std::log(x);
    case Word::Log2: return std::log2(x);
    case Word::Log10: return std::log10(x);
    case Word::Log1p: return std::log1p(x);
    case Word::Sin: return std::sin(x);
    case Word::Cos: return std::cos(x);
    case Word::Tan: return std::tan(x);
    case Word::Arcsin: return std::asin(x);
    case Word::Arccos: return std::acos(x);
    case Word::Arctan: return std::atan(x);
    case Word::Sinh: return std::sinh(x);
    case Word::Cosh: return std::cosh(x);
    case Word::Tanh: return std::tanh(x);
    case Word::Arcsinh: return std::asinh(x);
    case Word::Arccosh: return std::acosh(x);
    case Word::Arctanh: return std::atanh(x);
    case Word::Erf: return std::erf(x);
    case Word::Erfc: return std::erfc(x);
    default: return std::numeric_limits<T>::quiet_NaN();
    }
}

template <class T>
T applied(Word w, T x, T y, T z)
{
    switch (w) {
    case Word::Add: return x + y;
    case Word::Sub: return x - y;
    case Word::Mul: return x * y;
    case Word::Div: return x / y;
    case Word::Neg: return -x;
    case Word::Less: return x < y;
    case Word::LessEqual: return x <= y;
    case Word::Greater: return x > y;
    case Word::GreaterEqual: return x >= y;
    case Word::Equal: return x == y;
    case Word::NotEqual: return x != y;
    case Word::And: case Word::BitAnd: return x != 0 && y != 0;
    case Word::Or: case Word::BitOr: return x != 0 || y != 0;
    case Word::Xor: return (x != 0) != (y != 0);
    case Word::Not: return x == 0;
    case Word::FloorDivide: return floor_divided(x, y);
    case Word::Remainder: return remainder_of(x, y);
    case Word::Fmod: return std::fmod(x, y);
    case Word::Power: return std::pow(x, y);
    case Word::Maximum: return x > y || x != x ? x : y;
    case Word::Minimum: return x < y || x != x ? x : y;
    case Word::Fmax: return x > y || y != y ? x : y;
    case Word::Fmin: return x < y || y != y ? x : y;
    case Word::Arctan2: return std::atan2(x, y);
    case Word::Hypot: return std::hypot(x, y);
    case Word::Copysign: return std::copysign(x, y);
    case Word::Nextafter: return std::nextafter(x, y);
    case Word::Logaddexp: return logaddexp(x, y);
    case Word::Heaviside: return x < 0 ? T(0) : x > 0 ? T(1) : x == 0 ? y : x;
    case Word::Where: return x != 0 ? y : z;
    case Word::Clip: { const T low = x > y || x != x ? x : y; return low < z || low != low ? low : z; }
    case Word::Fma: return std::fma(x, y, z);
    case Word::IsFinite: return std::isfinite(x);
    case Word::IsNan: return x != x;
    case Word::IsInf: return std::isinf(x);
    case Word::Signbit: return std::signbit(x);
    case Word::Abs: return std::abs(x);
    case Word::Sign: return x > 0 ? T(1) : x < 0 ? T(-1) : x;
    case Word::Floor: return std::floor(x);
    case Word::Ceil: return std::ceil(x);
    case Word::Trunc: return std::trunc(x);
    case Word::Rint: return std::rint(x);
    case Word::Square: return x * x;
    case Word::Degrees: return x * T(180 / 3.14159265358979323846264338L);
    case Word::Radians: return x * T(3.14159265358979323846264338L / 180);
    default: return curve(w, x);
    }
}

Wide power_of(ng_dtype t, Wide x, Wide y)
{
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    Wide r = 1;
    for (; y; y >>= 1) {
        if (y & 1) r = Wide(wrapped(t, low_product(r, x)));
        x = Wide(wrapped(t, low_product(x, x)));
    }
    return r;
}

Wide applied_whole(Word w, ng_dtype t, Wide x, Wide y, Wide z)
{
    const int bits = is_bool(t) ? 1 : 8 * element(t).bytes;
    const Wide floor_rest = y ? ((x % y) + y) % y : 0;
    switch (w) {
    case Word::Add: return x + y;
    case Word::Sub: return x - y;
    case Word::Mul: return low_product(x, y);
    case Word::Neg: return -x;
    case Word::And: return x && y;
    case Word::Or: return x || y;
    case Word::Xor: return !x != !y;
    case Word::Not: return !x;
    case Word::BitAnd: return x & y;
    case Word::BitOr: return x | y;
    case Word::BitXor: return x ^ y;
    case Word::Invert: return ~x;
    case Word::Left: return y < 0 || y >= bits ? 0 : x << int(y);
    case Word::Right: return y < 0 ? 0 : y >= bits ? (x < 0 ? -1 : 0) : x >> int(y);
    case Word::Popcount: return __builtin_popcountll(uint64_t(x) & (bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1));
    case Word::FloorDivide: return y ? (x - floor_rest) / y : 0;
    case Word::Remainder: return floor_rest;
    case Word::Fmod: return y ? x % y : 0;
    case Word::Power: return power_of(t, x, y);
    case Word::Maximum: case Word::Fmax: return std::max(x, y);
    case Word::Minimum: case Word::Fmin: return std::min(x, y);
    case Word::Less: return x < y;
    case Word::LessEqual: return x <= y;
    case Word::Greater: return x > y;
    case Word::GreaterEqual: return x >= y;
    case Word::Equal: return x == y;
    case Word::NotEqual: return x != y;
    case Word::Where: return x ? y : z;
    case Word::Clip: return std::min(std::max(x, y), z);
    case Word::IsFinite: return 1;
    case Word::IsNan: case Word::IsInf: return 0;
    case Word::Signbit: return x < 0;
    case Word::Abs: return x < 0 ? -x : x;
    case Word::Sign: return (x > 0) - (x < 0);
    case Word::Floor: case Word::Ceil: case Word::Trunc: case Word::Rint: return x;
    case Word::Square: return low_product(x, x);
    default: throw std::runtime_error(std::string("no integers in the column's word ") + WORDS[int(w)].text);
    }
}

}  // namespace

Column column_of(const std::string& text)
{
    // What Python says in several words.
    if (text.starts_with("np.vectorize(lambda v: bin(")) return column_of("np.popcount(x)");
    if (text == "x.dtype.type(np.longdouble(x) * y + z)") return column_of("np.fma(x, y, z)");
    return Reader(text).all();
}

template <class T>
T computed(const Column& column, const Operands<T>& in, Real* largest)
{
    T stack[32];
    int top = 0;
    for (const Step& s : column) {
        const auto w = Word(s.word);
        const int count = WORDS[s.word].count;
        top -= count;
        T r;
        if (count) r = applied(w, stack[top], count > 1 ? stack[top + 1] : T(0), count > 2 ? stack[top + 2] : T(0));
        else r = w == Word::X ? in.x : w == Word::Y ? in.y : w == Word::Z ? in.z : w == Word::Pi ? T(3.14159265358979323846264338L) : T(s.number);
        if (largest && std::abs(Real(r)) > *largest) *largest = std::abs(Real(r));
        stack[top++] = r;
    }
    return stack[0];
}
template float  computed(const Column&, const Operands<float>&, Real*);
template double computed(const Column&, const Operands<double>&, Real*);
template Real   computed(const Column&, const Operands<Real>&, Real*);

Real computed_whole(const Column& column, ng_dtype t, const Operands<Real>& in)
{
    Wide stack[32];
    int top = 0;
    for (const Step& s : column) {
        const auto w = Word(s.word);
        const int count = WORDS[s.word].count;
        top -= count;
        Wide r;
        if (count) r = Wide(wrapped(t, applied_whole(w, t, stack[top], count > 1 ? stack[top + 1] : 0, count > 2 ? stack[top + 2] : 0)));
        else r = Wide(w == Word::X ? in.x : w == Word::Y ? in.y : w == Word::Z ? in.z : s.number);
        stack[top++] = r;
    }
    return Real(stack[0]);
}

}  // namespace programs
