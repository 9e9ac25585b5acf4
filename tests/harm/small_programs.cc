// The small programs: tensors, expressions, texts, programs, saved programs, derivatives, products, exchange, scopes, threads.
#include "tests/harm/small_programs.h"

#include "tests/harm/dlpack_binary.h"
#include "tests/harm/small_hands.h"

#include <cmath>

namespace harm {
namespace {

int ends = 0;
void count_end(void*) { ends++; }

void tensors(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const ng_shape d = shape(NG_F32, 2, 3);
    float lent[6] = {}, got[6] = {};
    ng_tensor *w = nullptr, *v = nullptr, *t = h.tensor(d, X, sizeof X);
    const int before = ends;
    if (!t) return;
    const bool wrapped = h.did(ng_tensor_wrap(c, &d, lent, sizeof lent, count_end, nullptr, &w, &o.error), "ng_tensor_wrap");
    if (wrapped) h.keep(w);
    if (wrapped && h.did(ng_tensor_copy(w, t, nullptr, &o.error), "ng_tensor_copy") && h.did(ng_tensor_fill(t, nullptr, 7, &o.error), "ng_tensor_fill")) {
        ng_expr *leaf = h.own(ng_leaf(nullptr, t)), *part = leaf ? h.own(ng_slice(leaf, 1, 1, NG_END, 1)) : nullptr;
        if (part && h.did(ng_tensor_view(part, &v, &o.error), "ng_tensor_view")) {
            h.keep(v);
            // over itself, so that a copy in between is needed
            if (h.did(ng_tensor_put(v, X, 16, &o.error), "ng_tensor_put") && h.did(ng_tensor_get(t, got, sizeof got, &o.error), "ng_tensor_get"))
                o.is_right = lent[5] == 6 && got[0] == 7 && got[1] == 1 && got[5] == 4;
        }
    }
    if (wrapped && !h.did(ng_tensor_close(w, &o.error), "ng_tensor_close")) return;
    o.is_right &= ends == before + 1;
}

void expressions(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    ng_tensor* t = h.tensor(shape(NG_F32, 2, 3), X, sizeof X);
    if (!t || !h.open_scope()) return;
    ng_expr *x = h.scoped(ng_leaf(h.s, t)), *two[2] = {};
    ng_tensor* out[2] = {};
    float sums[3], powers[6];
    ng_expr* twice = x ? h.scoped(ng_add(x, x)) : nullptr;
    ng_expr* least = twice ? h.scoped(ng_max(x, NG_AXIS_1, NG_KEEP)) : nullptr;
    ng_expr* below = least ? h.scoped(ng_sub(x, least)) : nullptr;
    if (!below || !(two[0] = h.scoped(ng_sum(twice, NG_AXIS_0, 0))) || !(two[1] = h.scoped(ng_exp(below)))) return;
    if (!h.did(ng_eval(c, nullptr, two, out, 2, &o.error), "ng_eval")) {
        o.is_right = false;
        if (out[0] || out[1]) o.status = NG_E_BUG, o.call = "ng_eval failed and wrote out";
        return;
    }
    h.keep(out[0]), h.keep(out[1]);
    if (h.did(ng_tensor_get(out[0], sums, sizeof sums, &o.error), "ng_tensor_get") && h.did(ng_tensor_get(out[1], powers, sizeof powers, &o.error), "ng_tensor_get"))
        o.is_right = sums[0] == 10 && sums[2] == 18 && powers[2] == 1 && powers[5] == 1;
}

void texts(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    ng_tensor* t = h.tensor(shape(NG_F32, 2, 3), X, sizeof X);
    if (!t || !h.open_scope()) return;
    ng_expr* x = h.scoped(ng_leaf(h.s, t));
    if (!x) return;
    ng_expr* e = h.scoped(ng_parse(h.s, "m = mean(x, 1); where(x > m, x - m, 0)[:, ::2] * softmax(x, [0, 1])[:, 1:]", "x", &x, 1));
    char text[2048];
    size_t bytes = sizeof text;
    float got[4], again[4];
    if (h.failed() || !h.did(ng_expr_text(e, text, &bytes, &o.error), "ng_expr_text")) return;
    ng_expr* broken = h.scoped(ng_parse(h.s, "x + (y", "x", &x, 1));
    ng_shape d{};
    d.size = sizeof d;
    if (!broken) return;
    const ng_status wrong = ng_expr_shape(broken, &d, &o.error);
    if (wrong == NG_E_NOMEM) return (void)h.did(wrong, "ng_expr_shape");
    if (h.eval(e, got, sizeof got) && h.eval(e, again, sizeof again))
        o.is_right = wrong == NG_E_INVALID && got[0] == 0 && got[1] > 0 && !std::memcmp(got, again, sizeof got);
}

void programs(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const ng_shape d = shape(NG_F32, -1, 3);
    ng_tensor *args[] = {h.tensor(shape(NG_F32, 2, 3), X, sizeof X)}, *out[] = {h.tensor(shape(NG_F32, 2, 3), X, sizeof X)};
    if (!args[0] || !out[0] || !h.open_scope()) return;
    ng_expr* x = h.scoped(ng_param(h.s, 0, &d));
    ng_expr* product = x ? h.scoped(ng_parse(h.s, "x * sum(x, 1)", "x", &x, 1)) : nullptr;
    ng_expr* e = product ? h.scoped(ng_tag(product, "scaled")) : nullptr;
    const int64_t most = 8;
    ng_compile_desc description{};
    description.size = sizeof description, description.length_max = &most, description.nlength = 1, description.runs = 2;
    ng_prog* p = h.compile(&e, 1, &description);
    ng_prog_info info{};
    info.size = sizeof info;
    size_t bytes = 0;
    float got[6];
    if (!h.run(p, args, 1, out) || !h.did(ng_prog_get_info(p, &info, &o.error), "ng_prog_get_info") || !h.did(ng_prog_explain(p, nullptr, &bytes, &o.error), "ng_prog_explain")) return;
    if (h.did(ng_tensor_get(out[0], got, sizeof got, &o.error), "ng_tensor_get")) o.is_right = got[0] == 6 && got[5] == 90 && info.nargs == 1 && bytes > 10;
}

void saved(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const ng_shape d = shape(NG_F32, 2, 3);
    ng_tensor *args[] = {h.tensor(d, X, sizeof X)}, *out[] = {h.tensor(shape(NG_F32, 2), nullptr, 0)};
    if (!args[0] || !out[0] || !h.open_scope()) return;
    ng_expr* x = h.scoped(ng_param(h.s, 0, &d));
    ng_expr* e = x ? h.scoped(ng_logsumexp(x, NG_AXIS_1, 0)) : nullptr;
    ng_prog *p = h.compile(&e, 1), *again = nullptr;
    char buffer[4096];
    size_t bytes = sizeof buffer;
    float got[2];
    if (!p || !h.did(ng_prog_save(p, 0, buffer, &bytes, &o.error), "ng_prog_save") || !h.did(ng_prog_load(c, 0, buffer, bytes, &again, &o.error), "ng_prog_load")) return;
    if (h.run(h.keep(again), args, 1, out) && h.did(ng_tensor_get(out[0], got, sizeof got, &o.error), "ng_tensor_get")) o.is_right = std::fabs(got[1] - got[0] - 3) < 1e-5;
}

void derivatives(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    ng_tensor* t = h.tensor(shape(NG_F32, 2, 3), X, sizeof X);
    if (!t) return;
    ng_expr *x = h.own(ng_leaf(nullptr, t)), *dx[2] = {};
    ng_expr* part = x ? h.own(ng_slice(x, 1, 1, NG_END, 1)) : nullptr;
    ng_expr* squares = part ? h.own(ng_square(part)) : nullptr;
    ng_expr* y = squares ? h.own(ng_sum(squares, NG_ALL, 0)) : nullptr;
    ng_expr* const wrt[] = {x, x};
    float got[6];
    if (h.failed() || !h.did(ng_grad(&y, nullptr, 1, wrt, dx, 2, &o.error), "ng_grad")) return;
    h.own(dx[0]), h.own(dx[1]);
    if (h.eval(dx[1], got, sizeof got)) o.is_right = got[0] == 0 && got[1] == 4 && got[5] == 12;
}

void products(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const float image[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, filter[4] = {1, 0, 0, 1};
    ng_tensor *x = h.tensor(shape(NG_F32, 1, 1, 4, 4), image, sizeof image), *w = h.tensor(shape(NG_F32, 1, 1, 2, 2), filter, sizeof filter);
    if (!x || !w || !h.open_scope()) return;
    ng_pool_desc pool{};
    pool.size = sizeof pool, pool.window[0] = pool.window[1] = 3;
    ng_expr *a = h.scoped(ng_leaf(h.s, x)), *b = a ? h.scoped(ng_leaf(h.s, w)) : nullptr;
    ng_expr* conv = b ? h.scoped(ng_conv(a, b, nullptr)) : nullptr;
    ng_expr* relu = conv ? h.scoped(ng_relu(conv)) : nullptr;
    ng_expr* largest = relu ? h.scoped(ng_pool(relu, &pool)) : nullptr;
    const int64_t square[] = {4, 4};
    ng_expr* m = largest ? h.scoped(ng_reshape(a, square, 2)) : nullptr;
    ng_expr* matrix = m ? h.scoped(ng_matmul(m, m, nullptr)) : nullptr;
    ng_expr* product = matrix ? h.scoped(ng_sum(matrix, NG_ALL, 0)) : nullptr;
    float got, sum;
    if (h.eval(largest, &got, sizeof got) && h.eval(product, &sum, sizeof sum)) o.is_right = got == 27 && sum == 28 * 10 + 32 * 26 + 36 * 42 + 40 * 58;
}

void end_lent(DLManagedTensorVersioned* m) { ++*static_cast<int*>(m->manager); }

void exchange(ng_ctx* c, Outcome& o)
{
    int deleted = 0;
    float lent[6];
    std::memcpy(lent, X, sizeof X);
    int64_t dims[2] = {2, 3};
    DLManagedTensorVersioned given{1, 0, &deleted, end_lent, 0, lent, 1, 0, 2, 2, 32, 1, dims, nullptr, 0}, *taken = nullptr;
    ng_tensor* t = nullptr;
    {
        Hands h(c, o);
        if (!h.did(ng_tensor_from_dlpack(c, &given, nullptr, &t, &o.error), "ng_tensor_from_dlpack")) {
            if (deleted) o.status = NG_E_BUG, o.call = "ng_tensor_from_dlpack failed and called the deleter";
            return;
        }
        h.keep(t);
        if (h.did(ng_tensor_to_dlpack(t, nullptr, &taken, &o.error), "ng_tensor_to_dlpack")) {
            o.is_right = taken->data == lent && taken->shape[1] == 3;
            taken->deleter(taken);
        }
    }
    // Where this fails the deleter's turn comes in a later call: lent must stay, so that call comes here.
    while (deleted == 0 && ng_ctx_sync(c, nullptr, 0, nullptr) < 0) {}
    if (deleted != 1) o.status = NG_E_BUG, o.call = "the deleter was not called once";
}

void scopes(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    ng_tensor* t = h.tensor(shape(NG_F32, 6), X, sizeof X);
    if (!t || !h.open_scope()) return;
    ng_expr *x = h.scoped(ng_leaf(h.s, t)), *e = x;
    for (int i = 0; i < 40 && e; i++) {
        ng_expr* half = h.scoped(ng_const(h.s, 0, 0.5));
        ng_expr* more = half ? h.scoped(ng_const_int(h.s, 0, i)) : nullptr;
        ng_expr* next = more ? h.scoped(ng_mul(e, half)) : nullptr;
        e = next ? h.scoped(ng_add(next, more)) : nullptr;
    }
    if (!e) return;
    ng_expr_retain(e), h.own(e), ng_expr_retain(x), h.own(x);
    ng_expr* from[] = {x};
    ng_expr* to[] = {h.own(ng_const(nullptr, NG_F32, 0))};
    ng_scope_release(h.s), h.s = nullptr;
    ng_expr* other = to[0] ? h.own(ng_subst(e, from, to, 1)) : nullptr;
    float got[6], constant[6];
    if (other && h.eval(e, got, sizeof got) && h.eval(other, constant, sizeof constant)) o.is_right = std::fabs(got[0] - 76) < 1e-3 && std::fabs(constant[5] - 76) < 1e-3;
}

// A context of its own, with a pool: what the threads need is asked for too.
void contexts(ng_ctx*, Outcome& o)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.threads = 2, d.cache_dir = "";
    ng_ctx* c = nullptr;
    if ((o.status = ng_ctx_create(&d, &c, &o.error)) < 0) return (void)(o.call = "ng_ctx_create");
    {
        Hands h(c, o);
        ng_shape long_one = shape(NG_F32, 1 << 19);
        if (h.open_scope()) {
            ng_expr* numbers = h.scoped(ng_iota(h.s, &long_one, 0));
            ng_expr* roots = numbers ? h.scoped(ng_sqrt(numbers)) : nullptr;
            ng_expr* e = roots ? h.scoped(ng_sum(roots, NG_ALL, 0)) : nullptr;
            float got, again = 0;
            if (e && h.eval(e, &got, sizeof got)) o.is_right = std::fabs(got / 2.5308e8 - 1) < 1e-3;
            ng_tensor* out[] = {o.is_right ? h.tensor(shape(NG_F32), nullptr, 0) : nullptr};
            if (out[0] && h.run(h.compile(&e, 1), nullptr, 0, out) && h.did(ng_tensor_get(out[0], &again, sizeof again, &o.error), "ng_tensor_get")) o.is_right = got == again;
        }
    }
    ng_error error{};
    if (ng_ctx_close(c, UINT64_MAX, &error) != NG_OK) o.status = NG_E_BUG, o.call = "ng_ctx_close failed", o.error = error;
    ng_ctx_release(c);
}

// Nobody looks at what builders give: an operand that may be left out was not, whatever became of it.
void unlooked(ng_ctx* c, Outcome& o)
{
    static float wanted[8];
    static bool  is_known = false;
    Hands h(c, o);
    if (!h.open_scope()) return;
    const ng_shape d = shape(NG_F32, 8);
    float got[8];
    ng_expr* numbers = ng_random(h.s, NG_UNIFORM, ng_const_int(h.s, NG_U64, 42), ng_const_int(h.s, NG_U64, 5), &d);
    if (!h.eval(ng_mul(numbers, ng_const(h.s, 0, 2)), got, sizeof got)) return;
    if (!is_known) std::memcpy(wanted, got, sizeof got), is_known = true;     // nothing is refused the first time
    o.is_right = !std::memcmp(wanted, got, sizeof got);
}

}  // namespace

const SmallProgram SMALL_PROGRAMS[] = {{"bindings", bindings}, {"contexts", contexts}, {"indices", indices}, {"large", large}, {"oracle", oracle}, {"rules", rules}, {"windows", windows},
                                       {"tensors", tensors}, {"expressions", expressions}, {"texts", texts}, {"programs", programs}, {"saved", saved},
                                       {"derivatives", derivatives}, {"products", products}, {"exchange", exchange}, {"scopes", scopes}, {"unlooked", unlooked}};
const uint32_t SMALL_PROGRAM_COUNT = sizeof SMALL_PROGRAMS / sizeof *SMALL_PROGRAMS;

}  // namespace harm
