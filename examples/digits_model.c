// The convolutional network of the digits example: its graph, its two compiled programs, one step of training.
#include "digits.h"
#include <math.h>
#include <stdlib.h>

enum { CHANNELS_1 = 16, CHANNELS_2 = 32, FEATURES = CHANNELS_2 * PIXELS / 4, HIDDEN = 64 };

// fan_in: how many numbers one result is a sum of; 0: starts as zeros.
static const struct {
    const char *name;
    int         fan_in;
    int32_t     ndim;
    int64_t     dims[4];
} LAYERS[WEIGHTS] = {
    { "conv1.filter",  9,              4, { CHANNELS_1, 1, 3, 3 } },
    { "conv1.bias",    0,              3, { CHANNELS_1, 1, 1 } },
    { "conv2.filter",  9 * CHANNELS_1, 4, { CHANNELS_2, CHANNELS_1, 3, 3 } },
    { "conv2.bias",    0,              3, { CHANNELS_2, 1, 1 } },
    { "dense1.matrix", FEATURES,       2, { FEATURES, HIDDEN } },
    { "dense1.bias",   0,              1, { HIDDEN } },
    { "dense2.matrix", HIDDEN,         2, { HIDDEN, CLASSES } },
    { "dense2.bias",   0,              1, { CLASSES } },
};

static ng_shape weight_shape(int i)
{
    ng_shape shape = { .size = sizeof shape, .dtype = NG_F32, .ndim = LAYERS[i].ndim };
    for (int axis = 0; axis < shape.ndim; axis++) shape.dims[axis] = LAYERS[i].dims[axis];
    return shape;
}

// count negative: a length that is known when run.
static ng_shape images_shape(int64_t count)
{
    return (ng_shape){ .size = sizeof(ng_shape), .dtype = NG_U8, .ndim = 4, .dims = { count, 1, SIDE, SIDE } };
}

static ng_shape vector_shape(ng_dtype dtype, int64_t count)
{
    return (ng_shape){ .size = sizeof(ng_shape), .dtype = dtype, .ndim = 1, .dims = { count } };
}

// Images [n, 1, 8, 8] to a number for each digit [n, CLASSES]; w in the order of LAYERS.
static ng_expr *network(ng_scope *scope, ng_expr *images, ng_expr *const *w)
{
    const ng_conv_desc same = { .size = sizeof same, .pad_lo = { 1, 1 }, .pad_hi = { 1, 1 } };
    const ng_pool_desc halve = { .size = sizeof halve, .kind = NG_POOL_MAX, .window = { 2, 2 } };

    ng_expr *x = ng_div(ng_cast(images, NG_F32), ng_const(scope, NG_F32, INK));
    x = ng_relu(ng_add(ng_conv(x, w[0], &same), w[1]));             // [n, 16, 8, 8]
    x = ng_relu(ng_add(ng_conv(x, w[2], &same), w[3]));             // [n, 32, 8, 8]
    x = ng_pool(x, &halve);                                         // [n, 32, 4, 4]
    x = ng_reshape(x, (const int64_t[]){ NG_REST, FEATURES }, 2);

    // The same can be said as text.
    ng_expr *const values[] = { x, w[4], w[5], w[6], w[7] };
    return ng_parse(scope, "relu(x @ a + b) @ c + d", "x,a,b,c,d", values, 5);
}

static ng_expr *weight_param(ng_scope *scope, int i)
{
    ng_shape shape = weight_shape(i);
    return ng_tag(ng_param(scope, (uint32_t)(ARG_WEIGHT + i), &shape), LAYERS[i].name);
}

// The most probable digit of every image, and how probable it is. Any number of images up to TEST_MAX.
static ng_prog *compile_answer(ng_ctx *context)
{
    ng_scope *scope = ng_scope_create(context, 0);
    ng_shape  shape = images_shape(-1);
    ng_expr  *weights[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++) weights[i] = weight_param(scope, i);
    ng_expr *images = ng_tag(ng_param(scope, ARG_IMAGES, &shape), "images");
    ng_expr *scores = network(scope, images, weights);
    ng_expr *results[2];
    results[0] = ng_tag(ng_argmax(scores, NG_AXIS_1, 0), "digit");
    results[1] = ng_parse(scope, "1 / sum(exp(s - max(s, 1)), 1)", "s", &scores, 1);
    results[1] = ng_tag(ng_reshape(results[1], (const int64_t[]){ NG_REST }, 1), "certainty");

    const int64_t         most = TEST_MAX;
    const ng_compile_desc desc = { .size = sizeof desc, .length_max = &most, .nlength = 1 };
    ng_prog              *answer = NULL;
    TRY(ng_compile(context, &desc, results, 2, &answer, &fault));
    ng_scope_release(scope);
    return answer;
}

// One step of gradient descent with momentum. Every weight and momentum is an argument and, by alias, an output in the
// same memory: what is written depends on the values before the step alone.
static ng_prog *compile_train(ng_ctx *context)
{
    ng_scope *scope = ng_scope_create(context, 0);
    ng_shape  shape = images_shape(BATCH), labels_shape = vector_shape(NG_I32, BATCH);
    ng_shape  classes_shape = vector_shape(NG_I32, CLASSES);
    ng_expr  *weights[WEIGHTS], *gradients[WEIGHTS], *results[1 + 2 * WEIGHTS];
    int32_t   alias[1 + 2 * WEIGHTS] = { -1 };
    for (int i = 0; i < WEIGHTS; i++) weights[i] = weight_param(scope, i);
    ng_expr *images = ng_tag(ng_param(scope, ARG_IMAGES, &shape), "images");
    ng_expr *labels = ng_tag(ng_param(scope, ARG_LABELS, &labels_shape), "labels");
    ng_expr *scores = network(scope, images, weights);

    // Softmax cross-entropy: the mean of -log of the probability given to the right digit.
    ng_expr *const values[] = { scores, labels, ng_iota(scope, &classes_shape, 0) };
    results[0] = ng_parse(scope, "mean(sum(where(k == y[:, None], -log_softmax(s, 1), 0), 1))", "s,y,k", values, 3);
    TRY(ng_grad(results, NULL, 1, weights, gradients, WEIGHTS, &fault));

    ng_expr *rate = ng_scalar(scope, NG_F32, 0);
    for (int i = 0; i < WEIGHTS; i++) {
        ng_shape       weight = weight_shape(i);
        ng_expr       *moment = ng_param(scope, (uint32_t)(ARG_MOMENT + i), &weight);
        ng_expr *const parts[] = { weights[i], moment, gradients[i], rate };
        results[1 + i]           = ng_parse(scope, "w - rate * (0.9 * m + g)", "w,m,g,rate", parts, 4);
        results[1 + WEIGHTS + i] = ng_parse(scope, "0.9 * m + g", "w,m,g", parts, 3);
        alias[1 + i]           = ARG_WEIGHT + i;
        alias[1 + WEIGHTS + i] = ARG_MOMENT + i;
    }
    const ng_compile_desc desc = { .size = sizeof desc, .alias = alias };
    ng_prog              *train = NULL;
    TRY(ng_compile(context, &desc, results, 1 + 2 * WEIGHTS, &train, &fault));
    ng_scope_release(scope);
    return train;
}

// He, Zhang, Ren & Sun 2015: uniform with variance 2 / fan_in, so that relu keeps the size of what passes through.
static void put_initial(ng_tensor *tensor, int layer, uint64_t *state)
{
    size_t count = 1;
    for (int axis = 0; axis < LAYERS[layer].ndim; axis++) count *= (size_t)LAYERS[layer].dims[axis];
    const double bound = LAYERS[layer].fan_in ? sqrt(6.0 / LAYERS[layer].fan_in) : 0;
    float       *values = malloc(count * sizeof *values);
    if (!values) stop("no memory for %zu weights", count);
    for (size_t i = 0; i < count; i++) values[i] = (float)(bound * random_uniform(state));
    TRY(ng_tensor_put(tensor, values, count * sizeof *values, &fault));
    free(values);
}

static ng_tensor *make_tensor(ng_ctx *context, ng_shape shape)
{
    ng_tensor *tensor = NULL;
    TRY(ng_tensor_create(context, &shape, &tensor, &fault));
    return tensor;
}

struct model model_create(ng_ctx *context, uint64_t seed)
{
    struct model model = { .context = context, .train = compile_train(context), .answer = compile_answer(context) };
    model.args[ARG_IMAGES] = make_tensor(context, images_shape(BATCH));
    model.args[ARG_LABELS] = make_tensor(context, vector_shape(NG_I32, BATCH));
    for (int i = 0; i < WEIGHTS; i++) {
        model.args[ARG_WEIGHT + i] = make_tensor(context, weight_shape(i));
        model.args[ARG_MOMENT + i] = make_tensor(context, weight_shape(i));
        put_initial(model.args[ARG_WEIGHT + i], i, &seed);
        TRY(ng_tensor_fill(model.args[ARG_MOMENT + i], NULL, 0, &fault));
    }
    model.loss = make_tensor(context, (ng_shape){ .size = sizeof(ng_shape), .dtype = NG_F32 });
    return model;
}

void model_release(struct model *model)
{
    for (int i = 0; i < ARG_COUNT; i++) ng_tensor_release(model->args[i]);
    ng_tensor_release(model->loss);
    ng_prog_release(model->train);
    ng_prog_release(model->answer);
    *model = (struct model){ 0 };
}

float model_step(struct model *model, const struct images *images, int first, float learning_rate)
{
    ng_tensor *out[1 + 2 * WEIGHTS] = { model->loss };
    for (int i = 0; i < WEIGHTS; i++) {
        out[1 + i]           = model->args[ARG_WEIGHT + i];
        out[1 + WEIGHTS + i] = model->args[ARG_MOMENT + i];
    }
    TRY(ng_tensor_put(model->args[ARG_IMAGES], images->pixels + first * PIXELS, BATCH * PIXELS, &fault));
    TRY(ng_tensor_put(model->args[ARG_LABELS], images->labels + first, BATCH * sizeof(int32_t), &fault));
    const ng_run run = {
        .size = sizeof run, .nargs = ARG_COUNT, .args = model->args, .nout = 1 + 2 * WEIGHTS, .out = out,
        .scalars = &learning_rate, .scalar_bytes = sizeof learning_rate,
    };
    TRY(ng_prog_run(model->train, NULL, &run, &fault));
    float loss = 0;
    TRY(ng_tensor_get(model->loss, &loss, sizeof loss, &fault));
    return loss;
}

// Of images [first, first + count), no more than TEST_MAX.
static void answer_some(struct model *model, const struct images *images, size_t first, size_t count, struct answers *answers)
{
    const int64_t length = (int64_t)count;
    ng_tensor *args[1 + WEIGHTS] = { make_tensor(model->context, images_shape(length)) };
    ng_tensor *out[] = { make_tensor(model->context, vector_shape(NG_I64, length)), make_tensor(model->context, vector_shape(NG_F32, length)) };
    for (int i = 0; i < WEIGHTS; i++) args[ARG_WEIGHT + i] = model->args[ARG_WEIGHT + i];
    TRY(ng_tensor_put(args[0], images->pixels + first * PIXELS, count * PIXELS, &fault));
    const ng_run run = { .size = sizeof run, .nargs = 1 + WEIGHTS, .args = args, .nout = 2, .out = out };
    TRY(ng_prog_run(model->answer, NULL, &run, &fault));
    TRY(ng_tensor_get(out[0], answers->digit + first, count * sizeof(int64_t), &fault));
    TRY(ng_tensor_get(out[1], answers->certainty + first, count * sizeof(float), &fault));
    ng_tensor_release(args[0]);
    ng_tensor_release(out[0]);
    ng_tensor_release(out[1]);
}

struct answers model_answer(struct model *model, const struct images *images)
{
    const size_t   count = (size_t)images->count;
    struct answers answers = { malloc(count * sizeof(int64_t)), malloc(count * sizeof(float)) };
    if (!answers.digit || !answers.certainty) stop("no memory for %zu answers", count);
    for (size_t first = 0; first < count; first += TEST_MAX)
        answer_some(model, images, first, count - first < TEST_MAX ? count - first : TEST_MAX, &answers);
    return answers;
}

void free_answers(struct answers *answers)
{
    free(answers->digit);
    free(answers->certainty);
    *answers = (struct answers){ 0 };
}
