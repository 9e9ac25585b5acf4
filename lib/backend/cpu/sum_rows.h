// Sums down the rows of memory: a few rows meet before they meet their accumulators, as a tree that is no deeper than pairwise.
#pragma once
#include "lib/backend/cpu/convert_loops.h"
#include "lib/backend/cpu/math_core.h"

namespace ng::cpu {
namespace {

constexpr int64_t MOST_COLUMNS = 1024;                 // sums of a few rows that are kept in the first cache; whole vectors

template <Dtype D> constexpr bool IS_HALF = D == Dtype::f16 || D == Dtype::bf16;
template <Dtype D> using Element = Held<D>;            // as memory has it

#if defined(__AVX512F__)
constexpr int64_t WIDE = 16;
using Wide = __m512;
template <Dtype D>
INLINE Wide wide_of(const uint16_t* x)
{
    const __m256i codes = _mm256_loadu_si256((const __m256i*)x);
    if constexpr (D == Dtype::f16) return _mm512_maskz_cvtph_ps(0xffff, codes);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, codes), 16));
}
#elif defined(__F16C__) && defined(__AVX2__)
constexpr int64_t WIDE = 8;
using Wide = __m256;
template <Dtype D>
INLINE Wide wide_of(const uint16_t* x)
{
    const __m128i codes = _mm_loadu_si128((const __m128i*)x);
    if constexpr (D == Dtype::f16) return _mm256_cvtph_ps(codes);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16));
}
#else
constexpr int64_t WIDE = 1;
using Wide = float;
template <Dtype D> INLINE Wide wide_of(const uint16_t* x) { return Codec<D>::load(*x); }
INLINE void add_to(double* sums, float v) { *sums += double(v); }
#endif
#if defined(__F16C__) && defined(__AVX2__)
using WideSums = double __attribute__((vector_size(WIDE * 8)));
INLINE void add_to(double* sums, Wide v)
{
    WideSums all;
    __builtin_memcpy(&all, sums, sizeof all);
    all += __builtin_convertvector(v, WideSums);
    __builtin_memcpy(sums, &all, sizeof all);
}
#endif

// The row, or it and those of before in `run`, to `run` or to the accumulators. Past a row's end codes are 0.
template <Dtype D, bool FROM_RUN, bool TO_SUMS>
INLINE void meet_codes(double* sums, float* run, const uint16_t* x, int64_t count)
{
    uint16_t rest[WIDE] = {};
    for (int64_t i = 0; i < count; i += WIDE) {
        const int64_t left = count - i;
        if (left < WIDE) __builtin_memcpy(rest, x + i, size_t(left) * 2);
        Wide v = wide_of<D>(left < WIDE ? rest : x + i);
        if constexpr (FROM_RUN) {
            Wide before;
            __builtin_memcpy(&before, run + i, sizeof before);
            v = before + v;
        }
        if constexpr (!TO_SUMS) {
            __builtin_memcpy(run + i, &v, sizeof v);
        } else if (left >= WIDE) {
            add_to(sums + i, v);
        } else {
            double all[WIDE] = {};
            __builtin_memcpy(all, sums + i, size_t(left) * 8);
            add_to(all, v);
            __builtin_memcpy(sums + i, all, size_t(left) * 8);
        }
    }
}
template <Dtype D, bool FROM_RUN, bool TO_SUMS>
INLINE void meet_row(double* sums, float* run, const Element<D>* x, int64_t count)
{
    if constexpr (IS_HALF<D>) return meet_codes<D, FROM_RUN, TO_SUMS>(sums, run, x, count);
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) {
        const float v = FROM_RUN ? run[i] + float(x[i]) : float(x[i]);
        if constexpr (TO_SUMS) sums[i] += double(v);
        else run[i] = v;
    }
}

// One row after the other, three a turn: memory is read in its order, as fast as it can be. Of 64 MB of f16 by two threads, Zen
// 4: 1.6 ms, as reading alone; 2.2 with a row a turn, 3.0 with eight rows at once.
template <Dtype D>
INLINE void sum_in_order(double* sums, const Element<D>* x, int64_t stride, int64_t rows, int64_t count)
{
    alignas(64) float run[MOST_COLUMNS];
    for (; rows >= 3; rows -= 3, x += 3 * stride) {
        meet_row<D, false, false>(sums, run, x, count);
        meet_row<D, true, false>(sums, run, x + stride, count);
        meet_row<D, true, true>(sums, run, x + 2 * stride, count);
    }
    for (; rows > 0; rows--, x += stride) meet_row<D, false, true>(sums, run, x, count);
}
// Four rows at once. Of 32 rows of 1024 f32 in L2, Zen 4: 1.2 us, and 2.9 with one row a turn. Eight take 1.5: rows 4 KiB apart
// fill all the ways that a set of the first cache has, and accumulators lose their place there.
template <bool IS_FIRST, bool IS_LAST>
INLINE void meet_four(const RowSums& r, const float* x)
{
    const float *x1 = x + r.stride, *x2 = x1 + r.stride, *x3 = x2 + r.stride;
    double*      sums = r.sums;
    float*       rounded = r.rounded;
    const auto   count = r.count;
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) {
        const double sum = (IS_FIRST ? 0.0 : sums[i]) + double((x[i] + x1[i]) + (x2[i] + x3[i]));
        if constexpr (IS_LAST) rounded[i] = float(sum);
        else sums[i] = sum;
    }
}
// More than four rows where they are the first. Leaves up to three; rounded becomes null where that is done.
INLINE const float* sum_at_once(RowSums& r)
{
    const auto* x = static_cast<const float*>(r.x);
    const auto  next = [&] { r.rows -= 4, x += 4 * r.stride; };
    if (r.is_first) meet_four<true, false>(r, x), next();
    const bool rounds = r.rounded && r.rows >= 4 && r.rows % 4 == 0;
    for (const int64_t least = rounds ? 8 : 4; r.rows >= least; next()) meet_four<false, false>(r, x);
    if (!rounds) return x;
    meet_four<false, true>(r, x), next();
    r.rounded = nullptr;
    return x;
}

template <Dtype D>
void sum_rows(const RowSums& all)
{
    const bool is_at_once = D == Dtype::f32 && !all.is_far;
    for (int64_t done = 0; done < all.count; done += MOST_COLUMNS) {
        const auto* x = static_cast<const Element<D>*>(all.x) + done;
        RowSums     r = all;
        r.x = x;
        r.sums += done;
        r.count = all.count - done < MOST_COLUMNS ? all.count - done : MOST_COLUMNS;
        if (r.rounded) r.rounded += done;
        if (r.is_first && !(is_at_once && r.rows > 4)) {
            __builtin_memset(r.sums, 0, size_t(r.count) * sizeof *r.sums);
            r.is_first = false;
        }
        if constexpr (D == Dtype::f32)
            if (is_at_once) x = sum_at_once(r);
        const int64_t turn = is_at_once ? 1 : r.rows;
        for (; r.rows > 0; r.rows -= turn, x += turn * r.stride) sum_in_order<D>(r.sums, x, r.stride, turn, r.count);
        if (r.rounded) convert<Dtype::f32, double>(r.rounded, r.sums, r.count);
    }
}

}  // namespace
}  // namespace ng::cpu
