// Programs from expressions: planned for the largest lengths, ready when made.
#include "lib/program.h"

#include "jit/reference.h"
#include "jit/snapshot.h"
#include "lib/leaves.h"
#include "lib/released.h"
#include "lib/spans.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace ng {
namespace {

uint64_t rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// Which lengths expressions and layouts mention: those of length_max at least, and up to the greatest.
std::vector<bool> mentioned_lengths(std::span<const NodeRef> roots, const CompileOptions& o)
{
    std::vector<bool> mentioned(o.length_max.size());
    std::unordered_set<const Shape*> seen;
    const auto mark = [&](const std::vector<Extent>& dims) {
        for (const Extent& e : dims) e.mark_variables(mentioned);
    };
    for (const Node* n : Snapshot(roots).nodes) {            // what is computed: a custom derivative's parts are not
        if (n->op == Op::length) Extent::variable(int32_t(n->value)).mark_variables(mentioned);
        if (seen.insert(n->shape.get()).second) mark(n->dims());
    }
    for (const Layout& l : o.outs) mark(l.dims);
    return mentioned;
}

Target target_of(const Node& root, size_t j, const CompileOptions& o)
{
    Target t;
    t.layout.dtype = root.dtype, t.layout.dims = root.dims(), t.layout.strides = dense_strides(root.dims());
    if (j < o.outs.size() && o.declared[j]) {
        t.layout = o.outs[j];
        if (t.layout.dtype != root.dtype)
            throw Error(NG_E_DTYPE, text("ng_compile: output ", j, " is ", describe(root), ", its layout says ", name_of(t.layout.dtype), "; nothing is converted in silence"), int32_t(j));
        if (!build::broadcasts(root.dims(), t.layout.dims))
            throw Error(NG_E_SHAPE, text("ng_compile: output ", j, " is ", describe(root), ", which does not broadcast to its layout's ", text_of(t.layout.dims)), int32_t(j));
    }
    if (j < o.alias.size()) t.alias_param = o.alias[j];
    return t;
}

// A tag to name a whole program by: an output's, else the one nearest to an output.
std::string name_of_program(std::span<const NodeRef> roots)
{
    for (const NodeRef& root : roots)
        if (const std::string name = name_near(*root); !name.empty()) return name;
    const std::vector<const Node*> all = topological(roots);
    const auto tag = std::find_if(all.rbegin(), all.rend(), [](const Node* n) { return n->op == Op::tag; });
    return tag == all.rend() ? "" : (*tag)->extra->text;
}

}  // namespace

const Fate Program::FATE = {Program::end, Program::remove};

Program::Program(Context& context, std::vector<NodeRef> roots, CompileOptions options)
    : Belonging(context, FATE), roots_(std::move(roots)), options_(std::move(options)) {}

// A release frees nothing. But what it holds would keep the context alive until a call that removes it, and none may come: it is let go now.
void destroy(const Program* dead) noexcept
{
    Program* program = const_cast<Program*>(dead);
    program->workspaces_ = {};
    for (Ref<Tensor>& leaf : program->leaves_) leaf = {};
    for (NodeRef& leaf : program->plan_.leaves) release_later(leaf);
    for (Step& step : program->plan_.steps) release_later(step.node);
    for (NodeRef& root : program->roots_) release_later(root);
    program->expire();
}

void Program::end(Belonging& thing, Context&) noexcept
{
    Program& program = static_cast<Program&>(thing);
    if (program.executor_) program.executor_->end();
    program.tables_ = nullptr;
}

void Program::remove(Belonging* thing, Context& context) noexcept
{
    Program* program = static_cast<Program*>(thing);
    program->delist(context);
    delete program;
}

Ref<Program> Program::compile(Context& context, std::vector<NodeRef> roots, CompileOptions options, const Program* workspace_of, const char* who)
{
    Ref<Program> p = new Program(context, std::move(roots), std::move(options));
    p->enlist();
    const CompileOptions& o = p->options_;
    p->has_length_ = mentioned_lengths(p->roots_, o);
    const auto lengths = int32_t(p->has_length_.size());
    if (lengths > int32_t(o.length_max.size()))
        throw Error(NG_E_INVALID, text(who, ": length -", o.length_max.size() + 1, " has no greatest value: length_max has ", o.length_max.size(), " entries, ", lengths, " are needed"));
    for (const int64_t m : o.length_max)
        if (m < 0) throw Error(NG_E_INVALID, text(who, ": a length_max is ", m));
    std::vector<Target> targets;
    for (size_t j = 0; j < p->roots_.size(); j++) targets.push_back(target_of(*p->roots_[j], j, o));
    p->make_plan(targets, lengths, who);
    if (workspace_of) {
        p->workspaces_ = workspace_of->workspaces_;
        p->workspaces_->grow(p->frame_.bytes, who);
    } else {
        p->workspaces_ = Workspaces::create(context, p->frame_.bytes, std::max<uint32_t>(o.runs, 1), who);
    }
    if (p->executor_->wants_threads()) context.start_threads();
    return p;
}

// The usual plan; where that needs too much workspace, the one that stores less and computes more.
void Program::make_plan(std::span<const Target> targets, int32_t lengths, const char* who)
{
    const bool is_reference = context().flags() & NG_CTX_REFERENCE;
    Graph oracle(std::numeric_limits<uint32_t>::max());
    std::vector<NodeRef> doubled;
    if (is_reference) doubled = in_double(oracle, roots_);
    const uint64_t most = options_.workspace_max;
    uint64_t needed = ~uint64_t(0);
    bool is_too_large = false;                       // some kernel, for the device
    for (const Fusion fusion : {is_reference ? Fusion::None : Fusion::Usual, Fusion::Lean, Fusion::None}) {
        if (fusion == Fusion::None && !is_reference && !is_too_large) break;
        plan_ = schedule(is_reference ? doubled : roots_, targets, lengths, fusion, nullptr, fusion == Fusion::Usual ? context().backend().turned_bytes() : NEVER_TURNED);
        plan_.most = options_.length_max;
        leaves_.clear();
        for (const NodeRef& leaf : plan_.leaves) {
            leaves_.push_back(tensor_of(*leaf));
            if (&leaves_.back()->context() != &context()) throw Error(NG_E_INVALID, text(who, ": ", describe(*leaf), " is a leaf of another context"));
        }
        try {
            executor_ = context().backend().make_executor(plan_, Backend::Use::Often, options_.flags & NG_PROG_TUNE);
        } catch (const Error& error) {
            if (error.status != NG_E_LIMIT || fusion == Fusion::None) throw;
            is_too_large = true;
            continue;
        }
        make_frame(who);
        if (!most || frame_.bytes <= most) return;
        needed = std::min(needed, frame_.bytes);
    }
    const std::string name = name_of_program(roots_);
    throw Error(NG_E_DEVMEM, text(who, ": ", name.empty() ? describe(*roots_[0]) : quoted(name), " needs ", needed, " bytes of workspace, workspace_max is ", most));
}

void Program::make_frame(const char* who)
{
    largest_ = dense_variables(plan_, plan_.most);
    layout_ = layout_work(plan_, largest_, *executor_);
    const uint64_t slots = plan_.args.size() + plan_.outs.size() + leaves_.size() + 1;
    Frame& f = frame_;
    f.pins = 0;
    f.uses = rounded(f.pins + slots * sizeof(Pin<Tensor>));
    f.buffers = rounded(f.uses + slots * sizeof(Use));
    f.variables = rounded(f.buffers + plan_.buffers.size() * sizeof(char*));
    f.spans = rounded(f.variables + (largest_.size() + 1) * sizeof(int64_t));
    f.scalars = rounded(f.spans + slots * sizeof(Span));
    f.tables = rounded(f.scalars + plan_.scalar_bytes);
    f.scratch = rounded(layout_.bytes);
    f.work = rounded(f.scratch + executor_->scratch_bytes(largest_, context().parallel().workers()));
    const bool is_host = context().backend().is_host();
    f.bytes = is_host ? f.tables + f.work : std::max<uint64_t>(f.work, 64);
    if (!is_host) tables_ = std::make_unique<WorkPiece>(context(), f.tables, who, NG_MEM_NODE);
}

}  // namespace ng
