// An order of steps that edges are added to one by one: one that would close a circle is refused, the others move little.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace ng {

struct Edge { int32_t step, after; };

// Pearce & Kelly 2006, A dynamic topological sort algorithm: an edge against the order moves only what lies between its ends.
class Precedence {
  public:
    // Begins without edges. Edges that run along `sequence`, all steps once, cost nothing to add.
    explicit Precedence(std::span<const int32_t> sequence)
        : before_(sequence.size()), behind_(sequence.size()), rank_(sequence.size()), seen_(sequence.size(), false)
    {
        for (size_t r = 0; r < sequence.size(); r++) rank_[size_t(sequence[r])] = int32_t(r);
    }
    // All of them, or none and false.
    bool add(std::span<const Edge> edges)
    {
        for (size_t i = 0; i < edges.size(); i++) {
            if (add(edges[i])) continue;
            while (i-- > 0) behind_[size_t(edges[i].after)].pop_back(), before_[size_t(edges[i].step)].pop_back();
            return false;
        }
        return true;
    }

  private:
    using Steps = std::vector<int32_t>;

    bool add(const Edge& e)
    {
        const int32_t first = rank_[size_t(e.step)], last = rank_[size_t(e.after)];
        if (first <= last && !move(e, first, last)) return false;
        behind_[size_t(e.after)].push_back(e.step), before_[size_t(e.step)].push_back(e.after);
        return true;
    }
    // What must come before goes before what must come behind, in the places that both have now; false where one step is both.
    bool move(const Edge& e, int32_t first, int32_t last)
    {
        Steps up = reached(e.step, behind_, [&](int32_t rank) { return rank <= last; });
        const bool is_circle = std::ranges::find(up, e.after) != up.end();
        Steps down;
        if (!is_circle) down = reached(e.after, before_, [&](int32_t rank) { return rank >= first; });
        for (const Steps* steps : {&up, &down})
            for (const int32_t s : *steps) seen_[size_t(s)] = false;
        if (is_circle) return false;
        const auto by_rank = [&](int32_t s) { return rank_[size_t(s)]; };
        std::ranges::sort(up, {}, by_rank), std::ranges::sort(down, {}, by_rank);
        down.insert(down.end(), up.begin(), up.end());
        Steps ranks;
        for (const int32_t s : down) ranks.push_back(rank_[size_t(s)]);
        std::ranges::sort(ranks);
        for (size_t i = 0; i < down.size(); i++) rank_[size_t(down[i])] = ranks[i];
        return true;
    }
    template <class Within>
    Steps reached(int32_t from, const std::vector<Steps>& next, Within&& within)
    {
        Steps all = {from};
        seen_[size_t(from)] = true;
        for (size_t i = 0; i < all.size(); i++)
            for (const int32_t s : next[size_t(all[i])]) {
                if (seen_[size_t(s)] || !within(rank_[size_t(s)])) continue;
                seen_[size_t(s)] = true;
                all.push_back(s);
            }
        return all;
    }

    std::vector<Steps> before_, behind_;
    Steps              rank_;
    std::vector<bool>  seen_;
};

}  // namespace ng
