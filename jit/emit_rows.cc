// Rows of ops.def as helper functions: their expressions said in one type, and how folds of blocks come together.
#include "jit/emit_parts.h"

#include "jit/error.h"

#include <cctype>
#include <charconv>
#include <cmath>

namespace ng::emitting {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Where the parenthesis that opens at `open` closes.
size_t closing(std::string_view e, size_t open)
{
    int depth = 0;
    for (size_t i = open; i < e.size(); i++) {
        depth += e[i] == '(' ? 1 : e[i] == ')' ? -1 : 0;
        if (depth == 0) return i;
    }
    throw Error(NG_E_BUG, text("ops.def: a parenthesis of ", e, " stays open"));
}

// K(v): a literal where v is one, else a cast.
std::string constant(std::string_view v, Dtype t)
{
    double value = 0;
    const auto [end, fault] = std::from_chars(v.data(), v.data() + v.size(), value);
    const std::string type = name_of(t);
    if (fault != std::errc() || end != v.data() + v.size()) return "(" + type + ")(" + resolved(v, t) + ")";
    if (is_float(t)) return literal(value, t);
    if (is_bool(t)) return value != 0 ? "true" : "false";
    return value < 0 ? "(" + type + ")" + std::string(v) : std::string(v);
}

// Signed integers wrap: these rows are computed on unsigned ones (contract N3).
bool wraps(Op op)
{
    return op == Op::add || op == Op::sub || op == Op::mul || op == Op::square || op == Op::neg || op == Op::sum || op == Op::prod;
}
std::string operand_type(Op op, Dtype t)
{
    if (!is_integer(t) || !wraps(op)) return name_of(t);
    return bytes_of(t) == 8 ? "u64" : "u32";
}
std::string result(Op op, Dtype t)
{
    const std::string e = resolved(info(op).expression, t);
    return is_integer(t) && wraps(op) ? "(" + std::string(name_of(t)) + ")(" + e + ")" : e;
}

std::string function_name(Op op, Dtype t) { return text("op_", name_of(op), "_", name_of(t)); }

}  // namespace

std::string literal(double value, Dtype t)
{
    char digits[64];
    const auto end = t == Dtype::f32 ? std::to_chars(digits, digits + sizeof digits, float(value)).ptr : std::to_chars(digits, digits + sizeof digits, value).ptr;
    std::string s(digits, end);
    if (s.find_first_of(".e") == std::string::npos) s += ".0";
    return t == Dtype::f32 ? s + "f" : s;
}

std::string resolved(std::string_view e, Dtype t)
{
    std::string out;
    for (size_t i = 0; i < e.size();) {
        size_t end = i;
        while (end < e.size() && is_word(e[end])) end++;
        const std::string_view word = e.substr(i, end - i);
        const bool is_call = end < e.size() && e[end] == '(';
        if (word.empty()) {
            out += e[i++];
        } else if (is_call && (word == "K" || word == "F")) {
            const size_t close = closing(e, end);
            const std::string_view inner = e.substr(end + 1, close - end - 1);
            out += word == "K" ? constant(inner, t) : text(inner, "_", name_of(t));
            i = close + 1;
        } else {
            out += word == "T" ? std::string(name_of(t)) : word == "LOWEST" || word == "HIGHEST" ? text(word, "_", name_of(t)) : std::string(word);
            i = end;
        }
    }
    return out;
}

FoldWords fold_words(Op op, Dtype operand)
{
    const Dtype t = compute_of(operand);
    const std::string name = name_of(op), type = name_of(t), start = resolved(info(op).start, t);
    FoldWords w{type, start, function_name(op, t), "block_" + name + "_" + type, FoldWords::Kind::Plain, t, op == Op::sum, {}, {}};
    if (op == Op::argmin || op == Op::argmax) {
        w.kind = FoldWords::Kind::Best, w.accumulator = "best_" + type, w.combine = name + "_of_" + type;
    } else if (is_float(t) && (op == Op::sum || op == Op::prod)) {
        w.kind = FoldWords::Kind::Pair, w.accumulator = "pair_" + type, w.combine = name + "_" + type;
    }
    w.start = w.lift(start, "-1");
    return w;
}

std::string FoldWords::lift(const std::string& value, const std::string& position) const
{
    const std::string t = name_of(type);
    return kind == Kind::Pair ? "pair_of_" + t + "(" + value + ")" : kind == Kind::Best ? "best_of_" + t + "(" + value + ", " + position + ")" : value;
}
std::string FoldWords::finish(const std::string& accumulated) const
{
    return kind == Kind::Pair ? text("total_", name_of(type), "(", accumulated, ")") : kind == Kind::Best ? accumulated + ".at" : accumulated;
}

// On one line where it fits.
void Helpers::print(const std::string& signature, const std::string& result)
{
    const bool is_short = signature.size() + result.size() < 112;
    text_ += text(dialect_.helper, " ", signature, is_short ? " { return " : "\n{\n    return ", result, is_short ? "; }\n\n" : ";\n}\n\n");
}

std::string Helpers::map(Op op, Dtype t)
{
    const std::string name = function_name(op, t);
    if (!names_.insert(name).second) return name;
    const OpInfo& row = info(op);
    const std::string operand = operand_type(op, t), first = op == Op::where ? "bool" : operand;
    std::string signature = text(row.result == Result::Bool ? "bool" : name_of(t), " ", name, "(", first, " x");
    for (int k = 1; k < row.arity; k++) signature += text(", ", operand, k == 1 ? " y" : " z");
    print(signature + ")", result(op, t));
    return name;
}

FoldWords Helpers::fold(Op op, Dtype operand)
{
    const FoldWords w = fold_words(op, operand);
    if (!names_.insert(w.block).second) return w;
    if (w.kind != FoldWords::Kind::Pair) combine(w, op);
    if (w.kind == FoldWords::Kind::Best) best(w, op);
    block(w);
    return w;
}

// The row itself; sums and products of floats are the prelude's.
void Helpers::combine(const FoldWords& w, Op op)
{
    const std::string operand = operand_type(op, w.type);
    print(text(name_of(w.type), " ", function_name(op, w.type), "(", operand, " x, ", operand, " y)"), result(op, w.type));
}

// A value and where it is, -1: nowhere yet. What the row chooses wins, the first of equals; one NaN equals another.
void Helpers::best(const FoldWords& w, Op op)
{
    const std::string t = name_of(w.type), a = w.accumulator, h = dialect_.helper;
    if (names_.insert(a).second)
        text_ += text("// A value and where it is, -1: nowhere.\ntypedef struct {\n    ", t, " value;\n    i64 at;\n} ", a, ";\n", h, " ", a, " best_of_", t, "(", t, " value, i64 at)\n{\n    ", a,
                      " r;\n    r.value = value;\n    r.at = at;\n    return r;\n}\n\n");
    text_ += text("// The first of equals; one NaN equals another.\n", h, " ", a, " ", w.combine, "(", a, " x, ", a, " y)\n{\n",
                  "    const ", t, " chosen = ", function_name(op, w.type), "(y.value, x.value);\n",
                  "    const bool is_tie = x.value == y.value || (x.value != x.value && y.value != y.value);\n",
                  "    const bool is_y = is_tie ? y.at < x.at : chosen == y.value || (chosen != chosen && y.value != y.value);\n",
                  "    return x.at < 0 || (y.at >= 0 && is_y) ? y : x;\n}\n\n");
}

// Threads t, t + rows, t + 2 rows .. hold what belongs to row t: it meets as a tree, the same one each time.
void Helpers::block(const FoldWords& w)
{
    const Dialect& d = dialect_;
    text_ += text("// Threads t, t + rows, t + 2 rows .. have what belongs to row t: it meets as a tree.\n", d.helper, " ", w.accumulator, " ", w.block, "(", d.shared_pointer, w.accumulator, "* shared, ", w.accumulator, " x, i32 rows)\n{\n",
                  "    const i32 thread = ", d.thread, ";\n",
                  "    shared[thread] = x;\n",
                  "    ", d.barrier, ";\n",
                  "    for (i32 reach = ", d.threads, " / 2; reach >= rows; reach /= 2) {\n",
                  "        if (thread < reach) shared[thread] = ", w.combine, "(shared[thread], shared[thread + reach]);\n",
                  "        ", d.barrier, ";\n",
                  "    }\n",
                  "    const ", w.accumulator, " r = shared[thread % rows];\n",
                  "    ", d.barrier, ";\n",
                  "    return r;\n}\n\n");
}

}  // namespace ng::emitting
