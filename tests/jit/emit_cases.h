// Graphs that emitting is tested on, scheduled as programs are, beside their meaning for the naive evaluation.
#pragma once
#include "jit/emit.h"
#include "jit/number.h"
#include "jit/parse.h"
#include "jit/plan.h"
#include "tests/jit/naive_graph.h"

#include <cstring>
#include <memory>
#include <random>

namespace ng::emitted {

// The number of a float's code, by definition.
inline double number_of(Dtype t, uint64_t code)
{
    const DtypeInfo& f = info(t);
    const int bias = (1 << (f.exponent - 1)) - 1, field = int(code >> f.mantissa & ((1u << f.exponent) - 1));
    const uint64_t fraction = code & ((uint64_t(1) << f.mantissa) - 1), top = (1u << f.exponent) - 1;
    const double sign = code >> (f.exponent + f.mantissa) & 1 ? -1 : 1, part = std::ldexp(double(fraction), -f.mantissa);
    if (t == Dtype::e4m3 ? (code & 127) == 127 : field == int(top) && fraction) return NAN;
    if (t != Dtype::e4m3 && field == int(top)) return sign * INFINITY;
    return sign * (field ? std::ldexp(1 + part, field - bias) : std::ldexp(part, 1 - bias));
}
inline uint64_t code_of(Dtype t, double value)
{
    if (t == Dtype::f32) return std::bit_cast<uint32_t>(float(value));
    if (t == Dtype::f64) return std::bit_cast<uint64_t>(value);
    if (!is_float(t)) return uint64_t(int64_t(value));
    // Codes of one sign ascend as their numbers do, up to what is none.
    const uint64_t sign = uint64_t(1) << (8 * bytes_of(t) - 1);
    if (std::isnan(value)) return sign - 1;
    uint64_t low = 0, high = sign;
    while (high - low > 1) {
        const uint64_t middle = (low + high) / 2;
        (number_of(t, middle) <= std::abs(value) ? low : high) = middle;
    }
    if (number_of(t, low) != std::abs(value)) throw Error(NG_E_BUG, text(value, " is no ", name_of(t)));
    return low | (std::signbit(value) ? sign : 0);
}

inline void put_number(Dtype t, char* to, double value)
{
    const uint64_t code = code_of(t, value);
    std::memcpy(to, &code, size_t(bytes_of(t)));
}
inline double number_at(Dtype t, const char* from)
{
    uint64_t code = 0;
    std::memcpy(&code, from, size_t(bytes_of(t)));
    if (is_float(t)) return number_of(t, code);
    const int unused = 64 - 8 * bytes_of(t);
    return is_signed(t) ? double(int64_t(code << unused) >> unused) : double(code);
}

// Memory of one tensor.
struct Memory {
    Dtype             type = Dtype::f32;
    std::vector<char> bytes;

    char* data() { return bytes.data(); }
    void set(int64_t i, double value) { put_number(type, data() + i * bytes_of(type), value); }
    double get(int64_t i) const { return number_at(type, bytes.data() + i * bytes_of(type)); }
};

// Philox4x32-10 once more, from the paper.
inline std::array<uint32_t, 4> philox(uint64_t index, uint64_t key, uint64_t step)
{
    std::array<uint32_t, 4> c = {uint32_t(index), uint32_t(index >> 32), uint32_t(step), uint32_t(step >> 32)};
    for (uint32_t round = 0; round < 10; round++) {
        const uint64_t a = uint64_t(0xD2511F53) * c[0], b = uint64_t(0xCD9E8D57) * c[2];
        c = {uint32_t(b >> 32) ^ c[1] ^ (uint32_t(key) + round * 0x9E3779B9u), uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ (uint32_t(key >> 32) + round * 0xBB67AE85u), uint32_t(a)};
    }
    return c;
}
inline double drawn(uint32_t kind, Dtype t, const std::array<uint32_t, 4>& w)
{
    if (kind == NG_BITS) return w[0];
    if (kind == NG_UNIFORM) return t == Dtype::f32 ? (w[0] >> 8) * 0x1p-24 : double((uint64_t(w[1]) << 32 | w[0]) >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log((w[0] + 0.5) * 0x1p-32)) * std::cos(2 * M_PI * w[1] * 0x1p-32);
}

struct Case {
    const char*          name;
    const char*          caption;
    double               tolerance = 1e-6;           // of |value| + 1: a few f32 roundings
    std::unique_ptr<Graph> g = std::make_unique<Graph>();
    naive::Inputs        in;
    std::vector<Layout>  layouts;                    // by param
    std::vector<NodeRef> roots, meant;
    std::vector<Target>  targets;
    std::vector<char>    scalars;
    std::vector<std::string> names;
    std::vector<NodeRef> real, simple;               // by name: as compiled, as evaluated
    std::mt19937         random{11};
    Plan                 plan;

    Case(const char* name_, const char* caption_) : name(name_), caption(caption_) {}

    void call(const char* as, NodeRef is, NodeRef means) { names.push_back(as), real.push_back(std::move(is)), simple.push_back(std::move(means)); }
    NodeRef param(Dtype t, const Extents& dims, naive::Value v, const Extents& strides = {})
    {
        Layout l;
        l.dtype = t, l.dims = dims, l.strides = strides.empty() ? dense_strides(dims) : strides;
        const auto index = int64_t(layouts.size());
        layouts.push_back(l);
        for (double& x : v.v)
            if (is_float(t)) x = round_to(t, x);
        in.params[index] = std::move(v);
        return build::param(*g, uint32_t(index), l);
    }
    naive::Value numbers(const Extents& dims, double low, double high)
    {
        std::vector<int64_t> sizes;
        for (const Extent& e : dims) sizes.push_back(e.value(in.lengths));
        naive::Value v = naive::zeros(std::move(sizes));
        for (double& x : v.v) x = low + (high - low) * double(random()) * 0x1p-32;
        return v;
    }
    void input(const char* as, Dtype t, const Extents& dims, double low = -2, double high = 2, const Extents& strides = {})
    {
        naive::Value v = numbers(dims, low, high);
        if (!is_float(t))
            for (double& x : v.v) x = std::floor(x);
        const NodeRef n = param(t, dims, std::move(v), strides);
        call(as, n, n);
    }
    NodeRef pass(Dtype t, double value)
    {
        const size_t at = (scalars.size() + 7) / 8 * 8;
        const uint64_t code = code_of(t, value);
        scalars.resize(at + size_t(bytes_of(t)));
        std::memcpy(scalars.data() + at, &code, size_t(bytes_of(t)));
        return build::scalar(*g, t, uint32_t(at));
    }
    void scalar(const char* as, Dtype t, double value) { call(as, pass(t, value), build::constant(*g, t, value)); }
    void draw(const char* as, uint32_t kind, Dtype t, const Extents& dims, uint64_t key, uint64_t step)
    {
        Layout l;
        l.dtype = t, l.dims = dims, l.strides = dense_strides(dims);
        naive::Value v = numbers(dims, 0, 0);
        for (size_t i = 0; i < v.v.size(); i++) v.v[i] = drawn(kind, t, philox(i, key, step));
        // The meaning is a param of its own; round_to would move nothing that is compared exactly.
        const NodeRef means = param(Dtype::f64, dims, std::move(v));
        call(as, build::random(*g, kind, pass(Dtype::u64, double(key)), pass(Dtype::u64, double(step)), l), means);
    }
    void out(std::string_view words, const Extents& strides = {}, int32_t alias = -1)
    {
        const std::vector<std::string_view> views(names.begin(), names.end());
        add_out(parse(*g, words, views, real), parse(*g, words, views, simple), strides, alias);
    }
    void add_out(NodeRef is, NodeRef means, const Extents& strides = {}, int32_t alias = -1)
    {
        Target t;
        t.layout.dtype = is->dtype, t.layout.dims = is->dims(), t.layout.strides = strides.empty() ? dense_strides(is->dims()) : strides;
        t.declared = !strides.empty(), t.alias_param = alias;
        roots.push_back(std::move(is)), meant.push_back(std::move(means)), targets.push_back(std::move(t));
    }
    void compile(int64_t turned_bytes = NEVER_TURNED) { plan = schedule(roots, targets, int32_t(in.lengths.size()), Fusion::Usual, nullptr, turned_bytes); }
};

using Cases = std::vector<std::unique_ptr<Case>>;
// Those whose texts are golden, and others that are only run.
Cases golden_cases();
Cases other_cases();

// The text of a step as its golden file has it.
std::string golden_text(const Case& c, const KernelSource& source, const Dialect& dialect, size_t step);
std::string golden_name(const Case& c, const Dialect& dialect, size_t step);
// A folder of the tree, from NG_SOURCE or where this source was compiled.
std::string source_root();
// Runs a command of the shell; its output is kept out of the test's unless it fails.
bool succeeds(const std::string& command);

}  // namespace ng::emitted
