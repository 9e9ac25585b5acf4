// Portable products against plain loops: every instance, type, layout, cast and way of cutting, at sizes that hurt.
#pragma once
#include "lib/backend/cuda/gemm_mma.h"
#include "tests/backend/basic_machine.h"

#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace basic_check {
namespace gemm = ng::cuda::gemm;
namespace mma = ng::cuda::gemm::mma;

void launch_product(const gemm::Launch& launch);     // of this program

// c [batch, m, n]; a and b of rank 3 too, with batches of 1 that repeat.
struct Product {
    Tensor                 a, b, c;
    ng::kernels::Epilogue  epilogue{};
    bool                   allows_tf32 = false;
    int                    units = 132;
    uint64_t               workspace_most = UINT64_MAX;
    bool                   is_fixed = false;
    std::optional<gemm::Way> way = {};           // none: what is chosen
};
// Kernels that ran in this program.
inline std::set<uint32_t>& kernels_run()
{
    static std::set<uint32_t> all;
    return all;
}

inline gemm::Device device_of(int units) { return {80, uint32_t(units), {true, true, true, true}}; }

inline gemm::Problem problem_of(Product& t, const There& at_a, const There& at_b, const There& at_c)
{
    gemm::Problem p{};
    p.a = at_a.operand().data, p.b = at_b.operand().data, p.c = at_c.operand().data;
    p.a_type = t.a.type, p.b_type = t.b.type, p.c_type = t.c.type, p.allows_tf32 = t.allows_tf32;
    p.m = t.c.dims[1], p.n = t.c.dims[2], p.k = t.a.dims[2], p.batches = t.c.dims[0];
    p.a_row = t.a.strides[1], p.a_depth = t.a.strides[2], p.b_depth = t.b.strides[1], p.b_column = t.b.strides[2], p.c_row = t.c.strides[1], p.c_column = t.c.strides[2];
    p.a_batch = t.a.dims[0] == 1 ? 0 : t.a.strides[0], p.b_batch = t.b.dims[0] == 1 ? 0 : t.b.strides[0], p.c_batch = t.c.strides[0];
    p.epilogue = t.epilogue;
    return p;
}

inline void run(Product& t)
{
    There               a(t.a), b(t.b), c(t.c);
    const gemm::Problem p = problem_of(t, a, b, c);
    const uint64_t bytes = std::min(mma::workspace(p, t.is_fixed), t.workspace_most);
    REQUIRE(mma::can_run(p, device_of(t.units), bytes));
    Memory         workspace(bytes);
    auto           send = [](const gemm::Launch& l) {
        REQUIRE(l.grid[0] > 0);
        kernels_run().insert(l.kernel);
        launch_product(l);
    };
    auto none = [](const basic::Launch&) { FAIL("no basic kernel is needed"); };
    const gemm::Launcher  launcher(send);
    const basic::Launcher nobody(none);
    gemm::Memory          known;
    if (t.way) known.is_known = true, known.way = *t.way;
    mma::run(p, device_of(t.units), {bytes ? workspace.data() : nullptr, bytes, launcher, nobody, nullptr, t.way ? &known : nullptr});
    CHECK(workspace.is_intact());
    c.back();
}

// Floats are off by at most eps times the sum of the products' absolute values, then rounded to c's type; integers are exact.
inline bool is_right(Product& t, double eps)
{
    const int64_t depth = t.a.dims[2], a_step = t.a.strides[2] * ng::bytes_of(t.a.type), b_step = t.b.strides[1] * ng::bytes_of(t.b.type);
    bool          good = true;
    t.c.each([&](const Index& i) {
        const char *a = t.a.at({t.a.dims[0] == 1 ? 0 : i[0], i[1], 0}), *b = t.b.at({t.b.dims[0] == 1 ? 0 : i[0], 0, i[2]});
        double      sum = 0, size = 0;
        for (int64_t k = 0; k < depth; k++) {
            const double p = real_at(t.a.type, a + k * a_step) * real_at(t.b.type, b + k * b_step);
            sum += p, size += std::fabs(p);
        }
        const double have = real_at(t.c.type, t.c.at(i));
        if (!ng::is_float(t.c.type)) good &= have == double(int32_t(uint32_t(int64_t(sum))));
        else good &= (have != have && sum != sum) || have == nearest(t.c.type, sum) || std::fabs(have - sum) <= eps * size;
    });
    return good;
}

// And on a GPU once more, to the same bits.
inline void check(Product&& t, double eps = 0)
{
    const std::vector<char> before = t.c.memory;
    run(t);
    CHECK(is_right(t, eps));
    CHECK(is_untouched_around(t.c, before));
    if (!machine().is_fast()) return;
    const std::vector<char> first = std::exchange(t.c.memory, before);
    run(t);
    CHECK((t.c.memory == first));
}

inline Dtype sums_of(Dtype a) { return a == Dtype::f64 ? a : ng::is_float(a) ? Dtype::f32 : Dtype::i32; }
struct Layout3 {
    Lie a, b, c;
};
inline Product product_of(Dtype a, Dtype b, const Index& mnk, const Layout3& lie = {}, int64_t batches = 1)
{
    Product t{Tensor(a, {batches, mnk[0], mnk[2]}, lie.a), Tensor(b, {batches, mnk[2], mnk[1]}, lie.b), Tensor(sums_of(a), {batches, mnk[0], mnk[1]}, lie.c)};
    fill(t.a, 1), fill(t.b, 2);
    return t;
}

// Types with the units for which large or small tiles are chosen.
struct Pair {
    Dtype a, b;
    bool  allows_tf32;
};
inline const Pair PAIRS[] = {{Dtype::f16, Dtype::f16, false}, {Dtype::bf16, Dtype::bf16, false}, {Dtype::f32, Dtype::f32, true}, {Dtype::f32, Dtype::f32, false}, {Dtype::f64, Dtype::f64, false},
                             {Dtype::i8, Dtype::i8, false}, {Dtype::i8, Dtype::u8, false}, {Dtype::u8, Dtype::i8, false}, {Dtype::u8, Dtype::u8, false}};
inline const Lie ROWS, COLUMNS = {{0, 2, 1}, 0, 1};
inline const Layout3 TRANSPOSES[] = {{ROWS, ROWS, ROWS}, {ROWS, COLUMNS, ROWS}, {COLUMNS, ROWS, ROWS}, {COLUMNS, COLUMNS, ROWS}};

TEST_CASE("portable products: every pair of types, transpose and tile at sizes around tiles, aligned or not")
{
    const Index sizes[] = {{128, 128, 64}, {64, 64, 128}, {129, 136, 80}, {63, 65, 33}, {1, 1, 1}, {7, 131, 17}, {72, 8, 200}, {16, 144, 48}, {16, 48, 31}, {65, 3, 1}, {130, 64, 16}, {1, 70, 300}, {41, 1, 1033}, {1, 3, 2}, {68, 100, 36}, {4, 12, 1004}};
    struct Way {
        int      units;                  // few: larger tiles
        uint64_t workspace_most;         // none: nothing is copied
        bool     is_fixed;
    };
    for (const Pair& pair : PAIRS)
        for (const Layout3& lie : TRANSPOSES)
            for (const Index& s : sizes)
                for (const Way& way : {Way{1, UINT64_MAX, false}, {1000, UINT64_MAX, true}, {132, 0, false}}) {
                    INFO(ng::name_of(pair.a), " ", ng::name_of(pair.b), " ", s[0], " ", s[1], " ", s[2], " units ", way.units);
                    Product t = product_of(pair.a, pair.b, s, lie);
                    t.allows_tf32 = pair.allows_tf32, t.units = way.units, t.workspace_most = way.workspace_most, t.is_fixed = way.is_fixed;
                    check(std::move(t));
                }
}

// What is not read has no memory: it ends with the last row, and NaN lie between rows.
inline Tensor padded(Dtype type, int64_t rows, int64_t length, bool is_turned)
{
    const int64_t in_chunk = 16 / ng::bytes_of(type), pitch = (length + in_chunk - 1) / in_chunk * in_chunk;
    Tensor        t(type, {1, rows, pitch});
    t.dims[2] = length, t.memory.resize(size_t(((rows - 1) * pitch + length) * ng::bytes_of(type)));
    if (is_turned) std::swap(t.dims[1], t.dims[2]), std::swap(t.strides[1], t.strides[2]);
    return t;
}

TEST_CASE("portable products: rows that end within 16 bytes, each at a multiple of these")
{
    for (const Pair& pair : PAIRS)
        for (const bool a_turned : {false, true})
            for (const bool b_turned : {false, true})
                for (int64_t x = 1; x <= 40; x++) {
                    const int64_t m = x % 5 == 0 ? 1 : 33 + x, n = x, k = 41 - x + (x % 4 == 0 ? 64 : 0);
                    INFO(ng::name_of(pair.a), " ", ng::name_of(pair.b), " ", a_turned, b_turned, " ", m, " ", n, " ", k);
                    Product t{a_turned ? padded(pair.a, k, m, true) : padded(pair.a, m, k, false), b_turned ? padded(pair.b, n, k, true) : padded(pair.b, k, n, false), Tensor(sums_of(pair.a), {1, m, n})};
                    fill(t.a, 1), fill(t.b, 2);
                    t.allows_tf32 = pair.allows_tf32, t.units = x % 3 == 0 ? 1 : 1000;
                    check(std::move(t));
                }
}

TEST_CASE("portable products: nothing to sum gives zeros, nothing to write writes nothing")
{
    for (const Pair& pair : PAIRS)
        for (const Index& s : {Index{5, 7, 0}, {0, 7, 5}, {5, 0, 9}, {0, 0, 0}}) check(product_of(pair.a, pair.b, s));
    check(product_of(Dtype::f16, Dtype::f16, {5, 7, 9}, {}, 0));
}

TEST_CASE("portable products: reversed, gapped and repeated operands, results of any strides")
{
    const Lie lies[] = {ROWS, COLUMNS, {{}, 2, 1}, {{0, 2, 1}, 6, 3}, {{}, 7, 2}, {{1, 2, 0}, 0, 1}};
    for (const Pair& pair : {PAIRS[0], PAIRS[2], PAIRS[3], PAIRS[4], PAIRS[6]})
        for (const Lie& a : lies)
            for (const Lie& b : lies)
                for (const Lie& c : {lies[0], lies[1], lies[3], lies[5]}) {
                    Product t = product_of(pair.a, pair.b, {33, 18, 40}, {a, b, c}, 2);
                    t.allows_tf32 = pair.allows_tf32;
                    check(std::move(t));
                }
    for (const Pair& pair : PAIRS) {
        Product t = product_of(pair.a, pair.b, {20, 24, 48});
        for (const int64_t i : {0, 1, 2}) t.a.strides[size_t(i)] = i == 2 ? 1 : 0;       // one row, repeated
        check(std::move(t));
    }
}

TEST_CASE("portable products: batches, of which a or b may be one; rows go on through them")
{
    for (const Pair& pair : PAIRS)
        for (const int which : {0, 1, 2})
            for (const Index& s : {Index{2, 24, 32}, {35, 34, 20}, {1, 50, 64}, {9, 1, 40}}) {
                Product t{Tensor(pair.a, {which == 1 ? 1 : 3, s[0], s[2]}), Tensor(pair.b, {which == 2 ? 1 : 3, s[2], s[1]}), Tensor(sums_of(pair.a), {3, s[0], s[1]})};
                t.allows_tf32 = pair.allows_tf32;
                fill(t.a, 3), fill(t.b, 4);
                check(std::move(t));
            }
}

TEST_CASE("portable products: a long depth is cut, in no more workspace than there is; the same bits each time")
{
    for (const Pair& pair : PAIRS)
        for (const Index& s : {Index{3, 2, 5000}, {65, 70, 1111}, {128, 16, 2048}, {1, 6, 9000}})
            for (const uint64_t most : {UINT64_MAX, uint64_t(20000)}) {
                Product t = product_of(pair.a, pair.b, s, TRANSPOSES[size_t(s[0]) % 4]);
                t.allows_tf32 = pair.allows_tf32, t.workspace_most = most;
                if (ng::is_float(pair.a)) {
                    // Any numbers: rounded after each of at most k additions, of tf32 once before as well.
                    if (pair.a == Dtype::f32 || pair.a == Dtype::f64) t.a.fill_normal(5), t.b.fill_normal(6);
                    check(Product(t), (pair.a == Dtype::f64 ? 0x1p-52 : 0x1p-23) * double(s[2]) + (pair.allows_tf32 ? 0x1p-10 : 0));
                    if (most != UINT64_MAX) continue;
                    Product again = t;
                    run(again), run(t);
                    CHECK(t.c.memory == again.c.memory);
                } else {
                    check(std::move(t));
                }
            }
}

// Those of these kernels.
inline std::vector<gemm::Way> ways_by(Product& t, std::string_view words)
{
    const There at_a(t.a), at_b(t.b), at_c(t.c);
    const gemm::Problem p = problem_of(t, at_a, at_b, at_c);
    std::vector<gemm::CostedWay> all;
    std::vector<gemm::Way>       kept;
    mma::add_ways(p, device_of(t.units), mma::workspace(p, false), all);
    for (const gemm::CostedWay& w : all)
        if (std::string_view(mma::kernels()[w.way.instance].name).find(words) != std::string_view::npos) kept.push_back(w.way);
    return kept;
}

TEST_CASE("portable products: many by each kernel whose warps have a tile each, of operands that lie in every way and begin anywhere")
{
    const Lie lies[] = {ROWS, COLUMNS, {{}, 2, 2}, {{0, 2, 1}, 6, 3}, {{}, 1, 1}, {{1, 2, 0}, 0, 1}};
    for (const Pair& pair : PAIRS)
        for (const Lie& a : lies)
            for (const Lie& b : lies)
                for (const Index& s : {Index{8, 8, 8}, {33, 34, 35}, {64, 64, 64}, {49, 70, 30}, {1, 130, 12}, {100, 3, 100}, {2, 5, 0}}) {
                    Product t = product_of(pair.a, pair.b, s, {a, b, s[0] == 33 ? COLUMNS : ROWS}, s[0] == 8 ? 21 : s[1] == 3 ? 1 : 3);
                    t.allows_tf32 = pair.allows_tf32;
                    const std::vector<gemm::Way> ways = ways_by(t, "_small_");
                    CHECK(ways.size() >= 1);
                    for (const gemm::Way& way : ways) {
                        INFO(ng::name_of(pair.a), " ", s[0], " ", s[1], " ", s[2], " ", std::string(mma::kernels()[way.instance].name));
                        t.way = way;
                        check(Product(t));
                    }
                }
}

TEST_CASE("portable products: many of f32 by each kernel for small tiles of a block, of operands that lie in every way, results whose rows have no fours")
{
    const Lie lies[] = {ROWS, COLUMNS, {{}, 2, 2}, {{0, 2, 1}, 6, 3}};
    for (const Lie& a : lies)
        for (const Lie& b : lies)
            for (const Index& s : {Index{32, 32, 32}, {33, 65, 35}, {64, 28, 64}, {49, 33, 49}, {1, 130, 12}, {70, 3, 100}, {2, 5, 0}}) {
                Product t = product_of(Dtype::f32, Dtype::f32, s, {a, b, s[0] == 64 ? COLUMNS : ROWS}, 3);
                for (const char* name : {"_64x32", "f32_32", "f32_deep_32"})
                    for (const gemm::Way& way : ways_by(t, name)) {
                        INFO(s[0], " ", s[1], " ", s[2], " ", std::string(mma::kernels()[way.instance].name));
                        t.way = way;
                        check(Product(t));
                    }
                CHECK(ways_by(t, "_64x32").size() == 1);
                CHECK(ways_by(t, "f32_32").size() + ways_by(t, "f32_deep_32").size() == 1);
            }
}

TEST_CASE("portable products: few rows of bytes and of codes by each kernel for few, in every cut, whose b lies near or turned and ends anywhere; every code")
{
    const auto check_each = [](Product& t, size_t least) {
        const std::vector<gemm::Way> ways = ways_by(t, "_16_n");
        INFO(std::string(ng::name_of(t.a.type)), " ", std::string(ng::name_of(t.b.type)), " ", t.c.dims[1], " ", t.c.dims[2], " ", t.a.dims[2], " ", t.b.strides[1]);
        CHECK(ways.size() >= least);
        for (const gemm::Way& way : ways) {
            INFO(std::string(mma::kernels()[way.instance].name), " splits ", way.splits);
            t.way = way;
            check(Product(t));
        }
    };
    for (const Dtype a : {Dtype::i8, Dtype::u8, Dtype::e4m3, Dtype::e5m2})
        for (const Dtype b : {Dtype::i8, Dtype::u8, Dtype::e4m3, Dtype::e5m2})
            for (const bool b_turned : {false, true}) {
                if (ng::is_float(a) != ng::is_float(b)) continue;
                for (const Index& s : {Index{1, 128, 64}, {8, 40, 333}, {16, 257, 1100}, {7, 1, 65}, {20, 130, 16}, {3, 15, 2}}) {
                    Product t{padded(a, s[0], s[2], false), b_turned ? padded(b, s[1], s[2], true) : padded(b, s[2], s[1], false), Tensor(sums_of(a), {1, s[0], s[1]})};
                    fill(t.a, 1), fill(t.b, 2);
                    check_each(t, s[1] == 1 ? 0 : 1);
                }
                for (const Index& s : {Index{1, 144, 48}, {8, 64, 208}, {15, 16, 16}}) {
                    Product t = product_of(a, b, s, {ROWS, b_turned ? COLUMNS : ROWS, ROWS}, 5);
                    check_each(t, 1);
                }
            }
    for (const Dtype type : {Dtype::e4m3, Dtype::e5m2})
        for (const bool is_turned : {false, true}) {
            Product t{Tensor(type, {1, 1, 1}), Tensor(type, {1, 1, 256}, is_turned ? COLUMNS : ROWS), Tensor(Dtype::f32, {1, 1, 256})};
            for (int64_t i = 0; i < 256; i++) *t.b.at({0, 0, i}) = char(i);
            set_real(type, t.a.at({0, 0, 0}), 1);
            check_each(t, 1);
        }
}

TEST_CASE("portable products: one row by each kernel for one, in every cut, of operands that lie near, turned, gapped, reversed and where 16 bytes do not begin")
{
    const Lie lies[] = {ROWS, COLUMNS, {{}, 2, 2}, {{0, 2, 1}, 6, 3}, {{0, 2, 1}, 4, 1}};
    for (const Pair& pair : {PAIRS[2], PAIRS[3], PAIRS[4]})
        for (const Lie& a : {lies[0], lies[2]})
            for (const Lie& b : lies)
                for (const Index& s : {Index{1, 37, 701}, {1, 64, 1600}, {1, 130, 33}, {1, 1, 3000}}) {
                    Product t = product_of(pair.a, pair.b, s, {a, b, ROWS});
                    t.allows_tf32 = pair.allows_tf32;
                    const std::vector<gemm::Way> ways = ways_by(t, "_row");
                    CHECK(ways.size() >= 2);
                    for (const gemm::Way& way : ways) {
                        INFO(ng::name_of(pair.a), " ", s[1], " ", s[2], " ", std::string(mma::kernels()[way.instance].name), " splits ", way.splits);
                        t.way = way;
                        check(Product(t));
                    }
                }
}

TEST_CASE("portable products: fp8 with each other and with f16, every value")
{
    const Dtype all[] = {Dtype::f16, Dtype::e4m3, Dtype::e5m2};
    for (const Dtype a : all)
        for (const Dtype b : all)
            for (const Layout3& lie : TRANSPOSES)
                for (const Index& s : {Index{64, 64, 64}, {33, 40, 24}, {5, 3, 19}}) check(product_of(a, b, s, lie));
    for (const Dtype type : {Dtype::e4m3, Dtype::e5m2, Dtype::f16, Dtype::bf16}) {
        const int64_t n = ng::bytes_of(type) == 1 ? 256 : 65536;
        Product       t{Tensor(type, {1, n, 1}), Tensor(type, {1, 1, 1}), Tensor(Dtype::f32, {1, n, 1})};
        for (int64_t i = 0; i < n; i++) std::memcpy(t.a.at({0, i, 0}), &i, size_t(ng::bytes_of(type)));
        set_real(type, t.b.at({0, 0, 0}), 1);
        check(std::move(t));
    }
}

TEST_CASE("portable products: every mix of floats")
{
    const Dtype all[] = {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::e4m3, Dtype::e5m2};
    for (const Dtype a : all)
        for (const Dtype b : all)
            for (const Layout3& lie : TRANSPOSES)
                for (const Index& s : {Index{33, 40, 24}, {5, 70, 19}, {1, 40, 24}}) {
                    INFO(ng::name_of(a), " ", ng::name_of(b));
                    Product t = product_of(a, b, s, lie, 2);
                    t.c = Tensor(a == Dtype::f64 || b == Dtype::f64 ? Dtype::f64 : Dtype::f32, {2, s[0], s[1]});
                    t.is_fixed = s[0] == 5;
                    check(std::move(t));
                }
}

TEST_CASE("portable products: infinities and NaN go through, f32 by tf32 too")
{
    for (const bool allows_tf32 : {false, true}) {
        Product t = product_of(Dtype::f32, Dtype::f32, {40, 40, 20});
        t.allows_tf32 = allows_tf32;
        write(t.a.at({0, 3, 4}), std::numeric_limits<float>::infinity()), write(t.b.at({0, 4, 5}), 0.0f);
        const uint32_t nan = 0x7fffffff;
        std::memcpy(t.a.at({0, 9, 7}), &nan, 4);
        check(std::move(t));
    }
}

// ---- casts -------------------------------------------------------------------------------------------------------------

TEST_CASE("portable products: sums of integers become every type of float")
{
    for (const Dtype c : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2})
        for (const bool is_turned : {false, true})
            for (const int64_t depth : {24, 1500}) {
                const int64_t m = depth > 100 ? 10 : 37, n = 43, batches = 2;
                Product t = product_of(Dtype::i8, Dtype::u8, {m, n, depth}, {}, batches);
                t.c = Tensor(c, {batches, m, n}, is_turned ? COLUMNS : ROWS);
                t.units = depth > 100 ? 132 : 1;
                t.epilogue.is_cast = 1;
                check(std::move(t));
            }
}

// ---- the rest ----------------------------------------------------------------------------------------------------------

TEST_CASE("portable products: the workspace grows with each extent; what is not theirs is refused")
{
    gemm::Problem p{};
    p.a_type = p.b_type = p.c_type = Dtype::f32;
    uint64_t last[3] = {};
    for (int64_t x = 1; x < 100000; x = x * 3 / 2 + 1) {
        const Index each[3] = {{x, 70, 3000}, {70, x, 3000}, {70, 33, x}};
        for (size_t i = 0; i < 3; i++) {
            p.m = each[i][0], p.n = each[i][1], p.k = each[i][2], p.batches = 2;
            CHECK(mma::workspace(p, false) >= last[i]);
            last[i] = mma::workspace(p, false);
        }
    }
    CHECK(mma::can_run(p, device_of(1), 0));
    const auto refuses = [&](Dtype a, Dtype b, Dtype c) {
        gemm::Problem other = p;
        other.a_type = a, other.b_type = b, other.c_type = c;
        return !mma::can_run(other, device_of(1), 0);
    };
    CHECK(refuses(Dtype::i32, Dtype::i32, Dtype::i32));
    CHECK(refuses(Dtype::f32, Dtype::f16, Dtype::f32));
    CHECK(refuses(Dtype::i8, Dtype::i8, Dtype::f32));
    CHECK(refuses(Dtype::f32, Dtype::f32, Dtype::i32));
    gemm::Problem many = p;
    many.m = many.n = 4, many.k = 5, many.batches = 5000, many.a_batch = many.b_batch = many.c_batch = 100;
    CHECK(mma::can_run(many, device_of(1), 0));
    many.a_row = many.c_row = 25, many.b_batch = 0;              // rows of one product
    CHECK(mma::can_run(many, device_of(1), 0));
    // Tiles of one row, or of one column, are four elements wide; their numbers have 32 bits.
    const auto takes = [&](int64_t m, int64_t n) {
        gemm::Problem long_one = p;
        long_one.m = m, long_one.n = n, long_one.k = long_one.batches = 1;
        long_one.a_row = long_one.a_depth = long_one.b_column = long_one.c_column = 1, long_one.b_depth = long_one.c_row = n;
        return mma::can_run(long_one, device_of(1), 0);
    };
    for (const auto& [few, is_taken, is_not] : {std::tuple<int64_t, int64_t, int64_t>{1, int64_t(1) << 30, int64_t(1) << 31}, {2, int64_t(1) << 32, int64_t(1) << 34}}) {
        CHECK(takes(few, is_taken));
        CHECK(takes(is_taken, few));
        CHECK(!takes(few, is_not));
        CHECK(!takes(is_not, few));
    }
    CHECK(!takes(int64_t(1) << 34, 1));
    CHECK(!mma::can_run(p, {75, 40, {true, true, true, true}}, 0));
    CHECK(!mma::can_run(p, {80, 40, {true, true, true, false}}, 0));
}

TEST_CASE("portable products: the cases above have run every instance")
{
    CHECK(kernels_run().size() == mma::kernels().size());
    for (uint32_t k = 0; k < mma::kernels().size(); k++) {
        INFO(std::string(mma::kernels()[k].name));
        CHECK(kernels_run().contains(k));
    }
}

}  // namespace basic_check
