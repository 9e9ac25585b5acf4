// Products with up to 16 rows on the tensor cores, b read once: c[m, n] = a[m, k] b[k, n] and an epilogue, for b whose depth is near.
//
//   b         16 bytes of a column at a time into registers, FEW_SLOTS of them on their way for each lane, and as many words of the hardware's
//             blocks of 8 columns: which step of depth a word is of does not matter to a sum, as long as a's is of the same
//   a         the same words of its rows, 8 lanes' of them: from memory where they lie as b's do, else from [ROWS][PIECE] in shared memory
//   warp      8 columns; `across` warps lie side by side, the others behind them in depth
// A round is the depth that all of a block's warps have on their way. Sums of a warp are two chains of the hardware's, of halves of 16 bytes;
// warps add up through shared memory, in one order. What is no whole 16 bytes is read by elements, behind all others.
#pragma once
#include "kernels/gemm_mma_vector.cuh"

namespace ng::kernels {
namespace {

template <class KIND, int ROWS_>
struct FewShape {
    using Kind = KIND;
    using Sum = typename KIND::Sum;
    using Element = typename UnsignedOf<KIND::BYTES>::Type;
    static constexpr int ROWS = ROWS_, HALVES = ROWS / 8, WARPS = VECTOR_THREADS / 32, COLUMNS = FEW_COLUMNS, SLOTS = FEW_SLOTS;
    static constexpr int IN_WORD = 4 / KIND::BYTES, IN_CHUNK = CHUNK_BYTES / KIND::BYTES, IN_SLOT = 4 * IN_CHUNK;     // of a word, a lane, a warp
    static constexpr int PIECE = few_piece(ROWS, KIND::BYTES);
    static_assert(ROWS % 8 == 0 && HALVES <= 2, "a block of the hardware has 16 rows");

    // Rows lie so far apart that neighbours' chunks are of other banks.
    DEVICE static u32 place(u32 row, u32 step) { return shared_begin() + row * u32(PIECE * KIND::BYTES + FEW_GAP) + step * KIND::BYTES; }
};

template <class SHAPE>
DEVICE VectorWork few_work(const MmaNumbers& n)
{
    const u32  part = blockIdx.x / n.column_tiles, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    VectorWork w;
    w.batch = part % u32(n.batches), w.split = part / u32(n.batches), w.first = w.split * n.split_depth;
    w.end = n.k - w.first < n.split_depth ? n.k : w.first + n.split_depth;
    w.whole_end = n.b.is_wide ? w.end - (w.end - w.first) % SHAPE::IN_CHUNK : w.first;
    w.group = i32(warp / n.across), w.groups = SHAPE::WARPS / i32(n.across);
    w.round = w.groups * SHAPE::SLOTS * SHAPE::IN_SLOT, w.offset = w.group * SHAPE::SLOTS * SHAPE::IN_SLOT + i32(lane % 4) * SHAPE::IN_CHUNK;
    w.block_columns = i32(n.across) * SHAPE::COLUMNS, w.block_column = i32(warp % n.across) * SHAPE::COLUMNS;
    w.column = i64(blockIdx.x % n.column_tiles) * w.block_columns + w.block_column + lane / 4;
    w.is_whole = w.column < n.n;
    return w;
}

// A piece of a as it lies, up to `whole_end`, word by word. Rows that lie side by side are a warp's, else words of a row are. depth_left: to `whole_end`.
template <class SHAPE>
DEVICE void stage_few(const MmaNumbers& n, const VectorWork& w, i64 depth_left)
{
    using Element = typename SHAPE::Element;
    constexpr i32 IN_WORD = SHAPE::IN_WORD, AT_ONCE = 4;
    const Element* const from = static_cast<const Element*>(n.a.data) + w.batch * n.a.batch + (w.whole_end - depth_left) * n.a.depth;
    const i32 words = clamped(depth_left, SHAPE::PIECE) / IN_WORD, rows = i32(n.m);                // whole chunks are whole words
    const i32 beside = !n.a.is_turned ? 1 : rows <= 1 ? 1 : rows <= 2 ? 2 : rows <= 4 ? 4 : rows <= 8 ? 8 : 16, step = VECTOR_THREADS / beside;
    ROLLED for (i32 row = i32(threadIdx.x) % beside; row < rows; row += beside)
        ROLLED for (i32 first = i32(threadIdx.x) / beside; first < words; first += AT_ONCE * step) {
            Element raw[AT_ONCE][IN_WORD];
            UNROLLED for (i32 j = 0; j < AT_ONCE; j++)
                UNROLLED for (i32 e = 0; e < IN_WORD; e++) {
                    const i32 word = first + j * step;
                    raw[j][e] = word < words ? from[row * n.a.line + i64(word * IN_WORD + e) * n.a.depth] : Element(0);
                }
            UNROLLED for (i32 j = 0; j < AT_ONCE; j++) {
                const i32 word = first + j * step;
                u32       x = 0;
                UNROLLED for (i32 e = 0; e < IN_WORD; e++) x |= u32(raw[j][e]) << 8 * SHAPE::Kind::BYTES * e;
                if (word < words) store_word(SHAPE::place(u32(row), u32(word * IN_WORD)), x);
            }
        }
}

template <class SHAPE>
struct FewSums {
    using Kind = typename SHAPE::Kind;
    using Sum = typename SHAPE::Sum;
    using Element = typename SHAPE::Element;
    static constexpr int HALVES = SHAPE::HALVES, SLOTS = SHAPE::SLOTS, BYTES = Kind::BYTES;
    Sum sum[2][4];

    DEVICE FewSums()
    {
        UNROLLED for (int i = 0; i < 2; i++)
            UNROLLED for (int e = 0; e < 4; e++) sum[i][e] = 0;
    }
    // 16 bytes of depth of each lane.
    DEVICE void add(const u32 (&a)[HALVES][4], const u32 (&b)[4])
    {
        UNROLLED for (int i = 0; i < 2; i++) {
            const u32 of_a[4] = {a[0][2 * i], HALVES > 1 ? a[HALVES - 1][2 * i] : 0, a[0][2 * i + 1], HALVES > 1 ? a[HALVES - 1][2 * i + 1] : 0};
            const u32 of_b[2] = {b[2 * i], b[2 * i + 1]};
            Kind::add(sum[i], of_a, of_b);
        }
    }
    // Rows that are not there are the first one again: what comes of them goes nowhere.
    DEVICE static i32 row_of(const MmaNumbers& n, int half)
    {
        const i32 row = 8 * half + i32(threadIdx.x % 32 / 4);
        return row < n.m ? row : 0;
    }
    // All whole chunks. All threads of the block go as many rounds, so that they meet where a piece of a ends, in whose place the next one comes.
    template <bool IS_STAGED>
    DEVICE void add_chunks(const MmaNumbers& n, const VectorWork& w)
    {
        const char* from_b = static_cast<const char*>(n.b.data) + (w.batch * n.b.batch + w.column * n.b.line + w.first + w.offset) * BYTES;
        const char* from_a[HALVES];
        UNROLLED for (int h = 0; h < HALVES; h++) from_a[h] = static_cast<const char*>(n.a.data) + (w.batch * n.a.batch + row_of(n, h) * n.a.line + w.first + w.offset) * BYTES;
        i64 left = w.whole_end - w.first - w.offset;     // of the lane's depth
        u32 a[SLOTS][HALVES][4], b[SLOTS][4];
        const auto ask = [&](int s, i32 ahead) {
            const i32  at = ahead + s * SHAPE::IN_SLOT;
            const bool is_there = at < left;
            load_stream(b[s], from_b + at * BYTES, is_there && w.is_whole);
            UNROLLED for (int h = 0; !IS_STAGED && h < HALVES; h++) load_again(a[s][h], from_a[h] + at * BYTES, is_there);
        };
        UNROLLED for (int s = 0; s < SLOTS; s++) ask(s, 0);
        i32 step = 0;                                    // of the piece
        ROLLED for (i64 block_left = w.whole_end - w.first; block_left > 0; block_left -= w.round, step += w.round) {
            if (IS_STAGED && step % SHAPE::PIECE == 0) {
                __syncthreads();
                stage_few<SHAPE>(n, w, block_left);
                __syncthreads();
                step = 0;
            }
            UNROLLED for (int s = 0; s < SLOTS; s++) {
                UNROLLED for (int h = 0; IS_STAGED && h < HALVES; h++) {
                    UNROLLED for (int e = 0; e < 4; e++) a[s][h][e] = 0;
                    if (s * SHAPE::IN_SLOT < left) load_four(SHAPE::place(u32(row_of(n, h)), u32(step + w.offset + s * SHAPE::IN_SLOT)), a[s][h]);
                }
                add(a[s], b[s]);
                ask(s, w.round);
            }
            from_b += w.round * BYTES, left -= w.round;
            UNROLLED for (int h = 0; h < HALVES; h++) from_a[h] += w.round * BYTES;
        }
    }
    // 16 bytes, element by element, of which `count` are there.
    DEVICE static void gather(u32 (&x)[4], const void* data, i64 at, i64 depth, i64 count)
    {
        const Element* const from = static_cast<const Element*>(data) + at;
        UNROLLED for (int w = 0; w < 4; w++) {
            x[w] = 0;
            UNROLLED for (int e = 0; e < SHAPE::IN_WORD; e++)
                if (w * SHAPE::IN_WORD + e < count) x[w] |= u32(from[(w * SHAPE::IN_WORD + e) * depth]) << 8 * BYTES * e;
        }
    }
    DEVICE void add_rest(const MmaNumbers& n, const VectorWork& w)
    {
        ROLLED for (i64 begin = w.whole_end; begin < w.end; begin += w.groups * SHAPE::IN_SLOT) {
            const i64 depth = begin + w.group * SHAPE::IN_SLOT + i64(threadIdx.x % 4) * SHAPE::IN_CHUNK, count = w.end - depth;
            u32 a[HALVES][4], b[4];
            gather(b, n.b.data, w.batch * n.b.batch + w.column * n.b.line + depth * n.b.depth, n.b.depth, w.is_whole ? count : 0);
            UNROLLED for (int h = 0; h < HALVES; h++) gather(a[h], n.a.data, w.batch * n.a.batch + row_of(n, h) * n.a.line + depth * n.a.depth, n.a.depth, count);
            add(a, b);
        }
    }
    DEVICE void put(const VectorWork& w) const
    {
        const i32 g = i32(threadIdx.x % 32 / 4), column = w.block_column + 2 * i32(threadIdx.x % 4);
        UNROLLED for (int h = 0; h < HALVES; h++)
            store_two(joined_place<SHAPE>(w, w.group, 8 * h + g, column), word_of(two_sums(sum[0][2 * h], sum[1][2 * h])), word_of(two_sums(sum[0][2 * h + 1], sum[1][2 * h + 1])));
    }
};

template <class SHAPE>
DEVICE void few_product(const MmaNumbers& n)
{
    const VectorWork w = few_work<SHAPE>(n);
    FewSums<SHAPE>   sums;
    if (n.a.is_wide && !n.a.is_turned) sums.template add_chunks<false>(n, w);
    else sums.template add_chunks<true>(n, w);
    sums.add_rest(n, w);
    __syncthreads();
    sums.put(w);
    __syncthreads();
    store_joined<SHAPE>(n, w);
}

// The kernels of VECTORS.
template <class KIND, int ROWS, Near NEAR>
DEVICE void few_rows(const MmaNumbers& n)
{
    let_next_launch();
    wait_for_launch_before();
    if constexpr (ROWS >= FEW_ROWS) few_product<FewShape<KIND, ROWS>>(n);
    else vector_product<VectorShape<KIND, ROWS, NEAR>>(n);
}

}  // namespace
}  // namespace ng::kernels
