// Words and bytes that the tensor cores want by depth, where rows or columns lie side by side: how words of a come to registers, and where sums of them
// go, how b's and bytes of a are turned in shared memory.
//
//   shared    boxes of 32 of depth, each a line of 32 rows (128 bytes), 16-byte pieces swizzled by depth % 8
//   rows      warp w of a group has half of the 32 rows of box w / 2. Of an instruction's rows i and i + 8, whatever they are called, a
//             thread has two that lie side by side, i / 2 % 2 * 16 + i / 4 * 4 + i % 2 * 2 + w % 2 * 8 and the next: then no two lanes of
//             16 that read eight bytes each have the same banks
//   columns   of b in boxes of 32 likewise, each a line of 32 columns: a thread turns four of four of depth, in place
//   bytes     a box of 128 of depth, each a line of 128 rows: a thread turns four rows of 16 of depth, in place
#pragma once
#include "kernels/gemm_sm90_store.cuh"

namespace ng::kernels {
namespace {

// A step of a warpgroup's rows: of 64 each and eight of depth, as an instruction takes them.
template <int BLOCKS>
struct TurnedFragments {
    u32 of[BLOCKS][4][4];
};

// Pieces of 16 bytes, and of those which half, of a lane's rows in its box.
DEVICE u32 turned_piece()
{
    const u32 lane = threadIdx.x & 31, i = lane >> 2;
    return (i >> 1 & 1) * 4 + (i >> 2) + (threadIdx.x >> 5 & 1) * 2;
}
DEVICE u32 turned_half() { return threadIdx.x >> 2 & 1; }
DEVICE RowsOfThread turned_rows() { return {i32(threadIdx.x >> 6 & 1) * 32 + i32(turned_piece() * 4 + turned_half() * 2), 1}; }

template <int BLOCKS>
DEVICE void read_turned(u32 from, TurnedFragments<BLOCKS>& f)
{
    const u32 depth = threadIdx.x & 3, first = from + (threadIdx.x >> 6 & 1) * 4096 + depth * 128 + ((turned_piece() ^ depth) << 4) + turned_half() * 8;
    UNROLLED for (u32 block = 0; block < BLOCKS; block++)
        UNROLLED for (u32 k = 0; k < 4; k++) {
            const u32 at = first + block * 8192 + k * 1024;
            u32 (&a)[4] = f.of[block][k];
            read_pair(at, a[0], a[1]), read_pair((at ^ 64) + 512, a[2], a[3]);
        }
}

// Boxes of 32 columns of b as lines of columns, 128 bytes of depth, 16-byte pieces swizzled by column % 8. Eight lanes side by side have all pieces of a line, and write so.
template <int COLUMNS>
DEVICE void turn_columns(u32 b)
{
    constexpr u32 EACH = COLUMNS / 64 > 0 ? COLUMNS / 64 : 1, A_BOX = 64;        // fours of fours
    const u32  thread = threadIdx.x & 127, four = thread & 7, depth = four ^ (thread >> 3 & 7);
    const bool is_needed = COLUMNS >= 64 || thread < COLUMNS * 2;
    u32 x[EACH][4][4];
    UNROLLED for (u32 i = 0; i < EACH; i++)
        UNROLLED for (u32 j = 0; j < 4; j++)
            if (is_needed) read_words(b + (thread / A_BOX + i * 2) * 4096 + (depth * 4 + j) * 128 + ((four ^ (depth * 4 + j & 7)) << 4), x[i][j]);
    named_barrier(2, 128);
    UNROLLED for (u32 i = 0; i < EACH; i++)
        UNROLLED for (u32 j = 0; j < 4; j++)
            if (is_needed) write_words(b + (thread / A_BOX + i * 2) * 4096 + (four * 4 + j) * 128 + ((depth ^ (four * 4 + j & 7)) << 4), x[i][0][j], x[i][1][j], x[i][2][j], x[i][3][j]);
    async_fence();
    named_barrier(2, 128);
}

// A box of 128 lines of depth as 128 lines of rows, by two warpgroups. A warp's lanes read all of a line, and write, eight at a time, all pieces of lines.
DEVICE void turn_bytes(u32 a)
{
    const u32 lane = threadIdx.x & 31, depth = (threadIdx.x >> 5 & 7) ^ (lane & 7), from = a + depth * 2048 + (lane & 3) * 4;
    u32 x[4][4];                         // [four of depth][row]
    UNROLLED for (u32 j = 0; j < 16; j++) x[j / 4][j % 4] = read_word(from + j * 128 + ((lane >> 2 ^ (j & 7)) << 4));
    UNROLLED for (u32 j = 0; j < 4; j++) turn_four(x[j]);
    named_barrier(2, 256);
    UNROLLED for (u32 i = 0; i < 4; i++) {
        const u32 row = lane * 4 + i;
        write_words(a + row * 128 + ((depth ^ (row & 7)) << 4), x[0][i], x[1][i], x[2][i], x[3][i]);
    }
    async_fence();
    named_barrier(2, 256);
}

// Sums of 64 rows of a warpgroup's.
template <int BLOCKS, int WORDS>
DEVICE float (&sums_of(float (&d)[BLOCKS][WORDS], i32 block))[WORDS] { return d[block]; }
template <int WORDS>
DEVICE float (&sums_of(float (&d)[WORDS], i32))[WORDS] { return d; }

// A step in two parts: its fragments, when it is there, and its products. Those of two steps take turns, so that one is read while the other is multiplied.
template <class S, class Multiplier>
DEVICE void read_step(const Multiplier& m, TurnedFragments<S::BLOCKS>& f)
{
    barrier_wait(m.memory.full(m.turn.stage), m.turn.phase);
    const u32 a = m.memory.stages + m.turn.stage * S::STAGE;
    read_turned(a + (threadIdx.x >> 7) * S::BLOCKS * 8192, f);
    if constexpr (S::B_TURNED) turn_columns<S::TILE_N>(a + S::A_BYTES);
}
template <class S, class Multiplier>
DEVICE void run_step(Multiplier& m, bool is_sum, const TurnedFragments<S::BLOCKS>& f, typename Multiplier::Sums& d)
{
    const u32 at = m.turn.stage * (S::STAGE >> 4);
    products_fence();
    UNROLLED for (i32 k = 0; k < 4; k++)
        UNROLLED for (i32 block = 0; block < S::BLOCKS; block++) multiply_fragment(sums_of(d, block), f.of[block][k], m.b + (at + k * 2), (is_sum || k > 0), typename S::Kind());
    m.end_step();
}
template <class S, class Multiplier>
DEVICE void run_turned(Multiplier& m, i32 steps, typename Multiplier::Sums& d)
{
    TurnedFragments<S::BLOCKS> even, odd;
    read_step<S>(m, even);
    ROLLED for (i32 step = 0;;) {
        run_step<S>(m, step > 0, even, d);
        if (++step == steps) return;
        read_step<S>(m, odd);
        run_step<S>(m, true, odd, d);
        if (++step == steps) return;
        read_step<S>(m, even);
    }
}

// Two neighbours of c, of which `valid` are there.
DEVICE void store_two(const GemmOutput& o, char* to, i32 valid, float x, float y)
{
    const bool is_wide = o.c_type == F32, is_whole = o.store <= STORE_FOURS && valid > 1;
    if (is_wide && is_whole) *reinterpret_cast<float2*>(to) = make_float2(x, y);
    else if (is_whole) *reinterpret_cast<u32*>(to) = two_halves(o.c_type, x, y);
    else {
        const u32 both = is_wide ? 0 : two_halves(o.c_type, x, y);
        UNROLLED for (i32 i = 0; i < 2; i++) {
            if (i >= valid) continue;
            if (is_wide) reinterpret_cast<float*>(to)[i] = i == 0 ? x : y;
            else reinterpret_cast<u16*>(to)[i] = u16(both >> 16 * i);
        }
    }
}

// 64 rows of a warpgroup: c is f32, f16 or bf16, its rows or its columns side by side.
template <int WORDS>
DEVICE void store_fragments(const GemmOutput& o, const TileSpot& first, const float (&d)[WORDS])
{
    const bool  is_across = o.c_row != 1;        // a thread's neighbours are those of a row
    const i64   bytes = o.c_type == F32 ? 4 : 2;
    const i32   row = first.row + turned_rows().row, column = first.column + i32(threadIdx.x & 3) * 2;
    char*       to = static_cast<char*>(o.c) + (i64(first.batch) * o.c_batch + i64(row) * o.c_row + i64(column) * o.c_column) * bytes;
    const i64   other = (is_across ? o.c_row : o.c_column) * bytes, next = 8 * o.c_column * bytes;
    UNROLLED for (i32 j = 0; j < WORDS / 4; j++) {
        const float* const q = d + j * 4;
        const i32 rows = min(2, o.m - row), columns = min(2, o.n - column - j * 8);
        if (rows > 0 && columns > 0) {
            const i32 valid = is_across ? columns : rows;
            store_two(o, to, valid, q[0], is_across ? q[1] : q[2]);
            if ((is_across ? rows : columns) > 1) store_two(o, to + other, valid, is_across ? q[2] : q[1], q[3]);
        }
        to += next;
    }
}

}  // namespace
}  // namespace ng::kernels
