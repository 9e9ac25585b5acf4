// Which products take an operand as it lies, in tiles how high and in how many parts, and when making it before is as fast.
#include "lib/backend/cuda/gemm_prologue.h"

#include "jit/error.h"
#include "lib/backend/cuda/gemm_mma_form.h"
#include "lib/backend/cuda/gemm_sm90.h"
#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <cmath>

namespace ng::cuda::gemm::made {
namespace {

using namespace kernels;

constexpr int32_t THREADS_OF = 32 * OPERAND_WARPS;
constexpr int32_t HEIGHTS[] = {16, 32, 64};
constexpr int64_t LEAST_PART = 256, MOST_SPLITS = 64;
constexpr uint64_t MOST_PARTIAL_BYTES = uint64_t(16) << 20;

// ---- how operands lie ------------------------------------------------------------------------------------------------------

struct Line {
    const void* data;
    int64_t lines, line, steps, depth, batch, bytes;
};
// Whether 16 bytes are read at once: along depth, or along lines.
std::optional<Near> near_of(const Line& x)
{
    const auto fits = [&](int64_t near_extent, int64_t near, int64_t far_extent, int64_t far) {
        return (near_extent <= 1 || near == 1) && (far_extent <= 1 || far * x.bytes % 16 == 0);
    };
    if (reinterpret_cast<uintptr_t>(x.data) % 16 != 0 || x.batch * x.bytes % 16 != 0) return std::nullopt;
    if (fits(x.steps, x.depth, x.lines, x.line)) return NEAR_DEPTH;
    if (fits(x.lines, x.line, x.steps, x.depth)) return NEAR_LINE;
    return std::nullopt;
}

// The problem with b as what is made.
struct Form {
    Problem p;
    Near    a, b;
};
std::optional<Form> form_of(const Problem& problem)
{
    Form f = {problem, NEAR_DEPTH, NEAR_DEPTH};
    Problem& p = f.p;
    if (p.prologue.side == Prologue::A) turn(p);
    const Dtype t = p.prologue.type;
    if (p.a_type != t || (t != Dtype::f16 && t != Dtype::bf16) || !is_float(p.c_type) || compute_of(p.c_type) != Dtype::f32) return std::nullopt;
    const int64_t batches = p.batches > 1;
    const std::optional<Near> a = near_of({p.a, p.m, p.a_row, p.k, p.a_depth, batches * p.a_batch, bytes_of(p.a_type)});
    const std::optional<Near> b = near_of({p.b, p.n, p.b_column, p.k, p.b_depth, batches * p.b_batch, bytes_of(p.b_type)});
    if (!a || !b) return std::nullopt;
    f.a = *a, f.b = *b;
    return f;
}

MmaOperand operand_of(const Line& x, Near near, Dtype t)
{
    MmaOperand o = {x.data, x.line, x.depth, x.batch, i32(t), 1, 0, near == NEAR_LINE, READ_ELEMENTS};
    (near == NEAR_DEPTH ? o.depth : o.line) = 1;
    // Where the next of one would be does not matter; but addresses of what is not read are aligned as well.
    if ((near == NEAR_DEPTH ? x.lines : x.steps) <= 1) (near == NEAR_DEPTH ? o.line : o.depth) = 0;
    return o;
}

// ---- tiles -----------------------------------------------------------------------------------------------------------------

// Few blocks with deep rings or several with short ones have as much on its way; which, depends on how many blocks there are.
struct Tile {
    int32_t  height, blocks, stages, depth;      // blocks: on a multiprocessor
    uint32_t stage_bytes;
    uint32_t shared_bytes() const { return std::max(uint32_t(stages) * stage_bytes, uint32_t(height * OPERAND_COLUMNS * 4)); }
};
constexpr int32_t BLOCKS[] = {1, 2, 3, 4};
Tile tile_of(int32_t height, int32_t blocks, Dtype raw)
{
    // Of a multiprocessor's shared memory; of a block on sm_86 and its like.
    constexpr uint32_t ROOM = 216000, LEAST_ROOM = 100000;
    Tile t = {height, blocks, 0, operand_depth(bytes_of(raw)), 0};
    t.stage_bytes = uint32_t(t.depth) * uint32_t(2 * height + bytes_of(raw) * OPERAND_COLUMNS);
    t.stages = int32_t(std::clamp((blocks == 1 ? ROOM : std::min(ROOM / uint32_t(blocks), LEAST_ROOM)) / t.stage_bytes, 3u, 16u));
    return t;
}
// Sums of high tiles take the registers of more blocks; one with all the memory is for those that have as much.
bool is_tile(int32_t height, int32_t blocks, const Device& device)
{
    return (blocks == 3 ? height == 64 : height * blocks <= 128) && (blocks > 1 || device.compute / 10 == 9 || device.compute / 10 == 10);
}

// What a finisher says of itself, in its variant.
uint32_t variant_of(const Form& f) { return uint32_t(f.a) | uint32_t(f.b) << 1 | uint32_t(f.p.prologue.type == Dtype::bf16) << 2 | uint32_t(f.p.b_type) << 3; }
Tile tile_of(const Finisher& f) { return tile_of(int32_t(f.instance & 0xff), int32_t(f.instance >> 8), Dtype(f.variant >> 3)); }

// ---- time ------------------------------------------------------------------------------------------------------------------

constexpr double LAUNCH = 4500;          // nanoseconds

// Sums of these meet in a cluster; of others, in the workspace.
bool meet(const Device& device, int64_t splits) { return device.compute >= 90 && splits > 1 && splits <= MOST_MET && (splits & (splits - 1)) == 0; }

uint64_t partial_bytes(const Problem& p, int64_t splits) { return splits <= 1 ? 0 : uint64_t(splits * p.batches * p.m * rounded_up(p.n, MMA_FOUR)) * 4; }

// Multiprocessors that have a place for clusters of so many blocks: these lie in one group of multiprocessors, and groups are of many sizes.
double resident_units(const Device& device, const Tile& t, int64_t splits)
{
    if (!meet(device, splits) || splits <= 2) return device.units;
    return device.units * (splits == 4 ? (t.blocks == 1 ? 116.0 : 120.0) : 112.0) / 132;
}

// Nanoseconds, fitted to 2500 times of 55 problems on an H200 (2026-11-22), which they meet within 15 % (rms): a block takes 270 for a stage, or
// has all its ring come in 845; what is made and added takes its time, and so does each block that shares a multiprocessor.
double cost(const Form& f, const Tile& t, int64_t splits, const Device& device)
{
    constexpr double STAGE = 270, RING = 845, HEIGHT = 0.00056, WEIGHT = 0.0075, CODE = 0.011, FLOAT_BYTE = 0.008, BLOCK = 1125, MET = 980, PARTS = 420, PARTIAL_BYTES = 4050, BYTES = 4200, NORM = 1.25;
    const Problem& p = f.p;
    const double units = resident_units(device, t, splits), blocks = double(divided_up(p.m, t.height)) * double(divided_up(p.n, OPERAND_COLUMNS)) * double(p.batches) * double(splits);
    const double each = std::ceil(blocks / units), rounds = std::ceil(each / t.blocks);
    const double stages = double(divided_up(divided_up(p.k, splits), t.depth)), elements = double(OPERAND_COLUMNS) * t.depth;
    const double made = is_integer(p.b_type) ? 0 : bytes_of(p.b_type) == 1 ? CODE : FLOAT_BYTE * bytes_of(p.b_type);
    const double alone = rounds * stages * std::max(STAGE, RING / (t.stages - 1)), works = each * stages * elements * (made + WEIGHT * p.prologue.weight + HEIGHT * t.height);
    const double parts = meet(device, splits) ? MET : splits > 1 ? PARTS + double(partial_bytes(p, splits)) * 2 / PARTIAL_BYTES : 0;
    const double memory = double(p.n) * double(p.k) * double(p.b_batch == 0 ? 1 : p.batches) * bytes_of(p.b_type) / BYTES;
    const double blocks_take = std::pow(std::pow(alone, NORM) + std::pow(works, NORM), 1 / NORM) + BLOCK * each + parts;
    return LAUNCH + std::max(blocks_take, memory + blocks_take / 8);
}

struct Choice {
    int64_t splits;
    double  nanoseconds;
};
Choice choose(const Form& f, const Tile& t, const Device& device, uint64_t workspace_bytes)
{
    Choice best = {1, HUGE_VAL};
    for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
        if (splits > 1 && (has_folds(f.p) || f.p.k / splits < LEAST_PART)) break;
        if (!meet(device, splits) && partial_bytes(f.p, splits) > std::min(workspace_bytes, MOST_PARTIAL_BYTES)) continue;
        const double ns = cost(f, t, splits, device);
        if (ns < best.nanoseconds) best = {splits, ns};
    }
    return best;
}

// A kernel that makes the operand, and the product of it.
double apart_us(const Form& f, const Device& device)
{
    // Halves that fit the second cache are read from there; so they are made and read at about what memory gives (an H200, 2026-11-22).
    constexpr double MAKING_US = 1, SHARE = 0.91;
    Problem bare = f.p;
    bare.prologue = {}, bare.epilogue_weight = 0;          // which a finisher's cost leaves out as well
    const double elements = double(bare.n) * double(bare.k) * (bare.b_batch == 0 ? 1 : double(bare.batches));
    const double making = MAKING_US + elements * (bytes_of(bare.b_type) + 2) / (SHARE * device.memory_bytes_per_us);
    bare.b_type = f.p.prologue.type, bare.b = nullptr;
    double product = HUGE_VAL;
    if (sm90::can_run(bare, device, UINT64_MAX)) product = sm90::cost_us(bare, device, sm90::workspace(bare, device, true));
    else if (mma::can_run(bare, device, UINT64_MAX)) product = mma::cost_us(bare, device, mma::workspace(bare, true));
    return making + product;
}

void run_as(const Form& f, const Tile& t, int64_t splits, const Device& device, const Place& place)
{
    const Problem& p = f.p;
    MmaOperandNumbers all{};
    MmaNumbers& n = all.product;
    n.a = operand_of({p.a, p.m, p.a_row, p.k, p.a_depth, p.a_batch, 0}, f.a, p.a_type);
    n.b = operand_of({p.b, p.n, p.b_column, p.k, p.b_depth, p.b_batch, 0}, f.b, p.b_type);
    n.c = p.c, n.m = p.m, n.n = p.n, n.k = p.k, n.batches = p.batches;
    n.c_row = p.c_row, n.c_column = p.c_column, n.c_batch = p.c_batch, n.c_type = i32(p.c_type);
    n.row_tiles = uint32_t(divided_up(p.m, t.height)), n.column_tiles = uint32_t(divided_up(p.n, OPERAND_COLUMNS));
    n.pitch = rounded_up(p.n, MMA_FOUR);
    n.split_depth = rounded_up(divided_up(p.k, splits), MMA_DEPTH);
    // Of less depth than they are cut for, the last would have none; a cluster has as many all the same.
    const bool meets = meet(device, splits);
    n.splits = int32_t(meets ? splits : std::max<int64_t>(divided_up(p.k, std::max<int64_t>(n.split_depth, 1)), 1));
    n.epilogue = settled(p);
    if (n.splits > 1 && !meets) n.partial = place.workspace;
    n.has_fours = mma::has_fours(p, mma::HalvesF16, p.c);
    all.text = p.prologue.text;
    const bool is_early = device.compute >= 90;
    const uint32_t blocks = uint32_t(int64_t(n.row_tiles) * n.column_tiles * p.batches * n.splits);
    place.launch({Image::Text, 0, {blocks, 1, 1}, uint32_t(THREADS_OF), meets ? uint32_t(n.splits) : 1, t.shared_bytes(), is_early, &all, uint32_t(sizeof all)});
    if (n.partial) place.launch({Image::Text, 1, {uint32_t(mma::sum_blocks(n)), 1, 1}, uint32_t(THREADS), 1, 0, is_early, &n, uint32_t(sizeof n)});
}

// As the finisher takes it; nothing: it is none for this problem.
std::optional<Form> form_for(const Problem& problem, const Finisher& finisher)
{
    std::optional<Form> f = form_of(problem);
    if (!f || variant_of(*f) != finisher.variant || (problem.epilogue.inner > 0 && !finisher.has_outer)) return std::nullopt;
    for (int k = f->p.epilogue.loads; k < f->p.epilogue.count; k++)
        if (f->p.epilogue.tensor[k].kind != finisher.kinds[k]) return std::nullopt;
    const double tiles = double(divided_up(f->p.m, 16)) * double(divided_up(f->p.n, OPERAND_COLUMNS)) * double(std::max<int64_t>(f->p.batches, 1));
    return tiles * double(MOST_SPLITS) < 0x1p31 ? f : std::nullopt;
}

}  // namespace

uint64_t workspace(const Problem& p)
{
    if (p.k < 2 * LEAST_PART) return 0;
    const double most = double(std::min(p.k / LEAST_PART, MOST_SPLITS)) * double(p.batches) * double(rounded_up(p.m, MMA_FOUR)) * double(rounded_up(p.n, MMA_FOUR)) * 4;
    return aligned(uint64_t(std::min(most, double(MOST_PARTIAL_BYTES))));
}

std::optional<Finisher> finisher_of(const Problem& problem, int32_t height, int32_t blocks)
{
    const std::optional<Form> f = form_of(problem);
    if (!f) return std::nullopt;
    Finisher finisher = {true, uint32_t(height | blocks << 8), variant_of(*f), tile_of(height, blocks, f->p.b_type).shared_bytes(), {}, height, OPERAND_WARPS, problem.epilogue.inner > 0, true};
    for (int k = f->p.epilogue.loads; k < f->p.epilogue.count; k++) finisher.kinds[k] = EpilogueKind(f->p.epilogue.tensor[k].kind);
    if (has_folds(f->p) && finisher.kinds[f->p.epilogue.count - 1] == OVER_COLUMNS) finisher.part_length = OPERAND_COLUMNS, finisher.parts_each = 1;
    return finisher;
}

std::optional<Finisher> finisher_for(const Problem& problem, const Device& device)
{
    const std::optional<Form> f = form_of(problem);
    if (!f || device.compute < 80 || f->p.m == 0 || f->p.n == 0 || f->p.k == 0) return std::nullopt;
    int32_t height = 0, blocks = 0;
    double  least = apart_us(*f, device) * 1000;
    for (const int32_t h : HEIGHTS)
        for (const int32_t b : BLOCKS) {
            const double ns = is_tile(h, b, device) ? choose(*f, tile_of(h, b, f->p.b_type), device, UINT64_MAX).nanoseconds : HUGE_VAL;
            if (ns < least) least = ns, height = h, blocks = b;
        }
    std::optional<Finisher> best = height ? finisher_of(problem, height, blocks) : std::nullopt;
    sm90::Form hoppers;
    if (device.compute != 90 || !sm90::make_made_form(problem, true, hoppers)) return best;
    for (const int32_t columns : sm90::MADE_COLUMNS) {
        const double ns = sm90::choose_made(hoppers, device, columns).us * 1000;
        if (ns < least) least = ns, best = sm90::made_finisher_of(problem, device, columns);
    }
    return best;
}

FunctionWords product_of(const Finisher& f)
{
    if (!f.is_portable) return sm90::made_product_of(f);
    const Tile t = tile_of(f);
    const auto near = [&](uint32_t bit) { return f.variant & bit ? "NEAR_LINE" : "NEAR_DEPTH"; };
    return {text(THREADS_OF, ", ", t.blocks), "MmaOperandNumbers",
            text("made_tile<MadeShape<", f.variant & 4 ? "HalvesBf16" : "HalvesF16", ", ", t.height, ", ", t.stages, ", ", near(1), ", ", near(2), ">>")};
}
FunctionWords sum_of(const Finisher& f)
{
    return f.is_portable ? FunctionWords{"THREADS", "MmaNumbers", "made_sum"} : sm90::sum_of();
}

bool run_in_parts(const Problem& problem, const Device& device, const Finisher& finisher, int64_t splits, const Place& place)
{
    if (!finisher.is_portable) {
        sm90::Form form;
        if (!sm90::make_made_form(problem, finisher, form) || splits > kernels::MOST_BLOCKS || splits > sm90::steps_of(form)) return false;
        run_made(form, device, int32_t(splits), finisher, place);
        return true;
    }
    const std::optional<Form> f = form_for(problem, finisher);
    if (!f || (!meet(device, splits) && partial_bytes(f->p, splits) > place.workspace_bytes)) return false;
    run_as(*f, tile_of(finisher), splits, device, place);
    return true;
}

namespace {

bool run_hoppers(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place)
{
    sm90::Form form;
    if (!sm90::make_made_form(problem, finisher, form)) return false;
    const Memory* const m = place.memory;
    if (m && m->is_known) {
        if (m->is_better) run_made(form, device, m->way.cluster, finisher, place);
        return m->is_better;
    }
    const sm90::MadeChoice choice = sm90::choose_made(form, device, int32_t(finisher.instance));
    const std::optional<Form> f = form_of(problem);
    const bool is_better = f && choice.us < apart_us(*f, device);
    remember(place.memory, {false, false, finisher.instance, choice.cluster, 1, 1}, is_better);
    if (is_better) run_made(form, device, choice.cluster, finisher, place);
    return is_better;
}

}  // namespace

bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place)
{
    if (!finisher.is_portable) return run_hoppers(problem, device, finisher, place);
    const std::optional<Form> f = form_for(problem, finisher);
    if (!f) return false;
    Memory* const m = place.memory;
    const Tile t = tile_of(finisher);
    if (!m || !m->is_known) {
        const Choice choice = choose(*f, t, device, place.workspace ? place.workspace_bytes : 0);
        const bool is_better = choice.nanoseconds < apart_us(*f, device) * 1000;
        if (!m) return is_better && run_in_parts(problem, device, finisher, choice.splits, place);
        remember(m, {true, false, finisher.instance, 1, int32_t(choice.splits), 1}, is_better);
    }
    if (!m->is_better) return false;
    run_as(*f, t, m->way.splits, device, place);
    return true;
}

}  // namespace ng::cuda::gemm::made
