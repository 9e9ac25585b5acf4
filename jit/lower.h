// One fused kernel in the making: element-wise nodes and folds pulled into a loop nest by index forms.
#pragma once
#include "jit/flat_map.h"
#include "jit/stores.h"

#include <functional>
#include <unordered_map>
#include <unordered_set>

namespace ng {

// A value that the kernel owns: a fold, or an element-wise node that is stored or used by several.
struct Task {
    uint32_t   node;
    IndexForms forms;            // of the node's dims
    IndexForms operand_forms;    // a fold's operand's
    int32_t    value = -1;
    bool       copy = false;     // a plain load of what another step has
};

struct Destination {             // a task's elements go here
    size_t task;
    View   view;
};

// Why a node could not be pulled in.
struct Refusal {
    AxisSplit split;             // axis >= 0: would work after this
    int32_t   store = -1;        // would work if this node were stored; -1: it does not belong here
};

class KernelBuilder {
  public:
    KernelBuilder(const Snapshot& graph, Stores& stores) : graph_(&graph), stores_(&stores) {}

    // Says whether the kernel may read these nodes of other steps.
    using Allowed = std::function<bool(std::span<const uint32_t>)>;
    // Adds a task and gives its number; -1 is a refusal, and nothing is changed. An empty kernel takes the first's axes.
    int32_t add(uint32_t node, bool copy, Refusal& why, const Allowed& allowed);
    bool    owns(uint32_t node) const { return owned_.contains(node); }
    int32_t task_of(uint32_t node) const { return owned_.at(node); }
    void    store(int32_t task, const View& to) { destinations_.push_back({size_t(task), to}); }
    // No task will come any more: what only they need goes.
    void    close();

    const std::vector<Task>&        tasks() const { return tasks_; }
    const std::vector<uint32_t>&    loaded() const { return loaded_; }   // nodes of other steps that are read, some twice
    const std::vector<KernelAxis>&  axes() const { return kernel_.axes; }
    size_t                          size() const { return kernel_.values.size(); }
    bool                            has_folds() const { return folds_ > 0; }

    // The kernel, its buffers numbered by their places in `buffers`.
    Kernel finish(std::vector<int32_t>& buffers);

  private:
    struct Mark { size_t values, accesses, loaded, added, numbers, read; std::vector<KernelAxis> axes; int folds; };
    // A node on its way: `below` are the forms of a movement's operand or of a take's indices.
    struct Pending { uint32_t node, forms, below = 0, words_before = 0; bool expanded = false; };

    bool may_read(uint32_t bottom) const { return !reads_ || reads_->contains(bottom); }
    bool place(Task& task, Refusal& why);
    bool lay(Task& task, Refusal& why);
    bool rebuild(const AxisSplit& split, Refusal& why);
    Mark mark() const;
    // What a launch is told of what is read: numbers, for each access where it begins, how it goes on and its strides, and buffers,
    // which count for more than their addresses: a launch has no more than 128, of which others are written.
    size_t words() const { return numbers_ + 2 * kernel_.axes.size() + kernel_.accesses.size() * (4 + kernel_.axes.size()) + 5 * read_.size(); }
    void note_read(int32_t buffer);
    int  passes() const;         // over the kernel's space, for each fold that waits for another
    bool is_fit() const;         // for devices, with a task more
    void rollback(const Mark& m);
    bool pull(uint32_t node, const IndexForms& forms, int32_t& value, Refusal& why);
    bool expand(Pending& p, std::vector<Pending>& stack, Refusal& why);
    bool expand_movement(Pending& p, std::vector<Pending>& stack, Refusal& why);
    bool expand_take(Pending& p, std::vector<Pending>& stack, Refusal& why);
    std::optional<int64_t> always(uint32_t node) const;
    int32_t combine(const Pending& p);
    int32_t combine_take(const Pending& p);
    int32_t combine_random(const Pending& p);
    int32_t load(const View& view, uint32_t forms, uint32_t stored);
    int32_t index_value(const Extents& dims, const IndexForms& forms);
    int32_t add_value(Value v);
    int32_t typed(int32_t value, Dtype t);     // a narrow float's value, taken for its f32
    int32_t as_type(int32_t value, Dtype t);
    int32_t add_access(Access a);
    uint32_t intern(const IndexForms& forms);
    int32_t found(uint32_t node, uint32_t forms) const;
    void    remember(uint32_t node, uint32_t forms, int32_t value);
    void    mark_rows();

    const Snapshot*      graph_;
    Stores*              stores_;
    Kernel               kernel_;            // Value::buffer holds plan buffers until finish
    std::vector<Task>    tasks_;
    std::unordered_map<uint32_t, int32_t> owned_;
    std::vector<Destination> destinations_;
    std::vector<uint32_t> loaded_;
    std::vector<int32_t> read_;              // buffers, each once
    // While the kernel is built anew: what it read until now. All else is computed again, wherever it may lie by now: what
    // a kernel reads decides when it runs, and its own tasks are nowhere in memory yet.
    const std::unordered_set<uint32_t>* reads_ = nullptr;
    struct KeyOrder { static uint32_t of(uint64_t key) { return uint32_t(key) + uint32_t(key >> 32) * 0x9E3779B1u; } };
    FlatMap<uint64_t, KeyOrder, ~uint64_t(0)> memo_;    // node, forms -> value
    std::vector<uint64_t> added_;                      // keys of memo_, in order
    std::vector<IndexForms> forms_;
    std::unordered_multimap<uint64_t, uint32_t> forms_index_;
    std::unordered_multimap<uint64_t, int32_t>  loads_;
    int                  folds_ = 0;
    size_t numbers_ = 0;         // that its values so far are told
    uint32_t             placing_ = ~0u;     // the task on its way: it is computed here, whoever else stores it
};

}  // namespace ng
