// Plans of tens of thousands of steps are made in a time that grows as their number does, of kernels that devices can take.
#include "jit/grad.h"
#include "jit/plan.h"
#include "jit/precedence.h"
#include "tests/split_mix.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>

using namespace ng;

namespace {

// Outputs over params, and how long their plan takes.
struct Large {
    Graph               g;
    std::vector<NodeRef> roots;
    std::vector<int32_t> alias;
    uint32_t             next = 0;

    NodeRef param(Extents dims)
    {
        Layout l;
        l.dims = dims, l.strides = dense_strides(dims);
        return build::param(g, next++, l);
    }
    void add(const NodeRef& e, int32_t over = -1) { roots.push_back(e), alias.push_back(over); }
    Plan plan() const
    {
        std::vector<Target> targets(roots.size());
        for (size_t j = 0; j < roots.size(); j++) {
            Layout& l = targets[j].layout;
            l.dims = roots[j]->dims(), l.strides = dense_strides(l.dims), targets[j].alias_param = alias[j];
        }
        return schedule(roots, targets, 0);
    }
};
using Making = std::function<void(Large&, int)>;

// Eight times as much takes some eight times as long, 64 times where anything is compared with everything.
void check_growth(const char* what, const Making& make, int count)
{
    const auto seconds = [&](int n) {
        Large l;
        make(l, n);
        const auto start = std::chrono::steady_clock::now();
        const Plan p = l.plan();
        const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        CHECK(p.steps.size() > 0);
        return s;
    };
    const double few = seconds(count), many = seconds(8 * count);
    MESSAGE(std::string(what) << ": " << count << ": " << few << " s, " << 8 * count << ": " << many << " s");
    CHECK_MESSAGE(many < 40 * few + 0.25, std::string(what));
}

void chain(Large& l, int count)
{
    const NodeRef x = l.param({8}), w = l.param({8});
    NodeRef y = x;
    for (int i = 0; i < count; i++) y = i % 2 ? build::map(l.g, Op::sin, {y}) : build::map(l.g, Op::mul, {y, w});
    std::vector<NodeRef> dx;
    grad(l.g, {&y, 1}, {}, std::vector{x, w}, dx);
    l.add(y), l.add(dx[0]), l.add(dx[1]);
}

void folds(Large& l, int count)
{
    const NodeRef x = l.param({8});
    NodeRef y = x;
    for (int i = 0; i < count; i++) y = build::map(l.g, Op::sub, {y, build::reduce(l.g, Op::sum, y, 1, NG_KEEP)});
    std::vector<NodeRef> dx;
    grad(l.g, {&y, 1}, {}, {&x, 1}, dx);
    l.add(y), l.add(dx[0]);
}

// One argument that all read, and a sum of as many products with it.
void wide(Large& l, int count)
{
    const NodeRef x = l.param({4, 4}), w = l.param({4, 4});
    NodeRef y;
    for (int i = 0; i < count; i++) {
        const NodeRef k = build::matmul(l.g, x, build::map(l.g, Op::add, {w, build::constant(l.g, Dtype::f32, i)}), 0);
        y = y ? build::map(l.g, Op::add, {y, k}) : k;
    }
    std::vector<NodeRef> dx;
    grad(l.g, {&y, 1}, {}, std::vector{x, w}, dx);
    l.add(y), l.add(dx[0]), l.add(dx[1]);
}

// A step of training: layers, their gradients, and each weight written in its place.
void training(Large& l, int count)
{
    NodeRef y = l.param({4, 4});
    std::vector<NodeRef> weights, dx;
    for (int i = 0; i < count; i++) {
        weights.push_back(l.param({4, 4}));
        y = build::map(l.g, Op::relu, {build::matmul(l.g, y, weights.back(), 0)});
    }
    grad(l.g, {&y, 1}, {}, weights, dx);
    const NodeRef rate = build::constant(l.g, Dtype::f32, 0.1);
    for (int i = 0; i < count; i++) l.add(build::map(l.g, Op::sub, {weights[size_t(i)], build::map(l.g, Op::mul, {dx[size_t(i)], rate})}), i + 1);
}

// None can be written in its place: each is read elsewhere than it is written.
void turned(Large& l, int count)
{
    for (int i = 0; i < count; i++) {
        const NodeRef x = l.param({8});
        l.add(build::map(l.g, Op::add, {x, build::slice_at(l.g, x, 0, 7, 8, -1)}), i);
    }
}

// Running sums that change places, two and two; of each pair one can be written in its place.
void swapped(Large& l, int count)
{
    std::vector<NodeRef> x;
    for (int i = 0; i < count; i++) x.push_back(l.param({8}));
    for (int i = 0; i < count; i++) l.add(build::scan(l.g, x[size_t(i ^ 1)], 0, NG_FOLD_SUM, 0), i);
}

// Running sums that go one place on, around one ring, each way.
void ring(Large& l, int count, int by)
{
    std::vector<NodeRef> x;
    for (int i = 0; i < count; i++) x.push_back(l.param({8}));
    for (int i = 0; i < count; i++) l.add(build::scan(l.g, x[size_t((i + by + count) % count)], 0, NG_FOLD_SUM, 0), i);
}

// Results of operations that are kept for later ones, at the worst place.
int most_live(const Kernel& k)
{
    std::vector<int> last(k.values.size(), -1);
    for (size_t v = 0; v < k.values.size(); v++)
        for (const int32_t a : k.values[v].args)
            if (a >= 0 && k.values[size_t(a)].kind == ValueKind::Map) last[size_t(a)] = int(v);
    int most = 0;
    for (int at = 0; at < int(last.size()); at++) {
        int live = 0;
        for (int v = 0; v < at; v++) live += last[size_t(v)] >= at;
        most = std::max(most, live);
    }
    return most;
}

}  // namespace

TEST_CASE("growth: chains, reductions, sums of products and steps of training are planned in linear time")
{
    check_growth("a chain and its gradient", chain, 4000);
    check_growth("reductions one after another and their gradient", folds, 1000);
    check_growth("a sum of products and its gradient", wide, 2500);
    check_growth("layers, their gradients and weights in place", training, 500);
}

TEST_CASE("growth: outputs that cannot be written in their places are found in linear time, and are as few as can be")
{
    check_growth("outputs turned round in their places", turned, 250);
    check_growth("outputs that change places by two", swapped, 250);
    check_growth("a ring of outputs", [](Large& l, int count) { ring(l, count, 1); }, 250);
    check_growth("a ring of outputs the other way", [](Large& l, int count) { ring(l, count, -1); }, 250);
    const auto direct = [](const Making& make) {
        Large l;
        make(l, 100);
        return std::ranges::count(l.plan().direct, true);
    };
    CHECK(direct(turned) == 0);
    CHECK(direct(swapped) == 50);
    for (const int by : {1, -1, 3, 25}) CHECK(direct([&](Large& l, int count) { ring(l, count, by); }) == (by == 25 ? 75 : 99));
}

TEST_CASE("growth: of edges that come a few at a time those are refused that close a circle with the edges before, and no others")
{
    SplitMix random(71);
    const auto below = [&](size_t end) { return size_t(random.word() % end); };
    for (int round = 0; round < 200; round++) {
        const size_t count = 2 + below(12);
        std::vector<int32_t> sequence;
        for (size_t i = 0; i < count; i++) sequence.insert(sequence.begin() + int64_t(below(i + 1)), int32_t(i));
        Precedence p(sequence);
        std::vector<std::vector<bool>> comes_behind(count, std::vector<bool>(count, false));       // [step][another], itself too
        for (size_t i = 0; i < count; i++) comes_behind[i][i] = true;
        for (size_t k = 0; k < 4 * count; k++) {
            std::vector<Edge> edges(1 + below(3));
            for (Edge& e : edges) e = {int32_t(below(count)), int32_t(below(count))};
            auto then = comes_behind;
            bool is_circle = false;
            for (const Edge& e : edges) {
                is_circle = is_circle || then[size_t(e.after)][size_t(e.step)];
                for (size_t i = 0; i < count; i++)
                    for (size_t j = 0; j < count; j++)
                        if (then[i][size_t(e.step)] && then[size_t(e.after)][j]) then[i][j] = true;
            }
            CHECK(p.add(edges) == !is_circle);
            if (!is_circle) comes_behind = then;
        }
    }
}

TEST_CASE("growth: weights of a long step of training are all written in their places")
{
    Large l;
    training(l, 500);
    const Plan p = l.plan();
    CHECK(std::ranges::count(p.direct, true) == 500);
    std::vector<bool> written(501, false);
    for (const Step& s : p.steps) {
        const auto read = [&](int32_t b) {
            const Buffer& buffer = p.buffers[size_t(b)];
            if (buffer.place == Place::Arg) REQUIRE_FALSE(written[size_t(buffer.index)]);      // before it is written over
        };
        for (const View& v : s.in) read(v.buffer);
        if (!s.kernel) continue;
        for (const Value& v : s.kernel->values)
            if (v.buffer >= 0) read(s.buffers[size_t(v.buffer)]);
        for (const StoreTo& t : s.kernel->stores)
            if (const Buffer& to = p.buffers[size_t(s.buffers[size_t(t.buffer)])]; to.place == Place::Out) written[size_t(to.index) + 1] = true;
    }
    CHECK(std::ranges::count(written, true) == 500);
}

TEST_CASE("limits: updates of many weights of one shape are a few kernels, of no more than 128 buffers each")
{
    Large l;
    const NodeRef keep = build::constant(l.g, Dtype::f32, 0.9), rate = build::constant(l.g, Dtype::f32, 1e-3), least = build::constant(l.g, Dtype::f32, 1e-8);
    for (int i = 0; i < 48; i++) {
        const NodeRef w = l.param({8}), m = l.param({8}), v = l.param({8}), d = l.param({8});
        const auto towards = [&](const NodeRef& x, const NodeRef& y) { return build::map(l.g, Op::add, {build::map(l.g, Op::mul, {x, keep}), build::map(l.g, Op::mul, {y, rate})}); };
        const NodeRef first = towards(m, d), second = towards(v, build::map(l.g, Op::mul, {d, d}));
        const NodeRef step = build::map(l.g, Op::div, {first, build::map(l.g, Op::add, {build::map(l.g, Op::sqrt, {second}), least})});
        l.add(build::map(l.g, Op::sub, {w, step}), 4 * i), l.add(first, 4 * i + 1), l.add(second, 4 * i + 2);
    }
    const Plan p = l.plan();
    CHECK(p.steps.size() <= 8);
    for (const Step& s : p.steps) CHECK(s.buffers.size() <= 128);

    Large sums;                                      // of one element each, and the sum of all: the length of a gradient
    NodeRef total;
    for (int i = 0; i < 300; i++) {
        const NodeRef x = sums.param({8 + i}), squares = build::reduce(sums.g, Op::sum, build::map(sums.g, Op::mul, {x, x}), 1, 0);
        total = total ? build::map(sums.g, Op::add, {total, squares}) : squares;
    }
    sums.add(total);
    const Plan q = sums.plan();
    CHECK(q.steps.size() <= 310);
    for (const Step& s : q.steps) CHECK(s.buffers.size() <= 128);
}

TEST_CASE("limits: reductions that wait for each other are kernels of no more than 31 passes")
{
    Large l;
    folds(l, 500);
    const Plan p = l.plan();
    CHECK(p.steps.size() <= 120);
    for (const Step& s : p.steps) {
        std::vector<int> passes(s.kernel->values.size(), 0);
        for (size_t v = 0; v < passes.size(); v++) {
            const Value& value = s.kernel->values[v];
            for (const int32_t a : value.args) passes[v] = std::max(passes[v], a < 0 ? 0 : passes[size_t(a)]);
            passes[v] += value.kind == ValueKind::Fold;
            REQUIRE(passes[v] <= 31);
        }
    }
}

TEST_CASE("limits: what is added to a long chain does not wait in registers for the chain's other end")
{
    Large l;
    const NodeRef x = l.param({8});
    NodeRef left = x, right = x;
    for (int i = 1; i <= 390; i++) {
        const NodeRef term = build::map(l.g, Op::sin, {build::map(l.g, Op::mul, {x, build::constant(l.g, Dtype::f32, 1 + i * 0.001)})});
        left = build::map(l.g, Op::add, {left, term}), right = build::map(l.g, Op::sub, {term, right});
    }
    for (const NodeRef& sum : {left, right}) {
        Target t;
        t.layout.dims = sum->dims(), t.layout.strides = dense_strides(sum->dims());
        const Plan p = schedule({&sum, 1}, {&t, 1}, 0);
        for (const Step& s : p.steps) CHECK(most_live(*s.kernel) <= 40);
    }
}
