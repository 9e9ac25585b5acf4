// Golden for cuda: a transposed matrix, slices of another, a result with gaps.
// Points over 2 axes; points by 8 of 1.
enum { WIDTH = 1, HELD = 8, THREADS = 256 };
typedef struct {
    i64 offset_v0;
    i64 offset_v1;
    i64 offset_s0;
    i32 points;
    u32 factor1;
    i32 shift1, extent1, stride_v0_0, stride_v0_1, stride_v1_0, stride_v1_1;
    i32 stride_s0_0, stride_s0_1;
} Numbers;

static __device__ __forceinline__ f32 op_sub_f32(f32 x, f32 y) { return x - y; }

extern "C" __global__ void __launch_bounds__(THREADS) fused(const f32* __restrict__ b0, const f32* __restrict__ b1, f32* __restrict__ b2, const Numbers n)
{
    follow();
    const i32 start = ((i32)blockIdx.x * (THREADS * HELD) + (i32)threadIdx.x) * WIDTH, step = THREADS * WIDTH, end = n.points;
    const f32* p_v0 = b0 + (n.offset_v0);
    const f32* p_v1 = b1 + (n.offset_v1);
    f32* p_s0 = b2 + (n.offset_s0);
    Vector<f32, WIDTH> m0[HELD];
    Vector<f32, WIDTH> m1[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q1 = quotient_of(point, n.factor1, n.shift1), i1 = point - q1 * n.extent1;
            const i32 i0 = q1;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) m0[k].e[j] = p_v0[i0 * n.stride_v0_0 + i1 * n.stride_v0_1 + j * n.stride_v0_1];
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) m1[k].e[j] = p_v1[i0 * n.stride_v1_0 + i1 * n.stride_v1_1 + j * n.stride_v1_1];
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q1 = quotient_of(point, n.factor1, n.shift1), i1 = point - q1 * n.extent1;
            const i32 i0 = q1;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v1 = m1[k].e[j];
                const f32 v2 = op_sub_f32(v1, v0);
                if (b2) p_s0[i0 * n.stride_s0_0 + (i1 + j) * n.stride_s0_1] = v2;
            }
        }
    }
}
