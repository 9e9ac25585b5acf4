// Launches of shipped kernels, said as the driver wants to hear them.
#pragma once
#include "lib/backend/cuda/gemm.h"
#include "lib/backend/cuda/runtime.h"

#include <algorithm>

namespace ng::cuda {

inline Launch shape_of(const basic::Launch& l)
{
    Launch shape;
    shape.grid[0] = l.grid, shape.block[0] = l.block, shape.shared_bytes = l.shared_bytes;
    return shape;
}
inline Launch shape_of(const gemm::Launch& l)
{
    Launch shape;
    shape.grid = {l.grid[0], l.grid[1], l.grid[2]}, shape.block[0] = l.block, shape.cluster[0] = l.cluster;
    shape.shared_bytes = l.shared_bytes, shape.is_early = l.is_early;
    return shape;
}

// numbers: the kernel's one parameter, by value.
inline void launch_with(const DeviceContext& home, const Function& f, const Launch& shape, CUstream stream, const void* numbers)
{
    void* arguments[] = {const_cast<void*>(numbers)};
    launch(home, f, shape, stream, arguments);
}

// By the kernel of one of Hopper's images that takes most shared memory; functions: as gemm::kernels_of has them.
inline gemm::Clusters clusters_of(const DeviceContext& home, gemm::Image image, std::span<const Function> functions)
{
    const auto      kernels = gemm::kernels_of(image);
    const auto      largest = std::ranges::max_element(kernels, {}, &gemm::KernelFacts::shared_bytes);
    const Function& f = functions[size_t(largest - kernels.begin())];
    const auto      of = [&](uint32_t blocks) { return clusters_at_once(home, f, blocks, uint32_t(f.max_threads), largest->shared_bytes); };
    return {of(4), of(8)};
}

}  // namespace ng::cuda
