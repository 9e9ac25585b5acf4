// Chooses what threads of a held row keep in registers from one pass to the next: loads, and what is dear to compute.
#include "jit/emit_forms.h"

#include <algorithm>
#include <bit>

namespace ng::emitting {
namespace {

constexpr int32_t DEAR = 20;             // instructions from which a value is kept, not computed again

bool is_dear(const Arranged& a, size_t v)
{
    const ValueKind kind = a.kernel.values[v].kind;
    return a.is_full(int32_t(v)) && kind != ValueKind::Load && kind != ValueKind::Fold && std::popcount(a.passes.wanted[v]) > 1 && weight_of(a.kernel, v) >= DEAR;
}

// In which passes each value is read where those are kept.
void find_demand(Arranged& a, bool keeps)
{
    const Passes& p = a.passes;
    a.kept_from.assign(a.kernel.values.size(), -1);
    std::vector<uint32_t>& wanted = a.held_wanted;
    wanted.assign(a.kernel.values.size(), 0);
    const auto want = [&](int32_t v, uint32_t passes) { wanted[size_t(v)] |= a.is_full(v) ? passes : 1u; };
    for (size_t s = 0; s < a.kernel.stores.size(); s++) want(a.kernel.stores[s].value, 1u << p.stores[s].pass);
    for (size_t v = a.kernel.values.size(); v-- > 0;) {
        if (!wanted[v]) continue;
        if (keeps && is_dear(a, v) && std::popcount(wanted[v]) > 1) a.kept_from[v] = std::countr_zero(wanted[v]);
        const uint32_t passes = p.folded[v] >= 0 ? 1u << p.folded[v] : a.kept_from[v] >= 0 ? 1u << a.kept_from[v] : wanted[v];
        for (const int32_t arg : operands_of(a.kernel, p, v))
            if (arg >= 0) want(arg, passes);
    }
}

// Bytes of a point are counted between passes: what a later one reads, loads as they lie in memory.
void hold(Arranged& a, bool keeps)
{
    a.held_bytes = 0;
    find_demand(a, keeps);
    for (int32_t pass = 0; pass < a.passes.count; pass++) {
        int32_t bytes = 0;
        for (size_t v = 0; v < a.kernel.values.size(); v++) {
            const Dtype t = a.kernel.values[v].type;
            if (!(a.held_wanted[v] >> pass)) continue;
            if (a.is_held(int32_t(v))) bytes += bytes_of(t);
            if (a.kept_from[v] >= 0 && a.kept_from[v] < pass) bytes += std::max(4, bytes_of(compute_of(t)));
        }
        a.held_bytes = std::max(a.held_bytes, bytes);
    }
}

bool fits_block(const Arranged& a) { return a.points.constant() * a.held_bytes <= LARGE_BYTES; }

}  // namespace

void hold_loads(Arranged& a) { hold(a, false); }
void hold_dear(Arranged& a) { hold(a, true); }

// To compute twice costs less than to read twice, or to meet in a cluster: where a row only fits a block so, nothing dear is
// kept. Tuned on an H200: softmax of 65536 f16.
void hold(Arranged& a)
{
    hold(a, true);
    if (!has_known_rows(a) || fits_block(a)) return;
    hold(a, false);
    if (!fits_block(a)) hold(a, true);
}

}  // namespace ng::emitting
