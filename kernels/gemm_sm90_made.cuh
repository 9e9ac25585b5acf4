// c = a b of halves by Hopper's tensor cores, where a lies as bytes that a text makes halves of on their way to registers.
//
//   grid, sums   as kernels/gemm_sm90_split.cuh has them, in tiles of 128 rows
//   shared       [STAGES] of 64 of depth: a's [128][64 bytes] where depth is near, [64][128 bytes] where its lines are; b's [TILE_N][128 bytes]; all swizzled
//   lines        of a: where they are near a thread's two rows lie side by side, so that two bytes of theirs are one read
#pragma once
#include "kernels/gemm_operand_codes.cuh"
#include "kernels/gemm_sm90_split.cuh"

namespace ng::kernels {
namespace {

template <class Kind_, int TILE_N_, bool IS_DEEP_>
struct MadeShape {
    using Kind = Kind_;
    using Word = float;
    static constexpr bool IS_DEEP = IS_DEEP_, PROMOTE = false, PLANES = false, IN_PAIRS = !IS_DEEP, IN_REGISTERS = true, IN_PLACE = false;
    static constexpr i32  TILE_M = MADE_ROWS, TILE_N = TILE_N_, STAGES = made_stages(TILE_N), A_ACROSS = 0, B_TURNED = 0, B_SWIZZLE = 128;
    static constexpr i32  BLOCKS = 1, GROUPS = TILE_M / 64, DOWN = GROUPS, GROUP_N = TILE_N;
    static constexpr u32  A_BYTES = MADE_ROWS * MADE_STEP, STAGE = made_stage(TILE_N), KEPT = made_kept(TILE_N), BUFFER = made_buffer(TILE_N);
    static constexpr u32  WARPS = GROUPS * 4, UNIT = split_unit(TILE_N), UNIT_BYTES = UNIT * PATCH_BYTES, UNITS = split_units(TILE_M, TILE_N);
    static_assert(made_shared(TILE_N) <= SHARED_MOST, "shared memory of a multiprocessor");
    static_assert(UNITS * UNIT_BYTES <= KEPT * STAGE, "a block's own sums take no room of the others'");

    DEVICE static RowsOfThread rows()
    {
        const i32 row = i32(threadIdx.x >> 2 & 7), warp = i32(threadIdx.x >> 5 & 3);
        return IS_DEEP ? RowsOfThread{warp * 16 + row, 8} : RowsOfThread{warp * 16 + 2 * row, 1};
    }
};

template <class S>
DEVICE void load_made_step(const GemmMadeNumbers& g, const SplitMemory<S>& memory, const SplitPart& part, i32 step, u32 stage)
{
    const u32 a = memory.stages + stage * S::STAGE, full = memory.full(stage);
    const i32 depth = step * i32(MADE_STEP), batch = part.at.batch;
    barrier_expect(full, S::A_BYTES + u32(g.split.tile_columns) * 128);
    load_box(a, g.split.a, S::IS_DEEP ? depth : part.at.row, S::IS_DEEP ? part.at.row : depth, batch * g.split.a_moves, full);
    load_box(a + S::A_BYTES, g.split.b, depth, part.at.column, batch * g.split.b_moves, full);
}

DEVICE u32 read_two_bytes(u32 from)
{
    u32 r;
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(r) : "r"(from) : "memory");
    return r;
}

template <class S>
struct MadeMultiplier : PartMultiplier<S> {
    using Base = PartMultiplier<S>;
    using Sums = typename Base::Sums;

    operand::Numbers numbers;
    operand::Line    lines[2];           // of the thread's rows
    u32              codes;              // its first bytes, of stage 0
    i32              left;               // of depth

    DEVICE MadeMultiplier(const GemmMadeNumbers& g, const SplitMemory<S>& shared, const SplitPart& part)
        : Base(shared), numbers(struct_in<operand::Numbers>(g.text.numbers)), left(g.depth - part.begin * i32(MADE_STEP))
    {
        const RowsOfThread rows = S::rows();
        const i32 row = i32(threadIdx.x >> 7) * 64 + rows.row, t = i32(threadIdx.x & 3);
        UNROLLED for (i32 i = 0; i < 2; i++) operand::fetch_line(g.text, numbers, i64(min(part.at.row + row + i * rows.next, g.lines - 1)), lines[i]);
        codes = shared.stages + u32(S::IS_DEEP ? row * 64 + 2 * t : t * 256 + row % 16);
    }
    // The next step, when it is there.
    DEVICE void read(u32 (&f)[4][4])
    {
        barrier_wait(this->memory.full(this->turn.stage), this->turn.phase);
        const u32 from = codes + this->turn.stage * S::STAGE, t = threadIdx.x & 3, piece = threadIdx.x >> 5 & 7;
        u32 two[4][4];
        UNROLLED for (u32 s = 0; s < 4; s++)
            UNROLLED for (u32 half = 0; half < 2; half++)
                UNROLLED for (u32 i = 0; i < 2; i++) {
                    // Two of a row's depth; or, at one of two depths, of both rows.
                    const u32 at = S::IS_DEEP ? i * 512 + ((s ^ (threadIdx.x >> 3 & 3)) << 4) + half * 8 : (s * 16 + half * 8 + i) * 128 + ((piece ^ (2 * t + i)) << 4);
                    two[s][half * 2 + i] = read_two_bytes(from + at);
                }
        UNROLLED for (u32 s = 0; s < 4; s++)
            UNROLLED for (u32 half = 0; half < 2; half++)
                UNROLLED for (u32 i = 0; i < 2; i++) {
                    const u32* const x = two[s] + half * 2;
                    const CodePair   pair = {S::IS_DEEP ? two_apart(x[i], 0) : __byte_perm(x[0], x[1], i == 0 ? 0x2420 : 0x2521)};
                    f[s][half * 2 + i] = made_pair(numbers, lines[i], pair);
                }
        // A text may make anything of the zeros behind the last depth.
        if (!operand::IS_CAST && left < i32(MADE_STEP))
            UNROLLED for (i32 j = 0; j < 16; j++) {
                const i32 there = left - (j / 4 * 16 + j / 2 % 2 * 8 + 2 * i32(t));
                f[j / 4][j % 4] = there <= 0 ? 0 : there == 1 ? f[j / 4][j % 4] & 0xffff : f[j / 4][j % 4];
            }
        left -= i32(MADE_STEP);
    }
    // d (+)= what was read, which is under way then, unlike the step before it.
    DEVICE void start(u32 (&f)[4][4], bool is_sum, Sums& d)
    {
        // Made here: between products the compiler would have to wait for them.
        UNROLLED for (i32 j = 0; j < 16; j++) asm volatile("" : "+r"(f[j / 4][j % 4])::"memory");
        products_fence();
        UNROLLED for (i32 s = 0; s < 4; s++) multiply_fragment<0>(d, f[s], this->b + (this->turn.stage * (S::STAGE >> 4) + u32(s) * 2), is_sum || s > 0, typename S::Kind());
        this->end_step();
    }
};

// A step is made while the one before is multiplied. The part has steps.
template <class S>
DEVICE void sum_made(MadeMultiplier<S>& m, i32 steps, typename MadeMultiplier<S>::Sums& sums)
{
    u32 even[4][4], odd[4][4];
    m.read(even);
    ROLLED for (i32 step = 0;;) {
        m.start(even, step > 0, sums);
        if (++step == steps) break;
        m.read(odd);
        m.start(odd, true, sums);
        if (++step == steps) break;
        m.read(even);
    }
    m.finish(sums);
}

template <class S>
DEVICE void run_made(const GemmMadeNumbers& g)
{
    const PartFrame<S> frame(g.split);
    run_frame(frame, [&](i32 step, u32 stage) { load_made_step<S>(g, frame.memory, frame.part, step, stage); }, [&] {
        wait_for_launch_before();        // which may have written what lines are made with
        MadeMultiplier<S> multiplier(g, frame.memory, frame.part);
        typename MadeMultiplier<S>::Sums sums;
        sum_made<S>(multiplier, frame.part.end - frame.part.begin, sums);
        frame.hand_over(sums);
    });
}

}  // namespace
}  // namespace ng::kernels
