// Programs inside: workspaces claimed and shared, and ends that come while runs are under way.
#include "lib/program.h"
#include "tests/lib/world.h"

#include <thread>

using namespace ng;

namespace {

constexpr int64_t N = 64;

// ng_prog_run with as many arguments and outputs as there are.
ng_status run(ng_prog* p, std::vector<ng_tensor*> args, std::vector<ng_tensor*> out, ng_tensor* workspace = nullptr, ng_error* err = &error)
{
    ng_run r{};
    r.size = sizeof r, r.nargs = uint32_t(args.size()), r.nout = uint32_t(out.size()), r.args = args.data(), r.out = out.data(), r.workspace = workspace;
    return ng_prog_run(p, nullptr, &r, err);
}
ng_prog* compile(ng_ctx* c, std::vector<ng_expr*> e, ng_compile_desc d = {})
{
    d.size = sizeof d;
    ng_prog* p = nullptr;
    REQUIRE_MESSAGE(ng_compile(c, &d, e.data(), uint32_t(e.size()), &p, &error) == NG_OK, std::string(error.text));
    return p;
}
ng_prog_info info_of(ng_prog* p)
{
    ng_prog_info i{};
    i.size = sizeof i;
    REQUIRE(ng_prog_get_info(p, &i, &error) == NG_OK);
    return i;
}
ng_expr* param(ng_scope* s, uint32_t index, std::vector<int64_t> dims)
{
    const ng_shape d = shape(NG_F32, dims);
    return ng_param(s, index, &d);
}
// x @ w @ w ..: each product reads the one before.
ng_expr* products(ng_scope* s, int count)
{
    ng_expr *x = param(s, 0, {N, N}), *w = param(s, 1, {N, N});
    for (int i = 0; i < count; i++) x = ng_matmul(x, w, nullptr);
    return x;
}
ng_tensor* matrix(ng_ctx* c, double value)
{
    ng_tensor* t = tensor(c, shape(NG_F32, {N, N}));
    REQUIRE(ng_tensor_fill(t, nullptr, value, &error) == NG_OK);
    return t;
}
float first(ng_tensor* t) { return *data_of<float>(t); }

}  // namespace

TEST_CASE("workspaces: as many claims as pieces, then none until one is vacated; growth keeps what is bigger")
{
    ng_ctx* c = open_ctx();
    {
        const Pin<Context> context(c);
        const Ref<Workspaces> w = Workspaces::create(*context, 1000, 3, "test");
        CHECK(stats(c).workspace_bytes == 3000);
        uint32_t index[4];
        const WorkPiece* piece[3];
        for (uint32_t i = 0; i < 3; i++) {
            piece[i] = w->claim(nullptr, index[i]);
            REQUIRE(piece[i]);
            CHECK(uintptr_t(piece[i]->memory()) % 64 == 0);
            for (uint32_t k = 0; k < i; k++) CHECK(piece[i]->memory() != piece[k]->memory());
        }
        CHECK(w->claim(nullptr, index[3]) == nullptr);
        w->vacate(index[1]);
        CHECK(w->claim(nullptr, index[3]) == piece[1]);
        for (const uint32_t i : {0u, 1u, 2u}) w->vacate(i);
        w->grow(500, "test");
        CHECK(w->bytes() == 1000);
        w->grow(2000, "test");
        CHECK(w->bytes() == 2000);
        CHECK(stats(c).workspace_bytes == 6000);
        REQUIRE(ng_ctx_limit(c, 8000) == NG_OK);
        CHECK_THROWS_AS(w->grow(1 << 20, "test"), ng::Error);      // what cannot grow stays as it was, every piece to be claimed
        CHECK(w->bytes() == 2000);
        for (uint32_t i = 0; i < 3; i++) REQUIRE(w->claim(nullptr, index[i]));
        for (uint32_t i = 0; i < 3; i++) w->vacate(index[i]);
    }
    CHECK(stats(c).workspace_bytes == 0);
    shut(c);
}

TEST_CASE("workspaces: of two that grow one at once the greater wish counts, and a stream has the piece that it had")
{
    ng_ctx* c = open_ctx();
    {
        const Pin<Context> context(c);
        for (int turn = 0; turn < 200; turn++) {
            const Ref<Workspaces> w = Workspaces::create(*context, 64, 2, "test");
            std::thread small([&] { w->grow(4096, "test"); });
            w->grow(1 << 20, "test");
            small.join();
            CHECK(w->bytes() == 1 << 20);
            for (uint32_t i = 0, index; i < 2; i++) CHECK(w->claim(nullptr, index)->bytes() == 1 << 20);
        }
        const Ref<Workspaces> w = Workspaces::create(*context, 64, 2, "test");
        int streams[2];
        const WorkPiece* had[2];
        for (int turn = 0; turn < 3; turn++)
            for (int s : {0, 1}) {
                uint32_t index;
                const WorkPiece* const piece = w->claim(&streams[s], index);
                if (turn == 0) had[s] = piece;
                CHECK(piece == had[s]);
                w->vacate(index);
            }
        CHECK(had[0] != had[1]);
    }
    shut(c);
}

TEST_CASE("workspaces: growth waits for the claim that is out, and threads never have one piece twice")
{
    ng_ctx* c = open_ctx();
    {
        const Pin<Context> context(c);
        const Ref<Workspaces> w = Workspaces::create(*context, 64, 2, "test");
        std::atomic<int> inside[2] = {}, odd{0};
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; t++)
            threads.emplace_back([&] {
                while (!stop) {
                    uint32_t index;
                    const WorkPiece* const piece = w->claim(nullptr, index);
                    if (!piece) continue;
                    if (inside[index]++) odd++;
                    std::fill(piece->memory(), piece->memory() + 64, char(index));
                    inside[index]--;
                    w->vacate(index);
                }
            });
        for (uint64_t bytes = 128; bytes <= 1 << 16; bytes += 1024) w->grow(bytes, "test");
        stop = true;
        for (std::thread& t : threads) t.join();
        CHECK(odd == 0);
        CHECK(stats(c).workspace_bytes == 2 * w->bytes());
    }
    shut(c);
}

TEST_CASE("programs: a long chain of products works in the memory of two")
{
    World w;
    ng_scope* s = ng_scope_create(w.c, 0);
    ng_prog *few = compile(w.c, {products(s, 3)}), *many = compile(w.c, {products(s, 30)});
    CHECK(info_of(many).workspace_bytes >= 2 * N * N * 4);
    CHECK(info_of(many).workspace_bytes <= info_of(few).workspace_bytes + 8192);
    CHECK(stats(w.c).workspace_bytes == info_of(few).workspace_bytes + info_of(many).workspace_bytes);
    ng_tensor *x = matrix(w.c, 1), *m = matrix(w.c, 1.0 / N), *out = matrix(w.c, 0);
    CHECK(run(many, {x, m}, {out}) == NG_OK);
    CHECK(first(out) == 1);
    CHECK(first(x) == 1);
    for (ng_tensor* t : {x, m, out}) ng_tensor_release(t);
    ng_prog_release(few), ng_prog_release(many);
    ng_scope_release(s);
}

TEST_CASE("programs: runs are counted when they ran, and launches with them")
{
    World w;
    ng_scope* s = ng_scope_create(w.c, 0);
    const int32_t alias[] = {0};
    ng_compile_desc d{};
    d.alias = alias;
    ng_expr* x = param(s, 0, {10});
    ng_prog* p = compile(w.c, {ng_add(x, x)}, d);
    ng_tensor* t = tensor(w.c, 20);
    REQUIRE(ng_tensor_fill(t, nullptr, 1, &error) == NG_OK);
    ng_expr* leaf = ng_leaf(s, t);
    ng_tensor *head = nullptr, *moved = nullptr;
    REQUIRE(ng_tensor_view(ng_slice(leaf, 0, 0, 10, 1), &head, &error) == NG_OK);
    REQUIRE(ng_tensor_view(ng_slice(leaf, 0, 5, 15, 1), &moved, &error) == NG_OK);
    const uint64_t before = stats(w.c).launches;
    CHECK(run(p, {}, {head}) == NG_E_INVALID);
    CHECK(run(p, {head}, {}) == NG_E_INVALID);
    CHECK(info_of(p).runs == 0);
    CHECK(stats(w.c).launches == before);
    CHECK(run(p, {head}, {head}) == NG_OK);
    CHECK(info_of(p).runs == 1);
    const uint64_t one = stats(w.c).launches - before;
    CHECK(run(p, {head}, {moved}) == NG_OK);               // over the argument in part: computed apart, once
    CHECK(info_of(p).runs == 2);
    CHECK(stats(w.c).launches - before == 2 * one);
    const float* f = data_of<float>(t);
    for (int i = 0; i < 20; i++) CHECK(f[i] == (i < 5 ? 2 : i < 15 ? 4 : 1));
    for (ng_tensor* v : {t, head, moved}) ng_tensor_release(v);
    ng_prog_release(p);
    ng_scope_release(s);
}

namespace {

// Enough work that it is shared among tasks.
constexpr int64_t LONG = 1 << 20;
ng_tensor* vector_of(ng_ctx* c, double value)
{
    ng_tensor* t = tensor(c, LONG);
    REQUIRE(ng_tensor_fill(t, nullptr, value, &error) == NG_OK);
    return t;
}
ng_expr* square_plus(ng_scope* s, ng_expr* y)
{
    ng_expr* x = param(s, 0, {LONG});
    return ng_add(ng_square(x), y);
}

// A context whose parallel hook stops in the first run until it is let go.
struct Halting {
    static inline std::atomic<int>  inside;
    static inline std::atomic<bool> halts;
    ng_ctx* c;
    Halting()
    {
        inside = 0, halts = false;
        ng_hooks hooks{};
        hooks.size = sizeof hooks;
        hooks.parallel = [](void*, uint32_t count, ng_task_fn task, void* arg) {
            inside++;
            while (halts) std::this_thread::yield();
            for (uint32_t i = 0; i < count; i++) task(arg, i);
            inside--;
        };
        ng_ctx_desc d = description();
        d.hooks = &hooks;
        c = open_ctx(d);
    }
};

}  // namespace

TEST_CASE("runs: one piece is one run at a time, two are two, a workspace of the caller's is one more")
{
    for (const uint32_t runs : {1u, 2u}) {
        Halting h;
        ng_scope* s = ng_scope_create(h.c, 0);
        ng_compile_desc d{};
        d.runs = runs;
        ng_prog* p = compile(h.c, {square_plus(s, ng_const(s, NG_F32, 1))}, d);
        ng_tensor *x = vector_of(h.c, 3), *spare = vector_of(h.c, 0);
        ng_tensor* workspace = tensor(h.c, shape(NG_U8, {int64_t(info_of(p).workspace_bytes)}));
        std::vector<ng_tensor*> out;
        for (uint32_t i = 0; i < runs; i++) out.push_back(vector_of(h.c, 0));
        Halting::halts = true;
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < runs; i++) {
            threads.emplace_back([&, i] { CHECK(run(p, {x}, {out[i]}, nullptr, nullptr) == NG_OK); });
            while (Halting::inside < int(i) + 1) std::this_thread::yield();
        }
        CHECK(run(p, {x}, {spare}) == NG_NOT_READY);
        CHECK(first(spare) == 0);
        std::thread own([&] { CHECK(run(p, {x}, {spare}, workspace, nullptr) == NG_OK); });
        while (Halting::inside < int(runs) + 1) std::this_thread::yield();
        Halting::halts = false;
        for (std::thread& t : threads) t.join();
        own.join();
        for (ng_tensor* t : out) CHECK(first(t) == 10);
        CHECK(first(spare) == 10);
        CHECK(run(p, {x}, {spare}) == NG_OK);
        CHECK(info_of(p).runs == runs + 2);
        for (ng_tensor* t : out) ng_tensor_release(t);
        for (ng_tensor* t : {x, spare, workspace}) ng_tensor_release(t);
        ng_prog_release(p);
        ng_scope_release(s);
        shut(h.c);
    }
}

TEST_CASE("ends: program, tensors and leaves released while their run is under way; close waits for it")
{
    Halting h;
    ng_scope* s = ng_scope_create(h.c, 0);
    ng_tensor *x = vector_of(h.c, 3), *out = vector_of(h.c, 0), *leaf = vector_of(h.c, 3);
    ng_prog* p = compile(h.c, {square_plus(s, ng_leaf(s, leaf))});
    ng_tensor_retain(out);
    Halting::halts = true;
    std::thread runner([&] { CHECK(run(p, {x}, {out}, nullptr, nullptr) == NG_OK); });
    while (!Halting::inside) std::this_thread::yield();
    ng_prog_release(p);
    ng_scope_release(s);
    for (ng_tensor* t : {x, out, leaf}) ng_tensor_release(t);
    CHECK(run(p, {x}, {out}) == NG_E_INVALID);
    CHECK(ng_ctx_poll(h.c, 0, &error) == NG_OK);
    CHECK(stats(h.c).tensors == 3);                                   // the run's arguments, and the program's leaf
    CHECK(ng_ctx_close(h.c, 1000000, &error) == NG_NOT_READY);
    Halting::halts = false;
    runner.join();
    CHECK(ng_ctx_close(h.c, UINT64_MAX, &error) == NG_OK);
    ng_tensor_release(out);
    ng_ctx_release(h.c);
}

TEST_CASE("ends: threads run, compile, release and retain one program and its tensors; nothing is left")
{
    World w;
    ng_scope* s = ng_scope_create(w.c, 0);
    ng_expr* e = products(s, 2);
    std::atomic<ng_prog*> shared{compile(w.c, {e})};
    ng_tensor *x = matrix(w.c, 1), *m = matrix(w.c, 1.0 / N);
    std::atomic<int> odd{0}, ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            const ng_shape d = shape(NG_F32, {N, N});
            ng_tensor* out = nullptr;
            if (ng_tensor_create(w.c, &d, &out, nullptr) != NG_OK) odd++;
            for (int i = 0; i < 200; i++) {
                ng_prog* p = shared.load();
                if (i % 40 == 10 * t) {
                    ng_prog* next = nullptr;
                    if (ng_compile(w.c, nullptr, &e, 1, &next, nullptr) != NG_OK) odd++;
                    ng_prog_release(shared.exchange(next));
                    continue;
                }
                const ng_status status = run(p, {x, m}, {out}, nullptr, nullptr);
                if (status == NG_OK) ran++;
                else if (status != NG_NOT_READY && status != NG_E_INVALID) odd++;
            }
            ng_tensor_release(out);
        });
    for (std::thread& t : threads) t.join();
    CHECK(odd == 0);
    CHECK(ran > 0);
    ng_prog_release(shared.load());
    ng_tensor_release(x), ng_tensor_release(m);
    ng_scope_release(s);
}

TEST_CASE("ends: a program whose context or leaf was closed says so, and its release still works")
{
    ng_ctx* c = open_ctx();
    ng_scope* s = ng_scope_create(c, 0);
    ng_tensor *t = tensor(c, 8), *out = tensor(c, 8);
    REQUIRE(ng_tensor_fill(t, nullptr, 2, &error) == NG_OK);
    ng_expr* x = ng_leaf(s, t);
    ng_prog* p = compile(c, {ng_add(x, x)});
    CHECK(run(p, {}, {out}) == NG_OK);
    CHECK(first(out) == 4);
    REQUIRE(ng_tensor_close(t, &error) == NG_OK);
    CHECK(run(p, {}, {out}) == NG_E_INVALID);
    CHECK(std::string(error.text).find("ng_tensor_close") != std::string::npos);
    CHECK(ng_ctx_close(c, UINT64_MAX, &error) == NG_OK);
    CHECK(run(p, {}, {out}) == NG_E_LOST);
    size_t bytes = 0;
    CHECK(ng_prog_explain(p, nullptr, &bytes, &error) == NG_E_LOST);
    CHECK(ng_prog_wait(p, 0, &error) == NG_E_LOST);
    ng_prog_release(p);
    ng_tensor_release(t), ng_tensor_release(out);
    ng_scope_release(s);
    ng_ctx_release(c);
}

TEST_CASE("evaluate: no workspace stays, whether it went well or not")
{
    World w;
    ng_scope* s = ng_scope_create(w.c, 0);
    ng_tensor *x = matrix(w.c, 1), *m = matrix(w.c, 1.0 / N);
    ng_expr* leaves[] = {ng_leaf(s, x), ng_leaf(s, m)};
    ng_expr* e = ng_matmul(ng_matmul(leaves[0], leaves[1], nullptr), leaves[1], nullptr);
    const uint64_t before = stats(w.c).dev_bytes;
    ng_tensor* out = nullptr;
    CHECK(ng_eval(w.c, nullptr, &e, &out, 1, &error) == NG_OK);
    CHECK(first(out) == 1);
    CHECK(stats(w.c).dev_bytes == before + N * N * 4);
    CHECK(stats(w.c).workspace_bytes == 0);
    CHECK(ng_eval(w.c, nullptr, &e, &x, 1, &error) == NG_OK);        // over its own operand
    CHECK(first(x) == 1);
    CHECK(ng_ctx_limit(w.c, before + N * N * 4 + 100) == NG_OK);
    ng_tensor* none = nullptr;
    CHECK(ng_eval(w.c, nullptr, &e, &none, 1, &error) == NG_E_DEVMEM);
    CHECK(none == nullptr);
    CHECK(stats(w.c).dev_bytes == before + N * N * 4);
    for (ng_tensor* t : {x, m, out}) ng_tensor_release(t);
    ng_scope_release(s);
}
