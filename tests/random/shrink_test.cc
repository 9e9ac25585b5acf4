// A row that is pretended to be wrong: a program that has it is shrunk to little more, and printed so that ng_parse reads it.
#include "tests/random/draw.h"
#include "tests/random/report.h"

#include <doctest/doctest.h>

#include <sstream>

namespace {

using namespace programs;

struct Told {
    Shrunk      shrunk;
    std::string text, first;
    size_t      nodes;                             // before it was shrunk
};

// The first program of seed 1 that fails with this pretended.
Told told_of(const Session& session, const Table& table, uint64_t from)
{
    for (uint64_t number = from; number < from + 3000; number++) {
        const Program p = drawn_program(table, Dice(1 + number * 0x9e3779b97f4a7c15u).word());
        Verdict v = tried(session, table, p);
        if (v.fault.empty() || p.nodes.size() < 6) continue;
        const std::string first = v.fault;
        Told told{shrunk(session, table, p, std::move(v)), "", first, p.nodes.size()};
        told.text = report(1, number, first, told.shrunk);
        return told;
    }
    FAIL(session.pretended, " is in no program that fails");
    return {};
}

// "p0 f32 [-1, 4], s0 f64, n1 the length -1": what the names of a text stand for.
struct Names {
    explicit Names(ng_scope* scope, std::string comment)
    {
        for (size_t at = 0, depth = 0; at < comment.size(); at++) {
            depth += comment[at] == '[', depth -= comment[at] == ']';
            if (!depth && comment[at] == ',') comment[at] = '\n';
        }
        std::istringstream lines(comment);
        for (std::string line; std::getline(lines, line);) {
            std::istringstream words(line);
            std::string name, type, rest;
            words >> name >> type;
            std::getline(words, rest);
            values.push_back(value(scope, name, type, rest));
            names += (names.empty() ? "" : ",") + name;
        }
    }
    static ng_expr* value(ng_scope* scope, const std::string& name, const std::string& type, const std::string& rest)
    {
        if (type == "the") return ng_length(scope, std::stoll(rest.substr(rest.rfind(' '))));
        ng_shape d{};
        d.size = sizeof d;
        for (int i = 0; i < element_count(); i++)
            if (element_at(i).name == type || (type == "bool" && element_at(i).code == NG_BOOL)) d.dtype = element_at(i).code;
        REQUIRE_MESSAGE(d.dtype, name, " ", type);
        if (name[0] == 's') return ng_scalar(scope, d.dtype, uint32_t(std::stoul(name.substr(1))));
        std::string numbers = rest.substr(rest.find('[') + 1);
        for (char& c : numbers)
            if (c == ',' || c == ']') c = ' ';
        std::istringstream dims(numbers);
        for (int64_t n; dims >> n;) d.dims[d.ndim++] = n;
        return ng_param(scope, uint32_t(std::stoul(name.substr(1))), &d);
    }
    std::string names;
    std::vector<ng_expr*> values;
};

// What the report ends with, names in a comment before it where there are any, is what ng_parse reads.
void read_text(const std::string& report)
{
    const size_t line = report.rfind("\n  output of node ");
    REQUIRE(line != std::string::npos);
    const std::string last = report.substr(report.find('\n', line + 1) + 1);
    const size_t head = last.starts_with("# ") ? last.find('\n') + 1 : 0;
    ng_scope* const scope = ng_scope_create(nullptr, 0);
    const Names names(scope, head ? last.substr(2, head - 3) : "");
    ng_expr* const e = ng_parse(scope, last.c_str() + head, names.names.c_str(), names.values.data(), uint32_t(names.values.size()));
    ng_shape d{};
    d.size = sizeof d;
    ng_error error{};
    CHECK_MESSAGE(ng_expr_shape(e, &d, &error) == NG_OK, error.text);
    ng_scope_release(scope);
}

}  // namespace

TEST_CASE("shrinking: what is left of a faulty program is the wrong operation and its operands, as a text that ng_parse reads")
{
    const Table table;
    Session session("cpu");
    for (const char* wrong : {"add", "tanh", "where", "sum", "argmax", "softmax", "cast", "slice", "concat", "take", "matmul", "scan"}) {
        session.pretended = wrong;
        for (const uint64_t from : {0u, 5000u}) {
            const Told told = told_of(session, table, from);
            INFO(told.text);
            const Program& p = told.shrunk.program;
            size_t operations = 0;
            for (const Node& n : p.nodes) operations += n.form != Form::Input && n.form != Form::Constant;
            CHECK(operations == 1);
            CHECK(p.nodes.size() <= 5);
            CHECK(p.nodes.size() < told.nodes);
            CHECK(p.outputs.size() == 1);
            CHECK(p.runs.size() == 1);
            CHECK(told.shrunk.verdict.fault != "");
            CHECK(told.text.find("  shrunk:   " + told.shrunk.verdict.fault) != std::string::npos);
            CHECK(told.text.find("  at first: " + told.first) != std::string::npos);
            read_text(told.text);
            for (const Input& in : p.inputs) CHECK(count_of(values_of(in.dims, p.runs[0])) <= 8);
        }
    }
}

TEST_CASE("shrinking: the same programs are right where nothing is pretended")
{
    const Table table;
    const Session session("cpu");
    for (uint64_t number = 0; number < 200; number++) CHECK(tried(session, table, drawn_program(table, Dice(1 + number * 0x9e3779b97f4a7c15u).word())).fault == "");
}
