// The stable order of lines by keys whose unsigned bits ascend as their values do.
//
//   sort_small    lines of at most SORT_TILE entries: a block sorts SORT_TILE / segment of them by a bitonic network on (key, index)
//   sort_count    counts[line, digit, tile]: how often each digit of 8 bits is in each tile of SORT_TILE entries; a block a tile.
//                 Its running sum (a scan) says where each tile's entries of each digit go.
//   sort_scatter  a tile is sorted by its digit, twice by four bits, and its entries go to their places
//   shared        small: keys 16 KiB, indices 8 KiB; scatter: order 8 KiB, counters 8 KiB, sums and starts 2 KiB
#include "kernels/elements.cuh"

namespace ng::kernels {
namespace {

constexpr int SORT_TILE = 2048, SORT_ITEMS = SORT_TILE / THREADS, DIGITS = 256, NIBBLES = 16;
static_assert(DIGITS == THREADS, "a thread a digit");
static_assert(SORT_TILE < 1 << 16, "places in a tile are 16 bits");

// What entries are in memory: keys of the first, indices of the second number of bits.
struct Entry_32_32 { using Key = u32; using Index = u32; };
struct Entry_64_32 { using Key = u64; using Index = u32; };
struct Entry_64_64 { using Key = u64; using Index = u64; };

// Sign and magnitude; NaN is the greatest, both ways; -0 is 0.
DEVICE u64 float_key(u64 raw, int bits, u64 infinity, bool descending)
{
    const u64 sign = u64(1) << (bits - 1), all = sign | (sign - 1), size = raw & (sign - 1);
    if (size > infinity) return all;
    const u64 key = size == 0 ? sign : raw & sign ? ~raw & all : raw | sign;
    return descending ? ~key & all : key;
}
DEVICE u64 integer_key(u64 raw, u64 flip, int bits, bool descending)
{
    const u64 all = ~u64(0) >> (64 - bits), key = (raw ^ flip) & all;
    return descending ? ~key & all : key;
}
DEVICE u64 infinity_of(i32 type)
{
    if (type == F32) return 0x7f800000;
    if (type == F64) return u64(0x7ff) << 52;
    const Format f = format_of(type);
    return f.is_finite ? f.codes() - 1 : f.infinity();
}
DEVICE u64 key_of(i32 type, const void* p, i64 i, bool descending)
{
    const i32 bits = 8 * bytes_of(type);
    const u64 raw = load_bits(bytes_of(type), p, i);
    if (type >= F32) return float_key(raw, bits, infinity_of(type), descending);
    if (type == BOOL) return integer_key(raw != 0, 0, bits, descending);
    return integer_key(raw, is_signed_integer(type) ? u64(1) << (bits - 1) : 0, bits, descending);
}

// Line `line` of those that are sorted together.
struct Line {
    u64  number;
    Spot at;
};
DEVICE Line line_of(const SortNumbers& n, u64 line)
{
    return {line, n.source == SORT_INDICES ? Spot{0, 0} : spot_of(n.axes, u64(n.first_line) + line)};
}
template <class E>
DEVICE u64 key_at(const SortNumbers& n, const Line& line, i64 i)
{
    if (n.source == SORT_VALUES) return key_of(n.type, n.x, line.at.a + i * n.x_step, n.descending);
    if (n.source == SORT_BUFFERS) return static_cast<const typename E::Key*>(n.keys_in)[line.number * u64(n.count) + u64(i)];
    const i64 index = static_cast<const i64*>(n.x)[spot_of(n.axes, u64(i)).a];
    return u64(index) < u64(n.size) ? u64(index) : u64(n.size);
}
template <class E>
DEVICE u64 index_at(const SortNumbers& n, const Line& line, i64 i)
{
    return n.source == SORT_BUFFERS ? u64(static_cast<const typename E::Index*>(n.index_in)[line.number * u64(n.count) + u64(i)]) : u64(i);
}

// ---- short lines -------------------------------------------------------------------------------------------------------

DEVICE void sort_small(const SortNumbers& n)
{
    __shared__ u64 keys[SORT_TILE];
    __shared__ u32 indices[SORT_TILE];
    const int segment = n.segment, t = int(threadIdx.x);
    const i64 together = SORT_TILE / segment;
    for (u64 tile = blockIdx.x; tile * u64(together) < u64(n.lines); tile += gridDim.x) {
        ROLLED for (int s = t; s < SORT_TILE; s += THREADS) {
            const u64  line = tile * u64(together) + u64(s / segment);
            const int  i = s % segment;
            const bool is_there = line < u64(n.lines) && i < n.count;
            // What is not there sorts last.
            keys[s] = is_there ? key_at<Entry_64_32>(n, line_of(n, line), i) : ~u64(0);
            indices[s] = is_there ? u32(i) : ~u32(0);
        }
        for (int size = 2; size <= segment; size *= 2)
            for (int step = size / 2; step > 0; step /= 2) {
                __syncthreads();
                ROLLED for (int pair = t; pair < SORT_TILE / 2; pair += THREADS) {
                    const int  low = pair / step * step * 2 + pair % step, high = low + step;
                    const bool ascends = (low & (segment - 1) & size) == 0;
                    const u64  a = keys[low], b = keys[high];
                    const u32  i = indices[low], k = indices[high];
                    if ((a > b || (a == b && i > k)) == ascends) keys[low] = b, keys[high] = a, indices[low] = k, indices[high] = i;
                }
            }
        __syncthreads();
        ROLLED for (int s = t; s < SORT_TILE; s += THREADS) {
            const u64 line = tile * u64(together) + u64(s / segment);
            const int i = s % segment;
            if (line >= u64(n.lines) || i >= n.count) continue;
            if (n.y) {
                n.y[line_of(n, line).at.b + i * n.y_step] = i64(indices[s]);
                continue;
            }
            const i64 at = i64(line) * n.count + i;
            store_bits(n.keys_are_wide ? 8 : 4, n.keys_out, at, keys[s]);
            store_bits(n.positions_are_wide ? 8 : 4, n.index_out, at, indices[s]);
        }
        __syncthreads();
    }
}

// ---- one pass over long lines ------------------------------------------------------------------------------------------

template <class E>
DEVICE void sort_count(const SortNumbers& n)
{
    __shared__ u32 times[DIGITS];
    const int t = int(threadIdx.x);
    const u64 tiles = u64(n.tiles);
    for (u64 work = blockIdx.x; work < u64(n.lines) * tiles; work += gridDim.x) {
        const u64  tile = work % tiles;
        const Line line = line_of(n, work / tiles);
        times[t] = 0;
        __syncthreads();
        ROLLED for (int s = t; s < SORT_TILE; s += THREADS) {
            const i64 i = i64(tile) * SORT_TILE + s;
            if (i < n.count) atomicAdd(times + (key_at<E>(n, line, i) >> n.shift & (DIGITS - 1)), 1u);
        }
        __syncthreads();
        static_cast<typename E::Index*>(n.counts)[(line.number * DIGITS + u64(t)) * tiles + tile] = times[t];
        __syncthreads();
    }
}

// The sum of those before this thread's.
DEVICE u32 sum_before(u32 mine, u32* sums)
{
    const int t = int(threadIdx.x);
    sums[t] = mine;
    __syncthreads();
    ROLLED for (int step = 1; step < THREADS; step *= 2) {
        const u32 wider = t >= step ? sums[t - step] + sums[t] : sums[t];
        __syncthreads();
        sums[t] = wider;
        __syncthreads();
    }
    return sums[t] - mine;
}

// Sorts a tile by four bits of its words, stably: a column of counters for each thread, which has SORT_ITEMS neighbours.
DEVICE void sort_by_nibble(u32* order, u16 (*counter)[THREADS], u32* sums, int shift)
{
    const int t = int(threadIdx.x);
    u32       word[SORT_ITEMS];
    u16       before[SORT_ITEMS];
    ROLLED for (int d = 0; d < NIBBLES; d++) counter[d][t] = 0;
    UNROLLED for (int j = 0; j < SORT_ITEMS; j++) {
        word[j] = order[t * SORT_ITEMS + j];
        before[j] = counter[word[j] >> shift & (NIBBLES - 1)][t]++;
    }
    __syncthreads();
    u16* const mine = &counter[0][0] + t * NIBBLES;
    u32        sum = 0;
    ROLLED for (int j = 0; j < NIBBLES; j++) sum += mine[j];
    u32 run = sum_before(sum, sums);
    ROLLED for (int j = 0; j < NIBBLES; j++) {
        const u32 times = mine[j];
        mine[j] = u16(run), run += times;
    }
    __syncthreads();
    UNROLLED for (int j = 0; j < SORT_ITEMS; j++) order[counter[word[j] >> shift & (NIBBLES - 1)][t] + before[j]] = word[j];
    __syncthreads();
}

template <class E>
DEVICE void sort_scatter(const SortNumbers& n)
{
    __shared__ u32 order[SORT_TILE], sums[THREADS], start[DIGITS];   // order: digit << 16 | place in the tile
    __shared__ u16 counter[NIBBLES][THREADS];
    const int t = int(threadIdx.x);
    const u64 tiles = u64(n.tiles);
    for (u64 work = blockIdx.x; work < u64(n.lines) * tiles; work += gridDim.x) {
        const u64  tile = work % tiles;
        const Line line = line_of(n, work / tiles);
        const i64  first = i64(tile) * SORT_TILE;
        const int  count = n.count - first < SORT_TILE ? int(n.count - first) : SORT_TILE;
        ROLLED for (int s = t; s < SORT_TILE; s += THREADS) {
            // What is past the line sorts last and goes nowhere.
            const u32 digit = s < count ? u32(key_at<E>(n, line, first + s) >> n.shift & (DIGITS - 1)) : DIGITS - 1;
            order[s] = digit << 16 | u32(s);
        }
        __syncthreads();
        sort_by_nibble(order, counter, sums, 16);
        sort_by_nibble(order, counter, sums, 20);
        ROLLED for (int s = t; s < count; s += THREADS)
            if (s == 0 || order[s - 1] >> 16 != order[s] >> 16) start[order[s] >> 16] = u32(s);
        __syncthreads();
        const auto* const counts = static_cast<const typename E::Index*>(n.counts) + line.number * DIGITS * tiles + tile;
        ROLLED for (int s = t; s < count; s += THREADS) {
            const u32 digit = order[s] >> 16;
            const i64 i = first + (order[s] & 0xffff), to = i64(u64(counts[digit * tiles]) + u64(s) - start[digit]);
            const u64 index = index_at<E>(n, line, i);
            if (n.y) {
                n.y[line.at.b + to * n.y_step] = i64(index);
                continue;
            }
            const u64 at = line.number * u64(n.count) + u64(to);
            static_cast<typename E::Key*>(n.keys_out)[at] = typename E::Key(key_at<E>(n, line, i));
            static_cast<typename E::Index*>(n.index_out)[at] = typename E::Index(index);
        }
        __syncthreads();
    }
}

}  // namespace
}  // namespace ng::kernels

#define SORTING(name, function, Numbers)                                                                      \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS, 2)                                     \
        basic_##name(const __grid_constant__ ng::kernels::Numbers numbers)                                   \
    {                                                                                                        \
        using namespace ng::kernels;                                                                         \
        function(numbers);                                                                                   \
    }
#include "kernels/basic.def"
