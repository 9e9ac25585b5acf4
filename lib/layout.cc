// Temporaries whose lives do not meet share memory: first fit by size, or for very many by their time.
#include "lib/layout.h"

#include <algorithm>
#include <map>
#include <set>

namespace ng {
namespace {

constexpr uint64_t MOST_BYTES = uint64_t(1) << 47;      // no address space holds more

uint64_t checked(uint64_t count, uint64_t bytes_each)
{
    if (count > MOST_BYTES / bytes_each) throw Error(NG_E_LIMIT, text("temporaries of ", count, " elements of ", bytes_each, " bytes are more than any memory holds"));
    return count * bytes_each;
}

struct Room { size_t buffer; uint64_t bytes; };

// First fit, the largest first: packs well, but each is compared with all before it.
void pack_largest_first(const std::vector<Buffer>& buffers, std::vector<Room> order, WorkLayout& out)
{
    struct Placed { size_t buffer; uint64_t begin, end; };
    std::ranges::stable_sort(order, [](const Room& a, const Room& b) { return a.bytes > b.bytes; });
    std::vector<Placed> placed;                                  // by begin
    for (const auto& [i, bytes] : order) {
        const Buffer& b = buffers[i];
        uint64_t at = 0;
        for (const Placed& p : placed) {
            const Buffer& o = buffers[p.buffer];
            if (o.last < b.first || b.last < o.first) continue;  // they never meet
            if (at + bytes <= p.begin) break;
            at = std::max(at, p.end);
        }
        out.offsets[i] = at;
        out.bytes = checked(std::max(out.bytes, at + bytes), 1);
        const Placed mine{i, at, at + bytes};
        placed.insert(std::ranges::upper_bound(placed, mine.begin, {}, &Placed::begin), mine);
    }
}

// Stretches that nobody uses, by place and by size; the memory ends where its last user did, and grows there.
class Gaps {
  public:
    uint64_t take(uint64_t bytes)                                // the smallest that fits
    {
        const auto fit = by_size_.lower_bound({bytes, 0});
        if (fit == by_size_.end()) {
            const bool at_end = !by_place_.empty() && by_place_.rbegin()->first + by_place_.rbegin()->second == end_;
            const uint64_t at = at_end ? by_place_.rbegin()->first : end_;
            if (at_end) remove(std::prev(by_place_.end()));
            end_ = checked(at + bytes, 1);
            return at;
        }
        const auto [size, at] = *fit;
        remove(by_place_.find(at));
        if (size > bytes) add(at + bytes, size - bytes);
        return at;
    }
    void give(uint64_t at, uint64_t bytes)
    {
        const auto behind = by_place_.lower_bound(at);
        if (behind != by_place_.begin())
            if (const auto before = std::prev(behind); before->first + before->second == at) at = before->first, bytes += before->second, remove(before);
        if (behind != by_place_.end() && at + bytes == behind->first) bytes += behind->second, remove(behind);
        add(at, bytes);
    }
    uint64_t end() const { return end_; }

  private:
    using Place = std::map<uint64_t, uint64_t>::iterator;
    void add(uint64_t at, uint64_t bytes) { by_place_.emplace(at, bytes), by_size_.emplace(bytes, at); }
    void remove(Place p) { by_size_.erase({p->second, p->first}), by_place_.erase(p); }

    std::map<uint64_t, uint64_t>           by_place_;
    std::set<std::pair<uint64_t, uint64_t>> by_size_;
    uint64_t end_ = 0;
};

// From the first step to the last, each in the smallest gap that fits: for programs of tens of thousands of steps.
void pack_in_turn(const std::vector<Buffer>& buffers, std::vector<Room> order, WorkLayout& out)
{
    std::ranges::stable_sort(order, [&](const Room& a, const Room& b) { return buffers[a.buffer].first < buffers[b.buffer].first; });
    std::vector<Room> ends = order;
    std::ranges::stable_sort(ends, [&](const Room& a, const Room& b) { return buffers[a.buffer].last < buffers[b.buffer].last; });
    Gaps gaps;
    auto over = ends.begin();
    for (const auto& [i, bytes] : order) {
        for (; buffers[over->buffer].last < buffers[i].first; ++over) gaps.give(out.offsets[over->buffer], over->bytes);
        out.offsets[i] = gaps.take(bytes);
    }
    out.bytes = gaps.end();
}

}  // namespace

WorkLayout layout_work(const Plan& plan, std::span<const int64_t> variables, const Executor& executor)
{
    constexpr size_t MANY = 4096;                                // whose first fit takes 0.02 s
    WorkLayout out;
    out.offsets.assign(plan.buffers.size(), 0);
    std::vector<Room> order;
    for (size_t i = 0; i < plan.buffers.size(); i++) {
        const Buffer& b = plan.buffers[i];
        if (b.place != Place::Work || b.first < 0 || !executor.needs(int32_t(i))) continue;
        const uint64_t bytes = checked(uint64_t(std::max<int64_t>(b.count.most(variables), 1)), uint64_t(bytes_of(b.dtype)));
        order.push_back({i, (bytes + 63) / 64 * 64});
    }
    (order.size() > MANY ? pack_in_turn : pack_largest_first)(plan.buffers, std::move(order), out);
    return out;
}

}  // namespace ng
