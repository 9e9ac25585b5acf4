// The thread pool: every task runs once, worker numbers are never shared, no caller waits for another.
#include "lib/workers.h"

#include <dirent.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>

using ng::Parallel;
using ng::Workers;

namespace {

// Runs a job and returns whether every task ran once and no worker number was in use twice at a time.
bool runs_well(const Parallel& parallel, uint32_t count, int work = 0)
{
    std::unique_ptr<std::atomic<int>[]> done(new std::atomic<int>[count + 1]{});
    std::atomic<int> busy[ng::MAX_TASKS] = {};
    std::atomic<bool> good{true};
    parallel.for_each(count, [&](uint32_t i, uint32_t worker) {
        if (worker >= parallel.workers() || busy[worker]++ != 0) good = false;
        for (int k = 0; k < work; k++) asm volatile("");
        done[i]++;
        if (worker < ng::MAX_TASKS) busy[worker]--;
    });
    for (uint32_t i = 0; i < count; i++)
        if (done[i] != 1) good = false;
    return good;
}
int thread_count()
{
    int n = 0;
    DIR* const tasks = opendir("/proc/self/task");
    while (const dirent* one = readdir(tasks)) n += one->d_name[0] != '.';
    closedir(tasks);
    return n;
}

}  // namespace

TEST_CASE("workers: every task runs once, for any number of tasks and workers")
{
    for (const uint32_t workers : {1u, 2u, 3u, 8u, 64u, 1000u}) {
        Workers pool(workers);
        CHECK(pool.parallel().workers() == std::min(workers, ng::MAX_TASKS));
        for (const uint32_t count : {0u, 1u, 2u, 3u, 63u, 64u, 65u, 1000u}) CHECK(runs_well(pool.parallel(), count));
    }
}

TEST_CASE("workers: thousands of small jobs one after the other")
{
    Workers pool(4);
    for (int i = 0; i < 3000; i++) REQUIRE(runs_well(pool.parallel(), 1 + uint32_t(i % 9), i % 7 * 20));
}

TEST_CASE("workers: jobs after pauses, when all sleep")
{
    Workers pool(3);
    for (int i = 0; i < 20; i++) {
        usleep(2000);
        REQUIRE(runs_well(pool.parallel(), 8, 20000));
    }
}

TEST_CASE("workers: several callers at once, and jobs inside jobs")
{
    Workers pool(4);
    std::atomic<int> bad{0};
    std::vector<std::thread> callers;
    for (int t = 0; t < 4; t++)
        callers.emplace_back([&] {
            for (int i = 0; i < 500; i++)
                if (!runs_well(pool.parallel(), 5, 50)) bad++;
        });
    for (std::thread& t : callers) t.join();
    CHECK(bad == 0);
    std::atomic<int> inner{0};
    pool.parallel().for_each(8, [&](uint32_t, uint32_t) {
        pool.parallel().for_each(8, [&](uint32_t, uint32_t) { inner++; });
    });
    CHECK(inner == 64);
}

TEST_CASE("workers: more than one thread takes part")
{
    Workers pool(2);
    std::atomic<bool> other{false};
    for (int i = 0; i < 2000 && !other; i++)
        pool.parallel().for_each(16, [&](uint32_t, uint32_t worker) {
            if (worker == 1) other = true;
            usleep(50);
        });
    CHECK(other);
}

TEST_CASE("workers: stopped, they leave the work to the caller")
{
    Workers pool(4);
    CHECK(runs_well(pool.parallel(), 8));
    pool.stop();
    CHECK(runs_well(pool.parallel(), 8));
    pool.stop();
    Workers never(4);
    never.stop();
    CHECK(runs_well(never.parallel(), 8));
}

TEST_CASE("workers: who takes them as they are makes none, and wakes those that others made")
{
    Workers pool(3);
    const int alone = thread_count();
    std::atomic<int> elsewhere{0};
    const auto count_elsewhere = [&] {
        pool.parallel_as_is().for_each(16, [&](uint32_t, uint32_t worker) {
            elsewhere += worker != 0;
            usleep(50);
        });
    };
    for (int i = 0; i < 20; i++) count_elsewhere();
    CHECK(elsewhere == 0);
    CHECK(thread_count() == alone);
    pool.start();
    CHECK(thread_count() == alone + 2);
    for (int i = 0; i < 2000 && !elsewhere; i++) count_elsewhere();
    CHECK(elsewhere > 0);
    CHECK(runs_well(pool.parallel_as_is(), 100));
}

#if !defined __SANITIZE_THREAD__ && !defined __SANITIZE_ADDRESS__
TEST_CASE("workers: threads that the machine refused are asked for again, and those that came work meanwhile")
{
    Workers pool(64);
    const int alone = thread_count();
    rlimit before{}, none{};
    REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
    none.rlim_cur = 1 << 20, none.rlim_max = before.rlim_max;
    REQUIRE(setrlimit(RLIMIT_AS, &none) == 0);         // no stack but those of threads that ended
    pool.start();
    REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK(thread_count() < alone + 63);
    CHECK(runs_well(pool.parallel_as_is(), 200));
    pool.start();
    CHECK(thread_count() == alone + 63);
    CHECK(runs_well(pool.parallel_as_is(), 200));
}
#endif

#if !defined __SANITIZE_THREAD__
TEST_CASE("workers: a forked child works alone")
{
    Workers pool(4);
    CHECK(runs_well(pool.parallel(), 8));
    const pid_t child = fork();
    if (child == 0) {
        alarm(10);
        const bool good = runs_well(pool.parallel(), 8);
        pool.stop();
        _exit(good ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(runs_well(pool.parallel(), 8));
}
#endif

TEST_CASE("workers: they take no signal of the host's")
{
    Workers pool(2);
    std::atomic<int> open{0};
    for (int i = 0; i < 200; i++)
        pool.parallel().for_each(4, [&](uint32_t, uint32_t worker) {
            sigset_t mask;
            pthread_sigmask(SIG_SETMASK, nullptr, &mask);
            if (worker && (!sigismember(&mask, SIGINT) || !sigismember(&mask, SIGALRM))) open++;
            usleep(10);
        });
    CHECK(open == 0);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    CHECK_FALSE(sigismember(&mask, SIGINT));
}

#if defined __SSE2__
TEST_CASE("floats: the host's rounding and flushing are left at the door, and back afterwards")
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040 | 0x6000);    // flush to zero, denormals are zero, toward zero
    const unsigned odd = _mm_getcsr();
    volatile double third = 1, small = 1e-308;
    {
        const ng::PlainFloats plain;
        third = third / 3;
        small = small / 4;
    }
    CHECK(_mm_getcsr() == odd);
    _mm_setcsr(before);
    CHECK(third == 1.0 / 3);
    CHECK(small == 1e-308 / 4);
    CHECK(small != 0);
}
#endif
