// Programs that are told of no limit, and windows, strides and folds where sizes, places or sums leave what a number holds.
#include "tests/contract/face.h"

namespace {

constexpr int64_t NO_LIMIT = std::numeric_limits<int64_t>::max();

ng_conv_desc strided(int32_t a, int32_t b, int32_t c)
{
    ng_conv_desc d{};
    d.size = sizeof d, d.stride[0] = a, d.stride[1] = b, d.stride[2] = c;
    return d;
}
ng_pool_desc pooling(ng_pool_kind kind, int32_t a, int32_t b)
{
    ng_pool_desc d{};
    d.size = sizeof d, d.kind = kind, d.window[0] = a, d.window[1] = b;
    return d;
}
bool is_refused(ng_status status) { return status == NG_E_DEVMEM || status == NG_E_LIMIT; }

struct Unlimited : Face {
    using Face::Face;
    // In a workspace of as many bytes as the program says; what is behind stays as it was.
    Values run_within(ng_prog* p, const Tensors& args, const ng_shape& out)
    {
        const uint64_t bytes = info(p).workspace_bytes, behind = 1 << 20;
        std::vector<unsigned char> memory(bytes + behind + 64, 0xAA);
        unsigned char* const first = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
        ng_tensor *y = make(out), *work = wrap(shape(NG_U8, {int64_t(bytes)}), first, bytes);
        CHECK_MESSAGE(run(p, {.args = args, .out = {y}, .workspace = work}) == NG_OK, said());
        CHECK(ng_ctx_sync(c, nullptr, UINT64_MAX, &error) == NG_OK);
        CHECK(std::all_of(first + bytes, first + bytes + behind - 64, [](unsigned char b) { return b == 0xAA; }));
        return get(y);
    }
    ng_tensor* bytes_of_bools(std::vector<uint8_t>& raw) { return wrap(shape(NG_BOOL, {int64_t(raw.size())}), raw.data(), raw.size()); }
};

}  // namespace

TEST_CASE("P5: filters of a length run with fewer of them, and with fewer channels, than they may be")
{
    Unlimited f(0, 1);
    const Values few = {3}, two = {2, 5};
    ng_prog* channels = f.compile({ng_conv(f.param(0, shape(NG_F32, {1, -1, 1, 1})), f.param(1, shape(NG_F32, {2, -1, 1, 1})), nullptr)}, {.length_max = {5}});
    CHECK(differs(f.run_within(channels, {f.tensor(shape(NG_F32, {1, 1, 1, 1}), few), f.tensor(shape(NG_F32, {2, 1, 1, 1}), two)}, shape(NG_F32, {1, 2, 1, 1})), {6, 15}) == "");
    ng_prog* filters = f.compile({ng_conv(f.param(0, shape(NG_F32, {1, 1, 1, 1})), f.param(1, shape(NG_F32, {-1, 1, 1, 1})), nullptr)}, {.length_max = {50}});
    CHECK(differs(f.run_within(filters, {f.tensor(shape(NG_F32, {1, 1, 1, 1}), few), f.tensor(shape(NG_F32, {2, 1, 1, 1}), two)}, shape(NG_F32, {1, 2, 1, 1})), {6, 15}) == "");
    const ng_shape x = shape(NG_F32, {1, -1, 1, 1}), w = shape(NG_F32, {2, -1, 1, 1});
    ng_prog* dx = f.compile({ng_conv_dx(f.param(0, w), f.param(1, shape(NG_F32, {1, 2, 1, 1})), &x, nullptr)}, {.length_max = {5}});
    CHECK(differs(f.run_within(dx, {f.tensor(shape(NG_F32, {2, 1, 1, 1}), two), f.tensor(shape(NG_F32, {1, 2, 1, 1}), {1, 10})}, shape(NG_F32, {1, 1, 1, 1})), {52}) == "");
    ng_prog* dw = f.compile({ng_conv_dw(f.param(0, x), f.param(1, shape(NG_F32, {1, 2, 1, 1})), &w, nullptr)}, {.length_max = {5}});
    CHECK(differs(f.run_within(dw, {f.tensor(shape(NG_F32, {1, 1, 1, 1}), few), f.tensor(shape(NG_F32, {1, 2, 1, 1}), two)}, shape(NG_F32, {2, 1, 1, 1})), {6, 15}) == "");
}

TEST_CASE("conv: one channel's windows with any strides and many taps take little memory and no time")
{
    Unlimited f;
    for (const int32_t stride : {1, 1000, 100000, 2000000000}) {
        const ng_conv_desc d = strided(stride, stride, 0);
        ng_expr *x = f.leaf(shape(NG_F32, {1, 2, 1, 1}), {3, 4}), *w = f.leaf(shape(NG_F32, {2, 1, 1, 1}), {2, 5});
        ng_conv_desc grouped = d;
        grouped.groups = 2;
        ng_expr* y = ng_conv(x, w, &grouped);
        CHECK(differs(f.eval(y), {6, 20}) == "");
        const Exprs slopes = f.grad({y}, {x, w});
        CHECK(differs(f.eval(slopes[0]), {2, 5}) == "");
        CHECK(differs(f.eval(slopes[1]), {3, 4}) == "");
    }
    // 512 x 512 taps: their sum.
    const Values ones(512 * 512, 1), numbers = counted(512 * 512, 0, 0x1p-18);
    double sum = 0;
    for (const double v : numbers) sum += v;
    ng_expr *x = f.leaf64(numbers), *w = f.leaf64(ones);
    const Dims dims = {1, 1, 512, 512};
    CHECK(differs(f.eval(ng_conv(ng_reshape(x, dims.data(), 4), ng_reshape(w, dims.data(), 4), nullptr)), {sum}, 0, 1e-12) == "");
    const ng_shape picture = shape(NG_F32, {1, 1, 1024, 1024}), filter = shape(NG_F32, {1, 1, 128, 128});
    const ng_conv_desc d = strided(128, 128, 0);
    Unlimited one(0, 1);
    CHECK(one.info(one.compile({ng_conv(one.param(0, picture), one.param(1, filter), &d)})).workspace_bytes < 16 << 20);
}

TEST_CASE("conv_dx: only residues below the extent have positions, however far apart the strides are")
{
    Unlimited f;
    const Values w(64, 1), dy(8, 1);
    const ng_shape x = shape(NG_F32, {1, 8, 2, 1, 1});
    for (const int32_t stride : {3, 1 << 21, 1 << 30}) {
        const ng_conv_desc d = strided(2 * (stride - 1), stride, stride);
        ng_expr* dx = ng_conv_dx(f.leaf(shape(NG_F32, {8, 8, 1, 1, 1}), w), f.leaf(shape(NG_F32, {1, 8, 1, 1, 1}), dy), &x, &d);
        Values want(16, 0);
        for (size_t i = 0; i < 16; i += 2) want[i] = 8;
        CHECK(differs(f.eval(dx), want) == "");
    }
}

TEST_CASE("P5: told of no limit, a program runs in what it asks for, or is refused when compiled")
{
    Unlimited f(0, 2);
    const Values a(512 * 64, 1), b(64 * 64, 1);
    ng_prog* p = nullptr;
    const ng_status product = f.try_compile({ng_matmul(f.param(0, shape(NG_F32, {-1, 64})), f.param(1, shape(NG_F32, {64, 64})), nullptr)}, {.length_max = {NO_LIMIT}}, &p);
    if (product == NG_OK) {
        f.programs.push_back(p);
        CHECK(differs(f.run_within(p, {f.tensor(shape(NG_F32, {512, 64}), a), f.tensor(shape(NG_F32, {64, 64}), b)}, shape(NG_F32, {512, 64})), Values(512 * 64, 64)) == "");
    } else CHECK(is_refused(product));
    ng_conv_desc d{};
    d.size = sizeof d;
    for (int i = 0; i < 2; i++) d.pad_lo[i] = d.pad_hi[i] = 1;
    const ng_status windows = f.try_compile({ng_conv(f.param(0, shape(NG_F32, {-1, 16, -2, -3})), f.param(1, shape(NG_F32, {32, 16, 3, 3})), &d)},
                                            {.length_max = {int64_t(1) << 32, int64_t(1) << 16, int64_t(1) << 16}}, &p);
    if (windows == NG_OK) {
        f.programs.push_back(p);
        const Values x(2 * 16 * 40 * 40, 1), w(32 * 16 * 9, 1);
        const Values y = f.run_within(p, {f.tensor(shape(NG_F32, {2, 16, 40, 40}), x), f.tensor(shape(NG_F32, {32, 16, 3, 3}), w)}, shape(NG_F32, {2, 32, 40, 40}));
        CHECK(y[0] == 64);
        CHECK(y[41] == 144);
    } else CHECK(is_refused(windows));
    for (const int64_t most : {int64_t(1) << 58, int64_t(1) << 59, int64_t(1) << 60, NO_LIMIT}) {
        CHECK(is_refused(f.try_compile({ng_argsort(f.param(0, shape(NG_F32, {-1})), 0, 0)}, {.length_max = {most}}, &p)));
        CHECK(is_refused(f.try_compile({ng_argsort(f.param(0, shape(NG_F32, {3, -1})), 1, 0)}, {.length_max = {most}}, &p)));
    }
}

TEST_CASE("P5: a convolution compiles where its window fits no length that it may have")
{
    Unlimited f;
    for (const int64_t channels : {1, 5})
        for (const int64_t most : {3, 2, 1, 0}) {
            ng_prog* p = nullptr;
            const ng_status got = f.try_compile({ng_conv(f.param(0, shape(NG_F32, {64, channels, -1})), f.param(1, shape(NG_F32, {8, channels, 3})), nullptr)}, {.length_max = {most}}, &p);
            CHECK_MESSAGE(got == NG_OK, f.said());
            if (got == NG_OK) f.programs.push_back(p);
        }
}

TEST_CASE("P4: strides of what has no element, or one along the axis, may be any numbers in scans, sorts and products")
{
    Unlimited f;
    const int32_t turn[2] = {1, 0};
    float memory[64] = {1, 2, 3, 4, 5, 6, 7, 8};
    ng_expr *x = f.param(0, shape(NG_F32, {-1, 8}, {}, NG_ANY)), *half = ng_slice(x, 1, 0, 8, 2);
    ng_tensor* none = f.wrap(shape(NG_F32, {0, 8}, {1, int64_t(1) << 62}), memory, sizeof memory);
    for (ng_expr* y : {ng_argsort(half, 1, 0), ng_scan(half, 1, NG_FOLD_SUM, 0), ng_matmul(half, ng_permute(half, turn, 2), nullptr)}) {
        ng_shape out = f.shape_of(y);
        for (int i = 0; i < 2; i++) out.dims[i] = out.dims[i] < 0 ? 0 : out.dims[i];
        CHECK_MESSAGE(f.run(f.compile({y}, {.length_max = {5}}), {.args = {none}, .out = {f.make(out)}}) == NG_OK, f.said());
    }
    for (const int64_t stride : {int64_t(1) << 62, NO_LIMIT, -NO_LIMIT - 1}) {
        ng_tensor *one = f.wrap(shape(NG_F32, {1, 8}, {stride, 1}), memory, sizeof memory), *y = f.make(shape(NG_F32, {1, 8}));
        CHECK_MESSAGE(f.run(f.compile({ng_scan(f.text("x[::-1]", "x", {x}), 1, NG_FOLD_SUM, 0)}, {.length_max = {5}}), {.args = {one}, .out = {y}}) == NG_OK, f.said());
        CHECK(differs(f.get(y), {1, 3, 6, 10, 15, 21, 28, 36}) == "");
    }
}

TEST_CASE("ng_iota, ng_random: elements far apart are those of the whole")
{
    Unlimited f;
    const ng_shape far = shape(NG_I64, {int64_t(1) << 62}), words = shape(NG_U32, {int64_t(1) << 62});
    for (const int shift : {40, 47, 48, 50, 58, 60}) {
        const int64_t step = int64_t(1) << shift;
        const Values got = f.eval(ng_slice(ng_iota(f.s, &far, 0), 0, 0, 4 * step - step + 1, step));
        CHECK(differs(got, counted(4, 0, double(step))) == "");
        const auto word = [&](int64_t first, int64_t end, int64_t by) {
            return f.eval(ng_slice(ng_random(f.s, NG_BITS, f.leaf(shape(NG_U64, {}), {7}), nullptr, &words), 0, first, end, by));
        };
        CHECK(word(0, step + 1, step)[1] == word(step, step + 1, 1)[0]);
    }
}

TEST_CASE("pool: a window of more elements than anything has is refused when it is built")
{
    Unlimited f;
    ng_expr* x = f.leaf(shape(NG_F32, {1, 1, 1, 1, 1}), {3});
    ng_pool_desc d = pooling(NG_POOL_MEAN, 1 << 22, 1 << 21);
    d.window[2] = 1 << 21;
    for (int i = 0; i < 3; i++) d.pad_lo[i] = d.window[i] - 1, d.stride[i] = 1;
    CHECK(f.fault(ng_pool(x, &d)) == NG_E_LIMIT);
    d.kind = NG_POOL_MAX;
    CHECK(f.fault(ng_pool(x, &d)) == NG_E_LIMIT);
    d.window[1] = d.window[2] = 1, d.pad_lo[1] = d.pad_lo[2] = 0, d.window[0] = 1000, d.pad_lo[0] = 999;
    CHECK(differs(f.eval(ng_pool(x, &d)), {3}) == "");
}

TEST_CASE("N5: means, roots of squares and their slopes over large windows lose no more than pieces of them do")
{
    Unlimited f;
    for (const ng_dtype t : {NG_F32, NG_F64}) {
        const int64_t side = t == NG_F32 ? 1500 : 300;
        const size_t  count = size_t(side * side);
        const double  value = double(0.1f), off = t == NG_F32 ? 64 * 0x1p-24 : 6 * 64 * 0x1p-53;
        ng_expr* x = f.leaf(shape(t, {1, 1, side, side}), Values(count, value));
        const ng_pool_desc mean = pooling(NG_POOL_MEAN, int32_t(side), int32_t(side)), root = pooling(NG_POOL_L2, int32_t(side), int32_t(side));
        CHECK(differs(f.eval(ng_pool(x, &mean)), {value}, 0, off) == "");
        ng_expr* length = ng_pool(x, &root);
        CHECK(differs(f.eval(length), {value * double(side)}, 0, off) == "");
        CHECK(differs(f.slope(length, x), Values(count, 1 / double(side)), 0, 2 * off) == "");
    }
    // An infinity stays one.
    Values lost(200 * 200, 1);
    lost[777] = INF;
    const ng_pool_desc mean = pooling(NG_POOL_MEAN, 200, 200);
    CHECK(f.eval(ng_pool(f.leaf(shape(NG_F64, {1, 1, 200, 200}), lost), &mean))[0] == INF);
}

TEST_CASE("conv_dw, matmul: long sums in f32 are of pieces, along rows, channels and dot products")
{
    Unlimited f;
    const int64_t side = 256, images = 16;
    const size_t  count = size_t(images * side * side);
    const double  value = double(0.1f), off = 512 * 0x1p-24;
    ng_conv_desc d{};
    d.size = sizeof d;
    ng_expr *x = f.leaf(shape(NG_F32, {images, 1, side, side}), Values(count, value)), *dy = f.leaf(shape(NG_F32, {images, 1, side, side}), Values(count, 1));
    const ng_shape w = shape(NG_F32, {1, 1, 1, 1});
    CHECK(differs(f.eval(ng_conv_dw(x, dy, &w, &d)), {value * double(count)}, 0, off) == "");
    // Channels beside each other: two of them.
    ng_tensor *two = f.make(shape(NG_F32, {images, 2, side, side}, {2 * side * side, 1, 2 * side, 2})), *ones = f.make(shape(NG_F32, {images, 2, side, side}, {2 * side * side, 1, 2 * side, 2}));
    f.put(two, Values(2 * count, value)), f.put(ones, Values(2 * count, 1));
    const ng_shape each = shape(NG_F32, {2, 1, 1, 1});
    d.groups = 2;
    CHECK(differs(f.eval(ng_conv_dw(ng_leaf(f.s, two), ng_leaf(f.s, ones), &each, &d)), Values(2, value * double(count)), 0, off) == "");
    const int64_t depth = 10000000;
    ng_expr *a = f.leaf(shape(NG_F32, {1, depth}), Values(size_t(depth), value)), *b = f.leaf(shape(NG_F32, {1, depth}), Values(size_t(depth), 1));
    const int32_t turn[2] = {1, 0};
    CHECK(differs(f.eval(ng_matmul(a, ng_permute(b, turn, 2), nullptr)), {value * double(depth)}, 0, (4096 / 4 + double(depth) / 4096) * 0x1p-24) == "");
}

TEST_CASE("ng_scan: long lines are finite wherever their running folds are")
{
    Unlimited f;
    for (const ng_dtype t : {NG_F32, NG_F64}) {
        Values x(70000, 4);
        x[0] = 0;
        CHECK(differs(f.eval(ng_scan(f.leaf(shape(t, {70000}), x), 0, NG_FOLD_PROD, 0)), Values(70000, 0)) == "");
    }
    Values up(65536, 1), want(65536);
    for (size_t i = 0; i < 1000; i++) up[i] = 0.5, up[1024 + i] = 4;
    double run = 1;
    for (size_t i = 0; i < up.size(); i++) want[i] = run *= up[i];
    CHECK(differs(f.eval(ng_scan(f.leaf64(up), 0, NG_FOLD_PROD, 0)), want, 0, 1e-12) == "");
    Values x(65536, 0);
    x[0] = -1.7e308, x[1024] = x[1025] = 1.7e308;
    run = 0;
    for (size_t i = 0; i < x.size(); i++) want[i] = run += x[i];
    CHECK(differs(f.eval(ng_scan(f.leaf64(x), 0, NG_FOLD_SUM, 0)), want) == "");
}

TEST_CASE("bool: any byte but 0 is true in sorts, scans, segments and puts")
{
    Unlimited f;
    std::vector<uint8_t> raw = {2, 1, 0, 255, 1}, put = {2, 4, 0};
    ng_expr *x = ng_leaf(f.s, f.bytes_of_bools(raw)), *at = f.leaf(shape(NG_I64, {3}), {0, 2, 5}), *places = f.leaf(shape(NG_I64, {3}), {0, 1, 3});
    CHECK(differs(f.eval(ng_argsort(x, 0, 0)), {2, 0, 1, 3, 4}) == "");
    CHECK(differs(f.eval(ng_argsort(x, 0, NG_REVERSE)), {0, 1, 3, 4, 2}) == "");
    CHECK(differs(f.eval(ng_scan(x, 0, NG_FOLD_MAX, 0)), {1, 1, 1, 1, 1}) == "");
    CHECK(differs(f.eval(ng_scan(x, 0, NG_FOLD_MIN, 0)), {1, 1, 0, 0, 0}) == "");
    CHECK(differs(f.eval(ng_segment(x, at, NG_FOLD_MIN)), {1, 0}) == "");
    CHECK(differs(f.eval(ng_segment(x, at, NG_FOLD_MAX)), {1, 1}) == "");
    CHECK(differs(f.eval(ng_put(x, places, ng_leaf(f.s, f.bytes_of_bools(put)), 0, NG_FOLD_MIN)), {1, 1, 0, 0, 1}) == "");
}
