// ngtool explain and dot: what a compiled expression consists of, as tables and as a Graphviz picture.
#include "ngtool.h"
#include "json_reader.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace ngtool {
namespace {

struct Compiled {
    Context context;
    Program program;
    std::string json;
};

// Compiles with an argument for every NAME=type[shape] and NAME=FILE.npy, in their order, and constants for numbers.
Compiled compile_words(const Arguments& arguments, const char* command)
{
    if (arguments.words.empty())
        throw Failure(text("%s wants an expression: ngtool %s \"softmax(x, 1)\" x=f32[64,128]", command, command), 2);
    std::vector<Binding> bindings = read_bindings(arguments.words, 1);
    Compiled compiled{ open_context(arguments), nullptr, "" };
    const Scope scope(ng_scope_create(compiled.context.get(), 0));
    std::vector<ng_expr*> values;
    uint32_t next = 0;
    int64_t least = 0;                                                      // lengths are -1, -2 ..
    for (Binding& binding : bindings) {
        if (binding.kind == Binding::Kind::File) binding.shape = shape_of_file(binding.value);
        ng_expr* value = constant_of(scope.get(), binding);
        if (!value) value = ng_tag(ng_param(scope.get(), next++, &binding.shape), binding.name.c_str());
        values.push_back(value);
        for (int32_t axis = 0; axis < binding.shape.ndim; axis++) least = std::min(least, binding.shape.dims[axis]);
    }
    ng_expr* root = parse_expression(scope.get(), arguments.words[0], bindings, values);

    const int64_t most = arguments.number("--length", 4096, INT64_MAX);
    const std::vector<int64_t> lengths(size_t(std::clamp<int64_t>(-least, 0, 64)), most);
    ng_compile_desc desc = sized<ng_compile_desc>();
    desc.length_max = lengths.data();
    desc.nlength = uint32_t(lengths.size());
    ng_prog* program = nullptr;
    ng_error fault{};
    check(ng_compile(compiled.context.get(), &desc, &root, 1, &program, &fault), fault);
    compiled.program.reset(program);
    check(ng_prog_wait(program, UINT64_MAX, &fault), fault);
    compiled.json = explained(program);
    return compiled;
}

std::string bytes_text(double bytes)
{
    const char* const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++) bytes /= 1024;
    return text(unit && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

std::string node_type(const Json& node) { return node.text_of("dtype") + node.text_of("shape"); }

// Left-aligned columns, two spaces apart.
class Table {
public:
    void row(std::vector<std::string> cells)
    {
        widths_.resize(std::max(widths_.size(), cells.size()));
        for (size_t i = 0; i < cells.size(); i++) widths_[i] = std::max(widths_[i], cells[i].size());
        rows_.push_back(std::move(cells));
    }
    void print() const
    {
        for (const auto& cells : rows_) {
            std::string line = " ";
            for (size_t i = 0; i < cells.size(); i++) line += " " + cells[i] + std::string(widths_[i] - cells[i].size() + 1, ' ');
            line.erase(line.find_last_not_of(' ') + 1);
            printf("%s\n", line.c_str());
        }
    }

private:
    std::vector<size_t> widths_;
    std::vector<std::vector<std::string>> rows_;
};

void print_ports(const ng_prog* program)
{
    ng_prog_info info = sized<ng_prog_info>();
    ng_error fault{};
    check(ng_prog_get_info(program, &info, &fault), fault);
    Table table;
    for (uint32_t i = 0; i < info.nargs + info.nout; i++) {
        ng_shape shape = sized<ng_shape>();
        const char* name = "";
        if (ng_prog_port(program, i, &shape, &name, &fault) < 0) continue;
        const bool is_argument = i < info.nargs;
        table.row({ is_argument ? text("argument %u", i) : text("output %u", i - info.nargs), shape_text(shape), name });
    }
    table.print();
    printf("  %u kernel%s, %s moved, %.4g operations, workspace %s, for %s\n\n", info.kernels, info.kernels == 1 ? "" : "s",
           bytes_text(double(info.moved_bytes)).c_str(), double(info.flops), bytes_text(double(info.workspace_bytes)).c_str(), info.arch);
}

const Json* find_id(const std::vector<Json>& list, double id)
{
    for (const Json& item : list) {
        const Json* found = item.find("id");
        if (found && found->number == id) return &item;
    }
    return nullptr;
}

// The operations of a step, each once, in their order.
std::string operations_of(const Json& step, const std::vector<Json>& nodes)
{
    std::vector<std::string> names;
    for (const Json& id : step.list("nodes")) {
        const Json* node = find_id(nodes, id.number);
        const std::string name = node ? node->text_of("op") : "?";
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    std::string result;
    for (const std::string& name : names) result += (result.empty() ? "" : " ") + name;
    return result;
}

std::string ids_text(const std::vector<Json>& ids)
{
    std::string result;
    for (const Json& id : ids) result += (result.empty() ? "b" : " b") + id.text();
    return result.empty() ? "nothing" : result;
}

// Every member of node that is not one of the usual ones, as name=value.
std::string details_of(const Json& node)
{
    static const char* const usual[] = { "id", "op", "dtype", "shape", "args", "name" };
    std::string result;
    for (size_t i = 0; i < node.names.size(); i++)
        if (std::find(std::begin(usual), std::end(usual), node.names[i]) == std::end(usual))
            result += " " + node.names[i] + "=" + node.items[i].text();
    return result;
}

// "matmul", "fused: add relu".
std::string step_title(const Json& step, const std::vector<Json>& nodes)
{
    const std::string kind = step.text_of("kind"), operations = operations_of(step, nodes);
    return operations.empty() || operations == kind ? kind : kind + ": " + operations;
}

// "compiled; bound by memory", then a line a text.
void print_code(const Json& step, bool has_source)
{
    if (!step.find("tier")) return;
    const std::string bound = step.text_of("bound"), list = step.text_of("list_bytes");
    printf("    %s%s%s", step.text_of("tier").c_str(), bound.empty() ? "" : "; bound by ", bound.c_str());
    if (const Json *memory = step.find("memory_us"), *arithmetic = step.find("arithmetic_us"); memory && arithmetic)
        printf(": bytes take %.3g us at least, instructions about %.3g us", memory->number, arithmetic->number);
    printf("%s%s\n", list.empty() ? "" : "; interpreter's list of bytes: ", list.c_str());
    Table table;
    if (!step.list("texts").empty()) table.row({ "  for", "state", "registers", "spills", "shared", "source", "code", "key" });
    const auto bytes = [](const Json& text, const char* name) { const Json* found = text.find(name); return bytes_text(found ? found->number : 0); };
    for (const Json& text : step.list("texts")) {
        const double source = double(text.text_of("source").size());
        table.row({ "  " + text.text_of("for"), text.text_of("state"), text.text_of("registers"), bytes(text, "local_bytes"), bytes(text, "shared_bytes"),
                    bytes_text(source), bytes(text, "code_bytes"), text.text_of("key").substr(0, 12) });
    }
    table.print();
    if (!has_source) return;
    for (const Json& text : step.list("texts"))
        if (const std::string source = text.text_of("source"); !source.empty()) printf("\n%s\n", source.c_str());
}

void print_step(const Json& step, size_t number, const std::vector<Json>& nodes, bool has_source)
{
    const Json *moved = step.find("moved_bytes"), *flops = step.find("flops");
    printf("  step %zu  %s\n", number, step_title(step, nodes).c_str());
    printf("    reads %s, writes %s", ids_text(step.list("reads")).c_str(), ids_text(step.list("writes")).c_str());
    if (moved && flops) printf("; %s moved, %.4g operations", bytes_text(moved->number).c_str(), flops->number);
    putchar('\n');
    if (step.find("why")) printf("    %s\n", step.text_of("why").c_str());
    if (step.find("split")) printf("    split: %s\n", step.text_of("split").c_str());
    print_code(step, has_source);
    for (const Json& line : step.list("tape")) printf("      %s\n", line.text().c_str());
}

std::string quoted(const std::string& plain)
{
    std::string result;
    for (const char c : plain) {
        if (c == '\n') { result += "\\n"; continue; }
        if (c == '"' || c == '\\') result += '\\';
        result += c;
    }
    return "\"" + result + "\"";
}

void print_dot_node(const Json& node, const char* indent)
{
    const std::string name = node.text_of("name"), op = node.text_of("op");
    const bool is_input = node.list("args").empty();
    std::string label = (name.empty() || name == "-" ? "" : name + ": ") + op + "\n" + node_type(node) + details_of(node);
    printf("%sn%s [label=%s%s];\n", indent, node.text_of("id").c_str(), quoted(label).c_str(), is_input ? ", style=filled, fillcolor=\"#e8eef7\"" : "");
}

}

std::string explained(const ng_prog* program)
{
    std::string json;
    size_t bytes = 0;
    ng_error fault{};
    check(ng_prog_explain(program, nullptr, &bytes, &fault), fault);
    json.resize(bytes);
    check(ng_prog_explain(program, json.data(), &bytes, &fault), fault);
    json.resize(std::min(json.find('\0'), json.size()));
    return json;
}

int run_explain(const Arguments& arguments)
{
    const Compiled compiled = compile_words(arguments, "explain");
    if (arguments.has("--json")) return printf("%s\n", compiled.json.c_str()), 0;
    const Json root = read_json(compiled.json);
    const auto &nodes = root.list("nodes"), &steps = root.list("steps"), &buffers = root.list("buffers");
    print_ports(compiled.program.get());

    Table graph, memory;
    graph.row({ "node", "operation", "type", "of", "name" });
    for (const Json& node : nodes) {
        std::string of;
        for (const Json& id : node.list("args")) of += (of.empty() ? "%" : " %") + id.text();
        graph.row({ "%" + node.text_of("id"), node.text_of("op") + details_of(node), node_type(node), of, node.text_of("name") });
    }
    memory.row({ "buffer", "kind", "type", "size", "name" });
    for (const Json& buffer : buffers) {
        const Json* bytes = buffer.find("bytes");
        memory.row({ "b" + buffer.text_of("id"), buffer.text_of("kind"), buffer.text_of("dtype"), bytes_text(bytes ? bytes->number : 0),
                     buffer.text_of("name") });
    }
    puts("The graph");
    graph.print();
    puts("\nThe schedule");
    for (size_t i = 0; i < steps.size(); i++) print_step(steps[i], i, nodes, arguments.has("--source"));
    puts("\nMemory");
    memory.print();
    const Json* truncated = root.find("truncated");
    if (truncated && truncated->number != 0) puts("\n  (There is more: the library wrote the beginning alone.)");
    return 0;
}

int run_dot(const Arguments& arguments)
{
    const Compiled compiled = compile_words(arguments, "dot");
    const Json root = read_json(compiled.json);
    const auto &nodes = root.list("nodes"), &steps = root.list("steps");
    printf("digraph ng {\n  label=%s; labelloc=t; rankdir=TB;\n", quoted(arguments.words[0]).c_str());
    puts("  node [shape=box, fontname=\"sans-serif\", fontsize=10];");

    // A box a step; a node that several steps compute is drawn in the first.
    std::vector<double> drawn;
    const auto is_drawn = [&](double id) { return std::find(drawn.begin(), drawn.end(), id) != drawn.end(); };
    for (size_t i = 0; i < steps.size(); i++) {
        const std::string label = text("step %zu: ", i) + step_title(steps[i], nodes);
        printf("  subgraph cluster_%zu {\n    label=%s; style=rounded;\n", i, quoted(label).c_str());
        for (const Json& id : steps[i].list("nodes")) {
            const Json* node = find_id(nodes, id.number);
            if (!node || is_drawn(id.number)) continue;
            print_dot_node(*node, "    ");
            drawn.push_back(id.number);
        }
        puts("  }");
    }
    for (const Json& node : nodes) {
        const Json* id = node.find("id");
        if (id && !is_drawn(id->number)) print_dot_node(node, "  ");
        for (const Json& argument : node.list("args"))
            printf("  n%s -> n%s;\n", argument.text().c_str(), node.text_of("id").c_str());
    }
    puts("}");
    return 0;
}

}
