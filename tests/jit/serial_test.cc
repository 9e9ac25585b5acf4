// Saved programs: what is loaded is, node for node, what was saved.
#include "tests/jit/serial_samples.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <limits>

using namespace samples;

namespace {

// What a saved program is: the nodes that are computed, custom derivatives as marks.
void check_same(std::span<const NodeRef> was, std::span<const NodeRef> is)
{
    const Snapshot a(was), b(is);
    REQUIRE(a.size() == b.size());
    CHECK(a.roots == b.roots);
    for (uint32_t i = 0; i < a.size(); i++) {
        const Node &x = a[i], &y = b[i];
        const bool custom = x.op == Op::custom_grad;
        INFO("node ", i, ": ", name_of(x.op), " ", describe(x), " / ", name_of(y.op), " ", describe(y));
        REQUIRE(y.op == (custom ? Op::surrogate : x.op));
        CHECK(x.dtype == y.dtype);
        CHECK(same(x.shape, y.shape));
        CHECK(x.value == y.value);
        CHECK(std::ranges::equal(a.args(i), b.args(i)));
        CHECK(y.weak == false);
        static const NodeExtra NOTHING;
        const NodeExtra &ex = x.extra && !custom ? *x.extra : NOTHING, &ey = y.extra ? *y.extra : NOTHING;
        CHECK(ex.ints == ey.ints);
        CHECK(ex.extents == ey.extents);
        CHECK(ex.text == ey.text);
    }
}

void round_trip(std::span<const NodeRef> roots, const CompileOptions& o)
{
    const std::string bytes = save(roots, o);
    const Saved back = load(bytes);
    check_same(roots, back.roots);
    CHECK(save(back.roots, back.options) == bytes);
}

}  // namespace

REGISTER_EXCEPTION_TRANSLATOR(const Error& e) { return e.text.c_str(); }

TEST_CASE("serial: what is loaded is, node for node, what was saved")
{
    for (const char* const t : TEXTS) {
        INFO(std::string(t));
        Room room;
        const NodeRef y = room(t);
        round_trip({&y, 1}, two_lengths());
    }
}

TEST_CASE("serial: derivatives come back, those of derivatives too")
{
    Room room;
    for (const char* const t : {"softmax(x, 1)", "conv(x, w, pad = 1, dilate = 2)", "pool(x, max, window = 3, stride = 2)", "pool(x, l2, window = 2)", "pool(x, mean, window = 2)",
                                "max(x, [1, 2])", "scan(x, 2, max)", "prod(x, 3)", "x[:, ::2, 1:]"}) {
        INFO(std::string(t));
        const NodeRef d = room.slope(t, "x"), x = room.at("x"), squares = build::map(room.graph, Op::mul, {d, x});
        std::vector<NodeRef> dx;
        grad(room.graph, {&squares, 1}, {}, {&x, 1}, dx);
        const NodeRef roots[] = {d, dx[0]};
        round_trip(roots, two_lengths());
    }
}

TEST_CASE("serial: extents of as many terms as are made come back")
{
    for (const size_t count : {size_t(300), Extent::MAX_TERMS}) {
        Graph g;
        std::vector<NodeRef> parts;
        CompileOptions o;
        o.length_max.assign(count, 10);
        for (size_t i = 0; i < count; i++) parts.push_back(build::param(g, uint32_t(i), layout(Dtype::f32, {Extent::variable(int32_t(i))})));
        const NodeRef all = build::concat(g, parts, 0);
        CHECK(all->dims()[0].terms().size() == count);
        round_trip({&all, 1}, o);
        parts.push_back(build::param(g, 60000, layout(Dtype::f32, {Extent::variable(60000)})));
        if (count == Extent::MAX_TERMS) CHECK_THROWS_AS(build::concat(g, parts, 0), Error);
    }
    Graph g;
    NodeRef x = build::param(g, 0, layout(Dtype::f32, {Extent::variable(0), Extent::variable(1), Extent::variable(2), Extent::variable(3), Extent::variable(4), Extent::variable(5), Extent::variable(6), Extent::variable(7)}));
    for (int32_t a = 0; a < 8; a++) x = build::concat(g, std::array{x, build::slice(g, x, a, 1, NG_END, 1)}, a);
    const NodeRef flat = build::reshape_rest(g, x, std::array<int64_t, 1>{NG_REST}), sums[] = {build::reduce(g, Op::sum, x, NG_ALL, 0), flat};
    CHECK(flat->dims()[0].terms().size() == 256);
    CompileOptions o;
    o.length_max.assign(8, 3);
    round_trip(sums, o);

    std::vector<NodeRef> sides[2];
    for (int32_t v = 0; v < 120; v++) sides[v % 2].push_back(build::param(g, uint32_t(v), layout(Dtype::f32, v % 2 ? Extents{1, Extent::variable(v)} : Extents{Extent::variable(v), 1})));
    NodeRef square = build::map(g, Op::mul, {build::concat(g, sides[0], 0), build::concat(g, sides[1], 1)});
    square = build::reshape_rest(g, square, std::array<int64_t, 2>{1, NG_REST});
    CHECK(square->dims()[1].terms().size() == 3600);
    o.length_max.assign(120, 2);
    round_trip({&square, 1}, o);
}

TEST_CASE("serial: the picking pool of a derivative's derivative keeps its kind")
{
    Room room;
    const NodeRef x = room.at("x"), dy = build::param(room.graph, 40, layout(Dtype::f32, {2, 4, 7, 7}));
    ng_pool_desc desc = {};
    desc.size = sizeof desc, desc.kind = NG_POOL_MAX, desc.window[0] = desc.window[1] = 3, desc.stride[0] = desc.stride[1] = 1;
    const NodeRef y = build::pool_dx(room.graph, x, dy, &desc);
    std::vector<NodeRef> dx;
    grad(room.graph, {&y, 1}, {}, {&dy, 1}, dx);
    const Snapshot s(dx);
    bool picks = false;
    for (uint32_t i = 0; i < s.size(); i++) picks = picks || (s[i].op == Op::pool && s[i].value == 1);
    REQUIRE(picks);
    round_trip(dx, two_lengths());
}

TEST_CASE("serial: constants of every type come back to the bit")
{
    Graph g;
    std::vector<NodeRef> roots;
    for (int t = 0; t < DTYPES; t++)
        for (const double v : {0.0, -0.0, 1.0, -1.5, 1e-45, 65504.0, 1e300, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::quiet_NaN()})
            roots.push_back(build::constant(g, Dtype(t), v));
    for (const int64_t v : {INT64_MIN, INT64_MAX, int64_t(-1)}) roots.push_back(build::constant_int(g, Dtype::i64, v)), roots.push_back(build::constant_int(g, Dtype::u64, v));
    round_trip(roots, {});
}

TEST_CASE("serial: a literal alone gets its type")
{
    Graph g;
    const NodeRef roots[] = {build::weak(g, 0.1), build::weak_int(g, 7)};
    const Saved back = load(save(roots, {}));
    CHECK(back.roots[0]->dtype == Dtype::f32);
    CHECK(std::bit_cast<double>(back.roots[0]->value) == double(0.1f));
    CHECK(back.roots[1]->dtype == Dtype::i32);
    CHECK(back.roots[1]->value == 7);
}

TEST_CASE("serial: strided arguments, any strides, and one output twice")
{
    Graph g;
    Layout strided = layout(Dtype::f32, {3, 4}), any = layout(Dtype::f32, {Extent::variable(0), 4});
    strided.strides = {1, -3}, strided.strided = true, any.any = true;
    const NodeRef a = build::param(g, 0, strided), b = build::param(g, 65535, any);
    const NodeRef roots[] = {a, b, a};
    round_trip(roots, two_lengths());
}

TEST_CASE("serial: options come back")
{
    Room room;
    const NodeRef roots[] = {room("a + 1"), room("long * 2"), room("sum(a)")};
    CompileOptions o = two_lengths();
    o.alias = {0, -1, 65535};
    o.runs = 3, o.flags = NG_PROG_EARLY, o.workspace_max = ~uint64_t(0);
    Layout strided = layout(Dtype::f32, {4, 3}), any = layout(Dtype::f32, {Extent::variable(0), 3});
    strided.strides = {1, 4}, strided.strided = strided.readonly = true, any.any = any.host = true;
    o.outs = {strided, any, layout(Dtype::f32, {})};
    o.declared = {true, true, false};
    const CompileOptions back = load(save(roots, o)).options;
    CHECK(back.alias == o.alias);
    CHECK(back.length_max == o.length_max);
    CHECK(back.runs == 3);
    CHECK(back.flags == NG_PROG_EARLY);
    CHECK(back.workspace_max == o.workspace_max);
    CHECK(back.declared == o.declared);
    REQUIRE(back.outs.size() == 3);
    for (size_t j = 0; j < 3; j++) {
        const Layout &was = o.outs[j], &is = back.outs[j];
        CHECK(is.dtype == was.dtype);
        CHECK(is.dims == was.dims);
        CHECK(is.strides == was.strides);
        CHECK((is.strided == was.strided && is.any == was.any && is.readonly == was.readonly && is.host == was.host));
    }
    const CompileOptions plain = load(save(roots, two_lengths())).options;
    CHECK((plain.alias.empty() && plain.outs.empty() && plain.declared.empty() && plain.runs == 1));
}

TEST_CASE("serial: a rank-0 output may be declared")
{
    Room room;
    const NodeRef root = room("sum(a)");
    CompileOptions o;
    o.outs = {layout(Dtype::f32, {})}, o.declared = {true};
    CHECK(load(save({&root, 1}, o)).options.declared == std::vector<bool>{true});
}

TEST_CASE("serial: a leaf is refused by its tag")
{
    Graph g;
    const NodeRef leaf = build::leaf(g, std::make_shared<int>(1), layout(Dtype::f32, {2, 3}));
    const NodeRef named = build::tag(g, build::permute(g, leaf, std::array<int32_t, 2>{1, 0}), "weights");
    const NodeRef roots[] = {build::map(g, Op::exp, {named}), build::map(g, Op::exp, {leaf})};
    for (size_t j = 0; j < 2; j++) {
        try {
            save({&roots[j], 1}, {});
            FAIL("a leaf was saved");
        } catch (const Error& e) {
            CHECK(e.status == NG_E_INVALID);
            CHECK((e.text.find("\"weights\"") != std::string::npos) == (j == 0));
        }
    }
}

TEST_CASE("serial: a chain of many nodes is no recursion and no quadratic time")
{
    Graph g;
    NodeRef x = build::param(g, 0, layout(Dtype::f32, {Extent::variable(0), 4}));
    for (int i = 0; i < 200000; i++) x = build::map(g, i % 2 ? Op::sin : Op::cos, {x});
    const std::string bytes = save({&x, 1}, two_lengths());
    CHECK(bytes.size() < 200000 * 8);
    const Saved back = load(bytes);
    check_same({&x, 1}, back.roots);
}
