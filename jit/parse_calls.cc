// Reads the arguments of movement, indexing and marking words, and builds them.
#include "jit/parser.h"

#include <algorithm>

namespace ng {

NodeRef Parser::read_take(const Token& word)
{
    const NodeRef x = expression(Level::Any), indices = operand(word, "the indices");
    const int32_t a = skip(Tok::Comma) ? axis() : 0;
    close(word);
    return built(word.at, [&] { return build::take(graph_, x, indices, a); });
}

NodeRef Parser::read_put(const Token& word)
{
    const NodeRef x = expression(Level::Any), indices = operand(word, "the indices"), y = operand(word, "the values");
    comma(word, "the axis");
    const int32_t a = axis();
    comma(word, "the fold");
    const uint32_t how = choice(FOLDS, "a fold");
    close(word);
    return built(word.at, [&] { return build::put(graph_, x, indices, y, a, how); });
}

NodeRef Parser::read_scan(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the axis");
    const int32_t a = axis();
    comma(word, "the fold");
    const uint32_t how = choice(FOLDS, "a fold"), bits = flags(SCAN_FLAGS);
    close(word);
    return built(word.at, [&] { return build::scan(graph_, x, a, how, bits); });
}

NodeRef Parser::read_segment(const Token& word)
{
    const NodeRef x = expression(Level::Any), offsets = operand(word, "the offsets");
    comma(word, "the fold");
    const uint32_t how = choice(FOLDS, "a fold");
    close(word);
    return built(word.at, [&] { return build::segment(graph_, x, offsets, how); });
}

NodeRef Parser::read_argsort(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the axis");
    const int32_t a = axis();
    const uint32_t bits = flags(SCAN_FLAGS);
    close(word);
    return built(word.at, [&] { return build::argsort(graph_, x, a, bits); });
}

// concat([a, b], axis) or concat(a, b, axis): there the last argument is the axis, an integer that nothing follows.
NodeRef Parser::read_concat(const Token& word)
{
    std::vector<NodeRef> x;
    if (now_.kind == Tok::OpenList) {
        x = operand_list("the list");
        comma(word, "the axis");
    } else {
        const auto is_axis = [&] {
            Lexer ahead = lexer_;
            if (now_.kind != Tok::Integer && now_.kind != Tok::Minus) return false;
            if (now_.kind == Tok::Minus && ahead.next().kind != Tok::Integer) return false;
            return ahead.next().kind == Tok::Close;
        };
        do {
            if (!x.empty() && is_axis()) break;
            x.push_back(expression(Level::Any));
            if (now_.kind == Tok::Close) text_fault(now_.at, "concat ends with its axis, an integer, as in concat(a, b, 0)");
            comma(word, "the next operand, or the axis,");
        } while (true);
    }
    const int32_t a = axis();
    close(word);
    return built(word.at, [&] { return build::concat(graph_, x, a); });
}

NodeRef Parser::read_reshape(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the shape");
    bool has_rest;
    size_t rest = 0;
    Extents dims = extents(has_rest, rest);
    close(word);
    return built(word.at, [&] {
        if (has_rest) {
            const Extent all = product(x->dims()), others = product(dims);
            const auto quotient = others.is(0) ? std::nullopt : all.divided_by(others);
            if (!quotient) throw Error(NG_E_SHAPE, text("ng_reshape: ", describe(*x), " has ", all.text(), " elements, no multiple of ", others.text()));
            dims[rest] = *quotient;
        }
        try {
            return build::reshape(graph_, x, dims);
        } catch (Error& e) {
            const bool lengths = std::ranges::any_of(dims, [](const Extent& d) { return !d.is_constant(); });
            if (lengths && product(x->dims()).is_constant()) e.text += "; the rest is _ in a text, -1 is a length";
            throw;
        }
    });
}

NodeRef Parser::read_broadcast(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the shape");
    const Extents dims = shape();
    close(word);
    return built(word.at, [&] { return build::broadcast(graph_, build::strong(graph_, x), dims); });
}

NodeRef Parser::read_permute(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the axes");
    std::vector<int32_t> order;
    for (const int64_t a : integers("an axis")) order.push_back(int32_t(std::clamp<int64_t>(a, -2, NG_MAX_NDIM)));
    close(word);
    return built(word.at, [&] { return build::permute(graph_, x, order); });
}

NodeRef Parser::read_view(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    Layout seen;
    comma(word, "the shape");
    seen.dims = shape();
    comma(word, "the strides");
    const uint32_t at = now_.at;
    for (const int64_t s : integers("a stride")) seen.strides.push_back(s);
    comma(word, "the offset");
    const int64_t offset = integer("the offset");
    close(word);
    if (seen.strides.size() != seen.dims.size())
        fault(at, seen.strides.size(), " strides for a shape of rank ", seen.dims.size(), ", should be as many");
    seen.strided = true;
    return built(word.at, [&] {
        const NodeRef whole = build::strong(graph_, x);
        seen.dtype = whole->dtype;
        return build::view(graph_, whole, seen, offset);
    });
}

NodeRef Parser::read_window(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the axis");
    const int32_t a = axis();
    const NodeRef start = operand(word, "the start");
    comma(word, "the count");
    const int64_t count = integer("how many elements the window has");
    close(word);
    return built(word.at, [&] { return build::window(graph_, x, a, start, count); });
}

// slice_at(x, axis, [start, count], step): what brackets cannot say, as a count that is another length than the axis'.
NodeRef Parser::read_slice_at(const Token& word)
{
    NodeRef x = expression(Level::Any);
    comma(word, "the axis");
    const uint32_t at = now_.at;
    const int32_t given = axis(), a = given < 0 ? given + x->rank() : given;
    if (a < 0 || a >= x->rank()) fault(at, word.text, ": axis ", given, " is outside ", describe(*x));
    comma(word, "the start and the count");
    const uint32_t place = now_.at;
    const Extents range = shape();
    if (range.size() != 2) fault(place, range.size(), " extents, should be the start and the count, as [0, 4]");
    comma(word, "the step");
    const int64_t step = integer("the step");
    close(word);
    if (!build::slice_fits(x->dims()[size_t(a)], range[0], range[1], step))
        text_fault(place, text(range[1].text(), " elements from ", range[0].text(), " on in steps of ", step, " do not lie inside ", describe(*x)), NG_E_SHAPE);
    return built(word.at, [&] { return build::slice_at(graph_, build::strong(graph_, x), a, range[0], range[1], step); });
}

NodeRef Parser::read_iota(const Token& word)
{
    Layout layout;
    layout.dtype = Dtype::i64;
    if (now_.kind == Tok::Name) {
        layout.dtype = dtype();
        comma(word, "the shape");
    }
    layout.dims = shape();
    if (layout.dims.size() > 1 && now_.kind == Tok::Close) fault(now_.at, "iota of rank ", layout.dims.size(), " needs its axis: iota([3, 4], 0)");
    const int32_t a = skip(Tok::Comma) ? axis() : 0;
    close(word);
    return built(word.at, [&] { return build::iota(graph_, layout, a); });
}

NodeRef Parser::read_random(const Token& word)
{
    const uint32_t kind = choice(KINDS, "a kind");
    Layout layout;
    comma(word, "the type");
    layout.dtype = dtype();
    comma(word, "the shape");
    layout.dims = shape();
    const NodeRef key = build::strong(graph_, operand(word, "the key"));
    NodeRef step;
    if (skip(Tok::Comma)) step = build::strong(graph_, expression(Level::Any));
    close(word);
    return built(word.at, [&] { return build::random(graph_, kind, key, step, layout); });
}

NodeRef Parser::read_length(const Token& word)
{
    const uint32_t at = now_.at;
    const int64_t k = integer("a length, as -1");
    if (k >= 0) fault(at, "found ", k, ", expected a length; they are negative");
    const Extent length = length_of(k, at);
    close(word);
    return built(word.at, [&] { return build::length(graph_, length); });
}

NodeRef Parser::read_stochastic(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the type");
    const Dtype t = dtype();
    comma(word, "the bits of mantissa");
    const uint32_t at = now_.at;
    const int64_t bits = integer("the bits of mantissa that stay, or 0 for all");
    if (bits < 0) fault(at, "found ", bits, ", expected the bits of mantissa that stay, or 0 for all");
    const NodeRef key = build::strong(graph_, operand(word, "the key"));
    NodeRef step;
    if (skip(Tok::Comma)) step = build::strong(graph_, expression(Level::Any));
    close(word);
    return built(word.at, [&] { return build::cast_stochastic(graph_, x, t, uint32_t(std::min<int64_t>(bits, 64)), key, step); });
}

NodeRef Parser::read_bitcast(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    comma(word, "the type");
    const Dtype t = dtype();
    close(word);
    return built(word.at, [&] { return build::bitcast(graph_, x, t); });
}

NodeRef Parser::read_keep(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    close(word);
    return built(word.at, [&] { return build::keep(graph_, x); });
}

NodeRef Parser::read_stop(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    close(word);
    return built(word.at, [&] { return build::surrogate(graph_, x, {}); });
}

NodeRef Parser::read_surrogate(const Token& word)
{
    const NodeRef value = expression(Level::Any), path = operand(word, "the path");
    close(word);
    return built(word.at, [&] { return build::surrogate(graph_, value, path); });
}

NodeRef Parser::read_custom_grad(const Token& word)
{
    const NodeRef y = expression(Level::Any), dy = operand(word, "the cotangent");
    comma(word, "the list of x");
    const std::vector<NodeRef> x = operand_list("\"[\" and the list of x");
    comma(word, "the list of dx");
    const uint32_t at = now_.at;
    const std::vector<NodeRef> dx = operand_list("\"[\" and the list of dx");
    close(word);
    if (x.size() != dx.size()) fault(at, dx.size(), " derivatives for ", x.size(), " operands, should be as many");
    return built(word.at, [&] { return build::custom_grad(graph_, y, dy, x, dx); });
}

NodeRef Parser::read_matmul(const Token& word)
{
    const NodeRef a = expression(Level::Any), b = operand(word, "the right operand");
    const uint32_t bits = flags(PRODUCT_FLAGS);
    close(word);
    return built(word.at, [&] { return build::matmul(graph_, a, b, bits); });
}

}  // namespace ng
