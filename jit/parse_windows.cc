// Reads convolutions and pooling, whose descriptions are keywords: conv(x, w, stride = 2, pad = [1, 0]).
#include "jit/parser.h"

#include <algorithm>
#include <cmath>

namespace ng {

// KEY = 1 is for every spatial axis, KEY = [1, 2] for each; a flag stands by itself. All behind commas.
void Parser::keywords(std::span<const Keyword> known, double* pad_value, uint32_t* flags, std::span<const char* const> flag_names)
{
    while (skip(Tok::Comma)) {
        const Token key = now_;
        if (key.kind != Tok::Name) fault(key.at, "found ", found(key), ", expected a keyword, as stride = 2");
        take();
        const auto flag = std::ranges::find(flag_names, key.text, [](const char* s) { return std::string_view(s); });
        if (flag != flag_names.end()) {
            *flags |= 1u << (flag - flag_names.begin());
            continue;
        }
        if (now_.kind != Tok::Assign) fault(now_.at, "found ", found(now_), ", expected \"=\" behind the keyword ", found(key));
        take();
        if (pad_value && key.text == "pad_value") {
            const bool negative = skip(Tok::Minus);
            const bool infinite = now_.kind == Tok::Name && now_.text == "inf", none = now_.kind == Tok::Name && now_.text == "nan";
            if (now_.kind != Tok::Integer && now_.kind != Tok::Real && !infinite && !none) fault(now_.at, "found ", found(now_), ", expected a number");
            const Token t = take();
            const double v = infinite ? INFINITY : none ? NAN : t.kind == Tok::Real ? t.real : double(t.integer);
            *pad_value = negative ? -v : v;
            continue;
        }
        bool any = false;
        const uint32_t at = now_.at;
        std::vector<int64_t> given;
        for (const Keyword& k : known) {
            if (key.text != k.name) continue;
            if (!any) given = now_.kind == Tok::OpenList ? integers("an integer") : std::vector<int64_t>(size_t(k.count), integer("an integer or a list of integers"));
            any = true;
            if (given.size() > size_t(k.count)) fault(at, given.size(), " entries of ", found(key), ", should be ", k.count);
            for (size_t i = 0; i < given.size(); i++) {
                if (given[i] != int32_t(given[i])) text_fault(at, text(given[i], " is beyond 32 bits"), NG_E_LIMIT);
                k.values[i] = int32_t(given[i]);
            }
        }
        if (any) continue;
        std::string all;
        for (size_t i = 0; i < known.size(); i++)
            if (i == 0 || std::string_view(known[i].name) != known[i - 1].name) all += (i ? ", " : "") + std::string(known[i].name);
        fault(key.at, found(key), " is no keyword here; there are ", all);
    }
}

namespace {
int spatial(const Extents& dims) { return std::clamp(int(dims.size()) - 2, 0, 3); }
}  // namespace

ng_conv_desc Parser::conv_keywords(const Token& word, int axes)
{
    ng_conv_desc d = {};
    d.size = sizeof d;
    const Keyword known[] = {{"stride", d.stride, axes}, {"dilate", d.dilate, axes}, {"pad", d.pad_lo, axes}, {"pad", d.pad_hi, axes},
                             {"pad_lo", d.pad_lo, axes}, {"pad_hi", d.pad_hi, axes}, {"groups", &d.groups, 1}};
    keywords(known, &d.pad_value, &d.flags, PRODUCT_FLAGS);
    close(word);
    return d;
}

ng_pool_desc Parser::pool_keywords(const Token& word, int axes)
{
    ng_pool_desc d = {};
    d.size = sizeof d;
    comma(word, "the kind");
    d.kind = choice(POOLS, "a kind");
    const Keyword known[] = {{"window", d.window, axes}, {"stride", d.stride, axes}, {"dilate", d.dilate, axes}, {"pad", d.pad_lo, axes},
                             {"pad", d.pad_hi, axes}, {"pad_lo", d.pad_lo, axes}, {"pad_hi", d.pad_hi, axes},
                             {"channel_window", &d.channel_window, 1}, {"channel_stride", &d.channel_stride, 1},
                             {"channel_pad", &d.channel_pad, 1}};
    keywords(known, nullptr, &d.flags, POOL_FLAGS);
    close(word);
    return d;
}

NodeRef Parser::read_conv(const Token& word)
{
    const NodeRef x = expression(Level::Any), w = operand(word, "the filters");
    const ng_conv_desc d = conv_keywords(word, spatial(x->dims()));
    return built(word.at, [&] { return build::conv(graph_, x, w, &d); });
}

NodeRef Parser::read_conv_dx(const Token& word)
{
    const NodeRef w = expression(Level::Any), dy = operand(word, "the cotangent");
    Layout x;
    comma(word, "the shape of x");
    x.dims = shape();
    const ng_conv_desc d = conv_keywords(word, spatial(x.dims));
    x.dtype = dy->dtype;
    return built(word.at, [&] { return build::conv_dx(graph_, w, dy, x, &d); });
}

NodeRef Parser::read_conv_dw(const Token& word)
{
    const NodeRef x = expression(Level::Any), dy = operand(word, "the cotangent");
    Layout w;
    comma(word, "the shape of w");
    w.dims = shape();
    const ng_conv_desc d = conv_keywords(word, spatial(w.dims));
    w.dtype = dy->dtype;
    return built(word.at, [&] { return build::conv_dw(graph_, x, dy, w, &d); });
}

// pool(x, from, max, ..) picks elements of from where x is greatest: pool_dx derived by its cotangent.
NodeRef Parser::read_pool(const Token& word)
{
    const NodeRef x = expression(Level::Any);
    Lexer ahead = lexer_;
    const Token first = now_.kind == Tok::Comma ? ahead.next() : now_;
    const Tok behind = ahead.next().kind;
    const bool is_kind = first.kind == Tok::Name && std::ranges::count(POOLS, first.text) && (behind == Tok::Comma || behind == Tok::Close);
    const NodeRef from = is_kind || now_.kind != Tok::Comma ? NodeRef() : operand(word, "the kind");
    const ng_pool_desc d = pool_keywords(word, spatial(x->dims()));
    return built(word.at, [&] { return from ? build::pool_picked(graph_, x, from, &d) : build::pool(graph_, x, &d); });
}

NodeRef Parser::read_pool_dx(const Token& word)
{
    const NodeRef x = expression(Level::Any), dy = operand(word, "the cotangent");
    const ng_pool_desc d = pool_keywords(word, spatial(x->dims()));
    return built(word.at, [&] { return build::pool_dx(graph_, x, dy, &d); });
}

}  // namespace ng
