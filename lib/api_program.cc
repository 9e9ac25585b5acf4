// ng.h: evaluation, compiled programs and their runs.
#include "jit/cost.h"
#include "jit/explain.h"
#include "jit/serial.h"
#include "lib/api_json.h"
#include "lib/leaves.h"
#include "lib/program.h"
#include "lib/scope.h"
#include "lib/text_out.h"

#include <algorithm>

using namespace ng;

namespace {

std::vector<NodeRef> roots_of(ng_expr* const* e, uint32_t n, const char* who)
{
    if (!n) throw Error(NG_E_INVALID, text(who, ": there is no expression: n is 0"));
    if (!e) throw Error(NG_E_INVALID, text(who, ": e is NULL, and there are ", n, " of them"));
    std::vector<NodeRef> roots;
    Graph g(n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const Pin<const Node> pin = need<const Node>(e[i], who, "e", int32_t(i));
        if (pin->is_poison()) throw *pin->extra->error;
        roots.push_back(build::strong(g, pin.ref()));
    }
    return roots;
}

struct CalledContext {
    CalledContext(const ng_ctx* c, ng_stream s, const char* who) : pin(need_context(c, who)), entry(*pin, who) { pin->backend().need_stream(s, who); }
    Pin<Context> pin;
    Entry        entry;
};
struct CalledProgram {
    CalledProgram(const ng_prog* p, const char* who) : pin(need<Program>(p, who, "p")), entry(pin->context(), who) {}
    Program* operator->() const { return pin.get(); }
    Pin<Program> pin;
    Entry        entry;
};

CompileOptions options_of(const ng_compile_desc* given, uint32_t n, std::span<const NodeRef> roots)
{
    CompileOptions o;
    if (!given) return o;
    const ng_compile_desc d = read_struct(given, "ng_compile", "ng_compile_desc");
    if (d.flags & ~uint32_t(NG_PROG_EARLY | NG_PROG_TUNE)) throw Error(NG_E_INVALID, text("ng_compile: unknown flags ", d.flags));
    if (d.nlength > 1u << 16) throw Error(NG_E_INVALID, text("ng_compile: nlength is ", d.nlength, ", the limit is ", 1u << 16));
    if (d.nlength && !d.length_max) throw Error(NG_E_INVALID, text("ng_compile: length_max is NULL, and there are ", d.nlength, " of them"));
    if (d.runs > 1u << 12) throw Error(NG_E_LIMIT, text("ng_compile: runs is ", d.runs, ", the limit is 4096"));
    o.flags = d.flags, o.runs = d.runs ? d.runs : 1, o.workspace_max = d.workspace_max;
    if (d.alias) o.alias.assign(d.alias, d.alias + n);
    for (uint32_t j = 0; j < o.alias.size(); j++)
        if (o.alias[j] < -1 || o.alias[j] > 65535) throw Error(NG_E_INVALID, text("ng_compile: alias[", j, "] is ", o.alias[j], ", should be an argument's number or -1"), int32_t(j));
    if (d.nlength) o.length_max.assign(d.length_max, d.length_max + d.nlength);
    if (!d.out) return o;
    for (uint32_t j = 0; j < n; j++) {
        o.declared.push_back(d.out[j] != nullptr);
        Layout l;
        if (d.out[j]) l = layout_of(d.out[j], "ng_compile");
        else l.dtype = roots[j]->dtype, l.dims = roots[j]->dims(), l.strides = dense_strides(l.dims);
        o.outs.push_back(std::move(l));
    }
    return o;
}

ng_shape shape_of(const Port& p)
{
    ng_shape d = {};
    d.dtype = info(p.dtype).code, d.ndim = int32_t(p.dims.size());
    d.flags = p.any ? NG_ANY : NG_STRIDED;
    const Extents strides = p.hidden ? dense_strides(p.dims) : p.strides;
    for (size_t a = 0; a < p.dims.size(); a++) d.dims[a] = p.dims[a].as_dim(), d.strides[a] = strides[a].as_dim();
    return d;
}

// Argument i, then output i - args; null: there is none. Arguments ascend, and may have holes.
const Port* port_at(const Plan& plan, uint32_t args, uint32_t i)
{
    if (i >= args) return i - args < plan.outs.size() ? &plan.outs[i - args] : nullptr;
    const auto at = std::ranges::lower_bound(plan.args, int32_t(i), {}, &Port::index);
    return at->index == int32_t(i) ? &*at : nullptr;         // the last argument's index is args - 1
}

void trace(const Program& p, bool begin, ng_stream s)
{
    const ng_hooks& h = p.context().hooks();
    if (h.trace) h.trace(h.user, begin, p.plan().outs.empty() ? "" : p.plan().outs[0].name.c_str(), s);
}

}  // namespace

ng_status ng_eval(ng_ctx* c, ng_stream s, ng_expr* const* e, ng_tensor** out, uint32_t n, ng_error* err)
{
    return guard(err, [&] {
        const CalledContext called(c, s, "ng_eval");
        called.pin->settle(Context::Where::Call);
        if (!out) throw Error(NG_E_INVALID, "ng_eval: out is NULL, and there is nowhere to put the results");
        const std::vector<NodeRef> roots = roots_of(e, n, "ng_eval");
        std::vector<Ref<Tensor>> outs;
        for (uint32_t j = 0; j < n; j++) {
            outs.push_back(out[j] ? need<Tensor>(out[j], "ng_eval", "out", int32_t(j)).ref() : Ref<Tensor>());
            if (outs.back() && outs.back()->context().is_lost()) throw Error(NG_E_LOST, text("ng_eval: the context of out[", j, "] is closed"), int32_t(j));
        }
        const std::vector<Ref<Tensor>> results = evaluate(*called.pin, s, roots, outs);
        struct Made {                                        // all of them or none
            std::vector<uint64_t> handles;
            ~Made() { for (const uint64_t h : handles) release_handle<Tensor>(h); }
        } made;
        made.handles.reserve(n);
        for (uint32_t j = 0; j < n; j++) made.handles.push_back(out[j] ? 0 : make_handle(results[j]));
        for (uint32_t j = 0; j < n; j++)
            if (!out[j]) out[j] = to_handle<ng_tensor>(std::exchange(made.handles[j], 0));
        return NG_OK;
    });
}

ng_status ng_compile(ng_ctx* c, const ng_compile_desc* d, ng_expr* const* e, uint32_t n, ng_prog** out, ng_error* err)
{
    return guard(err, [&] {
        const CalledContext called(c, nullptr, "ng_compile");
        called.pin->settle(Context::Where::Call);
        need_out(out, "ng_compile");
        std::vector<NodeRef> roots = roots_of(e, n, "ng_compile");
        CompileOptions options = options_of(d, n, roots);
        Pin<Program> shared;
        const bool shares = d && d->size >= offsetof(ng_compile_desc, workspace_of) + sizeof d->workspace_of && d->workspace_of;
        if (shares) shared = need<Program>(d->workspace_of, "ng_compile", "workspace_of");
        if (shares && &shared->context() != called.pin.get()) throw Error(NG_E_INVALID, "ng_compile: workspace_of is a program of another context");
        *out = to_handle<ng_prog>(make_handle(Program::compile(*called.pin, std::move(roots), std::move(options), shared.get(), "ng_compile")));
        return NG_OK;
    });
}

ng_status ng_prog_wait(ng_prog* p, uint64_t timeout_ns, ng_error* err)
{
    return guard(err, [&] {
        const CalledProgram called(p, "ng_prog_wait");
        return called->executor().wait(timeout_ns);
    });
}

ng_status ng_prog_run(ng_prog* p, ng_stream s, const ng_run* r, ng_error* err)
{
    return guard(err, [&] {
        const CalledProgram called(p, "ng_prog_run");
        called->context().backend().need_stream(s, "ng_prog_run");
        const ng_run run = read_struct(r, "ng_prog_run", "ng_run", "r");
        trace(*called.pin, true, s);
        struct End {
            const Program& program;
            ng_stream      s;
            ~End() { trace(program, false, s); }
        } end{*called.pin, s};
        return called->run(run, s);
    });
}

ng_status ng_prog_get_info(const ng_prog* p, ng_prog_info* out, ng_error* err)
{
    return guard(err, [&] {
        const CalledProgram called(p, "ng_prog_get_info");
        const Plan& plan = called->plan();
        const Cost cost = cost_of(plan, called->largest());
        ng_prog_info i = {};
        i.nargs = called->argument_count(), i.nout = uint32_t(plan.outs.size()), i.nlength = uint32_t(plan.lengths);
        i.scalar_bytes = plan.scalar_bytes, i.kernels = uint32_t(std::ranges::count_if(plan.steps, [](const Step& s) { return !s.epilogue; }));
        i.workspace_bytes = called->workspace_bytes(), i.code_bytes = called->executor().code_bytes();
        i.moved_bytes = cost.moved_bytes, i.flops = cost.flops, i.runs = called->runs_so_far();
        const std::string& arch = called->context().arch();
        std::memcpy(i.arch, arch.data(), std::min(arch.size(), sizeof i.arch - 1));
        write_struct(out, i, "ng_prog_get_info", "ng_prog_info");
        return NG_OK;
    });
}

ng_status ng_prog_port(const ng_prog* p, uint32_t i, ng_shape* out, const char** name, ng_error* err)
{
    return guard(err, [&] {
        const CalledProgram called(p, "ng_prog_port");
        const Plan& plan = called->plan();
        const uint32_t args = called->argument_count();
        const Port* port = port_at(plan, args, i);
        if (!port) throw Error(NG_E_INVALID, text("ng_prog_port: ", i, i < args ? " is no argument of this program" : text(" is past the last port ", args + plan.outs.size() - 1)), int32_t(i));
        if (out) write_struct(out, shape_of(*port), "ng_prog_port", "ng_shape");
        if (name) *name = port->name.c_str();
        return NG_OK;
    });
}

ng_status ng_prog_explain(const ng_prog* p, char* buf, size_t* bytes, ng_error* err)
{
    return guard(err, [&] {
        const CalledProgram called(p, "ng_prog_explain");
        std::vector<StepCode> codes;
        for (size_t i = 0; i < called->plan().steps.size(); i++) codes.push_back(called->executor().code_of(i));
        return copy_out(explain(called->plan(), called->roots(), called->largest(), codes) + '\0', buf, bytes, "ng_prog_explain");
    });
}

ng_status ng_prog_save(const ng_prog* p, uint32_t flags, void* buf, size_t* bytes, ng_error* err)
{
    return guard(err, [&] {
        const CalledProgram called(p, "ng_prog_save");
        if (flags & ~uint32_t(NG_CODE)) throw Error(NG_E_INVALID, text("ng_prog_save: unknown flags ", flags));
        return copy_out(save(called->roots(), called->options()), static_cast<char*>(buf), bytes, "ng_prog_save");
    });
}

ng_status ng_prog_load(ng_ctx* c, uint32_t flags, const void* buf, size_t bytes, ng_prog** out, ng_error* err)
{
    return guard(err, [&] {
        const CalledContext called(c, nullptr, "ng_prog_load");
        called.pin->settle(Context::Where::Call);
        need_out(out, "ng_prog_load");
        if (flags & ~uint32_t(NG_CODE)) throw Error(NG_E_INVALID, text("ng_prog_load: unknown flags ", flags));
        if (!buf) throw Error(NG_E_INVALID, text("ng_prog_load: buf is NULL, should be ", bytes, " bytes of a saved program"));
        Saved saved = load(std::string_view(static_cast<const char*>(buf), bytes));
        *out = to_handle<ng_prog>(make_handle(Program::compile(*called.pin, std::move(saved.roots), std::move(saved.options), nullptr, "ng_prog_load")));
        return NG_OK;
    });
}

void ng_prog_retain(ng_prog* p) { retain_handle<Program>(handle_of(p)); }
void ng_prog_release(ng_prog* p) { release_handle<Program>(handle_of(p)); }
