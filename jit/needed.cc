// Takes a prelude apart by its words and braces alone. A macro at the top is expanded to see what it declares, never in the result.
#include "jit/needed.h"

#include <algorithm>

namespace ng {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }
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

// The macros met so far, and what a piece declares and names.
struct Pieces::Reading {
    std::multimap<std::string_view, Macro> macros;
    std::vector<std::string> declared, named;

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
        declared.emplace_back(name);
        for (std::string_view t; !(t = next(directive, at)).empty();)
            if (is_name(t)) named.emplace_back(t);
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
                named.emplace_back(t);
                if (is_open || at == text.size() || text[at] != '(') continue;
                const auto [from, to] = macros.equal_range(t);
                if (from == to) continue;
                const std::vector<std::string> given = arguments(text, at);
                for (auto m = from; m != to; ++m) read(expanded(m->second, given));
                continue;
            }
            if (!is_open && is_name(last) && last != "struct" && (t == "(" || t == "{" || t == ";")) declared.emplace_back(last);
            braces += (t == "{") - (t == "}"), brackets += (t == "(") - (t == ")");
        }
    }
};

Pieces::Pieces(std::string_view prelude) : all_(prelude)
{
    Reading reading;
    std::vector<std::vector<std::string>> named;
    for (size_t at = 0; at < prelude.size();) {
        const size_t line = end_of_line(prelude, at);
        const std::string_view rest = prelude.substr(at, line - at);
        if (rest.starts_with("//") || rest == "\n") {
            at = line;
            continue;
        }
        reading.declared.clear(), reading.named.clear();
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
        for (std::vector<std::string>* names : {&reading.declared, &reading.named}) {
            std::ranges::sort(*names);
            names->erase(std::ranges::unique(*names).begin(), names->end());
        }
        for (const std::string& name : reading.declared) declared_[name].push_back(uint32_t(pieces_.size()));
        pieces_.push_back({prelude.substr(at, end - at), stays, {}});
        named.push_back(std::move(reading.named));
        at = end;
    }
    for (size_t i = 0; i < pieces_.size(); i++)
        for (const std::string& name : named[i])
            if (const auto found = declared_.find(name); found != declared_.end())
                pieces_[i].needs.insert(pieces_[i].needs.end(), found->second.begin(), found->second.end());
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
        if (const auto found = declared_.find(t); found != declared_.end())
            for (const uint32_t piece : found->second) need(piece);
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
