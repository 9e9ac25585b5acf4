// c = a b of doubles on Hopper: a warp a loads by the copy engine, eight multiply from registers, all through one ring of stages.
//
//   grid, shared  as gemm_sm90_tiles.cuh has them; a stage is 16 steps of depth, 128 bytes of a's rows and b's columns, or 16 lines
//                 of each step side by side, swizzled
//   warp          TILE_M / 2 x TILE_N / 4 of the tile, as blocks of 16 x 8; lane is 4 g + t
//   depth         the hardware's step s of lane t is number 8 (s / 2) + 2 t + s % 2 of the stage: two of a row are one access, and
//                 rows of lines meet no bank twice. a and b agree, so any order would do
//   rows          of a row-major operand are taken 4 (g % 2) + g / 2, so that neighbouring lanes' rows are swizzled apart
#pragma once
#include "kernels/gemm_sm90_tiles.cuh"

namespace ng::kernels {
namespace {

struct OfF64 : OperandKind<double, 16, true> {};

DEVICE void product_doubles(double (&c)[4], const double (&a)[8], const double (&b)[4])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}
DEVICE void read_double(u32 from, double& x) { asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from) : "memory"); }
DEVICE void read_doubles(u32 from, double& x, double& y) { asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "r"(from) : "memory"); }

// Line `i` of eight that the hardware takes, in the operand.
template <int IS_TURNED>
DEVICE i32 line_of(i32 i)
{
    return IS_TURNED ? i : (i & 1) * 4 + (i >> 1);
}

// Where a lane finds its parts of a warp's lines, in an operand's tile. first: a multiple of 16.
template <int IS_TURNED>
struct LaneLines {
    u32 at[IS_TURNED ? 4 : 2];

    DEVICE explicit LaneLines(i32 first)
    {
        const i32 lane = i32(threadIdx.x) & 31, g = lane >> 2, t = lane & 3;
        if constexpr (IS_TURNED) {
            UNROLLED for (i32 s = 0; s < 4; s++) {
                const i32 row = 8 * (s / 2) + 2 * t + s % 2;
                at[s] = u32((first >> 4) * 2048 + row * 128 + (((g >> 1) ^ (row & 7)) << 4) + (g & 1) * 8);
            }
        } else {
            const i32 row = first + line_of<0>(g);
            UNROLLED for (i32 s = 0; s < 2; s++) at[s] = u32(row * 128 + (((t + s * 4) ^ (row & 7)) << 4));
        }
    }
    // Of eight lines a lane's four steps of depth.
    DEVICE void read(u32 tile, i32 eight, double (&x)[4]) const
    {
        if constexpr (IS_TURNED) {
            UNROLLED for (i32 s = 0; s < 4; s++) read_double(tile + ((at[s] + u32(eight / 2 * 2048)) ^ u32(eight % 2 * 64)), x[s]);
        } else {
            UNROLLED for (i32 s = 0; s < 2; s++) read_doubles(tile + at[s] + u32(eight * 1024), x[2 * s], x[2 * s + 1]);
        }
    }
};

template <class S>
struct DoubleWarp {
    static constexpr i32 ROWS = S::TILE_M / 2, COLUMNS = S::TILE_N / 4, ROW_BLOCKS = ROWS / 16, COLUMN_BLOCKS = COLUMNS / 8;
    // What a warp multiplies in a stage. While it reads, the other warp of its scheduler multiplies.
    struct Part {
        double a[ROW_BLOCKS][8], b[COLUMN_BLOCKS][4];
    };

    const GemmTilesNumbers& g;
    TilesMemory<S>          memory;
    i32                     row, column;
    LaneLines<S::A_TURNED>  a_lines;
    LaneLines<S::B_TURNED>  b_lines;
    Turn<S::STAGES>         turn = {0, 0};
    double                  sum[ROW_BLOCKS][COLUMN_BLOCKS][4];

    DEVICE DoubleWarp(const GemmTilesNumbers& numbers, const TilesMemory<S>& shared)
        : g(numbers), memory(shared), row(i32(threadIdx.x >> 5) % 2 * ROWS), column(i32(threadIdx.x >> 6) * COLUMNS), a_lines(row), b_lines(column)
    {
    }
    DEVICE void clear()
    {
        UNROLLED for (i32 i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (i32 j = 0; j < COLUMN_BLOCKS; j++)
                UNROLLED for (i32 e = 0; e < 4; e++) sum[i][j][e] = 0;
    }
    DEVICE void read(Part& part)
    {
        barrier_wait(memory.full(turn.stage), turn.phase);
        const u32 a = memory.stages + turn.stage * S::STAGE, b = a + S::A_BYTES;
        UNROLLED for (i32 j = 0; j < COLUMN_BLOCKS; j++) b_lines.read(b, j, part.b[j]);
        UNROLLED for (i32 i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (i32 half = 0; half < 2; half++) {
                double x[4];
                a_lines.read(a, i * 2 + half, x);
                UNROLLED for (i32 s = 0; s < 4; s++) part.a[i][2 * s + half] = x[s];
            }
        __syncwarp();
        if ((threadIdx.x & 31) == 0) barrier_arrive(memory.empty(turn.stage));
        turn.advance();
    }
    DEVICE void multiply(const Part& part)
    {
        UNROLLED for (i32 i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (i32 j = 0; j < COLUMN_BLOCKS; j++) product_doubles(sum[i][j], part.a[i], part.b[j]);
    }
    DEVICE void store(const TileSpot& t) const
    {
        const GemmOutput& o = g.output;
        const i32 lane = i32(threadIdx.x) & 31;
        double* const c = static_cast<double*>(o.c) + i64(t.batch) * o.c_batch;
        UNROLLED for (i32 i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (i32 half = 0; half < 2; half++) {
                const i32 down = t.row * S::TILE_M + row + i * 16 + half * 8 + line_of<S::A_TURNED>(lane >> 2);
                if (down >= o.m) continue;
                UNROLLED for (i32 j = 0; j < COLUMN_BLOCKS; j++)
                    UNROLLED for (i32 e = 0; e < 2; e++) {
                        const i32 along = t.column * S::TILE_N + column + j * 8 + line_of<S::B_TURNED>((lane & 3) * 2 + e);
                        if (along < o.n) c[i64(down) * o.c_row + along] = sum[i][j][half * 2 + e];
                    }
            }
    }
    DEVICE void run()
    {
        const i32 tiles = g.row_clusters * g.column_clusters * g.batches;
        ROLLED for (i32 tile = i32(blockIdx.x); tile < tiles; tile += i32(gridDim.x)) {
            clear();
            ROLLED for (i32 step = 0; step < g.k_steps; step++) {
                Part part;
                read(part);
                multiply(part);
            }
            wait_for_launch_before();
            store(tile_at<S>(g, tile, 0));
        }
    }
};

template <class S>
DEVICE void run_doubles(const GemmTilesNumbers& g)
{
    static_assert(S::CLUSTER == 1 && S::TILE_M % 32 == 0 && S::TILE_N % 64 == 0, "blocks alone; a warp reads 16 lines at once");
    extern __shared__ unsigned char shared[];
    const TilesMemory<S> memory(shared_address(shared));
    const i32 group = __shfl_sync(~0u, i32(threadIdx.x >> 7), 0);
    i32 started = 0;
    let_next_launch();
    if (threadIdx.x == LOADER) {
        fetch_map(g.a), fetch_map(g.b);
        make_barriers(memory, 8);
        started = start_tiles<S>(g, memory);
    }
    __syncthreads();
    if (group == 2) {
        keep_registers<40>();
        if (threadIdx.x == LOADER) load_tiles<S>(g, memory, 0, started);
    } else {
        take_registers<232>();
        DoubleWarp<S>(g, memory).run();
    }
}

}  // namespace
}  // namespace ng::kernels
