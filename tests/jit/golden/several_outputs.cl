// Golden for opencl: a result beside what is asked about it.
// Rows over 0 axes, points over 2 axes, read 1 time.
typedef struct {
    i64 rows, points;
    i64 extent1;
    i64 offset_v0, stride_v0_0, stride_v0_1;
    i64 offset_v1, stride_v1_0, stride_v1_1;
    i64 offset_s0, stride_s0_0, stride_s0_1;
    i64 offset_s1;
    i64 offset_s2;
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

static inline i64 op_sum_i64(u64 x, u64 y) { return (i64)(x + y); }

// Threads t, t + rows, t + 2 rows .. have what belongs to row t: it meets as a tree.
static inline i64 block_sum_i64(__local i64* shared, i64 x, i32 rows)
{
    const i32 thread = (i32)get_local_id(0);
    shared[thread] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i32 reach = (i32)get_local_size(0) / 2; reach >= rows; reach /= 2) {
        if (thread < reach) shared[thread] = op_sum_i64(shared[thread], shared[thread + reach]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const i64 r = shared[thread % rows];
    barrier(CLK_LOCAL_MEM_FENCE);
    return r;
}

static inline f32 op_mul_f32(f32 x, f32 y) { return x * y; }

static inline f32 op_add_f32(f32 x, f32 y) { return x + y; }

static inline f32 op_abs_f32(f32 x) { return abs_f32(x); }

static inline bool op_isfinite_f32(f32 x) { return x - x == 0.0f; }

__kernel void fused(__global const f32* restrict b0, __global const f32* restrict b1, __global f32* restrict b2, __global f32* restrict b3, __global i64* restrict b4, const Numbers n)
{
    __local u64 shared[2 * 256];
    const i32 lane = (i32)get_local_id(0) / n.per_block, lanes = (i32)get_local_size(0) / n.per_block;
    for (i64 first = (i64)get_group_id(0) * n.per_block; first < n.rows; first += (i64)get_num_groups(0) * n.per_block) {
        const i64 row = first + (i32)get_local_id(0) % n.per_block;
        const bool is_row = row < n.rows;
        const i64 points = is_row ? n.points : 0;
        f32 a5 = LOWEST_f32;
        i64 a8 = 0;
        for (i64 point = lane; point < points; point += lanes) {
            i64 rest = point;
            const i64 i1 = rest % n.extent1;
            rest /= n.extent1;
            const i64 i0 = rest;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
            const f32 v1 = b1[n.offset_v1 + i0 * n.stride_v1_0 + i1 * n.stride_v1_1];
            const f32 v2 = op_mul_f32(v1, v1);
            const f32 v3 = op_add_f32(v2, v0);
            const f32 v4 = op_abs_f32(v3);
            const bool v6 = op_isfinite_f32(v3);
            const i64 v7 = (i64)v6;
            a5 = op_max_f32(a5, v4);
            a8 = op_sum_i64(a8, v7);
            if (b2) b2[n.offset_s0 + i0 * n.stride_s0_0 + i1 * n.stride_s0_1] = v3;
        }
        const f32 v5 = block_max_f32((__local f32*)shared, a5, n.per_block);
        const i64 v8 = block_sum_i64((__local i64*)shared, a8, n.per_block);
        if (is_row && lane == 0) {
            if (b3) b3[n.offset_s1] = v5;
            if (b4) b4[n.offset_s2] = v8;
        }
    }
}
