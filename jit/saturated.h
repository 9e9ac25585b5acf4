// Products and sums of sizes that stop at the greatest number: what no memory holds stays too much for it. And whole units of sizes.
#pragma once
#include <cstdint>
#include <limits>

namespace ng {

// Of numbers that are not negative.
template <class T>
constexpr T times(T x, T y)
{
    return __builtin_mul_overflow(x, y, &x) ? std::numeric_limits<T>::max() : x;
}
template <class T>
constexpr T plus(T x, T y)
{
    return __builtin_add_overflow(x, y, &x) ? std::numeric_limits<T>::max() : x;
}
constexpr int64_t divided_up(int64_t n, int64_t unit) { return n / unit + (n % unit != 0); }

}  // namespace ng
