// Shipped poolings, their picks and derivatives against plain loops over every window: kinds, types, layouts, ties and NaN.
#pragma once
#include "tests/backend/basic_product_cases.h"

namespace basic_check {

using Pool = PoolProblem<basic::PoolWindow>;

// The place of the maximum: the first of equals, the first NaN where there is one; none of nothing.
inline const Index* most(Tensor& x, const Under& u)
{
    const Index* best = nullptr;
    Number       value;
    for (const Index& i : u.places) {
        const Number v = number_at(x.type, x.at(i));
        if (!best || less(x.type, value, v) || (v.real != v.real && value.real == value.real)) best = &i, value = v;
    }
    return best;
}

inline bool is_near(double have, double want, double eps)
{
    return have == want || (have != have && want != want) || std::fabs(have - want) <= eps * std::fabs(want);
}

// x's pooling and its derivative.
struct PoolRun {
    const Pool& p;
    Tensor &    x, &y, &dy, &dx;
    double      eps;

    double value(const Index& i) { return ng::is_float(x.type) ? real_at(x.type, x.at(i)) : get(x.type, x.at(i)); }
    double count_of(const Under& u) { return double(p.flags & NG_POOL_COUNT_PAD ? u.padded : int64_t(u.places.size())); }
    double square_of(const Under& u)
    {
        double sum = 0;
        for (const Index& at : u.places) sum += value(at) * value(at);
        return sum;
    }
    // The maximum of nothing: the least value that the type has.
    bool is_least(const char* at)
    {
        const Number least = identity(x.type, ng::kernels::MAX);
        return same(x.type, number_at(x.type, at), x.type == Dtype::e4m3 ? stored(x.type, least) : least);
    }
    bool is_forward()
    {
        bool good = true;
        y.each([&](const Index& i) {
            const Under u = under(p, i);
            if (p.kind == NG_POOL_MAX) {
                const Index* best = most(x, u);
                good &= best ? std::memcmp(x.at(*best), y.at(i), size_t(ng::bytes_of(x.type))) == 0 : is_least(y.at(i));
                return;
            }
            double sum = 0;
            for (const Index& at : u.places) sum += value(at);
            const double count = count_of(u);
            good &= is_near(get(y.type, y.at(i)), p.kind == NG_POOL_L2 ? std::sqrt(square_of(u)) : count > 0 ? sum / count : 0, eps);
        });
        return good;
    }
    bool is_backward()
    {
        Wanted     want(dx), size(dx);
        const auto add = [&](const Index& i, double v) { want.at(i) += v, size.at(i) += std::fabs(v); };
        y.each([&](const Index& i) {
            const Under  u = under(p, i);
            const double d = get(dy.type, dy.at(i)), root = std::sqrt(square_of(u)), count = count_of(u);
            if (p.kind == NG_POOL_MAX) {
                if (const Index* best = most(x, u)) add(*best, d);
                return;
            }
            for (const Index& at : u.places) add(at, p.kind == NG_POOL_MEAN ? d / count : root != 0 ? value(at) / root * d : 0);
        });
        bool good = true;
        dx.each([&](const Index& i) { good &= std::fabs(get(dx.type, dx.at(i)) - want.at(i)) <= 8 * eps * size.at(i); });
        return good;
    }
};

inline void check_pool(const Pool& p, Tensor& x, Layout layout)
{
    const Dtype type = x.type, real = type == Dtype::f64 ? Dtype::f64 : Dtype::f32;
    const Lie   lie = lie_of(layout, p.x.size());
    Tensor      y(p.kind == NG_POOL_MAX ? type : real, p.dims_y(), lie), dy(real, p.dims_y(), lie), dx(real, p.x, lie), picked(real, p.dims_y()), v(real, p.x);
    fill(dy, 2), fill(v, 3);
    INFO("kind ", p.kind, " ", ng::name_of(type), " layout ", int(layout), " x ", p.x.back(), " window ", p.window.back(), " stride ", p.stride.back());
    const basic::PoolWindow window = p.described();
    const std::vector<char> before[] = {y.memory, dx.memory};
    There at_x(x), at_y(y), at_dy(dy), at_dx(dx), at_v(v), at_picked(picked);
    with_workspace(basic::pool_dx_workspace(dy.dims.data(), window), [&](const basic::Place& place) {
        basic::pool(at_x.operand(), at_y.operand(), window, place);
        basic::pool_dx(at_x.operand(), at_dy.operand(), at_dx.operand(), window, place);
        if (p.kind == NG_POOL_MAX) basic::pool_pick(at_x.operand(), at_v.operand(), at_picked.operand(), window, place);
    });
    at_y.back(), at_dx.back(), at_picked.back();
    PoolRun run = {p, x, y, dy, dx, real == Dtype::f64 ? 0x1p-48 : 0x1p-19};
    CHECK(run.is_forward());
    CHECK(run.is_backward());
    CHECK(is_untouched_around(y, before[0]));
    CHECK(is_untouched_around(dx, before[1]));
    if (p.kind != NG_POOL_MAX) return;
    bool good = true;
    picked.each([&](const Index& i) {
        const Under  u = under(p, i);
        const Index* best = most(x, u);
        good &= picked.get(i) == (best ? v.get(*best) : 0);
    });
    CHECK(good);
}
inline void check_pool(const Pool& p, Dtype type, Layout layout)
{
    Tensor x(type, p.x, lie_of(layout, p.x.size()));
    check_pool(p, fill(x, 1), layout);
}

inline const ng_pool_kind POOL_KINDS[] = {NG_POOL_MAX, NG_POOL_MEAN, NG_POOL_L2};

TEST_CASE("pool: one, two and three spatial axes in every layout")
{
    for (const ng_pool_kind kind : POOL_KINDS)
        for (const Layout layout : LAYOUTS) {
            check_pool({kind, {2, 3, 17}, {1, 3}, {1, 2}, {1, 1}, {0, 1}, {0, 1}}, Dtype::f32, layout);
            check_pool({kind, {3, 5, 9, 8}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}}, Dtype::f32, layout);
            check_pool({kind, {3, 5, 9, 8}, {1, 3, 2}, {1, 1, 1}, {1, 1, 1}, {0, 2, 1}, {0, 0, 1}}, Dtype::f32, layout);
            check_pool({kind, {2, 3, 5, 6, 7}, {1, 2, 3, 2}, {1, 2, 1, 3}, {1, 1, 1, 1}, {0, 1, 1, 0}, {0, 0, 1, 1}}, Dtype::f32, layout);
            check_pool({kind, {1, 1, 2, 300}, {1, 2, 5}, {1, 1, 2}, {1, 1, 3}, {0, 0, 4}, {0, 1, 7}}, Dtype::f32, layout);
        }
}

TEST_CASE("pool: every type, and windows that a whole block takes")
{
    for (const ng_pool_kind kind : POOL_KINDS)
        for (const Dtype type : ALL_TYPES)
            for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST}) {
                check_pool({kind, {2, 3, 9, 10}, {1, 3, 2}, {1, 2, 2}, {1, 1, 1}, {0, 1, 0}, {0, 1, 1}}, type, layout);
                check_pool({kind, {2, 3, 33, 35}, {1, 33, 35}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}}, type, layout);
            }
    // The channels too are under the window, and some of it lies in padding.
    for (const ng_pool_kind kind : POOL_KINDS)
        for (const Layout layout : LAYOUTS) check_pool({kind, {2, 6, 25, 21}, {4, 16, 17}, {2, 7, 3}, {1, 1, 1}, {1, 2, 3}, {1, 4, 0}}, Dtype::f32, layout);
}

TEST_CASE("pool: dilation, ceil, padding that counts")
{
    for (const ng_pool_kind kind : POOL_KINDS)
        for (const Layout layout : LAYOUTS)
            for (const uint32_t flags : {0u, uint32_t(NG_POOL_CEIL), uint32_t(NG_POOL_COUNT_PAD), uint32_t(NG_POOL_CEIL | NG_POOL_COUNT_PAD)})
                for (const int64_t dilate : {1, 2, 3}) check_pool({kind, {2, 2, 8, 11}, {1, 2, 3}, {1, 3, 2}, {1, 1, dilate}, {0, 1, 2}, {0, 0, 1}, flags}, Dtype::f32, layout);
}

TEST_CASE("pool: windows over channels, alone and with space")
{
    for (const ng_pool_kind kind : POOL_KINDS)
        for (const Layout layout : LAYOUTS) {
            check_pool({kind, {3, 7, 4, 5}, {3, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}}, Dtype::f32, layout);
            check_pool({kind, {3, 8, 4, 5}, {2, 2, 2}, {2, 2, 1}, {1, 1, 1}, {0, 0, 1}, {0, 0, 0}}, Dtype::f16, layout);
        }
}

TEST_CASE("pool: ties, infinities and NaN, by one thread and by a block; integers of any bits")
{
    const Pool small = {NG_POOL_MAX, {2, 2, 12, 11}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 0}}, large = {NG_POOL_MAX, {2, 2, 40, 41}, {1, 33, 33}, {1, 4, 3}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}};
    const double infinite = std::numeric_limits<double>::infinity();
    for (const Pool& p : {small, large}) {
        for (const Dtype type : {Dtype::f32, Dtype::f64, Dtype::f16}) {
            Tensor       x(type, p.x);
            std::mt19937 random(4);
            x.each([&](const Index& i) { set_real(type, x.at(i), random() % 3 ? -infinite : 0.5); });
            check_pool(p, x, CHANNELS_FIRST);
            for (int k = 0; k < 5; k++) std::memset(x.at({k % 2, 1, k, 2 * k + 1}), 0x7f, size_t(ng::bytes_of(type)));
            check_pool(p, x, CHANNELS_FIRST);
        }
        for (const Dtype type : {Dtype::i8, Dtype::u8, Dtype::i16, Dtype::u16, Dtype::i32, Dtype::u32, Dtype::i64, Dtype::u64}) {
            Tensor x(type, p.x);
            check_pool(p, fill_random(x, 5), CHANNELS_FIRST);
        }
    }
}

TEST_CASE("pool: nothing in, nothing out; windows in padding alone; zero roots have no derivative")
{
    for (const ng_pool_kind kind : POOL_KINDS) {
        check_pool({kind, {0, 3, 8}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::f32, CHANNELS_FIRST);
        check_pool({kind, {2, 0, 8}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::f32, CHANNELS_FIRST);
        check_pool({kind, {2, 3, 1}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::f32, CHANNELS_FIRST);
        for (const Dtype type : ALL_TYPES) check_pool({kind, {1, 2, 1}, {1, 2}, {1, 1}, {1, 2}, {0, 1}, {0, 1}}, type, CHANNELS_FIRST);
        check_pool({kind, {2, 3, 8}, {1, 2}, {1, 2}, {1, 1}, {0, 0}, {0, 0}}, Dtype::bool_, CHANNELS_FIRST);
    }
}

}  // namespace basic_check
