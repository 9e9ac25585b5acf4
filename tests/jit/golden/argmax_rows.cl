// Golden for opencl: where the greatest of each row is, and the greatest.
// Rows over 1 axis, points over 1 axis, read 1 time.
typedef struct {
    i64 rows, points;
    i64 offset_v0, stride_v0_0, stride_v0_1;
    i64 offset_s0, stride_s0_0;
    i64 offset_s1, stride_s1_0;
    i32 per_block;
} Numbers;

static inline f32 op_argmax_f32(f32 x, f32 y) { return x > y || x != x ? x : y; }

// A value and where it is, -1: nowhere.
typedef struct {
    f32 value;
    i64 at;
} best_f32;
static inline best_f32 best_of_f32(f32 value, i64 at)
{
    best_f32 r;
    r.value = value;
    r.at = at;
    return r;
}

// The first of equals; one NaN equals another.
static inline best_f32 argmax_of_f32(best_f32 x, best_f32 y)
{
    const f32 chosen = op_argmax_f32(y.value, x.value);
    const bool is_tie = x.value == y.value || (x.value != x.value && y.value != y.value);
    const bool is_y = is_tie ? y.at < x.at : chosen == y.value || (chosen != chosen && y.value != y.value);
    return x.at < 0 || (y.at >= 0 && is_y) ? y : x;
}

// Threads t, t + rows, t + 2 rows .. have what belongs to row t: it meets as a tree.
static inline best_f32 block_argmax_f32(__local best_f32* shared, best_f32 x, i32 rows)
{
    const i32 thread = (i32)get_local_id(0);
    shared[thread] = x;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (i32 reach = (i32)get_local_size(0) / 2; reach >= rows; reach /= 2) {
        if (thread < reach) shared[thread] = argmax_of_f32(shared[thread], shared[thread + reach]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const best_f32 r = shared[thread % rows];
    barrier(CLK_LOCAL_MEM_FENCE);
    return r;
}

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

__kernel void fused(__global const f32* restrict b0, __global i64* restrict b1, __global f32* restrict b2, const Numbers n)
{
    __local u64 shared[2 * 256];
    const i32 lane = (i32)get_local_id(0) / n.per_block, lanes = (i32)get_local_size(0) / n.per_block;
    for (i64 first = (i64)get_group_id(0) * n.per_block; first < n.rows; first += (i64)get_num_groups(0) * n.per_block) {
        const i64 row = first + (i32)get_local_id(0) % n.per_block;
        const bool is_row = row < n.rows;
        const i64 points = is_row ? n.points : 0;
        const i64 here = is_row ? row : n.rows - 1;
        const i64 i0 = here;
        best_f32 a1 = best_of_f32(LOWEST_f32, -1);
        f32 a2 = LOWEST_f32;
        for (i64 point = lane; point < points; point += lanes) {
            const i64 i1 = point;
            const f32 v0 = b0[n.offset_v0 + i0 * n.stride_v0_0 + i1 * n.stride_v0_1];
            a1 = argmax_of_f32(a1, best_of_f32(v0, point));
            a2 = op_max_f32(a2, v0);
        }
        const i64 v1 = block_argmax_f32((__local best_f32*)shared, a1, n.per_block).at;
        const f32 v2 = block_max_f32((__local f32*)shared, a2, n.per_block);
        if (is_row && lane == 0) {
            if (b1) b1[n.offset_s0 + i0 * n.stride_s0_0] = v1;
            if (b2) b2[n.offset_s1 + i0 * n.stride_s1_0] = v2;
        }
    }
}
