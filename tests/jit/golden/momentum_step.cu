// Golden for cuda: a parameter and its momentum in place.
// Every point of 1 axis.
typedef struct {
    i64 points;
    i64 offset_v0, stride_v0_0;
    i64 offset_v1, stride_v1_0;
    i64 offset_v7, stride_v7_0;
    i64 offset_s0, stride_s0_0;
    i64 offset_s1, stride_s1_0;
    f32 scalar_v2, scalar_v5;
} Numbers;

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static __device__ __forceinline__ f32 op_add_f32(f32 x, f32 y) { return x + y; }

static __device__ __forceinline__ f32 op_sub_f32(f32 x, f32 y) { return x - y; }

extern "C" __global__ void __launch_bounds__(256) fused(const f32* b0, const f32* b1, const f32* b2, f32* b3, f32* b4, const Numbers n)
{
    for (i64 point = (i64)blockIdx.x * (i32)blockDim.x + (i32)threadIdx.x; point < n.points; point += (i64)gridDim.x * (i32)blockDim.x) {
        const i64 i0 = point;
        const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0];
        const f32 v1 = b1[n.offset_v1 + i0 * n.stride_v1_0];
        const f32 v3 = op_mul_f32(n.scalar_v2, v1);
        const f32 v4 = op_add_f32(v3, v0);
        const f32 v6 = op_mul_f32(n.scalar_v5, v4);
        const f32 v7 = b2[n.offset_v7 + i0 * n.stride_v7_0];
        const f32 v8 = op_sub_f32(v7, v6);
        b3[n.offset_s0 + i0 * n.stride_s0_0] = v8;
        b4[n.offset_s1 + i0 * n.stride_s1_0] = v4;
    }
}
