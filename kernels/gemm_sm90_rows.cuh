// Results that threads write to c: fours of sums, and rows of 128 bytes from shared memory, wherever c's rows begin.
#pragma once
#include "kernels/gemm_folds.cuh"
#include "kernels/gemm_sm90_ptx.cuh"

namespace ng::kernels {
namespace {

struct TileSpot {
    i32 batch, row, column;
};

DEVICE void write_words(u32 to, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
DEVICE void read_words(u32 from, u32 (&v)[4])
{
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(from) : "memory");
}
DEVICE u32 read_word(u32 from)
{
    u32 r;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r) : "r"(from) : "memory");
    return r;
}
DEVICE void write_pair(u32 to, u32 a, u32 b) { asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(a), "r"(b) : "memory"); }
DEVICE void read_pair(u32 from, u32& a, u32& b) { asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(from) : "memory"); }
// w: a word of each of four columns, whose bytes are rows; then of each row, whose bytes are columns.
DEVICE void turn_four(u32 (&w)[4])
{
    const u32 low01 = __byte_perm(w[0], w[1], 0x5140), low23 = __byte_perm(w[2], w[3], 0x5140), high01 = __byte_perm(w[0], w[1], 0x7362), high23 = __byte_perm(w[2], w[3], 0x7362);
    w[0] = __byte_perm(low01, low23, 0x5410), w[1] = __byte_perm(low01, low23, 0x7632), w[2] = __byte_perm(high01, high23, 0x5410), w[3] = __byte_perm(high01, high23, 0x7632);
}
DEVICE u32 two_halves(i32 type, float a, float b)
{
    return type == F16 ? pair_f16(a, b) : pair_bf16(a, b);
}

// ---- fours ----------------------------------------------------------------------------------------------------------------

DEVICE char* place_of(const GemmOutput& o, const TileSpot& at)
{
    return static_cast<char*>(o.c) + (i64(at.batch) * o.c_batch + i64(at.row) * o.c_row + at.column) * bytes_of(result_type(o));
}

// Of eight bits.
DEVICE void store_byte(const GemmOutput& o, char* to, u32 bits)
{
    if (result_type(o) == E4M3) store<float>(E4M3, to, 0, __uint_as_float(bits));
    else store<float>(E5M2, to, 0, __uint_as_float(bits));
}
DEVICE void store_one(const GemmOutput& o, const TileSpot& at, u32 bits) { store_byte(o, place_of(o, at), bits); }

// `valid` of four, as the bits of f32, or i32 where is_whole.
DEVICE void store_four(const GemmOutput& o, const TileSpot& at, i32 valid, const u32 (&v)[4], bool is_whole)
{
    char* const to = place_of(o, at);
    const bool  is_four = valid == 4 && o.store <= STORE_FOURS;
    if (is_whole || result_type(o) == F32) {
        if (is_four) *reinterpret_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
        else
            UNROLLED for (i32 j = 0; j < 4; j++)
                if (j < valid) reinterpret_cast<u32*>(to)[j] = v[j];
    } else if (is_of_halves(o)) {
        const u32 low = two_halves(result_type(o), __uint_as_float(v[0]), __uint_as_float(v[1])), high = two_halves(result_type(o), __uint_as_float(v[2]), __uint_as_float(v[3]));
        if (is_four) *reinterpret_cast<uint2*>(to) = make_uint2(low, high);
        else if (valid == 4 && reinterpret_cast<u64>(to) % 4 == 0) reinterpret_cast<u32*>(to)[0] = low, reinterpret_cast<u32*>(to)[1] = high;
        else
            UNROLLED for (i32 j = 0; j < 4; j++)
                if (j < valid) reinterpret_cast<u16*>(to)[j] = u16((j < 2 ? low : high) >> j % 2 * 16);
    } else {
        ROLLED for (i32 j = 0; j < valid; j++) store_one(o, {at.batch, at.row, at.column + j}, j == 0 ? v[0] : j == 1 ? v[1] : j == 2 ? v[2] : v[3]);
    }
}

// The same one by one, wherever columns are.
DEVICE void store_apart(const GemmOutput& o, const TileSpot& at, i32 valid, const u32 (&v)[4], bool is_whole)
{
    const i64   step = o.c_column * bytes_of(result_type(o));
    const bool  is_wide = is_whole || result_type(o) == F32, is_half = is_of_halves(o);
    char* const to = place_of(o, {at.batch, at.row, 0}) + at.column * step;
    if (!is_wide && !is_half) {
        ROLLED for (i32 j = 0; j < valid; j++) store_byte(o, to + j * step, j == 0 ? v[0] : j == 1 ? v[1] : j == 2 ? v[2] : v[3]);
        return;
    }
    UNROLLED for (i32 j = 0; j < 4; j++) {
        const float x = __uint_as_float(v[j]);
        if (j >= valid) continue;
        if (is_wide) *reinterpret_cast<u32*>(to + j * step) = v[j];
        else *reinterpret_cast<u16*>(to + j * step) = u16(two_halves(result_type(o), x, x));
    }
}

// ---- rows -----------------------------------------------------------------------------------------------------------------

// The lane, asked for anew, so that nothing made of it takes a register while products are under way.
DEVICE i32 lane_now()
{
    u32 r;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));
    return i32(r);
}

// Rows whose numbers are even, or odd: where their halves are staged and where they go. LANES have a row, each two halves of it, of which the first begins
// at a word of c: those staged as one word or, where rows begin between words, the second of it and the first of the next, which is read as well: asked of the next
// lane, the compiler no longer knows that warps are together, and what all threads of one have alike leaves its registers while products are made (20 % of a product).
template <i32 LANES>
struct EverySecondRow {
    static constexpr i32 AT_ONCE = 32 / LANES;
    u32  staged, piece, next_staged, next_piece;
    u16* to;
    i32  shift, at, left, halves;

    // which: even or odd ones of 16 that are staged, of which `rows` count.
    DEVICE EverySecondRow(i32 which, char* first, i64 pitch, i32 rows, i32 halves_of_row, u32 from) : halves(halves_of_row)
    {
        const i32 all = lane_now(), lane = all % LANES, row = which + all / LANES * 2;
        const i32 beside = (lane + 1) % 32;
        staged = from + u32(row * 128 + (lane & 3) * 4), piece = u32(lane >> 2 ^ row) << 4;
        next_staged = from + u32(row * 128 + (beside & 3) * 4), next_piece = u32(beside >> 2 ^ row) << 4;
        to = reinterpret_cast<u16*>(first + row * pitch);
        shift = i32(reinterpret_cast<u64>(to) >> 1 & 1), at = lane * 2 + shift, left = rows - row;
        to += at;
    }
    // Those that are `row` rows behind the first; row has none of the bits of their numbers.
    DEVICE void store(i32 row) const
    {
        const u32 word = read_word(staged + u32(row * 128) + (piece ^ u32(row & 7) << 4)), next = read_word(next_staged + u32(row * 128) + (next_piece ^ u32(row & 7) << 4));
        const u32 pair = shift ? __funnelshift_r(word, next, 16) : word;
        if (row >= left) return;
        if (at + 1 < halves) *reinterpret_cast<u32*>(to) = pair;
        else if (at < halves) *to = u16(pair);
        if (at == 1 && halves > 0) to[-1] = u16(word);
    }
};

// The same of 16 rows of 64 BOXES halves, all there, staged BOX_BYTES apart: a row's at once, for what two stores have of the 32 bytes that the second cache takes
// meets there at once or is dear. No number of rows or halves is asked for.
template <i32 BOXES, u32 BOX_BYTES>
struct EverySecondWholeRow {
    u32  staged, piece, next_staged, next_piece, next_box;
    u16* to;
    u32  shift;
    bool has_pair, has_last, has_first;

    DEVICE EverySecondWholeRow(i32 which, char* first, i64 pitch, u32 from)
    {
        const i32 lane = lane_now(), beside = (lane + 1) % 32;
        staged = from + u32(which * 128 + (lane & 3) * 4), piece = u32(lane >> 2 ^ which) << 4;
        next_staged = from + u32(which * 128 + (beside & 3) * 4), next_piece = u32(beside >> 2 ^ which) << 4, next_box = lane == 31 ? BOX_BYTES : 0;
        to = reinterpret_cast<u16*>(first + which * pitch);
        const bool is_between = reinterpret_cast<u64>(to) & 2;
        to += lane * 2 + is_between, shift = is_between ? 16 : 0;
        has_pair = lane < 31 || !is_between, has_last = !has_pair, has_first = lane == 0 && is_between;
    }
    DEVICE void store(i32 row) const
    {
        u32 word[BOXES];
        UNROLLED for (i32 i = 0; i < BOXES; i++) {
            const u32 down = u32(row * 128) + u32(i) * BOX_BYTES;
            word[i] = read_word(staged + down + (piece ^ u32(row & 7) << 4));
            const u32 next = read_word(next_staged + down + (i + 1 < BOXES ? next_box : 0) + (next_piece ^ u32(row & 7) << 4));     // of the last none counts
            const u32 pair = __funnelshift_r(word[i], next, shift);
            if (i + 1 < BOXES || has_pair) *reinterpret_cast<u32*>(to + i * 64) = pair;
        }
        if (has_first) to[-1] = u16(word[0]);
        if (has_last) to[(BOXES - 1) * 64] = u16(word[BOXES - 1] >> 16);
    }
};

// Where boxes of 64 halves, or 32 words, of a warp's 16 rows go, of which as many rows and halves as there are count; 16-byte pieces are swizzled by row % 8.
struct RowsPlace {
    char* to;
    i64   pitch;                         // in halves
    i32   rows, halves;

    DEVICE RowsPlace(const GemmOutput& o, const TileSpot& first, bool are_words)
    {
        constexpr i32 ENOUGH = 1024;     // of columns, that twice as many are a number
        const i32 halves_each = are_words ? 2 : 1;
        to = place_of(o, first), pitch = o.c_row * halves_each, rows = o.m - first.row, halves = min(o.n - first.column, ENOUGH) * halves_each;
    }
};
template <i32 LANES>
DEVICE void store_some_rows(const RowsPlace& p, i32 at, u32 staged)
{
    using Rows = EverySecondRow<LANES>;
    constexpr i32 STEP = 2 * Rows::AT_ONCE;
    const i32 rows = min(16, p.rows), halves = min(2 * LANES, p.halves - at);
    Rows      even(0, p.to + at * 2, p.pitch * 2, rows, halves, staged), odd(1, p.to + at * 2, p.pitch * 2, rows, halves, staged);
    ROLLED for (i32 row = 0; row < 16; row += STEP, even.to += p.pitch * STEP, odd.to += p.pitch * STEP) even.store(row), odd.store(row);
}
template <i32 BOXES, u32 BOX_BYTES>
DEVICE void store_rows(const GemmOutput& o, const TileSpot& first, u32 staged, bool are_words)
{
    const RowsPlace p(o, first, are_words);
    if (p.rows < 16 || p.halves < 64 * BOXES) {
        UNROLLED for (i32 i = 0; i < BOXES; i++)
            if (p.halves > i * 64) store_some_rows<32>(p, i * 64, staged + u32(i) * BOX_BYTES);
        return;
    }
    using Rows = EverySecondWholeRow<BOXES, BOX_BYTES>;
    Rows even(0, p.to, p.pitch * 2, staged), odd(1, p.to, p.pitch * 2, staged);
    UNROLLED for (i32 row = 0; row < 16; row += 2, even.to += p.pitch * 2, odd.to += p.pitch * 2) even.store(row), odd.store(row);
}

}  // namespace
}  // namespace ng::kernels
