// Carries out an epilogue's list on a warpgroup's tile: 16 columns of 64 rows at a time, eight sums a thread, which leave by the copy engine.
//
// What is read comes as to a text (gemm_sm90_finish.cuh), but which of these ways a tensor comes is said when it is run.
#pragma once
#include "lib/backend/cuda/gemm_list.cuh"
#include "kernels/gemm_sm90_finish.cuh"

namespace ng::kernels {
namespace {

constexpr i32 UNIT = 8;                  // sums of a thread: pairs in two groups of columns and two rows each

template <int AT, class Word, int BLOCKS, int WORDS>
DEVICE void take_unit(const Word (&d)[BLOCKS][WORDS], float (&sums)[UNIT])
{
    constexpr i32 ACROSS = WORDS / UNIT;
    if constexpr (AT < BLOCKS * ACROSS)
        UNROLLED for (i32 j = 0; j < UNIT; j++) sums[j] = float(d[AT / ACROSS][AT % ACROSS * UNIT + j]);
}
template <class Word, int BLOCKS, int WORDS>
DEVICE void take_unit(i32 unit, const Word (&d)[BLOCKS][WORDS], float (&sums)[UNIT])
{
    switch (unit) {
#define CASE(at) case at: return take_unit<at>(d, sums);
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14) CASE(15)
#undef CASE
    default: return take_unit<0>(d, sums);
    }
}

// Operands of a thread's eight sums. row, column: of the first in the warpgroup's tile, which begins at first.
template <u32 STRIDE>
struct FromUnit {
    const GemmOutput& o;
    const TileSpot&   first;
    u32               vectors;
    i32               row, column;
    const u32       (&box)[4];

    DEVICE void of_columns(u32 vector, i32 type, float (&x)[UNIT]) const
    {
        UNROLLED for (i32 group = 0; group < 2; group++) {
            u32   w[2];
            float pair[2];
            if (type == F32) read_shared<8>(vector + u32(column + group * 8) * 4, w);
            else read_shared<4>(vector + u32(column + group * 8) * 2, w);
            numbers_of_words(type, false, w, pair, 0);
            UNROLLED for (i32 j = 0; j < 4; j++) x[group * 4 + j] = pair[j % 2];
        }
    }
    DEVICE void of_rows(u32 vector, i32 type, float (&x)[UNIT]) const
    {
        UNROLLED for (i32 half = 0; half < 2; half++) {
            u32   w[1] = {};
            float one[1];
            if (type == F32) read_shared<4>(vector + u32(row + half * 8) * 4, w);
            else read_shared<2>(vector + u32(row + half * 8) * 2, w);
            numbers_of_words(type, true, w, one, 0);
            UNROLLED for (i32 j = 0; j < 4; j++) x[j / 2 * 4 + half * 2 + j % 2] = one[0];
        }
    }
    DEVICE void operator()(i32 tensor, float (&x)[UNIT]) const
    {
        const EpilogueTensor& t = o.epilogue.tensor[tensor];
        const i32 type = list_type(o.epilogue.numbers[0], tensor), kind = t.kind & 255;
        const u32 vector = vectors + u32(t.kind >> 8) * STRIDE;
        if (kind == OF_COLUMNS) return of_columns(vector, type, x);
        if (kind == OF_ROWS) return of_rows(vector, type, x);
        if (HAS_BOX && kind == BY_ENGINE) {
            UNROLLED for (i32 i = 0; i < 4; i++) x[2 * i] = listed_number(type, box[i]), x[2 * i + 1] = listed_number(type, box[i] >> 16);
            return;
        }
        u32 w[4][2] = {};
        UNROLLED for (i32 i = 0; i < 4; i++) {
            const i32 r = first.row + row + (i & 1) * 8, c = first.column + column + (i >> 1) * 8;
            fetch_words(o.epilogue, tensor, {first.batch, r, c, r < o.m ? min(2, o.n - c) : 0}, w[i]);
        }
        UNROLLED for (i32 i = 0; i < 4; i++) numbers_of_words(type, t.together == 0, w[i], x, 2 * i);
    }
};

// As read_box and stage_words have them, of a quarter and of half a buffer.
DEVICE void read_box_unit(u32 buffer, i32 quarter, u32 (&box)[4])
{
    const i32 lane = i32(threadIdx.x) & 31, row = i32(threadIdx.x >> 5 & 3) * 16 + (lane & 15);
    const u32 from = buffer + u32(row * 128 + (((quarter * 2 + (lane >> 4)) ^ (row & 7)) << 4));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(box[0]), "=r"(box[1]), "=r"(box[2]), "=r"(box[3]) : "r"(from) : "memory");
}
DEVICE void stage_words_unit(u32 buffer, i32 half, const float (&sums)[UNIT])
{
    const i32 lane = i32(threadIdx.x) & 31;
    UNROLLED for (i32 j = 0; j < 2; j++)
        UNROLLED for (i32 h = 0; h < 2; h++) {
            const i32 row = i32(threadIdx.x >> 5 & 3) * 16 + h * 8 + (lane >> 2), piece = (half * 2 + j) * 2 + ((lane & 3) >> 1);
            const u32 to = buffer + u32(row * 128 + ((piece ^ (row & 7)) << 4) + (lane & 1) * 8);
            asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(__float_as_uint(sums[j * 4 + h * 2])), "r"(__float_as_uint(sums[j * 4 + h * 2 + 1])) : "memory");
        }
}

template <u32 COUNT, class Word, int BLOCKS, int WORDS>
DEVICE void finish_listed(Buffers<COUNT>, const TensorMap& map, const GemmOutput& o, const TileSpot& first, const Word (&d)[BLOCKS][WORDS], Staging& s, const HeldVectors& held)
{
    constexpr i32 ACROSS = WORDS / UNIT, UNITS = BLOCKS * ACROSS, MOST = i32(COUNT);
    constexpr u32 STRIDE = vector_bytes(BLOCKS * 64, 2 * WORDS);
    static_assert(UNITS <= 16, "as many as take_unit knows");
    const bool is_elected = (threadIdx.x & 127) == 0, is_half = HAS_BOX || o.store == STORE_HALVES;
    const i32  in_box = is_half ? 4 : 2, lane = i32(threadIdx.x) & 31;
    put_vectors<STRIDE>(o, held, s.vectors);
    if (!HAS_BOX && is_elected) wait_stores_read<0>();
    named_barrier(s.barrier, 128);                           // vectors are there, and buffers have been read
    ROLLED for (i32 unit = 0; unit < UNITS; unit++) {
        const TileSpot at = {0, unit / ACROSS * 64, unit % ACROSS * 16};
        const i32      number = is_half ? unit / 4 : unit / 2, part = unit & (in_box - 1);
        const u32      buffer = s.buffers + u32(number % MOST) * STAGING_BYTES;
        float          sums[UNIT];
        u32            box[4] = {};
        if constexpr (HAS_BOX) read_box_unit(buffer, part, box);
        take_unit(unit, d, sums);
        run_list(o.epilogue, sums, FromUnit<STRIDE>{o, first, s.vectors, at.row + i32(threadIdx.x >> 5 & 3) * 16 + (lane >> 2), at.column + (lane & 3) * 2, box});
        if (number >= MOST && part == 0) {
            if (is_elected) wait_stores_read<MOST - 1>();
            named_barrier(s.barrier, 128);
        }
        if (is_half) stage_halves<1>(buffer, o.c_type, sums, part);
        else stage_words_unit(buffer, part, sums);
        if (part != in_box - 1) continue;
        async_fence();
        named_barrier(s.barrier, 128);
        if (is_elected) store_box(map, buffer, first.column + at.column - part * 16, first.row + at.row, first.batch), end_stores();
    }
}

}  // namespace
}  // namespace ng::kernels
