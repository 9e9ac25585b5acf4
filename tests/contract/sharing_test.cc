// The rules of scopes and threads: who owns a node, what keeps what alive, contexts that do not mix, hooks on any thread.
#include "tests/contract/face.h"

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace {

bool lives(ng_expr* e)
{
    ng_shape d{};
    d.size = sizeof d;
    ng_error error{};
    const ng_status got = ng_expr_shape(e, &d, &error);
    CHECK((got == NG_OK || got == NG_E_INVALID));
    return got == NG_OK;
}
bool lives(ng_ctx* c)
{
    ng_stats st{};
    st.size = sizeof st;
    const ng_status got = ng_ctx_stats(c, &st);
    CHECK((got == NG_OK || got == NG_E_INVALID));
    return got == NG_OK;
}
// The numbers of e, or none where something failed.
std::vector<float> numbers(ng_ctx* c, ng_expr* e, size_t count)
{
    std::vector<float> v(count);
    ng_tensor* t = nullptr;
    const bool good = ng_eval(c, nullptr, &e, &t, 1, nullptr) == NG_OK && ng_tensor_get(t, v.data(), count * 4, nullptr) == NG_OK;
    ng_tensor_release(t);
    return good ? v : std::vector<float>();
}

}  // namespace

TEST_CASE("T1: an expression belongs to the youngest scope among its operands, whatever their order")
{
    Face f;
    ng_tensor* t = f.tensor({1, 2, 3});
    ng_scope *older = ng_scope_create(f.c, 0), *younger = ng_scope_create(f.c, 0);
    ng_expr *a = ng_leaf(older, t), *b = ng_leaf(younger, t);
    ng_expr *of_older = ng_neg(a), *mixed = ng_add(a, b), *turned = ng_sub(b, a), *further = ng_mul(of_older, mixed);
    ng_expr* const values[] = {a, b};
    ng_expr *text = ng_parse(older, "x * y", "x,y", values, 2), *joined = ng_concat(values, 2, 0);
    ng_scope_release(younger);
    for (ng_expr* e : {b, mixed, turned, further, text, joined}) CHECK_FALSE(lives(e));
    CHECK(lives(a));
    CHECK(f.eval(of_older) == Values{-1, -2, -3});
    // of an older scope that ends, the younger's nodes keep what they use
    younger = ng_scope_create(f.c, 0);
    ng_expr* kept = ng_mul(of_older, ng_leaf(younger, t));
    ng_scope_release(older);
    CHECK_FALSE(lives(of_older));
    CHECK(f.eval(kept) == Values{-1, -4, -9});
    ng_scope_release(younger);
    // without a scope each node is the caller's
    ng_expr *mine = ng_leaf(nullptr, t), *twice = ng_add(mine, mine);
    ng_expr_release(mine);
    CHECK_FALSE(lives(mine));
    CHECK(f.eval(twice) == Values{2, 4, 6});
    ng_expr_release(twice);
    CHECK_FALSE(lives(twice));
}

TEST_CASE("T1: many threads build in one scope at once, over old expressions that all use, and each gets its own results")
{
    constexpr int THREADS = 8, ROUNDS = 60;
    Face f(0, 3);
    ng_expr *x = f.leaf({1, 2, 3, 4}), *shared = ng_add(ng_mul(x, x), ng_const(f.s, 0, 1));
    const float base[] = {2, 5, 10, 17};
    std::atomic<int> wrong{0};
    together(THREADS, [&](int id) {
        ng_scope* own = ng_scope_create(f.c, 0);
        for (int round = 0; round < ROUNDS; round++) {
            // in the scope of all; in the thread's own; by a text; and a derivative
            ng_expr* all = ng_mul(shared, ng_const(f.s, 0, id + 1));
            ng_expr* mine = ng_mul(shared, ng_const(own, 0, id + 1 + round));
            ng_expr* values[] = {shared, x};
            ng_expr *text = ng_parse(f.s, "e * 2 + x", "e,x", values, 2), *dx = nullptr;
            wrong += ng_grad(&all, nullptr, 1, &x, &dx, 1, nullptr) != NG_OK;
            const std::vector<float> got[] = {numbers(f.c, all, 4), numbers(f.c, mine, 4), numbers(f.c, text, 4), numbers(f.c, dx, 4)};
            for (size_t i = 0; i < 4; i++) {
                const float want[] = {base[i] * float(id + 1), base[i] * float(id + 1 + round), base[i] * 2 + float(i + 1), 2 * float(i + 1) * float(id + 1)};
                for (int k = 0; k < 4; k++) wrong += got[k].size() != 4 || got[k][i] != want[k];
            }
        }
        ng_scope_release(own);
    });
    CHECK(wrong == 0);
    CHECK(f.eval(shared) == Values{2, 5, 10, 17});
}

TEST_CASE("T1: a scope may end while others build in it: what they get is good or NG_E_INVALID, what outlives it is theirs")
{
    for (int round = 0; round < 30; round++) {
        Face f(0, 1);
        ng_scope* s = ng_scope_create(f.c, 0);
        ng_expr* x = ng_leaf(s, f.tensor({1, 2}));
        std::atomic<int> odd{0};
        std::vector<ng_expr*> built[4];
        together(4, [&](int id) {
            if (id == 0) {
                for (int i = 0; i < 20 * (round % 5); i++) std::this_thread::yield();
                ng_scope_release(s);
                return;
            }
            for (int i = 0; i < 40; i++) {
                ng_expr *k = ng_const(nullptr, 0, i), *e = ng_add(x, k);
                ng_tensor* y = nullptr;
                const ng_status got = ng_eval(f.c, nullptr, &e, &y, 1, nullptr);
                float v[2] = {};
                if (got == NG_OK) odd += ng_tensor_get(y, v, 8, nullptr) != NG_OK || v[1] != 2 + float(i);
                else odd += got != NG_E_INVALID;
                ng_tensor_release(y), ng_expr_release(k);
                built[id].push_back(e);
            }
        });
        CHECK(odd == 0);
        CHECK_FALSE(lives(x));
        for (const std::vector<ng_expr*>& mine : built)
            for (ng_expr* e : mine) ng_expr_release(e);
    }
}

TEST_CASE("T2: releasing a scope releases its nodes; those that were retained are the caller's")
{
    Face f;
    ng_tensor* t = f.tensor({4, 9});
    ng_scope* s = ng_scope_create(f.c, 0);
    ng_expr *x = ng_leaf(s, t), *root = ng_sqrt(x), *top = ng_neg(root);
    ng_expr_retain(root);
    ng_scope_release(s);
    CHECK_FALSE(lives(x));
    CHECK_FALSE(lives(top));
    CHECK(f.eval(root) == Values{2, 3});
    ng_expr* on = ng_add(root, root);           // of nobody's scope, so the caller's too
    CHECK(f.eval(on) == Values{4, 6});
    ng_expr_release(root);
    CHECK_FALSE(lives(root));
    CHECK(f.eval(on) == Values{4, 6});
    ng_expr_release(on);
    ng_scope_release(s);                        // a scope that is gone
}

TEST_CASE("T2: equal nodes of one scope are one node: the room for 40 is enough for thousands of equal calls")
{
    Face f;
    ng_tensor* t = f.tensor({1, 2, 3});
    ng_scope* s = ng_scope_create(f.c, 40);
    const auto build = [&](double k) {
        ng_expr* x = ng_leaf(s, t);
        ng_expr* e = ng_add(ng_mul(x, ng_const(s, 0, k)), ng_exp(x));
        return ng_sum(ng_parse(s, "e * e + x", "e,x", std::vector<ng_expr*>{e, x}.data(), 2), NG_ALL, 0);
    };
    const Values want = f.eval(build(2));
    for (int i = 0; i < 2000; i++) build(2);
    CHECK(f.eval(build(2)) == want);
    // unlike ones are many: the room ends, the sentence says so, and what was there stays good
    ng_expr* last = nullptr;
    for (int i = 3; i < 60; i++) last = build(i);
    CHECK(f.fault(last) == NG_E_LIMIT);
    CHECK(f.eval(build(2)) == want);
    ng_scope_release(s);
}

TEST_CASE("T2: across scopes, equal subgraphs are found again when they are compiled")
{
    Face f;
    const ng_shape d = shape(NG_F32, {32, 32});
    ng_scope *a = ng_scope_create(f.c, 0), *b = ng_scope_create(nullptr, 0);
    const auto build = [&](ng_scope* s) {
        ng_expr *x = ng_param(s, 0, &d), *y = ng_param(s, 1, &d);
        return ng_exp(ng_matmul(ng_matmul(x, y, nullptr), y, nullptr));
    };
    ng_expr *one = build(a), *other = build(b);
    ng_prog *alone = f.compile({one}), *twins = f.compile({ng_neg(one), ng_sqrt(other)}), *single = f.compile({ng_neg(one), ng_sqrt(one)});
    CHECK(f.info(twins).flops == f.info(single).flops);
    CHECK(f.info(twins).kernels == f.info(single).kernels);
    CHECK(f.info(twins).moved_bytes == f.info(single).moved_bytes);
    CHECK(f.info(twins).flops < 2 * f.info(alone).flops);
    ng_scope_release(a);
    ng_scope_release(b);
}

TEST_CASE("T3: a tensor, an expression and a program keep their context alive, to the last of them and no longer")
{
    const ng_shape d = shape(NG_F32, {3});
    for (int kept = 0; kept < 3; kept++) {
        CAPTURE(kept);
        const ng_ctx_desc desc = description(0, 2);
        ng_ctx* c = nullptr;
        ng_error error{};
        ng_tensor *t = nullptr, *view = nullptr;
        ng_prog* p = nullptr;
        REQUIRE(ng_ctx_create(&desc, &c, &error) == NG_OK);
        REQUIRE(ng_tensor_create(c, &d, &t, &error) == NG_OK);
        REQUIRE(ng_tensor_fill(t, nullptr, 6, &error) == NG_OK);
        ng_scope* s = ng_scope_create(c, 0);
        ng_expr *x = ng_leaf(s, t), *y = ng_neg(ng_param(s, 0, &d));
        REQUIRE(ng_compile(c, nullptr, &y, 1, &p, &error) == NG_OK);
        ng_expr_retain(x);
        ng_scope_release(s);
        ng_ctx_release(c);
        float v[3] = {};
        if (kept != 0) ng_tensor_release(t);
        if (kept != 1) ng_expr_release(x);
        if (kept != 2) ng_prog_release(p);
        CHECK(lives(c));
        if (kept == 0) {
            CHECK(ng_tensor_ctx(t) == c);
            CHECK(ng_tensor_get(t, v, sizeof v, &error) == NG_OK);
            CHECK(v[2] == 6);
            ng_tensor_release(t);
        }
        if (kept == 1) {
            CHECK(ng_tensor_view(x, &view, &error) == NG_OK);
            CHECK(ng_tensor_get(view, v, sizeof v, &error) == NG_OK);
            CHECK(v[1] == 6);
            ng_tensor_release(view);
            CHECK(lives(c));
            ng_expr_release(x);
        }
        if (kept == 2) {
            ng_tensor* in_out[2] = {};
            for (ng_tensor*& made : in_out) REQUIRE(ng_tensor_create(c, &d, &made, &error) == NG_OK);
            CHECK(ng_tensor_fill(in_out[0], nullptr, 5, &error) == NG_OK);
            ng_run r{};
            r.size = sizeof r, r.nargs = r.nout = 1, r.args = in_out, r.out = in_out + 1;
            CHECK(ng_prog_run(p, nullptr, &r, &error) >= NG_OK);
            CHECK(ng_tensor_get(in_out[1], v, sizeof v, &error) == NG_OK);
            CHECK(v[0] == -5);
            for (ng_tensor* made : in_out) ng_tensor_release(made);
            CHECK(lives(c));
            ng_prog_release(p);
        }
        CHECK_FALSE(lives(c));
    }
}

TEST_CASE("T3: what is lent to a context that nobody closed comes back, be its program released before it or after")
{
    for (const bool program_first : {false, true}) {
        const ng_ctx_desc desc = description();
        const ng_shape d = shape(NG_F32, {4});
        ng_ctx* c = nullptr;
        ng_error error{};
        ng_tensor* t = nullptr;
        ng_prog* p = nullptr;
        Face lender;
        void* const memory = lender.data(lender.make(d));
        int ends = 0;
        REQUIRE(ng_ctx_create(&desc, &c, &error) == NG_OK);
        REQUIRE(ng_tensor_wrap(c, &d, memory, 16, [](void* user) { ++*static_cast<int*>(user); }, &ends, &t, &error) == NG_OK);
        ng_scope* s = ng_scope_create(c, 0);
        ng_expr* e = ng_exp(ng_leaf(s, t));
        REQUIRE(ng_compile(c, nullptr, &e, 1, &p, &error) == NG_OK);
        ng_scope_release(s);
        ng_tensor_release(t);
        if (program_first) ng_prog_release(p);
        ng_ctx_release(c);
        if (!program_first) ng_prog_release(p);
        CHECK_FALSE(lives(c));
        Face f;
        CHECK(ng_ctx_poll(f.c, 0, &f.error) == NG_OK);
        CHECK(ends == 1);
    }
}

TEST_CASE("T3: leaves, arguments, outputs and workspaces of another context are NG_E_INVALID; copies between contexts are allowed")
{
    Face f, g;
    const ng_shape d = shape(NG_F32, {3});
    ng_tensor *here = f.tensor({1, 2, 3}), *there = g.tensor({4, 5, 6}), *made = nullptr;
    ng_expr *foreign = ng_leaf(g.s, there), *mixed = ng_add(ng_leaf(f.s, here), foreign), *own = ng_leaf(f.s, here);
    CHECK(f.fault(foreign) == NG_E_INVALID);
    CHECK(f.fault(mixed) == NG_E_INVALID);
    CHECK(g.fault(mixed) == NG_E_INVALID);
    CHECK(f.eval_into({own}, {there}) == NG_E_INVALID);
    CHECK(ng_eval(g.c, nullptr, &own, &made, 1, &g.error) == NG_E_INVALID);
    CHECK(made == nullptr);
    ng_prog* none = nullptr;
    CHECK(f.try_compile({foreign}, {}, &none) == NG_E_INVALID);
    CHECK(f.try_compile({own}, {.workspace_of = g.compile({ng_neg(g.param(0, d))})}, &none) == NG_E_INVALID);
    CHECK(none == nullptr);
    ng_prog* p = f.compile({ng_neg(f.param(0, d))});
    ng_tensor* y = f.make(d);
    const int64_t bytes = int64_t(f.info(p).workspace_bytes);
    CHECK(f.run(p, {.args = {there}, .out = {y}}) == NG_E_INVALID);
    CHECK(f.run(p, {.args = {here}, .out = {there}}) == NG_E_INVALID);
    CHECK(f.run(p, {.args = {here}, .out = {y}, .workspace = g.make(shape(NG_U8, {std::max<int64_t>(bytes, 1)}))}) == NG_E_INVALID);
    CHECK(f.run(p, {.args = {here}, .out = {y}}) == NG_OK);
    CHECK(g.get(there) == Values{4, 5, 6});
    CHECK(ng_tensor_copy(here, there, nullptr, &f.error) == NG_OK);
    CHECK(f.get(here) == Values{4, 5, 6});
}

namespace {

// Things that hooks release, each once.
struct Litter {
    std::mutex lock;
    std::vector<ng_tensor*> tensors;
    std::vector<ng_expr*> exprs;
    std::atomic<int> released{0}, pressed{0};
    std::atomic<bool> is_collected{false};      // by every hook; before that by none

    void drop_one()
    {
        ng_tensor* t = nullptr;
        ng_expr* e = nullptr;
        {
            const std::lock_guard hold(lock);
            if (!tensors.empty()) t = tensors.back(), tensors.pop_back();
            if (!exprs.empty()) e = exprs.back(), exprs.pop_back();
        }
        released += (t != nullptr) + (e != nullptr);
        ng_tensor_release(t), ng_expr_release(e);
    }
    void collect()
    {
        if (is_collected) drop_one();
    }
    static Litter& at(void* user) { return *static_cast<Litter*>(user); }
};

}  // namespace

TEST_CASE("T4: every hook may release: parallel, trace, the allocator's, and pressure makes room by it")
{
    Litter litter;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &litter;
    hooks.parallel = [](void* user, uint32_t count, ng_task_fn task, void* arg) {
        Litter::at(user).collect();
        for (uint32_t i = 0; i < count; i++) task(arg, i);
    };
    hooks.trace = [](void* user, uint32_t, const char*, ng_stream) { Litter::at(user).collect(); };
    hooks.log = [](void* user, int32_t, const char*) { Litter::at(user).collect(); };
    hooks.pressure = [](void* user, uint64_t) -> int32_t {
        Litter& l = Litter::at(user);
        const int before = l.released;
        l.pressed++, l.drop_one();
        return l.released != before;
    };
    ng_allocator heap{};
    heap.size = sizeof heap, heap.user = &litter;
    heap.alloc = [](void* user, size_t bytes, size_t align, ng_purpose, ng_stream) {
        Litter::at(user).collect();
        align = std::max<size_t>(align, 64);
        return std::aligned_alloc(align, (bytes + align - 1) / align * align);
    };
    heap.free = [](void*, void* p, size_t, ng_purpose, ng_stream) { std::free(p); };
    ng_ctx_desc d = description(0, 4);
    d.hooks = &hooks, d.host = d.dev = &heap;
    Face f(d);
    const ng_shape big = shape(NG_F32, {50000});
    ng_expr* x = f.leaf(counted(50000));
    const auto litter_up = [&](int n) {
        for (int i = 0; i < n; i++) {
            ng_tensor* t = nullptr;
            REQUIRE(ng_tensor_create(f.c, &big, &t, &f.error) == NG_OK);
            ng_expr *leaf = ng_leaf(nullptr, t), *e = ng_neg(leaf);
            ng_expr_release(leaf);
            const std::lock_guard hold(litter.lock);
            litter.tensors.push_back(t), litter.exprs.push_back(e);
        }
    };
    litter_up(60);
    CHECK(litter.released == 0);
    litter.is_collected = true;
    for (int i = 0; i < 10; i++) CHECK(f.eval(ng_sum(ng_add(x, ng_const(f.s, 0, i)), NG_ALL, 0)).size() == 1);
    CHECK(litter.released >= 20);
    // no room but what the pressure hook frees, one thing a time
    litter.is_collected = false;
    const int before = litter.released;
    litter_up(10);
    CHECK(ng_ctx_limit(f.c, f.stats().dev_bytes) == NG_OK);
    ng_tensor *more = nullptr, *too_much = nullptr;
    const ng_shape twice = shape(NG_F32, {100000}), huge = shape(NG_F32, {100000000});
    CHECK(ng_tensor_create(f.c, &twice, &more, &f.error) == NG_OK);
    CHECK(litter.pressed > 0);
    CHECK(litter.released > before);
    CHECK(ng_tensor_create(f.c, &huge, &too_much, &f.error) == NG_E_DEVMEM);
    CHECK(too_much == nullptr);
    ng_tensor_release(more);
    while (!litter.tensors.empty() || !litter.exprs.empty()) litter.drop_one();
    CHECK(ng_ctx_limit(f.c, 0) == NG_OK);
}

TEST_CASE("T4: done comes on whatever thread is inside, under NG_CTX_POLL only on one that polls, syncs or closes")
{
    constexpr int THREADS = 6, ROUNDS = 200;
    static thread_local bool is_polling;
    static std::atomic<int> ends, strays;
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_POLL)}) {
        ends = strays = 0;
        {
            Face f(flags, 2);
            const ng_shape d = shape(NG_F32, {16});
            std::atomic<int> wrong{0};
            together(THREADS, [&](int id) {
                float memory[16];
                for (int i = 0; i < ROUNDS; i++) {
                    if (id == 0) {
                        is_polling = true;
                        wrong += (i % 2 ? ng_ctx_poll(f.c, 0, nullptr) : ng_ctx_sync(f.c, nullptr, 0, nullptr)) < 0;       // a look may come while another thread is in a done
                        is_polling = false;
                        continue;
                    }
                    ng_tensor *t = nullptr, *y = nullptr;
                    const ng_done_fn done = [](void*) { ends++, strays += !is_polling; };
                    wrong += ng_tensor_wrap(f.c, &d, memory, sizeof memory, done, nullptr, &t, nullptr) != NG_OK;
                    wrong += ng_tensor_fill(t, nullptr, id, nullptr) != NG_OK;
                    ng_expr *x = ng_leaf(nullptr, t), *e = ng_add(x, x);
                    wrong += ng_eval(f.c, nullptr, &e, &y, 1, nullptr) != NG_OK;
                    float v[16] = {};
                    wrong += ng_tensor_get(y, v, sizeof v, nullptr) != NG_OK || v[9] != 2 * float(id);
                    ng_expr_release(x), ng_expr_release(e);
                    ng_tensor_release(t), ng_tensor_release(y);
                }
            });
            CHECK(wrong == 0);
            is_polling = true;
            CHECK(ng_ctx_poll(f.c, UINT64_MAX, &f.error) == NG_OK);
            is_polling = false;
            CHECK(ends == (THREADS - 1) * ROUNDS);
        }
        if (flags) CHECK(strays == 0);
    }
}
