// One run of a program: arguments checked against what was compiled, bound to buffers, and the steps run.
#include "lib/program.h"

#include "lib/spans.h"
#include "lib/strided.h"

#include <algorithm>
#include <cstring>

namespace ng {

// The tables of one run, in the workspace: pins and uses end with it.
struct Program::Running {
    Pin<Tensor>* pins;
    Use*         uses;
    char**       buffers;
    int64_t*     variables;
    Span*        spans;
    size_t       slots = 0;
    bool         has_lengths = false;

    Running(char* memory, const Frame& f)
        : pins(reinterpret_cast<Pin<Tensor>*>(memory + f.pins)), uses(reinterpret_cast<Use*>(memory + f.uses)),
          buffers(reinterpret_cast<char**>(memory + f.buffers)), variables(reinterpret_cast<int64_t*>(memory + f.variables)), spans(reinterpret_cast<Span*>(memory + f.spans)) {}
    ~Running()
    {
        for (size_t i = slots; i-- > 0;) uses[i].~Use(), pins[i].~Pin();
    }
    Running(const Running&) = delete;
};

namespace {

std::string port_text(const Port& p, const char* what, int32_t at)
{
    return text(what, " ", at, p.name.empty() ? "" : " " + quoted(p.name), " is ", name_of(p.dtype), " ", text_of(p.dims));
}

// And what it is by the lengths of a run, where it has any.
std::string port_in_run(const Port& p, const char* what, int32_t at, std::span<const int64_t> lengths)
{
    Extents now;
    for (const Extent& e : p.dims) now.push_back(e.value(lengths));
    return text(port_text(p, what, at), now == p.dims ? "" : ", " + text_of(now) + " in this run");
}

// Type and rank, before lengths are read from extents.
void check_kind(const Port& p, const Tensor& t, const char* what, int32_t at)
{
    if (t.dtype == p.dtype && t.rank == int(p.dims.size())) return;
    throw Error(t.dtype == p.dtype ? NG_E_SHAPE : NG_E_DTYPE, text("ng_prog_run: ", port_text(p, what, at), ", and was given ", text_of(t)), at);
}

// Strides count where an axis has more than one element, and there is any element at all.
bool strides_agree(const Tensor& t, const int64_t* want)
{
    for (int i = 0; i < t.rank; i++)
        if (t.dims[size_t(i)] == 0) return true;
    for (int i = 0; i < t.rank; i++)
        if (t.dims[size_t(i)] > 1 && t.strides[size_t(i)] != want[i]) return false;
    return true;
}

// The very elements of an argument, which may be longer and lend its head.
bool begins_alike(const Tensor& out, const Tensor& arg)
{
    return out.data == arg.data && out.rank == arg.rank && strides_agree(out, arg.strides.data());
}

}  // namespace

const Tensor& Program::pin(Running& run, size_t slot, ng_tensor* handle, const char* what, int32_t at)
{
    Pin<Tensor> pin(handle);
    const auto refused = [&](const std::string& why) {
        const size_t args = plan_.args.size();
        const std::string port = slot < args ? port_text(plan_.args[slot], "argument", at) : port_text(plan_.outs[slot - args], "output", at);
        return Error(NG_E_INVALID, text("ng_prog_run: ", what, "[", at, "] ", why, "; the program's ", port), at);
    };
    if (!handle) throw refused("is NULL");
    if (!pin) throw refused(text("= ", static_cast<const void*>(handle), " is no tensor that lives"));
    if (&pin->context() != &context()) throw refused("is of another context");
    Use use(*pin->memory);
    if (!use) throw refused("was ended by ng_tensor_close");
    new (run.pins + slot) Pin<Tensor>(std::move(pin));
    new (run.uses + slot) Use(std::move(use));
    run.slots = slot + 1;
    return *run.pins[slot];
}

// Lengths from the caller, else from the dims that show them.
void Program::solve_lengths(Running& run, const ng_run& r) const
{
    const int32_t lengths = plan_.lengths;
    run.has_lengths = r.lengths != nullptr;
    for (int32_t v = 0; v < lengths; v++) run.variables[v] = -1;
    if (run.has_lengths) {
        if (int64_t(r.nlength) < lengths) throw Error(NG_E_INVALID, text("ng_prog_run: lengths has ", r.nlength, " entries, the program has ", lengths, " lengths"));
        std::copy_n(r.lengths, lengths, run.variables);
    } else {
        for (size_t i = 0; i < plan_.args.size(); i++) {
            const Tensor& t = *run.pins[i];
            const Extents& dims = plan_.args[i].dims;
            for (size_t a = 0; a < dims.size(); a++) {
                const int64_t d = dims[a].as_dim();
                if (d >= 0 || d == NG_REST) continue;
                int64_t& length = run.variables[-1 - d];
                if (length >= 0 && length != t.dims[a])
                    throw Error(NG_E_SHAPE, text("ng_prog_run: length ", d, " is ", length, ", and ", t.dims[a], " in ", port_text(plan_.args[i], "argument", plan_.args[i].index)), plan_.args[i].index);
                length = t.dims[a];
            }
        }
    }
    for (int32_t v = 0; v < lengths; v++) {
        const int64_t length = run.variables[v], most = largest_[size_t(v)];
        if (!has_length_[size_t(v)]) {               // that nothing in the program has
            run.variables[v] = 0;
            continue;
        }
        if (length < 0) throw Error(NG_E_INVALID, text("ng_prog_run: length ", -1 - v, run.has_lengths ? " is negative" : " is shown by no argument: give it in lengths"));
        if (length > most) throw Error(NG_E_LIMIT, text("ng_prog_run: length ", -1 - v, " is ", length, ", the program was compiled for ", most, " at most"));
    }
}

// Type, dims and strides as compiled; longer tensors lend their heads where the caller gave the lengths.
void Program::check_port(const Port& port, const Tensor& t, Running& run, const char* what, int32_t at) const
{
    const std::span<const int64_t> lengths(run.variables, size_t(plan_.lengths));
    check_kind(port, t, what, at);
    bool fits = true;
    for (size_t a = 0; fits && a < port.dims.size(); a++) {
        const int64_t want = port.dims[a].value(lengths);
        fits = t.dims[a] == want || (run.has_lengths && !port.dims[a].is_constant() && t.dims[a] > want);
    }
    if (!fits) throw Error(NG_E_SHAPE, text("ng_prog_run: ", port_in_run(port, what, at, lengths), ", and was given ", text_of(t)), at);
    if (port.any) return;
    int64_t want[NG_MAX_NDIM], next = 1;
    for (size_t a = port.dims.size(); a-- > 0;) {
        if (port.row_major) want[a] = next, next *= t.dims[a];       // of the whole tensor
        else want[a] = port.strides[a].value(lengths);
    }
    if (!strides_agree(t, want)) throw Error(NG_E_SHAPE, text("ng_prog_run: ", port_text(port, what, at), port.row_major ? ", row-major" : ", strided", ": the strides given are others; NG_ANY would take them"), at);
}

void Program::bind_arguments(Running& run, const ng_run& r)
{
    for (size_t i = 0; i < plan_.args.size(); i++) {
        const int32_t index = plan_.args[i].index;
        if (!r.args || uint32_t(index) >= r.nargs)
            throw Error(NG_E_INVALID, text("ng_prog_run: ", r.args ? text("nargs is ", r.nargs) : "args is NULL", ", the program's ", port_text(plan_.args[i], "argument", index)), index);
        check_kind(plan_.args[i], pin(run, i, r.args[index], "args", index), "argument", index);
    }
    solve_lengths(run, r);
    for (size_t i = 0; i < plan_.args.size(); i++) check_port(plan_.args[i], *run.pins[i], run, "argument", plan_.args[i].index);
}

void Program::bind_outputs(Running& run, const ng_run& r)
{
    if (r.nout != plan_.outs.size()) throw Error(NG_E_INVALID, text("ng_prog_run: nout is ", r.nout, ", the program has ", plan_.outs.size(), " outputs"));
    if (!r.out && r.nout) throw Error(NG_E_INVALID, text("ng_prog_run: out is NULL, and there are ", r.nout, " of them"));
    const size_t first = plan_.args.size();
    for (size_t j = 0; j < plan_.outs.size(); j++) {
        if (!r.out[j]) {
            new (run.pins + first + j) Pin<Tensor>();
            new (run.uses + first + j) Use();
            run.slots = first + j + 1;
            continue;
        }
        const Tensor& t = pin(run, first + j, r.out[j], "out", int32_t(j));
        if (t.is_readonly()) throw Error(NG_E_INVALID, text("ng_prog_run: out[", j, "] is NG_READONLY"), int32_t(j));
        if (!t.is_injective) throw Error(NG_E_INVALID, text("ng_prog_run: out[", j, "], ", text_of(t), ", has strides by which some of its elements share a place"), int32_t(j));
        check_port(plan_.outs[j], t, run, "output", int32_t(j));
    }
}

void Program::bind_leaves(Running& run)
{
    const size_t first = plan_.args.size() + plan_.outs.size();
    for (size_t i = 0; i < leaves_.size(); i++) {
        Use use(*leaves_[i]->memory);
        if (!use) throw Error(NG_E_INVALID, text("ng_prog_run: the memory of ", describe(*plan_.leaves[i]), ", a leaf of the program, was ended by ng_tensor_close"));
        new (run.pins + first + i) Pin<Tensor>();
        new (run.uses + first + i) Use(std::move(use));
        run.slots = first + i + 1;
    }
}

void Program::check_all(Running& run) const
{
    const std::span<const int64_t> variables(run.variables, largest_.size());
    for (const Check& c : plan_.checks) {
        const int64_t v = c.value.value(variables);
        if (v < c.low.value(variables) || v > c.high.value(variables)) throw Error(NG_E_SHAPE, "ng_prog_run: " + c.sentence);
    }
}

// E1, E2: outputs lie apart from each other and from arguments, but for what the program was told of.
void Program::check_overlaps(Running& run, const ng_run& r) const
{
    if (r.flags & NG_RUN_DISTINCT) return;
    const size_t bound = plan_.args.size() + plan_.outs.size();
    size_t count = 0;
    const auto add = [&](const Tensor& t, size_t slot) { new (run.spans + count++) Span{t.begin, t.end, slot, slot >= plan_.args.size() && slot < bound}; };
    for (size_t i = 0; i < bound; i++)
        if (run.pins[i]) add(*run.pins[i], i);
    for (size_t i = 0; i < leaves_.size(); i++) add(*leaves_[i], bound + i);
    find_meetings({run.spans, count}, [&](size_t a, size_t b) { check_pair(run, std::min(a, b), std::max(a, b)); });
}

// a, the first, and b, one of them an output: of arguments, then outputs, then leaves.
void Program::check_pair(const Running& run, size_t a, size_t b) const
{
    const size_t args = plan_.args.size(), bound = args + plan_.outs.size();
    const size_t j = (b < bound ? b : a) - args;
    if (a < args && j < options_.alias.size() && options_.alias[j] == plan_.args[a].index) return;
    if (!overlaps(*run.pins[a], b < bound ? *run.pins[b] : *leaves_[b - bound])) return;
    if (b >= bound) throw Error(NG_E_INVALID, text("ng_prog_run: output ", j, " overlaps a leaf of the program"), int32_t(j));
    if (a >= args) throw Error(NG_E_INVALID, text("ng_prog_run: outputs ", a - args, " and ", j, " overlap"), int32_t(j));
    throw Error(NG_E_INVALID, text("ng_prog_run: output ", j, " overlaps argument ", plan_.args[a].index, ", which the program was not told of (ng_compile_desc.alias)"), int32_t(j));
}

// The tables of a run lie in it, and are written while the rest is looked at: whatever the caller vouches for, nothing else may lie there.
void Program::check_workspace(const ng_run& r, const Tensor& work) const
{
    const auto check = [&](ng_tensor* handle, const char* what, size_t at) {
        if (const Pin<Tensor> t(handle); t && overlaps(work, *t)) throw Error(NG_E_INVALID, text("ng_prog_run: the workspace overlaps ", what, at));
    };
    for (const Port& p : plan_.args)
        if (r.args && uint32_t(p.index) < r.nargs) check(r.args[p.index], "argument ", size_t(p.index));
    for (size_t j = 0; r.out && j < std::min<size_t>(r.nout, plan_.outs.size()); j++) check(r.out[j], "output ", j);
    if (std::ranges::any_of(leaves_, [&](const Ref<Tensor>& leaf) { return overlaps(work, *leaf); })) throw Error(NG_E_INVALID, "ng_prog_run: the workspace overlaps a leaf of the program");
}

// Of the argument of this index; as many as there are: none has it. They ascend.
size_t Program::slot_of(int32_t index) const
{
    const auto at = std::ranges::lower_bound(plan_.args, index, {}, &Port::index);
    return at != plan_.args.end() && at->index == index ? size_t(at - plan_.args.begin()) : plan_.args.size();
}

void Program::find_apart(const Running& run, std::vector<uint32_t>& apart) const
{
    if (options_.alias.empty()) return;
    const size_t args = plan_.args.size();
    for (size_t j = 0; j < plan_.outs.size(); j++) {
        if (!plan_.direct[j] || !run.pins[args + j]) continue;
        const size_t i = slot_of(options_.alias[j]);
        if (i < args && overlaps(*run.pins[args + j], *run.pins[i]) && !begins_alike(*run.pins[args + j], *run.pins[i])) apart.push_back(uint32_t(j));
    }
}

void Program::bind_hidden(Running& run) const
{
    const std::span<const int64_t> lengths(run.variables, size_t(plan_.lengths));
    int64_t* next = run.variables + plan_.lengths;
    for (size_t i = 0; i < plan_.args.size() + plan_.outs.size(); i++) {
        const Port& p = i < plan_.args.size() ? plan_.args[i] : plan_.outs[i - plan_.args.size()];
        if (!p.hidden) continue;
        // Strides decide which axes are walked as one, so how sums are paired: an output that is not wanted counts as row-major.
        int64_t row_major = 1;
        for (size_t a = p.dims.size(); a-- > 0; row_major *= p.dims[a].value(lengths)) next[a] = run.pins[i] ? run.pins[i]->strides[a] : row_major;
        next += p.dims.size();
    }
}

void Program::bind_buffers(Running& run, char* work) const
{
    const size_t args = plan_.args.size();
    for (size_t b = 0; b < plan_.buffers.size(); b++) {
        const Buffer& buffer = plan_.buffers[b];
        char*& data = run.buffers[b];
        switch (buffer.place) {
        case Place::Work: data = work + layout_.offsets[b]; break;
        case Place::Out: data = run.pins[args + size_t(buffer.index)] ? run.pins[args + size_t(buffer.index)]->data : nullptr; break;
        case Place::Leaf: data = leaves_[size_t(buffer.index)]->data; break;
        case Place::Arg: data = run.pins[slot_of(buffer.index)]->data; break;
        }
    }
}

Program::Room Program::room_in(char* workspace) const
{
    if (tables_) return {tables_->memory(), workspace};
    return {workspace, workspace + frame_.tables};
}

void Program::touch_all(const Running& run, Ordered& order) const
{
    if (!tables_) return;                              // nothing goes on after the call
    const size_t args = plan_.args.size();
    for (size_t i = 0; i < args + plan_.outs.size(); i++)
        if (run.pins[i]) touch(order, *run.pins[i], i >= args);
    for (const Ref<Tensor>& leaf : leaves_) touch(order, *leaf, false);
}

// Everything checked and bound, then the steps. If outputs are to be computed apart nothing has run.
ng_status Program::run_in(const Room& room, const ng_run& r, ng_stream s, Ordered& order, std::vector<uint32_t>& apart)
{
    Running run(room.tables, frame_);
    bind_arguments(run, r);
    bind_outputs(run, r);
    bind_leaves(run);
    if (r.scalar_bytes < plan_.scalar_bytes || (plan_.scalar_bytes && !r.scalars))
        throw Error(NG_E_INVALID, text("ng_prog_run: ", r.scalars ? "" : "scalars is NULL, ", "scalar_bytes is ", r.scalar_bytes, ", the program reads ", plan_.scalar_bytes));
    bind_hidden(run);
    check_all(run);
    check_overlaps(run, r);
    find_apart(run, apart);
    if (!apart.empty()) return NG_OK;
    bind_buffers(run, room.work);
    touch_all(run, order);
    // The host may have them where an output is written.
    if (plan_.scalar_bytes) std::memcpy(room.tables + frame_.scalars, r.scalars, plan_.scalar_bytes);
    return executor_->run({run.variables, run.buffers, room.tables + frame_.scalars, room.work + frame_.scratch, s}, context().parallel_as_is());
}

// Outputs that lie in their argument's memory, but not on its very elements, are computed elsewhere and copied. They are kept
// meanwhile, whoever releases or closes them.
ng_status Program::run_apart(const ng_run& r, ng_stream s, const std::vector<uint32_t>& outputs)
{
    struct Releases {
        std::vector<uint64_t> handles;
        ~Releases() { for (const uint64_t h : handles) release_handle<Tensor>(h); }
    } made;
    std::vector<ng_tensor*> out(r.out, r.out + r.nout);
    std::vector<Pin<Tensor>> wanted;
    std::vector<Use> uses;
    std::vector<Ref<Tensor>> computed;
    for (const uint32_t j : outputs) {
        const Pin<Tensor>& t = wanted.emplace_back(r.out[j]);
        if (!t) throw Error(NG_E_INVALID, text("ng_prog_run: out[", j, "] is no tensor that lives"), int32_t(j));
        uses.push_back(use_of(*t, "ng_prog_run", "out"));
        TensorForm form = *t;
        form.flags = 0;                                  // of the device: what is locked waits for a poll
        computed.push_back(Tensor::create(context(), std::move(form), "ng_prog_run", Context::Hooks::None));
        made.handles.push_back(make_handle(computed.back()));
        out[j] = to_handle<ng_tensor>(made.handles.back());
    }
    ng_run again = r;
    again.out = out.data();
    const ng_status status = this->run(again, s);
    for (size_t i = 0; status >= 0 && status != NG_NOT_READY && i < outputs.size(); i++) {
        const Tensor &from = *computed[i], &to = *wanted[i];
        // Longer tensors lend their heads: of what is behind those nothing was made.
        const Extents& extents = plan_.outs[outputs[i]].dims;
        std::array<int64_t, NG_MAX_NDIM> dims = to.dims;
        for (size_t a = 0; r.lengths && a < extents.size(); a++) dims[a] = extents[a].value({r.lengths, size_t(plan_.lengths)});
        Ordered order(context().backend(), s);
        touch(order, to, true);
        touch(order, from, false);
        const StridedCopy back = {to.data, from.data, bytes_of(to.dtype), to.rank, dims, to.strides, from.strides};
        if (context().backend().is_host()) copy_strided(back, context().parallel_as_is());
        else context().backend().move(back, s);
    }
    return status;
}

// In the caller's memory; on the CPU a run has it for itself.
ng_status Program::run_in_given(const ng_run& r, ng_stream s, Ordered& order, std::vector<uint32_t>& apart)
{
    const Pin<Tensor> given = need<Tensor>(r.workspace, "ng_prog_run", "workspace");
    const Use use = use_of(*given, "ng_prog_run", "workspace");
    TensorForm dense = *given;
    dense.make_row_major();
    if (given->is_readonly() || !strides_agree(*given, dense.strides.data()))
        throw Error(NG_E_INVALID, text("ng_prog_run: the workspace is ", text_of(*given), given->is_readonly() ? ", NG_READONLY" : ", strided", "; it should be row-major memory to write into"));
    if (&given->context() != &context()) throw Error(NG_E_INVALID, "ng_prog_run: the workspace is of another context");
    if (given->bytes() < frame_.bytes) throw Error(NG_E_INVALID, text("ng_prog_run: the workspace has ", given->bytes(), " bytes, the program needs ", frame_.bytes, " (ng_prog_info.workspace_bytes)"));
    if (reinterpret_cast<uintptr_t>(given->data) % 64) throw Error(NG_E_INVALID, "ng_prog_run: the workspace should begin at a multiple of 64 bytes");
    check_workspace(r, *given);
    if (!tables_ && given->is_worked_in.exchange(true, std::memory_order_acquire)) return NG_NOT_READY;
    struct Release {
        std::atomic<bool>& is_worked_in;
        ~Release() { is_worked_in.store(false, std::memory_order_release); }
    } release{given->is_worked_in};
    touch(order, *given, true);
    return run_in(room_in(given->data), r, s, order, apart);
}

ng_status Program::run(const ng_run& r, ng_stream s)
{
    if (r.flags & ~uint32_t(NG_RUN_DISTINCT)) throw Error(NG_E_INVALID, text("ng_prog_run: unknown flags ", r.flags));
    std::vector<uint32_t> apart;
    ng_status status = NG_OK;
    Ordered order(context().backend(), s);
    if (r.workspace) {
        status = run_in_given(r, s, order, apart);
    } else {
        uint32_t piece;
        const WorkPiece* const work = workspaces_->claim(s, piece);
        if (!work) return NG_NOT_READY;
        struct Release {
            Workspaces& w;
            uint32_t    piece;
            ~Release() { w.vacate(piece); }
        } release{*workspaces_, piece};
        work->touch(order);
        if (context().backend().is_capturing()) workspaces_->hold(piece);
        status = run_in(room_in(work->memory()), r, s, order, apart);
    }
    if (!apart.empty() && context().backend().is_capturing())
        throw Error(NG_E_INVALID, text("ng_prog_run: output ", apart[0], " lies over its argument, but not on the very elements: that takes memory, which a capture cannot keep"), int32_t(apart[0]));
    order.close();
    if (!apart.empty()) {
        const ng_status done = run_apart(r, s, apart);
        context().remove_quiet();
        return done;
    }
    if (status == NG_NOT_READY) return status;
    runs_.fetch_add(1, std::memory_order_relaxed);
    context().counters.launches.fetch_add(plan_.steps.size(), std::memory_order_relaxed);
    if (status == NG_SLOW) context().counters.interim_runs.fetch_add(1, std::memory_order_relaxed);
    return status;
}

}  // namespace ng
