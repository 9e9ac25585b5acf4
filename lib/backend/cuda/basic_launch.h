// The launches that make one operation of the shipped kernels: grids, workspaces and numbers, as data that a driver's caller runs.
#pragma once
#include "jit/dtype.h"
#include "kernels/basic.h"

#include <cstdint>

namespace ng::cuda::basic {

// Nothing here allocates, locks, throws or calls a driver; addresses of the device are numbers. What a launch is depends on
// shapes, strides, types and alignment alone. All launches of one operation are in order on one stream.

// A tensor on the device. Strides in elements, of any sign; 0 is fine for what is only read.
struct Operand {
    void*          data;
    Dtype          type;
    const int64_t* dims;
    const int64_t* strides;
};

enum class BasicKernel : uint32_t {
#define ROW(name, ...) name,
#include "kernels/basic.def"
    count_
};
const char* name_of(BasicKernel kernel);     // "basic_copy", as the image has it

// numbers: the kernel's one parameter, by value; valid during the call.
struct Launch {
    BasicKernel kernel;
    uint32_t    grid, block, shared_bytes;   // shared_bytes: beyond what the kernel itself declares
    const void* numbers;
    uint32_t    numbers_bytes;
};

// Where launches of one kind go: body(launch), which outlives this.
template <class Launch>
class LauncherOf {
  public:
    template <class Body>
    explicit LauncherOf(Body& body) : self_(&body), run_([](void* self, const Launch& launch) { (*static_cast<Body*>(self))(launch); })
    {
    }
    void operator()(const Launch& launch) const { run_(self_, launch); }

  private:
    void* self_;
    void (*run_)(void* self, const Launch& launch);
};
using Launcher = LauncherOf<Launch>;

// workspace: 256-byte aligned; as many bytes as the operation's _workspace says; null where that is 0. Every _workspace grows
// with each extent, whatever the strides, so that what the largest need is enough for all smaller ones.
struct Place {
    void*           workspace;
    const Launcher& launch;
};

// The rules of results are those of the CPU's functions of the same names (lib/backend/cpu/products.h, indexed.h).
using Folding = kernels::Fold;

void copy(const Operand& from, const Operand& to, int rank, const Place& place);       // of one type; they do not overlap
void fill(const Operand& to, int rank, uint64_t bits, const Place& place);             // bits: one element's

// x [.., n, ..], indices i64 of any rank, y of x's shape with `axis` replaced by the indices' axes. is_ordered: sums of
// floats are in the order of the indices (contract N10); else f32 and f64 are summed as they come.
struct PutExtents {
    int  rank, axis, index_rank;
    bool is_ordered;
};
uint64_t put_workspace(const Operand& x, const Operand& indices, const PutExtents& extents, Folding how);
void     put(const Operand& x, const Operand& indices, const Operand& y, const PutExtents& extents, Folding how, const Place& place);

// flags: NG_EXCLUSIVE, NG_REVERSE. x and y may be one tensor.
struct ScanAlong {
    int      rank, axis;
    Folding  how;
    uint32_t flags;
};
uint64_t scan_workspace(const int64_t* dims, int rank, int axis);
void     scan(const Operand& x, const Operand& y, const ScanAlong& along, const Place& place);

uint64_t segment_workspace(const int64_t* x_dims, int rank);
void     segment(const Operand& x, const Operand& offsets, const Operand& y, int rank, Folding how, const Place& place);

// y: i64. flags: NG_REVERSE.
uint64_t argsort_workspace(const int64_t* dims, int rank, int axis, Dtype type);
void     argsort(const Operand& x, const Operand& y, int rank, int axis, uint32_t flags, const Place& place);

struct MatmulExtents {
    int64_t batch, m, n, k;
    Dtype   c;
};
uint64_t matmul_workspace(const MatmulExtents& largest);
void     matmul(const Operand& a, const Operand& b, const Operand& c, int rank, const Place& place);

struct ConvWindow {
    int     spatial;
    int64_t stride[3], dilate[3], pad_lo[3];
    int64_t groups;
    double  pad_value;
};
// Enough for each of the three.
uint64_t conv_workspace(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window);
void     conv(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window, const Place& place);
void     conv_dx(const Operand& w, const Operand& dy, const Operand& dx, const ConvWindow& window, const Place& place);
void     conv_dw(const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, const Place& place);

struct PoolWindow {
    ng_pool_kind kind;
    uint32_t     flags;
    int          spatial;
    int64_t      window[3], stride[3], dilate[3], pad_lo[3], pad_hi[3];
    int64_t      channel_window, channel_stride, channel_pad;
};
uint64_t pool_dx_workspace(const int64_t* dy_dims, const PoolWindow& window);          // the other two need none
void     pool(const Operand& x, const Operand& y, const PoolWindow& window, const Place& place);
void     pool_pick(const Operand& x, const Operand& v, const Operand& y, const PoolWindow& window, const Place& place);
void     pool_dx(const Operand& x, const Operand& dy, const Operand& dx, const PoolWindow& window, const Place& place);

}  // namespace ng::cuda::basic
