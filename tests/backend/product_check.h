// What tests of products share: tensors of any type and strides, plain references, threads, and poisoned workspaces.
#pragma once
#include "lib/backend/cpu/products.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace product_check {
using ng::Dtype;
using ng::Parallel;
using Index = std::vector<int64_t>;
inline const char* const LEVELS[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

// The value of a float of few bits, by the textbook.
inline double decode(uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity)
{
    const int      bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    const int      exponent = int(bits >> mantissa_bits) & top;
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const double   sign = bits >> (mantissa_bits + exponent_bits) & 1 ? -1 : 1;
    if (has_infinity && exponent == top) return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    if (!has_infinity && exponent == top && mantissa == (1u << mantissa_bits) - 1) return std::nan("");
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(double(mantissa) + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <class T> T read(const void* p) { T v; std::memcpy(&v, p, sizeof v); return v; }
template <class T> void write(void* p, T v) { std::memcpy(p, &v, sizeof v); }

inline double get(Dtype t, const void* p)
{
    switch (t) {
    case Dtype::bool_: return read<uint8_t>(p) != 0;
    case Dtype::i8: return read<int8_t>(p);
    case Dtype::i16: return read<int16_t>(p);
    case Dtype::i32: return read<int32_t>(p);
    case Dtype::i64: return double(read<int64_t>(p));
    case Dtype::u8: return read<uint8_t>(p);
    case Dtype::u16: return read<uint16_t>(p);
    case Dtype::u32: return read<uint32_t>(p);
    case Dtype::u64: return double(read<uint64_t>(p));
    case Dtype::f32: return read<float>(p);
    case Dtype::f64: return read<double>(p);
    case Dtype::f16: return decode(read<uint16_t>(p), 5, 10, true);
    case Dtype::bf16: return decode(read<uint16_t>(p), 8, 7, true);
    case Dtype::e4m3: return decode(read<uint8_t>(p), 4, 3, false);
    default: return decode(read<uint8_t>(p), 5, 2, true);
    }
}

// v must be a value of the type; narrow floats are found by looking through all of them.
inline void put(Dtype t, void* p, double v)
{
    const int bytes = ng::bytes_of(t);
    if (t == Dtype::f32) return write(p, float(v));
    if (t == Dtype::f64) return write(p, v);
    if (!ng::is_float(t)) {
        const int64_t n = int64_t(v);
        std::memcpy(p, &n, size_t(bytes));
        return;
    }
    for (uint32_t code = 0; code < (bytes == 1 ? 256u : 65536u); code++) {
        std::memcpy(p, &code, size_t(bytes));
        if (get(t, p) == v && std::signbit(get(t, p)) == std::signbit(v)) return;
    }
    FAIL("no such value");
}

// How a tensor lies in memory: which axis is outermost, .., and which run backwards; elements between neighbours.
struct Lie {
    Index    order;          // empty: row-major
    uint32_t reversed = 0;   // bits of axes
    int64_t  step = 1;
};

struct Tensor {
    Dtype             type;
    Index             dims, strides;
    std::vector<char> memory;
    int64_t           origin = 0;

    Tensor(Dtype t, Index d, const Lie& lie = {}) : type(t), dims(std::move(d)), strides(dims.size())
    {
        int64_t stride = lie.step;
        for (size_t i = dims.size(); i-- > 0;) {
            const size_t axis = lie.order.empty() ? i : size_t(lie.order[i]);
            strides[axis] = stride, stride *= std::max<int64_t>(dims[axis], 1);
        }
        for (size_t i = 0; i < dims.size(); i++)
            if (lie.reversed >> i & 1 && dims[i] > 0) origin += strides[i] * (dims[i] - 1), strides[i] = -strides[i];
        memory.assign(size_t(stride + 1) * size_t(ng::bytes_of(t)), char(0xff));   // NaN, or -1
    }
    ng::cpu::Operand operand() { return {memory.data() + origin * ng::bytes_of(type), type, dims.data(), strides.data()}; }
    int64_t count() const
    {
        int64_t n = 1;
        for (const int64_t d : dims) n *= d;
        return n;
    }
    char* at(const Index& i)
    {
        int64_t offset = origin;
        for (size_t a = 0; a < dims.size(); a++) offset += i[a] * strides[a];
        return memory.data() + offset * ng::bytes_of(type);
    }
    double get(const Index& i) { return product_check::get(type, at(i)); }
    void   each(const std::function<void(const Index&)>& body) const
    {
        Index i(dims.size());
        for (int64_t n = 0; n < count(); n++) {
            int64_t rest = n;
            for (size_t a = dims.size(); a-- > 0;) i[a] = rest % dims[a], rest /= dims[a];
            body(i);
        }
    }
    // Quarters of -7 .. 7 (integers: those themselves): sums of products of them are exact in every accumulator.
    Tensor& fill(uint32_t seed)
    {
        std::mt19937 random(seed);
        char         codes[15][8];
        for (int v = -7; v <= 7; v++) product_check::put(type, codes[v + 7], ng::is_float(type) ? v / 4.0 : ng::is_bool(type) ? v & 1 : ng::is_signed(type) ? v : v + 7);
        each([&](const Index& i) { std::memcpy(at(i), codes[random() % 15], size_t(ng::bytes_of(type))); });
        return *this;
    }
    // Of f32, f64 or bf16, the last cut off.
    Tensor& fill_normal(uint32_t seed)
    {
        std::mt19937                     random(seed);
        std::normal_distribution<double> normal;
        each([&](const Index& i) {
            const double v = normal(random);
            if (type == Dtype::f64) return write(at(i), v);
            uint32_t bits;
            write(&bits, float(v));
            type == Dtype::bf16 ? write(at(i), uint16_t(bits >> 16)) : write(at(i), bits);
        });
        return *this;
    }
};

// An epilogue that counts how often it hears of each element of a result, 100 times where that is not finished.
struct Listener {
    explicit Listener(Tensor& result) : result_(result), times_(size_t(result.count())) {}
    ng::cpu::Epilogue epilogue() { return {hear, this}; }
    bool has_each_once() const { return std::all_of(times_.begin(), times_.end(), [](int n) { return n == 1; }); }

    int64_t  boxes = 0;
    uint32_t workers = 0;                                  // the highest number that it heard, and 1

  private:
    static void hear(void* self, const int64_t* first, const int64_t* count, uint32_t worker)
    {
        Listener&                   l = *static_cast<Listener*>(self);
        std::lock_guard<std::mutex> hold(l.lock_);
        const size_t                rank = l.result_.dims.size();
        l.boxes++, l.workers = std::max(l.workers, worker + 1);
        Tensor(Dtype::i8, {count, count + rank}).each([&](Index i) {
            int64_t flat = 0;
            for (size_t a = 0; a < rank; a++) i[a] += first[a], flat = flat * l.result_.dims[a] + i[a];
            l.times_[size_t(flat)] += std::isnan(l.result_.get(i)) ? 100 : 1;
        });
    }
    Tensor&          result_;
    std::vector<int> times_;
    std::mutex       lock_;
};

// Tasks by as many threads as there are workers, each with a number of its own.
struct Threads {
    uint32_t workers;

    static void run(void* self, uint32_t count, Parallel::Task task, void* arg)
    {
        std::atomic<uint32_t>    next = 0;
        std::vector<std::thread> threads;
        for (uint32_t w = 0; w < static_cast<Threads*>(self)->workers; w++)
            threads.emplace_back([&, w] {
                for (uint32_t i; (i = next++) < count;) task(arg, i, w);
            });
        for (std::thread& t : threads) t.join();
    }
    Parallel parallel() { return workers == 1 ? Parallel() : Parallel(run, this, workers); }
};

// Memory of exactly so many bytes, full of NaN, whose end is watched.
struct Workspace {
    uint64_t          bytes;
    std::vector<char> memory;

    explicit Workspace(uint64_t n) : bytes(n), memory(n + 192, char(0xff)) {}
    char* data() { return memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & 63); }
    bool  is_intact()
    {
        for (uint64_t i = 0; i < 64; i++)
            if (data()[bytes + i] != char(0xff)) return false;
        return true;
    }
};

}  // namespace product_check
