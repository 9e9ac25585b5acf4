// Pooling and its derivative on the CPU against plain loops over every window: kinds, types, layouts, padding, ties and NaN.
#include "tests/backend/window_problems.h"

using namespace product_check;
using namespace ng::cpu;

namespace {

using Problem = PoolProblem<PoolWindow>;

// The place of the maximum: the first of equals, the first NaN where there is one; none of nothing.
const Index* most(Tensor& x, const Under& u)
{
    const Index* best = nullptr;
    for (const Index& i : u.places)
        if (!best || (x.get(i) > x.get(*best) && !std::isnan(x.get(*best))) || (std::isnan(x.get(i)) && !std::isnan(x.get(*best)))) best = &i;
    return best;
}

bool near(double have, double want, double eps) { return have == want || (std::isnan(have) && std::isnan(want)) || std::fabs(have - want) <= eps * std::fabs(want); }

struct Run {
    const Problem& p;
    Tensor &       x, &y, &dy, &dx;
    double         eps;

    void check_forward()
    {
        y.each([&](const Index& i) {
            const Under u = under(p, i);
            double      sum = 0;
            for (const Index& at : u.places) sum += p.kind == NG_POOL_L2 ? x.get(at) * x.get(at) : x.get(at);
            if (p.kind == NG_POOL_MAX) {
                const Index* best = most(x, u);
                if (!best) REQUIRE((!ng::is_float(x.type) || y.get(i) <= -448));
                else REQUIRE(std::memcmp(x.at(*best), y.at(i), size_t(ng::bytes_of(x.type))) == 0);
                return;
            }
            const double count = double(p.flags & NG_POOL_COUNT_PAD ? u.padded : int64_t(u.places.size()));
            REQUIRE(near(y.get(i), p.kind == NG_POOL_L2 ? std::sqrt(sum) : count > 0 ? sum / count : 0, eps));
        });
    }
    void check_backward()
    {
        std::vector<double> want(size_t(dx.count())), size(want.size());
        const auto          flat = [&](const Index& i) {
            int64_t n = 0;
            for (size_t a = 0; a < i.size(); a++) n = n * dx.dims[a] + i[a];
            return size_t(n);
        };
        const auto add = [&](const Index& i, double v) { want[flat(i)] += v, size[flat(i)] += std::fabs(v); };
        y.each([&](const Index& i) {
            const Under u = under(p, i);
            double      root = 0;
            for (const Index& at : u.places) root += x.get(at) * x.get(at);
            root = std::sqrt(root);
            const double count = double(p.flags & NG_POOL_COUNT_PAD ? u.padded : int64_t(u.places.size()));
            if (p.kind == NG_POOL_MAX) {
                if (const Index* best = most(x, u)) add(*best, dy.get(i));
                return;
            }
            for (const Index& at : u.places) add(at, p.kind == NG_POOL_MEAN ? dy.get(i) / count : root != 0 ? x.get(at) / root * dy.get(i) : 0);
        });
        dx.each([&](const Index& i) { REQUIRE(std::fabs(dx.get(i) - want[flat(i)]) <= 8 * eps * size[flat(i)]); });
    }
};

void check(const Problem& p, Dtype type, Layout layout, uint32_t workers = 1)
{
    const Dtype real = type == Dtype::f64 ? Dtype::f64 : Dtype::f32;
    const Lie   lie = lie_of(layout, p.x.size());
    Tensor      x(type, p.x, lie);
    x.fill(1);
    for (const char* level : LEVELS) {
        const ProductTable* table = product_table(level);
        if (!table) continue;
        INFO(level, " kind ", p.kind, " ", ng::name_of(type), " layout ", int(layout), " x ", p.x.back(), " window ", p.window.back(), " stride ", p.stride.back());
        Tensor            y(p.kind == NG_POOL_MAX ? type : real, p.dims_y(), lie), dy(real, p.dims_y(), lie), dx(real, p.x, lie), picked(real, p.dims_y()), v(real, p.x);
        const PoolWindow  window = p.described();
        Workspace         s(pool_workspace(*table, window, workers));
        Threads           threads{workers};
        const Workplace   place = {*table, s.data(), threads.parallel()};
        dy.fill(2), v.fill(3);
        pool(x.operand(), y.operand(), window, place);
        pool_dx(x.operand(), dy.operand(), dx.operand(), window, place);
        Run run = {p, x, y, dy, dx, real == Dtype::f64 ? 0x1p-48 : 0x1p-19};
        run.check_forward();
        run.check_backward();
        CHECK(s.is_intact());
        if (p.kind != NG_POOL_MAX) continue;
        pool_pick(x.operand(), v.operand(), picked.operand(), window, place);
        picked.each([&](const Index& i) {
            const Under  u = under(p, i);
            const Index* best = most(x, u);
            REQUIRE(picked.get(i) == (best ? v.get(*best) : 0));
        });
    }
}

const ng_pool_kind KINDS[] = {NG_POOL_MAX, NG_POOL_MEAN, NG_POOL_L2};

}  // namespace

TEST_CASE("pool: one, two and three spatial axes in every layout")
{
    for (const ng_pool_kind kind : KINDS)
        for (const Layout layout : LAYOUTS) {
            check({kind, {2, 3, 17}, {1, 3}, {1, 2}, {1, 1}, {0, 1}, {0, 1}}, Dtype::f32, layout);
            check({kind, {3, 5, 9, 8}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}}, Dtype::f32, layout);
            check({kind, {3, 5, 9, 8}, {1, 3, 2}, {1, 1, 1}, {1, 1, 1}, {0, 2, 1}, {0, 0, 1}}, Dtype::f32, layout);
            check({kind, {2, 3, 5, 6, 7}, {1, 2, 3, 2}, {1, 2, 1, 3}, {1, 1, 1, 1}, {0, 1, 1, 0}, {0, 0, 1, 1}}, Dtype::f32, layout);
            check({kind, {2, 300, 3, 3}, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}}, Dtype::f32, layout);
            check({kind, {1, 1, 2, 777}, {1, 2, 5}, {1, 1, 2}, {1, 1, 3}, {0, 0, 4}, {0, 1, 7}}, Dtype::f32, layout);
        }
}

TEST_CASE("pool: every type")
{
    for (const ng_pool_kind kind : KINDS)
        for (int t = 0; t < ng::DTYPES; t++)
            for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST})
                check({kind, {2, 3, 9, 10}, {1, 3, 2}, {1, 2, 2}, {1, 1, 1}, {0, 1, 0}, {0, 1, 1}}, Dtype(t), layout);
}

TEST_CASE("pool: dilation, ceil, padding that counts")
{
    for (const ng_pool_kind kind : KINDS)
        for (const Layout layout : LAYOUTS)
            for (const uint32_t flags : {0u, uint32_t(NG_POOL_CEIL), uint32_t(NG_POOL_COUNT_PAD), uint32_t(NG_POOL_CEIL | NG_POOL_COUNT_PAD)})
                for (const int64_t dilate : {1, 2, 3})
                    check({kind, {2, 2, 8, 11}, {1, 2, 3}, {1, 3, 2}, {1, 1, dilate}, {0, 1, 2}, {0, 0, 1}, flags}, Dtype::f32, layout);
}

TEST_CASE("pool: windows over channels, alone and with space")
{
    for (const ng_pool_kind kind : KINDS)
        for (const Layout layout : LAYOUTS) {
            check({kind, {3, 7, 4, 5}, {3, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}}, Dtype::f32, layout);
            check({kind, {3, 8, 4, 5}, {2, 2, 2}, {2, 2, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 0}}, Dtype::f16, layout);
        }
}

TEST_CASE("pool: integers at their limits, the sign bit is one")
{
    for (const Dtype t : {Dtype::i8, Dtype::u8, Dtype::i32, Dtype::u32, Dtype::i64, Dtype::u64}) {
        Tensor        x(t, {1, 1, 4}), y(t, {1, 1, 2});
        const int64_t top = int64_t(1) << (8 * ng::bytes_of(t) - 1);   // least, or half of all
        for (const auto& [i, bits] : {std::pair<int64_t, int64_t>{0, top}, {1, 0}, {2, top}, {3, top + 1}}) std::memcpy(x.at({0, 0, i}), &bits, size_t(ng::bytes_of(t)));
        const Problem p = {NG_POOL_MAX, {1, 1, 4}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}};
        Workspace     s(pool_workspace(*product_table(nullptr), p.described(), 1));
        pool(x.operand(), y.operand(), p.described(), {*product_table(nullptr), s.data(), Parallel()});
        CHECK(std::memcmp(y.at({0, 0, 0}), x.at({0, 0, ng::is_signed(t) ? 1 : 0}), size_t(ng::bytes_of(t))) == 0);
        CHECK(std::memcmp(y.at({0, 0, 1}), x.at({0, 0, 3}), size_t(ng::bytes_of(t))) == 0);
    }
}

TEST_CASE("pool: a maximum is -inf or NaN where x is, padding never wins, and NaN takes the derivative")
{
    const double  inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
    const Problem p = {NG_POOL_MAX, {1, 1, 6}, {1, 3}, {1, 3}, {1, 1}, {0, 1}, {0, 2}};
    Tensor        x(Dtype::f32, p.x), y(Dtype::f32, p.dims_y()), dy(Dtype::f32, y.dims), dx(Dtype::f32, p.x);
    const double  values[] = {-inf, -inf, -3, nan, nan, -inf};
    for (int64_t i = 0; i < 6; i++) write(x.at({0, 0, i}), float(values[i]));
    dy.each([&](const Index& i) { write(dy.at(i), float(i[2] + 1)); });
    Workspace       s(pool_workspace(*product_table(nullptr), p.described(), 1));
    const Workplace place = {*product_table(nullptr), s.data(), Parallel()};
    pool(x.operand(), y.operand(), p.described(), place);
    pool_dx(x.operand(), dy.operand(), dx.operand(), p.described(), place);
    CHECK(y.get({0, 0, 0}) == -inf);
    CHECK(std::isnan(y.get({0, 0, 1})));
    CHECK(y.get({0, 0, 2}) == -inf);
    const double want[] = {1, 0, 0, 2, 0, 3};
    for (int64_t i = 0; i < 6; i++) CHECK(dx.get({0, 0, i}) == want[i]);
}

TEST_CASE("pool: ties go to the first in row-major order")
{
    const Problem p = {NG_POOL_MAX, {1, 1, 4, 4}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}};
    Tensor        x(Dtype::f32, p.x), dy(Dtype::f32, p.dims_y()), dx(Dtype::f32, p.x);
    x.each([&](const Index& i) { write(x.at(i), 2.0f); });
    dy.each([&](const Index& i) { write(dy.at(i), 1.0f); });
    Workspace s(pool_workspace(*product_table(nullptr), p.described(), 1));
    pool_dx(x.operand(), dy.operand(), dx.operand(), p.described(), {*product_table(nullptr), s.data(), Parallel()});
    dx.each([&](const Index& i) { CHECK(dx.get(i) == (i[2] % 2 == 0 && i[3] % 2 == 0)); });
}

TEST_CASE("pool: nothing in, nothing out; zero roots have no derivative")
{
    check({NG_POOL_MAX, {0, 3, 8}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::f32, CHANNELS_FIRST);
    check({NG_POOL_MEAN, {2, 0, 8}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::f32, CHANNELS_FIRST);
    check({NG_POOL_L2, {2, 3, 1}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::f32, CHANNELS_FIRST);
    check({NG_POOL_MAX, {1, 2, 1}, {1, 2}, {1, 1}, {1, 2}, {0, 1}, {0, 1}}, Dtype::f16, CHANNELS_FIRST);
    check({NG_POOL_L2, {2, 3, 8}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::bool_, CHANNELS_FIRST);
}

TEST_CASE("pool: the number of workers changes no bit")
{
    for (const ng_pool_kind kind : KINDS)
        for (const Layout layout : LAYOUTS) {
            const Problem     p = {kind, {8, 9, 40, 41}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}};
            std::vector<char> first[2];
            for (const uint32_t workers : {1u, 3u}) {
                const Lie lie = lie_of(layout, 4);
                Tensor    x(Dtype::f32, p.x, lie), y(Dtype::f32, p.dims_y(), lie), dy(Dtype::f32, p.dims_y(), lie), dx(Dtype::f32, p.x, lie);
                x.fill_normal(1), dy.fill_normal(2);
                Workspace       s(pool_workspace(*product_table(nullptr), p.described(), workers));
                Threads         threads{workers};
                const Workplace place = {*product_table(nullptr), s.data(), threads.parallel()};
                pool(x.operand(), y.operand(), p.described(), place);
                pool_dx(x.operand(), dy.operand(), dx.operand(), p.described(), place);
                if (workers == 1) first[0] = y.memory, first[1] = dx.memory;
                CHECK(first[0] == y.memory);
                CHECK(first[1] == dx.memory);
            }
        }
}
