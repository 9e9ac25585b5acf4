// Folds of what another fold gives, in the same pass as that one: each part by a number of its own, said anew when parts meet.
//
// sum((x - m)^2) of parts by distances from their means (Chan, Golub & LeVeque 1979), sum(exp(x - m)) by the greatest x of
// each (Milakov & Gimelshein 2018). m comes last, and may be any number. They stand after what dialects share.
template <i32 N, class T>
DEVICE T tree_sum(const T* x)
{
    if constexpr (N == 1) return x[0];
    else return tree_sum<N / 2>(x) + tree_sum<N - N / 2>(x + N / 2);
}
// x / y, where a unit or two in the last place are nothing.
DEVICE f32 share(f32 x, f32 y) { return x * near_reciprocal(y); }
DEVICE f64 share(f64 x, f64 y) { return x / y; }
DEVICE f32 greater(f32 x, f32 y) { return fmaxf(x, y); }
DEVICE f64 greater(f64 x, f64 y) { return fmax(x, y); }
template <i32 N, class T>
DEVICE T tree_max(const T* x)
{
    if constexpr (N == 1) return x[0];
    else return greater(tree_max<N / 2>(x), tree_max<N - N / 2>(x + N / 2));
}

// What threads of a team pass on word by word.
template <class T, class F>
DEVICE T by_words(T x, F exchange)
{
    union { T all; u32 words[sizeof(T) / 4]; } r = {x};
#pragma unroll
    for (i32 k = 0; k < (i32)(sizeof(T) / 4); k++) r.words[k] = exchange(r.words[k]);
    return r.all;
}
template <class T>
DEVICE T all_shuffled(T x, i32 reach) { return by_words(x, [=](u32 w) { return shuffled(w, reach); }); }
template <class T>
DEVICE T all_of_first(T x, i32 lanes) { return by_words(x, [=](u32 w) { return of_first(w, lanes); }); }

#define RUNNING(T, LARGEST)                                                                                           \
    /* A thread's: distances from a base among its first numbers, which is never far off all of them. */              \
    struct shift_##T {                                                                                                \
        T base;                                                                                                       \
        pair_##T sum, square;                                                                                         \
    };                                                                                                                \
    struct moments_##T {                                                                                              \
        T count, mean, rest, square;                                                                                  \
    };                                                                                                                \
    struct scaled_##T {                                                                                               \
        T top, unused;                                                                                                \
        pair_##T sum;                                                                                                 \
    };                                                                                                                \
    DEVICE shift_##T no_shift_##T() { return {0, {0, 0}, {0, 0}}; }                                                   \
    DEVICE moments_##T no_moments_##T() { return {0, 0, 0, 0}; }                                                      \
    DEVICE scaled_##T no_scaled_##T() { return {-LARGEST, 0, {0, 0}}; }                                               \
    template <i32 N>                                                                                                  \
    DEVICE void take_##T(shift_##T& a, const T (&x)[N], i32 taken)                                                    \
    {                                                                                                                 \
        if (taken == 0) {                                                                                             \
            a.base = tree_sum<N>(x) * ((T)1 / N);                                                                     \
            a.base = a.base - a.base == 0 ? a.base : 0;                                                               \
        }                                                                                                             \
        T distance[N], square[N];                                                                                     \
        for (i32 i = 0; i < N; i++) distance[i] = x[i] - a.base, square[i] = distance[i] * distance[i];               \
        a.sum = sum_##T(a.sum, pair_of_##T(tree_sum<N>(distance)));                                                   \
        a.square = sum_##T(a.square, pair_of_##T(tree_sum<N>(square)));                                               \
    }                                                                                                                 \
    /* sum^2 / count is at most about count / N times what remains of square. */                                      \
    DEVICE moments_##T met_##T(shift_##T a, i32 taken)                                                                \
    {                                                                                                                 \
        if (taken == 0) return no_moments_##T();                                                                      \
        const T count = (T)taken, sum = total_##T(a.sum), part = sum / count;                                         \
        pair_##T mean = sum_##T(pair_of_##T(a.base), pair_of_##T(part));                                              \
        const T square = total_##T(sum_##T(a.square, pair_of_##T(-sum * part)));                                      \
        return {count, mean.hi, mean.lo, square >= 0 || square != square ? square : 0};                             \
    }                                                                                                                 \
    DEVICE moments_##T together_##T(moments_##T a, moments_##T b)                                                     \
    {                                                                                                                 \
        const T count = a.count + b.count, apart = (b.mean - a.mean) + (b.rest - a.rest);                             \
        const T step = apart * (count > 0 ? share(b.count, count) : 0);                                               \
        pair_##T mean = {a.mean, a.rest};                                                                             \
        mean = sum_##T(mean, pair_of_##T(step));                                                                      \
        if (!(mean.hi - mean.hi == 0)) mean = {a.mean + b.mean, 0};                                                   \
        return {count, mean.hi, mean.lo, a.square + b.square + apart * step * a.count};                               \
    }                                                                                                                 \
    /* The sum of all. */                                                                                             \
    DEVICE T all_of_##T(moments_##T a)                                                                                \
    {                                                                                                                 \
        const T all = a.mean * a.count, rest = fma_##T(a.mean, a.count, -all) + a.rest * a.count;                     \
        return all - all == 0 ? all + rest : all;                                                                     \
    }                                                                                                                 \
    DEVICE T about_##T(moments_##T a, T m)                                                                            \
    {                                                                                                                 \
        const T apart = (a.mean - m) + a.rest;                                                                        \
        return a.count == 0 ? 0 : a.square + a.count * (apart * apart);                                               \
    }                                                                                                                 \
    DEVICE T within_##T(T x) { return x > LARGEST ? LARGEST : x > -LARGEST ? x : -LARGEST; }                          \
    template <i32 N>                                                                                                  \
    DEVICE void take_##T(scaled_##T& a, const T (&x)[N], i32)                                                         \
    {                                                                                                                 \
        const T most = within_##T(tree_max<N>(x));                                                                    \
        if (most > a.top) {                                                                                           \
            const T less = exp_##T(a.top - most);                                                                     \
            a.sum = {a.sum.hi * less, a.sum.lo * less}, a.top = most;                                                 \
        }                                                                                                             \
        T e[N];                                                                                                       \
        for (i32 i = 0; i < N; i++) e[i] = exp_##T(x[i] - a.top);                                                     \
        a.sum = sum_##T(a.sum, pair_of_##T(tree_sum<N>(e)));                                                          \
    }                                                                                                                 \
    DEVICE scaled_##T met_##T(scaled_##T a, i32) { return a; }                                                        \
    DEVICE scaled_##T together_##T(scaled_##T a, scaled_##T b)                                                        \
    {                                                                                                                 \
        const T top = a.top > b.top ? a.top : b.top, of_a = exp_##T(a.top - top), of_b = exp_##T(b.top - top);        \
        const pair_##T first = {a.sum.hi * of_a, a.sum.lo * of_a}, second = {b.sum.hi * of_b, b.sum.lo * of_b};       \
        return {top, 0, sum_##T(first, second)};                                                                      \
    }                                                                                                                 \
    DEVICE T about_##T(scaled_##T a, T m) { return total_##T(a.sum) * exp_##T(a.top - m); }
RUNNING(f32, 0x1.fffffep127f)
RUNNING(f64, 0x1.fffffffffffffp1023)
#undef RUNNING

// Blocks of a launch that wait for others of it: each learns the how manieth it is, and says when what it had to do is done. One
// thread of a block waits for all others of it.
#ifdef __CUDA_ARCH__
DEVICE u32 next_ticket(u32* at) { return atomicAdd(at, 1u); }
DEVICE void say_done(u32* count) { asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory"); }
DEVICE void await_done(const u32* count, u32 all)
{
    for (;;) {
        u32 done;
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(done) : "l"(count) : "memory");
        if (done >= all) return;
        __nanosleep(32);
    }
}
#else
DEVICE u32 next_ticket(u32* at) { return (*at)++; }
DEVICE void say_done(u32* count) { ++*count; }
DEVICE void await_done(const u32*, u32) {}
#endif
