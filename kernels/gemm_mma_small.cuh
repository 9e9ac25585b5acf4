// Matrix products of small tiles, of which there are many: c[batch, m, n] = a b and an epilogue, a tile a warp, which reads its operands where they lie.
//
//   warp      lanes' lines of an operand are neighbours: as many rows as a lane has in ROW_BLOCKS blocks of 16 x 8, a column of each of COLUMN_BLOCKS
//   depth     8 or 16 bytes of each of its lines a lane at once, whatever lies near; lanes of tensor cores' products have parts of the depth, of plain ones all
//   shared    of each warp, the sums of some rows at a time, on their way to rows of four neighbours
// Nobody waits for another warp; what several read is in the first cache. Each sum is the same bits each time, of f32 one chain of multiply-adds in the order of k.
#pragma once
#include "kernels/gemm_mma_tile.cuh"

namespace ng::kernels {
namespace {

// A lane's part of an operand: elements of LINES neighbouring lines and WORDS words of depth, as they are multiplied.
template <class WORD, int BYTES, int LINES_, int WORDS_>
struct SmallReader {
    static constexpr int LINES = LINES_, WORDS = WORDS_, IN_WORD = int(sizeof(WORD)) / BYTES, PIECE = WORDS * IN_WORD;
    using Element = typename UnsignedOf<BYTES>::Type;

    const char* from;                    // the first line's element of the next piece of depth
    i64         line_bytes, depth_bytes;
    i32         lines, reads;            // lines: that are there
    WORD        x[LINES][WORDS];         // of lines that are not there anything: nobody stores what comes of it

    // A lane without lines is at the operand's first.
    DEVICE SmallReader(const MmaOperand& o, i64 batch, i64 first, i64 end, i32 depth) : line_bytes(o.line * BYTES), depth_bytes(o.depth * BYTES), lines(clamped(end - first, LINES)), reads(o.reads)
    {
        from = static_cast<const char*>(o.data) + (batch * o.batch + (lines > 0 ? first : 0) * o.line + depth * o.depth) * BYTES;
        UNROLLED for (int i = 0; i < LINES; i++)
            UNROLLED for (int w = 0; w < WORDS; w++) x[i][w] = WORD(0);
    }
    template <class T>
    DEVICE static T load(const char* at) { return *reinterpret_cast<const T*>(at); }
    // Elements are the word's from its lowest bits on.
    DEVICE static WORD of_bits(u64 bits)
    {
        if constexpr (!IS_REAL<WORD>) return WORD(bits);
        else if constexpr (sizeof(WORD) == 8) return __longlong_as_double(i64(bits));
        else return __uint_as_float(u32(bits));
    }
    template <class At>
    DEVICE void put(const At& at)
    {
        UNROLLED for (int i = 0; i < LINES; i++)
            UNROLLED for (int w = 0; w < WORDS; w++) {
                u64 bits = at(i, w * IN_WORD);
                UNROLLED for (int e = 1; e < IN_WORD; e++) bits |= u64(u32(at(i, w * IN_WORD + e)) << (8 * BYTES * e & 31));
                x[i][w] = of_bits(bits);
            }
    }
    // READS: how, -1: as `reads` says. `left` steps of depth are there, or, of whole pieces, all; what is not is zeros.
    template <int READS, bool IS_WHOLE>
    DEVICE void read(i32 left)
    {
        const i64  line = unknown(line_bytes), step = unknown(depth_bytes);
        const i32  how = READS < 0 ? reads : READS;
        const auto is_there = [&](int p) { return IS_WHOLE || p < left; };
        if (how == READ_DEPTH) {
            UNROLLED for (int i = 0; i < LINES; i++) {
                Neighbours<WORD, WORDS> piece = {};
                if (IS_WHOLE) UNROLLED for (int w = 0; w < WORDS; w++) piece.e[w] = x[i][w];
                if (i < lines && is_there(0)) piece = load<Neighbours<WORD, WORDS>>(from + i * line);
                UNROLLED for (int w = 0; w < WORDS; w++) x[i][w] = piece.e[w];
            }
        } else if (how == READ_LINES) {
            Neighbours<Element, LINES> steps[PIECE];
            UNROLLED for (int p = 0; p < PIECE; p++) {
                if (!IS_WHOLE) steps[p] = {};
                if (is_there(p)) steps[p] = load<Neighbours<Element, LINES>>(from + p * step);
            }
            put([&](int i, int p) { return steps[p].e[i]; });
        } else if (IN_WORD > 1 && how == READ_WORDS) {
            UNROLLED for (int i = 0; i < LINES; i++)
                UNROLLED for (int w = 0; w < WORDS; w++) x[i][w] = i < lines && is_there(w * IN_WORD) ? load<WORD>(from + i * line + w * int(sizeof(WORD))) : WORD(0);
        } else {
            put([&](int i, int p) { return i < lines && is_there(p) ? load<Element>(from + i * line + p * step) : Element(0); });
        }
    }
    DEVICE void advance(i32 depth) { from += depth * depth_bytes; }
    // To tf32.
    DEVICE void round()
    {
        UNROLLED for (int i = 0; i < LINES; i++)
            UNROLLED for (int w = 0; w < WORDS; w++) x[i][w] = near_tf32(x[i][w]);
    }
};

// All of the depth, `step` at once, of which a lane has pieces from `at` on: reads both operands, then multiplies. Loops of their own are where both are read by vectors.
template <int A_READS, int B_READS, class A, class B, class Multiply>
DEVICE void add_wholes(A& a, B& b, i64& left, i32 step, const Multiply& multiply)
{
    ROLLED for (; left >= step; left -= step) {
        a.template read<A_READS, true>(A::PIECE), b.template read<B_READS, true>(B::PIECE);
        a.advance(step), b.advance(step);
        multiply();
    }
}
template <class A, class B, class Multiply>
DEVICE void add_depth(A& a, B& b, i64 depth, i32 step, i32 at, const Multiply& multiply)
{
    i64 left = depth;
    if (a.reads == READ_DEPTH && b.reads == READ_DEPTH) add_wholes<READ_DEPTH, READ_DEPTH>(a, b, left, step, multiply);
    else if (a.reads == READ_DEPTH && b.reads == READ_LINES) add_wholes<READ_DEPTH, READ_LINES>(a, b, left, step, multiply);
    else if (a.reads == READ_LINES && b.reads == READ_LINES) add_wholes<READ_LINES, READ_LINES>(a, b, left, step, multiply);
    else add_wholes<-1, -1>(a, b, left, step, multiply);
    if (left == 0) return;
    const i32 here = clamped(left - at, A::PIECE);
    a.template read<-1, false>(here), b.template read<-1, false>(here);
    multiply();
}

// The tile of a warp; those behind the last have none, and go along.
struct SmallWork {
    i64  batch, row, column;
    bool is_there;
};
template <class SHAPE>
DEVICE SmallWork small_work(const MmaNumbers& n)
{
    const u64 work = u64(blockIdx.x) * SHAPE::WARPS + threadIdx.x / 32, tiles = u64(n.row_tiles) * n.column_tiles;
    u64       batch, tile;
    divide(work, tiles, batch, tile);
    SmallWork w;
    w.is_there = batch < u64(n.batches), w.batch = w.is_there ? i64(batch) : 0;
    w.row = i64(u32(tile) / n.column_tiles) * SHAPE::TILE_M, w.column = i64(u32(tile) % n.column_tiles) * SHAPE::TILE_N;
    return w;
}

// Whether lanes store what they have of c's rows themselves: where these are of fours that lie in one piece each, and neighbours' parts fill sectors of the cache.
template <int COUNT, class SUM>
DEVICE bool stores_own(const MmaNumbers& n) { return n.has_fours && (sizeof(SUM) == 8 || COUNT * bytes_of(result_type(n)) <= CHUNK_BYTES); }
template <int COUNT, class SUM>
DEVICE void store_own(const MmaNumbers& n, const SmallWork& w, i64 row, i64 column, SUM (&v)[COUNT])
{
    constexpr int TOGETHER = COUNT < 2 * MMA_FOUR || sizeof(SUM) == 8 ? MMA_FOUR : 2 * MMA_FOUR;
    if (!w.is_there || row >= n.m) return;
    const i64 at = place_in_result(n, w.batch, row, column);
    UNROLLED for (int first = 0; first < COUNT; first += TOGETHER) {
        if (column + first >= n.n) continue;
        EpilogueTerms<4> terms[TOGETHER / MMA_FOUR];
        SUM              some[TOGETHER];
        UNROLLED for (int j = 0; j < TOGETHER; j++) some[j] = v[first + j];
        finish<TOGETHER>(n, w.batch, row, column + first, ToFours{n, at + first}, some, terms);
    }
}

// Else, sums of one pass in a warp's shared memory. ACROSS lanes have a row, each OWN chunks of 16 bytes side by side; chunks lie so that neither these nor rows of fours meet
// one bank often. A lane has TOGETHER neighbouring rows of the EACH that are its own.
template <class SHAPE>
struct SmallRoom {
    using Sum = typename SHAPE::Sum;
    static constexpr int ACROSS = SHAPE::ACROSS, ROWS = 32 / ACROSS * SHAPE::TOGETHER, COLUMNS = SHAPE::TILE_N, CHUNKS = COLUMNS / IN_CHUNK<Sum>, OWN = CHUNKS / ACROSS;
    static constexpr int BYTES = ROWS * CHUNKS * CHUNK_BYTES, IN_ROW = COLUMNS / MMA_FOUR;
    static_assert(OWN * ACROSS == CHUNKS && ROWS * IN_ROW % 32 == 0, "lanes store as much each");

    DEVICE static u32 begin() { return shared_begin() + threadIdx.x / 32 * u32(BYTES); }
    DEVICE static u32 place(u32 row, u32 chunk)
    {
        const u32 turned = ACROSS == 4 && CHUNKS >= 8 ? row / u32(SHAPE::TOGETHER) % 2 * 4 : 0;
        return (row * CHUNKS + (chunk % OWN * ACROSS + chunk / OWN ^ turned)) * CHUNK_BYTES;
    }
    // What the lane has of a row: OWN chunks.
    DEVICE static u32 place_of(u32 row, u32 column) { return begin() + place(row, column / u32(IN_CHUNK<Sum>)) + column % u32(IN_CHUNK<Sum>) * u32(sizeof(Sum)); }
    DEVICE static void put(u32 row, u32 lane_across, const Sum (&v)[OWN * IN_CHUNK<Sum>])
    {
        UNROLLED for (int q = 0; q < OWN; q++) put_chunk(begin() + place(row, lane_across * OWN + u32(q)), v + q * IN_CHUNK<Sum>);
    }
    // c's rows from the first one of this pass to one of them.
    DEVICE static constexpr u32 rows_to(u32 row) { return row / u32(SHAPE::TOGETHER) * u32(SHAPE::EACH) + row % u32(SHAPE::TOGETHER); }
    DEVICE static i64 first_row(const SmallWork& w, int pass) { return w.row + pass * SHAPE::TOGETHER; }
    DEVICE static void finish_fours(const MmaNumbers& n, const SmallWork& w, int pass)
    {
        ROLLED for (u32 at = threadIdx.x % 32; at < u32(ROWS * IN_ROW); at += 32) {
            const u32 row = at / IN_ROW, first = at % IN_ROW * MMA_FOUR;
            const i64 c_row = first_row(w, pass) + rows_to(row), c_column = w.column + first;
            if (!w.is_there || c_row >= n.m || c_column >= n.n) continue;
            Sum     v[MMA_FOUR];
            NoTerms terms;
            UNROLLED for (int j = 0; j < MMA_FOUR; j += IN_CHUNK<Sum>) get_chunk(place_of(row, first + u32(j)), v + j);
            finish<MMA_FOUR>(n, w.batch, c_row, c_column, to_room(n, place_in_result(n, w.batch, c_row, c_column), [&](int j) { return place_of(row, first + u32(j)); }), v, terms);
        }
    }
    // One by one, of which a lane's are of one column.
    struct Singles {
        const MmaNumbers& n;
        const SmallWork&  w;
        int               pass;

        template <int COUNT, class Put>
        DEVICE void each(const Put& put) const
        {
            constexpr u32 STEP = 32 / COLUMNS, TURNS = ROWS / STEP, MANY = COUNT < TURNS ? COUNT : TURNS;
            static_assert(32 % COLUMNS == 0 && TURNS % MANY == 0 && (STEP % SHAPE::TOGETHER == 0 || STEP == 1), "lanes store as much each");
            const u32 row = threadIdx.x % 32 / COLUMNS, column = threadIdx.x % COLUMNS;
            const i64 first = first_row(w, pass) + rows_to(row), at = place_in_result(n, w.batch, first, w.column + column);
            const i32 rows = w.is_there && w.column + column < n.n ? clamped(n.m - first, SHAPE::TILE_M) : 0;
            ROLLED for (u32 i = 0; i < TURNS; i += MANY) {
                Sum v[MANY];
                UNROLLED for (u32 j = 0; j < MANY; j++) v[j] = get_one<Sum>(place_of(row + (i + j) * STEP, column));
                UNROLLED for (u32 j = 0; j < MANY; j++)
                    if (i32(rows_to((i + j) * STEP)) < rows) put(at + rows_to((i + j) * STEP) * n.c_row, v[j]);
            }
        }
    };
    // The rows of this pass, once all lanes have put theirs.
    DEVICE static void store(const MmaNumbers& n, const SmallWork& w, int pass)
    {
        const bool is_singly = are_stored_singly(n);
        meet_warp();
        if (HAS_EPILOGUE || !is_singly) finish_fours(n, w, pass), meet_warp();
        if (is_singly) store_singly<Sum>(n, Singles{n, w, pass}), meet_warp();
    }
};

// ---- by tensor cores -----------------------------------------------------------------------------------------------------

template <class KIND, int ROW_BLOCKS_, int COLUMN_BLOCKS_>
struct SmallShape {
    using Kind = KIND;
    using Sum = typename KIND::Sum;
    using Word = typename KIND::Word;
    static constexpr int ROW_BLOCKS = ROW_BLOCKS_, COLUMN_BLOCKS = COLUMN_BLOCKS_, TILE_M = 16 * ROW_BLOCKS, TILE_N = 8 * COLUMN_BLOCKS, WARPS = SMALL_WARPS;
    static constexpr int ACROSS = 4, TOGETHER = 2, EACH = 2 * ROW_BLOCKS;
    using A = SmallReader<Word, KIND::BYTES, EACH, 2>;
    using B = SmallReader<Word, KIND::BYTES, COLUMN_BLOCKS, 2>;
};

// Lane 4 g + t has rows and columns from g times as many on as it has of them, and depth from t pieces on.
template <class S>
DEVICE void mma_small(const MmaNumbers& n)
{
    using Word = typename S::Word;
    constexpr int PIECE = S::A::PIECE, OWN = 2 * S::COLUMN_BLOCKS;
    const SmallWork   w = small_work<S>(n);
    const i32         g = i32(threadIdx.x % 32 / 4), t = i32(threadIdx.x % 4);
    typename S::A     a(n.a, w.batch, w.row + g * S::EACH, w.is_there ? n.m : 0, t * PIECE);
    typename S::B     b(n.b, w.batch, w.column + g * S::COLUMN_BLOCKS, w.is_there ? n.n : 0, t * PIECE);
    typename S::Sum   sum[S::ROW_BLOCKS][S::COLUMN_BLOCKS][4];
    UNROLLED for (int i = 0; i < S::ROW_BLOCKS; i++)
        UNROLLED for (int j = 0; j < S::COLUMN_BLOCKS; j++)
            UNROLLED for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    add_depth(a, b, n.k, 4 * PIECE, t * PIECE, [&] {
        if constexpr (S::Kind::BYTES == 4) a.round(), b.round();
        UNROLLED for (int i = 0; i < S::ROW_BLOCKS; i++) {
            const Word of_a[4] = {a.x[2 * i][0], a.x[2 * i + 1][0], a.x[2 * i][1], a.x[2 * i + 1][1]};
            UNROLLED for (int j = 0; j < S::COLUMN_BLOCKS; j++) S::Kind::add(sum[i][j], of_a, b.x[j]);
        }
    });
    const bool is_own = stores_own<OWN, typename S::Sum>(n);
    UNROLLED for (int i = 0; i < S::ROW_BLOCKS; i++) {
        UNROLLED for (int half = 0; half < 2; half++) {
            typename S::Sum v[OWN];
            UNROLLED for (int j = 0; j < OWN; j++) v[j] = sum[i][j % S::COLUMN_BLOCKS][2 * half + j / S::COLUMN_BLOCKS];
            if (is_own) store_own(n, w, w.row + g * S::EACH + 2 * i + half, w.column + t * OWN, v);
            else SmallRoom<S>::put(u32(2 * g + half), u32(t), v);
        }
        if (!is_own) SmallRoom<S>::store(n, w, i);
    }
}

// ---- by plain multiply-adds ----------------------------------------------------------------------------------------------

template <int ROWS_, int COLUMNS_, int WORDS>
struct SmallSimtShape {
    using Sum = float;
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, TILE_M = 4 * ROWS, TILE_N = 8 * COLUMNS, WARPS = SMALL_WARPS;
    static constexpr int ACROSS = 8, TOGETHER = 1, EACH = ROWS;
    using A = SmallReader<float, 4, ROWS, WORDS>;
    using B = SmallReader<float, 4, COLUMNS, WORDS>;
};

// Lane 8 r + c has ROWS rows from r times as many on, COLUMNS columns likewise.
template <class S>
DEVICE void simt_small(const MmaNumbers& n)
{
    constexpr int PIECE = S::A::PIECE;
    const SmallWork w = small_work<S>(n);
    const i32       r = i32(threadIdx.x % 32 / 8), c = i32(threadIdx.x % 8);
    typename S::A   a(n.a, w.batch, w.row + r * S::ROWS, w.is_there ? n.m : 0, 0);
    typename S::B   b(n.b, w.batch, w.column + c * S::COLUMNS, w.is_there ? n.n : 0, 0);
    float           sum[S::ROWS][S::COLUMNS];
    UNROLLED for (int i = 0; i < S::ROWS; i++)
        UNROLLED for (int j = 0; j < S::COLUMNS; j++) sum[i][j] = 0;
    add_depth(a, b, n.k, PIECE, 0, [&] {
        UNROLLED for (int p = 0; p < PIECE; p++)
            UNROLLED for (int i = 0; i < S::ROWS; i++)
                UNROLLED for (int j = 0; j < S::COLUMNS; j++) sum[i][j] = __fmaf_rn(a.x[i][p], b.x[j][p], sum[i][j]);
    });
    UNROLLED for (int i = 0; i < S::ROWS; i++) {
        if (stores_own<S::COLUMNS, float>(n)) store_own(n, w, w.row + r * S::ROWS + i, w.column + c * S::COLUMNS, sum[i]);
        else SmallRoom<S>::put(u32(r), u32(c), sum[i]), SmallRoom<S>::store(n, w, i);
    }
}

}  // namespace
}  // namespace ng::kernels
