// First fit over the lifetimes of temporaries, the largest first.
#include "lib/layout.h"

#include <algorithm>

namespace ng {
namespace {

constexpr uint64_t MOST_BYTES = uint64_t(1) << 47;      // no address space holds more

uint64_t checked(uint64_t count, uint64_t bytes_each)
{
    if (count > MOST_BYTES / bytes_each) throw Error(NG_E_LIMIT, text("temporaries of ", count, " elements of ", bytes_each, " bytes are more than any memory holds"));
    return count * bytes_each;
}

}  // namespace

WorkLayout layout_work(const Plan& plan, std::span<const int64_t> variables, const Executor& executor)
{
    struct Placed { size_t buffer; uint64_t begin, end; };
    WorkLayout out;
    out.offsets.assign(plan.buffers.size(), 0);
    std::vector<std::pair<uint64_t, size_t>> order;
    for (size_t i = 0; i < plan.buffers.size(); i++) {
        const Buffer& b = plan.buffers[i];
        if (b.place != Place::Work || b.first < 0 || !executor.needs(int32_t(i))) continue;
        const uint64_t bytes = checked(uint64_t(std::max<int64_t>(b.count.most(variables), 1)), uint64_t(bytes_of(b.dtype)));
        order.emplace_back((bytes + 63) / 64 * 64, i);
    }
    std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Placed> placed;                                  // by begin
    for (const auto& [bytes, i] : order) {
        const Buffer& b = plan.buffers[i];
        uint64_t at = 0;
        for (const Placed& p : placed) {
            const Buffer& o = plan.buffers[p.buffer];
            if (o.last < b.first || b.last < o.first) continue;  // they never meet
            if (at + bytes <= p.begin) break;
            at = std::max(at, p.end);
        }
        out.offsets[i] = at;
        out.bytes = checked(std::max(out.bytes, at + bytes), 1);
        const Placed mine{i, at, at + bytes};
        placed.insert(std::ranges::upper_bound(placed, mine.begin, {}, &Placed::begin), mine);
    }
    return out;
}

}  // namespace ng
