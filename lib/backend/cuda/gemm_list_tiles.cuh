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

// Folds of a warp's 16 rows by units of 16 columns, of which a thread has two rows. Over columns all of a row's give a part.
struct UnitFolds {
    static_assert(LIST_PART_ROWS == 16, "a unit's rows");
    const GemmOutput& o;
    const bool is_over_columns, is_edge; // of the tile: some of it is not there
    TileSpot   at;                       // the warp's unit
    bool       is_first, is_last;        // of a row's
    FoldTotal  total[LIST_FOLDS][2], off[2], squared[2];
    u32        pivot[2];

    template <class Two>
    DEVICE void fold(u32 number, const Two& two, const float (&v)[UNIT])
    {
        if (!is_over_columns) return put_columns(number, two, v);
        // By copies: a pointer to one of them would have all of them in memory.
        static_assert(LIST_FOLDS == 2, "one or the other");
        const bool is_other = list_fold_index(number) > 0;
        FoldTotal  mine[2];
        UNROLLED for (i32 h = 0; h < 2; h++) mine[h].bits = is_other ? total[1][h].bits : total[0][h].bits, mine[h].rest = is_other ? total[1][h].rest : total[0][h].rest;
        add_rows(number, two, v, mine);
        UNROLLED for (i32 h = 0; h < 2; h++) {
            total[0][h].bits = is_other ? total[0][h].bits : mine[h].bits, total[0][h].rest = is_other ? total[0][h].rest : mine[h].rest;
            total[1][h].bits = is_other ? mine[h].bits : total[1][h].bits, total[1][h].rest = is_other ? mine[h].rest : total[1][h].rest;
        }
    }
    // From the mean of a part's first columns.
    DEVICE void fold_squares(u32 number, const float (&v)[UNIT])
    {
        const SumTwo two;
        UNROLLED for (i32 h = 0; h < 2; h++) {
            u32 x[4], far[4];
            if (is_first) {
                take_row(v, h, 0, x);
                pivot[h] = mean_of(fold_lanes<1, 4>(two, fold_tree(two, x)), o.n - at.column, 16);
            }
            take_row(v, h, pivot[h], x);
            take_off(pivot[h], x, far);
            const u32 near_here = fold_tree(two, x), far_here = fold_tree(two, far);
            off[h] = is_first ? FoldTotal{near_here, 0} : two.more(off[h], near_here);
            squared[h] = is_first ? FoldTotal{far_here, 0} : two.more(squared[h], far_here);
            if (!is_last) continue;
            const RowSquares all = {pivot[h], fold_lanes<1, 4>(two, two.all(off[h])), fold_lanes<1, 4>(two, two.all(squared[h]))};
            if (puts(h)) put_squares(o.epilogue, number, at.batch, row_of(h), part(), all, min(LIST_TILE_COLUMNS, o.n - part() * LIST_TILE_COLUMNS));
        }
    }

  private:
    // Of one of a thread's rows; what is not there is `other`.
    DEVICE void take_row(const float (&v)[UNIT], i32 h, u32 other, u32 (&x)[4]) const
    {
        const i32 column = at.column + (i32(threadIdx.x) & 3) * 2;
        UNROLLED for (i32 j = 0; j < 4; j++) x[j] = __float_as_uint(v[j / 2 * 4 + h * 2 + j % 2]);
        if (is_edge)
            UNROLLED for (i32 j = 0; j < 4; j++)
                if (column + (j >> 1) * 8 + (j & 1) >= o.n) x[j] = other;
    }
    // Behind a row's last unit one of its lanes puts the part.
    DEVICE i32  row_of(i32 h) const { return at.row + (i32(threadIdx.x) >> 2 & 7) + h * 8; }
    DEVICE i32  part() const { return at.column / LIST_TILE_COLUMNS; }
    DEVICE bool puts(i32 h) const { return (i32(threadIdx.x) & 3) == 0 && row_of(h) < o.m && part() * LIST_TILE_COLUMNS < o.n; }
    template <class Two>
    DEVICE void add_rows(u32 number, const Two& two, const float (&v)[UNIT], FoldTotal (&mine)[2])
    {
        UNROLLED for (i32 h = 0; h < 2; h++) {
            u32 x[4];
            take_row(v, h, two.start(), x);
            const u32 here = fold_tree(two, x);
            mine[h] = is_first ? FoldTotal{here, 0} : two.more(mine[h], here);
            if (!is_last) continue;
            const u32 all = fold_lanes<1, 4>(two, two.all(mine[h]));
            if (puts(h)) put_listed(o.epilogue, number, 0, at.batch, row_of(h), part(), all);
        }
    }
    template <class Two>
    DEVICE void put_columns(u32 number, const Two& two, const float (&v)[UNIT]) const
    {
        const i32 lane = i32(threadIdx.x) & 31, row = at.row + (lane >> 2);
        u32 x[4];
        UNROLLED for (i32 j = 0; j < 4; j++) {
            u32 down[2];
            UNROLLED for (i32 h = 0; h < 2; h++) down[h] = !is_edge || row + h * 8 < o.m ? __float_as_uint(v[j / 2 * 4 + h * 2 + j % 2]) : two.start();
            x[j] = fold_tree(two, down);
        }
        i32       slot;
        const u32 mine = fold_spread(two, x, slot), all = fold_lanes<4, 8>(two, mine);
        const i32 column = at.column + (slot >> 1) * 8 + (lane & 3) * 2 + (slot & 1);
        if ((lane & 4) == 0 && at.row < o.m && column < o.n) put_listed(o.epilogue, number, 0, at.batch, at.row / LIST_PART_ROWS, column, all);
    }
};
// Where there are none, in a loop of its own, so that no list is the slower for it.
struct NoUnitFolds : NoFolds {
    TileSpot at;
    bool     is_first, is_last;
};

template <u32 COUNT, class Word, int BLOCKS, int WORDS, class Folds>
DEVICE void finish_units(const TensorMap& map, const GemmOutput& o, const TileSpot& first, const Word (&d)[BLOCKS][WORDS], const Staging& s, Folds& folds)
{
    constexpr i32 ACROSS = WORDS / UNIT, UNITS = BLOCKS * ACROSS, MOST = i32(COUNT);
    constexpr u32 STRIDE = vector_bytes(BLOCKS * 64, 2 * WORDS);
    static_assert(UNITS <= 16, "as many as take_unit knows");
    static_assert(2 * WORDS == LIST_TILE_COLUMNS, "a part of each row");
    const bool is_elected = (threadIdx.x & 127) == 0, is_half = HAS_BOX || o.store == STORE_HALVES;
    const i32  in_box = is_half ? 4 : 2, lane = i32(threadIdx.x) & 31, warp = i32(threadIdx.x >> 5 & 3);
    ROLLED for (i32 unit = 0; unit < UNITS; unit++) {
        const TileSpot at = {0, unit / ACROSS * 64, unit % ACROSS * 16};
        const i32      number = is_half ? unit / 4 : unit / 2, part = unit & (in_box - 1);
        const u32      buffer = s.buffers + u32(number % MOST) * STAGING_BYTES;
        float          sums[UNIT];
        u32            box[4] = {};
        if constexpr (HAS_BOX) read_box_unit(buffer, part, box);
        take_unit(unit, d, sums);
        folds.at = {first.batch, first.row + at.row + warp * 16, first.column + at.column}, folds.is_first = at.column == 0, folds.is_last = at.column == (ACROSS - 1) * 16;
        run_list(o.epilogue, sums, FromUnit<STRIDE>{o, first, s.vectors, at.row + warp * 16 + (lane >> 2), at.column + (lane & 3) * 2, box}, folds);
        if (!o.c) continue;
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
template <u32 COUNT, class Word, int BLOCKS, int WORDS>
DEVICE void finish_listed(Buffers<COUNT>, const TensorMap& map, const GemmOutput& o, const TileSpot& first, const Word (&d)[BLOCKS][WORDS], Staging& s, const HeldVectors& held)
{
    put_vectors<vector_bytes(BLOCKS * 64, 2 * WORDS)>(o, held, s.vectors);
    if (!HAS_BOX && (threadIdx.x & 127) == 0) wait_stores_read<0>();
    named_barrier(s.barrier, 128);                           // vectors are there, and buffers have been read
    // Beside boxes there are no registers for folds: what these lists read comes otherwise.
    if (!HAS_BOX && has_list_folds(o.epilogue)) {
        UnitFolds folds = {o, is_over_columns(o.epilogue), first.row + BLOCKS * 64 > o.m || first.column + 2 * WORDS > o.n, first, true, true, {}, {}, {}, {}};
        finish_units<COUNT>(map, o, first, d, s, folds);
    } else {
        NoUnitFolds none;
        finish_units<COUNT>(map, o, first, d, s, none);
    }
    if (!o.c) named_barrier(s.barrier, 128);                 // vectors have been read
}

}  // namespace
}  // namespace ng::kernels
