// An epilogue that is compiled with a product's tiles: what it reads is brought while the tile is multiplied, and it runs on pairs
// of sums in the registers where they are.
//
//   boxes    one tensor of 16 bits, by the copy engine to where the results will be staged, in their layout: no bank is met twice,
//            and ldmatrix gives each thread the elements beside its sums
//   vectors  what is the same in all rows or all columns, 256 elements each
//   else     each thread reads from memory
#pragma once
#include "kernels/gemm_sm90_store.cuh"

namespace ng::kernels {
namespace {

template <int BYTES, int WORDS>
DEVICE void read_shared(u32 from, u32 (&to)[WORDS])
{
    static_assert(BYTES <= 4 * WORDS, "as many as there are");
    if constexpr (BYTES == 8) asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(from));
    else if constexpr (BYTES == 4) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(to[0]) : "r"(from));
    else if constexpr (BYTES == 2) asm volatile("ld.shared.u16 %0, [%1];" : "=r"(to[0]) : "r"(from));
    else {
        static_assert(BYTES == 1, "vectors have elements of up to 32 bits");
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(to[0]) : "r"(from));
    }
}
DEVICE void write_shared(u32 to, i32 bytes, u32 bits)
{
    if (bytes == 4) asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(bits) : "memory");
    else if (bytes == 2) asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(u16(bits)) : "memory");
    else asm volatile("st.shared.b8 [%0], %1;" ::"r"(to), "r"(bits) : "memory");
}

// Operands of a pair of sums. STRIDE: bytes of a vector; row, column: in the warpgroup's tile; box: the pair that the copy engine brought.
template <u32 STRIDE>
struct FromTile {
    const Epilogue& epilogue;
    EpilogueSpot    at;
    u32             vectors;
    i32             row, column;
    u32             box;

    template <int TENSOR, int KIND, int VECTOR, class T>
    DEVICE void fetch(Arriving<T, 2>& to) const
    {
        const u32 vector = vectors + VECTOR * STRIDE;
        to.is_same = KIND == OF_ROWS;
        if constexpr (KIND == OF_COLUMNS) {
            read_shared<2 * sizeof(T)>(vector + u32(column) * sizeof(T), to.word);
        } else if constexpr (KIND == OF_ROWS) {
            read_shared<sizeof(T)>(vector + u32(row) * sizeof(T), to.word);
        } else if constexpr (KIND == BY_ENGINE) {
            static_assert(sizeof(T) == 2, "pairs of 32 bits");
            to.word[0] = box;
        } else {
            fetch_neighbours<TENSOR>(epilogue, at, to);
        }
    }
};

// What the same rows or columns share, on its way: one or two elements a thread of each vector, which go to shared memory when the tile is
// multiplied. A thread that put them there at once would wait for each, a microsecond a tile in which nothing is multiplied.
struct HeldVectors {
    u32 bits[vector_count() > 0 ? vector_count() : 1][2];
};
template <int ROWS, int COLUMNS>
DEVICE void fetch_vectors(const GemmOutput& o, const TileSpot& first, HeldVectors& held)
{
    static_assert(ROWS <= 256 && COLUMNS <= 256, "two elements a thread");
    constexpr i32 HALVES = vector_bytes(ROWS, COLUMNS) / 512;
    int vector = 0;
    UNROLLED for (int i = 0; i < EPILOGUE_TENSORS; i++) {
        if (!is_vector(i)) continue;
        const i32 tensor = vector_tensor(o.epilogue, vector, i);
        if (tensor < 0) {
            UNROLLED for (i32 half = 0; half < HALVES; half++) held.bits[vector][half] = 0;
            vector++;
            continue;
        }
        const EpilogueTensor& t = o.epilogue.tensor[tensor];
        const bool is_row = is_of_columns(o.epilogue, tensor);
        const i64  step = is_row ? t.column : t.row, from = to_batch(o.epilogue, tensor, first.batch) + (is_row ? first.column : first.row) * step;
        const i32  count = is_row ? min(COLUMNS, o.n - first.column) : min(ROWS, o.m - first.row);
        UNROLLED for (i32 half = 0; half < HALVES; half++) {
            const i32 j = i32(threadIdx.x & 127) + half * 128;
            held.bits[vector][half] = j < count ? u32(load_bits(t.bytes, t.data, from + j * step)) : 0;
        }
        vector++;
    }
}
template <u32 STRIDE>
DEVICE void put_vectors(const GemmOutput& o, const HeldVectors& held, u32 to)
{
    int vector = 0;
    UNROLLED for (int i = 0; i < EPILOGUE_TENSORS; i++) {
        if (!is_vector(i)) continue;
        const i32 tensor = vector_tensor(o.epilogue, vector, i), bytes = o.epilogue.tensor[tensor < 0 ? 0 : tensor].bytes;
        UNROLLED for (u32 half = 0; half < STRIDE / 512; half++) write_shared(to + u32(vector) * STRIDE + ((threadIdx.x & 127) + half * 128) * u32(bytes), bytes, held.bits[vector][half]);
        vector++;
    }
}
// Which of its box's batches goes with one of c.
DEVICE i32 box_batch(const GemmTilesNumbers& g, i32 batch)
{
    if constexpr (HAS_OUTER) {
        const i32 inner = i32(g.output.epilogue.inner), outer = batch / inner;
        if (g.box_moves == BOX_OF_OUTER) return outer;
        if (g.box_moves == BOX_OF_INNER) return batch - outer * inner;
    }
    return batch * g.box_moves;
}
// By a warpgroup whose first products are under way, or that waits for its turn.
template <int ROWS, int COLUMNS>
DEVICE void bring_operands(const GemmTilesNumbers& g, const TileSpot& first, const Staging& s, HeldVectors& held)
{
    fetch_vectors<ROWS, COLUMNS>(g.output, first, held);
    if constexpr (HAS_BOX) {
        if ((threadIdx.x & 127) != 0) return;
        wait_stores_read<0>();
        barrier_expect(s.full, ROWS * COLUMNS * 2);
        UNROLLED for (i32 i = 0; i < ROWS * COLUMNS / 4096; i++)
            load_box(s.buffers + u32(i) * STAGING_BYTES, g.box, first.column + i % (COLUMNS / 64) * 64, first.row + i / (COLUMNS / 64) * 64, box_batch(g, first.batch), s.full);
    }
}

// Of 32 columns and a warpgroup's 64 rows a thread has eight pairs: number i is in group i / 2 of columns, in one of two rows.
constexpr i32 PAIRS = 8;

// Where pairs 4 j .. of a half buffer are, as stage_halves puts them there.
DEVICE void read_box(u32 buffer, i32 half, u32 (&box)[PAIRS])
{
    const i32 lane = i32(threadIdx.x) & 31, row = i32(threadIdx.x >> 5 & 3) * 16 + (lane & 15);
    UNROLLED for (i32 j = 0; j < 2; j++) {
        const u32 from = buffer + u32(row * 128 + ((((half * 2 + j) * 2 + (lane >> 4)) ^ (row & 7)) << 4));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(box[4 * j]), "=r"(box[4 * j + 1]), "=r"(box[4 * j + 2]), "=r"(box[4 * j + 3])
                     : "r"(from)
                     : "memory");
    }
}

// in_tile: the chunk's first row and column in the warpgroup's tile, which begins at first.
template <u32 STRIDE>
DEVICE void finish_pairs(const GemmOutput& o, const TileSpot& first, const TileSpot& in_tile, const Staging& s, const u32 (&box)[PAIRS], float (&sums)[2 * PAIRS], EpilogueTerms<2> (&terms)[PAIRS])
{
    const i32 lane = i32(threadIdx.x) & 31, row = in_tile.row + i32(threadIdx.x >> 5 & 3) * 16 + (lane >> 2), column = in_tile.column + (lane & 3) * 2;
    EpilogueOperands<2> operands[PAIRS];
    const auto spot = [&](i32 i) {
        const i32 r = row + (i & 1) * 8, c = column + (i >> 1) * 8;
        return EpilogueSpot{first.batch, first.row + r, first.column + c, first.row + r < o.m ? min(2, o.n - first.column - c) : 0};
    };
    UNROLLED for (i32 i = 0; i < PAIRS; i++) fetch_operands(FromTile<STRIDE>{o.epilogue, spot(i), s.vectors, row + (i & 1) * 8, column + (i >> 1) * 8, box[i]}, operands[i]);
    UNROLLED for (i32 i = 0; i < PAIRS; i++) {
        u32 pair[2] = {bits_of(sums[2 * i]), bits_of(sums[2 * i + 1])};
        finish_sums(o.epilogue, spot(i), operands[i], pair, terms[i]);
        sums[2 * i] = __uint_as_float(pair[0]), sums[2 * i + 1] = __uint_as_float(pair[1]);
    }
    if constexpr (FOLDS > 0)
        if (first.row + in_tile.row + 64 > o.m || first.column + in_tile.column + 32 > o.n)
            UNROLLED for (i32 i = 0; i < PAIRS; i++) leave_out(terms[i], spot(i).valid);
}

template <int CHUNK, class Word, int BLOCKS, int WORDS>
DEVICE void take_chunk(const Word (&d)[BLOCKS][WORDS], float (&sums)[2 * PAIRS])
{
    constexpr i32 ACROSS = WORDS / 16;
    if constexpr (CHUNK < BLOCKS * ACROSS)
        UNROLLED for (i32 j = 0; j < 2 * PAIRS; j++) sums[j] = __uint_as_float(bits_of(d[CHUNK / ACROSS][CHUNK % ACROSS * 2 * PAIRS + j]));
}

// A warpgroup's tile, 32 columns of 64 rows at a time, by the copy engine. IN_BOX: how many of these a buffer holds. TEXTS: how many have
// a text of their own; one text for all takes its sums by branches to moves.
template <u32 BUFFERS, int IN_BOX, int TEXTS, class Word, int BLOCKS, int WORDS>
DEVICE void finish_tile(const TensorMap& map, const GemmOutput& o, const TileSpot& first, const Word (&d)[BLOCKS][WORDS], Staging& s, const HeldVectors& held)
{
    constexpr i32 ACROSS = WORDS / 16, CHUNKS = BLOCKS * ACROSS, MOST = i32(BUFFERS);
    constexpr u32 STRIDE = vector_bytes(BLOCKS * 64, 2 * WORDS);
    const bool is_elected = (threadIdx.x & 127) == 0;
    ChunkFolds<OfPairs> folds;
    folds.begin();
    put_vectors<STRIDE>(o, held, s.vectors);
    if (!HAS_BOX && is_elected) wait_stores_read<0>();
    named_barrier(s.barrier, 128);                           // vectors are there, and buffers have been read
    _Pragma("unroll TEXTS") for (i32 chunk = 0; chunk < CHUNKS; chunk++) {
        const TileSpot at = {0, chunk / ACROSS * 64, chunk % ACROSS * 32};
        const i32      number = chunk / IN_BOX;
        const u32      buffer = s.buffers + u32(number % MOST) * STAGING_BYTES;
        float          sums[2 * PAIRS];
        u32            box[PAIRS] = {};
        if constexpr (HAS_BOX) read_box(buffer, chunk % 2, box);
        switch (chunk) {
        case 1: take_chunk<1>(d, sums); break;
        case 2: take_chunk<2>(d, sums); break;
        case 3: take_chunk<3>(d, sums); break;
        case 4: take_chunk<4>(d, sums); break;
        case 5: take_chunk<5>(d, sums); break;
        case 6: take_chunk<6>(d, sums); break;
        case 7: take_chunk<7>(d, sums); break;
        default: take_chunk<0>(d, sums);
        }
        EpilogueTerms<2> terms[PAIRS];
        finish_pairs<STRIDE>(o, first, at, s, box, sums, terms);
        if constexpr (FOLDS > 0) {
            const FoldSpot spot = {first.batch, first.row + at.row + i32(threadIdx.x >> 5 & 3) * 16, first.column + at.column, o.m, o.n, chunk % ACROSS == 0, first.row + at.row + 64 > o.m || first.column + at.column + 32 > o.n};
            folds.add(o.epilogue, spot, terms);
            if (OVER_A_ROW && chunk % ACROSS == ACROSS - 1 && first.column < o.n) folds.end(o.epilogue, spot, first.column / (32 * ACROSS));
        }
        if (!HAS_RESULT) continue;
        if (number >= MOST && chunk % IN_BOX == 0) {
            if (is_elected) wait_stores_read<MOST - 1>();
            named_barrier(s.barrier, 128);
        }
        if constexpr (IN_BOX == 2) stage_halves<2>(buffer, result_type(o), sums, chunk % 2 * 2);
        else stage_words(buffer, sums, rows_of_thread());
        if (chunk % IN_BOX != IN_BOX - 1) continue;
        async_fence();
        named_barrier(s.barrier, 128);
        if (is_elected) store_box(map, buffer, first.column + at.column - (IN_BOX - 1) * 32, first.row + at.row, first.batch), end_stores();
    }
    if (!HAS_RESULT) {                                       // vectors have been read, and boxes
        if (HAS_BOX) async_fence();
        named_barrier(s.barrier, 128);
    }
}

}  // namespace
}  // namespace ng::kernels
