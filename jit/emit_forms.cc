// Prints a kernel in one of CUDA's forms: who has which points of which rows, and what functions that takes.
#include "jit/emit_forms.h"

#include "jit/emit_printer.h"
#include "jit/error.h"

#include <algorithm>

namespace ng::emitting {

int32_t FormPrinter::slot(size_t fold) const
{
    int32_t before = 0;
    for (size_t v = 0; v < fold; v++) before += kernel_.values[v].kind == ValueKind::Fold;
    return before;
}

// Along: an element a warp for each fold. Across: a vector a thread, for one fold after another.
void FormPrinter::shared()
{
    int32_t folds = 0, words = 1, widest = 4;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        if (kernel_.values[v].kind != ValueKind::Fold || !a_.passes.wanted[v]) continue;
        const FoldWords w = fold_words_of(v);
        folds = slot(v) + 1;
        widest = std::max(widest, w.kind == FoldWords::Kind::Best ? 16 : bytes_of(w.type));
        if (w.kind == FoldWords::Kind::Best || w.kind == FoldWords::Kind::Running || bytes_of(w.type) == 8) words = std::max(words, 2);
        if (w.kind == FoldWords::Kind::Running && bytes_of(w.type) == 8) words = 4;
        if (is_cluster()) line(text(dialect_.shared, w.accumulator, " given", v, "[", 1 << LOG_CLUSTER, "];"));
    }
    if (folds && a_.is_across && c_.is_staying) line(text(dialect_.shared, "u64 shared[", across_bytes(c_.width << c_.log_line, widest) / 8, "];"));
    else if (folds) line(a_.is_across ? text(dialect_.shared, "u64 shared[WIDTH * THREADS * ", words, "];") : text(dialect_.shared, "u64 shared[", folds, "][", threads_of(c_) / 8, "];"));
}

// Several rows a block, each with a team of threads.
void FormPrinter::lanes_of_held()
{
    const std::string log = c_.log_lanes < 0 ? cut("log_lanes", Cut::LogLanes) : number(c_.log_lanes);
    line(text("const i32 lanes = 1 << ", log, ", lane = ", dialect_.thread, " & (lanes - 1);"));
    line(text("const ", at_, " row = (", at_, ")", dialect_.block, " * (", dialect_.threads, " >> ", log, ") + (", dialect_.thread, " >> ", log, ");"));
    line("const bool is_row = row < n.rows;");
    // Teams beyond the last row read what it reads, and have no points.
    line(text("const ", at_, " here = is_row ? row : n.rows - 1;"));
}

// One row for all blocks of a cluster: `parts` of them.
void FormPrinter::lanes_of_cluster()
{
    const std::string parts = cut("parts", Cut::Parts);
    line(text("const i32 lanes = ", dialect_.threads, ", lane = ", dialect_.thread, ";"));
    line(text("const i32 part = ", dialect_.block, " % ", parts, ";"));
    line(text("const ", at_, " row = ", dialect_.block, " / ", parts, ", here = row;"));
    line("const bool is_row = part == 0;");
    line("enter_cluster();");
}

void FormPrinter::lanes_of_walked(bool has_parts, const std::string& block)
{
    line(text("const i32 lanes = ", dialect_.threads, ", lane = ", dialect_.thread, ";"));
    if (has_parts) {
        const std::string parts = cut("parts", Cut::Parts);
        line(text("const ", at_, " row = ", block, " / ", parts, ", here = row;"));
        line(text("const i32 part = ", block, " % ", parts, ";"));
    } else {
        line(text("const ", at_, " row = ", c_.is_wide ? dialect_.any_block : block, ", here = row;"));
        if (c_.is_wide) line("if (row >= n.rows) return;");
    }
    line(text("const bool is_row = ", has_parts && c_.is_peeled ? "part == 0" : "true", ";"));
}

// Which points of its row a thread has.
void FormPrinter::span(bool has_parts)
{
    const std::string all = c_.is_peeled ? "inner" : "n.points", parts = has_parts || is_cluster() ? cut("parts", Cut::Parts) : "";
    if (c_.form == Form::Walked) {
        const std::string chunk = has_parts ? cut("chunk", Cut::Chunk) : "";
        line(has_parts ? text("const ", at_, " begin = (", at_, ")part * ", chunk, ", end = ", all, " - begin < ", chunk, " ? ", all, " : begin + ", chunk, ";") : text("const ", at_, " begin = 0, end = ", all, ";"));
        line(text("const ", at_, " first = begin + lane * WIDTH, step = lanes * WIDTH;"));
    } else if (is_cluster()) {
        line(text("const ", at_, " end = ", all, ", start = (part * lanes + lane) * WIDTH, step = ", parts, " * lanes * WIDTH;"));
    } else {
        line(text("const ", at_, " end = is_row ? ", all, " : 0, start = lane * WIDTH, step = lanes * WIDTH;"));
    }
}

// Threads of a block: `rows` vectors of rows side by side, times lanes over points. All parts are walked at once, so the last
// walk begins with the ends of all of them: what the one before read last is still in the cache.
void FormPrinter::lanes_of_columns(bool has_parts, bool is_last)
{
    const bool is_join = c_.is_split && !has_parts;
    const std::string log = is_join ? cut("log_join", Cut::LogJoin) : is_last ? cut("log_last", Cut::LogLast) : cut("log_lanes", Cut::LogLanes);
    line(text("const i32 rows = 1 << ", log, ", lane = ", dialect_.thread, " >> ", log, ", lanes = ", dialect_.threads, " >> ", log, ";"));
    std::string block = c_.is_wide && !c_.is_split ? dialect_.any_block : dialect_.block;
    const std::string turns = is_last ? cut("turns", Cut::Turns) : "";
    if (is_last) line(text("const i32 teams = ", dialect_.blocks, " / ", turns, ", turn = ", dialect_.block, " / teams, team = ", dialect_.block, " % teams;")), block = "team";
    if (has_parts) {
        const std::string parts = cut("parts", Cut::Parts), chunk = cut("chunk", Cut::Chunk), length = is_last ? text("(", chunk, " / ", turns, ")") : chunk;
        line(text("const i32 part = ", block, " % ", parts, ";"));
        line(text("const ", at_, " begin = (", at_, ")part * ", chunk, is_last ? text(" + (", turns, " - 1 - turn) * ", length) : "", ", stop = n.points - begin < ", length, " ? n.points : begin + ", length, ";"));
        block = text("(", block, " / ", parts, ")");
    } else {
        line(text("const ", at_, " begin = 0, stop = n.points;"));
    }
    line(text("const ", at_, " row = ((", at_, ")", block, " * rows + (", dialect_.thread, " & (rows - 1))) * WIDTH;"));
    line("const bool is_row = row < n.rows;");
    line(text("const ", at_, " here = is_row ? row : n.rows - WIDTH, end = is_row ? stop : 0, first = begin + lane, step = lanes;"));
}

// Where one part's result of a fold is in the launch's memory; behind the parts', that of all.
std::string FormPrinter::partial(size_t fold, const std::string& part)
{
    const std::string memory = numbers_.add("scratch", {NumberKind::Scratch, Dtype::u64, 0, 0, 0}), region = cut("region", Cut::Region), parts = cut("parts", Cut::Parts);
    const std::string at = a_.is_across ? text("(i64)", part, " * n.rows + row + j") : text("(i64)row * (", parts, " + 1) + ", part);
    return text("((", fold_words_of(fold).accumulator, "*)(", memory, " + ", slot(fold), " * ", region, "))[", at, "]");
}

void FormPrinter::write_partial(size_t f, const std::string& part, const std::string& all)
{
    open(a_.is_across ? "if (is_row && lane == 0)" : "if (lane == 0)");
    if (a_.is_across) open_lanes();
    line(text(partial(f, part), " = ", all, a_.is_across ? "[j];" : ";"));
    if (a_.is_across) close_lanes();
    close();
}

void FormPrinter::scatter(int32_t pass)
{
    for (const size_t f : folds_of(pass)) {
        const FoldWords w = fold_words_of(f);
        meet_threads(f);
        if (a_.is_across) line(text(w.block, "<WIDTH>((", w.accumulator, "*)shared, ", accumulated(f, true), ", rows);"));
        else line(text("const ", w.accumulator, " g", f, " = ", w.block, "((", w.accumulator, "*)shared[", slot(f), "], ", accumulated(f, true), ", lanes);"));
        write_partial(f, "part", a_.is_across ? accumulated(f, true) : text("g", f));
    }
}

// A thread's parts of a fold, so many at once: it asks for all before it adds any. Of a loop that may end after each it waits for each.
void FormPrinter::gather(size_t f, int32_t count, bool is_guarded)
{
    const std::string across = a_.is_across ? "[j]" : "", a = text("a", f, across), got = text("got", f, "[k]", across), q = text("(p + k * lanes)");
    line(text(fold_words_of(f).accumulator, " got", f, "[", count, a_.is_across ? "][WIDTH];" : "];"));
    for (const bool is_there : {false, true}) {
        unroll();
        open(text("for (i32 k = 0; k < ", count, "; k++)"));
        if (a_.is_across) open_lanes();
        if (is_there) line(text(is_guarded ? text("if (", q, " < parts) ") : "", a, " = ", fold_words_of(f).combine, "(", a, ", ", got, ");"));
        else line(text(got, " = ", partial(f, is_guarded ? text("(", q, " < parts ? ", q, " : p)") : q), ";"));
        if (a_.is_across) close_lanes();
        close();
    }
}

// The folds of a pass from those of its parts, in one order.
void FormPrinter::gather(int32_t pass)
{
    start_folds(pass, false);
    for (const size_t f : folds_of(pass)) {
        const FoldWords w = fold_words_of(f);
        line("{"), depth_++;
        const std::string parts = cut("parts", Cut::Parts);
        line(a_.is_across ? text("const i32 parts = is_row ? ", parts, " : 0;") : text("const i32 parts = ", parts, ";"));
        line("i32 p = lane;");
        open("for (; p + 7 * lanes < parts; p += 8 * lanes)"), gather(f, 8, false), close();
        body_ += "#pragma unroll 1\n";
        open("for (; p < parts; p += 4 * lanes)"), gather(f, 4, true), close();
        close();
        if (a_.is_across) line(text(w.block, "<WIDTH>((", w.accumulator, "*)shared, a", f, ", rows);"));
        else line(text("const ", w.accumulator, " g", f, " = ", w.block, "((", w.accumulator, "*)shared[", slot(f), "], a", f, ", lanes);"));
        const std::string all = a_.is_across ? text("a", f) : text("g", f);
        if (a_.is_across) write_partial(f, cut("parts", Cut::Parts), all);
        finish(f, all);
    }
}

// What columns' parts have made of it when they met.
void FormPrinter::recall(int32_t pass)
{
    for (const size_t f : folds_of(pass)) {
        const std::string type = fold_words_of(f).accumulator, parts = cut("parts", Cut::Parts);
        line(text(type, " r", f, a_.is_across ? "[WIDTH];" : text(" = ", partial(f, parts), ";")));
        if (a_.is_across) {
            // Threads beyond the last row take what it has.
            open_lanes();
            line(text("const ", at_, " row = here;"));
            line(text("r", f, "[j] = ", partial(f, parts), ";"));
            close_lanes();
        }
        finish(f, text("r", f));
    }
}

void FormPrinter::row_stores()
{
    if (std::ranges::none_of(a_.passes.stores, [](const Passes::Placed& p) { return p.row; })) return;
    open(text("if (is_row && lane == 0", c_.is_staying && a_.is_across && !c_.is_full ? " && row < n.rows)" : ")"));
    if (a_.is_across) open_lanes();
    for (size_t s = 0; s < kernel_.stores.size(); s++)
        if (a_.passes.stores[s].row) line(words_.store(s));
    if (a_.is_across) close_lanes();
    close();
}

// Where a row lies, and which of its points a thread has.
void FormPrinter::begin_row(bool has_parts)
{
    indices(a_.kept, "here");
    pointers();
    if (c_.is_peeled) peel_vectors(), peel_single();
    if (!a_.is_across) span(has_parts);
}

// What a row's threads keep from one pass to the next, and the loads of it.
void FormPrinter::hold(const Batch& b, const std::vector<size_t>& loads)
{
    declare(b, loads);
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_kept(v)) line(text(held_name(kernel_.values[v].type), " ", words_.kept(int32_t(v)), "[", b.count, "][WIDTH];"));
    fetch(b, loads);
}

void FormPrinter::points()
{
    if (is_tiled(a_, c_)) return tiles();
    define_uniform();
    line(text("const ", at_, " start = ((", at_, ")", dialect_.block, " * (THREADS * HELD) + ", dialect_.thread, ") * WIDTH, step = THREADS * WIDTH, end = n.points;"));
    pointers();
    batch({0, "HELD", true});
}

void FormPrinter::rows()
{
    shared();
    define_uniform();
    if (is_cluster()) lanes_of_cluster();
    else if (c_.form == Form::Held && a_.is_across) lanes_of_columns(false, false), line(text("const ", at_, " start = first;"));
    else if (c_.form == Form::Held) lanes_of_held();
    else if (c_.form == Form::Walked) lanes_of_walked(false, dialect_.block);
    else lanes_of_columns(false, false);
    begin_row(false);
    if (c_.form == Form::Held) {
        std::vector<size_t> held;
        for (size_t v = 0; v < kernel_.values.size(); v++)
            if (is_full_load(v) && is_held(v)) held.push_back(v);
        hold(held_batch(0), held);
        if (c_.is_peeled) hold_single(held);
    }
    for (int32_t pass = 0; pass < a_.passes.count; pass++) define_row(pass), walk(pass), is_cluster() ? meet_cluster(pass) : meet(pass, true);
    define_row(a_.passes.count);
    // Who writes what others of its row read waits for them.
    const bool is_late = std::ranges::any_of(kernel_.stores, [](const StoreTo& s) { return s.late; });
    if (is_late && folds_of(a_.passes.count - 1).empty()) line(is_cluster() ? "meet_cluster();" : std::string(dialect_.barrier) + ";");
    row_stores();
}

// Each walk of parts is a launch of its own. Of a row, each of its blocks goes through what those before found; of columns
// that would be as much as they have themselves, so their parts meet between two walks. The last walk of rows goes backwards:
// what the one before read last is still in the cache.
void FormPrinter::stage(int32_t stage)
{
    shared();
    define_uniform();
    if (c_.form == Form::Walked) lanes_of_walked(true, stage > 0 ? text("(", dialect_.blocks, " - 1 - ", dialect_.block, ")") : dialect_.block);
    else lanes_of_columns(true, folds_of(stage).empty());
    walk_part(stage, {});
}

void FormPrinter::walk_part(int32_t stage, const std::string& count)
{
    words_.read_last(folds_of(stage).empty());
    begin_row(true);
    if (stage > 0) send_first(stage);
    if (!count.empty()) line(text("if (", dialect_.thread, " == 0) await_done(", count, ");")), line(std::string(dialect_.barrier) + ";");
    for (int32_t pass = 0; pass < stage; pass++) define_row(pass), a_.is_across ? recall(pass) : gather(pass);
    define_row(stage);
    walk(stage), scatter(stage);
}

// By single columns, so that neighbours read side by side. The last meeting stores what a row has once.
void FormPrinter::join(int32_t stage, bool is_last)
{
    line("enum { WIDTH = 1 };");
    shared();
    define_uniform();
    lanes_of_columns(false, false);
    indices(a_.kept, "here");
    for (int32_t pass = 0; pass < stage; pass++) define_row(pass), recall(pass);
    define_row(stage), gather(stage);
    if (!is_last) return;
    for (int32_t pass = stage + 1; pass <= a_.passes.count; pass++) define_row(pass);
    row_stores();
}

// What a column has once is there when its parts meet; if it is written over what points are read from, it comes after those.
bool ends_with_rows(const Arranged& a)
{
    bool has_rows = false, is_late = false;
    for (size_t s = 0; s < a.kernel.stores.size(); s++) has_rows |= a.passes.stores[s].row, is_late |= a.passes.stores[s].row && a.kernel.stores[s].late;
    return a.is_across ? is_late && a.passes.last_fold() + 1 < a.passes.count : has_rows;
}
void FormPrinter::last_rows()
{
    if (a_.is_across) line("enum { WIDTH = 1 };");
    shared();
    define_uniform();
    if (c_.form == Form::Walked) lanes_of_walked(false, dialect_.block);
    else lanes_of_columns(false, false);
    indices(a_.kept, "here");
    for (int32_t pass = 0; pass < a_.passes.count; pass++) define_row(pass), a_.is_across ? recall(pass) : gather(pass);
    define_row(a_.passes.count);
    row_stores();
}

std::string FormPrinter::head() const
{
    const auto axes = [](size_t n) { return text(n, n == 1 ? " axis" : " axes"); };
    const std::string space = a_.has_rows() ? text("Rows over ", axes(a_.kept.size()), ", points over ", axes(a_.reduced.size())) : text("Points over ", axes(a_.kept.size()));
    return text("// ", space, "; ", text_of(c_), ".\n");
}

static bool has_running(const Arranged& a)
{
    return std::ranges::any_of(a.passes.running, [](const Passes::Running& r) { return r.kind != Passes::Kind::Own; });
}

// Of a block that holds much between its folds, how many a processor shall have at once: 1024 threads, who then have 64
// registers each. Left alone, compilers take up to 126, and memory waits.
int32_t FormPrinter::least_blocks() const
{
    if (c_.is_staying) return 1;
    if (c_.form == Form::Columns) return a_.weight <= 64 ? column_blocks(a_, c_.width) : 1;
    if (a_.weight > 64 || !(has_running(a_) || c_.form == Form::Held)) return 1;
    // Of short rows a thread has 32 bytes on their way, so there are more of them.
    const bool is_short = c_.log_lanes >= 0 && !a_.is_across && c_.width * c_.held * loaded_bytes(a_) <= 32 && c_.width * c_.held <= 16;
    return (is_short ? 1536 : 1024) / threads_of(c_);
}
// What threads keep for four columns without running folds leaves room for one more.
int32_t column_blocks(const Arranged& a, int32_t width) { return width <= 4 && !has_running(a) ? 5 : 4; }

// Takes the body as a function of the text.
void FormPrinter::function(KernelSource& source, const std::string& name)
{
    const bool may_restrict = std::ranges::none_of(kernel_.stores, [](const StoreTo& s) { return s.late; });
    functions_ += text(functions_.empty() ? "" : "\n", "extern \"C\" __global__ void __launch_bounds__(THREADS", least_blocks() > 1 ? text(", ", least_blocks()) : "", ") ", name, "(", words_.parameters(may_restrict), "const Numbers n)\n{\n    follow();\n", body_, "}\n");
    body_.clear();
    source.functions += name != "fused";
}

KernelSource FormPrinter::print()
{
    KernelSource source;
    source.has_rows = a_.has_rows(), source.rows = a_.rows, source.points = a_.points;
    if (a_.has_rows()) words_.count("rows", a_.rows);
    words_.count("points", a_.points);
    if (c_.is_staying) {
        c_.is_ring ? ring() : stay(), function(source, "fused");
    } else if (is_chase()) {
        clear_counts(), function(source, "fused");
        chase(), function(source, "fused_1");
    } else if (c_.is_split && !is_cluster()) {
        for (int32_t s = 0, done = 0; s < a_.passes.count; s++) {
            const auto end = [&] { function(source, done ? text("fused_", done) : "fused"), done++; };
            stage(s), end();
            if (a_.is_across && !folds_of(s).empty()) join(s, s == a_.passes.last_fold() && !ends_with_rows(a_)), end();
            if (s + 1 == a_.passes.count && ends_with_rows(a_)) last_rows(), end();
        }
    } else {
        a_.has_rows() ? rows() : points();
        function(source, "fused");
    }
    for (const Value& v : kernel_.values) source.buffers = std::max(source.buffers, v.buffer + 1);
    for (const StoreTo& s : kernel_.stores) source.buffers = std::max(source.buffers, s.buffer + 1);
    const std::string numbers = numbers_.finish(source);
    source.text = text(head(), "enum { WIDTH = ", c_.width, ", HELD = ", c_.held, ", THREADS = ", threads_of(c_), is_tiled(a_, c_) ? text(", SIDE = ", a_.tile_side, ", ALONG = ", TILE_POINTS / a_.tile_side) : "", " };\n", numbers, "\n", helpers_.printed(), functions_);
    return source;
}

KernelSource print_form(const Arranged& a, const Dialect& dialect, const LaunchClass& c) { return FormPrinter(a, dialect, c).print(); }

}  // namespace ng::emitting
