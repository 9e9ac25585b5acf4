// Golden for cuda: a parameter and its momentum in place.
// Points over 1 axis; points by 2 of 2.
enum { WIDTH = 2, HELD = 2, THREADS = 256 };
typedef struct {
    i64 offset_v0;
    i64 offset_v1;
    i64 offset_v7;
    i64 offset_s0;
    i64 offset_s1;
    i32 points;
    f32 scalar_v2, scalar_v5;
} Numbers;

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static __device__ __forceinline__ f32 op_add_f32(f32 x, f32 y) { return x + y; }

static __device__ __forceinline__ f32 op_sub_f32(f32 x, f32 y) { return x - y; }

extern "C" __global__ void __launch_bounds__(THREADS) fused(const f32* b0, const f32* b1, const f32* b2, f32* b3, f32* b4, const Numbers n)
{
    follow();
    const i32 start = ((i32)blockIdx.x * (THREADS * HELD) + (i32)threadIdx.x) * WIDTH, step = THREADS * WIDTH, end = n.points;
    const f32* p_v0 = b0 + (n.offset_v0);
    const f32* p_v1 = b1 + (n.offset_v1);
    const f32* p_v7 = b2 + (n.offset_v7);
    f32* p_s0 = b3 + (n.offset_s0);
    f32* p_s1 = b4 + (n.offset_s1);
    Vector<f32, WIDTH> m0[HELD];
    Vector<f32, WIDTH> m1[HELD];
    Vector<f32, WIDTH> m7[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i0 = point;
            m0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i0));
            m1[k] = *(const Vector<f32, WIDTH>*)(p_v1 + (i0));
            m7[k] = *(const Vector<f32, WIDTH>*)(p_v7 + (i0));
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i0 = point;
            Vector<f32, WIDTH> o0;
            Vector<f32, WIDTH> o1;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v1 = m1[k].e[j];
                const f32 v3 = op_mul_f32(n.scalar_v2, v1);
                const f32 v4 = op_add_f32(v3, v0);
                const f32 v6 = op_mul_f32(n.scalar_v5, v4);
                const f32 v7 = m7[k].e[j];
                const f32 v8 = op_sub_f32(v7, v6);
                o0.e[j] = v8;
                o1.e[j] = v4;
            }
            if (b3) put(p_s0 + (i0), o0);
            if (b4) put(p_s1 + (i0), o1);
        }
    }
}
