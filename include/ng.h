/* ng.h - libng: fused array maths for any language.
 *
 * You describe a computation with immutable expressions, then evaluate it (ng_eval), or compile it
 * once and run it often (ng_compile, ng_prog_run). These rules hold everywhere and are not repeated.
 *
 *   HANDLES    Any value may be passed as a handle. One that is NULL, released, of another kind or never ours
 *              is NG_E_INVALID, or NULL where no status is returned; it is never followed. Handles are below 2^47.
 *              (Streams are not handles.)
 *   OWNERSHIP  What comes back through *out carries one reference: release it. Arguments are borrowed;
 *              arrays and strings are copied before return. x_release(NULL) does nothing; x_release
 *              never fails, waits or calls a hook. A handle counts 4194303 references, and no more.
 *   ERRORS     Fallible calls return ng_status and fill *err unless err is NULL; on failure *out is untouched.
 *              libng never exits, aborts, prints or throws.
 *   THREADS    Every call may be made from any thread. Nothing is thread-local; there is no "current" anything.
 *   HOOKS      Your callbacks run on any thread, never under a lock of ours, never inside x_release or an NG_RT
 *              call (but ng_prog_run calls parallel and trace if you gave them). done and log may call anything
 *              but x_close; the others only x_release. None may unwind.
 *   STREAMS    NULL is the context's own stream, which orders with CUDA's legacy stream 0. Work on one stream
 *              runs in order; work on tensors is ordered between streams too, unless NG_CTX_CALLER_ORDERS.
 *   ZERO       In every struct that starts with size, set size to its sizeof; zero means default.
 *   FORK       In a child, old handles are NG_E_LOST to all but x_release; new CPU contexts work.
 */
#ifndef NG_H
#define NG_H
#include <stddef.h>
#include <stdint.h>

#define NG_VERSION 0x010000     /* 0xMMmmpp: 1.0.0. The soname is libng.so.1 */

#ifndef NG_API
# if defined NG_STATIC
#  define NG_API
# elif defined _WIN32
#  define NG_API __declspec(dllimport)
# elif defined __GNUC__
#  define NG_API __attribute__((visibility("default")))
# else
#  define NG_API
# endif
#endif
/* Empty to compilers; read by binding generators and by you. */
#define NG_OPT                  /* may be NULL                                                                       */
#define NG_DEV                  /* points to memory of the context's device                                          */
#define NG_N(count)             /* an array of count                                                                 */
/* No lock, allocation, system call, wait or hook: fit for an audio callback. Of ng_prog_run: on the CPU with threads 1
 * or NG_CTX_NO_THREADS, and without parallel and trace; a refusal allocates its sentence. */
#define NG_RT
#define NG_BLOCKS               /* may wait for a device, a file, a compiler, a hook: not in a frame                 */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ng_ctx    ng_ctx;     /* a device, its memory, its kernel cache        */
typedef struct ng_tensor ng_tensor;  /* typed n-d array: fixed shape, mutable values  */
typedef struct ng_scope  ng_scope;   /* owns the expressions built in it              */
typedef struct ng_expr   ng_expr;    /* immutable node; keeps what it uses alive      */
typedef struct ng_prog   ng_prog;    /* compiled expressions                          */
typedef void            *ng_stream;  /* the native handle, CUstream. The CPU has NULL alone: calls are done on return */

/* ---- status --------------------------------------------------------------------------------- */

typedef int32_t ng_status;
enum ng_status_ {
    NG_OK            = 0,
    NG_NOT_READY     = 1,       /* no error: not yet. Nothing was queued                     */
    NG_SLOW          = 2,       /* it ran, by interim kernels; ng_prog_explain says why      */
    NG_NO_PATH       = 3,       /* of ng_grad: some derivatives are zero                     */
    NG_E_INVALID     = -1,
    NG_E_SHAPE       = -2,
    NG_E_DTYPE       = -3,
    NG_E_UNSUPPORTED = -4,
    NG_E_LIMIT       = -5,
    NG_E_COMPILE     = -6,
    NG_E_NOMEM       = -7,      /* host memory                                               */
    NG_E_DEVMEM      = -8,      /* device memory, after the pressure hook                    */
    NG_E_DEVICE      = -9,      /* the driver said no; err->native has its code              */
    NG_E_LOST        = -10,     /* the device is gone, or closed: only release still works   */
    NG_E_IO          = -11,
    NG_E_BUG         = -12      /* ours: please report                                       */
};
typedef struct ng_error {       /* 256 bytes, for ever                                       */
    ng_status status;
    int32_t   native;           /* CUresult, errno; 0 if none                                */
    int32_t   at;               /* column of a text, from 0; index of an argument; -1: none  */
    char      text[244];        /* UTF-8, terminated; names the ng_tag and the shapes        */
} ng_error;

NG_API const char *ng_status_name(ng_status s);    /* "NG_E_SHAPE"; never NULL       */
NG_API uint32_t    ng_version(void);               /* of the library that runs       */
NG_API const char *ng_api_json(void);              /* this header and its words, for generators */

/* ---- dtypes and shapes ------------------------------------------------------------------------ */

typedef uint32_t ng_dtype;      /* DLPack's: code | bits << 8 | lanes << 16                   */
enum ng_dtype_ {
    NG_BOOL = 0x10806,
    NG_I8   = 0x10800,  NG_I16  = 0x11000,  NG_I32  = 0x12000,  NG_I64  = 0x14000,
    NG_U8   = 0x10801,  NG_U16  = 0x11001,  NG_U32  = 0x12001,  NG_U64  = 0x14001,
    NG_F16  = 0x11002,  NG_BF16 = 0x11004,  NG_F32  = 0x12002,  NG_F64  = 0x14002,
    NG_E4M3 = 0x1080a,  NG_E5M2 = 0x1080c
};
enum ng_rank_ { NG_MAX_NDIM = 32 };
typedef struct ng_shape {       /* no pointers: copy it freely                                */
    uint32_t size;
    ng_dtype dtype;
    int32_t  ndim;              /* 0: a scalar                                                */
    uint32_t flags;             /* NG_STRIDED ...                                             */
    int64_t  dims[32];          /* negative: a length known when run; equal numbers are equal lengths, never broadcast */
    int64_t  strides[32];       /* in elements, any sign                                      */
} ng_shape;
enum ng_shape_flag_ {
    NG_STRIDED  = 1,            /* strides count; without it row-major. Always set when you asked */
    NG_READONLY = 2,
    NG_HOST     = 4,            /* page-locked host memory that the device sees as well       */
    NG_ANY      = 8             /* of a param, of ng_compile_desc.out: strides known when run */
};

/* ---- devices and contexts ------------------------------------------------------------------------ */

typedef struct ng_device_info {
    uint32_t size;
    int32_t  ordinal;           /* ng_ctx_desc.device                                         */
    char     backend[16];       /* "cuda", "cpu"                                              */
    char     name[104];         /* "NVIDIA H200"                                              */
    char     arch[24];          /* "sm_90", "x86-64-v4"                                       */
    char     pci[16];
    uint8_t  uuid[16], luid[8];
    uint64_t memory_bytes, l2_bytes;
    uint32_t units, reserved;   /* multiprocessors, cores                                     */
} ng_device_info;
NG_API uint32_t  ng_device_count(void);
NG_API ng_status ng_device_get(uint32_t i, ng_device_info *out);

/* NODE: the host's memory. CODE: of the device, what kernels are interpreted from and measured in. STAGING: page-locked. */
typedef uint32_t ng_purpose;
enum ng_purpose_ { NG_MEM_NODE, NG_MEM_TENSOR, NG_MEM_WORK, NG_MEM_CODE, NG_MEM_STAGING };
typedef void *(*ng_alloc_fn)(void *user, size_t bytes, size_t align, ng_purpose purpose, ng_stream s);
typedef void  (*ng_free_fn)(void *user, void *ptr, size_t bytes, ng_purpose purpose, ng_stream s);
typedef struct ng_allocator {   /* alloc(s): first used on s; free(s): idle on every stream but s, which may be another */
    uint32_t    size, flags;
    ng_alloc_fn alloc;
    ng_free_fn  free;
    void       *user;
} ng_allocator;

typedef void    (*ng_done_fn)(void *user);
typedef void    (*ng_task_fn)(void *arg, uint32_t i);
typedef struct ng_hooks {
    uint32_t size, flags;
    void    *user;
    void    (*log)(void *user, int32_t level, const char *text);     /* 0 error .. 3 debug                     */
    int32_t (*pressure)(void *user, uint64_t bytes);                 /* freed some? 1: try again               */
    /* Run task(arg, 0) .. task(arg, count - 1), in any order, on any threads; return when all are done. */
    void    (*parallel)(void *user, uint32_t count, ng_task_fn task, void *arg);
    void    (*trace)(void *user, uint32_t begin, const char *tag, ng_stream s);
} ng_hooks;

typedef struct ng_ctx_desc {
    uint32_t size, version;     /* sizeof, NG_VERSION of your header                          */
    const char *backend;        /* "cuda", "cpu"; NULL: the best                              */
    int32_t     device;
    uint32_t    flags;          /* NG_CTX_*                                                   */
    void       *native;         /* use this CUcontext; NULL: the device's primary one         */
    const char *target;         /* "sm_86", "x86-64-v3": compile and save for it; no device is opened */
    const ng_allocator *host, *dev;
    const ng_hooks     *hooks;
    const char *cache_dir;      /* NULL: the user's cache; "": no files                       */
    const char *pack_dirs;      /* as PATH: where kernel packs lie; NULL: beside the library   */
    uint64_t    dev_limit;      /* bytes; 0: none. ng_ctx_limit changes it                    */
    uint32_t    threads;        /* of the CPU: 0 all cores, 1 the caller alone; at most 64 work */
    uint32_t    jit_threads;    /* 0: half the cores                                          */
} ng_ctx_desc;
enum ng_ctx_flag_ {
    NG_CTX_NO_JIT        = 1,   /* shipped kernels only: no compiler of anybody's             */
    NG_CTX_DETERMINISTIC = 2,   /* the same bits on every run of one device, aligned alike, interim or ready */
    NG_CTX_REFERENCE     = 4,   /* unfused, f64, slow: the oracle for tests                   */
    NG_CTX_NO_THREADS    = 8,   /* libng makes no thread: what would run on one runs in ng_ctx_poll */
    NG_CTX_POLL          = 16,  /* done and log run only inside ng_ctx_poll, _sync, _close    */
    NG_CTX_CALLER_ORDERS = 32   /* between streams only your own events order; memory is kept alive, nothing else */
};
typedef struct ng_stats {
    uint32_t size, tensors;
    uint64_t dev_bytes, dev_peak;          /* had from the driver; its highest since the last ng_ctx_trim */
    uint64_t live_bytes, workspace_bytes;  /* of it in tensors; in programs                  */
    uint64_t launches, interim_runs, jit_compiles, jit_usec, cache_hits;
} ng_stats;

NG_API NG_BLOCKS ng_status ng_ctx_create(const ng_ctx_desc *d NG_OPT, ng_ctx **out, ng_error *err NG_OPT);
NG_API NG_RT void          ng_ctx_retain(ng_ctx *c);
NG_API NG_RT void          ng_ctx_release(ng_ctx *c NG_OPT);
/* After NG_OK no thread and no hook of c runs, all memory is back, native may go. NG_NOT_READY: timed out. */
NG_API NG_BLOCKS ng_status ng_ctx_close(ng_ctx *c, uint64_t timeout_ns, ng_error *err NG_OPT);
/* Does what waits: done, log, compiling under NG_CTX_NO_THREADS. NG_NOT_READY: the budget ended first. */
NG_API NG_BLOCKS ng_status ng_ctx_poll(ng_ctx *c, uint64_t budget_ns, ng_error *err NG_OPT);
/* Waits for s (NULL: for all of c), then forgets s: call it before you destroy s. 0: a look; UINT64_MAX: no limit, but
 * NG_NOT_READY at once for a stream that captures where no event tells of what it got before: end its capture first. */
NG_API NG_BLOCKS ng_status ng_ctx_sync(ng_ctx *c, ng_stream s NG_OPT, uint64_t timeout_ns, ng_error *err NG_OPT);
NG_API ng_status ng_ctx_info(const ng_ctx *c, ng_device_info *out);
NG_API ng_status ng_ctx_stats(const ng_ctx *c, ng_stats *out);
NG_API ng_status ng_ctx_limit(ng_ctx *c, uint64_t dev_bytes);
NG_API NG_BLOCKS ng_status ng_ctx_trim(ng_ctx *c, uint64_t keep_bytes);   /* 0: all that is not live goes back */
/* the i-th stream of c's own, made when asked for; 0 is what NULL means */
NG_API ng_stream ng_ctx_stream(ng_ctx *c, uint32_t i);
/* A mark is all that is queued on s so far; it is good as long as c. Host waits for it; stream waits for it. */
NG_API ng_status ng_mark(ng_ctx *c, ng_stream s NG_OPT, uint64_t *out, ng_error *err NG_OPT);
NG_API NG_BLOCKS ng_status ng_mark_wait(ng_ctx *c, uint64_t mark, uint64_t timeout_ns, ng_error *err NG_OPT);
NG_API ng_status ng_mark_after(ng_ctx *c, ng_stream s NG_OPT, uint64_t mark, ng_error *err NG_OPT);

/* ---- tensors --------------------------------------------------------------------------------------- */

NG_API NG_BLOCKS ng_status ng_tensor_create(ng_ctx *c, const ng_shape *d, ng_tensor **out, ng_error *err NG_OPT);
/* bytes: the size of the memory, so that shape and strides can be checked. done is called once, when nothing
 * uses data any more: at the latest within the next ng_ctx_sync, _poll or _close. Never if the call fails. */
NG_API ng_status ng_tensor_wrap(ng_ctx *c, const ng_shape *d, void *data NG_DEV, uint64_t bytes, ng_done_fn done NG_OPT,
                                         void *user NG_OPT, ng_tensor **out, ng_error *err NG_OPT);
/* The tensor over the memory that e, slices, permutes, reshapes and bitcasts of one leaf, shows: to write into a part. */
NG_API ng_status ng_tensor_view(ng_expr *e, ng_tensor **out, ng_error *err NG_OPT);
NG_API NG_RT void ng_tensor_retain(ng_tensor *t);
NG_API NG_RT void ng_tensor_release(ng_tensor *t NG_OPT);
/* Waits for what uses t's memory, calls done; t and every tensor over that memory are NG_E_INVALID from then on. */
NG_API NG_BLOCKS ng_status ng_tensor_close(ng_tensor *t, ng_error *err NG_OPT);
NG_API NG_RT ng_status ng_tensor_shape(const ng_tensor *t, ng_shape *out);
NG_API NG_RT ng_ctx   *ng_tensor_ctx(const ng_tensor *t);                /* borrowed                        */
/* Foreign work on t: READ | WRITE before it is queued on s, DONE after it; 0: data only. data: of element 0; it never
 * changes. The host itself reads or writes an NG_HOST tensor after ng_mark_wait or ng_ctx_sync. */
NG_API NG_RT ng_status ng_tensor_use(ng_tensor *t, ng_stream s NG_OPT, uint32_t how, void **data NG_OPT NG_DEV,
                                     ng_error *err NG_OPT);
enum ng_use_ { NG_USE_READ = 1, NG_USE_WRITE = 2, NG_USE_DONE = 4 };
/* Host memory in and out, done on return. Dense, its axes nested as t's strides nest them: a column-major tensor
 * takes a column-major array. bytes is exact. To queue a copy, wrap host memory and use ng_tensor_copy. */
NG_API NG_BLOCKS ng_status ng_tensor_put(ng_tensor *t, const void *src, uint64_t bytes, ng_error *err NG_OPT);
NG_API NG_BLOCKS ng_status ng_tensor_get(ng_tensor *t, void *dst, uint64_t bytes, ng_error *err NG_OPT);
/* Equal shapes and dtypes, any strides, host or device, contexts may differ; s is of dst's. Queued on s within one device;
 * between two, or the contexts of "cpu" and a device, done on return. */
NG_API NG_BLOCKS ng_status ng_tensor_copy(ng_tensor *dst, ng_tensor *src, ng_stream s NG_OPT, ng_error *err NG_OPT);
NG_API ng_status ng_tensor_fill(ng_tensor *t, ng_stream s NG_OPT, double value, ng_error *err NG_OPT);
struct DLManagedTensorVersioned;   /* dlpack.h 1.x; from_dlpack takes m over unless it fails    */
NG_API ng_status ng_tensor_from_dlpack(ng_ctx *c, struct DLManagedTensorVersioned *m, ng_stream s NG_OPT,
                                       ng_tensor **out, ng_error *err NG_OPT);
NG_API ng_status ng_tensor_to_dlpack(ng_tensor *t, ng_stream s NG_OPT, struct DLManagedTensorVersioned **out,
                                     ng_error *err NG_OPT);

/* ---- expressions ------------------------------------------------------------------------------------- *
 * Building never runs, compiles or allocates on the device. An expression belongs to the youngest scope among
 * its operands, or to you if none has one. A wrong call, or one that finds no memory, returns an invalid expression,
 * never NULL; it spreads to what uses it, and ng_eval or ng_compile reports the first fault. A leaf is read when it is
 * evaluated. x comes first, descriptions last. Arithmetic on f16, bf16, f8 is f32 and its result is f32; integers wrap
 * in their own type; true division, comparisons, sums, argmax and products have result types of their own; only
 * ng_cast narrows, and always rounds (the contract: section NUMBERS of the manual). */

NG_API ng_scope *ng_scope_create(ng_ctx *c NG_OPT, size_t max_nodes);   /* c: whose allocator; 0: 1 << 20 nodes. NULL: a wrong c */
NG_API void      ng_scope_release(ng_scope *s NG_OPT);                  /* what you retained becomes yours      */
NG_API NG_RT void ng_expr_retain(ng_expr *e);
NG_API NG_RT void ng_expr_release(ng_expr *e NG_OPT);
NG_API ng_status ng_expr_shape(const ng_expr *e, ng_shape *out, ng_error *err NG_OPT);
/* ng_parse reads it back */
NG_API ng_status ng_expr_text(const ng_expr *e, char *buf NG_OPT, size_t *bytes, ng_error *err NG_OPT);
NG_API ng_status ng_expr_bind(ng_expr *e, ng_tensor *t, ng_error *err NG_OPT);   /* e is a leaf of t from now on */

NG_API ng_expr *ng_leaf  (ng_scope *s NG_OPT, ng_tensor *t);
NG_API ng_expr *ng_param (ng_scope *s NG_OPT, uint32_t index, const ng_shape *d);
/* a number at this byte of ng_run.scalars */
NG_API ng_expr *ng_scalar(ng_scope *s NG_OPT, ng_dtype t, uint32_t offset);
NG_API ng_expr *ng_length(ng_scope *s NG_OPT, int64_t k);                       /* the length k (< 0), an i64       */
NG_API ng_expr *ng_const (ng_scope *s NG_OPT, ng_dtype t, double value);        /* t 0: weak, as 1.5 in a text      */
NG_API ng_expr *ng_const_int(ng_scope *s NG_OPT, ng_dtype t, int64_t value);   /* t 0: weak, as 2 in a text        */
NG_API ng_expr *ng_iota  (ng_scope *s NG_OPT, const ng_shape *d, int32_t axis);
/* Philox4x32-10 of key at the counter (row-major index, step): the same numbers on every device. Both u64 scalars,
 * read when run; step NULL: 0. Equal key, step, kind and shape are equal numbers. */
typedef uint32_t ng_random_kind;
enum ng_random_kind_ { NG_UNIFORM, NG_NORMAL, NG_BITS };
NG_API ng_expr *ng_random(ng_scope *s NG_OPT, ng_random_kind k, ng_expr *key, ng_expr *step NG_OPT,
                          const ng_shape *d);
/* names "x,eps": the i-th stands for values[i]. Equal parts of texts in one scope are one node.
 *   text    { name = e ; } e                     "m = mean(x, 1); rsqrt(mean((x - m)**2, 1) + eps) * (x - m)"
 *   e       Python's operators in its order: or and not  < <= == != >= >  | ^ &  << >>  + -  * / // % @  - + ~  **
 *   atom    12 | 0.5 | 1e-5 | inf | nan | true | false | name | ( e ) | word(e, ..) | f16(e), a cast;
 *           then any slices: [1:-1, ::2, None, ..., -1]
 * Words are the operations of the block below without ng_, and these; ? may be left out, d is a shape as [2, -1, 2*(-1)+1],
 * fold one of last sum prod min max:
 *   reshape(x, d), where one extent may be _, the rest; broadcast(x, d) permute(x, [1, 0]) concat(x, y, .., axis)
 *   view(x, d, [strides], offset) window(x, axis, start, count) slice_at(x, axis, [start, count], step)
 *   take(x, indices, axis?) put(x, indices, y, axis, fold) scan(x, axis, fold, exclusive?, reverse?)
 *   segment(x, offsets, fold) argsort(x, axis, reverse?) iota(i64?, d, axis?) length(-1) bitcast(x, i32)
 *   random(uniform, f32, d, key, step?), or normal or bits; cast_stochastic(x, f16, bits, key, step?) keep(x)
 *   surrogate(value, path) stop(x), a surrogate without a path; custom_grad(y, dy, [x, ..], [dx, ..])
 *   matmul(a, b, tf32?) conv(x, w, ..) conv_dx(w, dy, d, ..) conv_dw(x, dy, d, ..) with stride = 2, dilate = 1,
 *   pad = [1, 1], pad_lo, pad_hi, groups, pad_value = 0, tf32; pool(x, max, ..) pool_dx(x, dy, max, ..), or mean or l2,
 *   with window, stride, dilate, pad, pad_lo, pad_hi, channel_window, channel_stride, channel_pad, ceil, count_pad
 * Reductions take axes (1, or [0, 2]) and keep them; without axes the result is a scalar. max(x, axes, lowest), of floats,
 * is -inf of nothing. Weak numbers among themselves are Python's: 2**-1 is 0.5, i32(2)**-1 is 0. names win over words.
 * A fault has its column, from 0, in err->at. Numbers are read in the C locale. */
NG_API ng_expr *ng_parse (ng_scope *s NG_OPT, const char *text, const char *names NG_OPT,
                          ng_expr *const *values NG_N(n), uint32_t n);

NG_API ng_expr *ng_cast  (ng_expr *x, ng_dtype t);           /* to nearest even; floats to integers saturate, NaN 0 */
/* bits: of mantissa kept; 0: all that t has. */
NG_API ng_expr *ng_cast_stochastic(ng_expr *x, ng_dtype t, uint32_t bits, ng_expr *key, ng_expr *step NG_OPT);
NG_API ng_expr *ng_bitcast(ng_expr *x, ng_dtype t);
/* Movement: lengths may be unknown. */
NG_API ng_expr *ng_reshape  (ng_expr *x, const int64_t *dims NG_N(n), uint32_t n);      /* one may be NG_REST */
NG_API ng_expr *ng_broadcast(ng_expr *x, const int64_t *dims NG_N(n), uint32_t n);
NG_API ng_expr *ng_permute  (ng_expr *x, const int32_t *axes NG_N(n), uint32_t n);      /* -1: a new axis of 1 */
/* Python's rules, NG_END. Of an unknown length, start and stop must lie inside when run. */
NG_API ng_expr *ng_slice    (ng_expr *x, int32_t axis, int64_t start, int64_t stop, int64_t step);
/* start: an integer scalar read when run, clamped. */
NG_API ng_expr *ng_window   (ng_expr *x, int32_t axis, ng_expr *start, int64_t count);
NG_API ng_expr *ng_concat   (ng_expr *const *x NG_N(n), uint32_t n, int32_t axis);
/* x, numbered row-major, seen through d. */
NG_API ng_expr *ng_view     (ng_expr *x, const ng_shape *d, int64_t offset);
#define NG_REST INT64_MIN
#define NG_END  INT64_MAX
/* Indices are integers; one out of range reads 0 and writes nothing. Of rank r they replace the axis by r axes. */
typedef uint32_t ng_fold;
enum ng_fold_ { NG_FOLD_LAST, NG_FOLD_SUM, NG_FOLD_PROD, NG_FOLD_MIN, NG_FOLD_MAX };
NG_API ng_expr *ng_take  (ng_expr *x, ng_expr *indices, int32_t axis);
/* The transpose of take: x with y, which broadcasts, stored or folded in at indices. In place where alias says so. */
NG_API ng_expr *ng_put   (ng_expr *x, ng_expr *indices, ng_expr *y, int32_t axis, ng_fold how);
/* scan, segment: of x's dtype. y[i] folds x[offsets[i] .. offsets[i+1]) on axis 0; nothing: the identity, LAST 0.
 * Offsets are cut to the axis; a pair that descends bounds nothing. A row that several segments share, as offsets that
 * descend allow, counts in each, but its gradient is that of one: of those that begin last before it, the last. */
NG_API ng_expr *ng_scan  (ng_expr *x, int32_t axis, ng_fold how, uint32_t flags);       /* NG_EXCLUSIVE, NG_REVERSE */
NG_API ng_expr *ng_segment(ng_expr *x, ng_expr *offsets, ng_fold how);
/* i64; stable, NaN last. NG_REVERSE: descending, equal keys in their order, NaN still last. */
NG_API ng_expr *ng_argsort(ng_expr *x, int32_t axis, uint32_t flags);
enum ng_scan_flag_ { NG_EXCLUSIVE = 1, NG_REVERSE = 2 };
/* Named in errors, profiles, ports, by 255 bytes at most; a wall for folding, not for fusion. */
NG_API ng_expr *ng_tag   (ng_expr *x, const char *name);
/* Computed once and stored: fusion may not do it twice. */
NG_API ng_expr *ng_keep  (ng_expr *x);

/* [words: this block is written from jit/ops.def; a test fails when it is stale]
 * Element-wise; operands broadcast as NumPy's. */
NG_API ng_expr *ng_logical_not (ng_expr *x);  /* whether x is zero */
NG_API ng_expr *ng_isfinite    (ng_expr *x);  /* whether x is neither infinite nor NaN */
NG_API ng_expr *ng_isnan       (ng_expr *x);  /* whether x is NaN */
NG_API ng_expr *ng_isinf       (ng_expr *x);  /* whether x is infinite */
NG_API ng_expr *ng_signbit     (ng_expr *x);  /* whether x has a minus sign, -0.0 and NaN included */
NG_API ng_expr *ng_bitwise_not (ng_expr *x);  /* every bit turned; of bool, not */
NG_API ng_expr *ng_popcount    (ng_expr *x);  /* number of bits set */
NG_API ng_expr *ng_neg         (ng_expr *x);  /* x with its sign turned */
NG_API ng_expr *ng_abs         (ng_expr *x);  /* magnitude */
NG_API ng_expr *ng_sign        (ng_expr *x);  /* 1, -1 or, of zeros, 0 */
NG_API ng_expr *ng_floor       (ng_expr *x);  /* the greatest whole number not above x */
NG_API ng_expr *ng_ceil        (ng_expr *x);  /* the least whole number not below x */
NG_API ng_expr *ng_trunc       (ng_expr *x);  /* the whole number next to x towards zero */
NG_API ng_expr *ng_rint        (ng_expr *x);  /* the nearest whole number, of two the even one */
NG_API ng_expr *ng_square      (ng_expr *x);  /* x * x */
NG_API ng_expr *ng_reciprocal  (ng_expr *x);  /* 1 / x */
NG_API ng_expr *ng_degrees     (ng_expr *x);  /* radians as degrees */
NG_API ng_expr *ng_radians     (ng_expr *x);  /* degrees as radians */
NG_API ng_expr *ng_sqrt        (ng_expr *x);  /* square root */
NG_API ng_expr *ng_rsqrt       (ng_expr *x);  /* 1 / sqrt(x), rounded twice */
NG_API ng_expr *ng_cbrt        (ng_expr *x);  /* cube root */
NG_API ng_expr *ng_exp         (ng_expr *x);  /* e to the power x */
NG_API ng_expr *ng_exp2        (ng_expr *x);  /* 2 to the power x */
NG_API ng_expr *ng_expm1       (ng_expr *x);  /* exp(x) - 1, precise near 0 */
NG_API ng_expr *ng_log         (ng_expr *x);  /* natural logarithm */
NG_API ng_expr *ng_log2        (ng_expr *x);  /* logarithm to base 2 */
NG_API ng_expr *ng_log10       (ng_expr *x);  /* logarithm to base 10 */
NG_API ng_expr *ng_log1p       (ng_expr *x);  /* log(1 + x), precise near 0 */
NG_API ng_expr *ng_safelog     (ng_expr *x);  /* log(x), -50 where x is not above 0 */
NG_API ng_expr *ng_sin         (ng_expr *x);  /* sine */
NG_API ng_expr *ng_cos         (ng_expr *x);  /* cosine */
NG_API ng_expr *ng_tan         (ng_expr *x);  /* tangent */
NG_API ng_expr *ng_asin        (ng_expr *x);  /* arc sine */
NG_API ng_expr *ng_acos        (ng_expr *x);  /* arc cosine */
NG_API ng_expr *ng_atan        (ng_expr *x);  /* arc tangent */
NG_API ng_expr *ng_sinpi       (ng_expr *x);  /* sin(pi x) */
NG_API ng_expr *ng_cospi       (ng_expr *x);  /* cos(pi x) */
NG_API ng_expr *ng_sinc        (ng_expr *x);  /* sin(pi x) / (pi x) */
NG_API ng_expr *ng_sinh        (ng_expr *x);  /* hyperbolic sine */
NG_API ng_expr *ng_cosh        (ng_expr *x);  /* hyperbolic cosine */
NG_API ng_expr *ng_tanh        (ng_expr *x);  /* hyperbolic tangent */
NG_API ng_expr *ng_tanh2       (ng_expr *x);  /* (4**x - 1) / (4**x + 1), without overflow inside */
NG_API ng_expr *ng_asinh       (ng_expr *x);  /* inverse hyperbolic sine */
NG_API ng_expr *ng_acosh       (ng_expr *x);  /* inverse hyperbolic cosine */
NG_API ng_expr *ng_atanh       (ng_expr *x);  /* inverse hyperbolic tangent */
NG_API ng_expr *ng_erf         (ng_expr *x);  /* error function */
NG_API ng_expr *ng_erfc        (ng_expr *x);  /* 1 - erf(x), precise where it is small */
NG_API ng_expr *ng_normal_cdf  (ng_expr *x);  /* how much of the standard normal distribution lies below x */
NG_API ng_expr *ng_relu        (ng_expr *x);  /* x above zero, else 0; keeps NaN */
NG_API ng_expr *ng_relu6       (ng_expr *x);  /* x within 0 and 6 */
NG_API ng_expr *ng_sigmoid     (ng_expr *x);  /* logistic curve, 0 to 1 */
NG_API ng_expr *ng_sigmoid2    (ng_expr *x);  /* logistic curve to base 2 */
NG_API ng_expr *ng_log_sigmoid (ng_expr *x);  /* log(sigmoid(x)) */
NG_API ng_expr *ng_hard_sigmoid(ng_expr *x);  /* a ramp from 0 at -3 to 1 at 3 */
NG_API ng_expr *ng_hard_swish  (ng_expr *x);  /* x * hard_sigmoid(x) */
NG_API ng_expr *ng_silu        (ng_expr *x);  /* x * sigmoid(x), swish */
NG_API ng_expr *ng_gelu        (ng_expr *x);  /* x * normal_cdf(x) */
NG_API ng_expr *ng_gelu_tanh   (ng_expr *x);  /* gelu by tanh; its last digits go where it dies away */
NG_API ng_expr *ng_softplus    (ng_expr *x);  /* log(1 + exp(x)), without overflow inside */
NG_API ng_expr *ng_softsign    (ng_expr *x);  /* x / (1 + abs(x)) */
NG_API ng_expr *ng_elu         (ng_expr *x);  /* x above zero, else exp(x) - 1 */
NG_API ng_expr *ng_selu        (ng_expr *x);  /* elu scaled so that variance settles at 1 */
NG_API ng_expr *ng_mish        (ng_expr *x);  /* x * tanh(softplus(x)) */

NG_API ng_expr *ng_add          (ng_expr *x, ng_expr *y);  /* sum */
NG_API ng_expr *ng_sub          (ng_expr *x, ng_expr *y);  /* difference */
NG_API ng_expr *ng_mul          (ng_expr *x, ng_expr *y);  /* product */
NG_API ng_expr *ng_div          (ng_expr *x, ng_expr *y);  /* true quotient; of integers a float */
NG_API ng_expr *ng_floor_div    (ng_expr *x, ng_expr *y);  /* floor of the quotient; of integers by zero 0 */
NG_API ng_expr *ng_rem          (ng_expr *x, ng_expr *y);  /* remainder with y's sign, as Python's %; of integers by zero 0 */
NG_API ng_expr *ng_fmod         (ng_expr *x, ng_expr *y);  /* remainder with x's sign, as C's; of integers by zero 0 */
NG_API ng_expr *ng_pow          (ng_expr *x, ng_expr *y);  /* x to the power y; of integers wrapped, to negative powers 0 but for 1 and -1 */
NG_API ng_expr *ng_maximum      (ng_expr *x, ng_expr *y);  /* the greater; NaN if either is */
NG_API ng_expr *ng_minimum      (ng_expr *x, ng_expr *y);  /* the lesser; NaN if either is */
NG_API ng_expr *ng_fmax         (ng_expr *x, ng_expr *y);  /* the greater; the other one where one is NaN */
NG_API ng_expr *ng_fmin         (ng_expr *x, ng_expr *y);  /* the lesser; the other one where one is NaN */
NG_API ng_expr *ng_atan2        (ng_expr *x, ng_expr *y);  /* angle of the point with ordinate x and abscissa y */
NG_API ng_expr *ng_hypot        (ng_expr *x, ng_expr *y);  /* length of the vector (x, y), without overflow inside */
NG_API ng_expr *ng_copysign     (ng_expr *x, ng_expr *y);  /* magnitude of x with the sign of y */
NG_API ng_expr *ng_nextafter    (ng_expr *x, ng_expr *y);  /* the neighbour of x on the way to y */
NG_API ng_expr *ng_logaddexp    (ng_expr *x, ng_expr *y);  /* log(exp(x) + exp(y)), without overflow inside */
NG_API ng_expr *ng_heaviside    (ng_expr *x, ng_expr *y);  /* 0 below zero, 1 above, y at it */
NG_API ng_expr *ng_xlogy        (ng_expr *x, ng_expr *y);  /* x * log(y), 0 where x is */
NG_API ng_expr *ng_less         (ng_expr *x, ng_expr *y);  /* whether x is less than y */
NG_API ng_expr *ng_less_equal   (ng_expr *x, ng_expr *y);  /* whether x is at most y */
NG_API ng_expr *ng_greater      (ng_expr *x, ng_expr *y);  /* whether x is greater than y */
NG_API ng_expr *ng_greater_equal(ng_expr *x, ng_expr *y);  /* whether x is at least y */
NG_API ng_expr *ng_equal        (ng_expr *x, ng_expr *y);  /* whether x and y are equal */
NG_API ng_expr *ng_not_equal    (ng_expr *x, ng_expr *y);  /* whether x and y differ */
NG_API ng_expr *ng_logical_and  (ng_expr *x, ng_expr *y);  /* whether both are not zero */
NG_API ng_expr *ng_logical_or   (ng_expr *x, ng_expr *y);  /* whether one or both are not zero */
NG_API ng_expr *ng_logical_xor  (ng_expr *x, ng_expr *y);  /* whether exactly one is not zero */
NG_API ng_expr *ng_bitwise_and  (ng_expr *x, ng_expr *y);  /* bits set in both */
NG_API ng_expr *ng_bitwise_or   (ng_expr *x, ng_expr *y);  /* bits set in one or both */
NG_API ng_expr *ng_bitwise_xor  (ng_expr *x, ng_expr *y);  /* bits set in exactly one */
NG_API ng_expr *ng_shift_left   (ng_expr *x, ng_expr *y);  /* bits moved up by y; 0 for counts of the width and more or negative ones */
NG_API ng_expr *ng_shift_right  (ng_expr *x, ng_expr *y);  /* bits moved down by y, signs drawn in; 0 for negative counts */

NG_API ng_expr *ng_where(ng_expr *c, ng_expr *x, ng_expr *y);  /* x where c holds, else y */
NG_API ng_expr *ng_clip (ng_expr *x, ng_expr *y, ng_expr *z);  /* x within y and z, z where they cross; NaN if any is */
NG_API ng_expr *ng_fma  (ng_expr *x, ng_expr *y, ng_expr *z);  /* x * y + z rounded once */
NG_API ng_expr *ng_lerp (ng_expr *x, ng_expr *y, ng_expr *z);  /* from x at z = 0 to y at z = 1 */
/* Reductions over the axes whose bits are set; NG_KEEP leaves them as 1. argmin and argmax number what they choose from
 * in row-major order, also over several axes. */
typedef uint64_t ng_axes;
#define NG_ALL (~(ng_axes)0)
enum ng_axis_ { NG_AXIS_0 = 1, NG_AXIS_1 = 2, NG_AXIS_2 = 4, NG_AXIS_3 = 8, NG_AXIS_4 = 16 };
enum ng_reduce_flag_ { NG_KEEP = 1 };
NG_API ng_expr *ng_sum          (ng_expr *x, ng_axes axes, uint32_t flags);  /* sum */
NG_API ng_expr *ng_prod         (ng_expr *x, ng_axes axes, uint32_t flags);  /* product */
NG_API ng_expr *ng_min          (ng_expr *x, ng_axes axes, uint32_t flags);  /* the least; NaN if there is one */
NG_API ng_expr *ng_max          (ng_expr *x, ng_axes axes, uint32_t flags);  /* the greatest; NaN if there is one */
NG_API ng_expr *ng_argmin       (ng_expr *x, ng_axes axes, uint32_t flags);  /* where the first least is, or the first NaN */
NG_API ng_expr *ng_argmax       (ng_expr *x, ng_axes axes, uint32_t flags);  /* where the first greatest is, or the first NaN */
NG_API ng_expr *ng_any          (ng_expr *x, ng_axes axes, uint32_t flags);  /* whether one is not zero */
NG_API ng_expr *ng_all          (ng_expr *x, ng_axes axes, uint32_t flags);  /* whether none is zero */
NG_API ng_expr *ng_mean         (ng_expr *x, ng_axes axes, uint32_t flags);  /* sum by count */
NG_API ng_expr *ng_var          (ng_expr *x, ng_axes axes, uint32_t flags);  /* mean of the squared distance to the mean */
NG_API ng_expr *ng_std          (ng_expr *x, ng_axes axes, uint32_t flags);  /* square root of var */
NG_API ng_expr *ng_norm         (ng_expr *x, ng_axes axes, uint32_t flags);  /* square root of the sum of squares */
NG_API ng_expr *ng_logsumexp    (ng_expr *x, ng_axes axes, uint32_t flags);  /* log of the sum of exp, without overflow inside */
NG_API ng_expr *ng_count_nonzero(ng_expr *x, ng_axes axes, uint32_t flags);  /* how many are not zero */
/* Of x's shape, each over the axes whose bits are set. */
NG_API ng_expr *ng_softmax    (ng_expr *x, ng_axes axes);  /* exp(x) by its sum */
NG_API ng_expr *ng_log_softmax(ng_expr *x, ng_axes axes);  /* x - logsumexp(x) */
/* [end of words] */

typedef struct ng_matmul_desc {
    uint32_t size, flags;       /* NG_TF32                                                     */
} ng_matmul_desc;
enum ng_product_flag_ { NG_TF32 = 1 };
typedef struct ng_conv_desc {   /* entry i is spatial axis i of x; a 0 in stride, dilate, groups is 1 */
    uint32_t size, flags;       /* NG_TF32                                                     */
    int32_t  stride[3], dilate[3], pad_lo[3], pad_hi[3];
    int32_t  groups, reserved;
    double   pad_value;         /* cast to x's dtype                                           */
} ng_conv_desc;
typedef uint32_t ng_pool_kind;
enum ng_pool_kind_ { NG_POOL_MAX, NG_POOL_MEAN, NG_POOL_L2 };
typedef struct ng_pool_desc {   /* a 0 in window is 1; in stride, the window                   */
    uint32_t     size, flags;   /* NG_POOL_CEIL, NG_POOL_COUNT_PAD                             */
    ng_pool_kind kind;
    int32_t      window[3], stride[3], dilate[3], pad_lo[3], pad_hi[3];     /* a window of padding alone: MAX the least, else 0 */
    int32_t      channel_window, channel_stride, channel_pad;   /* over feature maps            */
} ng_pool_desc;
enum ng_pool_flag_ { NG_POOL_CEIL = 1, NG_POOL_COUNT_PAD = 2 };

/* Products give their accumulator: f32 of f16, bf16, f8 and f32, i32 of 8-bit integers, f64 of f64. Casts and per-channel
 * scales of operands, and element-wise work and reductions of the result, are fused into the kernel.
 * ng_matmul: leading axes are a batch, and broadcast.
 * Convolution is correlation; logical order [n, c, (d, h,) w] and [k, c/groups, (t, r,) s]; NCHW, NHWC, CHWN: strides. */
NG_API ng_expr *ng_matmul (ng_expr *a, ng_expr *b, const ng_matmul_desc *d NG_OPT);
NG_API ng_expr *ng_conv   (ng_expr *x, ng_expr *w, const ng_conv_desc *d NG_OPT);
/* Also the transposed convolution. */
NG_API ng_expr *ng_conv_dx(ng_expr *w, ng_expr *dy, const ng_shape *x, const ng_conv_desc *d NG_OPT);
NG_API ng_expr *ng_conv_dw(ng_expr *x, ng_expr *dy, const ng_shape *w, const ng_conv_desc *d NG_OPT);
NG_API ng_expr *ng_pool   (ng_expr *x, const ng_pool_desc *d);
NG_API ng_expr *ng_pool_dx(ng_expr *x, ng_expr *dy, const ng_pool_desc *d);

/* dx[i] = sum over j of dy[j] . d y[j] / d wrt[i], of wrt's shape and dtype; dy NULL: ones. wrt: leaves, params, tags.
 * What it returns can be differentiated again. The contract: section DERIVATIVES of the manual. */
NG_API ng_status ng_grad (ng_expr *const *y NG_N(ny), ng_expr *const *dy NG_OPT NG_N(ny), uint32_t ny,
                                   ng_expr *const *wrt NG_N(n), ng_expr **dx NG_N(n), uint32_t n, ng_error *err NG_OPT);
/* The value of value, the derivative of path; NULL: none. */
NG_API ng_expr *ng_surrogate(ng_expr *value, ng_expr *path NG_OPT);
/* y, but ng_grad gives x[i] the expression dx[i], in which dy, a param of y's shape, stands for the cotangent. Neither
 * y nor an x may use dy (NG_E_INVALID): it needs an index of its own, since params of one index and shape are one. */
NG_API ng_expr *ng_custom_grad(ng_expr *y, ng_expr *dy, ng_expr *const *x NG_N(n), ng_expr *const *dx NG_N(n),
                               uint32_t n);
NG_API ng_expr *ng_subst (ng_expr *e, ng_expr *const *from NG_N(n), ng_expr *const *to NG_N(n), uint32_t n);

/* ---- evaluation ------------------------------------------------------------------------------------------ *
 * The result is as if every input were read before any output is written, however they overlap. Outputs may not
 * overlap each other (by elements). An output has its expression's dtype, shape broadcast: anything else is an error. */

/* Where out[i] is NULL a new row-major tensor is put there; otherwise out[i] is written. NG_E_INVALID: s is capturing. */
NG_API NG_BLOCKS ng_status ng_eval(ng_ctx *c, ng_stream s NG_OPT, ng_expr *const *e NG_N(n),
                                   ng_tensor **out NG_N(n), uint32_t n, ng_error *err NG_OPT);

typedef struct ng_compile_desc {
    uint32_t size, flags;                     /* NG_PROG_*                                                */
    const int32_t *alias         NG_N(n);     /* out[i] will lie in args[alias[i]], whole or in any part; -1: in none */
    const ng_shape *const *out   NG_N(n);     /* layouts the outputs will have (NG_ANY too); NULL: row-major */
    const int64_t *length_max    NG_N(nlength);  /* the largest value of length -1 - k                     */
    uint32_t nlength, runs;                   /* runs under way at once without a workspace of yours; 0: 1 */
    uint64_t workspace_max;                   /* compute again rather than store more; 0: no limit         */
    ng_prog *workspace_of NG_OPT;             /* use that program's, grown here if need be: their runs are ordered */
} ng_compile_desc;
enum ng_prog_flag_ {
    NG_PROG_EARLY = 1,          /* each output is written as soon as it can be, and ng_tensor_use waits for it alone */
    NG_PROG_TUNE  = 2           /* measures which kernels are fastest here for the largest lengths, and remembers it for later
                                 * programs, where cache_dir allows in files. On GPUs, for products, in the background */
};
/* Returns at once with a program that runs; full speed comes by itself. */
NG_API ng_status ng_compile(ng_ctx *c, const ng_compile_desc *d NG_OPT, ng_expr *const *e NG_N(n), uint32_t n,
                            ng_prog **out, ng_error *err NG_OPT);
/* NG_OK: as fast as it gets, for every length and alignment. NG_NOT_READY: timed out. NG_CTX_NO_THREADS: works here. */
NG_API NG_BLOCKS ng_status ng_prog_wait(ng_prog *p, uint64_t timeout_ns, ng_error *err NG_OPT);
typedef struct ng_run {
    uint32_t size, flags;                     /* NG_RUN_*                                                  */
    uint32_t nargs, nout;
    ng_tensor *const *args NG_N(nargs);       /* args[i] is ignored where the program has no param i       */
    ng_tensor *const *out  NG_N(nout);        /* NULL: not wanted this time                                */
    const void *scalars;                      /* what ng_scalar reads; copied                              */
    const int64_t *lengths NG_N(nlength);     /* NULL: from the shapes; else longer tensors lend their heads */
    uint32_t scalar_bytes, nlength;
    ng_tensor *workspace NG_OPT;              /* of ng_prog_info.workspace_bytes, from a multiple of 64 on; NULL: the program's own */
} ng_run;
/* You vouch that memory overlaps only as compiled, where addresses cannot tell. Without it outputs whose memory interleaves,
 * as columns of one matrix, are compared pair by pair in every run. */
enum ng_run_flag_ { NG_RUN_DISTINCT = 1 };
/* Never compiles, allocates, locks or waits: fit for a frame, and for graph capture. Strides and overlaps must be as
 * compiled. NG_SLOW: ran, interim. NG_NOT_READY: on the CPU, no workspace is free, or another run has yours (on a GPU
 * runs queue behind each other); or capturing before ng_prog_wait said NG_OK. */
NG_API NG_RT ng_status ng_prog_run(ng_prog *p, ng_stream s NG_OPT, const ng_run *r, ng_error *err NG_OPT);

typedef struct ng_prog_info {
    uint32_t size, nargs, nout, nlength;
    uint32_t scalar_bytes, kernels;
    uint64_t workspace_bytes, code_bytes;     /* at length_max                                             */
    uint64_t moved_bytes, flops, runs;        /* of one run at length_max; runs so far                     */
    char     arch[24];
} ng_prog_info;
NG_API ng_status ng_prog_get_info(const ng_prog *p, ng_prog_info *out, ng_error *err NG_OPT);
/* Argument i, then output i - nargs: its shape and its ng_tag ("" if none; as long as p lives). */
NG_API ng_status ng_prog_port(const ng_prog *p, uint32_t i, ng_shape *out NG_OPT, const char **name NG_OPT,
                              ng_error *err NG_OPT);
/* JSON into buf. *bytes: in, its room; out, what is needed. buf NULL: NG_OK and the size; too little room: NG_E_LIMIT. */
NG_API ng_status ng_prog_explain(const ng_prog *p, char *buf NG_OPT, size_t *bytes, ng_error *err NG_OPT);
/* A saved program is a graph, checked when loaded: any device, any later 1.x, hostile bytes. NG_CODE: its kernels too. */
NG_API ng_status ng_prog_save(const ng_prog *p, uint32_t flags, void *buf NG_OPT, size_t *bytes,
                              ng_error *err NG_OPT);
NG_API ng_status ng_prog_load(ng_ctx *c, uint32_t flags, const void *buf, size_t bytes, ng_prog **out,
                              ng_error *err NG_OPT);
enum ng_code_flag_ { NG_CODE = 1 };           /* loading: you trust the machine code in buf                */
NG_API NG_RT void ng_prog_retain(ng_prog *p);
NG_API NG_RT void ng_prog_release(ng_prog *p NG_OPT);

/* Later, by addition: imported memory and fences (Vulkan, D3D12), ng_comm (NCCL), ng_attention, complex, ng_recur. */

#ifdef __cplusplus
}
#endif
#endif /* NG_H */
