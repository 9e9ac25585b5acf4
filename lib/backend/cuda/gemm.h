// Matrix products by kernels made for them: one problem in numbers, who can do it, and its launches.
#pragma once
#include "kernels/gemm_epilogue.h"
#include "lib/backend/cuda/basic_launch.h"

#include <span>

namespace ng::cuda {
class Driver;
}

namespace ng::cuda::gemm {

// c[i, row, column] = epilogue(sum over depth of a[i, row, depth] b[i, depth, column]). Strides in elements, of any sign;
// sums are f32 of floats, f64 of f64, i32 of 8-bit integers, and c's own type otherwise (contract N7).
struct Problem {
    const void *a, *b;
    void*       c;
    Dtype       a_type, b_type, c_type;  // c_type: as stored
    bool        allows_tf32;             // NG_TF32
    int64_t     m, n, k, batches;
    int64_t     a_row, a_depth, b_depth, b_column, c_row, c_column;
    int64_t     a_batch, b_batch, c_batch;
    kernels::Epilogue epilogue;
};

// The images of kernels for products. Each is loaded when a product needs it.
enum class Image : uint32_t {
    Sm90Half,                            // Hopper's wgmma: f16 and bf16
    Sm90Byte,                            // fp8 and 8-bit integers
    Sm90Wide,                            // f32
    Mma,                                 // mma.sync and plain multiply-adds, from sm_80 on
    count_
};
struct KernelFacts {
    const char* name;                    // as the image has it
    uint32_t    shared_bytes;            // dynamic, the most of any launch
};
// By the number that a Launch has of them.
std::span<const KernelFacts> kernels_of(Image image);

// What matters of a device. has: the images that were built, by Image, and that it can run.
struct Device {
    int32_t  compute;                    // 90 for sm_90
    uint32_t units;                      // multiprocessors
    bool     has[size_t(Image::count_)];
};
bool needs(Image image, Dtype a, Dtype b);   // whether products of these types may launch kernels of it

// As basic::Launch. cluster: blocks along x; is_early: cuda::Launch says.
struct Launch {
    Image       image;
    uint32_t    kernel;
    uint32_t    grid[3], block, cluster, shared_bytes;
    bool        is_early;
    const void* numbers;                 // the kernel's one parameter, by value; valid during the call
    uint32_t    numbers_bytes;
};

class Launcher {
  public:
    template <class Body>
    explicit Launcher(Body& body) : self_(&body), run_([](void* self, const Launch& launch) { (*static_cast<Body*>(self))(launch); })
    {
    }
    void operator()(const Launch& launch) const { run_(self_, launch); }

  private:
    void* self_;
    void (*run_)(void* self, const Launch& launch);
};

// workspace: 256-byte aligned, never exceeded.
struct Place {
    void*                  workspace;
    uint64_t               workspace_bytes;
    const Launcher&        launch;
    const basic::Launcher& launch_basic;     // for copies of operands
    const Driver*          driver;           // encodes tensor maps; null: only what needs none is launched
};

// Bytes that let run() choose freely. is_fixed: all runs have these extents and strides; else it grows with each extent,
// whatever the strides, so that what the largest need is enough for all smaller ones. Addresses do not matter.
uint64_t workspace(const Problem& largest, const Device& device, bool is_fixed);
// False: these kernels cannot do it (in so much workspace), basic::matmul and a fused kernel can. Nothing of the epilogue
// but its count, is_cast and c_type matters here.
bool can_run(const Problem& problem, const Device& device, uint64_t workspace_bytes);
// Where can_run says so. Nothing here allocates, locks or throws; what is launched depends on the problem, the device and
// the workspace's size alone.
void run(const Problem& problem, const Device& device, const Place& place);

}  // namespace ng::cuda::gemm
