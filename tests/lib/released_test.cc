// What a release of an expression or a program leaves to later calls: every free, however much hangs on it.
#include "tests/lib/world.h"

#include <new>
#include <utility>

namespace {

std::atomic<uint64_t> frees{0}, news{0};

}  // namespace

[[gnu::noinline]] void* operator new(size_t bytes)
{
    news++;
    if (void* p = std::malloc(bytes)) return p;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { frees++, std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { frees++, std::free(p); }

namespace {

constexpr uint64_t MANY = 1000;

// A chain of so many nodes over a tensor or an argument, which its caller keeps though its scope has ended.
ng_expr* chain(ng_ctx* c, ng_tensor* t)
{
    const ng_shape d = vec(64);
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* e = t ? ng_leaf(s, t) : ng_param(s, 0, &d);
    for (uint64_t i = 0; i < MANY; i++) e = ng_sin(e);
    ng_expr_retain(e);
    ng_scope_release(s);
    return e;
}

// A program of one over a tensor that was lent, which nothing else keeps.
struct Compiled {
    std::atomic<int> done{0};
    ng_expr*         e;
    ng_prog*         p = nullptr;
    explicit Compiled(ng_ctx* c)
    {
        ng_tensor* t = lent(c, done);
        e = chain(c, t);
        REQUIRE(ng_compile(c, nullptr, &e, 1, &p, &error) == NG_OK);
        ng_tensor_release(t);
    }
};

// How many blocks of memory it frees; nothing is taken.
template <class Call>
uint64_t freed(Call call)
{
    const uint64_t before = frees, taken = news;
    call();
    CHECK(news == taken);
    return frees - before;
}

}  // namespace

TEST_CASE("releases free nothing; the next poll does, and calls the done of what hung on them")
{
    ng_ctx* c = open_ctx();
    Compiled made(c);
    CHECK(freed([&] { ng_prog_release(made.p); }) == 0);
    REQUIRE(ng_ctx_poll(c, 0, &error) == NG_OK);
    CHECK(made.done == 0);
    CHECK(freed([&] { ng_expr_release(made.e); }) == 0);
    CHECK(made.done == 0);
    CHECK(freed([&] { CHECK(ng_ctx_poll(c, 0, &error) == NG_OK); }) > MANY);
    CHECK(made.done == 1);
    CHECK(stats(c).tensors == 0);
    shut(c);
}

TEST_CASE("without a context, building and the ends of scopes free what was released")
{
    for (const bool builds : {false, true}) {
        ng_scope* s = ng_scope_create(nullptr, 0);
        ng_expr* e = chain(nullptr, nullptr);
        CHECK(freed([&] { ng_expr_release(e); }) == 0);
        const uint64_t before = frees;
        if (builds) CHECK(ng_expr_shape(ng_const(s, NG_F32, 1), nullptr, nullptr) == NG_E_INVALID);
        else ng_scope_release(std::exchange(s, nullptr));
        CHECK(frees - before > MANY);
        ng_scope_release(s);
    }
}

TEST_CASE("what was released of a context that nobody holds goes with the next call on another one")
{
    ng_ctx *c = open_ctx(), *other = open_ctx();
    Compiled made(c);
    ng_ctx_release(c);
    ng_prog_release(made.p);
    ng_expr_release(made.e);
    CHECK(made.done == 0);
    CHECK(ng_ctx_poll(other, 0, &error) == NG_OK);
    CHECK(made.done == 1);
    shut(other);
}
