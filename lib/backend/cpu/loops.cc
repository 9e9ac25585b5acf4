// Lays the loops of a plan, outermost first, and the parts of joined axes for stores that cannot walk them as one.
#include "lib/backend/cpu/space.h"

#include <algorithm>

namespace ng::cpu {
namespace {

class Layer {
  public:
    Layer(Plan& plan, const Program& p, const Space& s, const Way& way, int64_t* memory) : plan_(plan), p_(p), s_(s), way_(way), memory_(memory) {}
    void lay(bool is_outermost);

  private:
    struct Loop { const Axes* axes; int axis; int64_t count, times; };   // times: points of the axis a turn

    int64_t* take(int64_t numbers) { return (memory_ += numbers) - numbers; }
    void add(const Axes& axes, int axis) { loops_[count_++] = {&axes, axis, axes[axis].extent, 1}; }
    void add_blocks();
    void add_repeats(const Axes& axes, int axis);
    void order(bool is_outermost);
    bool strays(int32_t access) const;
    void find_strays();
    void write_loops();
    void write_lies();
    void write_parts();

    Plan&          plan_;
    const Program& p_;
    const Space&   s_;
    const Way&     way_;
    int64_t*       memory_;
    Loop           loops_[MAX_AXES + 1];
    int            count_ = 0;
};

void Layer::add_blocks()
{
    const int64_t extent = way_.axis < 0 ? 1 : s_.along(way_)[way_.axis].extent, blocks = divided_up(extent, way_.block);
    plan_.block_loop = count_;
    plan_.tail = extent - (blocks - 1) * way_.block;
    loops_[count_++] = {&s_.along(way_), way_.axis, blocks, way_.block};
}

void Layer::add_repeats(const Axes& axes, int axis)
{
    const int64_t extent = axes[axis].extent, blocks = divided_up(extent, way_.repeats);
    plan_.block_loop = count_;
    plan_.tail = (extent - (blocks - 1) * way_.repeats) * s_.kept[way_.axis].extent;
    loops_[count_++] = {&axes, axis, blocks, way_.repeats};
}

void Layer::order(bool is_outermost)
{
    if (is_outermost) add_blocks();
    for (int axis = 0; axis < s_.kept.count(); axis++) {
        if (axis == way_.stacked) add_repeats(s_.kept, axis);
        else if (!way_.is_columns || axis != way_.axis) add(s_.kept, axis);
        else if (!is_outermost && way_.stacked < 0) add_blocks();
    }
    plan_.kept = count_;
    for (int axis = 0; axis < s_.reduced.count(); axis++) {
        if (axis == way_.repeated) add_repeats(s_.reduced, axis);
        else if (way_.is_columns || axis != way_.axis) add(s_.reduced, axis);
        else add_blocks();
    }
    plan_.reduced = count_ - plan_.kept;
}

bool Layer::strays(int32_t access) const
{
    if (p_.decides[size_t(access)]) return false;
    for (const Axes* axes : {&s_.kept, &s_.reduced})
        for (int axis = 0; axis < axes->count(); axis++)
            if (!axes->is_followed(axis, access)) return true;
    return way_.repeated >= 0 && p_.is_full[size_t(access)] && !are_one(s_.reduced[way_.repeated], s_.kept[way_.axis], access);
}

void Layer::find_strays()
{
    int32_t first = 0;
    while (first < p_.accesses && !strays(first)) first++;
    if (first == p_.accesses) return;
    plan_.strays = reinterpret_cast<bool*>(take(divided_up(p_.accesses, int64_t(sizeof(int64_t)))));
    for (int32_t a = 0; a < p_.accesses; a++) plan_.strays[a] = strays(a);
    plan_.positions = p_.accesses;
    plan_.accesses += count_;
}

void Layer::write_loops()
{
    plan_.extents = take(count_);
    plan_.strides = take(int64_t(count_) * plan_.accesses);
    std::fill_n(plan_.strides, count_ * plan_.accesses, 0);
    for (int l = 0; l < count_; l++) {
        const Loop& loop = loops_[l];
        int64_t* const strides = plan_.strides + l * plan_.accesses;
        plan_.extents[l] = loop.count;
        for (int32_t a = 0; loop.axis >= 0 && a < p_.accesses; a++)
            if (!plan_.strays || !plan_.strays[a]) strides[a] = int64_t(uint64_t((*loop.axes)[loop.axis].strides[a]) * uint64_t(loop.times));
        if (plan_.strays) strides[plan_.positions + l] = l == plan_.block_loop ? way_.block : 1;
        (l < plan_.kept ? plan_.units : plan_.steps) = times(l < plan_.kept ? plan_.units : plan_.steps, loop.count);
    }
    plan_.step = take(p_.accesses);
    if (way_.axis >= 0) std::copy_n(s_.along(way_)[way_.axis].strides, p_.accesses, plan_.step);
    else std::fill_n(plan_.step, p_.accesses, 0);
}

void Layer::write_lies()
{
    const SpaceAxis &outer = s_.kept[way_.stacked], &inner = s_.kept[way_.axis];
    plan_.row = inner.extent;
    plan_.lies = reinterpret_cast<Lie*>(take(divided_up(p_.accesses, int64_t(sizeof(int64_t)))));
    for (int32_t a = 0; a < p_.accesses; a++) {
        plan_.lies[a] = lie_of(outer, inner, a);
        if (plan_.lies[a] == Lie::Each) plan_.step[a] = outer.strides[a];
    }
}

void Layer::write_parts()
{
    int64_t parts = 0;
    plan_.parts_end = take(count_);
    plan_.parts = take(int64_t(p_.axes) * (p_.accesses + 1));
    const auto add = [&](const Axes& axes, int axis) {
        for (int k = 0; k < axes.parts_of(axis); k++, parts++) {
            int64_t* const part = plan_.parts + parts * (p_.accesses + 1);
            *part = axes.part_of(axis, k).extent;
            std::copy_n(axes.part_of(axis, k).strides, p_.accesses, part + 1);
        }
    };
    for (int l = 0; l < count_; l++) {
        const bool is_within = way_.repeated >= 0 && loops_[l].axes == &s_.kept && loops_[l].axis == way_.axis;   // the blocks that repeat
        if (!is_within) add(*loops_[l].axes, loops_[l].axis);
        if (l == plan_.block_loop && way_.repeated >= 0) add(s_.kept, way_.axis);
        plan_.parts_end[l] = parts;
    }
    for (int32_t a = 0; a < p_.accesses; a++)
        if (plan_.strays[a]) plan_.step[a] = Plan::BY_PARTS;
}

void Layer::lay(bool is_outermost)
{
    plan_.accesses = p_.accesses;
    plan_.offset = s_.offset;
    order(is_outermost);
    find_strays();
    write_loops();
    if (way_.stacked >= 0) write_lies();
    if (plan_.strays) write_parts();
}

}  // namespace

void lay_loops(Plan& plan, const Program& program, const Space& space, const Way& way, bool is_outermost, int64_t* memory)
{
    Layer(plan, program, space, way, memory).lay(is_outermost);
}

}  // namespace ng::cpu
