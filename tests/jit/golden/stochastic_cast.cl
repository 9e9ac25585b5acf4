// Golden for opencl: f32 rounded to bf16 by chance.
// Every point of 2 axes.
typedef struct {
    i64 points;
    i64 extent1;
    i64 offset_v2, stride_v2_0, stride_v2_1;
    i64 offset_v3, stride_v3_0, stride_v3_1;
    u64 scalar_v1, scalar_v0;
    i64 offset_s0, stride_s0_0, stride_s0_1;
    i32 bits_v5;
} Numbers;

__kernel void fused(__global const f32* restrict b0, __global bf16* restrict b1, const Numbers n)
{
    for (i64 point = (i64)get_group_id(0) * (i32)get_local_size(0) + (i32)get_local_id(0); point < n.points; point += (i64)get_num_groups(0) * (i32)get_local_size(0)) {
        i64 rest = point;
        const i64 i1 = rest % n.extent1;
        rest /= n.extent1;
        const i64 i0 = rest;
        const f32 v2 = b0[n.offset_v2 + i0 * n.stride_v2_0 + i1 * n.stride_v2_1];
        const i64 v3 = n.offset_v3 + i0 * n.stride_v3_0 + i1 * n.stride_v3_1;
        const u32 v4 = random_word3(v3, n.scalar_v1, n.scalar_v0);
        const f32 v5 = stochastic_f32(v2, v4, n.bits_v5, -126, 3.3895314e+38f, false);
        if (b1) b1[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = bf16_of_f32(v5);
    }
}
