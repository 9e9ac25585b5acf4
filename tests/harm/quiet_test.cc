// ng_prog_run and the other NG_RT functions are silent: no allocation, no lock, no system call but those that wake a pool; a filter traps each.
#include "tests/harm/watched_heap.h"

#include <ng.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <dirent.h>
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constinit std::atomic<int> locks{0}, calls{0}, last_call{0};

enum class Filter { All, ButWakes };
// System calls but the exit are answered by SIGSYS: all of this thread; with ButWakes of every thread all but futex, by which the pool is woken
// and sleeps, and sched_yield, by which a caller lets workers that came end their tasks. False: this kernel has no such filter.
bool trap_system_calls(Filter which = Filter::All)
{
    const bool wakes = which == Filter::ButWakes;
    const unsigned futex = wakes ? SYS_futex : SYS_exit_group, yield = wakes ? SYS_sched_yield : SYS_exit_group;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, futex, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, yield, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {uint16_t(std::size(filter)), filter};
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) { calls++, last_call = info->si_syscall; };
    if (sigaction(SIGSYS, &action, nullptr) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return false;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, wakes ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program) == 0;
}

// Threads of this process but this one, once all of them sleep: who has just begun is still being set up, by system calls.
int sleepers()
{
    for (int asleep = -1, others = 0;; usleep(1000)) {
        DIR* const tasks = opendir("/proc/self/task");
        for (others = -1, asleep = 0; const dirent* one = readdir(tasks);) {
            char path[300], line[100] = "";
            if (one->d_name[0] == '.') continue;
            std::snprintf(path, sizeof path, "/proc/self/task/%s/stat", one->d_name);
            if (std::FILE* const file = std::fopen(path, "r")) (void)!std::fgets(line, sizeof line, file), std::fclose(file);
            const char* const state = std::strrchr(line, ')');
            others++, asleep += state && state[2] == 'S';
        }
        closedir(tasks);
        if (asleep == others) return others;
    }
}

// ---- what is run

ng_error error;
ng_ctx*  c;

struct Size { int64_t rows, columns, height, width; };   // height x width: the columns as a picture
constexpr Size SMALL = {48, 40, 8, 5}, LARGE = {1024, 1024, 32, 32}, STREAM = {4096, 4096, 64, 64};
Size size = SMALL;

[[noreturn]] __attribute__((format(printf, 1, 2))) void broken(const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    std::puts("");
    std::fflush(stdout);
    _exit(1);
}
ng_shape shape(ng_dtype t, int64_t rows, int64_t columns)
{
    ng_shape d{};
    d.size = sizeof d, d.dtype = t, d.ndim = columns ? 2 : 1, d.dims[0] = rows, d.dims[1] = columns;
    return d;
}
ng_tensor* tensor(ng_shape d)
{
    ng_tensor* t = nullptr;
    d.flags = 0, d.size = sizeof d;
    for (int a = 0; a < d.ndim; a++) d.dims[a] = d.dims[a] < 0 ? size.rows : d.dims[a];
    void* data = nullptr;
    if (ng_tensor_create(c, &d, &t, &error) != NG_OK || ng_tensor_use(t, nullptr, NG_USE_WRITE, &data, &error) != NG_OK) broken("%s", error.text);
    // Not by ng_tensor_fill: that would start the pool, which ng_compile has to.
    const int64_t count = d.dims[0] * (d.ndim > 1 ? d.dims[1] : 1) * (d.ndim > 2 ? d.dims[2] * d.dims[3] : 1);
    if (d.dtype == NG_F32) std::fill_n(static_cast<float*>(data), d.ndim ? count : 1, 1.f);
    if (d.dtype == NG_I32) std::fill_n(static_cast<int32_t*>(data), count, 1);
    return t;
}

struct Inputs {
    ng_scope* s;
    ng_expr *x, *y, *i, *u, *k;       // f32 [rows, columns] twice, i32 [9], f32 [-1, columns] of any strides, a u64 at byte 0
};
ng_expr* text(const Inputs& in, const char* source)
{
    ng_expr* const values[] = {in.x, in.y, in.i, in.u, in.k};
    return ng_parse(in.s, source, "x,y,i,u,k", values, 5);
}
ng_expr* picture(const Inputs& in, ng_expr* e, int64_t channels)
{
    const int64_t dims[] = {size.rows / channels, channels, size.height, size.width};
    (void)in;
    return ng_reshape(e, dims, 4);
}
ng_shape filters(int64_t side)
{
    ng_shape w = shape(NG_F32, 4, 4);
    w.ndim = 4, w.dims[2] = w.dims[3] = side;
    return w;
}
ng_expr* pool(const Inputs& in, bool back)
{
    ng_pool_desc d{};
    d.size = sizeof d, d.window[0] = d.window[1] = 2;
    ng_expr *x = picture(in, in.x, 4), *y = ng_pool(x, &d);
    return back ? ng_pool_dx(x, y, &d) : y;
}
// Of x and y, a column of y for each of x's rows, both as `type`.
ng_expr* product(const Inputs& in, ng_dtype type)
{
    const int32_t axes[] = {1, 0};
    return ng_matmul(ng_cast(in.x, type), ng_permute(ng_cast(in.y, type), axes, 2), nullptr);
}

struct Case {
    const char* name;
    ng_expr* (*build)(const Inputs& in);
};
const Case CASES[] = {
    {"element-wise", [](const Inputs& in) { return text(in, "exp(x) * y + 1"); }},
    {"rows", [](const Inputs& in) { return text(in, "m = mean(x, 1); rsqrt(mean((x - m)**2, 1) + 1e-5) * (x - m)"); }},
    {"columns", [](const Inputs& in) { return text(in, "softmax(x, [0])"); }},
    {"everything", [](const Inputs& in) { return text(in, "max(x * y)"); }},
    {"an unknown length, any strides", [](const Inputs& in) { return text(in, "sum(u, 0) * 2"); }},
    {"movement", [](const Inputs& in) { return text(in, "concat(x[::2], y[1:, ::-1], 0)"); }},
    {"narrow types", [](const Inputs& in) { return text(in, "f32(f16(x)) + f32(e4m3(y))"); }},
    {"indices", [](const Inputs& in) { return ng_put(in.x, in.i, ng_take(in.y, in.i, 0), 0, NG_FOLD_SUM); }},
    {"scan", [](const Inputs& in) { return ng_scan(in.x, 0, NG_FOLD_SUM, 0); }},
    {"argsort", [](const Inputs& in) { return ng_argsort(in.x, 1, NG_REVERSE); }},
    {"segment", [](const Inputs& in) { return ng_segment(in.x, in.i, NG_FOLD_MAX); }},
    {"random", [](const Inputs& in) { const ng_shape d = shape(NG_F32, size.rows, size.columns); return ng_random(in.s, NG_NORMAL, in.k, nullptr, &d); }},
    {"matmul", [](const Inputs& in) { return ng_relu(product(in, NG_F32)); }},
    {"matmul of f64", [](const Inputs& in) { return product(in, NG_F64); }},
    {"matmul of bf16", [](const Inputs& in) { return product(in, NG_BF16); }},
    {"matmul of bytes", [](const Inputs& in) { return product(in, NG_I8); }},
    {"conv", [](const Inputs& in) { return ng_conv(picture(in, in.x, 4), picture(in, ng_mul(in.y, in.y), 4), nullptr); }},
    {"conv_dw", [](const Inputs& in) { const ng_shape w = filters(1); return ng_conv_dw(picture(in, in.x, 4), picture(in, in.y, 4), &w, nullptr); }},
    {"conv_dx", [](const Inputs& in) {
        ng_shape x = filters(0);
        x.dims[0] = size.rows / 4, x.dims[2] = size.height, x.dims[3] = size.width;
        const int64_t dims[] = {4, 4, 1, 1};
        return ng_conv_dx(ng_reshape(text(in, "y[:4, :4]"), dims, 4), picture(in, in.x, 4), &x, nullptr);
    }},
    {"pool", [](const Inputs& in) { return pool(in, false); }},
    {"pool_dx", [](const Inputs& in) { return pool(in, true); }},
};
const Case STREAMING = {"a stream of 64 MiB", [](const Inputs& in) { return text(in, "x * 2 + y"); }};

Inputs inputs(ng_scope* s)
{
    const ng_shape d = shape(NG_F32, size.rows, size.columns), i = shape(NG_I32, 9, 0);
    ng_shape u = shape(NG_F32, -1, size.columns);
    u.flags = NG_ANY;
    return {s, ng_param(s, 0, &d), ng_param(s, 1, &d), ng_param(s, 2, &i), ng_param(s, 3, &u), ng_scalar(s, NG_U64, 0)};
}

void open_context(uint32_t flags, uint32_t threads = 1)
{
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.cache_dir = "", d.flags = flags, d.threads = threads;
    if (ng_ctx_create(&d, &c, &error) != NG_OK) broken("%s", error.text);
}

// The end of a child: what was heard while it had to be silent.
[[noreturn]] void tell(uint64_t allocations)
{
    // Behind the filter nothing can be printed: the parent reads the status.
    _exit(calls ? 10 + (last_call < 200 ? last_call.load() : 0) : allocations ? 3 : locks ? 4 : 0);
}

struct Way {
    const char* name;
    uint32_t    flags = 0, threads = 1;
    bool        lends_workspace = false, is_pooled = false;
};
const Way WAYS[] = {{"threads 1"}, {"NG_CTX_NO_THREADS", NG_CTX_NO_THREADS, 0}, {"a workspace of ours", NG_CTX_DETERMINISTIC, 1, true}};
const Way POOLED[] = {{"threads 2", 0, 2, false, true}, {"threads 3 and a workspace of ours", NG_CTX_DETERMINISTIC, 3, true, true}};

// The first run, too, makes no sound.
void run_case(const Case& one, const Way& way)
{
    open_context(way.flags, way.threads);
    ng_scope* s = ng_scope_create(c, 0);
    const Inputs in = inputs(s);
    ng_expr* e = one.build(in);
    const int64_t most = size.rows + 24;
    ng_compile_desc d{};
    d.size = sizeof d, d.length_max = &most, d.nlength = 1;
    ng_prog* p = nullptr;
    if (ng_compile(c, &d, &e, 1, &p, &error) != NG_OK || ng_prog_wait(p, UINT64_MAX, &error) != NG_OK) broken("%s: %s", one.name, error.text);
    ng_prog_info info{};
    info.size = sizeof info;
    ng_shape out_shape{};
    out_shape.size = sizeof out_shape;
    if (ng_prog_get_info(p, &info, &error) != NG_OK || ng_prog_port(p, info.nargs, &out_shape, nullptr, &error) != NG_OK) broken("%s: %s", one.name, error.text);
    const ng_shape whole = shape(NG_F32, size.rows, size.columns);
    ng_tensor* args[] = {tensor(whole), tensor(whole), tensor(shape(NG_I32, 9, 0)), tensor(whole)};
    ng_tensor* out[] = {tensor(out_shape)};
    const uint64_t key = 7;
    const int64_t length = size.rows;
    ng_run r{};
    r.size = sizeof r, r.nargs = 4, r.args = args, r.nout = 1, r.out = out, r.scalars = &key, r.scalar_bytes = sizeof key, r.lengths = &length, r.nlength = 1;
    if (way.lends_workspace) r.workspace = tensor(shape(NG_U8, int64_t(info.workspace_bytes), 0));
    if (way.is_pooled && sleepers() != int(way.threads) - 1) _exit(8);
    if (!trap_system_calls(way.is_pooled ? Filter::ButWakes : Filter::All)) _exit(5);
    harm::heap::arm();
    locks = 0;
    ng_status status = NG_OK;
    for (int i = 0; i < 3 && status == NG_OK; i++) status = ng_prog_run(p, nullptr, &r, &error);
    const uint64_t allocations = harm::heap::disarm();
    if (status != NG_OK) _exit(6);
    tell(allocations);
}

// Of a refusal nothing is heard but its sentence, which takes memory.
void run_refused()
{
    open_context(0);
    ng_scope* s = ng_scope_create(c, 0);
    ng_expr* e = text(inputs(s), "exp(x) * y");
    ng_prog* p = nullptr;
    if (ng_compile(c, nullptr, &e, 1, &p, &error) != NG_OK) broken("%s", error.text);
    ng_tensor *args[] = {tensor(shape(NG_F32, 40, 48)), tensor(shape(NG_F32, 48, 40))}, *out[] = {tensor(shape(NG_F32, 48, 40))};
    ng_run r{};
    r.size = sizeof r, r.nargs = 2, r.args = args, r.nout = 1, r.out = out;
    if (ng_prog_run(p, nullptr, &r, &error) != NG_E_SHAPE) broken("not refused");    // the first exception of a process sets its runtime up
    if (!trap_system_calls()) _exit(5);
    locks = 0;
    if (ng_prog_run(p, nullptr, &r, &error) != NG_E_SHAPE) _exit(6);
    tell(0);
}

// The others that are fit for an audio callback.
void run_others(bool lasts)
{
    open_context(0);
    ng_tensor *t = tensor(shape(NG_F32, 4, 4)), *made = nullptr;
    ng_expr* e = ng_const(nullptr, NG_F32, 1);
    for (int i = 0; i < 1000; i++) {                     // a long chain, of which we hold the last node
        ng_expr* next = ng_add(e, ng_leaf(nullptr, t));
        ng_expr_release(e), e = next;
    }
    ng_prog* p = nullptr;
    if (ng_compile(c, nullptr, &e, 1, &p, &error) != NG_OK || ng_eval(c, nullptr, &e, &made, 1, &error) != NG_OK) broken("%s", error.text);
    ng_shape d{};
    d.size = sizeof d;
    if (!trap_system_calls()) _exit(5);
    harm::heap::arm();
    locks = 0;
    void* data;
    bool good = true;
    for (int i = 0; i < 3; i++) {
        ng_ctx_retain(c), ng_tensor_retain(t), ng_expr_retain(e), ng_prog_retain(p);
        ng_ctx_release(c), ng_tensor_release(t), ng_expr_release(e), ng_prog_release(p);
        good &= ng_tensor_shape(t, &d) == NG_OK && ng_tensor_ctx(t) && ng_tensor_use(t, nullptr, NG_USE_READ, &data, &error) == NG_OK;
        good &= ng_tensor_shape(nullptr, &d) == NG_E_INVALID && ng_tensor_use(nullptr, nullptr, 0, &data, &error) == NG_E_INVALID;
    }
    if (lasts) ng_expr_release(e), ng_prog_release(p), ng_tensor_release(t), ng_tensor_release(made), ng_ctx_release(c);
    const uint64_t allocations = harm::heap::disarm();
    if (!good) _exit(6);
    tell(allocations);
}

// ---- a child for each

int passed = 0, failed = 0, skipped = 0;

// The status of a child that runs body: what tell() says.
template <class Body>
int ending_of(Body&& body)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        body();
        _exit(7);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

template <class Body>
void in_child(const char* name, const char* how, Body&& body)
{
    const int said = ending_of(body);
    if (said == 0) return void(passed++);
    if (said == 5) return void(skipped++);
    failed++;
    const char* what = said == 3 ? "allocated" : said == 4 ? "locked a mutex" : said == 6 ? "failed" : said == 8 ? "has not the threads it may wake" : said == 1 ? "was not prepared" : "ended by a signal";
    if (said >= 10) std::printf("%s, %s: made system call %d (0: read, or its number is above 200)\n", name, how, said - 10);
    else std::printf("%s, %s: %s\n", name, how, what);
}

// That a sound is heard at all.
template <class Body>
void must_be_heard(const char* name, int as, Body&& body)
{
    const int said = ending_of(body);
    (said == as ? passed : said == 5 ? skipped : failed)++;
    if (said != as && said != 5) std::printf("%s was not heard\n", name);
}

}  // namespace

// ---- in front of the C library's

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex)
{
    static constinit std::atomic<int (*)(pthread_mutex_t*)> real{nullptr};
    locks++;
    if (!real.load()) real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    return real.load()(mutex);
}

int main()
{
    must_be_heard("an allocation", 3, [] {
        if (!trap_system_calls()) _exit(5);
        harm::heap::arm();
        void* volatile block = std::malloc(10);
        std::free(block);
        tell(harm::heap::disarm());
    });
    must_be_heard("a lock", 4, [] {
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        locks = 0;
        pthread_mutex_lock(&mutex);
        tell(0);
    });
    must_be_heard("a lock of the library's", 4, [] {
        open_context(0);
        ng_scope* s = ng_scope_create(c, 0);
        locks = 0;
        ng_expr_release(ng_const(s, NG_F32, 1));
        tell(0);
    });
    must_be_heard("a system call", 10 + SYS_getppid, [] {
        if (!trap_system_calls()) _exit(5);
        (void)getppid();
        tell(0);
    });
    must_be_heard("another thread's system call", -1, [] {        // which ends the process: workers take no signal
        open_context(0, 2);
        pthread_t other;
        static std::atomic<bool> goes{false};
        const auto body = [](void*) -> void* {
            sigset_t all;
            sigfillset(&all), pthread_sigmask(SIG_SETMASK, &all, nullptr);
            goes = true;
            while (goes) {}
            (void)getppid();
            return nullptr;
        };
        if (pthread_create(&other, nullptr, body, nullptr)) _exit(1);
        while (!goes) {}
        if (!trap_system_calls(Filter::ButWakes)) _exit(5);
        goes = false;
        for (;;) {}
    });
    for (const Size& one_size : {SMALL, LARGE}) {
        size = one_size;
        for (const Case& one : CASES) {
            for (const Way& way : WAYS) in_child(one.name, way.name, [&] { run_case(one, way); });
            for (const Way& way : POOLED)
                if (size.rows == LARGE.rows) in_child(one.name, way.name, [&] { run_case(one, way); });
        }
    }
    size = SMALL;
    in_child("a run that is refused", "threads 1", run_refused);
    size = STREAM;
    for (const Way& way : {WAYS[0], POOLED[0]}) in_child(STREAMING.name, way.name, [&] { run_case(STREAMING, way); });
    in_child("retain, release, shape, use", "of what lives on", [] { run_others(false); });
    in_child("retain, release, shape, use", "and the last releases", [] { run_others(true); });
    std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
