// The interpreter's loads, stores, gathers and indices: single elements through any strides, four at once where they are neighbours.
#pragma once
#include "lib/backend/cuda/interpreter_slots.cuh"

namespace ng::interpreter {

// Four neighbours, in as few transfers as their alignment (at most 16 bytes) lets.
template <class T> struct alignas(sizeof(T) < 4 ? sizeof(T) * 4 : 16) Four { T item[ITEMS_A_UNIT]; };

constexpr int FOURS = ITEMS / ITEMS_A_UNIT;

template <class T, class Held>
DEVICE void load_four(const T* from, Held (&x)[ITEMS], int first)
{
    const Four<T> four = *reinterpret_cast<const Four<T>*>(from);
    UNROLLED for (int e = 0; e < ITEMS_A_UNIT; e++) x[first + e] = four.item[e];
}
// Items of a whole tile that lie as far apart as the row has lanes: one address, and constants that instructions hold.
template <int LANES_APART, class T, class Held>
DEVICE void load_apart(const T* from, Held (&x)[ITEMS])
{
    UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = from[e * LANES_APART];
}
template <int LANES_APART, class T, class Held>
DEVICE void store_apart(T* to, const Held (&x)[ITEMS])
{
    UNROLLED for (int e = 0; e < ITEMS; e++) to[e * LANES_APART] = (T)x[e];
}
// What such a walk reads next goes to the second cache meanwhile: the row's next tile, of short rows the same tile of the block's next row.
template <class T>
DEVICE void ask_ahead(const Numbers& n, const Place& p, const Reach& r, const T* from)
{
    constexpr u32 LINE = 128 / sizeof(T);            // elements
    const u32 step = n.lanes * ITEMS, lane = lane_of(n, p);
    if (lane * LINE >= step) return;
    const T* const line = from + (i64)(lane * LINE) - lane;
    if (n.are_kept) {
        const i64 rows = (i64)gridDim.x * (n.row_mask + 1);
        if (p.row + rows < n.rows) ask_for(line + rows * r.row_stride);
    } else if (p.left >= 2 * (i64)step) {
        ask_for(line + step);
    }
}
// Rows of two lanes, 32 points of each: both threads read all of their row, 16 bytes at a time, and keep what is theirs.
template <class T>
constexpr bool HAS_SPANS = sizeof(T) == 2 || sizeof(T) == 4;
template <class T, class Held>
DEVICE void load_span(const T* from, u32 lane, Held (&x)[ITEMS])
{
    constexpr int EACH = UNIT_BYTES / sizeof(T) / 2;
    UNROLLED for (int k = 0; k < ITEMS / EACH; k++) {
        const Unit u = reinterpret_cast<const Unit*>(from)[k];
        UNROLLED for (int e = 0; e < EACH; e++) {
            if constexpr (sizeof(T) == 2) x[k * EACH + e] = (u16)(u.word[e] >> lane * 16);
            else x[k * EACH + e] = lane ? u.word[2 * e + 1] : u.word[2 * e];
        }
    }
}
// They give each other what is not of their half of the row. All of a warp's threads are here; those of no row store nothing.
template <class T, class Held>
DEVICE void store_span(T* to, u32 lane, bool is_row, const Held (&x)[ITEMS])
{
    constexpr int A_WORD = 4 / sizeof(T), HALF = ITEMS / A_WORD / 2;
    u32 even[HALF], odd[HALF];                       // words of the first lane's and of the second's items
    UNROLLED for (int k = 0; k < HALF; k++) {
        const int low = k * A_WORD, high = (HALF + k) * A_WORD;
        const u32 first = A_WORD == 2 ? (u16)x[low] | (u32)x[low + A_WORD - 1] << 16 : (u32)x[low];
        const u32 second = A_WORD == 2 ? (u16)x[high] | (u32)x[high + A_WORD - 1] << 16 : (u32)x[high];
        const u32 mine = lane ? second : first, other = __shfl_xor_sync(~0u, lane ? first : second, 1);
        even[k] = lane ? other : mine, odd[k] = lane ? mine : other;
    }
    if (!is_row) return;
    u32 word[2 * HALF];
    UNROLLED for (int k = 0; k < HALF; k++) {
        word[2 * k] = A_WORD == 2 ? (u16)even[k] | odd[k] << 16 : even[k];
        word[2 * k + 1] = A_WORD == 2 ? even[k] >> 16 | (odd[k] & 0xffff0000) : odd[k];
    }
    UNROLLED for (int k = 0; k < 2 * HALF; k += ITEMS_A_UNIT)
        reinterpret_cast<Unit*>(to + lane * ITEMS)[k / ITEMS_A_UNIT] = {{word[k], word[k + 1], word[k + 2], word[k + 3]}};
}
// Any distances: `item` to the next one, `quad` from four to the next four.
template <class T, class Held>
DEVICE void load_steps(const T* from, i64 item, i64 quad, Held (&x)[ITEMS])
{
    UNROLLED for (int k = 0; k < ITEMS; k += ITEMS_A_UNIT, from += quad) {
        const T* at = from;
        UNROLLED for (int e = 0; e < ITEMS_A_UNIT; e++, at += item) x[k + e] = *at;
    }
}
template <class T, class Held>
DEVICE void store_steps(T* to, i64 item, i64 quad, const Held (&x)[ITEMS])
{
    UNROLLED for (int k = 0; k < ITEMS; k += ITEMS_A_UNIT, to += quad) {
        T* at = to;
        UNROLLED for (int e = 0; e < ITEMS_A_UNIT; e++, at += item) *at = (T)x[k + e];
    }
}
// The same without rows, where blocks stride: of the block's next tile.
template <class T>
DEVICE void ask_stride_ahead(const Numbers& n, const Place& p, const T* from)
{
    constexpr u32 LINE = 128 / sizeof(T);
    const u32 tile = ITEMS * blockDim.x, thread = thread_of(p);
    const i64 step = (i64)gridDim.x * tile;
    if (n.quad_points != ITEMS_A_UNIT && thread * LINE < tile && p.left >= step + tile) ask_for(from - thread * ITEMS_A_UNIT + step + thread * LINE);
}

// Held holds a T in its low bits.
template <class T, class Held>
DEVICE void load_items(const Numbers& n, const Place& p, u32 access, Held (&x)[ITEMS])
{
    const Reach r = reach_of(n, p, access);
    const T* from = global_at<const T>(r.base);
    if (p.is_whole && (r.form & APART)) {
        from += r.row + p.first;
        if (n.lanes == 32) load_apart<32>(from, x);
        else if (n.lanes == 128) load_apart<128>(from, x);
        else load_apart<16>(from, x);
        return ask_ahead(n, p, r, from);
    }
    if (r.form & SAME) {
        const T same = from[r.row];
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = same;
        return;
    }
    if constexpr (HAS_SPANS<T>)
        if ((r.form & SPANS) && p.left >= 2 * ITEMS) {
            const u32 lane = lane_of(n, p);
            return load_span(from + r.row + (p.first - lane), lane, x);
        }
    if (p.is_whole && !(r.form & LISTED)) {
        from += r.row;
        if (r.form & QUADS) {
            from += p.first;
            UNROLLED for (int k = 0; k < FOURS; k++) load_four(from + k * (i64)n.quad_points, x, k * ITEMS_A_UNIT);
            ask_stride_ahead(n, p, from);
        } else {
            load_steps(from + p.first * r.point_stride, (i64)n.item_points * r.point_stride, (i64)n.quad_points * r.point_stride, x);
        }
        return;
    }
    if ((r.form & (QUADS | QUAD_SAME)) && p.is_whole) {
        i64 at[FOURS];
        find_offsets<ITEMS_A_UNIT>(n, p, r, 0, at);
        UNROLLED for (int k = 0; k < FOURS; k++) {
            if (r.form & QUADS) {
                load_four(from + at[k], x, k * ITEMS_A_UNIT);
            } else {
                const T same = from[at[k]];
                UNROLLED for (int e = 0; e < ITEMS_A_UNIT; e++) x[k * ITEMS_A_UNIT + e] = same;
            }
        }
        return;
    }
    UNROLLED for (int half = 0; half < ITEMS; half += 8) {
        i64 at[8];
        find_offsets<1>(n, p, r, half, at);
        UNROLLED for (int e = 0; e < 8; e++) x[half + e] = from[at[e]];
    }
}

template <class T, class Held>
DEVICE void store_items(const Numbers& n, const Place& p, u32 access, u32 how, const Held (&x)[ITEMS])
{
    const Reach r = reach_of(n, p, access);
    T* to = global_at<T>(r.base);
    if (!to) return;
    if (how & OF_ROW) {
        if (p.is_row && lane_of(n, p) == 0 && p.piece == 0) to[r.row] = (T)x[0];
        return;
    }
    if constexpr (HAS_SPANS<T>)
        if ((r.form & SPANS) && p.left >= 2 * ITEMS) {
            const u32 lane = lane_of(n, p);
            return store_span(to + r.row + (p.first - lane), lane, p.is_row, x);
        }
    if ((r.form & QUADS) && p.is_whole) {
        i64 at[FOURS];
        find_offsets<ITEMS_A_UNIT>(n, p, r, 0, at);
        UNROLLED for (int k = 0; k < FOURS; k++) {
            const int e = k * ITEMS_A_UNIT;
            *reinterpret_cast<Four<T>*>(to + at[k]) = {{(T)x[e], (T)x[e + 1], (T)x[e + 2], (T)x[e + 3]}};
        }
        return;
    }
    if (p.is_whole && !(r.form & LISTED)) {
        to += r.row;
        if (!(r.form & APART)) store_steps(to + p.first * r.point_stride, (i64)n.item_points * r.point_stride, (i64)n.quad_points * r.point_stride, x);
        else if (n.lanes == 32) store_apart<32>(to + p.first, x);
        else if (n.lanes == 128) store_apart<128>(to + p.first, x);
        else store_apart<16>(to + p.first, x);
        return;
    }
    const i64 end = own_end(n, p);
    UNROLLED for (int half = 0; half < ITEMS; half += 8) {
        i64 at[8];
        find_offsets<1>(n, p, r, half, at);
        UNROLLED for (int e = 0; e < 8; e++)
            if (point_of(n, p, half + e) < end) to[at[e]] = (T)x[half + e];
    }
}

// Where this tile of a short row is kept.
DEVICE Operand kept_at(const Numbers& n, const Place& p, u32 slot)
{
    const u32 tile = (u32)(n.points - p.left) >> n.item_shift;
    return {p.here + n.slots_at + (slot + tile / ITEMS * UNITS_32) * n.unit_bytes, n.unit_bytes};
}
template <class T>
DEVICE void load_narrow(const Numbers& n, const Place& p, const Instruction& i, u32 (&a)[ITEMS])
{
    const u32 how = i.more & ~(KEEPS | KEPT);
    if (n.are_kept && (i.more & KEPT)) return read_items(kept_at(n, p, i.y), a);
    load_items<T>(n, p, i.place, a);
    if (sizeof(T) == 2 && how == AS_F16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = bits_f32(f32_of_f16((f16)a[e]));
    } else if (sizeof(T) == 2 && how == AS_BF16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) a[e] <<= 16;
    }
    if (n.are_kept && (i.more & KEEPS)) write_items(kept_at(n, p, i.y), a);
}
// Rounds, too: f16's own conversion does on a device.
DEVICE u32 encoded_f16(f32 x)
{
#ifdef HAS_F16
    return f16_of_f32(x);
#else
    return f16_of_f32(round_f16(x));
#endif
}
template <class T>
DEVICE void store_narrow(const Numbers& n, const Place& p, u32 access, u32 how, const u32 (&a)[ITEMS])
{
    u32 x[ITEMS];
    const u32 transfer = how & ~OF_ROW;
    if (sizeof(T) == 2 && transfer == AS_F16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = encoded_f16(f32_bits(a[e]));
    } else if (sizeof(T) == 2 && transfer == AS_BF16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = bits_f32(round_bf16(f32_bits(a[e]))) >> 16;
    } else {
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = a[e];
    }
    store_items<T>(n, p, access, how, x);
}

// Numbers of 64 bits: all at once where they are neighbours, else one by one: registers are few.
DEVICE i64 offset_of(const Numbers& n, const Place& p, const Reach& r, int item)
{
    i64 at[1] = {r.row};
    if (!(r.form & SAME)) find_offsets<1>(n, p, r, item, at);
    return at[0];
}
DEVICE void load_wide(const Numbers& n, const Place& p, const Instruction& i)
{
    const Reach r = reach_of(n, p, i.place);
    const Operand out = operand_of(n, p, i.out);
    const u64* from = global_at<const u64>(r.base);
    if (r.form == QUADS && p.is_whole) {
        from += r.row + p.first;
        u64 x[ITEMS];
        UNROLLED for (int k = 0; k < FOURS; k++) load_four(from + k * (i64)n.quad_points, x, k * ITEMS_A_UNIT);
        UNROLLED for (int e = 0; e < ITEMS; e++) write(out, (u32)e, x[e]);
        return;
    }
    BY_FOURS for (int e = 0; e < ITEMS; e++) write(out, (u32)e, from[offset_of(n, p, r, e)]);
}
DEVICE void store_wide(const Numbers& n, const Place& p, const Instruction& i)
{
    const Reach r = reach_of(n, p, i.place);
    const Operand from = operand_of(n, p, i.x);
    u64* to = global_at<u64>(r.base);
    if (!to) return;
    if (i.more & OF_ROW) {
        if (p.is_row && lane_of(n, p) == 0 && p.piece == 0) to[r.row] = read<u64>(from, 0);
        return;
    }
    const i64 end = own_end(n, p);
    if (r.form == QUADS && p.is_whole) {
        to += r.row + p.first;
        UNROLLED for (int e = 0; e < ITEMS; e += ITEMS_A_UNIT)
            *reinterpret_cast<Four<u64>*>(to + e / ITEMS_A_UNIT * (i64)n.quad_points) = {{read<u64>(from, e), read<u64>(from, e + 1), read<u64>(from, e + 2), read<u64>(from, e + 3)}};
        return;
    }
    BY_FOURS for (int e = 0; e < ITEMS; e++)
        if (point_of(n, p, e) < end) to[offset_of(n, p, r, e)] = read<u64>(from, (u32)e);
}

DEVICE void index_items(const Numbers& n, const Place& p, const Instruction& i)
{
    const Reach r = reach_of(n, p, i.place);
    const Operand out = operand_of(n, p, i.out);
    ROLLED for (int e = 0; e < ITEMS; e++) write(out, (u32)e, (i64)r.base + offset_of(n, p, r, e));
}

// Where the index is out of range nothing is read: all zeros are 0 in every format.
template <class T, class Held>
DEVICE void gather_items(const Numbers& n, const Place& p, const Instruction& i)
{
    const Reach r = reach_of(n, p, i.place);
    const T* from = global_at<const T>(r.base);
    const i64 extent = (i64)n.words[n.numbers_at + i.y], stride = (i64)n.words[n.numbers_at + i.y + 1u];
    const Operand indices = operand_of(n, p, i.x), out = operand_of(n, p, i.out);
    BY_FOURS for (int e = 0; e < ITEMS; e++) {
        const i64 index = read<i64>(indices, (u32)e);
        Held x = 0;
        if ((u64)index < (u64)extent) x = (Held)from[offset_of(n, p, r, e) + index * stride];
        write(out, (u32)e, x);
    }
}

}  // namespace ng::interpreter
