// Counts traffic and arithmetic of steps at given lengths.
#include "jit/cost.h"

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

uint64_t elements(const View& v, std::span<const int64_t> variables)
{
    uint64_t n = 1;
    for (size_t i = 0; i < v.dims.size(); i++)
        if (!v.strides[i].is(0)) n *= uint64_t(std::max<int64_t>(v.dims[i].value(variables), 0));
    return n;
}
uint64_t bytes(const View& v, std::span<const int64_t> variables) { return elements(v, variables) * uint64_t(bytes_of(v.dtype)); }

// Points of the space at which an access differs.
uint64_t points(const Kernel& k, int32_t access, std::span<const int64_t> variables)
{
    uint64_t n = 1;
    for (size_t a = 0; a < k.axes.size(); a++)
        if (access < 0 || !k.accesses[size_t(access)].strides[a].is(0)) n *= uint64_t(std::max<int64_t>(k.axes[a].extent.value(variables), 0));
    return n;
}

Cost fused(const Kernel& k, std::span<const int64_t> variables)
{
    Cost c;
    uint64_t all = points(k, -1, variables), rows = 1;
    for (const KernelAxis& a : k.axes)
        if (!a.reduced) rows *= uint64_t(std::max<int64_t>(a.extent.value(variables), 0));
    std::map<std::pair<int32_t, uint64_t>, uint64_t> read;        // views of one buffer, once an extent
    for (size_t i = 0; i < k.values.size(); i++) {
        const Value& v = k.values[i];
        c.instructions += uint64_t(weight_of(k, i)) * (v.row && v.kind != ValueKind::Fold ? rows : all);
        const bool computes = (v.kind == ValueKind::Map || v.kind == ValueKind::Fold) && is_float(v.type);
        if (computes) c.flops += v.kind == ValueKind::Map && v.row ? rows : all;
        if (v.kind == ValueKind::Load) {
            const uint64_t n = points(k, v.access, variables) * uint64_t(bytes_of(v.type));
            read[{v.buffer, n}] = n;
        } else if (v.kind == ValueKind::Gather) {
            c.moved_bytes += all * uint64_t(bytes_of(v.type));
        }
    }
    for (const auto& [key, n] : read) c.moved_bytes += n;
    for (const StoreTo& s : k.stores) {
        const uint64_t n = points(k, s.access, variables);
        c.moved_bytes += n * uint64_t(bytes_of(k.values[size_t(s.value)].type)), c.instructions += STORING * n;
    }
    return c;
}

uint64_t product_flops(const Step& s, std::span<const int64_t> variables)
{
    const uint64_t out = elements(s.out, variables);
    const auto dim = [&](const View& v, size_t axis) { return uint64_t(std::max<int64_t>(v.dims[axis].value(variables), 0)); };
    const auto filter = [&](const View& w) {
        uint64_t n = 1;
        for (size_t a = 1; a < w.dims.size(); a++) n *= dim(w, a);
        return n;
    };
    switch (s.node->op) {
    case Op::matmul: return 2 * out * dim(s.in[0], s.in[0].dims.size() - 1);
    case Op::conv: return 2 * out * filter(s.in[1]);
    case Op::conv_dx: return 2 * elements(s.in[1], variables) * filter(s.in[0]);
    case Op::conv_dw: return 2 * elements(s.in[1], variables) * filter(s.out);
    default: return out;
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

Cost cost_of(const Step& s, std::span<const int64_t> variables)
{
    if (s.kernel) return fused(*s.kernel, variables);
    Cost c;
    if (s.node) c.flops = product_flops(s, variables);
    c.instructions = instructions_of(s, c.flops);
    const bool put = s.node && s.node->op == Op::put;              // only the places that are written, and what says so
    if (put) c.moved_bytes = bytes(s.in[1], variables) + 2 * bytes(s.in[2], variables);
    if (put) return c;
    for (const View& v : s.in) c.moved_bytes += bytes(v, variables);
    c.moved_bytes += bytes(s.out, variables);
    return c;
}

Cost cost_of(const Plan& plan, std::span<const int64_t> variables)
{
    Cost all;
    for (const Step& s : plan.steps) {
        const Cost c = cost_of(s, variables);
        all.moved_bytes += c.moved_bytes, all.flops += c.flops, all.instructions += c.instructions;
    }
    return all;
}

}  // namespace ng
