// How the threads that share a row bring their folds together in CUDA: by shuffles, then through shared memory.
#include "jit/emit_parts.h"

#include "jit/error.h"

namespace ng::emitting {
namespace {

// Shuffles know 4 and 8 bytes.
std::string shuffled(const std::string& x, Dtype t)
{
    const bool is_narrow = is_bool(t) || bytes_of(t) < 4;
    return is_narrow ? text("(", name_of(t), ")shuffled((i32)", x, ", reach)") : text("shuffled(", x, ", reach)");
}
// What the thread `reach` away has of an accumulator.
std::string other_of(const FoldWords& w, const std::string& x)
{
    const bool is_plain = w.kind == FoldWords::Kind::Plain || w.kind == FoldWords::Kind::Tree;
    return w.kind == FoldWords::Kind::Running ? text("all_shuffled(", x, ", reach)") : is_plain ? shuffled(x, w.type) : text("shuffled_", w.accumulator, "(", x, ", reach)");
}
std::string from_first(const std::string& x, Dtype t)
{
    const bool is_narrow = is_bool(t) || bytes_of(t) < 4;
    return is_narrow ? text("(", name_of(t), ")of_first((i32)", x, ", lanes)") : text("of_first(", x, ", lanes)");
}

}  // namespace

FoldWords Helpers::team(Op op, Dtype operand, bool is_across, bool is_held, Passes::Kind running)
{
    FoldWords w = fold_words(op, operand);
    const std::string type = name_of(w.type), what = running == Passes::Kind::Moments ? "moments" : "scaled";
    if (running != Passes::Kind::Own) {
        const std::string thread = running == Passes::Kind::Moments ? "shift" : "scaled";
        w.kind = FoldWords::Kind::Running, w.accumulator = text(what, "_", type), w.start = text("no_", what, "_", type, "()"), w.combine = text("together_", type);
        w.thread = text(thread, "_", type), w.thread_start = text("no_", thread, "_", type, "()"), w.is_sum = false;
        w.block = text(is_across ? "across_" : "team_", what, "_", type);
        if (names_.insert(w.block).second) is_across ? meet_across(w) : meet_along(w);
        return w;
    }
    if (is_held && w.kind == FoldWords::Kind::Pair)
        w.kind = FoldWords::Kind::Tree, w.accumulator = name_of(w.type), w.combine = text("op_", name_of(op), "_", name_of(w.type)), w.start = resolved(info(op).start, w.type);
    w.block = text(is_across ? "across_" : "team_", name_of(op), "_", name_of(w.type));
    // Two instructions less than the row's own expression.
    const bool is_plain_f32 = w.kind == FoldWords::Kind::Plain && w.type == Dtype::f32 && (op == Op::max || op == Op::min);
    if (is_plain_f32) w.combine = op == Op::max ? "greatest_f32" : "least_f32";
    if (!names_.insert(w.block).second) return w;
    if (w.kind != FoldWords::Kind::Pair && !is_plain_f32) combine(w, op);
    if (w.kind == FoldWords::Kind::Best) best(w, op), next(w, op);
    shuffle(w);
    is_across ? meet_across(w) : meet_along(w);
    return w;
}

// A thread meets its points in their order, which asks less of each than where two meet.
void Helpers::next(const FoldWords& w, Op op)
{
    const std::string name = text("next_", w.combine, "(", w.accumulator, " x, ", name_of(w.type), " value, i64 at)"), beyond = op == Op::argmax ? "value <= x.value" : "value >= x.value";
    print(text(w.accumulator, " ", name), text("x.at < 0 || (!(", beyond, ") && x.value == x.value) ? best_of_", name_of(w.type), "(value, at) : x"));
}

// What the thread `reach` away has.
void Helpers::shuffle(const FoldWords& w)
{
    if (w.kind == FoldWords::Kind::Plain || w.kind == FoldWords::Kind::Tree || !names_.insert("shuffled_" + w.accumulator).second) return;
    const bool is_pair = w.kind == FoldWords::Kind::Pair;
    const std::string first = is_pair ? "hi" : "value", second = is_pair ? "lo" : "at", type = w.accumulator;
    text_ += text(dialect_.helper, " ", type, " shuffled_", type, "(", type, " x, i32 reach)\n{\n    x.", first, " = ", shuffled("x." + first, w.type), ";\n    x.", second, " = ",
                  shuffled("x." + second, is_pair ? w.type : Dtype::i64), ";\n    return x;\n}\n\n");
}

// All lanes of a team get the same bits: what two make of each other's sums is one number, and of numbers that are equal
// but for their sign all take the first lane's.
void Helpers::meet_along(const FoldWords& w)
{
    const Dialect& d = dialect_;
    const bool runs = w.kind == FoldWords::Kind::Running;
    const std::string step = text("x = ", w.combine, "(x, ", other_of(w, "x"), ");\n");
    text_ += text("// A team is `lanes` threads side by side, a power of two. shared: of its block, an element a warp.\n", d.helper, " ", w.accumulator, " ", w.block, "(", w.accumulator,
                  "* shared, ", w.accumulator, " x, i32 lanes)\n{\n", "    for (i32 reach = (lanes < 32 ? lanes : 32) / 2; reach > 0; reach /= 2) ", step,
                  "    if (lanes > 32) {\n", "        const i32 thread = ", d.thread, ", warps = lanes / 32;\n", "        if (thread % 32 == 0) shared[thread / 32] = x;\n", "        ", d.barrier, ";\n",
                  "        x = shared[(thread & -lanes) / 32 + (thread & (warps - 1))];\n", "        for (i32 reach = warps / 2; reach > 0; reach /= 2) ", step, "    }\n",
                  runs ? "    return all_of_first(x, lanes);\n}\n\n" : w.kind == FoldWords::Kind::Plain && is_float(w.type) ? text("    return ", from_first("x", w.type), ";\n}\n\n") : "    return x;\n}\n\n");
}

// What lanes of a warp make together: all have all of it, and the first `rows` give it to the block. Of more rows than lanes each gives its own.
std::string Helpers::met_in_warps(const FoldWords& w) const
{
    return text("    for (i32 reach = 16; reach >= rows; reach /= 2)\n", "#pragma unroll\n", "        for (i32 j = 0; j < WIDTH; j++) x[j] = ", w.combine, "(x[j], ", other_of(w, "x[j]"), ");\n",
                "    if (thread % 32 < rows)\n", "#pragma unroll\n", "        for (i32 j = 0; j < WIDTH; j++) shared[(thread >> team) * columns + j * rows + (thread & (rows - 1))] = x[j];\n");
}
// Of two lanes that meet each goes on with half of their vector, so all of it costs one exchange less than it has rows. Such texts are longer: with
// it, sums of 64 x 1 Mi f16, of whose columns there are no parts, took 38 us on an H200, so 36.5.
std::string Helpers::met_by_halves(const FoldWords& w) const
{
    return text("    i32 from = 0, count = WIDTH;\n#pragma unroll\n", "    for (i32 step = 0; step < 5; step++) {\n", "        const i32 reach = 16 >> step, half = (WIDTH >> step) / 2;\n", "        if (reach < rows) continue;\n",
                "        const bool is_upper = half > 0 && (thread & reach) != 0;\n", "#pragma unroll\n", "        for (i32 j = 0; j < (half > 0 ? half : 1); j++) {\n",
                "            const ", w.accumulator, " other = is_upper ? x[j] : x[half + j], own = is_upper ? x[half + j] : x[j];\n",
                "            x[j] = ", w.combine, "(own, ", other_of(w, "other"), ");\n", "        }\n", "        if (half > 0) count = half, from += is_upper ? half : 0;\n", "    }\n",
                "    if (thread % (32 / WIDTH) < rows)\n", "#pragma unroll\n",
                "        for (i32 j = 0; j < WIDTH; j++)\n            if (j < count) shared[(thread >> team) * columns + (from + j) * rows + (thread & (rows - 1))] = x[j];\n");
}

// Threads t, t + rows, t + 2 rows .. have what belongs to one vector of rows; rows and WIDTH are powers of two. Only plain blocks have more rows than a warp's width.
void Helpers::meet_across(const FoldWords& w)
{
    const Dialect& d = dialect_;
    const std::string teams = is_whole_ ? "team = 5, teams = THREADS / 32;\n" : text("team = rows > 32 ? (i32)count_bits_u32(rows - 1) : 5, teams = ", d.threads, " >> team;\n    if (rows == ", d.threads, ") return;\n");
    text_ += text("// Threads t, t + rows, t + 2 rows .. have what belongs to one vector of rows: it meets in warps, then each thread goes through the\n// warps' for a row.\ntemplate <i32 WIDTH>\n", d.helper, " void ", w.block, "(",
                  w.accumulator, "* shared, ", w.accumulator, "* x, i32 rows)\n{\n", "    const i32 thread = ", d.thread, ", columns = rows * WIDTH, ", teams,
                  has_parts_ ? met_by_halves(w) : met_in_warps(w), "    ", d.barrier, ";\n",
                  "    for (i32 c = thread; c < columns; c += ", d.threads, ") {\n", "        ", w.accumulator, " all = shared[c];\n",
                  is_whole_ ? "#pragma unroll\n" : "", "        for (i32 k = 1; k < teams; k++) all = ", w.combine, "(all, shared[k * columns + c]);\n", "        shared[c] = all;\n", "    }\n", "    ", d.barrier, ";\n", "#pragma unroll\n",
                  "    for (i32 j = 0; j < WIDTH; j++) x[j] = shared[j * rows + (thread & (rows - 1))];\n", "    ", d.barrier, ";\n}\n\n");
}

}  // namespace ng::emitting
