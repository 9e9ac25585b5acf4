// Golden for cuda: softmax along the fastest axis.
// Rows over 1 axis, points over 1 axis; rows held by 4 of 2.
enum { WIDTH = 2, HELD = 4, THREADS = 256 };
typedef struct {
    i64 offset_v0, stride_v0_0;
    i64 offset_s0, stride_s0_0;
    i32 rows, points, log_lanes;
    f32 scalar_v2;
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

static __device__ __forceinline__ f32 op_sum_f32(f32 x, f32 y) { return x + y; }

// A team is `lanes` threads side by side, a power of two. shared: of its block, an element a warp.
static __device__ __forceinline__ f32 team_sum_f32(f32* shared, f32 x, i32 lanes)
{
    for (i32 reach = (lanes < 32 ? lanes : 32) / 2; reach > 0; reach /= 2) x = op_sum_f32(x, shuffled(x, reach));
    if (lanes > 32) {
        const i32 thread = (i32)threadIdx.x, warps = lanes / 32;
        if (thread % 32 == 0) shared[thread / 32] = x;
        __syncthreads();
        x = shared[(thread & -lanes) / 32 + (thread & (warps - 1))];
        for (i32 reach = warps / 2; reach > 0; reach /= 2) x = op_sum_f32(x, shuffled(x, reach));
    }
    return x;
}

static __device__ __forceinline__ bool op_isfinite_f32(f32 x) { return x - x == 0.0f; }

static __device__ __forceinline__ f32 op_where_f32(bool x, f32 y, f32 z) { return x ? y : z; }

static __device__ __forceinline__ f32 op_sub_f32(f32 x, f32 y) { return x - y; }

static __device__ __forceinline__ f32 op_exp_f32(f32 x) { return exp_f32(x); }

static __device__ __forceinline__ f32 op_div_f32(f32 x, f32 y) { return x / y; }

extern "C" __global__ void __launch_bounds__(THREADS, 4) fused(const f32* __restrict__ b0, f32* __restrict__ b1, const Numbers n)
{
    follow();
    __shared__ u64 shared[2][32];
    const i32 lanes = 1 << n.log_lanes, lane = (i32)threadIdx.x & (lanes - 1);
    const i32 row = (i32)blockIdx.x * ((i32)blockDim.x >> n.log_lanes) + ((i32)threadIdx.x >> n.log_lanes);
    const bool is_row = row < n.rows;
    const i32 here = is_row ? row : n.rows - 1;
    const i32 i0 = here;
    const f32* p_v0 = hidden(b0 + (n.offset_v0 + i0 * n.stride_v0_0));
    f32* p_s0 = hidden(b1 + (n.offset_s0 + i0 * n.stride_s0_0));
    const i32 end = is_row ? n.points : 0, start = lane * WIDTH, step = lanes * WIDTH;
    Vector<f32, WIDTH> m0[HELD];
    f32 v6[HELD][WIDTH];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i1 = point;
            m0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i1));
        }
    }
    f32 a1 = LOWEST_f32;
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i1 = point;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                a1 = greatest_f32(a1, v0);
            }
        }
    }
    const f32 v1 = team_max_f32((f32*)shared[0], a1, lanes);
    const bool v3 = op_isfinite_f32(v1);
    const f32 v4 = op_where_f32(v3, v1, n.scalar_v2);
    f32 a7 = 0.0f;
    f32 x7[HELD] = {};
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i1 = point;
            f32 y7[WIDTH];
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v5 = op_sub_f32(v0, v4);
                v6[k][j] = op_exp_f32(v5);
                y7[j] = v6[k][j];
            }
            x7[k] = (y7[0] + y7[1]);
        }
    }
    a7 = op_sum_f32(a7, ((x7[0] + x7[1]) + (x7[2] + x7[3])));
    const f32 v7 = team_sum_f32((f32*)shared[1], a7, lanes);
    const Inverse d8 = inverse_of(v7);
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i1 = point;
            Vector<f32, WIDTH> o0;
            bool is_tame = true;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v8 = quotient_of(v6[k][j], d8, is_tame);
                o0.e[j] = v8;
            }
            if (!is_tame) {
#pragma unroll
                for (i32 j = 0; j < WIDTH; j++) {
                    const f32 v8 = op_div_f32(v6[k][j], v7);
                    o0.e[j] = v8;
                }
            }
            if (b1) put(p_s0 + (i1), o0);
        }
    }
}
