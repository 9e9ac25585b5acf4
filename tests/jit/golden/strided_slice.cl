// Golden for opencl: a transposed matrix, slices of another, a result with gaps.
// Every point of 2 axes.
typedef struct {
    i64 points;
    i64 extent1;
    i64 offset_v0, stride_v0_0, stride_v0_1;
    i64 offset_v1, stride_v1_0, stride_v1_1;
    i64 offset_s0, stride_s0_0, stride_s0_1;
} Numbers;

static inline f32 op_sub_f32(f32 x, f32 y) { return x - y; }

__kernel void fused(__global const f32* restrict b0, __global const f32* restrict b1, __global f32* restrict b2, const Numbers n)
{
    for (i64 point = (i64)get_group_id(0) * (i32)get_local_size(0) + (i32)get_local_id(0); point < n.points; point += (i64)get_num_groups(0) * (i32)get_local_size(0)) {
        i64 rest = point;
        const i64 i1 = rest % n.extent1;
        rest /= n.extent1;
        const i64 i0 = rest;
        const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
        const f32 v1 = b1[n.offset_v1 + i0 * n.stride_v1_0 + i1 * n.stride_v1_1];
        const f32 v2 = op_sub_f32(v1, v0);
        if (b2) b2[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = v2;
    }
}
