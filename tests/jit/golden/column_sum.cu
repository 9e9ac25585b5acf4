// Golden for cuda: sums down the columns.
// Rows over 1 axis, points over 1 axis; columns by 8 of 1, 64-bit.
enum { WIDTH = 1, HELD = 8, THREADS = 256 };
typedef struct {
    i64 rows, points;
    i64 offset_v0, stride_v0_0, stride_v0_1;
    i64 offset_s0, stride_s0_0;
    i32 log_lanes;
} Numbers;

static __device__ __forceinline__ pair_f32 shuffled_pair_f32(pair_f32 x, i32 reach)
{
    x.hi = shuffled(x.hi, reach);
    x.lo = shuffled(x.lo, reach);
    return x;
}

// Threads t, t + rows, t + 2 rows .. have what belongs to one vector of rows: it meets in warps, then each thread goes through the
// warps' for a row.
template <i32 WIDTH>
static __device__ __forceinline__ void across_sum_f32(pair_f32* shared, pair_f32* x, i32 rows)
{
    const i32 thread = (i32)threadIdx.x, columns = rows * WIDTH, team = rows > 32 ? (i32)count_bits_u32(rows - 1) : 5, teams = (i32)blockDim.x >> team;
    if (rows == (i32)blockDim.x) return;
    for (i32 reach = 16; reach >= rows; reach /= 2)
#pragma unroll
        for (i32 j = 0; j < WIDTH; j++) x[j] = sum_f32(x[j], shuffled_pair_f32(x[j], reach));
    if (thread % 32 < rows)
#pragma unroll
        for (i32 j = 0; j < WIDTH; j++) shared[(thread >> team) * columns + j * rows + (thread & (rows - 1))] = x[j];
    __syncthreads();
    for (i32 c = thread; c < columns; c += (i32)blockDim.x) {
        pair_f32 all = shared[c];
        for (i32 k = 1; k < teams; k++) all = sum_f32(all, shared[k * columns + c]);
        shared[c] = all;
    }
    __syncthreads();
#pragma unroll
    for (i32 j = 0; j < WIDTH; j++) x[j] = shared[j * rows + (thread & (rows - 1))];
    __syncthreads();
}

static __device__ __forceinline__ f32 op_mul_f32(f32 x, f32 y) { return x * y; }

extern "C" __global__ void __launch_bounds__(THREADS, 5) fused(const f32* __restrict__ b0, f32* __restrict__ b1, const Numbers n)
{
    follow();
    __shared__ u64 shared[WIDTH * THREADS * 1];
    const i32 rows = 1 << n.log_lanes, lane = (i32)threadIdx.x >> n.log_lanes, lanes = (i32)blockDim.x >> n.log_lanes;
    const i64 begin = 0, stop = n.points;
    const i64 row = ((i64)((u64)blockIdx.y * gridDim.x + blockIdx.x) * rows + ((i32)threadIdx.x & (rows - 1))) * WIDTH;
    const bool is_row = row < n.rows;
    const i64 here = is_row ? row : n.rows - WIDTH, end = is_row ? stop : 0, first = begin + lane, step = lanes;
    const i64 i0 = here;
    const f32* p_v0 = b0 + (n.offset_v0 + i0 * n.stride_v0_0);
    pair_f32 a2[WIDTH];
#pragma unroll
    for (i32 j = 0; j < WIDTH; j++) a2[j] = pair_of_f32(0.0f);
    i64 start0 = first;
    for (; start0 + (HELD - 1) * step < end; start0 += HELD * step) {
        const i64 start = start0;
        Vector<f32, WIDTH> m0[HELD];
#pragma unroll
        for (i32 k = 0; k < HELD; k++) {
            const i64 point = start + k * step;
            const i64 i1 = point;
            m0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i1 * n.stride_v0_1));
        }
        f32 x2[WIDTH][HELD];
#pragma unroll
        for (i32 k = 0; k < HELD; k++) {
            const i64 point = start + k * step;
            const i64 i1 = point;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v1 = op_mul_f32(v0, v0);
                x2[j][k] = v1;
            }
        }
#pragma unroll
        for (i32 j = 0; j < WIDTH; j++) {
            a2[j] = sum_f32(a2[j], pair_of_f32((((x2[j][0] + x2[j][1]) + (x2[j][2] + x2[j][3])) + ((x2[j][4] + x2[j][5]) + (x2[j][6] + x2[j][7])))));
        }
    }
#pragma unroll 1
    for (; start0 < end; start0 += step) {
        const i64 start = start0;
        Vector<f32, WIDTH> m0[1];
#pragma unroll
        for (i32 k = 0; k < 1; k++) {
            const i64 point = start + k * step;
            const i64 i1 = point;
            m0[k] = *(const Vector<f32, WIDTH>*)(p_v0 + (i1 * n.stride_v0_1));
        }
        f32 x2[WIDTH][1];
#pragma unroll
        for (i32 k = 0; k < 1; k++) {
            const i64 point = start + k * step;
            const i64 i1 = point;
#pragma unroll
            for (i32 j = 0; j < WIDTH; j++) {
                const f32 v0 = m0[k].e[j];
                const f32 v1 = op_mul_f32(v0, v0);
                x2[j][k] = v1;
            }
        }
#pragma unroll
        for (i32 j = 0; j < WIDTH; j++) {
            a2[j] = sum_f32(a2[j], pair_of_f32(x2[j][0]));
        }
    }
    across_sum_f32<WIDTH>((pair_f32*)shared, a2, rows);
    f32 v2[WIDTH];
#pragma unroll
    for (i32 j = 0; j < WIDTH; j++) v2[j] = total_f32(a2[j]);
    if (is_row && lane == 0) {
#pragma unroll
        for (i32 j = 0; j < WIDTH; j++) {
            if (b1) b1[n.offset_s0 + (i0 + j) * n.stride_s0_0] = v2[j];
        }
    }
}
