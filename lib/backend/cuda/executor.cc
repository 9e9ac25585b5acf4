// A plan's steps made ready and queued: what is compiled is launched as such, what is not goes through the interpreter.
#include "lib/backend/cuda/executor.h"

#include "lib/backend/cuda/calls.h"
#include "lib/backend/cuda/matmul.h"
#include "lib/backend/cuda/ranges.h"
#include "lib/context.h"
#include "lib/deadline.h"

#include <algorithm>
#include <cstring>

namespace ng::cuda {
// ---- texts ------------------------------------------------------------------------------------------------------------

Fused::Fused(const Kernel& k, DeviceTraits device, std::span<const int64_t> most) : kernel(k, cuda_dialect(), device, most)
{
    for (const StoreTo& s : k.stores) stored.push_back(s.buffer), buffers = std::max(buffers, s.buffer + 1);
    for (const Value& v : k.values) folds_floats |= v.kind == ValueKind::Fold && is_float(v.type), buffers = std::max(buffers, v.buffer + 1);
    variants = std::make_unique<Variant[]>(kernel.classes().size());
    if (size_t(buffers) > MOST_BUFFERS) throw Error(NG_E_LIMIT, text("a kernel of ", buffers, " buffers; the limit is ", MOST_BUFFERS));
}

bool Fused::find(CodeStore& store, size_t which)
{
    Variant& v = variants[which];
    KernelSource source = kernel.source(which);
    v.code = store.find(source.text);
    if (!v.code) return false;
    v.source = std::move(source);
    v.state.store(Variant::Ready, std::memory_order_release);
    return true;
}

void Fused::make(CodeStore& store, size_t which) noexcept
{
    Variant& v = variants[which];
    v.make([&] {
        v.source = kernel.source(which);
        if (v.source.number_bytes > MOST_NUMBER_BYTES - v.source.buffers * 8u) throw Error(NG_E_LIMIT, "the numbers of a kernel are more than 4 KiB");
        v.code = store.need(v.source.text, v.source.functions, is_counted);
    });
    waiting.fetch_sub(1, std::memory_order_release);
}

void Fused::make(Stock& stock, size_t which) noexcept
{
    Variant& v = variants[which];
    v.make([&] {
        v.source = kernel.source(which);
        if (v.source.number_bytes <= MOST_NUMBER_BYTES - v.source.buffers * 8u) v.code = stock.find(v.source.text);
        if (!v.code) throw Error(NG_E_UNSUPPORTED, "the library has no such text");
    });
    waiting.fetch_sub(1, std::memory_order_release);
}

bool Fused::is_ready() const noexcept
{
    for (size_t i = 0; i < kernel.classes().size(); i++)
        if (variants[i].state.load(std::memory_order_acquire) != Variant::Ready) return false;
    return true;
}

void Fused::unload() noexcept
{
    for (size_t i = 0; i < kernel.classes().size(); i++) variants[i].unload();
}

bool Variant::ask() noexcept
{
    int idle = Idle;
    return state.compare_exchange_strong(idle, Asked, std::memory_order_acq_rel);
}

// What is being made now drops its code itself.
void Variant::unload() noexcept
{
    if (state.exchange(Refused, std::memory_order_acq_rel) == Ready) code = nullptr;
}

// ---- making -----------------------------------------------------------------------------------------------------------

CudaExecutor::CudaExecutor(CudaBackend& backend, const Plan& plan, Backend::Use use, bool is_measured)
    : backend_(backend), use_(use), lengths_(plan.lengths), variables_(plan.lengths + plan.hidden), buffers_(plan.buffers.size()), most_(dense_variables(plan, plan.most))
{
    for (const Step& step : plan.steps) {
        Work w;
        w.name = step.name;
        if (step.kernel) {
            prepare(w, step, variables_, plan.most);
        } else {
            prepare(w, plan, size_t(&step - plan.steps.data()));
        }
        works_.push_back(std::move(w));
    }
    if (is_measured) prepare_tuning();
    const auto take = [&](const std::string& name) { if (tag_.empty()) tag_ = name; };
    for (const Port& out : plan.outs) take(out.name);
    for (const Step& step : plan.steps) take(step.name);
    take("what has no tag");
}

CudaExecutor::~CudaExecutor() { end(); }

// Interim lists are freed after the last run that was queued.
void CudaExecutor::end() noexcept
{
    for (Work& w : works_) end(w);
}

void CudaExecutor::end(Work& w) noexcept
{
    if (w.fused && use_ == Backend::Use::Often) w.fused->unload();           // others may have what evaluations share
    if (w.stocked) w.stocked->work.fused->unload();
    if (w.call)
        for (const auto& finished : w.call->finished) finished->variant.unload();
    if (w.call && w.call->folding) end(w.call->folding->work);
    w.interim = nullptr;
}

void CudaExecutor::prepare(Work& w, const Plan& plan, size_t at)
{
    const Step& step = plan.steps[at];
    backend_.shipped().need();
    w.call = std::make_unique<Call>(Call{step.node, {}, Placed(step.out)});
    for (const View& v : step.in) w.call->in.emplace_back(v);
    if (w.call->is_matmul()) prepare_product(*w.call, plan, at);
}

void CudaExecutor::prepare(Work& w, const Step& step, int32_t variables, std::span<const int64_t> most)
{
    const Kernel& kernel = *step.kernel;
    w.buffers = step.buffers, w.variables = variables;
    if (use_ == Backend::Use::Once) w.fused = evaluated(kernel);
    const bool is_made = w.fused && w.fused->is_ready();
    if (!w.fused) w.fused = std::make_shared<Fused>(kernel, backend_.traits(), most);
    w.scratch = w.fused->kernel.scratch_bytes(most);
    if (is_made) return;
    if (use_ == Backend::Use::Often) {
        w.fitted = std::make_unique<Fitted>();
        w.fitted->variables.resize(size_t(variables)), w.fitted->alignment.resize(w.buffers.size());
    }
    if (use_ == Backend::Use::Often) prepare_stocked(w, kernel);
    // The last ones are by elements, and the longest: what takes the most time begins first.
    if (use_ == Backend::Use::Often && may_compile(*w.fused))
        for (size_t i = w.fused->kernel.classes().size(); i-- > 0;)
            if (!w.fused->find(backend_.code(), i)) ask(w.fused, i);
    make_interim(w, kernel);
}

// Contract P6: the same bits on every run, so where orders differ one way is kept to.
bool CudaExecutor::may_compile(const Fused& f) const noexcept { return backend_.code().can_compile() && !(backend_.is_ordered() && f.folds_floats); }

// Of an evaluation: what was compiled, or is being, because it comes so often; null: it does not.
std::shared_ptr<Fused> CudaExecutor::evaluated(const Kernel& kernel) const
{
    if (!backend_.code().can_compile()) return nullptr;
    const Evaluated::Met met = backend_.evaluated().meet(kernel);
    if (met.fused || !met.is_often) return met.fused;
    auto fused = std::make_shared<Fused>(kernel, backend_.traits(), std::span<const int64_t>());
    if (!may_compile(*fused)) return fused;
    bool may_ask = false;
    for (size_t i = 0; i < fused->kernel.classes().size(); i++) {
        if (fused->find(backend_.code(), i)) continue;
        if (!may_ask && !backend_.evaluated().may_compile(met)) return fused;
        may_ask = true;
        ask(fused, i);
    }
    backend_.evaluated().keep(met, kernel, fused);
    return fused;
}

void CudaExecutor::ask(const std::shared_ptr<Fused>& fused, size_t which) const
{
    if (!fused->variants[which].ask()) return;
    fused->waiting.fetch_add(1, std::memory_order_relaxed);
    CodeStore& store = backend_.code();
    store.later([&store, fused, which] { fused->make(store, which); });
}

// Contract P1, P2: a run never waits for a compiler. NG_E_LIMIT where no list can be made: the plan must be another.
void CudaExecutor::make_interim(Work& w, const Kernel& kernel)
{
    backend_.shipped().need();
    auto interim = std::make_unique<Interim>();
    interim->tape = make_tape(kernel, backend_.shipped().shared_bytes());
    interim->code = backend_.upload(interim->tape.code.data(), interim->tape.code_bytes(), text("the interpreter's list of ", quoted(w.name)).c_str());
    w.interim = std::move(interim);
}

bool CudaExecutor::wait_for(const std::atomic<int>& waiting, const Deadline& deadline)
{
    for (int turn = 0; waiting.load(std::memory_order_acquire) > 0; turn++) {
        (void)backend_.code().poll(deadline.left_ns());
        if (waiting.load(std::memory_order_acquire) > 0 && !deadline.wait(turn)) return false;
    }
    return true;
}

ng_status CudaExecutor::wait(uint64_t timeout_ns)
{
    const Deadline deadline(timeout_ns);
    if (tuning_ && !wait_for(tuning_->waiting, deadline)) return NG_NOT_READY;
    if (!backend_.code().can_compile()) return NG_OK;            // interim is as fast as it gets
    for (const Work& w : works_) {
        // A product whose text is refused runs as before: explain says why.
        if (w.call) {
            for (const auto& finished : w.call->finished)
                if (!wait_for(finished->waiting, deadline)) return NG_NOT_READY;
            if (!w.call->finished.empty() && w.call->folding && !wait_for(w.call->folding->work.fused->waiting, deadline)) return NG_NOT_READY;
            continue;
        }
        if (!wait_for(w.fused->waiting, deadline)) return NG_NOT_READY;
        for (size_t i = 0; i < w.fused->kernel.classes().size(); i++)
            if (const auto& error = w.fused->variants[i].error) throw Error(error->status, text("ng_prog_wait: ", quoted(w.name), ": ", error->text));
    }
    return NG_OK;
}

bool CudaExecutor::is_final() const noexcept
{
    const auto is_made = [&](const Work& w) {
        if (w.call && w.call->folding && w.call->folding->work.fused->waiting.load(std::memory_order_acquire) > 0) return false;
        if (w.call) return std::ranges::all_of(w.call->finished, [](const auto& finished) { return finished->waiting.load(std::memory_order_acquire) == 0; });
        return !may_compile(*w.fused) || w.fused->is_ready();
    };
    return use_ == Backend::Use::Once || std::ranges::all_of(works_, is_made);
}

uint64_t CudaExecutor::code_bytes() const
{
    uint64_t all = 0;
    for (const Work& w : works_) {
        all += code_bytes(w);
        if (w.call)
            for (const auto& finished : w.call->finished) all += finished->variant.code_bytes();
        if (w.call && w.call->folding) all += code_bytes(w.call->folding->work);
    }
    return all;
}

uint64_t CudaExecutor::code_bytes(const Work& w)
{
    uint64_t all = w.interim ? w.interim->tape.code_bytes() : 0;
    for (size_t i = 0; w.fused && i < w.fused->kernel.classes().size(); i++) all += w.fused->variants[i].code_bytes();
    return all;
}

// ---- running ----------------------------------------------------------------------------------------------------------

uint64_t CudaExecutor::scratch_bytes(std::span<const int64_t> variables, uint32_t) const
{
    uint64_t most = 0;
    for (const Work& w : works_) {
        if (w.call) most = std::max(most, call_scratch(*w.call, variables));
        most = std::max(most, w.scratch);
        if (w.stocked) most = std::max(most, w.stocked->work.scratch);
        if (w.interim) most = std::max(most, most_scratch(w.interim->tape, backend_.units()));
    }
    return most ? most + 256 : 0;
}

ng_status CudaExecutor::run(const ExecutorRun& run, const Parallel&) const
{
    // What a graph holds runs as it is now for ever.
    if (backend_.order().is_capturing() && !is_final()) return NG_NOT_READY;
    backend_.order().note(tag_);
    const NamedRange all(tag_.c_str());
    if (chosen_) forget_declined(run);
    bool is_slow = false;
    for (size_t i = 0; i < works_.size(); i++) {
        const Work& w = works_[i];
        if (w.waits) continue;
        const NamedRange range(all.is_open() && !w.name.empty() && w.name != tag_ ? w.name.c_str() : nullptr);
        try {
            if (!w.call) is_slow |= run_fused(w, run);
            else if (w.call->is_matmul()) i += size_t(run_product(*w.call, i + 1 < works_.size() ? &works_[i + 1] : nullptr, run, is_slow));
            else run_call(*w.call, run);
        } catch (const Error& error) {
            throw backend_.blamed(Error(error.status, text(quoted(w.name), ": ", error.text), error.at, error.native), true);
        }
    }
    return is_slow ? NG_SLOW : NG_OK;
}

// True: by interim.
bool CudaExecutor::run_fused(const Work& w, const ExecutorRun& run) const
{
    const Fused& f = *w.fused;
    char* buffers[MOST_BUFFERS];
    for (size_t i = 0; i < w.buffers.size(); i++) buffers[i] = run.buffers[w.buffers[i]];
    if (std::ranges::none_of(f.stored, [&](int32_t b) { return buffers[b] != nullptr; })) return false;
    Geometry fresh;
    const Geometry& g = fit(w, run, buffers, fresh);
    if (g.launches == 0) return false;
    // Contract P6: the same bits on every run, so one way is kept to.
    if (backend_.is_ordered() && f.folds_floats && w.interim) return run_interim(w, run, buffers), false;
    if ((g.which < 0 || g.scratch_bytes > w.scratch) && w.interim) return run_interim(w, run, buffers), true;     // what was thought impossible
    const Variant& v = f.variants[size_t(g.which)];
    if (v.state.load(std::memory_order_acquire) == Variant::Ready) return run_variant(w, g, run, buffers), false;
    if (!w.stocked || !run_stocked(w, run, buffers)) run_interim(w, run, buffers);
    return use_ == Backend::Use::Often && backend_.code().can_compile();     // else it is as fast as it gets
}

const Geometry& CudaExecutor::fit(const Work& w, const ExecutorRun& run, char* const* buffers, Geometry& fresh) const
{
    const size_t count = w.buffers.size();
    Fitted* const last = w.fitted.get();
    if (last && last->is_fitted && std::equal(last->variables.begin(), last->variables.end(), run.variables)) {
        size_t same = 0;
        while (same < count && last->alignment[same] == alignment_of(buffers[same])) same++;
        if (same == count) return last->geometry;
    }
    uint64_t addresses[MOST_BUFFERS];
    for (size_t i = 0; i < count; i++) addresses[i] = reinterpret_cast<uintptr_t>(buffers[i]);
    fresh = w.fused->kernel.choose({run.variables, size_t(w.variables)}, {addresses, count});
    if (!last) return fresh;
    std::copy_n(run.variables, w.variables, last->variables.begin());
    for (size_t i = 0; i < count; i++) last->alignment[i] = alignment_of(buffers[i]);
    last->is_fitted = true, last->is_filled = false;
    return last->geometry = fresh;
}

// The struct of numbers: all of it, or what may have changed since the last run with this geometry.
const char* CudaExecutor::fill(const Work& w, const KernelSource& source, const Geometry& g, const ExecutorRun& run, char* fresh) const
{
    Fitted* const last = w.fitted.get();
    if (last && last->is_filled && last->scratch == run.scratch) {
        for (const NumberField& f : source.numbers)
            if (f.kind == NumberKind::Scalar) std::memcpy(last->numbers.data() + f.offset, static_cast<const char*>(run.scalars) + f.bits, size_t(bytes_of(f.type)));
        return last->numbers.data();
    }
    char* const out = last ? last->numbers.data() : fresh;
    fill_numbers(source, {run.variables, size_t(w.variables)}, run.scalars, g, reinterpret_cast<uint64_t>(aligned_scratch(run)), out);
    if (last) last->is_filled = true, last->scratch = run.scratch;
    return out;
}

void CudaExecutor::run_variant(const Work& w, const Geometry& g, const ExecutorRun& run, char* const* buffers) const
{
    const Variant& v = w.fused->variants[size_t(g.which)];
    alignas(16) char fresh[MOST_NUMBER_BYTES];
    const char* const numbers = fill(w, v.source, g, run, fresh);
    void* arguments[MOST_BUFFERS + 1];
    const size_t count = size_t(v.source.buffers);
    const bool is_early = backend_.compute() >= 90 && backend_.order().may_overlap();
    for (size_t i = 0; i < count; i++) arguments[i] = const_cast<char**>(buffers + i);
    arguments[count] = const_cast<char*>(numbers);
    for (int32_t k = 0; k < g.launches; k++) {
        const Geometry::Launch& l = g.launch[size_t(k)];
        Launch launch;
        launch.grid[1] = uint32_t((l.blocks - 1) / Geometry::MOST_BLOCKS + 1), launch.grid[0] = uint32_t((l.blocks - 1) / launch.grid[1] + 1);
        launch.block[0] = l.threads, launch.cluster[0] = l.cluster, launch.shared_bytes = l.shared_bytes, launch.is_early = is_early;
        const Function& function = v.code->functions[size_t(k)];
        if (l.shared_bytes) allow_shared(backend_.home(), function, l.shared_bytes);
        if (l.cluster > MOST_PORTABLE_CLUSTER) allow_large_clusters(backend_.home(), function);
        cuda::launch(backend_.home(), function, launch, backend_.order().stream(), arguments);
    }
}

void CudaExecutor::run_interim(const Work& w, const ExecutorRun& run, char* const* buffers) const
{
    const Interim& interim = *w.interim;
    const std::span<const int64_t> variables(run.variables, size_t(w.variables));
    const TapeGeometry g = geometry_of(interim.tape, variables);
    if (!g.is_possible) throw Error(NG_E_LIMIT, "an axis among several is 2^31 long or longer: the interpreter cannot walk it, and nothing is compiled");
    interim.code->touch();
    const TapeRun tape_run{interim.code->data(), aligned_scratch(run), {reinterpret_cast<void* const*>(buffers), w.buffers.size()},
                           variables, run.scalars};
    interpreter::Numbers numbers;
    void* arguments[] = {&numbers};
    for (uint32_t k = 0; k < g.launches; k++) {
        fill_numbers(interim.tape, g, tape_run, k, numbers);
        Launch launch;
        launch.grid[0] = g.blocks(k, backend_.units()), launch.block[0] = g.threads, launch.shared_bytes = g.shared_bytes;
        cuda::launch(backend_.home(), backend_.shipped().interpreter(), launch, backend_.order().stream(), arguments);
    }
}

void CudaExecutor::run_call(const Call& c, const ExecutorRun& run) const
{
    const CUstream stream = backend_.order().stream();
    auto body = [&](const basic::Launch& launch) { backend_.shipped().launch(launch, stream); };
    const basic::Launcher launcher(body);
    calls::run(c.node, c.in, c.out, run, variables_, backend_.is_ordered(), {aligned_scratch(run), launcher});
}

}  // namespace ng::cuda
