// Arrays of more than 2^31 elements as operands and results: products, what is fused behind them, element-wise kernels and sums.
#include "tests/contract/face.h"

#include <cstdio>

namespace {

constexpr int64_t  ROWS = 65553, COLUMNS = 40000, FEW = 8;     // 2.6 10^9
constexpr uint64_t NEEDED = uint64_t(40) << 30;                // bytes of a device's memory

// Small and whole, so that sums are exact whatever their order.
double row_part(int64_t i, int64_t) { return double((i * 5 + i / 7) % 3) - 1; }
double column_part(int64_t, int64_t k) { return double((k * 7 + k / 11) % 3) - 1; }
double element(int64_t i, int64_t k) { return row_part(i, 0) + column_part(0, k); }
double weight(int64_t i, int64_t k) { return double((i * 3 + i / 13 + k) % 3) - 1; }

using Element = double (*)(int64_t, int64_t);

struct Vast : Face {
    bool has_room() const
    {
        ng_device_info info{};
        info.size = sizeof info;
        REQUIRE(ng_ctx_info(c, &info) == NG_OK);
        const bool fits = std::string(info.backend) == "cuda" && info.memory_bytes >= NEEDED;
        if (!fits) std::printf("skipped: arrays of more than 2^31 elements want a GPU with %d GB\n", int(NEEDED >> 30));
        return fits;
    }
    ng_expr* operand(ng_dtype t, int64_t rows, int64_t columns, Element of)
    {
        Values v;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t k = 0; k < columns; k++) v.push_back(of(i, k));
        return ng_leaf(s, made(ng_cast(leaf(shape(NG_I8, {rows, columns}), v), t)));
    }
    ng_tensor* wide(ng_dtype t)
    {
        return made(ng_cast(text("x + y", "x,y", {operand(NG_F32, ROWS, 1, row_part), operand(NG_F32, 1, COLUMNS, column_part)}), t));
    }
    // Rows at both ends, and on either side of element 2^31.
    void check_rows(ng_tensor* t, const std::function<double(int64_t i, int64_t k)>& want)
    {
        const int64_t columns = shape_of(t).dims[1], middle = (int64_t(1) << 31) / COLUMNS;
        for (const int64_t row : {int64_t(0), middle - 1, middle, middle + 1, ROWS - 1}) {
            Values v;
            for (int64_t k = 0; k < columns; k++) v.push_back(want(row, k));
            INFO("row ", row);
            CHECK(differs(get(part(t, 0, row, row + 1)), v) == "");
        }
    }
};

}  // namespace

TEST_CASE("N7: results of products with more than 2^31 elements, of floats and of integers")
{
    constexpr int64_t DEPTH = 24;
    const auto want = [](int64_t i, int64_t k) {
        double sum = 0;
        for (int64_t d = 0; d < DEPTH; d++) sum += element(i, d) * weight(d, k);
        return sum;
    };
    for (const ng_dtype t : {NG_F16, NG_I8}) {
        Vast f;
        if (!f.has_room()) return;
        CAPTURE(t);
        const Exprs both = {f.operand(t, ROWS, DEPTH, element), f.operand(t, DEPTH, COLUMNS, weight)};
        f.check_rows(f.made(f.text(t == NG_F16 ? "f16(x @ y)" : "x @ y", "x,y", both)), want);
        if (t == NG_F16) f.check_rows(f.made(f.text("f16(relu(x @ y + 1))", "x,y", both)), [&](int64_t i, int64_t k) { return std::max(want(i, k) + 1, 0.0); });
    }
}

TEST_CASE("N7: operands of products with more than 2^31 elements, rows and columns of them")
{
    Vast f;
    if (!f.has_room()) return;
    ng_tensor* const x = f.wide(NG_F16);
    f.check_rows(x, element);
    const auto columns = [](Element of) {
        Values sums(FEW, 0);
        for (int64_t k = 0; k < COLUMNS; k++)
            for (int64_t n = 0; n < FEW; n++) sums[size_t(n)] += of(0, k) * weight(k, n);
        return sums;
    };
    const Values by_one = columns([](int64_t, int64_t) { return 1.0; }), by_column = columns(column_part);
    f.check_rows(f.made(f.text("f32(x @ y)", "x,y", {ng_leaf(f.s, x), f.operand(NG_F16, COLUMNS, FEW, weight)})),
                 [&](int64_t i, int64_t n) { return row_part(i, 0) * by_one[size_t(n)] + by_column[size_t(n)]; });
    constexpr int32_t TURNED[] = {1, 0};
    double ones = 0, rows = 0;
    for (int64_t i = 0; i < ROWS; i++) ones += weight(i, 0), rows += row_part(i, 0) * weight(i, 0);
    const Values sums = f.eval(f.text("f32(x @ y)", "x,y", {ng_permute(ng_leaf(f.s, x), TURNED, 2), f.operand(NG_F16, ROWS, 1, weight)}));
    Values all;
    for (int64_t k = 0; k < COLUMNS; k++) all.push_back(rows + column_part(0, k) * ones);
    CHECK(differs(sums, all) == "");
}

TEST_CASE("P1: element-wise kernels and sums of more than 2^31 elements")
{
    Vast f;
    if (!f.has_room()) return;
    ng_expr* const x = ng_leaf(f.s, f.wide(NG_F16));
    f.check_rows(f.made(f.text("x * 3 + 1", "x", {x})), [](int64_t i, int64_t k) { return element(i, k) * 3 + 1; });
    double columns = 0, rows = 0;
    for (int64_t k = 0; k < COLUMNS; k++) columns += column_part(0, k);
    for (int64_t i = 0; i < ROWS; i++) rows += row_part(i, 0);
    f.check_rows(f.made(f.text("sum(x, 1)", "x", {x})), [&](int64_t i, int64_t) { return row_part(i, 0) * double(COLUMNS) + columns; });
    Values all;
    for (int64_t k = 0; k < COLUMNS; k++) all.push_back(rows + column_part(0, k) * double(ROWS));
    CHECK(differs(f.eval(f.text("sum(x, 0)", "x", {x})), all) == "");
}
