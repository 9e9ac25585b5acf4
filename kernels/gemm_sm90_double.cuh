// c = a b of doubles on Hopper: a warp a loads by the copy engine, eight multiply from registers, all through one ring of stages.
//
//   grid, shared  as gemm_sm90_tiles.cuh has them; a stage is 16 steps of depth, 128 bytes of a's rows and b's columns, or 16 lines
//                 of each step side by side, swizzled
//   warp          an eighth of the tile, nearly square. The hardware multiplies 16 lines by 8: those are 16 columns of b, these 8 rows
//                 of a, so that a lane's sums are two neighbours in c; lane is 4 g + t
//   order         blocks of one operand are the outer loop, those of the other the inner one. An outer block is read while the one
//                 before it is multiplied, an inner one of the next stage as soon as it was multiplied last: where there are three or
//                 more of them no product waits
//   registers     are read as the hardware wants them, without copies: of columns that lie side by side two neighbours are its lines
//                 g and g + 8; of depth that lies side by side two steps of a row are a lane's next two
//   depth         which of a stage's steps is the hardware's s of lane t, and which of 8 rows its line g, is what meets no bank of shared
//                 memory twice, but where rows of a and depth of b lie side by side
#pragma once
#include "kernels/gemm_sm90_tiles.cuh"

namespace ng::kernels {
namespace {

struct OfF64 : OperandKind<double, 16, true> {};

// 16 columns of b by 8 rows of a: c[0] and c[2] are neighbours in a row.
DEVICE void product_doubles(double (&c)[4], const double (&b)[8], const double (&a)[4])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]), "d"(b[4]), "d"(b[5]), "d"(b[6]), "d"(b[7]), "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]));
}
DEVICE void read_double(u32 from, double& x) { asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from) : "memory"); }
DEVICE void read_doubles(u32 from, double& x, double& y) { asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "r"(from) : "memory"); }

// Bytes from an operand's tile to one of its elements: lines of 16 steps, or steps of 16 lines.
template <int IS_TURNED>
DEVICE u32 place_in_tile(i32 line, i32 step)
{
    const i32 row = IS_TURNED ? (line & ~15) + step : line, along = IS_TURNED ? line & 15 : step;
    return u32(row * 128 + (((along >> 1) ^ (row & 7)) << 4) + (along & 1) * 8);
}

// The step of depth that is the hardware's s of lane t, for both operands.
template <int B_TURNED>
DEVICE i32 depth_of(i32 s, i32 t)
{
    return B_TURNED ? 8 * (s / 2) + 2 * t + s % 2 : 4 * s + t;
}

// KEEPS below: places are in registers, else made of few at each read, since the sums leave no room. Made again by the compiler where
// there is room, they delayed reads and with them products.
template <int COUNT>
DEVICE void keep(u32 (&at)[COUNT]) { UNROLLED for (i32 i = 0; i < COUNT; i++) asm volatile("" : "+r"(at[i])); }

// Where a lane finds its parts of b's columns from `first`, a multiple of 16.
template <int B_TURNED, bool KEEPS>
struct LaneColumns {
    static constexpr i32 PLACES = B_TURNED || !KEEPS ? 2 : 8;
    u32 at[PLACES];

    DEVICE LaneColumns(i32 first, i32 g, i32 t)
    {
        UNROLLED for (i32 i = 0; i < PLACES; i++) at[i] = place_in_tile<B_TURNED>(first + 2 * g + (B_TURNED ? 0 : i % 2), depth_of<B_TURNED>(B_TURNED ? i : i / 2, t));
        if constexpr (KEEPS) keep(at);
    }
    // Of 16 columns, two neighbours a step.
    DEVICE void read(u32 tile, i32 block, double (&x)[8]) const
    {
        if constexpr (B_TURNED) {
            UNROLLED for (i32 s = 0; s < 4; s++) read_doubles(tile + at[s % 2] + u32(s / 2 * 1024 + block * 2048), x[2 * s], x[2 * s + 1]);
        } else {
            UNROLLED for (i32 i = 0; i < 8; i++) read_double(KEEPS ? tile + at[i % PLACES] + u32(block * 2048) : (tile + at[i % 2] + u32(block * 2048)) ^ u32(i / 2 * 32), x[i]);
        }
    }
};

// The same of a's rows from `first`, a multiple of 8.
template <int A_TURNED, int B_TURNED, bool KEEPS>
struct LaneRows {
    static constexpr bool IS_PAIRED = !A_TURNED && B_TURNED;         // two steps lie side by side
    static constexpr i32  PLACES = IS_PAIRED ? 2 : A_TURNED ? 8 : KEEPS ? 4 : 1;
    u32 at[PLACES];

    // The row of 8 that is the hardware's line g.
    DEVICE static i32 row_of(i32 g) { return A_TURNED ? g : B_TURNED ? (g & 1) * 4 + (g >> 1) : (g & 3) * 2 + (g >> 2); }

    DEVICE LaneRows(i32 first, i32 g, i32 t)
    {
        UNROLLED for (i32 i = 0; i < PLACES; i++) at[i] = place_in_tile<A_TURNED>(first + i / 4 * 8 + row_of(g), depth_of<B_TURNED>(IS_PAIRED ? 2 * i : i % 4, t));
        if constexpr (KEEPS) keep(at);
    }
    // Of 8 rows the lane's four steps.
    DEVICE void read(u32 tile, i32 block, double (&x)[4]) const
    {
        if constexpr (IS_PAIRED) {
            UNROLLED for (i32 i = 0; i < 2; i++) read_doubles(tile + at[i] + u32(block * 1024), x[2 * i], x[2 * i + 1]);
        } else if constexpr (A_TURNED) {
            UNROLLED for (i32 s = 0; s < 4; s++) read_double(tile + at[block % 2 * 4 + s] + u32(block / 2 * 2048), x[s]);
        } else {
            UNROLLED for (i32 s = 0; s < 4; s++) read_double(KEEPS ? tile + at[s % PLACES] + u32(block * 1024) : (tile + at[0] + u32(block * 1024)) ^ u32(s * 32), x[s]);
        }
    }
};

// Where a warp is in the block's tile.
template <class S>
struct WarpSpot {
    static constexpr i32 DOWN = S::TILE_M >= S::TILE_N ? 4 : 2, ROWS = S::TILE_M / DOWN, COLUMNS = S::TILE_N * DOWN / 8;
    static_assert(ROWS % 8 == 0 && COLUMNS % 16 == 0, "a warp multiplies blocks of 8 rows and 16 columns");
    i32 row, column, g, t;

    DEVICE WarpSpot()
    {
        const i32 warp = i32(threadIdx.x >> 5), lane = i32(threadIdx.x) & 31;
        row = warp % DOWN * ROWS, column = warp / DOWN * COLUMNS, g = lane >> 2, t = lane & 3;
    }
};

template <class S>
struct DoubleWarp {
    using Spot = WarpSpot<S>;
    static constexpr i32  ROW_BLOCKS = Spot::ROWS / 8, COLUMN_BLOCKS = Spot::COLUMNS / 16;
    static constexpr bool KEEPS = ROW_BLOCKS * COLUMN_BLOCKS <= 16;
    using Rows = LaneRows<S::A_TURNED, S::B_TURNED, KEEPS>;
    static constexpr bool ROWS_OUTSIDE = COLUMN_BLOCKS % 2 != 0;
    static constexpr i32  OUTSIDE = ROWS_OUTSIDE ? ROW_BLOCKS : COLUMN_BLOCKS, INSIDE = ROWS_OUTSIDE ? COLUMN_BLOCKS : ROW_BLOCKS;
    static_assert(OUTSIDE % 2 == 0, "outer blocks take turns in two sets of registers, stage after stage");

    const GemmTilesNumbers&  g;
    TilesMemory<S>           memory;
    Rows                     a_lines;
    LaneColumns<S::B_TURNED, KEEPS> b_lines;
    Turn<S::STAGES>          turn = {0, 0};
    double                   a[ROWS_OUTSIDE ? 2 : ROW_BLOCKS][4], b[ROWS_OUTSIDE ? COLUMN_BLOCKS : 2][8];
    double                   sum[ROW_BLOCKS][COLUMN_BLOCKS][4];

    DEVICE DoubleWarp(const GemmTilesNumbers& numbers, const TilesMemory<S>& shared, const Spot& spot)
        : g(numbers), memory(shared), a_lines(spot.row, spot.g, spot.t), b_lines(spot.column, spot.g, spot.t)
    {
    }
    DEVICE void clear()
    {
        UNROLLED for (i32 i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (i32 j = 0; j < COLUMN_BLOCKS; j++)
                UNROLLED for (i32 e = 0; e < 4; e++) sum[i][j][e] = 0;
    }
    DEVICE u32 stage_here() const { return memory.stages + turn.stage * S::STAGE; }
    DEVICE void read_outside(u32 stage, i32 x)
    {
        if constexpr (ROWS_OUTSIDE) a_lines.read(stage, x, a[x % 2]);
        else b_lines.read(stage + S::A_BYTES, x, b[x % 2]);
    }
    DEVICE void read_inside(u32 stage, i32 y)
    {
        if constexpr (ROWS_OUTSIDE) b_lines.read(stage + S::A_BYTES, y, b[y]);
        else a_lines.read(stage, y, a[y]);
    }
    DEVICE void multiply(i32 x, i32 y)
    {
        if constexpr (ROWS_OUTSIDE) product_doubles(sum[x][y], b[y], a[x % 2]);
        else product_doubles(sum[y][x], b[x % 2], a[y]);
    }
    // What the first stage of a tile multiplies at first.
    DEVICE void begin()
    {
        barrier_wait(memory.full(turn.stage), turn.phase);
        UNROLLED for (i32 y = 0; y < INSIDE; y++) read_inside(stage_here(), y);
        read_outside(stage_here(), 0);
    }
    // A stage, and what the next one multiplies at first, unless none follows.
    template <bool IS_LAST>
    DEVICE void run_stage()
    {
        const u32 here = stage_here(), empty = memory.empty(turn.stage);
        turn.advance();
        UNROLLED for (i32 x = 0; x < OUTSIDE - 1; x++) {
            read_outside(here, x + 1);
            UNROLLED for (i32 y = 0; y < INSIDE; y++) multiply(x, y);
        }
        async_fence();                   // all of this stage has been read
        __syncwarp();
        if ((threadIdx.x & 31) == 0) barrier_arrive(empty);
        if constexpr (!IS_LAST) {
            barrier_wait(memory.full(turn.stage), turn.phase);
            read_outside(stage_here(), 0);
        }
        UNROLLED for (i32 y = 0; y < INSIDE; y++) {
            multiply(OUTSIDE - 1, y);
            // One product later, when the one before has read its registers.
            if (!IS_LAST && y > 0) read_inside(stage_here(), y - 1);
        }
        if constexpr (!IS_LAST) read_inside(stage_here(), INSIDE - 1);
    }
    DEVICE void store(const TileSpot& tile) const
    {
        const Spot spot;
        const GemmOutput& o = g.output;
        double* const c = static_cast<double*>(o.c) + i64(tile.batch) * o.c_batch;
        const i32 first_row = tile.row * S::TILE_M + spot.row, first = tile.column * S::TILE_N + spot.column + spot.g * 2;
        UNROLLED for (i32 i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (i32 e = 0; e < 2; e++) {
                const i32 down = first_row + i * 8 + Rows::row_of(spot.t * 2 + e);
                if (down >= o.m) continue;
                UNROLLED for (i32 j = 0; j < COLUMN_BLOCKS; j++) {
                    const i32     along = first + j * 16;
                    double* const to = c + i64(down) * o.c_row + along;
                    if (o.store == STORE_FOURS && along + 1 < o.n) {
                        *reinterpret_cast<double2*>(to) = make_double2(sum[i][j][e], sum[i][j][e + 2]);
                        continue;
                    }
                    if (along < o.n) to[0] = sum[i][j][e];
                    if (along + 1 < o.n) to[1] = sum[i][j][e + 2];
                }
            }
    }
    DEVICE void run()
    {
        const i32 tiles = g.row_clusters * g.column_clusters * g.batches;
        ROLLED for (i32 tile = i32(blockIdx.x); tile < tiles; tile += i32(gridDim.x)) {
            clear();
            begin();
            ROLLED for (i32 step = 1; step < g.k_steps; step++) run_stage<false>();
            run_stage<true>();
            wait_for_launch_before();
            store(tile_at<S>(g, tile, 0));
        }
    }
};

template <class S>
DEVICE void run_doubles(const GemmTilesNumbers& g)
{
    static_assert(S::CLUSTER == 1, "blocks alone");
    extern __shared__ unsigned char shared[];
    const TilesMemory<S> memory(shared_address(shared));
    const i32 group = __shfl_sync(~0u, i32(threadIdx.x >> 7), 0);
    i32 started = 0;
    let_next_launch();
    if (threadIdx.x == S::LOADER) {
        fetch_map(g.a), fetch_map(g.b);
        make_barriers(memory, 8);
        started = start_tiles<S>(g, memory);
    }
    __syncthreads();
    if (group == 2) {
        keep_registers<40>();
        if (threadIdx.x == S::LOADER) load_tiles<S>(g, memory, 0, started);
    } else {
        take_registers<232>();
        DoubleWarp<S>(g, memory, WarpSpot<S>()).run();
    }
}

}  // namespace
}  // namespace ng::kernels
