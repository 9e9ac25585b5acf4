// Steps that turn what lies across the rows of a fold, so that a device reads it and what lies along them side by side.
#include "jit/turning.h"

#include <algorithm>
#include <optional>

namespace ng {
namespace {

constexpr int64_t LEAST_SIDE = 64;       // elements side by side, of what is turned and of what it becomes: shorter lines are read as well as they lie

// The axis along which a tensor's elements lie side by side; -1: along none, or not each point has its own.
int32_t side_of(const Kernel& k, const Access& access)
{
    int32_t side = -1;
    for (size_t x = 0; x < k.axes.size(); x++) {
        if (access.strides[x].is(0)) return -1;
        if (access.strides[x].is(1)) side = int32_t(x);
    }
    return side;
}

// Elements of all points; nothing where those, or who the rows are of, are not known before.
std::optional<int64_t> known_points(const Kernel& k)
{
    int64_t points = 1;
    for (const KernelAxis& a : k.axes) {
        if (!a.extent.is_constant()) return std::nullopt;
        points *= a.extent.constant();
    }
    const auto reduced = std::ranges::count(k.axes, true, &KernelAxis::reduced);
    return reduced > 0 && reduced < std::ssize(k.axes) ? std::optional(points) : std::nullopt;
}

// The axis along which most bytes of a point lie, a reduced one before others; -1: none.
int32_t main_side(const Kernel& k)
{
    std::vector<int64_t> bytes(k.axes.size(), 0);
    const auto add = [&](int32_t access, Dtype t) {
        if (const int32_t side = side_of(k, k.accesses[size_t(access)]); side >= 0) bytes[size_t(side)] += 2 * bytes_of(t) + k.axes[size_t(side)].reduced;
    };
    for (const Value& v : k.values)
        if (v.kind == ValueKind::Load) add(v.access, v.type);
    for (const StoreTo& s : k.stores) add(s.access, k.values[size_t(s.value)].type);
    const auto most = std::ranges::max_element(bytes);
    return *most > 0 ? int32_t(most - bytes.begin()) : -1;
}

// All axes, those of the main side's kind last and it behind them.
std::vector<int32_t> order_for(const Kernel& k, int32_t main)
{
    std::vector<int32_t> order;
    for (const bool is_kind : {false, true})
        for (size_t x = 0; x < k.axes.size(); x++)
            if (int32_t(x) != main && (k.axes[x].reduced == k.axes[size_t(main)].reduced) == is_kind) order.push_back(int32_t(x));
    order.push_back(main);
    return order;
}

// A load of step s as a step of its own, which writes it row by row over these axes to a new buffer.
Step turned_load(Plan& plan, const Step& s, const Value& load, const std::vector<int32_t>& order, int64_t points)
{
    const Kernel& from = *s.kernel;
    const Access& across = from.accesses[size_t(load.access)];
    Buffer to{Place::Work};
    to.dtype = load.type, to.count = points;
    plan.buffers.push_back(to);
    auto k = std::make_shared<Kernel>();
    k->name = from.name;
    Extents extents, strides;
    for (const int32_t x : order) extents.push_back(from.axes[size_t(x)].extent), strides.push_back(across.strides[size_t(x)]);
    for (const Extent& extent : extents) k->axes.push_back({extent});
    k->accesses = {{across.offset, strides}, {0, dense_strides(extents)}};
    Value value = load;
    value.buffer = value.access = 0, value.row = false;
    k->values.push_back(value);
    k->stores.push_back({0, 1, 1});
    Step out;
    out.name = s.name, out.kernel = std::move(k), out.buffers = {s.buffers[size_t(load.buffer)], int32_t(plan.buffers.size()) - 1};
    return out;
}

// Appends the steps that turn what s reads across its rows, and lets it read what they write.
void turn(Plan& plan, Step& s, int64_t least_bytes, std::vector<Step>& steps)
{
    const std::optional<int64_t> points = known_points(*s.kernel);
    const int32_t main = points ? main_side(*s.kernel) : -1;
    if (main < 0 || s.kernel->axes[size_t(main)].extent.constant() < LEAST_SIDE) return;
    const std::vector<int32_t> order = order_for(*s.kernel, main);
    std::shared_ptr<Kernel> turned;
    for (size_t v = 0; v < s.kernel->values.size(); v++) {
        const Value load = s.kernel->values[v];
        if (load.kind != ValueKind::Load || *points * bytes_of(load.type) < least_bytes) continue;
        const int32_t side = side_of(*s.kernel, s.kernel->accesses[size_t(load.access)]);
        if (side < 0 || s.kernel->axes[size_t(side)].reduced == s.kernel->axes[size_t(main)].reduced || s.kernel->axes[size_t(side)].extent.constant() < LEAST_SIDE) continue;
        if (!turned) turned = std::make_shared<Kernel>(*s.kernel);
        steps.push_back(turned_load(plan, s, load, order, *points));
        Access along{0, Extents(order.size())};
        for (size_t x = 0; x < order.size(); x++) along.strides[size_t(order[x])] = steps.back().kernel->accesses[1].strides[x];
        turned->values[v].buffer = int32_t(s.buffers.size()), turned->values[v].access = int32_t(turned->accesses.size());
        s.buffers.push_back(steps.back().buffers[1]), turned->accesses.push_back(along);
    }
    if (turned) s.kernel = std::move(turned);
}

}  // namespace

void turn_operands(Plan& plan, int64_t least_bytes)
{
    std::vector<Step> steps;
    bool is_behind_call = false;
    for (Step& s : plan.steps) {
        // What follows a product may run with it, and has nothing between them.
        if (s.kernel && !is_behind_call) turn(plan, s, least_bytes, steps);
        is_behind_call = !s.kernel;
        steps.push_back(std::move(s));
    }
    plan.steps = std::move(steps);
}

}  // namespace ng
