// The rules of evaluation: inputs are read before outputs are written, overlaps, dtypes and shapes of outputs, holes.
#include "tests/contract/face.h"

#include <utility>

namespace {
constexpr size_t LONG = 70001;  // longer than any block of the CPU backend and no multiple of one

Values reversed(Values v)
{
    std::reverse(v.begin(), v.end());
    return v;
}

// Axes nested as `order` says, the outermost first, with so many elements unused behind each of the innermost rows.
ng_shape nested(const ng_shape& like, const Dims& order, int64_t gap)
{
    ng_shape d = like;
    d.flags = NG_STRIDED;
    int64_t next = 1;
    for (size_t k = order.size(); k-- > 0; next = next * d.dims[order[k]] + std::exchange(gap, 0)) d.strides[order[k]] = next;
    return d;
}

// Row-major, from where no vector begins.
ng_tensor* shifted(Face& f, const ng_shape& d)
{
    ng_shape view = nested(d, {0, 1, 2}, 0);
    return f.view(ng_view(ng_leaf(f.s, f.make(shape(d.dtype, {int64_t(count_of(d)) + 1}))), &view, 1));
}
Values row_major(Face& f, ng_tensor* t)
{
    const ng_shape d = f.shape_of(t);
    ng_tensor* const dense = f.make(shape(d.dtype, Dims(d.dims, d.dims + d.ndim)));
    CHECK(ng_tensor_copy(dense, t, nullptr, &f.error) == NG_OK);
    return f.get(dense);
}

// A softmax, a difference from the mean and a sum over these axes, with one of the first two in every place.
void check_places(Face& f, const ng_shape& dense, uint32_t axes)
{
    const Dims orders[] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {2, 0, 1}};
    constexpr size_t UNWANTED = std::size(orders), SHIFTED = UNWANTED + 1;
    const ng_dtype t = dense.dtype;
    ng_shape any = dense;
    any.flags = NG_ANY;
    ng_expr* const x = f.param(0, any);
    const Exprs all = {ng_cast(ng_softmax(x, axes), t), ng_cast(ng_sub(ng_exp(x), ng_mean(x, axes, 1)), t), ng_cast(ng_sum(x, axes, 0), t)};
    const ng_shape sums = f.shape_of(all[2]), flat = shape(NG_F64, {int64_t(count_of(dense))});
    ng_prog* const p = f.compile(all, {.out = {&any, &any, &sums}});
    ng_tensor* const from = f.make(nested(dense, orders[axes % 5], axes % 2));
    CHECK(f.eval_into({ng_cast(ng_reshape(ng_sin(ng_iota(f.s, &flat, 0)), dense.dims, 3), t)}, {from}) == NG_OK);
    const Tensors want = {f.make(dense), f.make(dense), f.make(sums)};
    CHECK(f.run(p, {.args = {from}, .out = want}) == NG_OK);
    for (size_t other = 0; other < 2; other++)
        for (size_t place = 0; place <= SHIFTED; place++) {
            Tensors out = {f.make(dense), f.make(dense), f.make(sums)};
            out[other] = place < UNWANTED ? f.make(nested(dense, orders[place], int64_t(place) % 2)) : place == UNWANTED ? nullptr : shifted(f, dense);
            CHECK(f.run(p, {.args = {from}, .out = out}) == NG_OK);
            for (size_t j = 0; j < out.size(); j++) {
                if (!out[j]) continue;
                const std::string fault = differs(row_major(f, out[j]), f.get(want[j]));
                CHECK_MESSAGE(fault == "", "output ", j, " of dims ", dense.dims[0], " .., type ", t, ", over axes ", axes, ", place ", place, " of output ", other);
            }
        }
}
}

TEST_CASE("E1: an output over its input sees the values before")
{
    Face f;
    ng_tensor* t = f.tensor(counted(LONG));
    ng_expr* x = ng_leaf(f.s, t);
    CHECK(f.eval_into({ng_slice(x, 0, NG_END, INT64_MIN, -1)}, {t}) == NG_OK);
    CHECK(differs(f.get(t), reversed(counted(LONG))) == "");
    CHECK(f.eval_into({ng_add(x, x)}, {t}) == NG_OK);
    CHECK(differs(f.get(t), reversed(counted(LONG, 0, 2))) == "");
}

TEST_CASE("E1: an output one element on from its input moves the values, up and down")
{
    Face f;
    for (int up = 0; up < 2; up++) {
        ng_tensor* t = f.tensor(counted(LONG));
        ng_tensor *low = f.part(t, 0, 0, -1), *high = f.part(t, 0, 1, NG_END);
        ng_expr* from = ng_leaf(f.s, up ? low : high);
        CHECK(f.eval_into({ng_add(from, ng_const(f.s, 0, 0.5))}, {up ? high : low}) == NG_OK);
        Values want = counted(LONG);
        for (size_t i = 0; i + 1 < LONG; i++) want[up ? i + 1 : i] = double(up ? i : i + 1) + 0.5;
        CHECK(differs(f.get(t), want) == "");
    }
}

TEST_CASE("E1: sums, products, takes, scans and sorts may be written over what they read")
{
    Face f;
    const ng_shape square = shape(NG_F64, {3, 3});
    ng_tensor* t = f.tensor(square, counted(9));
    ng_expr* x = ng_leaf(f.s, t);
    CHECK(f.eval_into({ng_matmul(x, x, nullptr)}, {t}) == NG_OK);
    CHECK(differs(f.get(t), {15, 18, 21, 42, 54, 66, 69, 90, 111}) == "");
    f.put(t, counted(9));
    CHECK(f.eval_into({f.text("x - sum(x)", "x", {x})}, {t}) == NG_OK);
    CHECK(differs(f.get(t), counted(9, -36)) == "");
    f.put(t, counted(9));
    const int32_t swap[] = {1, 0};
    CHECK(f.eval_into({ng_permute(x, swap, 2)}, {t}) == NG_OK);
    CHECK(differs(f.get(t), {0, 3, 6, 1, 4, 7, 2, 5, 8}) == "");
    CHECK(f.eval_into({ng_scan(x, 1, NG_FOLD_SUM, NG_REVERSE)}, {t}) == NG_OK);
    CHECK(differs(f.get(t), {9, 9, 6, 12, 11, 7, 15, 13, 8}) == "");
    ng_tensor* i = f.tensor(shape(NG_I64, {4}), {3, 0, 2, 1});
    ng_expr* at = ng_leaf(f.s, i);
    CHECK(f.eval_into({ng_argsort(at, 0, 0)}, {i}) == NG_OK);
    CHECK(differs(f.get(i), {1, 3, 2, 0}) == "");
    CHECK(f.eval_into({ng_take(at, at, 0)}, {i}) == NG_OK);
    CHECK(differs(f.get(i), {3, 0, 2, 1}) == "");
}

TEST_CASE("E1: a program told of an alias plans for it, in place or anywhere in that memory; one not told refuses")
{
    Face f;
    const ng_shape d = shape(NG_F32, {64});
    ng_tensor *wide = f.tensor(counted(66)), *other = f.tensor(counted(64));
    ng_tensor *low = f.part(wide, 0, 0, 64), *high = f.part(wide, 0, 1, 65);
    ng_expr* back = ng_slice(f.param(0, d), 0, NG_END, INT64_MIN, -1);
    ng_prog *told = f.compile({back}, {.alias = {0}}), *plain = f.compile({back});
    CHECK(f.run(plain, {.args = {low}, .out = {low}}) == NG_E_INVALID);
    CHECK(f.error.text[0]);
    CHECK(f.run(plain, {.args = {low}, .out = {high}}) == NG_E_INVALID);
    CHECK(differs(f.get(wide), counted(66)) == "");
    CHECK(f.run(told, {.args = {low}, .out = {low}}) == NG_OK);
    CHECK(differs(f.get(low), reversed(counted(64))) == "");
    f.put(wide, counted(66));
    CHECK(f.run(told, {.args = {low}, .out = {high}}) == NG_OK);
    CHECK(differs(f.get(high), reversed(counted(64))) == "");
    f.put(wide, counted(66));
    CHECK(f.run(told, {.args = {high}, .out = {low}}) == NG_OK);
    CHECK(differs(f.get(low), reversed(counted(64, 1))) == "");
    CHECK(f.run(told, {.args = {other}, .out = {low}}) == NG_OK);
    CHECK(differs(f.get(low), reversed(counted(64))) == "");
}

TEST_CASE("E1: a leaf that another thread binds meanwhile is one tensor to the whole evaluation, the output or not")
{
    constexpr int N = 5000;
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_REFERENCE)})
        for (const bool has_twin : {false, true}) {
            Face f(flags, 1);
            const Values first = counted(N), second = counted(N, 10000);
            ng_tensor *t = f.tensor(first), *o = f.tensor(second);
            ng_scope* apart = ng_scope_create(f.c, 0);
            ng_expr *x = ng_leaf(f.s, t), *still = ng_leaf(has_twin ? apart : f.s, t), *turned = ng_slice(x, 0, NG_END, NG_END, -1);
            const Exprs e = {turned, ng_sub(still, ng_const(f.s, 0, 1))};
            ng_tensor* less = f.make(shape(NG_F32, {N}));
            std::atomic<bool> stop{false};
            std::thread binder([&] {
                for (int i = 0; !stop; i++) (void)ng_expr_bind(x, i % 2 ? t : o, nullptr);
            });
            int strays = 0;
            for (int round = 0; round < 100; round++) {
                f.put(o, second);
                strays += f.eval_into(e, {o, less}) != NG_OK;
                const Values got = f.get(o);
                strays += differs(got, counted(N, N - 1, -1)) != "" && differs(got, counted(N, 10000 + N - 1, -1)) != "";
                // In one scope still is the very node x.
                const bool is_second = !has_twin && got[0] >= 10000;
                strays += differs(f.get(less), counted(N, is_second ? 9999 : -1)) != "";
            }
            stop = true;
            binder.join();
            CHECK(strays == 0);
            ng_scope_release(apart);
        }
}

TEST_CASE("E2: views of one memory with equal strides overlap by their elements: planes and combs apart are apart")
{
    Face f;
    ng_tensor* box = f.tensor(shape(NG_F32, {4, 6}), counted(24));
    ng_tensor *ghost = f.part(box, 1, 0, 1), *beside = f.part(box, 1, 1, 2);
    const ng_shape column = f.shape_of(ghost);
    ng_prog* copy = f.compile({ng_add(f.param(0, column), ng_const(f.s, 0, 0.))}, {.out = {&column}});
    CHECK(f.run(copy, {.args = {beside}, .out = {ghost}}) == NG_OK);
    CHECK(differs(f.get(ghost), {1, 7, 13, 19}) == "");
    CHECK(f.run(copy, {.args = {ghost}, .out = {ghost}}) == NG_E_INVALID);

    ng_tensor *comb = f.tensor(counted(20)), *even = f.part(comb, 0, 0, 20, 2), *odd = f.part(comb, 0, 1, 20, 2);
    const ng_shape teeth = f.shape_of(even);
    ng_prog* negate = f.compile({ng_neg(f.param(0, teeth))}, {.out = {&teeth}});
    CHECK(f.run(negate, {.args = {even}, .out = {odd}}) == NG_OK);
    CHECK(differs(f.get(comb), {0, 0, 2, -2, 4, -4, 6, -6, 8, -8, 10, -10, 12, -12, 14, -14, 16, -16, 18, -18}) == "");
    CHECK(differs(f.get(odd), counted(10, 0, -2)) == "");
}

TEST_CASE("E2: views of unlike strides overlap by address range, and NG_RUN_DISTINCT vouches that they do not")
{
    Face f;
    ng_tensor *t = f.tensor(counted(32)), *even = f.part(t, 0, 0, 16, 2), *odd = f.part(t, 0, 1, 32, 4);
    const ng_shape in = f.shape_of(even), out = f.shape_of(odd);
    ng_prog* p = f.compile({ng_neg(f.param(0, in))}, {.out = {&out}});
    CHECK(f.run(p, {.args = {even}, .out = {odd}}) == NG_E_INVALID);
    CHECK(f.run(p, {.args = {even}, .out = {odd}, .flags = NG_RUN_DISTINCT}) == NG_OK);
    CHECK(differs(f.get(odd), counted(8, 0, -2)) == "");
    f.put(t, counted(32));
    ng_tensor* far = f.part(t, 0, 17, 32, 2);
    const ng_shape end = f.shape_of(far);
    ng_tensor* begin = f.part(t, 0, 0, 8);
    const ng_shape dense = f.shape_of(begin);
    ng_prog* apart = f.compile({ng_neg(f.param(0, dense))}, {.out = {&end}});
    CHECK(f.run(apart, {.args = {begin}, .out = {far}}) == NG_OK);
    CHECK(differs(f.get(far), counted(8, 0, -1)) == "");
}

TEST_CASE("E3: sum into x beside difference into y is a rotation, in an evaluation and in a program")
{
    Face f;
    Values sum(LONG), difference(LONG);
    for (size_t i = 0; i < LONG; i++) sum[i] = double(i % 1000) + double(i % 777), difference[i] = double(i % 1000) - double(i % 777);
    const auto first = [](double cycle) {
        Values v(LONG);
        for (size_t i = 0; i < LONG; i++) v[i] = double(i % size_t(cycle));
        return v;
    };
    ng_tensor *a = f.tensor(first(1000)), *b = f.tensor(first(777));
    ng_expr *x = ng_leaf(f.s, a), *y = ng_leaf(f.s, b);
    CHECK(f.eval_into({ng_add(x, y), ng_sub(x, y)}, {a, b}) == NG_OK);
    CHECK(differs(f.get(a), sum) == "");
    CHECK(differs(f.get(b), difference) == "");

    const ng_shape d = shape(NG_F32, {int64_t(LONG)});
    ng_expr *p = f.param(0, d), *q = f.param(1, d);
    ng_prog* rotate = f.compile({ng_add(p, q), ng_sub(p, q)}, {.alias = {0, 1}});
    f.put(a, first(1000)), f.put(b, first(777));
    CHECK(f.run(rotate, {.args = {a, b}, .out = {a, b}}) == NG_OK);
    CHECK(differs(f.get(a), sum) == "");
    CHECK(differs(f.get(b), difference) == "");
}

TEST_CASE("E3: a swap, a reduction beside a write over what it reduces, and a product beside a write over its operand")
{
    Face f;
    ng_tensor *a = f.tensor(counted(5)), *b = f.tensor(counted(5, 10)), *total = f.tensor(shape(NG_F32, {}), {0});
    ng_expr *x = ng_leaf(f.s, a), *y = ng_leaf(f.s, b);
    CHECK(f.eval_into({y, x, ng_sum(x, NG_ALL, 0)}, {a, b, total}) == NG_OK);
    CHECK(differs(f.get(a), counted(5, 10)) == "");
    CHECK(differs(f.get(b), counted(5)) == "");
    CHECK(differs(f.get(total), {10}) == "");
    const ng_shape square = shape(NG_F32, {2, 2});
    ng_tensor *m = f.tensor(square, {1, 2, 3, 4}), *n = f.make(square);
    ng_expr *p = f.param(0, square), *zero = ng_sub(p, p);
    ng_prog* both = f.compile({zero, ng_matmul(p, p, nullptr)}, {.alias = {0, -1}});
    CHECK(f.run(both, {.args = {m}, .out = {m, n}}) == NG_OK);
    CHECK(differs(f.get(m), {0, 0, 0, 0}) == "");
    CHECK(differs(f.get(n), {7, 10, 15, 22}) == "");
}

TEST_CASE("E4: nothing is converted in silence, and an output may be one that its expression broadcasts to")
{
    Face f;
    ng_expr* x = f.leaf({1, 2, 3});
    ng_tensor *wrong_type = f.make(shape(NG_F64, {3})), *wrong_shape = f.make(shape(NG_F32, {4})), *narrow = f.make(shape(NG_F16, {3}));
    CHECK(f.eval_into({x}, {wrong_type}) == NG_E_DTYPE);
    CHECK(f.says("f64"));
    CHECK(f.eval_into({x}, {narrow}) == NG_E_DTYPE);
    CHECK(f.eval_into({x}, {wrong_shape}) == NG_E_SHAPE);
    CHECK(f.says("[4]"));
    CHECK(f.says("[3]"));
    ng_tensor *rows = f.make(shape(NG_F32, {2, 3})), *flat = f.make(shape(NG_F32, {3, 1}));
    CHECK(f.eval_into({ng_neg(x)}, {rows}) == NG_OK);
    CHECK(differs(f.get(rows), {-1, -2, -3, -1, -2, -3}) == "");
    CHECK(f.eval_into({x}, {flat}) == NG_E_SHAPE);
    CHECK(f.eval_into({ng_sum(x, NG_ALL, 0)}, {rows}) == NG_OK);
    CHECK(differs(f.get(rows), Values(6, 6)) == "");
    CHECK(f.eval_into({ng_add(f.leaf(shape(NG_F32, {4, 3}), counted(12)), x)}, {f.make(shape(NG_F32, {1, 3}))}) == NG_E_SHAPE);
}

TEST_CASE("E4: so it is for programs, whose outputs are told when compiled")
{
    Face f;
    const ng_shape d = shape(NG_F32, {3}), rows = shape(NG_F32, {2, 3}), wrong = shape(NG_F64, {3}), unlike = shape(NG_F32, {2});
    ng_expr* e = ng_exp(f.param(0, d));
    ng_prog *p = f.compile({e}, {.out = {&rows}}), *none = nullptr;
    CHECK(f.try_compile({e}, {.out = {&wrong}}, &none) == NG_E_DTYPE);
    CHECK(f.try_compile({e}, {.out = {&unlike}}, &none) == NG_E_SHAPE);
    CHECK(none == nullptr);
    ng_tensor *x = f.tensor({0, 0, 0}), *y = f.make(rows);
    CHECK(f.run(p, {.args = {x}, .out = {y}}) == NG_OK);
    CHECK(differs(f.get(y), Values(6, 1)) == "");
    CHECK(f.run(p, {.args = {f.make(wrong)}, .out = {y}}) == NG_E_DTYPE);
    CHECK(f.run(p, {.args = {x}, .out = {f.make(shape(NG_F64, {2, 3}))}}) == NG_E_DTYPE);
    CHECK(f.run(p, {.args = {x}, .out = {f.make(d)}}) == NG_E_SHAPE);
    CHECK(f.run(p, {.args = {f.make(unlike)}, .out = {y}}) == NG_E_SHAPE);
}

TEST_CASE("E5: a plain leaf is copied, new tensors are row-major, and an output written twice is refused")
{
    Face f;
    ng_tensor* t = f.tensor(shape(NG_F32, {2, 3}, {1, 2}), counted(6));  // columns first in memory
    ng_tensor* copy = f.made(ng_leaf(f.s, t));
    CHECK(f.data(copy) != f.data(t));
    const ng_shape d = f.shape_of(copy);
    CHECK((d.flags & NG_STRIDED) != 0);
    CHECK(d.strides[0] == 3);
    CHECK(d.strides[1] == 1);
    CHECK(differs(f.get(copy), {0, 2, 4, 1, 3, 5}) == "");
    f.put(t, Values(6, 9));
    CHECK(differs(f.get(copy), {0, 2, 4, 1, 3, 5}) == "");

    ng_tensor* out = f.tensor(counted(6));
    ng_expr *one = f.leaf(counted(3)), *six = f.leaf(counted(6));
    CHECK(f.eval_into({six, ng_neg(six)}, {out, out}) == NG_E_INVALID);
    CHECK(f.eval_into({one, ng_neg(one)}, {f.part(out, 0, 0, 3), f.part(out, 0, 2, 5)}) == NG_E_INVALID);
    CHECK(differs(f.get(out), counted(6)) == "");
    CHECK(f.eval_into({one, ng_neg(one)}, {f.part(out, 0, 0, 3), f.part(out, 0, 3, 6)}) == NG_OK);
    CHECK(differs(f.get(out), {0, 1, 2, 0, -1, -2}) == "");
    const ng_shape three = shape(NG_F32, {3});
    ng_expr* p = f.param(0, three);
    ng_prog* two = f.compile({p, ng_neg(p)});
    ng_tensor* y = f.make(three);
    CHECK(f.run(two, {.args = {f.tensor(counted(3))}, .out = {y, y}}) == NG_E_INVALID);
}

TEST_CASE("E5: an output whose own elements share a place is refused, by ng_eval and by a run; others may lie in any order")
{
    Face f;
    struct Row { Dims dims, strides; bool is_fit; };
    const Row rows[] = {{{4, 4}, {0, 1}, false}, {{4, 4}, {4, 0}, false}, {{3, 4}, {3, 1}, false}, {{4, 3}, {-2, 1}, false}, {{2, 2, 2}, {3, 2, 1}, false}, {{5, 4}, {3, 4}, false},
                        {{4, 4}, {1, 4}, true}, {{4, 1}, {1, 0}, true}, {{1, 4}, {0, 2}, true}, {{2, 2}, {2, 3}, true}, {{3, 2}, {2, 3}, true}, {{4, 3}, {3, 4}, true}, {{3, 4}, {-4, -1}, true}};
    for (const Row& r : rows) {
        CAPTURE(&r - rows);
        const ng_shape d = shape(NG_F32, r.dims, r.strides), any = shape(NG_F32, r.dims, {}, NG_ANY);
        ng_tensor *memory = f.tensor(Values(64, 7)), *out = f.view(ng_view(ng_leaf(f.s, memory), &d, 32));
        ng_expr* e = ng_broadcast(ng_const(f.s, NG_F32, 3), r.dims.data(), uint32_t(r.dims.size()));
        ng_prog* p = f.compile({e}, {.out = {&any}});
        for (const bool runs : {false, true}) {
            f.put(memory, Values(64, 7));
            const ng_status got = runs ? f.run(p, {.out = {out}}) : f.eval_into({e}, {out});
            CHECK(got == (r.is_fit ? NG_OK : NG_E_INVALID));
            CHECK((r.is_fit || f.says("share a place")));
            const Values after = f.get(memory);
            CHECK(std::count(after.begin(), after.end(), 3) == (r.is_fit ? r.dims[0] * r.dims[1] : 0));
        }
    }
}

TEST_CASE("E6: indices of params may have holes, and what lies in a hole or behind the last is ignored")
{
    Face f;
    const ng_shape d = shape(NG_F32, {2});
    ng_prog* p = f.compile({ng_sub(f.param(4, d), f.param(1, d))});
    CHECK(f.info(p).nargs == 5);
    ng_tensor *a = f.tensor({1, 2}), *b = f.tensor({10, 20}), *out = f.make(d), *never = reinterpret_cast<ng_tensor*>(0xdead0);
    CHECK(f.run(p, {.args = {nullptr, a, never, f.make(shape(NG_I8, {7})), b, never, nullptr}, .out = {out}}) == NG_OK);
    CHECK(differs(f.get(out), {9, 18}) == "");
    CHECK(f.run(p, {.args = {nullptr, a, never, never}, .out = {out}}) == NG_E_INVALID);
    CHECK(f.run(p, {.args = {nullptr, never, never, never, b}, .out = {out}}) == NG_E_INVALID);
    CHECK(f.error.at == 1);

    // An alias to what the program has not says nothing.
    ng_prog* filled = f.compile({ng_neg(f.param(1, d))}, {.alias = {3}});
    CHECK(f.run(filled, {.args = {nullptr, a, nullptr, out}, .out = {out}}) == NG_OK);
    CHECK(differs(f.get(out), {-1, -2}) == "");
    CHECK(f.run(filled, {.args = {nullptr, a}, .out = {a}}) == NG_E_INVALID);
    CHECK(f.says("was not told of"));
}

TEST_CASE("E6: an output that is not wanted changes no bit of the others")
{
    Face f;
    const ng_shape d = shape(NG_F32, {33, 129}), row = shape(NG_F32, {33});
    ng_expr *x = f.param(0, d), *soft = ng_softmax(x, NG_AXIS_1), *mean = ng_mean(soft, NG_AXIS_1, 0), *top = ng_argmax(x, NG_AXIS_1, 0);
    ng_prog* p = f.compile({soft, mean, top});
    ng_tensor* in = f.make(d);
    Values v(33 * 129);
    for (size_t i = 0; i < v.size(); i++) v[i] = float(std::sin(double(i)) * 3);
    f.put(in, v);
    ng_tensor *all[] = {f.make(d), f.make(row), f.make(shape(NG_I64, {33}))}, *some[] = {f.make(d), f.make(row), f.make(shape(NG_I64, {33}))};
    CHECK(f.run(p, {.args = {in}, .out = {all[0], all[1], all[2]}}) == NG_OK);
    for (uint32_t wanted = 0; wanted < 8; wanted++) {
        Tensors out(3);
        for (uint32_t i = 0; i < 3; i++) {
            if (wanted >> i & 1) out[i] = some[i];
            CHECK(ng_tensor_fill(some[i], nullptr, -5, &f.error) == NG_OK);
        }
        CHECK(f.run(p, {.args = {in}, .out = out}) == NG_OK);
        for (uint32_t i = 0; i < 3; i++) {
            const Values want = wanted >> i & 1 ? f.get(all[i]) : Values(f.get(all[i]).size(), -5);
            CHECK(differs(f.get(some[i]), want) == "");
        }
    }
}

// How sums are paired is no output's business: where it lies, and whether it is there, is seen in its own memory alone.
TEST_CASE("E6: an output that lies anywhere, or is not wanted, changes no bit of the others")
{
    for (const uint32_t flags : {uint32_t(0), uint32_t(NG_CTX_DETERMINISTIC)}) {
        Face f(flags, 1);
        for (const Dims& dims : std::vector<Dims>{{3, 4, 5}, {40, 3, 9}, {2, 33, 130}, {70, 50, 2}, {2, 3, 2500}})
            for (const ng_dtype t : {NG_F64, NG_F32, NG_F16})
                for (uint32_t axes = 1; axes < 8; axes++) check_places(f, shape(t, dims), axes);
    }
}

TEST_CASE("E7: a leaf in a program that is saved is refused by its tag")
{
    Face f;
    const ng_shape d = shape(NG_F32, {2});
    ng_prog* p = f.compile({ng_mul(f.param(0, d), ng_tag(f.leaf({3, 4}), "weights"))});
    size_t bytes = 0;
    CHECK(ng_prog_save(p, 0, nullptr, &bytes, &f.error) == NG_E_INVALID);
    CHECK(f.says("weights"));
    ng_tensor* out = f.make(d);
    CHECK(f.run(p, {.args = {f.tensor({1, 2})}, .out = {out}}) == NG_OK);
    CHECK(differs(f.get(out), {3, 8}) == "");
}
