// Trains a small convolutional network to read handwritten digits, shows how well it does, saves it; --load uses it again.
#include "digits.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <time.h>

static const char HELP[] =
    "digits - learns to read handwritten digits\n"
    "\n"
    "  digits                  train on four fifths of the images, test on the rest, save the network\n"
    "  digits --load FILE      read the test images with a saved network and show some of them\n"
    "\n"
    "  --epochs N              how often to go through the training images (16)\n"
    "  --seed N                of the first weights and the order of the images (1)\n"
    "  --save FILE             where the trained network goes (./digits.ng)\n"
    "  --data FILE             the images (digits.txt, found by itself)\n"
    "  --backend NAME          cpu or cuda (the best there is)\n"
    "  --at-least PERCENT      exit status 1 if the test accuracy is below\n";

struct options {
    const char *load, *save, *data, *backend;
    long        epochs;
    uint64_t    seed;
    double      at_least;
};

ng_error fault;

ng_status check_status(ng_status status, const char *call)
{
    if (status < 0) stop("%s: %s\n        in %s", ng_status_name(status), fault.text, call);
    return status;
}

_Noreturn void stop(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fputs("digits: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

static double seconds_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double number_option(const char *option, const char *text, double least, double most)
{
    char        *end = NULL;
    const double value = strtod(text, &end);
    if (end == text || *end || !(value >= least && value <= most))
        stop("%s wants a number from %g to %g, not \"%s\"", option, least, most, text);
    return value;
}

static bool takes(const char *option, const char *name, const char *value)
{
    if (strcmp(option, name) != 0) return false;
    if (!value) stop("%s wants a value; digits --help tells which", name);
    return true;
}

static struct options parse_options(int argc, char **argv)
{
    struct options options = { .save = "digits.ng", .epochs = 16, .seed = 1 };
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--help") || !strcmp(option, "-h")) {
            fputs(HELP, stdout);
            exit(0);
        }
        const char *value = i + 1 < argc ? argv[++i] : NULL;
        if (takes(option, "--load", value)) options.load = value;
        else if (takes(option, "--save", value)) options.save = value;
        else if (takes(option, "--data", value)) options.data = value;
        else if (takes(option, "--backend", value)) options.backend = value;
        else if (takes(option, "--epochs", value)) options.epochs = (long)number_option(option, value, 1, 1000);
        else if (takes(option, "--seed", value)) options.seed = (uint64_t)number_option(option, value, 0, 1e15);
        else if (takes(option, "--at-least", value)) options.at_least = number_option(option, value, 0, 100);
        else stop("there is no option %s; digits --help tells what can be said", option);
    }
    return options;
}

// The first fifth of all images, in an order that no option changes, is never trained on.
static void split_images(struct images *all, struct images *test, struct images *training)
{
    uint64_t state = 1998;
    shuffle_images(all, &state);
    *test = *training = *all;
    test->count = all->count / 5;
    training->count -= test->count;
    training->pixels += test->count * PIXELS;
    training->labels += test->count;
}

static int count_hits(const struct images *images, const struct answers *answers)
{
    int hits = 0;
    for (int i = 0; i < images->count; i++) hits += answers->digit[i] == images->labels[i];
    return hits;
}

static void train(struct model *model, struct images *training, const struct images *test, const struct options *options)
{
    const double peak_rate = 0.05, pi = 3.14159265358979;
    const int    steps = training->count / BATCH;
    const double start = seconds_now();
    uint64_t     state = options->seed + 1;
    for (int epoch = 0; epoch < options->epochs; epoch++) {
        double loss = 0;
        shuffle_images(training, &state);
        for (int step = 0; step < steps; step++) {
            // Falls from its peak to 0 as a cosine. A number by value: nothing is compiled again for it.
            const double done = (epoch + (double)step / steps) / (double)options->epochs;
            loss += model_step(model, training, step * BATCH, (float)(peak_rate * 0.5 * (1 + cos(pi * done))));
        }
        struct answers answers = model_answer(model, test);
        printf("epoch %2d of %ld   loss %.4f   test %.1f %%   %.1f s\n", epoch + 1, options->epochs, loss / steps,
               100.0 * count_hits(test, &answers) / test->count, seconds_now() - start);
        fflush(stdout);
        free_answers(&answers);
        if (!isfinite(loss)) stop("the loss is no number any more");
    }
}

static void print_confusion(const struct images *images, const struct answers *answers)
{
    int table[CLASSES][CLASSES] = { 0 };
    for (int i = 0; i < images->count; i++) table[images->labels[i]][answers->digit[i]]++;
    printf("\nwhat was written (down) and what was read (across)\n\n       ");
    for (int k = 0; k < CLASSES; k++) printf("%4d", k);
    puts("   right");
    for (int row = 0; row < CLASSES; row++) {
        int all = 0;
        printf("%6d ", row);
        for (int k = 0; k < CLASSES; k++) {
            all += table[row][k];
            if (table[row][k]) printf("%4d", table[row][k]);
            else printf("   .");
        }
        printf("%6.0f %%\n", all ? 100.0 * table[row][row] / all : 100.0);
    }
    putchar('\n');
}

// Up to four images that were read wrong, then some that were read right.
static void show_some(const struct images *images, const struct answers *answers)
{
    enum { ROW = 4 };
    for (int right = 0; right < 2; right++) {
        char captions[ROW][24];
        int  which[ROW], count = 0;
        for (int i = 0; i < images->count && count < ROW; i++) {
            if ((answers->digit[i] == images->labels[i]) != right) continue;
            snprintf(captions[count], sizeof captions[count], right ? "%d, %3.0f %%" : "%d, %3.0f %%; is %d",
                     (int)answers->digit[i], 100 * (double)answers->certainty[i], images->labels[i]);
            which[count++] = i;
        }
        if (count) puts(right ? "Read right, and how sure the network is:\n" : "Read wrong:\n");
        if (count) draw_images(images, which, count, captions);
    }
}

static double report(struct model *model, const struct images *test, bool show)
{
    struct answers answers = model_answer(model, test);
    for (int i = 0; i < test->count; i++)
        if (answers.digit[i] < 0 || answers.digit[i] >= CLASSES) stop("%lld is no digit", (long long)answers.digit[i]);
    const int hits = count_hits(test, &answers);
    if (show) show_some(test, &answers);
    print_confusion(test, &answers);
    printf("test accuracy %.1f %%   (%d of %d images it never saw)\n", 100.0 * hits / test->count, hits, test->count);
    free_answers(&answers);
    return 100.0 * hits / test->count;
}

// Before the work that would be lost, not after it.
static void check_writable(const char *path)
{
    FILE *file = fopen(path, "ab");
    if (!file) stop("cannot write %s; say where with --save FILE", path);
    fclose(file);
}

int main(int argc, char **argv)
{
    const struct options options = parse_options(argc, argv);
    const ng_ctx_desc    desc = { .size = sizeof desc, .version = NG_VERSION, .backend = options.backend };
    ng_ctx              *context = NULL;
    struct images        test, training, all = read_images(options.data ? options.data : find_data(argv[0]));
    split_images(&all, &test, &training);

    ng_device_info device = { .size = sizeof device };
    TRY(ng_ctx_create(&desc, &context, &fault));
    TRY(ng_ctx_info(context, &device));
    printf("%d images to learn from, %d to test with, on %s\n\n", training.count, test.count, device.name);

    if (!options.load) check_writable(options.save);
    struct model model = options.load ? model_load(context, options.load) : model_create(context, options.seed);
    if (!options.load) train(&model, &training, &test, &options);
    const double accuracy = report(&model, &test, options.load != NULL);
    if (!options.load) {
        model_save(&model, options.save);
        printf("saved %s; see what it reads with: %s --load %s\n", options.save, argv[0], options.save);
    }
    model_release(&model);
    ng_ctx_release(context);
    free_images(&all);
    if (accuracy < options.at_least) stop("the accuracy is below %g %%", options.at_least);
    return 0;
}
