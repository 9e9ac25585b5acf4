// The table of operations made real.
#include "jit/ops.h"

#include <algorithm>
#include <array>

namespace ng {
namespace {

constexpr OpInfo TABLE[] = {
#define NODE(name, summary) {#name, Class::Node, 0, Domain::Any, Result::Same, "", "", "", 0, "", summary},
#define MAP(name, arity, domain, result, expression, derivative, ulp, numpy, summary) \
    {#name, Class::Map, arity, Domain::domain, Result::result, #expression, "", derivative, ulp, numpy, summary},
#define FOLD(name, domain, start, combine, numpy, summary) \
    {#name, Class::Fold, 1, Domain::domain, Result::Same, #combine, #start, "", 0, numpy, summary},
#define STAT(name, numpy, summary) {#name, Class::Stat, 1, Domain::Real, Result::Same, "", "", "", 0, numpy, summary},
#define NORM(name, numpy, summary) {#name, Class::Norm, 1, Domain::Real, Result::Same, "", "", "", 0, numpy, summary},
#include "jit/ops.def"
};
static_assert(sizeof TABLE / sizeof *TABLE == OPS);

struct Word {
    std::string_view name;
    Op op = Op::count_;
};

// What texts call, by name.
constexpr auto WORDS = [] {
    std::array<Word, size_t(OPS)> words{};
    size_t count = 0;
    for (int i = 0; i < OPS; i++)
        if (TABLE[i].kind != Class::Node) words[count++] = {TABLE[i].name, Op(i)};
    std::sort(words.begin(), words.begin() + count, [](const Word& a, const Word& b) { return a.name < b.name; });
    return words;
}();
constexpr size_t WORD_COUNT = size_t(std::find_if(WORDS.begin(), WORDS.end(), [](const Word& w) { return w.name.empty(); }) - WORDS.begin());

}  // namespace

const OpInfo& info(Op op) { return TABLE[int(op)]; }

Op find_op(std::string_view name)
{
    const auto last = WORDS.begin() + WORD_COUNT;
    const auto at = std::lower_bound(WORDS.begin(), last, name, [](const Word& w, std::string_view s) { return w.name < s; });
    return at != last && at->name == name ? at->op : Op::count_;
}

}  // namespace ng
