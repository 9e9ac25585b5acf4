// Reductions and what is composed of them, over any axes, with bounds from the magnitudes that were added.
#include "tests/random/meaning.h"

#include <algorithm>

namespace programs {
namespace {

using Cells = std::vector<Cell>;

bool judged(const Cells& x) { return std::ranges::all_of(x, [](const Cell& c) { return c.off < INFINITY; }); }
bool has_nan(const Cells& x) { return std::ranges::any_of(x, [](const Cell& c) { return c.v != c.v; }); }
bool finite(const Cells& x) { return std::ranges::all_of(x, [](const Cell& c) { return std::isfinite(c.v); }); }
double farthest(const Cells& x)
{
    double far = 0;
    for (const Cell& c : x) far = std::max(far, c.off);
    return far;
}

Cell extreme(const Cells& x, bool greatest)
{
    if (has_nan(x)) return {NAN, 0};
    Real best = x[0].v, low = x[0].v - Real(x[0].off), high = x[0].v + Real(x[0].off);
    for (const Cell& c : x) {
        const auto better = [&](Real a, Real b) { return greatest ? std::max(a, b) : std::min(a, b); };
        best = better(best, c.v), low = better(low, c.v - Real(c.off)), high = better(high, c.v + Real(c.off));
    }
    return {best, low == high ? 0 : double(std::max(high - best, best - low))};
}

Cell place(const Cells& x, bool greatest)
{
    for (size_t i = 0; i < x.size(); i++)
        if (x[i].v != x[i].v) return {Real(i), 0};
    size_t best = 0;
    for (size_t i = 1; i < x.size(); i++)
        if (greatest ? x[i].v > x[best].v : x[i].v < x[best].v) best = i;
    for (size_t i = 0; i < x.size(); i++)
        if (i != best && (x[i].off > 0 || x[best].off > 0) && std::abs(x[i].v - x[best].v) <= Real(x[i].off + x[best].off)) return {Real(best), NOT_JUDGED};
    return {Real(best), 0};
}

Cell summed(ng_dtype t, const Cells& x)
{
    if (!is_float(t)) {
        Wide sum = 0;
        for (const Cell& c : x) sum += Wide(c.v);
        return {wrapped(t, sum), farthest(x) > 0 ? NOT_JUDGED : 0};
    }
    if (!finite(x)) return {NAN, NOT_JUDGED};
    Real sum = 0, magnitudes = 0;
    double off = 0;
    for (const Cell& c : x) sum += c.v, magnitudes += std::abs(c.v), off += c.off;
    if (x.size() < 2) return {sum, off};
    return settled(t, sum, sum_off(t, magnitudes, int64_t(x.size()), off));
}

Cell multiplied(ng_dtype t, const Cells& x)
{
    if (!is_float(t)) {
        Real p = 1;
        for (const Cell& c : x) p = wrapped(t, low_product(Wide(p), Wide(c.v)));
        return {p, farthest(x) > 0 ? NOT_JUDGED : 0};
    }
    if (!finite(x)) return {NAN, NOT_JUDGED};
    // In any order no partial product is beyond these two.
    Real p = 1, most = 1, least = 1;
    double off = 0;
    for (const Cell& c : x) {
        off = off * double(std::abs(c.v)) + c.off * double(std::abs(p)) + off * c.off, p *= c.v;
        (std::abs(c.v) > 1 ? most : least) *= std::abs(c.v);
    }
    if (x.size() < 2) return {p, off};
    if (most * 4 > largest_of(t) || least < unit_of(t, 0) / Real(epsilon_of(t))) return {p, NOT_JUDGED};
    return settled(t, p, off * 1.01 + double(std::abs(p)) * epsilon_of(t) * double(x.size() + 1));
}

Cell truth(const Cells& x, bool all)
{
    bool sure = all, maybe = all;
    for (const Cell& c : x) {
        const bool yes = c.v != 0 && !(std::abs(c.v) <= Real(c.off)), perhaps = yes || c.off > 0;
        sure = all ? sure && yes : sure || yes;
        maybe = all ? maybe && perhaps : maybe || perhaps;
    }
    return {Real(sure), sure == maybe ? 0. : 1.};
}

Cell mean_of(ng_dtype t, const Cells& x)
{
    if (!finite(x)) return {NAN, NOT_JUDGED};
    Real sum = 0, magnitudes = 0;
    double off = 0;
    for (const Cell& c : x) sum += c.v, magnitudes += std::abs(c.v), off += c.off;
    if (magnitudes > 0x1p62L) return {sum, NOT_JUDGED};          // whole numbers are summed in 64 bits
    const auto n = Real(x.size());
    return settled(t, sum / n, (sum_off(t, magnitudes, int64_t(x.size()), off) + epsilon_of(t) * double(magnitudes)) / double(n) + double(unit_of(t, 0)));
}

Cell variance_of(ng_dtype t, const Cells& x)
{
    const Cell mean = mean_of(t, x);
    if (!(mean.off < INFINITY)) return mean;
    Real sum = 0, scale = 0;
    double carried = 0;
    for (const Cell& c : x) {
        const Real d = c.v - mean.v;
        const double off = c.off + mean.off;
        sum += d * d, carried += 2 * double(std::abs(d)) * off + off * off;
        scale += (std::abs(c.v) + std::abs(mean.v)) * std::abs(d) + d * d;      // rounding of each distance, and of squares and sums
    }
    const auto n = Real(x.size());
    return settled(t, sum / n, (sum_off(t, scale, int64_t(x.size()) * 4, carried)) / double(n) + double(unit_of(t, 0)));
}

Cell root_of(ng_dtype t, const Cell& x)
{
    if (!(x.off < INFINITY)) return x;
    const Real v = std::sqrt(x.v);
    const double far = v > 0 ? std::min(x.off / double(v), std::sqrt(x.off)) : std::sqrt(x.off);
    return settled(t, v, far + 2 * epsilon_of(t) * double(v) + double(unit_of(t, 0)));
}

Cell norm_of(ng_dtype t, const Cells& x)
{
    if (!finite(x)) return {NAN, NOT_JUDGED};
    Real sum = 0;
    double carried = 0;
    for (const Cell& c : x) sum += c.v * c.v, carried += 2 * double(std::abs(c.v)) * c.off + c.off * c.off;
    const Cell squares = settled(t, sum, sum_off(t, sum, 4 * int64_t(x.size()), carried) + double(x.size()) * double(unit_of(t, 0)));
    return root_of(t, squares);
}

// A term of exp(x - top) has the rounding of the difference: |x - top| exp(x - top) is at most 1/e; top and the log count too.
Cell logsumexp_of(ng_dtype t, const Cells& x)
{
    if (!finite(x)) return {NAN, NOT_JUDGED};
    Real top = -INFINITY, sum = 0, most = 0;
    for (const Cell& c : x) top = std::max(top, c.v), most = std::max(most, std::abs(c.v));
    for (const Cell& c : x) sum += std::exp(c.v - top);
    const Real v = top + std::log(sum);
    const double levels = std::log2(double(x.size())) + 8;
    return settled(t, v, farthest(x) + epsilon_of(t) * (levels + 2 * double(most) + 2 * double(std::abs(v))));
}

Cell folded(const std::string& name, ng_dtype t, const Cells& x)
{
    const bool orders = name == "min" || name == "max" || name == "argmin" || name == "argmax";
    if (name == "any" || name == "all") return truth(x, name == "all");
    if (name == "count_nonzero") {
        Cells each_one;
        for (const Cell& c : x) each_one.push_back(truth({c}, false));
        return summed(t, each_one);
    }
    if (!judged(x)) return {0, is_bool(t) ? 1 : NOT_JUDGED};
    if (orders) {
        const bool greatest = name.ends_with("max");
        const Cell c = name.starts_with("arg") ? place(x, greatest) : extreme(x, greatest);
        return is_integer(t) && c.off > 0 ? Cell{c.v, NOT_JUDGED} : c;
    }
    if (name == "sum") return summed(t, x);
    if (name == "prod") return multiplied(t, x);
    if (name == "mean") return mean_of(t, x);
    if (name == "var") return variance_of(t, x);
    if (name == "std") return root_of(t, variance_of(t, x));
    if (name == "norm") return norm_of(t, x);
    if (name == "logsumexp") return logsumexp_of(t, x);
    return {0, NOT_JUDGED};
}

// The elements that each place of the result is made of, by its row-major number.
std::vector<Cells> gathered(const Value& x, uint64_t axes, ng_dtype as)
{
    Dims kept = x.dims;
    for (size_t a = 0; a < kept.size(); a++)
        if (axes >> a & 1) kept[a] = 1;
    const Dims strides = broadcast_strides(kept, x.dims);
    std::vector<Cells> groups(size_t(count_of(kept)));
    each(x.dims, [&](const Index& i, size_t k) { groups[size_t(dot(i, strides))].push_back(cast_cell(as, x.cells[k], x.type)); });
    return groups;
}

}  // namespace

Value Meaning::reduced() const
{
    const std::string& name = table.rows[size_t(node.row)].name;
    const ng_dtype given = arg(0).type;
    const bool looks = name == "any" || name == "all" || name == "count_nonzero" || name.starts_with("arg");
    const bool whole_mean = name == "mean" && !is_float(given);
    Value out = empty();
    const std::vector<Cells> groups = gathered(arg(0), uint64_t(node.ints[0]), looks ? element(given).compute : whole_mean ? given : node.type);
    for (size_t i = 0; i < groups.size(); i++) out.cells[i] = folded(name, node.type, groups[i]);
    return out;
}

Value Meaning::normalised() const
{
    const bool logarithm = table.rows[size_t(node.row)].name == "log_softmax";
    const Value& x = arg(0);
    Value out = empty();
    Dims kept = x.dims;
    for (size_t a = 0; a < kept.size(); a++)
        if (uint64_t(node.ints[0]) >> a & 1) kept[a] = 1;
    const Dims strides = broadcast_strides(kept, x.dims);
    const std::vector<Cells> groups = gathered(x, uint64_t(node.ints[0]), node.type);
    std::vector<Cell> sums;
    for (const Cells& g : groups) sums.push_back(g.empty() || !judged(g) ? Cell{0, NOT_JUDGED} : logsumexp_of(node.type, g));
    each(out.dims, [&](const Index& i, size_t k) {
        const Cell c = cast_cell(node.type, x.cells[k], x.type), sum = sums[size_t(dot(i, strides))];
        const double off = c.off + sum.off + 2 * epsilon_of(node.type) * double(std::abs(c.v) + std::abs(sum.v) + 1);
        const Real v = c.v - sum.v;
        if (!(off < INFINITY)) out.cells[k] = {0, NOT_JUDGED};
        else if (logarithm) out.cells[k] = settled(node.type, v, off + 2 * epsilon_of(node.type) * double(std::abs(v)));
        else out.cells[k] = settled(node.type, std::exp(v), double(std::exp(v)) * (std::expm1(off) + 4 * epsilon_of(node.type)) + 2 * double(unit_of(node.type, 0)));
    });
    return out;
}

}  // namespace programs
