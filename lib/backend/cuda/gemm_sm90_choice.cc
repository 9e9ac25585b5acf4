// Which of Hopper's instances runs a product: those that can, and the least of what they would take.
#include "lib/backend/cuda/gemm_sm90_cost.h"

#include "lib/backend/cuda/rounding.h"

#include <algorithm>

namespace ng::cuda::gemm::sm90 {
namespace {

// own: form_of the choice's instance.
bool is_possible(const Form& form, const Form& own, const Choice& c)
{
    constexpr int64_t SHORT_DEPTH = 64;
    const Instance& i = instances()[c.instance];
    if (std::min({c.cluster, c.splits, c.group}) < 1 || c.cluster > MOST_CLUSTER || c.splits > MOST_SPLITS) return false;    // measured ways come from a file
    if (!takes_group(form, i) || (is_apart(form) && !i.is_split)) return false;
    const Problem& p = form.problem;
    const int64_t  blocks = divided_up(own.problem.m, i.m) * divided_up(own.problem.n, i.n) * p.batches * c.cluster * c.splits;
    if (blocks * (i.is_stream_k ? steps_of(form) : 1) > int64_t(1) << 30) return false;
    // Sums that move to f32 leave no registers for an epilogue, nor for the rarer types, beside so wide a tile; and what an epilogue
    // reads comes by boxes of 64 columns of c as it lies (IS_BARE).
    const bool is_bare = !i.is_split && (takes_turned(i) || (i.group == Group::Byte && i.n > 128) || i.n % 64 != 0 || i.turns);
    if (!i.is_split && is_swapped(form, i) && p.c_type != Dtype::f16 && p.c_type != Dtype::bf16) return false;
    if (is_bare && (p.epilogue_weight > 0 || p.c_type == Dtype::e4m3 || p.c_type == Dtype::e5m2)) return false;
    if (!i.is_split) return c.cluster == i.cluster && c.splits == 1;
    if (p.is_pivoted || (i.turns && has_folds(p))) return false;         // its blocks have no rows of a part together, or, of c's transpose, lanes no columns
    if (c.splits > 1 && has_folds(p) && p.epilogue_weight > 0) return false;         // sums that meet in memory are folded nowhere, whatever was measured of the product alone
    if (i.is_odd && !takes_odd(form)) return false;
    if (i.is_cut && !(form.a.lies_even && form.b.lies_even)) return false;
    // Chains of so few multiply-adds are as exact as these for numbers of all sizes, or more; and what is small enough for that goes by them.
    if (i.is_cut && i.m == 64 && i.n == 64 && p.k <= SHORT_DEPTH) return false;
    return int64_t(c.cluster) * c.splits <= steps_of(form, i) && (c.splits == 1 || may_meet_in_memory(form));
}

}  // namespace

bool   is_possible(const Form& form, const Choice& c) { return is_possible(form, form_of(form, instances()[c.instance]), c); }

double cost_us(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    Form form;
    if (!make_form(problem, true, form)) return 0;
    return cost_us(form, device, choose(form, device, workspace_bytes - copies_workspace(form)));
}

namespace {

constexpr int32_t  CLUSTERS[] = {2, 3, 4, 5, 6, 8};
constexpr uint32_t ALL = UINT32_MAX;
constexpr int64_t  MOST_CUT_ROUNDS = 2;     // tiles of f32 whose depth is cut all the same, so that the last round is full
constexpr int64_t  SMALL_CLUSTER = 3;       // of few columns, for whose tiles smaller blocks in more rounds leave less idle: 8 x 11008 x 4096, row-major, 29 us, so 25 (H200, 2026-11-29)

// Every choice worth a look, with what it takes: look(choice, us). only: one instance, or ALL.
template <class Look>
void each_choice(const Form& form, const Device& device, uint64_t most_partial_bytes, uint32_t only, const Look& look)
{
    int32_t narrowest = 0;               // of splits, which stand in this order
    for (uint32_t i = 0; i < instances().size(); i++) {
        const Instance& instance = instances()[i];
        if (!takes_group(form, instance) || (only != ALL && i != only)) continue;
        const Form     own = form_of(form, instance);
        const Problem& p = own.problem;
        const auto     offer = [&](Choice c) {
            if (!is_possible(form, own, c) || partial_bytes(form, device, c) > most_partial_bytes) return;
            if (instance.is_split) c.group = placement_of(device, held_blocks(instance), c.cluster, blocks_of(own, device, instance, c).blocks).together;
            look(c, cost_us(form, own, device, c));
        };
        offer({i, instance.cluster, 1, 8});
        if (!instance.is_split) continue;
        // Half a tile for nothing, where a narrower one is there: not worth a look, unless it spares a copy. No more parts than a device holds at once.
        if (narrowest == 0) narrowest = instance.n;
        if (!instance.is_cut && !instance.is_odd && instance.n > narrowest && instance.n >= 2 * p.n) continue;
        const int64_t tiles = divided_up(p.m, instance.m) * divided_up(p.n, instance.n) * p.batches;
        const int64_t room = instance.is_cut && tiles <= MOST_CUT_ROUNDS * device.units ? MOST_CLUSTER : int64_t(device.units) * instance.units / tiles;
        const int64_t most = has_few_columns(p) ? std::max(room, SMALL_CLUSTER) : room;
        for (const int32_t cluster : CLUSTERS)
            if (cluster <= most) offer({i, cluster, 1, 1});
        if (steps_of(form) < DEEP) continue;
        for (int32_t splits = 2; splits <= MOST_SPLITS && splits <= room; splits *= 2)
            for (int32_t cluster = 1; cluster <= 4 && splits * cluster <= room; cluster *= 2) offer({i, cluster, splits, 1});
    }
}

// Nothing where none can run this.
std::optional<Choice> least_of(const Form& form, const Device& device, uint64_t most_partial_bytes, uint32_t only)
{
    std::optional<Choice> best;
    double least = 0;
    each_choice(form, device, most_partial_bytes, only, [&](const Choice& c, double us) {
        if (!best || us < least) least = us, best = c;
    });
    return best;
}

}  // namespace

Choice choose(const Form& form, const Device& device, uint64_t most_partial_bytes)
{
    return least_of(form, device, most_partial_bytes, ALL).value_or(Choice{});
}

std::optional<Choice> choose_among(const Form& form, const Device& device, uint64_t most_partial_bytes, uint32_t instance)
{
    return least_of(form, device, most_partial_bytes, instance);
}

namespace {

// What a kernel behind the product takes, which reads all sums, and writes c again.
double behind_us(const Form& form)
{
    constexpr double LAUNCH_US = 2, BYTES_A_US = 3.3e6;
    const Problem& p = form.problem;
    double bytes = 4 + (p.is_unstored ? 0 : bytes_of(p.c_type));
    for (int i = 0; i < p.epilogue.count; i++) bytes += p.epilogue.tensor[i].row && p.epilogue.tensor[i].column ? p.epilogue.tensor[i].bytes : 0;
    const double sums = double(p.batches) * double(p.m) * double(p.n), repeats = double(std::max<int64_t>(p.repeats, 1));
    if (!has_folds(p) && !p.is_read_again) return LAUNCH_US / repeats + sums * bytes / BYTES_A_US;
    // Beside folds: few enough sums come from the second cache; and columns meet in a launch of their own.
    constexpr double CACHED_BYTES = 40e6, CACHED_BYTES_A_US = 7.5e6, COLUMNS_US = 3.5, FEW_SUMS = 2e6, FOLDED_BYTES_A_US = 3.7e6;
    const bool meets = sums <= FEW_SUMS && has_folds(p) && p.epilogue.tensor[p.epilogue.count - 1].kind == kernels::OVER_ROWS;
    return LAUNCH_US + (meets ? COLUMNS_US : 0) + sums * bytes / (sums * 4 <= CACHED_BYTES ? CACHED_BYTES_A_US : FOLDED_BYTES_A_US);
}

// What comes behind all the same: the launch, and who reads c again; or parts of folds, hundreds of times fewer elements.
double still_behind_us(const Form& form)
{
    // PIVOTED: as variances of 4096^2 sums took on an H200 (2026-11-22) beside folds; their texts have fewer instructions since, not measured yet.
    constexpr double PARTS_US = 3, BYTES_A_US = 3.3e6, PIVOTED_SUMS_A_US = 0.31e6;
    const Problem& p = form.problem;
    if (p.is_read_again) return PARTS_US + double(p.batches) * double(p.m) * double(p.n) * bytes_of(p.c_type) / BYTES_A_US;
    return has_folds(p) ? PARTS_US + (p.is_pivoted ? double(p.batches) * double(p.m) * double(p.n) / PIVOTED_SUMS_A_US : 0) : 0;
}

}  // namespace

bool is_better_fused(const Form& form, const Device& device, const Choice& fused, uint64_t room, double more_us, const Form* without)
{
    Form bare = without ? *without : form;
    bare.problem.epilogue_weight = 0;
    return cost_us(form, device, fused) + more_us + still_behind_us(form) < cost_us(bare, device, choose(bare, device, room)) + behind_us(form);
}

void add_ways(const Problem& problem, const Device& device, uint64_t workspace_bytes, std::vector<CostedWay>& ways)
{
    Form form;
    if (!sm90::can_run(problem, device, workspace_bytes) || !make_form(problem, true, form)) return;
    each_choice(form, device, workspace_bytes - copies_workspace(form), ALL, [&](Choice c, double us) {
        ways.push_back({way_of(c), us});
        // The model knows no difference of these.
        for (const int32_t group : {1, 4, 16})
            if (!instances()[c.instance].is_split) c.group = group, ways.push_back({way_of(c), us});
    });
}

bool can_run_so(const Problem& problem, const Device& device, uint64_t workspace_bytes, const Way& way)
{
    Form form;
    if (way.instance >= instances().size()) return false;
    if (!sm90::can_run(problem, device, workspace_bytes) || !make_form(problem, true, form)) return false;
    return is_possible(form, choice_of(way)) && partial_bytes(form, device, choice_of(way)) <= workspace_bytes - copies_workspace(form);
}

}  // namespace ng::cuda::gemm::sm90
