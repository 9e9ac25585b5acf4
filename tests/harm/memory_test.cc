// The n-th allocation fails, for every n, in a program of each area: a status, nothing lost, and the same program works again.
#include "tests/harm/small_programs.h"
#include "tests/harm/watched_heap.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace harm;
using heap::Refusal;

int passed = 0, failed = 0;

__attribute__((format(printf, 2, 3))) void check(bool holds, const char* format, ...)
{
    if (holds) return;
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::puts("");
    failed++;
}

// The host's own allocator, which can refuse too.
struct Hook {
    uint64_t asked = 0, refused_at = 0;      // 0: never
    bool     all_behind = false, has_refused = false;
    int64_t  live = 0;

    static void* alloc(void* user, size_t bytes, size_t align, ng_purpose, ng_stream)
    {
        Hook& hook = *static_cast<Hook*>(user);
        const uint64_t number = ++hook.asked;
        if (hook.refused_at && (number == hook.refused_at || (hook.all_behind && number > hook.refused_at))) return hook.has_refused = true, nullptr;
        void* memory = nullptr;
        const heap::Uncounted uncounted;
        if (posix_memalign(&memory, align < sizeof(void*) ? sizeof(void*) : align, bytes ? bytes : 1)) return nullptr;
        hook.live++;
        return memory;
    }
    static void free(void* user, void* memory, size_t, ng_purpose, ng_stream)
    {
        static_cast<Hook*>(user)->live--;
        std::free(memory);
    }
};

ng_ctx* open_context(Hook* hook)
{
    ng_allocator memory{};
    memory.size = sizeof memory, memory.alloc = Hook::alloc, memory.free = Hook::free, memory.user = hook;
    ng_ctx_desc d{};
    d.size = sizeof d, d.version = NG_VERSION, d.threads = 1, d.cache_dir = "";
    if (hook) d.host = d.dev = &memory;
    ng_ctx* c = nullptr;
    ng_error error{};
    if (ng_ctx_create(&d, &c, &error) != NG_OK) std::printf("ng_ctx_create: %s\n", error.text), std::exit(1);
    return c;
}

// What was released is gone; what is left of it, in blocks and bytes of pages.
int64_t settled_blocks(ng_ctx* c, const char* name)
{
    ng_stats left{};
    left.size = sizeof left;
    for (int i = 0; i < 2; i++) ng_ctx_sync(c, nullptr, UINT64_MAX, nullptr);
    check(ng_ctx_stats(c, &left) == NG_OK && !left.tensors && !left.live_bytes && !left.workspace_bytes,
          "%s: %u tensors, %llu bytes live, %llu in workspaces are left", name, left.tensors, (unsigned long long)left.live_bytes, (unsigned long long)left.workspace_bytes);
    return heap::live_blocks() + heap::mapped_bytes();
}

void check_outcome(const Outcome& o, bool refused, const char* name, uint64_t n)
{
    const bool is_memory = o.status == NG_E_NOMEM || o.status == NG_E_DEVMEM;
    if (!refused) check(o.status >= 0 && o.is_right, "%s, n %llu: nothing was refused, and %s: %s: %s", name, (unsigned long long)n, o.call, ng_status_name(o.status), o.error.text);
    else if (o.status < 0) check(is_memory, "%s, n %llu: %s: %s: %s", name, (unsigned long long)n, o.call, ng_status_name(o.status), o.error.text);
    else check(o.is_right, "%s, n %llu: all calls succeeded with wrong numbers", name, (unsigned long long)n);
}

void run_whole(const SmallProgram& program, ng_ctx* c, const char* when)
{
    Outcome o;
    program.run(c, o);
    check(o.status >= 0 && o.is_right, "%s %s: %s: %s: %s", program.name, when, o.call, ng_status_name(o.status), o.error.text);
}

// One run with something refused; what it left behind.
template <class Arm, class Disarm>
int64_t refused_run(const SmallProgram& program, ng_ctx* c, uint64_t n, Arm&& arm, Disarm&& disarm)
{
    const int64_t before = settled_blocks(c, program.name);
    Outcome o;
    arm();
    program.run(c, o);
    check_outcome(o, disarm(), program.name, n);
    return settled_blocks(c, program.name) - before;
}

// A table that grows once keeps what it has: what is lost is lost again the second time.
template <class Arm, class Disarm>
void try_at(const SmallProgram& program, ng_ctx* c, uint64_t n, Arm&& arm, Disarm&& disarm)
{
    if (!refused_run(program, c, n, arm, disarm)) return run_whole(program, c, "after a refusal");
    run_whole(program, c, "after a refusal");
    const int64_t lost = refused_run(program, c, n, arm, disarm);
    check(!lost, "%s, n %llu: %lld blocks and bytes of pages are lost", program.name, (unsigned long long)n, (long long)lost);
}

// malloc and operator new refuse.
void try_heap(const SmallProgram& program)
{
    ng_ctx* c = open_context(nullptr);
    for (int i = 0; i < 3; i++) run_whole(program, c, "at first");
    heap::arm();
    run_whole(program, c, "counted");
    const uint64_t count = heap::disarm();
    check(count > 0, "%s allocates nothing: the watch is broken", program.name);
    const int before = failed;
    for (const Refusal refusal : {Refusal::One, Refusal::AllFrom})
        for (uint64_t n = 1; n <= count && failed < before + 5; n++)
            try_at(program, c, n, [&] { heap::arm(refusal, n); }, [] { return heap::disarm(), heap::has_refused(); });
    check(ng_ctx_close(c, UINT64_MAX, nullptr) == NG_OK, "%s: the context does not close", program.name);
    ng_ctx_release(c);
    std::printf("%s: %llu allocations\n", program.name, (unsigned long long)count);
    passed += failed == before;
}

// The host's allocator refuses.
void try_hook(const SmallProgram& program)
{
    Hook hook;
    ng_ctx* c = open_context(&hook);
    for (int i = 0; i < 2; i++) run_whole(program, c, "with a hook");
    hook.asked = 0;
    run_whole(program, c, "counted");
    const uint64_t count = hook.asked;
    const int before = failed;
    for (const bool all : {false, true})
        for (uint64_t n = 1; n <= count && failed < before + 5; n++)
            try_at(program, c, n, [&] { hook.asked = 0, hook.refused_at = n, hook.all_behind = all, hook.has_refused = false; },
                   [&] { return hook.refused_at = 0, hook.has_refused; });
    check(ng_ctx_close(c, UINT64_MAX, nullptr) == NG_OK, "%s: the context does not close", program.name);
    check(hook.live == 0, "%s: %lld blocks of the host's allocator did not come back", program.name, (long long)hook.live);
    ng_ctx_release(c);
    passed += failed == before;
}

// A child that never called the library before: what is made once for the process fails too.
bool survives_cold(const SmallProgram& program, Refusal refusal, uint64_t n, bool& was_refused)
{
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        Outcome o;
        heap::arm(refusal, n);
        program.run(nullptr, o);
        heap::disarm();
        const bool refused = heap::has_refused();
        check_outcome(o, refused, program.name, n);
        Outcome again;
        program.run(nullptr, again);
        check(again.status >= 0 && again.is_right, "%s, cold, n %llu: afterwards %s: %s: %s", program.name, (unsigned long long)n, again.call, ng_status_name(again.status), again.error.text);
        std::fflush(stdout);
        _exit(failed ? 1 : refused ? 2 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::printf("%s, cold, n %llu: ended by signal %d\n", program.name, (unsigned long long)n, WTERMSIG(status));
    was_refused = WIFEXITED(status) && WEXITSTATUS(status) == 2;
    return WIFEXITED(status) && WEXITSTATUS(status) != 1;
}

void try_cold(const SmallProgram& program)
{
    for (const Refusal refusal : {Refusal::One, Refusal::AllFrom}) {
        bool refused = true, good = true;
        for (uint64_t n = 1; refused && good; n++) good = survives_cold(program, refusal, n, refused);
        (good ? passed : failed)++;
    }
}

}  // namespace

// memory_test [PROGRAM]
int main(int argc, char** argv)
{
    std::setvbuf(stdout, nullptr, _IOLBF, 0);                      // what ends this process loses no line
    for (uint32_t i = 0; i < SMALL_PROGRAM_COUNT; i++)
        if (!std::strcmp(SMALL_PROGRAMS[i].name, "contexts")) try_cold(SMALL_PROGRAMS[i]);
    for (uint32_t i = 0; i < SMALL_PROGRAM_COUNT; i++) {
        if (argc > 1 && std::strcmp(argv[1], SMALL_PROGRAMS[i].name)) continue;
        try_heap(SMALL_PROGRAMS[i]);
        try_hook(SMALL_PROGRAMS[i]);
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
