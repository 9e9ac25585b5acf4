// Makes a step's axes a few: batches along which one operand stays the same become rows or columns, neighbours that are one axis merge.
#include "lib/backend/cuda/matmul.h"

#include "lib/backend/cuda/gemm_tuned.h"
#include "lib/backend/cuda/rounding.h"

#include <algorithm>

namespace ng::cuda {
namespace {

using gemm::Problem;

constexpr int64_t SPLIT_MOST = int64_t(1) << 31;         // kernels take such a batch apart by 32 bits

// One axis of the result with its strides in everything that has it. inner: of a batch that is two axes to the epilogue's tensors,
// how many the inner one has; they have strides for both.
struct Axis {
    int64_t extent = 1, a = 0, b = 0, c = 0;
    int64_t tensor[kernels::EPILOGUE_TENSORS] = {};
    int64_t inner = 0, outer[kernels::EPILOGUE_TENSORS] = {};
};

// Whether `outer` goes on where `inner` ends: in the operands and the result, or in the tensors, with these strides and so many elements.
bool continues(const Axis& outer, const Axis& inner)
{
    const auto fits = [&](int64_t far, int64_t near) { return far == near * inner.extent; };
    return fits(outer.a, inner.a) && fits(outer.b, inner.b) && fits(outer.c, inner.c);
}
bool continues(const Axis& outer, const int64_t* strides, int64_t extent, size_t tensors)
{
    for (size_t i = 0; i < tensors; i++)
        if (outer.tensor[i] != strides[i] * extent) return false;
    return true;
}
bool merge(const Axis& outer, Axis& inner, size_t tensors)
{
    if (inner.extent == 1) inner = outer;
    else if (continues(outer, inner) && continues(outer, inner.tensor, inner.extent, tensors)) inner.extent *= outer.extent;
    else return false;
    return true;
}
// The same of a batch. may_split: of the tensors' strides the outer ones may be others.
bool merge_batch(const Axis& outer, Axis& batch, size_t tensors, bool may_split)
{
    if (!continues(outer, batch)) return false;
    const bool is_split = batch.inner > 0;
    if (!continues(outer, is_split ? batch.outer : batch.tensor, is_split ? batch.extent / batch.inner : batch.extent, tensors)) {
        if (is_split || !may_split || batch.extent >= SPLIT_MOST) return false;
        batch.inner = batch.extent;
    }
    if (batch.inner > 0 && !is_split) std::copy_n(outer.tensor, tensors, batch.outer);
    batch.extent *= outer.extent;
    return true;
}

class Axes {
  public:
    Axes(const Placed::Numbers* x, const Placed::Numbers& y, int rank) : rank_(rank)
    {
        for (int i = 0; i < rank; i++) {
            Axis& axis = axis_[i];
            axis.extent = y.dims[i], axis.c = y.strides[i];
            axis.a = x[0].dims[i] == 1 ? 0 : x[0].strides[i], axis.b = x[1].dims[i] == 1 ? 0 : x[1].strides[i];
        }
        axis_[rank - 2].b = 0, axis_[rank - 1].a = 0;
        depth_ = {x[0].dims[rank - 1], x[0].strides[rank - 1], x[1].strides[rank - 2], 0, {}};
    }

    // Strides of what the epilogue reads and writes: along the axes that are not of one element by their nature.
    void set_result(const EpilogueTensor& t, const Placed& out, std::span<const int64_t> variables)
    {
        each_stride(t, out, variables, [](Axis& axis, int64_t stride) { axis.c = stride; });
    }
    void add_tensor(const EpilogueTensor& t, const Placed& out, std::span<const int64_t> variables)
    {
        each_stride(t, out, variables, [this](Axis& axis, int64_t stride) { axis.tensor[tensors_] = stride; });
        tensors_++;
    }

    void simplify()
    {
        rows_ = axis_[rank_ - 2], columns_ = axis_[rank_ - 1];
        for (int i = rank_ - 2; i-- > 0;) {
            const Axis& axis = axis_[i];
            if (axis.extent == 1) continue;
            if (batches_ == 0 && axis.b == 0 && merge(axis, rows_, tensors_)) continue;
            if (batches_ == 0 && axis.a == 0 && merge(axis, columns_, tensors_)) continue;
            if (batches_ > 0 && merge_batch(axis, batch_[batches_ - 1], tensors_, batches_ == 1)) continue;
            batch_[batches_++] = axis;
        }
    }

    const Axis& rows() const { return rows_; }
    const Axis& columns() const { return columns_; }
    const Axis& depth() const { return depth_; }
    // From the innermost to the outermost.
    const Axis& batch(int i) const { return batch_[i]; }
    int         batches() const { return batches_; }
    // Problems that there are, one for each place of the batch's outer axes.
    int64_t repeats() const
    {
        int64_t all = 1;
        for (int i = 1; i < batches_; i++) all *= batch_[i].extent;
        return all;
    }
    size_t      tensors() const { return tensors_; }

  private:
    template <class Set>
    void each_stride(const EpilogueTensor& t, const Placed& out, std::span<const int64_t> variables, const Set& set)
    {
        size_t at = 0;
        for (int i = 0; i < rank_; i++) set(axis_[i], out.is_unit(i) ? 0 : t.access.strides[at++].value(variables));
    }

    int    rank_, batches_ = 0;
    size_t tensors_ = 0;
    Axis   axis_[NG_MAX_NDIM], batch_[NG_MAX_NDIM], rows_, columns_, depth_;
};

Axes axes_of(const MatmulStep& step, const Placed::Numbers* x, const Placed::Numbers& y, std::span<const int64_t> variables)
{
    Axes axes(x, y, step.out.rank());
    if (step.epilogue) {
        if (step.epilogue->has_result()) axes.set_result(step.epilogue->result(), step.out, variables);
        for (const EpilogueTensor& t : step.epilogue->tensors()) axes.add_tensor(t, step.out, variables);
    }
    axes.simplify();
    return axes;
}

Problem problem_of(const MatmulStep& step, const Axes& axes)
{
    Problem p = {};
    p.a_type = step.in[0].type(), p.b_type = step.in[1].type(), p.c_type = step.epilogue ? step.epilogue->result().type : step.out.type();
    p.allows_tf32 = step.node.value & NG_TF32;
    p.epilogue_weight = !step.epilogue ? 0 : step.is_listed ? step.epilogue->list_weight() : step.epilogue->weight(), p.is_unstored = step.epilogue && !step.epilogue->has_result();
    p.is_pivoted = step.epilogue && step.epilogue->folds() && step.epilogue->folds()->is_pivoted;
    p.is_read_again = step.epilogue && step.epilogue->behind() && !step.epilogue->folds();
    if (const OperandForm* const o = step.prologue) p.prologue.side = o->operand() == 0 ? gemm::Prologue::A : gemm::Prologue::B, p.prologue.type = o->multiplied(), p.prologue.weight = o->weight();
    const Axis batch = axes.batches() ? axes.batch(0) : Axis{};
    p.m = axes.rows().extent, p.n = axes.columns().extent, p.k = axes.depth().extent, p.batches = batch.extent;
    p.a_row = axes.rows().a, p.a_depth = axes.depth().a, p.b_depth = axes.depth().b, p.b_column = axes.columns().b;
    p.c_row = axes.rows().c, p.c_column = axes.columns().c;
    p.a_batch = batch.a, p.b_batch = batch.b, p.c_batch = batch.c;
    p.repeats = axes.repeats();
    return p;
}

// Folds are over rows or columns of one problem: what is folded may be batches only where these have become rows.
bool can_fold(const EpilogueFolds& folds, const Axes& axes)
{
    if (axes.rows().extent == 1 || axes.columns().extent == 1) return false;
    for (int i = 0; i < axes.batches(); i++)
        if (axes.batch(i).tensor[axes.tensors() - 1] == 0 || (axes.batch(i).inner > 0 && axes.batch(i).outer[axes.tensors() - 1] == 0)) return false;
    // Nor may other axes have taken the place of the folded one.
    return (folds.is_over_columns ? axes.columns() : axes.rows()).tensor[axes.tensors() - 1] == 0;
}

// The strides of what the epilogue reads and writes.
void place_tensors(const MatmulStep& step, const Axes& axes, std::span<const int64_t> variables, Problem& p)
{
    const Axis batch = axes.batches() ? axes.batch(0) : Axis{};
    p.epilogue.inner = batch.inner;
    for (size_t i = 0; i < axes.tensors(); i++) {
        p.epilogue.outer[i] = batch.outer[i];
        kernels::EpilogueTensor& t = p.epilogue.tensor[i];
        t.row = axes.rows().tensor[i], t.column = axes.columns().tensor[i], t.batch = batch.tensor[i];
        if (t.kind == kernels::OVER_COLUMNS) t.column = step.epilogue->folds()->count.value(variables);
        if (t.kind == kernels::OVER_ROWS) t.row = step.epilogue->folds()->count.value(variables);
    }
}
// Where they begin.
void find_tensors(const MatmulStep& step, const ExecutorRun& run, std::span<const int64_t> variables, uint64_t fold_bytes, Problem& p)
{
    for (int i = 0; i < p.epilogue.count; i++) {
        const EpilogueTensor& t = step.epilogue->tensors()[size_t(i)];
        const char* const base = t.buffer >= 0 ? run.buffers[t.buffer] : step.parts->data + uint64_t(-1 - t.buffer) * fold_bytes;
        p.epilogue.tensor[i].data = base ? base + t.access.offset.value(variables) * bytes_of(t.type) : nullptr;
    }
}

// Whether all problems of the batch's outer axes lie on units of memory if one does, so that a kernel for one is for all.
bool are_alike(const Axes& axes, const Problem& p)
{
    const auto is_even = [](int64_t stride, int64_t bytes) { return stride * bytes % 16 == 0; };
    for (int i = 1; i < axes.batches(); i++) {
        const Axis& axis = axes.batch(i);
        if (!is_even(axis.a, bytes_of(p.a_type)) || !is_even(axis.b, bytes_of(p.b_type)) || !is_even(axis.c, bytes_of(p.c_type))) return false;
        for (size_t t = 0; t < axes.tensors(); t++)
            if (p.epilogue.tensor[t].row && p.epilogue.tensor[t].column && !is_even(axis.tensor[t], p.epilogue.tensor[t].bytes)) return false;
    }
    return true;
}

// The same problem at one place of the batch's outer axes.
Problem moved(const Axes& axes, Problem p, int64_t index)
{
    for (int i = 1; i < axes.batches(); i++) {
        const Axis&   axis = axes.batch(i);
        const int64_t at = index % axis.extent;
        index /= axis.extent;
        p.a = static_cast<const char*>(p.a) + at * axis.a * bytes_of(p.a_type);
        p.b = static_cast<const char*>(p.b) + at * axis.b * bytes_of(p.b_type);
        if (p.c) p.c = static_cast<char*>(p.c) + at * axis.c * bytes_of(p.c_type);
        for (size_t t = 0; t < axes.tensors(); t++) {
            kernels::EpilogueTensor& tensor = p.epilogue.tensor[t];
            if (tensor.data) tensor.data = static_cast<const char*>(tensor.data) + at * axis.tensor[t] * tensor.bytes;
        }
    }
    return p;
}

}  // namespace

uint64_t matmul_scratch(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Device& device)
{
    Placed::Numbers x[2], y;
    for (size_t i = 0; i < 2; i++) step.in[i].evaluate_most(largest, x[i]);
    step.out.evaluate_most(largest, y);
    Axes axes(x, y, step.out.rank());
    axes.simplify();
    Problem p = problem_of(step, axes);
    p.epilogue_weight = 0;
    p.batches = 1;
    for (int i = 0; i < axes.batches(); i++) p.batches *= axes.batch(i).extent;
    const bool is_fixed = largest.empty();
    if (p.batches == 1) return gemm::workspace(p, device, is_fixed);
    // Whether batches become rows or columns shows only when run.
    Problem by_rows = p, by_columns = p;
    by_rows.m *= p.batches, by_rows.batches = 1, by_columns.n *= p.batches, by_columns.batches = 1;
    return std::max({gemm::workspace(p, device, is_fixed), gemm::workspace(by_rows, device, is_fixed), gemm::workspace(by_columns, device, is_fixed)});
}

std::optional<Problem> matmul_problem(const MatmulStep& step, std::span<const int64_t> largest)
{
    Placed::Numbers x[2], y;
    for (size_t i = 0; i < 2; i++) step.in[i].evaluate_most(largest, x[i]);
    step.out.evaluate_most(largest, y);
    const Axes axes = axes_of(step, x, y, largest);
    Problem p = problem_of(step, axes);
    if (step.epilogue && step.epilogue->folds() && !can_fold(*step.epilogue->folds(), axes)) return std::nullopt;
    if (step.epilogue) p.epilogue = step.epilogue->in_numbers(), place_tensors(step, axes, largest, p);
    return p;
}

bool is_matmul_certain(const MatmulStep& step, const gemm::Device& device)
{
    std::optional<Problem> p = matmul_problem(step, {});
    if (!p) return false;
    // Where operands lie shows only when run. Off multiples of 16 bytes they may be copied, which wants a workspace, or be nothing for kernels that copy none.
    p->a = p->b = reinterpret_cast<const void*>(uintptr_t(1));
    return gemm::can_run(*p, device, matmul_scratch(step, {}, device));
}

std::optional<gemm::Finisher> matmul_finisher(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Device& device, const gemm::Tuned& tuned)
{
    const std::optional<Problem> p = matmul_problem(step, largest);
    if (!p) return std::nullopt;
    const std::optional<gemm::Measured> measured = tuned.find(gemm::shape_of(*p));
    return gemm::finisher_for(*p, device, measured ? &measured->way : nullptr);
}

namespace {

// Of a run's problem, before anything is turned.
int64_t parts_of(const MatmulStep& step, const Problem& p, const gemm::Finisher& f) { return gemm::parts_of(f, step.epilogue->folds()->is_over_columns ? p.n : p.m); }

}  // namespace

int64_t most_parts(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Finisher& finisher)
{
    const std::optional<Problem> p = step.epilogue->folds() ? matmul_problem(step, largest) : std::nullopt;
    return p ? parts_of(step, *p, finisher) : 0;
}

// Batches that became rows have no more parts than each by itself.
uint64_t parts_bytes(const MatmulStep& step, std::span<const int64_t> largest, const gemm::Finisher& finisher)
{
    Placed::Numbers y;
    step.out.evaluate_most(largest, y);
    const EpilogueFolds& folds = *step.epilogue->folds();
    const int rank = step.out.rank(), folded = folds.is_over_columns ? rank - 1 : rank - 2;
    int64_t elements = gemm::parts_of(finisher, y.dims[folded]);
    for (int i = 0; i < rank; i++) elements *= i == folded ? 1 : y.dims[i];
    return aligned(uint64_t(elements) * 4) * uint64_t(folds.folds);
}

bool run_matmul(const MatmulStep& step, const ExecutorRun& run, int32_t variables, const gemm::Device& device, const gemm::Finisher* finisher, const gemm::Place& place)
{
    const std::span<const int64_t> values(run.variables, size_t(variables));
    Placed::Numbers x[2], y;
    for (size_t i = 0; i < 2; i++) step.in[i].at(run, variables, x[i]);
    step.out.at(run, variables, y);
    const Axes axes = axes_of(step, x, y, values);
    Problem p = problem_of(step, axes);
    p.a = x[0].data, p.b = x[1].data, p.c = y.data;
    if (step.prologue) p.prologue.text = step.prologue->in_numbers(values, run.scalars, run.buffers);
    const EpilogueFolds* const folds = step.epilogue ? step.epilogue->folds() : nullptr;
    if (step.epilogue) {
        const EpilogueTensor& result = step.epilogue->result();
        char* const base = step.epilogue->has_result() ? run.buffers[result.buffer] : nullptr;
        p.c = base ? base + result.access.offset.value(values) * bytes_of(result.type) : nullptr;
        p.epilogue = step.is_listed ? step.epilogue->in_list(run.scalars) : step.epilogue->in_numbers(values, run.scalars);
        if (folds && ((!finisher && !step.is_listed) || !can_fold(*folds, axes))) return false;
        uint64_t fold_bytes = 0;
        if (folds) step.parts->count = parts_of(step, p, finisher ? *finisher : gemm::listed_parts(p, device, place.workspace_bytes)), fold_bytes = aligned(uint64_t(step.parts->count * folds->count.value(values)) * 4);
        place_tensors(step, axes, values, p), find_tensors(step, run, values, fold_bytes, p);
    }
    const int64_t repeats = axes.repeats();
    if (p.m == 0 || p.n == 0 || p.batches == 0 || repeats == 0) return !folds;           // of nothing, folds are something
    if (!p.c && !p.is_unstored) return !step.epilogue || !step.epilogue->is_wanted(run.buffers);         // of several results another may be
    if (finisher) {
        if (!are_alike(axes, p) || !gemm::run_finished(p, device, *finisher, place)) return false;
        for (int64_t i = 1; i < repeats; i++) (void)gemm::run_finished(moved(axes, p, i), device, *finisher, place);
        return true;
    }
    if (step.is_listed) {
        if (!are_alike(axes, p) || !gemm::run_listed(p, device, place)) return false;
        for (int64_t i = 1; i < repeats; i++) (void)gemm::run_listed(moved(axes, p, i), device, place);
        return true;
    }
    if (!gemm::can_run(p, device, place.workspace_bytes)) return false;
    for (int64_t i = 0; i < repeats; i++) gemm::run(moved(axes, p, i), device, place);
    return true;
}

}  // namespace ng::cuda
