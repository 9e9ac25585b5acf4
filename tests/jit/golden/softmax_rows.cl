// Golden for opencl: softmax along the fastest axis.
// Rows over 1 axis, points over 1 axis, read 3 times.
typedef struct {
    i64 rows, points;
    i64 offset_v0, stride_v0_0, stride_v0_1;
    i64 offset_s0, stride_s0_0, stride_s0_1;
    f32 scalar_v2;
    i32 per_block;
} Numbers;

static inline f32 op_max_f32(f32 x, f32 y) { return x > y || x != x ? x : y; }

// Threads t, t + rows, t + 2 rows .. have what belongs to row t: it meets as a tree.
static inline f32 block_max_f32(__local f32* shared, f32 x, i32 rows)
{
    const i32 thread = (i32)get_local_id(0);
    shared[thread] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i32 reach = (i32)get_local_size(0) / 2; reach >= rows; reach /= 2) {
        if (thread < reach) shared[thread] = op_max_f32(shared[thread], shared[thread + reach]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const f32 r = shared[thread % rows];
    barrier(CLK_LOCAL_MEM_FENCE);
    return r;
}

static inline bool op_isfinite_f32(f32 x) { return x - x == 0.0f; }

static inline f32 op_where_f32(bool x, f32 y, f32 z) { return x ? y : z; }

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

static inline f32 op_sub_f32(f32 x, f32 y) { return x - y; }

static inline f32 op_exp_f32(f32 x) { return exp_f32(x); }

static inline f32 op_div_f32(f32 x, f32 y) { return x / y; }

__kernel void fused(__global const f32* restrict b0, __global f32* restrict b1, const Numbers n)
{
    __local u64 shared[2 * 256];
    const i32 lane = (i32)get_local_id(0) / n.per_block, lanes = (i32)get_local_size(0) / n.per_block;
    for (i64 first = (i64)get_group_id(0) * n.per_block; first < n.rows; first += (i64)get_num_groups(0) * n.per_block) {
        const i64 row = first + (i32)get_local_id(0) % n.per_block;
        const bool is_row = row < n.rows;
        const i64 points = is_row ? n.points : 0;
        const i64 here = is_row ? row : n.rows - 1;
        const i64 i0 = here;
        f32 a1 = LOWEST_f32;
        for (i64 point = lane; point < points; point += lanes) {
            const i64 i1 = point;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
            a1 = op_max_f32(a1, v0);
        }
        const f32 v1 = block_max_f32((__local f32*)shared, a1, n.per_block);
        const bool v3 = op_isfinite_f32(v1);
        const f32 v4 = op_where_f32(v3, v1, n.scalar_v2);
        pair_f32 a7 = pair_of_f32(0.0f);
        for (i64 point = lane; point < points; point += lanes) {
            const i64 i1 = point;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
            const f32 v5 = op_sub_f32(v0, v4);
            const f32 v6 = op_exp_f32(v5);
            a7 = sum_f32(a7, pair_of_f32(v6));
        }
        const f32 v7 = total_f32(block_sum_f32((__local pair_f32*)shared, a7, n.per_block));
        for (i64 point = lane; point < points; point += lanes) {
            const i64 i1 = point;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
            const f32 v5 = op_sub_f32(v0, v4);
            const f32 v6 = op_exp_f32(v5);
            const f32 v8 = op_div_f32(v6, v7);
            if (b1) b1[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = v8;
        }
    }
}
