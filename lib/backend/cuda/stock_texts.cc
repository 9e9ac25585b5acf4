// Writes the texts of stock.def's kernels as one source for nvcc, and the table by which they are found: stock_texts SOURCE_CU TABLE_CC
#include "jit/emit.h"
#include "jit/opened.h"
#include "jit/parse.h"
#include "jit/plan.h"
#include "lib/backend/cuda/stock_key.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>

using namespace ng;
using namespace ng::cuda;

namespace {

const char* const PROGRAMS[] = {
#define STOCK(words) words,
#include "lib/backend/cuda/stock.def"
};
constexpr Dtype TYPES[] = {Dtype::f32, Dtype::f16, Dtype::bf16};
// Only what texts ask of devices matters: whether blocks of a cluster may share a row.
constexpr DeviceTraits BEFORE_CLUSTERS = {80, 108, 163 << 10}, SINCE_CLUSTERS = {90, 132, 227 << 10};
constexpr int64_t ROWS = 1031, COLUMNS = 1033;                   // any that nothing divides

struct Made { int32_t functions; bool has_clusters; };

Layout dense(const Extents& dims, Dtype type)
{
    Layout l;
    l.dtype = type, l.dims = dims, l.strides = dense_strides(dims);
    return l;
}

Plan planned(const std::string& words, Dtype type)
{
    Graph g;
    const Extents whole = {ROWS, COLUMNS}, row = {COLUMNS};
    std::vector<NodeRef> params;
    for (const Extents* dims : {&whole, &whole, &row, &row}) params.push_back(build::param(g, uint32_t(params.size()), dense(*dims, type)));
    const std::vector<std::string_view> names = {"x", "y", "v", "w"};
    const NodeRef meant = parse(g, words, names, params), root = words.starts_with("f32(") ? meant : build::cast(g, meant, type);
    Target target;
    target.layout = dense(root->dims(), root->dtype);
    return schedule(std::vector{root}, std::vector{target}, 0, Fusion::Usual);
}

// What 32 bits do not count, and long rows that vectors do not divide.
bool is_seldom(const Kernel& kernel, const LaunchClass& c)
{
    const bool has_rows = std::ranges::any_of(kernel.axes, [](const KernelAxis& a) { return !a.reduced; });
    return (c.form == Form::Points && c.is_wide) || (has_rows && c.form == Form::Walked && c.is_wide) || (c.form == Form::Held && c.is_split && c.width == 1);
}

void add(std::map<std::string, Made>& all, const Kernel& kernel, const DeviceTraits& device)
{
    const KernelFamily family(kernel, cuda_dialect(), device);
    for (size_t i = 0; i < family.classes().size(); i++) {
        if (is_seldom(kernel, family.classes()[i])) continue;
        const KernelSource source = family.source(i);
        all.try_emplace(source.text, Made{source.functions, device.compute == SINCE_CLUSTERS.compute});
    }
}

std::string with_axis(std::string words, char axis)
{
    std::ranges::replace(words, '@', axis);
    return words;
}

void add(std::map<std::string, Made>& all, const std::string& words)
{
    for (const Dtype type : TYPES)
        for (const Step& step : planned(words, type).steps) {
            const std::optional<Opened> opened = step.kernel ? open(*step.kernel) : std::nullopt;
            if (!opened) continue;
            add(all, opened->kernel, BEFORE_CLUSTERS), add(all, opened->kernel, SINCE_CLUSTERS);
        }
}

// A name for each of the text's functions, which all texts call alike.
void write(std::ostream& out, const std::string& text, const Made& made, size_t number)
{
    const auto each = [&](const auto& line) {
        for (int32_t k = 0; k < made.functions; k++) line(k == 0 ? std::string("fused") : ng::text("fused_", k), stock_name(number, k));
    };
    if (made.has_clusters) out << "#if __CUDA_ARCH__ >= 900 || !defined __CUDA_ARCH__\n";
    each([&](const std::string& name, const std::string& own) { out << "#define " << name << " " << own << "\n"; });
    out << "namespace stock_" << number << " {\n" << text << "}\n";
    each([&](const std::string& name, const std::string&) { out << "#undef " << name << "\n"; });
    if (made.has_clusters) out << "#endif\n";
}

}  // namespace

int main(int, char** argv)
{
    try {
        std::map<std::string, Made> all;
        for (const std::string words : PROGRAMS) {
            add(all, with_axis(words, '1'));
            if (words.find('@') != words.npos) add(all, with_axis(words, '0'));
        }
        std::ofstream source(argv[1]), table(argv[2]);
        source << cuda_dialect().prelude;
        std::map<StockKey, std::pair<size_t, int32_t>> entries;
        size_t number = 0;
        for (const auto& [text, made] : all) write(source, text, made, number), entries[stock_key(text)] = {number++, made.functions};
        table << "// Made by stock_texts: by which keys the texts of stock.cu are found.\n#include \"lib/backend/cuda/stock_key.h\"\n\nnamespace ng::cuda {\n\nconst StockEntry STOCK_ENTRIES[] = {\n";
        for (const auto& [key, entry] : entries) {
            table << "    {{";
            for (const uint8_t byte : key) table << int(byte) << ",";
            table << "}, " << entry.first << ", " << entry.second << "},\n";
        }
        table << "};\nconst size_t STOCK_COUNT = " << entries.size() << ";\n\n}  // namespace ng::cuda\n";
        return source.good() && table.good() && entries.size() == all.size() ? 0 : 1;
    } catch (const Error& error) {
        std::fprintf(stderr, "stock_texts: %s\n", error.text.c_str());
        return 1;
    }
}
