// c = a b by Hopper's tensor cores, for few tiles or much depth: the depth is cut among the blocks of a cluster, and clusters.
//
//   grid      a cluster a tile and split; all its blocks have the tile, and each a part of the depth
//   threads   TILE_M / 64 warpgroups multiply, a warp loads
//   shared    [STAGES] of a's [TILE_M][128 bytes] and b's [TILE_N][128 bytes], swizzled; later the sums [TILE_M][TILE_N + 8];
//             then barriers
// Sums are added block by block in the order of depth, each block a share of the tile; so results do not vary.
#pragma once
#include "kernels/gemm_sm90_store.cuh"

namespace ng::kernels {
namespace {

template <class Kind_, int TILE_M_, int TILE_N_, int STAGES_, int A_TURNED_, int B_TURNED_, bool PROMOTE_>
struct SplitShape {
    using Kind = Kind_;
    using Word = typename Kind::Word;
    static constexpr i32  TILE_M = TILE_M_, TILE_N = TILE_N_, STAGES = STAGES_, A_TURNED = A_TURNED_, B_TURNED = B_TURNED_;
    static constexpr bool PROMOTE = PROMOTE_;
    static constexpr i32  GROUPS = TILE_M / 64, THREADS = split_threads(TILE_M), PITCH = TILE_N + 8;
    static constexpr i32  B_WIDTH = TILE_N < 64 ? TILE_N : 64, B_SWIZZLE = B_WIDTH * 2;      // of a turned b
    static constexpr u32  A_BYTES = TILE_M * 128, STAGE = A_BYTES + TILE_N * 128;
    static constexpr u32  BUFFER = split_buffer(TILE_M, TILE_N, STAGES), SHARED = split_shared(TILE_M, TILE_N, STAGES);
    static_assert(SHARED <= 232448, "shared memory of a multiprocessor");
};

template <class S>
struct SplitMemory {
    u32 stages, barriers;

    DEVICE explicit SplitMemory(u32 shared) : stages((shared + 1023) & ~1023u), barriers(stages + S::BUFFER) {}
    DEVICE u32 full(u32 stage) const { return barriers + 8 * stage; }
    DEVICE u32 empty(u32 stage) const { return barriers + 8 * (S::STAGES + stage); }
};

// A block's share: the tile's first row and column, the steps of depth.
struct SplitPart {
    TileSpot at;
    i32      split, begin, end;
};
DEVICE SplitPart split_part(const GemmSplitNumbers& g, i32 tile_m, i32 tile_n, u32 rank, u32 blocks)
{
    const i32 id = i32(blockIdx.x / blocks), split = id % g.splits, all = id / g.splits, tiles = g.row_tiles * g.column_tiles;
    const i32 batch = all / tiles, tile = all - batch * tiles, column = tile / g.row_tiles, row = tile - column * g.row_tiles;
    const i64 parts = i64(blocks) * g.splits, part = i64(split) * blocks + rank, steps = i64(g.k_steps) * products_of(g.planes);
    return {{batch, row * tile_m, column * tile_n}, split, i32(steps * part / parts), i32(steps * (part + 1) / parts)};
}

// Where a step's boxes are: of planes, all steps of one product come before those of the next.
struct SplitStep {
    i32 depth, a_batch, b_batch;
};
template <class S>
DEVICE SplitStep split_step(const GemmSplitNumbers& g, const SplitPart& part, i32 step)
{
    const i32 a_batch = part.at.batch * g.a_moves, b_batch = part.at.batch * g.b_moves;
    if constexpr (!S::PROMOTE) return {step * S::Kind::STEP, a_batch, b_batch};
    if (g.planes == 1) return {step * S::Kind::STEP, a_batch, b_batch};
    const i32 product = step / g.k_steps;
    return {(step - product * g.k_steps) * S::Kind::STEP, a_batch * 3 + plane_of_a(product), b_batch * 3 + plane_of_b(product)};
}

template <class S>
DEVICE void load_part(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part)
{
    wait_for_launch_before();
    u32 stage = 0, phase = 1;
    ROLLED for (i32 step = part.begin; step < part.end; step++) {
        const u32       a = memory.stages + stage * S::STAGE, b = a + S::A_BYTES, full = memory.full(stage);
        const SplitStep at = split_step<S>(g, part, step);
        barrier_wait(memory.empty(stage), phase);
        barrier_expect(full, S::STAGE);
        if constexpr (!S::A_TURNED) load_box(a, g.a, at.depth, part.at.row, at.a_batch, full);
        else UNROLLED for (i32 i = 0; i < S::GROUPS; i++) load_box(a + u32(i) * 8192, g.a, part.at.row + i * 64, at.depth, at.a_batch, full);
        if constexpr (!S::B_TURNED) load_box(b, g.b, at.depth, part.at.column, at.b_batch, full);
        else UNROLLED for (i32 i = 0; i < S::TILE_N / S::B_WIDTH; i++) load_box(b + u32(i) * S::B_WIDTH * 128, g.b, part.at.column + i * S::B_WIDTH, at.depth, at.b_batch, full);
        if (++stage == S::STAGES) stage = 0, phase ^= 1;
    }
}

template <class S>
DEVICE void multiply_part(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, i32 group)
{
    using Word = typename S::Word;
    const u32 lane = threadIdx.x & 31, a_first = memory.stages + u32(group) * 8192, b_first = memory.stages + S::A_BYTES;
    const u64 a = S::A_TURNED ? matrix_at<128>(a_first, 8192, 1024) : matrix_at<128>(a_first, 16, 1024);
    const u64 b = S::B_TURNED ? matrix_at<S::B_TURNED ? S::B_SWIZZLE : 128>(b_first, 64 * S::B_SWIZZLE, 8 * S::B_SWIZZLE) : matrix_at<128>(b_first, 16, 1024);
    Word d[S::TILE_N / 2], sums[S::TILE_N / 2];
    UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) d[i] = 0, sums[i] = 0;
    u32 stage = 0, phase = 0;
    i32 before = -1;
    ROLLED for (i32 step = part.begin; step < part.end; step++) {
        barrier_wait(memory.full(stage), phase);
        const u32 at = stage * (S::STAGE >> 4);
        products_fence();
        UNROLLED for (i32 k = 0; k < 4; k++)
            multiply<S::A_TURNED, S::B_TURNED>(d, a + (at + (S::A_TURNED ? k * 128 : k * 2)), b + (at + (S::B_TURNED ? k * S::B_SWIZZLE : k * 2)), !S::PROMOTE || k > 0,
                                               typename S::Kind());
        end_products();
        wait_products<S::PROMOTE ? 0 : 1>();
        if constexpr (S::PROMOTE) settle(d);
        if (before >= 0 && lane == 0) barrier_arrive(memory.empty(u32(before)));
        before = i32(stage);
        if constexpr (S::PROMOTE) {
            // Products of planes count 2^-16, 2^-8 and 1 (gemm_sm90_tiles.cuh).
            const i32   product = g.planes == 1 ? 5 : step / g.k_steps;
            const float weight = product == 5 ? 1.0f : product >= 3 ? 0x1p-8f : 0x1p-16f;
            UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) sums[i] = fmaf(d[i], weight, sums[i]);
        }
        if (++stage == S::STAGES) stage = 0, phase ^= 1;
    }
    wait_products<0>();
    settle(d);
    // All groups are done with the stages: sums go there.
    named_barrier(1, S::GROUPS * 128);
    const i32 row = group * 64 + i32(threadIdx.x >> 5 & 3) * 16 + i32(lane >> 2);
    UNROLLED for (i32 j = 0; j < S::TILE_N / 8; j++)
        UNROLLED for (i32 h = 0; h < 2; h++) {
            const Word x = S::PROMOTE ? sums[j * 4 + h * 2] : d[j * 4 + h * 2], y = S::PROMOTE ? sums[j * 4 + h * 2 + 1] : d[j * 4 + h * 2 + 1];
            const u32  to = memory.stages + u32(((row + h * 8) * S::PITCH + j * 8 + i32(lane & 3) * 2) * 4);
            asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(bits_of(x)), "r"(bits_of(y)) : "memory");
        }
}

template <class Word>
DEVICE u32 added(u32 a, u32 b)
{
    if constexpr (IS_REAL<Word>) return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
    return a + b;
}

constexpr i32 TOGETHER = 4;              // fours of a thread whose loads are under way at once: each takes some hundred cycles

DEVICE void read_sums(u32 at, u32 block, u32 blocks, u32 (&x)[4])
{
    if (blocks == 1) return read_words(at, x);
    asm volatile("{\n.reg .b32 a;\nmapa.shared::cluster.u32 a, %4, %5;\nld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [a];\n}"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at), "r"(block)
                 : "memory");
}

// The sums at these places over all blocks of the cluster, where they are valid.
template <class Word>
DEVICE void add_blocks(const u32 (&at)[TOGETHER], const i32 (&valid)[TOGETHER], u32 blocks, u32 (&v)[TOGETHER][4])
{
    ROLLED for (u32 block = 0; block < blocks; block++) {
        u32 x[TOGETHER][4] = {};
        UNROLLED for (i32 q = 0; q < TOGETHER; q++)
            if (valid[q] > 0) read_sums(at[q], block, blocks, x[q]);
        UNROLLED for (i32 q = 0; q < TOGETHER; q++)
            UNROLLED for (i32 i = 0; i < 4; i++) v[q][i] = block == 0 ? x[q][i] : added<Word>(v[q][i], x[q][i]);
    }
}

// A block's sums that are no numbers, from the operands.
DEVICE void sum_four_again(const PlainOperands& plain, const TileSpot& at, i32 valid, u32 (&v)[4])
{
    ROLLED for (i32 j = 0; j < valid; j++) {
        const u32 sum = j == 0 ? v[0] : j == 1 ? v[1] : j == 2 ? v[2] : v[3];
        if (!is_no_number(sum)) continue;
        const u32 again = sum_again(plain, {at.batch, at.row, at.column + j});
        UNROLLED for (i32 i = 0; i < 4; i++) v[i] = i == j ? again : v[i];
    }
}

DEVICE void store_partial(const GemmSplitNumbers& g, i32 split, const TileSpot& at, i32 valid, const u32 (&v)[4])
{
    const i32    m = g.output.m, n = g.output.n;
    float* const to = g.partial + (i64(split) * g.batches + at.batch) * m * n + i64(at.row) * n + at.column;
    if (valid == 4 && n % 4 == 0) *reinterpret_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
    else
        UNROLLED for (i32 j = 0; j < 4; j++)
            if (j < valid) to[j] = __uint_as_float(v[j]);
}

template <class S>
DEVICE void store_part(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, u32 rank, u32 blocks)
{
    using Word = typename S::Word;
    constexpr u32 FOURS = S::TILE_M * S::TILE_N / 4, ROW = S::TILE_N / 4;
    const GemmOutput& o = g.output;
    const u32  end = FOURS * (rank + 1) / blocks;
    const bool is_whole = stays_whole<Word>(o);
    for (u32 unit = FOURS * rank / blocks + threadIdx.x; unit < end; unit += TOGETHER * S::THREADS) {
        u32      from[TOGETHER], v[TOGETHER][4];
        TileSpot at[TOGETHER];
        i32      valid[TOGETHER];
        UNROLLED for (i32 q = 0; q < TOGETHER; q++) {
            const u32 mine = min(unit + u32(q) * S::THREADS, FOURS - 1), row = mine / ROW, column = mine % ROW * 4;
            at[q] = {part.at.batch, part.at.row + i32(row), part.at.column + i32(column)};
            valid[q] = unit + u32(q) * S::THREADS < end ? valid_of(o, at[q]) : 0;
            from[q] = memory.stages + (row * S::PITCH + column) * 4;
        }
        EpilogueOperands<4> operands[TOGETHER];
        if (g.splits == 1)
            UNROLLED for (i32 q = 0; q < TOGETHER; q++) fetch_operands(FromMemory{o.epilogue, spot_of(at[q], valid[q])}, operands[q]);
        add_blocks<Word>(from, valid, blocks, v);
        if (g.splits > 1) {
            UNROLLED for (i32 q = 0; q < TOGETHER; q++)
                if (valid[q] > 0) store_partial(g, part.split, at[q], valid[q], v[q]);
            continue;
        }
        UNROLLED for (i32 q = 0; q < TOGETHER; q++) {
            if (valid[q] <= 0) continue;
            if constexpr (S::PROMOTE)
                if (g.planes == 3) sum_four_again(g.plain, at[q], valid[q], v[q]);
            finish_four<Word>(o, at[q], valid[q], operands[q], v[q]);
            store_four(o, at[q], valid[q], v[q], is_whole);
        }
    }
}

template <class S>
DEVICE void run_split(const GemmSplitNumbers& g)
{
    extern __shared__ unsigned char shared[];
    const SplitMemory<S> memory(shared_address(shared));
    const i32 group = __shfl_sync(~0u, i32(threadIdx.x >> 7), 0);
    const u32 rank = cluster_rank(), blocks = cluster_size();
    if (threadIdx.x == 0) {
        fetch_map(g.a), fetch_map(g.b);
        for (u32 s = 0; s < S::STAGES; s++) barrier_init(memory.full(s), 1), barrier_init(memory.empty(s), S::GROUPS * 4);
        barrier_init_fence();
    }
    __syncthreads();
    let_next_launch();
    const SplitPart part = split_part(g, S::TILE_M, S::TILE_N, rank, blocks);
    if (group < S::GROUPS) multiply_part<S>(g, memory, part, group);
    else if (threadIdx.x % 32 == 0) load_part<S>(g, memory, part);
    if (blocks > 1) cluster_barrier();
    else __syncwarp(), __syncthreads();
    wait_for_launch_before();
    store_part<S>(g, memory, part, rank, blocks);
    // Others may still read this block's sums.
    if (blocks > 1) cluster_barrier();
}

}  // namespace
}  // namespace ng::kernels
