// Which instance of the portable products runs a problem, how its depth is cut, what is copied before, and its launches.
#include "lib/backend/cuda/gemm_mma.h"

#include "lib/backend/cuda/gemm_mma_form.h"
#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <cmath>

namespace ng::cuda::gemm::mma {
namespace {

using namespace kernels;

// ---- what is chosen ----------------------------------------------------------------------------------------------------

// Of depth, at least so much in one part; sums of parts, at most so many.
constexpr int64_t LEAST_PART = 256, MOST_PARTIALS = int64_t(1) << 22;

struct Choice {
    uint32_t instance;
    int64_t  splits;
    bool     copies;                     // what does not lie as the instance wants it
    double   nanoseconds;
};

int64_t tiles_of(const Problem& p, const Instance& i) { return divided_up(p.m, i.tile_m) * divided_up(p.n, i.tile_n) * p.batches; }

// Each number of parts that an instance may cut the depth in, with what that takes: more of them while that pays.
template <class Look>
void each_cut(const Form& f, const Device& device, uint64_t workspace_bytes, uint32_t instance, const Look& look)
{
    const Problem&  p = f.p;
    const Instance& i = INSTANCES[instance];
    const int64_t   tiles = tiles_of(p, i), part_bytes = rounded_up(p.n, MMA_FOUR) * sum_bytes(f.kind) * p.m * p.batches;
    double          last = HUGE_VAL;
    for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}) {
        const bool is_too_much = has_folds(p) || splits > p.k / LEAST_PART || tiles * splits > MOST_PARTIALS / (i.tile_m * i.tile_n) || uint64_t(part_bytes * splits) > workspace_bytes;
        if (splits > 1 && (i.is_little() || is_too_much || tiles * (splits - 1) > 2 * int64_t(device.units))) return;
        const double now = nanoseconds_of(f, i, tiles, splits, device);
        look(splits, now);
        if (now > last * 1.2) return;
        last = now;
    }
}

// Instances that take operands as they lie, 16 bytes at once, where others copy them before, or read element by element: those of codes, which become halves as they are multiplied, and those
// of bytes with a row-major b.
bool takes_own(const Instance& i) { return is_of_codes(i.kind) || (is_of_bytes(i.kind) && i.b == NEAR_LINE); }
bool multiplies(const Instance& i, const Form& f) { return i.kind == f.kind || (is_of_codes(i.kind) && i.kind == codes_of(f.p.a_type, f.p.b_type)); }

// Whether an instance takes operands as they lie, or as they are once they are copied.
bool fits(const Form& f, uint32_t instance, bool copies)
{
    const Instance& i = INSTANCES[instance];
    // A row of f32 is not rounded to tf32, though it may be.
    const bool is_f32 = f.kind == PlainF32 || (f.kind == WordsTf32 && f.p.a_type == Dtype::f32 && f.p.b_type == Dtype::f32);
    if (i.pieces) return f.p.m == 1 && !has_folds(f.p) && (!copies || f.needs_copies()) && i.b == f.b.near && (i.kind == PlainF32 ? is_f32 : i.kind == f.kind);
    // Those of a warp's tile read any strides, but of the very types that they multiply; and fold nothing.
    const bool is_own = Dtype(f.a.operand.type) == type_of(f.kind, Dtype(f.a.operand.type)) && Dtype(f.b.operand.type) == type_of(f.kind, Dtype(f.b.operand.type));
    if (i.is_small()) return i.kind == f.kind && copies == !is_own && !has_folds(f.p);
    if (takes_own(i)) return multiplies(i, f) && !copies && f.a.is_even && f.b.is_even && (i.a == NEAR_LINE) == bool(f.a.operand.is_turned) && (i.b == NEAR_LINE) == bool(f.b.operand.is_turned);
    const auto      comes = [&](const Lying& x) { return copies_elements(f.kind) || copies || !x.is_copied || x.is_by_fours; };
    const Loads     loads = comes(f.a) && comes(f.b) ? IN_FLIGHT : IN_REGISTERS;
    // Plain products turn operands while they come: b always, a where tiles are large.
    const bool is_turned = f.kind == PlainF32, is_large = i.tile_m == 128;
    return i.kind == f.kind && i.loads == loads && (i.a == f.a.near || (is_turned && is_large)) && (is_turned || i.b == f.b.near);
}

// Every way to run it in so much workspace: look(choice).
template <class Look>
void each_choice(const Form& f, const Device& device, uint64_t workspace_bytes, const Look& look)
{
    const uint64_t bytes = copies_bytes(f);
    const double   copying = bytes ? LAUNCH * (f.a.is_copied + f.b.is_copied) + double(bytes) / 700 : 0;
    for (const bool copies : {false, true}) {
        if (copies ? bytes == 0 || bytes > workspace_bytes : bytes > 0 && f.needs_copies()) continue;
        for (uint32_t n = 0; n < COUNT; n++)
            if (fits(f, n, copies)) each_cut(f, device, workspace_bytes - (copies ? bytes : 0), n, [&](int64_t splits, double ns) { look(Choice{n, splits, copies, ns + (copies ? copying : 0)}); });
    }
}

Choice choose(const Form& f, const Device& device, uint64_t workspace_bytes)
{
    Choice best{COUNT, 1, false, HUGE_VAL};
    each_choice(f, device, workspace_bytes, [&](const Choice& c) { if (c.nanoseconds < best.nanoseconds) best = c; });
    return best;
}

Way way_of(const Choice& c) { return {true, c.copies, c.instance, 1, int32_t(c.splits), 1}; }

Choice choose(const Form& f, const Device& device, const Place& place)
{
    Memory* const m = place.memory;
    if (m && m->is_known) return {m->way.instance, m->way.splits, m->way.copies, 0};
    const Choice c = choose(f, device, place.workspace ? place.workspace_bytes : 0);
    if (m) m->is_known = true, m->way = way_of(c);
    return c;
}

// ---- launches ----------------------------------------------------------------------------------------------------------

// In the kernel's place: itself, a text's first or second, or what carries out a list.
struct Instead {
    Image    image;
    uint32_t kernel;
};
Instead instead_of(uint32_t kernel, Image image, bool is_second)
{
    return {image, image == Image::Text ? uint32_t(is_second) : image == Image::MmaListed ? listed_number(kernel) : kernel};
}
template <class Numbers>
void send(const Place& place, uint32_t kernel, int64_t blocks, const Numbers& numbers, const Instead& instead)
{
    place.launch({instead.image, instead.kernel, {uint32_t(blocks), 1, 1}, uint32_t(INSTANCES[kernel].threads), 1, FACTS[kernel].shared_bytes, false, &numbers, uint32_t(sizeof numbers)});
}
constexpr int64_t MOST_BLOCKS = int64_t(1) << 20;    // where threads stride over the rest

// Copies what does not lie well to `to`, which goes on; the operand is then what was copied.
MmaOperand laid_down(const Lying& x, Kind kind, const Place& place, char*& to)
{
    if (!x.is_copied) return x.operand;
    MmaLayNumbers n = copy_of(x, kind);
    n.to = to, to += copy_bytes(x, kind);
    const int64_t chunks = n.rows * n.batches * (n.pitch / (16 / element_bytes(kind)));
    const Number  kernel = is_of_bytes(kind) ? NUMBER_lay_8 : is_of_halves(kind) ? NUMBER_lay_16 : kind == Doubles ? NUMBER_lay_64 : NUMBER_lay_32;
    if (chunks > 0) send(place, kernel, std::min(divided_up(chunks, THREADS * 4), MOST_BLOCKS), n, {Image::Mma, kernel});
    MmaOperand o = x.operand;
    o.data = n.to, o.line = n.is_deep ? n.pitch : 1, o.depth = n.is_deep ? 1 : n.pitch, o.batch = x.operand.batch == 0 ? 0 : n.rows * n.pitch;
    o.type = i32(type_of(kind, Dtype(o.type)));
    o.is_wide = o.is_padded = 1, o.is_turned = !n.is_deep;
    return o;
}

}  // namespace

std::span<const KernelFacts> kernels() { return FACTS; }
std::span<const KernelFacts> listed_kernels() { return LISTED_FACTS; }

bool takes(Dtype a, Dtype b) { return kind_of(a, b, false) != None; }

bool can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    const Kind kind = kind_of(problem.a_type, problem.b_type, problem.allows_tf32);
    if (kind == None || device.compute < 80 || !device.has[size_t(Image::Mma)]) return false;
    const bool is_whole = is_of_bytes(kind) && !problem.epilogue.is_cast;
    if (is_whole != (problem.c_type == Dtype::i32) || (!is_whole && !is_float(problem.c_type))) return false;
    const Form f = form_of(problem);
    if (f.needs_copies() && copies_bytes(f) > workspace_bytes) return false;
    // A grid's blocks are numbered by 31 bits, and eight rows of its tiles by 32; those of one row, which one column is as well, may be four columns wide.
    const double across = double(divided_up(f.p.n, f.p.m == 1 ? int64_t(MMA_FOUR) : THIN)), tiles = double(divided_up(f.p.m, THIN)) * across;
    return across < 0x1p29 && tiles * double(std::max<int64_t>(f.p.batches, 1)) < 0x1p31;
}

uint64_t workspace(const Problem& p, bool is_fixed)
{
    const Kind kind = kind_of(p.a_type, p.b_type, p.allows_tf32);
    if (kind == None) return 0;
    // Every problem's parts are at most this, whatever the tile.
    const double sums = double(rounded_up(p.m, MMA_FOUR)) * double(rounded_up(p.n, MMA_FOUR)) * double(p.batches) * double(p.k / LEAST_PART);
    const uint64_t parts = p.k < 2 * LEAST_PART ? 0 : aligned(uint64_t(std::min(sums, double(MOST_PARTIALS))) * uint64_t(sum_bytes(kind)));
    if (copies_elements(kind) && p.a_type == type_of(kind, p.a_type) && p.b_type == type_of(kind, p.b_type)) return parts;
    if (is_fixed) {
        Problem aligned_one = p;
        aligned_one.a = aligned_one.b = nullptr;
        return parts + copies_bytes(form_of(aligned_one));
    }
    const auto most = [&](int64_t lines) { return aligned(uint64_t(rounded_up(lines, 16) * rounded_up(p.k, 16) * p.batches) * uint64_t(element_bytes(kind))); };
    return parts + most(p.m) + most(p.n);
}

double cost_us(const Problem& problem, const Device& device, uint64_t workspace_bytes) { return choose(form_of(problem), device, workspace_bytes).nanoseconds / 1000; }

double cost_of_many_us(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    if (!mma::can_run(problem, device, workspace_bytes)) return HUGE_VAL;
    const Form     f = form_of(problem);
    const Choice   choice = choose(f, device, workspace_bytes);
    if (choice.instance == COUNT) return HUGE_VAL;
    const Instance& i = INSTANCES[choice.instance];
    return choice.splits == 1 && are_many(f, i, tiles_of(f.p, i), device) ? choice.nanoseconds / 1000 : HUGE_VAL;
}

void add_ways(const Problem& problem, const Device& device, uint64_t workspace_bytes, std::vector<CostedWay>& ways)
{
    if (!mma::can_run(problem, device, workspace_bytes)) return;
    each_choice(form_of(problem), device, workspace_bytes, [&](const Choice& c) { ways.push_back({way_of(c), c.nanoseconds / 1000}); });
}

bool can_run_so(const Problem& problem, const Device& device, uint64_t workspace_bytes, const Way& way)
{
    bool is_there = false;
    if (mma::can_run(problem, device, workspace_bytes))
        each_choice(form_of(problem), device, workspace_bytes, [&](const Choice& c) { is_there |= way_of(c) == way; });
    return is_there;
}

namespace {

Number parts_of(Kind kind) { return kind == Doubles ? NUMBER_parts_f64 : is_of_bytes(kind) ? NUMBER_parts_i32 : NUMBER_parts_f32; }

void run_as(const Form& f, const Choice& choice, Image image, const Place& place)
{
    const Problem&  p = f.p;
    const Instance& i = INSTANCES[choice.instance];
    char*           free = static_cast<char*>(place.workspace);

    MmaNumbers n{};
    n.a = choice.copies ? laid_down(f.a, f.kind, place, free) : f.a.operand;
    n.b = choice.copies ? laid_down(f.b, f.kind, place, free) : f.b.operand;
    // What is turned comes word by word.
    if (f.kind == PlainF32 && f.a.near != i.a) n.a.is_wide = 0;
    if (f.kind == PlainF32 && f.b.near != i.b) n.b.is_wide = 0;
    if (takes_own(i)) n.a.is_wide = n.b.is_wide = 1;
    n.c = p.c, n.m = p.m, n.n = p.n, n.k = p.k, n.batches = p.batches;
    n.c_row = p.c_row, n.c_column = p.c_column, n.c_batch = p.c_batch, n.c_type = i32(p.c_type);
    n.row_tiles = uint32_t(divided_up(p.m, i.tile_m)), n.column_tiles = uint32_t(divided_up(p.n, i.tile_n));
    n.pitch = rounded_up(p.n, MMA_FOUR);
    // Parts begin where a tile's depth does.
    n.split_depth = rounded_up(divided_up(p.k, choice.splits), MMA_DEPTH);
    n.splits = int32_t(std::max<int64_t>(divided_up(p.k, std::max<int64_t>(n.split_depth, 1)), 1));
    n.epilogue = settled(p);
    if (n.splits > 1) n.partial = free;
    n.has_fours = has_fours(p, f.kind, p.c);
    if (i.is_small()) n.a.reads = reads_of(n.a, p.m, p.k, p.batches, i.lines_of_lane_a(), i), n.b.reads = reads_of(n.b, p.n, p.k, p.batches, i.lines_of_lane_b(), i);
    send(place, choice.instance, divided_up(int64_t(n.row_tiles) * n.column_tiles * p.batches * n.splits, i.is_small() ? SMALL_WARPS : 1), n, instead_of(choice.instance, image, false));
    if (n.splits > 1) send(place, parts_of(f.kind), sum_blocks(n), n, instead_of(parts_of(f.kind), image, true));
}

}  // namespace

int64_t sum_blocks(const MmaNumbers& numbers)
{
    const int64_t fours = numbers.pitch / MMA_FOUR * numbers.m * numbers.batches;
    return std::min(divided_up(fours * lanes_of_sum(fours, numbers.splits), THREADS), MOST_BLOCKS);
}

void run(const Problem& problem, const Device& device, const Place& place)
{
    if (problem.m == 0 || problem.n == 0 || problem.batches == 0) return;
    const Form f = form_of(problem);
    run_as(f, choose(f, device, place), Image::Mma, place);
}

// ---- with an epilogue's text --------------------------------------------------------------------------------------------

std::optional<Finisher> finisher_for(const Problem& problem, const Device& device, const Way* way)
{
    const Form f = form_of(problem);
    if (f.kind == Doubles || !mma::can_run(problem, device, UINT64_MAX)) return std::nullopt;
    const uint32_t instance = way && way->instance < COUNT && multiplies(INSTANCES[way->instance], f) ? way->instance : choose(f, device, mma::workspace(problem, true)).instance;
    Finisher finisher = {true, instance, 0, FACTS[instance].shared_bytes, {}, INSTANCES[instance].tile_m, INSTANCES[instance].threads / 32, problem.epilogue.inner > 0};
    for (int k = f.p.epilogue.loads; k < f.p.epilogue.count; k++) finisher.kinds[k] = EpilogueKind(f.p.epilogue.tensor[k].kind);
    if (has_folds(f.p) && finisher.kinds[f.p.epilogue.count - 1] == OVER_COLUMNS) finisher.part_length = INSTANCES[instance].tile_n, finisher.parts_each = 1;
    return finisher;
}

FunctionWords product_of(const Finisher& finisher) { return {WORDS[finisher.instance].bounds, "MmaNumbers", WORDS[finisher.instance].call}; }
FunctionWords sum_of(const Finisher& finisher)
{
    const uint32_t parts = parts_of(INSTANCES[finisher.instance].kind);
    return {WORDS[parts].bounds, "MmaNumbers", WORDS[parts].call};
}

bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place)
{
    if (!mma::can_run(problem, device, place.workspace_bytes)) return false;
    const Form   f = form_of(problem);
    const Choice choice = choose(f, device, place);
    if (choice.instance != finisher.instance || (problem.epilogue.inner > 0 && !finisher.has_outer)) return false;
    for (int k = f.p.epilogue.loads; k < f.p.epilogue.count; k++)
        if (f.p.epilogue.tensor[k].kind != finisher.kinds[k]) return false;
    run_as(f, choice, Image::Text, place);
    return true;
}

// ---- with an epilogue's list --------------------------------------------------------------------------------------------

namespace {

// Large blocks fold nothing, small ones no columns.
bool takes_list(const Problem& p, uint32_t instance)
{
    const Instance& i = INSTANCES[instance];
    if (listed_number(instance) == NO_KERNEL || !has_listed_folds(p)) return false;
    return !has_folds(p) || (i.threads <= LIST_FOLD_THREADS && (!has_folds_over(p, OVER_ROWS) || i.tile_m == LIST_FOLD_ROWS));
}

// Nanoseconds of a kernel behind the product, which reads all sums: half of what it moves is in a cache.
constexpr double BYTES_A_NS = 3000;
double behind(const Problem& p)
{
    double bytes = 4 + bytes_of(p.c_type);
    for (int i = 0; i < p.epilogue.loads; i++) bytes += p.epilogue.tensor[i].row && p.epilogue.tensor[i].column ? p.epilogue.tensor[i].bytes : 0;
    return LAUNCH + double(p.batches) * double(p.m) * double(p.n) * bytes / BYTES_A_NS;
}
// And of what is still to do behind one that has the list in it.
double still_behind(const Problem& p)
{
    const double sums = double(p.batches) * double(p.m) * double(p.n), folds = p.epilogue.count - p.epilogue.loads;
    if (p.is_read_again) return LAUNCH + sums * 2 * bytes_of(p.c_type) / BYTES_A_NS;
    return has_folds(p) ? LAUNCH + folds * sums / LIST_PART_ROWS * 4 / BYTES_A_NS : 0;
}

}  // namespace

int32_t listed_part(const Problem& problem) { return has_folds_over(arranged(problem), OVER_COLUMNS) ? LIST_PART_COLUMNS : LIST_PART_ROWS; }

bool run_listed(const Problem& problem, const Device& device, const Place& place)
{
    if (!device.has[size_t(Image::MmaListed)] || !mma::can_run(problem, device, place.workspace_bytes)) return false;
    const Form    f = form_of(problem);
    Memory* const m = place.memory;
    Choice        best{COUNT, 1, false, HUGE_VAL};
    if (m && m->is_known) {
        best = {m->way.instance, m->way.splits, m->way.copies, 0};
        if (!m->is_better) return false;
    } else {
        const uint64_t bytes = place.workspace ? place.workspace_bytes : 0;
        each_choice(f, device, bytes, [&](const Choice& c) { if (c.nanoseconds < best.nanoseconds && takes_list(f.p, c.instance)) best = c; });
        const bool is_better = best.instance != COUNT && best.nanoseconds + still_behind(f.p) < choose(f, device, bytes).nanoseconds + behind(f.p);
        remember(m, way_of(best), is_better);
        if (!is_better) return false;
    }
    run_as(f, best, Image::MmaListed, place);
    return true;
}

}  // namespace ng::cuda::gemm::mma
