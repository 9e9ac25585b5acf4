// Golden for cuda: where the greatest of each row is, and the greatest.
// Rows over 1 axis, points over 1 axis; rows held by 5 of 1.
enum { WIDTH = 1, HELD = 5, THREADS = 256 };
typedef struct {
    i64 offset_v0, stride_v0_0;
    i64 offset_s0, stride_s0_0;
    i64 offset_s1, stride_s1_0;
    i32 rows, points, log_lanes;
} Numbers;

static __device__ __forceinline__ f32 op_argmax_f32(f32 x, f32 y) { return x > y || x != x ? x : y; }

// A value and where it is, -1: nowhere.
typedef struct {
    f32 value;
    i64 at;
} best_f32;
static __device__ __forceinline__ best_f32 best_of_f32(f32 value, i64 at)
{
    best_f32 r;
    r.value = value;
    r.at = at;
    return r;
}

// The first of equals; one NaN equals another.
static __device__ __forceinline__ best_f32 argmax_of_f32(best_f32 x, best_f32 y)
{
    const f32 chosen = op_argmax_f32(y.value, x.value);
    const bool is_tie = x.value == y.value || (x.value != x.value && y.value != y.value);
    const bool is_y = is_tie ? y.at < x.at : chosen == y.value || (chosen != chosen && y.value != y.value);
    return x.at < 0 || (y.at >= 0 && is_y) ? y : x;
}

static __device__ __forceinline__ best_f32 next_argmax_of_f32(best_f32 x, f32 value, i64 at)
{
    return x.at < 0 || (!(value <= x.value) && x.value == x.value) ? best_of_f32(value, at) : x;
}

static __device__ __forceinline__ best_f32 shuffled_best_f32(best_f32 x, i32 reach)
{
    x.value = shuffled(x.value, reach);
    x.at = shuffled(x.at, reach);
    return x;
}

// A team is `lanes` threads side by side, a power of two. shared: of its block, an element a warp.
static __device__ __forceinline__ best_f32 team_argmax_f32(best_f32* shared, best_f32 x, i32 lanes)
{
    for (i32 reach = (lanes < 32 ? lanes : 32) / 2; reach > 0; reach /= 2) x = argmax_of_f32(x, shuffled_best_f32(x, reach));
    if (lanes > 32) {
        const i32 thread = (i32)threadIdx.x, warps = lanes / 32;
        if (thread % 32 == 0) shared[thread / 32] = x;
        __syncthreads();
        x = shared[(thread & -lanes) / 32 + (thread & (warps - 1))];
        for (i32 reach = warps / 2; reach > 0; reach /= 2) x = argmax_of_f32(x, shuffled_best_f32(x, reach));
    }
    return x;
}

// A team is `lanes` threads side by side, a power of two. shared: of its block, an element a warp.
static __device__ __forceinline__ f32 team_max_f32(f32* shared, f32 x, i32 lanes)
{
    for (i32 reach = (lanes < 32 ? lanes : 32) / 2; reach > 0; reach /= 2) x = greatest_f32(x, shuffled(x, reach));
    if (lanes > 32) {
        const i32 thread = (i32)threadIdx.x, warps = lanes / 32;
        if (thread % 32 == 0) shared[thread / 32] = x;
        __syncthreads();
        x = shared[(thread & -lanes) / 32 + (thread & (warps - 1))];
        for (i32 reach = warps / 2; reach > 0; reach /= 2) x = greatest_f32(x, shuffled(x, reach));
    }
    return of_first(x, lanes);
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) fused(const f32* __restrict__ b0, i64* __restrict__ b1, f32* __restrict__ b2, const Numbers n)
{
    follow();
    __shared__ u64 shared[2][32];
    const i32 lanes = 1 << n.log_lanes, lane = (i32)threadIdx.x & (lanes - 1);
    const i32 row = (i32)blockIdx.x * ((i32)blockDim.x >> n.log_lanes) + ((i32)threadIdx.x >> n.log_lanes);
    const bool is_row = row < n.rows;
    const i32 here = is_row ? row : n.rows - 1;
    const i32 i0 = here;
    const f32* p_v0 = hidden(b0 + (n.offset_v0 + i0 * n.stride_v0_0));
    const i32 end = is_row ? n.points : 0, start = lane * WIDTH, step = lanes * WIDTH;
    best_f32 a1 = best_of_f32(LOWEST_f32, -1);
    f32 a2 = LOWEST_f32;
    Vector<f32, WIDTH> m0[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i1 = point;
            m0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i1));
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i1 = point;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                a1 = next_argmax_of_f32(a1, v0, point + j);
                a2 = greatest_f32(a2, v0);
            }
        }
    }
    const i64 v1 = team_argmax_f32((best_f32*)shared[0], a1, lanes).at;
    const f32 v2 = team_max_f32((f32*)shared[1], a2, lanes);
    if (is_row && lane == 0) {
        if (b1) b1[n.offset_s0 + i0 * n.stride_s0_0] = v1;
        if (b2) b2[n.offset_s1 + i0 * n.stride_s1_0] = v2;
    }
}
