// CUDA C on a CPU: a grid's blocks one after the other, a block's threads as fibers that meet at __syncthreads.
//
// Comes before the prelude in texts that a test compiles as C++.
#pragma once
#undef _FORTIFY_SOURCE                   // its longjmp takes another fiber's stack for a fault
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __launch_bounds__(...)
// The GNU C library's cube root of doubles is off by 3 units in the last place, CUDA's by 1.
#define cbrt(x) double(cbrtl(x))

struct Dim { unsigned x, y; };
static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

constexpr size_t STACK_BYTES = 32 << 10, ROOM_BYTES = 228 << 10;
// A fiber a thread, as many as any block so far had. They stay between a launch's blocks; a switch is a jump, which asks
// nothing of the operating system.
struct Fiber {
    ucontext_t        context;
    jmp_buf           at;
    std::vector<char> stack;
    bool              is_done, has_begun;
    bool              waits;             // for the other blocks of its cluster
    long long         offered;           // to the other threads of the warp
};
static std::vector<Fiber> fibers;
static jmp_buf block;
static unsigned first;                   // fiber of the block's
static bool is_plain;                    // threads run to their end without fibers
static std::vector<std::vector<char>> rooms;     // dynamic shared memory, by block of a cluster
static void (*body)(const void*);
static const void* argument;

[[gnu::noinline]] static void leave()
{
    if (!_setjmp(fibers[first + threadIdx.x].at)) _longjmp(block, 1);
}

static void enter()
{
    for (;;) {
        body(argument);
        fibers[first + threadIdx.x].is_done = true;
        leave();
    }
}

[[gnu::noinline]] static void resume()
{
    if (_setjmp(block)) return;
    Fiber& f = fibers[first + threadIdx.x];
    if (f.has_begun) _longjmp(f.at, 1);
    f.has_begun = true;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data(), f.context.uc_stack.ss_size = f.stack.size(), f.context.uc_link = nullptr;
    makecontext(&f.context, enter, 0);
    setcontext(&f.context);
}

static void run_block()
{
    for (unsigned t = 0; t < blockDim.x; t++) fibers[t].is_done = false;
    threadIdx.x = 0;
    resume();
    // Where the first thread meets no barrier, none does.
    if (fibers[0].is_done) {
        is_plain = true;
        for (unsigned t = 1; t < blockDim.x; t++) threadIdx.x = t, body(argument);
        is_plain = false;
        return;
    }
    for (unsigned begin = 1;; begin = 0) {
        unsigned done = 0;
        for (unsigned t = begin; t < blockDim.x; t++) {
            threadIdx.x = t;
            if (!fibers[t].is_done) resume();
        }
        for (unsigned t = 0; t < blockDim.x; t++) done += fibers[t].is_done;
        if (done == blockDim.x) return;
        // Some wait where others never come: on a device that hangs.
        if (done) std::abort();
    }
}

// Blocks that meet: each in its turn up to where all of its threads wait for the others. What a block shares holds nothing
// from one such meeting to the next, so that they may all have the same.
static void run_cluster(unsigned cluster)
{
    const unsigned begin = blockIdx.x, count = cluster * blockDim.x;
    for (unsigned t = 0; t < count; t++) fibers[t].is_done = fibers[t].waits = false;
    for (unsigned done = 0; done < count;) {
        for (unsigned b = 0; b < cluster; b++) {
            blockIdx.x = begin + b, first = b * blockDim.x;
            for (bool goes_on = true; goes_on;) {
                goes_on = false;
                for (unsigned t = 0; t < blockDim.x; t++) {
                    const Fiber& f = fibers[first + t];
                    threadIdx.x = t;
                    if (!f.is_done && !f.waits) resume();
                    goes_on |= !f.is_done && !f.waits;
                }
            }
        }
        done = 0;
        for (unsigned t = 0; t < count; t++) done += fibers[t].is_done, fibers[t].waits = false;
        if (done && done < count) std::abort();
    }
    first = 0;
}

// buffers: the kernel's pointers; numbers: its last parameter's bytes.
template <class... P>
static void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, unsigned cluster, char** buffers, const void* numbers)
{
    using Arguments = std::tuple<void (*)(P...), std::tuple<P...>>;
    constexpr size_t last = sizeof...(P) - 1;
    Arguments arguments;
    std::get<0>(arguments) = kernel;
    auto& values = std::get<1>(arguments);
    [&]<size_t... I>(std::index_sequence<I...>) {
        ((std::get<I>(values) = reinterpret_cast<std::tuple_element_t<I, std::tuple<P...>>>(buffers[I])), ...);
    }(std::make_index_sequence<last>());
    std::memcpy(&std::get<last>(values), numbers, sizeof(std::get<last>(values)));
    body = [](const void* a) {
        const auto& all = *static_cast<const Arguments*>(a);
        std::apply(std::get<0>(all), std::get<1>(all));
    };
    argument = &arguments;
    fibers.resize(std::max<size_t>(fibers.size(), size_t(threads) * cluster));
    for (Fiber& f : fibers) f.stack.resize(STACK_BYTES), f.has_begun = false;
    gridDim.x = blocks, blockDim.x = threads;
    rooms.assign(cluster, std::vector<char>(ROOM_BYTES));
    for (unsigned b = 0; b < blocks; b += cluster) {
        blockIdx.x = b;
        if (cluster > 1) run_cluster(cluster);
        else run_block();
    }
}

template <class To, class From> To same_bits(From x)
{
    To r;
    std::memcpy(&r, &x, sizeof r);
    return r;
}

}  // namespace emulated

static void __syncthreads()
{
    if (emulated::is_plain) std::abort();
    emulated::leave();
}
[[maybe_unused]] static int __syncthreads_or(int one)
{
    static int any;
    __syncthreads();
    any = 0;
    __syncthreads();
    any |= one;
    __syncthreads();
    return any;
}
[[maybe_unused]] static char* dynamic_shared() { return emulated::rooms[blockIdx.x % emulated::rooms.size()].data(); }
// All blocks of a cluster meet.
[[maybe_unused]] static void meet_cluster()
{
    emulated::fibers[emulated::first + threadIdx.x].waits = true;
    emulated::leave();
}
// All threads of a block come to each shuffle, as they do in generated kernels.
template <class T> static T exchanged(T x, unsigned from)
{
    emulated::fibers[emulated::first + threadIdx.x].offered = 0;
    std::memcpy(&emulated::fibers[emulated::first + threadIdx.x].offered, &x, sizeof x);
    __syncthreads();
    std::memcpy(&x, &emulated::fibers[emulated::first + (from < blockDim.x ? from : threadIdx.x)].offered, sizeof x);
    __syncthreads();
    return x;
}
template <class T> static T __shfl_xor_sync(unsigned, T x, int reach) { return exchanged(x, threadIdx.x ^ unsigned(reach)); }
template <class T> static T __shfl_down_sync(unsigned, T x, unsigned reach) { return exchanged(x, threadIdx.x + reach); }
template <class T> static T __shfl_sync(unsigned, T x, int lane, int width) { return exchanged(x, threadIdx.x / unsigned(width) * unsigned(width) + unsigned(lane)); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned((unsigned long long)x * y >> 32); }
__extension__ typedef unsigned __int128 Wide;
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned long long)(Wide(x) * y >> 64); }
static inline unsigned  __float_as_uint(float x) { return emulated::same_bits<unsigned>(x); }
static inline float     __uint_as_float(unsigned x) { return emulated::same_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return emulated::same_bits<long long>(x); }
static inline double    __longlong_as_double(long long x) { return emulated::same_bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
// What CUDA has and C has not, as exact as a test of formulas needs.
static inline double normcdf(double x) { return double(0.5L * std::erfc(-x * 0.707106781186547524400844362104849039L)); }
static inline double sinpi(double x)
{
    const double r = std::remainder(x, 2);
    return std::sin(M_PI * (std::fabs(r) > 0.5 ? std::copysign(1, r) - r : r));
}
static inline double cospi(double x) { return sinpi(0.5 - std::fabs(std::remainder(x, 2))); }
static inline float normcdff(float x) { return float(normcdf(x)); }
static inline float sinpif(float x) { return float(sinpi(x)); }
static inline float cospif(float x) { return float(cospi(x)); }

#define LAUNCHED(number)                                                                                                 \
    extern "C" void launch_##number(unsigned blocks, unsigned threads, unsigned cluster, char** buffers, const void* numbers) \
    {                                                                                                                    \
        emulated::launch(kernel_##number::fused_of_##number, blocks, threads, cluster, buffers, numbers);                            \
    }
// Function `stage` of a text of several.
#define LAUNCHED_STAGE(number, stage)                                                                                    \
    extern "C" void launch_##number##_##stage(unsigned blocks, unsigned threads, unsigned cluster, char** buffers, const void* numbers) \
    {                                                                                                                    \
        emulated::launch(kernel_##number::fused_##stage##_of_##number, blocks, threads, cluster, buffers, numbers);                             \
    }
