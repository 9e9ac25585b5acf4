// Device text that CUDA C and OpenCL C share: limits, integers' functions, conversions, sums in pairs, random numbers.
//
// It stands after a dialect's own prelude, which brings the types, DEVICE, bits_*, *_bits, the functions of floats, HAS_F64
// where there are doubles and HAS_F16 where it converts f16 itself. Numbers of narrow formats are their codes in memory.
typedef u16 f16;
typedef u16 bf16;
typedef u8  e4m3;
typedef u8  e5m2;

#define LOWEST_bool  false
#define HIGHEST_bool true
#define LOWEST_i8    (-128)
#define HIGHEST_i8   127
#define LOWEST_i16   (-32768)
#define HIGHEST_i16  32767
#define LOWEST_i32   (-2147483647 - 1)
#define HIGHEST_i32  2147483647
#define LOWEST_i64   (-(i64)9223372036854775807 - 1)
#define HIGHEST_i64  ((i64)9223372036854775807)
#define LOWEST_u8    0
#define HIGHEST_u8   255
#define LOWEST_u16   0
#define HIGHEST_u16  65535
#define LOWEST_u32   0u
#define HIGHEST_u32  4294967295u
#define LOWEST_u64   ((u64)0)
#define HIGHEST_u64  (~(u64)0)
#define LOWEST_f32   f32_bits(0xff800000u)
#define HIGHEST_f32  f32_bits(0x7f800000u)
#define LOWEST_f64   f64_bits(0xfff0000000000000u)
#define HIGHEST_f64  f64_bits(0x7ff0000000000000u)

// ---- integers: U is T without a sign, W at least 32 bits of that; they wrap, and by zero they are 0 ----------------------

#define INTEGER(T, U, W)                                                                        \
    DEVICE T floor_##T(T x) { return x; }                                                       \
    DEVICE T ceil_##T(T x) { return x; }                                                        \
    DEVICE T trunc_##T(T x) { return x; }                                                       \
    DEVICE T rint_##T(T x) { return x; }                                                        \
    DEVICE bool signbit_##T(T x) { return x < 0; }                                              \
    DEVICE T popcount_##T(T x) { return (T)count_bits_##W((W)(U)x); }                           \
    DEVICE T power_##T(T x, U y)                                                                \
    {                                                                                           \
        W r = 1, base = (W)x;                                                                   \
        for (; y; y >>= 1) {                                                                    \
            r = y & 1 ? r * base : r;                                                           \
            base *= base;                                                                       \
        }                                                                                       \
        return (T)r;                                                                            \
    }
#define SIGNED(T, U, W)                                                                         \
    INTEGER(T, U, W)                                                                            \
    DEVICE T abs_##T(T x) { return x < 0 ? (T)(0 - (W)x) : x; }                                 \
    DEVICE T quotient_##T(T x, T y) { return y == 0 ? 0 : y == -1 ? (T)(0 - (W)x) : (T)(x / y); } \
    DEVICE T fmod_##T(T x, T y) { return y == 0 || y == -1 ? 0 : (T)(x % y); }                  \
    DEVICE T rem_##T(T x, T y)                                                                  \
    {                                                                                           \
        const T r = fmod_##T(x, y);                                                             \
        return r != 0 && (r < 0) != (y < 0) ? (T)(r + y) : r;                                   \
    }                                                                                           \
    DEVICE T floor_div_##T(T x, T y)                                                            \
    {                                                                                           \
        const T q = quotient_##T(x, y), r = fmod_##T(x, y);                                     \
        return r != 0 && (r < 0) != (y < 0) ? (T)(q - 1) : q;                                   \
    }                                                                                           \
    DEVICE T pow_##T(T x, T y)                                                                  \
    {                                                                                           \
        if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;                          \
        return power_##T(x, (U)y);                                                              \
    }
#define UNSIGNED(T, W)                                                                          \
    INTEGER(T, T, W)                                                                            \
    DEVICE T abs_##T(T x) { return x; }                                                         \
    DEVICE T fmod_##T(T x, T y) { return y == 0 ? 0 : (T)(x % y); }                             \
    DEVICE T rem_##T(T x, T y) { return fmod_##T(x, y); }                                       \
    DEVICE T floor_div_##T(T x, T y) { return y == 0 ? 0 : (T)(x / y); }                        \
    DEVICE T pow_##T(T x, T y) { return power_##T(x, y); }
SIGNED(i8, u8, u32)
SIGNED(i16, u16, u32)
SIGNED(i32, u32, u32)
SIGNED(i64, u64, u64)
UNSIGNED(u8, u32)
UNSIGNED(u16, u32)
UNSIGNED(u32, u32)
UNSIGNED(u64, u64)
#undef INTEGER
#undef SIGNED
#undef UNSIGNED
DEVICE bool signbit_bool(bool x) { return false; }
DEVICE bool popcount_bool(bool x) { return x; }

// ---- floats: what no language has --------------------------------------------------------------------------------------

// floor_div: where the quotient nears the digits of T, what is left of it is divided once more.
#define FLOAT(T, U, SIGN)                                                                       \
    DEVICE bool signbit_##T(T x) { return (bits_##T(x) >> SIGN) != 0; }                         \
    DEVICE T rem_##T(T x, T y)                                                                  \
    {                                                                                           \
        const T r = fmod_##T(x, y);                                                             \
        return r == 0 ? copysign_##T(0, y) : (r < 0) != (y < 0) ? r + y : r;                    \
    }                                                                                           \
    DEVICE T floor_div_##T(T x, T y)                                                            \
    {                                                                                           \
        const T r = fmod_##T(x, y), first = (x - r) / y;                                        \
        const bool is_long = abs_##T(first) >= 1024 && abs_##T(first) < HIGHEST_##T;            \
        const T whole = is_long ? first + (fma_##T(-first, y, x) - r) / y : first;              \
        const T q = whole - (r != 0 && (r < 0) != (y < 0) ? 1 : 0), f = floor_##T(q);           \
        return y == 0 ? x / y : q == 0 ? copysign_##T(0, x / y) : q - f > (T)0.5f ? f + 1 : f;  \
    }                                                                                           \
    /* A sum or product as a number and its rest (Knuth 1969), which infinities have not. */    \
    typedef struct {                                                                            \
        T hi, lo;                                                                               \
    } pair_##T;                                                                                 \
    DEVICE pair_##T pair_of_##T(T x)                                                            \
    {                                                                                           \
        pair_##T r;                                                                             \
        r.hi = x;                                                                               \
        r.lo = 0;                                                                               \
        return r;                                                                               \
    }                                                                                           \
    DEVICE pair_##T sum_##T(pair_##T a, pair_##T b)                                             \
    {                                                                                           \
        pair_##T r;                                                                             \
        r.hi = a.hi + b.hi;                                                                     \
        const T t = r.hi - a.hi;                                                                \
        r.lo = (a.hi - (r.hi - t)) + (b.hi - t) + (a.lo + b.lo);                                \
        return r;                                                                               \
    }                                                                                           \
    DEVICE pair_##T prod_##T(pair_##T a, pair_##T b)                                            \
    {                                                                                           \
        pair_##T r;                                                                             \
        const T hi = a.hi * b.hi, cross = a.hi * b.lo + a.lo * b.hi;                            \
        const T lo = fma_##T(a.hi, b.hi, -hi) + (cross + a.lo * b.lo), all = hi + lo;           \
        /* The rest is brought below hi's last place: over many products it would grow. */      \
        const bool has_rest = lo - lo == 0;                                                     \
        r.hi = has_rest ? all : hi;                                                             \
        r.lo = has_rest ? lo - (all - hi) : lo;                                                 \
        return r;                                                                               \
    }                                                                                           \
    DEVICE T total_##T(pair_##T a) { return a.lo - a.lo == 0 ? a.hi + a.lo : a.hi; }
FLOAT(f32, u32, 31)
#ifdef HAS_F64
FLOAT(f64, u64, 63)
#endif
#undef FLOAT

// silu by a root of the exponential, which is no denormal where its product with x is none.
#define LOGISTIC(T)                                                                             \
    DEVICE T sigmoid_##T(T x)                                                                   \
    {                                                                                           \
        const T e = exp_##T(-abs_##T(x));                                                       \
        return (x < 0 ? e : 1) / (1 + e);                                                       \
    }                                                                                           \
    DEVICE T silu_##T(T x)                                                                      \
    {                                                                                           \
        const T root = exp_##T(abs_##T(x) * (T)-0.5f);                                          \
        return (x < 0 ? x * root * root : x) / (1 + root * root);                               \
    }
#ifndef HAS_LOGISTIC
LOGISTIC(f32)
#endif
#ifdef HAS_F64
LOGISTIC(f64)
#endif
#undef LOGISTIC

// ---- conversions (contract N2) -----------------------------------------------------------------------------------------

// Floats to integers: to nearest even, saturating, NaN is 0.
#define CLAMPED(I, T)                                                                                        \
    DEVICE I I##_of_##T(T x)                                                                                 \
    {                                                                                                        \
        const i64 v = i64_of_##T(x);                                                                         \
        return (I)(v < (i64)LOWEST_##I ? (i64)LOWEST_##I : v > (i64)HIGHEST_##I ? (i64)HIGHEST_##I : v);     \
    }
#define TO_INTEGERS(T)                                                                                       \
    DEVICE i64 i64_of_##T(T x)                                                                               \
    {                                                                                                        \
        const T r = rint_##T(x);                                                                             \
        return x != x ? 0 : r >= (T)0x1p63f ? HIGHEST_i64 : r < (T)-0x1p63f ? LOWEST_i64 : (i64)r;           \
    }                                                                                                        \
    DEVICE u64 u64_of_##T(T x)                                                                               \
    {                                                                                                        \
        const T r = rint_##T(x);                                                                             \
        return r > 0 ? r >= (T)0x1p64f ? HIGHEST_u64 : (u64)r : 0;                                           \
    }                                                                                                        \
    CLAMPED(i8, T) CLAMPED(i16, T) CLAMPED(i32, T) CLAMPED(u8, T) CLAMPED(u16, T) CLAMPED(u32, T)
TO_INTEGERS(f32)
#ifdef HAS_F64
TO_INTEGERS(f64)
#endif
#undef TO_INTEGERS
#undef CLAMPED

// A number as an f32 whose last bit is set where anything was cut off: rounding that to fewer bits is rounding the number
// (Boldo & Melquiond 2008).
DEVICE f32 odd_of_u64(u64 x)
{
    const bool is_big = (x >> 63) != 0;
    const u64 kept = is_big ? x >> 1 | (x & 1) : x;
    const f32 f = (f32)kept;
    const u64 back = (u64)f;
    const u32 u = bits_f32(f);
    return f32_bits(back == kept ? u : (back > kept ? u - 1 : u) | 1) * (is_big ? 2.0f : 1.0f);
}
DEVICE f32 odd_of_i64(i64 x) { return x < 0 ? -odd_of_u64(0 - (u64)x) : odd_of_u64((u64)x); }
#ifdef HAS_F64
DEVICE f32 odd_of_f64(f64 x)
{
    const f32 f = (f32)x;
    const u32 u = bits_f32(f), a = u & 0x7fffffff;
    const u32 cut = abs_f64((f64)f) > abs_f64(x) ? a - 1 : a;
    return x != x || (f64)f == x ? f : f32_bits(cut | 1 | (u & 0x80000000));
}
#endif

// Formats by their bits of exponent and mantissa. A number among those of the format:
DEVICE f32 rounded(f32 x, i32 exponent, i32 mantissa, u32 largest, bool saturates)
{
    const i32 drop = 23 - mantissa, bias = (1 << (exponent - 1)) - 1;
    const u32 u = bits_f32(x), a = u & 0x7fffffff, sign = u & 0x80000000;
    // Half a unit is added, less one bit where the last kept is even. A carry goes into the exponent.
    u32 r = (a + ((1u << (drop - 1)) - 1) + ((a >> drop) & 1)) & ~((1u << drop) - 1);
    if (exponent < 8) {
        // Denormal ones: adding the power of two whose last place is the format's smallest number rounds.
        const f32 anchor = f32_bits((u32)(128 - bias + drop) << 23);
        r = a < (u32)(128 - bias) << 23 ? bits_f32((f32_bits(a) + anchor) - anchor) : r;
    }
    r = r > largest ? (saturates ? largest : 0x7f800000) : r;
    return f32_bits((a > 0x7f800000 ? 0x7fc00000 : r) | sign);
}
// The code of a number that the format has.
DEVICE u32 code_of(f32 x, i32 exponent, i32 mantissa, bool is_finite)
{
    const i32 drop = 23 - mantissa, bias = (1 << (exponent - 1)) - 1;
    const u32 u = bits_f32(x), a = u & 0x7fffffff, all = ((1u << exponent) - 1) << mantissa;
    const f32 anchor = f32_bits((u32)(128 - bias + drop) << 23);
    u32 r = exponent == 8 ? a >> drop : a < (u32)(128 - bias) << 23 ? bits_f32(f32_bits(a) + anchor) - bits_f32(anchor) : (a - ((u32)(127 - bias) << 23)) >> drop;
    r = !is_finite && a == 0x7f800000 ? all : r;
    r = a > 0x7f800000 ? all | (is_finite ? (1u << mantissa) - 1 : 1u << (mantissa - 1)) : r;
    return r | (u >> 31) << (exponent + mantissa);
}
DEVICE f32 number_of(u32 code, i32 exponent, i32 mantissa, bool is_finite)
{
    const i32 drop = 23 - mantissa, bias = (1 << (exponent - 1)) - 1;
    const u32 codes = (1u << (exponent + mantissa)) - 1, a = code & codes, sign = (code & (codes + 1)) << (31 - exponent - mantissa);
    if (exponent == 8) return f32_bits(a << drop | sign);
    // As an f32 of another bias; the product is exact and makes denormals normal.
    u32 r = bits_f32(f32_bits(a << drop) * f32_bits((u32)(254 - bias) << 23));
    const u32 all = ((1u << exponent) - 1) << mantissa;
    r = is_finite ? (a == codes ? 0x7fc00000 : r) : a > all ? 0x7fc00000 : a == all ? 0x7f800000 : r;
    return f32_bits(r | sign);
}
#define FORMAT(name, exponent, mantissa, largest, is_finite, saturates)                                     \
    DEVICE f32 round_##name(f32 x) { return rounded(x, exponent, mantissa, largest, saturates); }           \
    DEVICE name name##_of_f32(f32 x) { return (name)code_of(x, exponent, mantissa, is_finite); }            \
    DEVICE f32 f32_of_##name(name code) { return number_of(code, exponent, mantissa, is_finite); }
#ifndef HAS_F16
FORMAT(f16,  5, 10, 0x477fe000, false, false)
#endif
#ifndef HAS_BF16
FORMAT(bf16, 8, 7,  0x7f7f0000, false, false)
#endif
FORMAT(e4m3, 4, 3,  0x43e00000, true,  true)
FORMAT(e5m2, 5, 2,  0x47600000, false, true)
#undef FORMAT

// x between its neighbours of `bits` of mantissa: away from zero where word / 2^32 is below the part of the way that x has
// gone from the neighbour towards zero. All of it is exact.
#define STOCHASTIC(T, U, MANTISSA)                                                                          \
    DEVICE T stochastic_##T(T x, u32 word, i32 bits, i32 least, T largest, bool saturates)                  \
    {                                                                                                       \
        const T a = abs_##T(x);                                                                             \
        const i32 bias = (1 << (8 * (i32)sizeof(T) - 2 - MANTISSA)) - 1, own = (i32)(bits_##T(a) >> MANTISSA) - bias; \
        const i32 unit = (own < least ? least : own) - bits;                                                \
        const T t = ldexp_##T(a, -unit), low = floor_##T(t);                                                \
        const bool is_up = (u64)word < (u64)ceil_##T(ldexp_##T(t - low, 32));                               \
        const T r = ldexp_##T(low + (is_up ? 1 : 0), unit);                                                 \
        const T over = saturates ? largest : HIGHEST_##T;                                                   \
        return x != x ? x : copysign_##T(a == HIGHEST_##T || r > largest ? over : r, x);                    \
    }
STOCHASTIC(f32, u32, 23)
#ifdef HAS_F64
STOCHASTIC(f64, u64, 52)
// f64 to f64, where a unit may be too small for a double: on its bits.
DEVICE f64 stochastic_bits_f64(f64 x, u32 word, i32 bits)
{
    const i32 drop = 52 - bits;
    const u64 u = bits_f64(x), mask = ((u64)1 << drop) - 1, part = u & mask;
    const bool is_up = drop <= 32 ? (u64)word < part << (32 - drop) : (u64)word << (drop - 32) < part;
    return abs_f64(x) < HIGHEST_f64 ? f64_bits((u & ~mask) + (is_up ? mask + 1 : 0)) : x;
}
#endif
#undef STOCHASTIC

// ---- random numbers (contract N8): the same bits on every device -------------------------------------------------------

typedef struct {
    u32 w0, w1, w2, w3;
} Words;

// Philox4x32-10 (Salmon and others 2011) of the counter (index, step) and the key, low words first.
DEVICE Words philox(i64 index, u64 key, u64 step)
{
    u32 c0 = (u32)(u64)index, c1 = (u32)((u64)index >> 32), c2 = (u32)step, c3 = (u32)(step >> 32);
    u32 k0 = (u32)key, k1 = (u32)(key >> 32);
    for (i32 round = 0; round < 10; round++) {
        const u64 a = (u64)0xD2511F53u * c0, b = (u64)0xCD9E8D57u * c2;
        c0 = (u32)(b >> 32) ^ c1 ^ k0;
        c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1;
        c3 = (u32)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    Words r;
    r.w0 = c0;
    r.w1 = c1;
    r.w2 = c2;
    r.w3 = c3;
    return r;
}
DEVICE u32 random_bits(i64 index, u64 key, u64 step) { return philox(index, key, step).w0; }
DEVICE u32 random_word3(i64 index, u64 key, u64 step) { return philox(index, key, step).w3; }
DEVICE f32 uniform_f32(i64 index, u64 key, u64 step) { return (f32)(philox(index, key, step).w0 >> 8) * 0x1p-24f; }

// Box & Muller 1958: every + - * / and sqrt is one rounding. log of u = 2^k m with sqrt(1/2) <= m < sqrt(2).
DEVICE f32 plain_log_f32(f32 u)
{
    const u32 i = bits_f32(u) + (0x3f800000u - 0x3f3504f3u);
    const f32 k = (f32)((i32)(i >> 23) - 127), f = f32_bits((i & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const f32 s = f / (2.0f + f), z = s * s, h = (0.5f * f) * f;
    const f32 r = z * (0.66666662693f + z * (0.40000972152f + z * (0.28498786688f + z * 0.24279078841f)));
    return k * 6.9313812256e-01f - ((h - (s * (h + r) + k * 9.0580006145e-06f)) - f);
}
// cos of word / 2^32 of a turn
DEVICE f32 plain_cosine_f32(u32 word)
{
    const u32 q = (word + 0x20000000u) >> 30;
    const f32 t = (f32)(i32)(word - (q << 30)) * 0x1.921fb6p-30f, z = t * t;
    const f32 s = t + (t * z) * (-0.16666654611f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
    const f32 c = (1.0f - 0.5f * z) + (z * z) * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
    const f32 r = q & 1 ? s : c;
    return (q + 1) & 2 ? -r : r;
}
DEVICE f32 normal_f32(i64 index, u64 key, u64 step)
{
    const Words w = philox(index, key, step);
    const f32 u = ((f32)w.w0 + 0.5f) * 0x1p-32f;
    return sqrt_f32(-2.0f * plain_log_f32(u)) * plain_cosine_f32(w.w1);
}
#ifdef HAS_F64
DEVICE f64 uniform_f64(i64 index, u64 key, u64 step)
{
    const Words w = philox(index, key, step);
    return (f64)(((u64)w.w1 << 32 | w.w0) >> 11) * 0x1p-53;
}
DEVICE f64 plain_log_f64(f64 u)
{
    const u64 i = bits_f64(u) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    const f64 k = (f64)((i32)(i >> 52) - 1023), f = f64_bits((i & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    const f64 s = f / (2.0 + f), z = s * s, h = (0.5 * f) * f;
    const f64 tail = 2.222219843214978396e-01 + z * (1.818357216161805012e-01 + z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01));
    const f64 r = z * (6.666666666666735130e-01 + z * (3.999999999940941908e-01 + z * (2.857142874366239149e-01 + z * tail)));
    return k * 6.93147180369123816490e-01 - ((h - (s * (h + r) + k * 1.90821492927058770002e-10)) - f);
}
DEVICE f64 plain_cosine_f64(u32 word)
{
    const u32 q = (word + 0x20000000u) >> 30;
    const f64 t = (f64)(i32)(word - (q << 30)) * 0x1.921fb54442d18p-30, z = t * t;
    const f64 s_tail = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10);
    const f64 s = t + (t * z) * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s_tail)));
    const f64 c_tail = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11);
    const f64 c = (1.0 - 0.5 * z) + (z * z) * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c_tail)));
    const f64 r = q & 1 ? s : c;
    return (q + 1) & 2 ? -r : r;
}
DEVICE f64 normal_f64(i64 index, u64 key, u64 step)
{
    const Words w = philox(index, key, step);
    const f64 u = ((f64)w.w0 + 0.5) * 0x1p-32;
    return sqrt_f64(-2.0 * plain_log_f64(u)) * plain_cosine_f64(w.w1);
}
#endif
