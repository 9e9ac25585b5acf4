// Panels whose unit is four bytes: bytes by fours, 16-bit elements by twos; part of gemm_isa.cc, built once per instruction set.
#pragma once
#include "lib/backend/cpu/gemm_pack.h"

namespace ng::cpu {
namespace {

template <class Raw>
struct Weave {
    static constexpr int UNIT = 4 / int(sizeof(Raw)), CHUNK = 16 / int(sizeof(Raw));
    typedef uint8_t  Bytes __attribute__((vector_size(16), aligned(1), may_alias));
    typedef uint16_t Pairs __attribute__((vector_size(16), aligned(1), may_alias));
    typedef uint32_t Units __attribute__((vector_size(16), aligned(1), may_alias));

    static void run(void* panels, const WeaveSource& s)
    {
        char* out = static_cast<char*>(panels);
        if (s.line_step == 1) across(out, s);
        else down(out, s);
        const int64_t units = (s.depth + UNIT - 1) / UNIT, left = s.lines % s.width;
        char*         last = at(out, s, s.lines / s.width * s.width, 0);
        for (int64_t u = 0; left && u < units; u++)
            for (int64_t j = left; j < s.width; j++) reinterpret_cast<uint32_t*>(last)[u * s.width + j] = s.flip;
    }

  private:
    static char* at(char* out, const WeaveSource& s, int64_t line, int64_t unit)
    {
        return out + line / s.width * s.panel_bytes + 4 * (unit * s.width + line % s.width);
    }
    // Depth past the end reads 0.
    [[gnu::noinline]] static void one(char* out, const WeaveSource& s, int64_t line, int64_t unit)
    {
        const Raw* from = reinterpret_cast<const Raw*>(s.data) + line * s.line_step + unit * UNIT * s.depth_step;
        uint32_t   word = 0;
        for (int i = 0; i < UNIT && unit * UNIT + i < s.depth; i++) word |= uint32_t(from[i * s.depth_step]) << (8 * int(sizeof(Raw)) * i);
        *reinterpret_cast<uint32_t*>(at(out, s, line, unit)) = word ^ s.flip;
    }

    // 16 bytes of each of UNIT rows become CHUNK units.
    static void chunk(char* to, const Raw* const* rows, int64_t line, uint32_t flip)
    {
        const Units flips = {flip, flip, flip, flip};
        Units*      out = reinterpret_cast<Units*>(to);
        Pairs       low[2], high[2];
        if constexpr (UNIT == 4) {
            for (int i = 0; i < 2; i++) {
                const Bytes x = *reinterpret_cast<const Bytes*>(rows[2 * i] + line), y = *reinterpret_cast<const Bytes*>(rows[2 * i + 1] + line);
                low[i] = reinterpret_cast<Pairs>(__builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
                high[i] = reinterpret_cast<Pairs>(__builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31));
            }
        } else {
            for (int i = 0; i < 2; i++) low[i] = *reinterpret_cast<const Pairs*>(rows[i] + line);
        }
        out[0] = reinterpret_cast<Units>(__builtin_shufflevector(low[0], low[1], 0, 8, 1, 9, 2, 10, 3, 11)) ^ flips;
        out[1] = reinterpret_cast<Units>(__builtin_shufflevector(low[0], low[1], 4, 12, 5, 13, 6, 14, 7, 15)) ^ flips;
        if constexpr (UNIT == 4) {
            out[2] = reinterpret_cast<Units>(__builtin_shufflevector(high[0], high[1], 0, 8, 1, 9, 2, 10, 3, 11)) ^ flips;
            out[3] = reinterpret_cast<Units>(__builtin_shufflevector(high[0], high[1], 4, 12, 5, 13, 6, 14, 7, 15)) ^ flips;
        }
    }
    // 64 bytes of two rows become a panel's row of units.
    static constexpr int WIDE = UNIT == 2 && VECTOR_BYTES == 64 ? 32 : 0;
    static void wide(char* to, const Raw* const* rows, int64_t line, uint32_t flip)
    {
        typedef uint16_t WidePairs __attribute__((vector_size(64), aligned(1), may_alias));
        typedef uint32_t WideUnits __attribute__((vector_size(64), aligned(1), may_alias));
        const WidePairs x = *reinterpret_cast<const WidePairs*>(rows[0] + line), y = *reinterpret_cast<const WidePairs*>(rows[1] + line);
        const WidePairs low = __builtin_shufflevector(x, y, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
        const WidePairs high = __builtin_shufflevector(x, y, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
        reinterpret_cast<WideUnits*>(to)[0] = reinterpret_cast<WideUnits>(low) ^ flip;
        reinterpret_cast<WideUnits*>(to)[1] = reinterpret_cast<WideUnits>(high) ^ flip;
    }
    // Lines are consecutive in memory: UNIT rows of it at a time go through all panels. A chunk may write past its panel's
    // width: there the next unit follows, or what ends the panel, and both are written later.
    static void across(char* out, const WeaveSource& source)
    {
        const WeaveSource s = source;                  // what is written cannot be this
        const int64_t whole = s.depth / UNIT, units = (s.depth + UNIT - 1) / UNIT;
        const Raw*    rows[UNIT];
        for (int64_t u = 0; u < whole; u++) {
            for (int i = 0; i < UNIT; i++) rows[i] = reinterpret_cast<const Raw*>(s.data) + (u * UNIT + i) * s.depth_step;
            char* panel = at(out, s, 0, u);
            for (int64_t first = 0; first < s.lines; first += s.width, panel += s.panel_bytes) {
                const int64_t end = least(first + s.width, s.lines);
                char*         to = panel;
                int64_t       j = first;
                if constexpr (WIDE > 0)
                    if (s.width == WIDE && end - first == WIDE) {
                        for (int i = 0; i < UNIT; i++) __builtin_prefetch(rows[i] + j + 2 * UNIT * s.depth_step);
                        wide(to, rows, j, s.flip);
                        continue;
                    }
                for (; j < end && j + CHUNK <= s.lines; j += CHUNK, to += 4 * CHUNK) {
                    for (int i = 0; i < UNIT; i++) __builtin_prefetch(rows[i] + j + 2 * UNIT * s.depth_step);
                    chunk(to, rows, j, s.flip);
                }
                for (; j < end; j++) one(out, source, j, u);
            }
        }
        for (int64_t j = 0; whole < units && j < s.lines; j++) one(out, source, j, whole);
    }

    // A line's own depth is consecutive: blocks of eight or four lines by as many units are turned in registers.
    static void down(char* out, const WeaveSource& source)
    {
        const WeaveSource s = source;                  // what is written cannot be this
        const int64_t whole = s.depth_step == 1 ? s.depth / UNIT / 4 * 4 : 0, units = (s.depth + UNIT - 1) / UNIT;
        for (int64_t first = 0; first < s.lines; first += s.width) {
            const int64_t end = least(first + s.width, s.lines);
            int64_t       j = first;
            for (int64_t lines = 0; end - first >= 4 && j < end; j += lines) {
                lines = EIGHTS && j + 8 <= end ? 8 : 4;
                j = least(j, end - lines);             // the last four, with lines of the ones before
                const int64_t turned = whole / lines * lines;
                char*         to = at(out, s, j, 0);
                for (int64_t u = 0; u < turned; u += lines, to += 4 * lines * s.width) {
                    if (lines == 4) turn(to, s, j, u);
                    else turn_eight(to, s, j, u);
                }
                for (int64_t u = turned; u < units; u++)
                    for (int i = 0; i < lines; i++) one(out, source, j + i, u);
            }
            for (; j < end; j++) {
                const char* from = s.data + j * s.line_step * int64_t(sizeof(Raw));
                uint32_t*   to = reinterpret_cast<uint32_t*>(at(out, s, j, 0));
                for (int64_t u = 0; u < whole; u++) {
                    uint32_t word;
                    __builtin_memcpy(&word, from + 4 * u, 4);
                    to[u * s.width] = word ^ s.flip;
                }
                for (int64_t u = whole; u < units; u++) one(out, source, j, u);
            }
        }
    }
    static constexpr bool EIGHTS = VECTOR_BYTES >= 32;
    static void turn_eight(char* to, const WeaveSource& s, int64_t line, int64_t unit)
    {
        if constexpr (EIGHTS) {
            typedef uint32_t Anywhere __attribute__((vector_size(32), aligned(1), may_alias));
            using Block = Turn<uint32_t, 4, true>;
            const char* const from = s.data + (line * s.line_step + unit * UNIT) * int64_t(sizeof(Raw));
            typename Block::Eight r[8];
            for (int i = 0; i < 8; i++) r[i] = *reinterpret_cast<const Anywhere*>(from + i * s.line_step * int64_t(sizeof(Raw))) ^ s.flip;
            Block::turn(r);
            for (int i = 0; i < 8; i++) *reinterpret_cast<Anywhere*>(to + 4 * i * s.width) = r[i];
        }
    }
    static void turn(char* to, const WeaveSource& s, int64_t line, int64_t unit)
    {
        const Units flips = {s.flip, s.flip, s.flip, s.flip};
        const char* from = s.data + (line * s.line_step + unit * UNIT) * int64_t(sizeof(Raw));
        Units       r[4];
        for (int i = 0; i < 4; i++) r[i] = *reinterpret_cast<const Units*>(from + i * s.line_step * int64_t(sizeof(Raw))) ^ flips;
        const Units a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
        const Units c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7), d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
        *reinterpret_cast<Units*>(to) = __builtin_shufflevector(a, b, 0, 1, 4, 5);
        *reinterpret_cast<Units*>(to + 4 * s.width) = __builtin_shufflevector(a, b, 2, 3, 6, 7);
        *reinterpret_cast<Units*>(to + 8 * s.width) = __builtin_shufflevector(c, d, 0, 1, 4, 5);
        *reinterpret_cast<Units*>(to + 12 * s.width) = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    }
};

}  // namespace
}  // namespace ng::cpu
