// A compiled program: a plan, what runs it, and the memory that runs work in.
#pragma once
#include "jit/compile_options.h"
#include "lib/executor.h"
#include "lib/layout.h"
#include "lib/tensor.h"
#include "lib/workspace.h"

namespace ng {

class Program final : public Belonging {
  public:
    static Ref<Program> compile(Context& context, std::vector<NodeRef> roots, CompileOptions options, const Program* workspace_of, const char* who);

    // ng_prog_run. Throws Error; allocates only for outputs that alias an argument in part, and for sentences.
    ng_status run(const ng_run& r, ng_stream s);

    const Plan& plan() const { return plan_; }
    const std::vector<NodeRef>& roots() const { return roots_; }
    const CompileOptions& options() const { return options_; }
    uint64_t workspace_bytes() const { return frame_.bytes; }
    uint64_t runs_so_far() const { return runs_.load(std::memory_order_relaxed); }
    uint32_t argument_count() const { return plan_.args.empty() ? 0 : uint32_t(plan_.args.back().index) + 1; }
    const std::vector<int64_t>& largest() const { return largest_; }       // variables at length_max
    Executor& executor() const { return *executor_; }
    const WorkLayout& layout() const { return layout_; }

  private:
    // Tables of a run; then, in workspace, temporaries and what steps scratch in. On the host's own memory both are one
    // piece; else the program has the tables of one run, which the order of the device guards.
    struct Frame {
        uint64_t pins, uses, buffers, variables, spans, scalars, tables;     // in the tables; bytes of them
        uint64_t scratch, work;                              // in the work; bytes of it
        uint64_t bytes;                                      // of workspace
    };
    struct Room {
        char *tables, *work;
    };
    struct Running;

    Program(Context& context, std::vector<NodeRef> roots, CompileOptions options);
    friend void destroy(const Program*) noexcept;
    void make_plan(std::span<const Target> targets, int32_t lengths, const char* who);
    void make_frame(const char* who);
    Room room_in(char* workspace) const;
    ng_status run_in(const Room& room, const ng_run& r, ng_stream s, Ordered& order, std::vector<uint32_t>& apart);
    ng_status run_in_given(const ng_run& r, ng_stream s, Ordered& order, std::vector<uint32_t>& apart);
    void touch_all(const Running& run, Ordered& order) const;
    size_t slot_of(int32_t index) const;
    void find_apart(const Running& run, std::vector<uint32_t>& apart) const;
    void bind_arguments(Running& run, const ng_run& r);
    void bind_outputs(Running& run, const ng_run& r);
    void bind_leaves(Running& run);
    void bind_hidden(Running& run) const;
    void bind_buffers(Running& run, char* work) const;
    void solve_lengths(Running& run, const ng_run& r) const;
    void check_port(const Port& port, const Tensor& t, Running& run, const char* what, int32_t at) const;
    void check_all(Running& run) const;
    void check_overlaps(Running& run, const ng_run& r) const;
    void check_pair(const Running& run, size_t a, size_t b) const;
    void check_workspace(const ng_run& r, const Tensor& work) const;
    const Tensor& pin(Running& run, size_t slot, ng_tensor* handle, const char* what, int32_t at);
    ng_status run_apart(const ng_run& r, ng_stream s, const std::vector<uint32_t>& outputs);
    static void end(Belonging& thing, Context& context) noexcept;
    static void remove(Belonging* thing, Context& context) noexcept;
    static const Fate FATE;

    std::vector<NodeRef>      roots_;
    CompileOptions            options_;
    Plan                      plan_;
    std::unique_ptr<Executor> executor_;
    WorkLayout                layout_;
    std::vector<int64_t>      largest_;
    std::vector<bool>         has_length_;       // by variable: whether the program mentions it
    std::vector<Ref<Tensor>>  leaves_;
    Frame                     frame_{};
    std::unique_ptr<WorkPiece> tables_;              // where the workspace is not the host's
    Ref<Workspaces>           workspaces_;
    std::atomic<uint64_t>     runs_{0};
};
void destroy(const Program* program) noexcept;

// ng_eval: out[i] null: a new tensor comes back there.
std::vector<Ref<Tensor>> evaluate(Context& context, ng_stream s, std::span<const NodeRef> roots, std::span<const Ref<Tensor>> outs);

template <> inline constexpr HandleKind  KIND_OF<Program> = HandleKind::Program;
template <> inline constexpr const char* NOUN_OF<Program> = "program";

}  // namespace ng
