// The rule of extents that are known when run: equal names, polynomials inside, heads of longer tensors.
#include "tests/contract/face.h"

TEST_CASE("P5: equal negative numbers are equal extents, checked when run and never broadcast as 1")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1}), one = shape(NG_F32, {1}), other = shape(NG_F32, {-2});
    ng_prog* p = f.compile({ng_add(f.param(0, d), f.param(1, d))}, {.length_max = {8}});
    ng_tensor *x1 = f.tensor({5}), *x3 = f.tensor({1, 2, 3}), *y3 = f.make(shape(NG_F32, {3})), *y1 = f.make(one);
    CHECK(f.run(p, {.args = {x3, x3}, .out = {y3}}) == NG_OK);
    CHECK(differs(f.get(y3), {2, 4, 6}) == "");
    CHECK(f.run(p, {.args = {x3, x1}, .out = {y3}}) == NG_E_SHAPE);
    CHECK(f.run(p, {.args = {x1, x3}, .out = {y3}}) == NG_E_SHAPE);
    CHECK(f.run(p, {.args = {x1, x1}, .out = {y3}}) == NG_E_SHAPE);
    CHECK(f.run(p, {.args = {x1, x1}, .out = {y1}}) == NG_OK);
    // an extent of 1 in the expression does broadcast
    ng_prog* q = f.compile({ng_add(f.param(0, d), f.param(1, one))}, {.length_max = {8}});
    CHECK(f.run(q, {.args = {x3, x1}, .out = {y3}}) == NG_OK);
    CHECK(differs(f.get(y3), {6, 7, 8}) == "");
    // two lengths that turn out equal
    ng_expr* both[] = {f.param(0, d), f.param(1, other)};
    ng_prog* two = f.compile({ng_concat(both, 2, 0)}, {.length_max = {8, 8}});
    ng_tensor* y6 = f.make(shape(NG_F32, {6}));
    CHECK(f.run(two, {.args = {x3, x3}, .out = {y6}}) == NG_OK);
    CHECK(differs(f.get(y6), {1, 2, 3, 1, 2, 3}) == "");
}

TEST_CASE("P5: an extent inside is a polynomial of lengths: sums by concat, products by reshape")
{
    Face f;
    const ng_shape a = shape(NG_F32, {-1}), b = shape(NG_F32, {-2}), m = shape(NG_F32, {-1, -2});
    ng_expr *x = f.param(0, a), *y = f.param(1, b), *parts[] = {x, y, x};
    const int64_t rest = NG_REST, column[] = {-1, 1};
    ng_expr *joined = ng_scan(ng_concat(parts, 3, 0), 0, NG_FOLD_SUM, 0);
    ng_expr *outer = ng_mul(ng_reshape(x, column, 2), y), *flat = ng_reshape(ng_add(outer, f.param(2, m)), &rest, 1);
    ng_prog* p = f.compile({joined, flat, ng_length(f.s, -2)}, {.length_max = {10, 10}});
    ng_shape d{};
    d.size = sizeof d;
    const char* name = nullptr;
    CHECK(ng_prog_port(p, 4, &d, &name, &f.error) == NG_OK);
    CHECK(d.ndim == 1);
    for (int64_t n : {0, 1, 3})
        for (int64_t k : {0, 1, 2, 10}) {
            ng_tensor *tx = f.tensor(counted(size_t(n), 1)), *ty = f.tensor(counted(size_t(k), 5));
            ng_tensor *tm = f.tensor(shape(NG_F32, {n, k}), Values(size_t(n * k), 0.5)), *sums = f.make(shape(NG_F32, {2 * n + k}));
            ng_tensor *products = f.make(shape(NG_F32, {n * k})), *length = f.make(shape(NG_I64, {}));
            REQUIRE_MESSAGE(f.run(p, {.args = {tx, ty, tm}, .out = {sums, products, length}}) == NG_OK, f.said());
            Values want, grid;
            for (const auto& [count, first] : {std::pair{n, 1}, {k, 5}, {n, 1}})
                for (int64_t i = 0; i < count; i++) want.push_back((want.empty() ? 0 : want.back()) + double(first + i));
            for (int64_t i = 0; i < n * k; i++) grid.push_back(double(1 + i / k) * double(5 + i % k) + 0.5);
            CHECK(differs(f.get(sums), want) == "");
            CHECK(differs(f.get(products), grid) == "");
            CHECK(differs(f.get(length), {double(k)}) == "");
            CHECK(f.run(p, {.args = {tx, ty, tm}, .out = {f.make(shape(NG_F32, {2 * n + k + 1})), products, length}}) == NG_E_SHAPE);
        }
}

TEST_CASE("P5: lengths that are given: longer tensors lend their heads, and nothing behind a head is written")
{
    Face f;
    const ng_shape rows = shape(NG_F32, {-1, 3}), d = shape(NG_F32, {-1});
    ng_expr *x = f.param(0, rows), *i = ng_iota(f.s, &d, 0);
    ng_prog* p = f.compile({ng_neg(x), ng_sum(x, NG_AXIS_0, 0), i}, {.length_max = {100}});
    ng_tensor *tx = f.tensor(shape(NG_F32, {7, 3}), counted(21)), *y = f.tensor(shape(NG_F32, {9, 3}), Values(27, 77));
    ng_tensor *sum = f.make(shape(NG_F32, {3})), *steps = f.tensor(Values(5, 77));
    for (int64_t n : {5, 2, 0}) {
        f.put(y, Values(27, 77)), f.put(steps, Values(5, 77));
        REQUIRE_MESSAGE(f.run(p, {.args = {tx}, .out = {y, sum, steps}, .lengths = {n}}) == NG_OK, f.said());
        Values want(27, 77), sums(3, 0), count(5, 77);
        for (int64_t k = 0; k < 3 * n; k++) want[size_t(k)] = -double(k), sums[size_t(k) % 3] += double(k);
        for (int64_t k = 0; k < n; k++) count[size_t(k)] = double(k);
        CHECK(differs(f.get(y), want) == "");
        CHECK(differs(f.get(sum), sums) == "");
        CHECK(differs(f.get(steps), count) == "");
    }
    CHECK(f.run(p, {.args = {tx}, .out = {y, sum, steps}, .lengths = {6}}) == NG_E_SHAPE);   // steps is shorter
    CHECK(f.run(p, {.args = {tx}, .out = {y, sum, nullptr}, .lengths = {8}}) == NG_E_SHAPE); // x is shorter
    CHECK(f.run(p, {.args = {tx}, .out = {y, sum, nullptr}, .lengths = {101}}) == NG_E_LIMIT);
    CHECK(f.run(p, {.args = {tx}, .out = {y, sum, nullptr}, .lengths = {-1}}) < 0);
    ng_tensor* one = f.tensor(shape(NG_F32, {1, 3}), counted(3));
    CHECK(f.run(p, {.args = {one}, .out = {y, sum, nullptr}, .lengths = {2}}) == NG_E_SHAPE);
    // a column-major tensor lends its head with its own strides
    const ng_shape any = shape(NG_F32, {-1, 3}, {}, NG_ANY);
    ng_prog* q = f.compile({ng_neg(f.param(0, any))}, {.length_max = {100}});
    ng_tensor* columns = f.tensor(shape(NG_F32, {4, 3}, {1, 4}), counted(12));
    f.put(y, Values(27, 77));
    CHECK(f.run(q, {.args = {columns}, .out = {y}, .lengths = {2}}) == NG_OK);
    Values want(27, 77);
    for (size_t k = 0; k < 6; k++) want[k] = -double(k / 3 + k % 3 * 4);
    CHECK(differs(f.get(y), want) == "");
}

TEST_CASE("P5: rows of an unknown length: heads of longer ones, and a last axis of one element, whose stride says nothing")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1, -2});
    ng_expr* x = f.param(0, d);
    ng_prog* p = f.compile({ng_neg(x), ng_sum(x, NG_AXIS_1, 0)}, {.length_max = {9, 9}});
    ng_tensor *tx = f.tensor(shape(NG_F32, {5, 4}), counted(20)), *y = f.tensor(shape(NG_F32, {6, 7}), Values(42, 77)), *sums = f.make(shape(NG_F32, {3}));
    REQUIRE_MESSAGE(f.run(p, {.args = {tx}, .out = {y, sums}, .lengths = {3, 2}}) == NG_OK, f.said());
    Values want(42, 77);
    for (size_t k = 0; k < 6; k++) want[k / 2 * 7 + k % 2] = -double(k / 2 * 4 + k % 2);
    CHECK(differs(f.get(y), want) == "");
    CHECK(differs(f.get(sums), {1, 9, 17}) == "");
    ng_tensor *narrow = f.tensor(shape(NG_F32, {3, 1}, {1, 77}), {4, 5, 6}), *z = f.make(shape(NG_F32, {3, 1}));
    REQUIRE_MESSAGE(f.run(p, {.args = {narrow}, .out = {z, sums}}) == NG_OK, f.said());
    CHECK(differs(f.get(z), {-4, -5, -6}) == "");
    CHECK(differs(f.get(sums), {4, 5, 6}) == "");
    ng_tensor* columns = f.tensor(shape(NG_F32, {3, 2}, {1, 3}), counted(6));
    CHECK(f.run(p, {.args = {columns}, .out = {nullptr, sums}}) == NG_E_SHAPE);
}

TEST_CASE("P5: a length no argument shows, slices that must lie inside, a reshape to a length the program has not")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1}), steps = shape(NG_I64, {-1});
    ng_prog* counter = f.compile({ng_sum(ng_iota(f.s, &steps, 0), NG_ALL, 0)}, {.length_max = {1000}});
    ng_tensor* total = f.make(shape(NG_I64, {}));
    CHECK(f.run(counter, {.out = {total}}) == NG_E_INVALID);
    CHECK(f.run(counter, {.out = {total}, .lengths = {1000}}) == NG_OK);
    CHECK(differs(f.get(total), {499500}) == "");
    ng_prog* head = f.compile({ng_slice(f.param(0, d), 0, 1, 4, 1)}, {.length_max = {9}});
    ng_tensor* y = f.make(shape(NG_F32, {3}));
    CHECK(f.run(head, {.args = {f.tensor(counted(9))}, .out = {y}}) == NG_OK);
    CHECK(differs(f.get(y), {1, 2, 3}) == "");
    CHECK(f.run(head, {.args = {f.tensor(counted(4))}, .out = {y}}) == NG_OK);
    CHECK(f.run(head, {.args = {f.tensor(counted(3))}, .out = {y}}) == NG_E_SHAPE);
    CHECK(f.error.text[0]);
    // Lengths that nothing mentions are not asked for, nor looked at.
    const ng_shape second = shape(NG_F32, {-2});
    ng_prog* one = f.compile({ng_neg(f.param(0, second))}, {.length_max = {5, 5, 5}});
    ng_tensor* z = f.make(shape(NG_F32, {2}));
    CHECK(f.run(one, {.args = {f.tensor(counted(2))}, .out = {z}}) == NG_OK);
    CHECK(differs(f.get(z), {-0., -1}) == "");
    CHECK(f.run(one, {.args = {f.tensor(counted(2))}, .out = {z}, .lengths = {99, 2, -1}}) == NG_OK);
    CHECK(f.run(one, {.args = {f.tensor(counted(2))}, .out = {z}, .lengths = {0, 6, 0}}) == NG_E_LIMIT);
    const int64_t unknown[] = {-3};
    ng_prog* none = nullptr;
    CHECK(f.try_compile({ng_reshape(f.param(0, d), unknown, 1)}, {.length_max = {9}}, &none) < 0);
    CHECK(f.says("NG_REST"));
}

TEST_CASE("P5: what must not fall below is looked at when run: a start counted from the end, and something to choose from")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1});
    ng_expr* x = f.param(0, d);
    ng_prog* tail = f.compile({ng_slice(x, 0, -3, NG_END, 1)}, {.length_max = {9}});
    ng_tensor* three = f.make(shape(NG_F32, {3}));
    CHECK(f.run(tail, {.args = {f.tensor(counted(5))}, .out = {three}}) == NG_OK);
    CHECK(differs(f.get(three), {2, 3, 4}) == "");
    CHECK(f.run(tail, {.args = {f.tensor(counted(2))}, .out = {three}}) == NG_E_SHAPE);
    CHECK(f.says("not inside"));
    ng_prog* greatest = f.compile({ng_max(x, NG_ALL, 0)}, {.length_max = {9}});
    ng_tensor* most = f.make(shape(NG_F32, {}));
    CHECK(f.run(greatest, {.args = {f.tensor(counted(4))}, .out = {most}}) == NG_OK);
    CHECK(differs(f.get(most), {3}) == "");
    CHECK(f.run(greatest, {.args = {f.tensor(Values{})}, .out = {most}}) == NG_E_SHAPE);
    CHECK(f.says("no element"));
    CHECK(differs(f.get(most), {3}) == "");
}

TEST_CASE("P5: what takes memory by its length is refused without a greatest one that fits, or has all that it takes")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1});
    ng_expr* const x = f.param(0, d);
    ng_tensor* const some = f.tensor(counted(70000));
    for (ng_expr* e : {ng_argsort(x, 0, 0), ng_scan(x, 0, NG_FOLD_SUM, 0), ng_put(x, ng_argsort(x, 0, 0), x, 0, NG_FOLD_SUM)})
        for (const int64_t most : {INT64_MAX, int64_t(1) << 58, int64_t(1) << 40}) {
            ng_prog* p = nullptr;
            const ng_status status = f.try_compile({e}, {.length_max = {most}}, &p);
            CHECK_MESSAGE((status == NG_OK || status == NG_E_DEVMEM || status == NG_E_LIMIT), f.said());
            if (status != NG_OK) continue;
            CHECK(f.run(p, {.args = {some}, .out = {f.make(shape(f.type_of(e), {70000}))}}) >= 0);
            ng_prog_release(p);
        }
}

TEST_CASE("P5: an output over its argument, but elsewhere: nothing behind the head is written")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1});
    ng_expr* const x = f.param(0, d);
    ng_prog* p = f.compile({ng_add(x, x)}, {.alias = {0}, .length_max = {20}});
    ng_tensor *const all = f.tensor(counted(12)), *const arg = f.part(all, 0, 0, 10), *const out = f.part(all, 0, 1, 11);
    REQUIRE_MESSAGE(f.run(p, {.args = {arg}, .out = {out}, .lengths = {3}}) == NG_OK, f.said());
    CHECK(differs(f.get(all), {0, 0, 2, 4, 4, 5, 6, 7, 8, 9, 10, 11}) == "");
}

TEST_CASE("P5: axes that a length would make less than nothing are refused when run")
{
    Face f;
    const ng_shape x = shape(NG_F32, {8}), offsets = shape(NG_I64, {-1});
    ng_expr* const parts = ng_segment(f.param(0, x), f.param(1, offsets), NG_FOLD_SUM);
    ng_tensor *four = f.tensor(Values(4, 77)), *one = f.make(shape(NG_F32, {})), *none = f.tensor(shape(NG_I64, {0}), {}), *begin = f.tensor(shape(NG_I64, {1}), {0});
    ng_prog* p = f.compile({ng_add(ng_mul(ng_relu(parts), ng_const(f.s, NG_F32, 2)), ng_const(f.s, NG_F32, 1)), ng_sum(parts, NG_ALL, 0)}, {.length_max = {16}});
    CHECK(f.run(p, {.args = {f.tensor(counted(8)), none}, .out = {four, one}, .lengths = {0}}) == NG_E_SHAPE);
    CHECK(f.says("negative"));
    CHECK(f.run(p, {.args = {f.tensor(counted(8)), none}, .out = {nullptr, one}}) == NG_E_SHAPE);
    CHECK(f.run(p, {.args = {f.tensor(counted(8)), begin}, .out = {four, one}, .lengths = {1}}) == NG_OK);
    // Two such axes have a product that is not negative.
    ng_prog* q = f.compile({f.text("broadcast(1.0, [(-1)-300, (-1)-300])", "", {})}, {.length_max = {1000}});
    ng_tensor* square = f.tensor(shape(NG_F32, {4, 4}), Values(16, 77));
    CHECK(f.run(q, {.out = {square}, .lengths = {1}}) == NG_E_SHAPE);
    CHECK(f.says("negative"));
    CHECK(differs(f.get(square), Values(16, 77)) == "");
    CHECK(f.run(q, {.out = {square}, .lengths = {302}}) == NG_OK);
    CHECK(f.get(square)[0] == 1);
}

TEST_CASE("P5: a step over a length takes as many elements as Python does, and a stride as many windows as there is room for")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1}), twice = shape(NG_F32, {-1, 2});
    const int64_t rest = NG_REST, planes[] = {1, 1, NG_REST};
    ng_expr *const x = f.param(0, d), *const even = ng_reshape(f.param(0, twice), &rest, 1);
    const auto slices = [&](ng_expr* e, const Values& all, const Values& want, int64_t start, int64_t stop, int64_t step, const ng_shape& given) {
        ng_prog* p = f.compile({ng_slice(e, 0, start, stop, step)}, {.length_max = {9}});
        ng_tensor* y = f.make(shape(NG_F32, {int64_t(want.size())}));
        REQUIRE_MESSAGE(f.run(p, {.args = {f.tensor(given, all)}, .out = {y}}) == NG_OK, f.said());
        CHECK(differs(f.get(y), want) == "");
    };
    slices(x, counted(5), {0, 2}, 0, 4, 2, shape(NG_F32, {5}));
    slices(x, counted(6), {0, 3}, 0, 6, 3, shape(NG_F32, {6}));
    slices(x, counted(5), {4, 2}, 4, 0, -2, shape(NG_F32, {5}));
    slices(even, counted(6), {0, 2, 4}, 0, NG_END, 2, shape(NG_F32, {3, 2}));
    slices(even, counted(6), {1, 3}, 1, -1, 2, shape(NG_F32, {3, 2}));
    slices(even, {}, {}, 0, NG_END, 2, shape(NG_F32, {0, 2}));
    ng_prog* none = nullptr;
    CHECK(f.try_compile({ng_slice(x, 0, 0, NG_END, 2)}, {.length_max = {9}}, &none) == NG_E_UNSUPPORTED);
    // 2 n - 1 elements of room by steps of two: n windows.
    ng_conv_desc two = {.size = sizeof two, .flags = 0, .stride = {2}, .dilate = {}, .pad_lo = {1}, .pad_hi = {1}, .groups = 0, .reserved = 0, .pad_value = 0};
    ng_prog* p = f.compile({ng_conv(ng_reshape(f.param(0, twice), planes, 3), f.leaf(shape(NG_F32, {1, 1, 3}), {1, 1, 1}), &two)}, {.length_max = {9}});
    ng_tensor* y = f.make(shape(NG_F32, {1, 1, 3}));
    REQUIRE_MESSAGE(f.run(p, {.args = {f.tensor(shape(NG_F32, {3, 2}), counted(6))}, .out = {y}}) == NG_OK, f.said());
    CHECK(differs(f.get(y), {1, 6, 12}) == "");
}

TEST_CASE("P5: a length that only an operand shows which does not matter, and one that only a derivative has")
{
    Face f;
    const ng_shape whole = shape(NG_I32, {-1}), d = shape(NG_F32, {-1}), one = shape(NG_F32, {1}), column = shape(NG_F32, {-1, 1}), is = shape(NG_BOOL, {-1});
    ng_expr *i = f.param(0, whole), *zero = ng_const_int(f.s, NG_I32, 0);
    ng_tensor *five = f.tensor(shape(NG_I32, {5}), counted(5)), *y = f.make(shape(NG_I32, {5})), *z = f.make(shape(NG_F32, {5})), *at = f.make(shape(NG_I64, {5, 1}));
    for (ng_expr* e : {ng_mul(i, zero), ng_mul(zero, i)}) {
        f.put(y, Values(5, 77));
        REQUIRE_MESSAGE(f.run(f.compile({e}, {.length_max = {9}}), {.args = {five}, .out = {y}}) == NG_OK, f.said());
        CHECK(differs(f.get(y), Values(5, 0)) == "");
        CHECK(f.run(f.compile({e}, {.length_max = {9}}), {.args = {f.tensor(counted(5))}, .out = {y}}) == NG_E_DTYPE);
    }
    ng_expr* const x = f.param(0, one);
    REQUIRE_MESSAGE(f.run(f.compile({ng_where(f.param(1, is), x, x)}, {.length_max = {9}}), {.args = {f.tensor({3}), f.tensor(shape(NG_BOOL, {5}), {1, 0, 1, 0, 1})}, .out = {z}}) == NG_OK, f.said());
    CHECK(differs(f.get(z), Values(5, 3)) == "");
    REQUIRE_MESSAGE(f.run(f.compile({ng_where(ng_const(f.s, NG_F32, 1), x, f.param(1, d))}, {.length_max = {9}}), {.args = {f.tensor({4}), f.tensor(counted(5))}, .out = {z}}) == NG_OK, f.said());
    CHECK(differs(f.get(z), Values(5, 4)) == "");
    REQUIRE_MESSAGE(f.run(f.compile({ng_argmax(f.param(0, column), NG_AXIS_1, NG_KEEP)}, {.length_max = {9}}), {.args = {f.tensor(shape(NG_F32, {5, 1}), counted(5))}, .out = {at}}) == NG_OK, f.said());
    CHECK(differs(f.get(at), Values(5, 0)) == "");
    // w is part of a derivative that nobody asks for.
    ng_expr *four = f.param(0, shape(NG_F32, {4})), *w = f.param(1, d);
    ng_prog* value = f.compile({ng_surrogate(ng_mul(four, ng_const(f.s, NG_F32, 2)), ng_mul(four, ng_sum(w, NG_ALL, 0)))});
    ng_tensor* doubled = f.make(shape(NG_F32, {4}));
    REQUIRE_MESSAGE(f.run(value, {.args = {f.tensor(counted(4))}, .out = {doubled}}) == NG_OK, f.said());
    CHECK(differs(f.get(doubled), {0, 2, 4, 6}) == "");
}

TEST_CASE("P5: the greatest of nothing has a derivative, which is empty, and that of something is at the first of the greatest")
{
    Face f;
    ng_expr *const x = f.param(0, shape(NG_F32, {-1, -2})), *const greatest = f.text("max(x, 0, lowest)", "x", {x});
    ng_prog* const p = f.compile(f.grad({greatest}, {x}), {.length_max = {9, 9}});
    const auto check = [&](const Dims& dims, const Values& values, const Values& want) {
        ng_tensor* const y = f.make(shape(NG_F32, dims));
        REQUIRE_MESSAGE(f.run(p, {.args = {f.tensor(shape(NG_F32, dims), values)}, .out = {y}}) == NG_OK, f.said());
        CHECK(differs(f.get(y), want) == "");
    };
    check({3, 2}, {1, 5, 4, 5, 4, 3}, {0, 1, 1, 0, 0, 0});
    check({3, 2}, {-INFINITY, 5, -INFINITY, NAN, -INFINITY, NAN}, {1, 0, 0, 1, 0, 0});
    check({0, 2}, {}, {});
    check({3, 0}, {}, {});
}

TEST_CASE("P5: rows that two lengths give together, of a product and what follows it: few, many, none, and heads of longer tensors")
{
    Face f;
    constexpr int64_t DEPTH = 64, COLUMNS = 64, MOST = 48;
    for (const ng_dtype t : {NG_I8, NG_E4M3, NG_F32}) {
        const ng_dtype sum = t == NG_I8 ? NG_I32 : NG_F32;
        const auto small = [](int64_t n, int64_t step) {
            Values v;
            for (int64_t i = 0; i < n; i++) v.push_back(double(i * step % 7 % 5 - 2));
            return v;
        };
        const ng_shape rows = shape(t, {-1, -2, DEPTH}), square = shape(t, {DEPTH, COLUMNS}), bias = shape(sum, {COLUMNS});
        ng_expr* out = f.text("relu(x @ y + z) * 2", "x,y,z", {f.param(0, rows), f.param(1, square), f.param(2, bias)});
        ng_prog* p = f.compile({out}, {.length_max = {MOST, MOST}});
        const Values y = small(DEPTH * COLUMNS, 5), z = small(COLUMNS, 3);
        ng_tensor *ty = f.tensor(square, y), *tz = f.tensor(bias, z);
        REQUIRE_MESSAGE(ng_prog_wait(p, UINT64_MAX, &f.error) == NG_OK, f.said());
        for (const auto& [a, b] : {std::pair{1, 1}, {1, 5}, {7, 3}, {2, 48}, {48, 48}, {40, 13}, {0, 4}, {3, 0}})
            for (const int more : {0, 1}) {              // rows behind those of each head
                INFO(t << ": " << a << " x " << b << ", " << more << " more");
                if (a + more > MOST || b + more > MOST) continue;
                const Values x = small((a + more) * (b + more) * DEPTH, 11);
                ng_tensor *tx = f.tensor(shape(t, {a + more, b + more, DEPTH}), x), *to = f.make(shape(sum, {a, b, COLUMNS}));
                REQUIRE_MESSAGE(f.run(p, {.args = {tx, ty, tz}, .out = {to}, .lengths = {a, b}}) == NG_OK, f.said());
                Values want;
                for (int64_t i = 0; i < a; i++)
                    for (int64_t j = 0; j < b; j++)
                        for (int64_t c = 0; c < COLUMNS; c++) {
                            double all = z[size_t(c)];
                            for (int64_t k = 0; k < DEPTH; k++) all += x[size_t((i * (b + more) + j) * DEPTH + k)] * y[size_t(k * COLUMNS + c)];
                            want.push_back(2 * std::max(all, 0.));
                        }
                CHECK(differs(f.get(to), want) == "");
            }
    }
}

// Planned as rows one behind the other; that they are not shows only here, and a copy of them would take more than was planned.
TEST_CASE("P5: a product of any strides whose batches are no rows, in the workspace of one whose batches are")
{
    Face f;
    constexpr int64_t BATCHES = 100, ROWS = 2, DEPTH = 64, COLUMNS = 64;
    const ng_shape rows = shape(NG_F16, {-1, -2, DEPTH}, {}, NG_ANY), square = shape(NG_F16, {DEPTH, COLUMNS});
    const auto small = [](int64_t n, int64_t step) {
        Values v;
        for (int64_t i = 0; i < n; i++) v.push_back(double(i * step % 7 % 5 - 2));
        return v;
    };
    const Values x = small(BATCHES * ROWS * DEPTH, 11), y = small(DEPTH * COLUMNS, 5);
    ng_prog* p = f.compile({ng_matmul(f.param(0, rows), f.param(1, square), 0)}, {.length_max = {BATCHES, ROWS}});
    REQUIRE_MESSAGE(ng_prog_wait(p, UINT64_MAX, &f.error) == NG_OK, f.said());
    ng_tensor* ty = f.tensor(square, y);
    for (const Dims& strides : {Dims{ROWS * DEPTH, 1, ROWS}, Dims{DEPTH, BATCHES * DEPTH, 1}, Dims{1, BATCHES, ROWS * BATCHES}, Dims{ROWS * DEPTH, DEPTH, 1}}) {
        ng_tensor *tx = f.tensor(shape(NG_F16, {BATCHES, ROWS, DEPTH}, strides), x), *to = f.make(shape(NG_F32, {BATCHES, ROWS, COLUMNS}));
        REQUIRE_MESSAGE(f.run(p, {.args = {tx, ty}, .out = {to}}) == NG_OK, f.said());
        Values want;
        for (int64_t i = 0; i < BATCHES; i++)
            for (int64_t j = 0; j < ROWS; j++)
                for (int64_t c = 0; c < COLUMNS; c++) {
                    double all = 0;
                    for (int64_t k = 0; k < DEPTH; k++) all += x[size_t(i * strides[0] + j * strides[1] + k * strides[2])] * y[size_t(k * COLUMNS + c)];
                    want.push_back(all);
                }
        CHECK(differs(f.get(to), want) == "");
    }
}

TEST_CASE("P5: windows that a length leaves no place for are refused when run, as they are where the length is known")
{
    Face f;
    const ng_shape row = shape(NG_F32, {1, 1, -1}), list = shape(NG_F32, {-1});
    ng_expr* const x = f.param(0, row);
    ng_pool_desc four = {.size = sizeof four, .flags = 0, .kind = NG_POOL_MEAN, .window = {4}, .stride = {1}, .dilate = {}, .pad_lo = {}, .pad_hi = {}, .channel_window = 0, .channel_stride = 0, .channel_pad = 0};
    ng_expr* const w = f.leaf(shape(NG_F32, {1, 1, 4}), {1, 1, 1, 1});
    ng_expr* const pooled = ng_sum(ng_pool(x, &four), NG_ALL, 0);
    ng_expr *const conv = ng_conv(x, w, nullptr), *const filtered = ng_sum(conv, NG_ALL, 0);
    ng_expr* const by_x[] = {f.grad({pooled}, {x})[0], f.grad({ng_sum(ng_mul(conv, conv), NG_ALL, 0)}, {x})[0]};
    ng_tensor* const one = f.make(shape(NG_F32, {}));
    for (ng_expr* e : {pooled, filtered}) {
        ng_prog* p = f.compile({e}, {.length_max = {9}});
        for (const int n : {0, 1, 3}) {
            CHECK(f.run(p, {.args = {f.tensor(shape(NG_F32, {1, 1, n}), counted(n))}, .out = {one}}) == NG_E_SHAPE);
            CHECK(f.says("no window fits axis 2"));
        }
        CHECK(f.run(p, {.args = {f.tensor(shape(NG_F32, {1, 1, 4}), counted(4))}, .out = {one}}) == NG_OK);
        CHECK(f.get(one)[0] == (e == pooled ? 1.5 : 6));
    }
    for (ng_expr* e : by_x) {
        ng_prog* p = f.compile({e}, {.length_max = {9}});
        for (const int n : {1, 3}) CHECK(f.run(p, {.args = {f.tensor(shape(NG_F32, {1, 1, n}), counted(n))}, .out = {f.make(shape(NG_F32, {1, 1, n}))}}) == NG_E_SHAPE);
    }
    ng_prog* seen = f.compile({ng_window(f.param(0, list), 0, ng_const_int(f.s, NG_I64, 1), 4)}, {.length_max = {9}});
    ng_tensor* const y = f.make(shape(NG_F32, {4}));
    CHECK(f.run(seen, {.args = {f.tensor(counted(3))}, .out = {y}}) == NG_E_SHAPE);
    CHECK(f.says("ng_window"));
    CHECK(f.run(seen, {.args = {f.tensor(counted(4))}, .out = {y}}) == NG_OK);
    CHECK(differs(f.get(y), {0, 1, 2, 3}) == "");
    CHECK(f.run(seen, {.args = {f.tensor(counted(9))}, .out = {y}}) == NG_OK);
    CHECK(differs(f.get(y), {1, 2, 3, 4}) == "");
}
