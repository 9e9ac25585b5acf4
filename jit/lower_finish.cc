// What a kernel in the making may become, and the kernel that it is when nothing joins any more.
#include "jit/lower.h"

#include <algorithm>

namespace ng {
namespace {

constexpr size_t MAX_BUFFERS = 120;      // that are read or stored to
constexpr int MAX_PASSES = 30;           // devices take 32, of which one may be its stores'

}  // namespace

int KernelBuilder::passes() const
{
    std::vector<int> need(kernel_.values.size(), 0);
    int most = 0;
    for (size_t v = 0; v < need.size(); v++) {
        for (const int32_t a : kernel_.values[v].args) need[v] = std::max(need[v], a < 0 ? 0 : need[size_t(a)]);
        if (kernel_.values[v].kind == ValueKind::Fold) most = std::max(most, ++need[v]);
    }
    return most;
}

bool KernelBuilder::is_fit() const { return read_.size() + tasks_.size() < MAX_BUFFERS && (folds_ <= MAX_PASSES || passes() <= MAX_PASSES); }

void KernelBuilder::mark_rows()
{
    const bool folds = std::ranges::any_of(kernel_.axes, [](const KernelAxis& a) { return a.reduced; });
    if (!folds) return;
    const auto varies = [&](int32_t access) {
        if (access < 0) return false;
        for (size_t a = 0; a < kernel_.axes.size(); a++)
            if (kernel_.axes[a].reduced && !kernel_.accesses[size_t(access)].strides[a].is(0)) return true;
        return false;
    };
    for (Value& v : kernel_.values) {
        v.row = v.kind == ValueKind::Fold || !varies(v.access);
        if (v.kind != ValueKind::Fold)
            for (const int32_t a : v.args) v.row = v.row && (a < 0 || kernel_.values[size_t(a)].row);
    }
}

Kernel KernelBuilder::finish(std::vector<int32_t>& buffers)
{
    const auto local = [&](int32_t buffer) {
        const auto at = std::ranges::find(buffers, buffer);
        if (at != buffers.end()) return int32_t(at - buffers.begin());
        buffers.push_back(buffer);
        return int32_t(buffers.size()) - 1;
    };
    for (Value& v : kernel_.values)
        if (v.buffer >= 0) v.buffer = local(v.buffer);
    for (const Destination& d : destinations_) {
        const Task& t = tasks_[d.task];
        const int32_t access = add_access(access_of(d.view, t.forms, kernel_.axes.size()));
        kernel_.stores.push_back({as_type(t.value, d.view.dtype), local(d.view.buffer), access, false});
    }
    mark_rows();
    for (const Task& t : tasks_) {
        const std::string name = name_near((*graph_)[t.node]);
        if (!name.empty() && kernel_.name.find(name) == std::string::npos) kernel_.name += (kernel_.name.empty() ? "" : " ") + name;
    }
    return std::move(kernel_);
}

}  // namespace ng
