// Copies, fills, and stores by index: what moves elements without computing with many of them.
//
//   fill, copy          to[..] = bits; to[..] = from[..]: a thread an element
//   transpose           the same, by tiles of TURN_SIDE x TURN_SIDE where the two are consecutive along different axes
//   put                 x[.., indices[p], ..] folds y[.., p, ..]: a thread for each position p and element behind it.
//     put_winners, put_last   LAST: the greatest position of each index, then it alone is stored
//     put_sum                 atomic sums, where their order does not show or does not matter
//     put_fold                any fold: positions sorted by index, the first of each run folds it in order of position
//     put_totals              before it: the folds of chunks of one index, so that no thread is long with a long run
//   shared              transpose: u64 tile [TURN_SIDE][TURN_SIDE + 1], 8.3 KiB
#include "kernels/elements.cuh"

namespace ng::kernels {
namespace {

constexpr int TURN_SIDE = 32, ROWS_AT_ONCE = THREADS / TURN_SIDE;
static_assert(TURN_SIDE % ROWS_AT_ONCE == 0, "a tile is a whole number of block's rows");

struct alignas(16) Quad {
    u64 low, high;
};

DEVICE void fill(const FillNumbers& n)
{
    ROLLED for (u64 u = first_thread(); u < u64(n.count); u += all_threads()) store_bits(n.bytes, n.to, spot_of(n.axes, u).a, n.bits);
}

DEVICE void copy(const CopyNumbers& n)
{
    ROLLED for (u64 u = first_thread(); u < u64(n.count); u += all_threads()) {
        const Spot s = spot_of(n.axes, u);
        if (n.bytes == 16) static_cast<Quad*>(n.to)[s.b] = static_cast<const Quad*>(n.from)[s.a];
        else store_bits(n.bytes, n.to, s.b, load_bits(n.bytes, n.from, s.a));
    }
}

DEVICE void transpose(const TransposeNumbers& n)
{
    __shared__ u64 tile[TURN_SIDE][TURN_SIDE + 1];
    const i64 row_tiles = (n.rows + TURN_SIDE - 1) / TURN_SIDE, column_tiles = (n.columns + TURN_SIDE - 1) / TURN_SIDE;
    const u64 works = u64(row_tiles) * u64(column_tiles) * u64(n.outer_count);
    const int across = int(threadIdx.x) % TURN_SIDE, down = int(threadIdx.x) / TURN_SIDE;
    for (u64 work = blockIdx.x; work < works; work += gridDim.x) {
        const i64  row = i64(work % u64(row_tiles)) * TURN_SIDE, column = i64(work / u64(row_tiles) % u64(column_tiles)) * TURN_SIDE;
        const Spot s = spot_of(n.outer, work / u64(row_tiles) / u64(column_tiles));
        ROLLED for (int j = down; j < TURN_SIDE; j += ROWS_AT_ONCE) {
            const i64 r = row + across, c = column + j;
            if (r < n.rows && c < n.columns) tile[j][across] = load_bits(n.bytes, n.from, s.a + r * n.from_row + c * n.from_column);
        }
        __syncthreads();
        ROLLED for (int j = down; j < TURN_SIDE; j += ROWS_AT_ONCE) {
            const i64 r = row + j, c = column + across;
            if (r < n.rows && c < n.columns) store_bits(n.bytes, n.to, s.b + r * n.to_row + c * n.to_column, tile[across][j]);
        }
        __syncthreads();
    }
}

DEVICE void put_winners(const PutNumbers& n)
{
    ROLLED for (u64 p = first_thread(); p < u64(n.count); p += all_threads()) {
        const i64 index = n.indices[spot_of(n.at, p).a];
        if (u64(index) < u64(n.size)) atomicMax(n.winners + index, p + 1);
    }
}

// Whether no later position has this index.
DEVICE bool is_last(const PutNumbers& n, i64 index, u64 position)
{
    if (n.winners) return n.winners[index] == position + 1;
    ROLLED for (u64 p = position + 1; p < u64(n.count); p++)
        if (n.indices[spot_of(n.at, p).a] == index) return false;
    return true;
}

DEVICE void put_last(const PutNumbers& n)
{
    const u64 inner = u64(n.inner_count), all = u64(n.count) * inner;
    ROLLED for (u64 u = first_thread(); u < all; u += all_threads()) {
        u64 p, behind;
        divide(u, inner, p, behind);
        const Spot at = spot_of(n.at, p);
        const i64  index = n.indices[at.a];
        if (u64(index) >= u64(n.size) || !is_last(n, index, p)) continue;
        const Spot s = spot_of(n.inner, behind);
        store_bits(n.bytes, n.x, index * n.stride + s.a, load_bits(n.bytes, n.y, at.b + s.b));
    }
}

DEVICE void put_sum(const PutNumbers& n)
{
    const u64 inner = u64(n.inner_count), all = u64(n.count) * inner;
    ROLLED for (u64 u = first_thread(); u < all; u += all_threads()) {
        u64 p, behind;
        divide(u, inner, p, behind);
        const Spot at = spot_of(n.at, p);
        const i64  index = n.indices[at.a];
        if (u64(index) >= u64(n.size)) continue;
        const Spot s = spot_of(n.inner, behind);
        const i64  to = index * n.stride + s.a, from = at.b + s.b;
        switch (n.type) {
        case F32: atomicAdd(static_cast<float*>(n.x) + to, static_cast<const float*>(n.y)[from]); break;
        case F64: atomicAdd(static_cast<double*>(n.x) + to, static_cast<const double*>(n.y)[from]); break;
        case I32: case U32: atomicAdd(static_cast<u32*>(n.x) + to, static_cast<const u32*>(n.y)[from]); break;
        default: atomicAdd(static_cast<u64*>(n.x) + to, static_cast<const u64*>(n.y)[from]); break;
        }
    }
}

DEVICE u64 number_at(const void* array, bool is_wide, u64 i)
{
    return is_wide ? static_cast<const u64*>(array)[i] : static_cast<const u32*>(array)[i];
}

DEVICE u64 key_at(const PutNumbers& n, u64 i) { return number_at(n.keys, n.keys_are_wide, i); }
// Of the i-th of the sorted positions; inner: in y.
template <class T>
DEVICE T put_at(const PutNumbers& n, u64 i, i64 inner)
{
    return load<T>(n.type, n.y, spot_of(n.at, number_at(n.positions, n.positions_are_wide, i)).b + inner);
}
// Whether it begins a chunk of one key.
DEVICE bool begins_chunk(const PutNumbers& n, u64 i)
{
    return n.totals && i % PUT_CHUNK == 0 && i + PUT_CHUNK <= u64(n.count) && key_at(n, i) == key_at(n, i + PUT_CHUNK - 1);
}

template <class T>
DEVICE void put_totals(const PutNumbers& n)
{
    const u64 inner = u64(n.inner_count), all = u64(n.count) / PUT_CHUNK * inner;
    const i64 flip = order_flip(n.type);
    ROLLED for (u64 u = first_thread(); u < all; u += all_threads()) {
        u64 chunk, behind;
        divide(u, inner, chunk, behind);
        const u64 first = chunk * PUT_CHUNK;
        if (key_at(n, first) >= u64(n.size) || !begins_chunk(n, first)) continue;
        const i64 from = spot_of(n.inner, behind).b;
        T         v = put_at<T>(n, first, from);
        ROLLED for (u64 i = first + 1; i < first + PUT_CHUNK; i++) v = folded(n.how, v, put_at<T>(n, i, from), flip);
        static_cast<T*>(n.totals)[u] = v;
    }
}

template <class T>
DEVICE void put_fold(const PutNumbers& n)
{
    const u64 inner = u64(n.inner_count), count = u64(n.count), all = count * inner;
    const i64 flip = order_flip(n.type);
    ROLLED for (u64 u = first_thread(); u < all; u += all_threads()) {
        u64 first, behind;
        divide(u, inner, first, behind);
        const u64 key = key_at(n, first);
        if (key >= u64(n.size) || (first > 0 && key_at(n, first - 1) == key)) continue;
        const Spot s = spot_of(n.inner, behind);
        const i64  to = i64(key) * n.stride + s.a;
        T          v = load<T>(n.type, n.x, to);
        for (u64 i = first; i < count && key_at(n, i) == key;) {
            const bool is_chunk = begins_chunk(n, i);
            const T    next = is_chunk ? static_cast<const T*>(n.totals)[i / PUT_CHUNK * inner + behind] : put_at<T>(n, i, s.b);
            // Narrow floats are rounded at each store.
            v = as_stored(n.type, folded(n.how, v, next, flip));
            i += is_chunk ? PUT_CHUNK : 1;
        }
        store(n.type, n.x, to, v);
    }
}

}  // namespace
}  // namespace ng::kernels

#define INDEXING(name, function, Numbers)                                                                     \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS, 2)                                     \
        basic_##name(const __grid_constant__ ng::kernels::Numbers numbers)                                   \
    {                                                                                                        \
        using namespace ng::kernels;                                                                         \
        function(numbers);                                                                                   \
    }
#include "kernels/basic.def"
