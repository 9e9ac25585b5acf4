// Where nodes' elements lie while a schedule is made: who computes them, in which buffer, seen through which strides.
#pragma once
#include "jit/forms.h"
#include "jit/snapshot.h"

#include <deque>

namespace ng {

class Stores {
  public:
    Stores(const Snapshot& graph, Plan& plan);

    // The node's elements in memory: params, leaves, results of calls, what is owned by a step. Null: computed where used.
    const View* stored(uint32_t node);
    // The same through movement: a view without computation, where strides can say it.
    const View* viewed(uint32_t node);
    // The first node below marks and movement that is something else, or is stored.
    uint32_t bottom(uint32_t node) const;
    // A node's elements are at `view`, written by `step`; further steps may write parts (concat).
    void assign(uint32_t node, View view, int32_t step);
    void add_producer(uint32_t node, int32_t step) { producers_[node].push_back(step); }
    // A kernel owns the node's value; it is stored only when another step asks (stored() then gives a dense view).
    void own(uint32_t node, int32_t step) { owner_[node] = step; }
    int32_t owner(uint32_t node) const { return owner_[node]; }
    bool is_assigned(uint32_t node) const { return place_[node] >= 0; }
    // Whether somebody asked for an owned node and no store was made yet; says it once.
    bool claim_store(uint32_t node);
    const std::vector<int32_t>& producers(uint32_t node) { return producers_[node]; }

    // How many operations compute the node, of those that are no step's own.
    void     count_operations(std::vector<uint32_t> counts) { operations_ = std::move(counts); }
    uint32_t operations(uint32_t node) const { return operations_[node]; }

    View dense(uint32_t node);               // a new Work buffer of the node's shape
    int32_t add_buffer(Buffer b);
    const View& source(uint32_t node);       // of a param or leaf
    // The buffer of the param of this index, of leaves of this tensor; -1: nobody asked for it.
    int32_t param_buffer(int64_t index) const;
    int32_t leaf_buffer(const void* tensor) const;

  private:
    const Snapshot& graph_;
    Plan&           plan_;
    std::deque<View>     views_;
    std::vector<int32_t> place_, seen_, owner_;      // by node: index into views_, of the node and through movement
    std::vector<bool>    unwritten_;
    std::vector<uint32_t> operations_;
    std::unordered_map<uint32_t, std::vector<int32_t>> producers_;
    std::unordered_map<int64_t, int32_t>               params_;    // by index
    std::unordered_map<const void*, int32_t>           leaves_;    // by tensor
};

}  // namespace ng
