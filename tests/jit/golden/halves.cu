// Golden for cuda: f16 read and written, f32 between.
// Points over 2 axes; points by 2 of 8.
enum { WIDTH = 8, HELD = 2, THREADS = 256 };
typedef struct {
    i64 offset_v1;
    i64 offset_v2;
    i64 offset_s0;
    i32 points;
    u32 factor1;
    i32 shift1, extent1, stride_v2_0;
    f32 scalar_v0;
    i32 stride_s0_0;
} Numbers;

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static __device__ __forceinline__ f32 op_add_f32(f32 x, f32 y) { return x + y; }

static __device__ __forceinline__ f32 op_relu_f32(f32 x) { return x > 0.0f || x != x ? x : 0.0f; }

extern "C" __global__ void __launch_bounds__(THREADS) fused(const bf16* __restrict__ b0, const f16* __restrict__ b1, f16* __restrict__ b2, const Numbers n)
{
    follow();
    const i32 start = ((i32)blockIdx.x * (THREADS * HELD) + (i32)threadIdx.x) * WIDTH, step = THREADS * WIDTH, end = n.points;
    const bf16* p_v1 = hidden(b0 + (n.offset_v1));
    const f16* p_v2 = hidden(b1 + (n.offset_v2));
    f16* p_s0 = hidden(b2 + (n.offset_s0));
    Vector<bf16, WIDTH> m1[HELD];
    Vector<f16, WIDTH> m2[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q1 = quotient_of(point, n.factor1, n.shift1), i1 = point - q1 * n.extent1;
            const i32 i0 = q1;
            m1[k] = *(const Vector<bf16, WIDTH>*)(p_v1 + (i1));
            m2[k] = *(const Vector<f16, WIDTH>*)(p_v2 + (i0 * n.stride_v2_0 + i1));
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 q1 = quotient_of(point, n.factor1, n.shift1), i1 = point - q1 * n.extent1;
            const i32 i0 = q1;
            f32 o0[WIDTH];
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v1 = f32_of_bf16(m1[k].e[j]);
                const f32 v2 = f32_of_f16(m2[k].e[j]);
                const f32 v3 = op_mul_f32(v2, v1);
                const f32 v4 = op_add_f32(v3, n.scalar_v0);
                const f32 v5 = op_relu_f32(v4);
                const f32 v6 = round_f16(v5);
                o0[j] = v5;
            }
            if (b2) put(p_s0 + (i0 * n.stride_s0_0 + i1), packed_f16(o0));
        }
    }
}
