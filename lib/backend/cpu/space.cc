// Sorts and joins axes by the strides that decide: those of outputs that are known when run do not where sums are paired.
#include "lib/backend/cpu/space.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ng::cpu {
namespace {

// Where there is any element strides in memory are nearer than this; of nothing they may be any number, with which nobody may multiply.
// Of what is counted alone they are as large as numbers are.
constexpr int64_t FAR = int64_t(1) << 47, MOST = std::numeric_limits<int64_t>::max();

}  // namespace

void Axes::sort(const Program& p)
{
    const int32_t accesses = p.position < 0 ? p.accesses : p.position;
    const auto width = [&](const SpaceAxis& axis) {
        int64_t sum = 0;
        for (int32_t a = 0; a < accesses; a++)
            if (p.decides[size_t(a)]) sum += std::min(magnitude(axis.strides[a]), FAR);
        return sum;
    };
    for (int i = 1; i < count_; i++)
        for (int j = i; j > 0 && width(axes_[j - 1]) < width(axes_[j]); j--) std::swap(axes_[j - 1], axes_[j]);
}

void Axes::join(const Program& p)
{
    const int count = std::exchange(count_, 0);
    std::copy_n(axes_, count, parts_);
    for (int i = 0; i < count; i++) {
        bool joins = count_ > 0;
        for (int32_t a = 0; joins && a < p.accesses; a++) joins = !p.decides[size_t(a)] || are_one(axes_[count_ - 1], parts_[i], a);
        if (joins) axes_[count_ - 1] = {times(axes_[count_ - 1].extent, parts_[i].extent), parts_[i].strides};
        else axes_[count_++] = parts_[i];
        ends_[count_ - 1] = i + 1;
    }
}

bool Axes::is_followed(int axis, int32_t access) const
{
    for (int part = parts_of(axis); part-- > 1;)
        if (!are_one(part_of(axis, part - 1), part_of(axis, part), access)) return false;
    return true;
}

Space::Space(const Program& p, const int64_t* values, const Box* box, int64_t*& memory)
{
    const auto take = [&](int64_t numbers) { return (memory += numbers) - numbers; };
    offset = take(p.accesses + p.axes);
    std::fill_n(offset + p.accesses, p.axes, 0);
    for (int32_t a = 0; a < p.accesses; a++) offset[a] = values[p.offset_at(a)];
    for (int32_t axis = 0; axis < p.axes; axis++) {
        const int64_t extent = box ? box->count[axis] : values[axis];
        const bool    is_reduced = p.reduced[size_t(axis)];
        for (int32_t a = 0; box && a < p.accesses; a++) offset[a] += box->first[axis] * values[p.stride_at(a, axis)];
        (is_reduced ? length : rows) *= double(extent);
        if (extent == 1) continue;
        int64_t* strides = take(p.accesses);
        for (int32_t a = 0; a < p.accesses; a++) {
            const int64_t far = p.is_in_memory[size_t(a)] ? FAR : MOST;
            strides[a] = std::clamp(values[p.stride_at(a, axis)], -far, far);
        }
        (is_reduced ? reduced : kept).add({extent, strides});
    }
    kept.sort(p);
    if (p.position < 0) reduced.sort(p);               // else the first of equals would not come first
    kept.join(p);
    reduced.join(p);
}

}  // namespace ng::cpu
