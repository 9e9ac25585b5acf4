// Puts a kernel's axes in the order of memory, joins those that are one, and chooses what vectors lie along.
#include "jit/emit_bounds.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace ng::emitting {
namespace {

// The access whose order in memory counts: the first that is written point by point, else the first that is read, of a whole tensor if there is one.
const Access* leading(const Kernel& kernel, const Passes& passes)
{
    for (size_t s = 0; s < kernel.stores.size(); s++)
        if (!passes.stores[s].row) return &kernel.accesses[size_t(kernel.stores[s].access)];
    const Access* first = nullptr;
    for (size_t v = 0; v < kernel.values.size(); v++) {
        if (kernel.values[v].kind != ValueKind::Load || passes.level[v] != Level::Full) continue;
        const Access& access = kernel.accesses[size_t(kernel.values[v].access)];
        if (is_whole(kernel, access)) return &access;
        if (!first) first = &access;
    }
    return first;
}

// Axes of these numbers, those of greater strides first, where all are known.
void order(std::vector<int32_t>& axes, const Access& by)
{
    for (const int32_t a : axes)
        if (!by.strides[size_t(a)].is_constant()) return;
    std::ranges::stable_sort(axes, std::greater<>(), [&](int32_t a) { return std::abs(by.strides[size_t(a)].constant()); });
}

// Whether all accesses see outer and inner as one axis.
bool are_one(const Kernel& kernel, int32_t outer, int32_t inner)
{
    const Extent& extent = kernel.axes[size_t(inner)].extent;
    return std::ranges::all_of(kernel.accesses, [&](const Access& a) { return a.strides[size_t(outer)] == a.strides[size_t(inner)] * extent; });
}

void join(Kernel& kernel, std::vector<int32_t>& axes)
{
    for (size_t k = axes.size(); k-- > 1;) {
        if (!are_one(kernel, axes[k - 1], axes[k])) continue;
        KernelAxis& inner = kernel.axes[size_t(axes[k])];
        inner.extent = kernel.axes[size_t(axes[k - 1])].extent * inner.extent;
        axes.erase(axes.begin() + std::ptrdiff_t(k) - 1);
    }
}

// The kernel over these axes alone, in this order.
Kernel over(const Kernel& kernel, const std::vector<int32_t>& axes)
{
    Kernel out = kernel;
    out.axes.clear();
    for (const int32_t a : axes) out.axes.push_back(kernel.axes[size_t(a)]);
    for (size_t k = 0; k < kernel.accesses.size(); k++) {
        out.accesses[k].strides.clear();
        for (const int32_t a : axes) out.accesses[k].strides.push_back(kernel.accesses[k].strides[size_t(a)]);
    }
    return out;
}

// Strides that are known when run are variables, in the order of a tensor's axes: the last is 1 unless somebody chose
// otherwise. One that is 1 for certain decides.
int32_t unit_axis(const Access& access)
{
    int32_t axis = -1, highest = -1;
    for (size_t x = 0; x < access.strides.size(); x++) {
        const Extent& stride = access.strides[x];
        if (stride.is(1)) return int32_t(x);
        const int32_t variable = stride.highest_variable();
        if (variable < 0 || variable <= highest) continue;
        highest = variable, axis = stride == Extent::variable(variable) ? int32_t(x) : -1;
    }
    return axis;
}

// Bytes of a point that lie side by side along the axis; of whole tensors, or of all.
int32_t side_by_side(const Arranged& a, int32_t axis, bool are_whole)
{
    int32_t bytes = 0;
    const auto add = [&](int32_t access, Dtype t) {
        if (a.unit[size_t(access)] == axis && (!are_whole || is_whole(a.kernel, a.kernel.accesses[size_t(access)]))) bytes += bytes_of(t);
    };
    for (size_t v = 0; v < a.kernel.values.size(); v++)
        if (a.kernel.values[v].kind == ValueKind::Load && a.is_full(int32_t(v))) add(a.kernel.values[v].access, a.kernel.values[v].type);
    for (size_t s = 0; s < a.kernel.stores.size(); s++)
        if (!a.passes.stores[s].row) add(a.kernel.stores[s].access, a.kernel.values[size_t(a.kernel.stores[s].value)].type);
    return bytes;
}

void choose_axis(Arranged& a)
{
    const auto last = [](const std::vector<int32_t>& axes) { return axes.empty() ? -1 : axes.back(); };
    const int32_t inner = last(a.walked()), outer = a.has_rows() ? last(a.kept) : -1;
    for (const bool are_whole : {true, false}) {
        const int32_t along = inner < 0 ? 0 : side_by_side(a, inner, are_whole), across = outer < 0 ? 0 : side_by_side(a, outer, are_whole);
        a.is_across = across > along;
        if (along != across) break;
    }
    a.axis = a.is_across ? outer : inner;
}

// False where lengths that are known leave some vector of this width incomplete or misaligned, as far as 16 bytes go.
bool divides(const Arranged& a, int32_t width)
{
    const auto divides = [&](const Extent& e, int32_t step) { return !e.is_constant() || e.constant() % step == 0; };
    bool all = divides(a.kernel.axes[size_t(a.axis)].extent, width);
    each_moved(a, [&](int32_t access, Dtype t, int32_t) {
        const Access& at = a.kernel.accesses[size_t(access)];
        const int32_t step = std::min(width, 16 / bytes_of(t));
        if (pace_of(a, access, true) != Pace::Unit) return;
        all &= divides(at.offset, step);
        for (size_t x = 0; x < at.strides.size(); x++) all &= int32_t(x) == a.axis || divides(at.strides[x], step);
    });
    return all;
}

// As many elements as make the widest of them 16 bytes, fewer where a point costs much, or where they do not divide rows; those are peeled if they may be.
void choose_width(Arranged& a)
{
    if (a.axis < 0) return;
    int32_t widest = 0;
    const auto add = [&](int32_t access, Dtype t) {
        if (pace_of(a, access, true) == Pace::Unit) widest = std::max(widest, bytes_of(t));
    };
    for (size_t v = 0; v < a.kernel.values.size(); v++)
        if (a.kernel.values[v].kind == ValueKind::Load && a.is_full(int32_t(v))) add(a.kernel.values[v].access, a.kernel.values[v].type);
    for (size_t s = 0; s < a.kernel.stores.size(); s++)
        if (!a.passes.stores[s].row) add(a.kernel.stores[s].access, a.kernel.values[size_t(a.kernel.stores[s].value)].type);
    if (widest == 0) return;
    a.width = std::min(16 / widest, 8);
    while (a.width > 4 && a.width * a.weight > 400) a.width /= 2;
    const int32_t most = a.width;
    while (a.width > 1 && !divides(a, a.width)) a.width /= 2;
    choose_peeled(a, most);
}

// Loads that lie along one axis other than the vectors', where a tile of each fits the shared memory of a block. Of short axes it has all.
void choose_tile(Arranged& a, std::span<const int64_t> most)
{
    if (a.has_rows() || a.axis < 0) return;
    int32_t axis = -1, bytes = 0;
    for (size_t v = 0; v < a.kernel.values.size(); v++) {
        const Value& value = a.kernel.values[v];
        if (value.kind != ValueKind::Load || !a.is_full(int32_t(v)) || !a.passes.wanted[v]) continue;
        const int32_t unit = a.unit[size_t(value.access)];
        if (unit < 0 || unit == a.axis || pace_of(a, value.access, true) != Pace::Strided) continue;
        if (axis >= 0 && unit != axis) return;
        axis = unit, bytes += bytes_of(value.type);
    }
    const bool is_late = std::ranges::any_of(a.kernel.stores, [](const StoreTo& s) { return s.late; });
    if (axis < 0 || bytes * TILE_POINTS > 48 << 10 || is_late) return;
    const Extent &across = a.kernel.axes[size_t(axis)].extent, &along = a.kernel.axes[size_t(a.axis)].extent;
    const double lines = magnitude(along, most);
    const auto points = int64_t(std::min(magnitude(across, most), double(TILE_SIDE)));
    // Few elements a line are found in the second cache each time if all lines fit there. (H100: f16 [64, 333, 333, 3] to [64, 3, 333, 333] took 41.6 us by tiles, 32.5 so.)
    constexpr int64_t FEW = 16, CACHED_BYTES = 4 << 20;
    if (points < 2 || (points < FEW && lines < double(CACHED_BYTES / (points * bytes)))) return;
    a.tile_side = int32_t(std::clamp<int64_t>(int64_t(std::bit_ceil(uint64_t(points))), 4, TILE_SIDE));
    // Less than half a tile of lines is not worth its threads.
    if (lines >= TILE_POINTS / a.tile_side / 2) a.tile_axis = axis;
}

// Where all points in their order lie side by side and aligned, as far as 8 bytes go.
bool is_flat(const Arranged& a, const Access& access, int32_t width)
{
    int64_t stride = 1;
    for (size_t k = a.kept.size(); k-- > 0;) {
        const auto x = size_t(a.kept[k]);
        if (!access.strides[x].is(stride)) return false;
        if (k > 0) stride *= a.kernel.axes[x].extent.constant();
    }
    return access.offset.is_constant() && access.offset.constant() % width == 0;
}

// Small elements in rows of odd lengths, or from odd ones on: at least their results are written as vectors. Tuned on an
// H200: f16 in rows of 4097 took 47 % of a copy's rate by single elements, f32 95 %.
void choose_flat(Arranged& a)
{
    if (a.has_rows() || a.width > 1 || a.axis < 0 || a.tile_axis >= 0) return;
    for (size_t k = 1; k < a.kept.size(); k++)
        if (!a.kernel.axes[size_t(a.kept[k])].extent.is_constant()) return;
    int32_t widest = 0;
    for (const StoreTo& s : a.kernel.stores) widest = std::max(widest, bytes_of(a.kernel.values[size_t(s.value)].type));
    if (widest > 2) return;
    const int32_t width = 8 / widest;
    for (const StoreTo& s : a.kernel.stores)
        if (!is_flat(a, a.kernel.accesses[size_t(s.access)], width)) return;
    a.is_flat = true, a.width = width;
    for (size_t k = 0; k < a.unit.size(); k++) a.unit[k] = is_flat(a, a.kernel.accesses[k], width) ? a.axis : -1;
}

}  // namespace

bool is_whole(const Kernel& kernel, const Access& access)
{
    bool is_whole = true;
    for (size_t x = 0; x < access.strides.size(); x++) is_whole &= kernel.axes[x].extent.is(1) || !access.strides[x].is(0);
    return is_whole;
}

bool Arranged::is_tiled(int32_t v) const
{
    const Value& value = kernel.values[size_t(v)];
    if (tile_axis < 0 || value.kind != ValueKind::Load || !is_full(v) || !passes.wanted[size_t(v)]) return false;
    return unit[size_t(value.access)] == tile_axis && pace_of(*this, value.access, true) == Pace::Strided;
}
bool is_tiled(const Arranged& a, const LaunchClass& c) { return a.tile_axis >= 0 && !c.is_wide; }

bool Arranged::is_held(int32_t v) const
{
    const uint32_t passes_that_read = held_wanted[size_t(v)];
    return kernel.values[size_t(v)].kind == ValueKind::Load && is_full(v) && (passes_that_read & (passes_that_read - 1));
}

Pace pace_of(const Arranged& a, int32_t access, bool is_vector)
{
    if (a.is_flat && is_vector) return a.unit[size_t(access)] == a.axis ? Pace::Unit : Pace::Strided;
    const Extent& stride = a.kernel.accesses[size_t(access)].strides[size_t(a.axis)];
    if (stride.is(0)) return Pace::Same;
    return stride.is(1) || (is_vector && a.unit[size_t(access)] == a.axis) ? Pace::Unit : Pace::Strided;
}

Arranged arrange(const Kernel& kernel, bool may_run, std::span<const int64_t> most)
{
    std::vector<int32_t> kept, reduced;
    for (size_t i = 0; i < kernel.axes.size(); i++) (kernel.axes[i].reduced ? reduced : kept).push_back(int32_t(i));
    const Passes first = passes_of(kernel, false);
    // The number of a point is what argmin and argmax give, so there reduced axes stay as they are.
    if (const Access* by = leading(kernel, first)) {
        order(kept, *by);
        if (!is_numbered(kernel)) order(reduced, *by);
    }
    Arranged a;
    a.kernel = kernel;
    join(a.kernel, kept), join(a.kernel, reduced);
    std::vector<int32_t> axes = kept;
    axes.insert(axes.end(), reduced.begin(), reduced.end());
    a.kernel = over(a.kernel, axes);
    for (size_t i = 0; i < axes.size(); i++) (i < kept.size() ? a.kept : a.reduced).push_back(int32_t(i));
    a.passes = passes_of(a.kernel, false);
    for (const int32_t i : a.kept) a.rows = a.rows * a.kernel.axes[size_t(i)].extent;
    for (const int32_t i : a.reduced) a.points = a.points * a.kernel.axes[size_t(i)].extent;
    if (!a.has_rows()) std::swap(a.rows, a.points);
    for (size_t v = 0; v < a.kernel.values.size(); v++) {
        if (a.passes.wanted[v] && a.is_full(int32_t(v))) a.weight += weight_of(a.kernel, v);
    }
    hold(a);
    for (const Access& access : a.kernel.accesses) a.unit.push_back(unit_axis(access));
    choose_axis(a);
    choose_width(a);
    choose_tile(a, most);
    choose_flat(a);
    if (!may_run) return a;
    a.passes = passes_of(a.kernel, true);
    hold(a);
    // What runs is more to keep for each of a thread's columns.
    const bool runs = std::ranges::any_of(a.passes.running, [](const Passes::Running& r) { return r.kind != Passes::Kind::Own; });
    if (runs && a.is_across) a.width = std::min(a.width, 4);
    return a;
}

}  // namespace ng::emitting
