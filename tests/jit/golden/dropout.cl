// Golden for opencl: uniform numbers by a key and a step as a mask, and normal noise.
// Every point of 2 axes.
typedef struct {
    i64 points;
    i64 extent1;
    i64 offset_v2, stride_v2_0, stride_v2_1;
    u64 scalar_v1, scalar_v0;
    i64 offset_v8, stride_v8_0, stride_v8_1;
    i64 offset_v12, stride_v12_0, stride_v12_1;
    u64 scalar_v11, scalar_v10;
    i64 offset_s0, stride_s0_0, stride_s0_1;
    f32 scalar_v4;
    f32 scalar_v7;
    f32 scalar_v6;
} Numbers;

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static inline f32 op_div_f32(f32 x, f32 y) { return x / y; }

static inline bool op_less_f32(f32 x, f32 y) { return x < y; }

static inline f32 op_where_f32(bool x, f32 y, f32 z) { return x ? y : z; }

static inline f32 op_add_f32(f32 x, f32 y) { return x + y; }

__kernel void fused(__global const f32* restrict b0, __global f32* restrict b1, const Numbers n)
{
    for (i64 point = (i64)get_group_id(0) * (i32)get_local_size(0) + (i32)get_local_id(0); point < n.points; point += (i64)get_num_groups(0) * (i32)get_local_size(0)) {
        i64 rest = point;
        const i64 i1 = rest % n.extent1;
        rest /= n.extent1;
        const i64 i0 = rest;
        const i64 v2 = n.offset_v2 + i0 * n.stride_v2_0 + i1 * n.stride_v2_1;
        const f32 v3 = normal_f32(v2, n.scalar_v1, n.scalar_v0);
        const f32 v5 = op_mul_f32(n.scalar_v4, v3);
        const f32 v8 = b0[n.offset_v8 + i0 * n.stride_v8_0 + i1 * n.stride_v8_1];
        const f32 v9 = op_div_f32(v8, n.scalar_v7);
        const i64 v12 = n.offset_v12 + i0 * n.stride_v12_0 + i1 * n.stride_v12_1;
        const f32 v13 = uniform_f32(v12, n.scalar_v11, n.scalar_v10);
        const bool v14 = op_less_f32(v13, n.scalar_v7);
        const f32 v15 = op_where_f32(v14, v9, n.scalar_v6);
        const f32 v16 = op_add_f32(v15, v5);
        if (b1) b1[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = v16;
    }
}
