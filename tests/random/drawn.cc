// The list of what a large number of random programs must hold between them, each with how one is known.
#include "tests/random/drawn.h"

#include <algorithm>

namespace programs {
namespace {

struct Trait {
    const char* name;
    bool (*is_in)(const Program& p, const Table& table);
};
template <class F> bool any_input(const Program& p, F is_so) { return std::ranges::any_of(p.inputs, is_so); }
template <class F> bool any_output(const Program& p, F is_so) { return std::ranges::any_of(p.outputs, is_so); }
template <class F> bool any_length(const Program& p, F is_so) { return std::ranges::any_of(p.runs, [&](const Dims& run) { return std::ranges::any_of(run, is_so); }); }
template <class F> bool any_extent(const Program& p, F is_so)
{
    return std::ranges::any_of(p.nodes, [&](const Node& n) { return std::ranges::any_of(n.dims, [&](const Polynomial& d) { return d.is_constant() && is_so(d.constant()); }); });
}
// A reduction of this row, over so many axes at least.
bool has_places(const Program& p, const Table& table, const char* row, int axes)
{
    return std::ranges::any_of(p.nodes, [&](const Node& n) {
        if (n.form != Form::Reduce || table.rows[size_t(n.row)].name != row) return false;
        const auto rank = int(p.nodes[size_t(n.args[0])].dims.size());
        return (n.ints[0] == -1 ? rank : __builtin_popcountll(uint64_t(n.ints[0]))) >= axes;
    });
}

#define INPUT(name, condition)   {"an input that is " name, [](const Program& p, const Table&) { return any_input(p, [](const Input& in) { return condition; }); }},
#define OUTPUT(name, condition)  {"an output that is " name, [](const Program& p, const Table&) { return any_output(p, [](const Output& out) { return condition; }); }},
#define PROGRAM(name, condition) {"a program that " name, [](const Program& p, const Table&) { return condition; }},
#define PLACES(row)              {row " over several axes", [](const Program& p, const Table& table) { return has_places(p, table, row, 2); }},

const Trait TRAITS[] = {
    INPUT("a param", in.source == Input::Param)
    INPUT("a leaf", in.source == Input::Leaf)
    INPUT("a scalar of a run", in.source == Input::Scalar)
    INPUT("dense", in.lie == Lie::Dense)
    INPUT("permuted", in.lie == Lie::Permuted)
    INPUT("stepped", in.lie == Lie::Stepped)
    INPUT("flipped", in.lie == Lie::Flipped)
    INPUT("shifted", in.lie == Lie::Shifted)
    INPUT("NG_ANY", in.any_strides)
    OUTPUT("dense", out.lie == Lie::Dense)
    OUTPUT("permuted", out.lie == Lie::Permuted)
    OUTPUT("stepped", out.lie == Lie::Stepped)
    OUTPUT("flipped", out.lie == Lie::Flipped)
    OUTPUT("shifted", out.lie == Lie::Shifted)
    OUTPUT("NG_ANY", out.any_strides)
    OUTPUT("in an input's place", out.over >= 0 && !out.shift && out.lie == Lie::Dense)
    OUTPUT("in an input's memory, some rows on", out.over >= 0 && out.shift)
    OUTPUT("over an input, flipped", out.over >= 0 && out.lie == Lie::Flipped)
    OUTPUT("broadcast", out.repeat > 0)
    PROGRAM("is compiled", p.compiled)
    PROGRAM("is evaluated", !p.compiled)
    PROGRAM("is compiled and writes over an argument", p.compiled && any_output(p, [](const Output& out) { return out.over >= 0; }))
    PROGRAM("is evaluated and writes over a leaf", !p.compiled && any_output(p, [](const Output& out) { return out.over >= 0; }))
    PROGRAM("is wild", p.wild)
    PROGRAM("is not wild", !p.wild)
    PROGRAM("has one value to go on from", p.adopt)
    PROGRAM("runs twice", p.twice)
    PROGRAM("has several outputs", p.outputs.size() > 2)
    PROGRAM("writes a node twice", any_output(p, [&](const Output& out) { return std::ranges::count_if(p.outputs, [&](const Output& other) { return other.node == out.node; }) > 1; }))
    PROGRAM("has no length", p.runs[0].empty())
    PROGRAM("has one length", p.runs[0].size() == 1)
    PROGRAM("has two lengths", p.runs[0].size() == 2)
    PROGRAM("has two equal lengths", std::ranges::any_of(p.runs, [](const Dims& run) { return run.size() == 2 && run[0] == run[1]; }))
    PROGRAM("runs three times with lengths", p.runs.size() == 3 && !p.runs[0].empty())
    PROGRAM("has a length of 0", any_length(p, [](int64_t l) { return l == 0; }))
    PROGRAM("has a length of 1", any_length(p, [](int64_t l) { return l == 1; }))
    PROGRAM("has a long length", any_length(p, [](int64_t l) { return l >= 1000; }))
    PROGRAM("lends heads of longer tensors", p.heads)
    PROGRAM("has room above its lengths", p.slack > 0 && !p.runs[0].empty())
    PROGRAM("has an extent of 0", any_extent(p, [](int64_t d) { return d == 0; }))
    PROGRAM("has an extent of 1", any_extent(p, [](int64_t d) { return d == 1; }))
    PROGRAM("has an extent beyond a block", any_extent(p, [](int64_t d) { return d > 1024; }))
    PROGRAM("runs on one thread", p.world == World::One)
    PROGRAM("runs on three threads", p.world == World::Three)
    PROGRAM("runs without threads", p.world == World::NoThreads)
    PROGRAM("is deterministic", p.world == World::Deterministic)
    PLACES("argmin")
    PLACES("argmax")
};
#undef INPUT
#undef OUTPUT
#undef PROGRAM
#undef PLACES

constexpr size_t FORMS = size_t(Form::count_), COUNT_OF_TRAITS = std::size(TRAITS);

}  // namespace

// In this order: rows, forms, types of inputs, types of nodes that are computed, traits.
Drawn::Drawn(const Table& table) : table_(table), met_(table.rows.size() + FORMS + 2 * size_t(element_count()) + COUNT_OF_TRAITS) {}

void Drawn::add(const Program& program)
{
    const size_t forms = table_.rows.size(), inputs = forms + FORMS, nodes = inputs + size_t(element_count()), traits = nodes + size_t(element_count());
    const auto number_of = [](ng_dtype t) { return size_t(&element(t) - &element_at(0)); };
    for (const Node& n : program.nodes) {
        meet(forms + size_t(n.form), true);
        if (n.row >= 0) meet(size_t(n.row), true);
        if (n.form != Form::Input) meet(nodes + number_of(n.type), true);
    }
    for (const Input& in : program.inputs) meet(inputs + number_of(in.type), true);
    for (size_t i = 0; i < COUNT_OF_TRAITS; i++) meet(traits + i, TRAITS[i].is_in(program, table_));
}

std::vector<std::string> Drawn::missing() const
{
    std::vector<std::string> names;
    for (const Row& row : table_.rows) names.push_back(row.name);
    for (size_t i = 0; i < FORMS; i++) names.push_back(form_name(Form(i)));
    for (const char* whose : {"an input of ", "a computed node of "})
        for (int i = 0; i < element_count(); i++) names.push_back(std::string(whose) + element_at(i).name);
    for (const Trait& t : TRAITS) names.push_back(t.name);
    std::vector<std::string> left;
    for (size_t i = 0; i < names.size(); i++)
        if (!met_[i]) left.push_back(names[i]);
    return left;
}

}  // namespace programs
