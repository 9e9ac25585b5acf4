// Reads calls: words of ops.def by their arity, reductions with axes, casts, and the words that have arguments of their own.
#include "jit/parser.h"

#include <array>

namespace ng {

std::span<const std::string_view> special_words()
{
    static constexpr std::string_view WORDS[] = {
        "take", "put", "scan", "segment", "argsort", "concat", "reshape", "broadcast", "permute", "view", "window", "slice_at", "iota", "random",
        "length", "cast_stochastic", "bitcast", "stop", "surrogate", "custom_grad", "keep", "matmul", "conv", "conv_dx", "conv_dw",
        "pool", "pool_dx"};
    return WORDS;
}

Parser::Reader Parser::special(std::string_view name)
{
    static constexpr Reader READERS[] = {                             // in the order of the words
        &Parser::read_take, &Parser::read_put, &Parser::read_scan, &Parser::read_segment, &Parser::read_argsort, &Parser::read_concat,
        &Parser::read_reshape, &Parser::read_broadcast, &Parser::read_permute, &Parser::read_view, &Parser::read_window,
        &Parser::read_slice_at, &Parser::read_iota, &Parser::read_random, &Parser::read_length, &Parser::read_stochastic, &Parser::read_bitcast,
        &Parser::read_stop, &Parser::read_surrogate, &Parser::read_custom_grad, &Parser::read_keep, &Parser::read_matmul,
        &Parser::read_conv, &Parser::read_conv_dx, &Parser::read_conv_dw, &Parser::read_pool, &Parser::read_pool_dx};
    const auto words = special_words();
    for (size_t i = 0; i < std::size(READERS); i++)
        if (words[i] == name) return READERS[i];
    return nullptr;
}

Dtype find_type(std::string_view name)
{
    for (int i = 0; i < DTYPES; i++)
        if (name == name_of(Dtype(i))) return Dtype(i);
    return Dtype::count_;
}

NodeRef Parser::called(const Token& word)
{
    const Nested nested(*this);
    if (const Op op = find_op(word.text); op != Op::count_) {
        take();
        return is_map(op) ? map_word(word, op) : reduction(word, op);
    }
    if (const Reader read = special(word.text)) {
        take();
        return (this->*read)(word);
    }
    if (const Dtype t = find_type(word.text); t != Dtype::count_) {
        take();
        return cast_word(word, t);
    }
    const std::string near = names_.nearest(word.text);
    fault(word.at, "no word is called ", found(word), near.empty() ? "" : "; did you mean \"" + near + "\"?");
}

void Parser::comma(const Token& word, const char* what)
{
    if (now_.kind != Tok::Comma) fault(now_.at, "found ", found(now_), ", expected \",\" and ", what, " of ", word.text);
    take();
}

void Parser::close(const Token& word)
{
    if (now_.kind == Tok::Comma) fault(now_.at, "found \",\", expected \")\": ", word.text, " takes no more arguments");
    if (now_.kind != Tok::Close) fault(now_.at, "found ", found(now_), ", expected an operator, \",\" or \")\" in the call of ", word.text);
    take();
}

NodeRef Parser::operand(const Token& word, const char* what)
{
    comma(word, what);
    return expression(Level::Any);
}

NodeRef Parser::map_word(const Token& word, Op op)
{
    const int arity = info(op).arity;
    std::array<NodeRef, 3> x;
    for (int i = 0; i < arity; i++) {
        if (i > 0 && now_.kind == Tok::Close) fault(now_.at, word.text, " takes ", arity, " operands, and has ", i);
        if (i > 0) comma(word, "the next operand");
        x[size_t(i)] = expression(Level::Any);
    }
    if (now_.kind == Tok::Comma) fault(now_.at, word.text, " takes ", arity, arity == 1 ? " operand" : " operands", ", and has more");
    close(word);
    return map(word.at, op, {x.data(), size_t(arity)});
}

// With axes they are kept as 1; without, all are folded and none is kept. A normalisation keeps its shape anyway.
NodeRef Parser::reduction(const Token& word, Op op)
{
    NodeRef x = expression(Level::Any);
    ng_axes which = NG_ALL;
    uint32_t flags = 0;
    if (skip(Tok::Comma)) which = axes(*x, word), flags = NG_KEEP;
    if (op == Op::max && flags && this->flags(MAX_FLAGS)) {
        close(word);
        if (!is_float(x->dtype)) fault(word.at, word.text, " of ", describe(*x), ": only floats have a lowest value, -inf, to be that of nothing");
        return built(word.at, [&] { return build::greatest(graph_, build::strong(graph_, x), which); });
    }
    close(word);
    return built(word.at, [&] { return info(op).kind == Class::Norm ? build::norm(graph_, op, x, which) : build::reduce(graph_, op, x, which, flags); });
}

NodeRef Parser::cast_word(const Token& word, Dtype t)
{
    if (t == Dtype::u64 && now_.kind == Tok::Integer && now_.integer > uint64_t(INT64_MAX)) {
        const auto bits = int64_t(take().integer);
        close(word);
        return build::constant_int(graph_, t, bits);
    }
    NodeRef x = expression(Level::Any);
    close(word);
    return built(word.at, [&] { return build::cast(graph_, x, t); });
}

int32_t Parser::axis(const char* what)
{
    const uint32_t at = now_.at;
    const int64_t a = integer(what);
    if (a != int32_t(a)) fault(at, a, " is no axis, ranks are at most ", int(NG_MAX_NDIM));
    return int32_t(a);
}

ng_axes Parser::axes(const Node& x, const Token& word)
{
    ng_axes bits = 0;
    const auto add = [&] {
        const uint32_t at = now_.at;
        const bool names_value = now_.kind == Tok::Name && (word.text == "max" || word.text == "min");
        if (names_value) fault(at, "found ", found(now_), ", expected an axis or a list of axes; of two values ", word.text, "imum(x, y) is the ", word.text == "max" ? "greater" : "lesser");
        const int32_t given = axis("an axis or a list of axes, as 1, -1 or [0, 2]"), a = given < 0 ? given + x.rank() : given;
        if (a < 0 || a >= x.rank()) fault(at, word.text, ": axis ", given, " is outside ", describe(x));
        if (bits >> a & 1) fault(at, word.text, ": axis ", given, " is named twice");
        bits |= ng_axes(1) << a;
    };
    if (!skip(Tok::OpenList)) return add(), bits;
    if (skip(Tok::CloseList)) return bits;
    do add();
    while (skip(Tok::Comma));
    expect(Tok::CloseList, "\",\" or \"]\" in the list of axes");
    return bits;
}

std::vector<int64_t> Parser::integers(const char* what)
{
    std::vector<int64_t> list;
    expect(Tok::OpenList, "\"[\" and a list of integers");
    if (skip(Tok::CloseList)) return list;
    do {
        if (list.size() >= NG_MAX_NDIM) text_fault(now_.at, text("a list of more than ", int(NG_MAX_NDIM), " integers: no rank is as high"), NG_E_LIMIT);
        list.push_back(integer(what));
    } while (skip(Tok::Comma));
    expect(Tok::CloseList, "\",\" or \"]\" in the list");
    return list;
}

Extent Parser::length_of(int64_t dim, uint32_t at)
{
    if (dim > -1 || dim < -int64_t(Extent::HIDDEN)) text_fault(at, text(dim, " is no length; lengths are -1 .. -", int(Extent::HIDDEN)), NG_E_SHAPE);
    return Extent::variable(int32_t(-1 - dim));
}

// An integer, or a length in parentheses.
Extent Parser::factor()
{
    const uint32_t at = now_.at;
    const bool length = skip(Tok::Open);
    if (length && now_.kind != Tok::Minus) fault(now_.at, "found ", found(now_), ", expected a length, as in 2*(-1)");
    const int64_t v = integer("an extent, as 64, -1 (a length), 2*(-1)+1 or _ (the rest)");
    if (!length) return v;
    expect(Tok::Close, "\")\" behind a length");
    return length_of(v, at);
}

// A polynomial; a negative number on its own is that length.
Extent Parser::extent()
{
    const uint32_t at = now_.at;
    bool negative = skip(Tok::Minus), plain = now_.kind == Tok::Integer;
    std::vector<Term> sum;                                   // added up once
    for (size_t terms = 0;; terms++) {
        if (terms >= Extent::MAX_TERMS) text_fault(now_.at, text("an extent of more than ", Extent::MAX_TERMS, " terms"), NG_E_LIMIT);
        Extent term = factor();
        if (plain && now_.kind != Tok::Star && now_.kind != Tok::Plus && now_.kind != Tok::Minus)
            return negative ? length_of(-term.constant(), at) : term;
        plain = false;
        for (size_t factors = 0; skip(Tok::Star); factors++) {
            if (factors >= Extent::MAX_DEGREE) text_fault(now_.at, text("an extent of more than ", Extent::MAX_DEGREE, " factors"), NG_E_LIMIT);
            term = term * factor();
        }
        for (Term& t : (negative ? term * Extent(-1) : term).terms()) sum.push_back(std::move(t));
        if (now_.kind != Tok::Plus && now_.kind != Tok::Minus) break;
        negative = take().kind == Tok::Minus;
    }
    const Extent e = Extent::of_terms(std::move(sum));
    if (e.is_constant() && e.constant() < 0) text_fault(at, text("an extent of ", e.constant()), NG_E_SHAPE);
    return e;
}

// [2, -1, _], or one extent without brackets; where _ stands there is a 1.
Extents Parser::extents(bool& has_rest, size_t& rest)
{
    Extents dims;
    has_rest = false;
    const bool list = skip(Tok::OpenList);
    if (list && skip(Tok::CloseList)) return dims;
    do {
        if (dims.size() >= NG_MAX_NDIM) text_fault(now_.at, text("a shape of rank ", dims.size() + 1, ", the limit is ", int(NG_MAX_NDIM)), NG_E_LIMIT);
        const bool is_rest = now_.kind == Tok::Name && now_.text == "_";
        if (is_rest && has_rest) text_fault(now_.at, "a second _: one extent can be the rest");
        if (is_rest) has_rest = true, rest = dims.size(), take();
        dims.push_back(is_rest ? Extent(1) : extent());
    } while (list && skip(Tok::Comma));
    if (list) expect(Tok::CloseList, "\",\" or \"]\" in the shape");
    return dims;
}

Extents Parser::shape()
{
    bool has_rest;
    size_t rest = 0;
    const uint32_t at = now_.at;
    Extents dims = extents(has_rest, rest);
    if (has_rest) text_fault(at, "_ is the rest of what is reshaped; here every extent is needed");
    return dims;
}

uint32_t Parser::choice(std::span<const char* const> choices, const char* what)
{
    std::string all;
    for (uint32_t i = 0; i < choices.size(); i++) {
        if (now_.kind == Tok::Name && now_.text == choices[i]) return take(), i;
        all += (i ? ", " : "") + std::string(choices[i]);
    }
    fault(now_.at, "found ", found(now_), ", expected ", what, ": one of ", all);
}

uint32_t Parser::flags(std::span<const char* const> names)
{
    uint32_t bits = 0;
    while (skip(Tok::Comma)) bits |= 1u << choice(names, "a flag");
    return bits;
}

Dtype Parser::dtype()
{
    const Dtype t = now_.kind == Tok::Name ? find_type(now_.text) : Dtype::count_;
    if (t == Dtype::count_) fault(now_.at, "found ", found(now_), ", expected a type, as f32");
    take();
    return t;
}

std::vector<NodeRef> Parser::operand_list(const char* what)
{
    std::vector<NodeRef> list;
    expect(Tok::OpenList, what);
    if (skip(Tok::CloseList)) return list;
    do list.push_back(expression(Level::Any));
    while (skip(Tok::Comma));
    expect(Tok::CloseList, "an operator, \",\" or \"]\" in the list");
    return list;
}

}  // namespace ng
