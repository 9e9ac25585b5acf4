// c = a b by Hopper's tensor cores, for few tiles or much depth: the depth is cut among the blocks of a cluster, and clusters.
//
//   grid      so many blocks a tile and split, in one cluster; each has a part of the depth. A cluster may have several tiles
//   threads   TILE_M / 64 warpgroups multiply, a warp loads
//   shared    [STAGES] of a's [TILE_M][128 bytes] and b's [TILE_N][128 bytes], swizzled; then barriers. In clusters the last
//             stages are room for sums of the others; a block's own come to where its first stages were
#pragma once
#include "kernels/gemm_sm90_parts.cuh"

namespace ng::kernels {
namespace {

template <class Kind_, int TILE_M_, int TILE_N_, int STAGES_, int A_TURNED_, int B_TURNED_, bool PROMOTE_, bool TURNS_ = false>
struct SplitShape {
    using Kind = Kind_;
    using Word = typename Kind::Word;
    static constexpr i32  TILE_M = TILE_M_, TILE_N = TILE_N_, STAGES = STAGES_;
    static constexpr i32  A_TURNED = TURNS_ ? B_TURNED_ : A_TURNED_, B_TURNED = TURNS_ ? A_TURNED_ : B_TURNED_;      // turns: tiles are of c's transpose, b' a'
    // How a comes, whose rows lie side by side: words by way of registers, bytes turned in shared memory.
    static constexpr bool PROMOTE = PROMOTE_, PLANES = PROMOTE && Kind::BYTES == 2, IN_REGISTERS = A_TURNED && Kind::BYTES == 4, IN_PLACE = A_TURNED && Kind::BYTES == 1, IN_PAIRS = IN_REGISTERS;
    static constexpr i32  A_ACROSS = A_TURNED && !IN_PLACE;      // as the tensor cores take it
    static constexpr i32  BLOCKS = 1, GROUPS = TILE_M / 64, DOWN = GROUPS, GROUP_N = TILE_N, THREADS = split_threads(TILE_M);
    static constexpr i32  B_WIDTH = split_width(TILE_N, Kind::STEP), B_SWIZZLE = B_WIDTH * 2;      // of a turned b
    static constexpr u32  A_BYTES = TILE_M * 128, STAGE = A_BYTES + TILE_N * 128;
    static constexpr u32  WARPS = GROUPS * 4, UNIT = split_unit(TILE_N), UNIT_BYTES = UNIT * PATCH_BYTES, UNITS = split_units(TILE_M, TILE_N);
    static constexpr u32  KEPT = split_kept(TILE_M, TILE_N, STAGES), BUFFER = split_buffer(TILE_M, TILE_N, STAGES), SHARED = split_shared(TILE_M, TILE_N, STAGES);
    static_assert(SHARED <= 232448, "shared memory of a multiprocessor");
    static_assert(!IN_PLACE || GROUPS == 2, "two warpgroups turn a box");
    static_assert(!IN_REGISTERS || !B_TURNED || (GROUPS == 1 && B_WIDTH == Kind::STEP), "a warpgroup turns its own columns, whole boxes of them");
    static_assert(UNITS * UNIT_BYTES <= KEPT * STAGE, "a block's own sums take no room of the others'");

    DEVICE static RowsOfThread rows() { return turned_rows(); }
};

template <class S>
struct SplitMemory {
    u32 stages, received, barriers, ring;    // ring: stages in use

    DEVICE SplitMemory(u32 shared, u32 blocks)
        : stages((shared + 1023) & ~1023u), received(stages + S::KEPT * S::STAGE), barriers(stages + S::BUFFER), ring(blocks > 1 ? S::KEPT : S::STAGES)
    {
    }
    DEVICE u32 full(u32 stage) const { return barriers + 8 * stage; }
    DEVICE u32 empty(u32 stage) const { return barriers + 8 * (S::STAGES + stage); }
    DEVICE u32 handed() const { return barriers + 16 * S::STAGES; }
    DEVICE SumsPlace sums() const { return {stages, received, handed()}; }
};

// Divisions are left to the host, or to where they are needed: nothing is loaded before these are done.
DEVICE SplitPart split_part(const GemmSplitNumbers& g)
{
    const u32  place = cluster_rank(), in_cluster = place * g.unit_share / UNIT_SHARES, first = in_cluster * g.blocks, rank = place - first;
    const i32  number = i32(cluster_number()) * g.together + i32(in_cluster);
    i32 tile = number, split = 0, batch = 0, row = tile, column = 0;
    if (g.splits > 1) split = tile % g.splits, row = tile = tile / g.splits;
    if (g.batches > 1) batch = tile / (g.row_tiles * g.column_tiles), row = tile -= batch * g.row_tiles * g.column_tiles;
    if (g.column_tiles > 1) column = g.row_tiles > 1 ? tile / g.row_tiles : tile, row = tile - column * g.row_tiles;
    const i32 part = split * i32(g.blocks) + i32(rank), begin = part * g.part_steps + min(part, g.longer_parts);
    return {{batch, row * g.tile_rows, column * g.tile_columns}, split, begin, begin + g.part_steps + (part < g.longer_parts), rank, g.blocks, g.unit_share, first, number < g.tiles};
}

// Where a step's boxes are: of planes, all steps of one product come before those of the next.
struct SplitStep {
    i32 depth, a_batch, b_batch;
};
template <class S>
DEVICE SplitStep split_step(const GemmSplitNumbers& g, const SplitPart& part, i32 step)
{
    const i32 a_batch = part.at.batch * g.a_moves, b_batch = part.at.batch * g.b_moves;
    if (!S::PLANES || g.planes == 1) return {step * S::Kind::STEP, a_batch, b_batch};
    const i32 product = step / g.k_steps;
    return {(step - product * g.k_steps) * S::Kind::STEP, a_batch * 3 + plane_of_a(product), b_batch * 3 + plane_of_b(product)};
}

template <class S>
DEVICE void load_step(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, i32 step, u32 stage)
{
    const u32       a = memory.stages + stage * S::STAGE, b = a + S::A_BYTES, full = memory.full(stage);
    const SplitStep at = split_step<S>(g, part, step);
    // What is left of a tile's room in shared memory is what was there before: nothing comes of it.
    barrier_expect(full, u32(g.tile_rows + g.tile_columns) * 128);
    if constexpr (!S::A_TURNED) load_box(a, g.a, at.depth, part.at.row, at.a_batch, full);
    else UNROLLED for (i32 i = 0; i < S::TILE_M; i += S::Kind::STEP) load_box(a + u32(i) * 128, g.a, part.at.row + i, at.depth, at.a_batch, full);
    if constexpr (!S::B_TURNED) load_box(b, g.b, at.depth, part.at.column, at.b_batch, full);
    else UNROLLED for (i32 i = 0; i < S::TILE_N / S::B_WIDTH; i++) load_box(b + u32(i) * S::B_WIDTH * 128, g.b, part.at.column + i * S::B_WIDTH, at.depth, at.b_batch, full);
}

template <class S>
DEVICE void init_part(const SplitMemory<S>& memory, const SplitPart& part)
{
    for (u32 s = 0; s < S::STAGES; s++) barrier_init(memory.full(s), 1), barrier_init(memory.empty(s), S::GROUPS * 4);
    barrier_init(memory.handed(), 1);
    barrier_init_fence();
    barrier_expect(memory.handed(), part.received_bytes<S>());
}
// The steps that fit the ring, when what they read is there, each by load(step, stage).
template <class Memory, class Load>
DEVICE void fill_ring(const Memory& memory, const SplitPart& part, Load&& load)
{
    wait_for_launch_before();
    const i32 started = min(i32(memory.ring), part.end - part.begin);
    ROLLED for (i32 s = 0; s < started; s++) load(part.begin + s, u32(s));
}
// A place in the ring.
struct PartTurn {
    u32 stage = 0, phase = 0;

    DEVICE void advance(u32 ring)
    {
        if (++stage == ring) stage = 0, phase ^= 1;
    }
};
// The steps behind those.
template <class Memory, class Load>
DEVICE void load_behind(const Memory& memory, const SplitPart& part, Load&& load)
{
    PartTurn turn;
    ROLLED for (i32 step = part.begin + i32(memory.ring); step < part.end; step++) {
        barrier_wait(memory.empty(turn.stage), turn.phase);
        load(step, turn.stage);
        turn.advance(memory.ring);
    }
}
// The barriers, and what fits the ring, while the block's other threads are still coming.
template <class S, class Load>
DEVICE void start_part(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, Load&& load)
{
    fetch_map(g.a), fetch_map(g.b);
    init_part<S>(memory, part);
    fill_ring(memory, part, load);
}

// What a warpgroup keeps from step to step.
template <class S>
struct PartMultiplier {
    using Sums = typename S::Word[S::TILE_N / 2];

    const SplitMemory<S>& memory;
    u64                   a, b;
    PartTurn              turn;
    i32                   before = -1;       // the stage that the last step reads

    DEVICE explicit PartMultiplier(const SplitMemory<S>& shared) : memory(shared)
    {
        const u32 a_first = memory.stages + u32(__shfl_sync(~0u, i32(threadIdx.x >> 7), 0)) * 8192, b_first = memory.stages + S::A_BYTES;
        a = S::A_ACROSS ? matrix_at<128>(a_first, 8192, 1024) : matrix_at<128>(a_first, 16, 1024);
        b = S::B_TURNED && !S::IN_REGISTERS ? matrix_at<S::B_TURNED ? S::B_SWIZZLE : 128>(b_first, 64 * S::B_SWIZZLE, 8 * S::B_SWIZZLE) : matrix_at<128>(b_first, 16, 1024);
    }
    // d (+)= a step of depth, which is under way then, unlike the one before it.
    DEVICE void run_step(bool is_sum, Sums& d)
    {
        barrier_wait(memory.full(turn.stage), turn.phase);
        if constexpr (S::IN_PLACE) turn_bytes(memory.stages + turn.stage * S::STAGE);
        const u32 at = turn.stage * (S::STAGE >> 4);
        products_fence();
        UNROLLED for (i32 k = 0; k < 4; k++)
            multiply<S::A_ACROSS, S::B_TURNED>(d, a + (at + (S::A_ACROSS ? k * 128 : k * 2)), b + (at + (S::B_TURNED ? k * S::B_SWIZZLE : k * 2)), is_sum || k > 0, typename S::Kind());
        end_step();
    }
    // The products that were just begun are a step's.
    DEVICE void end_step()
    {
        end_products();
        wait_products<1>();
        if (before >= 0 && (threadIdx.x & 31) == 0) barrier_arrive(memory.empty(u32(before)));
        before = i32(turn.stage);
        turn.advance(memory.ring);
    }
    DEVICE void finish(Sums& d) const
    {
        wait_products<0>();
        settle(d);
    }
};

// Products of planes count 2^-16, 2^-8 and 1 (gemm_sm90_tiles.cuh).
template <class S>
DEVICE void add_step(const GemmSplitNumbers& g, i32 step, typename PartMultiplier<S>::Sums& sums, typename PartMultiplier<S>::Sums& d)
{
    const i32   product = !S::PLANES || g.planes == 1 ? 5 : step / g.k_steps;
    const float weight = product == 5 ? 1.0f : product >= 3 ? 0x1p-8f : 0x1p-16f;
    settle(d);
    UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) sums[i] = fmaf(d[i], weight, sums[i]);
    settle(sums);                        // here, not when d is in work again
}

// A step's products move to the sums while the next one is multiplied. The part has steps.
template <class S>
DEVICE void sum_promoted(const GemmSplitNumbers& g, const SplitPart& part, PartMultiplier<S>& multiplier, typename PartMultiplier<S>::Sums& sums)
{
    typename PartMultiplier<S>::Sums d[2];
    multiplier.run_step(false, d[0]);
    i32 step = part.begin;               // in d[0]
    ROLLED for (; step + 2 < part.end; step += 2) {
        multiplier.run_step(false, d[1]), add_step<S>(g, step, sums, d[0]);
        multiplier.run_step(false, d[0]), add_step<S>(g, step + 1, sums, d[1]);
    }
    if (step + 1 < part.end) {
        multiplier.run_step(false, d[1]), add_step<S>(g, step, sums, d[0]);
        multiplier.finish(d[1]), add_step<S>(g, step + 1, sums, d[1]);
    } else {
        multiplier.finish(d[0]), add_step<S>(g, step, sums, d[0]);
    }
}

template <class S>
DEVICE void sum_part(const GemmSplitNumbers& g, const SplitPart& part, PartMultiplier<S>& multiplier, typename PartMultiplier<S>::Sums& sums)
{
    if constexpr (S::PROMOTE) {
        UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) sums[i] = 0;
        sum_promoted<S>(g, part, multiplier, sums);
    } else if constexpr (S::IN_REGISTERS) {
        run_turned<S>(multiplier, part.end - part.begin, sums);
        multiplier.finish(sums);
    } else {
        ROLLED for (i32 step = part.begin; step < part.end; step++) multiplier.run_step(step > part.begin, sums);
        multiplier.finish(sums);
    }
}

// A block of a cluster, and what it has of a tile.
template <class S>
struct PartFrame {
    const GemmSplitNumbers& g;
    SplitPart       part;
    SplitMemory<S>  memory;

    DEVICE explicit PartFrame(const GemmSplitNumbers& numbers) : g(numbers), part(split_part(g)), memory(shared_begin(), part.blocks) {}
    DEVICE void hand_over(const typename S::Word (&sums)[S::GROUP_N / 2]) const { hand_sums_over<S>(memory.sums(), part, sums); }
};

// One warp loads, by load(step, stage); the others multiply, by multiply(), which hands the sums over.
template <class S, class Load, class Multiply>
DEVICE void run_frame(const PartFrame<S>& f, Load&& load, Multiply&& multiply)
{
    if (!f.part.is_there) return;
    const i32 group = __shfl_sync(~0u, i32(threadIdx.x >> 7), 0);
    if (threadIdx.x == S::GROUPS * 128) start_part<S>(f.g, f.memory, f.part, load);
    __syncthreads();
    if (f.part.blocks > 1) cluster_arrive();
    // Not before: blocks of the next launch that share the multiprocessor would take up what this one starts with.
    let_next_launch();
    if (group == S::GROUPS) {
        if (threadIdx.x % 32 == 0) load_behind(f.memory, f.part, load);
        __syncwarp();
        if (f.part.blocks > 1) cluster_wait(), cluster_arrive(), cluster_wait();
        return;
    }
    ask_for_operands<S>(f.g, f.part);
    multiply();
    finish_part<S>(f.g, f.memory.sums(), f.part);
}

template <class S>
DEVICE void run_split(const GemmSplitNumbers& g)
{
    const PartFrame<S> frame(g);
    run_frame(frame, [&](i32 step, u32 stage) { load_step<S>(g, frame.memory, frame.part, step, stage); }, [&] {
        PartMultiplier<S> multiplier(frame.memory);
        typename PartMultiplier<S>::Sums sums;
        sum_part<S>(g, frame.part, multiplier, sums);
        frame.hand_over(sums);
    });
}

}  // namespace
}  // namespace ng::kernels
