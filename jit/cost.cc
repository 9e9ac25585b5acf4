// Counts traffic and arithmetic of steps at given lengths.
#include "jit/cost.h"

#include "jit/error.h"
#include "jit/saturated.h"

#include <algorithm>
#include <map>

namespace ng {
namespace {

constexpr uint64_t STORING = 2;          // about the instructions of a store

bool is_fast(Op op)
{
    switch (op) {
    case Op::add: case Op::sub: case Op::mul: case Op::maximum: case Op::minimum: case Op::neg: case Op::abs: case Op::square:
    case Op::relu: case Op::where: case Op::fma: return true;
    default: return info(op).result == Result::Bool;
    }
}

// What lengths may be at most can be more than fits: sums and products that exceed 64 bits are the greatest number.
struct Count {
    uint64_t n = 0;
    Count(uint64_t n_ = 0) : n(n_) {}
    friend Count operator+(Count a, Count b) { return plus(a.n, b.n); }
    friend Count operator*(Count a, Count b) { return times(a.n, b.n); }
    Count& operator+=(Count b) { return *this = *this + b; }
    Count& operator*=(Count b) { return *this = *this * b; }
};
void add(uint64_t& sum, Count n) { sum = (Count(sum) + n).n; }

Count elements(const View& v, std::span<const int64_t> variables)
{
    Count n = 1;
    for (size_t i = 0; i < v.dims.size(); i++)
        if (!v.strides[i].is(0)) n *= extent_at(v.dims[i], variables);
    return n;
}
Count size(Dtype t) { return uint64_t(bytes_of(t)); }
Count bytes(const View& v, std::span<const int64_t> variables) { return elements(v, variables) * size(v.dtype); }

// Points of the space at which an access differs.
Count points(const Kernel& k, int32_t access, std::span<const int64_t> variables)
{
    Count n = 1;
    for (size_t a = 0; a < k.axes.size(); a++)
        if (access < 0 || !k.accesses[size_t(access)].strides[a].is(0)) n *= extent_at(k.axes[a].extent, variables);
    return n;
}

Cost fused(const Kernel& k, std::span<const int64_t> variables)
{
    Cost c;
    Count all = points(k, -1, variables), rows = 1;
    for (const KernelAxis& a : k.axes)
        if (!a.reduced) rows *= extent_at(a.extent, variables);
    std::map<std::pair<int32_t, uint64_t>, Count> read;           // views of one buffer, once an extent
    for (size_t i = 0; i < k.values.size(); i++) {
        const Value& v = k.values[i];
        add(c.instructions, Count(uint64_t(weight_of(k, i))) * (v.row && v.kind != ValueKind::Fold ? rows : all));
        const bool computes = (v.kind == ValueKind::Map || v.kind == ValueKind::Fold) && is_float(v.type);
        if (computes) add(c.flops, v.kind == ValueKind::Map && v.row ? rows : all);
        if (v.kind == ValueKind::Load) {
            const Count n = points(k, v.access, variables) * size(v.type);
            read[{v.buffer, n.n}] = n;
        } else if (v.kind == ValueKind::Gather) {
            add(c.moved_bytes, all * size(v.type));
        }
    }
    for (const auto& [key, n] : read) add(c.moved_bytes, n);
    for (const StoreTo& s : k.stores) {
        const Count n = points(k, s.access, variables);
        add(c.moved_bytes, n * size(k.values[size_t(s.value)].type)), add(c.instructions, Count(STORING) * n);
    }
    return c;
}

uint64_t product_flops(const Step& s, std::span<const int64_t> variables)
{
    const Count out = elements(s.out, variables), two = 2;
    const auto dim = [&](const View& v, size_t axis) { return Count(extent_at(v.dims[axis], variables)); };
    const auto filter = [&](const View& w) {
        Count n = 1;
        for (size_t a = 1; a < w.dims.size(); a++) n *= dim(w, a);
        return n;
    };
    switch (s.node->op) {
    case Op::matmul: return (two * out * dim(s.in[0], s.in[0].dims.size() - 1)).n;
    case Op::conv: return (two * out * filter(s.in[1])).n;
    case Op::conv_dx: return (two * elements(s.in[1], variables) * filter(s.in[0])).n;
    case Op::conv_dw: return (two * elements(s.in[1], variables) * filter(s.out)).n;
    default: return out.n;
    }
}

// A multiplication and its addition are one; tensor cores do about as many more of them as their operands are narrower.
uint64_t instructions_of(const Step& s, uint64_t flops)
{
    if (!s.node || s.node->op != Op::matmul) return flops / 2;
    const int bytes = std::max(bytes_of(s.in[0].dtype), bytes_of(s.in[1].dtype));
    return flops / 2 / (bytes == 1 ? 32 : bytes == 2 ? 16 : 1);
}

}  // namespace

int32_t weight_of(const Kernel& kernel, size_t value)
{
    const Value& v = kernel.values[value];
    switch (v.kind) {
    case ValueKind::Map: return is_fast(v.op) ? 1 : v.op == Op::div || v.op == Op::sqrt || v.op == Op::rsqrt ? 8 : 20;
    case ValueKind::Random: return RandomWord(v.bits) == RandomWord::Normal ? 120 : 60;
    case ValueKind::Stochastic: return 40;
    case ValueKind::Gather: return 6;
    case ValueKind::Fold: return 4;
    case ValueKind::Load: return 2;
    case ValueKind::Convert: return 2;
    default: return 0;
    }
}

uint64_t extent_at(const Extent& e, std::span<const int64_t> variables)
{
    try {
        return uint64_t(std::max<int64_t>(e.value(variables), 0));
    } catch (const Error&) {
        return UINT64_MAX;
    }
}

Cost cost_of(const Step& s, std::span<const int64_t> variables)
{
    if (s.kernel) return fused(*s.kernel, variables);
    Cost c;
    if (s.node) c.flops = product_flops(s, variables);
    c.instructions = instructions_of(s, c.flops);
    const bool put = s.node && s.node->op == Op::put;              // only the places that are written, and what says so
    if (put) add(c.moved_bytes, bytes(s.in[1], variables) + Count(2) * bytes(s.in[2], variables));
    if (put) return c;
    for (const View& v : s.in) add(c.moved_bytes, bytes(v, variables));
    add(c.moved_bytes, bytes(s.out, variables));
    return c;
}

Cost cost_of(const Plan& plan, std::span<const int64_t> variables)
{
    Cost all;
    for (const Step& s : plan.steps) {
        const Cost c = cost_of(s, variables);
        add(all.moved_bytes, c.moved_bytes), add(all.flops, c.flops), add(all.instructions, c.instructions);
    }
    return all;
}

}  // namespace ng
