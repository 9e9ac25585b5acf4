// Golden for opencl: a chain of element-wise operations with a constant and a scalar.
// Every point of 2 axes.
typedef struct {
    i64 points;
    i64 extent1;
    i64 offset_v0, stride_v0_0, stride_v0_1;
    i64 offset_v1, stride_v1_0, stride_v1_1;
    i64 offset_s0, stride_s0_0, stride_s0_1;
    f32 scalar_v3, scalar_v6;
} Numbers;

static inline f32 op_maximum_f32(f32 x, f32 y) { return x > y || x != x ? x : y; }

static inline f32 op_sub_f32(f32 x, f32 y) { return x - y; }

static inline f32 op_sigmoid_f32(f32 x) { return sigmoid_f32(x); }

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static inline f32 op_add_f32(f32 x, f32 y) { return x + y; }

static inline f32 op_gelu_f32(f32 x) { return gelu_f32(x); }

__kernel void fused(__global const f32* restrict b0, __global const f32* restrict b1, __global f32* restrict b2, const Numbers n)
{
    for (i64 point = (i64)get_group_id(0) * (i32)get_local_size(0) + (i32)get_local_id(0); point < n.points; point += (i64)get_num_groups(0) * (i32)get_local_size(0)) {
        i64 rest = point;
        const i64 i1 = rest % n.extent1;
        rest /= n.extent1;
        const i64 i0 = rest;
        const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
        const f32 v1 = b1[n.offset_v1 + i0 * n.stride_v1_0 + i1 * n.stride_v1_1];
        const f32 v2 = op_maximum_f32(v1, v0);
        const f32 v4 = op_sub_f32(n.scalar_v3, v2);
        const f32 v5 = op_sigmoid_f32(v4);
        const f32 v7 = op_mul_f32(v1, n.scalar_v6);
        const f32 v8 = op_add_f32(v7, v0);
        const f32 v9 = op_gelu_f32(v8);
        const f32 v10 = op_mul_f32(v9, v5);
        if (b2) b2[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = v10;
    }
}
