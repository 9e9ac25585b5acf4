// Tensors that go to other libraries and come from them by DLPack, on the processor and on devices: the same memory, told as it is.
#include "tests/contract/face.h"
#include "tests/harm/dlpack_binary.h"

namespace {

constexpr int32_t OF_PROCESSOR = 1, OF_CUDA = 2, OF_CUDA_HOST = 3;

int32_t own_type() { return std::string_view(backend()) == "cuda" ? OF_CUDA : OF_PROCESSOR; }

DLManagedTensorVersioned* lent(Face& f, ng_tensor* t)
{
    DLManagedTensorVersioned* m = nullptr;
    REQUIRE_MESSAGE(ng_tensor_to_dlpack(t, nullptr, &m, &f.error) == NG_OK, f.said());
    return m;
}
ng_tensor* taken(Face& f, DLManagedTensorVersioned* m)
{
    ng_tensor* t = nullptr;
    REQUIRE_MESSAGE(ng_tensor_from_dlpack(f.c, m, nullptr, &t, &f.error) == NG_OK, f.said());
    return f.keep(t);
}

}  // namespace

TEST_CASE("dlpack: what one context lends, another one of the device takes: the same memory, both ways")
{
    Face giver;
    ng_tensor* const given = giver.tensor(shape(NG_F32, {3, 5}), counted(15));
    DLManagedTensorVersioned* const m = lent(giver, giver.part(given, 1, 1, 5, 2));
    CHECK(m->major == 1);
    CHECK(m->device_type == own_type());
    CHECK(m->ndim == 2);
    CHECK(m->shape[1] == 2);
    CHECK(m->strides[0] == 5);
    CHECK(m->strides[1] == 2);
    CHECK(m->code == 2);
    CHECK(m->bits == 32);
    CHECK(static_cast<char*>(m->data) + m->byte_offset == static_cast<char*>(giver.data(given)) + 4);
    {
        Face taker;
        ng_tensor* const t = taken(taker, m);
        CHECK(differs(taker.eval(taker.text("x * 2", "x", {ng_leaf(taker.s, t)})), {2, 6, 12, 16, 22, 26}) == "");
        CHECK(taker.eval_into({taker.text("x + 100", "x", {ng_leaf(taker.s, t)})}, {t}) == NG_OK);
        CHECK(ng_ctx_sync(taker.c, nullptr, UINT64_MAX, &taker.error) == NG_OK);
    }
    Values want = counted(15);
    for (const size_t i : {1u, 3u, 6u, 8u, 11u, 13u}) want[i] += 100;
    CHECK(differs(giver.get(given), want) == "");
}

TEST_CASE("S6: what is lent by DLPack ends with the close where the host wrapped it or its allocator gave it, and stays where it is libng's own")
{
    if (own_type() != OF_PROCESSOR) return;
    static int   done, given;
    ng_allocator counting{};
    counting.size = sizeof counting;
    counting.alloc = [](void*, size_t bytes, size_t align, ng_purpose purpose, ng_stream) {
        given += purpose == NG_MEM_TENSOR;
        return std::aligned_alloc(std::max<size_t>(align, 64), (bytes + 63) / 64 * 64);
    };
    counting.free = [](void*, void* p, size_t, ng_purpose purpose, ng_stream) {
        given -= purpose == NG_MEM_TENSOR;
        std::free(p);
    };
    ng_error error{};
    for (const bool whole : {false, true}) {
        done = given = 0;
        float      numbers[3] = {1, 2, 3};
        ng_ctx*    contexts[3];
        ng_tensor* tensors[3];
        DLManagedTensorVersioned* loans[3];
        const ng_shape three = shape(NG_F32, {3});
        for (int i = 0; i < 3; i++) {                        // wrapped, of an allocator, libng's own
            ng_ctx_desc d = description();
            d.dev = i == 1 ? &counting : nullptr;
            REQUIRE(ng_ctx_create(&d, &contexts[i], &error) == NG_OK);
            REQUIRE((i ? ng_tensor_create(contexts[i], &three, &tensors[i], &error)
                       : ng_tensor_wrap(contexts[i], &three, numbers, sizeof numbers, [](void*) { done++; }, nullptr, &tensors[i], &error)) == NG_OK);
            REQUIRE(ng_tensor_put(tensors[i], numbers, sizeof numbers, &error) == NG_OK);
            REQUIRE(ng_tensor_to_dlpack(tensors[i], nullptr, &loans[i], &error) == NG_OK);
        }
        CHECK(given == 1);
        for (int i = 0; i < 3; i++) CHECK((whole ? ng_ctx_close(contexts[i], UINT64_MAX, &error) : ng_tensor_close(tensors[i], &error)) == NG_OK);
        CHECK(done == 1);
        CHECK(given == 0);
        CHECK(static_cast<float*>(loans[2]->data)[2] == 3);
        for (int i = 0; i < 3; i++) loans[i]->deleter(loans[i]), ng_tensor_release(tensors[i]), ng_ctx_release(contexts[i]);
        CHECK(done == 1);
        CHECK(given == 0);
    }
}

TEST_CASE("dlpack: memory of another kind is refused with its name, and stays its owner's")
{
    static int deleted;
    deleted = 0;
    Face f;
    float   numbers[4] = {1, 2, 3, 4};
    int64_t dims[1] = {4};
    DLManagedTensorVersioned m{};
    m.major = 1, m.deleter = [](DLManagedTensorVersioned*) { deleted++; };
    m.data = numbers, m.ndim = 1, m.shape = dims, m.code = 2, m.bits = 32, m.lanes = 1;
    for (const int32_t type : {own_type() == OF_CUDA ? OF_PROCESSOR : OF_CUDA, int32_t(7)}) {
        m.device_type = type;
        ng_tensor* t = nullptr;
        CHECK(ng_tensor_from_dlpack(f.c, &m, nullptr, &t, &f.error) == NG_E_UNSUPPORTED);
        CHECK(t == nullptr);
        CHECK(f.says("device type " + std::to_string(type)));
    }
    m.device_type = own_type(), m.device_id = 31;
    ng_tensor* t = nullptr;
    if (own_type() == OF_CUDA) CHECK(ng_tensor_from_dlpack(f.c, &m, nullptr, &t, &f.error) == NG_E_UNSUPPORTED);
    CHECK(deleted == 0);
}

TEST_CASE("dlpack: page-locked memory is told as what it is, and taken back as that")
{
    if (own_type() != OF_CUDA) return;
    Face f;
    ng_tensor* const pinned = f.tensor(shape(NG_I32, {4}, {}, NG_HOST), {1, 2, 3, 4});
    DLManagedTensorVersioned* const m = lent(f, pinned);
    CHECK(m->device_type == OF_CUDA_HOST);
    CHECK(static_cast<int32_t*>(m->data)[3] == 4);
    ng_tensor* const again = taken(f, m);
    CHECK((f.shape_of(again).flags & NG_HOST) != 0);
    CHECK(differs(f.get(again), {1, 2, 3, 4}) == "");
}

TEST_CASE("S6: what a closed context had lent goes with the next poll, sync or close of another, though its handle is kept")
{
    static int deleted;
    for (int way = 0; way < 3; way++) {
        deleted = 0;
        Face giver, other;
        DLManagedTensorVersioned* const m = lent(giver, giver.tensor({1, 2, 3}));
        DLManagedTensorVersioned foreign = *m, *on = nullptr;
        foreign.deleter = [](DLManagedTensorVersioned*) { deleted++; };
        ng_ctx*    c = opened(1);
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_from_dlpack(c, &foreign, nullptr, &t, &other.error) == NG_OK);
        REQUIRE(ng_tensor_to_dlpack(t, nullptr, &on, &other.error) == NG_OK);
        ng_tensor_release(t);
        CHECK(ng_ctx_close(c, UINT64_MAX, &other.error) == NG_OK);
        CHECK(ng_ctx_poll(other.c, 0, &other.error) == NG_OK);
        CHECK(deleted == 0);
        on->deleter(on);
        CHECK(deleted == 0);
        if (way == 0) CHECK(ng_ctx_poll(other.c, 0, &other.error) == NG_OK);
        if (way == 1) CHECK(ng_ctx_sync(other.c, nullptr, 0, &other.error) == NG_OK);
        if (way == 2) {
            ng_ctx* const third = opened(1);
            CHECK(ng_ctx_close(third, UINT64_MAX, &other.error) == NG_OK);
            ng_ctx_release(third);
        }
        CHECK(deleted == 1);
        ng_ctx_release(c);
        m->deleter(m);
    }
}

TEST_CASE("T3: what was lent and taken back by its own context, or crosswise by two, keeps no context that nobody holds")
{
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_POLL)})
        for (const bool is_crosswise : {false, true}) {
            Face f;
            int  ends = 0;
            ng_ctx*    contexts[] = {opened(1, flags), opened(1, flags)};
            ng_tensor* tensors[4] = {};
            DLManagedTensorVersioned* m[2] = {};
            const ng_shape three = shape(NG_F32, {3});
            for (int i = 0; i < 2; i++) {
                const ng_done_fn done = [](void* user) { ++*static_cast<int*>(user); };
                REQUIRE(ng_tensor_wrap(contexts[i], &three, f.data(f.tensor({1, 2, 3})), 12, done, &ends, &tensors[i], &f.error) == NG_OK);
                REQUIRE(ng_tensor_to_dlpack(tensors[i], nullptr, &m[i], &f.error) == NG_OK);
            }
            for (int i = 0; i < 2; i++) REQUIRE(ng_tensor_from_dlpack(contexts[is_crosswise ? 1 - i : i], m[i], nullptr, &tensors[2 + i], &f.error) == NG_OK);
            for (ng_tensor* t : tensors) ng_tensor_release(t);
            CHECK(f.stats().tensors == 2);
            CHECK(ends == 0);                        // their own calls may still come
            for (ng_ctx* c : contexts) ng_ctx_release(c);
            CHECK(ends == 0);
            CHECK(ng_ctx_poll(f.c, UINT64_MAX, &f.error) == NG_OK);
            CHECK(ends == 2);
            for (ng_ctx* c : contexts) CHECK(ng_ctx_poll(c, 0, &f.error) == NG_E_INVALID);
        }
}
