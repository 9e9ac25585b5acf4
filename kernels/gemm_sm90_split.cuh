// c = a b by Hopper's tensor cores, for few tiles or much depth: the depth is cut among the blocks of a cluster, and clusters.
//
//   grid      a cluster a tile and split; all its blocks have the tile, and each a part of the depth
//   threads   TILE_M / 64 warpgroups multiply, a warp loads
//   shared    [STAGES] of a's [TILE_M][128 bytes] and b's [TILE_N][128 bytes], swizzled; then barriers. In clusters the last
//             stages are room for sums of the others; a block's own come to where its first stages were
//   sums      [units][patches][32 lanes][4], as wgmma leaves them (gemm_sm90.h). A unit is added up by one block of the
//             cluster, to which the others send theirs: [blocks - 1][units of that block]
// A block adds them in the order of blocks, and so of depth; so results do not vary.
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
    static constexpr i32  USED = TILE_N;     // columns that count
    static constexpr i32  GROUPS = TILE_M / 64, DOWN = GROUPS, GROUP_N = TILE_N, THREADS = split_threads(TILE_M);
    static constexpr i32  B_WIDTH = TILE_N < 64 ? TILE_N : 64, B_SWIZZLE = B_WIDTH * 2;      // of a turned b
    static constexpr u32  A_BYTES = TILE_M * 128, STAGE = A_BYTES + TILE_N * 128;
    static constexpr u32  WARPS = GROUPS * 4, UNIT = split_unit(TILE_N), UNIT_BYTES = UNIT * PATCH_BYTES, UNITS = split_units(TILE_M, TILE_N);
    static constexpr u32  KEPT = split_kept(TILE_M, TILE_N, STAGES), BUFFER = split_buffer(TILE_M, TILE_N, STAGES), SHARED = split_shared(TILE_M, TILE_N, STAGES);
    static_assert(SHARED <= 232448, "shared memory of a multiprocessor");
    static_assert(UNITS * UNIT_BYTES <= KEPT * STAGE, "a block's own sums take no room of the others'");
};

// Where a block's own sums are, what it receives, and the barrier of that.
struct SumsPlace {
    u32 own, received, handed;
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

// Block i adds up units first_unit(i) to first_unit(i + 1). A unit's rows are those of warp unit / (UNITS / WARPS).
template <class S>
DEVICE u32 first_unit(u32 block, u32 blocks)
{
    return S::UNITS * block / blocks;
}
template <class S>
DEVICE u32 owner_of(u32 unit, u32 blocks)
{
    return ((unit + 1) * blocks - 1) / S::UNITS;
}

// A block's share: the tile's first row and column, the steps of depth.
struct SplitPart {
    TileSpot at;
    i32      split, begin, end;
};
DEVICE SplitPart split_part(const GemmSplitNumbers& g, i64 steps, i32 tile_m, i32 tile_n, u32 rank, u32 blocks)
{
    const i32 id = i32(blockIdx.x / blocks), split = id % g.splits, all = id / g.splits, tiles = g.row_tiles * g.column_tiles;
    const i32 batch = all / tiles, tile = all - batch * tiles, column = tile / g.row_tiles, row = tile - column * g.row_tiles;
    const i64 parts = i64(blocks) * g.splits, part = i64(split) * blocks + rank;
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
DEVICE void load_step(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, i32 step, u32 stage)
{
    const u32       a = memory.stages + stage * S::STAGE, b = a + S::A_BYTES, full = memory.full(stage);
    const SplitStep at = split_step<S>(g, part, step);
    barrier_expect(full, S::STAGE);
    if constexpr (!S::A_TURNED) load_box(a, g.a, at.depth, part.at.row, at.a_batch, full);
    else UNROLLED for (i32 i = 0; i < S::GROUPS; i++) load_box(a + u32(i) * 8192, g.a, part.at.row + i * 64, at.depth, at.a_batch, full);
    if constexpr (!S::B_TURNED) load_box(b, g.b, at.depth, part.at.column, at.b_batch, full);
    else UNROLLED for (i32 i = 0; i < S::TILE_N / S::B_WIDTH; i++) load_box(b + u32(i) * S::B_WIDTH * 128, g.b, part.at.column + i * S::B_WIDTH, at.depth, at.b_batch, full);
}

template <class S>
DEVICE void init_part(const SplitMemory<S>& memory, u32 rank, u32 blocks)
{
    for (u32 s = 0; s < S::STAGES; s++) barrier_init(memory.full(s), 1), barrier_init(memory.empty(s), S::GROUPS * 4);
    barrier_init(memory.handed(), 1);
    barrier_init_fence();
    barrier_expect(memory.handed(), (first_unit<S>(rank + 1, blocks) - first_unit<S>(rank, blocks)) * (blocks - 1) * S::UNIT_BYTES);
}
// The steps that fit the ring, when what they read is there, each by load(step, stage).
template <class Memory, class Load>
DEVICE void fill_ring(const Memory& memory, const SplitPart& part, Load&& load)
{
    wait_for_launch_before();
    const i32 started = min(i32(memory.ring), part.end - part.begin);
    ROLLED for (i32 s = 0; s < started; s++) load(part.begin + s, u32(s));
}
// The steps behind those.
template <class Memory, class Load>
DEVICE void load_behind(const Memory& memory, const SplitPart& part, Load&& load)
{
    u32 stage = 0, phase = 0;
    ROLLED for (i32 step = part.begin + i32(memory.ring); step < part.end; step++) {
        barrier_wait(memory.empty(stage), phase);
        load(step, stage);
        if (++stage == memory.ring) stage = 0, phase ^= 1;
    }
}
// The barriers, and what fits the ring, while the block's other threads are still coming.
template <class S, class Load>
DEVICE void start_part(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, u32 rank, u32 blocks, Load&& load)
{
    fetch_map(g.a), fetch_map(g.b);
    init_part<S>(memory, rank, blocks);
    fill_ring(memory, part, load);
}

// What a warpgroup keeps from step to step.
template <class S>
struct PartMultiplier {
    using Sums = typename S::Word[S::TILE_N / 2];

    const SplitMemory<S>& memory;
    u64                   a, b;
    u32                   stage = 0, phase = 0;
    i32                   before = -1;       // the stage that the last step reads

    DEVICE explicit PartMultiplier(const SplitMemory<S>& shared) : memory(shared)
    {
        const u32 a_first = memory.stages + u32(__shfl_sync(~0u, i32(threadIdx.x >> 7), 0)) * 8192, b_first = memory.stages + S::A_BYTES;
        a = S::A_TURNED ? matrix_at<128>(a_first, 8192, 1024) : matrix_at<128>(a_first, 16, 1024);
        b = S::B_TURNED ? matrix_at<S::B_TURNED ? S::B_SWIZZLE : 128>(b_first, 64 * S::B_SWIZZLE, 8 * S::B_SWIZZLE) : matrix_at<128>(b_first, 16, 1024);
    }
    // d (+)= a step of depth, which is under way then, unlike the one before it.
    DEVICE void run_step(bool is_sum, Sums& d)
    {
        barrier_wait(memory.full(stage), phase);
        const u32 at = stage * (S::STAGE >> 4);
        products_fence();
        UNROLLED for (i32 k = 0; k < 4; k++)
            multiply<S::A_TURNED, S::B_TURNED>(d, a + (at + (S::A_TURNED ? k * 128 : k * 2)), b + (at + (S::B_TURNED ? k * S::B_SWIZZLE : k * 2)), is_sum || k > 0, typename S::Kind());
        end_products();
        wait_products<1>();
        if (before >= 0 && (threadIdx.x & 31) == 0) barrier_arrive(memory.empty(u32(before)));
        before = i32(stage);
        if (++stage == memory.ring) stage = 0, phase ^= 1;
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
    const i32   product = g.planes == 1 ? 5 : step / g.k_steps;
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

// A warpgroup's sums to shared memory, and from there to the blocks that add them up.
template <class S>
DEVICE void hand_sums_over(const SumsPlace& place, const typename S::Word (&sums)[S::GROUP_N / 2], u32 rank, u32 blocks)
{
    // All groups are done with the stages: sums go there.
    named_barrier(1, S::GROUPS * 128);
    constexpr u32 MINE = S::UNITS / S::WARPS;
    const u32     lane = threadIdx.x & 31, first = (threadIdx.x >> 5) * MINE, to = place.own + first * S::UNIT_BYTES + lane * 16;
    UNROLLED for (i32 j = 0; j < S::GROUP_N / 8; j++) {
        u32 v[4];
        UNROLLED for (i32 i = 0; i < 4; i++) v[i] = bits_of(sums[j * 4 + i]);
        write_words(to + u32(j) * PATCH_BYTES, v[0], v[1], v[2], v[3]);
    }
    if (blocks > 1) {
        async_fence();
        __syncwarp();
        cluster_wait();                  // the others' barriers are there
        const u32 unit = first + lane, owner = owner_of<S>(unit, blocks), begin = first_unit<S>(owner, blocks);
        if (lane < MINE && owner != rank) {
            const u32 at = (rank - (rank > owner)) * (first_unit<S>(owner + 1, blocks) - begin) + unit - begin;
            hand_over(cluster_address(place.received + at * S::UNIT_BYTES, owner), place.own + unit * S::UNIT_BYTES, S::UNIT_BYTES, cluster_address(place.handed, owner));
        }
    }
    named_barrier(1, S::GROUPS * 128);
}

template <class S>
DEVICE void multiply_part(const GemmSplitNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, u32 rank, u32 blocks)
{
    PartMultiplier<S> multiplier(memory);
    typename PartMultiplier<S>::Sums sums;
    if constexpr (S::PROMOTE) {
        UNROLLED for (i32 i = 0; i < S::TILE_N / 2; i++) sums[i] = 0;
        sum_promoted<S>(g, part, multiplier, sums);
    } else {
        ROLLED for (i32 step = part.begin; step < part.end; step++) multiplier.run_step(step > part.begin, sums);
        multiplier.finish(sums);
    }
    hand_sums_over<S>(memory.sums(), sums, rank, blocks);
}

template <class Word>
DEVICE u32 added(u32 a, u32 b)
{
    if constexpr (IS_REAL<Word>) return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
    return a + b;
}

// A lane's sums of a unit: EACH fours, ROWS rows apart, of which lanes side by side have neighbours.
template <class S>
struct UnitLane {
    static constexpr i32 FOURS = i32(S::UNIT) * 2, ROWS = 32 / FOURS, EACH = 16 / ROWS;
    i32 row, column;
    u32 place;                           // of the first pair, in a unit; the second is 16 bytes behind

    DEVICE UnitLane()
    {
        const i32 lane = i32(threadIdx.x) & 31, four = lane % FOURS;
        row = lane / FOURS, column = four * 4, place = u32(four / 2) * PATCH_BYTES + u32(row * 64 + four % 2 * 32);
    }
    DEVICE static constexpr u32 down(i32 i) { return u32(i * ROWS % 8 * 64 + i * ROWS / 8 * 8); }
};

template <class S>
DEVICE void add_unit(const SumsPlace& place, const UnitLane<S>& lane, u32 unit, u32 rank, u32 blocks, u32 (&v)[UnitLane<S>::EACH][4])
{
    constexpr i32 EACH = UnitLane<S>::EACH;
    const u32 begin = first_unit<S>(rank, blocks), mine = first_unit<S>(rank + 1, blocks) - begin;
    ROLLED for (u32 block = 0; block < blocks; block++) {
        const u32 from = lane.place + (block == rank ? place.own + unit * S::UNIT_BYTES : place.received + ((block - (block > rank)) * mine + unit - begin) * S::UNIT_BYTES);
        u32 x[EACH][4];
        UNROLLED for (i32 i = 0; i < EACH; i++) read_pair(from + lane.down(i), x[i][0], x[i][1]), read_pair(from + lane.down(i) + 16, x[i][2], x[i][3]);
        UNROLLED for (i32 i = 0; i < EACH; i++)
            UNROLLED for (i32 j = 0; j < 4; j++) v[i][j] = block == 0 ? x[i][j] : added<typename S::Word>(v[i][j], x[i][j]);
    }
}

// Fours whose store is one access: c's address is that of the first, `down` bytes to the next.
template <int EACH>
DEVICE void store_fours(const GemmOutput& o, char* to, i64 down, i32 row, i32 rows, const u32 (&v)[EACH][4])
{
    const bool is_half = o.c_type == F16 || o.c_type == BF16;
    UNROLLED for (i32 i = 0; i < EACH; i++) {
        if (row + i * rows < o.m) {
            if (!is_half) *reinterpret_cast<uint4*>(to) = make_uint4(v[i][0], v[i][1], v[i][2], v[i][3]);
            else
                *reinterpret_cast<uint2*>(to) = make_uint2(two_halves(o.c_type, __uint_as_float(v[i][0]), __uint_as_float(v[i][1])),
                                                           two_halves(o.c_type, __uint_as_float(v[i][2]), __uint_as_float(v[i][3])));
        }
        to += down;
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

// Parts of a unit's folds: of its 16 rows or its columns.
template <class S, int FOLD = 0>
DEVICE void fold_unit(const GemmOutput& o, const UnitLane<S>& lane, const TileSpot& first, const EpilogueTerms<4> (&terms)[UnitLane<S>::EACH])
{
    constexpr i32 EACH = UnitLane<S>::EACH, FOURS = UnitLane<S>::FOURS, ROWS = UnitLane<S>::ROWS;
    if constexpr (FOLD < FOLDS) {
        if constexpr (OVER_A_ROW) {
            UNROLLED for (i32 i = 0; i < EACH; i++) {
                const u32 all = fold_lanes<1, FOURS>(TextTwo<FOLD>(), fold_tree(TextTwo<FOLD>(), terms[i].of[FOLD]));
                const i32 row = first.row + i * ROWS;
                if (lane.column == 0 && row < o.m && first.column < o.n) put_part(o.epilogue, FIRST_FOLD + FOLD, first.batch, row, first.column / (FOURS * 4), all);
            }
        } else {
            UNROLLED for (i32 j = 0; j < 4; j++) {
                u32 down[EACH];
                UNROLLED for (i32 i = 0; i < EACH; i++) down[i] = terms[i].of[FOLD][j];
                const u32 all = fold_lanes<FOURS, 32>(TextTwo<FOLD>(), fold_tree(TextTwo<FOLD>(), down));
                if (lane.row == 0 && first.row < o.m && first.column + j < o.n) put_part(o.epilogue, FIRST_FOLD + FOLD, first.batch, first.row / PART_ROWS, first.column + j, all);
            }
        }
        fold_unit<S, FOLD + 1>(o, lane, first, terms);
    }
}

// Of halves and 8-bit integers alone, so that other kinds' code is not the larger for it.
template <class S>
ANYWHERE constexpr bool may_be_apart()
{
    if constexpr (S::PROMOTE) return false;
    else return S::Kind::STEP >= 64;
}

template <class S>
DEVICE void store_part(const GemmSplitNumbers& g, const SumsPlace& sums, const SplitPart& part, u32 rank, u32 blocks)
{
    using Word = typename S::Word;
    constexpr i32 EACH = UnitLane<S>::EACH, ROWS = UnitLane<S>::ROWS;
    constexpr u32 A_STRIP = S::UNITS / S::WARPS;
    const UnitLane<S> lane;
    const GemmOutput& o = g.output;
    const bool is_whole = stays_whole<Word>(o), is_half = o.c_type == F16 || o.c_type == BF16;
    const bool is_apart = may_be_apart<S>() && o.store == STORE_APART, is_bare = !HAS_EPILOGUE && IS_REAL<Word> != is_whole && g.splits == 1;
    const bool is_plain = is_bare && o.store <= STORE_FOURS && (is_half || o.c_type == F32 || is_whole);
    ROLLED for (u32 unit = first_unit<S>(rank, blocks) + (threadIdx.x >> 5); unit < first_unit<S>(rank + 1, blocks); unit += S::WARPS) {
        const i32      warp = i32(unit / A_STRIP), down = warp % (S::DOWN * 4), across = warp / (S::DOWN * 4);
        const TileSpot first = {part.at.batch, part.at.row + down * 16 + lane.row, part.at.column + across * S::GROUP_N + i32(unit % A_STRIP * S::UNIT) * 8 + lane.column};
        const auto     place = [&](i32 i) { return TileSpot{first.batch, first.row + i * ROWS, first.column}; };
        const i32      beyond = S::USED < S::TILE_N ? min(o.n, part.at.column + S::USED) : o.n;
        EpilogueOperands<4> operands[EACH];
        if (g.splits == 1)
            UNROLLED for (i32 i = 0; i < EACH; i++) fetch_operands(FromMemory{o.epilogue, spot_of(place(i), valid_of(o, place(i)))}, operands[i]);
        u32 v[EACH][4];
        add_unit<S>(sums, lane, unit, rank, blocks, v);
        u32 most = 0;                    // of sums of planes
        if constexpr (S::PROMOTE)
            UNROLLED for (i32 i = 0; i < EACH * 4; i++) most = g.planes == 3 ? max(most, v[i / 4][i % 4] & 0x7fffffff) : 0;
        if (is_plain && !is_no_number(most) && first.column + 4 <= beyond) {
            store_fours(o, place_of(o, first), ROWS * o.c_row * (is_half ? 2 : 4), first.row, ROWS, v);
            continue;
        }
        if (is_bare && is_apart) {
            UNROLLED for (i32 i = 0; i < EACH; i++) store_apart(o, place(i), min(valid_of(o, place(i)), beyond - first.column), v[i], is_whole);
            continue;
        }
        EpilogueTerms<4> terms[EACH];
        if constexpr (FOLDS > 0)
            UNROLLED for (i32 i = 0; i < EACH; i++) leave_out(terms[i], 0);
        // With an epilogue a text of each, so that what they read is in registers.
        constexpr i32 TEXTS = HAS_EPILOGUE ? EACH : 1;
        _Pragma("unroll TEXTS") for (i32 i = 0; i < EACH; i++) {
            const TileSpot at = place(i);
            const i32      valid = min(valid_of(o, at), beyond - at.column);
            u32            w[4];
            UNROLLED for (i32 k = 0; k < EACH; k++)
                if (k == i)
                    UNROLLED for (i32 j = 0; j < 4; j++) w[j] = v[k][j];
            if (valid <= 0) continue;
            if (g.splits > 1) {
                store_partial(g, part.split, at, valid, w);
                continue;
            }
            if constexpr (S::PROMOTE)
                if (g.planes == 3) sum_four_again(g.plain, at, valid, w);
            finish_four<Word>(o, at, valid, operands[HAS_EPILOGUE ? i : 0], w, terms[HAS_EPILOGUE ? i : 0]);
            if constexpr (FOLDS > 0) leave_out(terms[i], valid);
            if (!HAS_RESULT) continue;
            if (is_apart) store_apart(o, at, valid, w, is_whole);
            else store_four(o, at, valid, w, is_whole);
        }
        if constexpr (FOLDS > 0) fold_unit<S>(o, lane, first, terms);
    }
}

// What a block's sums are handed over for.
template <class S>
DEVICE void finish_part(const GemmSplitNumbers& g, const SumsPlace& sums, const SplitPart& part, u32 rank, u32 blocks)
{
    if (blocks > 1) barrier_wait(sums.handed, 0), __syncwarp(), cluster_arrive();
    wait_for_launch_before();
    store_part<S>(g, sums, part, rank, blocks);
    // No block leaves before all have what it sent them.
    if (blocks > 1) __syncwarp(), cluster_wait();
}

template <class S>
DEVICE void run_split(const GemmSplitNumbers& g)
{
    extern __shared__ unsigned char shared[];
    const i32 group = __shfl_sync(~0u, i32(threadIdx.x >> 7), 0);
    const u32 rank = cluster_rank(), blocks = cluster_size();
    const SplitMemory<S> memory(shared_address(shared), blocks);
    const SplitPart part = split_part(g, i64(g.k_steps) * products_of(g.planes), S::TILE_M, S::TILE_N, rank, blocks);
    const auto load = [&](i32 step, u32 stage) { load_step<S>(g, memory, part, step, stage); };
    if (threadIdx.x == S::GROUPS * 128) start_part<S>(g, memory, part, rank, blocks, load);
    __syncthreads();
    if (blocks > 1) cluster_arrive();
    // Not before: blocks of the next launch that share the multiprocessor would take up what this one starts with.
    let_next_launch();
    if (group == S::GROUPS) {
        if (threadIdx.x % 32 == 0) load_behind(memory, part, load);
        __syncwarp();
        if (blocks > 1) cluster_wait(), cluster_arrive(), cluster_wait();
        return;
    }
    multiply_part<S>(g, memory, part, rank, blocks);
    finish_part<S>(g, memory.sums(), part, rank, blocks);
}

}  // namespace
}  // namespace ng::kernels
