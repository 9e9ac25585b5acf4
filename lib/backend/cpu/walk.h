// Walking arrays by strides, and elements of any dtype as numbers of the type that they compute in.
#pragma once
#include "lib/backend/cpu/indexed.h"

#include <limits>
#include <type_traits>

namespace ng::cpu {

// Calls f(T{}) with the C++ type that registers of dtype t hold.
template <class F>
void with_compute_type(Dtype t, F&& f)
{
    switch (compute_of(t)) {
    case Dtype::i8: return f(int8_t{});
    case Dtype::i16: return f(int16_t{});
    case Dtype::i32: return f(int32_t{});
    case Dtype::i64: return f(int64_t{});
    case Dtype::u16: return f(uint16_t{});
    case Dtype::u32: return f(uint32_t{});
    case Dtype::u64: return f(uint64_t{});
    case Dtype::f32: return f(float{});
    case Dtype::f64: return f(double{});
    default: return f(uint8_t{});                                  // bool, u8
    }
}

// What a fold runs on: the last of several is moved, bits and all, whatever number they are (contract N2).
inline Dtype folded_as(Dtype t, Folding how)
{
    return how == Folding::Last && is_float(t) ? bits_of_size(size_t(bytes_of(t))) : t;
}

// Calls f with the folding as a constant.
template <class F>
void with_folding(Folding how, F&& f)
{
    switch (how) {
    case Folding::Last: return f(std::integral_constant<Folding, Folding::Last>{});
    case Folding::Sum: return f(std::integral_constant<Folding, Folding::Sum>{});
    case Folding::Prod: return f(std::integral_constant<Folding, Folding::Prod>{});
    case Folding::Min: return f(std::integral_constant<Folding, Folding::Min>{});
    default: return f(std::integral_constant<Folding, Folding::Max>{});
    }
}

// Points of some axes in row-major order, with their offsets in two arrays.
class Walk {
  public:
    void add(int64_t size, int64_t a, int64_t b)
    {
        size_[rank_] = size, a_[rank_] = a, b_[rank_] = b, at_[rank_++] = 0;
        count *= size;
    }
    void next()
    {
        for (int k = rank_; k-- > 0;) {
            a += a_[k], b += b_[k];
            if (++at_[k] < size_[k]) return;
            a -= size_[k] * a_[k], b -= size_[k] * b_[k], at_[k] = 0;
        }
    }
    // To the i-th point; where there is none, nowhere.
    void seek(int64_t i)
    {
        a = b = 0;
        if (!count) return;
        for (int k = rank_; k-- > 0;) at_[k] = i % size_[k], i /= size_[k], a += at_[k] * a_[k], b += at_[k] * b_[k];
    }
    int64_t count = 1, a = 0, b = 0;

  private:
    int     rank_ = 0;
    int64_t size_[NG_MAX_NDIM], a_[NG_MAX_NDIM], b_[NG_MAX_NDIM], at_[NG_MAX_NDIM];
};

// One element between memory and a number of type T.
template <class T>
class Elements {
  public:
    Elements(const IsaTable& isa, Dtype t)
        : native_(compute_of(t) == t), is_truth_(is_bool(t)), bytes_(bytes_of(t)), load_(isa.load[int(t)]), store_(isa.store[int(t)]), round_(isa.convert[int(compute_of(t))][int(t)])
    {
    }
    // Memory holds T itself, as it does of all but narrow floats.
    bool is_native() const { return !std::is_same_v<T, float> || native_; }
    // A number in memory; any byte but 0 is true.
    T of(T v) const
    {
        if constexpr (std::is_same_v<T, uint8_t>) return is_truth_ ? T(v != 0) : v;
        return v;
    }
    T get(const void* array, int64_t at) const
    {
        if (is_native()) return of(static_cast<const T*>(array)[at]);
        T v;
        load_(&v, static_cast<const char*>(array) + at * bytes_, 1, 1);
        return v;
    }
    void set(void* array, int64_t at, T v) const
    {
        if (is_native()) return void(static_cast<T*>(array)[at] = v);
        round_(&v, &v, 1);
        store_(static_cast<char*>(array) + at * bytes_, 1, &v, 1);
    }
    // Several, `step` apart; read where they are if memory holds just these.
    const T* get(const void* array, int64_t at, int64_t step, int64_t count, T* buffer) const
    {
        if (is_native() && step == 1 && !is_truth_) return static_cast<const T*>(array) + at;
        load_(buffer, static_cast<const char*>(array) + at * bytes_, step, count);
        return buffer;
    }
    void set(void* array, int64_t at, int64_t step, T* values, int64_t count) const
    {
        if (!is_native()) round_(values, values, count);
        store_(static_cast<char*>(array) + at * bytes_, step, values, count);
    }

  private:
    bool        native_, is_truth_;
    int         bytes_;
    LoadLoop    load_;
    StoreLoop   store_;
    ConvertLoop round_;
};

// What sums and products of T run in.
template <class T> using Running = std::conditional_t<std::is_same_v<T, float>, double, T>;

// One fold of two numbers. Integers wrap; Min and Max keep NaN.
template <class T>
T folded(Folding how, T a, T b)
{
    using U = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    switch (how) {
    case Folding::Last: return b;
    case Folding::Sum: return T(U(a) + U(b));
    case Folding::Prod: return T(U(a) * U(b));
    case Folding::Min: return b < a || b != b ? b : a;
    default: return b > a || b != b ? b : a;
    }
}

template <class T>
T identity_of(Folding how, Dtype t)
{
    using L = std::numeric_limits<T>;
    switch (how) {
    case Folding::Prod: return T(1);
    case Folding::Min: return is_bool(t) ? T(1) : L::has_infinity ? L::infinity() : L::max();
    case Folding::Max: return is_bool(t) ? T(0) : L::has_infinity ? T(-L::infinity()) : L::lowest();
    default: return T(0);
    }
}

}  // namespace ng::cpu
