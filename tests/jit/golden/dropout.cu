// Golden for cuda: uniform numbers by a key and a step as a mask, and normal noise.
// Points over 1 axis; points by 1 of 2.
enum { WIDTH = 2, HELD = 1, THREADS = 256 };
typedef struct {
    i64 offset_v8;
    i64 offset_s0;
    i64 offset_v2, stride_v2_0;
    u64 scalar_v1, scalar_v0;
    i64 offset_v12, stride_v12_0;
    u64 scalar_v11, scalar_v10;
    i32 points;
    f32 scalar_v7;
    f32 scalar_v4;
    f32 scalar_v6;
} Numbers;

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static __device__ __forceinline__ bool op_less_f32(f32 x, f32 y) { return x < y; }

static __device__ __forceinline__ f32 op_where_f32(bool x, f32 y, f32 z) { return x ? y : z; }

static __device__ __forceinline__ f32 op_add_f32(f32 x, f32 y) { return x + y; }

static __device__ __forceinline__ f32 op_div_f32(f32 x, f32 y) { return x / y; }

extern "C" __global__ void __launch_bounds__(THREADS) fused(const f32* __restrict__ b0, f32* __restrict__ b1, const Numbers n)
{
    follow();
    const Inverse d9 = inverse_of(n.scalar_v7);
    const i32 start = ((i32)blockIdx.x * (THREADS * HELD) + (i32)threadIdx.x) * WIDTH, step = THREADS * WIDTH, end = n.points;
    const f32* p_v8 = b0 + (n.offset_v8);
    f32* p_s0 = b1 + (n.offset_s0);
    Vector<f32, WIDTH> m8[HELD];
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i0 = point;
            m8[k] = *(const Vector<f32, WIDTH>*)(p_v8 + (i0));
        }
    }
#pragma unroll
    for (i32 k = 0; k < HELD; k++) {
        const i32 point = start + k * step;
        if (point < end) {
            const i32 i0 = point;
            Vector<f32, WIDTH> o0;
            bool is_tame = true;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const i64 v2 = n.offset_v2 + (i0 + j) * n.stride_v2_0;
                const f32 v3 = normal_f32(v2, n.scalar_v1, n.scalar_v0);
                const f32 v5 = op_mul_f32(n.scalar_v4, v3);
                const f32 v8 = m8[k].e[j];
                const f32 v9 = quotient_of(v8, d9, is_tame);
                const i64 v12 = n.offset_v12 + (i0 + j) * n.stride_v12_0;
                const f32 v13 = uniform_f32(v12, n.scalar_v11, n.scalar_v10);
                const bool v14 = op_less_f32(v13, n.scalar_v7);
                const f32 v15 = op_where_f32(v14, v9, n.scalar_v6);
                const f32 v16 = op_add_f32(v15, v5);
                o0.e[j] = v16;
            }
            if (!is_tame) {
#pragma unroll
                for (i32 j = 0; j < WIDTH; j++) {
                    const i64 v2 = n.offset_v2 + (i0 + j) * n.stride_v2_0;
                    const f32 v3 = normal_f32(v2, n.scalar_v1, n.scalar_v0);
                    const f32 v5 = op_mul_f32(n.scalar_v4, v3);
                    const f32 v8 = m8[k].e[j];
                    const f32 v9 = op_div_f32(v8, n.scalar_v7);
                    const i64 v12 = n.offset_v12 + (i0 + j) * n.stride_v12_0;
                    const f32 v13 = uniform_f32(v12, n.scalar_v11, n.scalar_v10);
                    const bool v14 = op_less_f32(v13, n.scalar_v7);
                    const f32 v15 = op_where_f32(v14, v9, n.scalar_v6);
                    const f32 v16 = op_add_f32(v15, v5);
                    o0.e[j] = v16;
                }
            }
            if (b1) put(p_s0 + (i0), o0);
        }
    }
}
