// Slots of the interpreter's threads, and where the elements of an access lie for them.
#pragma once
#include "kernels/interpreter.h"
#include "lib/backend/cuda/prelude.cuh"
#include "lib/backend/cuda/prelude_functions.cuh"
#include "jit/prelude_common.h"

// Tests compile this as C++; there addresses in shared memory begin with 0.
#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
#define ROLLED   _Pragma("unroll 1")
#define BY_FOURS _Pragma("unroll 4")
#define SLOW_CALL static __device__ __noinline__
#define SYNC_WARP __syncwarp()
extern __shared__ __align__(16) char interpreter_memory[];
DEVICE char* shared_at(u32 at) { return static_cast<char*>(__cvta_shared_to_generic(at)); }
template <class T> DEVICE T* global_at(unsigned long long at) { return static_cast<T*>(__cvta_global_to_generic(at)); }
#else
#define UNROLLED
#define ROLLED
#define BY_FOURS
#define SLOW_CALL static __device__
#define SYNC_WARP __syncthreads()
alignas(16) static char interpreter_memory[ng::interpreter::MOST_SHARED_BYTES];
DEVICE char* shared_at(u32 at) { return interpreter_memory + at; }
template <class T> DEVICE T* global_at(unsigned long long at) { return reinterpret_cast<T*>(at); }
#endif

namespace ng::interpreter {

struct alignas(16) Unit {
    u32 word[ITEMS_A_UNIT];
};

// Where a thread is: the point of its first item, its row, how many groups of rows its block had before.
struct Place {
    i64  first, row;
    i64  left;                           // points of the block's piece from the tile's first one on; of all points without rows
    u32  turn, piece, base, here;        // base: where shared memory begins; here: the thread's part of a unit at 0
    u32  near;                           // where accesses lie near, else 0
    u32  is_row, is_whole;               // beyond the last row a thread reads what that has; is_whole: all items are in the row
};

// Opaque, else the compiler would find it out again at every use.
DEVICE u32 kept(u32 x)
{
#ifdef __CUDACC__
    asm volatile("" : "+r"(x));
#endif
    return x;
}
DEVICE u32 shared_base()
{
#ifdef __CUDACC__
    return kept((u32)__cvta_generic_to_shared(interpreter_memory));
#else
    return 0;
#endif
}
DEVICE Unit& unit_at(u32 at) { return *reinterpret_cast<Unit*>(shared_at(at)); }

// What the launch is told in words that shared memory has nearer: numbers, accesses, the list. All threads meet here.
DEVICE void bring_near(const Numbers& n, u32 base)
{
    for (u32 k = threadIdx.x; k < 2 * n.number_count; k += blockDim.x) *reinterpret_cast<u64*>(shared_at(base + k * 8)) = n.words[n.numbers_at + k / 2];
    if (n.near_at) {
        const u32 list_at = base + n.near_at + n.access_count * (u32)sizeof(Access);
        for (u32 k = threadIdx.x; k < n.access_count * 4; k += blockDim.x) *reinterpret_cast<u64*>(shared_at(base + n.near_at + k * 8)) = n.words[n.accesses_at + k];
        for (u32 k = threadIdx.x; k < n.code_count; k += blockDim.x) unit_at(list_at + k * UNIT_BYTES) = reinterpret_cast<const Unit*>(n.code)[k];
    }
    __syncthreads();
}
// The list's next instruction. In memory it waits for the elements that were asked for before it: a cache returns in order.
DEVICE Instruction instruction_at(const Numbers& n, bool is_near, u32 list_at, u32 at)
{
    const Unit u = is_near ? unit_at(list_at + at * UNIT_BYTES) : reinterpret_cast<const Unit*>(n.code)[at];
    return {(u16)u.word[0], (u16)(u.word[0] >> 16), u.word[1], (u16)u.word[2], (u16)(u.word[2] >> 16), (u16)u.word[3], (u16)(u.word[3] >> 16)};
}

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
    return *reinterpret_cast<Unit*>(n.scratch + ((u64)blockIdx.x * n.spilled + unit) * n.unit_bytes + (p.here - p.base));
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

DEVICE u32 thread_of(const Place& p) { return (p.here - p.base) / UNIT_BYTES; }
DEVICE u32 lane_of(const Numbers& n, const Place& p) { return thread_of(p) >> n.lane_shift & (n.lanes - 1); }
// Once a block: dividing takes as long as a tile's work.
DEVICE void find_piece(const Numbers& n, Place& p)
{
    p.piece = n.pieces == 1 ? 0 : blockIdx.x % n.pieces;
}
DEVICE i64 piece_begin(const Numbers& n, const Place& p) { return p.piece * n.piece_points; }
// Where it ends; all points without rows.
DEVICE i64 own_end(const Numbers& n, const Place& p)
{
    const i64 end = (p.piece + 1) * n.piece_points;
    return !p.is_row ? 0 : end < n.points ? end : n.points;
}

DEVICE i64 point_of(const Numbers& n, const Place& p, int item)
{
    return p.first + (item % ITEMS_A_UNIT) * (i64)n.item_points + (item / ITEMS_A_UNIT) * (i64)n.quad_points;
}
// Items beyond the end read what the last point reads.
DEVICE i64 readable(const Numbers& n, i64 point) { return point < n.points ? point : n.points - 1; }

DEVICE u32 high_product(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }

// After `first` and `left` have changed: whether all of the thread's items are there, `ahead` points into the tile; the walked
// axes' coordinates of these items, in the first slots.
DEVICE void arrive(const Numbers& n, Place& p, u32 ahead)
{
    p.is_whole = p.is_row && p.left > (i64)(ahead + (ITEMS_A_UNIT - 1) * (n.item_points + n.quad_points));
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

// The row's coordinates, 4 bytes each.
DEVICE u32& row_coordinate(const Numbers& n, const Place& p, u32 axis)
{
    return *reinterpret_cast<u32*>(shared_at(p.base + n.rows_at + axis * (n.unit_bytes / ITEMS_A_UNIT) + (p.here - p.base) / 4));
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
    i64 row, row_stride, point_stride;
    u32 form, strides;                   // of walked axes, among the words
};
DEVICE Access access_of(const Numbers& n, const Place& p, u32 access)
{
    if (p.near) return *reinterpret_cast<const Access*>(shared_at(p.near + access * (u32)sizeof(Access)));
    const u32 at = n.accesses_at + access * 4;
    const u64 how = n.words[at + 3];
    return {(i64)n.words[at], (i64)n.words[at + 1], (i64)n.words[at + 2], (u32)how, (u32)(how >> 32)};
}
DEVICE Reach reach_of(const Numbers& n, const Place& p, u32 access)
{
    const Access a = access_of(n, p, access);
    Reach r = {(u64)a.base, 0, a.row_stride, a.point_stride, a.form, a.strides};
    if (r.form & ROWS_LISTED) {
        ROLLED for (u32 k = 0; k < n.row_axes; k++) r.row += (i64)row_coordinate(n, p, k) * (i64)n.words[r.strides + k];
    } else {
        r.row = p.row * a.row_stride;
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
