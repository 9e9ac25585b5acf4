// The library loaded, put to work and unloaded ten times in one process: it goes, threads and all, and comes again.
#include <ng.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

int passed = 0, failed = 0;

void check(bool holds, const char* what, int turn)
{
    (holds ? passed : failed)++;
    if (!holds) std::printf("turn %d: %s\n", turn, what);
}

bool is_mapped(const char* name)
{
    FILE* maps = std::fopen("/proc/self/maps", "r");
    char line[1024];
    bool found = false;
    while (maps && std::fgets(line, sizeof line, maps)) found |= std::strstr(line, name) != nullptr;
    if (maps) std::fclose(maps);
    return found;
}
int thread_count()
{
    int count = 0;
    if (DIR* folder = opendir("/proc/self/task")) {
        while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.';
        closedir(folder);
    }
    return count;
}
// The kernel wakes who joins a thread before it takes the thread off its list.
bool is_soon_alone()
{
    for (int milliseconds = 0; milliseconds < 10000 && thread_count() != 1; milliseconds++) usleep(1000);
    return thread_count() == 1;
}

// The functions that a host looks up by name.
struct Library {
    void* handle;
    template <class F> F* get(const char* name) const
    {
        void* found = dlsym(handle, name);
        if (!found) std::printf("%s: %s\n", name, dlerror()), std::exit(1);
        return reinterpret_cast<F*>(found);
    }
};
#define GET(library, name) const auto name##_ = (library).get<decltype(name)>(#name)

void on_log(void*, int32_t, const char*) {}

bool works(const Library& library)
{
    GET(library, ng_ctx_create);
    GET(library, ng_ctx_close);
    GET(library, ng_ctx_release);
    GET(library, ng_iota);
    GET(library, ng_parse);
    GET(library, ng_compile);
    GET(library, ng_prog_run);
    GET(library, ng_prog_release);
    GET(library, ng_tensor_create);
    GET(library, ng_tensor_get);
    GET(library, ng_tensor_release);
    GET(library, ng_scope_create);
    GET(library, ng_scope_release);
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.log = on_log;
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.threads = 3, d.hooks = &hooks, d.cache_dir = "";
    ng_ctx* c = nullptr;
    ng_error error{};
    if (ng_ctx_create_(&d, &c, &error) != NG_OK) return std::printf("%s\n", error.text), false;
    ng_scope* s = ng_scope_create_(c, 0);
    ng_shape many{}, one{};
    many.size = one.size = sizeof many, many.dtype = one.dtype = NG_F32, many.ndim = 1, many.dims[0] = 1 << 20;
    ng_expr *x = ng_iota_(s, &many, 0), *e = ng_parse_(s, "mean(x * 2 + 1)", "x", &x, 1);
    ng_prog* p = nullptr;
    ng_tensor* out = nullptr;
    float got = -1;
    ng_run r{};
    r.size = sizeof r, r.nout = 1, r.out = &out;
    const bool ran = ng_compile_(c, nullptr, &e, 1, &p, &error) == NG_OK && ng_tensor_create_(c, &one, &out, &error) == NG_OK && ng_prog_run_(p, nullptr, &r, &error) == NG_OK &&
                     ng_tensor_get_(out, &got, sizeof got, &error) == NG_OK;
    if (!ran) std::printf("%s\n", error.text);
    ng_scope_release_(s), ng_prog_release_(p), ng_tensor_release_(out);
    const bool closed = ng_ctx_close_(c, UINT64_MAX, &error) == NG_OK;
    ng_ctx_release_(c);
    return ran && closed && std::fabs(got / 1048576. - 1) < 1e-5;
}

}  // namespace

// reload_test PATH_OF_LIBNG
int main(int argc, char** argv)
{
    if (argc < 2) return std::puts("which library?"), 2;
    const char* name = std::strrchr(argv[1], '/') ? std::strrchr(argv[1], '/') + 1 : argv[1];
    check(!is_mapped(name), "the library is there before it was loaded", 0);
    size_t used = 0;
    for (int turn = 1; turn <= 10; turn++) {
        const Library library{dlopen(argv[1], RTLD_NOW | RTLD_LOCAL)};
        if (!library.handle) return std::printf("%s\n0 passed, 1 failed\n", dlerror()), 1;
        check(is_mapped(name), "the name is not among what is mapped", turn);
        check(works(library), "it did not work", turn);
        check(is_soon_alone(), "a thread is left after the context was closed", turn);
        check(dlclose(library.handle) == 0, "dlclose failed", turn);
        check(!is_mapped(name), "it is still mapped after dlclose", turn);
        // What watched for forks went with it.
        const pid_t child = fork();
        if (child == 0) _exit(0);
        int status = -1;
        waitpid(child, &status, 0);
        check(status == 0, "a fork after dlclose ended badly", turn);
        // The table of handles is never freed, since any number may be looked up: a chunk of it a turn, and no more.
        const size_t now = mallinfo2().uordblks;
        if (turn > 2) check(now < used + (1 << 16), "it left more than 64 KiB of the heap behind", turn);
        used = now;
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
