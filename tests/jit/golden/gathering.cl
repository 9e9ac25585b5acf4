// Golden for opencl: rows by index, zero where there is no such row.
// Every point of 2 axes.
typedef struct {
    i64 points;
    i64 extent1;
    i64 offset_v1, stride_v1_0;
    i64 offset_v3, stride_v3_1, extent_v3, step_v3;
    i64 offset_s0, stride_s0_0, stride_s0_1;
    f32 scalar_v0;
} Numbers;

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

__kernel void fused(__global const i32* restrict b0, __global const f32* restrict b1, __global f32* restrict b2, const Numbers n)
{
    for (i64 point = (i64)get_group_id(0) * (i32)get_local_size(0) + (i32)get_local_id(0); point < n.points; point += (i64)get_num_groups(0) * (i32)get_local_size(0)) {
        i64 rest = point;
        const i64 i1 = rest % n.extent1;
        rest /= n.extent1;
        const i64 i0 = rest;
        const i32 v1 = b0[n.offset_v1 + i0 * n.stride_v1_0];
        const i64 v2 = (i64)v1;
        const f32 v3 = (u64)v2 < (u64)n.extent_v3 ? b1[n.offset_v3 + i1 * n.stride_v3_1 + v2 * n.step_v3] : 0.0f;
        const f32 v4 = op_mul_f32(v3, n.scalar_v0);
        if (b2) b2[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = v4;
    }
}
