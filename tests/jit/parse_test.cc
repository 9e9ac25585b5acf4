// What texts mean: precedence, words, slices, faults with their columns, and texts written from nodes read back.
#include "jit/grad.h"
#include "jit/lex.h"
#include "jit/parse.h"

#include <doctest/doctest.h>

#include <array>
#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstring>

using namespace ng;

namespace {

// A graph with values of many kinds, under the names that to_text gives them.
struct Room {
    Graph graph;
    std::vector<std::string_view> names;
    std::vector<NodeRef> values;

    Room()
    {
        const Extent n = Extent::variable(0);
        param("p0", Dtype::f32, {4, 3});
        param("p1", Dtype::f32, {3});
        param("p2", Dtype::i32, {4, 3});
        param("p3", Dtype::f16, {4, 3});
        param("p4", Dtype::f32, {n, 3});
        param("p5", Dtype::f32, {2, 4, 9, 9});
        param("p6", Dtype::f32, {8, 4, 3, 3});
        param("p7", Dtype::u64, {});
        param("p8", Dtype::bool_, {4, 1});
        param("p9", Dtype::i64, {5});
        give("s4", build::scalar(graph, Dtype::f32, 4));
        give("n1", build::length(graph, n));
    }
    void give(std::string_view name, NodeRef value) { names.push_back(name), values.push_back(std::move(value)); }
    void param(std::string_view name, Dtype t, Extents dims)
    {
        Layout l;
        l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
        give(name, build::param(graph, uint32_t(values.size()), l));
    }
    NodeRef operator()(std::string_view text) { return parse(graph, text, names, values); }
    NodeRef at(std::string_view name) const { return values[size_t(std::ranges::find(names, name) - names.begin())]; }
    // What reading the text throws; status NG_OK: nothing.
    Error fault(std::string_view text)
    {
        try {
            (*this)(text);
        } catch (const Error& e) {
            return e;
        }
        return Error(NG_OK, "");
    }
};

double number(const NodeRef& n)
{
    REQUIRE(n->op == Op::constant);
    return is_float(n->dtype) ? std::bit_cast<double>(n->value) : double(n->value);
}

std::string repeated(std::string_view part, size_t bytes)
{
    std::string s;
    while (s.size() + part.size() <= bytes) s += part;
    return s;
}

}  // namespace

TEST_CASE("precedence: texts are grouped as Python groups them")
{
    // as written | with every pair of parentheses
    const std::pair<const char*, const char*> TABLE[] = {
        {"p0 + p1 * p0", "p0 + (p1 * p0)"},
        {"p0 - p1 - p0", "(p0 - p1) - p0"},
        {"p0 / p1 * p0", "(p0 / p1) * p0"},
        {"p0 // p1 % p0", "(p0 // p1) % p0"},
        {"-p0 ** 3", "-(p0 ** 3)"},
        {"p0 ** -p1 ** p0", "p0 ** (-(p1 ** p0))"},
        {"p0 ** p1 ** p0", "p0 ** (p1 ** p0)"},
        {"-p0 * p1", "(-p0) * p1"},
        {"p0 * -p1", "p0 * (-p1)"},
        {"- -p0", "-(-p0)"},
        {"~p2 & p2", "(~p2) & p2"},
        {"p2 << 1 + 1", "p2 << 2"},
        {"p2 & p2 << 1", "p2 & (p2 << 1)"},
        {"p2 ^ p2 & 3", "p2 ^ (p2 & 3)"},
        {"p2 | p2 ^ 3", "p2 | (p2 ^ 3)"},
        {"p2 == p2 | 3", "p2 == (p2 | 3)"},
        {"not p0 == p1", "not (p0 == p1)"},
        {"not p2 and p8", "(not p2) and p8"},
        {"p2 or p8 and p0", "p2 or (p8 and p0)"},
        {"p2 and p8 or p0", "(p2 and p8) or p0"},
        {"p0 < p1 <= 2", "(p0 < p1) and (p1 <= 2)"},
        {"1 < p0 < p1 < 3", "((1 < p0) and (p0 < p1)) and (p1 < 3)"},
        {"p0 + 1 < p1 * 2", "(p0 + 1) < (p1 * 2)"},
        {"p3 @ permute(p3, [1, 0]) * 2", "(p3 @ permute(p3, [1, 0])) * 2"},
        {"-p0[1:]", "-(p0[1:])"},
        {"+p0", "p0"},
        {"not not p8", "not (not p8)"},
        {"# a comment; with = signs\np0 # and another\n + p1", "p0 + p1"},
    };
    Room room;
    for (const auto& [words, grouped] : TABLE) {
        const char* const text = words;          // clang before 16 has no structured binding in CAPTURE
        CAPTURE(text);
        CHECK(room(text) == room(grouped));
    }
    CHECK(room("p0 - p1 - p0") != room("p0 - (p1 - p0)"));
    CHECK(room("-p0 ** 3") != room("(-p0) ** 3"));
    CHECK(room("p2 | p2 ^ 3") != room("(p2 | p2) ^ 3"));
}

TEST_CASE("operators: each builds its operation")
{
    Room room;
    const NodeRef x = room.at("p2");
    room.give("a", x), room.give("b", room("reshape(p2 + 7, [4, 3])"));
    const NodeRef b = room.values.back();
    for (const Operator& o : BINARY) {
        if (o.op == Op::matmul) continue;
        const std::string text = std::string("a ") + o.symbol + " b";
        CAPTURE(text);
        CHECK(room(text) == build::map(room.graph, o.op, {x, b}));
    }
    CHECK(room("a @ permute(b, [1, 0])") == build::matmul(room.graph, x, build::permute(room.graph, b, std::array<int32_t, 2>{1, 0}), 0));
    for (const Operator& o : PREFIX) CHECK(room(std::string(o.symbol) + "a") == build::map(room.graph, o.op, {x}));
}

TEST_CASE("words: every map and reduction of the table is called by its name")
{
    Room room;
    const NodeRef x = room.at("p0"), i = room.at("p2");
    for (int k = 0; k < OPS; k++) {
        const Op op = Op(k);
        const OpInfo& o = info(op);
        CAPTURE(o.name);
        if (o.kind == Class::Node) {
            CHECK(find_op(o.name) == Op::count_);
            continue;
        }
        CHECK(find_op(o.name) == op);
        const char* p = o.domain == Domain::Bits ? "p2" : "p0";
        const NodeRef v = o.domain == Domain::Bits ? i : x;
        std::string text = std::string(o.name) + "(" + p;
        for (int a = 1; a < o.arity && o.kind == Class::Map; a++) text += std::string(", ") + p;
        if (o.kind == Class::Map) {
            CHECK(room(text + ")") == build::map(room.graph, op, std::vector<NodeRef>(o.arity, v)));
        } else if (o.kind == Class::Norm) {
            CHECK(room(text + ", 1)") == build::norm(room.graph, op, v, 2));
            CHECK(room(text + ")") == build::norm(room.graph, op, v, NG_ALL));
        } else {
            CHECK(room(text + ", -1)") == build::reduce(room.graph, op, v, 2, NG_KEEP));
            CHECK(room(text + ", [0])") == build::reduce(room.graph, op, v, 1, NG_KEEP));
            if (op != Op::argmin && op != Op::argmax) CHECK(room(text + ", [-1, 0])") == build::reduce(room.graph, op, v, 3, NG_KEEP));
            CHECK(room(text + ")") == build::reduce(room.graph, op, v, NG_ALL, 0));
            CHECK(room(text + ")")->rank() == 0);
        }
    }
    CHECK(find_op("") == Op::count_);
    CHECK(find_op("zzz") == Op::count_);
    for (int t = 0; t < DTYPES; t++) CHECK(room(std::string(name_of(Dtype(t))) + "(p0 * 3)")->dtype == Dtype(t));
}

TEST_CASE("numbers: literals are weak, and are read in no locale")
{
    Room room;
    std::setlocale(LC_ALL, "de_DE.UTF-8");
    const std::pair<const char*, double> TABLE[] = {
        {"12", 12}, {"0x1F", 31}, {"0.5", 0.5}, {".5", 0.5}, {"5.", 5}, {"1e-5", 1e-5}, {"1.5E+3", 1500}, {"-3", -3}, {"2 ** 10", 1024},
        {"7 // 2", 3}, {"-7 // 2", -4}, {"7 / 2", 3.5}, {"1 - 0.75", 0.25}, {"inf", INFINITY}, {"-inf", -INFINITY}, {"true", 1}, {"false", 0},
        {"-9223372036854775808", -0x1p63}, {"5e-324", 5e-324}};
    for (const auto& [words, value] : TABLE) {
        const char* const text = words;
        CAPTURE(text);
        CHECK(number(room(text)) == value);
    }
    std::setlocale(LC_ALL, "C");
    CHECK(std::isnan(number(room("nan"))));
    CHECK(room("2")->weak);
    CHECK(room("2")->dtype == Dtype::i64);
    CHECK(room("2.0")->dtype == Dtype::f64);
    CHECK(room("true")->dtype == Dtype::bool_);
    CHECK(room("u64(0xffffffffffffffff)")->value == -1);
    CHECK(room("f16(p3) + 1")->dtype == Dtype::f32);
    CHECK(room("p2 + 1")->dtype == Dtype::i32);
    CHECK(room("p2 + 1.0")->dtype == Dtype::f32);
}

TEST_CASE("slices: NumPy's shapes")
{
    Room room;
    const std::pair<const char*, const char*> TABLE[] = {
        {"p0[1:-1, ::2]", "[2, 2]"}, {"p0[0]", "[3]"}, {"p0[:, -1]", "[4]"}, {"p0[None]", "[1, 4, 3]"}, {"p0[..., None]", "[4, 3, 1]"},
        {"p0[:, None, 0]", "[4, 1]"}, {"p0[..., -1]", "[4]"}, {"p0[1, 2]", "[]"}, {"p0[::-1]", "[4, 3]"}, {"p0[3:0:-2]", "[2, 3]"},
        {"p0[9:]", "[0, 3]"}, {"p0[-9:2]", "[2, 3]"}, {"p5[0, ..., 1:3]", "[4, 9, 2]"}, {"p0[...]", "[4, 3]"}, {"p0[1:][1:]", "[2, 3]"},
        {"p4[:, 0]", "[-1]"}, {"p4[-1]", "[3]"}, {"p4[None, :, None]", "[1, -1, 1, 3]"},
        {"p4[::-1]", "[-1, 3]"}};
    for (const auto& [words, dims] : TABLE) {
        const char* const text = words;
        CAPTURE(text);
        CHECK(text_of(room(text)->dims()) == dims);
    }
    CHECK(room("p4[1:-1]")->dims() == Extents{Extent::variable(0) - Extent(2), 3});
    CHECK(room("p0[1]") == build::reshape(room.graph, build::slice(room.graph, room.at("p0"), 0, 1, 2, 1), {3}));
    CHECK(room("p0[1:2, :]") == build::slice(room.graph, room.at("p0"), 0, 1, 2, 1));
    CHECK(room("p0[:]") == room.at("p0"));
}

TEST_CASE("names: the caller's win over words, definitions too, and the last definition counts")
{
    Room room;
    room.give("sum", room.at("p1")), room.give("inf", room.at("p0")), room.give("f32", room.at("p2"));
    CHECK(room("sum + 1") == room("p1 + 1"));
    CHECK(room("inf * 2") == room("p0 * 2"));
    CHECK(room("f32 // 2") == room("p2 // 2"));
    CHECK(room("max = max(p0, 1); max - 1") == room("max(p0, 1) - 1"));
    CHECK(room("m = p0; m = m * m; m = m + 1; m") == room("p0 * p0 + 1"));
    CHECK(room.fault("sum(p0)").at == 0);
    std::string many = "d0 = p0;";
    for (int i = 1; i < 500; i++) many += "d" + std::to_string(i) + " = d" + std::to_string(i - 1) + " + p1;";
    CHECK(room(many + "d250 - d250") == room(many + "d250 - d250"));
    CHECK(room(many + "d0") == room.at("p0"));
    CHECK(room("sin(sin(p0)) * sin(p0)")->arg(0)->arg(0) == room("sin(p0)"));
}

TEST_CASE("names: the list is split, and what cannot be a name is refused")
{
    CHECK(split_names("", 0).empty());
    CHECK(split_names(" u, v ,eps_1", 3) == std::vector<std::string_view>{"u", "v", "eps_1"});
    for (const char* bad : {"u,", ",u", "u,,v", "2u", "u v", "u,u", "and", "None,x", "_", "x.y", "\xc3\xa9"})
        CHECK_THROWS_AS(split_names(bad, size_t(std::count(bad, bad + std::strlen(bad), ',')) + 1), Error);
    CHECK_THROWS_AS(split_names("u,v", 3), Error);
    CHECK_THROWS_AS(split_names("", 1), Error);
}

TEST_CASE("movement: shapes, lengths and the rest")
{
    Room room;
    CHECK(room("reshape(p0, [2, _])")->dims() == Extents{2, 6});
    CHECK(room("reshape(p4, _)")->dims() == Extents{Extent(3) * Extent::variable(0)});
    CHECK(room("reshape(p4, [3*(-1)])")->dims() == Extents{Extent(3) * Extent::variable(0)});
    CHECK(room("reshape(p4, [1, -1, 3])")->dims()[1] == Extent::variable(0));
    CHECK(room("broadcast(p1, [2*(-1)*(-2)-1, 3])")->dims()[0] == Extent(2) * Extent::variable(0) * Extent::variable(1) - Extent(1));
    CHECK(room("concat(p0, p0, p0, -1)") == room("concat([p0, p0, p0], 1)"));
    CHECK(room("take(p0, p9)") == build::take(room.graph, room.at("p0"), room.at("p9"), 0));
    CHECK(room("put(p0, p9, 1, 0, max)") == build::put(room.graph, room.at("p0"), room.at("p9"), build::weak_int(room.graph, 1), 0, NG_FOLD_MAX));
    CHECK(room("scan(p0, 1, sum, exclusive, reverse)") == build::scan(room.graph, room.at("p0"), 1, NG_FOLD_SUM, 3));
    CHECK(room("stop(p0)") == build::surrogate(room.graph, room.at("p0"), {}));
    ng_conv_desc conv = {};
    conv.size = sizeof conv, conv.stride[0] = conv.stride[1] = 2, conv.pad_lo[0] = conv.pad_hi[0] = 1, conv.flags = NG_TF32, conv.pad_value = -1;
    CHECK(room("conv(p5, p6, tf32, stride = 2, pad = [1, 0], pad_value = -1)") == build::conv(room.graph, room.at("p5"), room.at("p6"), &conv));
    ng_pool_desc pool = {};
    pool.size = sizeof pool, pool.kind = NG_POOL_MEAN, pool.window[0] = 3, pool.window[1] = 2, pool.stride[0] = pool.stride[1] = 1, pool.flags = NG_POOL_COUNT_PAD;
    CHECK(room("pool(p5, mean, window = [3, 2], stride = 1, count_pad)") == build::pool(room.graph, room.at("p5"), &pool));
}

TEST_CASE("values that are invalid: the first that the text uses is the result")
{
    Room room;
    const NodeRef first = poison(Error(NG_E_SHAPE, "first")), second = poison(Error(NG_E_DTYPE, "second"));
    room.give("bad", first), room.give("worse", second);
    CHECK(room("p0 + p1") != first);
    CHECK(room("p0 @ p0 + worse * bad") == second);
    CHECK(room("p0 + bad + worse") == first);
}

TEST_CASE("faults: each has the column of what is wrong")
{
    // text, column, status
    struct Fault { const char* text; int at; ng_status status; };
    const Fault TABLE[] = {
        {"", 0, NG_E_INVALID}, {"p0 +", 4, NG_E_INVALID}, {"p0 + * p1", 5, NG_E_INVALID}, {"(p0 + p1", 8, NG_E_INVALID}, {"p0 + p1)", 7, NG_E_INVALID},
        {"p0 p1", 3, NG_E_INVALID}, {"sqrt", 0, NG_E_INVALID}, {"1 + sqrt p0", 4, NG_E_INVALID}, {"sqrt(p0, p1)", 7, NG_E_INVALID},
        {"where(p0, p1)", 12, NG_E_INVALID}, {"sqrt()", 5, NG_E_INVALID}, {"p0 + foo(p0)", 5, NG_E_INVALID}, {"p1 * p0(3)", 5, NG_E_INVALID},
        {"p0 + q", 5, NG_E_INVALID}, {"p0 && p1", 3, NG_E_INVALID}, {"p0 || p1", 3, NG_E_INVALID}, {"!p0", 0, NG_E_INVALID}, {"p0 ? p1", 3, NG_E_INVALID},
        {"p0 = 3; p0", 0, NG_E_INVALID}, {"x = p0", 6, NG_E_INVALID}, {"x = p0; x;", 9, NG_E_INVALID}, {"x = p0;", 7, NG_E_INVALID}, {"p0 + 1 = 3", 7, NG_E_INVALID},
        {"_ = p0; p0", 0, NG_E_INVALID}, {"1e999", 0, NG_E_INVALID}, {"p0 + 2x", 5, NG_E_INVALID}, {"0x", 0, NG_E_INVALID}, {"007", 0, NG_E_INVALID},
        {"1.2.3", 3, NG_E_INVALID}, {"9223372036854775808", 0, NG_E_INVALID}, {"99999999999999999999", 0, NG_E_INVALID}, {"p0 + not p1", 5, NG_E_INVALID},
        {"p0 @ p0", 3, NG_E_SHAPE}, {"p0 + p2[:2]", 3, NG_E_SHAPE}, {"p0[1, 2, 3]", 2, NG_E_SHAPE}, {"p0[7]", 2, NG_E_SHAPE}, {"p0[p1]", 3, NG_E_INVALID},
        {"p0[1:2", 6, NG_E_INVALID}, {"p0[]", 3, NG_E_INVALID}, {"p0[..., ...]", 8, NG_E_INVALID}, {"p0[::0]", 2, NG_E_INVALID}, {"p0[1.5]", 3, NG_E_INVALID},
        {"sum(p0, 2)", 8, NG_E_INVALID}, {"sum(p0, [0, 0])", 12, NG_E_INVALID}, {"sum(p0, [0, 1)", 13, NG_E_INVALID}, {"max(p0, p1)", 8, NG_E_INVALID},
        {"p0 & 1", 3, NG_E_DTYPE}, {"1 + (p7 + p2)", 8, NG_E_DTYPE}, {"u8(1) - 300", 6, NG_E_DTYPE}, {"p0 - reshape(p0, [5, _])", 5, NG_E_SHAPE},
        {"reshape(p0, [_, _])", 16, NG_E_INVALID}, {"reshape(p0, [4, -1])", 0, NG_E_SHAPE}, {"reshape(p0)", 10, NG_E_INVALID}, {"iota([-0])", 6, NG_E_SHAPE}, {"iota([2*(-0)])", 8, NG_E_SHAPE},
        {"permute(p0, [0, 0])", 0, NG_E_INVALID}, {"concat(p0, p1)", 13, NG_E_INVALID}, {"concat([p0, p1], 0)", 0, NG_E_SHAPE}, {"take(p0, p1)", 0, NG_E_DTYPE},
        {"scan(p0, 0, mean)", 12, NG_E_INVALID}, {"iota(f33, [2])", 5, NG_E_INVALID}, {"iota([2, 3])", 11, NG_E_INVALID}, {"length(2)", 7, NG_E_INVALID},
        {"conv(p5, p6, strides = 2)", 13, NG_E_INVALID}, {"pool(p5, median)", 9, NG_E_INVALID}, {"cast_stochastic(p0, f16, -3, p7)", 25, NG_E_INVALID}, {"p0 * 2 ** 63", 7, NG_E_DTYPE}, {"p0 $ p1", 3, NG_E_INVALID}, {"p0.T", 2, NG_E_INVALID},
        {"p0 + \xc3\xa9", 5, NG_E_INVALID}, {"p0, p1", 2, NG_E_INVALID}, {"[p0]", 0, NG_E_INVALID}, {"p0 < = p1", 5, NG_E_INVALID}, {"min(p0, 1", 9, NG_E_INVALID},
        {"p0[None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, None, "
         "None, None, None, None, None, None, None, None]", 2, NG_E_LIMIT}};
    Room room;
    for (const Fault& f : TABLE) {
        CAPTURE(f.text);
        const Error e = room.fault(f.text);
        CHECK(e.status == f.status);
        CHECK(e.at == f.at);
        CHECK(e.text.substr(0, 3) == "ng_");
    }
    const Error nul = room.fault(std::string_view("p0 \0+ p1", 8));
    CHECK(nul.at == 3);
    CHECK(nul.status == NG_E_INVALID);
    CHECK(room.fault("sqr(p0)").text.find("\"sqrt\"") != std::string::npos);
    CHECK(room.fault("maximun(p0, p1)").text.find("\"maximum\"") != std::string::npos);
    CHECK(room.fault("True").text.find("\"true\"") != std::string::npos);
}

TEST_CASE("limits: hostile texts are refused before the stack or the clock notices")
{
    Room room;
    const size_t most = size_t(1) << 20;
    for (const char* part : {"(", "-", "not ", "sqrt(", "p0 ** ", "concat([", "p0 + (p0 or p0 and p0 == p0 | p0 ^ p0 & p0 << p0 + p0 * (", "sum(p0[0] - ("}) {
        CAPTURE(part);
        CHECK(room.fault(repeated(part, most)).status == NG_E_LIMIT);
    }
    CHECK(room.fault(repeated(" ", most + 1)).status == NG_E_LIMIT);
    CHECK(room.fault(repeated("p0[", most)).status == NG_E_INVALID);
    CHECK(room.fault("reshape(p0, [" + repeated("1, ", most / 2) + "1])").status == NG_E_LIMIT);
    CHECK(room.fault("reshape(p0, [" + repeated("(-1)*", most / 2) + "1])").status == NG_E_LIMIT);
    CHECK(room(repeated("(", 199) + "p0" + repeated(")", 199)) == room.at("p0"));
    CHECK(room.fault(repeated("(", 201) + "p0" + repeated(")", 201)).at == 200);
    CHECK(room("p0" + repeated("[:]", most / 2)) == room.at("p0"));
    CHECK(room.fault(repeated("1 + ", most / 16) + "1").status == NG_OK);
}

TEST_CASE("to_text: reads back as the same node")
{
    const char* const TEXTS[] = {
        "(p0 * s4 + p1) * p0 - sqrt(abs(p0))", "p0 * 2 + 0.1", "-p0 ** 3", "(-p0) ** 3", "p0 ** -1.5", "2 ** -p0", "(p0 ** p1) ** p0", "p0 ** p1 ** p0",
        "p0 - (p1 - p0)", "p0 / (p1 * p0) / p1", "p0 < p1 < 1", "not (p0 < 1) or p1 > 2 and p2 == 3", "(p0 < 1) == p8", "(p2 or p8) and p0",
        "p2 // 2 % 3 << 1 | 7 & p2 ^ 1", "~(p2 >> 2)", "-(-p2 + 1)", "p3 + 1", "p3 * p3", "f16(p3 * 0.5)", "f64(p2) + 1", "f64(p0) + p1", "p2 / 3", "exp(2)", "exp(2.0)",
        "maximum(f32(1), f32(2))", "p0 * 0.1 - 1e-30", "p0 + 16777217.0", "f64(p0) * 0.1", "p0 + -0.0", "p0 * inf", "p2 + true", "p8 or false", "where(p8, 1, 0)",
        "where(p8, 1.0, p2)", "clip(p0, -1, 1)", "sum(p0)", "sum(p0, 0)", "sum(p2, [0, 1])", "mean(p0, -1)", "mean(p4, 0)", "var(p0)", "std(p4, 1)", "softmax(p0, 1)",
        "softmax(p3)", "log_softmax(p4, 0)", "logsumexp(p0)", "logsumexp(p2, 1)", "argmax(p0, 1)", "any(p0 > 1) and all(p2)", "count_nonzero(p2)", "p0[1:-1, ::2]", "p0[::-1]",
        "p0[3:0:-2]", "p0[:, 0]", "p0[9:]", "p0[-1, None, ...]", "p4[1:-1]", "p4[::-1]", "p4[-1]", "p4[-3:-1, 1:]", "p4[2:]", "p0[1:][1:]", "reshape(p0, [2, _])",
        "reshape(p4, [_])", "concat([p0, p2], 0)", "concat(p4, p0, 0)", "take(p0, p9)", "take(p0, p2, 1)", "put(p0, p9, 1, 0, sum)", "put(p0, p9, p1, 0, last)",
        "scan(p0, 0, max, reverse)", "argsort(p0, -1, reverse)", "segment(p0, p9, sum)", "permute(p0, [1, 0, -1])", "p0 @ p1", "p3 @ permute(p3, [1, 0]) @ p3",
        "(p0 * 2) @ permute(p0, [1, 0])", "matmul(p0, p1, tf32)", "x = p0 * p1; y = x + 1; x * y / (x - y)", "stop(p0) + keep(p1)", "surrogate(p0, p0 * 2)",
        "iota([4])", "iota(f32, [4, -1], 1)", "random(uniform, f32, [3], 7)", "random(normal, f64, [3, 2], p7, p7 + 1)", "cast_stochastic(p0, f16, 4, p7)",
        "bitcast(p0, i32)", "window(p0, 0, p2[0, 0], 2)", "conv(p5, p6, stride = 2, pad = 1)", "conv(p5, p6, pad_lo = 1, pad_value = -0.5, dilate = [1, 2])",
        "conv(p5, p6, pad_value = inf)", "conv(p5, p6, pad_value = -inf)", "conv(p5, p6, pad_value = nan)", "conv(p5, p6, pad_value = -0.0)", "conv_dx(p6, conv(p5, p6), [2, 4, 9, 9], pad_value = -inf)",
        "max(p4, 0, lowest)", "max(p4 * 2 - 1, [0, 1], lowest) + p0", "max(p3, 0, lowest)", "reshape(max(p4, [0, 1], lowest), [])", "max(p4, [], lowest)", "max(inf, [], lowest)",
        "pool(p5, max, window = 2)", "pool(p5, l2, window = [3, 2], stride = 1, pad = [1, 0])", "pool(p5, max, channel_window = 3, channel_stride = 1, channel_pad = 1)",
        "pool_dx(p5, pool(p5, max, window = 3), max, window = 3)", "conv_dx(p6, conv(p5, p6), [2, 4, 9, 9])", "conv_dw(p5, conv(p5, p6), [8, 4, 3, 3])",
        "pool(p5, p5 * 2, max, window = 2)", "pool(p5, max(p5, 0) - p5, max)", "pool_dx(p5, p5, max)", "p0[4:4:-1]", "p0[:, :0]",
        "slice_at(iota([-1]), 0, [0, -2], 1)", "slice_at(p4, 0, [(-1)-1, 2], -1)", "slice_at(p4, -2, [-2, 3*(-1)+1], 2)", "view(p0, [3, 2], [-1, 3], 5)", "broadcast(p1, [2, 3]) + broadcast(p1, [2, 3])", "custom_grad(p0 * 2, p3, [p1], [p1 * p1])", "true", "2", "2.0", "-3", "inf",
        "-9223372036854775808", "u64(18446744073709551615)", "i8(3)", "f16(0.1)", "e4m3(0.3)", "length(-1) * 2", "p0 * p7", "nan", "-nan", "p0 * (inf - inf)"};
    Room room;
    for (const char* text : TEXTS) {
        const NodeRef e = room(text);
        const std::string written = to_text(e);
        CAPTURE(text);
        CAPTURE(written);
        CHECK(room(written) == e);
        CHECK(to_text(room(written)) == written);
    }
}

TEST_CASE("to_text: derivatives of what may be nothing read back, and are taken of nothing")
{
    Room room;
    const NodeRef none = [&] { Layout l; l.dims = {0, 3}, l.strides = {3, 1}; return build::param(room.graph, 20, l); }();
    for (const char* text : {"softmax(p4, 0)", "log_softmax(p4, [0, 1])", "logsumexp(p4 * 2, 0)", "softmax(f64(p4), 0)", "softmax(p4 / 3)"}) {
        CAPTURE(text);
        const NodeRef y = room(text), x = room.at("p4");
        std::vector<NodeRef> dx;
        grad(room.graph, {&y, 1}, {}, {&x, 1}, dx);
        const std::string written = to_text(dx[0]);
        CAPTURE(written);
        CHECK(written.find("lowest") != std::string::npos);
        CHECK(room(written) == dx[0]);
    }
    const std::string_view name = "x";
    CHECK(to_text(parse(room.graph, "max(x, 0, lowest)", {&name, 1}, {&none, 1})) == "broadcast(f32(-inf), [1, 3])");
    CHECK(room("max(p0, 0, lowest)") == room("max(p0, 0)"));         // there is always something
    CHECK(room.fault("max(p2, 0, lowest)").status == NG_E_INVALID);
    CHECK(room.fault("max(p0, lowest)").status == NG_E_INVALID);
    CHECK(room.fault("min(p0, 0, lowest)").status == NG_E_INVALID);
    CHECK(room.fault("max(p0, 0, low)").at == 11);
}

TEST_CASE("extents: as many terms and factors as are made are written and read back")
{
    Room room;
    const auto terms = [](size_t count) {
        std::string s = "2*(-1)";
        for (size_t i = 2; i <= count; i++) s += (i % 2 ? "+" : "+3*") + text("(-", i, ")");
        return s;
    };
    const NodeRef most = room("iota([" + terms(Extent::MAX_TERMS) + "])");
    CHECK(most->dims()[0].terms().size() == Extent::MAX_TERMS);
    CHECK(room(to_text(most)) == most);
    CHECK(room.fault("iota([" + terms(Extent::MAX_TERMS + 1) + "])").status == NG_E_LIMIT);
    std::string power = "2";
    for (size_t i = 0; i < Extent::MAX_DEGREE; i++) power += "*(-1)";
    const NodeRef steep = room("iota([" + power + "])");
    CHECK(room(to_text(steep)) == steep);
    CHECK(room.fault("iota([" + power + "*(-1)])").status == NG_E_LIMIT);
    CHECK_THROWS_AS((void)(steep->dims()[0] * Extent::variable(0)), Error);
    CHECK_THROWS_AS((void)(most->dims()[0] + Extent::variable(Extent::MAX_TERMS)), Error);
    CHECK(room("iota([(-1)+5-(-1)])") == room("iota([5])"));
}

TEST_CASE("to_text: few parentheses, no casts that are inferred, parts named once")
{
    Room room;
    const auto bare = [&](const char* text) {
        const std::string s = to_text(room(text));
        return s[0] == '#' ? s.substr(s.find('\n') + 1) : s;
    };
    for (const char* same : {"(p0 * s4 + p1) * p0 - sqrt(abs(p0))", "p0 - (p1 - p0)", "p3 * 2 + 0.1", "p2 // 2 % 3", "p2 / 3", "-p0 ** 3", "p0 * p2", "sum(p0, 1) / 3",
                             "softmax(p0, 1)", "max(p0)", "p0[1:3, ::2]", "where(p8, 1.0, p2)", "f16(0.1)", "p1 ** -0.5"})
        CHECK(bare(same) == same);
    CHECK(bare("(p0 + p1) * (p0 + p1)") == "v1 = p0 + p1;\nv1 * v1");
    CHECK(to_text(room("p4 * n1")) == "# p4 f32 [-1, 3], n1 the length -1\np4 * n1");
    CHECK(bare("f32(p3) + 1") == "p3 + 1");
    const NodeRef tagged = build::tag(room.graph, room("p0 * 2"), "twice");
    CHECK(to_text(tagged) == to_text(room("p0 * 2")));
    Layout l;
    l.dims = {2}, l.strides = {1};
    const NodeRef a = build::leaf(room.graph, std::make_shared<int>(1), l), b = build::leaf(room.graph, std::make_shared<int>(2), l);
    CHECK(to_text(build::map(room.graph, Op::sub, {a, b})) == "# t0 f32 [2], t1 f32 [2]\nt0 - t1");
}

TEST_CASE("to_text: long and shared graphs become definitions that read back")
{
    Room room;
    NodeRef chain = room.at("p0"), right = chain, shared = chain;
    for (int i = 0; i < 3000; i++) chain = build::map(room.graph, i % 2 ? Op::add : Op::mul, {chain, build::weak(room.graph, 1.5 + i)});
    for (int i = 0; i < 3000; i++) right = build::map(room.graph, Op::sub, {room.at("p1"), right});
    for (int i = 0; i < 300; i++) shared = build::map(room.graph, Op::add, {build::map(room.graph, Op::sin, {shared}), shared});
    for (const NodeRef& e : {chain, right, shared}) {
        const std::string text = to_text(e);
        CHECK(text.size() < 200000);
        CHECK(room(text) == e);
    }
    Graph large;
    NodeRef deep = room.at("p0");
    for (int i = 0; i < 200000; i++) deep = build::map(large, i % 2 ? Op::sin : Op::cos, {deep});
    CHECK(to_text(deep).size() > 200000);
}
