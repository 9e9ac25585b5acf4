// Golden for cuda: rows by index, zero where there is no such row.
// Points over 2 axes; points by 2 of 2.
enum { WIDTH = 2, HELD = 2, THREADS = 256 };
typedef struct {
    i64 offset_v1;
    i64 offset_s0;
    i64 offset_v3, stride_v3_1, extent_v3, step_v3;
    i32 points;
    u32 factor1;
    i32 shift1, extent1;
    f32 scalar_v0;
    i32 stride_s0_0;
} Numbers;

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

extern "C" __global__ void __launch_bounds__(THREADS) fused(const i32* __restrict__ b0, const f32* __restrict__ b1, f32* __restrict__ b2, const Numbers n)
{
    follow();
    const i32 start = ((i32)blockIdx.x * (THREADS * HELD) + (i32)threadIdx.x) * WIDTH, step = THREADS * WIDTH, end = n.points;
    const i32* p_v1 = b0 + (n.offset_v1);
    f32* p_s0 = b2 + (n.offset_s0);
    Vector<i32, 1> m1[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q1 = quotient_of(point, n.factor1, n.shift1), i1 = point - q1 * n.extent1;
            const i32 i0 = q1;
            m1[k].e[0] = p_v1[i0];
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q1 = quotient_of(point, n.factor1, n.shift1), i1 = point - q1 * n.extent1;
            const i32 i0 = q1;
            Vector<f32, WIDTH> o0;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const i32 v1 = m1[k].e[0];
                const i64 v2 = (i64)v1;
                const f32 v3 = (u64)v2 < (u64)n.extent_v3 ? b1[n.offset_v3 + (i1 + j) * n.stride_v3_1 + v2 * n.step_v3] : 0.0f;
                const f32 v4 = op_mul_f32(v3, n.scalar_v0);
                o0.e[j] = v4;
            }
            if (b2) put(p_s0 + (i0 * n.stride_s0_0 + i1), o0);
        }
    }
}
