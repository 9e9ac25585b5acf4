// Hands a product to the family of kernels that is the fastest to take it.
#include "lib/backend/cuda/gemm.h"

#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_sm90.h"

#include <algorithm>

namespace ng::cuda::gemm {

std::span<const KernelFacts> kernels_of(Image image)
{
    switch (image) {
    case Image::Sm90Half:
    case Image::Sm90Byte:
    case Image::Sm90Wide: return sm90::kernels_of(image);
    case Image::Mma: return mma::kernels();
    default: return {};
    }
}

bool needs(Image image, Dtype a, Dtype b)
{
    const bool is_half = (a == Dtype::f16 || a == Dtype::bf16) && a == b;
    switch (image) {
    case Image::Sm90Half: return is_half;
    case Image::Sm90Byte: return bytes_of(a) == 1 && bytes_of(b) == 1 && is_float(a) == is_float(b);
    case Image::Sm90Wide: return a == Dtype::f32 && b == Dtype::f32;
    case Image::Mma: return mma::takes(a, b);
    default: return false;
    }
}

uint64_t workspace(const Problem& largest, const Device& device, bool is_fixed)
{
    return std::max(device.compute == 90 ? sm90::workspace(largest, device, is_fixed) : 0, mma::workspace(largest, is_fixed));
}

bool can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    return sm90::can_run(problem, device, workspace_bytes) || mma::can_run(problem, device, workspace_bytes);
}

void run(const Problem& problem, const Device& device, const Place& place)
{
    if (sm90::can_run(problem, device, place.workspace_bytes)) sm90::run(problem, device, place);
    else mma::run(problem, device, place);
}

}  // namespace ng::cuda::gemm
