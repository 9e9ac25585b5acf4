// Sums down the rows of memory: a few rows meet before they meet their accumulators, as a tree that is no deeper than pairwise.
#pragma once
#include "lib/backend/cpu/convert_loops.h"
#include "lib/backend/cpu/math_core.h"
#include "lib/backend/cpu/processor.h"

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
INLINE void add_to(double* sums, __m512 v)
{
    const __m256 half[] = {__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7), __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)};
    for (int k = 0; k < 2; k++, sums += 8) _mm512_storeu_pd(sums, _mm512_loadu_pd(sums) + _mm512_maskz_cvtps_pd(0xff, half[k]));
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
INLINE void add_to(double* sums, __m256 v)
{
    const __m128 half[] = {_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)};
    for (int k = 0; k < 2; k++, sums += 4) _mm256_storeu_pd(sums, _mm256_loadu_pd(sums) + _mm256_cvtps_pd(half[k]));
}
#else
constexpr int64_t WIDE = 1;
using Wide = float;
template <Dtype D> INLINE Wide wide_of(const uint16_t* x) { return Codec<D>::load(*x); }
INLINE void add_to(double* sums, float v) { *sums += double(v); }
#endif
// One vector of a row, or it and those of before in `run`, to `run` or to the accumulators.
template <bool FROM_RUN, bool TO_SUMS>
INLINE void meet_vector(double* sums, float* run, Wide v)
{
    if constexpr (FROM_RUN) {
        Wide before;
        __builtin_memcpy(&before, run, sizeof before);
        v = before + v;
    }
    if constexpr (TO_SUMS) add_to(sums, v);
    else __builtin_memcpy(run, &v, sizeof v);
}
// Past the end codes are 0.
template <Dtype D, bool FROM_RUN, bool TO_SUMS>
INLINE void meet_codes(double* sums, float* run, const uint16_t* x, int64_t count)
{
    int64_t i = 0;
    for (; i + WIDE <= count; i += WIDE) meet_vector<FROM_RUN, TO_SUMS>(sums + i, run + i, wide_of<D>(x + i));
    if (i == count) return;
    const size_t left = size_t(count - i);
    uint16_t     rest[WIDE] = {};
    double       all[WIDE] = {};
    __builtin_memcpy(rest, x + i, left * 2);
    if (TO_SUMS) __builtin_memcpy(all, sums + i, left * 8);
    meet_vector<FROM_RUN, TO_SUMS>(all, run + i, wide_of<D>(rest));
    if (TO_SUMS) __builtin_memcpy(sums + i, all, left * 8);
}
template <Dtype D, bool FROM_RUN, bool TO_SUMS>
INLINE void meet_part(double* sums, float* run, const Element<D>* x, int64_t count)
{
    if constexpr (IS_HALF<D>) return meet_codes<D, FROM_RUN, TO_SUMS>(sums, run, x, count);
    ELEMENTWISE
    for (int64_t i = 0; i < count; i++) {
        const float v = FROM_RUN ? run[i] + float(x[i]) : float(x[i]);
        if constexpr (TO_SUMS) sums[i] += double(v);
        else run[i] = v;
    }
}
// What is `ahead` of the row, if not null, is asked for in between.
template <Dtype D, bool FROM_RUN, bool TO_SUMS>
INLINE void meet_row(double* sums, float* run, const Element<D>* x, const Element<D>* ahead, int64_t count)
{
    constexpr int64_t LINE = 64 / sizeof *x, PART = 4 * LINE;
    const int64_t     part = ahead ? PART : count;
    for (int64_t done = 0; done < count; done += part) {
        _Pragma("GCC unroll 4")
        for (int k = 0; ahead && k < 4; k++) __builtin_prefetch(ahead + done + k * LINE);
        meet_part<D, FROM_RUN, TO_SUMS>(sums + done, run + done, x + done, count - done < part ? count - done : part);
    }
}

// One row after the other, three a turn: memory is read in its order, as fast as it can be. Of 64 MB of f16 by two threads, Zen
// 4: 1.6 ms, as reading alone; 2.2 with a row a turn, 3.0 with eight rows at once. A Xeon (Cascade Lake), which does not read
// ahead by itself from one page of 4 KB to the next: 4.2, and 3.3 where what is a page ahead is asked for.
template <Dtype D>
INLINE void sum_in_order(double* sums, const Element<D>* x, int64_t stride, int64_t rows, int64_t count)
{
    constexpr int64_t PAGE = 4096 / sizeof *x;
    alignas(64) float run[MOST_COLUMNS];
    const Element<D>* ahead = rows > 1 && processor().stops_at_pages ? x + (count < PAGE ? PAGE / count : 1) * stride : nullptr;
    const auto meet_next = [&](auto from_run, auto to_sums) {
        meet_row<D, from_run(), to_sums()>(sums, run, x, ahead, count);
        x += stride;
        if (ahead) ahead += stride;
    };
    for (; rows >= 3; rows -= 3) {
        meet_next(std::false_type(), std::false_type());
        meet_next(std::true_type(), std::false_type());
        meet_next(std::true_type(), std::true_type());
    }
    for (; rows > 0; rows--) meet_next(std::false_type(), std::true_type());
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
#if defined(__AVX512F__)
// Columns whose sums stay in registers while all rows go by, four at once; not where units are as wide as the vectors, which read L2 in order in
// less: Zen 5 takes 0.86 us for 32 rows of 1024 whose sums come and go, by these strips 1.18. Zen 4 adds and widens in one half of its units and multiplies in the
// other, which half of the additions therefore take: times one, the same bits. A run of 32 rows of 1024 f32 in L2: 1.43 us, without that 1.53, and
// 1.58 to 1.63 where sums come and go.
constexpr int64_t STRIP = 128;
INLINE void sum_strip(const RowSums& r, int64_t first)
{
    constexpr int SUMS = STRIP / 8;
    const auto*   x = static_cast<const float*>(r.x) + first;
    const bool    is_last = r.rounded && r.rows % 4 == 0;
    const __m512  one = _mm512_set1_ps(1);
    __m512d       sums[SUMS];
    _Pragma("GCC unroll 16")
    for (int k = 0; k < SUMS; k++) sums[k] = r.is_first ? _mm512_setzero_pd() : _mm512_loadu_pd(r.sums + first + k * 8);
    for (int64_t row = 0; row + 4 <= r.rows; row += 4, x += 4 * r.stride) {
        const float *x1 = x + r.stride, *x2 = x1 + r.stride, *x3 = x2 + r.stride;
        _Pragma("GCC unroll 8")
        for (int k = 0; k < SUMS; k += 2) {
            const auto   at = [&](const float* of) { return _mm512_loadu_ps(of + k * 8); };
            const __m512 four = _mm512_fmadd_ps(at(x), one, at(x1)) + _mm512_fmadd_ps(at(x2), one, at(x3));
            sums[k] += _mm512_maskz_cvtps_pd(0xff, __builtin_shufflevector(four, four, 0, 1, 2, 3, 4, 5, 6, 7));
            sums[k + 1] += _mm512_maskz_cvtps_pd(0xff, __builtin_shufflevector(four, four, 8, 9, 10, 11, 12, 13, 14, 15));
        }
    }
    _Pragma("GCC unroll 16")
    for (int k = 0; k < SUMS; k++) {
        if (is_last) _mm256_storeu_ps(r.rounded + first + k * 8, _mm512_maskz_cvtpd_ps(0xff, sums[k]));
        else _mm512_storeu_pd(r.sums + first + k * 8, sums[k]);
    }
}
#else
constexpr int64_t STRIP = 1;
#endif
// More than four rows where they are the first. Leaves up to three; rounded becomes null where that is done.
INLINE const float* sum_at_once(RowSums& r)
{
    const auto* x = static_cast<const float*>(r.x);
#if defined(__AVX512F__)
    if (r.count >= STRIP && r.rows >= 4 && !processor().is_full_wide) {
        const int64_t rows = r.rows / 4 * 4;
        for (int64_t first = 0; first < r.count; first += STRIP) sum_strip(r, first);
        r.rows -= rows;
        if (r.rows == 0) r.rounded = nullptr;
        return x + rows * r.stride;
    }
#endif
    const auto next = [&] { r.rows -= 4, x += 4 * r.stride; };
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
    RowSums    r;
    for (int64_t done = 0; done < all.count; done += r.count) {
        const auto*   x = static_cast<const Element<D>*>(all.x) + done;
        const int64_t left = all.count - done;
        r = all;
        r.x = x;
        r.sums += done;
        r.count = left > MOST_COLUMNS ? MOST_COLUMNS : is_at_once && left >= STRIP ? left / STRIP * STRIP : left;
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
