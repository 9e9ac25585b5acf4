// Finds out for emitting which values a kernel computes how often, and in which walk over its space.
#include "jit/emit_parts.h"

#include "jit/error.h"

#include <algorithm>

namespace ng::emitting {
namespace {

constexpr int32_t MAX_PASSES = 32;       // bits of Passes::wanted

Level level_of(const Kernel& kernel, const Access& access, bool has_rows)
{
    Level level = Level::Uniform;
    for (size_t a = 0; a < kernel.axes.size(); a++)
        if (!access.strides[a].is(0)) level = std::max(level, has_rows && !kernel.axes[a].reduced ? Level::Row : Level::Full);
    return level;
}

// Whether it is the sum of squares, or of exponentials, of x - m for an m that only comes after x was read.
Passes::Running running_of(const Kernel& kernel, const Passes& p, const Value& fold)
{
    const auto value = [&](int32_t v) -> const Value& { return kernel.values[size_t(v)]; };
    if (fold.op != Op::sum || !is_float(compute_of(fold.type))) return {};
    const Value& term = value(fold.args[0]);
    if (term.kind != ValueKind::Map) return {};
    const bool is_square = term.op == Op::square || (term.op == Op::mul && term.args[0] == term.args[1]);
    if (!is_square && term.op != Op::exp) return {};
    const Value& apart = value(term.args[0]);
    if (apart.kind != ValueKind::Map || apart.op != Op::sub) return {};
    const int32_t x = apart.args[0], m = apart.args[1];
    if (p.level[size_t(x)] != Level::Full || p.level[size_t(m)] == Level::Full || p.need[size_t(m)] <= p.need[size_t(x)]) return {};
    return {is_square ? Passes::Kind::Moments : Passes::Kind::Scaled, x, m};
}

void find_levels(const Kernel& kernel, bool may_run, Passes& p)
{
    for (size_t v = 0; v < kernel.values.size(); v++) {
        const Value& value = kernel.values[v];
        Level level = Level::Uniform;
        int32_t need = 0;
        if (value.access >= 0) level = level_of(kernel, kernel.accesses[size_t(value.access)], p.has_rows);
        for (const int32_t arg : value.args)
            if (arg >= 0) level = std::max(level, p.level[size_t(arg)]), need = std::max(need, p.need[size_t(arg)]);
        if (value.kind == ValueKind::Fold) {
            level = Level::Row;
            if (may_run) p.running[v] = running_of(kernel, p, value);
            const Passes::Running& r = p.running[v];
            p.folded[v] = p.is_running(v) ? p.need[size_t(r.x)] : need;
            need = p.is_running(v) ? std::max(p.folded[v] + 1, p.need[size_t(r.m)]) : need + 1;
            p.count = std::max(p.count, p.folded[v] + 1);
        }
        p.level[v] = level, p.need[v] = need;
    }
}

void place_stores(const Kernel& kernel, Passes& p)
{
    for (const StoreTo& s : kernel.stores) {
        const size_t v = size_t(s.value);
        const bool row = p.has_rows && p.level[v] <= Level::Row && level_of(kernel, kernel.accesses[size_t(s.access)], true) <= Level::Row;
        if (!row) p.count = std::max(p.count, p.need[v] + 1);
        p.stores.push_back({p.need[v], row});
    }
    for (size_t s = 0; s < kernel.stores.size(); s++)
        if (kernel.stores[s].late) p.stores[s].pass = p.count - 1;
}

// Sums of what moments are taken of cost nothing then.
void find_totals(const Kernel& kernel, Passes& p)
{
    for (size_t f = 0; f < kernel.values.size(); f++) {
        if (p.running[f].kind != Passes::Kind::Moments || !p.wanted[f]) continue;
        for (size_t v = 0; v < kernel.values.size(); v++) {
            const Value& sum = kernel.values[v];
            const bool is_sum = sum.kind == ValueKind::Fold && sum.op == Op::sum && !p.is_running(v);
            if (is_sum && sum.args[0] == p.running[f].x && p.folded[v] == p.folded[f] && sum.type == kernel.values[f].type) p.running[v] = {Passes::Kind::Total, sum.args[0], int32_t(f)};
        }
    }
}

void find_demand(const Kernel& kernel, Passes& p)
{
    for (size_t s = 0; s < kernel.stores.size(); s++) {
        const size_t v = size_t(kernel.stores[s].value);
        p.wanted[v] |= p.level[v] == Level::Full ? 1u << p.stores[s].pass : 1u;
    }
    for (size_t v = kernel.values.size(); v-- > 0;) {
        if (!p.wanted[v]) continue;
        const uint32_t passes = p.folded[v] >= 0 ? 1u << p.folded[v] : p.wanted[v];
        for (const int32_t arg : operands_of(kernel, p, v))
            if (arg >= 0) p.wanted[size_t(arg)] |= p.level[size_t(arg)] == Level::Full ? passes : 1u;
    }
}

}  // namespace

std::array<int32_t, 3> operands_of(const Kernel& kernel, const Passes& p, size_t v)
{
    return p.is_running(v) ? std::array<int32_t, 3>{p.running[v].x, p.running[v].m, -1} : kernel.values[v].args;
}

Passes passes_of(const Kernel& kernel, bool may_run)
{
    const size_t count = kernel.values.size();
    Passes p;
    p.level.resize(count), p.need.resize(count), p.wanted.resize(count), p.running.resize(count), p.folded.assign(count, -1);
    for (const KernelAxis& axis : kernel.axes) p.has_rows |= axis.reduced;
    for (const Value& value : kernel.values) p.has_rows |= value.kind == ValueKind::Fold;
    find_levels(kernel, may_run, p);
    place_stores(kernel, p);
    if (p.count > MAX_PASSES)
        throw Error(NG_E_LIMIT, text(kernel.name, ": a fused kernel reads its space ", p.count, " times; ", MAX_PASSES, " is the most"));
    find_demand(kernel, p);
    find_totals(kernel, p);
    return p;
}

}  // namespace ng::emitting
