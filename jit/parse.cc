// Reads expressions: operators by precedence, atoms, slices, definitions.
#include "jit/parser.h"

#include <array>
#include <cmath>
#include <limits>

namespace ng {
namespace {

constexpr size_t MAX_TEXT = size_t(1) << 20;
constexpr int    MAX_DEPTH = 200;
// Of expression: operators in their order, each behind the looser one, are up to 11 of one depth. All fits 384 KiB of stack.
constexpr int    MAX_FRAMES = 600;
constexpr int64_t MAX_INTEGER = int64_t(1) << 62;      // of axes, extents and slices: no sum of two overflows

constexpr auto BINARY_BY_TOKEN = [] {
    std::array<int8_t, size_t(Tok::count_)> table{};
    for (int8_t& t : table) t = -1;
    for (size_t i = 0; i < std::size(BINARY); i++) table[size_t(BINARY[i].token)] = int8_t(i);
    return table;
}();

const Operator* binary(Tok t)
{
    const int i = BINARY_BY_TOKEN[size_t(t)];
    return i < 0 ? nullptr : &BINARY[i];
}

// The first invalid value that the text uses; tokens are enough to know.
NodeRef first_poison(std::string_view text, std::span<const std::string_view> names, std::span<const NodeRef> values)
{
    bool any = false;
    for (const NodeRef& v : values) any = any || v->is_poison();
    if (!any) return {};
    const Names table(names, values);
    Lexer lexer(text);
    for (Token t = lexer.next(); t.kind != Tok::End; t = lexer.next()) {
        if (t.kind != Tok::Name) continue;
        const NodeRef* v = table.find(t.text);
        if (v && (*v)->is_poison()) return *v;
    }
    return {};
}

}  // namespace

Parser::Nested::Nested(Parser& p) : parser_(p)
{
    if (p.depth_ >= MAX_DEPTH || p.frames_ > MAX_FRAMES) text_fault(p.now_.at, "more than 200 parentheses, calls and signs are nested; name a part: v = ..;", NG_E_LIMIT);
    p.depth_++;
}

NodeRef parse(Graph& g, std::string_view given, std::span<const std::string_view> names, std::span<const NodeRef> values)
{
    if (given.size() > MAX_TEXT) throw Error(NG_E_LIMIT, text("ng_parse: the text has ", given.size(), " bytes, the limit is ", MAX_TEXT), 0);
    if (names.size() != values.size())
        throw Error(NG_E_INVALID, text("ng_parse: ", names.size(), " names stand for ", values.size(), " values, should be as many"));
    if (NodeRef p = first_poison(given, names, values)) return p;
    Parser parser(g, given, Names(names, values));
    try {
        return parser.run();
    } catch (Error& e) {
        if (e.at < 0) e.at = int32_t(parser.column());
        throw;
    }
}

Token Parser::take()
{
    const Token t = now_;
    now_ = lexer_.next();
    return t;
}

void Parser::expect(Tok kind, const char* what)
{
    if (now_.kind != kind) fault(now_.at, "found ", found(now_), ", expected ", what);
    take();
}

bool Parser::skip(Tok kind)
{
    if (now_.kind != kind) return false;
    take();
    return true;
}

NodeRef Parser::run()
{
    take();
    while (now_.kind == Tok::Name) {
        Lexer ahead = lexer_;
        if (ahead.next().kind != Tok::Assign) break;
        define();
    }
    NodeRef e = expression(Level::Any);
    if (now_.kind == Tok::End) return e;
    if (now_.kind == Tok::Semicolon) text_fault(now_.at, "\";\" ends a definition, name = e; the text's value stands last, without one");
    if (now_.kind == Tok::Assign) text_fault(now_.at, "\"=\" defines a name at the start of the text; equality is \"==\"");
    fault(now_.at, "found ", found(now_), ", expected an operator or the end of the text");
}

void Parser::define()
{
    const Token name = take();
    take();
    if (names_.is_given(name.text)) fault(name.at, found(name), " is given by the caller; a definition needs another name");
    if (is_reserved(name.text)) fault(name.at, found(name), " cannot be a name");
    NodeRef value = expression(Level::Any);
    if (now_.kind != Tok::Semicolon) fault(now_.at, "found ", found(now_), ", expected an operator, or \";\" behind the definition of ", found(name));
    take();
    names_.define(name.text, std::move(value));
}

NodeRef Parser::map(uint32_t at, Op op, std::span<const NodeRef> operands)
{
    return built(at, [&] { return op == Op::matmul ? build::matmul(graph_, operands[0], operands[1], 0) : build::map(graph_, op, operands); });
}

NodeRef Parser::expression(Level lowest)
{
    frames_++;
    NodeRef left = prefix(lowest);
    for (;;) {
        const Operator* o = binary(now_.kind);
        if (!o || o->level < lowest) return frames_--, left;
        if (o->level == Level::Compare) {
            left = comparisons(std::move(left));
            continue;
        }
        const uint32_t at = take().at;
        NodeRef right;
        if (o->level == Level::Power) {                // from the right, and 2 ** -1 needs no parentheses
            const Nested nested(*this);
            right = expression(Level::Sign);
        } else {
            right = expression(above(o->level));
        }
        left = map(at, o->op, std::array{std::move(left), std::move(right)});
    }
}

NodeRef Parser::comparisons(NodeRef left)
{
    NodeRef all;
    for (;;) {
        const Operator* o = binary(now_.kind);
        if (!o || o->level != Level::Compare) return all;
        const uint32_t at = take().at;
        NodeRef right = expression(above(Level::Compare));
        NodeRef one = map(at, o->op, std::array{std::move(left), right});
        all = all ? map(at, Op::logical_and, std::array{std::move(all), std::move(one)}) : std::move(one);
        left = std::move(right);
    }
}

NodeRef Parser::prefix(Level lowest)
{
    const Tok kind = now_.kind;
    if (kind != Tok::Minus && kind != Tok::Not && kind != Tok::Tilde && kind != Tok::Plus) {
        NodeRef x = atom();
        while (now_.kind == Tok::OpenList) x = sliced(std::move(x));
        return x;
    }
    const Nested nested(*this);
    const uint32_t at = now_.at;
    if (kind == Tok::Not && lowest > Level::Not) text_fault(at, "\"not\" binds looser than the operator before it; write (not ..)");
    take();
    if (kind == Tok::Minus && now_.kind == Tok::Integer && now_.integer == uint64_t(1) << 63) {
        Lexer ahead = lexer_;
        if (ahead.next().kind != Tok::Power) return take(), build::weak_int(graph_, INT64_MIN);
    }
    NodeRef x = expression(kind == Tok::Not ? Level::Not : Level::Sign);
    if (kind == Tok::Plus) return x;
    const Op op = kind == Tok::Minus ? Op::neg : kind == Tok::Not ? Op::logical_not : Op::bitwise_not;
    return map(at, op, {&x, 1});
}

NodeRef Parser::atom()
{
    switch (now_.kind) {
    case Tok::Integer:
        if (now_.integer > uint64_t(INT64_MAX))
            fault(now_.at, "the integer ", found(now_), " is beyond i64; u64(", now_.text, ") is a constant of that type");
        return build::weak_int(graph_, int64_t(take().integer));
    case Tok::Real: return build::weak(graph_, take().real);
    case Tok::Name: return named(take());
    case Tok::Open: {
        const Nested nested(*this);
        const uint32_t at = take().at;
        NodeRef x = expression(Level::Any);
        if (now_.kind != Tok::Close) fault(now_.at, "found ", found(now_), ", expected an operator, or \")\" for the \"(\" in column ", at);
        take();
        return x;
    }
    default: fault(now_.at, "found ", found(now_), ", expected a value: a number, a name, a word(..) or (..)");
    }
}

NodeRef Parser::named(const Token& name)
{
    const bool call = now_.kind == Tok::Open;
    if (const NodeRef* value = names_.find(name.text)) {
        if (call) fault(name.at, found(name), " is a value here, and values are not called; to multiply write *");
        return *value;
    }
    if (call) return called(name);
    if (name.text == "inf") return build::weak(graph_, std::numeric_limits<double>::infinity());
    if (name.text == "nan") return build::weak(graph_, std::numeric_limits<double>::quiet_NaN());
    if (name.text == "true") return build::constant_int(graph_, Dtype::bool_, 1);
    if (name.text == "false") return build::constant_int(graph_, Dtype::bool_, 0);
    const bool word = find_op(name.text) != Op::count_ || special(name.text) || find_type(name.text) != Dtype::count_;
    if (word) fault(name.at, found(name), " is a word, and is called with its operands: ", name.text, "(..)");
    const std::string near = names_.nearest(name.text);
    fault(name.at, found(name), " is neither a name nor a word", near.empty() ? "" : "; did you mean \"" + near + "\"?");
}

int64_t Parser::integer(const char* what)
{
    const uint32_t at = now_.at;
    const bool negative = skip(Tok::Minus);
    if (now_.kind != Tok::Integer) fault(now_.at, "found ", found(now_), ", expected ", what);
    if (now_.integer > uint64_t(MAX_INTEGER)) text_fault(at, text("the integer ", found(now_), " is beyond 2^62"), NG_E_LIMIT);
    const auto v = int64_t(take().integer);
    return negative ? -v : v;
}

Parser::Cut Parser::cut()
{
    Cut c{Cut::Range, now_.at, 0, NG_END, 1};
    if (skip(Tok::None)) return c.kind = Cut::New, c;
    if (skip(Tok::Ellipsis)) return c.kind = Cut::Rest, c;
    const auto ends = [&] { return now_.kind == Tok::Comma || now_.kind == Tok::CloseList; };
    const char* const what = "an integer, a range as 1:-1, None or ... (indices known when run: take, window)";
    const bool starts = now_.kind != Tok::Colon;
    if (starts) c.start = integer(what);
    if (starts && ends()) return c.kind = Cut::Index, c;
    expect(Tok::Colon, "\":\", \",\" or \"]\"");
    const bool stops = !ends() && now_.kind != Tok::Colon;
    if (stops) c.stop = integer("the integer where the range ends");
    if (skip(Tok::Colon) && !ends()) c.step = integer("the integer by which the range steps");
    if (!starts && c.step < 0) c.start = NG_END;
    return c;
}

NodeRef Parser::sliced(NodeRef x)
{
    const uint32_t at = take().at;
    std::vector<Cut> cuts;
    uint32_t axes = 0, ellipses = 0;
    do {
        cuts.push_back(cut());
        const Cut& c = cuts.back();
        axes += c.kind == Cut::Index || c.kind == Cut::Range;
        if (c.kind == Cut::Rest && ++ellipses > 1) text_fault(c.at, "a second ...: one stands for all axes that are not named");
    } while (skip(Tok::Comma));
    if (now_.kind != Tok::CloseList) fault(now_.at, "found ", found(now_), ", expected \",\" or \"]\" for the \"[\" in column ", at);
    take();
    return built(at, [&] {
        x = build::strong(graph_, x);
        if (int(axes) > x->rank()) throw Error(NG_E_SHAPE, text("ng_parse: a slice of ", axes, " axes, of ", describe(*x)));
        if (!ellipses) cuts.push_back({Cut::Rest, at, 0, 0, 0});
        return cut_along(x, cuts);
    });
}

// NumPy's: cuts go over the axes from the first on; an integer drops its axis.
NodeRef Parser::cut_along(NodeRef x, std::span<const Cut> cuts)
{
    Extents dims;
    int rest = x->rank();
    for (const Cut& c : cuts) rest -= c.kind == Cut::Index || c.kind == Cut::Range;
    int32_t axis = 0;
    for (const Cut& c : cuts) {
        const size_t a = size_t(axis);
        switch (c.kind) {
        case Cut::New: dims.push_back(1); break;
        case Cut::Rest:
            for (int i = 0; i < rest; i++) dims.push_back(x->dims()[size_t(axis++)]);
            break;
        case Cut::Range:
            x = build::slice(graph_, x, axis, c.start, c.stop, c.step);
            dims.push_back(x->dims()[a]), axis++;
            break;
        case Cut::Index: {
            const Extent& d = x->dims()[a];
            if (d.is_constant() && (c.start >= d.constant() || c.start < -d.constant()))
                throw Error(NG_E_SHAPE, text("ng_parse: the index ", c.start, " is outside axis ", axis, " of ", describe(*x)));
            x = build::slice(graph_, x, axis++, c.start, c.start == -1 ? NG_END : c.start + 1, 1);
            break;
        }
        }
    }
    if (dims.size() > NG_MAX_NDIM) throw Error(NG_E_LIMIT, text("ng_parse: the slice has rank ", dims.size(), ", the limit is ", int(NG_MAX_NDIM)));
    return build::reshape(graph_, x, dims);
}

}  // namespace ng
