// Which tiles a cluster has, and which steps of their depth: all, or, by stream-K, as many steps as any other cluster.
//
// Where tiles are no multiple of the clusters that run at once, the steps of as many as are left over, and of one more for each cluster, are one line, of which
// each cluster has a piece: the end of a tile, whole tiles, the beginning of one. It takes its piece from the end: sums of a tile that it begins go to memory, where
// the next cluster, which is at that tile last, finds them long since. Clusters wait for ones before them alone, which began no later. A tile's sums are added from
// its last steps to its first, so results do not vary.
#pragma once
#include "kernels/gemm_sm90_store.cuh"

namespace ng::kernels {
namespace {

DEVICE i32 tiles_of(const GemmTilesNumbers& g) { return g.row_clusters * g.column_clusters * g.batches; }

// What is there for a cluster, or for a group of its blocks' threads that has each `turns`-th of these: all steps of a tile after the other.
template <class S, bool STREAM_K = S::STREAM_K>
struct TileParts {
    i32 tile, turns;

    DEVICE TileParts(const GemmTilesNumbers&, i32 turn, i32 turns_) : tile(i32(blockIdx.x) / S::CLUSTER + turn * (i32(gridDim.x) / S::CLUSTER)), turns(turns_) {}
    DEVICE bool is_there(const GemmTilesNumbers& g) const { return tile < tiles_of(g); }
    DEVICE void advance(const GemmTilesNumbers&) { tile += turns * (i32(gridDim.x) / S::CLUSTER); }
    DEVICE i32  begin() const { return 0; }
    DEVICE i32  end(const GemmTilesNumbers& g) const { return g.k_steps; }
};

// Of the steps that are dealt a cluster's.
struct DealtSteps {
    i32 begin, end;
};
DEVICE DealtSteps dealt_steps(const StreamK& k, i32 cluster)
{
    const i32 begin = cluster * k.steps + min(cluster, k.longer);
    return {begin, begin + k.steps + (cluster < k.longer)};
}

// Its dealt steps from the last to the first, and then whole tiles.
template <class S>
struct TileParts<S, true> {
    DealtSteps dealt;                    // still to come
    i32        tile, whole, first, last;

    DEVICE TileParts(const GemmTilesNumbers& g, i32, i32)
    {
        const i32 cluster = i32(blockIdx.x) / S::CLUSTER;
        dealt = dealt_steps(g.stream_k, cluster), whole = g.stream_k.tiles + cluster;
        advance(g);
    }
    DEVICE bool is_there(const GemmTilesNumbers& g) const { return tile < tiles_of(g); }
    DEVICE void advance(const GemmTilesNumbers& g)
    {
        if (dealt.end > dealt.begin) {
            tile = (dealt.end - 1) / g.k_steps;
            const i32 before = tile * g.k_steps, begin = max(before, dealt.begin);
            first = begin - before, last = dealt.end - before, dealt.end = begin;
        } else {
            tile = whole, first = 0, last = g.k_steps, whole += i32(gridDim.x) / S::CLUSTER;
        }
    }
    DEVICE i32 begin() const { return first; }
    DEVICE i32 end(const GemmTilesNumbers&) const { return last; }
};

DEVICE void say_arrived(u64* arrived, u64 ticket) { asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(arrived), "l"(ticket) : "memory"); }
DEVICE u64 who_arrived(const u64* arrived)
{
    u64 ticket;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(ticket) : "l"(arrived) : "memory");
    return ticket;
}
DEVICE void add_bits(float& sum, u32 x) { sum += __uint_as_float(x); }
DEVICE void add_bits(i32& sum, u32 x) { sum += i32(x); }

// What a warpgroup leaves in memory of a tile, where the same one of a later cluster finds it.
template <class S>
struct PartialSums {
    using Sums = typename S::Word[S::BLOCKS][S::TILE_N / 2];
    static constexpr i32 FOURS = S::TILE_N / 8, THREADS = 128;

    const StreamK& k;
    i32            group, barrier;       // of its threads

    DEVICE i32 place(i32 block) const { return block * 2 + group; }
    DEVICE uint4* fours(i32 block) const { return reinterpret_cast<uint4*>(k.partial) + i64(place(block)) * (S::BLOCKS * FOURS * THREADS) + threadIdx.x % THREADS; }
    DEVICE void leave(const Sums& d) const
    {
        uint4* const to = fours(i32(blockIdx.x));
        UNROLLED for (i32 b = 0; b < S::BLOCKS; b++)
            UNROLLED for (i32 j = 0; j < FOURS; j++)
                to[(b * FOURS + j) * THREADS] = make_uint4(bits_of(d[b][j * 4]), bits_of(d[b][j * 4 + 1]), bits_of(d[b][j * 4 + 2]), bits_of(d[b][j * 4 + 3]));
        named_barrier(barrier, THREADS);             // what it orders the word's release orders for the whole device
        if (threadIdx.x % THREADS == 0) say_arrived(k.arrived + place(i32(blockIdx.x)), k.ticket);
    }
    // What the clusters before have, of a tile that begins with that step of all. A word that was seen is taken away: a launch may be repeated with its ticket.
    DEVICE void add(i32 first, Sums& d) const
    {
        constexpr u32 NANOSECONDS = 40;
        i32 block = i32(blockIdx.x);
        ROLLED while (dealt_steps(k, block / S::CLUSTER).begin > first) {
            block -= S::CLUSTER;
            if (threadIdx.x % THREADS == 0) {
                while (who_arrived(k.arrived + place(block)) != k.ticket) __nanosleep(NANOSECONDS);
                k.arrived[place(block)] = 0;
            }
            named_barrier(barrier, THREADS);
            const uint4* const from = fours(block);
            UNROLLED for (i32 b = 0; b < S::BLOCKS; b++)
                UNROLLED for (i32 j = 0; j < FOURS; j++) {
                    const uint4 x = __ldcg(from + (b * FOURS + j) * THREADS);
                    add_bits(d[b][j * 4], x.x), add_bits(d[b][j * 4 + 1], x.y), add_bits(d[b][j * 4 + 2], x.z), add_bits(d[b][j * 4 + 3], x.w);
                }
        }
    }
};

}  // namespace
}  // namespace ng::kernels
