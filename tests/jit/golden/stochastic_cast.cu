// Golden for cuda: f32 rounded to bf16 by chance.
// Points over 1 axis; points by 1 of 4.
enum { WIDTH = 4, HELD = 1, THREADS = 256 };
typedef struct {
    i64 offset_v2;
    i64 offset_s0;
    i64 offset_v3, stride_v3_0;
    u64 scalar_v1, scalar_v0;
    i32 points;
    i32 bits_v5;
} Numbers;

extern "C" __global__ void __launch_bounds__(THREADS) fused(const f32* __restrict__ b0, bf16* __restrict__ b1, const Numbers n)
{
    follow();
    const i32 start = ((i32)blockIdx.x * (THREADS * HELD) + (i32)threadIdx.x) * WIDTH, step = THREADS * WIDTH, end = n.points;
    const f32* p_v2 = b0 + (n.offset_v2);
    bf16* p_s0 = b1 + (n.offset_s0);
    Vector<f32, WIDTH> m2[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            m2[k] = first_of<WIDTH>(p_v2 + point, end - point);
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            f32 o0[WIDTH];
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const i32 there = j < end - point ? point + j : end - 1;
                const i32 i0 = there;
                const f32 v2 = m2[k].e[j];
                const i64 v3 = n.offset_v3 + i0 * n.stride_v3_0;
                const u32 v4 = random_word3(v3, n.scalar_v1, n.scalar_v0);
                const f32 v5 = stochastic_f32(v2, v4, n.bits_v5, -126, 3.3895314e+38f, false);
                o0[j] = v5;
            }
            if (b1) put_first<WIDTH>(p_s0 + point, packed_bf16(o0), end - point);
        }
    }
}
