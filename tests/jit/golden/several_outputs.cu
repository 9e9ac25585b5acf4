// Golden for cuda: a result beside what is asked about it.
// Rows over 0 axes, points over 1 axis; rows held by 3 of 4, peeled.
enum { WIDTH = 4, HELD = 3, THREADS = 512 };
typedef struct {
    i64 offset_v0;
    i64 offset_v1;
    i64 offset_s0;
    i64 offset_s1;
    i64 offset_s2;
    i32 rows, points, log_lanes;
} Numbers;

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

static __device__ __forceinline__ i64 op_sum_i64(u64 x, u64 y) { return (i64)(x + y); }

// A team is `lanes` threads side by side, a power of two. shared: of its block, an element a warp.
static __device__ __forceinline__ i64 team_sum_i64(i64* shared, i64 x, i32 lanes)
{
    for (i32 reach = (lanes < 32 ? lanes : 32) / 2; reach > 0; reach /= 2) x = op_sum_i64(x, shuffled(x, reach));
    if (lanes > 32) {
        const i32 thread = (i32)threadIdx.x, warps = lanes / 32;
        if (thread % 32 == 0) shared[thread / 32] = x;
        __syncthreads();
        x = shared[(thread & -lanes) / 32 + (thread & (warps - 1))];
        for (i32 reach = warps / 2; reach > 0; reach /= 2) x = op_sum_i64(x, shuffled(x, reach));
    }
    return x;
}

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static __device__ __forceinline__ f32 op_add_f32(f32 x, f32 y) { return x + y; }

static __device__ __forceinline__ f32 op_abs_f32(f32 x) { return abs_f32(x); }

static __device__ __forceinline__ bool op_isfinite_f32(f32 x) { return x - x == 0.0f; }

extern "C" __global__ void __launch_bounds__(THREADS, 2) fused(const f32* __restrict__ b0, const f32* __restrict__ b1, f32* __restrict__ b2, f32* __restrict__ b3, i64* __restrict__ b4, const Numbers n)
{
    follow();
    __shared__ u64 shared[2][64];
    const i32 lanes = 1 << n.log_lanes, lane = (i32)threadIdx.x & (lanes - 1);
    const i32 row = (i32)blockIdx.x * ((i32)blockDim.x >> n.log_lanes) + ((i32)threadIdx.x >> n.log_lanes);
    const bool is_row = row < n.rows;
    const i32 here = is_row ? row : n.rows - 1;
    const f32* p_v0 = hidden(b0 + (n.offset_v0));
    const f32* p_v1 = hidden(b1 + (n.offset_v1));
    f32* p_s0 = hidden(b2 + (n.offset_s0));
    const i32 before = (i32)(0 - (u64)p_v0 / 4) & (WIDTH - 1), inner = (n.points - before) & -WIDTH;
    const i32 single = lane < before ? lane - before : inner + lane - before;
    const bool has_single = is_row && single + before < n.points;
    const i32 end = is_row ? inner : 0, start = lane * WIDTH, step = lanes * WIDTH;
    f32 a5 = LOWEST_f32;
    i64 a8 = 0;
    Vector<f32, WIDTH> m0[HELD];
    Vector<f32, WIDTH> m1[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i0 = (point + before);
            m0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i0));
            m1[k] = *(const Vector<f32, WIDTH>*)(p_v1 + (i0));
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i0 = (point + before);
            Vector<f32, WIDTH> o0;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v1 = m1[k].e[j];
                const f32 v2 = op_mul_f32(v1, v1);
                const f32 v3 = op_add_f32(v2, v0);
                const f32 v4 = op_abs_f32(v3);
                const bool v6 = op_isfinite_f32(v3);
                const i64 v7 = (i64)v6;
                a5 = greatest_f32(a5, v4);
                a8 = op_sum_i64(a8, v7);
                o0.e[j] = v3;
            }
            if (b2) put(p_s0 + (i0), o0);
        }
    }
    if (has_single) {
        enum { WIDTH = 1, HELD = 1 };
        const i32 start = single, step = 1;
        Vector<f32, 1> em0[1];
        Vector<f32, 1> em1[1];
#pragma unroll
        for (i32 k = 0; k < 1; k++) {
            const i32 point = start + k * step;
            const i32 i0 = (point + before);
            em0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i0));
            em1[k] = *(const Vector<f32, WIDTH>*)(p_v1 + (i0));
        }
#pragma unroll
        for (i32 k = 0; k < 1; k++) {
            const i32 point = start + k * step;
            const i32 i0 = (point + before);
            Vector<f32, WIDTH> o0;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = em0[k].e[j];
                const f32 v1 = em1[k].e[j];
                const f32 v2 = op_mul_f32(v1, v1);
                const f32 v3 = op_add_f32(v2, v0);
                const f32 v4 = op_abs_f32(v3);
                const bool v6 = op_isfinite_f32(v3);
                const i64 v7 = (i64)v6;
                a5 = greatest_f32(a5, v4);
                a8 = op_sum_i64(a8, v7);
                o0.e[j] = v3;
            }
            if (b2) put(p_s0 + (i0), o0);
        }
    }
    const f32 v5 = team_max_f32((f32*)shared[0], a5, lanes);
    const i64 v8 = team_sum_i64((i64*)shared[1], a8, lanes);
    if (is_row && lane == 0) {
        if (b3) b3[n.offset_s1] = v5;
        if (b4) b4[n.offset_s2] = v8;
    }
}
