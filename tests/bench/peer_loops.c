// What a C programmer would write instead, one loop an expression, and the copies that tell how fast memory is.
#define _POSIX_C_SOURCE 200809L
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// ---- any function of one kind, often, without the caller's language in between ----------------------------------

typedef int32_t run_function(void *program, void *stream, const void *run, void *error);

// Negative: the status of the run that failed.
double repeat_run(run_function *function, void *program, const void *run, int64_t count)
{
    const double start = seconds_now();
    for (int64_t i = 0; i < count; i++) {
        const int32_t status = function(program, 0, run, 0);
        if (status < 0) return status;
    }
    return seconds_now() - start;
}

typedef void loop_function(const void *x, const void *y, void *out, int64_t rows, int64_t columns);

double repeat_loop(loop_function *function, const void *x, const void *y, void *out, int64_t rows, int64_t columns, int64_t count)
{
    const double start = seconds_now();
    for (int64_t i = 0; i < count; i++) function(x, y, out, rows, columns);
    return seconds_now() - start;
}

// ---- expressions: 16 elements at a time where they are halves, which the compiler would convert one by one --------

#define HALVES 16
static void load_halves(float *to, const uint16_t *from)
{
    for (int i = 0; i < HALVES; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
}

static void store_halves(uint16_t *to, const float *from)
{
    for (int i = 0; i < HALVES; i += 8) _mm_storeu_si128((__m128i *)(to + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
}

#define ELEMENTWISE(name, expression)                                                                     \
    static inline float name##_of(float x, float y) { (void)y; return expression; }                      \
    void name##_f32(const float *restrict x, const float *restrict y, float *restrict out, int64_t rows, int64_t columns) \
    {                                                                                                     \
        for (int64_t i = 0; i < rows * columns; i++) out[i] = name##_of(x[i], y[i]);                      \
    }                                                                                                     \
    void name##_f16(const uint16_t *restrict x, const uint16_t *restrict y, uint16_t *restrict out, int64_t rows, int64_t columns) \
    {                                                                                                     \
        for (int64_t i = 0; i < rows * columns; i += HALVES) {                                            \
            float a[HALVES], b[HALVES], c[HALVES];                                                        \
            load_halves(a, x + i), load_halves(b, y + i);                                                 \
            for (int j = 0; j < HALVES; j++) c[j] = name##_of(a[j], b[j]);                                \
            store_halves(out + i, c);                                                                     \
        }                                                                                                 \
    }

static inline float twenty(float x, float y)
{
    const float a = ((x + y) * x - y) * 0.5f + x;
    const float b = ((a * y - 0.25f) * x + y) * 0.125f - a;
    const float c = (b * y + 0.75f) * a - x;
    return (c * 0.5f + b) * y - a + c;
}

ELEMENTWISE(add, x + y)
ELEMENTWISE(affine, 2.5f * x + 0.5f)
ELEMENTWISE(gelu_chain, 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x))) * 1.1f + 0.3f)
ELEMENTWISE(twenty_operations, twenty(x, y))

#define FROM_f32(v) (v)
#define TO_f32(v) (v)
#define FROM_f16(v) _cvtsh_ss(v)
#define TO_f16(v) _cvtss_sh(v, 0)

#define ROWWISE(suffix, type)                                                                             \
    void batchnorm_##suffix(const type *restrict x, const type *y, type *restrict out, int64_t rows, int64_t columns) \
    {                                                                                                     \
        (void)y;                                                                                          \
        for (int64_t r = 0; r < rows; r++, x += columns, out += columns) {                                \
            float sum = 0, squares = 0;                                                                   \
            for (int64_t i = 0; i < columns; i++) sum += FROM_##suffix(x[i]);                             \
            const float mean = sum / (float)columns;                                                      \
            for (int64_t i = 0; i < columns; i++) squares += (FROM_##suffix(x[i]) - mean) * (FROM_##suffix(x[i]) - mean); \
            const float factor = 1 / sqrtf(squares / (float)columns + 0.001f);                            \
            for (int64_t i = 0; i < columns; i++) out[i] = TO_##suffix(factor * (FROM_##suffix(x[i]) - mean)); \
        }                                                                                                 \
    }                                                                                                     \
    void softmax_##suffix(const type *restrict x, const type *y, type *restrict out, int64_t rows, int64_t columns) \
    {                                                                                                     \
        (void)y;                                                                                          \
        for (int64_t r = 0; r < rows; r++, x += columns, out += columns) {                                \
            float most = FROM_##suffix(x[0]), sum = 0;                                                    \
            for (int64_t i = 1; i < columns; i++) most = FROM_##suffix(x[i]) > most ? FROM_##suffix(x[i]) : most; \
            for (int64_t i = 0; i < columns; i++) sum += expf(FROM_##suffix(x[i]) - most);                \
            const float factor = 1 / sum;                                                                 \
            for (int64_t i = 0; i < columns; i++) out[i] = TO_##suffix(expf(FROM_##suffix(x[i]) - most) * factor); \
        }                                                                                                 \
    }                                                                                                     \
    void column_sums_##suffix(const type *restrict x, const type *y, float *restrict out, int64_t rows, int64_t columns) \
    {                                                                                                     \
        (void)y;                                                                                          \
        memset(out, 0, (size_t)columns * sizeof *out);                                                    \
        for (int64_t r = 0; r < rows; r++, x += columns)                                                  \
            for (int64_t i = 0; i < columns; i++) out[i] += FROM_##suffix(x[i]);                          \
    }

ROWWISE(f32, float)
ROWWISE(f16, uint16_t)

// Sums that are no worse than pairwise ones, as libng's are (contract N5).
void column_sums_wide_f32(const float *restrict x, const float *y, float *restrict out, int64_t rows, int64_t columns)
{
    (void)y;
    double sum[columns];
    for (int64_t i = 0; i < columns; i++) sum[i] = 0;
    for (int64_t r = 0; r < rows; r++, x += columns)
        for (int64_t i = 0; i < columns; i++) sum[i] += (double)x[i];
    for (int64_t i = 0; i < columns; i++) out[i] = (float)sum[i];
}

// ---- how fast memory is: each thread has its part -------------------------------------------------------------------

enum { COPY, READ };
struct part {
    pthread_t   thread;
    const char *from;
    char       *to;
    size_t      bytes;
    int         how;
    float       sum;
};

static void *walk_part(void *argument)
{
    struct part *part = argument;
    if (part->how == COPY) {
        memcpy(part->to, part->from, part->bytes);
        return 0;
    }
    __m256 sums[8] = { 0 };
    for (size_t i = 0; i + 256 <= part->bytes; i += 256)
        for (int j = 0; j < 8; j++) sums[j] = _mm256_add_ps(sums[j], _mm256_loadu_ps((const float *)(part->from + i) + 8 * j));
    for (int j = 1; j < 8; j++) sums[0] = _mm256_add_ps(sums[0], sums[j]);
    part->sum = sums[0][0];
    return 0;
}

// Seconds of `count` walks through all bytes by 1 or 2 threads. how: 0 copies, 1 reads.
double repeat_walk(int how, const void *from, void *to, int64_t bytes, int threads, int64_t count)
{
    const double start = seconds_now();
    const size_t half = threads == 2 ? (size_t)bytes / 2 / 4096 * 4096 : (size_t)bytes;
    for (int64_t i = 0; i < count; i++) {
        struct part first = { .from = from, .to = to, .bytes = half, .how = how };
        struct part second = { .from = (const char *)from + half, .to = (char *)to + half, .bytes = (size_t)bytes - half, .how = how };
        const int other = threads == 2 && pthread_create(&second.thread, 0, walk_part, &second) == 0;
        walk_part(&first);
        if (other) pthread_join(second.thread, 0);
        else if (threads == 2) walk_part(&second);
    }
    return seconds_now() - start;
}

// ---- a core that nobody else gets -------------------------------------------------------------------------------------

static atomic_int is_held;
static sem_t      is_wanted;

static void *wait_busily(void *nothing)
{
    for (;;) {
        sem_wait(&is_wanted);
        while (is_held) _mm_pause();
    }
    return nothing;
}

// Beside one busy thread the next core stays with this process, idle as far as a waiting core can be: cores that are two
// halves of one would else share it with whatever runs there.
int hold_core(int held)
{
    static pthread_t thread;
    if (!thread && (sem_init(&is_wanted, 0, 0) || pthread_create(&thread, 0, wait_busily, 0))) return -1;
    const int was_held = atomic_exchange(&is_held, held);
    return held && !was_held ? sem_post(&is_wanted) : 0;
}
