// How many steps an expression takes, who writes in place of what, and that no step reads before or writes after its time.
#include "jit/parse.h"
#include "jit/plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

using namespace ng;

namespace {

using Shapes = std::vector<Extents>;
constexpr size_t MAX_ACCESSES = 96, MAX_TASKS = 64;

Layout layout(Extents dims, Dtype t = Dtype::f32, Extents strides = {})
{
    Layout l;
    l.dtype = t, l.dims = dims, l.strided = !strides.empty(), l.strides = strides.empty() ? dense_strides(dims) : strides;
    return l;
}

// Expressions over params a, b, c .. and what becomes of them. Outputs of texts are between bars.
struct Case {
    Graph g;
    std::vector<std::string_view> names;
    std::vector<NodeRef> params;
    std::vector<NodeRef> roots;
    std::vector<Target>  targets;

    explicit Case(Shapes shapes, std::vector<Dtype> types = {})
    {
        static const char LETTERS[] = "abcdefgh";
        for (size_t i = 0; i < shapes.size(); i++) {
            params.push_back(build::param(g, uint32_t(i), layout(shapes[i], i < types.size() ? types[i] : Dtype::f32)));
            names.push_back(std::string_view(LETTERS + i, 1));
        }
    }
    Case& add(const NodeRef& e, int32_t alias = -1)
    {
        roots.push_back(e);
        Target t;
        t.layout = layout(e->dims(), e->dtype), t.alias_param = alias;
        targets.push_back(t);
        return *this;
    }
    NodeRef text(std::string_view words) { return parse(g, words, names, params); }
    Case& texts(std::string_view words, std::vector<int32_t> alias = {})
    {
        for (size_t j = 0;; j++) {
            const size_t bar = std::min(words.find(" | "), words.size());
            add(text(words.substr(0, bar)), j < alias.size() ? alias[j] : -1);
            if (bar == words.size()) return *this;
            words.remove_prefix(bar + 3);
        }
    }
};

template <class Visit> void each_read(const Step& s, Visit visit)
{
    for (const View& v : s.in) visit(v.buffer);
    if (s.kernel)
        for (const Value& v : s.kernel->values)
            if (v.buffer >= 0) visit(s.buffers[size_t(v.buffer)]);
}
template <class Visit> void each_write(const Step& s, Visit visit)
{
    if (!s.kernel) return visit(s.out.buffer);
    for (const StoreTo& t : s.kernel->stores) visit(s.buffers[size_t(t.buffer)]);
}
bool reads(const Step& s, int32_t b) { bool any = false; return each_read(s, [&](int32_t x) { any = any || x == b; }), any; }
bool writes(const Step& s, int32_t b) { bool any = false; return each_write(s, [&](int32_t x) { any = any || x == b; }), any; }

void check_kernel(const Kernel& k, const Step& s)
{
    for (const KernelAxis& a : k.axes) CHECK_FALSE(a.extent.is(1));
    CHECK(k.accesses.size() <= MAX_ACCESSES);
    CHECK(k.stores.size() >= 1);
    CHECK(k.stores.size() <= MAX_TASKS);
    for (const Access& a : k.accesses) CHECK(a.strides.size() == k.axes.size());
    for (size_t v = 0; v < k.values.size(); v++) {
        const Value& value = k.values[v];
        for (const int32_t a : value.args) CHECK(a < int32_t(v));
        CHECK(value.access < int32_t(k.accesses.size()));
        CHECK(value.buffer < int32_t(s.buffers.size()));
    }
}

// What must hold of every plan: written before read, read before what shares its memory is written, lives as they are.
void check_plan(const Plan& p, const std::vector<Target>& targets)
{
    std::set<int32_t> written;
    for (size_t i = 0; i < p.steps.size(); i++) {
        const Step& s = p.steps[i];
        INFO(text("step ", i, " of ", p.steps.size()));
        if (s.kernel) check_kernel(*s.kernel, s);
        each_read(s, [&](int32_t b) {
            const Place place = p.buffers[size_t(b)].place;
            const bool given = place == Place::Arg || place == Place::Leaf;
            const bool itself = place == Place::Out && s.in_place && writes(s, b) && p.direct[size_t(p.buffers[size_t(b)].index)];
            CHECK((given || itself || written.contains(b)));
        });
        each_write(s, [&](int32_t b) {
            CHECK((p.buffers[size_t(b)].place == Place::Out || p.buffers[size_t(b)].place == Place::Work));
            written.insert(b);
        });
        CHECK((!s.runs_with_product() || (i > 0 && p.steps[i - 1].node && reads(s, p.steps[i - 1].out.buffer))));
    }
    for (size_t b = 0; b < p.buffers.size(); b++) {
        const Buffer& buffer = p.buffers[b];
        int32_t first = -1, last = -1;
        for (size_t i = 0; i < p.steps.size(); i++)
            if (reads(p.steps[i], int32_t(b)) || writes(p.steps[i], int32_t(b))) {
                if (first < 0) first = int32_t(p.steps[i].runs_with_product() ? i - 1 : i);
                last = std::max(last, int32_t(i));
                if (p.steps[i].feeds >= 0 && reads(p.steps[i], int32_t(b))) last = std::max(last, end_of_product(p, p.steps[i].feeds));
            }
        CHECK(buffer.first == first);
        CHECK(buffer.last == last);
        if (buffer.place != Place::Out) continue;
        CHECK(last >= 0);
        const int32_t alias = targets[size_t(buffer.index)].alias_param;
        for (size_t a = 0; a < p.buffers.size(); a++) {
            if (p.buffers[a].place != Place::Arg || p.buffers[a].index != alias) continue;
            bool dirty = false;
            for (const Step& s : p.steps) {
                CHECK_FALSE((dirty && reads(s, int32_t(a)) && !s.in_place));
                if (!writes(s, int32_t(b))) continue;
                dirty = true;
                for (const StoreTo& t : s.kernel ? s.kernel->stores : std::vector<StoreTo>())
                    if (s.buffers[size_t(t.buffer)] == int32_t(b) && reads(s, int32_t(a))) CHECK(t.late);
            }
        }
    }
}

// "fused", "matmul + fused", "copy": the steps in order, an epilogue behind a plus, one with folds behind two,
// one whose axes are turned behind a plus and a comma, an aliased place before what is in it.
std::string steps(const Plan& p)
{
    std::string out;
    for (const Step& s : p.steps) {
        out += out.empty() ? "" : s.epilogue ? " + " : s.folds ? " ++ " : s.turned.empty() ? ", " : " +, ";
        out += s.kernel ? "fused" : s.node ? name_of(s.node->op) : "copy";
    }
    return out;
}
Plan planned(const Case& c, int32_t lengths = 0)
{
    Plan p = schedule(c.roots, c.targets, lengths);
    check_plan(p, c.targets);
    return p;
}
std::string steps(Shapes shapes, std::string_view words, std::vector<int32_t> alias = {})
{
    Case c(std::move(shapes));
    return steps(planned(c.texts(words, alias)));
}
int work_buffers(const Plan& p)
{
    return int(std::ranges::count_if(p.buffers, [](const Buffer& b) { return b.place == Place::Work && b.first >= 0; }));
}

}  // namespace

TEST_CASE("fused: normalisations are one kernel and no temporary, over any axis")
{
    for (const char* axes : {"0", "1", "[0, 1]"}) {
        const std::string a = axes, mean = "m = mean(a, " + a + "); ";
        const std::string all[] = {"softmax(a, " + a + ")", "log_softmax(a, " + a + ")", "softmax(softmax(a, " + a + "), " + a + ")", "logsumexp(a, " + a + ")", "std(a, " + a + ")",
                                   mean + "v = mean((a - m) ** 2, " + a + "); (a - m) * rsqrt(v + 1e-5) * b + c", "a * rsqrt(mean(a * a, " + a + ") + 1e-6) * b",
                                   mean + "a - m | a * m"};
        for (const std::string& words : all) {
            if (words.find(" | ") != std::string::npos) continue;
            Case c({{8, 16}, {16}, {16}});
            const Plan p = planned(c.texts(words));
            INFO(words);
            CHECK(steps(p) == "fused");
            CHECK(work_buffers(p) == 0);
        }
    }
}

TEST_CASE("fused: several outputs of one space are one kernel, statistics beside values too")
{
    CHECK(steps({{8, 16}}, "exp(a) | max(abs(exp(a))) | sum(a) | a > 0") == "fused");
    CHECK(steps({{8, 16}}, "a - mean(a, 1) | mean(a, 1) | std(a, 1)") == "fused");
    CHECK(steps({{8}, {8}}, "a + b | a - b | a * b | a") == "fused");
    CHECK(steps({{8, 16}}, "reshape(a * 2, [16, 8]) | reshape(a * 3, [128])") == "fused");
    CHECK(steps({{8, 16}}, "sum(a, 0) | sum(a, 1)") == "fused, fused");         // two spaces of rows
    CHECK(steps({{8, 16}}, "sum(sum(a, 1))") == "fused, fused");
    CHECK(steps({{8, 16}, {8, 16}}, "-mean(sum(b * log_softmax(a, 1), 1))") == "fused, fused");
}

TEST_CASE("fused: chains, views and lookups are pulled into their users")
{
    Case c({{8, 16}});
    NodeRef x = c.params[0];
    const auto longer = [&](int by) {
        for (int i = 0; i < by; i++) x = build::map(c.g, i % 2 ? Op::add : Op::mul, {x, build::constant(c.g, Dtype::f32, x->value + 1.001 + i + by)});
        return steps(planned(c.add(x)));
    };
    CHECK(longer(350) == "fused");
    CHECK(longer(150) == "fused, fused");        // 500 constants are more than a launch is told
    CHECK(steps({{8, 16}, {16, 8}}, "permute(a, [1, 0]) + b[::-1, ::-1] * a[0, :1]") == "fused");
    CHECK(steps({{24}}, "reshape(a, [4, 6]) + reshape(a, [2, 2, 6])[0, 1]") == "fused");
    Case take({{8, 4}, {3}}, {Dtype::f32, Dtype::i64});
    CHECK(steps(planned(take.texts("exp(take(a, b, 0)) * 2"))) == "fused");
    CHECK(steps({{8}, {9}}, "concat(exp(a), log(b), 0)") == "fused, fused");
    Case parts(Shapes{{8}, {9}});
    CHECK(work_buffers(planned(parts.texts("concat(exp(a), log(b), 0)"))) == 0);        // each part goes to its place
}

TEST_CASE("keep: what is to be computed once is, whoever uses it")
{
    Case c({{8, 16}});
    const NodeRef once = build::keep(c.g, build::map(c.g, Op::exp, {c.params[0]}));
    const NodeRef r = build::reduce(c.g, Op::sum, once, NG_AXIS_0, 0), s = build::reduce(c.g, Op::sum, once, NG_AXIS_1, 0);
    const Plan p = planned(c.add(r).add(s));
    int exps = 0;
    for (const Step& step : p.steps)
        if (step.kernel) exps += int(std::ranges::count_if(step.kernel->values, [](const Value& v) { return v.kind == ValueKind::Map && v.op == Op::exp; }));
    CHECK(exps == 1);
}

TEST_CASE("products: element-wise work on the result is the product's epilogue, one that is read elsewhere has none")
{
    const Shapes shapes = {{8, 16}, {16, 4}, {4}, {4, 4}, {4}};
    CHECK(steps(shapes, "a @ b") == "matmul");
    CHECK(steps(shapes, "relu(a @ b + c)") == "matmul + fused");
    CHECK(steps(shapes, "y = a @ b; gelu(y + c) + y") == "matmul + fused");
    CHECK(steps(shapes, "relu(relu(a @ b + c) @ d + e)") == "matmul + fused, matmul + fused");
    CHECK(steps(shapes, "relu(a @ b) | a @ b > 0") == "matmul + fused");
    CHECK(steps(shapes, "a @ b | relu(a @ b)") == "matmul + fused");             // the epilogue writes both
    CHECK(steps(shapes, "softmax(a @ b, 1)") == "matmul ++ fused");
    CHECK(steps(shapes, "sum(relu(a @ b))") == "matmul ++ fused");
    CHECK(steps(shapes, "relu(a @ b) | sum(relu(a @ b), 0)") == "matmul ++ fused");
    CHECK(steps(shapes, "sum(a @ b, 1) | sum(a @ b, 0)") == "matmul, fused, fused");
    CHECK(steps(shapes, "permute(relu(a @ b), [1, 0])") == "matmul +, fused");
    CHECK(steps({{3, 8, 8}, {8, 8}}, "relu(a @ b)") == "matmul + fused");
    CHECK(steps({{8, 16}, {8, 16}, {8, 16}}, "softmax(a @ permute(b, [1, 0]) * 0.125, 1) @ c") == "matmul ++ fused, matmul");
    Case c({{2, 3, 9, 9}, {4, 3, 3, 3}, {4, 1, 1}});
    c.add(build::map(c.g, Op::relu, {build::map(c.g, Op::add, {build::conv(c.g, c.params[0], c.params[1], nullptr), c.params[2]})}));
    CHECK(steps(planned(c)) == "conv + fused");
}

TEST_CASE("products: a result that only turns goes straight to its output")
{
    for (const char* words : {"a @ b", "permute(a @ b, [1, 0])", "reshape(a @ b, [32])", "reshape(permute(a @ b, [1, 0]), [2, 2, 8])"}) {
        Case c({{8, 16}, {16, 4}});
        const Plan p = planned(c.texts(words));
        INFO(words);
        CHECK(steps(p) == "matmul");
        CHECK(work_buffers(p) == 0);
    }
}

TEST_CASE("aliases: point by point is in place, in one kernel, whoever else reads")
{
    const Shapes two = {{8, 8}, {8, 8}};
    const struct { const char* words; std::vector<int32_t> alias; } rows[] = {
        {"a * 2", {0}}, {"a + b | a - b", {0, 1}}, {"b | a", {0, 1}}, {"softmax(a, 1)", {0}}, {"a - mean(a)", {0}}, {"a * 2 | sum(a)", {0, -1}}, {"b + 1", {0}},
        {"max(abs(a)) | where(a > 0, a, b)", {-1, 1}}, {"reshape(reshape(a, [64]) * 2, [8, 8])", {0}}};
    for (const auto& row : rows) {
        Case c(two);
        const Plan p = planned(c.texts(row.words, row.alias));
        INFO(std::string(row.words));
        CHECK(steps(p) == "fused");
        CHECK(work_buffers(p) == 0);
        for (size_t j = 0; j < p.direct.size(); j++) CHECK(p.direct[j] == (row.alias[j] >= 0));
    }
}

TEST_CASE("aliases: what reads elsewhere than it writes goes by a temporary and a last copy")
{
    const Shapes two = {{8, 8}, {8, 8}};
    CHECK(steps(two, "a[::-1]", {0}) == "fused, copy");
    CHECK(steps(two, "permute(a, [1, 0])", {0}) == "fused, copy");
    CHECK(steps(two, "a @ b", {0}) == "matmul, copy");
    CHECK(steps(two, "a @ a", {0}) == "matmul, copy");
    CHECK(steps(two, "concat(a[1:], a[:1], 0)", {0}) == "fused, fused, copy");
    CHECK(steps(two, "a + a[0]", {0}) == "fused, copy");
    CHECK(steps(two, "relu(a @ b)", {0}) == "matmul, fused");                   // no epilogue: the product reads what it would write
    CHECK(steps(two, "relu(a @ b)", {1}) == "matmul, fused");
    Case c(two);
    const Plan p = planned(c.texts("a[::-1] | a * 2", {0, 1}));
    CHECK_FALSE(p.direct[0]);
    CHECK(p.steps.back().finishes);
    CHECK(writes(p.steps.back(), int32_t(std::ranges::find_if(p.buffers, [](const Buffer& b) { return b.place == Place::Out && b.index == 0; }) - p.buffers.begin())));
}

TEST_CASE("aliases: all who read the argument come before the one who writes it")
{
    Case c({{8, 8}, {8, 8}});
    const Plan p = planned(c.texts("a * 2 | a @ b | sum(a, 0) | permute(a, [1, 0]) @ b", {0}));
    CHECK(p.direct[0]);
    const auto in = int32_t(std::ranges::find_if(p.buffers, [](const Buffer& b) { return b.place == Place::Arg && b.index == 0; }) - p.buffers.begin());
    const auto out = int32_t(std::ranges::find_if(p.buffers, [](const Buffer& b) { return b.place == Place::Out && b.index == 0; }) - p.buffers.begin());
    const auto writer = std::ranges::find_if(p.steps, [&](const Step& s) { return writes(s, out); });
    CHECK(std::none_of(writer + 1, p.steps.end(), [&](const Step& s) { return reads(s, in); }));
}

TEST_CASE("aliases: an output over an argument of another layout, or one that overlaps, is not in place")
{
    Case turned({{8, 8}});
    turned.texts("a * 2", {0});
    turned.targets[0].layout = layout({8, 8}, Dtype::f32, {1, 8});
    CHECK_FALSE(planned(turned).direct[0]);
    Case wide(Shapes{{8}});
    wide.texts("a * 2", {0});
    wide.targets[0].layout = layout({3, 8});
    CHECK_FALSE(planned(wide).direct[0]);
    Case any(Shapes{{8}});
    any.texts("a * 2", {0});
    any.targets[0].layout.any = true;
    CHECK_FALSE(planned(any).direct[0]);
    Case odd(Shapes{{8}});
    odd.texts("a * 2");
    odd.targets[0].overlaps = true;
    const Plan p = planned(odd);
    CHECK(p.steps.back().finishes);
    CHECK_FALSE(p.direct[0]);
}

TEST_CASE("put: in place where the alias says so, else a copy and the put; a chain of them is one buffer")
{
    const auto puts = [](Case& c, int count) {
        NodeRef x = c.params[0];
        for (int i = 0; i < count; i++) x = build::put(c.g, x, c.params[1], c.params[2], 0, NG_FOLD_SUM);
        return x;
    };
    const Shapes shapes = {{100, 4}, {3}, {3, 4}};
    const std::vector<Dtype> types = {Dtype::f32, Dtype::i64, Dtype::f32};
    for (int count = 1; count <= 3; count++) {
        Case in(shapes, types), apart(shapes, types);
        const Plan p = planned(in.add(puts(in, count), 0)), q = planned(apart.add(puts(apart, count)));
        std::string all;
        for (int i = 0; i < count; i++) all += i ? ", put" : "put";
        CHECK(steps(p) == all);
        CHECK(p.steps[0].in_place);
        CHECK(work_buffers(p) == 0);
        CHECK(steps(q) == "fused, " + all);
        CHECK(work_buffers(q) == 0);
    }
    Case used(shapes, types);
    const NodeRef y = puts(used, 1);
    CHECK(steps(planned(used.add(build::map(used.g, Op::mul, {y, y})))) == "fused, put, fused");
    Case itself(shapes, types);              // y is read while x is written: not in place
    const NodeRef z = build::put(itself.g, itself.params[0], itself.params[1], build::slice(itself.g, itself.params[0], 0, 0, 3, 1), 0, NG_FOLD_SUM);
    CHECK_FALSE(planned(itself.add(z, 0)).direct[0]);
}

TEST_CASE("limits: sums of hundreds of operands, stencils of hundreds of taps and hundreds of outputs are cut into kernels of few accesses")
{
    Case c(Shapes{});
    NodeRef sum;
    for (uint32_t i = 0; i < 300; i++) {
        const NodeRef x = build::param(c.g, i, layout({4, 8}, Dtype::f32, {8 + int64_t(i), 1}));     // of strides of its own
        sum = sum ? build::map(c.g, Op::add, {sum, x}) : x;
    }
    const Plan p = planned(c.add(sum));
    CHECK(p.steps.size() >= 4);
    CHECK(p.steps.size() <= 10);
    CHECK(p.args.size() == 300);
    Case taps(Shapes{{500}});                       // a stencil: each tap is an access of its own
    NodeRef stencil;
    for (int64_t i = 0; i < 200; i++) {
        const NodeRef tap = build::map(taps.g, Op::mul, {build::slice(taps.g, taps.params[0], 0, i, i + 300, 1), build::constant(taps.g, Dtype::f32, double(i) + 2)});
        stencil = stencil ? build::map(taps.g, Op::add, {stencil, tap}) : tap;
    }
    CHECK(planned(taps.add(stencil)).steps.size() <= 6);
    Case many({{4, 8}});
    for (int i = 0; i < 200; i++) {
        many.add(build::map(many.g, Op::mul, {many.params[0], build::constant(many.g, Dtype::f32, i + 2)}));
        many.targets.back().layout = layout({4, 8}, Dtype::f32, {8 + int64_t(i), 1});
    }
    const Plan q = planned(many);
    CHECK(q.steps.size() >= 4);
    CHECK(q.steps.size() <= 16);
}

TEST_CASE("limits: a chain of a hundred thousand operations becomes kernels of bounded size, in order")
{
    Case c(Shapes{{16}});
    NodeRef x = c.params[0];
    for (int i = 0; i < 100000; i++) x = build::map(c.g, Op::mul, {x, build::constant(c.g, Dtype::f32, 1 + i * 1e-9)});
    c.add(x);
    const Plan p = schedule(c.roots, c.targets, 0);
    for (size_t i = 0; i < p.steps.size(); i++) REQUIRE(p.steps[i].kernel);
    CHECK(p.steps.size() <= 200);
}

TEST_CASE("lengths: unknown extents make the same steps, and what must hold when run is checked")
{
    const Extent n = Extent::variable(0), m = Extent::variable(1);
    Case c({{n, m}, {m, 4}});
    const Plan p = planned(c.texts("relu(a @ b) | softmax(a, 1)[1:] | max(a)"), 2);
    CHECK(p.lengths == 2);
    const int64_t good[] = {5, 3}, short_one[] = {0, 3}, empty[] = {5, 0};
    const auto holds = [&](std::span<const int64_t> lengths) {
        std::vector<int64_t> all(lengths.begin(), lengths.end());
        all.resize(size_t(p.lengths + p.hidden), 1);
        return std::ranges::all_of(p.checks, [&](const Check& k) { return k.low.value(all) <= k.value.value(all) && k.value.value(all) <= k.high.value(all); });
    };
    CHECK(holds(good));
    CHECK_FALSE(holds(short_one));           // [1:] of nothing, and the greatest of nothing
    CHECK_FALSE(holds(empty));
    Case view(Shapes{{n}});
    const Plan q = planned(view.add(build::view(view.g, view.params[0], layout({n}), 0)), 1);
    const int64_t none[] = {0, 1}, some[] = {3, 1};
    for (const Check& k : q.checks)
        for (const auto& lengths : {none, some}) CHECK((k.low.value({lengths, 2}) <= k.value.value({lengths, 2}) && k.value.value({lengths, 2}) <= k.high.value({lengths, 2})));
}

TEST_CASE("ports: arguments by their indices with their tags, scalars counted; a param that is two things is refused")
{
    Case c(Shapes{});
    const NodeRef x = build::param(c.g, 7, layout({4})), y = build::param(c.g, 2, layout({4}));
    const NodeRef s = build::scalar(c.g, Dtype::f64, 12);
    const Plan p = planned(c.add(build::tag(c.g, build::map(c.g, Op::add, {build::tag(c.g, x, "seven"), build::map(c.g, Op::mul, {y, s})}), "result")));
    REQUIRE(p.args.size() == 2);
    CHECK(p.args[0].index == 2);
    CHECK(p.args[1].index == 7);
    CHECK(p.args[1].name == "seven");
    CHECK(p.outs[0].name == "result");
    CHECK(p.scalar_bytes == 20);
    Case two(Shapes{});
    two.add(build::map(two.g, Op::add, {build::param(two.g, 0, layout({4})), build::param(two.g, 0, layout({4, 1}))}));
    ng_status status = NG_OK;
    try {
        (void)schedule(two.roots, two.targets, 0);
    } catch (const Error& e) {
        status = e.status;
        CHECK(e.text == "ng_compile: ng_param 0 is both f32 [4] of strides [1] and f32 [4, 1] of strides [1, 1]");
    }
    CHECK(status == NG_E_INVALID);
}
