// Equal nodes are one node, graphs of a million nodes live and die without recursion, and every walk puts operands first.
#include "jit/build.h"
#include "jit/flat_map.h"
#include "jit/snapshot.h"

#include <doctest/doctest.h>

#include <chrono>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <random>
#include <thread>
#include <unordered_map>

using namespace ng;

namespace {

Layout layout(Extents dims, Dtype t = Dtype::f32)
{
    Layout l;
    l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
    return l;
}
NodeRef param(Graph& g, uint32_t index, Extents dims, Dtype t = Dtype::f32) { return build::param(g, index, layout(std::move(dims), t)); }
NodeRef negated(Graph& g, const NodeRef& x, int64_t value = 0) { return build::make(g, Op::neg, x->dtype, x->shape, {x}, value); }

// Runs body on a thread whose stack is 128 KiB: a recursion of a million steps has no room there.
void on_small_stack(std::function<void()> body)
{
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, 128 * 1024) == 0);
    pthread_t thread;
    const auto run = [](void* p) -> void* {
        (*static_cast<std::function<void()>*>(p))();
        return nullptr;
    };
    REQUIRE(pthread_create(&thread, &attributes, run, &body) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
}

struct LowBits {
    static uint32_t of(uint64_t key) { return uint32_t(key); }
};

// Whether operands stand before their users and every node once.
bool is_sorted(const std::vector<const Node*>& order)
{
    std::unordered_map<const Node*, size_t> at;
    for (size_t i = 0; i < order.size(); i++)
        if (!at.emplace(order[i], i).second) return false;
    for (size_t i = 0; i < order.size(); i++)
        for (const NodeRef& a : order[i]->args())
            if (!at.contains(a.get()) || at.at(a.get()) >= i) return false;
    return true;
}

}  // namespace

TEST_CASE("intern: equal nodes of one graph are one node, of two graphs they are not")
{
    Graph g, other;
    const NodeRef x = param(g, 0, {4}), y = param(g, 1, {4});
    const size_t before = g.size();
    CHECK(param(g, 0, {4}) == x);
    CHECK(g.size() == before);
    CHECK(build::map(g, Op::add, {x, y}) == build::map(g, Op::add, {x, y}));
    CHECK_FALSE(build::map(g, Op::add, {x, y}) == build::map(g, Op::add, {y, x}));
    CHECK_FALSE(param(other, 0, {4}) == x);
}

TEST_CASE("intern: whatever tells two nodes apart makes them two")
{
    Graph g;
    const NodeRef x = param(g, 0, {4});
    const auto node = [&](Op op, Dtype t, Extents dims, std::vector<NodeRef> args, int64_t value, const std::function<void(Node&)>& more = {}) {
        Ref<Node> n = build::raw(op, t, build::shape_ref(std::move(dims)), args, value);
        if (more) more(*n);
        return g.intern(n);
    };
    const int tensors[2] = {};
    const auto lent = [&](int i) { return std::shared_ptr<void>(const_cast<int*>(&tensors[i]), [](void*) {}); };
    std::vector<NodeRef> all = {
        node(Op::neg, Dtype::f32, {4}, {x}, 0), node(Op::abs, Dtype::f32, {4}, {x}, 0), node(Op::neg, Dtype::f64, {4}, {x}, 0),
        node(Op::neg, Dtype::f32, {4, 1}, {x}, 0), node(Op::neg, Dtype::f32, {Extent::variable(0)}, {x}, 0), node(Op::neg, Dtype::f32, {4}, {x}, 1),
        node(Op::neg, Dtype::f32, {4}, {}, 0), node(Op::neg, Dtype::f32, {4}, {x, x}, 0), node(Op::neg, Dtype::f32, {4}, {x, x, x, x}, 0),
        node(Op::neg, Dtype::f32, {4}, {x, x, x, x, x}, 0),
        node(Op::neg, Dtype::f32, {4}, {x}, 0, [](Node& n) { n.weak = true; }), node(Op::neg, Dtype::f32, {4}, {x}, 0, [](Node& n) { n.more().ints = {1}; }),
        node(Op::neg, Dtype::f32, {4}, {x}, 0, [](Node& n) { n.more().ints = {2}; }), node(Op::neg, Dtype::f32, {4}, {x}, 0, [](Node& n) { n.more().extents = {2}; }),
        node(Op::neg, Dtype::f32, {4}, {x}, 0, [](Node& n) { n.more().text = "a"; }), node(Op::neg, Dtype::f32, {4}, {x}, 0, [](Node& n) { n.more().text = "b"; }),
        node(Op::neg, Dtype::f32, {4}, {x}, 0, [&](Node& n) { n.more().tensor = lent(0); }), node(Op::neg, Dtype::f32, {4}, {x}, 0, [&](Node& n) { n.more().tensor = lent(1); })};
    for (size_t i = 0; i < all.size(); i++)
        for (size_t j = 0; j < i; j++) CHECK_FALSE(all[i] == all[j]);
    CHECK(node(Op::neg, Dtype::f32, {4}, {x, x, x, x, x}, 0) == all[9]);
    CHECK(node(Op::neg, Dtype::f32, {4}, {x}, 0, [](Node& n) { n.more().text = "b"; }) == all[15]);
    CHECK(node(Op::neg, Dtype::f32, {4}, {x}, 0, [&](Node& n) { n.more().tensor = lent(1); }) == all[17]);
    // Zeros of either sign are two numbers; NaN is one.
    CHECK_FALSE(build::constant(g, Dtype::f32, 0.0) == build::constant(g, Dtype::f32, -0.0));
    CHECK(build::constant(g, Dtype::f32, 0.1) == build::constant(g, Dtype::f32, 0.1));
    CHECK_FALSE(build::constant(g, Dtype::f32, 1) == build::weak(g, 1));
    CHECK_FALSE(build::constant_int(g, Dtype::i32, 1) == build::constant_int(g, Dtype::i64, 1));
}

TEST_CASE("intern: a full graph is NG_E_LIMIT and says how full, but what it has it still finds")
{
    Graph g(3);
    const NodeRef a = param(g, 0, {4}), b = param(g, 1, {4}), c = param(g, 2, {4});
    CHECK(g.size() == 3);
    CHECK(param(g, 1, {4}) == b);
    for (int again = 0; again < 2; again++) {
        ng_status status = NG_OK;
        try {
            (void)param(g, 3, {4});
        } catch (const Error& e) {
            status = e.status;
            CHECK(e.text.find("3 nodes") != std::string::npos);
        }
        CHECK(status == NG_E_LIMIT);
        CHECK(g.size() == 3);
    }
    CHECK(param(g, 0, {4}) == a);
    CHECK(param(g, 2, {4}) == c);
}

TEST_CASE("intern: a hundred thousand nodes are all found again")
{
    Graph g;
    std::vector<NodeRef> all;
    for (int64_t i = 0; i < 100000; i++) all.push_back(build::constant_int(g, Dtype::i64, i * 7919));
    CHECK(g.size() == all.size());
    size_t found = 0;
    for (int64_t i = 0; i < 100000; i++) found += build::constant_int(g, Dtype::i64, i * 7919) == all[size_t(i)];
    CHECK(found == all.size());
    CHECK(g.size() == all.size());
}

TEST_CASE("nodes: they outlive their graph, and keep what they use alive")
{
    NodeRef y;
    {
        Graph g;
        y = build::map(g, Op::add, {param(g, 0, {2, 3}), param(g, 1, {3})});
    }
    CHECK(y->op == Op::add);
    CHECK(y->arg(1)->op == Op::broadcast);
    CHECK(text_of(y->arg(1)->arg(0)->dims()) == "[3]");
    CHECK(y->owners() == 1);
}

TEST_CASE("destroy: a chain of a million nodes, a comb and a wide node end without recursion")
{
    on_small_stack([] {
        NodeRef last, comb, wide;
        {
            Graph g(size_t(1) << 22);
            const NodeRef x = param(g, 0, {4});
            last = x;
            for (int64_t i = 0; i < 1000000; i++) last = negated(g, last, i);
            comb = x;
            for (int64_t i = 0; i < 100000; i++) comb = build::make(g, Op::add, Dtype::f32, x->shape, {comb, negated(g, x, -2 - i)}, i);
            std::vector<NodeRef> many(1000, last);
            many.push_back(comb);
            wide = g.intern(build::raw(Op::concat, Dtype::f32, x->shape, many));
        }
        CHECK(topological({&wide, 1}).size() == 1000000 + 2 * 100000 + 2);
        wide = {}, comb = {};
        CHECK(last->owners() == 1);
        last = {};
    });
}

TEST_CASE("destroy: what others still hold stays")
{
    NodeRef middle;
    std::weak_ptr<void> tensor;
    {
        Graph g;
        auto thing = std::make_shared<int>(5);
        tensor = thing;
        const NodeRef x = build::leaf(g, thing, layout({4}));
        middle = negated(g, x, 1);
        NodeRef top = middle;
        for (int64_t i = 0; i < 100; i++) top = build::make(g, Op::add, Dtype::f32, x->shape, {top, top}, i);
    }
    CHECK(middle->owners() == 1);
    CHECK_FALSE(tensor.expired());
    CHECK(*static_cast<int*>(leaf_tensor(*middle->arg(0)).get()) == 5);
    middle = {};
    CHECK(tensor.expired());
}

TEST_CASE("leaves: bound anew they lend the new tensor, while other threads read")
{
    Graph g;
    const std::shared_ptr<int> one = std::make_shared<int>(1), two = std::make_shared<int>(2);
    const NodeRef x = build::leaf(g, one, layout({4}));
    CHECK(leaf_tensor(*x) == one);
    CHECK(leaf_binds(*x) == 0);
    bind_leaf(*x, two);
    CHECK(leaf_tensor(*x) == two);
    CHECK(leaf_binds(*x) == 1);
    CHECK(one.use_count() == 1);
    CHECK_FALSE(build::leaf(g, one, layout({4})) == x);       // x is a leaf of another tensor now
    std::atomic<bool> stop{false};
    std::atomic<int> odd{0};
    std::thread reader([&] {
        while (!stop)
            if (const int v = *std::static_pointer_cast<int>(leaf_tensor(*x)); v != 1 && v != 2) odd++;
    });
    for (int i = 0; i < 20000; i++) bind_leaf(*x, i % 2 ? one : two);
    stop = true;
    reader.join();
    CHECK(odd == 0);
    CHECK(leaf_binds(*x) == 20001);
    CHECK(one.use_count() + two.use_count() == 4);            // ours, x's and the other leaf's
}

TEST_CASE("topological: operands first, each node once, whatever the number of paths")
{
    Graph g;
    NodeRef x = param(g, 0, {4});
    for (int i = 0; i < 60; i++) x = build::map(g, Op::mul, {x, x});      // 2^60 paths
    CHECK(topological({&x, 1}).size() == 61);
    CHECK(is_sorted(topological({&x, 1})));
    std::mt19937 dice(1);
    std::vector<NodeRef> all = {param(g, 0, {4}), param(g, 1, {4})};
    for (int i = 0; i < 500; i++) all.push_back(build::make(g, Op::add, Dtype::f32, all[0]->shape, {all[dice() % all.size()], all[dice() % all.size()]}, i));
    const NodeRef roots[] = {all[500], all[17], all[501], all[17], all[0]};
    const std::vector<const Node*> order = topological(roots);
    CHECK(is_sorted(order));
    for (const NodeRef& r : roots) CHECK(std::ranges::count(order, r.get()) == 1);
    CHECK(topological({}).empty());
}

TEST_CASE("subst: a node, params by their index, leaves by their tensor, the first that stands for it; as many as there are nodes")
{
    Graph g;
    Layout l;
    l.dims = {4}, l.strides = {1};
    const std::shared_ptr<void> tensor = std::make_shared<int>(1);
    const NodeRef a = param(g, 0, {4}), b = param(g, 1, {4}), t = build::leaf(g, tensor, l), u = build::leaf(g, std::make_shared<int>(2), l);
    const NodeRef e = build::map(g, Op::add, {build::map(g, Op::mul, {a, t}), build::map(g, Op::exp, {u})}), inner = e->arg(1);
    Graph h;
    const NodeRef from[] = {param(h, 0, {4}), build::leaf(h, tensor, l), a, inner}, to[] = {b, a, u, b};
    CHECK(build::subst(g, e, from, to) == build::map(g, Op::add, {build::map(g, Op::mul, {b, a}), b}));
    CHECK(build::subst(g, e, {}, {}) == e);
    CHECK(build::subst(g, inner, {&inner, 1}, {&t, 1}) == t);

    const auto seconds = [&](uint32_t count) {
        std::vector<NodeRef> params, leaves;
        for (uint32_t i = 0; i < count; i++) params.push_back(param(g, i, {4})), leaves.push_back(build::leaf(g, std::make_shared<int>(3), l));
        NodeRef sum = params[0];
        for (const NodeRef& p : params) sum = build::map(g, Op::add, {sum, p});
        const auto start = std::chrono::steady_clock::now();
        const NodeRef is = build::subst(g, build::subst(g, sum, params, leaves), leaves, params);
        CHECK(is == sum);
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const double few = seconds(1000), many = seconds(16000);
    MESSAGE("1000 of 1000: " << few << " s, 16000 of 16000: " << many << " s");
    CHECK(many < 64 * few + 0.2);                                   // 16 if linear, 256 if quadratic
}

TEST_CASE("subst: what stands for an operand of a rule of the caller may not be its dy, nor use it")
{
    Graph g;
    const NodeRef x = param(g, 0, {4}), y = param(g, 1, {4}), dy = param(g, 5, {4}), dx = build::map(g, Op::mul, {dy, x});
    const NodeRef rule = build::custom_grad(g, build::map(g, Op::mul, {x, x}), dy, {&x, 1}, {&dx, 1}), twice = build::map(g, Op::add, {dy, dy}), by = build::map(g, Op::mul, {dy, y});
    CHECK(build::subst(g, rule, {&x, 1}, {&y, 1}) == build::custom_grad(g, build::map(g, Op::mul, {y, y}), dy, {&y, 1}, {&by, 1}));
    for (const auto& [from, to] : {std::pair(x, dy), std::pair(x, twice), std::pair(dy, x), std::pair(dy, twice)}) {
        ng_status status = NG_OK;
        try {
            (void)build::subst(g, rule, {&from, 1}, {&to, 1});
        } catch (const Error& error) {
            status = error.status;
        }
        CHECK(status == NG_E_INVALID);
    }
}

TEST_CASE("snapshot: numbered operands first, uses counted, and what only derivatives use left out")
{
    Graph g;
    const NodeRef x = param(g, 0, {4}), y = param(g, 1, {4}), z = param(g, 2, {4});
    const NodeRef s = build::surrogate(g, build::map(g, Op::mul, {x, x}), build::map(g, Op::exp, {y}));
    const NodeRef c = build::custom_grad(g, build::map(g, Op::add, {s, x}), z, {&x, 1}, {&z, 1});
    const NodeRef roots[] = {c, c, s};
    const Snapshot now(roots);
    CHECK(now.size() == 5);                                   // x, x * x, s, s + x, c: neither y nor z
    CHECK(std::ranges::find(now.nodes, y.get()) == now.nodes.end());
    CHECK(std::ranges::find(now.nodes, z.get()) == now.nodes.end());
    for (uint32_t i = 0; i < now.size(); i++) {
        CHECK(now.args(i).size() == computed_args(now[i]));
        for (size_t k = 0; k < now.args(i).size(); k++) {
            CHECK(now.arg(i, k) < i);
            CHECK(&now[now.arg(i, k)] == now[i].arg(k).get());
        }
    }
    REQUIRE(now.roots.size() == 3);
    CHECK(now.roots[0] == now.roots[1]);
    CHECK(now.uses[now.roots[0]] == 2);
    CHECK(now.uses[now.roots[2]] == 2);                       // of s + x, and a root
    const auto at = uint32_t(std::ranges::find(now.nodes, x.get()) - now.nodes.begin());
    CHECK(now.uses[at] == 3);
}

TEST_CASE("snapshot: what graphs have in common is there once, however late the second graph comes and wherever its nodes lie")
{
    for (const bool is_numbered : {true, false}) {
        Graph left(1000, is_numbered ? 1 : 0), right(1000, is_numbered ? 2 : 0);
        std::vector<NodeRef> tops;
        for (Graph* g : {&left, &right}) {
            NodeRef chain = param(*g, 0, {4});
            for (int i = 0; i < 200; i++) chain = build::map(*g, i % 2 ? Op::exp : Op::sin, {chain});
            tops.push_back(chain);
        }
        REQUIRE(tops[0] != tops[1]);
        const Snapshot now(tops);
        CHECK(now.size() == 201);
        CHECK(now.ops.size() == 201);
        CHECK(now.roots[0] == now.roots[1]);
        CHECK(now.uses[now.roots[0]] == 2);
    }
    // Each of a graph of its own, all of them in one place.
    std::vector<NodeRef> many;
    for (uint32_t i = 0; i < 300; i++) {
        Graph g;
        many.push_back(param(g, i % 100, {4}));
    }
    const Snapshot now(many);
    CHECK(now.size() == 100);
    for (uint32_t i = 0; i < 300; i++) CHECK(now[now.roots[i]].value == i % 100);
    CHECK(topological(many).size() == 300);
}

TEST_CASE("names: the nearest tag is found through what does not compute, and sentences have it")
{
    Graph g;
    const NodeRef x = build::tag(g, param(g, 0, {4, Extent::variable(0)}), "weights");
    CHECK(name_near(*x) == "weights");
    const NodeRef moved = build::cast(g, build::slice(g, x, 0, 1, 3, 1), Dtype::f16);
    CHECK(name_near(*moved) == "weights");
    CHECK(describe(*moved) == "\"weights\" f16 [2, -1]");
    CHECK(name_near(*build::map(g, Op::neg, {x})).empty());
    CHECK(describe(*build::map(g, Op::neg, {x})) == "f32 [4, -1]");
    NodeRef deep = x;
    for (int i = 0; i < 100; i++) deep = build::make(g, Op::keep, x->dtype, x->shape, {deep}, i);
    CHECK(name_near(*deep).empty());
}

TEST_CASE("names: of a long tag sentences have what it begins with, in whole characters, so that shapes have room")
{
    Graph g;
    const NodeRef x = param(g, 0, {4, Extent::variable(0)});
    const auto said = [&](const std::string& name) { return describe(*build::tag(g, x, name.c_str())); };
    const std::string even(48, 'a'), odd(47, 'a');
    CHECK(said(even) == "\"" + even + "\" f32 [4, -1]");
    CHECK(said(even + "b") == "\"" + even + "..\" f32 [4, -1]");
    for (const std::string character : {"\u00e9", "\u20ac", "\U0001f600"})
        for (size_t before = 48 - character.size(); before <= 48; before++) {
            const std::string front(before, 'a');
            CHECK(said(front + character + "b") == "\"" + front + (before + character.size() > 48 ? "" : character) + "..\" f32 [4, -1]");
        }
    CHECK(front_of("", 3) == "");
    CHECK(front_of("\x80\x80\x80\x80\x80\x80", 4) == "\x80");
}

TEST_CASE("poison: carries its fault, of no graph")
{
    const NodeRef n = poison(Error(NG_E_SHAPE, "ng_add: no", 3));
    CHECK(n->is_poison());
    CHECK(n->rank() == 0);
    CHECK(n->extra->error->status == NG_E_SHAPE);
    CHECK(n->extra->error->text == "ng_add: no");
    CHECK(n->extra->error->at == 3);
}

TEST_CASE("flat map: finds what a map of the standard library finds, through growth and erasure")
{
    std::mt19937_64 dice(3);
    FlatMap<uint64_t, LowBits, ~uint64_t(0)> map;
    std::unordered_map<uint64_t, int32_t> want;
    std::vector<uint64_t> order;
    const auto any_key = [&] {
        const uint64_t near = dice() % 300;
        return dice() % 3 == 0 ? near << 32 : dice() % 2 ? near : (near % 7) << 32 | near;
    };
    for (int i = 0; i < 200000; i++) {
        const uint64_t key = any_key();
        if (dice() % 5 == 0 && !order.empty()) {
            std::swap(order[dice() % order.size()], order.back());
            map.erase(order.back());
            want.erase(order.back());
            order.pop_back();
        } else if (dice() % 2) {
            const auto [value, fresh] = map.try_emplace(key, i);
            const auto [at, was_fresh] = want.try_emplace(key, i);
            REQUIRE(fresh == was_fresh);
            REQUIRE(*value == at->second);
            if (fresh) order.push_back(key);
        } else {
            const int32_t* value = map.find(key);
            REQUIRE((value != nullptr) == want.contains(key));
            if (value) REQUIRE(*value == want.at(key));
        }
    }
    map.erase(12345678);                                      // was never there
    for (const auto& [key, value] : want) CHECK(*map.find(key) == value);
    CHECK(map.find(uint64_t(1) << 60) == nullptr);
}
