// The interpreter's loads, stores, gathers and indices: single elements through any strides, four at once where they are neighbours.
#pragma once
#include "lib/backend/cuda/interpreter_slots.cuh"

namespace ng::interpreter {

// Four neighbours, in as few transfers as their alignment (at most 16 bytes) lets.
template <class T> struct alignas(sizeof(T) < 4 ? sizeof(T) * 4 : 16) Four { T item[ITEMS_A_UNIT]; };

constexpr int FOURS = ITEMS / ITEMS_A_UNIT;

template <class T>
DEVICE void load_four(const T* from, T (&x)[ITEMS], int first)
{
    const Four<T> four = *reinterpret_cast<const Four<T>*>(from);
    UNROLLED for (int e = 0; e < ITEMS_A_UNIT; e++) x[first + e] = four.item[e];
}
// The bytes from one of a thread's items to the next where those of a row lie evenly and their distances fit 32 bits, as most
// do: so each address is the one before and that. 0: not so.
template <class T>
DEVICE u32 even_bytes(const Numbers& n, const Place& p, const Reach& r)
{
    static_assert(MAX_THREADS * sizeof(T) <= 1 << 10, "an item's distance times 2^22 fits 32 bits");
    if (r.form != 0 || !p.is_whole || n.quad_points != ITEMS_A_UNIT * n.item_points || (u64)r.point_stride >> 22) return 0;
    return n.item_points * (u32)r.point_stride * (u32)sizeof(T);
}
template <class T>
DEVICE void load_items(const Numbers& n, const Place& p, u32 access, T (&x)[ITEMS])
{
    const Reach r = reach_of(n, p, access);
    const T* from = reinterpret_cast<const T*>(r.base);
    if (r.form == QUADS && p.is_whole) {
        from += r.row + p.first;
        UNROLLED for (int k = 0; k < FOURS; k++) load_four(from + k * (i64)n.quad_points, x, k * ITEMS_A_UNIT);
        return;
    }
    if (const u32 bytes = even_bytes<T>(n, p, r); bytes != 0) {
        char* first = reinterpret_cast<char*>(r.base) + (r.row + p.first * r.point_stride) * (i64)sizeof(T);
        UNROLLED for (u32 e = 0; e < ITEMS; e++) x[e] = *reinterpret_cast<T*>(first + (u64)bytes * e);
        return;
    }
    if (r.form & SAME) {
        const T same = from[r.row];
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = same;
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

template <class T>
DEVICE void store_items(const Numbers& n, const Place& p, u32 access, u32 how, const T (&x)[ITEMS])
{
    const Reach r = reach_of(n, p, access);
    T* to = reinterpret_cast<T*>(r.base);
    if (!to) return;
    if (how & OF_ROW) {
        if (p.is_row && lane_of(n, p) == 0 && p.piece == 0) to[r.row] = x[0];
        return;
    }
    if ((r.form & QUADS) && p.is_whole) {
        i64 at[FOURS];
        find_offsets<ITEMS_A_UNIT>(n, p, r, 0, at);
        UNROLLED for (int k = 0; k < FOURS; k++) {
            const int e = k * ITEMS_A_UNIT;
            *reinterpret_cast<Four<T>*>(to + at[k]) = {{x[e], x[e + 1], x[e + 2], x[e + 3]}};
        }
        return;
    }
    if (const u32 bytes = even_bytes<T>(n, p, r); bytes != 0) {
        char* first = reinterpret_cast<char*>(r.base) + (r.row + p.first * r.point_stride) * (i64)sizeof(T);
        UNROLLED for (u32 e = 0; e < ITEMS; e++) *reinterpret_cast<T*>(first + (u64)bytes * e) = x[e];
        return;
    }
    const i64 end = p.end;
    UNROLLED for (int half = 0; half < ITEMS; half += 8) {
        i64 at[8];
        find_offsets<1>(n, p, r, half, at);
        UNROLLED for (int e = 0; e < 8; e++)
            if (point_of(n, p, half + e) < end) to[at[e]] = x[half + e];
    }
}

template <class T>
DEVICE void load_narrow(const Numbers& n, const Place& p, u32 access, u32 how, u32 (&a)[ITEMS])
{
    T x[ITEMS];
    load_items(n, p, access, x);
    UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = x[e];
    if (sizeof(T) == 2 && how == AS_F16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = bits_f32(f32_of_f16((f16)a[e]));
    } else if (sizeof(T) == 2 && how == AS_BF16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) a[e] <<= 16;
    }
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
    T x[ITEMS];
    const u32 transfer = how & ~OF_ROW;
    if (sizeof(T) == 2 && transfer == AS_F16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = (T)encoded_f16(f32_bits(a[e]));
    } else if (sizeof(T) == 2 && transfer == AS_BF16) {
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = (T)(bits_f32(round_bf16(f32_bits(a[e]))) >> 16);
    } else {
        UNROLLED for (int e = 0; e < ITEMS; e++) x[e] = (T)a[e];
    }
    store_items(n, p, access, how, x);
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
    const u64* from = reinterpret_cast<const u64*>(r.base);
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
    u64* to = reinterpret_cast<u64*>(r.base);
    if (!to) return;
    if (i.more & OF_ROW) {
        if (p.is_row && lane_of(n, p) == 0 && p.piece == 0) to[r.row] = read<u64>(from, 0);
        return;
    }
    const i64 end = p.end;
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
    const T* from = reinterpret_cast<const T*>(r.base);
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
