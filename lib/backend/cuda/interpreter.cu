// The interpreter's kernel: a block's threads walk a list of instructions over points, or over rows and their points.
//
//   grid      blocks take tiles of points, or rows, in turn; of split rows each block has one piece
//   thread    ITEMS elements at a time: two times four neighbours, or points that lie `lanes` apart
//   shared    kernels/interpreter.h draws it
//   sm_90     96 registers, no spills; a stack of 80 bytes for large angles and the calls of folds
// What takes its time is the way from one instruction to the next: so a thread has 16 elements, five blocks share a
// multiprocessor, and the next instruction is fetched before this one begins. An H200 sums 64 M elements, f32 or f16, in 95 us
// (compiled 61 and 33), a chain of 9 operations takes 227 (130 and 69), softmax of rows of 1024 469 (130 and 67).
#include "lib/backend/cuda/interpreter_folds.cuh"
#include "lib/backend/cuda/interpreter_memory.cuh"
#include "lib/backend/cuda/interpreter_slow.cuh"

namespace ng::interpreter {

struct alignas(16) Word {
    u32 a, b, c, d;
};
// Begins here, and is waited for where it is used: the compiler would move it there.
DEVICE Word word_at(const Numbers& n, u32 at)
{
    const Word* from = reinterpret_cast<const Word*>(n.code) + at;
#ifdef __CUDACC__
    Word w;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(w.a), "=r"(w.b), "=r"(w.c), "=r"(w.d) : "l"(from));
    return w;
#else
    return *from;
#endif
}
// The word's parts are taken out of sight of the compiler: else it may keep the word beyond the load of the next one, then
// copies that one, and waits for it, at once.
DEVICE Instruction instruction_of(Word w)
{
    u32 code = w.a & 0xffff, place = w.a >> 16;
#ifdef __CUDACC__
    asm volatile("and.b32 %0, %1, 0xffff;" : "=r"(code) : "r"(w.a));
    asm volatile("shr.u32 %0, %1, 16;" : "=r"(place) : "r"(w.a));
#endif
    return {(u16)code, (u16)place, w.b, (u16)w.c, (u16)(w.c >> 16), (u16)w.d, (u16)(w.d >> 16)};
}

// ---- control: where the next instruction is, or whether the last one's jump is taken ------------------------------------

DEVICE u32 begin_points(const Numbers& n, Place& p, u32 end, u32 next)
{
    p.first = (i64)blockIdx.x * ITEMS * blockDim.x + p.thread * ITEMS_A_UNIT;
    if ((i64)blockIdx.x * ITEMS * blockDim.x >= n.points) return end;
    arrive(n, p);
    return next;
}
DEVICE bool next_points(const Numbers& n, Place& p)
{
    p.first += (i64)gridDim.x * ITEMS * blockDim.x;
    if (p.first - p.thread * ITEMS_A_UNIT >= n.points) return false;
    arrive(n, p);
    return true;
}

// The block's next `row_mask` + 1 rows; false beyond the last.
DEVICE bool take_rows(const Numbers& n, Place& p)
{
    // Of split rows a block has one turn.
    const i64 group = n.pieces == 1 ? blockIdx.x + p.turn++ * (i64)gridDim.x : blockIdx.x / n.pieces;
    const i64 first = group * (i64)(n.row_mask + 1), row = first + (p.thread >> n.row_shift & n.row_mask);
    if (first >= n.rows) return false;
    p.is_row = row < n.rows;
    p.row = p.is_row ? row : n.rows - 1;
    p.end = p.is_row ? piece_end(n, p) : 0;
    find_row(n, p);
    return true;
}
DEVICE u32 begin_pass(const Numbers& n, Place& p, const Instruction& i, u32 next)
{
    const i64 begin = piece_begin(n, p);
    if (begin >= n.points || (n.pieces > 1 && n.stage != i.z)) return i.more;
    p.first = begin + lane_of(n, p);
    arrive(n, p);
    return next;
}
DEVICE bool next_point(const Numbers& n, Place& p)
{
    p.first += (i64)n.lanes * ITEMS;
    p.is_whole = is_whole(n, p);
    // All threads go the same way: where one's items are all in the row, its neighbours' begin there.
    if (!p.is_whole && p.first - lane_of(n, p) >= piece_end(n, p)) return false;
    find_coordinates(n, p);
    return true;
}

DEVICE u32 states_of(const Numbers& n, u32 fold) { return n.folds_at + fold * n.unit_bytes; }

DEVICE void start(const Numbers& n, const Place& p, const Instruction& i)
{
    const u64 low = n.words[n.numbers_at + i.z], high = n.words[n.numbers_at + i.z + 1u];
    unit_at(p.here + states_of(n, i.place)) = {{(u32)low, (u32)(low >> 32), (u32)high, (u32)(high >> 32)}};
}
// How many of the thread's items are its own.
DEVICE u32 own_items(const Numbers& n, const Place& p)
{
    if (p.is_whole) return ITEMS;
    const i64 left = p.end - p.first;
    return left <= 0 ? 0 : (u32)(left + n.item_points - 1) >> n.item_shift;
}
DEVICE void fold(const Numbers& n, const Place& p, const Instruction& i)
{
    const Operand x = operand_of(n, p, i.x);
    fold_items(i.more, x.at, x.step, p.here + states_of(n, i.place), own_items(n, p), p.first, n.item_points);
}
DEVICE void finish(const Numbers& n, const Place& p, const Instruction& i)
{
    Circle c;
    c.thread = p.thread, c.lane = lane_of(n, p), c.lanes = n.lanes, c.lane_shift = n.lane_shift;
    c.partials = n.scratch + ((u64)i.place * n.rows + p.row) * n.pieces * UNIT_BYTES;
    c.pieces = n.pieces, c.piece = p.piece, c.is_row = p.is_row;
    c.meeting = n.pieces == 1 ? Meeting::Whole : n.stage == i.z ? Meeting::Given : Meeting::Taken;
    const Operand out = operand_of(n, p, i.out);
    finish_fold(i.more, c, p.base + states_of(n, i.place), out.at, out.step);
}

// ---- what has operands and results in slots --------------------------------------------------------------------------------

DEVICE void slow(const Numbers& n, const Place& p, const Instruction& i)
{
    const Operand out = operand_of(n, p, i.out), x = operand_of(n, p, i.x), y = operand_of(n, p, i.y), z = operand_of(n, p, i.z);
    const u32 code = i.code / CODES;
    switch (code) {
    case GATHER_8: gather_items<u8, u32>(n, p, i); break;
    case GATHER_16: gather_items<u16, u32>(n, p, i); break;
    case GATHER_32: gather_items<u32, u32>(n, p, i); break;
    case GATHER_64: gather_items<u64, u64>(n, p, i); break;
    case INDEX: index_items(n, p, i); break;
    case WHERE_64:
        ROLLED for (u32 e = 0; e < ITEMS; e++) write(out, e, read<u32>(x, e) ? read<u64>(y, e) : read<u64>(z, e));
        break;
    case FOLD: fold(n, p, i); break;
    case RANDOM: draw(i.more, out, x, y, z); break;
    case CHANCE_F32:
    case CHANCE_F64:
    case CHANCE_BITS: round_by_chance(code, out, x, y, p.base + i.z * UNIT_BYTES); break;
    case DECODE: decode(i.more, out, x); break;
    case ENCODE: encode(i.more, out, x); break;
    case CONVERT: convert(i.y, i.more, out, x); break;
    case MAP_F32: map_f32(i.more, out, x, y, z); break;
    case MAP_F64: map_f64(i.more, out, x, y, z); break;
    case MAP_I32: map_i32(i.more, out, x, y, z); break;
    case MAP_U32: map_u32(i.more, out, x, y, z); break;
    case MAP_I64: map_i64(i.more, out, x, y, z); break;
    case MAP_U64: map_u64(i.more, out, x, y, z); break;
    default: break;
    }
}

// ---- what is in registers ----------------------------------------------------------------------------------------------------

DEVICE Operand slot_at(const Numbers& n, const Place& p, u32 at) { return {p.here + at, n.unit_bytes}; }
DEVICE u32 number_at(const Place& p, u32 at) { return *reinterpret_cast<const u32*>(shared_at(p.base + at)); }

DEVICE void where(const Numbers& n, const Place& p, const Instruction& i, u32 (&a)[ITEMS])
{
    u32 b[ITEMS], c[ITEMS];
    read_items(operand_of(n, p, i.y), b);
    read_items(operand_of(n, p, i.z), c);
    UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = a[e] ? b[e] : c[e];
}
DEVICE u32 held(f32 x) { return bits_f32(x); }
DEVICE u32 held(bool x) { return x; }

}  // namespace ng::interpreter

extern "C" __global__ void __launch_bounds__(128, 5) interpret(const __grid_constant__ ng::interpreter::Numbers n)
{
    using namespace ng::interpreter;
    Place p;
    p.thread = threadIdx.x, p.base = shared_base(), p.here = p.base + threadIdx.x * UNIT_BYTES;
    p.piece = n.pieces == 1 ? 0 : blockIdx.x % n.pieces;
    p.first = 0, p.end = n.points, p.row = 0, p.turn = 0, p.is_row = true, p.is_whole = false;
    for (u32 k = threadIdx.x; k < 2 * n.number_count; k += blockDim.x) *reinterpret_cast<u64*>(shared_at(p.base + k * 8)) = n.words[n.numbers_at + k / 2];
    __syncthreads();
    u32  a[ITEMS] = {};
    u32  at = 0;
    Word next = word_at(n, 0);
    for (;;) {
        const Instruction i = instruction_of(next);
        next = word_at(n, ++at);                       // it comes while this one is at work
        const u32 place = i.place, more = i.more;
        u32       to = at;
        switch (i.code % CODES) {
        case END: return;
        case BEGIN_POINTS: to = begin_points(n, p, more, at); break;
        case NEXT_POINTS: {
            const Word again = word_at(n, more);
            if (next_points(n, p)) to = at = more, next = again;
            break;
        }
        case BEGIN_ROWS: to = take_rows(n, p) ? at : more; break;
        case NEXT_ROWS: to = n.pieces == 1 && take_rows(n, p) ? more : at; break;
        case START: start(n, p, i); break;
        case BEGIN_PASS: to = begin_pass(n, p, i, at); break;
        case NEXT_POINT: {
            const Word again = word_at(n, more);
            if (next_point(n, p)) to = at = more, next = again;
            break;
        }
        case FINISH: finish(n, p, i); break;
        case END_PASS:
            if (place) __syncthreads();
            if (n.pieces > 1 && n.stage == i.z) to = more;
            break;
        case LOAD_64: load_wide(n, p, i); break;
        case STORE_64: store_wide(n, p, i); break;
        case LOAD_8: load_narrow<u8>(n, p, place, more, a); continue;
        case LOAD_16: load_narrow<u16>(n, p, place, more, a); continue;
        case LOAD_32: load_narrow<u32>(n, p, place, more, a); continue;
        case STORE_8: store_narrow<u8>(n, p, place, more, a); continue;
        case STORE_16: store_narrow<u16>(n, p, place, more, a); continue;
        case STORE_32: store_narrow<u32>(n, p, place, more, a); continue;
        case HOLD: read_items(slot_at(n, p, more), a); continue;
        case HOLD_NUMBER: read_items({p.base + more, 0}, a); continue;
        case KEEP: write_items(slot_at(n, p, more), a); continue;
        case SPILL: spill(n, p, i); continue;
        case FILL: fill(n, p, i); continue;
        case WHERE: where(n, p, i, a); continue;
        case ROUND_F16:
            UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = bits_f32(round_f16(f32_bits(a[e])));
            continue;
        case ROUND_BF16:
            UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = bits_f32(round_bf16(f32_bits(a[e])));
            continue;
        case FOLD_HELD + FOLD_SUM: fold_held<Folder_sum<f32>>(a, p.here + states_of(n, place), own_items(n, p)); continue;
        case FOLD_HELD + FOLD_MIN: fold_held<Folder_min<f32>>(a, p.here + states_of(n, place), own_items(n, p)); continue;
        case FOLD_HELD + FOLD_MAX: fold_held<Folder_max<f32>>(a, p.here + states_of(n, place), own_items(n, p)); continue;
#include "lib/backend/cuda/interpreter_fast.cuh"
        default: slow(n, p, i);
        }
        // Nothing is in registers across these: their code may have them all.
        UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = 0;
        if (to != at) at = to, next = word_at(n, at);
    }
}
