// Prints a kernel without folds as a function of one element: what all of a line share is computed before, once for a thread.
#include "jit/emit_operand.h"

#include "jit/emit_parts.h"

namespace ng {
namespace emitting {
namespace {

// Small integers and codes of 8 bits are halves exactly, of either kind.
bool is_exact(Dtype from) { return bytes_of(from) == 1 && !is_bool(from); }
bool is_half(Dtype t) { return t == Dtype::f16 || t == Dtype::bf16; }

// Whether the value is an element of 8 bits as a float, which is exact.
bool is_exact_float(const Value& a, const Value& element) { return a.kind == ValueKind::Convert && is_exact(element.type) && (is_half(a.type) || a.type == Dtype::f32); }

class OperandWords final : public Words {
  public:
    OperandWords(const Kernel& kernel, int32_t element, const std::vector<bool>& is_element, Helpers& helpers, Numbers& numbers, const Dialect& dialect)
        : Words(kernel, dialect, helpers, numbers), element_(element), is_element_(is_element) {}

    // Of a line: fields of what is there for it.
    std::string name(int32_t v) override { return (is_inline(v) || is_element_[size_t(v)] ? "" : "line.") + Words::name(v); }
    std::string expression(int32_t v) override
    {
        const Value& a = value(v);
        if (v == element_) return "x";
        if (a.args[0] == element_ && is_exact_float(a, value(element_))) return "(f32)" + name(element_);
        return Words::expression(v);
    }

  private:
    int32_t element_;
    const std::vector<bool>& is_element_;
};

class OperandPrinter {
  public:
    OperandPrinter(const Kernel& kernel, int32_t line, const Dialect& dialect) : kernel_(kernel), line_(line), dialect_(dialect), helpers_(dialect) {}
    std::optional<OperandSource> print();

  private:
    const Value& value(int32_t v) const { return kernel_.values[size_t(v)]; }
    bool is_of_line(const Value& load) const;
    bool find_element();
    void find_wanted();
    void functions(std::string& all);
    int32_t result() const;
    bool is_cast() const;
    std::string raw_name() const;

    const Kernel&     kernel_;
    const int32_t     line_;
    const Dialect&    dialect_;
    Helpers           helpers_;
    Numbers           numbers_;
    int32_t           element_ = -1;             // the load
    std::vector<bool> is_element_, is_wanted_;   // by value: follows from it; is read at all
    OperandSource     out_;
};

bool OperandPrinter::is_of_line(const Value& load) const
{
    const Access& access = kernel_.accesses[size_t(load.access)];
    for (size_t a = 0; a < access.strides.size(); a++)
        if (int32_t(a) != line_ && !access.strides[a].is(0)) return false;
    return true;
}

bool OperandPrinter::find_element()
{
    is_element_.assign(kernel_.values.size(), false);
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        const Value& a = kernel_.values[v];
        switch (a.kind) {
        case ValueKind::Load:
            if (is_of_line(a)) continue;
            if (element_ >= 0) return false;
            element_ = int32_t(v), is_element_[v] = true;
            continue;
        case ValueKind::Constant:
        case ValueKind::Scalar:
        case ValueKind::Length:
        case ValueKind::Map:
        case ValueKind::Convert: break;
        default: return false;
        }
        for (const int32_t arg : a.args)
            if (arg >= 0 && is_element_[size_t(arg)]) is_element_[v] = true;
    }
    return element_ >= 0 && is_element_[size_t(kernel_.stores[0].value)];
}

// A cast to a half is done where halves are packed.
int32_t OperandPrinter::result() const
{
    const int32_t v = kernel_.stores[0].value;
    const Value& a = value(v);
    return a.kind == ValueKind::Convert && compute_of(value(a.args[0]).type) == Dtype::f32 ? a.args[0] : v;
}

bool OperandPrinter::is_cast() const
{
    const Value& a = value(kernel_.stores[0].value);
    return kernel_.stores[0].value == element_ || (a.kind == ValueKind::Convert && a.args[0] == element_);
}

// The element's type: where nothing looks at it but as that float it is one from the first, since small integers have a faster way there than a conversion.
std::string OperandPrinter::raw_name() const
{
    bool is_float = is_exact(value(element_).type) && result() != element_;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        for (const int32_t arg : kernel_.values[v].args)
            if (is_wanted_[v] && arg == element_) is_float &= is_exact_float(kernel_.values[v], value(element_));
    return is_float ? "f32" : held_name(value(element_).type);
}

void OperandPrinter::find_wanted()
{
    is_wanted_.assign(kernel_.values.size(), false);
    is_wanted_[size_t(result())] = true;
    for (size_t v = kernel_.values.size(); v-- > 0;)
        for (const int32_t arg : kernel_.values[v].args)
            if (arg >= 0 && is_wanted_[v]) is_wanted_[size_t(arg)] = true;
}

void OperandPrinter::functions(std::string& all)
{
    OperandWords words(kernel_, element_, is_element_, helpers_, numbers_, dialect_);
    std::string fields, fetch, body;
    for (size_t i = 0; i < kernel_.values.size(); i++) {
        const auto   v = int32_t(i);
        const Value& a = value(v);
        if (!is_wanted_[i] || words.is_inline(v)) continue;
        const std::string type = v == element_ ? raw_name() : held_name(a.type);
        if (is_element_[i]) {
            body += text("    const ", type, " v", v, " = ", words.expression(v), ";\n");
            out_.weight += is_cast() ? 0 : info(a.op).arity > 0 ? 2 : 1;
            continue;
        }
        fields += text("    ", type, " v", v, ";\n");
        std::string from;
        if (a.kind == ValueKind::Load) {
            from = decoded(text("((const ", memory_name(a.type), "*)t.tensor[", out_.tensors.size(), "].data)[at * t.tensor[", out_.tensors.size(), "].line]"), a.type);
            out_.tensors.push_back({a.buffer, a.type, a.access});
        } else {
            from = words.expression(v);
        }
        fetch += text("    line.v", v, " = ", from, ";\n");
    }
    all = text("using Raw = ", raw_name(), ";\nconstexpr i32 RAW_TYPE = ", int(value(element_).type), ";\nconstexpr bool IS_CAST = ", is_cast() ? "true" : "false",
               ", IS_BF16 = ", out_.multiplied == Dtype::bf16 ? "true" : "false", ";\nstruct Line {\n", fields,
               "};\ntemplate <class Text>\nDEVICE void fetch_line(const Text& t, const Numbers& n, i64 at, Line& line)\n{\n", fetch,
               "}\nDEVICE f32 made(const Numbers& n, const Line& line, Raw x)\n{\n", body, "    return ", is_cast() ? "(f32)" : "", words.name(result()), ";\n}\n");
}

std::optional<OperandSource> OperandPrinter::print()
{
    if (kernel_.stores.size() != 1 || !find_element()) return std::nullopt;
    const Value &stored = value(kernel_.stores[0].value), &element = value(element_);
    const Dtype from = element.type;
    const bool is_known = is_half(from) || from == Dtype::f32 || is_exact(from);
    if (!is_half(stored.type) || !is_known) return std::nullopt;
    find_wanted();
    out_.buffer = element.buffer, out_.access = element.access, out_.type = from, out_.multiplied = stored.type;
    std::string all;
    functions(all);
    const std::string numbers = numbers_.finish(out_.source);
    out_.source.text = text("namespace ng::kernels::operand {\nnamespace {\n", numbers, helpers_.printed(), all, "}\n}\n");
    return std::move(out_);
}

}  // namespace
}  // namespace emitting

std::optional<OperandSource> emit_operand(const Kernel& kernel, int32_t line, const Dialect& dialect)
{
    return emitting::OperandPrinter(kernel, line, dialect).print();
}

}  // namespace ng
