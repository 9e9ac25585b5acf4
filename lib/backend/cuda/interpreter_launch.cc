// How a run of a tape is cut into blocks, rows and pieces, and the numbers that each of its launches gets.
#include "lib/backend/cuda/interpreter.h"

#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ng::cuda {

using namespace interpreter;

namespace {

// Cuts depend on the shape alone, so that results do not depend on the device: these serve 132 multiprocessors well, each
// of which has room for five blocks.
constexpr int64_t FEW_BLOCKS = 330, ENOUGH_BLOCKS = 660;
// Steps of a block through a row: fewer are not worth a launch more, and pieces have at least so many.
constexpr int64_t LONG_STEPS = 16, PIECE_STEPS = 4;
constexpr int64_t LANE_STEPS = 4;                      // of a thread, before a row gets more threads
constexpr uint32_t BLOCKS_A_UNIT = 20;                 // of a grid, then they stride: whole turns of five, four, two blocks at once, nearly of three
constexpr uint32_t SPILLING_A_UNIT = 2;                // the same of blocks that spill: as many as have room, each has scratch of its own

uint32_t power_above(int64_t x, uint32_t most) { return x >= int64_t(most) ? most : std::bit_ceil(uint32_t(std::max<int64_t>(x, 1))); }

// Axes together as one, numbered in row-major order: is_one where their strides are multiples of the last one's.
struct Joined {
    bool    is_one = true, is_zero = true;
    int64_t stride = 0;
};
Joined joined(const Tape& t, const ng::Access& access, const std::vector<int32_t>& axes, std::span<const int64_t> variables)
{
    Joined  j;
    int64_t expected = 0;
    bool    is_last = true;
    for (size_t k = axes.size(); k-- > 0;) {
        const int64_t extent = t.axes[size_t(axes[k])].extent.value(variables), stride = access.strides[size_t(axes[k])].value(variables);
        if (extent == 1) continue;
        if (is_last) j.stride = stride;
        j.is_one = j.is_one && (is_last || stride == expected);
        j.is_zero = j.is_zero && stride == 0;
        expected = stride * extent;
        is_last = false;
    }
    return j;
}

// Whether most accesses that decide step less along rows than along a row's points.
bool is_across(const Tape& t, std::span<const int64_t> variables)
{
    const auto least = [&](const ng::Access& a, const std::vector<int32_t>& axes) {
        int64_t step = INT64_MAX;
        for (const int32_t axis : axes) {
            const int64_t s = a.strides[size_t(axis)].value(variables), size = s < 0 ? -s : s;
            if (size && t.axes[size_t(axis)].extent.value(variables) > 1) step = std::min(step, size);
        }
        return step;
    };
    int votes = 0;
    for (const TapeAccess& a : t.accesses) {
        if (!a.decides) continue;
        const int64_t row = least(a.access, t.row_axes), point = least(a.access, t.walked);
        if (point != INT64_MAX && row != INT64_MAX) votes += row < point ? 1 : -1;
    }
    return votes > 0;
}

bool is_narrow(const Tape& t, std::span<const int64_t> variables)
{
    return std::ranges::all_of(t.axes, [&](const KernelAxis& a) { return a.extent.value(variables) < int64_t(1) << 31; });
}

void cut_rows(const Tape& t, TapeGeometry& g, int64_t rows, int64_t points, bool across)
{
    // A warp a row, or less where rows are short; more where rows are long, or too few for all multiprocessors.
    uint32_t lanes = std::max(power_above(divided_up(points, ITEMS * LANE_STEPS), g.threads), power_above(divided_up(points, ITEMS), 32));
    while (lanes < g.threads && int64_t(lanes) * ITEMS < points && divided_up(rows, g.threads / lanes) < FEW_BLOCKS) lanes *= 2;
    if (across) lanes = std::max(1u, std::min(lanes, g.threads / 32));
    g.per_block = g.threads / lanes;
    // No more rows at once than there are.
    if (rows < int64_t(g.per_block) && points > ITEMS) g.per_block = power_above(rows, g.per_block), lanes = g.threads / g.per_block;
    g.groups = uint64_t(divided_up(rows, g.per_block));
    const int64_t steps = divided_up(points, int64_t(lanes) * ITEMS);
    if (t.may_split && t.passes > 0 && int64_t(g.groups) < FEW_BLOCKS && steps >= LONG_STEPS) {
        const int64_t wanted = std::min(steps / PIECE_STEPS, ENOUGH_BLOCKS / int64_t(g.groups)), piece = divided_up(steps, std::max<int64_t>(wanted, 1));
        g.pieces = uint32_t(divided_up(steps, piece));
    }
    g.launches = g.pieces > 1 ? t.passes + t.ends_with_stores : 1;
    if (g.pieces > 1) g.scratch_bytes = aligned(uint64_t(t.folds) * uint64_t(rows) * g.pieces * UNIT_BYTES);
}

}  // namespace

uint32_t TapeGeometry::blocks(uint32_t, uint32_t units) const noexcept
{
    if (pieces > 1) return uint32_t(groups) * pieces;
    return uint32_t(std::min<uint64_t>(groups, uint64_t(units) * blocks_a_unit));
}

TapeGeometry geometry_of(const Tape& t, std::span<const int64_t> variables) noexcept
{
    TapeGeometry g;
    const int64_t rows = t.extents[0].value(variables), points = t.extents[1].value(variables);
    if (rows == 0 || (!t.has_rows && points == 0)) return g;
    g.launches = 1;
    g.threads = t.threads;
    g.blocks_a_unit = t.spilled ? SPILLING_A_UNIT : BLOCKS_A_UNIT;
    g.is_possible = t.axes.size() <= 1 || is_narrow(t, variables);
    if (t.has_rows) {
        cut_rows(t, g, rows, points, is_across(t, variables));
    } else {
        // Points are computed the same by any thread: few of them take small blocks.
        while (g.threads > uint32_t(MIN_THREADS) && divided_up(points, int64_t(g.threads) * ITEMS) < ENOUGH_BLOCKS) g.threads /= 2;
        g.groups = uint64_t(divided_up(points, int64_t(g.threads) * ITEMS));
    }
    g.shared_bytes = t.shared_bytes;
    return g;
}

uint64_t most_scratch(const Tape& t, uint32_t units) noexcept
{
    if (t.spilled) return uint64_t(units) * SPILLING_A_UNIT * t.spilled * t.threads * UNIT_BYTES;
    if (!t.may_split) return 0;
    const bool is_known = std::ranges::all_of(t.axes, [](const KernelAxis& a) { return a.extent.is_constant(); }) &&
                          std::ranges::all_of(t.accesses, [](const TapeAccess& a) { return has_known_strides(a.access); });
    if (is_known) return geometry_of(t, {}).scratch_bytes;
    return uint64_t(t.folds) * ENOUGH_BLOCKS * t.threads * UNIT_BYTES;
}

namespace {

// Writes the words of a launch one after the other.
class Filler {
  public:
    Filler(const Tape& tape, const TapeGeometry& geometry, const TapeRun& run, Numbers& out) : t_(tape), g_(geometry), run_(run), n_(out) {}
    void fill(uint32_t launch);

  private:
    int64_t value(const Extent& e) const { return e.value(run_.variables); }
    int64_t extent(int32_t axis) const { return value(t_.axes[size_t(axis)].extent); }
    void cut(uint32_t launch);
    void shared();
    void accesses();
    void axes();
    u64  base_of(const TapeAccess& a) const;
    u32  form_of(const TapeAccess& a, const Joined& row, const Joined& point) const;
    void strides(const TapeAccess& a, const std::vector<int32_t>& axes) { for (const int32_t axis : axes) n_.words[at_++] = u64(value(a.access.strides[size_t(axis)])); }
    void numbers();

    const Tape&         t_;
    const TapeGeometry& g_;
    const TapeRun&      run_;
    Numbers&            n_;
    u32                 at_ = 0;
};

void Filler::cut(uint32_t launch)
{
    n_.rows = value(t_.extents[0]), n_.points = value(t_.extents[1]);
    n_.pieces = g_.pieces, n_.stage = launch;
    n_.lanes = t_.has_rows ? g_.threads / g_.per_block : 1;
    n_.row_mask = g_.per_block - 1;
    // Neighbouring threads have neighbouring rows where those lie side by side, else neighbouring points.
    const bool across = t_.has_rows && is_across(t_, run_.variables);
    n_.lane_shift = across ? u32(std::countr_zero(g_.per_block)) : 0;
    n_.row_shift = across ? 0 : u32(std::countr_zero(n_.lanes));
    n_.item_points = n_.lanes, n_.item_shift = u32(std::countr_zero(n_.lanes));
    n_.quad_points = ITEMS_A_UNIT * (t_.has_rows ? n_.lanes : g_.threads);
    const int64_t at_once = int64_t(n_.lanes) * ITEMS;
    n_.piece_points = g_.pieces == 1 ? std::max<i64>(n_.points, 1) : divided_up(divided_up(n_.points, at_once), g_.pieces) * at_once;
    n_.is_long = n_.points >= i64(1) << 31;
    n_.are_kept = g_.pieces == 1 && n_.points <= at_once * t_.kept_tiles;
}

void Filler::shared()
{
    n_.number_count = u32(t_.numbers.size());
    n_.folds_at = n_.number_count * UNIT_BYTES;
    n_.rows_at = n_.folds_at + t_.folds * t_.threads * UNIT_BYTES;
    n_.slots_at = t_.slots_at;
    n_.unit_bytes = t_.threads * UNIT_BYTES;
    n_.spilled = t_.spilled;
    n_.near_at = t_.near_at, n_.access_count = u32(t_.accesses.size()), n_.code_count = u32(t_.code.size());
}

u64 Filler::base_of(const TapeAccess& a) const
{
    const int64_t offset = value(a.access.offset);
    if (a.buffer >= 0 && !run_.buffers[size_t(a.buffer)]) return 0;      // an output that is not wanted: nothing is stored
    return a.buffer < 0 ? u64(offset) : reinterpret_cast<uintptr_t>(run_.buffers[size_t(a.buffer)]) + u64(offset * a.bytes);
}

u32 Filler::form_of(const TapeAccess& a, const Joined& row, const Joined& point) const
{
    u32 form = (point.is_zero ? u32(SAME) : 0) | (point.is_one ? 0 : u32(LISTED)) | (row.is_one ? 0 : u32(ROWS_LISTED));
    if (!a.is_plain || point.is_zero) return form;
    const bool is_span = t_.has_rows && n_.lanes == 2 && n_.lane_shift == 0 && (a.bytes == 2 || a.bytes == 4) && point.is_one && point.stride == 1;
    if (n_.item_points != 1 && !is_span) return form;
    const int64_t wide = is_span ? UNIT_BYTES : std::min(16, ITEMS_A_UNIT * a.bytes);
    bool is_aligned = base_of(a) % u64(wide) == 0;
    for (const int32_t axis : t_.row_axes) is_aligned &= extent(axis) == 1 || value(a.access.strides[size_t(axis)]) * a.bytes % wide == 0;
    if (is_span) return form | (is_aligned ? u32(SPANS) : 0);
    if (point.is_one) return form | (is_aligned && point.stride == 1 ? u32(QUADS) : 0);
    const int32_t inner = t_.walked.back();
    if (extent(inner) % ITEMS_A_UNIT) return form;
    for (const int32_t axis : t_.walked)
        if (axis != inner) is_aligned &= value(a.access.strides[size_t(axis)]) * a.bytes % wide == 0;
    const int64_t step = value(a.access.strides[size_t(inner)]);
    return form | (step == 0 ? u32(QUAD_SAME) : step == 1 && is_aligned ? u32(QUADS) : 0);
}

void Filler::accesses()
{
    n_.accesses_at = at_;
    u32 list = at_ + 4 * u32(t_.accesses.size());
    bool is_listed = false, are_rows_listed = false;
    for (const TapeAccess& a : t_.accesses) {
        is_listed |= !joined(t_, a.access, t_.walked, run_.variables).is_one;
        are_rows_listed |= !joined(t_, a.access, t_.row_axes, run_.variables).is_one;
    }
    n_.axes = is_listed ? u32(t_.walked.size()) : 0;
    n_.are_quads = is_listed;
    n_.row_axes = are_rows_listed ? u32(t_.row_axes.size()) : 0;
    for (const TapeAccess& a : t_.accesses) {
        const Joined row = joined(t_, a.access, t_.row_axes, run_.variables), point = joined(t_, a.access, t_.walked, run_.variables);
        const bool is_apart = point.is_one && point.stride == 1 && (n_.lanes == 16 || n_.lanes == 32 || n_.lanes == 128);
        u32 form = form_of(a, row, point);
        if (is_apart && !(form & (SAME | LISTED | QUADS))) form |= APART;
        n_.words[at_++] = base_of(a);
        n_.words[at_++] = u64(row.is_one ? row.stride : 0);
        n_.words[at_++] = u64(point.is_one ? point.stride : 0);
        n_.words[at_++] = u64(list) << 32 | form;
        if (form & LISTED) n_.are_quads &= (form & (QUADS | QUAD_SAME)) != 0 && a.bytes < 8;       // 64 bits go one by one
        if (form & (LISTED | ROWS_LISTED)) list += n_.row_axes + n_.axes;
    }
    for (const TapeAccess& a : t_.accesses) {
        if (joined(t_, a.access, t_.row_axes, run_.variables).is_one && joined(t_, a.access, t_.walked, run_.variables).is_one) continue;
        if (n_.row_axes) strides(a, t_.row_axes);
        if (n_.axes) strides(a, t_.walked);
    }
}

void Filler::axes()
{
    n_.axes_at = at_;
    const auto add = [&](int32_t axis) {
        const auto size = u64(extent(axis));
        const u32 shift = size > 1 ? u32(std::bit_width(size - 1)) : 0;
        // Granlund & Montgomery 1994, figure 4.1
        const u64 multiplier = size == 0 || shift > 31 ? 0 : ((u64(1) << 32) * ((u64(1) << shift) - size)) / size + 1;
        n_.words[at_++] = size;
        n_.words[at_++] = u64(shift) << 32 | u32(multiplier);
    };
    for (u32 k = 0; k < n_.axes; k++) add(t_.walked[k]);
    for (u32 k = 0; k < n_.row_axes; k++) add(t_.row_axes[k]);
}

void Filler::numbers()
{
    n_.numbers_at = at_;
    for (const TapeNumber& number : t_.numbers) {
        u64 bits = u64(number.bits);
        if (number.kind == TapeNumber::Kind::Length) bits = u64(value(number.length));
        if (number.kind == TapeNumber::Kind::Scalar) {
            const auto bytes = size_t(bytes_of(number.type));
            bits = 0;
            // The low bytes: hosts are little-endian, as devices are.
            std::memcpy(&bits, static_cast<const char*>(run_.scalars) + number.bits, bytes);
            if (bytes <= 4) bits |= bits << 32;
        }
        n_.words[at_++] = bits;
    }
}

void Filler::fill(uint32_t launch)
{
    n_.code = static_cast<const Instruction*>(run_.code);
    n_.scratch = static_cast<char*>(run_.scratch);
    cut(launch);
    shared();
    accesses();
    axes();
    numbers();
}

}  // namespace

void fill_numbers(const Tape& tape, const TapeGeometry& geometry, const TapeRun& run, uint32_t launch, Numbers& out) noexcept
{
    Filler(tape, geometry, run, out).fill(launch);
}

}  // namespace ng::cuda
