// Slots of the interpreter's threads, and where the elements of an access lie for them.
#pragma once
#include "kernels/interpreter.h"
#include "lib/backend/cuda/prelude.cuh"
#include "jit/prelude_common.h"

// Tests compile this as C++; there addresses in shared memory begin with 0.
#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
#define ROLLED   _Pragma("unroll 1")
#define BY_FOURS _Pragma("unroll 4")
#define SLOW_CALL static __device__ __noinline__
extern __shared__ __align__(16) char interpreter_memory[];
DEVICE char* shared_at(u32 at) { return static_cast<char*>(__cvta_shared_to_generic(at)); }
#else
#define UNROLLED
#define ROLLED
#define BY_FOURS
#define SLOW_CALL static __device__
alignas(16) static char interpreter_memory[ng::interpreter::MOST_SHARED_BYTES];
DEVICE char* shared_at(u32 at) { return interpreter_memory + at; }
#endif

namespace ng::interpreter {

struct alignas(16) Unit {
    u32 word[ITEMS_A_UNIT];
};

// Where a thread is: the point of its first item, its row, how many groups of rows its block had before, which piece of rows
// that has (found once: a division takes about 200 cycles).
struct Place {
    i64  first, end, row;                // end: of its own points; 0 beyond the last row
    u32  turn, piece, thread, base, here;       // base: where shared memory begins; here: the thread's part of a unit at 0
    bool is_row, is_whole;               // beyond the last row a thread reads what that has; is_whole: all items are in the row
};

// Opaque, else the compiler would find it out again at every use.
DEVICE u32 shared_base()
{
#ifdef __CUDACC__
    u32 base = (u32)__cvta_generic_to_shared(interpreter_memory);
    asm volatile("" : "+r"(base));
    return base;
#else
    return 0;
#endif
}
DEVICE Unit& unit_at(u32 at) { return *reinterpret_cast<Unit*>(shared_at(at)); }

// An operand in shared memory: the elements of unit k begin at `at` + k * step.
struct Operand {
    u32 at, step;
};
DEVICE Operand operand_of(const Numbers& n, const Place& p, u32 operand)
{
    const bool is_number = (operand & NUMBER) != 0;
    return {is_number ? p.base + (operand - NUMBER) * UNIT_BYTES : p.here + n.slots_at + operand * n.unit_bytes, is_number ? 0 : n.unit_bytes};
}
template <class T>
DEVICE T& item_of(Operand o, u32 item)
{
    constexpr u32 A_UNIT = UNIT_BYTES / sizeof(T);
    return *reinterpret_cast<T*>(shared_at(o.at + item / A_UNIT * o.step + item % A_UNIT * sizeof(T)));
}
template <class T>
DEVICE T read(Operand o, u32 item) { return item_of<T>(o, item); }
template <class T>
DEVICE void write(Operand o, u32 item, T x) { item_of<T>(o, item) = x; }

DEVICE void read_items(Operand o, u32 (&x)[ITEMS])
{
    UNROLLED for (u32 k = 0; k < UNITS_32; k++) {
        const Unit u = unit_at(o.at + k * o.step);
        UNROLLED for (int e = 0; e < ITEMS_A_UNIT; e++) x[k * ITEMS_A_UNIT + e] = u.word[e];
    }
}
DEVICE void write_items(Operand o, const u32 (&x)[ITEMS])
{
    UNROLLED for (u32 k = 0; k < UNITS_32; k++) {
        const u32 e = k * ITEMS_A_UNIT;
        unit_at(o.at + k * o.step) = {{x[e], x[e + 1], x[e + 2], x[e + 3]}};
    }
}

// What shared memory has no room for, a slot at a time: each thread finds there what it left.
DEVICE Unit& spilled_at(const Numbers& n, const Place& p, u32 unit)
{
    return *reinterpret_cast<Unit*>(n.scratch + ((u64)blockIdx.x * n.spilled + unit) * n.unit_bytes + p.thread * UNIT_BYTES);
}
DEVICE void spill(const Numbers& n, const Place& p, const Instruction& i)
{
    const Operand x = operand_of(n, p, i.x);
    ROLLED for (u32 k = 0; k < i.more; k++) spilled_at(n, p, i.place + k) = unit_at(x.at + k * x.step);
}
DEVICE void fill(const Numbers& n, const Place& p, const Instruction& i)
{
    const Operand out = operand_of(n, p, i.out);
    ROLLED for (u32 k = 0; k < i.more; k++) unit_at(out.at + k * out.step) = spilled_at(n, p, i.place + k);
}

// ---- places ------------------------------------------------------------------------------------------------------------

DEVICE u32 lane_of(const Numbers& n, const Place& p) { return p.thread >> n.lane_shift & (n.lanes - 1); }
DEVICE i64 piece_begin(const Numbers& n, const Place& p) { return p.piece * n.piece_points; }
// Where the block's piece of a row ends; all points without rows.
DEVICE i64 piece_end(const Numbers& n, const Place& p)
{
    const i64 end = piece_begin(n, p) + n.piece_points;
    return end < n.points ? end : n.points;
}

DEVICE i64 point_of(const Numbers& n, const Place& p, int item)
{
    return p.first + (item % ITEMS_A_UNIT) * (i64)n.item_points + (item / ITEMS_A_UNIT) * (i64)n.quad_points;
}
// Items beyond the end read what the last point reads.
DEVICE i64 readable(const Numbers& n, i64 point) { return point < n.points ? point : n.points - 1; }

DEVICE u32 high_product(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }

DEVICE bool is_whole(const Numbers& n, const Place& p) { return p.first + n.last_points < p.end; }
// The walked axes' coordinates of this thread's items, in the first slots.
DEVICE void find_coordinates(const Numbers& n, const Place& p)
{
    if (n.axes == 0) return;
    const int step = n.are_quads && p.is_whole ? ITEMS_A_UNIT : 1;
    ROLLED for (int e = 0; e < ITEMS; e += step) {
        u64 rest = (u64)readable(n, point_of(n, p, e));
        u32 at = p.here + n.slots_at + n.axes * UNITS_32 * n.unit_bytes + e / ITEMS_A_UNIT * n.unit_bytes + e % ITEMS_A_UNIT * 4;
        ROLLED for (u32 k = n.axes; k-- > 0;) {
            const u64 extent = n.words[n.axes_at + 2 * k], how = n.words[n.axes_at + 2 * k + 1];
            const u64 q = n.is_long ? rest / extent : (u64)((high_product((u32)rest, (u32)how) + (u32)rest) >> (u32)(how >> 32));
            at -= UNITS_32 * n.unit_bytes;
            *reinterpret_cast<u32*>(shared_at(at)) = (u32)(rest - q * extent);
            rest = q;
        }
    }
}
// After `first` has changed.
DEVICE void arrive(const Numbers& n, Place& p)
{
    p.is_whole = is_whole(n, p);
    find_coordinates(n, p);
}

// The row's coordinates, 4 bytes each.
DEVICE u32& row_coordinate(const Numbers& n, const Place& p, u32 axis)
{
    return *reinterpret_cast<u32*>(shared_at(p.base + n.rows_at + axis * (n.unit_bytes / ITEMS_A_UNIT) + p.thread * 4));
}
DEVICE void find_row(const Numbers& n, const Place& p)
{
    u64 rest = (u64)p.row;
    ROLLED for (u32 k = n.row_axes; k-- > 0;) {
        const u64 extent = n.words[n.axes_at + 2 * (n.axes + k)];
        const u64 q = (rest | extent) >> 32 ? rest / extent : (u32)rest / (u32)extent;
        row_coordinate(n, p, k) = (u32)(rest - q * extent);
        rest = q;
    }
}

// An access in this launch, and its elements' distance from the base in this row.
struct Reach {
    u64 base;
    i64 row, point_stride;
    u32 form, strides;                   // of walked axes, among the words
};
DEVICE Reach reach_of(const Numbers& n, const Place& p, u32 access)
{
    const u32 at = n.accesses_at + access * 4;
    const u64 how = n.words[at + 3];
    Reach r = {n.words[at], p.row * (i64)n.words[at + 1], (i64)n.words[at + 2], (u32)how, (u32)(how >> 32)};
    if (r.form & ROWS_LISTED) {
        r.row = 0;
        ROLLED for (u32 k = 0; k < n.row_axes; k++) r.row += (i64)row_coordinate(n, p, k) * (i64)n.words[r.strides + k];
    }
    r.strides += n.row_axes;
    return r;
}
// From there to items `from`, from + STEP, from + 2 STEP ..
template <int STEP, int COUNT>
DEVICE void find_offsets(const Numbers& n, const Place& p, const Reach& r, int from, i64 (&at)[COUNT])
{
    if (r.form & LISTED) {
        UNROLLED for (int e = 0; e < COUNT; e++) at[e] = r.row;
        ROLLED for (u32 k = 0; k < n.axes; k++) {
            const i64 stride = (i64)n.words[r.strides + k];
            if (stride == 0) continue;
            const Operand axis = operand_of(n, p, k * UNITS_32);
            UNROLLED for (int e = 0; e < COUNT; e++) at[e] += (i64)read<u32>(axis, (u32)(from + e * STEP)) * stride;
        }
    } else if (p.is_whole) {
        const i64 first = r.row + p.first * r.point_stride, item = (i64)n.item_points * r.point_stride, quad = (i64)n.quad_points * r.point_stride;
        UNROLLED for (int e = 0; e < COUNT; e++) at[e] = first + (from + e * STEP) % ITEMS_A_UNIT * item + (from + e * STEP) / ITEMS_A_UNIT * quad;
    } else {
        UNROLLED for (int e = 0; e < COUNT; e++) at[e] = r.row + readable(n, point_of(n, p, from + e * STEP)) * r.point_stride;
    }
}

}  // namespace ng::interpreter
