// Convolution and its two derivatives as products of matrices that are never laid out: packing reads them through the window.
#include "lib/backend/cpu/conv_residues.h"

#include "lib/backend/cpu/number_codes.h"
#include "lib/backend/cpu/saturated.h"

#include <algorithm>

namespace ng::cpu {
namespace {

// Axis 0 of x and y is the image, 1 the channel; of w the output channel and the input channel of its group.
constexpr int SPATIAL = 2;

// Whether the elements of one position are consecutive over images (CHWN): then the image is the fastest axis.
bool is_image_last(const Operand& x) { return x.strides[0] == 1 && x.dims[0] > 1; }

void add_positions(Side& side, const Axis& image, const Axis* spatial, int count, bool image_last)
{
    if (!image_last) side.add(image);
    for (int d = 0; d < count; d++) side.add(spatial[d]);
    if (image_last) side.add(image);
}

Matrix matrix_of(const Operand& x)
{
    Matrix m = {};
    m.data = static_cast<const char*>(x.data), m.type = x.type;
    return m;
}

template <Format F>
uint64_t narrow_bits(double value) { return encode<F>(round_to<F>(to_odd(value))); }

// The bits of a value rounded to a type.
uint64_t fill_bits(Dtype type, double value)
{
    switch (type) {
    case Dtype::bool_: return value != 0;
    case Dtype::i8: return uint8_t(to_integer<int8_t>(value));
    case Dtype::i16: return uint16_t(to_integer<int16_t>(value));
    case Dtype::i32: return uint32_t(to_integer<int32_t>(value));
    case Dtype::i64: return uint64_t(to_integer<int64_t>(value));
    case Dtype::u8: return to_integer<uint8_t>(value);
    case Dtype::u16: return to_integer<uint16_t>(value);
    case Dtype::u32: return to_integer<uint32_t>(value);
    case Dtype::u64: return to_integer<uint64_t>(value);
    case Dtype::f32: return bits_of(float(value));
    case Dtype::f64: return bits_of(value);
    case Dtype::f16: return narrow_bits<F16>(value);
    case Dtype::bf16: return narrow_bits<BF16>(value);
    case Dtype::e4m3: return narrow_bits<E4M3>(value);
    default: return narrow_bits<E5M2>(value);
    }
}

// x as seen through the window: both sides get its spatial axes, one moved by positions of y, the other by taps of w.
struct Through {
    Axis position[WINDOW_AXES], tap[WINDOW_AXES];
};

Through through(Matrix& m, const Operand& x, const Operand& y, const Operand& w, const ConvWindow& window)
{
    Through t;
    m.bounds = window.spatial, m.fill = fill_bits(x.type, window.pad_value);
    for (int d = 0; d < window.spatial; d++) {
        const int64_t step = x.strides[SPATIAL + d], stride = window.stride[d], dilate = window.dilate[d];
        t.position[d] = {y.dims[SPATIAL + d], step * stride, stride, d, SPATIAL + d};
        t.tap[d] = {w.dims[SPATIAL + d], step * dilate, dilate, d, SPATIAL + d};
        m.start[d] = -window.pad_lo[d], m.limit[d] = x.dims[SPATIAL + d];
        m.data -= window.pad_lo[d] * step * bytes_of(x.type);
    }
    return t;
}

// What a copy of a tensor holds along its spatial axes: all that a window reaches, so that nothing is bounded; where that is much more than
// the tensor, the tensor alone.
struct Copied {
    int64_t dims[SPATIAL + WINDOW_AXES], low[WINDOW_AXES];     // low: the tensor's coordinates of its first element
    int64_t most;                        // elements: no copy of what is smaller along any axis has more
};

Copied copied(const Operand& x, const Operand& y, const Operand& w, const ConvWindow& window)
{
    constexpr double MOST_MARGINS = 4;   // times the tensor
    Copied c = {{x.dims[0], x.dims[1]}, {}, 0};
    double all = double(x.dims[0]) * double(x.dims[1]), alone = all;
    for (int d = 0; d < window.spatial; d++) {
        const int64_t reach = plus(times(y.dims[SPATIAL + d] - 1, window.stride[d]), times(w.dims[SPATIAL + d] - 1, window.dilate[d]) + 1);
        c.dims[SPATIAL + d] = std::max<int64_t>(reach, 0), c.low[d] = -window.pad_lo[d];
        all *= double(c.dims[SPATIAL + d]), alone *= double(x.dims[SPATIAL + d]);
    }
    c.most = int64_t(std::min(std::max(alone, std::min(all, MOST_MARGINS * alone)), double(MOST_ROOM)));
    if (all > MOST_MARGINS * alone)
        for (int d = 0; d < window.spatial; d++) c.dims[SPATIAL + d] = x.dims[SPATIAL + d], c.low[d] = 0;
    return c;
}

Axis plain(const Operand& x, int axis) { return {x.dims[axis], x.strides[axis], 0, -1, axis}; }
Axis part(const Operand& x, int axis, int64_t groups) { return {x.dims[axis] / groups, x.strides[axis], 0, -1, axis}; }

// Without its spatial axes.
Depthwise depthwise_of(const Operand& in, const Operand& w, const Operand& out, const ConvWindow& window)
{
    Depthwise d = {in, w, out, {}, in.dims[0], window.groups, w.dims[0] / window.groups, 1, 0, out.type, window.spatial, nullptr};
    for (SpatialAxis& axis : d.axis) axis = {1, 1, 0, 1, 1, 1, 0, 0, 0};
    return d;
}

// y from x and w; or w, if that is what is asked for.
Depthwise forward_depthwise(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window)
{
    Depthwise d = depthwise_of(x, w, y, window);
    d.fill = fill_bits(x.type, window.pad_value);
    for (int i = 0; i < window.spatial; i++) {
        const int s = SPATIAL + i;
        d.axis[WINDOW_AXES - window.spatial + i] = {y.dims[s], w.dims[s], -window.pad_lo[i], window.stride[i], window.dilate[i],
                                                    x.dims[s], x.strides[s], y.strides[s], w.strides[s]};
    }
    return d;
}

// What it takes is said by taps, steps and advances alone.
Depthwise filters_depthwise(const Operand& w, const ConvWindow& window) { return forward_depthwise(w, w, w, window); }

// Few outputs to one input channel: a product of matrices would be mostly padding.
constexpr int64_t FEW_OUTPUTS = 4;
bool may_be_depthwise(const Operand& w, const ConvWindow& window) { return w.dims[1] == 1 && is_modest(filters_depthwise(w, window)); }
bool is_depthwise(const Operand& w, const ConvWindow& window) { return w.dims[0] / window.groups <= FEW_OUTPUTS && may_be_depthwise(w, window); }

bool is_flat(const ConvWindow& window) { return window.spatial == 2 && window.stride[0] == 1 && window.stride[1] == 1; }

FlatConv forward_flat(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window)
{
    return {x, w, y, window.groups, {-window.pad_lo[0], -window.pad_lo[1]}, {window.dilate[0], window.dilate[1]}, false, fill_bits(x.type, window.pad_value), nullptr};
}
FlatConv dx_flat(const Operand& w, const Operand& dy, const Operand& dx, const ConvWindow& window)
{
    return {dy, w, dx, window.groups, {window.pad_lo[0], window.pad_lo[1]}, {-window.dilate[0], -window.dilate[1]}, true, 0, nullptr};
}

struct Gradient {
    const Operand &   w, &dy, &dx;
    const ConvWindow& window;
    bool              is_clear = false;      // dx holds zeros, which is what positions without taps get
};

void dx_of_channels(const Gradient& g, const Residue* residues, const Workplace& place)
{
    Depthwise d = depthwise_of(g.dy, g.w, g.dx, g.window);
    std::swap(d.fan_out, d.depth);
    int64_t w_at = 0, dx_at = 0;
    for (int i = 0; i < g.window.spatial; i++) {
        const int      s = SPATIAL + i;
        const Residue& r = residues[i];
        d.axis[WINDOW_AXES - g.window.spatial + i] = {r.positions, r.taps, r.start, 1, -r.advance, g.dy.dims[s], g.dy.strides[s],
                                                      g.dx.strides[s] * g.window.stride[i], g.w.strides[s] * r.tap_step};
        w_at += r.tap_first * g.w.strides[s], dx_at += r.residue * g.dx.strides[s];
    }
    d.w.data = static_cast<char*>(g.w.data) + w_at * bytes_of(g.w.type);
    d.out.data = static_cast<char*>(g.dx.data) + dx_at * bytes_of(g.dx.type);
    run_depthwise(d, place);
}

void dx_of_residues(const Gradient& g, const Residue* residues, const Workplace& place)
{
    const ConvWindow& window = g.window;
    Product           p = {};
    p.a = matrix_of(g.w), p.b = matrix_of(g.dy), p.epilogue = nullptr;
    p.c = {static_cast<char*>(g.dx.data), g.dx.type, SPATIAL + window.spatial, {}, {}, 0};
    p.b.bounds = window.spatial;
    Axis positions[WINDOW_AXES], results[WINDOW_AXES];
    for (int d = 0; d < window.spatial; d++) {
        const Residue& r = residues[d];
        const int64_t  w_step = g.w.strides[SPATIAL + d], dy_step = g.dy.strides[SPATIAL + d], dx_step = g.dx.strides[SPATIAL + d];
        p.a.depth.add({r.taps, w_step * r.tap_step, 0, -1, 0});
        p.b.depth.add({r.taps, -dy_step * r.advance, -r.advance, d, 0});
        p.b.start[d] = r.start, p.b.limit[d] = g.dy.dims[SPATIAL + d];
        positions[d] = {r.positions, dy_step, 1, d, SPATIAL + d};
        results[d] = {r.positions, dx_step * window.stride[d], 0, -1, SPATIAL + d};
        p.a.data += r.tap_first * w_step * bytes_of(g.w.type);
        p.b.data += r.start * dy_step * bytes_of(g.dy.type);
        p.c.data += r.residue * dx_step * bytes_of(g.dx.type);
    }
    p.a.lines.add(plain(g.w, 1)), p.a.depth.add(part(g.w, 0, window.groups));
    p.b.depth.add(part(g.dy, 1, window.groups));
    const bool image_last = is_image_last(g.dy);
    add_positions(p.b.lines, plain(g.dy, 0), positions, window.spatial, image_last);
    p.c.rows.add(part(g.dx, 1, window.groups));
    add_positions(p.c.columns, plain(g.dx, 0), results, window.spatial, image_last);
    const int64_t outputs = g.dy.dims[1] / window.groups, inputs = g.dx.dims[1] / window.groups;
    p.batch_rank = 1;
    p.batch[0] = {window.groups, outputs * g.w.strides[0], outputs * g.dy.strides[1], inputs * g.dx.strides[1], 1, inputs};
    run_product(p, place);
}

// Of one channel a group the product has one row, however many outputs it sums: a row at a time takes less where that is many multiply-adds.
bool is_by_rows(const Gradient& g, const Residue* residues, int64_t taps)
{
    constexpr int64_t LEAST_ROW = 160, MOST_SUMMED = 4096, MANY_IMAGES = 16;
    const int64_t     row = times(taps, residues[g.window.spatial - 1].positions), summed = times(taps, g.w.dims[0] / g.window.groups);
    return row >= LEAST_ROW && summed <= MOST_SUMMED && may_be_depthwise(g.w, g.window) && !(is_image_last(g.dy) && g.dy.dims[0] >= MANY_IMAGES);
}

void dx_of_any(const Gradient& g, const Residue* residues, const Workplace& place)
{
    int64_t taps = 1;
    for (int d = 0; d < g.window.spatial; d++) taps = times(taps, residues[d].taps);
    if (taps == 0 && g.is_clear) return;
    (taps && (is_depthwise(g.w, g.window) || is_by_rows(g, residues, taps)) ? dx_of_channels : dx_of_residues)(g, residues, place);
}

int64_t residues_along(const Operand& dx, const ConvWindow& window, int d) { return std::min(window.stride[d], std::max<int64_t>(dx.dims[SPATIAL + d], 1)); }

// Whether some position reads outside of dy. There is a 0 in the products, which an infinite weight would make NaN.
bool reaches_out(const Gradient& g)
{
    for (int d = 0; d < g.window.spatial; d++)
        for (int64_t n = 0; n < residues_along(g.dx, g.window, d); n++) {
            const Residue r = residue_of(n, g.dx.dims[SPATIAL + d], g.w.dims[SPATIAL + d], g.window, d);
            if (r.positions && (r.start - r.advance * (r.taps - 1) < 0 || r.start + r.positions > g.dy.dims[SPATIAL + d])) return true;
        }
    return false;
}
// Whether some residue has no taps.
bool lacks_taps(const Gradient& g)
{
    for (int d = 0; d < g.window.spatial; d++)
        for (int64_t n = 0; n < residues_along(g.dx, g.window, d); n++)
            if (residue_of(n, g.dx.dims[SPATIAL + d], g.w.dims[SPATIAL + d], g.window, d).taps == 0) return true;
    return false;
}
// By parts of residues that read nothing outside, along axis d and those after it.
void dx_of_parts(const Gradient& g, int d, Residue* each, const Workplace& place)
{
    if (d == g.window.spatial) return dx_of_any(g, each, place);
    const Residue all = each[d];
    for (int64_t q = 0; q < all.positions; q += each[d].positions) {
        each[d] = inside_from(all, q, g.window.stride[d], g.dy.dims[SPATIAL + d]);
        dx_of_parts(g, d + 1, each, place);
    }
    each[d] = all;
}

// dw as a matrix product.
void dw_of_matrices(const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, const Workplace& place)
{
    Product p = {};
    p.a = matrix_of(dy), p.b = matrix_of(x), p.epilogue = nullptr;
    p.c = {static_cast<char*>(dw.data), dw.type, SPATIAL + window.spatial, {}, {}, 0};
    const Through seen = through(p.b, x, dy, dw, window);
    p.a.lines.add(part(dy, 1, window.groups)), p.c.rows.add(part(dw, 0, window.groups));
    p.a.depth.add(plain(dy, 0)), p.b.depth.add(plain(x, 0));
    const bool channel_last = x.strides[1] == 1;      // lines of x that are consecutive pack fastest
    const Axis channel = part(x, 1, window.groups), result = plain(dw, 1);
    if (!channel_last) p.b.lines.add(channel), p.c.columns.add(result);
    for (int d = 0; d < window.spatial; d++) {
        p.a.depth.add(plain(dy, SPATIAL + d)), p.b.depth.add(seen.position[d]);
        p.b.lines.add(seen.tap[d]), p.c.columns.add(plain(dw, SPATIAL + d));
    }
    if (channel_last) p.b.lines.add(channel), p.c.columns.add(result);
    p.b.is_near = true;              // each for all taps
    const int64_t inputs = x.dims[1] / window.groups, outputs = dy.dims[1] / window.groups;
    p.batch_rank = 1;
    p.batch[0] = {window.groups, outputs * dy.strides[1], inputs * x.strides[1], outputs * dw.strides[0], 0, outputs};
    run_product(p, place);
}

// The derivative of weights reads x once for each tap. Where that is often, x is copied first so that its channels are
// consecutive, [image, spatial.., channel], and lines of any tap are where they are; dw comes out as [k, taps.., channel].
struct ChannelsLast {
    Copied   copy;
    uint64_t input, result, offsets, points, bytes;   // where they are in the workspace
    int64_t  columns;                                 // taps and channels of a row of dw
};

bool is_worth_copying(const Operand& dw, int64_t taps) { return taps >= 4 && dw.dims[1] >= 16 && bytes_of(dw.type) >= 4; }

int64_t taps_of(const Operand& w, const ConvWindow& window)
{
    int64_t taps = 1;
    for (int d = 0; d < window.spatial; d++) taps = times(taps, w.dims[SPATIAL + d]);
    return taps;
}

ChannelsLast channels_last(const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window)
{
    ChannelsLast l = {copied(x, dy, dw, window), 0, 0, 0, 0, 0, times(taps_of(dw, window), dw.dims[1])};
    const auto   take = [&](int64_t count, int64_t bytes_each) {
        const auto bytes = uint64_t((bounded(times(count, bytes_each)) + 63) / 64 * 64);
        return l.bytes += bytes, l.bytes - bytes;
    };
    l.input = take(l.copy.most, bytes_of(x.type));
    l.result = take(times(dw.dims[0], l.columns), bytes_of(dw.type));
    l.offsets = take(l.columns, sizeof(int64_t));
    l.points = take(x.dims[1], sizeof(Point));
    return l;
}

// x to [image, spatial.., channel]; a row is what lies along the last spatial axis.
void copy_channels_last(const Operand& x, const Copied& copy, const ConvWindow& window, char* to, Point* points, const Workplace& place)
{
    const int     last = window.spatial - 1, bytes = bytes_of(x.type);
    const int64_t channels = x.dims[1], width = copy.dims[SPATIAL + last], step = x.strides[SPATIAL + last];
    const uint64_t fill = fill_bits(x.type, window.pad_value);
    int64_t       rows = x.dims[0];
    for (int d = 0; d < last; d++) rows *= copy.dims[SPATIAL + d];
    if (width == 0 || channels == 0) return;
    for (int64_t c = 0; c < channels; c++) points[c] = {c * x.strides[1], {}};
    const PanelPack pack = place.table.pack[log2_of(bytes)];
    const int64_t   tasks = std::min(rows, tasks_for(16 * double(rows) * double(width) * double(channels), place.parallel.workers()));
    place.parallel.for_each(uint32_t(tasks), [&](uint32_t task, uint32_t) {
        const int64_t end = rows * (task + 1) / tasks;
        for (int64_t row = rows * task / tasks; row < end; row++) {
            int64_t rest = row;
            Point   first = {copy.low[last] * step, {}};
            first.at[last] = copy.low[last];
            for (int d = last - 1; d >= 0; rest /= copy.dims[SPATIAL + d], d--) {
                first.at[d] = copy.low[d] + rest % copy.dims[SPATIAL + d];
                first.offset += first.at[d] * x.strides[SPATIAL + d];
            }
            first.offset += rest * x.strides[0];
            PanelSource source = {static_cast<const char*>(x.data), {points, channels, 0, channels, x.strides[1], 0, -1}, {&first, width, 0, width, step, 1, last},
                                  {}, window.spatial, int(channels), fill, 0};
            std::copy_n(x.dims + SPATIAL, window.spatial, source.limit);
            pack(to + row * width * channels * bytes, source);
        }
    });
}

void dw_channels_last(const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, const Workplace& place)
{
    const ChannelsLast at = channels_last(x, dy, dw, window);
    ConvWindow         inside = window;
    char*              room = static_cast<char*>(place.workspace);
    auto*              offsets = reinterpret_cast<int64_t*>(room + at.offsets);
    const int          axes = SPATIAL + window.spatial;
    int64_t            x_strides[SPATIAL + WINDOW_AXES], dw_strides[SPATIAL + WINDOW_AXES], x_step = x.dims[1], dw_step = dw.dims[1];
    Side               columns = {};
    for (int i = SPATIAL; i < axes; i++) columns.add(plain(dw, i));
    columns.add(plain(dw, 1));
    x_strides[1] = dw_strides[1] = 1;
    for (int i = axes - 1; i >= SPATIAL; i--) x_strides[i] = x_step, dw_strides[i] = dw_step, x_step *= at.copy.dims[i], dw_step *= dw.dims[i];
    x_strides[0] = x_step, dw_strides[0] = dw_step;
    for (int d = 0; d < window.spatial; d++) inside.pad_lo[d] += at.copy.low[d];
    copy_channels_last(x, at.copy, window, room + at.input, reinterpret_cast<Point*>(room + at.points), place);
    const Operand copy = {room + at.input, x.type, at.copy.dims, x_strides}, sums = {room + at.result, dw.type, dw.dims, dw_strides};
    dw_of_matrices(copy, dy, sums, inside, {place.table, room + at.bytes, place.parallel});
    fill_offsets(columns, 0, at.columns, offsets);
    const TileStore store = place.table.store[packed_for(x.type, dy.type, dw.type)][int(dw.type)];
    for (int64_t k = 0; k < dw.dims[0]; k++) {
        const int64_t row = k * dw.strides[0];
        store(room + at.result + k * at.columns * bytes_of(dw.type), at.columns, {static_cast<char*>(dw.data), &row, offsets, 1, at.columns, false});
    }
}

}  // namespace

uint64_t conv_workspace(const ProductTable& table, const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window, uint32_t workers)
{
    const int64_t taps = taps_of(w, window);
    int64_t       inputs = x.dims[0], outputs = y.dims[0];
    for (int d = 0; d < window.spatial; d++) inputs = times(inputs, x.dims[SPATIAL + d]), outputs = times(outputs, y.dims[SPATIAL + d]);
    const int64_t c = w.dims[1], k = w.dims[0] / window.groups;
    // Which of the three is asked for shows in no operand: room for each.
    const uint64_t forward = product_workspace(table, panels_for(table, x.type, w.type, y.type), k, outputs, times(c, taps), workers);
    const uint64_t data = product_workspace(table, panels_for(table, w.type, y.type, x.type), c, inputs, times(k, taps), workers);
    const uint64_t filter = product_workspace(table, panels_for(table, x.type, y.type, w.type), k, times(c, taps), outputs, workers);
    const uint64_t direct = may_be_depthwise(w, window) ? depthwise_workspace(forward_depthwise(x, w, y, window), workers) : 0;
    const uint64_t flat = is_flat(window) ? std::max(flat_workspace(forward_flat(x, w, y, window), table, workers), flat_workspace(dx_flat(w, y, x, window), table, workers)) : 0;
    return std::max({forward, data, filter, direct, flat});
}

uint64_t conv_few_workspace(const Operand& w, const ConvWindow& window, uint32_t workers)
{
    const Depthwise d = filters_depthwise(w, window);
    return is_modest(d) ? depthwise_workspace(d, workers) : 0;
}

uint64_t conv_dw_workspace(const ProductTable& table, const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, uint32_t workers)
{
    return conv_workspace(table, x, dw, dy, window, workers) + (is_worth_copying(dw, taps_of(dw, window)) ? channels_last(x, dy, dw, window).bytes : 0);
}

void conv(const Operand& x, const Operand& w, const Operand& y, const ConvWindow& window, const Epilogue* epilogue, const Workplace& place)
{
    if (is_depthwise(w, window)) {
        Depthwise d = forward_depthwise(x, w, y, window);
        d.epilogue = epilogue;
        return run_depthwise(d, place);
    }
    if (is_flat(window) && !is_image_last(x)) {
        FlatConv f = forward_flat(x, w, y, window);
        f.epilogue = epilogue;
        if (run_flat(f, place)) return;
    }
    Product p = {};
    p.a = matrix_of(w), p.b = matrix_of(x), p.epilogue = epilogue;
    p.c = {static_cast<char*>(y.data), y.type, SPATIAL + window.spatial, {}, {}, 0};
    const Through seen = through(p.b, x, y, w, window);
    Axis          results[WINDOW_AXES];
    for (int d = 0; d < window.spatial; d++) {
        p.a.depth.add(plain(w, SPATIAL + d)), p.b.depth.add(seen.tap[d]);
        results[d] = plain(y, SPATIAL + d);
    }
    p.a.lines.add(part(w, 0, window.groups)), p.a.depth.add(plain(w, 1));
    p.b.depth.add(part(x, 1, window.groups));
    const bool image_last = is_image_last(x);
    add_positions(p.b.lines, plain(x, 0), seen.position, window.spatial, image_last);
    p.c.rows.add(part(y, 1, window.groups));
    add_positions(p.c.columns, plain(y, 0), results, window.spatial, image_last);
    const int64_t inputs = x.dims[1] / window.groups, outputs = y.dims[1] / window.groups;
    p.batch_rank = 1;
    p.batch[0] = {window.groups, outputs * w.strides[0], inputs * x.strides[1], outputs * y.strides[1], 1, outputs};
    run_product(p, place);
}

void conv_dx(const Operand& w, const Operand& dy, const Operand& dx, const ConvWindow& window, const Workplace& place)
{
    const bool by_parts = reaches_out({w, dy, dx, window}) && !is_finite(w, SPATIAL + window.spatial, place.parallel);
    if (!by_parts && is_flat(window) && !is_depthwise(w, window) && !is_image_last(dy) && run_flat(dx_flat(w, dy, dx, window), place)) return;
    // Each residue is a pass over dx, in steps: those without taps share one.
    const Gradient gradient = {w, dy, dx, window, lacks_taps({w, dy, dx, window})};
    if (gradient.is_clear) clear(dx, SPATIAL + window.spatial, place.parallel);
    int64_t residues = 1, count[WINDOW_AXES];          // those that have positions
    for (int d = 0; d < window.spatial; d++) count[d] = residues_along(dx, window, d), residues *= count[d];
    for (int64_t n = 0; n < residues; n++) {
        Residue each[WINDOW_AXES];
        int64_t rest = n;
        for (int d = 0; d < window.spatial; d++) {
            each[d] = residue_of(rest % count[d], dx.dims[SPATIAL + d], w.dims[SPATIAL + d], window, d);
            rest /= count[d];
        }
        if (by_parts) dx_of_parts(gradient, 0, each, place);
        else dx_of_any(gradient, each, place);
    }
}

void conv_dw(const Operand& x, const Operand& dy, const Operand& dw, const ConvWindow& window, const Workplace& place)
{
    if (is_depthwise(dw, window)) {
        Depthwise d = forward_depthwise(x, dw, dy, window);
        d.sum_type = dw.type;
        return run_depthwise_dw(d, place);
    }
    const bool copies = x.strides[1] != 1 && is_worth_copying(dw, taps_of(dw, window));
    (copies ? dw_channels_last : dw_of_matrices)(x, dy, dw, window, place);
}

}  // namespace ng::cpu
