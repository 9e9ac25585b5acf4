// Golden for opencl: a parameter and its momentum in place.
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

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static inline f32 op_add_f32(f32 x, f32 y) { return x + y; }

static inline f32 op_sub_f32(f32 x, f32 y) { return x - y; }

__kernel void fused(__global const f32* b0, __global const f32* b1, __global const f32* b2, __global f32* b3, __global f32* b4, const Numbers n)
{
    for (i64 point = (i64)get_group_id(0) * (i32)get_local_size(0) + (i32)get_local_id(0); point < n.points; point += (i64)get_num_groups(0) * (i32)get_local_size(0)) {
        const i64 i0 = point;
        const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0];
        const f32 v1 = b1[n.offset_v1 + i0 * n.stride_v1_0];
        const f32 v3 = op_mul_f32(n.scalar_v2, v1);
        const f32 v4 = op_add_f32(v3, v0);
        const f32 v6 = op_mul_f32(n.scalar_v5, v4);
        const f32 v7 = b2[n.offset_v7 + i0 * n.stride_v7_0];
        const f32 v8 = op_sub_f32(v7, v6);
        if (b3) b3[n.offset_s0 + i0 * n.stride_s0_0] = v8;
        if (b4) b4[n.offset_s1 + i0 * n.stride_s1_0] = v4;
    }
}
