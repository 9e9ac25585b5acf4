// Builds fused kernels by hand and evaluates them point by point in double: the reference of the backends' tests.
#pragma once
#include "jit/kernel.h"
#include "jit/number.h"
#include "lib/backend/cpu/isa.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace ng::test {

// A buffer of any dtype whose elements are seen as doubles.
struct Buffer {
    Dtype type = Dtype::f32;
    int64_t count = 0;
    struct alignas(64) Line { char bytes[64]; };
    std::vector<Line> memory;

    Buffer(Dtype type_, int64_t count_) : type(type_), count(count_), memory(size_t(count * bytes_of(type_) + 63) / 64 + 1) {}
    char* data() { return memory.data()->bytes; }
    double get(int64_t i)
    {
        alignas(8) char element[8] = {};
        cpu::isa_table(nullptr)->load[int(type)](element, data() + i * bytes_of(type), 1, 1);
        double value = 0;
        cpu::isa_table(nullptr)->convert[int(compute_of(type))][int(Dtype::f64)](&value, element, 1);
        return value;
    }
    void set(int64_t i, double value)
    {
        alignas(8) char element[8] = {};
        cpu::isa_table(nullptr)->convert[int(Dtype::f64)][int(type)](element, &value, 1);
        cpu::isa_table(nullptr)->store[int(type)](data() + i * bytes_of(type), 1, element, 1);
    }
};

// Numbers that look random and are the same each time.
inline void fill(Buffer& buffer, uint64_t seed, double low = -2, double high = 2)
{
    for (int64_t i = 0; i < buffer.count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        buffer.set(i, low + (high - low) * double(seed >> 33) / double(1u << 31));
    }
}

struct Builder {
    Kernel kernel;

    int axis(Extent extent, bool reduced = false) { return kernel.axes.push_back({extent, reduced}), int(kernel.axes.size()) - 1; }
    int access(const Extents& strides, Extent offset = 0)
    {
        return kernel.accesses.push_back({offset, strides}), int(kernel.accesses.size()) - 1;
    }
    int add(Value value) { return kernel.values.push_back(std::move(value)), int(kernel.values.size()) - 1; }
    int load(Dtype type, int buffer, const Extents& strides, Extent offset = 0)
    {
        Value v{ValueKind::Load};
        v.type = type;
        v.buffer = buffer;
        v.access = access(strides, offset);
        return add(v);
    }
    int index(const Extents& strides, Extent offset = 0)
    {
        Value v{ValueKind::Index};
        v.type = Dtype::i64;
        v.access = access(strides, offset);
        return add(v);
    }
    int gather(Dtype type, int buffer, const Extents& strides, int index, Extent extent, Extent stride)
    {
        Value v{ValueKind::Gather};
        v.type = type;
        v.buffer = buffer;
        v.access = access(strides);
        v.args[0] = index;
        v.extent = extent;
        v.stride = stride;
        return add(v);
    }
    int constant(double number, Dtype type = Dtype::f32)
    {
        Value v{ValueKind::Constant};
        v.type = type;
        v.bits = is_float(type) ? std::bit_cast<int64_t>(number) : int64_t(number);
        return add(v);
    }
    int scalar(Dtype type, int64_t byte)
    {
        Value v{ValueKind::Scalar};
        v.type = type;
        v.bits = byte;
        return add(v);
    }
    int length(Extent extent)
    {
        Value v{ValueKind::Length};
        v.type = Dtype::i64;
        v.extent = extent;
        return add(v);
    }
    int map(Op op, int x, int y = -1, int z = -1)
    {
        Value v{ValueKind::Map, op};
        v.args = {x, y, z};
        const int last = z >= 0 ? z : y >= 0 ? y : x;
        for (const int arg : v.args) v.row |= arg >= 0 && kernel.values[size_t(arg)].row;
        for (const int arg : v.args)                   // what reads a full value is one
            if (arg >= 0 && !kernel.values[size_t(arg)].row && kernel.values[size_t(arg)].kind != ValueKind::Constant) v.row = false;
        v.type = info(op).result == Result::Bool ? Dtype::bool_ : compute_of(kernel.values[size_t(last)].type);
        return add(v);
    }
    int convert(int x, Dtype type)
    {
        Value v{ValueKind::Convert};
        v.args[0] = x;
        v.type = type;
        return add(v);
    }
    int fold(Op op, int x)
    {
        Value v{ValueKind::Fold, op};
        v.args[0] = x;
        v.row = true;
        v.type = op == Op::argmax || op == Op::argmin ? Dtype::i64 : compute_of(kernel.values[size_t(x)].type);
        return add(v);
    }
    void store(int value, int buffer, const Extents& strides, bool late = false, Extent offset = 0)
    {
        kernel.stores.push_back({value, buffer, access(strides, offset), late});
    }
};

// Evaluates a kernel; buffers are read as they were and written where the copies are.
class Reference {
  public:
    Reference(const Kernel& kernel, std::vector<Buffer>& in, std::vector<Buffer>& out, const int64_t* variables, const void* scalars)
        : k_(kernel), in_(in), out_(out), variables_(variables), scalars_(static_cast<const char*>(scalars)), folds_(kernel.values.size())
    {
        for (const KernelAxis& axis : k_.axes) extents_.push_back(number(axis.extent));
        point_.assign(k_.axes.size(), 0);
    }
    void run()
    {
        each(false, 0, [&] {
            for (size_t v = 0; v < k_.values.size(); v++)
                if (k_.values[v].kind == ValueKind::Fold) folds_[v] = folded(int(v));
            each(true, 0, [&] {
                for (const StoreTo& s : k_.stores)
                    out_[size_t(s.buffer)].set(element(s.access), value(s.value));
            });
            if (empty())
                for (const StoreTo& s : k_.stores)
                    if (k_.values[size_t(s.value)].row) out_[size_t(s.buffer)].set(element(s.access), value(s.value));
        });
    }

  private:
    int64_t number(const Extent& e) const { return e.value({variables_, 16}); }
    bool empty() const
    {
        for (size_t a = 0; a < extents_.size(); a++)
            if (k_.axes[a].reduced && extents_[a] == 0) return true;
        return false;
    }
    int64_t element(int access) const
    {
        const Access& a = k_.accesses[size_t(access)];
        int64_t at = number(a.offset);
        for (size_t i = 0; i < point_.size(); i++) at += point_[i] * number(a.strides[i]);
        return at;
    }
    void each(bool reduced, size_t axis, const std::function<void()>& body)
    {
        if (axis == extents_.size()) return body();
        if (k_.axes[axis].reduced != reduced) return each(reduced, axis + 1, body);
        for (point_[axis] = 0; point_[axis] < extents_[axis]; point_[axis]++) each(reduced, axis + 1, body);
        point_[axis] = 0;
    }
    double folded(int v)
    {
        const Op op = k_.values[size_t(v)].op;
        double best = op == Op::prod || op == Op::all ? 1 : 0;
        int64_t at = 0, count = 0;
        each(true, 0, [&] {
            const double x = value(k_.values[size_t(v)].args[0]);
            const bool less = op == Op::argmin || op == Op::min;
            if (op == Op::sum) best += x;
            else if (op == Op::prod) best *= x;
            else if (op == Op::any) best = best != 0 || x != 0;
            else if (op == Op::all) best = best != 0 && x != 0;
            else if (count == 0 || (!std::isnan(best) && (std::isnan(x) || (less ? x < best : x > best)))) best = x, at = count;
            count++;
        });
        return op == Op::argmin || op == Op::argmax ? double(at) : best;
    }
    double value(int v)
    {
        const Value& a = k_.values[size_t(v)];
        switch (a.kind) {
        case ValueKind::Load: return in_[size_t(a.buffer)].get(element(a.access));
        case ValueKind::Index: return double(element(a.access));
        case ValueKind::Constant: return is_float(a.type) ? std::bit_cast<double>(a.bits) : double(a.bits);
        case ValueKind::Scalar: return double(*reinterpret_cast<const float*>(scalars_ + a.bits));
        case ValueKind::Length: return double(number(a.extent));
        case ValueKind::Fold: return folds_[size_t(v)];
        case ValueKind::Map: return mapped(a);
        case ValueKind::Convert: return is_float(a.type) ? round_to(a.type, value(a.args[0])) : std::nearbyint(value(a.args[0]));
        case ValueKind::Gather: {
            const int64_t index = int64_t(value(a.args[0]));
            if (index < 0 || index >= number(a.extent)) return 0;
            return in_[size_t(a.buffer)].get(element(a.access) + index * number(a.stride));
        }
        default: return NAN;
        }
    }
    double mapped(const Value& a)
    {
        const double x = value(a.args[0]), y = a.args[1] >= 0 ? value(a.args[1]) : 0, z = a.args[2] >= 0 ? value(a.args[2]) : 0;
        switch (a.op) {
        case Op::add: return x + y;
        case Op::sub: return x - y;
        case Op::mul: return x * y;
        case Op::div: return x / y;
        case Op::exp: return std::exp(x);
        case Op::sqrt: return std::sqrt(x);
        case Op::square: return x * x;
        case Op::fma: return x * y + z;
        case Op::where: return x != 0 ? y : z;
        case Op::less: return x < y;
        case Op::maximum: return std::max(x, y);
        default: return NAN;
        }
    }

    const Kernel& k_;
    std::vector<Buffer>& in_;
    std::vector<Buffer>& out_;
    const int64_t* variables_;
    const char*    scalars_;
    std::vector<int64_t> extents_, point_;
    std::vector<double>  folds_;
};

// (x - mean) / sqrt(var + eps) over the last axis or the first of [rows, columns].
inline Kernel normalised(Extent rows, Extent columns, bool over_last, int out = 1)
{
    Builder b;
    b.axis(rows, !over_last);
    b.axis(columns, over_last);
    const Extents dense{columns, 1};
    const Extent  length = over_last ? columns : rows;
    const int x = b.load(Dtype::f32, 0, dense), n = b.convert(b.length(length), Dtype::f32);
    const int mean = b.map(Op::div, b.fold(Op::sum, x), n), centred = b.map(Op::sub, x, mean);
    const int variance = b.map(Op::div, b.fold(Op::sum, b.map(Op::square, centred)), n);
    const int scale = b.map(Op::sqrt, b.map(Op::add, variance, b.constant(1e-5)));
    b.store(b.map(Op::div, centred, scale), out, dense, out == 0);
    return b.kernel;
}

// softmax(x) over the last axis of [rows, columns].
inline Kernel softmax(Extent rows, Extent columns)
{
    Builder b;
    b.axis(rows);
    b.axis(columns, true);
    const Extents dense{columns, 1};
    const int x = b.load(Dtype::f32, 0, dense), e = b.map(Op::exp, b.map(Op::sub, x, b.fold(Op::max, x)));
    b.store(b.map(Op::div, e, b.fold(Op::sum, e)), 1, dense);
    return b.kernel;
}

}  // namespace ng::test
