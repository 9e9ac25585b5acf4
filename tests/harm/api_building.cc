// The fuzzer's calls of what builds expressions: leaves, movement, products, derivatives, and every word of ops.def.
#include "tests/harm/api_world.h"

#include <algorithm>

namespace harm {
namespace {

#define BUILT(function, ...) {#function, [](World& w) { w.built(#function, function(__VA_ARGS__)); }}

ng_conv_desc conv_value(World& w)
{
    ng_conv_desc d{};
    d.flags = w.flags();
    const auto entry = [&](uint32_t most) { return w.bytes.one_in(60) ? int32_t(w.number()) : int32_t(w.bytes.below(most)); };
    for (int i = 0; i < 2 + int(w.bytes.one_in(6)); i++) d.stride[i] = entry(3), d.dilate[i] = entry(2), d.pad_lo[i] = entry(3), d.pad_hi[i] = entry(3);
    d.groups = w.bytes.one_in(4) ? entry(3) : 1, d.reserved = w.bytes.one_in(30), d.pad_value = w.bytes.one_in(8) ? w.real() : 0;
    return d;
}
const ng_conv_desc* conv(World& w) { return w.bytes.one_in(3) ? nullptr : w.structure(conv_value(w)); }

const ng_pool_desc* pool(World& w)
{
    ng_pool_desc d{};
    d.flags = w.flags(), d.kind = w.bytes.one_in(16) ? uint32_t(w.bytes.word()) : w.bytes.below(3);
    const auto entry = [&](uint32_t most) { return w.bytes.one_in(60) ? int32_t(w.number()) : int32_t(w.bytes.below(most)); };
    for (int i = 0; i < 2 + int(w.bytes.one_in(6)); i++) d.window[i] = w.bytes.one_in(60) ? int32_t(w.number()) : 1 + int32_t(w.bytes.below(3)), d.stride[i] = entry(3), d.dilate[i] = entry(2), d.pad_lo[i] = entry(2), d.pad_hi[i] = entry(2);
    if (w.bytes.one_in(3)) d.channel_window = entry(3), d.channel_stride = entry(3), d.channel_pad = entry(2);
    return w.structure(d);
}
const ng_matmul_desc* matmul(World& w) { return w.bytes.one_in(2) ? nullptr : w.structure(ng_matmul_desc{0, w.flags()}); }

// An array and how many it holds; NULL goes with any number.
template <class T, class Make>
std::pair<T*, uint32_t> list(World& w, uint32_t most, Make&& make)
{
    const uint32_t n = w.count(most);
    T* all = w.array<T>(n, make);
    return {all, all ? n : w.bytes.one_in(2) ? uint32_t(w.bytes.word()) : n};
}
std::pair<int64_t*, uint32_t> dims(World& w, uint32_t most = 5)
{
    return list<int64_t>(w, w.bytes.one_in(30) ? 40 : most, [&] { return w.bytes.one_in(8) ? NG_REST : w.dim(); });
}

// Small pictures, so that products meet operands that fit.
ng_expr* picture(World& w, uint32_t rank = 4)
{
    if (w.bytes.one_in(6)) return w.expr();
    int64_t all[5];
    for (uint32_t a = 0; a < rank; a++) all[a] = a < 2 ? 1 + w.bytes.below(2) : 2 + w.bytes.below(5);
    ng_expr* e = ng_broadcast(ng_const(nullptr, w.bytes.one_in(4) ? w.dtype() : ng_dtype(NG_F32), 1), all, rank);
    w.built("ng_broadcast", e);
    return e;
}
ng_expr* matrix(World& w)
{
    if (w.bytes.one_in(4)) return w.expr();
    const int64_t all[] = {3, w.bytes.one_in(3) ? 4 : 3};
    ng_expr* e = ng_reshape(w.expr(), all, 2);
    w.built("ng_reshape", e);
    return e;
}
// Indices, offsets, keys: whole numbers that mostly lie inside.
ng_expr* whole(World& w)
{
    if (w.bytes.one_in(6)) return w.expr();
    ng_shape d{};
    d.size = sizeof d, d.dtype = w.bytes.one_in(2) ? NG_I32 : NG_I64, d.ndim = int32_t(w.bytes.below(3)), d.dims[0] = 1 + w.bytes.below(4), d.dims[1] = 2;
    ng_expr* e = d.ndim ? ng_iota(nullptr, &d, 0) : ng_const_int(nullptr, NG_I64, w.number());
    w.built("ng_iota", e);
    return e;
}
ng_expr* key(World& w)
{
    if (w.bytes.one_in(6)) return w.expr();
    ng_expr* e = ng_const_int(nullptr, NG_U64, int64_t(w.bytes.byte()));
    w.built("ng_const_int", e);
    return e;
}
ng_expr* step(World& w) { return w.bytes.one_in(2) ? nullptr : key(w); }
// The shape of e, or any.
const ng_shape* shape_like(World& w, ng_expr* e)
{
    ng_shape d{};
    d.size = sizeof d;
    if (w.bytes.one_in(4) || ng_expr_shape(e, &d, nullptr) != NG_OK) return w.shape();
    d.flags = 0;
    return w.structure(d);
}

// conv, its derivatives, pool and its derivative, each of what came before.
void convolve(World& w)
{
    const uint32_t rank = w.bytes.one_in(4) ? 3 + w.bytes.below(3) : 4;
    ng_expr *x = picture(w, rank), *filter = picture(w, rank);
    const ng_conv_desc* d = conv(w);
    ng_expr* y = ng_conv(x, filter, d);
    w.built("ng_conv", y);
    if (w.bytes.one_in(2)) y = w.expr();
    w.built("ng_conv_dx", ng_conv_dx(filter, y, shape_like(w, x), d));
    w.built("ng_conv_dw", ng_conv_dw(x, y, shape_like(w, filter), d));
}
void pooled(World& w)
{
    ng_expr* x = picture(w, w.bytes.one_in(4) ? 3 + w.bytes.below(3) : 4);
    const ng_pool_desc* d = pool(w);
    ng_expr* y = ng_pool(x, d);
    w.built("ng_pool", y);
    if (w.bytes.one_in(4)) y = w.expr();
    w.built("ng_pool_dx", ng_pool_dx(x, y, d));
}

void parse(World& w)
{
    const char *text = w.text(), *names = w.bytes.one_in(3) ? w.text() : "x,y,k";
    const uint32_t n = w.bytes.one_in(4) ? w.count(4) : 3;
    ng_expr** values = w.exprs(n);
    w.built("ng_parse", ng_parse(w.scope(), text, names, values, values ? n : w.flags()));
}

void differentiate(World& w)
{
    const uint32_t ny = w.bytes.one_in(4) ? w.count(3) : 1, n = w.count(3);
    ng_expr **y = w.exprs(ny), **seeds = w.bytes.one_in(3) ? w.array<ng_expr*>(ny, [&] { return w.bytes.one_in(2) ? w.expr() : nullptr; }) : nullptr, **wrt = w.exprs(n);
    ng_expr* const before = reinterpret_cast<ng_expr*>(uintptr_t(5));
    ng_expr** dx = w.array<ng_expr*>(n, [&] { return before; });
    ng_error* err = w.error();
    const ng_status status = sound("ng_grad", ng_grad(y, seeds, y ? ny : 0, wrt, dx, wrt ? n : w.flags(), err), err);
    for (uint32_t i = 0; dx && i < n; i++) {
        if (status >= 0 && wrt) w.built("ng_grad", dx[i]);
        else if (dx[i] != before && status < 0) fault("ng_grad failed and wrote dx[%u]", i);
    }
}

void substitute(World& w)
{
    const uint32_t n = w.count(3);
    ng_expr *e = w.expr(), **from = w.exprs(n), **to = w.exprs(n);
    w.built("ng_subst", ng_subst(e, from, to, from && to ? n : w.flags() % (n + 1)));
}
void customise(World& w)
{
    const uint32_t n = w.count(3);
    ng_expr *y = w.expr(), *dy = ng_param(nullptr, 7, shape_like(w, y)), **x = w.exprs(n), **dx = w.bytes.one_in(2) ? x : w.exprs(n);
    w.built("ng_param", dy);
    w.built("ng_custom_grad", ng_custom_grad(y, dy, x, dx, n));
}

const std::vector<Row> ROWS = {
    BUILT(ng_leaf, w.scope(), w.tensor()),
    BUILT(ng_param, w.scope(), w.bytes.one_in(16) ? uint32_t(w.number()) : w.bytes.below(4), w.shape()),
    BUILT(ng_scalar, w.scope(), w.dtype(), w.bytes.one_in(10) ? uint32_t(w.number()) : 8 * w.bytes.below(4)),
    BUILT(ng_length, w.scope(), w.bytes.one_in(4) ? w.number() : -1 - int64_t(w.bytes.below(3))),
    BUILT(ng_const, w.scope(), w.bytes.one_in(3) ? 0 : w.dtype(), w.real()),
    BUILT(ng_const_int, w.scope(), w.bytes.one_in(3) ? 0 : w.dtype(), w.number()),
    BUILT(ng_iota, w.scope(), w.shape(), w.axis()),
    BUILT(ng_random, w.scope(), w.bytes.one_in(12) ? w.flags() : w.bytes.below(3), key(w), step(w), shape_like(w, w.expr())),
    {"ng_parse", parse},
    BUILT(ng_cast, w.expr(), w.dtype()),
    BUILT(ng_cast_stochastic, w.expr(), w.dtype(), w.bytes.one_in(10) ? uint32_t(w.bytes.word()) : w.bytes.below(4), key(w), step(w)),
    BUILT(ng_bitcast, w.expr(), w.dtype()),
    {"ng_reshape", [](World& w) { const auto [all, n] = dims(w); w.built("ng_reshape", ng_reshape(w.expr(), all, n)); }},
    {"ng_broadcast", [](World& w) { const auto [all, n] = dims(w); w.built("ng_broadcast", ng_broadcast(w.expr(), all, n)); }},
    {"ng_permute", [](World& w) { const auto [all, n] = list<int32_t>(w, w.bytes.one_in(30) ? 40 : 4, [&] { return w.axis(); }); w.built("ng_permute", ng_permute(w.expr(), all, n)); }},
    BUILT(ng_slice, w.expr(), w.axis(), w.bytes.one_in(2) ? w.number() : int64_t(w.bytes.below(4)), w.bytes.one_in(2) ? NG_END : w.number(), w.bytes.one_in(2) ? 1 : w.number()),
    BUILT(ng_window, w.expr(), w.axis(), whole(w), w.dim()),
    {"ng_concat", [](World& w) { const auto [all, n] = list<ng_expr*>(w, 4, [&] { return w.expr(); }); w.built("ng_concat", ng_concat(all, n, w.axis())); }},
    BUILT(ng_view, w.expr(), shape_like(w, w.expr()), w.bytes.one_in(4) ? w.number() : 0),
    BUILT(ng_take, w.expr(), whole(w), w.axis()),
    BUILT(ng_put, w.expr(), whole(w), w.expr(), w.axis(), w.bytes.below(6)),
    BUILT(ng_scan, w.expr(), w.axis(), w.bytes.below(6), w.flags()),
    BUILT(ng_segment, w.expr(), whole(w), w.bytes.below(6)),
    BUILT(ng_argsort, w.expr(), w.axis(), w.flags()),
    BUILT(ng_tag, w.expr(), w.text()),
    BUILT(ng_keep, w.expr()),
    BUILT(ng_matmul, matrix(w), matrix(w), matmul(w)),
    {"ng_conv", convolve}, {"ng_conv_dx", convolve}, {"ng_conv_dw", convolve},
    {"ng_pool", pooled}, {"ng_pool_dx", pooled},
    {"ng_grad", differentiate},
    BUILT(ng_surrogate, w.expr(), w.bytes.one_in(3) ? nullptr : w.expr()),
    {"ng_custom_grad", customise},
    {"ng_subst", substitute},
};

const std::vector<Row> WORDS = {
#define WORD_1(name) BUILT(ng_##name, w.expr()),
#define WORD_2(name) BUILT(ng_##name, w.expr(), w.expr()),
#define WORD_3(name) BUILT(ng_##name, w.expr(), w.expr(), w.expr()),
#define MAP(name, arity, ...) WORD_##arity(name)
#define FOLD(name, ...) BUILT(ng_##name, w.expr(), w.axes(), w.flags()),
#define STAT(name, ...) FOLD(name)
#define NORM(name, ...) BUILT(ng_##name, w.expr(), w.axes()),
#include "jit/ops.def"
#undef WORD_1
#undef WORD_2
#undef WORD_3
};
#undef BUILT

}  // namespace

const std::vector<Row>& building_rows() { return ROWS; }
const std::vector<Row>& word_rows() { return WORDS; }

}  // namespace harm
