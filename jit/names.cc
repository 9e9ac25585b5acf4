// Finds what identifiers of a text stand for, and what a misspelt one may have meant.
#include "jit/parser.h"

#include <algorithm>
#include <array>
#include <functional>

namespace ng {
namespace {

constexpr size_t NONE = ~size_t(0), FEW = 12;

// How many letters to insert, drop or change; anything above 2 is 3.
int distance(std::string_view a, std::string_view b)
{
    if (a.size() > 24 || b.size() > 24 || a.size() + 2 < b.size() || b.size() + 2 < a.size()) return 3;
    std::array<int, 25> row;
    for (size_t j = 0; j <= b.size(); j++) row[j] = int(j);
    for (size_t i = 1; i <= a.size(); i++) {
        int diagonal = row[0];
        row[0] = int(i);
        for (size_t j = 1; j <= b.size(); j++) {
            const int changed = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
        }
    }
    return std::min(row[b.size()], 3);
}

}  // namespace

void Names::index() const
{
    if (indexed_ == 0 || 2 * count() > index_.size()) {
        index_.assign(std::max<size_t>(64, 4 * count()), 0);
        indexed_ = 0;
    }
    for (; indexed_ < count(); indexed_++) {
        size_t at = std::hash<std::string_view>()(name_at(indexed_)) % index_.size();
        while (index_[at]) at = (at + 1) % index_.size();
        index_[at] = uint32_t(indexed_ + 1);
    }
}

size_t Names::place(std::string_view name) const
{
    if (count() <= FEW) {
        for (size_t i = 0; i < count(); i++)
            if (name_at(i) == name) return i;
        return NONE;
    }
    if (indexed_ != count()) index();
    for (size_t at = std::hash<std::string_view>()(name) % index_.size(); index_[at]; at = (at + 1) % index_.size())
        if (name_at(index_[at] - 1) == name) return index_[at] - 1;
    return NONE;
}

const NodeRef* Names::find(std::string_view name) const
{
    const size_t i = place(name);
    return i == NONE ? nullptr : i < names_.size() ? &values_[i] : &definitions_[i - names_.size()].value;
}

bool Names::is_given(std::string_view name) const { return place(name) < names_.size(); }

void Names::define(std::string_view name, NodeRef value)
{
    const size_t i = place(name);
    if (i == NONE) definitions_.push_back({name, std::move(value)});
    else definitions_[i - names_.size()].value = std::move(value);
}

std::string Names::nearest(std::string_view name) const
{
    std::string_view best;
    int least = std::min(3, int(name.size() + 1) / 2);   // let is not near rem
    const auto consider = [&](std::string_view word) {
        const int d = distance(name, word);
        if (d < least) least = d, best = word;
    };
    for (size_t i = 0; i < count(); i++) consider(name_at(i));
    for (int i = 0; i < OPS; i++)
        if (info(Op(i)).kind != Class::Node) consider(name_of(Op(i)));
    for (const std::string_view word : special_words()) consider(word);
    for (int i = 0; i < DTYPES; i++) consider(name_of(Dtype(i)));
    for (const char* const word : {"inf", "nan", "true", "false"}) consider(word);
    return std::string(best);
}

std::vector<std::string_view> split_names(std::string_view names, size_t wanted)
{
    std::vector<std::string_view> out;
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
    const bool none = std::ranges::all_of(names, blank);
    for (size_t first = 0; !none && first <= names.size();) {
        const size_t comma = std::min(names.find(',', first), names.size());
        std::string_view name = names.substr(first, comma - first);
        while (!name.empty() && blank(name.front())) name.remove_prefix(1);
        while (!name.empty() && blank(name.back())) name.remove_suffix(1);
        if (name.empty()) throw Error(NG_E_INVALID, text("ng_parse: name ", out.size(), " of \"", front_of(names, 64), "\" is empty"));
        if (!is_identifier(name) || is_reserved(name))
            throw Error(NG_E_INVALID, text("ng_parse: \"", front_of(name, 64), "\" cannot be a name; names are as x, h_1"));
        out.push_back(name);
        first = comma + 1;
    }
    if (out.size() != wanted) throw Error(NG_E_INVALID, text("ng_parse: names has ", out.size(), " names, and there are ", wanted, " values"));
    std::vector<std::string_view> sorted = out;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) throw Error(NG_E_INVALID, text("ng_parse: \"", twice->substr(0, 64), "\" is twice among the names"));
    return out;
}

}  // namespace ng
