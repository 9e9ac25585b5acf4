// Matrix products, and convolutions as matrix products that are never laid out: c[m, n] = a[m, k] b[k, n] over nests of axes.
//
//   product_tiles   a block a tile of TILE x TILE of c, a thread PER x PER of it, SIDE apart
//   product_direct  a thread an element: where tiles would be mostly empty (depthwise convolutions, thin products)
//   product_sum     parts of k, which blocks of either kind sum where there are few elements and k is long, added in order
//   shared          a_tile, b_tile [TILE_K][TILE + 1], 8 or 16 KiB; offsets and coordinates of lines 2.5 KiB, of depth 10 KiB; is_outside 1 KiB
// Sums of products are fused multiply-adds; their order depends on shapes and strides alone.
#include "kernels/elements.cuh"

namespace ng::kernels {
namespace {

constexpr int TILE = 64, TILE_K = 16, SIDE = 16, PER = TILE / SIDE;
constexpr int POINTS = THREADS;          // steps of depth whose places are computed at once, a thread each
static_assert(SIDE * SIDE == THREADS, "threads form a SIDE x SIDE grid");
static_assert(POINTS % TILE_K == 0, "only the last tile of k is short");
static_assert(TILE * TILE_K % THREADS == 0, "threads load as many elements of a tile each");

struct Point {
    i64 first, second, at[WINDOW_AXES];
};
DEVICE Point point_of(const Nest& nest, u64 index)
{
    Point p = {0, 0, {0, 0, 0}};
    ROLLED for (int s = NEST_AXES - 1; s >= 0; s--) {
        if (nest.extent[s] == 1) continue;
        u64 rest, digit;
        divide(index, u64(nest.extent[s]), rest, digit);
        p.first += i64(digit) * nest.first[s], p.second += i64(digit) * nest.second[s];
        UNROLLED for (int d = 0; d < WINDOW_AXES; d++) p.at[d] += i64(digit) * nest.advance[s][d];
        index = rest;
    }
    return p;
}

struct Bases {
    i64 a, b, c;
};
DEVICE Bases bases_of(const ProductNumbers& n, u64 batch)
{
    Bases r = {0, 0, 0};
    ROLLED for (int i = n.batch_rank - 1; i >= 0; i--) {
        u64 rest, digit;
        divide(batch, u64(n.batch_extent[i]), rest, digit);
        r.a += i64(digit) * n.batch_a[i], r.b += i64(digit) * n.batch_b[i], r.c += i64(digit) * n.batch_c[i];
        batch = rest;
    }
    return r;
}

// Numbers of T as elements of c.
template <class T>
DEVICE void store_sum(const ProductNumbers& n, i64 at, T v)
{
    if constexpr (IS_REAL<T>) store(n.c_type, n.c, at, v);
    else store(n.c_type, n.c, at, i64(v));
}

// Rounded once where the device can.
template <class T>
DEVICE T plus_product(T sum, T a, T b)
{
#ifdef __CUDA_ARCH__
    if constexpr (IS_REAL<T>) return fma(a, b, sum);
#endif
    return sum + a * b;
}

DEVICE bool is_inside(const ProductNumbers& n, i64 x, i64 y, i64 z)
{
    return u64(n.start[0] + x) < u64(n.limit[0]) && u64(n.start[1] + y) < u64(n.limit[1]) && u64(n.start[2] + z) < u64(n.limit[2]);
}

// ---- tiles -------------------------------------------------------------------------------------------------------------

template <class T>
struct TileRoom {
    T   a_tile[TILE_K][TILE + 1], b_tile[TILE_K][TILE + 1];
    i64 a_line[TILE], b_line[TILE], line_at[WINDOW_AXES][TILE];
    i64 a_depth[POINTS], b_depth[POINTS], depth_at[WINDOW_AXES][POINTS];
    bool is_outside[TILE_K][TILE];        // of b_tile, where that is to be left out
};
// What a block works on.
struct TileWork {
    u64   batch, split;
    i64   row, column, first, end;       // of depth: first .. end - 1
    Bases base;
};
DEVICE TileWork tile_work(const ProductNumbers& n, u64 work)
{
    TileWork w;
    w.column = i64(work % u64(n.column_tiles)) * TILE, work /= u64(n.column_tiles);
    w.row = i64(work % u64(n.row_tiles)) * TILE, work /= u64(n.row_tiles);
    w.batch = work % u64(n.batches), w.split = work / u64(n.batches);
    w.first = i64(w.split) * n.split_depth;
    w.end = n.k - w.first < n.split_depth ? n.k : w.first + n.split_depth;
    w.base = bases_of(n, w.batch);
    return w;
}

// Where the tile's rows and columns are; those that are not there are row and column 0, and never stored.
template <class T>
DEVICE void place_lines(const ProductNumbers& n, const TileWork& w, TileRoom<T>& room)
{
    const int t = int(threadIdx.x) % TILE;
    if (threadIdx.x < TILE) {
        room.a_line[t] = w.base.a + (w.row + t < n.m ? point_of(n.rows, u64(w.row + t)).first : 0);
    } else if (threadIdx.x < 2 * TILE) {
        const Point p = w.column + t < n.n ? point_of(n.columns, u64(w.column + t)) : Point{0, 0, {0, 0, 0}};
        room.b_line[t] = w.base.b + p.first;
        for (int d = 0; d < WINDOW_AXES; d++) room.line_at[d][t] = p.at[d];
    }
}
template <class T>
DEVICE void place_depth(const ProductNumbers& n, const TileWork& w, i64 first, TileRoom<T>& room)
{
    const int t = int(threadIdx.x);
    if (first + t >= w.end) return;
    const Point p = point_of(n.depth, u64(first + t));
    room.a_depth[t] = p.first, room.b_depth[t] = p.second;
    for (int d = 0; d < WINDOW_AXES; d++) room.depth_at[d][t] = p.at[d];
}

constexpr int LOADS = TILE * TILE_K / THREADS;
// Which element of a tile a thread loads e-th: neighbours take what lies nearest.
struct Cell {
    int line, depth;
};
DEVICE Cell cell_of(bool depth_fastest, int e)
{
    const int i = e * THREADS + int(threadIdx.x);
    return depth_fastest ? Cell{i / TILE_K, i % TILE_K} : Cell{i % TILE, i / TILE};
}
// Several elements under one switch, so that they are on their way together; those that are not there are not read.
DEVICE void load_some(i32 bytes, const void* p, const i64* at, const bool* is_there, u64* bits)
{
    UNROLLED for (int e = 0; e < LOADS; e++) bits[e] = 0;
    const auto each = [&](const auto* elements) {
        UNROLLED for (int e = 0; e < LOADS; e++)
            if (is_there[e]) bits[e] = elements[at[e]];
    };
    switch (bytes) {
    case 1: each(static_cast<const u8*>(p)); return;
    case 2: each(static_cast<const u16*>(p)); return;
    case 4: each(static_cast<const u32*>(p)); return;
    default: each(static_cast<const u64*>(p)); return;
    }
}

// `s` counts from the first step whose place is known, `steps` are left there. Zeros past the end. Gives whether a 0 of b that is to be
// left out may change a sum: this thread's part of a is not finite.
template <class T>
DEVICE bool load_tiles(const ProductNumbers& n, int s, int steps, TileRoom<T>& room)
{
    i64  at[LOADS];
    bool is_there[LOADS];
    u64  a_bits[LOADS], b_bits[LOADS];
    UNROLLED for (int e = 0; e < LOADS; e++) {
        const Cell c = cell_of(n.a_depth_fastest, e);
        is_there[e] = c.depth < steps;
        at[e] = is_there[e] ? room.a_line[c.line] + room.a_depth[s + c.depth] : 0;
    }
    load_some(bytes_of(n.a_type), n.a, at, is_there, a_bits);
    UNROLLED for (int e = 0; e < LOADS; e++) {
        const Cell c = cell_of(n.b_depth_fastest, e);
        const int  d = s + c.depth;
        is_there[e] = c.depth < steps;
        at[e] = is_there[e] ? room.b_line[c.line] + room.b_depth[d] : 0;
        if (is_there[e] && n.is_bounded)
            is_there[e] = is_inside(n, room.line_at[0][c.line] + room.depth_at[0][d], room.line_at[1][c.line] + room.depth_at[1][d], room.line_at[2][c.line] + room.depth_at[2][d]);
    }
    load_some(bytes_of(n.b_type), n.b, at, is_there, b_bits);
    bool is_endless = false;
    UNROLLED for (int e = 0; e < LOADS; e++) {
        const Cell a = cell_of(n.a_depth_fastest, e), b = cell_of(n.b_depth_fastest, e);
        const T    v = number_from<T>(n.a_type, a_bits[e]);
        if constexpr (IS_REAL<T>) is_endless |= !(v - v == T(0));
        room.a_tile[a.depth][a.line] = v;
        const bool is_padding = b.depth < steps && !is_there[e];
        room.b_tile[b.depth][b.line] = number_from<T>(n.b_type, is_padding ? n.fill : b_bits[e]);
        if (n.leaves_out) room.is_outside[b.depth][b.line] = is_padding;
    }
    return is_endless && n.leaves_out;
}

// The tile's products into the sums; all, or but those of what is outside.
template <class T>
DEVICE void add_tile(const TileRoom<T>& room, T (&sum)[PER][PER], int y, int x)
{
    UNROLLED for (int d = 0; d < TILE_K; d++) {
        T a[PER], b[PER];
        UNROLLED for (int i = 0; i < PER; i++) a[i] = room.a_tile[d][y + i * SIDE], b[i] = room.b_tile[d][x + i * SIDE];
        UNROLLED for (int i = 0; i < PER; i++)
            UNROLLED for (int j = 0; j < PER; j++) sum[i][j] = plus_product(sum[i][j], a[i], b[j]);
    }
}
template <class T>
DEVICE void add_inside(const TileRoom<T>& room, T (&sum)[PER][PER], int y, int x)
{
    ROLLED for (int d = 0; d < TILE_K; d++)
        UNROLLED for (int j = 0; j < PER; j++) {
            if (room.is_outside[d][x + j * SIDE]) continue;
            UNROLLED for (int i = 0; i < PER; i++) sum[i][j] = plus_product(sum[i][j], room.a_tile[d][y + i * SIDE], room.b_tile[d][x + j * SIDE]);
        }
}

// The tile's elements y, x and those SIDE apart.
template <class T>
DEVICE void store_tile(const ProductNumbers& n, const TileWork& w, TileRoom<T>& room, const T (&sum)[PER][PER], int y, int x)
{
    const int t = int(threadIdx.x) % TILE;
    // Where rows and columns are in c, in the place of where they were in a and b.
    if (threadIdx.x < TILE) room.a_line[t] = w.base.c + (w.row + t < n.m ? point_of(n.rows, u64(w.row + t)).second : 0);
    else if (threadIdx.x < 2 * TILE) room.b_line[t] = w.column + t < n.n ? point_of(n.columns, u64(w.column + t)).second : 0;
    __syncthreads();
    const u64 first = (w.split * u64(n.batches) + w.batch) * u64(n.m);
    UNROLLED for (int i = 0; i < PER; i++)
        UNROLLED for (int j = 0; j < PER; j++) {
            const int row = y + i * SIDE, column = x + j * SIDE;
            if (w.row + row >= n.m || w.column + column >= n.n) continue;
            if (n.partial) static_cast<T*>(n.partial)[(first + u64(w.row + row)) * u64(n.n) + u64(w.column + column)] = sum[i][j];
            else store_sum(n, room.a_line[row] + room.b_line[column], sum[i][j]);
        }
    __syncthreads();
}

template <class T>
DEVICE void product_tiles(const ProductNumbers& n)
{
    __shared__ TileRoom<T> room;
    const u64 works = u64(n.row_tiles) * u64(n.column_tiles) * u64(n.batches) * u64(n.splits);
    // Neighbouring threads have neighbouring elements of c.
    const bool rows_fastest = n.c_fastest == ROWS_FASTEST;
    const int  x = int(rows_fastest ? threadIdx.x / SIDE : threadIdx.x % SIDE), y = int(rows_fastest ? threadIdx.x % SIDE : threadIdx.x / SIDE);
    for (u64 work = blockIdx.x; work < works; work += gridDim.x) {
        const TileWork w = tile_work(n, work);
        T              sum[PER][PER] = {};
        place_lines(n, w, room);
        for (i64 first = w.first; first < w.end; first += POINTS) {
            place_depth(n, w, first, room);
            __syncthreads();
            const int points = w.end - first < POINTS ? int(w.end - first) : POINTS;
            for (int s = 0; s < points; s += TILE_K) {
                if (__syncthreads_or(load_tiles(n, s, points - s, room))) add_inside(room, sum, y, x);
                else add_tile(room, sum, y, x);
                __syncthreads();
            }
        }
        store_tile(n, w, room, sum, y, x);
    }
}

// ---- an element a thread -----------------------------------------------------------------------------------------------

struct Element {
    u64 batch, row, column;
};
// The u-th, in the order in which threads take them.
DEVICE Element element_of(const ProductNumbers& n, u64 u)
{
    const u64 m = u64(n.m), columns = u64(n.n), batches = u64(n.batches);
    Element   e;
    if (n.c_fastest == BATCHES_FASTEST) divide(u, batches, u, e.batch);
    if (n.c_fastest == ROWS_FASTEST) divide(u, m, u, e.row), divide(u, columns, u, e.column);
    else divide(u, columns, u, e.column), divide(u, m, u, e.row);
    if (n.c_fastest != BATCHES_FASTEST) e.batch = u;
    return e;
}

template <class T>
DEVICE T dot(const ProductNumbers& n, i64 a_at, i64 b_at, const Point& column, i64 first, i64 end)
{
    const Point p = point_of(n.depth, u64(first));
    i64         digit[NEST_AXES], a = a_at + p.first, b = b_at + p.second, at[WINDOW_AXES];
    u64         rest = u64(first);
    UNROLLED for (int s = NEST_AXES - 1; s >= 0; s--) {
        u64 next, d;
        divide(rest, u64(n.depth.extent[s]), next, d);
        digit[s] = i64(d), rest = next;
    }
    for (int d = 0; d < WINDOW_AXES; d++) at[d] = column.at[d] + p.at[d];
    const T fill = number_from<T>(n.b_type, n.fill);
    T       sum = T(0);
    ROLLED for (i64 i = first; i < end; i++) {
        const bool is_there = !n.is_bounded || is_inside(n, at[0], at[1], at[2]);
        if (is_there || !n.leaves_out) sum = plus_product(sum, load<T>(n.a_type, n.a, a), is_there ? load<T>(n.b_type, n.b, b) : fill);
        bool carries = true;
        UNROLLED for (int s = NEST_AXES - 1; s >= 0; s--) {
            if (!carries) continue;
            carries = ++digit[s] == n.depth.extent[s];
            // Back to the axis's first, or one on.
            const i64 steps = carries ? 1 - n.depth.extent[s] : 1;
            if (carries) digit[s] = 0;
            a += steps * n.depth.first[s], b += steps * n.depth.second[s];
            UNROLLED for (int d = 0; d < WINDOW_AXES; d++) at[d] += steps * n.depth.advance[s][d];
        }
    }
    return sum;
}

template <class T>
DEVICE void product_direct(const ProductNumbers& n)
{
    const u64 elements = u64(n.m) * u64(n.n) * u64(n.batches), all = elements * u64(n.splits);
    ROLLED for (u64 u = first_thread(); u < all; u += all_threads()) {
        const u64     split = n.splits == 1 ? 0 : u / elements;
        const Element e = element_of(n, u - split * elements);
        const Bases   base = bases_of(n, e.batch);
        const Point   row = point_of(n.rows, e.row), column = point_of(n.columns, e.column);
        const i64     first = i64(split) * n.split_depth, end = n.k - first < n.split_depth ? n.k : first + n.split_depth;
        const T       sum = first < end ? dot<T>(n, base.a + row.first, base.b + column.first, column, first, end) : T(0);
        if (n.partial) static_cast<T*>(n.partial)[((split * u64(n.batches) + e.batch) * u64(n.m) + e.row) * u64(n.n) + e.column] = sum;
        else store_sum(n, base.c + row.second + column.second, sum);
    }
}

template <class T>
DEVICE void product_sum(const ProductNumbers& n)
{
    const u64 all = u64(n.m) * u64(n.n) * u64(n.batches);
    ROLLED for (u64 u = first_thread(); u < all; u += all_threads()) {
        T sum = T(0);
        for (i64 s = 0; s < n.splits; s++) sum += static_cast<const T*>(n.partial)[u64(s) * all + u];
        u64 rest, column, row, batch;
        divide(u, u64(n.n), rest, column), divide(rest, u64(n.m), batch, row);
        store_sum(n, bases_of(n, batch).c + point_of(n.rows, row).second + point_of(n.columns, column).second, sum);
    }
}

}  // namespace
}  // namespace ng::kernels

#define PRODUCT(name, function, Numbers)                                                                      \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS, 1)                                     \
        basic_##name(const __grid_constant__ ng::kernels::Numbers numbers)                                   \
    {                                                                                                        \
        using namespace ng::kernels;                                                                         \
        function(numbers);                                                                                   \
    }
#include "kernels/basic.def"
