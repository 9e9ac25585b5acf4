// Stretches of memory that meet: found by one walk in the order of addresses, no pair looked at that is apart.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

namespace ng {

struct Span {
    const char *begin, *end;
    size_t      of = 0;              // the caller's number of whose it is
    bool        is_written = false;
    size_t      next = 0;            // find_meetings': where the next one that is written stands
};

// met(a, b) for every two that share an address and of which one is written, at the least; the spans end up sorted. No allocation.
template <class Met>
void find_meetings(std::span<Span> spans, Met met)
{
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.of < b.of; });
    for (size_t i = spans.size(), next = i; i-- > 0; next = spans[i].is_written ? i : next) spans[i].next = next;
    for (size_t i = 0; i < spans.size(); i++) {
        const Span& s = spans[i];
        for (size_t k = s.is_written ? i + 1 : s.next; k < spans.size() && spans[k].begin < s.end; k = s.is_written ? k + 1 : spans[k].next) met(s.of, spans[k].of);
    }
}

}  // namespace ng
