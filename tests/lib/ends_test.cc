// The ends of loans and contexts: by the last release, by close, by fork; done once, hooks never from a release.
#include "tests/lib/world.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace {

void count_done(void* user) { ++*static_cast<std::atomic<int>*>(user); }

}  // namespace

TEST_CASE("done: once, not before the last use, never from a release; NG_CTX_POLL keeps it for poll, sync and close")
{
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_POLL)}) {
        std::atomic<int> done{0};
        ng_ctx* c = open_ctx(flags);
        ng_tensor* t = lent(c, done);
        ng_tensor_retain(t);
        ng_tensor_release(t);
        CHECK(ng_ctx_poll(c, 0, &error) == NG_OK);
        CHECK(done == 0);
        ng_tensor_release(t);
        CHECK(done == 0);
        CHECK(stats(c).tensors == 0);
        CHECK(done == (flags ? 0 : 1));
        CHECK(ng_ctx_sync(c, nullptr, 0, &error) == NG_OK);
        CHECK(done == 1);
        t = lent(c, done);
        ng_tensor* u = lent(c, done);
        CHECK(ng_tensor_close(t, &error) == NG_OK);
        CHECK(done == 2);
        CHECK(ng_ctx_close(c, 0, &error) == NG_OK);
        CHECK(done == 3);
        ng_tensor_release(t);
        ng_tensor_release(u);
        ng_ctx_release(c);
        CHECK(done == 3);
    }
}

TEST_CASE("S5: a call on another context removes nothing of one that is being closed, whose dones never nest")
{
    constexpr int COUNT = 40;
    struct Chain {
        ng_ctx* other;
        std::vector<ng_tensor*> tensors;
        int depth = 0, deepest = 0, done = 0;
    };
    static Chain chain;
    chain = {open_ctx(), {}};
    ng_ctx* const c = open_ctx();
    ng_tensor* const kept = tensor(c, 4);
    const ng_shape d = vec(4);
    static float memory[4];
    const auto release_next = [](void*) {
        chain.deepest = std::max(chain.deepest, ++chain.depth), chain.done++;
        if (!chain.tensors.empty()) {
            ng_tensor_release(chain.tensors.back());
            chain.tensors.pop_back();
            CHECK(ng_ctx_poll(chain.other, 0, nullptr) == NG_OK);
        }
        chain.depth--;
    };
    for (int i = 0; i < COUNT; i++) {
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_wrap(c, &d, memory, sizeof memory, release_next, nullptr, &t, &error) == NG_OK);
        chain.tensors.insert(chain.tensors.begin(), t);          // those that a close ends last are released first
    }
    ng_ctx_release(c);                                           // its tensors keep it
    CHECK(ng_ctx_close(ng_tensor_ctx(kept), UINT64_MAX, &error) == NG_OK);
    CHECK(chain.done == COUNT);
    CHECK(chain.deepest == 1);
    for (ng_tensor* t : chain.tensors) ng_tensor_release(t);
    ng_tensor_release(kept);
    shut(chain.other);
}

TEST_CASE("done: may call anything but close")
{
    static ng_ctx* c;
    static int done;
    done = 0;
    c = open_ctx(NG_CTX_POLL);
    static ng_tensor* other;
    other = tensor(c, 4);
    const ng_shape d = vec(64);
    float memory[64];
    ng_tensor* t = nullptr;
    const auto reenter = [](void*) {
        done++;
        ng_tensor_release(other);
        CHECK(ng_ctx_poll(c, 0, nullptr) == NG_OK);
        CHECK(ng_ctx_sync(c, nullptr, 0, nullptr) == NG_OK);
        CHECK(stats(c).tensors == 0);
    };
    REQUIRE(ng_tensor_wrap(c, &d, memory, sizeof memory, reenter, nullptr, &t, &error) == NG_OK);
    ng_tensor_release(t);
    CHECK(ng_ctx_poll(c, 0, &error) == NG_OK);
    CHECK(done == 1);
    shut(c);
}

TEST_CASE("done: one at a time on a thread, however many wait and whatever it calls")
{
    struct Host {
        ng_ctx* c;
        int calls = 0, depth = 0, deepest = 0;
        std::vector<ng_tensor*> more;
    };
    static float memory[64];
    constexpr int COUNT = 20000;
    const World w;
    Host host{w.c, 0, 0, 0, {}};
    const ng_done_fn done = [](void* user) {
        Host& h = *static_cast<Host*>(user);
        h.calls++;
        h.deepest = std::max(h.deepest, ++h.depth);
        if (!h.more.empty()) ng_tensor_release(h.more.back()), h.more.pop_back();
        ng_tensor_release(tensor(h.c, 4));
        (void)stats(h.c);
        CHECK(ng_ctx_sync(h.c, nullptr, 0, nullptr) == NG_OK);
        h.depth--;
    };
    std::vector<ng_tensor*> all(COUNT);
    const ng_shape d = vec(64);
    for (ng_tensor*& t : all) REQUIRE(ng_tensor_wrap(w.c, &d, memory, sizeof memory, done, &host, &t, &error) == NG_OK);
    host.more.assign(all.begin() + COUNT / 2, all.end());
    for (int i = 0; i < COUNT / 2; i++) ng_tensor_release(all[size_t(i)]);
    CHECK(ng_ctx_sync(w.c, nullptr, 0, &error) == NG_OK);
    CHECK(host.calls == COUNT);
    CHECK(host.deepest == 1);
}

TEST_CASE("done: where another thread is about to call it, a sync returns after it")
{
    struct Slow {
        std::atomic<bool> began{false}, ended{false};
    };
    const World w;
    static float memory[64];
    const ng_shape d = vec(64);
    for (int round = 0; round < 4; round++) {
        Slow slow;
        const ng_done_fn done = [](void* user) {
            Slow& s = *static_cast<Slow*>(user);
            s.began = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            s.ended = true;
        };
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_wrap(w.c, &d, memory, sizeof memory, done, &slow, &t, &error) == NG_OK);
        ng_tensor_release(t);
        std::thread other([&] { (void)stats(w.c); });
        while (!slow.began) std::this_thread::yield();
        CHECK((round % 2 ? ng_ctx_poll(w.c, UINT64_MAX, &error) : ng_ctx_sync(w.c, nullptr, UINT64_MAX, &error)) == NG_OK);
        CHECK(slow.ended);
        other.join();
    }
}

TEST_CASE("close: what uses the context is lost, release still works")
{
    std::atomic<int> done{0};
    ng_ctx* c = open_ctx();
    ng_tensor *t = tensor(c, 4), *l = lent(c, done), *o = nullptr;
    ng_scope* s = ng_scope_create(c, 0);
    CHECK(s);
    CHECK(ng_ctx_close(c, UINT64_MAX, &error) == NG_OK);
    CHECK(done == 1);
    ng_stats st{};
    st.size = sizeof st;
    ng_shape d = vec(4);
    float f[4];
    void* data;
    uint64_t mark;
    CHECK(ng_ctx_close(c, 0, &error) == NG_E_LOST);
    CHECK(ng_ctx_stats(c, &st) == NG_E_LOST);
    CHECK(ng_ctx_poll(c, 0, &error) == NG_E_LOST);
    CHECK(ng_ctx_sync(c, nullptr, 0, &error) == NG_E_LOST);
    CHECK(ng_mark(c, nullptr, &mark, &error) == NG_E_LOST);
    CHECK(ng_tensor_create(c, &d, &o, &error) == NG_E_LOST);
    CHECK(ng_tensor_shape(t, &d) == NG_E_LOST);
    CHECK(ng_tensor_get(t, f, 16, &error) == NG_E_LOST);
    CHECK(ng_tensor_put(l, f, 16, &error) == NG_E_LOST);
    CHECK(ng_tensor_fill(t, nullptr, 0, &error) == NG_E_LOST);
    CHECK(ng_tensor_copy(t, l, nullptr, &error) == NG_E_LOST);
    CHECK(ng_tensor_use(t, nullptr, NG_USE_READ, &data, &error) == NG_E_LOST);
    CHECK(ng_tensor_close(t, &error) == NG_E_LOST);
    CHECK(ng_scope_create(c, 0) == nullptr);
    ng_tensor_release(t);
    ng_tensor_release(l);
    ng_scope_release(s);
    ng_ctx_release(c);
    CHECK(ng_ctx_stats(c, &st) == NG_E_INVALID);
    CHECK(done == 1);
}

TEST_CASE("close: waits for the calls inside, and says NG_NOT_READY when the time is up")
{
    static std::atomic<bool> entered, go;
    entered = go = false;
    ng_hooks hooks{};
    hooks.size = sizeof hooks;
    hooks.pressure = [](void*, uint64_t) -> int32_t {
        entered = true;
        while (!go) std::this_thread::yield();
        return 0;
    };
    ng_ctx_desc d = description();
    d.hooks = &hooks, d.dev_limit = 100;
    ng_ctx* c = open_ctx(d);
    std::thread inside([&] {
        const ng_shape big = vec(1000);
        ng_tensor* t = nullptr;
        CHECK(ng_tensor_create(c, &big, &t, nullptr) == NG_E_DEVMEM);
    });
    while (!entered) std::this_thread::yield();
    CHECK(ng_ctx_close(c, 0, &error) == NG_NOT_READY);
    CHECK(ng_ctx_close(c, 2000000, &error) == NG_NOT_READY);
    CHECK(ng_ctx_poll(c, 0, &error) == NG_E_LOST);     // its end has begun
    go = true;
    CHECK(ng_ctx_close(c, UINT64_MAX, &error) == NG_OK);
    inside.join();
    ng_ctx_release(c);
}

TEST_CASE("close: many threads at once, one closes")
{
    for (int round = 0; round < 20; round++) {
        std::atomic<int> done{0}, closed{0}, odd{0};
        float memory[4][16];
        ng_ctx* c = open_ctx();
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; t++)
            threads.emplace_back([&, t] {
                for (int i = 0; i < 200; i++) {
                    const ng_shape d = vec(16);
                    ng_tensor* x = nullptr;
                    const ng_status s = i % 3 ? ng_tensor_create(c, &d, &x, nullptr)
                                              : ng_tensor_wrap(c, &d, memory[t], sizeof memory[t], count_done, &done, &x, nullptr);
                    if (s != NG_OK && s != NG_E_LOST) odd++;
                    const ng_status f = x ? ng_tensor_fill(x, nullptr, 1, nullptr) : NG_OK;
                    if (f != NG_OK && f != NG_E_LOST && f != NG_E_INVALID) odd++;
                    ng_tensor_release(x);
                    if (i == 150 - 20 * t) {
                        const ng_status e = ng_ctx_close(c, UINT64_MAX, nullptr);
                        if (e == NG_OK) closed++;
                        else if (e != NG_E_LOST) odd++;
                    }
                }
            });
        for (std::thread& t : threads) t.join();
        CHECK(closed == 1);
        CHECK(odd == 0);
        ng_ctx_release(c);
    }
}

TEST_CASE("release: a context that was never closed gives all back in another's poll")
{
    const ng_allocator heap = allocator();
    ng_ctx_desc d = description(NG_CTX_POLL);
    d.dev = &heap;
    allocator_calls = 0, outstanding = 0;
    std::atomic<int> done{0};
    ng_ctx* c = open_ctx(d);
    ng_tensor *t = tensor(c, 100), *l = lent(c, done);
    ng_ctx_release(c);
    ng_tensor_retain(t);
    CHECK(ng_tensor_ctx(t) == c);      // the tensor keeps it, and has a handle of it to lend
    CHECK(stats(c).tensors == 2);
    ng_tensor_release(t);
    ng_tensor_release(t);
    ng_tensor_release(l);
    CHECK(done == 0);
    ng_ctx* other = open_ctx();
    CHECK(done == 0);                  // NG_CTX_POLL: not in a create
    CHECK(ng_ctx_poll(other, 0, &error) == NG_OK);
    CHECK(done == 1);
    CHECK(outstanding == 0);
    shut(other);
}

#if !defined __SANITIZE_THREAD__
TEST_CASE("fork: in the child the parent's things are lost, new contexts work")
{
    ng_ctx* c = open_ctx();
    ng_tensor* t = tensor(c, 1 << 20);
    REQUIRE(ng_tensor_fill(t, nullptr, 1, &error) == NG_OK);
    ng_scope* s = ng_scope_create(nullptr, 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        ng_shape d = vec(4);
        float f[4];
        ng_tensor* o = nullptr;
        bool good = ng_ctx_poll(c, 0, nullptr) == NG_E_LOST && ng_ctx_close(c, 0, nullptr) == NG_E_LOST;
        good = good && ng_tensor_shape(t, &d) == NG_E_LOST && ng_tensor_get(t, f, 16, nullptr) == NG_E_LOST;
        good = good && ng_tensor_create(c, &d, &o, nullptr) == NG_E_LOST;
        ng_tensor_release(t);
        ng_scope_release(s);
        ng_ctx_release(c);
        ng_ctx* mine = nullptr;
        good = good && ng_ctx_create(nullptr, &mine, nullptr) == NG_OK;
        d = vec(4);
        good = good && ng_tensor_create(mine, &d, &o, nullptr) == NG_OK && ng_tensor_fill(o, nullptr, 3, nullptr) == NG_OK;
        good = good && ng_tensor_get(o, f, 16, nullptr) == NG_OK && f[3] == 3;
        ng_tensor_release(o);
        good = good && ng_ctx_close(mine, UINT64_MAX, nullptr) == NG_OK;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    ng_tensor_release(t);
    ng_scope_release(s);
    shut(c);
}

#if !defined __SANITIZE_ADDRESS__       // its allocator's locks are copied locked, while the binder holds them
TEST_CASE("fork: leaves that another thread binds meanwhile lock nothing in the child")
{
    constexpr int FORKS = 100, LEAVES = 40;
    ng_ctx* c = open_ctx();
    ng_tensor* two[] = {tensor(c, 4), tensor(c, 4)};
    ng_expr* leaf = ng_leaf(nullptr, two[0]);
    std::atomic<bool> stop{false};
    std::thread binder([&] {
        for (int i = 0; !stop; i++) (void)ng_expr_bind(leaf, two[i % 2], nullptr);
    });
    int failed = 0;
    for (int i = 0; i < FORKS && !failed; i++) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(10);
            ng_expr_release(leaf);
            ng_ctx_desc mine = description(NG_CTX_NO_THREADS);
            ng_ctx* k = nullptr;
            bool good = ng_ctx_create(&mine, &k, nullptr) == NG_OK;
            const ng_shape d = vec(4);
            ng_expr* e = nullptr;
            for (int j = 0; good && j < LEAVES; j++) {
                ng_tensor* t = nullptr;
                good = ng_tensor_create(k, &d, &t, nullptr) == NG_OK && ng_tensor_fill(t, nullptr, 1, nullptr) == NG_OK;
                ng_expr* x = ng_leaf(nullptr, t);
                e = e ? ng_add(e, x) : x;
            }
            ng_tensor* o = nullptr;
            float f[4] = {};
            good = good && ng_eval(k, nullptr, &e, &o, 1, nullptr) == NG_OK && ng_tensor_get(o, f, 16, nullptr) == NG_OK && f[3] == LEAVES;
            _exit(good ? 0 : 1);
        }
        int status = -1;
        failed += waitpid(child, &status, 0) != child || status != 0;
    }
    stop = true;
    binder.join();
    CHECK(failed == 0);
    ng_expr_release(leaf);
    for (ng_tensor* t : two) ng_tensor_release(t);
    shut(c);
}
#endif
#endif
