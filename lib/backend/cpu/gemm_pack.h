// Copies a panel of any strided, windowed matrix into the order tiles read it in; part of gemm_isa.cc, built per instruction set.
#pragma once
#include "lib/backend/cpu/gemm_tile.h"
#include "lib/backend/cpu/quotient.h"

namespace ng::cpu {
namespace {

struct Range {
    int64_t first, last;
};

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Elements of the run that begins at point i and ends where the fastest axis wraps.
inline int64_t run_at(const Strand& s, int64_t i) { return least(s.extent - remainder(s.position + i, s.extent), s.count - i); }

// The e of 0 .. count for which 0 <= start + e * advance < limit.
inline Range inside(int64_t start, int64_t advance, int64_t limit, int64_t count)
{
    int64_t first, last;
    if (advance == 1) {
        first = most(0, -start), last = least(count, limit - start);
    } else if (advance > 1) {
        first = start < 0 ? (advance - 1 - start) / advance : 0;
        last = start >= limit ? 0 : least(count, (limit - 1 - start) / advance + 1);
    } else {
        first = start >= limit ? (start - limit) / -advance + 1 : 0;
        last = start < 0 ? 0 : least(count, start / -advance + 1);
    }
    return first < last ? Range{first, last} : Range{count, count};
}

// The part of `count` elements along `run` from point a, at the other index's point b, that is in the tensor.
[[gnu::noinline]] inline Range valid(const PanelSource& s, const Strand& run, const Point& a, const Point& b, int64_t count)
{
    Range r = {0, count};
    for (int d = 0; d < s.bounds; d++) {
        const int64_t at = a.at[d] + b.at[d];
        if (d == run.bound) r = inside(at, run.advance, s.limit[d], count);
        else if (uint64_t(at) >= uint64_t(s.limit[d])) return {count, count};
    }
    return r;
}

template <int BYTES>
struct Chunk {
    typedef char Type __attribute__((vector_size(BYTES), aligned(1), may_alias));
};

// `rows` rows of `bytes` bytes, SIZE <= bytes <= 2 * SIZE: two copies that overlap.
template <int SIZE>
void copy_overlapping(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows, int64_t bytes)
{
    using Type = typename Chunk<SIZE>::Type;
    for (int64_t r = 0; r < rows; r++, to += to_step, from += from_step) {
        const Type a = *reinterpret_cast<const Type*>(from), b = *reinterpret_cast<const Type*>(from + bytes - SIZE);
        *reinterpret_cast<Type*>(to) = a;
        *reinterpret_cast<Type*>(to + bytes - SIZE) = b;
    }
}

inline void copy_rows(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows, int64_t bytes)
{
    if (bytes > 2 * VECTOR_BYTES) {
        for (int64_t r = 0; r < rows; r++) __builtin_memcpy(to + r * to_step, from + r * from_step, size_t(bytes));
        return;
    }
    if (VECTOR_BYTES >= 64 && bytes >= 64) return copy_overlapping<64>(to, to_step, from, from_step, rows, bytes);
    if (VECTOR_BYTES >= 32 && bytes >= 32) return copy_overlapping<32>(to, to_step, from, from_step, rows, bytes);
    if (bytes >= 16) return copy_overlapping<16>(to, to_step, from, from_step, rows, bytes);
    if (bytes >= 8) return copy_overlapping<8>(to, to_step, from, from_step, rows, bytes);
    if (bytes >= 4) return copy_overlapping<4>(to, to_step, from, from_step, rows, bytes);
    if (bytes >= 2) return copy_overlapping<2>(to, to_step, from, from_step, rows, bytes);
    if (bytes == 1)
        for (int64_t r = 0; r < rows; r++) to[r * to_step] = from[r * from_step];
}

// Blocks of GROUP lines by GROUP steps of depth, turned in registers of 16 or 32 bytes.
template <class Raw, int BYTES, bool IS_WIDE = VECTOR_BYTES >= 32>
struct Turn {
    static constexpr int GROUP = 1;
    static void block(Raw* to, int64_t, const Raw* const* from, int64_t e) { *to = from[0][e]; }
};
template <class Raw>
struct Turn<Raw, 4, false> {
    static constexpr int GROUP = 4;
    typedef uint32_t Four __attribute__((vector_size(16), aligned(4), may_alias));
    static void block(Raw* to, int64_t width, const Raw* const* from, int64_t e)
    {
        Four r[4];
        for (int i = 0; i < 4; i++) r[i] = *reinterpret_cast<const Four*>(from[i] + e);
        const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
        const Four c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7), d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
        *reinterpret_cast<Four*>(to) = __builtin_shufflevector(a, b, 0, 1, 4, 5);
        *reinterpret_cast<Four*>(to + width) = __builtin_shufflevector(a, b, 2, 3, 6, 7);
        *reinterpret_cast<Four*>(to + 2 * width) = __builtin_shufflevector(c, d, 0, 1, 4, 5);
        *reinterpret_cast<Four*>(to + 3 * width) = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    }
};
template <class Raw>
struct Turn<Raw, 4, true> {
    static constexpr int GROUP = 8;
    typedef uint32_t Eight __attribute__((vector_size(32)));         // where it is in registers: arrays of less aligned ones are read as if aligned
    typedef uint32_t Lying __attribute__((vector_size(32), aligned(4), may_alias));
    static void block(Raw* to, int64_t width, const Raw* const* from, int64_t e)
    {
        Eight r[8];
        for (int i = 0; i < 8; i++) r[i] = *reinterpret_cast<const Lying*>(from[i] + e);
        turn(r);
        for (int i = 0; i < 8; i++) *reinterpret_cast<Lying*>(to + i * width) = r[i];
    }
    __attribute__((always_inline)) static void turn(Eight (&r)[8])
    {
        Eight pairs[8], fours[8];
        for (int i = 0; i < 8; i += 2) {
            pairs[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
            pairs[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
        }
        for (int i = 0; i < 8; i += 4)
            for (int half = 0; half < 2; half++) {
                fours[i + 2 * half] = __builtin_shufflevector(pairs[i + half], pairs[i + 2 + half], 0, 1, 8, 9, 4, 5, 12, 13);
                fours[i + 2 * half + 1] = __builtin_shufflevector(pairs[i + half], pairs[i + 2 + half], 2, 3, 10, 11, 6, 7, 14, 15);
            }
        for (int i = 0; i < 4; i++) {
            r[i] = __builtin_shufflevector(fours[i], fours[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
            r[i + 4] = __builtin_shufflevector(fours[i], fours[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
        }
    }
};
template <class Raw, bool IS_WIDE>
struct Turn<Raw, 8, IS_WIDE> {
    static constexpr int GROUP = 2;
    typedef uint64_t Two __attribute__((vector_size(16), aligned(8), may_alias));
    static void block(Raw* to, int64_t width, const Raw* const* from, int64_t e)
    {
        const Two a = *reinterpret_cast<const Two*>(from[0] + e), b = *reinterpret_cast<const Two*>(from[1] + e);
        *reinterpret_cast<Two*>(to) = __builtin_shufflevector(a, b, 0, 2);
        *reinterpret_cast<Two*>(to + width) = __builtin_shufflevector(a, b, 1, 3);
    }
};

template <class Raw>
struct Packer {
    static constexpr int GROUP = Turn<Raw, sizeof(Raw)>::GROUP;

    static int64_t place(const PanelSource& s, int64_t p, int64_t j) { return p * s.width + j; }

    // For each element, in moves of consecutive memory: starting a run costs about 16 of them.
    static double effort(const Strand& t)
    {
        const int64_t distance = t.step < 0 ? -t.step : t.step;
        return 16.0 / double(t.extent) + (t.extent == 1 || distance > 16 ? 4 : distance > 1 ? 2 : 1);
    }

    static void run(void* panel, const PanelSource& s)
    {
        Raw* out = static_cast<Raw*>(panel);
        if constexpr (sizeof(Raw) >= 4)
            if (s.panel_step) return side_by_side(out, s);
        if (s.lines.count < s.width) __builtin_memset(out, 0, sizeof(Raw) * size_t(s.depth.count * s.width));
        if (effort(s.lines) <= effort(s.depth)) along_lines(out, s);
        else along_depth(out, s);
    }

    // Runs of lines are consecutive in the panel; the same run at all steps of depth of a run, or at one
    // where both change coordinates.
    static void along_lines(Raw* out, const PanelSource& s)
    {
        const Raw* data = reinterpret_cast<const Raw*>(s.data);
        for (int64_t p = 0, rows; p < s.depth.count; p += rows) {
            rows = s.depth.bound >= 0 && s.lines.bound >= 0 ? 1 : run_at(s.depth, p);
            for (int64_t j = 0, n; j < s.lines.count; j += n) {
                n = run_at(s.lines, j);
                const Point &line = s.lines.points[j], &step = s.depth.points[p];
                const bool   is_down = s.lines.bound < 0;
                const Range  r = is_down ? Range{0, n} : valid(s, s.lines, line, step, n), down = is_down ? valid(s, s.depth, step, line, rows) : Range{0, rows};
                Raw*         to = out + place(s, p, j);
                if (r.last - r.first < n || down.last - down.first < rows) fill_around(to, s, {rows, n}, r, down);
                if (r.first == r.last || down.first == down.last) continue;
                const Raw* from = data + line.offset + step.offset + r.first * s.lines.step + down.first * s.depth.step;
                rows_of_run(to + r.first + down.first * s.width, from, s, down.last - down.first, r.last - r.first);
            }
        }
    }
    // What of size.first rows of size.last elements is not in both ranges.
    [[gnu::noinline]] static void fill_around(Raw* to, const PanelSource& s, Range size, Range across, Range down)
    {
        for (int64_t q = 0; q < size.first; q++, to += s.width) {
            const bool is_in = q >= down.first && q < down.last;
            for (int64_t e = 0; e < (is_in ? across.first : size.last); e++) to[e] = Raw(s.fill);
            for (int64_t e = across.last; is_in && e < size.last; e++) to[e] = Raw(s.fill);
        }
    }
    [[gnu::noinline]] static void rows_of_run(Raw* to, const Raw* from, const PanelSource& s, int64_t rows, int64_t count)
    {
        const int64_t step = s.lines.step, next = s.depth.step;
        if (step == 1 || count == 1)
            return copy_rows(reinterpret_cast<char*>(to), s.width * int64_t(sizeof(Raw)), reinterpret_cast<const char*>(from),
                             next * int64_t(sizeof(Raw)), rows, count * int64_t(sizeof(Raw)));
        for (int64_t q = 0; q < rows; q++, to += s.width, from += next)
            for (int64_t e = 0; e < count; e++) to[e] = from[e * step];
    }

    // A few steps of depth go through all panels before the next few: memory is read in long runs, from few pages at once. What comes
    // soon, the beginning of the next few's too, is asked for.
    static void side_by_side(Raw* out, const PanelSource& s)
    {
        constexpr int64_t STEPS = 8, AHEAD = 1024 / int64_t(sizeof(Raw));
        const int64_t     whole = s.lines.count / s.width * s.width, left = s.lines.count - whole;
        const Raw*        data = reinterpret_cast<const Raw*>(s.data) + s.lines.points[0].offset;
        if (left) __builtin_memset(out + whole / s.width * s.panel_step, 0, sizeof(Raw) * size_t(s.depth.count * s.width));
        for (int64_t p = 0, rows; p < s.depth.count; p += rows) {
            rows = least(STEPS, run_at(s.depth, p));
            const Raw* from = data + s.depth.points[p].offset;
            Raw*       to = out + p * s.width;
            for (int64_t j = 0; j < whole; j += s.width, to += s.panel_step) {
                const int64_t soon = j + AHEAD < whole ? j + AHEAD : j + AHEAD - whole + rows * s.depth.step;
                for (int64_t q = 0; q < rows; q++) ask(from + soon + q * s.depth.step, s.width);
                rows_of_run(to, from + j, s, rows, s.width);
            }
            if (left) rows_of_run(to, from + whole, s, rows, left);
        }
    }

    // Runs of depth are a line's own column of the panel; GROUP lines at a time where memory is consecutive. The last ones are a
    // group as well, with lines of the one before.
    static void along_depth(Raw* out, const PanelSource& s)
    {
        for (int64_t p = 0, n; p < s.depth.count; p += n) {
            n = run_at(s.depth, p);
            for (int64_t j = 0; j < s.lines.count; j += GROUP)
                group(out, s, p, n, most(0, least(j, s.lines.count - GROUP)), least(GROUP, s.lines.count));
        }
    }
    static void group(Raw* out, const PanelSource& s, int64_t p, int64_t n, int64_t j, int64_t lines)
    {
        const Raw* data = reinterpret_cast<const Raw*>(s.data);
        const Raw* from[GROUP];
        Range      each[GROUP], all = {0, n};
        for (int64_t i = 0; i < lines; i++) {
            each[i] = valid(s, s.depth, s.depth.points[p], s.lines.points[j + i], n);
            from[i] = data + s.lines.points[j + i].offset + s.depth.points[p].offset;
            all.first = most(all.first, each[i].first), all.last = least(all.last, each[i].last);
        }
        const bool turns = GROUP > 1 && lines == GROUP && s.depth.step == 1 && all.last - all.first >= GROUP;
        if (turns) all.last = all.first + (all.last - all.first) / GROUP * GROUP;
        else all.first = all.last = 0;
        if (s.depth.step == 1)
            for (int64_t i = j + GROUP; i < least(j + 2 * GROUP, s.lines.count); i++) ask(data + s.lines.points[i].offset + s.depth.points[p].offset, n);
        for (int64_t e = all.first; e < all.last; e += GROUP)
            Turn<Raw, sizeof(Raw)>::block(out + place(s, p + e, j), s.width, from, e);
        for (int64_t i = 0; i < lines; i++) {
            line(out, s, p, j + i, {0, all.first}, each[i], from[i]);
            line(out, s, p, j + i, {all.last, n}, each[i], from[i]);
        }
    }
    static void line(Raw* out, const PanelSource& s, int64_t p, int64_t j, Range part, Range inside, const Raw* from)
    {
        for (int64_t e = part.first; e < part.last; e++)
            out[place(s, p + e, j)] = e >= inside.first && e < inside.last ? from[e * s.depth.step] : Raw(s.fill);
    }
};

}  // namespace
}  // namespace ng::cpu
