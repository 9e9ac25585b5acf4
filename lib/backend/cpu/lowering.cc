// Levels, passes and demand: which values a fused kernel computes how often, and in which walk over its space.
#include "lib/backend/cpu/lowering.h"

#include "jit/error.h"

#include <algorithm>

namespace ng::cpu {
namespace {

uint8_t level_of(const Kernel& kernel, const Access& access, bool has_reduced)
{
    uint8_t level = UNIFORM;
    for (size_t a = 0; a < kernel.axes.size(); a++)
        if (!access.strides[a].is(0)) level = std::max<uint8_t>(level, has_reduced && !kernel.axes[a].reduced ? ROW : FULL);
    return level;
}

void find_levels(const Kernel& kernel, Analysis& a)
{
    int uniform = 0;
    for (size_t v = 0; v < kernel.values.size(); v++) {
        const Value& value = kernel.values[v];
        uint8_t level = UNIFORM;
        if (value.access >= 0) level = level_of(kernel, kernel.accesses[size_t(value.access)], a.has_reduced);
        int32_t need = 0;
        for (const int32_t arg : value.args)
            if (arg >= 0) {
                level = std::max(level, a.level[size_t(arg)]);
                need = std::max(need, a.need[size_t(arg)]);
            }
        if (value.kind == ValueKind::Fold) {
            level = ROW;
            need++;
            a.passes = std::max(a.passes, need);
        }
        // Uniform values hold their slots for a whole task, so those beyond the limit are computed as others are.
        if (level == UNIFORM && value.kind != ValueKind::Constant && ++uniform > MAX_UNIFORM) level = a.has_reduced ? ROW : FULL;
        a.level[v] = level;
        a.need[v] = need;
    }
}

void place_stores(const Kernel& kernel, Analysis& a)
{
    for (const StoreTo& store : kernel.stores) {
        const size_t v = size_t(store.value);
        const Access& access = kernel.accesses[size_t(store.access)];
        const bool row = a.has_reduced && a.level[v] <= ROW && level_of(kernel, access, true) <= ROW;
        if (!row) a.passes = std::max(a.passes, a.need[v] + 1);
        a.stores.push_back({a.need[v], row});
    }
    for (size_t s = 0; s < kernel.stores.size(); s++)
        if (kernel.stores[s].late) a.stores[s].pass = a.passes - 1;
}

void find_demand(const Kernel& kernel, Analysis& a)
{
    for (size_t s = 0; s < kernel.stores.size(); s++) {
        const size_t v = size_t(kernel.stores[s].value);
        a.wanted[v] |= a.level[v] == FULL ? 1u << a.stores[s].pass : 1u;
    }
    for (size_t v = kernel.values.size(); v-- > 0;) {
        if (!a.wanted[v]) continue;
        const bool is_fold = kernel.values[v].kind == ValueKind::Fold;
        const uint32_t passes = is_fold ? 1u << (a.need[v] - 1) : a.wanted[v];
        for (const int32_t arg : kernel.values[v].args)
            if (arg >= 0) a.wanted[size_t(arg)] |= a.level[size_t(arg)] == FULL ? passes : 1u;
    }
}

}  // namespace

Analysis analyse(const Kernel& kernel)
{
    const size_t count = kernel.values.size();
    Analysis a;
    a.level.resize(count);
    a.need.resize(count);
    a.wanted.resize(count);
    for (const KernelAxis& axis : kernel.axes) a.has_reduced |= axis.reduced;
    for (const Value& value : kernel.values) a.has_reduced |= value.kind == ValueKind::Fold;
    find_levels(kernel, a);
    place_stores(kernel, a);
    if (a.passes > MAX_PASSES)
        throw Error(NG_E_LIMIT, text(kernel.name, ": a fused kernel reads its space ", a.passes, " times; ", MAX_PASSES, " is the most"));
    find_demand(kernel, a);
    return a;
}

}  // namespace ng::cpu
