// What every generated kernel in CUDA C stands on: its types, and the functions of ops.def as CUDA has them.
//
// No header is included. The compiler is told --fmad=false: what is written as two roundings stays two (contract N1).
// CUDA's own functions keep the bounds of ops.def (its C++ Programming Guide, mathematical functions).
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

// The greater and the lesser as ops.def has them for folds, which do not tell one zero from the other.
#if __CUDA_ARCH__ >= 800
DEVICE f32 greatest_f32(f32 x, f32 y)
{
    f32 r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}
DEVICE f32 least_f32(f32 x, f32 y)
{
    f32 r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}
#else
DEVICE f32 greatest_f32(f32 x, f32 y) { return x > y || x != x ? x : y; }
DEVICE f32 least_f32(f32 x, f32 y) { return x < y || x != x ? x : y; }
#endif

// 2^x and 1 / x by one instruction each: within 2 and 1 units in the last place where x and the result are normal; what is
// denormal is zero. And 1 / sqrt(x), within 2.
#ifdef __CUDA_ARCH__
DEVICE f32 near_exp2(f32 x)
{
    f32 r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DEVICE f32 near_reciprocal(f32 x)
{
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DEVICE f32 near_rsqrt(f32 x)
{
    f32 r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
#else
DEVICE f32 near_exp2(f32 x) { return exp2f(x); }
DEVICE f32 near_reciprocal(f32 x) { return 1 / x; }
DEVICE f32 near_rsqrt(f32 x) { return 1 / sqrtf(x); }
#endif

// Quotients and roots rounded once without a rare case, which compilers make a call of that nothing overlaps: a number next
// to the result, and by what is then left of x the result itself (Markstein 1990). Where something on the way may leave f32
// it is not tame, and all that came of it is to be computed again in the language's words. Zero by a tame number is tame.
DEVICE bool is_zero_or_from(f32 x, u32 least) { return bits_f32(x) * 2 - 1 >= least * 2 - 1; }      // |x|; least: a code
DEVICE f32 with_sign(f32 x, u32 of) { return f32_bits(bits_f32(x) | (of & 0x80000000)); }
DEVICE f32 quotient_of(f32 x, f32 y, bool& is_tame)
{
    const f32 first = near_reciprocal(y), near = fmaf(fmaf(-first, y, 1.0f), first, first);
    const f32 q = x * near, r = fmaf(fmaf(-q, y, x), near, q);
    is_tame &= is_zero_or_from(x, 0x21800000);                              // 2^-60, so that rests are no denormals
    is_tame &= fabsf(y) <= 0x1p60f;
    is_tame &= fabsf(r) <= 0x1.fffffep127f;
    return with_sign(r, bits_f32(q));
}
DEVICE f32 root_of(f32 x, bool& is_tame)
{
    const f32 near = near_rsqrt(fmaxf(x, 0x1p-100f)), r = x * near;
    is_tame &= is_zero_or_from(x, 0x0d800000);                              // 2^-100
    is_tame &= bits_f32(x) < 0x7f800000;
    return fmaf(fmaf(-r, r, x), 0.5f * near, r);
}
// x / y of 0 <= x <= y, 1 <= y <= 2, not always rounded to the nearest.
DEVICE f32 share_of(f32 x, f32 y)
{
    const f32 near = near_reciprocal(y), q = x * near;
    return fmaf(fmaf(-q, y, x), near, q);
}

// What many numbers are divided by: 1 / y in two parts, so that x times it is next to x / y at worst.
struct Inverse {
    f32 y, near, rest;
    f32 most;                            // |x| is tame from 2^-100 to this; 0: only zero is
};
DEVICE Inverse inverse_of(f32 y)
{
    const u32 code = bits_f32(y) & 0x7fffffff;
    const bool is_tame = code > 0x35800000 && code < 0x49800000;            // |y| within 2^-20 and 2^20
    Inverse r;
    r.y = y;
    bool is_rounded = true;                                                 // of such y it is 1 / y
    r.near = quotient_of(1.0f, y, is_rounded);
    r.rest = fmaf(-r.near, y, 1.0f) * r.near;
    r.most = is_tame ? 0x1p100f : -1;
    return r;
}
DEVICE f32 quotient_of(f32 x, Inverse d, bool& is_tame)
{
    const f32 q = fmaf(x, d.near, x * d.rest);
    is_tame &= is_zero_or_from(x, 0x0d800000);
    is_tame &= fabsf(x) <= d.most;
    return with_sign(fmaf(fmaf(-q, d.y, x), d.near, q), bits_f32(x) ^ bits_f32(d.y));
}
// The same of x >= 0 for f16, in which all that is too small to be tame is zero.
DEVICE f32 half_quotient_of(f32 x, Inverse d, bool& is_tame)
{
    const f32 q = fmaf(x, d.near, x * d.rest);
    is_tame &= x < d.most;
    return fmaf(fmaf(-q, d.y, x), d.near, q);
}

#define ONE(name, narrow, wide)                         \
    DEVICE f32 name##_f32(f32 x) { return narrow(x); } \
    DEVICE f64 name##_f64(f64 x) { return wide(x); }
#define TWO(name, narrow, wide)                                   \
    DEVICE f32 name##_f32(f32 x, f32 y) { return narrow(x, y); } \
    DEVICE f64 name##_f64(f64 x, f64 y) { return wide(x, y); }
ONE(abs,       fabsf,      fabs)
ONE(acos,      acosf,      acos)
ONE(acosh,     acoshf,     acosh)
ONE(asin,      asinf,      asin)
ONE(asinh,     asinhf,     asinh)
ONE(atan,      atanf,      atan)
ONE(atanh,     atanhf,     atanh)
ONE(cbrt,      cbrtf,      cbrt)
ONE(ceil,      ceilf,      ceil)
ONE(cos,       cosf,       cos)
ONE(cosh,      coshf,      cosh)
ONE(cospi,     cospif,     cospi)
ONE(erf,       erff,       erf)
ONE(erfc,      erfcf,      erfc)
ONE(exp,       expf,       exp)
ONE(exp2,      exp2f,      exp2)
ONE(expm1,     expm1f,     expm1)
ONE(floor,     floorf,     floor)
ONE(log,       logf,       log)
ONE(log10,     log10f,     log10)
ONE(log1p,     log1pf,     log1p)
ONE(log2,      log2f,      log2)
ONE(normcdf,   normcdff,   normcdf)
ONE(rint,      rintf,      rint)
ONE(sin,       sinf,       sin)
ONE(sinh,      sinhf,      sinh)
ONE(sinpi,     sinpif,     sinpi)
ONE(sqrt,      sqrtf,      sqrt)
ONE(tan,       tanf,       tan)
ONE(trunc,     truncf,     trunc)
TWO(atan2,     atan2f,     atan2)
TWO(copysign,  copysignf,  copysign)
TWO(fmod,      fmodf,      fmod)
TWO(hypot,     hypotf,     hypot)
TWO(nextafter, nextafterf, nextafter)
TWO(pow,       powf,       pow)
#undef ONE
#undef TWO
// Near zero x (1 + x^2 p(x^2)), p a polynomial of degree 3 that leaves 1.5 units of 2^-24 of the result at most up to 0.6;
// beyond, 1 - 2 / (exp(2 x) + 1). Both are computed: neighbours seldom go one way.
DEVICE f32 tanh_f32(f32 x)
{
    const f32 a = fabsf(x), square = x * x;
    const f32 far = fmaf(-2.0f, near_reciprocal(near_exp2(a * 2.88539008f) + 1.0f), 1.0f);
    f32 p = 0x1.ff983ep-7f;
    p = fmaf(p, square, -0x1.abb818p-5f);
    p = fmaf(p, square, 0x1.10a712p-3f);
    p = fmaf(p, square, -0x1.555368p-2f);
    return a < 0.6f ? x * fmaf(p, square, 1.0f) : copysignf(far, x);
}
DEVICE f64 tanh_f64(f64 x) { return tanh(x); }

// max(x, 0) - a times what of the standard normal distribution lies beyond a = |x|. That is exp(-a^2 / 2) q g(q) for
// q = a / (a + 3.25), g a polynomial of degree 7 that is 2^-22.6 off at most up to 14.3; beyond that all is 0. It also makes up for
// the exponent's factor being an f32. The square's rest goes into the exponent, whose whole part comes in two halves, so that
// denormal numbers are rounded once. Within 12 units in the last place.
DEVICE f32 gelu_f32(f32 x)
{
    const f32 a = least_f32(fabsf(x), 15.0f), r = near_reciprocal(a + 3.25f), q = a * r;
    f32 g = 0x1.dfc068p-4f;
    g = fmaf(g, q, -0x1.618f32p-2f);
    g = fmaf(g, q, 0x1.4162d8p-3f);
    g = fmaf(g, q, 0x1.7e4662p-2f);
    g = fmaf(g, q, 0x1.d87118p-4f);
    g = fmaf(g, q, -0x1.c7b81ap+0f);
    g = fmaf(g, q, 0x1.4b5f7ep+1f);
    g = fmaf(g, q, -1.625f);
    const f32 square = a * a, rest = fmaf(a, a, -square);
    const f32 big = fmaf(square, -0.721347511f, 25165824.0f + 254.0f), whole = big - (25165824.0f + 254.0f);
    const f32 part = fmaf(rest, -0.721347511f, fmaf(square, -0.721347511f, -whole)), scale = f32_bits(bits_f32(big) << 23);
    const f32 half = 0.5f * x;
    return fmaf((q * g) * near_exp2(part) * scale, scale, half + fabsf(half));
}
DEVICE f64 gelu_f64(f64 x) { return x * normcdf(x); }

#define HAS_LOGISTIC
DEVICE f32 sigmoid_f32(f32 x)
{
    const f32 e = expf(-fabsf(x));
    return share_of(x < 0 ? e : 1.0f, 1.0f + e);
}
// By a root of the exponential, which is no denormal where its product with x is none.
DEVICE f32 silu_f32(f32 x)
{
    const f32 root = expf(fabsf(x) * -0.5f);
    return (x < 0 ? x * root * root : x) * near_reciprocal(1.0f + root * root);
}
DEVICE f32 fma_f32(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }
DEVICE f64 fma_f64(f64 x, f64 y, f64 z) { return fma(x, y, z); }
DEVICE f32 ldexp_f32(f32 x, i32 n) { return ldexpf(x, n); }
DEVICE f64 ldexp_f64(f64 x, i32 n) { return ldexp(x, n); }
