// The interpreter's kernel: a block's threads walk a list of instructions over points, or over rows and their points.
//
//   grid      blocks take tiles of points, or rows, in turn; of split rows each block has one piece
//   thread    ITEMS elements at a time: two times four neighbours, or points that lie `lanes` apart
//   shared    kernels/interpreter.h draws it
//   sm_90     96 registers or less, no spills; a stack of 40 bytes for large angles
// The list and its accesses lie in shared memory, where there is room: an instruction that came through the cache would wait
// for the elements that were asked for before it. From one instruction to the next a warp issues 18 instructions and waits for
// shared memory, a table and a jump: so a thread has 16 elements, and five blocks share a multiprocessor.
#include "lib/backend/cuda/interpreter_folds.cuh"
#include "lib/backend/cuda/interpreter_memory.cuh"
#include "lib/backend/cuda/interpreter_slow.cuh"

namespace ng::interpreter {

// ---- control: each gives the place of the next instruction ---------------------------------------------------------------

DEVICE u32 begin_points(const Numbers& n, Place& p, u32 end, u32 next)
{
    const i64 begin = (i64)blockIdx.x * ITEMS * blockDim.x;
    p.left = n.points - begin;
    if (p.left <= 0) return end;
    p.first = begin + thread_of(p) * ITEMS_A_UNIT;
    arrive(n, p, thread_of(p) * ITEMS_A_UNIT);
    return next;
}
DEVICE u32 next_points(const Numbers& n, Place& p, u32 again, u32 next)
{
    const i64 step = (i64)gridDim.x * ITEMS * blockDim.x;
    p.left -= step;
    if (p.left <= 0) return next;
    p.first += step;
    arrive(n, p, thread_of(p) * ITEMS_A_UNIT);
    return again;
}

// The block's next `row_mask` + 1 rows; false beyond the last.
DEVICE bool take_rows(const Numbers& n, Place& p)
{
    const u32 group = n.pieces == 1 ? blockIdx.x : blockIdx.x / n.pieces;
    const i64 first = (group + p.turn++ * (i64)gridDim.x) * (i64)(n.row_mask + 1), row = first + (thread_of(p) >> n.row_shift & n.row_mask);
    if (first >= n.rows) return false;
    p.is_row = row < n.rows;
    p.row = p.is_row ? row : n.rows - 1;
    find_row(n, p);
    return true;
}
DEVICE u32 begin_pass(const Numbers& n, Place& p, const Instruction& i, u32 next)
{
    const i64 begin = piece_begin(n, p), left = n.points - begin;
    if (left <= 0 || (n.pieces > 1 && n.stage != i.y)) return i.more;
    p.left = left < n.piece_points ? left : n.piece_points;
    p.first = begin + lane_of(n, p);
    arrive(n, p, lane_of(n, p));
    return next;
}
DEVICE u32 next_point(const Numbers& n, Place& p, u32 again, u32 next)
{
    const u32 step = n.lanes * ITEMS;
    p.left -= step;
    if (p.left <= 0) return next;
    p.first += step;
    arrive(n, p, lane_of(n, p));
    return again;
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
    const i64 left = own_end(n, p) - p.first;
    return left <= 0 ? 0 : (u32)(left + n.item_points - 1) >> n.item_shift;
}
DEVICE void fold(const Numbers& n, const Place& p, const Instruction& i)
{
    const Operand x = operand_of(n, p, i.x);
    fold_items(i.more, x.at, x.step, p.here + states_of(n, i.place), own_items(n, p), p.first, n.item_points);
}
// Whether another launch goes on where this pass ends.
DEVICE bool is_left(const Numbers& n, const Instruction& i) { return n.pieces > 1 && n.stage == i.z && i.more != NOWHERE; }
// Lanes side by side share a warp; rows have nothing of one another's.
DEVICE void wait_for_row(const Numbers& n)
{
    if (n.lane_shift == 0 && n.lanes <= 32) SYNC_WARP;
    else __syncthreads();
}
DEVICE Circle circle_of(const Numbers& n, const Place& p, const Instruction& i)
{
    Circle c;
    c.thread = thread_of(p), c.lane = lane_of(n, p), c.lanes = n.lanes, c.lane_shift = n.lane_shift;
    c.pieces = n.pieces, c.piece = p.piece, c.is_row = p.is_row;
    c.meeting = Meeting::Whole, c.partials = 0;
    if (n.pieces == 1) return c;
    c.meeting = n.stage == i.z ? Meeting::Given : Meeting::Taken;
    c.partials = (u64)n.scratch + ((u64)i.place * n.rows + p.row) * n.pieces * UNIT_BYTES;
    return c;
}
DEVICE void finish(const Numbers& n, const Place& p, const Instruction& i)
{
    const Operand out = operand_of(n, p, i.out);
    finish_fold(i.more, circle_of(n, p, i), p.base + states_of(n, i.place), out.at, out.step);
}
template <class Folder>
DEVICE void finish_held(const Numbers& n, const Place& p, const Instruction& i, u32 (&a)[ITEMS])
{
    const u32 result = bits_f32(met_held<Folder>(circle_of(n, p, i), p.base + states_of(n, i.place)));
    UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = result;
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
    p.base = shared_base(), p.here = p.base + threadIdx.x * UNIT_BYTES;
    p.first = 0, p.row = 0, p.turn = 0, p.is_row = true, p.is_whole = false;
    find_piece(n, p);
    bring_near(n, p.base);
    p.near = kept(n.near_at ? p.base + n.near_at : 0);
    const u32 list_at = kept(p.near + n.access_count * (u32)sizeof(Access));
    u32 a[ITEMS] = {};
    u32 at = 0;
    for (;;) {
        const Instruction i = instruction_at(n, p.near != 0, list_at, at++);
        const u32 place = i.place;
        switch (i.code % CODES) {
        case END: return;
        case BEGIN_POINTS: at = begin_points(n, p, i.more, at); break;
        case NEXT_POINTS: at = next_points(n, p, i.more, at); break;
        case BEGIN_ROWS: at = take_rows(n, p) ? at : i.more; break;
        case NEXT_ROWS: at = n.pieces == 1 && take_rows(n, p) ? i.more : at; break;
        case START: start(n, p, i); continue;
        case START_PASS: start(n, p, i); at = begin_pass(n, p, i, at); continue;
        case BEGIN_PASS: at = begin_pass(n, p, i, at); continue;
        case NEXT_POINT: at = next_point(n, p, i.more, at); continue;
        case FINISH: finish(n, p, i); break;
        case END_PASS:
            if (place) wait_for_row(n);
            if (is_left(n, i)) at = i.more;
            continue;
        case LOAD_64: load_wide(n, p, i); break;
        case STORE_64: store_wide(n, p, i); break;
        case LOAD_8: load_narrow<u8>(n, p, i, a); continue;
        case LOAD_16: load_narrow<u16>(n, p, i, a); continue;
        case LOAD_32: load_narrow<u32>(n, p, i, a); continue;
        case STORE_8: store_narrow<u8>(n, p, place, i.more, a); continue;
        case STORE_16: store_narrow<u16>(n, p, place, i.more, a); continue;
        case STORE_32: store_narrow<u32>(n, p, place, i.more, a); continue;
        case HOLD: read_items(slot_at(n, p, i.more), a); continue;
        case HOLD_NUMBER: read_items({p.base + i.more, 0}, a); continue;
        case KEEP: write_items(slot_at(n, p, i.more), a); continue;
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
        case FOLD_NEXT + FOLD_SUM: fold_held<Folder_sum<f32>>(a, p.here + states_of(n, place), own_items(n, p)); at = next_point(n, p, i.more, at); continue;
        case FOLD_NEXT + FOLD_MIN: fold_held<Folder_min<f32>>(a, p.here + states_of(n, place), own_items(n, p)); at = next_point(n, p, i.more, at); continue;
        case FOLD_NEXT + FOLD_MAX: fold_held<Folder_max<f32>>(a, p.here + states_of(n, place), own_items(n, p)); at = next_point(n, p, i.more, at); continue;
        case FINISH_HELD + FOLD_SUM:
            finish_held<Folder_sum<f32>>(n, p, i, a);
            if (is_left(n, i)) at = i.more;
            continue;
        case FINISH_HELD + FOLD_MIN:
            finish_held<Folder_min<f32>>(n, p, i, a);
            if (is_left(n, i)) at = i.more;
            continue;
        case FINISH_HELD + FOLD_MAX:
            finish_held<Folder_max<f32>>(n, p, i, a);
            if (is_left(n, i)) at = i.more;
            continue;
#include "lib/backend/cuda/interpreter_fast.cuh"
        default: slow(n, p, i);
        }
        // Nothing is in registers across these: their code may have them all.
        UNROLLED for (int e = 0; e < ITEMS; e++) a[e] = 0;
    }
}
