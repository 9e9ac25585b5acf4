// How lengths and distances of a kernel are told apart, and said anew by the axes they belong to.
#include "jit/opened.h"

#include "jit/emit_forms.h"

#include <algorithm>

namespace ng {
namespace {

bool may_open(const Kernel& kernel)
{
    return std::ranges::all_of(kernel.values, [](const Value& v) {
        const bool is_numbered = v.op == Op::argmax || v.op == Op::argmin;
        return v.kind != ValueKind::Gather && v.kind != ValueKind::Index && v.kind != ValueKind::Random && v.kind != ValueKind::Stochastic && !is_numbered;
    });
}

class Opening {
  public:
    explicit Opening(const Kernel& kernel) : from_(emitting::arrange(kernel, false, {}).kernel) { out_.kernel = from_; }

    std::optional<Opened> done()
    {
        for (KernelAxis& a : out_.kernel.axes) a.extent = variable(a.extent);
        for (Access& a : out_.kernel.accesses)
            if (!open(a)) return std::nullopt;
        for (Value& v : out_.kernel.values)
            if (v.kind == ValueKind::Length) v.extent = known(v.extent);
        return std::move(out_);
    }

  private:
    Extent variable(const Extent& of)
    {
        out_.variables.push_back(of);
        return Extent::variable(int32_t(out_.variables.size()) - 1);
    }
    // What an axis has already, else a variable of its own.
    Extent known(const Extent& of)
    {
        const auto at = std::ranges::find(out_.variables, of);
        return at == out_.variables.end() ? variable(of) : Extent::variable(int32_t(at - out_.variables.begin()));
    }

    // From the axis along which elements lie side by side outwards: each that begins where those so far end is dense.
    bool open(Access& access)
    {
        const Extents strides = access.strides;
        std::vector<bool> is_done(strides.size());
        Extent reach = 1, opened = 1;
        bool   moves = false;
        for (size_t x = 0; x < strides.size(); x++) is_done[x] = strides[x].is(0), moves |= !is_done[x];
        while (true) {
            const auto at = std::ranges::find_if(strides, [&](const Extent& s) { return !is_done[size_t(&s - strides.data())] && s == reach; });
            if (at == strides.end()) break;
            const auto x = size_t(at - strides.begin());
            is_done[x] = true, access.strides[x] = opened;
            reach = reach * from_.axes[x].extent, opened = opened * out_.kernel.axes[x].extent;
        }
        if (moves && opened.is(1)) return false;
        for (size_t x = 0; x < strides.size(); x++)
            if (!is_done[x]) access.strides[x] = variable(strides[x]);
        if (!access.offset.is(0)) access.offset = variable(access.offset);
        return true;
    }

    const Kernel from_;
    Opened       out_;
};

}  // namespace

std::optional<Opened> open(const Kernel& kernel) { return may_open(kernel) ? Opening(kernel).done() : std::nullopt; }

}  // namespace ng
