// Hopper's products with an epilogue's list, by shipped kernels: which of these runs one, and how what it reads comes.
#include "lib/backend/cuda/gemm_sm90.h"

namespace ng::cuda::gemm::sm90 {
namespace {

int32_t part_of(const Form& form) { return has_folds_over(form.problem, kernels::OVER_COLUMNS) ? kernels::LIST_TILE_COLUMNS : kernels::LIST_PART_ROWS; }

}  // namespace

Finisher listed_finisher(const Form& form, uint32_t instance)
{
    const Problem&  p = form.problem;
    const Instance& i = instances()[instance];
    Finisher f = {false, instance, form.variant, 0, {}, part_of(form), 1, true};
    f.is_listed = true;
    if (i.is_split) return f;
    bool has_box = false;
    for (int k = 0; k < p.epilogue.loads; k++) {
        const bool is_vector = can_come(p, k, kernels::OF_COLUMNS) || can_come(p, k, kernels::OF_ROWS);
        if (!has_box && !is_vector && !has_folds(p) && can_come(p, k, kernels::BY_ENGINE)) f.kinds[k] = kernels::BY_ENGINE, has_box = true;
    }
    const kernels::TilesFinish finish = has_box ? BOXED_FINISH : LISTED_FINISH;
    uint32_t vectors = 0;
    for (int k = 0; k < p.epilogue.loads && vectors < finish.vectors; k++) {
        if (can_come(p, k, kernels::OF_COLUMNS)) f.kinds[k] = kernels::OF_COLUMNS, vectors++;
        else if (can_come(p, k, kernels::OF_ROWS)) f.kinds[k] = kernels::OF_ROWS, vectors++;
    }
    f.shared_bytes = kernels::tiles_layout(row_of(i), form.b.is_turned, finish).bytes;
    return f;
}

bool takes_list(const Form& form, uint32_t instance)
{
    const Instance& i = instances()[instance];
    if (i.group != form.group || i.first_listed == NO_KERNEL || !has_listed_folds(form.problem)) return false;
    // Splits fold nothing: few of their products last so long that a kernel behind them counts.
    return i.is_split ? !has_folds(form.problem) : form.problem.is_unstored || leaves_by_engine(form.problem);
}

namespace {

// What models of texts do not know: code that no other launch has brought near, and that the step behind is interpreted until it is compiled.
// As seven lists at 512^3 (one), 1024^3, 4096^3 and of 384 products of 128 x 128 x 64 took, and the interpreter behind the product (H200, 2026-11-25).
double more_us(const Problem& p, const Instance& i, bool is_compiled)
{
    constexpr double TILES_US = 3, SPLIT_US = 1.5, INTERPRETED_US = 0.12e-6;      // INTERPRETED: of a sum, for each instruction that the list is
    return (i.is_split ? SPLIT_US : TILES_US) - (is_compiled ? 0 : INTERPRETED_US) * p.epilogue_weight * double(p.batches) * double(p.m) * double(p.n);
}

// Of the instances that carry out lists. None has parts in memory.
std::optional<Choice> least_of_listed(const Form& form, const Device& device)
{
    std::optional<Choice> best;
    double least = 0;
    for (uint32_t i = 0; i < instances().size(); i++) {
        const std::optional<Choice> c = takes_list(form, i) ? choose_among(form, device, 0, i) : std::nullopt;
        if (!c) continue;
        const double us = cost_us(form, device, *c);
        if (!best || us < least) best = c, least = us;
    }
    return best;
}

}  // namespace

std::optional<int32_t> listed_part(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    Form form;
    if (!sm90::can_run(problem, device, workspace_bytes) || !make_form(problem, true, form)) return std::nullopt;
    return part_of(form);
}

bool run_listed(const Problem& problem, const Device& device, const Place& place)
{
    Form form;
    if (!device.has[size_t(Image::Sm90Listed)] || !device.has[size_t(Image::Sm90Boxed)] || !make_form(problem, true, form) || copies_workspace(form) > place.workspace_bytes) return false;
    Memory* const memory = place.memory;
    std::optional<Choice> choice;
    bool is_better = false;
    if (memory && memory->is_known) {
        choice = choice_of(memory->way), is_better = memory->is_better && takes_list(form, choice->instance);
    } else {
        choice = least_of_listed(form, device);
        is_better = choice && is_better_fused(form, device, *choice, place.workspace_bytes - copies_workspace(form), more_us(problem, instances()[choice->instance], place.is_compiled));
        remember(memory, way_of(choice.value_or(Choice{})), is_better);
    }
    if (!is_better) return false;
    const Finisher finisher = listed_finisher(form, choice->instance);
    run_as(form, device, *choice, &finisher, place);
    return true;
}

}  // namespace ng::cuda::gemm::sm90
