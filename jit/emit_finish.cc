// Prints the values of a kernel for neighbouring sums of a product: operands are fetched first, so that they come while others are computed.
#include "jit/emit_finish.h"

#include "jit/emit_vectors.h"

namespace ng {
namespace emitting {
namespace {

class FinishWords final : public Words {
  public:
    FinishWords(const Kernel& kernel, int32_t buffer, const Dialect& dialect, Helpers& helpers, Numbers& numbers)
        : Words(kernel, dialect, helpers, numbers), product_(buffer) {}

    std::string expression(int32_t v) override
    {
        const Value& a = value(v);
        if (a.kind != ValueKind::Load) return Words::expression(v);
        if (a.buffer == product_) return a.type == Dtype::f32 ? "f32_bits(sums[j])" : "(i32)sums[j]";
        return decoded(text("o.v", v, "[j]"), a.type);
    }

  private:
    int32_t product_;
};

constexpr int32_t FOLDING = 6;           // about the instructions of a fold for each term

// About its instructions: divisions inside of functions have rare cases that are calls, and over these nothing overlaps.
int32_t cost_of(const Kernel& kernel, const Words& words, size_t v)
{
    constexpr int32_t DIVISION = 60;
    const Value& a = kernel.values[v];
    const std::string_view expression = a.kind == ValueKind::Map ? info(a.op).expression : "";
    const bool divides = expression.find('/') != expression.npos && !words.has_tame_form(int32_t(v));
    return weight_of(kernel, v) + (divides && is_float(a.type) ? DIVISION : 0);
}

class FinishPrinter {
  public:
    FinishPrinter(const Kernel& kernel, int32_t buffer, const Dialect& dialect, std::span<const FinishFold> folds)
        : kernel_(kernel), passes_(passes_of(kernel)), product_(buffer), folds_(folds), helpers_(dialect), words_(kernel, buffer, dialect, helpers_, numbers_) { fetch_each(); }

    std::optional<FinishSource> print();

  private:
    const Value& value(int32_t v) const { return kernel_.values[size_t(v)]; }
    bool is_wanted(size_t v, Level level) const { return passes_.wanted[v] && passes_.level[v] == level && !words_.is_inline(int32_t(v)); }
    void fetch_each();
    bool is_possible();
    bool can_be_result(const StoreTo& s) const;
    std::string define(size_t v) { return text("const ", held_name(kernel_.values[v].type), " v", v, " = ", words_.expression(int32_t(v)), ";\n"); }
    std::string rounded_by_store(int32_t v);
    std::string neighbours();
    std::string all_neighbours();
    std::string finish();
    std::string fold_functions() const;

    const Kernel& kernel_;
    Passes        passes_;
    const int32_t product_;
    std::span<const FinishFold> folds_;
    Dtype         sums_ = Dtype::f32;
    Helpers       helpers_;
    Numbers       numbers_;
    FinishWords   words_;
    FinishSource  out_;
};

// A tensor of one element comes as others do, and what is made of it with them.
void FinishPrinter::fetch_each()
{
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        const Value& a = kernel_.values[v];
        bool is_full = a.kind == ValueKind::Load;
        for (const int32_t x : a.args) is_full |= x >= 0 && passes_.level[size_t(x)] == Level::Full;
        if (is_full && passes_.level[v] == Level::Uniform) passes_.level[v] = Level::Full;
    }
}

// Products store floats that fit an f32, or the i32 that their sums are.
bool FinishPrinter::can_be_result(const StoreTo& s) const
{
    const Dtype t = value(s.value).type;
    return is_float(t) ? compute_of(t) == Dtype::f32 : t == Dtype::i32 && sums_ == Dtype::i32;
}

bool FinishPrinter::is_possible()
{
    if (passes_.has_rows) return false;
    bool is_read = false;
    for (const Value& a : kernel_.values) {
        switch (a.kind) {
        case ValueKind::Load:
            if (a.buffer == product_) sums_ = a.type, is_read = true;
            break;
        case ValueKind::Constant:
        case ValueKind::Scalar:
        case ValueKind::Length:
        case ValueKind::Map:
        case ValueKind::Convert:
        case ValueKind::Bitcast: break;
        default: return false;
        }
    }
    if (!is_read || (sums_ != Dtype::f32 && sums_ != Dtype::i32)) return false;
    const auto stores = std::span(kernel_.stores).first(kernel_.stores.size() - folds_.size());
    const auto result = std::ranges::find_if(stores, [&](const StoreTo& s) { return can_be_result(s); });
    const bool has_result = result != stores.end();
    out_.result = has_result ? int32_t(result - stores.begin()) : -1;
    return has_result || !folds_.empty();
}

// A number that the product's store rounds need not be rounded before.
std::string FinishPrinter::rounded_by_store(int32_t v)
{
    const Value& a = value(v);
    const bool is_raw = a.kind == ValueKind::Convert && compute_of(a.type) != a.type && compute_of(value(a.args[0]).type) == Dtype::f32;
    return words_.name(is_raw ? a.args[0] : v);
}

// What is computed of one of them.
std::string FinishPrinter::neighbours()
{
    std::string body;
    const size_t first_fold = kernel_.stores.size() - folds_.size();
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Full)) body += "        " + define(v);
    for (size_t s = 0; s < kernel_.stores.size(); s++) {
        const StoreTo& t = kernel_.stores[s];
        const Dtype type = value(t.value).type;
        if (s >= first_fold) body += text("        terms.of[", s - first_fold, "][j] = ", is_float(type) ? "bits_f32" : "(u32)", "(", words_.name(t.value), ");\n");
        else if (int32_t(s) == out_.result) body += text("        done[j] = ", is_float(type) ? "bits_f32" : "(u32)", "(", rounded_by_store(t.value), ");\n");
        else body += text("        s", s, ".e[j] = ", encoded(words_.name(t.value), type), ";\n");
    }
    return text("    UNROLLED for (i32 j = 0; j < COUNT; j++) {\n", body, "    }\n");
}

// Again in the language's words where tame forms do not do.
std::string FinishPrinter::all_neighbours()
{
    bool has_forms = false;
    for (size_t v = 0; v < kernel_.values.size(); v++) has_forms |= is_wanted(v, Level::Full) && words_.has_tame_form(int32_t(v));
    const std::string plain = neighbours();
    if (!has_forms) return plain;
    words_.take_tame_forms(true);
    const std::string tame = neighbours();
    words_.take_tame_forms(false);
    return text("    bool is_tame = true;\n", tame, "    if (!is_tame) {\n", plain, "    }\n");
}

std::string FinishPrinter::finish()
{
    std::string operands = "template <int COUNT>\nstruct EpilogueOperands {\n", fetch, uniform, results, puts;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        const Value& a = kernel_.values[v];
        if (is_wanted(v, Level::Uniform)) uniform += "    " + define(v);
        if (!is_wanted(v, Level::Full)) continue;
        out_.weight += cost_of(kernel_, words_, v);
        if (a.kind != ValueKind::Load || a.buffer == product_) continue;
        operands += text("    Arriving<", memory_name(a.type), ", COUNT> v", v, ";\n");
        const size_t tensor = out_.tensors.size();
        fetch += text("    source.template fetch<", tensor, ", KIND_", tensor, ", VECTOR_", tensor, ">(o.v", v, ");\n");
        out_.tensors.push_back({a.buffer, a.type, a.access});
    }
    out_.loads = int32_t(out_.tensors.size());
    const size_t first_fold = kernel_.stores.size() - folds_.size();
    for (size_t s = 0; s < kernel_.stores.size(); s++) {
        const StoreTo& t = kernel_.stores[s];
        const Dtype type = value(t.value).type;
        if (s >= first_fold) {
            out_.weight += FOLDING, out_.folds++;
            out_.tensors.push_back({t.buffer, compute_of(type), t.access});
            continue;
        }
        if (int32_t(s) == out_.result) continue;
        results += text("    Neighbours<", memory_name(type), ", COUNT> s", s, ";\n");
        puts += text("    put_neighbours<", out_.tensors.size(), ">(e, at, s", s, ");\n");
        out_.tensors.push_back({t.buffer, type, t.access});
    }
    const bool has_result = out_.result >= 0;
    return text(fold_functions(), operands, "};\ntemplate <int COUNT, class Source>\nDEVICE void fetch_operands(const Source& source, EpilogueOperands<COUNT>& o)\n{\n", fetch,
                "}\ntemplate <int COUNT>\nDEVICE void finish_sums(const Epilogue& e, const EpilogueSpot& at, const EpilogueOperands<COUNT>& o, u32 (&sums)[COUNT], EpilogueTerms<COUNT>& terms)\n{\n",
                "    const Numbers n = numbers_of<Numbers>(e);\n", has_result ? "    u32 done[COUNT];\n" : "", uniform, results, all_neighbours(),
                has_result ? "    UNROLLED for (i32 j = 0; j < COUNT; j++) sums[j] = done[j];\n" : "", puts, "}\n");
}

// How terms are folded: two of them, and many, where sums and products of floats keep what their roundings lose.
std::string FinishPrinter::fold_functions() const
{
    std::string start, two, more, total, terms;
    int32_t     pivot = -1;
    for (size_t f = 0; f < folds_.size(); f++) {
        const FinishFold& fold = folds_[f];
        terms += text(f > 0 ? ", " : "", int32_t(fold.term));
        if (fold.term == FoldTerm::Pivot) pivot = int32_t(f);
        const Dtype type = compute_of(value(kernel_.stores[size_t(fold.store)].value).type);
        const bool is_real = is_float(type), is_pair = is_real && (fold.op == Op::sum || fold.op == Op::prod) && fold.term == FoldTerm::Itself;
        const std::string bits = is_real ? "bits_f32(" : "(u32)(", taken = is_real ? "f32_bits(" : "(i32)(", when = text("    if constexpr (FOLD == ", f, ") ");
        const std::string sign = fold.op == Op::sum ? "+" : "*", name = fold.op == Op::max ? "greatest_f32(a, b)" : "least_f32(a, b)";
        start += text(when, "return ", bits, resolved(info(fold.op).start, type), ");\n");
        two += text(when, "{\n        const ", name_of(type), " a = ", taken, "x), b = ", taken, "y);\n        return ", bits,
                    is_real && (fold.op == Op::sum || fold.op == Op::prod) ? "a " + sign + " b" : is_real ? name : fold.op == Op::max ? "a > b ? a : b" : "a < b ? a : b", ");\n    }\n");
        if (!is_pair) continue;
        const std::string pair = text("        pair_f32 a;\n        a.hi = f32_bits(total.bits), a.lo = f32_bits(total.rest);\n");
        more += text(when, "{\n", pair, "        a = ", name_of(fold.op), "_f32(a, pair_of_f32(f32_bits(x)));\n        return {bits_f32(a.hi), bits_f32(a.lo)};\n    }\n");
        total += text(when, "{\n", pair, "        return bits_f32(total_f32(a));\n    }\n");
    }
    const size_t first = out_.tensors.size() - folds_.size();
    const std::string each = "template <int FOLD>\nDEVICE ";
    const std::optional<Dtype> result = out_.result >= 0 ? std::optional(value(kernel_.stores[size_t(out_.result)].value).type) : std::nullopt;
    return text("constexpr int EPILOGUE_WEIGHT = ", out_.weight, ", RESULT_BYTES = ", result ? bytes_of(*result) : 0, ", RESULT_TYPE = ", result ? int(*result) : -1, ", FOLDS = ", folds_.size(), ", FIRST_FOLD = ", first, ", FOLDED = ", folds_.empty() ? "0" : text("KIND_", first), ", PIVOT = ", pivot, ", FOLD_TERMS[] = {", terms.empty() ? "0" : terms,
                "};\ntemplate <int COUNT>\nstruct EpilogueTerms {\n    u32 of[", std::max(folds_.size(), size_t(1)), "][COUNT];\n};\n", each, "u32 fold_start()\n{\n", start, "    return 0;\n}\n", each,
                "u32 fold_two(u32 x, u32 y)\n{\n", two, "    return x;\n}\n", each, "FoldTotal fold_more(FoldTotal total, u32 x)\n{\n", more, "    return {fold_two<FOLD>(total.bits, x), 0};\n}\n", each,
                "u32 fold_total(FoldTotal total)\n{\n", total, "    return total.bits;\n}\n");
}

std::optional<FinishSource> FinishPrinter::print()
{
    if (!is_possible()) return std::nullopt;
    const std::string functions = finish();
    const std::string numbers = numbers_.finish(out_.source);
    out_.source.text = text("namespace ng::kernels {\nnamespace {\n", numbers, helpers_.printed(), functions, "}\n}\n");
    return std::move(out_);
}

}  // namespace
}  // namespace emitting

std::optional<FinishSource> emit_finish(const Kernel& kernel, int32_t buffer, const Dialect& dialect, std::span<const FinishFold> folds)
{
    return emitting::FinishPrinter(kernel, buffer, dialect, folds).print();
}

}  // namespace ng
