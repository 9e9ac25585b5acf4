// Takes a kernel apart at its folds: values move to one side or the other, and parts of the folds lie between.
#include "jit/fold_parts.h"

#include <algorithm>

namespace ng {
namespace {

bool is_fold_of_parts(const Value& v)
{
    const bool is_plain = v.op == Op::sum || v.op == Op::prod || v.op == Op::min || v.op == Op::max;
    return is_plain && (v.type == Dtype::f32 || (v.type == Dtype::i32 && v.op != Op::sum && v.op != Op::prod));
}

class Cutter {
  public:
    Cutter(const Kernel& kernel, int32_t buffers, const Extent& parts) : kernel_(kernel), buffers_(buffers), parts_(parts) {}

    std::optional<FoldParts> cut()
    {
        if (!find_axis()) return std::nullopt;
        lay_parts();
        if (!cut_points()) return std::nullopt;
        cut_after();
        return std::move(out_);
    }

  private:
    bool is_reduced(size_t axis) const { return kernel_.axes[axis].reduced; }
    bool is_row(const Access& a) const
    {
        for (size_t i = 0; i < kernel_.axes.size(); i++)
            if (is_reduced(i) && !a.strides[i].is(0)) return false;
        return true;
    }
    bool find_axis();
    void lay_parts();
    bool cut_points();
    void cut_after();
    // The values that these are made of; a fold ends the way where it is only its result that counts.
    std::vector<bool> needed(std::vector<bool> seeds, bool ends_at_folds) const;
    Access after_access(const Access& from) const;

    const Kernel&        kernel_;
    const int32_t        buffers_;
    const Extent         parts_;
    Access               part_;          // of the kernel's axes
    std::vector<size_t>  others_;        // axes that a part has
    std::vector<int32_t> folds_;         // values
    FoldParts            out_;
};

bool Cutter::find_axis()
{
    const size_t rank = kernel_.axes.size();
    if (rank < 2 || (!is_reduced(rank - 1) && !is_reduced(rank - 2))) return false;
    out_.axis = is_reduced(rank - 1) ? rank - 1 : rank - 2;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (kernel_.values[v].kind != ValueKind::Fold) continue;
        if (!is_fold_of_parts(kernel_.values[v])) return false;
        folds_.push_back(int32_t(v));
    }
    return !folds_.empty();
}

// Of a fold over columns a part has all else, reduced or not; one over rows goes on through what else is reduced.
void Cutter::lay_parts()
{
    const size_t rank = kernel_.axes.size();
    part_ = {0, Extents(rank, Extent(0))};
    for (size_t i = rank; i-- > 0;) {
        if (i == out_.axis || (out_.axis != rank - 1 && is_reduced(i))) continue;
        part_.strides[i] = out_.count;
        out_.count = out_.count * kernel_.axes[i].extent;
        others_.insert(others_.begin(), i);
    }
}

std::vector<bool> Cutter::needed(std::vector<bool> seeds, bool ends_at_folds) const
{
    for (size_t v = kernel_.values.size(); v-- > 0;) {
        if (!seeds[v] || (ends_at_folds && kernel_.values[v].kind == ValueKind::Fold)) continue;
        for (const int32_t arg : kernel_.values[v].args)
            if (arg >= 0) seeds[size_t(arg)] = true;
    }
    return seeds;
}

bool Cutter::cut_points()
{
    Kernel& k = out_.points;
    k.name = kernel_.name, k.axes = kernel_.axes, k.accesses = kernel_.accesses;
    for (KernelAxis& axis : k.axes) axis.reduced = false;
    std::vector<bool> seeds(kernel_.values.size());
    for (const StoreTo& s : kernel_.stores)
        if (!is_row(kernel_.accesses[size_t(s.access)])) seeds[size_t(s.value)] = true;
    for (const int32_t f : folds_) seeds[size_t(kernel_.values[size_t(f)].args[0])] = true;
    const std::vector<bool> is_needed = needed(std::move(seeds), false);
    std::vector<int32_t> place(kernel_.values.size(), -1);
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_needed[v]) continue;
        Value moved = kernel_.values[v];
        if (moved.kind == ValueKind::Fold) return false;
        for (int32_t& arg : moved.args) arg = arg < 0 ? -1 : place[size_t(arg)];
        moved.row = false;
        place[v] = int32_t(k.values.size());
        k.values.push_back(std::move(moved));
    }
    for (StoreTo s : kernel_.stores) {
        if (is_row(kernel_.accesses[size_t(s.access)])) continue;
        s.value = place[size_t(s.value)];
        k.stores.push_back(s);
    }
    const auto access = int32_t(k.accesses.size());
    k.accesses.push_back(part_);
    for (const int32_t f : folds_) {
        const Value& fold = kernel_.values[size_t(f)];
        const int32_t term = place[size_t(fold.args[0])];
        if (compute_of(k.values[size_t(term)].type) != fold.type) return false;
        out_.folds.push_back({int32_t(k.stores.size()), fold.op});
        k.stores.push_back({term, buffers_ + int32_t(out_.folds.size()) - 1, access});
    }
    return true;
}

Access Cutter::after_access(const Access& from) const
{
    Access a{from.offset, {Extent(0)}};
    for (const size_t i : others_) a.strides.push_back(from.strides[i]);
    return a;
}

void Cutter::cut_after()
{
    Kernel& k = out_.after;
    k.name = kernel_.name;
    k.axes.push_back({parts_, true});
    for (const size_t i : others_) k.axes.push_back(kernel_.axes[i]);
    const auto buffer_of = [&](int32_t buffer) {
        const auto at = std::ranges::find(out_.after_buffers, buffer);
        if (at == out_.after_buffers.end()) return out_.after_buffers.push_back(buffer), int32_t(out_.after_buffers.size()) - 1;
        return int32_t(at - out_.after_buffers.begin());
    };
    const auto add_access = [&](Access a) { return k.accesses.push_back(std::move(a)), int32_t(k.accesses.size()) - 1; };
    Access of_parts = after_access(part_);
    of_parts.strides[0] = out_.count;
    std::vector<bool> seeds(kernel_.values.size());
    for (const StoreTo& s : kernel_.stores)
        if (is_row(kernel_.accesses[size_t(s.access)])) seeds[size_t(s.value)] = true;
    const std::vector<bool> is_needed = needed(std::move(seeds), true);
    std::vector<int32_t> place(kernel_.values.size(), -1);
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_needed[v]) continue;
        Value moved = kernel_.values[v];
        if (moved.kind == ValueKind::Fold) {
            const auto number = int32_t(std::ranges::find(folds_, int32_t(v)) - folds_.begin());
            Value part{ValueKind::Load};
            part.type = moved.type, part.buffer = buffer_of(-1 - number), part.access = add_access(of_parts);
            moved.args = {int32_t(k.values.size()), -1, -1};
            k.values.push_back(std::move(part));
        } else {
            for (int32_t& arg : moved.args) arg = arg < 0 ? -1 : place[size_t(arg)];
            if (moved.buffer >= 0) moved.buffer = buffer_of(moved.buffer);
            if (moved.access >= 0) moved.access = add_access(after_access(kernel_.accesses[size_t(moved.access)]));
        }
        place[v] = int32_t(k.values.size());
        k.values.push_back(std::move(moved));
    }
    for (StoreTo s : kernel_.stores) {
        const Access& access = kernel_.accesses[size_t(s.access)];
        if (!is_row(access)) continue;
        s.value = place[size_t(s.value)], s.buffer = buffer_of(s.buffer), s.access = add_access(after_access(access));
        k.stores.push_back(s);
    }
}

}  // namespace

std::optional<FoldParts> fold_parts(const Kernel& kernel, int32_t buffers, const Extent& parts) { return Cutter(kernel, buffers, parts).cut(); }

}  // namespace ng
