// Every wrong call of a builder is refused with its status and a sentence that names the operation; products have the shapes they say.
#include "jit/build.h"
#include "jit/number.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>

using namespace ng;

namespace {

const Extent n = Extent::variable(0), m = Extent::variable(1);
Graph   g;
uint32_t params = 0;

NodeRef param(Dtype t, Extents dims)
{
    Layout l;
    l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
    return build::param(g, params++, l);
}
NodeRef f(Extents dims) { return param(Dtype::f32, std::move(dims)); }
NodeRef i(Extents dims) { return param(Dtype::i32, std::move(dims)); }
Layout seen(Extents dims, Extents strides = {}, Dtype t = Dtype::f32)
{
    Layout l;
    l.dtype = t, l.dims = dims, l.strided = !strides.empty(), l.strides = strides.empty() ? dense_strides(dims) : strides;
    return l;
}
ng_conv_desc conv(int32_t stride = 1, int32_t pad = 0, int32_t groups = 1, int32_t dilate = 1)
{
    ng_conv_desc d{};
    d.size = sizeof d, d.stride[0] = stride, d.pad_lo[0] = d.pad_hi[0] = pad, d.groups = groups, d.dilate[0] = dilate;
    return d;
}
ng_pool_desc pool(int32_t window, int32_t stride = 0, int32_t pad = 0, uint32_t flags = 0)
{
    ng_pool_desc d{};
    d.size = sizeof d, d.window[0] = window, d.stride[0] = stride, d.pad_lo[0] = d.pad_hi[0] = pad, d.flags = flags;
    return d;
}
std::string dims_of(const NodeRef& x) { return text_of(x->dims()); }

struct Wrong {
    ng_status   status;
    const char* says;                 // how the sentence begins, and after a | what it contains
    std::function<void()> call;
};
void check(const std::vector<Wrong>& calls)
{
    for (const Wrong& w : calls) {
        const std::string says = w.says, begin = says.substr(0, says.find('|')), part = says.find('|') == std::string::npos ? "" : says.substr(says.find('|') + 1);
        INFO(says);
        try {
            w.call();
            FAIL_CHECK("was not refused");
        } catch (const Error& e) {
            INFO(e.text);
            CHECK(e.status == w.status);
            CHECK(e.text.find(begin) == 0);
            CHECK(e.text.find(part) != std::string::npos);
            CHECK(e.text.size() < 244);
        }
    }
}
#define REFUSED(status, says, ...) {status, says, [] { (void)(__VA_ARGS__); }}

}  // namespace

TEST_CASE("refused: every map of too few or too many operands, every reduction over an axis that is not there")
{
    const NodeRef x = f({4}), four[] = {x, x, x, x};
    for (int o = 0; o < OPS; o++) {
        const Op op = Op(o);
        const std::string who = std::string("ng_") + name_of(op);
        if (is_map(op))
            for (size_t count = 1; count <= 4; count++)
                if (int(count) != info(op).arity) check({{NG_E_INVALID, (who + ": takes |operands").c_str(), [&] { (void)build::map(g, op, std::span(four, count)); }}});
        const bool reduces = is_fold(op) || info(op).kind == Class::Stat;
        if (reduces) {
            check({{NG_E_INVALID, (who + ": axis 3 is outside |f32 [4]").c_str(), [&] { (void)build::reduce(g, op, x, 8, 0); }}});
            check({{NG_E_INVALID, (who + ": unknown flags 6").c_str(), [&] { (void)build::reduce(g, op, x, NG_ALL, 7); }}});
        }
        if (info(op).kind == Class::Norm) check({{NG_E_INVALID, (who + ": axis 1 is").c_str(), [&] { (void)build::norm(g, op, x, 2); }}});
        if (op == Op::min || op == Op::max || op == Op::argmin || op == Op::argmax)
            check({{NG_E_SHAPE, (who + ": |has no element to choose from").c_str(), [&] { (void)build::reduce(g, op, f({3, 0}), NG_AXIS_1, 0); }}});
        else if (reduces) CHECK(dims_of(build::reduce(g, op, f({3, 0}), NG_AXIS_1, 0)) == "[3]");
    }
}

TEST_CASE("refused: leaves, types and literals")
{
    check({
        REFUSED(NG_E_LIMIT, "ng_param: index 65536", build::param(g, 65536, seen({4}))),
        REFUSED(NG_E_LIMIT, "ng_scalar: byte ", build::scalar(g, Dtype::f32, (1u << 20) + 1)),
        REFUSED(NG_E_INVALID, "ng_iota: axis 1 is outside f32 [4]", build::iota(g, seen({4}), 1)),
        REFUSED(NG_E_INVALID, "ng_iota: axis -2", build::iota(g, seen({4}), -2)),
        REFUSED(NG_E_INVALID, "ng_random: kind 3", build::random(g, 3, i({}), {}, seen({4}))),
        REFUSED(NG_E_DTYPE, "ng_random: |u32, not f32", build::random(g, NG_BITS, i({}), {}, seen({4}))),
        REFUSED(NG_E_DTYPE, "ng_random: |f32 or f64, not f16", build::random(g, NG_NORMAL, i({}), {}, seen({4}, {}, Dtype::f16))),
        REFUSED(NG_E_DTYPE, "ng_random: key is f32", build::random(g, NG_NORMAL, f({}), {}, seen({4}))),
        REFUSED(NG_E_SHAPE, "ng_random: step is i32 [2]", build::random(g, NG_NORMAL, i({}), i({2}), seen({4}))),
        REFUSED(NG_E_DTYPE, "ng_cast_stochastic: |not to i8", build::cast_stochastic(g, f({4}), Dtype::i8, 0, i({}), {})),
        REFUSED(NG_E_INVALID, "ng_cast_stochastic: f16 has 10 bits of mantissa, not 11", build::cast_stochastic(g, f({4}), Dtype::f16, 11, i({}), {})),
        REFUSED(NG_E_DTYPE, "ng_bitcast: |4 bytes, f16 of 2", build::bitcast(g, f({4}), Dtype::f16)),
        REFUSED(NG_E_DTYPE, "ng_add: 300 does not fit u8", build::map(g, Op::add, {param(Dtype::u8, {4}), build::weak_int(g, 300)})),
        REFUSED(NG_E_DTYPE, "ng_mul: -1 does not fit u64", build::map(g, Op::mul, {param(Dtype::u64, {4}), build::weak_int(g, -1)})),
        REFUSED(NG_E_DTYPE, "ng_const_int: 3000000000 does not fit i32", build::strong(g, build::weak_int(g, 3000000000))),
        REFUSED(NG_E_DTYPE, "ng_add: no integer type holds both u64 and i8", build::map(g, Op::add, {param(Dtype::u64, {}), param(Dtype::i8, {})})),
        REFUSED(NG_E_DTYPE, "who: 0x7 is no element type", dtype_of(7, "who")),
    });
}

TEST_CASE("refused: shapes of ng.h that are none")
{
    const auto with = [](auto&& change) {
        ng_shape d{};
        d.size = sizeof d, d.dtype = NG_F32, d.ndim = 1, d.dims[0] = 4;
        change(d);
        return [d] { (void)layout_of(&d, "who"); };
    };
    check({
        {NG_E_INVALID, "who: d is NULL, should be an ng_shape", [] { (void)layout_of(nullptr, "who"); }},
        {NG_E_INVALID, "who: ng_shape.size is 0", with([](ng_shape& d) { d.size = 0; })},
        {NG_E_INVALID, "who: ng_shape.size is 15", with([](ng_shape& d) { d.size = 15; })},
        {NG_E_INVALID, "who: ng_shape.size is 16, should be sizeof(ng_shape) = 528", with([](ng_shape& d) { d.size = 16; })},
        {NG_E_INVALID, "who: ng_shape.size is 272, should be sizeof(ng_shape) = 528", with([](ng_shape& d) { d.size = 16 + 256, d.flags = NG_STRIDED; })},
        {NG_E_INVALID, "who: ng_shape.flags has unknown bits 64", with([](ng_shape& d) { d.flags = 64; })},
        {NG_E_LIMIT, "who: rank 33", with([](ng_shape& d) { d.ndim = 33; })},
        {NG_E_LIMIT, "who: rank -1", with([](ng_shape& d) { d.ndim = -1; })},
        {NG_E_DTYPE, "who: 0x0 is no element type", with([](ng_shape& d) { d.dtype = 0; })},
        {NG_E_SHAPE, "who: dims[0] is -9223372036854775808", with([](ng_shape& d) { d.dims[0] = NG_REST; })},
        {NG_E_INVALID, "who: dims is NULL", [] { (void)extents_of(nullptr, 1, "who"); }},
        {NG_E_LIMIT, "[1099511627776, 1099511627776, 1099511627776] is too large: an extent exceeds 63 bits", with([](ng_shape& d) { d.ndim = 3, d.dims[0] = d.dims[1] = d.dims[2] = int64_t(1) << 40; })},
    });
}

TEST_CASE("refused: movement")
{
    static const int64_t rests[] = {NG_REST, NG_REST}, five[] = {5, NG_REST}, none[] = {0, NG_REST};
    static const int32_t twice[] = {0, 0}, missing[] = {0}, beyond[] = {0, 2}, below[] = {-2, 0};
    static const NodeRef parts[] = {f({2, 3}), f({2, 4})}, ranks[] = {f({2}), f({2, 4})}, kinds[] = {param(Dtype::u64, {2}), i({2})};
    check({
        REFUSED(NG_E_SHAPE, "ng_reshape: f32 [2, 3] has 6 elements, [4, 2] has 8", build::reshape(g, f({2, 3}), {4, 2})),
        REFUSED(NG_E_SHAPE, "ng_reshape: |NG_REST", build::reshape(g, f({n}), {m})),
        REFUSED(NG_E_LIMIT, "ng_reshape: rank 33", build::reshape(g, f({}), Extents(33, Extent(1)))),
        REFUSED(NG_E_INVALID, "ng_reshape: NG_REST stands for one", build::reshape_rest(g, f({4}), rests)),
        REFUSED(NG_E_SHAPE, "ng_reshape: |6 elements, no multiple of 5", build::reshape_rest(g, f({2, 3}), five)),
        REFUSED(NG_E_SHAPE, "ng_reshape: any extent would do", build::reshape_rest(g, f({0}), none)),
        REFUSED(NG_E_SHAPE, "ng_broadcast: f32 [3] does not broadcast to [4]", build::broadcast(g, f({3}), Extents{4})),
        REFUSED(NG_E_SHAPE, "ng_broadcast: ", build::broadcast(g, f({3, 4}), Extents{4})),
        REFUSED(NG_E_SHAPE, "ng_broadcast: ", build::broadcast(g, f({n}), Extents{m})),
        REFUSED(NG_E_SHAPE, "ng_broadcast: f32 [5] does not broadcast to [4]", build::broadcast(g, build::broadcast(g, build::constant(g, Dtype::f32, 3), Extents{5}), Extents{4})),
        REFUSED(NG_E_SHAPE, "ng_broadcast: f32 [2, 3] does not broadcast to []", build::broadcast(g, build::broadcast(g, f({}), Extents{2, 3}), Extents{})),
        REFUSED(NG_E_LIMIT, "ng_broadcast: rank 33", build::broadcast(g, f({}), Extents(33, Extent(2)))),
        REFUSED(NG_E_INVALID, "ng_permute: axes[1] is 0, for the second time", build::permute(g, f({2, 3}), twice)),
        REFUSED(NG_E_INVALID, "ng_permute: axis 1 of |is missing", build::permute(g, f({2, 3}), missing)),
        REFUSED(NG_E_INVALID, "ng_permute: axes[1] is 2;", build::permute(g, f({2, 3}), beyond)),
        REFUSED(NG_E_INVALID, "ng_permute: axes[0] is -2", build::permute(g, f({2, 3}), below)),
        REFUSED(NG_E_LIMIT, "ng_permute: rank 33", build::permute(g, f({}), std::vector<int32_t>(33, -1))),
        REFUSED(NG_E_INVALID, "ng_slice: the step is 0", build::slice(g, f({4}), 0, 0, 4, 0)),
        REFUSED(NG_E_INVALID, "ng_slice: axis 0 is outside f32 []", build::slice(g, f({}), 0, 0, 4, 1)),
        REFUSED(NG_E_UNSUPPORTED, "ng_slice: a step of 2", build::slice(g, f({n}), 0, 0, NG_END, 2)),
        REFUSED(NG_E_SHAPE, "ng_window: |longer than axis 0", build::window(g, f({4}), 0, i({}), 5)),
        REFUSED(NG_E_DTYPE, "ng_window: start is f32 []", build::window(g, f({4}), 0, f({}), 2)),
        REFUSED(NG_E_SHAPE, "ng_window: start is i32 [1]", build::window(g, f({4}), 0, i({1}), 2)),
        REFUSED(NG_E_SHAPE, "ng_window: ", build::window(g, f({4}), 0, i({}), NG_REST)),
        REFUSED(NG_E_INVALID, "ng_concat: of nothing", build::concat(g, {}, 0)),
        REFUSED(NG_E_SHAPE, "ng_concat: f32 [2, 4] does not go behind f32 [2, 3] along axis 0", build::concat(g, parts, 0)),
        REFUSED(NG_E_SHAPE, "ng_concat: |along axis 0", build::concat(g, ranks, 0)),
        REFUSED(NG_E_DTYPE, "ng_concat: no integer type", build::concat(g, kinds, 0)),
        REFUSED(NG_E_DTYPE, "ng_view: x is f32 [4], the shape says i32", build::view(g, f({4}), seen({4}, {}, Dtype::i32), 0)),
        REFUSED(NG_E_SHAPE, "ng_view: elements 1 .. 4 are seen|has 4", build::view(g, f({4}), seen({4}), 1)),
        REFUSED(NG_E_SHAPE, "ng_view: elements -1 .. 2", build::view(g, f({4}), seen({4}), -1)),
        REFUSED(NG_E_SHAPE, "ng_view: elements -3 .. 0", build::view(g, f({4}), seen({4}, {-1}), 0)),
        REFUSED(NG_E_LIMIT, "ng_view: |63 bits", build::view(g, f({4}), seen({4}, {INT64_MAX / 2}), 0)),
        REFUSED(NG_E_SHAPE, "ng_view: |-1", build::view(g, f({n}), seen({n}), -1)),            // whatever n is: before its memory
        REFUSED(NG_E_SHAPE, "ng_view: |-5", build::view(g, f({n}), seen({4}, {1}), -5)),
    });
    CHECK(dims_of(build::view(g, f({4}), seen({0}), 100)) == "[0]");
    CHECK(dims_of(build::view(g, f({4}), seen({4}, {-1}), 3)) == "[4]");
}

TEST_CASE("refused: by index, marks and parts of derivatives")
{
    static const NodeRef x = f({3, 4}), other = f({4}), dy = f({3, 4});
    check({
        REFUSED(NG_E_DTYPE, "ng_take: indices are f32 [2]", build::take(g, x, f({2}), 0)),
        REFUSED(NG_E_INVALID, "ng_take: axis 2", build::take(g, x, i({2}), 2)),
        REFUSED(NG_E_LIMIT, "ng_take: the result would have rank 33", build::take(g, x, i(Extents(32, Extent(1))), 0)),
        REFUSED(NG_E_INVALID, "ng_put: 5 is none of", build::put(g, x, i({2}), x, 0, 5)),
        REFUSED(NG_E_DTYPE, "ng_put: indices are", build::put(g, x, f({2}), x, 0, 0)),
        REFUSED(NG_E_DTYPE, "ng_put: |only ng_cast narrows", build::put(g, x, i({2}), param(Dtype::f64, {}), 0, 0)),
        REFUSED(NG_E_DTYPE, "ng_put: |only ng_cast narrows", build::put(g, i({3}), i({2}), f({}), 0, 0)),
        REFUSED(NG_E_DTYPE, "ng_put: y is 300|no i8", build::put(g, param(Dtype::i8, {3}), i({2}), build::weak_int(g, 300), 0, 0)),
        REFUSED(NG_E_DTYPE, "ng_put: y is -1|no u64", build::put(g, param(Dtype::u64, {3}), i({2}), build::weak_int(g, -1), 0, 0)),
        REFUSED(NG_E_DTYPE, "ng_put: y is 2|no bool", build::put(g, param(Dtype::bool_, {3}), i({2}), build::weak_int(g, 2), 0, 0)),
        REFUSED(NG_E_DTYPE, "ng_put: y is 2.7|no i32", build::put(g, i({3}), i({2}), build::weak(g, 2.7), 0, 0)),
        REFUSED(NG_E_SHAPE, "ng_put: |should broadcast to the places [2, 4]", build::put(g, x, i({2}), f({3}), 0, 0)),
        REFUSED(NG_E_INVALID, "ng_scan: 9 is none", build::scan(g, x, 0, 9, 0)),
        REFUSED(NG_E_INVALID, "ng_scan: unknown flags 4", build::scan(g, x, 0, 0, 7)),
        REFUSED(NG_E_INVALID, "ng_scan: axis -3", build::scan(g, x, -3, 0, 0)),
        REFUSED(NG_E_DTYPE, "ng_segment: offsets are", build::segment(g, x, f({2}), 0)),
        REFUSED(NG_E_SHAPE, "ng_segment: x is", build::segment(g, x, i({}), 0)),
        REFUSED(NG_E_SHAPE, "ng_segment: x is f32 [3, 4] and offsets i32 [0], should", build::segment(g, x, i({0}), 0)),
        REFUSED(NG_E_SHAPE, "ng_segment: x is f32 []", build::segment(g, f({}), i({2}), 0)),
        REFUSED(NG_E_INVALID, "ng_argsort: unknown flags 1", build::argsort(g, x, 0, NG_EXCLUSIVE)),
        REFUSED(NG_E_INVALID, "ng_argsort: axis 2", build::argsort(g, x, 2, 0)),
        REFUSED(NG_E_INVALID, "ng_tag: name is NULL, ", build::tag(g, x, nullptr)),
        REFUSED(NG_E_SHAPE, "ng_surrogate: |one shape", build::surrogate(g, x, other)),
        REFUSED(NG_E_DTYPE, "ng_surrogate: the path is i32", build::surrogate(g, x, i({3, 4}))),
        REFUSED(NG_E_INVALID, "ng_custom_grad: dy is |ng_param", build::custom_grad(g, x, build::map(g, Op::neg, {dy}), {&x, 1}, {&x, 1})),
        REFUSED(NG_E_SHAPE, "ng_custom_grad: dy is |one shape", build::custom_grad(g, x, other, {&x, 1}, {&x, 1})),
        REFUSED(NG_E_SHAPE, "ng_custom_grad: dx[0] is", build::custom_grad(g, x, dy, {&x, 1}, {&other, 1})),
    });
}

TEST_CASE("refused: products and windows")
{
    static const NodeRef x = f({2, 3, 8}), w = f({4, 3, 3});
    static ng_conv_desc ok = conv(), no_size = ok, flags = conv(), negative = conv(-1), beyond = conv(), groups = conv(1, 0, 2), few = conv(1, 0, -1), far = conv(1, 0, 1, INT32_MAX);
    static ng_pool_desc fine = pool(2), kind = pool(2), windowless = pool(-1), wide = pool(9), padded = pool(2, 1, 2), endless = pool(2, 1, 1), axis = pool(2), channel = pool(1);
    no_size.size = 4, flags.flags = 2, beyond.pad_lo[1] = 1, kind.kind = 3, axis.window[2] = 2, channel.channel_pad = 1;
    check({
        REFUSED(NG_E_SHAPE, "ng_matmul: |the inner extents are 3 and 4", build::matmul(g, f({2, 3}), f({4, 5}), 0)),
        REFUSED(NG_E_SHAPE, "ng_matmul: i8 [3] @ i32 [4]: the inner", build::matmul(g, param(Dtype::i8, {3}), i({4}), 0)),
        REFUSED(NG_E_SHAPE, "ng_matmul: |batch axis 0 is 2 and 3", build::matmul(g, f({2, 4, 4}), f({3, 4, 4}), 0)),
        REFUSED(NG_E_SHAPE, "ng_matmul: |ng_mul", build::matmul(g, f({}), f({3}), 0)),
        REFUSED(NG_E_SHAPE, "ng_matmul: ", build::matmul(g, f({2, n}), f({m, 2}), 0)),
        REFUSED(NG_E_INVALID, "ng_matmul: unknown flags 2", build::matmul(g, f({2, 2}), f({2, 2}), 3)),
        REFUSED(NG_E_DTYPE, "ng_matmul: no integer type", build::matmul(g, param(Dtype::u64, {2, 2}), i({2, 2}), 0)),
        REFUSED(NG_E_SHAPE, "ng_conv: x is [2, 3]", build::conv(g, f({2, 3}), w, &ok)),
        REFUSED(NG_E_SHAPE, "ng_conv: |one rank", build::conv(g, x, f({4, 3, 3, 3}), &ok)),
        REFUSED(NG_E_SHAPE, "ng_conv: |should have 3 / 1 channels, has 2", build::conv(g, x, f({4, 2, 3}), &ok)),
        REFUSED(NG_E_SHAPE, "ng_conv: 3 filters do not divide into 2 groups", build::conv(g, f({2, 4, 8}), f({3, 2, 3}), &groups)),
        REFUSED(NG_E_SHAPE, "ng_conv: |known, positive extents", build::conv(g, x, f({4, 3, n}), &ok)),
        REFUSED(NG_E_SHAPE, "ng_conv: |known, positive extents", build::conv(g, x, f({4, 3, 0}), &ok)),
        REFUSED(NG_E_SHAPE, "ng_conv: a window over 9 elements does not fit", build::conv(g, x, f({4, 3, 9}), &ok)),
        REFUSED(NG_E_LIMIT, "ng_conv: ", build::conv(g, x, build::broadcast(g, f({4, 3, 1}), Extents{4, 3, int64_t(1) << 40}), &far)),
        REFUSED(NG_E_INVALID, "ng_conv: ng_conv_desc.size is 4", build::conv(g, x, w, &no_size)),
        REFUSED(NG_E_INVALID, "ng_conv: unknown flags 2", build::conv(g, x, w, &flags)),
        REFUSED(NG_E_INVALID, "ng_conv: stride, dilate or padding of spatial axis 0 is negative", build::conv(g, x, w, &negative)),
        REFUSED(NG_E_INVALID, "ng_conv: spatial axis 1 is described, x has 1", build::conv(g, x, w, &beyond)),
        REFUSED(NG_E_INVALID, "ng_conv: groups is -1", build::conv(g, x, w, &few)),
        REFUSED(NG_E_SHAPE, "ng_conv_dx: dy is |should be [2, 4, 6]", build::conv_dx(g, w, f({2, 4, 5}), seen({2, 3, 8}), &ok)),
        REFUSED(NG_E_SHAPE, "ng_conv_dw: dy is |should be [2, 4, 6]", build::conv_dw(g, x, f({2, 4, 5}), seen({4, 3, 3}), &ok)),
        REFUSED(NG_E_INVALID, "ng_pool: d is NULL, ", build::pool(g, x, nullptr)),
        REFUSED(NG_E_LIMIT, "an extent exceeds 63 bits", build::pool(g, build::iota(g, seen({1, 1, INT64_MAX}), 2), &endless)),
        REFUSED(NG_E_INVALID, "ng_pool: kind 3", build::pool(g, x, &kind)),
        REFUSED(NG_E_INVALID, "ng_pool: window, stride", build::pool(g, x, &windowless)),
        REFUSED(NG_E_SHAPE, "ng_pool: a window over 9", build::pool(g, x, &wide)),
        REFUSED(NG_E_INVALID, "ng_pool: padding 2, 2|no smaller than the window's 2", build::pool(g, x, &padded)),
        REFUSED(NG_E_INVALID, "ng_pool: spatial axis 2 is described", build::pool(g, x, &axis)),
        REFUSED(NG_E_INVALID, "ng_pool: the window over channels", build::pool(g, x, &channel)),
        REFUSED(NG_E_SHAPE, "ng_pool_dx: dy is |should be [2, 3, 4]", build::pool_dx(g, x, f({2, 3, 5}), &fine)),
        REFUSED(NG_E_DTYPE, "ng_pool_dx: x is i32", build::pool_dx(g, i({2, 3, 8}), f({2, 3, 4}), &fine)),
    });
}

TEST_CASE("products: shapes, and accumulators by type")
{
    CHECK(dims_of(build::matmul(g, f({3}), f({3}), 0)) == "[]");
    CHECK(dims_of(build::matmul(g, f({2, 3}), f({3}), 0)) == "[2]");
    CHECK(dims_of(build::matmul(g, f({3}), f({3, 5}), 0)) == "[5]");
    CHECK(dims_of(build::matmul(g, f({7, 1, 2, n}), f({6, n, m}), 0)) == "[7, 6, 2, -2]");
    const struct { Dtype a, b, want; } types[] = {{Dtype::f16, Dtype::bf16, Dtype::f32}, {Dtype::i8, Dtype::u8, Dtype::i32}, {Dtype::u8, Dtype::u8, Dtype::i32}, {Dtype::f64, Dtype::f16, Dtype::f64},
                                                  {Dtype::i16, Dtype::i16, Dtype::i16}, {Dtype::i64, Dtype::f32, Dtype::f32}, {Dtype::bool_, Dtype::bool_, Dtype::i32}};
    for (const auto& t : types) CHECK(build::matmul(g, param(t.a, {2, 2}), param(t.b, {2, 2}), 0)->dtype == t.want);
}

TEST_CASE("windows: as many positions as fit, by counting them")
{
    for (int64_t d = 1; d <= 9; d++)
        for (int32_t window = 1; window <= 4; window++)
            for (int32_t stride = 1; stride <= 3; stride++)
                for (int32_t pad = 0; pad < window; pad++) {
                    int64_t floor = 0, ceil = 0;
                    for (int64_t at = -pad; at + window <= d + pad; at += stride) floor++;
                    for (int64_t at = -pad; at < d + pad; at += stride) {      // begins inside, and not in the padding behind
                        ceil += at < d;
                        if (at + window >= d + pad) break;
                    }
                    INFO(text(d, " elements, window ", window, ", stride ", stride, ", padding ", pad));
                    const NodeRef x = f({2, 3, d});
                    const ng_pool_desc p = pool(window, stride, pad), up = pool(window, stride, pad, NG_POOL_CEIL);
                    const ng_conv_desc c = conv(stride, pad);
                    if (!floor) continue;
                    CHECK(build::pool(g, x, &p)->dims()[2].is(floor));
                    CHECK(build::pool(g, x, &up)->dims()[2].is(ceil));
                    CHECK(build::conv(g, x, f({4, 3, window}), &c)->dims()[2].is(floor));
                }
}

TEST_CASE("refused: what a full graph has no room for, whatever was being built")
{
    Graph small(3);
    const NodeRef x = build::param(small, 0, seen({4})), at = build::param(small, 1, seen({2}, {}, Dtype::i64)), y = build::param(small, 2, seen({1}));
    ng_status status = NG_OK;
    try {
        build::put(small, x, at, y, 0, 0);
    } catch (const Error& e) {
        status = e.status;
    }
    CHECK(status == NG_E_LIMIT);
}
