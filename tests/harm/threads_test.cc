// Sixteen threads at once on one context: scopes, programs, hooks, releases of each other's things, closes in the middle of work.
#include "tests/contract/face.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace {

constexpr int THREADS = 16, ROUNDS = 40;

void shut(ng_ctx* c)
{
    ng_error error{};
    REQUIRE(ng_ctx_sync(c, nullptr, UINT64_MAX, &error) == NG_OK);
    ng_stats left{};
    left.size = sizeof left;
    REQUIRE(ng_ctx_stats(c, &left) == NG_OK);
    CHECK(left.tensors == 0);
    CHECK(left.live_bytes == 0);
    CHECK(left.workspace_bytes == 0);
    CHECK(ng_ctx_close(c, UINT64_MAX, &error) == NG_OK);
    ng_ctx_release(c);
}
void together(const std::function<void(int)>& body, int count = THREADS) { ::together(count, body); }

ng_tensor* filled(ng_ctx* c, double value, int64_t n = 64)
{
    const ng_shape d = shape(NG_F32, {n});
    ng_tensor* t = nullptr;
    if (ng_tensor_create(c, &d, &t, nullptr) == NG_OK) ng_tensor_fill(t, nullptr, value, nullptr);
    return t;
}
// The first element of e's value; NaN where it has none.
double first_of(ng_ctx* c, ng_expr* e, ng_status* status = nullptr)
{
    ng_tensor* t = nullptr;
    float v[64] = {};
    ng_shape d{};
    d.size = sizeof d;
    const ng_status got = ng_eval(c, nullptr, &e, &t, 1, nullptr);
    if (status) *status = got;
    if (got != NG_OK) return NOT_A_NUMBER;
    const bool read = ng_tensor_shape(t, &d) == NG_OK && ng_tensor_get(t, v, 4 * count_of(d), nullptr) == NG_OK;
    ng_tensor_release(t);
    return read ? double(v[0]) : NOT_A_NUMBER;
}

// A place where threads leave things for each other.
template <class T>
class Exchange {
  public:
    void put(T thing)
    {
        const std::lock_guard hold(lock_);
        things_.push_back(thing);
    }
    bool take(T& thing)
    {
        const std::lock_guard hold(lock_);
        if (things_.empty()) return false;
        thing = things_.front();
        things_.pop_front();
        return true;
    }

  private:
    std::mutex    lock_;
    std::deque<T> things_;
};

bool is_end(ng_status s) { return s == NG_OK || s == NG_E_LOST || s == NG_E_INVALID; }

// The sum of so many elements, each of them its argument's.
ng_prog* summing(ng_ctx* c, ng_scope* s, int64_t n)
{
    const ng_shape d = shape(NG_F32, {n});
    ng_expr* e = ng_sum(ng_param(s, 0, &d), NG_ALL, NG_KEEP);
    ng_compile_desc description{};
    description.size = sizeof description, description.runs = THREADS;
    ng_prog* p = nullptr;
    REQUIRE(ng_compile(c, &description, &e, 1, &p, nullptr) == NG_OK);
    return p;
}
ng_status run(ng_prog* p, ng_tensor* in, ng_tensor* out)
{
    ng_run r{};
    r.size = sizeof r, r.nargs = in != nullptr, r.nout = 1, r.args = &in, r.out = &out;
    return ng_prog_run(p, nullptr, &r, nullptr);
}
// An expression of a scope that all share, as a program of its own; runs it, too.
ng_status compile_in(ng_ctx* c, ng_scope* s, int salt)
{
    const ng_shape d = shape(NG_F32, {1 << 16});
    ng_expr* e = ng_sum(ng_mul(ng_iota(s, &d, 0), ng_const_int(s, 0, salt)), NG_ALL, NG_KEEP);
    ng_prog* p = nullptr;
    ng_tensor* out = filled(c, 0, 1);
    ng_status status = ng_compile(c, nullptr, &e, 1, &p, nullptr);
    if (status == NG_OK) status = run(p, nullptr, out);
    ng_prog_release(p), ng_tensor_release(out);
    return status;
}

}  // namespace

TEST_CASE("threads: sixteen build in one scope, equal nodes and their own, and evaluate them")
{
    ng_ctx* c = opened(3);
    ng_scope* s = ng_scope_create(c, 0);
    ng_tensor* t = filled(c, 2);
    ng_expr* x = ng_leaf(s, t);
    std::atomic<int> wrong{0};
    together([&](int id) {
        for (int i = 0; i < ROUNDS; i++) {
            ng_expr* e = ng_leaf(s, t);
            for (int k = 0; k < 8; k++) e = ng_add(ng_mul(e, x), ng_const_int(s, 0, k % 3));      // the same for all
            double want = 2;
            for (int k = 0; k < 8; k++) want = want * 2 + k % 3;
            ng_expr* const values[] = {e, ng_const_int(s, NG_I32, id * 100 + i)};
            wrong += first_of(c, ng_parse(s, "m = x; m * 1 + n", "x,n", values, 2)) != want + id * 100 + i;
        }
    });
    CHECK(wrong == 0);
    ng_scope_release(s), ng_tensor_release(t);
    shut(c);
}

TEST_CASE("threads: sixteen run one program; who finds no workspace is told so, everybody else is right")
{
    for (const uint32_t runs : {uint32_t(THREADS), 3u}) {
        ng_ctx* c = opened(2);
        ng_scope* s = ng_scope_create(c, 0);
        const ng_shape d = shape(NG_F32, {64});
        ng_expr *x = ng_param(s, 0, &d), *e = ng_add(ng_mul(x, ng_sum(x, NG_ALL, 0)), ng_scalar(s, NG_F32, 0));
        ng_compile_desc description{};
        description.size = sizeof description, description.runs = runs;
        ng_prog* p = nullptr;
        REQUIRE(ng_compile(c, &description, &e, 1, &p, nullptr) == NG_OK);
        ng_scope_release(s);
        std::atomic<int> wrong{0}, refused{0}, done{0};
        together([&](int id) {
            ng_tensor *in = filled(c, id), *out = filled(c, -1);
            ng_error error{};
            for (int i = 0; i < 4 * ROUNDS; i++) {
                const float scalar = float(i);
                ng_run r{};
                r.size = sizeof r, r.nargs = r.nout = 1, r.args = &in, r.out = &out, r.scalars = &scalar, r.scalar_bytes = 4;
                const ng_status status = ng_prog_run(p, nullptr, &r, &error);
                if (status == NG_NOT_READY) refused++;
                float v[64];
                if (status == NG_OK) wrong += ng_tensor_get(out, v, sizeof v, &error) != NG_OK || v[63] != float(id * id * 64 + i), done++;
                else wrong += status != NG_NOT_READY;
            }
            ng_tensor_release(in), ng_tensor_release(out);
        });
        CHECK(wrong == 0);
        CHECK(done > 0);
        if (runs == THREADS) CHECK(refused == 0);
        ng_prog_release(p);
        shut(c);
    }
}

TEST_CASE("threads: what one makes another uses and a third releases, handle by handle")
{
    struct Parcel {
        ng_tensor* t;
        ng_expr*   e;
        ng_prog*   p;
        double     value;
    };
    ng_ctx* c = opened(1);
    Exchange<Parcel> fresh, used;
    std::atomic<int> wrong{0}, seen{0};
    together([&](int id) {
        for (int i = 0; i < ROUNDS; i++) {
            Parcel made{filled(c, id + i), nullptr, nullptr, double(2 * (id + i))};
            ng_expr* leaf = ng_leaf(nullptr, made.t);
            made.e = ng_add(leaf, leaf);
            ng_expr_release(leaf);
            wrong += ng_compile(c, nullptr, &made.e, 1, &made.p, nullptr) != NG_OK;
            fresh.put(made);
            Parcel other;
            if (fresh.take(other)) {
                wrong += first_of(c, other.e) != other.value;
                ng_tensor* out = filled(c, 0);
                wrong += run(other.p, nullptr, out) != NG_OK;
                ng_tensor_release(out);
                used.put(other);
            }
            if (used.take(other)) ng_tensor_release(other.t), ng_expr_release(other.e), ng_prog_release(other.p), seen++;
        }
    });
    for (Exchange<Parcel>* rest : {&fresh, &used})
        for (Parcel left; rest->take(left);) ng_tensor_release(left.t), ng_expr_release(left.e), ng_prog_release(left.p), seen++;
    CHECK(wrong == 0);
    CHECK(seen == THREADS * ROUNDS);
    shut(c);
}

TEST_CASE("threads: handles die and are born again while others ask for them; nobody is answered by a stranger")
{
    ng_ctx* c = opened(1);
    std::atomic<ng_tensor*> now[4] = {};
    std::atomic<int> wrong{0}, asked{0};
    std::atomic<bool> stop{false};
    for (int k = 0; k < 4; k++) now[k] = filled(c, k, 8 + k);
    together([&](int id) {
        const int k = id % 4;
        if (id < 4) {
            for (int i = 0; i < 40 * ROUNDS || !asked; i++) {       // on a busy machine the others begin late
                ng_tensor* old = now[k].exchange(filled(c, k, 8 + k));
                ng_tensor_retain(old), ng_tensor_release(old), ng_tensor_release(old);
            }
            if (id == 0) stop = true;
            return;
        }
        while (!stop) {
            ng_tensor* t = now[k];
            ng_shape d{};
            d.size = sizeof d;
            float v[16];
            const ng_status status = ng_tensor_shape(t, &d), got = ng_tensor_get(t, v, uint64_t(4 * (8 + k)), nullptr);
            wrong += !(status == NG_E_INVALID || (status == NG_OK && d.dims[0] == 8 + k));
            wrong += !(got == NG_E_INVALID || (got == NG_OK && v[7] == float(k)));
            ng_expr* e = ng_leaf(nullptr, t);
            ng_status evaluated;
            const double value = first_of(c, e, &evaluated);
            wrong += !(evaluated == NG_E_INVALID || (evaluated == NG_OK && value == k));
            ng_expr_release(e);
            asked++;
        }
    });
    CHECK(wrong == 0);
    CHECK(asked > 0);
    for (auto& t : now) ng_tensor_release(t);
    shut(c);
}

TEST_CASE("threads: a context is closed while fifteen work in it; each call is done or lost, and then no hook runs")
{
    for (int turn = 0; turn < ROUNDS / 2; turn++) {
        struct Host {
            std::atomic<bool> is_closed{false};
            std::atomic<int>  late{0}, ended{0};
        } host;
        static float lent[64];
        ng_hooks hooks{};
        hooks.size = sizeof hooks, hooks.user = &host;
        hooks.log = [](void* user, int32_t, const char*) { static_cast<Host*>(user)->late += static_cast<Host*>(user)->is_closed; };
        ng_ctx* c = opened(3, 0, &hooks);
        std::atomic<int> wrong{0}, wrapped{0}, lost{0};
        std::vector<ng_tensor*> left(THREADS);
        ng_scope* shared = ng_scope_create(c, 0);
        ng_prog* p = summing(c, shared, 1 << 18);
        together([&](int id) {
            ng_error error{};
            if (id == 0) {
                std::this_thread::sleep_for(std::chrono::milliseconds(turn));
                ng_status status;
                while ((status = ng_ctx_close(c, 1000000, &error)) == NG_NOT_READY) {}
                wrong += status != NG_OK;
                host.is_closed = true;
                return;
            }
            const ng_shape d = shape(NG_F32, {64}), big = shape(NG_F32, {1 << 16});
            ng_tensor *in = filled(c, 1, 1 << 18), *out = filled(c, 0, 1);
            for (ng_status status = NG_OK; status != NG_E_LOST;) {
                ng_tensor* t = nullptr;
                status = ng_tensor_wrap(c, &d, lent, sizeof lent, [](void* user) { static_cast<Host*>(user)->ended++, static_cast<Host*>(user)->late += static_cast<Host*>(user)->is_closed; }, &host, &t, &error);
                wrong += !is_end(status);
                if (status != NG_OK) continue;
                wrapped++;
                ng_expr *x = ng_leaf(nullptr, t), *i = ng_iota(nullptr, &big, 0), *sum = ng_sum(i, NG_ALL, 0), *e = ng_add(x, sum);
                first_of(c, e, &status);
                wrong += !is_end(status);
                lost += status == NG_E_LOST;
                ng_expr_release(x), ng_expr_release(i), ng_expr_release(sum), ng_expr_release(e);
                if (id % 2) ng_tensor_release(std::exchange(left[size_t(id)], t));
                else ng_tensor_release(t);
                if (id % 3 == 1) wrong += !is_end(run(p, in, out));
                if (id % 3 == 2) wrong += !is_end(compile_in(c, shared, id));
            }
            ng_tensor_release(in), ng_tensor_release(out);
        });
        ng_prog_release(p), ng_scope_release(shared);
        CHECK(wrong == 0);
        CHECK(host.late == 0);
        for (ng_tensor* t : left) CHECK((!t || ng_tensor_fill(t, nullptr, 0, nullptr) == NG_E_LOST));
        CHECK(host.ended == wrapped);
        for (ng_tensor* t : left) ng_tensor_release(t);
        ng_ctx_release(c);
        shut(opened(1));                                 // what the last release left is taken apart by another context's call
        CHECK(host.late == 0);
    }
}

TEST_CASE("threads: a tensor is closed, rebound and written while others compute with it")
{
    ng_ctx* c = opened(2);
    ng_scope* s = ng_scope_create(c, 0);
    std::atomic<int> wrong{0};
    ng_tensor* t[2] = {filled(c, 1), filled(c, 2)};
    ng_expr *x = ng_leaf(s, t[0]), *e = ng_mul(x, ng_const_int(s, 0, 10));
    together([&](int id) {
        ng_error error{};
        for (int i = 0; i < 2 * ROUNDS; i++) {
            if (id % 4 == 0) {
                wrong += ng_expr_bind(x, t[i % 2], &error) != NG_OK;
            } else if (id % 4 == 1) {
                ng_tensor* mine = filled(c, 5);
                ng_expr* leaf = ng_leaf(nullptr, mine);
                std::thread closer([&] { wrong += ng_tensor_close(mine, nullptr) != NG_OK; });
                ng_status status;
                const double v = first_of(c, leaf, &status);
                wrong += !(status == NG_E_INVALID || (status == NG_OK && v == 5));
                closer.join();
                wrong += first_of(c, leaf) == 5;
                ng_expr_release(leaf), ng_tensor_release(mine);
            } else {
                const double v = first_of(c, e);
                wrong += v != 10 && v != 20;
            }
        }
    });
    CHECK(wrong == 0);
    ng_scope_release(s), ng_tensor_release(t[0]), ng_tensor_release(t[1]);
    shut(c);
}

TEST_CASE("threads: hooks on many threads at once, done among them calling back, while all poll")
{
    struct Host {
        ng_ctx*          c = nullptr;
        std::atomic<int> ended{0}, tasks{0}, wrong{0};
    } host;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &host;
    hooks.parallel = [](void* user, uint32_t count, ng_task_fn task, void* arg) {
        std::thread other([&] { for (uint32_t i = 0; i < count; i += 2) task(arg, i); });
        for (uint32_t i = 1; i < count; i += 2) task(arg, i);
        other.join();
        static_cast<Host*>(user)->tasks += int(count);
    };
    hooks.trace = [](void* user, uint32_t, const char* tag, ng_stream) { static_cast<Host*>(user)->wrong += tag == nullptr; };
    ng_ctx* c = host.c = opened(0, 0, &hooks);
    static float lent[64];
    std::atomic<int> made{0};
    together([&](int id) {
        const ng_shape d = shape(NG_F32, {64}), big = shape(NG_F32, {1 << 18});
        ng_error error{};
        for (int i = 0; i < ROUNDS; i++) {
            ng_tensor* t = nullptr;
            const auto done = [](void* user) {
                Host& h = *static_cast<Host*>(user);
                ng_expr* e = ng_const(nullptr, NG_F32, 4);
                h.wrong += first_of(h.c, e) != 4;
                ng_expr_release(e);
                h.ended++;
            };
            if (ng_tensor_wrap(c, &d, lent, sizeof lent, done, &host, &t, &error) == NG_OK) made++;
            ng_tensor_release(t);
            if (id % 3 == 0) host.wrong += ng_ctx_poll(c, 0, &error) != NG_OK;
            if (i % 6 == 0) {
                ng_expr *x = ng_iota(nullptr, &big, 0), *e = ng_max(x, NG_ALL, 0);
                host.wrong += first_of(c, e) != (1 << 18) - 1;
                ng_expr_release(x), ng_expr_release(e);
            }
        }
    });
    CHECK(ng_ctx_sync(c, nullptr, UINT64_MAX, nullptr) == NG_OK);
    CHECK(host.wrong == 0);
    CHECK(host.ended == made);
    CHECK(made == THREADS * ROUNDS);
    CHECK(host.tasks > 0);
    shut(c);
}

TEST_CASE("threads: programs run under a trace hook and the host's allocator while tensors and programs come and go")
{
    struct Host { std::atomic<int> begun{0}, ended{0}, live{0}, made{0}; } host;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &host;
    hooks.trace = [](void* user, uint32_t begin, const char*, ng_stream) { (begin ? static_cast<Host*>(user)->begun : static_cast<Host*>(user)->ended)++; };
    ng_allocator memory{};
    memory.size = sizeof memory, memory.user = &host;
    memory.alloc = [](void* user, size_t bytes, size_t align, ng_purpose, ng_stream) {
        static_cast<Host*>(user)->live++, static_cast<Host*>(user)->made++;
        align = std::max<size_t>(align, 64);
        return std::aligned_alloc(align, (bytes + align - 1) / align * align);
    };
    memory.free = [](void* user, void* at, size_t, ng_purpose, ng_stream) { static_cast<Host*>(user)->live--, std::free(at); };
    ng_ctx_desc d = description(0, 2);
    d.hooks = &hooks, d.host = d.dev = &memory;
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
    ng_scope* s = ng_scope_create(c, 0);
    constexpr int64_t LONG = 1 << 18;
    ng_prog* p = summing(c, s, LONG);
    std::atomic<int> wrong{0}, done{0};
    together([&](int id) {
        ng_tensor *in = filled(c, id, LONG), *out = filled(c, 0, 1);
        for (int i = 0; i < ROUNDS / 4; i++) {
            float sum = -1;
            done++, wrong += run(p, in, out) != NG_OK || ng_tensor_get(out, &sum, sizeof sum, nullptr) != NG_OK || sum != float(id) * LONG;
            if (id % 4 == 0) done++, wrong += compile_in(c, s, id) != NG_OK;
            ng_tensor_release(filled(c, i));
        }
        ng_tensor_release(in), ng_tensor_release(out);
    });
    CHECK(wrong == 0);
    CHECK(host.begun == done);
    CHECK(host.ended == done);
    CHECK(host.made > THREADS * 2);
    ng_prog_release(p), ng_scope_release(s);
    shut(c);
    CHECK(host.live == 0);
}

TEST_CASE("threads: a scope is released while others build in it; what they hold is theirs, what they ask for later is refused")
{
    ng_ctx* c = opened(1);
    std::atomic<int> wrong{0};
    for (int turn = 0; turn < ROUNDS; turn++) {
        ng_scope* s = ng_scope_create(c, 0);
        ng_expr* one = ng_const(s, NG_F32, 1);
        ng_expr_retain(one);
        together([&](int id) {
            if (id == 0) return ng_scope_release(s);
            for (int i = 0; i < ROUNDS; i++) {
                ng_expr* e = ng_add(one, ng_const_int(nullptr, 0, i));
                ng_expr* in_scope = ng_const(s, NG_F32, 3);
                ng_status status;
                const double v = first_of(c, e, &status);
                wrong += !(status == NG_OK ? v == i + 1 : status == NG_E_INVALID);
                first_of(c, in_scope, &status);
                wrong += !is_end(status);
                ng_expr_release(e), ng_expr_release(in_scope);
            }
        }, 6);
        ng_expr_release(one);
    }
    CHECK(wrong == 0);
    shut(c);
}
