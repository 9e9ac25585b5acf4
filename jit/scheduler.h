// The scheduler at work: which nodes become steps, which kernels they join, where their elements go.
#pragma once
#include "jit/lower.h"
#include "jit/plan.h"
#include "jit/precedence.h"

#include <memory>
#include <optional>
#include <set>

namespace ng {

struct BufferUses;

class Scheduler {
  public:
    // denied: outputs that must not be written in place of what they alias.
    Scheduler(const Snapshot& graph, std::span<const Target> targets, int32_t lengths, Fusion fusion, int64_t turned_bytes, const std::vector<bool>& denied);
    // False: some outputs cannot be written in place after all; `denied` says which, and all begins anew.
    bool run(Plan& plan, std::vector<bool>& denied);

  private:
    struct Draft {                       // a step in the making
        std::unique_ptr<KernelBuilder> kernel;
        uint32_t node = ~0u;             // of a call
        std::vector<View> in;
        View     out;
        bool     in_place = false, finishes = false;
        std::set<int32_t> after;
        int32_t  level = 0, dependents = 0;
        size_t   committed = 0;          // of kernel->loaded()
    };
    struct Placed { int32_t draft = -1, task = -1; };
    using AliasingOuts = std::unordered_map<int32_t, std::vector<int32_t>>;      // buffers of outputs, by the buffer that they may share memory with

    // scheduler.cc
    void collect_ports();
    void collect_checks();
    void check_windows(const Node& n);
    void mark_tasks();
    void aim_outputs();                  // calls that are outputs write there themselves
    void aim(uint32_t node, View view);
    void visit(uint32_t node);
    void emit_concat(uint32_t node);
    void emit_put(uint32_t node);
    void emit_call(uint32_t node);
    void emit_output(size_t j);
    // placing.cc
    Placed place(uint32_t node, bool copy);
    bool   try_place(uint32_t node, bool copy, Placed& placed, uint32_t& missing);
    bool   join(int32_t draft, uint32_t node, bool copy, Placed& placed);
    bool   may_join(const Draft& d, uint32_t node, bool copy) const;
    bool   may_read(int32_t draft, std::span<const uint32_t> nodes);
    void   commit(int32_t draft);
    void   depend(int32_t draft, int32_t on);
    void   require(uint32_t node);       // its elements lie in memory, at least as a view
    bool   try_materialise(uint32_t node, uint32_t& missing);
    void   write(uint32_t node, const View& to);     // whatever computes it, its elements go there
    View   operand(int32_t draft, uint32_t node);
    uint32_t under_marks(uint32_t node) const;
    // ordering.cc
    void finish_steps(Plan& plan);
    bool guard_aliases(Plan& plan, std::vector<bool>& denied);
    std::vector<int32_t> alias_buffers(size_t j) const;
    bool guard_one(Plan& plan, const BufferUses& uses, size_t j, std::vector<Edge>& edges);
    Precedence precedence(const Plan& plan, std::vector<int32_t> sequence) const;
    bool order(const Plan& plan, std::span<const Edge> more, std::vector<int32_t>& sequence) const;
    void arrange(Plan& plan);
    std::optional<std::vector<int32_t>> epilogue_axes(const Plan& plan, size_t i) const;
    // feeding.cc
    void    cut_operands(Plan& plan);
    void    mark_feeding(Plan& plan) const;
    int32_t product_fed(const Plan& plan, const BufferUses& uses, const AliasingOuts& aliasing, size_t i) const;

    const Snapshot&      graph_;
    std::span<const Target> targets_;
    Fusion               fusion_;
    int64_t              turned_bytes_;
    std::vector<bool>    direct_;
    Plan                 plan_;
    Stores               stores_;
    std::vector<Draft>   drafts_;
    std::vector<bool>    is_task_;
    std::unordered_map<uint32_t, View> aimed_;       // calls whose results go to a given place
    std::vector<View>    outs_;
};

}  // namespace ng
