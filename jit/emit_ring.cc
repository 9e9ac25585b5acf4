// Prints rows and columns that clusters hold in rings of three places: one comes while another is folded and the one before it is stored.
//
// What a block says of its part to the cluster is heard a row later, so nobody waits for it. A fold of what another fold gives,
// sum((x - m)^2) or sum(exp(x - m)), each block takes with the m of its own part; when all is heard it is said anew for that of all.
#include "jit/emit_printer.h"

namespace ng::emitting {

// Of sum((x - m)^2) it needs sum(x), of sum(exp(x - m)) the greatest x: by the fold's number.
static int32_t beside(const Arranged& a, size_t fold)
{
    const Passes::Running& r = a.parts[fold];
    for (size_t v = 0; v < a.kernel.values.size(); v++) {
        const Value& other = a.kernel.values[v];
        if (other.kind != ValueKind::Fold || !a.passes.wanted[v] || a.passes.folded[v] != 0 || other.args[0] != r.x || other.type != a.kernel.values[fold].type) continue;
        if (r.kind == Passes::Kind::Moments ? other.op == Op::sum : r.kind == Passes::Kind::Scaled && other.op == Op::max) return int32_t(v);
    }
    return -1;
}

bool may_ring(Arranged& a)
{
    a.parts = passes_of(a.kernel, true).running;
    for (Passes::Running& r : a.parts)
        if (r.kind == Passes::Kind::Total) r = {};
    bool may = a.passes.last_fold() + 2 == a.passes.count && a.passes.count <= 3;
    for (size_t v = 0; v < a.kernel.values.size() && may; v++)
        if (a.kernel.values[v].kind == ValueKind::Fold && a.passes.wanted[v] && a.passes.folded[v] == 1) may &= beside(a, v) >= 0;
    for (const Passes::Placed& s : a.passes.stores) may &= s.row || s.pass == 0 || s.pass + 1 == a.passes.count;
    return may;
}

void FormPrinter::ask_into(const std::string& place, const std::string& item, const std::vector<size_t>& loads)
{
    open_coming(item, loads);
    for (const size_t v : loads) line(text("send(kept", v, " + (", place, " * HELD + k) * THREADS, ", words_.address(int32_t(v)), ");"));
    close_coming_vectors();
    close();
    line("end_sending();");
}

// The folds of a pass as if all parts were as this block's.
void FormPrinter::guess(int32_t pass)
{
    for (const size_t f : folds_of(pass)) {
        const FoldWords w = fold_words_of(f);
        const std::string own = a_.is_across ? text("a", f, "[j]") : text("g", f);
        const std::string all = !w.is_sum ? own : c_.is_full || !is_float(w.type) ? text(own, " * ", 1 << c_.log_parts) : text(own, " * ((", w.accumulator, ")n.points / (", w.accumulator, ")count)");
        line(text(w.accumulator, " e", f, a_.is_across ? "[WIDTH];" : " = " + all + ";"));
        if (a_.is_across) unroll(), line(text("for (i32 j = 0; j < WIDTH; j++) e", f, "[j] = ", all, ";"));
        finish(f, text("e", f));
    }
}

// Points of a part.
std::string FormPrinter::count_of(const std::string& part) const { return text("points_of<", 1 << c_.log_parts, ">(", part, a_.is_across ? ", lanes" : ", lanes * WIDTH", ", n.points)"); }

// What a block tells of a fold: of sum((x - m)^2) that about the mean of its part, of sum(exp(x - m)) that for its greatest x.
std::string FormPrinter::told(size_t f, const std::string& own) const
{
    const Passes::Running r = c_.is_ring ? a_.parts[f] : Passes::Running{};
    if (r.kind == Passes::Kind::Own) return own;
    const std::string across = a_.is_across ? "[j]" : "", other = text(a_.is_across ? "a" : "g", beside(a_, f), across), m = text("v", r.m, across);
    return r.kind == Passes::Kind::Moments ? text("about_mean(", own, ", ", other, ", ", m, ", count)") : text("scaled_to(", own, ", ", m, ", finite(", other, "))");
}

// What came of part p in this turn, for the m of all.
std::string FormPrinter::part_of(size_t f, const std::string& turn) const
{
    const std::string at = text("[", turn, " & ", turns() - 1, "][p]", a_.is_across ? "[c]" : ""), given = text("given", f, at);
    const Passes::Running r = c_.is_ring ? a_.parts[f] : Passes::Running{};
    if (r.kind == Passes::Kind::Own) return given;
    const std::string other = text("given", beside(a_, f), at), m = a_.is_across ? text("once", r.m, "[c]") : text("v", r.m);
    return r.kind == Passes::Kind::Moments ? text("about(", given, ", ", other, ", ", m, ", ", c_.is_full ? "count" : count_of("p"), ")") : text("scaled_to(", given, ", finite(", other, "), ", m, ")");
}

void FormPrinter::fold_coming(const std::vector<size_t>& loads)
{
    std::vector<size_t> folds;
    open("if (item < items)");
    place_item("item");
    pointers();
    hold_in(loads, "place");
    words_.read_last(false);
    for (int32_t pass = 0; pass <= a_.passes.last_fold(); pass++) {
        pass == 0 ? define_item(0, "item") : define_row(pass);
        walk(pass);
        for (const size_t f : folds_of(pass)) meet_in_block(f), folds.push_back(f);
        if (pass < a_.passes.last_fold()) guess(pass);
    }
    tell_others(folds);
    // Where folds meet is written again for the next row: two meetings keep all threads near enough.
    if (folds.size() < 2) line(std::string(dialect_.barrier) + ";");
    close();
}

void FormPrinter::store_going(const std::vector<size_t>& loads)
{
    open("if (item != team)");
    line("const u32 heard = turn - 1;");
    line(text("await_told(gates + (heard & ", RING_TURNS - 1, "), heard / ", RING_TURNS, ");"));
    place_item("(item - teams)");
    pointers();
    hold_in(loads, "last");
    for (int32_t pass = 0; pass < a_.passes.count; pass++) {
        define_item(pass, "item - teams");
        join_told(folds_of(pass), "heard");
    }
    words_.read_last(true);
    walk(a_.passes.count - 1);
    define_item(a_.passes.count, "item - teams");
    row_stores();
    close();
}

// A block speaks of a row before it hears of the one before, so whoever speaks of the third row after one has heard all others speak
// of the first after it: they have heard of it before. So four turns' numbers have places of their own.
void FormPrinter::ring()
{
    const std::vector<size_t> loads = stayed();
    declare_staying(loads);
    define_uniform();
    lanes_of_staying();
    line(text("const i32 count = ", c_.is_full ? text("n.points / ", 1 << c_.log_parts) : count_of("part"), ";"));
    line("i32 place = 0;");
    ask_into("0", "team", loads);
    open(text("for (", at_, " item = team; item < items + teams; item += teams)"));
    line("forget(start);");
    line(text("const i32 next = place + 1 < ", RING, " ? place + 1 : 0, last = next + 1 < ", RING, " ? next + 1 : 0;"));
    ask_into("next", "item + teams", loads);
    line("await_sent<1>();");
    fold_coming(loads);
    store_going(loads);
    line("turn++, place = next;");
    close();
}

}  // namespace ng::emitting
