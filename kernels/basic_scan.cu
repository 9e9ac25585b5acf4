// Running folds along an axis, and folds of segments of rows, in f64 or integers modulo 2^64.
//
//   scan      y[i] = x[0] .. x[i] folded, along lines. Long lines are cut into chunks: their totals, a scan of the totals of
//             each line, then every chunk from what came before it. The cuts depend on shapes alone.
//     line_totals, scan_lines     a thread a chunk, neighbours take neighbouring lines
//     chunk_totals, scan_chunks   a block a chunk, SCAN_ITEMS elements a thread
//   segment   y[s] = x[offsets[s]] .. x[offsets[s + 1] - 1] folded. Chunks of rows that some segment holds whole are folded
//             once, so that no thread is long with a long segment.
//   shared    scan: item [SCAN_TILE + SCAN_TILE / SCAN_ITEMS], total [THREADS] of 8 bytes: 36 KiB; segment: one number a thread, 2 KiB
#include "kernels/elements.cuh"

namespace ng::kernels {
namespace {

constexpr int SCAN_ITEMS = 16, SCAN_TILE = THREADS * SCAN_ITEMS;

// ---- scan: a thread a chunk --------------------------------------------------------------------------------------------

struct Chunk {
    u64  line, chunk;
    i64  first, end;
    Spot at;
};
DEVICE Chunk chunk_of(const ScanNumbers& n, u64 line, u64 chunk)
{
    const i64 first = i64(chunk) * n.chunk, rest = n.count - first;
    return {line, chunk, first, first + (rest < n.chunk ? rest : n.chunk), spot_of(n.line, line)};
}

template <class A>
DEVICE void line_totals(const ScanNumbers& n)
{
    const u64 lines = u64(n.lines), all = lines * u64(n.chunks);
    const i64 flip = order_flip(n.type);
    for (u64 u = first_thread(); u < all; u += all_threads()) {
        const Chunk c = chunk_of(n, u % lines, u / lines);
        A           sum = identity_of<A>(n.how, n.type);
        ROLLED for (i64 i = c.first; i < c.end; i++) sum = folded(n.how, sum, load<A>(n.type, n.x, c.at.a + i * n.x_step), flip);
        static_cast<A*>(n.totals)[c.line * u64(n.chunks) + c.chunk] = sum;
    }
}

template <class A>
DEVICE void scan_lines(const ScanNumbers& n)
{
    const u64 lines = u64(n.lines), all = lines * u64(n.chunks);
    const i64 flip = order_flip(n.type);
    for (u64 u = first_thread(); u < all; u += all_threads()) {
        const Chunk c = chunk_of(n, u % lines, u / lines);
        A           sum = n.totals ? static_cast<const A*>(n.totals)[c.line * u64(n.chunks) + c.chunk] : identity_of<A>(n.how, n.type);
        ROLLED for (i64 i = c.first; i < c.end; i++) {
            const A before = sum;
            sum = folded(n.how, before, load<A>(n.type, n.x, c.at.a + i * n.x_step), flip);
            store(n.type, n.y, c.at.b + i * n.y_step, n.is_exclusive ? before : sum);
        }
    }
}

// ---- scan: a block a chunk ---------------------------------------------------------------------------------------------

template <class A>
struct ScanRoom {
    A item[SCAN_TILE + SCAN_TILE / SCAN_ITEMS], total[THREADS];
};
// Threads read SCAN_ITEMS neighbours each: one place is left free after as many.
DEVICE int padded(int i) { return i + i / SCAN_ITEMS; }

struct Folding {
    i32 how, type, is_exclusive;
    i64 flip;
};

// Scans `count` elements, at most SCAN_ITEMS a thread, beginning with carry; gives carry and all of them folded, if they fill the tile.
template <class A, class Load, class Store>
DEVICE A scan_tile(ScanRoom<A>& room, const Folding& f, int count, A carry, bool stores, const Load& load_item, const Store& store_item)
{
    const int threads = int(blockDim.x), t = int(threadIdx.x), items = (count + threads - 1) / threads;
    ROLLED for (int i = t; i < count; i += threads) room.item[padded(i)] = load_item(i);
    __syncthreads();
    const int first = t * items < count ? t * items : count, end = first + items < count ? first + items : count;
    A         sum = identity_of<A>(f.how, f.type);
    ROLLED for (int i = first; i < end; i++) sum = folded(f.how, sum, room.item[padded(i)], f.flip);
    room.total[t] = sum;
    __syncthreads();
    for (int step = 1; step < threads; step *= 2) {
        const A wider = t >= step ? folded(f.how, room.total[t - step], room.total[t], f.flip) : room.total[t];
        __syncthreads();
        room.total[t] = wider;
        __syncthreads();
    }
    const A all = folded(f.how, carry, room.total[threads - 1], f.flip);
    if (stores) {
        A run = t > 0 ? folded(f.how, carry, room.total[t - 1], f.flip) : carry;
        ROLLED for (int i = first; i < end; i++) {
            const A before = run;
            run = folded(f.how, before, room.item[padded(i)], f.flip);
            room.item[padded(i)] = f.is_exclusive ? before : run;
        }
        __syncthreads();
        ROLLED for (int i = t; i < count; i += threads) store_item(i, room.item[padded(i)]);
    }
    __syncthreads();
    return all;
}

template <class A>
DEVICE void chunk_totals(const ScanNumbers& n)
{
    __shared__ ScanRoom<A> room;
    const Folding f = {n.how, n.type, false, order_flip(n.type)};
    const u64     chunks = u64(n.chunks), all = u64(n.lines) * chunks;
    for (u64 u = blockIdx.x; u < all; u += gridDim.x) {
        const Chunk c = chunk_of(n, u / chunks, u % chunks);
        const A     total = scan_tile(room, f, int(c.end - c.first), identity_of<A>(n.how, n.type), false,
                                      [&](int i) { return load<A>(n.type, n.x, c.at.a + (c.first + i) * n.x_step); }, [](int, A) {});
        if (threadIdx.x == 0) static_cast<A*>(n.totals)[u] = total;
    }
}

// Each line's totals become what comes before each chunk.
template <class A>
DEVICE void scan_totals(const ScanNumbers& n)
{
    __shared__ ScanRoom<A> room;
    const Folding f = {n.how, n.type, true, order_flip(n.type)};
    for (u64 line = blockIdx.x; line < u64(n.lines); line += gridDim.x) {
        A* const totals = static_cast<A*>(n.totals) + line * u64(n.chunks);
        A        carry = identity_of<A>(n.how, n.type);
        for (i64 first = 0; first < n.chunks; first += SCAN_TILE) {
            const int count = n.chunks - first < SCAN_TILE ? int(n.chunks - first) : SCAN_TILE;
            carry = scan_tile(room, f, count, carry, true, [&](int i) { return totals[first + i]; }, [&](int i, A v) { totals[first + i] = v; });
        }
    }
}

template <class A>
DEVICE void scan_chunks(const ScanNumbers& n)
{
    __shared__ ScanRoom<A> room;
    const Folding f = {n.how, n.type, n.is_exclusive, order_flip(n.type)};
    const u64     chunks = u64(n.chunks), all = u64(n.lines) * chunks;
    for (u64 u = blockIdx.x; u < all; u += gridDim.x) {
        const Chunk c = chunk_of(n, u / chunks, u % chunks);
        const A     carry = n.totals ? static_cast<const A*>(n.totals)[u] : identity_of<A>(n.how, n.type);
        scan_tile(room, f, int(c.end - c.first), carry, true, [&](int i) { return load<A>(n.type, n.x, c.at.a + (c.first + i) * n.x_step); },
                  [&](int i, A v) { store(n.type, n.y, c.at.b + (c.first + i) * n.y_step, v); });
    }
}

// ---- segments ----------------------------------------------------------------------------------------------------------

struct Rows {
    i64 from, to;
};
// Of segment s; whole chunks inside are first .. end - 1.
struct Span {
    Rows rows, chunks;
};
DEVICE i64 clamped(i64 v, i64 most) { return v < 0 ? 0 : v > most ? most : v; }
DEVICE Span span_of(const SegmentNumbers& n, i64 s)
{
    Span r;
    r.rows = {clamped(n.offsets[s * n.offset_step], n.rows), clamped(n.offsets[(s + 1) * n.offset_step], n.rows)};
    r.chunks = {(r.rows.from + n.chunk - 1) / n.chunk, r.rows.to / n.chunk};
    return r;
}

constexpr int MARKERS = 32;              // threads for a segment

DEVICE void segment_mark(const SegmentNumbers& n)
{
    for (u64 u = first_thread(); u < u64(n.segments) * MARKERS; u += all_threads()) {
        const Span s = span_of(n, i64(u / MARKERS));
        ROLLED for (i64 c = s.chunks.from + i64(u % MARKERS); c < s.chunks.to; c += MARKERS) n.wanted[c] = 1;
    }
}

// Down the block: each column of `down` threads folded into its first.
template <class A>
DEVICE A fold_down(A v, A* room, const SegmentNumbers& n, int lane, i64 flip)
{
    const int t = int(threadIdx.x);
    ROLLED for (int half = n.down / 2; half > 0; half /= 2) {
        room[t] = v;
        __syncthreads();
        if (lane < half) v = folded(n.how, v, room[t + half * n.across], flip);
        __syncthreads();
    }
    return v;
}

template <class A>
DEVICE A fold_rows(const SegmentNumbers& n, const Rows& rows, int lane, i64 x_at, A v, i64 flip)
{
    ROLLED for (i64 r = rows.from + lane; r < rows.to; r += n.down) v = folded(n.how, v, load<A>(n.type, n.x, x_at + r * n.x_step), flip);
    return v;
}

template <class A>
DEVICE void segment_totals(const SegmentNumbers& n)
{
    __shared__ A room[THREADS];
    const int across = int(threadIdx.x) % n.across, lane = int(threadIdx.x) / n.across;
    const u64 tiles = u64((n.inner_count + n.across - 1) / n.across);
    const i64 flip = order_flip(n.type);
    for (u64 work = blockIdx.x; work < u64(n.chunks) * tiles; work += gridDim.x) {
        const i64 chunk = i64(work / tiles), inner = i64(work % tiles) * n.across + across;
        if (!n.wanted[chunk]) continue;
        A v = identity_of<A>(n.how, n.type);
        if (inner < n.inner_count)
            v = fold_rows(n, {chunk * n.chunk, clamped((chunk + 1) * n.chunk, n.rows)}, lane, spot_of(n.inner, u64(inner)).a, v, flip);
        v = fold_down(v, room, n, lane, flip);
        if (lane == 0 && inner < n.inner_count) static_cast<A*>(n.totals)[chunk * n.inner_count + inner] = v;
    }
}

template <class A>
DEVICE void segment_fold(const SegmentNumbers& n)
{
    __shared__ A room[THREADS];
    const int group = n.across * n.down, together = int(blockDim.x) / group;
    const int across = int(threadIdx.x) % n.across, lane = int(threadIdx.x) / n.across % n.down, part = int(threadIdx.x) / group;
    const u64 tiles = u64((n.inner_count + n.across - 1) / n.across), blocks = u64((n.segments + together - 1) / together);
    const i64 flip = order_flip(n.type);
    for (u64 work = blockIdx.x; work < blocks * tiles; work += gridDim.x) {
        const i64  s = i64(work / tiles) * together + part, inner = i64(work % tiles) * n.across + across;
        const bool is_mine = s < n.segments && inner < n.inner_count;
        const Spot at = is_mine ? spot_of(n.inner, u64(inner)) : Spot{0, 0};
        A          v = identity_of<A>(n.how, n.type);
        if (is_mine) {
            Span span = span_of(n, s);
            if (n.how == LAST) {
                // The last row alone, by the thread that stores.
                if (lane == 0 && span.rows.from < span.rows.to) v = load<A>(n.type, n.x, at.a + (span.rows.to - 1) * n.x_step);
            } else if (n.wanted && span.chunks.from < span.chunks.to) {
                v = fold_rows(n, {span.rows.from, span.chunks.from * n.chunk}, lane, at.a, v, flip);
                ROLLED for (i64 c = span.chunks.from + lane; c < span.chunks.to; c += n.down)
                    v = folded(n.how, v, static_cast<const A*>(n.totals)[c * n.inner_count + inner], flip);
                v = fold_rows(n, {span.chunks.to * n.chunk, span.rows.to}, lane, at.a, v, flip);
            } else {
                v = fold_rows(n, span.rows, lane, at.a, v, flip);
            }
        }
        if (n.how != LAST) v = fold_down(v, room, n, lane, flip);
        if (lane == 0 && is_mine) store(n.type, n.y, at.b + s * n.y_step, v);
    }
}

}  // namespace
}  // namespace ng::kernels

#define SCANNING(name, function, Numbers)                                                                     \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS, 2)                                     \
        basic_##name(const __grid_constant__ ng::kernels::Numbers numbers)                                   \
    {                                                                                                        \
        using namespace ng::kernels;                                                                         \
        function(numbers);                                                                                   \
    }
#include "kernels/basic.def"
