// Prints two walks over long rows as one launch: the second follows the first at a distance that the second cache spans.
#include "jit/emit_printer.h"

namespace ng::emitting {

// Where the second walk reads what the first did and more, and ends with what it stores point by point. Not where points are
// dear: on an H200 64 norms of 1 Mi f16 took 85 us, in two launches 108, but softmaxes 156, in two launches 120.
bool chases(const Arranged& a)
{
    constexpr int32_t CHEAP = 32;
    const Passes& p = a.passes;
    bool may = !a.is_across && a.weight <= CHEAP && a.axis >= 0 && p.count == 2 && p.last_fold() == 0;
    for (size_t s = 0; s < a.kernel.stores.size(); s++) may &= !p.stores[s].row && !a.kernel.stores[s].late;
    for (const Passes::Running& r : p.running) may &= r.kind != Passes::Kind::Scaled;
    for (size_t v = 0; v < a.kernel.values.size(); v++)
        if (a.kernel.values[v].kind == ValueKind::Load && a.is_full(int32_t(v)) && p.wanted[v]) may &= p.wanted[v] >> 1 & 1;
    return may;
}

// Behind all folds' parts: how many parts of each row are done, then how many blocks have come.
std::string FormPrinter::counts()
{
    const std::string memory = numbers_.add("scratch", {NumberKind::Scratch, Dtype::u64, 0, 0, 0}), region = cut("region", Cut::Region);
    return text("u32* counts = (u32*)(", memory, " + ", std::ranges::count(kernel_.values, ValueKind::Fold, &Value::kind), " * ", region, ");");
}

void FormPrinter::clear_counts()
{
    line(counts());
    line(text("const ", at_, " row = (", at_, ")", dialect_.block, " * THREADS + ", dialect_.thread, ";"));
    line("if (row <= n.rows) counts[row] = 0;");
}

// What one thread asks for, where folds meet at other times.
void FormPrinter::share(const std::string& name, const std::string& value)
{
    line(text("if (", dialect_.thread, " == 0) *(u32*)shared = ", value, ";"));
    line(std::string(dialect_.barrier) + ";");
    line(text("const ", at_, " ", name, " = *(u32*)shared;"));
    line(std::string(dialect_.barrier) + ";");
}

// Blocks take turns in the order in which they come, so whoever waits waits for blocks that have begun. Each second one is of the
// first walk; within a row the second goes backwards, since a row may be all there is.
void FormPrinter::chase()
{
    const std::string parts = cut("parts", Cut::Parts), lag = cut("lag", Cut::Lag);
    const std::vector<size_t> first = loads_ahead(0), last = loads_ahead(1);
    shared();
    declare_ahead(last.empty() ? first : last);
    define_uniform();
    line(counts());
    share("ticket", "next_ticket(counts + n.rows)");
    open("if (ticket % 2 == 0)");
    line("const " + at_ + " item = ticket / 2;");
    line(text("if (item >= (", at_, ")", dialect_.blocks, " / 2 - ", lag, ") return;"));
    line(text("u32* const count = counts + item / ", parts, ";"));
    lanes_of_walked(true, "item");
    walk_part(0, {});
    line(text("if (", dialect_.thread, " == 0) say_done(count);"));
    depth_--, line("} else {"), depth_++;
    line(text("const ", at_, " behind = ticket / 2 - ", lag, ", item = behind + ", parts, " - 1 - 2 * (behind % ", parts, ");"));
    line(text("if (behind < 0) return;"));
    line(text("const u32* const count = counts + item / ", parts, ";"));
    lanes_of_walked(true, "item");
    walk_part(1, "count, " + parts);
    close();
}

}  // namespace ng::emitting
