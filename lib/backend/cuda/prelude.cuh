// What every generated kernel in CUDA C stands on: its types, and how its threads move, convert and exchange them.
//
// No header is included.
typedef signed char        i8;
typedef short              i16;
typedef int                i32;
typedef long long          i64;
typedef unsigned char      u8;
typedef unsigned short     u16;
typedef unsigned int       u32;
typedef unsigned long long u64;
typedef float              f32;
typedef double             f64;

#define DEVICE static __device__ __forceinline__
#define HAS_F64

DEVICE u32 bits_f32(f32 x) { return __float_as_uint(x); }
DEVICE u64 bits_f64(f64 x) { return (u64)__double_as_longlong(x); }
DEVICE f32 f32_bits(u32 u) { return __uint_as_float(u); }
DEVICE f64 f64_bits(u64 u) { return __longlong_as_double((i64)u); }
DEVICE u32 count_bits_u32(u32 x) { return (u32)__popc(x); }
DEVICE u64 count_bits_u64(u64 x) { return (u64)__popcll(x); }

// What lies side by side in memory, moved by one access of at most 16 bytes where its address allows.
template <class T, i32 N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vector {
    T e[N];
};

// The first `count` of them, where fewer are left.
template <i32 N, class T>
DEVICE Vector<T, N> first_of(const T* from, i64 count)
{
    if (count >= N) return *(const Vector<T, N>*)from;
    Vector<T, N> r;
#pragma unroll
    for (i32 j = 0; j < N; j++) r.e[j] = from[j < count ? j : 0];
    return r;
}
// Two of 16 bits may come as one of 32. Compilers do not always see that 16 bytes are one access.
template <class T, class V>
DEVICE void put(T* to, V v)
{
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(V) == 16 && sizeof(v.e[0]) == 4) {
        const u32* w = (const u32*)v.e;
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory");
        return;
    }
#endif
    *(V*)to = v;
}
// What is read for the last time, and written after that, makes room in the second cache for what is still to be read again.
template <class V>
DEVICE V last_of(const void* from)
{
#ifdef __CUDA_ARCH__
    union {
        V   all;
        u32 words[sizeof(V) < 4 ? 1 : sizeof(V) / 4];
    } r;
    u32* w = r.words;
    if constexpr (sizeof(V) == 16) {
        asm volatile("ld.global.cs.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "l"(from));
        return r.all;
    }
    if constexpr (sizeof(V) == 8) {
        asm volatile("ld.global.cs.v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(from));
        return r.all;
    }
#endif
    return *(const V*)from;
}
template <class T, class V>
DEVICE void put_last(T* to, V v)
{
#ifdef __CUDA_ARCH__
    const u32* w = (const u32*)&v;
    if constexpr (sizeof(V) == 16) {
        asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]) : "memory");
        return;
    }
    if constexpr (sizeof(V) == 8) {
        asm volatile("st.global.cs.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(w[0]), "r"(w[1]) : "memory");
        return;
    }
#endif
    *(V*)to = v;
}
template <i32 N, class T, class V>
DEVICE void put_first(T* to, V v, i64 count)
{
    if (count >= N) return put(to, v);
#pragma unroll
    for (i32 j = 0; j < N; j++)
        if (j < count) to[j] = (T)(v.e[j * sizeof(T) / sizeof(v.e[0])] >> (j * sizeof(T) % sizeof(v.e[0])) * 8);
}

// A vector on its way to shared memory while its thread goes on. Sendings come in groups; all but the last N of them are there.
template <class V>
DEVICE void send(V* to, const void* from)
{
#ifdef __CUDA_ARCH__
    const u32 at = (u32)__cvta_generic_to_shared(to);
    if constexpr (sizeof(V) == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(sizeof(V)) : "memory");
#else
    *to = *(const V*)from;
#endif
}
DEVICE void end_sending()
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <i32 N>
DEVICE void await_sent()
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// What will be read is on its way to the second cache, without registers.
DEVICE void ask_for(const void* at)
{
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#endif
}

// n / extent, by what NumberKind::Factor and Shift say of the extent.
DEVICE i32 quotient_of(i32 n, u32 factor, i32 shift) { return (i32)(__umulhi((u32)n * 2, factor) >> shift); }
DEVICE i64 quotient_of(i64 n, u64 factor, i32 shift) { return (i64)(__umul64hi((u64)n * 2, factor) >> shift); }

// What the thread of the warp has whose number differs by `reach`, and what the first of `lanes` neighbours has.
template <class T>
DEVICE T shuffled(T x, i32 reach) { return __shfl_xor_sync(0xffffffffu, x, reach); }
template <class T>
DEVICE T of_first(T x, i32 lanes) { return __shfl_sync(0xffffffffu, x, 0, lanes < 32 ? lanes : 32); }

// A kernel may be started before what was launched ahead of it ends: here it waits for that, and sees what that wrote. The
// next one may come as soon as all blocks of this one have.
DEVICE void follow()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" ::: "memory");
#endif
}

// Blocks of a cluster: all have begun between enter and await, so that their shared memory may be written to; they meet, and
// see what was given to them before.
#if __CUDA_ARCH__ >= 900
DEVICE void enter_cluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
DEVICE void await_cluster() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
DEVICE void meet_cluster() { asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory"); }
// x to where `to` is in the shared memory of the cluster's block of this rank.
template <class T>
DEVICE void give(T* to, T x, i32 rank)
{
    union { T all; u32 words[(sizeof(T) + 3) / 4]; } r;
    r.words[sizeof(r.words) / 4 - 1] = 0;
    r.all = x;
    u32 at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((u32)__cvta_generic_to_shared(to)), "r"(rank));
    if constexpr (sizeof(T) < 4) {
        asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(at), "r"(r.words[0]) : "memory");
        if constexpr (sizeof(T) == 2) asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(at + 1), "r"(r.words[0] >> 8) : "memory");
        return;
    }
#pragma unroll
    for (i32 k = 0; k < (i32)(sizeof(T) / 4); k++) asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(at + 4 * k), "r"(r.words[k]) : "memory");
}
#elif !defined(__CUDA_ARCH__)
DEVICE void enter_cluster() {}
DEVICE void await_cluster() {}
template <class T>
DEVICE void give(T* to, T x, i32) { *to = x; }
#endif

// The processor's conversions where this is compiled for one.
#ifdef __CUDA_ARCH__
#define HAS_F16
DEVICE f32 f32_of_f16(u16 code)
{
    f32 x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
    return x;
}
DEVICE u16 f16_of_f32(f32 x)
{
    u16 code;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
    return code;
}
DEVICE f32 round_f16(f32 x) { return f32_of_f16(f16_of_f32(x)); }
#if __CUDA_ARCH__ >= 800
#define HAS_BF16
DEVICE f32 f32_of_bf16(u16 code) { return f32_bits((u32)code << 16); }
DEVICE u16 bf16_of_f32(f32 x)
{
    u16 code;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(x));
    return code;
}
DEVICE f32 round_bf16(f32 x) { return f32_of_bf16(bf16_of_f32(x)); }
#endif
#endif

// Numbers rounded as their codes, side by side: two by one instruction where there is one.
DEVICE u16 f16_of_f32(f32 x);
DEVICE f32 round_f16(f32 x);
DEVICE u16 bf16_of_f32(f32 x);
DEVICE f32 round_bf16(f32 x);
DEVICE u16 nearest_f16(f32 x) { return f16_of_f32(round_f16(x)); }
DEVICE u16 nearest_bf16(f32 x) { return bf16_of_f32(round_bf16(x)); }
#ifdef HAS_BF16
#define PACKED(name)                                                                                                \
    template <i32 N>                                                                                                \
    DEVICE Vector<u32, N / 2> packed_##name(const f32 (&x)[N])                                                      \
    {                                                                                                               \
        Vector<u32, N / 2> r;                                                                                       \
        for (i32 j = 0; j < N; j += 2) asm("cvt.rn." #name "x2.f32 %0, %1, %2;" : "=r"(r.e[j / 2]) : "f"(x[j + 1]), "f"(x[j])); \
        return r;                                                                                                   \
    }                                                                                                               \
    DEVICE Vector<u16, 1> packed_##name(const f32 (&x)[1])                                                          \
    {                                                                                                               \
        Vector<u16, 1> r;                                                                                           \
        r.e[0] = name##_of_f32(x[0]);                                                                               \
        return r;                                                                                                   \
    }
#else
#define PACKED(name)                                                                                                \
    template <i32 N>                                                                                                \
    DEVICE Vector<u16, N> packed_##name(const f32 (&x)[N])                                                          \
    {                                                                                                               \
        Vector<u16, N> r;                                                                                           \
        for (i32 j = 0; j < N; j++) r.e[j] = nearest_##name(x[j]);                                                  \
        return r;                                                                                                   \
    }
#endif
PACKED(f16)
PACKED(bf16)
#undef PACKED
