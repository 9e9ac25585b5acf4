// Tiles of byte quadruples and of bfloat16 pairs, which processors with AVX-512 may have; part of gemm_isa.cc, for its widest level.
#pragma once
#include "lib/backend/cpu/gemm_tile.h"

namespace ng::cpu {
namespace {

// Four steps of depth in a lane: signed bytes of a by unsigned bytes of b, in assembly because VNNI is no part of the level
// that this file is compiled for. Other signs are made these by adding or subtracting 128, which turns the top bit:
//   a' = a - A, b' = b + B:   sum a b = sum a' b' - B sum a + A sum b',  A and B 128 or 0, depth past the end a = b = 0
// After its units a panel has a line of 32-bit numbers: a's -B sum a of each row, b's A sum b' of each column. All of it is
// modulo 2^32.
struct MultiplyBytes {
    using Element = uint32_t;
    using Vector = Lanes<uint32_t>::Vector;
    static constexpr bool HAS_TAIL = true;
    static Vector spread(const uint32_t& a) { return reinterpret_cast<Vector>(_mm512_set1_epi32(int(a))); }
    static void step(Vector& sum, const Vector& a, const Vector& b)
    {
        asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
    }
};

// flipped: whether this operand's top bits were turned; other: whether the other's were.
inline void finish_bytes(void* panel, int64_t units, int width, bool is_rows, bool flipped, bool other)
{
    using Vector = MultiplyBytes::Vector;
    constexpr int   N = Lanes<uint32_t>::COUNT;
    uint32_t*       tail = static_cast<uint32_t*>(panel) + units * width;
    const Vector    ones = Vector{} + 0x01010101u;
    __builtin_memset(tail, 0, sizeof(uint32_t) * size_t(width));
    if (!other) return;
    for (int j = 0; j < width; j += N) {
        Vector      sum = {};
        const auto* from = static_cast<const uint32_t*>(panel) + j;
        for (int64_t u = 0; u < units; u++, from += width) {
            const Vector x = *reinterpret_cast<const Vector*>(from);    // past the width: of the next line, and not stored
            if (is_rows) asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(ones), "v"(x));
            else asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(ones));
        }
        if (is_rows) sum = (sum + (flipped ? uint32_t(512 * units) : 0u)) * uint32_t(-128);
        else sum = sum * 128u;
        for (int i = 0; i < N && j + i < width; i++) tail[j + i] = sum[i];
    }
}

// Two steps of depth in a lane, summed in f32. The instruction takes denormals for zeros and gives zeros for them.
struct MultiplyBrains {
    using Element = float;
    using Vector = Lanes<float>::Vector;
    static constexpr bool HAS_TAIL = false;
    static Vector spread(const float& a) { return reinterpret_cast<Vector>(_mm512_set1_ps(a)); }
    static void step(Vector& sum, const Vector& a, const Vector& b)
    {
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
    }
};

// After its units a panel has the least exponent field of its numbers that are not 0; far below all others where one is denormal.
inline void finish_brains(void* panel, int64_t units, int width, bool, bool, bool)
{
    const uint16_t* x = static_cast<const uint16_t*>(panel);
    uint16_t        least = 0xffff;                   // of magnitudes less one: zeros become the greatest
    for (int64_t i = 0; i < 2 * units * width; i++) {
        const uint16_t less = uint16_t((x[i] & 0x7fff) - 1);
        least = less < least ? less : least;
    }
    const int exponent = least == 0xffff ? 255 : (least + 1) >> 7;
    static_cast<int32_t*>(panel)[units * width] = exponent ? exponent : -1000;
}

// Every product is a multiple of 2^(ea - 134 + eb - 134), ea and eb the exponent fields of the least of both, and so is every sum
// rounded to f32. If that is 2^-126 or more, no sum is denormal but 0.
constexpr int SAFE_EXPONENTS = 142;

// The same sums where denormals matter: widened to f32, two rows at a time.
template <int ROWS>
void tile_of_denormals(int64_t depth, const void* a_panel, const void* b_panel, void* out, int64_t row_stride, bool accumulate)
{
    using Bits = Lanes<uint32_t>::Vector;
    using Vector = Lanes<float>::Vector;
    constexpr int N = Lanes<float>::COUNT;
    const auto    spread = [](uint32_t bits) { return reinterpret_cast<Vector>(Bits{} + bits); };
    for (int i = 0; i < ROWS; i += 2) {
        const uint32_t *a = static_cast<const uint32_t*>(a_panel) + i, *b = static_cast<const uint32_t*>(b_panel);
        Vector          sum[2][2] = {};
        for (int64_t p = 0; p < depth; p++, a += TILE_ROWS, b += 2 * N)
            for (int v = 0; v < 2; v++) {
                const Bits   pair = *reinterpret_cast<const Bits*>(b + v * N);
                const Vector low = reinterpret_cast<Vector>(pair << 16), high = reinterpret_cast<Vector>(pair & 0xffff0000u);
                for (int r = 0; r < 2; r++) sum[r][v] += spread(a[r] << 16) * low, sum[r][v] += spread(a[r] & 0xffff0000u) * high;
            }
        for (int r = 0; r < 2; r++)
            for (int v = 0; v < 2; v++) {
                Vector& c = *reinterpret_cast<Vector*>(static_cast<float*>(out) + (i + r) * row_stride + v * N);
                c = accumulate ? c + sum[r][v] : sum[r][v];
            }
    }
}

template <int ROWS>
void tile_of_brains(int64_t depth, const void* a, const void* b, void* out, int64_t row_stride, bool accumulate)
{
    const int exponents = static_cast<const int32_t*>(a)[depth * TILE_ROWS] + static_cast<const int32_t*>(b)[depth * Tile<MultiplyBrains>::COLUMNS];
    if (exponents < SAFE_EXPONENTS) return tile_of_denormals<ROWS>(depth, a, b, out, row_stride, accumulate);
    Tile<MultiplyBrains, ROWS>::run(depth, a, b, out, row_stride, accumulate);
}

}  // namespace
}  // namespace ng::cpu
