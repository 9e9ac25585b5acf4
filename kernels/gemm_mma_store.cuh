// What follows a portable product's sums: through shared memory to rows of four neighbours, the epilogue, and c or the workspace.
#pragma once
#include "kernels/gemm_folds.cuh"
#include "kernels/gemm_mma_load.cuh"

namespace ng::kernels {
namespace {

// What a block works on: a tile of c, and a part of its depth.
struct MmaWork {
    i64 batch, split, row, column, first, end;
};

// Tiles that are in work together share rows and columns: columns of eight tiles, one beside the other.
template <int TILE_M, int TILE_N>
DEVICE MmaWork mma_work(const MmaNumbers& n)
{
    constexpr u32 GROUP = 8;
    const u32     tiles = n.row_tiles * n.column_tiles, tile = blockIdx.x % tiles, part = blockIdx.x / tiles;
    const u32     group = tile / (GROUP * n.column_tiles), within = tile % (GROUP * n.column_tiles);
    const u32     rest = n.row_tiles - group * GROUP, rows = rest < GROUP ? rest : GROUP;
    MmaWork       w;
    w.row = i64(group * GROUP + within % rows) * TILE_M, w.column = i64(within / rows) * TILE_N;
    w.batch = part % u32(n.batches), w.split = part / u32(n.batches);
    w.first = w.split * n.split_depth;
    w.end = n.k - w.first < n.split_depth ? n.k : w.first + n.split_depth;
    return w;
}

// Sums in shared memory while a tile is stored: [TILE_M][TILE_N], chunks of 16 bytes turned around in rows.
template <class SUM, int TILE_N>
DEVICE u32 staged_place(u32 row, u32 column)
{
    constexpr u32 IN_CHUNK = 16 / sizeof(SUM);
    return row * u32(TILE_N * sizeof(SUM)) + (column / IN_CHUNK ^ (row & 3) << 1) * 16 + column % IN_CHUNK * u32(sizeof(SUM));
}
template <class SUM>
DEVICE u32 word_of(SUM x)
{
    if constexpr (IS_REAL<SUM>) return __float_as_uint(float(x));
    else return u32(x);
}
// Sums of 16 bytes of shared memory, and one of them.
template <class SUM>
constexpr int IN_CHUNK = 16 / int(sizeof(SUM));
template <class SUM>
DEVICE void put_chunk(u32 at, const SUM* v)
{
    u32 words[4];
    UNROLLED for (int j = 0; j < IN_CHUNK<SUM>; j++) {
        if constexpr (sizeof(SUM) == 8) words[2 * j] = u32(u64(__double_as_longlong(v[j]))), words[2 * j + 1] = u32(u64(__double_as_longlong(v[j])) >> 32);
        else words[j] = word_of(v[j]);
    }
    store_four(at, words);
}
template <class SUM>
DEVICE void get_chunk(u32 at, SUM* v)
{
    u32 words[4];
    load_four(at, words);
    UNROLLED for (int j = 0; j < IN_CHUNK<SUM>; j++) {
        if constexpr (sizeof(SUM) == 8) v[j] = __longlong_as_double(i64(u64(words[2 * j + 1]) << 32 | words[2 * j]));
        else if constexpr (IS_REAL<SUM>) v[j] = __uint_as_float(words[j]);
        else v[j] = i32(words[j]);
    }
}
template <class SUM>
DEVICE SUM get_one(u32 at)
{
    if constexpr (sizeof(SUM) == 8) return load_double(at);
    else if constexpr (IS_REAL<SUM>) return __uint_as_float(load_word(at));
    else return i32(load_word(at));
}
template <int TILE_N, class SUM>
DEVICE void stage_pair(u32 base, u32 row, u32 column, SUM x, SUM y)
{
    const u32 at = base + staged_place<SUM, TILE_N>(row, column);
    const SUM both[2] = {x, y};
    if constexpr (sizeof(SUM) == 8) put_chunk(at, both);
    else store_two(at, word_of(x), word_of(y));
}
template <int TILE_N, class SUM>
DEVICE void staged_four(u32 base, u32 row, u32 column, SUM (&v)[MMA_FOUR])
{
    UNROLLED for (int j = 0; j < MMA_FOUR; j += IN_CHUNK<SUM>) get_chunk(base + staged_place<SUM, TILE_N>(row, column + u32(j)), v + j);
}

// One of four, which are in registers.
template <class T>
DEVICE T one_of(const T* v, int j)
{
    return j < 2 ? (j == 0 ? v[0] : v[1]) : (j == 2 ? v[2] : v[3]);
}
// One by one, by one text: of any type it is long.
template <class T>
DEVICE void store_singles(const MmaNumbers& n, i64 at, i32 valid, const T* v)
{
    ROLLED for (int j = 0; j < MMA_FOUR && j < valid; j++) store(result_type(n), n.c, at + j * n.c_column, one_of(v, j));
}
// Elements of c as they are, side by side where there are four of them in one piece, as IS_WHOLE knows; element(j) is one.
template <bool IS_WHOLE, class WHOLE, class T, class At>
DEVICE void store_elements(const MmaNumbers& n, i64 at, i32 valid, const WHOLE& all, const At& element)
{
    T* const to = static_cast<T*>(n.c) + at;
    if (IS_WHOLE || (valid >= MMA_FOUR && n.c_column == 1 && reinterpret_cast<u64>(to) % alignof(WHOLE) == 0)) {
        *reinterpret_cast<WHOLE*>(to) = all;
    } else {
        UNROLLED for (int j = 0; j < MMA_FOUR; j++)
            if (j < valid) to[j * n.c_column] = T(element(j));
    }
}
template <bool IS_WHOLE>
DEVICE void store_values(const MmaNumbers& n, i64 at, i32 valid, const float* v)
{
    if (result_type(n) == F32) {
        store_elements<IS_WHOLE, Neighbours<float, MMA_FOUR>, float>(n, at, valid, {v[0], v[1], v[2], v[3]}, [&](int j) { return v[j]; });
    } else if (is_of_halves(n)) {
        const TwoWords pairs = result_type(n) == F16 ? TwoWords{pair_f16(v[0], v[1]), pair_f16(v[2], v[3])} : TwoWords{pair_bf16(v[0], v[1]), pair_bf16(v[2], v[3])};
        store_elements<IS_WHOLE, TwoWords, u16>(n, at, valid, pairs, [&](int j) { return pairs.word[j / 2] >> j % 2 * 16; });
    } else if (!IS_WHOLE) {
        store_singles(n, at, valid, v);
    }
}
// Sums that c has as they are: i32 and doubles.
template <bool IS_WHOLE, class T>
DEVICE void store_values(const MmaNumbers& n, i64 at, i32 valid, const T* v)
{
    if (IS_WHOLE || result_type(n) == (IS_REAL<T> ? F64 : I32)) store_elements<IS_WHOLE, Neighbours<T, MMA_FOUR>, T>(n, at, valid, {v[0], v[1], v[2], v[3]}, [&](int j) { return v[j]; });
    else store_singles(n, at, valid, v);
}

// Where finished neighbours of c go, `first` elements behind the place that it has: to c.
struct ToResult {
    const MmaNumbers& n;
    i64               at;
    template <class T>
    DEVICE void put(int first, i32 valid, const T* v) const { store_values<false>(n, at + first * n.c_column, valid, v); }
};
// To c where it has fours, of which all or nothing is there.
struct ToFours {
    const MmaNumbers& n;
    i64               at;
    template <class T>
    DEVICE void put(int first, i32 valid, const T* v) const
    {
        if (valid > 0) store_values<true>(n, at + first, valid, v);
    }
};
// The same, else back to shared memory, where place(first) is: one by one they go from there (store_singly).
template <class Place>
struct ToRoom {
    const MmaNumbers& n;
    i64               at;
    Place             place;
    template <class T>
    DEVICE void put(int first, i32 valid, const T* v) const
    {
        if (n.has_fours) ToFours{n, at}.put(first, valid, v);
        else
            UNROLLED for (int j = 0; j < MMA_FOUR; j += IN_CHUNK<T>) put_chunk(place(first + j), v + j);
    }
};
template <class Place>
DEVICE ToRoom<Place> to_room(const MmaNumbers& n, i64 at, const Place& place) { return {n, at, place}; }

// All that is finished of SUM, one by one: walk's each<COUNT>(put) calls put(at, x) for each, of which so many are read at once. Lanes that are neighbours should have neighbours.
constexpr int SINGLES = 8;               // of types whose text is short; of others one
template <class SUM, class Walk>
DEVICE void store_sums_singly(const MmaNumbers& n, const Walk& walk)
{
    if (result_type(n) == (IS_REAL<SUM> ? F64 : I32)) walk.template each<SINGLES>([&](i64 at, SUM x) { static_cast<SUM*>(n.c)[at] = x; });
    else walk.template each<1>([&](i64 at, SUM x) { store(result_type(n), n.c, at, x); });
}
template <class SUM, class Walk>
DEVICE void store_singly(const MmaNumbers& n, const Walk& walk)
{
    if constexpr (sizeof(SUM) == 8) return store_sums_singly<SUM>(n, walk);
    if constexpr (!IS_REAL<SUM>)
        if (stays_integer(n)) return store_sums_singly<SUM>(n, walk);
    // An epilogue leaves numbers in place of sums.
    const auto number = [](SUM x) { return HAS_EPILOGUE ? __uint_as_float(word_of(x)) : float(x); };
    if (result_type(n) == F32) walk.template each<SINGLES>([&](i64 at, SUM x) { static_cast<float*>(n.c)[at] = number(x); });
    else if (is_of_halves(n)) walk.template each<SINGLES>([&](i64 at, SUM x) { static_cast<u16*>(n.c)[at] = u16(result_type(n) == F16 ? pair_f16(number(x), 0) : pair_bf16(number(x), 0)); });
    else walk.template each<1>([&](i64 at, SUM x) { store(result_type(n), n.c, at, number(x)); });
}
// Whether sums go from where they are staged one by one, and so need nothing before.
DEVICE bool are_stored_singly(const MmaNumbers& n) { return HAS_RESULT && n.c && !n.has_fours && !n.partial; }

// Four of them, the first `first` behind where `to` begins.
template <class SUM, class To>
DEVICE void finish_neighbours(const MmaNumbers& n, const EpilogueSpot& spot, int first, const To& to, const EpilogueOperands<4>& operands, const SUM* sums, EpilogueTerms<4>& terms)
{
    float x[MMA_FOUR];
    u32   bits[MMA_FOUR];
    if constexpr (HAS_EPILOGUE) {
        UNROLLED for (int j = 0; j < MMA_FOUR; j++) bits[j] = bits_of(sums[j]);
        finish_sums(n.epilogue, spot, operands, bits, terms);
        if constexpr (FOLDS > 0) leave_out(terms, spot.valid);
    }
    if (!HAS_RESULT) return;
    if (!IS_REAL<SUM> && stays_integer(n)) {
        i32 whole[MMA_FOUR];
        UNROLLED for (int j = 0; j < MMA_FOUR; j++) whole[j] = HAS_EPILOGUE ? i32(bits[j]) : i32(sums[j]);
        to.put(first, spot.valid, whole);
        return;
    }
    UNROLLED for (int j = 0; j < MMA_FOUR; j++) x[j] = HAS_EPILOGUE ? __uint_as_float(bits[j]) : float(sums[j]);
    to.put(first, spot.valid, x);
}

// The sums of COUNT columns, as many of them as there are. terms: what of them is folded, EpilogueTerms of each four, or what takes it from a list.
template <int COUNT, class SUM, class To, class Terms>
DEVICE void finish(const MmaNumbers& n, i64 batch, i64 row, i64 column, const To& to, SUM (&v)[COUNT], Terms& terms)
{
    const i32 valid = HAS_LIST && row >= n.m ? 0 : n.n - column < COUNT ? i32(n.n - column) : COUNT;
    if constexpr (sizeof(SUM) == 8) {
        UNROLLED for (int j = 0; j < COUNT; j += MMA_FOUR) to.put(j, valid - j, v + j);
    } else {
        constexpr int FOURS = COUNT / MMA_FOUR;
        EpilogueOperands<4> operands[FOURS];
        const auto spot = [&](int four) { return EpilogueSpot{batch, row, column + four * MMA_FOUR, valid - four * MMA_FOUR < MMA_FOUR ? valid - four * MMA_FOUR : MMA_FOUR}; };
        UNROLLED for (int i = 0; i < FOURS; i++) fetch_operands(FromMemory{n.epilogue, spot(i)}, operands[i]);
        if constexpr (HAS_LIST) {
            float x[COUNT];
            UNROLLED for (int j = 0; j < COUNT; j++) x[j] = float(v[j]);
            finish_list(n.epilogue, operands, x, terms);
            if (!n.c) return;
            UNROLLED for (int i = 0; i < FOURS; i++) to.put(i * MMA_FOUR, valid - i * MMA_FOUR, x + i * MMA_FOUR);
        } else {
            UNROLLED for (int i = 0; i < FOURS; i++) finish_neighbours(n, spot(i), i * MMA_FOUR, to, operands[i], v + i * MMA_FOUR, terms[i]);
        }
    }
}

// What is folded of sums of which nothing is.
#if HAS_LIST
using NoTerms = NoFolds;
#else
using NoTerms = EpilogueTerms<4>[1];
#endif
DEVICE i64 place_in_result(const MmaNumbers& n, i64 batch, i64 row, i64 column) { return batch * n.c_batch + row * n.c_row + column * n.c_column; }
// The same, to c alone.
template <int COUNT, class SUM>
DEVICE void finish_alone(const MmaNumbers& n, i64 batch, i64 row, i64 column, SUM (&v)[COUNT])
{
    NoTerms terms;
    finish<COUNT>(n, batch, row, column, ToResult{n, place_in_result(n, batch, row, column)}, v, terms);
}

template <class SUM>
DEVICE SUM* partial_at(const MmaNumbers& n, i64 split, i64 batch, i64 row, i64 column)
{
    return static_cast<SUM*>(n.partial) + ((split * n.batches + batch) * n.m + row) * n.pitch + column;
}
template <class SUM>
struct alignas(16) FourSums { SUM sum[MMA_FOUR]; };

#if !HAS_LIST
// What a thread folds of a tile: eight columns of some rows, of which each is a row of IN_ROW threads side by side.
template <int TILE_M, int TILE_N, int THREADS>
struct MmaFolds {
    static constexpr int COUNT = 2 * MMA_FOUR, IN_ROW = TILE_N / COUNT;
    static_assert(FOLDS == 0 || (32 % IN_ROW == 0 && THREADS % IN_ROW == 0), "a row's threads are of one warp, and keep their columns");
    DEVICE static constexpr bool is_any() { return FOLDS > 0; }
    FoldTotal total[MOST_FOLDS][COUNT];
    u32       pivot[OVER_A_ROW ? 1 : COUNT];

    template <int FOLD = 0>
    DEVICE void begin(const MmaNumbers& n)
    {
        if constexpr (FOLD < FOLDS) {
            UNROLLED for (int c = 0; c < COUNT; c++) total[FOLD][c] = fold_begin<FOLD>();
            begin<FOLD + 1>(n);
        }
    }
    template <int FOLD = 0>
    DEVICE void add(const MmaNumbers& n, const MmaWork& w, i64 row, const EpilogueTerms<4> (&terms)[2], bool is_first)
    {
        if constexpr (FOLD < FOLDS) {
            u32 x[COUNT];
            UNROLLED for (int c = 0; c < COUNT; c++) x[c] = term_of<FOLD>(present<FOLD>(terms[c / MMA_FOUR].of[FOLD][c % MMA_FOUR], pivot[OVER_A_ROW ? 0 : c]), pivot[OVER_A_ROW ? 0 : c]);
            if constexpr (OVER_A_ROW) {
                u32 all = fold_lanes<1, IN_ROW>(TextTwo<FOLD>(), fold_tree(TextTwo<FOLD>(), x));
                if constexpr (FOLD == PIVOT) all = pivot[0] = mean_of(all, n.n - w.column, TILE_N);
                if (threadIdx.x % IN_ROW == 0 && row < n.m) put_part(n.epilogue, FIRST_FOLD + FOLD, w.batch, row, w.column / TILE_N, all);
            } else if constexpr (FOLD == PIVOT) {            // the first row's that a warp has
                if (is_first) UNROLLED for (int c = 0; c < COUNT; c++) pivot[c] = __shfl_sync(~0u, x[c], i32(threadIdx.x % IN_ROW), 32);
            } else {
                UNROLLED for (int c = 0; c < COUNT; c++) total[FOLD][c] = fold_more<FOLD>(total[FOLD][c], x[c]);
            }
            add<FOLD + 1>(n, w, row, terms, is_first);
        }
    }
    // A part a warp.
    template <int FOLD = 0>
    DEVICE void end(const MmaNumbers& n, const MmaWork& w)
    {
        if constexpr (OVER_A_COLUMN && FOLD < FOLDS) {
            const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
            UNROLLED for (int c = 0; c < COUNT; c++) {
                const u32 all = FOLD == PIVOT ? pivot[c] : fold_lanes<IN_ROW, 32>(TextTwo<FOLD>(), fold_total<FOLD>(total[FOLD][c]));
                const i64 column = w.column + lane % IN_ROW * COUNT + c;
                if (lane < IN_ROW && column < n.n) put_part(n.epilogue, FIRST_FOLD + FOLD, w.batch, w.row / TILE_M * (THREADS / 32) + warp, column, all);
            }
            end<FOLD + 1>(n, w);
        }
    }
};
#endif

// What is staged of a tile, one by one: a thread's are of one column.
template <class SUM, int TILE_M, int TILE_N, int THREADS>
struct StagedSingles {
    static constexpr int ROWS = THREADS / TILE_N, TURNS = TILE_M / ROWS;
    static_assert(THREADS % TILE_N == 0 && TILE_M % ROWS == 0, "threads have a column each, and store as much");
    const MmaNumbers& n;
    const MmaWork&    w;
    u32               base;

    template <int COUNT, class Put>
    DEVICE void each(const Put& put) const
    {
        const u32 first = ROWS == 1 ? 0 : threadIdx.x / TILE_N, column = threadIdx.x % TILE_N;
        const i64 step = ROWS * n.c_row;
        const i32 rows = w.column + column < n.n ? clamped(n.m - w.row - first, TILE_M) : 0;
        i64       at = place_in_result(n, w.batch, w.row + first, w.column + column);
        ROLLED for (int i = 0; i < TURNS && i * ROWS < rows; i += COUNT) {
            SUM v[COUNT];
            UNROLLED for (int j = 0; j < COUNT; j++) v[j] = get_one<SUM>(base + staged_place<SUM, TILE_N>(first + u32((i + j) * ROWS), column));
            UNROLLED for (int j = 0; j < COUNT; j++, at += step)
                if ((i + j) * ROWS < rows) put(at, v[j]);
        }
    }
};

// A block's staged tile, once all of it is there. An epilogue waits for what it reads: eight columns wait together. With lists a warp has rows of
// its own from the top to the bottom, else all warps have rows side by side.
template <class SUM, int TILE_M, int TILE_N, int THREADS>
DEVICE void store_tile(const MmaNumbers& n, const MmaWork& w, u32 base)
{
    const bool is_singly = are_stored_singly(n);
    const StagedSingles<SUM, TILE_M, TILE_N, THREADS> singles = {n, w, base};
    if (!HAS_EPILOGUE && is_singly) return store_singly<SUM>(n, singles);
    constexpr int COUNT = sizeof(SUM) == 8 ? MMA_FOUR : 2 * MMA_FOUR, IN_ROW = TILE_N / COUNT, TURNS = TILE_M * IN_ROW / THREADS;
    static_assert(TILE_M * IN_ROW % THREADS == 0, "threads store as much each");
    MmaFolds<TILE_M, TILE_N, THREADS> folds;
    folds.begin(n);
    ROLLED for (int i = 0; i < TURNS; i++) {
        const u32 place = HAS_LIST ? threadIdx.x / 32 * (32 * TURNS) + u32(i) * 32 + threadIdx.x % 32 : threadIdx.x + u32(i) * THREADS, tile_row = place / IN_ROW, tile_column = place % IN_ROW * COUNT;
        const i64 row = w.row + tile_row, column = w.column + tile_column;
        EpilogueTerms<4> terms[COUNT / MMA_FOUR];
        if constexpr (FOLDS > 0)
            UNROLLED for (int j = 0; j < COUNT / MMA_FOUR; j++) leave_out(terms[j], 0);
        const bool is_there = row < n.m && column < n.n;
        const auto to = to_room(n, place_in_result(n, w.batch, row, column), [&](int j) { return base + staged_place<SUM, TILE_N>(tile_row, tile_column + u32(j)); });
        if (!is_there && !folds.is_any()) continue;
        SUM v[COUNT];
        if (HAS_LIST && !is_there)
            UNROLLED for (int j = 0; j < COUNT; j++) v[j] = 0;
        if (is_there) UNROLLED for (int first = 0; first < COUNT; first += MMA_FOUR) {
            FourSums<SUM> four;
            staged_four<TILE_N>(base, tile_row, tile_column + u32(first), four.sum);
            if (n.partial && column + first < n.n) *reinterpret_cast<FourSums<SUM>*>(partial_at<SUM>(n, w.split, w.batch, row, column + first)) = four;
            UNROLLED for (int j = 0; j < MMA_FOUR; j++) v[first + j] = four.sum[j];
        }
        if constexpr (HAS_LIST) {
            folds.batch = w.batch, folds.row = row, folds.column = column;
            if (!n.partial) finish<COUNT>(n, w.batch, row, column, to, v, folds);
        } else {
            if (!n.partial && is_there) finish<COUNT>(n, w.batch, row, column, to, v, terms);
            if constexpr (FOLDS > 0) folds.add(n, w, row, terms, i == 0);
        }
    }
    if constexpr (FOLDS > 0) folds.end(n, w);
    if (!is_singly) return;
    __syncthreads();
    store_singly<SUM>(n, singles);
}

// Adds the parts of depth, several of which are on their way at once; where there are few sums, a warp's lanes share them.
template <class SUM>
DEVICE void mma_sum(const MmaNumbers& n)
{
    constexpr i32 AT_ONCE = 8;
    const u64 fours = u64(n.pitch / MMA_FOUR), all = fours * u64(n.m) * u64(n.batches), lanes = u64(lanes_of_sum(i64(all), n.splits));
    const i32 lane = i32(threadIdx.x % lanes);
    ROLLED for (u64 begin = 0; begin < all; begin += all_threads() / lanes) {
        const u64  i = begin + first_thread() / lanes;
        const bool is_there = i < all;
        u64        four, line, row, batch;
        divide(i, fours, line, four);
        divide(line, u64(n.m), batch, row);
        SUM v[MMA_FOUR] = {};
        const auto add = [&](int j, SUM x) {
            if constexpr (IS_REAL<SUM>) v[j] += x;
            else v[j] = SUM(u32(v[j]) + u32(x));
        };
        ROLLED for (i32 first = lane; first < n.splits; first += AT_ONCE * i32(lanes)) {
            FourSums<SUM> part[AT_ONCE];
            const i32 here = is_there ? (n.splits - first + i32(lanes) - 1) / i32(lanes) : 0;
            UNROLLED for (int p = 0; p < AT_ONCE; p++)
                if (p < here) part[p] = *reinterpret_cast<const FourSums<SUM>*>(partial_at<SUM>(n, first + p * i32(lanes), i64(batch), i64(row), i64(four) * MMA_FOUR));
            UNROLLED for (int p = 0; p < AT_ONCE; p++)
                UNROLLED for (int j = 0; j < MMA_FOUR; j++)
                    if (p < here) add(j, part[p].sum[j]);
        }
        if (lanes > 1)
            UNROLLED for (int reach = 16; reach > 0; reach /= 2)
                UNROLLED for (int j = 0; j < MMA_FOUR; j++) add(j, __shfl_xor_sync(~0u, v[j], reach));
        if (is_there && lane == 0) finish_alone(n, i64(batch), i64(row), i64(four) * MMA_FOUR, v);     // folds want one part of depth
    }
}

}  // namespace
}  // namespace ng::kernels
