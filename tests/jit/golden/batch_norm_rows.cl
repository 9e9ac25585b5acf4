// Golden for opencl: normalisation of channels over images and places.
// Rows over 1 axis, points over 2 axes, read 3 times.
typedef struct {
    i64 rows, points;
    i64 offset_v7, stride_v7_1;
    i64 offset_v8, stride_v8_1;
    i64 extent2;
    i64 offset_v0, stride_v0_0, stride_v0_1, stride_v0_2;
    i64 offset_s0, stride_s0_0, stride_s0_1, stride_s0_2;
    f32 scalar_v2;
    f32 scalar_v9;
    i32 per_block;
} Numbers;

// Threads t, t + rows, t + 2 rows .. have what belongs to row t: it meets as a tree.
static inline pair_f32 block_sum_f32(__local pair_f32* shared, pair_f32 x, i32 rows)
{
    const i32 thread = (i32)get_local_id(0);
    shared[thread] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i32 reach = (i32)get_local_size(0) / 2; reach >= rows; reach /= 2) {
        if (thread < reach) shared[thread] = sum_f32(shared[thread], shared[thread + reach]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const pair_f32 r = shared[thread % rows];
    barrier(CLK_LOCAL_MEM_FENCE);
    return r;
}

static inline f32 op_div_f32(f32 x, f32 y) { return x / y; }

static inline f32 op_sub_f32(f32 x, f32 y) { return x - y; }

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static inline f32 op_add_f32(f32 x, f32 y) { return x + y; }

static inline f32 op_rsqrt_f32(f32 x) { return 1.0f / sqrt_f32(x); }

__kernel void fused(__global const f32* restrict b0, __global const f32* restrict b1, __global const f32* restrict b2, __global f32* restrict b3, const Numbers n)
{
    __local u64 shared[2 * 256];
    const i32 lane = (i32)get_local_id(0) / n.per_block, lanes = (i32)get_local_size(0) / n.per_block;
    for (i64 first = (i64)get_group_id(0) * n.per_block; first < n.rows; first += (i64)get_num_groups(0) * n.per_block) {
        const i64 row = first + (i32)get_local_id(0) % n.per_block;
        const bool is_row = row < n.rows;
        const i64 points = is_row ? n.points : 0;
        const i64 here = is_row ? row : n.rows - 1;
        const i64 i1 = here;
        const f32 v7 = b1[n.offset_v7 + i1 * n.stride_v7_1];
        const f32 v8 = b2[n.offset_v8 + i1 * n.stride_v8_1];
        pair_f32 a1 = pair_of_f32(0.0f);
        for (i64 point = lane; point < points; point += lanes) {
            i64 rest = point;
            const i64 i2 = rest % n.extent2;
            rest /= n.extent2;
            const i64 i0 = rest;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1 + i2 * n.stride_v0_2];
            a1 = sum_f32(a1, pair_of_f32(v0));
        }
        const f32 v1 = total_f32(block_sum_f32((__local pair_f32*)shared, a1, n.per_block));
        const f32 v3 = op_div_f32(v1, n.scalar_v2);
        pair_f32 a6 = pair_of_f32(0.0f);
        for (i64 point = lane; point < points; point += lanes) {
            i64 rest = point;
            const i64 i2 = rest % n.extent2;
            rest /= n.extent2;
            const i64 i0 = rest;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1 + i2 * n.stride_v0_2];
            const f32 v4 = op_sub_f32(v0, v3);
            const f32 v5 = op_mul_f32(v4, v4);
            a6 = sum_f32(a6, pair_of_f32(v5));
        }
        const f32 v6 = total_f32(block_sum_f32((__local pair_f32*)shared, a6, n.per_block));
        const f32 v10 = op_div_f32(v6, n.scalar_v2);
        const f32 v11 = op_add_f32(v10, n.scalar_v9);
        const f32 v12 = op_rsqrt_f32(v11);
        for (i64 point = lane; point < points; point += lanes) {
            i64 rest = point;
            const i64 i2 = rest % n.extent2;
            rest /= n.extent2;
            const i64 i0 = rest;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1 + i2 * n.stride_v0_2];
            const f32 v4 = op_sub_f32(v0, v3);
            const f32 v13 = op_mul_f32(v4, v12);
            const f32 v14 = op_mul_f32(v13, v8);
            const f32 v15 = op_add_f32(v14, v7);
            if (b3) b3[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1 + i2 * n.stride_s0_2] = v15;
        }
    }
}
