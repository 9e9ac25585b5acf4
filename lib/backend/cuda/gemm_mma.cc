// Which instance of the portable products runs a problem, how its depth is cut, and its launches.
#include "lib/backend/cuda/gemm_mma.h"

#include "kernels/gemm_mma.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ng::cuda::gemm::mma {
namespace {

using namespace kernels;

// ---- the instances -----------------------------------------------------------------------------------------------------

enum Kind { HalvesF16, HalvesBf16, WordsTf32, BytesSS, BytesSU, BytesUS, BytesUU, Doubles, PlainF32, Parts };

struct Instance {
    Kind     kind;
    int      tile_m, tile_n, threads, shared_bytes;
    Loads    loads;
    Near     a, b;
};
constexpr int sum_bytes(Kind kind) { return kind == Doubles ? 8 : 4; }
constexpr int room(int stages_bytes, int m, int n, Kind kind) { return std::max(stages_bytes, m * n * sum_bytes(kind)); }

constexpr Instance INSTANCES[] = {
#define PRODUCT_TILES(name, kind, m, n, warps_m, warps_n, stages, a, b, loads, blocks)                                  \
    {kind, m, n, 32 * warps_m * warps_n, room(stages * (m + n) * MMA_DEPTH_BYTES, m, n, kind), loads, a, b},
#define SIMT(name, m, n, warps_m, warps_n, depth, stages, blocks)                                                       \
    {PlainF32, m, n, 32 * warps_m * warps_n, room(stages * (m + n + 8) * depth * 4, m, n, PlainF32), IN_FLIGHT, NEAR_LINE, NEAR_LINE},
#define PARTS(name, sum) {Parts, 0, 0, THREADS, 0, IN_FLIGHT, NEAR_LINE, NEAR_LINE},
#include "kernels/gemm_mma.def"
};
constexpr uint32_t COUNT = sizeof INSTANCES / sizeof *INSTANCES;

constexpr KernelFacts FACTS[] = {
#define PRODUCT_TILES(name, kind, m, n, warps_m, warps_n, stages, a, b, loads, blocks)                                  \
    {"mma_" #name, uint32_t(room(stages * (m + n) * MMA_DEPTH_BYTES, m, n, kind))},
#define SIMT(name, m, n, warps_m, warps_n, depth, stages, blocks)                                                       \
    {"mma_" #name, uint32_t(room(stages * (m + n + 8) * depth * 4, m, n, PlainF32))},
#define PARTS(name, sum) {"mma_" #name, 0},
#include "kernels/gemm_mma.def"
};
static_assert(INSTANCES[COUNT - 3].kind == Parts && INSTANCES[COUNT - 4].kind != Parts, "the last three add parts: of f32, f64, i32");

// ---- which of them -----------------------------------------------------------------------------------------------------

bool is_byte(Dtype t) { return t == Dtype::i8 || t == Dtype::u8; }
bool is_half_or_less(Dtype t) { return t == Dtype::f16 || t == Dtype::e4m3 || t == Dtype::e5m2; }

// Parts where there is none.
Kind kind_of(Dtype a, Dtype b, bool allows_tf32)
{
    if (is_byte(a) && is_byte(b)) return a == Dtype::i8 ? (b == Dtype::i8 ? BytesSS : BytesSU) : b == Dtype::i8 ? BytesUS : BytesUU;
    if (is_half_or_less(a) && is_half_or_less(b)) return HalvesF16;
    if (a != b) return Parts;
    if (a == Dtype::bf16) return HalvesBf16;
    if (a == Dtype::f32) return allows_tf32 ? WordsTf32 : PlainF32;
    return a == Dtype::f64 ? Doubles : Parts;
}

int64_t divided_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// c^T = b^T a^T: the same sums, rows for columns.
void turn(Problem& p)
{
    std::swap(p.a, p.b), std::swap(p.a_type, p.b_type), std::swap(p.m, p.n);
    std::swap(p.a_row, p.b_column), std::swap(p.a_depth, p.b_depth), std::swap(p.a_batch, p.b_batch);
    std::swap(p.c_row, p.c_column);
    for (int i = 0; i < p.epilogue.count; i++) std::swap(p.epilogue.step[i].row, p.epilogue.step[i].column);
}

// Batches that share b are rows of one product, where rows go on from one batch to the next.
void join_rows(Problem& p)
{
    if (p.m == 1) {
        p.a_row = p.a_batch, p.c_row = p.c_batch;
        for (int i = 0; i < p.epilogue.count; i++) p.epilogue.step[i].row = p.epilogue.step[i].batch;
    }
    if (p.batches <= 1 || p.b_batch != 0 || p.a_batch != p.a_row * p.m || p.c_batch != p.c_row * p.m) return;
    for (int i = 0; i < p.epilogue.count; i++)
        if (p.epilogue.step[i].source == FROM_TENSOR && p.epilogue.step[i].batch != p.epilogue.step[i].row * p.m) return;
    p.m *= p.batches, p.batches = 1;
}

// The problem as its kernel takes it: columns of c are the nearer ones.
Problem arranged(Problem p)
{
    const int64_t row = p.m > 1 ? std::abs(p.c_row) : INT64_MAX, column = p.n > 1 ? std::abs(p.c_column) : INT64_MAX;
    if (row < column) turn(p);
    join_rows(p);
    return p;
}

// An operand as kernels see it, and how it wants to lie in shared memory.
struct Lying {
    MmaOperand operand;
    Near       near;
    bool       is_steady;                // 16 bytes are read at once, of the very bits that are multiplied
};

// lines: rows of a or columns of b; steps: their depth.
Lying lying_of(const MmaOperand& o, int64_t lines, int64_t steps, int64_t batches, Kind kind)
{
    // What is repeated, or has nothing beside it, is not near.
    const auto distance = [](int64_t extent, int64_t stride) { return extent > 1 && stride != 0 ? std::abs(stride) : INT64_MAX; };
    Lying         r{o, distance(lines, o.line) < distance(steps, o.depth) ? NEAR_LINE : NEAR_DEPTH, false};
    const int64_t bytes = bytes_of(Dtype(o.type)), in_kind = kind == PlainF32 || kind == WordsTf32 ? 4 : kind == Doubles ? 8 : kind < WordsTf32 ? 2 : 1;
    const bool    is_deep = r.near == NEAR_DEPTH;
    // Nor does it matter where the next would be; but addresses of what is not read are aligned as well.
    i64 &near = is_deep ? r.operand.depth : r.operand.line, &far = is_deep ? r.operand.line : r.operand.depth;
    if ((is_deep ? steps : lines) <= 1) near = 1;
    if ((is_deep ? lines : steps) <= 1) far = 0;
    if (batches <= 1) r.operand.batch = 0;
    const bool is_aligned = reinterpret_cast<uintptr_t>(o.data) % 16 == 0 && r.operand.batch * bytes % 16 == 0;
    r.is_steady = bytes == in_kind && near == 1 && far * bytes % 16 == 0 && is_aligned;
    r.operand.is_wide = r.is_steady, r.operand.is_turned = !is_deep;
    // Plain products want lines near; bytes are multiplied along depth.
    if (kind == PlainF32) r.operand.is_wide = r.is_steady && !is_deep;
    if (kind >= BytesSS && kind <= BytesUU) r.is_steady &= is_deep, r.operand.is_wide = r.is_steady, r.near = NEAR_DEPTH;
    return r;
}

// ---- how it is cut -----------------------------------------------------------------------------------------------------

// Of depth, at least so much in one part; sums of parts, at most so many.
constexpr int64_t LEAST_PART = 256, MOST_PARTIALS = int64_t(1) << 22;

// A multiprocessor's nanoseconds for a tile of so many multiply-adds: measured on an H200 with two blocks there.
double adds_a_nanosecond(Kind kind)
{
    switch (kind) {
    case WordsTf32: return 750;
    case BytesSS: case BytesSU: case BytesUS: case BytesUU: return 3000;
    case Doubles: return 120;
    case PlainF32: return 190;
    default: return 1500;
    }
}

struct Cut {
    uint32_t instance;
    int64_t  splits;
    double   nanoseconds;
};

// Nanoseconds of one instance with the depth in so many parts.
double cost(const Problem& p, const Instance& i, int64_t splits, const Device& device)
{
    const double tiles = double(divided_up(p.m, i.tile_m)) * double(divided_up(p.n, i.tile_n)) * double(p.batches);
    const double depth = double(divided_up(p.k, splits)), rounds = std::max(1.0, double(divided_up(int64_t(tiles) * splits, device.units)));
    const double small = i.tile_m < 128 ? 1.3 : 1.0, alone = rounds < 2 ? 1.5 : 1.0;
    const double tile = double(i.tile_m) * i.tile_n * depth / adds_a_nanosecond(i.kind) * small * alone + 1500;
    // Parts are written and read at some TB/s, by another launch.
    const double parts = splits > 1 ? 2500 + double(p.m) * double(p.n) * double(p.batches) * double(splits) * 2 * sum_bytes(i.kind) / 2500 : 0;
    return rounds * tile + parts;
}

Cut cut_of(const Problem& p, const Device& device, Kind kind, Loads loads, Near a, Near b, uint64_t workspace_bytes)
{
    Cut best{COUNT, 1, 0};
    for (uint32_t n = 0; n < COUNT; n++) {
        const Instance& i = INSTANCES[n];
        if (i.kind != kind || i.loads != loads || (kind != PlainF32 && (i.a != a || i.b != b))) continue;
        const int64_t tiles = divided_up(p.m, i.tile_m) * divided_up(p.n, i.tile_n) * p.batches;
        const int64_t line_bytes = divided_up(p.n, MMA_FOUR) * MMA_FOUR * sum_bytes(kind) * p.m * p.batches;
        for (const int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
            if (splits > 1 && (splits > p.k / LEAST_PART || tiles * splits > MOST_PARTIALS / (i.tile_m * i.tile_n) || uint64_t(line_bytes * splits) > workspace_bytes)) break;
            const Cut cut{n, splits, cost(p, i, splits, device)};
            if (best.instance == COUNT || cut.nanoseconds < best.nanoseconds) best = cut;
        }
    }
    return best;
}

void send(const Place& place, uint32_t kernel, int64_t blocks, const MmaNumbers& numbers)
{
    place.launch({Image::Mma, kernel, {uint32_t(blocks), 1, 1}, uint32_t(INSTANCES[kernel].threads), 1, uint32_t(INSTANCES[kernel].shared_bytes), false, &numbers, uint32_t(sizeof numbers)});
}

}  // namespace

std::span<const KernelFacts> kernels() { return FACTS; }

bool takes(Dtype a, Dtype b) { return kind_of(a, b, false) != Parts; }

bool can_run(const Problem& problem, const Device& device)
{
    const Kind kind = kind_of(problem.a_type, problem.b_type, problem.allows_tf32);
    if (kind == Parts || device.compute < 80 || !device.has[size_t(Image::Mma)]) return false;
    const bool is_whole = kind >= BytesSS && kind <= BytesUU && !problem.epilogue.is_cast;
    if (is_whole != (problem.c_type == Dtype::i32) || (!is_whole && !is_float(problem.c_type))) return false;
    if ((is_whole || kind == Doubles) && problem.epilogue.count > 0) return false;
    // A grid's blocks are numbered by 31 bits.
    const double tiles = double(divided_up(problem.m, 64)) * double(divided_up(problem.n, 64));
    return tiles * double(std::max<int64_t>(problem.batches, 1)) < 0x1p31;
}

uint64_t workspace(const Problem& p)
{
    if (p.k < 2 * LEAST_PART) return 0;
    const double sums = double(divided_up(p.m, MMA_FOUR) * MMA_FOUR) * double(divided_up(p.n, MMA_FOUR) * MMA_FOUR) * double(p.batches) * double(p.k / LEAST_PART);
    const int    bytes = p.a_type == Dtype::f64 && p.b_type == Dtype::f64 ? 8 : 4;
    return (uint64_t(std::min(sums, double(MOST_PARTIALS))) * uint64_t(bytes) + 255) / 256 * 256;
}

void run(const Problem& problem, const Device& device, const Place& place)
{
    if (problem.m == 0 || problem.n == 0 || problem.batches == 0) return;
    const Problem p = arranged(problem);
    const Kind    kind = kind_of(p.a_type, p.b_type, p.allows_tf32);
    const Lying   a = lying_of({p.a, p.a_row, p.a_depth, p.a_batch, i32(p.a_type), 0, 0}, p.m, p.k, p.batches, kind);
    const Lying   b = lying_of({p.b, p.b_column, p.b_depth, p.b_batch, i32(p.b_type), 0, 0}, p.n, p.k, p.batches, kind);
    const bool    is_free = kind == PlainF32 || kind == WordsTf32 || kind == Doubles;      // copies single elements as well
    const Loads   loads = is_free || (a.is_steady && b.is_steady) ? IN_FLIGHT : IN_REGISTERS;
    const Cut     cut = cut_of(p, device, kind, loads, a.near, b.near, place.workspace ? place.workspace_bytes : 0);
    const Instance& i = INSTANCES[cut.instance];

    MmaNumbers n{};
    n.a = a.operand, n.b = b.operand, n.c = p.c;
    n.m = p.m, n.n = p.n, n.k = p.k, n.batches = p.batches;
    n.c_row = p.c_row, n.c_column = p.c_column, n.c_batch = p.c_batch, n.c_type = i32(p.c_type);
    n.row_tiles = uint32_t(divided_up(p.m, i.tile_m)), n.column_tiles = uint32_t(divided_up(p.n, i.tile_n));
    n.pitch = divided_up(p.n, MMA_FOUR) * MMA_FOUR;
    // Parts begin where a tile's depth does, of bytes the longest.
    n.split_depth = divided_up(divided_up(p.k, cut.splits), MMA_DEPTH_BYTES) * MMA_DEPTH_BYTES;
    n.splits = int32_t(std::max<int64_t>(divided_up(p.k, std::max<int64_t>(n.split_depth, 1)), 1));
    n.epilogue = p.epilogue;
    if (n.splits > 1) n.partial = place.workspace;
    send(place, cut.instance, int64_t(n.row_tiles) * n.column_tiles * p.batches * n.splits, n);
    if (n.splits == 1) return;
    const int64_t fours = n.pitch / MMA_FOUR * p.m * p.batches;
    send(place, COUNT - 3 + (kind == Doubles ? 1 : i.kind >= BytesSS && i.kind <= BytesUU ? 2 : 0), std::min<int64_t>(divided_up(fours, THREADS), 1 << 20), n);
}

}  // namespace ng::cuda::gemm::mma
