// Pairs of stretches that meet, beside all pairs looked at: none is missed or said twice, and two that are only read are no pair.
#include "lib/spans.h"
#include "tests/split_mix.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

using namespace ng;

namespace {

using Pairs = std::multiset<std::pair<size_t, size_t>>;

Pairs by_walk(std::vector<Span> spans)
{
    Pairs all;
    find_meetings(spans, [&](size_t a, size_t b) { all.insert(std::minmax(a, b)); });
    return all;
}

Pairs by_pairs(const std::vector<Span>& spans)
{
    Pairs all;
    for (const Span& a : spans)
        for (const Span& b : spans)
            if (a.of < b.of && (a.is_written || b.is_written) && a.begin < b.end && b.begin < a.end) all.insert({a.of, b.of});
    return all;
}

}  // namespace

TEST_CASE("spans that meet are those that share an address, one of them written")
{
    SplitMix draw(1);
    static const char memory[256] = {};
    for (int turn = 0; turn < 2000; turn++) {
        std::vector<Span> spans;
        for (size_t count = draw.word() % 12; spans.size() < count;) {
            const char* const begin = memory + draw.word() % 200;
            spans.push_back({begin, begin + 1 + draw.word() % (turn % 2 ? 8 : 50), spans.size(), draw.word() % 3 == 0});
        }
        CHECK(by_walk(spans) == by_pairs(spans));
    }
}

TEST_CASE("many spans that are apart, and many that are only read together, take no time")
{
    constexpr size_t MANY = 400'000;
    static const char memory[2 * MANY] = {};
    std::vector<Span> apart, read;
    for (size_t i = 0; i < MANY; i++) {
        apart.push_back({memory + 2 * i, memory + 2 * i + 1, i, true});
        read.push_back({memory, memory + 2 * MANY, i, i == MANY - 1});
    }
    CHECK(by_walk(std::move(apart)).empty());
    CHECK(by_walk(std::move(read)).size() == MANY - 1);
}
