// Structs of every size at the end of readable memory, other contexts' things, empty and wrong shapes and types: refused with a sentence, nothing lost.
#include "tests/lib/world.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>

namespace {

// A struct's first bytes, behind which nothing may be touched.
class Edge {
  public:
    Edge() : page_(size_t(sysconf(_SC_PAGESIZE))), memory_(static_cast<char*>(mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))
    {
        REQUIRE(memory_ != MAP_FAILED);
        REQUIRE(mprotect(memory_ + page_, page_, PROT_NONE) == 0);
    }
    ~Edge() { munmap(memory_, 2 * page_); }
    Edge(const Edge&) = delete;
    template <class T>
    T* put(const T& from, uint32_t size)
    {
        T copy = from;
        copy.size = size;
        char* const at = memory_ + page_ - std::min<size_t>(size, sizeof(T)) / 8 * 8;
        std::memcpy(at, &copy, std::min<size_t>(size, sizeof(T)) / 8 * 8);
        return reinterpret_cast<T*>(at);
    }

  private:
    size_t page_;
    char*  memory_;
};

// Calls with a struct of every size that is a multiple of 8, and one from the future. Smaller than 8: NG_E_INVALID.
template <class T>
void every_size(const char* name, const T& full, const std::function<ng_status(T*)>& call)
{
    Edge edge;
    for (uint32_t size = 8; size <= sizeof(T); size += 8) {
        const ng_status status = call(edge.put(full, size));
        INFO(std::string(name), " of ", size, " bytes: ", std::string(ng_status_name(status)));
        CHECK((status == NG_OK || status == NG_E_INVALID || (size < sizeof(T) && status < 0 && status != NG_E_BUG)));
        if (size == sizeof(T)) CHECK(status == NG_OK);
    }
    for (const uint32_t size : {0u, 1u, 4u, 7u}) {
        T small = full;
        small.size = size;
        INFO(std::string(name), " of ", size, " bytes");
        error = {};
        CHECK(call(&small) == NG_E_INVALID);
    }
    struct { T known; char more[64]; } newer;
    std::memset(&newer, 0x55, sizeof newer);
    newer.known = full;
    newer.known.size = sizeof newer;
    CHECK(call(&newer.known) == NG_OK);
    for (const char c : newer.more) CHECK(c == 0x55);
}

struct Things {
    ng_ctx*   c;
    ng_scope* s;
    ng_tensor *t, *out;
    ng_expr  *x, *y;
    ng_prog*  p = nullptr;
    explicit Things(ng_ctx* context) : c(context), s(ng_scope_create(context, 0)), t(tensor(context, 4)), out(tensor(context, 4)), x(ng_leaf(s, t))
    {
        const ng_shape d = vec(4);
        REQUIRE(ng_tensor_fill(t, nullptr, 1, &error) == NG_OK);
        y = ng_param(s, 0, &d);
        ng_expr* e = ng_add(y, y);
        REQUIRE(ng_compile(c, nullptr, &e, 1, &p, &error) == NG_OK);
    }
    ~Things() { ng_prog_release(p), ng_scope_release(s), ng_tensor_release(t), ng_tensor_release(out); }
    Things(const Things&) = delete;
    ng_status fault(ng_expr* e, ng_ctx* in = nullptr)
    {
        ng_tensor* made = nullptr;
        error = {};
        const ng_status status = ng_eval(in ? in : c, nullptr, &e, &made, 1, &error);
        CHECK((made != nullptr) == (status >= 0));
        CHECK((status >= 0 || error.text[0]));
        ng_tensor_release(made);
        return status;
    }
    ng_expr* of(const ng_shape& d)
    {
        ng_tensor* made = tensor(c, d);
        REQUIRE(ng_tensor_fill(made, nullptr, 1, &error) == NG_OK);
        ng_expr* e = ng_leaf(s, made);
        ng_tensor_release(made);
        return e;
    }
};
ng_status run(ng_prog* p, ng_tensor* in, ng_tensor* out, ng_tensor* workspace = nullptr)
{
    ng_run r{};
    r.size = sizeof r, r.nargs = r.nout = 1, r.args = &in, r.out = &out, r.workspace = workspace;
    return ng_prog_run(p, nullptr, &r, &error);
}

}  // namespace

TEST_CASE("structs that are read: of every size, never past their end, zero behind it")
{
    World world;
    Things w(world.c);
    const auto dropped = [](ng_status status, ng_tensor*& t) { return ng_tensor_release(t), t = nullptr, status; };
    ng_tensor* made = nullptr;
    float data[4] = {};
    every_size<ng_shape>("ng_tensor_create", vec(4), [&](ng_shape* d) { return dropped(ng_tensor_create(w.c, d, &made, &error), made); });
    every_size<ng_shape>("ng_tensor_wrap", vec(4), [&](ng_shape* d) { return dropped(ng_tensor_wrap(w.c, d, data, 16, nullptr, nullptr, &made, &error), made); });
    every_size<ng_shape>("ng_iota", shape(NG_F32, {4}, {1}), [&](ng_shape* d) { return w.fault(ng_iota(w.s, d, 0)); });
    every_size<ng_shape>("ng_view", vec(4), [&](ng_shape* d) { return w.fault(ng_view(w.x, d, 0)); });
    every_size<ng_shape>("ng_random", vec(4), [&](ng_shape* d) { return w.fault(ng_random(w.s, NG_NORMAL, ng_const_int(w.s, NG_U64, 1), nullptr, d)); });
    ng_expr *image = w.of(shape(NG_F32, {1, 1, 4, 4})), *filter = w.of(shape(NG_F32, {1, 1, 2, 2})), *slope = w.of(shape(NG_F32, {1, 1, 3, 3})), *square = w.of(shape(NG_F32, {4, 4}));
    every_size<ng_shape>("ng_conv_dx", shape(NG_F32, {1, 1, 4, 4}), [&](ng_shape* d) { return w.fault(ng_conv_dx(filter, slope, d, nullptr)); });
    every_size<ng_shape>("ng_conv_dw", shape(NG_F32, {1, 1, 2, 2}), [&](ng_shape* d) { return w.fault(ng_conv_dw(image, slope, d, nullptr)); });
    every_size<ng_matmul_desc>("ng_matmul", {}, [&](ng_matmul_desc* d) { return w.fault(ng_matmul(square, square, d)); });
    every_size<ng_conv_desc>("ng_conv", {}, [&](ng_conv_desc* d) { return w.fault(ng_conv(image, filter, d)); });
    every_size<ng_pool_desc>("ng_pool", {}, [&](ng_pool_desc* d) { return w.fault(ng_pool(image, d)); });
    every_size<ng_pool_desc>("ng_pool_dx", {}, [&](ng_pool_desc* d) { return w.fault(ng_pool_dx(image, image, d)); });
    ng_expr* twice = ng_add(w.y, w.y);
    ng_prog* p = nullptr;
    every_size<ng_compile_desc>("ng_compile", {}, [&](ng_compile_desc* d) {
        const ng_status status = ng_compile(w.c, d, &twice, 1, &p, &error);
        return ng_prog_release(p), p = nullptr, status;
    });
    ng_run r{};
    r.nargs = r.nout = 1, r.args = &w.t, r.out = &w.out;
    every_size<ng_run>("ng_prog_run", r, [&](ng_run* d) { return ng_prog_run(w.p, nullptr, d, &error); });
}

TEST_CASE("structs that are read: contexts, allocators and hooks of every size")
{
    const auto opened = [](const ng_ctx_desc* d) {
        ng_ctx* c = nullptr;
        const ng_status status = ng_ctx_create(d, &c, &error);
        if (c) shut(c);
        return status;
    };
    every_size<ng_ctx_desc>("ng_ctx_create", description(), [&](ng_ctx_desc* d) { return opened(d); });
    every_size<ng_allocator>("ng_allocator", allocator(), [&](ng_allocator* a) {
        ng_ctx_desc d = description();
        d.dev = a;
        return opened(&d);
    });
    every_size<ng_hooks>("ng_hooks", {}, [&](ng_hooks* h) {
        ng_ctx_desc d = description();
        d.hooks = h;
        return opened(&d);
    });
}

TEST_CASE("structs that are written: as far as their size, never past their end, and their size stays")
{
    World world;
    Things w(world.c);
    const auto kept = [](auto* d, auto&& call) {
        const uint32_t size = d->size;
        const ng_status status = call(d);
        CHECK(d->size == size);
        return status;
    };
    every_size<ng_shape>("ng_tensor_shape", {}, [&](ng_shape* d) { return kept(d, [&](ng_shape* o) { return ng_tensor_shape(w.t, o); }); });
    every_size<ng_shape>("ng_expr_shape", {}, [&](ng_shape* d) { return kept(d, [&](ng_shape* o) { return ng_expr_shape(w.x, o, &error); }); });
    every_size<ng_shape>("ng_prog_port", {}, [&](ng_shape* d) { return kept(d, [&](ng_shape* o) { return ng_prog_port(w.p, 0, o, nullptr, &error); }); });
    every_size<ng_prog_info>("ng_prog_get_info", {}, [&](ng_prog_info* d) { return kept(d, [&](ng_prog_info* o) { return ng_prog_get_info(w.p, o, &error); }); });
    every_size<ng_stats>("ng_ctx_stats", {}, [&](ng_stats* d) { return kept(d, [&](ng_stats* o) { return ng_ctx_stats(w.c, o); }); });
    every_size<ng_device_info>("ng_ctx_info", {}, [&](ng_device_info* d) { return kept(d, [&](ng_device_info* o) { return ng_ctx_info(w.c, o); }); });
    every_size<ng_device_info>("ng_device_get", {}, [&](ng_device_info* d) { return kept(d, [&](ng_device_info* o) { return ng_device_get(0, o); }); });
}

TEST_CASE("other contexts: their things are refused where one context computes, and copied where they may be")
{
    World here, there;
    Things a(here.c), b(there.c);
    const ng_stats before = stats(here.c), beside = stats(there.c);
    CHECK(a.fault(b.x) == NG_E_INVALID);
    CHECK(a.fault(ng_add(a.x, b.x)) == NG_E_INVALID);
    CHECK(a.fault(a.x, there.c) == NG_E_INVALID);
    ng_tensor* out = b.out;
    CHECK(ng_eval(here.c, nullptr, &a.x, &out, 1, &error) == NG_E_INVALID);
    ng_prog* p = nullptr;
    CHECK(ng_compile(here.c, nullptr, &b.x, 1, &p, &error) == NG_E_INVALID);
    ng_compile_desc d{};
    d.size = sizeof d, d.workspace_of = b.p;
    CHECK(ng_compile(here.c, &d, &a.x, 1, &p, &error) == NG_E_INVALID);
    CHECK(p == nullptr);
    CHECK(run(a.p, b.t, a.out) == NG_E_INVALID);
    CHECK(run(a.p, a.t, b.out) == NG_E_INVALID);
    ng_prog_info i{};
    i.size = sizeof i;
    REQUIRE(ng_prog_get_info(a.p, &i, &error) == NG_OK);
    ng_tensor* workspace = tensor(there.c, shape(NG_U8, {int64_t(i.workspace_bytes)}));
    CHECK(run(a.p, a.t, a.out, workspace) == NG_E_INVALID);
    ng_tensor_release(workspace);
    uint64_t mark = 0;
    REQUIRE(ng_mark(there.c, nullptr, &mark, &error) == NG_OK);
    CHECK(ng_mark_wait(here.c, mark + 1, 0, &error) == NG_E_INVALID);
    CHECK(ng_tensor_copy(b.out, a.t, nullptr, &error) == NG_OK);
    CHECK(data_of<float>(b.out)[2] == 1);
    CHECK(run(a.p, a.t, a.out) == NG_OK);
    CHECK(stats(here.c).tensors == before.tensors);
    CHECK(stats(there.c).tensors == beside.tensors);
    CHECK(stats(here.c).dev_bytes == before.dev_bytes);
    CHECK(stats(there.c).dev_bytes == beside.dev_bytes);
}

TEST_CASE("shapes and types: empty, wrong and enormous ones have their statuses, and nothing is made")
{
    World world;
    Things w(world.c);
    float f[8] = {};
    ng_tensor* made = nullptr;
    const auto created = [&](const ng_shape& d) { return ng_tensor_create(w.c, &d, &made, &error); };
    const auto wrapped = [&](const ng_shape& d, void* data, uint64_t bytes) { return ng_tensor_wrap(w.c, &d, data, bytes, nullptr, nullptr, &made, &error); };
    const int64_t big = int64_t(1) << 62;
    CHECK(created(shape(0, {4})) == NG_E_DTYPE);
    CHECK(created(shape(0x12003, {4})) == NG_E_DTYPE);
    CHECK(created(vec(-1)) == NG_E_SHAPE);
    CHECK(created(vec(INT64_MIN)) == NG_E_SHAPE);
    CHECK(created(vec(big)) == NG_E_LIMIT);
    CHECK(created(shape(NG_U8, {big, big, big})) == NG_E_LIMIT);
    CHECK(created(shape(NG_U8, {2, 2}, {big, big})) == NG_E_LIMIT);
    CHECK(created(shape(NG_U8, {2, 2}, {INT64_MIN, INT64_MIN})) == NG_E_LIMIT);
    CHECK(created(shape(NG_U8, {int64_t(1) << 50})) == NG_E_DEVMEM);
    ng_shape odd = vec(4);
    for (const int32_t rank : {-1, 33, INT32_MIN, INT32_MAX}) {
        odd.ndim = rank;
        CHECK(created(odd) == NG_E_LIMIT);
    }
    CHECK(created(shape(NG_F32, {4}, {}, 1u << 31)) == NG_E_INVALID);
    CHECK(wrapped(vec(4), f, 15) == NG_E_SHAPE);
    CHECK(wrapped(vec(4), f, 0) == NG_E_SHAPE);
    CHECK(wrapped(vec(4), nullptr, 16) == NG_E_INVALID);
    CHECK(wrapped(shape(NG_F32, {4}, {-2}), f, 16) == NG_E_SHAPE);
    for (const uint64_t bytes : {uint64_t(0), uint64_t(15), uint64_t(17), UINT64_MAX}) {
        CHECK(ng_tensor_put(w.t, f, bytes, &error) == NG_E_INVALID);
        CHECK(ng_tensor_get(w.t, f, bytes, &error) == NG_E_INVALID);
    }
    CHECK(ng_tensor_put(w.t, nullptr, 16, &error) == NG_E_INVALID);
    CHECK(made == nullptr);

    const ng_stats before = stats(w.c);
    ng_tensor *ints = tensor(w.c, shape(NG_I32, {4})), *three = tensor(w.c, 3), *none = tensor(w.c, shape(NG_F32, {0}));
    for (ng_tensor* t : {ints, three, none}) {
        const ng_status want = t == ints ? NG_E_DTYPE : NG_E_SHAPE;
        CHECK(ng_eval(w.c, nullptr, &w.x, &t, 1, &error) == want);
        CHECK(run(w.p, t, w.out) == want);
        CHECK(run(w.p, w.t, t) == want);
        CHECK(ng_tensor_copy(w.out, t, nullptr, &error) == want);
        CHECK(ng_expr_bind(w.x, t, &error) == want);
    }
    CHECK(w.fault(ng_add(w.x, ng_leaf(w.s, three))) == NG_E_SHAPE);
    CHECK(w.fault(ng_bitwise_and(w.x, w.x)) == NG_E_DTYPE);
    CHECK(w.fault(ng_cast(w.x, 77)) == NG_E_DTYPE);
    CHECK(w.fault(ng_reshape(w.x, nullptr, 0)) == NG_E_SHAPE);
    CHECK(w.fault(ng_reshape(w.x, nullptr, 3)) == NG_E_INVALID);
    CHECK(w.fault(ng_reshape(w.x, nullptr, UINT32_MAX)) < 0);
    CHECK(w.fault(ng_permute(w.x, nullptr, 1)) == NG_E_INVALID);
    CHECK(w.fault(ng_concat(nullptr, 0, 0)) == NG_E_INVALID);
    CHECK(w.fault(ng_concat(nullptr, 2, 0)) == NG_E_INVALID);
    CHECK(w.fault(ng_parse(w.s, nullptr, nullptr, nullptr, 0)) == NG_E_INVALID);
    CHECK(w.fault(ng_parse(w.s, "x", "x", nullptr, 1)) == NG_E_INVALID);
    CHECK(w.fault(ng_pool(w.of(shape(NG_F32, {1, 1, 4})), nullptr)) == NG_E_INVALID);
    CHECK(w.fault(ng_param(w.s, 0, nullptr)) == NG_E_INVALID);
    CHECK(w.fault(ng_sum(w.x, NG_AXIS_4, 0)) == NG_E_INVALID);
    CHECK(w.fault(ng_scan(w.x, 0, 99, 0)) == NG_E_INVALID);
    CHECK(w.fault(ng_leaf(w.s, none)) == NG_OK);
    for (ng_tensor* t : {ints, three, none}) ng_tensor_release(t);
    ng_scope_release(w.s);                     // and with it what its leaves held
    w.s = ng_scope_create(w.c, 0);
    CHECK(stats(w.c).tensors == before.tensors);
    CHECK(stats(w.c).dev_bytes == before.dev_bytes);
}
