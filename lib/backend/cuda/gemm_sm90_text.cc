// Hopper's products with an epilogue's text: the instance that it is compiled into, how what it reads comes, and when that runs.
#include "jit/error.h"
#include "lib/backend/cuda/gemm_sm90.h"

#include <algorithm>

namespace ng::cuda::gemm::sm90 {
namespace {

// Folds are of whole sums, which no block has where parts of these go to the workspace.
uint64_t partial_room(const Problem& p, uint64_t room) { return has_folds(p) ? 0 : room; }

bool lies_on_units(const Problem& p, int64_t row, int64_t batch, int64_t bytes)
{
    return (p.m == 1 || (row > 0 && row * bytes % 16 == 0)) && (p.batches == 1 || (batch >= 0 && batch * bytes % 16 == 0));
}

}  // namespace

// Whether the tensor may come so. Boxes go where results of 16 bits leave by the copy engine.
bool can_come(const Problem& p, int tensor, kernels::EpilogueKind kind)
{
    const kernels::EpilogueTensor& t = p.epilogue.tensor[tensor];
    const int64_t inner = p.epilogue.inner, far = p.epilogue.outer[tensor];
    const bool is_one_axis = inner == 0 || t.batch == 0 || far == 0 || far == t.batch * inner;
    switch (kind) {
    case kernels::OF_COLUMNS: return t.row == 0 && t.bytes <= 4;
    case kernels::OF_ROWS: return t.column == 0 && t.bytes <= 4;
    case kernels::BY_ENGINE:
        return t.bytes == 2 && t.column == 1 && reinterpret_cast<uintptr_t>(t.data) % 16 == 0 && lies_on_units(p, t.row, t.batch, 2) && bytes_of(p.c_type) == 2 && p.n % 8 == 0 &&
               is_one_axis && (inner == 0 || lies_on_units(p, t.row, far, 2)) &&
               reinterpret_cast<uintptr_t>(p.c) % 16 == 0 && lies_on_units(p, p.c_row, p.c_batch, 2);
    default: return true;
    }
}

bool leaves_by_engine(const Problem& p)
{
    const int64_t bytes = bytes_of(p.c_type);
    const bool    is_taken = p.c_type == Dtype::f16 || p.c_type == Dtype::bf16 || p.c_type == Dtype::f32;
    return is_taken && p.n * bytes % 16 == 0 && reinterpret_cast<uintptr_t>(p.c) % 16 == 0 && (p.m == 1 || p.c_row > 0) && (p.batches == 1 || p.c_batch > 0) && lies_on_units(p, p.c_row, p.c_batch, bytes);
}

Finisher finisher_of(const Form& form, uint32_t instance)
{
    const Instance& i = instances()[instance];
    const Form      own = form_of(form, i);
    const Problem&  p = own.problem;
    Finisher f = {false, instance, own.variant, 0, {}, 16, 1, p.epilogue.inner > 0};
    for (int k = p.epilogue.loads; k < p.epilogue.count; k++) f.kinds[k] = kernels::EpilogueKind(p.epilogue.tensor[k].kind);
    f.has_few_rows = form.has_few_rows;
    // As kernels/gemm_folds.cuh cuts a tile: a fold over columns goes through all of its own, or through a unit's.
    if (has_folds(p) && f.kinds[p.epilogue.count - 1] == kernels::OVER_COLUMNS) f.part_length = i.is_split ? int32_t(kernels::split_unit(uint32_t(i.n))) * 8 : i.n;
    if (i.is_split) {
        f.shared_bytes = shared_of(i);
        return f;
    }
    uint32_t vectors = 0;
    bool     has_box = false;
    for (int k = 0; k < p.epilogue.loads; k++) {
        if (vectors < kernels::FINISH_VECTORS && can_come(p, k, kernels::OF_COLUMNS)) f.kinds[k] = kernels::OF_COLUMNS, vectors++;
        else if (vectors < kernels::FINISH_VECTORS && can_come(p, k, kernels::OF_ROWS)) f.kinds[k] = kernels::OF_ROWS, vectors++;
        else if (!has_box && can_come(p, k, kernels::BY_ENGINE)) f.kinds[k] = kernels::BY_ENGINE, has_box = true;
    }
    f.shared_bytes = kernels::tiles_layout(row_of(i), form.b.is_turned, {true, has_box, vectors}).bytes;
    return f;
}

FunctionWords product_of(const Finisher& finisher)
{
    const Instance&   i = instances()[finisher.instance];
    const std::string shape = shape_of(i, finisher.variant);
    if (i.is_cut) return {"CUT_THREADS, 1", "GemmSplitNumbers", text("run_cut<", shape, ">")};
    if (i.is_odd) return {text("split_threads(", i.m, "), ", i.units), "GemmOddNumbers", text("run_odd<", shape, ">")};
    if (i.is_split) return {text("split_threads(", i.m, "), ", i.units), "GemmSplitNumbers", text("run_split<", shape, ">")};
    return {text("tiles_threads(", i.m, ", ", i.turns ? "true" : "false", "), 1"), "GemmTilesNumbers", text("run_tiles<", shape, ">")};
}

std::optional<Finisher> finisher_for(const Problem& problem, const Device& device, const Way* way)
{
    Form form;
    if (device.compute != 90 || !make_form(problem, false, form) || !device.has[size_t(form.image)]) return std::nullopt;
    const Choice choice = way && is_possible(form, choice_of(*way)) ? choice_of(*way) : choose(form, device, partial_room(problem, MOST_PARTIAL_BYTES));
    if (!is_better_fused(form, device, choice, MOST_PARTIAL_BYTES)) return std::nullopt;
    return finisher_of(form, choice.instance);
}

namespace {

// Whether the text is for types, and operands and tensors that lie, as these.
bool is_for(const Finisher& finisher, const Form& form)
{
    const Instance& instance = instances()[finisher.instance];
    if (!takes_group(form, instance)) return false;
    const Form     own = form_of(form, instance);
    const Problem& p = own.problem;
    if (own.variant != finisher.variant || (p.epilogue.inner > 0 && !finisher.has_outer)) return false;
    for (int i = 0; i < p.epilogue.loads; i++)
        if (!can_come(p, i, finisher.kinds[i])) return false;
    for (int i = p.epilogue.loads; i < p.epilogue.count; i++)
        if (p.epilogue.tensor[i].kind != finisher.kinds[i]) return false;
    return true;
}

}  // namespace

bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place)
{
    Form form;
    // A text is for few rows or for many, whatever the number is now.
    if (!make_form(problem, true, form, finisher.has_few_rows) || form.has_few_rows != finisher.has_few_rows || !is_for(finisher, form)) return false;
    if (copies_workspace(form) > place.workspace_bytes) return false;
    const Memory* const memory = place.memory;
    if (memory && memory->is_known) {
        if (memory->is_better) run_as(form, device, choice_of(memory->way), &finisher, place);
        return memory->is_better;
    }
    const uint64_t room = place.workspace_bytes - copies_workspace(form);
    const std::optional<Choice> choice = choose_among(form, device, partial_room(problem, room), finisher.instance);
    // Without this text few rows may be columns.
    Form bare;
    const bool may_be_few = !finisher.has_few_rows && make_form(problem, true, bare) && bare.has_few_rows;
    const bool is_better = choice && is_better_fused(form, device, *choice, room, 0, may_be_few ? &bare : nullptr);
    remember(place.memory, way_of(choice.value_or(Choice{})), is_better);
    if (!is_better) return false;
    run_as(form, device, *choice, &finisher, place);
    return true;
}

}  // namespace ng::cuda::gemm::sm90
