// The defects that were found in nervanagpu, a test each, so that none of them comes back here.
#include "tests/contract/face.h"

#include <cstdint>
#include <numeric>

namespace {

// a[m, k] b[k, n], row-major
Values product(const Values& a, const Values& b, size_t m, size_t k, size_t n)
{
    Values c(m * n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t l = 0; l < k; l++) c[i * n + j] += a[i * k + l] * b[l * n + j];
    return c;
}
Values transposed(const Values& a, size_t rows, size_t columns)
{
    Values t(a.size());
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) t[j * rows + i] = a[i * columns + j];
    return t;
}
// small whole numbers, so that f32 sums are exact
Values small(size_t n, int64_t salt = 1)
{
    Values v(n);
    for (size_t i = 0; i < n; i++) v[i] = double((int64_t(i) * 7 + salt * 13) % 11 - 5);
    return v;
}
ng_expr* turned(ng_expr* x)
{
    const int32_t axes[] = {1, 0};
    return ng_permute(x, axes, 2);
}
ng_pool_desc pool_of(ng_pool_kind kind, int32_t window, int32_t stride)
{
    ng_pool_desc d{};
    d.size = sizeof d, d.kind = kind, d.window[0] = d.window[1] = window, d.stride[0] = d.stride[1] = stride;
    return d;
}
// x[n, c, h, w] by w[k, c, r, s], no padding
Values correlated(const Values& x, const Dims& xd, const Values& w, const Dims& wd)
{
    const int64_t p = xd[2] - wd[2] + 1, q = xd[3] - wd[3] + 1;
    Values y;
    for (int64_t n = 0; n < xd[0]; n++)
        for (int64_t k = 0; k < wd[0]; k++)
            for (int64_t i = 0; i < p; i++)
                for (int64_t j = 0; j < q; j++) {
                    double sum = 0;
                    for (int64_t c = 0; c < wd[1]; c++)
                        for (int64_t r = 0; r < wd[2]; r++)
                            for (int64_t s = 0; s < wd[3]; s++)
                                sum += x[size_t(((n * xd[1] + c) * xd[2] + i + r) * xd[3] + j + s)] * w[size_t(((k * wd[1] + c) * wd[2] + r) * wd[3] + s)];
                    y.push_back(sum);
                }
    return y;
}

}  // namespace

TEST_CASE("nervanagpu: slicing a .T view loses its transposition, and the product is wrong")
{
    Face f;
    const Values x = small(6 * 5), y = small(4 * 3, 2), t = transposed(x, 6, 5);      // x [6, 5], x.T [5, 6], x.T[:, 1:5] [5, 4]
    Values cut;
    for (size_t i = 0; i < 5; i++) cut.insert(cut.end(), t.begin() + ptrdiff_t(i * 6 + 1), t.begin() + ptrdiff_t(i * 6 + 5));
    ng_expr* view = ng_slice(turned(f.leaf(shape(NG_F32, {6, 5}), x)), 1, 1, 5, 1);
    CHECK(differs(f.eval(ng_matmul(view, f.leaf(shape(NG_F32, {4, 3}), y), nullptr)), product(cut, y, 5, 4, 3)) == "");
    // The same of memory that is stored turned.
    const ng_shape columns = shape(NG_F32, {5, 6}, {1, 5});
    ng_tensor* stored = f.make(columns);
    f.put(stored, x);
    CHECK(differs(f.eval(ng_matmul(ng_slice(ng_leaf(f.s, stored), 1, 1, 5, 1), f.leaf(shape(NG_F32, {4, 3}), y), nullptr)), product(cut, y, 5, 4, 3)) == "");
}

TEST_CASE("nervanagpu: x[:] = y with another size copies out of bounds")
{
    Face f;
    std::vector<float> memory(64, -1);
    const ng_shape d = shape(NG_F32, {16});
    ng_tensor *x = f.wrap(d, memory.data() + 16, 64), *longer = f.tensor(counted(20)), *shorter = f.tensor(counted(12));
    for (ng_tensor* y : {longer, shorter}) {
        CHECK(ng_tensor_copy(x, y, nullptr, &f.error) == NG_E_SHAPE);
        CHECK(f.eval_into({ng_leaf(f.s, y)}, {x}) == NG_E_SHAPE);
        CHECK(f.eval_into({ng_exp(ng_leaf(f.s, y))}, {x}) == NG_E_SHAPE);
    }
    std::vector<float> other(20);
    CHECK(ng_tensor_put(x, other.data(), 80, &f.error) == NG_E_INVALID);
    CHECK(ng_tensor_get(x, other.data(), 48, &f.error) == NG_E_INVALID);
    CHECK(std::all_of(memory.begin(), memory.end(), [](float v) { return v == -1; }));
}

TEST_CASE("nervanagpu: the length of a stepped slice is rounded down")
{
    Face f;
    ng_expr* x = f.leaf(counted(5));
    CHECK(differs(f.eval(ng_slice(x, 0, 0, 5, 2)), {0, 2, 4}) == "");
    for (int64_t n = 1; n < 9; n++)
        for (int64_t step = 1; step < 6; step++) {
            Values want;
            for (int64_t i = 0; i < n; i += step) want.push_back(double(i));
            CHECK(differs(f.eval(ng_slice(f.leaf(counted(size_t(n))), 0, 0, NG_END, step)), want) == "");
        }
}

TEST_CASE("nervanagpu: (2, 6) + (3, 4) is accepted, because both have 12 elements")
{
    Face f;
    ng_expr *a = f.leaf(shape(NG_F32, {2, 6}), counted(12)), *b = f.leaf(shape(NG_F32, {3, 4}), counted(12));
    CHECK(f.fault(ng_add(a, b)) == NG_E_SHAPE);
    CHECK(f.says("[2, 6]"));
    CHECK(f.says("[3, 4]"));
}

TEST_CASE("nervanagpu: an (m, 1) reduction assigned to an (m, n) output writes column 0 alone")
{
    Face f;
    const size_t m = 10, n = 20;
    ng_tensor* out = f.tensor(shape(NG_F32, {10, 20}), Values(m * n, -7));
    ng_expr* x = f.leaf(shape(NG_F32, {10, 20}), counted(m * n));
    REQUIRE(f.eval_into({ng_sum(x, NG_AXIS_1, NG_KEEP)}, {out}) == NG_OK);
    Values want(m * n);
    for (size_t i = 0; i < m * n; i++) want[i] = double(i / n) * double(n * n) + double(n * (n - 1) / 2);
    CHECK(differs(f.get(out), want) == "");
}

TEST_CASE("nervanagpu: two fused reductions race where a row has more than 32 threads")
{
    Face f(0, 4);
    const size_t rows = 37, columns = 2048;
    ng_expr* x = f.leaf(shape(NG_F32, {int64_t(rows), int64_t(columns)}), small(rows * columns));
    // max, then sum of what the maximum gives, then the least of that: each after the other over the same row
    ng_expr* y = f.text("m = max(x, 1); s = sum((x - m) * (x - m), 1); x * 0 + s - min(x + s, 1) + m", "x", {x});
    const Values v = small(rows * columns);
    Values want(rows * columns);
    for (size_t i = 0; i < rows; i++) {
        const auto row = v.begin() + ptrdiff_t(i * columns);
        const double most = *std::max_element(row, row + columns), least = *std::min_element(row, row + columns);
        const double sum = std::accumulate(row, row + columns, 0., [&](double s, double e) { return s + (e - most) * (e - most); });
        for (size_t j = 0; j < columns; j++) want[i * columns + j] = sum - (least + sum) + most;
    }
    for (int turn = 0; turn < 20; turn++) REQUIRE(differs(f.eval(y), want) == "");
}

TEST_CASE("nervanagpu: take along axis 1 of a strided source reads by the raw index")
{
    Face f;
    const Values x = counted(6 * 8);
    ng_expr* i = f.leaf(shape(NG_I32, {3}), {2, 0, 3});
    ng_expr* strided = ng_slice(f.leaf(shape(NG_F32, {6, 8}), x), 1, 0, NG_END, 2);          // [6, 4]
    Values want;
    for (int row = 0; row < 6; row++)
        for (const int place : {2, 0, 3}) want.push_back(row * 8 + place * 2);
    CHECK(differs(f.eval(ng_take(strided, i, 1)), want) == "");
    ng_tensor* t = f.make(shape(NG_F32, {6, 8}, {2, 12}));                                   // columns lie 12 apart, rows 2
    for (int row = 0; row < 6; row++)
        for (int column = 0; column < 8; column++) static_cast<float*>(f.data(t))[row * 2 + column * 12] = float(row * 8 + column);
    want.clear();
    for (int row = 0; row < 6; row++)
        for (const int place : {2, 0, 3}) want.push_back(row * 8 + place);
    CHECK(differs(f.eval(ng_take(ng_leaf(f.s, t), i, 1)), want) == "");
}

TEST_CASE("nervanagpu: pooling \"avg\" runs max, and the slope of overlapping max pooling is wrong")
{
    Face f;
    ng_expr* x = f.leaf(shape(NG_F32, {1, 1, 4, 4}), {1, 9, 2, 0, 3, 4, 8, 1, 0, 7, 5, 6, 2, 2, 2, 2});
    const ng_pool_desc mean = pool_of(NG_POOL_MEAN, 2, 2), most = pool_of(NG_POOL_MAX, 3, 1);
    CHECK(differs(f.eval(ng_pool(x, &mean)), {17 / 4., 11 / 4., 11 / 4., 15 / 4.}) == "");
    CHECK(differs(f.eval(ng_pool(x, &most)), {9, 9, 8, 8}) == "");
    // Two windows share the 9, two the 8: each element gets the sum of what its windows were given.
    ng_expr* dy = f.leaf(shape(NG_F32, {1, 1, 2, 2}), {1, 10, 100, 1000});
    const Values want = {0, 11, 0, 0, 0, 0, 1100, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    CHECK(differs(f.eval(ng_pool_dx(x, dy, &most)), want) == "");
    CHECK(differs(f.eval(f.grad({ng_pool(x, &most)}, {x}, NG_OK, {dy})[0]), want) == "");
}

TEST_CASE("nervanagpu: conv and pool accept tensors that are not contiguous, and corrupt")
{
    Face f;
    const Dims xd = {2, 3, 6, 5}, wd = {4, 3, 3, 2};
    const Values x = small(2 * 3 * 6 * 5), w = small(4 * 3 * 3 * 2, 3), want = correlated(x, xd, w, wd);
    std::vector<float> memory(2 * 3 * 6 * 5 * 4, 77);
    const Dims strides = {1, 2 * 2, 3 * 4, 6 * 12};                          // CHWN-like, every second place unused
    size_t at = 0;
    for (int64_t n = 0; n < 2; n++)
        for (int64_t c = 0; c < 3; c++)
            for (int64_t h = 0; h < 6; h++)
                for (int64_t l = 0; l < 5; l++) memory[size_t(n * strides[0] + c * strides[1] + h * strides[2] + l * strides[3])] = float(x[at++]);
    ng_expr* strided = ng_leaf(f.s, f.wrap(shape(NG_F32, xd, strides), memory.data(), memory.size() * 4));
    ng_expr* filter = f.leaf(shape(NG_F32, wd), w);
    CHECK(differs(f.eval(ng_conv(strided, filter, nullptr)), want) == "");
    // the output not contiguous either: between its elements nothing is written
    std::vector<float> wide(want.size() * 3, -5);
    ng_tensor* out = f.wrap(shape(NG_F32, {2, 4, 4, 4}, {192, 48, 12, 3}), wide.data(), wide.size() * 4);
    REQUIRE(f.eval_into({ng_conv(strided, filter, nullptr)}, {out}) == NG_OK);
    for (size_t i = 0; i < wide.size(); i++) CHECK(wide[i] == (i % 3 ? -5 : want[i / 3]));
    const ng_pool_desc d = pool_of(NG_POOL_MAX, 2, 1);
    CHECK(differs(f.eval(ng_pool(strided, &d)), f.eval(ng_pool(f.leaf(shape(NG_F32, xd), x), &d))) == "");
}

TEST_CASE("nervanagpu: share() to a wider dtype runs beyond the memory")
{
    Face f;
    std::vector<uint16_t> memory(12);
    ng_tensor* t = nullptr;
    const ng_shape halves = shape(NG_F16, {12}), wider = shape(NG_F32, {12}), narrow = shape(NG_F32, {6});
    CHECK(ng_tensor_wrap(f.c, &wider, memory.data(), 24, nullptr, nullptr, &t, &f.error) == NG_E_SHAPE);
    CHECK(t == nullptr);
    f.wrap(halves, memory.data(), 24);
    f.wrap(narrow, memory.data(), 24);
    ng_expr* e = ng_leaf(f.s, f.wrap(halves, memory.data(), 24));
    CHECK(f.fault(ng_bitcast(e, NG_F32)) == NG_E_DTYPE);
    const ng_shape beyond = shape(NG_F16, {13});
    CHECK(f.fault(ng_view(e, &beyond, 0)) == NG_E_SHAPE);
}

TEST_CASE("nervanagpu: the filter's gradient in f16 starts from a scratch that is only half zero")
{
    Face f;
    const Dims xd = {2, 3, 6, 5}, wd = {4, 3, 3, 2}, yd = {2, 4, 4, 4};
    const Values x = small(180), dy = small(128, 4);
    Values want(72);
    for (int64_t n = 0; n < 2; n++)
        for (int64_t k = 0; k < 4; k++)
            for (int64_t c = 0; c < 3; c++)
                for (int64_t r = 0; r < 3; r++)
                    for (int64_t s = 0; s < 2; s++)
                        for (int64_t p = 0; p < 4; p++)
                            for (int64_t q = 0; q < 4; q++)
                                want[size_t(((k * 3 + c) * 3 + r) * 2 + s)] += x[size_t(((n * 3 + c) * 6 + p + r) * 5 + q + s)] * dy[size_t(((n * 4 + k) * 4 + p) * 4 + q)];
    const ng_shape xs = shape(NG_F16, xd), ys = shape(NG_F16, yd), ws = shape(NG_F16, wd);
    ng_prog* p = f.compile({ng_conv_dw(f.param(0, xs), f.param(1, ys), &ws, nullptr)});
    ng_tensor *out = f.make(shape(NG_F32, wd)), *scratch = f.make(shape(NG_U8, {int64_t(f.info(p).workspace_bytes)}));
    Call call;
    call.args = {f.tensor(xs, x), f.tensor(ys, dy)}, call.out = {out}, call.workspace = scratch;
    for (const double dirt : {255., 127.}) {
        REQUIRE(ng_tensor_fill(scratch, nullptr, dirt, &f.error) == NG_OK);
        REQUIRE(ng_tensor_fill(out, nullptr, NOT_A_NUMBER, &f.error) == NG_OK);
        REQUIRE(f.run(p, call) == NG_OK);
        CHECK(differs(f.get(out), want) == "");
    }
}

TEST_CASE("nervanagpu: with one column relu and the leading dimension are ignored")
{
    Face f;
    const Values a = small(7 * 10), b = small(9, 2);
    Values cut;
    for (size_t i = 0; i < 7; i++) cut.insert(cut.end(), a.begin() + ptrdiff_t(i * 10), a.begin() + ptrdiff_t(i * 10 + 9));
    Values want = product(cut, b, 7, 9, 1);
    for (double& v : want) v = std::max(v, 0.);
    CHECK(std::count(want.begin(), want.end(), 0.) > 0);
    ng_expr* left = ng_slice(f.leaf(shape(NG_F32, {7, 10}), a), 1, 0, 9, 1);              // rows lie 10 apart
    CHECK(differs(f.eval(ng_relu(ng_matmul(left, f.leaf(shape(NG_F32, {9, 1}), b), nullptr))), want) == "");
    // The column itself one of many, 3 apart.
    ng_tensor* columns = f.tensor(shape(NG_F32, {9, 3}), Values(27, 50));
    for (size_t i = 0; i < 9; i++) static_cast<float*>(f.data(columns))[i * 3 + 1] = float(b[i]);
    ng_expr* column = ng_slice(ng_leaf(f.s, columns), 1, 1, 2, 1);
    CHECK(differs(f.eval(ng_relu(ng_matmul(left, column, nullptr))), want) == "");
    // the output too: one column of a matrix, its neighbours stay
    ng_tensor* wide = f.tensor(shape(NG_F32, {7, 4}), Values(28, -3));
    REQUIRE(f.eval_into({ng_relu(ng_matmul(left, column, nullptr))}, {f.part(wide, 1, 2, 3)}) == NG_OK);
    const Values got = f.get(wide);
    for (size_t i = 0; i < 28; i++) CHECK(got[i] == (i % 4 == 2 ? want[i / 4] : -3));
}

TEST_CASE("nervanagpu: random numbers cannot be had again, and 1.0 is among those below 1")
{
    const ng_shape d = shape(NG_F32, {1 << 21}), wide = shape(NG_F64, {1 << 18});
    Values first;
    for (const uint32_t threads : {1u, 3u}) {
        Face f(0, threads);
        ng_expr *key = ng_const_int(f.s, NG_U64, 12345), *step = ng_const_int(f.s, NG_U64, 6);
        const Values v = f.eval(ng_random(f.s, NG_UNIFORM, key, step, &d));
        CHECK(*std::max_element(v.begin(), v.end()) < 1);
        CHECK(*std::min_element(v.begin(), v.end()) >= 0);
        CHECK(differs(f.eval(ng_random(f.s, NG_UNIFORM, key, step, &d)), v) == "");
        CHECK(differs(f.eval(ng_random(f.s, NG_UNIFORM, ng_const_int(f.s, NG_U64, 12346), step, &d)), v) != "");
        if (first.empty()) first = v;
        CHECK(differs(v, first) == "");
        const Values doubles = f.eval(ng_random(f.s, NG_UNIFORM, key, step, &wide));
        CHECK(*std::max_element(doubles.begin(), doubles.end()) < 1);
    }
    // Whatever the word is, 24 of its bits over 2^24 are below 1: rounding happens nowhere.
    CHECK(float(0xffffffffu >> 8) * 0x1p-24f < 1);
}

TEST_CASE("nervanagpu: argmax of a row that is all -inf is -1, and NaN is passed over")
{
    Face f;
    CHECK(differs(f.eval(ng_argmax(f.leaf({-INF, -INF, -INF}), NG_ALL, 0)), {0}) == "");
    CHECK(differs(f.eval(ng_argmin(f.leaf({INF, INF}), NG_ALL, 0)), {0}) == "");
    CHECK(differs(f.eval(ng_argmax(f.leaf({1, NOT_A_NUMBER, 5, NOT_A_NUMBER}), NG_ALL, 0)), {1}) == "");
    CHECK(differs(f.eval(ng_argmin(f.leaf({1, -INF, NOT_A_NUMBER}), NG_ALL, 0)), {2}) == "");
    CHECK(differs(f.eval(ng_max(f.leaf({-INF, -INF}), NG_ALL, 0)), {-INF}) == "");
    CHECK(differs(f.eval(ng_argmax(f.leaf(shape(NG_F32, {3, 2}), {-INF, 4, -INF, NOT_A_NUMBER, -INF, 9}), NG_AXIS_0, 0)), {0, 1}) == "");
}

TEST_CASE("nervanagpu: atomics make the filter's update differ from run to run")
{
    const ng_shape xs = shape(NG_F32, {8, 16, 20, 20}), ys = shape(NG_F32, {8, 16, 18, 18}), ws = shape(NG_F32, {16, 16, 3, 3});
    Values x(8 * 16 * 400), y(8 * 16 * 324), first, placed;
    for (size_t i = 0; i < x.size(); i++) x[i] = double(float(std::sin(double(i) * 0.7) * std::exp2(double(i % 20))));
    for (size_t i = 0; i < y.size(); i++) y[i] = double(float(std::cos(double(i) * 1.3) * std::exp2(double(i % 17))));
    for (const uint32_t threads : {1u, 2u, 4u, 7u}) {
        Face f(NG_CTX_DETERMINISTIC, threads);
        ng_expr *a = f.leaf(xs, x), *b = f.leaf(ys, y);
        ng_expr* update = ng_conv_dw(a, b, &ws, nullptr);
        // sums of equal places, which a scatter by atomics would add in any order
        const int64_t flat[] = {8 * 16 * 324};
        ng_expr* places = f.text("i64(x) % 7", "x", {ng_iota(f.s, std::data({shape(NG_I64, {8 * 16 * 324})}), 0)});
        ng_expr* sums = ng_put(f.leaf(Values(7)), places, ng_reshape(b, flat, 1), 0, NG_FOLD_SUM);
        for (int turn = 0; turn < 4; turn++) {
            const Values now = f.eval(update), there = f.eval(sums);
            if (first.empty()) first = now, placed = there;
            REQUIRE(differs(now, first) == "");
            REQUIRE(differs(there, placed) == "");
        }
    }
}
