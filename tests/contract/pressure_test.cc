// The context's limit: the pressure hook is asked before a call fails, what it releases makes room, and what failed took nothing; what hooks
// may do meanwhile.
#include "tests/contract/face.h"

#include <utility>

namespace {

constexpr int64_t MANY = 50000;
constexpr uint64_t BYTES = MANY * 4;

// A host that keeps tensors which it could do without.
struct Hoard {
    Tensors  spare;
    int      asked = 0;
    uint64_t bytes = 0;
    bool     lies = false;               // says that it freed some, and did not

    static int32_t press(void* user, uint64_t bytes)
    {
        Hoard& h = *static_cast<Hoard*>(user);
        h.asked++, h.bytes = bytes;
        if (h.lies) return 1;
        if (h.spare.empty()) return 0;
        ng_tensor_release(h.spare.back());
        h.spare.pop_back();
        return 1;
    }
    void fill(Face& f, int count)
    {
        const ng_shape d = shape(NG_F32, {MANY});
        for (int i = 0; i < count; i++) {
            ng_tensor* t = nullptr;
            REQUIRE(ng_tensor_create(f.c, &d, &t, &f.error) == NG_OK);
            REQUIRE(ng_tensor_fill(t, nullptr, i, &f.error) == NG_OK);       // on a device under way when it is released
            spare.push_back(t);
        }
        CHECK(ng_ctx_limit(f.c, f.stats().dev_bytes) == NG_OK);
        asked = 0;
    }
};

ng_ctx_desc with_hooks(const ng_hooks& hooks)
{
    ng_ctx_desc d = description(0, 1);
    d.hooks = &hooks;
    return d;
}

}  // namespace

TEST_CASE("T4: at the limit the pressure hook makes room, for tensors, what is evaluated and programs")
{
    Hoard    hoard;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &hoard, hooks.pressure = Hoard::press;
    Face f(with_hooks(hooks));
    ng_expr* x = f.leaf(counted(MANY));
    Values   want = counted(MANY, 0, -1);

    hoard.fill(f, 3);
    ng_tensor* t = f.make(shape(NG_F32, {MANY}));
    CHECK(hoard.asked == 1);
    CHECK(hoard.bytes >= BYTES);
    CHECK(hoard.spare.size() == 2);
    f.put(t, want);
    CHECK(f.eval(ng_neg(ng_leaf(f.s, t))) == counted(MANY));
    CHECK(hoard.asked > 1);
    CHECK(f.get(t) == want);

    CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
    hoard.fill(f, 4);
    CHECK(f.eval(ng_neg(x)) == want);
    CHECK(hoard.asked > 0);
    CHECK(hoard.spare.size() < 4);

    CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
    hoard.fill(f, 4);
    const ng_shape d = shape(NG_F32, {MANY});
    ng_expr*       p = f.param(0, d);
    ng_expr* const e = ng_sub(p, ng_scan(ng_scan(p, 0, NG_FOLD_SUM, 0), 0, NG_FOLD_MAX, 0));       // which is worked out in memory of its own
    ng_prog*       program = nullptr;
    ng_compile_desc how{};
    how.size = sizeof how;
    REQUIRE_MESSAGE(ng_compile(f.c, &how, &e, 1, &program, &f.error) == NG_OK, f.said());
    f.programs.push_back(program);
    CHECK(hoard.asked > 0);
    CHECK(f.stats().workspace_bytes >= BYTES);
    CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
    for (ng_tensor* left : hoard.spare) ng_tensor_release(left);
}

TEST_CASE("T4: where the hook frees nothing the call is NG_E_DEVMEM, and all is as it was")
{
    for (const bool lies : {false, true}) {
        Hoard    hoard;
        ng_hooks hooks{};
        hooks.size = sizeof hooks, hooks.user = &hoard, hooks.pressure = Hoard::press;
        hoard.lies = lies;
        Face f(with_hooks(hooks));
        const Values numbers = counted(MANY);
        ng_tensor*   x = f.tensor(numbers);
        ng_expr*     e = ng_mul(ng_leaf(f.s, x), ng_const(f.s, 0, 2));
        hoard.fill(f, 1);
        const Tensors  kept = std::exchange(hoard.spare, {});
        const ng_stats before = f.stats();
        const ng_shape d = shape(NG_F32, {MANY});
        for (int i = 0; i < 3; i++) {
            ng_tensor* none = nullptr;
            hoard.asked = 0;
            CHECK(ng_tensor_create(f.c, &d, &none, &f.error) == NG_E_DEVMEM);
            CHECK(none == nullptr);
            CHECK(f.says(std::to_string(before.dev_bytes)));
            CHECK((lies ? hoard.asked > 1 && hoard.asked < 100 : hoard.asked == 1));
            CHECK(ng_eval(f.c, nullptr, &e, &none, 1, &f.error) == NG_E_DEVMEM);
            CHECK(none == nullptr);
        }
        CHECK(f.stats().dev_bytes == before.dev_bytes);
        CHECK(f.stats().tensors == before.tensors);
        CHECK(f.get(x) == numbers);
        CHECK(f.get(kept[0]) == Values(MANY, 0));
        CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
        CHECK(f.eval(e) == counted(MANY, 0, 2));
        ng_tensor_release(kept[0]);
    }
}

TEST_CASE("T4: while a workspace grows, what pressure ends may compile a program that shares it")
{
    struct Guest {
        Face*      f = nullptr;
        ng_prog*   first = nullptr;
        ng_tensor* loan = nullptr;
        int        ends = 0;

        ng_status compile(int64_t n)
        {
            ng_expr* const x = f->param(0, shape(NG_F32, {n}));
            ng_prog* p = nullptr;
            const ng_status status = f->try_compile({ng_sub(x, ng_scan(ng_scan(x, 0, NG_FOLD_SUM, 0), 0, NG_FOLD_MAX, 0))}, {.workspace_of = first}, &p);
            if (p) f->programs.push_back(p);
            if (!first) first = p;
            return status;
        }
        static int32_t press(void* user, uint64_t)
        {
            ng_tensor* const t = std::exchange(static_cast<Guest*>(user)->loan, nullptr);
            ng_tensor_release(t);
            return t != nullptr;
        }
        static void end(void* user)
        {
            Guest& g = *static_cast<Guest*>(user);
            g.ends++;
            CHECK(ng_ctx_limit(g.f->c, 0) == NG_OK);
            CHECK(g.compile(3 * MANY) == NG_OK);
        }
    } guest;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &guest, hooks.pressure = Guest::press;
    Face f(with_hooks(hooks));
    guest.f = &f;
    REQUIRE(guest.compile(MANY) == NG_OK);
    const ng_shape d = shape(NG_F32, {4});
    REQUIRE(ng_tensor_wrap(f.c, &d, f.data(f.make(d)), 16, Guest::end, &guest, &guest.loan, &f.error) == NG_OK);
    CHECK(ng_ctx_limit(f.c, f.stats().dev_bytes) == NG_OK);
    alarm(60);                                       // who waited for himself would do so for ever
    CHECK_MESSAGE(guest.compile(2 * MANY) == NG_OK, f.said());
    alarm(0);
    CHECK(guest.ends == 1);
    CHECK(f.programs.size() == 3);
}

TEST_CASE("P2: a run goes on while another thread makes its workspace grow")
{
    struct Guest {
        Face*      f = nullptr;
        ng_prog*   p = nullptr;
        ng_tensor *in = nullptr, *out = nullptr;
        ng_status  ran = NG_NOT_READY;

        static ng_expr* work(Face& f, int64_t n)
        {
            ng_expr* const x = f.param(0, shape(NG_F32, {n}));
            return ng_sub(x, ng_scan(ng_scan(x, 0, NG_FOLD_SUM, 0), 0, NG_FOLD_MAX, 0));
        }
        static int32_t press(void* user, uint64_t)
        {
            Guest& g = *static_cast<Guest*>(user);
            std::thread([&] { g.ran = g.f->run(g.p, {.args = {g.in}, .out = {g.out}}); }).join();
            return 0;
        }
    } guest;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &guest, hooks.pressure = Guest::press;
    Face f(with_hooks(hooks));
    guest.f = &f, guest.p = f.compile({Guest::work(f, MANY)});
    guest.in = f.tensor(Values(MANY, 1)), guest.out = f.tensor(Values(MANY, 0));
    CHECK(f.run(guest.p, {.args = {guest.in}, .out = {guest.out}}) >= NG_OK);
    CHECK(f.get(guest.out)[MANY - 1] == 1 - MANY);
    f.put(guest.out, Values(MANY, 0));
    CHECK(ng_ctx_limit(f.c, f.stats().dev_bytes) == NG_OK);
    ng_prog* none = nullptr;
    CHECK(f.try_compile({Guest::work(f, 2 * MANY)}, {.workspace_of = guest.p}, &none) == NG_E_DEVMEM);
    CHECK(guest.ran >= NG_OK);
    CHECK(guest.ran != NG_NOT_READY);
    CHECK(f.get(guest.out)[MANY - 1] == 1 - MANY);
    CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
    REQUIRE(f.try_compile({Guest::work(f, 2 * MANY)}, {.workspace_of = guest.p}, &none) == NG_OK);
    f.programs.push_back(none);
}

namespace {

// Memory of one element more than a program's argument, at its beginning, and its output, at its end: computed apart.
struct Shifted : Face {
    ng_tensor *whole, *head, *tail;
    ng_prog*   next;
    Shifted(const ng_ctx_desc& d, int64_t n) : Face(d), whole(tensor(Values(size_t(n + 1), 3))), head(part(whole, 0, 0, n)), tail(part(whole, 0, 1, n + 1))
    {
        ng_expr* const x = param(0, shape(NG_F32, {n}));
        next = compile({ng_add(x, ng_exp(ng_mul(x, ng_const(s, 0, 0))))}, {.alias = {0}});
        CHECK(shift() >= NG_OK);
        CHECK(last() == 4);
        CHECK(ng_ctx_sync(c, nullptr, UINT64_MAX, &error) == NG_OK);
    }
    ng_status shift() { return run(next, {.args = {head}, .out = {tail}}); }
    double    last() { return get(whole).back(); }
};

}  // namespace

TEST_CASE("T4: at the limit what was released makes room, however much it is")
{
    constexpr int COUNT = 300;
    Face f(description(0, 1));
    Hoard hoard;
    hoard.fill(f, COUNT);
    for (ng_tensor* t : hoard.spare) ng_tensor_release(t);
    ng_tensor* whole = nullptr;
    const ng_shape d = shape(NG_F32, {COUNT * MANY});
    REQUIRE_MESSAGE(ng_tensor_create(f.c, &d, &whole, &f.error) == NG_OK, std::string(f.error.text));
    ng_tensor_release(whole);
    CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
}

TEST_CASE("T4: a run whose output takes memory frees what was released, and calls neither pressure nor done")
{
    Hoard    hoard;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &hoard, hooks.pressure = Hoard::press;
    Shifted f(with_hooks(hooks), MANY);
    int        ends = 0;
    ng_tensor* loan = nullptr;
    const ng_shape d = shape(NG_F32, {4});
    REQUIRE(ng_tensor_wrap(f.c, &d, f.data(f.make(d)), 16, [](void* user) { ++*static_cast<int*>(user); }, &ends, &loan, &f.error) == NG_OK);
    hoard.fill(f, 1);
    ng_tensor_release(loan);
    CHECK(f.shift() == NG_E_DEVMEM);
    CHECK(hoard.asked == 0);
    CHECK(ends == 0);
    ng_tensor_release(hoard.spare[0]);
    CHECK_MESSAGE(f.shift() >= NG_OK, f.said());
    CHECK(hoard.asked == 0);
    CHECK(ends == 0);
    CHECK(f.last() == 5);
    CHECK(ng_ctx_poll(f.c, UINT64_MAX, &f.error) == NG_OK);
    CHECK(ends == 1);
    CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
}

TEST_CASE("T4: an output that a hook releases while its run computes it is kept to the end of the run")
{
    if (std::string_view(backend()) != "cpu") return;        // where no run calls parallel
    static ng_tensor* victim;
    static int        released;
    victim = nullptr, released = 0;
    ng_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.parallel = [](void*, uint32_t count, ng_task_fn task, void* arg) {
        released += victim != nullptr;
        ng_tensor_release(std::exchange(victim, nullptr));
        for (uint32_t i = 0; i < count; i++) task(arg, i);
    };
    ng_ctx_desc d = description(0, 4);
    d.hooks = &hooks;
    Shifted f(d, 20 * MANY);
    f.tensors.erase(std::ranges::find(f.tensors, f.tail));
    victim = f.tail;
    CHECK_MESSAGE(f.shift() >= NG_OK, f.said());
    CHECK(released == 1);
    CHECK(f.last() == 5);
    CHECK(f.shift() == NG_E_INVALID);
}

TEST_CASE("P2, T3: what a run takes for its time is back when it ends, and what was released when a view is made")
{
    if (std::string_view(backend()) != "cpu") return;        // memory of the host's here
    static int64_t held;
    held = 0;
    ng_allocator memory{};
    memory.size = sizeof memory;
    memory.alloc = [](void*, size_t bytes, size_t align, ng_purpose, ng_stream) {
        held += int64_t(bytes);
        align = std::max<size_t>(align, 64);
        return std::aligned_alloc(align, (bytes + align - 1) / align * align);
    };
    memory.free = [](void*, void* p, size_t bytes, ng_purpose, ng_stream) { held -= int64_t(bytes), std::free(p); };
    ng_ctx_desc d = description(0, 1);
    d.host = d.dev = &memory;
    Shifted f(d, MANY);
    CHECK(f.shift() == NG_OK);
    const int64_t first = held;
    for (int i = 0; i < 10; i++) CHECK(f.shift() == NG_OK);
    CHECK(held == first);
    ng_expr* const seen = ng_leaf(f.s, f.whole);
    for (int i = 0; i < 10; i++) {
        ng_tensor* t = f.view(seen);
        f.tensors.pop_back();
        ng_tensor_release(t);
        CHECK(held <= first + 4096);
    }
    ng_tensor* const spare = f.make(shape(NG_F32, {MANY}));
    f.tensors.pop_back();
    CHECK(held > first + 4096);
    ng_tensor_release(spare);
    (void)f.view(seen);
    CHECK(held <= first + 4096);
}
