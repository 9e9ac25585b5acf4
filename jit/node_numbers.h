// Numbers of the nodes that a walk over a graph has met, for graphs of millions of nodes.
#pragma once
#include "jit/graph.h"

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace ng {

// Places within a graph follow each other: they are looked up by whole pages. Nodes of several graphs may have one place;
// the first that came has it, the others are in a table of their own.
class NodeNumbers {
  public:
    int32_t& of(const Node* n)               // of a node that is here
    {
        Page& p = page(n->place() / PAGE);
        const size_t at = n->place() % PAGE;
        return p.nodes[at] == n ? p.numbers[at] : *others_->find(n);
    }
    bool add(const Node* n, int32_t number)  // false: it was here
    {
        Page& p = page(n->place() / PAGE);
        const size_t at = n->place() % PAGE;
        if (p.nodes[at] && p.nodes[at] != n) {
            if (!others_) others_.emplace();
            return others_->try_emplace(n, number).second;
        }
        if (p.nodes[at]) return false;
        p.nodes[at] = n, p.numbers[at] = number;
        return true;
    }

  private:
    static constexpr uint32_t PAGE = 32;
    struct Page {
        std::array<const Node*, PAGE> nodes{};
        std::array<int32_t, PAGE>     numbers;
    };
    struct PageOrder { static uint32_t of(uint64_t page) { return uint32_t(page); } };

    Page& page(uint32_t number)
    {
        if (last_ && number == last_number_) return *last_;
        const auto [at, fresh] = places_.try_emplace(number, int32_t(pages_.size()));
        if (fresh) pages_.push_back(std::make_unique<Page>());
        last_ = pages_[size_t(*at)].get(), last_number_ = number;
        return *last_;
    }

    FlatMap<uint64_t, PageOrder, ~uint64_t(0)> places_;
    std::vector<std::unique_ptr<Page>> pages_;
    std::optional<NodeMap> others_;
    Page*    last_ = nullptr;
    uint32_t last_number_ = 0;
};

}  // namespace ng
