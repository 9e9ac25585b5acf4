// Launches of shipped kernels, said as the driver wants to hear them.
#pragma once
#include "lib/backend/cuda/gemm.h"
#include "lib/backend/cuda/runtime.h"

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

}  // namespace ng::cuda
