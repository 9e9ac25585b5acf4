// Movement: every word with lengths known and unknown, and what each says when it is asked for too much.
#include "tests/contract/face.h"

namespace {
// A [3, 4] of 0 .. 11 as a leaf, and a program's param [-1, 4] that is run with it.
struct Moves : Face {
    ng_expr *x = leaf(shape(NG_F32, {3, 4}), counted(12)), *p = nullptr;
    ng_tensor* t = tensor(shape(NG_F32, {3, 4}), counted(12));
    Moves()
    {
        const ng_shape d = shape(NG_F32, {-1, 4});
        p = param(0, d);
    }
    // e of the param, run with 3 rows
    Values ran(ng_expr* e, const Dims& dims)
    {
        ng_prog* prog = compile({e}, {.length_max = {5}});
        ng_tensor* out = make(shape(type_of(e), dims));
        REQUIRE_MESSAGE(run(prog, {.args = {t}, .out = {out}}) == NG_OK, said());
        return get(out);
    }
    void refused(ng_expr* e, ng_status status, const std::string& word)
    {
        CHECK_MESSAGE(fault(e) == status, word, ": ", said());
        CHECK_MESSAGE(says(word), word, ": ", said());
    }
    ng_expr* reshaped(ng_expr* e, const Dims& d) { return ng_reshape(e, d.data(), uint32_t(d.size())); }
    ng_expr* broadcasted(ng_expr* e, const Dims& d) { return ng_broadcast(e, d.data(), uint32_t(d.size())); }
    ng_expr* permuted(ng_expr* e, const std::vector<int32_t>& axes) { return ng_permute(e, axes.data(), uint32_t(axes.size())); }
    ng_expr* joined(const Exprs& e, int32_t axis) { return ng_concat(e.data(), uint32_t(e.size()), axis); }
};
}

TEST_CASE("reshape: the same elements row-major; one extent may be NG_REST; counts must agree")
{
    Moves f;
    CHECK(f.dims_of(f.reshaped(f.x, {2, NG_REST})) == Dims{2, 6});
    CHECK(differs(f.eval(f.reshaped(f.permuted(f.x, {1, 0}), {12})), {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}) == "");
    CHECK(f.dims_of(f.reshaped(f.whole(3), {1, 1})) == Dims{1, 1});
    CHECK(f.dims_of(f.reshaped(f.leaf(Values{}), {0, 7})) == Dims{0, 7});
    CHECK(f.dims_of(f.reshaped(f.leaf({5}), {})) == Dims{});
    CHECK(differs(f.ran(f.reshaped(f.p, {NG_REST, 2}), {6, 2}), counted(12)) == "");
    CHECK(differs(f.ran(f.reshaped(f.p, {2, -1, 2}), {2, 3, 2}), counted(12)) == "");
    f.refused(f.reshaped(f.x, {5, 2}), NG_E_SHAPE, "ng_reshape");
    CHECK(f.says("[3, 4]"));
    f.refused(f.reshaped(f.x, {5, NG_REST}), NG_E_SHAPE, "ng_reshape");
    f.refused(f.reshaped(f.x, {NG_REST, NG_REST}), NG_E_INVALID, "NG_REST");
    f.refused(f.reshaped(f.leaf(Values{}), {0, NG_REST}), NG_E_SHAPE, "ng_reshape");
    f.refused(ng_reshape(f.x, nullptr, 2), NG_E_INVALID, "ng_reshape");
    f.refused(f.reshaped(f.x, Dims(33, 1)), NG_E_LIMIT, "32");
}

TEST_CASE("broadcast: as NumPy's, axes from the right, extents of 1 alone stretch")
{
    Moves f;
    CHECK(differs(f.eval(f.broadcasted(f.leaf({1, 2}), {3, 2})), {1, 2, 1, 2, 1, 2}) == "");
    CHECK(differs(f.eval(f.broadcasted(f.leaf(shape(NG_F32, {2, 1}), {1, 2}), {2, 3})), {1, 1, 1, 2, 2, 2}) == "");
    CHECK(f.dims_of(f.broadcasted(f.leaf(shape(NG_F32, {1}), {1}), {0})) == Dims{0});
    CHECK(f.dims_of(ng_add(f.x, f.leaf(shape(NG_F32, {2, 1, 4}), counted(8)))) == Dims{2, 3, 4});
    ng_expr* row = f.leaf({1, 2, 3, 4});
    CHECK(differs(f.ran(ng_add(f.broadcasted(row, {-1, 4}), f.p), {3, 4}), {1, 3, 5, 7, 5, 7, 9, 11, 9, 11, 13, 15}) == "");
    f.refused(f.broadcasted(f.x, {3, 5}), NG_E_SHAPE, "ng_broadcast");
    f.refused(f.broadcasted(f.x, {4}), NG_E_SHAPE, "ng_broadcast");
    f.refused(f.broadcasted(f.x, {1, 4}), NG_E_SHAPE, "ng_broadcast");
    f.refused(ng_add(f.x, f.leaf({1, 2, 3})), NG_E_SHAPE, "ng_add");
    CHECK(f.says("[3, 4]"));
    CHECK(f.says("[3]"));
}

TEST_CASE("permute: axes in a new order, -1 a new axis of 1, none twice and none left out")
{
    Moves f;
    CHECK(differs(f.eval(f.permuted(f.x, {1, 0})), {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}) == "");
    CHECK(f.dims_of(f.permuted(f.x, {-1, 1, -1, 0})) == Dims{1, 4, 1, 3});
    CHECK(f.dims_of(f.permuted(f.whole(1), {-1})) == Dims{1});
    CHECK(differs(f.ran(f.permuted(f.p, {1, 0}), {4, 3}), {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}) == "");
    f.refused(f.permuted(f.x, {0, 0}), NG_E_INVALID, "ng_permute");
    f.refused(f.permuted(f.x, {0, 2}), NG_E_INVALID, "ng_permute");
    f.refused(f.permuted(f.x, {1}), NG_E_INVALID, "ng_permute");
    f.refused(f.permuted(f.x, {0, -2}), NG_E_INVALID, "ng_permute");
    f.refused(ng_permute(f.x, nullptr, 2), NG_E_INVALID, "ng_permute");
}

TEST_CASE("slice: Python's rules for starts, stops and steps of either sign")
{
    Moves f;
    ng_expr* x = f.leaf(counted(7));
    const int64_t bounds[] = {-INT64_MAX, -9, -8, -7, -3, -1, 0, 1, 3, 6, 7, 8, 40, NG_END};
    for (int64_t step : {1, 2, 5, 9, -1, -2, -9})
        for (int64_t start : bounds)
            for (int64_t stop : bounds) {
                // what can be visited, and one beyond: bounds below 0 count from the end, then all are clamped
                const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? 7 : 6;
                const auto place = [&](int64_t at) { return std::clamp(at < 0 ? at + 7 : at, low, high); };
                const int64_t end = stop == NG_END ? (step > 0 ? 7 : -1) : place(stop);
                Values want;
                for (int64_t i = place(start); step > 0 ? i < end : i > end; i += step) want.push_back(double(i));
                INFO("[", start, ":", stop, ":", step, "]");
                CHECK(differs(f.eval(ng_slice(x, 0, start, stop, step)), want) == "");
            }
    CHECK(differs(f.eval(f.text("x[::-1]", "x", {x})), counted(7, 6, -1)) == "");
    CHECK(differs(f.eval(f.text("x[5::-2]", "x", {x})), {5, 3, 1}) == "");
    CHECK(differs(f.eval(f.text("x[:3:-1]", "x", {x})), {6, 5, 4}) == "");
    CHECK(differs(f.eval(ng_slice(x, 0, NG_END, NG_END, -3)), {6, 3, 0}) == "");
    f.refused(ng_slice(x, 0, 0, 3, 0), NG_E_INVALID, "ng_slice");
    f.refused(ng_slice(x, 1, 0, 3, 1), NG_E_INVALID, "ng_slice");
    f.refused(ng_slice(x, -2, 0, 3, 1), NG_E_INVALID, "ng_slice");
}

TEST_CASE("slice: of an unknown length from either end, and backwards")
{
    Moves f;
    CHECK(differs(f.ran(ng_slice(f.p, 0, 1, NG_END, 1), {2, 4}), counted(8, 4)) == "");
    CHECK(differs(f.ran(ng_slice(f.p, 0, 0, -1, 1), {2, 4}), counted(8)) == "");
    CHECK(differs(f.ran(ng_slice(f.p, 0, -1, NG_END, 1), {1, 4}), counted(4, 8)) == "");
    CHECK(differs(f.ran(ng_slice(f.p, 0, -3, -1, 1), {2, 4}), counted(8)) == "");
    CHECK(differs(f.ran(ng_slice(f.p, 0, NG_END, NG_END, -1), {3, 4}), {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}) == "");
    CHECK(differs(f.ran(ng_slice(f.p, 1, 3, 0, -2), {3, 2}), {3, 1, 7, 5, 11, 9}) == "");
    ng_prog* p = f.compile({ng_slice(f.p, 0, -4, -1, 1)}, {.length_max = {5}});
    CHECK(f.run(p, {.args = {f.t}, .out = {f.make(shape(NG_F32, {3, 4}))}}) == NG_E_SHAPE);
}

TEST_CASE("window: starts where a scalar says when run, clamped so that the window lies inside")
{
    Moves f;
    for (int64_t start : {-5, 0, 1, 2, 3, 100}) {
        const int64_t at = std::clamp<int64_t>(start, 0, 2);
        CHECK(differs(f.eval(ng_window(f.x, 1, f.whole(start), 2)), {double(at), double(at + 1), double(at + 4), double(at + 5), double(at + 8), double(at + 9)}) == "");
    }
    ng_prog* p = f.compile({ng_window(f.p, 0, ng_scalar(f.s, NG_I32, 0), 2)}, {.length_max = {5}});
    ng_tensor* out = f.make(shape(NG_F32, {2, 4}));
    for (int32_t start : {-1, 0, 1, 7}) {
        REQUIRE(f.run(p, {.args = {f.t}, .out = {out}, .scalars = &start, .scalar_bytes = 4}) == NG_OK);
        CHECK(differs(f.get(out), counted(8, 4 * std::clamp(start, 0, 1))) == "");
    }
    CHECK(differs(f.eval(ng_window(f.x, 1, ng_cast(ng_const(f.s, NG_F64, 1.8e19), NG_U64), 2)), f.eval(ng_window(f.x, 1, f.whole(9), 2))) == "");
    f.refused(ng_window(f.x, 1, f.whole(0), 5), NG_E_SHAPE, "ng_window");
    f.refused(ng_window(f.x, 2, f.whole(0), 1), NG_E_INVALID, "ng_window");
    f.refused(ng_window(f.x, 0, ng_const(f.s, NG_F32, 1), 1), NG_E_DTYPE, "ng_window");
    f.refused(ng_window(f.x, 0, f.leaf(shape(NG_I64, {1}), {0}), 1), NG_E_SHAPE, "ng_window");
    CHECK(f.fault(ng_window(f.x, 0, f.whole(0), 0)) == NG_OK);
}

TEST_CASE("concat: pieces end to end, of one dtype's kin and equal in all other axes")
{
    Moves f;
    CHECK(differs(f.eval(f.joined({f.leaf({1, 2}), f.leaf(Values{}), f.leaf({3})}, 0)), {1, 2, 3}) == "");
    CHECK(differs(f.eval(f.joined({f.x, f.leaf(shape(NG_F32, {3, 1}), {-1, -2, -3})}, 1)), {0, 1, 2, 3, -1, 4, 5, 6, 7, -2, 8, 9, 10, 11, -3}) == "");
    CHECK(differs(f.ran(f.joined({f.p, f.x, f.p}, 0), {9, 4}), [] {
        Values v;
        for (int i = 0; i < 36; i++) v.push_back(i % 12);
        return v;
    }()) == "");
    CHECK(differs(f.eval(f.joined({f.x}, 0)), counted(12)) == "");
    f.refused(f.joined({f.x, f.leaf({1, 2})}, 0), NG_E_SHAPE, "ng_concat");
    f.refused(f.joined({f.x, f.leaf(shape(NG_F32, {2, 4}), counted(8))}, 1), NG_E_SHAPE, "ng_concat");
    f.refused(f.joined({f.x, f.x}, 2), NG_E_INVALID, "ng_concat");
    f.refused(f.joined({}, 0), NG_E_INVALID, "ng_concat");
    f.refused(f.joined({f.whole(1), f.whole(2)}, 0), NG_E_INVALID, "ng_concat");
}

TEST_CASE("view: x numbered row-major, seen through strides of any sign, never outside")
{
    Moves f;
    const ng_shape windows = shape(NG_F32, {5, 3}, {2, 1}), back = shape(NG_F32, {12}, {-1}), still = shape(NG_F32, {2, 2}, {0, 5});
    CHECK(differs(f.eval(ng_view(f.x, &windows, 1)), {1, 2, 3, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9, 10, 11}) == "");
    CHECK(differs(f.eval(ng_view(f.x, &back, 11)), counted(12, 11, -1)) == "");
    CHECK(differs(f.eval(ng_view(f.x, &still, 3)), {3, 8, 3, 8}) == "");
    CHECK(differs(f.eval(ng_view(f.permuted(f.x, {1, 0}), &windows, 0)), {0, 4, 8, 8, 1, 5, 5, 9, 2, 2, 6, 10, 10, 3, 7}) == "");
    const ng_shape outside = shape(NG_F32, {5, 4}, {2, 1}), other = shape(NG_F64, {12});
    f.refused(ng_view(f.x, &outside, 1), NG_E_SHAPE, "ng_view");
    f.refused(ng_view(f.x, &back, 10), NG_E_SHAPE, "ng_view");
    f.refused(ng_view(f.x, &windows, -1), NG_E_SHAPE, "ng_view");
    f.refused(ng_view(f.x, &other, 0), NG_E_DTYPE, "ng_view");
    f.refused(ng_view(f.x, nullptr, 0), NG_E_INVALID, "ng_view");
    const ng_shape huge = shape(NG_F32, {INT64_MAX / 8, 8}, {1, INT64_MAX / 4});
    CHECK(f.fault(ng_view(f.x, &huge, 0)) < 0);
}

TEST_CASE("bitcast: bits as they are, the last axis longer or shorter where the types differ in bytes")
{
    Moves f;
    ng_expr* one = f.leaf({1, -2});
    CHECK(differs(f.eval(ng_bitcast(one, NG_U32)), {0x3f800000, 0xc0000000}) == "");
    CHECK(f.fault(ng_bitcast(one, 0x30303)) == NG_E_DTYPE);
    CHECK(f.fault(ng_bitcast(one, NG_F64)) <= NG_OK);
}

TEST_CASE("take and put: an axis replaced by the axes of the indices, in either place, of unknown length too")
{
    Moves f;
    const auto at = [&](const Dims& d, const Values& v) { return f.leaf(shape(NG_I32, d), v); };
    CHECK(differs(f.eval(ng_take(f.x, at({2}, {2, 0}), 0)), {8, 9, 10, 11, 0, 1, 2, 3}) == "");
    CHECK(f.dims_of(ng_take(f.x, at({2, 5}, counted(10)), 1)) == Dims{3, 2, 5});
    CHECK(differs(f.eval(ng_take(f.x, f.whole(1, NG_I32), 1)), {1, 5, 9}) == "");
    CHECK(differs(f.ran(ng_take(f.p, at({2}, {2, 7}), 0), {2, 4}), {8, 9, 10, 11, 0, 0, 0, 0}) == "");
    CHECK(differs(f.eval(ng_put(f.x, at({2}, {0, 2}), f.leaf(shape(NG_F32, {1, 4}), counted(4, 50)), 0, NG_FOLD_LAST)),
                  {50, 51, 52, 53, 4, 5, 6, 7, 50, 51, 52, 53}) == "");
    CHECK(differs(f.eval(ng_put(f.x, at({2}, {3, 3}), ng_const(f.s, NG_F32, 10), 1, NG_FOLD_SUM)), {0, 1, 2, 23, 4, 5, 6, 27, 8, 9, 10, 31}) == "");
    f.refused(ng_take(f.x, f.x, 0), NG_E_DTYPE, "ng_take");
    f.refused(ng_take(f.x, at({1}, {0}), 2), NG_E_INVALID, "ng_take");
    f.refused(ng_put(f.x, at({2}, {0, 1}), f.leaf({1, 2, 3}), 0, NG_FOLD_LAST), NG_E_SHAPE, "ng_put");
    f.refused(ng_put(f.x, at({2}, {0, 1}), f.x, 0, 9), NG_E_INVALID, "ng_put");
    f.refused(ng_put(f.x, f.x, f.x, 0, NG_FOLD_LAST), NG_E_DTYPE, "ng_put");
}

TEST_CASE("scan, segment and argsort: along any axis, of any length, of nothing")
{
    Moves f;
    CHECK(differs(f.eval(ng_scan(f.x, 0, NG_FOLD_SUM, 0)), {0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 18, 21}) == "");
    CHECK(differs(f.eval(ng_scan(f.leaf({3, 1, 2}), 0, NG_FOLD_MAX, NG_EXCLUSIVE)), {-INF, 3, 3}) == "");
    CHECK(differs(f.eval(ng_scan(f.leaf({3, 1, 2}), 0, NG_FOLD_PROD, NG_EXCLUSIVE | NG_REVERSE)), {2, 2, 1}) == "");
    CHECK(differs(f.ran(ng_scan(f.p, 1, NG_FOLD_LAST, NG_REVERSE), {3, 4}), counted(12)) == "");
    CHECK(differs(f.eval(ng_segment(f.leaf(counted(6, 1)), f.leaf(shape(NG_I64, {5}), {0, 2, 2, 5, 6}), NG_FOLD_SUM)), {3, 0, 12, 6}) == "");
    CHECK(differs(f.eval(ng_segment(f.x, f.leaf(shape(NG_I32, {3}), {1, 3, 3}), NG_FOLD_LAST)), {8, 9, 10, 11, 0, 0, 0, 0}) == "");
    CHECK(f.dims_of(ng_segment(f.x, f.leaf(shape(NG_I32, {1}), {0}), NG_FOLD_SUM)) == Dims{0, 4});
    CHECK(differs(f.eval(ng_argsort(f.leaf({2, NOT_A_NUMBER, 1, 2}), 0, 0)), {2, 0, 3, 1}) == "");
    CHECK(differs(f.eval(ng_argsort(f.leaf({2, NOT_A_NUMBER, 1, 2}), 0, NG_REVERSE)), {0, 3, 2, 1}) == "");
    CHECK(differs(f.ran(ng_argsort(ng_neg(f.p), 1, 0), {3, 4}), {3, 2, 1, 0, 3, 2, 1, 0, 3, 2, 1, 0}) == "");
    CHECK(f.dims_of(ng_argsort(f.leaf(Values{}), 0, 0)) == Dims{0});
    f.refused(ng_scan(f.x, 2, NG_FOLD_SUM, 0), NG_E_INVALID, "ng_scan");
    f.refused(ng_scan(f.x, 0, 5, 0), NG_E_INVALID, "ng_scan");
    f.refused(ng_scan(f.x, 0, NG_FOLD_SUM, 64), NG_E_INVALID, "ng_scan");
    f.refused(ng_segment(f.x, f.leaf({0, 1}), NG_FOLD_SUM), NG_E_DTYPE, "ng_segment");
    f.refused(ng_segment(f.x, f.leaf(shape(NG_I64, {0}), {}), NG_FOLD_SUM), NG_E_SHAPE, "ng_segment");
    f.refused(ng_argsort(f.x, 0, NG_EXCLUSIVE), NG_E_INVALID, "ng_argsort");
    f.refused(ng_argsort(f.x, -3, 0), NG_E_INVALID, "ng_argsort");
}

TEST_CASE("empty: an axis of 0 is moved, cut, joined and multiplied as any other, and sums of nothing are the identity")
{
    Moves f;
    ng_expr *none = f.leaf(Values{}), *flat = f.leaf(shape(NG_F32, {3, 0}), {}), *tall = f.leaf(shape(NG_F32, {0, 4}), {});
    ng_expr* at = f.leaf(shape(NG_I64, {0}), {});
    for (ng_expr* e : {none, ng_exp(none), ng_add(none, ng_const(f.s, 0, 1.)), ng_cast(none, NG_I8), ng_slice(none, 0, 0, 9, 1), ng_sum(flat, NG_AXIS_0, 0),
                       f.joined({none, none}, 0), f.reshaped(tall, {0}), ng_take(f.leaf({1, 2}), at, 0), ng_take(none, at, 0), ng_scan(none, 0, NG_FOLD_SUM, 0),
                       ng_argsort(none, 0, 0), ng_softmax(none, NG_ALL), ng_max(tall, NG_AXIS_1, 0)})
        CHECK(differs(f.eval(e), {}) == "");
    CHECK(differs(f.eval(f.reshaped(ng_softmax(f.reshaped(tall, {4, 0}), NG_AXIS_1), {0})), {}) == "");
    CHECK(differs(f.eval(ng_sum(flat, NG_AXIS_1, 0)), {0, 0, 0}) == "");
    CHECK(differs(f.eval(ng_prod(none, NG_ALL, 0)), {1}) == "");
    CHECK(differs(f.eval(ng_matmul(flat, tall, nullptr)), Values(12, 0)) == "");
    CHECK(differs(f.eval(f.reshaped(ng_matmul(tall, f.leaf(shape(NG_F32, {4, 2}), counted(8)), nullptr), {0})), {}) == "");
    CHECK(differs(f.eval(ng_put(f.leaf({1, 2}), at, none, 0, NG_FOLD_SUM)), {1, 2}) == "");
    CHECK(differs(f.eval(ng_segment(none, f.leaf(shape(NG_I64, {3}), {0, 0, 0}), NG_FOLD_PROD)), {1, 1}) == "");
    CHECK(differs(f.eval(f.joined({none, f.leaf({7}), none}, 0)), {7}) == "");
}

TEST_CASE("segment: offsets that decrease or lie outside read nothing that is not there")
{
    Moves f;
    ng_expr* x = f.leaf(counted(4, 1));
    for (const Values& offsets : {Values{-3, 2, 4}, Values{0, 9, 4}, Values{3, 1, 2}, Values{-9, -5, 99}, Values{1e18, -1e18, 3}})
        CHECK(f.fault(ng_segment(x, f.leaf(shape(NG_I64, {3}), offsets), NG_FOLD_SUM)) <= NG_OK);
}

TEST_CASE("N10: each element that put folds in is rounded to x's type by itself; scan and segment round the f32 that they carry on")
{
    Moves f;
    const auto narrow = [&](const Values& v) { return f.leaf(shape(NG_F16, {int64_t(v.size())}), v); };
    ng_expr *x = narrow({2048, 5}), *ones = narrow(Values(8, 1)), *at = f.leaf(shape(NG_I32, {8}), Values(8, 0)), *all = narrow({2048, 1, 1, 1, 1, 1, 1, 1, 1});
    CHECK(differs(f.eval(ng_put(x, at, ones, 0, NG_FOLD_SUM)), {2048, 5}) == "");      // 2049 is halfway, and even is 2048
    CHECK(differs(f.eval(ng_put(ng_cast(x, NG_F32), at, ones, 0, NG_FOLD_SUM)), {2056, 5}) == "");
    CHECK(f.eval(ng_scan(all, 0, NG_FOLD_SUM, 0)).back() == 2056);
    CHECK(f.eval(ng_segment(all, f.leaf(shape(NG_I64, {2}), {0, 9}), NG_FOLD_SUM))[0] == 2056);
}

TEST_CASE("put: the derivative of products is multiplied in f32, and may be more than x's type has room for on the way")
{
    Moves f;
    ng_expr *x = f.leaf(shape(NG_F16, {2}), {3, 2}), *at = f.leaf(shape(NG_I32, {2}), {0, 0}), *y = f.leaf(shape(NG_F16, {2}), {300, 400});
    CHECK(differs(f.eval(f.grad({ng_put(x, at, y, 0, NG_FOLD_PROD)}, {x}, NG_OK, {f.leaf({0.25, 0.25})})[0]), {30000, 0.25}) == "");
}

TEST_CASE("scan: a line long enough to run in parts, into places with gaps between them and backwards")
{
    Moves f;
    const int64_t n = 40001;
    ng_tensor* all = f.tensor(shape(NG_F32, {4 * n}), Values(size_t(4 * n), -7));
    ng_expr* ones = f.leaf(Values(size_t(n), 1));
    CHECK(f.eval_into({ng_scan(ones, 0, NG_FOLD_SUM, 0)}, {f.part(all, 0, n, 3 * n, 2)}) == NG_OK);
    CHECK(f.eval_into({ng_scan(ones, 0, NG_FOLD_SUM, NG_REVERSE | NG_EXCLUSIVE)}, {f.part(all, 0, 3 * n - 1, n - 1, -2)}) == NG_OK);
    Values want(size_t(n), -7);
    for (int64_t i = 0; i < n; i++) want.push_back(double(i + 1)), want.push_back(double(i));
    want.resize(size_t(4 * n), -7);
    CHECK(differs(f.get(all), want) == "");
}
