// The rules of the host's things: streams, copies that are done on return, loans and their ends, addresses, pages.
#include "tests/contract/face.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

namespace {

constexpr size_t MANY = 300007;  // worth more than one thread

// Memory that is lent, and the account of its ends.
struct Loan {
    std::vector<float> memory = std::vector<float>(64, 2.5f);
    std::atomic<int> ends{0};
    ng_tensor* tensor = nullptr;

    explicit Loan(ng_ctx* c)
    {
        const ng_shape d = shape(NG_F32, {64});
        const ng_done_fn done = [](void* user) { ++*static_cast<std::atomic<int>*>(user); };
        REQUIRE(ng_tensor_wrap(c, &d, memory.data(), 256, done, &ends, &tensor, nullptr) == NG_OK);
    }
};

ng_ctx* opened(const ng_ctx_desc& d)
{
    ng_ctx* c = nullptr;
    REQUIRE(ng_ctx_create(&d, &c, nullptr) == NG_OK);
    return c;
}

// Calls of all kinds that are not poll, sync or close; every one may settle what was released before.
void busy_with(ng_ctx* c)
{
    ng_stats st{};
    st.size = sizeof st;
    CHECK(ng_ctx_stats(c, &st) == NG_OK);
    CHECK(ng_ctx_trim(c, 0) == NG_OK);
    const ng_shape d = shape(NG_F32, {8});
    ng_tensor *t = nullptr, *y = nullptr;
    CHECK(ng_tensor_create(c, &d, &t, nullptr) == NG_OK);
    CHECK(ng_tensor_fill(t, nullptr, 1, nullptr) == NG_OK);
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* e = ng_exp(ng_leaf(s, t));
    CHECK(ng_eval(c, nullptr, &e, &y, 1, nullptr) == NG_OK);
    ng_scope_release(s);
    ng_tensor_release(t);
    ng_tensor_release(y);
}

}  // namespace

TEST_CASE("S1: the CPU's stream is NULL, and every call is done on return, whoever worked")
{
    for (const uint32_t threads : {1u, 4u}) {
        Face f(0, threads);
        for (const uint32_t i : {0u, 1u, 7u}) CHECK(ng_ctx_stream(f.c, i) == nullptr);
        ng_tensor *x = f.tensor(counted(MANY)), *y = f.make(shape(NG_F32, {int64_t(MANY)}));
        const float* at = static_cast<const float*>(f.data(y));
        const auto wrong = [&](double step, double first) {
            size_t n = 0;
            for (size_t i = 0; i < MANY; i++) n += at[i] != float(first + step * double(i));
            return n;
        };
        for (int round = 1; round <= 20; round++) {
            CHECK(f.eval_into({ng_mul(ng_leaf(f.s, x), ng_const(f.s, 0, round))}, {y}) == NG_OK);
            CHECK(wrong(round, 0) == 0);
        }
        CHECK(ng_tensor_fill(y, nullptr, 7, &f.error) == NG_OK);
        CHECK(wrong(0, 7) == 0);
        CHECK(ng_tensor_copy(y, x, nullptr, &f.error) == NG_OK);
        CHECK(wrong(1, 0) == 0);
        ng_prog* p = f.compile({ng_add(f.param(0, shape(NG_F32, {-1})), ng_const(f.s, 0, 2))}, {.length_max = {int64_t(MANY)}});
        CHECK(f.run(p, {.args = {x}, .out = {y}}) == NG_OK);
        CHECK(wrong(1, 2) == 0);
        uint64_t mark = 0;
        CHECK(ng_mark(f.c, nullptr, &mark, &f.error) == NG_OK);
        CHECK(ng_mark_wait(f.c, mark, 0, &f.error) == NG_OK);
        CHECK(ng_ctx_sync(f.c, nullptr, 0, &f.error) == NG_OK);
    }
}

TEST_CASE("S2: work on one stream runs in order, and memory is ordered, also when the caller orders")
{
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_CALLER_ORDERS)}) {
        Face f(flags, 4);
        ng_tensor* t = f.tensor(Values(MANY, 0));
        ng_tensor *low = f.part(t, 0, 0, int64_t(MANY) / 2), *high = f.part(t, 0, int64_t(MANY) / 2, NG_END);
        ng_expr *all = ng_leaf(f.s, t), *one = ng_const(f.s, 0, 1);
        uint64_t mark = 0;
        for (int round = 0; round < 30; round++) {
            CHECK(f.eval_into({ng_add(all, one)}, {t}) == NG_OK);
            CHECK(ng_mark(f.c, nullptr, &mark, &f.error) == NG_OK);
            CHECK(ng_mark_after(f.c, nullptr, mark, &f.error) == NG_OK);
            CHECK(f.eval_into({ng_mul(ng_leaf(f.s, low), ng_const(f.s, 0, 2))}, {low}) == NG_OK);
            CHECK(f.eval_into({ng_sub(ng_leaf(f.s, high), one)}, {high}) == NG_OK);
            CHECK(f.eval_into({ng_mul(ng_leaf(f.s, low), ng_const(f.s, 0, 0.5))}, {low}) == NG_OK);
        }
        Values want(MANY, 0);
        std::fill(want.begin(), want.begin() + int64_t(MANY) / 2, 30);
        CHECK(differs(f.get(t), want) == "");
        CHECK(ng_mark_wait(f.c, mark + 1000, 0, &f.error) == NG_E_INVALID);
    }
}

TEST_CASE("S2: scalars are read before anything is written over them")
{
    Face f(0, 2);
    ng_shape many = shape(NG_F32, {1 << 20});
    ng_prog* p = f.compile({ng_exp(ng_mul(f.param(0, many), ng_scalar(f.s, NG_F32, 0)))});
    many.flags = NG_HOST;
    ng_tensor* y = f.make(many);
    f.put(y, Values(1 << 20, 1));
    CHECK(f.run(p, {.args = {f.tensor(Values(1 << 20, 0.5))}, .out = {y}, .scalars = f.data(y), .scalar_bytes = 4}) == NG_OK);
    const Values got = f.get(y);
    CHECK(std::ranges::count(got, got[0]) == 1 << 20);
}

TEST_CASE("S3: put has read its source and get has filled its goal on return, in the nesting of the strides")
{
    Face f(0, 4);
    const ng_shape d = shape(NG_F32, {3, 5}), columns = shape(NG_F32, {3, 5}, {1, 3}), gaps = shape(NG_F32, {3, 5}, {16, 2});
    std::vector<float> source(15), goal(15, -1);
    for (int i = 0; i < 15; i++) source[size_t(i)] = float(i);
    const std::vector<float> numbers = source;
    ng_tensor *rows = f.make(d), *nested = f.make(columns), *wide = f.make(gaps);
    for (ng_tensor* t : {rows, nested, wide}) {
        CHECK(ng_tensor_put(t, source.data(), 60, &f.error) == NG_OK);
        std::fill(source.begin(), source.end(), 99.f);                  // the source is the caller's again
        CHECK(ng_tensor_get(t, goal.data(), 60, &f.error) == NG_OK);
        CHECK(goal == numbers);
        source = numbers;
        CHECK(ng_tensor_put(t, source.data(), 56, &f.error) < 0);       // bytes is exact
        CHECK(ng_tensor_put(t, source.data(), 64, &f.error) < 0);
        CHECK(ng_tensor_get(t, goal.data(), 56, &f.error) < 0);
    }
    // a column-major tensor took a column-major array
    CHECK(differs(f.eval(ng_leaf(f.s, nested)), {0, 3, 6, 9, 12, 1, 4, 7, 10, 13, 2, 5, 8, 11, 14}) == "");
    // between wrapped memory and a tensor, whatever their strides: equal elements, no more
    std::vector<float> lent(48, -1);
    ng_tensor* host = f.wrap(gaps, lent.data(), lent.size() * 4);
    CHECK(ng_tensor_copy(host, nested, nullptr, &f.error) == NG_OK);
    for (size_t i = 0; i < 48; i++) {
        const size_t row = i / 16, column = i % 16 / 2;
        CHECK(lent[i] == (i % 2 == 0 && column < 5 ? float(column * 3 + row) : -1));
    }
    lent[2] = 50;
    CHECK(ng_tensor_copy(rows, host, nullptr, &f.error) == NG_OK);
    CHECK(f.get(rows)[1] == 50);
    ng_tensor* other = f.make(shape(NG_F32, {5, 3}));
    CHECK(ng_tensor_copy(other, rows, nullptr, &f.error) == NG_E_SHAPE);
    CHECK(ng_tensor_copy(f.make(shape(NG_F64, {3, 5})), rows, nullptr, &f.error) == NG_E_DTYPE);
}

TEST_CASE("S4: a stream that is none of the CPU's is refused and never looked into; a sync may come at any time")
{
    Face f;
    const long page = sysconf(_SC_PAGESIZE);
    void* nothing = mmap(nullptr, size_t(page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(nothing != MAP_FAILED);
    ng_tensor *x = f.tensor(counted(4)), *y = f.make(shape(NG_F32, {4}));
    ng_expr* e = ng_leaf(f.s, x);
    uint64_t mark = 0;
    CHECK(ng_mark(f.c, nullptr, &mark, &f.error) == NG_OK);
    CHECK(ng_eval(f.c, nothing, &e, &y, 1, &f.error) == NG_E_INVALID);
    CHECK(ng_tensor_fill(y, nothing, 1, &f.error) == NG_E_INVALID);
    CHECK(ng_tensor_copy(y, x, nothing, &f.error) == NG_E_INVALID);
    CHECK(ng_tensor_use(x, nothing, NG_USE_READ, nullptr, &f.error) == NG_E_INVALID);
    CHECK(ng_mark(f.c, nothing, &mark, &f.error) == NG_E_INVALID);
    CHECK(ng_mark_after(f.c, nothing, mark, &f.error) == NG_E_INVALID);
    ng_prog* p = f.compile({ng_neg(f.param(0, shape(NG_F32, {4})))});
    ng_run r{};
    r.size = sizeof r, r.nargs = r.nout = 1, r.args = &x, r.out = &y;
    CHECK(ng_prog_run(p, nothing, &r, &f.error) == NG_E_INVALID);
    CHECK(ng_ctx_sync(f.c, nothing, 0, &f.error) == NG_E_INVALID);
    munmap(nothing, size_t(page));
    for (int i = 0; i < 3; i++) CHECK(ng_ctx_sync(f.c, nullptr, i ? UINT64_MAX : 0, &f.error) == NG_OK);
    CHECK(ng_prog_run(p, nullptr, &r, &f.error) == NG_OK);
}

TEST_CASE("S5: done is called once, within the next poll, sync or close at the latest, never inside a release")
{
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_POLL)})
        for (int way = 0; way < 3; way++) {
            ng_ctx* c = opened(description(flags));
            Loan loan(c);
            ng_tensor_retain(loan.tensor);
            ng_tensor_release(loan.tensor);
            CHECK(ng_ctx_sync(c, nullptr, UINT64_MAX, nullptr) == NG_OK);
            CHECK(loan.ends == 0);
            ng_tensor_release(loan.tensor);
            CHECK(loan.ends == 0);
            if (flags) {
                busy_with(c);
                CHECK(loan.ends == 0);
            }
            if (way == 0) CHECK(ng_ctx_poll(c, 0, nullptr) == NG_OK);
            if (way == 1) CHECK(ng_ctx_sync(c, nullptr, 0, nullptr) == NG_OK);
            if (way == 2) CHECK(ng_ctx_close(c, UINT64_MAX, nullptr) == NG_OK);
            CHECK(loan.ends == 1);
            if (way != 2) CHECK(ng_ctx_close(c, UINT64_MAX, nullptr) == NG_OK);
            ng_ctx_release(c);
            CHECK(loan.ends == 1);
        }
}

TEST_CASE("S5: not before the last use, be it a leaf, a view or a scope's expression; a wrap that fails never calls it")
{
    Face f;
    const auto settle = [&] { CHECK(ng_ctx_sync(f.c, nullptr, UINT64_MAX, &f.error) == NG_OK); };
    Loan by_leaf(f.c), by_view(f.c), by_program(f.c);
    ng_scope* s = ng_scope_create(f.c, 0);
    ng_expr* e = ng_sum(ng_leaf(s, by_leaf.tensor), NG_ALL, 0);
    ng_tensor_release(by_leaf.tensor);
    settle();
    CHECK(f.eval(e) == Values{160});
    CHECK(by_leaf.ends == 0);
    ng_scope_release(s);
    CHECK(by_leaf.ends == 0);
    settle();
    CHECK(by_leaf.ends == 1);

    s = ng_scope_create(f.c, 0);
    ng_tensor* view = nullptr;
    REQUIRE(ng_tensor_view(ng_slice(ng_leaf(s, by_view.tensor), 0, 3, 9, 1), &view, &f.error) == NG_OK);
    ng_tensor_release(by_view.tensor);
    ng_scope_release(s);
    settle();
    CHECK(by_view.ends == 0);
    CHECK(ng_tensor_fill(view, nullptr, 4, &f.error) == NG_OK);
    CHECK(by_view.memory[3] == 4);
    ng_tensor_release(view);
    settle();
    CHECK(by_view.ends == 1);

    s = ng_scope_create(f.c, 0);
    ng_expr* doubled = ng_mul(ng_leaf(s, by_program.tensor), ng_const(s, 0, 2));
    ng_prog* p = nullptr;
    REQUIRE(f.try_compile({doubled}, {}, &p) == NG_OK);
    ng_tensor_release(by_program.tensor);
    ng_scope_release(s);
    settle();
    CHECK(by_program.ends == 0);
    ng_tensor* y = f.make(shape(NG_F32, {64}));
    CHECK(f.run(p, {.out = {y}}) >= NG_OK);
    CHECK(differs(f.get(y), Values(64, 5)) == "");
    ng_prog_release(p);
    settle();
    CHECK(by_program.ends == 1);

    int ends = 0;
    float memory[4];
    ng_tensor* none = nullptr;
    const ng_shape d = shape(NG_F32, {8});
    CHECK(ng_tensor_wrap(f.c, &d, memory, 16, [](void* user) { ++*static_cast<int*>(user); }, &ends, &none, &f.error) == NG_E_SHAPE);
    settle();
    CHECK(ends == 0);
}

TEST_CASE("S5: done runs under no lock: it may build, evaluate, release and poll in its own context")
{
    struct Guest {
        ng_ctx* c;
        ng_scope* s;
        ng_tensor* other;
        Loan& late;
        Values seen;
        int calls = 0, within = 0;
    };
    const ng_done_fn reenter = [](void* user) {
        Guest& g = *static_cast<Guest*>(user);
        g.calls++;
        std::thread([&] {  // a lock that this thread holds would let itself in
            ng_expr* e = ng_add(ng_leaf(g.s, g.other), ng_const(g.s, 0, 1));
            ng_tensor* y = nullptr;
            if (ng_eval(g.c, nullptr, &e, &y, 1, nullptr) == NG_OK) {
                float v[3];
                if (ng_tensor_get(y, v, sizeof v, nullptr) == NG_OK) g.seen.assign(v, v + 3);
            }
            ng_tensor_release(y);
            ng_ctx_poll(g.c, 0, nullptr);
        }).join();
        ng_tensor_release(g.late.tensor);
        ng_ctx_poll(g.c, 0, nullptr);
        g.within = g.late.ends;
        ng_tensor_release(std::exchange(g.other, nullptr));
    };
    for (const uint32_t flags : {0u, uint32_t(NG_CTX_POLL)})
        for (const bool closes : {false, true}) {
            Face f(flags);
            Loan late(f.c);
            Guest guest{f.c, f.s, nullptr, late, {}};
            const ng_shape three = shape(NG_F32, {3});
            REQUIRE(ng_tensor_create(f.c, &three, &guest.other, &f.error) == NG_OK);
            f.put(guest.other, {1, 2, 3});
            float memory[3] = {};
            ng_tensor* t = nullptr;
            REQUIRE(ng_tensor_wrap(f.c, &three, memory, sizeof memory, reenter, &guest, &t, &f.error) == NG_OK);
            if (closes) CHECK(ng_tensor_close(t, &f.error) == NG_OK);
            CHECK(guest.calls == int(closes));
            ng_tensor_release(t);
            CHECK(ng_ctx_poll(f.c, UINT64_MAX, &f.error) == NG_OK);
            CHECK(guest.calls == 1);
            CHECK(guest.within == 0);
            CHECK(late.ends == 1);
            CHECK(differs(guest.seen, {2, 3, 4}) == "");
        }
}

TEST_CASE("S6: a tensor that was closed is NG_E_INVALID to all but release, and so is all over its memory")
{
    Face f;
    Loan loan(f.c);
    ng_tensor* t = loan.tensor;
    ng_expr* x = ng_leaf(f.s, t);
    ng_tensor *view = f.part(t, 0, 8, 16), *y = f.make(shape(NG_F32, {64})), *made = nullptr;
    ng_expr *sum = ng_sum(ng_leaf(f.s, view), NG_ALL, 0), *e = ng_exp(x);
    ng_prog *by_argument = f.compile({ng_neg(f.param(0, shape(NG_F32, {64})))}), *by_leaf = f.compile({ng_neg(x)});
    CHECK(f.run(by_argument, {.args = {t}, .out = {y}}) == NG_OK);
    CHECK(ng_tensor_close(t, &f.error) == NG_OK);
    CHECK(loan.ends == 1);
    loan.memory.assign(64, 77);
    float host[64] = {};
    void* at = nullptr;
    for (ng_tensor* dead : {t, view}) {
        const uint64_t bytes = dead == t ? 256 : 32;
        CHECK(ng_tensor_get(dead, host, bytes, &f.error) == NG_E_INVALID);
        CHECK(f.error.text[0]);
        CHECK(ng_tensor_put(dead, host, bytes, &f.error) == NG_E_INVALID);
        CHECK(ng_tensor_fill(dead, nullptr, 0, &f.error) == NG_E_INVALID);
        CHECK(ng_tensor_use(dead, nullptr, NG_USE_READ, &at, &f.error) == NG_E_INVALID);
        CHECK(ng_tensor_close(dead, &f.error) == NG_E_INVALID);
    }
    CHECK(ng_tensor_copy(y, t, nullptr, &f.error) == NG_E_INVALID);
    CHECK(ng_tensor_copy(t, y, nullptr, &f.error) == NG_E_INVALID);
    CHECK(f.fault(e) == NG_E_INVALID);
    CHECK(f.fault(sum) == NG_E_INVALID);
    CHECK(f.eval_into({ng_neg(ng_leaf(f.s, y))}, {t}) == NG_E_INVALID);
    CHECK(f.run(by_argument, {.args = {t}, .out = {y}}) == NG_E_INVALID);
    CHECK(f.run(by_argument, {.args = {y}, .out = {t}}) == NG_E_INVALID);
    CHECK(f.run(by_leaf, {.out = {y}}) == NG_E_INVALID);
    ng_expr* dead = ng_leaf(f.s, t);
    CHECK(ng_eval(f.c, nullptr, &dead, &made, 1, &f.error) == NG_E_INVALID);
    CHECK(ng_tensor_view(x, &made, &f.error) == NG_E_INVALID);
    CHECK(made == nullptr);
    CHECK(loan.memory == std::vector<float>(64, 77));
    ng_tensor_release(t);
    CHECK(loan.ends == 1);
}

TEST_CASE("S6: a context that was closed is NG_E_LOST to all but release, its things with it")
{
    ng_ctx* c = opened(description(0, 3));
    Loan loan(c);
    ng_scope* s = ng_scope_create(c, 0);
    const ng_shape d = shape(NG_F32, {64});
    ng_expr *e = ng_exp(ng_leaf(s, loan.tensor)), *p0 = ng_neg(ng_param(s, 0, &d));
    ng_tensor *y = nullptr, *none = nullptr;
    ng_prog *p = nullptr, *q = nullptr;
    ng_error error{};
    REQUIRE(ng_eval(c, nullptr, &e, &y, 1, &error) == NG_OK);
    REQUIRE(ng_compile(c, nullptr, &p0, 1, &p, &error) == NG_OK);
    ng_ctx_retain(c);
    CHECK(ng_ctx_close(c, UINT64_MAX, &error) == NG_OK);
    CHECK(loan.ends == 1);
    ng_run r{};
    r.size = sizeof r, r.nargs = r.nout = 1, r.args = &loan.tensor, r.out = &y;
    float host[64];
    ng_ctx_desc plain = description();
    size_t bytes = 0;
    CHECK(ng_eval(c, nullptr, &e, &none, 1, &error) == NG_E_LOST);
    CHECK(ng_compile(c, nullptr, &p0, 1, &q, &error) == NG_E_LOST);
    CHECK(ng_prog_load(c, 0, host, sizeof host, &q, &error) == NG_E_LOST);
    CHECK(ng_prog_run(p, nullptr, &r, &error) == NG_E_LOST);
    CHECK(ng_prog_wait(p, 0, &error) == NG_E_LOST);
    CHECK(ng_tensor_get(y, host, sizeof host, &error) == NG_E_LOST);
    CHECK(ng_tensor_close(y, &error) == NG_E_LOST);
    CHECK(ng_tensor_create(c, &d, &none, &error) == NG_E_LOST);
    CHECK(ng_tensor_wrap(c, &d, host, sizeof host, nullptr, nullptr, &none, &error) == NG_E_LOST);
    CHECK(ng_ctx_limit(c, 0) == NG_E_LOST);
    CHECK(ng_ctx_trim(c, 0) == NG_E_LOST);
    CHECK(ng_ctx_sync(c, nullptr, 0, &error) == NG_E_LOST);
    CHECK(ng_prog_save(p, 0, nullptr, &bytes, &error) < 0);
    CHECK(ng_scope_create(c, 0) == nullptr);
    CHECK(none == nullptr);
    CHECK(q == nullptr);
    ng_tensor_release(y);
    ng_tensor_release(loan.tensor);
    ng_prog_release(p);
    ng_scope_release(s);
    ng_ctx_release(c);
    ng_ctx_release(c);
    CHECK(ng_ctx_sync(c, nullptr, 0, &error) == NG_E_INVALID);
    CHECK(loan.ends == 1);
    c = opened(plain);      // and the next one is none the worse
    busy_with(c);
    CHECK(ng_ctx_close(c, UINT64_MAX, &error) == NG_OK);
    ng_ctx_release(c);
}

TEST_CASE("S7: a tensor's address never changes")
{
    Face f(0, 4);
    ng_tensor *t = f.make(shape(NG_F32, {int64_t(MANY)})), *u = f.tensor(counted(MANY));
    void* const at = f.data(t);
    const auto stays = [&] { return f.data(t) == at; };
    CHECK(at != nullptr);
    f.put(t, counted(MANY));
    CHECK(stays());
    ng_expr* x = ng_leaf(f.s, t);
    CHECK(f.eval_into({ng_add(ng_slice(x, 0, NG_END, INT64_MIN, -1), ng_leaf(f.s, u))}, {t}) == NG_OK);
    CHECK(stays());
    CHECK(ng_tensor_copy(t, u, nullptr, &f.error) == NG_OK);
    CHECK(ng_tensor_fill(t, nullptr, 0.5, &f.error) == NG_OK);
    CHECK(ng_ctx_trim(f.c, 0) == NG_OK);
    CHECK(ng_ctx_sync(f.c, nullptr, UINT64_MAX, &f.error) == NG_OK);
    CHECK(stays());
    ng_prog* p = f.compile({ng_exp(f.param(0, shape(NG_F32, {int64_t(MANY)})))}, {.alias = {0}});
    CHECK(f.run(p, {.args = {t}, .out = {t}}) == NG_OK);
    CHECK(stays());
    CHECK(f.data(f.part(t, 0, 5, 9)) == static_cast<float*>(at) + 5);
    CHECK(f.data(f.part(t, 0, 8, 4, -1)) == static_cast<float*>(at) + 8);   // of element 0
}

TEST_CASE("S7: memory exists when create returns, its pages untouched until somebody fills them")
{
    Face f(0, 2);
    constexpr size_t BYTES = size_t(64) << 20;
    ng_tensor* t = f.make(shape(NG_U8, {int64_t(BYTES)}));
    CHECK(f.stats().live_bytes == BYTES);
    const auto page = size_t(sysconf(_SC_PAGESIZE));
    const auto resident = [&] {
        const auto first = (reinterpret_cast<uintptr_t>(f.data(t)) + page - 1) / page * page;
        std::vector<unsigned char> is_there((BYTES - page) / page);
        REQUIRE(mincore(reinterpret_cast<void*>(first), is_there.size() * page, is_there.data()) == 0);
        size_t n = 0;
        for (const unsigned char c : is_there) n += c & 1;
        return n * page;
    };
    CHECK(resident() <= BYTES / 100);
    CHECK(ng_tensor_fill(f.part(t, 0, 0, int64_t(BYTES) / 2), nullptr, 1, &f.error) == NG_OK);
    CHECK(resident() >= BYTES / 2 - page);
    CHECK(resident() <= BYTES / 2 + BYTES / 16);
}
