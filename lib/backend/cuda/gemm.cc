// Hands a product to the family of kernels that is the fastest to take it.
#include "lib/backend/cuda/gemm.h"

#include "lib/backend/cuda/gemm_mma.h"
#include "lib/backend/cuda/gemm_sm90.h"

#include <algorithm>
#include <utility>

namespace ng::cuda::gemm {
namespace {

// What Hopper's kernels must copy first can take longer than all of the portable ones.
bool prefers_sm90(const Problem& problem, const Device& device, uint64_t workspace_bytes)
{
    if (!sm90::can_run(problem, device, workspace_bytes)) return false;
    if (!sm90::copies(problem) || !mma::can_run(problem, device, workspace_bytes)) return true;
    return sm90::cost_us(problem, device, workspace_bytes) <= mma::cost_us(problem, device, workspace_bytes);
}

// Nothing is known after this of another problem than the last.
void look_up(const Problem& p, const Place& place)
{
    if (!place.memory) return;
    const auto is_placed = [](const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; };
    const Memory::Key key = {p.m, p.n, p.k, p.batches, p.a_row, p.a_depth, p.a_batch, p.b_depth, p.b_column, p.b_batch, p.c_row, p.c_column, p.c_batch, place.workspace_bytes, is_placed(p.a), is_placed(p.b)};
    if (place.memory->key == key) return;
    place.memory->key = key, place.memory->is_known = false;
}

}  // namespace

void turn(Problem& p)
{
    std::swap(p.a, p.b), std::swap(p.a_type, p.b_type), std::swap(p.m, p.n);
    std::swap(p.a_row, p.b_column), std::swap(p.a_depth, p.b_depth), std::swap(p.a_batch, p.b_batch);
    std::swap(p.c_row, p.c_column);
    for (int i = 0; i < p.epilogue.count; i++) std::swap(p.epilogue.tensor[i].row, p.epilogue.tensor[i].column);
}

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
    return problem.epilogue_weight == 0 && (sm90::can_run(problem, device, workspace_bytes) || mma::can_run(problem, device, workspace_bytes));
}

void run(const Problem& problem, const Device& device, const Place& place)
{
    look_up(problem, place);
    const bool is_known = place.memory && place.memory->is_known;
    const bool is_portable = is_known ? place.memory->is_portable : !prefers_sm90(problem, device, place.workspace_bytes);
    if (place.memory) place.memory->is_portable = is_portable;
    if (is_portable) mma::run(problem, device, place);
    else sm90::run(problem, device, place);
}

kernels::Epilogue settled(const Problem& p)
{
    kernels::Epilogue e = p.epilogue;
    for (int i = 0; i < e.count; i++) {
        kernels::EpilogueTensor& t = e.tensor[i];
        const auto are_together = [&](int64_t count) {
            const int64_t unit = std::min<int64_t>(16, count * t.bytes);
            const auto    fits = [&](int64_t stride, int64_t extent) { return extent == 1 || stride * t.bytes % unit == 0; };
            return t.column == 1 && reinterpret_cast<uintptr_t>(t.data) % uint64_t(unit) == 0 && fits(t.row, p.m) && fits(t.batch, p.batches);
        };
        const bool is_read = i < e.loads;
        t.together = is_read && (t.column == 0 || p.n == 1) ? 0 : are_together(kernels::EPILOGUE_MOST) ? kernels::EPILOGUE_MOST : are_together(2) ? 2 : 1;
    }
    return e;
}

// ---- with an epilogue's text ------------------------------------------------------------------------------------------------

std::optional<Finisher> finisher_for(const Problem& problem, const Device& device)
{
    return sm90::can_run(problem, device, UINT64_MAX) ? sm90::finisher_for(problem, device) : mma::finisher_for(problem, device);
}

bool run_finished(const Problem& problem, const Device& device, const Finisher& finisher, const Place& place)
{
    look_up(problem, place);
    return finisher.is_portable ? mma::run_finished(problem, device, finisher, place) : sm90::run_finished(problem, device, finisher, place);
}

}  // namespace ng::cuda::gemm
