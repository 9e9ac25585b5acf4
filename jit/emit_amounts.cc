// How much a thread of a form keeps on its way, by what a point costs and how many registers it needs.
#include "jit/emit_forms.h"

#include <algorithm>

namespace ng::emitting {

static bool is_known(const Extent& e) { return e.is_constant(); }

bool is_constant(const Arranged& a)
{
    const auto known = [](const Access& access) { return is_known(access.offset) && has_known_strides(access); };
    const bool are_axes_known = std::ranges::all_of(a.kernel.axes, [](const KernelAxis& axis) { return is_known(axis.extent); });
    return are_axes_known && is_known(a.rows) && is_known(a.points) && std::ranges::all_of(a.kernel.accesses, known);
}

bool has_known_rows(const Arranged& a)
{
    const auto is_known_along = [&](int32_t x) {
        return is_known(a.kernel.axes[size_t(x)].extent) && std::ranges::all_of(a.kernel.accesses, [x](const Access& access) { return is_known(access.strides[size_t(x)]); });
    };
    return a.has_rows() && std::ranges::all_of(a.reduced, is_known_along);
}

// Vectors of a thread at once: enough bytes on their way to fill the memory's latency, not more work than is worth its text.
int32_t held_points(const Arranged& a, int32_t width)
{
    const bool is_dear = width == 8 && a.weight > 24;          // what comes on top of each vector counts
    const int32_t most = width == 1 ? 8 : a.is_flat || is_dear ? 4 : 2;
    return std::max(1, std::min(most, (is_dear ? 1536 : 768) / (width * a.weight)));
}

bool has_small_points(const Arranged& a)
{
    constexpr int32_t SMALL_BYTES = 2;
    bool is_small = true;
    each_moved(a, [&](int32_t, Dtype t, int32_t) { is_small &= bytes_of(t) <= SMALL_BYTES; });
    return is_small;
}

// Of a point, that come from memory: what all rows share is in caches.
int32_t loaded_bytes(const Arranged& a)
{
    int32_t bytes = 0;
    for (size_t v = 0; v < a.kernel.values.size(); v++) {
        const Value& value = a.kernel.values[v];
        if (value.kind != ValueKind::Load || !a.is_full(int32_t(v)) || !a.passes.wanted[v]) continue;
        const Extents& strides = a.kernel.accesses[size_t(value.access)].strides;
        const bool is_shared = !a.kept.empty() && std::ranges::all_of(a.kept, [&](int32_t x) { return strides[size_t(x)].is(0); });
        if (!is_shared) bytes += bytes_of(value.type);
    }
    return bytes;
}
int32_t held_walk(const Arranged& a, int32_t width)
{
    // A row's plain folds of one tensor leave room for eight. Tuned on an H200: sums of 64 Mi f16 took 33.6 us with four, so 33.0.
    const bool is_plain = !a.is_across && a.passes.count == 1 && std::ranges::all_of(a.passes.running, [](const Passes::Running& r) { return r.kind == Passes::Kind::Own; });
    const int32_t bytes = loaded_bytes(a) * width, most = width > 1 && bytes > (is_plain ? 16 : 8) ? 4 : 8;
    return std::max(1, std::min(most, 1024 / (width * a.weight)));
}
// Of a row, vectors that one thread keeps: 64 bytes are on their way at once, and what stays is 32 registers at most; 0: a
// point needs too many. Tuned on an H200: with 32 bytes of f16 a thread, norms of rows took 75 % of a copy's rate.
int32_t held_row(const Arranged& a, int32_t width)
{
    const int32_t loaded = loaded_bytes(a);
    int32_t elements = loaded <= 2 ? 32 : loaded <= 8 ? 16 : 8;
    while (elements > 8 && (elements * a.held_bytes > 128 || elements * a.weight > 1536)) elements /= 2;
    return elements * a.held_bytes > 128 ? 0 : std::max(1, elements / width);
}

bool is_numbered(const Kernel& kernel)
{
    return std::ranges::any_of(kernel.values, [](const Value& v) { return v.kind == ValueKind::Fold && (v.op == Op::argmin || v.op == Op::argmax); });
}
// Twice as many where a row would not fit otherwise. Single elements take a register each, so not where much is computed of them: on an H100 softmaxes of 50257
// f16 took 33 to 91 us of 1 to 128 rows, those of f32, which are held by clusters, 9 to 36; places of the greatest 13 to 30, of f32, walked, 4 to 16.
int32_t held_most(const Arranged& a, int32_t width)
{
    const int32_t held = held_row(a, width);
    const bool has_room = width > 1 || (a.weight <= CHEAP && !is_numbered(a.kernel));
    return has_known_rows(a) && has_room && 2 * held * width * a.held_bytes <= 128 ? 2 * held : held;
}
// Of a column, vectors that one thread keeps: its share of those of few elements; 0: as above.
int32_t held_column(const Arranged& a, int32_t width)
{
    return is_numbered(a.kernel) || a.passes.count < 2 ? 0 : std::min({8, 32 / width, 64 / std::max(1, width * a.held_bytes), 1024 / (width * a.weight)});
}

}  // namespace ng::emitting
