// Chooses between rows and columns by an estimate of time: from extents and strides, never from the number of threads.
#include "lib/backend/cpu/plan.h"

#include <algorithm>
#include <cstdlib>

namespace ng::cpu {
namespace {

constexpr double CALL_NS = 8, ROW_NS = 30;             // an instruction's dispatch and call; a row's loops
constexpr double ALONG_NS = 20;                        // bringing the lanes of a block's fold together
constexpr double CHUNK_NS = 20e3, PARALLEL_NS = 50e3, PIECE_NS = 40e3, SPLIT_NS = 100e3;
constexpr double STREAM_BYTES = 64e6, FAR_BYTES = 1 << 20, NEAR_BYTES = 512 << 10;
constexpr int64_t MAX_CHUNKS = 64, L1_BYTES = 24 << 10, LINE = 64, LINES_BLOCK = 256, LOOSE_BLOCK = 32768, PAGE = 4096, PAGES_BLOCK = 64, MAX_BANKS = 64;
// Where there is any element strides are nearer than this; of nothing they may be any number, with which nobody may multiply.
constexpr int64_t FAR = int64_t(1) << 47;

struct Axis {
    int64_t  extent;
    int64_t* strides;                 // [accesses]
};

// Extents may be as large as numbers are, where strides are 0 or another extent is.
int64_t divided_up(int64_t n, int64_t unit) { return n / unit + (n % unit != 0); }
int64_t rounded_up(int64_t n, int64_t unit) { return divided_up(n, unit) * unit; }
int64_t product(int64_t x, int64_t y)
{
    int64_t r = 0;
    return __builtin_mul_overflow(x, y, &r) ? INT64_MAX : r;
}
int64_t magnitude(int64_t n) { return n < 0 ? -n : n; }

class Planner {
  public:
    Planner(const Program& program, const int64_t* values, int64_t* memory) : p_(program), values_(values), memory_(memory) {}
    void collapse(const Box* box);
    Plan plan();

  private:
    struct Choice {
        bool        is_columns = true;
        int         axis = -1;        // of the kept or reduced ones; -1: the space has none
        const Tape* tape = nullptr;
        double      bytes = 0;        // of memory that the tape's full values are, each element once
        int64_t     block = 0;        // 0: not chosen yet
        int64_t     banks = 1;
        int         repeated = -1;    // the reduced axis, points of which a block has several
        int64_t     repeats = 1;
        double      ns = 0;
    };
    int64_t* take(int64_t numbers) { return (memory_ += numbers) - numbers; }
    const Axis& axis_of(const Choice& c) const { return c.is_columns ? kept_[c.axis] : reduced_[c.axis]; }
    int64_t extent_of(const Choice& c) const { return c.axis < 0 ? 1 : axis_of(c).extent; }
    void sort(Axis* axes, int count) const;
    int  merged(Axis* axes, int count) const;
    bool has_nearer(const Choice& c, int32_t access) const;
    bool is_scattered(const Choice& c) const;
    bool has_page_strides(const Choice& c) const;
    bool is_dense(const Choice& c) const;
    bool sends(const Choice& c) const;
    bool is_loose(const Choice& c) const;
    int32_t kept_slots(const Choice& c) const;
    int64_t fitting(const Choice& c) const;
    bool can_repeat(int axis, int reduced) const;
    int64_t block_of(const Choice& c) const;
    double touch_ns(const Tape::Touch& touch, const Choice& c) const;
    double element_ns(const Choice& c) const;        // with what it touches
    void price(Choice& c) const;
    void take_tape(Choice& c, const Tape& tape) const;
    void consider(Choice& best, Choice c) const;
    void consider_columns(Choice& best, int axis) const;
    void consider_rows(Choice& best, int axis) const;
    Choice chosen() const;
    void lay_loops(Plan& plan, const Choice& c);
    void cut(Plan& plan, const Choice& c) const;
    void mark_sums(Plan& plan) const;

    const Program& p_;
    const int64_t* values_;
    int64_t* memory_;                 // what is left of it
    int64_t* offset_ = nullptr;
    Axis     kept_[MAX_AXES], reduced_[MAX_AXES];
    int      kept_count_ = 0, reduced_count_ = 0;
    double   rows_ = 1, length_ = 1;
};

// Insertion sort, so that axes with equal strides stay in their order: the widest strides become the outermost loops.
void Planner::sort(Axis* axes, int count) const
{
    const int32_t accesses = p_.position < 0 ? p_.accesses : p_.position;
    const auto width = [&](const Axis& axis) {
        int64_t sum = 0;
        for (int32_t a = 0; a < accesses; a++) sum += magnitude(axis.strides[a]);
        return sum;
    };
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && width(axes[j - 1]) < width(axes[j]); j--) std::swap(axes[j - 1], axes[j]);
}

// Neighbours that all accesses walk as one.
int Planner::merged(Axis* axes, int count) const
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        bool joins = kept > 0;
        for (int32_t a = 0; joins && a < p_.accesses; a++)
            joins = axes[kept - 1].strides[a] == product(axes[i].strides[a], axes[i].extent);
        if (joins) axes[kept - 1] = {product(axes[kept - 1].extent, axes[i].extent), axes[i].strides};
        else axes[kept++] = axes[i];
    }
    return kept;
}

void Planner::collapse(const Box* box)
{
    offset_ = take(p_.accesses);
    for (int32_t a = 0; a < p_.accesses; a++) offset_[a] = values_[p_.offset_at(a)];
    for (int32_t axis = 0; axis < p_.axes; axis++) {
        const int64_t extent = box ? box->count[axis] : values_[axis];
        const bool    is_reduced = p_.reduced[size_t(axis)];
        for (int32_t a = 0; box && a < p_.accesses; a++) offset_[a] += box->first[axis] * values_[p_.stride_at(a, axis)];
        (is_reduced ? length_ : rows_) *= double(extent);
        if (extent == 1) continue;
        int64_t* strides = take(p_.accesses);
        for (int32_t a = 0; a < p_.accesses; a++) strides[a] = std::clamp(values_[p_.stride_at(a, axis)], -FAR, FAR);
        if (is_reduced) reduced_[reduced_count_++] = {extent, strides};
        else kept_[kept_count_++] = {extent, strides};
    }
    sort(kept_, kept_count_);
    if (p_.position < 0) sort(reduced_, reduced_count_);   // else the first of equals would not come first
    kept_count_ = merged(kept_, kept_count_);
    reduced_count_ = merged(reduced_, reduced_count_);
}

// Whether all full values' memory is rows along the axis, so that what can lie there needs no room.
bool Planner::is_dense(const Choice& c) const
{
    if (c.axis < 0 || c.banks > 1) return false;
    return std::all_of(c.tape->touches.begin(), c.tape->touches.end(), [&](const Tape::Touch& t) {
        const int64_t stride = axis_of(c).strides[t.access];
        return stride == 1 || (stride == 0 && !t.is_stored);
    });
}

// Whether what maps make and stores write needs no room either.
bool Planner::sends(const Choice& c) const
{
    return !p_.has_reduced && is_dense(c) && c.bytes <= STREAM_BYTES;
}
// Whether all goes from memory to memory and needs no register as long as a block.
bool Planner::is_loose(const Choice& c) const
{
    return c.tape->is_passing && sends(c) && kept_slots(c) == 0;
}
// Registers as long as a block.
int32_t Planner::kept_slots(const Choice& c) const
{
    return c.tape->full_slots - (is_dense(c) ? c.tape->light_slots : 0) - (sends(c) ? c.tape->sent_slots : 0);
}

// Elements of a block with which all registers fit the scratch memory.
int64_t Planner::fitting(const Choice& c) const
{
    if (is_loose(c)) return LOOSE_BLOCK;
    const int64_t wide = std::max(p_.full_bytes, p_.row_bytes), row = c.tape->row_slots;
    const int64_t full = kept_slots(c) * c.banks;
    const int64_t slots = c.tape->full_slots * c.banks + row + TEMPS;
    const int64_t bytes = full * p_.full_bytes + (c.is_columns ? row * p_.row_bytes : 0) + TEMPS * wide;
    return std::max(MIN_BLOCK, (SCRATCH_BYTES - slots * SLOT_PAD) / bytes / MIN_BLOCK * MIN_BLOCK);
}

// Whether an axis other than the chosen one has this access's elements closer together: lines are used again soon.
bool Planner::has_nearer(const Choice& c, int32_t access) const
{
    const int64_t stride = magnitude(axis_of(c).strides[access]);
    const auto nearer = [&](const Axis& axis) { return axis.strides[access] != 0 && magnitude(axis.strides[access]) < stride; };
    const bool by_row = std::any_of(kept_, kept_ + kept_count_, nearer) && (c.is_columns || length_ * LINE < NEAR_BYTES);
    return by_row || std::any_of(reduced_, reduced_ + reduced_count_, nearer);
}

// Whether blocks touch a line an element.
bool Planner::is_scattered(const Choice& c) const
{
    if (c.axis < 0) return false;
    return std::any_of(c.tape->touches.begin(), c.tape->touches.end(), [&](const Tape::Touch& t) {
        return magnitude(axis_of(c).strides[t.access]) * t.bytes >= LINE;
    });
}

// Whether the lines of a block fall into a few sets of the caches.
bool Planner::has_page_strides(const Choice& c) const
{
    return std::any_of(c.tape->touches.begin(), c.tape->touches.end(), [&](const Tape::Touch& t) {
        const int64_t stride = axis_of(c).strides[t.access];
        return stride != 0 && stride * t.bytes % PAGE == 0;
    });
}

int64_t Planner::block_of(const Choice& c) const
{
    const int64_t extent = std::max<int64_t>(extent_of(c), 1);
    const int64_t bytes = p_.full_bytes * (kept_slots(c) + 1) + (c.is_columns ? p_.row_bytes * c.tape->row_slots : 0);
    // Of 65536 f32 on Zen 4, x + y takes 0.141 ns an element in blocks of 1024, 0.124 in blocks of 2048. Without registers
    // a block is as long as may be, unless the next one's memory is asked for meanwhile.
    // The same of 32768, Cascade Lake: 6.6 us in blocks of 2048, 6.5 in 3072.
    const bool    is_near = c.bytes <= FAR_BYTES, is_long = is_loose(c) && is_near;
    const int64_t longest = p_.has_reduced ? MAX_BLOCK : (is_near || kept_slots(c) == 0 ? 4 : 2) * MAX_BLOCK;
    int64_t most = std::min(fitting(c), std::clamp<int64_t>(L1_BYTES / bytes, 256, longest));
    if (is_long)                         // no more than a chunk, but where all is one task
        most = rows_ * element_ns(c) < PARALLEL_NS / 2 ? LOOSE_BLOCK : std::clamp(int64_t(CHUNK_NS / std::max(c.tape->element_ns, 1.0)), longest, LOOSE_BLOCK / 2);
    if (is_scattered(c)) most = std::min(most, has_page_strides(c) ? PAGES_BLOCK : LINES_BLOCK);
    const int64_t unit = most >= 256 ? 64 : MIN_BLOCK;
    most = most / unit * unit;
    return std::min(most, rounded_up(divided_up(extent, divided_up(extent, most)), unit));
}

double Planner::touch_ns(const Tape::Touch& touch, const Choice& c) const
{
    const int64_t stride = c.axis < 0 ? 0 : magnitude(axis_of(c).strides[touch.access]);
    if (stride == 0) return 0;
    if (stride == 1) return 0.02 * touch.bytes * touch.times;
    const double line = double(std::min<int64_t>(stride * touch.bytes, LINE)) / LINE;
    const double ns = 0.35 + 0.35 * line;
    return (has_nearer(c, touch.access) ? ns : ns + 3 * line) * touch.times;
}

double Planner::element_ns(const Choice& c) const
{
    double ns = c.tape->element_ns;
    for (const Tape::Touch& touch : c.tape->touches) ns += touch_ns(touch, c);
    return ns;
}

void Planner::price(Choice& c) const
{
    const double extent = double(std::max<int64_t>(extent_of(c), 1)) * double(c.repeats);
    const double count = extent / double(divided_up(int64_t(std::min(extent, 0x1p62)), c.block));
    const Tape& tape = *c.tape;
    double calls = (tape.full_calls + 0.7) * CALL_NS;
    if (!c.is_columns) calls += double(p_.folds.size()) * ALONG_NS;
    const double ns = element_ns(c) + calls / count;
    const double row = c.is_columns ? (tape.row_ns + tape.row_calls * (0.1 + CALL_NS / count)) * double(c.repeats)
                                    : tape.row_ns + tape.row_calls * CALL_NS + ROW_NS;
    c.ns = rows_ * (length_ * ns + row);
}

void Planner::take_tape(Choice& c, const Tape& tape) const
{
    c.tape = &tape;
    c.bytes = 0;
    for (const Tape::Touch& touch : tape.touches) {
        double elements = 1;
        for (int axis = 0; axis < kept_count_; axis++)
            if (kept_[axis].strides[touch.access]) elements *= double(kept_[axis].extent);
        for (int axis = 0; axis < reduced_count_; axis++)
            if (reduced_[axis].strides[touch.access]) elements *= double(reduced_[axis].extent);
        c.bytes += elements * touch.bytes;
    }
}

void Planner::consider(Choice& best, Choice c) const
{
    if (!c.block) c.block = block_of(c);
    price(c);
    if (!best.tape || c.ns < best.ns) best = c;
}

// Whether several points of a reduced axis and all of a kept one lie in a row, wherever full values are.
bool Planner::can_repeat(int axis, int reduced) const
{
    for (int32_t a = 0; a < p_.accesses; a++)
        if (p_.is_full[size_t(a)] && reduced_[reduced].strides[a] != product(kept_[axis].strides[a], kept_[axis].extent)) return false;
    return p_.position < 0;
}

void Planner::consider_columns(Choice& best, int axis) const
{
    Choice c;
    c.axis = axis;
    take_tape(c, p_.streamed);
    consider(best, c);
    if (p_.has_resident && length_ >= 1 && length_ <= MAX_BANKS) {
        Choice kept = c;
        take_tape(kept, p_.resident);
        kept.banks = int64_t(length_);
        const bool fits = kept.banks * p_.resident.full_slots <= MAX_LIVE && fitting(kept) >= LINE;
        if (fits) consider(best, kept);
    }
    for (int reduced = 0; reduced < reduced_count_; reduced++) {
        if (kept_[axis].extent < 2 || !can_repeat(axis, reduced)) continue;
        const int64_t extent = kept_[axis].extent;
        Choice wide = c;
        wide.block = std::min(fitting(c), MAX_BLOCK);
        wide.repeats = std::min(wide.block / extent, reduced_[reduced].extent / 4);
        wide.block = wide.repeats * extent;
        wide.repeated = reduced;
        if (wide.repeats > 1) consider(best, wide);
    }
}

void Planner::consider_rows(Choice& best, int axis) const
{
    Choice c;
    c.is_columns = false;
    c.axis = axis;
    take_tape(c, p_.streamed);
    consider(best, c);
    if (reduced_count_ > 1 || !p_.has_resident) return;
    take_tape(c, p_.resident);
    const int64_t extent = std::max<int64_t>(reduced_[0].extent, 1);
    if (extent > fitting(c)) return;                   // which is whole units
    c.block = rounded_up(extent, MIN_BLOCK);
    consider(best, c);
}

Planner::Choice Planner::chosen() const
{
    Choice best;
    for (int axis = kept_count_; axis-- > 0;) consider_columns(best, axis);
    for (int axis = reduced_count_; axis-- > 0;)       // positions of argmin and argmax ascend along the last only
        if (p_.position < 0 || axis + 1 == reduced_count_) consider_rows(best, axis);
    if (best.tape) return best;
    Choice point;                                      // no axes are left
    take_tape(point, p_.streamed);
    consider(best, point);
    return best;
}

void Planner::lay_loops(Plan& plan, const Choice& c)
{
    plan.accesses = p_.accesses;
    plan.offset = offset_;
    plan.step = take(p_.accesses);
    plan.extents = take(kept_count_ + reduced_count_ + 1);
    plan.strides = take(int64_t(kept_count_ + reduced_count_ + 1) * p_.accesses);
    std::fill_n(plan.step, p_.accesses, 0);
    const int64_t extent = extent_of(c), blocks = divided_up(extent, c.block);
    plan.tail = extent - (blocks - 1) * c.block;
    int loop = 0;
    const auto lay = [&](int64_t count, const int64_t* strides, int64_t times) {
        plan.extents[loop] = count;
        for (int32_t a = 0; a < p_.accesses; a++) plan.strides[int64_t(loop) * p_.accesses + a] = strides ? strides[a] * times : 0;
        return loop++;
    };
    const auto lay_blocks = [&] {
        if (c.axis >= 0) std::copy_n(axis_of(c).strides, p_.accesses, plan.step);
        plan.block_loop = lay(blocks, plan.step, c.block);
    };
    const auto lay_repeats = [&] {
        const Axis& axis = reduced_[c.repeated];
        const int64_t count = divided_up(axis.extent, c.repeats);
        plan.tail = (axis.extent - (count - 1) * c.repeats) * extent;
        plan.block_loop = lay(count, axis.strides, c.repeats);
    };
    // Blocks that touch a line an element go outside, so that the lines are used again by what comes inside.
    const bool outermost = c.is_columns && (c.axis < 0 || is_scattered(c));
    if (outermost) lay_blocks();
    for (int axis = 0; axis < kept_count_; axis++) {
        if (!c.is_columns || axis != c.axis) lay(kept_[axis].extent, kept_[axis].strides, 1);
        else if (!outermost) lay_blocks();
    }
    plan.kept = loop;
    for (int axis = 0; axis < reduced_count_; axis++) {
        if (axis == c.repeated) lay_repeats();
        else if (c.is_columns || axis != c.axis) lay(reduced_[axis].extent, reduced_[axis].strides, 1);
        else lay_blocks();
    }
    plan.reduced = loop - plan.kept;
    for (int l = 0; l < plan.kept; l++) plan.units = product(plan.units, plan.extents[l]);
    for (int l = plan.kept; l < loop; l++) plan.steps = product(plan.steps, plan.extents[l]);
}

void Planner::cut(Plan& plan, const Choice& c) const
{
    plan.is_streaming = c.bytes > STREAM_BYTES;
    plan.is_prefetching = plan.is_streaming || (c.bytes > FAR_BYTES && c.is_columns && plan.reduced > 0);
    if (c.ns < PARALLEL_NS || plan.units == 0) return;
    const double unit_ns = c.ns / double(plan.units);
    if (p_.has_reduced && plan.banks == 1 && unit_ns >= SPLIT_NS) {
        const int64_t pieces = std::min<int64_t>({MAX_CHUNKS, plan.steps, int64_t(std::min(unit_ns / PIECE_NS, double(MAX_CHUNKS)))});
        if (pieces > plan.units) {
            plan.pieces = uint32_t(pieces);
            return;
        }
    }
    plan.chunks = uint32_t(std::clamp<int64_t>(int64_t(std::min(c.ns / CHUNK_NS, double(MAX_CHUNKS))), 1, std::min(MAX_CHUNKS, plan.units)));
}

void Planner::mark_sums(Plan& plan) const
{
    static_assert(MAX_PASSES <= 32);
    if (!plan.is_columns || plan.reduced == 0) return;
    for (size_t pass = 0; pass < plan.tape->full.size(); pass++) {
        bool is_so = plan.tape->sums_memory[pass];
        const List list = plan.tape->full[pass];
        for (uint32_t at = list.begin; is_so && at < list.end; at++) {
            const Instruction& i = plan.tape->code[at];
            is_so = i.code != Code::Load || plan.step[i.extra] == 1;
        }
        plan.sums_memory |= uint32_t(is_so) << pass;
        const bool is_whole = is_so && list.end - list.begin == 2 && plan.reduced == 1 && plan.steps > 1 && !plan.group && plan.pieces == 1;
        plan.sums_whole |= uint32_t(is_whole) << pass;
    }
}

Plan Planner::plan()
{
    Plan plan;
    const Choice c = chosen();
    plan.tape = c.tape;
    plan.block = c.block;
    plan.banks = c.banks;
    plan.group = c.repeated < 0 ? 0 : extent_of(c);
    plan.row_count = c.repeated >= 0 ? c.block : c.is_columns ? 0 : 1;
    plan.is_columns = c.is_columns;
    plan.full_stride = c.block * p_.full_bytes + SLOT_PAD;
    plan.row_stride = c.is_columns ? c.block * p_.row_bytes + SLOT_PAD : SLOT_PAD;
    plan.full_stride = rounded_up(plan.full_stride, LINE);
    plan.light_stride = is_dense(c) ? SLOT_PAD : plan.full_stride;
    plan.sent_stride = sends(c) ? SLOT_PAD : plan.full_stride;
    plan.row_stride = rounded_up(plan.row_stride, LINE);
    const int64_t temp = c.block * std::max(p_.full_bytes, p_.row_bytes);
    plan.temp_stride = is_loose(c) ? SLOT_PAD : temp / SLOT_PAD * SLOT_PAD + SLOT_PAD;
    lay_loops(plan, c);
    cut(plan, c);
    mark_sums(plan);
    return plan;
}

}  // namespace

Plan make_plan(const Program& program, const int64_t* values, const Box* box, int64_t* memory) noexcept
{
    Planner planner(program, values, memory);
    planner.collapse(box);
    return planner.plan();
}

uint64_t most_piece_bytes(const Program& p)
{
    bool is_one_row = true;
    for (int32_t axis = 0; axis < p.axes; axis++) is_one_row &= p.reduced[size_t(axis)];
    const int64_t slot = is_one_row ? SLOT_PAD : MAX_BLOCK * p.row_bytes + SLOT_PAD;
    return uint64_t(MAX_CHUNKS) * uint64_t(p.fold_slots) * uint64_t(slot);
}

}  // namespace ng::cpu
