// The executor's matrix products: shipped kernels, and kernels that are compiled with the step behind a product in them.
#include "lib/backend/cuda/calls.h"
#include "lib/backend/cuda/ending.h"
#include "lib/backend/cuda/executor.h"
#include "lib/backend/cuda/shipped_launch.h"

#include <numeric>
#include <utility>

namespace ng::cuda {

// Of lengths that are not known, those that texts of their own are for, and up to which these come first. Tuned on an H100: 64 rows by 1024 x 4096 with a residual took 9.3 us, by the text for 64 6.2,
// 512 by 768 x 3072 15.9 and, by that for 512, 8.2; 1024 by 4096 x 4096 52 by that for 4096, by that for 512 55; of 32768 at most 4096 by 256 x 256 8.2 without one for 2048, with it 4.6, and 1024 by 1024 x 4096 24.8
// without one for 1024, with it 17.0.
struct Fewer { int64_t length, most; };
static constexpr std::array<Fewer, 5> FEWER = {{{2048, 4096}, {1024, 1024}, {512, 512}, {64, 128}, {16, 32}}};

static constexpr size_t MEMORIES = 3 + FEWER.size();      // of a call: without an epilogue, with its list, and with each text

// Of a product's rows, columns, depth and batches those that depend on lengths. Batches along which one operand stays the same are rows or columns.
static Extents open_sizes(const Step& step)
{
    const Extents &a = step.in[0].dims, &b = step.in[1].dims, &c = step.out.dims;
    Extent rows = c[c.size() - 2], columns = c.back(), batches = 1;
    for (size_t i = 0; i + 2 < c.size(); i++) {
        Extent& size = b[i].is(1) ? rows : a[i].is(1) ? columns : batches;
        size = size * c[i];
    }
    Extents all = {rows, columns, a.back(), batches};
    std::erase_if(all, [](const Extent& size) { return size.is_constant(); });
    return all;
}

// Makes lengths less, outer ones first, until a size is no more than this.
static void limit(const Extent& size, int64_t most, std::vector<int64_t>& lengths)
{
    std::vector<bool> mentioned;
    size.mark_variables(mentioned);
    for (size_t v = 0; v < mentioned.size(); v++) {
        if (!mentioned[v] || size.most(lengths) <= most) continue;
        const int64_t length = std::exchange(lengths[v], 1);
        lengths[v] = std::clamp<int64_t>(most / std::max<int64_t>(size.most(lengths), 1), 1, std::max<int64_t>(length, 1));
    }
}

void Finished::make(CodeStore& store, const DeviceContext& home) noexcept
{
    variant.make([&] {
        const UntilExit working;
        variant.code = store.need(gemm::finisher_text(finisher, epilogue, operand), gemm::FINISHER_FUNCTIONS, is_counted);
        const CurrentContext now(home);
        allow_shared(home, variant.code->functions[0], finisher.shared_bytes);
    });
    waiting.store(0, std::memory_order_release);
}

void CudaExecutor::prepare_product(Call& c, const Plan& plan, size_t at)
{
    const Step& step = plan.steps[at];
    const Step* const next = at + 1 < plan.steps.size() ? &plan.steps[at + 1] : nullptr;
    if (next && next->runs_with_product()) c.epilogue = EpilogueForm::of(step, *next, variables_);
    // Contract P6: a deterministic context's choice depends on the shape and on whether operands lie at multiples of 16 bytes, and no instance of its own adds in another order.
    const bool is_often = use_ == Backend::Use::Often;
    // Once, two kernels are sooner prepared than three.
    c.is_listed = c.epilogue && c.epilogue->list() && !backend_.is_ordered() && (is_often || !c.epilogue->behind());
    backend_.shipped().need_products(step.in[0].dtype, step.in[1].dtype, c.is_listed);
    products_ = backend_.shipped().product_device(backend_.compute(), backend_.units());
    if (is_often) c.memories = std::make_unique<gemm::Memory[]>(MEMORIES);
    c.open = open_sizes(step);
    if (is_often && !backend_.is_ordered()) tuned_ = &backend_.tuned();
    if (tuned_)
        if (const auto problem = matmul_problem(matmul_step(c, c.epilogue && c.epilogue->is_cast()), most_)) c.shape = gemm::shape_of(*problem);
    if (variables_ == 0 && c.epilogue && c.epilogue->is_cast() && is_matmul_certain(matmul_step(c, true), products_)) fused_away_.push_back(step.out.buffer);
    const bool may_compile = c.shape && backend_.code().can_compile();
    if (may_compile && !prepare_starting(c, plan, at) && c.epilogue && !c.epilogue->is_cast())
        if (const std::optional<gemm::Finisher> finisher = matmul_finisher(matmul_step(c, true), most_, products_, *tuned_)) prepare_finished(c, *finisher), prepare_fewer(c, plan);
    // Where a text is no gain the step behind is compiled as it is, and soon: nobody takes parts of folds then.
    if (c.epilogue && c.epilogue->behind() && c.finished.empty() && backend_.code().can_compile()) c.is_listed = false;
    if (c.epilogue && c.epilogue->behind() && (!c.finished.empty() || c.is_listed)) prepare_folding(c, plan);
    c.scratch = product_scratch(c, most_), c.room = call_scratch(c, most_);
    const bool may_decline = is_often && (c.is_listed || !c.finished.empty());
    if (may_decline && !chosen_) chosen_ = std::make_unique<Chosen>(Chosen{std::vector<int64_t>(size_t(variables_), -1), std::vector<uint16_t>(buffers_)});
}

// Of two operands that steps make, one; the first that is worth it.
bool CudaExecutor::prepare_starting(Call& c, const Plan& plan, size_t at)
{
    const Step& step = plan.steps[at];
    for (size_t i = 0; i < at; i++) {
        if (plan.steps[i].feeds != int32_t(at)) continue;
        const size_t operand = step.in[0].buffer == plan.steps[i].buffers[size_t(plan.steps[i].kernel->stores[0].buffer)] ? 0 : 1;
        std::optional<OperandForm> form = OperandForm::of(plan.steps[i], step, operand);
        if (!form) continue;
        std::vector<Placed> in = c.in;
        in[operand] = Placed(form->raw());
        c.starting = std::make_unique<Starting>(Starting{std::move(*form), std::move(in), i});
        if (const std::optional<gemm::Finisher> finisher = matmul_finisher(finished_step(c), most_, products_, *tuned_)) {
            works_[i].waits = true;
            prepare_finished(c, *finisher);
            return true;
        }
        c.starting.reset();
    }
    return false;
}

void CudaExecutor::prepare_finished(Call& c, const gemm::Finisher& finisher, int64_t rows)
{
    const auto f = std::make_shared<Finished>();
    f->finisher = finisher, f->waiting = 1, f->rows = rows;
    if (c.epilogue && !c.epilogue->is_cast()) f->epilogue = c.epilogue->text();
    if (c.starting) f->operand = c.starting->form.text();
    f->is_counted = !c.finished.empty();                 // one compilation, whatever it takes
    c.finished.push_back(f);
    backend_.code().later([&store = backend_.code(), &home = backend_.home(), f] { f->make(store, home); });
}

// Of the sizes that depend on lengths the greatest.
int64_t CudaExecutor::largest(const Call& c, std::span<const int64_t> variables)
{
    int64_t size = 0;
    for (const Extent& open : c.open) size = std::max(size, open.value(variables));
    return size;
}

// Another instance is the best where rows are few: what is behind a product then takes as long as it. Folds have parts of one length.
void CudaExecutor::prepare_fewer(Call& c, const Plan& plan)
{
    if (c.open.empty() || c.epilogue->behind()) return;
    for (const Fewer& fewer : FEWER) {
        std::vector<int64_t> lengths = plan.most;
        for (const Extent& size : c.open) limit(size, fewer.length, lengths);
        if (std::ranges::any_of(c.open, [&](const Extent& size) { return size.value(lengths) < 1; })) continue;
        const std::optional<gemm::Finisher> finisher = matmul_finisher(matmul_step(c, true), dense_variables(plan, lengths), products_, *tuned_);
        const auto is_same = [&](const auto& f) { return finisher->is_portable == f->finisher.is_portable && finisher->instance == f->finisher.instance && finisher->variant == f->finisher.variant && finisher->has_few_rows == f->finisher.has_few_rows; };
        if (finisher && std::ranges::none_of(c.finished, is_same)) prepare_finished(c, *finisher, std::min(fewer.most, largest(c, plan.most) - 1));
    }
}

MatmulStep CudaExecutor::finished_step(const Call& c, MatmulParts* parts) const
{
    const EpilogueForm* const epilogue = c.epilogue ? &*c.epilogue : nullptr;
    if (c.starting) return {*c.node, c.starting->in, c.out, epilogue, parts, &c.starting->form};
    return {*c.node, c.in, c.out, epilogue, parts};
}

void CudaExecutor::prepare_tuning()
{
    if (!tuned_) return;
    auto tuning = std::make_shared<Tuning>(backend_, products_);
    for (const Work& w : works_) {
        if (!w.call || !w.call->is_matmul()) continue;
        const uint64_t bytes = product_scratch(*w.call, most_);
        for (const bool has_epilogue : {false, true})
            if (const auto problem = has_epilogue && !w.call->epilogue ? std::nullopt : matmul_problem(matmul_step(*w.call, has_epilogue), most_)) tuning->add(*problem, bytes);
    }
    if (tuning->is_empty()) return;
    tuning_ = tuning;
    backend_.code().later([tuning] { tuning->run(); });
}

// The kernel behind it, with one variable more. It runs compiled, or the product goes without its epilogue.
void CudaExecutor::prepare_folding(Call& c, const Plan& plan)
{
    const EpilogueFolds& folds = *c.epilogue->behind();
    c.folding = std::make_unique<Folding>();
    Folding& f = *c.folding;
    Step step;
    step.kernel = std::make_shared<Kernel>(folds.after), step.buffers.resize(folds.buffers.size());
    std::iota(step.buffers.begin(), step.buffers.end(), 0);
    std::vector<int64_t> most = plan.most;
    most.resize(size_t(variables_), INT64_MAX);          // strides known when run
    most.push_back(most_parts_of(c, most_));
    f.buffers = folds.buffers, f.addresses.resize(f.buffers.size()), f.variables.resize(size_t(variables_) + 1);
    f.work.name = folds.after.name;
    prepare(f.work, step, variables_ + 1, most);
}

int64_t CudaExecutor::most_parts_of(const Call& c, std::span<const int64_t> variables) const
{
    const int64_t compiled = c.finished.empty() ? 0 : most_parts(finished_step(c), variables, c.finished[0]->finisher);
    return c.is_listed ? std::max(compiled, most_parts(matmul_step(c, true), variables, gemm::MOST_LISTED_PARTS)) : compiled;
}

// Bytes before a product's workspace, and before the workspace of what folds them.
uint64_t CudaExecutor::folded_bytes(const Call& c, std::span<const int64_t> variables) const
{
    if (!c.folding || !c.epilogue->folds()) return 0;
    const uint64_t compiled = c.finished.empty() ? 0 : parts_bytes(finished_step(c), variables, c.finished[0]->finisher);
    return c.is_listed ? std::max(compiled, parts_bytes(matmul_step(c, true), variables, gemm::MOST_LISTED_PARTS)) : compiled;
}

bool CudaExecutor::run_folding(const Call& c, const MatmulParts& parts, const ExecutorRun& run) const
{
    Folding& f = *c.folding;
    std::copy_n(run.variables, variables_, f.variables.begin());
    f.variables.back() = parts.count;
    const uint64_t each = aligned(uint64_t(parts.count * c.epilogue->behind()->count.value(f.variables)) * 4);
    for (size_t i = 0; i < f.buffers.size(); i++) f.addresses[i] = f.buffers[i] >= 0 ? run.buffers[f.buffers[i]] : parts.data + uint64_t(-1 - f.buffers[i]) * each;
    ExecutorRun behind = run;
    behind.variables = f.variables.data(), behind.buffers = f.addresses.data();
    behind.scratch = aligned_scratch(run) + folded_bytes(c, {run.variables, size_t(variables_)});
    return run_fused(f.work, behind);
}

uint64_t CudaExecutor::product_scratch(const Call& c, std::span<const int64_t> variables) const
{
    uint64_t bytes = matmul_scratch(matmul_step(c, false), variables, products_);
    if (c.epilogue) bytes = std::max(bytes, matmul_scratch(matmul_step(c, true), variables, products_));
    return c.starting ? std::max(bytes, matmul_scratch(finished_step(c), variables, products_)) : bytes;
}

uint64_t CudaExecutor::call_scratch(const Call& c, std::span<const int64_t> variables) const
{
    const uint64_t basic = calls::scratch_bytes(c.node, c.in, c.out, variables);
    if (!c.is_matmul()) return basic;
    uint64_t product = product_scratch(c, variables);
    if (c.folding) {
        std::vector<int64_t> more(variables.begin(), variables.end());
        more.push_back(most_parts_of(c, variables));
        const Work& w = c.folding->work;
        product = folded_bytes(c, variables) + std::max({product, w.fused->kernel.scratch_bytes(more), w.interim ? most_scratch(w.interim->tape, backend_.units()) : 0}) + 256;
    }
    return std::max(basic, product);
}

bool CudaExecutor::launch_product(const Call& c, const MatmulStep& step, int which, const ExecutorRun& run, bool is_compiled) const
{
    const Finished* const finished = which < 0 ? nullptr : c.finished[size_t(which)].get();
    gemm::Memory* const memory = c.memories ? &c.memories[finished ? 2 + which : step.is_listed ? 1 : 0] : nullptr;
    if (memory && memory->is_declined) return false;
    const CUstream stream = backend_.order().stream();
    const bool     may_overlap = backend_.order().may_overlap();
    auto basic_body = [&](const basic::Launch& launch) { backend_.shipped().launch(launch, stream); };
    auto body = [&](gemm::Launch launch) {
        launch.is_early &= may_overlap;
        if (launch.image == gemm::Image::Text) launch_with(backend_.home(), finished->variant.code->functions[launch.kernel], shape_of(launch), stream, launch.numbers);
        else backend_.shipped().launch(launch, stream);
    };
    const basic::Launcher basic_launcher(basic_body);
    const gemm::Launcher launcher(body);
    const std::span<const int64_t> variables(run.variables, size_t(variables_));
    // With strides that only a run knows, batches that are no rows may want more than there is.
    const uint64_t bytes = variables.empty() ? c.scratch : std::min(c.scratch, product_scratch(c, variables));
    if (step.parts && variables_ > lengths_ && call_scratch(c, variables) > c.room) return false;
    const bool is_done = run_matmul(step, run, variables_, products_, finished ? &finished->finisher : nullptr,
                      {aligned_scratch(run) + (step.parts ? folded_bytes(c, variables) : 0), bytes, launcher, basic_launcher, &backend_.home().driver(), memory, step.is_listed ? nullptr : tuned_, is_compiled});
    if (memory && (finished || step.is_listed)) memory->is_declined = !is_done;
    return is_done;
}

// Whether a size of the product is another.
bool CudaExecutor::depends(const Call& c, std::span<const int64_t> before, std::span<const int64_t> now)
{
    return std::ranges::any_of(c.open, [&](const Extent& size) { return size.value(before) != size.value(now); });
}

// What a kernel was nothing for it may take when lengths, addresses or what was measured are others.
void CudaExecutor::forget_declined(const ExecutorRun& run) const
{
    Chosen&        last = *chosen_;
    const uint64_t tuned = tuned_ ? tuned_->count() : 0;
    bool           is_same = last.tuned == tuned;
    for (size_t i = 0; i < buffers_; i++) {
        const uint16_t alignment = alignment_of(run.buffers[i]);
        is_same &= std::exchange(last.alignment[i], alignment) == alignment;
    }
    const std::span<const int64_t> now(run.variables, size_t(variables_));
    if (is_same && std::ranges::equal(last.variables, now)) return;
    const bool are_strides_same = std::ranges::equal(std::span(last.variables).subspan(size_t(lengths_)), now.subspan(size_t(lengths_)));
    for (const Work& w : works_) {
        if (!w.call || !w.call->memories || (is_same && are_strides_same && !depends(*w.call, last.variables, now))) continue;
        std::for_each_n(w.call->memories.get(), MEMORIES, [](gemm::Memory& m) { m.is_declined = false; });
    }
    std::ranges::copy(now, last.variables.begin()), last.tuned = tuned;
}

bool CudaExecutor::run_finished(const Call& c, int which, const ExecutorRun& run, bool& is_slow) const
{
    const int state = c.finished[size_t(which)]->variant.state.load(std::memory_order_acquire);
    const bool is_ready = state == Variant::Ready && (!c.folding || (c.folding->work.fused->is_ready() && c.epilogue->behind()->can_run(run.buffers)));
    MatmulParts parts = {aligned_scratch(run), 0};
    is_slow |= state == Variant::Idle;
    if (!is_ready || !launch_product(c, finished_step(c, &parts), which, run)) return false;
    if (c.folding) run_folding(c, parts, run);
    return true;
}

// How many steps behind it are done, too. behind: the next step, where there is one, as there is with an epilogue.
int CudaExecutor::run_product(const Call& c, const Work* behind, const ExecutorRun& run, bool& is_slow) const
{
    // The text for the fewest rows that these are not more than, those for more, those for less: each may be better than a kernel behind.
    const int64_t rows = largest(c, {run.variables, size_t(variables_)});
    const auto texts = int(c.finished.size());
    int first = 0;
    while (first + 1 < texts && c.finished[size_t(first) + 1]->rows >= rows) first++;
    for (int i = 0; i < texts; i++) {
        bool waits = false;
        if (run_finished(c, i <= first ? first - i : i, run, waits)) return c.epilogue ? 1 : 0;
        is_slow |= waits;
    }
    if (c.starting) is_slow |= run_fused(works_[c.starting->step], run);
    if (c.epilogue && c.epilogue->is_cast() && launch_product(c, matmul_step(c, true), -1, run)) return 1;
    MatmulParts parts = {aligned_scratch(run), 0};
    if (c.is_listed && (!c.folding || c.epilogue->behind()->can_run(run.buffers)) && launch_product(c, listed_step(c, &parts), -1, run, behind->fused->is_ready())) {
        if (c.folding) is_slow |= run_folding(c, parts, run);
        return 1;
    }
    if (!launch_product(c, matmul_step(c, false), -1, run)) run_call(c, run);
    return 0;
}

}  // namespace ng::cuda
