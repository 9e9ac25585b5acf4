// Takes a prelude apart by its words and braces alone. A macro at the top is expanded to see what it declares, never in the result.
#include "jit/needed.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ng {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr std::array<bool, 256> WORDS = [] {
    std::array<bool, 256> all{};
    for (size_t i = 0; i < all.size(); i++) all[i] = (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z') || i == '_' || (i >= '0' && i <= '9');
    return all;
}();
bool is_word(char c) { return WORDS[static_cast<unsigned char>(c)]; }
bool is_name(std::string_view token) { return !token.empty() && is_word(token[0]) && !is_digit(token[0]); }

// The next token at or behind `at`: a name or a number, ##, a string, one other character; empty at the end. Comments are blanks.
std::string_view next(std::string_view text, size_t& at)
{
    while (at < text.size()) {
        const char c = text[at], after = at + 1 < text.size() ? text[at + 1] : '\0';
        if (c == '/' && after == '/') at = std::min(text.find('\n', at), text.size());
        else if (c == '/' && after == '*') at = std::min(text.find("*/", at + 2), text.size() - 2) + 2;
        else if (c == ' ' || c == '\n' || c == '\t' || (c == '\\' && after == '\n')) at++;
        else break;
    }
    if (at == text.size()) return {};
    const size_t begin = at++;
    if (is_word(text[begin])) {
        while (at < text.size() && is_word(text[at])) at++;
    } else if (text[begin] == '"') {
        while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
        at = std::min(at + 1, text.size());
    } else if (text[begin] == '#' && at < text.size() && text[at] == '#') {
        at++;
    }
    return text.substr(begin, at - begin);
}

size_t end_of_line(std::string_view text, size_t at)
{
    const size_t end = text.find('\n', at);
    return end == std::string_view::npos ? text.size() : end + 1;
}
size_t end_of_directive(std::string_view text, size_t at)
{
    size_t end = end_of_line(text, at);
    while (end >= 2 && end < text.size() && text[end - 2] == '\\') end = end_of_line(text, end);
    return end;
}
// Of a declaration: behind its body, its semicolon, or what a macro is given.
size_t end_of_declaration(std::string_view text, size_t at, bool is_macro)
{
    int braces = 0, brackets = 0;
    bool is_type = false;
    for (std::string_view t; !(t = next(text, at)).empty();) {
        const char c = t[0];
        is_type |= braces == 0 && (t == "struct" || t == "typedef");
        braces += (c == '{') - (c == '}'), brackets += (c == '(') - (c == ')');
        if (braces || brackets) continue;
        if (c == ';' || (c == '}' && !is_type) || (c == ')' && is_macro)) break;
    }
    return end_of_line(text, at);
}

}  // namespace

// The macros met so far, and what a piece declares and names, each name once, by its number.
struct Pieces::Reading {
    Pieces& pieces;
    std::unordered_multimap<std::string_view, Macro> macros = {};
    std::vector<uint32_t> named = {};
    std::vector<size_t> last_named = {}, last_declared = {};     // by name: the piece that did, and one more

    uint32_t number_of(std::string_view name)
    {
        const auto known = pieces.names_.find(name);
        if (known != pieces.names_.end()) return known->second;
        last_named.push_back(0), last_declared.push_back(0), pieces.declared_.emplace_back();
        return pieces.names_.emplace(name, uint32_t(pieces.names_.size())).first->second;
    }
    void declare(std::string_view name)
    {
        const uint32_t n = number_of(name);
        if (std::exchange(last_declared[n], pieces.pieces_.size() + 1) <= pieces.pieces_.size()) pieces.declared_[n].push_back(uint32_t(pieces.pieces_.size()));
    }
    void call(std::string_view name)
    {
        const uint32_t n = number_of(name);
        if (std::exchange(last_named[n], pieces.pieces_.size() + 1) <= pieces.pieces_.size()) named.push_back(n);
    }

    void define(std::string_view directive)
    {
        size_t at = 0;
        for (int i = 0; i < 2; i++) (void)next(directive, at);               // # define
        const std::string_view name = next(directive, at);
        Macro m;
        if (at < directive.size() && directive[at] == '(')
            for (std::string_view t; !(t = next(directive, at)).empty() && t != ")";)
                if (is_name(t)) m.parameters.push_back(t);
        m.body = directive.substr(at);
        declare(name);
        for (std::string_view t; !(t = next(directive, at)).empty();)
            if (is_name(t)) call(t);
        macros.emplace(name, std::move(m));
    }

    bool is_called(std::string_view name) const
    {
        const auto known = macros.find(name);
        return known != macros.end() && !known->second.parameters.empty();
    }

    // What stands between a macro's brackets; `at` is behind them.
    static std::vector<std::string> arguments(std::string_view text, size_t& at)
    {
        std::vector<std::string> all(1);
        int brackets = 1;
        (void)next(text, at);
        for (std::string_view t; brackets && !(t = next(text, at)).empty();) {
            brackets += (t == "(") - (t == ")");
            if (brackets == 1 && t == ",") all.emplace_back();
            else if (brackets) all.back() += (all.back().empty() ? "" : " ") + std::string(t);
        }
        return all;
    }
    static std::string expanded(const Macro& m, const std::vector<std::string>& given)
    {
        std::string out;
        bool joins = false;
        size_t at = 0;
        for (std::string_view t; !(t = next(m.body, at)).empty();) {
            if (t == "##") {
                joins = true;
                continue;
            }
            if (!joins && t != "(") out += ' ';          // a call's bracket stands behind its name
            joins = false;
            const auto parameter = std::ranges::find(m.parameters, t);
            const auto which = size_t(parameter - m.parameters.begin());
            out += which < given.size() ? std::string_view(given[which]) : t;
        }
        return out;
    }

    // Names before brackets, bodies and semicolons are declared where nothing is open; all are named.
    void read(std::string_view text)
    {
        int braces = 0, brackets = 0;
        std::string_view last;
        size_t at = 0;
        for (std::string_view t; !(t = next(text, at)).empty(); last = t) {
            const bool is_open = braces || brackets;
            if (is_name(t)) {
                call(t);
                if (is_open || at == text.size() || text[at] != '(') continue;
                const auto [from, to] = macros.equal_range(t);
                if (from == to) continue;
                const std::vector<std::string> given = arguments(text, at);
                for (auto m = from; m != to; ++m) read(expanded(m->second, given));
                continue;
            }
            if (!is_open && is_name(last) && last != "struct" && (t == "(" || t == "{" || t == ";")) declare(last);
            braces += (t == "{") - (t == "}"), brackets += (t == "(") - (t == ")");
        }
    }
};

Pieces::Pieces(std::string_view prelude) : all_(prelude)
{
    Reading reading{*this};
    std::vector<std::vector<uint32_t>> named;
    for (size_t at = 0; at < prelude.size();) {
        const size_t line = end_of_line(prelude, at);
        const std::string_view rest = prelude.substr(at, line - at);
        if (rest.starts_with("//") || rest == "\n") {
            at = line;
            continue;
        }
        reading.named.clear();
        size_t end = line, first = at;
        bool stays = rest.starts_with("#");
        if (stays) {
            end = end_of_directive(prelude, at);
            stays = !rest.starts_with("#define");
            if (!stays) reading.define(prelude.substr(at, end - at));
            else if (!rest.starts_with("#undef")) reading.read(prelude.substr(at, end - at));
        } else {
            end = end_of_declaration(prelude, at, reading.is_called(next(prelude, first)));
            reading.read(prelude.substr(at, end - at));
        }
        pieces_.push_back({prelude.substr(at, end - at), stays, {}});
        named.push_back(reading.named);
        at = end;
    }
    for (size_t i = 0; i < pieces_.size(); i++)
        for (const uint32_t name : named[i]) pieces_[i].needs.insert(pieces_[i].needs.end(), declared_[name].begin(), declared_[name].end());
}

std::string Pieces::needed_by(std::string_view text) const
{
    std::vector<bool> is_needed(pieces_.size());
    std::vector<uint32_t> open;
    const auto need = [&](uint32_t piece) {
        if (!is_needed[piece]) is_needed[piece] = true, open.push_back(piece);
    };
    for (uint32_t i = 0; i < pieces_.size(); i++)
        if (pieces_[i].stays) need(i);
    size_t at = 0;
    for (std::string_view t; !(t = next(text, at)).empty();) {
        if (t == "##") return std::string(all_);
        if (!is_name(t)) continue;
        if (const auto found = names_.find(t); found != names_.end())
            for (const uint32_t piece : declared_[found->second]) need(piece);
    }
    while (!open.empty()) {
        const uint32_t piece = open.back();
        open.pop_back();
        for (const uint32_t other : pieces_[piece].needs) need(other);
    }
    std::string out;
    for (size_t i = 0; i < pieces_.size(); i++)
        if (is_needed[i]) out += pieces_[i].text;
    return out;
}

}  // namespace ng
