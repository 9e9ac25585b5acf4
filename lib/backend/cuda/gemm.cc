// Hands a product to the family of kernels that is the fastest to take it.
#include "lib/backend/cuda/gemm.h"

#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_prologue.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "lib/backend/cuda/gemm_tuned.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace ng::cuda::gemm {
namespace {

// Of one row or column, whose other operand is read once: the portable family has kernels for those of words and doubles, and is the faster there.
bool is_of_vector(const Problem& p)
{
    const bool is_alone = p.batches == 1 || (p.a_batch != 0 && p.b_batch != 0);
    return std::min(p.m, p.n) == 1 && is_alone && bytes_of(p.a_type) >= 4 && p.a_type == p.b_type;
}

// Whether batches of small products are faster by the portable family, which has several tiles on a multiprocessor, than by Hopper's, whose blocks have one each: of these
// the model knows neither what memory takes, nor what rows of c that are no multiples of 16 bytes do.
// Nothing of other products.
std::optional<bool> prefers_portable_tiles(const Problem& p, const Device& device, uint64_t workspace_bytes)
{
    constexpr double ODD_ROWS = 1.5, SURELY = 0.9;
    if (p.batches <= 1 || p.prologue.side != Prologue::None) return std::nullopt;
    const double portable = mma::cost_of_many_us(p, device, workspace_bytes);
    if (portable == HUGE_VAL) return std::nullopt;
    const double bytes = double(p.batches) * (double(p.m + p.n) * double(p.k) * bytes_of(p.a_type) + double(p.m) * double(p.n) * bytes_of(p.c_type));
    const bool   is_of_planes = p.a_type == Dtype::f32 && !p.allows_tf32, is_odd = (is_of_planes || !sm90::copies(p)) && std::max(std::abs(p.c_row), std::abs(p.c_column)) * bytes_of(p.c_type) % 16 != 0;
    return portable < SURELY * std::max(sm90::cost_us(p, device, workspace_bytes) * (is_odd ? ODD_ROWS : 1), bytes / device.memory_bytes_per_us);
}

// What Hopper's kernels must copy first can take longer than all of the portable ones; and few doubles, which those cut in depth.
bool prefers_sm90(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    if (!sm90::can_run(problem, device, workspace_bytes)) return false;
    if (is_of_vector(problem)) return !mma::can_run(problem, device, workspace_bytes);
    if (const std::optional<bool> is_portable = prefers_portable_tiles(problem, device, workspace_bytes)) return !*is_portable;
    const bool is_plain = !sm90::copies(problem) && problem.a_type != Dtype::f64;
    if (is_plain || !mma::can_run(problem, device, workspace_bytes)) return true;
    return sm90::cost_us(problem, device, workspace_bytes) <= mma::cost_us(problem, device, workspace_bytes);
}

// Whether Hopper's kernels, with what follows in them, lose to the portable ones and a kernel behind those; which the memory then knows.
bool is_better_behind(const Problem& problem, const Device& device, const Place& place)
{
    constexpr double BEHIND_US = 3;
    Memory* const m = place.memory;
    if ((m && m->is_known) || !is_of_vector(problem)) return false;
    Problem bare = problem;
    bare.epilogue_weight = 0;
    if (!mma::can_run(bare, device, place.workspace_bytes)) return false;
    if (mma::cost_us(bare, device, place.workspace_bytes) + BEHIND_US >= sm90::cost_us(bare, device, place.workspace_bytes)) return false;
    if (m) m->is_known = true, m->is_better = false;
    return true;
}

// Nothing is known after this of another problem than the last, but what was measured.
void look_up(const Problem& p, const Device& device, const Place& place, const Finisher* finisher)
{
    Memory* const m = place.memory;
    if (!m) return;
    const auto is_placed = [](const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; };
    const Memory::Key key = {shape_of(p), place.workspace_bytes, place.tuned ? place.tuned->count() : 0, is_placed(p.a), is_placed(p.b), is_placed(p.c), place.is_compiled};
    if (m->key == key) return;
    m->key = key, m->is_known = false;
    const std::optional<Measured> measured = place.tuned ? place.tuned->find(key.shape) : std::nullopt;
    if (!measured || !can_run_so(p, device, place.workspace_bytes, measured->way)) return;
    if (finisher && (finisher->makes_operand || finisher->is_portable != measured->way.is_portable || finisher->instance != measured->way.instance)) return;
    m->way = measured->way, m->is_known = m->is_better = true;
}

}  // namespace

void turn(Problem& p)
{
    std::swap(p.a, p.b), std::swap(p.a_type, p.b_type), std::swap(p.m, p.n);
    std::swap(p.a_row, p.b_column), std::swap(p.a_depth, p.b_depth), std::swap(p.a_batch, p.b_batch);
    std::swap(p.c_row, p.c_column);
    if (p.prologue.side != Prologue::None) p.prologue.side = p.prologue.side == Prologue::A ? Prologue::B : Prologue::A;
    for (int i = 0; i < p.epilogue.count; i++) {
        kernels::EpilogueTensor& t = p.epilogue.tensor[i];
        std::swap(t.row, t.column);
        if (t.kind >= kernels::OVER_COLUMNS) t.kind = t.kind == kernels::OVER_COLUMNS ? kernels::OVER_ROWS : kernels::OVER_COLUMNS;
    }
}

std::span<const KernelFacts> kernels_of(Image image)
{
    switch (image) {
    case Image::Sm90Half:
    case Image::Sm90Byte:
    case Image::Sm90Wide: return sm90::kernels_of(image);
    case Image::Sm90Listed:
    case Image::Sm90Boxed: return sm90::listed_kernels_of(image);
    case Image::Mma: return mma::kernels();
    case Image::MmaListed: return mma::listed_kernels();
    default: return {};
    }
}

bool needs(Image image, Dtype a, Dtype b, bool has_list)
{
    const bool is_half = (a == Dtype::f16 || a == Dtype::bf16) && a == b;
    switch (image) {
    case Image::Sm90Half: return is_half;
    case Image::Sm90Byte: return bytes_of(a) == 1 && bytes_of(b) == 1 && is_float(a) == is_float(b);
    case Image::Sm90Wide: return (a == Dtype::f32 || a == Dtype::f64) && a == b;
    case Image::Mma: return mma::takes(a, b);
    case Image::MmaListed: return has_list && mma::takes(a, b);
    case Image::Sm90Listed: return has_list && (needs(Image::Sm90Half, a, b) || needs(Image::Sm90Byte, a, b) || (a == Dtype::f32 && b == a));
    case Image::Sm90Boxed: return needs(Image::Sm90Listed, a, b, has_list);
    default: return false;
    }
}

uint64_t workspace(const Problem& largest, const Device& device, bool is_fixed)
{
    if (largest.prologue.side != Prologue::None) return made::workspace(largest);
    return std::max(device.compute == 90 ? sm90::workspace(largest, device, is_fixed) : 0, mma::workspace(largest, is_fixed));
}

bool can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    return problem.epilogue_weight == 0 && (sm90::can_run(problem, device, workspace_bytes) || mma::can_run(problem, device, workspace_bytes));
}

void run(const Problem& problem, const Device& device, const Place& place)
{
    look_up(problem, device, place, nullptr);
    const bool is_known = place.memory && place.memory->is_known;
    const bool is_portable = is_known ? place.memory->way.is_portable : !prefers_sm90(problem, device, place.workspace_bytes);
    if (is_portable) mma::run(problem, device, place);
    else sm90::run(problem, device, place);
}

kernels::Epilogue settled(const Problem& p)
{
    kernels::Epilogue e = p.epilogue;
    if (e.inner == 0) e.inner = std::max<int64_t>(p.batches, 1);
    for (int i = 0; i < e.count; i++) {
        kernels::EpilogueTensor& t = e.tensor[i];
        const auto are_together = [&](int64_t count) {
            const int64_t unit = std::min<int64_t>(16, count * t.bytes);
            const auto    fits = [&](int64_t stride, int64_t extent) { return extent == 1 || stride * t.bytes % unit == 0; };
            const bool are_batches = fits(t.batch, p.batches) && (p.epilogue.inner == 0 || fits(e.outer[i], p.batches));
            return t.column == 1 && reinterpret_cast<uintptr_t>(t.data) % uint64_t(unit) == 0 && fits(t.row, p.m) && are_batches;
        };
        const bool is_read = i < e.loads;
        t.together = is_read && (t.column == 0 || p.n == 1) ? 0 : are_together(kernels::EPILOGUE_MOST) ? kernels::EPILOGUE_MOST : are_together(2) ? 2 : 1;
    }
    return e;
}

std::vector<Way> ways(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    std::vector<CostedWay> all;
    sm90::add_ways(problem, device, workspace_bytes, all);
    mma::add_ways(problem, device, workspace_bytes, all);
    std::ranges::stable_sort(all, {}, &CostedWay::us);
    std::vector<Way> best;
    for (const CostedWay& w : all)
        if (w.us <= all.front().us * WAYS_WITHIN) best.push_back(w.way);
    return best;
}

bool can_run_so(const Problem& problem, const Device& device, uint64_t workspace_bytes, const Way& way)
{
    return way.is_portable ? mma::can_run_so(problem, device, workspace_bytes, way) : sm90::can_run_so(problem, device, workspace_bytes, way);
}

void run_so(const Problem& problem, const Device& device, const Way& way, const Place& place)
{
    Memory memory;
    memory.is_known = true, memory.way = way;
    const Place so = {place.workspace, place.workspace_bytes, place.launch, place.launch_basic, place.driver, &memory};
    if (way.is_portable) mma::run(problem, device, so);
    else sm90::run(problem, device, so);
}

// ---- with an epilogue's text ------------------------------------------------------------------------------------------------

std::optional<Finisher> finisher_for(const Problem& problem, const Device& device, const Way* way)
{
    if (problem.prologue.side != Prologue::None) return made::finisher_for(problem, device);
    const auto prefers_portable = [&] { return (is_of_vector(problem) && problem.a_type != Dtype::f64 && !has_folds(problem)) || prefers_portable_tiles(problem, device, UINT64_MAX).value_or(false); };
    const bool is_portable = way ? way->is_portable : !sm90::can_run(problem, device, UINT64_MAX) || prefers_portable();
    return is_portable ? mma::finisher_for(problem, device, way) : sm90::finisher_for(problem, device, way);
}

bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place)
{
    look_up(problem, device, place, &finisher);
    if (finisher.makes_operand) return made::run_finished(problem, device, finisher, place);
    if (finisher.is_portable) return mma::run_finished(problem, device, finisher, place);
    return !is_better_behind(problem, device, place) && sm90::run_finished(problem, device, finisher, place);
}

// ---- with an epilogue's list ------------------------------------------------------------------------------------------------

bool run_listed(const Problem& problem, const Device& device, const Place& place)
{
    look_up(problem, device, place, nullptr);
    if (!sm90::can_run(problem, device, place.workspace_bytes) || prefers_portable_tiles(problem, device, place.workspace_bytes).value_or(false)) return mma::run_listed(problem, device, place);
    return !is_better_behind(problem, device, place) && sm90::run_listed(problem, device, place);
}

Finisher listed_parts(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    Finisher f = MOST_LISTED_PARTS;
    const std::optional<int32_t> hoppers = sm90::listed_part(problem, device, workspace_bytes);
    f.part_length = hoppers ? *hoppers : mma::listed_part(problem);
    return f;
}

}  // namespace ng::cuda::gemm
