// Chooses between rows and columns by an estimate of time: from extents and strides, never from the number of threads.
#include "lib/backend/cpu/plan.h"

#include "lib/backend/cpu/space.h"

#include <algorithm>
#include <numeric>

namespace ng::cpu {
namespace {

constexpr double CALL_NS = 8, ROW_NS = 30;             // an instruction's dispatch and call; a row's loops
constexpr double LAY_NS = 0.1;                         // an element of a row that is laid in a block again
constexpr double ALONG_NS = 20;                        // bringing the lanes of a block's fold together
constexpr double CHUNK_NS = 20e3, PIECE_NS = 40e3, SPLIT_NS = 100e3;
constexpr double STREAM_BYTES = 64e6, FAR_BYTES = 1 << 20, NEAR_BYTES = 512 << 10;
constexpr int64_t MAX_CHUNKS = 64, L1_BYTES = 24 << 10, LINE = 64, LINES_BLOCK = 256, LOOSE_BLOCK = 32768, PAGE = 4096, PAGES_BLOCK = 64, MAX_BANKS = 64;
constexpr int64_t BUNDLE = 128;                        // elements that the widest chains do at once

class Planner {
  public:
    Planner(const Program& program, const Space& space) : p_(program), s_(space) {}
    Plan plan(int64_t* memory) const;

  private:
    struct Choice : Way {             // its block is 0 until it is chosen
        const Tape* tape = nullptr;
        double      bytes = 0;        // of memory that the tape's full values are, each element once
        int64_t     banks = 1;
        double      ns = 0;
    };
    const SpaceAxis& axis_of(const Choice& c) const { return s_.along(c)[c.axis]; }
    int64_t extent_of(const Choice& c) const { return c.axis < 0 ? 1 : axis_of(c).extent; }
    bool has_nearer(const Choice& c, int32_t access) const;
    bool is_scattered(const Choice& c) const;
    bool has_page_strides(const Choice& c) const;
    bool is_dense(const Choice& c) const;
    bool sends(const Choice& c) const;
    bool is_loose(const Choice& c) const;
    int32_t kept_slots(const Choice& c) const;
    int64_t fitting(const Choice& c) const;
    bool can_repeat(int axis, int reduced) const;
    bool can_stack(int axis, int outer) const;
    int64_t block_of(const Choice& c) const;
    double touch_ns(const Tape::Touch& touch, const Choice& c) const;
    double element_ns(const Choice& c) const;        // with what it touches
    void price(Choice& c) const;
    void take_tape(Choice& c, const Tape& tape) const;
    void consider(Choice& best, Choice c) const;
    void consider_columns(Choice& best, int axis) const;
    void consider_stacks(Choice& best, int axis) const;
    void consider_rows(Choice& best, int axis) const;
    Choice chosen() const;
    void cut(Plan& plan, const Choice& c) const;
    void mark_sums(Plan& plan) const;

    const Program& p_;
    const Space&   s_;
};

// Whether all full values' memory is rows along the axis, so that what can lie there needs no room.
bool Planner::is_dense(const Choice& c) const
{
    if (c.axis < 0 || c.banks > 1 || c.stacked >= 0) return false;
    return std::all_of(c.tape->touches.begin(), c.tape->touches.end(), [&](const Tape::Touch& t) {
        const int64_t stride = axis_of(c).strides[t.access];
        return !p_.decides[size_t(t.access)] || stride == 1 || (stride == 0 && !t.is_stored);
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
    const auto nearer = [&](const SpaceAxis& axis) { return axis.strides[access] != 0 && magnitude(axis.strides[access]) < stride; };
    const bool by_row = std::any_of(s_.kept.begin(), s_.kept.end(), nearer) && (c.is_columns || s_.length * LINE < NEAR_BYTES);
    return by_row || std::any_of(s_.reduced.begin(), s_.reduced.end(), nearer);
}

// Whether blocks touch a line an element.
bool Planner::is_scattered(const Choice& c) const
{
    if (c.axis < 0) return false;
    return std::any_of(c.tape->touches.begin(), c.tape->touches.end(), [&](const Tape::Touch& t) {
        return p_.decides[size_t(t.access)] && magnitude(axis_of(c).strides[t.access]) * t.bytes >= LINE;
    });
}

// Whether the lines of a block fall into a few sets of the caches.
bool Planner::has_page_strides(const Choice& c) const
{
    return std::any_of(c.tape->touches.begin(), c.tape->touches.end(), [&](const Tape::Touch& t) {
        const int64_t stride = axis_of(c).strides[t.access];
        return p_.decides[size_t(t.access)] && stride != 0 && stride * t.bytes % PAGE == 0;
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
        most = s_.rows * element_ns(c) < PARALLEL_NS / 2 ? LOOSE_BLOCK : std::clamp(int64_t(CHUNK_NS / std::max(c.tape->element_ns, 1.0)), longest, LOOSE_BLOCK / 2);
    if (is_scattered(c)) most = std::min(most, has_page_strides(c) ? PAGES_BLOCK : LINES_BLOCK);
    const int64_t unit = most >= 256 ? 64 : MIN_BLOCK;
    most = most / unit * unit;
    return std::min(most, rounded_up(divided_up(extent, divided_up(extent, most)), unit));
}

double Planner::touch_ns(const Tape::Touch& touch, const Choice& c) const
{
    if (c.axis < 0) return 0;
    const int64_t stride = p_.decides[size_t(touch.access)] ? magnitude(axis_of(c).strides[touch.access]) : 1;
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
    double ns = element_ns(c) + calls / count;
    for (int32_t a = 0; c.stacked >= 0 && a < p_.accesses; a++) {
        const Lie lie = lie_of(s_.kept[c.stacked], axis_of(c), a);
        if (lie != Lie::Whole) ns += LAY_NS + (lie == Lie::Each ? CALL_NS / double(extent_of(c)) : 0);
    }
    const double row = c.is_columns ? (tape.row_ns + tape.row_calls * (0.1 + CALL_NS / count)) * double(c.repeats)
                                    : tape.row_ns + tape.row_calls * CALL_NS + ROW_NS;
    c.ns = s_.rows * (s_.length * ns + row);
}

void Planner::take_tape(Choice& c, const Tape& tape) const
{
    c.tape = &tape;
    c.bytes = 0;
    for (const Tape::Touch& touch : tape.touches) {
        double elements = 1;
        for (const Axes* axes : {&s_.kept, &s_.reduced})
            for (const SpaceAxis& axis : *axes)
                if (axis.strides[touch.access]) elements *= double(axis.extent);
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
        if (p_.is_full[size_t(a)] && p_.decides[size_t(a)] && !are_one(s_.reduced[reduced], s_.kept[axis], a)) return false;
    return p_.position < 0;
}

void Planner::consider_columns(Choice& best, int axis) const
{
    Choice c;
    c.axis = axis;
    take_tape(c, p_.streamed);
    consider(best, c);
    if (p_.has_resident && s_.length >= 1 && s_.length <= MAX_BANKS) {
        Choice kept = c;
        take_tape(kept, p_.resident);
        kept.banks = int64_t(s_.length);
        const bool fits = kept.banks * p_.resident.full_slots <= MAX_LIVE && fitting(kept) >= LINE;
        if (fits) consider(best, kept);
    }
    for (int reduced = 0; reduced < s_.reduced.count(); reduced++) {
        if (s_.kept[axis].extent < 2 || !can_repeat(axis, reduced)) continue;
        const int64_t extent = s_.kept[axis].extent;
        Choice wide = c;
        wide.block = std::min(fitting(c), MAX_BLOCK);
        wide.repeats = std::min(wide.block / extent, s_.reduced[reduced].extent / 4);
        wide.block = wide.repeats * extent;
        wide.repeated = reduced;
        if (wide.repeats > 1) consider(best, wide);
    }
}

// Whether several rows are one wherever there are results and whatever places are computed, and can be read where not.
bool Planner::can_stack(int axis, int outer) const
{
    const auto lie = [&](int32_t access) { return lie_of(s_.kept[outer], s_.kept[axis], access); };
    for (int32_t a = 0; a < p_.accesses; a++)
        if (!p_.decides[size_t(a)] || lie(a) == Lie::None) return false;
    return std::all_of(p_.streamed.code.begin(), p_.streamed.code.end(), [&](const Instruction& i) {
        if (i.code == Code::Gather) return lie(p_.gathers[size_t(i.extra)].access) == Lie::Whole;
        return i.code != Code::Store || lie(i.extra) == Lie::Whole;
    });
}

void Planner::consider_stacks(Choice& best, int axis) const
{
    const int64_t extent = s_.kept[axis].extent;
    if (p_.has_reduced || extent < 2 || extent > MAX_BLOCK / 2) return;
    for (int outer = 0; outer < s_.kept.count(); outer++) {
        if (outer == axis || !can_stack(axis, outer)) continue;
        Choice c;
        c.axis = axis, c.stacked = outer;
        take_tape(c, p_.streamed);
        const int64_t most = std::min(fitting(c), MAX_BLOCK) / extent, whole = BUNDLE / std::gcd(BUNDLE, extent);
        c.repeats = std::min(most < whole ? most : most / whole * whole, s_.kept[outer].extent);
        c.block = c.repeats * extent;
        if (c.repeats > 1) consider(best, c);
    }
}

void Planner::consider_rows(Choice& best, int axis) const
{
    Choice c;
    c.is_columns = false;
    c.axis = axis;
    take_tape(c, p_.streamed);
    consider(best, c);
    if (s_.reduced.count() > 1 || !p_.has_resident) return;
    take_tape(c, p_.resident);
    const int64_t extent = std::max<int64_t>(s_.reduced[0].extent, 1);
    if (extent > fitting(c)) return;                   // which is whole units
    c.block = rounded_up(extent, MIN_BLOCK);
    consider(best, c);
}

Planner::Choice Planner::chosen() const
{
    Choice best;
    for (int axis = s_.kept.count(); axis-- > 0;) consider_columns(best, axis), consider_stacks(best, axis);
    for (int axis = s_.reduced.count(); axis-- > 0;)       // positions of argmin and argmax ascend along the last only
        if (p_.position < 0 || axis + 1 == s_.reduced.count()) consider_rows(best, axis);
    if (best.tape) return best;
    Choice point;                                      // no axes are left
    take_tape(point, p_.streamed);
    consider(best, point);
    return best;
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

// memory: what the space has left.
Plan Planner::plan(int64_t* memory) const
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
    // Blocks that touch a line an element go outside, so that the lines are used again by what comes inside.
    lay_loops(plan, p_, s_, c, c.is_columns && c.stacked < 0 && (c.axis < 0 || is_scattered(c)), memory);
    cut(plan, c);
    mark_sums(plan);
    return plan;
}

}  // namespace

int64_t Plan::place_by_parts(int32_t loop, int64_t position, int32_t access) const
{
    int64_t place = 0;
    const int64_t first = loop ? parts_end[loop - 1] : 0;
    for (int64_t k = parts_end[loop]; position > 0 && k-- > first;) {
        const int64_t* part = parts + k * (positions + 1);
        place += position % part[0] * part[1 + access];
        position /= part[0];
    }
    return place;
}

Plan::Row Plan::row_by_parts(int32_t loop, int64_t position, int32_t access) const
{
    const int64_t* part = parts + (parts_end[loop] - 1) * (positions + 1);
    const int64_t  extent = std::max<int64_t>(part[0], 1);         // of nothing a fold has a place, too
    return {extent - position % extent, part[1 + access]};
}

Plan make_plan(const Program& program, const int64_t* values, const Box* box, int64_t* memory) noexcept
{
    const Space space(program, values, box, memory);
    return Planner(program, space).plan(memory);
}

uint64_t most_piece_bytes(const Program& p)
{
    bool is_one_row = true;
    for (int32_t axis = 0; axis < p.axes; axis++) is_one_row &= p.reduced[size_t(axis)];
    const int64_t slot = is_one_row ? SLOT_PAD : MAX_BLOCK * p.row_bytes + SLOT_PAD;
    return uint64_t(MAX_CHUNKS) * uint64_t(p.fold_slots) * uint64_t(slot);
}

}  // namespace ng::cpu
