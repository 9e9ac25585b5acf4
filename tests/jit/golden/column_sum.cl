// Golden for opencl: sums down the columns.
// Rows over 1 axis, points over 1 axis, read 1 time.
typedef struct {
    i64 rows, points;
    i64 offset_v0, stride_v0_0, stride_v0_1;
    i64 offset_s0, stride_s0_1;
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

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

__kernel void fused(__global const f32* restrict b0, __global f32* restrict b1, const Numbers n)
{
    __local u64 shared[2 * 256];
    const i32 lane = (i32)get_local_id(0) / n.per_block, lanes = (i32)get_local_size(0) / n.per_block;
    for (i64 first = (i64)get_group_id(0) * n.per_block; first < n.rows; first += (i64)get_num_groups(0) * n.per_block) {
        const i64 row = first + (i32)get_local_id(0) % n.per_block;
        const bool is_row = row < n.rows;
        const i64 points = is_row ? n.points : 0;
        const i64 here = is_row ? row : n.rows - 1;
        const i64 i1 = here;
        pair_f32 a2 = pair_of_f32(0.0f);
        for (i64 point = lane; point < points; point += lanes) {
            const i64 i0 = point;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
            const f32 v1 = op_mul_f32(v0, v0);
            a2 = sum_f32(a2, pair_of_f32(v1));
        }
        const f32 v2 = total_f32(block_sum_f32((__local pair_f32*)shared, a2, n.per_block));
        if (is_row && lane == 0) {
            if (b1) b1[n.offset_s0 + i1 * n.stride_s0_1] = v2;
        }
    }
}
