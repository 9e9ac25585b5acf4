// Thin products of halves whose wide operand lies as something else: codes go to shared memory as they are, and become halves in registers.
//
//   c[m, n] = a[m, k] made(b[k, n])     one TILE_M x 128 tile of c a block, a warp 32 of its columns
//   shared    STAGES of a's tile of halves and b's tile of codes, 64 steps of depth each, of f32 32; then the sums
//   order     of sums as kernels/gemm_mma_tile.cuh has it, step by step of 16: the same bits as of an operand made before
#pragma once
#include "kernels/gemm_mma_tile.cuh"
#include "kernels/gemm_operand_codes.cuh"

namespace ng::kernels {
namespace {

// As OperandTile, of any depth whose rows are a multiple of 64 bytes where depth is near. Bytes are read as pairs of columns.
template <int BYTES_, int LINES_, int DEPTH_, Near NEAR_, int THREADS_>
struct DeepTile {
    static constexpr int  BYTES = BYTES_, LINES = LINES_, DEPTH = DEPTH_, THREADS = THREADS_, IN_CHUNK = CHUNK_BYTES / BYTES;
    static constexpr Near NEAR = NEAR_;
    static constexpr int  ROWS = NEAR == NEAR_DEPTH ? LINES : DEPTH, ROW_BYTES = (NEAR == NEAR_DEPTH ? DEPTH : LINES) * BYTES;
    static constexpr int  CHUNKS = ROW_BYTES / CHUNK_BYTES, SIZE = LINES * DEPTH * BYTES, EACH = (ROWS * CHUNKS + THREADS - 1) / THREADS;
    static_assert((ROWS * CHUNKS % THREADS == 0 || EACH == 1) && THREADS % CHUNKS == 0, "threads copy as many chunks each, all in one column, or some copy one");

    DEVICE static u32 flip(u32 row)
    {
        if constexpr (NEAR == NEAR_LINE && BYTES == 4) return CHUNKS >= 8 ? (row & 3) << 1 : (row >> 1 & 1) << 1;
        return CHUNKS >= 8 ? row & 7 : CHUNKS == 4 ? row >> 1 & 3 : row >> 2 & 1;
    }
    DEVICE static u32 place(u32 row, u32 chunk) { return row * ROW_BYTES + (chunk ^ flip(row)) * CHUNK_BYTES; }
    DEVICE static u32 element(u32 row, u32 at) { return place(row, at * BYTES / CHUNK_BYTES) + at * BYTES % CHUNK_BYTES; }
};

// A reader's next tile; where all of it is there, by nothing but addresses.
template <class TILE>
DEVICE void copy_tile(AsyncReader<TILE>& r, u32 to, i64 left, bool has_all_lines)
{
    if (!has_all_lines || left < TILE::DEPTH) return r.copy(to, left);
    if (TILE::ROWS < r.APART && r.row >= TILE::ROWS) return;
    const char* from = r.from;
    UNROLLED for (int c = 0; c < TILE::EACH; c++, from += r.apart) copy_async<CHUNK_BYTES>(to + TILE::place(u32(r.row + c * r.APART), u32(r.chunk)), from, true);
    r.from += r.step;
}

// ---- launches ------------------------------------------------------------------------------------------------------------

// Those that begin before the one ahead has ended wait here for what it wrote.
DEVICE void await_kernels_ahead()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
DEVICE void admit_kernels_behind()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A launch of the cluster's blocks has each a part of the depth of one tile, sums of which meet here: rank after rank, as parts
// that come from the workspace are added.
#if __CUDA_ARCH__ >= 900
DEVICE u32 cluster_rank()
{
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
DEVICE void meet_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE void load_four_of(u32 rank, u32 at, float (&x)[4])
{
    asm volatile("{.reg .u32 there; mapa.shared::cluster.u32 there, %4, %5; ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [there];}"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3]) : "r"(at), "r"(rank) : "memory");
}
#endif
// What a block works on: splits of a tile are neighbours where they are a cluster.
template <int TILE_M, int TILE_N>
DEVICE MmaWork made_work(const MmaNumbers& n)
{
#if __CUDA_ARCH__ >= 900
    if (n.splits > 1 && !n.partial) {
        const u32 tiles = n.row_tiles * n.column_tiles, all = blockIdx.x / u32(n.splits), tile = all % tiles;
        MmaWork   w;
        w.batch = all / tiles, w.split = blockIdx.x % u32(n.splits);
        w.row = i64(tile % n.row_tiles) * TILE_M, w.column = i64(tile / n.row_tiles) * TILE_N;
        w.first = w.split * n.split_depth;
        w.end = n.k - w.first < n.split_depth ? n.k : w.first + n.split_depth;
        return w;
    }
#endif
    return mma_work<TILE_M, TILE_N>(n);
}
// Each block finishes a share of the tile.
template <int TILE_M, int TILE_N, int THREADS>
DEVICE void store_met(const MmaNumbers& n, const MmaWork& w, u32 base)
{
#if __CUDA_ARCH__ >= 900
    constexpr u32 IN_ROW = TILE_N / MMA_FOUR, FOURS = TILE_M * IN_ROW;
    const u32     share = FOURS / u32(n.splits), begin = cluster_rank() * share;
    meet_cluster();
    ROLLED for (u32 i = begin + threadIdx.x; i < begin + share; i += THREADS) {
        const u32 tile_row = i / IN_ROW, tile_column = i % IN_ROW * MMA_FOUR;
        const i64 row = w.row + tile_row, column = w.column + tile_column;
        if (row >= n.m || column >= n.n) continue;
        float part[MOST_MET][MMA_FOUR], v[MMA_FOUR] = {};
        UNROLLED for (int s = 0; s < MOST_MET; s++)
            if (s < n.splits) load_four_of(u32(s), base + staged_place<float, TILE_N>(tile_row, tile_column), part[s]);
        UNROLLED for (int s = 0; s < MOST_MET; s++)
            UNROLLED for (int j = 0; j < MMA_FOUR; j++)
                if (s < n.splits) v[j] += part[s][j];
        finish_alone(n, w.batch, row, column, v);                      // folds want one part of depth
    }
    meet_cluster();                      // until nobody reads here
#endif
}

// ---- a block's sums --------------------------------------------------------------------------------------------------------

template <class KIND, int TILE_M_, int STAGES_, Near A_NEAR, Near B_NEAR>
struct MadeShape {
    using Kind = KIND;
    using Sum = float;
    static constexpr int TILE_M = TILE_M_, TILE_N = OPERAND_COLUMNS, THREADS = 32 * OPERAND_WARPS, STAGES = STAGES_, DEPTH = operand_depth(RAW_BYTES);
    using A = DeepTile<2, TILE_M, DEPTH, A_NEAR, THREADS>;
    using B = DeepTile<RAW_BYTES, TILE_N, DEPTH, B_NEAR, THREADS>;
    static constexpr int WARP_N = TILE_N / OPERAND_WARPS, ROW_BLOCKS = TILE_M / 16, COLUMN_BLOCKS = WARP_N / 8, STAGE_BYTES = A::SIZE + B::SIZE;
    // Pairs of bytes that are read at once: a block of 8 columns is every other one of 16.
    static constexpr bool HAS_TWINS = RAW_BYTES == 1 && B_NEAR == NEAR_LINE;
    static constexpr int  AHEAD = TILE_M == 16 ? 2 : 1;      // steps of depth in registers before they are multiplied
};

// Codes of 16 columns and 16 steps of depth from shared memory: the lane's pairs of both blocks of 8 columns, 8 steps after 8.
template <class B>
DEVICE void read_pairs(CodePair (&c)[4], u32 base, u32 first_line, u32 first_depth)
{
    const u32 lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    u32       words[4];
    if constexpr (RAW_BYTES == 2) {
        const u32 half = lane / 16, part = lane / 8 % 2;
        if constexpr (B::NEAR == NEAR_DEPTH) load_blocks(words, base + B::place(first_line + lane % 8 + half * 8, first_depth / 8 + part));
        else load_turned_blocks(words, base + B::place(first_depth + lane % 8 + part * 8, first_line / 8 + half));
        UNROLLED for (int i = 0; i < 4; i++) c[i].word[0] = words[i];
    } else if constexpr (RAW_BYTES == 4) {
        UNROLLED for (u32 i = 0; i < 4; i++)
            UNROLLED for (u32 e = 0; e < 2; e++) {
                const u32 line = first_line + i / 2 * 8 + g, depth = first_depth + i % 2 * 8 + 2 * t + e;
                c[i].word[e] = load_word(base + (B::NEAR == NEAR_DEPTH ? B::element(line, depth) : B::element(depth, line)));
            }
    } else {
        UNROLLED for (u32 i = 0; i < 4; i++) {
            c[i].word[0] = two_apart(load_word(base + B::element(first_line + i / 2 * 8 + g, first_depth + i % 2 * 8 + t / 2 * 4)), t % 2);
        }
    }
}
// The same of bytes whose columns are near, 32 columns: blocks are the even and the odd ones of 16, and again.
template <class B>
DEVICE void read_twins(CodePair (&c)[8], u32 base, u32 first_line, u32 first_depth)
{
    const u32 lane = threadIdx.x % 32;
    u32       words[4];
    load_turned_blocks(words, base + B::place(first_depth + lane % 16, first_line / 16 + lane / 16));
    UNROLLED for (int i = 0; i < 4; i++) {
        const int block = i / 2 * 2, part = i % 2;
        c[2 * block + part].word[0] = words[i] & 0x00ff00ff, c[2 * block + 2 + part].word[0] = words[i] >> 8 & 0x00ff00ff;
    }
}

template <class SHAPE>
struct MadeSums {
    using A = typename SHAPE::A;
    using B = typename SHAPE::B;
    using Kind = typename SHAPE::Kind;
    static constexpr int ROW_BLOCKS = SHAPE::ROW_BLOCKS, COLUMN_BLOCKS = SHAPE::COLUMN_BLOCKS;
    float            sum[ROW_BLOCKS][COLUMN_BLOCKS][4];
    u32              warp_column, a_place[ROW_BLOCKS];
    operand::Numbers numbers;
    operand::Line    lines[COLUMN_BLOCKS];

    DEVICE MadeSums(const MmaOperandNumbers& n, i64 first_column)
    {
        warp_column = threadIdx.x / 32 * SHAPE::WARP_N;
        numbers = struct_in<operand::Numbers>(n.text.numbers);
        UNROLLED for (int i = 0; i < ROW_BLOCKS; i++) a_place[i] = block_place<A, SIDE_A>(16 * u32(i));
        UNROLLED for (int j = 0; j < COLUMN_BLOCKS; j++) {
            const u32 g = threadIdx.x % 32 / 4, column = warp_column + (SHAPE::HAS_TWINS ? u32(j) / 2 * 16 + 2 * g + u32(j) % 2 : u32(j) * 8 + g);
            const i64 last = n.product.n - 1, at = first_column + column;
            operand::fetch_line(n.text, numbers, at < last ? at : last, lines[j]);
        }
        UNROLLED for (int i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (int j = 0; j < COLUMN_BLOCKS; j++)
                UNROLLED for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    }
    DEVICE void read(u32 base, int step, u32 (&a)[ROW_BLOCKS][4], CodePair (&c)[2 * COLUMN_BLOCKS]) const
    {
        if constexpr (SHAPE::HAS_TWINS) {
            read_twins<B>(c, base + A::SIZE, warp_column, 16 * u32(step));
        } else {
            UNROLLED for (int j = 0; j < COLUMN_BLOCKS; j += 2) {
                CodePair two[4];
                read_pairs<B>(two, base + A::SIZE, warp_column + 8 * u32(j), 16 * u32(step));
                UNROLLED for (int e = 0; e < 4; e++) c[2 * j + e] = two[e];
            }
        }
        UNROLLED for (int i = 0; i < ROW_BLOCKS; i++) read_block<A, SIDE_A>(a[i], base + a_place[i], step);
    }
    // there: steps of depth from this one on; a text may make anything of the zeros behind them.
    template <bool IS_LAST>
    DEVICE void add(const u32 (&a)[ROW_BLOCKS][4], const CodePair (&c)[2 * COLUMN_BLOCKS], i32 there)
    {
        UNROLLED for (int j = 0; j < COLUMN_BLOCKS; j++) {
            u32 b[2];
            UNROLLED for (int part = 0; part < 2; part++) {
                b[part] = made_pair(numbers, lines[j], c[2 * j + part]);
                if constexpr (IS_LAST && !operand::IS_CAST) {
                    const i32 left = there - (8 * part + 2 * i32(threadIdx.x % 4));
                    b[part] = left <= 0 ? 0 : left == 1 ? b[part] & 0xffff : b[part];
                }
            }
            UNROLLED for (int i = 0; i < ROW_BLOCKS; i++) Kind::add(sum[i][j], a[i], b);
        }
    }
    // Codes are read some steps before they are made something of: a warp waits for shared memory once, not in each step, and
    // does something else then.
    template <bool IS_LAST, class Meanwhile>
    DEVICE void add_stage(u32 base, i32 left, const Meanwhile& meanwhile)
    {
        constexpr int STEPS = SHAPE::DEPTH / 16, AHEAD = SHAPE::AHEAD < STEPS ? SHAPE::AHEAD : STEPS;
        u32      a[STEPS][ROW_BLOCKS][4];
        CodePair c[STEPS][2 * COLUMN_BLOCKS];
        UNROLLED for (int step = 0; step < STEPS + AHEAD; step++) {
            if (step < STEPS) read(base, step, a[step < STEPS ? step : 0], c[step < STEPS ? step : 0]);
            if (step == AHEAD - 1) meanwhile();
            if (step >= AHEAD) add<IS_LAST>(a[step - AHEAD < 0 ? 0 : step - AHEAD], c[step - AHEAD < 0 ? 0 : step - AHEAD], left - 16 * (step - AHEAD));
        }
    }
    DEVICE void stage(u32 base) const
    {
        const u32 g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        UNROLLED for (int i = 0; i < ROW_BLOCKS; i++)
            UNROLLED for (int j = 0; j < COLUMN_BLOCKS; j += 2)
                UNROLLED for (u32 below = 0; below < 2; below++) {
                    const float *const x = sum[i][j] + 2 * below, *const y = sum[i][j + 1] + 2 * below;
                    const u32 row = 16 * u32(i) + g + 8 * below, column = warp_column + 8 * u32(j);
                    if constexpr (SHAPE::HAS_TWINS) {
                        stage_pair<SHAPE::TILE_N>(base, row, column + 4 * t, x[0], y[0]);
                        stage_pair<SHAPE::TILE_N>(base, row, column + 4 * t + 2, x[1], y[1]);
                    } else {
                        stage_pair<SHAPE::TILE_N>(base, row, column + 2 * t, x[0], x[1]);
                        stage_pair<SHAPE::TILE_N>(base, row, column + 8 + 2 * t, y[0], y[1]);
                    }
                }
    }
};

template <class SHAPE>
DEVICE void made_tile(const MmaOperandNumbers& numbers)
{
    constexpr int     DEPTH = SHAPE::DEPTH, STAGES = SHAPE::STAGES, A_SIZE = SHAPE::A::SIZE;
    const MmaNumbers& n = numbers.product;
    const MmaWork     w = made_work<SHAPE::TILE_M, SHAPE::TILE_N>(n);
    AsyncReader<typename SHAPE::A> a(n.a, {w.batch, w.row, w.first, n.m - w.row});
    AsyncReader<typename SHAPE::B> b(n.b, {w.batch, w.column, w.first, n.n - w.column});
    const bool has_rows = n.m - w.row >= SHAPE::TILE_M, has_columns = n.n - w.column >= SHAPE::TILE_N;
    const auto copy = [&](u32 to, i64 there) { copy_tile(a, to, there, has_rows), copy_tile(b, to + A_SIZE, there, has_columns); };
    admit_kernels_behind();
    await_kernels_ahead();
    const u32 base = shared_begin(), end = base + STAGES * SHAPE::STAGE_BYTES;
    i64       left = w.end - w.first, ahead = left;
    ROLLED for (int s = 0; s < STAGES - 1; s++, ahead -= DEPTH) {
        const u32 at = base + u32(s) * SHAPE::STAGE_BYTES;
        if (ahead > 0) copy(at, ahead);
        close_group();
    }
    const i64 rest_below = rests_below(a, b, left);
    MadeSums<SHAPE> sums(numbers, w.column);
    u32 read = base, write = base + (STAGES - 1) * SHAPE::STAGE_BYTES;
    // Loops as sum_in_flight() has them.
    ROLLED while (left > 0) {
        wait_groups<STAGES - 2>();
        if (left < rest_below) copy_rests<STAGES, A_SIZE>(a, b, read, left, ahead, DEPTH);
        ROLLED do {
            wait_groups<STAGES - 2>();
            __syncthreads();
            const auto copy_next = [&] {
                if (ahead > 0) copy(write, ahead);
                close_group();
            };
            if (operand::IS_CAST || left >= DEPTH) sums.template add_stage<false>(read, DEPTH, copy_next);
            else sums.template add_stage<true>(read, i32(left), copy_next);
            left -= DEPTH, ahead -= DEPTH;
            read = read + SHAPE::STAGE_BYTES == end ? base : read + SHAPE::STAGE_BYTES;
            write = write + SHAPE::STAGE_BYTES == end ? base : write + SHAPE::STAGE_BYTES;
        } while (left >= rest_below);
    }
    wait_groups<0>();
    __syncthreads();
    sums.stage(shared_begin());
    if (n.splits > 1 && !n.partial) return store_met<SHAPE::TILE_M, SHAPE::TILE_N, SHAPE::THREADS>(n, w, shared_begin());
    __syncthreads();
    store_tile<float, SHAPE::TILE_M, SHAPE::TILE_N, SHAPE::THREADS>(n, w, shared_begin());
}

DEVICE void made_sum(const MmaNumbers& n)
{
    await_kernels_ahead();
    mma_sum<float>(n);
}

}  // namespace
}  // namespace ng::kernels
