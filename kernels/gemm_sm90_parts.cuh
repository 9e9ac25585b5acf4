// Sums of a tile whose depth is cut: how the blocks of a cluster hand them to each other, and who adds them up and stores them.
//
//   sums      [units][patches][32 lanes][4], as wgmma leaves them (gemm_sm90.h) where a unit's rows are the warp's. A unit is added up by one block of the
//             cluster, to which the others send theirs: [blocks - 1][units of that block]
// A block adds them in the order of blocks, and so of depth; so results do not vary.
#pragma once
#include "kernels/gemm_sm90_turned.cuh"

namespace ng::kernels {
namespace {

// Where a block's own sums are, what it receives, and the barrier of that.
struct SumsPlace {
    u32 own, received, handed;
};

// What a block of a cluster has of a tile: the tile's first row and column, the steps of depth. Of its units block i adds up first_unit(i) to
// first_unit(i + 1); a unit's rows are those of warp unit / (UNITS / WARPS).
struct SplitPart {
    TileSpot at;
    i32      split, begin, end;
    u32      rank, blocks, unit_share;   // of those that share the tile
    u32      first;                      // of them, in the cluster
    bool     is_there;

    template <class S>
    DEVICE u32 first_unit(u32 block) const
    {
        static_assert(S::UNITS <= MOST_UNITS, "else a share of 1 / UNIT_SHARES is not enough");
        return S::UNITS * block * unit_share / UNIT_SHARES;
    }
    template <class S>
    DEVICE u32 begin_units() const { return first_unit<S>(rank); }
    template <class S>
    DEVICE u32 end_units() const { return first_unit<S>(rank + 1); }
    template <class S>
    DEVICE u32 units() const { return end_units<S>() - begin_units<S>(); }
    // What the others send it.
    template <class S>
    DEVICE u32 received_bytes() const { return units<S>() * (blocks - 1) * S::UNIT_BYTES; }
    template <class S>
    DEVICE u32 owner_of(u32 unit) const { return ((unit + 1) * blocks - 1) / S::UNITS; }
};

// Sums of rows that threads have in pairs: to where they would be of a warp of those rows.
template <class S>
DEVICE void write_pairs(u32 own, const float (&sums)[S::GROUP_N / 2])
{
    const u32 row = u32(S::rows().row), first = threadIdx.x >> 7, unit = first * 4 + row / 16, column = threadIdx.x & 3;
    const u32 to = own + unit * (S::UNITS / S::WARPS) * S::UNIT_BYTES + (row % 8 * 4 + column) * 16 + row / 8 % 2 * 8;
    UNROLLED for (i32 j = 0; j < S::GROUP_N / 8; j++) {
        const float* const q = sums + j * 4;
        write_pair(to + u32(j) * PATCH_BYTES, __float_as_uint(q[0]), __float_as_uint(q[1])), write_pair(to + u32(j) * PATCH_BYTES + 64, __float_as_uint(q[2]), __float_as_uint(q[3]));
    }
}

// A warpgroup's sums to shared memory, and from there to the blocks that add them up.
template <class S>
DEVICE void hand_sums_over(const SumsPlace& place, const SplitPart& part, const typename S::Word (&sums)[S::GROUP_N / 2])
{
    // All groups are done with the stages: sums go there.
    named_barrier(1, S::GROUPS * 128);
    constexpr u32 MINE = S::UNITS / S::WARPS;
    const u32     lane = threadIdx.x & 31, first = (threadIdx.x >> 5) * MINE, to = place.own + first * S::UNIT_BYTES + lane * 16;
    if constexpr (S::IN_PAIRS) {
        write_pairs<S>(place.own, sums);
    } else {
        UNROLLED for (i32 j = 0; j < S::GROUP_N / 8; j++) {
            u32 v[4];
            UNROLLED for (i32 i = 0; i < 4; i++) v[i] = bits_of(sums[j * 4 + i]);
            write_words(to + u32(j) * PATCH_BYTES, v[0], v[1], v[2], v[3]);
        }
    }
    if (part.blocks > 1) {
        async_fence();
        // A unit is one warp's, or of two.
        if constexpr (S::IN_PAIRS) named_barrier(1, S::GROUPS * 128);
        else __syncwarp();
        cluster_wait();                  // the others' barriers are there
        const u32 unit = first + lane, owner = part.owner_of<S>(unit), begin = part.first_unit<S>(owner);
        if (lane < MINE && owner != part.rank) {
            const u32 at = (part.rank - (part.rank > owner)) * (part.first_unit<S>(owner + 1) - begin) + unit - begin;
            const u32 to_block = part.first + owner;
            hand_over(cluster_address(place.received + at * S::UNIT_BYTES, to_block), place.own + unit * S::UNIT_BYTES, S::UNIT_BYTES, cluster_address(place.handed, to_block));
        }
    }
    named_barrier(1, S::GROUPS * 128);
}

template <class Word>
DEVICE u32 added(u32 a, u32 b)
{
    if constexpr (IS_REAL<Word>) return __float_as_uint(__uint_as_float(a) + __uint_as_float(b));
    return a + b;
}

// A lane's sums of one of a unit's HALVES, 1 or 2: EACH fours of neighbours of c's rows, `down` rows apart; lanes side by side have the fours of a row. A half
// is eight of the unit's rows. Of c's transpose a four is of four of these, a patch has eight rows of c, and a half is half of the patches.
template <class S, i32 HALVES>
struct UnitLane {
    static constexpr i32 FOURS = i32(S::UNIT) * 2, ROWS = 32 / FOURS, EACH = i32(S::UNIT) / HALVES, TURNED_FOURS = 4, TURNED_ROWS = 8;
    static_assert(16 / ROWS == i32(S::UNIT) && 8 % ROWS == 0 && S::UNIT % HALVES == 0, "a lane has as many fours either way, and of either half");
    bool is_turned;
    i32  row, column, down;              // of c
    u32  place;                          // of the first sum, in a unit

    DEVICE UnitLane(bool is_turned_, i32 half) : is_turned(is_turned_)
    {
        const i32 lane = i32(threadIdx.x) & 31, fours = is_turned ? TURNED_FOURS : FOURS, four = lane % fours, line = lane / fours;
        row = line + half * (is_turned ? EACH * TURNED_ROWS : 8), column = four * 4, down = is_turned ? TURNED_ROWS : ROWS;
        place = is_turned ? u32(half * EACH) * PATCH_BYTES + u32(four % 2 * 256 + four / 2 * 8 + line / 2 * 16 + line % 2 * 4) : u32(four / 2) * PATCH_BYTES + u32(half * 8 + line * 64 + four % 2 * 32);
    }
    DEVICE TileSpot spot(const TileSpot& first, i32 i) const { return {first.batch, first.row + i * down, first.column}; }
    // Of the unit that begins there, its sums as one block has them.
    template <bool IS_TURNED>
    DEVICE void read(u32 unit, u32 (&x)[EACH][4]) const
    {
        UNROLLED for (i32 i = 0; i < EACH; i++) {
            const u32 from = unit + place + (IS_TURNED ? u32(i) * PATCH_BYTES : u32(i * ROWS % 8 * 64 + i * ROWS / 8 * 8));
            if constexpr (IS_TURNED)
                UNROLLED for (u32 j = 0; j < 4; j++) x[i][j] = read_word(from + j * 64);
            else read_pair(from, x[i][0], x[i][1]), read_pair(from + 16, x[i][2], x[i][3]);
        }
    }
};

// Tiles of c's transpose are finished as c by halves, bytes and what is turned by the blocks alone, so that other kinds' code is not the larger for
// it; and not where folds meet, by lanes that have columns of the tile.
template <class S>
ANYWHERE constexpr bool may_be_apart()
{
    return S::IN_REGISTERS || S::IN_PLACE || S::Kind::BYTES == 1 || (!S::PROMOTE && S::Kind::STEP >= 64);
}
template <class S>
ANYWHERE constexpr bool may_be_turned()
{
    return FOLDS == 0 && may_be_apart<S>();
}
// What a warp finishes of a block's units: finish(unit, lane).
template <class S, i32 HALVES, class Finish>
DEVICE void finish_units(const GemmOutput& o, const SplitPart& part, Finish&& finish)
{
    ROLLED for (u32 i = part.begin_units<S>() * HALVES + (threadIdx.x >> 5); i < part.end_units<S>() * HALVES; i += S::WARPS)
        finish(i / HALVES, UnitLane<S, HALVES>(may_be_turned<S>() && o.is_turned, i32(i % HALVES)));
}

template <class S, i32 HALVES, i32 EACH>
DEVICE void add_unit(const SumsPlace& place, const SplitPart& part, const UnitLane<S, HALVES>& lane, u32 unit, u32 (&v)[EACH][4])
{
    const u32 begin = part.begin_units<S>(), mine = part.units<S>();
    ROLLED for (u32 block = 0; block < part.blocks; block++) {
        const u32 from = block == part.rank ? place.own + unit * S::UNIT_BYTES : place.received + ((block - (block > part.rank)) * mine + unit - begin) * S::UNIT_BYTES;
        u32 x[EACH][4];
        if (may_be_turned<S>() && lane.is_turned) lane.template read<true>(from, x);
        else lane.template read<false>(from, x);
        UNROLLED for (i32 i = 0; i < EACH; i++)
            UNROLLED for (i32 j = 0; j < 4; j++) v[i][j] = block == 0 ? x[i][j] : added<typename S::Word>(v[i][j], x[i][j]);
    }
}

// Fours whose store is one access, `down` rows apart, of those that begin above row `end`.
template <int EACH>
DEVICE void store_fours(const GemmOutput& o, const TileSpot& first, i32 down, i32 end, const u32 (&v)[EACH][4])
{
    const bool is_half = is_of_halves(o);
    const i64  next = down * o.c_row * (is_half ? 2 : 4);
    char*      to = place_of(o, first);
    UNROLLED for (i32 i = 0; i < EACH; i++) {
        if (first.row + i * down < end) {
            if (!is_half) *reinterpret_cast<uint4*>(to) = make_uint4(v[i][0], v[i][1], v[i][2], v[i][3]);
            else
                *reinterpret_cast<uint2*>(to) = make_uint2(two_halves(result_type(o), __uint_as_float(v[i][0]), __uint_as_float(v[i][1])),
                                                           two_halves(result_type(o), __uint_as_float(v[i][2]), __uint_as_float(v[i][3])));
        }
        to += next;
    }
}

// A block's sums that are no numbers, from the operands.
DEVICE void sum_four_again(const PlainOperands& plain, const TileSpot& at, i32 valid, u32 (&v)[4])
{
    ROLLED for (i32 j = 0; j < valid; j++) {
        const u32 sum = j == 0 ? v[0] : j == 1 ? v[1] : j == 2 ? v[2] : v[3];
        if (!is_no_number(sum)) continue;
        const u32 again = sum_again(plain, {at.batch, at.row, at.column + j});
        UNROLLED for (i32 i = 0; i < 4; i++) v[i] = i == j ? again : v[i];
    }
}

DEVICE void store_partial(const GemmSplitNumbers& g, i32 split, const TileSpot& at, i32 valid, const u32 (&v)[4])
{
    const i32    m = g.output.m, n = g.output.n;
    float* const to = g.partial + (i64(split) * g.batches + at.batch) * m * n + i64(at.row) * n + at.column;
    if (valid == 4 && n % 4 == 0) *reinterpret_cast<uint4*>(to) = make_uint4(v[0], v[1], v[2], v[3]);
    else
        UNROLLED for (i32 j = 0; j < 4; j++)
            if (j < valid) to[j] = __uint_as_float(v[j]);
}

// Parts of a unit's folds: of its 16 rows or its columns. rows: of c, and of the tile.
template <class S, int FOLD = 0>
DEVICE void fold_unit(const GemmOutput& o, const UnitLane<S, 1>& lane, const TileSpot& first, i32 rows, const EpilogueTerms<4> (&terms)[UnitLane<S, 1>::EACH])
{
    constexpr i32 EACH = UnitLane<S, 1>::EACH, FOURS = UnitLane<S, 1>::FOURS, ROWS = UnitLane<S, 1>::ROWS;
    if constexpr (FOLD < FOLDS) {
        if constexpr (OVER_A_ROW) {
            UNROLLED for (i32 i = 0; i < EACH; i++) {
                const u32 all = fold_lanes<1, FOURS>(TextTwo<FOLD>(), fold_tree(TextTwo<FOLD>(), terms[i].of[FOLD]));
                const i32 row = first.row + i * ROWS;
                if (lane.column == 0 && row < rows && first.column < o.n) put_part(o.epilogue, FIRST_FOLD + FOLD, first.batch, row, first.column / (FOURS * 4), all);
            }
        } else {
            UNROLLED for (i32 j = 0; j < 4; j++) {
                u32 down[EACH];
                UNROLLED for (i32 i = 0; i < EACH; i++) down[i] = terms[i].of[FOLD][j];
                const u32 all = fold_lanes<FOURS, 32>(TextTwo<FOLD>(), fold_tree(TextTwo<FOLD>(), down));
                if (lane.row == 0 && first.row < rows && first.column + j < o.n) put_part(o.epilogue, FIRST_FOLD + FOLD, first.batch, first.row / PART_ROWS, first.column + j, all);
            }
        }
        fold_unit<S, FOLD + 1>(o, lane, first, rows, terms);
    }
}

// Of the first of a lane's fours of a unit.
template <class S, i32 HALVES>
DEVICE TileSpot unit_spot(const SplitPart& part, const UnitLane<S, HALVES>& lane, u32 unit)
{
    constexpr u32 A_STRIP = S::UNITS / S::WARPS;
    const i32 warp = i32(unit / A_STRIP), down = warp % (S::DOWN * 4), across = warp / (S::DOWN * 4);
    const i32 row = part.at.row + down * 16, column = part.at.column + across * S::GROUP_N + i32(unit % A_STRIP * S::UNIT) * 8;
    return {part.at.batch, (lane.is_turned ? column : row) + lane.row, (lane.is_turned ? row : column) + lane.column};
}

constexpr u64 SECTOR = 32;               // bytes that the second cache takes at once: one lane asks for them
// Operands that are asked for, into the second cache, and taken from memory later: where neighbours are near each other. Of those that are apart a tile asks
// for as many pieces as it takes itself: 128 x 128 of f32 took 2.6 us longer so (H100, 2026-11-26).
struct IntoCache {
    const Epilogue&     epilogue;
    const EpilogueSpot& at;

    template <int TENSOR, int KIND, int VECTOR, class T, int COUNT>
    DEVICE void fetch(Arriving<T, COUNT>&) const
    {
        const EpilogueTensor& t = epilogue.tensor[TENSOR];
        if (at.valid <= 0 || (t.together != 0 && t.column != 1)) return;
        const T* const from = row_of<TENSOR, T>(epilogue, at) + at.column * t.column;
        if (reinterpret_cast<u64>(from) % SECTOR < COUNT * sizeof(T)) asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
    }
};

// By the threads that multiply, before they do: what the epilogue will read of a block's units.
template <class S>
DEVICE void ask_for_operands(const GemmSplitNumbers& g, const SplitPart& part)
{
    if constexpr (HAS_EPILOGUE && !HAS_LIST) {
        if (g.splits > 1) return;
        finish_units<S, 2>(g.output, part, [&](u32 unit, const UnitLane<S, 2>& lane) {
            const TileSpot first = unit_spot(part, lane, unit);
            ROLLED for (i32 i = 0; i < lane.EACH; i++) {
                const TileSpot      at = lane.spot(first, i);
                EpilogueOperands<4> none;
                fetch_operands(IntoCache{g.output.epilogue, spot_of(at, valid_of(g.output, at))}, none);
            }
        });
    }
}

// receive: what the block is sent is there behind it.
template <class S, i32 HALVES, class Receive>
DEVICE void store_part(const GemmSplitNumbers& g, const SumsPlace& sums, const SplitPart& part, Receive&& receive)
{
    using Word = typename S::Word;
    constexpr i32 EACH = UnitLane<S, HALVES>::EACH;
    const GemmOutput& o = g.output;
    const bool is_whole = stays_whole<Word>(o), is_half = is_of_halves(o);
    const bool is_apart = may_be_apart<S>() && o.store == STORE_APART, is_bare = !HAS_EPILOGUE && IS_REAL<Word> != is_whole && g.splits == 1;
    const bool are_fours = is_bare && o.store <= STORE_FOURS && (is_half || result_type(o) == F32 || is_whole);
    const i32  below = part.at.row + g.tile_rows, beyond = part.at.column + g.tile_columns;  // of the tile's rows and columns that count
    finish_units<S, HALVES>(o, part, [&](u32 unit, const UnitLane<S, HALVES>& lane) {
        const i32      rows = min(o.m, lane.is_turned ? beyond : below), columns = min(o.n, lane.is_turned ? below : beyond);
        const TileSpot first = unit_spot(part, lane, unit);
        const auto     place = [&](i32 i) { return lane.spot(first, i); };
        const auto     valid_at = [&](const TileSpot& at) { return at.row < rows ? min(4, columns - at.column) : 0; };
        EpilogueOperands<4> operands[EACH];
        if (g.splits == 1)
            UNROLLED for (i32 i = 0; i < EACH; i++) fetch_operands(FromMemory{o.epilogue, spot_of(place(i), valid_at(place(i)))}, operands[i]);
        receive();
        u32 v[EACH][4];
        add_unit(sums, part, lane, unit, v);
        u32 most = 0;                    // of sums of planes
        if constexpr (S::PLANES)
            UNROLLED for (i32 i = 0; i < EACH * 4; i++) most = g.planes == 3 ? max(most, v[i / 4][i % 4] & 0x7fffffff) : 0;
        if (are_fours && !is_no_number(most) && first.column + 4 <= columns) return store_fours(o, first, lane.down, rows, v);
        EpilogueTerms<4> terms[EACH];
        if constexpr (FOLDS > 0)
            UNROLLED for (i32 i = 0; i < EACH; i++) leave_out(terms[i], 0);
        // With an epilogue a text of each, so that what they read is in registers; but one for all with a list, which is long, and which what it reads is moved to.
        constexpr bool IS_TEXT_OF_EACH = HAS_EPILOGUE && !HAS_LIST;
        constexpr i32  TEXTS = IS_TEXT_OF_EACH ? EACH : 1;
        _Pragma("unroll TEXTS") for (i32 i = 0; i < EACH; i++) {
            const TileSpot at = place(i);
            const i32      valid = valid_at(at);
            u32            w[4];
            UNROLLED for (i32 k = 0; k < EACH; k++)
                if (k == i)
                    UNROLLED for (i32 j = 0; j < 4; j++) w[j] = v[k][j];
            EpilogueOperands<4> read = operands[IS_TEXT_OF_EACH ? i : 0];
            if constexpr (HAS_LIST)
                UNROLLED for (i32 k = 1; k < EACH; k++)
                    if (k == i) read = operands[k];
            if (valid <= 0) continue;
            if (g.splits > 1) {
                store_partial(g, part.split, at, valid, w);
                continue;
            }
            if constexpr (S::PLANES)
                if (g.planes == 3) sum_four_again(g.plain, at, valid, w);
            finish_four<Word>(o, at, valid, read, w, terms[IS_TEXT_OF_EACH ? i : 0]);
            if constexpr (FOLDS > 0) leave_out(terms[i], valid);
            if (!HAS_RESULT) continue;
            if (is_apart) store_apart(o, at, valid, w, is_whole);
            else store_four(o, at, valid, w, is_whole);
        }
        if constexpr (FOLDS > 0) fold_unit<S>(o, lane, first, rows, terms);
    });
}

// What a block's sums are handed over for. What the epilogue reads of a warp's first unit comes while the others' sums do.
template <class S>
DEVICE void finish_part(const GemmSplitNumbers& g, const SumsPlace& sums, const SplitPart& part)
{
    wait_for_launch_before();
    bool is_there = part.blocks == 1;
    const auto receive = [&] {
        if (!is_there) barrier_wait(sums.handed, 0), __syncwarp(), cluster_arrive();
        is_there = true;
    };
    // Where there are fewer units than warps each is two warps'; of folds a part is a unit's. Lists, which are long, have one text.
    const bool by_halves = FOLDS == 0 && (HAS_LIST || part.units<S>() * 2 <= S::WARPS);
    if (by_halves) store_part<S, FOLDS == 0 ? 2 : 1>(g, sums, part, receive);
    else store_part<S, HAS_LIST ? 2 : 1>(g, sums, part, receive);
    receive();
    // No block leaves before all have what it sent them.
    if (part.blocks > 1) __syncwarp(), cluster_wait();
}

}  // namespace
}  // namespace ng::kernels
