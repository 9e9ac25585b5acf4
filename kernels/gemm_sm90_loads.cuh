// What a block's thread loads for tiles of products: where stages lie in shared memory, which tile comes next, and boxes of its operands that end where these do.
#pragma once
#include "kernels/gemm_sm90_stream_k.cuh"

namespace ng::kernels {
namespace {

template <class S>
struct TilesMemory {
    u32 stages, staging, vectors, barriers;

    DEVICE explicit TilesMemory(u32 shared)
        : stages((shared + 1023) & ~1023u), staging(stages + S::STAGES * S::STAGE), vectors(staging + S::GROUPS * S::BUFFERS * STAGING_BYTES),
          barriers(vectors + S::GROUPS * S::VECTORS)
    {
    }
    DEVICE u32 full(u32 stage) const { return barriers + 8 * stage; }
    DEVICE u32 empty(u32 stage) const { return barriers + 8 * (S::STAGES + stage); }
    DEVICE u32 brought(u32 group) const { return barriers + 8 * (2 * S::STAGES + group); }
};

// A place in the ring of stages.
template <int STAGES>
struct Turn {
    u32 stage, phase;

    DEVICE void advance()
    {
        if (++stage == STAGES) stage = 0, phase ^= 1;
    }
    DEVICE void skip(i32 steps)
    {
        const u32 at = stage + u32(steps), rounds = at / STAGES;
        stage = at - rounds * STAGES, phase ^= rounds & 1;
    }
};

// Rows and columns in tiles: where a block of the cluster has its own.
template <class S>
DEVICE TileSpot tile_at(const GemmTilesNumbers& g, i32 tile, u32 rank)
{
    i32 batch = 0, group = 0, in_group = tile;               // what takes no division is not divided: before the first tile all wait for it
    if (g.batches > 1) batch = tile / (g.row_clusters * g.column_clusters), in_group -= batch * g.row_clusters * g.column_clusters;
    if (g.row_clusters > g.group) group = in_group / (g.group * g.column_clusters), in_group -= group * g.group * g.column_clusters;
    const i32 rows = min(g.group, g.row_clusters - group * g.group), column = in_group / rows, row = group * g.group + in_group - column * rows;
    return {batch, row * S::DOWN + (S::DOWN > 1 ? i32(rank) : 0), column * S::ACROSS + (S::ACROSS > 1 ? i32(rank) : 0)};
}

// Of the blocks that share an operand the first one's rank among those that are launched as one cluster.
template <class S>
DEVICE u32 first_of_cluster()
{
    return S::CLUSTER > 1 && S::MAY_STAND_TOGETHER ? cluster_rank() / S::CLUSTER * S::CLUSTER : 0;
}

struct OperandSpot {
    i32 batch, line, depth;              // line: a row of a, a column of b
};

// Of a tile: the map of its boxes, and how many lines of 128 bytes they bring for a step. Known when compiled of all tiles but those at an edge, for whatever the
// thread that loads does between a free stage and its boxes is waited for.
template <int TILE, int STEP, int IS_TURNED>
struct WholeLines {
    static constexpr i32 LINES = IS_TURNED ? (TILE + STEP - 1) / STEP * STEP : TILE;
    const TensorMap& map;

    DEVICE static constexpr i32 lines() { return LINES; }
};
struct EdgeLines {
    const TensorMap& map;
    i32              count;

    DEVICE i32 lines() const { return count; }
};
template <int TILE, int SHARERS>
DEVICE EdgeLines edge_lines(const TensorMap& whole, const TensorMap& edge, i32 all, i32 first)
{
    const i32 lines = tile_lines(TILE, tile_parts(TILE, SHARERS), all - first);
    return {lines == TILE ? whole : edge, lines};
}

// What a step takes of an operand: of SHARERS blocks each loads a part and gives it to all, or one does so with all of it.
template <class S, int TILE, int SHARERS, int IS_TURNED, class Lines>
DEVICE void load_operand(u32 to, const Lines& from, const OperandSpot& at, u32 full, u32 rank)
{
    constexpr i32 STEP = S::Kind::STEP, BOXES = IS_TURNED ? (TILE + STEP - 1) / STEP : 1;      // of lines, as many as steps: 128 bytes
    constexpr i32 PARTS = IS_TURNED ? SHARERS : tile_parts(TILE, SHARERS);
    const i32 part = PARTS > 1 ? i32(rank) * ((IS_TURNED ? STEP : from.lines()) / PARTS) : 0;
    if (from.lines() == 0 || (PARTS < SHARERS && u32(at.depth) / STEP % SHARERS != rank)) return;
    UNROLLED for (i32 i = 0; i < BOXES; i++) {
        const u32 place = to + u32(i * STEP + part) * 128;
        const i32 x = IS_TURNED ? at.line + i * STEP : at.depth, y = part + (IS_TURNED ? at.depth : at.line);
        if constexpr (SHARERS > 1) load_box_to_all(place, from.map, x, y, at.batch, full, u16(((1u << SHARERS) - 1) << first_of_cluster<S>()));
        else load_box(place, from.map, x, y, at.batch, full);
    }
}

template <class S, class ALines, class BLines>
DEVICE void load_step(const GemmTilesNumbers& g, const TilesMemory<S>& memory, const TileSpot& t, const ALines& a_lines, const BLines& b_lines, i32 product, i32 step, u32 stage, u32 rank)
{
    constexpr i32 STEP = S::Kind::STEP;
    const bool is_whole = !S::PLANES || g.planes == 1;
    const i32  a_batch = t.batch * g.a_moves * g.planes + (is_whole ? 0 : plane_of_a(product)), b_batch = t.batch * g.b_moves * g.planes + (is_whole ? 0 : plane_of_b(product));
    const u32  a = memory.stages + stage * S::STAGE, full = memory.full(stage);
    // What is left of a tile's room in shared memory is what was there before: nothing comes of it.
    barrier_expect(full, u32(a_lines.lines() + b_lines.lines()) * 128);
    load_operand<S, S::TILE_M, S::ACROSS, S::A_TURNED>(a, a_lines, {a_batch, t.row * S::TILE_M, step * STEP}, full, rank);
    load_operand<S, S::TILE_N, S::DOWN, S::B_TURNED>(a + S::A_BYTES, b_lines, {b_batch, t.column * S::TILE_N, step * STEP}, full, rank);
}

// load(a's lines, b's lines) of a tile. Where an operand's lines are short of its tile it is those that lie side by side that do not come.
template <class S, class Load>
DEVICE void with_lines(const GemmTilesNumbers& g, const TileSpot& t, const Load& load)
{
    using AWhole = WholeLines<S::TILE_M, S::Kind::STEP, S::A_TURNED>;
    using BWhole = WholeLines<S::TILE_N, S::Kind::STEP, S::B_TURNED>;
    const i32  row = t.row * S::TILE_M, column = t.column * S::TILE_N;
    const bool is_low = !S::A_TURNED && g.a_lines - row < S::TILE_M, is_last = !S::B_TURNED && g.b_lines - column < S::TILE_N;
    if (is_low || is_last) {
        const auto a = [&] {
            if constexpr (S::A_TURNED) return AWhole{g.a};
            else return edge_lines<S::TILE_M, S::ACROSS>(g.a, g.a_edge, g.a_lines, row);
        }();
        const auto b = [&] {
            if constexpr (S::B_TURNED) return BWhole{g.b};
            else return edge_lines<S::TILE_N, S::DOWN>(g.b, g.b_edge, g.b_lines, column);
        }();
        load(a, b);
    } else {
        load(AWhole{g.a}, BWhole{g.b});
    }
}

template <class S>
DEVICE i32 tile_products(const GemmTilesNumbers& g) { return S::PLANES ? products_of(g.planes) : 1; }

// By the thread that loads and has made the barriers: what fits the ring, while the block's others are still coming. NVRTC takes no generic lambdas.
template <class S>
struct FirstSteps {
    const GemmTilesNumbers& g;
    const TilesMemory<S>&   memory;
    const TileSpot&         t;
    i32                     count;

    template <class ALines, class BLines>
    DEVICE void operator()(const ALines& a, const BLines& b) const
    {
        ROLLED for (i32 step = 0; step < count; step++) load_step<S>(g, memory, t, a, b, 0, step, u32(step), 0);
    }
};
// How many steps.
template <class S>
DEVICE i32 start_tiles(const GemmTilesNumbers& g, const TilesMemory<S>& memory)
{
    const i32      started = min(S::STAGES, g.k_steps);
    const TileSpot t = tile_at<S>(g, i32(blockIdx.x), 0);
    wait_for_launch_before();
    with_lines<S>(g, t, FirstSteps<S>{g, memory, t, started});
    return started;
}

// All steps of a tile but those that were started.
template <class S>
struct TileSteps {
    const GemmTilesNumbers& g;
    const TilesMemory<S>&   memory;
    const TileSpot&         t;
    Turn<S::STAGES>&        turn;
    i32&                    started;
    const TileParts<S>&     part;
    u32                     rank;

    template <class ALines, class BLines>
    DEVICE void operator()(const ALines& a, const BLines& b) const
    {
        const i32 products = tile_products<S>(g);
        for (i32 product = 0; product < products; product++) {
            for (i32 step = started; step < part.end(g); step++) {
                barrier_wait(memory.empty(turn.stage), turn.phase);
                load_step<S>(g, memory, t, a, b, product, step, turn.stage, rank);
                turn.advance();
            }
            started = 0;
        }
    }
};
template <class S>
DEVICE void load_tiles(const GemmTilesNumbers& g, const TilesMemory<S>& memory, u32 rank, i32 started)
{
    if (S::CLUSTER > 1 || S::STREAM_K) wait_for_launch_before();
    Turn<S::STAGES> turn = {0, 1};
    turn.skip(started);
    ROLLED for (TileParts<S> part(g, 0, 1); part.is_there(g); part.advance(g)) {
        const TileSpot t = tile_at<S>(g, part.tile, rank);
        if constexpr (S::STREAM_K) started = part.begin();
        with_lines<S>(g, t, TileSteps<S>{g, memory, t, turn, started, part, rank});
    }
}

}  // namespace
}  // namespace ng::kernels
