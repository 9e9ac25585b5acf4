// Hopper's instructions by name: barriers in shared memory, the copy engine, warpgroups, clusters and early launches.
//
// Arrivals and waits at barriers are the plain forms: with .release.cluster and .acquire.cluster ptxas 13.0 puts fences of the
// whole memory into the inner loop, which costs a fifth of the time.
#pragma once
#include "kernels/elements.cuh"
#include "kernels/gemm_sm90.h"

namespace ng::kernels {
namespace {

DEVICE u32 shared_address(const void* p) { return u32(__cvta_generic_to_shared(p)); }
DEVICE u32 shared_begin()
{
    extern __shared__ unsigned char shared[];
    return shared_address(shared);
}

// ---- barriers: addresses in shared memory ---------------------------------------------------------------------------------

DEVICE void barrier_init(u32 barrier, i32 arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)); }
DEVICE void barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
DEVICE void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
DEVICE void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n.reg .pred p;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1, 0x989680;\n@p bra DONE;\nbra AGAIN;\nDONE:\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
DEVICE void barrier_arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
DEVICE void barrier_arrive_at(u32 barrier, u32 block)
{
    asm volatile("{\n.reg .b32 r;\nmapa.shared::cluster.u32 r, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [r];\n}" ::"r"(barrier), "r"(block) : "memory");
}
DEVICE void named_barrier(i32 id, i32 threads) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory"); }
DEVICE void named_arrive(i32 id, i32 threads) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory"); }

// ---- the copy engine ------------------------------------------------------------------------------------------------------

DEVICE void fetch_map(const TensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map)); }
DEVICE void load_box(u32 to, const TensorMap& map, i32 x, i32 y, i32 z, u32 barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to), "l"(&map), "r"(x),
                 "r"(y), "r"(z), "r"(barrier)
                 : "memory");
}
// To the same place in each block of `mask`, whose barriers all learn of it.
DEVICE void load_box_to_all(u32 to, const TensorMap& map, i32 x, i32 y, i32 z, u32 barrier, u16 mask)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
                 "l"(&map), "r"(x), "r"(y), "r"(z), "r"(barrier), "h"(mask)
                 : "memory");
}
DEVICE void store_box(const TensorMap& map, u32 from, i32 x, i32 y, i32 z)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&map), "r"(x), "r"(y), "r"(z), "r"(from) : "memory");
}
DEVICE void end_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until all but PENDING groups of stores have read shared memory.
template <int PENDING>
DEVICE void wait_stores_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory"); }
// Between ordinary accesses to shared memory and the copy engine or the tensor cores. Reads want it too: an arrival at a barrier overtakes those that
// are under way, and what it lets the copy engine write comes to them.
DEVICE void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- clusters, early launches ---------------------------------------------------------------------------------------------

// Until all threads of the cluster have come here: no more. With .release arriving takes a fence of the whole memory, which
// waits for whatever was stored last.
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE void cluster_barrier()
{
    __syncwarp();
    cluster_arrive(), cluster_wait();
}
DEVICE u32 cluster_address(u32 address, u32 block)
{
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(block));
    return there;
}
// Shared memory to that of another block, whose barrier learns of it: `to` and `barrier` from cluster_address.
DEVICE void hand_over(u32 to, u32 from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "r"(from), "r"(bytes), "r"(barrier) : "memory");
}
DEVICE u32 cluster_rank()
{
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
DEVICE u32 cluster_number()
{
    u32 number;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
    return number;
}
DEVICE void wait_for_launch_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
DEVICE void let_next_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// ---- warpgroups -----------------------------------------------------------------------------------------------------------

DEVICE void products_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
DEVICE void wait_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }
// Keeps the compiler from moving copies of sums to where the tensor cores still work on them.
template <int COUNT>
DEVICE void settle(float (&d)[COUNT]) { UNROLLED for (i32 i = 0; i < COUNT; i++) asm volatile("" : "+f"(d[i])::"memory"); }
template <int COUNT>
DEVICE void settle(i32 (&d)[COUNT]) { UNROLLED for (i32 i = 0; i < COUNT; i++) asm volatile("" : "+r"(d[i])::"memory"); }
template <int COUNT>
DEVICE void keep_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT>
DEVICE void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }

// A matrix in shared memory, rows of SWIZZLE bytes; strides in bytes between its blocks.
template <int SWIZZLE>
DEVICE u64 matrix_at(u32 address, u32 leading, u32 stride)
{
    constexpr u64 LAYOUT = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : 3;
    static_assert(SWIZZLE == 128 || SWIZZLE == 64 || SWIZZLE == 32, "what the hardware swizzles by");
    return u64((address & 0x3ffff) >> 4) | u64(leading >> 4) << 16 | u64(stride >> 4) << 32 | LAYOUT << 62;
}

}  // namespace
}  // namespace ng::kernels
