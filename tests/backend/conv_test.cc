// Convolutions and their derivatives on the CPU against plain loops over every tap: any window, layout, groups and type.
#include "lib/backend/cpu/conv.h"
#include "tests/backend/window_problems.h"

using namespace product_check;
using namespace ng::cpu;

namespace {

using Problem = ConvProblem<ConvWindow>;
using Types = ConvTypes;

struct Sums {
    Tensor&             of;
    std::vector<double> values;
    explicit Sums(Tensor& t) : of(t), values(size_t(t.count())) {}
    double& at(const Index& i)
    {
        int64_t flat = 0;
        for (size_t a = 0; a < i.size(); a++) flat = flat * of.dims[a] + i[a];
        return values[size_t(flat)];
    }
    bool matches()
    {
        bool same = true;
        of.each([&](const Index& i) { same &= of.get(i) == at(i); });
        return same;
    }
};

void check(const Problem& p, const Types& types, Layout layout, uint32_t workers = 1)
{
    const size_t rank = p.x.size() + 2;
    const Lie    lie = lie_of(layout, rank);
    Tensor       x(types.x, p.dims_x(), lie), w(types.w, p.dims_w(), layout == IMAGES_LAST ? Lie{} : lie), y(types.y, p.dims_y(), lie);
    Tensor       dx(types.y, p.dims_x(), lie), dw(types.y, p.dims_w(), lie), dy(types.x, p.dims_y(), lie);
    x.fill(1), w.fill(2), dy.fill(3);
    Sums want_y(y), want_dx(dx), want_dw(dw);
    each_tap(p, w, y, [&](const Index* ix, const Index& iw, const Index& iy) {
        const double at = ix ? x.get(*ix) : p.pad_value;
        want_y.at(iy) += at * w.get(iw), want_dw.at(iw) += at * dy.get(iy);
        if (ix) want_dx.at(*ix) += dy.get(iy) * w.get(iw);
    });
    const ConvWindow window = p.window();
    for (const char* level : LEVELS) {
        const ProductTable* table = product_table(level);
        if (!table) continue;
        Threads threads{workers};
        INFO(level, " layout ", int(layout), " x ", ng::name_of(types.x), " w ", ng::name_of(types.w), " c ", p.c, " k ", p.k, " groups ", p.groups, " rank ", rank,
             " x ", p.x.back(), " w ", p.w.back(), " stride ", p.stride.back(), " dilate ", p.dilate.back(), " pad ", p.pad_lo.back());
        {
            Workspace s(conv_workspace(*table, x.operand(), w.operand(), y.operand(), window, workers));
            conv(x.operand(), w.operand(), y.operand(), window, nullptr, {*table, s.data(), threads.parallel()});
            CHECK(s.is_intact());
            CHECK(want_y.matches());
        }
        {
            Workspace s(conv_workspace(*table, dx.operand(), w.operand(), dy.operand(), window, workers));
            conv_dx(w.operand(), dy.operand(), dx.operand(), window, {*table, s.data(), threads.parallel()});
            CHECK(s.is_intact());
            CHECK(want_dx.matches());
        }
        {
            Workspace s(conv_dw_workspace(*table, x.operand(), dy.operand(), dw.operand(), window, workers));
            conv_dw(x.operand(), dy.operand(), dw.operand(), window, {*table, s.data(), threads.parallel()});
            CHECK(s.is_intact());
            CHECK(want_dw.matches());
        }
        for (Tensor* t : {&y, &dx, &dw}) std::fill(t->memory.begin(), t->memory.end(), char(0xff));
    }
}

const Types F32 = {Dtype::f32, Dtype::f32, Dtype::f32};

}  // namespace

TEST_CASE("conv: one, two and three spatial axes in every layout")
{
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST}) {
        check({2, 3, 5, 1, {17}, {3}, {1}, {1}, {1}, {1}}, F32, layout);
        check({3, 5, 7, 1, {9, 8}, {3, 2}, {1, 1}, {1, 1}, {1, 0}, {1, 1}}, F32, layout);
        check({2, 3, 4, 1, {5, 6, 7}, {2, 3, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 0}, {0, 1, 1}}, F32, layout);
        check({1, 19, 35, 1, {13, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, layout);
        check({9, 17, 16, 1, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, F32, layout);
    }
}

TEST_CASE("conv: strides, dilations and lopsided padding, alone and together")
{
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST})
        for (const int64_t stride : {1, 2, 3, 5})
            for (const int64_t dilate : {1, 2, 3, 4})
                for (const Index& pad : {Index{0, 0}, {2, 0}, {0, 3}, {5, 4}})
                    for (const int64_t taps : {1, 2, 3})
                        check({2, 3, 4, 1, {11, 13}, {2, taps}, {stride, stride}, {1, dilate}, {1, pad[0]}, {0, pad[1]}}, F32, layout);
}

TEST_CASE("conv: weights' derivatives of as many channels as fill tiles, from a copy with margins and, where those are too wide, without")
{
    const Types wide = {Dtype::f64, Dtype::f64, Dtype::f64}, narrow = {Dtype::bf16, Dtype::bf16, Dtype::f32};
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST})
        for (const Types& types : {F32, wide, narrow})
            for (const int64_t groups : {1, 2}) {
                check({2, 32 * groups, 22 * groups, groups, {9, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, types, layout);
                check({3, 64 * groups, 16 * groups, groups, {11, 8}, {3, 2}, {2, 3}, {2, 1}, {0, 2}, {3, 1}}, types, layout);
                check({1, 32 * groups, 8 * groups, groups, {6, 7}, {3, 3}, {1, 1}, {9, 1}, {9, 9}, {9, 9}}, types, layout);
                check({2, 32 * groups, 8 * groups, groups, {40}, {5}, {1}, {1}, {2}, {2}}, types, layout, 3);
                check({1, 32 * groups, 6 * groups, groups, {4, 5, 6}, {2, 3, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 0}, {0, 1, 1}}, types, layout);
            }
}

TEST_CASE("conv: large pictures, image by image from a copy with margins")
{
    const Types wide = {Dtype::f64, Dtype::f64, Dtype::f64}, mixed = {Dtype::f32, Dtype::bf16, Dtype::f32};
    for (const Types& types : {F32, wide, mixed}) check({2, 16, 17, 1, {48, 49}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3}, types, CHANNELS_FIRST, 2);
    check({1, 32, 34, 2, {51, 50}, {3, 2}, {1, 1}, {1, 2}, {2, 0}, {0, 2}}, F32, CHANNELS_FIRST);
    check({4, 16, 16, 1, {40, 90}, {5, 1}, {1, 1}, {1, 1}, {0, 0}, {4, 0}}, F32, CHANNELS_FIRST, 3);
    check({1, 16, 16, 1, {30, 200}, {2, 4}, {1, 1}, {1, 3}, {7, 9}, {1, 0}}, F32, CHANNELS_FIRST);
}

TEST_CASE("conv: large pictures by each way have the same bits, and its epilogue hears of each element once")
{
    const Problem p = {4, 20, 33, 1, {50, 60}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    Tensor        x(Dtype::f32, p.dims_x()), w(Dtype::f32, p.dims_w()), y(Dtype::f32, p.dims_y()), flat = y;
    x.fill_normal(1), w.fill_normal(2);
    for (const char* level : LEVELS) {
        const ProductTable* table = product_table(level);
        if (!table) continue;
        Listener       seen(flat);
        const Epilogue epilogue = seen.epilogue();
        // More workers than images cut each image.
        for (const uint32_t workers : {2u, 5u}) {
            Threads   threads{workers};
            Workspace s(conv_workspace(*table, x.operand(), w.operand(), y.operand(), p.window(), workers));
            if (workers == 5) conv(x.operand(), w.operand(), y.operand(), p.window(), nullptr, {*table, s.data(), threads.parallel()});
            else CHECK(run_flat({x.operand(), w.operand(), flat.operand(), 1, {-1, -1}, {1, 1}, false, 0, &epilogue}, {*table, s.data(), threads.parallel()}));
            CHECK(s.is_intact());
        }
        CHECK(flat.memory == y.memory);
        CHECK(seen.has_each_once());
        CHECK(seen.workers <= 2);
        std::fill(flat.memory.begin(), flat.memory.end(), char(0xff)), y.memory = flat.memory;
    }
}

TEST_CASE("conv: groups, depthwise, and depthwise with a multiplier")
{
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST})
        for (const int64_t stride : {1, 2}) {
            check({2, 6, 9, 3, {10, 9}, {3, 3}, {stride, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, layout);
            check({3, 7, 7, 7, {10, 40}, {3, 3}, {1, stride}, {1, 2}, {1, 1}, {1, 1}}, F32, layout);
            check({2, 5, 15, 5, {12}, {4}, {stride}, {1}, {2}, {1}}, F32, layout);
            check({1, 4, 8, 4, {4, 5, 6}, {3, 1, 2}, {1, stride, 1}, {1, 1, 3}, {1, 0, 2}, {1, 0, 2}}, F32, layout);
            check({2, 131, 131, 131, {4, 5}, {3, 3}, {1, stride}, {1, 1}, {1, 1}, {1, 1}}, F32, layout);
        }
}

TEST_CASE("conv: dx of one channel from many outputs, by rows where they are long")
{
    for (const Layout layout : LAYOUTS)
        for (const int64_t outputs : {5, 9}) {
            check({2, 3, 3 * outputs, 3, {7, 41}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, layout);
            check({17, 1, outputs, 1, {6, 38}, {3, 3}, {1, 1}, {1, 2}, {0, 3}, {2, 2}}, F32, layout, 3);
            check({2, 2, 2 * outputs, 2, {9, 90}, {5, 5}, {2, 2}, {1, 1}, {2, 1}, {1, 3}}, {Dtype::bf16, Dtype::f32, Dtype::f32}, layout);
            check({1, 2, 2 * outputs, 2, {170}, {2}, {1}, {3}, {0}, {1}}, {Dtype::u8, Dtype::i8, Dtype::i32}, layout);
            check({2, 1, outputs, 1, {3, 4, 30}, {2, 2, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {1, 0, 1}}, {Dtype::f64, Dtype::f32, Dtype::f64}, layout);
        }
}

TEST_CASE("conv: depthwise by steps that pass elements by, of which none is laid out")
{
    for (const int64_t stride : {3, 4, 6})
        for (const int64_t dilate : {1, 2, 3, 4})
            for (const int64_t taps : {1, 2, 3}) check({2, 3, 3, 3, {29, 50}, {2, taps}, {stride, stride}, {dilate, dilate}, {1, 2}, {3, 0}}, F32, CHANNELS_FIRST);
    check({2, 3, 6, 3, {150, 61}, {3, 3}, {2, 9}, {1, 2}, {0, 4}, {1, 5}, 1.5}, {Dtype::bf16, Dtype::f32, Dtype::f32}, CHANNELS_FIRST);
    const auto laid = [](int64_t stride) {                 // bytes that an image leaves in its workspace
        const Problem p = {1, 1, 1, 1, {140, 140}, {1, 1}, {stride, stride}, {1, 1}, {0, 0}, {0, 0}};
        Tensor        x(Dtype::f32, p.dims_x()), w(Dtype::f32, p.dims_w()), y(Dtype::f32, p.dims_y());
        x.fill(1), w.fill(2);
        const ProductTable& table = *product_table(nullptr);
        Workspace           s(conv_workspace(table, x.operand(), w.operand(), y.operand(), p.window(), 1));
        conv(x.operand(), w.operand(), y.operand(), p.window(), nullptr, {table, s.data(), Parallel()});
        return std::count_if(s.data(), s.data() + s.bytes, [](char c) { return c != char(0xff); });
    };
    CHECK(laid(14) <= laid(1));
}

TEST_CASE("conv: padding with another value than 0")
{
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST})
        for (const int64_t groups : {1, 4}) {
            check({2, 4, 4, groups, {6, 7}, {3, 3}, {1, 2}, {1, 1}, {2, 1}, {1, 3}, 1.5}, F32, layout);
            check({2, 4, 4, groups, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {1, 3}, 5}, {Dtype::u8, Dtype::i8, Dtype::i32}, layout);
            check({2, 4, 4, groups, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {1, 3}, -1.75}, {Dtype::f16, Dtype::f32, Dtype::f32}, layout);
            check({2, 4, 4, groups, {6, 7}, {3, 3}, {1, 1}, {1, 1}, {2, 1}, {1, 3}, 1.5}, {Dtype::e5m2, Dtype::e4m3, Dtype::f32}, layout);
        }
}

TEST_CASE("conv: what is outside of dy adds nothing to dx, whatever the tap is")
{
    const Problem problems[] = {{1, 1, 1, 1, {5}, {3}, {1}, {1}, {0}, {0}},
                                {2, 40, 33, 1, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                                {2, 3, 4, 1, {9, 8}, {3, 2}, {2, 3}, {1, 2}, {1, 0}, {0, 2}},
                                {2, 6, 6, 6, {11}, {4}, {1}, {2}, {3}, {1}},
                                {2, 5, 5, 5, {6, 7}, {3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}},
                                {2, 2, 12, 2, {5, 40}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                                {1, 16, 16, 1, {60, 60}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}};
    const ProductTable* table = product_table(nullptr);
    Threads             threads{3};
    for (const Problem& p : problems)
        for (const Layout layout : LAYOUTS)
            for (const Dtype type : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::e4m3})
                for (const double odd : {HUGE_VAL, double(NAN)}) {
                    if (type == Dtype::e4m3 && odd == odd) continue;           // it has none
                    const size_t rank = p.x.size() + 2;
                    const Dtype  sums = type == Dtype::f64 ? Dtype::f64 : Dtype::f32;
                    Tensor       w(type, p.dims_w()), dx(sums, p.dims_x(), lie_of(layout, rank)), dy(sums, p.dims_y(), lie_of(layout, rank));
                    w.fill(2), dy.fill(3);
                    Index last(rank, 0);
                    for (size_t d = 2; d < rank; d++) last[d] = p.w[d - 2] - 1;
                    const uint64_t code = type == Dtype::e4m3 ? 0x7f : odd == odd ? 0x7f80 : 0xffc0;
                    if (bytes_of(type) < 4) std::memcpy(w.at(last), &code, size_t(bytes_of(type)));
                    else put(type, w.at(last), odd);
                    Sums want(dx);
                    each_tap(p, w, dy, [&](const Index* ix, const Index& iw, const Index& iy) {
                        if (ix) want.at(*ix) += dy.get(iy) * w.get(iw);
                    });
                    const ConvWindow window = p.window();
                    Workspace        s(conv_workspace(*table, dx.operand(), w.operand(), dy.operand(), window, 3));
                    conv_dx(w.operand(), dy.operand(), dx.operand(), window, {*table, s.data(), threads.parallel()});
                    CHECK(s.is_intact());
                    int64_t wrong = 0;
                    dx.each([&](const Index& i) { wrong += !(dx.get(i) == want.at(i) || (dx.get(i) != dx.get(i) && want.at(i) != want.at(i))); });
                    INFO("layout ", int(layout), " ", ng::name_of(type), " odd ", odd, " c ", p.c, " groups ", p.groups, " x ", p.x.back());
                    CHECK(wrong == 0);
                }
}

TEST_CASE("conv: positions of dx that no tap reaches are zeros, and nothing beside dx is written")
{
    const Types types[] = {F32, {Dtype::f64, Dtype::f64, Dtype::f64}, {Dtype::i8, Dtype::u8, Dtype::i32}, {Dtype::i16, Dtype::i16, Dtype::i16}};
    for (const Layout layout : LAYOUTS)
        for (const Types& t : types)
            for (const int64_t groups : {1, 3}) {
                const Problem p = {2, 3, 6, groups, {23, 50}, {2, 3}, {5, 8}, {1, 1}, {1, 2}, {1, 0}};
                check(p, t, layout, 3);
                Tensor    w(t.w, p.dims_w()), dx(t.y, p.dims_x(), lie_of(layout, 4)), dy(t.x, p.dims_y(), lie_of(layout, 4));
                Threads   threads{3};
                Workspace s(conv_workspace(*product_table(nullptr), dx.operand(), w.operand(), dy.operand(), p.window(), 3));
                w.fill(2), dy.fill(3);
                std::vector<char> beside = dx.memory;
                conv_dx(w.operand(), dy.operand(), dx.operand(), p.window(), {*product_table(nullptr), s.data(), threads.parallel()});
                dx.each([&](const Index& i) { std::memcpy(&beside[size_t(dx.at(i) - dx.memory.data())], dx.at(i), size_t(bytes_of(t.y))); });
                CHECK(beside == dx.memory);
            }
}

TEST_CASE("conv: every mix of types that has an accumulator")
{
    const Types all[] = {{Dtype::f64, Dtype::f64, Dtype::f64}, {Dtype::f32, Dtype::f64, Dtype::f64}, {Dtype::bf16, Dtype::f16, Dtype::f32},
                         {Dtype::e4m3, Dtype::f32, Dtype::f32}, {Dtype::i8, Dtype::u8, Dtype::i32}, {Dtype::u8, Dtype::u8, Dtype::i32},
                         {Dtype::i16, Dtype::i16, Dtype::i16}, {Dtype::i32, Dtype::i32, Dtype::i32}, {Dtype::i64, Dtype::i64, Dtype::i64}};
    for (const Types& types : all)
        for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST})
            for (const int64_t groups : {1, 6}) {
                check({2, 6, 6, groups, {8, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, types, layout);
                check({2, 6, 12, groups, {8, 9}, {2, 3}, {2, 2}, {1, 2}, {1, 2}, {1, 0}}, types, layout);
            }
}

TEST_CASE("conv: many channels under many taps, whose weights' derivative copies x first")
{
    const Types pairs = {Dtype::bf16, Dtype::bf16, Dtype::f32}, bytes = {Dtype::i8, Dtype::i8, Dtype::i32};
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST}) {
        for (const Types& types : {F32, pairs, bytes, Types{Dtype::u8, Dtype::i8, Dtype::i32}, Types{Dtype::f64, Dtype::f64, Dtype::f64}}) {
            check({2, 33, 15, 1, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2}, types, layout);
            check({2, 34, 6, 2, {9, 7}, {2, 3}, {2, 1}, {1, 2}, {3, 1}, {0, 2}}, types, layout, 2);
        }
        check({2, 16, 5, 1, {23}, {5}, {2}, {1}, {2}, {1}}, F32, layout);
        check({1, 18, 3, 1, {5, 6, 7}, {2, 1, 3}, {1, 1, 1}, {1, 1, 2}, {1, 0, 2}, {1, 0, 2}}, F32, layout);
        check({2, 16, 3, 1, {0, 5}, {2, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, layout);
        check({0, 16, 3, 1, {5, 5}, {2, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, layout);
    }
}

TEST_CASE("conv: nothing to sum gives zeros, nothing to write writes nothing")
{
    check({2, 0, 3, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, CHANNELS_FIRST);
    check({0, 2, 3, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, CHANNELS_FIRST);
    check({2, 2, 0, 1, {5, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, CHANNELS_FIRST);
    check({2, 2, 2, 1, {2, 5}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}, F32, CHANNELS_FIRST);
    check({2, 3, 3, 3, {0, 5}, {1, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 1}}, F32, CHANNELS_LAST);
    check({1, 1, 1, 1, {1}, {1}, {1}, {1}, {0}, {0}}, F32, CHANNELS_FIRST);
    check({1, 1, 1, 1, {1}, {1}, {7}, {1}, {3}, {3}}, F32, CHANNELS_FIRST);
}

TEST_CASE("conv: blocks and strips, with three workers")
{
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST}) {
        check({4, 33, 70, 1, {19, 23}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, F32, layout, 3);
        check({4, 40, 40, 40, {19, 23}, {3, 3}, {1, 2}, {1, 1}, {1, 1}, {1, 1}}, F32, layout, 3);
    }
}

TEST_CASE("conv: the number of workers changes no bit")
{
    for (const int64_t groups : {1, 32}) {
        Tensor x(Dtype::f32, {4, 32, 20, 21}), w(Dtype::f32, {64, 32 / groups, 3, 3}), y(Dtype::f32, {4, 64, 20, 21}), dx(Dtype::f32, x.dims), dw(Dtype::f32, w.dims);
        x.fill_normal(1), w.fill_normal(2);
        Tensor dy = y;
        dy.fill_normal(3);
        std::vector<char> first[3];
        for (const uint32_t workers : {1u, 2u, 5u}) {
            const ConvWindow    window = {2, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, groups, 0};
            const ProductTable& table = *product_table(nullptr);
            Threads             threads{workers};
            Workspace           s(conv_dw_workspace(table, x.operand(), y.operand(), w.operand(), window, workers));
            const Workplace     place = {table, s.data(), threads.parallel()};
            conv(x.operand(), w.operand(), y.operand(), window, nullptr, place);
            conv_dx(w.operand(), dy.operand(), dx.operand(), window, place);
            conv_dw(x.operand(), dy.operand(), dw.operand(), window, place);
            const Tensor* results[] = {&y, &dx, &dw};
            for (int i = 0; i < 3; i++) {
                if (workers == 1) first[i] = results[i]->memory;
                CHECK(first[i] == results[i]->memory);
            }
        }
    }
}

TEST_CASE("conv: the epilogue's boxes cover the result once, finished, and small ones are told as one")
{
    for (const Layout layout : {CHANNELS_FIRST, CHANNELS_LAST, IMAGES_LAST})
        for (const int64_t groups : {1, 2, 6}) {
            const Problem p = {5, 6, 12, groups, {9, 17}, {3, 3}, {1, 2}, {1, 1}, {1, 1}, {1, 1}};
            Tensor        x(Dtype::f32, p.dims_x(), lie_of(layout, 4)), w(Dtype::f32, p.dims_w()), y(Dtype::f32, p.dims_y(), lie_of(layout, 4));
            x.fill(1), w.fill(2);
            Listener            seen(y);
            const Epilogue      epilogue = seen.epilogue();
            const ProductTable& table = *product_table(nullptr);
            Threads             threads{3};
            Workspace           s(conv_workspace(table, x.operand(), w.operand(), y.operand(), p.window(), 3));
            conv(x.operand(), w.operand(), y.operand(), p.window(), &epilogue, {table, s.data(), threads.parallel()});
            CHECK(seen.has_each_once());
            CHECK(seen.boxes <= 30);                       // of 60 planes in two pieces each, where they are planes
        }
}
