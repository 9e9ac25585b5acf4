// Micro-kernels of the packed GEMM in vector extensions; part of gemm_isa.cc, which is built once for each instruction set.
#pragma once
#include "lib/backend/cpu/gemm_table.h"
#include "lib/backend/cpu/isa_name.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ng::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int TILE_ROWS = 14;                      // 28 accumulators of 32 registers
constexpr int LAST_ROWS = 8;                       // the most of a last tile that is worth a loop of its own; 0: none is
#elif defined(__AVX2__)
constexpr int TILE_ROWS = 6;                       // 12 of 16
constexpr int LAST_ROWS = 0;
#else
constexpr int TILE_ROWS = 6;
constexpr int LAST_ROWS = 0;
#endif

template <class T>
struct Lanes {
    static constexpr int COUNT = VECTOR_BYTES / int(sizeof(T));
    typedef T Vector __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};

template <class T>
struct Multiply {
    using Element = T;
    using Vector = typename Lanes<T>::Vector;
    static constexpr bool HAS_TAIL = false;
    static T    spread(const T& a) { return a; }
    static void step(Vector& sum, const T& a, const Vector& b) { sum += a * b; }
};

// Pairs of 16-bit integers, an element is a pair: each lane adds two products in 32 bits. 255 * 255 * 2 fits, so nothing saturates.
struct MultiplyPairs {
    using Element = uint32_t;
    using Vector = Lanes<uint32_t>::Vector;
    static constexpr bool HAS_TAIL = false;
    static uint32_t spread(const uint32_t& a) { return a; }
    static void step(Vector& sum, const uint32_t& a, const Vector& b)
    {
#if defined(__AVX512F__)
        sum += reinterpret_cast<Vector>(_mm512_madd_epi16(_mm512_set1_epi32(int(a)), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
        sum += reinterpret_cast<Vector>(_mm256_madd_epi16(_mm256_set1_epi32(int(a)), reinterpret_cast<__m256i>(b)));
#elif defined(__x86_64__)
        sum += reinterpret_cast<Vector>(_mm_madd_epi16(_mm_set1_epi32(int(a)), reinterpret_cast<__m128i>(b)));
#else
        using Signed = Lanes<int32_t>::Vector;
        const Signed pair = reinterpret_cast<const Signed&>(b);
        sum += reinterpret_cast<Vector>((pair << 16 >> 16) * int32_t(int16_t(a)) + (pair >> 16) * (int32_t(a) >> 16));
#endif
    }
};

// Asks for `count` elements that are read soon.
template <class T>
__attribute__((always_inline)) inline void ask(const T* from, int64_t count)
{
#pragma GCC unroll 4
    for (int64_t e = 0; e < count; e += 64 / int64_t(sizeof(T))) __builtin_prefetch(from + e);
}

// Elements of a panel from what is read to what is asked for.
template <class Element>
constexpr int AHEAD = 512 / int(sizeof(Element));

// Where a tile finds its columns, step by step of depth: one behind the other in a panel, or each wherever it is in memory. soon: what is
// asked for meanwhile. Unasked, those beyond the first cache took 3 to 14 % longer on a Xeon (Cascade Lake, f64 and f32, 2026-11-22).
template <class Element, int COLUMNS>
struct InPanel {
    const Element* b;
    const Element* here() const { return b; }
    const Element* soon() const { return b + AHEAD<Element>; }
    void next() { b += COLUMNS; }
};
template <class Element>
struct InPlace {
    const Element* b;
    const int64_t* steps;
    const Element* here() const { return b + *steps; }
    const Element* soon() const { return b + steps[STEPS_AHEAD]; }
    void next() { steps++; }
};

// Two vectors of columns by TILE_ROWS rows, all of it in registers; one row of b feeds 2 * TILE_ROWS multiply-adds.
//   a  [depth][TILE_ROWS], of which the first ROWS are used     b  [depth][2 vectors]
// HAS_TAIL: another line of each, of numbers that are added to the sums of their row and of their column.
template <class Arithmetic, int ROWS = TILE_ROWS>
struct Tile {
    using Vector = typename Arithmetic::Vector;
    using Element = typename Arithmetic::Element;
    static constexpr int N = Lanes<Element>::COUNT, COLUMNS = 2 * N;

    static void run(int64_t depth, const void* a_panel, const void* b_panel, void* out, int64_t row_stride, bool accumulate)
    {
        multiply(depth, a_panel, InPanel<Element, COLUMNS>{static_cast<const Element*>(b_panel)}, out, row_stride, accumulate);
    }
    static void run_in_place(int64_t depth, const void* a_panel, const void* b, const int64_t* steps, void* out, int64_t row_stride, bool accumulate)
    {
        multiply(depth, a_panel, InPlace<Element>{static_cast<const Element*>(b), steps}, out, row_stride, accumulate);
    }
    template <class Columns>
    __attribute__((always_inline)) static void multiply(int64_t depth, const void* a_panel, Columns columns, void* out, int64_t row_stride, bool accumulate)
    {
        const Element* a = static_cast<const Element*>(a_panel);
        Element*       c = static_cast<Element*>(out);
        Vector         sum[ROWS][2];
        // The result comes from far while the sums are made.
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) __builtin_prefetch(c + i * row_stride, 1), __builtin_prefetch(c + i * row_stride + COLUMNS - 1, 1);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = Vector{};
        for (int64_t p = 0; p < depth; p++, a += TILE_ROWS, columns.next()) {
            const Element* b = columns.here();
            const Vector   b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + N);
            ask(a + AHEAD<Element>, TILE_ROWS), ask(columns.soon(), COLUMNS);
#pragma GCC unroll 16
            for (int i = 0; i < ROWS; i++) {
                const auto x = Arithmetic::spread(a[i]);
                Arithmetic::step(sum[i][0], x, b0);
                Arithmetic::step(sum[i][1], x, b1);
            }
        }
        if constexpr (Arithmetic::HAS_TAIL) {
            const Element* b = columns.here();
            const Vector   b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + N);
#pragma GCC unroll 16
            for (int i = 0; i < ROWS; i++) sum[i][0] += b0 + a[i], sum[i][1] += b1 + a[i];
        }
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) {
            Vector *c0 = reinterpret_cast<Vector*>(c + i * row_stride), *c1 = reinterpret_cast<Vector*>(c + i * row_stride + N);
            *c0 = accumulate ? *c0 + sum[i][0] : sum[i][0];
            *c1 = accumulate ? *c1 + sum[i][1] : sum[i][1];
        }
    }
};

// The part of a tile that is inside the result, to wherever its rows and columns are.
template <class T, class Memory>
void store_tile(const void* tile, int64_t tile_columns, const TileTarget& target)
{
    Memory* c = reinterpret_cast<Memory*>(target.data);
    const auto are_neighbours = [&] {
        for (int64_t j = 1; j < target.column_count; j++)
            if (target.columns[j] != target.columns[0] + j) return false;
        return true;
    };
    if (are_neighbours()) {
        for (int64_t i = 0; i < target.row_count; i++) {
            const T* from = static_cast<const T*>(tile) + i * tile_columns;
            Memory*  to = c + target.rows[i] + target.columns[0];
            for (int64_t j = 0; j < target.column_count; j++) to[j] = target.accumulate ? Memory(to[j] + Memory(from[j])) : Memory(from[j]);
        }
        return;
    }
    for (int64_t i = 0; i < target.row_count; i++) {
        const T* from = static_cast<const T*>(tile) + i * tile_columns;
        Memory*  to = c + target.rows[i];
        for (int64_t j = 0; j < target.column_count; j++) {
            Memory& out = to[target.columns[j]];
            out = target.accumulate ? Memory(out + Memory(from[j])) : Memory(from[j]);
        }
    }
}

// Sums of several lines: as many as fit in registers go down all lines; what is left goes by short vectors, then singly.
template <class T>
struct Direct {
    using Vector = typename Lanes<T>::Vector;
    static constexpr int N = Lanes<T>::COUNT, FEW = 16 / int(sizeof(T));

    // Vectors that begin at any element: arguments of templates, types that are deduced and, for clang, what a function returns by
    // reference are types without that attribute. So vectors go by these names and by value.
    struct Wide {
        using Type = Vector;
    };
    struct Short {
        typedef T Type __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
    };
    struct Single {
        using Type = T;
    };
    template <class V>
    static typename V::Type at(const T* p) { return *reinterpret_cast<const typename V::Type*>(p); }

    // term(V, l, i): what line l has for elements i on
    template <class V, int VECTORS, class Term>
    static void columns(T* sum, int64_t line_count, const Term& term)
    {
        constexpr int    WIDTH = int(sizeof(typename V::Type) / sizeof(T));
        typename V::Type s[VECTORS];
        for (int v = 0; v < VECTORS; v++) s[v] = at<V>(sum + v * WIDTH);
        for (int64_t l = 0; l < line_count; l++)
            for (int v = 0; v < VECTORS; v++) s[v] += term(V{}, l, v * WIDTH);
        for (int v = 0; v < VECTORS; v++) *reinterpret_cast<typename V::Type*>(sum + v * WIDTH) = s[v];
    }
    static void combine(void* sums, const void* const* line_starts, const void* factor, int64_t line_count, int64_t count)
    {
        T*              sum = static_cast<T*>(sums);
        const T*        factors = static_cast<const T*>(factor);
        const T* const* lines = reinterpret_cast<const T* const*>(line_starts);
        int64_t         j = 0;
        const auto      term = [&]<class V>(V, int64_t l, int64_t i) { return factors[l] * at<V>(lines[l] + j + i); };
        for (; j + 4 * N <= count; j += 4 * N) columns<Wide, 4>(sum + j, line_count, term);
        for (; j + N <= count; j += N) columns<Wide, 1>(sum + j, line_count, term);
        for (; j + FEW <= count; j += FEW) columns<Short, 1>(sum + j, line_count, term);
        for (; j < count; j++) columns<Single, 1>(sum + j, line_count, term);
    }
    static void multiply(void* sums, const void* const* x_starts, const void* const* y_starts, int64_t line_count, int64_t count)
    {
        T*              sum = static_cast<T*>(sums);
        const T* const* xs = reinterpret_cast<const T* const*>(x_starts);
        const T* const* ys = reinterpret_cast<const T* const*>(y_starts);
        int64_t         j = 0;
        const auto      term = [&]<class V>(V, int64_t l, int64_t i) { return at<V>(xs[l] + j + i) * at<V>(ys[l] + j + i); };
        for (; j + 4 * N <= count; j += 4 * N) columns<Wide, 4>(sum + j, line_count, term);
        for (; j + N <= count; j += N) columns<Wide, 1>(sum + j, line_count, term);
        for (; j + FEW <= count; j += FEW) columns<Short, 1>(sum + j, line_count, term);
        for (; j < count; j++) columns<Single, 1>(sum + j, line_count, term);
    }
    static void dot(void* sums, const void* xs, const void* ys, int64_t count)
    {
        const T *x = static_cast<const T*>(xs), *y = static_cast<const T*>(ys);
        Vector   s[4] = {};
        int64_t  j = 0;
        for (; j + 4 * N <= count; j += 4 * N)
            for (int v = 0; v < 4; v++)
                s[v] += *reinterpret_cast<const Vector*>(x + j + v * N) * *reinterpret_cast<const Vector*>(y + j + v * N);
        for (; j + N <= count; j += N) s[0] += *reinterpret_cast<const Vector*>(x + j) * *reinterpret_cast<const Vector*>(y + j);
        s[0] = (s[0] + s[1]) + (s[2] + s[3]);
        T total = 0;
        for (int v = 0; v < N; v++) total += s[0][v];
        for (; j < count; j++) total += x[j] * y[j];
        *static_cast<T*>(sums) += total;
    }
};

template <class T, class At>
void most_of(void* bests, void* ats, const void* xs, int64_t position, int64_t count)
{
    T* __restrict best = static_cast<T*>(bests);
    At* __restrict at = static_cast<At*>(ats);
    const T* x = static_cast<const T*>(xs);
    for (int64_t j = 0; j < count; j++) {
        const bool takes = (x[j] > best[j]) | ((x[j] != x[j]) & (best[j] == best[j])) | (at[j] < 0);
        best[j] = takes ? x[j] : best[j];
        at[j] = takes ? At(position) : at[j];
    }
}

}  // namespace
}  // namespace ng::cpu
