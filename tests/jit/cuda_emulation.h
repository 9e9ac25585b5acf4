// CUDA C on a CPU: a grid's blocks one after the other, a block's threads as fibers that meet at __syncthreads.
//
// Comes before the prelude in texts that a test compiles as C++.
#pragma once
#include <ucontext.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads)

struct Dim { unsigned x; };
static Dim threadIdx, blockIdx, blockDim, gridDim;

namespace emulated {

constexpr size_t STACK_BYTES = 32 << 10;
struct Fiber {
    ucontext_t        context;
    std::vector<char> stack;
    bool              is_done;
};
static std::vector<Fiber> fibers;
static ucontext_t block;
static void (*body)(const void*);
static const void* argument;

static void enter()
{
    body(argument);
    fibers[threadIdx.x].is_done = true;
}

static void run_block()
{
    for (Fiber& f : fibers) {
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data(), f.context.uc_stack.ss_size = f.stack.size(), f.context.uc_link = &block;
        f.is_done = false;
        makecontext(&f.context, enter, 0);
    }
    for (bool is_running = true; is_running;) {
        is_running = false;
        size_t done = 0;
        for (unsigned t = 0; t < fibers.size(); t++) {
            threadIdx.x = t;
            if (!fibers[t].is_done) swapcontext(&block, &fibers[t].context);
            done += fibers[t].is_done;
            is_running |= !fibers[t].is_done;
        }
        // Some wait where others never come: on a device that hangs.
        if (done && done < fibers.size()) std::abort();
    }
}

// buffers: the kernel's pointers; numbers: its last parameter's bytes.
template <class... P>
void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, char** buffers, const void* numbers)
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
    fibers.resize(threads);
    for (Fiber& f : fibers) f.stack.resize(STACK_BYTES);
    gridDim.x = blocks, blockDim.x = threads;
    for (unsigned b = 0; b < blocks; b++) blockIdx.x = b, run_block();
}

template <class To, class From> To same_bits(From x)
{
    To r;
    std::memcpy(&r, &x, sizeof r);
    return r;
}

}  // namespace emulated

[[gnu::noinline]] static void __syncthreads() { swapcontext(&emulated::fibers[threadIdx.x].context, &emulated::block); }
static inline unsigned  __float_as_uint(float x) { return emulated::same_bits<unsigned>(x); }
static inline float     __uint_as_float(unsigned x) { return emulated::same_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return emulated::same_bits<long long>(x); }
static inline double    __longlong_as_double(long long x) { return emulated::same_bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
// What CUDA has and C has not, as exact as a test of formulas needs.
static inline double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
static inline double sinpi(double x) { return std::sin(M_PI * std::remainder(x, 2)); }
static inline double cospi(double x) { return std::cos(M_PI * std::remainder(x, 2)); }
static inline float normcdff(float x) { return float(normcdf(x)); }
static inline float sinpif(float x) { return float(sinpi(x)); }
static inline float cospif(float x) { return float(cospi(x)); }

#define LAUNCHED(number)                                                                                                 \
    extern "C" void launch_##number(unsigned blocks, unsigned threads, char** buffers, const void* numbers)              \
    {                                                                                                                    \
        emulated::launch(kernel_##number::fused_##number, blocks, threads, buffers, numbers);                            \
    }
