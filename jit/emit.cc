// Prints a fused kernel as a loop over points, or over rows whose points a block's threads share.
#include "jit/emit.h"

#include "jit/emit_parts.h"
#include "jit/error.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ng {
namespace emitting {

std::string Numbers::add(const std::string& name, NumberField field)
{
    if (!names_.insert(name).second) return "n." + name;
    if (lines_.empty() || !lines_.back().is_open || lines_.back().type != field.type) lines_.push_back({field.type, {}, {}});
    lines_.back().names.push_back(name);
    lines_.back().fields.push_back(std::move(field));
    return "n." + name;
}

std::string Numbers::finish(KernelSource& source)
{
    std::ranges::stable_sort(lines_, std::greater<>(), [](const Line& line) { return bytes_of(line.type); });
    std::string out = "typedef struct {\n";
    for (Line& line : lines_) {
        out += "    " + memory_name(line.type) + " ";
        for (size_t k = 0; k < line.names.size(); k++) {
            line.fields[k].offset = source.number_bytes;
            source.number_bytes += uint32_t(bytes_of(line.type));
            out += (k ? ", " : "") + line.names[k];
            source.numbers.push_back(std::move(line.fields[k]));
        }
        out += ";\n";
    }
    source.number_bytes = (source.number_bytes + 7) / 8 * 8;
    return out + "} Numbers;\n";
}

namespace {

// Writes the body of a kernel, its helpers and its numbers coming along.
class Printer {
  public:
    Printer(const Kernel& kernel, const Dialect& dialect)
        : kernel_(kernel), dialect_(dialect), passes_(passes_of(kernel, false)), helpers_(dialect), words_(kernel, dialect, helpers_, numbers_)
    {
        for (size_t a = 0; a < kernel.axes.size(); a++) (kernel.axes[a].reduced ? reduced_ : kept_).push_back(int32_t(a));
    }
    KernelSource print();

  private:
    void line(const std::string& s) { body_ += std::string(size_t(depth_) * 4, ' ') + s + "\n"; }
    void open(const std::string& s) { line(s + " {"), depth_++; }
    void close() { depth_--, line("}"); }
    bool is_wanted(size_t v, Level level) const { return passes_.wanted[v] && passes_.level[v] == level && kernel_.values[v].kind != ValueKind::Fold; }
    void define(size_t v);
    void define_uniform();
    void indices(const std::vector<int32_t>& axes, const std::string& number);
    void points();
    void rows();
    void row(int32_t pass);
    void walk(int32_t pass);
    void row_stores();
    std::string head() const;

    const Kernel&  kernel_;
    const Dialect& dialect_;
    Passes         passes_;
    Helpers        helpers_;
    Numbers        numbers_;
    Words          words_;
    std::vector<int32_t> kept_, reduced_;
    std::string    body_;
    int            depth_ = 1;
};

void Printer::define(size_t v)
{
    const auto i = int32_t(v);
    if (!words_.is_inline(i)) line(text("const ", held_name(kernel_.values[v].type), " v", v, " = ", words_.expression(i), ";"));
}

void Printer::define_uniform()
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Uniform)) define(v);
}

// The axes' indices from a row-major number.
void Printer::indices(const std::vector<int32_t>& axes, const std::string& of)
{
    if (axes.empty()) return;
    if (axes.size() == 1) return line(text("const i64 i", axes[0], " = ", of, ";"));
    numbers_.end_line();
    line("i64 rest = " + of + ";");
    for (size_t k = axes.size(); k-- > 1;) {
        const std::string extent = numbers_.length(text("extent", axes[k]), kernel_.axes[size_t(axes[k])].extent);
        line(text("const i64 i", axes[k], " = rest % ", extent, ";"));
        line("rest /= " + extent + ";");
    }
    line(text("const i64 i", axes[0], " = rest;"));
}

// Without rows: one loop, and in it every value, then every store.
void Printer::points()
{
    const Dialect& d = dialect_;
    define_uniform();
    open(text("for (i64 point = (i64)", d.block, " * ", d.threads, " + ", d.thread, "; point < n.points; point += (i64)", d.blocks, " * ", d.threads, ")"));
    indices(kept_, "point");
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Full)) define(v);
    for (size_t s = 0; s < kernel_.stores.size(); s++) line(words_.store(s));
    close();
}

// What a row has before this pass, the passes before it being done.
void Printer::row(int32_t pass)
{
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Row) && passes_.need[v] == pass) define(v);
}

// One walk over a row's points: folds, full stores.
void Printer::walk(int32_t pass)
{
    struct Folding { size_t value; FoldWords words; };
    std::vector<Folding> folds;
    for (size_t v = 0; v < kernel_.values.size(); v++) {
        const Value& a = kernel_.values[v];
        if (a.kind != ValueKind::Fold || !passes_.wanted[v] || passes_.need[v] != pass + 1) continue;
        folds.push_back({v, helpers_.fold(a.op, kernel_.values[size_t(a.args[0])].type)});
        line(text(folds.back().words.accumulator, " a", v, " = ", folds.back().words.start, ";"));
    }
    open("for (i64 point = lane; point < points; point += lanes)");
    indices(reduced_, "point");
    for (size_t v = 0; v < kernel_.values.size(); v++)
        if (is_wanted(v, Level::Full) && passes_.wanted[v] >> pass & 1) define(v);
    for (const Folding& f : folds) {
        const std::string a = "a" + number(int64_t(f.value));
        line(text(a, " = ", f.words.combine, "(", a, ", ", f.words.lift(words_.name(kernel_.values[f.value].args[0]), "point"), ");"));
    }
    for (size_t s = 0; s < kernel_.stores.size(); s++)
        if (!passes_.stores[s].row && passes_.stores[s].pass == pass) line(words_.store(s));
    close();
    for (const Folding& f : folds) {
        const std::string all = text(f.words.block, "((", dialect_.shared_pointer, f.words.accumulator, "*)shared, a", f.value, ", n.per_block)");
        line(text("const ", held_name(kernel_.values[f.value].type), " v", f.value, " = ", f.words.finish(all), ";"));
    }
}

// By one thread a row, once all others have read what they need of it: before the last folds came together, or now.
void Printer::row_stores()
{
    if (std::ranges::none_of(passes_.stores, [](const Passes::Placed& p) { return p.row; })) return;
    bool has_met = false;
    for (size_t v = 0; v < kernel_.values.size(); v++)
        has_met |= passes_.wanted[v] && kernel_.values[v].kind == ValueKind::Fold && passes_.need[v] == passes_.count;
    if (!has_met) line(std::string(dialect_.barrier) + ";");
    open("if (is_row && lane == 0)");
    for (size_t s = 0; s < kernel_.stores.size(); s++)
        if (passes_.stores[s].row) line(words_.store(s));
    close();
}

void Printer::rows()
{
    const Dialect& d = dialect_;
    const bool folds = std::ranges::any_of(kernel_.values, [](const Value& v) { return v.kind == ValueKind::Fold; });
    if (folds) line(text(d.shared, "u64 shared[2 * ", BLOCK_THREADS, "];"));
    line(text("const i32 lane = ", d.thread, " / n.per_block, lanes = ", d.threads, " / n.per_block;"));
    define_uniform();
    open(text("for (i64 first = (i64)", d.block, " * n.per_block; first < n.rows; first += (i64)", d.blocks, " * n.per_block)"));
    line(text("const i64 row = first + ", d.thread, " % n.per_block;"));
    line("const bool is_row = row < n.rows;");
    line("const i64 points = is_row ? n.points : 0;");
    // Threads beyond the last row read what it reads, and have no points.
    if (!kept_.empty()) line("const i64 here = is_row ? row : n.rows - 1;");
    indices(kept_, "here");
    for (int32_t pass = 0; pass < passes_.count; pass++) row(pass), walk(pass);
    row(passes_.count);
    row_stores();
    close();
}

std::string Printer::head() const
{
    const auto axes = [](size_t n) { return text(n, n == 1 ? " axis" : " axes"); };
    if (!passes_.has_rows) return text("// Every point of ", axes(kept_.size()), ".\n");
    return text("// Rows over ", axes(kept_.size()), ", points over ", axes(reduced_.size()), ", read ", passes_.count, passes_.count == 1 ? " time.\n" : " times.\n");
}

KernelSource Printer::print()
{
    KernelSource source;
    source.has_rows = passes_.has_rows;
    const std::vector<int32_t>& walked = passes_.has_rows ? reduced_ : kept_;
    for (const int32_t a : walked) source.points = source.points * kernel_.axes[size_t(a)].extent;
    if (passes_.has_rows) {
        for (const int32_t a : kept_) source.rows = source.rows * kernel_.axes[size_t(a)].extent;
        numbers_.length("rows", source.rows);
        numbers_.length("points", source.points);
        rows();
        numbers_.add("per_block", {NumberKind::PerBlock, Dtype::i32, 0, 0, 0});
    } else {
        source.rows = source.points;
        numbers_.length("points", source.points);
        points();
    }
    const bool may_restrict = std::ranges::none_of(kernel_.stores, [](const StoreTo& s) { return s.late; });
    const std::string numbers = numbers_.finish(source), pointers = words_.parameters(may_restrict);
    for (const Value& v : kernel_.values) source.buffers = std::max(source.buffers, v.buffer + 1);
    for (const StoreTo& s : kernel_.stores) source.buffers = std::max(source.buffers, s.buffer + 1);
    source.text = text(head(), numbers, "\n", helpers_.printed(), dialect_.kernel, " fused(", pointers, "const Numbers n)\n{\n", body_, "}\n");
    return source;
}

}  // namespace
}  // namespace emitting

KernelSource emit(const Kernel& kernel, const Dialect& dialect) { return emitting::Printer(kernel, dialect).print(); }

namespace {

// n / extent for 0 <= n below half of what the type holds is the high half of 2 n * factor, shifted: factor is 2^(bits - 1)
// times the least power of two that is not below the extent, over the extent, rounded up (Granlund & Montgomery 1994).
struct Divisor { uint64_t factor; int32_t shift; };
Divisor divisor_of(uint64_t extent, int bits)
{
    const int32_t shift = extent <= 1 ? 0 : 64 - std::countl_zero(extent - 1);
    if (extent <= 1) return {uint64_t(1) << (bits - 1), 0};
    __extension__ using Wide = unsigned __int128;
    const Wide scale = Wide(1) << (bits - 1 + shift);
    return {uint64_t((scale + extent - 1) / extent), shift};
}

int64_t integer_of(const NumberField& f, std::span<const int64_t> variables, const Geometry& geometry, uint64_t scratch)
{
    switch (f.kind) {
    case NumberKind::Length: return f.extent.value(variables);
    case NumberKind::Factor: return int64_t(divisor_of(uint64_t(f.extent.value(variables)), 8 * bytes_of(f.type)).factor);
    case NumberKind::Shift: return divisor_of(uint64_t(f.extent.value(variables)), 64).shift;
    case NumberKind::PerBlock: return geometry.cuts[0];
    case NumberKind::Cut: return geometry.cuts[size_t(f.bits)];
    case NumberKind::Scratch: return int64_t(scratch);
    default: return f.bits;
    }
}

}  // namespace

void fill_numbers(const KernelSource& source, std::span<const int64_t> variables, const void* scalars, const Geometry& geometry, uint64_t scratch, void* out)
{
    std::memset(out, 0, source.number_bytes);
    for (const NumberField& f : source.numbers) {
        char* at = static_cast<char*>(out) + f.offset;
        const auto bytes = size_t(bytes_of(f.type));
        const int64_t value = integer_of(f, variables, geometry, scratch);
        // The low bytes: hosts are little-endian, as devices are.
        if (f.kind == NumberKind::Scalar) std::memcpy(at, static_cast<const char*>(scalars) + f.bits, bytes);
        else std::memcpy(at, &value, bytes);
    }
}

void fill_numbers(const KernelSource& source, std::span<const int64_t> variables, const void* scalars, int32_t per_block, void* out)
{
    Geometry geometry;
    geometry.cuts[0] = per_block;
    fill_numbers(source, variables, scalars, geometry, 0, out);
}

}  // namespace ng
