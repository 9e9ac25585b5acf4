/* refusing_heap.c - goes before a program (LD_PRELOAD): of what libng and its C++ runtime ask the heap, or mmap, for, the REFUSED_AT-th request
 * is refused, with REFUSED_ALL=1 those behind it too. Whoever else asks is served. REFUSED_COUNT=1: says at the end how many there were. */
#define _GNU_SOURCE
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

enum { RANGES = 8, NO_MEMORY = 12 };
static struct { uintptr_t first, last; } code[RANGES];       /* of both libraries */
static int codes;
static atomic_long asked;
static long refused_at;
static int refuses_all;

static int note(struct dl_phdr_info *info, size_t bytes, void *unused)
{
    (void)bytes, (void)unused;
    if (!strstr(info->dlpi_name, "/libng.so") && !strstr(info->dlpi_name, "/libstdc++.so")) return 0;
    for (int i = 0; i < info->dlpi_phnum && codes < RANGES; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
        code[codes].first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        code[codes].last = code[codes].first + info->dlpi_phdr[i].p_memsz, codes++;
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("REFUSED_AT");
    refused_at = at ? atol(at) : 0, refuses_all = getenv("REFUSED_ALL") != NULL;
    dl_iterate_phdr(note, NULL);
}

__attribute__((destructor)) static void end(void)
{
    if (getenv("REFUSED_COUNT")) fprintf(stderr, "asked %ld\n", (long)asked);
}

static int is_refused(const void *caller)
{
    for (int i = 0; i < codes; i++) {
        if ((uintptr_t)caller < code[i].first || (uintptr_t)caller >= code[i].last) continue;
        const long number = atomic_fetch_add(&asked, 1) + 1;
        return refused_at && (number == refused_at || (refuses_all && number > refused_at));
    }
    return 0;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t bytes) { return is_refused(CALLER) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return is_refused(CALLER) ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *memory, size_t bytes) { return is_refused(CALLER) ? NULL : __libc_realloc(memory, bytes); }
void *aligned_alloc(size_t align, size_t bytes) { return is_refused(CALLER) ? NULL : __libc_memalign(align, bytes); }
static void *pages(const void *caller, void *at, size_t bytes, int protection, int flags, int file, int64_t offset)
{
    return is_refused(caller) ? MAP_FAILED : (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}
/* By either name: which of them a library asks for depends on how wide it has off_t. */
void *mmap_of(void *, size_t, int, int, int, int64_t) __asm__("mmap");
void *mmap64_of(void *, size_t, int, int, int, int64_t) __asm__("mmap64");
void *mmap_of(void *at, size_t bytes, int protection, int flags, int file, int64_t offset) { return pages(CALLER, at, bytes, protection, flags, file, offset); }
void *mmap64_of(void *at, size_t bytes, int protection, int flags, int file, int64_t offset) { return pages(CALLER, at, bytes, protection, flags, file, offset); }
int posix_memalign(void **memory, size_t align, size_t bytes)
{
    void *const made = is_refused(CALLER) ? NULL : __libc_memalign(align, bytes);
    if (made) *memory = made;
    return made ? 0 : NO_MEMORY;
}
