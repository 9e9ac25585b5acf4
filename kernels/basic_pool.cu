// Pooling over windows of channels and up to three spatial axes, and its derivative, which gathers and so adds in one order.
//
//   pool_most  y = the first greatest element of a window, what another tensor has there, or under which tap it is
//   pool_sum   y = the mean of a window, or the root of its sum of squares
//   pool_dx    dx = what every window that holds the element gives it back; a thread an element
// A thread a window, or a block where windows are large and few.
//   shared     one number and one tap a thread, 4 KiB
#include "kernels/elements.cuh"

namespace ng::kernels {
namespace {

struct Position {
    i64 at[POOL_AXES];
};
// The u-th element of the result, whose axes are as long as `length` says, with its offsets in y.
template <class Length>
DEVICE Position position_of(const PoolNumbers& n, u64 u, const Length& length)
{
    Position p;
    ROLLED for (int k = POOL_AXES - 1; k >= 0; k--) {
        const int axis = n.order[k];
        const u64 size = u64(length(axis)), rest = (u | size) >> 32 ? u / size : u32(u) / u32(size);
        const i64 digit = i64(u - rest * size);
        // No array that is indexed by what is known when run: it would lie in memory.
        UNROLLED for (int a = 0; a < POOL_AXES; a++)
            if (a == axis) p.at[a] = digit;
        u = rest;
    }
    return p;
}

// Taps first .. end - 1 of each windowed axis are inside x; x_at and values_at are those of tap 0.
struct Window {
    i64 first[POOL_AXES], end[POOL_AXES], x_at, values_at, y_at;
};
DEVICE i64 rounded_up(i64 a, i64 unit) { return a > 0 ? (a + unit - 1) / unit : 0; }
DEVICE Window window_of(const PoolNumbers& n, const Position& p)
{
    Window w;
    w.x_at = p.at[0] * n.axis[0].x, w.values_at = p.at[0] * n.axis[0].values, w.y_at = p.at[0] * n.axis[0].y;
    UNROLLED for (int i = 1; i < POOL_AXES; i++) {
        const PoolAxis& a = n.axis[i];
        const i64       start = p.at[i] * a.stride - a.pad_lo, end = rounded_up(a.in - start, a.dilate);
        w.first[i] = rounded_up(-start, a.dilate), w.end[i] = end < a.window ? end : a.window;
        w.x_at += start * a.x, w.values_at += start * a.values, w.y_at += p.at[i] * a.y;
    }
    return w;
}

struct Tap {
    i64 number, offset;                  // in row-major order of all taps; in x
};
DEVICE Tap tap_of(const PoolNumbers& n, i64 c, i64 i, i64 j, i64 k)
{
    const PoolAxis *a = n.axis;
    return {((c * a[2].window + i) * a[3].window + j) * a[4].window + k, c * a[1].dilate * a[1].x + i * a[2].dilate * a[2].x + j * a[3].dilate * a[3].x + k * a[4].dilate * a[4].x};
}
// body(tap) for this thread's share of the taps inside, in their order.
template <class Body>
DEVICE void each_tap(const PoolNumbers& n, const Window& w, const Body& body)
{
    if (n.lanes == 1) {
        ROLLED for (i64 c = w.first[1]; c < w.end[1]; c++)
            ROLLED for (i64 i = w.first[2]; i < w.end[2]; i++)
                ROLLED for (i64 j = w.first[3]; j < w.end[3]; j++)
                    ROLLED for (i64 k = w.first[4]; k < w.end[4]; k++) body(tap_of(n, c, i, j, k));
        return;
    }
    u64 size[POOL_AXES], all = 1;
    UNROLLED for (int i = 1; i < POOL_AXES; i++) size[i] = w.end[i] > w.first[i] ? u64(w.end[i] - w.first[i]) : 0, all *= size[i];
    ROLLED for (u64 u = threadIdx.x; u < all; u += u64(n.lanes)) {
        const u64 k = u % size[4], j = u / size[4] % size[3], rest = u / size[4] / size[3];
        body(tap_of(n, w.first[1] + i64(rest / size[2]), w.first[2] + i64(rest % size[2]), w.first[3] + i64(j), w.first[4] + i64(k)));
    }
}
// Which results this thread has a part in.
DEVICE u64 first_result(const PoolNumbers& n) { return n.lanes == 1 ? first_thread() : blockIdx.x; }
DEVICE u64 all_results(const PoolNumbers& n) { return n.lanes == 1 ? all_threads() : gridDim.x; }

DEVICE i64 covered(const PoolAxis& a, i64 position, bool counts_padding)
{
    const i64 start = position * a.stride - a.pad_lo;
    const i64 end = rounded_up(a.in + (counts_padding ? a.pad_hi : 0) - start, a.dilate), first = counts_padding ? 0 : rounded_up(-start, a.dilate);
    const i64 last = end < a.window ? end : a.window;
    return last > first ? last - first : 0;
}

template <class T>
struct Greatest {
    T   value;
    i64 tap, at;                         // tap -1: there is none
};
// Whether b, whose tap comes later, takes a's place: the first of equals stays, the first NaN too.
template <class T>
DEVICE bool is_greater(T b, T a, i64 flip)
{
    if constexpr (IS_REAL<T>) return b > a || (b != b && a == a);
    else return (b ^ flip) > (a ^ flip);
}
template <class T>
DEVICE void take_greater(Greatest<T>& a, const Greatest<T>& b, i64 flip)
{
    if (b.tap < 0) return;
    const bool equal = a.tap >= 0 && !is_greater(b.value, a.value, flip) && !is_greater(a.value, b.value, flip);
    if (a.tap < 0 || is_greater(b.value, a.value, flip) || (equal && b.tap < a.tap)) a = b;
}

template <class T>
DEVICE void pool_most(const PoolNumbers& n)
{
    __shared__ T   values[THREADS];
    __shared__ i64 taps[THREADS];
    const i64 flip = order_flip(n.x_type);
    const int t = int(threadIdx.x);
    ROLLED for (u64 u = first_result(n); u < u64(n.count); u += all_results(n)) {
        const Window w = window_of(n, position_of(n, u, [&](int axis) { return n.axis[axis].out; }));
        Greatest<T>  most = {T(0), -1, 0};
        each_tap(n, w, [&](const Tap& tap) {
            const T v = load<T>(n.x_type, n.x, w.x_at + tap.offset);
            if (most.tap < 0 || is_greater(v, most.value, flip)) most = {v, tap.number, 0};
        });
        ROLLED for (int half = n.lanes / 2; half > 0; half /= 2) {
            values[t] = most.value, taps[t] = most.tap;
            __syncthreads();
            if (t < half) take_greater(most, {values[t + half], taps[t + half], 0}, flip);
            __syncthreads();
        }
        if (n.lanes > 1 && t > 0) continue;
        if (!n.picks) {
            static_cast<i64*>(n.y)[w.y_at] = most.tap;
            continue;
        }
        u64 bits = n.least;
        if (most.tap >= 0) {
            i64 rest = most.tap, at = w.values_at;
            UNROLLED for (int i = POOL_AXES - 1; i > 0; i--) {
                const PoolAxis& a = n.axis[i];
                at += rest % a.window * a.dilate * a.values, rest /= a.window;
            }
            bits = load_bits(bytes_of(n.values_type), n.values, at);
        }
        store_bits(bytes_of(n.values_type), n.y, w.y_at, bits);
    }
}

template <class T>
DEVICE void pool_sum(const PoolNumbers& n)
{
    __shared__ T sums[THREADS];
    const int t = int(threadIdx.x);
    ROLLED for (u64 u = first_result(n); u < u64(n.count); u += all_results(n)) {
        const Position p = position_of(n, u, [&](int axis) { return n.axis[axis].out; });
        const Window   w = window_of(n, p);
        T              sum = T(0);
        each_tap(n, w, [&](const Tap& tap) {
            const T v = load<T>(n.x_type, n.x, w.x_at + tap.offset);
            sum += n.kind == POOL_L2 ? v * v : v;
        });
        ROLLED for (int half = n.lanes / 2; half > 0; half /= 2) {
            sums[t] = sum;
            __syncthreads();
            if (t < half) sum += sums[t + half];
            __syncthreads();
        }
        if (n.lanes > 1 && t > 0) continue;
        if (n.kind == POOL_L2) {
            sum = T(sqrt(sum));
        } else {
            T count = T(1);
            UNROLLED for (int i = 1; i < POOL_AXES; i++) count *= T(covered(n.axis[i], p.at[i], n.counts_padding));
            sum = count > T(0) ? sum / count : T(0);
        }
        store(n.y_type, n.y, w.y_at, sum);
    }
}

// Windows first .. last along an axis hold coordinate i + pad_lo = at, those whose taps it meets.
struct Windows {
    i64 at, first, last;
};
DEVICE Windows windows_of(const PoolAxis& a, i64 i)
{
    const i64 at = i + a.pad_lo, last = at / a.stride;
    return {at, rounded_up(at - (a.window - 1) * a.dilate, a.stride), last < a.out ? last : a.out - 1};
}
// The tap under which window o has it; -1: it lies between taps.
DEVICE i64 tap_at(const PoolAxis& a, const Windows& w, i64 o)
{
    const i64 distance = w.at - o * a.stride;
    return distance % a.dilate ? -1 : distance / a.dilate;
}

// Here axis.y are dx's strides and axis.values dy's; slots are dense, of dy's shape.
template <class T>
DEVICE T given_back(const PoolNumbers& n, const Position& p, T x)
{
    const PoolAxis* a = n.axis;
    const Windows   w1 = windows_of(a[1], p.at[1]), w2 = windows_of(a[2], p.at[2]), w3 = windows_of(a[3], p.at[3]), w4 = windows_of(a[4], p.at[4]);
    T               sum = T(0);
    ROLLED for (i64 c = w1.first; c <= w1.last; c++)
        ROLLED for (i64 i = w2.first; i <= w2.last; i++)
            ROLLED for (i64 j = w3.first; j <= w3.last; j++)
                ROLLED for (i64 k = w4.first; k <= w4.last; k++) {
                    const i64 tc = tap_at(a[1], w1, c), ti = tap_at(a[2], w2, i), tj = tap_at(a[3], w3, j), tk = tap_at(a[4], w4, k);
                    if ((tc | ti | tj | tk) < 0) continue;
                    const i64 slot = (((p.at[0] * a[1].out + c) * a[2].out + i) * a[3].out + j) * a[4].out + k;
                    const T   dy = load<T>(n.values_type, n.values, p.at[0] * a[0].values + c * a[1].values + i * a[2].values + j * a[3].values + k * a[4].values);
                    if (n.kind == POOL_MAX) {
                        if (static_cast<const i64*>(n.slots)[slot] == tap_of(n, tc, ti, tj, tk).number) sum += dy;
                    } else if (n.kind == POOL_MEAN) {
                        sum += dy / (T(covered(a[1], c, n.counts_padding)) * T(covered(a[2], i, n.counts_padding)) *
                                     T(covered(a[3], j, n.counts_padding)) * T(covered(a[4], k, n.counts_padding)));
                    } else {
                        // d sqrt(sum x^2) / dx = x / r, and 0 where r is 0.
                        const T root = static_cast<const T*>(n.slots)[slot];
                        if (root != T(0)) sum += x / root * dy;
                    }
                }
    return sum;
}

template <class T>
DEVICE void pool_dx(const PoolNumbers& n)
{
    ROLLED for (u64 u = first_thread(); u < u64(n.count); u += all_threads()) {
        const Position p = position_of(n, u, [&](int axis) { return n.axis[axis].in; });
        i64            x_at = 0, y_at = 0;
        UNROLLED for (int i = 0; i < POOL_AXES; i++) x_at += p.at[i] * n.axis[i].x, y_at += p.at[i] * n.axis[i].y;
        store(n.y_type, n.y, y_at, given_back(n, p, n.kind == POOL_L2 ? load<T>(n.x_type, n.x, x_at) : T(0)));
    }
}

}  // namespace
}  // namespace ng::kernels

#define POOLING(name, function, Numbers)                                                                      \
    extern "C" __global__ void __launch_bounds__(ng::kernels::THREADS, 2)                                     \
        basic_##name(const __grid_constant__ ng::kernels::Numbers numbers)                                   \
    {                                                                                                        \
        using namespace ng::kernels;                                                                         \
        function(numbers);                                                                                   \
    }
#include "kernels/basic.def"
