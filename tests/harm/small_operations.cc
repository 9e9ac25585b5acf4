// Small programs of what is indexed, windowed, bound, given a derivative by hand, computed by the oracle, or larger than a page.
#include "tests/harm/small_hands.h"

#include <cmath>

namespace harm {

// Each operation with what the one before it gave; where one is refused the poison goes all the way to ng_eval.
void indices(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const int64_t turned[2] = {1, 0}, bounds[2] = {0, 2};
    ng_tensor *t = h.tensor(shape(NG_F32, 2, 3), X, sizeof X), *at = h.tensor(shape(NG_I64, 2), turned, sizeof turned), *ends = h.tensor(shape(NG_I64, 2), bounds, sizeof bounds);
    if (!t || !at || !ends || !h.open_scope()) return;
    ng_expr *x = h.scoped(ng_leaf(h.s, t)), *i = h.scoped(ng_leaf(h.s, at)), *offsets = h.scoped(ng_leaf(h.s, ends));
    ng_expr* taken = h.scoped(ng_take(x, i, 0));                                        // 4 5 6, 1 2 3
    ng_expr* row = h.scoped(ng_window(x, 0, h.scoped(ng_const_int(h.s, NG_I64, 1)), 1)); // 4 5 6
    ng_expr* sums = h.scoped(ng_scan(h.scoped(ng_put(taken, i, row, 0, NG_FOLD_SUM)), 1, NG_FOLD_SUM, 0));
    ng_expr* order = h.scoped(ng_cast(h.scoped(ng_argsort(sums, 1, NG_REVERSE)), NG_F32));
    ng_expr* const parts[] = {sums, h.scoped(ng_segment(x, offsets, NG_FOLD_SUM)), order};
    const float want[15] = {8, 18, 30, 5, 12, 21, 5, 7, 9, 2, 1, 0, 2, 1, 0};
    float got[15];
    if (!h.failed() && h.eval(h.scoped(ng_concat(parts, 3, 0)), got, sizeof got)) o.is_right = !std::memcmp(got, want, sizeof want);
}

void windows(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    float image[16];
    const float filter[4] = {1, 0, 0, 1};
    for (int i = 0; i < 16; i++) image[i] = float(i + 1);
    const ng_shape whole = shape(NG_F32, 1, 1, 4, 4), small = shape(NG_F32, 1, 1, 2, 2);
    ng_tensor *t = h.tensor(whole, image, sizeof image), *f = h.tensor(small, filter, sizeof filter);
    if (!t || !f || !h.open_scope()) return;
    ng_pool_desc pool{};
    pool.size = sizeof pool, pool.window[0] = pool.window[1] = 3;
    ng_expr *x = h.scoped(ng_leaf(h.s, t)), *w = h.scoped(ng_leaf(h.s, f));
    ng_expr* y = h.scoped(ng_conv(x, w, nullptr));
    ng_expr* e[] = {h.scoped(ng_conv_dx(w, y, &whole, nullptr)), h.scoped(ng_conv_dw(x, y, &small, nullptr)), h.scoped(ng_pool_dx(x, h.scoped(ng_pool(x, &pool)), &pool))};
    float dx[16], dw[4], back[16];
    if (!h.eval(e[0], dx, sizeof dx) || !h.eval(e[1], dw, sizeof dw) || !h.eval(e[2], back, sizeof back)) return;
    o.is_right = dx[0] == 7 && dx[5] == 24 && dx[15] == 27 && dw[0] == 1122 && back[10] == 11 && back[0] == 0;
}

void rules(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const ng_shape d = shape(NG_F32, 2, 3);
    ng_tensor* t = h.tensor(d, X, sizeof X);
    if (!t || !h.open_scope()) return;
    ng_expr *x = h.scoped(ng_leaf(h.s, t)), *dy = h.scoped(ng_param(h.s, 0, &d));
    ng_expr* five = h.scoped(ng_mul(dy, h.scoped(ng_const(h.s, 0, 5))));
    ng_expr* ruled = h.scoped(ng_custom_grad(h.scoped(ng_square(x)), dy, &x, &five, 1));
    ng_expr* passed = h.scoped(ng_surrogate(h.scoped(ng_floor(x)), h.scoped(ng_mul(x, h.scoped(ng_const(h.s, 0, 3))))));
    ng_expr *y = h.scoped(ng_sum(h.scoped(ng_add(ruled, passed)), NG_ALL, 0)), *dx = nullptr;
    float value, got[6];
    if (!h.did(ng_grad(&y, nullptr, 1, &x, &dx, 1, &o.error), "ng_grad")) return;
    if (h.eval(y, &value, sizeof value) && h.eval(dx, got, sizeof got)) o.is_right = value == 91 + 21 && got[0] == 8 && got[5] == 8;
}

// A leaf bound anew, marks, and a program that works in another's workspace.
void bindings(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const ng_shape d = shape(NG_F32, 2, 3);
    ng_tensor *t = h.tensor(d, X, sizeof X), *nines = h.tensor(d, nullptr, 0), *out[] = {h.tensor(d, nullptr, 0)};
    if (!t || !nines || !out[0] || !h.did(ng_tensor_fill(nines, nullptr, 9, &o.error), "ng_tensor_fill") || !h.open_scope()) return;
    ng_expr *x = h.scoped(ng_leaf(h.s, t)), *sum = h.scoped(ng_sum(x, NG_ALL, 0));
    float before, after, got[6];
    uint64_t mark = 0;
    if (!h.eval(sum, &before, sizeof before) || !h.did(ng_expr_bind(x, nines, &o.error), "ng_expr_bind") || !h.eval(sum, &after, sizeof after)) return;
    if (!h.did(ng_mark(c, nullptr, &mark, &o.error), "ng_mark") || !h.did(ng_mark_after(c, nullptr, mark, &o.error), "ng_mark_after")) return;
    if (!h.did(ng_mark_wait(c, mark, UINT64_MAX, &o.error), "ng_mark_wait")) return;
    ng_expr* p = h.scoped(ng_param(h.s, 0, &d));
    ng_expr* e[] = {h.scoped(ng_softmax(p, NG_AXIS_1)), h.scoped(ng_mul(p, h.scoped(ng_keep(h.scoped(ng_mean(p, NG_AXIS_1, NG_KEEP))))))};
    ng_prog* first = h.compile(&e[0], 1);
    ng_compile_desc description{};
    description.size = sizeof description, description.workspace_of = first;
    ng_prog* second = first ? h.compile(&e[1], 1, &description) : nullptr;
    if (h.run(first, &t, 1, out) && h.run(second, &t, 1, out) && h.did(ng_tensor_get(out[0], got, sizeof got, &o.error), "ng_tensor_get"))
        o.is_right = before == 21 && after == 54 && got[0] == 2 && got[5] == 30;
}

// A context of its own, which computes in f64 and fuses nothing.
void oracle(ng_ctx*, Outcome& o)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.threads = 1, d.cache_dir = "", d.flags = NG_CTX_REFERENCE;
    ng_ctx* c = nullptr;
    if ((o.status = ng_ctx_create(&d, &c, &o.error)) < 0) return (void)(o.call = "ng_ctx_create");
    {
        Hands h(c, o);
        ng_tensor *t = h.tensor(shape(NG_F32, 2, 3), X, sizeof X), *out[] = {h.tensor(shape(NG_F32, 2, 3), nullptr, 0)};
        float got[6], again[6];
        if (t && out[0] && h.open_scope()) {
            ng_expr* e = h.scoped(ng_softmax(h.scoped(ng_exp(h.scoped(ng_leaf(h.s, t)))), NG_AXIS_0));
            if (h.eval(e, got, sizeof got) && h.run(h.compile(&e, 1), nullptr, 0, out) && h.did(ng_tensor_get(out[0], again, sizeof again, &o.error), "ng_tensor_get"))
                o.is_right = !std::memcmp(got, again, sizeof got) && std::fabs(got[0] + got[3] - 1) < 1e-6;
        }
    }
    ng_error error{};
    if (ng_ctx_close(c, UINT64_MAX, &error) != NG_OK) o.status = NG_E_BUG, o.call = "ng_ctx_close failed", o.error = error;
    ng_ctx_release(c);
}

// Tensors, results and workspaces of 5 MB, which come in pages from the system.
void large(ng_ctx* c, Outcome& o)
{
    Hands h(c, o);
    const ng_shape d = shape(NG_F32, 5, 1 << 18);
    ng_tensor *t = h.tensor(d, nullptr, 0), *made = nullptr;
    if (!t || !h.did(ng_tensor_fill(t, nullptr, 3, &o.error), "ng_tensor_fill") || !h.open_scope()) return;
    ng_expr* squares = h.scoped(ng_keep(h.scoped(ng_square(h.scoped(ng_leaf(h.s, t))))));
    ng_expr* mean = h.scoped(ng_mean(squares, NG_ALL, 0));
    float of_all;
    if (!h.eval(mean, &of_all, sizeof of_all) || !h.did(ng_eval(c, nullptr, &squares, &made, 1, &o.error), "ng_eval")) return;
    h.keep(made);
    ng_expr* part = h.scoped(ng_slice(h.scoped(ng_slice(h.scoped(ng_leaf(h.s, made)), 0, 4, NG_END, 1)), 1, (1 << 18) - 1, NG_END, 1));
    float last;
    if (h.eval(part, &last, sizeof last)) o.is_right = of_all == 9 && last == 9;
}

}  // namespace harm
