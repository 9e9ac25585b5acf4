// Products, windows and random numbers by their definitions: one loop over everything that is multiplied.
#include "tests/random/meaning.h"

#include <algorithm>
#include <cstring>

namespace programs {
namespace {

// A sum of products in the making: in any order, and in the type of the result.
struct Sum {
    Real    v = 0, magnitudes = 0;
    double  off = 0;
    uint64_t whole = 0;
    int64_t count = 0;
    void add(const Cell& a, const Cell& b, bool is_real)
    {
        count++;
        off += a.off + b.off == 0 ? 0 : double(std::abs(a.v)) * b.off + double(std::abs(b.v)) * a.off + a.off * b.off;
        if (!is_real) { whole += uint64_t(Wide(a.v)) * uint64_t(Wide(b.v)); return; }
        v += a.v * b.v, magnitudes += std::abs(a.v * b.v);
    }
    Cell cell(ng_dtype t) const
    {
        if (!is_float(t)) return {wrapped(t, Wide(whole)), off == 0 ? 0 : NOT_JUDGED};
        if (!std::isfinite(v) || !(off < INFINITY)) return {0, NOT_JUDGED};
        const double least = double(unit_of(t, 0)) * double(count);
        return settled(t, v, off + magnitudes_off(t) + least);
    }
    double magnitudes_off(ng_dtype t) const { return epsilon_of(t) * double(magnitudes) * double(count + 2) / 2; }
};

int or_one(int v) { return v ? v : 1; }

// f(x's number or -1 for padding, w's, y's) for every product of a convolution.
template <class F>
void each_tap(const Dims& x, const Dims& w, const Dims& y, const ng_conv_desc& d, F f)
{
    each(y, [&](const Index& at_y, size_t ny) {
        each(Dims(w.begin() + 1, w.end()), [&](const Index& at_w, size_t) {
            Index in_w = {at_y[1]}, in_x = {at_y[0], at_y[1] / (w[0] / or_one(d.groups)) * w[1] + at_w[0]};
            in_w.insert(in_w.end(), at_w.begin(), at_w.end());
            bool inside = true;
            for (size_t a = 2; a < x.size(); a++) {
                const int64_t p = at_y[a] * or_one(d.stride[a - 2]) + at_w[a - 1] * or_one(d.dilate[a - 2]) - d.pad_lo[a - 2];
                inside = inside && p >= 0 && p < x[a];
                in_x.push_back(p);
            }
            f(inside ? flat(in_x, x) : -1, size_t(flat(in_w, w)), ny);
        });
    });
}

// f(numbers of x's elements in the window, how many lie on x or its padding, y's number) for every window. What
// NG_POOL_CEIL adds behind the padding is neither.
template <class F>
void each_window(const Dims& x, const Dims& y, const ng_pool_desc& d, F f)
{
    const int over = or_one(d.channel_window), by = d.channel_stride ? d.channel_stride : over;
    Dims window = {over};
    for (size_t a = 2; a < x.size(); a++) window.push_back(or_one(d.window[a - 2]));
    each(y, [&](const Index& at_y, size_t ny) {
        std::vector<size_t> inside;
        int64_t padded = 0;
        each(window, [&](const Index& at, size_t) {
            Index i = {at_y[0], at_y[1] * by + at[0] - d.channel_pad};
            for (size_t a = 2; a < x.size(); a++) {
                const int stride = d.stride[a - 2] ? d.stride[a - 2] : or_one(d.window[a - 2]);
                i.push_back(at_y[a] * stride + at[a - 1] * or_one(d.dilate[a - 2]) - d.pad_lo[a - 2]);
            }
            for (size_t a = 1; a < x.size(); a++)
                if (i[a] >= x[a] + (a == 1 ? d.channel_pad : d.pad_hi[a - 2])) return;
            padded++;
            for (size_t a = 1; a < x.size(); a++)
                if (i[a] < 0 || i[a] >= x[a]) return;
            inside.push_back(size_t(flat(i, x)));
        });
        f(inside, padded, ny);
    });
}

}  // namespace

Value Meaning::multiplied() const
{
    Value out = empty();
    Dims a = arg(0).dims, b = arg(1).dims, y = out.dims;
    if (a.size() == 1) a.insert(a.begin(), 1), y.insert(y.end() - (b.size() > 1), 1);
    if (b.size() == 1) b.push_back(1), y.push_back(1);
    const auto batch = [&](const Dims& d) { return broadcast_strides(Dims(d.begin(), d.end() - 2), Dims(y.begin(), y.end() - 2)); };
    const Dims batch_a = batch(a), batch_b = batch(b);
    const int64_t inner = a.back(), columns = b.back(), rows = a[a.size() - 2];
    each(y, [&](const Index& i, size_t k) {
        const Index in(i.begin(), i.end() - 2);
        const int64_t row = dot(in, batch_a) * rows * inner + i[i.size() - 2] * inner, column = dot(in, batch_b) * inner * columns + i.back();
        Sum sum;
        for (int64_t m = 0; m < inner; m++)
            sum.add(arg(0).cells[size_t(row + m)], arg(1).cells[size_t(column + m * columns)], is_float(node.type));
        out.cells[k] = sum.cell(node.type);
    });
    return out;
}

Value Meaning::windowed() const
{
    Value out = empty();
    std::vector<Sum> sums(out.cells.size());
    const Value &a = arg(0), &b = arg(1);
    const bool real = is_float(node.type);
    const Cell pad = {Real(node.conv.pad_value), 0};
    const auto at = [&](const Value& v, int64_t i) { return i < 0 ? pad : v.cells[size_t(i)]; };
    if (node.form == Form::Conv)
        each_tap(a.dims, b.dims, out.dims, node.conv, [&](int64_t x, size_t w, size_t y) { sums[y].add(at(a, x), b.cells[w], real); });
    if (node.form == Form::ConvDw)
        each_tap(a.dims, out.dims, b.dims, node.conv, [&](int64_t x, size_t w, size_t y) { sums[w].add(at(a, x), b.cells[y], real); });
    if (node.form == Form::ConvDx)
        each_tap(out.dims, a.dims, b.dims, node.conv, [&](int64_t x, size_t w, size_t y) { if (x >= 0) sums[size_t(x)].add(a.cells[w], b.cells[y], real); });
    for (size_t i = 0; i < sums.size(); i++) out.cells[i] = sums[i].cell(node.type);
    return out;
}

namespace {

Cell greatest(const Value& x, const std::vector<size_t>& in)
{
    Cell best = x.cells[in[0]];
    Real high = best.v + Real(best.off), low = best.v - Real(best.off);
    for (const size_t i : in) {
        const Cell& c = x.cells[i];
        if (c.v != c.v) return {NAN, 0};
        if (c.v > best.v) best = c;
        high = std::max(high, c.v + Real(c.off)), low = std::max(low, c.v - Real(c.off));
    }
    const double off = high == low ? 0 : double(std::max(high - best.v, best.v - low));
    return {best.v, is_float(x.type) || off == 0 ? off : is_bool(x.type) ? 1 : NOT_JUDGED};
}

Cell mean_or_l2(ng_dtype t, const Value& x, const std::vector<size_t>& in, const ng_pool_desc& d, int64_t size)
{
    Sum sum;
    const bool l2 = d.kind == NG_POOL_L2;
    for (const size_t i : in) {
        const Cell c = cast_cell(t, x.cells[i], x.type);
        sum.add(c, l2 ? c : Cell{1, 0}, true);
    }
    const Cell c = sum.cell(t);
    if (!(c.off < INFINITY)) return c;
    if (!l2) {
        const auto n = Real(d.flags & NG_POOL_COUNT_PAD ? size : int64_t(in.size()));
        return settled(t, c.v / n, c.off / double(n) + 2 * epsilon_of(t) * double(std::abs(c.v / n)) + double(unit_of(t, 0)));
    }
    const Real v = std::sqrt(std::max<Real>(c.v, 0));
    return settled(t, v, (v > 0 ? std::min(c.off / double(v), std::sqrt(c.off)) : std::sqrt(c.off)) + 2 * epsilon_of(t) * double(v));
}

}  // namespace

Value Meaning::pooled() const
{
    Value out = empty();
    const Value& x = arg(0);
    const ng_dtype t = node.type;
    if (node.form == Form::Pool) {
        each_window(x.dims, out.dims, node.pool, [&](const std::vector<size_t>& in, int64_t size, size_t y) {
            if (in.empty()) out.cells[y] = {0, NOT_JUDGED};
            else out.cells[y] = node.pool.kind == NG_POOL_MAX ? greatest(x, in) : mean_or_l2(t, x, in, node.pool, size);
        });
        return out;
    }
    std::vector<Sum> sums(out.cells.size());
    each_window(x.dims, arg(1).dims, node.pool, [&](const std::vector<size_t>& in, int64_t size, size_t y) {
        if (in.empty()) return;
        const Cell dy = cast_cell(t, arg(1).cells[y], arg(1).type);
        const Cell whole = node.pool.kind == NG_POOL_MAX ? greatest(x, in) : mean_or_l2(t, x, in, node.pool, size);
        bool found = false;
        for (const size_t i : in) {
            const Cell c = node.pool.kind == NG_POOL_MAX ? x.cells[i] : cast_cell(t, x.cells[i], x.type);
            Cell slope = {0, 0};
            if (node.pool.kind == NG_POOL_MEAN) slope = {1 / Real(node.pool.flags & NG_POOL_COUNT_PAD ? size : int64_t(in.size())), epsilon_of(t)};
            else if (node.pool.kind == NG_POOL_L2) slope = whole.v > 0 ? Cell{c.v / whole.v, (c.off + whole.off) / double(whole.v) + 2 * epsilon_of(t)} : Cell{0, whole.off > 0 ? NOT_JUDGED : 0};
            else if (whole.v != whole.v) slope = {0, NOT_JUDGED};        // the slope of a NaN
            else {
                const bool close = (c.off > 0 || whole.off > 0) && std::abs(c.v - whole.v) <= Real(c.off + whole.off);
                slope = {!found && c.v == whole.v ? Real(1) : Real(0), close && in.size() > 1 && c.off + whole.off > 0 ? NOT_JUDGED : 0};
                found = found || c.v == whole.v;
            }
            sums[i].add(slope, dy, true);
        }
    });
    for (size_t i = 0; i < sums.size(); i++) out.cells[i] = sums[i].cell(t);
    return out;
}

namespace {

struct Words { uint32_t w[4]; };

// Philox4x32-10, Salmon and others 2011.
Words philox(uint64_t index, uint64_t key, uint64_t step)
{
    uint32_t c[4] = {uint32_t(index), uint32_t(index >> 32), uint32_t(step), uint32_t(step >> 32)}, k[2] = {uint32_t(key), uint32_t(key >> 32)};
    for (int round = 0; round < 10; round++) {
        const uint64_t a = uint64_t(0xD2511F53u) * c[0], b = uint64_t(0xCD9E8D57u) * c[2];
        const uint32_t next[4] = {uint32_t(b >> 32) ^ c[1] ^ k[0], uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ k[1], uint32_t(a)};
        std::memcpy(c, next, sizeof c);
        k[0] += 0x9E3779B9u, k[1] += 0xBB67AE85u;
    }
    return {{c[0], c[1], c[2], c[3]}};
}

Cell random_cell(ng_dtype t, int64_t kind, const Words& w)
{
    if (kind == NG_BITS) return {Real(w.w[0]), 0};
    if (kind == NG_UNIFORM && t == NG_F32) return {std::ldexp(Real(w.w[0] >> 8), -24), 0};
    if (kind == NG_UNIFORM) return {std::ldexp(Real((uint64_t(w.w[1]) << 32 | w.w[0]) >> 11), -53), 0};
    // Box & Muller 1958 of (word 0 + 1/2) / 2^32, which is rounded to the type, and of word 1 / 2^32 of a turn.
    const Real u = std::ldexp(t == NG_F32 ? Real(float(w.w[0]) + 0.5f) : Real(w.w[0]) + Real(0.5), -32);
    const Real radius = std::sqrt(-2 * std::log(u)), turn = std::ldexp(Real(int32_t(w.w[1])), -31) * 3.14159265358979323846264338L;
    return {radius * std::cos(turn), 16 * epsilon_of(t) * double(radius + 1)};
}

uint64_t as_u64(const Cell& c) { return c.v < 0 ? uint64_t(int64_t(c.v)) : uint64_t(c.v); }

}  // namespace

Value Meaning::drawn() const
{
    Value out = empty();
    if (node.form == Form::Input) {
        const Bytes& bytes = *program.inputs[size_t(node.ints[0])].values[run];
        const auto size = size_t(element(node.type).bytes);
        for (size_t i = 0; i < out.cells.size(); i++) out.cells[i] = {load(node.type, &bytes[i * size]), 0};
    } else if (node.form == Form::Constant) {
        const Real v = node.ints[0] ? Real(node.ints[1]) : Real(node.number);
        out.cells[0] = {node.weak ? v : converted(node.type, v, node.ints[0] ? NG_I64 : NG_F64), 0};
    } else if (node.form == Form::Length) {
        out.cells[0] = {Real(lengths()[size_t(node.ints[0])]), 0};
    } else if (node.form == Form::Iota) {
        each(out.dims, [&](const Index& i, size_t k) { out.cells[k] = {converted(node.type, Real(i[size_t(node.ints[0])]), NG_I64), 0}; });
    } else if (node.form == Form::Random) {
        const bool lost = arg(0).cells[0].off > 0 || (args.size() > 1 && arg(1).cells[0].off > 0);
        for (size_t k = 0; k < out.cells.size(); k++)
            out.cells[k] = lost ? Cell{0, NOT_JUDGED} : random_cell(node.type, node.ints[0], philox(k, as_u64(arg(0).cells[0]), args.size() > 1 ? as_u64(arg(1).cells[0]) : 0));
    } else {
        const ng_dtype from = real_of(arg(0).type);
        for (size_t k = 0; k < out.cells.size(); k++) {
            const Cell c = cast_cell(from, arg(0).cells[k], arg(0).type);
            const int bits = node.ints[0] ? int(node.ints[0]) : -1;
            const Real unit = unit_of(node.type, c.v, bits), low = std::floor(c.v / unit) * unit;
            const bool stays = c.off == 0 && low == c.v;
            out.cells[k] = !(c.off < INFINITY) || !std::isfinite(c.v) ? Cell{0, NOT_JUDGED} : settled(node.type, c.v, stays ? 0 : c.off + double(unit_of(node.type, c.v + Real(c.off), bits)));
        }
    }
    return out;
}

}  // namespace programs
