// The rules of what the library leaves in its process: its threads, the host's hooks, the environment, files.
#include "tests/contract/face.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

namespace files = std::filesystem;

namespace {

// The look-ups in the environment while `asked` is set, and who made them.
std::set<std::string>* asked = nullptr;

char* found_in_environment(const char* name, const char* by)
{
    if (asked) asked->insert(std::string(by) + " " + name);
    const size_t length = std::strlen(name);
    for (char** entry = environ; entry && *entry; entry++)
        if (!std::strncmp(*entry, name, length) && (*entry)[length] == '=') return *entry + length + 1;
    return nullptr;
}

}  // namespace

// The library's look-ups end here: a program's names come before those of the C library.
extern "C" char* getenv(const char* name) noexcept { return found_in_environment(name, "getenv"); }
extern "C" char* secure_getenv(const char* name) noexcept { return found_in_environment(name, "secure_getenv"); }

namespace {

size_t entries(const files::path& folder)
{
    size_t n = 0;
    for ([[maybe_unused]] const files::directory_entry& e : files::recursive_directory_iterator(folder)) n++;
    return n;
}
size_t thread_count()
{
#if defined __SANITIZE_THREAD__
    static const bool has_begun = (std::thread([] {}).join(), true);       // with the first thread ThreadSanitizer makes one of its own
    (void)has_begun;
#endif
    size_t n = 0;
    for ([[maybe_unused]] const files::directory_entry& e : files::directory_iterator("/proc/self/task")) n++;
    return n;
}
// Threads that were joined may be counted for a moment more.
bool settles_at(size_t threads)
{
    for (int i = 0; i < 2000 && thread_count() != threads; i++) usleep(1000);
    return thread_count() == threads;
}

Values waves(size_t n)
{
    Values v(n);
    for (size_t i = 0; i < n; i++) v[i] = float(std::sin(0.7 * double(i)));
    return v;
}
// Element-wise work, products, reductions, scans, sorts and a program's run, each worth several threads.
Values work(Face& f, const std::function<void()>& between = [] {})
{
    constexpr int64_t N = 200003;
    ng_expr *x = f.leaf(waves(N)), *m = f.leaf(shape(NG_F32, {197, 211}), waves(197 * 211));
    const int32_t swap[] = {1, 0};
    Values all;
    for (ng_expr* e : {ng_exp(x), ng_sum(x, NG_ALL, 0), ng_scan(x, 0, NG_FOLD_SUM, 0), ng_argsort(x, 0, 0), ng_matmul(m, ng_permute(m, swap, 2), nullptr), ng_softmax(m, NG_AXIS_1)}) {
        for (double v : f.eval(e)) all.push_back(v);
        between();
    }
    const ng_shape d = shape(NG_F32, {-1});
    ng_expr* p0 = f.param(0, d);
    ng_prog* p = f.compile({ng_tanh(p0), ng_mean(p0, NG_ALL, 0)}, {.length_max = {N}});
    ng_tensor *y = f.make(shape(NG_F32, {N})), *mean = f.make(shape(NG_F32, {}));
    between();
    CHECK(f.run(p, {.args = {f.tensor(waves(N))}, .out = {y, mean}}) == NG_OK);
    between();
    for (ng_tensor* t : {y, mean})
        for (double v : f.get(t)) all.push_back(v);
    return all;
}

}  // namespace

TEST_CASE("S9: with NG_CTX_NO_THREADS no thread is ever there but the host's, and the bits are those of many threads")
{
    const size_t alone = thread_count();
    Values want;
    {
        Face f(NG_CTX_DETERMINISTIC, 4);
        want = work(f);
        CHECK(thread_count() == alone + 3);     // the count can see a pool
    }
    CHECK(settles_at(alone));                   // and its end: after ng_ctx_close no thread runs
    for (const uint32_t threads : {0u, 4u}) {
        Face f(NG_CTX_DETERMINISTIC | NG_CTX_NO_THREADS, threads);
        size_t most = 0;
        const Values got = work(f, [&] { most = std::max(most, thread_count()); });
        CHECK(most == alone);
        CHECK(differs(got, want) == "");
        CHECK(ng_ctx_poll(f.c, UINT64_MAX, &f.error) == NG_OK);
        CHECK(thread_count() == alone);
    }
    Face f(NG_CTX_DETERMINISTIC, 1);            // the caller alone
    CHECK(differs(work(f), want) == "");
    CHECK(thread_count() == alone);
}

TEST_CASE("S9: with NG_CTX_NO_THREADS what calls back does so on the caller's thread, inside its call")
{
    struct Watch {
        std::thread::id caller = std::this_thread::get_id();
        std::atomic<int> calls{0}, elsewhere{0};
        void note() { calls++, elsewhere += std::this_thread::get_id() != caller; }
        static Watch& at(void* user) { return *static_cast<Watch*>(user); }
    } watch;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &watch;
    hooks.log = [](void* user, int32_t, const char*) { Watch::at(user).note(); };
    hooks.trace = [](void* user, uint32_t, const char*, ng_stream) { Watch::at(user).note(); };
    hooks.pressure = [](void* user, uint64_t) -> int32_t { return Watch::at(user).note(), 0; };
    ng_allocator heap{};
    heap.size = sizeof heap, heap.user = &watch;
    heap.alloc = [](void* user, size_t bytes, size_t align, ng_purpose, ng_stream) {
        Watch::at(user).note();
        align = std::max<size_t>(align, 64);
        return std::aligned_alloc(align, (bytes + align - 1) / align * align);
    };
    heap.free = [](void* user, void* p, size_t, ng_purpose, ng_stream) { Watch::at(user).note(), std::free(p); };
    ng_ctx_desc d = description(NG_CTX_NO_THREADS);
    d.hooks = &hooks, d.host = d.dev = &heap;
    {
        Face f(d);
        work(f);
        const int before = watch.calls;
        usleep(20000);
        CHECK(watch.calls == before);           // nothing happens between calls
        float memory[4] = {};
        const ng_shape four = shape(NG_F32, {4});
        ng_tensor* t = nullptr;
        REQUIRE(ng_tensor_wrap(f.c, &four, memory, 16, [](void* user) { Watch::at(user).note(); }, &watch, &t, &f.error) == NG_OK);
        ng_tensor_release(t);
        CHECK(ng_ctx_poll(f.c, UINT64_MAX, &f.error) == NG_OK);
    }
    CHECK(watch.calls > 0);
    CHECK(watch.elsewhere == 0);
}

namespace {

// Params: x [n, n], pictures [n, 4, 16, 16], offsets [n + 1], indices [1] and a row [1, n]; the first axis of x and pictures may be a length.
struct Cut {
    const char* name;
    ng_expr* (*build)(Face& f, ng_expr* const* p, int64_t n);
};
ng_expr* filters(Face& f, int64_t channels) { return ng_broadcast(ng_const(f.s, NG_F32, 0.5), Dims{4, channels, 3, 3}.data(), 4); }
ng_expr* pooled(ng_expr* x, bool back)
{
    ng_pool_desc d{};
    d.size = sizeof d, d.window[0] = d.window[1] = 2;
    return back ? ng_pool_dx(x, ng_pool(x, &d), &d) : ng_pool(x, &d);
}
ng_expr* apart(ng_expr* x, ng_expr* w)
{
    ng_conv_desc d{};
    d.size = sizeof d, d.groups = 4;
    return ng_conv(x, w, &d);
}
const Cut CUTS[] = {
    {"points", [](Face&, ng_expr* const* p, int64_t) { return ng_exp(p[0]); }},
    {"all", [](Face&, ng_expr* const* p, int64_t) { return ng_sum(p[0], NG_ALL, 0); }},
    {"rows", [](Face&, ng_expr* const* p, int64_t) { return ng_softmax(p[0], NG_AXIS_1); }},
    {"columns", [](Face&, ng_expr* const* p, int64_t) { return ng_var(p[0], NG_AXIS_0, 0); }},
    {"turned", [](Face&, ng_expr* const* p, int64_t) { const int32_t axes[] = {1, 0}; return ng_keep(ng_permute(p[0], axes, 2)); }},
    {"joined", [](Face&, ng_expr* const* p, int64_t) { ng_expr* const two[] = {p[0], p[4]}; return ng_concat(two, 2, 0); }},
    {"product", [](Face&, ng_expr* const* p, int64_t) { const int32_t axes[] = {1, 0}; return ng_matmul(p[0], ng_permute(p[0], axes, 2), nullptr); }},
    {"sorted", [](Face&, ng_expr* const* p, int64_t) { return ng_argsort(p[0], 1, 0); }},
    {"scanned rows", [](Face&, ng_expr* const* p, int64_t) { return ng_scan(p[0], 1, NG_FOLD_SUM, 0); }},
    {"scanned columns", [](Face&, ng_expr* const* p, int64_t) { return ng_scan(p[0], 0, NG_FOLD_MAX, 0); }},
    {"segments", [](Face&, ng_expr* const* p, int64_t) { return ng_segment(p[0], p[2], NG_FOLD_SUM); }},
    {"put", [](Face&, ng_expr* const* p, int64_t) { return ng_put(p[0], p[3], p[4], 0, NG_FOLD_SUM); }},
    {"conv", [](Face& f, ng_expr* const* p, int64_t) { return ng_conv(p[1], filters(f, 4), nullptr); }},
    {"conv apart", [](Face& f, ng_expr* const* p, int64_t) { return apart(p[1], filters(f, 1)); }},
    {"conv_dw", [](Face& f, ng_expr* const* p, int64_t) { const ng_shape w = shape(NG_F32, {4, 4, 3, 3}); return ng_conv_dw(p[1], ng_conv(p[1], filters(f, 4), nullptr), &w, nullptr); }},
    {"conv_dx", [](Face& f, ng_expr* const* p, int64_t n) { const ng_shape x = shape(NG_F32, {n, 4, 18, 18}); return ng_conv_dx(filters(f, 4), p[1], &x, nullptr); }},
    {"pool", [](Face&, ng_expr* const* p, int64_t) { return pooled(p[1], false); }},
    {"pool_dx", [](Face&, ng_expr* const* p, int64_t) { return pooled(p[1], true); }},
};

struct Counted {
    int jobs = 0;
    static void parallel(void* user, uint32_t count, ng_task_fn task, void* arg)
    {
        static_cast<Counted*>(user)->jobs++;
        for (uint32_t i = 0; i < count; i++) task(arg, i);
    }
};

struct Made { size_t compiled, loaded; int jobs; };
// Threads that there are when the program is compiled, and when it is loaded again, and jobs that its run hands to the hook.
Made made_by(const Cut& cut, int64_t n, bool has_length, bool has_hook)
{
    Counted host;
    ng_hooks hooks{};
    hooks.size = sizeof hooks, hooks.user = &host, hooks.parallel = Counted::parallel;
    ng_ctx_desc d = description(0, 3);
    d.backend = "cpu", d.hooks = has_hook ? &hooks : nullptr;
    const size_t alone = thread_count();
    std::vector<char> saved(1 << 16);
    size_t bytes = saved.size();
    Made made{};
    const int64_t rows = has_length ? -1 : n;
    {
        Face f(d);
        const ng_shape shapes[] = {shape(NG_F32, {rows, n}), shape(NG_F32, {rows, 4, 16, 16}), shape(NG_I64, {n + 1}), shape(NG_I64, {1}), shape(NG_F32, {1, n})};
        ng_expr* p[5];
        for (uint32_t i = 0; i < 5; i++) p[i] = f.param(i, shapes[i]);
        ng_prog* const program = f.compile({cut.build(f, p, rows)}, has_length ? Plan{.length_max = {n}} : Plan{});
        made.compiled = thread_count() - alone;
        Tensors args;
        for (ng_shape one : shapes) one.dims[0] = one.dims[0] < 0 ? n : one.dims[0], args.push_back(f.make(one));
        ng_shape out = shape(NG_F32, {});
        REQUIRE(ng_prog_port(program, f.info(program).nargs, &out, nullptr, &f.error) == NG_OK);
        for (int a = 0; a < out.ndim; a++)
            if (out.dims[a] < 0) out.dims[a] = n + (out.dims[a] != -1);       // a row more, where rows were joined
        out.flags = 0;
        ng_tensor* const to = f.make(out);
        const int before = host.jobs;
        REQUIRE_MESSAGE(f.run(program, {.args = args, .out = {to}}) == NG_OK, std::string(cut.name), ": ", f.said());
        made.jobs = host.jobs - before;
        CHECK_MESSAGE(thread_count() - alone == made.compiled, std::string(cut.name), " of ", n, ": a run made threads");
        REQUIRE(ng_prog_save(program, 0, saved.data(), &bytes, &f.error) == NG_OK);
    }
    REQUIRE(settles_at(alone));
    Face f(d);
    ng_prog* again = nullptr;
    REQUIRE(ng_prog_load(f.c, 0, saved.data(), bytes, &again, &f.error) == NG_OK);
    f.programs.push_back(again);
    made.loaded = thread_count() - alone;
    return made;
}

}  // namespace

TEST_CASE("P2: threads are made when what may be cut is compiled or loaded, never by a run; what is small makes none")
{
    const size_t alone = thread_count();
    int cut_ones = 0;
    for (const Cut& cut : CUTS)
        for (const int64_t n : {4, 90, 128, 181, 256, 800})
            for (const bool has_length : {false, true}) {
                const Made plain = made_by(cut, n, has_length, false);
                REQUIRE(settles_at(alone));
                const Made hooked = made_by(cut, n, has_length, true);
                INFO(std::string(cut.name));
                CAPTURE(n);
                CAPTURE(has_length);
                if (n == 4) CHECK(plain.compiled == 0);
                if (n == 800) CHECK(hooked.jobs > 0);
                if (hooked.jobs) CHECK(plain.compiled == 2);
                CHECK(plain.loaded == plain.compiled);
                CHECK(hooked.compiled == 0);
                cut_ones += hooked.jobs > 0;
            }
    CHECK(cut_ones > 40);
}

TEST_CASE("S9: a parallel hook does the work of the pool, each task once, and no pool is made")
{
    struct Crew {
        std::atomic<int> jobs{0}, tasks{0}, threads{0};
        int way = 0;
    };
    const size_t alone = thread_count();
    Values want;
    {
        Face f(NG_CTX_DETERMINISTIC, 1);
        want = work(f);
    }
    for (const uint32_t flags : {uint32_t(NG_CTX_DETERMINISTIC), uint32_t(NG_CTX_DETERMINISTIC | NG_CTX_NO_THREADS)})
        for (int way = 0; way < 3; way++) {
            Crew crew;
            crew.way = way;
            ng_hooks hooks{};
            hooks.size = sizeof hooks, hooks.user = &crew;
            hooks.parallel = [](void* user, uint32_t count, ng_task_fn task, void* arg) {
                Crew& c = *static_cast<Crew*>(user);
                c.jobs++, c.tasks += int(count);
                if (c.way == 0) for (uint32_t i = 0; i < count; i++) task(arg, i);
                if (c.way == 1) for (uint32_t i = count; i-- > 0;) task(arg, i);
                if (c.way < 2) return;
                std::vector<std::thread> hands;     // on threads of the host's, two tasks each, none on the caller's
                for (uint32_t i = 0; i < count; i += 2)
                    hands.emplace_back([=] {
                        if (i + 1 < count) task(arg, i + 1);
                        task(arg, i);
                    });
                c.threads += int(hands.size());
                for (std::thread& hand : hands) hand.join();
            };
            ng_ctx_desc d = description(flags, 4);
            d.hooks = &hooks;
            size_t least = 1 << 20;
            Face f(d);
            const Values got = work(f, [&] { least = std::min(least, thread_count()); });
            CHECK(differs(got, want) == "");
            CHECK(crew.jobs > 5);
            CHECK(crew.tasks > crew.jobs);
            CHECK((crew.threads > 0) == (way == 2));
            CHECK(least == alone);
            CHECK(settles_at(alone));
        }
}

namespace {

files::path empty_folder()
{
    std::string name = (files::temp_directory_path() / "ng_contract_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    return name;
}
// In a child, whose folder and environment are its own: 0 when body holds. alarm ends one that hangs.
int in_child(const std::function<bool()>& body)
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(100);
        try {
            _exit(body() ? 0 : 1);
        } catch (...) {
            _exit(2);       // a REQUIRE: the parent's cases are not the child's
        }
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status;
}
// Everything once, in a context whose cache is there: NULL is the user's.
bool lives(const char* cache_dir)
{
    ng_ctx_desc d = description(0, 2);
    d.cache_dir = cache_dir;
    Face f(d);
    const Values v = work(f);
    size_t bytes = 0;
    ng_expr* e = ng_neg(f.param(0, shape(NG_F32, {4})));
    ng_prog* p = f.compile({e});
    return !v.empty() && ng_prog_save(p, NG_CODE, nullptr, &bytes, &f.error) == NG_OK;
}
size_t open_files()
{
    size_t n = 0;
    for ([[maybe_unused]] const files::directory_entry& e : files::directory_iterator("/proc/self/fd")) n++;
    return n;
}

}  // namespace

TEST_CASE("S10: of the environment only NG_CACHE_DIR, XDG_CACHE_HOME and HOME are read, by secure_getenv")
{
    const files::path folder = empty_folder();
    const int status = in_child([&] {
        for (const char* name : {"NG_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) setenv(name, folder.c_str(), 1);    // not the user's cache
        std::set<std::string> names;
        asked = &names;
        bool good = !std::getenv("NG_CONTRACT") && names.erase("getenv NG_CONTRACT") == 1;      // look-ups are seen
        good = lives("") && lives(nullptr) && good;
        asked = nullptr;
        for (const char* name : {"NG_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) names.erase(std::string("secure_getenv ") + name);
        for (const std::string& name : names) std::fprintf(stderr, "read: %s\n", name.c_str());     // _exit flushes nothing
        return good && names.empty();
    });
    CHECK(status == 0);
    files::remove_all(folder);
}

TEST_CASE("S10: no file is written when cache_dir is \"\" or no home exists, and none stays open")
{
    for (const bool has_home : {true, false}) {
        const files::path folder = empty_folder();
        const int status = in_child([&] {
            files::current_path(folder);
            for (const char* name : {"NG_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"})
                has_home ? setenv(name, folder.c_str(), 1) : unsetenv(name);
            const size_t before = open_files();
            return lives(has_home ? "" : nullptr) && entries(folder) == 0 && open_files() == before;
        });
        CHECK(status == 0);
        CHECK(entries(folder) == 0);
        files::remove_all(folder);
    }
}
