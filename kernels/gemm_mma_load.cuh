// Parts of an operand on their way into shared memory: by copies that the hardware waits for, or through registers.
//
// A tile has 64 bytes of depth, of doubles 128. In shared memory it is rows of chunks of 16 bytes: where depth is near
// (NEAR_DEPTH) a row is a line's depth, where lines are (NEAR_LINE) it is a step of depth. Chunks are turned around in a row by `flip`, so that
// neither writing rows nor reading a warp's part of a product meets one bank twice.
#pragma once
#include "kernels/gemm_mma.h"

namespace ng::kernels {
namespace {

constexpr int CHUNK_BYTES = 16;
constexpr i64 EVERY_TILE = i64(1) << 62;   // as rest_below() says it

template <int BYTES> struct UnsignedOf;
template <> struct UnsignedOf<1> { using Type = u8; };
template <> struct UnsignedOf<2> { using Type = u16; };
template <> struct UnsignedOf<4> { using Type = u32; };
template <> struct UnsignedOf<8> { using Type = u64; };

struct alignas(8) TwoWords { u32 word[2]; };
struct alignas(16) FourWords { u32 word[4]; };

template <int BYTES_, int LINES_, Near NEAR_, int THREADS_>
struct OperandTile {
    static constexpr int  BYTES = BYTES_, LINES = LINES_, THREADS = THREADS_, DEPTH_BYTES = mma_depth_bytes(BYTES), DEPTH = DEPTH_BYTES / BYTES, IN_CHUNK = CHUNK_BYTES / BYTES;
    static constexpr Near NEAR = NEAR_;
    static constexpr int  ROWS = NEAR == NEAR_DEPTH ? LINES : DEPTH, ROW_BYTES = NEAR == NEAR_DEPTH ? DEPTH_BYTES : LINES * BYTES;
    static constexpr int  CHUNKS = ROW_BYTES / CHUNK_BYTES, SIZE = LINES * DEPTH_BYTES, EACH = (ROWS * CHUNKS + THREADS - 1) / THREADS;
    static_assert((ROWS * CHUNKS % THREADS == 0 || EACH == 1) && THREADS % CHUNKS == 0, "threads copy as many chunks each, all in one column, or some copy one");

    DEVICE static u32 flip(u32 row)
    {
        // Eight chunks are all banks: of shorter rows several are turned alike. Of bytes whose lines are near, blocks are of rows 0, 1, 4, 5 and so on (block_place).
        if constexpr (NEAR == NEAR_DEPTH) return BYTES == 8 ? (row & 3) << 1 : row >> 1 & 3;
        if constexpr (BYTES == 1) return (row & 1) | (row >> 2 & 3) << 1;
        if constexpr (BYTES == 2) return CHUNKS >= 8 ? row & 7 : CHUNKS == 4 ? row >> 1 & 3 : row >> 2 & 1;
        return CHUNKS >= 8 ? (row & 3) << 1 : (row >> 1 & 1) << 1;
    }
    DEVICE static u32 place(u32 row, u32 chunk) { return row * ROW_BYTES + (chunk ^ flip(row)) * CHUNK_BYTES; }
};

DEVICE i32 clamped(i64 x, i32 most) { return x < 0 ? 0 : x > most ? most : i32(x); }

// Where a tile's first element is, and how many lines there are from it on.
struct TileBegin {
    i64 batch, line, depth, lines_left;
};
DEVICE const char* address_of(const MmaOperand& o, const TileBegin& begin, i64 line, i64 depth)
{
    return static_cast<const char*>(o.data) + (begin.batch * o.batch + (begin.line + line) * o.line + (begin.depth + depth) * o.depth) * bytes_of(o.type);
}

// ---- by copies of the hardware -----------------------------------------------------------------------------------------

// The first `count` elements of a chunk at a multiple of 16 bytes, and zeros, stored at once.
template <int BYTES>
DEVICE void copy_cut(u32 to, const char* from, i32 count)
{
    using Element = typename UnsignedOf<BYTES>::Type;
    u32 x[4] = {};
    UNROLLED for (int e = 0; e < CHUNK_BYTES / BYTES; e++) {
        const u64 bits = e < count ? u64(reinterpret_cast<const Element*>(from)[e]) : 0;
        if constexpr (BYTES == 8) x[2 * e] = u32(bits), x[2 * e + 1] = u32(bits >> 32);
        else x[e * BYTES / 4] |= u32(bits) << e * BYTES % 4 * 8;
    }
    store_four(to, x);
}

// A thread's chunks of each tile, one tile after the other; what is not read 16 bytes at once is copied by pieces: an element of any stride, of halves four neighbours.
template <class TILE>
struct AsyncReader {
    const char* from;
    i64         apart, step, near;       // bytes between the thread's chunks, from tile to tile, between neighbours of a chunk
    i32         row, chunk, room;        // room: lines from `row` on, or elements of the chunk
    i32         least;                   // so many of a chunk's elements have to be there for all 16 bytes to be read; 0: they come by pieces
    bool        is_cut;                  // the tile's lines end within a chunk, of whatever thread

    static constexpr int APART = TILE::THREADS / TILE::CHUNKS, PIECE = TILE::BYTES == 2 ? MMA_FOUR : 1, PIECE_BYTES = PIECE * TILE::BYTES;

    DEVICE AsyncReader(const MmaOperand& o, const TileBegin& begin)
    {
        constexpr bool IS_DEEP = TILE::NEAR == NEAR_DEPTH;
        row = i32(threadIdx.x) / TILE::CHUNKS, chunk = i32(threadIdx.x) % TILE::CHUNKS;
        const i32 first = chunk * TILE::IN_CHUNK;
        from = IS_DEEP ? address_of(o, begin, row, first) : address_of(o, begin, first, row);
        apart = (IS_DEEP ? o.line : o.depth) * APART * TILE::BYTES, step = o.depth * TILE::DEPTH * TILE::BYTES;
        near = (IS_DEEP ? o.depth : o.line) * TILE::BYTES;
        room = IS_DEEP ? clamped(begin.lines_left - row, TILE::LINES) : clamped(begin.lines_left - first, TILE::IN_CHUNK);
        least = !o.is_wide ? 0 : o.is_padded ? 1 : TILE::IN_CHUNK;
        is_cut = !IS_DEEP && begin.lines_left < TILE::LINES && begin.lines_left % TILE::IN_CHUNK != 0;
    }
    // left: steps of depth from this tile on. Elements of each of the thread's chunks, where its row is there; and whether that is.
    DEVICE i32 count(i32 left) const { return TILE::NEAR == NEAR_DEPTH ? left - chunk * TILE::IN_CHUNK : room; }
    DEVICE bool is_there(int c, i32 left) const { return TILE::NEAR == NEAR_DEPTH ? c * APART < room : row + c * APART < left; }
    // Of a chunk that ends behind the row nothing is read there: zeros come for it, and then what copy_rest() brings.
    DEVICE void copy(u32 to, i64 depth_left)
    {
        const i32   left = clamped(depth_left, TILE::DEPTH);
        const char* chunk_from = from;
        if (TILE::ROWS < APART && row >= TILE::ROWS) return;
        if (TILE::BYTES == 1 || least > 0) {
            const bool is_whole = count(left) >= least;
            UNROLLED for (int c = 0; c < TILE::EACH; c++, chunk_from += apart)
                copy_async<CHUNK_BYTES>(to + TILE::place(u32(row + c * APART), u32(chunk)), chunk_from, is_whole && is_there(c, left));
        } else if constexpr (TILE::BYTES > 1) {
            UNROLLED for (int c = 0; c < TILE::EACH; c++, chunk_from += apart) {
                const u32 place = to + TILE::place(u32(row + c * APART), u32(chunk));
                const i32 here = is_there(c, left) ? count(left) : 0;
                UNROLLED for (int e = 0; e < TILE::IN_CHUNK; e += PIECE) copy_async<PIECE_BYTES>(place + u32(e) * TILE::BYTES, chunk_from + e * near, e < here);
            }
        }
        from += step;
    }
    // Tiles from which fewer steps of depth are left have something for copy_rest(), for all threads of the block alike.
    DEVICE i64 rest_below(i64 depth) const
    {
        if (least <= 1) return 0;
        if constexpr (TILE::NEAR == NEAR_DEPTH) return depth % TILE::IN_CHUNK != 0 ? TILE::DEPTH : 0;
        return is_cut ? EVERY_TILE : 0;
    }
    // When the thread's copies of the tile are done, and before others read it. tiles: from that tile to the one that is copied next.
    DEVICE void copy_rest(u32 to, i64 depth_left, i64 tiles) const
    {
        const i32 left = clamped(depth_left, TILE::DEPTH), here = count(left);
        if (here <= 0 || here >= least || (TILE::ROWS < APART && row >= TILE::ROWS)) return;
        const char* chunk_from = from - tiles * step;
        ROLLED for (int c = 0; c < TILE::EACH; c++, chunk_from += apart)
            if (is_there(c, left)) copy_cut<TILE::BYTES>(to + TILE::place(u32(row + c * APART), u32(chunk)), chunk_from, here);
    }
};

// ---- through registers -------------------------------------------------------------------------------------------------

// Two codes of 8 bits as halves, those of NaN too.
DEVICE u32 halves_of_codes(i32 type, u32 low, u32 high) { return type == E5M2 ? low << 8 | high << 24 : halves_of_e4m3(low | high << 8); }

// The first `count` of eight halves side by side, at any even address.
DEVICE void read_halves(const char* from, i32 count, u32 (&x)[4])
{
    const u16* const halves = reinterpret_cast<const u16*>(from);
    const u64        address = reinterpret_cast<u64>(from);
    if (count == 8 && address % 4 == 0) {
        UNROLLED for (int i = 0; i < 4; i++) x[i] = reinterpret_cast<const u32*>(from)[i];
        return;
    }
    if (count == 8) {
        u32 word = u32(halves[0]) << 16;
        UNROLLED for (int i = 0; i < 4; i++) {
            const u32 next = i < 3 ? reinterpret_cast<const u32*>(from + 2)[i] : halves[7];
            x[i] = word >> 16 | next << 16, word = next;
        }
        return;
    }
    UNROLLED for (int i = 0; i < 4; i++) x[i] = (2 * i < count ? u32(halves[2 * i]) : 0) | (2 * i + 1 < count ? u32(halves[2 * i + 1]) << 16 : 0);
}
// The same of sixteen bytes, at any address.
DEVICE void read_bytes(const char* from, i32 count, u32 (&x)[4])
{
    const u8* const bytes = reinterpret_cast<const u8*>(from);
    const u64       address = reinterpret_cast<u64>(from);
    UNROLLED for (int i = 0; i < 4; i++) {
        if (address % 4 == 0 && 4 * i + 4 <= count) x[i] = reinterpret_cast<const u32*>(from)[i];
        else {
            x[i] = 0;
            UNROLLED for (int j = 0; j < 4; j++) x[i] |= 4 * i + j < count ? u32(bytes[4 * i + j]) << 8 * j : 0;
        }
    }
}

// A chunk of halves: neighbours are `near` bytes apart, of 16 bits or codes of 8.
DEVICE void read_chunk_of_halves(i32 type, const char* from, i64 near, i32 count, u32 (&x)[4])
{
    if (bytes_of(type) == 2) {
        if (near == 2) return read_halves(from, count, x);
        UNROLLED for (int i = 0; i < 4; i++) {
            const u32 low = 2 * i < count ? *reinterpret_cast<const u16*>(from + 2 * i * near) : 0;
            const u32 high = 2 * i + 1 < count ? *reinterpret_cast<const u16*>(from + (2 * i + 1) * near) : 0;
            x[i] = low | high << 16;
        }
        return;
    }
    const bool is_aligned = near == 1 && count == 8 && reinterpret_cast<u64>(from) % 4 == 0;
    UNROLLED for (int i = 0; i < 2; i++) {
        u32 word = 0;
        if (is_aligned) word = reinterpret_cast<const u32*>(from)[i];
        else UNROLLED for (int j = 0; j < 4; j++) word |= 4 * i + j < count ? u32(*reinterpret_cast<const u8*>(from + (4 * i + j) * near)) << 8 * j : 0;
        x[2 * i] = halves_of_codes(type, word & 0xff, word >> 8 & 0xff), x[2 * i + 1] = halves_of_codes(type, word >> 16 & 0xff, word >> 24);
    }
}
DEVICE void read_chunk_of_bytes(const char* from, i64 near, i32 count, u32 (&x)[4])
{
    if (near == 1) return read_bytes(from, count, x);
    UNROLLED for (int i = 0; i < 4; i++) {
        x[i] = 0;
        UNROLLED for (int j = 0; j < 4; j++) x[i] |= 4 * i + j < count ? u32(*reinterpret_cast<const u8*>(from + (4 * i + j) * near)) << 8 * j : 0;
    }
}

// Elements of 1 or 2 bytes through any strides. Where the operand is turned, a warp's threads are in one column of chunks.
template <class TILE>
struct HeldReader {
    const char* from;
    i64         row_stride, chunk_stride, step, near;
    i32         row, chunk, rows_apart, chunks_apart, type;
    i32         lines;                   // from the tile's first on
    u32         held[TILE::EACH][4];
    bool        is_wide;

    static_assert(TILE::NEAR == NEAR_LINE || TILE::THREADS % TILE::ROWS == 0, "turned, threads have one row each");

    DEVICE HeldReader(const MmaOperand& o, const TileBegin& begin) : type(o.type), is_wide(o.is_wide)
    {
        constexpr bool IS_DEEP = TILE::NEAR == NEAR_DEPTH;
        const i32      thread = i32(threadIdx.x), bytes = bytes_of(type);
        row = thread / TILE::CHUNKS, chunk = thread % TILE::CHUNKS, rows_apart = TILE::THREADS / TILE::CHUNKS, chunks_apart = 0;
        if (IS_DEEP && o.is_turned) row = thread % TILE::ROWS, chunk = thread / TILE::ROWS, rows_apart = 0, chunks_apart = TILE::THREADS / TILE::ROWS;
        near = (IS_DEEP ? o.depth : o.line) * bytes, row_stride = (IS_DEEP ? o.line : o.depth) * bytes, chunk_stride = near * TILE::IN_CHUNK;
        from = address_of(o, begin, 0, 0) + row * row_stride + chunk * chunk_stride;
        step = o.depth * TILE::DEPTH * bytes;
        lines = clamped(begin.lines_left, TILE::LINES);
    }
    DEVICE void read(i64 depth_left)
    {
        const i32 left = clamped(depth_left, TILE::DEPTH);
        UNROLLED for (int c = 0; c < TILE::EACH; c++) {
            const i32 r = row + c * rows_apart, k = chunk + c * chunks_apart;
            const i32 count = TILE::NEAR == NEAR_DEPTH ? (r < lines ? clamped(left - k * TILE::IN_CHUNK, TILE::IN_CHUNK) : 0)
                                                       : (r < left ? clamped(lines - k * TILE::IN_CHUNK, TILE::IN_CHUNK) : 0);
            const char* const at = from + c * (rows_apart * row_stride + chunks_apart * chunk_stride);
            if (is_wide && count == TILE::IN_CHUNK) {
                const FourWords wide = *reinterpret_cast<const FourWords*>(at);
                UNROLLED for (int i = 0; i < 4; i++) held[c][i] = wide.word[i];
            } else if constexpr (TILE::BYTES == 2) {
                read_chunk_of_halves(type, at, near, count, held[c]);
            } else {
                read_chunk_of_bytes(at, near, count, held[c]);
            }
        }
        from += step;
    }
    DEVICE void put(u32 to) const
    {
        UNROLLED for (int c = 0; c < TILE::EACH; c++) store_four(to + TILE::place(u32(row + c * rows_apart), u32(chunk + c * chunks_apart)), held[c]);
    }
};

// ---- before the product ------------------------------------------------------------------------------------------------

// One chunk of an operand as it is laid down: elements of any type and stride as those that are multiplied.
template <int BYTES>
DEVICE FourWords chunk_laid(i32 type, const char* from, i64 near, i32 count)
{
    FourWords x;
    if constexpr (BYTES == 4) {
        UNROLLED for (int e = 0; e < 4; e++) x.word[e] = __float_as_uint(e < count ? load<float>(type, from + e * near, 0) : 0.0f);
    } else if constexpr (BYTES == 8) {
        UNROLLED for (int e = 0; e < 2; e++) {
            const u64 bits = u64(__double_as_longlong(e < count ? load<double>(type, from + e * near, 0) : 0.0));
            x.word[2 * e] = u32(bits), x.word[2 * e + 1] = u32(bits >> 32);
        }
    } else if constexpr (BYTES == 2) {
        read_chunk_of_halves(type, from, near, count, x.word);
    } else {
        read_chunk_of_bytes(from, near, count, x.word);
    }
    return x;
}

// An operand laid down as tiles are read at once, [batches, rows, pitch]. A thread has AT_ONCE chunks on their way.
template <int BYTES>
DEVICE void mma_lay(const MmaLayNumbers& n)
{
    constexpr int IN_CHUNK = CHUNK_BYTES / BYTES, AT_ONCE = 4;
    const u64     chunks = u64(n.pitch / IN_CHUNK), rows = u64(n.rows), all = chunks * rows * u64(n.batches);
    const i64     bytes = bytes_of(n.from.type), near = (n.is_deep ? n.from.depth : n.from.line) * bytes, far = (n.is_deep ? n.from.line : n.from.depth) * bytes;
    ROLLED for (u64 begin = first_thread(); begin < all; begin += AT_ONCE * all_threads()) {
        FourWords x[AT_ONCE];
        u64       place[AT_ONCE];
        UNROLLED for (int j = 0; j < AT_ONCE; j++) {
            const u64 i = begin + u64(j) * all_threads();
            if (i >= all) continue;
            // Neighbouring threads read neighbours.
            u64 rest, row, chunk, batch;
            if (n.from.is_turned == n.is_deep) divide(i, rows, rest, row), divide(rest, chunks, batch, chunk);
            else divide(i, chunks, rest, chunk), divide(rest, rows, batch, row);
            const i64         first = i64(chunk) * IN_CHUNK;
            const char* const from = static_cast<const char*>(n.from.data) + i64(batch) * n.from.batch * bytes + i64(row) * far + first * near;
            place[j] = (batch * rows + row) * chunks + chunk;
            x[j] = chunk_laid<BYTES>(n.from.type, from, near, clamped(n.length - first, IN_CHUNK));
        }
        UNROLLED for (int j = 0; j < AT_ONCE; j++)
            if (begin + u64(j) * all_threads() < all) static_cast<FourWords*>(n.to)[place[j]] = x[j];
    }
}

}  // namespace
}  // namespace ng::kernels
