// Reductions of blocks: into one accumulator through lanes that are the same on every instruction set, or element by element.
#pragma once
#include "lib/backend/cpu/isa_name.h"
#include "lib/backend/cpu/math_core.h"

#include <limits>
#include <utility>

namespace ng::cpu {
namespace {

template <class T> constexpr T LOWEST_OF = IS_FLOAT<T> ? T(-__builtin_inf()) : std::numeric_limits<T>::lowest();
template <class T> constexpr T HIGHEST_OF = IS_FLOAT<T> ? T(__builtin_inf()) : std::numeric_limits<T>::max();

#define K(v) (T(v))
#define LOWEST (LOWEST_OF<T>)
#define HIGHEST (HIGHEST_OF<T>)
#define FOLD(name, domain_, start_, combine_, ...)                        \
    struct Fold_##name {                                                  \
        static constexpr Op     op = Op::name;                            \
        static constexpr Domain domain = Domain::domain_;                 \
        template <class T> static constexpr T start() { return start_; }  \
        template <class T> static INLINE T combine(T x, T y) { return T(combine_); } \
    };
#include "jit/ops.def"
#undef HIGHEST
#undef LOWEST
#undef K

// Element i goes to lane i mod LANES, the lanes meet as a tree: the same sums on every instruction set.
constexpr int LANES = 32;

template <class T> struct VectorOf {
    typedef T Type __attribute__((vector_size(VECTOR_BYTES)));
};
template <class Fold, class V>
INLINE V met(V x, V y)
{
    if constexpr (Fold::op == Op::max) return x > y ? x : y;
    else if constexpr (Fold::op == Op::min) return x < y ? x : y;
    else return Fold::combine(x, y);
}
template <int HALF, class V, int... J>
INLINE V exchanged(V x, std::integer_sequence<int, J...>) { return __builtin_shufflevector(x, x, (J ^ HALF)...); }
template <class Fold, int HALF, class V>
INLINE auto met_within(V x)
{
    if constexpr (HALF == 0) return x[0];
    else return met_within<Fold, HALF / 2>(met<Fold>(x, exchanged<HALF>(x, std::make_integer_sequence<int, int(sizeof(x) / sizeof(x[0]))>())));
}
// A power of two of vectors: halves meet, then halves of what is left.
template <class Fold, class V, int VECTORS>
INLINE auto met_all(V (&v)[VECTORS])
{
    _Pragma("GCC unroll 4")
    for (int half = VECTORS / 2; half >= 1; half /= 2) {
        _Pragma("GCC unroll 8")
        for (int k = 0; k < half; k++) v[k] = met<Fold>(v[k], v[k + half]);
    }
    return met_within<Fold, int(sizeof(V) / sizeof(v[0][0])) / 2>(v[0]);
}

template <class Fold, class A>
INLINE A meet(A* lane)
{
    if constexpr (VECTOR_BYTES > 16 && IS_FLOAT<A> && (Fold::op == Op::sum || Fold::op == Op::prod)) {
        typename VectorOf<A>::Type v[LANES * sizeof(A) / VECTOR_BYTES];
        __builtin_memcpy(v, lane, sizeof(v));
        return met_all<Fold>(v);
    } else {
        for (int half = LANES / 2; half >= 1; half /= 2)
            for (int j = 0; j < half; j++) lane[j] = Fold::combine(lane[j], lane[j + half]);
        return lane[0];
    }
}
// one: 1, of which the compiler does not know. Where there are units that multiply and add beside those that add, half of the sums go by them.
INLINE float added(float x, float y, [[maybe_unused]] float one)
{
#if defined(__FMA__)
    return __builtin_fmaf(x, one, y);
#else
    return x + y;
#endif
}
// f32 into lanes of f64, whole turns of LANES; how many were folded. meets: four of a sum meet before they are widened, a tree
// no deeper than pairwise (N5), at a quarter of the conversions. Unless its loop is unrolled GCC leaves the lanes in memory,
// where they wait for each store.
#ifdef __clang__
#define LANEWISE ELEMENTWISE
#else
#define LANEWISE ELEMENTWISE _Pragma("GCC unroll 32")
#endif
template <class Fold>
INLINE int64_t fold_widened(double* lane, const float* x, int64_t count, bool meets)
{
    float one = 1;
    asm("" : "+x"(one));
    int64_t i = 0;
    for (; meets && i + 4 * LANES <= count; i += 4 * LANES) {
        const float *x1 = x + LANES, *x2 = x1 + LANES, *x3 = x2 + LANES;
        LANEWISE
        for (int j = 0; j < LANES; j++) lane[j] += double(added(x[i + j], x1[i + j], one) + added(x2[i + j], x3[i + j], one));
    }
    for (; i + LANES <= count; i += LANES) {
        LANEWISE
        for (int j = 0; j < LANES; j++) lane[j] = Fold::combine(lane[j], double(x[i + j]));
    }
    return i;
}
#undef LANEWISE

template <class Fold, class A, class T>
INLINE A fold_lanes(const T* x, int64_t count, [[maybe_unused]] bool meets)
{
    alignas(64) A lane[LANES];
    for (int j = 0; j < LANES; j++) lane[j] = Fold::template start<A>();
    int64_t i = 0;
    if constexpr (std::is_same_v<A, T>) {
        for (; i + LANES <= count; i += LANES) {
            ELEMENTWISE
            for (int j = 0; j < LANES; j++) lane[j] = Fold::combine(lane[j], x[i + j]);
        }
    } else {
        i = fold_widened<Fold>(lane, x, count, meets);
    }
    for (int j = 0; i < count; i++, j++) lane[j] = Fold::combine(lane[j], A(x[i]));
    return meet<Fold>(lane);
}

template <class Fold> constexpr bool IS_GREATEST = Fold::op == Op::max || Fold::op == Op::argmax;
template <class Fold> constexpr bool IS_LEAST = Fold::op == Op::min || Fold::op == Op::argmin;
// Whether a vector of those seen held a NaN.
template <class T>
class Unordered {
  public:
    using Vector = typename VectorOf<T>::Type;
#if defined(__AVX512F__)
    INLINE void see(Vector a, Vector b)
    {
        if constexpr (sizeof(T) == 4) lanes_ = _kor_mask16(lanes_, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q));
        else lanes_ = _kor_mask16(lanes_, _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q));
    }
    INLINE bool any() const { return lanes_ != 0; }

  private:
    __mmask16 lanes_ = 0;
#else
    INLINE void see(Vector a, Vector b) { lanes_ |= (a != a) | (b != b); }
    INLINE bool any() const
    {
        int64_t codes[VECTOR_BYTES / 8], all = 0;
        __builtin_memcpy(codes, &lanes_, sizeof(lanes_));
        for (const int64_t code : codes) all |= code;
        return all != 0;
    }

  private:
    decltype(Vector{} != Vector{}) lanes_{};
#endif
};
// The processor's own instruction drops NaN, so whether there is one is seen to beside it; then all is done again, with care.
template <class Fold, class T>
[[gnu::noinline]] T fold_floats(const T* x, int64_t count)
{
    using Vector = typename VectorOf<T>::Type;
    constexpr int WIDTH = VECTOR_BYTES / int(sizeof(T)), VECTORS = 256 / VECTOR_BYTES, TURN = WIDTH * VECTORS;
    Vector best[VECTORS];
    for (Vector& v : best) v = Vector{} + Fold::template start<T>();
    Unordered<T> odd;
    int64_t i = 0;
    for (; i + TURN <= count; i += TURN) {
        _Pragma("GCC unroll 8")
        for (int k = 0; k < VECTORS; k += 2) {
            Vector v, w;
            __builtin_memcpy(&v, x + i + k * WIDTH, sizeof(v));
            __builtin_memcpy(&w, x + i + (k + 1) * WIDTH, sizeof(w));
            best[k] = met<Fold>(best[k], v);
            best[k + 1] = met<Fold>(best[k + 1], w);
            odd.see(v, w);
        }
    }
    T all = met_all<Fold>(best);
    for (; i < count; i++) all = Fold::combine(all, x[i]);
    return odd.any() ? fold_lanes<Fold, T, T>(x, count, false) : all;
}

template <class Fold, class A, class T>
INLINE A fold_block(const T* x, int64_t count, bool meets = false)
{
    if constexpr (IS_GREATEST<Fold> && IS_FLOAT<T>) return fold_floats<Fold_max>(x, count);
    else if constexpr (IS_LEAST<Fold> && IS_FLOAT<T>) return fold_floats<Fold_min>(x, count);
    else return fold_lanes<Fold, A>(x, count, meets);
}
template <class Fold, class A, class T, bool MEETS = false>
void fold_along(void* accumulator, const void* x, int64_t count)
{
    A* a = static_cast<A*>(accumulator);
    *a = Fold::combine(*a, fold_block<Fold, A>(static_cast<const T*>(x), count, MEETS));
}
template <class Fold, class A, class T>
void fold_across(void* accumulators, const void* x_, int64_t count)
{
    A*       a = static_cast<A*>(accumulators);
    const T* x = static_cast<const T*>(x_);
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) a[i] = Fold::combine(a[i], A(x[i]));
}

template <class Fold, class T>
INLINE bool is_better(T x, T than)
{
    const bool beats = Fold::op == Op::argmin ? x < than : x > than;
    return beats || (x != x && than == than);
}
template <class T> INLINE bool is_tie(T x, T y) { return x == y || (x != x && y != y); }

// The best of the block first, then where it is: the second pass runs only where the block has something better.
template <class Fold, class T>
void arg_along(void* best_, int64_t* at, const void* x_, int64_t first, int64_t step, int64_t count)
{
    T*       best = static_cast<T*>(best_);
    const T* x = static_cast<const T*>(x_);
    if (count <= 0) return;
    const T    block = fold_block<Fold, T>(x, count);
    const bool is_tied = *at >= 0 && is_tie(block, *best);
    if (*at >= 0 && !is_better<Fold>(block, *best) && !is_tied) return;
    int64_t i = 0;
    while (!is_tie(x[i], block)) i++;
    if (is_tied && *at <= first + i * step) return;
    *best = block;
    *at = first + i * step;
}
template <class Fold, class T>
void arg_across(void* best_, int64_t* at, const void* x_, int64_t position, int64_t count)
{
    T*       best = static_cast<T*>(best_);
    const T* x = static_cast<const T*>(x_);
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) {
        const bool wins = at[i] < 0 || is_better<Fold>(x[i], best[i]) || (is_tie(x[i], best[i]) && position < at[i]);
        best[i] = wins ? x[i] : best[i];
        at[i] = wins ? position : at[i];
    }
}

// Sums and products wrap alike for signed and unsigned integers; the least and the greatest do not.
template <class Fold, class T>
constexpr FoldLoops fold_loops()
{
    constexpr bool is_arg = Fold::op == Op::argmin || Fold::op == Op::argmax;
    constexpr bool is_sum = Fold::op == Op::sum || Fold::op == Op::prod;
    if constexpr (is_arg) {
        return {nullptr, nullptr, nullptr, nullptr, arg_along<Fold, T>, arg_across<Fold, T>};
    } else if constexpr (is_sum && std::is_same_v<T, float>) {
        constexpr bool meets = Fold::op == Op::sum;
        return {fold_along<Fold, double, float, meets>, fold_along<Fold, double, float>, fold_across<Fold, double, float>,
                fold_across<Fold, double, double>, nullptr, nullptr};
    } else if constexpr (is_sum && std::is_signed_v<T> && IS_INTEGER<T>) {
        return fold_loops<Fold, std::make_unsigned_t<T>>();
    } else {
        return {fold_along<Fold, T, T>, fold_along<Fold, T, T>, fold_across<Fold, T, T>, fold_across<Fold, T, T>, nullptr, nullptr};
    }
}

}  // namespace
}  // namespace ng::cpu
