// Golden for opencl: f16 read and written, f32 between.
// Every point of 2 axes.
typedef struct {
    i64 points;
    i64 extent1;
    i64 offset_v1, stride_v1_1;
    i64 offset_v2, stride_v2_0, stride_v2_1;
    i64 offset_s0, stride_s0_0, stride_s0_1;
    f32 scalar_v0;
} Numbers;

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static inline f32 op_add_f32(f32 x, f32 y) { return x + y; }

static inline f32 op_relu_f32(f32 x) { return x > 0.0f || x != x ? x : 0.0f; }

__kernel void fused(__global const bf16* restrict b0, __global const f16* restrict b1, __global f16* restrict b2, const Numbers n)
{
    for (i64 point = (i64)get_group_id(0) * (i32)get_local_size(0) + (i32)get_local_id(0); point < n.points; point += (i64)get_num_groups(0) * (i32)get_local_size(0)) {
        i64 rest = point;
        const i64 i1 = rest % n.extent1;
        rest /= n.extent1;
        const i64 i0 = rest;
        const f32 v1 = f32_of_bf16(b0[n.offset_v1 + i1 * n.stride_v1_1]);
        const f32 v2 = f32_of_f16(b1[n.offset_v2 + i0 * n.stride_v2_0 + i1 * n.stride_v2_1]);
        const f32 v3 = op_mul_f32(v2, v1);
        const f32 v4 = op_add_f32(v3, n.scalar_v0);
        const f32 v5 = op_relu_f32(v4);
        const f32 v6 = round_f16(v5);
        if (b2) b2[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = f16_of_f32(v6);
    }
}
