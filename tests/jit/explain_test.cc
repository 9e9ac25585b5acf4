// Explanations: JSON that any reader takes, whatever tags say, with nodes, buffers and steps that agree.
#include "jit/cost.h"
#include "jit/explain.h"
#include "jit/parse.h"
#include "jit/snapshot.h"

#include <doctest/doctest.h>

#include <cctype>
#include <cstring>

using namespace ng;

namespace {

// Whether a text is one JSON value (RFC 8259) in UTF-8; counts objects that have a given key on the way.
class Validator {
  public:
    explicit Validator(const std::string& s) : at_(s.c_str()), end_(at_ + s.size()) {}
    bool valid() { return value(0) && (blank(), at_ == end_); }

  private:
    void blank() { while (at_ != end_ && strchr(" \t\r\n", *at_)) at_++; }
    bool take(char c) { return blank(), at_ != end_ && *at_ == c && (at_++, true); }
    bool word(const char* w) { return size_t(end_ - at_) >= strlen(w) && !strncmp(at_, w, strlen(w)) && (at_ += strlen(w), true); }
    bool digits() { const char* from = at_; while (at_ != end_ && isdigit(uint8_t(*at_))) at_++; return at_ != from; }
    bool number()
    {
        if (*at_ == '-') at_++;
        if (at_ != end_ && *at_ == '0') at_++;
        else if (!digits()) return false;
        if (at_ != end_ && *at_ == '.' && (at_++, !digits())) return false;
        if (at_ == end_ || (*at_ != 'e' && *at_ != 'E')) return true;
        at_++;
        if (at_ != end_ && (*at_ == '+' || *at_ == '-')) at_++;
        return digits();
    }
    bool string()
    {
        if (!take('"')) return false;
        for (; at_ != end_ && *at_ != '"'; at_++) {
            if (uint8_t(*at_) < 0x20) return false;
            if (uint8_t(*at_) >= 0x80) {                           // a lead byte and as many that follow
                const int more = uint8_t(*at_) >= 0xf0 ? 3 : uint8_t(*at_) >= 0xe0 ? 2 : uint8_t(*at_) >= 0xc2 ? 1 : -1;
                if (more < 0 || end_ - at_ <= more) return false;
                for (int i = 0; i < more; i++)
                    if ((uint8_t(*++at_) & 0xc0) != 0x80) return false;
            }
            if (*at_ != '\\') continue;
            if (++at_ == end_ || !strchr("\"\\/bfnrtu", *at_)) return false;
            for (int i = 0; *at_ == 'u' && i < 4; i++)
                if (end_ - at_ < 2 + i || !isxdigit(uint8_t(at_[1 + i]))) return false;
        }
        return at_ != end_ && (at_++, true);
    }
    bool list(char open, char close, int depth)
    {
        if (!take(open)) return false;
        if (take(close)) return true;
        do {
            if (open == '{' && (blank(), !string() || !take(':'))) return false;
            if (!value(depth + 1)) return false;
        } while (take(','));
        return take(close);
    }
    bool value(int depth)
    {
        blank();
        if (at_ == end_ || depth > 20) return false;
        if (*at_ == '{') return list('{', '}', depth);
        if (*at_ == '[') return list('[', ']', depth);
        if (*at_ == '"') return string();
        return word("true") || word("false") || word("null") || number();
    }
    const char *at_, *end_;
};

bool is_json(const std::string& s) { return Validator(s).valid(); }

size_t occurrences(const std::string& s, const std::string& part)
{
    size_t n = 0;
    for (size_t at = s.find(part); at != std::string::npos; at = s.find(part, at + 1)) n++;
    return n;
}

Layout layout(Dtype t, Extents dims)
{
    Layout l;
    l.dtype = t, l.dims = std::move(dims), l.strides = dense_strides(l.dims);
    return l;
}

struct Room {
    Graph graph;
    std::vector<std::string_view> names;
    std::vector<NodeRef> values;

    Room()
    {
        param("a", Dtype::f32, {64, 32});
        param("row", Dtype::f32, {32});
        param("half", Dtype::f16, {64, 32});
        param("long", Dtype::f32, {Extent::variable(0), 32});
        param("x", Dtype::f32, {2, 4, 9, 9});
        param("w", Dtype::f32, {8, 4, 3, 3});
        param("key", Dtype::u64, {});
        param("at", Dtype::i64, {5});
        names.push_back("s"), values.push_back(build::scalar(graph, Dtype::f32, 4));
    }
    void param(const char* name, Dtype t, Extents dims)
    {
        names.push_back(name);
        values.push_back(build::tag(graph, build::param(graph, uint32_t(values.size()), layout(t, std::move(dims))), name));
    }
    NodeRef operator()(std::string_view text) { return parse(graph, text, names, values); }
};

struct Explained {
    Plan        plan;
    std::string json;

    explicit Explained(std::span<const NodeRef> roots, int32_t alias = -1)
    {
        std::vector<Target> targets(roots.size());
        for (size_t j = 0; j < roots.size(); j++) targets[j].layout = layout(roots[j]->dtype, roots[j]->dims()), targets[j].alias_param = alias;
        plan = schedule(roots, targets, 1);
        std::vector<int64_t> variables = {1000};
        for (const auto* ports : {&plan.args, &plan.outs})
            for (const Port& p : *ports)
                if (p.hidden)
                    for (const Extent& e : dense_strides(p.dims)) variables.push_back(e.value(variables));
        json = explain(plan, roots, variables);
    }
    explicit Explained(const NodeRef& root, int32_t alias = -1) : Explained(std::span(&root, 1), alias) {}
    bool has(const std::string& part) const { return json.find(part) != std::string::npos; }
};

}  // namespace

REGISTER_EXCEPTION_TRANSLATOR(const Error& e) { return e.text.c_str(); }

TEST_CASE("explain: every kind of step is JSON, and every step and buffer is in it")
{
    for (const char* const t : {"a + row * 2", "softmax(long, 1)", "sum(a)", "argmax(a, 1)", "a @ permute(a, [1, 0])", "relu(conv(x, w, pad = 1))",
                                "pool(x, max, window = 3)", "take(a, at, 0)", "put(a, at, row, 0, sum)", "scan(a, 1, sum)", "argsort(a, 1)", "concat([a, a * 2], 0)",
                                "segment(a, at, sum)", "random(normal, f32, [64, 32], key)", "cast_stochastic(a, f16, 3, key)", "f16(half + 1)", "bitcast(a, u32)",
                                "a[1:, ::-1]", "long[3:] * s", "iota(f32, [3, 4], 1) + length(-1)", "a * inf - nan", "keep(exp(a)) * sum(exp(a), 0)", "view(a, [2, 2], [3, 1], 2)"}) {
        INFO(std::string(t));
        Room room;
        const Explained e(room(t));
        INFO(e.json);
        CHECK(is_json(e.json));
        CHECK(occurrences(e.json, "\"why\": ") == e.plan.steps.size());
        CHECK(occurrences(e.json, "\"kind\": ") == e.plan.steps.size() + e.plan.buffers.size());
        CHECK(e.has("\"truncated\": false"));
    }
}

TEST_CASE("explain: a fused step says what it reads, writes, computes and costs")
{
    Room room;
    const NodeRef y = build::tag(room.graph, room("tanh(a + row) * 2"), "y");
    const Explained e(y);
    INFO(e.json);
    REQUIRE(e.plan.steps.size() == 1);
    CHECK(e.has("\"kind\": \"fused\""));
    CHECK(e.has("\"space\": [[64, \"kept\"], [32, \"kept\"]]"));
    CHECK(e.has("\"ops\": {\"add\": 1, \"mul\": 1, \"tanh\": 1}"));
    CHECK(e.has("f32 = load b"));
    const Cost cost = cost_of(e.plan, std::vector<int64_t>{1000});
    CHECK(occurrences(e.json, "\"moved_bytes\": " + std::to_string(cost.moved_bytes)) == 2);     // the total, and its one step
    CHECK(cost.moved_bytes == 4 * (64 * 32 + 32 + 64 * 32));
    CHECK(e.has("\"kind\": \"argument\", \"index\": 0, \"dtype\": \"f32\", \"bytes\": 8192, \"name\": \"a\""));
    CHECK(e.has("\"kind\": \"output\", \"index\": 0, \"dtype\": \"f32\", \"bytes\": 8192, \"name\": \"y\""));
}

TEST_CASE("explain: what lengths of 2^61 and more move is the greatest number, not what is left of it")
{
    Graph g;
    const NodeRef x = build::param(g, 0, layout(Dtype::f32, {Extent::variable(0)}));
    for (const NodeRef& y : {build::map(g, Op::add, {x, build::weak(g, 1)}), build::concat(g, std::vector{x, x, x}, 0)}) {
        const Explained e(y);
        for (const int64_t most : {int64_t(1) << 61, INT64_MAX}) {
            CHECK(cost_of(e.plan, std::vector<int64_t>{most}).moved_bytes == UINT64_MAX);
            CHECK(is_json(explain(e.plan, {&y, 1}, std::vector<int64_t>{most})));
        }
    }
}

TEST_CASE("explain: steps know the nodes that they compute")
{
    Room room;
    const NodeRef y = room("softmax(relu(a @ permute(a, [1, 0])) + sum(a), 1)");
    const Explained e(y);
    INFO(e.json);
    const Snapshot graph({&y, 1});
    for (uint32_t i = 0; i < graph.size(); i++) {
        const Op op = graph[i].op;
        if (!is_map(op) && !is_fold(op) && !is_call(op)) continue;
        INFO(name_of(op), " is node ", i);
        bool found = false;
        for (size_t at = e.json.find("\"nodes\": [", e.json.find("\"steps\"")); at != std::string::npos; at = e.json.find("\"nodes\": [", at + 1)) {
            const std::string list = ", " + e.json.substr(at + 10, e.json.find(']', at) - at - 10) + ",";
            found = found || list.find(", " + std::to_string(i) + ",") != std::string::npos;
        }
        CHECK(found);
    }
}

TEST_CASE("explain: an output over its argument may end in a copy, which says why")
{
    Room room;
    const Explained e(room("a[::-1] + 1"), 0);
    CHECK(is_json(e.json));
    CHECK(e.has("\"kind\": \"copy\""));
    CHECK(e.has("copied there last"));
}

TEST_CASE("explain: shapes that lengths decide are texts, greatest sizes are numbers")
{
    Room room;
    const Explained e(room("long[1:] * 2"));
    INFO(e.json);
    CHECK(is_json(e.json));
    CHECK(e.has("\"shape\": [\"-1\", 32]"));
    CHECK(e.has("\"lengths\": [1000]"));
    CHECK(e.has("\"bytes\": 128000"));
}

TEST_CASE("explain: whatever a tag says, the text stays JSON in UTF-8")
{
    for (const std::string name : {"quote \" backslash \\ newline \n tab \t bell \a", "\xff\xfe", "\xc3", "\xe2\x82", "\xf0\x9f\x98\x80 and \xed\xa0\x80", "\xc0\x80", "</script>", "\x7f"}) {
        Room room;
        const Explained e(build::tag(room.graph, room("a + 1"), name.c_str()));
        INFO(e.json);
        CHECK(is_json(e.json));
    }
}

TEST_CASE("explain: a program of very many nodes is cut short, and says so")
{
    Graph g;
    NodeRef x = build::param(g, 0, layout(Dtype::f32, {16}));
    for (int i = 0; i < 60000; i++) x = build::map(g, i % 2 ? Op::sin : Op::cos, {x});
    const Explained e(x);
    CHECK(is_json(e.json));
    CHECK(e.has("\"truncated\": true"));
    CHECK(occurrences(e.json, "\"id\": ") < 40000);
    CHECK(e.json.size() < 8 << 20);
}

TEST_CASE("explain: what a backend tells of its code stands in the step, and a split says between which loop nests")
{
    Room room;
    Explained e(room("scan(a * 2, 1, sum) + sum(a, 1)"));
    REQUIRE(e.plan.steps.size() >= 3);
    std::vector<StepCode> codes(e.plan.steps.size());
    for (StepCode& c : codes) c.tier = "shipped";
    codes.back() = {"compiled \"well\"", 1e3, 1e9, 320, {{"points by 4 of 2", "compiled", "00ff", "line\n", 8000, 40, 16, 1024, 256}}};
    const std::vector<int64_t> variables = {1000};
    e.json = explain(e.plan, std::vector<NodeRef>{room("scan(a * 2, 1, sum) + sum(a, 1)")}, variables, codes);
    INFO(e.json);
    CHECK(is_json(e.json));
    CHECK(occurrences(e.json, "\"tier\": \"shipped\"") == codes.size() - 1);
    CHECK(e.has("\"tier\": \"compiled \\\"well\\\"\", \"bound\": \"memory\", \"memory_us\": "));
    CHECK(e.has("\"arithmetic_us\": "));
    CHECK(e.has(", \"list_bytes\": 320"));
    CHECK(e.has("{\"for\": \"points by 4 of 2\", \"state\": \"compiled\", \"key\": \"00ff\", \"code_bytes\": 8000, \"registers\": 40, \"local_bytes\": 16, "
                "\"shared_bytes\": 1024, \"threads\": 256, \"source\": \"line\\u000a\"}"));
    CHECK(e.has("scan is a call of its own"));
    CHECK(e.has("another loop nest"));
}
