// The texts of a kernel for CUDA: which there may be, whatever its lengths and addresses turn out to be.
#include "jit/emit_bounds.h"
#include "jit/emit_choice.h"
#include "jit/error.h"

#include <algorithm>

namespace ng {
using namespace emitting;
namespace {

// Whether lengths within these bounds may ask for the class: what choose() has to see for it.
bool may_come(const Arranged& a, const LaunchClass& c, const Bounds& b)
{
    const bool is_narrow = b.within(double(NARROW));
    if (c.form == Form::Points) return !c.is_wide || !is_narrow;
    if (c.form == Form::Columns) return !c.is_split || b.points >= 2.0 * (threads_of(c) >> 5) * c.held * PART_STEPS;
    const LaunchClass open = open_class(a, c.width);
    const bool exceeds = open.held == 0 || b.points > double(threads_of(open)) * open.held * c.width;
    if (c.form == Form::Held) return !c.is_split || exceeds;
    return (exceeds || (c.width == 1 && !is_narrow)) && (!c.is_split || b.points >= 2.0 * PART_LEAST);
}

}  // namespace

std::string text_of(const LaunchClass& c)
{
    constexpr const char* NAMES[] = {"points", "rows held", "rows walked", "columns"};
    return text(NAMES[size_t(c.form)], " by ", c.held, " of ", c.width, c.is_wide ? ", 64-bit" : "", c.is_split ? ", in parts" : "", c.is_full ? ", full" : "", c.is_large ? ", large" : "", c.is_peeled ? ", peeled" : "", c.is_ring ? ", in a ring" : c.is_keeping ? ", keeping" : c.is_staying ? ", staying" : "", c.log_lanes >= 0 ? text(" by ", 1 << c.log_lanes, " threads") : "");
}

KernelFamily::KernelFamily(const Kernel& kernel, const Dialect& dialect, DeviceTraits device, std::span<const int64_t> most) : dialect_(&dialect), device_(device)
{
    auto all = std::make_unique<Arrangements>(Arrangements{arrange(kernel, false, most), arrange(kernel, true, most), {}, {}, {}});
    Arrangements& arrangements = *all;
    arranged_ = std::move(all);
    const bool is_all_known = is_constant(arrangements.kernel);
    // Where it is not known how many rows there are all other texts are there as well: they may be too few for blocks that stay.
    if (!is_all_known) list(most);
    if (has_known_rows(arrangements.kernel)) {
        Arranged staying = arrangements.kernel, keeping = arrangements.kernel;
        hold_loads(staying), hold_dear(keeping);
        Arranged ring = staying;
        staying.stayed = stayed_of(staying, false), keeping.stayed = stayed_of(keeping, false), ring.stayed = stayed_of(ring, true);
        if (staying.stayed.point_bytes) arrangements.staying = std::move(staying);
        if (keeping.stayed.point_bytes && keeping.stayed.kept_bytes) arrangements.keeping = std::move(keeping);
        if (ring.stayed.point_bytes && may_ring(ring)) arrangements.ring = std::move(ring);
    }
    is_all_known ? list(most) : list_staying(arrangements, bounds_of(arrangements.kernel, most));
}
KernelFamily::~KernelFamily() = default;
KernelFamily::KernelFamily(KernelFamily&&) noexcept = default;
KernelFamily& KernelFamily::operator=(KernelFamily&&) noexcept = default;

int64_t KernelFamily::rows_of(std::span<const int64_t> variables) const { return arranged_->kernel.has_rows() ? arranged_->kernel.rows.value(variables) : 1; }

int32_t KernelFamily::find(const LaunchClass& c) const
{
    const auto at = std::ranges::find(classes_, c);
    return at == classes_.end() ? -1 : int32_t(at - classes_.begin());
}

// Where all is known, what choose() may answer; else all that it may answer for some lengths.
void KernelFamily::list(std::span<const int64_t> most)
{
    const Arranged &a = arranged_->kernel, &running = arranged_->running;
    const Bounds bounds = bounds_of(a, most);
    const auto add = [&](const LaunchClass& c) {
        if (find(c) < 0 && may_come(a, c, bounds)) classes_.push_back(c);
    };
    if (is_constant(a)) {
        for (const Lie lie : {lie_of(a, {}, {}), Lie::Anyhow}) {
            LaunchClass c;
            if (emitting::choose(*arranged_, rows_of({}), {}, device_, lie, c).launches && find(c) < 0) classes_.push_back(c);
        }
        return;
    }
    if (has_known_rows(a) && !a.is_across) return list_known(bounds);
    for (const int32_t w : {a.width, 1}) {
        const auto width = uint8_t(w);
        if (!a.has_rows()) {
            for (const bool is_wide : {false, true}) add(points_class(a, w, is_wide));
            continue;
        }
        if (!a.is_across) {
            const auto held = uint8_t(held_row(a, w));
            if (held) add(open_class(a, w));
            LaunchClass cluster{Form::Held, width, held, false, true};
            cluster.is_peeled = a.may_peel && w > 1;
            if (held && may_cluster(a, device_) && !is_walked_once(a, running)) add(cluster);
        }
        const int32_t wide = std::min(w, running.width);
        const int32_t few = held_columns_width(w);
        if (a.is_across && held_column(a, few)) add({Form::Held, uint8_t(few), uint8_t(held_column(a, few)), false, false});
        for (const bool is_split : {false, true})
            if (!is_split || may_split(running)) add({a.is_across ? Form::Columns : Form::Walked, uint8_t(wide), uint8_t(held_walk(running, wide)), w == 1, is_split});
    }
}

// Of rows that are known their number decides little: whether they go in parts, and whether 32 bits count them.
void KernelFamily::list_known(const Bounds& bounds)
{
    const auto most = int64_t(std::clamp(bounds.rows, 1.0, double(NARROW)));
    for (const Lie lie : {arranged_->kernel.width == 1 ? Lie::Anyhow : arranged_->kernel.is_peeled ? Lie::Level : Lie::Aligned, Lie::Anyhow}) {
        for (const int64_t rows : {int64_t(1), std::min(most, NARROW - 1), most}) {
            LaunchClass c;
            if (emitting::choose(*arranged_, rows, {}, device_, lie, c).launches && find(c) < 0) classes_.push_back(c);
        }
    }
}

// One text of them, whatever rows there are: no other is asked for then.
void KernelFamily::list_staying(Arrangements& all, const Bounds& bounds)
{
    const auto text = [&](const std::optional<Arranged>& a) -> std::optional<LaunchClass> {
        if (!a || is_walked_once(all.kernel, all.running)) return std::nullopt;
        for (auto rows = int64_t(std::min(bounds.rows, 8.0 * device_.units)); rows > 0; rows--)
            if (const std::optional<Staying> s = stay(*a, rows, a->points.value({}), device_)) return s->text;
        return std::nullopt;
    };
    std::optional<LaunchClass> found;
    for (std::optional<Arranged>* const a : all.stayed()) {
        const bool is_late = found.has_value();
        if (!is_late) found = text(*a);
        if (is_late || !found) a->reset();
    }
    if (found) classes_.push_back(*found);
}

KernelSource KernelFamily::source(size_t which) const
{
    const LaunchClass& c = classes_.at(which);
    const bool reads_once = c.form == Form::Points || c.form == Form::Held;
    return print_form(c.is_ring ? *arranged_->ring : c.is_keeping ? *arranged_->keeping : c.is_staying ? *arranged_->staying : reads_once ? arranged_->kernel : arranged_->running, *dialect_, c);
}

Geometry KernelFamily::choose(std::span<const int64_t> variables, std::span<const uint64_t> addresses) const
{
    LaunchClass c;
    Geometry g = emitting::choose(*arranged_, rows_of(variables), variables, device_, lie_of(arranged_->kernel, variables, addresses), c);
    if (g.launches) g.which = find(c);
    return g;
}

uint64_t KernelFamily::scratch_bytes(std::span<const int64_t> most) const
{
    if (!is_constant(arranged_->kernel)) return most_scratch(*arranged_, most, device_);
    uint64_t bytes = 0;
    for (const Lie lie : {lie_of(arranged_->kernel, {}, {}), Lie::Level, Lie::Anyhow}) {
        LaunchClass c;
        bytes = std::max(bytes, emitting::choose(*arranged_, rows_of({}), {}, device_, lie, c).scratch_bytes);
    }
    return bytes;
}

}  // namespace ng

