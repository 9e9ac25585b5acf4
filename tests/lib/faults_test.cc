// Every function of ng.h with every kind of wrong handle: a status and a sentence, never a fault, nothing written and nothing lost.
#include "tests/lib/world.h"

#include <cstring>
#include <random>
#include <string>

namespace {

// A value passed as whatever handle is asked for.
struct Any {
    void* value;
    template <class T> operator T*() const { return static_cast<T*>(value); }
};

// One good thing of each kind, and where results would go.
struct Things {
    ng_ctx* c = nullptr;
    ng_tensor *t = nullptr;                                  // f32 [4]
    ng_scope* s = nullptr;
    ng_expr *x = nullptr, *i = nullptr, *k = nullptr, *m = nullptr, *b = nullptr, *q = nullptr, *y = nullptr;
    ng_prog* p = nullptr;                                    // of one argument and one output
    float data[4] = {};
    ng_tensor* made = nullptr;
    ng_prog*   compiled = nullptr;
    ng_expr*   derived = nullptr;
    void*      address = nullptr;
    const char* port = nullptr;
    uint64_t   mark = 0;
    size_t     bytes = 0;
    int        done = 0;
    DLManagedTensorVersioned* managed = nullptr;
    ng_shape   vec4 = shape(NG_F32, {4}), image = shape(NG_F32, {1, 1, 2, 2}), told = vec4;
    ng_device_info device{};
    ng_stats       counted{};
    ng_prog_info   program{};
    ng_pool_desc   pool{};

    explicit Things(ng_ctx* context) : c(context), t(tensor(context, 4)), s(ng_scope_create(context, 0))
    {
        const ng_shape ints = shape(NG_I32, {4});
        const int64_t square[] = {2, 2}, four[] = {1, 1, 2, 2};
        REQUIRE(ng_tensor_fill(t, nullptr, 1, &error) == NG_OK);
        x = ng_leaf(nullptr, t), i = ng_iota(nullptr, &ints, 0), k = ng_const_int(nullptr, NG_U64, 1), m = ng_reshape(x, square, 2);
        b = ng_less(x, x), q = ng_reshape(x, four, 4), y = ng_param(s, 0, &vec4);
        ng_expr* twice = ng_add(y, y);
        REQUIRE_MESSAGE(ng_compile(c, nullptr, &twice, 1, &p, &error) == NG_OK, std::string(error.text));
        device.size = sizeof device, counted.size = sizeof counted, program.size = sizeof program, pool.size = sizeof pool;
    }
    Things(const Things&) = delete;
    void release()
    {
        for (ng_expr* e : {x, i, k, m, b, q}) ng_expr_release(e);
        ng_prog_release(p), ng_tensor_release(t), ng_scope_release(s);
    }
    bool is_untouched() const { return !made && !compiled && !derived && !address && !port && !mark && !bytes && !done && !managed; }

    // Why an expression cannot be evaluated. It is ours.
    ng_status fault(ng_expr* e)
    {
        ng_tensor* out = nullptr;
        if (!e) return NG_E_BUG;
        const ng_status status = ng_eval(c, nullptr, &e, &out, 1, &error);
        ng_expr_release(e), ng_tensor_release(out);
        return status;
    }
    ng_status run(ng_prog* program_, ng_tensor* in, ng_tensor* out, ng_tensor* workspace)
    {
        ng_run r{};
        r.size = sizeof r, r.nargs = r.nout = 1, r.args = &in, r.out = &out, r.workspace = workspace;
        return ng_prog_run(program_, nullptr, &r, &error);
    }
    ng_status grad(ng_expr* of, ng_expr* seed, ng_expr* by)
    {
        return ng_grad(&of, seed ? &seed : nullptr, 1, &by, &derived, 1, &error);
    }
};

// kind: of the handle that the call takes; a capital letter says that NULL is a good value.
struct Row {
    const char* name;
    char        kind;
    bool        has_error;
    ng_status (*call)(Things& w, Any h);
};
#define SAYS(kind, function, ...)   {#function, kind, true, [](Things& w, Any h) -> ng_status { return (void)w, function(__VA_ARGS__ __VA_OPT__(,) &error); }},
#define STATUS(kind, function, ...) {#function, kind, false, [](Things& w, Any h) -> ng_status { return (void)w, function(__VA_ARGS__); }},
#define BUILDS(kind, function, ...) {#function, kind, true, [](Things& w, Any h) -> ng_status { return w.fault(function(__VA_ARGS__)); }},
#define QUIET(kind, function, ...)  {#function, kind, false, [](Things&, Any h) -> ng_status { return function(__VA_ARGS__), NG_E_INVALID; }},
#define NOTHING(kind, function, ...) {#function, kind, false, [](Things&, Any h) -> ng_status { return function(__VA_ARGS__) ? NG_E_BUG : NG_E_INVALID; }},
#define CALLS(kind, function, ...) {#function, kind, true, [](Things& w, Any h) -> ng_status __VA_ARGS__},

const Row ROWS[] = {
    // contexts
    QUIET('c', ng_ctx_retain, h) QUIET('c', ng_ctx_release, h) SAYS('c', ng_ctx_close, h, 0) SAYS('c', ng_ctx_poll, h, 0) SAYS('c', ng_ctx_sync, h, nullptr, 0)
    STATUS('c', ng_ctx_info, h, &w.device) STATUS('c', ng_ctx_stats, h, &w.counted) STATUS('c', ng_ctx_limit, h, 0) STATUS('c', ng_ctx_trim, h, 0)
    NOTHING('c', ng_ctx_stream, h, 0) SAYS('c', ng_mark, h, nullptr, &w.mark) SAYS('c', ng_mark_wait, h, 1, 0) SAYS('c', ng_mark_after, h, nullptr, 1)
    SAYS('c', ng_tensor_create, h, &w.vec4, &w.made)
    SAYS('c', ng_tensor_wrap, h, &w.vec4, w.data, 16, [](void* user) { ++*static_cast<int*>(user); }, &w.done, &w.made)
    SAYS('c', ng_tensor_from_dlpack, h, nullptr, nullptr, &w.made) NOTHING('C', ng_scope_create, h, 0)
    SAYS('c', ng_eval, h, nullptr, &w.x, &w.made, 1) SAYS('c', ng_compile, h, nullptr, &w.x, 1, &w.compiled) SAYS('c', ng_prog_load, h, 0, w.data, 16, &w.compiled)
    // tensors
    QUIET('t', ng_tensor_retain, h) QUIET('t', ng_tensor_release, h) SAYS('t', ng_tensor_close, h) STATUS('t', ng_tensor_shape, h, &w.told) NOTHING('t', ng_tensor_ctx, h)
    SAYS('t', ng_tensor_use, h, nullptr, NG_USE_READ, &w.address) SAYS('t', ng_tensor_put, h, w.data, 16) SAYS('t', ng_tensor_get, h, w.data, 16)
    SAYS('t', ng_tensor_copy, h, w.t, nullptr) SAYS('t', ng_tensor_copy, w.t, h, nullptr) SAYS('t', ng_tensor_fill, h, nullptr, 0) SAYS('t', ng_tensor_to_dlpack, h, nullptr, &w.managed)
    BUILDS('t', ng_leaf, nullptr, h) SAYS('t', ng_expr_bind, w.x, h) CALLS('T', ng_eval, { ng_tensor* out = h; return ng_eval(w.c, nullptr, &w.x, &out, 1, &error); })
    CALLS('t', ng_prog_run, { return w.run(w.p, h, w.t, nullptr); }) CALLS('T', ng_prog_run, { return w.run(w.p, w.t, h, nullptr); })
    CALLS('T', ng_prog_run, { return w.run(w.p, w.t, w.t, h); })
    // scopes
    QUIET('S', ng_scope_release, h) BUILDS('S', ng_leaf, h, w.t) BUILDS('S', ng_param, h, 0, &w.vec4) BUILDS('S', ng_scalar, h, NG_F32, 0) BUILDS('S', ng_length, h, -1)
    BUILDS('S', ng_const, h, NG_F32, 1) BUILDS('S', ng_const_int, h, NG_I32, 1) BUILDS('S', ng_iota, h, &w.vec4, 0) BUILDS('S', ng_random, h, NG_UNIFORM, w.k, nullptr, &w.vec4)
    BUILDS('S', ng_parse, h, "x + 1", "x", &w.x, 1)
    // expressions
    QUIET('x', ng_expr_retain, h) QUIET('x', ng_expr_release, h) SAYS('x', ng_tensor_view, h, &w.made) SAYS('x', ng_expr_shape, h, &w.told)
    SAYS('x', ng_expr_text, h, nullptr, &w.bytes) SAYS('x', ng_expr_bind, h, w.t)
    BUILDS('x', ng_random, nullptr, NG_UNIFORM, h, nullptr, &w.vec4) BUILDS('X', ng_random, nullptr, NG_UNIFORM, w.k, h, &w.vec4)
    CALLS('x', ng_parse, { ng_expr* two[] = {w.x, h}; return w.fault(ng_parse(nullptr, "x + y", "x,y", two, 2)); })
    BUILDS('x', ng_cast, h, NG_F64) BUILDS('x', ng_cast_stochastic, h, NG_F16, 8, w.k, nullptr) BUILDS('x', ng_cast_stochastic, w.x, NG_F16, 8, h, nullptr)
    BUILDS('X', ng_cast_stochastic, w.x, NG_F16, 8, w.k, h) BUILDS('x', ng_bitcast, h, NG_I32) BUILDS('x', ng_reshape, h, w.vec4.dims, 1) BUILDS('x', ng_broadcast, h, w.vec4.dims, 1)
    CALLS('x', ng_permute, { const int32_t axes[] = {0}; return w.fault(ng_permute(h, axes, 1)); }) BUILDS('x', ng_slice, h, 0, 0, 1, 1)
    BUILDS('x', ng_window, h, 0, w.k, 1) BUILDS('x', ng_window, w.x, 0, h, 1) CALLS('x', ng_concat, { ng_expr* two[] = {w.x, h}; return w.fault(ng_concat(two, 2, 0)); })
    BUILDS('x', ng_view, h, &w.vec4, 0) BUILDS('x', ng_take, h, w.i, 0) BUILDS('x', ng_take, w.x, h, 0) BUILDS('x', ng_put, h, w.i, w.x, 0, NG_FOLD_SUM)
    BUILDS('x', ng_put, w.x, h, w.x, 0, NG_FOLD_SUM) BUILDS('x', ng_put, w.x, w.i, h, 0, NG_FOLD_SUM) BUILDS('x', ng_scan, h, 0, NG_FOLD_SUM, 0)
    BUILDS('x', ng_segment, h, w.i, NG_FOLD_SUM) BUILDS('x', ng_segment, w.x, h, NG_FOLD_SUM) BUILDS('x', ng_argsort, h, 0, 0) BUILDS('x', ng_tag, h, "a") BUILDS('x', ng_keep, h)
    BUILDS('x', ng_matmul, h, w.m, nullptr) BUILDS('x', ng_matmul, w.m, h, nullptr) BUILDS('x', ng_conv, h, w.q, nullptr) BUILDS('x', ng_conv, w.q, h, nullptr)
    BUILDS('x', ng_conv_dx, h, w.q, &w.image, nullptr) BUILDS('x', ng_conv_dx, w.q, h, &w.image, nullptr) BUILDS('x', ng_conv_dw, h, w.q, &w.image, nullptr)
    BUILDS('x', ng_conv_dw, w.q, h, &w.image, nullptr) BUILDS('x', ng_pool, h, &w.pool) BUILDS('x', ng_pool_dx, h, w.q, &w.pool) BUILDS('x', ng_pool_dx, w.q, h, &w.pool)
    CALLS('x', ng_grad, { return w.grad(h, nullptr, w.x); }) CALLS('X', ng_grad, { return w.grad(w.x, h, w.x); }) CALLS('x', ng_grad, { return w.grad(w.x, nullptr, h); })
    BUILDS('x', ng_surrogate, h, w.x) BUILDS('X', ng_surrogate, w.x, h) BUILDS('x', ng_custom_grad, h, w.y, &w.x, &w.x, 1) BUILDS('x', ng_custom_grad, w.x, h, &w.x, &w.x, 1)
    CALLS('x', ng_custom_grad, { ng_expr* e = h; return w.fault(ng_custom_grad(w.x, w.y, &e, &w.x, 1)); })
    CALLS('x', ng_custom_grad, { ng_expr* e = h; return w.fault(ng_custom_grad(w.x, w.y, &w.x, &e, 1)); })
    BUILDS('x', ng_subst, h, &w.x, &w.x, 1) CALLS('x', ng_subst, { ng_expr* e = h; return w.fault(ng_subst(w.x, &e, &w.x, 1)); })
    CALLS('x', ng_subst, { ng_expr* e = h; return w.fault(ng_subst(w.x, &w.x, &e, 1)); })
    CALLS('x', ng_eval, { ng_expr* e = h; return ng_eval(w.c, nullptr, &e, &w.made, 1, &error); })
    CALLS('x', ng_compile, { ng_expr* two[] = {w.x, h}; return ng_compile(w.c, nullptr, two, 2, &w.compiled, &error); })
    // programs
    QUIET('p', ng_prog_retain, h) QUIET('p', ng_prog_release, h) SAYS('p', ng_prog_wait, h, 0) CALLS('p', ng_prog_run, { return w.run(h, w.t, w.t, nullptr); })
    SAYS('p', ng_prog_get_info, h, &w.program) SAYS('p', ng_prog_port, h, 0, &w.told, &w.port) SAYS('p', ng_prog_explain, h, nullptr, &w.bytes) SAYS('p', ng_prog_save, h, 0, nullptr, &w.bytes)
    CALLS('P', ng_compile, {
        ng_compile_desc d{};
        d.size = sizeof d, d.workspace_of = h;
        return ng_compile(w.c, &d, &w.x, 1, &w.compiled, &error);
    })
    // words
#define WORD_1(name) BUILDS('x', ng_##name, h)
#define WORD_2(name) BUILDS('x', ng_##name, h, w.x) BUILDS('x', ng_##name, w.x, h)
#define WORD_3(name) BUILDS('x', ng_##name, h, w.x, w.x) BUILDS('x', ng_##name, w.b, h, w.x) BUILDS('x', ng_##name, w.b, w.x, h)
#define MAP(name, arity, ...) WORD_##arity(name)
#define FOLD(name, ...) BUILDS('x', ng_##name, h, NG_AXIS_0, 0)
#define STAT(name, ...) BUILDS('x', ng_##name, h, NG_AXIS_0, 0)
#define NORM(name, ...) BUILDS('x', ng_##name, h, NG_AXIS_0)
#include "jit/ops.def"
#undef WORD_1
#undef WORD_2
#undef WORD_3
};

// h, which is really a `kind` or nothing of ours, in every place where another handle is wanted.
void probe(Things& w, const std::string& what, void* h, char kind)
{
    for (const Row& row : ROWS) {
        const char wanted = row.kind | 0x20;
        if (wanted == kind || (!h && wanted != row.kind)) continue;
        std::memset(&error, 0x7e, sizeof error);
        const ng_status status = row.call(w, Any{h});
        const bool said = !row.has_error || (error.status == status && error.text[0] && std::memchr(error.text, 0, sizeof error.text));
        const bool named = !row.has_error || std::string(error.text).find(row.name) == 0;
        if (status == NG_E_INVALID && said && named && w.is_untouched()) continue;
        FAIL_CHECK(std::string(row.name), " with ", what, ": ", std::string(ng_status_name(status)), ", says \"", std::string(error.text, 60), "\"");
    }
}

std::string numbered(const char* what, void* h)
{
    char text[80];
    std::snprintf(text, sizeof text, "%s %p", what, h);
    return text;
}

bool same(const ng_stats& a, const ng_stats& b)
{
    return a.tensors == b.tensors && a.dev_bytes == b.dev_bytes && a.live_bytes == b.live_bytes && a.workspace_bytes == b.workspace_bytes;
}

// The good things are still good.
void check_sound(Things& w)
{
    ng_tensor* out = tensor(w.c, 4);
    CHECK(w.run(w.p, w.t, out, nullptr) == NG_OK);
    CHECK(data_of<float>(out)[3] == 2);
    CHECK(ng_eval(w.c, nullptr, &w.x, &out, 1, &error) == NG_OK);
    CHECK(data_of<float>(out)[3] == 1);
    ng_expr* e = ng_const(w.s, NG_F32, 3);
    CHECK(ng_eval(w.c, nullptr, &e, &w.made, 1, &error) == NG_OK);
    ng_tensor_release(w.made), ng_tensor_release(out);
    w.made = nullptr;
}

}  // namespace

TEST_CASE("handles: NULL, released, foreign and arbitrary ones are NG_E_INVALID in every place of every function")
{
    World world;
    Things gone(world.c), w(world.c);
    void* const stale[] = {gone.t, gone.s, gone.x, gone.m, gone.b, gone.p};
    gone.release();
    ng_ctx* closed = open_ctx();
    shut(closed);
    const ng_stats before = stats(world.c);
    int on_stack = 0;
    static int fixed = 0;
    probe(w, "NULL", nullptr, 0);
    for (void* h : stale) probe(w, numbered("a released handle", h), h, 0);
    probe(w, "a released context", closed, 0);
    const struct { const char* what; void* h; char kind; } live[] = {{"a context", w.c, 'c'}, {"a tensor", w.t, 't'}, {"a scope", w.s, 's'}, {"an expression", w.x, 'x'}, {"a program", w.p, 'p'}};
    for (const auto& l : live) probe(w, l.what, l.h, l.kind);
    for (void* h : {static_cast<void*>(&on_stack), static_cast<void*>(&fixed), static_cast<void*>(w.data), static_cast<void*>(&w)}) probe(w, numbered("an address", h), h, 0);
    std::mt19937_64 dice(1);
    std::vector<uint64_t> odd = {1, 2, 3, 7, 8, 4095, 4096, 0xdeadbeef, 0xdeadbeefcafe, ~0ull, ~0ull >> 1, 1ull << 46, 1ull << 47, 1ull << 63};
    for (int i = 0; i < 100; i++) odd.push_back(dice() >> i % 40);
    for (const auto& l : live)
        for (int bit = 26; bit < 64; bit++) odd.push_back(uint64_t(uintptr_t(l.h)) ^ uint64_t(1) << bit);
    for (const uint64_t v : odd) probe(w, numbered("the number", reinterpret_cast<void*>(uintptr_t(v))), reinterpret_cast<void*>(uintptr_t(v)), 0);
    CHECK(same(stats(world.c), before));
    check_sound(w);
    w.release();
}

TEST_CASE("handles: without an error to fill the statuses are the same")
{
    World world;
    Things w(world.c);
    float f[4];
    ng_run r{};
    r.size = sizeof r;
    CHECK(ng_ctx_close(nullptr, 0, nullptr) == NG_E_INVALID);
    CHECK(ng_ctx_create(nullptr, nullptr, nullptr) == NG_E_INVALID);
    CHECK(ng_tensor_create(w.c, nullptr, &w.made, nullptr) == NG_E_INVALID);
    CHECK(ng_tensor_create(w.c, &w.vec4, nullptr, nullptr) == NG_E_INVALID);
    CHECK(ng_tensor_get(nullptr, f, 16, nullptr) == NG_E_INVALID);
    CHECK(ng_tensor_use(nullptr, nullptr, 0, nullptr, nullptr) == NG_E_INVALID);
    CHECK(ng_expr_text(w.x, nullptr, nullptr, nullptr) == NG_E_INVALID);
    CHECK(ng_eval(w.c, nullptr, nullptr, &w.made, 1, nullptr) == NG_E_INVALID);
    CHECK(ng_eval(w.c, nullptr, &w.x, nullptr, 1, nullptr) == NG_E_INVALID);
    CHECK(ng_eval(w.c, nullptr, &w.x, &w.made, 0, nullptr) == NG_E_INVALID);
    CHECK(ng_compile(w.c, nullptr, &w.x, 1, nullptr, nullptr) == NG_E_INVALID);
    CHECK(ng_prog_run(w.p, nullptr, nullptr, nullptr) == NG_E_INVALID);
    CHECK(ng_prog_run(w.p, nullptr, &r, nullptr) == NG_E_INVALID);
    CHECK(w.is_untouched());
    w.release();
}

TEST_CASE("plain functions: numbers out of range and NULL have answers")
{
    for (const ng_status s : {0, 1, -1, -12, -13, 99, INT32_MIN, INT32_MAX}) CHECK(std::strlen(ng_status_name(s)) > 0);
    CHECK(ng_version() == NG_VERSION);
    CHECK(std::strlen(ng_api_json()) > 1000);
    ng_device_info d{};
    CHECK(ng_device_get(0, nullptr) == NG_E_INVALID);
    CHECK(ng_device_get(0, &d) == NG_E_INVALID);               // no size
    d.size = sizeof d;
    CHECK(ng_device_get(ng_device_count(), &d) == NG_E_INVALID);
    CHECK(ng_device_get(UINT32_MAX, &d) == NG_E_INVALID);
    ng_ctx* c = nullptr;
    ng_ctx_desc ctx{};
    CHECK(ng_ctx_create(&ctx, &c, &error) == NG_E_INVALID);
    CHECK(c == nullptr);
}

TEST_CASE("errors: what is no UTF-8 in a name is '?' in the sentence, what is stays")
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION;
    ng_ctx*  c = nullptr;
    ng_error error{};
    const std::pair<const char*, const char*> names[] = {
        {"\xff\xfe", "??"}, {"a\x80z", "a?z"}, {"\xc3\xa9", "\xc3\xa9"}, {"\xc0\xaf", "??"}, {"\xed\xa0\x80", "???"}, {"\xe2\x82", "??"}, {"\xf0\x9f\x98\x80!", "\xf0\x9f\x98\x80!"}, {"\xf5\x80\x80\x80", "????"}};
    for (const auto& [given, said] : names) {
        d.backend = given;
        CHECK(ng_ctx_create(&d, &c, &error) < 0);
        CHECK_MESSAGE(std::string_view(error.text).find(said) != std::string_view::npos, error.text);
    }
}

TEST_CASE("poison: spreads through every word, and its first fault is what evaluation says")
{
    World world;
    Things w(world.c);
    ng_expr* bad = ng_reshape(w.x, w.image.dims, 3);
    for (const Row& row : ROWS) {
        if ((row.kind | 0x20) != 'x' || !row.has_error) continue;
        error = {};
        const ng_status status = row.call(w, Any{bad});
        INFO(std::string(row.name));
        CHECK(status == NG_E_SHAPE);
        CHECK(std::string(error.text).find("ng_reshape: ") == 0);
        CHECK(w.is_untouched());
    }
    ng_expr_release(bad);
    w.release();
}
