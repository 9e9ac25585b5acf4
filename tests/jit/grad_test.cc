// Derivatives of everything that is no map against differences, and the rules of contract D1 to D9.
#include "tests/jit/grad_slopes.h"

#include <chrono>

namespace {

ng_conv_desc conv_of(int32_t stride, int32_t dilate, int32_t low, int32_t high, int32_t groups = 1, double pad = 0)
{
    ng_conv_desc d = {};
    d.size = sizeof d, d.groups = groups, d.pad_value = pad;
    for (int i = 0; i < 2; i++) d.stride[i] = stride, d.dilate[i] = dilate, d.pad_lo[i] = low, d.pad_hi[i] = high;
    return d;
}
ng_pool_desc pool_of(ng_pool_kind kind, int32_t window, int32_t stride, int32_t pad, uint32_t flags = 0)
{
    ng_pool_desc d = {};
    d.size = sizeof d, d.kind = kind, d.flags = flags;
    for (int i = 0; i < 2; i++) d.window[i] = window, d.stride[i] = stride, d.pad_lo[i] = d.pad_hi[i] = pad;
    return d;
}
size_t count_op(const NodeRef& e, Op op)
{
    size_t count = 0;
    for (const Node* n : topological({&e, 1})) count += n->op == op;
    return count;
}
ng_status status_of(const std::function<void()>& f, std::string* said = nullptr)
{
    try {
        f();
    } catch (const Error& e) {
        if (said) *said = e.text;
        return e.status;
    }
    return NG_OK;
}

}  // namespace

TEST_CASE("movement: derivatives are slopes, twice")
{
    Slopes s;
    const NodeRef x = s.param({3, 4}), z = s.param({2, 4});
    SUBCASE("reshape and permute with a new axis")
    {
        const int32_t axes[] = {1, -1, 0};
        s.check(s.text("x * x * x", {"x"}, {build::permute(s.g, build::reshape(s.g, x, {4, 3}), axes)}), 2);
    }
    SUBCASE("broadcast, of rank and of axes")
    {
        const NodeRef row = s.param({4}), column = s.param({3, 1});
        s.check(s.text("x * r * c * r", {"x", "r", "c"}, {x, row, column}), 2);
        s.check(build::broadcast(s.g, build::map(s.g, Op::square, {column}), {2, 3, 4}), 2);
    }
    SUBCASE("slices apart, overlapping, backwards, with steps, none")
    {
        s.check(s.text("square(x[:, 0:2]) * x[:, 2:4]", {"x"}, {x}), 2);
        s.check(s.text("square(x[:, 1:3])", {"x"}, {x}), 2);
        s.check(s.text("x[:, 0:3] * x[:, 1:4] * x[:, ::-1][:, 1:4]", {"x"}, {x}), 2);
        s.check(s.text("square(x[:, ::2]) + x[:, 1::2] * x[:, ::-2]", {"x"}, {x}), 2);
        s.check(s.text("sum(x[1:2]) * x", {"x"}, {x}), 2);
        s.check(s.text("square(x[:, 2:2])", {"x"}, {x}));
    }
    SUBCASE("concat, of one thing twice too")
    {
        const NodeRef parts[] = {x, z, x};
        s.check(build::map(s.g, Op::square, {build::concat(s.g, parts, 0)}), 2);
    }
    SUBCASE("views that overlap, window, bits of floats")
    {
        Layout seen = s.layout(Dtype::f64, {4, 3});
        seen.strides = {2, 1};
        s.check(build::map(s.g, Op::square, {build::view(s.g, x, seen, 3)}), 2);
        s.check(build::map(s.g, Op::square, {build::window(s.g, x, 1, s.integers({}, {1}), 2)}), 2);
    }
    SUBCASE("casts between floats pass, to integers they do not")
    {
        const NodeRef key = build::constant_int(s.g, Dtype::u64, 1);
        s.check(s.text("f64(f16(x * x)) + f64(f32(x))", {"x"}, {x}), 2);
        s.check(build::map(s.g, Op::square, {build::cast(s.g, build::cast_stochastic(s.g, x, Dtype::bf16, 0, key, {}), Dtype::f64)}));
        bool missing = false;
        s.derived(s.text("f64(i32(x)) + floor(x)", {"x"}, {x}), {}, x, &missing);
        CHECK(missing);
    }
}

TEST_CASE("movement: lengths may be unknown")
{
    Slopes s;
    s.in.lengths = {5};
    const Extent n = Extent::variable(0);
    const NodeRef x = s.param({n, 2});
    s.check(s.text("x[1:] * x[:-1]", {"x"}, {x}), 2);
    s.check(s.text("square(x[2:])", {"x"}, {x}));
    s.check(build::map(s.g, Op::square, {build::reshape(s.g, x, {2, n})}));
    s.check(s.text("mean(x * x, 0)", {"x"}, {x}), 2);
    s.check(build::reduce(s.g, Op::prod, x, NG_AXIS_0, 0));
    s.check(build::reduce(s.g, Op::max, build::map(s.g, Op::square, {x}), NG_ALL, 0));
    s.check(build::scan(s.g, build::map(s.g, Op::square, {x}), 0, NG_FOLD_MAX, 0));
}

TEST_CASE("index: take and put are each other's derivatives")
{
    Slopes s;
    const NodeRef x = s.param({2, 4, 3}), at = s.integers({2, 3}, {3, 0, 3, -1, 2, 4}), y = s.param({2, 2, 3, 3});
    SUBCASE("take, out of range too") { s.check(build::map(s.g, Op::square, {build::take(s.g, x, at, 1)}), 2); }
    SUBCASE("take by a scalar") { s.check(build::map(s.g, Op::square, {build::take(s.g, x, s.integers({}, {2}), 1)}), 2); }
    SUBCASE("put, summed and stored")
    {
        for (const uint32_t how : {NG_FOLD_SUM, NG_FOLD_LAST})
            s.check(build::put(s.g, build::map(s.g, Op::square, {x}), at, build::map(s.g, Op::square, {y}), 1, how), 2);
    }
    SUBCASE("put of extremes")
    {
        for (const uint32_t how : {NG_FOLD_MIN, NG_FOLD_MAX})
            s.check(build::put(s.g, build::map(s.g, Op::sinh, {x}), at, build::map(s.g, Op::sinh, {y}), 1, how), 2);
    }
    SUBCASE("put of a broadcast y") { s.check(build::put(s.g, x, at, s.param({3}), 1, NG_FOLD_SUM)); }
    SUBCASE("put of products: by what is there, but not by what is put")
    {
        const NodeRef r = build::put(s.g, x, at, y, 1, NG_FOLD_PROD);
        CHECK(status_of([&] { s.derived(r, {}, y); }) == NG_E_UNSUPPORTED);
        s.variables = {x};
        s.check(r);
    }
    SUBCASE("a sorted axis")
    {
        const NodeRef v = s.param({6}), sorted = build::take(s.g, v, build::argsort(s.g, v, 0, NG_REVERSE), 0);
        s.check(build::map(s.g, Op::mul, {build::map(s.g, Op::square, {sorted}), s.param({6})}), 2);
    }
}

TEST_CASE("index: of equal values put to the extreme, x is the first, then the least index")
{
    Slopes s;
    const NodeRef x = s.param({{3}, {5, 1, 0}}, {3}), y = s.param({{5}, {5, 2, 2, 7, 7}}, {5}), at = s.integers({5}, {0, 1, 1, 2, 2});
    const NodeRef r = build::put(s.g, x, at, y, 0, NG_FOLD_MAX);
    CHECK(s.numbers(s.derived(r, {}, x)) == std::vector<double>{1, 0, 0});
    CHECK(s.numbers(s.derived(r, {}, y)) == std::vector<double>{0, 1, 0, 1, 0});
}

TEST_CASE("index: scans and segments")
{
    Slopes s;
    const NodeRef x = s.param({2, 5, 2}), square = build::map(s.g, Op::sinh, {x});
    for (const uint32_t flags : {0, int(NG_EXCLUSIVE), int(NG_REVERSE), NG_EXCLUSIVE | NG_REVERSE}) {
        s.check(build::scan(s.g, square, 1, NG_FOLD_SUM, flags), 2);
        s.check(build::scan(s.g, square, 1, NG_FOLD_LAST, flags));
        for (const uint32_t how : {NG_FOLD_MIN, NG_FOLD_MAX}) {
            NodeRef r = build::scan(s.g, square, 1, how, flags);
            if (flags & NG_EXCLUSIVE) r = s.text("where(abs(r) < 1e9, r, 0)", {"r"}, {r});   // the infinite identity
            s.check(r, flags ? 1 : 2);
        }
    }
    CHECK(status_of([&] { s.derived(build::scan(s.g, x, 1, NG_FOLD_PROD, 0), {}, x); }) == NG_E_UNSUPPORTED);

    const NodeRef v = s.param({7, 2}), offsets = s.integers({5}, {1, 3, 3, 6, 7});
    for (const uint32_t how : {NG_FOLD_SUM, NG_FOLD_LAST, NG_FOLD_MIN, NG_FOLD_MAX}) {
        const NodeRef r = build::segment(s.g, build::map(s.g, Op::sinh, {v}), offsets, how);
        s.check(s.text("where(abs(r) < 1e9, r, 0)", {"r"}, {r}), how == NG_FOLD_SUM ? 2 : 1);
    }
    const NodeRef early = s.integers({3}, {0, 2, 4});
    s.check(build::segment(s.g, v, early, NG_FOLD_SUM));
    s.check(build::segment(s.g, v, early, NG_FOLD_MAX));
}

TEST_CASE("folds: over one axis, several, all, and of products with zeros")
{
    Slopes s;
    const NodeRef x = s.param({2, 3, 4}), sinh = build::map(s.g, Op::sinh, {x});
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max})
        for (const ng_axes axes : {ng_axes(NG_AXIS_1), ng_axes(NG_AXIS_0 | NG_AXIS_2), ng_axes(NG_ALL)}) s.check(build::reduce(s.g, op, sinh, axes, 0), 2);
    const NodeRef v = s.param({{2, 5}, {1.5, 0, 2, -1, 3, 0, 1, 2, 0, -2}}, {2, 5});
    s.check(build::reduce(s.g, Op::prod, v, NG_AXIS_1, 0), 3);
    for (const int64_t n : {1, 2, 3, 7}) s.check(build::reduce(s.g, Op::prod, s.param({n}), NG_ALL, NG_KEEP), 2);
    s.check(build::reduce(s.g, Op::sum, s.param({0, 3}), NG_AXIS_0, 0));
    s.check(build::reduce(s.g, Op::prod, s.param({0, 3}), NG_AXIS_0, 0));
}

TEST_CASE("folds: statistics and normalisations, twice")
{
    Slopes s;
    const NodeRef x = s.param({3, 4});
    for (const Op op : {Op::mean, Op::var, Op::std, Op::norm, Op::logsumexp}) s.check(build::reduce(s.g, op, x, NG_AXIS_1, 0), 2);
    for (const Op op : {Op::softmax, Op::log_softmax}) s.check(build::norm(s.g, op, x, NG_AXIS_1), 2);
    // Two rules with one cotangent's param in each other.
    s.check(build::norm(s.g, Op::softmax, build::norm(s.g, Op::softmax, x, NG_AXIS_1), NG_AXIS_1), 2);
}

TEST_CASE("folds: ties go to the first place, of several axes in row-major order")
{
    Slopes s;
    const NodeRef x = s.param({{2, 2, 2}, {1, 2, 3, 3, 2, 3, 1, 1}}, {2, 2, 2});
    CHECK(s.numbers(s.derived(build::reduce(s.g, Op::max, x, NG_ALL, 0), {}, x)) == std::vector<double>{0, 0, 1, 0, 0, 0, 0, 0});
    CHECK(s.numbers(s.derived(build::reduce(s.g, Op::max, x, NG_AXIS_0 | NG_AXIS_2, 0), {}, x)) == std::vector<double>{0, 0, 1, 0, 0, 1, 0, 0});
    CHECK(s.numbers(s.derived(build::reduce(s.g, Op::min, x, NG_AXIS_1, 0), {}, x)) == std::vector<double>{1, 1, 0, 0, 0, 0, 1, 1});
}

TEST_CASE("products: matrices, with batches that broadcast")
{
    Slopes s;
    const NodeRef a = s.param({2, 3}), b = s.param({3, 4}), batch = s.param({2, 2, 2, 3}), row = s.param({2, 1, 3, 2}), v = s.param({3});
    SUBCASE("plain") { s.check(build::matmul(s.g, a, b, 0), 2); }
    SUBCASE("one matrix for the batch")
    {
        const NodeRef y = build::matmul(s.g, batch, b, NG_TF32);
        s.variables = {batch, b};
        s.check(y, 2);
        const NodeRef db = s.derived(y, {}, b);
        CHECK(count_op(db, Op::sum) == 0);
        for (const Node* n : topological({&db, 1}))
            if (n->op == Op::matmul) CHECK(n->value == NG_TF32);      // D7
    }
    SUBCASE("one batch for the matrix") { s.variables = {a, row}, s.check(build::matmul(s.g, a, row, 0), 2); }
    SUBCASE("batches of 1 across") { s.variables = {batch, row}, s.check(build::matmul(s.g, batch, row, 0)); }
    SUBCASE("vectors") { s.variables = {a, v}, s.check(build::matmul(s.g, a, v, 0), 2), s.check(build::matmul(s.g, v, v, 0), 2); }
}

TEST_CASE("products: convolution and its derivatives are closed")
{
    Slopes s;
    const NodeRef x = s.param({2, 4, 6, 5}), w = s.param({2, 2, 2, 3});
    SUBCASE("groups, strides, dilation, uneven padding")
    {
        const ng_conv_desc d = conv_of(2, 1, 1, 0, 2), e = conv_of(1, 2, 1, 2, 2);
        s.check(build::conv(s.g, x, w, &d));
        s.check(build::conv(s.g, x, w, &e));
    }
    SUBCASE("twice, with a padding value")
    {
        const NodeRef u = s.param({1, 1, 4, 4}), k = s.param({2, 1, 2, 2});
        s.variables = {u, k};
        const ng_conv_desc d = conv_of(1, 1, 1, 0, 1, 0.75);
        s.check(build::map(s.g, Op::square, {build::conv(s.g, u, k, &d)}), 2);
    }
    SUBCASE("of what the caller writes")
    {
        const NodeRef k = s.param({2, 1, 2}), dy = s.param({1, 2, 3}), line = s.param({1, 1, 5});
        s.variables = {k, dy, line};
        ng_conv_desc d = {};
        d.size = sizeof d, d.stride[0] = 2, d.pad_hi[0] = 1;
        s.check(build::conv_dx(s.g, k, dy, s.layout(Dtype::f64, {1, 1, 5}), &d), 2);
        // What pads x is no part of its derivative, and of that one's neither.
        ng_conv_desc valued = d;
        valued.pad_value = 0.75;
        s.check(build::conv_dx(s.g, k, dy, s.layout(Dtype::f64, {1, 1, 5}), &valued), 2);
        s.check(build::conv_dw(s.g, line, dy, s.layout(Dtype::f64, {2, 1, 2}), &d), 2);
    }
}

TEST_CASE("products: pooling, three times")
{
    Slopes s;
    for (const ng_pool_kind kind : {NG_POOL_MAX, NG_POOL_MEAN, NG_POOL_L2})
        for (const uint32_t flags : {0, int(NG_POOL_COUNT_PAD)}) {
            Slopes p;
            const NodeRef x = p.param({1, 2, 4, 3});
            const ng_pool_desc d = pool_of(kind, 2, 1, 1, flags);
            p.check(build::pool(p.g, x, &d), 2);
        }
    for (const ng_pool_kind kind : {NG_POOL_MAX, NG_POOL_MEAN, NG_POOL_L2}) {
        Slopes p;
        const NodeRef x = p.param({1, 3, 4});
        ng_pool_desc d = {};
        d.size = sizeof d, d.kind = kind, d.window[0] = 2, d.channel_window = 2, d.channel_stride = 1, d.channel_pad = 1;
        p.check(build::pool(p.g, x, &d), 3);
    }
    // Ties go to the first of a window; of a window of zeros the L2 slope is 0.
    const NodeRef x = s.param({{1, 1, 4}, {3, 3, 0, 0}}, {1, 1, 4});
    ng_pool_desc d = {};
    d.size = sizeof d, d.window[0] = 2;
    CHECK(s.numbers(s.derived(build::pool(s.g, x, &d), {}, x)) == std::vector<double>{1, 0, 1, 0});
    d.kind = NG_POOL_L2;
    const NodeRef first = s.derived(build::pool(s.g, x, &d), {}, x), second = s.derived(build::map(s.g, Op::square, {first}), {}, x);
    CHECK(s.numbers(first)[2] == 0);
    for (const double v : s.numbers(second)) CHECK(std::isfinite(v));
}

TEST_CASE("D1: seeds, several outputs, ones without; cotangents of narrow variables are f32 and cast once")
{
    Slopes s;
    const NodeRef x = s.param({{3}, {1, 2, 3}}, {3}), dy = s.param({{3}, {1, 10, 100}}, {3});
    const NodeRef y[] = {s.text("x * x", {"x"}, {x}), s.text("sum(x)", {"x"}, {x})}, seeds[] = {dy, build::weak_int(s.g, 7)}, twice[] = {x, x};
    std::vector<NodeRef> dx;
    CHECK_FALSE(grad(s.g, y, seeds, twice, dx));
    CHECK(s.numbers(dx[0]) == std::vector<double>{9, 47, 607});
    CHECK(dx[0] == dx[1]);                                            // D2: the same twice
    const NodeRef half[] = {seeds[0], {}};
    grad(s.g, y, half, twice, dx);
    CHECK(s.numbers(dx[0]) == std::vector<double>{3, 41, 601});
    grad(s.g, y, {}, twice, dx);
    CHECK(s.numbers(dx[0]) == std::vector<double>{3, 5, 7});

    const NodeRef h = s.param({3}, -1, 1, Dtype::f16), d = s.derived(s.text("h * h + h", {"h"}, {h}), {}, h);
    CHECK(d->op == Op::cast);
    for (const Node* n : topological({&d, 1})) CHECK((n->dtype == Dtype::f32 || n == d.get() || n == h.get()));
    const NodeRef f = s.param({3}, -1, 1, Dtype::f32), wide = s.derived(s.text("f64(f) * f64(f)", {"f"}, {f}), {}, f);
    CHECK(wide->dtype == Dtype::f32);
}

TEST_CASE("D2: leaves of one tensor and params of one index are one variable, a tag is one inside")
{
    Slopes s;
    const auto tensor = std::make_shared<int>(1);
    Graph other;
    const Layout l = s.layout(Dtype::f64, {2});
    const NodeRef a = build::leaf(s.g, tensor, l), b = build::leaf(other, tensor, l), none = build::leaf(s.g, std::make_shared<int>(2), l);
    s.in.leaves[tensor.get()] = {{2}, {3, 4}};
    CHECK(s.numbers(s.derived(build::map(s.g, Op::mul, {a, b}), {}, a)) == std::vector<double>{6, 8});
    bool missing = false;
    CHECK(s.numbers(s.derived(a, {}, none, &missing)) == std::vector<double>{0, 0});
    CHECK(missing);
    const NodeRef t = build::tag(s.g, build::map(s.g, Op::mul, {a, a}), "square"), y = build::map(s.g, Op::mul, {t, t});
    const NodeRef both[] = {t, a};
    std::vector<NodeRef> dx;
    CHECK_FALSE(grad(s.g, {&y, 1}, {}, both, dx));
    CHECK(s.numbers(dx[0]) == std::vector<double>{18, 32});
    CHECK(s.numbers(dx[1]) == std::vector<double>{4 * 27, 4 * 64});
}

TEST_CASE("D3: faults have their status and leave dx alone")
{
    Slopes s;
    const NodeRef x = s.param({3}), i = s.param({3}, 0, 9, Dtype::i32), y = s.text("x * x", {"x"}, {x}), small = s.param({2});
    std::vector<NodeRef> dx = {x};
    const auto fault = [&](NodeRef of, NodeRef by, NodeRef seed) {
        const NodeRef seeds[] = {seed};
        return status_of([&] { grad(s.g, {&of, 1}, seed ? std::span(seeds) : std::span<const NodeRef>(), {&by, 1}, dx); });
    };
    CHECK(fault(y, y, {}) == NG_E_INVALID);
    CHECK(fault(y, i, {}) == NG_E_DTYPE);
    CHECK(fault(y, build::tag(s.g, build::cast(s.g, x, Dtype::i32), "count"), {}) == NG_E_DTYPE);
    CHECK(fault(i, x, {}) == NG_E_DTYPE);
    CHECK(fault(y, x, small) == NG_E_SHAPE);
    std::string said;
    const NodeRef f = s.param({3}, -1, 1, Dtype::f16), bits = build::tag(s.g, build::bitcast(s.g, f, Dtype::bf16), "bits");
    CHECK(status_of([&] { grad(s.g, {&bits, 1}, {}, {&f, 1}, dx); }, &said) == NG_E_UNSUPPORTED);
    CHECK(said.find("bits") != said.npos);
    CHECK(dx == std::vector<NodeRef>{x});
    // A weak constant has a type of its own; a seed may have any.
    CHECK(fault(build::weak(s.g, 1.5), x, {}) == NG_OK);
    CHECK(fault(build::weak_int(s.g, 2), x, {}) == NG_E_DTYPE);
    CHECK(fault(poison(Error(NG_E_LIMIT, "first fault")), x, {}) == NG_E_LIMIT);
}

TEST_CASE("rules of the caller: surrogates and own derivatives")
{
    Slopes s;
    const NodeRef x = s.param({{3}, {0.4, 1.6, -2.7}}, {3}), k = s.param({{3}, {5, 0.5, -7}}, {3});
    const NodeRef through = build::surrogate(s.g, build::map(s.g, Op::rint, {x}), x);
    CHECK(s.numbers(s.derived(build::map(s.g, Op::square, {through}), {}, x)) == std::vector<double>{0, 4, -6});
    CHECK(s.numbers(s.derived(s.text("x * stop(x)", {"x"}, {x}), {}, x)) == s.numbers(x));
    bool missing = false;
    s.derived(s.text("stop(x)", {"x"}, {x}), {}, x, &missing);
    CHECK(missing);

    const NodeRef dy = build::param(s.g, 60, s.layout(Dtype::f64, {3})), clip = s.text("clip(d, -1, 1)", {"d"}, {dy});
    const NodeRef own = build::custom_grad(s.g, x, dy, {&x, 1}, {&clip, 1});
    CHECK(s.numbers(s.derived(build::map(s.g, Op::mul, {own, k}), {}, x)) == std::vector<double>{1, 0.5, -1});
    // Below x[i] it goes on, y gives nothing, and of an inner rule with the same dy each has its own.
    const NodeRef twice = s.text("2 * x", {"x"}, {x}), dx = s.text("10 * d", {"d"}, {dy});
    const NodeRef inner = build::custom_grad(s.g, twice, dy, {&twice, 1}, {&dx, 1});
    const NodeRef outer = build::custom_grad(s.g, inner, dy, {&inner, 1}, {&dx, 1});
    CHECK(s.numbers(s.derived(outer, {}, x)) == std::vector<double>{200, 200, 200});
    const NodeRef scaled = s.text("d * k", {"d", "k"}, {dy, k}), own_k = build::custom_grad(s.g, x, dy, {&x, 1}, {&scaled, 1});
    const NodeRef nested = s.text("d * e", {"d", "e"}, {dy, own_k}), first = s.derived(build::custom_grad(s.g, x, dy, {&x, 1}, {&nested, 1}), k, x);
    CHECK(s.numbers(s.derived(first, x, x)) == s.numbers(s.text("x * k * k", {"x", "k"}, {x, k})));
}

TEST_CASE("rules of the caller: a dy that y or an x uses is refused; thousands of rules, of one dy or of many, are searched in linear time")
{
    Slopes s;
    s.g = Graph(size_t(1) << 20, 9);
    const NodeRef dy = s.param({3}), other = s.param({3}), x = s.param({3}), dx = s.text("d * x", {"d", "x"}, {dy, x}), uses = s.text("x + d", {"d", "x"}, {dy, x});
    const auto says = [&](const NodeRef& y, const NodeRef& at) {
        try {
            return build::custom_grad(s.g, y, dy, {&at, 1}, {&dx, 1}), std::string();
        } catch (const Error& e) {
            return e.text.substr(0, e.text.find(','));
        }
    };
    const std::string y_uses = "ng_custom_grad: y uses dy", x_uses = "ng_custom_grad: x[0] uses dy";
    CHECK((says(uses, x) == y_uses && says(dy, x) == y_uses && says(build::surrogate(s.g, uses, x), x) == y_uses && says(x, dy) == x_uses && says(x, uses) == x_uses));
    const NodeRef inner = build::custom_grad(s.g, x, other, {&x, 1}, {&dx, 1});       // dy in an inner rule's derivative is no part of its value
    CHECK((says(inner, inner) == "" && says(build::custom_grad(s.g, uses, other, {&x, 1}, {&dx, 1}), x) == y_uses));

    const auto seconds = [](int count, bool is_shared) {            // of h + rule(sin(h)), of one dy that was there first or of one a rule
        Graph g(size_t(1) << 20, 8);
        const Layout l = Slopes().layout(Dtype::f32, {3});
        NodeRef d = build::param(g, 0, l), h = build::param(g, 1, l);
        const auto start = std::chrono::steady_clock::now();
        for (uint32_t i = 2; i < 2 + uint32_t(count); i++) {
            if (!is_shared) d = build::param(g, i, l);
            const NodeRef by = build::map(g, Op::mul, {d, h}), rule = build::custom_grad(g, build::map(g, Op::sin, {h}), d, {&h, 1}, {&by, 1});
            h = build::map(g, Op::add, {h, rule});
        }
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    for (const bool is_shared : {true, false}) CHECK(seconds(16000, is_shared) < 64 * seconds(1000, is_shared) + 0.2);     // 16 if linear, 256 if quadratic
}

TEST_CASE("D9: a chain of 100000 nodes, a thousand slices, a thousand rules: linear")
{
    const auto seconds = [](const std::function<void()>& f) {
        const auto start = std::chrono::steady_clock::now();
        f();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const auto chain = [&](int count) {
        Slopes s;
        const NodeRef x = s.param({2});
        NodeRef y = x;
        for (int i = 0; i < count; i++) y = build::map(s.g, i % 2 ? Op::sin : Op::cos, {y});
        return seconds([&] { s.derived(y, {}, x); });
    };
    const double short_chain = chain(12500), long_chain = chain(100000);
    MESSAGE("12500 nodes: " << short_chain << " s, 100000 nodes: " << long_chain << " s");
    CHECK(long_chain < 40 * short_chain + 0.5);                     // 8 if linear, 64 if quadratic

    Slopes s;
    const NodeRef x = s.param({1001, 2}), at = s.integers({1}, {3});
    NodeRef overlapping = build::constant(s.g, Dtype::f64, 0), apart = overlapping, taken = overlapping;
    for (int64_t i = 0; i < 1000; i++) {
        const NodeRef k = build::constant(s.g, Dtype::f64, double(i + 1));
        overlapping = build::map(s.g, Op::add, {overlapping, build::map(s.g, Op::mul, {build::slice(s.g, x, 0, i, i + 2, 1), k})});
        apart = build::map(s.g, Op::add, {apart, build::map(s.g, Op::mul, {build::slice(s.g, x, 0, i, i + 1, 1), k})});
        taken = build::map(s.g, Op::add, {taken, build::map(s.g, Op::mul, {build::take(s.g, x, build::map(s.g, Op::add, {at, build::weak_int(s.g, i)}), 0), k})});
    }
    // Each put goes into what the one before it gave: one buffer, begun as zeros.
    for (const NodeRef& y : {overlapping, taken}) {
        const NodeRef d = s.derived(y, {}, x);
        CHECK(count_op(d, Op::put) == 1000);
        const Node* n = d.get();
        while (n->op == Op::put) n = n->arg(0).get();
        CHECK(n->op == Op::broadcast);
    }
    CHECK(count_op(s.derived(apart, {}, x), Op::concat) == 1);

    const auto layers = [&](int count) {
        Slopes t;
        const NodeRef v = t.param({4});
        NodeRef y = v;
        for (int i = 0; i < count; i++) y = build::norm(t.g, Op::softmax, build::map(t.g, Op::exp, {y}), NG_ALL);
        return seconds([&] { t.derived(y, {}, v); });
    };
    const double few = layers(500), many = layers(4000);
    MESSAGE("500 softmaxes: " << few << " s, 4000: " << many << " s");
    CHECK(many < 40 * few + 0.5);
}
