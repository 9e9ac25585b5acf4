// Fused steps until their own texts are compiled, and where nothing compiles: by texts for any lengths that the build compiled.
#include "lib/backend/cuda/executor.h"

#include "jit/opened.h"

#include <algorithm>

namespace ng::cuda {

void CudaExecutor::prepare_stocked(Work& w, const Kernel& kernel)
{
    if (!backend_.stock().has_any() || (backend_.is_ordered() && w.fused->folds_floats)) return;
    std::optional<Opened> opened = open(kernel);
    if (!opened) return;
    auto stocked = std::make_unique<Stocked>();
    Work& own = stocked->work;
    own.buffers = w.buffers, own.name = w.name, own.variables = int32_t(opened->variables.size());
    own.fused = std::make_shared<Fused>(opened->kernel, backend_.traits(), std::span<const int64_t>());
    own.fitted = std::make_unique<Fitted>();
    own.fitted->variables.resize(size_t(own.variables)), own.fitted->alignment.resize(own.buffers.size());
    stocked->values.resize(size_t(own.variables)), stocked->variables = std::move(opened->variables);
    const bool is_known = std::ranges::all_of(stocked->variables, &Extent::is_constant);
    if (is_known) std::ranges::transform(stocked->variables, stocked->values.begin(), &Extent::constant);
    // Where lengths are not known the workspace has as much as other ways ask for, and a launch that wants more is not had.
    own.scratch = w.scratch;
    const std::vector<uint64_t> aligned(own.buffers.size(), 0), elsewhere(own.buffers.size(), 4);
    for (const auto& addresses : {aligned, elsewhere}) {
        if (!is_known) break;
        const Geometry g = own.fused->kernel.choose(stocked->values, addresses);
        own.scratch = std::max(own.scratch, g.scratch_bytes);
        if (g.which >= 0) ask_stock(own.fused, size_t(g.which));
    }
    for (size_t i = 0; !is_known && i < own.fused->kernel.classes().size(); i++) ask_stock(own.fused, i);
    w.stocked = std::move(stocked);
}

// Where nothing compiles it is there at once: what runs first runs so for good.
void CudaExecutor::ask_stock(const std::shared_ptr<Fused>& fused, size_t which)
{
    if (!fused->variants[which].ask()) return;
    fused->waiting.fetch_add(1, std::memory_order_relaxed);
    Stock& stock = backend_.stock();
    if (!backend_.code().can_compile()) return fused->make(stock, which);
    backend_.code().later([&stock, fused, which] { fused->make(stock, which); }, true);
}

bool CudaExecutor::run_stocked(const Work& w, const ExecutorRun& run, char* const* buffers) const
{
    Stocked& s = *w.stocked;
    for (size_t i = 0; i < s.values.size(); i++) s.values[i] = s.variables[i].wrapped({run.variables, size_t(w.variables)});
    ExecutorRun own = run;
    own.variables = s.values.data();
    Geometry fresh;
    const Geometry& g = fit(s.work, own, buffers, fresh);
    if (g.which < 0 || g.scratch_bytes > s.work.scratch) return false;
    if (s.work.fused->variants[size_t(g.which)].state.load(std::memory_order_acquire) != Variant::Ready) return false;
    run_variant(s.work, g, own, buffers);
    return true;
}

}  // namespace ng::cuda
