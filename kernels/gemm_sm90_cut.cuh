// c = a b of f32 by Hopper's tensor cores, with nothing but f32 in memory: blocks cut their operands into planes of bf16 themselves.
//
//   x 2^16 = x0 + x1 + x2, planes of bf16: six products, the smallest first; sums move to f32 after every step of depth. What is too large
//   for that scale becomes infinite or NaN, and such sums are computed again from the operands (sum_again)
//   grid      as gemm_sm90_split.cuh: a cluster a tile and split, the depth cut among its blocks
//   threads   two warpgroups multiply, 64 rows (of DOWN) and TILE_N / ACROSS columns each: a goes from shared memory to registers, where it is cut
//             and multiplied; of tiles of 64x64 every other step, all of it. The third warpgroup cuts b, a thread of the fourth loads
//   shared    [SLOTS] of b's planes, [3][TILE_N] x 32 of bf16; [STAGES] of a's [TILE_M] and b's [TILE_N] x 32 of f32; swizzled. Then
//             what other blocks of a cluster send, and barriers
#pragma once
#include "kernels/gemm_sm90_split.cuh"

namespace ng::kernels {
namespace {

template <int TILE_M_, int TILE_N_, int STAGES_, int SLOTS_, int A_TURNED_, int B_TURNED_>
struct CutShape {
    struct Kind { static constexpr i32 STEP = CUT_STEP, BYTES = 4; };
    using Word = float;
    static constexpr i32  TILE_M = TILE_M_, TILE_N = TILE_N_, STAGES = STAGES_, SLOTS = SLOTS_, A_TURNED = A_TURNED_, B_TURNED = B_TURNED_;
    static constexpr bool PROMOTE = true, PLANES = true, IN_REGISTERS = false, IN_PLACE = false, IN_PAIRS = false;
    static constexpr i32  GROUPS = 2, DOWN = TILE_M / 64, ACROSS = GROUPS / DOWN, GROUP_N = TILE_N / ACROSS, STEP = CUT_STEP;
    // 32 columns a product would take as long as 64, since a is in registers: so groups take steps in turn instead.
    static constexpr bool BY_DEPTH = GROUP_N < 64;
    static constexpr i32  PRODUCT_N = BY_DEPTH ? TILE_N : GROUP_N, TURNS = BY_DEPTH ? GROUPS : 1;
    static constexpr bool IN_TURNS = PRODUCT_N <= 64;    // registers for two batches of products
    static constexpr u32  A_BYTES = TILE_M * 128, STAGE = A_BYTES + TILE_N * 128, PLANE = TILE_N * 64, SLOT = 3 * PLANE;
    static constexpr u32  WARPS = GROUPS * 4, READERS = WARPS / TURNS, UNIT = split_unit(TILE_N), UNIT_BYTES = UNIT * PATCH_BYTES, UNITS = split_units(TILE_M, TILE_N);
    static constexpr u32  KEPT = cut_kept(TILE_M, TILE_N, STAGES, SLOTS);
    static_assert(DOWN * ACROSS == GROUPS && PRODUCT_N % 64 == 0, "two warpgroups, side by side or one above the other, or in turn");
    static_assert(!BY_DEPTH || (TILE_M == 64 && TILE_N == 64), "sums of both groups meet by halves of 32 columns");
    static_assert(cut_shared(TILE_M, TILE_N, STAGES, SLOTS) <= SHARED_MOST, "shared memory of a multiprocessor");
    static_assert(UNITS * UNIT_BYTES <= KEPT * STAGE, "a block's own sums fit its stages");
};

template <class S>
struct CutMemory {
    u32 slots, stages, received, barriers, ring;     // ring: stages in use

    DEVICE CutMemory(u32 shared, u32 blocks)
        : slots((shared + 1023) & ~1023u), stages(slots + S::SLOTS * S::SLOT), received(stages + S::KEPT * S::STAGE),
          barriers(slots + cut_buffer(S::TILE_M, S::TILE_N, S::STAGES, S::SLOTS)), ring(blocks > 1 ? S::KEPT : S::STAGES)
    {
    }
    DEVICE u32 full(u32 stage) const { return barriers + 8 * stage; }
    DEVICE u32 empty(u32 stage) const { return barriers + 8 * (S::STAGES + stage); }
    DEVICE u32 cut(u32 slot) const { return barriers + 8 * (2 * S::STAGES + slot); }
    DEVICE u32 used(u32 slot) const { return barriers + 8 * (2 * S::STAGES + S::SLOTS + slot); }
    DEVICE u32 handed() const { return barriers + 8 * (2 * S::STAGES + 2 * S::SLOTS); }
    DEVICE SumsPlace sums() const { return {stages, received, handed()}; }
};

// The tensor cores get the depth of a step in an order in which threads read four of a's neighbours at once, no two of one bank; where a
// is turned, in its own. Of sixteens s, a thread's pairs t and t + 4 are neighbours 4 (2 t + s).
template <class S>
DEVICE constexpr i32 place_of_depth(i32 depth)
{
    return S::A_TURNED ? depth : (depth >> 2 & 1) * 16 + (depth >> 1 & 1) * 8 + (depth >> 3) * 2 + (depth & 1);
}

// ---- cutting --------------------------------------------------------------------------------------------------------------

// Two numbers as three planes, as exact as f32 down to its smallest.
DEVICE void cut_pair(float x, float y, u32 (&plane)[3])
{
    constexpr float SCALE = 0x1p16f;
    constexpr u32   SCALES = 0x47804780;
    asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(plane[0]) : "r"(two_halves(BF16, x, y)), "r"(SCALES));
    x = fmaf(x, SCALE, -__uint_as_float(plane[0] << 16)), y = fmaf(y, SCALE, -__uint_as_float(plane[0] & 0xffff0000));
    plane[1] = two_halves(BF16, x, y);
    x -= __uint_as_float(plane[1] << 16), y -= __uint_as_float(plane[1] & 0xffff0000);
    plane[2] = two_halves(BF16, x, y);
}
constexpr float CUT_WEIGHT = 0x1p-32f;   // of a product of two such

DEVICE float read_float(u32 from)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(from) : "memory");
    return x;
}
DEVICE void read_floats(u32 from, float (&x)[4])
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(from) : "memory");
}

// b's columns, each with its depth side by side: a thread 16 of depth at once.
template <class S>
DEVICE void cut_columns(u32 from, u32 to, u32 thread)
{
    constexpr i32 EACH = S::TILE_N / 64;
    const u32 row = thread % S::TILE_N;
    float x[EACH][4][4];
    const auto sixteen = [&](i32 i) { return EACH == 2 ? u32(i) : thread / S::TILE_N; };
    UNROLLED for (i32 i = 0; i < EACH; i++)
        UNROLLED for (u32 t = 0; t < 4; t++) read_floats(from + row * 128 + (((S::A_TURNED ? 4 * sixteen(i) + t : 2 * t + sixteen(i)) ^ (row & 7)) << 4), x[i][t]);
    UNROLLED for (i32 i = 0; i < EACH; i++) {
        const u32 s = sixteen(i);
        UNROLLED for (u32 half = 0; half < 2; half++) {
            u32 w[4][3];
            UNROLLED for (u32 t = 0; t < 4; t++) {
                if constexpr (S::A_TURNED) cut_pair(x[i][half * 2 + t / 2][t % 2 * 2], x[i][half * 2 + t / 2][t % 2 * 2 + 1], w[t]);
                else cut_pair(x[i][t][half * 2], x[i][t][half * 2 + 1], w[t]);
            }
            const u32 place = to + row * 64 + (((2 * s + half) ^ (row >> 1 & 3)) << 4);
            UNROLLED for (u32 p = 0; p < 3; p++) write_words(place + p * S::PLANE, w[0][p], w[1][p], w[2][p], w[3][p]);
        }
    }
}

// The same where columns lie side by side, by boxes of 32: a thread 8 columns at once. Lanes of eight have two lines whose places are of other banks.
template <class S>
DEVICE void cut_lines(u32 from, u32 to, u32 thread)
{
    const u32 warp = thread >> 5, piece = thread & 3, other = thread >> 2 & 1, pair = thread >> 3 & 3;
    const u32 depth = S::A_TURNED ? (warp * 8 + pair) ^ (other ? 5 : 0) : (warp * 4 + pair) ^ (other ? 17 : 0), line = u32(place_of_depth<S>(i32(depth)));
    constexpr u32 BOXES = S::TILE_N / 32;
    float x[BOXES][2][4];
    UNROLLED for (u32 box = 0; box < BOXES; box++)
        UNROLLED for (u32 i = 0; i < 2; i++) read_floats(from + box * 4096 + depth * 128 + (((2 * piece + i) ^ (depth & 7)) << 4), x[box][i]);
    UNROLLED for (u32 box = 0; box < BOXES; box++) {
        u32 w[4][3];
        UNROLLED for (u32 t = 0; t < 4; t++) cut_pair(x[box][t / 2][t % 2 * 2], x[box][t / 2][t % 2 * 2 + 1], w[t]);
        const u32 place = to + box / 2 * 4096 + line * 128 + (((box % 2 * 4 + piece) ^ (line & 7)) << 4);
        UNROLLED for (u32 p = 0; p < 3; p++) write_words(place + p * S::PLANE, w[0][p], w[1][p], w[2][p], w[3][p]);
    }
}

// All of a part's b, step by step.
template <class S>
DEVICE void cut_part(const CutMemory<S>& memory, i32 steps)
{
    const u32 thread = threadIdx.x & 127;
    u32 stage = 0, phase = 0, slot = 0, turn = 1;
    ROLLED for (i32 step = 0; step < steps; step++) {
        barrier_wait(memory.full(stage), phase);
        barrier_wait(memory.used(slot), turn);
        const u32 from = memory.stages + stage * S::STAGE + S::A_BYTES, to = memory.slots + slot * S::SLOT;
        if constexpr (S::B_TURNED) cut_lines<S>(from, to, thread);
        else cut_columns<S>(from, to, thread);
        async_fence();
        __syncwarp();
        if (thread % 32 == 0) barrier_arrive(memory.empty(stage)), barrier_arrive(memory.cut(slot));
        if (++stage == memory.ring) stage = 0, phase ^= 1;
        if (++slot == S::SLOTS) slot = 0, turn ^= 1;
    }
}

// ---- multiplying ----------------------------------------------------------------------------------------------------------

// A step of a warpgroup's 64 rows of a, as instructions take it.
struct Fragments {
    u32 of[2][3][4];                     // [sixteen of depth][plane]
};

template <class S>
struct CutMultiplier {
    using Sums = float[S::PRODUCT_N / 2];

    const CutMemory<S>& memory;
    u32                 a;               // a thread's first element, of stage 0
    u64                 b;
    u32                 stage = 0, phase = 0, slot = 0, turn = 0, before = 0, read = 0;

    DEVICE explicit CutMultiplier(const CutMemory<S>& shared) : memory(shared)
    {
        const u32 group = u32(__shfl_sync(~0u, i32(threadIdx.x >> 7), 0)), down = S::ACROSS > 1 ? 0 : group, across = S::ACROSS > 1 ? group : 0;
        const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5 & 3, t = lane & 3, row = lane >> 2, first = memory.stages + down * 8192;
        if constexpr (S::A_TURNED) a = first + (warp >> 1) * 4096 + t * 256 + ((((warp & 1) * 4 + (row >> 2)) ^ (2 * t)) << 4) + (row & 3) * 4;
        else a = first + warp * 2048 + row * 128 + (((2 * t) ^ row) << 4);
        const u32 planes = memory.slots + (S::BY_DEPTH ? 0 : across * 4096);
        if constexpr (S::BY_DEPTH) stage = slot = group;
        b = S::B_TURNED ? matrix_at<128>(planes, 4096, 1024) : matrix_at<64>(planes, 16, 512);
    }
    // The next step of a.
    DEVICE void cut(Fragments& f)
    {
        barrier_wait(memory.full(stage), phase);
        const u32 from = a + stage * S::STAGE;
        UNROLLED for (u32 s = 0; s < 2; s++)
            UNROLLED for (u32 down = 0; down < 2; down++) {
                float x[4];
                if constexpr (S::A_TURNED) {
                    UNROLLED for (u32 i = 0; i < 4; i++) x[i] = read_float(((from ^ (i & 1) << 4) ^ down << 5) + s * 2048 + (i >> 1) * 1024 + (i & 1) * 128);
                } else {
                    read_floats((from ^ s << 4) + down * 1024, x);
                }
                UNROLLED for (u32 half = 0; half < 2; half++) {
                    u32 w[3];
                    cut_pair(x[half * 2], x[half * 2 + 1], w);
                    UNROLLED for (u32 p = 0; p < 3; p++) f.of[s][p][half * 2 + down] = w[p];
                }
            }
        read = stage;
        if constexpr (S::IN_TURNS) release();
        stage += S::TURNS;
        if (stage >= memory.ring) stage -= memory.ring, phase ^= 1;
    }
    // The stage that was read may be written to.
    DEVICE void release() const
    {
        async_fence();
        __syncwarp();
        if ((threadIdx.x & 31) == 0) barrier_arrive(memory.empty(read));
    }
    // d = a b of a step, which is under way then.
    DEVICE void start(const Fragments& f, Sums& d)
    {
        constexpr u32 A_PLANES[] = {0, 1, 2, 0, 1, 0}, B_PLANES[] = {2, 1, 0, 1, 0, 0};
        barrier_wait(memory.cut(slot), turn);
        products_fence();
        UNROLLED for (i32 product = 0; product < 6; product++)
            UNROLLED for (u32 s = 0; s < 2; s++)
                multiply_fragment<S::B_TURNED>(d, f.of[s][A_PLANES[product]], b + (slot * (S::SLOT >> 4) + B_PLANES[product] * (S::PLANE >> 4) + s * (S::B_TURNED ? 128 : 2)), product + i32(s) > 0, OfBf16());
        end_products();
        if constexpr (!S::IN_TURNS) release();       // nothing waits for it here
        before = slot;
        slot += S::TURNS;
        if (slot >= S::SLOTS) slot -= S::SLOTS, turn ^= 1;
    }
    // All but PENDING steps are done, the last of which is d's and of this slot.
    template <int PENDING>
    DEVICE void add(Sums& d, u32 from, Sums& sums)
    {
        wait_products<PENDING>();
        settle(d);
        if ((threadIdx.x & 31) == 0) barrier_arrive(memory.used(from));
        UNROLLED for (i32 i = 0; i < S::PRODUCT_N / 2; i++) sums[i] = fmaf(d[i], CUT_WEIGHT, sums[i]);
        settle(sums);                    // here, not when d is in work again
    }
};

// a is cut while the step before is multiplied. The part has steps.
template <class S>
DEVICE void sum_cut(CutMultiplier<S>& m, i32 steps, typename CutMultiplier<S>::Sums& sums)
{
    Fragments f[2];
    m.cut(f[0]);
    if constexpr (S::IN_TURNS) {
        typename CutMultiplier<S>::Sums d[2];
        m.start(f[0], d[0]);
        ROLLED for (;;) {                // a step is under way, in f[0] and d[0]
            u32 slot = m.before;
            if (--steps == 0) return m.template add<0>(d[0], slot, sums);
            m.cut(f[1]), m.start(f[1], d[1]), m.template add<1>(d[0], slot, sums);
            slot = m.before;
            if (--steps == 0) return m.template add<0>(d[1], slot, sums);
            m.cut(f[0]), m.start(f[0], d[0]), m.template add<1>(d[1], slot, sums);
        }
    } else {
        typename CutMultiplier<S>::Sums d;
        ROLLED for (;;) {                // f[0] is cut
            m.start(f[0], d);
            if (--steps == 0) return m.template add<0>(d, m.before, sums);
            m.cut(f[1]), m.template add<0>(d, m.before, sums), m.start(f[1], d);
            if (--steps == 0) return m.template add<0>(d, m.before, sums);
            m.cut(f[0]), m.template add<0>(d, m.before, sums);
        }
    }
}

// Of both groups' sums, each of all columns: the group's half of them, its own and the other's.
template <class S>
DEVICE void meet_by_halves(u32 room, i32 group, const typename CutMultiplier<S>::Sums& sums, float (&half)[S::GROUP_N / 2])
{
    constexpr i32 COUNT = S::GROUP_N / 2;
    const u32 mine = room + (threadIdx.x & 127) * 16, other = u32(1 - group) * COUNT * 512;
    float x[COUNT];
    UNROLLED for (i32 i = 0; i < COUNT; i++) {
        const float left = sums[i], right = sums[COUNT + i];
        half[i] = group == 0 ? left : right, x[i] = group == 0 ? right : left;
    }
    named_barrier(1, S::GROUPS * 128);   // all are done with the stages
    UNROLLED for (u32 i = 0; i < COUNT; i += 4) write_words(mine + u32(group) * COUNT * 512 + i * 512, bits_of(x[i]), bits_of(x[i + 1]), bits_of(x[i + 2]), bits_of(x[i + 3]));
    named_barrier(1, S::GROUPS * 128);
    UNROLLED for (u32 i = 0; i < COUNT; i += 4) {
        u32 v[4];
        read_words(mine + other + i * 512, v);
        UNROLLED for (u32 j = 0; j < 4; j++) half[i + j] += __uint_as_float(v[j]);
    }
}

// ---- loading --------------------------------------------------------------------------------------------------------------

template <int TILE, int IS_TURNED>
DEVICE void load_floats(u32 to, const TensorMap& map, i32 line, i32 depth, i32 batch, u32 full)
{
    if constexpr (IS_TURNED) UNROLLED for (i32 i = 0; i < TILE / 32; i++) load_box(to + u32(i) * 4096, map, line + i * 32, depth, batch, full);
    else load_box(to, map, depth, line, batch, full);
}
template <class S>
DEVICE void load_cut_step(const GemmSplitNumbers& g, const CutMemory<S>& memory, const SplitPart& part, i32 step, u32 stage)
{
    const u32 to = memory.stages + stage * S::STAGE, full = memory.full(stage);
    barrier_expect(full, S::STAGE);
    load_floats<S::TILE_M, S::A_TURNED>(to, g.a, part.at.row, step * S::STEP, part.at.batch * g.a_moves, full);
    load_floats<S::TILE_N, S::B_TURNED>(to + S::A_BYTES, g.b, part.at.column, step * S::STEP, part.at.batch * g.b_moves, full);
}
// The barriers, and what fits the ring, while the block's other threads are still coming.
template <class S, class Load>
DEVICE void start_cut(const GemmSplitNumbers& g, const CutMemory<S>& memory, const SplitPart& part, Load&& load)
{
    fetch_map(g.a), fetch_map(g.b);
    for (u32 s = 0; s < S::STAGES; s++) barrier_init(memory.full(s), 1), barrier_init(memory.empty(s), i32(S::READERS) + 4);
    for (u32 s = 0; s < S::SLOTS; s++) barrier_init(memory.cut(s), 4), barrier_init(memory.used(s), i32(S::READERS));
    barrier_init(memory.handed(), 1);
    barrier_init_fence();
    barrier_expect(memory.handed(), part.received_bytes<S>());
    fill_ring(memory, part, load);
}

template <class S>
DEVICE void run_cut(const GemmSplitNumbers& g)
{
    extern __shared__ unsigned char shared[];
    const i32 group = __shfl_sync(~0u, i32(threadIdx.x >> 7), 0);
    const SplitPart    part = split_part(g);
    if (!part.is_there) return;
    const CutMemory<S> memory(shared_address(shared), part.blocks);
    const auto load = [&](i32 step, u32 stage) { load_cut_step<S>(g, memory, part, step, stage); };
    if (threadIdx.x == (S::GROUPS + 1) * 128) start_cut<S>(g, memory, part, load);
    __syncthreads();
    if (part.blocks > 1) cluster_arrive();
    let_next_launch();
    if (group >= S::GROUPS) {
        if (group == S::GROUPS) {
            keep_registers<72>();
            cut_part<S>(memory, part.end - part.begin);
        } else {
            keep_registers<40>();
            if (threadIdx.x == (S::GROUPS + 1) * 128) load_behind(memory, part, load);
        }
        __syncwarp();
        if (part.blocks > 1) cluster_wait(), cluster_arrive(), cluster_wait();
        return;
    }
    take_registers<200>();
    ask_for_operands<S>(g, part);
    CutMultiplier<S> multiplier(memory);
    typename CutMultiplier<S>::Sums sums;
    UNROLLED for (i32 i = 0; i < S::PRODUCT_N / 2; i++) sums[i] = 0;
    if constexpr (S::BY_DEPTH) {
        const i32 steps = (part.end - part.begin + 1 - group) / S::TURNS;
        float     half[S::GROUP_N / 2];
        if (steps > 0) sum_cut<S>(multiplier, steps, sums);
        meet_by_halves<S>(memory.stages, group, sums, half);
        hand_sums_over<S>(memory.sums(), part, half);
    } else {
        sum_cut<S>(multiplier, part.end - part.begin, sums);
        hand_sums_over<S>(memory.sums(), part, sums);
    }
    finish_part<S>(g, memory.sums(), part);
}

}  // namespace
}  // namespace ng::kernels
