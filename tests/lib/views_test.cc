// Tensors over one memory: views kept inside it, overlaps told exactly, DLPack across libraries.
#include "lib/tensor.h"
#include "tests/lib/world.h"

#include <cstring>
#include <random>
#include <set>

using ng::Pin;
using ng::Tensor;
using ng::TensorForm;

// As DLPack's header has it.
struct DLManagedTensorVersioned {
    struct { uint32_t major, minor; } version;
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned*);
    uint64_t flags;
    struct {
        void* data;
        struct { int32_t type, id; } device;
        int32_t ndim;
        struct { uint8_t code, bits; uint16_t lanes; } dtype;
        int64_t *shape, *strides;
        uint64_t byte_offset;
    } t;
};

TEST_CASE("overlaps: by the elements touched where strides are equal, by address otherwise")
{
    const World w;
    constexpr int64_t BYTES = 4096;
    ng_tensor* base = tensor(w.c, shape(NG_U8, {BYTES}));
    const Pin<Tensor> all(base);
    std::mt19937 random(5);
    int exact = 0, apart_in_range = 0;
    for (int round = 0; round < 20000; round++) {
        const int rank = int(random() % 4);
        std::vector<int64_t> strides(static_cast<size_t>(rank)), da(strides.size()), db(strides.size());
        int64_t stride = 1 + random() % 3;
        for (size_t i = strides.size(); i-- > 0;) {
            strides[i] = random() % 4 ? stride : -stride;
            da[i] = random() % 5, db[i] = random() % 5;
            if (random() % 8) da[i] += da[i] == 0, db[i] += db[i] == 0;
            stride *= 1 + random() % 5;
        }
        const auto some = [&](const std::vector<int64_t>& dims) {
            const ng_shape d = shape(NG_U16, dims, strides);
            const TensorForm form = ng::form_of(&d, "test");
            return all->view(1024 + 2 * int64_t(random() % 64), form);
        };
        const auto a = some(da), b = some(db);
        const auto touched = [](const Tensor& t) {
            std::set<const char*> at;
            for (int64_t i = 0; i < t.count(); i++) {
                int64_t rest = i, offset = 0;
                for (size_t k = size_t(t.rank); k-- > 0; rest /= t.dims[k]) offset += rest % t.dims[k] * t.strides[k];
                at.insert(t.data + 2 * offset);
            }
            return at;
        };
        const auto x = touched(*a), y = touched(*b);
        bool want = false;
        for (const char* p : x) want = want || y.count(p);
        REQUIRE(ng::overlaps(*a, *b) == want);
        exact += want;
        apart_in_range += !want && !x.empty() && !y.empty() && *x.begin() < *y.rbegin() && *y.begin() < *x.rbegin();
    }
    CHECK(exact > 1000);
    CHECK(apart_in_range > 1000);
    const ng_shape even = shape(NG_U16, {8}, {2}), third = shape(NG_U16, {5}, {3}), bytes = shape(NG_U8, {8});
    const auto form = [](const ng_shape& d) { return ng::form_of(&d, "test"); };
    CHECK_FALSE(ng::overlaps(*all->view(0, form(even)), *all->view(2, form(even))));
    CHECK(ng::overlaps(*all->view(0, form(even)), *all->view(1, form(even))));
    CHECK(ng::overlaps(*all->view(0, form(even)), *all->view(2, form(third))));
    CHECK(ng::overlaps(*all->view(0, form(even)), *all->view(2, form(bytes))));
    CHECK(ng::same_elements(*all->view(4, form(even)), *all->view(4, form(even))));
    CHECK_FALSE(ng::same_elements(*all->view(4, form(even)), *all->view(6, form(even))));
    // ghost planes of a padded box
    const ng_shape plane = shape(NG_U16, {6, 1, 6}, {64, 8, 1});
    CHECK_FALSE(ng::overlaps(*all->view(0, form(plane)), *all->view(16, form(plane))));
    ng_tensor_release(base);
}

TEST_CASE("overlaps: whether a tensor's own elements lie apart is what counting their places says")
{
    std::mt19937 dice(11);
    int apart = 0, shared = 0;
    for (int round = 0; round < 20000; round++) {
        TensorForm form;
        form.rank = int(dice() % 4);
        for (size_t i = 0; i < size_t(form.rank); i++) form.dims[i] = dice() % 20 ? 1 + dice() % 5 : 0, form.strides[i] = int64_t(dice() % 25) - 8;
        std::set<int64_t> places;
        for (int64_t e = 0; e < form.count(); e++) {
            int64_t at = 0, left = e;
            for (size_t i = size_t(form.rank); i-- > 0; left /= form.dims[i]) at += left % form.dims[i] * form.strides[i];
            places.insert(at);
        }
        const bool want = int64_t(places.size()) == form.count();
        REQUIRE(ng::is_injective(form) == want);
        (want ? apart : shared)++;
    }
    CHECK(apart > 3000);
    CHECK(shared > 3000);
}

TEST_CASE("overlaps: strides that do not nest end in an answer, the careful one")
{
    const World w;
    ng_tensor* base = tensor(w.c, shape(NG_U8, {1 << 20}));
    const Pin<Tensor> all(base);
    std::vector<int64_t> dims(20, 2), strides(20);
    for (size_t i = 0; i < 20; i++) strides[i] = 2 * int64_t(10007 + 97 * i);
    const ng_shape d = shape(NG_U8, dims, strides);
    const TensorForm form = ng::form_of(&d, "test");
    CHECK(ng::overlaps(*all->view(0, form), *all->view(1, form)));
    ng_tensor_release(base);
}

TEST_CASE("view: never outside its memory")
{
    const World w;
    ng_tensor* t = tensor(w.c, shape(NG_F32, {8}));
    const Pin<Tensor> base(t);
    const ng_shape d = shape(NG_F32, {4}), back = shape(NG_F32, {4}, {-1}), none = shape(NG_F32, {0});
    CHECK_NOTHROW(base->view(16, ng::form_of(&d, "test")));
    CHECK_THROWS_AS(base->view(20, ng::form_of(&d, "test")), ng::Error);
    CHECK_THROWS_AS(base->view(-4, ng::form_of(&d, "test")), ng::Error);
    CHECK_THROWS_AS(base->view(8, ng::form_of(&back, "test")), ng::Error);
    CHECK(base->view(12, ng::form_of(&back, "test"))->data == base->data + 12);
    CHECK_NOTHROW(base->view(1000, ng::form_of(&none, "test")));
    ng_tensor_release(t);
}

TEST_CASE("view: whose elements no 63 bits count is refused as a tensor of them is")
{
    const World w;
    ng_tensor *t = tensor(w.c, 4), *v = nullptr;
    ng_scope* s = ng_scope_create(w.c, 0);
    for (const std::vector<int64_t>& strides : {std::vector<int64_t>{1, 0}, {0, 0}}) {
        const ng_shape d = shape(NG_F32, {4, (int64_t(1) << 62) + 1}, strides);
        CHECK(ng_tensor_view(ng_view(ng_leaf(s, t), &d, 0), &v, &error) == NG_E_LIMIT);
        CHECK(ng_tensor_create(w.c, &d, &v, &error) == NG_E_LIMIT);
        CHECK(v == nullptr);
    }
    ng_scope_release(s);
    ng_tensor_release(t);
}

TEST_CASE("view: of memory whose size the host does not know")
{
    const World w;
    float memory[4] = {1, 2, 3, 4};
    const ng_shape d = vec(4);
    ng_tensor *t = nullptr, *v = nullptr;
    REQUIRE(ng_tensor_wrap(w.c, &d, memory, UINT64_MAX, nullptr, nullptr, &t, &error) == NG_OK);
    ng_scope* s = ng_scope_create(w.c, 0);
    REQUIRE(ng_tensor_view(ng_slice(ng_leaf(s, t), 0, NG_END, NG_END, -1), &v, &error) == NG_OK);
    CHECK(data_of<float>(v) == memory + 3);
    const Pin<Tensor> base(t);
    const ng_shape whole = shape(NG_I64, {int64_t(1) << 59});
    CHECK_NOTHROW(base->view(8, ng::form_of(&whole, "test")));
    CHECK_THROWS_AS(base->view(-4, ng::form_of(&d, "test")), ng::Error);
    ng_scope_release(s);
    ng_tensor_release(v), ng_tensor_release(t);
}

TEST_CASE("strides: of an axis of one element at most they are row-major, whatever was said")
{
    DLManagedTensorVersioned m{};            // w gives it back at its end
    const World w;
    const auto strides_of = [](ng_tensor* t) {
        ng_shape d{};
        d.size = sizeof d;
        REQUIRE(ng_tensor_shape(t, &d) == NG_OK);
        return std::vector<int64_t>(d.strides, d.strides + d.ndim);
    };
    float memory[6] = {0, 1, 2, 3, 4, 5};
    int64_t dims[4] = {2, 3, 1, 1}, strides[4] = {3, 1, INT64_MAX, INT64_MIN};
    m.version.major = 1;
    m.t.data = memory, m.t.device.type = 1, m.t.ndim = 4, m.t.shape = dims, m.t.strides = strides;
    m.t.dtype.code = 2, m.t.dtype.bits = 32, m.t.dtype.lanes = 1;
    ng_tensor *t = nullptr, *v = nullptr, *empty = nullptr;
    REQUIRE(ng_tensor_from_dlpack(w.c, &m, nullptr, &t, &error) == NG_OK);
    CHECK(strides_of(t) == std::vector<int64_t>{3, 1, 1, 1});
    ng_scope* s = ng_scope_create(w.c, 0);
    ng_expr* x = ng_leaf(s, t);
    for (ng_expr* e : {ng_slice(x, 2, NG_END, NG_END, -1), ng_slice(x, 3, 0, NG_END, 2)}) {
        REQUIRE_MESSAGE(ng_tensor_view(e, &v, &error) == NG_OK, error.text);
        float got[6];
        CHECK(ng_tensor_get(v, got, sizeof got, &error) == NG_OK);
        CHECK(std::memcmp(got, memory, sizeof got) == 0);
        ng_tensor_release(v);
    }
    const ng_shape one = shape(NG_F32, {1, 6}, {INT64_MAX, 1});
    REQUIRE(ng_tensor_view(ng_view(x, &one, 0), &v, &error) == NG_OK);
    CHECK(strides_of(v) == std::vector<int64_t>{6, 1});
    const ng_shape none = shape(NG_F32, {3, 0}, {2, INT64_MIN});
    REQUIRE(ng_tensor_create(w.c, &none, &empty, &error) == NG_OK);
    CHECK(strides_of(empty) == std::vector<int64_t>{2, 1});
    ng_scope_release(s);
    ng_tensor_release(empty), ng_tensor_release(v), ng_tensor_release(t);
}

TEST_CASE("dlpack: out, and in again, over the same memory")
{
    const World w, second;
    float data[6] = {1, 2, 3, 4, 5, 6};
    ng_tensor* t = tensor(w.c, shape(NG_F32, {2, 3}, {1, 2}));
    REQUIRE(ng_tensor_put(t, data, sizeof data, &error) == NG_OK);
    DLManagedTensorVersioned* m = nullptr;
    REQUIRE(ng_tensor_to_dlpack(t, nullptr, &m, &error) == NG_OK);
    CHECK(m->version.major == 1);
    CHECK(m->t.data == data_of<float>(t));
    CHECK(m->t.device.type == 1);
    CHECK(m->t.ndim == 2);
    CHECK(m->t.dtype.code == 2);
    CHECK(m->t.dtype.bits == 32);
    CHECK(m->t.dtype.lanes == 1);
    CHECK(m->t.shape[1] == 3);
    CHECK(m->t.strides[1] == 2);
    CHECK(m->flags == 0);
    ng_tensor *u = nullptr, *bad = nullptr;
    CHECK(ng_tensor_from_dlpack(second.c, nullptr, nullptr, &bad, &error) == NG_E_INVALID);
    m->version.major = 2;
    CHECK(ng_tensor_from_dlpack(second.c, m, nullptr, &bad, &error) == NG_E_UNSUPPORTED);
    m->version.major = 1;
    m->t.device.type = 2;
    CHECK(ng_tensor_from_dlpack(second.c, m, nullptr, &bad, &error) == NG_E_UNSUPPORTED);
    m->t.device.type = 1;
    m->t.dtype.lanes = 4;
    CHECK(ng_tensor_from_dlpack(second.c, m, nullptr, &bad, &error) == NG_E_DTYPE);
    m->t.dtype.lanes = 1;
    CHECK(!bad);
    m->flags = 1;
    REQUIRE(ng_tensor_from_dlpack(second.c, m, nullptr, &u, &error) == NG_OK);
    ng_tensor_release(t);
    float out[6];
    CHECK(ng_tensor_get(u, out, sizeof out, &error) == NG_OK);
    CHECK(std::memcmp(out, data, sizeof out) == 0);
    CHECK(ng_tensor_fill(u, nullptr, 0, &error) == NG_E_INVALID);      // flags say read-only
    ng_tensor_release(u);
    ng_stats s{};
    s.size = sizeof s;
    CHECK(ng_ctx_stats(w.c, &s) == NG_OK);
    CHECK(s.tensors == 1);                                              // until second calls the deleter
    CHECK(ng_ctx_sync(second.c, nullptr, 0, &error) == NG_OK);
    CHECK(ng_ctx_stats(w.c, &s) == NG_OK);
    CHECK(s.tensors == 0);
}

TEST_CASE("dlpack: what may only be read goes out as such")
{
    const World w;
    float data[6] = {};
    for (const uint32_t flags : {0u, uint32_t(NG_READONLY)}) {
        const ng_shape d = shape(NG_F32, {6}, {}, flags);
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_wrap(w.c, &d, data, sizeof data, nullptr, nullptr, &t, &error) == NG_OK);
        DLManagedTensorVersioned* m = nullptr;
        REQUIRE(ng_tensor_to_dlpack(t, nullptr, &m, &error) == NG_OK);
        CHECK(m->flags == (flags ? 1 : 0));
        ng_tensor_release(t);
        m->deleter(m);
    }
}

// t as a consumer has it when t, where it is not the whole context, and the context were closed and released.
static DLManagedTensorVersioned* lent_beyond(ng_ctx* c, ng_tensor* t, bool whole)
{
    DLManagedTensorVersioned* m = nullptr;
    REQUIRE(ng_tensor_to_dlpack(t, nullptr, &m, &error) == NG_OK);
    if (!whole) CHECK(ng_tensor_close(t, &error) == NG_OK);
    CHECK(ng_ctx_close(c, 0, &error) == NG_OK);
    ng_tensor_release(t);
    ng_ctx_release(c);
    return m;
}

TEST_CASE("dlpack: a consumer outlives the tensor's close and the context's")
{
    for (const bool whole : {false, true}) {
        ng_ctx* c = nullptr;
        REQUIRE(ng_ctx_create(nullptr, &c, &error) == NG_OK);
        const ng_shape d = shape(NG_I32, {1000});
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_create(c, &d, &t, &error) == NG_OK);
        REQUIRE(ng_tensor_fill(t, nullptr, 7, &error) == NG_OK);
        DLManagedTensorVersioned* const m = lent_beyond(c, t, whole);
        CHECK(static_cast<int*>(m->t.data)[999] == 7);
        m->deleter(m);
    }
    const World w;     // its poll takes the two contexts apart
}

TEST_CASE("dlpack: what came by it and is lent on stays until the last consumer has ended, though its tensor and context were closed")
{
    static int deleted;
    for (const bool whole : {false, true}) {
        deleted = 0;
        int64_t dims[1] = {3};
        int32_t data[3] = {7, 8, 9};
        DLManagedTensorVersioned foreign{};
        foreign.version.major = 1, foreign.deleter = [](DLManagedTensorVersioned*) { deleted++; };
        foreign.t.data = data, foreign.t.device.type = 1, foreign.t.ndim = 1, foreign.t.shape = dims;
        foreign.t.dtype.code = 0, foreign.t.dtype.bits = 32, foreign.t.dtype.lanes = 1;
        ng_ctx* c = nullptr;
        REQUIRE(ng_ctx_create(nullptr, &c, &error) == NG_OK);
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_from_dlpack(c, &foreign, nullptr, &t, &error) == NG_OK);
        DLManagedTensorVersioned* const m = lent_beyond(c, t, whole);
        CHECK(deleted == 0);
        CHECK(m->t.data == data);
        m->deleter(m);
        { const World w; }
        CHECK(deleted == 1);
    }
}

TEST_CASE("dlpack: a foreign tensor with an offset, without strides, and its deleter called once")
{
    static int deleted;
    deleted = 0;
    const World w(NG_CTX_POLL);
    int16_t data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t dims[2] = {2, 3};
    DLManagedTensorVersioned m{};
    m.version.major = 1, m.version.minor = 3;
    m.deleter = [](DLManagedTensorVersioned*) { deleted++; };
    m.t.data = data, m.t.device.type = 1, m.t.ndim = 2, m.t.shape = dims, m.t.byte_offset = 4;
    m.t.dtype.code = 0, m.t.dtype.bits = 16, m.t.dtype.lanes = 1;
    ng_tensor* t = nullptr;
    REQUIRE(ng_tensor_from_dlpack(w.c, &m, nullptr, &t, &error) == NG_OK);
    int16_t out[6];
    REQUIRE(ng_tensor_get(t, out, sizeof out, &error) == NG_OK);
    CHECK(out[0] == 2);
    CHECK(out[5] == 7);
    ng_tensor_release(t);
    CHECK(deleted == 0);
    CHECK(ng_ctx_poll(w.c, 0, &error) == NG_OK);
    CHECK(deleted == 1);
}
