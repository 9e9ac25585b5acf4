// Golden for cuda: normalisation of channels over images and places.
// Rows over 1 axis, points over 2 axes; rows held by 7 of 1.
enum { WIDTH = 1, HELD = 7, THREADS = 256 };
typedef struct {
    i64 offset_v0, stride_v0_0;
    i64 offset_s0, stride_s0_0;
    i64 offset_v7, stride_v7_0;
    i64 offset_v8, stride_v8_0;
    i32 rows, points, log_lanes;
    u32 factor2;
    i32 shift2, extent2, stride_v0_1;
    f32 scalar_v2;
    f32 scalar_v9;
    i32 stride_s0_1;
} Numbers;

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

static __device__ __forceinline__ f32 op_div_f32(f32 x, f32 y) { return x / y; }

static __device__ __forceinline__ f32 op_sub_f32(f32 x, f32 y) { return x - y; }

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static __device__ __forceinline__ f32 op_add_f32(f32 x, f32 y) { return x + y; }

static __device__ __forceinline__ f32 op_rsqrt_f32(f32 x) { return 1.0f / sqrt_f32(x); }

extern "C" __global__ void __launch_bounds__(THREADS, 4) fused(const f32* __restrict__ b0, const f32* __restrict__ b1, const f32* __restrict__ b2, f32* __restrict__ b3, const Numbers n)
{
    follow();
    __shared__ u64 shared[2][32];
    const i32 lanes = 1 << n.log_lanes, lane = (i32)threadIdx.x & (lanes - 1);
    const i32 row = (i32)blockIdx.x * ((i32)blockDim.x >> n.log_lanes) + ((i32)threadIdx.x >> n.log_lanes);
    const bool is_row = row < n.rows;
    const i32 here = is_row ? row : n.rows - 1;
    const i32 i0 = here;
    const f32* p_v0 = hidden(b0 + (n.offset_v0 + i0 * n.stride_v0_0));
    f32* p_s0 = hidden(b3 + (n.offset_s0 + i0 * n.stride_s0_0));
    const i32 end = is_row ? n.points : 0, start = lane * WIDTH, step = lanes * WIDTH;
    Vector<f32, WIDTH> m0[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q2 = quotient_of(point, n.factor2, n.shift2), i2 = point - q2 * n.extent2;
            const i32 i1 = q2;
            m0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i1 * n.stride_v0_1 + i2));
        }
    }
    const f32 v7 = b1[n.offset_v7 + i0 * n.stride_v7_0];
    const f32 v8 = b2[n.offset_v8 + i0 * n.stride_v8_0];
    f32 a1 = 0.0f;
    f32 x1[HELD] = {};
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q2 = quotient_of(point, n.factor2, n.shift2), i2 = point - q2 * n.extent2;
            const i32 i1 = q2;
            f32 y1[WIDTH];
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                y1[j] = v0;
            }
            x1[k] = y1[0];
        }
    }
    a1 = op_sum_f32(a1, (((x1[0] + x1[1]) + (x1[2] + x1[3])) + ((x1[4] + x1[5]) + x1[6])));
    const f32 v1 = team_sum_f32((f32*)shared[0], a1, lanes);
    const f32 v3 = op_div_f32(v1, n.scalar_v2);
    f32 a6 = 0.0f;
    f32 x6[HELD] = {};
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q2 = quotient_of(point, n.factor2, n.shift2), i2 = point - q2 * n.extent2;
            const i32 i1 = q2;
            f32 y6[WIDTH];
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v4 = op_sub_f32(v0, v3);
                const f32 v5 = op_mul_f32(v4, v4);
                y6[j] = v5;
            }
            x6[k] = y6[0];
        }
    }
    a6 = op_sum_f32(a6, (((x6[0] + x6[1]) + (x6[2] + x6[3])) + ((x6[4] + x6[5]) + x6[6])));
    const f32 v6 = team_sum_f32((f32*)shared[1], a6, lanes);
    const f32 v10 = op_div_f32(v6, n.scalar_v2);
    const f32 v11 = op_add_f32(v10, n.scalar_v9);
    const f32 v12 = op_rsqrt_f32(v11);
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q2 = quotient_of(point, n.factor2, n.shift2), i2 = point - q2 * n.extent2;
            const i32 i1 = q2;
            Vector<f32, WIDTH> o0;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v4 = op_sub_f32(v0, v3);
                const f32 v13 = op_mul_f32(v4, v12);
                const f32 v14 = op_mul_f32(v13, v8);
                const f32 v15 = op_add_f32(v14, v7);
                o0.e[j] = v15;
            }
            if (b3) put(p_s0 + (i1 * n.stride_s0_1 + i2), o0);
        }
    }
}
