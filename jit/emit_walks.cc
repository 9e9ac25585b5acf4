// Prints how the threads of a form go over points: vectors fetched together, lanes computed, folds added up.
#include "jit/emit_printer.h"

#include <utility>

namespace ng::emitting {

std::vector<size_t> FormPrinter::folds_of(int32_t pass) const
{
    std::vector<size_t> out;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (kernel_.values[v].kind == ValueKind::Fold && a_.passes.wanted[v] && a_.passes.folded[v] == pass && a_.passes.running[v].kind != Passes::Kind::Total) out.push_back(v);
    return out;
}

bool FormPrinter::runs(int32_t pass) const
{
    return std::ranges::any_of(folds_of(pass), [&](size_t f) { return a_.passes.is_running(f); });
}

// The axes' indices from a row-major number, by multiplication.
void FormPrinter::indices(const std::vector<int32_t>& axes, const std::string& of)
{
    std::string rest = of;
    for (size_t k = axes.size(); k-- > 1;) {
        const int32_t x = axes[k];
        const Extent& extent = kernel_.axes[size_t(x)].extent;
        numbers_.end_line();
        const std::string factor = numbers_.add(text("factor", x), {NumberKind::Factor, c_.is_wide ? Dtype::u64 : Dtype::u32, 0, extent, 0});
        const std::string shift = numbers_.add(text("shift", x), {NumberKind::Shift, Dtype::i32, 0, extent, 0});
        line(text("const ", at_, " q", x, " = quotient_of(", rest, ", ", factor, ", ", shift, "), i", x, " = ", rest, " - q", x, " * ", extent_of(x), ";"));
        rest = text("q", x);
    }
    if (!axes.empty()) line(text("const ", at_, " i", axes[0], " = ", rest, ";"));
}

void FormPrinter::define(size_t v)
{
    const auto i = int32_t(v);
    if (words_.is_inline(i)) return;
    const std::string type = held_name(kernel_.values[v].type);
    if (is_kept(v)) return line(text(words_.name(i), " = ", words_.expression(i), ";"));
    if (!words_.is_by_lane(i)) return line(text("const ", type, " ", words_.name(i), " = ", words_.expression(i), ";"));
    line(text(type, " v", v, "[WIDTH];"));
    open_lanes();
    line(text("v", v, "[j] = ", words_.expression(i), ";"));
    close_lanes();
}

void FormPrinter::define_uniform()
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Uniform)) define(v);
    define_inverses(-1);
}

// Of divisors that are there before this pass; -1: of those that all points share.
void FormPrinter::define_inverses(int32_t pass)
{
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!words_.is_by_inverse(int32_t(v))) continue;
        const int32_t by = kernel_.values[v].args[1];
        if ((a_.passes.level[size_t(by)] == Level::Uniform ? -1 : a_.passes.need[size_t(by)]) != pass) continue;
        if (!words_.is_by_lane(by)) {
            line(text("const Inverse d", v, " = inverse_of(", words_.name(by), ");"));
            continue;
        }
        line(text("Inverse d", v, "[WIDTH];"));
        open_lanes(), line(text("d", v, "[j] = inverse_of(", words_.name(by), ");")), close_lanes();
    }
}

void FormPrinter::define_row(int32_t pass)
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Row) && a_.passes.need[v] == pass) define(v);
    define_inverses(pass);
}

void FormPrinter::pointer_to(size_t v)
{
    const Value& a = kernel_.values[v];
    line(text("const ", memory_name(a.type), "* p_v", v, " = ", hidden(words_.base(text("v", v), a.buffer, a.type, kernel_.accesses[size_t(a.access)], false)), ";"));
}

void FormPrinter::pointers()
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_full_load(v)) pointer_to(v);
    for (size_t s = 0; s < kernel_.stores.size(); s++) {
        if (a_.passes.stores[s].row) continue;
        const StoreTo& t = kernel_.stores[s];
        const Dtype type = kernel_.values[size_t(t.value)].type;
        line(text(memory_name(type), "* p_s", s, " = ", hidden(words_.base(text("s", s), t.buffer, type, kernel_.accesses[size_t(t.access)], true)), ";"));
    }
}

void FormPrinter::open_item(const Batch& b)
{
    unroll(), open(text("for (i32 k = 0; k < ", b.count, "; k++)"));
    if (is_tiled(a_, c_)) return open_tile_item();
    const std::string number = b.is_there && c_.is_staying ? "(g + k)" : "k";
    line(text("const ", at_, " point = start + ", number, " * step;"));
    // Of a thread's vectors of a known row only the last may have no points; where all are told apart, compilers need not ask of the others.
    if (b.is_guarded) open(c_.is_keeping && !a_.is_across ? text("if (", number, " < HELD - 1 || point < end)") : "if (point < end)");
    if (!words_.is_flat()) indices(a_.walked(), place());
}

void FormPrinter::declare(const Batch& b, const std::vector<size_t>& loads)
{
    for (const size_t v : loads) {
        const Value& a = kernel_.values[v];
        line(text("Vector<", memory_name(a.type), words_.is_single() || words_.pace(a.access) == Pace::Same ? ", 1> " : ", WIDTH> ", words_.vectors(int32_t(v)), "[", b.count, "];"));
    }
}

void FormPrinter::fetch(const Batch& b, const std::vector<size_t>& loads)
{
    if (loads.empty()) return;
    open_item(b);
    std::vector<size_t> by_element;
    for (const size_t v : loads) {
        const bool is_strided = words_.pace(kernel_.values[v].access) == Pace::Strided;
        if (is_strided && words_.is_flat()) {
            by_element.push_back(v);
            continue;
        }
        if (is_strided && !words_.is_turned(int32_t(v))) unroll();
        line(words_.fetch(int32_t(v), "k"));
    }
    if (!by_element.empty()) {
        open_lanes();
        lane_indices();
        for (const size_t v : by_element) line(words_.fetch(int32_t(v), "k"));
        close_lanes();
    }
    if (b.is_guarded) close();
    close();
}

// Of a vector over the ends of rows, each element's own; behind the last, the last's.
void FormPrinter::lane_indices()
{
    line(text("const ", at_, " there = j < end - point ? point + j : end - 1;"));
    indices(a_.walked(), "there");
}

// What each lane of a vector has and does.
void FormPrinter::lanes(const Batch& b)
{
    open_lanes();
    const auto has_place = [&](size_t v) { return is_wanted(v, Level::Full) && is_in(v, b.pass) && kernel_.values[v].kind != ValueKind::Load && kernel_.values[v].access >= 0; };
    bool has_places = false;
    for (size_t v = 0; v < kernel_.values.size(); v++) has_places |= has_place(v);
    if (words_.is_flat() && has_places) lane_indices();
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Full) && is_in(v, b.pass)) define(v);
    for (const size_t f : folds_of(b.pass)) {
        const FoldWords w = fold_words_of(f);
        const std::string x = words_.name(operands_of(kernel_, a_.passes, f)[0]), a = text("a", f, a_.is_across ? "[j]" : "");
        const std::string at = a_.is_across || a_.axis < 0 ? "point" : place() + " + j";
        if (w.kind == FoldWords::Kind::Running) line(text("x", f, a_.is_across ? "[j][k] = " : is_by_vector(b) ? "[j] = " : "[k * WIDTH + j] = ", x, ";"));
        else if (is_tree(w)) line(text(is_by_lanes(w) ? "y" : "x", f, a_.is_across ? "[j][k] = " : is_by_lanes(w) ? "[j] = " : "[k][j] = ", x, ";"));
        else if (w.kind == FoldWords::Kind::Best && !words_.is_single()) line(text(a, " = next_", w.combine, "(", a, ", ", x, ", ", at, ");"));
        else line(text(a, " = ", w.combine, "(", a, ", ", w.lift(x, at), ");"));
    }
    for (size_t s = 0; s < kernel_.stores.size(); s++)
        if (!a_.passes.stores[s].row && a_.passes.stores[s].pass == b.pass) line(words_.lane_of_store(s));
    close_lanes();
}

// Whether a pass divides, since roots alone are not worth a second text, and its lanes may be computed once more where tame
// forms do not do: its folds' results are not overwritten but added to only later.
bool FormPrinter::may_repeat(int32_t pass) const
{
    bool divides = false, may = true;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        divides |= is_wanted(v, Level::Full) && is_in(v, pass) && words_.has_tame_form(int32_t(v)) && kernel_.values[v].op != Op::sqrt;
        const Value& a = kernel_.values[v];
        if (a.kind == ValueKind::Fold && a_.passes.wanted[v] && a_.passes.folded[v] == pass)
            may &= a_.passes.is_running(v) || is_tree(fold_words(a.op, kernel_.values[size_t(a.args[0])].type));
    }
    return divides && may;
}

bool FormPrinter::is_vector_store(size_t s, int32_t pass) const
{
    return !a_.passes.stores[s].row && a_.passes.stores[s].pass == pass && words_.pace(kernel_.stores[s].access) == Pace::Unit;
}

void FormPrinter::compute(const Batch& b)
{
    open_item(b);
    if (c_.is_staying) take_vectors(b.pass);
    for (const size_t f : folds_of(b.pass))
        if (is_by_vector(b) && a_.passes.is_running(f)) line(text(name_of(fold_words_of(f).type), " x", f, "[WIDTH];"));
    for (const size_t f : folds_of(b.pass))
        if (const FoldWords w = fold_words_of(f); is_by_lanes(w)) line(text(name_of(w.type), " y", f, "[WIDTH];"));
    for (size_t s = 0; s < kernel_.stores.size(); s++) {
        if (!is_vector_store(s, b.pass)) continue;
        const Dtype t = kernel_.values[size_t(kernel_.stores[s].value)].type;
        bool is_rounding = false;
        words_.stored(s, is_rounding);
        line(is_rounding ? text("f32 o", s, "[WIDTH];") : text("Vector<", memory_name(t), ", WIDTH> o", s, ";"));
    }
    if (may_repeat(b.pass)) {
        line("bool is_tame = true;");
        words_.take_tame_forms(true), lanes(b), words_.take_tame_forms(false);
        open("if (!is_tame)"), lanes(b), close();
    } else {
        lanes(b);
    }
    for (const size_t f : folds_of(b.pass))
        if (const FoldWords w = fold_words_of(f); is_by_lanes(w)) line(text("x", f, "[k] = ", tree(text("y", f), 0, c_.width, w), ";"));
    for (size_t s = 0; s < kernel_.stores.size(); s++)
        if (is_vector_store(s, b.pass)) line(words_.put(s));
    for (const size_t f : folds_of(b.pass))
        if (is_by_vector(b) && a_.passes.is_running(f)) take_running(f);
    if (is_by_vector(b) && runs(b.pass)) line(text("taken", b.pass, " += WIDTH;"));
    if (b.is_guarded) close();
    if (c_.is_staying) add_vector(b.pass);
    close();
}

// Numbers of one thread meet as a tree before their sum's rest is kept, so that most of them cost one addition.
std::string FormPrinter::tree(const std::string& array, int64_t from, int64_t count, const FoldWords& w)
{
    if (count == 1) return text(array, "[", from, "]");
    const std::string sign = w.is_sum ? " + " : " * ";
    return "(" + tree(array, from, count / 2, w) + sign + tree(array, from + count / 2, count - count / 2, w) + ")";
}

// A thread's numbers of a batch into what runs.
void FormPrinter::take_running(size_t f)
{
    const std::string take = text("take_", name_of(fold_words_of(f).type)), pass = number(a_.passes.folded[f]);
    if (a_.is_across) unroll();
    line(a_.is_across ? text("for (i32 j = 0; j < WIDTH; j++) ", take, "(a", f, "[j], x", f, "[j], taken", pass, ");") : text(take, "(a", f, ", x", f, ", taken", pass, ");"));
}

void FormPrinter::add_pairs(const Batch& b)
{
    const int64_t vectors = b.count == "1" ? 1 : c_.held;
    for (const size_t f : folds_of(b.pass)) {
        const FoldWords w = fold_words_of(f);
        if (w.kind == FoldWords::Kind::Running && !is_by_vector(b)) take_running(f);
        if (!is_tree(w)) continue;
        if (c_.is_staying) {
            add_staying(f);
            continue;
        }
        const auto add = [&](const std::string& to, const std::string& sum) { line(text(to, " = ", w.combine, "(", to, ", ", w.lift(sum, ""), ");")); };
        if (a_.is_across) {
            unroll();
            open("for (i32 j = 0; j < WIDTH; j++)");
            add(text("a", f, "[j]"), tree(text("x", f, "[j]"), 0, vectors, w));
            close();
        } else {
            std::vector<std::string> parts;
            for (int64_t k = 0; k < vectors; k++) parts.push_back(text("x", f, "[", k, "]"));
            const std::string sign = w.is_sum ? " + " : " * ";
            while (parts.size() > 1) {
                for (size_t i = 0; i + 1 < parts.size(); i++) parts[i] = "(" + parts[i] + sign + parts[i + 1] + ")", parts.erase(parts.begin() + std::ptrdiff_t(i) + 1);
            }
            add(text("a", f), parts[0]);
        }
    }
}

// Loads first, so that many are on their way at once.
void FormPrinter::batch(const Batch& b)
{
    std::vector<size_t> loads;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_full_load(v) && is_in(v, b.pass) && !is_held(v)) loads.push_back(v);
    if (!b.is_there && !c_.is_staying) declare(b, loads), fetch(b, loads);
    for (const size_t f : folds_of(b.pass)) {
        const FoldWords w = fold_words_of(f);
        if (w.kind == FoldWords::Kind::Running && !is_by_vector(b)) line(text(name_of(w.type), " x", f, a_.is_across ? text("[WIDTH][", b.count, "];") : text("[", b.count, " * WIDTH];")));
        if (!is_tree(w)) continue;
        line(text(name_of(w.type), " x", f, a_.is_across ? text("[WIDTH][", b.count, "]") : text("[", b.count, is_by_lanes(w) ? "]" : "][WIDTH]"), w.kind == FoldWords::Kind::Tree && b.is_guarded ? " = {};" : ";"));
        if (w.kind != FoldWords::Kind::Tree || !b.is_guarded || w.is_sum) continue;
        unroll();
        const std::string numbers = a_.is_across || c_.is_staying ? text("for (i32 k = 0; k < ", b.count, " * WIDTH; k++) (&x", f, "[0][0])[k]") : text("for (i32 k = 0; k < ", b.count, "; k++) x", f, "[k]");
        line(text(numbers, " = ", w.start, ";"));
    }
    compute(b);
    add_pairs(b);
    if (!is_by_vector(b) && runs(b.pass)) line(text("taken", b.pass, " += ", b.count, a_.is_across ? ";" : " * WIDTH;"));
}

// is_walk: by what threads have by themselves; else by what several have made together.
void FormPrinter::start_folds(int32_t pass, bool is_walk)
{
    for (const size_t f : folds_of(pass)) {
        const FoldWords w = fold_words_of(f);
        const bool is_thread = is_walk && !w.thread.empty();
        const std::string type = is_thread ? w.thread : w.accumulator, start = is_thread ? w.thread_start : w.start;
        if (!a_.is_across) {
            line(text(type, " a", f, " = ", start, ";"));
            continue;
        }
        line(text(type, " a", f, "[WIDTH];"));
        unroll();
        line(text("for (i32 j = 0; j < WIDTH; j++) a", f, "[j] = ", start, ";"));
    }
}

// Where threads compute much between loads of one pass, those of the next two batches are on their way meanwhile, through
// shared memory of which each thread has its own places; so are those of the last walk while parts meet ahead of it. These
// loads; none where some do not lie side by side, or are too many.
std::vector<size_t> FormPrinter::loads_ahead(int32_t pass) const
{
    std::vector<size_t> loads;
    int32_t bytes = 0;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (!is_full_load(v) || !is_in(v, pass)) continue;
        const int32_t vector = bytes_of(kernel_.values[v].type) * c_.width;
        if (words_.pace(kernel_.values[v].access) != Pace::Unit || vector < 4 || vector > 16) return {};
        loads.push_back(v), bytes += 2 * c_.held * threads_of(c_) * vector;
    }
    const bool is_first = c_.form == Form::Walked && pass == 0 && runs(pass), is_last = c_.is_split && pass > 0 && folds_of(pass).empty();
    return c_.width > 1 && (is_first || is_last) && bytes <= AHEAD_BYTES ? loads : std::vector<size_t>();
}

void FormPrinter::declare_ahead(const std::vector<size_t>& loads)
{
    for (const size_t v : loads) line(text(dialect_.shared, "Vector<", memory_name(kernel_.values[v].type), ", WIDTH> ahead", v, "[2 * HELD][THREADS];"));
}

void FormPrinter::send_first(int32_t pass)
{
    const std::vector<size_t> ahead = loads_ahead(pass);
    if (!is_chase()) declare_ahead(ahead);
    if (!ahead.empty()) line("i32 slot = 0;"), send(ahead, "first", "0"), send(ahead, "(first + HELD * step)", "1");
}

void FormPrinter::send(const std::vector<size_t>& loads, const std::string& from, const std::string& slot)
{
    open(text("if (", from, " + (HELD - 1) * step < end)"));
    unroll();
    open("for (i32 k = 0; k < HELD; k++)");
    line(text("const ", at_, " point = ", from, " + k * step;"));
    indices(a_.walked(), place());
    for (const size_t v : loads) line(text("send(&ahead", v, "[", slot, " * HELD + k][", dialect_.thread, "], ", words_.address(int32_t(v)), ");"));
    close();
    close();
    line("end_sending();");
}

// A batch that was sent two batches ago; what is sent now takes its place.
void FormPrinter::receive(const std::vector<size_t>& loads)
{
    line("await_sent<1>();");
    for (const size_t v : loads) {
        line(text("Vector<", memory_name(kernel_.values[v].type), ", WIDTH> m", v, "[HELD];"));
        unroll();
        line(text("for (i32 k = 0; k < HELD; k++) m", v, "[k] = ahead", v, "[slot * HELD + k][", dialect_.thread, "];"));
    }
    send(loads, "(start + 2 * HELD * step)", "slot");
    line("slot ^= 1;");
}

// One pass of a row's threads over its points.
void FormPrinter::walk(int32_t pass)
{
    start_folds(pass, true);
    if (runs(pass)) line(text("i32 taken", pass, " = 0;"));
    if (c_.is_staying) return walk_staying(pass), walk_single(pass);
    if (c_.form == Form::Held) return batch(held_batch(pass)), walk_single(pass);
    line(text(at_, " start", pass, " = first;"));
    const std::vector<size_t> ahead = loads_ahead(pass);
    if (pass == 0) send_first(pass);
    open(text("for (; start", pass, " + (HELD - 1) * step < end; start", pass, " += HELD * step)"));
    line(text("const ", at_, " start = start", pass, ";"));
    if (!ahead.empty()) receive(ahead);
    batch({pass, "HELD", false, !ahead.empty()});
    close();
    // Each thread has fewer than HELD of these: as two at a time and one more, a text was a quarter longer.
    body_ += "#pragma unroll 1\n";
    open(text("for (; start", pass, " < end; start", pass, " += step)"));
    line(text("const ", at_, " start = start", pass, ";"));
    batch({pass, "1", false});
    close();
    walk_single(pass);
}

// What threads have by themselves, said as teams say it.
void FormPrinter::meet_threads(size_t f)
{
    const FoldWords w = fold_words_of(f);
    if (w.thread.empty()) return;
    if (a_.is_across) {
        line(text(w.accumulator, " t", f, "[WIDTH];"));
        unroll();
        line(text("for (i32 j = 0; j < WIDTH; j++) t", f, "[j] = ", text("met_", name_of(w.type), "(a", f, "[j], taken", a_.passes.folded[f], ")"), ";"));
    } else {
        line(text("const ", w.accumulator, " t", f, " = ", text("met_", name_of(w.type), "(a", f, ", taken", a_.passes.folded[f], ")"), ";"));
    }
}
std::string FormPrinter::accumulated(size_t f, bool is_walk) { return text(is_walk && !fold_words_of(f).thread.empty() ? "t" : "a", f); }

// A fold's value from all that belongs to it; of what runs, that itself.
void FormPrinter::finish(size_t f, const std::string& all)
{
    const FoldWords w = fold_words_of(f);
    const bool runs = a_.passes.is_running(f);
    const std::string type = runs ? w.accumulator : held_name(kernel_.values[f].type), name = text(runs ? "m" : "v", f);
    if (!a_.is_across) return line(text("const ", type, " ", name, " = ", w.finish(all), ";"));
    line(text(type, " ", name, "[WIDTH];"));
    unroll();
    line(text("for (i32 j = 0; j < WIDTH; j++) ", name, "[j] = ", w.finish(all + "[j]"), ";"));
}

// Each block gives what it has to all of its cluster, and all go through that in one order.
void FormPrinter::meet_cluster(int32_t pass)
{
    const std::vector<size_t> folds = folds_of(pass);
    for (const size_t f : folds) {
        const FoldWords w = fold_words_of(f);
        meet_threads(f);
        line(text("const ", w.accumulator, " g", f, " = ", w.block, "((", w.accumulator, "*)shared[", slot(f), "], ", accumulated(f, true), ", lanes);"));
    }
    if (!folds.empty() && !std::exchange(has_met_, true)) line("await_cluster();");
    for (const size_t f : folds) line(text("if (lane < ", cut("parts", Cut::Parts), ") give(&given", f, "[part], g", f, ", lane);"));
    if (!folds.empty()) line("meet_cluster();");
    for (const size_t f : folds) {
        const FoldWords w = fold_words_of(f);
        line(text(w.accumulator, " r", f, " = ", w.start, ";"));
        line(text("for (i32 p = 0; p < ", cut("parts", Cut::Parts), "; p++) r", f, " = ", w.combine, "(r", f, ", given", f, "[p]);"));
        finish(f, text("r", f));
    }
}

// The threads of a row bring its folds together.
void FormPrinter::meet(int32_t pass, bool is_walk)
{
    for (const size_t f : folds_of(pass)) {
        const FoldWords w = fold_words_of(f);
        if (is_walk) meet_threads(f);
        if (!a_.is_across) {
            finish(f, text(w.block, "((", w.accumulator, "*)shared[", slot(f), "], ", accumulated(f, is_walk), ", lanes)"));
            continue;
        }
        line(text(w.block, "<WIDTH>((", w.accumulator, "*)shared, ", accumulated(f, is_walk), ", rows);"));
        finish(f, accumulated(f, is_walk));
    }
}

}  // namespace ng::emitting
