// What the fuzzers have found, each in the fewest calls that show it.
#include "tests/contract/face.h"

#include <cstddef>
#include <memory>

namespace {

// A struct in memory of no more than its size, so that reading on is seen.
template <class T>
std::unique_ptr<unsigned char[]> cut(const T& full, uint32_t size)
{
    auto memory = std::make_unique<unsigned char[]>(size);
    std::memcpy(memory.get(), &full, size);
    std::memcpy(memory.get(), &size, sizeof size);
    return memory;
}

}  // namespace

TEST_CASE("sizes: a struct that ends within a pointer lacks it, and half a pointer is not followed")
{
    ng_ctx_desc d = description();
    d.backend = "no such backend";
    for (uint32_t size = offsetof(ng_ctx_desc, backend) + 1; size < offsetof(ng_ctx_desc, device); size++) {
        ng_ctx* c = nullptr;
        const auto memory = cut(d, size);
        REQUIRE(ng_ctx_create(reinterpret_cast<const ng_ctx_desc*>(memory.get()), &c, nullptr) == NG_OK);
        CHECK(ng_ctx_close(c, UINT64_MAX, nullptr) == NG_OK);
        ng_ctx_release(c);
    }
    Face f;
    ng_expr* e = ng_const(f.s, NG_F32, 1);
    ng_compile_desc plan{};
    plan.workspace_of = reinterpret_cast<ng_prog*>(uintptr_t(0xdeadbeef));
    for (uint32_t size = offsetof(ng_compile_desc, workspace_of); size < sizeof plan; size++) {
        ng_prog* p = nullptr;
        const auto memory = cut(plan, size);
        REQUIRE(ng_compile(f.c, reinterpret_cast<const ng_compile_desc*>(memory.get()), &e, 1, &p, &f.error) == NG_OK);
        ng_prog_release(p);
    }
}

TEST_CASE("eval: a length that is known when run and that no param shows is refused, also where a reduction hides it")
{
    Face f;
    const ng_shape open = shape(NG_F32, {-1, 4});
    ng_expr* x = ng_iota(f.s, &open, 1);
    for (ng_expr* e : {x, ng_sum(x, NG_ALL, 0), ng_max(ng_exp(x), NG_ALL, 0)}) {
        CHECK(f.fault(e) == NG_E_INVALID);
        CHECK(f.says("ng_compile"));
    }
}

TEST_CASE("workspace: one that is also an argument, an output or a leaf, or is no plain memory, is refused")
{
    Face f;
    const ng_shape d = shape(NG_F32, {64, 64});
    ng_tensor* leaf = f.tensor(d, Values(64 * 64, 1));
    ng_expr* x = f.param(0, d);
    // two products, so that there is something to keep between them
    ng_prog* p = f.compile({ng_matmul(ng_matmul(x, ng_leaf(f.s, leaf), nullptr), x, nullptr)});
    const auto bytes = int64_t(f.info(p).workspace_bytes);
    REQUIRE(bytes > 0);
    const int64_t rows = bytes / 256 + 64;
    const ng_shape large = shape(NG_F32, {rows, 64});
    ng_tensor *work = f.tensor(large, Values(size_t(rows * 64), 1)), *in = f.tensor(d, Values(64 * 64, 1)), *out = f.make(d);
    Call call;
    call.args = {in}, call.out = {out}, call.workspace = work;
    REQUIRE(f.run(p, call) == NG_OK);
    CHECK(f.get(out)[5] == 64 * 64);
    for (const uint32_t flags : {0u, uint32_t(NG_RUN_DISTINCT)}) {
        call.flags = flags;
        call.args = {f.part(work, 0, 0, 64)}, call.out = {out};
        CHECK(f.run(p, call) == NG_E_INVALID);
        CHECK(f.says("workspace"));
        call.args = {in}, call.out = {f.part(work, 0, 64, 128)};
        CHECK(f.run(p, call) == NG_E_INVALID);
        CHECK(f.says("workspace"));
    }
    call.out = {out}, call.flags = 0;
    std::vector<double> memory(size_t(bytes) / 8 + 8, 0);
    void* aligned = memory.data();
    aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(aligned) + 63) / 64 * 64);
    // As many elements as are needed, all of them one; every second of them; memory that may not be written.
    for (const ng_shape& odd : {shape(NG_U8, {bytes}, {0}), shape(NG_U8, {bytes / 64, 64}, {1, 0}), shape(NG_U8, {bytes}, {}, NG_READONLY)}) {
        call.workspace = f.wrap(odd, aligned, uint64_t(bytes));
        CHECK(f.run(p, call) == NG_E_INVALID);
        CHECK(f.says("workspace"));
    }
    // A leaf of the program, large enough.
    ng_tensor* both = f.tensor(large, Values(size_t(rows * 64), 1));
    ng_prog* q = f.compile({ng_matmul(ng_matmul(x, ng_slice(ng_leaf(f.s, both), 0, 0, 64, 1), nullptr), x, nullptr)});
    call.workspace = both;
    CHECK(f.run(q, call) == NG_E_INVALID);
    CHECK(f.says("leaf"));
}

TEST_CASE("nothing: tensors without elements, whatever their strides, are computed with and scanned")
{
    Face f;
    const int64_t far = int64_t(1) << 60;
    // Behind an axis of no elements strides may be any numbers.
    for (const Dims& strides : {Dims{1, far, -far}, Dims{5, INT64_MAX, INT64_MIN}, Dims{-1, -far, 3}})
        for (const Dims& dims : {Dims{4, 0, 3}, Dims{0, 4, 5}, Dims{0, 0, 2}}) {
            ng_expr* x = ng_leaf(f.s, f.wrap(shape(NG_F32, dims, strides), nullptr, 0));
            CHECK(f.eval(ng_add(x, x)).empty());
            CHECK(f.eval(ng_exp(x)).empty());
            for (const ng_axes axes : {NG_AXIS_0, NG_AXIS_1, NG_AXIS_2}) {
                const Values sums = f.eval(ng_sum(x, ng_axes(axes), 0));
                CHECK(std::count(sums.begin(), sums.end(), 0.) == int64_t(sums.size()));
            }
            for (int32_t axis = 0; axis < 3; axis++) {
                CHECK(f.eval(ng_scan(x, axis, NG_FOLD_SUM, 0)).empty());
                CHECK(f.eval(ng_argsort(x, axis, 0)).empty());
            }
            if (dims[0]) continue;
            ng_expr* nowhere = f.leaf(shape(NG_I64, {3}), {0, 0, 0});
            CHECK(differs(f.eval(ng_segment(x, nowhere, NG_FOLD_SUM)), Values(size_t(2 * dims[1] * dims[2]), 0)) == "");
        }
}

TEST_CASE("reshape: what is computed is seen under dims that share no boundary with its own")
{
    Face f;
    ng_expr* x = f.leaf(shape(NG_F32, {2, 3, 2}), counted(12));
    Values twice = counted(12, 0, 2);
    for (const Dims& dims : {Dims{3, 4}, Dims{4, 3}, Dims{1, 1, 4, 3}, Dims{12}, Dims{6, 2}, Dims{3, 2, 2}}) {
        CHECK(differs(f.eval(ng_reshape(ng_add(x, x), dims.data(), uint32_t(dims.size()))), twice) == "");
        ng_expr* again = ng_mul(ng_reshape(ng_add(x, x), dims.data(), uint32_t(dims.size())), ng_const(f.s, 0, 1));
        CHECK(differs(f.eval(again), twice) == "");
    }
}

TEST_CASE("products: sums of lines that begin at any element, and end there")
{
    Face f;
    for (const ng_dtype t : {NG_F32, NG_F64})
        for (const int64_t start : {0, 1, 3})
            for (const int64_t columns : {2, 5, 17, 67}) {
                // x [5, columns] from `start` on in rows that are longer; so the result.
                const Values far = counted(size_t(5 * (columns + 4))), near = counted(15, -7);
                ng_tensor *x = f.part(f.tensor(shape(t, {5, columns + 4}), far), 1, start, start + columns), *y = f.part(f.make(shape(t, {3, columns + 4})), 1, start, start + columns);
                Values want;
                for (int64_t i = 0; i < 3; i++)
                    for (int64_t j = 0; j < columns; j++) {
                        want.push_back(0);
                        for (int64_t k = 0; k < 5; k++) want.back() += near[size_t(i * 5 + k)] * far[size_t(k * (columns + 4) + start + j)];
                    }
                REQUIRE(f.eval_into({ng_matmul(f.leaf(shape(t, {3, 5}), near), ng_leaf(f.s, x), nullptr)}, {y}) == NG_OK);
                CHECK(differs(f.get(y), want) == "");
                ng_pool_desc norm{};
                norm.size = sizeof norm, norm.kind = NG_POOL_L2, norm.window[0] = 5, norm.window[1] = 1, norm.stride[0] = norm.stride[1] = 1;
                Values lengths;
                for (int64_t j = 0; j < columns; j++) {
                    double sum = 0;
                    for (int64_t k = 0; k < 5; k++) sum += far[size_t(k * (columns + 4) + start + j)] * far[size_t(k * (columns + 4) + start + j)];
                    lengths.push_back(std::sqrt(sum));
                }
                const Dims image = {1, 1, 5, columns};
                CHECK(differs(f.eval(ng_pool(ng_leaf(f.s, f.view(ng_reshape(ng_leaf(f.s, x), image.data(), 4))), &norm)), lengths, 0, 1e-6) == "");
            }
}

TEST_CASE("extents: as many elements as numbers can count, or none of as many, are planned for")
{
    Face f;
    constexpr int64_t MOST = INT64_MAX;
    for (const Dims& dims : {Dims{MOST}, Dims{MOST / 3, 3}, Dims{3, MOST / 3}, Dims{MOST / 15, 5, 3}, Dims{0, MOST}, Dims{MOST, 0}, Dims{MOST, 0, MOST}}) {
        const ng_shape d = shape(NG_F32, dims);
        ng_expr* const x = ng_iota(f.s, &d, int32_t(dims.size()) - 1);
        for (ng_expr* e : {ng_sum(x, NG_ALL, 0), ng_any(ng_less(x, ng_exp(x)), NG_ALL, 0), ng_var(ng_mul(x, x), NG_ALL, 0)}) {
            ng_prog* p = nullptr;
            CHECK_MESSAGE(ng_compile(f.c, nullptr, &e, 1, &p, &f.error) == NG_OK, f.said());
            ng_prog_release(p);
        }
    }
}

TEST_CASE("scalars: they lie at any byte of memory at any address, of every type")
{
    Face f(0, 1);
    unsigned char memory[64] = {};
    for (const ng_dtype t : {NG_F16, NG_F32, NG_F64, NG_I16, NG_I32, NG_U64}) {
        const uint32_t offset = 3;
        ng_expr* const twice = ng_add(ng_scalar(f.s, t, offset), ng_scalar(f.s, t, offset));
        ng_prog* const p = f.compile({ng_cast(twice, NG_F64)});
        ng_tensor* const out = f.make(shape(NG_F64, {}));
        for (size_t at = 0; at < 4; at++) {
            std::memset(memory, 0, sizeof memory);
            const double   five = 5;
            const float    five_f32 = 5;
            const uint16_t five_f16 = 0x4500;
            const uint64_t five_u64 = 5;
            const void* const from = t == NG_F64 ? static_cast<const void*>(&five) : t == NG_F32 ? static_cast<const void*>(&five_f32) : t == NG_F16 ? static_cast<const void*>(&five_f16) : &five_u64;
            std::memcpy(memory + at + offset, from, t == NG_F64 || t == NG_U64 ? 8 : t == NG_F32 || t == NG_I32 ? 4 : 2);
            REQUIRE_MESSAGE(f.run(p, {.out = {out}, .scalars = memory + at, .scalar_bytes = 32}) == NG_OK, f.said());
            CHECK(differs(f.get(out), {10}) == "");
        }
    }
}
