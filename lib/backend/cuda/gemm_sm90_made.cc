// Hopper's products of bytes that a text makes halves of: the instance of a width of tiles, how many blocks share one, and how long that takes.
#include "jit/error.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <cmath>

namespace ng::cuda::gemm::sm90 {
namespace {

// What a finisher says of itself, in its variant.
uint32_t variant_of(const Form& form)
{
    const Problem& p = form.problem;
    return uint32_t(form.a.is_turned) | uint32_t(p.b_type == Dtype::bf16) << 2 | uint32_t(p.a_type) << 3;
}

// Fitted to 296 times of 27 problems on an H100 (2026-11-26), of which it chooses what is within 0.6 % of the fastest in the mean, 7 at worst: a step is what
// is made and multiplied, or its bytes where all multiprocessors want theirs at once. What a text does to each weighs less since bytes become floats without
// conversions (60 times of 3 problems, H100, 2026-11-27).
double cost_us(const Form& form, const Device& device, int32_t columns, int32_t cluster)
{
    constexpr double LAUNCH_US = 0.65, STEP_US = 0.172, COLUMN_US = 0.0017, CODE_US = 0.097, WEIGHT_US = 0.042, SHARE = 0.91, NORM = 6;
    constexpr double FILL_US = 1.7, STORE_US = 0.025, ROUND_US = 1.75, MEET_US = 0.55, BLOCK_US = 0.25;
    const Problem& p = form.problem;
    const double column_tiles = double(divided_up(p.n, columns)), batches = double(p.batches);
    const double blocks = double(divided_up(p.m, int64_t(kernels::MADE_ROWS))) * column_tiles * batches * cluster, resident = resident_blocks(device, 1, cluster);
    const double rounds = std::ceil(blocks / resident), steps = std::ceil(double(steps_of(form)) / cluster);
    const double readers = column_tiles * (form.a.batches > 1 ? 1 : batches);
    const double made = STEP_US + COLUMN_US * columns + WEIGHT_US * p.prologue.weight + (is_float(p.a_type) ? CODE_US : 0);
    const double bytes = std::min(blocks, resident) / readers * double(kernels::MADE_ROWS * kernels::MADE_STEP) / (SHARE * device.memory_bytes_per_us);
    const double step = std::pow(std::pow(made, NORM) + std::pow(bytes, NORM), 1 / NORM);
    const double met = cluster > 1 ? MEET_US + BLOCK_US * cluster : 0;
    return LAUNCH_US + rounds * (steps * step + STORE_US * columns / cluster + FILL_US) + (rounds - 1) * ROUND_US + met;
}

}  // namespace

std::optional<Finisher> made_finisher_of(const Problem& problem, const Device& device, int32_t columns)
{
    Form form;
    // Its threads have no rows of a part together, as what is about a pivot wants.
    if (device.compute != 90 || problem.is_pivoted || !make_made_form(problem, false, form)) return std::nullopt;
    const Problem& p = form.problem;
    Finisher f = {false, uint32_t(columns), variant_of(form), kernels::made_shared(uint32_t(columns)), {}, 16, 1, p.epilogue.inner > 0, true};
    for (int k = p.epilogue.loads; k < p.epilogue.count; k++) f.kinds[k] = kernels::EpilogueKind(p.epilogue.tensor[k].kind);
    if (has_folds_over(p, kernels::OVER_COLUMNS)) f.part_length = int32_t(kernels::split_unit(uint32_t(columns))) * 8;
    return f;
}

bool make_made_form(const Problem& problem, const Finisher& finisher, Form& form)
{
    if (problem.is_pivoted || !make_made_form(problem, true, form) || variant_of(form) != finisher.variant || (problem.epilogue.inner > 0 && !finisher.has_outer)) return false;
    const Problem& p = form.problem;
    for (int k = p.epilogue.loads; k < p.epilogue.count; k++)
        if (p.epilogue.tensor[k].kind != finisher.kinds[k]) return false;
    return true;
}

MadeChoice choose_made(const Form& form, const Device& device, int32_t columns)
{
    MadeChoice best = {1, HUGE_VAL};
    for (int32_t cluster = 1; cluster <= MOST_CLUSTER && cluster <= steps_of(form); cluster++) {
        const double us = cost_us(form, device, columns, cluster);
        if (us < best.us) best = {cluster, us};
    }
    return best;
}

FunctionWords made_product_of(const Finisher& f)
{
    return {"split_threads(MADE_ROWS), 1", "GemmMadeNumbers",
            text("run_made<MadeShape<", f.variant & 4 ? "OfBf16" : "OfF16", ", ", f.instance, ", ", f.variant & 1 ? "false" : "true", ">>")};
}

}  // namespace ng::cuda::gemm::sm90
