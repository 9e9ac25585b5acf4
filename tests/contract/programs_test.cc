// The rules of programs: ready at once and then for every length, nothing done beside the work, bits, bytes.
#include "tests/contract/face.h"

#include <atomic>
#include <functional>
#include <new>
#include <random>
#include <thread>

namespace {
std::atomic<bool> armed{false};
std::atomic<int> news{0};
}

// Whoever allocates past the hooks is counted as well, but under ThreadSanitizer, which has operators of its own.
#if !defined __SANITIZE_THREAD__
[[gnu::noinline]] void* operator new(size_t bytes)
{
    news += armed.load();
    if (void* p = std::malloc(bytes ? bytes : 1)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept
{
    news += armed.load();
    return std::malloc(bytes ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace {
struct Heap {
    std::atomic<int> calls{0};
    ng_allocator table{};
    Heap()
    {
        table.size = sizeof table, table.user = this;
        table.alloc = [](void* user, size_t bytes, size_t align, ng_purpose, ng_stream) {
            static_cast<Heap*>(user)->calls++;
            align = std::max<size_t>(align, 64);
            return std::aligned_alloc(align, (bytes + align - 1) / align * align);
        };
        table.free = [](void* user, void* p, size_t, ng_purpose, ng_stream) {
            static_cast<Heap*>(user)->calls++;
            std::free(p);
        };
    }
};
Values waves(size_t n, double pace = 0.7)
{
    Values v(n);
    for (size_t i = 0; i < n; i++) v[i] = float(std::sin(pace * double(i)));
    return v;
}
// Products, row and column reductions, element-wise work, an index and a random number: [-1, 24] by [24, 8].
Exprs busy(Face& f)
{
    const ng_shape rows = shape(NG_F32, {-1, 24}), columns = shape(NG_F32, {24, 8}), noise = shape(NG_F32, {-1, 8});
    ng_expr *x = f.param(0, rows), *w = f.param(1, columns);
    ng_expr* h = ng_softmax(ng_matmul(ng_keep(ng_exp(x)), w, nullptr), NG_AXIS_1);
    ng_expr* y = ng_add(h, ng_random(f.s, NG_UNIFORM, f.whole(5, NG_U64), ng_scalar(f.s, NG_U64, 0), &noise));
    return {y, ng_sum(y, NG_AXIS_0, 0), ng_argmax(h, NG_AXIS_1, 0)};
}
struct Busy {
    ng_tensor *x, *w, *y, *sum, *top;
    uint64_t step = 3;
    Busy(Face& f, int64_t n)
        : x(f.tensor(shape(NG_F32, {n, 24}), waves(size_t(n) * 24))), w(f.tensor(shape(NG_F32, {24, 8}), waves(192, 1.3))),
          y(f.make(shape(NG_F32, {n, 8}))), sum(f.make(shape(NG_F32, {8}))), top(f.make(shape(NG_I64, {n}))) {}
    Call call() const { return {.args = {x, w}, .out = {y, sum, top}, .scalars = &step, .scalar_bytes = sizeof step}; }
    Values all(Face& f) const
    {
        Values v = f.get(y);
        for (ng_tensor* t : {sum, top})
            for (double d : f.get(t)) v.push_back(d);
        return v;
    }
};
}

TEST_CASE("P1: a program runs when ng_compile returns, and after ng_prog_wait no length and no alignment is slow")
{
    Face f;
    ng_prog* p = nullptr;
    REQUIRE(f.try_compile(busy(f), {.length_max = {300}}, &p) == NG_OK);
    f.programs.push_back(p);
    const ng_prog_info asked_early = f.info(p);
    const Busy first(f, 17);
    const ng_status early = f.run(p, first.call());
    CHECK((early == NG_OK || early == NG_SLOW));
    const Values before = first.all(f);
    REQUIRE(ng_prog_wait(p, UINT64_MAX, &f.error) == NG_OK);
    const ng_prog_info ready = f.info(p);
    CHECK(asked_early.kernels == ready.kernels);
    CHECK(asked_early.workspace_bytes == ready.workspace_bytes);
    CHECK(asked_early.moved_bytes == ready.moved_bytes);
    CHECK(asked_early.flops == ready.flops);
    CHECK(ready.runs == 1);
    const ng_stats built = f.stats();
    for (int64_t n : {1, 2, 3, 16, 17, 31, 64, 127, 255, 300}) {
        const Busy b(f, n);
        CHECK(f.run(p, b.call()) == NG_OK);
    }
    // rows that begin at no boundary but their own
    Values v = waves(17 * 24);
    v.insert(v.begin(), 0);
    Call odd = first.call();
    odd.args[0] = f.wrap(shape(NG_F32, {17, 24}), static_cast<float*>(f.data(f.tensor(v))) + 1, 17 * 24 * 4);
    CHECK(f.run(p, odd) == NG_OK);
    CHECK(differs(first.all(f), before, 1e-5, 1e-5) == "");
    CHECK(f.stats().jit_compiles == built.jit_compiles);
    CHECK(f.stats().interim_runs == built.interim_runs);
}

TEST_CASE("P2: with one thread a run allocates nothing and uses no hook")
{
    Heap host, dev;
    ng_ctx_desc d = description(0, 1);
    d.host = &host.table, d.dev = &dev.table;
    Face f(d);
    ng_prog* p = f.compile(busy(f), {.length_max = {200}});
    const Busy b(f, 200), small(f, 7);
    const Call calls[] = {b.call(), small.call()};
    ng_run r[2] = {};
    for (int i = 0; i < 2; i++) {
        r[i].size = sizeof *r, r[i].nargs = 2, r[i].nout = 3, r[i].args = calls[i].args.data(), r[i].out = calls[i].out.data();
        r[i].scalars = calls[i].scalars, r[i].scalar_bytes = calls[i].scalar_bytes;
    }
    const int before = host.calls + dev.calls;
    armed = true;
    ng_status got = NG_OK;
    for (int i = 0; i < 20; i++) got |= ng_prog_run(p, nullptr, &r[i % 2], &f.error);
    armed = false;
    CHECK(got == NG_OK);
    CHECK(news.exchange(0) == 0);
    CHECK(host.calls + dev.calls == before);
}

TEST_CASE("P2: a workspace that cannot be kept is NG_E_DEVMEM by its tag when compiled")
{
    Face f;
    const ng_shape d = shape(NG_F32, {256, 256});
    ng_expr *x = f.param(0, d), *kept = ng_tag(ng_keep(ng_matmul(x, x, nullptr)), "hidden");
    ng_expr* e = ng_matmul(kept, ng_matmul(kept, kept, nullptr), nullptr);
    ng_prog *none = nullptr, *p = f.compile({e});
    CHECK(f.info(p).workspace_bytes >= 256 * 256 * 4);
    CHECK(f.try_compile({e}, {.workspace_max = 1000}, &none) == NG_E_DEVMEM);
    CHECK(f.says("hidden"));
    CHECK(none == nullptr);
    CHECK(f.try_compile({ng_matmul(ng_matmul(x, x, nullptr), ng_matmul(x, x, nullptr), nullptr)}, {.workspace_max = 1000}, &none) == NG_E_DEVMEM);
    CHECK(f.says("ng_compile: f32 [256, 256] needs "));            // nothing has a tag
    const uint64_t enough = f.info(p).workspace_bytes;
    CHECK(f.try_compile({e}, {.workspace_max = enough}, &none) == NG_OK);
    ng_prog_release(none);
}

TEST_CASE("ports: an output has its own tag's name, cut between characters, and no name of what it reads")
{
    Face f;
    ng_expr* x = ng_tag(f.param(0, shape(NG_F32, {8})), "x");
    std::string accents;
    for (int i = 0; i < 200; i++) accents += "\xc3\xa9";
    const auto names = [&](const Exprs& outs) {
        ng_prog* p = f.compile(outs);
        std::vector<std::string> all;
        for (uint32_t i = 0; i <= outs.size(); i++) {
            const char* name = nullptr;
            REQUIRE(ng_prog_port(p, i, nullptr, &name, &f.error) == NG_OK);
            all.push_back(name);
        }
        ng_prog_release(p);
        return all;
    };
    CHECK(names({x, ng_slice(x, 0, 1, 5, 1), ng_cast(x, NG_F64), ng_keep(ng_tag(ng_exp(x), "y")), ng_tag(ng_abs(x), accents.c_str())}) ==
          std::vector<std::string>{"x", "x", "", "", "y", accents.substr(0, 254)});
    CHECK(names({ng_tag(x, std::string(255, 'z').c_str()), ng_tag(x, ("z" + accents).c_str())}) == std::vector<std::string>{"x", std::string(255, 'z'), "z" + accents.substr(0, 254)});
}

TEST_CASE("P2: two runs at once need two workspaces; the one without says NG_NOT_READY and does nothing")
{
    struct Hall {
        std::function<void()> inside;
        std::atomic<int> depth{0};
    } hall;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &hall;
    hooks.parallel = [](void* user, uint32_t count, ng_task_fn task, void* arg) {
        Hall& h = *static_cast<Hall*>(user);
        if (h.depth++ == 0 && h.inside) std::thread(h.inside).join();
        for (uint32_t i = 0; i < count; i++) task(arg, i);
        h.depth--;
    };
    ng_ctx_desc d = description(0, 4);
    d.hooks = &hooks;
    Face f(d);
    const Plan one{.length_max = {3000}}, two{.length_max = {3000}, .runs = 2};
    ng_prog *alone = f.compile(busy(f), one), *pair = f.compile(busy(f), two);
    const uint64_t bytes = f.info(alone).workspace_bytes;
    REQUIRE(bytes > 0);
    ng_tensor* own = f.make(shape(NG_U8, {int64_t(bytes)}));
    const Busy outer(f, 3000), inner(f, 3000);
    const auto nested = [&](ng_prog* p, ng_tensor* workspace) {
        ng_status got = NG_E_BUG;
        bool was_inside = false;
        Call call = inner.call();
        call.workspace = workspace;
        hall.inside = [&] { was_inside = true, got = f.run(p, call); };
        CHECK(f.run(p, outer.call()) == NG_OK);
        hall.inside = nullptr;
        REQUIRE(was_inside);
        return got;
    };
    CHECK(ng_tensor_fill(inner.y, nullptr, -1, &f.error) == NG_OK);
    CHECK(nested(alone, nullptr) == NG_NOT_READY);
    CHECK(differs(f.get(inner.y), Values(3000 * 8, -1)) == "");
    CHECK(nested(alone, own) == NG_OK);
    CHECK(differs(inner.all(f), outer.all(f)) == "");
    Call call = inner.call(), elsewhere = outer.call();
    call.workspace = elsewhere.workspace = own;
    ng_status got = NG_E_BUG;
    hall.inside = [&] { hall.inside = nullptr, got = f.run(pair, elsewhere); };
    CHECK(f.run(alone, call) == NG_OK);
    CHECK(got == NG_NOT_READY);
    CHECK(f.run(pair, elsewhere) == NG_OK);
    CHECK(nested(pair, nullptr) == NG_OK);
    CHECK(f.run(alone, outer.call()) == NG_OK);
}

TEST_CASE("P3: constants, scalars, keys, extents and strides are no part of a kernel's key")
{
    Face f;
    const auto build = [&](int64_t n, double a, int64_t key, bool strided) {
        const ng_shape d = strided ? shape(NG_F32, {n, 3}, {5, 1}) : shape(NG_F32, {n, 3}), dense = shape(NG_F32, {n, 3});
        ng_expr* noise = ng_random(f.s, NG_UNIFORM, f.whole(key, NG_U64), nullptr, &dense);
        ng_expr* e = f.text("(x * a + b) * r", "x,a,b,r", {f.param(0, d), ng_const(f.s, NG_F32, a), ng_scalar(f.s, NG_F32, 0), noise});
        return f.compile({e, ng_sum(e, NG_AXIS_1, 0)});
    };
    build(64, 2, 1, false), build(64, 2, 1, true);
    const uint64_t built = f.stats().jit_compiles;
    build(64, 3, 1, false), build(64, 2, 9, false), build(4096, -1, 7, true), build(1024, 0.5, 3, false);
    CHECK(f.stats().jit_compiles == built);
}

TEST_CASE("P2: a workspace that will not do is refused by what it lacks, and nothing runs")
{
    Face f, g;
    ng_prog* const p = f.compile(busy(f), {.length_max = {3000}});
    const int64_t bytes = int64_t(f.info(p).workspace_bytes);
    REQUIRE(bytes > 0);
    const Busy work(f, 3000);
    ng_tensor *const long_enough = f.make(shape(NG_U8, {bytes + 64})), *const wide = f.make(shape(NG_U8, {2 * bytes}));
    const struct { ng_tensor* workspace; const char* lack; } lacking[] = {
        {g.make(shape(NG_U8, {bytes})), "another context"},
        {f.part(long_enough, 0, 0, bytes - 1), "the program needs"},
        {f.part(long_enough, 0, 1, bytes + 1), "multiple of 64"},
        {f.part(wide, 0, 0, 2 * bytes, 2), "strided"},
    };
    CHECK(ng_tensor_fill(work.y, nullptr, -1, &f.error) == NG_OK);
    for (const auto& l : lacking) {
        Call call = work.call();
        call.workspace = l.workspace;
        CHECK(f.run(p, call) == NG_E_INVALID);
        CHECK_MESSAGE(f.says(l.lack), f.said());
        CHECK(differs(f.get(work.y), Values(3000 * 8, -1)) == "");
    }
    Call call = work.call();
    call.workspace = f.part(long_enough, 0, 0, bytes);
    CHECK(f.run(p, call) == NG_OK);
}

TEST_CASE("P2: a run whose workspace is also its argument is refused before anything is written there")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1});
    ng_prog* const p = f.compile({ng_neg(f.param(0, d))}, {.length_max = {4096}});
    const auto     elements = int64_t(f.info(p).workspace_bytes / 4 + 16);
    ng_tensor *const memory = f.tensor(shape(NG_F32, {elements}), Values(size_t(elements), 1)), *const out = f.make(shape(NG_F32, {elements}));
    if (elements > 4096) return;
    Call call = {.args = {memory}, .out = {out}};
    call.workspace = memory;
    CHECK(f.run(p, call) == NG_E_INVALID);
    CHECK_MESSAGE(f.says("overlaps argument 0"), f.said());
    CHECK(differs(f.get(memory), Values(size_t(elements), 1)) == "");
}

TEST_CASE("P4: strides are those declared unless NG_ANY, alignment is the kernel's business")
{
    Face f;
    const ng_shape dense = shape(NG_F32, {4, 3}), any = shape(NG_F32, {4, 3}, {}, NG_ANY), wide = shape(NG_F32, {4, 3}, {5, 1});
    ng_tensor *rows = f.tensor(dense, counted(12)), *columns = f.tensor(shape(NG_F32, {4, 3}, {1, 4}), counted(12)), *y = f.make(dense);
    ng_prog *strict = f.compile({ng_neg(f.param(0, dense))}), *padded = f.compile({ng_neg(f.param(0, wide))});
    ng_prog *free = f.compile({ng_neg(f.param(0, any))}, {.out = {&any}});
    CHECK(f.run(strict, {.args = {columns}, .out = {y}}) == NG_E_SHAPE);
    CHECK(f.error.text[0]);
    CHECK(f.run(strict, {.args = {rows}, .out = {columns}}) == NG_E_SHAPE);
    CHECK(f.run(padded, {.args = {rows}, .out = {y}}) == NG_E_SHAPE);
    CHECK(f.run(strict, {.args = {rows}, .out = {y}}) == NG_OK);
    CHECK(f.run(free, {.args = {columns}, .out = {y}}) == NG_OK);
    CHECK(differs(f.get(y), {-0., -4, -8, -1, -5, -9, -2, -6, -10, -3, -7, -11}) == "");
    ng_tensor* other = f.make(shape(NG_F32, {4, 3}, {1, 4}));
    CHECK(f.run(free, {.args = {rows}, .out = {other}}) == NG_OK);
    CHECK(differs(f.get(other), {-0., -3, -6, -9, -1, -4, -7, -10, -2, -5, -8, -11}) == "");
    float* const memory = static_cast<float*>(f.data(f.tensor(counted(13, -1))));
    CHECK(f.run(strict, {.args = {f.wrap(dense, memory + 1, 48)}, .out = {y}}) == NG_OK);
    CHECK(differs(f.get(y), counted(12, 0, -1)) == "");
}

TEST_CASE("P4: lengths above length_max, missing ones, too few scalars, a wrong nout, memory too small")
{
    Face f;
    const ng_shape d = shape(NG_F32, {-1});
    ng_prog* p = f.compile({ng_mul(f.param(0, d), ng_scalar(f.s, NG_F32, 4))}, {.length_max = {8}});
    CHECK(f.info(p).scalar_bytes == 8);
    CHECK(f.info(p).nlength == 1);
    const float scalars[2] = {9, 2};
    const auto at = [&](int64_t n, uint32_t bytes) {
        ng_tensor *x = f.tensor(counted(size_t(n))), *y = f.make(shape(NG_F32, {n}));
        return f.run(p, {.args = {x}, .out = {y}, .scalars = scalars, .scalar_bytes = bytes});
    };
    CHECK(at(8, 8) == NG_OK);
    CHECK(at(8, 12 - 1) == NG_OK);
    CHECK(at(9, 8) == NG_E_LIMIT);
    CHECK(f.says("9"));
    CHECK(at(8, 4) == NG_E_INVALID);
    CHECK(at(8, 0) == NG_E_INVALID);
    ng_tensor *x = f.tensor(counted(4)), *y = f.make(shape(NG_F32, {4}));
    CHECK(f.run(p, {.args = {x}, .out = {}, .scalars = scalars, .scalar_bytes = 8}) == NG_E_INVALID);
    CHECK(f.run(p, {.args = {x}, .out = {y, y}, .scalars = scalars, .scalar_bytes = 8}) == NG_E_INVALID);
    CHECK(f.run(p, {.args = {}, .out = {y}, .scalars = scalars, .scalar_bytes = 8}) == NG_E_INVALID);
    CHECK(f.says("the program's argument 0 is f32 [-1]"));
    ng_prog* steps = f.compile({ng_iota(f.s, &d, 0)}, {.length_max = {8}});
    Call nothing{.out = {nullptr}};
    CHECK(f.run(steps, nothing) == NG_E_INVALID);
    float memory[4] = {};
    ng_tensor* t = nullptr;
    const ng_shape five = shape(NG_F32, {5}), apart = shape(NG_F32, {3}, {2});
    CHECK(ng_tensor_wrap(f.c, &five, memory, 16, nullptr, nullptr, &t, &f.error) == NG_E_SHAPE);
    CHECK(ng_tensor_wrap(f.c, &apart, memory, 16, nullptr, nullptr, &t, &f.error) == NG_E_SHAPE);
    CHECK(t == nullptr);
}

TEST_CASE("P6: deterministic results are the same bits for any number of threads and under a hook")
{
    const auto results = [](uint32_t threads, bool hooked) {
        ng_hooks hooks{};
        hooks.size = sizeof hooks;
        hooks.parallel = [](void*, uint32_t count, ng_task_fn task, void* arg) {
            for (uint32_t i = count; i-- > 0;) task(arg, i);
        };
        ng_ctx_desc d = description(NG_CTX_DETERMINISTIC, threads);
        if (hooked) d.hooks = &hooks;
        Face f(d);
        constexpr int64_t N = 100003;
        ng_expr *x = f.leaf(waves(N)), *i = ng_leaf(f.s, f.tensor(shape(NG_I64, {N}), [] {
            Values v(N);
            for (size_t k = 0; k < v.size(); k++) v[k] = double(k * k % 11);
            return v;
        }()));
        ng_expr* m = f.leaf(shape(NG_F32, {97, 311}), waves(97 * 311));
        const int32_t swap[] = {1, 0};
        ng_expr* bins = ng_put(f.leaf(Values(11)), i, x, 0, NG_FOLD_SUM);
        Values all;
        for (ng_expr* e : {ng_sum(x, NG_ALL, 0), ng_logsumexp(x, NG_ALL, 0), bins, ng_scan(x, 0, NG_FOLD_SUM, 0), ng_matmul(m, ng_permute(m, swap, 2), nullptr),
                           ng_var(m, NG_AXIS_0, 0), ng_softmax(m, NG_AXIS_1)})
            for (double v : f.eval(e)) all.push_back(v);
        return all;
    };
    const Values one = results(1, false);
    CHECK(differs(results(2, false), one) == "");
    CHECK(differs(results(5, false), one) == "");
    CHECK(differs(results(4, true), one) == "");
}

TEST_CASE("P7: NG_CTX_NO_JIT compiles nothing and computes the same")
{
    Values want;
    {
        Face f;
        ng_prog* p = f.compile(busy(f), {.length_max = {50}});
        const Busy b(f, 50);
        CHECK(f.run(p, b.call()) == NG_OK);
        want = b.all(f);
    }
    Face f(NG_CTX_NO_JIT);
    ng_prog* p = f.compile(busy(f), {.length_max = {50}});
    const Busy b(f, 50);
    CHECK(f.run(p, b.call()) >= NG_OK);
    CHECK(differs(b.all(f), want, 1e-5, 1e-5) == "");
    CHECK(f.stats().jit_compiles == 0);
}

TEST_CASE("P8: whatever compiles can be saved and loaded: greatest lengths without a limit, too")
{
    Face f;
    ng_prog* const p = f.compile({ng_neg(f.param(0, shape(NG_F32, {-1})))}, {.length_max = {std::numeric_limits<int64_t>::max() / 64}});
    char   saved[4096];
    size_t bytes = sizeof saved;
    REQUIRE_MESSAGE(ng_prog_save(p, 0, saved, &bytes, &f.error) == NG_OK, f.said());
    ng_prog* q = nullptr;
    REQUIRE_MESSAGE(ng_prog_load(f.c, 0, saved, bytes, &q, &f.error) == NG_OK, f.said());
    f.programs.push_back(q);
    ng_tensor* const y = f.make(shape(NG_F32, {3}));
    CHECK(f.run(q, {.args = {f.tensor({1, 2, 3})}, .out = {y}}) == NG_OK);
    CHECK(differs(f.get(y), {-1, -2, -3}) == "");
}

TEST_CASE("P8: a saved program is the same program when loaded, code or no code; cut or damaged bytes are an error")
{
    Face f(NG_CTX_DETERMINISTIC), other(NG_CTX_DETERMINISTIC);
    ng_prog* p = f.compile(busy(f), {.length_max = {50}});
    const Busy b(f, 41);
    CHECK(f.run(p, b.call()) == NG_OK);
    const Values want = b.all(f);
    for (uint32_t flags : {0u, uint32_t(NG_CODE)}) {
        size_t bytes = 0;
        REQUIRE_MESSAGE(ng_prog_save(p, flags, nullptr, &bytes, &f.error) == NG_OK, f.said());
        std::vector<char> saved(bytes);
        size_t room = bytes - 1;
        CHECK(ng_prog_save(p, flags, saved.data(), &room, &f.error) == NG_E_LIMIT);
        CHECK(room == bytes);
        REQUIRE(ng_prog_save(p, flags, saved.data(), &room, &f.error) == NG_OK);
        ng_prog* q = nullptr;
        REQUIRE_MESSAGE(ng_prog_load(other.c, flags, saved.data(), bytes, &q, &other.error) == NG_OK, other.said());
        other.programs.push_back(q);
        const Busy there(other, 41);
        CHECK(other.run(q, there.call()) >= NG_OK);
        CHECK(differs(there.all(other), want) == "");
        CHECK(other.info(q).nargs == f.info(p).nargs);
        CHECK(other.info(q).scalar_bytes == f.info(p).scalar_bytes);
        for (size_t n = 0; n < bytes; n += 1 + bytes / 200) {
            const std::vector<char> cut(saved.begin(), saved.begin() + std::ptrdiff_t(n));
            ng_prog* none = nullptr;
            CHECK(ng_prog_load(other.c, flags, cut.data(), n, &none, &other.error) < 0);
            CHECK(none == nullptr);
        }
        // under NG_CODE the caller vouches for the bytes, so only those without are damaged here
        std::mt19937 random(7);
        for (int round = 0; round < 300 && !flags; round++) {
            std::vector<char> bad = saved;
            for (int k = 0; k <= round % 5; k++) bad[random() % bytes] ^= char(1 << random() % 8);
            ng_prog* maybe = nullptr;
            const ng_status got = ng_prog_load(other.c, 0, bad.data(), bytes, &maybe, &other.error);
            CHECK((maybe != nullptr) == (got >= 0));
            if (maybe) other.run(maybe, there.call());  // any status, but no harm
            ng_prog_release(maybe);
        }
    }
}
