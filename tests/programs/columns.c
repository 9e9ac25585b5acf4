/* columns.c - A Fortran or Julia program keeps its matrices column by column: put, get, copies, views, slices, reductions, products and outputs speak of the same elements whatever the strides, and nothing is transposed in silence (P4, E5). */
#include "check.h"

enum { M = 37, K = 23, N = 11 };
static const ng_shape *columns(ng_dtype t, int64_t m, int64_t n)       /* element (i, j) at i + j m */
{
    ng_shape *d = mem(sizeof *d);
    *d = (ng_shape){ .size = sizeof *d, .dtype = t, .ndim = 2, .flags = NG_STRIDED, .dims = { m, n }, .strides = { 1, m } };
    return d;
}
static const ng_shape *any_strides(ng_dtype t, int64_t m, int64_t n)
{
    ng_shape *d = mem(sizeof *d);
    *d = (ng_shape){ .size = sizeof *d, .dtype = t, .ndim = 2, .flags = NG_ANY, .dims = { m, n } };
    return d;
}
static double *flipped(const double *a, int64_t m, int64_t n)          /* row-major m x n -> column-major, and back with n, m */
{
    double *b = doubles((size_t)(m * n));
    for (int64_t i = 0; i < m; i++) for (int64_t j = 0; j < n; j++) b[i + j * m] = a[i * n + j];
    return b;
}
/* Integers, all different where the type allows: a transposition cannot hide. */
static double *numbers(int64_t m, int64_t n, int big)
{
    double *a = doubles((size_t)(m * n));
    for (int64_t i = 0; i < m; i++) for (int64_t j = 0; j < n; j++) a[i * n + j] = big ? (double)(1000 * i + j) : (double)((7 * i + 3 * j + i * j) % 17 - 8);
    return a;
}
/* t's elements are those of a, row-major m x n: once packed as its strides nest, once through an expression. */
static void holds(const char *what, ng_ctx *c, ng_tensor *t, const double *a, int64_t m, int64_t n)
{
    ng_shape d = { .size = sizeof d };
    DO(ng_tensor_shape(t, &d));
    CHECK(d.ndim == 2 && d.dims[0] == m && d.dims[1] == n, "%s: [%lld, %lld], should be [%lld, %lld]", what, (long long)d.dims[0], (long long)d.dims[1], (long long)m, (long long)n);
    const int row_by_row = llabs(d.strides[0]) > llabs(d.strides[1]);
    ng_expr *e = ng_leaf(NULL, t);
    NEAR(what, get(t), row_by_row ? a : flipped(a, m, n), (size_t)(m * n), 0, 0);
    NEAR(what, eval(c, e), a, (size_t)(m * n), 0, 0);
    ng_expr_release(e);
}
static ng_tensor *view(ng_expr *e) { ng_tensor *t = NULL; DO(ng_tensor_view(e, &t, ERR)); return t; }
static double *product(const double *a, const double *b, int64_t m, int64_t k, int64_t n)
{
    double *y = doubles((size_t)(m * n));
    for (int64_t i = 0; i < m; i++) for (int64_t j = 0; j < n; j++) for (int64_t q = 0; q < k; q++) y[i * n + j] += a[i * k + q] * b[q * n + j];
    return y;
}

static void elements_stay(ng_ctx *c)
{
    const double *a = numbers(M, K, 1), *at = flipped(a, M, K);       /* row-major A; row-major A' is column-major A */
    ng_tensor *col = tensor(c, columns(NG_F64, M, K), at), *row = tensor(c, SHAPE(NG_F64, M, K), NULL), *v[4];
    ng_scope *s = ng_scope_create(c, 0);
    ng_expr *x = ng_leaf(s, col);
    holds("put", c, col, a, M, K);
    DO(ng_tensor_copy(row, col, NULL, ERR));
    holds("copy to rows", c, row, a, M, K);
    DO(ng_tensor_fill(col, NULL, -1, ERR));
    DO(ng_tensor_copy(col, row, NULL, ERR));
    holds("copy to columns", c, col, a, M, K);
    DO(ng_tensor_fill(col, NULL, -1, ERR));
    DO(ng_eval(c, NULL, (ng_expr *const[]){ ng_leaf(s, row) }, &col, 1, ERR));
    holds("output in columns", c, col, a, M, K);

    v[0] = view(PERMUTE(x, 1, 0));
    holds("view of the transposed", c, v[0], at, K, M);
    NEAR("transposed", eval(c, PERMUTE(x, 1, 0)), at, M * K, 0, 0);
    NEAR("reshaped, numbered row by row", eval(c, RESHAPE(x, M * K)), a, M * K, 0, 0);
    NEAR("seen through ng_view", eval(c, ng_view(x, SHAPE(NG_F64, M - 1, K), K)), a + K, (M - 1) * K, 0, 0);
    double *part = doubles(M * K), *back = doubles(M * K), *rows = doubles(K), *cols = doubles(M), *sum = doubles(M * K);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < K; j++) {
            if (i && j % 2 == 0) part[(i - 1) * ((K + 1) / 2) + j / 2] = a[i * K + j];
            back[(M - 1 - i) * K + j] = a[i * K + j];
            rows[j] += a[i * K + j], cols[i] += a[i * K + j];
            sum[i * K + j] = a[i * K + j] + 10 * j + 5 * i;
        }
    v[1] = view(TEXT(s, "x[1:, ::2]", "x", x));
    holds("view of [1:, ::2]", c, v[1], part, M - 1, (K + 1) / 2);
    v[2] = view(TEXT(s, "x[::-1]", "x", x));
    holds("view of [::-1]", c, v[2], back, M, K);
    NEAR("sum over rows", eval(c, ng_sum(x, NG_AXIS_0, 0)), rows, K, 0, 0);
    NEAR("sum over columns", eval(c, ng_sum(x, NG_AXIS_1, 0)), cols, M, 0, 0);
    ng_expr *i = ng_iota(s, SHAPE(NG_F64, M, 1), 0), *j = ng_iota(s, SHAPE(NG_F64, K), 0);
    NEAR("a row and a column added", eval(c, TEXT(s, "x + 10 * j + 5 * i", "x,i,j", x, i, j)), sum, M * K, 0, 0);

    DO(ng_tensor_fill(v[1], NULL, -5, ERR));                          /* a part is written: the rest stays */
    double *patched = doubles(M * K);
    for (int q = 0; q < M * K; q++) patched[q] = q >= K && q % K % 2 == 0 ? -5 : a[q];
    holds("after writing a part", c, col, patched, M, K);
    put(v[1], flipped(part, M - 1, (K + 1) / 2));
    holds("after putting it back", c, col, a, M, K);
    ng_scope_release(s);
    ng_tensor_release(col);                                           /* a view needs no one */
    holds("a view of what was released", c, v[0], at, K, M);
    release_all(v, 3);
    ng_tensor_release(row);
}
static void products(ng_ctx *c, ng_dtype t)
{
    const double *a = numbers(M, K, 0), *b = numbers(K, N, 0), *y = product(a, b, M, K, N);      /* exact in f32 */
    ng_tensor *A[2] = { tensor(c, SHAPE(t, M, K), a), tensor(c, columns(t, M, K), flipped(a, M, K)) };
    ng_tensor *B[2] = { tensor(c, SHAPE(t, K, N), b), tensor(c, columns(t, K, N), flipped(b, K, N)) };
    ng_tensor *Y[2] = { tensor(c, SHAPE(t, M, N), NULL), tensor(c, columns(t, M, N), NULL) };
    ng_scope *s = ng_scope_create(c, 0);
    ng_expr *e = ng_matmul(ng_param(s, 0, any_strides(t, M, K)), ng_param(s, 1, any_strides(t, K, N)), NULL), *plain = ng_matmul(ng_param(s, 0, SHAPE(t, M, K)), ng_param(s, 1, SHAPE(t, K, N)), NULL);
    for (int i = 0; i < 8; i++) {
        ng_tensor *in[2] = { A[i & 1], B[i >> 1 & 1] }, *out = Y[i >> 2];
        char what[80];
        snprintf(what, sizeof what, "%s(A) %s(B) -> %s", i & 1 ? "columns" : "rows", i & 2 ? "columns" : "rows", i & 4 ? "columns" : "rows");
        DO(ng_tensor_fill(out, NULL, 99, ERR));
        DO(ng_eval(c, NULL, (ng_expr *const[]){ ng_matmul(ng_leaf(s, in[0]), ng_leaf(s, in[1]), NULL) }, &out, 1, ERR));
        holds(what, c, out, y, M, N);
        /* (B' A')' by permutes is the same */
        DO(ng_tensor_fill(out, NULL, 99, ERR));
        DO(ng_eval(c, NULL, (ng_expr *const[]){ PERMUTE(ng_matmul(PERMUTE(ng_leaf(s, in[1]), 1, 0), PERMUTE(ng_leaf(s, in[0]), 1, 0), NULL), 1, 0) }, &out, 1, ERR));
        holds("the product of the transposed", c, out, y, M, N);
        /* params that take any strides; params that do not */
        ng_shape d = { .size = sizeof d };
        DO(ng_tensor_shape(out, &d));
        for (int strict = 0; strict < 2; strict++) {
            ng_prog *p = NULL;
            const ng_run r = { .size = sizeof r, .nargs = 2, .nout = 1, .args = in, .out = &out };
            DO(ng_compile(c, &(ng_compile_desc){ .size = sizeof(ng_compile_desc), .out = (const ng_shape *const[]){ &d } }, strict ? &plain : &e, 1, &p, ERR));
            DO(ng_tensor_fill(out, NULL, 99, ERR));
            ng_status st = ng_prog_run(p, NULL, &r, ERR), should = strict && (i & 3) ? NG_E_SHAPE : NG_OK;
            CHECK(st == should || (st == NG_SLOW && should == NG_OK), "%s with %s params: %s, should be %s", what, strict ? "row-major" : "any", ng_status_name(st), ng_status_name(should));
            if (should == NG_OK) holds(what, c, out, y, M, N); else CHECK(get(out)[0] == 99, "%s: refused, and yet written", what);
            ng_prog_release(p);
        }
    }
    ng_scope_release(s);
    release_all(A, 2);
    release_all(B, 2);
    release_all(Y, 2);
}

int main(int argc, char **argv)
{
    ng_ctx *c = open_ctx(argc, argv, 0);
    elements_stay(c);
    products(c, NG_F64);
    products(c, NG_F32);
    printf("%d x %d in columns: 8 layouts of a product, four ways, in two types, and 17 other ways to touch them\n", M, K);
    return finish(c);
}
