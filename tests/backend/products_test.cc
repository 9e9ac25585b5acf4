// Matrix products on the CPU against plain loops: every type, any strides, broadcast batches, edges of tiles, any workers.
#include "tests/backend/product_check.h"

using namespace product_check;
using namespace ng::cpu;

namespace {

struct Case {
    Tensor a, b, c;
};

int64_t batch_of(const Tensor& c)
{
    int64_t n = 1;
    for (size_t i = 0; i + 2 < c.dims.size(); i++) n *= c.dims[i];
    return n;
}

void run(Case& t, const ProductTable& table, uint32_t workers, const Epilogue* epilogue = nullptr)
{
    const size_t        r = t.c.dims.size();
    const MatmulExtents extents = {batch_of(t.c), t.c.dims[r - 2], t.c.dims[r - 1], t.a.dims[r - 1], t.a.type, t.b.type, t.c.type};
    Threads             threads{workers};
    Workspace           workspace(matmul_workspace(table, extents, workers));
    matmul(t.a.operand(), t.b.operand(), t.c.operand(), int(r), epilogue, {table, workspace.data(), threads.parallel()});
    CHECK(workspace.is_intact());
}

// Where x has the row and column of the batch that c has at i.
const char* element(Tensor& x, Index i, int64_t row, int64_t column)
{
    const size_t r = i.size();
    i[r - 2] = row, i[r - 1] = column;
    for (size_t a = 0; a + 2 < r; a++)
        if (x.dims[a] == 1) i[a] = 0;
    return x.at(i);
}

// The sum, and what the sum of absolute values is.
void reference(Case& t, const Index& i, double& sum, double& size)
{
    const size_t  r = i.size();
    const char *  a = element(t.a, i, i[r - 2], 0), *b = element(t.b, i, 0, i[r - 1]);
    const int64_t a_step = t.a.strides[r - 1] * ng::bytes_of(t.a.type), b_step = t.b.strides[r - 2] * ng::bytes_of(t.b.type);
    sum = size = 0;
    for (int64_t p = 0; p < t.a.dims[r - 1]; p++) {
        const double v = get(t.a.type, a + p * a_step) * get(t.b.type, b + p * b_step);
        sum += v, size += std::fabs(v);
    }
}

bool is_exact(Case& t)
{
    bool same = true;
    t.c.each([&](const Index& i) {
        double sum, size;
        reference(t, i, sum, size);
        same &= t.c.get(i) == sum;
    });
    return same;
}

Case plain(Dtype a, Dtype b, Dtype c, int64_t m, int64_t n, int64_t k)
{
    return {Tensor(a, {m, k}).fill(1), Tensor(b, {k, n}).fill(2), Tensor(c, {m, n})};
}

template <class Body>
void each_table(Body&& body)
{
    for (const char* level : LEVELS)
        if (const ProductTable* table = product_table(level)) {
            INFO(level);
            body(*table);
        }
}

}  // namespace

TEST_CASE("products: the best table is there, an unknown level is not")
{
    CHECK(product_table(nullptr) != nullptr);
    CHECK(product_table("x86-64-v2") != nullptr);
    CHECK(product_table("z80") == nullptr);
}

TEST_CASE("matmul: sizes of 0, 1, primes and tiles +- 1 give exact sums")
{
    const int64_t sizes[] = {0, 1, 2, 5, 6, 7, 13, 14, 15, 17, 31, 32, 33, 67};
    each_table([&](const ProductTable& table) {
        for (const int64_t m : sizes)
            for (const int64_t n : sizes)
                for (const int64_t k : {0, 1, 3, 29, 257}) {
                    Case t = plain(Dtype::f32, Dtype::f32, Dtype::f32, m, n, k);
                    run(t, table, 1);
                    INFO(m, " ", n, " ", k);
                    CHECK(is_exact(t));
                }
    });
}

TEST_CASE("matmul: blocks +- 1 in every direction")
{
    each_table([&](const ProductTable& table) {
        for (const Dtype d : {Dtype::f32, Dtype::f64, Dtype::i8, Dtype::i32, Dtype::u64})
            for (const Index& s : {Index{225, 33, 385}, {449, 65, 13}, {9, 1025, 400}, {229, 1030, 7}, {15, 40, 5000}, {230, 31, 513}}) {
                Case t = plain(d, d, d == Dtype::i8 ? Dtype::i32 : d, s[0], s[1], s[2]);
                run(t, table, 1);
                INFO(ng::name_of(d), " ", s[0], " ", s[1], " ", s[2]);
                CHECK(is_exact(t));
            }
    });
}

TEST_CASE("matmul: every mix of types gives its accumulator")
{
    const auto result = [](Dtype a, Dtype b) {
        const auto byte = [](Dtype t) { return t == Dtype::i8 || t == Dtype::u8; };
        return byte(a) && byte(b) ? Dtype::i32 : ng::promote(a, b, "test");
    };
    each_table([&](const ProductTable& table) {
        for (int a = 0; a < ng::DTYPES; a++)
            for (int b = 0; b < ng::DTYPES; b++) {
                const Dtype x = Dtype(a), y = Dtype(b);
                if ((x == Dtype::u64 && ng::is_signed(y) && !ng::is_float(y)) || (y == Dtype::u64 && ng::is_signed(x) && !ng::is_float(x))) continue;
                const Dtype c = result(x, y);
                if (c == Dtype::bool_ || ng::bytes_of(c) < 2) continue;
                for (const Index& s : {Index{3, 4, 5}, {2, 70, 40}, {23, 37, 41}}) {
                    Case t = plain(x, y, c, s[0], s[1], s[2]);
                    run(t, table, 1);
                    INFO(ng::name_of(x), " ", ng::name_of(y));
                    CHECK(is_exact(t));
                }
            }
    });
}

TEST_CASE("matmul: 8-bit integers at their limits are exact in 32 bits")
{
    each_table([&](const ProductTable& table) {
        for (const Dtype x : {Dtype::i8, Dtype::u8})
            for (const Dtype y : {Dtype::i8, Dtype::u8})
                for (const int64_t m : {3, 40}) {
                    Case t = plain(x, y, Dtype::i32, m, 35, 1001);
                    t.a.each([&](const Index& i) { put(x, t.a.at(i), x == Dtype::i8 ? -128 : 255); });
                    t.b.each([&](const Index& i) { put(y, t.b.at(i), y == Dtype::i8 ? (i[1] % 2 ? -128 : 127) : 255); });
                    run(t, table, 1);
                    CHECK(is_exact(t));
                }
    });
}

TEST_CASE("matmul: integers wrap in their own type")
{
    each_table([&](const ProductTable& table) {
        for (const int64_t m : {2, 33}) {
            Case t = plain(Dtype::i16, Dtype::i16, Dtype::i16, m, 34, 9);
            t.a.each([&](const Index& i) { put(Dtype::i16, t.a.at(i), 30000); });
            t.b.each([&](const Index& i) { put(Dtype::i16, t.b.at(i), 7 + double(i[1])); });
            run(t, table, 1);
            t.c.each([&](const Index& i) { REQUIRE(t.c.get(i) == int16_t(30000 * 9 * (7 + i[1]))); });
        }
    });
}

TEST_CASE("matmul: every value of the narrow floats is widened as it is")
{
    each_table([&](const ProductTable& table) {
        for (const Dtype d : {Dtype::f16, Dtype::bf16, Dtype::e4m3, Dtype::e5m2}) {
            const int64_t n = ng::bytes_of(d) == 1 ? 256 : 65536;
            for (const int64_t columns : {1, 40}) {
                Case t = {Tensor(d, {n, 1}), Tensor(Dtype::f32, {1, columns}), Tensor(Dtype::f32, {n, columns})};
                for (int64_t i = 0; i < n; i++) std::memcpy(t.a.at({i, 0}), &i, size_t(ng::bytes_of(d)));
                t.b.each([&](const Index& i) { write(t.b.at(i), 1.0f); });
                run(t, table, 1);
                for (int64_t i = 0; i < n; i++) {
                    const double want = t.a.get({i, 0}), have = t.c.get({i, columns - 1});
                    if (!(want == have || (want != want && have != have))) FAIL(ng::name_of(d), " ", i, ": ", want, " became ", have);
                }
            }
        }
    });
}

TEST_CASE("matmul: transposed, reversed and gapped operands and results")
{
    const Lie lies[] = {{}, {{1, 0}, 0, 1}, {{}, 1, 1}, {{1, 0}, 2, 3}, {{}, 3, 2}};
    each_table([&](const ProductTable& table) {
        for (const Dtype d : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::i8, Dtype::i16})
            for (const Lie& a : lies)
                for (const Lie& b : lies)
                    for (const Lie& c : lies)
                        for (const Index& s : {Index{3, 5, 300}, {1, 140, 19}, {47, 45, 21}}) {
                            const Dtype r = d == Dtype::bf16 ? Dtype::f32 : d == Dtype::i8 ? Dtype::i32 : d;
                            Case        t = {Tensor(d, {s[0], s[2]}, a).fill(3), Tensor(d, {s[2], s[1]}, b).fill(4), Tensor(r, {s[0], s[1]}, c)};
                            run(t, table, 1);
                            CHECK(is_exact(t));
                            int64_t untouched = 0, bytes = ng::bytes_of(r);
                            for (size_t at = 0; at < t.c.memory.size(); at += size_t(bytes))
                                untouched += std::string(t.c.memory.data() + at, size_t(bytes)) == std::string(size_t(bytes), char(0xff));
                            if (ng::is_float(r)) CHECK(untouched == int64_t(t.c.memory.size()) / bytes - t.c.count());
                        }
    });
}

TEST_CASE("matmul: few rows or columns of every shallow depth, whose sums go by lines or by dots")
{
    each_table([&](const ProductTable& table) {
        for (const Dtype d : {Dtype::f32, Dtype::f64, Dtype::e4m3, Dtype::i8})
            for (const int64_t m : {1, 4, 130})
                for (const int64_t n : {1, 3, 9, 129}) {
                    if (std::min(m, n) > 4) continue;
                    for (const int64_t k : {7, 8, 13, 23, 24, 29, 56, 63, 64, 65}) {
                        const Dtype r = d == Dtype::e4m3 ? Dtype::f32 : d == Dtype::i8 ? Dtype::i32 : d;
                        Case        t = {Tensor(d, {m, k}).fill(3), Tensor(d, {k, n}, {{1, 0}}).fill(4), Tensor(r, {m, n})};
                        run(t, table, 1);
                        CHECK(is_exact(t));
                    }
                }
    });
}

TEST_CASE("matmul: batches broadcast, lie anywhere, and become one matrix where they can")
{
    each_table([&](const ProductTable& table) {
        for (const Index& a : {Index{1, 1}, {2, 3}, {2, 1}, {1, 3}})
            for (const Index& b : {Index{1, 1}, {2, 3}, {2, 1}, {1, 3}})
                for (const Index& s : {Index{4, 8, 4}, {1, 33, 9}, {19, 40, 35}})
                    for (const Lie& lie : {Lie{}, Lie{{2, 0, 3, 1}, 5, 1}}) {
                        Case t = {Tensor(Dtype::f32, {a[0], a[1], s[0], s[2]}, lie).fill(5), Tensor(Dtype::f32, {b[0], b[1], s[2], s[1]}).fill(6),
                                  Tensor(Dtype::f32, {2, 3, s[0], s[1]}, lie)};
                        run(t, table, 3);
                        CHECK(is_exact(t));
                    }
    });
}

TEST_CASE("matmul: rounding stays within k eps |a| |b|, and the number of workers changes no bit")
{
    each_table([&](const ProductTable& table) {
        for (const Dtype d : {Dtype::f32, Dtype::f64, Dtype::bf16})
            for (const Index& s : {Index{300, 310, 500}, {3, 2000, 1000}, {1500, 2, 777}, {64, 70, 9001}}) {
                const Dtype c = d == Dtype::bf16 ? Dtype::f32 : d;
                Case        t = {Tensor(d, {s[0], s[2]}).fill_normal(7), Tensor(d, {s[2], s[1]}).fill_normal(8), Tensor(c, {s[0], s[1]})};
                Case u = t;
                run(t, table, 1), run(u, table, 3);
                CHECK(t.c.memory == u.c.memory);
                const double eps = c == Dtype::f32 ? 0x1p-24 : 0x1p-53;
                bool         good = true;
                for (int64_t n = 0; n < 999; n++) {
                    const Index i = {n * 31 % s[0], n * 17 % s[1]};
                    double      sum, size;
                    reference(t, i, sum, size);
                    good &= std::fabs(t.c.get(i) - sum) <= double(s[2] + 1) * (eps + 0x1p-53) * size;
                }
                CHECK(good);
            }
    });
}

TEST_CASE("matmul: denormals of bf16 count, as operands, as products and as sums")
{
    const auto write_brain = [](Tensor& x, const Index& i, double v) {
        uint32_t bits;
        write(&bits, float(v));
        write(x.at(i), uint16_t(bits >> 16));
    };
    // Each row of a is zeros but for one or two numbers, so that what is asked for is exact in f32.
    const auto check = [&](const ProductTable& table, double x, double y, double beside_x, double beside_y) {
        INFO(x, " ", y, " ", beside_x, " ", beside_y);
        Case t = {Tensor(Dtype::bf16, {47, 50}), Tensor(Dtype::bf16, {50, 45}), Tensor(Dtype::f32, {47, 45})};
        t.a.each([&](const Index& i) { write_brain(t.a, i, i[1] == i[0] / 2 * 2 ? x : i[1] == i[0] / 2 * 2 + 1 ? beside_x : 0); });
        t.b.each([&](const Index& i) { write_brain(t.b, i, i[0] % 2 ? beside_y : y); });
        run(t, table, 1);
        CHECK(t.c.get({0, 0}) != 0);
        CHECK(is_exact(t));
    };
    each_table([&](const ProductTable& table) {
        for (const double least : {0x1p-133, 0x1p-130, 0x1.8p-127, 0x1p-126}) {
            check(table, least, 1, 0, 1), check(table, 1, -least, 0, 1);
            check(table, least, 0x1p100, 0, 1), check(table, 0x1p127, least, 0, 0);
        }
        check(table, 0x1p-70, 0x1p-70, 0, 0), check(table, 0x1p-1, 0x1p-126, 0, 0), check(table, 0x1p-57, -0x1.8p-90, 0, 1);
        check(table, 1, 0x1.02p-126, -1, 0x1p-126), check(table, 0x1p-20, 0x1.02p-106, -0x1p-20, 0x1p-106);
        check(table, 0x1.02p-60, 0x1.02p-60, -0x1.04p-60, 0x1p-60);
        check(table, 0x1.02p-56, 0x1.02p-56, -0x1.04p-56, 0x1p-56);
    });
}

TEST_CASE("matmul: NaN and infinity pass, beside zeros too")
{
    each_table([&](const ProductTable& table) {
        for (const int64_t m : {2, 40}) {
            Case t = plain(Dtype::f32, Dtype::f32, Dtype::f32, m, 40, 40);
            write(t.a.at({1, 3}), std::numeric_limits<float>::infinity());
            for (int64_t j = 0; j < 40; j++) write(t.b.at({3, j}), 0.0f);
            run(t, table, 1);
            for (int64_t j = 0; j < 40; j++) CHECK(std::isnan(t.c.get({1, j})));
            CHECK(!std::isnan(t.c.get({0, 0})));
        }
        Case t = plain(Dtype::bf16, Dtype::bf16, Dtype::f32, 40, 40, 40);
        write(t.a.at({1, 3}), uint16_t(0x7f80)), write(t.b.at({7, 2}), uint16_t(0x7fc0));
        for (int64_t j = 0; j < 40; j++) put(Dtype::bf16, t.b.at({3, j}), j % 2 ? 0 : 2);
        run(t, table, 1);
        for (int64_t j = 0; j < 40; j++) CHECK((j == 2 || j % 2 ? std::isnan(t.c.get({1, j})) : std::isinf(t.c.get({1, j}))));
        for (int64_t i = 0; i < 40; i++) CHECK(std::isnan(t.c.get({i, 2})));
        CHECK(std::isfinite(t.c.get({0, 0})));
    });
}

TEST_CASE("matmul: the epilogue sees every element once, finished")
{
    each_table([&](const ProductTable& table) {
        for (const Index& s : {Index{4, 8, 4}, {1, 500, 9}, {150, 200, 400}, {60, 3000, 300}}) {
            Case t = {Tensor(Dtype::f32, {3, 1, s[0], s[2]}).fill(9), Tensor(Dtype::f32, {1, 2, s[2], s[1]}).fill(10),
                      Tensor(Dtype::f32, {3, 2, s[0], s[1]})};
            Listener       seen(t.c);
            const Epilogue epilogue = seen.epilogue();
            run(t, table, 3, &epilogue);
            CHECK(seen.has_each_once());
        }
    });
}

TEST_CASE("matmul: the epilogue hears of many small products at once")
{
    each_table([&](const ProductTable& table) {
        for (const uint32_t workers : {1u, 3u})
            for (const Index& s : {Index{3, 5, 4}, {1, 7, 64}, {33, 2, 3}, {9, 9, 200}}) {
                Case t = {Tensor(Dtype::f32, {7, 1, 57, s[0], s[2]}).fill(1), Tensor(Dtype::f32, {1, 3, 57, s[2], s[1]}, {{0, 2, 1, 4, 3}}).fill(2),
                          Tensor(Dtype::f32, {7, 3, 57, s[0], s[1]}, {{4, 1, 0, 2, 3}})};
                Listener       seen(t.c);
                const Epilogue epilogue = seen.epilogue();
                run(t, table, workers, &epilogue);
                CHECK(seen.has_each_once());
                CHECK(seen.boxes <= 100);                  // of 1197 products
            }
    });
}

TEST_CASE("matmul: the workspace grows with every extent")
{
    const ProductTable& table = *product_table(nullptr);
    const int64_t       sizes[] = {0, 1, 14, 15, 33, 224, 225, 400, 1025, 5000};
    for (const Dtype d : {Dtype::f32, Dtype::i8})
        for (const int64_t m : sizes)
            for (const int64_t n : sizes)
                for (size_t k = 1; k < std::size(sizes); k++) {
                    const Dtype c = d == Dtype::i8 ? Dtype::i32 : d;
                    REQUIRE(matmul_workspace(table, {1, m, n, sizes[k - 1], d, d, c}, 2) <= matmul_workspace(table, {1, m, n, sizes[k], d, d, c}, 2));
                    REQUIRE(matmul_workspace(table, {1, m, sizes[k - 1], n, d, d, c}, 2) <= matmul_workspace(table, {1, m, sizes[k], n, d, d, c}, 2));
                    REQUIRE(matmul_workspace(table, {1, sizes[k - 1], m, n, d, d, c}, 2) <= matmul_workspace(table, {1, sizes[k], m, n, d, d, c}, 2));
                }
}
