// c = a b by Hopper's tensor cores, for products of many tiles: blocks that stay, a thread that loads, one to three warpgroups that multiply.
//
//   grid      clusters of DOWN blocks that share a tile's columns of b, or ACROSS that share its rows of a; each takes tiles in turn,
//             `group` rows of clusters first, or, by stream-K, some steps of some of them before (gemm_sm90_stream_k.cuh)
//   threads   0..127 multiply, and 128..255 but of 64 rows of c's transpose, of tiles of 192 rows 256..383 as well; the next one starts loads
//             SCHEDULE >= 0: all on one tile, as many of its rows each, the second of two begins SCHEDULE steps behind the first (with
//             epilogues they were seen to end together all the same); PINGPONG: a tile each, in turn
//   shared    [STAGES] of a's [TILE_M][128 bytes] and b's [TILE_N][128 bytes], swizzled; then staging, an epilogue's vectors, barriers
//   PROMOTE   sums move to registers of f32 every few steps: what tensor cores add up alone loses bits of fp8 and of planes
//   planes    f32 as x0 + x1 / 2^8 + x2 / 2^16, planes of bf16: six products, the smallest first. Sums that are no numbers are
//             computed again from the operands, since an infinite plane meets zeros
#pragma once
#include "kernels/gemm_sm90_finish.cuh"
#include "kernels/gemm_sm90_loads.cuh"
#include "kernels/gemm_sm90_turned.cuh"

namespace ng::kernels {
namespace {

constexpr i32  PINGPONG = -1;

template <class Kind_, int TILE_M_, int TILE_N_, int DOWN_, int ACROSS_, int STAGES_, int A_TURNED_, int B_TURNED_, int SCHEDULE_, bool PROMOTE_, bool TURNS_, bool STREAM_K_ = false>
struct TilesShape {
    using Kind = Kind_;
    using Word = typename Kind::Word;
    static constexpr i32  TILE_M = TILE_M_, TILE_N = TILE_N_, DOWN = DOWN_, ACROSS = ACROSS_, CLUSTER = DOWN * ACROSS, SCHEDULE = SCHEDULE_;
    // b' a' and c's transpose: where a tile's rows are to be c's columns, and of what lies nn where boxes of b's columns side by side do not fit.
    static constexpr bool IS_SWAPPED = tiles_are_swapped(TILE_N, A_TURNED_, B_TURNED_, TURNS_);
    static constexpr i32  A_TURNED = IS_SWAPPED ? B_TURNED_ : A_TURNED_, B_TURNED = IS_SWAPPED ? A_TURNED_ : B_TURNED_;
    static constexpr bool STREAM_K = STREAM_K_, MAY_STAND_TOGETHER = tiles_may_stand_together(CLUSTER, TILE_N, SCHEDULE == PINGPONG, TURNS_);
    static constexpr bool PROMOTE = PROMOTE_, PLANES = PROMOTE && Kind::BYTES == 2, IS_PINGPONG = SCHEDULE == PINGPONG;
    static constexpr i32  GROUPS = tiles_groups(TILE_M, TURNS_), BLOCKS = IS_PINGPONG ? TILE_M / 64 : TILE_M / (64 * GROUPS);     // blocks: of 64 rows a warpgroup
    static constexpr u32  LOADER = GROUPS * 128;             // the thread that loads
    static constexpr i32  SUMS = BLOCKS * TILE_N / 2 * (PROMOTE ? 2 : 1);
    static constexpr bool IN_TURNS = PROMOTE && BLOCKS * TILE_N * 3 / 2 <= (GROUPS == 1 ? 216 : GROUPS == 2 ? 192 : 144);    // registers for two batches of products
    static constexpr bool IN_REGISTERS = A_TURNED && Kind::BYTES == 4;               // a, whose words the tensor cores take no other way so
    static constexpr bool IS_BARE = SUMS > 128 || TILE_N % 64 != 0 || IS_SWAPPED || IN_REGISTERS;    // no room for an epilogue, or no boxes for what it reads
    // What a thread of each group has of registers in all, and the one that loads; the others have the rest. A single group has all it can.
    static constexpr i32  REGISTERS = GROUPS == 3 ? 512 : 504, LOADER_REGISTERS = GROUPS == 3 ? 32 : IS_BARE && !IS_PINGPONG && !TURNS_ && !STREAM_K ? 24 : 40;
    // Not where both groups turn operands; and beside an epilogue the branch makes wide tiles spill more.
    static constexpr bool MAY_PASS = !IN_REGISTERS && !HAS_EPILOGUE && !STREAM_K;
    // Of an epilogue for 32 columns. On an H200 (2026-11-22) one for each takes 1 to 3 % less than one for all; but of pingpong's large
    // epilogues (gelu), whose groups are at different places, one takes 2 to 4 % less than two, and these took 3 to 9 % less than eight.
    static constexpr int  TEXTS = IS_PINGPONG && EPILOGUE_WEIGHT > 20 ? 1 : 8;
    static constexpr TilesFinish FINISH = {HAS_EPILOGUE, HAS_BOX, u32(vector_count())};
    static constexpr TilesLayout LAYOUT = tiles_layout({TILE_M, TILE_N, STAGES_, IS_PINGPONG, TURNS_}, B_TURNED, FINISH);
    static constexpr i32  STAGES = LAYOUT.stages;
    static constexpr u32  A_BYTES = TILE_M * 128, STAGE = A_BYTES + LAYOUT.lines * 128;
    static constexpr u32  SHARED = LAYOUT.bytes, BUFFERS = LAYOUT.buffers, VECTORS = FINISH.vectors * vector_bytes(BLOCKS * 64, TILE_N);    // a group's
    static_assert(DOWN == 1 || ACROSS == 1, "all blocks of a cluster share one operand");
    static_assert(SHARED <= SHARED_MOST && (BUFFERS > 0 || Kind::BYTES == 8), "shared memory of a multiprocessor");
    static_assert(!HAS_BOX || IS_BARE || BUFFERS == BLOCKS * tiles_boxes(TILE_N), "what comes by boxes has room");
    static_assert(SUMS <= (PLANES ? 128 : 192), "sums fit the registers");
    static_assert(!IS_PINGPONG || !PROMOTE, "a group that moves sums would not hand over");
    static_assert(!IS_PINGPONG || !IN_REGISTERS, "each group reads its own rows");
    static_assert(GROUPS < 3 || SUMS <= 112, "three groups have fewer registers each");
    static_assert(GROUPS == 2 || (SCHEDULE == 0 && !PLANES && !STREAM_K && !IN_REGISTERS), "what two groups say to each other is not for one or three");
    static_assert(!STREAM_K || (!IS_PINGPONG && !PROMOTE && !IN_REGISTERS), "a part of a tile is what one loop multiplies");
};

// All that came before this product counts 2^-8 of it.
DEVICE bool is_next_weight(i32 product) { return product == 3 || product == 5; }

// ---- multiplying ----------------------------------------------------------------------------------------------------------

// What a warpgroup keeps from step to step.
template <class S>
struct Multiplier {
    using Sums = typename S::Word[S::BLOCKS][S::TILE_N / 2];

    TilesMemory<S>  memory;
    u64             a, b;                // its first matrices
    Turn<S::STAGES> turn = {0, 0};
    i32             to_skew;             // steps until the other group may begin; large: it has
    i32             before = -1;         // the stage that the last step reads
    u32             first_block;         // of the cluster, of those that share an operand

    DEVICE Multiplier(const TilesMemory<S>& shared, i32 group, bool is_skewed) : memory(shared)
    {
        const u32 first = shared.stages + (S::IS_PINGPONG ? 0 : u32(group) * S::BLOCKS * 8192);
        a = S::A_TURNED ? matrix_at<128>(first, 8192, 1024) : matrix_at<128>(first, 16, 1024);
        b = S::B_TURNED ? matrix_at<128>(shared.stages + S::A_BYTES, 8192, 1024) : matrix_at<128>(shared.stages + S::A_BYTES, 16, 1024);
        to_skew = group == 0 && is_skewed ? S::SCHEDULE : 1 << 30;
        first_block = first_of_cluster<S>();
    }
    DEVICE void release(u32 stage) const
    {
        const u32 lane = threadIdx.x & 31;
        if constexpr (S::CLUSTER > 1) {
            if (lane < S::CLUSTER) barrier_arrive_at(memory.empty(stage), first_block + lane);
        } else if (lane == 0) {
            barrier_arrive(memory.empty(stage));
        }
    }
    DEVICE void count_skew()
    {
        if constexpr (S::SCHEDULE > 0)
            if (--to_skew == 0) named_arrive(6, 256);
    }
    // Before the group stores: the other must not wait for steps that do not come.
    DEVICE void end_skew()
    {
        if constexpr (S::SCHEDULE > 0)
            if (to_skew > 0 && to_skew <= S::SCHEDULE) to_skew = 1 << 30, named_arrive(6, 256);
    }
    // d (+)= a step of depth, which is under way then, unlike the one before it.
    DEVICE void run_step(bool is_sum, Sums& d)
    {
        barrier_wait(memory.full(turn.stage), turn.phase);
        const u32 at = turn.stage * (S::STAGE >> 4);
        products_fence();
        UNROLLED for (i32 k = 0; k < 4; k++)
            UNROLLED for (i32 block = 0; block < S::BLOCKS; block++)
                multiply<S::A_TURNED, S::B_TURNED>(d[block], a + (at + block * 512 + (S::A_TURNED ? k * 128 : k * 2)), b + (at + (S::B_TURNED ? k * 128 : k * 2)), (is_sum || k > 0),
                                                   typename S::Kind());
        end_step();
    }
    // The products that were just begun are a step's.
    DEVICE void end_step()
    {
        end_products();
        wait_products<1>();
        if (before >= 0) release(u32(before));
        before = i32(turn.stage);
        turn.advance();
        count_skew();
    }
    // Steps of a tile of which nothing here is the product's: what comes for them makes room for the next. None may be under way.
    DEVICE void pass(i32 steps)
    {
        ROLLED for (; steps > 0; steps--) {
            barrier_wait(memory.full(turn.stage), turn.phase);
            __syncwarp();                // as products would do: no lane still waits for this phase when the stage is filled again
            release(turn.stage);
            turn.advance();
            count_skew();
        }
    }
    // All steps are done when it returns.
    DEVICE void finish(typename S::Word (&d)[S::BLOCKS][S::TILE_N / 2])
    {
        wait_products<0>();
        UNROLLED for (i32 block = 0; block < S::BLOCKS; block++) settle(d[block]);
        if (before >= 0) release(u32(before));
        before = -1;
    }
};

template <class S>
DEVICE void clear(typename S::Word (&d)[S::BLOCKS][S::TILE_N / 2])
{
    UNROLLED for (i32 block = 0; block < S::BLOCKS; block++)
        UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) d[block][i] = 0;
}

// Sums move in batches of `promote` steps, those of planes product by product.
struct Batches {
    i32 product = 0, step = 0;

    DEVICE i32  steps(const GemmTilesNumbers& g) const { return min(g.promote, g.k_steps - step); }
    DEVICE bool has_next_weight() const { return step == 0 && is_next_weight(product); }
    DEVICE void advance(const GemmTilesNumbers& g)
    {
        step += g.promote;
        if (step >= g.k_steps) step = 0, product++;
    }
};
template <class S>
DEVICE void add_batch(typename S::Word (&sums)[S::BLOCKS][S::TILE_N / 2], typename S::Word (&d)[S::BLOCKS][S::TILE_N / 2])
{
    UNROLLED for (i32 block = 0; block < S::BLOCKS; block++) {
        settle(d[block]);
        UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) sums[block][i] += d[block][i];
        settle(sums[block]);             // here, not when d is in work again
    }
}
template <class S>
DEVICE void weigh(typename S::Word (&sums)[S::BLOCKS][S::TILE_N / 2])
{
    UNROLLED for (i32 block = 0; block < S::BLOCKS; block++)
        UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) sums[block][i] *= 0.00390625f;
}

// All products of a tile with moves of the sums between: of a batch while the next is multiplied, where there are registers for
// both. True: some sum is no number.
template <class S>
DEVICE bool run_promoted(const GemmTilesNumbers& g, Multiplier<S>& multiplier, typename S::Word (&sums)[S::BLOCKS][S::TILE_N / 2])
{
    using Sums = typename S::Word[S::BLOCKS][S::TILE_N / 2];
    Sums d[S::IN_TURNS ? 2 : 1];
    clear<S>(sums);
    const i32 products = tile_products<S>(g);
    Batches at;
    if constexpr (S::IN_TURNS) {
        const i32  batches = products * ((g.k_steps + g.promote - 1) / g.promote);
        const auto rest = [&](Sums& now) {
            const i32 steps = at.steps(g);
            ROLLED for (i32 step = 1; step < steps; step++) multiplier.run_step(true, now);
            at.advance(g);
        };
        const auto run = [&](Sums& now, Sums& last) {
            multiplier.run_step(false, now);
            add_batch<S>(sums, last);
            if (S::PLANES && at.has_next_weight()) weigh<S>(sums);
            rest(now);
        };
        multiplier.run_step(false, d[0]), rest(d[0]);
        i32 batch = 1;
        ROLLED for (; batch + 1 < batches; batch += 2) run(d[1], d[0]), run(d[0], d[1]);
        if (batch < batches) run(d[1], d[0]), multiplier.finish(d[1]), add_batch<S>(sums, d[1]);
        else multiplier.finish(d[0]), add_batch<S>(sums, d[0]);
    } else {
        ROLLED for (; at.product < products; at.advance(g)) {
            if (S::PLANES && at.has_next_weight()) weigh<S>(sums);
            const i32 steps = at.steps(g);
            ROLLED for (i32 step = 0; step < steps; step++) multiplier.run_step(step > 0, d[0]);
            multiplier.finish(d[0]);
            add_batch<S>(sums, d[0]);
        }
    }
    if (!S::PLANES || g.planes == 1) return false;
    float spoilt = 0;                    // stays 0 for numbers; x - x is not 0 for others
    UNROLLED for (i32 block = 0; block < S::BLOCKS; block++)
        UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) spoilt += sums[block][i] - sums[block][i];
    return spoilt != 0;
}

DEVICE bool any_of_group(bool mine, i32 barrier)
{
    u32 r;
    asm volatile("{\n.reg .pred p, q;\nsetp.ne.u32 p, %1, 0;\nbar.red.or.pred q, %2, 128, p;\nselp.u32 %0, 1, 0, q;\n}" : "=r"(r) : "r"(u32(mine)), "r"(barrier) : "memory");
    return r != 0;
}

template <class S>
DEVICE void multiply_tiles(const GemmTilesNumbers& g, const TilesMemory<S>& memory, i32 group, u32 rank)
{
    const bool    is_skewed = S::SCHEDULE > 0 && tiles_of(g) > i32(gridDim.x) / S::CLUSTER;       // one tile a block: nothing would run under its stores
    Multiplier<S> multiplier(memory, group, is_skewed);
    Staging       staging = {memory.staging + u32(group) * S::BUFFERS * STAGING_BYTES, 0, 1 + group, memory.vectors + u32(group) * S::VECTORS, memory.brought(u32(group)), 0};
    if constexpr (S::IS_PINGPONG) {
        if (group == 1) named_arrive(4, 256), multiplier.turn.skip(g.k_steps);
    } else if constexpr (S::SCHEDULE > 0) {
        if (group == 1 && is_skewed) named_barrier(6, 256);
    }
    typename S::Word d[S::BLOCKS][S::TILE_N / 2];
    bool             is_first = true;
    ROLLED for (TileParts<S> part(g, S::IS_PINGPONG ? group : 0, S::IS_PINGPONG ? 2 : 1); part.is_there(g); part.advance(g)) {
        const TileSpot t = tile_at<S>(g, part.tile, rank);
        const TileSpot first = {t.batch, t.row * S::TILE_M + (S::IS_PINGPONG ? 0 : group * S::BLOCKS * 64), t.column * S::TILE_N};
        const bool     is_end = !S::STREAM_K || part.end(g) == g.k_steps;          // else another cluster goes on with it
        bool is_loose = false;
        HeldVectors held;
        const auto bring = [&] {
            if constexpr (HAS_EPILOGUE) {
                if (!is_end) return;
                if (is_first) wait_for_launch_before(), is_first = false;
                bring_operands<S::BLOCKS * 64, S::TILE_N>(g, first, staging, held);
            }
        };
        if constexpr (S::IS_PINGPONG || S::PROMOTE) bring();
        if constexpr (S::IS_PINGPONG) named_barrier(4 + group, 256);
        // Products of rows or columns that are not there would take power for nothing, and nobody sees their sums.
        if (S::MAY_PASS && (first.row >= g.a_lines || first.column >= g.b_lines)) {
            multiplier.pass(tile_products<S>(g) * g.k_steps);
            // Not before: the other group's stages may be these, and by their parity what comes for them now would be taken for its own.
            if constexpr (S::IS_PINGPONG) named_arrive(4 + (group ^ 1), 256);
        } else if constexpr (S::PROMOTE) {
            is_loose = run_promoted<S>(g, multiplier, d);
        } else {
            i32 step = part.begin();
            if constexpr ((HAS_EPILOGUE && !S::IS_PINGPONG) || S::STREAM_K) {
                const bool is_begin = is_first;              // what is multiplied is still on its way, so nobody waits
                if (is_begin) bring();
                multiplier.run_step(false, d), step++;
                if (!is_begin) bring();
            }
            if constexpr (S::IN_REGISTERS) run_turned<S>(multiplier, g.k_steps, d);
            else ROLLED for (; step < part.end(g); step++) multiplier.run_step(S::STREAM_K || step > 0, d);
            // The other group's products stand behind the last step of these, so that the tensor cores find them at once.
            if constexpr (S::IS_PINGPONG) named_arrive(4 + (group ^ 1), 256);
            multiplier.finish(d);
        }
        multiplier.end_skew();
        if (is_first) wait_for_launch_before(), is_first = false;
        if constexpr (S::STREAM_K) {
            const PartialSums<S> partial = {g.stream_k, group, staging.barrier};
            if (!is_end) {
                partial.leave(d);
                continue;
            }
            if (part.begin() > 0) partial.add(part.tile * g.k_steps, d);
        }
        if constexpr (S::PLANES)
            if (g.planes > 1) is_loose = any_of_group(is_loose, staging.barrier);
        const auto fix = [&](const TileSpot& at, u32 bits) {
            if constexpr (S::PLANES)
                if (is_no_number(bits)) return sum_again(g.plain, at);
            return bits;
        };
        if constexpr (HAS_BOX) barrier_wait(staging.full, staging.phase), staging.phase ^= 1;
        if constexpr (S::IS_SWAPPED) {
            UNROLLED for (i32 block = 0; block < S::BLOCKS; block++) store_turned<S::BUFFERS>(g.c, g.output, {first.batch, first.row + block * 64, first.column}, d[block], staging);
        } else if constexpr (S::IN_REGISTERS) {
            if (g.output.store == STORE_WORDS) store_words<S::BUFFERS>(g.c, first, d, staging, turned_rows());
            else UNROLLED for (i32 block = 0; block < S::BLOCKS; block++) store_fragments(g.output, {first.batch, first.row + block * 64, first.column}, d[block]);
        } else if constexpr (S::IS_BARE) {
            GemmOutput output = g.output;
            if (output.c_type != F16 && output.c_type != BF16) output.c_type = F32;
            output.n = min(output.n, first.column + S::TILE_N);      // the rest of a box is the next tile's
            store_tile<S>({g.c, g.box}, output, first, d, staging, false, fix);
        } else if constexpr (HAS_LIST) {
            finish_listed(Buffers<S::BUFFERS>(), g.c, g.output, first, d, staging, held);
        } else if (HAS_EPILOGUE && (g.output.store <= STORE_WORDS || !HAS_RESULT) && !is_loose) {
            finish_tile<S::BUFFERS, RESULT_BYTES == 2 ? 2 : 1, S::TEXTS>(g.c, g.output, first, d, staging, held);
        } else {
            store_tile<S>({g.c, g.box}, g.output, first, d, staging, S::PLANES && is_loose, fix);
            if constexpr (HAS_BOX) async_fence(), named_barrier(staging.barrier, 128);       // before the next box comes there
        }
        if constexpr (S::IS_PINGPONG) multiplier.turn.skip(g.k_steps);
    }
    if ((threadIdx.x & 127) == 0) wait_stores_read<0>();
}

template <class S>
DEVICE void make_barriers(const TilesMemory<S>& memory, i32 readers)
{
    for (u32 s = 0; s < S::STAGES; s++) barrier_init(memory.full(s), 1), barrier_init(memory.empty(s), readers);
    barrier_init_fence();
}

template <class S>
DEVICE void run_tiles(const GemmTilesNumbers& g)
{
    extern __shared__ unsigned char shared[];
    const TilesMemory<S> memory(shared_address(shared));
    const i32 group = __shfl_sync(~0u, i32(threadIdx.x >> 7), 0);
    const u32 rank = S::CLUSTER > 1 ? cluster_rank() - first_of_cluster<S>() : 0;
    i32       started = 0;
    let_next_launch();
    if (threadIdx.x == S::LOADER) {
        fetch_map(g.a), fetch_map(g.b);
        if (!S::A_TURNED) fetch_map(g.a_edge);
        if (!S::B_TURNED) fetch_map(g.b_edge);
        if (HAS_BOX)
            for (u32 i = 0; i < S::GROUPS; i++) barrier_init(memory.brought(i), 1);
        make_barriers(memory, S::CLUSTER * 4 * (S::IS_PINGPONG ? 1 : S::GROUPS));
        // In clusters what is loaded goes to others, whose barriers must be there.
        if constexpr (S::CLUSTER == 1 && !S::STREAM_K) started = start_tiles<S>(g, memory);
    } else if (threadIdx.x == 0) {
        if (g.output.store <= STORE_WORDS) fetch_map(g.c);
        if (HAS_BOX) fetch_map(g.box);
    }
    __syncthreads();
    if constexpr (S::CLUSTER > 1) cluster_barrier();
    if (group == S::GROUPS) {
        if constexpr (S::GROUPS > 1) keep_registers<S::LOADER_REGISTERS>();
        if (threadIdx.x == S::LOADER) load_tiles<S>(g, memory, rank, started);
    } else {
        if constexpr (S::GROUPS > 1) take_registers<(S::REGISTERS - S::LOADER_REGISTERS) / S::GROUPS>();
        multiply_tiles<S>(g, memory, group, rank);
    }
    // No block leaves while another may still write to it or arrive at its barriers.
    if constexpr (S::CLUSTER > 1) cluster_barrier();
}

}  // namespace
}  // namespace ng::kernels
