// The launches of matrix products and convolutions: tensors' axes as nests, tiles or single elements, and cuts of a long depth.
#include "lib/backend/cuda/basic_parts.h"

#include "jit/saturated.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace ng::cuda::basic {
namespace {

using kernels::NEST_AXES;
using kernels::Nest;
using kernels::ProductNumbers;

// Axis 0 of x and y is the image, 1 the channel; of w the output channel and the input channel of its group.
constexpr int SPATIAL = 2, NO_WINDOW = -1;

constexpr int64_t TILE = 64;
constexpr int64_t ENOUGH_BLOCKS = 264, WANTED_BLOCKS = 528;   // two and four for each of an H200's 132 processors
constexpr int64_t LEAST_PART = 256;                           // of depth; a multiple of what a tile takes at once
constexpr int64_t EMPTY_TILE = 16;                            // elements of a tile for one of c: then single elements are faster

// One axis of an index: strides in the two tensors that have it, and by how much it moves a coordinate of the window.
struct Axis {
    int64_t extent, first, second;
    int     coordinate = NO_WINDOW;
    int64_t advance = 0;
};

// Axes from the slowest to the fastest.
class NestBuilder {
  public:
    void add(const Axis& axis) { axis_[rank_++] = axis; }
    void add_outer(const Axis& axis)
    {
        std::copy_backward(axis_, axis_ + rank_, axis_ + rank_ + 1);
        axis_[0] = axis, rank_++;
    }
    int     rank() const { return rank_; }
    int64_t count() const
    {
        int64_t n = 1;
        for (int i = 0; i < rank_; i++) n *= axis_[i].extent;
        return n;
    }
    // The least distance of neighbours in the first or second tensor; what has one element is far.
    int64_t first_distance() const { return distance([](const Axis& a) { return a.first; }); }
    int64_t second_distance() const { return distance([](const Axis& a) { return a.second; }); }
    Nest nest() const
    {
        Nest r = {};
        for (int i = 0; i < NEST_AXES; i++) {
            const int  k = i - (NEST_AXES - rank_);
            const Axis axis = k < 0 ? Axis{1, 0, 0} : axis_[k];
            r.extent[i] = axis.extent, r.first[i] = axis.first, r.second[i] = axis.second;
            if (axis.coordinate != NO_WINDOW) r.advance[i][axis.coordinate] = axis.advance;
        }
        return r;
    }

  private:
    template <class Stride>
    int64_t distance(const Stride& stride) const
    {
        for (int i = rank_; i-- > 0;)
            if (axis_[i].extent > 1) return std::abs(stride(axis_[i]));
        return INT64_MAX;
    }

    Axis axis_[NEST_AXES];
    int  rank_ = 0;
};

struct BatchAxis {
    int64_t extent, a, b, c;
};
struct Product {
    const char *a, *b;
    char*       c;
    Dtype       a_type, b_type, c_type;
    NestBuilder rows, columns, depth;    // first, second: a, c; b, c; a, b
    bool        is_bounded = false, leaves_out = false;
    int64_t     start[3] = {0, 0, 0}, limit[3] = {1, 1, 1};
    uint64_t    fill = 0;
    int         batch_rank = 0;
    BatchAxis   batch[kernels::MAX_AXES];

    Product(const Operand& a_, const Operand& b_, const Operand& c_)
        : a(static_cast<const char*>(a_.data)), b(static_cast<const char*>(b_.data)), c(static_cast<char*>(c_.data)), a_type(a_.type), b_type(b_.type), c_type(c_.type)
    {
    }
    int64_t batches() const
    {
        int64_t n = 1;
        for (int i = 0; i < batch_rank; i++) n *= batch[i].extent;
        return n;
    }
};

// ---- how a product is cut ----------------------------------------------------------------------------------------------

struct Cut {
    bool    is_direct;
    int64_t blocks, splits, split_depth;
};
Cut cut_of(int64_t m, int64_t n, int64_t k, int64_t batches)
{
    const int64_t tiles = divided_up(m, TILE) * divided_up(n, TILE);
    Cut           c;
    c.is_direct = tiles * TILE * TILE >= EMPTY_TILE * m * n;
    c.blocks = c.is_direct ? divided_up(m * n * batches, kernels::THREADS) : tiles * batches;
    c.splits = 1, c.split_depth = k;
    if (c.blocks < ENOUGH_BLOCKS && k >= 2 * LEAST_PART) {
        const int64_t wanted = std::min(divided_up(WANTED_BLOCKS, c.blocks), k / LEAST_PART);
        c.split_depth = rounded_up(divided_up(k, wanted), LEAST_PART);
        c.splits = divided_up(k, c.split_depth);
    }
    return c;
}

int64_t sum_bytes(Dtype c) { return bytes_of(c) == 8 ? 8 : 4; }

// Every cut's parts have at most k / LEAST_PART splits, and WANTED_BLOCKS + ENOUGH_BLOCKS tiles.
uint64_t partial_bytes(int64_t m, int64_t n, int64_t k, int64_t batches, Dtype c)
{
    if (k < 2 * LEAST_PART) return 0;
    const double by_depth = double(k / LEAST_PART) * double(m) * double(n) * double(batches);
    return aligned(uint64_t(std::min(by_depth, double((WANTED_BLOCKS + ENOUGH_BLOCKS) * TILE * TILE))) * uint64_t(sum_bytes(c)));
}

// Classes in the order of each kernel's rows.
int class_of(Dtype c)
{
    if (is_float(c)) return c == Dtype::f64 ? 1 : 0;
    return bytes_of(c) == 8 ? 3 : 2;
}
BasicKernel of_class(BasicKernel f32, Dtype c) { return BasicKernel(uint32_t(f32) + uint32_t(class_of(c))); }
static_assert(uint32_t(BasicKernel::product_tiles_u64) == uint32_t(BasicKernel::product_tiles_f32) + 3, "rows of a kernel are f32, f64, u32, u64");
static_assert(uint32_t(BasicKernel::product_direct_u64) == uint32_t(BasicKernel::product_direct_f32) + 3, "rows of a kernel are f32, f64, u32, u64");
static_assert(uint32_t(BasicKernel::product_sum_u64) == uint32_t(BasicKernel::product_sum_f32) + 3, "rows of a kernel are f32, f64, u32, u64");

void run(const Product& p, const Place& place)
{
    ProductNumbers n = {};
    n.a = p.a, n.b = p.b, n.c = p.c, n.fill = p.fill;
    n.a_type = code_of(p.a_type), n.b_type = code_of(p.b_type), n.c_type = code_of(p.c_type);
    n.m = p.rows.count(), n.n = p.columns.count(), n.k = p.depth.count(), n.batches = p.batches();
    if (n.m == 0 || n.n == 0 || n.batches == 0) return;
    n.rows = p.rows.nest(), n.columns = p.columns.nest(), n.depth = p.depth.nest();
    n.is_bounded = p.is_bounded, n.leaves_out = p.leaves_out;
    for (int d = 0; d < 3; d++) n.start[d] = p.start[d], n.limit[d] = p.limit[d];
    n.batch_rank = p.batch_rank;
    int64_t batch_distance = INT64_MAX;
    for (int i = 0; i < p.batch_rank; i++) {
        n.batch_extent[i] = p.batch[i].extent, n.batch_a[i] = p.batch[i].a, n.batch_b[i] = p.batch[i].b, n.batch_c[i] = p.batch[i].c;
        if (p.batch[i].extent > 1) batch_distance = std::abs(p.batch[i].c);
    }
    n.a_depth_fastest = p.depth.first_distance() < p.rows.first_distance();
    n.b_depth_fastest = p.depth.second_distance() < p.columns.first_distance();
    const Cut     cut = cut_of(n.m, n.n, n.k, n.batches);
    const int64_t row = p.rows.second_distance(), column = p.columns.second_distance();
    n.c_fastest = row < column ? kernels::ROWS_FASTEST : kernels::COLUMNS_FASTEST;
    if (cut.is_direct && batch_distance < std::min(row, column)) n.c_fastest = kernels::BATCHES_FASTEST;
    n.row_tiles = divided_up(n.m, TILE), n.column_tiles = divided_up(n.n, TILE);
    n.splits = cut.splits, n.split_depth = cut.split_depth;
    if (n.splits > 1) n.partial = place.workspace;
    launch(place, of_class(cut.is_direct ? BasicKernel::product_direct_f32 : BasicKernel::product_tiles_f32, p.c_type), cut.blocks * n.splits, kernels::THREADS, n);
    if (n.splits > 1) launch_threads(place, of_class(BasicKernel::product_sum_f32, p.c_type), n.m * n.n * n.batches, n);
}

// ---- matrix products ---------------------------------------------------------------------------------------------------

int64_t batch_stride(const Operand& x, int axis) { return x.dims[axis] == 1 ? 0 : x.strides[axis]; }

// Axis i of the batch becomes part of the rows if b is the same all along it: one product instead of many.
bool fold_batch(Product& p, const Operand& a, const Operand& b, const Operand& c, int i)
{
    const int64_t extent = c.dims[i];
    if (p.rows.rank() < NEST_AXES && batch_stride(b, i) == 0 && p.columns.rank() == 1) {
        p.rows.add_outer({extent, batch_stride(a, i), c.strides[i]});
        return true;
    }
    if (p.columns.rank() < NEST_AXES && batch_stride(a, i) == 0 && p.rows.rank() == 1) {
        p.columns.add_outer({extent, batch_stride(b, i), c.strides[i]});
        return true;
    }
    return false;
}

}  // namespace

uint64_t matmul_workspace(const MatmulExtents& e) { return partial_bytes(e.m, e.n, e.k, std::max<int64_t>(e.batch, 1), e.c); }

void matmul(const Operand& a, const Operand& b, const Operand& c, int rank, const Place& place)
{
    const int row = rank - 2, column = rank - 1;
    Product   p(a, b, c);
    p.rows.add({c.dims[row], a.strides[row], c.strides[row]});
    p.columns.add({c.dims[column], b.strides[column], c.strides[column]});
    p.depth.add({a.dims[column], a.strides[column], b.strides[row]});
    int i = rank - 3;
    while (i >= 0 && fold_batch(p, a, b, c, i)) i--;
    for (int j = 0; j <= i; j++)
        if (c.dims[j] != 1) p.batch[p.batch_rank++] = {c.dims[j], batch_stride(a, j), batch_stride(b, j), c.strides[j]};
    run(p, place);
}

// ---- convolutions ------------------------------------------------------------------------------------------------------

namespace {

// Whether images lie nearest to each other (CHWN): then they are the fastest axis.
bool is_image_last(const Operand& x) { return x.strides[0] == 1 && x.dims[0] > 1; }

void add_positions(NestBuilder& nest, const Axis& image, const Axis* spatial, int count, bool image_last)
{
    if (!image_last) nest.add(image);
    for (int d = 0; d < count; d++) nest.add(spatial[d]);
    if (image_last) nest.add(image);
}

uint64_t narrow_code(double value, int exponent, int mantissa, bool is_finite, bool saturates)
{
    const int      bias = (1 << (exponent - 1)) - 1;
    const uint64_t sign = std::signbit(value) ? uint64_t(1) << (exponent + mantissa) : 0, infinity = ((uint64_t(1) << exponent) - 1) << mantissa;
    if (value != value) return sign | (is_finite ? infinity | ((uint64_t(1) << mantissa) - 1) : infinity | uint64_t(1) << (mantissa - 1));
    const double size = std::fabs(value), largest = std::ldexp(is_finite ? 2 - 2.0 / (1 << mantissa) : 2 - 1.0 / (1 << mantissa), bias + is_finite);
    const int    power = size > 0 && size <= largest * 2 ? std::max(std::ilogb(size), 1 - bias) : 1 - bias;
    const double units = size <= largest * 2 ? std::nearbyint(std::ldexp(size, mantissa - power)) : HUGE_VAL;
    if (std::ldexp(units, power - mantissa) > largest) return sign | (saturates ? infinity - !is_finite + (is_finite ? (1 << mantissa) - 2 : 0) : infinity);
    // Denormals have the same power as the least normal numbers, whose field is 1; a carry goes into the field.
    return sign | ((uint64_t(power + bias) << mantissa) + uint64_t(units) - (uint64_t(1) << mantissa));
}

uint64_t integer_bits(double value, double low, double high, bool is_signed)
{
    const double r = std::nearbyint(value);
    if (value != value) return 0;
    if (is_signed) return uint64_t(r <= low ? int64_t(low) : r >= high ? (high >= 0x1p63 ? INT64_MAX : int64_t(high)) : int64_t(r));
    return r <= 0 ? 0 : r >= high ? (high >= 0x1p64 ? UINT64_MAX : uint64_t(high)) : uint64_t(r);
}

// The bits of a value rounded to a type.
uint64_t fill_bits(Dtype type, double value)
{
    const DtypeInfo& i = info(type);
    if (type == Dtype::f64 || type == Dtype::f32) {
        const float narrow = float(value);
        uint64_t    bits = 0;
        if (type == Dtype::f64) std::memcpy(&bits, &value, sizeof value);
        else std::memcpy(&bits, &narrow, sizeof narrow);
        return bits;
    }
    if (is_float(type)) return narrow_code(value, i.exponent, i.mantissa, type == Dtype::e4m3, i.bytes == 1);
    if (is_bool(type)) return value != 0;
    const int bits = 8 * i.bytes;
    return is_signed(type) ? integer_bits(value, -std::ldexp(1, bits - 1), bits == 64 ? 0x1p63 : std::ldexp(1, bits - 1) - 1, true)
                           : integer_bits(value, 0, bits == 64 ? 0x1p64 : std::ldexp(1, bits) - 1, false);
}

// x as seen through the window: moved by positions of y along columns or depth, and by taps of w along the other.
void look_through(Product& p, const Operand& x, const ConvWindow& window)
{
    p.is_bounded = true, p.fill = fill_bits(x.type, window.pad_value);
    for (int d = 0; d < window.spatial; d++) {
        p.start[d] = -window.pad_lo[d], p.limit[d] = x.dims[SPATIAL + d];
        p.b -= window.pad_lo[d] * x.strides[SPATIAL + d] * bytes_of(x.type);
    }
}

// One residue of dx's positions modulo the stride: there the derivative is itself a convolution of dy with some of the taps,
//   tap = tap_first + tap_step * i, position = residue + stride * q, read from dy at start + q - advance * i
struct Residue {
    int64_t residue, positions, start, taps, tap_first, tap_step, advance;
};
// How many of them have taps, the first of which are as many taps side by side.
int64_t residues_with_taps(int64_t taps, const ConvWindow& window, int d)
{
    return std::min(taps, window.stride[d] / std::gcd(window.stride[d], window.dilate[d]));
}
// The one whose first tap is that.
Residue residue_of(int64_t tap, int64_t extent, int64_t taps, const ConvWindow& window, int d)
{
    const int64_t stride = window.stride[d], dilate = window.dilate[d], shared = std::gcd(stride, dilate);
    const int64_t at = tap * dilate - window.pad_lo[d], residue = (at % stride + stride) % stride;
    const int64_t step = stride / shared;
    return {residue, residue < extent ? divided_up(extent - residue, stride) : 0, (residue - at) / stride, divided_up(taps - tap, step), tap, step, dilate / shared};
}

struct Gradient {
    const Operand &   w, &dy, &dx;
    const ConvWindow& window;
};
void run_residue(const Gradient& g, const Residue* residues, const Place& place)
{
    const ConvWindow& window = g.window;
    const Operand &   w = g.w, &dy = g.dy, &dx = g.dx;
    const int64_t     outputs = dy.dims[1] / window.groups, inputs = dx.dims[1] / window.groups;
    Product           p(w, dy, dx);
    p.is_bounded = true, p.leaves_out = true;
    Axis positions[3];
    for (int d = 0; d < window.spatial; d++) {
        const Residue& r = residues[d];
        const int      s = SPATIAL + d;
        p.depth.add({r.taps, w.strides[s] * r.tap_step, -dy.strides[s] * r.advance, d, -r.advance});
        positions[d] = {r.positions, dy.strides[s], dx.strides[s] * window.stride[d], d, 1};
        p.start[d] = r.start, p.limit[d] = dy.dims[s];
        p.a += r.tap_first * w.strides[s] * bytes_of(w.type);
        p.b += r.start * dy.strides[s] * bytes_of(dy.type);
        p.c += r.residue * dx.strides[s] * bytes_of(dx.type);
    }
    p.depth.add({outputs, w.strides[0], dy.strides[1]});
    p.rows.add({inputs, w.strides[1], dx.strides[1]});
    add_positions(p.columns, {dx.dims[0], dy.strides[0], dx.strides[0]}, positions, window.spatial, is_image_last(dx));
    p.batch_rank = 1, p.batch[0] = {window.groups, outputs * w.strides[0], outputs * dy.strides[1], inputs * dx.strides[1]};
    run(p, place);
}
// All that have taps and positions, of axis d and those after it.
void run_residues(const Gradient& g, int d, Residue* each, const Place& place)
{
    if (d == g.window.spatial) return run_residue(g, each, place);
    const int64_t extent = g.dx.dims[SPATIAL + d], taps = g.w.dims[SPATIAL + d], count = residues_with_taps(taps, g.window, d);
    for (int64_t tap = 0; tap < count; tap++) {
        each[d] = residue_of(tap, extent, taps, g.window, d);
        if (each[d].positions > 0) run_residues(g, d + 1, each, place);
    }
}

}  // namespace

uint64_t conv_workspace(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window)
{
    int64_t taps = 1, inputs = x.dims[0], outputs = y.dims[0];
    for (int d = 0; d < window.spatial; d++) taps = times(taps, w.dims[SPATIAL + d]), inputs = times(inputs, x.dims[SPATIAL + d]), outputs = times(outputs, y.dims[SPATIAL + d]);
    const int64_t  c = w.dims[1], k = w.dims[0] / window.groups;
    // Which of the three is asked for shows in no operand: room for each.
    const uint64_t forward = partial_bytes(k, outputs, times(c, taps), window.groups, Dtype::f64);
    const uint64_t data = partial_bytes(c, inputs, times(k, taps), window.groups, Dtype::f64);
    return std::max({forward, data, partial_bytes(k, times(c, taps), outputs, window.groups, Dtype::f64)});
}

void conv(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window, const Place& place)
{
    const int64_t inputs = x.dims[1] / window.groups, outputs = y.dims[1] / window.groups;
    Product       p(w, x, y);
    look_through(p, x, window);
    Axis positions[3];
    for (int d = 0; d < window.spatial; d++) {
        const int s = SPATIAL + d;
        p.depth.add({w.dims[s], w.strides[s], x.strides[s] * window.dilate[d], d, window.dilate[d]});
        positions[d] = {y.dims[s], x.strides[s] * window.stride[d], y.strides[s], d, window.stride[d]};
    }
    p.depth.add({w.dims[1], w.strides[1], x.strides[1]});
    p.rows.add({outputs, w.strides[0], y.strides[1]});
    add_positions(p.columns, {y.dims[0], x.strides[0], y.strides[0]}, positions, window.spatial, is_image_last(y));
    p.batch_rank = 1, p.batch[0] = {window.groups, outputs * w.strides[0], inputs * x.strides[1], outputs * y.strides[1]};
    run(p, place);
}

void conv_dx(const Operand& w, const Operand& dy, const Operand& dx, const ConvWindow& window, const Place& place)
{
    // Residues without a tap are 0. There may be far more of them: one fill, and no launch for each.
    bool has_all = true;
    for (int d = 0; d < window.spatial; d++) has_all &= residues_with_taps(w.dims[SPATIAL + d], window, d) == window.stride[d];
    if (!has_all) fill(dx, SPATIAL + window.spatial, 0, place);
    Residue each[3];
    run_residues({w, dy, dx, window}, 0, each, place);
}

void conv_dw(const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, const Place& place)
{
    const int64_t inputs = x.dims[1] / window.groups, outputs = dy.dims[1] / window.groups;
    Product       p(dy, x, dw);
    look_through(p, x, window);
    Axis positions[3];
    const Axis channel = {dw.dims[1], x.strides[1], dw.strides[1]};
    const bool channel_last = x.strides[1] == 1;      // then neighbouring columns are neighbours in x
    p.rows.add({outputs, dy.strides[1], dw.strides[0]});
    if (!channel_last) p.columns.add(channel);
    for (int d = 0; d < window.spatial; d++) {
        const int s = SPATIAL + d;
        positions[d] = {dy.dims[s], dy.strides[s], x.strides[s] * window.stride[d], d, window.stride[d]};
        p.columns.add({dw.dims[s], x.strides[s] * window.dilate[d], dw.strides[s], d, window.dilate[d]});
    }
    if (channel_last) p.columns.add(channel);
    add_positions(p.depth, {dy.dims[0], dy.strides[0], x.strides[0]}, positions, window.spatial, is_image_last(x));
    p.batch_rank = 1, p.batch[0] = {window.groups, outputs * dy.strides[1], inputs * x.strides[1], outputs * dw.strides[0]};
    run(p, place);
}

}  // namespace ng::cuda::basic
