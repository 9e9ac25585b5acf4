// What an instance of the portable products takes for a problem, by a model of the multiprocessor.
#include "lib/backend/cuda/gemm_mma_form.h"

#include "lib/backend/cuda/rounding.h"

#include <algorithm>
#include <cmath>

namespace ng::cuda::gemm::mma {

using namespace kernels;

namespace {

// Multiply-adds of a multiprocessor in a nanosecond, with tiles of 128: an H200's, 2026-11-21 (mma_gpu_test -tc="speed*").
double adds_a_nanosecond(Kind kind)
{
    switch (kind) {
    case WordsTf32: return 520;
    case Doubles: return 200;
    case PlainF32: return 175;
    default: return is_of_bytes(kind) ? 2200 : 1450;
    }
}

constexpr int64_t LEAST_SMALL = 32;      // products, for which there are tiles of warps

// Nanoseconds of a multiprocessor that a tile takes where it has others beside it, and a step of its depth; what that takes longer for each operand whose elements come
// one by one, or halves and words not by 16 bytes; and the tile where rows of c are no fours. An H200's, fitted to the times of mma_gpu_test -tc="speed: many*" (2026-12-01).
struct TileTimes { double tile, step, elements, odd; };

TileTimes times_of(const Instance& i)
{
    enum { Halves, Tf32, F32, F64, Bytes, Codes };
    enum { Tall, Middle, Low, Any, SmallLow, SmallTall, Half, Quarter, COUNT_OF_SIZES };
    constexpr TileTimes TIMES[][COUNT_OF_SIZES] = {
        {{1673, 243, 150, 590}, {546, 72, 48, 225}, {486, 70, 28, 52}, {583, 410, 0, 0}, {41, 16, 4, 12}, {116, 33, 25, 72}},                                           // halves
        {{1394, 372, 92, 6}, {518, 112, 77, 34}, {456, 105, 66, 0}, {}, {38, 16, 5, 0}, {117, 39, 9, 7}},                                                               // tf32
        {{1283, 1407, 0, 362}, {485, 383, 23, 137}, {514, 263, 1, 106}, {}, {48, 20, 2, 133}, {96, 31, 6, 132}, {311, 224, 20, 29}, {178, 106, 11, 37}},                // f32
        {{1128, 576, 49, 21}, {621, 262, 56, 63}, {490, 195, 32, 6}, {}, {35, 32, 2, 0}, {88, 92, 4, 66}},                                                                // doubles
        {{1800, 60, 0, 0}, {640, 40, 0, 10}, {405, 54, 0, 0}, {500, 878, 0, 0}, {44, 18, 19, 9}, {}},                                                                    // bytes
        {{}, {}, {433, 212, 20, 0}, {}, {}, {}},                                                                                                                        // codes
    };
    const int kind = is_of_halves(i.kind) ? Halves : i.kind == WordsTf32 ? Tf32 : i.kind == PlainF32 ? F32 : i.kind == Doubles ? F64 : is_of_codes(i.kind) ? Codes : Bytes;
    if (!i.is_small() && i.is_little()) return TIMES[kind][i.tile_m == 64 ? Half : Quarter];
    if (!i.is_small()) return TIMES[kind][i.tile_m == 128 ? Tall : i.tile_m == 16 ? Low : i.loads == IN_REGISTERS ? Any : Middle];
    return TIMES[kind][i.tile_m == (i.kind == PlainF32 ? 8 : 16) ? SmallLow : SmallTall];
}

// All that a choice may know of an address, in whose place it stands: whether it is a multiple of 16 bytes (contract P6).
const void* known_of(const void* address) { return reinterpret_cast<const void*>(uintptr_t(reinterpret_cast<uintptr_t>(address) % 16 != 0)); }

bool is_read_singly(const Lying& x, const Problem& p, int64_t lines, int64_t of_lane, const Instance& i)
{
    MmaOperand o = x.operand;
    o.data = known_of(o.data);
    return reads_of(o, lines, p.k, p.batches, of_lane, i) == READ_ELEMENTS;
}

// Whether an instance copies it by elements, or by fours of halves.
bool comes_by_pieces(const Lying& x, const Instance& i) { return !x.is_steady && (copies_elements(i.kind) || (i.loads == IN_FLIGHT && x.is_by_fours)); }

// Where tiles are many, or a warp's.
double of_many(const Form& f, const Instance& i, int64_t tiles, const Device& device)
{
    // FILL: of those that a multiprocessor has at once, until it works on all of them; wait: until a lane's part of the next step is there.
    // HALVES: lanes of small tiles store doubles by half a sector of the cache.
    constexpr double BYTES_A_NS = 4000, H200_UNITS = 132, FILL = 0.4, HALVES = 1.35;
    const double     wait = i.kind == PlainF32 ? 800 : 500;
    const Problem&   p = f.p;
    const TileTimes  t = times_of(i);
    const int64_t    bytes = element_bytes(i.kind), depth = !i.is_small() ? mma_depth_bytes(int(bytes)) / bytes : i.piece / bytes * (i.kind == PlainF32 ? 1 : 4);
    const double     steps = double(divided_up(p.k, depth));
    int singly = comes_by_pieces(f.a, i) + comes_by_pieces(f.b, i);
    if (i.is_small()) singly = is_read_singly(f.a, p, p.m, i.lines_of_lane_a(), i) + is_read_singly(f.b, p, p.n, i.lines_of_lane_b(), i);
    const double each = t.tile + steps * (t.step + singly * t.elements) + (has_fours(p, i.kind, known_of(p.c)) ? 0 : t.odd);
    const double of_a = double(f.a.batches) * double(p.m) * double(p.k), of_b = double(f.b.batches) * double(p.k) * double(p.n), of_c = double(p.batches) * double(p.m) * double(p.n);
    const double moved = ((of_a + of_b) * double(bytes) + of_c * bytes_of(p.c_type)) / BYTES_A_NS * H200_UNITS / device.units * (i.is_small() && bytes == 8 ? HALVES : 1);
    const double at_once = i.blocks * (i.is_small() ? SMALL_WARPS : 1);
    // What memory takes is beside what is done, but not all of it: tiles begin and end with waiting for it.
    const double work = (double(tiles) / device.units + FILL * at_once) * each;
    return LAUNCH + std::max(std::hypot(work, moved), i.is_small() ? steps * wait : 0);
}

}  // namespace

bool are_many(const Form& f, const Instance& i, int64_t tiles, const Device& device) { return i.pieces == 0 && f.p.batches > 1 && (i.is_small() || tiles >= int64_t(device.units) * i.blocks); }

double nanoseconds_of(const Form& f, const Instance& i, int64_t tiles, int64_t splits, const Device& device)
{
    const Problem& p = f.p;
    if (i.is_small() && p.batches < LEAST_SMALL) return HUGE_VAL;
    if (splits == 1 && are_many(f, i, tiles, device)) return of_many(f, i, tiles, device);
    if (i.is_little()) return HUGE_VAL;
    const double   rounds = double(std::max<int64_t>(divided_up(tiles * splits, device.units), 1)), depth = double(divided_up(p.k, splits));
    const double   parts = splits > 1 ? LAUNCH + double(p.m) * double(p.n) * double(p.batches) * double(splits) * 2 * sum_bytes(i.kind) / 2500 : 0;
    // Memory gives all multiprocessors so many bytes a nanosecond, which both operands have once at least.
    const auto   all = [&](double rate) { return double(p.batches) * double(p.m + p.n) * double(p.k) * element_bytes(i.kind) / (rate * device.units); };
    if (i.pieces) {
        // Pieces come to a warp, though it may have no column, some time after they are asked for: the first are in what a launch
        // takes. A block alone overlaps with none, and threads begin and end. Larger blocks read more of a column in a row.
        const double waves = double(std::max<int64_t>(divided_up(tiles * splits, int64_t(device.units) * i.blocks), 1)), late = 540 + 78 * i.pieces;
        const double moved = i.tile_n * depth * element_bytes(i.kind) / (16.0 * i.pieces * i.threads) * late, wave = std::max(moved + (i.blocks == 1 ? late : 0), 4.3 * i.threads);
        const double rate = 23 + (i.b == NEAR_DEPTH ? i.threads / 256.0 : 0), slower = f.b.is_steady || i.b == NEAR_DEPTH ? 1 : 1.5;
        const double operands = p.epilogue_weight > 0 ? 500 * waves : 0;      // of what follows, asked for when sums are there
        const double many = p.batches > 1 ? 0.68 : 1;                         // whose blocks follow each other without the waits of one product's
        return many * std::hypot(all(rate), (waves - 1) * wave + std::max(moved - late, 0.0)) * slower + 1450 + 1.45 * i.threads + operands + parts;
    }
    double         slower = i.tile_m == 16 ? 2.5 : i.tile_m == 64 && i.kind != Doubles ? 1.25 : 1.0;
    if (f.kind == WordsTf32 && !((f.a.is_steady || f.a.is_copied) && (f.b.is_steady || f.b.is_copied))) slower *= 1.6;
    // One block alone waits more than it works.
    const double alone = rounds < 2 ? 1.5 : 1.0;
    const double adds = double(i.tile_m) * i.tile_n * depth / adds_a_nanosecond(i.kind) * slower;
    // Some tens of bytes a nanosecond come to a multiprocessor, or some elements one by one.
    const double elements = double(i.tile_m + i.tile_n) * depth, reads = i.loads == IN_REGISTERS ? elements / 3.2 : elements * element_bytes(i.kind) / 35;
    // Halves that come by fours; and large tiles of batches, of which a multiprocessor has few (H200, 2026-12-01, 47 shapes).
    const bool   is_by_fours = is_of_halves(i.kind) && (comes_by_pieces(f.a, i) || comes_by_pieces(f.b, i));
    const double by_fours = !is_by_fours ? 1 : i.tile_m == 128 ? 1.35 : 1.15, between = p.batches > 1 && i.tile_m == 128 && is_of_halves(i.kind) ? times_of(i).tile : 700;
    return std::max(rounds * (std::max(adds * alone, reads) * by_fours + between), all(22)) + parts + LAUNCH;
}

}  // namespace ng::cuda::gemm::mma
