// Prints rows and columns that blocks hold in shared memory, one after the other, while the next one's loads are on their way.
#include "jit/emit_printer.h"

namespace ng::emitting {

namespace {

// Bytes of what blocks of a cluster tell each other of a fold, word by word; 0: there are no words.
int32_t told_bytes(const Arranged& a, size_t fold)
{
    const Value& value = a.kernel.values[fold];
    const FoldWords w = fold_words(value.op, a.kernel.values[size_t(value.args[0])].type);
    if (w.kind == FoldWords::Kind::Best) return 16;
    return is_bool(w.type) || bytes_of(w.type) < 4 ? 0 : bytes_of(w.type);
}

}  // namespace

Stayed stayed_of(const Arranged& a, bool is_ring)
{
    Stayed s;
    int32_t folds = 0, widest = 0;
    s.is_ring = is_ring;
    const int32_t turns = is_ring ? RING_TURNS : 2;
    if (!(is_constant(a) || (has_known_rows(a) && !a.is_across)) || !a.has_rows() || a.axis < 0 || a.width == 1 || a.passes.count < 2) return {};
    for (size_t v = 0; v < a.kernel.values.size(); v++) {
        const Value& value = a.kernel.values[v];
        if (value.kind == ValueKind::Fold && a.passes.wanted[v]) {
            const int32_t of_fold = told_bytes(a, v);
            if (of_fold == 0) return {};
            const int32_t each = (a.is_across ? STAYED_LINE : 1) * of_fold;
            s.meeting_bytes += each, s.told_bytes += turns * each;
            folds++, widest = std::max(widest, of_fold);
        }
        if (a.is_across && a.passes.wanted[v] && a.passes.level[v] == Level::Row) s.meeting_bytes += turns / 2 * STAYED_LINE * std::max(4, bytes_of(compute_of(value.type)));
        if (a.is_peeled && (int32_t(v) == lead_of(a) ? !a.is_held(int32_t(v)) : a.is_held(int32_t(v)) && a.moved_singly[size_t(value.access)])) return {};
        if (a.kept_from[v] >= 0) s.kept_bytes += std::max(4, bytes_of(compute_of(value.type)));
        if (!a.is_held(int32_t(v))) continue;
        const int32_t vector = bytes_of(value.type) * a.width;
        if (pace_of(a, value.access, true) != Pace::Unit || vector < 4 || vector > 16) return {};
        s.point_bytes += bytes_of(value.type);
    }
    // Gates, and what threads fold through: across, a vector a warp's line; along, an accumulator of each fold a warp.
    s.meeting_bytes += 64 + (a.is_across ? std::max(a.width * STAYING_THREADS / 4 * std::max(8, widest), across_bytes(a.width << log_line(a.width, s.point_bytes), widest)) : folds * STAYING_THREADS);
    const bool is_late = std::ranges::any_of(a.kernel.stores, [](const StoreTo& t) { return t.late; });
    return is_late || s.shared_bytes(LOG_CLUSTER) > MOST_DECLARED ? Stayed{} : s;
}

std::vector<size_t> FormPrinter::stayed() const
{
    std::vector<size_t> loads;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_full_load(v) && is_held(v)) loads.push_back(v);
    return loads;
}

int32_t FormPrinter::words_of(size_t v) const { return bytes_of(kernel_.values[v].type) * c_.width / 4; }

// What does not change from one row to the next.
void FormPrinter::lanes_of_staying()
{
    const std::string parts = number(1 << c_.log_parts);
    line(text("const i32 part = ", dialect_.block, " % ", parts, ", team = ", dialect_.block, " / ", parts, ", teams = ", dialect_.blocks, " / ", parts, ";"));
    if (a_.is_across) {
        const std::string log = number(c_.log_line);
        line(text("const i32 rows = 1 << ", log, ", lane = ", dialect_.thread, " >> ", log, ", lanes = THREADS >> ", log, ", items = (n.rows / WIDTH + rows - 1) >> ", log, ";"));
        line(text(at_, " start = part * lanes + lane;"));
        line(text("const ", at_, " step = ", parts, " * lanes, end = n.points;"));
    } else {
        line(text("const i32 lanes = THREADS, lane = ", dialect_.thread, ", items = n.rows;"));
        line(text(at_, " start = (part * lanes + lane) * WIDTH;"));
        line(text("const ", at_, " step = ", parts, " * lanes * WIDTH, end = n.points;"));
    }
    line("const bool is_row = part == 0;");
}

void FormPrinter::place_item(const std::string& item)
{
    line(text("const ", at_, " row = ", a_.is_across ? text("((", item, ") * rows + (", dialect_.thread, " & (rows - 1))) * WIDTH") : item, ", here = row;"));
    if (a_.is_across && !c_.is_full) line(text("const ", at_, " end = row < n.rows ? n.points : 0;"));
    indices(a_.kept, "here");
}

// For each vector of a thread, where there is such a row or column.
void FormPrinter::open_coming(const std::string& item, const std::vector<size_t>& loads)
{
    open(text("if (", item, " < items)"));
    place_item(item);
    for (const size_t v : loads) pointer_to(v);
    if (c_.is_peeled) peel_vectors();
    open_item(held_batch(0));
}

void FormPrinter::close_coming_vectors()
{
    if (!c_.is_full) close();
    close();
}

void FormPrinter::ask_for(const std::string& item, const std::vector<size_t>& loads)
{
    open_coming(item, loads);
    for (const size_t v : loads) line(text("next", v, "[k] = early_words<", words_of(v), ">(", words_.address(int32_t(v)), ");"));
    close_coming_vectors();
    if (c_.is_peeled) ask_for_single(loads);
    close();
}

// A few vectors at a time: compilers would have all of them in the registers that are there for what is on its way. What is kept is in
// registers, which no index reaches when it runs: there the loop is unrolled.
void FormPrinter::walk_staying(int32_t pass)
{
    bool has_kept = false;
    for (size_t v = 0; v < kernel_.values.size(); v++) has_kept |= is_kept(v) && a_.held_wanted[v] >> pass & 1;
    body_ += has_kept ? "#pragma unroll\n" : "#pragma unroll 1\n";
    open(text("for (i32 g = 0; g < HELD; g += ", at_once(), ")"));
    batch({pass, number(at_once()), !c_.is_full, true});
    close();
}

void FormPrinter::take_vectors(int32_t pass)
{
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_full_load(v) || !is_in(v, pass)) continue;
        const Value& a = kernel_.values[v];
        const std::string type = words_.pace(a.access) == Pace::Same ? text("Vector<", memory_name(a.type), ", 1>") : text("Vector<", memory_name(a.type), ", WIDTH>");
        if (is_held(v)) line(text("const ", type, " m", v, " = vector_of<", type, ">(held", v, "[(g + k) * THREADS]);"));
        else line(text(type, " m", v, ";")), line(words_.fetch(int32_t(v), "k"));
    }
}

// Sums of vectors meet as a tree as soon as both are there.
void FormPrinter::add_vector(int32_t pass)
{
    for (const size_t f : folds_of(pass)) {
        const FoldWords w = fold_words_of(f);
        if (!is_tree(w)) continue;
        const char* const sign = w.is_sum ? " += " : " *= ";
        if (!a_.is_across) line(text("x", f, "[k][0] = ", tree(text("x", f, "[k]"), 0, c_.width, w), ";"));
        for (int32_t step = 1; step < at_once(); step *= 2) {
            const std::string met = text("if ((k + 1) % ", 2 * step, " == 0) ");
            if (!a_.is_across) line(text(met, "x", f, "[k - ", 2 * step - 1, "][0]", sign, "x", f, "[k - ", step - 1, "][0];"));
            else unroll(), line(text("for (i32 j = 0; j < WIDTH; j++) ", met, "x", f, "[j][k - ", 2 * step - 1, "]", sign, "x", f, "[j][k - ", step - 1, "];"));
        }
    }
}
void FormPrinter::add_staying(size_t f)
{
    const std::string w = fold_words_of(f).combine;
    if (!a_.is_across) return line(text("a", f, " = ", w, "(a", f, ", x", f, "[0][0]);"));
    unroll();
    line(text("for (i32 j = 0; j < WIDTH; j++) a", f, "[j] = ", w, "(a", f, "[j], x", f, "[j][0]);"));
}

// What a block's threads have of a fold, together: "g", or "a" of columns.
void FormPrinter::meet_in_block(size_t f)
{
    const FoldWords w = fold_words_of(f);
    if (a_.is_across) line(text(w.block, "<WIDTH>((", w.accumulator, "*)shared, a", f, ", rows);"));
    else line(text("const ", w.accumulator, " g", f, " = ", w.block, "((", w.accumulator, "*)shared[", slot(f), "], a", f, ", lanes);"));
}

// All blocks of a cluster tell all others what their parts are,
void FormPrinter::tell_others(const std::vector<size_t>& folds)
{
    const std::string parts = number(1 << c_.log_parts), columns = a_.is_across ? "rows * WIDTH" : "1", mask = number(turns() - 1);
    std::string bytes;
    for (const size_t f : folds) {
        bytes += text(bytes.empty() ? "" : " + ", "sizeof(", fold_words_of(f).accumulator, ")");
        open(text("if (lane < ", parts, ")"));
        if (a_.is_across) open_lanes();
        line(a_.is_across ? text("tell(&given", f, "[turn & ", mask, "][part][", dialect_.thread, " % rows * WIDTH + j], ", told(f, text("a", f, "[j]")), ", gates + (turn & ", mask, "), lane);")
                          : text("tell(&given", f, "[turn & ", mask, "][part], ", told(f, text("g", f)), ", gates + (turn & ", mask, "), lane);"));
        if (a_.is_across) close_lanes();
        close();
    }
    line(text("if (", dialect_.thread, " == 0) expect(gates + (turn & ", mask, "), ", parts, " * ", columns, " * (", bytes, "));"));
}

// and go through them in one order: into "r", or "all" of columns.
void FormPrinter::join_told(const std::vector<size_t>& folds, const std::string& turn)
{
    for (const size_t f : folds) {
        const FoldWords w = fold_words_of(f);
        if (a_.is_across) open(text("for (i32 c = ", dialect_.thread, "; c < rows * WIDTH; c += THREADS)"));
        line(text(w.accumulator, " r", f, " = ", w.start, ";"));
        unroll();
        line(text("for (i32 p = 0; p < ", 1 << c_.log_parts, "; p++) r", f, " = ", w.combine, "(r", f, ", ", part_of(f, turn), ");"));
        if (a_.is_across) line(text("all", f, "[c] = r", f, ";")), close();
        else finish(f, text("r", f));
    }
}

void FormPrinter::meet_staying(int32_t pass)
{
    const std::vector<size_t> folds = folds_of(pass);
    if (folds.empty() || !c_.is_split) return meet(pass, true);
    for (const size_t f : folds) meet_in_block(f);
    tell_others(folds);
    line("await_told(gates + (turn & 1), turn >> 1);");
    join_told(folds, "turn");
    line("turn++;");
}

// What columns have once, before this pass: by one thread each, since all that share one would compute it as often.
void FormPrinter::define_columns(int32_t pass, const std::string& item)
{
    const auto is_of_column = [&](size_t v, int32_t before) {
        const bool is_fold = kernel_.values[v].kind == ValueKind::Fold, is_there = a_.passes.wanted[v] && a_.passes.level[v] == Level::Row && !words_.is_inline(int32_t(v));
        return is_there && (is_fold ? a_.passes.folded[v] + 1 : a_.passes.need[v]) == before;
    };
    std::vector<size_t> fresh, known;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        for (int32_t p = 0; p <= pass; p++)
            if (is_of_column(v, p)) (p == pass ? fresh : known).push_back(v);
    if (fresh.empty()) return;
    const auto type = [&](size_t v) { return held_name(kernel_.values[v].type); };
    const std::string thread = dialect_.thread;
    for (const size_t v : fresh) line(text(dialect_.shared, type(v), " once", v, "[", STAYED_LINE, "];"));
    const std::string row = text("(", item, ") * rows * WIDTH + ", thread);
    open(text("if (", thread, " < rows * WIDTH", c_.is_full ? "" : text(" && ", row, " < n.rows"), ")"));
    line(text("const ", at_, " row = ", row, ", here = row;"));
    line("enum { WIDTH = 1 };");
    indices(a_.kept, "here");
    for (const size_t v : known) line(text(type(v), " v", v, "[WIDTH] = {once", v, "[", thread, "]};"));
    for (const size_t v : fresh) kernel_.values[v].kind == ValueKind::Fold ? finish(v, text("(all", v, " + ", thread, ")")) : define(v);
    for (const size_t v : fresh) line(text("once", v, "[", thread, "] = v", v, "[0];"));
    close();
    line(std::string(dialect_.barrier) + ";");
    for (const size_t v : fresh) {
        line(text(type(v), " v", v, "[WIDTH];"));
        unroll();
        line(text("for (i32 j = 0; j < WIDTH; j++) v", v, "[j] = once", v, "[", thread, " % rows * WIDTH + j];"));
    }
    define_inverses(pass);
}

void FormPrinter::declare_staying(const std::vector<size_t>& loads)
{
    shared();
    std::string room = "dynamic_shared()";
    for (const size_t v : loads) {
        const std::string type = text("Vector<u32, ", words_of(v), ">");
        line(text(type, "* const kept", v, " = (", type, "*)(", room, ") + ", dialect_.thread, ";"));
        room = text("kept", v, " - ", dialect_.thread, " + ", c_.is_ring ? RING : 1, " * HELD * THREADS");
    }
    for (int32_t pass = 0; pass < a_.passes.count; pass++)
        for (const size_t f : folds_of(pass)) {
            const std::string type = fold_words_of(f).accumulator;
            if (c_.is_split) line(text(dialect_.shared, type, " given", f, "[", turns(), "][", 1 << c_.log_parts, "]", a_.is_across ? text("[", STAYED_LINE, "];") : ";"));
            if (a_.is_across) line(text(dialect_.shared, type, " all", f, "[", STAYED_LINE, "];"));
        }
    if (!c_.is_split) return;
    line(text(dialect_.shared, "u64 gates[", turns(), "];"));
    line("u32 turn = 0;");
    line(text("set_gates<", turns(), ">(gates);"));
}

// What walks read of the row or column at this place.
void FormPrinter::hold_in(const std::vector<size_t>& loads, const std::string& place)
{
    for (const size_t v : loads) line(text("const Vector<u32, ", words_of(v), ">* const held", v, " = kept", v, " + ", place, " * (HELD * THREADS);"));
}

void FormPrinter::stay()
{
    const std::vector<size_t> loads = stayed();
    declare_staying(loads);
    define_uniform();
    lanes_of_staying();
    for (const size_t v : loads) line(text("Vector<u32, ", words_of(v), "> next", v, "[HELD];"));
    if (c_.is_peeled)
        for (const size_t v : loads) line(text("Vector<", memory_name(kernel_.values[v].type), ", 1> alone", v, "[1] = {};"));
    ask_for("team", loads);
    open(text("for (", at_, " item = team; item < items; item += teams)"));
    line("forget(start);");
    // Each thread has places of its own, so nobody waits for them.
    for (const size_t v : loads) unroll(), line(text("for (i32 k = 0; k < HELD; k++) kept", v, "[k * THREADS] = next", v, "[k];"));
    if (c_.is_peeled)
        for (const size_t v : loads) line(text("const Vector<", memory_name(kernel_.values[v].type), ", 1> came", v, " = alone", v, "[0];"));
    ask_for("item + teams", loads);
    place_item("item");
    pointers();
    if (c_.is_peeled) peel_vectors(), peel_single();
    hold_in(loads, "0");
    if (c_.is_peeled) hold_single(loads);
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_kept(v)) line(text(held_name(kernel_.values[v].type), " ", words_.kept(int32_t(v)), "[", (c_.held + at_once() - 1) / at_once() * at_once(), "][WIDTH];"));
    int32_t meetings = 0;
    for (int32_t pass = 0; pass < a_.passes.count; pass++) {
        define_item(pass, "item");
        words_.read_last(pass + 1 == a_.passes.count);
        walk(pass), meet_staying(pass);
        meetings += int32_t(folds_of(pass).size());
    }
    define_item(a_.passes.count, "item");
    row_stores();
    // Where folds meet is written again by the next row: two meetings keep all threads near enough.
    if (meetings < 2) line(std::string(dialect_.barrier) + ";");
    close();
}

}  // namespace ng::emitting
