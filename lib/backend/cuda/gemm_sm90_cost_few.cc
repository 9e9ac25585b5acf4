// What Hopper's splits would take for products of few rows or columns, of which the other operand is nearly all that is read.
#include "lib/backend/cuda/gemm_sm90_cost.h"

#include "lib/backend/cuda/rounding.h"

#include <cmath>

namespace ng::cuda::gemm::sm90 {

// What an epilogue makes of a split's store: of as many columns as the units of one warp have, or half of them where two warps share a unit. Differences of
// times of 15 shapes of f16 (each two ways), tf32 and bytes with a bias, and with gelu and a residual (H100, 2026-11-27).
double finish_us(const Problem& p, const Instance& i, int32_t cluster)
{
    constexpr double COLUMN_US = 0.008, WEIGHT_US = 0.00116, READ_US = 0.004;
    if (p.epilogue_weight == 0) return 0;
    const int64_t units = divided_up(int64_t(kernels::split_units(uint32_t(i.m), uint32_t(i.n))), cluster), warps = i.m / 16;
    const double  a_warp = units * 2 <= warps ? 0.3 : double(divided_up(units, warps));
    return a_warp * kernels::split_unit(uint32_t(i.n)) * 8 * (COLUMN_US + WEIGHT_US * p.epilogue_weight + READ_US * (vectors_of(p) + 2 * matrices_of(p)));
}

SplitBlocks blocks_of(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    const Problem&  p = form.problem;
    const SplitTile tile = split_tile(form, device, i, c);
    const double    blocks = double(divided_up(p.m, tile.rows) * divided_up(p.n, tile.columns) * p.batches) * c.cluster * c.splits;
    const auto      resident = [&](int32_t units) { return resident_blocks(device, units, c.cluster); };
    return {tile, blocks, blocks > resident(1) ? double(i.units) : 1.0, std::ceil(blocks / resident(i.units)), std::ceil(double(steps_of(form, i)) / (double(c.cluster) * c.splits))};
}

namespace {

constexpr int64_t MOST_COLUMNS = 32;     // that are few

// So many rows, or columns, by many of the other operand.
bool has_few_lines(const Problem& p, int64_t few, int64_t many, int64_t most)
{
    constexpr int64_t LEAST_LINES = 1024, LEAST_DEPTH = 1024;
    return few <= most && many >= LEAST_LINES && p.k >= LEAST_DEPTH && bytes_of(p.a_type) <= 2;
}
bool has_much_else(const Problem& p)     // of the other operand
{
    constexpr int64_t LEAST_BYTES = 4000000;
    return std::max(p.m, p.n) * p.k * bytes_of(p.a_type) >= LEAST_BYTES;
}

}  // namespace

// As many as one text has, or a few.
bool has_some_lines(const Problem& p)
{
    constexpr int64_t LEAST_LINES = 129, MOST_LINES = 512;
    const int64_t few = std::min(p.m, p.n);
    return p.batches == 1 && few >= LEAST_LINES && has_few_lines(p, few, std::max(p.m, p.n), MOST_LINES) && has_much_else(p);
}
// Of few columns, or rows, the other operand is nearly all that is read, of which memory gives some 94 % of its rate, or less where multiprocessors have unequal
// shares of it; beside that a block has its own pace, by what is under way to it. Of what else is small c is no less than that operand, and split_us and
// tiles_us know that.
bool has_few_columns(const Problem& p) { return has_few_lines(p, p.n, p.m, MOST_COLUMNS); }

namespace {

// More than become columns (make_form).
bool has_few_rows(const Problem& p)
{
    constexpr int64_t MOST_ROWS = 128;
    return has_few_lines(p, p.m, p.n, MOST_ROWS) && has_much_else(p);
}

}  // namespace

bool takes_few_lines(const Form& form, const Instance& i)
{
    const Problem& p = form.problem;
    return (has_few_columns(p) || has_few_rows(p) || has_some_lines(p)) && i.is_split && !i.is_cut && !i.is_odd && i.group == form.group;
}

namespace {

// Columns: fitted to 5700 times of 319 shapes of f16, e4m3 and int8, 1 to 32 columns of 1024 to 128256 rows (H200, 2026-11-29): what it chose took 1.2 % more
// than the fastest way in the mean, 10 at worst, where split_us took 2.6 and 28; with where blocks are (placement_of) and what alone ones cost, of 260 shapes of f16 0.8 and 9.5 %, without
// 2.2 and 21. Rows: to 7400 times of 252 shapes, 40 to 128 rows by 1024 to 28672 columns (the same
// day): 0.9 and 9 %, where split_us took 3.4 and 27. Some lines: to 21700 times of 784 shapes, 129 to 512 rows by 1024 to 28672 columns, and 10 % more, as tiles_us says of such (the
// same day): 1.6 and 22 %, where split_us took 2.5 and 43; of 902 others 1.7 and 31.
struct FewLines {
    double launch_us, share, blocks_share, idle_share, norm, line_us, few_line, sum_us, moved_sum_us, round_us, latency_us, turned_latency_us;
    double met_us, block_us, handed_sum_us, parts_us, part_us;
    double few_bytes_a_us, again_bytes_a_us;         // of the few lines, by each tile; of the other operand, once more
};
constexpr double ALL = 1e30;
constexpr FewLines FEW_COLUMNS = {2.17, 0.936, 0.0243, 0.187, 2.69, 0.00141, 1, 3.89e-5, 1.88e-5, 0.63, 1.09, 0.727, 0.06, 0.03, 3.36e-5, 1.54, 0.296, ALL, ALL};
constexpr FewLines FEW_ROWS = {2.455, 0.9647, 0.01531, 0.6258, 2.868, 0.001612, 0.3229, 2.458e-5, 1.609e-5, 2.434, 1.152, 1.009, 0.06949, 0.0189, 7.37e-5, 2.25, 0.2956, 6.02e7, 2.81e7};
constexpr FewLines SOME_LINES = {3.752, 1.145, 0.06859, 0.04173, 2.419, 0.0007089, 0.2752, 2.352e-5, 6.704e-6, 3.041, 1.34, 1.205, 0.01639, 0.02704, 6.821e-5, 1.921, 0.2588, 2.334e7, 1.432e7};

// How much of what is there is idle: of pairs of multiprocessors, which share a port, of multiprocessors, or of what they hold; where more is to come, nothing.
double idle_of(const Device& device, const Instance& i, double blocks)
{
    for (const double places : {device.units / 2.0, double(device.units), double(device.units) * i.units})
        if (blocks <= places) return 1 - blocks / places;
    return 0;
}
// How much longer blocks of tiles read, each with a multiprocessor for itself, round after round, than all multiprocessors would; those of a last round are where others end.
double uneven_rounds_of(const Device& device, const Instance& i, double blocks)
{
    if (blocks <= device.units && may_stand_together(i)) return 1 / placement_of(device, 1, i.cluster, blocks).share;
    const double full = std::floor(blocks / device.units) * device.units, last = blocks - full;
    return (full + (last > 0 ? last / share_alone(device, 1, last) : 0)) / blocks;
}
// Of parts that meet in memory.
double parts_us(const Form& form, const Device& device, const Choice& c, const FewLines& f)
{
    constexpr double BYTES_A_US = 4.2e6;
    return c.splits == 1 ? 0 : f.parts_us + f.part_us * c.splits + double(partial_bytes(form, device, c)) * 2 / BYTES_A_US;
}

}  // namespace

double few_lines_us(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    // Of a block that has a multiprocessor for itself: nothing is read until the next one has begun, nor does the next launch begin there early. Of bytes, and where an operand is turned, the latter was not seen.
    constexpr double ALONE_ROUND_US = 2, ALONE_US = 0.3;
    const Problem&  p = form.problem;
    const bool      are_columns = p.n < p.m;
    const bool      is_known = has_few_columns(p), are_few_rows = !is_known && has_few_rows(p);      // known: where blocks are
    const FewLines& f = is_known ? FEW_COLUMNS : are_few_rows ? FEW_ROWS : SOME_LINES;
    const Source&   other = are_columns ? form.a : form.b;
    const bool      is_turned = other.is_turned;
    const auto [tile, blocks, together, equal_rounds, steps] = blocks_of(form, device, i, c);
    const int32_t held = held_blocks(i);
    const bool    is_alone = is_known && held == 1;
    const double  rounds = is_known ? std::ceil(blocks / resident_blocks(device, held, c.cluster)) : equal_rounds;
    const double row_bytes = double(p.k) * element_bytes(form), few_bytes = double(p.batches) * double(std::min(p.m, p.n)) * row_bytes, many_bytes = double(other.batches) * double(std::max(p.m, p.n)) * row_bytes;
    const double row_tiles = double(divided_up(p.m, tile.rows)), column_tiles = double(divided_up(p.n, tile.columns));
    const double many_tiles = are_columns ? row_tiles : column_tiles, few_tiles = are_columns ? column_tiles : row_tiles;
    const double few = are_columns ? (form.b.is_turned ? form.step : i.n) : tile.rows, many = are_columns ? tile.rows : is_turned ? form.step : tile.columns;
    const double sums = i.m * i.n, lines = many + f.few_line * few;
    // Tiles that are as many as find room leave nothing idle to speak of; those whose operand is turned are as many as they are.
    const double shared = 1 + f.blocks_share * (c.cluster - 1), idle = is_turned ? f.idle_share * idle_of(device, i, blocks) : 0;
    const Placement place = placement_of(device, held, c.cluster, blocks);
    const double reading = !is_known || c.cluster > 1 ? shared + idle : rounds > 1 ? 1 : 1 / place.share;
    const double streamed = many_bytes / (f.share * device.memory_bytes_per_us) * reading +
                            few_bytes * many_tiles / f.few_bytes_a_us + many_bytes * (few_tiles - 1) / f.again_bytes_a_us;
    const double multiplied = sums * (f.sum_us + (form.group == Group::Half ? 0 : f.moved_sum_us));
    const double step = std::max({lines * f.line_us * together, (is_turned ? f.turned_latency_us : f.latency_us) / (c.cluster > 1 ? i.kept : i.stages), multiplied * together});
    const double paced = rounds * steps * step;
    double us = f.launch_us + std::pow(std::pow(streamed, f.norm) + std::pow(paced, f.norm), 1 / f.norm) + (rounds - 1) * (is_alone ? ALONE_ROUND_US : f.round_us) + rounds * together * finish_us(p, i, c.cluster);
    if (c.cluster > 1) us += f.met_us + f.block_us * (c.cluster - 1) + sums * f.handed_sum_us;
    // Few rows of halves by columns along depth: blocks of which more than half of all multiprocessors have one each take longer than the others' times say (78 shapes, H200, 2026-11-30).
    constexpr double CROWDED = 1.08;
    const bool is_straight = form.group == Group::Half && !form.a.is_turned && !form.b.is_turned;
    if (are_few_rows && is_straight && held == 1 && c.cluster == 1 && rounds == 1 && blocks > device.units / 2.0 && place.together == 1) us *= CROWDED;
    return us + (is_alone && is_straight ? ALONE_US : 0) + parts_us(form, device, c, f);
}

double least_streamed_us(const Form& form, const Form& own, const Device& device, const Instance& i)
{
    constexpr double LAUNCH_US = 2.4, SHARE = 0.9;       // as times of 156 shapes have it, 48, 64 and 128 rows by 1024 to 151936 columns (H200, 2026-11-30)
    const Problem& p = own.problem;
    if (!has_few_rows(form.problem) || form.group != Group::Half) return 0;
    const double blocks = i.is_stream_k ? device.units : double(divided_up(p.m, i.m) * divided_up(p.n, i.n) * p.batches);
    const double bytes = double(p.batches) * double(std::max(p.m, p.n)) * double(p.k) * element_bytes(form);
    return LAUNCH_US + bytes / (SHARE * device.memory_bytes_per_us) * uneven_rounds_of(device, i, blocks);
}

// ---- few columns of which there is little else --------------------------------------------------------------------------------

bool has_small_columns(const Problem& p)
{
    constexpr int64_t MOST_ELEMENTS = 13000000;
    return p.batches == 1 && p.n <= MOST_COLUMNS && !has_few_columns(p) && p.m * p.k <= MOST_ELEMENTS && bytes_of(p.a_type) == 2;
}
bool takes_small_columns(const Form& form, const Instance& i) { return has_small_columns(form.problem) && i.is_split && !i.is_cut && !i.is_odd && i.group == form.group; }
bool takes_odd_columns(const Form& form, const Instance& i) { return i.is_odd && form.problem.batches == 1 && form.problem.n <= MOST_COLUMNS; }

namespace {

// Of a row-major b all blocks ask for the same few lines of the second cache at once: how often for each.
double asked_of(const Form& form, double row_tiles, double sectors)
{
    constexpr double LINE_BYTES = 128, LEAST_LINES = 8;
    const Problem&   p = form.problem;
    return form.b.is_turned ? row_tiles * double(p.k) * sectors / std::max(double(p.k) * double(p.n) * element_bytes(form) / LINE_BYTES, LEAST_LINES) : 0;
}

}  // namespace

// Fitted to 11900 times of 309 shapes of f16, 1 to 32 columns of 64 to 12288 rows, most with less depth than 1024 (H200, 2026-11-29). With odd_columns_us what is
// chosen for 476 such shapes is 5 % from the fastest way in the mean, where it was 13.
double small_columns_us(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    constexpr double LAUNCH_US = 1.422, LINE_US = 0.001442, FEW_LINE = 0.639, LATENCY_US = 1.103, TURNED_LATENCY_US = 1.19, SUM_US = 2.88e-5, ROUND_US = 1.614, BYTE_US = 5.67e-7, ASKED_US = 0.00274;
    constexpr double MET_US = 0.0758, BLOCK_US = 0.0937, HANDED_SUM_US = 9.45e-5, STORED_SUM_US = 2.206e-4, NORM = 2.69, SECTOR_BYTES = 32;
    const Problem& p = form.problem;
    const auto [tile, blocks, together, rounds, steps] = blocks_of(form, device, i, c);
    const double sums = i.m * i.n, lines = tile.rows + FEW_LINE * (form.b.is_turned ? form.step : tile.columns);
    const double step = std::max({lines * LINE_US * together, (form.a.is_turned ? TURNED_LATENCY_US : LATENCY_US) / (c.cluster > 1 ? i.kept : i.stages), sums * SUM_US * together});
    const double streamed = double(p.m) * double(p.k) * element_bytes(form) * BYTE_US, paced = rounds * steps * step;
    const double asked = ASKED_US * asked_of(form, double(divided_up(p.m, tile.rows)), std::min(i.n, form.step) * element_bytes(form) / SECTOR_BYTES);
    double us = LAUNCH_US + std::pow(std::pow(streamed, NORM) + std::pow(paced, NORM) + std::pow(asked, NORM), 1 / NORM) + (rounds - 1) * ROUND_US;
    us += sums / c.cluster * STORED_SUM_US + rounds * together * finish_us(p, i, c.cluster) + parts_us(form, device, c, FEW_COLUMNS);
    return c.cluster == 1 ? us : us + MET_US + BLOCK_US * (c.cluster - 1) + sums * HANDED_SUM_US;
}

// A step's lines are moved in shared memory, which nothing hides where blocks are few. Fitted to 2050 times of 250 shapes of f16 (the same day), which it meets
// within 15 % (rms).
constexpr double ODD_LAUNCH_US = 2.5, ODD_STEP_US = 0.5;
double odd_columns_us(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    constexpr double TALL = 1.32, BLOCK_US = 0.0615, STORE_US = 0.972, ASKED_US = 0.001, SECTORS = 4;
    const Problem& p = form.problem;
    const auto [tile, blocks, together, rounds, steps] = blocks_of(form, device, i, c);
    const double each = std::clamp(blocks / device.units, 1.0, double(i.units)), tall = i.m > 64 ? TALL : 1;
    const double store = STORE_US * i.m / 64 * double(p.n) / i.n / c.cluster;
    const double us = ODD_LAUNCH_US + rounds * each * (steps * ODD_STEP_US * tall + store + finish_us(p, i, c.cluster)) + ASKED_US * asked_of(form, double(divided_up(p.m, i.m)), SECTORS);
    return us + parts_us(form, device, c, FEW_COLUMNS) + (c.cluster == 1 ? 0 : BLOCK_US * c.cluster);
}
double least_odd_us(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    const SplitBlocks b = blocks_of(form, device, i, c);
    return ODD_LAUNCH_US + b.rounds * b.steps * ODD_STEP_US;
}

}  // namespace ng::cuda::gemm::sm90
