// What each of Hopper's instances would take for a product, by a model of the multiprocessor and the memory.
#include "lib/backend/cuda/gemm_sm90_cost.h"

#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <cmath>

namespace ng::cuda::gemm::sm90 {
namespace {

using namespace kernels;

constexpr double UNFITTED = 2;           // times what the model says where it was not fitted, so that others are chosen

// What follows is in microseconds. Its numbers were fitted to 12905 times of 392 shapes of f16, bf16, tf32, e4m3 and int8 on an H200
// (2026-11-22, tests/bench/choice_gpu.cc): least squares of logarithms, then steps that made what is chosen faster. It meets those times
// within 15 % (rms). What it chose took 1.5 % more than the fastest way in the mean, of 234 other shapes 2.7 %. But the clock that is left
// is what an earlier fit had, for 0.2 ms of a way do not show what lasting power leaves of it, and ROUND_US was tried out with it.

// How often rows from the second cache count: those that do not lie on its lines several times, and most where depth is not along them.
double crossing_of(const Form& form, const Source& s)
{
    constexpr double  CROSSING = 5.09, CROSSING_TURNED = 7.26;
    constexpr int64_t LINE_BYTES = 128;
    const int64_t off = s.pitch * (form.planes == 3 ? 2 : bytes_of(form.problem.a_type)) % LINE_BYTES;
    return 1 + (s.is_turned ? CROSSING_TURNED : CROSSING) * (off == 0 ? 0 : off == LINE_BYTES / 2 ? 0.5 : 1);
}

// Whether half of what tiles load comes while shared memory gives what they multiply: where they have 64 columns, and rows of a that lie on lines are
// read twice at most, or few enough to stay near. So times of 147 shapes of f16 and bf16 have it (H200, 2026-11-24); those of tf32 and bytes do not.
bool is_light(const Form& form, const Instance& i)
{
    constexpr double NEAR_BYTES = 8e6;
    const Problem& p = form.problem;
    return !i.is_split && i.group == Group::Half && i.n <= 64 && crossing_of(form, form.a) == 1 && (p.n <= 2 * i.n || double(p.m) * double(p.k) * element_bytes(form) <= NEAR_BYTES);
}

// A step of depth of a tile: by the tensor cores or, where tiles are small, by shared memory, which gives them 128 bytes a cycle
// and takes what is loaded; by the clock that is left where many work and power ends; by rows from the second cache.
double step_us(const Form& form, const Device& device, const Instance& i, double working)
{
    constexpr double CYCLES_A_US = 1980, ROW_US = 0.000333;
    const double limited_cycles_a_us = has_fast_memory(device) ? 1565 : CYCLES_A_US;
    if (is_double(form)) {
        constexpr double PRODUCTS_A_US = 16600, DOUBLE_ROW_US = 0.00038, BOX_US = 0.043;
        // One thread asks for all boxes, of which a turned operand has many: of small tiles that decides.
        const int boxes = (form.a.is_turned ? i.m / form.step : 1) + (form.b.is_turned ? i.n / form.step : 1);
        return std::max(i.m * i.n / PRODUCTS_A_US + (i.m + i.n) * DOUBLE_ROW_US, boxes * BOX_US);
    }
    // What moving sums to f32 makes of a product, most where wide tiles leave no registers to do so meanwhile; and of its power, what its type does. Bytes of
    // 76 shapes of any number of rows (H200, 2026-11-29).
    const double moved = form.group == Group::Byte && i.n > 128 ? 1.3 : form.group == Group::Byte || form.group == Group::Wide ? 1.13 : 1;
    const double powered = form.group == Group::Byte ? 1.05 : 1;
    const auto rows_of = [&](const Source& x, int64_t rows, int32_t tile, int32_t sharers) { return double(std::min<int64_t>(rows, tile)) / sharers * crossing_of(form, x); };
    const double rows = rows_of(form.a, form.problem.m, i.m, i.across) + rows_of(form.b, form.problem.n, i.n, i.down);
    const double multiply = i.m * i.n / 32.0, shared = i.m / 64.0 * (i.n + 64) + (i.m + i.n) * (is_light(form, i) ? 0.5 : 1);
    const auto   cube = [](double x) { return x * x * x; };
    return std::cbrt(cube(std::max(multiply * moved, shared) / CYCLES_A_US) + cube(multiply * powered * working / limited_cycles_a_us) + cube(rows * working * ROW_US));
}

// What reading and writing adds to that. What several columns (rows) of tiles read comes again, and from farther away: once counts, the
// others find it where it was brought.
struct Traffic {
    double bytes_a_us, stored_bytes_a_us, bytes_again_a_us;
};
double traffic_us(const Form& form, const Instance& i, const Traffic& t)
{
    const Problem& p = form.problem;
    const double   element = element_bytes(form), a = double(p.m) * double(p.k) * element, b = double(p.k) * double(p.n) * element, c = double(p.m) * double(p.n) * double(bytes_of(p.c_type));
    const double   again = (p.n > i.n * i.across ? a : 0) + (p.m > i.m * i.down ? b : 0);
    return double(p.batches) * ((a + b) / t.bytes_a_us + c / t.stored_bytes_a_us + again / t.bytes_again_a_us);
}

// What more it is where the copy engine cannot store a warpgroup's sums.
double by_threads_us(const Problem& p, double sums)
{
    constexpr double SUM_US = 0.000125;
    const int64_t    beside = p.c_column == 1 ? p.n : p.m;       // or swapped
    return beside * bytes_of(p.c_type) % 16 != 0 ? sums * SUM_US : 0;
}

bool is_of_one_group(const Instance& i) { return tiles_groups(uint32_t(i.m), i.turns) == 1; }
// Warpgroups that share a tile.
int32_t groups_of(const Instance& i) { return i.schedule < 0 ? 1 : int32_t(tiles_groups(uint32_t(i.m), i.turns)); }

// Strips of 16 rows of c leave by as many at once as there are buffers for, 64 of a warpgroup's columns after the other (store_turned).
double strips_us(const Form& form, const Instance& i)
{
    constexpr double  TURN_US = 1.45;
    constexpr int32_t STRIP = 16, STRIPS_A_BUFFER = 4;
    const int32_t buffers = int32_t(layout_of(form, i).buffers);
    return TURN_US * double(i.m / (64 * groups_of(i)) * divided_up(divided_up(i.n, STRIP), buffers * STRIPS_A_BUFFER));
}

// Of a warpgroup's part of a tile: by the copy engine, by threads, or by either after an epilogue. What epilogues take was fitted to
// 560 times of 8 texts at 11 shapes of f16 on an H200 (2026-11-22), which they meet within 9 % (rms). But BYTES: for a thread's sum.
double sums_of_warpgroup(const Instance& i) { return i.m * i.n / double(groups_of(i)); }
double compute_us(const Problem& p, const Instance& i)
{
    constexpr double WEIGHT_US = 0.00135, MATRIX_US = 0.0135;
    return sums_of_warpgroup(i) / 128 * (WEIGHT_US * p.epilogue_weight + MATRIX_US * matrices_of(p));
}
double store_us(const Form& form, const Instance& i)
{
    constexpr double BYTES_A_US = 19900, FINISH_US = 0.0090;
    const Problem& p = form.problem;
    const double   sums = sums_of_warpgroup(i), bytes = i.m * i.n * double(bytes_of(p.c_type));
    if (p.epilogue_weight > 0) return sums / 128 * FINISH_US + compute_us(p, i);
    return std::max(bytes / BYTES_A_US, i.turns ? strips_us(form, i) : 0) + by_threads_us(p, sums);
}

// How much longer pingpong takes alone than in pairs. Of tf32 whose b is turned before 4 to 10 %; where b lies as it should, 1.5 % less (H200, 3 and 11 shapes).
// Where threads store c 2 to 30 % for 51 of 55 shapes of f16 and bf16 with more rows and depth than these, -1 to 6 % for 24 others (H100, 2026-11-26; one of the
// former, on an H200, 10 %).
double alone(const Form& form)
{
    constexpr int64_t FEW_ROWS = 1536, LITTLE_DEPTH = 1536;
    const Problem& p = form.problem;
    if (form.b.copying == Copying::Strided) return 1.08;
    return by_threads_us(p, 1) > 0 && p.m > FEW_ROWS && p.k >= LITTLE_DEPTH ? 1.05 : 1;
}

constexpr int64_t FEW_LINES = 128;       // rows of c up to which tiles of its transpose were not fitted to what follows
// Of tiles of c's transpose that shared memory limits, and of a single warpgroup's where the operand that their rows are of is more than STREAMED_BYTES: as times of 640 shapes of f16,
// 92 of them under lasting power, too, and 257 of bytes have it, 132 to 3001 rows (H200, 2026-11-30).
double by_extents(const Form& form, const Instance& i)
{
    struct Fitted {
        Group   group;
        int32_t m, n;
        double  factor;
    };
    constexpr Fitted FITTED[] = {{Group::Half, 64, 72, 1.05}, {Group::Half, 64, 88, 1.02}, {Group::Half, 64, 120, 0.9}, {Group::Half, 64, 136, 0.93}, {Group::Half, 64, 152, 0.95}, {Group::Half, 128, 72, 0.9}, {Group::Half, 128, 104, 0.98}, {Group::Half, 128, 112, 0.94},
                                 {Group::Half, 128, 120, 0.96}, {Group::Half, 128, 136, 0.98}, {Group::Half, 192, 72, 0.92}, {Group::Half, 192, 80, 0.86}, {Group::Half, 192, 88, 0.92}, {Group::Half, 192, 104, 0.94}, {Group::Half, 192, 112, 0.96}, {Group::Half, 192, 152, 1.19},
                                 {Group::Half, 256, 96, 0.94}, {Group::Half, 256, 104, 0.96}, {Group::Byte, 64, 72, 1.1}, {Group::Byte, 64, 120, 0.95}, {Group::Byte, 64, 152, 1.12}, {Group::Byte, 128, 72, 0.92}, {Group::Byte, 128, 88, 0.98}, {Group::Byte, 128, 104, 0.98},
                                 {Group::Byte, 128, 120, 0.98}, {Group::Byte, 128, 136, 1.04}};
    constexpr double STREAMED = 1.14, STREAMED_BYTES = 4e7;
    const Problem&      p = form.problem;
    const bool          is_streamed = is_of_one_group(i) && double(p.m) * double(p.k) * element_bytes(form) > STREAMED_BYTES;
    const Fitted* const f = std::ranges::find_if(FITTED, [&](const Fitted& x) { return i.turns && p.n > FEW_LINES && x.group == i.group && x.m == i.m && x.n == i.n; });
    return (f == std::end(FITTED) ? 1 : f->factor) * (is_streamed ? STREAMED : 1);
}

// What times of short runs, which all this was fitted to, do not show is the clock that lasting power leaves; nor did pingpong have six stages then. Times
// of 220 shapes in turns with cuBLASLt's, of 60 of all tiles in turns, and with epilogues of 10, also each for long, do (H200, 2026-11-23): wide tiles gain
// less than they should, pingpong more, beside an epilogue in pairs above all; tiles of c's transpose less, least where threads store.
double lasting(const Form& form, const Device& device, const Instance& i)
{
    const bool   has_epilogue = form.problem.epilogue_weight > 0, is_pingpong = i.schedule < 0;
    const bool   is_turned = i.group == Group::Turned;
    const double wide = (i.group == Group::Half || i.group == Group::Round || is_turned) && i.n > 192 && !has_epilogue ? 1.04 : 1;
    const double narrow = is_turned && i.n <= 64 ? 1.18 : 1;     // as times of 86 shapes have it (H100, 2026-11-26), where the others of Turned are as Round's
    const double pingpong = !is_pingpong ? 1 : has_epilogue ? (i.cluster > 1 ? 0.925 : 0.965) : i.group == Group::Whole && has_fast_memory(device) ? 0.92 : 0.96;
    const double turned = !i.turns ? 1 : !is_pingpong ? 1.01 : by_threads_us(form.problem, 1) > 0 ? 1.08 : layout_of(form, i).stages > uint32_t(i.stages) ? 1.03 : 1.05;
    // Alone and with b as it lies, 128x96 takes 5 to 14 % less than others beside it (140 shapes, 35 to 3001 rows, 2026-11-29).
    const double ninety_six = i.group == Group::Half && i.n == 96 && !i.turns && !form.a.is_turned ? 0.93 : 1;
    return wide * narrow * ninety_six * by_extents(form, i) * turned * pingpong * (is_pingpong && i.cluster == 1 ? alone(form) : 1);
}

// What it takes stream-K to leave sums in memory, and to add them; where there are more clusters than tiles, of several clusters for each tile. As times of 420 shapes of f16
// have it, 132 to 1400 rows by 1024 to 28672 columns (H200, 2026-11-29): what is chosen with it is 1.7 % from the fastest way in the mean, where without stream-K it
// was 3.5.
double dealt_us(double waves)
{
    constexpr double MEETING_US = 6, MORE_US = 2;
    return MEETING_US + MORE_US * std::max(0.0, 1 / waves - 1);
}

// Of some lines of halves: wide tiles in pairs take longer beside others than the model says, of c's transpose by pingpong most; those of 96 and 144 columns alone less, where hardly
// a place is empty. As times of 420 shapes have it, and of 192 under lasting power (H200, 2026-11-29): what is chosen of 129 to 512 lines is 1.0 % from the fastest way
// in the mean, was 1.9. And what nearly fills one round takes less than splits, several rounds and fewer tiles: of 240 other shapes what is chosen is 1.2 % from the
// fastest way (was 1.6), of 21 under lasting power 1.2 (1.7); 250 x 5120 x 5120 28 us in place of 36 (2026-11-30).
double some_lines(const Form& form, const Device& device, const Instance& i)
{
    constexpr double TURNED_PINGPONG = 1.12, PAIRS = 1.04, FULL = 0.9, FULL_WAVES = 0.93, ONE_ROUND = 0.9, ONE_ROUND_WAVES = 0.8;
    const Tiling t = tiling_of(form, device, i);
    if (i.group != Group::Half || (i.is_stream_k && !t.is_full()) || !has_some_lines(form.problem)) return 1;
    const double waves = t.waves(), round = !i.is_stream_k && waves >= ONE_ROUND_WAVES && waves <= 1 ? ONE_ROUND : 1;
    if (i.schedule < 0) return round * (i.turns ? TURNED_PINGPONG : 1);
    if (i.cluster > 1) return round * (i.n > 128 || i.turns ? PAIRS : 1);
    return i.n % 64 != 0 && !form.a.is_turned && waves >= FULL_WAVES * std::ceil(waves) ? FULL : round;
}

double tiles_us(const Form& form, const Device& device, const Instance& i)
{
    constexpr double LAUNCH_US = 0.844, LIGHT_LAUNCH_US = 1.05, CLUSTER_US = 0.628, ROUND_US = 0.75, OPEN_ROUND_US = 0.661, SLOWED = 0.4;
    constexpr int32_t WIDEST_OF_FEW = 192;   // columns of tiles of c's transpose that were timed of few of its rows
    constexpr Traffic TRAFFIC = {2.3e7, 2.3e7, 1.23e7};
    const Problem& p = form.problem;
    const Tiling   t = tiling_of(form, device, i);
    const bool     is_dealt = i.is_stream_k && !t.is_full();
    const double   rounds = is_dealt ? t.waves() : double(divided_up(t.tiles, t.together)), working = t.waves() / rounds;
    const bool   has_epilogue = p.epilogue_weight > 0, is_pingpong = i.schedule < 0;
    const double tile = lasting(form, device, i) * double(steps_of(form)) * products_of(form.planes) * step_us(form, device, i, working), store = store_us(form, i);
    // Pingpong hides what takes less than a tile, the others a plain store alone. But what an epilogue computes slows the other group's products, however
    // many these are: by gelu of 128x128 a round is 2.0 to 2.5 us longer at depths of 1024 to 8192 (H200, 2026-11-23).
    const double open = has_epilogue ? store : (i.schedule > 0 ? ROUND_US : OPEN_ROUND_US) + by_threads_us(p, i.m * i.n / 2.0);
    const double between = is_pingpong ? SLOWED * compute_us(p, i) + std::max(0.0, (store - tile) / 2) : open;
    // A single warpgroup's are for some rows of c whose depth lies side by side, of many columns: where it does not, or columns are few, they take up to twice as long as others (H200, 2026-11-30, 72 shapes).
    const bool   is_out_of_place = is_of_one_group(i) && (p.m <= FEW_LINES || form.b.is_turned), is_too_wide = i.m > WIDEST_OF_FEW && p.n <= FEW_LINES;
    const bool   is_unfitted = i.is_stream_k ? t.waves() < LEAST_DEALT || t.waves() > MOST_DEALT : is_out_of_place || is_too_wide;
    const double met = is_dealt ? dealt_us(t.waves()) : 0, unfitted = is_unfitted ? UNFITTED : 1;
    return unfitted * some_lines(form, device, i) * ((is_light(form, i) ? LIGHT_LAUNCH_US : LAUNCH_US) + rounds * tile + (std::ceil(rounds) - 1) * between + met + store + (i.cluster > 1 ? CLUSTER_US : 0) + traffic_us(form, i, TRAFFIC));
}

// Blocks in clusters of 1 to 8 that an H200 holds at once, one to three on a multiprocessor: a cluster stays in one group of
// multiprocessors, and groups are of many sizes. Found on it by where times jump; of three as if of one.
constexpr double RESIDENT[3][MOST_CLUSTER] = {
    {132, 132, 114, 116, 105, 102, 98, 112}, {264, 264, 228, 240, 210, 204, 196, 224}, {396, 396, 342, 348, 315, 306, 294, 336}};
constexpr double RESIDENT_UNITS = 132;

// How much longer a step takes where columns of b, or bytes of a, are turned in shared memory: as times of 95 shapes of tf32 and 62 of bytes have it
// (H100, 2026-11-26).
double slowed_by_turning(const Instance& i)
{
    constexpr double MOVED = 1.25, MOVED_WIDE = 1.48, BYTES = 2.1, BYTES_WIDE = 1.6;
    if (moves_bytes(i)) return i.n > 64 ? BYTES_WIDE : BYTES;
    return i.group != Group::Moved ? 1 : i.n > 64 ? MOVED_WIDE : MOVED;
}

double split_us(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    constexpr double  LAUNCH_US = 1.44, ROW_US = 0.000989, LATENCY_US = 0.868, COLUMN_US = 0.0107, ROUND_US = 3.25;
    constexpr double  BLOCK_US = 0.173, HANDED_BYTES_A_US = 26600, PARTS_US = 1.5, PART_US = 0.11, PARTS_BYTES_A_US = 4e6;
    constexpr Traffic TRAFFIC = {1.03e7, 2.23e6, 1.84e7};
    const Problem& p = form.problem;
    const auto [tile, blocks, together, rounds, steps] = blocks_of(form, device, i, c);
    // The copy engine takes rows of a box one by one, short ones too; and what comes late is waited for.
    const double rows = double(std::min<int64_t>(p.m, tile.rows)) + (form.b.is_turned ? 64.0 * std::max(i.n / 64, 1) : double(std::min<int64_t>(p.n, tile.columns)));
    const double step = slowed_by_turning(i) * std::max({rows * ROW_US * together, step_us(form, device, i, std::min(1.0, blocks / device.units)) * together, LATENCY_US / (c.cluster > 1 ? i.kept : i.stages)});
    const double store = together * (i.n / double(c.cluster) * COLUMN_US + finish_us(p, i, c.cluster));
    double us = LAUNCH_US + rounds * (steps * step + store) + (rounds - 1) * ROUND_US;
    if (c.cluster > 1) us += BLOCK_US * c.cluster + i.m * i.n * 4 / HANDED_BYTES_A_US;
    if (c.splits > 1) us += PARTS_US + PART_US * c.splits + double(partial_bytes(form, device, c)) * 2 / PARTS_BYTES_A_US;
    // Words: blocks of a cluster, and a that several columns of tiles read, take longer than was fitted to halves (H200, 2026-11-25, 15 shapes of tf32). Parts
    // in memory do, too, but not so much blocks of those that come by way of registers (H100, 2026-11-26, 95 shapes), of which a
    // block alone is no faster than two (15 shapes, 2026-11-27).
    constexpr double WORDS_BLOCK_US = 0.4, TURNED_BLOCK_US = 0.2, WORDS_PARTS_US = 1.3, WORDS_AGAIN = 0.1;
    if (form.group == Group::Round) {
        if (c.splits > 1) us += WORDS_PARTS_US;
        us += (takes_turned(i) ? TURNED_BLOCK_US * std::max(c.cluster - 1, 1) : WORDS_BLOCK_US * (c.cluster - 1)) + (p.n > i.n ? WORDS_AGAIN * us : 0);
    }
    return us + traffic_us(form, i, TRAFFIC);
}

// Blocks that cut f32 themselves. A step is the tensor cores' products, rows of a and, by fewer threads, columns of b that are cut; it is longer where
// many work and power ends. Fitted by hand to 62 times of 13 shapes on an H200 (2026-11-22), of which it meets most within 4 %.
double cut_us(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    constexpr double LAUNCH_US = 2.8, SUM_US = 2.0e-5, ROW_US = 0.00195, COLUMN_US = 0.0032, END_US = 1.45e-4, ROUND_US = 3.7e-4, CLUSTER_US = 0.3, BLOCK_US = 0.06, BYTES_A_US = 4e6;
    const Problem& p = form.problem;
    const double   blocks = double(divided_up(p.m, i.m) * divided_up(p.n, i.n) * p.batches) * c.cluster, tile = i.m * i.n;
    const double   together = std::max(1.0, resident_blocks(device, 1, c.cluster)), rounds = std::ceil(blocks / together);
    const double   slowed = 0.89 + 0.15 * blocks / (together * rounds), steps = std::ceil(double(steps_of(form, i)) / c.cluster);
    const double   products = rounds * steps * slowed * (tile * SUM_US + i.m * ROW_US + i.n * COLUMN_US);
    const double   bytes = 4.0 * double(p.batches) * (double(p.m) * double(p.k) + double(p.k) * double(p.n) + double(p.m) * double(p.n));
    const double   finish = p.epilogue_weight > 0 ? store_us(form, i) * rounds : 0;
    return LAUNCH_US + std::max(products, bytes / BYTES_A_US) + tile * (END_US + (rounds - 1) * ROUND_US) + (c.cluster > 1 ? CLUSTER_US + BLOCK_US * c.cluster : 0) + finish;
}

// Of operands that the instance does not take where they lie, before; 0: none.
double copies_us(const Form& form, const Instance& i)
{
    constexpr double LAUNCH_US = 2.2, BYTES_A_US = 2.5e6, STRIDED_BYTES_A_US = 0.9e6;
    // Words that are turned, and stay in the second cache where they are few: as times of 242 shapes of tf32 have it (H100, 2026-11-26).
    constexpr double TURN_US = 3.7, FEW_BYTES = 2.5e7, FEW_BYTES_A_US = 7.4e6;
    double us = 0;
    for (const Source* s : {&form.a, &form.b}) {
        if (!is_copied(i, *s)) continue;
        const double bytes = double(s->batches) * double(s->lines) * double(s->length) * double(bytes_of(form.problem.a_type)) + double(s->copy_bytes);
        const bool by_blocks = is_turned_by_blocks(*s, form), are_words = by_blocks && form.group == Group::Round;
        const double bytes_a_us = are_words && bytes < FEW_BYTES ? FEW_BYTES_A_US : s->copying == Copying::Strided && !by_blocks ? STRIDED_BYTES_A_US : BYTES_A_US;
        us += (are_words ? TURN_US : LAUNCH_US) + bytes / bytes_a_us;
    }
    return us;
}

// How splits of more than few rows compare with each other, where up to two blocks share a tile or more do: the more sums a thread has, the longer it hands them over. As times of 640
// shapes of f16 and 257 of e4m3 have it, of which what is chosen is 0.9 % from the fastest way in the mean, without this 1.0 (H200, 2026-11-30).
double handed_over(const Form& own, const Instance& i, int32_t cluster)
{
    struct Shared {
        int32_t m, n;
        double  up_to_two, more;
    };
    constexpr Shared SHARED[] = {{64, 128, 0.95, 1.03}, {64, 160, 1, 1.03}, {64, 208, 0.98, 1.03}, {128, 64, 1, 0.94}, {128, 128, 1, 1.04}};
    const Shared* const s = std::ranges::find_if(SHARED, [&](const Shared& x) { return x.m == i.m && x.n == i.n; });
    if (s == std::end(SHARED) || (i.group != Group::Half && i.group != Group::Byte) || std::min(own.problem.m, own.problem.n) <= FEW_LINES) return 1;
    return cluster > 2 ? s->more : s->up_to_two;
}

// Of batches of words that the second cache does not hold: memory takes its time for them as well, beside which `us` counts the less the shorter it is.
double beside_memory_us(const Form& form, const Device& device, double us)
{
    constexpr double SHARE = 0.9, SECOND_CACHE = 50e6, NORM = 6;
    const Problem& p = form.problem;
    const double   lines = double(form.a.batches) * double(p.m) + double(form.b.batches) * double(p.n);
    const double   bytes = lines * double(p.k) * bytes_of(p.a_type) + double(p.batches) * double(p.m) * double(p.n) * bytes_of(p.c_type);
    if (p.batches == 1 || form.group != Group::Round || bytes <= SECOND_CACHE) return us;
    return std::pow(std::pow(us, NORM) + std::pow(bytes / (SHARE * device.memory_bytes_per_us), NORM), 1 / NORM);
}

// Of batches, beside what was fitted to single products (H200, 2026-11-30). Halves and bytes of little depth, whose results are most of what moves: the strips of c's transpose cost more, and
// wide tiles of bytes (107 shapes; what is chosen is 3 % from the fastest way in the mean, was 4). Words: splits of a row-major b and more blocks than a device holds take less than
// split_us says, as one begins where another ends, and tiles more whose clusters have blocks without a row (45 shapes of tf32; 2.5 % from the fastest way, was 4.2).
double of_batches(const Form& own, const Device& device, const Instance& i, const Choice& c)
{
    constexpr double  SPLITS = 0.73, EMPTY = 1.2, STRIPS = 1.25, WIDE_BYTES = 1.18;
    constexpr int64_t SHALLOW_BYTES = 256;
    const Problem& p = own.problem;
    if (p.batches == 1) return 1;
    if (own.group == Group::Half || own.group == Group::Byte) {
        if (i.is_split || p.k * bytes_of(p.a_type) > SHALLOW_BYTES) return 1;
        return i.turns ? STRIPS : i.group != Group::Half && i.n > 128 ? WIDE_BYTES : 1;
    }
    if (own.group != Group::Round) return 1;
    if (i.is_split) return takes_turned(i) && c.cluster * c.splits == 1 && blocks_of(own, device, i, c).rounds > 1 ? SPLITS : 1;
    return p.m <= i.m * (i.down - 1) || p.n <= i.n * (i.across - 1) ? EMPTY : 1;
}

}  // namespace

double cost_us(const Form& form, const Form& own, const Device& device, const Choice& c)
{
    const Instance& i = instances()[c.instance];
    if (i.is_cut) return cut_us(form, device, i, c);
    // Where lines are moved in shared memory, as times of 6 shapes on an H200 had it (2026-11-22; 1.3 to 1.7, more of few rows). And of few columns
    // by boxes of half as many rows as there may be, as times of 16 did (2026-11-23).
    constexpr double  MOVED = 1.65, HALF_BOXES = 1.16;
    constexpr int64_t NARROW = 16;
    const Problem& p = form.problem;
    const bool     is_narrow = p.n <= NARROW;
    // Few columns come faster to many small blocks: tiles take 1.2 to 1.5 times what the model says of them, of bytes 2.1, and are nowhere faster (13 shapes of one to 16
    // columns, H200, 2026-11-29; six of 32 took 1.3 to 1.5 times that), so that they are kept from being chosen. So it is of 16 with whatever does not fit the second cache (117 MB, 2026-11-25).
    constexpr double WIDE = 1.75, WIDE_BYTES = 2.1, SECOND_CACHE = 50e6;
    const bool   is_streamed = form.group == Group::Half && double(form.a.batches) * double(p.m) * double(p.k) * 2 > SECOND_CACHE;
    const double wide = !has_few_columns(p) && !has_small_columns(p) && !(is_narrow && is_streamed) ? 1 : form.group == Group::Half ? WIDE : WIDE_BYTES;
    // Nor are tiles of c's transpose for batches of vectors: 512 of them by 128 x 2048 of e4m3 took 305 us by the best of these, by s128x16 129 (H200, 2026-11-30).
    const bool   is_of_vectors = i.turns && p.batches > 1 && std::min(p.m, p.n) < 8;
    const double batched = of_batches(own, device, i, c);
    if (!i.is_split) return copies_us(own, i) + std::max(beside_memory_us(form, device, tiles_us(own, device, i) * wide * batched), least_streamed_us(form, own, device, i)) * (is_of_vectors ? UNFITTED : 1);
    // Splits of c's transpose are for some rows of c by many columns. What they take beside fewer or more was not fitted, and 32 rows would be given them; nor where
    // c is stored one by one, which took them 1.7 to 1.9 times as long (200 x 7133 x 1024 and 200 x 5481 x 2560, H200, 2026-11-29).
    const bool   is_fitted = has_some_lines(own.problem) && own.problem.n < own.problem.m && by_threads_us(p, 1) == 0;
    // Of 192 columns they are for rows of which one has all, by a turned b: of 128 rows they were nowhere the fastest, by columns along depth in one shape of 52 (H200, 2026-11-30).
    const bool   is_wide_for_few = i.n == 192 && (own.problem.m > i.m || !own.b.is_turned);
    const double unfitted = (i.turns && !is_fitted) || is_of_vectors || is_wide_for_few ? UNFITTED : 1;
    const bool   has_half_boxes = i.group == Group::Half && i.m == 64 && p.m > 64 && is_narrow;
    const auto split = [&] {
        if (takes_few_lines(own, i)) return few_lines_us(own, device, i, c);
        if (takes_small_columns(own, i)) return small_columns_us(own, device, i, c);
        if (takes_odd_columns(own, i)) return odd_columns_us(own, device, i, c);
        const double us = split_us(own, device, i, c);
        return i.is_odd ? std::max(us * MOVED, least_odd_us(own, device, i, c)) : us * (has_half_boxes ? HALF_BOXES : 1);
    };
    return copies_us(own, i) + beside_memory_us(form, device, split() * unfitted * handed_over(own, i, c.cluster) * batched);
}

double resident_blocks(const Device& device, int32_t units, int32_t cluster) { return RESIDENT[units - 1][cluster - 1] * device.units / RESIDENT_UNITS; }

SplitTile split_tile(const Form& form, const Device& device, const Instance& i, const Choice& c)
{
    constexpr double  MOST_ROUNDS = 2;
    constexpr int64_t FOLDED = 16, BESIDE = kernels::EIGHT_LINES;        // rows of a part of folds; elements that lie side by side where threads store them
    const Problem& p = form.problem;
    // Boxes may have any number of lines, so tiles are alike, and no line is asked for that is not there, for which the copy engine takes longer than for others; but
    // where rows or columns are what lies side by side, narrower ones would cross more lines of the second cache. Nor of f32 by planes, whose sums that are no
    // numbers are looked for among all.
    const bool may_be_short = i.is_split && !i.is_cut && form.planes != 3, has_fewer_rows = may_be_short && !form.a.is_turned, has_fewer_columns = may_be_short && !form.b.is_turned && !has_folds(p);
    const SplitTile even = {has_fewer_rows ? int32_t(rounded_up(even_lines(p.m, i.m), has_folds(p) ? FOLDED : BESIDE)) : i.m, has_fewer_columns ? even_lines(p.n, i.n) : i.n};
    const int64_t   row_tiles = divided_up(p.m, i.m), column_tiles = divided_up(p.n, i.n);
    const bool      are_columns = row_tiles == 1;            // of few rows; else tiles are as many as there are rows for
    const int64_t tiles = are_columns ? column_tiles : row_tiles, parts = (are_columns ? 1 : column_tiles) * p.batches * c.cluster * c.splits;
    const double  blocks = double(tiles * parts), together = resident_blocks(device, blocks > resident_blocks(device, 1, c.cluster) ? i.units : 1, c.cluster);
    if (!(are_columns ? has_fewer_columns : has_fewer_rows) || i.is_odd || tiles == 1 || blocks > together * MOST_ROUNDS) return even;
    const int64_t most = are_columns ? i.n : i.m, room = std::max(tiles, int64_t(std::ceil(blocks / together) * together / double(parts)));
    const int64_t fewer = rounded_up(divided_up(are_columns ? p.n : p.m, room), has_folds(p) ? FOLDED : BESIDE);
    // Few blocks are given more parts instead. And what all tiles read is to be less than what each reads alone, or the second cache decides: 64 rows by 230 tiles
    // of 48 columns of 11008 x 4096 f16 took 41 us, by 172 of 64 some 34 (H200, 2026-11-29).
    const int64_t shared = are_columns ? std::min<int64_t>(p.m, i.m) : std::min<int64_t>(p.n, i.n);
    if (fewer < std::max(most / 2, shared) || fewer >= most) return even;
    return are_columns ? SplitTile{even.rows, int32_t(fewer)} : SplitTile{int32_t(fewer), even.columns};
}

double cost_us(const Form& form, const Device& device, const Choice& c) { return cost_us(form, form_of(form, instances()[c.instance]), device, c); }

}  // namespace ng::cuda::gemm::sm90
