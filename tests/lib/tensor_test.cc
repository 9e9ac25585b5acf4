// Tensors through ng.h: shapes checked, elements where strides say, numbers rounded, loans ended.
#include "lib/tensor.h"
#include "tests/lib/world.h"

#include <climits>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

using ng::Pin;
using ng::Tensor;

namespace {

ng_tensor* wrap(const World& w, const ng_shape& d, void* data, uint64_t bytes)
{
    ng_tensor* t = nullptr;
    REQUIRE(ng_tensor_wrap(w.c, &d, data, bytes, nullptr, nullptr, &t, &error) == NG_OK);
    return t;
}
ng_tensor* view(ng_tensor* t, int64_t offset, const ng_shape& d)
{
    const Pin<Tensor> base(t);
    return ng::to_handle<ng_tensor>(ng::make_handle(base->view(offset, ng::form_of(&d, "test"))));
}
ng_status refused(const World& w, const ng_shape& d)
{
    ng_tensor* t = nullptr;
    error = {};
    const ng_status s = ng_tensor_create(w.c, &d, &t, &error);
    CHECK(!t);
    CHECK(error.status == s);
    return s;
}
}  // namespace

TEST_CASE("create: shapes that are none are refused")
{
    const World w;
    CHECK(refused(w, shape(NG_F32, {-1})) == NG_E_SHAPE);
    CHECK(refused(w, shape(0x12345, {1})) == NG_E_DTYPE);
    CHECK(refused(w, shape(NG_F32, {1}, {}, NG_ANY)) == NG_E_INVALID);
    ng_shape d = shape(NG_F32, {1});
    d.ndim = 33;
    CHECK(refused(w, d) == NG_E_LIMIT);
    d.ndim = -1;
    CHECK(refused(w, d) == NG_E_LIMIT);
    for (const uint32_t size : {4, 8, 12, 16, 271}) {      // ends before flags, dims or strides
        d = shape(NG_F32, {1}), d.size = size;
        CHECK(refused(w, d) == NG_E_INVALID);
    }
    d = shape(NG_F32, {2}, {3}), d.size = 272;
    CHECK(refused(w, d) == NG_E_INVALID);
    CHECK(refused(w, shape(NG_F64, {INT64_MAX / 4, 3})) == NG_E_LIMIT);
    CHECK(refused(w, shape(NG_F64, {2}, {INT64_MAX / 4})) == NG_E_LIMIT);
    CHECK(refused(w, shape(NG_F64, {2, 2}, {INT64_MAX / 10, INT64_MIN / 10})) == NG_E_LIMIT);
    CHECK(refused(w, shape(NG_F64, {2}, {INT64_MIN})) == NG_E_LIMIT);
    CHECK(refused(w, shape(NG_U8, {INT64_MAX / 2})) == NG_E_DEVMEM);
    ng_tensor* t = nullptr;
    d = shape(NG_F32, {1});
    CHECK(ng_tensor_create(w.c, nullptr, &t, &error) == NG_E_INVALID);
    CHECK(ng_tensor_create(w.c, &d, nullptr, &error) == NG_E_INVALID);
    CHECK(!t);
}

TEST_CASE("create: scalars, nothing, 32 axes, strides of any sign; the shape is told")
{
    const World w;
    const ng_shape all[] = {shape(NG_F32, {}), shape(NG_F64, {0, 5}), shape(NG_I8, std::vector<int64_t>(32, 1)), shape(NG_F16, {3, 4}, {-4, 1}),
                            shape(NG_U64, {3, 4}, {1, 3}, NG_HOST), shape(NG_F32, {2, 3}, {-10, -3})};
    for (const ng_shape& d : all) {
        ng_tensor* t = tensor(w.c, d);
        ng_shape got{};
        got.size = sizeof got;
        REQUIRE(ng_tensor_shape(t, &got) == NG_OK);
        CHECK(got.dtype == d.dtype);
        CHECK(got.ndim == d.ndim);
        CHECK(got.flags == (d.flags | NG_STRIDED));
        int64_t stride = 1;
        for (int i = d.ndim; i-- > 0;) {
            CHECK(got.dims[i] == d.dims[i]);
            CHECK(got.strides[i] == (d.flags & NG_STRIDED ? d.strides[i] : stride));
            stride *= d.dims[i] ? d.dims[i] : 1;
        }
        CHECK(ng_tensor_ctx(t) == w.c);
        CHECK(ng_tensor_fill(t, nullptr, 1, &error) == NG_OK);
        CHECK(data_of<char>(t) != nullptr);
        ng_shape few{};
        few.size = 12;      // ends before flags
        CHECK(ng_tensor_shape(t, &few) == NG_OK);
        CHECK(few.flags == 0);
        CHECK(few.ndim == d.ndim);
        CHECK(few.dtype == d.dtype);
        CHECK(ng_tensor_shape(t, nullptr) == NG_E_INVALID);
        ng_tensor_release(t);
    }
}

TEST_CASE("calls: no tensor, no call")
{
    const World w;
    ng_tensor *t = tensor(w.c, shape(NG_F32, {4})), *stale = tensor(w.c, shape(NG_F32, {4}));
    ng_tensor_release(stale);
    int local = 0;
    for (void* h : {static_cast<void*>(nullptr), static_cast<void*>(stale), static_cast<void*>(w.c), static_cast<void*>(&local)}) {
        auto* bad = static_cast<ng_tensor*>(h);
        float f[4];
        void* data = &local;
        ng_shape d = shape(NG_F32, {});
        DLManagedTensorVersioned* m = nullptr;
        CHECK(ng_tensor_shape(bad, &d) == NG_E_INVALID);
        CHECK(ng_tensor_ctx(bad) == nullptr);
        CHECK(ng_tensor_use(bad, nullptr, NG_USE_READ, &data, &error) == NG_E_INVALID);
        CHECK(error.status == NG_E_INVALID);
        CHECK(data == &local);
        CHECK(ng_tensor_put(bad, f, 16, &error) == NG_E_INVALID);
        CHECK(ng_tensor_get(bad, f, 16, &error) == NG_E_INVALID);
        CHECK(ng_tensor_fill(bad, nullptr, 0, &error) == NG_E_INVALID);
        CHECK(ng_tensor_copy(bad, t, nullptr, &error) == NG_E_INVALID);
        CHECK(ng_tensor_copy(t, bad, nullptr, &error) == NG_E_INVALID);
        CHECK(ng_tensor_to_dlpack(bad, nullptr, &m, &error) == NG_E_INVALID);
        CHECK(ng_tensor_close(bad, &error) == NG_E_INVALID);
        ng_tensor_retain(bad);
        ng_tensor_release(bad);
        CHECK(!m);
    }
    float f[4] = {};
    CHECK(ng_tensor_put(t, f, 12, &error) == NG_E_INVALID);
    CHECK(ng_tensor_get(t, f, 20, &error) == NG_E_INVALID);
    CHECK(ng_tensor_put(t, nullptr, 16, &error) == NG_E_INVALID);
    CHECK(ng_tensor_fill(t, &local, 0, &error) == NG_E_INVALID);
    CHECK(ng_tensor_use(t, &local, 0, nullptr, &error) == NG_E_INVALID);
    CHECK(ng_tensor_use(t, nullptr, 64, nullptr, &error) == NG_E_INVALID);
    CHECK(ng_tensor_use(t, nullptr, 0, nullptr, nullptr) == NG_OK);
    CHECK(ng_tensor_to_dlpack(t, nullptr, nullptr, &error) == NG_E_INVALID);
    ng_tensor_release(t);
}

TEST_CASE("put, get: dense, axes nested as the strides nest, whatever their order and sign")
{
    const World w;
    std::mt19937 random(3);
    for (int round = 0; round < 200; round++) {
        const int rank = 1 + int(random() % 4);
        std::vector<int64_t> dims(static_cast<size_t>(rank)), strides(dims.size()), order(dims.size()), packed(dims.size());
        for (auto& n : dims) n = 1 + random() % 5;
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        int64_t stride = 1 + random() % 2, dense = 1;
        for (const int64_t axis : order) {      // the first nests innermost
            const size_t a = size_t(axis);
            strides[a] = random() % 3 ? stride : -stride;
            packed[a] = dense;
            stride *= dims[a] + random() % 2;
            if (dims[a] == 1) stride++;          // strides all differ
            dense *= dims[a];
        }
        ng_tensor* t = tensor(w.c, shape(NG_I32, dims, strides));
        std::vector<int32_t> in(static_cast<size_t>(dense)), out(in.size());
        std::iota(in.begin(), in.end(), 1);
        REQUIRE(ng_tensor_put(t, in.data(), in.size() * 4, &error) == NG_OK);
        const int32_t* data = data_of<int32_t>(t);
        for (int64_t i = 0; i < dense; i++) {   // i in row-major logical order
            int64_t rest = i, at = 0, from = 0;
            for (size_t a = dims.size(); a-- > 0; rest /= dims[a]) at += rest % dims[a] * strides[a], from += rest % dims[a] * packed[a];
            REQUIRE(data[at] == in[size_t(from)]);
        }
        REQUIRE(ng_tensor_get(t, out.data(), out.size() * 4, &error) == NG_OK);
        REQUIRE(in == out);
        ng_tensor_release(t);
    }
}

TEST_CASE("copy: any strides, equal shapes and types")
{
    const World w;
    ng_tensor *rows = tensor(w.c, shape(NG_F32, {3, 4})), *columns = tensor(w.c, shape(NG_F32, {3, 4}, {-1, 3})), *other = tensor(w.c, shape(NG_F64, {3, 4})),
              *longer = tensor(w.c, shape(NG_F32, {4, 3}));
    float in[12], out[12];
    std::iota(in, in + 12, 0.f);
    REQUIRE(ng_tensor_put(rows, in, sizeof in, &error) == NG_OK);
    REQUIRE(ng_tensor_copy(columns, rows, nullptr, &error) == NG_OK);
    REQUIRE(ng_tensor_get(columns, out, sizeof out, &error) == NG_OK);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++) CHECK(out[j * 3 + i] == in[i * 4 + j]);
    CHECK(data_of<float>(columns)[-2] == in[8]);
    CHECK(ng_tensor_copy(rows, other, nullptr, &error) == NG_E_DTYPE);
    CHECK(ng_tensor_copy(rows, longer, nullptr, &error) == NG_E_SHAPE);
    CHECK(ng_tensor_copy(rows, rows, nullptr, &error) == NG_OK);
    const World second;
    ng_tensor* far = tensor(second.c, shape(NG_F32, {3, 4}));
    CHECK(ng_tensor_copy(far, columns, nullptr, &error) == NG_OK);
    REQUIRE(ng_tensor_get(far, out, sizeof out, &error) == NG_OK);
    CHECK(std::memcmp(in, out, sizeof in) == 0);
    for (ng_tensor* t : {rows, columns, other, longer, far}) ng_tensor_release(t);
}

TEST_CASE("copy: overlapping, as if all were read first")
{
    const World w;
    for (const int64_t n : {10, 300000}) {
        std::vector<int32_t> in(static_cast<size_t>(n + 2)), out(static_cast<size_t>(n));
        std::iota(in.begin(), in.end(), 0);
        ng_tensor* base = tensor(w.c, shape(NG_I32, {n + 2}));
        for (const int64_t to : {0, 1, 2}) {
            REQUIRE(ng_tensor_put(base, in.data(), in.size() * 4, &error) == NG_OK);
            ng_tensor *src = view(base, 4, shape(NG_I32, {n})), *dst = view(base, 4 * to, shape(NG_I32, {n}));
            REQUIRE(ng_tensor_copy(dst, src, nullptr, &error) == NG_OK);
            REQUIRE(ng_tensor_get(dst, out.data(), out.size() * 4, &error) == NG_OK);
            CHECK(std::equal(out.begin(), out.end(), in.begin() + 1));
            ng_tensor_release(src), ng_tensor_release(dst);
        }
        REQUIRE(ng_tensor_put(base, in.data(), in.size() * 4, &error) == NG_OK);
        ng_tensor *src = view(base, 0, shape(NG_I32, {n})), *back = view(base, 4 * (n - 1), shape(NG_I32, {n}, {-1}));
        REQUIRE(ng_tensor_copy(back, src, nullptr, &error) == NG_OK);      // reversed onto itself
        REQUIRE(ng_tensor_get(src, out.data(), out.size() * 4, &error) == NG_OK);
        for (int64_t i = 0; i < n; i++) REQUIRE(out[size_t(i)] == n - 1 - i);
        for (ng_tensor* t : {base, src, back}) ng_tensor_release(t);
    }
}

TEST_CASE("copy: large transposed planes, shared among threads")
{
    const World w;
    const int64_t m = 700, n = 900;
    std::vector<double> in(size_t(m * n)), out(in.size());
    std::iota(in.begin(), in.end(), 0.0);
    ng_tensor *rows = tensor(w.c, shape(NG_F64, {m, n})), *columns = tensor(w.c, shape(NG_F64, {m, n}, {1, m}));
    REQUIRE(ng_tensor_put(rows, in.data(), in.size() * 8, &error) == NG_OK);
    REQUIRE(ng_tensor_copy(columns, rows, nullptr, &error) == NG_OK);
    REQUIRE(ng_tensor_get(columns, out.data(), out.size() * 8, &error) == NG_OK);
    bool same = true;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) same = same && out[size_t(j * m + i)] == in[size_t(i * n + j)];
    CHECK(same);
    ng_tensor_release(rows), ng_tensor_release(columns);
}

TEST_CASE("fill: rounded to nearest even, saturated, NaN as the contract says (N2)")
{
    const World w;
    const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
    struct Row { ng_dtype t; double value; uint64_t bits; };
    const Row rows[] = {
        {NG_BOOL, 0, 0}, {NG_BOOL, -3, 1}, {NG_I8, 200, 0x7f}, {NG_I8, -200, 0x80}, {NG_I8, 2.5, 2}, {NG_I8, 3.5, 4}, {NG_I8, nan, 0},
        {NG_U8, -1, 0}, {NG_U8, 255.5, 255}, {NG_U8, 1e9, 255}, {NG_I16, -2.5, 0xfffe}, {NG_U16, 65535.5, 0xffff}, {NG_I32, 1e30, 0x7fffffff},
        {NG_I32, -inf, 0x80000000}, {NG_U32, 1e30, 0xffffffff}, {NG_I64, 9.3e18, 0x7fffffffffffffff}, {NG_I64, -1, ~0ull}, {NG_U64, 1.9e19, ~0ull},
        {NG_U64, 9.3e18, 9300000000000000000u}, {NG_F32, 1, 0x3f800000}, {NG_F32, 1e300, 0x7f800000}, {NG_F64, -2, 0xc000000000000000},
        {NG_F16, 1, 0x3c00}, {NG_F16, 65519.9, 0x7bff}, {NG_F16, 65520, 0x7c00}, {NG_F16, -inf, 0xfc00}, {NG_F16, std::ldexp(1, -24), 1},
        {NG_F16, std::ldexp(1, -25), 0}, {NG_F16, std::ldexp(3, -25), 2}, {NG_F16, 1 + std::ldexp(1, -11), 0x3c00}, {NG_F16, 1 + std::ldexp(3, -11), 0x3c02},
        {NG_F16, nan, 0x7e00}, {NG_BF16, 1, 0x3f80}, {NG_BF16, -3e38, 0xff62}, {NG_BF16, 1 + std::ldexp(1, -8), 0x3f80}, {NG_BF16, inf, 0x7f80},
        {NG_E4M3, 1, 0x38}, {NG_E4M3, 448, 0x7e}, {NG_E4M3, 1e9, 0x7e}, {NG_E4M3, -inf, 0xfe}, {NG_E4M3, nan, 0x7f}, {NG_E4M3, std::ldexp(1, -9), 1},
        {NG_E5M2, 1, 0x3c}, {NG_E5M2, 1e9, 0x7b}, {NG_E5M2, -0.0, 0x80}, {NG_E5M2, nan, 0x7e}, {NG_E5M2, std::ldexp(1, -16), 1},
    };
    for (const Row& row : rows) {
        ng_tensor* t = tensor(w.c, shape(row.t, {3, 5}));
        REQUIRE(ng_tensor_fill(t, nullptr, row.value, &error) == NG_OK);
        const size_t size = (row.t >> 8 & 255) / 8;
        uint8_t out[15 * 8];
        REQUIRE(ng_tensor_get(t, out, 15 * size, &error) == NG_OK);
        CAPTURE(row.t);
        CAPTURE(row.value);
        for (size_t i = 0; i < 15; i += 7) {
            uint64_t bits = 0;
            std::memcpy(&bits, out + i * size, size);
            CHECK(bits == row.bits);
        }
        ng_tensor_release(t);
    }
}

TEST_CASE("wrap: the memory must hold what strides reach, and is written only where they lead")
{
    const World w;
    float data[20];
    for (float& v : data) v = -1;
    ng_tensor* t = nullptr;
    const ng_shape gaps = shape(NG_F32, {2, 3}, {8, -2}), plain = shape(NG_F32, {4});
    CHECK(ng_tensor_wrap(w.c, &gaps, data, 51, nullptr, nullptr, &t, &error) == NG_E_SHAPE);
    CHECK(ng_tensor_wrap(w.c, &plain, nullptr, 16, nullptr, nullptr, &t, &error) == NG_E_INVALID);
    CHECK(ng_tensor_wrap(w.c, &plain, data, 15, nullptr, nullptr, &t, &error) == NG_E_SHAPE);
    CHECK(!t);
    t = wrap(w, gaps, data, 52);
    CHECK(data_of<float>(t) == data + 4);      // element 0: strides go down from it
    const float in[6] = {1, 2, 3, 4, 5, 6};
    REQUIRE(ng_tensor_put(t, in, sizeof in, &error) == NG_OK);
    const float want[20] = {3, -1, 2, -1, 1, -1, -1, -1, 6, -1, 5, -1, 4, -1, -1, -1, -1, -1, -1, -1};
    CHECK(std::memcmp(data, want, sizeof data) == 0);
    ng_tensor_release(t);
    t = wrap(w, shape(NG_F32, {0}), nullptr, 0);
    CHECK(ng_tensor_put(t, nullptr, 0, &error) == NG_OK);
    ng_tensor_release(t);
    char odd[17] = {};
    t = wrap(w, shape(NG_F32, {4}), odd + 1, 16);      // alignment is our business
    REQUIRE(ng_tensor_fill(t, nullptr, 1, &error) == NG_OK);
    CHECK(odd[0] == 0);
    CHECK(odd[4] == 0x3f);
    ng_tensor_release(t);
}

TEST_CASE("readonly: read, never written")
{
    const World w;
    float data[4] = {1, 2, 3, 4}, out[4];
    ng_tensor *t = wrap(w, shape(NG_F32, {4}, {}, NG_READONLY), data, 16), *u = tensor(w.c, shape(NG_F32, {4}));
    CHECK(ng_tensor_put(t, data, 16, &error) == NG_E_INVALID);
    CHECK(ng_tensor_fill(t, nullptr, 0, &error) == NG_E_INVALID);
    CHECK(ng_tensor_copy(t, u, nullptr, &error) == NG_E_INVALID);
    CHECK(ng_tensor_use(t, nullptr, NG_USE_WRITE, nullptr, &error) == NG_E_INVALID);
    CHECK(ng_tensor_use(t, nullptr, NG_USE_READ, nullptr, &error) == NG_OK);
    CHECK(ng_tensor_copy(u, t, nullptr, &error) == NG_OK);
    CHECK(ng_tensor_get(u, out, 16, &error) == NG_OK);
    CHECK(out[3] == 4);
    ng_tensor* v = view(t, 4, shape(NG_F32, {2}));
    CHECK(ng_tensor_fill(v, nullptr, 0, &error) == NG_E_INVALID);
    for (ng_tensor* x : {t, u, v}) ng_tensor_release(x);
}

TEST_CASE("close: the tensor and its views are no more, done has come, others live")
{
    const World w(NG_CTX_POLL);
    static int done;
    done = 0;
    float data[4] = {1, 2, 3, 4}, out[4];
    ng_tensor *t = nullptr, *other = tensor(w.c, shape(NG_F32, {4}));
    const ng_shape d = shape(NG_F32, {4});
    REQUIRE(ng_tensor_wrap(w.c, &d, data, 16, [](void*) { done++; }, nullptr, &t, &error) == NG_OK);
    ng_tensor* v = view(t, 4, shape(NG_F32, {3}));
    ng_tensor_release(t);
    CHECK(ng_ctx_poll(w.c, 0, &error) == NG_OK);
    CHECK(done == 0);                                  // the view still uses it
    CHECK(ng_tensor_get(v, out, 12, &error) == NG_OK);
    CHECK(out[2] == 4);
    ng_tensor* second = view(v, 4, shape(NG_F32, {1}));
    CHECK(ng_tensor_close(v, &error) == NG_OK);
    CHECK(done == 1);
    ng_shape got{};
    got.size = sizeof got;
    void* p = nullptr;
    for (ng_tensor* x : {v, second}) {
        CHECK(ng_tensor_shape(x, &got) == NG_E_INVALID);
        CHECK(ng_tensor_get(x, out, 4, &error) == NG_E_INVALID);
        CHECK(ng_tensor_fill(x, nullptr, 0, &error) == NG_E_INVALID);
        CHECK(ng_tensor_use(x, nullptr, 0, &p, &error) == NG_E_INVALID);
        CHECK(ng_tensor_close(x, &error) == NG_E_INVALID);
    }
    CHECK(ng_tensor_copy(other, v, nullptr, &error) < 0);
    CHECK(ng_tensor_fill(other, nullptr, 0, &error) == NG_OK);
    for (ng_tensor* x : {v, second, other}) ng_tensor_release(x);
    CHECK(ng_ctx_poll(w.c, 0, &error) == NG_OK);
    CHECK(done == 1);
}

TEST_CASE("close: while other threads use the memory")
{
    const World w;
    for (int round = 0; round < 50; round++) {
        ng_tensor* t = tensor(w.c, shape(NG_F32, {4096}));
        CHECK(ng_tensor_fill(t, nullptr, 1, &error) == NG_OK);
        std::atomic<int> odd{0};
        std::vector<std::thread> threads;
        for (int k = 0; k < 3; k++)
            threads.emplace_back([&] {
                std::vector<float> out(4096);
                for (int i = 0; i < 20; i++) {
                    const ng_status s = ng_tensor_get(t, out.data(), 4 * out.size(), nullptr);
                    if (s != NG_OK && s != NG_E_INVALID) odd++;
                }
            });
        CHECK(ng_tensor_close(t, &error) == NG_OK);
        for (std::thread& x : threads) x.join();
        CHECK(odd == 0);
        ng_tensor_release(t);
    }
}

