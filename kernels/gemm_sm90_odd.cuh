// c = a b of 16-bit operands, of which b's lines [k, n] lie at any distance, as gemm_sm90_split.cuh has it.
//
// Of lines at any distance each eighth lies at a multiple of 16 bytes from the one before. So b's map has eight lines as one; line i of
// all eights of a step is a box that begins i distances farther on, at the 16 bytes in which that is. Where it begins in them is the
// same for all of a box, by which its lines are moved then, in shared memory; what is moved in from behind does not count.
// There the depth of a step is in the order of boxes: at place 8 i + j is depth 8 j + i. So a goes to registers, in that order.
#pragma once
#include "kernels/gemm_sm90_aside.cuh"
#include "kernels/gemm_sm90_split.cuh"

namespace ng::kernels {
namespace {

template <class Kind, int TILE_M, int STAGES>
struct OddShape : SplitShape<Kind, TILE_M, ODD_WIDTH, STAGES, 0, 1, false> {};

template <class S>
DEVICE void load_odd_step(const GemmOddNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, i32 step, u32 stage)
{
    const u32       a = memory.stages + stage * S::STAGE, full = memory.full(stage);
    const OddLines& lines = g.b;
    barrier_expect(full, S::STAGE - S::A_BYTES + u32(g.split.tile_rows) * 128);
    load_box(a, g.split.a, step * S::Kind::STEP, part.at.row, part.at.batch * g.split.a_moves, full);
    UNROLLED for (i32 i = 0; i < 8; i++)
        load_box(a + S::A_BYTES + u32(i) * 1024, i < lines.more ? lines.rest : g.split.b, (lines.first + i * lines.distance & ~7) + part.at.column, step * 8, part.at.batch * g.split.b_moves, full);
}

// A step of a warpgroup's 64 rows of a, as instructions take it.
struct OddFragments {
    u32 of[4][4];                        // [sixteen of depth]
};
DEVICE void read_sixteen(u32 from, u32 (&x)[4])
{
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(from) : "memory");
}

// Lines of a step to where their first column belongs: a warp four lines at once, a lane 16 bytes of one.
template <class S>
DEVICE void move_lines(const OddLines& lines, u32 b)
{
    constexpr u32 EACH = 16 / S::WARPS;
    const u32 warp = u32(__shfl_sync(~0u, i32(threadIdx.x >> 5), 0)), piece = threadIdx.x & 7;
    u32 low[EACH][4], high[EACH][4];
    const auto row = [&](u32 i) { return (warp * EACH + i) % 2 * 4 + (threadIdx.x >> 3 & 3); };
    const auto place = [&](u32 i, u32 at) { return b + (warp * EACH + i) / 2 * 1024 + row(i) * 128 + ((at ^ row(i)) << 4); };
    UNROLLED for (u32 i = 0; i < EACH; i++) read_sixteen(place(i, piece), low[i]), read_sixteen(place(i, piece + 1 & 7), high[i]);
    __syncwarp();
    UNROLLED for (u32 i = 0; i < EACH; i++) {
        const u32   shift = u32(lines.first + i32(warp * EACH + i) / 2 * lines.distance & 7) * 2;
        const uint4 v = window_of(make_uint4(low[i][0], low[i][1], low[i][2], low[i][3]), make_uint4(high[i][0], high[i][1], high[i][2], high[i][3]), shift);
        write_words(place(i, piece), v.x, v.y, v.z, v.w);
    }
}

template <class S>
struct OddMultiplier {
    using Sums = float[S::TILE_N / 2];

    const SplitMemory<S>& memory;
    const OddLines&       lines;
    u32                   a;             // a thread's first elements, of stage 0
    u64                   b;
    u32                   stage = 0, phase = 0, before = 0;

    DEVICE explicit OddMultiplier(const SplitMemory<S>& shared, const OddLines& of_b) : memory(shared), lines(of_b)
    {
        const u32 warp = u32(__shfl_sync(~0u, i32(threadIdx.x >> 5), 0)), lane = threadIdx.x & 31, row = lane >> 2;
        a = memory.stages + warp * 2048 + row * 128 + (((lane & 3) * 2 ^ row) << 4);
        b = matrix_at<S::B_SWIZZLE>(memory.stages + S::A_BYTES, 64 * S::B_SWIZZLE, 8 * S::B_SWIZZLE);
    }
    // The next step: b is moved, a read. A thread has sixteen neighbours of two rows: those of place 2 t and 2 t + 1 of a line's eight are 8 apart.
    DEVICE void read(OddFragments& f)
    {
        barrier_wait(memory.full(stage), phase);
        move_lines<S>(lines, memory.stages + stage * S::STAGE + S::A_BYTES);
        async_fence();
        const u32 from = a + stage * S::STAGE;
        UNROLLED for (u32 down = 0; down < 2; down++) {
            u32 low[4], high[4];
            read_sixteen(from + down * 1024, low), read_sixteen((from ^ 16) + down * 1024, high);
            UNROLLED for (i32 s = 0; s < 4; s++) f.of[s][down] = __byte_perm(low[s], high[s], 0x5410), f.of[s][2 + down] = __byte_perm(low[s], high[s], 0x7632);
        }
        named_barrier(1, S::GROUPS * 128);   // all lines are where they belong
    }
    // d (+)= the step that was read, which is under way then.
    DEVICE void start(OddFragments& f, bool is_sum, Sums& d)
    {
        // Made here: between products the compiler would have to wait for them.
        UNROLLED for (i32 s = 0; s < 4; s++)
            UNROLLED for (i32 i = 0; i < 4; i++) asm volatile("" : "+r"(f.of[s][i])::"memory");
        products_fence();
        UNROLLED for (i32 s = 0; s < 4; s++) multiply_fragment<1>(d, f.of[s], b + (stage * (S::STAGE >> 4) + u32(s) * S::B_SWIZZLE), is_sum || s > 0, typename S::Kind());
        end_products();
        before = stage;
        if (++stage == memory.ring) stage = 0, phase ^= 1;
    }
    // It is done.
    DEVICE void finish(u32 last, Sums& d)
    {
        wait_products<0>();
        settle(d);
        if ((threadIdx.x & 31) == 0) barrier_arrive(memory.empty(last));
    }
};

// A step is made ready while the one before is multiplied. The part has steps.
template <class S>
DEVICE void sum_odd(OddMultiplier<S>& m, i32 steps, typename OddMultiplier<S>::Sums& sums)
{
    OddFragments f[2];
    m.read(f[0]), m.start(f[0], false, sums);
    ROLLED for (;;) {                    // a step is under way, in f[0]
        if (--steps == 0) return m.finish(m.before, sums);
        m.read(f[1]), m.finish(m.before, sums), m.start(f[1], true, sums);
        if (--steps == 0) return m.finish(m.before, sums);
        m.read(f[0]), m.finish(m.before, sums), m.start(f[0], true, sums);
    }
}

template <class S>
DEVICE void run_odd(const GemmOddNumbers& g)
{
    const PartFrame<S> frame(g.split);
    run_frame(frame, [&](i32 step, u32 stage) { load_odd_step<S>(g, frame.memory, frame.part, step, stage); }, [&] {
        OddMultiplier<S> multiplier(frame.memory, g.b);
        typename OddMultiplier<S>::Sums sums;
        sum_odd<S>(multiplier, frame.part.end - frame.part.begin, sums);
        frame.hand_over(sums);
    });
}

}  // namespace
}  // namespace ng::kernels
