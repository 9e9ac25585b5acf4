// NULL for every pointer of ng.h that is no handle: refused with a sentence that names it, or taken where the header says NG_OPT.
#include "tests/contract/face.h"
#include "tests/harm/dlpack_binary.h"

namespace {

// One good thing of each kind, and where results would go. Its expressions are no scope's, so what a row builds is the row's to release.
struct Things {
    Face       f{0, 1};
    ng_ctx*    c = f.c;
    ng_tensor* t = f.tensor({1, 2, 3, 4});
    ng_shape   vec4 = shape(NG_F32, {4}), image = shape(NG_F32, {1, 1, 2, 2}), told = vec4;
    ng_expr   *x = ng_leaf(nullptr, t), *m, *q, *one, *k = ng_const_int(nullptr, NG_U64, 1), *y = ng_param(nullptr, 0, &vec4);
    ng_prog*   p;                                            // of one argument and one output
    float      data[4] = {};
    ng_ctx*    opened = nullptr;
    ng_tensor* made = nullptr;
    ng_prog*   compiled = nullptr;
    ng_expr*   derived = nullptr;
    ng_scope*  scope = nullptr;
    const char* port = nullptr;
    uint64_t   mark = 0;
    size_t     bytes = 0;
    DLManagedTensorVersioned managed{};

    Things()
    {
        const int64_t square[] = {2, 2}, four[] = {1, 1, 2, 2};
        m = ng_reshape(x, square, 2), q = ng_reshape(x, four, 4), one = ng_sum(q, NG_ALL, NG_KEEP);
        ng_expr* twice = ng_add(y, y);
        p = f.compile({twice});
        ng_expr_release(twice);
    }
    ~Things()
    {
        for (ng_expr* e : {x, m, q, one, k, y}) ng_expr_release(e);
    }
    Things(const Things&) = delete;

    bool is_untouched() const { return !opened && !made && !compiled && !derived && !scope && !port && !mark && !bytes; }
    void drop()
    {
        if (opened) ng_ctx_close(opened, 5000000000u, nullptr);     // one row has done so
        ng_ctx_release(opened), ng_tensor_release(made), ng_prog_release(compiled), ng_expr_release(derived), ng_scope_release(scope);
        opened = nullptr, made = nullptr, compiled = nullptr, derived = nullptr, scope = nullptr, port = nullptr, mark = 0, bytes = 0;
    }
    // to be closed by the row
    ng_ctx* another() { return opened = ::opened(1); }
    ng_tensor* one_more()
    {
        REQUIRE(ng_tensor_create(c, &vec4, &made, nullptr) == NG_OK);
        return made;
    }
    uint64_t marked()
    {
        uint64_t now = 0;
        REQUIRE(ng_mark(c, nullptr, &now, nullptr) == NG_OK);
        return now;
    }

    ng_status answer(ng_status status, ng_error*) { return status; }
    ng_status answer(ng_scope* s, ng_error*) { return scope = s, s ? NG_OK : NG_E_INVALID; }
    ng_status answer(ng_expr* e, ng_error* err)
    {
        const ng_status status = e ? ng_expr_shape(e, &told, err) : NG_E_BUG;
        return ng_expr_release(e), status;
    }
};

// A call in which this one parameter is NULL. `err` is once an error and once NULL.
struct Row {
    const char* parameter;
    const char* function;
    bool        is_refused, has_error;
    ng_status (*call)(Things& w, ng_error* err);
};
#define ROW(parameter, function, is_refused, has_error, ...) {#parameter, #function, is_refused, has_error, [](Things& w, ng_error* err) { return w.answer(function(__VA_ARGS__), err); }},
#define REFUSES(parameter, function, ...) ROW(parameter, function, true, true, __VA_ARGS__)
#define SILENT(parameter, function, ...)  ROW(parameter, function, true, false, __VA_ARGS__)
#define TAKES(parameter, function, ...)   ROW(parameter, function, false, true, __VA_ARGS__)

// tests/house/pointers.py reads these, and looks for every pointer of ng.h.
const Row ROWS[] = {
    SILENT(out, ng_device_get, 0, nullptr)
    TAKES(d, ng_ctx_create, nullptr, &w.opened, err)
    REFUSES(out, ng_ctx_create, nullptr, nullptr, err)
    TAKES(err, ng_ctx_close, w.another(), 0, nullptr)
    TAKES(err, ng_ctx_poll, w.c, 0, nullptr)
    TAKES(err, ng_ctx_sync, w.c, nullptr, 0, nullptr)
    SILENT(out, ng_ctx_info, w.c, nullptr)
    SILENT(out, ng_ctx_stats, w.c, nullptr)
    REFUSES(out, ng_mark, w.c, nullptr, nullptr, err)
    TAKES(err, ng_mark_wait, w.c, w.marked(), 0, nullptr)
    TAKES(err, ng_mark_after, w.c, nullptr, w.marked(), nullptr)

    REFUSES(d, ng_tensor_create, w.c, nullptr, &w.made, err)
    REFUSES(out, ng_tensor_create, w.c, &w.vec4, nullptr, err)
    REFUSES(d, ng_tensor_wrap, w.c, nullptr, w.data, 16, nullptr, nullptr, &w.made, err)
    REFUSES(data, ng_tensor_wrap, w.c, &w.vec4, nullptr, 16, nullptr, nullptr, &w.made, err)
    TAKES(done, ng_tensor_wrap, w.c, &w.vec4, w.data, 16, nullptr, w.data, &w.made, err)
    TAKES(user, ng_tensor_wrap, w.c, &w.vec4, w.data, 16, [](void*) {}, nullptr, &w.made, err)
    REFUSES(out, ng_tensor_wrap, w.c, &w.vec4, w.data, 16, nullptr, nullptr, nullptr, err)
    REFUSES(out, ng_tensor_view, w.x, nullptr, err)
    TAKES(err, ng_tensor_close, w.one_more(), nullptr)
    SILENT(out, ng_tensor_shape, w.t, nullptr)
    TAKES(data, ng_tensor_use, w.t, nullptr, NG_USE_READ, nullptr, err)
    REFUSES(src, ng_tensor_put, w.t, nullptr, 16, err)
    REFUSES(dst, ng_tensor_get, w.t, nullptr, 16, err)
    TAKES(err, ng_tensor_copy, w.t, w.t, nullptr, nullptr)
    TAKES(err, ng_tensor_fill, w.t, nullptr, 1, nullptr)
    REFUSES(m, ng_tensor_from_dlpack, w.c, nullptr, nullptr, &w.made, err)
    REFUSES(out, ng_tensor_from_dlpack, w.c, &w.managed, nullptr, nullptr, err)
    REFUSES(out, ng_tensor_to_dlpack, w.t, nullptr, nullptr, err)

    TAKES(c, ng_scope_create, nullptr, 0)
    REFUSES(out, ng_expr_shape, w.x, nullptr, err)
    TAKES(buf, ng_expr_text, w.x, nullptr, &w.bytes, err)
    REFUSES(bytes, ng_expr_text, w.x, nullptr, nullptr, err)
    TAKES(err, ng_expr_bind, w.x, w.t, nullptr)
    TAKES(s, ng_leaf, nullptr, w.t)
    TAKES(s, ng_param, nullptr, 0, &w.vec4)
    REFUSES(d, ng_param, nullptr, 0, nullptr)
    TAKES(s, ng_scalar, nullptr, NG_F32, 0)
    TAKES(s, ng_length, nullptr, -1)
    TAKES(s, ng_const, nullptr, NG_F32, 1)
    TAKES(s, ng_const_int, nullptr, NG_I32, 1)
    TAKES(s, ng_iota, nullptr, &w.vec4, 0)
    REFUSES(d, ng_iota, nullptr, nullptr, 0)
    TAKES(s, ng_random, nullptr, NG_UNIFORM, w.k, w.k, &w.vec4)
    TAKES(step, ng_random, nullptr, NG_UNIFORM, w.k, nullptr, &w.vec4)
    REFUSES(d, ng_random, nullptr, NG_UNIFORM, w.k, nullptr, nullptr)
    TAKES(s, ng_parse, nullptr, "x + 1", "x", &w.x, 1)
    REFUSES(text, ng_parse, nullptr, nullptr, "x", &w.x, 1)
    TAKES(names, ng_parse, nullptr, "1 + 1", nullptr, &w.x, 0)
    REFUSES(values, ng_parse, nullptr, "x + 1", "x", nullptr, 1)

    TAKES(step, ng_cast_stochastic, w.x, NG_F16, 8, w.k, nullptr)
    REFUSES(dims, ng_reshape, w.x, nullptr, 1)
    REFUSES(dims, ng_broadcast, w.x, nullptr, 1)
    REFUSES(axes, ng_permute, w.x, nullptr, 1)
    REFUSES(x, ng_concat, nullptr, 2, 0)
    REFUSES(d, ng_view, w.x, nullptr, 0)
    REFUSES(name, ng_tag, w.x, nullptr)
    TAKES(d, ng_matmul, w.m, w.m, nullptr)
    TAKES(d, ng_conv, w.q, w.q, nullptr)
    REFUSES(x, ng_conv_dx, w.q, w.q, nullptr, nullptr)
    TAKES(d, ng_conv_dx, w.q, w.one, &w.image, nullptr)
    REFUSES(w, ng_conv_dw, w.q, w.q, nullptr, nullptr)
    TAKES(d, ng_conv_dw, w.q, w.one, &w.image, nullptr)
    REFUSES(d, ng_pool, w.q, nullptr)
    REFUSES(d, ng_pool_dx, w.q, w.q, nullptr)

    REFUSES(y, ng_grad, nullptr, nullptr, 1, &w.x, &w.derived, 1, err)
    TAKES(dy, ng_grad, &w.x, nullptr, 1, &w.x, &w.derived, 1, err)
    REFUSES(wrt, ng_grad, &w.x, nullptr, 1, nullptr, &w.derived, 1, err)
    REFUSES(dx, ng_grad, &w.x, nullptr, 1, &w.x, nullptr, 1, err)
    TAKES(path, ng_surrogate, w.x, nullptr)
    REFUSES(x, ng_custom_grad, w.x, w.y, nullptr, &w.x, 1)
    REFUSES(dx, ng_custom_grad, w.x, w.y, &w.x, nullptr, 1)
    REFUSES(from, ng_subst, w.x, nullptr, &w.x, 1)
    REFUSES(to, ng_subst, w.x, &w.x, nullptr, 1)

    REFUSES(e, ng_eval, w.c, nullptr, nullptr, &w.made, 1, err)
    REFUSES(out, ng_eval, w.c, nullptr, &w.x, nullptr, 1, err)
    TAKES(d, ng_compile, w.c, nullptr, &w.x, 1, &w.compiled, err)
    REFUSES(e, ng_compile, w.c, nullptr, nullptr, 1, &w.compiled, err)
    REFUSES(out, ng_compile, w.c, nullptr, &w.x, 1, nullptr, err)
    TAKES(err, ng_prog_wait, w.p, 0, nullptr)
    REFUSES(r, ng_prog_run, w.p, nullptr, nullptr, err)
    REFUSES(out, ng_prog_get_info, w.p, nullptr, err)
    TAKES(out, ng_prog_port, w.p, 0, nullptr, &w.port, err)
    TAKES(name, ng_prog_port, w.p, 0, &w.told, nullptr, err)
    TAKES(buf, ng_prog_explain, w.p, nullptr, &w.bytes, err)
    REFUSES(bytes, ng_prog_explain, w.p, nullptr, nullptr, err)
    TAKES(buf, ng_prog_save, w.p, 0, nullptr, &w.bytes, err)
    REFUSES(bytes, ng_prog_save, w.p, 0, nullptr, nullptr, err)
    REFUSES(buf, ng_prog_load, w.c, 0, nullptr, 16, &w.compiled, err)
    REFUSES(out, ng_prog_load, w.c, 0, w.data, 16, nullptr, err)
};

void probe(Things& w, const Row& row, ng_error* err)
{
    INFO(std::string(row.function), " without ", std::string(row.parameter), std::string(err ? "" : ", nor an error"));
    w.f.error = {};
    const ng_status status = row.call(w, err);
    const std::string said = w.f.said();
    CHECK_MESSAGE(status == (row.is_refused ? NG_E_INVALID : NG_OK), std::string(ng_status_name(status)), ": ", said);
    if (row.is_refused) CHECK(w.is_untouched());
    if (err && row.is_refused && row.has_error) {
        CHECK(w.f.error.status == NG_E_INVALID);
        CHECK_MESSAGE(said.find(std::string(row.function) + ": " + row.parameter + " is NULL, ") == 0, said);
    }
    if (!row.is_refused) CHECK(said == "");
    w.drop();
}

}  // namespace

TEST_CASE("pointers: NULL is refused with a sentence that names function and parameter, or taken where it is optional")
{
    Things w;
    for (const Row& row : ROWS) {
        probe(w, row, &w.f.error);
        probe(w, row, nullptr);
    }
    ng_tensor* const out = w.f.make(w.vec4);
    CHECK(w.f.run(w.p, {{w.t}, {out}}) == NG_OK);
    CHECK(w.f.get(out) == Values{2, 2, 2, 2});               // ng_tensor_fill's row
}

TEST_CASE("pointers: within a struct that is given, too")
{
    Things w;
    Face&  f = w.f;
    ng_expr* twice = ng_add(w.y, w.y);
    ng_run r{};
    const auto runs = [&](auto set) {
        ng_tensor* const out = w.t;
        r = {}, r.size = sizeof r, r.nargs = r.nout = 1, r.args = &w.t, r.out = &out;
        set(r), f.error = {};
        return ng_prog_run(w.p, nullptr, &r, &f.error);
    };
    CHECK(runs([](ng_run& d) { d.args = nullptr; }) == NG_E_INVALID);
    CHECK_MESSAGE(f.says("ng_prog_run: args is NULL, "), f.said());
    CHECK(runs([](ng_run& d) { d.out = nullptr; }) == NG_E_INVALID);
    CHECK_MESSAGE(f.says("ng_prog_run: out is NULL, "), f.said());
    const auto compiles = [&](auto set) {
        ng_compile_desc d{};
        d.size = sizeof d;
        set(d), f.error = {};
        const ng_status status = ng_compile(w.c, &d, &twice, 1, &w.compiled, &f.error);
        return w.drop(), status;
    };
    CHECK(compiles([](ng_compile_desc& d) { d.nlength = 2; }) == NG_E_INVALID);
    CHECK_MESSAGE(f.says("ng_compile: length_max is NULL, "), f.said());
    CHECK(compiles([](ng_compile_desc& d) { static const ng_shape* const none = nullptr; d.out = &none; }) == NG_OK);
    ng_expr *number = ng_scalar(nullptr, NG_F32, 0), *sum = ng_add(w.y, number);
    ng_prog* const reads = f.compile({sum});
    ng_tensor* const out = f.make(w.vec4);
    CHECK(f.run(reads, {.args = {w.t}, .out = {out}, .scalar_bytes = 4}) == NG_E_INVALID);
    CHECK_MESSAGE(f.says("ng_prog_run: scalars is NULL, "), f.said());
    for (ng_expr* e : {twice, number, sum}) ng_expr_release(e);
}

TEST_CASE("pointers: a port past the last one is refused, and neither result is written")
{
    Things w;
    for (const uint32_t port : {2u, 3u, UINT32_MAX}) {
        CHECK(ng_prog_port(w.p, port, &w.told, &w.port, &w.f.error) == NG_E_INVALID);
        CHECK_MESSAGE(w.f.says("ng_prog_port: " + std::to_string(port) + " is past the last port 1"), w.f.said());
        CHECK(w.f.error.at == int32_t(port));
    }
    CHECK(w.is_untouched());
    CHECK(ng_prog_port(w.p, 1, nullptr, nullptr, nullptr) == NG_OK);
}

TEST_CASE("pointers: an array of nothing may be NULL where nothing has a meaning, and is refused in words where it has none")
{
    Things w;
    ng_expr* const minus = ng_const_int(nullptr, NG_I32, -1);
    const auto builds = [&](ng_expr* e) { return w.answer(e, &w.f.error); };
    CHECK(builds(ng_reshape(w.one, nullptr, 0)) == NG_OK);
    CHECK(builds(ng_broadcast(minus, nullptr, 0)) == NG_OK);
    CHECK(builds(ng_permute(minus, nullptr, 0)) == NG_OK);
    CHECK(builds(ng_parse(nullptr, "1 + 1", "", nullptr, 0)) == NG_OK);
    CHECK(builds(ng_subst(w.x, nullptr, nullptr, 0)) == NG_OK);
    CHECK(builds(ng_custom_grad(w.x, w.y, nullptr, nullptr, 0)) == NG_OK);
    CHECK(ng_grad(&w.x, nullptr, 1, nullptr, nullptr, 0, &w.f.error) == NG_OK);
    CHECK(builds(ng_reshape(w.x, nullptr, 0)) == NG_E_SHAPE);
    CHECK(builds(ng_concat(nullptr, 0, 0)) == NG_E_INVALID);
    CHECK_MESSAGE(w.f.says("ng_concat: "), w.f.said());
    CHECK(ng_eval(w.c, nullptr, nullptr, &w.made, 0, &w.f.error) == NG_E_INVALID);
    CHECK_MESSAGE(w.f.says("ng_eval: there is no expression: n is 0"), w.f.said());
    CHECK(ng_compile(w.c, nullptr, nullptr, 0, &w.compiled, &w.f.error) == NG_E_INVALID);
    CHECK_MESSAGE(w.f.says("ng_compile: there is no expression: n is 0"), w.f.said());
    CHECK(ng_grad(nullptr, nullptr, 0, &w.x, &w.derived, 1, &w.f.error) == NG_NO_PATH);
    ng_expr_release(minus), w.drop();
}

TEST_CASE("pointers: ng_ctx_close without an error ends what it was asked to end")
{
    ng_ctx* const c = opened(1);
    CHECK(ng_ctx_close(c, 5000000000u, nullptr) == NG_OK);
    CHECK(ng_ctx_close(c, 0, nullptr) == NG_E_LOST);
    ng_ctx_release(c);
}
