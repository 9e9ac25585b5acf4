// Shared by the parts of the digits example: the images, the network, and how every call of libng is checked.
#pragma once
#include <ng.h>
#include <stdbool.h>
#include <stdint.h>

// TRY(ng_call(.., &fault)) is the status; a failure ends the program with what libng says about it.
extern ng_error fault;
#define TRY(call) check_status((call), #call)
ng_status check_status(ng_status status, const char *call);
// Prints "digits: ..." on stderr and ends the program with exit status 1.
_Noreturn void stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

// ---- digits_data.c: images of handwritten digits -------------------------------------------------------------

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, INK = 16 };

struct images {
    int      count;
    uint8_t *pixels;   // [count, 1, SIDE, SIDE], 0 (paper) .. INK
    int32_t *labels;   // [count], the digit that was written
};

// The path of the data: beside the executable, where it is installed, or in the source tree. Ends the program if nowhere.
const char *find_data(const char *executable);
struct images read_images(const char *path);
void free_images(struct images *images);
// The same images in an order that depends on *state alone.
void shuffle_images(struct images *images, uint64_t *state);
// Images side by side in shades of the terminal, a caption under each.
void draw_images(const struct images *images, const int *which, int count, char (*captions)[24]);

// Random numbers that are the same everywhere (splitmix64): 64 bits; uniform in [-1, 1).
uint64_t random_bits(uint64_t *state);
double   random_uniform(uint64_t *state);

// ---- digits_model.c: the network ------------------------------------------------------------------------------

enum {
    BATCH      = 32,
    TEST_MAX   = 2048,                      // images in one run of `answer` at most
    WEIGHTS    = 8,                         // filters or matrices and biases of four layers
    ARG_IMAGES = 0,
    ARG_WEIGHT = 1,                         // .. WEIGHTS of them
    ARG_LABELS = ARG_WEIGHT + WEIGHTS,
    ARG_MOMENT = ARG_LABELS + 1,            // .. WEIGHTS of them
    ARG_COUNT  = ARG_MOMENT + WEIGHTS
};

struct model {
    ng_ctx    *context;
    ng_prog   *train;               // one step: images, weights, labels, momenta -> loss, new weights, new momenta
    ng_prog   *answer;              // images, weights -> digit, certainty
    ng_tensor *args[ARG_COUNT];     // images and labels of one batch; weights and momenta
    ng_tensor *loss;               // of one batch
};
struct answers {
    int64_t *digit;                 // [count]
    float   *certainty;             // [count], the probability that the network gives its answer
};

struct model model_create(ng_ctx *context, uint64_t seed);
void model_release(struct model *model);
// One step on images [first, first + BATCH). Returns the loss before it.
float model_step(struct model *model, const struct images *images, int first, float learning_rate);
struct answers model_answer(struct model *model, const struct images *images);
void free_answers(struct answers *answers);

// ---- digits_file.c: a trained network in a file -----------------------------------------------------------------

void model_save(const struct model *model, const char *path);
// A model that can answer, not train.
struct model model_load(ng_ctx *context, const char *path);
