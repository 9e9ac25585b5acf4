// Shipped matrix products and convolutions against plain loops: every type, layout, window, group and way of cutting.
#pragma once
#include "jit/number.h"
#include "tests/backend/basic_machine.h"
#include "tests/backend/window_problems.h"

#include <utility>

namespace basic_check {

// ---- matrix products ---------------------------------------------------------------------------------------------------

struct Matmul {
    Tensor a, b, c;
};

// Where x has the row and column of the batch that c has at i.
inline const char* element(Tensor& x, Index i, int64_t row, int64_t column)
{
    const size_t r = i.size();
    i[r - 2] = row, i[r - 1] = column;
    for (size_t k = 0; k + 2 < r; k++)
        if (x.dims[k] == 1) i[k] = 0;
    return x.at(i);
}

// Whether every element of c is within `eps` times the sum of the products' absolute values; integers are exact and wrap.
inline bool is_product(Matmul& t, double eps)
{
    const size_t  r = t.c.dims.size();
    const int64_t depth = t.a.dims[r - 1], a_step = t.a.strides[r - 1] * ng::bytes_of(t.a.type), b_step = t.b.strides[r - 2] * ng::bytes_of(t.b.type);
    bool          good = true;
    t.c.each([&](const Index& i) {
        const char *a = element(t.a, i, i[r - 2], 0), *b = element(t.b, i, 0, i[r - 1]);
        double      sum = 0, size = 0;
        uint64_t    whole = 0;
        for (int64_t k = 0; k < depth; k++) {
            const Number u = number_at(t.a.type, a + k * a_step), v = number_at(t.b.type, b + k * b_step);
            const double p = (ng::is_float(t.a.type) ? u.real : get(t.a.type, a + k * a_step)) * (ng::is_float(t.b.type) ? v.real : get(t.b.type, b + k * b_step));
            sum += p, size += std::fabs(p), whole += u.whole * v.whole;
        }
        const Number have = number_at(t.c.type, t.c.at(i));
        if (!ng::is_float(t.c.type)) good &= have.whole == number_at(t.c.type, &whole).whole;
        else good &= have.real == sum || std::fabs(have.real - sum) <= eps * size || (sum != sum && have.real != have.real);
    });
    return good;
}

inline void run(Matmul& t)
{
    const size_t r = t.c.dims.size();
    int64_t      batch = 1;
    for (size_t i = 0; i + 2 < r; i++) batch *= t.c.dims[i];
    There a(t.a), b(t.b), c(t.c);
    with_workspace(basic::matmul_workspace({batch, t.c.dims[r - 2], t.c.dims[r - 1], t.a.dims[r - 1], t.c.type}),
                   [&](const basic::Place& place) { basic::matmul(a.operand(), b.operand(), c.operand(), int(r), place); });
    c.back();
}
inline void check_matmul(Matmul&& t, double eps = 0)
{
    const std::vector<char> before = t.c.memory;
    run(t);
    CHECK(is_product(t, eps));
    CHECK(is_untouched_around(t.c, before));
}
inline Matmul matmul_of(Dtype a, Dtype b, Dtype c, int64_t m, int64_t n, int64_t k)
{
    Matmul t = {Tensor(a, {m, k}), Tensor(b, {k, n}), Tensor(c, {m, n})};
    fill(t.a, 1), fill(t.b, 2);
    return t;
}

TEST_CASE("matmul: sizes of 0, 1, primes and tiles +- 1 give exact sums, through tiles or element by element")
{
    const int64_t sizes[] = {0, 1, 2, 7, 33, 63, 64, 65, 131};
    for (const int64_t m : sizes)
        for (const int64_t n : sizes)
            for (const int64_t k : {0, 1, 15, 16, 17, 257}) {
                if (m * n * k > 300000 && k != 17) continue;
                INFO(m, " ", n, " ", k);
                check_matmul(matmul_of(Dtype::f32, Dtype::f32, Dtype::f32, m, n, k));
            }
}

TEST_CASE("matmul: a long depth is summed in parts")
{
    for (const Dtype type : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::u64})
        for (const Index& s : {Index{1, 1, 511}, {1, 1, 512}, {3, 2, 5000}, {60, 50, 1111}, {65, 3, 1024}, {2, 70, 1537}})
            check_matmul(matmul_of(type, type, type, s[0], s[1], s[2]));
}

TEST_CASE("matmul: every mix of types gives its accumulator")
{
    const auto result = [](Dtype a, Dtype b) {
        const auto byte = [](Dtype t) { return t == Dtype::i8 || t == Dtype::u8; };
        return byte(a) && byte(b) ? Dtype::i32 : ng::promote(a, b, "test");
    };
    for (const Dtype x : ALL_TYPES)
        for (const Dtype y : ALL_TYPES) {
            if ((x == Dtype::u64 && ng::is_signed(y) && !ng::is_float(y)) || (y == Dtype::u64 && ng::is_signed(x) && !ng::is_float(x))) continue;
            const Dtype c = result(x, y);
            if (ng::bytes_of(c) < 2) continue;
            INFO(ng::name_of(x), " ", ng::name_of(y));
            check_matmul(matmul_of(x, y, c, 3, 4, 5));
            check_matmul(matmul_of(x, y, c, 23, 37, 41));
        }
}

// Integers of any bits: sums wrap.
inline Tensor& fill_random(Tensor& t, uint32_t seed)
{
    std::mt19937_64 random(seed);
    t.each([&](const Index& i) {
        const uint64_t bits = random();
        std::memcpy(t.at(i), &bits, size_t(ng::bytes_of(t.type)));
    });
    return t;
}

TEST_CASE("matmul: integers wrap in their own type, and those of 8 bits are exact in 32")
{
    for (const Dtype type : {Dtype::i16, Dtype::u16, Dtype::i32, Dtype::u32, Dtype::i64, Dtype::u64, Dtype::i8, Dtype::u8})
        for (const Index& s : {Index{2, 5, 700}, {40, 36, 90}}) {
            INFO(ng::name_of(type));
            Matmul t = matmul_of(type, type, ng::bytes_of(type) == 1 ? Dtype::i32 : type, s[0], s[1], s[2]);
            fill_random(t.a, 3), fill_random(t.b, 4);
            check_matmul(std::move(t));
        }
}

TEST_CASE("matmul: every value of the narrow floats is widened as it is")
{
    for (const Dtype type : {Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2}) {
        const int64_t n = ng::bytes_of(type) == 1 ? 256 : 65536;
        Matmul        t = {Tensor(type, {n, 1}), Tensor(Dtype::f32, {1, 1}), Tensor(Dtype::f32, {n, 1})};
        for (int64_t i = 0; i < n; i++) std::memcpy(t.a.at({i, 0}), &i, size_t(ng::bytes_of(type)));
        write(t.b.at({0, 0}), 1.0f);
        run(t);
        for (int64_t i = 0; i < n; i++) {
            const double want = t.a.get({i, 0}), have = t.c.get({i, 0});
            if (want != have && (want == want || have == have)) FAIL(ng::name_of(type), " ", i, ": ", want, " became ", have);
        }
    }
}

TEST_CASE("matmul: transposed, reversed and gapped operands and results")
{
    const Lie lies[] = {{}, {{1, 0}, 0, 1}, {{}, 1, 1}, {{1, 0}, 2, 3}, {{}, 3, 2}};
    for (const Dtype d : {Dtype::f32, Dtype::bf16, Dtype::i8})
        for (const Lie& a : lies)
            for (const Lie& b : lies)
                for (const Lie& c : lies)
                    for (const Index& s : {Index{3, 5, 40}, {1, 140, 19}, {66, 45, 21}}) {
                        Matmul t = {Tensor(d, {s[0], s[2]}, a), Tensor(d, {s[2], s[1]}, b), Tensor(d == Dtype::bf16 ? Dtype::f32 : d == Dtype::i8 ? Dtype::i32 : d, {s[0], s[1]}, c)};
                        fill(t.a, 5), fill(t.b, 6);
                        check_matmul(std::move(t));
                    }
}

TEST_CASE("matmul: batches of any rank, broadcast on either side")
{
    struct Batches {
        Index a, b, c;
    };
    const Batches all[] = {{{3}, {3}, {3}}, {{5}, {1}, {5}}, {{1}, {5}, {5}}, {{2, 3}, {2, 3}, {2, 3}}, {{2, 1}, {1, 3}, {2, 3}}, {{1, 3}, {2, 3}, {2, 3}},
                           {{0}, {1}, {0}}, {{2, 1, 3, 2}, {2, 2, 1, 1}, {2, 2, 3, 2}}, {{1, 1}, {1, 1}, {1, 1}}, {{2, 2, 2, 2, 2}, {1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}},
                           {{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}, {2, 2, 2, 2, 2}}};
    for (const Batches& each : all)
        for (const Index& s : {Index{2, 3, 4}, {35, 34, 20}, {1, 50, 600}})
            for (const bool backwards : {false, true}) {
                const auto dims = [](Index batch, int64_t rows, int64_t columns) { return batch.push_back(rows), batch.push_back(columns), batch; };
                const auto lie = [&](size_t rank) { return backwards ? Lie{{}, (1u << rank) - 1, 2} : Lie{}; };
                const size_t rank = each.c.size() + 2;
                Matmul t = {Tensor(Dtype::f32, dims(each.a, s[0], s[2]), lie(rank)), Tensor(Dtype::f32, dims(each.b, s[2], s[1]), lie(rank)), Tensor(Dtype::f32, dims(each.c, s[0], s[1]), lie(rank))};
                fill(t.a, 7), fill(t.b, 8);
                INFO("batch of rank ", each.c.size(), ", ", s[0], " ", s[1], " ", s[2]);
                check_matmul(std::move(t));
            }
}

TEST_CASE("matmul: sums of any numbers are as good as their type, the same each time; inf and NaN go through")
{
    for (const Dtype type : {Dtype::f32, Dtype::f64})
        for (const Index& s : {Index{70, 66, 300}, {5, 3, 4000}, {90, 2, 17}}) {
            Matmul t = matmul_of(type, type, type, s[0], s[1], s[2]);
            t.a.fill_normal(9), t.b.fill_normal(10);
            Matmul again = t;
            run(again);
            check_matmul(std::move(t), double(s[2]) * (type == Dtype::f32 ? 0x1p-24 : 0x1p-52));
            run(t);
            CHECK(t.c.memory == again.c.memory);
        }
    Matmul t = matmul_of(Dtype::f32, Dtype::f32, Dtype::f32, 40, 40, 20);
    write(t.a.at({3, 4}), std::numeric_limits<float>::infinity()), write(t.b.at({4, 5}), 0.0f);
    check_matmul(std::move(t), 0x1p-20);
    if (!machine().is_fast()) return;
    for (const Dtype type : {Dtype::f32, Dtype::bf16, Dtype::i8}) {
        const Dtype c = type == Dtype::i8 ? Dtype::i32 : Dtype::f32;
        check_matmul(matmul_of(type, type, c, 517, 389, 1003));
        check_matmul(matmul_of(type, type, c, 16, 1, 70001));
    }
}

// ---- convolutions ------------------------------------------------------------------------------------------------------

using Conv = ConvProblem<basic::ConvWindow>;

// What a tensor should hold, by index.
struct Wanted {
    Tensor&             of;
    std::vector<double> values;
    explicit Wanted(Tensor& t) : of(t), values(size_t(t.count())) {}
    double& at(const Index& i)
    {
        int64_t flat = 0;
        for (size_t a = 0; a < i.size(); a++) flat = flat * of.dims[a] + i[a];
        return values[size_t(flat)];
    }
    bool is_there()
    {
        bool same = true;
        of.each([&](const Index& i) { same &= real_at(of.type, of.at(i)) == at(i); });
        return same;
    }
};

inline void check_conv(const Conv& p, const ConvTypes& types, Layout layout)
{
    const size_t rank = p.x.size() + 2;
    const Lie    lie = lie_of(layout, rank);
    Tensor       x(types.x, p.dims_x(), lie), w(types.w, p.dims_w(), layout == IMAGES_LAST ? Lie{} : lie), y(types.y, p.dims_y(), lie);
    Tensor       dx(types.y, p.dims_x(), lie), dw(types.y, p.dims_w(), lie), dy(types.x, p.dims_y(), lie);
    fill(x, 1), fill(w, 2), fill(dy, 3);
    Wanted       want_y(y), want_dx(dx), want_dw(dw);
    const double pad = ng::Number(p.pad_value).as(types.x).real();
    each_tap(p, w, y, [&](const Index* ix, const Index& iw, const Index& iy) {
        const double v = ix ? real_at(x.type, x.at(*ix)) : pad, d = real_at(dy.type, dy.at(iy)), f = real_at(w.type, w.at(iw));
        want_y.at(iy) += v * f, want_dw.at(iw) += v * d;
        if (ix) want_dx.at(*ix) += d * f;
    });
    INFO("layout ", int(layout), " x ", ng::name_of(types.x), " w ", ng::name_of(types.w), " c ", p.c, " k ", p.k, " groups ", p.groups, " rank ", rank,
         " x ", p.x.back(), " w ", p.w.back(), " stride ", p.stride.back(), " dilate ", p.dilate.back(), " pad ", p.pad_lo.back());
    const basic::ConvWindow window = p.window();
    const std::vector<char> before[] = {y.memory, dx.memory, dw.memory};
    There at_x(x), at_w(w), at_dy(dy), at_y(y), at_dx(dx), at_dw(dw);
    with_workspace(basic::conv_workspace(at_x.operand(), at_w.operand(), at_y.operand(), window), [&](const basic::Place& place) {
        basic::conv(at_x.operand(), at_w.operand(), at_y.operand(), window, place);
        basic::conv_dx(at_w.operand(), at_dy.operand(), at_dx.operand(), window, place);
        basic::conv_dw(at_x.operand(), at_dy.operand(), at_dw.operand(), window, place);
    });
    at_y.back(), at_dx.back(), at_dw.back();
    CHECK(want_y.is_there());
    CHECK(want_dx.is_there());
    CHECK(want_dw.is_there());
    CHECK(is_untouched_around(y, before[0]));
    CHECK(is_untouched_around(dx, before[1]));
    CHECK(is_untouched_around(dw, before[2]));
}

inline const ConvTypes CONV_F32 = {Dtype::f32, Dtype::f32, Dtype::f32};

TEST_CASE("conv: one, two and three spatial axes in every layout")
{
    for (const Layout layout : LAYOUTS) {
        check_conv({2, 3, 5, 1, {17}, {3}, {1}, {1}, {1}, {1}}, CONV_F32, layout);
        check_conv({3, 5, 7, 1, {9, 8}, {3, 2}, {1, 1}, {1, 1}, {1, 0}, {1, 1}}, CONV_F32, layout);
        check_conv({2, 3, 4, 1, {5, 6, 7}, {2, 3, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 0}, {0, 1, 1}}, CONV_F32, layout);
        check_conv({1, 19, 35, 1, {13, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, CONV_F32, layout);
        check_conv({9, 17, 16, 1, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, CONV_F32, layout);
        if (machine().is_fast()) check_conv({4, 33, 70, 1, {19, 23}, {3, 3}, {1, 2}, {1, 1}, {1, 1}, {1, 1}}, CONV_F32, layout);
    }
}

TEST_CASE("conv: strides, dilations and lopsided padding, alone and together")
{
    for (const Layout layout : LAYOUTS)
        for (const int64_t stride : {1, 2, 3, 5})
            for (const int64_t dilate : {1, 2, 3, 4})
                for (const Index& pad : {Index{0, 0}, {2, 0}, {5, 4}})
                    for (const int64_t taps : {1, 3})
                        check_conv({2, 3, 4, 1, {7, 13}, {2, taps}, {stride, stride}, {1, dilate}, {1, pad[0]}, {0, pad[1]}}, CONV_F32, layout);
    check_conv({1, 2, 3, 1, {6, 5}, {3, 2}, {int64_t(1) << 40, 1000000007}, {1, 1}, {1, 1}, {1, 1}}, CONV_F32, CHANNELS_FIRST);
}

TEST_CASE("conv: groups, depthwise, and depthwise with a multiplier")
{
    for (const Layout layout : LAYOUTS)
        for (const int64_t stride : {1, 2}) {
            check_conv({2, 6, 9, 3, {10, 9}, {3, 3}, {stride, 1}, {1, 1}, {1, 1}, {1, 1}}, CONV_F32, layout);
            check_conv({3, 7, 7, 7, {10, 20}, {3, 3}, {1, stride}, {1, 2}, {1, 1}, {1, 1}}, CONV_F32, layout);
            check_conv({2, 5, 15, 5, {12}, {4}, {stride}, {1}, {2}, {1}}, CONV_F32, layout);
            check_conv({1, 4, 8, 4, {4, 5, 6}, {3, 1, 2}, {1, stride, 1}, {1, 1, 3}, {1, 0, 2}, {1, 0, 2}}, CONV_F32, layout);
        }
}

TEST_CASE("conv: padding with another value than 0, rounded to the type that it stands for")
{
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST})
        for (const int64_t groups : {1, 4}) {
            check_conv({2, 4, 4, groups, {6, 7}, {3, 3}, {1, 2}, {1, 1}, {2, 1}, {1, 3}, 1.5}, CONV_F32, layout);
            check_conv({2, 4, 4, groups, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {1, 3}, -1.75}, {Dtype::f16, Dtype::f32, Dtype::f32}, layout);
        }
    // One position, which sees nothing but padding.
    for (const Dtype type : ALL_TYPES)
        for (const double value : {0.0, -0.0, 1.0, -1.0, 2.5, 3.5, -0.4, 100.7, 1e-3, 1.0 / 3, 255.5, 300.0, -129.0, 447.0, 449.0, 463.0, 465.0, 57343.0, 61441.0, 65504.0, 65519.0, 65520.0, 6e-8, 2e-8,
                                   4e-5, 0x1p-9, 0x1.8p-10, 0x1p-133, 0x1.1p-134, 3.4e38, 1e39, -1e300, 9.3e18, 1.9e19, double(INFINITY), double(-INFINITY), double(NAN)}) {
            const Dtype c = ng::is_float(type) ? ng::compute_of(type) : ng::bytes_of(type) == 1 ? Dtype::i32 : type;
            const Conv  p = {1, 1, 1, 1, {1}, {1}, {3}, {1}, {2}, {0}, value};
            Tensor      x(type, p.dims_x()), w(type, p.dims_w()), y(c, p.dims_y());
            fill(x, 1);
            const uint64_t one = 1;
            if (ng::is_float(type)) set_real(type, w.at({0, 0, 0}), 1);
            else std::memcpy(w.at({0, 0, 0}), &one, size_t(ng::bytes_of(type)));
            There at_x(x), at_w(w), at_y(y);
            with_workspace(basic::conv_workspace(at_x.operand(), at_w.operand(), at_y.operand(), p.window()),
                           [&](const basic::Place& place) { basic::conv(at_x.operand(), at_w.operand(), at_y.operand(), p.window(), place); });
            at_y.back();
            INFO(ng::name_of(type), " ", value);
            const ng::Number rounded = ng::Number(value).as(type);
            const Number     have = number_at(c, y.at({0, 0, 0})), want = {ng::is_float(type) ? rounded.real() : 0, uint64_t(rounded.integer())};
            CHECK(same(c, have, want));
        }
}

// dx where some taps are no finite numbers; gives how many kernels were launched.
inline int64_t check_dx_of_infinities(const Conv& p, const ConvTypes& types, Layout layout)
{
    const size_t rank = p.x.size() + 2;
    const Lie    lie = lie_of(layout, rank);
    Tensor       w(types.w, p.dims_w()), dx(types.y, p.dims_x(), lie), dy(types.x, p.dims_y(), lie);
    fill(w, 2), fill(dy, 3);
    Index some(rank, 0);
    for (size_t d = 2; d < rank; d++) some[d] = p.w[d - 2] - 1;
    set_real(types.w, w.at(some), HUGE_VAL), set_real(types.w, w.at(Index(rank, 0)), is_narrow(types.w) ? -HUGE_VAL : NAN);
    Wanted want(dx);
    each_tap(p, w, dy, [&](const Index* ix, const Index& iw, const Index& iy) {
        if (ix) want.at(*ix) += real_at(dy.type, dy.at(iy)) * real_at(w.type, w.at(iw));
    });
    const basic::ConvWindow window = p.window();
    There                   at_w(w), at_dy(dy), at_dx(dx);
    int64_t                 launches = 0;
    with_workspace(basic::conv_workspace(at_dx.operand(), at_w.operand(), at_dy.operand(), window), [&](const basic::Place& place) {
        auto                  count = [&](const basic::Launch& l) { launches++, place.launch(l); };
        const basic::Launcher counting(count);
        basic::conv_dx(at_w.operand(), at_dy.operand(), at_dx.operand(), window, {place.workspace, counting});
    });
    at_dx.back();
    int64_t wrong = 0;
    dx.each([&](const Index& i) {
        const double is = real_at(dx.type, dx.at(i)), wanted = want.at(i);
        wrong += !(is == wanted || (is != is && wanted != wanted));
    });
    INFO("layout ", int(layout), " w ", ng::name_of(types.w), " c ", p.c, " groups ", p.groups, " stride ", p.stride.back());
    CHECK(wrong == 0);
    return launches;
}

TEST_CASE("conv: what is outside of dy adds nothing to dx, whatever the tap is")
{
    for (const Layout layout : LAYOUTS)
        for (const ConvTypes& types : {CONV_F32, ConvTypes{Dtype::f64, Dtype::f64, Dtype::f64}, ConvTypes{Dtype::f32, Dtype::f16, Dtype::f32}}) {
            check_dx_of_infinities({1, 1, 1, 1, {5}, {3}, {1}, {1}, {0}, {0}}, types, layout);
            check_dx_of_infinities({2, 40, 33, 1, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, types, layout);
            check_dx_of_infinities({2, 20, 40, 1, {9, 8}, {3, 2}, {2, 3}, {1, 2}, {1, 0}, {0, 2}}, types, layout);
            check_dx_of_infinities({2, 6, 6, 6, {11}, {4}, {1}, {2}, {3}, {1}}, types, layout);
        }
}

TEST_CASE("conv: dx where strides leave most positions without a tap is a fill, and a launch for each tap at most")
{
    CHECK(check_dx_of_infinities({1, 2, 3, 1, {30, 31, 32}, {2, 2, 2}, {16, 15, 14}, {1, 1, 1}, {0, 1, 0}, {0, 0, 1}}, CONV_F32, CHANNELS_FIRST) <= 9);
    CHECK(check_dx_of_infinities({1, 2, 3, 1, {60}, {3}, {12}, {6}, {0}, {0}}, CONV_F32, BACKWARDS) <= 3);
}

TEST_CASE("conv: every mix of types that has an accumulator")
{
    const ConvTypes all[] = {{Dtype::f64, Dtype::f64, Dtype::f64}, {Dtype::f32, Dtype::f64, Dtype::f64}, {Dtype::bf16, Dtype::f16, Dtype::f32},
                             {Dtype::e4m3, Dtype::f32, Dtype::f32}, {Dtype::e5m2, Dtype::e4m3, Dtype::f32}, {Dtype::i8, Dtype::u8, Dtype::i32},
                             {Dtype::u8, Dtype::u8, Dtype::i32}, {Dtype::i16, Dtype::i16, Dtype::i16}, {Dtype::i32, Dtype::i32, Dtype::i32}, {Dtype::i64, Dtype::i64, Dtype::i64}};
    for (const ConvTypes& types : all)
        for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST})
            for (const int64_t groups : {1, 6}) check_conv({2, 6, 12, groups, {6, 7}, {2, 3}, {2, 2}, {1, 2}, {1, 2}, {1, 0}}, types, layout);
}

TEST_CASE("conv: nothing to sum gives zeros, nothing to write writes nothing")
{
    check_conv({2, 0, 3, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, CONV_F32, CHANNELS_FIRST);
    check_conv({0, 2, 3, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, CONV_F32, CHANNELS_FIRST);
    check_conv({2, 2, 0, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, CONV_F32, CHANNELS_FIRST);
    check_conv({2, 2, 2, 1, {2, 5}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, CONV_F32, CHANNELS_FIRST);
    check_conv({2, 3, 3, 3, {0, 5}, {1, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 1}}, CONV_F32, CHANNELS_LAST);
    check_conv({1, 1, 1, 1, {1}, {1}, {7}, {1}, {3}, {3}}, CONV_F32, CHANNELS_FIRST);
}

}  // namespace basic_check
