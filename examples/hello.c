// The smallest whole program with libng: standardises the rows of a matrix with one fused kernel and prints them.
#include <ng.h>
#include <stdio.h>

int main(void)
{
    ng_error error = { 0 };
    ng_ctx *context = NULL;
    ng_tensor *x = NULL, *y = NULL;
    const ng_shape shape = { .size = sizeof shape, .dtype = NG_F32, .ndim = 2, .dims = { 2, 3 } };
    float numbers[6] = { 1, 2, 3, 10, 20, 60 };

    ng_status status = ng_ctx_create(NULL, &context, &error);            // the best device there is
    if (status >= 0) status = ng_tensor_create(context, &shape, &x, &error);
    if (status >= 0) status = ng_tensor_put(x, numbers, sizeof numbers, &error);

    // Building an expression computes nothing and cannot fail: what is wrong with it, ng_eval reports.
    ng_scope *scope = ng_scope_create(context, 0);
    ng_expr *leaf = ng_leaf(scope, x);
    ng_expr *e = ng_parse(scope, "(x - mean(x, 1)) / std(x, 1)", "x", &leaf, 1);
    if (status >= 0) status = ng_eval(context, NULL, &e, &y, 1, &error);
    if (status >= 0) status = ng_tensor_get(y, numbers, sizeof numbers, &error);

    if (status < 0) fprintf(stderr, "%s: %s\n", ng_status_name(status), error.text);
    for (int i = 0; status >= 0 && i < 6; i++) printf("%8.4f%s", numbers[i], i % 3 == 2 ? "\n" : "");

    ng_scope_release(scope);                                             // and all its expressions
    ng_tensor_release(x);
    ng_tensor_release(y);
    ng_ctx_release(context);
    return status < 0;
}
